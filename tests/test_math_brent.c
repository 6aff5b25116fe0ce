/* Brent's minimum: known minima, ends of the interval, functions that are not numbers, bad calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/math.h"
#include "math/small.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Every function counts its calls and notes when it is asked outside [low, high]. */
typedef struct watch {
    int calls;
    double low, high, shift;
} watch;

static void seen(watch *log, double x)
{
    log->calls++;
    assert_true(x >= log->low && x <= log->high);
}

static double parabola(double x, void *user)
{
    watch *log = user;
    seen(log, x);
    return 1 + (x - log->shift) * (x - log->shift);
}

static double quartic(double x, void *user)
{
    seen(user, x);
    return pow(x - 1, 4) - 5;
}

static double cosine(double x, void *user)
{
    seen(user, x);
    return cos(x);
}

static double kink(double x, void *user)
{
    watch *log = user;
    seen(log, x);
    return fabs(x - log->shift);
}

static double log_parabola(double x, void *user)
{
    watch *log = user;
    seen(log, x);
    return pow(log10(x) - log->shift, 2);
}

/* Brent's own example (chapter 5): sum ((2i-5)/(x-i^2))^2, i = 1..20, one minimum per interval
 * (i^2, (i+1)^2). */
static double poles(double x, void *user)
{
    seen(user, x);
    double sum = 0;
    for (int i = 1; i <= 20; i++)
        sum += pow((2 * i - 5) / (x - i * i), 2);
    return sum;
}

static double right_only(double x, void *user)
{
    watch *log = user;
    seen(log, x);
    return x > log->shift ? x + 1 / (x - log->shift) : NAN;
}

static double left_only(double x, void *user)
{
    watch *log = user;
    seen(log, x);
    return x < log->shift ? log->shift - x + 1e-2 / (log->shift - x) : NAN;
}

static double constant(double x, void *user)
{
    seen(user, x);
    return 7;
}

static double never(double x, void *user)
{
    seen(user, x);
    return NAN;
}

static double deep(double x, void *user)
{
    seen(user, x);
    return x > 2 ? -INFINITY : x;
}

static watch minimise(double (*f)(double, void *), double a, double b, double shift, double tol,
                      double *x, double *fx)
{
    watch log = {0, a, b, shift};
    fin_error err = {FIN_OK, ""};
    fin_status status = fini_brent(f, &log, a, b, tol, x, fx, &err);
    if (status != FIN_OK)
        fail_msg("%s", err.message);
    watch again = {0, a, b, shift};
    assert_true(f(*x, &again) == *fx);
    return log;
}

static void brent__finds_known_minima(void **state)
{
    (void)state;
    double x, fx;
    for (double c = -0.95; c < 1; c += 0.1) {
        watch log = minimise(parabola, -1, 1, c, 0, &x, &fx);
        assert_true(fabs(x - c) < 1e-7 && fx - 1 < 1e-14);
        assert_true(log.calls < 50);
        minimise(kink, -1, 1, c, 0, &x, &fx);
        assert_true(fabs(x - c) <= 6e-8 * fabs(c) + 1e-20);
    }
    minimise(cosine, 2, 5, 0, 0, &x, &fx);
    assert_true(fabs(x - 3.14159265358979) < 1e-7 && fx == -1);
    minimise(quartic, -3, 5, 0, 0, &x, &fx);
    assert_true(fabs(x - 1) < 1e-3 && fx + 5 < 1e-14); /* flat: f says no more */
}

/* The minima as in Brent's table 5.1, from 30-digit arithmetic. */
static void brent__solves_the_problem_of_its_inventor(void **state)
{
    (void)state;
    static const double want[] = {
        3.022915347273057,  6.6837535608080781, 11.238701655002212, 19.676000080623409,
        29.828227326504754, 41.906116195289413, 55.953595800143094, 71.985665586587795,
        90.008868539166666, 110.02653274833019, 132.04055167184083, 156.05211444661752,
        182.06206042936654, 210.07110100243403, 240.08004831657857, 272.09026691792676,
        306.10512334311986, 342.13694544393164, 380.26870969660486,
    };
    int most = 0;
    for (int i = 0; i < (int)(sizeof want / sizeof *want); i++) {
        double a = (i + 1) * (i + 1) + 1e-9, b = (i + 2) * (i + 2) - 1e-9, x, fx;
        watch log = minimise(poles, a, b, 0, 0, &x, &fx);
        if (!(fabs(x / want[i] - 1) < 1e-7))
            fail_msg("minimum %d: %.17g, should be %.17g", i + 1, x, want[i]);
        most = log.calls > most ? log.calls : most;
    }
    print_message("at most %d evaluations\n", most);
    assert_true(most < 60);
}

/* The tolerance is relative to x, not to the interval: twelve decades are no trouble. */
static void brent__is_relative(void **state)
{
    (void)state;
    for (double shift = -5; shift <= 5; shift++) {
        double x, fx;
        minimise(log_parabola, 1e-6, 1e6, shift, 1e-6, &x, &fx);
        assert_true(fabs(x / pow(10, shift) - 1) < 1e-5);
    }
    double x, fx, coarse_x, coarse_fx;
    watch fine = minimise(parabola, 0, 10, 3, 0, &x, &fx);
    watch coarse = minimise(kink, 0, 10, 3.3, 1e-2, &coarse_x, &coarse_fx);
    assert_true(fabs(coarse_x - 3.3) < 0.2);
    assert_true(fine.calls > 0 && coarse.calls < 30);
}

static void brent__ends_at_an_end_point(void **state)
{
    (void)state;
    double x, fx;
    minimise(parabola, 2, 3, 0, 0, &x, &fx);
    assert_true(x == 2 && fx == 5);
    minimise(parabola, -3, -2, 0, 0, &x, &fx);
    assert_true(x == -2 && fx == 5);
    minimise(parabola, 0, 1, 0, 0, &x, &fx); /* flat to rounding there */
    assert_true(x == 0 && fx == 1);
    minimise(parabola, -1, 0, 0, 0, &x, &fx);
    assert_true(x == 0 && fx == 1);
    minimise(kink, 0, 1e300, 0, 0, &x, &fx);
    assert_true(x == 0 && fx == 0);
    minimise(cosine, 1, 3.2, 0, 0, &x, &fx); /* close to an end, but not there */
    assert_true(fx == -1 && fabs(x - 3.14159265358979) < 1e-7);
    minimise(cosine, 2, 20, 0, 0, &x, &fx); /* three equal minima: one of them */
    assert_true(fx == -1);
    minimise(constant, -1, 1, 0, 0, &x, &fx);
    assert_true(x == -1 && fx == 7);
    minimise(parabola, 1, 1 + DBL_EPSILON, 0, 0, &x, &fx); /* no double in between */
    assert_true(x == 1 && fx == 2);
    minimise(kink, 0, DBL_TRUE_MIN, 0, 0, &x, &fx);
    assert_true(x == 0 && fx == 0);
}

static void brent__takes_nan_for_infinity(void **state)
{
    (void)state;
    double x, fx;
    for (double c = 0; c < 8; c += 0.5) { /* x + 1/(x-c) is least at c + 1 */
        minimise(right_only, 0, 10, c, 0, &x, &fx);
        assert_true(fabs(x - (c + 1)) < 1e-6);
    }
    for (double c = 0.5; c < 10; c += 0.5) { /* at c - 1/10 */
        minimise(left_only, 0, 10, c, 0, &x, &fx);
        assert_true(fabs(x - (c - 0.1)) < 1e-6);
    }
    minimise(deep, 0, 5, 0, 0, &x, &fx);
    assert_true(x > 2 && fx == -INFINITY);

    watch log = {0, 0, 1, 0};
    fin_error err = {FIN_OK, ""};
    x = fx = 7;
    assert_int_equal(fini_brent(never, &log, 0, 1, 0, &x, &fx, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "NaN"));
    assert_true(x == 7 && fx == 7 && log.calls < 200);
}

static void brent__rejects(void **state)
{
    (void)state;
    const double bad[][3] = {
        {1, 1, 0},
        {2, 1, 0},
        {NAN, 1, 0},
        {0, NAN, 0},
        {-INFINITY, 1, 0},
        {0, INFINITY, 0},
        {-DBL_MAX, DBL_MAX, 0},
        {0, 1, NAN},
        {0, 1, -1e-9},
        {0, 1, 1},
        {0, 1, INFINITY},
    };
    double x = 5, fx = 6;
    watch log = {0, -INFINITY, INFINITY, 0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_error err = {FIN_OK, ""};
        fin_status status =
            fini_brent(parabola, &log, bad[i][0], bad[i][1], bad[i][2], &x, &fx, &err);
        assert_int_equal(status, FIN_ERR_ARGUMENT);
        assert_int_equal(err.status, FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "brent: "));
    }
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fini_brent(NULL, NULL, 0, 1, 0, &x, &fx, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "f is NULL"));
    assert_int_equal(fini_brent(parabola, &log, 0, 1, 0, NULL, &fx, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fini_brent(parabola, &log, 0, 1, 0, &x, NULL, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fini_brent(parabola, &log, 1, 0, 0, &x, &fx, NULL), FIN_ERR_ARGUMENT);
    assert_true(x == 5 && fx == 6 && log.calls == 0); /* nothing is called, nothing written */
}

static fin_status run_brent(void *user, fin_error *err)
{
    (void)user;
    watch log = {0, 2, 5, 0};
    double x, fx;
    return fini_brent(cosine, &log, 2, 5, 0, &x, &fx, err);
}

static void brent__survives_allocation_faults(void **state)
{
    (void)state;
    assert_int_equal(fault_every(run_brent, NULL), 0); /* it needs no memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brent__finds_known_minima),
        cmocka_unit_test(brent__solves_the_problem_of_its_inventor),
        cmocka_unit_test(brent__is_relative),
        cmocka_unit_test(brent__ends_at_an_end_point),
        cmocka_unit_test(brent__takes_nan_for_infinity),
        cmocka_unit_test(brent__rejects),
        cmocka_unit_test(brent__survives_allocation_faults),
    };
    return cmocka_run_group_tests_name("math_brent", tests, NULL, NULL);
}
