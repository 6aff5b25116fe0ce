/* The reference for pairs of rows, in plain C, and the choice of a table. */
#include "kernel/pairs.h"

#include "kernel/kernel.h"

#include <math.h>

#define PAIRS(name, term)                                                                          \
    static void name(int64_t d, int64_t n, const double *a, int64_t m, const double *b,            \
                     double factor, double *out, int64_t ld)                                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < m; j++) {                                                      \
                double sum = 0;                                                                    \
                for (int64_t k = 0; k < d; k++) {                                                  \
                    double x = a[i * d + k], y = b[j * d + k];                                     \
                    sum = term;                                                                    \
                }                                                                                  \
                out[i * ld + j] = factor * sum;                                                    \
            }                                                                                      \
    }
PAIRS(dots, fma(x, y, sum))
PAIRS(squares, fma(x - y, x - y, sum))

/* e^-s is 0 from 746 on; the end of s keeps infinity times 0 away. A NaN stays one. */
static double root(double x)
{
    double s = sqrt(x);
    return s > 1000 ? 1000 : s;
}

static void matern32(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        double s = root(x[i]);
        y[i] = (1 + s) * exp(-s);
    }
}

static void matern52(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        double s = root(x[i]);
        y[i] = fma(s * s, 1. / 3, 1 + s) * exp(-s);
    }
}

static void decay(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(-root(x[i]));
}

const fini_pairs fini_pairs_ref = {dots, squares, matern32, matern52, decay};

const fini_pairs *fini_pairs_get(void)
{
    return fini_kernel_get()->pairs;
}
