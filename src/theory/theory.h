/* Private face of the theory module. */
#ifndef FINI_THEORY_H
#define FINI_THEORY_H

#include "attention/form.h"
#include "base/base.h"
#include "finetti/theory.h"
#include "task/task.h"

/* Mean of draw(sample) over `samples` samples with its standard error. `draw` runs in any thread
 * with that thread's scratch of `scratch` doubles; chunks of samples are merged in order, so the
 * result does not depend on the threads. `weight`: about how many tokens one sample costs. */
typedef struct fini_simulation {
    double (*draw)(const void *model, uint64_t sample, double *scratch);
    const void *model;
    int64_t samples, scratch;
    double weight;
    const char *what; /* for progress */
} fini_simulation;
fin_status fini_simulate(const fini_simulation *simulation, const fin_progress *progress,
                         fin_estimate *estimate, fin_error *err);

/* The form's settings (NULL: its defaults) with what is left to the task worked out, and looked at. */
fin_status fini_form_resolve(const fin_task *task, const fin_form *form,
                             const fin_form_settings *given, fin_form_settings *out,
                             fin_error *err);

/* The row of fin_risk_erf for a task that is settled. */
static inline fin_risk_point fini_risk_point(const fin_task_settings *s, double L_mean,
                                             double L_variance, const fin_overlaps *o, double lam)
{
    return (fin_risk_point){o->kappa, o->nu, o->theta, o->eta,       o->rho, lam,
                            s->gamma, s->mu, s->eps,   (double)s->m, L_mean, L_variance};
}

/* fin_risk_erf for any form with lanes. */
fin_status fini_risk_rows(const fin_form *form, int64_t n, const fin_risk_point *points,
                          fin_risk_value *values, fin_error *err);

/* Why the form has no exact risk on the task, in words; NULL if it has one. */
const char *fini_no_exact_risk(const fin_task *task, const fin_form *form);
/* For a form with moments that has an exact risk; settings and overlaps are not checked again. */
void fini_risk_closed(const fin_task *task, const fin_form *form, const fin_form_settings *fs,
                      const fin_overlaps *o, fin_risk_report *report);

/* Gaussian moments of the weight of a token and of its square (attention/form.h): [0] of a relevant
 * token, [1] of another. */
typedef struct fini_moments {
    double m[2][4], h[2][4];
} fini_moments;
/* The risk from them, with parts and gradient. */
void fini_risk_from_moments(const fin_task *task, const fin_overlaps *overlaps,
                            const fini_moments *moments, fin_risk_report *report);

/* The risk by simulation in the span of k, v, k*, v*. Form NULL: of the Bayes prediction, for tasks with odds. */
fin_status fini_risk_simulated(const fin_task *task, const fin_form *form,
                               const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                               const fin_risk_settings *settings, const fin_progress *progress,
                               fin_risk_report *report, fin_error *err);

/* The risk as a function of unit vectors k, v in the frame of k*, v* and two directions more (fewer below d = 4), with
 * gradient and Hessian on their tangents (curvature.c). */
enum { FINI_FRAME = 4, FINI_TANGENT = 2 * (FINI_FRAME - 1) };
typedef struct fini_spheres {
    int n, size; /* coordinates of k and of v; tangent directions, 2 (n - 1) */
    double k[FINI_FRAME], v[FINI_FRAME]; /* given */
    fin_overlaps at;
    double risk, gradient[FINI_TANGENT], hessian[FINI_TANGENT * FINI_TANGENT];
    double basis[2][FINI_FRAME - 1][FINI_FRAME]; /* tangents of k, of v */
} fini_spheres;
fin_status fini_spheres_look(const fin_task *task, const fin_form *form,
                             const fin_form_settings *settings, fini_spheres *s, fin_error *err);

/* Down from there to a local minimum, by Newton steps (beyond.c): not always that of the gradient's flow. */
fin_status fini_valley(const fin_task *task, const fin_form *form,
                       const fin_form_settings *settings, fin_overlaps *at, double *risk,
                       fin_error *err);

/* Whether no overlap differs by more. */
bool fini_same_place(const fin_overlaps *a, const fin_overlaps *b, double tolerance);

/* fin_lam_star at any overlaps. */
fin_status fini_lam_best(const fin_task *task, const fin_form *form,
                         const fin_form_settings *form_settings, const fin_overlaps *at,
                         const fin_risk_settings *settings, const fin_progress *progress,
                         double *lam, fin_estimate *risk, fin_error *err);

/* With G standard normal, K_j(t) = E[x^j exp(-x)] of x = e^(t + b G), and 1 - K_0 = `rest`, each without cancellation
 * (posterior.c). `lower`: how far below the usual nodes a mean has to begin. */
enum { FINI_SCORE_NODES = 430, FINI_SCORE_MORE = 2800 };
typedef struct fini_scores {
    double b;
    int nodes; /* x and its density, or G and its; e^x times it */
    double node[FINI_SCORE_NODES + FINI_SCORE_MORE], weight[FINI_SCORE_NODES + FINI_SCORE_MORE],
        more[FINI_SCORE_NODES + FINI_SCORE_MORE];
} fini_scores;
typedef struct fini_score_means {
    double K2, K1, K0, rest;
} fini_score_means;
void fini_scores_prepare(fini_scores *q, double b, double lower);
fini_score_means fini_scores_at(const fini_scores *q, double t);

/* Bayes error of the location at one length, spiked or max (posterior.c). */
typedef fin_status fini_at_length(double snr, int64_t L, fin_estimate *risk, fin_error *err);
/* Whether L has few enough values to average over one by one, and that average. */
bool fini_few_lengths(const fin_task *task);
fin_status fini_over_lengths(const fin_task *task, fini_at_length *value, double snr,
                             fin_estimate *mean, fin_error *err);

/* On M, one relevant token and no odds: E[1 - w_J], E[(1 - w_J)^2] and E[sum_{l != J} w_l^2] of softmax attention
 * (lam = inf: of hardmax), for few lengths. False if the quadrature does not settle. */
typedef struct fini_misses {
    fin_estimate once, squared, others;
} fini_misses;
bool fini_softmax_misses(const fin_task *task, double lam, double kappa, fini_misses *misses);

/* The risk by that; first why there is none, in words, or NULL. */
const char *fini_no_softmax_risk(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *settings, const fin_overlaps *o);
fin_status fini_risk_softmax(const fin_task *task, const fin_form *form,
                             const fin_form_settings *settings, const fin_overlaps *o,
                             fin_risk_report *report, fin_error *err);

/* Is softmax attention with a lam of its own choice the posterior? *lam: this one. It is the best there is. */
bool fini_lam_known(const fin_task *task, const fin_form *form, double *lam);
/* E[X_J.k*] where odds lam X.k* decide, for few lengths. */
fin_status fini_mean_score(const fin_task *task, fin_estimate *mean, fin_error *err);

/* E[(f - E[Y|X])^2] = risk - Bayes risk by simulation, for m = 1. */
fin_status fini_excess_simulated(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *form_settings,
                                 const fin_overlaps *overlaps, const fin_risk_settings *settings,
                                 const fin_progress *progress, fin_estimate *excess,
                                 fin_error *err);

#endif
