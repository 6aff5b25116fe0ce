/* Bessel functions against 50-digit values (tests/data/bessel.py), their identities and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "math/bessel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double relative(double got, double want)
{
    return got == want ? 0 : fabs(got - want) / fabs(want);
}

/* Of a logarithm: absolute where it is below one, because that is what its exponential feels. */
static double mixed(double got, double want)
{
    return fabs(got - want) / fmax(1, fabs(want));
}

static double check(const char *what, double nu, double x, double got, double want, double error,
                    double limit)
{
    if (!(error < limit))
        fail_msg("%s(%g, %.17g) = %.17g, should be %.17g: error %.2g", what, nu, x, got, want,
                 error);
    return error;
}

static void bessel__matches_reference(void **state)
{
    (void)state;
    FILE *file = fopen(FIN_TEST_DATA "/bessel.csv", "r");
    assert_non_null(file);
    char line[256];
    assert_non_null(fgets(line, sizeof line, file)); /* nu,x,log,ratio,gap,reduced */
    double worst[4] = {0};
    int rows = 0;
    for (; fgets(line, sizeof line, file); rows++) {
        char *end;
        double nu = strtod(line, &end), x = strtod(end + 1, &end), want[4], got[4], error[4];
        for (int i = 0; i < 4; i++)
            want[i] = strtod(end + 1, &end);
        assert_int_equal(*end, '\n');
        got[0] = fini_bessel_log(nu, x);
        got[1] = fini_bessel_ratio(nu, x);
        got[2] = fini_bessel_gap(nu, x);
        got[3] = fini_bessel_reduced(nu, x);
        error[0] = check("log", nu, x, got[0], want[0], mixed(got[0], want[0]), 1e-14);
        error[1] = check("ratio", nu, x, got[1], want[1], relative(got[1], want[1]), 1e-14);
        error[2] = check("gap", nu, x, got[2], want[2], relative(got[2], want[2]), 1e-13);
        error[3] = check("reduced", nu, x, got[3], want[3], mixed(got[3], want[3]), 1e-14);
        for (int i = 0; i < 4; i++)
            worst[i] = fmax(worst[i], error[i]);
    }
    fclose(file);
    print_message("%d rows, worst errors: log %.1e, ratio %.1e, gap %.1e, reduced %.1e\n", rows,
                  worst[0], worst[1], worst[2], worst[3]);
    assert_int_equal(rows, 399);
}

/* Orders one half and three halves are elementary: I_{3/2}/I_{1/2} = coth x - 1/x. */
static void ratio__is_elementary_at_one_half(void **state)
{
    (void)state;
    for (double x = 0.5; x < 1e12; x *= 1.7) {
        double want = 1 / tanh(x) - 1 / x;
        assert_true(relative(fini_bessel_ratio(0.5, x), want) < 1e-14);
        if (x > 40)
            assert_true(relative(fini_bessel_gap(0.5, x), 1 / x) < 1e-13);
    }
}

/* x r_{nu-1} r_nu + 2 nu r_{nu-1} = x, between any two ways of arriving at an order. */
static void ratio__keeps_the_recurrence(void **state)
{
    (void)state;
    for (double nu = 1; nu < 1e7; nu = floor(nu * 1.3) + 1.5)
        for (double x = 1e-3; x < 1e9; x *= 7) {
            double low = fini_bessel_ratio(nu - 1, x), high = fini_bessel_ratio(nu, x);
            assert_true(relative(low * high + 2 * nu / x * low, 1) < 1e-14);
            assert_true(high > 0 && high < low && low < 1);
        }
}

/* The logarithm's own steps are the ratio's logarithm. */
static void log__steps_by_the_ratio(void **state)
{
    (void)state;
    for (double nu = 0; nu < 1000; nu += nu < 40 ? 0.5 : 70)
        for (double x = 1e-6; x < 1e9; x *= 5) {
            double below = fini_bessel_log(nu, x), above = fini_bessel_log(nu + 1, x);
            double step = log(fini_bessel_ratio(nu, x));
            assert_true(fabs(above - below - step) < 1e-14 * (2 + fabs(above) + fabs(below)));
        }
}

static void bessel__has_its_limits(void **state)
{
    (void)state;
    assert_true(fini_bessel_log(0, 0) == 0 && fini_bessel_log(1, 0) == -INFINITY);
    assert_true(fini_bessel_log(3, INFINITY) == -INFINITY);
    assert_true(fini_bessel_ratio(0, 0) == 0 && fini_bessel_ratio(7, INFINITY) == 1);
    assert_true(fini_bessel_log(INFINITY, 1) == -INFINITY && fini_bessel_ratio(INFINITY, 1) == 0);
    assert_true(fini_bessel_reduced(5, 0) == 0 && fini_bessel_gap(5, 0) == 1);
    assert_true(fini_bessel_reduced(5, INFINITY) == -INFINITY && fini_bessel_gap(5, 1e301) == 0);
    /* the smallest and the largest doubles: x/(2 nu + 2), and e^x/sqrt(2 pi x) */
    assert_true(relative(fini_bessel_ratio(1.5, 1e-300), 2e-301) < 1e-15);
    assert_true(relative(fini_bessel_log(1, 1e-300), log(5e-301)) < 1e-15);
    assert_true(relative(fini_bessel_log(1.5, 1e300), -0.5 * log(6.283185307179586e300)) < 1e-15);
    assert_true(fini_bessel_ratio(2, 1e300) == 1);
    assert_true(relative(fini_bessel_ratio(1e300, 1e300), 1 / (1 + sqrt(2))) < 1e-15);
    assert_true(isfinite(fini_bessel_log(1e300, 1e290)));
    /* beyond: nu/x and x/2 leave the range. mpmath, nu log(x/2) - log Gamma(nu+1), and Debye's
     * first terms with the doubles as they are */
    assert_true(relative(fini_bessel_log(40, 1e-308), -28505.894872623798039) < 1e-14);
    assert_true(relative(fini_bessel_log(1, 0x1p-1074), -745.13321910194120762) < 1e-14);
    assert_true(relative(fini_bessel_log(1e308, 1e308), -4.6716002464644798156e307) < 1e-14);
    assert_true(relative(fini_bessel_ratio(1e308, 1e308), 0.4142135623730950488) < 1e-15);
    assert_true(relative(fini_bessel_gap(5e307, 1e308), 0.3819660112501051518) < 1e-15);
}

static void bessel__refuses_bad_arguments(void **state)
{
    (void)state;
    const double bad[][2] = {{-1, 1},  {-1e-300, 1},   {1, -1e-300},   {NAN, 1},
                             {1, NAN}, {-INFINITY, 1}, {1, -INFINITY}, {INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(isnan(fini_bessel_log(bad[i][0], bad[i][1])));
        assert_true(isnan(fini_bessel_ratio(bad[i][0], bad[i][1])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bessel__matches_reference),
        cmocka_unit_test(ratio__is_elementary_at_one_half),
        cmocka_unit_test(ratio__keeps_the_recurrence),
        cmocka_unit_test(log__steps_by_the_ratio),
        cmocka_unit_test(bessel__has_its_limits),
        cmocka_unit_test(bessel__refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
