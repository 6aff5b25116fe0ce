/* Numbers on many features: L-BFGS with the second derivatives of least squares (bags_ridge.c). The
 * minimum is checked by what defines it, without anything that looks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "fault.h"
#include "bags/descend.h"

#include <string.h>

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = model;
    settings.calibrate = settings.locator = 1; /* no */
    return settings;
}

/* Gradient of  (n + 5)/(2n) log(RSS + 0.5) + penalty/(2n) |v|^2  in (v, b), with n the sum of the
 * weights: its length. */
static double slope_at(const fini_phi *phi, const double *labels, const double *weights,
                       double penalty, const double *x)
{
    int64_t p = phi->bags.d;
    double n = 0, rss = 0.5, square = 0, *g = calloc((size_t)p + 1, sizeof *g);
    for (int64_t i = 0; i < phi->bags.n; i++) {
        const double *row = (const double *)phi->bags.tokens + i * p;
        double rest = x[p] - labels[i];
        for (int64_t j = 0; j < p; j++)
            rest += x[j] * row[j];
        n += weights[i];
        rss += weights[i] * rest * rest;
        for (int64_t j = 0; j < p; j++)
            g[j] += weights[i] * rest * row[j];
        g[p] += weights[i] * rest;
    }
    for (int64_t j = 0; j <= p; j++) {
        double t = g[j] * (n + 5) / n / rss + (j < p ? penalty / n * x[j] : 0);
        square += t * t;
    }
    free(g);
    return sqrt(square);
}

static void ridge__ends_at_the_minimum(void **state)
{
    (void)state;
    enum { N = 240 };
    bags_sample s = bags_make(N, 3, 0, 3, 0.1, 31);
    double weights[N];
    for (int model = FIN_MODEL_EMBEDDING; model <= FIN_MODEL_MAX; model++)
        for (int unequal = 0; unequal < 2; unequal++) {
            fin_fit_settings settings = settings_of(model);
            settings.basis = FIN_BASIS_BOTH;
            settings.landmarks = 200;
            fini_part part = {0};
            fini_phi phi;
            for (int i = 0; i < N; i++)
                weights[i] = unequal ? (i % 7) / 3.0 : 1;
            assert_int_equal(
                fini_part_fit(&part, &settings, 0, &s.bags, s.labels, weights, NULL, NULL, NULL),
                FIN_OK);
            assert_int_equal(fini_map_apply(&part.map, &s.bags, &phi, NULL, NULL), FIN_OK);
            double *zero = calloc((size_t)part.parameters, sizeof *zero);
            assert_true(fini_ridge_helps(&phi, unequal ? 205 : N));
            assert_int_equal(part.unfinished, 0);
            assert_true(part.iterations < 60 * part.members); /* hundreds each without */
            for (int64_t m = 0; m < part.members; m++) {
                double first = slope_at(&phi, s.labels, weights, part.penalty[m], zero);
                double last = slope_at(&phi, s.labels, weights, part.penalty[m],
                                       part.member + m * part.parameters);
                assert_true(last < 1e-6 * first);
            }
            free(zero);
            fini_phi_close(&phi);
            fini_part_close(&part);
        }
    bags_free(&s);
}

/* Second moments are those of a plain sum, over several panels and with bags of weight 0; solving
 * with them undoes multiplying. */
static void ridge__inverts_second_moments(void **state)
{
    (void)state;
    enum { N = 3000, P = 300 };
    const double variance = 0.3, penalty = 0.01;
    int64_t *offsets = malloc((N + 1) * sizeof *offsets);
    double *x = malloc(sizeof(double[N][P])), *weights = malloc(sizeof(double[N]));
    double v[P + 1], d[P + 1], n = 0;
    for (int i = 0; i <= N; i++)
        offsets[i] = i;
    fin_random_normals_f64(32, FIN_STREAM_USER, 0, 0, (int64_t)N * P, x);
    fin_random_normals_f64(33, FIN_STREAM_USER, 0, 0, P + 1, v);
    for (int i = 0; i < N; i++)
        n += weights[i] = i % 5;
    fini_phi phi = {.bags = {N, P, 0, N, offsets, FIN_F64, x, NULL, NULL}};
    for (int j = 0; j < P; j++)
        d[j] = penalty * v[j];
    d[P] = v[P] / variance;
    for (int i = 0; i < N; i++) {
        double along = 0;
        for (int j = 0; j < P; j++)
            along += x[i * P + j] * v[j];
        for (int j = 0; j < P; j++)
            d[j] += weights[i] / n / variance * along * x[i * P + j];
    }
    fini_ridge *ridge;
    const fini_problem problem = {
        .phi = &phi, .weights = weights, .weight = n, .sum = fini_sum_alone};
    assert_int_equal(fini_ridge_create(&ridge, &problem, NULL), FIN_OK);
    assert_false(fini_ridge_solve(ridge, P + 1, d)); /* there is no factor yet */
    assert_int_equal(fini_ridge_factor(ridge, penalty, variance, NULL, NULL), FIN_OK);
    assert_true(fini_ridge_solve(ridge, P + 1, d));
    for (int j = 0; j <= P; j++)
        assert_true(fabs(d[j] - v[j]) < 1e-9);
    fini_ridge_destroy(ridge);
    free(offsets);
    free(x);
    free(weights);
}

static fin_status work(void *user, fin_error *err)
{
    const bags_sample *s = user;
    fin_fit_settings settings = settings_of(FIN_MODEL_EMBEDDING);
    settings.penalty = 1;
    fin_fit *fit;
    fin_status status = fin_fit_create(&fit, &settings, 0, &s->bags, NULL, NULL, NULL, err);
    fin_fit_destroy(fit);
    return status;
}

static void ridge__survives_failing_allocations(void **state)
{
    (void)state;
    bags_sample s = bags_make(70, 3, 0, 3, 0.3, 34);
    assert_true(fault_every(work, &s) > 10);
    bags_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ridge__ends_at_the_minimum),
        cmocka_unit_test(ridge__inverts_second_moments),
        cmocka_unit_test(ridge__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
