/* Single-location regression with P pairs (k*, v*), 2P orthonormal vectors, and the sum of H erf heads:
 *
 *     P of the L tokens are relevant, X_p = mu k*_p + gamma G_p, the others N(0, I);
 *     Y = sum_p X_p.v*_p + eps N(0,1),    f = sum_h sum_l erf(lam X_l.k_h) X_l.v_h,  |k_h| = |v_h| = 1.
 *
 * The G_p are independent, or one and the same (shared). H = P = 1 is the task `slr` with `erf`. */
#ifndef FINI_THEORY_HEADS_H
#define FINI_THEORY_HEADS_H

#include "base/base.h"
#include "kernel/kernel.h"

typedef struct fini_heads_model {
    int64_t H, P, d, L;
    double gamma, mu, eps;
    bool shared;
} fini_heads_model;

/* E (Y - f)^2 in closed form. gram: the products of the 2H vectors, as a run of fini_kernel.heads has them. */
double fini_heads_risk(const fini_heads_model *model, double lam, const double *gram);

#endif
