/* Owen's T against 50-digit values (tools/make_math_tables.py), its identities and its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "math/owen.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double relative(double got, double want)
{
    return got == want ? 0 : fabs(got - want) / fabs(want);
}

/* Numbers in (0, 1), the same in every run. */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double upper_tail(double h)
{
    return 0.5 * erfc(h * 0.70710678118654752);
}

static void owens_t__matches_reference(void **state)
{
    (void)state;
    FILE *file = fopen(FIN_TEST_DATA "/owens_t.csv", "r");
    assert_non_null(file);
    char line[256];
    assert_non_null(fgets(line, sizeof line, file)); /* h,a,t */
    double worst = 0, worst_h = 0, worst_a = 0;
    int rows = 0;
    for (; fgets(line, sizeof line, file); rows++) {
        char *end;
        double h = strtod(line, &end), a = strtod(end + 1, &end), want = strtod(end + 1, &end);
        assert_int_equal(*end, '\n');
        double got = fini_owens_t(h, a);
        if (want < DBL_MIN) { /* no relative accuracy is left in a subnormal number */
            if (!(fabs(got - want) <= 1e-13 * DBL_MIN))
                fail_msg("T(%.17g, %.17g) = %.17g, should be %.17g", h, a, got, want);
            continue;
        }
        double error = relative(got, want);
        if (!(error < 1e-13))
            fail_msg("T(%.17g, %.17g) = %.17g, should be %.17g: error %.2g", h, a, got, want,
                     error);
        if (error > worst) {
            worst = error;
            worst_h = h;
            worst_a = a;
        }
    }
    fclose(file);
    print_message("%d rows, worst relative error %.2g at T(%.17g, %.17g)\n", rows, worst, worst_h,
                  worst_a);
    assert_true(rows > 500);
}

static void owens_t__is_even_in_h_and_odd_in_a(void **state)
{
    (void)state;
    const double hs[] = {0, 1e-300, 0.3, 2, 9, 37, INFINITY};
    const double as[] = {0, 1e-300, 0.7, 1, 1.3, 1e5, INFINITY};
    for (size_t i = 0; i < sizeof hs / sizeof *hs; i++)
        for (size_t j = 0; j < sizeof as / sizeof *as; j++) {
            double value = fini_owens_t(hs[i], as[j]);
            assert_false(signbit(value));
            assert_true(fini_owens_t(-hs[i], as[j]) == value);
            assert_true(fini_owens_t(hs[i], -as[j]) == -value);
            assert_true(fini_owens_t(-hs[i], -as[j]) == -value);
            assert_true(signbit(fini_owens_t(hs[i], -as[j])));
        }
}

static void owens_t__has_its_limits(void **state)
{
    (void)state;
    assert_true(fini_owens_t(0, INFINITY) == 0.25);
    assert_true(fini_owens_t(0, -INFINITY) == -0.25);
    assert_true(fini_owens_t(0, 1) == 0.125);
    assert_true(fini_owens_t(INFINITY, 1) == 0);
    assert_true(fini_owens_t(-INFINITY, INFINITY) == 0);
    assert_true(fini_owens_t(1, 0) == 0);
    assert_true(fini_owens_t(1e200, 1e-200) == 0);
    assert_true(fini_owens_t(DBL_MAX, DBL_MAX) == 0);
    assert_true(relative(fini_owens_t(DBL_TRUE_MIN, DBL_MAX), 0.25) < 1e-15);
    assert_true(relative(fini_owens_t(DBL_TRUE_MIN, INFINITY), 0.25) < 1e-15);
    assert_true(isnan(fini_owens_t(NAN, 1)));
    assert_true(isnan(fini_owens_t(1, NAN)));
    assert_true(isnan(fini_owens_t(NAN, INFINITY)));
    assert_true(isnan(fini_owens_t(INFINITY, NAN)));
}

/* T(h, inf) = Q(h)/2, T(h, 1) = Q(h)(1 - Q(h))/2. A rounded h/sqrt(2) costs Q h^2 units. */
static void owens_t__agrees_with_the_normal_tail(void **state)
{
    (void)state;
    for (double h = 0; h <= 37; h += 0.37) {
        double q = upper_tail(h), bound = 1e-14 + 4e-16 * h * h;
        assert_true(relative(fini_owens_t(h, INFINITY), q / 2) < bound);
        assert_true(relative(fini_owens_t(h, 1), q * (1 - q) / 2) < bound);
    }
}

/* T(h, a) + T(ah, 1/a) = Q(h)/2 + Q(ah)/2 - Q(h) Q(ah) for a > 0. */
static void owens_t__reflects(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        double h = exp(-7 + 9 * uniform(&seed)), a = exp(-8 + 16 * uniform(&seed));
        double p = upper_tail(h), q = upper_tail(a * h);
        double sum = fini_owens_t(h, a) + fini_owens_t(a * h, 1 / a);
        if (!(relative(sum, 0.5 * p + 0.5 * q - p * q) < 1e-14 + 1e-15 * h * h))
            fail_msg("h = %.17g, a = %.17g", h, a);
    }
}

/* Where one formula hands over to another (a = 2; h = seam/2; the integral is cut at ah = seam)
 * nothing jumps. |d log T / d log h| < h^2 + 1 and |d log T / d log a| <= 1 say how much T may
 * move. */
static void owens_t__is_continuous(void **state)
{
    (void)state;
    const double seam = sqrt(74);
    for (double h = 0.01; h < 37; h *= 1.07) {
        assert_true(relative(fini_owens_t(h, 2), fini_owens_t(h, 2 + 0x1p-51)) < 1e-14);
        double a = seam / h;
        assert_true(relative(fini_owens_t(h, a * (1 - 1e-15)), fini_owens_t(h, a * (1 + 1e-15))) <
                    1e-14);
    }
    for (double a = 1e-3; a < 1e3; a *= 1.1)
        for (double h = seam / 2; h < 10; h += seam / 2)
            assert_true(relative(fini_owens_t(h * (1 - 1e-15), a),
                                 fini_owens_t(h * (1 + 1e-15), a)) < 2e-15 * (1 + h * h) + 1e-14);
}

/* q = 0: a difference of arcus tangents; large q: 1/(2 q from (1 + from^2)) to first order. */
static void owen_integral__has_its_limits(void **state)
{
    (void)state;
    for (double from = 0; from < 1; from += 0.125)
        assert_true(relative(fini_owen_integral(0, from, 1 - from), atan(1.0) - atan(from)) <
                    1e-14);
    assert_true(fini_owen_integral(3, 0.5, 0) == 0);
    double first = 1 / (2e12 * 0.5 * 1.25);
    assert_true(relative(fini_owen_integral(1e12, 0.5, 0.5), first) < 1e-11);
    assert_true(fini_owen_integral(1e12, 0.5, INFINITY) == fini_owen_integral(1e12, 0.5, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owens_t__matches_reference),
        cmocka_unit_test(owens_t__is_even_in_h_and_odd_in_a),
        cmocka_unit_test(owens_t__has_its_limits),
        cmocka_unit_test(owens_t__agrees_with_the_normal_tail),
        cmocka_unit_test(owens_t__reflects),
        cmocka_unit_test(owens_t__is_continuous),
        cmocka_unit_test(owen_integral__has_its_limits),
    };
    return cmocka_run_group_tests_name("math_owens_t", tests, NULL, NULL);
}
