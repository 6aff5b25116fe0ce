/* Places among ascending numbers, and softmax at its edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "math/small.h"

#include <math.h>
#include <stdlib.h>
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

/* A v = l v, v orthonormal, ascending; and 2 - 2 cos(pi j / (n + 1)) of the second difference. */
static void eigen__is_what_it_says(void **state)
{
    (void)state;
    enum { n = 6 };
    double A[n * n], copy[n * n], values[n], V[n * n], only[n];
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                A[i * n + j] = kind == 0   ? (i == j            ? 2
                                              : abs(i - j) == 1 ? -1
                                                                : 0)
                               : kind == 1 ? cos(3.0 * (i + 1) * (j + 1)) * (i == j ? 1e8 : 1)
                                           : (i == j);
        memcpy(copy, A, sizeof A);
        fini_eigen(n, copy, values, V);
        memcpy(copy, A, sizeof A);
        fini_eigen(n, copy, only, NULL);
        assert_memory_equal(values, only, sizeof values);
        double size = kind == 1 ? 1e8 : 4;
        for (int i = 0; i < n; i++) {
            assert_true(i == 0 || values[i] >= values[i - 1]);
            if (kind == 0)
                assert_true(fabs(values[i] - 2 +
                                 2 * cos(3.14159265358979323846 * (i + 1) / (n + 1))) < 1e-14);
            for (int j = 0; j < n; j++) {
                double product = fini_dot_in_order(n, V + i * n, V + j * n);
                assert_true(fabs(product - (i == j)) < 1e-14);
                assert_true(fabs(fini_dot_in_order(n, A + j * n, V + i * n) -
                                 values[i] * V[i * n + j]) < 1e-14 * size);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigen__is_what_it_says),
        cmocka_unit_test(first_from__is_the_first_not_below),
        cmocka_unit_test(softmax__sums_to_one_and_knows_its_logarithm),
        cmocka_unit_test(softmax__infinite_scores_share_the_weight),
    };
    return cmocka_run_group_tests_name("math_small", tests, NULL, NULL);
}
