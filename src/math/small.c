/* Sums over blocks, softmax: see small.h. */
#include "math/small.h"

#include "kernel/kernel.h"
#include "kernel/rows.h"

#include <math.h>

void fini_add_tree(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to)
{
    fini_kernel_get()->rows->add_tree(blocks, n, parts, from, to);
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

/* One rotation in the plane (p, q) that makes A[p][q] zero, of the rows of V too. */
static void rotate(int n, double *A, double *V, int p, int q)
{
    double apq = A[p * n + q], half = (A[q * n + q] - A[p * n + p]) / (2 * apq);
    double t = (half < 0 ? -1 : 1) / (fabs(half) + hypot(1, half)), c = 1 / hypot(1, t), s = t * c;
    for (int i = 0; i < n; i++) {
        double x = A[i * n + p], y = A[i * n + q];
        A[i * n + p] = c * x - s * y;
        A[i * n + q] = s * x + c * y;
    }
    for (int i = 0; i < n; i++) {
        double x = A[p * n + i], y = A[q * n + i];
        A[p * n + i] = c * x - s * y;
        A[q * n + i] = s * x + c * y;
    }
    for (int i = 0; V && i < n; i++) {
        double x = V[p * n + i], y = V[q * n + i];
        V[p * n + i] = c * x - s * y;
        V[q * n + i] = s * x + c * y;
    }
    A[p * n + q] = A[q * n + p] = 0;
}

static void swap(double *a, double *b)
{
    double x = *a;
    *a = *b;
    *b = x;
}

void fini_eigen(int n, double *A, double *values, double *V)
{
    enum { SWEEPS = 60 }; /* a dozen are many: it converges quadratically */
    double norm = sqrt(fini_dot_in_order((int64_t)n * n, A, A));
    bool more = true;
    for (int i = 0; V && i < n * n; i++)
        V[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < SWEEPS && more; sweep++) {
        more = false;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++)
                if (fabs(A[p * n + q]) > 0x1p-60 * norm) {
                    rotate(n, A, V, p, q);
                    more = true;
                }
    }
    for (int i = 0; i < n; i++)
        values[i] = A[i * n + i];
    for (int i = 0; i < n; i++)
        for (int j = i; j > 0 && values[j - 1] > values[j]; j--) {
            swap(&values[j - 1], &values[j]);
            for (int c = 0; V && c < n; c++)
                swap(&V[(j - 1) * n + c], &V[j * n + c]);
        }
}
