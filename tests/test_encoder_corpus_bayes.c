/* The Bayes predictions of corpora: their risk is that of theory, their variance is that of their
 * errors, and errors are orthogonal to predictions. Monte Carlo with fixed seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/theory_latent.h"
#include "test_encoder_corpus_help.h"
#include "test_random_stats.h"

/* z of a mean against an estimate with its own error. */
static double two_z(const stats_mean *m, double want, double error)
{
    double mean = m->sum / m->n, variance = m->squares / m->n - mean * mean;
    return (mean - want) / sqrt(variance / m->n + error * error + 1e-30);
}

static void add_outcome(int64_t w, const double *p, int64_t y, const double *truth, double *sum)
{
    for (int64_t j = 0; j < w; j++) {
        double e = (double)(j == y);
        *sum += pow(e - exp(p[j]), 2) - pow(e - truth[j], 2);
    }
}

static void add_numbers(int64_t w, const double *p, const double *y, const double *truth,
                        double *sum)
{
    for (int64_t j = 0; j < w; j++)
        *sum += pow(y[j] - p[j], 2) - pow(y[j] - truth[j], 2);
}

/* |y - prediction|^2 - |y - truth|^2 has mean E |truth - prediction|^2, the risk of theory, as y is
 * drawn around the truth; without the noise of y itself. */
static void masked__risk_is_that_of_theory(void **state)
{
    (void)state;
    static const char *const families[] = {"concept",  "mean",   "process", "counts",
                                           "concepts", "sphere", "finite",  "urn"};
    enum { N = 2000, L = 9, M = 4 };
    stats_begin();
    for (int f = 0; f < 8; f++) {
        fin_latent_settings ls = help_defaults(families[f]);
        if (strcmp(families[f], "finite") == 0)
            ls.noise = 2; /* or nothing is left to tell */
        fin_latent *latent = help_latent(families[f], &ls, 21);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
        s.L = L;
        s.M = M;
        fin_corpus *corpus = corpus_latent(&s, latent);
        fin_examples e = {0};
        corpus_draw(corpus, FIN_TEST_FIRST, N, -1, 0, FIN_EXAMPLES_BAYES, &e);
        help_sequences b = help_draw(latent, FIN_TEST_FIRST, N, L, M);
        stats_mean risk = {0};
        for (int64_t i = 0; i < N; i++) {
            double sum = 0;
            for (int64_t q = 0; q < M; q++) {
                int64_t at = i * (L + M) + L + q;
                const double *truth = b.truth + (i * M + q) * b.width;
                const double *y = e.targets + at * b.shape.dv;
                if (b.shape.outcomes)
                    add_outcome(b.width, e.bayes + at * b.width, (int64_t)*y, truth, &sum);
                else
                    add_numbers(b.width, e.bayes + at * b.width, y, truth, &sum);
            }
            stats_add(&risk, sum / M);
        }
        fin_risk_settings r;
        fin_estimate want;
        fin_settings_defaults(&fin_risk_table, &r, sizeof r);
        r.samples = 2000;
        assert_int_equal(fin_latent_risk(latent, L, &r, NULL, &want, NULL), FIN_OK);
        print_message("%s: %.4f, theory %.4f +- %.4f\n", families[f], risk.sum / risk.n, want.value,
                      want.error);
        stats_z(families[f], two_z(&risk, want.value, want.error));
        help_free(&b);
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
    stats_end("masked risks");
}

/* Errors of a Bayes mean are orthogonal to it and have the variance that it says. Numbers of a
 * target may have different variances, so their sum is taken. */
static void check_calibration(const char *what, const fin_corpus *corpus, int64_t n)
{
    fin_examples e = {0};
    fin_encoder_shape shape;
    fin_corpus_get_shape(corpus, &shape);
    int64_t size = shape.head[0].size, answers = fin_head_answers(&shape.head[0]);
    corpus_draw(corpus, FIN_TEST_FIRST, n, -1, 0, FIN_EXAMPLES_BAYES, &e);
    assert_non_null(e.variance);
    stats_mean orthogonal = {0}, spread = {0};
    int64_t step = e.rows / n; /* the last row of a sequence: independent ones */
    for (int64_t row = step - 1; row < e.rows; row += step) {
        double product = 0, square = 0;
        for (int64_t j = 0; j < size; j++) {
            double p = e.bayes[row * answers + j], gap = e.targets[row * size + j] - p;
            product += gap * p;
            square += gap * gap;
            if (answers > size)
                assert_true(fabs(e.bayes[row * answers + size + j] - log(e.variance[row])) < 1e-12);
        }
        stats_add(&orthogonal, product);
        stats_add(&spread, square - (double)size * e.variance[row]);
    }
    stats_z(what, stats_mean_z(&orthogonal, 0));
    stats_z(what, stats_mean_z(&spread, 0));
    fin_examples_close(&e);
}

static void numbers__errors_are_orthogonal_and_as_large_as_said(void **state)
{
    (void)state;
    struct {
        const char *family;
        int objective;
    } cases[] = {{"concept", FIN_OBJECTIVE_MASKED},    {"mean", FIN_OBJECTIVE_MASKED},
                 {"process", FIN_OBJECTIVE_MASKED},    {"sphere", FIN_OBJECTIVE_MASKED},
                 {"finite", FIN_OBJECTIVE_MASKED},     {"concept", FIN_OBJECTIVE_SUPERVISED},
                 {"mean", FIN_OBJECTIVE_SUPERVISED},   {"counts", FIN_OBJECTIVE_SUPERVISED},
                 {"counts", FIN_OBJECTIVE_SUPERVISED}, {"concept", FIN_OBJECTIVE_SUPERVISED}};
    stats_begin();
    for (int i = 0; i < 10; i++) {
        fin_latent_settings ls = help_defaults(cases[i].family);
        if (ls.dv > 0 && strcmp(cases[i].family, "counts"))
            ls.dv = 1 + i % 3;
        if (i == 8)
            ls.skew = 1;
        if (i == 9)
            ls.features = FIN_FEATURES_QUADRATIC;
        fin_latent *latent = help_latent(cases[i].family, &ls, 31);
        fin_corpus_settings s = corpus_defaults(cases[i].objective);
        s.answer = (fin_choice)(i % 2);
        s.L = 4;
        s.M = 1;
        if (strcmp(cases[i].family, "counts") == 0)
            s.L = 1;
        s.label_noise = 1e-4;
        fin_corpus *corpus = corpus_latent(&s, latent);
        check_calibration(cases[i].family, corpus, 6000);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
    stats_end("calibration");
}

/* mean: the label's Bayes variance is noise prior / (noise + L prior) + label_noise, as |A| = 1. */
static void supervised__mean_has_a_closed_form(void **state)
{
    (void)state;
    fin_latent_settings ls = help_defaults("mean");
    ls.dv = 3;
    ls.prior = 2;
    ls.noise = 0.5;
    fin_latent *latent = help_latent("mean", &ls, 1);
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    s.label_noise = 0.25;
    fin_corpus *corpus = corpus_latent(&s, latent);
    for (int64_t L = 1; L < 40; L += 13) {
        fin_examples e = {0};
        corpus_draw(corpus, 0, 2, L, 0, FIN_EXAMPLES_BAYES, &e);
        double want = 0.5 * 2 / (0.5 + (double)L * 2) + 0.25;
        assert_true(fabs(e.variance[1] - want) < 1e-12);
        fin_examples_close(&e);
    }
    fin_corpus_destroy(corpus);
    fin_latent_destroy(latent);
}

/* Probabilities p of a class y: E (1[y = c] - p_c) p_c = 0 for every c; the label is z. */
static void classes__are_calibrated(void **state)
{
    (void)state;
    static const char *const families[] = {"concepts", "finite"};
    enum { N = 8000 };
    stats_begin();
    for (int f = 0; f < 2; f++) {
        fin_latent_settings ls = help_defaults(families[f]);
        ls.concepts = 5;
        fin_latent *latent = help_latent(families[f], &ls, 12);
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
        s.L = 3;
        fin_corpus *corpus = corpus_latent(&s, latent);
        fin_examples e = {0};
        corpus_draw(corpus, 0, N, -1, 0, FIN_EXAMPLES_BAYES, &e);
        assert_null(e.variance);
        double *z = help_array(N);
        assert_int_equal(
            fin_latent_draw(latent, 0, &(fin_latent_sample){.n = N, .L = 3, .z = z}, NULL), FIN_OK);
        assert_memory_equal(z, e.targets, N * sizeof *z);
        stats_mean right = {0};
        for (int64_t c = 0; c < 5; c++) {
            stats_mean m = {0};
            for (int64_t i = 0; i < N; i++) {
                double p = exp(e.bayes[i * 5 + c]);
                stats_add(&m, ((double)((int64_t)e.targets[i] == c) - p) * p);
            }
            stats_z(families[f], stats_mean_z(&m, 0));
        }
        for (int64_t i = 0; i < N; i++)
            stats_add(&right, exp(e.bayes[i * 5 + (int64_t)e.targets[i]]));
        assert_true(right.sum / N > 0.3); /* it does tell more than the prior's 0.2 */
        free(z);
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_latent_destroy(latent);
    }
    stats_end("classes");
}

static void tasks__risk_is_that_of_theory(void **state)
{
    (void)state;
    enum { N = 8000 };
    stats_begin();
    for (int t = 0; t < fin_task_count(); t++) {
        const fin_task_kind *kind = fin_task_at(t);
        fin_task_settings ts;
        fin_settings_defaults(fin_task_kind_table(kind), &ts, sizeof ts);
        ts.d = 6;
        ts.L = 5;
        ts.eps = 0.2;
        fin_task *task;
        fin_corpus *corpus;
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
        assert_int_equal(fin_task_create(&task, kind, &ts, NULL, 4, FIN_TASK_AMBIENT, NULL),
                         FIN_OK);
        assert_int_equal(fin_corpus_task(&corpus, &s, task, NULL), FIN_OK);
        fin_examples e = {0};
        corpus_draw(corpus, FIN_TEST_FIRST, N, -1, 0, FIN_EXAMPLES_BAYES, &e);
        stats_mean risk = {0}, said = {0};
        for (int64_t i = 0; i < N; i++) {
            stats_add(&risk, pow(e.targets[i] - e.bayes[i], 2));
            stats_add(&said, e.variance[i]);
        }
        fin_estimate want;
        fin_risk_settings r;
        fin_settings_defaults(&fin_risk_table, &r, sizeof r);
        r.samples = 20000;
        assert_int_equal(fin_risk_bayes(task, &r, NULL, &want, NULL), FIN_OK);
        print_message("%s: %.4f, theory %.4f\n", fin_task_kind_name(kind), risk.sum / N,
                      want.value);
        stats_z(fin_task_kind_name(kind), two_z(&risk, want.value, want.error));
        stats_z(fin_task_kind_name(kind), two_z(&said, want.value, want.error));
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
        fin_task_destroy(task);
    }
    stats_end("tasks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked__risk_is_that_of_theory),
        cmocka_unit_test(numbers__errors_are_orthogonal_and_as_large_as_said),
        cmocka_unit_test(supervised__mean_has_a_closed_form),
        cmocka_unit_test(classes__are_calibrated),
        cmocka_unit_test(tasks__risk_is_that_of_theory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
