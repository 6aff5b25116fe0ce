/* Kernel ridge attention of one head of one sequence (cme.c): m queries, L keys and values. */
#ifndef FINI_CME_H
#define FINI_CME_H

#include "base/base.h"

/* All matrices are dense. A, W, B: scratch (d, d). */
typedef struct fini_cme {
    int64_t m, L, d;
    double ridge;
    double *Q, *K, *V;    /* (m, d), (L, d), (L, d) */
    double *O;            /* (m, d): answers, or on the way back their gradient */
    double *dQ, *dK, *dV; /* written by the way back */
    double *A, *W, *B;
} fini_cme;

void fini_cme_forward(fini_cme *o);
void fini_cme_weights(fini_cme *o, int64_t i, double *weights);
double fini_cme_backward(fini_cme *o); /* returns d/d ridge */

#endif
