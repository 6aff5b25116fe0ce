/* Tokens in and out of a context: checked, divided by their scales, kept, handed to the method.
 *
 * The tokens stand one after the other in arrays with some slack at the end. The oldest leave by
 * moving where the first one is, and all move to the front when the end is reached. */
#include "context/cross.h"

#include <math.h>
#include <string.h>

/* Beyond this a square, or a sum of squares, would overflow. */
#define LARGEST 1e140

fin_status fini_cross_cancelled(fin_error *err)
{
    return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
}

void fini_cross_divide(const fin_cross *o, int64_t n, const double *rows, double *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < o->dk; c++)
            out[i * o->dk + c] = rows[i * o->dk + c] / o->divisor[c];
}

void fini_cross_prior(const fin_cross *o, int64_t n, const double *rows, double *out)
{
    fini_covariance_diagonal(&o->kernel, o->dk, n, rows, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = o->settings.prior * out[i] + o->settings.level;
}

void fini_cross_covariances(const fin_cross *o, int64_t n, const double *a, int64_t m,
                            const double *b, double *out, int64_t ld)
{
    double prior = o->settings.prior, level = o->settings.level;
    int threads = n * m < FINI_CROSS_FEW ? 1 : fin_threads_get();
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < n; i += FINI_CROSS_TILE) {
        int64_t rows = n - i < FINI_CROSS_TILE ? n - i : FINI_CROSS_TILE;
        fini_covariance_tile(&o->kernel, o->dk, rows, a + i * o->dk, m, b, out + i * ld, ld);
        if (prior != 1 || level != 0)
            for (int64_t r = i; r < i + rows; r++)
                for (int64_t j = 0; j < m; j++)
                    out[r * ld + j] = prior * out[r * ld + j] + level;
    }
    fini_blas_leave();
}

/* ---- checks ---------------------------------------------------------------------------------- */

static fin_status refuse_overflow(const fin_cross *o, const char *what, int64_t i, fin_error *err)
{
    if (o->kernel.kernel == FIN_KERNEL_EXPONENTIAL)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "the exponential kernel of %s %lld with itself, exp(|key / scale|^2), "
                         "overflows; standardise the keys or take a larger scale",
                         what, (long long)i);
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "the kernel of %s %lld with itself overflows; standardise the keys or take a "
                     "larger scale",
                     what, (long long)i);
}

/* |k(a, b)|^2 <= k(a, a) k(b, b): if these are finite, all are. The logarithms that softmax and nw
 * work with do not overflow. */
fin_status fini_cross_overflow(const fin_cross *o, const char *what, int64_t base, int64_t n,
                               const double *divided, fin_error *err)
{
    enum { CHUNK = 64 };
    double prior[CHUNK];
    if (o->settings.form != FIN_CROSS_CME)
        return FIN_OK;
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t rows = n - i < CHUNK ? n - i : CHUNK;
        fini_cross_prior(o, rows, divided + i * o->dk, prior);
        for (int64_t r = 0; r < rows; r++)
            if (!(prior[r] <= 1e300))
                return refuse_overflow(o, what, base + i + r, err);
    }
    return FIN_OK;
}

fin_status fini_cross_check(const fin_cross *o, const char *what, int64_t n, const double *rows,
                            fin_error *err)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < o->dk; c++) {
            double x = rows[i * o->dk + c];
            if (!isfinite(x))
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "%s %lld has %g in key column %lld; only finite numbers are "
                                 "allowed: leave such rows out",
                                 what, (long long)i, x, (long long)c);
            if (!(fabs(x / o->divisor[c]) <= LARGEST))
                return fini_fail(err, FIN_ERR_NUMERIC,
                                 "%s %lld has %g in key column %lld, which divided by the scale %g "
                                 "is too large to be squared; standardise the keys or take a "
                                 "larger scale",
                                 what, (long long)i, x, (long long)c, o->divisor[c]);
        }
    return FIN_OK;
}

static fin_status check_tokens(const fin_cross *o, int64_t held, int64_t n, const double *keys,
                               const double *values, fin_error *err)
{
    if (n < 0 || n > o->capacity - held)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld tokens for a context that has %lld and was made for %lld; drop the "
                         "oldest or make a larger one",
                         (long long)n, (long long)held, (long long)o->capacity);
    FINI_TRY(fini_cross_check(o, "token", n, keys, err));
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < o->dv; c++)
            if (!(fabs(values[i * o->dv + c]) <= LARGEST))
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "token %lld has %g in value column %lld; only finite numbers "
                                 "below 1e140 are allowed: leave such rows out",
                                 (long long)i, values[i * o->dv + c], (long long)c);
    return FIN_OK;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Copies n tokens behind those that are there. */
static fin_status place(fin_cross *o, int64_t n, const double *keys, const double *values,
                        fin_error *err)
{
    if (o->first + o->tokens + n > o->room) {
        memmove(o->keys, fini_cross_key(o, 0), (size_t)(o->tokens * o->dk) * sizeof(double));
        memmove(o->values, fini_cross_value(o, 0), (size_t)(o->tokens * o->dv) * sizeof(double));
        o->first = 0;
    }
    double *to = o->keys + (o->first + o->tokens) * o->dk;
    fini_cross_divide(o, n, keys, to);
    if (n > 0)
        memcpy(o->values + (o->first + o->tokens) * o->dv, values,
               (size_t)(n * o->dv) * sizeof(double));
    return fini_cross_overflow(o, "token", 0, n, to, err);
}

fin_status fini_cross_clear(fin_cross *o, fin_error *err)
{
    o->tokens = o->first = 0;
    o->jitter = 0;
    return o->method->load(o, NULL, err);
}

fin_status fin_cross_load(fin_cross *o, int64_t n, const double *keys, const double *values,
                          const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, o, !n || keys, !n || values);
    FINI_TRY(check_tokens(o, 0, n, keys, values, err));
    o->tokens = o->first = 0;
    o->jitter = 0;
    fin_status status = place(o, n, keys, values, err);
    if (!status) {
        o->tokens = n;
        status = o->method->load(o, progress, err);
    }
    if (status) /* an empty context is always possible */
        fini_cross_clear(o, NULL);
    return status;
}

fin_status fin_cross_append(fin_cross *o, int64_t n, const double *keys, const double *values,
                            fin_error *err)
{
    FINI_NEED(err, o, !n || keys, !n || values);
    FINI_TRY(check_tokens(o, o->tokens, n, keys, values, err));
    FINI_TRY(place(o, n, keys, values, err));
    if (n == 0)
        return FIN_OK;
    FINI_TRY(o->method->append(o, n, err));
    o->tokens += n;
    return FIN_OK;
}

fin_status fin_cross_drop(fin_cross *o, int64_t n, fin_error *err)
{
    FINI_NEED(err, o);
    if (n < 0 || n > o->tokens)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld tokens to drop from a context that has %lld",
                         (long long)n, (long long)o->tokens);
    if (n == 0)
        return FIN_OK;
    if (n == o->tokens)
        return fini_cross_clear(o, err);
    fin_status status = o->method->drop(o, n, err);
    if (status)
        fini_cross_clear(o, NULL);
    return status;
}
