/* Private face of the math module: the integral below Owen's T and below the variance of an erf. */
#ifndef FINI_OWEN_H
#define FINI_OWEN_H

/* int_from^{from+length} exp(-q (u^2 - from^2)) / (1 + u^2) du for q >= 0, 0 <= from, length and
 * from + length <= 2, or any length, also infinite, if it is cut: q length (2 from + length) > 37.
 * The integrand is 1/(1 + from^2) at its left end and falls, so the value never underflows; the
 * caller multiplies by the exponential that does. Relative error a few units in the last place. */
double fini_owen_integral(double q, double from, double length);

#endif
