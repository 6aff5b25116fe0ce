/* theory: what can be said without training, and mostly without sampling.
 *
 * Every number comes with how it was obtained: a closed form, a quadrature (with an error estimate)
 * or a Monte Carlo mean (with its standard error). Simulations never see R^d: a token enters only
 * through its projections on span(k, v, k*, v*), and what can be integrated by hand is. */
#ifndef FINETTI_THEORY_H
#define FINETTI_THEORY_H

#include "finetti/attention.h"
#include "finetti/base.h"
#include "finetti/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Also the choices of the setting `method`, in this order. AUTO is a wish, never an answer. */
typedef enum fin_method {
    FIN_METHOD_AUTO,
    FIN_METHOD_CLOSED,     /* error: 0 */
    FIN_METHOD_QUADRATURE, /* error: the change when the nodes were last doubled, and rounding */
    FIN_METHOD_SIMULATION  /* error: the standard error of the mean */
} fin_method;

FIN_API const char *fin_method_name(fin_method method); /* "closed form", "quadrature", ... */

typedef struct fin_estimate {
    double value, error;
    fin_method method;
    int64_t samples; /* of a simulation, else 0 */
    int rare; /* 1: one sample makes up a tenth of the mean (or all are 0); larger ones were most
               * likely not met at all, and both the mean and its error are too small: commands give
               * it no error (NaN) */
} fin_estimate;

/* ---- the erf predictor, exactly ------------------------------------------------------------ */

/* One point of the landscape: twelve doubles, in this order. L may vary (mean and variance) and m
 * tokens may be relevant; the paper has m = 1, L_mean = L, L_var = 0. */
typedef struct fin_risk_point {
    double kappa, nu, theta, eta, rho;
    double lam, gamma, mu, eps;
    double m, L_mean, L_var;
} fin_risk_point;

/* risk = eps^2 + signal + noise + bias, all three not negative: m times the variance of a relevant
 * token's error, the variance of what irrelevant tokens add, and the squared mean error. */
typedef struct fin_risk_value {
    double signal, noise, bias, risk;
    double gradient[5]; /* in kappa, nu, theta, eta, rho */
    double d_lam;       /* and in lam */
} fin_risk_value;

/* Risk and gradient at n points, in closed form up to one smooth integral that a fixed 24-point
 * rule gives to rounding. Relative error of the risk below 1e-13 + 4e-16 x^2, x = lam mu kappa /
 * sqrt(1 + 2 lam^2 gamma^2), also where the risk is nearly zero; docs/accuracy.md has the
 * measurements. Points outside |overlap| <= 1, lam >= 0, gamma >= 0, 0 <= m <= L_mean (or not
 * finite) are refused, and the message names the first one. */
FIN_API fin_status fin_risk_erf(int64_t n, const fin_risk_point *points, fin_risk_value *values,
                                fin_error *err);

/* Settings, form settings and overlaps may be NULL in the calls below: their defaults (the default
 * overlaps are the oracle's, k = k* and v = v*). */

/* ---- any task, any form --------------------------------------------------------------------- */

#define FIN_RISK_FIELDS(F, C)                                                                      \
    C(method, 0, "auto|closed|quadrature|simulation",                                              \
      "how to compute; auto takes the most exact one there is")                                    \
    F(int64_t, samples, 100000, 2, INT64_C(1) << 40, "sequences in a simulation")                  \
    F(int64_t, nodes, 65536, 64, INT64_C(1) << 24, "most nodes of a quadrature")                   \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the simulation")

typedef struct fin_risk_settings {
    FIN_RISK_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_risk_settings;
FIN_API extern const fin_settings fin_risk_table;

typedef struct fin_risk_report {
    fin_estimate risk;
    int has_parts, has_gradient;
    double signal, noise, bias; /* risk - eps^2 in three parts, if has_parts */
    double gradient[5];         /* kappa, nu, theta, eta, rho, if has_gradient */
} fin_risk_report;

/* E (Y - f(X))^2 for unit vectors k, v with these overlaps. Closed form or quadrature for
 * element-wise forms on slr and spiked, with parts and gradient; quadrature for softmax, hardmax and `bayes` (c = 0) on M
 * with m = 1 on slr and spiked, and where they are the posterior of max; simulation in the span otherwise.
 * `bayes` takes (lam, c) from the task where they are auto. */
FIN_API fin_status fin_risk(const fin_task *task, const fin_form *form,
                            const fin_form_settings *form_settings,
                            FIN_OR_NULL const fin_overlaps *overlaps,
                            const fin_risk_settings *settings, const fin_progress *progress,
                            fin_risk_report *report, fin_error *err);

/* The same by quadrature for your own element-wise activation w_l = f(chi_l): trapezoidal sums over
 * the normal law, doubled until they stand or `nodes` are used up; the error says how well they
 * stand. */
FIN_API fin_status fin_risk_activation(const fin_task *task, double (*f)(double chi, void *user),
                                       void *user, FIN_OR_NULL const fin_overlaps *overlaps,
                                       int64_t nodes, fin_risk_report *report, fin_error *err);

/* Best predictor linear in X: c sum_l X_l.v*. Closed form; the coefficient in *coefficient if not
 * NULL. */
FIN_API fin_estimate fin_risk_linear(const fin_task *task, FIN_OR_NULL double *coefficient);

/* Best linear attention c sum_l (1 + lam X_l.k) X_l.v: over c, lam, k and v. Closed form; on max quadrature and m = 1. *lam
 * (or NULL): its lam. */
FIN_API fin_status fin_risk_linear_attention(const fin_task *task, FIN_OR_NULL double *lam,
                                             fin_estimate *risk, fin_error *err);

/* Bayes risk E Var(Y | X), m = 1. By quadrature where tokens differ in their mean only (spiked,
 * max, slr with gamma = 1) and L has at most 64 values, else by simulation with the output
 * integrated out, in O(L) a sample whatever d. */
FIN_API fin_status fin_risk_bayes(const fin_task *task, const fin_risk_settings *settings,
                                  const fin_progress *progress, fin_estimate *risk, fin_error *err);

/* Risk minus Bayes risk, m = 1. Where the risk is exact, the difference; where it is simulated the mean of (f - E[Y|X])^2,
 * which it is: its standard error is that of the difference on common draws, and as small as the predictions are alike. Where
 * the form is the posterior it is 0 but for rounding, and its error no less than itself. */
FIN_API fin_status fin_risk_over_bayes(const fin_task *task, const fin_form *form,
                                       const fin_form_settings *form_settings,
                                       FIN_OR_NULL const fin_overlaps *overlaps,
                                       const fin_risk_settings *settings,
                                       const fin_progress *progress, fin_estimate *over,
                                       fin_error *err);

/* argmin over lam of the risk at k = k*, v = v* (the oracle), and that risk. Searches lam on a log
 * scale between these limits; an answer at a limit means that the risk still falls there. With
 * simulation, all lam see the same draws, and lam whose risk rare samples make up are left out (all: FIN_ERR_UNSUPPORTED;
 * next to the answer: it is `rare`). Method auto: where some lam makes the form the posterior (softmax on spiked and max),
 * it is that one, which is the best, without a search. */
#define FIN_LAM_LEAST 1e-8
#define FIN_LAM_MOST 1e4
FIN_API fin_status fin_lam_star(const fin_task *task, const fin_form *form,
                                const fin_form_settings *form_settings,
                                const fin_risk_settings *settings, const fin_progress *progress,
                                double *lam, fin_estimate *risk, fin_error *err);

/* The best of all k, v and lam: of unit vectors, whatever their overlaps, not only of the oracle's. Searched from many starts, the
 * same in every call (the oracle and the swapped pair k = +-v*, v = +-k* among them), by Newton steps with the exact gradient and Hessian, lam between the
 * limits above. Element-wise forms with a lam on slr and spiked. At finite d the oracle is not the best. */
typedef struct fin_best {
    fin_overlaps at;
    double lam;
    fin_estimate risk;
} fin_best;
FIN_API fin_status fin_risk_best(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *form_settings,
                                 const fin_progress *progress, fin_best *best, fin_error *err);

/* ---- the landscape on the spheres -------------------------------------------------------------- */

/* Gradient and Hessian of the risk as a function of unit vectors k, v of R^d. Every direction is
 * either in span(k, v, k*, v*), where there are at most six, or orthogonal to it, where the Hessian
 * has two eigenvalues, each as often as there are dimensions left. */
typedef struct fin_curvature {
    double gradient;    /* its norm */
    int span_count;     /* directions in the span: 6, fewer if d < 4 */
    double span[6];     /* eigenvalues, ascending */
    int64_t rest_count; /* d - 4, or 0 */
    double rest[2];     /* ascending, each rest_count times */
    int64_t negative;   /* eigenvalues below -tolerance, counted with multiplicity */
    int64_t flat;       /* eigenvalues within the tolerance of 0 */
    double tolerance;   /* what the differences behind the Hessian leave undecided */
} fin_curvature;

/* Element-wise forms on slr and spiked (those with an exact gradient). */
FIN_API fin_status fin_risk_curvature(const fin_task *task, const fin_form *form,
                                      const fin_form_settings *form_settings,
                                      FIN_OR_NULL const fin_overlaps *overlaps,
                                      fin_curvature *curvature, fin_error *err);
/* "minimum", "maximum", "saddle", or "degenerate" (no negative eigenvalue, but flat ones). */
FIN_API const char *fin_curvature_name(const fin_curvature *curvature, int64_t d);

typedef struct fin_stationary {
    fin_overlaps at;
    double risk;
    fin_curvature curvature;
} fin_stationary;

/* The stationary points on M (theta = eta = rho = 0; they are stationary in the whole space too, for
 * forms that keep M), sorted by risk: roots of functions of one variable, because the risk is affine
 * in nu there. *count: how many there are, at most `most` are written. */
FIN_API fin_status fin_stationary_points(const fin_task *task, const fin_form *form,
                                         const fin_form_settings *form_settings, int64_t most,
                                         fin_stationary *points, int64_t *count, fin_error *err);

/* Those of the whole space: the ones on M, and those that Newton steps find from `count` random starts and their mirror images, up to 1e-6 in the
 * overlaps. A search, no proof that there are no others. Sorted and counted as above; only the points that found room are known
 * when another is found. */
typedef struct fin_stationary_tries {
    int64_t count, seed;
} fin_stationary_tries;
FIN_API fin_status fin_stationary_search(const fin_task *task, const fin_form *form,
                                         const fin_form_settings *form_settings,
                                         const fin_stationary_tries *tries, int64_t most,
                                         fin_stationary *points, int64_t *count,
                                         const fin_progress *progress, fin_error *err);

/* ---- closed forms of the sequel -------------------------------------------------------------- */

/* Spiked task, m = 1, eps = 0, risk over Var(Y): best linear attention 1/(L/(L-1) + snr/L). */
FIN_API double fin_spiked_linear(double snr, int64_t L);
/* Softmax = Bayes: 1 - E[w_J], by quadrature, any L. */
FIN_API fin_status fin_spiked_bayes(double snr, int64_t L, fin_estimate *risk, fin_error *err);
/* Max task, softmax = Bayes: 1 - E[sum w^2], by quadrature; 0 at snr = inf. */
FIN_API fin_status fin_max_bayes(double snr, int64_t L, fin_estimate *risk, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
