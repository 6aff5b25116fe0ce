/* cme attention, dual: the Cholesky factor C of A = prior G + level + noise I, tokens x tokens.
 *
 *     w = C^-1 V,  alpha = C'^-1 w,  mean(q) = K_q' alpha,
 *     variance(q) = prior k(q, q) + level - |C^-1 K_q|^2
 *
 * (Rasmussen and Williams 2006, algorithm 2.1.) A prediction of means alone takes no solve. The
 * variance is a difference whose rounding error is about the machine epsilon times the prior
 * variance: below that it is noise, so it is cut at zero.
 *
 * If rounding leaves A without a factor the noise is raised by the jitter of math/spd.h. With a
 * jitter above the noise the answer must still pass through the values, or it is refused: after every
 * change of the tokens. */
#include "context/cross.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* Of the first n tokens. */
static fini_spd factor_of(const fin_cross *o, int64_t n)
{
    return fini_spd_of(n, o->C, o->capacity);
}

/* With noise 0: do tokens from number `from` to n - 1 have the key of an earlier one and other
 * values? */
static fin_status check_equal(const fin_cross *o, int64_t from, int64_t n, fin_error *err)
{
    fini_tokens t = {n, o->dk, o->dv, o->dv, fini_cross_key(o, 0), fini_cross_value(o, 0)};
    int64_t a = 0, b = o->settings.noise == 0 ? fini_spd_contradiction(&t, from, o->row, &a) : -1;
    return b < 0 ? FIN_OK
                 : fini_fail(err, FIN_ERR_NUMERIC,
                             "tokens %lld and %lld have the same key and different values, which "
                             "noise 0 cannot explain; give a positive noise",
                             (long long)a, (long long)b);
}

/* ---- the factor ------------------------------------------------------------------------------ */

static void fill(void *user, double jitter)
{
    fin_cross *o = user;
    int64_t n = o->tokens, ld = o->capacity;
    double prior = o->settings.prior, level = o->settings.level;
    fini_covariance_lower(&o->kernel, o->dk, n, fini_cross_key(o, 0), o->C, ld);
    int threads = n * n < FINI_CROSS_FEW ? 1 : fin_threads_get();
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        double *row = o->C + i * ld;
        for (int64_t j = 0; j <= i && (prior != 1 || level != 0); j++)
            row[j] = prior * row[j] + level;
        o->diagonal[i] = row[i] + o->settings.noise;
        row[i] = o->diagonal[i] + jitter;
    }
}

static double mean_diagonal(const fin_cross *o)
{
    double mean = 0;
    for (int64_t i = 0; i < o->tokens; i++)
        mean += o->diagonal[i] / (double)o->tokens;
    return mean;
}

static fin_status refuse_factor(const fin_cross *o, int64_t pivot, fin_error *err)
{
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "the matrix of %lld tokens has no inverse in floating point: the key of token "
                     "%lld says nothing beyond those before it, and noise = %g; give a positive "
                     "noise, such as %.1g",
                     (long long)o->tokens, (long long)pivot, o->settings.noise,
                     1e-6 * mean_diagonal(o));
}

static void solve(fin_cross *o)
{
    size_t bytes = (size_t)(o->tokens * o->dv) * sizeof(double);
    memcpy(o->w, fini_cross_value(o, 0), bytes);
    fini_spd_lower(factor_of(o, o->tokens), o->dv, o->w, o->dv);
    memcpy(o->alpha, o->w, bytes);
    fini_spd_upper(factor_of(o, o->tokens), o->dv, o->alpha, o->dv);
}

static bool harmless(const fin_cross *o, int64_t n)
{
    bool is = true;
    for (int64_t c = 0; c < o->dv && is; c++)
        is = fini_spd_harmless(o->jitter, o->settings.noise, n, o->alpha + c, o->dv,
                               fini_cross_value(o, 0) + c, o->dv);
    return is;
}

/* Of all o->tokens tokens, with the first jitter that works, from `step` on; stopped: the token
 * that stopped the step before. */
static fin_status factor(fin_cross *o, int step, int64_t stopped, const fin_progress *progress,
                         fin_error *err)
{
    fini_spd A = factor_of(o, o->tokens);
    fini_spd_steps steps = {fill, o, .first = step, .last = FINI_SPD_STEPS - 1};
    fini_cross_prior(o, o->tokens, fini_cross_key(o, 0), o->diagonal);
    for (int64_t i = 0; i < o->tokens; i++)
        o->diagonal[i] += o->settings.noise;
    steps.mean = mean_diagonal(o);
    A.stopped = stopped;
    FINI_TRY(check_equal(o, 0, o->tokens, err));
    FINI_TRY(fini_spd_ladder(&A, &steps, progress, err));
    o->jitter = A.jitter;
    if (A.pivot >= 0)
        return refuse_factor(o, A.pivot, err);
    solve(o);
    return harmless(o, o->tokens) ? FIN_OK : refuse_factor(o, A.stopped, err);
}

static fin_status load(fin_cross *o, const fin_progress *progress, fin_error *err)
{
    return o->tokens == 0 ? FIN_OK : factor(o, 0, 0, progress, err);
}

/* ---- one more, one less ---------------------------------------------------------------------- */

/* Row n of the factor. */
static bool append_one(fin_cross *o, int64_t n)
{
    fini_cross_covariances(o, 1, fini_cross_key(o, n), n + 1, fini_cross_key(o, 0), o->row, n + 1);
    fini_cross_prior(o, 1, fini_cross_key(o, n), o->row + n);
    o->diagonal[n] = o->row[n] + o->settings.noise;
    o->row[n] = o->diagonal[n] + o->jitter;
    return fini_spd_append(factor_of(o, n), o->row);
}

/* All anew with a jitter; if that fails too, what there was before. */
static fin_status append_anew(fin_cross *o, int64_t n, int64_t stopped, fin_error *err)
{
    double before = o->jitter;
    int64_t held = o->tokens;
    o->tokens = held + n;
    fin_status status = factor(o, 1, stopped, NULL, err);
    o->tokens = held;
    if (!status)
        return FIN_OK;
    o->jitter = before;
    fini_spd A = factor_of(o, held);
    fill(o, before);
    if (!fini_spd_factor(&A, NULL, NULL) && A.pivot < 0)
        solve(o);
    else if (factor(o, 0, 0, NULL, NULL))
        fini_cross_clear(o, NULL);
    return status;
}

static fin_status append(fin_cross *o, int64_t n, fin_error *err)
{
    FINI_TRY(check_equal(o, o->tokens, o->tokens + n, err));
    for (int64_t i = o->tokens; i < o->tokens + n; i++)
        if (!append_one(o, i))
            return append_anew(o, n, i, err);
    int64_t held = o->tokens, dv = o->dv;
    for (int64_t i = held; i < held + n; i++)
        for (int64_t c = 0; c < dv; c++) {
            const double *row = o->C + i * o->capacity;
            double sum = fini_cross_value(o, i)[c];
            for (int64_t j = 0; j < i; j++)
                sum -= row[j] * o->w[j * dv + c];
            o->w[i * dv + c] = sum / row[i];
        }
    memcpy(o->alpha, o->w, (size_t)((held + n) * dv) * sizeof(double));
    fini_spd_upper(factor_of(o, held + n), dv, o->alpha, dv);
    return harmless(o, held + n) ? FIN_OK : append_anew(o, n, held + n - 1, err);
}

static fin_status drop(fin_cross *o, int64_t n, fin_error *err)
{
    fini_spd_drop(factor_of(o, o->tokens), n);
    memmove(o->diagonal, o->diagonal + n, (size_t)(o->tokens - n) * sizeof(double));
    o->first += n;
    o->tokens -= n;
    solve(o);
    return harmless(o, o->tokens) ? FIN_OK : factor(o, 0, 0, NULL, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

static int64_t scratch(const fin_cross *o, int64_t m)
{
    return o->tokens * m;
}

static void predict(const fin_cross *o, int64_t m, const double *queries, double *mean,
                    double *variance, double *weights, double *K)
{
    int64_t n = o->tokens, dv = o->dv;
    double prior[FINI_CROSS_BLOCK];
    fini_cross_covariances(o, n, fini_cross_key(o, 0), m, queries, K, m);
    fini_blas_enter();
    memset(mean, 0, (size_t)(m * dv) * sizeof *mean);
    if (n > 0)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)dv, (int)n, 1, K, (int)m,
                    o->alpha, (int)dv, 0, mean, (int)dv);
    fini_blas_leave();
    if (!variance && !weights)
        return;
    fini_spd_lower(factor_of(o, n), m, K, m);
    fini_cross_prior(o, m, queries, prior);
    for (int64_t i = 0; i < n && variance; i++)
        for (int64_t j = 0; j < m; j++)
            prior[j] -= K[i * m + j] * K[i * m + j];
    for (int64_t j = 0; j < m && variance; j++)
        for (int64_t c = 0; c < dv; c++)
            variance[j * dv + c] = fmax(prior[j], 0);
    if (!weights)
        return;
    fini_spd_upper(factor_of(o, n), m, K, m);
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i++)
            weights[j * n + i] = K[i * m + j];
}

/* A block of l at a time:
 *     mean_l = v_l - alpha_l / [A^-1]_ll,  variance_l = 1 / [A^-1]_ll   (R & W, 5.12) */
static fin_status loo(const fin_cross *o, double *mean, double *variance,
                      const fin_progress *progress, fin_error *err)
{
    int64_t n = o->tokens, dv = o->dv;
    FINI_OWN(err, "leave-one-out", double, E, n, FINI_CROSS_BLOCK);
    fin_status status = FIN_OK;
    for (int64_t l = 0; l < n && !status; l += FINI_CROSS_BLOCK) {
        int64_t b = n - l < FINI_CROSS_BLOCK ? n - l : FINI_CROSS_BLOCK;
        double sum[FINI_CROSS_BLOCK];
        if (fini_report(progress, "leave-one-out", (double)l, (double)n))
            status = fini_cross_cancelled(err);
        fini_spd_inverse_diagonal(factor_of(o, n), l, b, sum, E);
        for (int64_t j = 0; j < b; j++)
            for (int64_t c = 0; c < dv; c++) {
                int64_t at = (l + j) * dv + c;
                mean[at] = fini_cross_value(o, 0)[at] - o->alpha[at] / sum[j];
                if (variance)
                    variance[at] = 1 / sum[j];
            }
    }
    return status;
}

/* Token l itself: predicted with variance C_ll^2, missed by C_ll w_l. */
static void prefix_self(const fin_cross *o, double *error, double *score)
{
    for (int64_t l = 0; l < o->tokens; l++) {
        double pivot = o->C[l * o->capacity + l];
        for (int64_t c = 0; c < o->dv; c++) {
            double w = o->w[l * o->dv + c];
            error[l] += pivot * pivot * w * w;
            if (score)
                score[l] += 0.5 * (log(FINI_TWO_PI) + w * w) + log(pivot);
        }
    }
}

static fin_status prefix(const fin_cross *o, int64_t m, const double *queries,
                         const double *answers, double *error, double *score,
                         const fin_progress *progress, fin_error *err)
{
    enum { BLOCK = FINI_CROSS_BLOCK };
    int64_t n = o->tokens, dv = o->dv;
    if (!queries) {
        prefix_self(o, error, score);
        return FIN_OK;
    }
    int64_t numbers = (2 * n + 2 + dv + 1) * BLOCK;
    FINI_OWN(err, "a learning curve", double, X, numbers, 1);
    fin_status status = FIN_OK;
    for (int64_t at = 0; at < m && !status; at += BLOCK) {
        int64_t b = m - at < BLOCK ? m - at : BLOCK;
        fini_prefix p = {
            b, dv, answers + at * dv, o->settings.noise, .error = error, .score = score};
        p.terms = X + n * BLOCK;
        p.mean = p.terms + (n + 2) * BLOCK;
        p.variance = p.mean + BLOCK * dv;
        if (fini_report(progress, "learning curve", (double)at, (double)m))
            status = fini_cross_cancelled(err);
        memset(p.mean, 0, (size_t)(b * dv) * sizeof *p.mean);
        fini_cross_prior(o, b, queries + at * o->dk, p.variance);
        fini_cross_covariances(o, n, fini_cross_key(o, 0), b, queries + at * o->dk, X, b);
        fini_spd_lower(factor_of(o, n), b, X, b);
        fini_prefix_now(&p, 0);
        fini_prefix_rows(&p, 0, n, X, o->w);
    }
    return status;
}

fin_status fini_dual_evidence(const fin_cross *o, double *evidence, double *gradient,
                              double *by_column, const fin_progress *progress, fin_error *err);

const fini_cross_method fini_cross_dual = {
    .name = FIN_CROSS_DUAL,
    .load = load,
    .append = append,
    .drop = drop,
    .block = FINI_CROSS_BLOCK,
    .scratch = scratch,
    .predict = predict,
    .loo = loo,
    .prefix = prefix,
    .evidence = fini_dual_evidence,
};
