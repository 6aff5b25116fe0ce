/* The hot loops behind one table: plain C (the reference), AVX2 and AVX-512, chosen once at run
 * time by the CPU or by FINETTI_KERNEL=ref|avx2|avx512.
 *
 * What the kernels promise each other:
 *   - draws (normals) are the same bits in every kernel, on every CPU;
 *   - sums over the dimension are taken in 16 (float) or 8 (double) interleaved partial sums and
 *     folded in halves, whatever the register width, so projections are the same bits too;
 *   - weights of tokens and covariances agree to a few units in the last place of their largest
 *     term; a number depends on its own row and column, never on what else is computed with it;
 *   - exp, erf and the risks go through libm in the reference and through SLEEF in the others:
 *     they agree to a few units in the last place, and each value depends on its own argument only,
 *     never on its place in the array. */
#ifndef FINI_KERNEL_H
#define FINI_KERNEL_H

#include "base/constants.h"

#include <stdint.h>

enum {
    FINI_NORMALS_F32 = 64, /* normals of one group: 16 Philox blocks, four each */
    FINI_NORMALS_F64 = 16, /* 8 blocks, two each */
    FINI_LANES_F32 = 16,   /* partial sums of a float dot product */
    FINI_LANES_F64 = 8,
    FINI_RISK_IN = 12,
    FINI_RISK_OUT = 10,
    FINI_GATHER = 16 /* tokens summed in the tokens' precision before they are added in double */
};

/* A stream of random numbers for one sample: Philox key = seed, counter = (block, stream, sample).
 */
typedef struct fini_key {
    uint64_t seed, sample;
    uint32_t stream;
} fini_key;

/* Runs that descend side by side, and the numbers of one: kappa, nu, theta, eta, rho, lam. */
enum { FINI_RUNS = 16, FINI_STATE = 6 };

/* Descent on the exact risk. */
typedef struct fini_population_model {
    double gamma, mu, m, L_mean, L_var, penalty;
    int runs; /* lanes that matter, the first ones; 0: all. Others may or may not advance */
} fini_population_model;

/* Online SGD on fresh samples, in law (reduced_body.h): one relevant token of L, d >= FINI_D_LEAST.
 * Run number r draws from samples r * 2^40 + step of the stream. */
enum { FINI_D_LEAST = 8 };
#define FINI_LAM_MOST 1e6 /* a lam that is trained beyond this has diverged: not a number */
typedef struct fini_reduction {
    uint64_t seed, run; /* run: number of the first one */
    uint32_t stream;
    int64_t d, L, batch;
    double gamma, mu, eps, penalty;
    double alpha_lam; /* > 0: lam is trained, and the schedule is not looked at */
    int runs;         /* as above */
    int H, P, shared; /* of heads_body.h: heads, pairs, one noise for all relevant tokens */
} fini_reduction;

/* The same with a sum of H heads on P pairs, d >= 4H + 2P; penalty and alpha_lam are not looked at. A
 * run is the products of k_1, v_1, k_2, ... with each other (row i(i-1)/2 + j, j < i), then of each of
 * them with v*_1 .. v*_P, k*_1 .. k*_P. */
enum {
    FINI_HEADS = 4,
    FINI_HEADS_STATE = FINI_HEADS * (2 * FINI_HEADS - 1) + 4 * FINI_HEADS * FINI_HEADS
};
#define FINI_HEADS_ROWS(H, P) ((H) * (2 * (H)-1) + 4 * (H) * (P))

/* ---- queries and keys ----------------------------------------------------------------------- */

/* What is made of a query q and a key k: u = q.k (the first three) or u = -|q - k|^2 / 2, and
 *
 *     linear  u      polynomial  (offset + u)^degree      exponential  exp(u)      rbf  exp(u)
 *     matern32  (1 + t) exp(-t), t = sqrt(-6 u)
 *     matern52  (1 + t + t^2/3) exp(-t), t = sqrt(-10 u)
 *
 * Differences are taken before they are squared: expanding the square would lose as many digits as
 * the keys' distance from the origin has more than their distance from each other. A square beyond
 * FINI_FARTHEST counts as that, so that infinity never meets infinity, or 0, and weights relative
 * to the farthest (matern52: t^2/3) leave room for values. */
enum {
    FINI_SCORE_LINEAR,
    FINI_SCORE_POLYNOMIAL,
    FINI_SCORE_EXPONENTIAL,
    FINI_SCORE_RBF,
    FINI_SCORE_MATERN32,
    FINI_SCORE_MATERN52
};
#define FINI_FARTHEST_F32 0x1p80f
#define FINI_FARTHEST_F64 0x1p600
typedef struct fini_score {
    int kind;
    int64_t degree;
    double offset;
} fini_score;

/* Keys are packed in panels, number c of FINI_PANEL keys side by side, so that a register is filled
 * by one load. FINI_TILE keys are packed at a time. */
enum { FINI_PANEL_F32 = 16, FINI_PANEL_F64 = 8, FINI_TILE = 128 };

/* A block of queries attends to one more tile of keys. q and keys are divided by their scale.
 * out, sum: sum_j w_j v_j and sum_j w_j over the tiles so far, all relative to the largest
 * exponent so far, `top`. Begin with out = sum = 0 and top = -infinity. Not for linear and
 * polynomial, which have no exponent and may sum to 0. */
typedef struct fini_attend_tile {
    fini_score score;
    int64_t queries, keys, dk, dv;
    const void *q;      /* (queries, dk) */
    const void *panels; /* of the keys, at most FINI_TILE */
    const void *v;      /* (keys, dv) */
    void *out;          /* (queries, dv) */
    double *top, *sum;  /* (queries) */
} fini_attend_tile;

/* value = times * k(q_i, k_j) + plus, slope = times * dk/du. With top and sum of fini_attend_tile,
 * k is k exp(-top_i) / sum_i, the weight of a softmax. */
typedef struct fini_covariances {
    fini_score score;
    int64_t queries, keys, dk, ld;
    const double *q, *panels; /* as above; any number of keys */
    double times, plus;
    const double *top, *sum; /* (queries), or NULL */
    double *value, *slope;   /* (queries, ld); slope may be NULL */
} fini_covariances;

typedef struct fini_kernel {
    const char *name;
    /* The other tables of this instruction set. */
    const struct fini_pairs *pairs;
    const struct fini_rows *rows;
    const struct fini_layers_f32 *layers;

    /* out[groups * 64] (or * 16): the normals number 64 * first, ... of this key. */
    void (*normals_f32)(fini_key key, uint32_t first, int64_t groups, float *out);
    void (*normals_f64)(fini_key key, uint32_t first, int64_t groups, double *out);

    /* y[i] = f(x[i]); x == y is allowed. */
    void (*exp)(int64_t n, const double *x, double *y);
    void (*log1p)(int64_t n, const double *x, double *y);
    void (*erf)(int64_t n, const double *x, double *y);
    void (*gauss)(int64_t n, const double *x, double *y); /* exp(-x^2) */

    /* chi[r] = X_r.k, z[r] = X_r.v for `rows` rows of d numbers (X any alignment). k and v are
     * zero-padded to a multiple of the lanes. */
    void (*project_f32)(int64_t rows, int64_t d, const float *X, const float *k, const float *v,
                        double *chi, double *z);
    void (*project_f64)(int64_t rows, int64_t d, const double *X, const double *k, const double *v,
                        double *chi, double *z);
    /* The same with |X_r|^2, everything accumulated in double (for posteriors). */
    void (*project_norm_f32)(int64_t rows, int64_t d, const float *X, const double *k,
                             const double *v, double *chi, double *z, double *norm2);
    void (*project_norm_f64)(int64_t rows, int64_t d, const double *X, const double *k,
                             const double *v, double *chi, double *z, double *norm2);

    /* gk[c] += sum_r p[r] X[r][c], gv[c] += sum_r q[r] X[r][c] for columns c in [from, to), at most
     * FINI_GATHER rows: summed in the tokens' precision in row order, then added in double. */
    void (*gather_f32)(int64_t rows, int64_t d, int64_t from, int64_t to, const float *X,
                       const double *p, const double *q, double *gk, double *gv);
    void (*gather_f64)(int64_t rows, int64_t d, int64_t from, int64_t to, const double *X,
                       const double *p, const double *q, double *gk, double *gv);

    /* panels[(j / P * dk + c) * P + j % P] = (k[j][c] - origin[c]) * times, P = FINI_PANEL; a last
     * panel that is not full repeats the first key. origin may be NULL: 0. */
    void (*pack_f32)(int64_t dk, int64_t keys, const float *k, const float *origin, double times,
                     float *panels);
    void (*pack_f64)(int64_t dk, int64_t keys, const double *k, const double *origin, double times,
                     double *panels);
    void (*attend_f32)(const fini_attend_tile *a);
    void (*attend_f64)(const fini_attend_tile *a);
    void (*covariances)(const fini_covariances *a);

    /* A = U'U for a positive definite A of a size that a core's own cache holds: its upper
     * triangle becomes U (what is below is not kept). -1, or the row where A stops being
     * positive definite. Every row must have room for FINI_PANEL_F64 more numbers than it has,
     * which are overwritten; so below. */
    int64_t (*factor)(int64_t n, double *A, int64_t ld);
    /* X <- U'^-1 X and X <- U^-1 X, X: (n, columns). */
    void (*forward)(int64_t n, const double *U, int64_t ld, int64_t columns, double *X,
                    int64_t ldx);
    void (*back)(int64_t n, const double *U, int64_t ld, int64_t columns, double *X, int64_t ldx);

    /* Exact risk of the erf predictor and its gradient, a row each: kappa nu theta eta rho lam
     * gamma mu eps m E[L] Var(L) -> signal noise bias risk, five derivatives and the one in lam
     * (erf_risk_body.h). */
    void (*erf_risk)(int64_t n, const double points[][FINI_RISK_IN],
                     double values[][FINI_RISK_OUT]);

    /* `steps` steps of FINI_RUNS runs of the erf predictor; lam[t], alpha[t] belong to step t. The
     * same bits in every kernel. state[5] is the last lam used. */
    void (*population)(const fini_population_model *p, int64_t steps, const double *lam,
                       const double *alpha, double state[][FINI_RUNS]);
    void (*reduced)(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                    const double *alpha, double state[][FINI_RUNS]);
    void (*heads)(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                  const double *alpha, double state[][FINI_RUNS]);
} fini_kernel;

/* Four float normals: block number `block` of this key. */
void fini_normals_block(fini_key key, uint32_t block, float out[4]);
/* Marsaglia and Tsang's v, scale * v being Gamma(scale + 1/3), by as many tries as it takes; every
 * try takes a block: `block`, block - 2, ... */
double fini_gamma_retry(fini_key key, uint32_t block, double scale);

extern const fini_kernel fini_kernel_ref, fini_kernel_avx2,
    fini_kernel_avx512; /* those that were built */

/* The kernels in use. Chosen at the first call, or forced. */
const fini_kernel *fini_kernel_get(void);
/* For tests: NULL restores the automatic choice. Returns 0 if this machine has no such kernels. */
int fini_kernel_force(const char *name);

#endif
