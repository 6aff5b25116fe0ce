/* math: special functions, quadrature and one-dimensional search. Nothing here knows of attention.
 */
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

#ifdef __cplusplus
}
#endif
#endif
