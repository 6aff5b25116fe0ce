/* erm: attention learnt from n sequences of L tokens, M of them masked, against the Bayes
 * prediction.
 *
 * The small models of small.h are fitted by least squares to the masked values; what is measured is
 *
 *     excess = E |f(q) - E[v | tokens, q]|^2 on sequences of their own,
 *
 * the risk above that of the posterior mean. cme attention can be the posterior mean, so that its
 * excess is all generalization error: n excess tends to tr(H^-1 S), H = E J'J / M, S = Cov(J'r /
 * M), which does not grow with L. softmax attention cannot; the best it can do, with scores kappa
 * q.k and values gain * v, is its floor, and what is above the floor falls like 1/n.
 *
 * Fits start at the best parameters: this is about the minimum that belongs to them, not about how
 * to find it (the job `stationary` starts anywhere). */
#include "study/small.h"

#include "finetti/math.h"

#include <math.h>
#include <string.h>

#define ERM_FIELDS(F, C)                                                                           \
    C(form, 0, "cme|softmax", "attention form")                                                    \
    F(int64_t, n, 256, 2, 1000000, "training sequences")                                           \
    F(int64_t, repetitions, 20, 2, 100000, "training sets")                                        \
    F(int64_t, test, 1000, 10, 1000000, "sequences that each fit is judged on")                    \
    F(int64_t, sandwich, 0, 0, 1000000,                                                            \
      "sequences for the limit of n excess, tr(H^-1 S), at the best parameters; 0: not computed")  \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

typedef struct erm_own {
    ERM_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} erm_own;
typedef struct erm_values {
    erm_own own;
    fini_small_task task;
} erm_values;

#define FIN_TABLE_STRUCT erm_own
FIN_TABLE(static, erm_table, "erm", ERM_FIELDS);
#undef FIN_TABLE_STRUCT

static const fini_word words[] = {{NULL, 0, 0, NULL, NULL}};

static const fini_output_row outputs[] = {
    {"excess", "E |f(q) - posterior mean|^2, mean over training sets"},
    {"scaled", "n excess"},
    {"bayes", "E |truth - posterior mean|^2, what no predictor can beat"},
    {"floor", "least excess of any parameters (softmax)"},
    {"floor_scaled", "L times that (softmax)"},
    {"kappa", "scores of the best parameters (softmax)"},
    {"above", "excess - floor, from the same sequences (softmax)"},
    {"above_scaled", "n times that (softmax)"},
    {"predicted", "limit of n excess, or of n above: tr(H^-1 S)"},
    {"rank", "eigenvalues of H that count: above 1e-11 of the largest"},
    {"steps", "steps of a fit, mean"},
    {"gradient", "largest gradient that a fit ended with"},
    {NULL, NULL},
};

enum { MOST_STEPS = 300, FLOOR_SEQUENCES = 1 << 21 };
#define ENOUGH 1e-9
#define COUNTS 1e-11

static fin_status groups(void *values, fini_group list[FINI_GROUPS], int *count, fin_error *err)
{
    erm_values *v = values;
    (void)err;
    list[(*count)++] = (fini_group){&erm_table, &v->own};
    list[(*count)++] = (fini_group){&fini_small_table, &v->task};
    return FIN_OK;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static fin_status check(const void *values, fin_error *err)
{
    const erm_values *v = values;
    int64_t n = greater(greater(v->own.n, v->own.test), v->own.sandwich);
    double numbers = (double)n * (double)v->task.L * (double)(v->task.d + v->task.dv);
    if (v->own.form == FINI_SMALL_SOFTMAX && !(numbers <= 2e8))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld sequences of L = %lld tokens are %g numbers, more than 2e8; a "
                         "smaller L does",
                         (long long)n, (long long)v->task.L, numbers);
    return FIN_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

typedef struct work {
    const erm_values *v;
    fini_small_world world;
    fini_small_model model;
    fini_small_set train, test;
    fini_small_fit fit;
    fini_arena arena;
    double *best, *theta;         /* (parameters) */
    double *f, *J;                /* (M, dv), (M dv, parameters): one sequence */
    double *H, *S, *w, *own, *of; /* sandwich */
    fini_average excess, bayes, floor, above, steps;
    double gradient;
} work;

static void lay_out(work *w)
{
    fini_arena *a = &w->arena;
    int64_t P = w->model.parameters, rows = w->model.M * w->model.dv;
    bool tokens = w->model.form == FINI_SMALL_SOFTMAX;
    fini_small_set_take(&w->train, a, tokens);
    fini_small_set_take(&w->test, a, tokens);
    fini_small_fit_take(&w->fit, a, P, rows);
    w->best = fini_take(a, P, sizeof(double));
    w->theta = fini_take(a, P, sizeof(double));
    w->f = fini_take(a, rows, sizeof(double));
    w->J = fini_take(a, rows * P, sizeof(double));
    w->H = fini_take(a, P * P, sizeof(double));
    w->S = fini_take(a, P * P, sizeof(double));
    w->w = fini_take(a, P, sizeof(double));
    w->of = fini_take(a, P, sizeof(double));
    w->own = fini_take(a, fini_small_eigen_work(P), sizeof(double));
}

/* |f(q) - mean q|^2 of a test sequence: exactly over q for cme, at masked tokens for softmax. */
static double distance(work *w, const double *theta, int64_t i)
{
    const fini_small_model *m = &w->model;
    const double *mean = w->test.mean + i * m->dv * m->d, *q = w->test.q + i * m->M * m->d;
    double sum = 0, F[FINI_SMALL_KEYS * FINI_SMALL_KEYS];
    if (m->form == FINI_SMALL_CME) {
        fini_small_matrix(m, theta, w->test.moments + i * m->p * m->p, F);
        for (int64_t j = 0; j < m->dv * m->d; j++)
            sum += (F[j] - mean[j]) * (F[j] - mean[j]) / (double)m->d;
        return sum;
    }
    fini_small_softmax(m, theta, w->test.tokens + i * m->L * m->p, m->M, q, w->f, NULL);
    for (int64_t k = 0; k < m->M; k++)
        for (int64_t j = 0; j < m->dv; j++) {
            double far = w->f[k * m->dv + j];
            for (int64_t b = 0; b < m->d; b++)
                far -= mean[j * m->d + b] * q[k * m->d + b];
            sum += far * far / (double)m->M;
        }
    return sum;
}

/* ---- the best softmax attention can do ------------------------------------------------------- */

/* Its parameters by symmetry: scores kappa q.k, values gain * v. The gain that fits best to the
 * posterior mean at this kappa, and what is left then. */
static double floor_at(double log_kappa, void *user)
{
    work *w = user;
    const fini_small_model *m = &w->model;
    double ff = 0, fm = 0, mm = 0;
    fini_small_truth(m, &w->world, exp(log_kappa), 1, w->best);
    for (int64_t i = 0; i < w->test.n; i++) {
        const double *mean = w->test.mean + i * m->dv * m->d, *q = w->test.q + i * m->M * m->d;
        fini_small_softmax(m, w->best, w->test.tokens + i * m->L * m->p, m->M, q, w->f, NULL);
        for (int64_t k = 0; k < m->M * m->dv; k++) {
            double truth = 0;
            for (int64_t b = 0; b < m->d; b++)
                truth += mean[k % m->dv * m->d + b] * q[k / m->dv * m->d + b];
            ff += w->f[k] * w->f[k];
            fm += w->f[k] * truth;
            mm += truth * truth;
        }
    }
    w->own[0] = fm / ff;
    return mm - fm * fm / ff;
}

static fin_status find_best(work *w, double *kappa, fin_error *err)
{
    double least, log_kappa;
    fin_status status = FIN_OK;
    if (w->model.form == FINI_SMALL_CME) {
        fini_small_truth(&w->model, &w->world, 0, 0, w->best);
        return FIN_OK;
    }
    fini_small_draw(&w->test, FINI_STREAM_SMALL_TEST, FLOOR_SEQUENCES);
    status = fin_brent(floor_at, w, log(0.3), log(100), 1e-4, &log_kappa, &least, err);
    if (status)
        return status;
    floor_at(log_kappa, w);
    *kappa = exp(log_kappa);
    fini_small_truth(&w->model, &w->world, *kappa, w->own[0], w->best);
    return FIN_OK;
}

/* ---- tr(H^-1 S) ------------------------------------------------------------------------------ */

/* Of one sequence: (J'r / M)(J'r / M)' to S and, for cme, J'J / M to H; lower triangles. */
static void add_sandwich(work *w, int64_t i)
{
    const fini_small_model *m = &w->model;
    int64_t P = m->parameters, rows = m->M * m->dv;
    fini_small_loss loss = {m, &w->test};
    fini_small_rows o = fini_small_rows_of(&loss);
    o.one(o.user, w->best, i, w->f, w->J);
    for (int64_t a = 0; a < P; a++) {
        w->of[a] = 0;
        for (int64_t k = 0; k < rows; k++)
            w->of[a] += w->J[k * P + a] * w->f[k] / (double)m->M;
    }
    for (int64_t a = 0; a < P; a++)
        for (int64_t b = 0; b <= a; b++) {
            w->S[a * P + b] += w->of[a] * w->of[b];
            for (int64_t k = 0; k < rows && m->form == FINI_SMALL_CME; k++)
                w->H[a * P + b] += w->J[k * P + a] * w->J[k * P + b] / (double)m->M;
        }
}

/* softmax: its residuals have a mean, so that J'J is not all of the second derivatives. They are
 * differences of gradients of half the risk. */
static void add_curvature(work *w)
{
    const double step = 1e-4;
    int64_t P = w->model.parameters;
    fini_small_loss loss = {&w->model, &w->test};
    fini_small_rows rows = fini_small_rows_of(&loss);
    memcpy(w->theta, w->best, (size_t)P * sizeof *w->theta);
    for (int64_t a = 0; a < P; a++)
        for (int side = -1; side <= 1; side += 2) {
            w->theta[a] = w->best[a] + side * step;
            fini_small_sums(&w->fit, &rows, w->theta, w->of, NULL);
            w->theta[a] = w->best[a];
            for (int64_t b = 0; b < P; b++)
                w->H[a >= b ? a * P + b : b * P + a] +=
                    side * w->of[b] * (double)w->test.n / (2 * step) / (a == b ? 1 : 2);
        }
}

static fin_status sandwich(work *w, fini_result *result, fin_error *err)
{
    int64_t P = w->model.parameters, done = 0;
    double sum = 0;
    int rank = 0;
    for (uint64_t from = FLOOR_SEQUENCES * 2; done < w->v->own.sandwich; done += w->test.n) {
        fini_small_draw(&w->test, FINI_STREAM_SMALL_TEST, from + (uint64_t)done);
        for (int64_t i = 0; i < w->test.n; i++)
            add_sandwich(w, i);
        if (w->model.form == FINI_SMALL_SOFTMAX)
            add_curvature(w);
    }
    for (int64_t a = 0; a < P; a++)
        for (int64_t b = 0; b < a; b++) {
            w->H[b * P + a] = w->H[a * P + b];
            w->S[b * P + a] = w->S[a * P + b];
        }
    fin_status status = fini_small_eigen(P, w->H, w->w, w->own, err);
    if (status)
        return status;
    for (int64_t k = 0; k < P; k++) {
        const double *e = w->H + k * P;
        if (!(w->w[k] > COUNTS * w->w[P - 1]))
            continue;
        rank++;
        for (int64_t a = 0; a < P; a++)
            for (int64_t b = 0; b < P; b++)
                sum += e[a] * w->S[a * P + b] * e[b] / w->w[k];
    }
    /* Its error is a few per cent at 8000 sequences; it is a prediction, not an estimate. */
    fini_result_scalar(result, "predicted", sum, 0, FIN_HOW_QUADRATURE, done);
    fini_result_scalar(result, "rank", rank, 0, FIN_HOW_CLOSED, 0);
    return FIN_OK;
}

/* ---- training sets --------------------------------------------------------------------------- */

static fin_status one_set(work *w, int64_t repetition, fin_error *err)
{
    const fini_small_model *m = &w->model;
    fini_small_loss loss = {m, &w->train};
    fini_small_rows rows = fini_small_rows_of(&loss);
    double excess = 0, floor = 0, bayes = 0, n = (double)w->test.n;
    fini_small_draw(&w->train, FINI_STREAM_SMALL, (uint64_t)(repetition * w->train.n));
    fini_small_draw(&w->test, FINI_STREAM_SMALL_TEST, (uint64_t)repetition << 32);
    memcpy(w->theta, w->best, (size_t)m->parameters * sizeof *w->theta);
    w->fit.most = MOST_STEPS;
    w->fit.enough = ENOUGH;
    w->fit.decrease = 1e-6;
    fin_status status = FIN_OK;
    if (m->form == FINI_SMALL_CME)
        status = fini_small_fit_descend(&w->fit, &rows, w->theta, err);
    else
        fini_small_fit_run(&w->fit, &rows, w->theta);
    w->gradient = fmax(w->gradient, w->fit.gradient);
    for (int64_t i = 0; i < w->test.n; i++) {
        const double *z = w->test.z + i * m->dv * m->d, *mean = w->test.mean + i * m->dv * m->d;
        excess += distance(w, w->theta, i) / n;
        if (m->form == FINI_SMALL_SOFTMAX)
            floor += distance(w, w->best, i) / n;
        for (int64_t j = 0; j < m->dv * m->d; j++)
            bayes += (z[j] - mean[j]) * (z[j] - mean[j]) / (double)m->d / n;
    }
    fini_average_add(&w->excess, excess);
    fini_average_add(&w->floor, floor);
    fini_average_add(&w->above, excess - floor);
    fini_average_add(&w->bayes, bayes);
    fini_average_add(&w->steps, (double)w->fit.steps);
    return status;
}

static void add_mean(fini_result *result, const char *name, const fini_average *a, double factor)
{
    fini_result_scalar(result, name, factor * a->mean, factor * fini_average_error(a),
                       FIN_HOW_SIMULATION, a->count);
}

static void add_all(const work *w, double kappa, fini_result *result)
{
    double n = (double)w->v->own.n;
    add_mean(result, "excess", &w->excess, 1);
    add_mean(result, "scaled", &w->excess, n);
    add_mean(result, "bayes", &w->bayes, 1);
    add_mean(result, "steps", &w->steps, 1);
    fini_result_scalar(result, "gradient", w->gradient, 0, FIN_HOW_CLOSED, 0);
    if (w->model.form == FINI_SMALL_CME)
        return;
    add_mean(result, "floor", &w->floor, 1);
    add_mean(result, "floor_scaled", &w->floor, (double)w->v->task.L);
    add_mean(result, "above", &w->above, 1);
    add_mean(result, "above_scaled", &w->above, n);
    fini_result_scalar(result, "kappa", kappa, 0, FIN_HOW_QUADRATURE, w->test.n);
}

static fin_status measure(work *w, fini_result *result, const fin_progress *progress,
                          fin_error *err)
{
    double kappa = 0;
    int64_t count = w->v->own.repetitions;
    fin_status status = find_best(w, &kappa, err);
    if (!status && w->v->own.sandwich > 0)
        status = sandwich(w, result, err);
    for (int64_t i = 0; i < count && !status; i++) {
        if (fini_report(progress, "learning", (double)i, (double)count))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
        else
            status = one_set(w, i, err);
    }
    if (status)
        return status;
    add_all(w, kappa, result);
    return fini_result_status(result, err);
}

static fin_status run(const void *values, fini_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const erm_values *v = values;
    work w = {.v = v, .model = fini_small_model_make((int)v->own.form, 1, &v->task)};
    fini_small_world_make(&w.world, &v->task, fini_small_seed(v->own.seed, v->task.L, v->own.n));
    w.train = (fini_small_set){.n = v->own.n, .world = &w.world};
    w.test = (fini_small_set){.n = v->own.test, .world = &w.world};
    lay_out(&w);
    fin_status status = fini_arena_open(&w.arena, "training and test sets", err);
    if (status)
        return status;
    lay_out(&w);
    status = measure(&w, result, progress, err);
    fini_arena_close(&w.arena);
    return status;
}

const fini_job fini_job_erm = {
    .name = "erm",
    .summary = "small attention layers learnt from n sequences, against the posterior mean",
    .revision = 1,
    .size = sizeof(erm_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
