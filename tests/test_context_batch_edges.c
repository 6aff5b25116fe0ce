/* Attention to many contexts at the edges: no tokens, no noise, rounding, numbers near the end of
 * their type, and questions that have no answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_context_batch_help.h"

static const char *const kernels[KERNELS] = {"linear", "polynomial", "exponential",
                                             "rbf",    "matern32",   "matern52"};

/* Two tokens, one query, one number in keys and values. */
static fin_status two(fin_cross_settings *s, double k0, double k1, double v0, double v1, double q,
                      double *out, double *variance, fin_error *err)
{
    const int64_t L[2] = {0, 2}, m[2] = {0, 1};
    const double keys[2] = {k0, k1}, values[2] = {v0, v1};
    fin_cross_batch b = {1, 1, 1, FIN_F64, L, m, keys, values, &q};
    return fin_cross_forward(s, &b, out, variance, err);
}

static void forward__at_the_edges(void **state)
{
    (void)state;
    fin_error err = {FIN_OK, ""};
    double out = 0, variance = 0;
    fin_cross_settings s = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    /* Scores of +-1e4, 1e300: all weight on one token, no overflow. */
    s.temperature = 1e-4;
    assert_int_equal(two(&s, 1, -1, 3, 5, 1, &out, NULL, &err), FIN_OK);
    assert_true(out == 3);
    s.temperature = 1e-100;
    assert_int_equal(two(&s, 1e100, -1e100, 3, 5, -1e100, &out, NULL, &err), FIN_OK);
    assert_true(out == 5);
    /* nw far from all tokens: the nearer one, although both covariances are 0 in a double. */
    s = cross_settings(FIN_CROSS_NW, FIN_KERNEL_RBF);
    s.scale = 1;
    assert_int_equal(two(&s, 0, 100, 3, 5, 1000, &out, NULL, &err), FIN_OK);
    assert_true(out == 5);
    s.kernel = FIN_KERNEL_MATERN32;
    assert_int_equal(two(&s, 0, 1000, 3, 5, 5000, &out, NULL, &err), FIN_OK);
    assert_true(out == 5);
    /* cme far from all tokens: the prior. */
    s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    s.level = 0;
    assert_int_equal(two(&s, 0, 1, 3, 5, 1e6, &out, &variance, &err), FIN_OK);
    assert_true(out == 0 && variance == s.prior);
    /* At a token without noise: its value, and no variance. */
    s.noise = 0;
    assert_int_equal(two(&s, 0, 2, 3, 5, 2, &out, &variance, &err), FIN_OK);
    assert_true(fabs(out - 5) < 1e-14 && variance >= 0 && variance < 1e-15);
    /* The same token twice, without noise: repaired by jitter. */
    assert_int_equal(two(&s, 2, 2, 5, 5, 2, &out, &variance, &err), FIN_OK);
    assert_true(fabs(out - 5) < 1e-10 && variance >= 0 && variance < 1e-10);
    /* The same key with other values: with noise their mean, shrunk. */
    s.noise = 1e-6;
    assert_int_equal(two(&s, 2, 2, 4, 6, 2, &out, NULL, &err), FIN_OK);
    assert_true(fabs(out - 5 / (1 + s.noise / (2 * s.prior))) <
                1e-9); /* 1/noise * 2^-53, times 9 */
}

/* Keys on a line, nearer to each other than rounding can tell: noise 0 needs a jitter, for matrices
 * of the kernels and for those in tiles. Values that a function of the prior has are met within the
 * noise that the jitter is; others are refused. */
static void forward__repairs_rounding(void **state)
{
    (void)state;
    const int64_t sizes[] = {40, 256, 257, 400}, one = 1;
    for (int i = 0; i < 4; i++) {
        int64_t L = sizes[i];
        contexts c = contexts_make(1, &L, &one, 1, 2, FIN_F64, 11);
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
        fin_error err = {FIN_OK, ""};
        double out[2];
        s.noise = s.level = 0;
        for (int64_t l = 0; l < L; l++) {
            c.keys[l] = (double)l / (double)L;
            c.values[2 * l] = 2 + cos(c.keys[l]);
            c.values[2 * l + 1] = 1e-6 * sin(c.keys[l]); /* a unit of its own */
        }
        c.queries[0] = 0.3712;
        forward_double(&s, &c.batch, out, NULL);
        assert_true(fabs(out[0] - 2 - cos(0.3712)) < 1e-4);
        assert_true(fabs(out[1] - 1e-6 * sin(0.3712)) < 1e-9);
        /* As from a drawn function, whose factor needed the jitter too; one context alone as well. */
        double *z = draw_numbers(L, 1e-6, 11, 9);
        for (int64_t l = 0; l < L; l++)
            c.values[2 * l + 1] += z[l];
        free(z);
        forward_double(&s, &c.batch, out, NULL);
        fin_cross *cross = NULL;
        assert_int_equal(fin_cross_create(&cross, &s, NULL, 1, 2, L, &err), FIN_OK);
        if (fin_cross_load(cross, L, c.keys, c.values, NULL, &err))
            fail_msg("%s", err.message);
        fin_cross_destroy(cross);
        c.values[2 * (L / 2)] += 0.1;
        assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_ERR_NUMERIC);
        assert_non_null(strstr(err.message, "positive noise"));
        contexts_free(&c);
    }
}

/* By features too, with a noise that is less than rounding. */
static void forward__repairs_rounding_of_features(void **state)
{
    (void)state;
    const int64_t L = 60, one = 1;
    contexts c = contexts_make(1, &L, &one, 3, 1, FIN_F64, 12);
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    double out, variance, slope[3 * 60] = {0}, dout = 1;
    s.noise = 1e-18, s.level = 0;
    for (int64_t l = 0; l < L; l++) { /* two of three columns say the same */
        c.keys[3 * l + 2] = c.keys[3 * l + 1];
        c.values[l] = c.keys[3 * l] + 2 * c.keys[3 * l + 1];
    }
    c.queries[2] = c.queries[1];
    forward_double(&s, &c.batch, &out, &variance);
    assert_true(fabs(out - c.queries[0] - 2 * c.queries[1]) < 1e-8);
    assert_true(variance >= 0 && variance < 1e-8);
    fin_cross_gradient g = {.values = slope};
    assert_int_equal(fin_cross_backward(&s, &c.batch, &dout, &g, NULL), FIN_OK);
    double sum = 0;
    for (int64_t l = 0; l < L; l++)
        sum += slope[l] * c.values[l];
    assert_true(fabs(sum - out) < 1e-8); /* out is linear in the values */
    contexts_free(&c);
}

/* Tokens of very different sizes are not rounding of each other. */
static void forward__keeps_small_tokens(void **state)
{
    (void)state;
    const int64_t L[2] = {0, 2}, m[2] = {0, 1};
    const double keys[4] = {1, 0, 0, 1e-9}, values[2] = {3, 5}, query[2] = {1, 2e-9};
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    fin_cross_batch b = {1, 2, 1, FIN_F64, L, m, keys, values, query};
    double out;
    s.noise = s.level = 0;
    forward_double(&s, &b, &out, NULL);
    assert_true(fabs(out - 13) < 1e-12);
}

/* Numbers near the end of their type: the answer, or a refusal, never an infinity. */
static void forward__near_overflow(void **state)
{
    (void)state;
    const int64_t L[2] = {0, 2}, m[2] = {0, 1};
    const float huge = 3e38f, half = 1e30f;
    fin_error err = {FIN_OK, ""};
    for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++)
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form += 2) {
            fin_cross_settings s = cross_settings(form, kernel);
            float keys[2] = {0, half}, values[2] = {3, 5}, query = half, out = 0;
            fin_cross_batch b = {1, 1, 1, FIN_F32, L, m, keys, values, &query};
            s.noise = 1e-6;
            s.level = 0;
            assert_int_equal(fin_cross_forward(&s, &b, &out, NULL, &err), FIN_OK);
            assert_true(fabsf(out - 5) < 1e-4f);
            query = huge; /* as far from either as can be said: their mean, or the prior's */
            assert_int_equal(fin_cross_forward(&s, &b, &out, NULL, &err), FIN_OK);
            assert_true(out == (form == FIN_CROSS_CME ? 0 : 4));
            double far[2] = {0, 1e200}, all[2] = {3, 5}, there = 1e200, answer;
            b = (fin_cross_batch){1, 1, 1, FIN_F64, L, m, far, all, &there};
            assert_int_equal(fin_cross_forward(&s, &b, &answer, NULL, &err), FIN_OK);
            assert_true(fabs(answer - 5) < 1e-4);
            float dk[2] = {0}, dq = 0, one = 1; /* nothing to be gained there */
            b = (fin_cross_batch){1, 1, 1, FIN_F32, L, m, keys, values, &query};
            fin_cross_gradient g = {.keys = dk, .queries = &dq};
            assert_int_equal(fin_cross_backward(&s, &b, &one, &g, &err), FIN_OK);
            assert_true(isfinite(dk[0]) && isfinite(dk[1]) && isfinite(dq));
        }
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
        fin_cross_settings s = cross_settings(form, FIN_KERNEL_RBF);
        float keys[2] = {0, 2.5f}, values[2] = {huge, huge}, query = 1.25f, out = 0;
        fin_cross_batch b = {1, 1, 1, FIN_F32, L, m, keys, values, &query};
        s.noise = 1e-6;
        fin_status status = fin_cross_forward(&s, &b, &out, NULL, &err);
        assert_true(status == FIN_ERR_NUMERIC ? strstr(err.message, "values") != NULL
                                              : isfinite(out));
    }
}

/* An empty context: the prior for cme; for the others a message that names it. */
static void forward__of_no_tokens(void **state)
{
    (void)state;
    const int64_t L[3] = {2, 0, 1}, m[3] = {1, 2, 1};
    double out[4], variance[4];
    fin_error err = {FIN_OK, ""};
    contexts c = contexts_make(3, L, m, 2, 1, FIN_F64, 5);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
        forward_double(&s, &c.batch, out, variance);
        for (int i = 1; i <= 2; i++) {
            double *q = c.queries + 2 * i,
                   want = s.prior * (double)plain_kernel(&s, 2, q, q) + s.level;
            assert_true(out[i] == 0 && fabs(variance[i] - want) < 1e-13 * want);
        }
    }
    fin_cross_settings s = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "context 1"));
    s.form = FIN_CROSS_NW;
    assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_ERR_ARGUMENT);
    c.query_offsets[2] = 1; /* no query either: fine */
    c.query_offsets[3] = 2;
    assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_OK);
    const int64_t zero[1] = {0};
    fin_cross_batch none = {0, 1, 1, FIN_F32, zero, zero, NULL, NULL, NULL};
    assert_int_equal(fin_cross_forward(&s, &none, NULL, NULL, &err), FIN_OK);
    contexts_free(&c);
}

static void forward__refuses_what_has_no_answer(void **state)
{
    (void)state;
    fin_error err = {FIN_OK, ""};
    double out;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    s.noise = 0;
    assert_int_equal(two(&s, 2, 2, 4, 6, 2, &out, NULL, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "tokens 0 and 1"));
    assert_non_null(strstr(err.message, "positive noise"));
    /* Keys nearly equal, values not: rounding leaves no matrix that says so. */
    assert_int_equal(two(&s, 2, 2 + 1e-9, 4, 6, 2, &out, NULL, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "positive noise"));
    s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_EXPONENTIAL);
    s.scale = 0.01;
    assert_int_equal(two(&s, 1, 2, 4, 6, 2, &out, NULL, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "larger scale"));
    s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    s.noise = 0, s.method = FIN_CROSS_PRIMAL, s.level = 1;
    assert_int_equal(two(&s, 1, 1, 4, 4, 2, &out, NULL, &err), FIN_ERR_NUMERIC);
    for (int kernel = FIN_KERNEL_LINEAR; kernel <= FIN_KERNEL_POLYNOMIAL; kernel++) {
        s = cross_settings(FIN_CROSS_NW, kernel);
        assert_int_equal(two(&s, 1, 1, 4, 6, 2, &out, NULL, &err), FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, kernels[kernel]));
        fin_error alone = {FIN_OK, ""};
        fin_cross *cross = NULL;
        assert_int_equal(fin_cross_create(&cross, &s, NULL, 1, 1, 2, &alone), FIN_ERR_ARGUMENT);
        assert_string_equal(alone.message, err.message);
    }
    s = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    s.temperature = 1e-100;
    assert_int_equal(two(&s, 1e200, -1e200, 3, 5, -1e200, &out, NULL, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "larger temperature"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward__at_the_edges),
        cmocka_unit_test(forward__repairs_rounding),
        cmocka_unit_test(forward__repairs_rounding_of_features),
        cmocka_unit_test(forward__keeps_small_tokens),
        cmocka_unit_test(forward__near_overflow),
        cmocka_unit_test(forward__of_no_tokens),
        cmocka_unit_test(forward__refuses_what_has_no_answer),
    };
    return cmocka_run_group_tests_name("attention_batch_edges", tests, NULL, NULL);
}
