/* How far a finite exchangeable sequence is from independent draws: L balls from an urn of N with R
 * red ones, without and with replacement.
 *
 * Both laws give all orders of the same count the same probability, so the distance is that of the
 * numbers of red balls, h (hypergeometric) and b (binomial). For N = 2^31, L = 2 it is 1e-10, for
 * which differences of probabilities have no digits left. So log(h/b) itself is followed, which has
 * exact steps and one maximum, at k* = ceil(R (L-1) / N):
 *
 *     b(k+1)/b(k) = (L-k) R / ((k+1) (N-R)),
 *     log(h/b)(k+1) - log(h/b)(k) = log(1 + (R (L-1) - k N) / (R (N-R-L+k+1))).
 *
 * With B = b/b(k*), g(k) = log(h/b)(k) - log(h/b)(k*) <= 0, both laws sum to one if
 *
 *     log(h/b)(k*) = -log(1 + sum_k B (e^g - 1) / sum_k B),
 *
 * and the distance is sum_k b (h/b - 1) over the k around k* where h > b. Terms below 1e-40 of the
 * largest are left out: the cost is O(sqrt(L)). */
#include "finetti/theory_latent.h"
#include "theory/sphere.h"

#include <math.h>

typedef struct urn {
    double N, R, L;
} urn;

typedef struct place {
    double k, B, g;
} place;

/* R (L-1) - k N without rounding of the products: numbers up to 2^53. */
static double numerator(const urn *u, double k)
{
    double plus = u->R * (u->L - 1), minus = k * u->N;
    return (plus - minus) + (fma(u->R, u->L - 1, -plus) - fma(k, u->N, -minus));
}

/* Step of log(h/b) from k to k+1; -infinity and +infinity where h ends. */
static double step(const urn *u, double k)
{
    double room = u->N - u->R - u->L + k + 1;
    return room > 0 ? log1p(fmax(-1, numerator(u, k) / u->R / room)) : INFINITY;
}

static int up(const urn *u, place *p)
{
    if (p->k >= u->L)
        return 0;
    p->g = p->g > -INFINITY ? p->g + step(u, p->k) : p->g;
    p->B *= (u->L - p->k) / (p->k + 1) * (u->R / (u->N - u->R));
    p->k++;
    return p->B > 1e-40;
}

static int down(const urn *u, place *p)
{
    if (p->k <= 0)
        return 0;
    p->k--;
    p->B *= (p->k + 1) / (u->L - p->k) * ((u->N - u->R) / u->R);
    p->g = p->g > -INFINITY ? p->g - step(u, p->k) : p->g;
    return p->B > 1e-40;
}

double fini_urn_distance(int64_t N, int64_t R, int64_t L)
{
    if (R < 0 || L < 0 || R > N || L > N || N > INT64_C(1) << 53)
        return NAN;
    if (R == 0 || R == N || L <= 1)
        return 0;
    urn u = {(double)N, (double)R, (double)L};
    double peak = ceil(u.R * ((u.L - 1) / u.N)); /* rounding may miss it by one, to where h = 0 */
    while (numerator(&u, peak) > 0)
        peak++;
    while (peak > 0 && numerator(&u, peak - 1) <= 0)
        peak--;
    place start = {peak, 1, 0}, p = start;
    double mass = 1, change = 0, distance = 0;
    while (up(&u, &p)) {
        mass += p.B;
        change += p.B * expm1(p.g);
    }
    for (p = start; down(&u, &p);) {
        mass += p.B;
        change += p.B * expm1(p.g);
    }
    double top = -log1p(change / mass); /* log(h/b) at the peak */
    distance = expm1(top);
    for (p = start; up(&u, &p) && p.g + top > 0;)
        distance += p.B * expm1(p.g + top);
    for (p = start; down(&u, &p) && p.g + top > 0;)
        distance += p.B * expm1(p.g + top);
    return distance / mass;
}
