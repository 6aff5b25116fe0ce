/* Closed forms on the sphere: against quadrature, identities and the numbers of a separate numpy
 * prototype (four digits), and the errors of attention against simulated attention. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "finetti/random.h"
#include "finetti/theory_latent.h"
#include "test_random_stats.h"
#include "math/bessel.h"
#include "math/small.h"
#include "theory/sphere.h"

#include <stdio.h>
#include <string.h>

static void close_to(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s is %.17g, should be %.17g", what, got, want);
}

/* mu_l = E[e^{kappa (t-1)} p_l(t)], p_l the Gegenbauer polynomial with p_l(1) = 1 and t the cosine
 * of two uniform directions, of density (1-t^2)^{(d-3)/2}; in theta, where d = 2 is smooth.
 *     (l+d-2) p_{l+1} = (2l+d-2) t p_l - l p_{l-1}. */
static double eigenvalue_by_quadrature(int d, double kappa, int l)
{
    enum { NODES = 300 };
    static double node[NODES], weight[NODES];
    double sum = 0, total = 0;
    if (node[0] == 0)
        assert_int_equal(fini_legendre(NODES, node, weight, NULL), FIN_OK);
    for (int i = 0; i < NODES; i++) {
        double theta = (node[i] + 1) * 1.5707963267948966, t = cos(theta), before = 0, now = 1;
        double density = weight[i] * pow(sin(theta), d - 2);
        for (int k = 0; k < l; k++) {
            double next = k == 0 ? t : ((2 * k + d - 2) * t * now - k * before) / (k + d - 2);
            before = now;
            now = next;
        }
        sum += density * exp(kappa * (t - 1)) * now;
        total += density;
    }
    return sum / total;
}

static void eigenvalue__is_funk_and_heckes(void **state)
{
    (void)state;
    const double kappas[] = {0, 0.1, 3, 40, 500};
    for (int d = 2; d <= 9; d++)
        for (size_t k = 0; k < sizeof kappas / sizeof *kappas; k++)
            for (int l = 0; l <= 12; l++)
                close_to("mu", fini_sphere_eigenvalue(d, kappas[k], l),
                         eigenvalue_by_quadrature(d, kappas[k], l), 2e-15);
}

/* sum_l N_l mu_l = k(q, q) = 1, N_l known by heart for small d, and no overflow anywhere. */
static void eigenvalue__has_trace_one(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, 3, 4, 10, 100};
    const double kappas[] = {1e-8, 1, 30, 1000};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 4; k++) {
            double sum = 0;
            for (int64_t l = 0; l < 600; l++) {
                double mu = fini_sphere_eigenvalue(sizes[i], kappas[k], l);
                assert_true(mu >= 0 && mu <= 1);
                sum += mu > 0 ? fini_sphere_multiplicity(sizes[i], l) * mu : 0;
            }
            close_to("trace", sum, 1, 1e-12);
        }
    /* past the product of ratios, and at the edge of doubles: mu_0 ~ (2 pi kappa)^-1/2, d = 2 */
    close_to("far degree", fini_sphere_filter_softmax(3, 1e8, 4097) / exp(-4097 * 4098 / 2e8), 1,
             1e-6);
    close_to("seam",
             fini_sphere_filter_softmax(3, 1e6, 4097) / fini_sphere_filter_softmax(3, 1e6, 4096),
             fini_bessel_ratio(4096.5, 1e6), 1e-11);
    close_to("sharp", fini_sphere_eigenvalue(2, 1e200, 0) * sqrt(6.283185307179586e200), 1, 1e-12);
    assert_true(fini_sphere_eigenvalue(3, INFINITY, 2) == 0);
    assert_true(fini_sphere_filter_softmax(3, INFINITY, 2) == 1 &&
                fini_sphere_mean(5, INFINITY) == 1);
    assert_true(fini_sphere_eigenvalue(1000000, 1e5, 100000) == 0);
    assert_true(fini_sphere_eigenvalue(3, 0, 0) == 1 && fini_sphere_eigenvalue(3, 0, 1) == 0);
    assert_true(fini_sphere_eigenvalue(3, 0, 5000) == 0 && fini_sphere_eigenvalue(9, 0, 5000) == 0);
    assert_true(fini_sphere_filter_softmax(3, INFINITY, 5000) == 1);
}

static void multiplicity__counts_harmonics(void **state)
{
    (void)state;
    for (int64_t l = 1; l < 100; l++) {
        double n = (double)l;
        assert_true(fini_sphere_multiplicity(2, l) == 2);
        assert_true(fini_sphere_multiplicity(3, l) == 2 * n + 1);
        assert_true(fini_sphere_multiplicity(4, l) == (n + 1) * (n + 1));
        assert_true(fini_sphere_multiplicity(5, l) == (n + 1) * (n + 2) * (2 * n + 3) / 6);
    }
    assert_true(fini_sphere_multiplicity(30, 0) == 1 && fini_sphere_multiplicity(30, 1) == 30);
    assert_true(fini_sphere_multiplicity(30, 2) == 464); /* d(d+1)/2 - 1 */
    assert_true(fini_sphere_multiplicity(3, INT64_C(1) << 40) == 0x1p41 + 1);
    /* binomial(122, 101) - binomial(120, 101) */
    close_to("large", fini_sphere_multiplicity(102, 21) / 1.9922077501652772e+23, 1, 1e-14);
    assert_true(fini_sphere_multiplicity(100000, 100000) == INFINITY);
}

/* Numbers of the prototype, and one truth to 50 digits: coth 3 - 1/3. */
static void sphere__meets_known_numbers(void **state)
{
    (void)state;
    const double alphas[] = {0.01, 0.1, 1}, one[] = {0.9178, 0.5275, 0.1004};
    const double two[] = {0.8452, 0.3531, 0.0518}, ridge[] = {0.1, 0.01, 0.001, 1e-4};
    const double gamma[] = {5.95, 18.26, 34.82, 53.75};
    for (int i = 0; i < 3; i++) {
        close_to("degree 1", fini_sphere_filter_cme(3, 3, alphas[i], 1), one[i], 6e-5);
        close_to("degree 2", fini_sphere_filter_cme(3, 3, alphas[i], 2), two[i], 6e-5);
    }
    for (int i = 0; i < 4; i++)
        close_to("Gamma", fini_sphere_dimension(3, 3, ridge[i]), gamma[i], 0.006);
    close_to("A_3(3)", fini_sphere_mean(3, 3), 0.67163648998035597, 1e-15);
    close_to("1/A_3(3)", 1 / fini_sphere_mean(3, 3), 1.4889, 5e-5);
    assert_true(fini_sphere_mean(3, 3) == fini_sphere_filter_softmax(3, 3, 1));
}

static void dimension__is_the_sum(void **state)
{
    (void)state;
    const double alphas[] = {1e-12, 1e-3, 1, 1e6};
    for (int64_t d = 2; d <= 20; d += 3)
        for (int i = 0; i < 4; i++) {
            double sum = 0;
            for (int64_t l = 0; l < 300; l++)
                sum += fini_sphere_multiplicity(d, l) * fini_sphere_filter_cme(d, 20, alphas[i], l);
            close_to("Gamma", fini_sphere_dimension(d, 20, alphas[i]) / sum, 1, 1e-12);
        }
    /* every mu below alpha: the trace over alpha, where N_l and mu_l leave the doubles */
    close_to("wide", fini_sphere_dimension(1000, 2000, 1e6) * 1e6, 1, 1e-9);
    close_to("constant kernel", fini_sphere_dimension(3, 0, 0.25), 0.8, 1e-15);
    assert_true(fini_sphere_dimension(3, 1, 0) == INFINITY);
    assert_true(fini_sphere_dimension(3, 1, INFINITY) == 0);
}

static void limit__follows_the_closed_form(void **state)
{
    (void)state;
    const double c[3] = {2, 0, 0}, q[4][3] = {{1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0.6, 0.8, 0}};
    const double ratio[4] = {1.2499, 1.3810, 3.1945, 1.2858}, cosine[4] = {1, .8321, 1, .9345};
    double limit[3];
    for (int i = 0; i < 4; i++) {
        fini_sphere_limit_vmf(3, 3, c, q[i], limit);
        double length = sqrt(limit[0] * limit[0] + limit[1] * limit[1] + limit[2] * limit[2]);
        double along = limit[0] * q[i][0] + limit[1] * q[i][1];
        close_to("ratio", 1 / length, ratio[i], 6e-5);
        close_to("cosine", along / length, cosine[i], 6e-5);
    }
    const double zero[3] = {0, 0, 0}, small[3] = {1e-200, 0, 0};
    fini_sphere_limit_vmf(3, 3, zero, q[0], limit);
    close_to("uniform keys", limit[0], fini_sphere_mean(3, 3), 1e-15);
    fini_sphere_limit_vmf(3, 0, small, q[0], limit);
    close_to("no tilt", limit[0] * 1e200, 1.0 / 3, 1e-15);
    fini_sphere_limit_vmf(3, 1, zero, (const double[3]){NAN, 0, 0}, limit);
    assert_true(isnan(limit[0]) && isnan(limit[2]));
}

static void temperature__has_its_minimum(void **state)
{
    (void)state;
    double kappa, error;
    fin_error err;
    assert_int_equal(fini_temperature_best(3, 2, 0.1, 1, &kappa, &error, &err), FIN_OK);
    close_to("best kappa", kappa, 6.22, 0.006);
    close_to("least error", error, 4.606, 5e-4);
    close_to("at 2", fini_temperature_error(3, 2, 2, 0.1, 1), 8.365, 6e-4);
    close_to("at 12", fini_temperature_error(3, 12, 2, 0.1, 1), 5.236, 6e-4);
    for (double factor = 0.5; factor < 2; factor += 0.07)
        assert_true(fini_temperature_error(3, kappa * factor, 2, 0.1, 1) >= error);
    /* on the circle rho = I_0(2k)/I_0(k)^2 */
    double rho = exp(fini_bessel_log(0, 8) - 2 * fini_bessel_log(0, 4)),
           A = fini_bessel_ratio(0, 4);
    close_to("circle", fini_temperature_error(2, 4, 1, 1, 0), rho / A / A, 1e-13);
    /* little noise wants a sharp kernel: kappa -> prior/(2 noise) on the circle */
    assert_int_equal(fini_temperature_best(2, 1, 1e-6, 1, &kappa, &error, &err), FIN_OK);
    close_to("little noise", kappa * 2e-6, 1, 0.02);
}

static void temperature__refuses_bad_arguments(void **state)
{
    (void)state;
    double kappa = 7, error;
    fin_error err;
    const double bad[][3] = {{0, 1, 1},   {-1, 1, 1},  {1, -1, 1},       {1, 1, -1},
                             {NAN, 1, 1}, {1, NAN, 1}, {1, 1, INFINITY}, {1, 0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(
            fini_temperature_best(3, bad[i][0], bad[i][1], bad[i][2], &kappa, &error, &err),
            FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "not both zero"));
    }
    assert_int_equal(fini_temperature_best(1, 1, 1, 1, &kappa, &error, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fini_temperature_best(3, 1, 1, 1, NULL, &error, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fini_temperature_best(2, 1, 0, 1, &kappa, &error, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "larger noise"));
    assert_true(kappa == 7);
    assert_true(fini_temperature_error(3, 0, 1, 1, 1) == INFINITY);
    assert_true(isnan(fini_temperature_error(3, NAN, 1, 1, 1)));
    assert_true(isnan(fini_temperature_error(3, 1, 1, 1, -1)));
}

static void sphere__refuses_bad_arguments(void **state)
{
    (void)state;
    const double power[2] = {0, 1}, negative[2] = {0, -1};
    assert_true(isnan(fini_sphere_eigenvalue(1, 1, 0)) && isnan(fini_sphere_eigenvalue(3, -1, 0)));
    assert_true(isnan(fini_sphere_eigenvalue(3, NAN, 0)) &&
                isnan(fini_sphere_eigenvalue(3, 1, -1)));
    assert_true(isnan(fini_sphere_multiplicity(1, 0)) && isnan(fini_sphere_multiplicity(3, -1)));
    assert_true(isnan(fini_sphere_mean(3, NAN)) && isnan(fini_sphere_filter_softmax(0, 1, 1)));
    assert_true(isnan(fini_sphere_filter_cme(3, 1, NAN, 1)));
    assert_true(isnan(fini_sphere_filter_cme(3, 1, -1, 1)));
    assert_true(isnan(fini_sphere_dimension(3, 1, -1)) && isnan(fini_sphere_dimension(3, 1, NAN)));
    assert_true(isnan(fini_sphere_dimension(3, 1e11, 1)));
    assert_true(isnan(fini_sphere_dimension(INT64_MAX, 1e10, 1))); /* 1e10 terms */
    assert_true(isnan(fini_sphere_error_cme(INT64_MAX, 1e10, 1, 10, power, 1, 1, 1).bias));
    assert_true(isfinite(fini_sphere_dimension(INT64_MAX, 1e3, 1)));
    assert_true(isnan(fini_sphere_error_cme(3, 1, -1, 10, power, 1, 1, 1).bias));
    assert_true(isnan(fini_sphere_error_cme(3, 1, 1, -1, power, 1, 1, 1).bias));
    assert_true(isnan(fini_sphere_error_cme(3, 1, 1, 10, negative, 1, 1, 1).variance));
    assert_true(isnan(fini_sphere_error_cme(3, 1, 1, 10, NULL, 1, 1, 1).variance));
    assert_true(isnan(fini_sphere_error_softmax(3, NAN, 10, power, 1, 1, 1).bias));
    assert_true(isnan(fini_sphere_error_softmax(3, 1, 10, power, 1, 1, -1).variance));
    assert_true(isnan(fini_gaussian_softmax_variance(0, 1, 1, 1, 1, 1)));
    assert_true(isnan(fini_gaussian_softmax_variance(NAN, 1, 1, 1, 1, 1)));
    assert_true(isnan(fini_gaussian_softmax_variance(1, 1, 1, -1, 1, 1)));
    const double north[3] = {0, 0, 1};
    double limit[3];
    fini_sphere_limit_vmf(3, -1, north, north, limit);
    assert_true(isnan(limit[2]));
    close_to("gaussian", fini_gaussian_softmax_variance(2, 1, 3, 0.5, 4, 5), exp(0.5) * 14.5,
             1e-13);
    /* no tokens: nothing is known */
    fini_sphere_error none = fini_sphere_error_softmax(3, 1, 0, power, 1, 1, 1);
    assert_true(none.bias == 1 && none.variance == 0);
    none = fini_sphere_error_cme(3, 1, 1, 0, power, 1, 1, 1);
    assert_true(none.bias == 1 && none.variance == 0);
    none = fini_sphere_error_cme(3, 1, INFINITY, 5, power, 1, 1, 1);
    assert_true(none.bias == 1 && none.variance == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigenvalue__is_funk_and_heckes),
        cmocka_unit_test(eigenvalue__has_trace_one),
        cmocka_unit_test(multiplicity__counts_harmonics),
        cmocka_unit_test(sphere__meets_known_numbers),
        cmocka_unit_test(dimension__is_the_sum),
        cmocka_unit_test(limit__follows_the_closed_form),
        cmocka_unit_test(temperature__has_its_minimum),
        cmocka_unit_test(temperature__refuses_bad_arguments),
        cmocka_unit_test(sphere__refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
