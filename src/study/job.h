/* What the files of jobs share among themselves; the other files of the room know the table only. */
#ifndef FINI_STUDY_JOB_H
#define FINI_STUDY_JOB_H

#include "finetti/task_latent.h"
#include "finetti/theory.h"
#include "finetti/train.h"
#include "study/study.h"

extern const fini_job fini_job_risk, fini_job_train, fini_job_landscape, fini_job_law;
extern const fini_job fini_job_rate, fini_job_limit, fini_job_fit;
extern const fini_job fini_job_prior, fini_job_erm, fini_job_linear, fini_job_lipschitz;
extern const fini_job fini_job_stationary, fini_job_shift, fini_job_head;
extern const fini_job fini_job_encoder, fini_job_pretrain, fini_job_mil;
extern const fini_job fini_job_identity, fini_job_latent, fini_job_regret, fini_job_urn;

/* A seed whose draws have nothing to do with those of `seed`: a hash of it, in 53 bits. */
int64_t fini_seed_apart(int64_t seed);

/* "5:0.2,10:0.8": whole number and number, at most `most` of them. `what` names the setting and
 * `example` shows one in messages. "" has none. */
fin_status fini_parse_pieces(const char *text, const char *what, const char *example, int most,
                             int64_t *whole, double *number, int *count, fin_error *err);
enum { FINI_PIECES = 256 }; /* a word of 512 characters has no more */

/* Such a list in one form: shortest numbers, no blanks. It stays as it is if it cannot be read or
 * would not fit. */
void fini_tidy_pieces(char *text, size_t size);

/* Do task, form and lengths fit together? Makes the task, which is cheap without vectors. */
fin_status fini_model_check(const fini_model *model, fin_error *err);
void fini_model_tidy(fini_model *model);

/* A number of the theory room, with how it came about. */
fin_how fini_how_of(fin_method method);
void fini_result_estimate(fini_result *result, const char *name, const fin_estimate *estimate);

/* ---- families of exchangeable tokens (concepts.c, show.c) --------------------------------------- */

/* The table of the family of this name; a message with the names there are if it is none of them. */
fin_status fini_family_group(const char *name, fin_latent_settings *settings,
                             fini_group list[FINI_GROUPS], int *count, fin_error *err);
/* The tables P_z(r | c) of the family `concepts`, (concepts, covariates, outcomes), in fini_alloc
 * memory. */
fin_status fini_concept_tables(const fin_latent *latent, double **tables, fin_error *err);
/* "risk,bayes": bit i for names[i]. */
fin_status fini_show_parse(const char *text, const char *const *names, int count, unsigned *show,
                           fin_error *err);
/* Such a list in the order of the names, each once. It stays as it is if it cannot be read. */
void fini_show_tidy(char *text, size_t size, const char *const *names, int count);

/* ---- training, for the jobs that train (training.c) ------------------------------------------- */

typedef struct fini_train_values {
    fini_model model;
    char lam_schedule[512], alpha_schedule[512];
    fin_overlaps overlaps;
    fin_train_settings train;
} fini_train_values;

/* The tables of task, form, overlaps and train; values: fini_train_values, as jobs give them. */
fin_status fini_train_groups(void *values, fini_group groups[FINI_GROUPS], int *count,
                             fin_error *err);
/* Schedules, model, nothing that would be ignored, and no init = vectors, which a study has no file
 * for. */
fin_status fini_train_check(const void *values, fin_error *err);
void fini_train_tidy(void *values);
/* Makes the runs and takes them to their end. On failure both are NULL, else the caller destroys
 * the training and then the task. */
fin_status fini_train_finish(const fini_train_values *values, const fin_progress *progress,
                             fin_task **task, fin_train **train, fin_error *err);
/* (runs, logs) or (runs) numbers of the training by name; an empty one, data NULL, if there is no
 * such array. */
fin_train_array fini_train_named(const fin_train *train, const char *name);

#endif
