/* stationary: how good is a point where the gradient vanishes? Squared loss is convex in the
 * predictions f, so that with J = df/dtheta and any direction delta
 *
 *     risk(f) - risk(f*) <= 2 <f - y, f - f*> = 2 <f - y, f - f* + J delta> - <gradient, delta>
 *
 * and, where the gradient is zero,
 *
 *     risk(f) - risk(f*) <= 2 |f - y| min over delta of |f - f* + J delta|:
 *
 * a stationary point is nearly as good as any f* that the tangent space reaches. Here f* is the
 * Bayes prediction, risks and norms are means over the training sequences, and a small attention
 * layer (mixed.h) is trained from random parameters. */
#include "lab/mixed.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

#define STATIONARY_FIELDS(F, C)                                                                    \
    C(form, 1, "cme|softmax", "attention form")                                                    \
    F(int64_t, heads, 1, 1, 16, "heads of softmax attention, whose answers are added")             \
    F(int64_t, n, 128, 2, 100000, "training sequences")                                            \
    F(int64_t, start, 1, 0, INT64_C(1) << 53, "which random parameters to start from")             \
    F(double, size, 0.5, 1e-6, 1e3, "standard deviation of the parameters at the start")           \
    F(int64_t, steps, 3000, 0, 1000000, "most steps of the search")                                \
    F(double, enough, 1e-6, 0, 1, "length of the gradient to stop at")                             \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the training sequences")

#define FIN_TABLE_STRUCT stationary_own
FIN_TABLE_OF_ITS_OWN(stationary_table, "stationary", STATIONARY_FIELDS);

typedef struct stationary_values {
    stationary_own own;
    fini_mixed_task task;
} stationary_values;

static const fin_output outputs[] = {
    {"risk", "of the point found, on the training sequences", NULL},
    {"bayes", "of the Bayes prediction, on the same", NULL},
    {"gap", "risk - bayes", NULL},
    {"bound", "2 |f - y| min |f - f* + J delta|", NULL},
    {"tangent", "min |f - f* + J delta|: what the tangent space does not reach", NULL},
    {"distance", "|f - f*|", NULL},
    {"slack", "|<gradient, delta>|, which the bound leaves out", NULL},
    {"gradient", "length of the gradient", NULL},
    {"taken", "steps taken", "steps"},
    {"parameters", "how many there are", "numbers"},
    {NULL, NULL, NULL},
};

static fin_status check(const void *values, fin_error *err)
{
    const stationary_values *v = values;
    if (v->own.form == FINI_MIXED_CME && v->own.heads > 1)
        return fini_fail(err, FIN_ERR_ARGUMENT, "heads = %lld: cme has one here; leave heads out",
                         (long long)v->own.heads);
    return fini_mixed_check_tokens(v->own.n, &v->task, err);
}

typedef struct work {
    const stationary_values *v;
    fini_mixed_world world;
    fini_mixed_model model;
    fini_mixed_set set;
    fini_mixed_fit fit;
    fini_arena arena;
    double *theta, *delta, *w, *own; /* (parameters), and room for eigenvalues */
} work;

static void lay_out(void *user)
{
    work *w = user;
    fini_arena *a = &w->arena;
    int64_t P = w->model.parameters;
    fini_mixed_set_take(&w->set, a, w->model.form == FINI_MIXED_SOFTMAX);
    fini_mixed_fit_take(&w->fit, a, P, w->model.M * w->model.dv);
    w->theta = fini_take(a, P, sizeof(double));
    w->delta = fini_take(a, P, sizeof(double));
    w->w = fini_take(a, P, sizeof(double));
    w->own = fini_take(a, fini_hand_eigen_work(P), sizeof(double));
}

/* f - f* of sequence i, which is least squares with the Bayes prediction in place of y. */
static void one(const void *user, const double *theta, int64_t i, double *residual, double *J)
{
    const work *w = user;
    const fini_mixed_model *m = &w->model;
    fini_mixed_answers(m, theta, &w->set, i, residual, J);
    for (int64_t k = 0; k < m->M * m->dv; k++)
        residual[k] -= fini_mixed_bayes(&w->set, i, k);
}

/* f - f* + J delta. */
static void one_tangent(const void *user, const double *theta, int64_t i, double *residual,
                        double *J)
{
    const work *w = user;
    int64_t P = w->model.parameters;
    one(user, theta, i, residual, J);
    for (int64_t k = 0; k < w->model.M * w->model.dv; k++)
        for (int64_t a = 0; a < P; a++)
            residual[k] += J[k * P + a] * w->delta[a];
}

/* delta = -(J'J)^+ J'(f - f*), by eigenvectors. Any delta makes the bound true; what is left out of
 * small eigenvalues can only make it larger. */
static fin_status tangent(work *w, const fini_mixed_rows *rows, fin_error *err)
{
    int64_t P = w->model.parameters;
    double *H = w->fit.H, *g = w->fit.g;
    fini_mixed_sums(&w->fit, rows, w->theta, g, H);
    fini_hand_mirror(P, H);
    FINI_TRY(fini_hand_eigen(P, H, w->w, w->own, err));
    memset(w->delta, 0, (size_t)P * sizeof *w->delta);
    for (int64_t k = 0; k < P; k++) {
        const double *e = H + k * P;
        if (!(w->w[k] > 1e-11 * w->w[P - 1]))
            continue;
        double along = -fini_hand_dot(P, e, g) / w->w[k];
        for (int64_t a = 0; a < P; a++)
            w->delta[a] += along * e[a];
    }
    return FIN_OK;
}

static double bayes_risk(const work *w)
{
    const fini_mixed_model *m = &w->model;
    double sum = 0;
    for (int64_t i = 0; i < w->set.n; i++)
        for (int64_t k = 0; k < m->M * m->dv; k++) {
            double far = w->set.y[i * m->M * m->dv + k] - fini_mixed_bayes(&w->set, i, k);
            sum += far * far;
        }
    return sum / (double)(w->set.n * m->M);
}

static fin_status search(work *w, int64_t *taken, const fin_progress *progress, fin_error *err)
{
    fini_mixed_loss loss = {&w->model, &w->set};
    fini_mixed_rows rows = fini_mixed_rows_of(&loss);
    fin_random r;
    fin_random_open(&r, (uint64_t)w->v->own.start, FINI_STREAM_STATIONARY, 0);
    for (int64_t a = 0; a < w->model.parameters; a++)
        w->theta[a] = w->v->own.size * fin_random_normal(&r);
    w->fit.enough = w->v->own.enough;
    return fini_mixed_search(&w->fit, &rows, w->theta, w->v->own.steps, taken, progress, err);
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    const fini_mixed_model *m = &w->model;
    fini_mixed_loss loss = {m, &w->set};
    fini_mixed_rows to_y = fini_mixed_rows_of(&loss), to_bayes = to_y, reached;
    int64_t taken = 0;
    double slack = 0, length = 0, *g = w->fit.g;
    fini_mixed_draw(&w->set, FINI_STREAM_SMALL, 0);
    fin_status status = search(w, &taken, progress, err);
    to_bayes.user = w;
    to_bayes.one = one;
    to_bayes.slope = NULL;
    reached = to_bayes;
    reached.one = one_tangent;
    double distance = fini_mixed_sums(&w->fit, &to_bayes, w->theta, NULL, NULL);
    if (!status)
        status = tangent(w, &to_bayes, err);
    if (status)
        return status;
    double left = fini_mixed_sums(&w->fit, &reached, w->theta, g, NULL);
    double risk = fini_mixed_sums(&w->fit, &to_y, w->theta, g, NULL), bayes = bayes_risk(w);
    for (int64_t a = 0; a < m->parameters; a++) {
        slack += 2 * g[a] * w->delta[a];
        length += 4 * g[a] * g[a];
    }
    fini_result_exact(result, "risk", risk);
    fini_result_exact(result, "bayes", bayes);
    fini_result_exact(result, "gap", risk - bayes);
    fini_result_exact(result, "bound", 2 * sqrt(risk * left));
    fini_result_exact(result, "tangent", sqrt(left));
    fini_result_exact(result, "distance", sqrt(distance));
    fini_result_exact(result, "slack", fabs(slack));
    fini_result_exact(result, "gradient", sqrt(length));
    fini_result_exact(result, "taken", (double)taken);
    fini_result_exact(result, "parameters", (double)m->parameters);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const stationary_values *v = values;
    work w = {.v = v};
    w.model = fini_mixed_model_make((int)v->own.form, v->own.heads, &v->task);
    fini_mixed_world_make(&w.world, &v->task, fini_lab_seed(v->own.seed, v->task.L, v->own.n));
    w.set = (fini_mixed_set){.n = v->own.n, .world = &w.world};
    const fini_lab_frame frame = {&w.arena, "a training set", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_stationary = {
    .name = "stationary",
    .summary = "small attention trained from anywhere: its risk against the tangent space's bound",
    .revision = 2,
    .size = sizeof(stationary_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_MIXED_TABLES(stationary_values, stationary_table),
    .check = check,
    .run = run,
};
