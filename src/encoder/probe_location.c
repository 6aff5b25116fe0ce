/* Where an encoder looks, on single-location regression: probes for the location J of the token that
 * decides, and the directions that its attention has learnt.
 *
 * With w_l the weight of token l in the first layer, mean over who asks and over heads,
 *
 *     attended   P(argmax_l w_l = J)
 *     place      accuracy of a linear classifier of J from w_1 .. w_L
 *     bayes      P(argmax_l P(J = l | X) = J): what no guess beats
 *     before     accuracy of a linear classifier of the sign of Y from the first token as it comes;
 *                it is J once in L times: 1/2 + 1/(2 L) at most, if eps = 0
 *     after      the same from what the encoder makes of the first token: linear probing of one
 *                fixed token (Marion et al. 2025, section 2)
 *     cos_key    |cos| with k* of the regression of log w_l on X_l, both less their means in the
 *                sequence: exactly A'K'q for a query q that does not depend on tokens, input map A
 *     cos_value  |cos| with v* of the regression of the answer on sum_l w_l X_l, beside mean_l X_l:
 *                exactly A'V'O'H of a layer without norms and feed-forward part
 *
 * Classifiers are fitted to n sequences and judged on n others; regressions are done on both, their
 * cosines' mean and half their difference are cosine and error. */
#include "encoder/probe.h"
#include "task/task.h"

#include <math.h>
#include <string.h>

#define FIRST (FIN_TEST_FIRST + (UINT64_C(1) << 48)) /* far from all other sequences */
#define PENALTY 1e-3                                 /* of classifiers */

/* n sequences and what is read of them. */
typedef struct part {
    int64_t n, L, d, width;
    int64_t *offsets, *location; /* (n + 1), (n) */
    float *tokens;               /* (n, L, d) */
    double *y, *J, *sign;        /* (n); J, sign: classes */
    double *posterior, *w;       /* (n, L) */
    double *first, *state;       /* (n, d), (n, width): of the first token */
    double *answer;              /* (n) */
    double *passed;              /* maps (n, L, L), or states (n, L, width) */
    double *x, *t;               /* regressions: (n L, d) or (n, 2 d); (n L) */
    fini_arena arena;
} part;

static void lay_out(part *p)
{
    fini_arena *a = &p->arena;
    int64_t n = p->n, L = p->L, d = p->d, wide = p->width > L ? p->width : L;
    p->offsets = fini_take(a, n + 1, sizeof(int64_t));
    p->location = fini_take(a, n, sizeof(int64_t));
    p->tokens = fini_take(a, n * L, (size_t)d * sizeof(float));
    p->y = fini_take(a, n, sizeof(double));
    p->J = fini_take(a, n, sizeof(double));
    p->sign = fini_take(a, n, sizeof(double));
    p->posterior = fini_take(a, n * L, sizeof(double));
    p->w = fini_take(a, n * L, sizeof(double));
    p->first = fini_take(a, n, (size_t)d * sizeof(double));
    p->state = fini_take(a, n, (size_t)p->width * sizeof(double));
    p->answer = fini_take(a, n, sizeof(double));
    p->passed = fini_take(a, n * L, (size_t)wide * sizeof(double));
    p->x = fini_take(a, n * (L > 2 ? L : 2), (size_t)d * sizeof(double));
    p->t = fini_take(a, n * L, sizeof(double));
}

/* ---- sequences, and what the encoder makes of them --------------------------------------------- */

static fin_status draw(part *p, const fin_task *task, uint64_t first, fin_error *err)
{
    fin_batch batch = {p->n, p->d, FIN_F32, p->tokens, p->offsets};
    FINI_TRY(
        fin_task_draw(task, first, p->n, FIN_F32, p->offsets, p->tokens, p->y, p->location, err));
    FINI_TRY(fin_task_posterior(task, &batch, p->posterior, err));
    for (int64_t i = 0; i < p->n; i++) {
        p->J[i] = (double)p->location[i];
        p->sign[i] = p->y[i] > 0;
        for (int64_t j = 0; j < p->d; j++)
            p->first[i * p->d + j] = (double)p->tokens[i * p->L * p->d + j];
    }
    return FIN_OK;
}

static fin_status pass(part *p, const fin_encoder *encoder, fin_error *err)
{
    const fin_encoder_settings *s = fin_encoder_get_settings(encoder);
    const fin_sequences sequences = {.n = p->n, .offsets = p->offsets, .tokens = p->tokens};
    int64_t n = p->n, L = p->L, width = p->width;
    fin_pass end = {.dtype = FIN_F32, .layer = s->layers, .states = p->passed};
    end.answers[0] = p->answer;
    FINI_TRY(fin_encoder_pass(encoder, &sequences, &end, err));
    for (int64_t i = 0; i < n; i++)
        memcpy(p->state + i * width, p->passed + i * L * width, (size_t)width * sizeof(double));
    memset(p->w, 0, (size_t)(n * L) * sizeof *p->w);
    for (int64_t h = 0; h < s->heads; h++) {
        fin_pass maps = {.dtype = FIN_F32, .maps = p->passed, .map_head = h};
        FINI_TRY(fin_encoder_pass(encoder, &sequences, &maps, err));
        for (int64_t i = 0; i < n * L * L; i++)
            p->w[i / (L * L) * L + i % L] += p->passed[i] / (double)(L * s->heads);
    }
    return FIN_OK;
}

/* ---- what is read of them ---------------------------------------------------------------------- */

/* How often the largest number of a row is that of J. */
static fini_located found(const part *p, const double *w)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t best = 0;
        for (int64_t l = 1; l < p->L; l++)
            best = w[i * p->L + l] > w[i * p->L + best] ? l : best;
        hits += best == p->location[i];
    }
    double q = (double)hits / (double)p->n;
    return (fini_located){q, sqrt(q * (1 - q) / (double)p->n)};
}

typedef struct reading {
    int64_t classes, p;
    const double *x[2], *y[2]; /* of the part to learn from, and of the other */
} reading;

static fin_status classify(const part *one, const reading *r, fini_located *share, fin_error *err)
{
    fin_probe *probe = NULL;
    fin_probe_score score = {0};
    fin_status status =
        fin_probe_fit(&probe, one->n, r->p, r->x[0], r->classes, 1, r->y[0], PENALTY, err);
    if (!status)
        status = fin_probe_judge(probe, one->n, r->x[1], r->y[1], &score, NULL, 0, err);
    if (!status)
        *share = (fini_located){score.accuracy, score.accuracy_se};
    fin_probe_destroy(probe);
    return status;
}

/* |cos| of the first d slopes of t on x (rows, columns) and the unit vector u. */
static fin_status cosine(const part *p, int64_t rows, int64_t columns, const double *t,
                         const double *u, double *cos, fin_error *err)
{
    fin_probe *probe = NULL;
    FINI_OWN(err, "slopes", double, W, columns, 1);
    double b, uW = 0, WW = 0;
    fin_status status = fin_probe_fit(&probe, rows, columns, p->x, 0, 1, t, 1e-10, err);
    if (!status)
        fini_probe_weights(probe, W, &b);
    for (int64_t j = 0; j < p->d && !status; j++) {
        uW += u[j] * W[j];
        WW += W[j] * W[j];
    }
    *cos = WW > 0 ? fabs(uW) / sqrt(WW) : 0;
    fin_probe_destroy(probe);
    return status;
}

static fin_status key_cosine(part *p, const double *k_star, double *cos, fin_error *err)
{
    int64_t L = p->L, d = p->d;
    for (int64_t i = 0; i < p->n; i++) {
        const float *X = p->tokens + i * L * d;
        double *x = p->x + i * L * d, *t = p->t + i * L, mean = 0;
        for (int64_t l = 0; l < L; l++)
            mean += (t[l] = log(fmax(p->w[i * L + l], 1e-30))) / (double)L;
        for (int64_t l = 0; l < L; l++)
            t[l] -= mean;
        for (int64_t j = 0; j < d; j++) {
            mean = 0;
            for (int64_t l = 0; l < L; l++)
                mean += (double)X[l * d + j] / (double)L;
            for (int64_t l = 0; l < L; l++)
                x[l * d + j] = (double)X[l * d + j] - mean;
        }
    }
    return cosine(p, p->n * L, d, p->t, k_star, cos, err);
}

static fin_status value_cosine(part *p, const double *v_star, double *cos, fin_error *err)
{
    int64_t L = p->L, d = p->d;
    memset(p->x, 0, (size_t)(p->n * 2 * d) * sizeof *p->x);
    for (int64_t r = 0; r < p->n * L; r++) {
        double *x = p->x + r / L * 2 * d;
        for (int64_t j = 0; j < d; j++) {
            x[j] += p->w[r] * (double)p->tokens[r * d + j];
            x[d + j] += (double)p->tokens[r * d + j] / (double)L;
        }
    }
    return cosine(p, p->n, 2 * d, p->answer, v_star, cos, err);
}

/* ---- all of it --------------------------------------------------------------------------------- */

fin_status fini_location_check(const fin_encoder *encoder, const fin_task *task, fin_error *err)
{
    const fin_encoder_settings *s = fin_encoder_get_settings(encoder);
    const fin_task_settings *t = fin_task_get_settings(task);
    if (s->layers < 1 || s->attention != FIN_ENCODER_SOFTMAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "locate: it is about softmax weights of the first layer; take layers = 1 "
                         "or more and attention = softmax");
    if (t->m != 1 || !(t->gamma > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "locate: there is to be one relevant token, and gamma > 0; take m = 1");
    if (t->L < 2 || (t->L_min != FIN_AUTO_INT && t->L_min != t->L))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "locate: places are classes: sequences of one length, L = 2 or more, are "
                         "needed; leave L_min out");
    return FIN_OK;
}

static fin_status open_part(part *p, const fin_encoder *encoder, const fin_task *task,
                            uint64_t first, fin_error *err)
{
    FINI_LAY_OUT(err, &p->arena, "probes of the location", lay_out(p));
    FINI_TRY(fin_task_offsets(task, first, p->n, p->offsets, err));
    FINI_TRY(draw(p, task, first, err));
    return pass(p, encoder, err);
}

static fin_status read(part *a, part *b, const fin_task *task, fini_location *out, fin_error *err)
{
    const reading place = {a->L, a->L, {a->w, b->w}, {a->J, b->J}};
    const reading before = {2, a->d, {a->first, b->first}, {a->sign, b->sign}};
    const reading after = {2, a->width, {a->state, b->state}, {a->sign, b->sign}};
    const double *k = fin_task_k_star(task), *v = fin_task_v_star(task);
    double key[2], value[2];
    out->attended = found(b, b->w);
    out->bayes = found(b, b->posterior);
    fin_status status;
    if ((status = classify(b, &place, &out->place, err)) ||
        (status = classify(b, &before, &out->before, err)) ||
        (status = classify(b, &after, &out->after, err)) ||
        (status = key_cosine(a, k, &key[0], err)) || (status = key_cosine(b, k, &key[1], err)) ||
        (status = value_cosine(a, v, &value[0], err)) ||
        (status = value_cosine(b, v, &value[1], err)))
        return status;
    out->cos_key = (fini_located){(key[0] + key[1]) / 2, fabs(key[0] - key[1]) / 2};
    out->cos_value = (fini_located){(value[0] + value[1]) / 2, fabs(value[0] - value[1]) / 2};
    return FIN_OK;
}

fin_status fini_location_read(const fin_encoder *encoder, const fin_task *task, int64_t n,
                              fini_location *out, fin_error *err)
{
    const fin_encoder_settings *s = fin_encoder_get_settings(encoder);
    part a = {.n = n,
              .L = fin_task_longest(task),
              .d = fin_task_get_settings(task)->d,
              .width = s->width};
    part b = a;
    fin_status status = fini_location_check(encoder, task, err);
    if (!status)
        status = open_part(&a, encoder, task, FIRST, err);
    if (!status)
        status = open_part(&b, encoder, task, FIRST + (uint64_t)n, err);
    if (!status)
        status = read(&a, &b, task, out, err);
    fini_arena_close(&a.arena);
    fini_arena_close(&b.arena);
    return status;
}
