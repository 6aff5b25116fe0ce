/* What the files on spheres share. */
#ifndef FINI_THEORY_SPHERE_H
#define FINI_THEORY_SPHERE_H

#include <stdint.h>

/* Sums over all degrees at a ridge alpha > 0, f_l = mu_l / (mu_l + alpha). */
typedef struct fini_degrees {
    double first;  /* sum_l N_l f_l, Gamma(alpha) */
    double second; /* sum_l N_l f_l^2 */
} fini_degrees;
/* d >= 2, 0 <= kappa <= FINI_KAPPA_SUMMED: there are about 10 sqrt(kappa) terms. */
fini_degrees fini_sphere_degrees(int64_t d, double kappa, double alpha);
#define FINI_KAPPA_SUMMED 1e10

#endif
