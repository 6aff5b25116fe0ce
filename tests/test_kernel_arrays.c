/* exp, log1p, erf, exp(-x^2) and the exact risk: every kernel against the reference, and the
 * reference (libm) against long double where that knows the function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "test_kernel_fence.h"
#include "test_skip.h"

#include <float.h>
#include <stdlib.h>

enum { FUNCTIONS = 4, MANY = 20000, SHORT = 40 };

typedef void array_function(int64_t n, const double *x, double *y);

static array_function *function(const fini_kernel *kernel, int i)
{
    array_function *const all[FUNCTIONS] = {kernel->exp, kernel->log1p, kernel->erf, kernel->gauss};
    return all[i];
}
static const char *const name[FUNCTIONS] = {"exp", "log1p", "erf", "gauss"};

static const double special[] = {
    0.0,     -0.0,     INFINITY, -INFINITY, NAN,    700,     -700,         709.78,
    709.79,  -745.1,   -745.2,   -708.4,    1e-300, -1e-300, DBL_TRUE_MIN, -DBL_TRUE_MIN,
    DBL_MIN, -DBL_MIN, DBL_MAX,  -DBL_MAX,  1e-17,  -1e-17,  -1,           -1 + 0x1p-53,
    -0.5,    1,        0.5,      5.9,       -5.9,   6,       27,           -27.2,
    1e5,     -2,       -1e5,     1e308,     1e200,  26.6,
};
enum { SPECIAL = sizeof special / sizeof *special };

/* Arguments of every size. */
static void make_points(double *x, int64_t n)
{
    fin_random r;
    fin_random_open(&r, 5, 2000, 0);
    for (int64_t i = 0; i < n; i++)
        switch (i % 5) {
        case 0:
            x[i] = 3 * fin_random_normal(&r);
            break;
        case 1:
            x[i] = 1400 * fin_random_uniform(&r) - 700;
            break;
        case 2:
            x[i] = -0.999999 + 2 * fin_random_uniform(&r);
            break;
        case 3:
            x[i] = scalbn(fin_random_normal(&r), -(int)fin_random_below(&r, 300));
            break;
        default:
            x[i] = exp(-3 * fin_random_gumbel(&r));
        }
}

static void arrays__within_2_ulp_of_reference(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    static double x[MANY], want[MANY], got[MANY];
    make_points(x, MANY);
    for (int k = 0; k < count; k++)
        for (int f = 0; f < FUNCTIONS; f++) {
            double worst = 0;
            function(&fini_kernel_ref, f)(MANY, x, want);
            function(kernel[k], f)(MANY, x, got);
            for (int i = 0; i < MANY; i++) {
                if (!(ulps(want[i], got[i]) <= 2))
                    fail_msg("%s %s(%.17g) = %.17g, reference %.17g", kernel[k]->name, name[f],
                             x[i], got[i], want[i]);
                worst = fmax(worst, ulps(want[i], got[i]));
            }
            function(&fini_kernel_ref, f)(SPECIAL, special, want);
            function(kernel[k], f)(SPECIAL, special, got);
            for (int i = 0; i < SPECIAL; i++) {
                if (f == 1 && special[i] > 1e307 && special[i] <= DBL_MAX)
                    continue; /* SLEEF answers inf there; the library asks in [0, 1] only */
                if (!(ulps(want[i], got[i]) <= 2) ||
                    (want[i] == 0 && signbit(want[i]) != signbit(got[i])))
                    fail_msg("%s %s(%.17g) = %.17g, reference %.17g", kernel[k]->name, name[f],
                             special[i], got[i], want[i]);
            }
            print_message("%s %s: worst %g ulp\n", kernel[k]->name, name[f], worst);
        }
}

static void arrays__reference_matches_long_double(void **state)
{
    (void)state;
    if (!long_double_is_longer())
        SKIP("long double is not longer than double");
    static double x[MANY], y[MANY];
    make_points(x, MANY);
    for (int f = 0; f < FUNCTIONS; f++) {
        double worst = 0;
        function(&fini_kernel_ref, f)(MANY, x, y);
        for (int i = 0; i < MANY; i++) {
            long double X = x[i], want = f == 0   ? expl(X)
                                         : f == 1 ? log1pl(X)
                                         : f == 2 ? erfl(X)
                                                  : expl(-(long double)(x[i] * x[i]));
            if (fabsl(want) > (long double)DBL_MIN && fabsl(want) < (long double)DBL_MAX)
                worst = fmax(worst, (double)(fabsl(y[i] - want) / fabsl(want)));
        }
        print_message("ref %s: worst relative error %.2g\n", name[f], worst);
        assert_true(worst < 1.2 * DBL_EPSILON);
    }
}

/* f(x) is the same bits at any place of any array, in place or not, with nothing touched beside it.
 */
static void arrays__value_depends_on_its_argument_only(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    static double x[SHORT + SPECIAL], alone[SHORT + SPECIAL];
    make_points(x, SHORT);
    memcpy(x + SHORT, special, sizeof special);
    fence in = fence_open(), out = fence_open();
    for (int k = 0; k < count; k++)
        for (int f = 0; f < FUNCTIONS; f++) {
            for (int i = 0; i < SHORT + SPECIAL; i++)
                function(kernel[k], f)(1, x + i, alone + i);
            for (int64_t n = 0; n <= SHORT; n++)
                for (int from = 0; from + n <= SHORT + SPECIAL; from += 3) {
                    double *a = fence_array(&in, n, sizeof *a);
                    double *b = (double *)fence_array(&out, n + 1, sizeof *b) + 1;
                    memcpy(a, x + from, (size_t)n * sizeof *a);
                    b[-1] = 77;
                    function(kernel[k], f)(n, a, b);
                    for (int64_t i = 0; i < n; i++)
                        assert_true(isnan(alone[from + i]) ? isnan(b[i])
                                                           : !memcmp(&alone[from + i], &b[i], 8));
                    assert_true(b[-1] == 77);
                    function(kernel[k], f)(n, a, a);
                    for (int64_t i = 0; i < n; i++)
                        assert_true(isnan(b[i]) ? isnan(a[i]) : !memcmp(&a[i], &b[i], 8));
                }
        }
    fence_close(&in);
    fence_close(&out);
}

static void random_points(int n, double points[][FINI_RISK_IN])
{
    fin_random r;
    fin_random_open(&r, 6, 2000, 0);
    for (int i = 0; i < n; i++) {
        double *p = points[i];
        for (int j = 0; j < 5; j++)
            p[j] = 2 * fin_random_uniform(&r) - 1;
        if (i % 3 == 0)
            p[0] = copysign(1 - pow(10, -12 * fin_random_uniform(&r)), p[0]);
        p[5] = pow(10, 4 * fin_random_uniform(&r) - 3);
        p[6] = i % 7 ? pow(10, 2 * fin_random_uniform(&r) - 1) : 0;
        p[7] = i % 11 ? 20 * fin_random_uniform(&r) : 0;
        p[8] = fin_random_uniform(&r);
        p[9] = 1 + (double)(i % 3);
        p[10] = p[9] + (double)fin_random_below(&r, 20);
        p[11] = i % 2 ? 3 * fin_random_uniform(&r) : 0;
    }
}

/* A part is held to 1e-14 of itself where it is a sum of one sign (signal, noise, risk); bias and
 * gradient change sign and are held to 1e-14 of risk + |gradient|. */
static void erf_risk__matches_reference(void **state)
{
    (void)state;
    enum { POINTS = 2000 };
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    static double points[POINTS][FINI_RISK_IN], want[POINTS][FINI_RISK_OUT],
        got[POINTS][FINI_RISK_OUT];
    random_points(POINTS, points);
    fini_kernel_ref.erf_risk(POINTS, (const double(*)[FINI_RISK_IN])points, want);
    for (int k = 0; k < count; k++) {
        double worst[FINI_RISK_OUT] = {0};
        kernel[k]->erf_risk(POINTS, (const double(*)[FINI_RISK_IN])points, got);
        for (int i = 0; i < POINTS; i++) {
            double scale = want[i][3];
            for (int f = 4; f < FINI_RISK_OUT; f++)
                scale += fabs(want[i][f]);
            for (int f = 0; f < FINI_RISK_OUT; f++) {
                double error =
                    fabs(want[i][f] - got[i][f]) / (f < 2 || f == 3 ? want[i][f] + DBL_MIN : scale);
                assert_true(isfinite(got[i][f]));
                worst[f] = fmax(worst[f], error);
            }
        }
        print_message("%s:", kernel[k]->name);
        for (int f = 0; f < FINI_RISK_OUT; f++)
            print_message(" %.2g", worst[f]);
        print_message("\n");
        for (int f = 0; f < FINI_RISK_OUT; f++)
            assert_true(worst[f] <= 1e-14);
    }
}

static void erf_risk__point_is_independent_of_its_place(void **state)
{
    (void)state;
    enum { POINTS = 20 };
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    static double points[POINTS][FINI_RISK_IN], alone[POINTS][FINI_RISK_OUT];
    random_points(POINTS, points);
    fence in = fence_open(), out = fence_open();
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < POINTS; i++)
            kernel[k]->erf_risk(1, (const double(*)[FINI_RISK_IN])(points + i), alone + i);
        for (int64_t n = 0; n <= POINTS; n++) {
            double(*a)[FINI_RISK_IN] = fence_array(&in, n, sizeof *a);
            double(*b)[FINI_RISK_OUT] = fence_array(&out, n, sizeof *b);
            memcpy(a, points + (POINTS - n), (size_t)n * sizeof *a);
            kernel[k]->erf_risk(n, (const double(*)[FINI_RISK_IN])a, b);
            assert_memory_equal(alone + (POINTS - n), b, (size_t)n * sizeof *b);
        }
    }
    fence_close(&in);
    fence_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays__within_2_ulp_of_reference),
        cmocka_unit_test(arrays__reference_matches_long_double),
        cmocka_unit_test(arrays__value_depends_on_its_argument_only),
        cmocka_unit_test(erf_risk__matches_reference),
        cmocka_unit_test(erf_risk__point_is_independent_of_its_place),
    };
    return cmocka_run_group_tests_name("kernel_arrays", tests, NULL, NULL);
}
