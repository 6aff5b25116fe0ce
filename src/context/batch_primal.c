/* Kernel ridge attention of many contexts by features: the linear and the polynomial kernel.
 *
 * With phi(a).phi(b) = prior k(a, b) + level (cross_features.c), F = [phi(k_1) .. phi(k_L)] and D
 * features,
 *
 *     M = F F' + noise I,   B = M^-1 F V,   out = phi(q)' B,   variance = noise |U'^-1 phi(q)|^2,
 *
 * which costs L D^2 instead of L^3 / 3, and takes a few blocks of tokens of memory.
 *
 * Backward for the linear kernel, in O(L D (D + dv)). By A^-1 F' = F' M^-1, and A alpha = V, the
 * vectors of batch_dual.c are u = F' M^-1 phi(q) dout and alpha = (V - F' B) / noise; with keys
 * Z and Z_q as rows
 *
 *     dZ = prior (alpha dout' Z_q - u alpha' Z - alpha u' Z),   dZ_q = prior dout alpha' Z.
 *
 * The polynomial kernel, and noise 0, take the matrix of tokens backward. */
#include "context/batch.h"
#include "math/small.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { BLOCK = FINI_CROSS_BLOCK };

void fini_primal_layout(fini_arena *arena, const fini_many *o, fini_scratch *s)
{
    int64_t D = o->features, dk = o->batch->dk, dv = o->batch->dv, L = o->dout ? o->stored : BLOCK;
    s->basis = (fin_cross){.settings = *o->settings, .dk = dk, .dv = dv};
    fini_monomials_take(arena, &s->basis.basis, o->settings, dk);
    s->ld = fini_spd_leading(D);
    s->ldc = fini_spd_leading(BLOCK);
    s->ldx = fini_spd_leading(dv);
    s->M = fini_take(arena, D * s->ld, sizeof(double));
    s->F = fini_take(arena, D * s->ldc, sizeof(double));
    s->B = fini_take(arena, D * s->ldx, sizeof(double));
    s->keys = fini_take(arena, L * dk, sizeof(double));
    s->values = fini_take(arena, BLOCK * dv, sizeof(double));
    s->queries = fini_take(arena, BLOCK * dk, sizeof(double));
    s->out = fini_take(arena, BLOCK * (dv + 1), sizeof(double));
    if (!o->dout)
        return;
    s->R = fini_take(arena, D * s->ldx, sizeof(double));
    s->X = fini_take(arena, L * dv, sizeof(double));
    s->U = fini_take(arena, L * dv, sizeof(double));
    s->S = fini_take(arena, 3 * dv * dk, sizeof(double));
    s->dkeys = fini_take(arena, L * dk, sizeof(double));
    s->dqueries = fini_take(arena, BLOCK * dk, sizeof(double));
    s->dout = fini_take(arena, BLOCK * dv, sizeof(double));
}

/* F (D, count): features of rows of keys or queries. */
static void features(const fini_scratch *s, int64_t count, const double *rows)
{
    fini_monomials_features(&s->basis, count, rows, s->F, s->ldc);
}

static fini_spd matrix_of(const fini_many *o, const fini_scratch *s)
{
    return (fini_spd){.n = o->features, .ld = s->ld, .C = s->M, .route = FINI_SPD_BATCH};
}

/* F F' + (noise + jitter) I and F V, in M and B. */
static void fill(void *user, double jitter)
{
    const fini_filling *f = user;
    const fini_many *o = f->o;
    const fini_one *c = f->c;
    fini_scratch *s = f->s;
    int64_t D = o->features, dv = o->batch->dv;
    CBLAS_UPLO half = fini_spd_upper_half(D) ? CblasUpper : CblasLower;
    memset(s->M, 0, (size_t)(D * s->ld) * sizeof *s->M);
    memset(s->B, 0, (size_t)(D * s->ldx) * sizeof *s->B);
    for (int64_t first = 0; first < c->L; first += BLOCK) {
        int64_t count = fini_least(BLOCK, c->L - first);
        fini_many_points(o, c, first, count, s, true);
        fini_many_read(o, o->batch->values, (c->token + first) * dv, count * dv, 1, s->values);
        features(s, count, s->keys);
        cblas_dsyrk(CblasRowMajor, half, CblasNoTrans, (int)D, (int)count, 1, s->F, (int)s->ldc, 1,
                    s->M, (int)s->ld);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)D, (int)dv, (int)count, 1, s->F,
                    (int)s->ldc, s->values, (int)dv, 1, s->B, (int)s->ldx);
    }
    for (int64_t i = 0; i < D; i++)
        s->M[i * s->ld + i] += o->settings->noise + jitter;
}

/* M and B of a context, M factored. With a positive noise a jitter may help, as in fin_cross_load;
 * without one the question is whether there are as many tokens as it takes. */
static fin_status prepare(const fini_many *o, const fini_one *c, fini_scratch *s, fin_error *err)
{
    double noise = o->settings->noise;
    fini_spd M = matrix_of(o, s);
    fini_spd_steps steps = {fill, &(fini_filling){o, c, s},
                            .last = noise > 0 ? FINI_SPD_STEPS - 1 : 0};
    FINI_TRY(fini_spd_ladder(&M, &steps, NULL, err));
    s->jitter = M.jitter;
    if (!isfinite(steps.mean))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "context %lld: features are too large for a double; take a larger "
                         "scale",
                         (long long)c->context);
    if (M.pivot >= 0)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "context %lld: %lld tokens do not fix %lld features (noise %g); give "
                         "a larger noise, or take method dual",
                         (long long)c->context, (long long)c->L, (long long)M.n, noise);
    fini_spd_solve(M, o->batch->dv, s->B, s->ldx);
    return FIN_OK;
}

/* F becomes U'^-1 phi(q). */
static void variances(const fini_many *o, int64_t count, fini_scratch *s, double *variance)
{
    double noise = o->settings->noise + s->jitter;
    fini_spd_lower(matrix_of(o, s), count, s->F, s->ldc);
    memset(variance, 0, (size_t)count * sizeof *variance);
    for (int64_t j = 0; j < o->features; j++)
        for (int64_t i = 0; i < count; i++)
            variance[i] += noise * s->F[j * s->ldc + i] * s->F[j * s->ldc + i];
}

fin_status fini_primal_forward(const fini_many *o, const fini_one *c, fini_scratch *s,
                               fin_error *err)
{
    int64_t dv = o->batch->dv;
    if (c->m == 0)
        return FIN_OK;
    FINI_TRY(prepare(o, c, s, err));
    for (int64_t first = 0; first < c->m; first += BLOCK) {
        int64_t count = fini_least(BLOCK, c->m - first);
        fini_many_points(o, c, first, count, s, false);
        features(s, count, s->queries);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)dv, (int)o->features,
                    1, s->F, (int)s->ldc, s->B, (int)s->ldx, 0, s->out, (int)dv);
        if (o->variance)
            variances(o, count, s, s->out + count * dv);
        FINI_TRY(fini_cme_answer(o, c, first, count, s, err));
    }
    return FIN_OK;
}

/* ---- backward, linear ----------------------------------------------------------------------- */

/* G (dv, dk) += a' Z over `rows` rows. */
static void gather(int64_t rows, int64_t dv, int64_t dk, const double *a, const double *Z,
                   double *G)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dv, (int)dk, (int)rows, 1, a, (int)dv,
                Z, (int)dk, 1, G, (int)dk);
}

/* out (rows, dk) += times a G. */
static void spread(int64_t rows, int64_t dv, int64_t dk, double times, const double *a,
                   const double *G, double *out)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)dk, (int)dv, times, a,
                (int)dv, G, (int)dk, 1, out, (int)dk);
}

/* R = M^-1 phi(q) dout, and dout' Z_q. */
static void backward_queries(const fini_many *o, const fini_one *c, fini_scratch *s,
                             double *by_query)
{
    int64_t D = o->features, dk = o->batch->dk, dv = o->batch->dv;
    memset(s->R, 0, (size_t)(D * s->ldx) * sizeof *s->R);
    for (int64_t first = 0; first < c->m; first += BLOCK) {
        int64_t count = fini_least(BLOCK, c->m - first);
        fini_many_points(o, c, first, count, s, false);
        fini_many_read(o, o->dout, (c->query + first) * dv, count * dv, 1, s->dout);
        features(s, count, s->queries);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)D, (int)dv, (int)count, 1, s->F,
                    (int)s->ldc, s->dout, (int)dv, 1, s->R, (int)s->ldx);
        gather(count, dv, dk, s->dout, s->queries, by_query);
    }
    fini_spd_solve(matrix_of(o, s), dv, s->R, s->ldx);
}

/* u and alpha of every token. */
static void backward_tokens(const fini_many *o, const fini_one *c, fini_scratch *s)
{
    int64_t D = o->features, dk = o->batch->dk, dv = o->batch->dv;
    double inverse = 1 / (o->settings->noise + s->jitter);
    fini_many_points(o, c, 0, c->L, s, true);
    fini_many_read(o, o->batch->values, c->token * dv, c->L * dv, inverse, s->X);
    for (int64_t first = 0; first < c->L; first += BLOCK) {
        int64_t count = fini_least(BLOCK, c->L - first);
        features(s, count, s->keys + first * dk);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)dv, (int)D, 1, s->F,
                    (int)s->ldc, s->R, (int)s->ldx, 0, s->U + first * dv, (int)dv);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)count, (int)dv, (int)D, -inverse,
                    s->F, (int)s->ldc, s->B, (int)s->ldx, 1, s->X + first * dv, (int)dv);
    }
}

/* sum dA + sum dK_q = (sum dout - sum u).(sum alpha). */
static double through_level(const fini_many *o, const fini_one *c, const fini_scratch *s)
{
    int64_t dv = o->batch->dv;
    double sum = 0;
    for (int64_t j = 0; j < dv; j++) {
        double alpha = 0, gap = 0, one;
        for (int64_t l = 0; l < c->L; l++) {
            alpha += s->X[l * dv + j];
            gap -= s->U[l * dv + j];
        }
        for (int64_t i = 0; i < c->m; i++) {
            fini_many_read(o, o->dout, (c->query + i) * dv + j, 1, 1, &one);
            gap += one;
        }
        sum += alpha * gap;
    }
    return sum;
}

fin_status fini_primal_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                                fin_error *err)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = c->L;
    double prior = o->settings->prior, *hyper = o->hyper[c->context];
    if (c->m == 0)
        return FIN_OK;
    FINI_TRY(prepare(o, c, s, err));
    double *by_query = s->S, *by_alpha = by_query + dv * dk, *by_u = by_alpha + dv * dk;
    memset(s->S, 0, (size_t)(3 * dv * dk) * sizeof *s->S);
    backward_queries(o, c, s, by_query);
    backward_tokens(o, c, s);
    gather(L, dv, dk, s->X, s->keys, by_alpha);
    gather(L, dv, dk, s->U, s->keys, by_u);
    memset(s->dkeys, 0, (size_t)(L * dk) * sizeof *s->dkeys);
    spread(L, dv, dk, prior, s->X, by_query, s->dkeys);
    spread(L, dv, dk, -prior, s->U, by_alpha, s->dkeys);
    spread(L, dv, dk, -prior, s->X, by_u, s->dkeys);
    hyper[1] = -o->settings->noise * fini_dot_in_order(L * dv, s->U, s->X);
    hyper[2] = -hyper[1] - o->settings->level * through_level(o, c, s);
    hyper[0] = -fini_dot_in_order(L * dk, s->keys, s->dkeys);
    for (int64_t first = 0; first < c->m; first += BLOCK) { /* dZ_q */
        int64_t count = fini_least(BLOCK, c->m - first);
        fini_many_points(o, c, first, count, s, false);
        fini_many_read(o, o->dout, (c->query + first) * dv, count * dv, 1, s->dout);
        memset(s->dqueries, 0, (size_t)(count * dk) * sizeof *s->dqueries);
        spread(count, dv, dk, prior, s->dout, by_alpha, s->dqueries);
        hyper[0] -= fini_dot_in_order(count * dk, s->queries, s->dqueries);
        fini_many_add(o, o->gradient->queries, (c->query + first) * dk, count * dk, o->query_times,
                      s->dqueries);
    }
    fini_many_add(o, o->gradient->keys, c->token * dk, L * dk, o->key_times, s->dkeys);
    fini_many_add(o, o->gradient->values, c->token * dv, L * dv, 1, s->U);
    return fini_cme_check(o, c, 0, 1, 3, hyper, err);
}
