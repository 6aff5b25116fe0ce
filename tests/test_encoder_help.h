/* Encoders and sequences for the tests of the encoder: small, drawn from a seed, with ragged
 * lengths, hidden tokens, and targets for every head, some of them missing. */
#ifndef TEST_ENCODER_HELP_H
#define TEST_ENCODER_HELP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "finetti/encoder.h"
#include "finetti/random.h"

static const fin_head head_value = {"value", FIN_HEAD_VALUE, FIN_HEAD_TOKENS, 2, 1};
static const fin_head head_gauss = {"gauss", FIN_HEAD_GAUSSIAN, FIN_HEAD_TOKENS, 1, 0.7};
static const fin_head head_label = {"label", FIN_HEAD_CLASSES, FIN_HEAD_POOLED, 3, 0.5};
static const fin_head head_whole = {"whole", FIN_HEAD_GAUSSIAN, FIN_HEAD_POOLED, 2, 0.3};

static inline fin_encoder_settings small_settings(void)
{
    fin_encoder_settings s;
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    s.width = 8;
    s.heads = 2;
    s.hidden = 12;
    s.longest = 9;
    return s;
}

static inline fin_encoder_shape small_shape(void)
{
    fin_encoder_shape shape = {.inputs = 5, .values = 2, .heads = 4};
    shape.head[0] = head_value;
    shape.head[1] = head_gauss;
    shape.head[2] = head_label;
    shape.head[3] = head_whole;
    return shape;
}

/* An encoder whose parameters are all away from what they start as, so that a gradient that is
 * wrong by a factor of a bias or of a norm's weight is noticed. */
static inline fin_encoder *make_encoder(const fin_encoder_settings *s,
                                        const fin_encoder_shape *shape, uint64_t seed)
{
    fin_encoder *o;
    fin_error err = {FIN_OK, ""};
    if (fin_encoder_create(&o, s, shape, seed, &err))
        fail_msg("%s", err.message);
    int64_t n = fin_encoder_parameters(o);
    float *w = fin_encoder_weights(o), *more = malloc((size_t)n * sizeof *more);
    assert_non_null(more);
    fin_random_normals_f32(seed, FIN_STREAM_USER, 1, 0, n, more);
    for (int64_t i = 0; i < n; i++)
        w[i] += 0.1f * more[i];
    free(more);
    return o;
}

/* A parameter by its name, to be changed. */
static inline float *tensor(fin_encoder *o, const char *name)
{
    fin_tensor tensors[64];
    int64_t n = fin_encoder_tensors(o, tensors, 64);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return fin_encoder_weights(o) +
                   ((const float *)tensors[i].data - fin_encoder_weights(o));
    fail_msg("no tensor %s", name);
    return NULL;
}

typedef struct sample {
    fin_sequences s;
    int64_t *offsets, tokens;
    float *data;
    uint8_t *hidden;
    double *targets[FIN_HEADS_MOST];
} sample;

/* n sequences of 1 .. longest tokens. The first token of a sequence is never hidden if there are
 * more; sequence 0 has one token, sequence 1 is all hidden. */
static inline sample make_sample(const fin_encoder_shape *shape, int64_t n, int64_t longest,
                                 uint64_t seed)
{
    sample a = {0};
    fin_random r;
    fin_random_open(&r, seed, FIN_STREAM_USER + 1, 0);
    a.offsets = calloc((size_t)n + 1, sizeof *a.offsets);
    assert_non_null(a.offsets);
    for (int64_t i = 0; i < n; i++)
        a.offsets[i + 1] = a.offsets[i] + (i ? 1 + fin_random_below(&r, longest) : 1);
    int64_t rows = a.tokens = a.offsets[n];
    a.data = malloc((size_t)(rows * shape->inputs + 1) * sizeof *a.data);
    a.hidden = calloc((size_t)rows + 1, 1);
    assert_non_null(a.data);
    assert_non_null(a.hidden);
    for (int64_t i = 0; i < rows * shape->inputs; i++)
        a.data[i] = (float)fin_random_normal(&r);
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = a.offsets[i]; l < a.offsets[i + 1]; l++)
            a.hidden[l] = i == 1 || (l > a.offsets[i] && fin_random_below(&r, 3) == 0);
    for (int h = 0; h < (int)shape->heads; h++) {
        const fin_head *head = &shape->head[h];
        int64_t m = fin_head_targets(head), count = head->where == FIN_HEAD_TOKENS ? rows : n;
        a.targets[h] = malloc((size_t)(count * m + 1) * sizeof(double));
        assert_non_null(a.targets[h]);
        int64_t absent = 0;
        for (int64_t i = 0; i < count * m; i++) {
            a.targets[h][i] = head->kind == FIN_HEAD_CLASSES
                                  ? (double)fin_random_below(&r, head->size)
                                  : fin_random_normal(&r);
            absent = i % m == 0 ? fin_random_below(&r, 4) == 0 : absent;
            if (absent || (m > 1 && fin_random_below(&r, 4) == 0))
                a.targets[h][i] = NAN; /* a whole target, or one of its numbers */
        }
    }
    a.s = (fin_sequences){n, a.offsets, a.data, a.hidden};
    return a;
}

static inline void free_sample(sample *a)
{
    free(a->offsets);
    free(a->data);
    free(a->hidden);
    for (int h = 0; h < FIN_HEADS_MOST; h++)
        free(a->targets[h]);
}

static inline double *numbers(int64_t n)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

static inline fin_pass make_pass(const sample *a, fin_dtype dtype)
{
    fin_pass pass = {.dtype = dtype};
    memcpy(pass.targets, a->targets, sizeof pass.targets);
    return pass;
}

static inline void run_pass(const fin_encoder *o, const fin_sequences *s, fin_pass *pass)
{
    fin_error err = {FIN_OK, ""};
    if (fin_encoder_pass(o, s, pass, &err))
        fail_msg("%s", err.message);
}

#endif
