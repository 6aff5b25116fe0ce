/* What can be learnt of the task spiked from n = alpha d bags, d large (learning.c; docs/learning.md derives it). */
#ifndef FINI_LEARNING_H
#define FINI_LEARNING_H

#include "base/base.h"
#include "finetti/theory.h"

typedef struct fini_learning_task {
    double snr, eps, alpha;
    int64_t L;
} fini_learning_task;

/* The posterior means of k and v: squared cosines with k* and v*, and the risk of predicting with them. */
typedef struct fini_learnt {
    fin_estimate q_k, q_v, risk;
} fini_learnt;

typedef struct fini_learning {
    fini_learnt optimal;   /* of the fixed points the one that the posterior is at */
    fini_learnt other;     /* where the iteration from the other end stops, */
    bool differ, low_wins; /* if it is elsewhere; optimal is that of the low start */
    fin_estimate known;    /* Bayes risk with k*, v* known */
    fin_estimate linear;   /* best linear predictor learnt from the bags */
} fini_learning;

fin_status fini_learning_curve(const fini_learning_task *task, const fin_progress *progress,
                               fini_learning *out, fin_error *err);

/* Attention fitted to the bags with a ridge penalty, d/2 (penalty_k |k|^2 + penalty_v |v|^2) (learning_erm.c). */
typedef struct fini_erm_task {
    fini_learning_task bags;
    bool linear; /* weights (1 + score)/L, else softmax */
    bool best;   /* the penalties with the lowest risk; `penalty` does not count */
    double penalty[2];
    int64_t samples, seed;
} fini_erm_task;

typedef struct fini_erm {
    bool settled; /* false: risk, cosine and length are not to be told */
    bool differ;  /* another fixed point from the other end, with a higher minimum, */
    double other; /* and this risk */
    double penalty[2];
    double growth;   /* of small differences between runs; it must be well below 1 */
    double training; /* mean (y - f)^2 of the bags */
    fin_estimate risk, cosine[2], length[2]; /* k, v: with k*, v* */
} fini_erm;

fin_status fini_learning_erm(const fini_erm_task *task, const fin_progress *progress, fini_erm *out,
                             fin_error *err);

#endif
