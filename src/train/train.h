/* Private face of the train module: the object, and the row of the table of engines. */
#ifndef FINI_TRAIN_H
#define FINI_TRAIN_H

#include "attention/form.h"
#include "base/state.h"
#include "finetti/theory.h"
#include "finetti/train.h"
#include "kernel/kernel.h"
#include "task/task.h"

/* How runs advance. Runs are advanced in blocks of neighbours, a block by one thread at a time. */
typedef struct fini_engine {
    int block;       /* most runs advanced together */
    int64_t at_once; /* most steps between two looks at the state; 0: a whole run */
    /* Doubles of state of one run, and of scratch of one thread. */
    int64_t (*width)(const fin_train *t);
    int64_t (*scratch)(const fin_train *t);
    /* Objects of one thread beside the scratch; NULL: none. */
    fin_status (*open)(const fin_train *t, void **worker, fin_error *err);
    void (*close)(void *worker);
    /* State of a run at step 0. */
    fin_status (*start)(fin_train *t, int64_t run, fin_error *err);
    /* Runs first .. first+count-1 from step `from` to step `to`. A state that is not finite tells
     * that a run has diverged. */
    fin_status (*advance)(fin_train *t, void *worker, double *scratch, int64_t first, int count,
                          int64_t from, int64_t to, fin_error *err);
    /* Overlaps and lam of a run; not finite if it has diverged. */
    void (*read)(const fin_train *t, int64_t run, fin_overlaps *overlaps, double *lam);
} fini_engine;

extern const fini_engine fini_population_lanes, fini_population, fini_flow, fini_reduced_lanes,
    fini_reduced, fini_ambient;

struct fin_train {
    const fin_task *task;
    const fin_form *form;
    fin_form_settings form_settings; /* resolved; lam is what the schedule starts from */
    fin_train_settings settings;     /* resolved */
    fini_engine const *engine;
    bool has_lam;      /* the form has a lam */
    bool has_gradient; /* the exact risk has a gradient: a closed form or a quadrature */

    int64_t vectors; /* k, v and, with momentum, their velocities */
    int64_t frame;   /* coordinates of a vector: min(d, 2 + vectors), ambient: d */
    int64_t width;   /* doubles of state of a run */
    double *state;   /* (runs, width) */

    int64_t starts;            /* starting points given: 0, 1 or runs */
    fin_overlaps *start;       /* (starts) */
    double *start_k, *start_v; /* (starts, d), or NULL */
    int64_t lam_count, alpha_count;
    int64_t *lam_step, *alpha_step; /* piecewise schedules */
    double *lam_value, *alpha_value;

    int64_t logs;                              /* logged steps */
    int64_t *step;                             /* (logs), ascending; the last one is `steps` */
    double *log[FIN_LOG_COUNT];                /* (runs, logs) each, in the order of FIN_LOG_LIST */
    int64_t *at, *status;                      /* (runs): steps made; fin_run_status */
    double *converged_at, *stuck_at, *left_at; /* (runs) */
    double cost;                               /* of a step of a block, about: numbers drawn */
    struct fini_scheduler *scheduler;          /* at work on the runs, or NULL */
    fini_arena arena;
};

/* True if the caller wants to stop: for long steps to ask now and then, and then to return
 * FIN_ERR_CANCELLED. */
bool fini_stopped(fin_train *t);

/* What files have of it (arrays.c). */
extern const fini_state fini_train_state;
/* Every run at step 0, nothing logged. */
fin_status fini_begin(fin_train *t, fin_error *err);
/* Whether a step fits in memory. */
fin_status fini_reduced_check(const fin_train *t, fin_error *err);
fin_status fini_ambient_check(const fin_train *t, fin_error *err);

/* ---- schedules ------------------------------------------------------------------------------ */

/* lam and alpha of step t. */
double fini_lam_at(const fin_train *t, int64_t step);
double fini_alpha_at(const fin_train *t, int64_t step);
fin_status fini_schedule_check(const char *name, const fin_schedule *s, double lowest,
                               double highest, fin_error *err);
/* The first logged step after this one (at most `steps`), and how many there are from 0 on. */
int64_t fini_next_logged(const fin_train_settings *s, int64_t step);
int64_t fini_logged_count(const fin_train_settings *s);

/* ---- points --------------------------------------------------------------------------------- */

/* The number of the log of this step, or -1. */
int64_t fini_log_at(const fin_train *t, int64_t step);
/* Everything about one state: risk, gradient norm and so on. */
fin_status fini_point_of(const fin_train *t, int64_t run, int64_t step,
                         const fin_overlaps *overlaps, double lam, const fin_progress *progress,
                         fin_train_point *point, fin_error *err);
/* The exact risk with its gradient, for forms that have one; d_lam for erf only, else NaN. */
fin_status fini_exact_risk(const fin_train *t, const fin_overlaps *overlaps, double lam,
                           fin_risk_value *value, fin_error *err);
/* The gradient on the spheres, from the derivatives in the overlaps: gradient flow moves kappa by -kappa and
 * nu by -nu. */
typedef struct fini_sphere_gradient {
    double kappa, nu, norm; /* g_k.k*, g_v.v*, and the norm of (g_k, g_v) */
} fini_sphere_gradient;
fini_sphere_gradient fini_gradient_of(const fin_overlaps *overlaps, const double derivative[5]);
/* Writes log number i of a run and, unless the rule is flow (which sees them itself), events. */
fin_status fini_log_point(fin_train *t, int64_t run, int64_t i, const fin_overlaps *overlaps,
                          double lam, fin_error *err);

/* ---- starting points ------------------------------------------------------------------------ */

/* The overlaps of a run at step 0, as the settings ask. */
fin_status fini_start_overlaps(const fin_train *t, int64_t run, fin_overlaps *overlaps,
                               fin_error *err);
/* k and v in R^d (d doubles each). */
fin_status fini_start_vectors(const fin_train *t, int64_t run, double *k, double *v,
                              fin_error *err);
/* Coordinates of k and v in a frame that begins with k*, v*; n >= 2 numbers each. */
fin_status fini_basis_vectors(const fin_overlaps *overlaps, int64_t d, int64_t n, double *k,
                              double *v, fin_error *err);
/* `start` and `read` of engines whose state is t->vectors vectors in the frame, then lam. */
fin_status fini_basis_start(fin_train *t, int64_t run, fin_error *err);
void fini_basis_read(const fin_train *t, int64_t run, fin_overlaps *overlaps, double *lam);
/* The product of two unit vectors, which rounding may have left outside [-1, 1]; not a number stays
 * so. */
double fini_product(double x);
void fini_overlaps_of(int64_t n, const double *k, const double *v, fin_overlaps *overlaps);

/* ---- one step ------------------------------------------------------------------------------- */

typedef struct fini_rates {
    double alpha, momentum, penalty;
} fini_rates;
/* Projected step of k and v (n coordinates each) down the gradients gk, gv, which are overwritten;
 * mk, mv: velocities, or NULL. */
void fini_descend(int64_t n, double *k, double *v, double *mk, double *mv, double *gk, double *gv,
                  const fini_rates *rates);
double fini_dot(int64_t n, const double *a, const double *b);
/* A trained lam after a step: not negative, and not a number beyond FINI_LAM_MOST. */
double fini_next_lam(const fin_train *t, double lam, double slope);

int fini_train_array_count(const fin_train *train);
fin_status fini_train_get_array(const fin_train *train, int i, fin_train_array *out,
                                fin_error *err);
/* Continues from the arrays of a stopped object with the same settings, as fin_train_get_settings
 * has them (log_every worked out), except that `steps` may be larger: from here on everything has the same bytes as if it had not been stopped. The arrays are copied;
 * whatever is in them, the answer is a message or a valid state. */
fin_status fini_train_resume(fin_train *train, const fin_train_array *arrays, int count,
                             fin_error *err);

#endif
