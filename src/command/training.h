/* training: what the commands that train share, and the inside of a fin_training. */
#ifndef FINI_TRAINING_H
#define FINI_TRAINING_H

#include "command/command.h"
#include "finetti/command_train.h"

enum { FINI_SCHEDULE = 2048 };
typedef struct fini_train_values {
    fini_model model;
    char lam_schedule[FINI_SCHEDULE], alpha_schedule[FINI_SCHEDULE];
    fin_overlaps overlaps;
    fin_train_settings train;
} fini_train_values;

/* The tables of task, form, overlaps and train; values: fini_train_values, as commands give them. */
fin_status fini_train_groups(void *values, fin_group groups[FIN_GROUPS], int *count,
                             fin_error *err);
extern const fin_instead fini_train_instead[];
extern const fin_command fini_command_train;
/* Everything that creation would say, and no init = vectors, which a command has no vectors for. */
fin_status fini_train_check(const void *values, fin_error *err);

/* ---- the object (training.c) ---------------------------------------------------------------------- */

/* Settings that are lists of pairs, and may be longer than a word of a command. */
enum { FINI_LENGTHS, FINI_LAM, FINI_ALPHA, FINI_LISTS };
extern const char *const fini_list_names[FINI_LISTS];
typedef struct fini_list {
    char *text; /* tidy; one block with the numbers */
    int count;
    int64_t *whole;
    double *number;
} fini_list;

struct fin_training {
    fini_train_values values; /* its lists do not count, those below do */
    fini_list lists[FINI_LISTS];
    uint64_t seed; /* of the task */
    char version[FINI_SHOWN];
    char *text; /* the settings, as files have them */
    size_t size;
    fin_task *task;
    fin_train *train;
};

/* A training without runs, from pairs or from settings; makes no check of what goes together. */
fin_status fini_training_from_pairs(fin_training **out, const fin_pair *pairs, int count,
                                    fin_error *err);
fin_status fini_training_from_values(fin_training **out, const fini_train_values *values,
                                     fin_error *err);
/* Then its task, and its runs (start: vectors, or NULL). */
fin_status fini_training_make_task(fin_training *t, const uint64_t *seed, fin_error *err);
fin_status fini_training_make_runs(fin_training *t, const fin_training_start *start,
                                   fin_error *err);
/* The lines of its settings, once there are runs (training_file.c). */
fin_status fini_training_describe(fin_training *t, fin_error *err);
/* Vectors from a file, in memory from fini_alloc (also after a failure), and its k_star and v_star into the task
 * (training_file.c). */
typedef struct fini_vectors {
    int64_t count;
    double *k, *v;
} fini_vectors;
fin_status fini_training_read_start(fin_training *t, const char *path, fini_vectors *out,
                                    fin_error *err);

/* Where runs ended, into the result (training_ends.c). */
fin_status fini_training_places(const fin_training *t, const fin_run *ends, fin_result *result,
                                const fin_progress *progress, fin_error *err);

/* All of it at once, to the end of the runs: for commands. */
fin_status fini_training_finish(fin_training **out, const fini_train_values *values,
                                const fin_progress *progress, fin_error *err);

#endif
