/* L-BFGS: known minima, steps that were too long, and going on after a stop to the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "math/lbfgs.h"

#include <math.h>
#include <string.h>

enum { N = 10 };

/* sum_i 100 (x_{2i+1} - x_2i^2)^2 + (1 - x_2i)^2: a bent valley, minimum 0 at ones. */
static fin_status rosenbrock(void *user, const double *x, double *value, double *g, fin_error *err)
{
    (void)user, (void)err;
    *value = 0;
    for (int i = 0; i < N; i += 2) {
        double a = 1 - x[i], b = x[i + 1] - x[i] * x[i];
        *value += 100 * b * b + a * a;
        g[i] = -400 * x[i] * b - 2 * a;
        g[i + 1] = 200 * b;
    }
    return FIN_OK;
}

/* sum_i x_i - log x_i: nothing below zero; minimum N at ones. */
static fin_status barrier(void *user, const double *x, double *value, double *g, fin_error *err)
{
    (void)user, (void)err;
    *value = 0;
    for (int i = 0; i < N; i++) {
        *value += x[i] - log(x[i]);
        g[i] = 1 - 1 / x[i];
    }
    return FIN_OK;
}

/* Fails when *user gets to zero. */
static fin_status breaks(void *user, const double *x, double *value, double *g, fin_error *err)
{
    int *left = user;
    if ((*left)-- == 0)
        return fini_fail(err, FIN_ERR_NUMERIC, "broken");
    return rosenbrock(NULL, x, value, g, err);
}

/* The barrier with values that are good to about 1e-12 only, as those of a factorised matrix are. */
static fin_status rounded(void *user, const double *x, double *value, double *g, fin_error *err)
{
    int *count = user;
    fin_status status = barrier(NULL, x, value, g, err);
    *value += 1e-12 * sin(12.9898 * ++*count);
    return status;
}

static fini_lbfgs open_search(fini_function function, void *user)
{
    fini_lbfgs o;
    assert_int_equal(fini_lbfgs_create(&o, N, NULL), FIN_OK);
    o.iterations = 500;
    o.gradient = 1e-9;
    o.function = function;
    o.user = user;
    return o;
}

static void start(double *x)
{
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? 1 : -1.2;
}

static void lbfgs__finds_known_minima(void **state)
{
    (void)state;
    fini_function functions[] = {rosenbrock, barrier};
    const double least[] = {0, N};
    for (int f = 0; f < 2; f++) {
        double x[N];
        fini_lbfgs o = open_search(functions[f], NULL);
        for (int i = 0; i < N; i++)
            x[i] = f ? 7 + i : i % 2 ? 1 : -1.2; /* the first step of the barrier ends outside */
        assert_int_equal(fini_lbfgs_run(&o, x, NULL), FIN_OK);
        assert_true(o.finished);
        assert_true(fabs(o.value - least[f]) < 1e-12);
        for (int i = 0; i < N; i++)
            assert_true(fabs(x[i] - 1) < 1e-7);
        print_message("%lld iterations, %lld values\n", (long long)o.done,
                      (long long)o.evaluations);
        fini_lbfgs_close(&o);
    }
}

/* Where values are noise slopes decide, and a search that knows it ends soon. */
static void lbfgs__does_not_search_in_noise(void **state)
{
    (void)state;
    double x[N];
    int count = 0;
    fini_lbfgs o = open_search(rounded, &count);
    o.noise = 1e-10;
    for (int i = 0; i < N; i++)
        x[i] = 7 + i;
    assert_int_equal(fini_lbfgs_run(&o, x, NULL), FIN_OK);
    assert_true(o.finished);
    assert_true(count == o.evaluations && count < 60);
    for (int i = 0; i < N; i++)
        assert_true(fabs(x[i] - 1) < 1e-8);
    fini_lbfgs_close(&o);
}

static void lbfgs__says_when_it_ran_out_of_iterations(void **state)
{
    (void)state;
    double x[N];
    fini_lbfgs o = open_search(rosenbrock, NULL);
    o.iterations = 3;
    start(x);
    assert_int_equal(fini_lbfgs_run(&o, x, NULL), FIN_OK);
    assert_false(o.finished);
    assert_int_equal(o.done, 3);
    fini_lbfgs_close(&o);
}

/* What the header says is enough to go on is copied into a search that never saw the start. */
static void lbfgs__goes_on_to_the_same_bytes(void **state)
{
    (void)state;
    double x[N], y[N];
    bool more = true;
    fini_lbfgs a = open_search(rosenbrock, NULL), b = open_search(rosenbrock, NULL);
    start(x);
    assert_int_equal(fini_lbfgs_begin(&a, x, NULL), FIN_OK);
    for (int i = 0; i < 12; i++)
        assert_int_equal(fini_lbfgs_next(&a, x, &more, NULL), FIN_OK);
    b.value = a.value, b.done = a.done, b.kept = a.kept, b.newest = a.newest, b.enough = a.enough;
    memcpy(b.past, a.past, sizeof b.past);
    memcpy(b.g, a.g, sizeof x);
    memcpy(b.S, a.S, FINI_LBFGS_MEMORY * sizeof x);
    memcpy(b.Y, a.Y, FINI_LBFGS_MEMORY * sizeof x);
    memcpy(b.rho, a.rho, FINI_LBFGS_MEMORY * sizeof *b.rho);
    memcpy(y, x, sizeof y);
    while (more)
        assert_int_equal(fini_lbfgs_next(&a, x, &more, NULL), FIN_OK);
    for (more = true; more;)
        assert_int_equal(fini_lbfgs_next(&b, y, &more, NULL), FIN_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(a.done, b.done);
    fini_lbfgs_close(&a);
    fini_lbfgs_close(&b);
}

static void lbfgs__after_a_failure_it_is_where_it_was(void **state)
{
    (void)state;
    for (int fails = 0; fails < 20; fails++) {
        double x[N], before[N];
        int left = fails;
        bool more = true;
        fini_lbfgs o = open_search(breaks, &left);
        start(x);
        fin_status status = fini_lbfgs_begin(&o, x, NULL);
        while (!status) {
            memcpy(before, x, sizeof x);
            status = fini_lbfgs_next(&o, x, &more, NULL);
        }
        assert_int_equal(status, FIN_ERR_NUMERIC);
        if (fails)
            assert_memory_equal(x, before, sizeof x);
        fini_lbfgs_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lbfgs__finds_known_minima),
        cmocka_unit_test(lbfgs__does_not_search_in_noise),
        cmocka_unit_test(lbfgs__says_when_it_ran_out_of_iterations),
        cmocka_unit_test(lbfgs__goes_on_to_the_same_bytes),
        cmocka_unit_test(lbfgs__after_a_failure_it_is_where_it_was),
    };
    return cmocka_run_group_tests_name("math_lbfgs", tests, NULL, NULL);
}
