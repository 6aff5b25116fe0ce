/* Sums over blocks, softmax: see small.h. */
#include "math/small.h"

#include "kernel/kernel.h"

#include <math.h>

/* level h = 1, 2, 4, ...: row(a) <- row(a) + row(a + h) for a = 0, 2h, 4h, ...; a few columns at a time
 * climb the whole tree, so that all levels but the first find them in the nearest cache. */
void fini_add_tree(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to)
{
    enum { COLUMNS = 32 };
    for (int64_t end; from < to; from = end) {
        end = fini_least(from + COLUMNS, to);
        for (int64_t h = 1; h < blocks; h *= 2)
            for (int64_t a = 0; a + h < blocks; a += 2 * h) {
                double *into = parts + a * n;
                const double *row = parts + (a + h) * n;
#pragma omp simd
                for (int64_t i = from; i < end; i++)
                    into[i] += row[i];
            }
    }
}

double fini_softmax_shift(int64_t n, double *x)
{
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    if (isinf(top))
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] == top ? 0 : x[i] != x[i] ? x[i] : -INFINITY;
    else
        for (int64_t i = 0; i < n; i++)
            x[i] -= top;
    return top;
}

/* Of exponentials relative to the one of `top`. */
static double normalise(int64_t n, double *x, double top, bool logarithm)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += x[i];
    for (int64_t i = 0; i < n; i++)
        x[i] /= total;
    return logarithm ? top + log(total) : 0;
}

double fini_softmax(int64_t n, double *x, bool logarithm)
{
    double top = fini_softmax_shift(n, x);
    fini_kernel_get()->exp(n, x, x);
    return normalise(n, x, top, logarithm);
}

double fini_softmax_libm(int64_t n, double *x, bool logarithm)
{
    double top = fini_softmax_shift(n, x);
    for (int64_t i = 0; i < n; i++)
        x[i] = exp(x[i]);
    return normalise(n, x, top, logarithm);
}
