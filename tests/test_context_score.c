/* How good predictions were: by hand, in the middle and at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "finetti/context.h"

#include <math.h>

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-14 * fmax(1, fabs(wanted))))
        fail_msg("%.17g, not %.17g", got, wanted);
}

static void pit__is_the_normal_law(void **state)
{
    (void)state;
    near(fin_cross_pit(3, 3, 4), 0.5);
    near(fin_cross_pit(1.0 + 2 * 1.2815515655446004, 1, 4), 0.9);
    near(fin_cross_pit(1.0 - 2 * 1.2815515655446004, 1, 4), 0.1);
    assert_true(fin_cross_pit(2, 1, 0) == 1 && fin_cross_pit(0, 1, 0) == 0 &&
                fin_cross_pit(1, 1, 0) == 0.5);
}

/* Column 1 of three; a value and a mean that are missing do not count. */
static void judge__by_hand(void **state)
{
    (void)state;
    const double values[] = {9, 1, 9, 2, 9, NAN, 9, 4, 9, 3},
                 mean[] = {9, 1, 9, 0, 9, 2, 9, 4.5, 9, NAN},
                 variance[] = {9, 0.5, 9, 0.5, 9, 1, 9, 3.5, 9, 1};
    const double log_two_pi = log(6.283185307179586477);
    fin_cross_score s;
    assert_int_equal(fin_cross_judge(5, 2, values + 1, mean + 1, variance + 1, 0.5, &s, NULL),
                     FIN_OK);
    assert_int_equal(s.count, 3); /* errors 0, 2, -0.5 with variances 1, 1, 4; mean value 7/3 */
    near(s.rmse, sqrt(4.25 / 3));
    near(s.r2, 1 - 4.25 / (16.0 / 9 + 1.0 / 9 + 25.0 / 9));
    near(s.log_score, -0.5 * (4 + 0.0625 + log(4)) / 3 - 0.5 * log_two_pi);
    near(s.coverage[0], 2.0 / 3); /* 2 sd is outside of 90 % and of 95 % */
    near(s.coverage[1], 2.0 / 3);
    near(s.coverage[2], 2.0 / 3);
    const int64_t pit[FIN_SCORE_BINS] = {0, 0, 0, 0, 1, 1, 0, 0, 0, 1}; /* 0.40, 0.5, 0.98 */
    for (int b = 0; b < FIN_SCORE_BINS; b++)
        assert_int_equal(s.pit[b], pit[b]);
}

static void judge__edges(void **state)
{
    (void)state;
    const double one = 1, none = NAN, zero = 0, less = -1;
    fin_cross_score s;
    assert_int_equal(fin_cross_judge(1, 1, &none, &one, &one, 0, &s, NULL), FIN_OK);
    assert_int_equal(s.count, 0);
    assert_true(isnan(s.rmse) && isnan(s.r2) && isnan(s.log_score) && isnan(s.coverage[1]));
    assert_int_equal(fin_cross_judge(1, 1, &one, &zero, &zero, 0, &s, NULL), FIN_OK);
    assert_int_equal(s.pit[FIN_SCORE_BINS - 1], 1); /* a PIT of 1 is in the last bin */
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_cross_judge(1, 1, &one, &one, &less, 0, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_judge(1, 1, &one, &one, &none, 0, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_judge(-1, 1, &one, &one, &one, 0, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_judge(1, 0, &one, &one, &one, 0, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_judge(1, 1, NULL, &one, &one, 0, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_judge(1, 1, &one, &one, &one, 0, NULL, &err), FIN_ERR_ARGUMENT);
}

/* Columns that squares would overflow or vanish in, a constant one, and one that is constant but for
 * rounding. */
static void measure__in_units_of_its_own(void **state)
{
    (void)state;
    const double scales[] = {1, 1e300, 1e-300};
    fin_cross_column c;
    fin_error err = {FIN_OK, ""};
    for (int k = 0; k < 3; k++) {
        const double keys[] = {1 * scales[k], 7, 3 * scales[k], 7, 8 * scales[k], 7};
        assert_int_equal(fin_cross_measure(3, 2, keys, &c, &err), FIN_OK);
        near(ldexp(c.mean, c.power) / scales[k], 4);
        near(ldexp(c.deviation, c.power) / scales[k], sqrt(26.0 / 3));
        assert_int_equal(fin_cross_measure(3, 2, keys + 1, &c, &err), FIN_OK);
        assert_true(c.deviation == 0);
    }
    const double almost[] = {1, 1 + 0x1p-52, 1};
    assert_int_equal(fin_cross_measure(3, 1, almost, &c, &err), FIN_OK);
    assert_true(c.deviation == 0);
    assert_int_equal(fin_cross_measure(0, 1, almost, &c, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_measure(3, 0, almost, &c, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_measure(3, 1, NULL, &c, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_cross_measure(3, 1, almost, NULL, &err), FIN_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pit__is_the_normal_law),
        cmocka_unit_test(judge__by_hand),
        cmocka_unit_test(judge__edges),
        cmocka_unit_test(measure__in_units_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
