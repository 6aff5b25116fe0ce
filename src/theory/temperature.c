/* The best fixed temperature of softmax attention for a linear concept.
 *
 * v = Z k + noise with Z_ij ~ N(0, prior), keys and query uniform on S^{d-1}. Softmax with scores
 * kappa q.k tends to A Z q, A = A_d(kappa); divided by A it is unbiased to leading order, and
 *
 *     L MSE = dv rho [ noise + prior (1 - 2 A A2 + A^2) ] / A^2,     A2 = A_d(2 kappa),
 *     rho = E e^{2 kappa q.k} / (E e^{kappa q.k})^2   (d = 3: kappa coth kappa).
 *
 * A small kappa divides by a small A, a large one averages over few tokens; in between is the best.
 * In 1 - 2 A A2 + A^2 = (1 - A)^2 + 2 A (1 - A2) nothing cancels. */
#include "base/base.h"
#include "finetti/math.h"
#include "finetti/theory_latent.h"
#include "math/bessel.h"
#include "math/small.h"
#include "theory/sphere.h"

#include <math.h>

double fini_temperature_error(int64_t d, double kappa, double dv, double noise, double prior)
{
    if (!(d >= 2 && kappa >= 0 && dv >= 0 && noise >= 0 && prior >= 0))
        return NAN;
    if (kappa == 0 || isinf(kappa))
        return INFINITY;
    double nu = (double)d / 2 - 1, A = fini_bessel_ratio(nu, kappa);
    double gap = fini_bessel_gap(nu, kappa), gap2 = fini_bessel_gap(nu, 2 * kappa);
    double rho = exp(fini_bessel_reduced(nu, 2 * kappa) - 2 * fini_bessel_reduced(nu, kappa));
    return dv * rho * (noise + prior * (gap * gap + 2 * A * gap2)) / A / A;
}

typedef struct problem {
    int64_t d;
    double noise, prior;
} problem;

static double at_log_kappa(double log_kappa, void *user)
{
    const problem *p = user;
    double error = fini_temperature_error(p->d, exp(log_kappa), 1, p->noise, p->prior);
    return error > 0 ? log(error) : NAN; /* the logarithm: the curve spans many decades */
}

fin_status fini_temperature_best(int64_t d, double dv, double noise, double prior, double *kappa,
                                 double *error, fin_error *err)
{
    FINI_NEED(err, kappa, error);
    const double low = 1e-6, high = 1e12;
    if (!(d >= 2))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "temperature: d = %lld; a sphere S^(d-1) needs d of 2 or more",
                         (long long)d);
    if (!(dv > 0 && noise >= 0 && prior >= 0) || isinf(dv) || isinf(noise) || isinf(prior) ||
        !(noise + prior > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "temperature: dv = %g, noise = %g, prior = %g; dv has to be positive, the "
                         "variances not negative and not both zero, for instance 2, 0.1, 1",
                         dv, noise, prior);
    problem p = {d, noise, prior};
    double best, value;
    FINI_TRY(fini_brent(at_log_kappa, &p, log(low), log(high), 1e-10, &best, &value, err));
    if (best >= log(high) * (1 - 1e-6))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "temperature: with noise = %g and prior = %g on S^%lld the error still "
                         "falls at kappa = %g; give a larger noise",
                         noise, prior, (long long)d - 1, high);
    *kappa = exp(best);
    *error = fini_temperature_error(d, *kappa, dv, noise, prior);
    return FIN_OK;
}
