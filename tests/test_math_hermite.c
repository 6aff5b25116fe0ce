/* Gauss-Hermite: exact for polynomials up to degree 2n-1, symmetric, and right about known means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1024 };

static const int sizes[] = {1, 2, 3, 20, 64, 65, 200, 389, 1024};
static double x[MOST], w[MOST];

static void hermite__is_exact_for_small_n(void **state)
{
    (void)state;
    assert_int_equal(fin_hermite(1, x, w, NULL), FIN_OK);
    assert_true(x[0] == 0 && w[0] == 1);
    assert_int_equal(fin_hermite(2, x, w, NULL), FIN_OK);
    assert_true(fabs(x[1] - 1) < 1e-15 && w[0] == 0.5 && w[1] == 0.5);
    assert_int_equal(fin_hermite(3, x, w, NULL), FIN_OK);
    assert_true(fabs(x[2] - sqrt(3)) < 1e-15 && x[1] == 0);
    assert_true(fabs(w[0] - 1.0 / 6) < 1e-16 && fabs(w[1] - 2.0 / 3) < 2e-16);
}

static void hermite__is_symmetric_ordered_and_sums_to_one(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s];
        double sum = 0;
        assert_int_equal(fin_hermite(n, x, w, NULL), FIN_OK);
        for (int i = 0; i < n; i++) {
            assert_true(x[i] == -x[n - 1 - i] && w[i] == w[n - 1 - i]);
            assert_true(i == 0 || x[i] > x[i - 1]);
            assert_true(w[i] >= 0 && (w[i] > 0 || x[i] * x[i] / 2 > 700));
            assert_true(i == 0 || 2 * i >= n || w[i] > w[i - 1] || w[i] == 0); /* towards 0 */
            sum += w[i];
        }
        assert_true(fabs(sum - 1) < 1e-14);
    }
}

/* sum w x^2k / (2k-1)!! = 1 for 2k <= 2n - 2; odd degrees vanish by symmetry. The powers pass the
 * largest double, the terms of this sum do not: each is the one before times x^2/(2k-1), which with
 * the rounding of x costs 2k units or so. A weight below the smallest double is lost, so degrees
 * stop where such nodes begin to matter. */
static void hermite__integrates_monomials(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int n = sizes[s], degrees = n < 400 ? n : 400;
        double worst = 0, term[MOST];
        assert_int_equal(fin_hermite(n, x, w, NULL), FIN_OK);
        for (int i = 0; i < n; i++)
            term[i] = w[i];
        for (int k = 0; k < degrees; k++) {
            double sum = 0;
            for (int i = 0; i < n; i++) {
                sum += term[i];
                term[i] *= x[i] * x[i] / (2 * k + 1);
            }
            double error = fabs(sum - 1);
            worst = fmax(worst, error / (1 + k));
            if (!(error < 1e-15 * (4 + 2 * k)))
                fail_msg("n = %d, degree %d: relative error %.2g", n, 2 * k, error);
        }
        print_message("n = %4d, degrees to %4d: worst relative error / (1 + degree/2) = %.2g\n", n,
                      2 * degrees - 1, worst);
    }
}

/* One degree further it must fail, by exactly n! : E[G^2n] - sum w x^2n = n!. */
static void hermite__is_not_exact_at_degree_2n(void **state)
{
    (void)state;
    double factorial = 1, moment = 1;
    for (int n = 1; n <= 20; n++) {
        factorial *= n;
        moment *= 2 * n - 1;
        double sum = 0;
        assert_int_equal(fin_hermite(n, x, w, NULL), FIN_OK);
        for (int i = 0; i < n; i++)
            sum += w[i] * pow(x[i], 2 * n);
        assert_true(fabs(moment - sum - factorial) < 1e-13 * moment);
    }
}

/* The tail weights keep relative accuracy however small: four nodes of n = 200, worked out in
 * 80 digits (Newton on the three-term recurrence, w = 1 / sum p_k^2 = 1 / (n p_{n-1}^2)). */
static void hermite__tail_weights_are_relatively_accurate(void **state)
{
    (void)state;
    static const double want[][2] = {
        {27.349827752266121702, 1.2576313313555794024e-163}, /* node 199 */
        {26.619594778852662892, 3.4819695683665527164e-155},
        {11.53134625392786166, 1.293823474820199029e-30},
        {4.5681544695345385646, 2.6380965724535023176e-6},
    };
    assert_int_equal(fin_hermite(200, x, w, NULL), FIN_OK);
    const int node[] = {199, 198, 150, 120};
    for (int i = 0; i < 4; i++) {
        double off_x = fabs(x[node[i]] / want[i][0] - 1), off_w = fabs(w[node[i]] / want[i][1] - 1);
        print_message("node %d of 200: relative error %.2g, of its weight %.2g\n", node[i], off_x,
                      off_w);
        assert_true(off_x < 1e-15);
        assert_true(off_w < 1e-12); /* the rounding of x alone costs x^2 eps = 1.6e-13 */
    }
}

static void hermite__agrees_with_zeta(void **state)
{
    (void)state;
    assert_int_equal(fin_hermite(200, x, w, NULL), FIN_OK);
    double worst = 0;
    for (double t = 0; t < 3; t += 0.3)
        for (double g = 0; g <= 0.8; g += 0.1) {
            double sum = 0, out[4];
            fin_zeta(t, g, out);
            for (int i = 0; i < 200; i++) {
                double value = erf(t + g * x[i]);
                sum += w[i] * value * value;
            }
            worst = fmax(worst, fabs(sum - out[0]));
        }
    print_message("E[erf^2], 200 nodes: worst difference from zeta %.2g\n", worst);
    assert_true(worst < 1e-14);
}

static void hermite__rejects(void **state)
{
    (void)state;
    const int bad[] = {0, -1, 1025, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_error err = {FIN_OK, ""};
        assert_int_equal(fin_hermite(bad[i], x, w, &err), FIN_ERR_ARGUMENT);
        assert_int_equal(err.status, FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "1024"));
        assert_int_equal(fin_hermite(bad[i], x, w, NULL), FIN_ERR_ARGUMENT);
    }
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_hermite(3, NULL, w, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "x is NULL"));
    assert_int_equal(fin_hermite(3, x, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "w is NULL"));
}

static fin_status run_hermite(void *user, fin_error *err)
{
    (void)user;
    return fin_hermite(100, x, w, err);
}

static void hermite__survives_allocation_faults(void **state)
{
    (void)state;
    assert_int_equal(fault_every(run_hermite, NULL), 0); /* it needs no memory of its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hermite__is_exact_for_small_n),
        cmocka_unit_test(hermite__is_symmetric_ordered_and_sums_to_one),
        cmocka_unit_test(hermite__integrates_monomials),
        cmocka_unit_test(hermite__is_not_exact_at_degree_2n),
        cmocka_unit_test(hermite__tail_weights_are_relatively_accurate),
        cmocka_unit_test(hermite__agrees_with_zeta),
        cmocka_unit_test(hermite__rejects),
        cmocka_unit_test(hermite__survives_allocation_faults),
    };
    return cmocka_run_group_tests_name("math_hermite", tests, NULL, NULL);
}
