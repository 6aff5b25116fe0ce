/* Predictions, leave-one-out and evidence from the features' matrix. */
#include "context/cross_primal.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { BLOCK = FINI_CROSS_BLOCK };

/* out (b, dv) = F' B. */
static void means(const fin_cross *o, int64_t b, const double *F, double *out)
{
    memset(out, 0, (size_t)(b * o->dv) * sizeof *out);
    fini_blas_enter();
    if (o->features > 0)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)b, (int)o->dv, (int)o->features,
                    1, F, (int)b, o->B, (int)o->dv, 0, out, (int)o->dv);
    fini_blas_leave();
}

/* sum[i] += scale times |column i|^2. */
static void squares(int64_t D, int64_t b, const double *F, double scale, double *sum)
{
    for (int64_t j = 0; j < D; j++)
        for (int64_t i = 0; i < b; i++)
            sum[i] += scale * (F[j * b + i] * F[j * b + i]);
}

/* weights (b, tokens) = Y' F of the tokens, Y = (S + noise I)^-1 f(q). */
static void token_weights(const fin_cross *o, int64_t b, const double *Y, double *F,
                          double *weights)
{
    for (int64_t at = 0; at < o->tokens; at += BLOCK) {
        int64_t n = o->tokens - at < BLOCK ? o->tokens - at : BLOCK;
        fini_cross_features(o, n, fini_cross_key(o, at), F, n);
        fini_blas_enter();
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)b, (int)n, (int)o->features, 1, Y,
                    (int)b, F, (int)n, 0, weights + at, (int)o->tokens);
        fini_blas_leave();
    }
}

/* ---- blocks side by side --------------------------------------------------------------------- */

/* With few features threads share blocks, with many each block's matrices. */
static int64_t lanes_of(const fin_cross *o)
{
    return o->features <= FINI_CROSS_LANE_FEATURES ? FINI_CROSS_LANES : 1;
}

static int64_t lane_size(const fin_cross *o)
{
    return (2 * o->features + 4 + o->dv) * BLOCK;
}

int64_t fini_primal_scratch(const fin_cross *o, int64_t m)
{
    int64_t blocks = (m + BLOCK - 1) / BLOCK, lanes = lanes_of(o);
    return (blocks < lanes ? blocks : lanes) * lane_size(o);
}

typedef void job(const fin_cross *o, int64_t at, int64_t b, double *scratch, void *user);

/* do_block for the blocks of at most a wave of n rows from `at` on. */
static void wave(const fin_cross *o, job *do_block, int64_t at, int64_t n, double *scratch,
                 void *user)
{
    int64_t lanes = lanes_of(o);
    int threads = lanes == 1 || n * o->features < FINI_CROSS_FEW ? 1 : fin_threads_get();
    if (threads == 1) /* then each block's matrices are shared */
        for (int64_t i = 0; i < n; i += BLOCK)
            do_block(o, at + i, n - i < BLOCK ? n - i : BLOCK,
                     scratch + i / BLOCK % lanes * lane_size(o), user);
    else
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t i = 0; i < n; i += BLOCK)
            do_block(o, at + i, n - i < BLOCK ? n - i : BLOCK, scratch + i / BLOCK * lane_size(o),
                     user);
}

/* All tokens; sum, unless NULL, adds up the first number of every block's scratch, in order. */
static fin_status over_tokens(const fin_cross *o, job *do_block, void *user, double *sum,
                              const char *what, const fin_progress *progress, fin_error *err)
{
    int64_t size = lanes_of(o) * BLOCK;
    int64_t numbers = fini_primal_scratch(o, o->tokens);
    FINI_OWN(err, what, double, scratch, numbers, 1);
    fin_status status = FIN_OK;
    for (int64_t at = 0; at < o->tokens && !status; at += size) {
        int64_t n = o->tokens - at < size ? o->tokens - at : size;
        if (fini_report(progress, what, (double)at, (double)o->tokens)) {
            status = fini_cross_cancelled(err);
            break;
        }
        wave(o, do_block, at, n, scratch, user);
        for (int64_t i = 0; i < n && sum; i += BLOCK)
            *sum += scratch[i / BLOCK * lane_size(o)];
    }
    return status;
}

/* ---- predictions ----------------------------------------------------------------------------- */

typedef struct answer {
    const double *queries;
    double *mean, *variance, *weights;
} answer;

static void predict_block(const fin_cross *o, int64_t at, int64_t m, double *scratch, void *user)
{
    answer *a = user;
    const double *queries = a->queries + at * o->dk;
    double *F = scratch, *others = F + o->features * BLOCK, *sum = others + o->features * BLOCK;
    bool none = o->tokens == 0; /* the prior, whatever the noise */
    fini_cross_features(o, m, queries, F, m);
    fini_cross_unseen(o, m, queries, F, m, sum);
    means(o, m, F, a->mean + at * o->dv);
    if (none) {
        memset(a->mean + at * o->dv, 0, (size_t)(m * o->dv) * sizeof *a->mean);
        squares(o->features, m, F, 1, sum);
    } else if (a->variance || a->weights) {
        fini_spd_lower(fini_primal_M(o), m, F, m);
        squares(o->features, m, F, o->settings.noise + o->jitter, sum);
    }
    for (int64_t i = 0; i < m * o->dv && a->variance; i++)
        a->variance[at * o->dv + i] = sum[i / o->dv];
    if (!a->weights || none)
        return;
    fini_spd_upper(fini_primal_M(o), m, F, m);
    token_weights(o, m, F, others, a->weights + at * o->tokens);
}

void fini_primal_predict(const fin_cross *o, int64_t m, const double *queries, double *mean,
                         double *variance, double *weights, double *scratch)
{
    answer a = {queries, mean, variance, weights};
    wave(o, predict_block, 0, m, scratch, &a);
}

/* ---- leave-one-out --------------------------------------------------------------------------- */

/* h = f'(S + noise I)^-1 f, residual r = v - f.B:
 *     mean = v - r / (1 - h),  variance of a value = noise / (1 - h)
 * and 1 - h is at least noise / (noise + |f|^2), what one token alone leaves. */
static void loo_block(const fin_cross *o, int64_t at, int64_t b, double *F, void *user)
{
    answer *a = user;
    double noise = o->settings.noise + o->jitter;
    double *own = F + 2 * o->features * BLOCK, *h = own + BLOCK, *unseen = h + BLOCK;
    fini_cross_features(o, b, fini_cross_key(o, at), F, b);
    fini_cross_unseen(o, b, fini_cross_key(o, at), F, b, unseen);
    memset(own, 0, 2 * BLOCK * sizeof *own);
    squares(o->features, b, F, 1, own);
    means(o, b, F, a->mean + at * o->dv);
    fini_spd_lower(fini_primal_M(o), b, F, b);
    squares(o->features, b, F, 1, h);
    for (int64_t i = 0; i < b; i++) {
        double left = fmax(1 - h[i], noise > 0 ? noise / (noise + own[i]) : 0);
        if (left < 1e-10 && noise == 0)
            left = NAN;
        for (int64_t c = (at + i) * o->dv; c < (at + i + 1) * o->dv; c++) {
            double v = fini_cross_value(o, 0)[c];
            a->mean[c] = v - (v - a->mean[c]) / left;
            if (a->variance)
                a->variance[c] = noise / left + unseen[i];
        }
    }
}

fin_status fini_primal_loo(const fin_cross *o, double *mean, double *variance,
                           const fin_progress *progress, fin_error *err)
{
    answer a = {.mean = mean, .variance = variance};
    fin_status status = over_tokens(o, loo_block, &a, NULL, "leave-one-out", progress, err);
    for (int64_t i = 0; i < o->tokens && !status && o->settings.noise == 0; i++)
        if (isnan(mean[i * o->dv]))
            return fini_fail(
                err, FIN_ERR_NUMERIC,
                "with noise 0 the tokens other than %lld do not fix the %lld features; "
                "give a positive noise",
                (long long)i, (long long)o->features);
    return status;
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* Sum over tokens and columns of (v - f.B)^2, into the first number of the scratch. */
static void misfit_block(const fin_cross *o, int64_t at, int64_t b, double *F, void *user)
{
    double *mean = F + 2 * o->features * BLOCK + BLOCK, sum = 0;
    (void)user;
    fini_cross_features(o, b, fini_cross_key(o, at), F, b);
    means(o, b, F, mean);
    for (int64_t i = 0; i < b * o->dv; i++) {
        double miss = fini_cross_value(o, at)[i] - mean[i];
        sum += miss * miss;
    }
    F[0] = sum;
}

/* G as in cross_evidence.c. (S + noise I) B = T makes F alpha = B, so that for the feature j
 *     e_j = 2 sum_ab G_ab f_j(a) f_j(b) = |B_j|^2 - dv (1 - noise [(S + noise I)^-1]_jj),
 * and a monomial falls with the power of its column when that column's scale grows. */
static void differentiate(const fin_cross *o, double fit, double *E, double *gradient,
                          double *by_column)
{
    int64_t D = o->features, dv = o->dv, with_prior = o->basis.all - o->basis.skip;
    double noise = o->settings.noise + o->jitter, trace = 0;
    for (int64_t l = 0; l < D; l += BLOCK) {
        int64_t b = D - l < BLOCK ? D - l : BLOCK;
        double inverse[BLOCK];
        fini_spd_inverse_diagonal(fini_primal_M(o), l, b, inverse, E);
        for (int64_t j = l; j < l + b; j++) {
            double e = -(double)dv * (1 - noise * inverse[j - l]);
            trace += inverse[j - l];
            for (int64_t c = 0; c < dv; c++)
                e += o->B[j * dv + c] * o->B[j * dv + c];
            gradient[1] += j < with_prior ? e / 2 : 0;
            for (int64_t c = 0; c < o->dk; c++)
                by_column[c] -= e * (double)fini_monomials_power(o, j, c);
        }
    }
    for (int64_t c = 0; c < o->dk; c++)
        gradient[0] += by_column[c];
    /* noise / 2 (|alpha|^2 - dv tr A^-1), alpha = r / noise */
    gradient[2] = o->settings.noise / noise / 2 *
                  (fit / noise - (double)dv * ((double)(o->tokens - D) + noise * trace));
}

/*     log |A| = (L - D) log noise + log |S + noise I|,  v'A^-1 v = |v - f.B|^2 / noise + |B|^2 */
fin_status fini_primal_evidence(const fin_cross *o, double *evidence, double *gradient,
                                double *by_column, const fin_progress *progress, fin_error *err)
{
    double noise = o->settings.noise + o->jitter, L = (double)o->tokens, D = (double)o->features;
    if (noise == 0)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "with noise 0 and fewer features than tokens the values have no density; "
                         "give a positive noise");
    if (gradient && o->method == &fini_cross_nystrom)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the nystrom method has an evidence but no gradient of it; tune on a "
                         "random part of the tokens with method dual");
    double fit = 0, square = 0;
    FINI_TRY(over_tokens(o, misfit_block, NULL, &fit, "evidence", progress, err));
    for (int64_t i = 0; i < o->features * o->dv; i++)
        square += o->B[i] * o->B[i];
    double logdet = (L - D) * log(noise) + fini_spd_logdet(fini_primal_M(o));
    *evidence =
        -0.5 * (fit / noise + square) - 0.5 * (double)o->dv * (logdet + L * log(FINI_TWO_PI));
    if (!gradient)
        return FIN_OK;
    FINI_OWN(err, "a gradient", double, E, o->features, BLOCK);
    differentiate(o, fit, E, gradient, by_column);
    return FIN_OK;
}
