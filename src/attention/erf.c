/* erf, the paper's form: w_l = erf(lam chi_l). */
#include "attention/form.h"

#include "finetti/math.h"
#include "kernel/kernel.h"
#include "base/constants.h"
#include "math/owen.h"

#include <math.h>

#define FIELDS(F, C) FIN_FORM_LAM(F, C)
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, erf_settings, "erf", FIELDS);

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    int64_t tokens = offsets[n] - offsets[0];
    for (int64_t l = 0; l < tokens; l++)
        w[l] = s->lam * chi[l];
    fini_kernel_get()->erf(tokens, w, w);
}

/* With g = (2/sqrt pi) exp(-(c + lam chi)^2): dw/dchi = lam g, dw/dlam = chi g, dw/dc = g. */
void fini_erf_backward(double lam, double c, const fini_pass *t)
{
    int64_t tokens = t->offsets[t->n] - t->offsets[0];
    for (int64_t l = 0; l < tokens; l++)
        t->p[l] = c + lam * t->chi[l];
    fini_kernel_get()->gauss(tokens, t->p, t->p);
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t l = t->offsets[i] - t->offsets[0]; l < t->offsets[i + 1] - t->offsets[0];
             l++) {
            double slope = t->df[i] * FINI_TWO_OVER_ROOT_PI * t->p[l] * t->z[l];
            t->dlam[i] += slope * t->chi[l];
            t->dc[i] += slope;
            t->p[l] = slope * lam;
        }
}

static void backward(const fin_form_settings *s, const fini_pass *t)
{
    fini_erf_backward(s->lam, 0, t);
}

static double value(const fin_form_settings *s, double chi)
{
    return erf(s->lam * chi);
}

/* E[erf(lam chi)] = erf(x), x = lam mean/B, B = sqrt(1 + 2 lam^2 sd^2), and its
 * derivatives in the mean; E[erf^2] = zeta(lam mean, lam sd) likewise. */
static void moments(const fin_form_settings *s, double mean, double sd, double m[4], double h[4])
{
    double lam = s->lam;
    double B = sqrt(1 + 2 * lam * lam * sd * sd), r = lam / B, x = lam * mean / B;
    double E = FINI_TWO_OVER_ROOT_PI * exp(-x * x);
    m[0] = erf(x);
    m[1] = r * E;
    m[2] = r * r * -2 * x * E;
    m[3] = r * r * r * (4 * x * x - 2) * E;
    fini_zeta(lam * mean, lam * sd, h);
    h[1] *= lam;
    h[2] *= lam * lam;
    h[3] *= lam * lam * lam;
}

static void risk_rows(int64_t n, const double points[][FINI_RISK_IN],
                      double values[][FINI_RISK_OUT])
{
    fini_kernel_get()->erf_risk(n, points, values);
}

static void population(const fini_population_model *p, int64_t steps, const double *lam,
                       const double *alpha, double state[][FINI_RUNS])
{
    fini_kernel_get()->population(p, steps, lam, alpha, state);
}

static void reduced(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                    const double *alpha, double state[][FINI_RUNS])
{
    fini_kernel_get()->reduced(p, first, steps, lam, alpha, state);
}

static const fini_form_lanes lanes = {risk_rows, population, reduced};

const fin_form fini_form_erf = {
    .name = "erf",
    .summary = "w_l = erf(lam chi_l), the paper's",
    .settings = &erf_settings,
    .elementwise = 1,
    .weights = weights,
    .backward = backward,
    .value = value,
    .moments = moments,
    .lanes = &lanes,
};
