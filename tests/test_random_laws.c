/* The laws of the cursor: uniform, below, Gumbel, gamma, chi-square, sphere, Wishart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "test_random_stats.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static void check_ks(const char *what, int64_t n, double *x, double (*cdf)(double, double),
                     double parameter)
{
    double distance = stats_ks(n, x, cdf, parameter);
    print_message("%s: sqrt(n) KS distance %.3f\n", what, distance);
    assert_true(distance < 2.7);
}

static void uniform__is_uniform_and_open(void **state)
{
    (void)state;
    enum { N = 2000000, CELLS = 1000 };
    static double high[CELLS], low[CELLS];
    stats_mean mean = {0}, square = {0}, serial = {0};
    fin_random r;
    fin_random_open(&r, 1, 2000, 0);
    double last = fin_random_uniform(&r);
    stats_begin();
    for (int i = 0; i < N; i++) {
        double u = fin_random_uniform(&r), bits = ldexp(u, 40);
        assert_true(u > 0 && u < 1);
        high[(int)(u * CELLS)]++;
        low[(int)((bits - floor(bits)) * CELLS)]++; /* the last 12 bits */
        stats_add(&mean, u);
        stats_add(&square, u * u);
        stats_add(&serial, u * last);
        last = u;
    }
    stats_z("mean", stats_mean_z(&mean, 0.5));
    stats_z("square", stats_mean_z(&square, 1.0 / 3));
    stats_z("serial", stats_mean_z(&serial, 0.25));
    stats_z("cells", stats_chi_square_z(CELLS, high, NULL, N));
    /* 2^12 values fall into 1000 cells unevenly: 4 or 5 of them each */
    static double p[CELLS];
    for (int v = 0; v < 4096; v++)
        p[(int)((v + 0.5) / 4096 * CELLS)] += 1.0 / 4096;
    stats_z("low bits", stats_chi_square_z(CELLS, low, p, N));
    stats_end("uniform");
}

/* Bounds where taking words modulo the bound would be badly biased, and plain ones. */
static void below__is_unbiased(void **state)
{
    (void)state;
    enum { CELLS = 12, N = 240000 };
    const int64_t bounds[] = {12,
                              1000,
                              3 * (INT64_C(1) << 30),
                              (INT64_C(1) << 32) - 4,
                              INT64_C(1) << 32,
                              (INT64_C(1) << 32) + 8,
                              3 * (INT64_C(1) << 40),
                              3 * (INT64_C(1) << 61),
                              INT64_MAX - 7,
                              5 * (INT64_C(1) << 60)};
    stats_begin();
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        double count[CELLS] = {0}, p[CELLS], residue[3] = {0}, parity = 0;
        fin_random r;
        fin_random_open(&r, 2, 2000, b);
        /* cell c: values v with floor(v / width) = c, the last one shorter */
        uint64_t bound = (uint64_t)bounds[b], width = (bound + CELLS - 1) / CELLS;
        for (uint64_t c = 0; c < CELLS; c++) {
            uint64_t from = c * width, to = from + width < bound ? from + width : bound;
            p[c] = from < to ? (double)(to - from) / (double)bound : 0;
        }
        for (int i = 0; i < N; i++) {
            int64_t v = fin_random_below(&r, bounds[b]);
            assert_true(v >= 0 && v < bounds[b]);
            count[(uint64_t)v / width]++;
            parity += v & 1;
            residue[v % 3]++; /* too few rejected words favour some residues */
        }
        stats_z("cells", stats_chi_square_z(CELLS, count, p, N));
        if (bounds[b] % 3 == 0)
            stats_z("residue", stats_chi_square_z(3, residue, NULL, N));
        if (bounds[b] % 2 == 0)
            stats_z("parity", (parity - N / 2) / sqrt(N / 4.0));
    }
    for (int64_t bound = 2; bound <= 20; bound++) { /* every value of small bounds */
        double count[20] = {0};
        fin_random r;
        fin_random_open(&r, 3, 2000, (uint64_t)bound);
        for (int i = 0; i < 50000; i++)
            count[fin_random_below(&r, bound)]++;
        stats_z("small bound", stats_chi_square_z(bound, count, NULL, 50000));
    }
    stats_end("below");
    fin_random r;
    fin_random_open(&r, 4, 2000, 0);
    assert_true(fin_random_below(&r, 1) == 0 && fin_random_below(&r, 0) == 0 &&
                fin_random_below(&r, -5) == 0);
    assert_int_equal(r.block, 0); /* and no words were spent */
}

static double gumbel_cdf(double x, double parameter)
{
    (void)parameter;
    return exp(-exp(-x));
}

static void gumbel__has_its_law(void **state)
{
    (void)state;
    enum { N = 200000 };
    static double x[N];
    stats_mean mean = {0}, square = {0};
    fin_random r;
    fin_random_open(&r, 5, 2000, 0);
    const double euler = 0.57721566490153286;
    for (int i = 0; i < N; i++) {
        x[i] = fin_random_gumbel(&r);
        stats_add(&mean, x[i]);
        stats_add(&square, (x[i] - euler) * (x[i] - euler));
    }
    stats_begin();
    stats_z("mean", stats_mean_z(&mean, euler));
    stats_z("variance", stats_mean_z(&square, pi * pi / 6));
    stats_end("gumbel");
    check_ks("gumbel", N, x, gumbel_cdf, 0);
}

/* Regularised incomplete gamma function P(a, x): series below, continued fraction above; for large
 * a Wilson and Hilferty's normal approximation, good to 1e-2/a. */
static double gamma_cdf(double x, double a)
{
    if (x <= 0)
        return 0;
    if (a > 1e5)
        return 0.5 * erfc(-(cbrt(x / a) - 1 + 1 / (9 * a)) * 3 * sqrt(a) / sqrt(2));
    double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (double k = a + 1; term > 1e-16 * sum; k++)
            sum += term *= x / k;
        return front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int i = 1; i < 10000; i++) { /* Lentz */
        double an = -i * (i - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return 1 - front * h;
}

static void gamma__has_its_law(void **state)
{
    (void)state;
    enum { N = 200000 };
    static double x[N];
    const double shapes[] = {0.01, 0.3, 0.999, 1, 1.5, 2.5, 50, 1e6, 5e11};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        double a = shapes[s], sd = sqrt(a);
        stats_mean moment[4] = {{0}};
        fin_random r;
        fin_random_open(&r, 6, 2000, s);
        for (int i = 0; i < N; i++) {
            x[i] = fin_random_gamma(&r, a);
            assert_true(x[i] >= 0 && isfinite(x[i]));
            double t = (x[i] - a) / sd, power = 1;
            for (int k = 0; k < 4; k++)
                stats_add(&moment[k], power *= t);
        }
        stats_begin();
        const double want[4] = {0, 1, 2 / sd, 3 + 6 / a};
        for (int k = 0; k < (a < 0.1 ? 2 : 4);
             k++) /* below 0.1 the higher ones hang on a few draws */
            stats_z("moment", stats_mean_z(&moment[k], want[k]));
        char name[64];
        snprintf(name, sizeof name, "gamma %g", a);
        stats_end(name);
        check_ks(name, N, x, gamma_cdf, a);
    }
    fin_random r;
    fin_random_open(&r, 7, 2000, 0);
    assert_true(fin_random_gamma(&r, 0) == 0 && fin_random_gamma(&r, 1e-300) >= 0);
    assert_true(isnan(fin_random_gamma(&r, NAN)) && isinf(fin_random_gamma(&r, INFINITY)));
}

static double chi_square_cdf(double x, double dof)
{
    return gamma_cdf(x / 2, dof / 2);
}

static void chi_square__has_its_law(void **state)
{
    (void)state;
    enum { N = 100000 };
    static double x[N];
    const double dofs[] = {1, 2, 3, 396, 1e12};
    for (size_t s = 0; s < sizeof dofs / sizeof *dofs; s++) {
        stats_mean mean = {0}, variance = {0};
        fin_random r;
        fin_random_open(&r, 8, 2000, s);
        for (int i = 0; i < N; i++) {
            x[i] = fin_random_chi_square(&r, dofs[s]);
            double t = (x[i] - dofs[s]) / sqrt(2 * dofs[s]);
            stats_add(&mean, t);
            stats_add(&variance, t * t);
        }
        stats_begin();
        stats_z("mean", stats_mean_z(&mean, 0));
        stats_z("variance", stats_mean_z(&variance, 1));
        char name[64];
        snprintf(name, sizeof name, "chi-square %g", dofs[s]);
        stats_end(name);
        check_ks(name, N, x, chi_square_cdf, dofs[s]);
    }
    fin_random r;
    fin_random_open(&r, 9, 2000, 0);
    assert_true(fin_random_chi_square(&r, 0) == 0);
}

static void sphere__is_uniform(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    static double x[MOST];
    const int64_t dims[] = {1, 2, 3, 10, MOST};
    double worst[5] = {0};
    stats_begin();
    for (size_t s = 0; s < sizeof dims / sizeof *dims; s++) {
        int64_t d = dims[s];
        int n = d == MOST ? 2000 : 50000;
        stats_mean mean[3] = {{0}}, square[3] = {{0}}, cross[3] = {{0}}, fourth = {0};
        fin_random r;
        fin_random_open(&r, 10, 2000, s);
        for (int i = 0; i < n; i++) {
            fin_random_sphere(&r, d, x);
            long double norm2 = 0;
            for (int64_t c = 0; c < d; c++)
                norm2 += (long double)x[c] * x[c];
            worst[s] = fmax(worst[s], (double)fabsl(norm2 - 1));
            assert_true(worst[s] <
                        DBL_EPSILON * (4 + sqrt((double)d))); /* a plain sum of d squares */
            for (int64_t c = 0; c < d && c < 3; c++) {
                stats_add(&mean[c], x[c]);
                stats_add(&square[c], x[c] * x[c]);
                stats_add(&cross[c], x[c] * x[(c + 1) % d]);
            }
            stats_add(&fourth, x[0] * x[0] * x[0] * x[0]);
        }
        double D = (double)d;
        for (int64_t c = 0; c < d && c < 3; c++) {
            stats_z("mean", stats_mean_z(&mean[c], 0));
            stats_z("square", stats_mean_z(&square[c], 1 / D));
            if (d > 1)
                stats_z("cross", stats_mean_z(&cross[c], 0));
        }
        stats_z("fourth", stats_mean_z(&fourth, 3 / (D * (D + 2))));
    }
    stats_end("sphere");
    print_message("|x|^2 - 1: %.2g at d = 3, %.2g at d = %d\n", worst[2], worst[4], (int)MOST);
}

/* E W = n M, Cov(W_ij, W_kl) = n (M_ik M_jl + M_il M_jk). */
static void wishart2__has_its_moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    const double matrices[][3] = {
        {1, 0, 1}, {2, -0.8, 0.5},          {1, 2, 4},        {4, -2, 1}, {0, 0, 3}, {3, 0, 0},
        {0, 0, 0}, {1e-20, 1e-10 * 0.5, 1}, {0.01, 0.0999, 1}};
    const double dofs[] = {2, 2.5, 7, 1e12};
    static const int row[3] = {0, 0, 1}, column[3] = {0, 1, 1};
    stats_begin();
    for (size_t s = 0; s < sizeof matrices / sizeof *matrices; s++)
        for (size_t t = 0; t < sizeof dofs / sizeof *dofs; t++) {
            double n = dofs[t],
                   M[2][2] = {{matrices[s][0], matrices[s][1]}, {matrices[s][1], matrices[s][2]}};
            double size[3] = {M[0][0], sqrt(M[0][0] * M[1][1]), M[1][1]};
            stats_mean mean[3] = {{0}}, second[3][3] = {{{0}}};
            fin_random r;
            fin_random_open(&r, 11, 2000, 10 * s + t);
            for (int i = 0; i < N / 4; i++) {
                double W[3], c[3];
                fin_random_wishart2(&r, n, matrices[s], W);
                assert_true(W[0] >= 0 && W[2] >= 0 &&
                            W[0] * W[2] - W[1] * W[1] >= -1e-14 * W[0] * W[2]);
                if (M[0][0] * M[1][1] == M[0][1] * M[0][1]) /* singular M, singular W */
                    assert_true(fabs(W[0] * W[2] - W[1] * W[1]) <= 1e-14 * W[0] * W[2]);
                for (int a = 0; a < 3; a++) {
                    c[a] = size[a] > 0 ? (W[a] - n * matrices[s][a]) / (sqrt(n) * size[a]) : W[a];
                    stats_add(&mean[a], c[a]);
                }
                for (int a = 0; a < 3; a++)
                    for (int b = 0; b <= a; b++)
                        stats_add(&second[a][b], c[a] * c[b]);
            }
            for (int a = 0; a < 3; a++) {
                stats_z("mean", stats_mean_z(&mean[a], 0));
                for (int b = 0; b <= a; b++) {
                    int i = row[a], j = column[a], k = row[b], l = column[b];
                    double scale = size[a] * size[b];
                    double want = scale > 0 ? (M[i][k] * M[j][l] + M[i][l] * M[j][k]) / scale : 0;
                    stats_z("covariance", stats_mean_z(&second[a][b], want));
                }
            }
        }
    stats_end("wishart");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform__is_uniform_and_open), cmocka_unit_test(below__is_unbiased),
        cmocka_unit_test(gumbel__has_its_law),          cmocka_unit_test(gamma__has_its_law),
        cmocka_unit_test(chi_square__has_its_law),      cmocka_unit_test(sphere__is_uniform),
        cmocka_unit_test(wishart2__has_its_moments),
    };
    return cmocka_run_group_tests_name("random_laws", tests, NULL, NULL);
}
