/* Softmax: see small.h. */
#include "math/small.h"

#include "kernel/kernel.h"

#include <math.h>

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
