/* Private face of the attention module: the row of the table of forms. One form, one file. */
#ifndef FINI_FORM_H
#define FINI_FORM_H

#include "base/base.h"
#include "finetti/attention.h"
#include "kernel/kernel.h"

/* The tokens of n samples on the way back. Arrays start at the first token of sample 0. */
typedef struct fini_pass {
    int64_t n;
    const int64_t *offsets;
    const double *chi, *norm2, *z; /* (tokens); norm2 may be NULL */
    const double *w;               /* (tokens): the weights */
    const double *f, *df;          /* (n): f = sum w z, and dloss/df */
    double *p;         /* (tokens): dloss/dchi, to be written (dloss/dz is df w for every form) */
    double *dlam, *dc; /* (n): to be added to */
} fini_pass;

/* A form whose exact risk, with its derivative in lam, and whose descent are kernels: many points in one
 * call, and sixteen runs side by side. */
typedef struct fini_form_lanes {
    void (*risk)(int64_t n, const double points[][FINI_RISK_IN], double values[][FINI_RISK_OUT]);
    void (*population)(const fini_population_model *p, int64_t steps, const double *lam,
                       const double *alpha, double state[][FINI_RUNS]);
    void (*reduced)(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                    const double *alpha, double state[][FINI_RUNS]);
} fini_form_lanes;

struct fin_form {
    const char *name, *summary;
    const fin_settings *settings;
    int elementwise; /* w_l depends on chi_l alone */
    int needs_norm2; /* uses |X|^2 */

    /* Weights of n samples. Arrays start at the first token of sample 0. */
    void (*weights)(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w);
    /* dloss/dchi into t->p; adds dloss/dlam and dloss/dc to t->dlam, t->dc. */
    void (*backward)(const fin_form_settings *s, const fini_pass *t);

    /* Element-wise forms only: w as a function of chi, and (or NULL, then quadrature) the Gaussian
     * moments m[j] = E[w^(j)(chi)], h[j] = E[(w^2)^(j)(chi)], j = 0..3, chi ~ N(mean, sd^2). */
    double (*value)(const fin_form_settings *s, double chi);
    void (*moments)(const fin_form_settings *s, double mean, double sd, double m[4], double h[4]);
    const fini_form_lanes *lanes; /* or NULL */
    /* If w = softmax(lam chi + c |X|^2): this lam (inf: all at the largest chi) and c. NULL: it is not. */
    void (*scores)(const fin_form_settings *s, double *lam, double *c);
};

extern const fin_form fini_form_erf, fini_form_hardmax; /* for whoever needs this one by name */

/* Settings in range, and none left to be worked out from a task that is not known here. */
fin_status fini_form_check(const fin_form *form, const fin_form_settings *settings, fin_error *err);

/* Softmax of lam chi + c norm2 and its gradient, shared by `softmax` and `bayes`. */
void fini_softmax_weights(double lam, double c, int64_t n, const int64_t *offsets,
                          const double *chi, const double *norm2, double *w);
void fini_softmax_backward(const fin_form_settings *s, const fini_pass *t);
/* One at the largest chi, shared equally in a tie. */
void fini_hardmax_weights(int64_t n, const int64_t *offsets, const double *chi, double *w);
/* Backward of w = const + erf(c + lam chi). */
void fini_erf_backward(double lam, double c, const fini_pass *t);

/* 1 if w_l depends on token l alone, so that the risk has a closed form or a quadrature. */
int fini_form_elementwise(const fin_form *form);

#endif
