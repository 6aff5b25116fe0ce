/* Families given what they cannot take: a status and a sentence, and nothing left allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_family_help.h"

static fin_error err;

/* The status, and a word that the message must have. */
#define REFUSED(call, status, word)                                                                \
    do {                                                                                           \
        err.message[0] = '\0';                                                                     \
        assert_int_equal(call, status);                                                            \
        if (!strstr(err.message, word))                                                            \
            fail_msg("'%s' is not in: %s", word, err.message);                                     \
    } while (0)

static fin_status create(const char *family, const fin_latent_settings *s)
{
    fin_latent *latent;
    fin_status status = fin_latent_create(&latent, fin_family_find(family), s, 1, &err);
    if (status)
        assert_null(latent);
    fin_latent_destroy(latent);
    return status;
}

/* Every number at its limits is taken, or refused for the memory it would need; past them and NaN
 * never. */
static void create__judges_every_setting(void **state)
{
    (void)state;
    for (int f = 0; f < fin_family_count(); f++) {
        const char *name = fin_family_name(fin_family_at(f));
        const fin_settings *table = fin_family_table(fin_family_at(f));
        for (int i = 0; i < table->count; i++) {
            const fin_field *field = &table->fields[i];
            fin_latent_settings s = help_defaults(name);
            char *at = (char *)&s + field->offset;
            if (field->type == FIN_TYPE_choice) {
                *(fin_choice *)at = 99;
                REFUSED(create(name, &s), FIN_ERR_ARGUMENT, field->name);
                continue;
            }
            for (int end = 0; end < 2; end++) {
                double limit = end ? field->highest : field->lowest;
                if (field->type == FIN_TYPE_int64_t)
                    *(int64_t *)at = (int64_t)limit;
                else
                    *(double *)at = limit;
                if (limit <= 1e6)
                    assert_int_equal(create(name, &s), FIN_OK);
                if (field->type == FIN_TYPE_int64_t)
                    *(int64_t *)at = (int64_t)limit + (end ? 1 : -1);
                else
                    *(double *)at = end ? 1.1 * limit + 1e-3 : limit - fabs(limit) - 1e-3;
                REFUSED(create(name, &s), FIN_ERR_ARGUMENT, field->name);
            }
            if (field->type == FIN_TYPE_double) {
                *(double *)at = NAN;
                REFUSED(create(name, &s), FIN_ERR_ARGUMENT, field->name);
            }
        }
    }
}

static void create__refuses_what_does_not_fit(void **state)
{
    (void)state;
    fin_latent *latent;
    REFUSED(fin_latent_create(&latent, NULL, NULL, 1, &err), FIN_ERR_ARGUMENT, "concept");
    fin_latent_settings s = help_defaults("concept");
    s.features = FIN_FEATURES_QUADRATIC;
    s.d = 4096;
    REFUSED(create("concept", &s), FIN_ERR_ARGUMENT, "179");
    s.d = 179;
    assert_int_equal(create("concept", &s), FIN_OK);
    s = help_defaults("concepts");
    s.concepts = 65536;
    s.covariates = s.outcomes = 4096;
    REFUSED(create("concepts", &s), FIN_ERR_ARGUMENT, "fewer");
    s = help_defaults("finite");
    s.concepts = 65536;
    s.d = s.dv = 4096;
    REFUSED(create("finite", &s), FIN_ERR_ARGUMENT, "fewer");
    s = help_defaults("sphere");
    s.keys = FIN_KEYS_GAUSSIAN;
    REFUSED(create("sphere", &s), FIN_ERR_ARGUMENT, "vmf");
}

static void draw__refuses_sizes(void **state)
{
    (void)state;
    static const int64_t bad[][3] = {{-1, 1, 1},
                                     {1, -1, 1},
                                     {1, 1, -1},
                                     {INT64_MAX, 1, 1},
                                     {1, INT64_MAX, 1},
                                     {1, 1, INT64_MAX},
                                     {INT64_MAX, INT64_MAX, INT64_MAX},
                                     {INT64_C(1) << 32, INT64_C(1) << 31, 1},
                                     {1, INT64_C(1) << 40, 0},
                                     {INT64_MAX, 0, 0}};
    for (int f = 0; f < fin_family_count(); f++) {
        fin_latent *latent = help_latent(fin_family_name(fin_family_at(f)), NULL, 1);
        for (int i = 0; i < 10; i++)
            REFUSED(fin_latent_draw(
                        latent, 0,
                        &(fin_latent_sample){.n = bad[i][0], .L = bad[i][1], .Q = bad[i][2]}, &err),
                    FIN_ERR_ARGUMENT, fin_family_name(fin_family_at(f)));
        assert_int_equal(fin_latent_draw(latent, UINT64_MAX, &(fin_latent_sample){.n = 2}, &err),
                         FIN_OK);
        assert_int_equal(fin_latent_draw(latent, 0, &(fin_latent_sample){.L = 5, .Q = 5}, &err),
                         FIN_OK);
        fin_latent_destroy(latent);
    }
    fin_latent *urn = help_latent("urn", NULL, 1), *process = help_latent("process", NULL, 1);
    double values[101];
    REFUSED(fin_latent_draw(urn, 0, &(fin_latent_sample){.n = 1, .L = 101, .values = values}, &err),
            FIN_ERR_ARGUMENT, "100 balls");
    REFUSED(fin_latent_draw(urn, 0,
                            &(fin_latent_sample){.n = 1, .L = 60, .Q = 41, .values = values}, &err),
            FIN_ERR_ARGUMENT, "100 balls");
    assert_int_equal(
        fin_latent_draw(urn, 0, &(fin_latent_sample){.n = 1, .L = 100, .values = values}, &err),
        FIN_OK);
    REFUSED(fin_latent_draw(process, 0,
                            &(fin_latent_sample){.n = 1, .L = 16000, .Q = 385, .values = values},
                            &err),
            FIN_ERR_ARGUMENT, "16384");
    fin_latent_destroy(urn);
    fin_latent_destroy(process);
}

/* Numbers that are not finite, categories that are none. Nothing is added to the statistic. */
static void accumulate__refuses_bad_tokens(void **state)
{
    (void)state;
    for (int f = 0; f < fin_family_count(); f++) {
        const char *name = fin_family_name(fin_family_at(f));
        fin_latent *latent = help_latent(name, NULL, 1);
        help_sequences b = help_draw(latent, 0, 1, 3, 1);
        int64_t n = b.shape.statistic;
        double *statistic = help_array(n), *zero = help_array(n);
        static const double bad[] = {NAN, INFINITY, -INFINITY, -1, 0.5, 4, 1e300};
        int categories = b.shape.outcomes > 0;
        for (int i = 0; i < 7 && n > 0; i++) {
            double *place = b.shape.dk && i % 2 ? &b.keys[1] : &b.values[1], was = *place;
            *place = i == 5 && place == b.keys + 1 ? 5 : bad[i];
            if (i < 3 || categories)
                REFUSED(fin_latent_accumulate(latent, 3, b.keys, b.values, statistic, &err),
                        FIN_ERR_ARGUMENT, name);
            *place = was;
        }
        assert_memory_equal(statistic, zero, (size_t)n * sizeof *zero);
        if (n > 0)
            REFUSED(fin_latent_accumulate(latent, 3, b.keys, NULL, statistic, &err),
                    FIN_ERR_ARGUMENT, "NULL");
        REFUSED(fin_latent_accumulate(latent, n ? -1 : 1, b.keys, b.values, statistic, &err),
                n ? FIN_ERR_ARGUMENT : FIN_ERR_UNSUPPORTED, name);
        free(statistic);
        free(zero);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

static void predict__refuses_bad_statistics_and_queries(void **state)
{
    (void)state;
    for (int f = 0; f < fin_family_count(); f++) {
        const char *name = fin_family_name(fin_family_at(f));
        fin_latent *latent = help_latent(name, NULL, 1);
        help_sequences b = help_draw(latent, 0, 1, 3, 2);
        int64_t n = b.shape.statistic;
        double *statistic = help_array(n), *posterior = help_array(b.shape.posterior);
        double *mean = help_array(2 * b.width), variance[2];
        for (int i = 0; i < 3 && n > 0; i++) {
            statistic[i == 2 ? n - 1 : 0] = i == 0 ? NAN : i == 1 ? INFINITY : -1;
            REFUSED(fin_latent_posterior(latent, statistic, posterior, &err), FIN_ERR_ARGUMENT,
                    "statistic");
            REFUSED(fin_latent_merge(latent, statistic, statistic, &err), FIN_ERR_ARGUMENT,
                    "statistic");
            REFUSED(fin_latent_predict(latent, statistic, 1, b.queries, mean, NULL, &err),
                    FIN_ERR_ARGUMENT, "statistic");
            statistic[0] = 0;
        }
        if (n > 0) {
            statistic[n - 1] = 0;
            REFUSED(fin_latent_posterior(latent, NULL, posterior, &err), FIN_ERR_ARGUMENT,
                    "statistic is NULL");
            if (b.shape.outcomes)
                REFUSED(fin_latent_predict(latent, statistic, 1, b.queries, mean, variance, &err),
                        FIN_ERR_UNSUPPORTED, "NULL");
        } else {
            REFUSED(fin_latent_posterior(latent, statistic, posterior, &err), FIN_ERR_UNSUPPORTED,
                    "fin_latent_predict_tokens");
        }
        REFUSED(
            fin_latent_predict_tokens(latent, 3, b.keys, b.values, -1, b.queries, mean, NULL, &err),
            FIN_ERR_ARGUMENT, "queries");
        REFUSED(fin_latent_predict_tokens(latent, 3, b.keys, b.values, INT64_MAX, b.queries, mean,
                                          NULL, &err),
                FIN_ERR_ARGUMENT, "queries");
        if (b.shape.dk) {
            b.queries[0] = NAN;
            REFUSED(fin_latent_predict_tokens(latent, 3, b.keys, b.values, 2, b.queries, mean, NULL,
                                              &err),
                    FIN_ERR_ARGUMENT, "queries");
        }
        free(statistic);
        free(posterior);
        free(mean);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

static void verbs__say_where_they_do_not_apply(void **state)
{
    (void)state;
    double x[64] = {0};
    int64_t count;
    fin_latent *counts = help_latent("counts", NULL, 1), *finite = help_latent("finite", NULL, 1),
               *urn = help_latent("urn", NULL, 1);
    REFUSED(fin_latent_compress(counts, 1, NULL, x, &count, x, x, &err), FIN_ERR_UNSUPPORTED,
            "statistic");
    REFUSED(fin_latent_filter(finite, 1, x, x, x, &err), FIN_ERR_UNSUPPORTED, "Gaussian");
    REFUSED(fin_latent_features(counts, 1, x, x, &err), FIN_ERR_UNSUPPORTED, "concept");
    REFUSED(fin_latent_features(finite, INT64_MAX, x, x, &err), FIN_ERR_ARGUMENT, "keys");
    x[0] = 26; /* of 25 balls of the first kind */
    REFUSED(fin_latent_posterior(urn, x, x + 4, &err), FIN_ERR_ARGUMENT, "26 balls");
    for (int i = 0; i < 4; i++)
        x[i] = 25;
    REFUSED(fin_latent_predict(urn, x, 1, NULL, x + 4, NULL, &err), FIN_ERR_ARGUMENT, "no next");
    assert_int_equal(fin_latent_predict(urn, x, 0, NULL, NULL, NULL, &err), FIN_OK);
    fin_latent_destroy(counts);
    fin_latent_destroy(finite);
    fin_latent_destroy(urn);
}

/* Two values at one key cannot be without noise; a matrix that is no statistic has no factor; keys
 * whose kernel overflows have no draw. */
static void numbers__that_cannot_be_are_refused(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("process");
    s.d = 1;
    s.noise = 0;
    fin_latent *process = help_latent("process", &s, 1);
    double k[3] = {1, 2, 1}, v[3] = {1, 5, 1}, q = 1, mean, variance;
    assert_int_equal(fin_latent_predict_tokens(process, 3, k, v, 1, &q, &mean, &variance, &err), 0);
    assert_true(fabs(mean - 1) < 1e-9 && variance >= 0 && variance < 1e-9);
    v[2] = 3;
    REFUSED(fin_latent_predict_tokens(process, 3, k, v, 1, &q, &mean, &variance, &err),
            FIN_ERR_NUMERIC, "tokens 0 and 2");
    fin_latent_destroy(process);
    s = help_defaults("process");
    s.kernel = FIN_KERNEL_EXPONENTIAL;
    s.scale = 1e-3;
    process = help_latent("process", &s, 1);
    REFUSED(fin_latent_draw(process, 0, &(fin_latent_sample){.n = 2, .L = 2, .Q = 1, .values = k},
                            &err),
            FIN_ERR_NUMERIC, "overflows");
    fin_latent_destroy(process);
    s = help_defaults("concept");
    s.d = 2;
    fin_latent *concept = help_latent("concept", &s, 1);
    const double wrong[9] = {1, 9, 9, 1};
    double posterior[6];
    REFUSED(fin_latent_posterior(concept, wrong, posterior, &err), FIN_ERR_NUMERIC,
            "positive definite");
    const double key[2] = {1e200, 0}, value = 1e200;
    REFUSED(fin_latent_predict_tokens(concept, 1, key, &value, 1, key, &mean, &variance, &err),
            FIN_ERR_NUMERIC, "");
    fin_latent_destroy(concept);
    fin_latent *sphere = help_latent("sphere", NULL, 1);
    double turns[10] = {1e300, 1}, rotation[18];
    REFUSED(fin_latent_posterior(sphere, turns, rotation, &err), FIN_ERR_NUMERIC, "1e150");
    turns[0] = 1e140;
    assert_int_equal(fin_latent_posterior(sphere, turns, rotation, &err), FIN_OK);
    for (int i = 9; i < 18; i++)
        assert_true(fabs(rotation[i]) <= 1);
    fin_latent_destroy(sphere);
}

/* Functions in a plane cannot have three independent values: not as plain as twins, and rounding
 * would decide the answer. The same with less noise than the jitter; with more, it is an answer. */
static void numbers__that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int step = 0; step < 3; step++) {
            const char *name = f ? "process" : "concept";
            fin_latent_settings s = help_defaults(name);
            s.kernel = FIN_KERNEL_LINEAR;
            s.noise = step == 0 ? 0 : step == 1 ? 1e-20 : 1e-3;
            fin_latent *latent = help_latent(name, &s, 1);
            double k[15] = {1, 2, 0.3, 0.7, 0.1, 3, -2, 0.33, 0.17, 0.13}, q[5] = {1, 1, 1, 1, 1};
            double v[3] = {1, 2, 2 - 0.7 * 2}, mean, variance;
            for (int i = 0; i < 5; i++)
                k[10 + i] = 2 * k[i] - 0.7 * k[5 + i];
            assert_int_equal(
                fin_latent_predict_tokens(latent, 3, k, v, 1, q, &mean, &variance, &err), FIN_OK);
            v[2] = 5;
            if (step < 2)
                REFUSED(fin_latent_predict_tokens(latent, 3, k, v, 1, q, &mean, &variance, &err),
                        FIN_ERR_NUMERIC, "contradict");
            else
                assert_int_equal(
                    fin_latent_predict_tokens(latent, 3, k, v, 1, q, &mean, &variance, &err),
                    FIN_OK);
            fin_latent_destroy(latent);
        }
}

/* What overflows is no answer: sums of tokens, of statistics, of counts, and log-odds. */
static void numbers__that_overflow_are_refused(void **state)
{
    (void)state;
    fin_latent *mean = help_latent("mean", NULL, 1), *counts = help_latent("counts", NULL, 1);
    const double huge = 1e200;
    double one[4] = {0}, two[4], many[4] = {1e308, 1e308, 1e308, 1e308}, p[16];
    REFUSED(fin_latent_accumulate(mean, 1, NULL, &huge, one, &err), FIN_ERR_NUMERIC, "overflows");
    memcpy(two, many, sizeof two);
    REFUSED(fin_latent_merge(counts, many, two, &err), FIN_ERR_NUMERIC, "overflows");
    assert_memory_equal(two, many, sizeof two);
    REFUSED(fin_latent_predict(counts, many, 1, NULL, p, NULL, &err), FIN_ERR_NUMERIC, "overflows");
    fin_latent_destroy(mean);
    fin_latent_destroy(counts);
    fin_latent_settings s = help_defaults("finite");
    s.d = 2;
    s.noise = 1e-100;
    fin_latent *finite = help_latent("finite", &s, 1);
    const double statistic[8] = {0, 0, 0, 0, 1e250, 1e250, 0, 0};
    REFUSED(fin_latent_posterior(finite, statistic, p, &err), FIN_ERR_NUMERIC, "log-odds");
    fin_latent_destroy(finite);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static fin_status everything(void *user, fin_error *e)
{
    const char *name = user;
    fin_latent_settings s = help_defaults(name);
    fin_latent *latent;
    fin_latent_shape p;
    double keys[60], values[60], queries[6], truth[8], z[64];
    double statistic[64] = {0}, posterior[64], phi[64], pseudo[64];
    int64_t count;
    s.features = FIN_FEATURES_FOURIER;
    s.D = 4;
    s.d = 3;
    fin_status status = fin_latent_create(&latent, fin_family_find(name), &s, 1, e);
    if (status)
        return status;
    fin_latent_get_shape(latent, &p);
    status = fin_latent_draw(
        latent, 0, &(fin_latent_sample){1, 20, 2, keys, values, queries, NULL, truth, z}, e);
    if (!status && p.statistic)
        status = fin_latent_accumulate(latent, 20, keys, values, statistic, e);
    if (!status && p.statistic)
        status = fin_latent_posterior(latent, statistic, posterior, e);
    if (!status && p.statistic)
        status = fin_latent_predict(latent, statistic, 2, queries, truth, NULL, e);
    if (!status)
        status = fin_latent_predict_tokens(latent, 20, keys, values, 2, queries, truth, NULL, e);
    if (!status && p.features)
        status = fin_latent_compress(latent, 20, keys, values, &count, phi, pseudo, e);
    if (!status && p.features && p.posterior > p.features * p.features)
        status = fin_latent_filter(latent, 20, keys, values, posterior, e);
    fin_latent_destroy(latent);
    return status;
}

static void memory__every_allocation_fails_once(void **state)
{
    (void)state;
    for (int f = 0; f < fin_family_count(); f++) {
        char name[16];
        strcpy(name, fin_family_name(fin_family_at(f)));
        long count = fault_every(everything, name);
        assert_true(count >= 3);
    }
}

static size_t most_bytes;

static void *allocate_little(size_t size)
{
    return size > most_bytes ? NULL : malloc(size);
}

/* A draw takes no matrices, and a prediction from a statistic none of all queries: 4000 rows of
 * 1024 features would be 32 MB. */
static void memory__does_not_grow_with_queries(void **state)
{
    (void)state;
    enum { Q = 4000 };
    fin_latent_settings s = help_defaults("concept");
    s.features = FIN_FEATURES_FOURIER;
    s.D = 1024;
    fin_latent *latent = help_latent("concept", &s, 1);
    fin_latent_shape shape;
    fin_latent_get_shape(latent, &shape);
    double *queries = help_array(Q * shape.dk), *mean = help_array(Q);
    double *statistic = help_array(shape.statistic);
    most_bytes = 1 << 20;
    fin_memory_hooks(allocate_little, free);
    fin_status drawn = fin_latent_draw(
        latent, 0,
        &(fin_latent_sample){.n = 1, .L = 16, .Q = Q, .queries = queries, .answers = mean}, &err);
    most_bytes = 16 << 20;
    fin_status predicted = fin_latent_predict(latent, statistic, Q, queries, mean, NULL, &err);
    fin_memory_hooks(NULL, NULL);
    assert_int_equal(drawn, FIN_OK);
    assert_int_equal(predicted, FIN_OK);
    free(queries);
    free(mean);
    free(statistic);
    fin_latent_destroy(latent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__judges_every_setting),
        cmocka_unit_test(create__refuses_what_does_not_fit),
        cmocka_unit_test(draw__refuses_sizes),
        cmocka_unit_test(accumulate__refuses_bad_tokens),
        cmocka_unit_test(predict__refuses_bad_statistics_and_queries),
        cmocka_unit_test(verbs__say_where_they_do_not_apply),
        cmocka_unit_test(numbers__that_cannot_be_are_refused),
        cmocka_unit_test(numbers__that_contradict_each_other_are_refused),
        cmocka_unit_test(numbers__that_overflow_are_refused),
        cmocka_unit_test(memory__every_allocation_fails_once),
        cmocka_unit_test(memory__does_not_grow_with_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
