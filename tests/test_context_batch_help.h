/* Ragged batches of contexts, and attention to them by the formulas, in long double. Include after
 * cmocka.h. */
#ifndef TEST_ATTENTION_BATCH_HELP_H
#define TEST_ATTENTION_BATCH_HELP_H

#include "finetti/context.h"
#include "finetti/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 6 };

typedef struct contexts {
    fin_cross_batch batch;
    int64_t *offsets, *query_offsets;
    double *keys, *values, *queries; /* exactly what the batch has */
    float *keys_f, *values_f, *queries_f;
} contexts;

static inline double *draw_numbers(int64_t count, double size, uint64_t seed, uint64_t which)
{
    double *x = malloc((size_t)(count + 1) * sizeof *x);
    fin_random_normals_f64(seed, 4100, which, 0, count, x);
    for (int64_t i = 0; i < count; i++)
        x[i] *= size;
    return x;
}

/* In float the doubles are rounded too. */
static inline float *as_float(int64_t count, double *x, fin_dtype dtype)
{
    float *f = malloc((size_t)(count + 1) * sizeof *f);
    for (int64_t i = 0; i < count; i++) {
        f[i] = (float)x[i];
        x[i] = dtype == FIN_F32 ? (double)f[i] : x[i];
    }
    return f;
}

static inline contexts contexts_make(int64_t n, const int64_t *lengths, const int64_t *asked,
                                     int64_t dk, int64_t dv, fin_dtype dtype, uint64_t seed)
{
    contexts c = {0};
    c.offsets = calloc((size_t)n + 1, sizeof *c.offsets);
    c.query_offsets = calloc((size_t)n + 1, sizeof *c.offsets);
    for (int64_t i = 0; i < n; i++) {
        c.offsets[i + 1] = c.offsets[i] + lengths[i];
        c.query_offsets[i + 1] = c.query_offsets[i] + asked[i];
    }
    int64_t tokens = c.offsets[n], queries = c.query_offsets[n];
    c.keys = draw_numbers(tokens * dk, 0.8, seed, 0);
    c.values = draw_numbers(tokens * dv, 1, seed, 1);
    c.queries = draw_numbers(queries * dk, 0.8, seed, 2);
    c.keys_f = as_float(tokens * dk, c.keys, dtype);
    c.values_f = as_float(tokens * dv, c.values, dtype);
    c.queries_f = as_float(queries * dk, c.queries, dtype);
    bool f = dtype == FIN_F32;
    c.batch = (fin_cross_batch){n,
                                dk,
                                dv,
                                dtype,
                                c.offsets,
                                c.query_offsets,
                                f ? (void *)c.keys_f : c.keys,
                                f ? (void *)c.values_f : c.values,
                                f ? (void *)c.queries_f : c.queries};
    return c;
}

static inline void contexts_free(contexts *c)
{
    free(c->offsets);
    free(c->query_offsets);
    free(c->keys);
    free(c->values);
    free(c->queries);
    free(c->keys_f);
    free(c->values_f);
    free(c->queries_f);
}

static inline fin_cross_settings cross_settings(int form, int kernel)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.form = form;
    s.kernel = kernel;
    s.scale = 1.3;
    s.degree = 3;
    s.offset = 4; /* far from a sum of weights that is zero */
    s.temperature = 0.7;
    s.noise = 0.2;
    s.prior = 1.7;
    s.level = 0.3;
    return s;
}

/* The six formulas. */
static inline long double plain_kernel(const fin_cross_settings *s, int64_t d, const double *a,
                                       const double *b)
{
    long double dot = 0, square = 0, scale = s->scale;
    for (int64_t i = 0; i < d; i++) {
        long double x = a[i] / scale, y = b[i] / scale;
        dot += x * y;
        square += (x - y) * (x - y);
    }
    long double r = sqrtl(square), t3 = sqrtl(3) * r, t5 = sqrtl(5) * r;
    switch (s->kernel) {
    case FIN_KERNEL_LINEAR:
        return dot;
    case FIN_KERNEL_POLYNOMIAL:
        return powl(s->offset + dot, s->degree);
    case FIN_KERNEL_EXPONENTIAL:
        return expl(dot);
    case FIN_KERNEL_RBF:
        return expl(-square / 2);
    case FIN_KERNEL_MATERN32:
        return (1 + t3) * expl(-t3);
    default:
        return (1 + t5 + 5 * square / 3) * expl(-t5);
    }
}

/* A x = b for `columns` right hand sides, by elimination with pivots; b becomes x. */
static inline void plain_solve(int64_t n, long double *A, int64_t columns, long double *b)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            best = fabsl(A[i * n + k]) > fabsl(A[best * n + k]) ? i : best;
        for (int64_t j = 0; j < n; j++) {
            long double swap = A[k * n + j];
            A[k * n + j] = A[best * n + j];
            A[best * n + j] = swap;
        }
        for (int64_t j = 0; j < columns; j++) {
            long double swap = b[k * columns + j];
            b[k * columns + j] = b[best * columns + j];
            b[best * columns + j] = swap;
        }
        for (int64_t i = 0; i < n; i++) {
            long double f = i == k ? 0 : A[i * n + k] / A[k * n + k];
            for (int64_t j = k; j < n && f != 0; j++)
                A[i * n + j] -= f * A[k * n + j];
            for (int64_t j = 0; j < columns && f != 0; j++)
                b[i * columns + j] -= f * b[k * columns + j];
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < columns; j++)
            b[i * columns + j] /= A[i * n + i];
}

/* Weights of tokens for the queries of context i, w (L, m); variance (m) for cme. */
static inline void plain_cme(const fin_cross_settings *s, const contexts *c, int64_t i,
                             long double *w, double *variance)
{
    int64_t L = c->offsets[i + 1] - c->offsets[i], d = c->batch.dk;
    int64_t m = c->query_offsets[i + 1] - c->query_offsets[i];
    const double *keys = c->keys + c->offsets[i] * d, *asked = c->queries + c->query_offsets[i] * d;
    long double *A = malloc((size_t)(L * L + 1) * sizeof *A);
    long double *k = malloc((size_t)(L * m + 1) * sizeof *k);
    for (int64_t l = 0; l < L; l++) {
        for (int64_t q = 0; q < m; q++)
            k[l * m + q] = w[l * m + q] =
                s->prior * plain_kernel(s, d, asked + q * d, keys + l * d) + s->level;
        for (int64_t j = 0; j < L; j++)
            A[l * L + j] = s->prior * plain_kernel(s, d, keys + l * d, keys + j * d) + s->level +
                           (l == j ? s->noise : 0);
    }
    plain_solve(L, A, m, w);
    for (int64_t q = 0; q < m; q++) {
        long double left = s->prior * plain_kernel(s, d, asked + q * d, asked + q * d) + s->level;
        for (int64_t l = 0; l < L; l++)
            left -= w[l * m + q] * k[l * m + q];
        variance[q] = (double)left;
    }
    free(A);
    free(k);
}

static inline void plain_rows(const fin_cross_settings *s, const contexts *c, int64_t i,
                              long double *w)
{
    int64_t L = c->offsets[i + 1] - c->offsets[i], d = c->batch.dk;
    int64_t m = c->query_offsets[i + 1] - c->query_offsets[i];
    const double *keys = c->keys + c->offsets[i] * d, *asked = c->queries + c->query_offsets[i] * d;
    for (int64_t q = 0; q < m; q++) {
        long double sum = 0;
        for (int64_t l = 0; l < L; l++) {
            long double dot = 0;
            for (int64_t j = 0; j < d; j++)
                dot += (long double)asked[q * d + j] * keys[l * d + j];
            sum += w[l * m + q] = s->form == FIN_CROSS_SOFTMAX
                                      ? expl(dot / s->temperature) /* long double has the range */
                                      : plain_kernel(s, d, asked + q * d, keys + l * d);
        }
        for (int64_t l = 0; l < L; l++)
            w[l * m + q] /= sum;
    }
}

/* out (queries, dv) and variance (queries). */
static inline void plain_forward(const fin_cross_settings *s, const contexts *c, double *out,
                                 double *variance)
{
    int64_t dv = c->batch.dv;
    for (int64_t i = 0; i < c->batch.n; i++) {
        int64_t first = c->query_offsets[i], m = c->query_offsets[i + 1] - first;
        int64_t token = c->offsets[i], L = c->offsets[i + 1] - token;
        long double *w = malloc((size_t)(L * m + 1) * sizeof *w);
        if (s->form == FIN_CROSS_CME)
            plain_cme(s, c, i, w, variance + first);
        else
            plain_rows(s, c, i, w);
        for (int64_t q = 0; q < m; q++)
            for (int64_t j = 0; j < dv; j++) {
                long double sum = 0;
                for (int64_t l = 0; l < L; l++)
                    sum += w[l * m + q] * c->values[(token + l) * dv + j];
                out[(first + q) * dv + j] = (double)sum;
            }
        free(w);
    }
}

/* The library's answer in double; fails the test if it does not come. */
static inline void forward_double(const fin_cross_settings *s, const fin_cross_batch *b,
                                  double *out, double *variance)
{
    int64_t queries = b->query_offsets[b->n];
    float *f = malloc((size_t)(queries * (b->dv + 1) + 1) * sizeof *f), *fv = f + queries * b->dv;
    bool small = b->dtype == FIN_F32;
    fin_error err = {FIN_OK, ""};
    if (fin_cross_forward(s, b, small ? (void *)f : out,
                          !variance ? NULL
                          : small   ? (void *)fv
                                    : variance,
                          &err))
        fail_msg("%s", err.message);
    for (int64_t i = 0; small && i < queries * b->dv; i++)
        out[i] = (double)f[i];
    for (int64_t i = 0; small && variance && i < queries; i++)
        variance[i] = (double)fv[i];
    free(f);
}

#endif
