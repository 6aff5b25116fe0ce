/* Private face of the math module: the integral below Owen's T and below the variance of an erf. */
#ifndef FINI_OWEN_H
#define FINI_OWEN_H

/* int_from^{from+length} exp(-q (u^2 - from^2)) / (1 + u^2) du for q >= 0, 0 <= from, length and
 * from + length <= 2, or any length, also infinite, if it is cut: q length (2 from + length) > 37.
 * The integrand is 1/(1 + from^2) at its left end and falls, so the value never underflows; the
 * caller multiplies by the exponential that does. Relative error a few units in the last place. */
double fini_owen_integral(double q, double from, double length);

/* Owen's T(h, a) = 1/(2 pi) int_0^a exp(-h^2 (1+u^2)/2) / (1+u^2) du, for all real h and a
 * (infinite a allowed). Relative error below 1e-13 wherever the result is a normal double. NaN
 * gives NaN. */
double fini_owens_t(double h, double a);
/* zeta(t, g) = E[erf(t + g G)^2], G standard normal, and its first three derivatives in t:
 * out[0..3]. Only |g| matters. Values are relatively accurate also where zeta is tiny. */
void fini_zeta(double t, double g, double out[4]);
/* W(t, g) = Var[erf(t + g G)] = zeta - E[erf(t + g G)]^2, relatively accurate however small. */
double fini_zeta_variance(double t, double g);

#endif
