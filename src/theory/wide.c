/* Ridge regression with as many features as tokens (Marchenko and Pastur).
 *
 * dv noise (D/L) m with g = D/L, x = lam/L, b = 1 - g + x and m = [-b + sqrt(b^2 + 4 g x)]/(2 g x).
 * Multiplied out by L, with B = L - D + lam, nothing is divided by L, so L = 0 (the prior alone:
 * dv noise D/lam) needs no case of its own:
 *
 *     (D/L) m = [-B + sqrt(B^2 + 4 D lam)] / (2 lam) = 2 D / [B + sqrt(B^2 + 4 D lam)],
 *
 * the first where B < 0, the second elsewhere: no cancellation. */
#include "finetti/theory_latent.h"

#include <math.h>

double fin_risk_wide(double D, double L, double lam, double noise, double dv)
{
    if (!(D >= 0 && L >= 0 && lam >= 0 && noise >= 0 && dv >= 0))
        return NAN;
    if (D == 0)
        return 0;
    double B = L - D + lam, root = hypot(B, 2 * sqrt(D) * sqrt(lam));
    return dv * noise * (B < 0 ? (root - B) / (2 * lam) : 2 * D / (B + root));
}
