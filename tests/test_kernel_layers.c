/* Norms, activations, sums and the optimiser of a transformer's layer: the double table is held
 * against differences and numbers of 40 digits, the float tables against the double one, for all
 * remainders of a register and with arrays that end where memory does; what is not a number stays
 * in its row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_kernel_layers_help.h"

static const int widths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64, 65};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Sums of w <= 65 numbers: within 70 roundings of 6e-8 at worst, a few in truth. */
static void norm__near_double(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    for (int k = 0; k < count; k++)
        for (int i = 1; i < WIDTHS; i++)
            for (int64_t rows = 1; rows <= 6; rows += rows == 1 ? 3 : 1) {
                int64_t w = widths[i], n = rows * w;
                float *x = fill(0, n), *gain = fill(1, w), *bias = fill(2, w), *dy = fill(3, n);
                float *dx = fill(4, n), *dgain = fill(5, w), *dbias = fill(6, w);
                float *y = fence_array(&fences[7], n, 4), *mean = fence_array(&fences[8], rows, 4);
                float inverse[8];
                static double wy[MOST], wm[8], wi[8];
                const fini_norm_f32 norm = {rows, w, x, gain, mean, inverse, 1e-5f};
                table[k]->norm(&norm, bias, y);
                table[k]->norm_back(&norm, dy, dx, dgain, dbias);
                const fini_layers_f64 *f64 = &fini_layers_ref_f64;
                const fini_norm_f64 wide = {rows, w, store[0], store[1], wm, wi, (double)1e-5f};
                f64->norm(&wide, store[2], wy);
                f64->norm_back(&wide, store[3], store[4], store[5], store[6]);
                /* A row of two numbers that are close is divided by what their rounding left. */
                double bound = w < 7 ? 2e-4 : 4e-6;
                near(n, y, wy, bound);
                near(rows, mean, wm, 4e-6);
                near(n, dx, store[4], bound * 10);
                near(w, dgain, store[5], bound);
                near(w, dbias, store[6], 4e-6);
            }
}

/* The derivative of sum(y dy) in x, gain and bias, by central differences. */
static void norm_back__is_the_derivative(void **state)
{
    (void)state;
    enum { ROWS = 3, W = 7, N = ROWS * W };
    const fini_layers_f64 *f = &fini_layers_ref_f64;
    double dx[N] = {0}, dgain[W] = {0}, dbias[W] = {0}, y[N], mean[ROWS], inverse[ROWS];
    fill(0, N), fill(1, W), fill(2, W), fill(3, N);
    const fini_norm_f64 norm = {ROWS, W, store[0], store[1], mean, inverse, 1e-5};
    f->norm(&norm, store[2], y);
    f->norm_back(&norm, store[3], dx, dgain, dbias);
    for (int part = 0; part < 3; part++)
        for (int j = 0; j < (part ? W : N); j++) {
            double at = store[part][j], side[2];
            for (int s = 0; s < 2; s++) {
                store[part][j] = at + (s ? 1e-5 : -1e-5);
                f->norm(&norm, store[2], y);
                side[s] = 0;
                for (int i = 0; i < N; i++)
                    side[s] += y[i] * store[3][i];
            }
            store[part][j] = at;
            double want = (side[1] - side[0]) / 2e-5;
            double got = part == 0 ? dx[j] : part == 1 ? dgain[j] : dbias[j];
            assert_true(fabs(got - want) < 1e-8 * (1 + fabs(want)));
        }
}

/* from mpmath import *; mp.dps = 40
 * for t in [-9, -3.5, -1, -0.25, 0, 0.125, 0.75, 2, 5.5]:
 *     print(t, nstr(t * ncdf(t), 17), nstr(ncdf(t) + t * npdf(t), 17)) */
static const double gelu_known[][3] = {
    {-9.0, -1.0157295653584566e-18, -9.1389373739066393e-18},
    {-3.5, -0.00081420177662433763, -0.0028217603536246352},
    {-1.0, -0.15865525393145705, -0.083315470587686298},
    {-0.25, -0.10032341857926907, 0.30462664511636397},
    {0.0, 0.0, 0.5},
    {0.125, 0.068717278103764112, 0.59921793569820658},
    {0.75, 0.58002948571734885, 0.9992257217392351},
    {2.0, 1.9544997361036416, 1.0852318010781969},
    {5.5, 5.4999998955574064, 1.0000005733472399},
};

static void gelu__known_values(void **state)
{
    (void)state;
    enum { N = sizeof gelu_known / sizeof *gelu_known };
    const fini_layers_f32 *table[5];
    int count = tables(table);
    for (int i = 0; i < N; i++) {
        double t = gelu_known[i][0], bias = 0.5, x = t - 0.5, y;
        double unit = 0x1p-52 * (2 + t * t); /* exp(-t^2/2) carries the rounding of t^2/2 */
        fini_layers_ref_f64.gelu(1, 1, &bias, &x, &y);
        assert_true(fabs(y - gelu_known[i][1]) <= unit * fabs(gelu_known[i][1]));
        assert_true(fabs(x - gelu_known[i][2]) <= unit * (1 + fabs(t)) * fabs(gelu_known[i][2]));
        unit *= 0x1p29;
        for (int k = 0; k < count; k++) {
            float b = 0.5f, slope = (float)(t - 0.5), v;
            table[k]->gelu(1, 1, &b, &slope, &v);
            assert_true(fabs((double)v - gelu_known[i][1]) <= unit * fabs(gelu_known[i][1]));
            assert_true(fabs((double)slope - gelu_known[i][2]) <=
                        unit * (1 + fabs(t)) * fabs(gelu_known[i][2]));
        }
    }
}

/* Every float between -20 and 20 in small steps, and all remainders of a register. */
static void activations__near_double(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < WIDTHS; i++)
            for (int relu = 0; relu < 2; relu++) {
                int64_t rows = 5, w = widths[i], n = rows * w;
                float *x = fill(0, n), *bias = fill(1, w), *dy = fill(2, n), *sum = fill(3, w);
                float *y = fence_array(&fences[4], n, 4);
                static double wy[MOST];
                (relu ? table[k]->relu : table[k]->gelu)(rows, w, bias, x, y);
                table[k]->act_back(rows, w, x, dy, sum);
                const fini_layers_f64 *f = &fini_layers_ref_f64;
                (relu ? f->relu : f->gelu)(rows, w, store[1], store[0], wy);
                f->act_back(rows, w, store[0], store[2], store[3]);
                near(n, y, wy, 1e-6);
                near(n, x, store[0], 1e-6);
                near(n, dy, store[2], 1e-6);
                near(w, sum, store[3], 2e-6);
            }
        enum { N = 4001 };
        static float x[N], y[N], zero[N];
        static double dx[N], dy[N], dzero[N];
        for (int i = 0; i < N; i++)
            dx[i] = (double)(x[i] = (float)(i - 2000) * 0.01f);
        table[k]->gelu(1, N, zero, x, y);
        fini_layers_ref_f64.gelu(1, N, dzero, dx, dy);
        near(N, y, dy, 3e-7);
        near(N, x, dx, 3e-7);
    }
}

static void sums__in_the_order_of_rows(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < WIDTHS; i++) {
            int64_t rows = 11, w = widths[i], n = rows * w;
            float *x = fill(0, n), *sum = fill(1, w), want[65], y[11 * 65];
            memcpy(want, sum, (size_t)w * sizeof *want);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < w; j++)
                    want[j] += x[r * w + j];
            table[k]->sum_rows(3, w, x, sum);
            table[k]->sum_rows(rows - 3, w, x + 3 * w, sum);
            assert_memory_equal(sum, want, (size_t)w * sizeof *want);
            table[k]->add_bias(rows, w, sum, x, y);
            table[k]->add_bias(rows, w, sum, x, x);
            assert_memory_equal(x, y, (size_t)n * sizeof *x);
            for (int64_t j = 0; j < n; j++)
                assert_true(y[j] == (float)store[0][j] + want[j % w]);
        }
}

static void layers__nan_and_infinity(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    enum { ROWS = 5, W = 19 };
    for (int k = 0; k < count; k++)
        for (int at = 0; at < W; at++) {
            const fini_layers_f32 *f = table[k];
            float x[ROWS * W], y[ROWS * W], one[W], zero[W] = {0}, mean[ROWS], inverse[ROWS];
            for (int i = 0; i < ROWS * W; i++)
                x[i] = (float)(i % W) * 0.1f;
            for (int j = 0; j < W; j++)
                one[j] = 1;
            x[2 * W + at] = NAN;
            f->norm(&(fini_norm_f32){ROWS, W, x, one, mean, inverse, 1e-5f}, zero, y);
            for (int i = 0; i < ROWS * W; i++)
                assert_true(!isnan(y[i]) == (i / W != 2));
            for (int relu = 0; relu < 2; relu++) {
                float t[ROWS * W];
                memcpy(t, x, sizeof t);
                t[at] = INFINITY;
                t[W + at] = -INFINITY;
                (relu ? f->relu : f->gelu)(ROWS, W, zero, t, y);
                for (int i = 0; i < ROWS * W; i++)
                    assert_true((isnan(y[i]) && isnan(t[i])) == (i == 2 * W + at));
                assert_true(isinf(y[at]) && t[at] == 1.0f);
                assert_true(fabsf(y[W + at]) < 1e-30f && fabsf(t[W + at]) < 1e-30f);
            }
        }
}

/* Three steps against the formula, written as Loshchilov and Hutter have it. */
static void adamw__follows_the_formula(void **state)
{
    (void)state;
    enum { N = 13 };
    double x[N], first[N] = {0}, second[N] = {0}, g[N];
    float fx[N], ff[N] = {0}, fs[N] = {0};
    fin_random_normals_f64(7, 2101, 0, 0, N, x);
    for (int i = 0; i < N; i++)
        x[i] = (double)(fx[i] = (float)x[i]);
    for (int step = 1; step <= 3; step++) {
        fin_random_normals_f64(7, 2101, (uint64_t)step, 0, N, g);
        fini_adamw a = {0.5, 0.01, 0.1, 0.9, 0.99, 1 - pow(0.9, step), 1 - pow(0.99, step)};
        fini_adamw_update(&a, N, g, fx, ff, fs);
        for (int i = 0; i < N; i++) {
            first[i] = 0.9 * first[i] + 0.1 * 0.5 * g[i];
            second[i] = 0.99 * second[i] + 0.01 * 0.25 * g[i] * g[i];
            double move = first[i] / a.c1 / (sqrt(second[i] / a.c2) + 1e-8);
            x[i] -= 0.01 * (move + 0.1 * x[i]);
            assert_true(fabs((double)fx[i] - x[i]) < 1e-6);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm__near_double),
        cmocka_unit_test(norm_back__is_the_derivative),
        cmocka_unit_test(gelu__known_values),
        cmocka_unit_test(activations__near_double),
        cmocka_unit_test(sums__in_the_order_of_rows),
        cmocka_unit_test(layers__nan_and_infinity),
        cmocka_unit_test(adamw__follows_the_formula),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
