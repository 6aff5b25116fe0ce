/* What the files on spheres share. */
#ifndef FINI_THEORY_SPHERE_H
#define FINI_THEORY_SPHERE_H

#include "finetti/base.h"

#include <stdbool.h>
#include <stdint.h>

/* Sums over all degrees at a ridge alpha > 0, f_l = mu_l / (mu_l + alpha). */
typedef struct fini_degrees {
    double first;  /* sum_l N_l f_l, Gamma(alpha) */
    double second; /* sum_l N_l f_l^2 */
} fini_degrees;
/* d >= 2, kappa >= 0. There are about 10 sqrt(kappa) terms and sqrt(d kappa) more, or kappa more if
 * d is larger than that: is it a few million at most? */
fini_degrees fini_sphere_degrees(int64_t d, double kappa, double alpha);
bool fini_sphere_summable(int64_t d, double kappa);
#define FINI_KAPPA_MOST 1e10

/* ---- the sphere S^{d-1}, d >= 2: keys uniform, kernel exp(kappa (q.k - 1)) (sphere*.c) ------ */

/* All of these are NaN if d < 2, or if kappa, l, alpha, lam, L, dv, noise or a power is negative or
 * NaN. */

/* Funk and Hecke: eigenvalue of degree l, Gamma(d/2) (2/kappa)^(d/2-1) e^-kappa I_{l+d/2-1}(kappa),
 * and how many harmonics of that degree there are. */
double fini_sphere_eigenvalue(int64_t d, double kappa, int64_t l);
double fini_sphere_multiplicity(int64_t d, int64_t l);
/* A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa): mean of a von Mises-Fisher law along its axis. */
double fini_sphere_mean(int64_t d, double kappa);
/* What attention makes of the degree-l part of E[v | k] in the limit of long contexts: softmax
 * multiplies it by mu_l / mu_0, cme with ridge lam = alpha L by mu_l / (mu_l + alpha). */
double fini_sphere_filter_softmax(int64_t d, double kappa, int64_t l);
double fini_sphere_filter_cme(int64_t d, double kappa, double alpha, int64_t l);
/* Gamma(alpha) = sum_l N_l mu_l / (mu_l + alpha), the effective dimension, summed until the rest is
 * provably below 1e-16 of it: about (10 + sqrt(d)) sqrt(kappa) terms. NaN if kappa > 1e10 or
 * kappa min(kappa, d) > 1e12. */
double fini_sphere_dimension(int64_t d, double kappa, double alpha);

/* Mean squared error to m(q) = E[v | q], averaged over q and contexts: bias + variance, to first
 * order in 1/L (cme: but for a share f_l / Gamma of that part of the bias). power[l], 0 <= l <=
 * degree: E |degree-l part of m|^2 (power may be NULL if degree < 0); noise: variance of one of the
 * dv numbers of v around m. kappa <= 1e10, for cme as above.
 *
 * cme: a deterministic equivalent, the ridge enlarged to a = lam/L + a Gamma(a)/L. For lam >= 0.1
 * simulations agree within 5 % from L = 16 on (kappa 3 and 10, d = 2 and 3); near interpolation it
 * is too small (lam = 0.001, L = 32: by 40 %). As L grows at fixed lam/L: bias -> sum_l power_l
 * (1 - f_l)^2, f_l = fini_sphere_filter_cme, and variance ~ (dv noise + bias) sum_l N_l f_l^2 / L.
 *
 * softmax: the delta method for a ratio of two means, with its bias of order 1/L; leaves out a
 * relative rho/L, rho = E e^{2 kappa q.k} / (E e^{kappa q.k})^2. */
typedef struct fini_sphere_error {
    double bias;     /* squared distance of the mean estimate from m */
    double variance; /* of the estimate */
} fini_sphere_error;
fini_sphere_error fini_sphere_error_cme(int64_t d, double kappa, double lam, int64_t L,
                                        const double *power, int degree, double dv, double noise);
fini_sphere_error fini_sphere_error_softmax(int64_t d, double kappa, int64_t L, const double *power,
                                            int degree, double dv, double noise);

/* von Mises-Fisher keys with natural parameter c (d numbers), m(k) = k: what softmax tends to at q,
 * A_d(b) (kappa q + c) / b, b = |kappa q + c|. limit may be c or q. */
void fini_sphere_limit_vmf(int64_t d, double kappa, const double *c, const double *q,
                           double *limit);
/* Keys N(0, g I), m(k) = Z k, scores q.k / T: softmax tends to (g/T) Z q; at T = g its variance
 * times L: e^{|q|^2/g} (dv noise + |Z|_F^2 g + |Z q|^2). NaN unless g > 0 and q2 = |q|^2 >= 0. */
double fini_gaussian_softmax_variance(double g, double q2, double dv, double noise,
                                      double Z_frobenius2, double Zq2);

/* Softmax at a fixed temperature, rescaled by 1/A_d, for a linear concept Z with prior variance
 * `prior` and keys uniform on the sphere: L * mean squared error to leading order, and the kappa
 * where it is least (between 1e-6 and 1e12; FIN_ERR_NUMERIC if the error falls for ever, as it does
 * without noise for d = 2 and 3). */
double fini_temperature_error(int64_t d, double kappa, double dv, double noise, double prior);
fin_status fini_temperature_best(int64_t d, double dv, double noise, double prior, double *kappa,
                                 double *error, fin_error *err);

/* Total variation distance between L balls drawn without and with replacement from an urn of N with
 * R red ones: how far from independent given z a finite exchangeable sequence is (Diaconis and
 * Freedman: at most 2 L / N for two colours). Exact: relative error below 1e-11 however small, in
 * O(sqrt(L)). NaN unless 0 <= R <= N, 0 <= L <= N <= 2^53. */
double fini_urn_distance(int64_t N, int64_t R, int64_t L);

#endif
