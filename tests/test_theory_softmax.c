/* Softmax and hardmax on M by quadrature, the best linear attention, and what is above the Bayes risk. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_theory_help.h"
#include "theory/theory.h"

static fin_task *slr(double gamma, double mu, int64_t L_min, int64_t L, int64_t m, double eps)
{
    fin_task *task;
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = 30;
    s.L = L;
    s.L_min = L_min;
    s.m = m;
    s.gamma = gamma;
    s.mu = mu;
    s.eps = eps;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 11, 0, &err));
    return task;
}

static fin_estimate risk_of(const fin_task *task, const char *form, double lam,
                            const fin_overlaps *o, int method)
{
    fin_form_settings fs = {lam, 0};
    fin_risk_settings rs;
    fin_risk_report r;
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    rs.method = method;
    OK(fin_risk(task, fin_form_find(form), &fs, o, &rs, NULL, &r, &err));
    return r.risk;
}

static const fin_overlaps oracle = {1, 1, 0, 0, 0};

/* Logistic and order statistics, 40 digits. */
static void softmax__matches_reference(void **state)
{
    (void)state;
    fin_table *table;
    double worst = 0;
    OK(fin_table_read(FIN_TEST_DATA "/softmax_risk.csv", &table, &err));
#define COLUMN(name) fin_table_values(table, fin_table_column(table, #name))
    const double *lam = COLUMN(lambda), *gamma = COLUMN(gamma), *mu = COLUMN(mu);
    const double *kappa = COLUMN(kappa), *nu = COLUMN(nu), *L = COLUMN(L), *eps = COLUMN(eps);
    const double *expected = COLUMN(risk);
    for (int64_t i = 0; i < fin_table_rows(table); i++) {
        fin_task *task = slr(gamma[i], mu[i], (int64_t)L[i], (int64_t)L[i], 1, eps[i]);
        fin_estimate r =
            risk_of(task, isinf(lam[i]) ? "hardmax" : "softmax", isinf(lam[i]) ? 0 : lam[i],
                    &(fin_overlaps){kappa[i], nu[i], 0, 0, 0}, FIN_METHOD_AUTO);
        assert_int_equal(r.method, FIN_METHOD_QUADRATURE);
        worst = fmax(worst, fabs(r.value / expected[i] - 1));
        if (!(fabs(r.value / expected[i] - 1) < 1e-12))
            fail_msg("row %d: %.17g, not %.17g", (int)i, r.value, expected[i]);
        fin_task_destroy(task);
    }
    printf("worst relative error %.2g\n", worst);
    fin_table_destroy(table);
}

/* Where it is the posterior, E[(1 - w_J)^2 + sum w_l^2] is E[1 - w_J], which another integral gives; the union bound
 * over the other tokens is sharp for a strong signal. */
static void softmax__is_bayes_where_it_is_the_posterior(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 10, 1000, 1000000};
    for (double snr = 0.3; snr < 300; snr *= 6)
        for (int i = 0; i < 6; i++) {
            fin_task *task = make("spiked", 20, lengths[i], lengths[i], 1, snr, 0);
            fin_estimate r = risk_of(task, "softmax", sqrt(snr), &oracle, FIN_METHOD_AUTO), b, two;
            OK(fin_spiked_bayes(snr, lengths[i], &b, &err));
            OK(fin_spiked_bayes(snr, 2, &two, &err));
            if (!(fabs(r.value - 0.09 - b.value) <= 1e-11 * b.value + 1e-16))
                fail_msg("snr %g, L %d: %.17g, not %.17g", snr, (int)lengths[i], r.value, b.value);
            assert_true(b.value <= (double)(lengths[i] - 1) * two.value * (1 + 1e-12));
            if (snr > 60 && lengths[i] == 10)
                assert_true(b.value > 8.9 * two.value);
            fin_task_destroy(task);
        }
    fin_task *max = make("max", 20, 7, 7, 1, 3, 0);
    fin_estimate b;
    OK(fin_max_bayes(3, 7, &b, &err));
    assert_true(fabs(risk_of(max, "softmax", 3, &oracle, FIN_METHOD_QUADRATURE).value - 0.09 -
                     b.value) < 1e-14);
    fin_task_destroy(max);
}

static void agree(const fin_task *task, const char *form, double lam, const fin_overlaps *o,
                  double *worst)
{
    fin_estimate exact = risk_of(task, form, lam, o, FIN_METHOD_QUADRATURE);
    fin_estimate simulated = risk_of(task, form, lam, o, FIN_METHOD_SIMULATION);
    double z = (exact.value - simulated.value) / simulated.error;
    *worst = fmax(*worst, fabs(z));
    if (!(fabs(z) < 5))
        fail_msg("%s, lam %g: %g by quadrature, %g +- %g", form, lam, exact.value, simulated.value,
                 simulated.error);
}

static void softmax__agrees_with_simulation(void **state)
{
    (void)state;
    static const double gammas[] = {0, 0.3, 1, 2.5};
    const fin_overlaps o[2] = {{0.8, 0.6, 0, 0, 0}, {-0.5, -0.2, 0, 0, 0}};
    double worst = 0;
    for (int g = 0; g < 4; g++)
        for (int k = 0; k < 2; k++)
            for (int varied = 0; varied < 2; varied++) {
                fin_task *task = slr(gammas[g], 2.5, varied ? 2 : 6, 6, 1, 0.3);
                for (double lam = 0.3; lam < 10; lam *= 12)
                    agree(task, "softmax", lam, &o[k], &worst);
                if (gammas[g] > 0)
                    agree(task, "hardmax", 0, &o[k], &worst);
                fin_task_destroy(task);
            }
    fin_task *max = make("max", 20, 2, 7, 1, 3, 0);
    agree(max, "softmax", 3, &(fin_overlaps){1, -0.4, 0, 0, 0}, &worst);
    fin_task_destroy(max);
    printf("worst |z| %.2g\n", worst);
}

/* A narrow relevant token and steep scores: what does not settle is simulated and says so, or is refused. */
static void softmax__falls_back_to_simulation(void **state)
{
    (void)state;
    fin_task *task = slr(1e-6, 2.5, 6, 6, 1, 0.3);
    fin_estimate r = risk_of(task, "softmax", 1e5, &oracle, FIN_METHOD_AUTO);
    fin_estimate s = risk_of(task, "softmax", 1e5, &oracle, FIN_METHOD_SIMULATION);
    assert_true(r.method == FIN_METHOD_SIMULATION ? r.value == s.value
                                                  : fabs(r.value - s.value) < 5 * s.error);
    fin_form_settings fs = {1, 0};
    fin_risk_settings rs;
    fin_risk_report report;
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    rs.method = FIN_METHOD_QUADRATURE;
    assert_int_equal(fin_risk(task, fin_form_find("softmax"), &fs,
                              &(fin_overlaps){0.5, 0.5, 0, 0, 0.1}, &rs, NULL, &report, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "on M"));
    fin_task_destroy(task);
}

/* By theorem without a search, by a search in exact risks, and by one in simulated risks that does not walk off to where
 * all samples are 0. */
static void lam_star__of_softmax_is_the_posteriors(void **state)
{
    (void)state;
    fin_form_settings fs = {1, 0};
    fin_risk_settings rs;
    fin_estimate star, bayes;
    double lam;
    const fin_form *softmax = fin_form_find("softmax");
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    fin_task *task = make("spiked", 20, 10, 10, 1, 64, 0);
    OK(fin_spiked_bayes(64, 10, &bayes, &err));
    OK(fin_lam_star(task, softmax, &fs, &rs, NULL, &lam, &star, &err));
    assert_true(lam == 8 && fabs(star.value - 0.09 - bayes.value) < 1e-16);
    rs.method = FIN_METHOD_QUADRATURE;
    fin_task_destroy(task);
    { /* its eps is 0.3: more signal is below the rounding of eps^2 */
        const double snr = 4;
        task = make("spiked", 20, 10, 10, 1, snr, 0);
        OK(fin_lam_star(task, softmax, &fs, &rs, NULL, &lam, &star, &err));
        assert_true(fabs(lam / sqrt(snr) - 1) < 1e-6);
        fin_task_destroy(task);
    }
    fin_task *certain = slr(1, 8, 10, 10, 1, 0);
    OK(fin_lam_star(certain, softmax, &fs, &rs, NULL, &lam, &star, &err));
    assert_true(fabs(lam / 8 - 1) < 1e-6 && fabs(star.value / bayes.value - 1) < 1e-11);
    rs.method = FIN_METHOD_SIMULATION;
    rs.samples = 5000;
    OK(fin_lam_star(certain, softmax, &fs, &rs, NULL, &lam, &star, &err));
    assert_true(star.rare && lam < 8);
    fin_task_destroy(certain);
    task = make("max", 20, 10, 10, 1, 3, 0);
    rs.method = FIN_METHOD_AUTO;
    OK(fin_lam_star(task, softmax, &fs, &rs, NULL, &lam, &star, &err));
    assert_true(lam == 3 && star.method == FIN_METHOD_QUADRATURE);
    fin_task_destroy(task);
}

/* ---- above Bayes ------------------------------------------------------------------------------- */

/* Is the difference of the two risks, and better known than they are. */
/* lam = auto of softmax: the posterior's where it is one, else what the search over a grid finds. */
static void lam_auto__is_the_best_known(void **state)
{
    (void)state;
    const fin_form *softmax = fin_form_find("softmax");
    static const struct {
        double gamma, mu;
        int64_t L_min, L, m;
        double eps, tolerance;
    } tries[] = {
        {1, 3, 2, 7, 1, 0.5, 1e-15},        {0.7, 3, 10, 10, 1, 0, 1e-3},
        {0.7, 14, 10, 10, 1, 0, 1e-3},      {3, 2.2, 10, 10, 1, 0, 1e-3},
        {0.3, 1.4, 100, 100, 1, 0.1, 1e-3}, {0.7, 2, 2, 90, 1, 0, 0.05}, /* of the mean length */
        {0.7, 5, 10, 10, 2, 0, 0.02},                                    /* simulated */
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        fin_task *task =
            slr(tries[i].gamma, tries[i].mu, tries[i].L_min, tries[i].L, tries[i].m, tries[i].eps);
        fin_form_settings fs;
        fin_estimate star;
        double lam;
        OK(fini_form_resolve(task, softmax, NULL, &fs, &err));
        OK(fin_lam_star(task, softmax, NULL, NULL, NULL, &lam, &star, &err));
        print_message("auto %.6g, best %.6g\n", fs.lam, lam);
        assert_false(star.rare);
        assert_true(fabs(fs.lam / lam - 1) <= tries[i].tolerance);
        assert_true(fin_is_auto(fs.lam) == 0 && fs.lam <= 1e6);
        fin_task_destroy(task);
    }
    fin_form_settings fs;
    fin_task *task = slr(0.7, 1000, 10, 10, 1, 0.5); /* risks below all numbers: as of two tokens */
    OK(fini_form_resolve(task, softmax, NULL, &fs, &err));
    assert_true(fabs(fs.lam / (2000 / 1.49) - 1) < 1e-15);
    fin_task_destroy(task);
    task = slr(0, 3, 10, 10, 1, 0);
    OK(fini_form_resolve(task, softmax, NULL, &fs, &err));
    assert_true(fs.lam == 6);
    fin_task_destroy(task);
}

static void over_bayes__is_the_difference(void **state)
{
    (void)state;
    static const struct {
        const char *task, *form;
        double lam;
        fin_overlaps o;
        bool near; /* the predictions are alike, and so are their errors */
    } rows[] = {
        {"spiked", "softplus", 2, {1, 1, 0, 0, 0}, false},
        {"spiked", "softmax", 1.5, {0.9, 0.8, 0.1, -0.2, 0.1}, false},
        {"spiked", "softmax", 1.7, {1, 1, 0, 0, 0}, true},
        {"max", "softmax", 2.2, {1, 1, 0, 0, 0}, true},
        {"max", "hardmax", 0, {0.9, 0.8, 0.1, -0.2, 0.1}, false},
        {"slr", "softmax", 1.5, {0.9, 0.8, 0.1, -0.2, 0.1}, false},
        {"slr", "bayes", FIN_AUTO, {0.9, 0.8, 0.1, -0.2, 0.1}, false},
        {"max", "erf", 0.5, {0.9, 0.8, 0.1, -0.2, 0.1}, false},
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fin_task *task = make(rows[i].task, 12, 2, 6, 1, 3, 0);
        fin_form_settings fs = {rows[i].lam, strcmp(rows[i].form, "bayes") ? 0 : FIN_AUTO};
        const fin_form *form = fin_form_find(rows[i].form);
        fin_risk_settings rs;
        fin_risk_report risk;
        fin_estimate over, bayes;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        rs.method = FIN_METHOD_SIMULATION;
        OK(fin_risk(task, form, &fs, &rows[i].o, &rs, NULL, &risk, &err));
        OK(fin_risk_over_bayes(task, form, &fs, &rows[i].o, &rs, NULL, &over, &err));
        rs.method = FIN_METHOD_AUTO;
        OK(fin_risk_bayes(task, &rs, NULL, &bayes, &err));
        double z = (risk.risk.value - bayes.value - over.value) /
                   (risk.risk.error + bayes.error + over.error);
        worst = fmax(worst, fabs(z));
        if (!(fabs(z) < 4))
            fail_msg("row %d: %g - %g is not %g +- %g", (int)i, risk.risk.value, bayes.value,
                     over.value, over.error);
        assert_true(over.method == FIN_METHOD_SIMULATION && over.value >= 0);
        if (rows[i].near)
            assert_true(over.error < 0.1 * risk.risk.error);
        fin_task_destroy(task);
    }
    printf("worst |z| %.2g\n", worst);
}

/* The form is the posterior: 0, and no rare samples. A lam beside it is above Bayes. */
static void over_bayes__of_the_posterior_is_0(void **state)
{
    (void)state;
    static const struct {
        const char *task, *form;
        double gamma, lam;
    } rows[] = {
        {"spiked", "softmax", 1, 3},     {"max", "softmax", 1, 9},      {"slr", "softmax", 1, 3},
        {"slr", "bayes", 0.6, FIN_AUTO}, {"max", "bayes", 1, FIN_AUTO},
    };
    const fin_overlaps at = {1, 1, 0, 0, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fin_task *task = strcmp(rows[i].task, "slr") ? make(rows[i].task, 12, 2, 6, 1, 9, 0)
                                                     : slr(rows[i].gamma, 3, 2, 6, 1, 0.4);
        fin_form_settings fs = {rows[i].lam, strcmp(rows[i].form, "bayes") ? 0 : FIN_AUTO};
        const fin_form *form = fin_form_find(rows[i].form);
        fin_risk_settings rs;
        fin_estimate over;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        rs.method = FIN_METHOD_SIMULATION;
        rs.samples = 4000;
        OK(fin_risk_over_bayes(task, form, &fs, &at, &rs, NULL, &over, &err));
        assert_true(over.method == FIN_METHOD_SIMULATION && over.samples == 4000 && !over.rare);
        assert_true(over.value >= 0 && over.value < 1e-24 && over.error >= over.value &&
                    over.error < 1e-24);
        if (strcmp(rows[i].form, "softmax") == 0) {
            fs.lam *= 1.2;
            OK(fin_risk_over_bayes(task, form, &fs, &at, &rs, NULL, &over, &err));
            assert_true(over.value > 4 * over.error && !over.rare);
        }
        fin_task_destroy(task);
    }
}

/* ---- linear attention -------------------------------------------------------------------------- */

/* The least of s (1 + lam chi) over s, from the risks at v and -v: E[Y f] and E[f^2]. */
static double least_over_scale(const fin_task *task, double lam, int method, double *error)
{
    double eps2 = fin_task_get_settings(task)->eps * fin_task_get_settings(task)->eps;
    double var =
        (double)fin_task_get_settings(task)->m * pow(fin_task_get_settings(task)->gamma, 2);
    fin_estimate plus = risk_of(task, "linear", lam, &oracle, method);
    fin_estimate minus = risk_of(task, "linear", lam, &(fin_overlaps){1, -1, 0, 0, 0}, method);
    double cross = (minus.value - plus.value) / 4,
           square = (minus.value + plus.value) / 2 - eps2 - var;
    *error = plus.error + minus.error;
    return eps2 + var - cross * cross / square;
}

static void linear_attention__is_the_best(void **state)
{
    (void)state;
    for (int c = 0; c < 8; c++) {
        fin_task *task =
            make(cases[c].name, 12, cases[c].L_min, cases[c].L, cases[c].m, cases[c].snr, 0);
        bool odds = strcmp(cases[c].name, "max") == 0;
        fin_estimate best;
        double lam, error;
        OK(fin_risk_linear_attention(task, &lam, &best, &err));
        int method = odds ? FIN_METHOD_SIMULATION : FIN_METHOD_CLOSED;
        double here = least_over_scale(task, lam, method, &error);
        if (!(fabs(best.value - here) < 1e-12 + 5 * error))
            fail_msg("case %d: %g at lam = %g, not %g +- %g", c, here, lam, best.value, error);
        for (double away = 0.8; away < 1.3 && !odds; away += 0.3999)
            assert_true(least_over_scale(task, lam * away, method, &error) > best.value);
        fin_task_destroy(task);
    }
    fin_estimate best;
    fin_task *many = make("max", 12, 6, 6, 3, 2, 0), *one = make("spiked", 12, 1, 1, 1, 2, 0);
    assert_int_equal(fin_risk_linear_attention(many, NULL, &best, &err), FIN_ERR_UNSUPPORTED);
    OK(fin_risk_linear_attention(one, NULL, &best, &err));
    assert_true(best.value == 0.3 * 0.3);
    fin_task_destroy(many);
    fin_task_destroy(one);
    for (int64_t L = 2; L < 500; L = 3 * L + 1) { /* the sequel's formula, one length */
        one = make("spiked", 12, L, L, 1, 7, 0);
        OK(fin_risk_linear_attention(one, NULL, &best, &err));
        assert_true(fabs(best.value - 0.09 - fin_spiked_linear(7, L)) < 1e-14);
        fin_task_destroy(one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax__matches_reference),
        cmocka_unit_test(softmax__is_bayes_where_it_is_the_posterior),
        cmocka_unit_test(softmax__agrees_with_simulation),
        cmocka_unit_test(softmax__falls_back_to_simulation),
        cmocka_unit_test(lam_star__of_softmax_is_the_posteriors),
        cmocka_unit_test(lam_auto__is_the_best_known),
        cmocka_unit_test(over_bayes__is_the_difference),
        cmocka_unit_test(over_bayes__of_the_posterior_is_0),
        cmocka_unit_test(linear_attention__is_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
