/* Covariance functions: values against long double, what they promise to the last bit, and bad
 * input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "kernel/kernel.h"
#include "kernel/pairs.h"
#include "test_math_covariance.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long double exact_double(const fin_covariance *c, int64_t d, const double *a,
                                const double *b, long double *log_k)
{
    long double x[400], y[400];
    assert_true(d <= 400);
    for (int64_t k = 0; k < d; k++) {
        x[k] = a[k];
        y[k] = b[k];
    }
    return exact(c, d, x, y, log_k);
}

/* python3, mpmath with 30 digits, a = (0.3, -1.2), b = (1.1, 0.4), scale 0.8, degree 3 and
 * offset 0.75:
 *   from mpmath import *; mp.dps = 30
 *   a, b = [[mpf(x) / mpf('0.8') for x in v] for v in (('0.3', '-1.2'), ('1.1', '0.4'))]
 *   p = sum(x * y for x, y in zip(a, b)); r = sqrt(sum((x - y)**2 for x, y in zip(a, b)))
 *   for k in (p, (mpf('0.75') + p)**3, exp(p), exp(-r**2 / 2),
 *             (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
 *             (1 + sqrt(5) * r + 5 * r**2 / 3) * exp(-sqrt(5) * r)): print(nstr(k, 20)) */
static const double known[KERNELS] = {-0.234375,
                                      0.137088775634765625,
                                      0.7910651108502960148,
                                      0.08208499862389879517,
                                      0.10133970398809888507,
                                      0.096577240320225028385};

static void covariance__known_answers(void **state)
{
    (void)state;
    const double a[2] = {0.3, -1.2}, b[2] = {1.1, 0.4};
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        fin_covariance c = settings_of(kernel);
        c.scale = 0.8;
        double k = 0;
        assert_int_equal(fin_covariance_matrix(&c, 2, 1, a, 1, b, &k, NULL), FIN_OK);
        assert_true(fabs(k - known[kernel]) <= 1e-15 * (1 + fabs(known[kernel])));
    }
}

/* A squared distance or a product is a sum of d terms: relative to the sum of their sizes its error
 * is at most (d + 2) / 2 units of 2^-52, which the function multiplies by its own slope. */
static double allowed(const fin_covariance *c, int64_t d, const double *a, const double *b,
                      long double k)
{
    double sizes = 0, r2 = 0, sum = (double)(d + 4) * DBL_EPSILON;
    for (int64_t t = 0; t < d; t++) {
        sizes += fabs(a[t] * b[t]);
        r2 += (a[t] - b[t]) * (a[t] - b[t]);
    }
    switch (c->kernel) {
    case FIN_KERNEL_LINEAR:
        return sum * sizes;
    case FIN_KERNEL_POLYNOMIAL:
        return (double)c->degree * sum * pow(c->offset + sizes, (double)c->degree);
    case FIN_KERNEL_EXPONENTIAL:
        return (4 * DBL_EPSILON + sum * sizes) * (double)k;
    case FIN_KERNEL_RBF:
        return (4 * DBL_EPSILON + sum * r2) * (double)k;
    default:
        return (6 * DBL_EPSILON + sum * sqrt(5 * r2)) * (double)k;
    }
}

static void tile__matches_long_double(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 2, 5, 17, 64, 300};
    const int n = 23, m = 41;
    for (size_t t = 0; t < sizeof dims / sizeof *dims; t++) {
        int64_t d = dims[t];
        double *a = normals(1, n * d), *b = normals(2, m * d), *K = numbers(n * m);
        for (int64_t i = 0; i < n * d; i++)
            a[i] *= 1.5 / sqrt((double)d);
        for (int64_t i = 0; i < m * d; i++)
            b[i] *= 1.5 / sqrt((double)d);
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            fin_covariance c = settings_of(kernel);
            double worst = 0;
            fini_covariance_tile(&c, d, n, a, m, b, K, m);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < m; j++) {
                    const double *x = a + i * d, *y = b + j * d;
                    long double k = exact_double(&c, d, x, y, NULL);
                    double error = (double)fabsl(K[i * m + j] - k);
                    worst = fmax(worst, error / allowed(&c, d, x, y, k));
                }
            if (!(worst <= 1))
                fail_msg("kernel %d, d = %d: %g of what is allowed", kernel, (int)d, worst);
        }
        free(a);
        free(b);
        free(K);
    }
}

static void logs__match_long_double_also_where_k_is_zero(void **state)
{
    (void)state;
    const int n = 9, m = 300, d = 3;
    double *a = normals(3, n * d), *b = normals(4, m * d), *K = numbers(n * m);
    for (int i = 0; i < n * d; i++)
        a[i] *= i < 3 * d ? 1e-3 : i < 6 * d ? 1 : 1e3;
    memcpy(b, a, 2 * d * sizeof *b);
    for (int kernel = FIN_KERNEL_EXPONENTIAL; kernel < KERNELS; kernel++) {
        fin_covariance c = settings_of(kernel);
        assert_true(fini_covariance_positive(&c));
        fini_covariance_logs(&c, d, n, a, m, b, K, m);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
                long double log_k;
                exact_double(&c, d, a + i * d, b + j * d, &log_k);
                double size = fabs((double)log_k) + (kernel == FIN_KERNEL_EXPONENTIAL ? 1e4 : 1);
                assert_true(fabsl(K[i * m + j] - log_k) <= 1e-15 * 8 * size);
            }
    }
    fin_covariance linear = settings_of(FIN_KERNEL_LINEAR),
                   polynomial = settings_of(FIN_KERNEL_POLYNOMIAL);
    assert_false(fini_covariance_positive(&linear) || fini_covariance_positive(&polynomial));
    free(a);
    free(b);
    free(K);
}

static void tile__value_depends_on_its_two_keys_only(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 7, 64, 257, 300};
    enum { N = 67, M = 259 };
    double *K = numbers(N * M), *turned = numbers(N * M), *diagonal = numbers(N);
    for (size_t t = 0; t < sizeof dims / sizeof *dims; t++) {
        int64_t d = dims[t];
        double *a = normals(5, N * d), *b = normals(6, M * d);
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            fin_covariance c = settings_of(kernel);
            fini_covariance_tile(&c, d, N, a, M, b, K, M);
            fini_covariance_tile(&c, d, M, b, N, a, turned, N);
            for (int i = 0; i < N; i++)
                for (int j = 0; j < M; j += 1 + (j > 9 && j < 240) * 13) {
                    double alone;
                    fini_covariance_tile(&c, d, 1, a + i * d, 1, b + j * d, &alone, 1);
                    assert_true(alone == K[i * M + j] && alone == turned[j * N + i]);
                }
            fini_covariance_tile(&c, d, N, a, N, a, K, M);
            fini_covariance_diagonal(&c, d, N, a, diagonal);
            for (int i = 0; i < N; i++) {
                assert_true(diagonal[i] == K[i * M + i]);
                assert_true(kernel < FIN_KERNEL_RBF || diagonal[i] == 1);
            }
        }
        free(a);
        free(b);
    }
    free(K);
    free(turned);
    free(diagonal);
}

/* Keys on a grid of 2^-20, moved by 2^20 without rounding: the same bits. */
static void tile__same_bits_far_from_the_origin(void **state)
{
    (void)state;
    enum { N = 40, D = 9 };
    double *a = normals(7, N * D), *far = numbers(N * D), *K = numbers(N * N), *L = numbers(N * N);
    for (int i = 0; i < N * D; i++) {
        a[i] = nearbyint(a[i] * 0x1p20) * 0x1p-20;
        far[i] = a[i] + 0x1p20;
    }
    memcpy(a + D, a, D * sizeof *a); /* and a pair of equal keys */
    memcpy(far + D, far, D * sizeof *a);
    for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++) {
        fin_covariance c = settings_of(kernel);
        fini_covariance_tile(&c, D, N, a, N, a, K, N);
        fini_covariance_tile(&c, D, N, far, N, far, L, N);
        assert_memory_equal(K, L, N * N * sizeof *K);
        assert_true(K[1] == 1 && K[N] == 1);
    }
    free(a);
    free(far);
    free(K);
    free(L);
}

static void tile__huge_keys_and_nan(void **state)
{
    (void)state;
    const double a[4] = {1e200, -3, NAN, INFINITY}, b[2] = {-1e200, 1e-300};
    double K[4 * 2];
    for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++) {
        fin_covariance c = settings_of(kernel);
        fini_covariance_tile(&c, 1, 4, a, 2, b, K, 2);
        assert_true(K[0] == 0 && K[1] == 0 && K[2] == 0 && K[3] > 0);
        assert_true(isnan(K[4]) && isnan(K[5]));
        fini_covariance_logs(&c, 1, 4, a, 2, b, K, 2);
        assert_true(K[0] < -1e100 && isfinite(K[0]) && isfinite(K[1]) && isfinite(K[3]));
        assert_true(isnan(K[4]) && isnan(K[5]));
        fini_covariance_diagonal(&c, 1, 4, a, K);
        assert_true(K[0] == 1 && K[1] == 1 && isnan(K[2]) && isnan(K[3]));
    }
}

static void pairs__same_bits_in_every_kernel(void **state)
{
    (void)state;
    const char *const names[] = {"ref", "avx2", "avx512"};
    enum { N = 11, M = 37, D = 261 };
    double *a = normals(8, N * D), *b = normals(9, M * D), *x = numbers(N * M), *y = numbers(N * M);
    double *s = numbers(N * M), *t = numbers(N * M);
    int tried = 0;
    for (int v = 0; v < 3; v++) {
        if (!fini_kernel_force(names[v]))
            continue;
        const fini_pairs *pairs = fini_pairs_get();
        tried++;
        for (int64_t d = 1; d <= D; d += d < 20 ? 1 : 241) {
            fini_pairs_ref.dots(d, N, a, M, b, -0.5, x, M);
            pairs->dots(d, N, a, M, b, -0.5, y, M);
            assert_memory_equal(x, y, N * M * sizeof *x);
            fini_pairs_ref.squares(d, N, a, M, b, 3, x, M);
            pairs->squares(d, N, a, M, b, 3, y, M);
            assert_memory_equal(x, y, N * M * sizeof *x);
        }
        void (*const functions[2][3])(int64_t, const double *, double *) = {
            {fini_pairs_ref.matern32, fini_pairs_ref.matern52, fini_pairs_ref.decay},
            {pairs->matern32, pairs->matern52, pairs->decay}};
        for (int f = 0; f < 3; f++) {
            functions[0][f](N * M, x, s);
            functions[1][f](N * M, x, t);
            for (int i = 0; i < N * M; i++)
                assert_true(fabs(s[i] - t[i]) <= 4 * DBL_EPSILON * s[i]);
            /* the ends, in every place of a register */
            const double ends[3] = {0, INFINITY, NAN};
            for (int i = 0; i < N; i++)
                s[i] = ends[i % 3];
            functions[1][f](N, s, s);
            for (int i = 0; i < N; i++)
                assert_true(i % 3 == 2 ? isnan(s[i]) : s[i] == (i % 3 == 0));
        }
    }
    fini_kernel_force(NULL);
    print_message("%d kernels\n", tried);
    free(a);
    free(b);
    free(x);
    free(y);
    free(s);
    free(t);
}

static void lower__same_bits_for_any_threads_and_nothing_above(void **state)
{
    (void)state;
    enum { D = 3, LD = 211 };
    const int64_t sizes[] = {0, 1, 63, 64, 65, 200};
    double *a = normals(10, 200 * D), *K = numbers(200 * LD), *whole = numbers(200 * 200);
    fin_covariance c = settings_of(FIN_KERNEL_MATERN52);
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++)
        for (int threads = 1; threads <= 3; threads++) {
            int64_t n = sizes[t];
            for (int i = 0; i < 200 * LD; i++)
                K[i] = -7;
            fin_threads_set(threads);
            fini_covariance_lower(&c, D, n, a, K, LD);
            fini_covariance_tile(&c, D, n, a, n, a, whole, n);
            for (int64_t i = 0; i < 200; i++)
                for (int64_t j = 0; j < LD; j++)
                    assert_true(K[i * LD + j] == (i < n && j <= i ? whole[i * n + j] : -7));
        }
    fin_threads_set(0);
    free(a);
    free(K);
    free(whole);
}

/* ---- the public call ----------------------------------------------------------------------- */

static void matrix__symmetric_and_the_same_for_any_threads(void **state)
{
    (void)state;
    enum { N = 150, D = 4 };
    double *a = normals(20, N * D), *copy = numbers(N * D), *K = numbers(N * N),
           *L = numbers(N * N);
    memcpy(copy, a, N * D * sizeof *a);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        fin_covariance c = settings_of(kernel);
        c.scale = 1.7;
        for (int threads = 1; threads <= 3; threads++) {
            fin_threads_set(threads);
            assert_int_equal(fin_covariance_matrix(&c, D, N, a, N, a, K, NULL), FIN_OK);
            assert_int_equal(fin_covariance_matrix(&c, D, N, a, N, copy, L, NULL), FIN_OK);
            assert_memory_equal(K, L, N * N * sizeof *K);
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                assert_true(K[i * N + j] == K[j * N + i]);
    }
    fin_threads_set(0);
    free(a);
    free(copy);
    free(K);
    free(L);
}

static void refuse(const fin_covariance *c, int64_t d, int64_t n, const double *a, int64_t m,
                   const double *b, double *out, fin_status expected, const char *part)
{
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_covariance_matrix(c, d, n, a, m, b, out, &err), expected);
    if (!strstr(err.message, part))
        fail_msg("'%s' is not in '%s'", part, err.message);
    assert_int_equal(fin_covariance_matrix(c, d, n, a, m, b, out, NULL), expected);
}

static void matrix__refuses_bad_input(void **state)
{
    (void)state;
    fin_covariance c = settings_of(FIN_KERNEL_EXPONENTIAL);
    double a[4] = {1, 2, 30, 40}, bad[4] = {1, 2, 3, NAN}, K[4];
    refuse(NULL, 2, 2, a, 2, a, K, FIN_ERR_ARGUMENT, "covariance is NULL");
    refuse(&c, 0, 2, a, 2, a, K, FIN_ERR_ARGUMENT, "dimension");
    refuse(&c, 2, -1, a, 2, a, K, FIN_ERR_ARGUMENT, "-1");
    refuse(&c, 2, INT64_MAX, a, 2, a, K, FIN_ERR_ARGUMENT, "2^40");
    refuse(&c, 2, INT64_C(1) << 30, a, INT64_C(1) << 30, a, K, FIN_ERR_ARGUMENT, "2^40");
    refuse(&c, 2, 2, NULL, 2, a, K, FIN_ERR_ARGUMENT, "a of keys");
    refuse(&c, 2, 2, a, 2, NULL, K, FIN_ERR_ARGUMENT, "b of keys");
    refuse(&c, 2, 2, a, 2, a, NULL, FIN_ERR_ARGUMENT, "results");
    refuse(&c, 2, 2, a, 2, bad, K, FIN_ERR_ARGUMENT, "key 1 of b");
    refuse(&c, 2, 2, bad, 2, a, K, FIN_ERR_ARGUMENT, "key 1 of a");
    refuse(&c, 2, 2, a, 2, a, K, FIN_ERR_NUMERIC, "key 1 of a and key 1 of b");
    c.scale = NAN;
    refuse(&c, 2, 2, a, 2, a, K, FIN_ERR_ARGUMENT, "scale");
    c = settings_of(17);
    refuse(&c, 2, 2, a, 2, a, K, FIN_ERR_ARGUMENT, "kernel");
    c = settings_of(FIN_KERNEL_POLYNOMIAL);
    c.degree = 33;
    refuse(&c, 2, 2, a, 2, a, K, FIN_ERR_ARGUMENT, "degree");
    c = settings_of(FIN_KERNEL_RBF);
    assert_int_equal(fin_covariance_matrix(&c, 2, 0, NULL, 2, a, NULL, NULL), FIN_OK);
    assert_int_equal(fin_covariance_matrix(&c, 2, 2, a, 0, NULL, NULL, NULL), FIN_OK);
}

static fin_status run_matrix(void *user, fin_error *err)
{
    (void)user;
    const double a[4] = {1, 2, 3, 4}, b[2] = {5, 6};
    double K[2];
    fin_covariance c = settings_of(FIN_KERNEL_RBF);
    return fin_covariance_matrix(&c, 2, 2, a, 1, b, K, err);
}

static void matrix__survives_failed_allocations(void **state)
{
    (void)state;
    assert_true(fault_every(run_matrix, NULL) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covariance__known_answers),
        cmocka_unit_test(tile__matches_long_double),
        cmocka_unit_test(logs__match_long_double_also_where_k_is_zero),
        cmocka_unit_test(tile__value_depends_on_its_two_keys_only),
        cmocka_unit_test(tile__same_bits_far_from_the_origin),
        cmocka_unit_test(tile__huge_keys_and_nan),
        cmocka_unit_test(pairs__same_bits_in_every_kernel),
        cmocka_unit_test(lower__same_bits_for_any_threads_and_nothing_above),
        cmocka_unit_test(matrix__symmetric_and_the_same_for_any_threads),
        cmocka_unit_test(matrix__refuses_bad_input),
        cmocka_unit_test(matrix__survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
