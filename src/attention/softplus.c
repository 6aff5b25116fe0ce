/* softplus, normalised: w_l = softplus(lam chi_l) / sum_j softplus(lam chi_j).
 *
 * softplus(x) = log(1 + e^x) = max(x, 0) + log1p(exp(-|x|)). Where every score of a sample is below
 * -37 it is e^x to double precision and may underflow, so there the weights are softmax's. */
#include "attention/form.h"

#include "kernel/kernel.h"

#include <math.h>

#define FIELDS(F, C) FIN_FORM_LAM(F, C)
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, softplus_settings, "softplus", FIELDS);

static const double far_below = -37; /* e^-37 < 2^-53 */

static double top_score(double lam, int64_t from, int64_t to, const double *chi)
{
    double top = -INFINITY;
    for (int64_t l = from; l < to; l++)
        top = lam * chi[l] > top ? lam * chi[l] : top;
    return top;
}

static void softplus(double lam, int64_t tokens, const double *chi, double *out)
{
    const fini_kernel *kernel = fini_kernel_get();
    for (int64_t l = 0; l < tokens; l++)
        out[l] = -fabs(lam * chi[l]);
    kernel->exp(tokens, out, out);
    kernel->log1p(tokens, out, out);
    for (int64_t l = 0; l < tokens; l++)
        out[l] += lam * chi[l] > 0 ? lam * chi[l] : 0;
}

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)norm2;
    softplus(s->lam, offsets[n] - offsets[0], chi, w);
    for (int64_t i = 0; i < n; i++) {
        int64_t from = offsets[i] - offsets[0], to = offsets[i + 1] - offsets[0];
        if (top_score(s->lam, from, to, chi) < far_below) {
            fini_softmax_weights(s->lam, 0, 1, offsets + i, chi + from, NULL, w + from);
            continue;
        }
        double total = 0;
        for (int64_t l = from; l < to; l++)
            total += w[l];
        for (int64_t l = from; l < to; l++)
            w[l] /= total;
    }
}

/* With s_l = softplus, S their sum: df/dchi_l = lam sigmoid(lam chi_l) (z_l - f) / S, and
 * sigmoid(x) = 1 - exp(-softplus(x)). */
static void backward(const fin_form_settings *s, const fini_pass *t)
{
    softplus(s->lam, t->offsets[t->n] - t->offsets[0], t->chi, t->p);
    for (int64_t i = 0; i < t->n; i++) {
        int64_t from = t->offsets[i] - t->offsets[0], to = t->offsets[i + 1] - t->offsets[0];
        bool far = top_score(s->lam, from, to, t->chi) < far_below; /* softmax: sigmoid / S = w */
        double total = 0;
        for (int64_t l = from; l < to; l++)
            total += t->p[l];
        for (int64_t l = from; l < to; l++) {
            double share = far ? t->w[l] : -expm1(-t->p[l]) / total;
            double slope = t->df[i] * share * (t->z[l] - t->f[i]);
            t->p[l] = s->lam * slope;
            t->dlam[i] += slope * t->chi[l];
        }
    }
}

const fin_form fini_form_softplus = {
    .name = "softplus",
    .summary = "w_l = softplus(lam chi_l) / sum",
    .settings = &softplus_settings,
    .weights = weights,
    .backward = backward,
};
