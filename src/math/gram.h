/* Matrices of covariances (math/spd.h has what is done with a positive definite one).
 *
 * Keys come here divided by their scale(s) already, so that a scale for every column costs nothing.
 * All matrices are row-major with a leading dimension. Work is cut into tiles of a fixed size, each
 * tile is done by one thread with BLAS on one thread, and threads share tiles: no bit of a result
 * depends on the number of threads. */
#ifndef FINI_GRAM_H
#define FINI_GRAM_H

#include "base/base.h"
#include "finetti/math.h"

/* Between these two BLAS runs on the calling thread alone, whichever library it is; they nest, and
 * calls from several threads are counted. What the host had set comes back with the last one. */
void fini_blas_enter(void);
void fini_blas_leave(void);
/* Makes sure of the memory that OpenBLAS takes by itself, so that its calls cannot fail; once, where an
 * object is created or a computation begins that calls it. Costs nothing but the first time. */
fin_status fini_blas_ready(fin_error *err);
void fini_blas_expect(
    int threads); /* so many may call it at once, the calling one being one of them */

/* x W' by sgemm, row-major, of more than 100^3 products: a row that begins at a multiple of this depends on
 * nothing but itself, to the last bit, if the number of rows is a multiple as well. 0: nothing was found. */
fin_status fini_blas_step(int *step, fin_error *err);

/* ---- covariances (covariance*.c) ------------------------------------------------------------ */

/* Is k(a, b) > 0 for all a, b, so that its logarithm is one? (not linear, not polynomial) */
bool fini_covariance_positive(const fin_covariance *c);
/* k(a, a) for n rows. scale is not looked at, here and below. */
void fini_covariance_diagonal(const fin_covariance *c, int64_t d, int64_t n, const double *a,
                              double *out);
/* out[i * ld + j] = k(a_i, b_j), one thread: callers share out tiles. A value depends on its two
 * keys only, to the last bit, and k(a, b) is k(b, a); k(a, a) is exactly 1 for rbf and Matern. */
void fini_covariance_tile(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                          const double *b, double *out, int64_t ld);
/* The same, log k: for kernels that are positive. */
void fini_covariance_logs(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                          const double *b, double *out, int64_t ld);
/* All of k(a_i, a_j), j <= i, in parallel; what is above the diagonal is left alone. */
void fini_covariance_lower(const fin_covariance *c, int64_t d, int64_t n, const double *a,
                           double *out, int64_t ld);
/* d sum_ij G_ij k(a_i, b_j) / d log scale_c for every column c, added to out (d): a scale for all
 * is their sum. K: the tile of covariances itself. One thread. */
typedef struct fini_covariance_pairs {
    const fin_covariance *c;
    int64_t d, n, m;
    const double *a, *b; /* (n, d), (m, d) */
    const double *K, *G; /* (n, m) with leading dimension ld */
    int64_t ld;
} fini_covariance_pairs;
void fini_covariance_scales(const fini_covariance_pairs *p, double *out);

#endif
