/* Small things that many files would write again. Sums go from the first to the last. */
#ifndef FINI_SMALL_H
#define FINI_SMALL_H

#include "finetti/base.h"

#include <stdbool.h>
#include <stdint.h>

static inline int64_t fini_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline double fini_dot_in_order(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The first place of ascending numbers that is not below x; n if all are. */
#define FINI_FIRST_FROM(name, type)                                                                \
    static inline int64_t name(int64_t n, const type *sorted, type x)                              \
    {                                                                                              \
        int64_t low = 0, high = n;                                                                 \
        while (low < high) {                                                                       \
            int64_t middle = low + (high - low) / 2;                                               \
            if (sorted[middle] < x)                                                                \
                low = middle + 1;                                                                  \
            else                                                                                   \
                high = middle;                                                                     \
        }                                                                                          \
        return low;                                                                                \
    }
FINI_FIRST_FROM(fini_first_from, double)
FINI_FIRST_FROM(fini_first_from_i64, int64_t)
FINI_FIRST_FROM(fini_first_from_i32, int32_t)

/* ---- sums over blocks, whose bits depend on the number of blocks alone ---------------------------- */

/* First of `total` things that is in block b: b total / blocks, without a product that could overflow. */
static inline int64_t fini_block_start(int64_t total, int64_t blocks, int64_t b)
{
    return blocks ? total / blocks * b + total % blocks * b / blocks : 0;
}

/* Blocks first .. end - 1 are those of a process: the first blocks % ranks have one more than the others. */
static inline void fini_block_share(int64_t blocks, int rank, int ranks, int64_t *first,
                                    int64_t *end)
{
    int64_t least = blocks / ranks, more = blocks % ranks;
    *first = rank * least + (rank < more ? rank : more);
    *end = *first + least + (rank < more);
}

/* Adds the rows of parts[blocks][n] into the first as a binary tree over their numbers; columns from .. to - 1. */
void fini_add_tree(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to);

/* ---- softmax -------------------------------------------------------------------------------------- */

/* x less its largest, which is returned, so that exponentials neither overflow nor all vanish; if that
 * is infinite, 0 there and -infinity elsewhere, so that those share the weight. NaN stays one. */
double fini_softmax_shift(int64_t n, double *x);
/* x <- softmax(x), by the kernels' exp or by libm's; returns the logarithm of the sum of exponentials
 * if it is asked for, else 0. */
double fini_softmax(int64_t n, double *x, bool logarithm);
double fini_softmax_libm(int64_t n, double *x, bool logarithm);

/* Eigenvalues of the symmetric matrix A (n, n), ascending, and, unless V is NULL, its eigenvectors as rows of V; A is spent.
 * By Jacobi's rotations: for a few dimensions, accurate, and without LAPACK's memory. */
void fini_eigen(int n, double *A, double *values, double *V);

/* Minimum of f on [a, b] by Brent's method (golden section and parabolas), to a relative tolerance
 * of about tol (0 <= tol < 1; at least sqrt of the machine epsilon). *x: where; *fx: the value
 * there. Both ends are tried too, and win a tie. A NaN of f counts as +infinity; FIN_ERR_NUMERIC if
 * f is nowhere below +infinity. */
fin_status fini_brent(double (*f)(double x, void *user), void *user, double a, double b, double tol,
                      double *x, double *fx, fin_error *err);
/* Gauss-Legendre nodes and weights on [-1, 1]: int f ~ sum w_i f(x_i). 1 <= n <= 1024; x ascending.
 */
fin_status fini_legendre(int n, double *x, double *w, fin_error *err);

#endif
