/* softmax and Nadaraya-Watson attention: weights w_l = k(q, k_l) / sum, nothing to be factored.
 *
 * Everything is done with log k (softmax's is q.k / temperature), a tile of tokens at a time, with
 * a running maximum, sum, mean and sum of squares around the mean, rescaled when the maximum grows
 * (Milakov and Gimelshein 2018; the squares merged as by Chan, Golub and LeVeque 1983). So no
 * exponent overflows, the variance does not cancel, and memory does not grow with the tokens. */
#include "context/cross.h"

#include "kernel/kernel.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { QUERIES = 64, TOKENS = 256, BLOCK = 16 * QUERIES };

/* Which tokens a query sees: all, all but the one with its number, those before that one. */
typedef enum mask { ALL, OTHERS, BEFORE } mask;

typedef struct run {
    double *score;         /* (QUERIES, TOKENS) */
    double *top, *total;   /* (QUERIES) */
    double *mean, *square; /* (QUERIES, dv) */
    double *sum;           /* (QUERIES, dv) */
} run;

static int64_t run_size(const fin_cross *o)
{
    return QUERIES * (TOKENS + 2 + 3 * o->dv);
}

static run cut(const fin_cross *o, double *scratch)
{
    run r = {.score = scratch, .top = scratch + QUERIES * TOKENS};
    r.total = r.top + QUERIES;
    r.mean = r.total + QUERIES;
    r.square = r.mean + QUERIES * o->dv;
    r.sum = r.square + QUERIES * o->dv;
    return r;
}

/* log k of m queries and n tokens from `token` on; -infinity for those that are not seen. */
static void scores(const fin_cross *o, int64_t m, const double *queries, int64_t number,
                   int64_t token, int64_t n, mask seen, double *out)
{
    fini_covariance_logs(&o->kernel, o->dk, m, queries, n, fini_cross_key(o, token), out, TOKENS);
    for (int64_t q = 0; q < m && seen != ALL; q++)
        for (int64_t j = 0; j < n; j++)
            if (seen == OTHERS ? token + j == number + q : token + j >= number + q)
                out[q * TOKENS + j] = -INFINITY;
}

/* Sum of e (v - its mean)^2 within the tile, added to what there was. */
static void add_squares(const fin_cross *o, run *r, int64_t q, int64_t n, const double *V,
                        double before, double part)
{
    const double *e = r->score + q * TOKENS;
    for (int64_t c = 0; c < o->dv; c++) {
        double centre = r->sum[q * o->dv + c] / part, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            double off = V[j * o->dv + c] - centre;
            sum += e[j] * off * off;
        }
        double apart = centre - r->mean[q * o->dv + c];
        r->square[q * o->dv + c] += sum + apart * apart * before * (part / (before + part));
    }
}

/* Exponentials of a tile, shifted by the largest score so far, and what they add. */
static void add_tile(const fin_cross *o, run *r, int64_t m, int64_t n, const double *V,
                     bool squares)
{
    double before[QUERIES];
    for (int64_t q = 0; q < m; q++) {
        double *row = r->score + q * TOKENS, top = r->top[q];
        for (int64_t j = 0; j < n; j++)
            top = row[j] > top ? row[j] : top;
        for (int64_t j = 0; j < n && top > -INFINITY; j++)
            row[j] -= top;
        double shrink = r->top[q] > -INFINITY ? exp(r->top[q] - top) : 0;
        before[q] = r->total[q] * shrink;
        for (int64_t c = 0; c < o->dv; c++)
            r->square[q * o->dv + c] *= shrink;
        r->top[q] = top;
        fini_kernel_get()->exp(n, row, row);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)o->dv, (int)n, 1, r->score,
                TOKENS, V, (int)o->dv, 0, r->sum, (int)o->dv);
    for (int64_t q = 0; q < m; q++) {
        double part = 0;
        for (int64_t j = 0; j < n; j++)
            part += r->score[q * TOKENS + j];
        if (part > 0 && squares)
            add_squares(o, r, q, n, V, before[q], part);
        r->total[q] = before[q] + part;
        for (int64_t c = 0; c < o->dv && part > 0; c++) {
            double *mean = r->mean + q * o->dv + c;
            *mean += (r->sum[q * o->dv + c] - part * *mean) / r->total[q];
        }
    }
}

/* At most QUERIES queries, the first of them number `number`. */
static void attend(const fin_cross *o, int64_t m, const double *queries, int64_t number, mask seen,
                   double *mean, double *variance, double *weights, double *scratch)
{
    run r = cut(o, scratch);
    memset(r.total, 0, (size_t)(QUERIES * (1 + 2 * o->dv)) * sizeof *r.total);
    for (int64_t q = 0; q < m; q++)
        r.top[q] = -INFINITY;
    for (int64_t l = 0; l < o->tokens; l += TOKENS) {
        int64_t n = o->tokens - l < TOKENS ? o->tokens - l : TOKENS;
        scores(o, m, queries, number, l, n, seen, r.score);
        add_tile(o, &r, m, n, fini_cross_value(o, l), variance != NULL);
    }
    for (int64_t i = 0; i < m * o->dv; i++) {
        mean[i] = r.total[i / o->dv] > 0 ? r.mean[i] : NAN;
        if (variance)
            variance[i] = r.square[i] / r.total[i / o->dv];
    }
    for (int64_t l = 0; l < o->tokens && weights; l += TOKENS) {
        int64_t n = o->tokens - l < TOKENS ? o->tokens - l : TOKENS;
        scores(o, m, queries, number, l, n, seen, r.score);
        for (int64_t q = 0; q < m; q++) {
            double *row = r.score + q * TOKENS, *to = weights + q * o->tokens + l;
            for (int64_t j = 0; j < n; j++)
                row[j] -= r.top[q];
            fini_kernel_get()->exp(n, row, row);
            for (int64_t j = 0; j < n; j++)
                to[j] = row[j] / r.total[q];
        }
    }
}

/* At most BLOCK queries; threads share tiles of them, each with its own scratch. */
static void attend_block(const fin_cross *o, int64_t m, const double *queries, int64_t number,
                         mask seen, double *mean, double *variance, double *weights,
                         double *scratch)
{
    int threads = m * o->tokens < FINI_CROSS_FEW ? 1 : fin_threads_get();
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t t = 0; t < m; t += QUERIES)
        attend(o, m - t < QUERIES ? m - t : QUERIES, queries + t * o->dk, number + t, seen,
               mean + t * o->dv, variance ? variance + t * o->dv : NULL,
               weights ? weights + t * o->tokens : NULL, scratch + t / QUERIES * run_size(o));
    fini_blas_leave();
}

/* ---- what the context asks ------------------------------------------------------------------- */

static fin_status load(fin_cross *o, const fin_progress *progress, fin_error *err)
{
    (void)o, (void)progress, (void)err;
    return FIN_OK;
}

static fin_status append(fin_cross *o, int64_t n, fin_error *err)
{
    (void)o, (void)n, (void)err;
    return FIN_OK;
}

static fin_status drop(fin_cross *o, int64_t n, fin_error *err)
{
    (void)err;
    o->first += n;
    o->tokens -= n;
    return FIN_OK;
}

static int64_t scratch_size(const fin_cross *o, int64_t m)
{
    return ((m < BLOCK ? m : BLOCK) + QUERIES - 1) / QUERIES * run_size(o);
}

static void predict(const fin_cross *o, int64_t m, const double *queries, double *mean,
                    double *variance, double *weights, double *scratch)
{
    attend_block(o, m, queries, 0, ALL, mean, variance, weights, scratch);
}

/* Token by token, each by what its mask lets it see. */
static fin_status tokens_themselves(const fin_cross *o, mask seen, double *mean, double *variance,
                                    const fin_progress *progress, fin_error *err)
{
    int64_t numbers = scratch_size(o, o->tokens);
    FINI_OWN(err, "tiles of tokens", double, scratch, numbers, 1);
    fin_status status = FIN_OK;
    for (int64_t at = 0; at < o->tokens && !status; at += BLOCK) {
        if (fini_report(progress, "tokens", (double)at, (double)o->tokens))
            status = fini_cross_cancelled(err);
        int64_t m = o->tokens - at < BLOCK ? o->tokens - at : BLOCK;
        attend_block(o, m, fini_cross_key(o, at), at, seen, mean + at * o->dv,
                     variance ? variance + at * o->dv : NULL, NULL, scratch);
    }
    return status;
}

/* The token's own weight is masked: taking it out of the sums would cancel where it dominates. */
static fin_status loo(const fin_cross *o, double *mean, double *variance,
                      const fin_progress *progress, fin_error *err)
{
    return tokens_themselves(o, OTHERS, mean, variance, progress, err);
}

/* ---- the learning curve ---------------------------------------------------------------------- */

static fin_status prefix_self(const fin_cross *o, double *error, const fin_progress *progress,
                              fin_error *err)
{
    int64_t n = o->tokens, dv = o->dv;
    FINI_OWN(err, "a learning curve", double, mean, n, dv);
    FINI_TRY(tokens_themselves(o, BEFORE, mean, NULL, progress, err));
    for (int64_t i = 0; i < n * dv; i++) {
        double miss = mean[i] - fini_cross_value(o, 0)[i];
        error[i / dv] += miss * miss;
    }
    return FIN_OK;
}

/* mean += (v - mean) e / sum e, one token at a time; the squared error after each into terms. */
static void walk(const fin_cross *o, run *r, int64_t m, int64_t n, int64_t token,
                 const double *answers, double *terms, int64_t ld)
{
    int64_t dv = o->dv;
    for (int64_t q = 0; q < m; q++)
        for (int64_t j = 0; j < n; j++) {
            double s = r->score[q * TOKENS + j], sum = 0, e = 1;
            if (s > r->top[q]) {
                r->total[q] *= exp(r->top[q] - s);
                r->top[q] = s;
            } else {
                e = exp(s - r->top[q]);
            }
            r->total[q] += e;
            for (int64_t c = 0; c < dv; c++) {
                double *mean = r->mean + q * dv + c;
                *mean += (fini_cross_value(o, token + j)[c] - *mean) * (e / r->total[q]);
                double miss = *mean - answers[q * dv + c];
                sum += miss * miss;
            }
            terms[j * ld + q] = sum;
        }
}

/* One block of at most BLOCK queries, all tokens. */
static void prefix_block(const fin_cross *o, int64_t m, const double *queries,
                         const double *answers, double *error, double *scratch, double *terms)
{
    int64_t tiles = (m + QUERIES - 1) / QUERIES;
    int threads = m * o->tokens < FINI_CROSS_FEW ? 1 : fin_threads_get();
    for (int64_t t = 0; t < tiles; t++) {
        run r = cut(o, scratch + t * run_size(o));
        memset(r.total, 0, (size_t)(QUERIES * (1 + o->dv)) * sizeof *r.total);
        for (int64_t q = 0; q < QUERIES; q++)
            r.top[q] = -INFINITY;
    }
    fini_blas_enter();
    for (int64_t l = 0; l < o->tokens; l += TOKENS) {
        int64_t n = o->tokens - l < TOKENS ? o->tokens - l : TOKENS;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t t = 0; t < tiles; t++) {
            run r = cut(o, scratch + t * run_size(o));
            int64_t at = t * QUERIES, b = m - at < QUERIES ? m - at : QUERIES;
            scores(o, b, queries + at * o->dk, 0, l, n, ALL, r.score);
            walk(o, &r, b, n, l, answers + at * o->dv, terms + at, m);
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t q = 0; q < m; q++)
                error[l + j + 1] += terms[j * m + q];
    }
    fini_blas_leave();
}

static fin_status prefix(const fin_cross *o, int64_t m, const double *queries,
                         const double *answers, double *error, double *score,
                         const fin_progress *progress, fin_error *err)
{
    for (int64_t l = 0; l < (m > 0 ? o->tokens + 1 : o->tokens) && score; l++)
        score[l] = NAN;
    if (!queries)
        return prefix_self(o, error, progress, err);
    int64_t own = scratch_size(o, m), numbers = own + TOKENS * BLOCK;
    FINI_OWN(err, "a learning curve", double, scratch, numbers, 1);
    fin_status status = FIN_OK;
    error[0] = NAN;
    for (int64_t at = 0; at < m && !status; at += BLOCK) {
        if (fini_report(progress, "learning curve", (double)at, (double)m))
            status = fini_cross_cancelled(err);
        prefix_block(o, m - at < BLOCK ? m - at : BLOCK, queries + at * o->dk, answers + at * o->dv,
                     error, scratch, scratch + own);
    }
    return status;
}

const fini_cross_method fini_cross_form = {
    .name = FIN_CROSS_AUTO,
    .load = load,
    .append = append,
    .drop = drop,
    .block = BLOCK,
    .scratch = scratch_size,
    .predict = predict,
    .loo = loo,
    .prefix = prefix,
};
