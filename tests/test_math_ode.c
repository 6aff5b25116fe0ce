/* Stiff systems: known solutions, the order, what a slope may refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "math/ode.h"

/* y0' = -k (y0 - cos s) - sin s, y0 = cos s from y0(0) = 1; y1' = -y1, y2' = y0 y2, so y2 = exp(sin s). */
static int forced(double s, const double *y, double *slope, void *user)
{
    double k = *(const double *)user;
    slope[0] = -k * (y[0] - cos(s)) - sin(s);
    slope[1] = -y[1];
    slope[2] = y[0] * y[2];
    return 0;
}

static fini_ode make_ode(fini_slope *slope, int n, double tolerance, void *user)
{
    return (fini_ode){
        .n = n, .relative = tolerance, .absolute = tolerance, .slope = slope, .user = user};
}

/* Largest error on the way to s = 5, at ends of steps and within them. */
static double worst_error(double k, double tolerance, long *steps)
{
    fini_ode o = make_ode(forced, 3, tolerance, &k);
    double y[FINI_ODE_MOST], worst = 0;
    fini_ode_begin(&o, 0, (double[]){1, 2, 1});
    while (o.s < 5) {
        assert_int_equal(fini_ode_step(&o, 5), FINI_ODE_DONE);
        for (int i = 0; i <= 4; i++) {
            double s = i < 4 ? o.before + (o.s - o.before) * i / 4 : o.s;
            fini_ode_at(&o, s, y);
            worst = fmax(worst, fmax(fabs(y[0] - cos(s)), fabs(y[1] - 2 * exp(-s))));
            worst = fmax(worst, fabs(y[2] - exp(sin(s))));
        }
    }
    assert_true(o.s == 5);
    *steps = o.steps;
    return worst;
}

static void ode__known_solutions_however_stiff(void **state)
{
    (void)state;
    for (double k = 1; k <= 1e8; k *= 100)
        for (double tolerance = 1e-4; tolerance > 1e-11; tolerance /= 1000) {
            long steps;
            double worst = worst_error(k, tolerance, &steps);
            print_message("k %.0e, tolerance %.0e: error %.1e, %ld steps\n", k, tolerance, worst,
                          steps);
            assert_true(worst < 3 * tolerance);
            /* the step follows the solution, not k: an explicit rule would need k 5 / 3 of them */
            assert_true(steps < 60 * pow(tolerance, -0.25));
        }
}

/* One step of y' = -y is the rational function of Radau IIA, R(-h) = (1 - 2h/5 + h^2/20) / (1 + 3h/5 + 3h^2/20 + h^3/60). */
static int decay(double s, const double *y, double *slope, void *user)
{
    (void)s, (void)user;
    slope[0] = -y[0];
    return 0;
}

static void ode__a_step_is_the_methods(void **state)
{
    (void)state;
    for (double h = 1e-3; h < 2; h *= 3) {
        fini_ode o = make_ode(decay, 1, 1e-10, NULL);
        fini_ode_begin(&o, 0, (double[]){1});
        o.relative = 1e6; /* any step is taken, Newton is exact on a linear system */
        o.h = h;
        assert_int_equal(fini_ode_step(&o, h), FINI_ODE_DONE);
        double R = (1 - 2 * h / 5 + h * h / 20) / (1 + 3 * h / 5 + 3 * h * h / 20 + h * h * h / 60);
        print_message("h %.3f: %.3e off\n", h, o.y[0] - R);
        assert_true(o.s == h && fabs(o.y[0] - R) < 1e-14);
    }
}

/* Slopes that are not there beyond s = 1, or that give up there. */
static int cliff(double s, const double *y, double *slope, void *user)
{
    (void)y;
    slope[0] = 1;
    return s > 1 ? *(const int *)user : 0;
}

static void ode__a_slope_may_refuse(void **state)
{
    (void)state;
    for (int no = -1; no <= 1; no += 2) {
        fini_ode o = make_ode(cliff, 1, 1e-8, &no);
        fini_ode_begin(&o, 0, (double[]){0});
        fini_ode_end end;
        while ((end = fini_ode_step(&o, 3)) == FINI_ODE_DONE)
            assert_true(o.s <= 1);
        assert_int_equal(end, no < 0 ? FINI_ODE_STOPPED : FINI_ODE_STUCK);
        assert_true(no < 0 || (o.s > 1 - 1e-9 && fabs(o.y[0] - o.s) < 1e-12));
    }
}

/* Not a number anywhere is an end, not a loop. */
static int nothing(double s, const double *y, double *slope, void *user)
{
    (void)y, (void)user;
    slope[0] = s > 0.5 ? NAN : 1;
    return 0;
}

static void ode__nan_ends(void **state)
{
    (void)state;
    fini_ode o = make_ode(nothing, 1, 1e-8, NULL);
    fini_ode_begin(&o, 0, (double[]){0});
    fini_ode_end end;
    while ((end = fini_ode_step(&o, 3)) == FINI_ODE_DONE)
        assert_true(o.s <= 3);
    assert_int_equal(end, FINI_ODE_STUCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ode__known_solutions_however_stiff),
        cmocka_unit_test(ode__a_step_is_the_methods),
        cmocka_unit_test(ode__a_slope_may_refuse),
        cmocka_unit_test(ode__nan_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
