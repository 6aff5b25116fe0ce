/* limit: what cme and softmax attention make of the same long contexts, beside what theory says they
 * tend to: gains of harmonics, the ratio of the two at one query, the effective dimension.
 *
 * Values are not drawn: they enter by their mean given the key.
 *
 *     gain       uniform keys, degree l. By the addition theorem the mean gain of all harmonics of
 *                degree l is E_q sum_l w_l(q) P_l(q.k_l), P_l the zonal polynomial with P_l(1) = 1.
 *     ratio      m(k) = k. C(q) = |cme| / |softmax| and the cosine between the two, at queries that
 *                make an angle with the keys' mean direction; outputs are averaged in the plane of
 *                query and mean direction, where symmetry leaves all of their mean.
 *     dimension  Gamma(alpha) = tr G (G + lam)^-1 is the sum of the posterior variances at the
 *                tokens themselves, over lam. */
#include "lab/limit.h"
#include "theory/sphere.h"

#include <math.h>

#define FIN_TABLE_STRUCT fini_limit_settings
FIN_TABLE(static, limit_table, "limit", FINI_LIMIT_FIELDS);

static const fin_output outputs[] = {
    {"gain_cme", "gain: what cme multiplies harmonics of this degree by, measured", NULL},
    {"gain_softmax", "gain: the same of softmax", NULL},
    {"filter_cme", "gain: for L to infinity, mu_l / (mu_l + alpha)", NULL},
    {"filter_softmax", "gain: for L to infinity, mu_l / mu_0", NULL},
    {"ratio", "ratio: C(q) = |cme| / |softmax|, measured", NULL},
    {"cosine", "ratio: of the angle between the two, measured", NULL},
    {"ratio_limit", "ratio: C(q) for L to infinity; with vmf keys for alpha to 0 as well", NULL},
    {"cosine_limit", "ratio: the cosine then", NULL},
    {"proportion", "ratio, longer = 1: |lam cme| / |sum_l k(q, k_l) softmax|, measured", NULL},
    {"dimension", "dimension: Gamma(alpha), measured", NULL},
    {"dimension_limit", "dimension: for L to infinity", NULL},
    {NULL, NULL, NULL},
};

static fin_cross_settings cross_of(const fini_limit_settings *v, int form)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = form;
    s.kernel = FIN_KERNEL_RBF;
    s.scale = 1 / sqrt(v->kappa);
    s.prior = 1;
    s.noise = v->alpha * (double)v->L;
    s.temperature = 1 / v->kappa;
    s.method = form == FIN_CROSS_CME ? FIN_CROSS_DUAL : FIN_CROSS_AUTO;
    return s;
}

static fin_status check(const void *values, fin_error *err)
{
    const fini_limit_settings *v = values;
    fini_limit_settings usual;
    double bytes;
    fin_settings_defaults(&limit_table, &usual, sizeof usual);
    if (v->keys == FINI_RATE_VMF && v->measure != FINI_LIMIT_RATIO)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "keys = vmf has closed forms for measure = ratio alone; others need "
                         "keys = sphere");
    if (v->keys != FINI_RATE_VMF && v->concentration != usual.concentration)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "concentration belongs to keys = vmf; leave it out");
    if (v->measure != FINI_LIMIT_GAIN && v->degree != usual.degree)
        return fini_fail(err, FIN_ERR_ARGUMENT, "degree belongs to measure = gain; leave it out");
    if (v->measure != FINI_LIMIT_RATIO && (v->angle != usual.angle || v->longer != usual.longer))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "angle and longer belong to measure = ratio; leave them out");
    if (v->measure == FINI_LIMIT_DIMENSION && v->queries != usual.queries)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "measure = dimension asks at the tokens; leave queries out");
    if (v->L * v->longer > INT64_C(1) << 24)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "softmax's contexts would have L * longer = %lld tokens, and 16777216 are "
                         "the most",
                         (long long)(v->L * v->longer));
    fin_cross_settings cme = cross_of(v, FIN_CROSS_CME);
    return fin_cross_bytes(&cme, v->d, v->d, v->L, &bytes, err);
}

/* ---- both forms with one context ---------------------------------------------------------------- */

static void layout(fini_limit *w, fini_arena *arena)
{
    int64_t d = w->v->d;
    w->keys = fini_take(arena, w->longest * d, sizeof(double));
    w->queries = fini_take(arena, w->asked * d, sizeof(double));
    w->side = fini_take(arena, w->asked * d, sizeof(double));
    w->out = fini_take(arena, w->block * d, sizeof(double));
    w->spread = fini_take(arena, w->block * d, sizeof(double));
    w->weights = fini_take(arena, w->block * w->v->L, sizeof(double));
    w->planar = fini_take(arena, w->v->contexts * FINI_LIMIT_PLANE, sizeof(double));
}

fin_status fini_limit_load(fini_limit *w, int64_t context, const fin_progress *progress,
                           fin_error *err)
{
    uint64_t sample = (uint64_t)w->longest << 32 | (uint64_t)context;
    fini_rate_draw(&w->law, w->v->seed, FINI_STREAM_RATE_KEYS, sample, w->longest, w->keys);
    FINI_TRY(fin_cross_load(w->cme, w->v->L, w->keys, w->keys, progress, err));
    if (w->softmax)
        FINI_TRY(fin_cross_load(w->softmax, w->longest, w->keys, w->keys, progress, err));
    return FIN_OK;
}

/* ---- gain --------------------------------------------------------------------------------------- */

/* (l + d - 2) P_{l+1} = (2l + d - 2) t P_l - l P_{l-1}: Gegenbauer's polynomials with P_l(1) = 1. */
static double zonal(int64_t d, int64_t degree, double t)
{
    double before = 1, now = t;
    if (degree == 0)
        return 1;
    for (int64_t l = 1; l < degree; l++) {
        double next = (double)(2 * l + d - 2) * t * now - (double)l * before;
        before = now;
        now = next / (double)(l + d - 2);
    }
    return now;
}

static fin_status mean_gain(fini_limit *w, fin_cross *cross, const fin_progress *progress,
                            fini_average *average, fin_error *err)
{
    const fini_limit_settings *v = w->v;
    double sum = 0;
    for (int64_t first = 0; first < w->asked; first += w->block) {
        int64_t left = w->asked - first, count = left < w->block ? left : w->block;
        const double *queries = w->queries + first * v->d;
        FINI_TRY(fin_cross_predict(cross, count, queries, w->out, NULL, w->weights, progress, err));
        for (int64_t i = 0; i < count; i++)
            for (int64_t l = 0; l < v->L; l++)
                sum += w->weights[i * v->L + l] *
                       zonal(v->d, v->degree,
                             fini_dot_in_order(v->d, queries + i * v->d, w->keys + l * v->d));
    }
    fini_average_add(average, sum / (double)w->asked);
    return FIN_OK;
}

static fin_status one_gain(fini_limit *w, int64_t context, const fin_progress *progress,
                           fin_error *err)
{
    uint64_t sample = (uint64_t)w->longest << 32 | (uint64_t)context;
    fini_rate_draw(&w->law, w->v->seed, FINI_STREAM_RATE_QUERIES, sample, w->asked, w->queries);
    FINI_TRY(fini_limit_load(w, context, progress, err));
    FINI_TRY(mean_gain(w, w->cme, progress, &w->first, err));
    return mean_gain(w, w->softmax, progress, &w->second, err);
}

/* ---- dimension ---------------------------------------------------------------------------------- */

static fin_status one_dimension(fini_limit *w, int64_t context, const fin_progress *progress,
                                fin_error *err)
{
    const fini_limit_settings *v = w->v;
    double sum = 0;
    fin_status status = fini_limit_load(w, context, progress, err);
    for (int64_t first = 0; first < v->L && !status; first += w->block) {
        int64_t left = v->L - first, count = left < w->block ? left : w->block;
        status = fin_cross_predict(w->cme, count, w->keys + first * v->d, w->out, w->spread, NULL,
                                   progress, err);
        for (int64_t i = 0; i < count && !status; i++)
            sum += w->spread[i * v->d];
    }
    if (!status)
        fini_average_add(&w->first, sum / (v->alpha * (double)v->L));
    return status;
}

/* ---- all contexts -------------------------------------------------------------------------------- */

static void add_mean(fin_result *result, const char *name, const fini_average *a)
{
    fini_result_scalar(result, name, a->mean, fini_average_error(a), FIN_HOW_SIMULATION, a->count);
}

static void add_results(const fini_limit *w, fin_result *result)
{
    const fini_limit_settings *v = w->v;
    if (v->measure == FINI_LIMIT_GAIN) {
        add_mean(result, "gain_cme", &w->first);
        add_mean(result, "gain_softmax", &w->second);
        fini_result_scalar(result, "filter_cme",
                           fini_sphere_filter_cme(v->d, v->kappa, v->alpha, v->degree), 0,
                           FIN_HOW_CLOSED, 0);
        fini_result_scalar(result, "filter_softmax",
                           fini_sphere_filter_softmax(v->d, v->kappa, v->degree), 0, FIN_HOW_CLOSED,
                           0);
    } else if (v->measure == FINI_LIMIT_RATIO) {
        fini_limit_add_ratio(w, result);
        fini_limit_add_ratio_limits(v, result);
    } else {
        add_mean(result, "dimension", &w->first);
        fini_result_scalar(result, "dimension_limit",
                           fini_sphere_dimension(v->d, v->kappa, v->alpha), 0, FIN_HOW_CLOSED, 0);
    }
}

static fin_status measure(fini_limit *w, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    fin_status (*const one[])(fini_limit *, int64_t, const fin_progress *,
                              fin_error *) = {one_gain, fini_limit_one_ratio, one_dimension};
    for (int64_t i = 0; i < w->v->contexts; i++) {
        FINI_TRY(one[w->v->measure](w, i, progress, err));
        FINI_TRY(fini_go_on(progress, "limit", (double)i, (double)w->v->contexts, err));
    }
    add_results(w, result);
    return FIN_OK;
}

static fin_status create(fini_limit *w, fin_error *err)
{
    const fini_limit_settings *v = w->v;
    fin_cross_settings cme = cross_of(v, FIN_CROSS_CME), softmax = cross_of(v, FIN_CROSS_SOFTMAX);
    FINI_LAY_OUT(err, &w->arena, "the contexts of a limit", layout(w, &w->arena));
    FINI_TRY(fin_cross_create(&w->cme, &cme, NULL, v->d, v->d, v->L, err));
    if (v->measure != FINI_LIMIT_DIMENSION)
        FINI_TRY(fin_cross_create(&w->softmax, &softmax, NULL, v->d, v->d, w->longest, err));
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_limit_settings *v = values;
    fini_limit w = {
        .v = v, .law = {v->keys, v->d, v->concentration, 1}, .longest = v->L * v->longer};
    w.asked = v->measure == FINI_LIMIT_DIMENSION ? v->L : v->queries;
    w.block = (INT64_C(1) << 20) / v->L;
    w.block = w.block < w.asked ? w.block : w.asked;
    fin_status status = create(&w, err);
    if (!status)
        status = measure(&w, result, progress, err);
    fin_cross_destroy(w.cme);
    fin_cross_destroy(w.softmax);
    fini_arena_close(&w.arena);
    return status;
}

const fin_command fini_command_limit = {
    .name = "limit",
    .summary =
        "what cme and softmax attention make of long contexts: gains, their ratio, effective "
        "dimension",
    .revision = 1,
    .size = sizeof(fini_limit_settings),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(limit_table),
    .check = check,
    .run = run,
};
