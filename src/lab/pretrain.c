/* pretrain: masked pretraining of an encoder, then a frozen linear head from n labels, against the
 * same encoder learning everything from them.
 *
 * A sequence has the label y = <A, z> + noise. After pretraining without labels the encoder stays
 * as it is; a sequence is represented by
 *
 *     prompts   the states of hidden tokens that are asked for at each unit vector of the key (one
 *               without a key where tokens have none), side by side
 *     answers   the encoder's answers to them: what it believes of hidden values there
 *     pooled    the mean state of its tokens
 *
 * and a ridge regression of y on it, its penalty by leave-one-out, is the head. Its rivals have the
 * same n labels: the same head on an encoder with its first weights (random), and a whole encoder
 * with a pooled answer that learns by minimising the risk on the n sequences (scratch): the best of
 * some learning rates, each stopped at its best evaluation, both chosen on fresh labelled
 * sequences, which is more than it would have. What is measured is
 * E (prediction - E[y | tokens])^2. */
#include "family/family.h"
#include "lab/readout.h"

#include <math.h>
#include <string.h>

#define PRETRAIN_FIELDS(F, C)                                                                      \
    C(representation, 0, "prompts|answers|pooled",                                                 \
      "what a sequence is represented by: states of hidden tokens at unit keys, the answers to "   \
      "them, or the mean state of tokens in sight")                                                \
    F(int64_t, repetitions, 8, 2, 100000, "label sets drawn for heads")                            \
    F(int64_t, test, 2000, 2, 10000000, "sequences that heads and scratch are judged on")          \
    F(int64_t, scratch_steps, 200, 0, 1000000, "steps of scratch for every rate; 0: no scratch")   \
    F(double, scratch_rate, 1e-3, 1e-9, 100, "smallest of its learning rates")                     \
    F(int64_t, scratch_rates, 2, 1, 16, "how many, each three times the one before")

#define FIN_TABLE_STRUCT pretrain_own
FIN_TABLE_OF_ITS_OWN(own_table, "pretrain", PRETRAIN_FIELDS);

typedef struct pretrain_values {
    fini_learner_values learner;
    char labels[256];
    pretrain_own own;
} pretrain_values;

static int suits(const char *name)
{
    const fin_family *family = fin_family_find(name);
    return family && family->project;
}

static const fin_word words[] = {
    FINI_LEARNER_WORD(pretrain_values, learner, "family of exchangeable tokens with labels <A, z>",
                      .suits = suits),
    FINI_LIST("labels", pretrain_values, labels, "16,64,256,1024",
              "numbers of labelled sequences, such as 16,64,256", FIN_WORD_WHOLES),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"quotient", "after pretraining: risk / bayes of hidden values", NULL},
    {"bayes", "E Var(y | tokens): what no prediction of labels beats", NULL},
    {"variance", "Var(y): a prediction without tokens", NULL},
    {"head_few", "excess of the head at the least number of labels", NULL},
    {"scratch_few", "excess of scratch there", NULL},
    {"random_few", "excess of a head on the first weights there", NULL},
    {"head_many", "excess of the head at the greatest number of labels", NULL},
    {"scratch_many", "excess of scratch there", NULL},
    {"random_many", "excess of a head on the first weights there", NULL},
    {"wins", "share of the numbers of labels at which the head has less excess than scratch", NULL},
    {"labels", "(numbers) labelled sequences", "sequences"},
    {"head", "(numbers) excess of the head", NULL},
    {"random", "(numbers) excess of a head on the first weights", NULL},
    {"scratch", "(numbers) excess of scratch", NULL},
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    pretrain_values *v = values;
    list[(*count)++] = (fin_group){&own_table, &v->own};
    return fini_learner_groups(&v->learner, list, count, err);
}

static fin_status labels_of(const pretrain_values *v, int64_t *n, int *count, fin_error *err)
{
    FINI_TRY(fini_parse_wholes(v->labels, "labels", 4, 1000000, n, count, err));
    if (*count == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "labels: how many labelled sequences? 16,64,256 is usual");
    return FIN_OK;
}

static fin_status check(const void *values, fin_error *err)
{
    const pretrain_values *v = values;
    const fin_corpus_settings *c = &v->learner.corpus;
    int64_t n[FINI_WHOLES];
    int count;
    FINI_TRY(labels_of(v, n, &count, err));
    if (c->objective != FIN_OBJECTIVE_MASKED || c->samples > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "pretrain: pretraining is masked, on fresh sequences; leave objective and "
                         "samples out");
    if (v->learner.encoder.positions == FIN_POSITIONS_LEARNED)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "pretrain: learned positions belong to the length of pretraining; take "
                         "positions = none");
    return fini_learner_check(&v->learner, err);
}

/* ---- scratch --------------------------------------------------------------------------------- */

/* Everything from the n labels: the least excess over the rates. */
static fin_status learn_all(const pretrain_values *v, int64_t n, double *least,
                            const fin_progress *progress, fin_error *err)
{
    fin_status status = FIN_OK;
    *least = NAN;
    for (int64_t r = 0; r < v->own.scratch_rates && !status; r++) {
        fini_learner_values s = v->learner;
        fini_learner o;
        fin_evaluation e = {.distance = NAN};
        s.corpus.objective = FIN_OBJECTIVE_SUPERVISED;
        s.corpus.answer = FIN_ANSWER_VALUE;
        s.corpus.samples = n;
        s.corpus.L_least = s.corpus.L;
        s.learn.steps = v->own.scratch_steps;
        s.learn.rate = v->own.scratch_rate * pow(3, (double)r);
        s.learn.warmup = s.learn.evaluate_every = FIN_AUTO_INT;
        s.learn.patience = 1000000; /* never, but the best weights are kept */
        status = fini_learner_open(&o, &s, err);
        if (!status)
            status = fini_learner_run(o.learn, "learning from labels", progress, err);
        if (!status)
            status = fin_encoder_evaluate(o.encoder, o.corpus, FINI_READOUT_TEST, v->own.test, -1,
                                          &e, progress, err);
        *least = fmin(*least, e.distance); /* fmin: not the NaN */
        fini_learner_close(&o);
    }
    return status;
}

/* ---- heads ----------------------------------------------------------------------------------- */

typedef struct curves {
    int count;
    int64_t n[FINI_WHOLES];
    fini_average head[FINI_WHOLES], random[FINI_WHOLES];
    double scratch[FINI_WHOLES];
    double bayes, variance;
} curves;

/* Heads for every n and repetition: repetition r has labelled sequences of its own. */
static fin_status fit_heads(const pretrain_values *v, const fin_encoder *encoder,
                            const fin_corpus *corpus, curves *c, fini_average *excess,
                            const fin_progress *progress, fin_error *err)
{
    fini_readout test = {.x = NULL}, train = {.x = NULL};
    int64_t most = c->n[c->count - 1];
    fin_status status = fini_readout_make(&test, v->own.representation, encoder, corpus,
                                          FINI_READOUT_TEST, v->own.test, err);
    for (int64_t r = 0; r < v->own.repetitions && !status; r++) {
        if (fini_report(progress, "heads", (double)r, (double)v->own.repetitions))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld label sets",
                               (long long)r, (long long)v->own.repetitions);
        else
            status = fini_readout_make(&train, v->own.representation, encoder, corpus,
                                       FINI_READOUT_TRAIN + (uint64_t)(r * most), most, err);
        for (int i = 0; i < c->count && !status; i++) {
            double one = 0;
            status = fini_readout_head(&train, c->n[i], &test, &one, err);
            fini_average_add(&excess[i], one);
        }
    }
    c->bayes = test.bayes_risk;
    c->variance = test.variance;
    fini_readout_close(&train);
    fini_readout_close(&test);
    return status;
}

/* The same sequences as in pretraining's family, with labels. */
static fin_status open_labelled(const pretrain_values *v, const fini_learner *o, fin_corpus **c,
                                fin_error *err)
{
    fin_corpus_settings s = v->learner.corpus;
    s.objective = FIN_OBJECTIVE_SUPERVISED;
    s.answer = FIN_ANSWER_VALUE;
    s.L_least = s.L;
    return fin_corpus_latent(c, &s, o->latent, (uint64_t)v->learner.learn.seed, err);
}

static fin_status measure(const pretrain_values *v, fini_learner *o, curves *c,
                          fin_evaluation *masked, const fin_progress *progress, fin_error *err)
{
    fin_corpus *labelled = NULL;
    fin_status status = open_labelled(v, o, &labelled, err);
    if (!status)
        status = fit_heads(v, o->encoder, labelled, c, c->random, progress, err);
    if (!status)
        status = fini_learner_run(o->learn, "pretraining", progress, err);
    if (!status)
        status = fin_encoder_evaluate(o->encoder, o->corpus, FINI_READOUT_TEST, v->own.test, -1,
                                      masked, progress, err);
    if (!status)
        status = fit_heads(v, o->encoder, labelled, c, c->head, progress, err);
    for (int i = 0; i < c->count && v->own.scratch_steps > 0 && !status; i++)
        status = learn_all(v, c->n[i], &c->scratch[i], progress, err);
    fin_corpus_destroy(labelled);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static void add_mean(fin_result *result, const char *name, const fini_average *a)
{
    fini_result_scalar(result, name, a->mean, fini_average_error(a), FIN_HOW_SIMULATION, a->count);
}

static void add_curves(fin_result *result, const curves *c, bool scratch)
{
    double n[FINI_WHOLES], head[FINI_WHOLES], random[FINI_WHOLES];
    int64_t count = c->count, last = c->count - 1, wins = 0;
    for (int i = 0; i < c->count; i++) {
        n[i] = (double)c->n[i];
        head[i] = c->head[i].mean;
        random[i] = c->random[i].mean;
        wins += scratch && head[i] < c->scratch[i];
    }
    fini_result_series(result, "labels", FIN_F64, 1, &count, n);
    fini_result_series(result, "head", FIN_F64, 1, &count, head);
    fini_result_series(result, "random", FIN_F64, 1, &count, random);
    add_mean(result, "head_few", &c->head[0]);
    add_mean(result, "head_many", &c->head[last]);
    add_mean(result, "random_few", &c->random[0]);
    add_mean(result, "random_many", &c->random[last]);
    if (!scratch)
        return;
    fini_result_series(result, "scratch", FIN_F64, 1, &count, c->scratch);
    fini_result_scalar(result, "scratch_few", c->scratch[0], 0, FIN_HOW_RUNS, 1);
    fini_result_scalar(result, "scratch_many", c->scratch[last], 0, FIN_HOW_RUNS, 1);
    fini_result_scalar(result, "wins", (double)wins / (double)count, 0, FIN_HOW_RUNS, count);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const pretrain_values *v = values;
    curves c = {0};
    fin_evaluation e;
    FINI_AT_END(fini_learner_close) fini_learner o = {NULL, NULL, NULL, NULL, NULL};
    FINI_TRY(labels_of(v, c.n, &c.count, err));
    FINI_TRY(fini_learner_open(&o, &v->learner, err));
    FINI_TRY(measure(v, &o, &c, &e, progress, err));
    int64_t n = v->own.test;
    fini_result_scalar(result, "quotient", e.quotient, e.excess_se / e.bayes, FIN_HOW_SIMULATION,
                       n);
    fini_result_scalar(result, "bayes", c.bayes, NAN, FIN_HOW_SIMULATION, n);
    fini_result_scalar(result, "variance", c.variance, NAN, FIN_HOW_SIMULATION, n);
    add_curves(result, &c, v->own.scratch_steps > 0);
    return FIN_OK;
}

const fin_command fini_command_pretrain = {
    .name = "pretrain",
    .summary = "masked pretraining and a frozen linear head, against learning all from n labels",
    .revision = 1,
    .size = sizeof(pretrain_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
