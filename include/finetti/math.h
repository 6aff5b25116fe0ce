/* math: special functions, quadrature, one-dimensional search, covariance functions. Nothing here
 * knows of attention. */
#ifndef FINETTI_MATH_H
#define FINETTI_MATH_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owen's T(h, a) = 1/(2 pi) int_0^a exp(-h^2 (1+u^2)/2) / (1+u^2) du, for all real h and a
 * (infinite a allowed). Relative error below 1e-13 wherever the result is a normal double. NaN
 * gives NaN. */
FIN_API double fin_owens_t(double h, double a);

/* zeta(t, g) = E[erf(t + g G)^2], G standard normal, and its first three derivatives in t:
 * out[0..3]. Only |g| matters. Values are relatively accurate also where zeta is tiny. */
FIN_API void fin_zeta(double t, double g, double out[4]);
/* W(t, g) = Var[erf(t + g G)] = zeta - E[erf(t + g G)]^2, relatively accurate however small. */
FIN_API double fin_zeta_variance(double t, double g);

/* Gauss-Hermite nodes and weights for the standard normal: E[f(G)] ~ sum w_i f(x_i), by Golub and
 * Welsch (a symmetric tridiagonal eigenproblem, LAPACK). 1 <= n <= 1024; x ascending, sum w = 1. */
FIN_API fin_status fin_hermite(int n, double *x, double *w, fin_error *err);

/* Minimum of f on [a, b] by Brent's method (golden section and parabolas), to a relative tolerance
 * of about tol (0 <= tol < 1; at least sqrt of the machine epsilon). *x: where; *fx: the value
 * there. Both ends are tried too, and win a tie. A NaN of f counts as +infinity; FIN_ERR_NUMERIC if
 * f is nowhere below +infinity. */
FIN_API fin_status fin_brent(double (*f)(double x, void *user), void *user, double a, double b,
                             double tol, double *x, double *fx, fin_error *err);

/* Gauss-Legendre nodes and weights on [-1, 1]: int f ~ sum w_i f(x_i). 1 <= n <= 1024; x ascending.
 */
FIN_API fin_status fin_legendre(int n, double *x, double *w, fin_error *err);

/* log(I_nu(x) e^-x), modified Bessel function of the first kind, nu >= 0 (real), x >= 0: finite
 * where I_nu itself over- or underflows; -inf at x = 0 unless nu = 0. Error below 1e-14 times the
 * larger of 1 and the result. NaN for other arguments. */
FIN_API double fin_bessel_log(double nu, double x);
/* I_{nu+1}(x) / I_nu(x) in [0, 1]; relative error below 1e-14 for all nu and x, at a cost that does
 * not depend on them. NaN unless nu >= 0 and x >= 0. */
FIN_API double fin_bessel_ratio(double nu, double x);

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
