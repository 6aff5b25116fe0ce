/* Queries and keys, and small positive definite matrices: every kernel against the reference, the
 * reference against the definition in long double, nothing read or written beside the arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "test_kernel_fence.h"

#include <float.h>
#include <stdlib.h>

enum { KINDS = 6 };
static const char *const kinds[KINDS] = {"linear", "polynomial", "exponential",
                                         "rbf",    "matern32",   "matern52"};

static fini_score score_of(int kind)
{
    return (fini_score){kind, 3, 1.5};
}

static void normals(uint64_t which, int64_t n, double size, double *x)
{
    fin_random_normals_f64(5, 2100, which, 0, n, x);
    for (int64_t i = 0; i < n; i++)
        x[i] *= size;
}

static int all_kernels(const fini_kernel *kernel[5])
{
    kernel[0] = &fini_kernel_ref;
    return 1 + kernels_other(kernel + 1);
}

/* k(q, k) as kernel.h says, in long double. */
static long double definition(const fini_score *s, int64_t d, const double *q, const double *k)
{
    long double dot = 0, square = 0;
    for (int64_t i = 0; i < d; i++) {
        dot += (long double)q[i] * k[i];
        square += ((long double)q[i] - k[i]) * ((long double)q[i] - k[i]);
    }
    long double t3 = sqrtl(3 * square), t5 = sqrtl(5 * square);
    switch (s->kind) {
    case FINI_SCORE_LINEAR:
        return dot;
    case FINI_SCORE_POLYNOMIAL:
        return powl(s->offset + dot, (long double)s->degree);
    case FINI_SCORE_EXPONENTIAL:
        return expl(dot);
    case FINI_SCORE_RBF:
        return expl(-square / 2);
    case FINI_SCORE_MATERN32:
        return (1 + t3) * expl(-t3);
    default:
        return (1 + t5 + t5 * t5 / 3) * expl(-t5);
    }
}

/* ---- attend --------------------------------------------------------------------------------- */

enum { MOST_Q = 26, MOST_K = 2 * FINI_TILE + 3, MOST_D = 21 };

typedef struct tokens {
    int64_t m, L, dk, dv;
    double q[MOST_Q * MOST_D], k[MOST_K * MOST_D], v[MOST_K * MOST_D];
    float qf[MOST_Q * MOST_D], kf[MOST_K * MOST_D], vf[MOST_K * MOST_D];
} tokens;

static void make_tokens(tokens *t, int64_t m, int64_t L, int64_t dk, int64_t dv)
{
    *t = (tokens){.m = m, .L = L, .dk = dk, .dv = dv};
    normals(0, m * dk, 0.6, t->q);
    normals(1, L * dk, 0.6, t->k);
    normals(2, L * dv, 1, t->v);
    for (int64_t i = 0; i < MOST_Q * MOST_D; i++)
        t->q[i] = (double)(t->qf[i] = (float)t->q[i]);
    for (int64_t i = 0; i < MOST_K * MOST_D; i++) {
        t->k[i] = (double)(t->kf[i] = (float)t->k[i]);
        t->v[i] = (double)(t->vf[i] = (float)t->v[i]);
    }
}

/* out (m, dv) in double, by tiles, every array at the end of its page. */
static void attend(const fini_kernel *kernel, const tokens *t, int kind, bool in_double,
                   double *out, fence f[6])
{
    size_t size = in_double ? 8 : 4;
    char *q = fence_array(&f[0], t->m * t->dk, size), *o = fence_array(&f[1], t->m * t->dv, size);
    double *top = fence_array(&f[2], t->m, 8), *sum = fence_array(&f[3], t->m, 8);
    int64_t panel = in_double ? FINI_PANEL_F64 : FINI_PANEL_F32;
    memcpy(q, in_double ? (const void *)t->q : t->qf, (size_t)(t->m * t->dk) * size);
    memset(o, 0, (size_t)(t->m * t->dv) * size);
    for (int64_t i = 0; i < t->m; i++) {
        top[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t first = 0; first < t->L; first += FINI_TILE) {
        int64_t keys = t->L - first < FINI_TILE ? t->L - first : FINI_TILE;
        void *panels = fence_array(&f[4], (keys + panel - 1) / panel * panel * t->dk, size);
        void *v = fence_array(&f[5], keys * t->dv, size);
        if (in_double)
            kernel->pack_f64(t->dk, keys, t->k + first * t->dk, NULL, 1, panels);
        else
            kernel->pack_f32(t->dk, keys, t->kf + first * t->dk, NULL, 1, panels);
        memcpy(v, in_double ? (const void *)(t->v + first * t->dv) : t->vf + first * t->dv,
               (size_t)(keys * t->dv) * size);
        fini_attend_tile a = {score_of(kind), t->m, keys, t->dk, t->dv, q, panels, v, o, top, sum};
        if (in_double)
            kernel->attend_f64(&a);
        else
            kernel->attend_f32(&a);
    }
    for (int64_t i = 0; i < t->m * t->dv; i++)
        out[i] = (in_double ? ((double *)(void *)o)[i] : (double)((float *)(void *)o)[i]) /
                 sum[i / t->dv];
}

/* Sums of L products: their rounding is a few units of the last place of sum |w v| / |sum w|. */
static void attend__matches_definition(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 1, 1},      {5, 7, 3, 2},    {6, 16, 8, 16},
                                       {7, 17, 5, 17},    {12, 128, 4, 8}, {13, 129, 2, 9},
                                       {26, 259, 21, 21}, {2, 8, 16, 5}};
    static tokens t;
    static double got[MOST_Q * MOST_D];
    static long double weight[MOST_Q * MOST_K];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    fence f[6];
    for (int i = 0; i < 6; i++)
        f[i] = fence_open();
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        make_tokens(&t, sizes[c][0], sizes[c][1], sizes[c][2], sizes[c][3]);
        for (int kind = FINI_SCORE_EXPONENTIAL; kind < KINDS; kind++) {
            fini_score s = score_of(kind);
            for (int64_t i = 0; i < t.m * t.L; i++)
                weight[i] = definition(&s, t.dk, t.q + i / t.L * t.dk, t.k + i % t.L * t.dk);
            for (int k = 0; k < 2 * count; k++) {
                double limit = k % 2 ? 40 * DBL_EPSILON : 40 * FLT_EPSILON;
                attend(kernel[k / 2], &t, kind, k % 2, got, f);
                for (int64_t i = 0; i < t.m * t.dv; i++) {
                    long double sum = 0, size = 0, total = 0;
                    for (int64_t l = 0; l < t.L; l++) {
                        long double w = weight[i / t.dv * t.L + l];
                        long double v = t.v[l * t.dv + i % t.dv];
                        sum += w * v;
                        total += w;
                        size += w * (1 + fabsl(v));
                    }
                    long double room = limit * size / total * (1 + fabsl(sum / total));
                    if (!(fabsl(got[i] - sum / total) <= room))
                        fail_msg("%s %s, case %d, number %d: %.17g, wanted %.17Lg",
                                 kernel[k / 2]->name, kinds[kind], (int)c, (int)i, got[i],
                                 sum / total);
                }
            }
        }
    }
    for (int i = 0; i < 6; i++)
        fence_close(&f[i]);
}

/* A query's answer is the same bits among any others. */
static void attend__query_depends_on_itself_only(void **state)
{
    (void)state;
    static tokens t, one;
    static double all[MOST_Q * MOST_D], alone[MOST_D];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    fence f[6];
    for (int i = 0; i < 6; i++)
        f[i] = fence_open();
    make_tokens(&t, 15, 131, 4, 11);
    for (int k = 0; k < 2 * count; k++) {
        attend(kernel[k / 2], &t, FINI_SCORE_RBF, k % 2, all, f);
        for (int64_t i = 0; i < t.m; i++) {
            one = t;
            one.m = 1;
            memcpy(one.q, t.q + i * t.dk, sizeof(double) * (size_t)t.dk);
            memcpy(one.qf, t.qf + i * t.dk, sizeof(float) * (size_t)t.dk);
            attend(kernel[k / 2], &one, FINI_SCORE_RBF, k % 2, alone, f);
            assert_memory_equal(alone, all + i * t.dv, sizeof(double) * (size_t)t.dv);
        }
    }
    for (int i = 0; i < 6; i++)
        fence_close(&f[i]);
}

/* Exponents from -1e5 to 1e5: relative to the largest, and not a number where there is none. */
static void attend__survives_large_exponents(void **state)
{
    (void)state;
    static tokens t;
    double out[2];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    fence f[6];
    for (int i = 0; i < 6; i++)
        f[i] = fence_open();
    for (int k = 0; k < 2 * count; k++)
        for (int best = 0; best < 140; best += 13) {
            make_tokens(&t, 2, 140, 1, 1);
            t.q[0] = 1, t.q[1] = -1;
            for (int l = 0; l < 140; l++)
                t.k[l] = l == best ? 1e5 : 500 - 1000.0 * (l % 2), t.v[l] = l;
            for (int l = 0; l < 140; l++)
                t.qf[l % 2] = (float)t.q[l % 2], t.kf[l] = (float)t.k[l], t.vf[l] = (float)t.v[l];
            attend(kernel[k / 2], &t, FINI_SCORE_EXPONENTIAL, k % 2, out, f);
            assert_true(out[0] == best);
            t.q[0] = NAN, t.qf[0] = NAN;
            attend(kernel[k / 2], &t, FINI_SCORE_EXPONENTIAL, k % 2, out, f);
            assert_true(isnan(out[0]) && !isnan(out[1]));
        }
    for (int i = 0; i < 6; i++)
        fence_close(&f[i]);
}

/* Squares beyond the type: far is far, near is near, in whichever tile; covariances are 0. */
static void attend__survives_large_distances(void **state)
{
    (void)state;
    static tokens t;
    double out[2], panels[16], value[2], slope[2];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    fence f[6];
    for (int i = 0; i < 6; i++)
        f[i] = fence_open();
    for (int k = 0; k < 2 * count; k++)
        for (int kind = FINI_SCORE_RBF; kind < KINDS; kind++)
            for (int best = 0; best < 140; best += 69) {
                double far = k % 2 ? 1e300 : 1e38;
                make_tokens(&t, 2, 140, 1, 1);
                t.q[0] = 1, t.q[1] = -far;
                for (int l = 0; l < 140; l++)
                    t.k[l] = l == best ? 1.5 : far, t.v[l] = l, t.vf[l] = (float)l;
                for (int l = 0; l < 140; l++)
                    t.qf[l % 2] = (float)t.q[l % 2], t.kf[l] = (float)t.k[l];
                attend(kernel[k / 2], &t, kind, k % 2, out, f);
                assert_true(fabs(out[0] - best) < 1e-4);
                assert_true(fabs(out[1] - 69.5) < 1e-4); /* from there all are as far */
                kernel[k / 2]->pack_f64(1, 2, t.k, NULL, 1, panels);
                kernel[k / 2]->covariances(&(fini_covariances){.score = score_of(kind),
                                                               .queries = 1,
                                                               .keys = 2,
                                                               .dk = 1,
                                                               .ld = 2,
                                                               .q = t.q + 1,
                                                               .panels = panels,
                                                               .times = 1,
                                                               .value = value,
                                                               .slope = slope});
                assert_true(value[0] == 0 && value[1] == 0 && slope[0] == 0 && slope[1] == 0);
            }
    for (int i = 0; i < 6; i++)
        fence_close(&f[i]);
}

/* ---- covariances ---------------------------------------------------------------------------- */

/* Values and slopes; with top and sum the weights of a softmax. exp(u) has the error of u, |u|
 * units. */
static void covariances__match_definition(void **state)
{
    (void)state;
    static tokens t;
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    fence f[4];
    for (int i = 0; i < 4; i++)
        f[i] = fence_open();
    for (int64_t m = 1; m <= 14; m += 4)
        for (int64_t L = 1; L <= 19; L += 3) {
            make_tokens(&t, m, L, 3, 1);
            memcpy(t.q, t.k, sizeof(double) * 3); /* a distance of 0 */
            for (int k = 0; k < count; k++)
                for (int kind = 0; kind < KINDS; kind++) {
                    fini_score s = score_of(kind);
                    double *q = fence_array(&f[0], m * 3, 8);
                    double *panels = fence_array(&f[1], (L + 7) / 8 * 8 * 3, 8);
                    double *value = fence_array(&f[2], m * L, 8),
                           *slope = fence_array(&f[3], m * L, 8);
                    memcpy(q, t.q, sizeof(double) * (size_t)(m * 3));
                    kernel[k]->pack_f64(3, L, t.k, NULL, 1, panels);
                    fini_covariances a = {.score = s,
                                          .queries = m,
                                          .keys = L,
                                          .dk = 3,
                                          .ld = L,
                                          .q = q,
                                          .panels = panels,
                                          .times = 2,
                                          .plus = 0.5,
                                          .value = value,
                                          .slope = slope};
                    kernel[k]->covariances(&a);
                    for (int64_t i = 0; i < m * L; i++) {
                        const double *x = t.q + i / L * 3, *y = t.k + i % L * 3;
                        long double want = 2 * definition(&s, 3, x, y) + 0.5L;
                        assert_true(fabsl(value[i] - want) <=
                                    40 * DBL_EPSILON * fabsl(want) + 1e-15);
                        /* du/dq = k or k - q: dk/dq along the first coordinate is slope * that. */
                        double h = 1e-4, along = kind >= FINI_SCORE_RBF ? y[0] - x[0] : y[0];
                        double up[3] = {x[0] + h, x[1], x[2]}, down[3] = {x[0] - h, x[1], x[2]};
                        double rise =
                            (double)(definition(&s, 3, up, y) - definition(&s, 3, down, y)) / h;
                        assert_true(fabs(slope[i] * along - rise) < 1e-6 * (1 + fabs(rise)));
                    }
                }
        }
    for (int i = 0; i < 4; i++)
        fence_close(&f[i]);
}

/* ---- A = U'U -------------------------------------------------------------------------------- */

enum { MOST_N = 70, LD = MOST_N + 2 + FINI_PANEL_F64 };

/* X'X + I of random X. */
static void make_definite(int64_t n, double *A, double *X)
{
    normals(9, n * n, 1, X);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            A[i * LD + j] = i == j;
            for (int64_t k = 0; k < n; k++)
                A[i * LD + j] += X[k * n + i] * X[k * n + j] / (double)n;
        }
}

static void factor__gives_back_the_matrix(void **state)
{
    (void)state;
    static double A[MOST_N * LD], U[MOST_N * LD], X[MOST_N * MOST_N];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    for (int k = 0; k < count; k++)
        for (int64_t n = 1; n <= MOST_N; n++) {
            make_definite(n, A, X);
            memcpy(U, A, sizeof A);
            assert_int_equal(kernel[k]->factor(n, U, LD), -1);
            for (int64_t i = 0; i < n; i++) {
                for (int64_t j = i; j < n; j++) {
                    long double sum = 0;
                    for (int64_t l = 0; l <= i; l++)
                        sum += (long double)U[l * LD + i] * U[l * LD + j];
                    assert_true(fabsl(sum - A[i * LD + j]) < 40 * DBL_EPSILON);
                }
                for (int64_t j = n + FINI_PANEL_F64; j < LD; j++)
                    assert_true(U[i * LD + j] == A[i * LD + j]);
            }
        }
}

static void factor__finds_the_pivot(void **state)
{
    (void)state;
    static double A[MOST_N * LD], X[MOST_N * MOST_N];
    const double bad[] = {-1, 0, NAN, INFINITY};
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    for (int k = 0; k < count; k++)
        for (int64_t n = 1; n <= 21; n++)
            for (int64_t at = 0; at < n; at++)
                for (int i = 0; i < 4; i++) {
                    make_definite(n, A, X);
                    A[at * LD + at] = bad[i];
                    assert_int_equal(kernel[k]->factor(n, A, LD), at);
                }
}

static void solves__are_inverse(void **state)
{
    (void)state;
    enum { COLUMNS = 29, LDX = COLUMNS + FINI_PANEL_F64 };
    static double U[MOST_N * LD], X[MOST_N * MOST_N], B[MOST_N * LDX], Y[MOST_N * LDX];
    const fini_kernel *kernel[5];
    int count = all_kernels(kernel);
    for (int k = 0; k < count; k++)
        for (int64_t n = 1; n <= MOST_N; n += 1 + n / 12)
            for (int64_t columns = 1; columns <= COLUMNS; columns += 7)
                for (int back = 0; back < 2; back++) {
                    make_definite(n, U, X);
                    assert_int_equal(fini_kernel_ref.factor(n, U, LD), -1);
                    normals(10, n * LDX, 1, B);
                    memcpy(Y, B, sizeof B);
                    (back ? kernel[k]->back : kernel[k]->forward)(n, U, LD, columns, Y, LDX);
                    for (int64_t i = 0; i < n; i++)
                        for (int64_t c = 0; c < columns; c++) {
                            long double sum = 0;
                            for (int64_t j = 0; j < n; j++)
                                if (back ? j >= i : j <= i)
                                    sum += (long double)(back ? U[i * LD + j] : U[j * LD + i]) *
                                           Y[j * LDX + c];
                            assert_true(fabsl(sum - B[i * LDX + c]) < 100 * DBL_EPSILON);
                        }
                    for (int64_t i = 0; i < n; i++) /* room for a panel, no more */
                        for (int64_t c = columns + FINI_PANEL_F64; c < LDX; c++)
                            assert_true(Y[i * LDX + c] == B[i * LDX + c]);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attend__matches_definition),
        cmocka_unit_test(attend__query_depends_on_itself_only),
        cmocka_unit_test(attend__survives_large_exponents),
        cmocka_unit_test(attend__survives_large_distances),
        cmocka_unit_test(covariances__match_definition),
        cmocka_unit_test(factor__gives_back_the_matrix),
        cmocka_unit_test(factor__finds_the_pivot),
        cmocka_unit_test(solves__are_inverse),
    };
    return cmocka_run_group_tests_name("kernel_attend", tests, NULL, NULL);
}
