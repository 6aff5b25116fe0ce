/* linear: linear attention learnt from n sequences, where everything is in closed form.
 *
 *     f(q) = A G q,  A = V'K / L,  k, q ~ N(0, Lam),  v = Z k + N(0, noise),  Z ~ N(0, prior)
 *
 * is linear in its d x d parameters G, so that the best G for n sequences is one linear system; and
 * the risk of any G is known:
 *
 *     risk(G) = dv noise + dv prior (tr Lam - 2 tr(Lam G Lam) + tr(E2 G Lam G'))
 *     E2 = (1 + 1/L) Lam^2 + (tr Lam + noise/prior) Lam / L
 *     least at G* = ((1 + 1/L) Lam + (tr Lam + noise/prior) / L)^-1.
 *
 * n (risk(G) - risk(G*)) tends to tr(H^-1 S), which tends to noise d^2 for large L: it falls with
 * the length and never grows.
 *
 * A sequence enters through A alone. Given Z it is (Z S + noise^(1/2) N S^(1/2)) / L, S = K'K of
 * Wishart's law, which is drawn by Bartlett's decomposition: the cost does not depend on L. */
#include "lab/mixed.h"

#include "random/streams.h"

#include <math.h>
#include <string.h>

#define LINEAR_FIELDS(F, C)                                                                        \
    F(int64_t, d, 2, 1, 8, "numbers in a key")                                                     \
    F(int64_t, dv, 1, 1, 8, "numbers in a value")                                                  \
    F(double, least, 0.5, 1e-3, 1e3, "Lam is diagonal, evenly spaced from this")                   \
    F(double, greatest, 1.5, 1e-3, 1e3, "to that")                                                 \
    F(double, prior, 1, 1e-3, 1e3, "prior variance of the concept's numbers")                      \
    F(double, noise, 1, 0, 1e3, "variance of a value around its mean")                             \
    F(int64_t, L, 32, 1, 1000000, "tokens in a context; at least d")                               \
    F(int64_t, n, 256, 2, 1000000, "training sequences, with one masked token each")               \
    F(int64_t, repetitions, 200, 2, 1000000, "training sets")                                      \
    F(int64_t, test, 0, 0, 100000000, "sequences to draw the risk of G* and tr(H^-1 S) from")      \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT linear_values
FIN_TABLE_OF_ITS_OWN(linear_table, "linear", LINEAR_FIELDS);

static const fin_output outputs[] = {
    {"excess", "risk of the learnt G, by the formula, above that of G*; mean over training sets",
     NULL},
    {"scaled", "n times the excess", NULL},
    {"limit", "what n excess tends to for many sequences of many tokens: noise d^2", NULL},
    {"least_risk", "risk of G*, by the formula", NULL},
    {"drawn_risk", "the same on drawn sequences (test > 0)", NULL},
    {"ratio", "drawn_risk / least_risk", NULL},
    {"predicted", "tr(H^-1 S) from drawn sequences (test > 0)", NULL},
    {NULL, NULL, NULL},
};

enum { D = 8 };

typedef struct sequence {
    double A[D * D], q[D], y[D]; /* (dv, d), (d), (dv) */
} sequence;

typedef struct work {
    const linear_values *v;
    uint64_t seed;
    double lam[D], e2[D], best[D]; /* Lam, E2 and G* are diagonal */
    fini_arena arena;
    double *H, *b; /* (d^2, d^2), (d^2) */
} work;

static fin_status check(const void *values, fin_error *err)
{
    const linear_values *v = values;
    if (v->L < v->d)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld tokens are fewer than d = %lld",
                         (long long)v->L, (long long)v->d);
    if (v->n * v->dv < v->d * v->d)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "n dv = %lld numbers do not determine d^2 = %lld parameters; a larger n "
                         "does",
                         (long long)(v->n * v->dv), (long long)(v->d * v->d));
    return FIN_OK;
}

static void closed_forms(work *w)
{
    const linear_values *v = w->v;
    double L = (double)v->L, sum = v->noise / v->prior;
    for (int64_t i = 0; i < v->d; i++) {
        w->lam[i] = v->d == 1
                        ? v->least
                        : v->least + (v->greatest - v->least) * (double)i / (double)(v->d - 1);
        sum += w->lam[i];
    }
    for (int64_t i = 0; i < v->d; i++) {
        double inverse = (1 + 1 / L) * w->lam[i] + sum / L;
        w->e2[i] = w->lam[i] * inverse;
        w->best[i] = 1 / inverse;
    }
}

static double least_risk(const work *w)
{
    const linear_values *v = w->v;
    double sum = 0;
    for (int64_t i = 0; i < v->d; i++)
        sum += w->lam[i] - 2 * w->lam[i] * w->best[i] * w->lam[i] +
               w->e2[i] * w->best[i] * w->lam[i] * w->best[i];
    return (double)v->dv * (v->noise + v->prior * sum);
}

/* dv prior tr(E2 (G - G*) Lam (G - G*)'). */
static double excess_of(const work *w, const double *G)
{
    const linear_values *v = w->v;
    double sum = 0;
    for (int64_t i = 0; i < v->d; i++)
        for (int64_t j = 0; j < v->d; j++) {
            double far = G[i * v->d + j] - (i == j ? w->best[i] : 0);
            sum += w->e2[i] * far * far * w->lam[j];
        }
    return (double)v->dv * v->prior * sum;
}

/* T of Bartlett's decomposition: K'K = Lam^(1/2) T T' Lam^(1/2), T lower triangular. */
static void draw(const work *w, uint32_t stream, uint64_t number, sequence *s)
{
    const linear_values *v = w->v;
    int64_t d = v->d;
    double T[D * D] = {0}, Z[D * D], left[D];
    fin_random r;
    fin_random_open(&r, w->seed, stream, number);
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j < i; j++)
            T[i * d + j] = fin_random_normal(&r) * sqrt(w->lam[i]);
        T[i * d + i] = sqrt(fin_random_chi_square(&r, (double)(v->L - i)) * w->lam[i]);
        s->q[i] = fin_random_normal(&r) * sqrt(w->lam[i]);
    }
    for (int64_t i = 0; i < v->dv; i++) {
        s->y[i] = fin_random_normal(&r) * sqrt(v->noise);
        for (int64_t a = 0; a < d; a++) {
            Z[i * d + a] = fin_random_normal(&r) * sqrt(v->prior);
            s->y[i] += Z[i * d + a] * s->q[a];
        }
        for (int64_t b = 0; b < d; b++) { /* A = (Z T + noise^(1/2) N) T' / L */
            left[b] = fin_random_normal(&r) * sqrt(v->noise);
            for (int64_t a = b; a < d; a++)
                left[b] += Z[i * d + a] * T[a * d + b];
        }
        for (int64_t a = 0; a < d; a++) {
            double sum = 0;
            for (int64_t b = 0; b <= a; b++)
                sum += left[b] * T[a * d + b];
            s->A[i * d + a] = sum / (double)v->L;
        }
    }
}

/* H += sum_i (A_i x q)(A_i x q)', b += sum_i (A_i x q) y_i. */
static void add_sequence(work *w, const sequence *s)
{
    int64_t d = w->v->d, P = d * d;
    double x[D * D];
    for (int64_t i = 0; i < w->v->dv; i++) {
        for (int64_t a = 0; a < P; a++)
            x[a] = s->A[i * d + a / d] * s->q[a % d];
        for (int64_t a = 0; a < P; a++) {
            w->b[a] += x[a] * s->y[i];
            for (int64_t c = 0; c <= a; c++)
                w->H[a * P + c] += x[a] * x[c];
        }
    }
}

static bool learn(work *w, int64_t repetition)
{
    int64_t P = w->v->d * w->v->d;
    sequence s;
    memset(w->H, 0, (size_t)(P * P) * sizeof *w->H);
    memset(w->b, 0, (size_t)P * sizeof *w->b);
    for (int64_t i = 0; i < w->v->n; i++) {
        draw(w, FINI_STREAM_LINEAR, (uint64_t)(repetition * w->v->n + i), &s);
        add_sequence(w, &s);
    }
    if (!fini_hand_cholesky(P, w->H))
        return false;
    fini_hand_solve(P, w->H, w->b);
    return true;
}

/* The risk of G*, and tr(H^-1 S) = mean of sum_ab (A'r q')_ab^2 / (dv prior E2_a Lam_b). */
static void draw_risk(work *w, fin_result *result)
{
    const linear_values *v = w->v;
    int64_t d = v->d;
    fini_average risk = {0}, trace = {0};
    sequence s;
    for (int64_t i = 0; i < v->test; i++) {
        double residual[D], sum = 0, squares = 0;
        draw(w, FINI_STREAM_LINEAR_TEST, (uint64_t)i, &s);
        for (int64_t j = 0; j < v->dv; j++) {
            residual[j] = -s.y[j];
            for (int64_t a = 0; a < d; a++)
                residual[j] += s.A[j * d + a] * w->best[a] * s.q[a];
            squares += residual[j] * residual[j];
        }
        for (int64_t a = 0; a < d; a++) {
            double along = 0;
            for (int64_t j = 0; j < v->dv; j++)
                along += s.A[j * d + a] * residual[j];
            for (int64_t b = 0; b < d; b++)
                sum += along * along * s.q[b] * s.q[b] /
                       ((double)v->dv * v->prior * w->e2[a] * w->lam[b]);
        }
        fini_average_add(&risk, squares);
        fini_average_add(&trace, sum);
    }
    fini_result_average(result, "drawn_risk", &risk, 1);
    fini_result_average(result, "ratio", &risk, 1 / least_risk(w));
    fini_result_average(result, "predicted", &trace, 1);
}

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    const linear_values *v = w->v;
    fini_average excess = {0};
    double n = (double)v->n;
    closed_forms(w);
    for (int64_t i = 0; i < v->repetitions; i++) {
        FINI_TRY(fini_go_on(progress, "learning", (double)i, (double)v->repetitions, err));
        if (!learn(w, i))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "n = %lld sequences do not determine the parameters; a larger n does",
                             (long long)v->n);
        fini_average_add(&excess, excess_of(w, w->b));
    }
    fini_result_average(result, "excess", &excess, 1);
    fini_result_average(result, "scaled", &excess, n);
    fini_result_exact(result, "limit", v->noise * (double)(v->d * v->d));
    fini_result_exact(result, "least_risk", least_risk(w));
    if (v->test > 1)
        draw_risk(w, result);
    return FIN_OK;
}

static void lay_out(void *user)
{
    work *w = user;
    int64_t P = w->v->d * w->v->d;
    w->H = fini_take(&w->arena, P * P, sizeof(double));
    w->b = fini_take(&w->arena, P, sizeof(double));
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const linear_values *v = values;
    work w = {.v = v, .seed = fini_lab_seed(v->seed, v->L, v->n)};
    const fini_lab_frame frame = {&w.arena, "a linear system", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_linear = {
    .name = "linear",
    .summary = "linear attention learnt from n sequences, against its closed forms",
    .revision = 1,
    .size = sizeof(linear_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(linear_table),
    .check = check,
    .run = run,
};
