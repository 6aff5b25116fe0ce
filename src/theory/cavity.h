/* One bag of a ridge-penalised fit, in the fields that the others leave it (cavity.c; docs/learning.md). */
#ifndef FINI_CAVITY_H
#define FINI_CAVITY_H

#include <stdbool.h>
#include <stdint.h>

enum { FINI_CAVITY_K, FINI_CAVITY_V, FINI_CAVITY_FIELDS };

/* Minimise over h (2, L):   sum_l |h_kl - w_kl|^2 / 2 V_k + |h_vl - w_vl|^2 / 2 V_v + (y - f(h))^2 / 2. */
typedef struct fini_cavity {
    int64_t L;
    bool linear; /* f = sum_l (1 + h_kl) h_vl / L, else sum_l softmax(h_k)_l h_vl */
    double V[2], y;
    double *w[2], *h[2]; /* (L) each: fields; the minimum */
    double *slope[2];    /* (L) df/dh there; df/dh_v is the weight of the token */
    double rest, cost;   /* y - f and the minimum */
    /* second derivatives: a block for each token, and three columns that they share */
    double *block[3];   /* (L) of the blocks' inverses: kk, kv, vv */
    double *columns[2]; /* (L, 3) */
    double core[3][3];
    double *trial, *step, *down, *best; /* (L) */
} fini_cavity;

int64_t fini_cavity_scratch(int64_t L);
void fini_cavity_cut(fini_cavity *c, double *scratch);
/* To the global minimum, from w and y. */
void fini_cavity_minimise(fini_cavity *c);

/* Gauss's elimination of the n first columns of A (n, n + more); false if there is no pivot. The others become
 * A^-1 times themselves. */
bool fini_eliminate(int n, int more, double *A);

#endif
