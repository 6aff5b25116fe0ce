/* head: masked pretraining, then a linear head on frozen features, against learning all from
 * labels.
 *
 * A sequence has the label y = <A, Z> + noise, |A| = 1. cme attention (mixed.h) is learnt without
 * labels from `pre` sequences with masked values; its F (dv x d numbers), the estimate of Z, is the
 * feature of a sequence, and D = dv d. What is measured is E (prediction - E[y | tokens])^2 of
 *
 *     zero      <A, F>: no label at all;      at most |A|^2 eps / least eigenvalue of Sigma, where
 *               eps = E |(F - mean) q|^2 is the excess of pretraining, Sigma = E q q' = 1 / d
 *     head      a least squares head from n labels: about D (label noise + variance) / n, down to a
 *               floor, the best head for these features
 *     exact     the same head on the exact posterior means
 *     near      cme attention with a head, everything learnt from the n labels, from the best
 *               parameters on: more than a fair chance
 *     scratch   the same from random parameters, the best of some starts by their training loss */
#include "lab/mixed.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

#define HEAD_FIELDS(F, C)                                                                          \
    F(int64_t, pre, 512, 2, 1000000, "sequences of pretraining, without labels")                   \
    F(int64_t, n, 64, 2, 1000000, "sequences with labels")                                         \
    F(double, label_noise, 0.1, 0, 1e3, "variance of a label around <A, Z>")                       \
    F(int64_t, starts, 3, 0, 1000, "random starts of scratch; 0: neither scratch nor near")        \
    F(int64_t, repetitions, 20, 2, 100000, "times that everything is drawn and learnt")            \
    F(int64_t, test, 1000, 100, 1000000, "sequences that each of them is judged on")               \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT head_own
FIN_TABLE_OF_ITS_OWN(head_table, "head", HEAD_FIELDS);

typedef struct head_values {
    head_own own;
    fini_mixed_task task;
} head_values;

static const fin_output outputs[] = {
    {"pretraining", "eps: excess of pretraining, E |(F - mean) q|^2", NULL},
    {"zero", "excess of <A, F>, without labels", NULL},
    {"zero_bound", "eps / least eigenvalue of Sigma", NULL},
    {"zero_ratio", "largest zero / zero_bound", NULL},
    {"head", "excess of a head on frozen features", NULL},
    {"exact", "excess of a head on the exact posterior means", NULL},
    {"floor", "excess of the best head on frozen features", NULL},
    {"above", "head - floor, from the same sequences", NULL},
    {"predicted", "floor + D (label noise + variance + floor) / (n - D - 1)", NULL},
    {"variance", "E Var(<A, Z> | tokens)", NULL},
    {"near", "excess when everything is learnt from labels, from the best parameters on", NULL},
    {"scratch", "the same from random parameters", NULL},
    {"advantage", "log(scratch / head), mean", NULL},
    {"advantage_near", "log(near / head), mean", NULL},
    {NULL, NULL, NULL},
};

enum { K = FINI_MIXED_KEYS, DD = K * K };
enum { ZERO, HEAD, EXACT, FLOOR, NEAR, SCRATCH, PRE, BOUND, PREDICTED, VARIANCE, ABOVE, MEASURES };

static fin_status check(const void *values, fin_error *err)
{
    const head_values *v = values;
    int64_t D = v->task.d * v->task.dv;
    if (v->own.n < D + 2 || v->own.test < 4 * D)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "n = %lld labels and test = %lld for a head of d dv = %lld numbers; n must "
            "be at least d dv + 2, test at least 4 d dv",
            (long long)v->own.n, (long long)v->own.test, (long long)D);
    return FIN_OK;
}

typedef struct work {
    const head_values *v;
    fini_mixed_world world;
    fini_mixed_model model, label; /* without labels; everything from labels */
    fini_mixed_set pre, labelled, test;
    fini_mixed_fit fit, whole;
    fini_arena arena;
    int64_t D;                      /* numbers in a head */
    double A[DD];                   /* the label's */
    double *best, *theta;           /* (parameters) of cme */
    double *learnt, *trial;         /* (parameters) of head and attention together */
    double *feature, *test_feature; /* (n, D), (test, D) */
    fini_average measure[MEASURES], advantage, advantage_near;
    double zero_ratio;
} work;

static void lay_out(void *user)
{
    work *w = user;
    fini_arena *a = &w->arena;
    int64_t P = w->model.parameters, dv = w->model.dv;
    fini_mixed_set_take(&w->pre, a, false);
    fini_mixed_set_take(&w->labelled, a, false);
    fini_mixed_set_take(&w->test, a, false);
    fini_mixed_fit_take(&w->fit, a, P, w->model.M * dv);
    fini_mixed_fit_take(&w->whole, a, w->label.parameters, 1);
    w->best = fini_take(a, P, sizeof(double));
    w->theta = fini_take(a, P, sizeof(double));
    w->learnt = fini_take(a, w->label.parameters, sizeof(double));
    w->trial = fini_take(a, w->label.parameters, sizeof(double));
    w->feature = fini_take(a, w->v->own.n * w->D, sizeof(double));
    w->test_feature = fini_take(a, w->v->own.test * w->D, sizeof(double));
}

/* ---- everything from labels ------------------------------------------------------------------ */

static double whole_excess(work *w, const double *theta)
{
    double label, sum = 0;
    for (int64_t i = 0; i < w->test.n; i++) {
        fini_mixed_answers(&w->label, theta, &w->test, i, &label, NULL);
        double far = label - fini_hand_dot(w->D, w->A, w->test.mean + i * w->D);
        sum += far * far / (double)w->test.n;
    }
    return sum;
}

static fin_status from_labels(work *w, int64_t repetition, double measured[MEASURES],
                              fin_error *err)
{
    fini_mixed_loss loss = {&w->label, &w->labelled};
    int64_t all = w->label.parameters;
    double least = INFINITY;
    fini_mixed_truth(&w->label, &w->world, 0, 0, w->trial);
    memcpy(w->trial + all - w->D, w->A, (size_t)w->D * sizeof *w->trial);
    FINI_TRY(fini_mixed_learn(&w->whole, &loss, w->trial, w->learnt, err));
    measured[NEAR] = whole_excess(w, w->learnt);
    for (int64_t s = 0; s < w->v->own.starts; s++) {
        fin_random r;
        fin_random_open(&r, w->world.seed, FINI_STREAM_HEAD_STARTS,
                        (uint64_t)repetition << 16 | (uint64_t)s);
        for (int64_t a = 0; a < all; a++)
            w->trial[a] = 0.5 * fin_random_normal(&r);
        FINI_TRY(fini_mixed_learn(&w->whole, &loss, w->trial, w->learnt, err));
        if (w->whole.value < least) {
            least = w->whole.value;
            measured[SCRATCH] = whole_excess(w, w->learnt);
        }
    }
    return FIN_OK;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static double head_excess(const work *w, const double *head, const double *feature)
{
    double sum = 0;
    for (int64_t i = 0; i < w->test.n; i++) {
        double far = fini_hand_dot(w->D, head, feature + i * w->D) -
                     fini_hand_dot(w->D, w->A, w->test.mean + i * w->D);
        sum += far * far / (double)w->test.n;
    }
    return sum;
}

static void make_features(const work *w, const fini_mixed_set *set, double *feature)
{
    for (int64_t i = 0; i < set->n; i++)
        fini_mixed_matrix(&w->model, w->theta, set->moments + i * w->model.p * w->model.p,
                          feature + i * w->D);
}

/* The best head is fitted to the test sequences themselves, without noise. What it leaves there is
 * (test - D) / test of its excess on others, as with any least squares. */
static bool heads(work *w, double measured[MEASURES])
{
    double head[DD], room[DD * DD], *mean = w->test_feature, truth = 0, far = 0;
    int64_t D = w->D, n = w->v->own.n;
    make_features(w, &w->labelled, w->feature);
    make_features(w, &w->test, w->test_feature);
    measured[ZERO] = head_excess(w, w->A, w->test_feature);
    for (int64_t i = 0; i < w->test.n; i++) {
        const double *m = w->test.mean + i * D, *z = w->test.z + i * D;
        for (int64_t a = 0; a < D; a++)
            far += (mean[i * D + a] - m[a]) * (mean[i * D + a] - m[a]);
        truth += (fini_hand_dot(D, w->A, z) - fini_hand_dot(D, w->A, m)) *
                 (fini_hand_dot(D, w->A, z) - fini_hand_dot(D, w->A, m));
    }
    measured[PRE] = far / (double)w->model.d / (double)w->test.n;
    measured[BOUND] = measured[PRE] * (double)w->model.d; /* |A| = 1, Sigma = 1 / d */
    measured[VARIANCE] = truth / (double)w->test.n;
    if (!fini_hand_regress(n, D, w->feature, w->labelled.label, room, head))
        return false;
    measured[HEAD] = head_excess(w, head, w->test_feature);
    if (!fini_hand_regress(n, D, w->labelled.mean, w->labelled.label, room, head))
        return false;
    measured[EXACT] = head_excess(w, head, w->test.mean);
    for (int64_t i = 0; i < w->test.n; i++)
        w->test.label[i] = fini_hand_dot(D, w->A, w->test.mean + i * D);
    if (!fini_hand_regress(w->test.n, D, w->test_feature, w->test.label, room, head))
        return false;
    measured[FLOOR] =
        head_excess(w, head, w->test_feature) * (double)w->test.n / (double)(w->test.n - D);
    measured[ABOVE] = measured[HEAD] - measured[FLOOR];
    measured[PREDICTED] =
        measured[FLOOR] + (double)D / (double)(n - D - 1) *
                              (w->v->own.label_noise + measured[VARIANCE] + measured[FLOOR]);
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void draw(work *w, int64_t repetition)
{
    fin_random r;
    uint64_t first = (uint64_t)repetition << 32;
    fini_mixed_draw(&w->pre, FINI_STREAM_SMALL, first);
    fini_mixed_draw(&w->labelled, FINI_STREAM_HEAD_LABELS, first);
    fini_mixed_draw(&w->test, FINI_STREAM_SMALL_TEST, first);
    fin_random_open(&r, w->world.seed, FINI_STREAM_HEAD, (uint64_t)repetition);
    fin_random_sphere(&r, w->D, w->A);
    fini_mixed_label_draw(&w->labelled, w->A, w->v->own.label_noise, &r);
}

static fin_status once(work *w, int64_t repetition, fin_error *err)
{
    fini_mixed_loss loss = {&w->model, &w->pre};
    double measured[MEASURES] = {0};
    draw(w, repetition);
    FINI_TRY(fini_mixed_learn(&w->fit, &loss, w->best, w->theta, err));
    if (!heads(w, measured))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "features do not determine a head; a larger n "
                         "usually helps");
    if (w->v->own.starts > 0)
        FINI_TRY(from_labels(w, repetition, measured, err));
    for (int i = 0; i < MEASURES; i++)
        fini_average_add(&w->measure[i], measured[i]);
    w->zero_ratio = fmax(w->zero_ratio, measured[ZERO] / measured[BOUND]);
    fini_average_add(&w->advantage, log(measured[SCRATCH] / measured[HEAD]));
    fini_average_add(&w->advantage_near, log(measured[NEAR] / measured[HEAD]));
    return FIN_OK;
}

static void add_all(const work *w, fin_result *result)
{
    fini_result_average(result, "pretraining", &w->measure[PRE], 1);
    fini_result_average(result, "zero", &w->measure[ZERO], 1);
    fini_result_average(result, "zero_bound", &w->measure[BOUND], 1);
    fini_result_exact(result, "zero_ratio", w->zero_ratio);
    fini_result_average(result, "head", &w->measure[HEAD], 1);
    fini_result_average(result, "exact", &w->measure[EXACT], 1);
    fini_result_average(result, "floor", &w->measure[FLOOR], 1);
    fini_result_average(result, "above", &w->measure[ABOVE], 1);
    fini_result_average(result, "predicted", &w->measure[PREDICTED], 1);
    fini_result_average(result, "variance", &w->measure[VARIANCE], 1);
    if (w->v->own.starts == 0)
        return;
    fini_result_average(result, "near", &w->measure[NEAR], 1);
    fini_result_average(result, "scratch", &w->measure[SCRATCH], 1);
    fini_result_average(result, "advantage", &w->advantage, 1);
    fini_result_average(result, "advantage_near", &w->advantage_near, 1);
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    int64_t count = w->v->own.repetitions;
    fini_mixed_truth(&w->model, &w->world, 0, 0, w->best);
    for (int64_t i = 0; i < count; i++) {
        FINI_TRY(fini_go_on(progress, "learning", (double)i, (double)count, err));
        FINI_TRY(once(w, i, err));
    }
    add_all(w, result);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const head_values *v = values;
    work w = {.v = v, .model = fini_mixed_model_make(FINI_MIXED_CME, 1, &v->task)};
    w.D = v->task.d * v->task.dv;
    w.label = fini_mixed_model_make(FINI_MIXED_LABEL, 1, &v->task);
    fini_mixed_world_make(&w.world, &v->task, fini_lab_seed(v->own.seed, v->own.pre, v->own.n));
    w.pre = (fini_mixed_set){.n = v->own.pre, .world = &w.world};
    w.labelled = (fini_mixed_set){.n = v->own.n, .world = &w.world};
    w.test = (fini_mixed_set){.n = v->own.test, .world = &w.world};
    const fini_lab_frame frame = {&w.arena, "training and test sets", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_head = {
    .name = "head",
    .summary = "masked pretraining and a frozen linear head, against learning all from labels",
    .revision = 2,
    .size = sizeof(head_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_MIXED_TABLES(head_values, head_table),
    .check = check,
    .run = run,
};
