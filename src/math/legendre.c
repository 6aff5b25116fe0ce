/* Gauss-Legendre quadrature on [-1, 1].
 *
 * Newton's method in the angle theta, x = cos theta, from Tricomi's guess. In theta the weight is
 *     w = 2 / (dP_n/dtheta)^2,
 * and P_n comes from its differences D_k = P_k - P_{k-1}, with t = 1 - x = 2 sin^2(theta/2):
 *     (k+1) D_{k+1} = k D_k - (2k+1) t P_k,     -sin(theta) dP_n/dtheta = n (t P_n - D_n),
 * which keep all digits at the ends of the interval, where 1 - x^2 computed from x has lost them.
 * The lower half is the mirror image of the upper one. */
#include "base/base.h"
#include "finetti/math.h"
#include "base/constants.h"
#include "math/small.h"

#include <math.h>

enum { N_MAX = 1024, NEWTON = 6 };

typedef struct legendre_at {
    double value; /* P_n(cos theta) */
    double slope; /* dP_n/dtheta */
} legendre_at;

static legendre_at legendre_evaluate(int n, double theta)
{
    double half = sin(theta / 2), t = 2 * half * half, value = 1, step = 0;
    for (int k = 0; k < n; k++) {
        step = (k * step - (2 * k + 1) * t * value) / (k + 1);
        value += step;
    }
    return (legendre_at){value, -n * (t * value - step) / sin(theta)};
}

fin_status fini_legendre(int n, double *x, double *w, fin_error *err)
{
    FINI_NEED(err, x, w);
    if (n < 1 || n > N_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "legendre: n = %d nodes; 1 to %d are possible, 64 are plenty for smooth f",
                         n, (int)N_MAX);
    for (int i = 0; i < (n + 1) / 2; i++) {
        double theta = FINI_PI * (i + 0.75) / (n + 0.5);
        theta += (1 - 1.0 / n) / (8.0 * n * n) / tan(theta);
        legendre_at at = legendre_evaluate(n, theta);
        for (int round = 0; round < NEWTON && fabs(at.value) > 0; round++) {
            double next = theta - at.value / at.slope;
            if (next == theta)
                break;
            theta = next;
            at = legendre_evaluate(n, theta);
        }
        bool middle = 2 * i + 1 == n;
        x[n - 1 - i] = middle ? 0 : cos(theta);
        x[i] = middle ? 0 : -cos(theta);
        w[i] = w[n - 1 - i] = 2 / (at.slope * at.slope);
    }
    return FIN_OK;
}
