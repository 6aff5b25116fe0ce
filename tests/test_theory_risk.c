/* Risks of every task with every form: Monte Carlo in R^d and in the span against theory; the
 * sequel's closed forms; Bayes, linear and lambda*. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "finetti.h"

static fin_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static fin_task *make(const char *name, int64_t d, int64_t L_min, int64_t L, int64_t m, double snr,
                      int flags)
{
    fin_task *task;
    fin_task_settings s;
    const fin_task_kind *kind = fin_task_find(name);
    fin_settings_defaults(fin_task_kind_settings(kind), &s);
    s.d = d;
    s.L = L;
    s.L_min = L_min;
    s.m = m;
    s.eps = 0.3;
    s.snr = snr;
    s.mu = 2.5;
    OK(fin_task_create(&task, kind, &s, NULL, 11, flags, &err));
    return task;
}

/* Squared errors of a form over n samples drawn in the span: mean and standard error. */
static void monte_carlo_span(const fin_task *task, const fin_form *form,
                             const fin_form_settings *fs, const fin_overlaps *o, int64_t n,
                             double *mean, double *se)
{
    enum { CHUNK = 5000 };
    int64_t most = CHUNK * fin_task_longest(task);
    int64_t *offsets = malloc((CHUNK + 1) * sizeof *offsets);
    double *y = malloc(CHUNK * sizeof *y), *w = malloc((size_t)most * sizeof *w);
    fin_projections p = {.chi = malloc((size_t)most * sizeof(double)),
                         .z = malloc((size_t)most * sizeof(double)),
                         .norm2 = malloc((size_t)most * sizeof(double))};
    double sum = 0, sum2 = 0;
    for (int64_t first = 0; first < n; first += CHUNK) {
        OK(fin_task_offsets(task, (uint64_t)first, CHUNK, offsets, &err));
        OK(fin_task_project(task, o, (uint64_t)first, CHUNK, offsets, &p, y, NULL, &err));
        OK(fin_form_weights(form, fs, CHUNK, offsets, p.chi, p.norm2, w, &err));
        for (int64_t i = 0; i < CHUNK; i++) {
            double f = 0;
            for (int64_t l = offsets[i]; l < offsets[i + 1]; l++)
                f += w[l] * p.z[l];
            double miss = (f - y[i]) * (f - y[i]);
            sum += miss;
            sum2 += miss * miss;
        }
    }
    *mean = sum / (double)n;
    *se = sqrt((sum2 / (double)n - *mean * *mean) / (double)n);
    free(offsets), free(y), free(w), free(p.chi), free(p.z), free(p.norm2);
}

/* The same from tokens in R^d, through fin_task_draw and fin_attention_forward. */
static void monte_carlo_ambient(const fin_task *task, const fin_form *form,
                                const fin_form_settings *fs, const double *k, const double *v,
                                int64_t n, double *mean, double *se)
{
    enum { CHUNK = 5000 };
    int64_t d = fin_task_get_settings(task)->d, most = CHUNK * fin_task_longest(task);
    int64_t *offsets = malloc((CHUNK + 1) * sizeof *offsets);
    double *y = malloc(CHUNK * sizeof *y), *f = malloc(CHUNK * sizeof *f);
    float *tokens = malloc((size_t)(most * d) * sizeof *tokens);
    fin_attention *attention;
    OK(fin_attention_create(&attention, form, fs, d, FIN_F32, fin_task_longest(task), &err));
    OK(fin_attention_set(attention, NULL, k, v, &err));
    double sum = 0, sum2 = 0;
    for (int64_t first = 0; first < n; first += CHUNK) {
        OK(fin_task_offsets(task, (uint64_t)first, CHUNK, offsets, &err));
        OK(fin_task_draw(task, (uint64_t)first, CHUNK, FIN_F32, offsets, tokens, y, NULL, &err));
        fin_batch batch = {CHUNK, d, FIN_F32, tokens, offsets};
        OK(fin_attention_forward(attention, &batch, f, NULL, &err));
        for (int64_t i = 0; i < CHUNK; i++) {
            double miss = (f[i] - y[i]) * (f[i] - y[i]);
            sum += miss;
            sum2 += miss * miss;
        }
    }
    *mean = sum / (double)n;
    *se = sqrt((sum2 / (double)n - *mean * *mean) / (double)n);
    fin_attention_destroy(attention);
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

static const struct {
    const char *name;
    int64_t L_min, L, m;
    double snr;
} cases[] = {
    {"slr", 6, 6, 1, 0},        {"slr", 2, 9, 1, 0},    {"slr", 6, 6, 3, 0},
    {"spiked", 6, 6, 1, 3},     {"spiked", 2, 9, 2, 3}, {"max", 6, 6, 1, 2},
    {"max", 6, 6, 1, INFINITY}, {"max", 2, 9, 1, 2},    {"max", 6, 6, 3, 2},
    {"max", 6, 6, 2, INFINITY},
};

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

static void risk__monte_carlo_agrees_for_every_task_and_form(void **state)
{
    (void)state;
    enum { D = 12 };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fin_task *task = make(cases[c].name, D, cases[c].L_min, cases[c].L, cases[c].m,
                              cases[c].snr, FIN_TASK_AMBIENT);
        double k[D], v[D], mean, se;
        fin_overlaps o;
        directions(task, k, v, &o);
        for (int f = 0; f < fin_form_count(); f++) {
            const fin_form *form = fin_form_at(f);
            fin_form_settings fs = {0.4, 0.2};
            fin_risk_settings rs;
            fin_risk_report report, simulated;
            fin_settings_defaults(&fin_risk_settings_table, &rs);
            if (strcmp(fin_form_name(form), "bayes") == 0)
                fin_task_bayes_parameters(task, &fs.lam, &fs.c);
            rs.seed = 77;
            rs.samples = 40000;
            OK(fin_risk(task, form, &fs, &o, &rs, NULL, &report, &err));
            monte_carlo_span(task, form, &fs, &o, 40000, &mean, &se);
            check_z("span", task, form, mean, se, &report.risk);
            monte_carlo_ambient(task, form, &fs, k, v, 10000, &mean, &se);
            check_z("ambient", task, form, mean, se, &report.risk);
            rs.method = 3; /* simulation in the span, where the answer is known exactly */
            OK(fin_risk(task, form, &fs, &o, &rs, NULL, &simulated, &err));
            if (report.risk.method == FIN_METHOD_CLOSED)
                check_z("library", task, form, simulated.risk.value, simulated.risk.error,
                        &report.risk);
        }
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
    double mean, se;
    fin_settings_defaults(&fin_risk_settings_table, &rs);
    OK(fin_risk(task, form, &fs, &wrong, &rs, NULL, &report, &err));
    monte_carlo_span(task, form, &fs, &o, 200000, &mean, &se);
    printf("z = %.1f\n", (mean - report.risk.value) / se);
    assert_true(fabs(mean - report.risk.value) > 5 * se);
    fin_task_destroy(task);
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
            fin_settings_defaults(&fin_risk_settings_table, &rs);
            OK(fin_risk(task, fin_form_find(forms[f]), &fs, &o, &rs, NULL, &closed, &err));
            assert_int_equal(closed.risk.method, FIN_METHOD_CLOSED);
            rs.method = 2;
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
    OK(fin_risk_activation(task, sine, &a, &oracle, 64, &r, &err));
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
                fin_settings_defaults(&fin_risk_settings_table, &rs);
                rs.samples = L[j] > 10 ? 4000 : 20000;
                OK(fin_risk_bayes(task, &rs, NULL, &exact, &err));
                assert_int_equal(exact.method, FIN_METHOD_QUADRATURE);
                if (snr[i] == 0)
                    assert_true(fabs(exact.value - 0.09 - (1 - 1.0 / (double)L[j])) < 1e-12);
                rs.method = 3;
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
        fin_settings_defaults(&fin_risk_settings_table, &rs);
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

/* Bayes <= best of any form <= linear baseline; softmax at the right lambda is Bayes on spiked. */
static void risks__are_ordered(void **state)
{
    (void)state;
    fin_task *task = make("spiked", 100, 8, 8, 1, 4, 0);
    fin_risk_settings rs;
    fin_estimate bayes, star;
    double lam;
    fin_form_settings fs = {2, 0};
    fin_settings_defaults(&fin_risk_settings_table, &rs);
    OK(fin_risk_bayes(task, &rs, NULL, &bayes, &err));
    OK(fin_lambda_star(task, fin_form_find("softmax"), &fs, &rs, NULL, &lam, &star, &err));
    printf("lambda* = %.4f (theory 2), risk %.5f +- %.5f, Bayes %.5f\n", lam, star.value,
           star.error, bayes.value);
    assert_true(fabs(lam - 2) < 0.1);
    assert_true(fabs(star.value - bayes.value) < 5 * star.error);
    OK(fin_lambda_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &star, &err));
    assert_true(bayes.value < star.value && star.value < fin_risk_linear(task, NULL).value);
    assert_int_equal(
        fin_lambda_star(task, fin_form_find("hardmax"), &fs, &rs, NULL, &lam, &star, &err),
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
        fin_settings_defaults(&fin_risk_settings_table, &rs);
        OK(fin_lambda_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &star, &err));
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
    fin_settings_defaults(&fin_risk_settings_table, &rs);
    rs.method = 3; /* four dimensions are needed, there are three */
    assert_int_equal(fin_risk(slr, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_risk(max, fin_form_find("softmax"), &fs, &impossible, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_risk(max, fin_form_find("softmax"), &fs, &nan, &rs, NULL, &r, &err),
                     FIN_ERR_ARGUMENT);
    for (int method = 1; method <= 2; method++) {
        rs.method = method;
        assert_int_equal(fin_risk(slr, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, &err),
                         FIN_ERR_UNSUPPORTED);
        assert_int_equal(fin_risk(max, fin_form_find("erf"), &fs, &o, &rs, NULL, &r, &err),
                         FIN_ERR_UNSUPPORTED);
        assert_int_equal(fin_risk_bayes(slr, &rs, NULL, &e, &err), FIN_ERR_UNSUPPORTED);
    }
    rs.method = 0;
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
    fin_settings_defaults(&fin_risk_settings_table, &rs);
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
    assert_int_equal(fin_lambda_star(task, fin_form_find("softmax"), &fs, &rs, &progress,
                                     &(double){0}, bayes, &err),
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
    fin_settings_defaults(fin_task_kind_settings(fin_task_find("slr")), &s);
    s.d = 5;
    fin_status status = fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, e);
    if (status)
        return status;
    fin_form_settings fs = {0.4, 0};
    fin_overlaps o = {0.5, 0.5, 0.1, 0.1, 0.1};
    fin_risk_settings rs = {0, 1000, 32, 1};
    fin_risk_report r;
    fin_estimate estimate;
    double lam;
    if (!(status = fin_risk(task, fin_form_find("softmax"), &fs, &o, &rs, NULL, &r, e)) &&
        !(status = fin_risk_bayes(task, &rs, NULL, &estimate, e)) &&
        !(status = fin_risk_activation(task, sine, &fs.lam, &o, 32, &r, e)))
        status = fin_lambda_star(task, fin_form_find("erf"), &fs, &rs, NULL, &lam, &estimate, e);
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
        cmocka_unit_test(risk__monte_carlo_agrees_for_every_task_and_form),
        cmocka_unit_test(risk__monte_carlo_rejects_a_wrong_risk),
        cmocka_unit_test(risk__closed_form_equals_quadrature),
        cmocka_unit_test(risk_activation__sine),
        cmocka_unit_test(spiked_bayes__matches_reference),
        cmocka_unit_test(bayes__quadrature_agrees_with_simulation),
        cmocka_unit_test(bayes__simulation_equals_the_predictor_on_tokens),
        cmocka_unit_test(risks__are_ordered),
        cmocka_unit_test(lambda_star__is_a_minimum),
        cmocka_unit_test(linear__closed_forms),
        cmocka_unit_test(risk__refuses_what_cannot_be),
        cmocka_unit_test(simulation__same_bytes_for_any_threads_and_can_be_cancelled),
        cmocka_unit_test(theory__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
