/* Closed forms and quadratures against each other, Bayes, linear and lambda*, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "test_theory_help.h"

/* The error of a quadrature is an error: also for a weight so steep that few nodes see a step. */
static void quadrature__error_is_honest(void **state)
{
    (void)state;
    fin_overlaps o = {0.3, 0.7, 0.1, -0.2, 0.1};
    fin_risk_settings rs;
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    fin_task *task = make("slr", 400, 10, 10, 1, 0, 0);
    for (double lam = 0.01; lam < 2e5; lam *= 1.7)
        for (int64_t nodes = 64; nodes <= 65536; nodes *= 32) {
            fin_form_settings fs = {lam, 0};
            fin_risk_report closed, quadrature;
            rs.nodes = nodes;
            rs.method = FIN_METHOD_CLOSED;
            OK(fin_risk(task, fin_form_find("erf"), &fs, &o, &rs, NULL, &closed, &err));
            rs.method = FIN_METHOD_QUADRATURE;
            OK(fin_risk(task, fin_form_find("erf"), &fs, &o, &rs, NULL, &quadrature, &err));
            double off = fabs(quadrature.risk.value - closed.risk.value);
            if (!(off <= 3 * quadrature.risk.error))
                fail_msg("lam %g, %d nodes: off by %g, error %g", lam, (int)nodes, off,
                         quadrature.risk.error);
        }
    fin_task_destroy(task);
}

/* Weights 1 + erf far below zero: tiny, and their squares too. */
static void shifted__does_not_cancel(void **state)
{
    (void)state;
    fin_overlaps o = {0.8, 0.7, 0.1, -0.2, 0.1};
    fin_task *task = make("slr", 400, 1000000, 1000000, 1, 0, 0);
    for (double c = -1; c > -20; c -= 1.5) {
        fin_form_settings fs = {0.04, c};
        fin_risk_settings rs;
        fin_risk_report closed, quadrature;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        OK(fin_risk(task, fin_form_find("shifted"), &fs, &o, &rs, NULL, &closed, &err));
        rs.method = FIN_METHOD_QUADRATURE;
        /* 1 + erf(x) as erfc(-x), so that the quadrature is exact */
        OK(fin_risk(task, fin_form_find("shifted"), &fs, &o, &rs, NULL, &quadrature, &err));
        assert_true(fabs(closed.noise / quadrature.noise - 1) < 1e-9);
    }
    fin_task_destroy(task);
}

/* Where the relevant token is a constant, Y is noise. */
static void bayes__gamma_0(void **state)
{
    (void)state;
    fin_task *task;
    fin_task_settings s;
    fin_risk_settings rs;
    fin_estimate risk;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    s.gamma = 0;
    s.eps = 0.2;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err));
    OK(fin_risk_bayes(task, &rs, NULL, &risk, &err));
    assert_true(risk.method == FIN_METHOD_CLOSED && risk.value == 0.2 * 0.2);
    fin_task_destroy(task);
    s.gamma = 1e-170;
    assert_int_equal(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err),
                     FIN_ERR_ARGUMENT);
}

/* Closed forms of the element-wise forms against Gauss-Hermite, and the erf kernel against moments.
 */
static void risk__closed_form_equals_quadrature(void **state)
{
    (void)state;
    fin_overlaps o = {0.6, 0.5, 0.1, -0.2, 0.3};
    static const char *const forms[] = {"erf", "linear", "shifted"};
    for (int c = 0; c < 5; c++)
        for (int f = 0; f < 3; f++) {
            fin_task *task =
                make(cases[c].name, 12, cases[c].L_min, cases[c].L, cases[c].m, cases[c].snr, 0);
            fin_form_settings fs = {0.4, -0.6};
            fin_risk_settings rs;
            fin_risk_report closed, quadrature;
            fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
            OK(fin_risk(task, fin_form_find(forms[f]), &fs, &o, &rs, NULL, &closed, &err));
            assert_int_equal(closed.risk.method, FIN_METHOD_CLOSED);
            rs.method = FIN_METHOD_QUADRATURE;
            OK(fin_risk(task, fin_form_find(forms[f]), &fs, &o, &rs, NULL, &quadrature, &err));
            assert_int_equal(quadrature.risk.method, FIN_METHOD_QUADRATURE);
            double off = fabs(quadrature.risk.value / closed.risk.value - 1);
            assert_true(off < 1e-12);
            assert_true(quadrature.risk.error < 1e-6 * closed.risk.value);
            for (int j = 0; j < 5; j++)
                assert_true(fabs(quadrature.gradient[j] - closed.gradient[j]) <
                            1e-10 * closed.risk.value);
            fin_task_destroy(task);
        }
}

static double sine(double chi, void *user)
{
    return sin(*(double *)user * chi);
}

/* An activation of one's own: E sin^2 and E sin are elementary, so the oracle risk is too. */
static void risk_activation__sine(void **state)
{
    (void)state;
    fin_task *task = make("spiked", 50, 4, 4, 1, 2.25, 0);
    fin_overlaps oracle = {1, 1, 0, 0, 0};
    fin_risk_report r;
    double a = 0.9, mu = 1.5, damp = exp(-a * a / 2);
    OK(fin_risk_activation(task, sine, &a, &oracle, 65536, &r, &err));
    double m0 = sin(a * mu) * damp, h0 = (1 - cos(2 * a * mu) * pow(damp, 4)) / 2,
           n0 = (1 - pow(damp, 4)) / 2;
    double expected = 0.09 + 1 - 2 * m0 + h0 + 3 * n0;
    assert_true(fabs(r.risk.value - expected) < 1e-13);
    fin_task_destroy(task);
}

static void spiked_bayes__matches_reference(void **state)
{
    (void)state;
    fin_table *table;
    OK(fin_table_read(FIN_TEST_DATA "/spiked_bayes_L2.csv", &table, &err));
    const double *nu = fin_table_values(table, fin_table_column(table, "nu"));
    const double *expected = fin_table_values(table, fin_table_column(table, "E_bayes"));
    double worst = 0;
    for (int64_t i = 0; i < fin_table_rows(table); i++) {
        fin_estimate r;
        OK(fin_spiked_bayes(nu[i], 2, &r, &err));
        worst = fmax(worst, fabs(r.value - expected[i]));
    }
    printf("worst error %.2g\n", worst);
    assert_true(worst < 1e-13);
    fin_table_destroy(table);
}

/* Bayes <= best of any form <= linear baseline; softmax at the right lambda is Bayes on spiked. */
static void risks__are_ordered(void **state)
{
    (void)state;
    fin_task *task = make("spiked", 100, 8, 8, 1, 4, 0);
    fin_risk_settings rs;
    fin_estimate bayes, star;
    double lam;
    fin_form_settings fs = {2, 0};
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    OK(fin_risk_bayes(task, &rs, NULL, &bayes, &err));
    OK(fin_lam_star(task, fin_form_find("softmax"), &fs, &rs, NULL, &lam, &star, &err));
    printf("lambda* = %.4f (theory 2), risk %.5f +- %.5f, Bayes %.5f\n", lam, star.value,
           star.error, bayes.value);
    assert_true(fabs(lam - 2) < 0.1);
    assert_true(fabs(star.value - bayes.value) < 5 * star.error);
    OK(fin_lam_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &star, &err));
    assert_true(bayes.value < star.value && star.value < fin_risk_linear(task, NULL).value);
    assert_int_equal(
        fin_lam_star(task, fin_form_find("hardmax"), &fs, &rs, NULL, &lam, &star, &err),
        FIN_ERR_UNSUPPORTED);
    fin_task_destroy(task);
}

/* lambda* of erf: the derivative of the oracle risk vanishes there, and neighbours are worse. */
static void lambda_star__is_a_minimum(void **state)
{
    (void)state;
    for (int64_t L = 2; L <= 2000; L *= 10) {
        fin_task *task = make("slr", 400, L, L, 1, 0, 0);
        fin_form_settings fs = {1, 0};
        fin_risk_settings rs;
        fin_estimate star;
        fin_risk_report near;
        fin_overlaps oracle = {1, 1, 0, 0, 0};
        double lam;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        OK(fin_lam_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &star, &err));
        for (int side = -1; side <= 1; side += 2) {
            fs.lam = lam * (1 + side * 1e-3);
            OK(fin_risk(task, fin_form_find("erf"), &fs, &oracle, &rs, NULL, &near, &err));
            assert_true(near.risk.value > star.value);
        }
        fin_task_destroy(task);
    }
}

/* Best linear predictor: the formula of the theory file, its limit, and the sequel's attention
 * form. */
static void linear__closed_forms(void **state)
{
    (void)state;
    for (int64_t L = 1; L < 100000; L = 3 * L + 1) {
        fin_task *task = make("slr", 100, L, L, 1, 0, 0);
        double g2 = 0.5, l = (double)L, c;
        double expected = 0.09 + g2 - g2 * g2 / (g2 + l - 1);
        fin_estimate r = fin_risk_linear(task, &c);
        assert_true(fabs(r.value - expected) < 1e-13);
        assert_true(fabs(c - g2 / (g2 + l - 1)) < 1e-15);
        fin_task_destroy(task);
    }
    /* 1/(L/(L-1) + snr/L) is the least risk of linear attention with both scales free: the weight
     * s (1 + lam chi) on the spiked task, eps = 0, risk = 1 - 2 s a + s^2 b with
     * a = E[w_J] = 1 + lam mu and b = E[w_J^2] + (L-1) E[w^2]; least over s: 1 - a^2/b. */
    for (double snr = 0.5; snr < 100; snr *= 3)
        for (int64_t L = 2; L < 50; L += 7) {
            double least = 1, l = (double)L;
            for (double lam = 1e-3; lam < 1e3; lam *= 1.001) {
                double a = 1 + lam * sqrt(snr), b = a * a + lam * lam + (l - 1) * (1 + lam * lam);
                least = fmin(least, 1 - a * a / b);
            }
            assert_true(fabs(fin_spiked_linear(snr, L) - least) < 1e-6);
        }
}

static void risk__refuses_what_cannot_be(void **state)
{
    (void)state;
    fin_task *slr = make("slr", 3, 6, 6, 1, 0, 0), *max = make("max", 12, 6, 6, 2, 2, 0);
    fin_form_settings fs = {0.4, 0};
    fin_risk_settings rs;
    fin_risk_report r;
    fin_estimate e;
    fin_overlaps o = {0.5, 0.5, 0.1, 0.1, 0.1}, impossible = {1, 0, 0, 1, 0},
                 nan = {NAN, 0, 0, 0, 0};
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    rs.method = FIN_METHOD_SIMULATION; /* four dimensions are needed, there are three */
    assert_int_equal(fin_risk(slr, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_risk(max, fin_form_find("softmax"), &fs, &impossible, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_risk(max, fin_form_find("softmax"), &fs, &nan, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    for (int method = FIN_METHOD_CLOSED; method <= FIN_METHOD_QUADRATURE; method++) {
        rs.method = method;
        assert_int_equal(fin_risk(slr, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, &err),
                         FIN_ERR_UNSUPPORTED);
        assert_int_equal(fin_risk(max, fin_form_find("erf"), &fs, &o, &rs, NULL, &r, &err),
                         FIN_ERR_UNSUPPORTED);
        assert_int_equal(fin_risk_bayes(slr, &rs, NULL, &e, &err), FIN_ERR_UNSUPPORTED);
    }
    rs.method = FIN_METHOD_AUTO;
    assert_int_equal(fin_risk_bayes(max, &rs, NULL, &e, &err), FIN_ERR_UNSUPPORTED); /* m = 2 */
    rs.samples = 1;
    assert_int_equal(fin_risk_bayes(slr, &rs, NULL, &e, &err), FIN_ERR_ARGUMENT);
    fs.lam = NAN;
    rs.samples = 100;
    assert_int_equal(fin_risk(slr, fin_form_find("erf"), &fs, &o, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    fin_task_destroy(slr);
    fin_task_destroy(max);
}

/* Same bytes for any number of threads; cancelling works and says so. */
static int cancel_half(void *user, const char *what, double done, double total)
{
    (void)what;
    *(int *)user += 1;
    return done > total / 2;
}

static void simulation__same_bytes_for_any_threads_and_can_be_cancelled(void **state)
{
    (void)state;
    fin_task *task = make("slr", 30, 2, 9, 1, 0, 0);
    fin_form_settings fs = {0.4, 0};
    fin_overlaps o = {0.5, 0.5, 0.1, 0.1, 0.1};
    fin_risk_settings rs;
    fin_risk_report first, other;
    fin_estimate bayes[2];
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    for (int threads = 1; threads <= 5; threads += 2) {
        fin_threads_set(threads);
        OK(fin_risk(task, fin_form_find("softmax"), &fs, &o, &rs, NULL,
                    threads == 1 ? &first : &other, &err));
        OK(fin_risk_bayes(task, &rs, NULL, &bayes[threads > 1], &err));
        if (threads > 1) {
            assert_true(first.risk.value == other.risk.value &&
                        first.risk.error == other.risk.error);
            assert_true(bayes[0].value == bayes[1].value && bayes[0].error == bayes[1].error);
        }
    }
    fin_threads_set(0);
    int calls = 0;
    fin_progress progress = {cancel_half, &calls};
    assert_int_equal(
        fin_risk(task, fin_form_find("softmax"), &fs, &o, &rs, &progress, &first, &err),
        FIN_ERR_CANCELLED);
    assert_int_equal(fin_lam_star(task, fin_form_find("softmax"), &fs, &rs, &progress, &(double){0},
                                  bayes, &err),
                     FIN_ERR_CANCELLED);
    assert_true(calls > 2);
    fin_task_destroy(task);
}

/* Every allocation fails once: a status, nothing alive. */
static fin_status everything(void *user, fin_error *e)
{
    (void)user;
    fin_task *task;
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = 5;
    fin_status status = fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, e);
    if (status)
        return status;
    fin_form_settings fs = {0.4, 0};
    fin_overlaps o = {0.5, 0.5, 0.1, 0.1, 0.1};
    fin_risk_settings rs = {0, 1000, 4096, 1};
    fin_risk_report r;
    fin_estimate estimate;
    double lam;
    if (!(status = fin_risk(task, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, e)) &&
        !(status = fin_risk_bayes(task, &rs, NULL, &estimate, e)) &&
        !(status = fin_risk_activation(task, sine, &fs.lam, &o, 4096, &r, e)))
        status = fin_lam_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &estimate, e);
    fin_task_destroy(task);
    return status;
}

static void theory__survives_every_failed_allocation(void **state)
{
    (void)state;
    fault_every(everything, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quadrature__error_is_honest),
        cmocka_unit_test(shifted__does_not_cancel),
        cmocka_unit_test(bayes__gamma_0),
        cmocka_unit_test(risk__closed_form_equals_quadrature),
        cmocka_unit_test(risk_activation__sine),
        cmocka_unit_test(spiked_bayes__matches_reference),
        cmocka_unit_test(risks__are_ordered),
        cmocka_unit_test(lambda_star__is_a_minimum),
        cmocka_unit_test(linear__closed_forms),
        cmocka_unit_test(risk__refuses_what_cannot_be),
        cmocka_unit_test(simulation__same_bytes_for_any_threads_and_can_be_cancelled),
        cmocka_unit_test(theory__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
