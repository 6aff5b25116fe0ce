/* What the files on spheres share. */
#ifndef FINI_THEORY_SPHERE_H
#define FINI_THEORY_SPHERE_H

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

#endif
