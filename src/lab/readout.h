/* Sequences with labels as rows of numbers that an encoder makes of them, and linear heads on them,
 * for the command `pretrain`. */
#ifndef FINI_LAB_READOUT_H
#define FINI_LAB_READOUT_H

#include "finetti/encoder_probe.h"
#include "lab/learner.h"
#include "lab/rate.h"

enum { FINI_READOUT_PROMPTS, FINI_READOUT_ANSWERS, FINI_READOUT_POOLED };

/* Sequences that heads are judged by and learn from: far from those of learning, its evaluations
 * and probes. */
#define FINI_READOUT_TEST (FIN_TEST_FIRST + (UINT64_C(1) << 46))
#define FINI_READOUT_TRAIN (FIN_TEST_FIRST + (UINT64_C(1) << 47))

typedef struct fini_readout {
    double *x, *y, *bayes; /* (n, columns), (n) labels, (n) E[y | tokens] */
    int64_t n, columns;
    double bayes_risk, variance; /* mean Var(y | tokens), and Var(y) */
} fini_readout;

/* Replaces what is there. corpus: supervised, with labels that are numbers. */
fin_status fini_readout_make(fini_readout *readout, int kind, const fin_encoder *encoder,
                             const fin_corpus *corpus, uint64_t first, int64_t n, fin_error *err);
void fini_readout_close(fini_readout *readout); /* zeros are fine */
/* A head from the first n rows of train: E (prediction - E[y | tokens])^2 on test. */
fin_status fini_readout_head(const fini_readout *train, int64_t n, const fini_readout *test,
                             double *excess, fin_error *err);

#endif
