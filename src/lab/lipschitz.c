/* lipschitz: why the price of learning does not grow with the length. How far attention moves when
 * its parameters do is bounded without L:
 *
 *     softmax     |softmax(x) - softmax(y)|_1 <= |x - y|_inf                      (1 is sharp)
 *     attention   |f - f'| <= R |dWv| + R^3 |Wv| |dWqk|  for tokens and queries within R
 *     cme         |w|_1 <= (|q|^2 / (4 alpha))^(1/2)     for weights w with the ridge lam = alpha L
 *
 * Each side is computed for many random inputs of length L; the ratio may not exceed 1. */
#include "lab/mixed.h"

#include "random/streams.h"
#include "math/small.h"

#include <math.h>
#include <string.h>

#define LIPSCHITZ_FIELDS(F, C)                                                                     \
    F(int64_t, L, 64, 2, 1000000, "tokens in a context, an even number")                           \
    F(int64_t, p, 5, 1, 16, "numbers in a token")                                                  \
    F(int64_t, dv, 2, 1, 16, "numbers in an answer")                                               \
    F(double, R, 1, 1e-3, 1e3, "length of the longest tokens and queries")                         \
    F(double, alpha, 0.01, 1e-9, 1e9, "cme: the ridge over L")                                     \
    F(int64_t, draws, 1000, 1, 100000000, "random inputs")                                         \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT lipschitz_values
FIN_TABLE_OF_ITS_OWN(lipschitz_table, "lipschitz", LIPSCHITZ_FIELDS);

static const fin_output outputs[] = {
    {"attention", "largest |f - f'| / (R |dWv| + R^3 |Wv| |dWqk|)", NULL},
    {"softmax", "largest |softmax(x) - softmax(y)|_1 / |x - y|_inf of random scores", NULL},
    {"extremal", "that of scores +-t on the halves and their opposites, t small", NULL},
    {"weights", "largest |w|_1 / (|q|^2 / (4 alpha))^(1/2) of cme", NULL},
    {NULL, NULL, NULL},
};

enum { P = 16 };

static fin_status check(const void *values, fin_error *err)
{
    const lipschitz_values *v = values;
    if (v->L % 2 != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld is odd; it has to have halves",
                         (long long)v->L);
    return FIN_OK;
}

typedef struct work {
    const lipschitz_values *v;
    fini_arena arena;
    double *X, *a, *b; /* (L, p), (L), (L) */
    double attention, softmax, weights;
} work;

static void lay_out(void *user)
{
    work *w = user;
    w->X = fini_take(&w->arena, w->v->L * w->v->p, sizeof(double));
    w->a = fini_take(&w->arena, w->v->L, sizeof(double));
    w->b = fini_take(&w->arena, w->v->L, sizeof(double));
}

static double norm(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* |softmax(a) - softmax(b)|_1 / |a - b|_inf; both become weights. */
static double softmax_ratio(int64_t n, double *a, double *b)
{
    double far = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        far = fmax(far, fabs(a[i] - b[i]));
    fini_softmax_libm(n, a, false);
    fini_softmax_libm(n, b, false);
    for (int64_t i = 0; i < n; i++)
        sum += fabs(a[i] - b[i]);
    return far > 0 ? sum / far : 0;
}

/* exp of uniform between log low and log high. */
static double scale(fin_random *r, double low, double high)
{
    return low * pow(high / low, fin_random_uniform(r));
}

static void normals(fin_random *r, int64_t n, double times, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = times * fin_random_normal(r);
}

static void scores(const work *w, const double *Wqk, const double *q, double *out)
{
    int64_t p = w->v->p;
    double s[P] = {0};
    for (int64_t i = 0; i < p * p; i++)
        s[i / p] += Wqk[i] * q[i % p];
    for (int64_t l = 0; l < w->v->L; l++) {
        out[l] = 0;
        for (int64_t c = 0; c < p; c++)
            out[l] += w->X[l * p + c] * s[c];
    }
}

static void answer(const work *w, const double *Wv, const double *weights, double *f)
{
    int64_t p = w->v->p;
    double mean[P] = {0};
    for (int64_t l = 0; l < w->v->L; l++)
        for (int64_t c = 0; c < p; c++)
            mean[c] += weights[l] * w->X[l * p + c];
    for (int64_t i = 0; i < w->v->dv; i++) {
        f[i] = 0;
        for (int64_t c = 0; c < p; c++)
            f[i] += Wv[i * p + c] * mean[c];
    }
}

/* w = X (X'X + alpha L)^-1 q. */
static double weights_ratio(work *w, const double *q)
{
    const lipschitz_values *v = w->v;
    int64_t p = v->p;
    double A[P * P] = {0}, u[P], sum = 0;
    for (int64_t l = 0; l < v->L; l++)
        for (int64_t i = 0; i < p; i++)
            for (int64_t j = 0; j <= i; j++)
                A[i * p + j] += w->X[l * p + i] * w->X[l * p + j];
    for (int64_t i = 0; i < p; i++)
        A[i * p + i] += v->alpha * (double)v->L;
    memcpy(u, q, (size_t)p * sizeof *u);
    if (!fini_hand_cholesky(p, A))
        return NAN;
    fini_hand_solve(p, A, u);
    for (int64_t l = 0; l < v->L; l++) {
        double weight = 0;
        for (int64_t i = 0; i < p; i++)
            weight += w->X[l * p + i] * u[i];
        sum += fabs(weight);
    }
    return sum / (norm(p, q) / sqrt(4 * v->alpha));
}

static void one(work *w, fin_random *r)
{
    const lipschitz_values *v = w->v;
    int64_t p = v->p, dv = v->dv;
    double Wqk[P * P], other_qk[P * P], Wv[P * P], other_v[P * P], q[P], f[P], g[P];
    for (int64_t l = 0; l <= v->L; l++) {
        double *x = l < v->L ? w->X + l * p : q;
        fin_random_sphere(r, p, x);
        for (int64_t c = 0; c < p; c++)
            x[c] *= v->R;
    }
    normals(r, p * p, scale(r, 0.1, 10), Wqk);
    normals(r, dv * p, 1, Wv);
    normals(r, p * p, scale(r, 1e-3, 1), other_qk); /* differences, */
    normals(r, dv * p, scale(r, 1e-6, 1), other_v);
    double bound = v->R * norm(dv * p, other_v) +
                   v->R * v->R * v->R * norm(dv * p, Wv) * norm(p * p, other_qk);
    for (int64_t i = 0; i < p * p; i++) /* then the others themselves */
        other_qk[i] += Wqk[i];
    for (int64_t i = 0; i < dv * p; i++)
        other_v[i] += Wv[i];
    scores(w, Wqk, q, w->a);
    scores(w, other_qk, q, w->b);
    w->softmax = fmax(w->softmax, softmax_ratio(v->L, w->a, w->b));
    answer(w, Wv, w->a, f);
    answer(w, other_v, w->b, g);
    for (int64_t i = 0; i < dv; i++)
        f[i] -= g[i];
    w->attention = fmax(w->attention, norm(dv, f) / bound);
    w->weights = fmax(w->weights, weights_ratio(w, q));
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    const lipschitz_values *v = w->v;
    fin_random r;
    uint64_t seed = fini_lab_seed(v->seed, v->L, 0);
    for (int64_t i = 0; i < v->draws; i++) {
        FINI_TRY(fini_go_on(progress, "drawing", (double)i, (double)v->draws, err));
        fin_random_open(&r, seed, FINI_STREAM_LIPSCHITZ, (uint64_t)i);
        one(w, &r);
    }
    for (int64_t l = 0; l < v->L; l++) {
        w->a[l] = l < v->L / 2 ? 1e-3 : -1e-3;
        w->b[l] = -w->a[l];
    }
    fini_result_scalar(result, "attention", w->attention, 0, FIN_HOW_CLOSED, v->draws);
    fini_result_scalar(result, "softmax", w->softmax, 0, FIN_HOW_CLOSED, v->draws);
    fini_result_scalar(result, "extremal", softmax_ratio(v->L, w->a, w->b), 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "weights", w->weights, 0, FIN_HOW_CLOSED, v->draws);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    work w = {.v = values};
    const fini_lab_frame frame = {&w.arena, "a context", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_lipschitz = {
    .name = "lipschitz",
    .summary = "how far attention moves with its parameters, against bounds without the length",
    .revision = 1,
    .size = sizeof(lipschitz_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(lipschitz_table),
    .check = check,
    .run = run,
};
