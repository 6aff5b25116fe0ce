/* Risks of every task with every form: Monte Carlo in R^d and in the span against theory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_size.h"
#include "test_theory_help.h"

/* Forms that are tried on the same samples, and their squared errors. */
typedef struct tried {
    const fin_form *form;
    fin_form_settings settings;
    double sum, sum2, mean, se;
} tried;

static void add(tried *f, double miss)
{
    f->sum += miss * miss;
    f->sum2 += miss * miss * miss * miss;
}

/* Mean and standard error over n samples. */
static void finish(tried *forms, int count, int64_t n)
{
    for (tried *f = forms; f < forms + count; f++) {
        f->mean = f->sum / (double)n;
        f->se = sqrt((f->sum2 / (double)n - f->mean * f->mean) / (double)n);
        f->sum = f->sum2 = 0;
    }
}

/* Squared errors of forms over n samples drawn in the span; n is a multiple of CHUNK. */
enum { CHUNK = 5000 };
static void monte_carlo_span(const fin_task *task, tried *forms, int count, const fin_overlaps *o,
                             int64_t n)
{
    int64_t most = CHUNK * fin_task_longest(task);
    int64_t *offsets = malloc((CHUNK + 1) * sizeof *offsets);
    double *y = malloc(CHUNK * sizeof *y), *w = malloc((size_t)most * sizeof *w);
    fin_projections p = {.chi = malloc((size_t)most * sizeof(double)),
                         .z = malloc((size_t)most * sizeof(double)),
                         .norm2 = malloc((size_t)most * sizeof(double))};
    for (int64_t first = 0; first < n; first += CHUNK) {
        OK(fin_task_offsets(task, (uint64_t)first, CHUNK, offsets, &err));
        OK(fin_task_project(task, o, (uint64_t)first, CHUNK, offsets, &p, y, NULL, &err));
        for (int j = 0; j < count; j++) {
            OK(fin_form_weights(forms[j].form, &forms[j].settings, CHUNK, offsets, p.chi, p.norm2,
                                w, &err));
            for (int64_t i = 0; i < CHUNK; i++) {
                double f = 0;
                for (int64_t l = offsets[i]; l < offsets[i + 1]; l++)
                    f += w[l] * p.z[l];
                add(&forms[j], f - y[i]);
            }
        }
    }
    finish(forms, count, n);
    free(offsets), free(y), free(w), free(p.chi), free(p.z), free(p.norm2);
}

/* The same from tokens in R^d, through fin_task_draw and fin_attention_forward. */
static void monte_carlo_ambient(const fin_task *task, tried *forms, int count, const double *k,
                                const double *v, int64_t n)
{
    int64_t d = fin_task_get_settings(task)->d, most = CHUNK * fin_task_longest(task);
    int64_t *offsets = malloc((CHUNK + 1) * sizeof *offsets);
    double *y = malloc(CHUNK * sizeof *y), *f = malloc(CHUNK * sizeof *f);
    float *tokens = malloc((size_t)(most * d) * sizeof *tokens);
    for (int64_t first = 0; first < n; first += CHUNK) {
        OK(fin_task_offsets(task, (uint64_t)first, CHUNK, offsets, &err));
        OK(fin_task_draw(task, (uint64_t)first, CHUNK, FIN_F32, offsets, tokens, y, NULL, &err));
        fin_batch batch = {CHUNK, d, FIN_F32, tokens, offsets};
        for (int j = 0; j < count; j++) {
            fin_attention *attention;
            OK(fin_attention_create(&attention, forms[j].form, &forms[j].settings, d, FIN_F32,
                                    fin_task_longest(task), &err));
            OK(fin_attention_set(attention, NULL, k, v, &err));
            OK(fin_attention_forward(attention, &batch, f, NULL, &err));
            for (int64_t i = 0; i < CHUNK; i++)
                add(&forms[j], f[i] - y[i]);
            fin_attention_destroy(attention);
        }
    }
    finish(forms, count, n);
    free(offsets), free(y), free(f), free(tokens);
}

/* Unit vectors with generic overlaps, and those overlaps. */
static void directions(const fin_task *task, double *k, double *v, fin_overlaps *o)
{
    int64_t d = fin_task_get_settings(task)->d;
    const double *ks = fin_task_k_star(task), *vs = fin_task_v_star(task);
    fin_random random;
    fin_random_open(&random, 3, FIN_STREAM_USER, 0);
    fin_random_sphere(&random, d, k);
    fin_random_sphere(&random, d, v);
    double nk = 0, nv = 0;
    for (int64_t i = 0; i < d; i++) {
        k[i] = 0.6 * k[i] + ks[i] - 0.2 * vs[i];
        v[i] = 0.6 * v[i] + vs[i] + 0.3 * ks[i];
        nk += k[i] * k[i];
        nv += v[i] * v[i];
    }
    *o = (fin_overlaps){0, 0, 0, 0, 0};
    for (int64_t i = 0; i < d; i++) {
        k[i] /= sqrt(nk);
        v[i] /= sqrt(nv);
    }
    for (int64_t i = 0; i < d; i++) {
        o->kappa += k[i] * ks[i];
        o->nu += v[i] * vs[i];
        o->theta += v[i] * ks[i];
        o->eta += k[i] * vs[i];
        o->rho += k[i] * v[i];
    }
}

static void check_z(const char *what, const fin_task *task, const fin_form *form, double mean,
                    double se, const fin_estimate *theory)
{
    double z = (mean - theory->value) /
               hypot(se, theory->method == FIN_METHOD_SIMULATION ? theory->error : 0);
    printf("  %-8s %-7s %-9s %.5f +- %.5f, %s %.5f, z = %+.2f\n", what,
           fin_task_kind_name(fin_task_get_kind(task)), fin_form_name(form), mean, se,
           fin_method_name(theory->method), theory->value, z);
    assert_true(fabs(z) < 5);
}

/* Usual: the standard errors are at most 0.9 % of the risk in the span and 1.8 % in R^d, so that a
 * closed form that is 5 or 9 % off is seen; small: 2.6 % of both, 13 %. */
static void risk__monte_carlo_agrees_for_every_task_and_form(void **state)
{
    (void)state;
    enum { D = 12, MOST = 16 };
    const int count = fin_form_count();
    assert_in_range(count, 1, MOST);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fin_task *task = make(cases[c].name, D, cases[c].L_min, cases[c].L, cases[c].m,
                              cases[c].snr, FIN_TASK_AMBIENT);
        double k[D], v[D];
        fin_overlaps o;
        tried forms[MOST] = {{0}};
        fin_risk_report report[MOST], simulated;
        fin_risk_settings rs;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        rs.seed = 77;
        rs.samples = sized(CHUNK, 40000, 40000);
        directions(task, k, v, &o);
        for (int f = 0; f < count; f++) {
            forms[f].form = fin_form_at(f);
            forms[f].settings = (fin_form_settings){0.4, 0.2};
            if (strcmp(fin_form_name(forms[f].form), "bayes") == 0)
                fin_task_bayes_parameters(task, &forms[f].settings.lam, &forms[f].settings.c);
            rs.method = FIN_METHOD_AUTO;
            OK(fin_risk(task, forms[f].form, &forms[f].settings, &o, &rs, NULL, &report[f], &err));
            if (report[f].risk.method != FIN_METHOD_CLOSED)
                continue;
            /* simulation in the span, where the answer is known exactly */
            rs.method = FIN_METHOD_SIMULATION;
            OK(fin_risk(task, forms[f].form, &forms[f].settings, &o, &rs, NULL, &simulated, &err));
            check_z("library", task, forms[f].form, simulated.risk.value, simulated.risk.error,
                    &report[f].risk);
        }
        monte_carlo_span(task, forms, count, &o, sized(CHUNK, 40000, 200000));
        for (int f = 0; f < count; f++)
            check_z("span", task, forms[f].form, forms[f].mean, forms[f].se, &report[f].risk);
        monte_carlo_ambient(task, forms, count, k, v, sized(CHUNK, 10000, 40000));
        for (int f = 0; f < count; f++)
            check_z("ambient", task, forms[f].form, forms[f].mean, forms[f].se, &report[f].risk);
        fin_task_destroy(task);
    }
}

/* `bayes` with a lam and c of one's own, where |X|^2 counts on every task: a wrong posterior. */
static void risk__bayes_with_other_parameters(void **state)
{
    (void)state;
    fin_overlaps o = {0.8, 0.7, 0.1, -0.2, 0.1};
    fin_form_settings fs = {0.7, -0.1};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fin_task *task =
            make(cases[c].name, 12, cases[c].L_min, cases[c].L, cases[c].m, cases[c].snr, 0);
        fin_risk_settings rs;
        fin_risk_report report;
        tried bayes = {.form = fin_form_find("bayes"), .settings = fs};
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        rs.samples = sized(CHUNK, rs.samples, rs.samples);
        OK(fin_risk(task, bayes.form, &fs, &o, &rs, NULL, &report, &err));
        monte_carlo_span(task, &bayes, 1, &o, sized(CHUNK, 40000, 200000));
        check_z("other", task, bayes.form, bayes.mean, bayes.se, &report.risk);
        fin_task_destroy(task);
    }
}

/* A wrong formula must be seen by that test: the risk at other overlaps is rejected. */
static void risk__monte_carlo_rejects_a_wrong_risk(void **state)
{
    (void)state;
    fin_task *task = make("slr", 12, 6, 6, 1, 0, 0);
    const fin_form *form = fin_form_find("erf");
    fin_form_settings fs = {0.4, 0};
    fin_overlaps o = {0.6, 0.5, 0.1, -0.2, 0.2}, wrong = {0.6, 0.5, 0.1, -0.2, 0.1};
    fin_risk_settings rs;
    fin_risk_report report;
    tried erf = {.form = form, .settings = fs};
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    OK(fin_risk(task, form, &fs, &wrong, &rs, NULL, &report, &err));
    monte_carlo_span(task, &erf, 1, &o, 40000); /* as many as above */
    printf("z = %.1f\n", (erf.mean - report.risk.value) / erf.se);
    assert_true(fabs(erf.mean - report.risk.value) > 5 * erf.se);
    fin_task_destroy(task);
}

/* With varying lengths too, the standard error is that of the mean over seeds. */
static void simulation__standard_error_covers_the_seeds(void **state)
{
    (void)state;
    enum { SEEDS = 200 };
    fin_task *task = make("slr", 30, 1, 50, 1, 0, 0);
    fin_overlaps o = {0.5, 0.5, 0.1, 0.1, 0.1};
    fin_form_settings fs = {0.3, 0};
    fin_risk_settings rs;
    fin_risk_report exact, r;
    fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
    OK(fin_risk(task, fin_form_find("linear"), &fs, &o, &rs, NULL, &exact, &err));
    double sum = 0, sum2 = 0;
    rs.method = FIN_METHOD_SIMULATION;
    rs.samples = sized(200, 2000, 2000); /* of each seed; the bounds are those of 200 seeds */
    for (int seed = 0; seed < SEEDS; seed++) {
        rs.seed = seed;
        OK(fin_risk(task, fin_form_find("linear"), &fs, &o, &rs, NULL, &r, &err));
        double z = (r.risk.value - exact.risk.value) / r.risk.error;
        sum += z;
        sum2 += z * z;
    }
    printf("over seeds: mean z %.2f, mean square %.2f\n", sum / sqrt(SEEDS), sum2 / SEEDS);
    assert_true(fabs(sum) < 5 * sqrt(SEEDS));
    assert_true(fabs(sum2 / SEEDS - 1) < 5 * sqrt(2.0 / SEEDS));
    fin_task_destroy(task);
}

/* General L: no signal is a uniform guess, one token is known, and simulation agrees. */
static void bayes__quadrature_agrees_with_simulation(void **state)
{
    (void)state;
    static const double snr[] = {0, 0.3, 1, 2, 6, 20};
    static const int64_t L[] = {1, 2, 3, 10, 100};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 5; j++)
            for (int max = 0; max < 2; max++) {
                fin_task *task = make(max ? "max" : "spiked", 9, L[j], L[j], 1, snr[i], 0);
                fin_risk_settings rs;
                fin_estimate exact, simulated;
                fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
                rs.samples = sized(1000, L[j] > 10 ? 4000 : 20000, L[j] > 10 ? 4000 : 20000);
                OK(fin_risk_bayes(task, &rs, NULL, &exact, &err));
                if (L[j] == 1) { /* the token is known, whatever method is wished for */
                    assert_true(exact.method == FIN_METHOD_CLOSED && exact.value == 0.3 * 0.3);
                    fin_task_destroy(task);
                    continue;
                }
                assert_int_equal(exact.method, FIN_METHOD_QUADRATURE);
                if (snr[i] == 0)
                    assert_true(fabs(exact.value - 0.09 - (1 - 1.0 / (double)L[j])) < 1e-12);
                rs.method = FIN_METHOD_SIMULATION;
                OK(fin_risk_bayes(task, &rs, NULL, &simulated, &err));
                assert_int_equal(simulated.method, FIN_METHOD_SIMULATION);
                assert_true(fabs(simulated.value - exact.value) <= 5 * simulated.error + 1e-12);
                fin_task_destroy(task);
            }
    fin_estimate r;
    OK(fin_max_bayes(INFINITY, 10, &r, &err));
    assert_true(r.value == 0);
    assert_int_equal(fin_spiked_bayes(NAN, 2, &r, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_spiked_bayes(1, 0, &r, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_max_bayes(-1, 2, &r, &err), FIN_ERR_ARGUMENT);
}

/* slr: the Bayes risk by the library against the Bayes predictor run on tokens; variable lengths.
 */
static void bayes__simulation_equals_the_predictor_on_tokens(void **state)
{
    (void)state;
    enum { D = 5, N = 40000 };
    for (int varying = 0; varying < 2; varying++) {
        fin_task *task = make("slr", D, varying ? 2 : 6, 6, 1, 0, FIN_TASK_AMBIENT);
        fin_risk_settings rs;
        fin_estimate risk;
        fin_settings_defaults(&fin_risk_table, &rs, sizeof rs);
        OK(fin_risk_bayes(task, &rs, NULL, &risk, &err));
        int64_t *offsets = malloc((N + 1) * sizeof *offsets);
        double *tokens = malloc((size_t)N * 6 * D * sizeof *tokens), *y = malloc(N * sizeof *y);
        double *guess = malloc(N * sizeof *guess), sum = 0, sum2 = 0;
        OK(fin_task_offsets(task, 0, N, offsets, &err));
        OK(fin_task_draw(task, 0, N, FIN_F64, offsets, tokens, y, NULL, &err));
        fin_batch batch = {N, D, FIN_F64, tokens, offsets};
        OK(fin_task_predict(task, &batch, guess, &err));
        for (int i = 0; i < N; i++) {
            double miss = (guess[i] - y[i]) * (guess[i] - y[i]);
            sum += miss;
            sum2 += miss * miss;
        }
        double mean = sum / N, se = sqrt((sum2 / N - mean * mean) / N);
        double z = (mean - risk.value) / hypot(se, risk.error);
        printf("Bayes risk %.5f +- %.5f, on tokens %.5f +- %.5f, z = %+.2f\n", risk.value,
               risk.error, mean, se, z);
        assert_true(fabs(z) < 5);
        free(offsets), free(tokens), free(y), free(guess);
        fin_task_destroy(task);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(risk__monte_carlo_agrees_for_every_task_and_form),
        cmocka_unit_test(risk__bayes_with_other_parameters),
        cmocka_unit_test(risk__monte_carlo_rejects_a_wrong_risk),
        cmocka_unit_test(simulation__standard_error_covers_the_seeds),
        cmocka_unit_test(bayes__quadrature_agrees_with_simulation),
        cmocka_unit_test(bayes__simulation_equals_the_predictor_on_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
