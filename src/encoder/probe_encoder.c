/* Probes of an encoder: rows of representations and of what is to be read from them, a fit on some
 * sequences and its score on others.
 *
 * Families and tasks have fresh sequences for both parts, far from those of training and of
 * evaluations. Data without a second corpus are cut at random: as many sequences as asked for, or
 * all of them in that proportion. A head of an encoder can be set to the probe of what it reads: the
 * mean of the end. */
#include "encoder/corpus.h"
#include "encoder/learn.h"
#include "encoder/probe.h"

#include "random/streams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 };
#define FRESH_TRAIN (FIN_TEST_FIRST + (UINT64_C(1) << 44))
#define FRESH_TEST (FIN_TEST_FIRST + (UINT64_C(1) << 45))

typedef struct probing {
    const fin_encoder *encoder;
    const fin_probe_settings *settings;
    fini_features features; /* tokens: a row for every hidden token */
    int64_t width, columns, classes;
    bool tokens;
    int flags;
    const fin_progress *progress;
    const char *what; /* for progress */
    double done, total;
} probing;

/* Rows of one part. */
typedef struct part {
    const fin_corpus *corpus;
    int64_t n, rows;
    uint64_t *number; /* (n) */
    double *x, *y;    /* (rows, width), (rows, columns) or (rows) classes */
} part;

static void close_part(part *p)
{
    fini_free_all(p->number, p->x, p->y);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static fin_status check_shapes(const fin_encoder *encoder, const fin_corpus *corpus, fin_error *err)
{
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    if (shape->inputs == corpus->shape.inputs && shape->values == corpus->shape.values)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "probe: tokens have %lld columns, %lld of them the value's, but the encoder "
                     "takes %lld and %lld",
                     (long long)corpus->shape.inputs, (long long)corpus->shape.values,
                     (long long)shape->inputs, (long long)shape->values);
}

static fin_status find_target(probing *o, const fin_corpus *corpus, fin_error *err)
{
    const fin_head *head = &corpus->shape.head[0];
    int target = o->settings->target;
    if (target == FIN_PROBE_LABEL && corpus->masked)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: a masked corpus has no labels; make it with objective = "
                         "supervised, or read the posterior");
    if (target == FIN_PROBE_BAYES && !corpus->bayes)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "probe: there is no Bayes prediction for this corpus; read the label");
    o->columns = target == FIN_PROBE_LABEL || target == FIN_PROBE_BAYES ? head->size
                 : target == FIN_PROBE_MEAN ? fini_corpus_posterior_mean(corpus, NULL, NULL)
                                            : corpus->posterior;
    if (o->columns == 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "probe: this corpus has no posterior in finitely many numbers; take "
                         "target = bayes (families) or target = label");
    o->classes = target == FIN_PROBE_LABEL && head->kind == FIN_HEAD_CLASSES ? head->size : 0;
    o->tokens = target == FIN_PROBE_BAYES && corpus->masked;
    o->flags = target == FIN_PROBE_LABEL   ? 0
               : target == FIN_PROBE_BAYES ? FIN_EXAMPLES_BAYES
                                           : FIN_EXAMPLES_POSTERIOR;
    return FIN_OK;
}

/* The target of a row of the examples (a token or a sequence); false if it has none. */
static bool read_target(const probing *o, const fin_corpus *corpus, const fin_examples *e,
                        int64_t row, double *y)
{
    const fin_head *head = &corpus->shape.head[0];
    switch (o->settings->target) {
    case FIN_PROBE_LABEL:
        *y = e->targets[row];
        return !isnan(*y);
    case FIN_PROBE_BAYES:
        memcpy(y, e->bayes + row * fin_head_answers(head), (size_t)o->columns * sizeof *y);
        return true;
    case FIN_PROBE_MEAN:
        fini_corpus_posterior_mean(corpus, e->z + row * e->z_size, y);
        return true;
    default:
        memcpy(y, e->z + row * e->z_size, (size_t)o->columns * sizeof *y);
        return true;
    }
}

/* ---- which sequences ------------------------------------------------------------------------- */

/* Numbers of the sequences of data that have a target, in random order; NULL: no memory. They are
 * those that show all tokens, whatever learning does. */
static uint64_t *shuffled(const probing *o, const fin_corpus *c, int64_t *count)
{
    uint64_t *number = fini_alloc_array(c->sequences, sizeof *number);
    *count = 0;
    for (int64_t i = 0; number && i < c->sequences; i++)
        if (o->settings->target != FIN_PROBE_LABEL || !isnan(c->memory.labels[i]))
            number[(*count)++] = fini_corpus_whole(c) + (uint64_t)i;
    fin_random r;
    fin_random_open(&r, c->seed, FINI_STREAM_PROBE, 0);
    if (number)
        fini_random_shuffle(&r, *count, (int64_t *)number);
    return number;
}

static fin_status take_numbers(part *p, const uint64_t *from, uint64_t first, fin_error *err)
{
    if (p->n < 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: %lld sequences are left for fitting or judging it; each needs at "
                         "least 2",
                         (long long)p->n);
    FINI_ROOM(err, "numbers of sequences", p->number, p->n, 1);
    for (int64_t i = 0; i < p->n; i++)
        p->number[i] = from ? from[i] : first + (uint64_t)i;
    return FIN_OK;
}

static fin_status choose_one(const probing *o, part *p, int64_t want, uint64_t fresh,
                             fin_error *err)
{
    int64_t count;
    p->n = want;
    if (p->corpus->kind != &fini_corpus_kind_memory)
        return take_numbers(p, NULL, fresh, err);
    FINI_FREED uint64_t *number = shuffled(o, p->corpus, &count);
    if (!number)
        return fini_fail_memory(err, (size_t)p->corpus->sequences * sizeof *number,
                                "numbers of sequences");
    p->n = want < count ? want : count;
    return take_numbers(p, number, 0, err);
}

/* Both parts from one set of data. */
static fin_status cut_data(const probing *o, part *train, part *test, fin_error *err)
{
    int64_t count;
    FINI_FREED uint64_t *number = shuffled(o, train->corpus, &count);
    if (!number)
        return fini_fail_memory(err, (size_t)train->corpus->sequences * sizeof *number,
                                "numbers of sequences");
    double share = (double)o->settings->train / (double)(o->settings->train + o->settings->test);
    bool enough = count - o->settings->test >= o->settings->train;
    train->n = enough ? o->settings->train : (int64_t)floor(share * (double)count + 0.5);
    test->n = enough ? o->settings->test : count - train->n;
    FINI_TRY(take_numbers(train, number, 0, err));
    return take_numbers(test, number + train->n, 0, err);
}

static fin_status choose(const probing *o, part *train, part *test, fin_error *err)
{
    if (train->corpus == test->corpus && train->corpus->kind == &fini_corpus_kind_memory)
        return cut_data(o, train, test, err);
    FINI_TRY(choose_one(o, train, o->settings->train, FRESH_TRAIN, err));
    return choose_one(o, test, o->settings->test, FRESH_TEST, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Representations of the examples, (rows, width); caller frees. */
static fin_status represent(const probing *o, const fin_examples *e, double **states,
                            fin_error *err)
{
    int64_t rows = o->tokens ? e->tokens : e->sequences.n;
    FINI_ROOM(err, "representations", *states, rows, o->width);
    return fini_features_of(&o->features, e, *states, err);
}

static fin_status add_rows(const probing *o, part *p, const fin_examples *e, fin_error *err)
{
    FINI_FREED double *states = NULL;
    int64_t width = o->classes > 0 ? 1 : o->columns;
    FINI_TRY(represent(o, e, &states, err));
    for (int64_t row = 0; row < (o->tokens ? e->tokens : e->sequences.n); row++) {
        if (o->tokens && !e->sequences.hidden[row])
            continue;
        if (!read_target(o, p->corpus, e, row, p->y + p->rows * width))
            continue;
        memcpy(p->x + p->rows * o->width, states + row * o->width,
               (size_t)o->width * sizeof *states);
        p->rows++;
    }
    return FIN_OK;
}

static fin_status take_rows(const probing *o, part *p, fin_error *err)
{
    int64_t most, numbers, width = o->width > o->columns ? o->width : o->columns;
    if (__builtin_mul_overflow(p->n, o->tokens ? p->corpus->settings.M : 1, &most) ||
        __builtin_mul_overflow(most, width, &numbers))
        return fini_fail(err, FIN_ERR_ARGUMENT, "probe: %lld sequences are too many",
                         (long long)p->n);
    p->x = fini_alloc_array(most * o->width, sizeof *p->x);
    p->y = fini_alloc_array(most * o->columns, sizeof *p->y);
    return p->x && p->y
               ? FIN_OK
               : fini_fail_memory(err, (size_t)(most * width) * sizeof *p->x, "a probe's rows");
}

static fin_status make_rows(probing *o, part *p, fin_error *err)
{
    fin_examples e = {0};
    fin_status status = take_rows(o, p, err);
    for (int64_t from = 0; from < p->n && !status; from += CHUNK) {
        int64_t n = p->n - from < CHUNK ? p->n - from : CHUNK;
        status = fin_corpus_pick(p->corpus, p->number + from, n, -1, 0, o->flags, &e, err);
        if (!status)
            status = add_rows(o, p, &e, err);
        o->done += (double)n;
        if (!status && fini_report(o->progress, o->what, o->done, o->total))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %.0f of %.0f sequences",
                               o->done, o->total);
    }
    fin_examples_close(&e);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static fin_status fit_and_score(const probing *o, const part *train, const part *test,
                                fin_probe_score *score, double *column_r2, int64_t room,
                                fin_error *err)
{
    fin_probe *probe = NULL;
    fin_status status = fin_probe_fit(&probe, train->rows, o->width, train->x, o->classes,
                                      o->columns, train->y, o->settings->penalty, err);
    score->train = train->rows;
    if (!status)
        status = fin_probe_judge(probe, test->rows, test->x, test->y, score, column_r2, room, err);
    fin_probe_destroy(probe);
    return status;
}

static fin_status prepare(probing *o, const fin_corpus *train, const fin_corpus *test,
                          fin_error *err)
{
    int64_t layers = fin_encoder_get_settings(o->encoder)->layers;
    fin_status status = fin_settings_validate(&fin_probe_table, o->settings, err);
    if (status || (status = check_shapes(o->encoder, train, err)) ||
        (status = check_shapes(o->encoder, test, err)))
        return status;
    if (o->settings->layer > layers)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: layer = %lld; the encoder has %lld, -1 is the last, and -2 all",
                         (long long)o->settings->layer, (long long)layers);
    o->total = (double)(o->settings->train + o->settings->test);
    probing other = *o;
    if ((status = find_target(o, train, err)) || (status = find_target(&other, test, err)))
        return status;
    if (other.columns != o->columns || other.classes != o->classes || other.tokens != o->tokens)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: %lld columns or classes to learn, but %lld to be judged by",
                         (long long)o->columns, (long long)other.columns);
    int64_t layer = o->settings->layer;
    o->features = (fini_features){.encoder = o->encoder,
                                  .first = layer == -2 ? 0
                                           : layer < 0 ? layers
                                                       : layer,
                                  .last = layer < 0 ? layers : layer,
                                  .pool = o->settings->pool,
                                  .tokens = o->tokens,
                                  .longest = fin_corpus_longest(train)};
    o->width = fini_features_width(&o->features);
    return FIN_OK;
}

fin_status fin_encoder_probe_on(const fin_encoder *encoder, const fin_corpus *corpus,
                                const fin_corpus *test, const fin_probe_settings *settings,
                                fin_probe_score *score, double *column_r2, int64_t room,
                                const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, encoder, corpus, score);
    fin_probe_settings defaults;
    fin_settings_defaults(&fin_probe_table, &defaults, sizeof defaults);
    probing o = {.encoder = encoder,
                 .settings = settings ? settings : &defaults,
                 .progress = progress,
                 .what = "probe"};
    FINI_AT_END(close_part) part fitted = {.corpus = corpus};
    FINI_AT_END(close_part) part judged = {.corpus = test ? test : corpus};
    FINI_TRY(prepare(&o, fitted.corpus, judged.corpus, err));
    FINI_TRY(choose(&o, &fitted, &judged, err));
    FINI_TRY(make_rows(&o, &fitted, err));
    FINI_TRY(make_rows(&o, &judged, err));
    return fit_and_score(&o, &fitted, &judged, score, column_r2, room, err);
}

/* ---- the head of an encoder ------------------------------------------------------------------- */

static fin_status load_head(fin_encoder *encoder, const fin_head *head, const fin_probe *probe,
                            fin_error *err)
{
    int64_t width = fin_encoder_get_settings(encoder)->width;
    FINI_OWN(err, "a head", double, W, head->size, width + 1);
    double *b = W + head->size * width;
    char name[sizeof head->name + 8];
    fin_tensor tensors[2];
    fini_tensor_list l = {tensors, 0, 2};
    fini_probe_weights(probe, W, b);
    snprintf(name, sizeof name, "head.%s", head->name);
    fini_tensor_put(&l, name, ".weight", FIN_F64, head->size, width, W);
    fini_tensor_put(&l, name, ".bias", FIN_F64, head->size, 0, b);
    return fin_encoder_load(encoder, tensors, 2, 1, NULL, err);
}

/* All sequences with all their tokens: under numbers from FIN_TEST_FIRST on. */
fin_status fin_encoder_start_head(fin_encoder *encoder, const fin_corpus *corpus, double penalty,
                                  const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, encoder, corpus);
    const fin_probe_settings settings = {.target = FIN_PROBE_LABEL, .pool = FIN_POOL_MEAN};
    int64_t h, layers = fin_encoder_get_settings(encoder)->layers;
    FINI_TRY(fini_learn_head(encoder, corpus, &h, err));
    const fin_head *head = &fin_encoder_get_shape(encoder)->head[h];
    probing o = {.encoder = encoder,
                 .settings = &settings,
                 .features = {.encoder = encoder, .first = layers, .last = layers},
                 .columns = 1,
                 .classes = head->kind == FIN_HEAD_CLASSES ? head->size : 0,
                 .progress = progress,
                 .what = "head"};
    part all = {.corpus = corpus, .n = fin_corpus_sequences(corpus)};
    fin_probe *probe = NULL;
    if (corpus->masked || all.n == 0 || head->kind == FIN_HEAD_GAUSSIAN)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "a head starts at a probe for labels of data, classes or numbers without "
                         "variances");
    o.width = fini_features_width(&o.features);
    o.total = (double)all.n;
    fin_status status = take_numbers(&all, NULL, fini_corpus_whole(corpus), err);
    if (!status)
        status = make_rows(&o, &all, err);
    if (!status)
        status = fin_probe_fit(&probe, all.rows, o.width, all.x, o.classes, 1, all.y, penalty, err);
    if (!status)
        status = load_head(encoder, head, probe, err);
    fin_probe_destroy(probe);
    close_part(&all);
    return status;
}
