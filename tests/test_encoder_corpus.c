/* Corpora of families and tasks: what a sequence is, that it is a pure function of its number, and
 * what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_encoder_corpus_help.h"

static const char *const families[] = {"concept",  "mean",   "process", "counts",
                                       "concepts", "sphere", "finite",  "urn"};
enum { FAMILIES = 8, ALL = FIN_EXAMPLES_BAYES | FIN_EXAMPLES_POSTERIOR };

static int has_label(const char *family)
{
    return strcmp(family, "process") && strcmp(family, "sphere") && strcmp(family, "urn");
}

/* ---- what a sequence is ---------------------------------------------------------------------- */

/* The numbers of a key or a value, as columns of a token. */
static void expect_columns(int64_t width, const double *row, int categories, int64_t columns,
                           const float *token)
{
    for (int64_t j = 0; j < columns; j++) {
        double want = categories ? (double)(j == (int64_t)row[0]) : row[j];
        assert_true(token[j] == (float)want);
    }
    assert_true(categories || width == columns);
}

static void masked__tokens_and_targets_are_the_family_s(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        enum { N = 9, L = 6, M = 3 };
        fin_latent *latent = help_latent(families[f], NULL, 5);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
        s.L = L;
        s.M = M;
        fin_corpus *corpus = corpus_latent(&s, latent);
        fin_encoder_shape shape;
        fin_examples e = {0};
        fin_corpus_get_shape(corpus, &shape);
        corpus_draw(corpus, 40, N, -1, 0, 0, &e);
        assert_null(e.bayes);
        assert_null(e.variance);
        assert_null(e.z);
        assert_int_equal(e.sequences.n, N);
        assert_int_equal(e.tokens, N * (L + M));
        assert_int_equal(e.rows, e.tokens);
        assert_int_equal(fin_corpus_longest(corpus), L + M);
        help_sequences b = help_draw(latent, 40, N, L, M);
        int64_t dk = b.shape.dk, dv = b.shape.dv, keys = shape.inputs - shape.values;
        int coded = b.shape.outcomes > 0, key_coded = strcmp(families[f], "concepts") == 0;
        for (int64_t i = 0; i < N; i++) {
            assert_int_equal(e.sequences.offsets[i], i * (L + M));
            for (int64_t l = 0; l < L + M; l++) {
                int64_t at = i * (L + M) + l, q = l - L;
                const float *token = e.sequences.tokens + at * shape.inputs;
                assert_int_equal(e.sequences.hidden[at], l >= L);
                expect_columns(dk, l < L ? b.keys + (i * L + l) * dk : b.queries + (i * M + q) * dk,
                               key_coded, keys, token);
                if (l < L)
                    expect_columns(dv, b.values + (i * L + l) * dv, coded, shape.values,
                                   token + keys);
                for (int64_t j = 0; l >= L && j < shape.values; j++)
                    assert_true(token[keys + j] == 0); /* a hidden value is not shown */
                for (int64_t j = 0; j < dv; j++)
                    if (l < L)
                        assert_true(isnan(e.targets[at * dv + j]));
                    else
                        assert_true(e.targets[at * dv + j] == b.answers[(i * M + q) * dv + j]);
            }
        }
        help_free(&b);
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
}

static void shape__heads_and_columns(void **state)
{
    (void)state;
    struct {
        const char *family;
        int objective, answer;
        int64_t inputs, values, size;
        int kind;
    } cases[] = {
        {"concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE, 6, 1, 1, FIN_HEAD_VALUE},
        {"concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_GAUSSIAN, 6, 1, 1, FIN_HEAD_GAUSSIAN},
        {"mean", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_GAUSSIAN, 1, 1, 1, FIN_HEAD_GAUSSIAN},
        {"counts", FIN_OBJECTIVE_MASKED, FIN_ANSWER_GAUSSIAN, 4, 4, 4, FIN_HEAD_CLASSES},
        {"counts", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_VALUE, 4, 4, 1, FIN_HEAD_VALUE},
        {"concepts", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE, 9, 4, 4, FIN_HEAD_CLASSES},
        {"concepts", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_VALUE, 9, 4, 16, FIN_HEAD_CLASSES},
        {"finite", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_VALUE, 6, 1, 16, FIN_HEAD_CLASSES},
        {"sphere", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE, 6, 3, 3, FIN_HEAD_VALUE},
        {"urn", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE, 4, 4, 4, FIN_HEAD_CLASSES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fin_latent *latent = help_latent(cases[i].family, NULL, 1);
        fin_corpus_settings s = corpus_defaults(cases[i].objective);
        s.answer = (fin_choice)cases[i].answer;
        fin_corpus *corpus = corpus_latent(&s, latent);
        fin_encoder_shape shape;
        fin_corpus_get_shape(corpus, &shape);
        assert_int_equal(shape.inputs, cases[i].inputs);
        assert_int_equal(shape.values, cases[i].values);
        assert_int_equal(shape.heads, 1);
        assert_int_equal(shape.head[0].size, cases[i].size);
        assert_int_equal(shape.head[0].kind, cases[i].kind);
        int masked = cases[i].objective == FIN_OBJECTIVE_MASKED;
        assert_int_equal(shape.head[0].where, masked ? FIN_HEAD_TOKENS : FIN_HEAD_POOLED);
        assert_string_equal(shape.head[0].name, masked ? "value" : "label");
        assert_true(shape.head[0].weight == 1);
        assert_int_equal(fin_corpus_get_settings(corpus)->L_least, s.L);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
}

/* Bayes rows are those of fin_latent_predict_tokens, the posterior fin_latent_posterior's. */
static void masked__bayes_is_the_posterior_predictive(void **state)
{
    (void)state;
    enum { N = 5, L = 7, M = 3 };
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent *latent = help_latent(families[f], NULL, 6);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
        s.L = L;
        s.M = M;
        fin_corpus *corpus = corpus_latent(&s, latent);
        fin_examples e = {0};
        assert_true(fin_corpus_has_bayes(corpus));
        corpus_draw(corpus, 11, N, -1, 0, ALL, &e);
        help_sequences b = help_draw(latent, 11, N, L, M);
        int64_t w = b.width, post = b.shape.posterior;
        double *mean = help_array(M * w), *variance = help_array(M);
        double *statistic = help_array(b.shape.statistic), *posterior = help_array(post);
        assert_int_equal(e.z_size, post);
        for (int64_t i = 0; i < N; i++) {
            const double *k = b.keys + i * L * b.shape.dk, *v = b.values + i * L * b.shape.dv;
            assert_int_equal(fin_latent_predict_tokens(latent, L, k, v, M,
                                                       b.queries + i * M * b.shape.dk, mean,
                                                       b.shape.outcomes ? NULL : variance, NULL),
                             FIN_OK);
            const double *bayes = e.bayes + (i * (L + M) + L) * w;
            for (int64_t j = 0; j < M * w; j++)
                assert_true(fabs((b.shape.outcomes ? exp(bayes[j]) : bayes[j]) - mean[j]) < 1e-12);
            for (int64_t j = 0; j < L * w; j++)
                assert_true(isnan(bayes[j - L * w]));
            double noise = fin_latent_get_settings(latent)->noise;
            for (int64_t q = 0; !b.shape.outcomes && q < M; q++)
                if (strcmp(families[f], "sphere"))
                    assert_true(e.variance[i * (L + M) + L + q] == variance[q] + noise);
            if (post == 0)
                continue;
            memset(statistic, 0, (size_t)b.shape.statistic * sizeof *statistic);
            assert_int_equal(fin_latent_accumulate(latent, L, k, v, statistic, NULL), FIN_OK);
            assert_int_equal(fin_latent_posterior(latent, statistic, posterior, NULL), FIN_OK);
            assert_memory_equal(posterior, e.z + i * post, (size_t)post * sizeof *posterior);
        }
        free(mean);
        free(variance);
        free(statistic);
        free(posterior);
        help_free(&b);
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
}

/* ---- a pure function of the number ------------------------------------------------------------ */

static void check_pure(const fin_corpus *corpus)
{
    enum { N = 300 };
    static const uint64_t few[] = {FIN_TEST_FIRST + 7, 260, 3, 3, 0, UINT64_MAX};
    fin_examples all = {0}, one = {0}, picked = {0};
    fin_error err = {FIN_OK, ""};
    fin_threads_set(1);
    corpus_draw(corpus, 0, N, -1, 5, ALL, &all);
    fin_threads_set(3);
    corpus_draw(corpus, 0, N, -1, 5, ALL, &one);
    for (int64_t i = 0; i < N; i++)
        assert_true(corpus_same(corpus, &all, i, &one, i));
    if (fin_corpus_pick(corpus, few, 6, -1, 5, ALL, &picked, &err))
        fail_msg("%s", err.message);
    assert_true(corpus_same(corpus, &picked, 1, &all, 260));
    assert_true(corpus_same(corpus, &picked, 2, &all, 3));
    assert_true(corpus_same(corpus, &picked, 3, &all, 3));
    assert_true(corpus_same(corpus, &picked, 4, &all, 0));
    corpus_draw(corpus, FIN_TEST_FIRST + 7, 1, -1, 5, ALL, &one);
    assert_true(corpus_same(corpus, &picked, 0, &one, 0));
    assert_false(corpus_same(corpus, &one, 0, &all, 7)); /* no test sequence is a training one */
    assert_false(corpus_same(corpus, &all, 0, &all, 1));
    corpus_draw(corpus, 0, N, -1, 5, 0, &one); /* flags change nothing of the rest */
    assert_memory_equal(one.targets, all.targets, (size_t)N * sizeof(double));
    fin_threads_set(0);
    fin_examples_close(&all);
    fin_examples_close(&one);
    fin_examples_close(&picked);
}

static void families__sequence_is_pure_in_its_number(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILIES; f++)
        for (int objective = 0; objective < 2; objective++) {
            if (objective == FIN_OBJECTIVE_SUPERVISED && !has_label(families[f]))
                continue;
            fin_latent *latent = help_latent(families[f], NULL, 8);
            fin_corpus_settings s = corpus_defaults(objective);
            s.L = 6;
            s.M = 2;
            s.answer = FIN_ANSWER_GAUSSIAN;
            fin_corpus *corpus = corpus_latent(&s, latent);
            check_pure(corpus);
            fin_corpus_destroy(corpus);
            fin_latent_destroy(latent);
        }
}

static fin_task *make_task(const char *name, int64_t d, int64_t L_min, int64_t m)
{
    const fin_task_kind *kind = fin_task_find(name);
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(kind), &s, sizeof s);
    s.d = d;
    s.L = 8;
    s.L_min = L_min;
    s.m = m;
    s.eps = 0.3;
    fin_task *task;
    fin_error err = {FIN_OK, ""};
    if (fin_task_create(&task, kind, &s, NULL, 4, FIN_TASK_AMBIENT, &err))
        fail_msg("%s", err.message);
    return task;
}

static void tasks__sequence_is_pure_in_its_number(void **state)
{
    (void)state;
    for (int t = 0; t < fin_task_count(); t++) {
        fin_task *task = make_task(fin_task_kind_name(fin_task_at(t)), 10, 3, 1);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
        fin_corpus *corpus;
        assert_int_equal(fin_corpus_task(&corpus, &s, task, NULL), FIN_OK);
        assert_int_equal(fin_corpus_longest(corpus), 8);
        check_pure(corpus);
        fin_corpus_destroy(corpus);
        fin_task_destroy(task);
    }
}

/* Labels are the task's, Bayes is fin_task_predict; with two relevant tokens there is none. */
static void tasks__labels_and_bayes_are_the_task_s(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= 2; m++) {
        enum { N = 50, D = 12 };
        fin_task *task = make_task("slr", D, 4, m);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
        fin_corpus *corpus;
        fin_examples e = {0};
        double y[N], predicted[N];
        assert_int_equal(fin_corpus_task(&corpus, &s, task, NULL), FIN_OK);
        assert_int_equal(fin_corpus_has_bayes(corpus), m == 1);
        corpus_draw(corpus, 9, N, -1, 0, ALL, &e);
        assert_null(e.sequences.hidden);
        assert_int_equal(e.rows, N);
        float *tokens = calloc((size_t)e.tokens, D * sizeof *tokens);
        assert_int_equal(
            fin_task_draw(task, 9, N, FIN_F32, e.sequences.offsets, tokens, y, NULL, NULL), FIN_OK);
        assert_memory_equal(tokens, e.sequences.tokens, (size_t)e.tokens * D * sizeof *tokens);
        assert_memory_equal(y, e.targets, sizeof y);
        fin_batch batch = {N, D, FIN_F32, tokens, e.sequences.offsets};
        if (m == 1)
            assert_int_equal(fin_task_predict(task, &batch, predicted, NULL), FIN_OK);
        else
            assert_null(e.bayes);
        for (int i = 0; m == 1 && i < N; i++) {
            assert_true(fabs(e.bayes[i] - predicted[i]) < 1e-12);
            assert_true(e.variance[i] >= 0.09);
        }
        free(tokens);
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_task_destroy(task);
    }
}

/* A longer sequence begins with the shorter one, and its hidden tokens are the same. */
static void length__other_than_the_settings(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("concept", NULL, 8);
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.L = 8;
    s.M = 2;
    fin_corpus *corpus = corpus_latent(&s, latent);
    fin_examples a = {0}, b = {0}, none = {0};
    corpus_draw(corpus, 0, 1, 3, 0, 0, &a);
    corpus_draw(corpus, 0, 1, 20, 0, 0, &b);
    corpus_draw(corpus, 0, 4, 0, 0, ALL, &none);
    assert_int_equal(a.tokens, 5);
    assert_int_equal(b.tokens, 22);
    assert_memory_equal(a.sequences.tokens, b.sequences.tokens, 3 * 6 * sizeof(float));
    assert_memory_equal(a.sequences.tokens + 18, b.sequences.tokens + 120, 12 * sizeof(float));
    assert_int_equal(none.tokens, 8); /* nothing in sight: the prior */
    assert_true(none.bayes[3] == 0 && none.sequences.hidden[0] == 1);
    fin_examples_close(&a);
    fin_examples_close(&b);
    fin_examples_close(&none);
    fin_corpus_destroy(corpus);
    fin_latent_destroy(latent);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void draw__uses_its_memory_again(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("concept", NULL, 8);
    fin_corpus *corpus = corpus_latent(NULL, latent);
    fin_examples e = {0};
    corpus_draw(corpus, 0, 64, -1, 0, FIN_EXAMPLES_BAYES, &e);
    fault_begin(-1, 0);
    for (int step = 1; step < 5; step++)
        corpus_draw(corpus, (uint64_t)step * 64, 64, -1, 0, step % 2, &e);
    fault_end();
    assert_int_equal(atomic_load(&fault_count), 0);
    fin_examples_close(&e);
    fin_examples_close(&e);
    fin_examples_close(NULL);
    fin_corpus_destroy(corpus);
    fin_corpus_destroy(NULL);
    fin_latent_destroy(latent);
}

static fin_status run(void *user, fin_error *err)
{
    fin_corpus *corpus = NULL;
    fin_examples e = {0};
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_status status = fin_corpus_latent(&corpus, &s, user, 1, err);
    if (!status)
        status = fin_corpus_draw(corpus, 0, 3, 5, 0, ALL, &e, err);
    if (!status)
        status = fin_corpus_draw(corpus, 0, 30, 5, 0, ALL, &e, err);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
    return status;
}

static void corpus__survives_failing_allocations(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("concept", NULL, 8);
    assert_true(fault_every(run, latent) >= 4); /* corpus, direction, two blocks */
    fin_latent_destroy(latent);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refuse(const char *family, const fin_corpus_settings *s, fin_status want,
                   const char *word)
{
    fin_latent *latent = help_latent(family, NULL, 1);
    fin_corpus *corpus = (fin_corpus *)latent;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_corpus_latent(&corpus, s, latent, 0, &err), want);
    assert_null(corpus);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
    fin_latent_destroy(latent);
}

static void create__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    refuse("process", &s, FIN_ERR_UNSUPPORTED, "no label");
    refuse("sphere", &s, FIN_ERR_UNSUPPORTED, "no label");
    refuse("urn", &s, FIN_ERR_UNSUPPORTED, "no label");
    s.L = 0;
    refuse("mean", &s, FIN_ERR_ARGUMENT, "L = 0");
    s.L = 4;
    s.L_least = 0;
    refuse("mean", &s, FIN_ERR_ARGUMENT, "L_least = 0");
    s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.L_least = s.L + 1;
    refuse("concept", &s, FIN_ERR_ARGUMENT, "L_least");
    s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.L = 93; /* and 8 hidden: of 100 balls */
    refuse("urn", &s, FIN_ERR_ARGUMENT, "100 balls");
    s.M = 0;
    refuse("concept", &s, FIN_ERR_ARGUMENT, "M = 0");
    s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.share = NAN;
    refuse("concept", &s, FIN_ERR_ARGUMENT, "share");
    s = corpus_defaults(2);
    refuse("concept", &s, FIN_ERR_ARGUMENT, "objective");
    fin_task *task = make_task("slr", 10, 8, 1);
    fin_corpus *corpus;
    s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    assert_int_equal(fin_corpus_task(&corpus, &s, task, NULL), FIN_ERR_UNSUPPORTED);
    fin_task_destroy(task);
}

static void draw__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    fin_latent_settings big = help_defaults("mean");
    big.prior = 1e90;
    fin_latent *latent = help_latent("urn", NULL, 1), *mean = help_latent("mean", &big, 1);
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_corpus *urn = corpus_latent(NULL, latent), *label = corpus_latent(&s, mean);
    fin_examples e = {0};
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_corpus_draw(urn, 0, -1, -1, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(urn, 0, 1, -2, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(urn, 0, 1, 93, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(urn, 0, 1, INT64_MAX, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(urn, 0, INT64_MAX, -1, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(urn, 0, 0, -1, 0, ALL, &e, &err), FIN_OK);
    assert_int_equal(e.tokens, 0);
    assert_int_equal(fin_corpus_draw(label, 0, 1, 0, 0, 0, &e, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_corpus_draw(label, 0, 1, 5, 0, 0, &e, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "3.4e38"));
    assert_null(e.targets); /* nothing half-made is shown */
    fin_examples_close(&e);
    fin_corpus_destroy(urn);
    fin_corpus_destroy(label);
    fin_latent_destroy(latent);
    fin_latent_destroy(mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked__tokens_and_targets_are_the_family_s),
        cmocka_unit_test(shape__heads_and_columns),
        cmocka_unit_test(masked__bayes_is_the_posterior_predictive),
        cmocka_unit_test(families__sequence_is_pure_in_its_number),
        cmocka_unit_test(tasks__sequence_is_pure_in_its_number),
        cmocka_unit_test(tasks__labels_and_bayes_are_the_task_s),
        cmocka_unit_test(length__other_than_the_settings),
        cmocka_unit_test(draw__uses_its_memory_again),
        cmocka_unit_test(corpus__survives_failing_allocations),
        cmocka_unit_test(create__refuses_what_makes_no_sense),
        cmocka_unit_test(draw__refuses_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
