/* Keys, settings and the covariance functions in long double, for the tests of covariances.
 * Included after cmocka.h. */
#ifndef TEST_MATH_COVARIANCE_H
#define TEST_MATH_COVARIANCE_H

#include "finetti/random.h"
#include "math/gram.h"

#include <math.h>
#include <stdlib.h>

enum { KERNELS = 6 };

static inline fin_covariance settings_of(int kernel)
{
    fin_covariance c;
    fin_settings_defaults(&fin_covariance_table, &c, sizeof c);
    c.kernel = kernel;
    c.degree = 3;
    c.offset = 0.75;
    return c;
}

static inline double *numbers(int64_t n)
{
    double *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    assert_non_null(x);
    return x;
}

static inline double *normals(uint64_t seed, int64_t n)
{
    double *x = numbers(n);
    fin_random r;
    fin_random_open(&r, seed, 3000, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = fin_random_normal(&r);
    return x;
}

/* k and its logarithm by the formulas of finetti/math.h. */
static inline long double exact(const fin_covariance *c, int64_t d, const long double *a,
                                const long double *b, long double *log_k)
{
    long double dot = 0, square = 0, log_value = 0;
    for (int64_t k = 0; k < d; k++) {
        dot += a[k] * b[k];
        square += (a[k] - b[k]) * (a[k] - b[k]);
    }
    long double s3 = sqrtl(3 * square), s5 = sqrtl(5 * square);
    switch (c->kernel) {
    case FIN_KERNEL_LINEAR:
        return dot;
    case FIN_KERNEL_POLYNOMIAL:
        return powl(c->offset + dot, (long double)c->degree);
    case FIN_KERNEL_EXPONENTIAL:
        log_value = dot;
        break;
    case FIN_KERNEL_RBF:
        log_value = -square / 2;
        break;
    case FIN_KERNEL_MATERN32:
        log_value = log1pl(s3) - s3;
        break;
    case FIN_KERNEL_MATERN52:
        log_value = log1pl(s5 + s5 * s5 / 3) - s5;
        break;
    }
    if (log_k)
        *log_k = log_value;
    return expl(log_value);
}

#endif
