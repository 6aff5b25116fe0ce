/* One projected step, in any coordinates. */
#include "train/train.h"

#include <math.h>

/* x -= a y */
static void take(int64_t n, double *x, double a, const double *y)
{
    for (int64_t i = 0; i < n; i++)
        x[i] -= a * y[i];
}

static void move(int64_t n, double *x, double *velocity, double *gradient, const fini_rates *rates)
{
    take(n, gradient, fini_dot(n, gradient, x), x);
    if (velocity) {
        take(n, velocity, fini_dot(n, velocity, x), x);
        for (int64_t i = 0; i < n; i++)
            gradient[i] = velocity[i] = rates->momentum * velocity[i] + gradient[i];
    }
    take(n, x, rates->alpha, gradient);
    double norm2 = fini_dot(n, x, x), scale = norm2 > 0 && norm2 < INFINITY ? 1 / sqrt(norm2) : NAN;
    for (int64_t i = 0; i < n; i++)
        x[i] *= scale;
}

double fini_next_lam(const fin_train *t, double lam, double slope)
{
    double next = lam - t->settings.alpha_lam * slope;
    return next > FINI_LAM_MOST ? NAN : next > 0 ? next : next <= 0 ? 0 : NAN;
}

void fini_descend(int64_t n, double *k, double *v, double *mk, double *mv, double *gk, double *gv,
                  const fini_rates *rates)
{
    if (rates->penalty > 0) {
        double pull = -2 * rates->penalty * fini_dot(n, k, v);
        take(n, gk, pull, v);
        take(n, gv, pull, k);
    }
    move(n, k, mk, gk, rates);
    move(n, v, mv, gv, rates);
}
