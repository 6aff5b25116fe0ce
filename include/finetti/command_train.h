/* command_train: a training as an object, made from settings as the command `train` takes them.
 *
 *     fin_training *training;
 *     fin_training_create(&training, pairs, count, NULL, &err);
 *     fin_train_run(fin_training_runs(training), steps, NULL, &err);
 *     fin_training_write(training, "runs.npz", &err);
 *     fin_training_result(training, NULL, &result, &err);
 *
 * The tool, studies and Python train through this object, so that a file written by one is read by the others, and has
 * the same bytes. The file is an NPZ archive: the arrays of the runs (fini_train_get_array), the true directions k_star
 * and v_star where they are vectors, and "settings", text as bytes with a line "name value" for every setting. What is
 * written depends on the runs alone and not on how they came about: runs that were stopped and resumed leave the same
 * bytes as those that were not. */
#ifndef FINETTI_COMMAND_TRAIN_H
#define FINETTI_COMMAND_TRAIN_H

#include "finetti/command.h"
#include "finetti/theory.h"
#include "finetti/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fin_training fin_training;

/* Where runs start, as far as settings do not say it. NULL, or zero fields: not given. Copied. */
typedef struct fin_training_start {
    int64_t count;                /* rows below: 1 (for all runs) or `runs` */
    const fin_overlaps *overlaps; /* (count), for init = overlaps, instead of the settings */
    const double *k, *v;          /* (count, d), for init = vectors */
    const double *k_star,
        *v_star; /* (d): the true directions, both or none, where the task is made in R^d: for init =
                                    * vectors and the ambient engine; else they do not matter */
    const char
        *path; /* instead of k, v, k_star, v_star: an NPZ file with these arrays, the last two if
                                    * it likes */
    const uint64_t *seed; /* of the task; NULL: that of the runs */
} fin_training_start;

/* The settings, for whoever wants to look at them before; there is no such command in the table, and it cannot be run.
 * They are those of `train`, which has no vectors to start from. */
FIN_API extern const fin_command fin_training_settings;

/* Makes the runs at step 0. Lists (lengths, lam_schedule, alpha_schedule) may be of any length here. */
FIN_API fin_status fin_training_create(fin_training **out, const fin_pair *pairs, int count,
                                       FIN_OR_NULL const fin_training_start *start, fin_error *err);
FIN_API void fin_training_destroy(fin_training *training); /* NULL is fine */

/* The arrays of a training: "settings", those of the runs, and k_star and v_star where there are such. Valid until the
 * next run or destroy. */
FIN_API int fin_training_array_count(const fin_training *training);
FIN_API fin_status fin_training_get_array(const fin_training *training, int i, fin_train_array *out,
                                          fin_error *err);
/* FIN_ERR_UNSUPPORTED for the ambient engine if the task has a seed of its own: the file has one seed. */
FIN_API fin_status fin_training_write(const fin_training *training, const char *path,
                                      fin_error *err);

/* What to go on from: a file, or its arrays in memory. */
typedef struct fin_training_source {
    const char *path;
    const fin_train_array *arrays; /* (count), if path is NULL */
    int count;
    const uint64_t *seed; /* of the task; NULL: that of the runs */
} fin_training_source;

/* Goes on with the settings that are there, except that `steps` may be larger; -1: as many as there are. Whatever is in
 * the arrays, the answer is a message or a valid state. */
FIN_API fin_status fin_training_resume(fin_training **out, const fin_training_source *source,
                                       int64_t steps, fin_error *err);

/* The runs, to take them on (fin_train_run) and to look at. */
FIN_API fin_train *fin_training_runs(fin_training *training);

/* What it was made from; borrowed. */
typedef struct fin_training_parts {
    const fin_task *task;
    const fin_form *form;
    const fin_form_settings *form_settings; /* every "auto" worked out */
    const fin_train *runs;
    const fin_train_settings *settings; /* the same */
    const fin_overlaps *overlaps;       /* the first starting point, or NULL: not init = overlaps */
    const char *lengths, *lam_schedule, *alpha_schedule; /* tidy lists; "": none */
    fin_schedule lam, alpha;                             /* the same as numbers */
    const char *version; /* of the library that wrote what it was resumed from; else of this one */
} fin_training_parts;
FIN_API fin_training_parts fin_training_get(const fin_training *training);

/* The outputs of the command `train`, from where the runs are now. The caller destroys *out. */
FIN_API fin_status fin_training_result(const fin_training *training, const fin_progress *progress,
                                       fin_result **out, fin_error *err);
/* FIN_ERR_NUMERIC, with a sentence about what helps, if every run has diverged. */
FIN_API fin_status fin_training_check(const fin_training *training, fin_error *err);
/* FIN_ERR_NUMERIC, with a step that works, if alpha times the largest curvature where runs are is above 2 (1 + momentum), so
 * that descent cannot come to rest there. FIN_OK if that is not known: no exact risk, or no plain descent. */
FIN_API fin_status fin_training_check_step(const fin_training *training, fin_error *err);
/* Curvature of the risk where a run is now, with the lam that it has there. span_count = 0 if it diverged. */
FIN_API fin_status fin_training_curvature(const fin_training *training, int64_t run,
                                          fin_curvature *out, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
