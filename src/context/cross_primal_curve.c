/* The learning curve from features: the Kalman filter of the concept, a block of tokens at a time.
 *
 * Given the tokens before a block (M, T), its own t tokens are jointly Gaussian with
 *
 *     covariance noise (Z'Z + I) = C C',  Z = M^-1 F,    mean Z'u,  u = M^-1 T,
 *
 * and covariance noise Z'Z_q with the function at the queries, Z_q = M^-1 F_q. Hence the rows
 * X = C^-1 noise Z'Z_q and w = C^-1 (V - Z'u) that cross_prefix.c needs: the same numbers that the
 * dual factor of all tokens would have there. M is factored anew after every block, from sums, so
 * that nothing drifts. Cost: L D^2 + m L D (1 + D / t). */
#include "context/cross_primal.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { TILE = FINI_CROSS_TILE, BLOCK = FINI_CROSS_BLOCK };

typedef struct curve {
    const fin_cross *o;
    double noise;
    double *S, *M;       /* (D, D) */
    double *T, *u;       /* (D, dv) */
    double *F, *Z;       /* (D, TILE): the block's features, and M^-1 of them */
    double *C;           /* (TILE, TILE) */
    double *w;           /* (TILE, dv) */
    double *unseen;      /* (TILE) */
    double *Zq;          /* (D, BLOCK) */
    double *X;           /* (TILE, BLOCK) */
    double *terms;       /* (TILE, BLOCK) */
    double *mean, *rest; /* (m, dv), (m): of all queries so far */
    fini_arena arena;
} curve;

static void layout(fini_arena *a, curve *k, int64_t m)
{
    int64_t D = k->o->features, ld = k->o->D, dv = k->o->dv;
    k->S = fini_take(a, D * ld, sizeof(double));
    k->M = fini_take(a, D * ld, sizeof(double));
    k->T = fini_take(a, D * dv, sizeof(double));
    k->u = fini_take(a, D * dv, sizeof(double));
    k->F = fini_take(a, D * TILE, sizeof(double));
    k->Z = fini_take(a, D * TILE, sizeof(double));
    k->C = fini_take(a, TILE * TILE, sizeof(double));
    k->w = fini_take(a, TILE * dv, sizeof(double));
    k->unseen = fini_take(a, TILE, sizeof(double));
    k->Zq = fini_take(a, m > 0 ? D * BLOCK : 0, sizeof(double));
    k->X = fini_take(a, m > 0 ? TILE * BLOCK : 0, sizeof(double));
    k->terms = fini_take(a, m > 0 ? TILE * BLOCK : 0, sizeof(double));
    k->mean = fini_take(a, m * dv, sizeof(double));
    k->rest = fini_take(a, m, sizeof(double));
}

static fin_status refuse(const curve *k, int64_t l, fin_error *err)
{
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "the features of the first %lld tokens cannot be told apart with noise = %g; "
                     "give a larger noise, or a smaller prior and level",
                     (long long)l, k->o->settings.noise);
}

/* C and w of the t tokens from l on. */
static fin_status block_of_tokens(curve *k, int64_t l, int64_t t, fin_error *err)
{
    const fin_cross *o = k->o;
    int64_t D = o->features, dv = o->dv;
    fini_spd M = fini_primal_matrix(o, k->noise, k->S, k->M), C = fini_spd_of(t, k->C, TILE);
    FINI_TRY(fini_spd_factor(&M, NULL, err));
    if (M.pivot >= 0)
        FINI_TRY(refuse(k, l, err));
    memcpy(k->u, k->T, (size_t)(D * dv) * sizeof *k->u);
    fini_spd_lower(M, dv, k->u, dv);
    fini_cross_features(o, t, fini_cross_key(o, l), k->F, t);
    fini_cross_unseen(o, t, fini_cross_key(o, l), k->F, t, k->unseen);
    memcpy(k->Z, k->F, (size_t)(D * t) * sizeof *k->Z);
    fini_spd_lower(M, t, k->Z, t);
    memcpy(k->w, fini_cross_value(o, l), (size_t)(t * dv) * sizeof *k->w);
    memset(k->C, 0, TILE * TILE * sizeof *k->C);
    fini_blas_enter();
    if (D > 0 && t > 0) {
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)t, (int)dv, (int)D, -1, k->Z,
                    (int)t, k->u, (int)dv, 1, k->w, (int)dv);
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)t, (int)D, k->noise, k->Z, (int)t,
                    0, k->C, TILE);
    }
    fini_blas_leave();
    for (int64_t i = 0; i < t; i++)
        k->C[i * TILE + i] += k->noise;
    FINI_TRY(fini_spd_factor(&C, NULL, err));
    if (C.pivot >= 0)
        FINI_TRY(refuse(k, l + C.pivot + 1, err));
    fini_spd_lower(C, dv, k->w, dv);
    return FIN_OK;
}

/* Token l + i: missed by C_ii w_i, with variance C_ii^2 and what the landmarks do not see. */
static void tokens_themselves(const curve *k, int64_t l, int64_t t, double *error, double *score)
{
    int64_t dv = k->o->dv;
    for (int64_t i = 0; i < t; i++) {
        double pivot = k->C[i * TILE + i], variance = pivot * pivot + k->unseen[i];
        for (int64_t c = 0; c < dv; c++) {
            double miss = pivot * k->w[i * dv + c];
            error[l + i] += miss * miss;
            if (score)
                score[l + i] += 0.5 * (log(FINI_TWO_PI * variance) + miss * miss / variance);
        }
    }
}

/* b queries from `at` on, over the t tokens from l on. */
static void block_of_queries(curve *k, fini_prefix *p, int64_t l, int64_t t, const double *queries)
{
    const fin_cross *o = k->o;
    int64_t D = o->features, b = p->m;
    fini_cross_features(o, b, queries, k->Zq, b);
    fini_spd_lower(fini_spd_of(D, k->M, o->D), b, k->Zq, b);
    memset(k->X, 0, (size_t)(t * b) * sizeof *k->X);
    fini_blas_enter();
    if (D > 0 && t > 0)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)t, (int)b, (int)D, k->noise, k->Z,
                    (int)t, k->Zq, (int)b, 0, k->X, (int)b);
    fini_blas_leave();
    fini_spd_lower(fini_spd_of(t, k->C, TILE), b, k->X, b);
    if (l == 0)
        fini_prefix_now(p, 0);
    fini_prefix_rows(p, l, t, k->X, k->w);
}

static fin_status walk(curve *k, int64_t m, const double *queries, const double *answers,
                       double *error, double *score, const fin_progress *progress, fin_error *err)
{
    const fin_cross *o = k->o;
    fini_cross_prior(o, m, queries, k->rest);
    for (int64_t l = 0; l < o->tokens || (l == 0 && m > 0); l += TILE) {
        int64_t t = o->tokens - l < TILE ? o->tokens - l : TILE;
        if (fini_report(progress, "learning curve", (double)l, (double)o->tokens))
            return fini_cross_cancelled(err);
        FINI_TRY(block_of_tokens(k, l, t, err));
        if (m == 0)
            tokens_themselves(k, l, t, error, score);
        for (int64_t at = 0; at < m; at += BLOCK) {
            fini_prefix p = {.m = m - at < BLOCK ? m - at : BLOCK,
                             .dv = o->dv,
                             .answers = answers + at * o->dv,
                             .noise = o->settings.noise,
                             .mean = k->mean + at * o->dv,
                             .variance = k->rest + at,
                             .terms = k->terms,
                             .error = error,
                             .score = score};
            block_of_queries(k, &p, l, t, queries + at * o->dk);
        }
        fini_primal_add(o, t, k->F, t, fini_cross_value(o, l), k->S, k->T);
    }
    return FIN_OK;
}

fin_status fini_primal_prefix(const fin_cross *o, int64_t m, const double *queries,
                              const double *answers, double *error, double *score,
                              const fin_progress *progress, fin_error *err)
{
    curve k = {.o = o, .noise = o->settings.noise + o->jitter};
    if (k.noise == 0)
        return fini_fail(
            err, FIN_ERR_NUMERIC,
            "with noise 0 the first tokens do not fix the %lld features, so that the "
            "primal method has no learning curve; give a positive noise or method dual",
            (long long)o->features);
    FINI_LAY_OUT(err, &k.arena, "a learning curve", layout(&k.arena, &k, m));
    fin_status status = walk(&k, m, queries, answers, error, score, progress, err);
    fini_arena_close(&k.arena);
    return status;
}
