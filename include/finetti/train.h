/* train: how k and v move on their spheres.
 *
 *     k <- normalise(k - alpha (I - k k^T) g_k),   v <- normalise(v - alpha (I - v v^T) g_v)
 *
 * Three engines behind one object, for any number of runs:
 *
 *     population  g is the gradient of the exact risk. The dynamics closes on the five overlaps, so
 *                 a step costs O(1) whatever d is; also as gradient flow (an ODE with events) and
 *                 with a line search. Forms whose risk has a closed form or a quadrature.
 *     reduced     g is the gradient of the mean squared error of `batch` fresh samples. Exact in
 *                 law at a cost that does not depend on d: tokens are drawn in the span of
 *                 (k, v, k*, v*), and what is left of the two gradients is a Wishart matrix. All
 *                 forms, all tasks.
 *     ambient     the same with vectors and tokens in R^d: the check on the other two.
 *
 * Run r is a pure function of the settings, the seed and r (ambient: and of the task's seed, since it
 * uses the task's samples): it does not depend on the threads, on the other runs, or on having been
 * stopped and resumed. */
#ifndef FINETTI_TRAIN_H
#define FINETTI_TRAIN_H

#include "finetti/attention.h"
#include "finetti/base.h"
#include "finetti/task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_RUNS_MAX (INT64_C(1) << 24)
#define FIN_STEPS_MAX ((INT64_C(1) << 40) - 1)

#define FIN_TRAIN_FIELDS(F, C)                                                                     \
    C(engine, 0, "population|reduced|ambient",                                                     \
      "population: exact gradient, in overlaps; reduced: SGD at a cost that does not depend on "   \
      "d; ambient: SGD in R^d")                                                                    \
    C(rule, 0, "descent|armijo|flow",                                                              \
      "descent: steps alpha; armijo: a line search that begins with alpha; flow: an ODE, time = "  \
      "alpha * step (both need the population engine)")                                            \
    C(init, 0, "sphere|manifold|overlaps|vectors",                                                 \
      "sphere: k and v uniform; manifold: uniform on M (theta = eta = rho = 0); the others: as "   \
      "given")                                                                                     \
    F(double, alpha, 4e-3, 0, 1e300, "step size of k and v")                                       \
    F(double, decay, 0, 0, 1e6, "lam at step t is lam / (1 + decay t)")                            \
    F(double, alpha_lam, 0, 0, 1e300, "step size of lam, trained with k and v (1e-5, say); 0: no") \
    F(double, momentum, 0, 0, 0.999999, "heavy ball: the share of the last step that is kept")     \
    F(double, penalty, 0, 0, 1e12, "weight of (k.v)^2, added to the risk")                         \
    F(int64_t, batch, 5, 1, INT64_C(1) << 20, "fresh samples in a step of SGD")                    \
    F(int64_t, steps, 20000, 0, FIN_STEPS_MAX, "steps of a run")                                   \
    F(int64_t, runs, 30, 1, FIN_RUNS_MAX, "independent runs")                                      \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; run r is a function of the seed and r")        \
    F(int64_t, log_every, FIN_AUTO_INT, 1, FIN_STEPS_MAX,                                          \
      "steps between two logged ones; auto = steps/100")                                           \
    F(int64_t, log_decade, 0, 0, 1000,                                                             \
      "instead: this many logged steps per factor of ten; 0: evenly spaced")                       \
    F(int64_t, risk_samples, 4096, 2, INT64_C(1) << 40,                                            \
      "samples for a logged risk that has neither closed form nor quadrature")                     \
    F(double, converged, 0.9, 0, 1, "a run has converged if |kappa| and |nu| are above this")      \
    F(double, stuck, 1e-6, 0, 1e6,                                                                 \
      "a run that has not is stuck if its gradient is below this; a flow ends there")              \
    F(double, left, 0.01, 0, 2, "a run has left M if its distance to M is above this")             \
    C(dtype, 0, "float|double", "precision of the tokens (ambient)")

typedef struct fin_train_settings {
    FIN_TRAIN_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_train_settings;
FIN_API extern const fin_settings fin_train_table;

/* The choices above, in their order. */
enum { FIN_ENGINE_POPULATION, FIN_ENGINE_REDUCED, FIN_ENGINE_AMBIENT };
enum { FIN_RULE_DESCENT, FIN_RULE_ARMIJO, FIN_RULE_FLOW };
enum { FIN_INIT_SPHERE, FIN_INIT_MANIFOLD, FIN_INIT_OVERLAPS, FIN_INIT_VECTORS };

/* Piecewise constant: value[i] from step[i] on, until step[i+1]. step[0] = 0, ascending. Copied. */
typedef struct fin_schedule {
    int64_t count; /* 0: the value in the settings throughout */
    const int64_t *step;
    const double *value;
} fin_schedule;

/* What does not fit a table. NULL, or zero fields: not given. Copied. */
typedef struct fin_train_start {
    int64_t count;                /* starting points below: 1 (for all runs) or `runs` */
    const fin_overlaps *overlaps; /* (count), for init = overlaps */
    const double *k, *v;          /* (count, d), for init = vectors; normalised here */
    fin_schedule lam, alpha;      /* lam is divided by 1 + decay t too */
} fin_train_start;

typedef struct fin_train fin_train;

/* Makes the runs at step 0. The task is borrowed until destroy; init = vectors and the ambient
 * engine need one made with FIN_TASK_AMBIENT, and the ambient engine draws its samples: run r uses
 * samples r * 2^40 + step * batch + i. form_settings NULL: the form's defaults; lam is what
 * schedules start from, `bayes` takes (lam, c) from the task where they are auto. */
FIN_API fin_status fin_train_create(fin_train **train, const fin_task *task, const fin_form *form,
                                    const fin_form_settings *form_settings,
                                    const fin_train_settings *settings,
                                    FIN_OR_NULL const fin_train_start *start, fin_error *err);
FIN_API void fin_train_destroy(fin_train *train); /* NULL is fine */
/* Settings with every "auto" worked out. */
FIN_API const fin_train_settings *fin_train_get_settings(const fin_train *train);

/* Takes every run to step `until` (at most `steps`), or to where it diverges. When cancelled, each
 * run has stopped after some step; what is there can be read, saved, and run on. */
FIN_API fin_status fin_train_run(fin_train *train, int64_t until, const fin_progress *progress,
                                 fin_error *err);

/* ---- what came out -------------------------------------------------------------------------- */

#define FIN_RUN_STATUS_LIST(S)                                                                     \
    S(FIN_RUN_UNCONVERGED, "unconverged") /* none of the others */                                 \
    S(FIN_RUN_CONVERGED, "converged")     /* |kappa| and |nu| above `converged` */                 \
    S(FIN_RUN_STUCK, "stuck")             /* not converged, gradient below `stuck`, if known */    \
    S(FIN_RUN_DIVERGED, "diverged")       /* a step was not finite: stopped before it */

typedef enum fin_run_status {
#define FIN_RUN_STATUS_ENUM(name, text) name,
    FIN_RUN_STATUS_LIST(FIN_RUN_STATUS_ENUM)
#undef FIN_RUN_STATUS_ENUM
} fin_run_status;
FIN_API const char *fin_run_status_name(fin_run_status status);

/* One state of one run. risk_error: 0 if the risk is exact, else its standard error (or the error
 * of the quadrature); gradient: norm of the Riemannian gradient of the exact risk, NaN where the
 * risk is simulated. */
#define FIN_LOG_LIST(S)                                                                            \
    S(kappa, "k.k*")                                                                               \
    S(nu, "v.v*")                                                                                  \
    S(theta, "v.k*")                                                                               \
    S(eta, "k.v*")                                                                                 \
    S(rho, "k.v")                                                                                  \
    S(lam, "scale of the scores in the last step made; if it is trained, after it")                \
    S(risk, "E (Y - f)^2 at this lam, without the penalty")                                        \
    S(risk_error, "0: exact; else standard error")                                                 \
    S(excess, "risk - eps^2")                                                                      \
    S(distance, "to M: sqrt(theta^2 + eta^2 + rho^2)")                                             \
    S(gradient, "norm of the gradient on the spheres; nan if the risk is simulated")

typedef struct fin_train_point {
#define FIN_LOG_MEMBER(name, meaning) double name;
    FIN_LOG_LIST(FIN_LOG_MEMBER)
#undef FIN_LOG_MEMBER
} fin_train_point;
enum { FIN_LOG_COUNT = sizeof(fin_train_point) / sizeof(double) };

/* Where a run is now (for one that diverged: before it did). Steps are real numbers for a flow,
 * whose events are located in time; otherwise events are seen at logged steps. NaN: not met. */
typedef struct fin_run {
    fin_run_status status;
    int64_t step; /* steps made */
    fin_train_point now;
    double converged_at; /* first seen with |kappa| and |nu| above `converged` */
    double stuck_at;     /* first seen with a gradient below `stuck`, not converged */
    double left_at;      /* first seen farther than `left` from M */
} fin_run;
FIN_API fin_status fin_train_get_run(const fin_train *train, int64_t run, fin_run *out,
                                     fin_error *err);

/* Arrays of the results and of the state: what a file holds. Names: "step" (logs), the names of
 * FIN_LOG_LIST (runs, logs), "at", "status", "converged_at", "stuck_at", "left_at" (runs), and
 * "state" (runs, width), private. Logs not reached are NaN. Valid until the next run or destroy. */
typedef struct fin_train_array {
    const char *name, *meaning;
    fin_dtype dtype;
    int ndim;
    int64_t shape[2];
    const void *data;
} fin_train_array;

/* The same by name; data is NULL if there is none. */
FIN_API fin_train_array fin_train_named(const fin_train *train, const char *name);

#ifdef __cplusplus
}
#endif
#endif
