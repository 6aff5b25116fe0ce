/* An encoder that learns: the object, and the loop over steps.
 *
 * The loop is: step, evaluation if one is due, report. Whatever fails or is cancelled, the state is
 * that of a whole number of steps, and the next call goes on from there; an evaluation that is
 * missing is made first. */
#include "encoder/corpus.h"
#include "encoder/encoder.h"
#include "encoder/learn.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_learn_settings
FIN_TABLE(, fin_learn_table, "learn", FIN_LEARN_FIELDS);

/* ---- fitting together ------------------------------------------------------------------------ */

/* Does an encoder fit a corpus? Its head with the corpus's name must be what the corpus has targets
 * for, and tokens must be those that it was made for: a head that is not there, or answers with
 * something else, is refused before anything is computed. */

static const char *kind_name(const fin_head *head)
{
    static const char *const names[] = {"numbers", "numbers with variances", "classes"};
    return names[head->kind];
}

fin_status fini_learn_head(const fin_encoder *encoder, const fin_corpus *corpus, int64_t *head,
                           fin_error *err)
{
    const fin_encoder_shape *own = fin_encoder_get_shape(encoder);
    const fin_encoder_settings *set = fin_encoder_get_settings(encoder);
    fin_encoder_shape asked;
    fin_corpus_get_shape(corpus, &asked);
    if (own->inputs != asked.inputs || own->values != asked.values)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the encoder was made for tokens of %lld columns, %lld of them values; "
                         "these sequences have %lld and %lld",
                         (long long)own->inputs, (long long)own->values, (long long)asked.inputs,
                         (long long)asked.values);
    int64_t longest = fin_corpus_longest(corpus);
    if (set->positions == FIN_POSITIONS_LEARNED && set->longest < longest)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the encoder has learned positions for %lld tokens; the longest of these "
                         "sequences has %lld",
                         (long long)set->longest, (long long)longest);
    const fin_corpus_settings *c = fin_corpus_get_settings(corpus);
    bool some =
        c->objective == FIN_OBJECTIVE_MASKED ? asked.head[0].where == FIN_HEAD_POOLED : c->keep < 1;
    if (set->positions != FIN_POSITIONS_NONE && some)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "with %s tokens are left out and the others lose their places, which the "
                         "encoder has positions for; take positions = none, and key columns that "
                         "say where a token is",
                         c->objective == FIN_OBJECTIVE_MASKED ? "readout = pooled" : "keep < 1");
    const fin_head *want = &asked.head[0];
    for (*head = 0; *head < own->heads; ++*head) {
        const fin_head *have = &own->head[*head];
        if (strcmp(have->name, want->name) != 0)
            continue;
        if (have->kind == want->kind && have->where == want->where && have->size == want->size)
            return FIN_OK;
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the head '%s' of the encoder answers with %lld %s for %s; these "
                         "sequences ask for %lld %s for %s",
                         want->name, (long long)have->size, kind_name(have),
                         have->where == FIN_HEAD_TOKENS ? "each token" : "a sequence",
                         (long long)want->size, kind_name(want),
                         want->where == FIN_HEAD_TOKENS ? "each token" : "a sequence");
    }
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "the encoder has no head '%s', which these sequences have targets for; its "
                     "first head is '%s'",
                     want->name, own->head[0].name);
}

/* ---- making ---------------------------------------------------------------------------------- */

static fin_status check_processes(const fin_learn *o, fin_error *err)
{
    if (o->ranks < 1 || o->rank < 0 || o->rank >= o->ranks)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "process %d of %d; they count from 0, and alone it is 0 of 1", o->rank,
                         o->ranks);
    if (o->ranks > 1 && !o->sum)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d processes and no sum over them; fin_ranks_sum is one", o->ranks);
    bool adam = o->settings.optimizer == FIN_OPTIMIZER_ADAMW;
    int64_t blocks = fini_encoder_blocks(adam ? o->batch : o->sample, o->settings.blocks);
    if (o->ranks > blocks)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d processes share %lld blocks of sequences, so that some have nothing "
                         "to do; more blocks (at most 64, and not more than a batch has "
                         "sequences) or fewer processes work",
                         o->ranks, (long long)blocks);
    return FIN_OK;
}

#define TOKENS_MOST 0x1p28 /* of a batch, which is drawn whole: 6 GB with one value and five keys */

/* What is learnt from: fresh sequences, a sample of them, or all that there are. */
static fin_status check_sample(fin_learn *o, fin_error *err)
{
    const fin_learn_settings *set = &o->settings;
    int64_t samples = fin_corpus_get_settings(o->corpus)->samples, most;
    int64_t there = fin_corpus_sequences(o->corpus);
    o->sample = samples;
    if (there > 0 && (samples == 0 || there < samples))
        o->sample = there;
    o->batch = o->sample > 0 && o->sample < set->batch ? o->sample : set->batch;
    if (set->optimizer == FIN_OPTIMIZER_LBFGS && o->sample == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L-BFGS needs a fixed sample, and samples = 0 means fresh sequences for "
                         "every step; samples = 1000 is usual for small models");
    double tokens = (double)o->batch * (double)fin_corpus_longest(o->corpus);
    if (tokens > TOKENS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a batch of %lld sequences of up to %lld tokens has %.3g tokens, and 2^28 "
                         "is the most; a smaller batch with accumulate makes the same step",
                         (long long)o->batch, (long long)fin_corpus_longest(o->corpus), tokens);
    int64_t limit = o->sample > 0 ? INT64_C(1) << 60 : (int64_t)FIN_TEST_FIRST;
    if (__builtin_mul_overflow(set->steps, set->accumulate, &most) ||
        __builtin_mul_overflow(most, o->batch, &most) || most > limit)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld steps of %lld x %lld sequences are more than there are numbers for "
                         "(2^52); fewer steps, please",
                         (long long)set->steps, (long long)set->accumulate, (long long)o->batch);
    return FIN_OK;
}

static void layout(fin_learn *o)
{
    const fin_learn_settings *set = &o->settings;
    fini_arena *a = &o->arena;
    int64_t n = o->parameters;
    o->tensor = fini_take(a, o->tensors, sizeof *o->tensor);
    o->count = fini_take(a, FINI_COUNTS, sizeof *o->count);
    o->number = fini_take(a, FINI_NUMBERS, sizeof *o->number);
    o->best = set->patience > 0 ? fini_take(a, n, sizeof *o->best) : NULL;
    if (set->optimizer == FIN_OPTIMIZER_LBFGS) {
        o->x = fini_take(a, n, sizeof *o->x);
        return;
    }
    o->gradient = fini_take(a, n, sizeof *o->gradient);
    o->total = set->accumulate > 1 ? fini_take(a, n, sizeof *o->total) : NULL;
    o->moment_first = fini_take(a, n, sizeof *o->moment_first);
    o->moment_second = fini_take(a, n, sizeof *o->moment_second);
    o->keep = fini_take(a, n, 3 * sizeof *o->keep);
    o->order = o->sample > 0 ? fini_take(a, o->own, sizeof *o->order) : NULL;
}

static fin_status set_up(fin_learn *o, fin_error *err)
{
    const fin_learn_settings *set = &o->settings;
    bool adam = set->optimizer == FIN_OPTIMIZER_ADAMW;
    fin_encoder_share(adam ? o->batch : o->sample, set->blocks, o->rank, o->ranks, &o->first,
                      &o->own);
    o->warmup = set->warmup == FIN_AUTO_INT ? set->steps / 20 : set->warmup;
    o->every = set->evaluate_every != FIN_AUTO_INT ? set->evaluate_every
               : set->steps > 20                   ? set->steps / 20
                                                   : 1;
    o->parameters = fin_encoder_parameters(o->encoder);
    o->tensors = fin_encoder_tensors(o->encoder, NULL, 0);
    FINI_LAY_OUT(err, &o->arena, "the state of learning", layout(o));
    fin_encoder_tensors(o->encoder, o->tensor, o->tensors);
    o->number[FINI_BEST] = INFINITY;
    o->last_loss = NAN;
    return adam ? FIN_OK : fini_learn_lbfgs_open(o, err);
}

fin_status fin_learn_create(fin_learn **learn, const fin_learn_settings *settings,
                            fin_encoder *encoder, const fin_corpus *corpus, const fin_corpus *test,
                            fin_sum sum, int rank, int ranks, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, learn, encoder, corpus);
    int64_t head;
    FINI_MAKE(err, "the state of learning", fin_learn, o);
    *o = (fin_learn){.encoder = encoder,
                     .corpus = corpus,
                     .test = test ? test : corpus,
                     .sum = sum,
                     .rank = rank,
                     .ranks = ranks};
    if (settings)
        o->settings = *settings;
    else
        fin_settings_defaults(&fin_learn_table, &o->settings, sizeof o->settings);
    fin_status status = fin_settings_validate(&fin_learn_table, &o->settings, err);
    if (!status)
        status = check_sample(o, err);
    if (!status)
        status = check_processes(o, err);
    if (!status)
        status = fini_learn_head(encoder, corpus, &o->head, err);
    if (!status)
        status = fini_learn_head(encoder, o->test, &head, err);
    if (!status)
        status = set_up(o, err);
    FINI_HAND_OVER(learn, o, status, fin_learn_destroy);
}

void fin_learn_destroy(fin_learn *learn)
{
    if (!learn)
        return;
    fin_examples_close(&learn->examples);
    fini_lbfgs_close(&learn->search);
    fini_free_all(learn->row, learn->row_numbers);
    fini_arena_close(&learn->arena);
    fini_free(learn);
}

/* ---- what it is ------------------------------------------------------------------------------ */

int64_t fin_learn_step(const fin_learn *learn)
{
    return learn ? learn->count[FINI_STEP] : 0;
}

int fin_learn_done(const fin_learn *learn)
{
    return learn &&
           (learn->count[FINI_STOPPED] || learn->count[FINI_STEP] >= learn->settings.steps) &&
           !fini_learn_due(learn);
}

int64_t fin_learn_log(const fin_learn *learn, const fin_learn_row **rows)
{
    if (rows)
        *rows = learn ? learn->row : NULL;
    return learn ? learn->rows : 0;
}

const fin_learn_settings *fin_learn_get_settings(const fin_learn *learn)
{
    return learn ? &learn->settings : NULL;
}

/* ---- learning -------------------------------------------------------------------------------- */

static fin_status tell(const fin_learn *o, fin_learn_hook hook, void *user, int evaluated,
                       fin_error *err)
{
    int64_t step = o->count[FINI_STEP];
    fin_learn_report report = {.step = step,
                               .steps = o->settings.steps,
                               .loss = o->last_loss,
                               .rate = step ? fini_learn_rate(o, step - 1) : 0,
                               .tokens = o->number[FINI_TOKENS_SEEN],
                               .row = o->rows ? &o->row[o->rows - 1] : NULL,
                               .evaluated = evaluated};
    if (hook && hook(user, &report))
        return fini_fail(err, FIN_ERR_CANCELLED, "learning was stopped after step %lld of %lld",
                         (long long)step, (long long)o->settings.steps);
    return FIN_OK;
}

fin_status fin_learn_run(fin_learn *learn, int64_t until, fin_learn_hook hook, void *user,
                         fin_error *err)
{
    FINI_NEED(err, learn);
    int64_t steps = learn->settings.steps, end = until < 0 || until > steps ? steps : until;
    bool adam = learn->settings.optimizer == FIN_OPTIMIZER_ADAMW;
    fin_status status = FIN_OK;
    if (fini_learn_due(learn))
        status = fini_learn_evaluate(learn, err);
    while (!status && !learn->count[FINI_STOPPED] && learn->count[FINI_STEP] < end) {
        status = adam ? fini_learn_adamw(learn, err) : fini_learn_lbfgs(learn, err);
        if (status)
            break;
        bool due = fini_learn_due(learn);
        if (due)
            status = fini_learn_evaluate(learn, err);
        if (!status)
            status = tell(learn, hook, user, due, err);
    }
    return status;
}
