/* Pairs of rows: inner products and squared distances of every row of one matrix with every row of
 * another, and what covariance functions make of them. One table for each set of instructions,
 * chosen together with the kernels (kernel.h).
 *
 * Why not BLAS: a value here depends on its two rows only, to the last bit, never on its place in a
 * tile or on the other rows; a.b and b.a are the same bits. And distances are sums of squared
 * differences: |a|^2 + |b|^2 - 2 a.b loses the digits of rows that are near each other or far from
 * the origin. dots and squares are the same bits in every table (fused sums in the order of the
 * columns). */
#ifndef FINI_PAIRS_H
#define FINI_PAIRS_H

#include <stdint.h>

typedef struct fini_pairs {
    /* out[i * ld + j] = factor * sum_k a_ik b_jk, and factor * sum_k (a_ik - b_jk)^2, for a: (n, d)
     * and b: (m, d). */
    void (*dots)(int64_t d, int64_t n, const double *a, int64_t m, const double *b, double factor,
                 double *out, int64_t ld);
    void (*squares)(int64_t d, int64_t n, const double *a, int64_t m, const double *b,
                    double factor, double *out, int64_t ld);

    /* y[i] = f(sqrt(x[i])); x == y is allowed. matern32: f(s) = (1 + s) e^-s, matern52:
     * f(s) = (1 + s + s^2/3) e^-s, decay: f(s) = e^-s. f(0) is 1 and f(infinity) 0, exactly. */
    void (*matern32)(int64_t n, const double *x, double *y);
    void (*matern52)(int64_t n, const double *x, double *y);
    void (*decay)(int64_t n, const double *x, double *y);
} fini_pairs;

extern const fini_pairs fini_pairs_ref, fini_pairs_avx2,
    fini_pairs_avx512; /* those that were built */

/* The table that belongs to fini_kernel_get(). */
const fini_pairs *fini_pairs_get(void);

#endif
