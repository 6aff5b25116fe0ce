/* Corpora of sequences in the caller's memory: bags, patches of images. Their tokens are copied,
 * so that hiding some never touches the caller's.
 *
 * masked: round(share L) of the L tokens, at least one, chosen uniformly by Floyd's algorithm from
 * (seed, epoch, number): the same sequence hides others in the next epoch. With readout = pooled
 * they are not in the sequence at all, and at least one token is left.
 * supervised: round((keep + (1 - keep) u) L) tokens are shown, at least one; u is uniform. */
#include "encoder/corpus.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

/* ---- checks ---------------------------------------------------------------------------------- */

static fin_status check_shape(const fin_memory *m, bool masked, fin_error *err)
{
    int64_t numbers;
    if (m->n < 1 || m->inputs < 1 || !m->offsets || !m->tokens)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: %lld sequences with %lld columns%s; at least one of each is needed",
                         (long long)m->n, (long long)m->inputs,
                         m->offsets && m->tokens ? "" : ", and no arrays");
    if (m->values < 0 || m->values > m->inputs)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: %lld of the %lld columns of a token are its value; it must be from "
                         "0 to %lld",
                         (long long)m->values, (long long)m->inputs, (long long)m->inputs);
    if (masked && m->values == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: no column of a token is its value, so that there is nothing to "
                         "hide; give at least one value column, or take objective = supervised");
    if (m->offsets[0] != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "data: offsets begin with %lld; they must with 0",
                         (long long)m->offsets[0]);
    for (int64_t i = 0; i < m->n; i++)
        if (m->offsets[i + 1] <= m->offsets[i])
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "data: sequence %lld goes from token %lld to %lld; every sequence "
                             "needs at least one token",
                             (long long)i, (long long)m->offsets[i], (long long)m->offsets[i + 1]);
    if (__builtin_mul_overflow(m->offsets[m->n], m->inputs, &numbers) ||
        numbers > INT64_MAX / (int64_t)sizeof(double))
        return fini_fail(err, FIN_ERR_ARGUMENT, "data: %lld tokens of %lld columns are too many",
                         (long long)m->offsets[m->n], (long long)m->inputs);
    return FIN_OK;
}

static fin_status check_tokens(const fin_memory *m, fin_error *err)
{
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t at = m->offsets[i] * m->inputs; at < m->offsets[i + 1] * m->inputs; at++)
            if (!isfinite(m->tokens[at]))
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "data: token %lld of sequence %lld has %g in column %lld; all "
                                 "numbers must be finite",
                                 (long long)(at / m->inputs - m->offsets[i]), (long long)i,
                                 (double)m->tokens[at], (long long)(at % m->inputs));
    return FIN_OK;
}

/* NaN is no label; but one at least must be there. */
static fin_status check_labels(const fin_memory *m, int64_t n, fin_error *err)
{
    int64_t labels = 0;
    if (!m->labels)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: there are no labels to learn; give them, or take objective = "
                         "masked, which needs none");
    if (m->classes < 0 || m->classes == 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: %lld classes; at least 2 are needed, or 0 for labels that are "
                         "numbers",
                         (long long)m->classes);
    for (int64_t i = 0; i < n; i++) {
        double y = m->labels[i];
        if (isnan(y))
            continue;
        labels++;
        if (m->classes > 0 && !(y >= 0 && y < (double)m->classes && y == floor(y)))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "data: the label of sequence %lld is %g; it must be a class, a whole "
                             "number from 0 to %lld, or NaN where there is none",
                             (long long)i, y, (long long)(m->classes - 1));
        if (isinf(y))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "data: the label of sequence %lld is infinite; it must be a finite "
                             "number, or NaN where there is none",
                             (long long)i);
    }
    if (labels == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "data: none of the %lld sequences has a label; objective = masked needs "
                         "none",
                         (long long)n);
    return FIN_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int64_t hidden_of(const fin_corpus *c, int64_t L)
{
    int64_t count = (int64_t)floor(c->settings.share * (double)L + 0.5);
    int64_t most = c->by_token ? L : L - 1;
    return count < 1 ? 1 : count > most ? most : count;
}

/* One answer with the values of all tokens. Its loss is the mean over the hidden numbers, so that
 * rates that fit one kind of readout are not far off for the other. */
static fin_status pool_values(fin_corpus *c, fin_error *err)
{
    fin_head *head = &c->shape.head[0];
    for (int64_t i = 0; i < c->sequences; i++) {
        int64_t L = c->memory.offsets[i + 1] - c->memory.offsets[i];
        if (L != c->longest || L < 2)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "data: sequence %lld has %lld tokens and the longest %lld; readout = "
                             "pooled needs sequences of the same length, of at least 2 tokens, and "
                             "readout = tokens takes all",
                             (long long)i, (long long)L, (long long)c->longest);
    }
    if (__builtin_mul_overflow(c->longest, c->memory.values, &head->size))
        return fini_fail(err, FIN_ERR_ARGUMENT, "data: %lld tokens with %lld values are too many",
                         (long long)c->longest, (long long)c->memory.values);
    head->weight = 1 / ((double)hidden_of(c, c->longest) * (double)c->memory.values);
    return FIN_OK;
}

static fin_status resolve(fin_corpus *c, const void *source, fin_error *err)
{
    const fin_memory *m = &c->memory;
    c->memory = *(const fin_memory *)source;
    fin_status status = check_shape(m, c->masked, err);
    if (status)
        return status;
    int64_t samples = c->settings.samples;
    c->sequences = samples > 0 && samples < m->n ? samples : m->n;
    for (int64_t i = 0; i < c->sequences; i++) {
        int64_t L = m->offsets[i + 1] - m->offsets[i];
        c->longest = L > c->longest ? L : c->longest;
    }
    c->settings.L = c->settings.L_least = c->longest;
    c->shape.inputs = m->inputs;
    c->shape.values = m->values;
    fini_corpus_head(c, c->masked ? m->values : 1, c->masked ? 0 : m->classes);
    if (c->masked && !c->by_token && (status = pool_values(c, err)))
        return status;
    if (!c->masked && (status = check_labels(m, c->sequences, err)))
        return status;
    return check_tokens(m, err);
}

fin_status fin_corpus_memory(fin_corpus **corpus, const fin_corpus_settings *settings,
                             const fin_memory *memory, uint64_t seed, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, corpus, memory);
    return fini_corpus_open(corpus, &fini_corpus_kind_memory, settings, memory, seed, err);
}

/* ---- one sequence ---------------------------------------------------------------------------- */

static int64_t index_of(const fin_corpus *c, uint64_t number)
{
    return (int64_t)(number % (uint64_t)c->sequences);
}

static int64_t length_in_memory(const fin_corpus *c, uint64_t number)
{
    int64_t i = index_of(c, number);
    return c->memory.offsets[i + 1] - c->memory.offsets[i];
}

/* The epoch enters the key of the random numbers times an odd constant, so that no two epochs share
 * one. */
static void open_random(const fin_corpus *c, uint64_t number, uint64_t epoch, fin_random *r)
{
    fin_random_open(r, c->seed ^ (epoch * UINT64_C(0x9e3779b97f4a7c15)),
                    c->masked ? FINI_STREAM_CORPUS_HIDING : FINI_STREAM_CORPUS_KEEPING, number);
}

/* Tokens of L that are left out, the random numbers being at their beginning. */
static int64_t left_out(const fin_corpus *c, uint64_t number, int64_t L, fin_random *r)
{
    double keep = c->settings.keep;
    if (c->masked)
        return c->by_token ? 0 : hidden_of(c, L);
    if (keep >= 1 || number >= FIN_TEST_FIRST)
        return 0;
    keep += (1 - keep) * fin_random_uniform(r);
    int64_t shown = (int64_t)floor(keep * (double)L + 0.5);
    return L - (shown < 1 ? 1 : shown);
}

static fin_status length_of(const fin_corpus *c, uint64_t number, uint64_t epoch, int64_t L,
                            int64_t *length, fin_error *err)
{
    fin_random r;
    (void)err;
    open_random(c, number, epoch, &r);
    L = length_in_memory(c, number);
    *length = L - left_out(c, number, L, &r);
    return FIN_OK;
}

/* Flags of the tokens, where they are not those of the sequence itself. */
static int64_t work_of(const fin_corpus *c, int64_t L, int64_t length, int flags)
{
    (void)L, (void)length, (void)flags;
    return c->by_token ? 0 : c->longest / (int64_t)sizeof(double) + 1;
}

/* Floyd's algorithm, with the flags themselves as the set. */
static void choose(fin_random *r, int64_t L, int64_t count, uint8_t *flags)
{
    memset(flags, 0, (size_t)L);
    for (int64_t j = L - count; j < L; j++) {
        int64_t place = fin_random_below(r, j + 1);
        flags[flags[place] ? j : place] = 1;
    }
}

/* The values of hidden tokens become targets and zeros. */
static void move_values(const fin_corpus *c, const fini_example *e)
{
    int64_t values = c->shape.values, inputs = c->shape.inputs;
    for (int64_t l = 0; l < e->length; l++) {
        float *value = e->tokens + l * inputs + inputs - values;
        double *target = e->targets + l * values;
        for (int64_t j = 0; j < values; j++) {
            target[j] = e->hidden[l] ? (double)value[j] : NAN;
            if (e->hidden[l])
                value[j] = 0;
        }
    }
}

/* Tokens without a flag are copied; values of those with one are targets (or not wanted). */
static void leave_out(const fin_corpus *c, const fini_example *e, const float *from, int64_t L,
                      const uint8_t *flags)
{
    int64_t values = c->shape.values, inputs = c->shape.inputs;
    float *to = e->tokens;
    for (int64_t l = 0; l < L; l++, from += inputs) {
        for (int64_t j = 0; c->masked && j < values; j++)
            e->targets[l * values + j] = flags[l] ? (double)from[inputs - values + j] : NAN;
        if (flags[l])
            continue;
        memcpy(to, from, (size_t)inputs * sizeof *to);
        to += inputs;
    }
}

static fin_status draw(const fin_corpus *c, const fini_example *e, double *work, fin_error *err)
{
    const fin_memory *m = &c->memory;
    int64_t i = index_of(c, e->number), L = length_in_memory(c, e->number);
    const float *from = m->tokens + m->offsets[i] * m->inputs;
    fin_random r;
    (void)err;
    open_random(c, e->number, e->epoch, &r);
    if (c->by_token) {
        memcpy(e->tokens, from, (size_t)(L * m->inputs) * sizeof *from);
        choose(&r, L, hidden_of(c, L), e->hidden);
        move_values(c, e);
        return FIN_OK;
    }
    uint8_t *flags = (uint8_t *)work;
    choose(&r, L, left_out(c, e->number, L, &r), flags);
    leave_out(c, e, from, L, flags);
    if (!c->masked)
        e->targets[0] = m->labels[i];
    return FIN_OK;
}

const fini_corpus_kind fini_corpus_kind_memory = {
    .resolve = resolve, .length = length_of, .work = work_of, .draw = draw};
