/* rate: how fast attention to a growing context finds the conditional mean m(k) = E[v | k], or what
 * it finds instead.
 *
 * Keys are drawn, values are not: attention is linear in the values, so that given the keys
 *
 *     E |out - m(q)|^2 = |sum_l w_l m(k_l) - m(q)|^2 + dv noise |w|^2,
 *
 * and the first term is averaged over all rotations of m by hand too (rate_target.c). What is left
 * to chance is where the keys and the queries fall, and a few contexts give the error to a per cent.
 * Queries have the law of the keys; beside gaussian keys they have a length of their own, because
 * the error at a query grows like exp(|q|^2 / g) and has no mean under the law of the keys. */
#include "lab/rate.h"

#include "finetti/random.h"
#include "theory/sphere.h"

#include <math.h>

#define FIN_TABLE_STRUCT fini_rate
FIN_TABLE(static, rate_table, "rate", FINI_RATE_FIELDS);

static const fin_output outputs[] = {
    {"rmse", "root of the mean squared error to m", NULL},
    {"rmse_limit", "root of the mean squared distance to what it tends to (closed forms only)",
     NULL},
    {"bias", "mean squared distance of that limit to m", NULL},
    {"variance", "rmse_limit squared", NULL},
    {"values", "the part of it that comes from the noise of the values, dv noise E |w|^2", NULL},
    {"scaled", "L times the mean squared error", NULL},
    {"kappa_now", "kappa at this L", NULL},
    {"lam_now", "lam at this L (cme)", NULL},
    {"predicted", "rmse to first order in 1/L (closed forms only)", NULL},
    {"predicted_bias", "its squared bias", NULL},
    {"predicted_variance", "its variance", NULL},
    {"best_kappa", "the kappa where rescaled softmax has the least error, for L large", NULL},
    {"best_scaled", "that error, times L", NULL},
    {NULL, NULL, NULL},
};

enum { NO, YES };

static fin_cross_settings cross_of(const fini_rate *v)
{
    static const int kernels[] = {FIN_KERNEL_RBF, FIN_KERNEL_LINEAR, FIN_KERNEL_POLYNOMIAL};
    double kappa = fini_rate_kappa(v);
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = v->form;
    s.kernel = kernels[v->kernel];
    s.scale = v->kernel == FINI_RATE_RBF ? 1 / sqrt(kappa) : 1;
    s.degree = 2;
    s.offset = 1;
    s.prior = 1;
    s.noise = fini_rate_lam(v);
    s.temperature = 1 / kappa;
    return s;
}

/* ---- settings that do not fit ----------------------------------------------------------------- */

/* What another setting makes idle has to be left out, or two names would stand for one run. */
static fin_status check_idle(const fini_rate *v, fin_error *err)
{
    fini_rate usual;
    fin_settings_defaults(&rate_table, &usual, sizeof usual);
    bool gaussian = v->keys == FINI_RATE_GAUSSIAN, cme = v->form == FIN_CROSS_CME;
    if (v->keys != FINI_RATE_VMF && v->concentration != usual.concentration)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "concentration belongs to keys = vmf; leave it out");
    if (!gaussian && (v->g != usual.g || v->radius != usual.radius))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "g and radius belong to keys = gaussian; leave them out");
    if (!cme && (v->lam != usual.lam || v->lam_power != usual.lam_power))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "lam and lam_power belong to form = cme; leave them out");
    if (!cme && v->kernel != usual.kernel)
        return fini_fail(err, FIN_ERR_ARGUMENT, "kernel belongs to form = cme; leave it out");
    if (v->kernel != FINI_RATE_RBF &&
        (v->kappa != usual.kappa || v->kappa_power != 0 || v->kappa_log != NO))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "kappa is that of the rbf kernel and of softmax; leave it out");
    return FIN_OK;
}

static fin_status check(const void *values, fin_error *err)
{
    const fini_rate *v = values;
    double bytes, kappa = fini_rate_kappa(v), lam = fini_rate_lam(v);
    FINI_TRY(check_idle(v, err));
    if (v->keys == FINI_RATE_GAUSSIAN && fini_rate_quadratic(v) > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "quadratic = %g: a part of degree 2 is for keys on the sphere; with "
                         "gaussian keys leave it out",
                         fini_rate_quadratic(v));
    if (v->rescale == YES && (v->form != FIN_CROSS_SOFTMAX || v->keys == FINI_RATE_GAUSSIAN))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "rescale divides softmax's output by A_d(kappa), which is for keys on the "
                         "sphere; leave it out");
    if (!(kappa >= 1e-12 && kappa <= 1e30 && lam >= 1e-30 && lam <= 1e30))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "kappa = %g and lam = %g at L = %lld; kappa must be between 1e-12 and "
                         "1e30, lam between 1e-30 and 1e30; smaller powers usually work",
                         kappa, lam, (long long)v->L);
    fin_cross_settings cross = cross_of(v);
    return fin_cross_bytes(&cross, v->d, fini_rate_width(v), v->L, &bytes, err);
}

/* ---- one context ------------------------------------------------------------------------------- */

enum { ERROR, DISTANCE, BIAS, NOISE, PARTS };

typedef struct work {
    const fini_rate *v;
    fin_cross *cross;
    int64_t width, block; /* of psi; queries asked at once */
    fini_arena arena;
    double *keys, *psi;      /* (L, d), (L, width) */
    double *queries, *truth; /* (queries, d), (queries, width) */
    double *room;            /* vmf: for drawing queries */
    double *out, *weights;   /* (block, width), (block, L) */
    double *limit;           /* (width) */
    bool has_limit;
    fini_average parts[PARTS];
} work;

static void layout(work *w, fini_arena *arena)
{
    const fini_rate *v = w->v;
    w->keys = fini_take(arena, v->L * v->d, sizeof(double));
    w->psi = fini_take(arena, v->L * w->width, sizeof(double));
    w->queries = fini_take(arena, v->queries * v->d, sizeof(double));
    w->truth = fini_take(arena, v->queries * w->width, sizeof(double));
    if (v->keys == FINI_RATE_VMF)
        w->room = fini_take(arena, FINI_RATE_CANDIDATES * v->queries * v->d, sizeof(double));
    w->out = fini_take(arena, w->block * w->width, sizeof(double));
    w->weights = fini_take(arena, w->block * v->L, sizeof(double));
    w->limit = fini_take(arena, w->width, sizeof(double));
}

static double distance2(int64_t n, const double *a, double scale, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (a[i] * scale - b[i]) * (a[i] * scale - b[i]);
    return sum;
}

/* Adds the errors at queries first .. first+count-1 to sums. */
static void add_errors(work *w, int64_t first, int64_t count, double sums[PARTS])
{
    const fini_rate *v = w->v;
    double scale = v->rescale == YES ? 1 / fini_sphere_mean(v->d, fini_rate_kappa(v)) : 1;
    for (int64_t i = 0; i < count; i++) {
        const double *out = w->out + i * w->width, *weights = w->weights + i * v->L;
        const double *truth = w->truth + (first + i) * w->width;
        double noise = 0;
        for (int64_t l = 0; l < v->L; l++)
            noise += weights[l] * weights[l];
        noise *= (double)v->dv * v->noise * scale * scale;
        sums[NOISE] += noise;
        sums[ERROR] += distance2(w->width, out, scale, truth) + noise;
        w->has_limit = fini_rate_limit(v, w->queries + (first + i) * v->d, w->limit);
        if (!w->has_limit)
            continue;
        sums[DISTANCE] += distance2(w->width, out, scale, w->limit) + noise;
        sums[BIAS] += distance2(w->width, w->limit, 1, truth);
    }
}

/* Keys of different lengths have nothing in common. Queries are the same, so that what they happen to
 * hit does not look like a slope: it would, where the error differs much from query to query. */
static void draw(work *w, int64_t context)
{
    const fini_rate *v = w->v;
    const fini_rate_law keys = {v->keys, v->d, v->concentration, v->g};
    fini_rate_law asked = keys;
    uint64_t sample = (uint64_t)v->L << 32 | (uint64_t)context;
    if (v->keys == FINI_RATE_GAUSSIAN)
        asked.law = FINI_RATE_SPHERE;
    fini_rate_draw(&keys, v->seed, FINI_STREAM_RATE_KEYS, sample, v->L, w->keys);
    if (v->keys == FINI_RATE_VMF)
        fini_rate_draw_spread(&asked, v->seed, (uint64_t)context, v->queries, w->room, w->queries);
    else
        fini_rate_draw(&asked, v->seed, FINI_STREAM_RATE_QUERIES, (uint64_t)context, v->queries,
                       w->queries);
    for (int64_t i = 0; i < v->queries * v->d && v->keys == FINI_RATE_GAUSSIAN; i++)
        w->queries[i] *= v->radius * sqrt(v->g);
    fini_rate_harmonics(v, v->L, w->keys, w->psi);
    fini_rate_harmonics(v, v->queries, w->queries, w->truth);
}

static fin_status one_context(work *w, int64_t context, const fin_progress *progress,
                              fin_error *err)
{
    double sums[PARTS] = {0};
    draw(w, context);
    fin_status status = fin_cross_load(w->cross, w->v->L, w->keys, w->psi, progress, err);
    for (int64_t first = 0; first < w->v->queries && !status; first += w->block) {
        int64_t left = w->v->queries - first, count = left < w->block ? left : w->block;
        status = fin_cross_predict(w->cross, count, w->queries + first * w->v->d, w->out, NULL,
                                   w->weights, progress, err);
        if (!status)
            add_errors(w, first, count, sums);
    }
    for (int i = 0; i < PARTS && !status; i++)
        fini_average_add(&w->parts[i], sums[i] / (double)w->v->queries);
    return status;
}

/* ---- all of them ------------------------------------------------------------------------------- */

static void add_mean(fin_result *result, const char *name, const fini_average *a, double factor)
{
    fini_result_scalar(result, name, factor * a->mean, factor * fini_average_error(a),
                       FIN_HOW_SIMULATION, a->count);
}

static void add_root(fin_result *result, const char *name, const fini_average *a)
{
    double root = sqrt(a->mean), error = fini_average_error(a);
    fini_result_scalar(result, name, root, error > 0 ? error / (2 * root) : error,
                       FIN_HOW_SIMULATION, a->count);
}

static void add_closed(fin_result *result, const char *name, double value)
{
    fini_result_scalar(result, name, value, 0, FIN_HOW_CLOSED, 0);
}

/* On the sphere with uniform keys the bias is the same at every query: an exact number. */
static void add_limit(const work *w, fin_result *result)
{
    if (!w->has_limit)
        return;
    add_root(result, "rmse_limit", &w->parts[DISTANCE]);
    add_mean(result, "variance", &w->parts[DISTANCE], 1);
    if (w->v->keys == FINI_RATE_VMF)
        add_mean(result, "bias", &w->parts[BIAS], 1);
    else
        add_closed(result, "bias", w->parts[BIAS].mean);
}

static fin_status add_theory(const fini_rate *v, fin_result *result, fin_error *err)
{
    fini_sphere_error predicted;
    double dv = (double)v->dv, kappa, scaled;
    add_closed(result, "kappa_now", fini_rate_kappa(v));
    if (v->form == FIN_CROSS_CME)
        add_closed(result, "lam_now", fini_rate_lam(v));
    if (fini_rate_predicted(v, &predicted) && isfinite(predicted.bias + predicted.variance)) {
        add_closed(result, "predicted", sqrt(predicted.bias + predicted.variance));
        add_closed(result, "predicted_bias", predicted.bias);
        add_closed(result, "predicted_variance", predicted.variance);
    }
    if (v->rescale == NO || v->keys != FINI_RATE_SPHERE || !(v->linear > 0) ||
        fini_rate_quadratic(v) > 0)
        return FIN_OK;
    FINI_TRY(fini_temperature_best(v->d, dv, v->noise, v->linear / dv, &kappa, &scaled, err));
    add_closed(result, "best_kappa", kappa);
    add_closed(result, "best_scaled", scaled);
    return FIN_OK;
}

static fin_status add_all(work *w, fin_result *result, const fin_progress *progress, fin_error *err)
{
    int64_t contexts = fini_rate_contexts(w->v);
    for (int64_t i = 0; i < contexts; i++) {
        FINI_TRY(one_context(w, i, progress, err));
        FINI_TRY(fini_go_on(progress, "rate", (double)i, (double)contexts, err));
    }
    add_root(result, "rmse", &w->parts[ERROR]);
    add_mean(result, "scaled", &w->parts[ERROR], (double)w->v->L);
    add_mean(result, "values", &w->parts[NOISE], 1);
    add_limit(w, result);
    return add_theory(w->v, result, err);
}

/* Weights are the largest array: as many queries at once as make a million of them. */
static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_rate *v = values;
    work w = {.v = v, .width = fini_rate_width(v), .block = (INT64_C(1) << 20) / v->L};
    fin_cross_settings settings = cross_of(v);
    w.block = w.block < v->queries ? w.block : v->queries;
    FINI_LAY_OUT(err, &w.arena, "the contexts of a rate", layout(&w, &w.arena));
    fin_status status = fin_cross_create(&w.cross, &settings, NULL, v->d, w.width, v->L, err);
    if (!status)
        status = add_all(&w, result, progress, err);
    fin_cross_destroy(w.cross);
    fini_arena_close(&w.arena);
    return status;
}

const fin_command fini_command_rate = {
    .name = "rate",
    .summary = "error of attention to a context of L tokens, to the mean it is to find and to its "
               "limit",
    .revision = 1,
    .size = sizeof(fini_rate),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(rate_table),
    .check = check,
    .run = run,
};
