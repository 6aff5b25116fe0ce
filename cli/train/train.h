/* train: what the files of `finetti train` share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"
#include "stats.h"

/* What is asked for; in the order of the lines of a file. */
typedef struct train_asked {
    char task[32], form[32], lengths[512], lam_schedule[512], alpha_schedule[512];
    fin_form_settings form_settings;
    fin_task_settings task_settings;
    fin_overlaps overlaps;
    fin_train_settings train;
    cli_pause_settings pause;
} train_asked;
static inline train_asked *train_get(cli_args *args)
{
    return (void *)args->values;
}

/* One training: the runs, the task they borrow, and the settings both were made from. */
typedef struct training {
    cli_args *args; /* borrowed */
    fin_task *task;
    fin_train *train;
    struct {
        int64_t count;
        int64_t *step;
        double *value;
    } lam, alpha;  /* schedules; count = 0: none */
    fin_npz *file; /* of --start or --resume */
    char *text;    /* its settings, cut into words that args points into */
} training;

/* Makes the runs as args says (--start included), at step 0. Close in any case. */
fin_status training_open(training *t, cli_args *args, fin_error *err);
/* The same from a file that training_write wrote: all settings but --steps come from there. */
fin_status training_resume(training *t, cli_args *args, const char *path, fin_error *err);
void training_close(training *t);

/* An array of the runs by name; there must be one. */
fin_train_array training_array(const training *t, const char *name);

/* Everything that is needed to look at the runs and to go on with them, as NPZ. */
fin_status training_write(const training *t, const char *path, fin_error *err);
/* Whether there could be such a file. */
fin_status training_try(const char *path, fin_error *err);

/* Steps of the above. The arrays of --start go into *start (memory owned by the caller: free k and
 * v) and, if the file has them, k* and v* into the task. */
fin_status training_read_start(training *t, const char *path, fin_train_start *start,
                               fin_error *err);
/* Opens t->file and replaces every setting in args by the file's. */
fin_status training_read_settings(training *t, const char *path, fin_error *err);
fin_status training_read_directions(training *t, const char *path, fin_error *err);
fin_status training_read_state(training *t, fin_error *err);

/* ---- what came out -------------------------------------------------------------------------- */

/*   name     title      value of a fin_train_point p */
#define TRAIN_QUANTITY_LIST(Q)                                                                     \
    Q(abs_kappa, "|kappa|", fabs(p->kappa))                                                        \
    Q(abs_nu, "|nu|", fabs(p->nu))                                                                 \
    Q(risk, "risk", p->risk)                                                                       \
    Q(excess, "excess risk", p->excess)                                                            \
    Q(distance, "distance to M", p->distance)                                                      \
    Q(lam, "lam", p->lam)
enum {
#define TRAIN_QUANTITY_PLACE(name, title, value) TRAIN_##name,
    TRAIN_QUANTITY_LIST(TRAIN_QUANTITY_PLACE)
#undef TRAIN_QUANTITY_PLACE
        TRAIN_QUANTITIES,
    TRAIN_QUANTILES = 5,
    TRAIN_STATUSES = FIN_RUN_DIVERGED + 1
};
extern const double train_quantiles[TRAIN_QUANTILES];

typedef struct train_summary {
    int64_t runs, count[TRAIN_STATUSES];
    stats_interval converged;                           /* 95 % interval of the share */
    double quantile[TRAIN_QUANTITIES][TRAIN_QUANTILES]; /* of runs that did not diverge */
    int64_t least_step, most_step;                      /* made by such runs */
    int64_t first_diverged, first_step; /* the run that diverged first, and its last good step */
    fin_estimate risk; /* how the risks were obtained; the error is the largest of them */
    double farthest;   /* largest distance to M at any logged step of any run */
} train_summary;

fin_status train_summarise(const training *t, train_summary *summary, fin_error *err);
/* Curvature at the end of every run; *curvature has one per run, for the caller to free. Runs that
 * diverged have span_count = 0. */
fin_status train_curvature(const training *t, fin_curvature **curvature, fin_error *err);

void train_print_head(const training *t);
void train_print_summary(const train_summary *summary);
void train_print_curvature(const training *t, const fin_curvature *curvature);
json_t *train_json_settings(const training *t);
json_t *train_json_summary(const train_summary *summary);
/* curvature may be NULL. */
json_t *train_json_runs(const training *t, const fin_curvature *curvature);
json_t *train_json_curvature(const fin_curvature *curvature, int64_t d);

#endif
