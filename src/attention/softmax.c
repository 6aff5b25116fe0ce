/* softmax: w = softmax(lam chi) over the tokens of a sample. */
#include "attention/form.h"

#include "kernel/kernel.h"

#include <math.h>

#define FIELDS(F, C) FIN_FORM_LAM(F, C)
#define FINI_SETTINGS fin_form_settings
FINI_TABLE(static, softmax_settings, "softmax", FIELDS);

/* The largest score of a sample is subtracted first, so the largest exponential is 1 and the sum is
 * neither zero nor infinite. The exponentials of all samples are taken in one sweep. */
void fini_softmax_weights(double lam, double c, int64_t n, const int64_t *offsets,
                          const double *chi, const double *norm2, double *w)
{
    int64_t base = offsets[0];
    for (int64_t i = 0; i < n; i++) {
        double top = -INFINITY;
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++) {
            w[l] = c == 0 ? lam * chi[l] : lam * chi[l] + c * norm2[l];
            top = w[l] > top ? w[l] : top;
        }
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++)
            w[l] -= top;
    }
    fini_kernel_get()->exp(offsets[n] - base, w, w);
    for (int64_t i = 0; i < n; i++) {
        double total = 0;
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++)
            total += w[l];
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++)
            w[l] /= total;
    }
}

/* dw_j/dchi_l = lam w_j (1[j=l] - w_l), so df/dchi_l = lam w_l (z_l - f). */
void fini_softmax_backward(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                           const double *chi, const double *z, const double *w, const double *f,
                           const double *df, double *p, double *dlam)
{
    for (int64_t i = 0; i < n; i++) {
        dlam[i] = 0;
        for (int64_t l = offsets[i] - offsets[0]; l < offsets[i + 1] - offsets[0]; l++) {
            double slope = df[i] * w[l] * (z[l] - f[i]);
            p[l] = s->lam * slope;
            dlam[i] += chi[l] * slope;
        }
    }
}

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    fini_softmax_weights(s->lam, 0, n, offsets, chi, NULL, w);
}

const fin_form fini_form_softmax = {
    .name = "softmax",
    .summary = "w = softmax(lam chi)",
    .settings = &softmax_settings,
    .weights = weights,
    .backward = fini_softmax_backward,
};
