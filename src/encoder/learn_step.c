/* One step of AdamW (Loshchilov and Hutter 2019): gradient of one batch or of several, clipped.
 *
 *     g = sum_b n_b g_b / sum_b n_b        over the batches of a step, n_b targets each: what one
 *                                          large batch would have given
 *     g <- g min(1, clip / |g|)
 *
 * and the update of kernel/layers.h, tensor by tensor. Nothing is changed before everything is
 * known to be finite, and what the update made of it is looked at, too. */
#include "encoder/encoder.h"
#include "encoder/learn.h"
#include "kernel/layers.h"

#include <math.h>
#include <string.h>

/* A gradient's number whose square still is a float. */
#define LARGEST 1e18

int64_t fini_tensor_size(const fin_tensor *tensor)
{
    int64_t n = 1;
    for (int i = 0; i < tensor->ndim; i++)
        n *= tensor->shape[i];
    return n;
}

int64_t fini_tensor_place(const fin_learn *learn, int64_t i)
{
    return (const float *)learn->tensor[i].data - fin_encoder_weights(learn->encoder);
}

/* Heads that have no targets here are left alone; so is everything but heads if only they learn. */
static bool is_trained(const fin_learn *learn, int64_t i)
{
    const char *name = learn->tensor[i].name;
    if (strncmp(name, "head.", 5) != 0)
        return learn->settings.train == FIN_LEARN_ALL;
    const char *head = fin_encoder_get_shape(learn->encoder)->head[learn->head].name;
    size_t length = strlen(head);
    return strncmp(name + 5, head, length) == 0 && name[5 + length] == '.';
}

/* ---- gradient -------------------------------------------------------------------------------- */

/* The sequences of batch number `batch` that this process has. */
static fin_status draw(fin_learn *learn, int64_t batch, fin_error *err)
{
    uint64_t place = (uint64_t)batch * (uint64_t)learn->batch + (uint64_t)learn->first;
    int64_t L = fini_learn_length(learn, batch);
    if (!learn->sample)
        return fin_corpus_draw(learn->corpus, place, learn->own, L, (uint64_t)batch, 0,
                               &learn->examples, err);
    uint64_t n = (uint64_t)learn->sample, seed = (uint64_t)learn->settings.seed;
    for (int64_t i = 0; i < learn->own; i++, place++)
        learn->order[i] = fini_learn_order(n, seed, place / n, place % n);
    return fin_corpus_pick(learn->corpus, learn->order, learn->own, L, (uint64_t)batch, 0,
                           &learn->examples, err);
}

fin_status fini_learn_gradient(fin_learn *learn, int64_t total, fin_dtype dtype,
                               const void *weights, double *gradient, double *loss, double *targets,
                               fin_error *err)
{
    fin_pass pass = {.dtype = dtype,
                     .weights = weights,
                     .blocks = learn->settings.blocks,
                     .sum = learn->sum,
                     .first = learn->first,
                     .total = total,
                     .gradient = gradient,
                     .heads_only = learn->settings.train == FIN_LEARN_HEADS};
    pass.targets[learn->head] = learn->examples.targets;
    FINI_TRY(fin_encoder_pass(learn->encoder, &learn->examples.sequences, &pass, err));
    *loss = pass.loss;
    *targets = (double)pass.head_targets[learn->head];
    return FIN_OK;
}

fin_status fini_learn_tokens(fin_learn *learn, int64_t total, double *tokens, fin_error *err)
{
    double parts[FINI_BLOCKS_MOST] = {0}, own = (double)learn->examples.tokens;
    parts[0] = own; /* in the first of its blocks; the others add nothing */
    *tokens = own;
    if (learn->ranks == 1)
        return FIN_OK;
    int64_t blocks = fini_encoder_blocks(total, learn->settings.blocks);
    return learn->sum(blocks, 1, parts, tokens, err);
}

static void weigh(int64_t n, double times, const double *from, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += times * from[i];
}

/* The gradient of a step is in learn->gradient. */
static fin_status gather(fin_learn *learn, double *loss, double *tokens, fin_error *err)
{
    int64_t n = learn->parameters, many = learn->settings.accumulate;
    double targets = 0, mean = 0, value = NAN, count, seen;
    if (many > 1)
        memset(learn->total, 0, (size_t)n * sizeof *learn->total);
    for (int64_t b = 0; b < many; b++) {
        FINI_TRY(draw(learn, learn->count[FINI_STEP] * many + b, err));
        FINI_TRY(fini_learn_tokens(learn, learn->batch, &seen, err));
        FINI_TRY(fini_learn_gradient(learn, learn->batch, FIN_F32, NULL, learn->gradient, &value,
                                     &count, err));
        *tokens += seen;
        targets += count;
        mean += count > 0 ? count * value : 0;
        if (many > 1 && count > 0)
            weigh(n, count, learn->gradient, learn->total);
    }
    if (!(targets > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "step %lld: none of its %lld sequences has a target; leave sequences "
                         "without labels out, or take a larger batch",
                         (long long)learn->count[FINI_STEP] + 1, (long long)(learn->batch * many));
    for (int64_t i = 0; many > 1 && i < n; i++)
        learn->gradient[i] = learn->total[i] / targets;
    *loss = many > 1 ? mean / targets : value;
    return FIN_OK;
}

/* ---- is it finite ---------------------------------------------------------------------------- */

static fin_status not_finite(const fin_learn *learn, const char *what, int64_t i, double loss,
                             fin_error *err)
{
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "step %lld: the %s of '%s' is not finite, or too large (loss %g); the weights "
                     "of before this step are kept. A smaller rate (now %g), a longer warm-up or "
                     "clip = 1 usually help",
                     (long long)learn->count[FINI_STEP] + 1, what, learn->tensor[i].name,
                     isnan(loss) ? NAN : loss, /* never "-nan" */
                     learn->settings.rate);
}

/* The first tensor with a weight that is not finite; -1: none. */
static int64_t bad_weight(const fin_learn *learn)
{
    const float *w = fin_encoder_weights(learn->encoder);
    for (int64_t i = 0; i < learn->tensors; i++) {
        int64_t at = fini_tensor_place(learn, i), n = fini_tensor_size(&learn->tensor[i]);
        for (int64_t j = at; j < at + n; j++)
            if (!isfinite(w[j]))
                return i;
    }
    return -1;
}

fin_status fini_learn_finite(const fin_learn *learn, double loss, const double *gradient,
                             double *norm, fin_error *err)
{
    double square = 0;
    int64_t bad = -1;
    for (int64_t i = 0; i < learn->tensors; i++) {
        int64_t at = fini_tensor_place(learn, i), n = fini_tensor_size(&learn->tensor[i]);
        double own = 0;
        for (int64_t j = at; j < at + n; j++)
            own += gradient[j] * gradient[j];
        if (bad < 0 && !(own <= 1e300))
            bad = i;
        square += own;
    }
    *norm = sqrt(square);
    if (isfinite(loss) && bad < 0)
        return FIN_OK;
    int64_t weight = bad_weight(learn);
    if (weight >= 0)
        return not_finite(learn, "weight", weight, loss, err);
    if (bad >= 0)
        return not_finite(learn, "gradient", bad, loss, err);
    const char *head = fin_encoder_get_shape(learn->encoder)->head[learn->head].name;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "step %lld: the loss of head '%s' is %g though weights and gradient are "
                     "finite; look at the targets",
                     (long long)learn->count[FINI_STEP] + 1, head, isnan(loss) ? NAN : loss);
}

/* ---- update ---------------------------------------------------------------------------------- */

static void update(fin_learn *learn, double norm)
{
    const fin_learn_settings *set = &learn->settings;
    double t = (double)learn->count[FINI_STEP] + 1;
    fini_adamw a = {.times = set->clip > 0 && norm > set->clip ? set->clip / norm : 1,
                    .rate = fini_learn_rate(learn, learn->count[FINI_STEP]),
                    .b1 = set->beta1,
                    .b2 = set->beta2,
                    .c1 = 1 - pow(set->beta1, t),
                    .c2 = 1 - pow(set->beta2, t)};
    float *w = fin_encoder_weights(learn->encoder);
    for (int64_t i = 0; i < learn->tensors; i++) {
        int64_t at = fini_tensor_place(learn, i);
        if (!is_trained(learn, i))
            continue;
        a.decay = learn->tensor[i].ndim > 1 ? set->decay : 0; /* matrices only */
        fini_adamw_update(&a, fini_tensor_size(&learn->tensor[i]), learn->gradient + at, w + at,
                          learn->moment_first + at, learn->moment_second + at);
    }
}

/* Weights and moments are kept before an update, and come back if it failed. */
static void exchange(fin_learn *learn, bool back)
{
    float *const own[] = {fin_encoder_weights(learn->encoder), learn->moment_first,
                          learn->moment_second};
    size_t size = (size_t)learn->parameters * sizeof(float);
    for (int64_t i = 0; i < 3; i++) {
        float *kept = learn->keep + i * learn->parameters;
        memcpy(back ? own[i] : kept, back ? kept : own[i], size);
    }
}

fin_status fini_learn_adamw(fin_learn *learn, fin_error *err)
{
    double loss = NAN, norm = 0, tokens = 0, clip = learn->settings.clip;
    FINI_TRY(gather(learn, &loss, &tokens, err));
    FINI_TRY(fini_learn_finite(learn, loss, learn->gradient, &norm, err));
    if (!(fmin(norm, clip > 0 ? clip : norm) <= LARGEST))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "step %lld: the gradient's norm is %g, too large for AdamW in single "
                         "precision; the weights of before this step are kept, and clip = 1 "
                         "usually helps",
                         (long long)learn->count[FINI_STEP] + 1, norm);
    exchange(learn, false);
    update(learn, norm);
    int64_t bad = bad_weight(learn);
    if (bad >= 0) {
        exchange(learn, true);
        return not_finite(learn, "new weight", bad, loss, err);
    }
    learn->count[FINI_STEP]++;
    learn->count[FINI_SINCE]++;
    learn->number[FINI_TOKENS_SEEN] += tokens;
    learn->number[FINI_LOSS_SUM] += loss;
    learn->number[FINI_NORM_SUM] += norm;
    learn->last_loss = loss;
    return FIN_OK;
}
