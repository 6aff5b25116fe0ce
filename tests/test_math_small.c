/* Places among ascending numbers, and softmax at its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "math/small.h"

#include <math.h>
#include <string.h>

static void first_from__is_the_first_not_below(void **state)
{
    (void)state;
    const double x[] = {-1, 0, 0, 2, 5};
    const int64_t k[] = {0, 3, 3, 7};
    for (int64_t n = 0; n <= 5; n++)
        for (double at = -2; at <= 6; at += 0.5) {
            int64_t want = 0;
            while (want < n && x[want] < at)
                want++;
            assert_int_equal(fini_first_from(n, x, at), want);
        }
    assert_int_equal(fini_first_from_i64(4, k, 3), 1);
    assert_int_equal(fini_first_from_i64(4, k, 4), 3);
    assert_int_equal(fini_first_from_i64(4, k, 8), 4);
}

typedef double softmax(int64_t n, double *x, bool logarithm);

static void softmax__sums_to_one_and_knows_its_logarithm(void **state)
{
    (void)state;
    softmax *const both[] = {fini_softmax, fini_softmax_libm};
    for (int f = 0; f < 2; f++)
        for (double shift = -1e5; shift <= 1e5; shift += 1e5) {
            double x[] = {shift, shift + 1, shift - 2}, e = exp(1), d = exp(-2);
            double sum = 1 + e + d, log_sum = both[f](3, x, true);
            assert_true(fabs(log_sum - shift - log(sum)) <= 1e-15 * fabs(shift) + 1e-14);
            assert_true(fabs(x[0] - 1 / sum) < 1e-14 && fabs(x[1] - e / sum) < 1e-14);
            assert_true(fabs(x[0] + x[1] + x[2] - 1) < 1e-15);
        }
}

static void softmax__infinite_scores_share_the_weight(void **state)
{
    (void)state;
    softmax *const both[] = {fini_softmax, fini_softmax_libm};
    for (int f = 0; f < 2; f++) {
        double up[] = {INFINITY, 3, INFINITY, -INFINITY}, down[] = {-INFINITY, -INFINITY};
        double none[] = {1, NAN};
        assert_true(isinf(both[f](4, up, true)));
        assert_memory_equal(up, ((double[]){0.5, 0, 0.5, 0}), sizeof up);
        assert_true(both[f](2, down, true) == -INFINITY);
        assert_memory_equal(down, ((double[]){0.5, 0.5}), sizeof down);
        assert_true(isnan(both[f](2, none, true)) && isnan(none[0]) && isnan(none[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_from__is_the_first_not_below),
        cmocka_unit_test(softmax__sums_to_one_and_knows_its_logarithm),
        cmocka_unit_test(softmax__infinite_scores_share_the_weight),
    };
    return cmocka_run_group_tests_name("math_small", tests, NULL, NULL);
}
