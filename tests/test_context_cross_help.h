/* Contexts for tests: random tokens, and the formulas by plain elimination in long double. */
#ifndef TEST_ATTENTION_CROSS_HELP_H
#define TEST_ATTENTION_CROSS_HELP_H

#include "finetti/context.h"
#include "finetti/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
    int64_t n, m, dk, dv;
    double *keys, *values, *queries, *answers; /* (n, dk), (n, dv), (m, dk), (m, dv) */
} sample;

static inline double *numbers(int64_t count)
{
    double *x = calloc((size_t)(count > 0 ? count : 1), sizeof *x);
    assert_non_null(x);
    return x;
}

static inline sample sample_make(int64_t n, int64_t m, int64_t dk, int64_t dv, uint64_t seed)
{
    sample s = {n, m, dk, dv, numbers(n * dk), numbers(n * dv), numbers(m * dk), numbers(m * dv)};
    fin_random_normals_f64(seed, FIN_STREAM_USER, 0, 0, n * dk, s.keys);
    fin_random_normals_f64(seed, FIN_STREAM_USER, 1, 0, n * dv, s.values);
    fin_random_normals_f64(seed, FIN_STREAM_USER, 2, 0, m * dk, s.queries);
    fin_random_normals_f64(seed, FIN_STREAM_USER, 3, 0, m * dv, s.answers);
    return s;
}

static inline void sample_free(sample *s)
{
    free(s->keys);
    free(s->values);
    free(s->queries);
    free(s->answers);
}

static inline fin_cross_settings cross_settings(int form, int kernel)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = form;
    s.kernel = kernel;
    return s;
}

static inline fin_cross *cross_make(const fin_cross_settings *settings, const sample *s,
                                    int64_t capacity, int64_t load)
{
    fin_cross *cross;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_cross_create(&cross, settings, NULL, s->dk, s->dv, capacity, &err);
    if (!status)
        status = fin_cross_load(cross, load, s->keys, s->values, NULL, &err);
    if (status)
        fail_msg("%s", err.message);
    return cross;
}

/* k(a, b) in long double, as finetti/math.h says. */
static inline long double naive_kernel(const fin_cross_settings *s, int64_t d, const double *a,
                                       const double *b)
{
    long double dot = 0, r2 = 0, r;
    for (int64_t c = 0; c < d; c++) {
        long double x = (long double)a[c] / s->scale, y = (long double)b[c] / s->scale;
        dot += x * y;
        r2 += (x - y) * (x - y);
    }
    r = sqrtl(r2);
    switch (s->kernel) {
    case FIN_KERNEL_LINEAR:
        return dot;
    case FIN_KERNEL_POLYNOMIAL:
        return powl(s->offset + dot, s->degree);
    case FIN_KERNEL_EXPONENTIAL:
        return expl(dot);
    case FIN_KERNEL_RBF:
        return expl(-r2 / 2);
    case FIN_KERNEL_MATERN32:
        return (1 + sqrtl(3) * r) * expl(-sqrtl(3) * r);
    default:
        return (1 + sqrtl(5) * r + 5 * r2 / 3) * expl(-sqrtl(5) * r);
    }
}

/* X <- A^-1 X by Gauss's elimination with pivoting; returns log |det A|. A (n, n), X (n, m). */
static inline long double naive_solve(int64_t n, long double *A, int64_t m, long double *X)
{
    long double logdet = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabsl(A[i * n + k]) > fabsl(A[p * n + k]))
                p = i;
        for (int64_t j = 0; j < n; j++) {
            long double t = A[k * n + j];
            A[k * n + j] = A[p * n + j];
            A[p * n + j] = t;
        }
        for (int64_t j = 0; j < m; j++) {
            long double t = X[k * m + j];
            X[k * m + j] = X[p * m + j];
            X[p * m + j] = t;
        }
        logdet += logl(fabsl(A[k * n + k]));
        for (int64_t i = 0; i < n; i++) {
            if (i == k)
                continue;
            long double f = A[i * n + k] / A[k * n + k];
            for (int64_t j = k; j < n; j++)
                A[i * n + j] -= f * A[k * n + j];
            for (int64_t j = 0; j < m; j++)
                X[i * m + j] -= f * X[k * m + j];
        }
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < m; j++)
            X[k * m + j] /= A[k * n + k];
    return logdet;
}

/* Conditioning of the joint Gaussian of values and function: mean (m, dv), variance (m). */
static inline void naive_cme(const fin_cross_settings *s, const sample *x, int64_t n, double *mean,
                             double *variance)
{
    long double *A = malloc(sizeof *A * (size_t)(n * n + 1));
    long double *X = malloc(sizeof *X * (size_t)(n * x->m + 1));
    long double *K = malloc(sizeof *K * (size_t)(n * x->m + 1));
    for (int64_t i = 0; i < n; i++) {
        const double *a = x->keys + i * x->dk;
        for (int64_t j = 0; j < n; j++)
            A[i * n + j] = s->prior * naive_kernel(s, x->dk, a, x->keys + j * x->dk) + s->level +
                           (i == j ? s->noise : 0);
        for (int64_t q = 0; q < x->m; q++)
            K[i * x->m + q] = X[i * x->m + q] =
                s->prior * naive_kernel(s, x->dk, a, x->queries + q * x->dk) + s->level;
    }
    naive_solve(n, A, x->m, X);
    for (int64_t q = 0; q < x->m; q++) {
        const double *query = x->queries + q * x->dk;
        long double rest = s->prior * naive_kernel(s, x->dk, query, query) + s->level;
        for (int64_t i = 0; i < n; i++)
            rest -= K[i * x->m + q] * X[i * x->m + q];
        variance[q] = (double)rest;
        for (int64_t c = 0; c < x->dv; c++) {
            long double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += X[i * x->m + q] * x->values[i * x->dv + c];
            mean[q * x->dv + c] = (double)sum;
        }
    }
    free(A);
    free(X);
    free(K);
}

static inline double worst(int64_t n, const double *a, const double *b)
{
    double result = 0;
    for (int64_t i = 0; i < n; i++) {
        double off = fabs(a[i] - b[i]);
        result = off <= result ? result : off; /* NaN stays */
    }
    return result;
}

#define assert_close(n, a, b, tolerance)                                                           \
    do {                                                                                           \
        double off_ = worst(n, a, b);                                                              \
        if (!(off_ <= (tolerance)))                                                                \
            fail_msg("%s and %s differ by %g, allowed is %g", #a, #b, off_, (double)(tolerance));  \
    } while (0)

#endif
