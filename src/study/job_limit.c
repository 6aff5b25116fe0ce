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
#include "study/rate.h"

#include "finetti/random.h"

#include <math.h>

/*   type     field    default        lowest  highest         meaning */
#define LIMIT_FIELDS(F, C)                                                                         \
    C(measure, 0, "gain|ratio|dimension",                                                          \
      "gain of a degree; cme over softmax at a query; effective dimension")                        \
    F(int64_t, d, 3, 2, 16, "numbers in a key")                                                    \
    C(keys, 0, "sphere|vmf",                                                                       \
      "law of keys: uniform on the sphere, von Mises-Fisher around the first axis")                \
    F(double, concentration, 2, 0, 1e3, "of vmf keys")                                             \
    F(double, kappa, 3, 1e-6, 1e6, "kernel exp(kappa (q.k - 1)), scores kappa q.k")                \
    F(double, alpha, 0.1, 1e-12, 1e12, "ridge of cme over L")                                      \
    F(int64_t, degree, 1, 0, 64, "gain: degree of the harmonics")                                  \
    F(double, angle, 0, 0, 180, "ratio: degrees between the query and the first axis")             \
    F(int64_t, longer, 1, 1, 65536, "ratio: softmax's contexts are so many times longer")          \
    F(int64_t, L, 1024, 2, FIN_CROSS_DUAL_MOST, "tokens in a context")                             \
    F(int64_t, contexts, 8, 2, 100000, "contexts")                                                 \
    F(int64_t, queries, 64, 1, 65536, "queries to each context (dimension: the tokens)")           \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of keys and queries")

typedef struct limit_settings {
    LIMIT_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} limit_settings;
enum { GAIN, RATIO, DIMENSION };
enum { PLANE = 6 };
static const double PI = 3.14159265358979323846;

#define FIN_TABLE_STRUCT limit_settings
FIN_TABLE(static, limit_table, "limit", LIMIT_FIELDS);
#undef FIN_TABLE_STRUCT

static const fini_word words[] = {{NULL, 0, 0, NULL, NULL}};

static const fini_output_row outputs[] = {
    {"gain_cme", "gain: what cme multiplies harmonics of this degree by, measured"},
    {"gain_softmax", "gain: the same of softmax"},
    {"filter_cme", "gain: for L to infinity, mu_l / (mu_l + alpha)"},
    {"filter_softmax", "gain: for L to infinity, mu_l / mu_0"},
    {"ratio", "ratio: C(q) = |cme| / |softmax|, measured"},
    {"cosine", "ratio: of the angle between the two, measured"},
    {"ratio_limit", "ratio: C(q) for L to infinity; with vmf keys for alpha to 0 as well"},
    {"cosine_limit", "ratio: the cosine then"},
    {"proportion", "ratio, longer = 1: |lam cme| / |sum_l k(q, k_l) softmax|, measured"},
    {"dimension", "dimension: Gamma(alpha), measured"},
    {"dimension_limit", "dimension: for L to infinity"},
    {NULL, NULL},
};

static fin_status groups(void *values, fini_group list[FINI_GROUPS], int *count, fin_error *err)
{
    (void)err;
    list[(*count)++] = (fini_group){&limit_table, values};
    return FIN_OK;
}

static fin_cross_settings cross_of(const limit_settings *v, int form)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s);
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
    const limit_settings *v = values;
    limit_settings usual;
    double bytes;
    fin_settings_defaults(&limit_table, &usual);
    if (v->keys == FINI_RATE_VMF && v->measure != RATIO)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "keys = vmf has closed forms for measure = ratio alone; others need "
                         "keys = sphere");
    if (v->keys != FINI_RATE_VMF && v->concentration != usual.concentration)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "concentration belongs to keys = vmf; leave it out");
    if (v->measure != GAIN && v->degree != usual.degree)
        return fini_fail(err, FIN_ERR_ARGUMENT, "degree belongs to measure = gain; leave it out");
    if (v->measure != RATIO && (v->angle != usual.angle || v->longer != usual.longer))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "angle and longer belong to measure = ratio; leave them out");
    if (v->measure == DIMENSION && v->queries != usual.queries)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "measure = dimension asks at the tokens; leave queries out");
    fin_cross_settings cme = cross_of(v, FIN_CROSS_CME);
    return fin_cross_bytes(&cme, v->d, v->d, v->L, &bytes, err);
}

/* ---- both forms with one context ---------------------------------------------------------------- */

typedef struct work {
    const limit_settings *v;
    fini_rate_law law;
    int64_t longest, asked, block; /* softmax's L; queries; of them at once */
    fin_cross *cme, *softmax;
    fini_arena arena;
    double *keys, *queries; /* (longest, d), (asked, d) */
    double *side;           /* (asked, d): unit vectors, orthogonal to the query */
    double *out, *spread;   /* (block, d) */
    double *weights;        /* (block, L) */
    double *planar;         /* (contexts, 6): ratio's outputs along query and side: cme, softmax,
                             * softmax times the kernel's mass */
    fini_average first, second;
} work;

static void layout(work *w, fini_arena *arena)
{
    int64_t d = w->v->d;
    w->keys = fini_take(arena, w->longest * d, sizeof(double));
    w->queries = fini_take(arena, w->asked * d, sizeof(double));
    w->side = fini_take(arena, w->asked * d, sizeof(double));
    w->out = fini_take(arena, w->block * d, sizeof(double));
    w->spread = fini_take(arena, w->block * d, sizeof(double));
    w->weights = fini_take(arena, w->block * w->v->L, sizeof(double));
    w->planar = fini_take(arena, w->v->contexts * PLANE, sizeof(double));
}

static fin_status load(work *w, int64_t context, const fin_progress *progress, fin_error *err)
{
    uint64_t sample = (uint64_t)w->longest << 32 | (uint64_t)context;
    fini_rate_draw(&w->law, w->v->seed, FINI_STREAM_RATE_KEYS, sample, w->longest, w->keys);
    fin_status status = fin_cross_load(w->cme, w->v->L, w->keys, w->keys, progress, err);
    if (!status && w->softmax)
        status = fin_cross_load(w->softmax, w->longest, w->keys, w->keys, progress, err);
    return status;
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

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static fin_status mean_gain(work *w, fin_cross *cross, const fin_progress *progress,
                            fini_average *average, fin_error *err)
{
    const limit_settings *v = w->v;
    double sum = 0;
    for (int64_t first = 0; first < w->asked; first += w->block) {
        int64_t left = w->asked - first, count = left < w->block ? left : w->block;
        const double *queries = w->queries + first * v->d;
        fin_status status =
            fin_cross_predict(cross, count, queries, w->out, NULL, w->weights, progress, err);
        if (status)
            return status;
        for (int64_t i = 0; i < count; i++)
            for (int64_t l = 0; l < v->L; l++)
                sum += w->weights[i * v->L + l] *
                       zonal(v->d, v->degree, dot(v->d, queries + i * v->d, w->keys + l * v->d));
    }
    fini_average_add(average, sum / (double)w->asked);
    return FIN_OK;
}

static fin_status one_gain(work *w, int64_t context, const fin_progress *progress, fin_error *err)
{
    uint64_t sample = (uint64_t)w->longest << 32 | (uint64_t)context;
    fini_rate_draw(&w->law, w->v->seed, FINI_STREAM_RATE_QUERIES, sample, w->asked, w->queries);
    fin_status status = load(w, context, progress, err);
    if (!status)
        status = mean_gain(w, w->cme, progress, &w->first, err);
    if (!status)
        status = mean_gain(w, w->softmax, progress, &w->second, err);
    return status;
}

/* ---- ratio -------------------------------------------------------------------------------------- */

/* Queries cos(angle) e_1 + sin(angle) t and, orthogonal to them and towards e_1, the sides
 * sin(angle) e_1 - cos(angle) t, with t a random direction orthogonal to e_1. */
static void turn(work *w, int64_t context)
{
    int64_t d = w->v->d;
    double radians = w->v->angle * (PI / 180);
    double c = cos(radians), s = sin(radians);
    fin_random r;
    fin_random_open(&r, (uint64_t)w->v->seed, FINI_STREAM_RATE_TURNS, (uint64_t)context);
    for (int64_t i = 0; i < w->asked; i++) {
        double *q = w->queries + i * d, *side = w->side + i * d, t[16];
        fin_random_sphere(&r, d - 1, t);
        q[0] = c;
        side[0] = s;
        for (int64_t j = 1; j < d; j++) {
            q[j] = s * t[j - 1];
            side[j] = -c * t[j - 1];
        }
    }
}

/* sum_l k(q, k_l) / lam over the tokens that cme sees: with a ridge far above L cme is softmax times
 * this, because (G + lam)^-1 is 1 / lam then. */
static double mass(const work *w, const double *q)
{
    const limit_settings *v = w->v;
    double sum = 0;
    for (int64_t l = 0; l < v->L; l++)
        sum += exp(v->kappa * (dot(v->d, q, w->keys + l * v->d) - 1));
    return sum / (v->alpha * (double)v->L);
}

/* Means over the queries of the output along query and side; `massive`, unless NULL: times mass. */
static fin_status in_plane(work *w, fin_cross *cross, const fin_progress *progress, double plane[2],
                           double *massive, fin_error *err)
{
    int64_t d = w->v->d;
    for (int64_t first = 0; first < w->asked; first += w->block) {
        int64_t left = w->asked - first, count = left < w->block ? left : w->block;
        fin_status status = fin_cross_predict(cross, count, w->queries + first * d, w->out, NULL,
                                              NULL, progress, err);
        if (status)
            return status;
        for (int64_t i = 0; i < count; i++) {
            const double *q = w->queries + (first + i) * d, *side = w->side + (first + i) * d;
            const double along[2] = {dot(d, w->out + i * d, q), dot(d, w->out + i * d, side)};
            double factor = massive ? mass(w, q) : 0;
            for (int j = 0; j < 2; j++) {
                plane[j] += along[j] / (double)w->asked;
                if (massive)
                    massive[j] += factor * along[j] / (double)w->asked;
            }
        }
    }
    return FIN_OK;
}

static fin_status one_ratio(work *w, int64_t context, const fin_progress *progress, fin_error *err)
{
    double *planar = w->planar + PLANE * context;
    turn(w, context);
    fin_status status = load(w, context, progress, err);
    if (!status)
        status = in_plane(w, w->cme, progress, planar, NULL, err);
    if (!status)
        status = in_plane(w, w->softmax, progress, planar + 2,
                          w->v->longer == 1 ? planar + 4 : NULL, err);
    return status;
}

/* Ratio, cosine and proportion of the mean outputs, without one context (or none: -1). */
static void compare(const work *w, int64_t without, double out[3])
{
    double m[PLANE] = {0};
    for (int64_t i = 0; i < w->v->contexts; i++)
        for (int j = 0; j < PLANE && i != without; j++)
            m[j] += w->planar[PLANE * i + j];
    double cme = hypot(m[0], m[1]), softmax = hypot(m[2], m[3]);
    out[0] = cme / softmax;
    out[1] = (m[0] * m[2] + m[1] * m[3]) / (cme * softmax);
    out[2] = cme / hypot(m[4], m[5]);
}

/* Quenouille and Tukey's jackknife: the numbers without one context, their spread times (n-1)^2. */
static void add_ratio(const work *w, fini_result *result)
{
    static const char *const names[3] = {"ratio", "cosine", "proportion"};
    double n = (double)w->v->contexts, number[3];
    fini_average average[3] = {0};
    for (int64_t i = 0; i < w->v->contexts; i++) {
        compare(w, i, number);
        for (int j = 0; j < 3; j++)
            fini_average_add(&average[j], number[j]);
    }
    compare(w, -1, number);
    for (int j = 0; j < (w->v->longer == 1 ? 3 : 2); j++)
        fini_result_scalar(result, names[j], number[j], (n - 1) * fini_average_error(&average[j]),
                           FIN_HOW_SIMULATION, w->v->contexts);
}

/* cme tends to m(q) = q as alpha falls, softmax to A_d(b) (kappa q + c) / b, b = |kappa q + c|; with
 * uniform keys cme to mu_1 / (mu_1 + alpha) q. */
static void add_ratio_limits(const limit_settings *v, fini_result *result)
{
    double c[16] = {0}, q[16] = {0}, limit[16] = {0}, kept = 1;
    double radians = v->angle * (PI / 180);
    c[0] = v->keys == FINI_RATE_VMF ? v->concentration : 0;
    q[0] = cos(radians);
    q[1] = sin(radians);
    fin_sphere_limit_vmf(v->d, v->kappa, c, q, limit);
    if (v->keys == FINI_RATE_SPHERE)
        kept = fin_sphere_filter_cme(v->d, v->kappa, v->alpha, 1);
    double length = sqrt(dot(v->d, limit, limit));
    fini_result_scalar(result, "ratio_limit", kept / length, 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "cosine_limit", dot(v->d, limit, q) / length, 0, FIN_HOW_CLOSED, 0);
}

/* ---- dimension ---------------------------------------------------------------------------------- */

static fin_status one_dimension(work *w, int64_t context, const fin_progress *progress,
                                fin_error *err)
{
    const limit_settings *v = w->v;
    double sum = 0;
    fin_status status = load(w, context, progress, err);
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

static void add_mean(fini_result *result, const char *name, const fini_average *a)
{
    fini_result_scalar(result, name, a->mean, fini_average_error(a), FIN_HOW_SIMULATION, a->count);
}

static void add_results(const work *w, fini_result *result)
{
    const limit_settings *v = w->v;
    if (v->measure == GAIN) {
        add_mean(result, "gain_cme", &w->first);
        add_mean(result, "gain_softmax", &w->second);
        fini_result_scalar(result, "filter_cme",
                           fin_sphere_filter_cme(v->d, v->kappa, v->alpha, v->degree), 0,
                           FIN_HOW_CLOSED, 0);
        fini_result_scalar(result, "filter_softmax",
                           fin_sphere_filter_softmax(v->d, v->kappa, v->degree), 0, FIN_HOW_CLOSED,
                           0);
    } else if (v->measure == RATIO) {
        add_ratio(w, result);
        add_ratio_limits(v, result);
    } else {
        add_mean(result, "dimension", &w->first);
        fini_result_scalar(result, "dimension_limit",
                           fin_sphere_dimension(v->d, v->kappa, v->alpha), 0, FIN_HOW_CLOSED, 0);
    }
}

static fin_status measure(work *w, fini_result *result, const fin_progress *progress,
                          fin_error *err)
{
    fin_status (*const one[])(work *, int64_t, const fin_progress *,
                              fin_error *) = {one_gain, one_ratio, one_dimension};
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < w->v->contexts && !status; i++) {
        status = one[w->v->measure](w, i, progress, err);
        if (!status && fini_report(progress, "limit", (double)i, (double)w->v->contexts))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    }
    if (status)
        return status;
    add_results(w, result);
    return fini_result_status(result, err);
}

static fin_status create(work *w, fin_error *err)
{
    const limit_settings *v = w->v;
    fin_cross_settings cme = cross_of(v, FIN_CROSS_CME), softmax = cross_of(v, FIN_CROSS_SOFTMAX);
    layout(w, &w->arena);
    fin_status status = fini_arena_open(&w->arena, "the contexts of a limit", err);
    if (status)
        return status;
    layout(w, &w->arena);
    status = fin_cross_create(&w->cme, &cme, NULL, v->d, v->d, v->L, err);
    if (!status && v->measure != DIMENSION)
        status = fin_cross_create(&w->softmax, &softmax, NULL, v->d, v->d, w->longest, err);
    return status;
}

static fin_status run(const void *values, fini_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const limit_settings *v = values;
    work w = {.v = v, .law = {v->keys, v->d, v->concentration, 1}, .longest = v->L * v->longer};
    w.asked = v->measure == DIMENSION ? v->L : v->queries;
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

const fini_job fini_job_limit = {
    .name = "limit",
    .summary =
        "what cme and softmax attention make of long contexts: gains, their ratio, effective "
        "dimension",
    .revision = 1,
    .size = sizeof(limit_settings),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
