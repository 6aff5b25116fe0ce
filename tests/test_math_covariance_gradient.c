/* Gradients of sums of covariances in scales, by differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_math_covariance.h"

#include <string.h>

typedef struct gradient_case {
    fin_covariance c;
    int64_t d, n, m;
    double *a, *b, *G, *K;
    double *tscale; /* a direction: change of the logarithms of scales */
} gradient_case;

/* S when all move by h along the direction, in long double. */
static long double sum_at(const gradient_case *o, long double h)
{
    long double sum = 0;
    long double *x = malloc((size_t)(2 * o->d) * sizeof *x), *y = x + o->d;
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = 0; j < o->m; j++) {
            for (int64_t k = 0; k < o->d; k++) {
                long double factor = expl(-h * o->tscale[k]);
                x[k] = o->a[i * o->d + k] * factor;
                y[k] = o->b[j * o->d + k] * factor;
            }
            sum += o->G[i * o->m + j] * exact(&o->c, o->d, x, y, NULL);
        }
    free(x);
    return sum;
}

/* Central differences of S in long double: what they leave out is h^2 times the third derivative,
 * about 1e-10 of the sum of the sizes. */
static void check_gradient(gradient_case *o, double tolerance)
{
    const long double h = 1e-5L;
    int64_t d = o->d;
    double *scale = numbers(d);
    o->K = numbers(o->n * o->m);
    fini_covariance_tile(&o->c, d, o->n, o->a, o->m, o->b, o->K, o->m);
    for (int64_t k = 0; k < d; k++)
        scale[k] = 1;
    fini_covariance_scales(
        &(fini_covariance_pairs){&o->c, d, o->n, o->m, o->a, o->b, o->K, o->G, o->m}, scale);
    double slope = 0, size = 0;
    for (int64_t t = 0; t < o->n * o->m; t++)
        size += fabs(o->G[t] * o->K[t]);
    for (int64_t k = 0; k < d; k++)
        slope += (scale[k] - 1) * o->tscale[k]; /* it is added to what was there */
    double expected = (double)((sum_at(o, h) - sum_at(o, -h)) / (2 * h));
    if (!(fabs(slope - expected) <= tolerance * size))
        fail_msg("scales, kernel %d: %.15g, differences %.15g", o->c.kernel, slope, expected);
    free(scale);
    free(o->K);
}

static void gradient_over(int kernel, int64_t d, int64_t n, int64_t m, double offset, double size)
{
    gradient_case o = {.c = settings_of(kernel), .d = d, .n = n, .m = m};
    o.a = normals(11, n * d);
    o.b = normals(12, m * d);
    o.G = normals(13, n * m);
    o.tscale = normals(16, d);
    for (int64_t i = 0; i < n * d; i++)
        o.a[i] = offset + size * o.a[i];
    for (int64_t i = 0; i < m * d; i++)
        o.b[i] = offset + size * o.b[i];
    if (n > 1 && m > 1) /* equal keys */
        memcpy(o.b + d, o.a, (size_t)d * sizeof *o.a);
    check_gradient(&o, 1e-9);
    free(o.a);
    free(o.b);
    free(o.G);
    free(o.tscale);
}

static void gradients__match_differences(void **state)
{
    (void)state;
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        gradient_over(kernel, 1, 1, 1, 0, 1);
        gradient_over(kernel, 3, 5, 7, 0, 0.7);
        gradient_over(kernel, 2, 66, 71, 0, 0.7);
        gradient_over(kernel, 70, 5, 67, 0, 0.12);
    }
}

/* The same keys 1e5 away, where the scales of a stationary kernel matter as before; squares of
 * such keys would leave 6 digits. */
static void gradients__match_differences_far_from_the_origin(void **state)
{
    (void)state;
    for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++)
        gradient_over(kernel, 3, 9, 70, 1e5, 0.7);
}

static void gradients__polynomial_of_degree_one_is_linear(void **state)
{
    (void)state;
    enum { N = 4, M = 3, D = 2 };
    double *a = normals(17, N * D), *b = normals(18, M * D), *G = normals(19, N * M);
    double K[N * M], x[2][D] = {{0}};
    for (int v = 0; v < 2; v++) {
        fin_covariance c = settings_of(v ? FIN_KERNEL_POLYNOMIAL : FIN_KERNEL_LINEAR);
        c.degree = 1;
        fini_covariance_tile(&c, D, N, a, M, b, K, M);
        fini_covariance_scales(&(fini_covariance_pairs){&c, D, N, M, a, b, K, G, M}, x[v]);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    free(a);
    free(b);
    free(G);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients__match_differences),
        cmocka_unit_test(gradients__match_differences_far_from_the_origin),
        cmocka_unit_test(gradients__polynomial_of_degree_one_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
