/* Encoders whose matrices go through the kernels' own products (sides are whole panels): loss,
 * answers and every gradient in float against the same in double, which goes through BLAS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/encoder.h"
#include "finetti/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9, INPUTS = 3, MOST = 9 * 37 };

typedef struct result {
    double loss, answers[MOST], *gradient;
} result;

static void pass(const fin_encoder *encoder, const fin_sequences *sequences, const double *targets,
                 fin_dtype dtype, result *r)
{
    fin_error err = {0};
    fin_pass p = {.dtype = dtype, .gradient = r->gradient};
    p.targets[0] = targets;
    p.answers[0] = r->answers;
    if (fin_encoder_pass(encoder, sequences, &p, &err))
        fail_msg("%s", err.message);
    r->loss = p.loss;
}

/* Errors of float sums of up to a few hundred terms: 1e-5 of the largest number of each tensor. */
static void compare(const fin_encoder *encoder, const result *got, const result *want)
{
    fin_tensor tensors[64];
    int64_t count = fin_encoder_tensors(encoder, tensors, 64), at = 0;
    assert_true(count <= 64);
    assert_true(fabs(got->loss - want->loss) < 1e-5 * want->loss);
    for (int64_t t = 0; t < count; t++) {
        int64_t size = 1;
        double most = 0, error = 0;
        for (int i = 0; i < tensors[t].ndim; i++)
            size *= tensors[t].shape[i];
        for (int64_t i = at; i < at + size; i++) {
            most = fmax(most, fabs(want->gradient[i]));
            error = fmax(error, fabs(got->gradient[i] - want->gradient[i]));
        }
        if (!(error <= 1e-5 * most))
            fail_msg("%s: off by %g of %g", tensors[t].name, error, most);
        at += size;
    }
    assert_true(at == fin_encoder_parameters(encoder));
}

static void panels__near_double(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{16, 48, 1}, {32, 0, 2}, {48, 16, 3}, {32, 64, 2}};
    static float tokens[MOST * INPUTS];
    static double normals[MOST * INPUTS], targets[MOST];
    static uint8_t hidden[MOST];
    int64_t offsets[N + 1] = {0};
    for (int i = 0; i < N; i++)
        offsets[i + 1] = offsets[i] + 1 + 4 * i + i % 3;
    fin_random_normals_f64(3, 2200, 0, 0, offsets[N] * INPUTS, normals);
    fin_random_normals_f64(3, 2200, 1, 0, offsets[N], targets);
    for (int64_t i = 0; i < offsets[N] * INPUTS; i++)
        tokens[i] = (float)normals[i];
    for (int64_t i = 0; i < offsets[N]; i++)
        hidden[i] = i % 5 == 2;
    fin_sequences sequences = {N, offsets, tokens, hidden};
    for (int c = 0; c < 4; c++) {
        fin_encoder_settings settings;
        fin_encoder_shape shape = {.inputs = INPUTS, .values = 1, .heads = 1};
        fin_encoder *encoder;
        static result got, want;
        fin_settings_defaults(&fin_encoder_table, &settings, sizeof settings);
        settings.width = shapes[c][0];
        settings.hidden = shapes[c][1];
        settings.heads = shapes[c][2];
        shape.head[0] = (fin_head){"value", FIN_HEAD_VALUE, FIN_HEAD_TOKENS, 1, 1};
        assert_int_equal(fin_encoder_create(&encoder, &settings, &shape, 5, NULL), FIN_OK);
        size_t bytes = (size_t)fin_encoder_parameters(encoder) * sizeof(double);
        got.gradient = malloc(bytes);
        want.gradient = malloc(bytes);
        pass(encoder, &sequences, targets, FIN_F32, &got);
        pass(encoder, &sequences, targets, FIN_F64, &want);
        compare(encoder, &got, &want);
        for (int64_t i = 0; i < offsets[N]; i++)
            assert_true(fabs(got.answers[i] - want.answers[i]) < 1e-5);
        free(got.gradient);
        free(want.gradient);
        fin_encoder_destroy(encoder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels__near_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
