/* Attention of a head and linear maps: float tables against double, the double one against
 * differences, for all remainders of tiles and registers and with arrays that end where memory
 * does; a row knows nothing of its neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_kernel_layers_help.h"

typedef struct shape {
    int64_t m, L, d;
} shape;

/* Every remainder of a tile of queries, of keys in registers, of columns; several blocks of
 * queries; hidden queries (m > L); one key; no key. Few, because an emulator runs them too. */
static const shape shapes[] = {{1, 1, 1},   {1, 5, 3},    {2, 8, 8},   {3, 9, 16},   {4, 16, 17},
                               {5, 17, 5},  {6, 7, 12},   {7, 31, 16}, {12, 33, 24}, {13, 15, 40},
                               {24, 64, 7}, {25, 3, 16},  {31, 23, 9}, {49, 40, 33}, {60, 64, 16},
                               {9, 0, 16},  {11, 130, 2}, {17, 1, 64}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct head { /* of a table, with its arrays at fences */
    float *qkv, *out, *kept, *dout, *dqkv;
} head;

static double w_out[MOST], w_kept[MOST], w_dqkv[MOST], w_scratch[MOST];

/* q, k and v side by side in x, with a gap behind them. */
static fini_head_f32 head_f32(shape s, float scale, const float *x, float *out, float *kept,
                              float *scratch)
{
    return (fini_head_f32){s.m, s.L,     s.d,         3 * s.d + 1, s.d + 2, scale,
                           x,   x + s.d, x + 2 * s.d, out,         kept,    scratch};
}

static fini_head_f64 head_f64(shape s, double scale)
{
    const double *x = store[0];
    return (fini_head_f64){s.m, s.L,     s.d,         3 * s.d + 1, s.d + 2, scale,
                           x,   x + s.d, x + 2 * s.d, w_out,       w_kept,  w_scratch};
}

static head head_run(const fini_layers_f32 *f, shape s, double scale)
{
    int64_t rows = s.m > s.L ? s.m : s.L, ld = 3 * s.d + 1, ldo = s.d + 2;
    head h = {fill(0, rows * ld - 1), fence_array(&fences[1], s.m * ldo - 2, 4),
              fence_array(&fences[2], 2 * s.m, 4), fill(3, s.m * ldo - 2),
              fence_array(&fences[4], rows * ld - 1, 4)};
    float *scratch = fence_array(&fences[5], fini_attend_scratch(s.L, s.d), 4);
    memset(h.dqkv, 0, (size_t)(rows * ld - 1) * sizeof *h.dqkv);
    const fini_head_f32 a = head_f32(s, (float)scale, h.qkv, h.out, h.kept, scratch);
    f->attend(&a);
    f->attend_back(&a, h.dout, h.dqkv, h.dqkv + s.d, h.dqkv + 2 * s.d);
    return h;
}

/* The same in double, from store[0] and store[3]. */
static void head_double(shape s, double scale)
{
    const fini_head_f64 h = head_f64(s, scale);
    const fini_layers_f64 *f = &fini_layers_ref_f64;
    memset(w_dqkv, 0, sizeof w_dqkv);
    f->attend(&h);
    f->attend_back(&h, store[3], w_dqkv, w_dqkv + s.d, w_dqkv + 2 * s.d);
}

static void attend__near_double(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < SHAPES; i++) {
            shape s = shapes[i];
            int64_t rows = s.m > s.L ? s.m : s.L, ld = 3 * s.d + 1, ldo = s.d + 2;
            float scale = (float)(1 / sqrt((double)s.d));
            head h = head_run(table[k], s, (double)scale);
            head_double(s, (double)scale);
            for (int64_t r = 0; r < s.m; r++)
                near(s.d, h.out + r * ldo, w_out + r * ldo, 3e-6);
            near(2 * s.m, h.kept, w_kept, 3e-6);
            near(rows * ld - 1, h.dqkv, w_dqkv, 1e-5);
            static float p[MOST];
            static double wp[MOST];
            const fini_head_f32 a = head_f32(s, scale, h.qkv, NULL, h.kept, NULL);
            const fini_head_f64 wide = head_f64(s, (double)scale);
            table[k]->weights(&a, p);
            fini_layers_ref_f64.weights(&wide, wp);
            near(s.m * s.L, p, wp, 3e-6);
        }
}

/* The derivative of sum(out dout) in q, k and v, by central differences. */
static void attend_back__is_the_derivative(void **state)
{
    (void)state;
    const shape s = {5, 4, 3};
    const int64_t ld = 3 * s.d + 1, ldo = s.d + 2;
    const fini_head_f64 h = head_f64(s, 0.7);
    fill(0, 5 * ld), fill(3, 5 * ldo);
    head_double(s, 0.7);
    for (int64_t j = 0; j < 5 * ld; j++) {
        double at = store[0][j], side[2];
        for (int t = 0; t < 2; t++) {
            store[0][j] = at + (t ? 1e-5 : -1e-5);
            fini_layers_ref_f64.attend(&h);
            side[t] = 0;
            for (int64_t r = 0; r < s.m; r++)
                for (int64_t c = 0; c < s.d; c++)
                    side[t] += w_out[r * ldo + c] * store[3][r * ldo + c];
        }
        store[0][j] = at;
        assert_true(fabs(w_dqkv[j] - (side[1] - side[0]) / 2e-5) < 1e-8);
    }
}

/* A row's answer has the same bits whoever is asked beside it. */
static void attend__rows_do_not_mix(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    const shape s = {31, 21, 19};
    const int64_t ld = 3 * s.d + 1, ldo = s.d + 2;
    for (int k = 0; k < count; k++) {
        head h = head_run(table[k], s, 0.3);
        static float scratch[MOST];
        assert_true(fini_attend_scratch(s.L, s.d) <= MOST);
        for (int64_t r = 0; r < s.m; r++) {
            float out[19], kept[2];
            fini_head_f32 a = head_f32(s, 0.3f, h.qkv, out, kept, scratch);
            a.m = 1;
            a.q += r * ld;
            table[k]->attend(&a);
            assert_memory_equal(out, h.out + r * ldo, sizeof out);
            assert_memory_equal(kept, h.kept + 2 * r, sizeof kept);
        }
    }
}

/* Scores in the thousands, of which one wins; and a long sequence, whose weights add to one. */
static void attend__large_scores_and_long_sequences(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    enum { L = 2501, D = 2 };
    for (int k = 0; k < count; k++) {
        static float qkv[L][3 * D], out[D], kept[2], dqkv[L][3 * D], scratch[1 << 18];
        assert_true(fini_attend_scratch(L, D) <= 1 << 18);
        for (int large = 0; large < 2; large++) {
            for (int l = 0; l < L; l++) {
                qkv[l][0] = large ? 3000.0f : 0.5f;
                qkv[l][1] = 0;
                qkv[l][2] = large && l != 700 ? (float)(-2 - l % 100) : large ? -1.0f : 0.0f;
                qkv[l][3] = 0;
                qkv[l][4] = 1;
                qkv[l][5] = l == 700 ? 5.0f : 0.0f;
            }
            float dout[D] = {1, 1};
            const fini_head_f32 a = {1,          L,          D,          3 * D, D,    1.0f,
                                     &qkv[0][0], &qkv[0][2], &qkv[0][4], out,   kept, scratch};
            table[k]->attend(&a);
            table[k]->attend_back(&a, dout, &dqkv[0][0], &dqkv[0][2], &dqkv[0][4]);
            assert_true(fabsf(out[0] - 1) < 1e-5f);
            double want = large ? 1 : 1.0 / L, sum = 0;
            assert_true(fabs((double)out[1] - 5 * want) < 1e-5 * want);
            for (int l = 0; l < L; l++)
                sum += (double)dqkv[l][4];
            assert_true(fabs(sum - 1) < 1e-5);
            assert_true(fabs((double)dqkv[700][4] - want) < 1e-5 * want);
        }
    }
}

static void attend__nan_stays(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    enum { D = 5 };
    for (int k = 0; k < count; k++)
        for (int at = 0; at < 11; at++) { /* a query; then a key, which everybody sees */
            float q[11 * D], out[11 * D], kept[22];
            static float scratch[MOST];
            for (int i = 0; i < 11 * D; i++)
                q[i] = (float)(i % 7) * 0.1f;
            float other[11 * D];
            memcpy(other, q, sizeof q);
            q[at * D] = NAN;
            fini_head_f32 a = {11, 11, D, D, D, 1.0f, q, other, other, out, kept, scratch};
            table[k]->attend(&a);
            for (int i = 0; i < 11 * D; i++)
                assert_true(!isnan(out[i]) == (i / D != at));
            a.q = other;
            a.k = q;
            table[k]->attend(&a);
            for (int i = 0; i < 11 * D; i++)
                assert_true(isnan(out[i]));
        }
}

/* ---- linear maps ----------------------------------------------------------------------------- */

/* Against sums in double; the rows of a map and the terms of dW leave all remainders. */
static void map__near_double(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    static const int sides[][2] = {{16, 16}, {16, 48}, {64, 32}, {176, 16}};
    static const int rows_of[] = {1, 2, 3, 5, 6, 7, 13, 66, 131};
    assert_true(!table[0]->map && !table[0]->map_weight);
    for (int k = 1; k < count; k++)
        for (int c = 0; c < 4 * 9; c++) {
            int64_t in = sides[c / 9][0], out = sides[c / 9][1], rows = rows_of[c % 9];
            float *x = fill(0, rows * in), *W = fill(1, in * out), *bias = fill(2, out);
            float *from = fill(3, rows * out), *y = fence_array(&fences[4], rows * out, 4);
            float *forward = fence_array(&fences[5], in * out, 4);
            float *back = fence_array(&fences[6], in * out, 4), *dx = fill(7, rows * in);
            static double want[MOST];
            fini_map_pack(in, out, W, forward, back);
            for (int how = 0; how < 3; how++) { /* nothing, bias, both */
                for (int64_t i = 0; i < rows * out; i++) {
                    double sum = how > 0 ? store[2][i % out] : 0;
                    for (int64_t j = 0; j < in; j++)
                        sum += store[0][i / out * in + j] * store[1][i % out * in + j];
                    want[i] = sum + (how > 1 ? store[3][i] : 0);
                }
                table[k]->map(rows, in, out, x, forward, how > 0 ? bias : NULL,
                              how > 1 ? from : NULL, y);
                near(rows * out, y, want, 2e-5);
            }
            table[k]->map(rows, out, in, from, back, NULL, NULL, dx);
            for (int64_t i = 0; i < rows * in; i++) {
                want[i] = 0;
                for (int64_t j = 0; j < out; j++)
                    want[i] += store[3][i / in * out + j] * store[1][j * in + i % in];
            }
            near(rows * in, dx, want, 2e-5);
            table[k]->map_weight(rows, in, out, x, from, W);
            for (int64_t i = 0; i < in * out; i++) {
                want[i] = store[1][i];
                for (int64_t r = 0; r < rows; r++)
                    want[i] += store[3][r * out + i / in] * store[0][r * in + i % in];
            }
            near(in * out, W, want, 2e-5);
        }
}

/* The same bits for a row alone, and where the result is written over what is added. */
static void map__rows_do_not_mix(void **state)
{
    (void)state;
    const fini_layers_f32 *table[5];
    int count = tables(table);
    enum { ROWS = 29, IN = 32, OUT = 48 };
    for (int k = 1; k < count; k++) {
        float *x = fill(0, ROWS * IN), *W = fill(1, IN * OUT), *bias = fill(2, OUT);
        float *from = fill(3, ROWS * OUT), *y = fence_array(&fences[4], ROWS * OUT, 4);
        static float panels[IN * OUT], one[OUT];
        fini_map_pack(IN, OUT, W, panels, NULL);
        table[k]->map(ROWS, IN, OUT, x, panels, bias, from, y);
        for (int r = 0; r < ROWS; r++) {
            table[k]->map(1, IN, OUT, x + r * IN, panels, bias, from + r * OUT, one);
            assert_memory_equal(one, y + r * OUT, sizeof one);
        }
        table[k]->map(ROWS, IN, OUT, x, panels, bias, from, from);
        assert_memory_equal(from, y, ROWS * OUT * sizeof *y);
    }
}

int main(void)
{
    print_message("kernels: %s\n", fin_kernel_available());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attend__near_double),
        cmocka_unit_test(attend_back__is_the_derivative),
        cmocka_unit_test(attend__rows_do_not_mix),
        cmocka_unit_test(attend__large_scores_and_long_sequences),
        cmocka_unit_test(attend__nan_stays),
        cmocka_unit_test(map__near_double),
        cmocka_unit_test(map__rows_do_not_mix),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
