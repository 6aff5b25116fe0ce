/* Risks of the families: closed forms against simulation, simulation against full draws, attention
 * against the posterior. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/theory_latent.h"
#include "test_random_stats.h"
#include "test_family_help.h"

static fin_risk_settings settings_of(fin_method method, int64_t samples)
{
    fin_risk_settings s;
    fin_settings_defaults(&fin_risk_table, &s, sizeof s);
    s.method = (fin_choice)method;
    s.samples = samples;
    s.seed = 71;
    return s;
}

static fin_estimate risk_of(const fin_latent *latent, int64_t L, fin_method method, int64_t samples)
{
    fin_risk_settings s = settings_of(method, samples);
    fin_estimate risk;
    fin_error err = {FIN_OK, ""};
    if (fin_latent_risk(latent, L, &s, NULL, &risk, &err))
        fail_msg("%s", err.message);
    return risk;
}

/* |truth - prediction|^2 of N sequences from the public calls alone. */
static stats_mean full_draws(const fin_latent *latent, int64_t L, int64_t N)
{
    enum { Q = 4 };
    stats_mean risk = {0};
    help_sequences b = help_draw(latent, 1000, N, L, Q);
    double *mean = help_array(Q * b.width);
    for (int64_t i = 0; i < N; i++) {
        double sum = 0;
        assert_int_equal(fin_latent_predict_tokens(
                             latent, L, b.keys + i * L * b.shape.dk, b.values + i * L * b.shape.dv,
                             Q, b.queries + i * Q * b.shape.dk, mean, NULL, NULL),
                         FIN_OK);
        for (int64_t j = 0; j < Q * b.width; j++) {
            double gap = mean[j] - b.truth[i * Q * b.width + j];
            sum += gap * gap / Q;
        }
        stats_add(&risk, sum);
    }
    free(mean);
    help_free(&b);
    return risk;
}

/* z of an estimate against another with its own error. */
static double two_z(const stats_mean *full, const fin_estimate *estimate)
{
    double mean = full->sum / full->n, variance = full->squares / full->n - mean * mean;
    return (mean - estimate->value) /
           sqrt(variance / full->n + estimate->error * estimate->error + 1e-30);
}

/* ---- closed forms ---------------------------------------------------------------------------- */

/* Values of the specification: sum a_j (a_0 - a_j) / (a_0 (a_0 + 1)(a_0 + L)). */
static void risk__counts_known_answers(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("counts");
    s.alpha = 1;
    s.outcomes = 4;
    fin_latent *latent = help_latent("counts", &s, 72);
    fin_estimate risk = risk_of(latent, 16, FIN_METHOD_AUTO, 2);
    assert_true(fabs(risk.value - 12.0 / (4 * 5 * 20)) < 1e-16);
    assert_true(risk.method == FIN_METHOD_CLOSED && risk.error == 0 && risk.samples == 0);
    fin_latent_destroy(latent);
}

static void risk__closed_forms_match_simulation(void **state)
{
    (void)state;
    static const char *const names[] = {"counts", "mean", "urn"};
    static const int64_t lengths[] = {0, 1, 10, 90};
    stats_begin();
    for (int f = 0; f < 3; f++) {
        fin_latent_settings s = help_defaults(names[f]);
        s.skew = 1;
        s.alpha = 0.7;
        s.dv = 3;
        s.prior = 2;
        s.noise = 1.5;
        fin_latent *latent = help_latent(names[f], &s, 73);
        for (int i = 0; i < 4; i++) {
            fin_estimate closed = risk_of(latent, lengths[i], FIN_METHOD_CLOSED, 2);
            fin_estimate drawn = risk_of(latent, lengths[i], FIN_METHOD_SIMULATION, 4000);
            assert_int_equal(closed.method, FIN_METHOD_CLOSED);
            assert_int_equal(drawn.method, FIN_METHOD_SIMULATION);
            stats_mean full = full_draws(latent, lengths[i], 500);
            stats_z(names[f], (drawn.value - closed.value) / (drawn.error + 1e-15));
            stats_z(names[f], two_z(&full, &closed));
        }
        fin_latent_destroy(latent);
    }
    stats_end("closed forms");
}

/* lam -> 0, Gaussian keys: dv s^2 D / (L - D - 1), the mean of an inverse Wishart matrix. */
static void risk__concept_without_prior(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concept");
    s.d = 4;
    s.dv = 2;
    s.noise = 0.5;
    s.prior = 1e9;
    fin_latent *latent = help_latent("concept", &s, 74);
    stats_begin();
    for (int64_t L = 16; L <= 256; L *= 4) {
        fin_estimate risk = risk_of(latent, L, FIN_METHOD_AUTO, 4000);
        double want = 2 * 0.5 * 4 / (double)(L - 4 - 1), far;
        print_message("L = %d: %.5f +- %.5f, %.5f\n", (int)L, risk.value, risk.error, want);
        stats_z("inverse Wishart", (risk.value - want) / risk.error);
        assert_int_equal(fin_latent_risk_long(latent, L, &far, NULL), FIN_OK);
        assert_true(fabs(far - 4.0 / (double)L) < 1e-15);
    }
    stats_end("concept");
    fin_latent_destroy(latent);
}

/* ---- simulations against full draws ---------------------------------------------------------- */

static void risk__matches_full_draws(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int keys, features;
        int64_t d;
    } cases[] = {{"concept", FIN_KEYS_GAUSSIAN, FIN_FEATURES_IDENTITY, 3},
                 {"concept", FIN_KEYS_SPHERE, FIN_FEATURES_AFFINE, 3},
                 {"concept", FIN_KEYS_VMF, FIN_FEATURES_IDENTITY, 3},
                 {"concept", FIN_KEYS_VMF, FIN_FEATURES_AFFINE, 1},
                 {"concept", FIN_KEYS_VMF, FIN_FEATURES_AFFINE, 4},
                 {"concept", FIN_KEYS_GAUSSIAN, FIN_FEATURES_QUADRATIC, 2},
                 {"concept", FIN_KEYS_VMF, FIN_FEATURES_FOURIER, 2},
                 {"process", FIN_KEYS_GAUSSIAN, 0, 2},
                 {"concepts", 0, 0, 1},
                 {"sphere", FIN_KEYS_VMF, 0, 2},
                 {"sphere", FIN_KEYS_SPHERE, 0, 3},
                 {"finite", FIN_KEYS_SPHERE, FIN_FEATURES_AFFINE, 2}};
    stats_begin();
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        for (int64_t L = 3; L <= 12; L += 9) {
            fin_latent_settings s = help_defaults(cases[i].family);
            s.keys = cases[i].keys;
            s.features = cases[i].features;
            s.d = cases[i].d;
            s.dv = 2;
            s.D = 8;
            s.prior = 1.5;
            s.noise = 0.4;
            s.rho = 3;
            fin_latent *latent = help_latent(cases[i].family, &s, 75);
            fin_estimate risk = risk_of(latent, L, FIN_METHOD_AUTO, 1000);
            stats_mean full = full_draws(latent, L, 1000);
            assert_int_equal(risk.method, FIN_METHOD_SIMULATION);
            assert_int_equal(risk.samples, 1000);
            stats_z(cases[i].family, two_z(&full, &risk));
            fin_latent_destroy(latent);
        }
    stats_end("simulations");
}

/* No tokens: the prior's variance. With Sigma_q known that is no simulation but for its name. */
static void risk__of_no_tokens(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concept");
    s.dv = 2;
    s.prior = 3;
    fin_latent *latent = help_latent("concept", &s, 76);
    fin_estimate risk = risk_of(latent, 0, FIN_METHOD_AUTO, 10);
    assert_true(fabs(risk.value - 2 * 3 * 5) < 1e-13 && risk.error < 1e-13);
    fin_latent_destroy(latent);
    s = help_defaults("sphere");
    latent = help_latent("sphere", &s, 76);
    double A = 1 / tanh(10.0) - 0.1; /* |A O q - 0|^2 */
    risk = risk_of(latent, 0, FIN_METHOD_AUTO, 10);
    assert_true(fabs(risk.value - A * A) < 1e-13);
    fin_latent_destroy(latent);
}

/* Wide and long together, dv noise (D/L) m, m by Marchenko and Pastur. Finite-size corrections are of order 1/D. */
static void risk__concept_is_wide(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concept");
    s.d = 60;
    s.prior = 1;
    s.noise = 20;
    fin_latent *latent = help_latent("concept", &s, 77);
    for (int64_t L = 40; L <= 160; L += 60) {
        fin_estimate risk = risk_of(latent, L, FIN_METHOD_AUTO, 60);
        double g = 60.0 / (double)L, x = 20.0 / (double)L, b = 1 - g + x;
        double want = 20 * g * (sqrt(b * b + 4 * g * x) - b) / (2 * g * x);
        print_message("L = %d: %.4f +- %.4f, wide %.4f\n", (int)L, risk.value, risk.error, want);
        assert_true(fabs(risk.value / want - 1) < 0.02);
    }
    fin_latent_destroy(latent);
}

/* ---- attention in place of the posterior ----------------------------------------------------- */

static fin_cross_settings cross_of(int form, int kernel, double scale, double prior, double noise)
{
    fin_cross_settings c;
    fin_settings_defaults(&fin_cross_table, &c, sizeof c);
    c.form = form;
    c.kernel = kernel;
    c.scale = scale;
    c.prior = prior;
    c.noise = noise;
    return c;
}

static fin_estimate cross_risk(const fin_latent *latent, const fin_cross_settings *cross, int64_t L,
                               int64_t samples)
{
    fin_risk_settings s = settings_of(FIN_METHOD_AUTO, samples);
    fin_estimate risk;
    fin_error err = {FIN_OK, ""};
    if (fin_latent_risk_cross(latent, cross, L, &s, NULL, &risk, &err))
        fail_msg("%s", err.message);
    return risk;
}

/* cme attention with the right ridge is Bayes, with a wrong one is worse, and so is softmax. */
static void cross__cme_is_bayes(void **state)
{
    (void)state;
    static const char *const names[] = {"concept", "process"};
    enum { N = 1200, L = 12 };
    stats_begin();
    for (int f = 0; f < 2; f++) {
        fin_latent_settings s = help_defaults(names[f]);
        s.d = 2;
        s.dv = 2;
        s.features = FIN_FEATURES_QUADRATIC;
        s.prior = 1.5;
        s.noise = 0.4;
        s.scale = 1.3;
        fin_latent *latent = help_latent(names[f], &s, 78);
        int kernel = f ? FIN_KERNEL_RBF : FIN_KERNEL_LINEAR;
        double scale = f ? 1.3 : 1;
        fin_cross_settings right = cross_of(FIN_CROSS_CME, kernel, scale, 1.5, 0.4),
                           wrong = cross_of(FIN_CROSS_CME, kernel, scale, 1.5, 4),
                           softmax = cross_of(FIN_CROSS_SOFTMAX, kernel, scale, 1.5, 4);
        fin_estimate bayes = risk_of(latent, L, FIN_METHOD_AUTO, N),
                     cme = cross_risk(latent, &right, L, N), bad = cross_risk(latent, &wrong, L, N),
                     soft = cross_risk(latent, &softmax, L, N);
        print_message("%s: Bayes %.4f, cme %.4f, ridge x 10 %.4f, softmax %.4f\n", names[f],
                      bayes.value, cme.value, bad.value, soft.value);
        stats_z("cme", (cme.value - bayes.value) / hypot(cme.error, bayes.error));
        assert_true(bad.value > cme.value + 5 * cme.error);
        assert_true(soft.value > cme.value + 5 * cme.error);
        fin_latent_destroy(latent);
    }
    stats_end("attention");
}

/* The control: with finitely many Z the posterior beats cme attention by far. */
static void cross__finite_set_has_a_gap(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("finite", NULL, 79);
    fin_cross_settings cme = cross_of(FIN_CROSS_CME, FIN_KERNEL_LINEAR, 1, 1, 0.1);
    fin_estimate bayes = risk_of(latent, 8, FIN_METHOD_AUTO, 2000),
                 attention = cross_risk(latent, &cme, 8, 2000);
    print_message("finite: Bayes %.2e, cme %.4f +- %.4f\n", bayes.value, attention.value,
                  attention.error);
    assert_true(attention.value - 5 * attention.error > bayes.value + 5 * bayes.error);
    fin_latent_destroy(latent);
}

static size_t largest; /* block that was asked for */

static void *watch_allocate(size_t size)
{
#pragma omp critical
    largest = size > largest ? size : largest;
    return malloc(size);
}

/* A batch has about 2^20 numbers, however many contexts there are and however long they are. */
static void cross__memory_does_not_grow_with_samples(void **state)
{
    (void)state;
    fin_cross_settings softmax = cross_of(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF, 1, 1, 0.1);
    fin_latent *latent = help_latent("finite", NULL, 79);
    largest = 0;
    fin_memory_hooks(watch_allocate, free);
    cross_risk(latent, &softmax, 1000, 4096);
    fin_memory_hooks(NULL, NULL);
    print_message("largest block: %.3g numbers\n", (double)largest / 8);
    assert_in_range(largest, 1, 2 * 8 << 20);
    fin_latent_destroy(latent);
}

/* ---- the same for any threads; refusals; memory ---------------------------------------------- */

static int cancel(void *user, const char *what, double done, double total)
{
    (void)user, (void)what, (void)total;
    return done > 0;
}

static void risk__same_bits_for_any_threads(void **state)
{
    (void)state;
    static const char *const names[] = {"concept", "process", "concepts", "sphere", "finite"};
    for (int f = 0; f < 5; f++) {
        fin_latent *latent = help_latent(names[f], NULL, 80);
        fin_cross_settings cme = cross_of(FIN_CROSS_CME, FIN_KERNEL_RBF, 1, 1, 0.1);
        fin_estimate one[2] = {{0}}, three[2] = {{0}};
        fin_threads_set(1);
        one[0] = risk_of(latent, 20, FIN_METHOD_AUTO, 300);
        if (f != 2)
            one[1] = cross_risk(latent, &cme, 20, 300);
        fin_threads_set(3);
        three[0] = risk_of(latent, 20, FIN_METHOD_AUTO, 300);
        if (f != 2)
            three[1] = cross_risk(latent, &cme, 20, 300);
        fin_threads_set(0);
        for (int i = 0; i < 2; i++)
            assert_true(one[i].value == three[i].value && one[i].error == three[i].error);
        fin_latent_destroy(latent);
    }
}

static void risk__refuses(void **state)
{
    (void)state;
    fin_error err;
    fin_estimate risk;
    double far;
    fin_risk_settings s = settings_of(FIN_METHOD_CLOSED, 1000);
    fin_latent *concept = help_latent("concept", NULL, 81),
               *counts = help_latent("counts", NULL, 81), *urn = help_latent("urn", NULL, 81),
               *process = help_latent("process", NULL, 81);
    assert_int_equal(fin_latent_risk(concept, 5, &s, NULL, &risk, &err), FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "simulation"));
    assert_int_equal(fin_latent_risk_cross(concept, NULL, 5, &s, NULL, &risk, &err),
                     FIN_ERR_UNSUPPORTED);
    s.method = FIN_METHOD_QUADRATURE;
    assert_int_equal(fin_latent_risk(counts, 5, &s, NULL, &risk, &err), FIN_ERR_UNSUPPORTED);
    s.method = FIN_METHOD_AUTO;
    assert_int_equal(fin_latent_risk(counts, -1, &s, NULL, &risk, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_latent_risk(urn, 100, &s, NULL, &risk, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "100 balls"));
    assert_int_equal(fin_latent_risk(urn, 99, &s, NULL, &risk, &err), FIN_OK);
    assert_int_equal(fin_latent_risk(process, 20000, &s, NULL, &risk, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_latent_risk(concept, INT64_MAX, &s, NULL, &risk, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_latent_risk_cross(concept, NULL, INT64_MAX, &s, NULL, &risk, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_latent_risk_cross(counts, NULL, 5, &s, NULL, &risk, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "keys"));
    assert_int_equal(fin_latent_risk_long(counts, 5, &far, &err), FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_latent_risk_long(concept, 0, &far, &err), FIN_ERR_ARGUMENT);
    fin_progress stop = {cancel, NULL};
    s.samples = 1000000;
    assert_int_equal(fin_latent_risk(concept, 50, &s, &stop, &risk, &err), FIN_ERR_CANCELLED);
    assert_int_equal(fin_latent_risk_cross(concept, NULL, 50, &s, &stop, &risk, &err),
                     FIN_ERR_CANCELLED);
    s.samples = 1;
    assert_int_equal(fin_latent_risk(concept, 5, &s, NULL, &risk, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_latent_risk_cross(concept, NULL, 5, &s, NULL, &risk, &err),
                     FIN_ERR_ARGUMENT);
    fin_latent_destroy(concept);
    fin_latent_destroy(counts);
    fin_latent_destroy(urn);
    fin_latent_destroy(process);
    /* What fails in the first context is said by name, at once: four dimensions, no such mean. */
    fin_latent_settings five = help_defaults("sphere");
    five.d = 4;
    fin_latent *sphere = help_latent("sphere", &five, 81);
    s.samples = INT64_C(1) << 40;
    assert_int_equal(fin_latent_risk(sphere, 5, &s, NULL, &risk, &err), FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "d = 2 and 3"));
    fin_latent_destroy(sphere);
}

static fin_status everything(void *user, fin_error *err)
{
    fin_risk_settings s = settings_of(FIN_METHOD_SIMULATION, 10);
    fin_estimate risk;
    fin_latent *latent;
    fin_status status = fin_latent_create(&latent, user, NULL, 1, err);
    if (!status)
        status = fin_latent_risk(latent, 5, &s, NULL, &risk, err);
    fin_latent_shape shape = {0};
    if (!status)
        fin_latent_get_shape(latent, &shape);
    if (!status && shape.dk > 0 && shape.outcomes == 0)
        status = fin_latent_risk_cross(latent, NULL, 5, &s, NULL, &risk, err);
    fin_latent_destroy(latent);
    return status;
}

static void memory__every_allocation_fails_once(void **state)
{
    (void)state;
    for (int f = 0; f < fin_family_count(); f++) {
        union {
            const fin_family *given;
            void *taken;
        } family = {fin_family_at(f)};
        assert_true(fault_every(everything, family.taken) >= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(risk__counts_known_answers),
        cmocka_unit_test(risk__closed_forms_match_simulation),
        cmocka_unit_test(risk__concept_without_prior),
        cmocka_unit_test(risk__matches_full_draws),
        cmocka_unit_test(risk__of_no_tokens),
        cmocka_unit_test(risk__concept_is_wide),
        cmocka_unit_test(cross__cme_is_bayes),
        cmocka_unit_test(cross__finite_set_has_a_gap),
        cmocka_unit_test(cross__memory_does_not_grow_with_samples),
        cmocka_unit_test(risk__same_bits_for_any_threads),
        cmocka_unit_test(risk__refuses),
        cmocka_unit_test(memory__every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
