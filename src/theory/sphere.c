/* Attention on the sphere S^{d-1} with uniform keys and the kernel exp(kappa (q.k - 1)).
 *
 * By Funk and Hecke the kernel's integral operator is diagonal in spherical harmonics, one
 * eigenvalue mu_l for the N_l harmonics of degree l, so everything here is a sum over degrees. With
 * nu = d/2 - 1:
 *
 *     mu_l = Gamma(d/2) (2/kappa)^nu e^-kappa I_{nu+l}(kappa),
 *     mu_l / mu_{l-1} = I_{nu+l}(kappa) / I_{nu+l-1}(kappa),
 *
 * and mu_0 comes from one logarithm, the others by multiplication with ratios: nothing overflows,
 * and every mu_l keeps its relative accuracy for any kappa. */
#include "finetti/math.h"
#include "finetti/theory_latent.h"
#include "math/bessel.h"
#include "theory/sphere.h"

#include <math.h>
#include <stdbool.h>

enum { FACTORS = 4096 /* ratios multiplied at most; past that a difference of logarithms */ };

static double order(int64_t d)
{
    return (double)d / 2 - 1;
}

static bool valid(int64_t d, double kappa, int64_t l)
{
    return d >= 2 && kappa >= 0 && l >= 0;
}

/* mu_l / mu_0. */
static double relative(int64_t d, double kappa, int64_t l)
{
    double nu = order(d), product = 1;
    if (kappa == 0 || isinf(kappa))
        return l == 0 || kappa > 0;
    if (l > FACTORS)
        return exp(fini_bessel_log(nu + (double)l, kappa) - fini_bessel_log(nu, kappa));
    for (int64_t i = 0; i < l && product > 0; i++)
        product *= fini_bessel_ratio(nu + (double)i, kappa);
    return product;
}

double fini_sphere_eigenvalue(int64_t d, double kappa, int64_t l)
{
    if (!valid(d, kappa, l))
        return NAN;
    return exp(fini_bessel_reduced(order(d), kappa)) * relative(d, kappa, l);
}

double fini_sphere_mean(int64_t d, double kappa)
{
    return valid(d, kappa, 1) ? fini_bessel_ratio(order(d), kappa) : NAN;
}

double fini_sphere_filter_softmax(int64_t d, double kappa, int64_t l)
{
    return valid(d, kappa, l) ? relative(d, kappa, l) : NAN;
}

double fini_sphere_filter_cme(int64_t d, double kappa, double alpha, int64_t l)
{
    double mu = fini_sphere_eigenvalue(d, kappa, l);
    if (isnan(mu) || !(alpha >= 0))
        return NAN;
    return alpha == 0 ? 1 : mu / (mu + alpha);
}

/* N_l = (2l+d-2)/l binomial(l+d-3, l-1) for l >= 1: d = 2: 1, 2, 2, ...; d = 3: 2l+1. The product
 * over the smaller of the two lower indices is exact as long as it stays below 2^53, and infinite
 * after a few thousand factors. */
double fini_sphere_multiplicity(int64_t d, int64_t l)
{
    if (d < 2 || l < 0)
        return NAN;
    if (l == 0)
        return 1;
    double n = (double)l + (double)d - 3, few = (double)(l - 1 < d - 2 ? l - 1 : d - 2);
    double head = 2 * (double)l + (double)d - 2, binomial = 1;
    for (double i = 1; i <= few && binomial < INFINITY; i++)
        binomial = binomial * (n - few + i) / i;
    return binomial * head < 0x1p53 ? rint(binomial * head / (double)l)
                                    : binomial * (head / (double)l);
}

/* With w_l = N_l mu_l the terms are w_l / (mu_l + alpha). The w_l sum to k(q, q) = 1, so they never
 * overflow, but N_l and mu_l may (d = 1000): hence logarithms.
 *
 * Where to stop: a term is at most w_l / alpha, and w_{l+1}/w_l = q_l falls with l, because both
 * N_{l+1}/N_l and the ratio of Bessel functions do. So once q_l < 1 what follows term l is at most
 * w_l/alpha q_l/(1 - q_l), and the sum ends when that is below 1e-16 of it. */
fini_degrees fini_sphere_degrees(int64_t d, double kappa, double alpha)
{
    double nu = order(d), log_mu = fini_bessel_reduced(nu, kappa), log_w = log_mu;
    fini_degrees sum = {0, 0};
    for (double l = 0;; l++) {
        double mu = exp(log_mu), w = exp(log_w), term = w / (mu + alpha);
        sum.first += term;
        sum.second += term * (mu / (mu + alpha));
        /* N_{l+1} / N_l = (2l+d)(l+d-2) / ((2l+d-2)(l+1)); for d = 2: 2, then 1. */
        double D = (double)d, growth = (2 * l + D) / (2 * l + D - 2) * ((l + D - 2) / (l + 1));
        if (d == 2)
            growth = l == 0 ? 2 : 1;
        double ratio = fini_bessel_ratio(nu + l, kappa), q = growth * ratio;
        if (q < 1 && w / alpha * q <= 1e-16 * (1 - q) * sum.first)
            return sum;
        log_mu += log(ratio);
        log_w += log(q);
    }
}

/* The largest w_l are near l = sqrt(d kappa), or kappa if d is larger. */
bool fini_sphere_summable(int64_t d, double kappa)
{
    return kappa <= FINI_KAPPA_MOST && kappa * fmin(kappa, (double)d) <= 1e12;
}

double fini_sphere_dimension(int64_t d, double kappa, double alpha)
{
    if (!valid(d, kappa, 0) || !(alpha >= 0) || !fini_sphere_summable(d, kappa))
        return NAN;
    if (alpha == 0)
        return kappa > 0 ? INFINITY : 1;
    return isinf(alpha) ? 0 : fini_sphere_degrees(d, kappa, alpha).first;
}
