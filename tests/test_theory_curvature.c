/* The curvature on the spheres against second differences along geodesics, with vectors in R^d. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lapacke.h>

#include "finetti/random.h"
#include "test_theory_help.h"

enum { MOST_D = 400 };

typedef struct pair { /* k and v, or a tangent at them */
    double k[MOST_D], v[MOST_D];
} pair;

typedef struct setup {
    const fin_task *task;
    const fin_form *form;
    fin_form_settings fs;
    int d;
} setup;

static double dot(int d, const double *x, const double *y)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += x[i] * y[i];
    return sum;
}

/* k* and v* are the first two axes. */
static fin_overlaps overlaps_of(int d, const pair *p)
{
    fin_overlaps o = {p->k[0], p->v[1], p->v[0], p->k[1], dot(d, p->k, p->v)};
    double *q[] = {&o.kappa, &o.nu, &o.theta, &o.eta, &o.rho};
    for (int i = 0; i < 5; i++)
        *q[i] = fmax(-1, fmin(1, *q[i]));
    return o;
}

static void normalise(int d, double *x)
{
    double norm = sqrt(dot(d, x, x));
    for (int i = 0; i < d; i++)
        x[i] /= norm;
}

/* Part of y orthogonal to the unit vector x. */
static void remove_part(int d, const double *x, double *y)
{
    double along = dot(d, x, y);
    for (int i = 0; i < d; i++)
        y[i] -= along * x[i];
}

static double risk_at(const setup *s, const pair *p)
{
    fin_overlaps o = overlaps_of(s->d, p);
    const fin_task_settings *t = fin_task_get_settings(s->task);
    if (s->form == fin_form_find("erf")) {
        fin_risk_point point = {o.kappa,
                                o.nu,
                                o.theta,
                                o.eta,
                                o.rho,
                                s->fs.lam,
                                t->gamma,
                                t->mu,
                                t->eps,
                                (double)t->m,
                                fin_task_length_mean(s->task),
                                fin_task_length_variance(s->task)};
        fin_risk_value value;
        OK(fin_risk_erf(1, &point, &value, &err));
        return value.risk;
    }
    fin_risk_report report;
    OK(fin_risk(s->task, s->form, &s->fs, &o, NULL, NULL, &report, &err));
    return report.risk.value;
}

/* Along the geodesic through p with this (tangent) velocity. */
static double risk_along(const setup *s, const pair *p, const pair *velocity, double time)
{
    static pair moved;
    const double *from[] = {p->k, p->v}, *speed[] = {velocity->k, velocity->v};
    double *to[] = {moved.k, moved.v};
    for (int side = 0; side < 2; side++) {
        double rate = sqrt(dot(s->d, speed[side], speed[side]));
        for (int i = 0; i < s->d; i++)
            to[side][i] = cos(rate * time) * from[side][i] +
                          (rate > 0 ? sin(rate * time) / rate * speed[side][i] : 0);
        normalise(s->d, to[side]);
    }
    return risk_at(s, &moved);
}

/* Second derivative along it, of order six in the step; *error: how far order four is. */
static double bend(const setup *s, const pair *p, const pair *velocity, double *slope,
                   double *error)
{
    const fin_task_settings *t = fin_task_get_settings(s->task);
    double f[7], h = 0.02 / (1 + t->mu * s->fs.lam);
    for (int j = -3; j <= 3; j++)
        f[j + 3] = risk_along(s, p, velocity, j * h);
    double six = (2 * (f[0] + f[6]) - 27 * (f[1] + f[5]) + 270 * (f[2] + f[4]) - 490 * f[3]) / 180;
    double four = (-(f[1] + f[5]) + 16 * (f[2] + f[4]) - 30 * f[3]) / 12;
    *slope = (45 * (f[4] - f[2]) - 9 * (f[5] - f[1]) + f[6] - f[0]) / (60 * h);
    *error = (fabs(six - four) + 1e-15 * fabs(f[3])) / (h * h);
    return six / (h * h);
}

static void random_pair(int d, fin_random *random, pair *p)
{
    for (int i = 0; i < d; i++) {
        p->k[i] = fin_random_normal(random);
        p->v[i] = fin_random_normal(random);
    }
}

static int ascending(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;
    return (a > b) - (a < b);
}

/* All eigenvalues, from the whole matrix by polarisation. Returns the largest difference. */
static double compare_all(const setup *s, const pair *p, const fin_curvature *c, int count,
                          const pair *basis)
{
    enum { MOST = 8 };
    double matrix[MOST * MOST], found[MOST], known[MOST], slope, error, worst = 0;
    static pair sum;
    for (int i = 0; i < count; i++)
        matrix[i * count + i] = bend(s, p, &basis[i], &slope, &error);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            for (int l = 0; l < s->d; l++) {
                sum.k[l] = basis[i].k[l] + basis[j].k[l];
                sum.v[l] = basis[i].v[l] + basis[j].v[l];
            }
            double both = bend(s, p, &sum, &slope, &error);
            matrix[i * count + j] = matrix[j * count + i] =
                (both - matrix[i * count + i] - matrix[j * count + j]) / 2;
        }
    assert_int_equal(LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'U', count, matrix, count, found), 0);
    memcpy(known, c->span, sizeof c->span);
    for (int i = c->span_count; i < count; i++)
        known[i] = c->rest[i - c->span_count];
    qsort(known, (size_t)count, sizeof *known, ascending);
    for (int i = 0; i < count; i++)
        worst = fmax(worst, fabs(known[i] - found[i]));
    return worst;
}

/* The trace of Hess over an orthonormal basis, the gradient's length, all eigenvalues where the
 * dimension is small, and the range of the quotients along random geodesics. */
static double compare(const setup *s, const pair *p, fin_random *random)
{
    static pair basis[2 * MOST_D], xi;
    fin_overlaps o = overlaps_of(s->d, p);
    fin_curvature c;
    OK(fin_risk_curvature(s->task, s->form, &s->fs, &o, &c, &err));
    int d = s->d, n = d < 4 ? d : 4;
    assert_int_equal(c.span_count, 2 * (n - 1));
    assert_int_equal(c.rest_count, d - n);

    /* Gram-Schmidt: k and v first, what is left are d - 1 tangents each. */
    int count = 0;
    for (int side = 0; side < 2; side++) {
        static double done[MOST_D][MOST_D];
        int size = 1;
        memcpy(done[0], side ? p->v : p->k, sizeof done[0]);
        while (size < d) {
            double *x = done[size];
            for (int i = 0; i < d; i++)
                x[i] = fin_random_normal(random);
            for (int pass = 0; pass < 2; pass++)
                for (int j = 0; j < size; j++)
                    remove_part(d, done[j], x);
            normalise(d, x);
            memset(&basis[count], 0, sizeof basis[count]);
            memcpy(side ? basis[count].v : basis[count].k, x, sizeof done[0]);
            count++;
            size++;
        }
    }
    double trace = 0, trace_error = 0, gradient2 = 0, slope, error;
    for (int i = 0; i < count; i++) {
        trace += bend(s, p, &basis[i], &slope, &error);
        trace_error += error;
        gradient2 += slope * slope;
    }
    double sum = (double)c.rest_count * (c.rest[0] + c.rest[1]), largest = 0;
    for (int i = 0; i < c.span_count; i++) {
        sum += c.span[i];
        largest = fmax(largest, fabs(c.span[i]));
        assert_true(i == 0 || c.span[i] >= c.span[i - 1]);
    }
    assert_true(c.rest[0] <= c.rest[1]);
    double worst = fabs(sum - trace) / (largest + trace_error);
    if (!(fabs(sum - trace) < 1e-6 * largest + trace_error))
        fail_msg("d = %d: trace %.12g, along geodesics %.12g +- %g", d, sum, trace, trace_error);
    if (!(fabs(sqrt(gradient2) - c.gradient) < 1e-7 * (1 + c.gradient)))
        fail_msg("d = %d: gradient %.12g, along geodesics %.12g", d, c.gradient, sqrt(gradient2));

    if (d <= 5) {
        double off = compare_all(s, p, &c, count, basis);
        if (!(off < 1e-6 * largest + trace_error))
            fail_msg("d = %d: an eigenvalue is off by %g", d, off);
        worst = fmax(worst, off / (largest + trace_error));
    }

    /* Every quotient is between the extreme eigenvalues. */
    double low = c.span[0], high = c.span[c.span_count - 1];
    if (c.rest_count) {
        low = fmin(low, c.rest[0]);
        high = fmax(high, c.rest[1]);
    }
    for (int trial = 0; trial < 20; trial++) {
        random_pair(d, random, &xi);
        if (trial % 2) /* in the span only, where the large ones are */
            for (int i = n; i < d; i++)
                xi.k[i] = xi.v[i] = 0;
        remove_part(d, p->k, xi.k);
        remove_part(d, p->v, xi.v);
        double norm2 = dot(d, xi.k, xi.k) + dot(d, xi.v, xi.v);
        double value = bend(s, p, &xi, &slope, &error) / norm2;
        error /= norm2;
        assert_true(value > low - 1e-6 * largest - error && value < high + 1e-6 * largest + error);
    }

    /* Exactly: R along a geodesic in the two directions that the rest is about. */
    if (c.rest_count) {
        double a[2][2];
        static pair e;
        memset(&e, 0, sizeof e);
        /* a unit vector orthogonal to the span: k and v live on the first four axes here */
        for (int j = 0; j < 3; j++) {
            e.k[4] = j != 1;
            e.v[4] = j != 0;
            double value = bend(s, p, &e, &slope, &error);
            if (j < 2)
                a[j][j] = value;
            else
                a[0][1] = (value - a[0][0] - a[1][1]) / 2;
        }
        double mid = (a[0][0] + a[1][1]) / 2, radius = hypot((a[0][0] - a[1][1]) / 2, a[0][1]);
        double size = 1 + fabs(mid) + radius;
        assert_true(fabs(mid - radius - c.rest[0]) < 1e-6 * size);
        assert_true(fabs(mid + radius - c.rest[1]) < 1e-6 * size);
    }
    return worst;
}

static void random_point(int d, fin_random *random, pair *p)
{
    memset(p, 0, sizeof *p);
    random_pair(d < 4 ? d : 4, random, p);
    normalise(d, p->k);
    normalise(d, p->v);
}

static void curvature__equals_second_differences(void **state)
{
    (void)state;
    static const int dimensions[] = {2, 3, 4, 5, 400};
    static const char *const forms[] = {"erf", "linear", "shifted"};
    static pair p;
    fin_random random;
    fin_random_open(&random, 7, 1, 0);
    for (int i = 0; i < 5; i++) {
        double worst = 0;
        for (int c = 0; c < 5; c++)
            for (int f = 0; f < 3; f++) {
                int d = dimensions[i];
                if (d == 400 && (c % 2 || (f && c)))
                    continue; /* the vectors are long */
                fin_task *task =
                    make(cases[c].name, d, cases[c].L_min, cases[c].L, cases[c].m, cases[c].snr, 0);
                setup s = {task, fin_form_find(forms[f]), {0.4, -0.6}, d};
                random_point(d, &random, &p);
                worst = fmax(worst, compare(&s, &p, &random));
                fin_task_destroy(task);
            }
        print_message("d = %d: agrees to %.1e of the largest eigenvalue\n", dimensions[i], worst);
    }
}

/* At the corners an overlap is +-1 and cannot be stepped past; on M nothing is differenced. */
static void curvature__at_the_corners(void **state)
{
    (void)state;
    static pair p;
    fin_random random;
    fin_random_open(&random, 8, 1, 0);
    for (int d = 2; d <= 5; d++)
        for (int corner = 0; corner < 6; corner++) {
            fin_task *task = make("slr", d, 6, 6, 1, 0, 0);
            setup s = {task, fin_form_find("erf"), {0.3, 0}, d};
            memset(&p, 0, sizeof p);
            if (corner < 4) { /* k = +-k*, v = +-v* */
                p.k[0] = corner & 1 ? -1 : 1;
                p.v[1] = corner & 2 ? -1 : 1;
            } else { /* crossed: k = v*, v = +-k* */
                p.k[1] = 1;
                p.v[0] = corner & 1 ? -1 : 1;
            }
            compare(&s, &p, &random);
            p.v[0] = p.k[0]; /* v = k: rho = 1 */
            p.v[1] = p.k[1];
            compare(&s, &p, &random);
            fin_task_destroy(task);
        }
}

/* Reflecting (k, v) -> (-k, -v) changes nothing for erf. */
static void curvature__has_the_symmetry(void **state)
{
    (void)state;
    fin_task *task = make("slr", 400, 10, 10, 1, 0, 0);
    fin_overlaps o = {0.4, 0.3, 0.2, -0.1, 0.25}, r = {-0.4, -0.3, -0.2, 0.1, 0.25};
    fin_curvature a, b;
    OK(fin_risk_curvature(task, fin_form_find("erf"), NULL, &o, &a, &err));
    OK(fin_risk_curvature(task, fin_form_find("erf"), NULL, &r, &b, &err));
    for (int i = 0; i < 6; i++)
        assert_true(fabs(a.span[i] - b.span[i]) <= a.tolerance);
    assert_true(fabs(a.gradient - b.gradient) < 1e-14 * a.gradient);
    assert_true(a.tolerance < 1e-9 * fabs(a.span[5]));
    fin_task_destroy(task);
}

/* At any dimension: the large eigenvalues of the span do not blur the small ones of the rest. */
static void curvature__at_a_large_dimension(void **state)
{
    (void)state;
    for (double d = 1e3; d < 1e15; d *= 1e3) {
        fin_task *task;
        fin_task_settings s;
        fin_form_settings fs = {sqrt(2 / d), 0}; /* lam mu = 1 */
        fin_curvature c;
        fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
        s.d = (int64_t)d;
        OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err));
        OK(fin_risk_curvature(task, fin_form_find("erf"), &fs, NULL, &c, &err));
        assert_int_equal(c.rest_count, s.d - 4);
        assert_true(c.rest[0] > 0.01 && c.gradient == 0);
        assert_true(c.span[5] > 0.1 * d && c.negative == 0);
        if (d < 1e10)
            assert_string_equal(fin_curvature_name(&c, s.d), "minimum");
        fin_task_destroy(task);
    }
}

static void curvature__names(void **state)
{
    (void)state;
    fin_curvature c = {.span_count = 6, .rest_count = 6};
    assert_string_equal(fin_curvature_name(&c, 10), "minimum");
    c.flat = 3;
    assert_string_equal(fin_curvature_name(&c, 10), "degenerate");
    c.negative = 2;
    assert_string_equal(fin_curvature_name(&c, 10), "saddle");
    c.negative = 15; /* of 18, and no positive one */
    assert_string_equal(fin_curvature_name(&c, 10), "degenerate");
    c = (fin_curvature){.negative = 18};
    assert_string_equal(fin_curvature_name(&c, 10), "maximum");
    /* lam = 0: the risk is a constant */
    fin_task *task = make("slr", 7, 6, 6, 1, 0, 0);
    OK(fin_risk_curvature(task, fin_form_find("erf"), &(fin_form_settings){0, 0}, NULL, &c, &err));
    assert_int_equal(c.flat, 12);
    assert_string_equal(fin_curvature_name(&c, 7), "degenerate");
    fin_task_destroy(task);
}

static void curvature__refusals(void **state)
{
    (void)state;
    fin_curvature c;
    fin_task *task = make("slr", 3, 6, 6, 1, 0, 0), *max = make("max", 9, 6, 6, 1, 2, 0);
    const fin_form *erf_form = fin_form_find("erf");
    static const char *const forms[] = {"softmax", "softplus", "hardmax", "bayes"};
    for (int f = 0; f < 4; f++) {
        assert_int_equal(fin_risk_curvature(task, fin_form_find(forms[f]), NULL, NULL, &c, &err),
                         FIN_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "a weight depends on all tokens"));
    }
    assert_int_equal(fin_risk_curvature(max, erf_form, NULL, NULL, &c, &err), FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "relevance depends on all tokens"));
    fin_overlaps bad[] = {{1.5, 0, 0, 0, 0},
                          {NAN, 0, 0, 0, 0},
                          {1, 1, 1, 0, 0},  /* not a Gram matrix */
                          {0, 0, 0, 0, 0}}; /* needs four dimensions */
    for (int i = 0; i < 4; i++)
        assert_int_equal(fin_risk_curvature(task, erf_form, NULL, &bad[i], &c, &err),
                         FIN_ERR_ARGUMENT);
    fin_form_settings fs = {-1, 0};
    assert_int_equal(fin_risk_curvature(task, erf_form, &fs, NULL, &c, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_risk_curvature(task, erf_form, &fs, NULL, &c, NULL), FIN_ERR_ARGUMENT);
    fin_task_destroy(task);
    fin_task_destroy(max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curvature__equals_second_differences),
        cmocka_unit_test(curvature__at_the_corners),
        cmocka_unit_test(curvature__has_the_symmetry),
        cmocka_unit_test(curvature__at_a_large_dimension),
        cmocka_unit_test(curvature__names),
        cmocka_unit_test(curvature__refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
