/* math: special functions, quadrature, one-dimensional search, covariance functions. Nothing here
 * knows of attention. */
#ifndef FINETTI_MATH_H
#define FINETTI_MATH_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ends of the 95 % interval (Wilson) of a probability, `count` of n times seen; 0 and 1 for n = 0. */
FIN_API void fin_wilson(double count, int64_t n, FIN_OR_NULL double *low, FIN_OR_NULL double *high);

/* ---- covariance functions ---------------------------------------------------------------------- */

/* k(a, b) = phi(a).phi(b) of two keys, with a and b divided by `scale` first and r = |a - b|:
 *
 *     linear       a.b
 *     polynomial   (offset + a.b)^degree
 *     exponential  exp(a.b)                      softmax attention's, scale^2 its temperature
 *     rbf          exp(-r^2 / 2)
 *     matern32     (1 + sqrt(3) r) exp(-sqrt(3) r)
 *     matern52     (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)  */
#define FIN_COVARIANCE_FIELDS(F, C)                                                                \
    C(kernel, 3, "linear|polynomial|exponential|rbf|matern32|matern52",                            \
      "covariance function of two keys")                                                           \
    F(double, scale, 1, 1e-100, 1e100, "length scale: keys are divided by it")                     \
    F(int64_t, degree, 2, 1, 32, "degree of the polynomial kernel")                                \
    F(double, offset, 1, 0, 1e100, "constant of the polynomial kernel")

enum {
    FIN_KERNEL_LINEAR,
    FIN_KERNEL_POLYNOMIAL,
    FIN_KERNEL_EXPONENTIAL,
    FIN_KERNEL_RBF,
    FIN_KERNEL_MATERN32,
    FIN_KERNEL_MATERN52
};

typedef struct fin_covariance {
    FIN_COVARIANCE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_covariance;
FIN_API extern const fin_settings fin_covariance_table;

/* out: (n, m), out[i][j] = k(a_i, b_j) for rows a: (n, d) and b: (m, d). Symmetric to the last bit
 * if a == b. Numbers that are not finite (the exponential of a large product) are refused. */
FIN_API fin_status fin_covariance_matrix(const fin_covariance *covariance, int64_t d, int64_t n,
                                         const double *a, int64_t m, const double *b, double *out,
                                         fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
