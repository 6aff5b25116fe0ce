/* Kernel ridge attention of many contexts by a matrix of tokens and tokens, each by one thread.
 *
 *     A = prior G + level + noise I,   alpha = A^-1 V,   out = K_q alpha,   K_q = prior k_q + level
 *     variance = prior k(q,q) + level - |U'^-1 K_q'|^2,   A = U'U
 *
 * Up to 256 tokens everything stays in a core's own cache and goes through the kernels: half of the
 * Gram matrix, its factor, two triangular solves. Longer ones are factored in tiles (math/spd.h). All in double, whatever the batch is in: the condition of A is up to 1 + L
 * prior / noise, and a float would have nothing left of it.
 *
 * Backward, with the same factor: u = A^-1 K_q' dout, and
 *
 *     dV = u,   dK_q = dout alpha',   dA = -u alpha'
 *
 * from which keys and queries follow by the chain rule through k, and
 *
 *     d/d log noise = noise tr dA,   d/d log prior = -that - level (sum dA + sum dK_q):
 *
 * the output depends on noise / prior and level / prior alone. */
#include "context/batch.h"
#include "math/small.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

enum { GROUP = 12 }; /* rows of the Gram matrix made at a time */

void fini_dual_layout(fini_arena *arena, const fini_many *o, fini_scratch *s)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = o->longest;
    int64_t chunk = fini_least(o->widest, FINI_QUERIES), rows = o->dout ? FINI_QUERIES : GROUP;
    int64_t padded = (L + FINI_PANEL_F64 - 1) / FINI_PANEL_F64 * FINI_PANEL_F64;
    s->ld = fini_spd_leading(L);
    s->ldx = fini_spd_leading(dv);
    s->ldc = fini_spd_leading(chunk);
    s->keys = fini_take(arena, L * dk, sizeof(double));
    s->panels = fini_take(arena, padded * dk, sizeof(double));
    s->A = fini_take(arena, L * s->ld, sizeof(double));
    s->X = fini_take(arena, L * s->ldx, sizeof(double));
    s->queries = fini_take(arena, chunk * dk, sizeof(double));
    s->query_panels = fini_take(arena, (chunk + FINI_PANEL_F64) * dk, sizeof(double));
    s->T = fini_take(arena, L * s->ldc, sizeof(double));
    s->out = fini_take(arena, chunk * (dv + 1), sizeof(double));
    if (!o->dout)
        return;
    s->U = fini_take(arena, L * s->ldx, sizeof(double));
    s->S = fini_take(arena, L * s->ldc + rows * s->ld, sizeof(double));
    s->D = fini_take(arena, L * s->ldc + rows * s->ld, sizeof(double));
    s->values = fini_take(arena, L * dv, sizeof(double));
    s->dkeys = fini_take(arena, L * dk, sizeof(double));
    s->dqueries = fini_take(arena, chunk * dk, sizeof(double));
    s->dout = fini_take(arena, chunk * dv, sizeof(double));
}

/* ---- covariances and their factor ----------------------------------------------------------- */

static fini_spd matrix_of(const fini_one *c, const fini_scratch *s)
{
    return (fini_spd){.n = c->L, .ld = s->ld, .C = s->A, .route = FINI_SPD_BATCH};
}

/* Half of A: the upper one for the kernels, the lower one for tiles. */
static void fill(void *user, double jitter)
{
    const fini_filling *g = user;
    const fini_scratch *s = g->s;
    const fin_cross_settings *set = g->o->settings;
    int64_t dk = g->o->batch->dk, n = g->c->L, groups = (n + GROUP - 1) / GROUP;
    bool upper = fini_spd_upper_half(n);
    const fini_kernel *kernel = fini_kernel_get();
#pragma omp parallel for schedule(static) num_threads(upper ? 1 : fin_threads_get())
    for (int64_t t = 0; t < groups; t++) {
        int64_t i = t * GROUP, rows = fini_least(GROUP, n - i);
        int64_t from = upper ? i / FINI_PANEL_F64 * FINI_PANEL_F64 : 0;
        kernel->covariances(&(fini_covariances){.score = g->o->score,
                                                .queries = rows,
                                                .keys = (upper ? n : i + rows) - from,
                                                .dk = dk,
                                                .ld = s->ld,
                                                .q = s->keys + i * dk,
                                                .panels = s->panels + from * dk,
                                                .times = set->prior,
                                                .plus = set->level,
                                                .value = s->A + i * s->ld + from});
        for (int64_t r = i; r < i + rows; r++)
            s->A[r * s->ld + r] += set->noise + jitter;
    }
}

/* Keys, values (in X), A and its factor. */
static fin_status prepare(const fini_many *o, const fini_one *c, fini_scratch *s, fin_error *err)
{
    double noise = o->settings->noise;
    int64_t dk = o->batch->dk, dv = o->batch->dv, later = -1, earlier = 0;
    fini_many_points(o, c, 0, c->L, s, true);
    fini_kernel_get()->pack_f64(dk, c->L, s->keys, NULL, 1, s->panels);
    for (int64_t l = 0; l < c->L; l++)
        fini_many_read(o, o->batch->values, (c->token + l) * dv, dv, 1, s->X + l * s->ldx);
    const fini_tokens tokens = {c->L, dk, dv, s->ldx, s->keys, s->X};
    if (noise == 0 && (later = fini_spd_contradiction(&tokens, 0, s->T, &earlier)) >= 0)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "context %lld: tokens %lld and %lld have the same key and other values, "
                         "and noise is 0: no function does that; give a positive noise",
                         (long long)c->context, (long long)earlier, (long long)later);
    fini_spd A = matrix_of(c, s);
    fini_spd_steps steps = {fill, &(fini_filling){o, c, s}, .last = FINI_SPD_STEPS - 1};
    FINI_TRY(fini_spd_ladder(&A, &steps, NULL, err));
    s->jitter = A.jitter;
    if (A.pivot < 0)
        return FIN_OK;
    if (!isfinite(steps.mean))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "context %lld: covariances are too large for a double; take a larger "
                         "scale",
                         (long long)c->context);
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "context %lld: the covariance matrix is not positive definite at "
                     "token %lld (noise %g, mean variance %g); give a positive noise",
                     (long long)c->context, (long long)A.pivot, noise, steps.mean);
}

/* alpha in X, and whether the values bear the jitter, column by column. */
static fin_status solve_values(const fini_many *o, const fini_one *c, fini_scratch *s,
                               fin_error *err)
{
    int64_t dv = o->batch->dv;
    double noise = o->settings->noise;
    bool harmless = true;
    fini_spd_solve(matrix_of(c, s), dv, s->X, s->ldx);
    for (int64_t j = 0; j < dv && harmless && s->jitter > noise; j++) {
        for (int64_t l = 0; l < c->L; l++)
            fini_many_read(o, o->batch->values, (c->token + l) * dv + j, 1, 1, s->T + l);
        harmless = fini_spd_harmless(s->jitter, noise, c->L, s->X + j, s->ldx, s->T, 1);
    }
    return harmless
               ? FIN_OK
               : fini_fail(err, FIN_ERR_NUMERIC,
                           "context %lld: the covariance matrix is positive definite only with "
                           "%g added to the noise of %g, which moves the answers; give a "
                           "positive noise",
                           (long long)c->context, s->jitter, noise);
}

/* Queries first .. of a context: T = K_q' (tokens, queries), and, if S is given, its slope. */
static void meet_queries(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                         fini_scratch *s, double *slope)
{
    const fini_kernel *kernel = fini_kernel_get();
    fini_many_points(o, c, first, count, s, false);
    kernel->pack_f64(o->batch->dk, count, s->queries, NULL, 1, s->query_panels);
    kernel->covariances(&(fini_covariances){.score = o->score,
                                            .queries = c->L,
                                            .keys = count,
                                            .dk = o->batch->dk,
                                            .ld = s->ldc,
                                            .q = s->keys,
                                            .panels = s->query_panels,
                                            .times = o->settings->prior,
                                            .plus = o->settings->level,
                                            .value = s->T,
                                            .slope = slope});
}

/* ---- forward -------------------------------------------------------------------------------- */

/* prior k(q, q) + level. */
static double prior_variance(const fini_many *o, const double *q)
{
    double u = 0, k = 1;
    for (int64_t i = 0; i < o->batch->dk && !fini_score_distance(&o->score); i++)
        u += q[i] * q[i];
    if (o->score.kind == FINI_SCORE_LINEAR)
        k = u;
    else if (o->score.kind == FINI_SCORE_POLYNOMIAL)
        k = pow(o->score.offset + u, (double)o->score.degree);
    else if (o->score.kind == FINI_SCORE_EXPONENTIAL)
        k = exp(u);
    return o->settings->prior * k + o->settings->level;
}

/* Never below 0: what is left after rounding is not. T becomes U'^-1 K_q'. */
static void variances(const fini_many *o, const fini_one *c, int64_t count, fini_scratch *s,
                      double *variance)
{
    fini_spd_lower(matrix_of(c, s), count, s->T, s->ldc);
    for (int64_t i = 0; i < count; i++)
        variance[i] = prior_variance(o, s->queries + i * o->batch->dk);
    for (int64_t l = 0; l < c->L; l++)
        for (int64_t i = 0; i < count; i++)
            variance[i] -= s->T[l * s->ldc + i] * s->T[l * s->ldc + i];
    for (int64_t i = 0; i < count; i++)
        variance[i] = variance[i] > 0 ? variance[i] : 0;
}

fin_status fini_cme_check(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                          int64_t width, const double *x, fin_error *err)
{
    double most = o->batch->dtype == FIN_F32 ? (double)FLT_MAX : DBL_MAX;
    for (int64_t i = 0; i < count * width; i++)
        if (!(fabs(x[i]) <= most))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "context %lld, query %lld: the answer is not finite; covariances or "
                             "values are too large: take a larger scale, or divide the values",
                             (long long)c->context, (long long)(first + i / width));
    return FIN_OK;
}

fin_status fini_cme_answer(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                           const fini_scratch *s, fin_error *err)
{
    int64_t dv = o->batch->dv;
    const double *variance = s->out + count * dv;
    FINI_TRY(fini_cme_check(o, c, first, count, dv, s->out, err));
    if (o->variance)
        FINI_TRY(fini_cme_check(o, c, first, count, 1, variance, err));
    fini_many_write(o, o->out, (c->query + first) * dv, count * dv, s->out);
    if (o->variance)
        fini_many_write(o, o->variance, c->query + first, count, variance);
    return FIN_OK;
}

fin_status fini_dual_forward(const fini_many *o, const fini_one *c, fini_scratch *s, fin_error *err)
{
    int64_t dv = o->batch->dv;
    if (c->m == 0)
        return FIN_OK;
    FINI_TRY(c->L > 0 ? prepare(o, c, s, err) : FIN_OK);
    if (c->L > 0)
        FINI_TRY(solve_values(o, c, s, err));
    for (int64_t first = 0; first < c->m; first += FINI_QUERIES) {
        int64_t count = fini_least(FINI_QUERIES, c->m - first);
        meet_queries(o, c, first, count, s, NULL);
        memset(s->out, 0, (size_t)(count * dv) * sizeof *s->out);
        if (c->L > 0)
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)dv, (int)c->L, 1,
                        s->T, (int)s->ldc, s->X, (int)s->ldx, 0, s->out, (int)dv);
        if (o->variance)
            variances(o, c, count, s, s->out + count * dv);
        FINI_TRY(fini_cme_answer(o, c, first, count, s, err));
    }
    return FIN_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

/* u and what comes through K_q: dT = alpha dout', C = dT * slope. */
static void backward_queries(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                             fini_scratch *s, double *hyper)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = c->L;
    meet_queries(o, c, first, count, s, s->S);
    fini_many_read(o, o->dout, (c->query + first) * dv, count * dv, 1, s->dout);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)L, (int)dv, (int)count, 1, s->T,
                (int)s->ldc, s->dout, (int)dv, 1, s->U, (int)s->ldx);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)L, (int)count, (int)dv, 1, s->X,
                (int)s->ldx, s->dout, (int)dv, 0, s->D, (int)s->ldc);
    for (int64_t l = 0; l < L; l++)
        for (int64_t i = 0; i < count; i++) {
            hyper[2] -= o->settings->level * s->D[l * s->ldc + i];
            s->D[l * s->ldc + i] *= s->S[l * s->ldc + i];
        }
    memset(s->dqueries, 0, (size_t)(count * dk) * sizeof *s->dqueries);
    fini_many_pull(o, &(fini_pull){L, count, s->keys, s->queries, s->D, s->ldc}, s->dkeys,
                   s->dqueries);
    hyper[0] -= fini_dot_in_order(count * dk, s->queries, s->dqueries);
    fini_many_add(o, o->gradient->queries, (c->query + first) * dk, count * dk, o->query_times,
                  s->dqueries);
}

/* What comes through A, rows i .. of it: C = (dA + dA') * slope, dA = -u alpha'. */
static void backward_rows(const fini_many *o, const fini_one *c, int64_t i, int64_t rows,
                          fini_scratch *s, double *hyper)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = c->L, ld = s->ld;
    fini_kernel_get()->covariances(&(fini_covariances){.score = o->score,
                                                       .queries = rows,
                                                       .keys = L,
                                                       .dk = dk,
                                                       .ld = ld,
                                                       .q = s->keys + i * dk,
                                                       .panels = s->panels,
                                                       .times = o->settings->prior,
                                                       .value = s->D,
                                                       .slope = s->S});
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)L, (int)dv, -1,
                s->U + i * s->ldx, (int)s->ldx, s->X, (int)s->ldx, 0, s->D, (int)ld);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)L, (int)dv, -1,
                s->X + i * s->ldx, (int)s->ldx, s->U, (int)s->ldx, 1, s->D, (int)ld);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < L; j++) {
            hyper[2] -= o->settings->level * s->D[r * ld + j] / 2;
            s->D[r * ld + j] *= s->S[r * ld + j];
        }
    fini_many_pull(o, &(fini_pull){rows, L, s->keys + i * dk, s->keys, s->D, ld}, s->dkeys + i * dk,
                   NULL);
}

fin_status fini_dual_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                              fin_error *err)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = c->L;
    double *hyper = o->hyper[c->context];
    if (c->m == 0 || L == 0)
        return FIN_OK; /* without tokens the answer is 0, whatever the query */
    FINI_TRY(prepare(o, c, s, err));
    FINI_TRY(solve_values(o, c, s, err));
    memset(s->U, 0, (size_t)(L * s->ldx) * sizeof *s->U);
    memset(s->dkeys, 0, (size_t)(L * dk) * sizeof *s->dkeys);
    for (int64_t first = 0; first < c->m; first += FINI_QUERIES)
        backward_queries(o, c, first, fini_least(FINI_QUERIES, c->m - first), s, hyper);
    fini_spd_solve(matrix_of(c, s), dv, s->U, s->ldx);
    for (int64_t i = 0; i < L; i += FINI_QUERIES)
        backward_rows(o, c, i, fini_least(FINI_QUERIES, L - i), s, hyper);
    for (int64_t l = 0; l < L; l++) {
        hyper[1] -=
            o->settings->noise * fini_dot_in_order(dv, s->U + l * s->ldx, s->X + l * s->ldx);
        fini_many_add(o, o->gradient->values, (c->token + l) * dv, dv, 1, s->U + l * s->ldx);
    }
    hyper[2] -= hyper[1];
    hyper[0] -= fini_dot_in_order(L * dk, s->keys, s->dkeys);
    fini_many_add(o, o->gradient->keys, c->token * dk, L * dk, o->key_times, s->dkeys);
    return fini_cme_check(o, c, 0, 1, 3, hyper, err);
}
