/* What the commands share that train a transformer encoder (encoder, pretrain): where sequences come
 * from, the encoder, and learning, as one group of settings and one object. */
#ifndef FINI_LAB_LEARNER_H
#define FINI_LAB_LEARNER_H

#include "finetti/encoder_learn.h"
#include "command/command.h"

typedef struct fini_learner_values {
    char family[32]; /* a family of exchangeable tokens, or a task of single-location regression */
    fin_latent_settings latent;
    fin_task_settings task;
    fin_encoder_settings encoder;
    fin_corpus_settings corpus;
    fin_learn_settings learn;
} fini_learner_values;
#define FINI_LEARNER_WORD(type, member, meaning,                                                   \
                          ...) /* and what else the word says: also, suits */                      \
    {                                                                                              \
        FIN_WORD_OF("family", type, member.family, "concept", meaning), __VA_ARGS__                \
    }

/* Appends the tables of family or task, encoder, corpus and learning. */
fin_status fini_learner_groups(fini_learner_values *values, fin_group list[FIN_GROUPS], int *count,
                               fin_error *err);
/* Do they fit together? Makes all of it, which is cheap but for large tables. */
fin_status fini_learner_check(const fini_learner_values *values, fin_error *err);

typedef struct fini_learner {
    fin_latent *latent;
    fin_task *task;
    fin_corpus *corpus;
    fin_encoder *encoder;
    fin_learn *learn;
} fini_learner;

/* Everything is drawn from the seed of learning. */
fin_status fini_learner_open(fini_learner *learner, const fini_learner_values *values,
                             fin_error *err);
void fini_learner_close(fini_learner *learner); /* zeros are fine */
/* Learns to the end. `what` is what the progress says. */
fin_status fini_learner_run(fin_learn *learn, const char *what, const fin_progress *progress,
                            fin_error *err);

#endif
