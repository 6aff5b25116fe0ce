/* Short ways to make tasks and batches for the tests. Include after cmocka.h. */
#ifndef TEST_TASK_HELP_H
#define TEST_TASK_HELP_H

#include "finetti/random.h"
#include "finetti/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct help_batch {
    int64_t n, m, d, *offsets, *location;
    fin_dtype dtype;
    void *tokens;
    double *y;
} help_batch;

static inline fin_task_settings help_settings(const char *kind, int64_t d, int64_t L)
{
    fin_task_settings s;
    memset(&s, 0, sizeof s);
    fin_settings_defaults(fin_task_kind_table(fin_task_find(kind)), &s, sizeof s);
    s.d = d;
    s.L = L;
    return s;
}

static inline fin_task *help_task(const char *kind, const fin_task_settings *s, uint64_t seed)
{
    fin_task *task;
    fin_error err = {FIN_OK, ""};
    if (fin_task_create(&task, fin_task_find(kind), s, NULL, seed, FIN_TASK_AMBIENT, &err))
        fail_msg("%s", err.message);
    return task;
}

static inline size_t help_size(fin_dtype dtype)
{
    return dtype == FIN_F32 ? 4 : 8;
}

static inline help_batch help_draw(const fin_task *task, uint64_t first, int64_t n, fin_dtype dtype)
{
    const fin_task_settings *s = fin_task_get_settings(task);
    help_batch b = {.n = n, .m = s->m, .d = s->d, .dtype = dtype};
    b.offsets = malloc((size_t)(n + 1) * sizeof *b.offsets);
    assert_int_equal(fin_task_offsets(task, first, n, b.offsets, NULL), FIN_OK);
    b.tokens = malloc((size_t)(b.offsets[n] * b.d) * help_size(dtype) + 1);
    b.y = malloc((size_t)n * sizeof *b.y + 1);
    b.location = malloc((size_t)(n * b.m) * sizeof *b.location + 1);
    assert_int_equal(
        fin_task_draw(task, first, n, dtype, b.offsets, b.tokens, b.y, b.location, NULL), FIN_OK);
    return b;
}

static inline void help_free(help_batch *b)
{
    free(b->offsets);
    free(b->tokens);
    free(b->y);
    free(b->location);
}

static inline fin_batch help_view(const help_batch *b)
{
    return (fin_batch){b->n, b->d, b->dtype, b->tokens, b->offsets};
}

/* Coordinate c of token `row`. */
static inline double help_at(const help_batch *b, int64_t row, int64_t c)
{
    return b->dtype == FIN_F32 ? (double)((const float *)b->tokens)[row * b->d + c]
                               : ((const double *)b->tokens)[row * b->d + c];
}

static inline double help_dot(const help_batch *b, int64_t row, const double *k)
{
    double sum = 0;
    for (int64_t c = 0; c < b->d; c++)
        sum += help_at(b, row, c) * k[c];
    return sum;
}

static inline double help_norm2(const help_batch *b, int64_t row)
{
    double sum = 0;
    for (int64_t c = 0; c < b->d; c++)
        sum += help_at(b, row, c) * help_at(b, row, c);
    return sum;
}

/* `count` (at most 4) orthonormal vectors of R^d: k*, v*, then others. */
static inline void help_frame(const fin_task *task, int count, double *frame)
{
    int64_t d = fin_task_get_settings(task)->d;
    fin_random r;
    fin_random_open(&r, 4711, 3000, 0);
    memcpy(frame, fin_task_k_star(task), (size_t)d * sizeof *frame);
    memcpy(frame + d, fin_task_v_star(task), (size_t)d * sizeof *frame);
    for (int j = 2; j < count; j++) {
        double *x = frame + j * d;
        fin_random_sphere(&r, d, x);
        for (int pass = 0; pass < 3; pass++) {
            double norm2 = 0;
            for (int i = 0; i < j; i++) {
                double dot = 0;
                for (int64_t c = 0; c < d; c++)
                    dot += x[c] * frame[i * d + c];
                for (int64_t c = 0; c < d; c++)
                    x[c] -= dot * frame[i * d + c];
            }
            for (int64_t c = 0; c < d; c++)
                norm2 += x[c] * x[c];
            for (int64_t c = 0; c < d; c++)
                x[c] /= sqrt(norm2);
        }
    }
}

#endif
