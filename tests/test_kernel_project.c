/* Projections and gradients: every kernel gives the bits of the reference, for any d, any number of
 * rows and any alignment, and never touches a byte past the tokens. The reference itself is held
 * against long double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "test_kernel_fence.h"
#include "test_skip.h"

#include <stdlib.h>

enum { MOST_D = 1000, MOST_ROWS = 17, LANES = 16 };

static float kf[MOST_D + LANES], vf[MOST_D + LANES], tokens_f[MOST_D * MOST_ROWS];
static double kd[MOST_D + LANES], vd[MOST_D + LANES], tokens_d[MOST_D * MOST_ROWS];
static double p[MOST_ROWS], q[MOST_ROWS];
static fence fence_x, fence_k, fence_v;

static int64_t dimension(int i) /* 1..70, 400, 1000; -1 at the end */
{
    return i < 70 ? i + 1 : i == 70 ? 400 : i == 71 ? 1000 : -1;
}

static int setup(void **state)
{
    (void)state;
    fin_random_normals_f64(11, 2000, 0, 0, MOST_D, kd);
    fin_random_normals_f64(11, 2000, 1, 0, MOST_D, vd);
    fin_random_normals_f64(11, 2000, 2, 0, MOST_D * MOST_ROWS, tokens_d);
    fin_random_normals_f64(11, 2000, 3, 0, MOST_ROWS, p);
    fin_random_normals_f64(11, 2000, 4, 0, MOST_ROWS, q);
    for (int i = 0; i < MOST_D; i++) {
        kf[i] = (float)kd[i];
        vf[i] = (float)vd[i];
    }
    for (int i = 0; i < MOST_D * MOST_ROWS; i++)
        tokens_f[i] = (float)tokens_d[i];
    fence_x = fence_open();
    fence_k = fence_open();
    fence_v = fence_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fence_close(&fence_x);
    fence_close(&fence_k);
    fence_close(&fence_v);
    return 0;
}

/* k zero-padded to a multiple of `lanes`, as the kernels ask, at the end of a page. */
static void *padded(const fence *f, int64_t d, int64_t lanes, const void *from, size_t size)
{
    int64_t room = (d + lanes - 1) / lanes * lanes;
    unsigned char *at = fence_array(f, room, size);
    memcpy(at, from, (size_t)d * size);
    memset(at + (size_t)d * size, 0, (size_t)(room - d) * size);
    return at;
}

typedef struct result {
    double chi[MOST_ROWS], z[MOST_ROWS], norm2[MOST_ROWS];
} result;

static void project_all(const fini_kernel *kernel, int64_t rows, int64_t d, const float *Xf,
                        const double *Xd, result r[4])
{
    memset(r, 0, 4 * sizeof *r);
    const float *kk = padded(&fence_k, d, FINI_LANES_F32, kf, 4),
                *vv = padded(&fence_v, d, FINI_LANES_F32, vf, 4);
    kernel->project_f32(rows, d, Xf, kk, vv, r[0].chi, r[0].z);
    const double *kw = padded(&fence_k, d, FINI_LANES_F64, kd, 8),
                 *vw = padded(&fence_v, d, FINI_LANES_F64, vd, 8);
    kernel->project_f64(rows, d, Xd, kw, vw, r[1].chi, r[1].z);
    kernel->project_norm_f32(rows, d, Xf, kw, vw, r[2].chi, r[2].z, r[2].norm2);
    kernel->project_norm_f64(rows, d, Xd, kw, vw, r[3].chi, r[3].z, r[3].norm2);
}

static void project__same_bits_as_reference(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    static result want[4], got[4];
    for (int k = 0; k < count; k++)
        for (int i = 0; dimension(i) > 0; i++)
            for (int64_t rows = 1; rows <= MOST_ROWS; rows++) {
                int64_t d = dimension(i);
                project_all(&fini_kernel_ref, rows, d, tokens_f, tokens_d, want);
                /* at the end of a page: odd d gives every alignment to a float or double */
                float *Xf = fence_array(&fence_x, rows * d, sizeof *Xf);
                memcpy(Xf, tokens_f, (size_t)(rows * d) * sizeof *Xf);
                static double Xd[MOST_D * MOST_ROWS + 1];
                memcpy(Xd + 1, tokens_d, (size_t)(rows * d) * sizeof *Xd);
                project_all(kernel[k], rows, d, Xf, Xd + 1, got);
                assert_memory_equal(want, got, sizeof want);
                double *Xe = fence_array(&fence_x, rows * d, sizeof *Xe);
                memcpy(Xe, tokens_d, (size_t)(rows * d) * sizeof *Xe);
                static float Xg[MOST_D * MOST_ROWS + 1];
                memcpy(Xg + 1, tokens_f, (size_t)(rows * d) * sizeof *Xg);
                project_all(kernel[k], rows, d, Xg + 1, Xe, got);
                assert_memory_equal(want, got, sizeof want);
            }
}

/* A row's result is its own: the next row may be NaN, and the row may stand anywhere. */
static void project__rows_do_not_mix(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    static float Xf[MOST_D * MOST_ROWS];
    static double Xd[MOST_D * MOST_ROWS];
    static result all[4], one[4];
    for (int k = 0; k < count; k++)
        for (int i = 0; dimension(i) > 0; i++) {
            int64_t d = dimension(i), rows = 5;
            memcpy(Xf, tokens_f, (size_t)(rows * d) * sizeof *Xf);
            memcpy(Xd, tokens_d, (size_t)(rows * d) * sizeof *Xd);
            for (int64_t c = 0; c < d; c++) {
                Xf[d + c] = Xf[4 * d + c] = c & 1 ? NAN : INFINITY;
                Xd[d + c] = Xd[4 * d + c] = c & 1 ? NAN : INFINITY;
            }
            project_all(kernel[k], rows, d, Xf, Xd, all);
            for (int64_t r = 0; r < rows; r++) {
                if (r == 1 || r == 4)
                    continue;
                project_all(kernel[k], 1, d, Xf + r * d, Xd + r * d, one);
                for (int j = 0; j < 4; j++) {
                    assert_true(isfinite(all[j].chi[r]) && all[j].chi[r] == one[j].chi[0]);
                    assert_true(isfinite(all[j].z[r]) && all[j].z[r] == one[j].z[0]);
                    assert_true(isfinite(all[j].norm2[r]) && all[j].norm2[r] == one[j].norm2[0]);
                }
            }
        }
}

static void project__reference_matches_long_double(void **state)
{
    (void)state;
    if (!long_double_is_longer())
        SKIP("long double is not longer than double");
    static result got[4];
    double worst_f = 0, worst_d = 0; /* in units of epsilon times the sum of magnitudes */
    for (int i = 0; dimension(i) > 0; i++) {
        int64_t d = dimension(i), rows = 3;
        project_all(&fini_kernel_ref, rows, d, tokens_f, tokens_d, got);
        for (int64_t r = 0; r < rows; r++) {
            long double a[4] = {0}, n2[2] = {0}, size[4] = {0};
            for (int64_t c = 0; c < d; c++) {
                long double x = tokens_f[r * d + c], y = tokens_d[r * d + c];
                long double term[4] = {x * kf[c], y * kd[c], x * kd[c], y * kd[c]};
                for (int j = 0; j < 4; j++) {
                    a[j] += term[j];
                    size[j] += fabsl(term[j]);
                }
                n2[0] += x * x;
                n2[1] += y * y;
            }
            worst_f = fmax(worst_f, (double)(fabsl(got[0].chi[r] - a[0]) / (size[0] * 0x1p-24L)));
            for (int j = 1; j < 4; j++)
                worst_d =
                    fmax(worst_d, (double)(fabsl(got[j].chi[r] - a[j]) / (size[j] * 0x1p-53L)));
            for (int j = 0; j < 2; j++)
                worst_d = fmax(worst_d,
                               (double)(fabsl(got[2 + j].norm2[r] - n2[j]) / (n2[j] * 0x1p-53L)));
        }
    }
    print_message("worst error: float %.2g, double %.2g half-ulps of sum |x k|\n", worst_f,
                  worst_d);
    assert_true(worst_f < 8 && worst_d < 8);
}

static void gather__same_bits_as_reference(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    static double start[MOST_D], want[4][MOST_D], got[4][MOST_D];
    fin_random_normals_f64(11, 2000, 5, 0, MOST_D, start);
    for (int k = 0; k < count; k++)
        for (int i = 0; dimension(i) > 0; i++)
            for (int64_t rows = 0; rows <= FINI_GATHER; rows += rows < 3 ? 1 : rows == 3 ? 12 : 1) {
                int64_t d = dimension(i),
                        cuts[][2] = {{0, d}, {d / 3, d}, {0, d - d / 3}, {d / 2, d / 2}};
                for (int c = 0; c < 4; c++) {
                    int64_t from = cuts[c][0], to = cuts[c][1];
                    for (int j = 0; j < 4; j++) {
                        memcpy(want[j], start, sizeof start);
                        memcpy(got[j], start, sizeof start);
                    }
                    fini_kernel_ref.gather_f32(rows, d, from, to, tokens_f, p, q, want[0], want[1]);
                    fini_kernel_ref.gather_f64(rows, d, from, to, tokens_d, p, q, want[2], want[3]);
                    float *Xf = fence_array(&fence_x, rows * d, sizeof *Xf);
                    memcpy(Xf, tokens_f, (size_t)(rows * d) * sizeof *Xf);
                    double *gk = fence_array(&fence_k, d, sizeof *gk),
                           *gv = fence_array(&fence_v, d, sizeof *gv);
                    memcpy(gk, start, (size_t)d * sizeof *gk);
                    memcpy(gv, start, (size_t)d * sizeof *gv);
                    kernel[k]->gather_f32(rows, d, from, to, Xf, p, q, gk, gv);
                    memcpy(got[0], gk, (size_t)d * sizeof *gk);
                    memcpy(got[1], gv, (size_t)d * sizeof *gv);
                    double *Xd = fence_array(&fence_x, rows * d, sizeof *Xd);
                    memcpy(Xd, tokens_d, (size_t)(rows * d) * sizeof *Xd);
                    memcpy(gk, start, (size_t)d * sizeof *gk);
                    memcpy(gv, start, (size_t)d * sizeof *gv);
                    kernel[k]->gather_f64(rows, d, from, to, Xd, p, q, gk, gv);
                    memcpy(got[2], gk, (size_t)d * sizeof *gk);
                    memcpy(got[3], gv, (size_t)d * sizeof *gv);
                    assert_memory_equal(want, got, sizeof want); /* outside [from, to) too */
                }
            }
}

static void gather__reference_matches_long_double(void **state)
{
    (void)state;
    if (!long_double_is_longer())
        SKIP("long double is not longer than double");
    static double gk[MOST_D], gv[MOST_D], hk[MOST_D], hv[MOST_D];
    int64_t d = 333, rows = FINI_GATHER;
    double worst_f = 0, worst_d = 0;
    fini_kernel_ref.gather_f32(rows, d, 0, d, tokens_f, p, q, gk, gv);
    fini_kernel_ref.gather_f64(rows, d, 0, d, tokens_d, p, q, hk, hv);
    for (int64_t c = 0; c < d; c++) {
        long double a = 0, b = 0, size = 0, ad = 0, bd = 0;
        for (int64_t r = 0; r < rows; r++) {
            a += (long double)p[r] * tokens_f[r * d + c];
            b += (long double)q[r] * tokens_f[r * d + c];
            ad += (long double)p[r] * tokens_d[r * d + c];
            bd += (long double)q[r] * tokens_d[r * d + c];
            size += (fabsl(p[r]) + fabsl(q[r])) * fabsl(tokens_d[r * d + c]);
        }
        worst_f =
            fmax(worst_f, (double)((fabsl(gk[c] - a) + fabsl(gv[c] - b)) / (size * 0x1p-24L)));
        worst_d =
            fmax(worst_d, (double)((fabsl(hk[c] - ad) + fabsl(hv[c] - bd)) / (size * 0x1p-53L)));
    }
    print_message("worst error: float %.2g, double %.2g half-ulps of sum |p X|\n", worst_f,
                  worst_d);
    assert_true(worst_f < 8 && worst_d < 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(project__same_bits_as_reference),
        cmocka_unit_test(project__rows_do_not_mix),
        cmocka_unit_test(project__reference_matches_long_double),
        cmocka_unit_test(gather__same_bits_as_reference),
        cmocka_unit_test(gather__reference_matches_long_double),
    };
    return cmocka_run_group_tests_name("kernel_project", tests, setup, teardown);
}
