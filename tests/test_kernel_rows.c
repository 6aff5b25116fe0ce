/* Rows of tokens with a few directions: every table gives the bits of the reference, whatever d,
 * the rows and the directions, and touches nothing past its arrays; the reference is held against
 * long double; a row knows nothing of its neighbours, a sum nothing of how the rows were cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "kernel/rows.h"
#include "test_kernel_fence.h"

enum { MOST_D = 91, MOST_ROWS = 5, MOST_Q = 5 };

static double tokens[MOST_D * MOST_ROWS], center[MOST_D], bound[MOST_D], W[MOST_D * MOST_Q];
static double D[MOST_ROWS * MOST_Q], G[MOST_D * MOST_Q];
static float small[MOST_D * MOST_ROWS];
static fence fence_x, fence_c, fence_b, fence_w, fence_u;

/* All remainders of a step of 8, after nothing, one step, and blocks of two and four registers of 4
 * and 8 numbers; -1 at the end. Few, because an emulator runs them too. */
static int64_t dimension(int i)
{
    static const int more[] = {23, 24, 25, 31, 32, 33, 40, 41, 63, 64, 72, 91};
    return i < 17 ? i + 1 : i < 17 + 12 ? more[i - 17] : -1;
}

static int setup(void **state)
{
    (void)state;
    fence *all[] = {&fence_x, &fence_c, &fence_b, &fence_w, &fence_u};
    for (int i = 0; i < 5; i++)
        *all[i] = fence_open();
    fin_random_normals_f64(5, 2000, 0, 0, MOST_D * MOST_ROWS, tokens);
    fin_random_normals_f64(5, 2000, 1, 0, MOST_D, center);
    fin_random_normals_f64(5, 2000, 2, 0, MOST_D, bound);
    fin_random_normals_f64(5, 2000, 3, 0, MOST_D * MOST_Q, W);
    fin_random_normals_f64(5, 2000, 4, 0, MOST_ROWS * MOST_Q, D);
    fin_random_normals_f64(5, 2000, 5, 0, MOST_D * MOST_Q, G);
    for (int j = 0; j < MOST_D; j++)
        bound[j] = j % 7 == 0 ? 0 : j % 7 == 1 ? INFINITY : fabs(bound[j]);
    for (int i = 0; i < MOST_D * MOST_ROWS; i++)
        small[i] = (float)tokens[i];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fence *all[] = {&fence_x, &fence_c, &fence_b, &fence_w, &fence_u};
    for (int i = 0; i < 5; i++)
        fence_close(all[i]);
    return 0;
}

static void *fenced(const fence *f, int64_t count, size_t size, const void *from)
{
    return memcpy(fence_array(f, count, size), from, (size_t)count * size);
}

typedef struct result {
    double U[2][MOST_ROWS * MOST_Q], G[2][MOST_D * MOST_Q]; /* float, double */
} result;

/* Both types, with all arrays at the end of a page; cut: through centre and bound. */
static void both(const fini_rows *k, int64_t rows, int64_t d, int64_t q, int cut, result *r)
{
    memset(r, 0, sizeof *r);
    const double *c = cut ? fenced(&fence_c, d, 8, center) : NULL;
    const double *b = cut ? fenced(&fence_b, d, 8, bound) : NULL;
    const double *w = fenced(&fence_w, q * d, 8, W);
    for (int type = 0; type < 2; type++) {
        double *u = fence_array(&fence_u, rows * q, 8);
        void *X =
            type ? fenced(&fence_x, rows * d, 8, tokens) : fenced(&fence_x, rows * d, 4, small);
        type ? k->project_f64(rows, d, X, c, b, q, w, u)
             : k->project_f32(rows, d, X, c, b, q, w, u);
        memcpy(r->U[type], u, (size_t)(rows * q) * sizeof *u);
        memcpy(u, D, (size_t)(rows * q) * sizeof *u);
        double *g = fenced(&fence_w, q * d, 8, G);
        type ? k->gather_f64(rows, d, X, c, b, q, u, g) : k->gather_f32(rows, d, X, c, b, q, u, g);
        memcpy(r->G[type], g, (size_t)(q * d) * sizeof *g);
        w = fenced(&fence_w, q * d, 8, W);
    }
}

static int tables(const fini_rows *table[5])
{
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    table[0] = &fini_rows_ref;
    for (int i = 0; i < count; i++) {
        fini_kernel_force(kernel[i]->name);
        table[i + 1] = fini_rows_get();
        assert_true(table[i + 1] != &fini_rows_ref);
    }
    fini_kernel_force("ref");
    assert_true(fini_rows_get() == &fini_rows_ref);
    fini_kernel_force(NULL);
    return count + 1;
}

static void rows__same_bits_as_reference(void **state)
{
    (void)state;
    const fini_rows *table[5];
    int count = tables(table);
    static result want, got;
    for (int i = 0; dimension(i) > 0; i++)
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += rows == 3 ? 2 : 1)
            for (int64_t q = 1; q <= MOST_Q; q += q == 3 ? 2 : 1)
                for (int cut = 0; cut < 2; cut++) {
                    both(&fini_rows_ref, rows, dimension(i), q, cut, &want);
                    for (int k = 1; k < count; k++) {
                        both(table[k], rows, dimension(i), q, cut, &got);
                        assert_memory_equal(&want, &got, sizeof want);
                    }
                }
}

/* |error| <= (d/8 + 4) units of rounding of sum |W t|, and rows + 1 of sum |D t|. */
static void rows__near_long_double(void **state)
{
    (void)state;
    enum { ROWS = 5, Q = 3, N = 91 };
    static result got;
    for (int cut = 0; cut < 2; cut++) {
        both(fini_rows_get(), ROWS, N, Q, cut, &got);
        for (int type = 0; type < 2; type++)
            for (int c = 0; c < Q; c++) {
                long double gather[N], size[N];
                for (int j = 0; j < N; j++)
                    gather[j] = G[c * N + j], size[j] = fabsl(gather[j]);
                for (int r = 0; r < ROWS; r++) {
                    long double sum = 0, most = 0;
                    for (int j = 0; j < N; j++) {
                        double x = type ? tokens[r * N + j] : (double)small[r * N + j];
                        double t = cut ? x - center[j] : x;
                        t = cut ? fmax(-bound[j], fmin(bound[j], t)) : t;
                        sum += (long double)t * W[c * N + j];
                        most += fabsl((long double)t * W[c * N + j]);
                        gather[j] += (long double)t * D[r * Q + c];
                        size[j] += fabsl((long double)t * D[r * Q + c]);
                    }
                    assert_true(fabsl(sum - got.U[type][r * Q + c]) <=
                                (N / 8 + 4) * 0x1p-53L * most);
                }
                for (int j = 0; j < N; j++)
                    assert_true(fabsl(gather[j] - got.G[type][c * N + j]) <=
                                (ROWS + 1) * 0x1p-53L * size[j]);
            }
    }
}

/* A score is the same whichever rows and directions it is asked for with; a sum goes on where it
 * stopped. */
static void rows__do_not_mix(void **state)
{
    (void)state;
    const fini_rows *table[5];
    int count = tables(table);
    enum { N = 37 };
    static result all;
    for (int k = 0; k < count; k++) {
        both(table[k], MOST_ROWS, N, MOST_Q, 1, &all);
        for (int r = 0; r < MOST_ROWS; r++)
            for (int c = 0; c < MOST_Q; c++) {
                double one;
                table[k]->project_f64(1, N, tokens + r * N, center, bound, 1, W + c * N, &one);
                assert_true(one == all.U[1][r * MOST_Q + c]);
            }
        static double g[N * MOST_Q];
        memcpy(g, G, sizeof g);
        table[k]->gather_f64(2, N, tokens, center, bound, MOST_Q, D, g);
        table[k]->gather_f64(MOST_ROWS - 2, N, tokens + 2 * N, center, bound, MOST_Q,
                             D + 2 * MOST_Q, g);
        assert_memory_equal(g, all.G[1], sizeof g);
    }
}

/* Infinity is cut off like anything large; what is not a number stays that, in its own row. */
static void rows__nan_and_infinity(void **state)
{
    (void)state;
    const fini_rows *table[5];
    int count = tables(table);
    enum { N = 19 };
    for (int k = 0; k < count; k++)
        for (int at = 0; at < N; at++) {
            double X[3 * N], c[N], b[N], U[6], g[2 * N] = {0}, ones[6] = {1, 1, 1, 1, 1, 1};
            for (int j = 0; j < N; j++)
                c[j] = 1, b[j] = 2, X[j] = X[N + j] = X[2 * N + j] = 1.5;
            X[at] = INFINITY;
            X[N + at] = NAN;
            X[2 * N + at] = -INFINITY;
            table[k]->project_f64(3, N, X, c, b, 2, W, U);
            double rest = 0;
            for (int j = 0; j < N; j++)
                rest += j == at ? 0 : 0.5 * W[j];
            assert_true(fabs(U[0] - rest - 2 * W[at]) < 1e-13);
            assert_true(isnan(U[2]) && isnan(U[3]));
            assert_true(fabs(U[4] - rest + 2 * W[at]) < 1e-13);
            table[k]->gather_f64(3, N, X, c, b, 2, ones, g);
            for (int j = 0; j < N; j++)
                assert_true(j == at ? isnan(g[j]) : g[j] == 1.5);
        }
}

/* ---- in float, and sums of columns ------------------------------------------------------------------ */

enum { LONG_D = 2 * FINI_ROWS_COLUMNS + 37, LONG_ROWS = 2 * FINI_ROWS_TOGETHER + 5, LONG_Q = 3 };

static float long_x[LONG_D * 12], long_w[LONG_Q * (LONG_D + 16)], low[LONG_D + 16],
    high[LONG_D + 16];
static double start[LONG_Q] = {0.25, -1, 3};

/* Directions are filled up with zeros, as bounds are. */
static fini_rows_view float_view(int64_t d, int64_t q)
{
    int64_t wide = FINI_ROWS_WIDE(d);
    assert_true(d * q <= LONG_D * 12);
    fin_random_normals_f32(5, 2001, 0, 0, LONG_D * 12, long_x);
    for (int64_t j = 0; j < wide; j++) {
        low[j] = j >= d ? 0 : j % 7 == 1 ? -INFINITY : -1 - (float)(j % 5) / 4;
        high[j] = j >= d ? 0 : j % 7 == 1 ? INFINITY : (float)(j % 3) / 2;
        for (int64_t c = 0; c < q; c++)
            long_w[c * wide + j] = j >= d ? 0 : long_x[(7 * j + 11 * c) % (LONG_D * 12)];
    }
    return (fini_rows_view){d, low, high};
}

typedef struct float_result {
    double U[LONG_ROWS * LONG_Q], G[LONG_Q * (LONG_D + 16)], total[LONG_Q];
} float_result;

static void in_float(const fini_rows *k, int64_t rows, int64_t d, int64_t q, float_result *r)
{
    const fini_rows_view view = float_view(d, q);
    static double slopes[LONG_ROWS * LONG_Q];
    fin_random_normals_f64(5, 2002, 0, 0, rows * q, slopes);
    memset(r, 0, sizeof *r);
    const float *X = fenced(&fence_x, rows * d, 4, long_x);
    k->project_float(rows, &view, X, q, long_w, start, r->U);
    k->gather_float(rows, &view, X, q, slopes, r->G, r->total);
}

static void rows_float__same_bits_as_reference(void **state)
{
    (void)state;
    const fini_rows *table[5];
    int count = tables(table);
    static float_result want, got;
    const struct {
        int64_t rows, d;
    } shape[] = {{1, 1},  {5, 7},  {9, 16}, {8, 17},   {13, 40},        {LONG_ROWS, 31},
                 {4, 64}, {3, 79}, {9, 91}, {11, 100}, {LONG_ROWS, 33}, {5, LONG_D}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int64_t q = 1; q <= LONG_Q; q++) {
            in_float(&fini_rows_ref, shape[i].rows, shape[i].d, q, &want);
            for (int k = 1; k < count; k++) {
                in_float(table[k], shape[i].rows, shape[i].d, q, &got);
                assert_memory_equal(&want, &got, sizeof want);
            }
        }
}

/* Sums in float of at most COLUMNS/LANES products a lane, or of TOGETHER rows: |error| at most so many units
 * of rounding of the sum of sizes. */
static void rows_float__near_long_double(void **state)
{
    (void)state;
    enum { ROWS = 5, Q = 2, N = LONG_D };
    static float_result got;
    in_float(fini_rows_get(), ROWS, N, Q, &got);
    double slopes[ROWS * Q];
    fin_random_normals_f64(5, 2002, 0, 0, ROWS * Q, slopes);
    for (int c = 0; c < Q; c++) {
        static long double sum[N], size[N];
        memset(sum, 0, sizeof sum);
        memset(size, 0, sizeof size);
        for (int r = 0; r < ROWS; r++) {
            long double u = start[c], most = 0;
            for (int j = 0; j < N; j++) {
                float t = fmaxf(low[j], fminf(high[j], long_x[r * N + j]));
                long double one = (long double)t * long_w[c * FINI_ROWS_WIDE(N) + j];
                u += one;
                most += fabsl(one);
                sum[j] += (long double)t * slopes[r * Q + c];
                size[j] += fabsl((long double)t * slopes[r * Q + c]);
            }
            assert_true(fabsl(u - got.U[r * Q + c]) <=
                        (FINI_ROWS_COLUMNS / FINI_ROWS_LANES + 4) * 0x1p-24L * most);
        }
        for (int j = 0; j < N; j++)
            assert_true(fabsl(sum[j] - got.G[c * FINI_ROWS_WIDE(N) + j]) <=
                        (ROWS + 1) * 0x1p-24L * size[j]);
    }
}

/* Each kind against its formula, in the order of the rows, and the same bits in every table. */
static void rows_sums__are_their_formulas(void **state)
{
    (void)state;
    const fini_rows *table[5];
    int count = tables(table);
    for (int kind = FINI_SIZES; kind <= FINI_FARTHEST; kind++)
        for (int i = 0; dimension(i) > 0; i++)
            for (int k = 0; k < count; k++) {
                int64_t d = dimension(i), n = d > 2 ? d - 2 : d;
                const fini_rows_sums of = {kind, n, d, center, W, bound};
                for (int type = 0; type < 2; type++) {
                    double *first = fence_array(&fence_u, n, 8), second[MOST_D], x;
                    memcpy(first, G, (size_t)n * 8);
                    memcpy(second, W, sizeof second);
                    type ? table[k]->sums_f64(MOST_ROWS, &of, tokens, first, second)
                         : table[k]->sums_f32(MOST_ROWS, &of, small, first, second);
                    for (int64_t j = 0; j < n; j++) {
                        double a = G[j], b = W[j];
                        for (int64_t r = 0; r < MOST_ROWS; r++) {
                            x = type ? tokens[r * d + j] : (double)small[r * d + j];
                            double t = x - center[j];
                            double cut = t > bound[j] ? bound[j] : t < -bound[j] ? -bound[j] : t;
                            a = kind == FINI_SIZES         ? a + x
                                : kind == FINI_ENDS        ? fmin(a, x)
                                : kind == FINI_SQUARES     ? a + t * W[j]
                                : kind == FINI_CUT_SQUARES ? a + (W[j] * cut) * (W[j] * cut)
                                                           : fmax(a, fabs(cut));
                            b = kind == FINI_SIZES     ? b + fabs(x)
                                : kind == FINI_ENDS    ? fmax(b, x)
                                : kind == FINI_SQUARES ? b + (t * W[j]) * (t * W[j])
                                                       : b;
                        }
                        assert_true(a == first[j] && b == second[j]);
                    }
                }
            }
}

/* As a tree is added level by level; columns outside stay. */
static void rows_add_tree__is_the_tree(void **state)
{
    (void)state;
    enum { N = 75, MOST = 64, FROM = 2, TO = N - 3 };
    const fini_rows *table[5];
    int count = tables(table);
    const int sizes[] = {1, 2, 3, 5, 8, 37, MOST};
    static double want[MOST * N], got[MOST * N];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < count; k++) {
            int blocks = sizes[i];
            fin_random_normals_f64(5, 2003, 0, 0, MOST * N, want);
            memcpy(got, want, sizeof got);
            for (int h = 1; h < blocks; h *= 2)
                for (int a = 0; a + h < blocks; a += 2 * h)
                    for (int j = FROM; j < TO; j++)
                        want[a * N + j] += want[(a + h) * N + j];
            table[k]->add_tree(blocks, N, got, FROM, TO);
            assert_memory_equal(want, got, sizeof got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows__same_bits_as_reference),
        cmocka_unit_test(rows__near_long_double),
        cmocka_unit_test(rows__do_not_mix),
        cmocka_unit_test(rows__nan_and_infinity),
        cmocka_unit_test(rows_float__same_bits_as_reference),
        cmocka_unit_test(rows_float__near_long_double),
        cmocka_unit_test(rows_sums__are_their_formulas),
        cmocka_unit_test(rows_add_tree__is_the_tree),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
