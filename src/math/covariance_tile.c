/* Tiles of covariances, of their logarithms, and the diagonal.
 *
 * A tile is made in blocks that stay in the cache: inner products or squared distances first
 * (kernel/pairs.h, times a factor that the kernel wants), then one vectorised pass over them. What
 * that gives:
 *   - k(a, b) depends on a and b only, to the last bit: not on the tile, nor on its place there,
 *     and k(a, b) is k(b, a);
 *   - k(a, a) is exactly 1 for the functions of a - b;
 *   - distances are sums of squared differences, relatively accurate to d/2 + 2 units of rounding
 *     however near to each other or far from the origin the keys are. All three functions of a - b
 *     are smooth in r^2 down to r = 0, Matern's too, so the root there costs nothing. */
#include "kernel/kernel.h"
#include "kernel/pairs.h"
#include "math/gram.h"
#include "math/small.h"

#include <math.h>

enum { BLOCK_ROWS = 64, BLOCK_COLUMNS = 256 };

static bool stationary(const fin_covariance *c)
{
    return c->kernel >= FIN_KERNEL_RBF;
}

/* What transform() and take_log() want the products or squared distances multiplied by. */
static double factor_of(const fin_covariance *c)
{
    return c->kernel == FIN_KERNEL_RBF        ? -0.5
           : c->kernel == FIN_KERNEL_MATERN32 ? 3
           : c->kernel == FIN_KERNEL_MATERN52 ? 5
                                              : 1;
}

/* Squares of the base are multiplied where the degree has a bit: the same few roundings for all. */
static double power(double x, int64_t degree)
{
    double y = 1;
    for (; degree > 1; degree >>= 1, x *= x)
        if (degree & 1)
            y *= x;
    return degree ? y * x : y;
}

static void transform(const fin_covariance *c, int64_t n, double *x)
{
    switch (c->kernel) {
    case FIN_KERNEL_POLYNOMIAL:
        for (int64_t j = 0; j < n; j++)
            x[j] = power(c->offset + x[j], c->degree);
        break;
    case FIN_KERNEL_EXPONENTIAL:
    case FIN_KERNEL_RBF:
        fini_kernel_get()->exp(n, x, x);
        break;
    case FIN_KERNEL_MATERN32:
        fini_pairs_get()->matern32(n, x, x);
        break;
    case FIN_KERNEL_MATERN52:
        fini_pairs_get()->matern52(n, x, x);
        break;
    }
}

/* log k; of a - b finite for all finite keys: distances end at 1e150. A NaN stays one. At most
 * BLOCK_COLUMNS numbers. */
static void take_log(const fin_covariance *c, int64_t n, double *x)
{
    double s[BLOCK_COLUMNS];
    bool is52 = c->kernel == FIN_KERNEL_MATERN52;
    if (c->kernel == FIN_KERNEL_EXPONENTIAL)
        return;
    if (c->kernel == FIN_KERNEL_RBF) {
        for (int64_t j = 0; j < n; j++)
            x[j] = x[j] < -1e300 ? -1e300 : x[j];
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] = sqrt(x[j] > 1e300 ? 1e300 : x[j]);
        x[j] = is52 ? s[j] + s[j] * s[j] / 3 : s[j];
    }
    fini_kernel_get()->log1p(n, x, x);
    for (int64_t j = 0; j < n; j++)
        x[j] -= s[j];
}

static void tile(const fin_covariance *c, void (*finish)(const fin_covariance *, int64_t, double *),
                 int64_t d, int64_t n, const double *a, int64_t m, const double *b, double *out,
                 int64_t ld)
{
    const fini_pairs *pairs = fini_pairs_get();
    for (int64_t i = 0; i < n; i += BLOCK_ROWS)
        for (int64_t j = 0; j < m; j += BLOCK_COLUMNS) {
            int64_t rows = fini_least(BLOCK_ROWS, n - i),
                    columns = fini_least(BLOCK_COLUMNS, m - j);
            double *to = out + i * ld + j;
            (stationary(c) ? pairs->squares : pairs->dots)(d, rows, a + i * d, columns, b + j * d,
                                                           factor_of(c), to, ld);
            for (int64_t r = 0; r < rows; r++)
                finish(c, columns, to + r * ld);
        }
}

void fini_covariance_tile(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                          const double *b, double *out, int64_t ld)
{
    tile(c, transform, d, n, a, m, b, out, ld);
}

void fini_covariance_logs(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                          const double *b, double *out, int64_t ld)
{
    tile(c, take_log, d, n, a, m, b, out, ld);
}

void fini_covariance_diagonal(const fin_covariance *c, int64_t d, int64_t n, const double *a,
                              double *out)
{
    for (int64_t i = 0; i < n; i++) {
        const double *row = a + i * d;
        out[i] = 0;
        if (stationary(c)) /* 0, but NaN where a key is not finite, as in a tile */
            for (int64_t k = 0; k < d; k++)
                out[i] += row[k] - row[k];
        else
            fini_pairs_get()->dots(d, 1, row, 1, row, 1, out + i, 1);
    }
    transform(c, n, out);
}
