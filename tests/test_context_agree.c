/* One context alone, many at once and the families decide alike: which keys are equal, which jitter
 * an answer bears; and what was tried on the way to an answer leaves no trace in the error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/family.h"
#include "test_context_batch_help.h"

/* What `count` tokens come to: loaded and asked, appended, in a batch (of either type), as values of
 * a process. */
enum { LOADED, APPENDED, BATCHED, FLOAT, PROCESS, WAYS };
static const char *const ways[WAYS] = {"load", "append", "forward", "forward in float", "process"};

typedef struct tokens {
    int64_t count, dk, dv;
    const double *keys, *values;
    int kernel, method;
    double noise;
} tokens;

static fin_cross_settings settings_of(const tokens *t)
{
    fin_cross_settings s;
    fin_settings_defaults(&fin_cross_table, &s, sizeof s);
    s.kernel = t->kernel;
    s.method = t->method;
    s.noise = t->noise;
    s.level = 0;
    s.scale = s.prior = 1;
    s.landmarks = 100;
    return s;
}

static fin_status by_cross(const tokens *t, bool append, fin_error *err)
{
    fin_cross_settings s = settings_of(t);
    fin_cross *cross;
    int64_t first = append ? t->count - 1 : t->count;
    assert_int_equal(fin_cross_create(&cross, &s, NULL, t->dk, t->dv, t->count, NULL), FIN_OK);
    fin_status status = fin_cross_load(cross, first, t->keys, t->values, NULL, err);
    if (!status && append)
        status =
            fin_cross_append(cross, 1, t->keys + first * t->dk, t->values + first * t->dv, err);
    fin_cross_destroy(cross);
    return status;
}

static fin_status by_batch(const tokens *t, fin_dtype dtype, fin_error *err)
{
    fin_cross_settings s = settings_of(t);
    const int64_t L = t->count, one = 1;
    contexts c = contexts_make(1, &L, &one, t->dk, t->dv, dtype, 1);
    for (int64_t i = 0; i < L * t->dk; i++)
        c.keys_f[i] = (float)(c.keys[i] = t->keys[i]);
    for (int64_t i = 0; i < L * t->dv; i++)
        c.values_f[i] = (float)(c.values[i] = t->values[i]);
    double *out = calloc((size_t)t->dv, sizeof *out);
    fin_status status = fin_cross_forward(&s, &c.batch, out, NULL, err);
    free(out);
    contexts_free(&c);
    return status;
}

static fin_status by_process(const tokens *t, fin_error *err)
{
    const fin_family *family = fin_family_find("process");
    fin_latent_settings s;
    fin_settings_defaults(fin_family_table(family), &s, sizeof s);
    s.d = t->dk;
    s.dv = t->dv;
    s.kernel = t->kernel;
    s.noise = t->noise;
    s.scale = s.prior = 1;
    fin_latent *latent;
    assert_int_equal(fin_latent_create(&latent, family, &s, 1, NULL), FIN_OK);
    double *mean = calloc((size_t)t->dv, sizeof *mean), variance;
    fin_status status = fin_latent_predict_tokens(latent, t->count, t->keys, t->values, 1, t->keys,
                                                  mean, &variance, err);
    free(mean);
    fin_latent_destroy(latent);
    return status;
}

static fin_status go(int way, const tokens *t, fin_error *err)
{
    return way <= APPENDED ? by_cross(t, way == APPENDED, err)
           : way <= FLOAT  ? by_batch(t, way == FLOAT ? FIN_F32 : FIN_F64, err)
                           : by_process(t, err);
}

/* All ways end with this status; a refusal has `word`, an answer leaves the error as it was. */
static void all_agree(const tokens *t, fin_status want, const char *word)
{
    for (int way = 0; way < WAYS; way++) {
        fin_error err = {FIN_OK, ""};
        fin_status status = go(way, t, &err);
        if (status != want || (want ? !strstr(err.message, word) : *err.message || err.status))
            fail_msg("%s: status '%s', message '%s'; '%s' was wanted", ways[way],
                     fin_status_name(status), err.message, want ? word : "success, and no message");
    }
}

/* 0 is -0, in keys and in values. */
static void signs_of_zero__are_no_difference(void **state)
{
    (void)state;
    double keys[] = {1, 2, 1}, zeros[] = {0.0, 1, -0.0}, at_zero[] = {0.0, 2, -0.0};
    double same[] = {3, 1, 3}, other[] = {3, 1, 4};
    for (int kernel = FIN_KERNEL_EXPONENTIAL; kernel <= FIN_KERNEL_MATERN52; kernel++) {
        tokens t = {3, 1, 1, keys, zeros, kernel, FIN_CROSS_AUTO, 0};
        all_agree(&t, FIN_OK, NULL);
        t.values = other;
        all_agree(&t, FIN_ERR_NUMERIC, "tokens 0 and 2 have the same key");
        t.keys = at_zero;
        all_agree(&t, FIN_ERR_NUMERIC, "tokens 0 and 2 have the same key");
        t.values = same;
        all_agree(&t, FIN_OK, NULL);
    }
}

/* The search for equal keys when there are many, the second column alone telling them apart: the
 * first pair that contradicts itself, not one that agrees. */
static void equal_keys__are_found_among_many(void **state)
{
    (void)state;
    enum { L = 300 };
    double keys[2 * L], values[2 * L];
    tokens t = {L, 2, 2, keys, values, FIN_KERNEL_MATERN32, FIN_CROSS_AUTO, 0};
    for (int i = 0; i < L; i++) {
        keys[2 * i] = i % 7;
        keys[2 * i + 1] = i;
        values[2 * i] = 0;
        values[2 * i + 1] = i;
    }
    keys[2 * 50] = keys[2 * 3], keys[2 * 50 + 1] = keys[2 * 3 + 1];
    values[2 * 50 + 1] = values[2 * 3 + 1];
    all_agree(&t, FIN_OK, NULL);
    keys[2 * 299] = keys[2 * 170], keys[2 * 299 + 1] = keys[2 * 170 + 1];
    all_agree(&t, FIN_ERR_NUMERIC, "tokens 170 and 299 have the same key");
    keys[2 * 200] = keys[2 * 3], keys[2 * 200 + 1] = keys[2 * 3 + 1];
    all_agree(&t, FIN_ERR_NUMERIC, "tokens 3 and 200 have the same key");
}

/* Each column of the values has its own unit: one of 1e8 does not excuse an error in another. Also
 * with a noise below the jitter. */
static void jitter__is_judged_column_by_column(void **state)
{
    (void)state;
    double keys[] = {0, 1, 1 + 1e-7}, values[] = {1e8, 0, 1e8, 0, 1e8, 1};
    double fine[] = {1e8, 0, 1e8, 1, 1e8, 1};
    const double noises[] = {0, 1e-20};
    for (int i = 0; i < 2; i++) {
        tokens t = {3, 1, 2, keys, values, FIN_KERNEL_RBF, FIN_CROSS_DUAL, noises[i]};
        for (int way = 0; way < WAYS; way++) { /* in float the keys are equal */
            fin_error err = {FIN_OK, ""};
            assert_int_equal(go(way, &t, &err), FIN_ERR_NUMERIC);
            assert_non_null(strstr(err.message, "noise"));
        }
        t.values = fine;
        all_agree(&t, FIN_OK, NULL);
    }
}

/* Two identical tokens and no noise, for every size of matrix that has a way of its own; features
 * that rounding cannot tell apart; landmarks that say nothing new. */
static void error__is_clean_after_success(void **state)
{
    (void)state;
    enum { MOST = 400 };
    static double keys[2 * MOST], values[MOST];
    const int64_t sizes[] = {2, 20, 33, 100, 257, 300};
    for (int i = 0; i < MOST; i++) {
        keys[2 * i] = i;
        keys[2 * i + 1] = i;
        values[i] = 3 * i;
    }
    keys[2] = keys[3] = values[1] = 0; /* token 1 is token 0 */
    for (int i = 0; i < 6; i++) {
        tokens t = {sizes[i], 2, 1, keys, values, FIN_KERNEL_MATERN52, FIN_CROSS_DUAL, 0};
        all_agree(&t, FIN_OK, NULL);
    }
    tokens t = {MOST, 2, 1, keys, values, FIN_KERNEL_LINEAR, FIN_CROSS_PRIMAL, 1e-18};
    for (int way = 0; way <= BATCHED; way++) { /* both columns of the keys are the same */
        fin_error err = {FIN_OK, ""};
        assert_int_equal(go(way, &t, &err), FIN_OK);
        assert_string_equal(err.message, "");
    }
    t.noise = 0; /* least squares once the tokens fix the features, which they never do */
    fin_error err = {FIN_OK, ""};
    assert_int_equal(by_cross(&t, false, &err), FIN_OK);
    assert_string_equal(err.message, "");
    for (int i = 0; i < 2 * MOST; i++)
        keys[i] = keys[i] > 60 ? 60 : keys[i];
    t = (tokens){MOST, 2, 1, keys, values, FIN_KERNEL_RBF, FIN_CROSS_NYSTROM, 0.1};
    assert_int_equal(by_cross(&t, false, &err), FIN_OK);
    assert_string_equal(err.message, "");
}

/* By features: a statistic of fewer tokens than features, without noise. */
static void error__is_clean_after_a_posterior(void **state)
{
    (void)state;
    const int64_t dimensions[] = {8, 40};
    for (int i = 0; i < 2; i++) {
        const fin_family *family = fin_family_find("concept");
        fin_latent_settings s;
        fin_settings_defaults(fin_family_table(family), &s, sizeof s);
        s.d = dimensions[i];
        s.noise = 0;
        fin_latent *latent;
        fin_latent_shape shape;
        fin_error err = {FIN_OK, ""};
        assert_int_equal(fin_latent_create(&latent, family, &s, 1, &err), FIN_OK);
        fin_latent_get_shape(latent, &shape);
        double *keys = draw_numbers(2 * shape.dk, 1, 1, 1);
        double *values = draw_numbers(2 * shape.dv, 1, 1, 2);
        double *statistic = calloc((size_t)shape.statistic, sizeof *statistic);
        double *posterior = calloc((size_t)shape.posterior, sizeof *posterior);
        assert_int_equal(fin_latent_accumulate(latent, 2, keys, values, statistic, &err), FIN_OK);
        assert_int_equal(fin_latent_posterior(latent, statistic, posterior, &err), FIN_OK);
        assert_string_equal(err.message, "");
        assert_int_equal(err.status, FIN_OK);
        free(keys);
        free(values);
        free(statistic);
        free(posterior);
        fin_latent_destroy(latent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_of_zero__are_no_difference),
        cmocka_unit_test(equal_keys__are_found_among_many),
        cmocka_unit_test(jitter__is_judged_column_by_column),
        cmocka_unit_test(error__is_clean_after_success),
        cmocka_unit_test(error__is_clean_after_a_posterior),
    };
    return cmocka_run_group_tests_name("context_agree", tests, NULL, NULL);
}
