/* attention: predictors f(X) = sum_l w_l z_l with scores chi_l = X_l.k and values z_l = X_l.v.
 *
 *     erf       w_l = erf(lam chi_l)                         (the paper's)
 *     softmax   w = softmax(lam chi)
 *     linear    w_l = 1 + lam chi_l
 *     shifted   w_l = 1 + erf(c + lam chi_l)
 *     softplus  w_l = softplus(lam chi_l) / sum
 *     hardmax   one at the largest chi (shared equally in a tie), zero elsewhere
 *     bayes     w = softmax(lam chi + c |X|^2): the posterior of the location when k = k* and (lam,
 * c) come from fin_task_bayes_parameters
 *
 * One form per file, forward and backward side by side; one row in the table makes it known. */
#ifndef FINETTI_ATTENTION_H
#define FINETTI_ATTENTION_H

#include "finetti/base.h"
#include "finetti/task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_FORM_LAM(F, C) F(double, lam, 0.1, 0, 1e6, "scale of the scores (inverse temperature)")
#define FIN_FORM_C(F, C) F(double, c, 0, -1e6, 1e6, "shift of the score")

typedef struct fin_form_settings {
    FIN_FORM_LAM(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_FORM_C(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_form_settings;

typedef struct fin_form fin_form; /* one row of the table of forms */

FIN_API int fin_form_count(void);
FIN_API const fin_form *fin_form_at(int i);
FIN_API const fin_form *fin_form_find(const char *name); /* NULL if there is none */
FIN_API const char *fin_form_name(const fin_form *form);
FIN_API const char *fin_form_summary(const fin_form *form);
FIN_API const fin_settings *fin_form_table(const fin_form *form);

/* Weights from scores, for n samples cut by offsets (offsets[0] may be > 0: arrays start at sample
 * 0's first token). norm2 is needed by `bayes` with c != 0, else NULL. w may not overlap chi. */
FIN_API fin_status fin_form_weights(const fin_form *form, const fin_form_settings *settings,
                                    int64_t n, const int64_t *offsets, const double *chi,
                                    FIN_OR_NULL const double *norm2, double *w, fin_error *err);

typedef struct fin_attention fin_attention;

/* A predictor with its work memory. d: dimension; longest: most tokens in one sample. settings
 * NULL: the form's defaults (bayes and softmax have none). k and v are zero until fin_attention_set. */
FIN_API fin_status fin_attention_create(fin_attention **attention, const fin_form *form,
                                        const fin_form_settings *settings, int64_t d,
                                        fin_dtype dtype, int64_t longest, fin_error *err);
FIN_API void fin_attention_destroy(fin_attention *attention); /* NULL is fine */
/* Parameters; k and v (d numbers each) are copied and need not have length one. NULL keeps. */
FIN_API fin_status fin_attention_set(fin_attention *attention, const fin_form_settings *settings,
                                     FIN_OR_NULL const double *k, FIN_OR_NULL const double *v,
                                     fin_error *err);

/* Gradients are added to what is there (caller-owned): zero them first. Accumulated in double, in
 * the order of the samples, so that one batch and the same batch in pieces give the same bytes,
 * with any number of threads. */
typedef struct fin_gradient {
    double *k, *v; /* (d) each */
    double lam, c; /* zero for a form that has no such setting */
} fin_gradient;

/* f: (n). w: (tokens) or NULL. */
FIN_API fin_status fin_attention_forward(fin_attention *attention, const fin_batch *batch,
                                         FIN_OR_NULL double *f, FIN_OR_NULL double *w,
                                         fin_error *err);
/* Given df: (n) = d loss / d f, adds d loss / d (k, v, lam, c). */
FIN_API fin_status fin_attention_backward(fin_attention *attention, const fin_batch *batch,
                                          const double *df, fin_gradient *gradient, fin_error *err);
/* Both at once for the squared error, reading the tokens from memory once: adds sum (f - y)^2 to
 * *loss and its gradient to gradient. f: (n) or NULL. */
FIN_API fin_status fin_attention_loss(fin_attention *attention, const fin_batch *batch,
                                      const double *y, FIN_OR_NULL double *f,
                                      FIN_OR_NULL double *loss, FIN_OR_NULL fin_gradient *gradient,
                                      fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
