/* L-BFGS on a fixed sample, in double precision: for small models, whose minimum is wanted to many
 * digits. The search is that of fits to bags (math/lbfgs.c): every process takes the same
 * steps, and a loss that is not a number is a step that was too long. One iteration is one step. */
#include "encoder/learn.h"

#include <math.h>
#include <string.h>

/* Small enough, relative to the first gradient and to the loss. */
#define RELATIVE 1e-9
#define DECREASE 1e-13

/* Loss and gradient at x. */
static fin_status value(void *user, const double *x, double *loss, double *gradient, fin_error *err)
{
    fin_learn *o = user;
    double targets;
    FINI_TRY(fini_learn_gradient(o, o->sample, FIN_F64, x, gradient, loss, &targets, err));
    if (!(targets > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT, "none of the %lld sequences has a target",
                         (long long)o->sample);
    return FIN_OK;
}

fin_status fini_learn_lbfgs_open(fin_learn *learn, fin_error *err)
{
    FINI_TRY(fini_lbfgs_create(&learn->search, learn->parameters, err));
    fini_lbfgs *s = &learn->search;
    s->iterations = learn->settings.steps;
    s->relative = RELATIVE;
    s->decrease = DECREASE;
    s->function = value;
    s->user = learn;
    FINI_TRY(fin_corpus_draw(learn->corpus, (uint64_t)learn->first, learn->own, -1, 0, 0,
                             &learn->examples, err));
    return fini_learn_tokens(learn, learn->sample, &learn->sample_tokens, err);
}

void fini_learn_lbfgs_save(fin_learn *learn)
{
    const fini_lbfgs *s = &learn->search;
    learn->count[FINI_KEPT] = s->kept;
    learn->count[FINI_NEWEST] = s->newest;
    learn->count[FINI_EVALUATIONS] = s->evaluations;
    learn->number[FINI_VALUE] = s->value;
    learn->number[FINI_ENOUGH] = s->enough;
    memcpy(learn->number + FINI_PAST, s->past, sizeof s->past);
}

void fini_learn_lbfgs_load(fin_learn *learn)
{
    fini_lbfgs *s = &learn->search;
    s->done = learn->count[FINI_STEP];
    s->kept = learn->count[FINI_KEPT];
    s->newest = learn->count[FINI_NEWEST];
    s->evaluations = learn->count[FINI_EVALUATIONS];
    s->value = learn->number[FINI_VALUE];
    s->enough = learn->number[FINI_ENOUGH];
    memcpy(s->past, learn->number + FINI_PAST, sizeof s->past);
}

static fin_status begin(fin_learn *learn, fin_error *err)
{
    const float *w = fin_encoder_weights(learn->encoder);
    double norm;
    for (int64_t i = 0; i < learn->parameters; i++)
        learn->x[i] = (double)w[i];
    FINI_TRY(fini_lbfgs_begin(&learn->search, learn->x, err));
    return fini_learn_finite(learn, learn->search.value, learn->search.g, &norm, err);
}

fin_status fini_learn_lbfgs(fin_learn *learn, fin_error *err)
{
    fini_lbfgs *s = &learn->search;
    int64_t before = learn->count[FINI_EVALUATIONS];
    float *w = fin_encoder_weights(learn->encoder);
    bool more;
    double square = 0;
    FINI_TRY(before ? FIN_OK : begin(learn, err));
    FINI_TRY(fini_lbfgs_next(s, learn->x, &more, err));
    fini_learn_lbfgs_save(learn);
    learn->number[FINI_TOKENS_SEEN] += learn->sample_tokens * (double)(s->evaluations - before);
    learn->last_loss = s->value;
    if (!more) { /* it was there before this step */
        learn->count[FINI_STOPPED] = 1;
        return FIN_OK;
    }
    for (int64_t i = 0; i < learn->parameters; i++) {
        w[i] = (float)learn->x[i];
        square += s->g[i] * s->g[i];
    }
    learn->count[FINI_STEP]++;
    learn->count[FINI_SINCE]++;
    learn->number[FINI_LOSS_SUM] += s->value;
    learn->number[FINI_NORM_SUM] += sqrt(square);
    return FIN_OK;
}
