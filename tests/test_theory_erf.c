/* The exact risk of the erf predictor: against the reference table, far outside it, against
 * differences of itself, and in what it refuses. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "finetti.h"
#include "kernel/kernel.h"

static const char *const names[] = {"kappa", "nu",      "theta", "eta",  "rho",  "lambda",
                                    "gamma", "mu",      "L",     "eps",  "risk", "d_kappa",
                                    "d_nu",  "d_theta", "d_eta", "d_rho"};

typedef struct rows {
    fin_table *table;
    int64_t n;
    fin_risk_point points[512];
    double expected[512][6];
} rows;

static void read_rows(const char *file, rows *r)
{
    char path[1024];
    fin_error err;
    snprintf(path, sizeof path, "%s/%s", FIN_TEST_DATA, file);
    if (fin_table_read(path, &r->table, &err))
        fail_msg("%s", err.message);
    r->n = fin_table_rows(r->table);
    assert_in_range(r->n, 1, 512);
    const double *c[16];
    for (int j = 0; j < 16; j++) {
        int64_t at = fin_table_column(r->table, names[j]);
        assert_true(at >= 0);
        c[j] = fin_table_values(r->table, at);
    }
    for (int64_t i = 0; i < r->n; i++) {
        r->points[i] = (fin_risk_point){c[0][i], c[1][i], c[2][i], c[3][i], c[4][i], c[5][i],
                                        c[6][i], c[7][i], c[9][i], 1,       c[8][i], 0};
        for (int j = 0; j < 6; j++)
            r->expected[i][j] = c[10 + j][i];
    }
    fin_table_destroy(r->table);
}

static const char *const kernels[] = {"ref", "avx2", "avx512"};

/* The reference rows, and random points of their range. */
static void check_usual(const char *file, int64_t count)
{
    static rows r;
    read_rows(file, &r);
    assert_int_equal(r.n, count);
    for (int k = 0; k < 3; k++) {
        if (!fini_kernel_force(kernels[k]))
            continue;
        fin_risk_value v[512];
        double worst = 0, worst_gradient = 0;
        assert_int_equal(fin_risk_erf(r.n, r.points, v, NULL), FIN_OK);
        for (int64_t i = 0; i < r.n; i++) {
            worst = fmax(worst, fabs(v[i].risk / r.expected[i][0] - 1));
            for (int j = 0; j < 5; j++)
                worst_gradient =
                    fmax(worst_gradient, fabs(v[i].gradient[j] - r.expected[i][j + 1]) /
                                             fmax(1, fabs(r.expected[i][j + 1])));
        }
        printf("%s: worst error of the risk %.2g (relative), of the gradient %.2g\n", kernels[k],
               worst, worst_gradient);
        assert_true(worst < 1e-14);
        assert_true(worst_gradient < 1e-13);
    }
    fini_kernel_force(NULL);
}

static void risk_erf__matches_reference(void **state)
{
    (void)state;
    check_usual("slr_erf_risk.csv", 40);
}

static void risk_erf__matches_120_digits_at_random_points(void **state)
{
    (void)state;
    check_usual("erf_risk_random.csv", 250);
}

/* d up to 1e12, lambda from 1e-6 to 1e3, L = 1 and 1e6, kappa = 0 and +-1, risks down to 1e-50:
 * relative to the risk itself, and for the gradient to its largest component. What is lost is what
 * the argument x = lam mu kappa / B loses: exp(-x^2) has condition number 2 x^2. */
static void risk_erf__accurate_far_outside(void **state)
{
    (void)state;
    static rows r;
    read_rows("erf_risk_extreme.csv", &r);
    for (int k = 0; k < 3; k++) {
        if (!fini_kernel_force(kernels[k]))
            continue;
        fin_risk_value v[512];
        double worst = 0, worst_gradient = 0, least = 1;
        assert_int_equal(fin_risk_erf(r.n, r.points, v, NULL), FIN_OK);
        for (int64_t i = 0; i < r.n; i++) {
            const fin_risk_point *p = &r.points[i];
            double x =
                p->lam * p->mu * p->kappa / sqrt(1 + 2 * p->lam * p->lam * p->gamma * p->gamma);
            double unit = 1e-13 + 4e-16 * x * x, scale = 0;
            if (fabs(r.expected[i][0]) < 1e-100) { /* below what the table's 120 digits resolve */
                assert_true(v[i].risk >= 0 && v[i].risk < 1e-100);
                continue;
            }
            double error = fabs(v[i].risk / r.expected[i][0] - 1);
            least = fmin(least, r.expected[i][0]);
            worst = fmax(worst, error);
            if (!(error < unit))
                fail_msg("%s row %d: risk %.17g, expected %.17g", kernels[k], (int)i, v[i].risk,
                         r.expected[i][0]);
            for (int j = 0; j < 5; j++)
                scale = fmax(scale, fabs(r.expected[i][j + 1]));
            for (int j = 0; j < 5; j++) {
                double off = fabs(v[i].gradient[j] - r.expected[i][j + 1]) / fmax(scale, 1e-290);
                worst_gradient = fmax(worst_gradient, off);
                if (!(off < 1e-12 + 4e-16 * x * x))
                    fail_msg("%s row %d: derivative %d is %.17g, expected %.17g", kernels[k],
                             (int)i, j, v[i].gradient[j], r.expected[i][j + 1]);
            }
        }
        printf("%s: worst relative error %.2g, gradient %.2g, smallest risk %.2g\n", kernels[k],
               worst, worst_gradient, least);
    }
    fini_kernel_force(NULL);
}

/* Random realisable points of every kind (m > 1 and varying L included): central differences. */
static void risk_erf__gradient_is_the_derivative(void **state)
{
    (void)state;
    fin_random random;
    fin_random_open(&random, 5, FIN_STREAM_USER, 0);
    for (int trial = 0; trial < 200; trial++) {
        double o[5];
        for (int j = 0; j < 5; j++)
            o[j] = 0.9 * (2 * fin_random_uniform(&random) - 1);
        double lam = pow(10, -2 + 2.5 * fin_random_uniform(&random));
        fin_risk_point at = {o[0],
                             o[1],
                             o[2],
                             o[3],
                             o[4],
                             lam,
                             0.3 + fin_random_uniform(&random),
                             1 + 9 * fin_random_uniform(&random),
                             0.2,
                             1 + trial % 3,
                             4 + trial % 9,
                             trial % 5};
        fin_risk_value v, up, down;
        assert_int_equal(fin_risk_erf(1, &at, &v, NULL), FIN_OK);
        double size = fabs(v.risk);
        for (int j = 0; j < 5; j++)
            size = fmax(size, fabs(v.gradient[j]));
        for (int j = 0; j < 5; j++) {
            fin_risk_point moved = at;
            const double h = 1e-4;
            double slope[2];
            for (int level = 0; level < 2; level++) { /* Richardson on central differences */
                double step = h / (level + 1);
                (&moved.kappa)[j] = (&at.kappa)[j] + step;
                assert_int_equal(fin_risk_erf(1, &moved, &up, NULL), FIN_OK);
                (&moved.kappa)[j] = (&at.kappa)[j] - step;
                assert_int_equal(fin_risk_erf(1, &moved, &down, NULL), FIN_OK);
                slope[level] = (up.risk - down.risk) / (2 * step);
            }
            double difference = (4 * slope[1] - slope[0]) / 3;
            if (!(fabs(difference - v.gradient[j]) < 1e-8 * size))
                fail_msg("trial %d, derivative %d: %.15g, by differences %.15g", trial, j,
                         v.gradient[j], difference);
        }
    }
}

/* The derivative in lam, in every kernel: Richardson on central differences, relative to what the
 * risk changes by when lam is multiplied. */
static void risk_erf__d_lam_is_the_derivative(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        if (!fini_kernel_force(kernels[k]))
            continue;
        fin_random random;
        fin_random_open(&random, 7, FIN_STREAM_USER, 0);
        double worst = 0;
        for (int trial = 0; trial < 300; trial++) {
            double o[5];
            for (int j = 0; j < 5; j++)
                o[j] = 0.9 * (2 * fin_random_uniform(&random) - 1);
            if (trial % 10 == 0)
                o[0] = 0;
            double lam = pow(10, -3 + 4 * fin_random_uniform(&random));
            fin_risk_point at = {o[0],
                                 o[1],
                                 o[2],
                                 o[3],
                                 o[4],
                                 lam,
                                 trial % 7 ? 0.3 + fin_random_uniform(&random) : 0,
                                 trial % 11 ? 1 + 9 * fin_random_uniform(&random) : 0,
                                 0.2,
                                 1 + trial % 3,
                                 4 + trial % 9,
                                 trial % 5};
            fin_risk_value v, up, down;
            double slope[2];
            assert_int_equal(fin_risk_erf(1, &at, &v, NULL), FIN_OK);
            for (int level = 0; level < 2; level++) {
                fin_risk_point moved = at;
                double step = 1e-3 * lam / (level + 1);
                moved.lam = lam + step;
                assert_int_equal(fin_risk_erf(1, &moved, &up, NULL), FIN_OK);
                moved.lam = lam - step;
                assert_int_equal(fin_risk_erf(1, &moved, &down, NULL), FIN_OK);
                slope[level] = (up.risk - down.risk) / (2 * step);
            }
            double difference = (4 * slope[1] - slope[0]) / 3;
            double off = lam * fabs(difference - v.d_lam) / (v.risk + lam * fabs(v.d_lam));
            worst = fmax(worst, off);
            if (!(off < 1e-9))
                fail_msg("%s trial %d: %.15g, by differences %.15g", kernels[k], trial, v.d_lam,
                         difference);
        }
        printf("%s: worst error of d_lam %.2g\n", kernels[k], worst);
        fin_risk_point zero = {0.5, 0.5, 0.1, 0.1, 0.1, 0, 0.7, 3, 0.1, 1, 10, 0};
        fin_risk_value at_zero, near;
        assert_int_equal(fin_risk_erf(1, &zero, &at_zero, NULL), FIN_OK);
        zero.lam = 1e-7;
        assert_int_equal(fin_risk_erf(1, &zero, &near, NULL), FIN_OK);
        assert_true(fabs((near.risk - at_zero.risk) / 1e-7 - at_zero.d_lam) <
                    1e-5 * fabs(at_zero.d_lam));
    }
    fini_kernel_force(NULL);
}

static void risk_erf__parts_add_up_and_are_not_negative(void **state)
{
    (void)state;
    fin_random random;
    fin_random_open(&random, 6, FIN_STREAM_USER, 0);
    for (int trial = 0; trial < 20000; trial++) {
        double k[4], v[4], rho = 0; /* in a frame that begins with k*, v* */
        fin_random_sphere(&random, 4, k);
        fin_random_sphere(&random, 4, v);
        for (int i = 0; i < 4; i++)
            rho += k[i] * v[i];
        double lam = pow(10, -6 + 9 * fin_random_uniform(&random));
        double mu = pow(10, -2 + 8 * fin_random_uniform(&random));
        fin_risk_point p = {k[0],
                            v[1],
                            v[0],
                            k[1],
                            fmax(-1, fmin(1, rho)),
                            lam,
                            0.1 + fin_random_uniform(&random),
                            mu,
                            0,
                            1,
                            1 + floor(1000 * fin_random_uniform(&random)),
                            0};
        fin_risk_value value;
        assert_int_equal(fin_risk_erf(1, &p, &value, NULL), FIN_OK);
        assert_true(value.noise >= 0 && value.bias >= 0);
        /* realisable overlaps: a variance, up to the rounding of its terms */
        assert_true(value.signal >= -1e-12 * (1 + mu * mu * v[0] * v[0]));
        assert_true(fabs(value.risk - value.signal - value.noise - value.bias) <=
                    1e-14 * fabs(value.risk));
    }
}

/* k -> -k with v -> -v is the same predictor. */
static void risk_erf__symmetric(void **state)
{
    (void)state;
    static rows r;
    read_rows("slr_erf_risk.csv", &r);
    for (int64_t i = 0; i < r.n; i++) {
        fin_risk_point p = r.points[i];
        fin_risk_value a, b;
        assert_int_equal(fin_risk_erf(1, &p, &a, NULL), FIN_OK);
        p.kappa = -p.kappa;
        p.nu = -p.nu;
        p.theta = -p.theta;
        p.eta = -p.eta;
        assert_int_equal(fin_risk_erf(1, &p, &b, NULL), FIN_OK);
        assert_true(a.risk == b.risk);
        for (int j = 0; j < 4; j++)
            assert_true(a.gradient[j] == -b.gradient[j]);
        assert_true(a.gradient[4] == b.gradient[4]);
    }
}

/* Alone, in a batch, at any place in it, with any number of threads: the same bytes. */
static void risk_erf__same_bytes_for_any_split(void **state)
{
    (void)state;
    enum { N = 5003 };
    static rows r;
    static fin_risk_point points[N];
    static fin_risk_value whole[N], parts[N];
    read_rows("slr_erf_risk.csv", &r);
    for (int i = 0; i < N; i++)
        points[i] = r.points[i * 7 % r.n];
    fin_threads_set(1);
    assert_int_equal(fin_risk_erf(N, points, whole, NULL), FIN_OK);
    fin_threads_set(3);
    assert_int_equal(fin_risk_erf(N, points, parts, NULL), FIN_OK);
    assert_memory_equal(whole, parts, sizeof whole);
    for (int i = 0, step; i < N; i += step) {
        step = 1 + i % 11 < N - i ? 1 + i % 11 : N - i;
        assert_int_equal(fin_risk_erf(step, points + i, parts + i, NULL), FIN_OK);
    }
    assert_memory_equal(whole, parts, sizeof whole);
    fin_threads_set(0);
}

static void risk_erf__rejects(void **state)
{
    (void)state;
    const fin_risk_point good = {0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.7, 14, 0.1, 1, 10, 0};
    const double bad[12][3] = {{1.01, -1.01, NAN}, {1.01, -1.01, NAN},  {2, -2, NAN},
                               {2, -2, NAN},       {2, -2, NAN},        {-1e-9, 2e6, NAN},
                               {-1, 2e6, NAN},     {-1, 2e9, INFINITY}, {-1, 2e6, NAN},
                               {-1, 11, NAN},      {0.5, -1, NAN},      {-1, INFINITY, NAN}};
    fin_risk_value v;
    fin_error err;
    assert_int_equal(fin_risk_erf(1, &good, &v, &err), FIN_OK);
    for (int c = 0; c < 12; c++)
        for (int i = 0; i < 3; i++) {
            fin_risk_point p = good;
            (&p.kappa)[c] = bad[c][i];
            err.message[0] = '\0';
            assert_int_equal(fin_risk_erf(1, &p, &v, &err), FIN_ERR_ARGUMENT);
            assert_true(strlen(err.message) > 20);
        }
    assert_int_equal(fin_risk_erf(0, NULL, NULL, &err), FIN_OK);
}

/* Limits of the paper: oracle -> eps^2 when lam sqrt d -> inf and lam sqrt L -> 0. */
static void oracle__tends_to_the_noise(void **state)
{
    (void)state;
    double previous = 1;
    for (double d = 1e4; d < 1e13; d *= 100) {
        fin_risk_point p = {1,           1,   0, 0,  0, pow(d, -0.25), 0.7071067811865476,
                            sqrt(d / 2), 0.1, 1, 10, 0};
        fin_risk_value v;
        assert_int_equal(fin_risk_erf(1, &p, &v, NULL), FIN_OK);
        double excess = v.risk - 0.01;
        assert_true(excess < previous / 5);
        previous = excess;
    }
    assert_true(previous < 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(risk_erf__matches_reference),
        cmocka_unit_test(risk_erf__matches_120_digits_at_random_points),
        cmocka_unit_test(risk_erf__accurate_far_outside),
        cmocka_unit_test(risk_erf__gradient_is_the_derivative),
        cmocka_unit_test(risk_erf__d_lam_is_the_derivative),
        cmocka_unit_test(risk_erf__parts_add_up_and_are_not_negative),
        cmocka_unit_test(risk_erf__symmetric),
        cmocka_unit_test(risk_erf__same_bytes_for_any_split),
        cmocka_unit_test(risk_erf__rejects),
        cmocka_unit_test(oracle__tends_to_the_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
