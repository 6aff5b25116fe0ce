/* The best k, v and lam, and stationary points off M: against the theory's numbers, random search in R^6 that knows no frame and
 * no gradient, and differences. */
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
#include "theory/theory.h"
#include "task/task.h"

static fin_task *paper(int64_t d)
{
    fin_task *task;
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = d;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err));
    return task;
}

/* With c = -1.5 where there is one: at 0 the best lam of `shifted` is 0. */
static fin_form_settings settings_of(const fin_form *form, double lam)
{
    fin_form_settings fs = {0};
    fin_settings_defaults(fin_form_table(form), &fs, sizeof fs);
    fs.lam = lam;
    if (fin_settings_find(fin_form_table(form), "c"))
        fs.c = -1.5;
    return fs;
}

static double risk_of(const fin_task *task, const fin_form *form, const fin_overlaps *o, double lam)
{
    fin_form_settings fs = settings_of(form, lam);
    fin_risk_report report;
    OK(fin_risk(task, form, &fs, o, NULL, NULL, &report, &err));
    return report.risk.value;
}

/* The ratios and, at d = 400, risks and lam that were derived beside this library. */
static void best__is_the_swapped_pair(void **state)
{
    (void)state;
    static const struct {
        int64_t d;
        double ratio;
    } rows[] = {{50, 0.92}, {400, 0.63}, {10000, 0.33}, {100000000, 0.12}};
    for (int i = 0; i < 4; i++) {
        fin_task *task = paper(rows[i].d);
        const fin_form *erf = fin_form_find("erf");
        fin_best best;
        fin_estimate star;
        double lam;
        OK(fin_lam_star(task, erf, NULL, NULL, NULL, &lam, &star, &err));
        OK(fin_risk_best(task, erf, NULL, NULL, &best, &err));
        printf("d = %.0e: best %.10g at lam = %.10g, oracle %.10g\n", (double)rows[i].d,
               best.risk.value, best.lam, star.value);
        assert_true(fabs(best.risk.value / star.value - rows[i].ratio) < 0.005);
        const fin_overlaps swapped = {.theta = 1, .eta = 1};
        assert_true(fini_same_place(&best.at, &swapped, 1e-7));
        assert_true(fabs(risk_of(task, erf, &best.at, best.lam) / best.risk.value - 1) < 1e-12);
        if (rows[i].d == 400) {
            assert_true(fabs(best.risk.value - 0.0422) < 5e-5 && fabs(best.lam - 0.0575) < 5e-5);
            assert_true(fabs(star.value - 0.0671) < 5e-5 && fabs(lam - 0.0638) < 5e-5);
        }
        fin_task_destroy(task);
    }
}

enum { N = 6 }; /* two dimensions more than it takes */

typedef struct guess {
    double x[2][N], log_lam, risk;
} guess;

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += a[i] * b[i];
    return sum;
}

static double rate(const fin_task *task, const fin_form *form, const guess *g)
{
    const double *k = g->x[0], *v = g->x[1];
    double a = sqrt(dot(k, k)), b = sqrt(dot(v, v));
    const fin_overlaps o = {k[0] / a, v[1] / b, v[0] / b, k[1] / a, dot(k, v) / (a * b)};
    return risk_of(task, form, &o, exp(g->log_lam));
}

/* Random guesses, then small random changes of the best of them that are kept if the risk falls. */
static double random_search(const fin_task *task, const fin_form *form, uint64_t seed)
{
    fin_random r;
    guess best = {.risk = INFINITY};
    double size = 0.3;
    fin_random_open(&r, seed, FIN_STREAM_USER, 0);
    for (int i = 0; i < 30000; i++) {
        guess g = best;
        bool far = i < 10000;
        for (int j = 0; j < 2 * N; j++)
            g.x[j / N][j % N] =
                (far ? 0 : g.x[j / N][j % N]) + (far ? 1 : size) * fin_random_normal(&r);
        g.log_lam = far ? -4 + 2 * fin_random_normal(&r) : g.log_lam + size * fin_random_normal(&r);
        g.risk = rate(task, form, &g);
        size *= far ? 1 : g.risk < best.risk ? 1.5 : 0.97;
        size = size < 1e-7 ? 0.1 : size;
        best = g.risk < best.risk ? g : best;
    }
    return best.risk;
}

static void best__is_what_random_search_finds(void **state)
{
    (void)state;
    static const struct {
        const char *task, *form;
        int64_t d, L_min, L, m;
        double snr;
    } rows[] = {{"slr", "erf", 30, 6, 6, 1, 0},
                {"slr", "erf", 30, 4, 9, 3, 0},
                {"spiked", "erf", 30, 6, 6, 1, 30},
                {"spiked", "shifted", 30, 3, 3, 1, 30},
                {"slr", "linear", 30, 2, 2, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fin_task *task =
            make(rows[i].task, rows[i].d, rows[i].L_min, rows[i].L, rows[i].m, rows[i].snr, 0);
        const fin_form *form = fin_form_find(rows[i].form);
        const fin_form_settings fs = settings_of(form, 0.1);
        fin_best best;
        OK(fin_risk_best(task, form, &fs, NULL, &best, &err));
        double least = INFINITY;
        for (uint64_t seed = 1; seed <= 3; seed++)
            least = fmin(least, random_search(task, form, seed));
        printf("%s, %s: best %.12g (lam %.6g), random search %.12g\n", rows[i].task, rows[i].form,
               best.risk.value, best.lam, least);
        assert_true(least >= best.risk.value * (1 - 1e-9));
        assert_true(least <= best.risk.value * (1 + 1e-3));
        fin_task_destroy(task);
    }
}

/* Differences along the tangents; second ones of the risk. */
static void spheres__have_gradient_and_hessian(void **state)
{
    (void)state;
    fin_task *task = make("slr", 30, 2, 9, 2, 0, 0);
    const fin_form *form = fin_form_find("erf");
    fin_form_settings fs;
    fin_random r;
    fin_settings_defaults(fin_form_table(form), &fs, sizeof fs);
    fs.lam = 0.3;
    fin_random_open(&r, 3, FIN_STREAM_USER, 0);
    fini_spheres s = {.n = 4}, t;
    for (int i = 0; i < 8; i++)
        (i < 4 ? s.k : s.v)[i % 4] = fin_random_normal(&r);
    for (int i = 0; i < 2; i++) {
        double *x = i ? s.v : s.k, sum = 0;
        for (int c = 0; c < 4; c++)
            sum += x[c] * x[c];
        for (int c = 0; c < 4; c++)
            x[c] /= sqrt(sum);
    }
    OK(fini_spheres_look(task, form, &fs, &s, &err));
    assert_int_equal(s.size, 6);
    const double h = 1e-3;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double value[2][2];
            for (int a = 0; a < 2; a++)
                for (int b = 0; b < 2; b++) {
                    double xi[6] = {0};
                    xi[i] += a ? h : -h;
                    xi[j] += b ? h : -h;
                    double u[2] = {0, 0}; /* along geodesics: cos |xi| x + sin |xi| xi / |xi| */
                    for (int e = 0; e < 6; e++)
                        u[e / 3] += xi[e] * xi[e];
                    t = (fini_spheres){.n = 4};
                    for (int c = 0; c < 4; c++) {
                        double side[2] = {0, 0};
                        for (int e = 0; e < 6; e++)
                            side[e / 3] += xi[e] * s.basis[e / 3][e % 3][c];
                        double nk = sqrt(u[0]), nv = sqrt(u[1]);
                        t.k[c] = cos(nk) * s.k[c] + (nk > 0 ? sin(nk) / nk : 1) * side[0];
                        t.v[c] = cos(nv) * s.v[c] + (nv > 0 ? sin(nv) / nv : 1) * side[1];
                    }
                    OK(fini_spheres_look(task, form, &fs, &t, &err));
                    value[a][b] = t.risk;
                }
            double second = (value[1][1] - value[1][0] - value[0][1] + value[0][0]) / (4 * h * h);
            assert_true(fabs(second - s.hessian[i * 6 + j]) < 2e-4 * (1 + fabs(second)));
            if (i == j)
                assert_true(fabs((value[1][1] - value[0][0]) / (4 * h) - s.gradient[i]) <
                            2e-4 * (1 + fabs(s.gradient[i])));
        }
    fin_task_destroy(task);
}

/* At d = 400, lam = 0.06: the theory's two pairs of minima with their risks; elsewhere every point found is a root of the
 * projected gradient of the five overlaps, which the library has a formula of its own for. */
static void stationary__off_M_too(void **state)
{
    (void)state;
    enum { ROOM = 200 };
    static fin_stationary all[ROOM], on_M[ROOM];
    fin_task *task = paper(400);
    const fin_form *form = fin_form_find("erf");
    fin_form_settings fs;
    int64_t count, few, minima = 0, off = 0, oracle = 0, swapped = 0;
    fin_settings_defaults(fin_form_table(form), &fs, sizeof fs);
    fs.lam = 0.06;
    OK(fin_stationary_points(task, form, &fs, ROOM, on_M, &few, &err));
    OK(fin_stationary_search(task, form, &fs, &(fin_stationary_tries){25, 1}, ROOM, all, &count,
                             NULL, &err));
    assert_true(count > few && count <= ROOM);
    for (int64_t i = 0; i < count; i++) {
        const fin_overlaps *o = &all[i].at;
        const fin_curvature *c = &all[i].curvature;
        double largest = fmax(fabs(c->span[0]), fabs(c->span[5]));
        bool minimum = strcmp(fin_curvature_name(c, 400), "minimum") == 0;
        printf("%8.4f %8.4f %8.4f %8.4f %8.4f  %.8f %s\n", o->kappa, o->nu, o->theta, o->eta,
               o->rho, all[i].risk, fin_curvature_name(c, 400));
        assert_true(c->gradient <= 1e-8 * largest);
        assert_true(i == 0 || all[i].risk >= all[i - 1].risk - 1e-9);
        off += fabs(o->theta) + fabs(o->eta) + fabs(o->rho) > 1e-6;
        minima += minimum;
        oracle += minimum && fabs(o->kappa * o->nu) > 0.999 && fabs(all[i].risk - 0.0679) < 5e-5;
        swapped += minimum && fabs(o->theta * o->eta) > 0.999 && fabs(all[i].risk - 0.0431) < 5e-5;
    }
    assert_int_equal(count - off, few);
    assert_int_equal(oracle, 2);
    assert_int_equal(swapped, 2);
    assert_int_equal(minima, 4);
    fin_task_destroy(task);
}

static void best__refuses(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    fin_best best;
    fin_stationary one;
    int64_t count;
    const fin_form *erf = fin_form_find("erf");
    assert_int_equal(fin_risk_best(task, fin_form_find("softmax"), NULL, NULL, &best, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_stationary_search(task, erf, NULL, &(fin_stationary_tries){-1, 1}, 1, &one,
                                           &count, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_stationary_search(task, erf, NULL, &(fin_stationary_tries){1, 1}, -1, &one,
                                           &count, NULL, &err),
                     FIN_ERR_ARGUMENT);
    fin_task_destroy(task);
    task = paper(2); /* no room beside k* and v* */
    OK(fin_risk_best(task, erf, NULL, NULL, &best, &err));
    assert_int_equal(fini_overlaps_realisable(&best.at, 2, NULL), FIN_OK);
    fin_task_destroy(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best__is_the_swapped_pair),
        cmocka_unit_test(best__is_what_random_search_finds),
        cmocka_unit_test(spheres__have_gradient_and_hessian),
        cmocka_unit_test(stationary__off_M_too),
        cmocka_unit_test(best__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
