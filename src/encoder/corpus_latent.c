/* Corpora of families of exchangeable tokens, and what Bayes' rule says about them.
 *
 * masked: L tokens in sight, then M hidden ones, which are the family's queries: their columns are
 * the key, zeros for the value, and the value is the target. The Bayes prediction is the posterior
 * predictive given the tokens in sight.
 *
 * supervised: L tokens and a label (corpus_label.c).
 *
 * Categories are one-hot: a covariate of a key, an outcome of a value. */
#include "encoder/corpus.h"

#include "family/family.h"

#include <math.h>
#include <string.h>

/* Columns of a token for a key and a value. */
static int64_t key_columns(const fin_latent *latent)
{
    return latent->family->key_categories ? latent->settings.covariates : latent->shape.dk;
}

static int64_t value_columns(const fin_latent *latent)
{
    return latent->family->value_categories ? latent->shape.outcomes : latent->shape.dv;
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool has_label(const fin_family *family)
{
    return family->finite || family->project;
}

static fin_status check(const fin_corpus *c, fin_error *err)
{
    const fin_latent *latent = c->latent;
    const fin_family *family = latent->family;
    const fin_corpus_settings *s = &c->settings;
    if (!c->masked && s->L_least < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "corpus: L%s = %lld; a sequence with a label needs at least one token",
                         s->L < 1 ? "" : "_least", (long long)(s->L < 1 ? s->L : s->L_least));
    if (!c->masked && !has_label(family)) {
        char names[256];
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s has no label to learn; %s have one, and objective = masked works with "
                         "every family",
                         family->name, fini_families_that(has_label, names, sizeof names));
    }
    return fini_latent_check_sizes(latent, 1, s->L, c->masked ? s->M : 0, err);
}

static fin_status resolve(fin_corpus *c, const void *source, fin_error *err)
{
    const fin_latent *latent = c->latent = source;
    const fin_latent_shape *shape = &latent->shape;
    FINI_TRY(check(c, err));
    c->shape.values = value_columns(latent);
    c->shape.inputs = key_columns(latent) + c->shape.values;
    c->longest = c->settings.L + (c->masked ? c->settings.M : 0);
    c->sequences = c->settings.samples;
    c->posterior = shape->posterior;
    c->bayes = !latent->silent;
    bool by_class = latent->family->finite;
    if (c->masked) {
        fini_corpus_head(c, shape->dv, shape->outcomes);
        c->variance = shape->outcomes == 0;
        return FIN_OK;
    }
    fini_corpus_head(c, 1, by_class ? latent->settings.concepts : 0);
    c->variance = !by_class;
    return by_class ? FIN_OK : fini_corpus_direction(c, err);
}

fin_status fin_corpus_latent(fin_corpus **corpus, const fin_corpus_settings *settings,
                             const fin_latent *latent, uint64_t seed, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, corpus, latent);
    return fini_corpus_open(corpus, &fini_corpus_kind_latent, settings, latent, seed, err);
}

/* ---- work ------------------------------------------------------------------------------------ */

static int64_t hidden_tokens(const fin_corpus *c)
{
    return c->masked ? c->settings.M : 0;
}

static fin_status length_of(const fin_corpus *c, uint64_t number, uint64_t epoch, int64_t L,
                            int64_t *length, fin_error *err)
{
    (void)number, (void)epoch;
    *length = L + hidden_tokens(c);
    if (*length < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = 0; a sequence with a label needs at least one token");
    return fini_latent_check_sizes(c->latent, 1, L, hidden_tokens(c), err);
}

/* Of one thread: the sequence in double, its prediction, and what the family works with. */
typedef struct scratch {
    double *keys, *values, *queries, *answers, *z, *mean, *variance, *statistic, *posterior, *rest;
} scratch;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Doubles that the family works with. */
static int64_t room_of(const fin_corpus *c, int64_t L, bool bayes, bool posterior)
{
    const fin_latent *latent = c->latent;
    int64_t M = hidden_tokens(c);
    int64_t room = latent->family->linear ? latent->shape.features
                                          : latent->family->room(latent, L, M); /* to draw */
    if (bayes)
        room = larger(room, fini_latent_predict_room(latent, L, M));
    if (posterior)
        room = larger(room, latent->family->room(latent, L, 0));
    return room;
}

/* Doubles; cuts `work` if it is not NULL. Where nobody asks for the posterior there is no room for
 * it: it may be a matrix of all features. */
static int64_t cut(const fin_corpus *c, int64_t L, bool bayes, bool posterior, double *work,
                   scratch *s)
{
    const fin_latent_shape *shape = &c->latent->shape;
    int64_t M = hidden_tokens(c), used = 0;
    posterior = posterior || (bayes && !c->masked);
    const int64_t size[10] = {L * shape->dk,
                              L * shape->dv,
                              M * shape->dk,
                              M * shape->dv,
                              shape->latent,
                              M * fini_latent_width(c->latent),
                              M,
                              posterior ? shape->statistic : 0,
                              posterior ? shape->posterior : 0,
                              room_of(c, L, bayes && c->masked, posterior)};
    double **part[10] = {&s->keys, &s->values,   &s->queries,   &s->answers,   &s->z,
                         &s->mean, &s->variance, &s->statistic, &s->posterior, &s->rest};
    for (int i = 0; i < 10; i++) {
        *part[i] = work ? work + used : NULL;
        used += (size[i] + 7) / 8 *
                8; /* aligned as memory is elsewhere: bits of some BLAS depend on it */
    }
    return used;
}

static int64_t work_of(const fin_corpus *c, int64_t L, int64_t length, int flags)
{
    scratch s;
    (void)length;
    return cut(c, L, c->bayes && (flags & FIN_EXAMPLES_BAYES),
               c->posterior > 0 && (flags & FIN_EXAMPLES_POSTERIOR), NULL, &s);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* n rows of numbers, or of one-hot categories, into columns at .. of tokens. */
static bool put(int64_t n, int64_t width, const double *rows, bool categories, int64_t inputs,
                float *at)
{
    bool good = true;
    for (int64_t l = 0; l < n; l++, at += inputs)
        for (int64_t j = 0; j < width; j++) {
            if (categories) {
                at[(int64_t)rows[l * width + j]] = 1;
            } else {
                at[j] = (float)rows[l * width + j];
                good = good && isfinite(at[j]);
            }
        }
    return good;
}

static fin_status put_tokens(const fin_corpus *c, const fini_example *e, const scratch *s,
                             fin_error *err)
{
    const fin_latent *latent = c->latent;
    const fin_latent_shape *shape = &latent->shape;
    bool key = latent->family->key_categories, value = latent->family->value_categories;
    int64_t inputs = c->shape.inputs, keys = inputs - c->shape.values, L = e->L;
    memset(e->tokens, 0, (size_t)(e->length * inputs) * sizeof *e->tokens);
    bool good = put(L, shape->dk, s->keys, key, inputs, e->tokens);
    good = put(L, shape->dv, s->values, value, inputs, e->tokens + keys) && good;
    good = put(e->length - L, shape->dk, s->queries, key, inputs, e->tokens + L * inputs) && good;
    if (!good)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "%s: a number of sequence %llu is larger than 3.4e38, the most that a "
                         "token can hold; take a smaller prior or noise",
                         latent->family->name, (unsigned long long)e->number);
    return FIN_OK;
}

/* ---- masked ---------------------------------------------------------------------------------- */

/* Variance of each of an answer's numbers (their mean), given the tokens in sight. */
static double answer_variance(const fin_latent *latent, const double *mean, double variance)
{
    return latent->family->answer_variance ? latent->family->answer_variance(latent, mean, variance)
                                           : variance + latent->settings.noise;
}

static void put_nan(int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = NAN;
}

static fin_status predict_hidden(const fin_corpus *c, const fini_example *e, const scratch *s,
                                 fin_error *err)
{
    const fin_latent *latent = c->latent;
    int64_t M = c->settings.M, L = e->L, width = fini_latent_width(latent);
    int64_t answers = fin_head_answers(&c->shape.head[0]);
    bool outcomes = latent->shape.outcomes > 0;
    const fini_query asked = {M, s->queries, s->mean, outcomes ? NULL : s->variance};
    FINI_TRY(fini_latent_predict_one(latent, L, s->keys, s->values, &asked, s->rest, err));
    put_nan(L * answers, e->bayes);
    if (e->variance)
        put_nan(L, e->variance);
    for (int64_t q = 0; q < M; q++) {
        const double *mean = s->mean + q * width;
        double *bayes = e->bayes + (L + q) * answers;
        if (outcomes) {
            fini_corpus_answer_classes(width, mean, bayes);
            continue;
        }
        e->variance[L + q] = answer_variance(latent, mean, s->variance[q]);
        fini_corpus_answer(c, mean, e->variance[L + q], bayes);
    }
    return FIN_OK;
}

static fin_status draw_masked(const fin_corpus *c, const fini_example *e, const scratch *s,
                              fin_error *err)
{
    int64_t L = e->L, M = c->settings.M, dv = c->latent->shape.dv;
    memset(e->hidden, 0, (size_t)L);
    memset(e->hidden + L, 1, (size_t)M);
    put_nan(L * dv, e->targets);
    memcpy(e->targets + L * dv, s->answers, (size_t)(M * dv) * sizeof *e->targets);
    return e->bayes ? predict_hidden(c, e, s, err) : FIN_OK;
}

/* ---- one sequence ---------------------------------------------------------------------------- */

static fin_status find_posterior(const fin_corpus *c, int64_t L, const scratch *s, fin_error *err)
{
    const fin_latent *latent = c->latent;
    memset(s->statistic, 0, (size_t)latent->shape.statistic * sizeof *s->statistic);
    latent->family->accumulate(latent, L, s->keys, s->values, s->statistic, s->rest);
    return latent->family->posterior(latent, s->statistic, s->posterior, s->rest, err);
}

static fin_status draw(const fin_corpus *c, const fini_example *e, double *work, fin_error *err)
{
    const fin_latent *latent = c->latent;
    scratch s;
    cut(c, e->L, e->bayes, e->posterior, work, &s);
    fini_sequence sequence = {.seed = latent->seed,
                              .sample = e->number,
                              .L = e->L,
                              .Q = hidden_tokens(c),
                              .keys = s.keys,
                              .values = s.values,
                              .queries = s.queries,
                              .answers = s.answers,
                              .z = latent->shape.latent ? s.z : NULL};
    fin_status status = fini_latent_draw_one(latent, &sequence, s.rest, err);
    if (status || (status = put_tokens(c, e, &s, err)))
        return status;
    bool label = !c->masked && e->bayes;
    if ((e->posterior || label) && (status = find_posterior(c, e->L, &s, err)))
        return status;
    if (e->posterior)
        memcpy(e->posterior, s.posterior, (size_t)c->posterior * sizeof *s.posterior);
    if (c->masked)
        return draw_masked(c, e, &s, err);
    fini_corpus_label(c, e, s.z);
    if (label)
        fini_corpus_label_bayes(c, e, s.posterior);
    return FIN_OK;
}

const fini_corpus_kind fini_corpus_kind_latent = {
    .resolve = resolve, .length = length_of, .work = work_of, .draw = draw};
