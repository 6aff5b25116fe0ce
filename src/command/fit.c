/* fit: attention fitted to finitely many bags of a task, judged on fresh ones.
 *
 * Each trial draws its own directions k*, v*, n = ratio * d training bags and `test` others, fits a
 * model (fin_fit_create) and compares its predictions and its locations with the truth and with
 * the Bayes prediction, which knows the task. Test bags are shared by all of them, so that what the
 * fit loses over Bayes is a mean of differences. */
#include "command/command.h"

#include "finetti/bags.h"

#include <math.h>
#include <string.h>

#define FIT_FIELDS(F, C)                                                                           \
    F(double, ratio, 10, 0.02, 1e6, "training bags over the dimension d")                          \
    F(int64_t, trials, 4, 2, 100000, "directions and training sets drawn")                         \
    F(int64_t, test, 10000, 100, 100000000, "bags that a trial is judged on")

#define FIN_TABLE_STRUCT fit_own
FIN_TABLE_OF_ITS_OWN(own_table, "fit", FIT_FIELDS);

typedef struct fit_values {
    char task[32];
    fin_task_settings task_settings;
    fin_fit_settings fit;
    fit_own own;
} fit_values;

static const fin_word words[] = {
    FIN_WORD("task", fit_values, task, "spiked", "generative model"),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"risk", "mean squared error on test bags", NULL},
    {"mean", "that of the mean of the training labels on the same bags", NULL},
    {"bayes", "that of the Bayes prediction on the same bags", NULL},
    {"excess", "risk - bayes, from the same bags", NULL},
    {"quotient", "risk / bayes", NULL},
    {"cosine_k", "mean |cosine| of the fitted key and k* (softmax, erf, linear, mixture)", NULL},
    {"cosine_v", "the same for the value and v*", NULL},
    {"least_cosine_k", "the smallest of all trials", NULL},
    {"least_cosine_v", "the same for v", NULL},
    {"ece",
     "expected calibration error of the tokens' probabilities, 15 bins, of each trial's model, "
     "their "
     "mean; for models that have a location",
     NULL},
    {"found", "share of test bags in which the responsible token has the largest probability",
     NULL},
    {"covered", "share of test labels inside their 90 % interval", NULL},
    {"bags", "training bags", "bags"},
    {NULL, NULL, NULL},
};

enum {
    BINS = 15,
    CHUNK = 2000,
    EXCESS = 2,
    COSINE_K = 3,
    COSINE_V = 4,
    FOUND = 5,
    ECE = 6,
    MEAN = 7,
    COVERED = 8,
    ROWS = 9
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    fit_values *v = values;
    list[(*count)++] = (fin_group){&own_table, &v->own};
    FINI_TRY(fin_word_group("task", v->task, &v->task_settings, list, count, err));
    list[(*count)++] = (fin_group){&fin_fit_table, &v->fit};
    return FIN_OK;
}

static double bags_of(const fit_values *v)
{
    return ceil(v->own.ratio * (double)v->task_settings.d);
}

static fin_status check(const void *values, fin_error *err)
{
    const fit_values *v = values;
    double numbers = bags_of(v) * (double)v->task_settings.L * (double)v->task_settings.d;
    if (v->task_settings.m != 1)
        return fini_fail(err, FIN_ERR_ARGUMENT, "m = %lld: the Bayes prediction is known for m = 1",
                         (long long)v->task_settings.m);
    if (!(numbers <= 5e8))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "ratio * d bags of L tokens of d numbers are %g numbers, more than 5e8; a "
                         "smaller d does",
                         numbers);
    return FIN_OK;
}

/* ---- bags ------------------------------------------------------------------------------------ */

typedef struct draws {
    fin_bags bags;
    int64_t *offsets, *location;
    double *tokens, *y;
    double *mean, *bayes; /* (n) */
    double *ends;         /* (n, 2) */
    double *weight;       /* (tokens) */
} draws;

static void draws_close(draws *w)
{
    fini_free_all(w->offsets, w->location, w->tokens, w->y, w->mean, w->bayes, w->ends, w->weight);
}

static fin_status draws_open(draws *w, int64_t n, int64_t longest, int64_t d, fin_error *err)
{
    *w = (draws){.offsets = fini_alloc_array(n + 1, sizeof *w->offsets),
                 .location = fini_alloc_array(n, sizeof *w->location),
                 .tokens = fini_alloc_array(n * longest * d, sizeof *w->tokens),
                 .y = fini_alloc_array(n, sizeof *w->y),
                 .mean = fini_alloc_array(n, sizeof *w->mean),
                 .bayes = fini_alloc_array(n, sizeof *w->bayes),
                 .ends = fini_alloc_array(n, 2 * sizeof *w->ends),
                 .weight = fini_alloc_array(n * longest, sizeof *w->weight)};
    if (w->offsets && w->location && w->tokens && w->y && w->mean && w->bayes && w->ends &&
        w->weight)
        return FIN_OK;
    draws_close(w);
    return fini_fail_memory(err, (size_t)(n * longest * d) * sizeof *w->tokens, "the bags");
}

static fin_status draw(draws *w, const fin_task *task, uint64_t first, int64_t n, fin_error *err)
{
    FINI_TRY(fin_task_offsets(task, first, n, w->offsets, err));
    FINI_TRY(fin_task_draw(task, first, n, FIN_F64, w->offsets, w->tokens, w->y, w->location, err));
    w->bags = (fin_bags){.n = n,
                         .d = fin_task_get_settings(task)->d,
                         .total = n,
                         .offsets = w->offsets,
                         .dtype = FIN_F64,
                         .tokens = w->tokens,
                         .labels = w->y};
    return FIN_OK;
}

/* ---- one trial ------------------------------------------------------------------------------- */

typedef struct trial {
    double sum[ROWS]; /* risk, Bayes risk, excess, cosines, share found, calibration error,
                       * risk of the mean, share of labels inside their interval */
    double predicted[BINS], decided[BINS];
    int64_t tokens;
} trial;

static double cosine(const double *a, const double *b, int64_t d)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t j = 0; j < d; j++) {
        ab += a[j] * b[j];
        aa += a[j] * a[j];
        bb += b[j] * b[j];
    }
    return aa > 0 ? fabs(ab) / sqrt(aa * bb) : NAN; /* `mean` has no key */
}

/* Tokens of one chunk of test bags: bins of the probability, and was the largest the right one? */
static void judge_locations(trial *t, const draws *w)
{
    for (int64_t i = 0; i < w->bags.n; i++) {
        const double *p = w->weight + w->offsets[i];
        int64_t L = w->offsets[i + 1] - w->offsets[i], best = 0;
        for (int64_t l = 0; l < L; l++) {
            int bin = p[l] >= 1 ? BINS - 1 : (int)(p[l] * BINS);
            t->predicted[bin] += p[l];
            t->decided[bin] += l == w->location[i];
            best = p[l] > p[best] ? l : best;
        }
        t->tokens += L;
        t->sum[FOUND] += best == w->location[i];
    }
}

static fin_status judge(trial *t, const fin_task *task, const fin_fit *fit, draws *w, int64_t from,
                        int64_t test, fin_error *err)
{
    fin_status status = FIN_OK;
    double mean = 0; /* of the training labels, which w still has */
    for (int64_t i = 0; i < from; i++)
        mean += w->y[i] / (double)from;
    for (int64_t done = 0; done < test && !status; done += w->bags.n) {
        int64_t n = test - done < CHUNK ? test - done : CHUNK;
        status = draw(w, task, (uint64_t)(from + done), n, err);
        fin_batch batch = {n, w->bags.d, FIN_F64, w->tokens, w->offsets};
        if (!status)
            status = fin_task_predict(task, &batch, w->bayes, err);
        if (!status)
            status = fin_fit_interval(fit, &w->bags, 0.9, w->mean, NULL, w->ends, NULL, err);
        if (!status && fin_fit_locates(fit))
            status = fin_fit_locate(fit, &w->bags, &(fin_locations){.prior = w->weight}, NULL, err);
        for (int64_t i = 0; i < n && !status; i++) {
            double a = w->mean[i] - w->y[i], b = w->bayes[i] - w->y[i], c = mean - w->y[i];
            t->sum[0] += a * a;
            t->sum[1] += b * b;
            t->sum[MEAN] += c * c;
            t->sum[EXCESS] += a * a - b * b;
            t->sum[COVERED] += w->ends[2 * i] <= w->y[i] && w->y[i] <= w->ends[2 * i + 1];
        }
        if (!status && fin_fit_locates(fit))
            judge_locations(t, w);
    }
    return status;
}

/* ECE = sum over bins |sum of p - number decided| / tokens, of one model: models that err in opposite
 * ways must not make up for one another. */
static double calibration(const trial *t)
{
    double gap = 0;
    for (int b = 0; b < BINS; b++)
        gap += fabs(t->predicted[b] - t->decided[b]);
    return t->tokens ? gap / (double)t->tokens : NAN;
}

static fin_status directions(trial *t, const fin_task *task, const fin_fit *fit, fin_error *err)
{
    int64_t d = fin_task_get_settings(task)->d;
    FINI_OWN(err, "the directions", double, k, d, 2);
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    fin_status status =
        fin_fit_directions(fit, info.locator > 0 ? info.locator : 0, 0, 0, k, k + d, err);
    if (status == FIN_ERR_UNSUPPORTED) {
        t->sum[COSINE_K] = t->sum[COSINE_V] = NAN;
        status = FIN_OK;
    } else if (!status) {
        t->sum[COSINE_K] = cosine(k, fin_task_k_star(task), d);
        t->sum[COSINE_V] = cosine(k + d, fin_task_v_star(task), d);
    }
    return status;
}

static fin_status run_trial(const fit_values *v, int64_t number, trial *t, int *locates,
                            const fin_progress *whole, fin_error *err)
{
    fin_fit_settings settings = v->fit;
    if (!fin_fit_model_get(&settings)->chooses)
        settings.locator = 1; /* what locates is the model itself, or nothing does */
    int64_t n = (int64_t)bags_of(v), most = n > CHUNK ? n : CHUNK;
    uint64_t seed = (uint64_t)fini_seed_apart(v->fit.seed) + (uint64_t)number;
    fin_task *task = NULL;
    fin_fit *fit = NULL;
    draws w = {0};
    fini_share part = {whole, number, v->own.trials};
    const fin_progress progress = {fini_share_report, &part};
    fin_status status = fin_task_create(&task, fin_task_find(v->task), &v->task_settings, NULL,
                                        seed, FIN_TASK_AMBIENT, err);
    if (!status)
        status = draws_open(&w, most, v->task_settings.L, v->task_settings.d, err);
    if (!status)
        status = draw(&w, task, 0, n, err);
    if (!status)
        status = fin_fit_create(&fit, &settings, 0, &w.bags, NULL, NULL, &progress, err);
    if (!status)
        status = judge(t, task, fit, &w, n, v->own.test, err);
    for (int i = 0; i < ROWS; i++)
        t->sum[i] /= (double)v->own.test;
    t->sum[ECE] = calibration(t);
    if (!status)
        status = directions(t, task, fit, err);
    *locates = !status && fin_fit_locates(fit);
    draws_close(&w);
    fin_fit_destroy(fit);
    fin_task_destroy(task);
    return status;
}

/* ---- all trials ------------------------------------------------------------------------------ */

static void add_mean(fin_result *result, const char *name, const trial *t, int row, int64_t n)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        mean += t[i].sum[row] / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (t[i].sum[row] - mean) * (t[i].sum[row] - mean);
    if (!isnan(mean))
        fini_result_scalar(result, name, mean, sqrt(squares / (double)(n - 1) / (double)n),
                           FIN_HOW_SIMULATION, n);
}

/* Of means, with the error of the mean of risk - quotient * bayes. */
static void add_quotient(fin_result *result, const trial *t, int64_t n)
{
    double risk = 0, bayes = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        risk += t[i].sum[0];
        bayes += t[i].sum[1];
    }
    if (!(bayes > 0))
        return;
    for (int64_t i = 0; i < n; i++) {
        double rest = t[i].sum[0] - risk / bayes * t[i].sum[1];
        squares += rest * rest;
    }
    fini_result_scalar(result, "quotient", risk / bayes,
                       sqrt(squares / (double)(n - 1) * (double)n) / bayes, FIN_HOW_SIMULATION, n);
}

static void add_least(fin_result *result, const char *name, const trial *t, int row, int64_t n)
{
    double least = INFINITY;
    for (int64_t i = 0; i < n; i++)
        least = fmin(least, t[i].sum[row]);
    if (isfinite(least))
        fini_result_scalar(result, name, least, 0, FIN_HOW_SIMULATION, n);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fit_values *v = values;
    int64_t n = v->own.trials;
    int locates = 0;
    FINI_OWN(err, "the trials", trial, t, n, 1);
    memset(t, 0, (size_t)n * sizeof *t);
    for (int64_t i = 0; i < n; i++) {
        FINI_TRY(fini_go_on(progress, "fitting", (double)i, (double)n, err));
        FINI_TRY(run_trial(v, i, &t[i], &locates, progress, err));
    }
    add_mean(result, "risk", t, 0, n);
    add_mean(result, "mean", t, MEAN, n);
    add_mean(result, "bayes", t, 1, n);
    add_mean(result, "excess", t, EXCESS, n);
    add_quotient(result, t, n);
    add_mean(result, "cosine_k", t, COSINE_K, n);
    add_mean(result, "cosine_v", t, COSINE_V, n);
    add_least(result, "least_cosine_k", t, COSINE_K, n);
    add_least(result, "least_cosine_v", t, COSINE_V, n);
    add_mean(result, "covered", t, COVERED, n);
    if (locates) {
        add_mean(result, "found", t, FOUND, n);
        add_mean(result, "ece", t, ECE, n);
    }
    fini_result_scalar(result, "bags", bags_of(v), 0, FIN_HOW_CLOSED, 0);
    return FIN_OK;
}

const fin_command fini_command_fit = {
    .name = "fit",
    .summary = "attention fitted to bags of a task: risk, locations and directions against n / d",
    .revision = 5,
    .size = sizeof(fit_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
