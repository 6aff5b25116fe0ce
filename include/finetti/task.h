/* task: generative models of one sequence of tokens and its output. One model per file.
 *
 * All tasks here are single-location regression or a variant of it. L tokens in R^d, m of them
 * relevant (m = 1 in the papers), unit vectors k* and v* with k*.v* = 0:
 *
 *     Y = sum over relevant tokens of X_J.v*  +  eps * N(0,1)
 *
 *     slr     J uniform; X_J ~ N(mu k*, gamma^2 I), the others N(0, I)
 *     spiked  slr with gamma = 1 and mu = sqrt(snr)
 *     max     all tokens N(0, I); J drawn with probability softmax(snr * X_l.k*); snr = inf: the
 * argmax
 *
 * The latent J is the whole story: given J the output is linear, and attention weights estimate its
 * posterior. `snr` is called nu in the sequel; here nu is the overlap v.v*.
 *
 * Sample i is a pure function of (seed, i) and of the precision of its tokens (float and double
 * tokens are different draws, with the same lengths and places for slr): batches may be cut
 * anywhere, drawn by any number of threads, and have the same bytes. Ragged layout: the tokens of
 * sample i are rows offsets[i] .. offsets[i+1]-1 of one array, no padding. */
#ifndef FINETTI_TASK_H
#define FINETTI_TASK_H

#include <math.h> /* INFINITY, a limit in the settings table */

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_D_MAX (INT64_C(1) << 50)
#define FIN_L_MAX (INT64_C(1) << 31)

/* Settings of every task: common ones, then those that one task has and another has not. */
#define FIN_TASK_COMMON(F, C)                                                                      \
    F(int64_t, d, 400, 2, FIN_D_MAX, "token dimension")                                            \
    F(int64_t, L, 10, 1, FIN_L_MAX, "tokens in a sequence (the longest, if lengths vary)")         \
    F(int64_t, L_min, FIN_AUTO_INT, 1, FIN_L_MAX,                                                  \
      "shortest sequence: L is then uniform on L_min..L; auto = L, a fixed length")                \
    F(int64_t, m, 1, 1, 4096, "relevant tokens in a sequence")                                     \
    F(double, eps, 0, 0, 1e6, "standard deviation of the output noise")
#define FIN_TASK_SLR(F, C)                                                                         \
    F(double, gamma, 0.70710678118654757, 0, 1e6, "standard deviation of a relevant token")        \
    F(double, mu, FIN_AUTO, 0, 1e9, "mean of a relevant token along k*; auto = sqrt(d/2)")
#define FIN_TASK_SNR(F, C)                                                                         \
    F(double, snr, 4, 0, INFINITY, "signal strength (nu in the sequel); max takes inf too")

typedef struct fin_task_settings {
    FIN_TASK_COMMON(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_TASK_SLR(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_TASK_SNR(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_task_settings;

/* A law of L other than fixed or uniform: P(L = L[i]) proportional to p[i] > 0. Copied. */
typedef struct fin_lengths {
    int64_t count;
    const int64_t *L;
    const double *p;
} fin_lengths;

/* One row of the table of tasks. `settings` describes a fin_task_settings; fields that are not in
 * it are ignored by this task. */
typedef struct fin_task_kind fin_task_kind;

FIN_API int fin_task_count(void);
FIN_API const fin_task_kind *fin_task_at(int i);
FIN_API const fin_task_kind *fin_task_find(const char *name); /* NULL if there is none */
FIN_API const char *fin_task_kind_name(const fin_task_kind *kind);
FIN_API const char *fin_task_kind_summary(const fin_task_kind *kind);
FIN_API const fin_settings *fin_task_kind_table(const fin_task_kind *kind);

typedef struct fin_task fin_task;

enum {
    FIN_TASK_AMBIENT = 1 /* make k* and v* in R^d: needed to draw tokens, not for risks */
};

/* Makes a task. settings NULL: defaults. lengths NULL: from the settings. With FIN_TASK_AMBIENT the
 * directions are drawn from the seed (k* uniform on the sphere, v* on the sphere orthogonal to it).
 */
FIN_API fin_status fin_task_create(fin_task **task, const fin_task_kind *kind,
                                   const fin_task_settings *settings,
                                   FIN_OR_NULL const fin_lengths *lengths, uint64_t seed, int flags,
                                   fin_error *err);
FIN_API void fin_task_destroy(fin_task *task); /* NULL is fine */

FIN_API const fin_task_kind *fin_task_get_kind(const fin_task *task);
/* Settings with every "auto" worked out. */
FIN_API const fin_task_settings *fin_task_get_settings(const fin_task *task);
FIN_API int64_t fin_task_longest(const fin_task *task);
FIN_API double fin_task_length_mean(const fin_task *task);
FIN_API double fin_task_length_variance(const fin_task *task);
/* d numbers each, borrowed; NULL without FIN_TASK_AMBIENT. */
FIN_API const double *fin_task_k_star(const fin_task *task);
FIN_API const double *fin_task_v_star(const fin_task *task);
/* Replaces the directions (copied). They must be orthonormal to 1e-9. */
FIN_API fin_status fin_task_set_directions(fin_task *task, const double *k_star,
                                           const double *v_star, fin_error *err);

/* A ragged batch. Borrowed. */
typedef struct fin_batch {
    int64_t n, d;
    fin_dtype dtype;        /* FIN_F32 or FIN_F64 */
    const void *tokens;     /* (offsets[n] - offsets[0], d): the rows of sample 0 come first */
    const int64_t *offsets; /* (n + 1), ascending */
} fin_batch;

/* offsets[0..n] for samples first .. first+n-1, offsets[0] = 0. */
FIN_API fin_status fin_task_offsets(const fin_task *task, uint64_t first, int64_t n,
                                    int64_t *offsets, fin_error *err);

/* Draws samples first .. first+n-1. tokens: (offsets[n], d) of dtype; y: (n) or NULL; location:
 * (n, m) places within each sample, ascending, or NULL. offsets: from fin_task_offsets. */
FIN_API fin_status fin_task_draw(const fin_task *task, uint64_t first, int64_t n, fin_dtype dtype,
                                 const int64_t *offsets, void *tokens, FIN_OR_NULL double *y,
                                 FIN_OR_NULL int64_t *location, fin_error *err);

/* The overlaps of the parameters (k, v), unit vectors, with (k*, v*). */
#define FIN_OVERLAP_FIELDS(F, C)                                                                   \
    F(double, kappa, 1, -1, 1, "k.k*")                                                             \
    F(double, nu, 1, -1, 1, "v.v*")                                                                \
    F(double, theta, 0, -1, 1, "v.k*")                                                             \
    F(double, eta, 0, -1, 1, "k.v*")                                                               \
    F(double, rho, 0, -1, 1, "k.v")

typedef struct fin_overlaps {
    FIN_OVERLAP_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_overlaps;

FIN_API extern const fin_settings fin_overlaps_table;

/* What any predictor here can see of a token, without its d coordinates. Each array has offsets[n]
 * numbers, is caller-owned and may be NULL. */
typedef struct fin_projections {
    double *chi, *z;           /* X.k, X.v */
    double *chi_star, *z_star; /* X.k*, X.v* */
    double *norm2;             /* |X|^2 */
} fin_projections;

/* Draws projections only: the same law as fin_task_draw followed by projecting, at a cost that does
 * not depend on d (four normals a token, and a chi-square if norm2 is asked for). */
FIN_API fin_status fin_task_project(const fin_task *task, const fin_overlaps *overlaps,
                                    uint64_t first, int64_t n, const int64_t *offsets,
                                    const fin_projections *out, FIN_OR_NULL double *y,
                                    FIN_OR_NULL int64_t *location, fin_error *err);

/* w: (tokens) = P(token is the relevant one | X), exactly; needs m = 1. */
FIN_API fin_status fin_task_posterior(const fin_task *task, const fin_batch *batch, double *w,
                                      fin_error *err);
/* y: (n) = E[Y | X], the Bayes prediction; needs m = 1. */
FIN_API fin_status fin_task_predict(const fin_task *task, const fin_batch *batch, double *y,
                                    fin_error *err);
/* The posterior is softmax over l of  lam X_l.k* + c |X_l|^2: these two numbers. */
FIN_API void fin_task_bayes_parameters(const fin_task *task, double *lam, double *c);

#ifdef __cplusplus
}
#endif
#endif
