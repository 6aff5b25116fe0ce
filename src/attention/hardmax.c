/* hardmax: the token with the largest chi, softmax at zero temperature. Equal scores share. */
#include "attention/form.h"

#include <math.h>

/* No settings: a scale would change nothing. */
static const fin_settings hardmax_settings = {"hardmax", NULL, 0, sizeof(fin_form_settings)};

void fini_hardmax_weights(int64_t n, const int64_t *offsets, const double *chi, double *w)
{
    for (int64_t i = 0; i < n; i++) {
        double top = -INFINITY;
        int64_t from = offsets[i] - offsets[0], to = offsets[i + 1] - offsets[0], count = 0;
        for (int64_t l = from; l < to; l++)
            top = chi[l] > top ? chi[l] : top;
        for (int64_t l = from; l < to; l++)
            count += chi[l] == top;
        for (int64_t l = from; l < to; l++)
            w[l] = chi[l] == top ? 1.0 / (double)count : 0;
    }
}

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    (void)s, (void)norm2;
    fini_hardmax_weights(n, offsets, chi, w);
}

/* Piecewise constant: the scores have no gradient almost everywhere. */
static void backward(const fin_form_settings *s, const fini_pass *t)
{
    (void)s;
    for (int64_t l = 0; l < t->offsets[t->n] - t->offsets[0]; l++)
        t->p[l] = 0;
}

static void scores(const fin_form_settings *s, double *lam, double *c)
{
    (void)s;
    *lam = INFINITY;
    *c = 0;
}

const fin_form fini_form_hardmax = {
    .name = "hardmax",
    .summary = "the value at the largest chi",
    .settings = &hardmax_settings,
    .weights = weights,
    .backward = backward,
    .scores = scores,
};
