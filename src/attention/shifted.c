/* shifted erf: w_l = 1 + erf(c + lam chi_l), a positive weight. */
#include "attention/form.h"

#include "finetti/math.h"
#include "kernel/kernel.h"
#include "base/constants.h"
#include "math/owen.h"

#include <math.h>

#define FIELDS(F, C) FIN_FORM_LAM(F, C) FIN_FORM_C(F, C)
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, shifted_settings, "shifted", FIELDS);

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    int64_t tokens = offsets[n] - offsets[0];
    for (int64_t l = 0; l < tokens; l++)
        w[l] = s->c + s->lam * chi[l];
    fini_kernel_get()->erf(tokens, w, w);
    for (int64_t l = 0; l < tokens; l++)
        w[l] += 1;
}

static void backward(const fin_form_settings *s, const fini_pass *t)
{
    fini_erf_backward(s->lam, s->c, t);
}

static double value(const fin_form_settings *s, double chi)
{
    return erfc(-s->c - s->lam * chi); /* 1 + erf, also where it is tiny */
}

/* 1 + erf is erfc of the opposite, and E[w^2] = E[w]^2 + Var(erf): nothing cancels where the
 * weights are tiny. With t = c + lam mean, g = lam sd, B^2 = 1 + 2 g^2, A = B sqrt(1 + 4 g^2),
 * x = t/B and y = t/A the derivatives of E[w^2] are those of zeta (math.h) with 1 + erf(y) in the
 * place of erf(y). */
static void moments(const fin_form_settings *s, double mean, double sd, double m[4], double h[4])
{
    const double c0 = FINI_TWO_OVER_ROOT_PI;
    double t = s->c + s->lam * mean, g2 = s->lam * sd * s->lam * sd;
    double B = sqrt(1 + 2 * g2), A = B * sqrt(1 + 4 * g2), x = t / B, y = t / A, r = s->lam / B;
    double Ex = c0 * exp(-x * x), Ey = c0 * exp(-y * y), tail = erfc(-y), a = B / A;
    m[0] = erfc(-x);
    m[1] = r * Ex;
    m[2] = r * r * -2 * x * Ex;
    m[3] = r * r * r * (4 * x * x - 2) * Ex;
    h[0] = m[0] * m[0] + fini_zeta_variance(t, s->lam * sd);
    h[1] = 2 * r * Ex * tail;
    h[2] = 2 * r * r * Ex * (a * Ey - 2 * x * tail);
    h[3] = 2 * r * r * r * Ex * (-2 * a * a * y * Ey - 4 * a * x * Ey + (4 * x * x - 2) * tail);
}

const fin_form fini_form_shifted = {
    .name = "shifted",
    .summary = "w_l = 1 + erf(c + lam chi_l)",
    .settings = &shifted_settings,
    .elementwise = 1,
    .weights = weights,
    .backward = backward,
    .value = value,
    .moments = moments,
};
