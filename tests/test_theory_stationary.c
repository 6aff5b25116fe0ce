/* Stationary points on M against brute force: Newton steps in the angles from a fine grid. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "test_theory_help.h"
#include "task/task.h"

static const double pi = 3.14159265358979323846;

enum { ROOM = 64 };

static fin_task *paper(int64_t d, int64_t L)
{
    fin_task *task;
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = d;
    s.L = L;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err));
    return task;
}

/* dR/da, dR/db at kappa = cos a, nu = cos b. */
static void slope(const fin_task *task, const fin_form *form, const fin_form_settings *fs, double a,
                  double b, double out[2])
{
    fin_overlaps o = {.kappa = cos(a), .nu = cos(b)};
    fin_risk_report report;
    OK(fin_risk(task, form, fs, &o, NULL, NULL, &report, &err));
    out[0] = -sin(a) * report.gradient[0];
    out[1] = -sin(b) * report.gradient[1];
}

/* Newton in the angles from a grid; counts the different ends. */
static int brute_force(const fin_task *task, const fin_form *form, const fin_form_settings *fs,
                       int grid, double found[ROOM][2])
{
    int count = 0;
    for (int i = 0; i <= grid; i++)
        for (int j = 0; j <= grid; j++) {
            double a = pi * i / grid, b = pi * j / grid, g[2];
            int steps = 0;
            for (; steps < 60; steps++) {
                double right[2], up[2], h = 1e-5;
                slope(task, form, fs, a, b, g);
                if (hypot(g[0], g[1]) < 1e-12)
                    break;
                slope(task, form, fs, a + h, b, right);
                slope(task, form, fs, a, b + h, up);
                double A = (right[0] - g[0]) / h, B = (up[0] - g[0]) / h, C = (right[1] - g[1]) / h,
                       D = (up[1] - g[1]) / h, det = A * D - B * C;
                double da = (D * g[0] - B * g[1]) / det, db = (A * g[1] - C * g[0]) / det;
                double size = hypot(da, db), scale = size > 0.1 ? 0.1 / size : 1;
                if (!isfinite(size))
                    break;
                a -= scale * da;
                b -= scale * db;
            }
            slope(task, form, fs, a, b, g);
            if (!(hypot(g[0], g[1]) < 1e-12))
                continue;
            int known = 0;
            for (int l = 0; l < count && !known; l++)
                known = fabs(found[l][0] - cos(a)) < 1e-5 && fabs(found[l][1] - cos(b)) < 1e-5;
            if (!known && count < ROOM) {
                found[count][0] = cos(a);
                found[count++][1] = cos(b);
            }
        }
    return count;
}

static int64_t points_of(const fin_task *task, const char *form, double lam, double c,
                         fin_stationary *points)
{
    int64_t count;
    fin_form_settings fs = {lam, c};
    OK(fin_stationary_points(task, fin_form_find(form), &fs, ROOM, points, &count, &err));
    assert_true(count <= ROOM);
    return count;
}

static void show(const char *title, int64_t d, int64_t count, const fin_stationary *points)
{
    print_message("%s\n   kappa       nu          risk   kind        negative  lowest    highest\n",
                  title);
    for (int64_t i = 0; i < count; i++) {
        const fin_curvature *c = &points[i].curvature;
        print_message(
            "%8.4f %8.4f  %12.6g   %-10s  %8lld  %-9.3g %-9.3g\n", points[i].at.kappa,
            points[i].at.nu, points[i].risk, fin_curvature_name(c, d), (long long)c->negative,
            c->rest_count ? fmin(c->span[0], c->rest[0]) : c->span[0], c->span[c->span_count - 1]);
    }
}

static void check_points(const fin_task *task, int64_t count, const fin_stationary *points)
{
    int64_t d = fin_task_get_settings(task)->d;
    for (int64_t i = 0; i < count; i++) {
        const fin_stationary *p = &points[i];
        OK(fini_overlaps_realisable(&p->at, d, &err));
        assert_true(p->at.theta == 0 && p->at.eta == 0 && p->at.rho == 0);
        assert_true(p->curvature.gradient < 1e-12 * (1 + fabs(p->curvature.span[5])));
        assert_true(i == 0 || p->risk >= points[i - 1].risk);
    }
}

/* Compares with Newton from a grid: the same points, neither more nor fewer. */
static void against_newton(const fin_task *task, const char *form, double lam, double c)
{
    static fin_stationary points[ROOM];
    double found[ROOM][2];
    fin_form_settings fs = {lam, c};
    int64_t count = points_of(task, form, lam, c, points);
    int brute = brute_force(task, fin_form_find(form), &fs, 24, found);
    check_points(task, count, points);
    for (int l = 0; l < brute; l++) {
        int known = 0;
        for (int64_t i = 0; i < count && !known; i++)
            known = fabs(found[l][0] - points[i].at.kappa) < 1e-5 &&
                    fabs(found[l][1] - points[i].at.nu) < 1e-5;
        if (!known)
            fail_msg("%s, lam %g, c %g: Newton finds (%.9g, %.9g)", form, lam, c, found[l][0],
                     found[l][1]);
    }
    if (brute != count)
        fail_msg("%s, lam %g, c %g: %d by Newton, %d here", form, lam, c, brute, (int)count);
}

/* The paper's setting: the two minima, two saddles at the other corners, one at the centre. */
static void stationary__of_the_paper(void **state)
{
    (void)state;
    fin_stationary points[ROOM];
    fin_task *task = paper(400, 10);
    int64_t count = points_of(task, "erf", 0.1, 0, points);
    show("erf, d = 400, L = 10, lam = 0.1", 400, count, points);
    check_points(task, count, points);
    static const struct {
        double kappa, nu;
        const char *kind;
    } expected[] = {{1, 1, "minimum"},
                    {-1, -1, "minimum"},
                    {0, 0, "saddle"},
                    {1, -1, "saddle"},
                    {-1, 1, "saddle"}};
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++) {
        assert_true(points[i].at.kappa == expected[i].kappa && points[i].at.nu == expected[i].nu);
        assert_string_equal(fin_curvature_name(&points[i].curvature, 400), expected[i].kind);
    }
    against_newton(task, "erf", 0.1, 0);

    /* By brute force on the whole square: the risk is nowhere below the minima. */
    double least = INFINITY;
    for (int i = 0; i <= 200; i++)
        for (int j = 0; j <= 200; j++) {
            fin_overlaps o = {.kappa = cos(pi * i / 200), .nu = cos(pi * j / 200)};
            fin_risk_report report;
            OK(fin_risk(task, fin_form_find("erf"), NULL, &o, NULL, NULL, &report, &err));
            least = fmin(least, report.risk.value);
        }
    assert_true(fabs(least - points[0].risk) < 1e-15);
    fin_task_destroy(task);
}

static void stationary__equals_newton(void **state)
{
    (void)state;
    static fin_stationary points[ROOM];
    fin_task *task = paper(12, 10);
    for (double lam = 0.05; lam < 1; lam *= 2.3)
        against_newton(task, "erf", lam, 0);
    /* mu = sqrt 6; linear: (0, 1), (-2/(lam mu), -1), (-1/(lam mu), 0) where they are inside */
    against_newton(task, "linear", 0.3, 0);
    against_newton(task, "linear", 0.6, 0);
    against_newton(task, "linear", 1.2, 0);
    int64_t count = points_of(task, "linear", 1.2, 0, points);
    show("linear, d = 12, L = 10, lam = 1.2", 12, count, points);
    assert_int_equal(count, 7);
    /* shifted: the weight 1 is at kappa = -c/(lam mu) */
    against_newton(task, "shifted", 0.3, -0.4);
    against_newton(task, "shifted", 0.3, 0.2);
    against_newton(task, "shifted", 0.3, -1);
    count = points_of(task, "shifted", 0.3, -0.4, points);
    show("shifted, d = 12, L = 10, lam = 0.3, c = -0.4", 12, count, points);
    assert_int_equal(count, 5);
    fin_task_destroy(task);
}

/* Where the gradient underflows over most of the square, and at a dimension where all that happens
 * happens within 1e-7 of kappa. */
static void stationary__plateaus_are_not_points(void **state)
{
    (void)state;
    static fin_stationary points[ROOM];
    fin_task *task = paper(400, 10), *vast = paper(FIN_D_MAX, 10), *large = paper(100000000, 10);
    for (double lam = 0.5; lam < 2e5; lam *= 7) {
        assert_int_equal(points_of(task, "erf", lam, 0, points), 5);
        assert_int_equal(points_of(vast, "erf", lam, 0, points), 5);
        assert_true(points[2].at.kappa == 0 && points[2].at.nu == 0);
        assert_int_equal(points_of(large, "erf", lam, 0, points), 5);
        assert_string_equal(fin_curvature_name(&points[2].curvature, 100000000), "saddle");
    }
    int64_t count = points_of(vast, "shifted", 1, -1e5, points);
    double kappa = 1e5 / fin_task_get_settings(vast)->mu;
    assert_int_equal(count, 5);
    assert_true(fabs(points[0].at.kappa - kappa) < 1e-12 && points[0].at.nu == 1);
    fin_task_destroy(task);
    fin_task_destroy(vast);
    fin_task_destroy(large);
}

/* In two dimensions there are the corners only, in three one of k, v may leave them. */
static void stationary__in_few_dimensions(void **state)
{
    (void)state;
    static fin_stationary points[ROOM];
    for (int64_t d = 2; d <= 4; d++) {
        fin_task *task = paper(d, 10);
        int64_t count = points_of(task, "erf", 0.5, 0, points);
        assert_int_equal(count, d < 4 ? 4 : 5);
        show("erf, few dimensions, L = 10, lam = 0.5", d, count, points);
        assert_int_equal(points_of(task, "linear", 0.5, 0, points), d < 3 ? 4 : 5);
        fin_task_destroy(task);
    }
}

static void stationary__of_a_constant(void **state)
{
    (void)state;
    static fin_stationary points[ROOM];
    fin_task *task = paper(9, 10);
    int64_t count = points_of(task, "erf", 0, 0, points);
    assert_int_equal(count, 7); /* corners, and one for each function that vanishes */
    for (int64_t i = 0; i < count; i++)
        assert_string_equal(fin_curvature_name(&points[i].curvature, 9), "degenerate");
    fin_task_destroy(task);
}

static void stationary__writes_what_fits(void **state)
{
    (void)state;
    fin_stationary all[ROOM], some[3];
    int64_t count;
    fin_task *task = paper(400, 10);
    const fin_form *form = fin_form_find("erf");
    assert_int_equal(points_of(task, "erf", 0.1, 0, all), 5);
    memset(some, 0x55, sizeof some);
    OK(fin_stationary_points(task, form, NULL, 2, some, &count, &err));
    assert_int_equal(count, 5);
    assert_memory_equal(&some[0].at, &all[0].at, sizeof some[0].at);
    assert_memory_equal(&some[1].at, &all[1].at, sizeof some[1].at);
    unsigned char after;
    memcpy(&after, &some[2], 1);
    assert_int_equal(after, 0x55);
    OK(fin_stationary_points(task, form, NULL, 0, NULL, &count, &err));
    assert_int_equal(count, 5);
    fin_task_destroy(task);
}

static void stationary__refusals(void **state)
{
    (void)state;
    fin_stationary points[ROOM];
    int64_t count;
    fin_task *task = paper(400, 10), *max = make("max", 9, 6, 6, 1, 2, 0);
    const fin_form *form = fin_form_find("erf");
    assert_int_equal(
        fin_stationary_points(task, fin_form_find("softmax"), NULL, ROOM, points, &count, &err),
        FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_stationary_points(max, form, NULL, ROOM, points, &count, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_stationary_points(task, form, NULL, -1, points, &count, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_stationary_points(task, form, NULL, 1, NULL, &count, &err),
                     FIN_ERR_ARGUMENT);
    fin_form_settings fs = {NAN, 0};
    assert_int_equal(fin_stationary_points(task, form, &fs, ROOM, points, &count, &err),
                     FIN_ERR_ARGUMENT);
    fin_task_destroy(task);
    fin_task_destroy(max);
}

static fin_status search(void *user, fin_error *e)
{
    (void)user;
    fin_task *task;
    int64_t count;
    fin_status status = fin_task_create(&task, fin_task_find("slr"), NULL, NULL, 1, 0, e);
    if (status)
        return status;
    status = fin_stationary_points(task, fin_form_find("erf"), NULL, 0, NULL, &count, e);
    fin_task_destroy(task);
    return status;
}

static void stationary__allocations_may_fail(void **state)
{
    (void)state;
    fault_every(search, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stationary__of_the_paper),
        cmocka_unit_test(stationary__equals_newton),
        cmocka_unit_test(stationary__plateaus_are_not_points),
        cmocka_unit_test(stationary__in_few_dimensions),
        cmocka_unit_test(stationary__of_a_constant),
        cmocka_unit_test(stationary__writes_what_fits),
        cmocka_unit_test(stationary__refusals),
        cmocka_unit_test(stationary__allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
