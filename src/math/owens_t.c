/* Owen's T function to full relative precision, by one quadrature rule.
 *
 * The published algorithms (Patefield & Tandy, J. Stat. Software 5(5), 2000; Boost) choose among
 * six series by a table of regions. One rule is enough here: wherever the integral is not rewritten
 * it runs over a part of [0, 2] on which the integrand falls by at most exp(-37), and there a
 * Gauss-Legendre rule of 24 nodes is exact to double precision (tests/data/owens_t.csv). */
#include "finetti/math.h"
#include "kernel/coefficients.h"
#include "math/owen.h"
#include "base/constants.h"

#include <math.h>

/* Beyond exp(-CUT) of the first value lies less than a unit in the last place of the integral. */
#define CUT 37.0
/* Up to here the poles at u = +-i are far enough away for the rule: it converges like 2.9^-48. */
#define LONGEST 2.0

double fini_owen_integral(double q, double from, double length)
{
    if (q * length * (2 * from + length) > CUT) {
        double reach = CUT / q; /* solves u^2 - from^2 = reach without cancelling */
        length = reach / (sqrt(from * from + reach) + from);
    }
    /* u = from + step, u^2 - from^2 = step (2 from + step) */
    double sum = 0, first = 1 + from * from;
    for (int i = 0; i < FINI_LEGENDRE; i++) {
        double step = length * fini_legendre_node[i], rise = step * (2 * from + step);
        sum += fini_legendre_weight[i] * exp(-q * rise) / (first + rise);
    }
    return length * sum;
}

/* h > 0 and 0 <= a, where a <= LONGEST or h is large enough to cut the integral before that:
 *     T(h, a) = exp(-h^2/2) / (2 pi) int_0^a exp(-h^2 u^2 / 2) / (1 + u^2) du */
static double direct(double h, double a)
{
    const double two_pi_inverse = 0.15915494309189535;
    if (h > 39)
        return 0; /* exp(-h^2/2) is below the smallest double */
    /* The rounding of h^2 is an absolute error in the exponent, 1e-13 at h = 38: put it back. */
    double hh = h * h, rest = fma(h, h, -hh);
    return exp(-0.5 * hh) * (1 - 0.5 * rest) * two_pi_inverse * fini_owen_integral(0.5 * hh, 0, a);
}

/* With Q the upper tail of the normal law, for h > 0 and a > 1
 *     T(h, a) = [Q(h) (1 - Q(ah)) + Q(ah) (1 - Q(h))] / 2 - T(ah, 1/a),
 * which is the usual reflection (Owen 1956) written so that one form serves small and large h: no
 * 1 - Q cancels, as Q <= 1/2, and T(ah, 1/a) <= T(ah, 1) < Q(ah)/2 while T(h, a) >= Q(h)/4, so the
 * subtraction costs a factor of at most three. */
static double reflected(double h, double a)
{
    double ah = a * h;
    double near = 0.5 * erfc(FINI_ROOT_HALF * h), far = 0.5 * erfc(FINI_ROOT_HALF * ah);
    return 0.5 * (near * (1 - far) + far * (1 - near)) - direct(ah, 1 / a);
}

/* T is even in h and odd in a. */
double fini_owens_t(double h, double a)
{
    const double two_pi_inverse = 0.15915494309189535;
    if (isnan(h) || isnan(a))
        return NAN;
    double size = fabs(a), value;
    h = fabs(h);
    if (h == 0)
        value = two_pi_inverse * atan(size);
    else if (size <= LONGEST || h * h * (LONGEST * LONGEST) >= 2 * CUT)
        value = direct(h, size);
    else
        value = reflected(h, size);
    return copysign(value, a);
}
