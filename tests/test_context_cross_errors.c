/* What is refused and in which words, what is repaired and said so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_context_cross_help.h"

static void assert_says(fin_status status, fin_status want, const fin_error *err, const char *word)
{
    if (status != want || !strstr(err->message, word))
        fail_msg("status '%s', message '%s' has no '%s'", fin_status_name(status), err->message,
                 word);
}

static fin_status create(const fin_cross_settings *s, int64_t dk, int64_t dv, int64_t capacity,
                         fin_error *err)
{
    fin_cross *cross;
    fin_status status = fin_cross_create(&cross, s, NULL, dk, dv, capacity, err);
    if (status)
        assert_null(cross);
    fin_cross_destroy(cross);
    return status;
}

static void create__rejects(void **state)
{
    (void)state;
    fin_error err;
    double bytes;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    assert_says(create(&s, 0, 1, 1, &err), FIN_ERR_ARGUMENT, &err, "from 1 to 2^31");
    assert_says(create(&s, 1, 0, 1, &err), FIN_ERR_ARGUMENT, &err, "from 1 to 2^31");
    assert_says(create(&s, 1, 1, 0, &err), FIN_ERR_ARGUMENT, &err, "from 1 to 2^31");
    assert_says(create(&s, 1, 1, INT64_MAX, &err), FIN_ERR_ARGUMENT, &err, "2^31");
    s.method = FIN_CROSS_PRIMAL;
    assert_says(create(&s, 1, 1, 10, &err), FIN_ERR_UNSUPPORTED, &err, "dual");
    s.kernel = FIN_KERNEL_POLYNOMIAL;
    s.degree = 12;
    assert_says(create(&s, 50, 1, 10, &err), FIN_ERR_UNSUPPORTED, &err, "lower degree");
    s.form = FIN_CROSS_NW;
    assert_says(create(&s, 1, 1, 10, &err), FIN_ERR_ARGUMENT, &err, "negative");
    s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    for (int method = FIN_CROSS_AUTO; method <= FIN_CROSS_DUAL; method++) {
        s.method = method;
        assert_says(create(&s, 3, 1, 1000000, &err), FIN_ERR_UNSUPPORTED, &err, "8e+12 bytes");
        assert_says(create(&s, 3, 1, 1000000, &err), FIN_ERR_UNSUPPORTED, &err,
                    "nystrom with landmarks, such as 1000");
        assert_int_equal(fin_cross_bytes(&s, 3, 1, 1000000, &bytes, &err), FIN_ERR_UNSUPPORTED);
    }
    s.kernel = FIN_KERNEL_LINEAR;
    assert_says(create(&s, 3, 1, 1000000, &err), FIN_ERR_UNSUPPORTED, &err, "primal");
    s.method = FIN_CROSS_AUTO;
    assert_int_equal(create(&s, 3, 1, 1000000, &err), FIN_OK);
    const double bad[] = {0, -1, NAN, INFINITY};
    fin_cross *cross;
    for (int i = 0; i < 4; i++) {
        double scales[2] = {1, bad[i]};
        assert_says(fin_cross_create(&cross, &s, scales, 2, 1, 5, &err), FIN_ERR_ARGUMENT, &err,
                    "column 1");
    }
}

/* Every number at, past and NaN of its limits. */
static void create__checks_settings(void **state)
{
    (void)state;
    for (int i = 0; i < fin_cross_table.count; i++) {
        const fin_field *f = &fin_cross_table.fields[i];
        if (f->type == FIN_TYPE_choice)
            continue;
        for (int side = 0; side < 3; side++) {
            fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
            double past = side == 0 ? f->lowest - fmax(1, fabs(f->lowest)) : 2 * f->highest + 1;
            void *at = (char *)&s + f->offset;
            if (f->type == FIN_TYPE_int64_t)
                *(int64_t *)at = (int64_t)past;
            else
                *(double *)at = side == 2 ? NAN : past;
            assert_int_equal(create(&s, 2, 1, 5, NULL), FIN_ERR_ARGUMENT);
            if (f->type == FIN_TYPE_int64_t)
                *(int64_t *)at = (int64_t)(side ? f->highest : f->lowest);
            else
                *(double *)at = side ? f->highest : f->lowest;
            assert_int_equal(create(&s, 2, 1, 5, NULL), FIN_OK);
        }
    }
}

static void tokens__must_be_finite(void **state)
{
    (void)state;
    fin_error err;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
        for (int i = 0; i < 3; i++) {
            fin_cross_settings s = cross_settings(form, FIN_KERNEL_RBF);
            sample x = sample_make(10, 3, 3, 2, 5);
            double mean[6], before[6], error[11];
            fin_cross *cross = cross_make(&s, &x, 10, 4);
            assert_int_equal(fin_cross_predict(cross, 3, x.queries, before, NULL, NULL, NULL, NULL),
                             FIN_OK);
            double key = x.keys[3 * 7 + 2];
            x.keys[3 * 7 + 2] = bad[i];
            assert_says(fin_cross_load(cross, 10, x.keys, x.values, NULL, &err), FIN_ERR_ARGUMENT,
                        &err, "token 7");
            assert_non_null(strstr(err.message, "key column 2"));
            assert_says(fin_cross_append(cross, 6, x.keys + 12, x.values + 8, &err),
                        FIN_ERR_ARGUMENT, &err, "token 3");
            x.keys[3 * 7 + 2] = key;
            x.values[2 * 5 + 1] = bad[i];
            assert_says(fin_cross_load(cross, 10, x.keys, x.values, NULL, &err), FIN_ERR_ARGUMENT,
                        &err, "value column 1");
            assert_says(fin_cross_append(cross, 7, x.keys, x.values, &err), FIN_ERR_ARGUMENT, &err,
                        "made for 10");
            x.queries[4] = bad[i];
            assert_says(fin_cross_predict(cross, 3, x.queries, mean, NULL, NULL, NULL, &err),
                        FIN_ERR_ARGUMENT, &err, "query 1");
            assert_says(fin_cross_prefix(cross, 3, x.queries, x.answers, error, NULL, NULL, &err),
                        FIN_ERR_ARGUMENT, &err, "query 1");
            x.queries[4] = 0.5;
            x.answers[3] = bad[i];
            assert_says(fin_cross_prefix(cross, 3, x.queries, x.answers, error, NULL, NULL, &err),
                        FIN_ERR_ARGUMENT, &err, "answer to query 1");
            /* the context is what it was */
            assert_int_equal(fin_cross_predict(cross, 1, x.queries, mean, NULL, NULL, NULL, NULL),
                             FIN_OK);
            assert_close(2, mean, before, 1e-13);
            assert_says(fin_cross_drop(cross, 5, &err), FIN_ERR_ARGUMENT, &err, "5 tokens to drop");
            fin_cross_destroy(cross);
            sample_free(&x);
        }
}

static void kernel__overflow_is_said(void **state)
{
    (void)state;
    fin_error err;
    double mean[1];
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_EXPONENTIAL);
    double keys[] = {1, 2, 40}, values[] = {1, 2, 3}, huge = 1e200;
    sample x = {3, 0, 1, 1, keys, values, NULL, NULL};
    fin_cross *cross = cross_make(&s, &x, 5, 2);
    assert_says(fin_cross_append(cross, 1, keys + 2, values, &err), FIN_ERR_NUMERIC, &err,
                "larger scale");
    assert_says(fin_cross_predict(cross, 1, keys + 2, mean, NULL, NULL, NULL, &err),
                FIN_ERR_NUMERIC, &err, "query 0");
    assert_int_equal(fin_cross_predict(cross, 1, keys, mean, NULL, NULL, NULL, &err), FIN_OK);
    fin_cross_destroy(cross);
    s.kernel = FIN_KERNEL_RBF;
    cross = cross_make(&s, &x, 5, 3);
    assert_says(fin_cross_append(cross, 1, &huge, values, &err), FIN_ERR_NUMERIC, &err,
                "standardise");
    fin_cross_destroy(cross);
}

/* ---- matrices at the edge -------------------------------------------------------------------- */

static void no_tokens__are_the_prior(void **state)
{
    (void)state;
    fin_error err;
    for (int kernel = 0; kernel < 6; kernel++)
        for (int method = FIN_CROSS_AUTO; method <= FIN_CROSS_NYSTROM; method++)
            for (int exact = 0; exact < 2; exact++) {
                fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
                s.method = method;
                s.level = 0.5;
                s.noise = exact ? 0 : 0.1;
                if (method == FIN_CROSS_PRIMAL && kernel > FIN_KERNEL_POLYNOMIAL)
                    continue;
                sample x = sample_make(3, 2, 2, 1, 6);
                double mean[2], variance[2], want[2], rest[2], weights[1], evidence;
                naive_cme(&s, &x, 0, want, rest);
                fin_cross *cross = cross_make(&s, &x, 40, 0);
                assert_int_equal(
                    fin_cross_predict(cross, 2, x.queries, mean, variance, weights, NULL, NULL),
                    FIN_OK);
                assert_close(2, mean, want, 0);
                assert_close(2, variance, rest, 1e-14);
                assert_int_equal(fin_cross_loo(cross, mean, variance, NULL, NULL), FIN_OK);
                if (!exact) {
                    assert_int_equal(fin_cross_evidence(cross, &evidence, NULL, NULL, NULL, NULL),
                                     FIN_OK);
                    assert_true(fabs(evidence) < 1e-14);
                }
                fin_cross_destroy(cross);
                sample_free(&x);
            }
    for (int form = FIN_CROSS_SOFTMAX; form <= FIN_CROSS_NW; form++) {
        fin_cross_settings s = cross_settings(form, FIN_KERNEL_RBF);
        sample x = sample_make(3, 2, 2, 1, 6);
        double mean[2], evidence;
        fin_cross *cross = cross_make(&s, &x, 4, 0);
        assert_says(fin_cross_predict(cross, 2, x.queries, mean, NULL, NULL, NULL, &err),
                    FIN_ERR_ARGUMENT, &err, "at least 1 token");
        assert_int_equal(fin_cross_load(cross, 1, x.keys, x.values, NULL, NULL), FIN_OK);
        assert_int_equal(fin_cross_predict(cross, 1, x.queries, mean, NULL, NULL, NULL, &err),
                         FIN_OK);
        assert_true(mean[0] == x.values[0]);
        assert_says(fin_cross_loo(cross, mean, NULL, NULL, &err), FIN_ERR_ARGUMENT, &err,
                    "at least 2 tokens");
        assert_says(fin_cross_evidence(cross, &evidence, NULL, NULL, NULL, &err),
                    FIN_ERR_UNSUPPORTED, &err, "form cme");
        fin_cross_destroy(cross);
        sample_free(&x);
    }
}

/* noise 0 interpolates; equal keys are consistent or refused by number. */
static void noise_0__interpolates_or_refuses(void **state)
{
    (void)state;
    fin_error err;
    fin_cross_info info;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_MATERN32);
    s.noise = 0;
    sample x = sample_make(40, 0, 2, 1, 7);
    double mean[40], variance[40], value = x.values[30];
    fin_cross *cross = cross_make(&s, &x, 60, 40);
    assert_int_equal(fin_cross_predict(cross, 40, x.keys, mean, variance, NULL, NULL, NULL),
                     FIN_OK);
    assert_close(40, mean, x.values, 1e-10);
    for (int i = 0; i < 40; i++)
        assert_true(variance[i] >= 0 && variance[i] < 1e-10);
    assert_says(fin_cross_append(cross, 1, x.keys + 6, x.values, &err), FIN_ERR_NUMERIC, &err,
                "tokens 3 and 40 have the same key");
    assert_int_equal(fin_cross_append(cross, 1, x.keys + 6, x.values + 3, &err), FIN_OK);
    fin_cross_get_info(cross, &info);
    assert_true(info.jitter > 0 && info.jitter < 1e-7 && info.tokens == 41);
    assert_int_equal(fin_cross_predict(cross, 40, x.keys, mean, NULL, NULL, NULL, NULL), FIN_OK);
    assert_close(40, mean, x.values, 1e-6);
    x.keys[60] = x.keys[8];
    x.keys[61] = x.keys[9];
    assert_says(fin_cross_load(cross, 40, x.keys, x.values, NULL, &err), FIN_ERR_NUMERIC, &err,
                "tokens 4 and 30 have the same key");
    fin_cross_get_info(cross, &info);
    assert_true(info.tokens == 0);
    x.values[30] = x.values[4];
    assert_int_equal(fin_cross_load(cross, 40, x.keys, x.values, NULL, &err), FIN_OK);
    fin_cross_get_info(cross, &info);
    assert_true(info.jitter > 0);
    x.values[30] = value;
    fin_cross_destroy(cross);
    s.noise = 0.1; /* with noise equal keys are nothing special */
    cross = cross_make(&s, &x, 60, 40);
    fin_cross_get_info(cross, &info);
    assert_true(info.jitter == 0);
    fin_cross_destroy(cross);
    sample_free(&x);
}

/* A jitter is there already when a token comes that it would average away, or when the value goes
 * beside which its error was small; and a column has its own unit. */
static void jitter__must_be_harmless(void **state)
{
    (void)state;
    fin_error err;
    fin_cross_info info;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    s.noise = 0;
    double keys[] = {5, 0, 1, 1 + 1e-9, 1e-7}, values[] = {1e8, 0, 1, 1, 1}, mean[2];
    sample x = {4, 0, 1, 1, keys, values, NULL, NULL};
    fin_cross *cross = cross_make(&s, &x, 9, 4);
    fin_cross_get_info(cross, &info);
    assert_true(info.jitter > 0);
    assert_int_equal(fin_cross_append(cross, 1, keys + 4, values + 4, &err), FIN_OK);
    assert_says(fin_cross_drop(cross, 1, &err), FIN_ERR_NUMERIC, &err, "positive noise");
    fin_cross_get_info(cross, &info);
    assert_int_equal(info.tokens, 0);
    assert_int_equal(fin_cross_load(cross, 3, keys + 1, values + 1, NULL, &err), FIN_OK);
    assert_says(fin_cross_append(cross, 1, keys + 4, values + 4, &err), FIN_ERR_NUMERIC, &err,
                "positive noise");
    fin_cross_get_info(cross, &info);
    assert_int_equal(info.tokens, 3);
    assert_int_equal(fin_cross_predict(cross, 2, keys + 1, mean, NULL, NULL, NULL, &err), FIN_OK);
    assert_close(2, mean, values + 1, 1e-6);
    fin_cross_destroy(cross);
    double pairs[] = {1e8, 0, 1e8, 0, 1e8, 1}, near[] = {0, 1, 1 + 1e-7};
    sample y = {3, 0, 1, 2, near, pairs, NULL, NULL};
    cross = cross_make(&s, &y, 3, 0);
    assert_says(fin_cross_load(cross, 3, near, pairs, NULL, &err), FIN_ERR_NUMERIC, &err,
                "positive noise");
    fin_cross_destroy(cross);
}

/* More tokens than features and no noise: no function fits (dual), least squares (primal). */
static void noise_0__linear(void **state)
{
    (void)state;
    fin_error err;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    s.noise = 0;
    s.method = FIN_CROSS_DUAL;
    sample x = sample_make(30, 4, 3, 1, 8);
    double mean[30], small[30], variance[30];
    fin_cross *cross = cross_make(&s, &x, 30, 3);
    assert_says(fin_cross_load(cross, 30, x.keys, x.values, NULL, &err), FIN_ERR_NUMERIC, &err,
                "positive noise");
    assert_int_equal(fin_cross_load(cross, 3, x.keys, x.values, NULL, &err), FIN_OK);
    assert_says(fin_cross_append(cross, 1, x.keys + 9, x.values + 3, &err), FIN_ERR_NUMERIC, &err,
                "token 3");
    assert_int_equal(fin_cross_predict(cross, 3, x.keys, mean, NULL, NULL, NULL, NULL), FIN_OK);
    assert_close(3, mean, x.values, 1e-10);
    fin_cross_destroy(cross);
    s.method = FIN_CROSS_PRIMAL;
    cross = cross_make(&s, &x, 30, 2);
    assert_says(fin_cross_predict(cross, 4, x.queries, mean, NULL, NULL, NULL, &err),
                FIN_ERR_NUMERIC, &err, "do not fix the 3 features");
    assert_says(fin_cross_loo(cross, mean, NULL, NULL, &err), FIN_ERR_NUMERIC, &err, "noise");
    assert_int_equal(fin_cross_append(cross, 28, x.keys + 6, x.values + 2, &err), FIN_OK);
    assert_int_equal(fin_cross_predict(cross, 4, x.queries, mean, variance, NULL, NULL, &err),
                     FIN_OK);
    assert_true(variance[0] == 0);
    assert_says(fin_cross_evidence(cross, mean, NULL, NULL, NULL, &err), FIN_ERR_NUMERIC, &err,
                "density");
    fin_cross_destroy(cross);
    s.noise = 1e-9;
    cross = cross_make(&s, &x, 30, 30);
    assert_int_equal(fin_cross_predict(cross, 4, x.queries, small, NULL, NULL, NULL, &err), FIN_OK);
    assert_close(4, mean, small, 1e-8);
    fin_cross_destroy(cross);
    sample_free(&x);
}

static void columns__may_be_constant(void **state)
{
    (void)state;
    for (int kernel = 0; kernel < 6; kernel++)
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
            fin_cross_settings s = cross_settings(form, kernel);
            if (form == FIN_CROSS_NW && kernel < FIN_KERNEL_EXPONENTIAL)
                continue;
            s.level = 0.3;
            sample x = sample_make(30, 4, 3, 2, 9);
            for (int i = 0; i < 30; i++)
                x.keys[3 * i + 1] = 0.7, x.values[2 * i] = 0;
            double mean[8], variance[8];
            fin_cross *cross = cross_make(&s, &x, 30, 30);
            assert_int_equal(
                fin_cross_predict(cross, 4, x.queries, mean, variance, NULL, NULL, NULL), FIN_OK);
            for (int i = 0; i < 8; i++)
                assert_true(isfinite(mean[i]) && variance[i] >= 0 && (i % 2 || mean[i] == 0));
            fin_cross_destroy(cross);
            sample_free(&x);
        }
}

/* All keys zero: the linear kernel knows nothing, and says so. */
static void keys__may_all_be_zero(void **state)
{
    (void)state;
    for (int method = FIN_CROSS_AUTO; method <= FIN_CROSS_NYSTROM; method++) {
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
        s.method = method;
        sample x = sample_make(30, 4, 3, 1, 9);
        double mean[30], variance[30], weights[120], evidence;
        memset(x.keys, 0, 90 * sizeof *x.keys);
        fin_cross *cross = cross_make(&s, &x, 30, 30);
        assert_int_equal(
            fin_cross_predict(cross, 4, x.queries, mean, variance, weights, NULL, NULL), FIN_OK);
        for (int i = 0; i < 4; i++) {
            const double *q = x.queries + 3 * i;
            double prior = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
            assert_true(mean[i] == 0 && fabs(variance[i] - prior) < 1e-13);
        }
        assert_int_equal(fin_cross_loo(cross, mean, variance, NULL, NULL), FIN_OK);
        assert_true(fabs(mean[3]) < 1e-13 && fabs(variance[3] - s.noise) < 1e-15);
        assert_int_equal(fin_cross_evidence(cross, &evidence, NULL, NULL, NULL, NULL), FIN_OK);
        assert_true(isfinite(evidence));
        fin_cross_destroy(cross);
        sample_free(&x);
    }
}

/* Tokens that nearly coincide, little noise, queries on and beside them. */
static void variance__is_never_negative(void **state)
{
    (void)state;
    const double noises[] = {1e-4, 1e-10, 1e-14, 0};
    for (int kernel = FIN_KERNEL_LINEAR; kernel < 6; kernel++)
        for (int i = 0; i < 4; i++)
            for (int nystrom = 0; nystrom < 2; nystrom++) {
                fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
                s.noise = noises[i];
                s.scale = 3;
                s.method = nystrom ? FIN_CROSS_NYSTROM : FIN_CROSS_DUAL;
                s.landmarks = 20;
                sample x = sample_make(200, 0, 2, 1, 10);
                double mean[200], variance[200];
                for (int l = 0; l < 200; l++) { /* in pairs; a smooth function */
                    for (int c = 0; c < 2 && l % 2; c++)
                        x.keys[2 * l + c] = x.keys[2 * l - 2 + c] + 1e-9 * x.keys[2 * l + c];
                    x.values[l] = x.keys[2 * l] - x.keys[2 * l + 1];
                }
                fin_cross *cross;
                fin_error err;
                assert_int_equal(fin_cross_create(&cross, &s, NULL, 2, 1, 200, NULL), FIN_OK);
                fin_status status = fin_cross_load(cross, 200, x.keys, x.values, NULL, &err);
                if (status)
                    assert_says(status, FIN_ERR_NUMERIC, &err, "noise");
                if (!status)
                    status =
                        fin_cross_predict(cross, 200, x.keys, mean, variance, NULL, NULL, &err);
                for (int l = 0; l < 200 && !status; l++)
                    assert_true(variance[l] >= 0 && isfinite(mean[l]));
                if (!status && !nystrom)
                    assert_close(200, mean, x.values, 1e-2);
                fin_cross_destroy(cross);
                sample_free(&x);
            }
}

static void null__is_destroyed(void **state)
{
    (void)state;
    fin_cross_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__rejects),
        cmocka_unit_test(create__checks_settings),
        cmocka_unit_test(tokens__must_be_finite),
        cmocka_unit_test(kernel__overflow_is_said),
        cmocka_unit_test(no_tokens__are_the_prior),
        cmocka_unit_test(noise_0__interpolates_or_refuses),
        cmocka_unit_test(jitter__must_be_harmless),
        cmocka_unit_test(noise_0__linear),
        cmocka_unit_test(columns__may_be_constant),
        cmocka_unit_test(keys__may_all_be_zero),
        cmocka_unit_test(variance__is_never_negative),
        cmocka_unit_test(null__is_destroyed),
    };
    return cmocka_run_group_tests_name("attention_cross_errors", tests, NULL, NULL);
}
