/* linear attention: w_l = 1 + lam chi_l. */
#include "attention/form.h"

#define FIELDS(F, C) FIN_FORM_LAM(F, C)
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, linear_settings, "linear", FIELDS);

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    for (int64_t l = 0; l < offsets[n] - offsets[0]; l++)
        w[l] = 1 + s->lam * chi[l];
}

static void backward(const fin_form_settings *s, const fini_pass *t)
{
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t l = t->offsets[i] - t->offsets[0]; l < t->offsets[i + 1] - t->offsets[0];
             l++) {
            double slope = t->df[i] * t->z[l];
            t->p[l] = s->lam * slope;
            t->dlam[i] += slope * t->chi[l];
        }
}

static double value(const fin_form_settings *s, double chi)
{
    return 1 + s->lam * chi;
}

static void moments(const fin_form_settings *s, double mean, double sd, double m[4], double h[4])
{
    double w = 1 + s->lam * mean;
    m[0] = w;
    m[1] = s->lam;
    m[2] = m[3] = 0;
    h[0] = w * w + s->lam * s->lam * sd * sd;
    h[1] = 2 * s->lam * w;
    h[2] = 2 * s->lam * s->lam;
    h[3] = 0;
}

const fin_form fini_form_linear = {
    .name = "linear",
    .summary = "w_l = 1 + lam chi_l",
    .settings = &linear_settings,
    .elementwise = 1,
    .weights = weights,
    .backward = backward,
    .value = value,
    .moments = moments,
};
