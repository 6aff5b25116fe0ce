/* What a probe reads: representations of tokens, or of sequences, after one layer or after all of
 * them side by side.
 *
 *     mean     over the visible tokens (over all if all are hidden), which a pass does itself
 *     max      of each number over the same tokens
 *     both     mean, then max
 *     tokens   all tokens one after another in their order; sequences have the same length then
 *
 * Layers are passed one after the other: that takes the first ones again for the later ones, but no
 * memory for more than one. */
#include "encoder/probe.h"

#include <string.h>

enum { MEAN, MAX };

int64_t fini_features_width(fini_features *f)
{
    const fin_encoder_settings *s = fin_encoder_get_settings(f->encoder);
    int64_t times = f->tokens                    ? 1
                    : f->pool == FIN_POOL_TOKENS ? f->longest
                    : f->pool == FIN_POOL_BOTH   ? 2
                                                 : 1;
    f->one = times * s->width; /* at most 2^20 2^13 */
    f->width = (f->last - f->first + 1) * f->one;
    return f->width;
}

/* ---- one sequence ---------------------------------------------------------------------------- */

static void pool(int kind, int64_t L, int64_t w, const double *x, const uint8_t *hidden, double *to)
{
    int64_t count = 0;
    bool all = true;
    for (int64_t l = 0; hidden && l < L; l++)
        all = all && hidden[l];
    all = all || !hidden;
    for (int64_t l = 0; l < L; l++) {
        if (!all && hidden[l])
            continue;
        for (int64_t j = 0; j < w; j++) {
            double *t = &to[j], v = x[l * w + j];
            *t = count == 0 ? v : kind == MEAN ? *t + v : v > *t ? v : *t;
        }
        count++;
    }
    for (int64_t j = 0; kind == MEAN && j < w; j++)
        to[j] /= (double)count;
}

static void place(const fini_features *f, const fin_sequences *s, int64_t i, const double *states,
                  double *to)
{
    int64_t w = fin_encoder_get_settings(f->encoder)->width, at = s->offsets[i];
    int64_t L = s->offsets[i + 1] - at;
    const double *x = states + at * w;
    const uint8_t *hidden = s->hidden ? s->hidden + at : NULL;
    if (f->pool == FIN_POOL_TOKENS) {
        memcpy(to, x, (size_t)(L * w) * sizeof *to);
        return;
    }
    if (f->pool != FIN_POOL_MAX)
        pool(MEAN, L, w, x, hidden, to);
    if (f->pool != FIN_POOL_MEAN)
        pool(MAX, L, w, x, hidden, f->pool == FIN_POOL_BOTH ? to + w : to);
}

static fin_status check_lengths(const fini_features *f, const fin_sequences *s, fin_error *err)
{
    for (int64_t i = 0; !f->tokens && f->pool == FIN_POOL_TOKENS && i < s->n; i++)
        if (s->offsets[i + 1] - s->offsets[i] != f->longest)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "probe: pool = tokens puts tokens one after another, and sequences "
                             "differ in length (%lld and %lld tokens); take mean, max or both",
                             (long long)(s->offsets[i + 1] - s->offsets[i]), (long long)f->longest);
    return FIN_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

fin_status fini_features_of(const fini_features *f, const fin_examples *e, double *x,
                            fin_error *err)
{
    const fin_sequences *s = &e->sequences;
    int64_t w = fin_encoder_get_settings(f->encoder)->width, rows = f->tokens ? e->tokens : s->n;
    FINI_TRY(check_lengths(f, s, err));
    FINI_OWN(err, "representations", double, states, e->tokens, w);
    for (int64_t layer = f->first; layer <= f->last; layer++) {
        fin_pass pass = {.dtype = FIN_F32, .layer = layer};
        bool mean = !f->tokens && f->pool == FIN_POOL_MEAN;
        *(mean ? &pass.pooled : &pass.states) = states;
        FINI_TRY(fin_encoder_pass(f->encoder, s, &pass, err));
        for (int64_t i = 0; i < rows; i++) {
            double *to = x + i * f->width + (layer - f->first) * f->one;
            if (f->tokens || mean)
                memcpy(to, states + i * w, (size_t)w * sizeof *to);
            else
                place(f, s, i, states, to);
        }
    }
    return FIN_OK;
}
