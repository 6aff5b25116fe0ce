/* Whole matrices of covariances: tiles, shared among threads. */
#include "math/gram.h"
#include "math/small.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_covariance
FIN_TABLE(, fin_covariance_table, "covariance", FIN_COVARIANCE_FIELDS);
#undef FIN_TABLE_STRUCT

enum { TILE = 64 };
#define MOST (INT64_C(1) << 40)

bool fini_covariance_positive(const fin_covariance *c)
{
    return c->kernel != FIN_KERNEL_LINEAR && c->kernel != FIN_KERNEL_POLYNOMIAL;
}

/* Rows i, ..., i + TILE - 1 up to the diagonal, where the tile goes through a block of its own. */
static void lower_rows(const fin_covariance *c, int64_t d, int64_t n, int64_t i, const double *a,
                       double *out, int64_t ld)
{
    double square[TILE * TILE];
    int64_t rows = fini_least(TILE, n - i);
    fini_covariance_tile(c, d, rows, a + i * d, i, a, out + i * ld, ld);
    fini_covariance_tile(c, d, rows, a + i * d, rows, a + i * d, square, TILE);
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + (i + r) * ld + i, square + r * TILE, (size_t)(r + 1) * sizeof *out);
}

void fini_covariance_lower(const fin_covariance *c, int64_t d, int64_t n, const double *a,
                           double *out, int64_t ld)
{
    int threads = n > TILE ? fin_threads_get() : 1;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t t = (n - 1) / TILE; t >= 0; t--) /* the longest rows first */
        lower_rows(c, d, n, t * TILE, a, out, ld);
}

static fin_status check(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                        const double *b, const double *out, fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_covariance_table, c, err));
    if (d < 1 || n < 0 || m < 0 || d > MOST || n > MOST / d || m > MOST / d || n > MOST ||
        (m > 0 && n > MOST / m))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "covariance: %lld and %lld keys of dimension %lld; the dimension must be "
                         "at least 1, the numbers of keys at least 0, and no array may have more "
                         "than 2^40 numbers",
                         (long long)n, (long long)m, (long long)d);
    if (n > 0 && m > 0 && (!a || !b || !out))
        return fini_fail(err, FIN_ERR_ARGUMENT, "covariance: the array %s is NULL",
                         !a   ? "a of keys"
                         : !b ? "b of keys"
                              : "out of results");
    return FIN_OK;
}

/* to = from / scale. */
static fin_status divide(const char *name, int64_t n, int64_t d, const double *from, double scale,
                         double *to, fin_error *err)
{
    for (int64_t t = 0; t < n * d; t++) {
        to[t] = from[t] / scale;
        if (!isfinite(to[t]))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "covariance: key %lld of %s has %g in column %lld, which divided by "
                             "the scale %g is not a finite number; leave such keys out",
                             (long long)(t / d), name, from[t], (long long)(t % d), scale);
    }
    return FIN_OK;
}

/* Copies the lower triangle to the upper one, in squares that stay in the cache. */
static void mirror(int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = 0; j <= i; j += TILE)
            for (int64_t r = i; r < fini_least(n, i + TILE); r++)
                for (int64_t s = j; s < fini_least(r, j + TILE); s++)
                    out[s * n + r] = out[r * n + s];
}

fin_status fin_covariance_matrix(const fin_covariance *covariance, int64_t d, int64_t n,
                                 const double *a, int64_t m, const double *b, double *out,
                                 fin_error *err)
{
    FINI_NEED(err, covariance);
    fin_status status = check(covariance, d, n, a, m, b, out, err);
    if (status || n == 0 || m == 0)
        return status;
    bool same = a == b && n == m;
    int64_t keys = same ? n : n + m;
    double *scaled = fini_alloc_array(keys, (size_t)d * sizeof *scaled), *other = scaled;
    if (!scaled)
        return fini_fail_memory(err, (size_t)keys * (size_t)d * sizeof *scaled,
                                "keys divided by their scale");
    status = divide("a", n, d, a, covariance->scale, scaled, err);
    if (!status && !same)
        status = divide("b", m, d, b, covariance->scale, other = scaled + n * d, err);
    if (!status && same) {
        fini_covariance_lower(covariance, d, n, scaled, out, n);
        mirror(n, out);
    } else if (!status) {
        int threads = n > TILE ? fin_threads_get() : 1;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t i = 0; i < n; i += TILE)
            fini_covariance_tile(covariance, d, fini_least(TILE, n - i), scaled + i * d, m, other,
                                 out + i * m, m);
    }
    fini_free(scaled);
    for (int64_t t = 0; !status && t < n * m; t++)
        if (!isfinite(out[t]))
            status = fini_fail(err, FIN_ERR_NUMERIC,
                               "covariance: the value for key %lld of a and key %lld of b is too "
                               "large for a number; a scale above %g usually helps",
                               (long long)(t / m), (long long)(t % m), covariance->scale);
    return status;
}
