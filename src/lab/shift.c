/* shift: a model learnt with queries of one covariance, asked with another. Its error at a query is
 * linear in it, (F - mean) q, so that with covariances Sigma before and Sigma' after
 *
 *     eps' = E tr((F - mean) Sigma' (F - mean)') <= kappa eps,
 *     kappa = largest eigenvalue of Sigma^-1/2 Sigma' Sigma^-1/2,
 *
 * the condition number of the transfer. It is attained by an error in one direction x, Sigma^1/2 x
 * the eigenvector; here by a change of Wq of cme attention. Models that were learnt err in many
 * directions and lose less. Both covariances have trace 1, eigenvalues in a geometric row from 1 to
 * `spread` or `shift`, and axes of their own. */
#include "lab/mixed.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

#define SHIFT_FIELDS(F, C)                                                                         \
    F(double, spread, 2, 1, 1e6, "largest over least eigenvalue of Sigma")                         \
    F(double, shift, 4, 1, 1e6, "largest over least eigenvalue of Sigma'")                         \
    F(int64_t, n, 256, 2, 1000000, "training sequences")                                           \
    F(int64_t, repetitions, 20, 2, 100000, "training sets")                                        \
    F(int64_t, test, 1000, 10, 1000000, "sequences that each fit is judged on")                    \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT shift_own
FIN_TABLE_OF_ITS_OWN(shift_table, "shift", SHIFT_FIELDS);

typedef struct shift_values {
    shift_own own;
    fini_mixed_task task;
} shift_values;

static const fin_output outputs[] = {
    {"kappa", "largest eigenvalue of Sigma^-1/2 Sigma' Sigma^-1/2", NULL},
    {"extremal", "eps' / eps of the extremal direction", NULL},
    {"before", "eps of learnt models, mean", NULL},
    {"after", "eps' of learnt models, mean", NULL},
    {"ratio", "eps' / eps of learnt models, mean", NULL},
    {"worst", "largest eps' / eps of a learnt model", NULL},
    {"violations", "share of learnt models with eps' > kappa eps", NULL},
    {"before_extremal", "eps of the extremal direction", NULL},
    {NULL, NULL, NULL},
};

enum { K = FINI_MIXED_KEYS };

typedef struct work {
    const shift_values *v;
    fini_mixed_world world;
    fini_mixed_model model;
    fini_mixed_set train, test;
    fini_mixed_fit fit;
    fini_arena arena;
    double *best, *theta;
    double before[K * K], after[K * K]; /* covariances */
    double x[K], kappa;                 /* extremal direction */
} work;

static void lay_out(void *user)
{
    work *w = user;
    int64_t P = w->model.parameters;
    fini_mixed_set_take(&w->train, &w->arena, false);
    fini_mixed_set_take(&w->test, &w->arena, false);
    fini_mixed_fit_take(&w->fit, &w->arena, P, w->model.M * w->model.dv);
    w->best = fini_take(&w->arena, P, sizeof(double));
    w->theta = fini_take(&w->arena, P, sizeof(double));
}

/* R' diag R of trace 1. */
static void covariance(const work *w, uint64_t number, double spread, double *out)
{
    int64_t d = w->v->task.d;
    double R[K * K], value[K], sum = 0;
    fin_random r;
    fin_random_open(&r, (uint64_t)w->v->own.seed, FINI_STREAM_SHIFT_AXES, number);
    fin_random_rotation(&r, d, R);
    for (int64_t k = 0; k < d; k++)
        sum += value[k] = d > 1 ? pow(spread, (double)k / (double)(d - 1)) : 1;
    memset(out, 0, (size_t)(d * d) * sizeof *out);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            for (int64_t k = 0; k < d; k++)
                out[i * d + j] += R[k * d + i] * value[k] / sum * R[k * d + j];
}

/* With Sigma = C C': kappa and its eigenvector e of C^-1 Sigma' C'^-1, and x = C'^-1 e. */
static fin_status find_kappa(work *w, fin_error *err)
{
    int64_t d = w->v->task.d;
    double C[K * K], A[K * K], value[K], room[64 * K];
    memcpy(C, w->before, sizeof C);
    memcpy(A, w->after, sizeof A);
    if (!fini_hand_cholesky(d, C))
        return fini_fail(err, FIN_ERR_NUMERIC, "Sigma is singular; a smaller spread helps");
    for (int side = 0; side < 2; side++) { /* rows, and after turning it over columns */
        for (int64_t i = 0; i < d; i++)
            fini_spd_lower(fini_hand(d, C), 1, A + i * d, 1);
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < i; j++) {
                double keep = A[i * d + j];
                A[i * d + j] = A[j * d + i];
                A[j * d + i] = keep;
            }
    }
    FINI_TRY(fini_hand_eigen(d, A, value, room, err));
    w->kappa = value[d - 1];
    memcpy(w->x, A + (d - 1) * d, (size_t)d * sizeof *w->x);
    fini_spd_upper(fini_hand(d, C), 1, w->x, 1);
    return FIN_OK;
}

/* eps and eps' of parameters on the test sequences, exactly over queries. */
static void errors(const work *w, const double *theta, double *before, double *after)
{
    const fini_mixed_model *m = &w->model;
    int64_t d = m->d;
    double F[K * K];
    *before = *after = 0;
    for (int64_t i = 0; i < w->test.n; i++) {
        fini_mixed_matrix(m, theta, w->test.moments + i * m->p * m->p, F);
        for (int64_t j = 0; j < m->dv * d; j++)
            F[j] -= w->test.mean[i * m->dv * d + j];
        for (int64_t j = 0; j < m->dv; j++)
            for (int64_t a = 0; a < d; a++)
                for (int64_t b = 0; b < d; b++) {
                    double square = F[j * d + a] * F[j * d + b] / (double)w->test.n;
                    *before += square * w->before[a * d + b];
                    *after += square * w->after[a * d + b];
                }
    }
}

/* Wq = 1 + 0.1 (1, .., 1)' x': an error in the direction x alone. */
static void add_extremal(work *w, fin_result *result)
{
    int64_t d = w->model.d, p = w->model.p;
    double before, after;
    memcpy(w->theta, w->best, (size_t)w->model.parameters * sizeof *w->theta);
    for (int64_t i = 0; i < d * d; i++)
        w->theta[p * p + i] += 0.1 * w->x[i % d];
    fini_mixed_draw(&w->test, FINI_STREAM_SMALL_TEST, UINT64_C(1) << 60);
    errors(w, w->theta, &before, &after);
    fini_result_exact(result, "kappa", w->kappa);
    fini_result_exact(result, "extremal", after / before);
    fini_result_exact(result, "before_extremal", before);
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    fini_mixed_loss loss = {&w->model, &w->train};
    fini_average before = {0}, after = {0}, ratio = {0};
    int64_t count = w->v->own.repetitions, violations = 0;
    double worst = 0;
    fin_status status = FIN_OK;
    fini_mixed_truth(&w->model, &w->world, 0, 0, w->best);
    add_extremal(w, result);
    for (int64_t i = 0; i < count && !status; i++) {
        double a, b;
        FINI_TRY(fini_go_on(progress, "learning", (double)i, (double)count, err));
        fini_mixed_draw(&w->train, FINI_STREAM_SMALL, (uint64_t)(i * w->train.n));
        fini_mixed_draw(&w->test, FINI_STREAM_SMALL_TEST, (uint64_t)i << 32);
        status = fini_mixed_learn(&w->fit, &loss, w->best, w->theta, err);
        errors(w, w->theta, &a, &b);
        fini_average_add(&before, a);
        fini_average_add(&after, b);
        fini_average_add(&ratio, b / a);
        worst = fmax(worst, b / a);
        violations += !(b <= w->kappa * a * (1 + 1e-9));
    }
    if (status)
        return status;
    fini_result_average(result, "before", &before, 1);
    fini_result_average(result, "after", &after, 1);
    fini_result_average(result, "ratio", &ratio, 1);
    fini_result_scalar(result, "worst", worst, 0, FIN_HOW_CLOSED, count);
    fini_result_share(result, "violations", NULL, violations, count);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const shift_values *v = values;
    work w = {.v = v, .model = fini_mixed_model_make(FINI_MIXED_CME, 1, &v->task)};
    fini_mixed_world_make(&w.world, &v->task, fini_lab_seed(v->own.seed, v->task.L, v->own.n));
    covariance(&w, 0, v->own.spread, w.before);
    covariance(&w, 1, v->own.shift, w.after);
    FINI_TRY(find_kappa(&w, err));
    if (!fini_mixed_world_queries(&w.world, w.before))
        return fini_fail(err, FIN_ERR_NUMERIC, "Sigma is singular; a smaller spread helps");
    w.train = (fini_mixed_set){.n = v->own.n, .world = &w.world};
    w.test = (fini_mixed_set){.n = v->own.test, .world = &w.world};
    const fini_lab_frame frame = {&w.arena, "training and test sets", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_shift = {
    .name = "shift",
    .summary = "cme attention asked with another covariance of queries than it was learnt with",
    .revision = 2,
    .size = sizeof(shift_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_MIXED_TABLES(shift_values, shift_table),
    .run = run,
};
