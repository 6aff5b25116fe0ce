/* Gauss-Legendre: exact for polynomials up to degree 2n-1, symmetric, right at the ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "math/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1024 };

static const int sizes[] = {1, 2, 3, 4, 5, 10, 63, 64, 200, 1023, 1024};
static double x[MOST], w[MOST];

/* The long ones by Newton's method on the three-term recurrence in mpmath, 40 digits. */
static void legendre__matches_known_answers(void **state)
{
    (void)state;
    assert_int_equal(fini_legendre(1, x, w, NULL), FIN_OK);
    assert_true(x[0] == 0 && fabs(w[0] - 2) < 1e-15);
    assert_int_equal(fini_legendre(2, x, w, NULL), FIN_OK);
    assert_true(fabs(x[1] - sqrt(1.0 / 3)) < 1e-15 && fabs(w[1] - 1) < 1e-15);
    assert_int_equal(fini_legendre(3, x, w, NULL), FIN_OK);
    assert_true(fabs(x[2] - sqrt(0.6)) < 1e-15 && x[1] == 0 && fabs(w[1] - 8.0 / 9) < 1e-15);
    assert_int_equal(fini_legendre(64, x, w, NULL), FIN_OK);
    assert_true(fabs(x[63] - 0.99930504173577213946) < 2e-16);
    assert_true(fabs(w[63] / 0.0017832807216964329473 - 1) < 1e-14);
    assert_int_equal(fini_legendre(1024, x, w, NULL), FIN_OK);
    assert_true(fabs(x[1023] - 0.99999724505455844035) < 2e-16);
    assert_true(fabs(w[1023] / 7.0700764101825898713e-6 - 1) < 1e-13);
    assert_true(fabs(w[512] / 0.0030664603092439082116 - 1) < 1e-13);
}

static void legendre__is_symmetric_and_ordered(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s];
        double sum = 0;
        assert_int_equal(fini_legendre(n, x, w, NULL), FIN_OK);
        for (int i = 0; i < n; i++) {
            assert_true(x[i] == -x[n - 1 - i] && w[i] == w[n - 1 - i]);
            assert_true(w[i] > 0 && fabs(x[i]) < 1 && (i == 0 || x[i] > x[i - 1]));
            sum += w[i];
        }
        assert_true(fabs(sum - 2) < 1e-13);
    }
}

/* int P_k = 0 for 1 <= k <= 2n-1, and even powers: int x^2k = 2/(2k+1), exact for 2k <= 2n-1. */
static void legendre__is_exact_for_polynomials(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s];
        assert_int_equal(fini_legendre(n, x, w, NULL), FIN_OK);
        for (int k = 1; k <= 2 * n - 1; k += 1 + k / 7) {
            double sum = 0, power = 0;
            for (int i = 0; i < n; i++) {
                double before = 0, now = 1;
                for (int j = 0; j < k; j++) {
                    double next = ((2 * j + 1) * x[i] * now - j * before) / (j + 1);
                    before = now;
                    now = next;
                }
                sum += w[i] * now;
                power += w[i] * pow(x[i], k - k % 2);
            }
            assert_true(fabs(sum) < 1e-13);
            assert_true(fabs(power - 2.0 / (k - k % 2 + 1)) < 1e-13);
        }
        /* degree 2n is the first that is not exact: the rule misses int P_n^2 = 2/(2n+1) by all */
        double square = 0, high = 0;
        for (int i = 0; i < n && n <= 10; i++)
            high += w[i] * pow(x[i], 2 * n);
        square = 2.0 / (2 * n + 1) - high;
        if (n <= 10)
            assert_true(square > 1e-7);
    }
}

/* Functions with their whole mass at an end: what the accuracy of the outer weights is for. */
static void legendre__resolves_the_ends(void **state)
{
    (void)state;
    assert_int_equal(fini_legendre(200, x, w, NULL), FIN_OK);
    double sum = 0;
    for (int i = 0; i < 200; i++)
        sum += w[i] * exp(1000 * (x[i] - 1));
    assert_true(fabs(sum * 1000 - 1) < 1e-13);
}

static void legendre__refuses_bad_arguments(void **state)
{
    (void)state;
    const int bad[] = {0, -1, MOST + 1};
    fin_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(fini_legendre(bad[i], x, w, &err), FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "1 to 1024"));
    }
    assert_int_equal(fini_legendre(4, NULL, w, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "x is NULL"));
    assert_int_equal(fini_legendre(4, x, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "w is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legendre__matches_known_answers),
        cmocka_unit_test(legendre__is_symmetric_and_ordered),
        cmocka_unit_test(legendre__is_exact_for_polynomials),
        cmocka_unit_test(legendre__resolves_the_ends),
        cmocka_unit_test(legendre__refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
