/* zeta(t, g) = E[erf(t + g G)^2], its derivatives in t, and the variance W = zeta - E[erf]^2.
 *
 * The textbook form zeta = 1 - 8 T(sqrt2 t/B, 1/s) loses all digits where zeta is small, and
 * zeta - erf^2 where W is. Both are sums of positive terms instead:
 *
 *     zeta = erf(x)^2 + W
 *     W    = Ex Ey int_a^1 exp(-x^2 (u^2 - a^2)) / (1 + u^2) du       (8 [T(h,1) - T(h,a)])
 *     x = t/B, B = sqrt(1 + 2g^2), s = sqrt(1 + 4g^2), a = 1/s, y = x/s, h = sqrt2 x
 *     E(x) = 2/sqrt(pi) exp(-x^2), Ex = E(x), Ey = E(y)
 *
 * and with A = s B, t/A = y, one differentiation after the other gives
 *
 *     zeta'   = (2/B) erf(y) Ex
 *     zeta''  = (2/B) [ Ex Ey/A - 2x erf(y) Ex/B ]
 *     zeta''' = (2/B) [ -2y Ex Ey/A^2 - 4x Ex Ey/(A B) + (4x^2 - 2) erf(y) Ex/B^2 ]
 *
 * Ey comes only together with Ex, and x^2 + y^2 = 2t^2/(1 + 4g^2). A rounded x would cost 2x^2
 * units in the last place of Ex, so exponents are worked out in two doubles. */
#include "finetti/math.h"
#include "math/owen.h"
#include "base/constants.h"

#include <math.h>

/* exp(-k t^2 / (1 + c g^2)), k and c powers of two, with a relative error of a few units however
 * large the exponent. Not for saturated t: a square may overflow. */
static double gauss(double t, double g, double k, double c)
{
    if (g > 0x1p200) { /* the 1 no longer counts: bring both down, so that no square overflows */
        int down = 200 - ilogb(g);
        t = scalbn(t, down);
        g = scalbn(g, down);
    }
    double tt = t * t, tt_rest = fma(t, t, -tt);
    double gg = c * (g * g), gg_rest = c * fma(g, g, -(g * g));
    double b = 1 + gg, b_rest = (gg < 1 ? gg - (b - 1) : 1 - (b - gg)) + gg_rest;
    double q = tt / b, q_rest = (fma(-q, b, tt) + (tt_rest - q * b_rest)) / b;
    return exp(-k * q) * (1 - k * q_rest);
}

typedef struct terms {
    double s, B, x;
    double Ex, Exy, W; /* Exy = Ex Ey */
} terms;

static terms terms_of(double t, double g)
{
    const double sqrt2 = 1.4142135623730951;
    if (g > 0x1p1000) { /* only t/g counts, the derivatives are below the smallest double */
        t *= 0x1p-10;
        g *= 0x1p-10;
    }
    terms z = {.s = hypot(1, 2 * g), .B = hypot(1, sqrt2 * g)};
    z.x = t / z.B;
    z.Ex = FINI_TWO_OVER_ROOT_PI * gauss(t, g, 1, 2);
    z.Exy = FINI_FOUR_OVER_PI * gauss(t, g, 2, 4);
    /* 1 - a = 4g^2 / (s (s+1)), which neither cancels nor overflows */
    double length = (2 * g / z.s) * (2 * g / (z.s + 1));
    z.W = z.Exy * fini_owen_integral(z.x * z.x, 1 / z.s, length);
    return z;
}

/* Where erf(t + g G) is surely +-1: t or g infinite, or exp(-x^2) below the smallest double. */
static int saturated(double t, double g)
{
    return isinf(t) || isinf(g) || fabs(t) / hypot(1, g) > 40;
}

void fini_zeta(double t, double g, double out[4])
{
    if (!out)
        return;
    if (isnan(t) || isnan(g)) {
        out[0] = out[1] = out[2] = out[3] = NAN;
        return;
    }
    g = fabs(g);
    if (saturated(t, g)) {
        out[0] = 1;
        out[1] = out[2] = out[3] = 0;
        return;
    }
    terms z = terms_of(t, g);
    double x = z.x, y = x / z.s, erf_x = erf(x), erf_y = erf(y);
    double invB = 1 / z.B, invA = invB / z.s;
    out[0] = erf_x * erf_x + z.W;
    out[1] = 2 * invB * erf_y * z.Ex;
    out[2] = 2 * invB * (z.Exy * invA - 2 * x * erf_y * z.Ex * invB);
    out[3] = 2 * invB *
             (-2 * y * z.Exy * invA * invA - 4 * x * z.Exy * invA * invB +
              (4 * x * x - 2) * erf_y * z.Ex * invB * invB);
}

double fini_zeta_variance(double t, double g)
{
    if (isnan(t) || isnan(g))
        return NAN;
    g = fabs(g);
    if (isinf(g))
        return isinf(t) ? NAN : 1; /* +-1 with equal odds; undecided if t is infinite too */
    return saturated(t, g) ? 0 : terms_of(t, g).W;
}
