/* shifted erf: w_l = 1 + erf(c + lam chi_l), a positive weight. */
#include "attention/form.h"

#include "kernel/kernel.h"

#include <math.h>

#define FIELDS(F, C) FIN_FORM_LAM(F, C) FIN_FORM_C(F, C)
#define FINI_SETTINGS fin_form_settings
FINI_TABLE(static, shifted_settings, "shifted", FIELDS);

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

static void backward(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                     const double *chi, const double *z, const double *w, const double *f,
                     const double *df, double *p, double *dlam)
{
    (void)w, (void)f;
    fini_erf_backward(s->lam, s->c, n, offsets, chi, z, df, p, dlam);
}

static double value(const fin_form_settings *s, double chi)
{
    return 1 + erf(s->c + s->lam * chi);
}

/* (1 + e)^2 = 1 + 2 e + e^2. */
static void moments(const fin_form_settings *s, double mean, double sd, double m[4], double h[4])
{
    fini_erf_moments(s->lam, s->c, mean, sd, m, h);
    for (int j = 0; j < 4; j++)
        h[j] += 2 * m[j];
    h[0] += 1;
    m[0] += 1;
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
