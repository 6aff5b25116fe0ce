/* softmax: w = softmax(lam chi) over the tokens of a sample. */
#include "attention/form.h"

#include "kernel/kernel.h"
#include "task/task.h"
#include "math/small.h"

#define FIELDS(F, C)                                                                               \
    F(double, lam, FIN_AUTO, 0, 1e6,                                                               \
      "scale of the scores (inverse temperature); auto = the best known of the task: spiked "      \
      "sqrt(snr), max snr, slr that of the oracle")
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, softmax_settings, "softmax", FIELDS);

/* The exponentials of all samples are taken in one sweep, each sample's scores shifted first. */
void fini_softmax_weights(double lam, double c, int64_t n, const int64_t *offsets,
                          const double *chi, const double *norm2, double *w)
{
    int64_t base = offsets[0];
    for (int64_t l = 0; l < offsets[n] - base; l++)
        w[l] = c == 0 ? lam * chi[l] : lam * chi[l] + c * norm2[l];
    for (int64_t i = 0; i < n; i++)
        fini_softmax_shift(offsets[i + 1] - offsets[i], w + (offsets[i] - base));
    fini_kernel_get()->exp(offsets[n] - base, w, w);
    for (int64_t i = 0; i < n; i++) {
        double total = 0;
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++)
            total += w[l];
        for (int64_t l = offsets[i] - base; l < offsets[i + 1] - base; l++)
            w[l] /= total;
    }
}

/* dw_j/dscore_l = w_j (1[j=l] - w_l), so df/dscore_l = w_l (z_l - f), score = lam chi + c |X|^2. */
void fini_softmax_backward(const fin_form_settings *s, const fini_pass *t)
{
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t l = t->offsets[i] - t->offsets[0]; l < t->offsets[i + 1] - t->offsets[0];
             l++) {
            double slope = t->df[i] * t->w[l] * (t->z[l] - t->f[i]);
            t->p[l] = s->lam * slope;
            t->dlam[i] += slope * t->chi[l];
            t->dc[i] += t->norm2 ? slope * t->norm2[l] : 0;
        }
}

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    fini_softmax_weights(s->lam, 0, n, offsets, chi, NULL, w);
}

static void scores(const fin_form_settings *s, double *lam, double *c)
{
    *lam = s->lam;
    *c = 0;
}

const fin_form fini_form_softmax = {
    .name = "softmax",
    .summary = "w = softmax(lam chi)",
    .settings = &softmax_settings,
    .weights = weights,
    .backward = fini_softmax_backward,
    .scores = scores,
};
