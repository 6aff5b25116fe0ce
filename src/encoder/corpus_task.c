/* Corpora of single-location regression: the label is y, nothing is masked. With the posterior w of
 * the location, Bayes' prediction is sum_l w_l X_l.v*, and its variance
 *
 *     sum_l w_l (X_l.v*)^2 - prediction^2 + eps^2      (one relevant token, m = 1) */
#include "encoder/corpus.h"

#include "task/task.h"

#include <math.h>

static fin_status check(const fin_corpus *c, fin_error *err)
{
    if (c->masked)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s: its tokens are independent, so that the others tell nothing of a "
                         "hidden one; take objective = supervised, or a family of tokens",
                         fin_task_kind_name(fin_task_get_kind(c->task)));
    if (!fin_task_k_star(c->task))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "the task has no vectors to draw tokens with; make it with FIN_TASK_AMBIENT");
    int64_t numbers;
    if (__builtin_mul_overflow(c->longest, c->shape.inputs, &numbers) || numbers > FIN_NORMALS_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a sequence of L = %lld tokens in d = %lld dimensions has more than 2^33 "
                         "numbers",
                         (long long)c->longest, (long long)c->shape.inputs);
    return FIN_OK;
}

static fin_status resolve(fin_corpus *c, const void *source, fin_error *err)
{
    const fin_task *task = c->task = source;
    const fin_task_settings *s = fin_task_get_settings(task);
    c->longest = fin_task_longest(task);
    c->shape.inputs = s->d;
    c->sequences = c->settings.samples;
    c->settings.L = c->settings.L_least = c->longest;
    c->bayes = c->variance = s->m == 1 && s->gamma > 0;
    fini_corpus_head(c, 1, 0);
    return check(c, err);
}

fin_status fin_corpus_task(fin_corpus **corpus, const fin_corpus_settings *settings,
                           const fin_task *task, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, corpus, task);
    return fini_corpus_open(corpus, &fini_corpus_kind_task, settings, task, 0, err);
}

static fin_status length_of(const fin_corpus *c, uint64_t number, uint64_t epoch, int64_t L,
                            int64_t *length, fin_error *err)
{
    int64_t offsets[2];
    (void)epoch, (void)L;
    fin_status status = fin_task_offsets(c->task, number, 1, offsets, err);
    *length = status ? 0 : offsets[1];
    return status;
}

static int64_t work_of(const fin_corpus *c, int64_t L, int64_t length, int flags)
{
    (void)c, (void)L;
    return flags & FIN_EXAMPLES_BAYES ? length : 0; /* the posterior of the location */
}

static fin_status predict(const fin_corpus *c, const fini_example *e, double *w, fin_error *err)
{
    int64_t offsets[2] = {0, e->length}, d = c->shape.inputs;
    fin_batch batch = {.n = 1, .d = d, .dtype = FIN_F32, .tokens = e->tokens, .offsets = offsets};
    FINI_TRY(fin_task_posterior(c->task, &batch, w, err));
    const double *v_star = fin_task_v_star(c->task);
    double mean = 0, spread = 0, eps = fin_task_get_settings(c->task)->eps;
    for (int64_t l = 0; l < e->length; l++) {
        double z = 0;
        for (int64_t j = 0; j < d; j++)
            z += (double)e->tokens[l * d + j] * v_star[j];
        mean += w[l] * z;
        spread += w[l] * z * z;
    }
    *e->variance = fmax(spread - mean * mean, 0) + eps * eps;
    fini_corpus_answer(c, &mean, *e->variance, e->bayes);
    return FIN_OK;
}

static fin_status draw(const fin_corpus *c, const fini_example *e, double *work, fin_error *err)
{
    int64_t offsets[2] = {0, e->length};
    FINI_TRY(
        fin_task_draw(c->task, e->number, 1, FIN_F32, offsets, e->tokens, e->targets, NULL, err));
    return !e->bayes ? FIN_OK : predict(c, e, work, err);
}

const fini_corpus_kind fini_corpus_kind_task = {
    .resolve = resolve, .length = length_of, .work = work_of, .draw = draw};
