/* The laws of directions: von Mises-Fisher, rotations, Dirichlet, and their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "finetti/random.h"
#include "math/bessel.h"
#include "test_random_stats.h"
#include "math/small.h"

#include <stdio.h>
#include <string.h>

enum { DMAX = 50 };

static const double pi = 3.14159265358979323846;

static double dot(int64_t d, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Along the axis: E w = A, E w^2 = 1 - (d-1) A/kappa; 1 - w, which huge kappa is about, from
 * |x - axis|^2 = 2 (1 - w). Across it: no direction is preferred. */
static void check_vmf(int64_t d, double kappa, int n)
{
    double axis[DMAX], unit[DMAX], across[DMAX], x[DMAX], nu = (double)d / 2 - 1;
    stats_mean gap = {0}, square = {0}, side = {0}, side2 = {0};
    char what[64];
    fin_random r;
    fin_random_open(&r, 11, 2000, (uint64_t)d);
    fin_random_sphere(&r, d, unit);
    fin_random_sphere(&r, d, across); /* made orthogonal to the axis */
    double along = dot(d, unit, across), norm = sqrt(1 - along * along);
    for (int64_t i = 0; i < d; i++) {
        across[i] = (across[i] - along * unit[i]) / norm;
        axis[i] = 3 * unit[i]; /* only the direction matters */
    }
    for (int i = 0; i < n; i++) {
        double distance2 = 0;
        fin_random_vmf(&r, d, axis, kappa, x);
        assert_true(fabs(dot(d, x, x) - 1) < 1e-14);
        for (int64_t j = 0; j < d; j++)
            distance2 += (x[j] - unit[j]) * (x[j] - unit[j]);
        double t = distance2 / 2, c = dot(d, x, across);
        stats_add(&gap, t);
        stats_add(&square, t * t);
        stats_add(&side, c);
        stats_add(&side2, c * c);
    }
    double A = fini_bessel_ratio(nu, kappa), lack = fini_bessel_gap(nu, kappa);
    double w2 = kappa > 0 ? 1 - (double)(d - 1) * A / kappa : 1 / (double)d;
    snprintf(what, sizeof what, "d = %d, kappa = %g", (int)d, kappa);
    stats_z(what, stats_mean_z(&gap, lack));
    stats_z(what, stats_mean_z(&side, 0));
    stats_z(what, stats_mean_z(&side2, kappa > 0 ? A / kappa : 1 / (double)d));
    if (kappa < 1e4) /* past that E (1-w)^2 cancels here, not in the draws */
        stats_z(what, stats_mean_z(&square, 2 * lack - 1 + w2));
}

static void vmf__has_its_moments(void **state)
{
    (void)state;
    const double kappas[] = {0, 1e-3, 0.7, 5, 100, 1e8};
    const int64_t sizes[] = {2, 3, 4, 10, DMAX};
    stats_begin();
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            check_vmf(sizes[j], kappas[i], sizes[j] > 10 ? 5000 : 20000);
    stats_end("von Mises-Fisher");
}

static double cosine_cdf(double w, double kappa) /* d = 3 */
{
    return expm1(kappa * (w + 1)) / expm1(2 * kappa);
}

static void vmf__is_exact_on_the_sphere(void **state)
{
    (void)state;
    enum { N = 100000 };
    static double w[N];
    const double axis[3] = {0, -2, 0};
    double x[3];
    fin_random r;
    fin_random_open(&r, 12, 2000, 0);
    for (int i = 0; i < N; i++) {
        fin_random_vmf(&r, 3, axis, 2.5, x);
        w[i] = -x[1];
    }
    double distance = stats_ks(N, w, cosine_cdf, 2.5);
    print_message("sphere: sqrt(n) KS distance %.3f\n", distance);
    assert_true(distance < 2.7);
}

/* Counts of the angle in equal cells against the integral of the density over each. */
static void vmf__is_von_mises_on_the_circle(void **state)
{
    (void)state;
    enum { CELLS = 40, N = 200000, NODES = 16 };
    double count[CELLS] = {0}, p[CELLS] = {0}, node[NODES], weight[NODES], x[2], total = 0;
    const double kappa = 1.7, axis[2] = {cos(1.0), sin(1.0)};
    fin_random r;
    fin_random_open(&r, 13, 2000, 0);
    assert_int_equal(fini_legendre(NODES, node, weight, NULL), FIN_OK);
    for (int c = 0; c < CELLS; c++)
        for (int i = 0; i < NODES; i++)
            p[c] += weight[i] * exp(kappa * cos((c + 0.5 + node[i] / 2) * 2 * pi / CELLS - pi - 1));
    for (int c = 0; c < CELLS; c++)
        total += p[c];
    for (int c = 0; c < CELLS; c++)
        p[c] /= total;
    for (int i = 0; i < N; i++) {
        fin_random_vmf(&r, 2, axis, kappa, x);
        count[(int)((atan2(x[1], x[0]) + pi) / (2 * pi) * CELLS) % CELLS]++;
    }
    stats_begin();
    stats_z("circle", stats_chi_square_z(CELLS, count, p, N));
    stats_end("circle");
}

static void vmf__takes_every_argument(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 14, 2000, 0);
    fin_random_vmf(&r, 0, NULL, 0, NULL); /* nothing to do, and it ends */
    for (int64_t d = 1; d <= 5; d++) {
        const double axis[5] = {-0.5, 0.5, 0.5, 0.5, 0.1}, zero[5] = {0};
        double x[5], length = sqrt(dot(d, axis, axis));
        fin_random_vmf(&r, d, axis, INFINITY, x);
        for (int64_t i = 0; i < d; i++)
            assert_true(fabs(x[i] - axis[i] / length) < 1e-15);
        const double good[] = {5e-324, 1e-200, 1e-10, 1e20, 1e299, 1e308};
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            fin_random_vmf(&r, d, axis, good[i], x);
            assert_true(fabs(dot(d, x, x) - 1) < 1e-14);
        }
        fin_random_vmf(&r, d, zero, 0, x);
        assert_true(fabs(dot(d, x, x) - 1) < 1e-14);
        double wrong[5];
        memcpy(wrong, axis, sizeof wrong);
        wrong[d - 1] = d % 2 ? NAN : INFINITY;
        fin_random_vmf(&r, d, zero, 1, x);
        assert_true(isnan(x[0]) && isnan(x[d - 1]));
        fin_random_vmf(&r, d, wrong, 1, x);
        assert_true(isnan(x[0]) && isnan(x[d - 1]));
        fin_random_vmf(&r, d, axis, -1, x);
        assert_true(isnan(x[0]) && isnan(x[d - 1]));
        fin_random_vmf(&r, d, axis, NAN, x);
        assert_true(isnan(x[0]) && isnan(x[d - 1]));
    }
}

static double determinant(int d, const double *O)
{
    double M[10 * 10], det = 1;
    memcpy(M, O, sizeof(double) * (size_t)(d * d));
    for (int k = 0; k < d; k++) {
        int pivot = k;
        for (int i = k; i < d; i++)
            pivot = fabs(M[i * d + k]) > fabs(M[pivot * d + k]) ? i : pivot;
        for (int j = 0; j < d; j++) {
            double swap = M[k * d + j];
            M[k * d + j] = M[pivot * d + j];
            M[pivot * d + j] = swap;
        }
        det *= pivot == k ? M[k * d + k] : -M[k * d + k];
        for (int i = k + 1; i < d; i++)
            for (int j = d - 1; j >= k; j--)
                M[i * d + j] -= M[i * d + k] / M[k * d + k] * M[k * d + j];
    }
    return det;
}

static void rotation__is_a_rotation(void **state)
{
    (void)state;
    double O[DMAX * DMAX];
    fin_random r;
    fin_random_open(&r, 15, 2000, 0);
    for (int d = 1; d <= DMAX; d += d < 10 ? 1 : 20)
        for (int draw = 0; draw < 20; draw++) {
            fin_random_rotation(&r, d, O);
            for (int i = 0; i < d; i++)
                for (int j = 0; j <= i; j++)
                    assert_true(fabs(dot(d, O + i * d, O + j * d) - (i == j)) < 1e-13);
            if (d <= 10)
                assert_true(fabs(determinant(d, O) - 1) < 1e-13);
        }
    fin_random_rotation(&r, 1, O);
    assert_true(O[0] == 1);
    fin_random_rotation(&r, 0, O); /* nothing is touched */
    assert_true(O[0] == 1);
}

/* Invariants of Haar measure. Powers of the trace count invariant tensors: E tr = 0, E tr^2 = 1,
 * and E tr^3 = 1 on SO(3) (the cross product), which the orthogonal group does not have; E tr^4 = 3
 * on SO(3) and for d >= 5, 4 on SO(4). Entries: E O_ij^2 = 1/d, E O_ij^4 = 3/(d(d+2)),
 * E O_11 O_22 O_12 O_21 = -1/(d (d-1) (d+2)) for d >= 3, d != 4. */
static void check_haar(int d, int n)
{
    double O[10 * 10];
    stats_mean power[5] = {{0}}, two[3] = {{0}}, four = {0}, mixed = {0};
    const double tr3 = d == 3 ? 1 : 0, tr4 = d == 4 ? 4 : 3;
    const int where[3] = {0, d * d - 1, d * (d - 1)}; /* corners */
    char what[32];
    fin_random r;
    fin_random_open(&r, 16, 2000, (uint64_t)d);
    for (int i = 0; i < n; i++) {
        double trace = 0;
        fin_random_rotation(&r, d, O);
        for (int j = 0; j < d; j++)
            trace += O[j * d + j];
        for (int k = 1; k <= 4; k++)
            stats_add(&power[k], pow(trace, k));
        for (int k = 0; k < 3; k++)
            stats_add(&two[k], O[where[k]] * O[where[k]]);
        stats_add(&four, pow(O[d * d - 1], 4));
        stats_add(&mixed, O[0] * O[1] * O[d] * O[d + 1]);
    }
    snprintf(what, sizeof what, "rotation, d = %d", d);
    const double want[5] = {0, 0, 1, tr3, tr4};
    for (int k = 1; k <= 4; k++)
        stats_z(what, stats_mean_z(&power[k], want[k]));
    for (int k = 0; k < 3; k++)
        stats_z(what, stats_mean_z(&two[k], 1.0 / d));
    stats_z(what, stats_mean_z(&four, 3.0 / (d * (d + 2))));
    if (d != 4)
        stats_z(what, stats_mean_z(&mixed, -1.0 / (d * (d - 1) * (d + 2))));
}

static void rotation__is_uniform(void **state)
{
    (void)state;
    enum { CELLS = 50, N = 100000 };
    double count[CELLS] = {0}, O[4];
    fin_random r;
    fin_random_open(&r, 17, 2000, 0);
    stats_begin();
    for (int i = 0; i < N; i++) {
        fin_random_rotation(&r, 2, O);
        count[(int)((atan2(O[2], O[0]) + pi) / (2 * pi) * CELLS) % CELLS]++;
    }
    stats_z("angle", stats_chi_square_z(CELLS, count, NULL, N));
    check_haar(3, 60000);
    check_haar(4, 60000);
    check_haar(7, 30000);
    stats_end("rotation");
}

/* E p = a/a0, Var p = a (a0 - a) / (a0^2 (a0 + 1)), for alpha large, small and mixed. */
static void dirichlet__has_its_moments(void **state)
{
    (void)state;
    enum { N = 50000, SIZE = 4 };
    const double cases[][SIZE] = {
        {1, 1, 1, 1},          {0.3, 2, 5, 11},     {1e-3, 2e-3, 3e-3, 4e-3},
        {1e-9, 3e-9, 0, 2e-9}, {1e4, 2e4, 3, 1e-2}, {1e-300, 3e-300, 0, 1e-300}};
    fin_random r;
    fin_random_open(&r, 18, 2000, 0);
    stats_begin();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const double *a = cases[c];
        double a0 = 0, p[SIZE];
        stats_mean first[SIZE] = {{0}}, second[SIZE] = {{0}};
        for (int i = 0; i < SIZE; i++)
            a0 += a[i];
        for (int n = 0; n < N; n++) {
            double sum = 0;
            fin_random_dirichlet(&r, SIZE, a, p);
            for (int i = 0; i < SIZE; i++) {
                assert_true(p[i] >= 0 && p[i] <= 1);
                sum += p[i];
                stats_add(&first[i], p[i]);
                stats_add(&second[i], p[i] * p[i]);
            }
            assert_true(fabs(sum - 1) < 1e-14);
        }
        for (int i = 0; i < SIZE; i++) {
            double mean = a[i] / a0;
            stats_z("dirichlet", stats_mean_z(&first[i], mean));
            stats_z("dirichlet", stats_mean_z(&second[i], mean * ((a[i] + 1) / (a0 + 1))));
        }
    }
    stats_end("dirichlet");
}

static void dirichlet__takes_every_argument(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 19, 2000, 0);
    const double good[][2] = {{5e-324, 0},    {5e-324, 5e-324}, {1e-310, 1},
                              {1e308, 1e308}, {1e-320, 1e308},  {0, 1}};
    const double bad[][2] = {{0, 0}, {-1, 1}, {NAN, 1}, {1, INFINITY}};
    double p[2];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (int draw = 0; draw < 100; draw++) {
            memcpy(p, good[i], sizeof p); /* in place */
            fin_random_dirichlet(&r, 2, p, p);
            assert_true(p[0] >= 0 && p[1] >= 0 && fabs(p[0] + p[1] - 1) < 1e-15);
            assert_true(p[1] == 0 || good[i][1] > 0);
            assert_true(p[0] == 0 || good[i][0] > 0);
        }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_random_dirichlet(&r, 2, bad[i], p);
        assert_true(isnan(p[0]) && isnan(p[1]));
    }
    fin_random_dirichlet(&r, 1, good[2], p);
    assert_true(p[0] == 1);
    p[0] = 7;
    fin_random_dirichlet(&r, 0, NULL, p);
    assert_true(p[0] == 7);
}

static void directions__depend_on_the_cursor_alone(void **state)
{
    (void)state;
    double one[2][30];
    const double axis[4] = {1, 2, 3, 4}, alpha[5] = {0.1, 1, 2, 3, 1e-5};
    for (int round = 0; round < 2; round++) {
        fin_random r;
        fin_random_open(&r, 20, 2000, 5);
        fin_random_vmf(&r, 4, axis, 3, one[round]);
        fin_random_vmf(&r, 3, axis, 3, one[round] + 4);
        fin_random_dirichlet(&r, 5, alpha, one[round] + 7);
        fin_random_rotation(&r, 4, one[round] + 12);
        fin_random_vmf(&r, 2, axis, 3, one[round] + 28);
    }
    assert_memory_equal(one[0], one[1], sizeof one[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vmf__has_its_moments),
        cmocka_unit_test(vmf__is_exact_on_the_sphere),
        cmocka_unit_test(vmf__is_von_mises_on_the_circle),
        cmocka_unit_test(vmf__takes_every_argument),
        cmocka_unit_test(rotation__is_a_rotation),
        cmocka_unit_test(rotation__is_uniform),
        cmocka_unit_test(dirichlet__has_its_moments),
        cmocka_unit_test(dirichlet__takes_every_argument),
        cmocka_unit_test(directions__depend_on_the_cursor_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
