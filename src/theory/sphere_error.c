/* How far attention over L uniform keys on the sphere is from m(q) = E[v | q], and what softmax
 * makes of von Mises-Fisher and of Gaussian keys.
 *
 * CME. With alpha = lam/L fixed the estimate tends to f_l m_l, f_l = mu_l/(mu_l + alpha), degree by
 * degree. At finite L the random Gram matrix acts like the mean one with a larger ridge (the
 * deterministic equivalent of ridge regression; Canatar, Bordelon and Pehlevan 2021):
 *
 *     a = alpha + a Gamma(a) / L,     gamma = sum_l N_l f_l(a)^2 / L,
 *     squared bias = sum_l power_l (1 - f_l(a))^2,
 *     variance     = (dv noise + squared bias) gamma / (1 - gamma)
 *                    - sum_l power_l f_l(a)^2 (1 - f_l(a))^2 / L.
 *
 * To first order in 1/L the variance is the delta method's, exactly: the last term, which the
 * equivalent leaves out, is the squared mean of one token's influence. Of the bias the delta
 * method says (1 - f_l) (1 + f_l (Gamma - f_l)/L), where the equivalent has Gamma: a harmonic is no
 * noise to itself. That is left as it is, since at small L the terms of second order outweigh it
 * (simulated, d = 3, kappa = 3, lam = 0.05 L, degree 1: the bias is 0.3 % too large at L = 50, and
 * 0.6 % too small with the subtraction). To leading order the variance is
 * dv noise/L sum_l N_l f_l(alpha)^2, but it also holds where Gamma is not small against L.
 *
 * Softmax. The estimate is a ratio of means, with mean and variance, from the delta method,
 *
 *     E  = sum_l [ a_l - (rho/L) (b_l - a_l) ] m_l,      a_l = mu_l/mu_0 at kappa, b_l at 2 kappa,
 *     Var = (rho/L) [ dv noise + sum_l power_l (1 - 2 a_l b_l + a_l^2) ],
 *     rho = E e^{2 kappa q.k} / (E e^{kappa q.k})^2,
 *
 * since the squared weights tilt the keys to density e^{2 kappa q.k} and, averaged over q, products
 * of harmonics of different degrees vanish. What is left out is of relative size rho/L: the formula
 * is for many tokens within the reach of the kernel. */
#include "finetti/math.h"
#include "finetti/theory_latent.h"
#include "math/bessel.h"
#include "theory/sphere.h"

#include <math.h>
#include <stdbool.h>

static bool valid(int64_t d, double kappa, int64_t L, const double *power, int degree, double dv,
                  double noise)
{
    bool good = d >= 2 && kappa >= 0 && kappa <= FINI_KAPPA_MOST && L >= 0 && dv >= 0 &&
                noise >= 0 && (power || degree < 0);
    for (int l = 0; good && l <= degree; l++)
        good = power[l] >= 0;
    return good;
}

static double total(const double *power, int degree)
{
    double sum = 0;
    for (int l = 0; l <= degree; l++)
        sum += power[l];
    return sum;
}

/* a = alpha + a Gamma(a)/L by Newton's method. a Gamma(a) = sum_l N_l mu_l a/(mu_l + a) is concave,
 * at most 1 and has the slope L gamma, so from a = alpha + 1/L the steps go down to the root and
 * never past it. *gamma: at the root. */
static double effective_ridge(int64_t d, double kappa, double alpha, double L, double *gamma)
{
    double a = alpha + 1 / L;
    for (int round = 0; round < 200; round++) {
        fini_degrees sum = fini_sphere_degrees(d, kappa, a);
        double step = (a - alpha - a * sum.first / L) / (1 - sum.second / L);
        *gamma = sum.second / L;
        if (!(step > 1e-15 * a) || a - step <= 0)
            break;
        a -= step;
    }
    return a;
}

fini_sphere_error fini_sphere_error_cme(int64_t d, double kappa, double lam, int64_t L,
                                        const double *power, int degree, double dv, double noise)
{
    fini_sphere_error error = {NAN, NAN};
    if (!valid(d, kappa, L, power, degree, dv, noise) || !(lam >= 0) ||
        !fini_sphere_summable(d, kappa))
        return error;
    if (L == 0 || isinf(lam)) /* the answer is zero */
        return (fini_sphere_error){total(power, degree), 0};
    double gamma, count = (double)L, a = effective_ridge(d, kappa, lam / count, count, &gamma);
    double mu = exp(fini_bessel_reduced((double)d / 2 - 1, kappa)), influence = 0;
    error.bias = 0;
    for (int l = 0; l <= degree; l++) {
        double f = mu / (mu + a), g = a / (mu + a);
        error.bias += power[l] * g * g;
        influence += power[l] * f * f * g * g;
        mu *= fini_bessel_ratio((double)d / 2 - 1 + l, kappa);
    }
    error.variance = (dv * noise + error.bias) * gamma / (1 - gamma) - influence / count;
    return error;
}

/* One degree up: a_{l+1} = a_l r and 1 - a_{l+1} = (1 - a_l) + a_l (1 - r). */
typedef struct filter {
    double a, gap; /* a_l, 1 - a_l */
} filter;

static void filter_next(filter *f, double order, double kappa)
{
    f->gap += f->a * fini_bessel_gap(order, kappa);
    f->a *= fini_bessel_ratio(order, kappa);
}

fini_sphere_error fini_sphere_error_softmax(int64_t d, double kappa, int64_t L, const double *power,
                                            int degree, double dv, double noise)
{
    fini_sphere_error error = {NAN, NAN};
    if (!valid(d, kappa, L, power, degree, dv, noise))
        return error;
    if (L == 0)
        return (fini_sphere_error){total(power, degree), 0};
    double nu = (double)d / 2 - 1;
    double rho = exp(fini_bessel_reduced(nu, 2 * kappa) - 2 * fini_bessel_reduced(nu, kappa));
    double share = rho / (double)L, spread = dv * noise;
    filter once = {1, 0}, twice = {1, 0};
    error.bias = 0;
    for (int l = 0; l <= degree; l++) {
        /* b_l - a_l = (1 - a_l) - (1 - b_l), and 1 - 2ab + a^2 = (1-a)^2 + 2a(1-b). */
        double off = once.gap + share * (once.gap - twice.gap);
        error.bias += power[l] * off * off;
        spread += power[l] * (once.gap * once.gap + 2 * once.a * twice.gap);
        filter_next(&once, nu + l, kappa);
        filter_next(&twice, nu + l, 2 * kappa);
    }
    error.variance = share * spread;
    return error;
}

void fini_sphere_limit_vmf(int64_t d, double kappa, const double *c, const double *q, double *limit)
{
    if (!c || !q || !limit)
        return;
    double b = 0;
    for (int64_t i = 0; i < d; i++) {
        limit[i] = kappa * q[i] + c[i];
        b = hypot(b, limit[i]);
    }
    /* A_d(b)/b tends to 1/d. */
    double factor = !(d >= 2 && kappa >= 0) ? NAN
                    : b <= 1e-150           ? 1 / (double)d
                                            : fini_sphere_mean(d, b) / b;
    for (int64_t i = 0; i < d; i++)
        limit[i] *= factor;
}

double fini_gaussian_softmax_variance(double g, double q2, double dv, double noise,
                                      double Z_frobenius2, double Zq2)
{
    if (!(g > 0 && q2 >= 0 && dv >= 0 && noise >= 0))
        return NAN;
    return exp(q2 / g) * (dv * noise + Z_frobenius2 * g + Zq2);
}
