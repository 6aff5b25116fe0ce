/* The vector kernels, once for every register width.
 *
 * Included by kernel_<set>.c after simd_<set>.h, which names that set's instructions. Widths: WF
 * floats and WD doubles a register. Groups of 16 (float) and 8 (double) lanes are walked in
 * registers of any width, which is why the results do not depend on it. */

/* ---- normals ------------------------------------------------------------------------------ */

#include "kernel/simd_normals_body.h"

/* See pair_f64 in kernel_ref.c. Small integers become doubles by adding them to the bits of
 * 1.5 * 2^52, since AVX2 has no conversion from 64-bit integers. */
static inline void pair_d(vq w0, vq w1, double *first, double *second)
{
    vd magic = SET_D(0x1.8p52);
    vd u = (vd)((w0 >> 12) | 0x3ff0000000000000u) - 0x1.fffffffffffffp-1;
    vq shifted = (vq)u - 0x3fe6a09e667f3bcdu;
    /* Arithmetic shift by 52 of a number in (-2^58, 0]: bias it to be positive first. */
    vq biased = (shifted + (UINT64_C(64) << 52)) >> 52;
    vd e = (vd)((vq)magic + biased) - (0x1.8p52 + 64.0);
    vd f = (vd)((shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    vd s = f / (2.0 + f), z = s * s, p = SET_D(fini_log_f64[6]);
    for (int i = 5; i >= 0; i--)
        p = FMA_D(p, z, SET_D(fini_log_f64[i]));
    vd log_m = FMA_D(s * z, p, 2.0 * s);
    vd log_u = FMA_D(e, SET_D(0x1.62e42fefa39efp-1), FMA_D(e, SET_D(0x1.abc9e3b39803fp-56), log_m));
    vd radius = SQRT_D(-2.0 * log_u);

    vd turns = 4.0 * ((vd)((w1 >> 12) | 0x3ff0000000000000u) - 1.0);
    vd near = turns + magic;
    vq bits = (vq)near;
    vd x = (turns - (near - magic)) * 0x1.921fb54442d18p0;
    z = x * x;
    vd sine = SET_D(fini_sin_f64[5]), cosine = SET_D(fini_cos_f64[6]);
    for (int i = 4; i >= 0; i--)
        sine = FMA_D(sine, z, SET_D(fini_sin_f64[i]));
    sine = FMA_D(x * z, sine, x);
    for (int i = 5; i >= 0; i--)
        cosine = FMA_D(cosine, z, SET_D(fini_cos_f64[i]));
    cosine = FMA_D(cosine, z, SET_D(1.0));
    vq odd = bits << 63;
    vd along = BLEND_D(cosine, sine, odd), across = BLEND_D(sine, cosine, odd);
    STORE_D(first, radius * (vd)((vq)along ^ (((bits + 1) & 2) << 62)));
    STORE_D(second, radius * (vd)((vq)across ^ ((bits & 2) << 62)));
}

/* The two 64-bit words of 2 * WD blocks from `block` on: w[0], w[1] of the first WD, then the
 * others. */
static inline void words_d(fini_key key, const round_keys *keys, uint32_t block, vq w[4])
{
    vq at = COUNT_UP_Q + (uint64_t)block;
    vq low = SET_Q(key.sample & 0xffffffffu), high = SET_Q(key.sample >> 32);
    vq a[4] = {at, SET_Q(key.stream), low, high}, b[4] = {at + WD, SET_Q(key.stream), low, high};
    philox(a, b, keys);
    w[0] = (a[0] & 0xffffffffu) | a[1] << 32;
    w[1] = (a[2] & 0xffffffffu) | a[3] << 32;
    w[2] = (b[0] & 0xffffffffu) | b[1] << 32;
    w[3] = (b[2] & 0xffffffffu) | b[3] << 32;
}

/* A step makes 2 * WD blocks: one group in AVX2, two groups in AVX-512. */
static void normals_f64(fini_key key, uint32_t first, int64_t groups, double *out)
{
    enum { PER_STEP = WD / 4, SECOND = WD == 4 ? WD : FINI_NORMALS_F64 };
    round_keys keys;
    spread_keys(key.seed, &keys);
    vq w[4], next[4] = {{0}};
    if (groups > 0)
        words_d(key, &keys, 8 * first, w);
    for (int64_t g = 0; g < groups; g += PER_STEP) {
        if (g + PER_STEP < groups)
            words_d(key, &keys, 8 * (first + (uint32_t)g + PER_STEP), next);
        double *to = out + g * FINI_NORMALS_F64;
        pair_d(w[0], w[1], to, to + 8);
        if (WD == 4 || g + 1 < groups)
            pair_d(w[2], w[3], to + SECOND, to + SECOND + 8);
        for (int j = 0; j < 4; j++)
            w[j] = next[j];
    }
}

/* ---- arrays ------------------------------------------------------------------------------- */

#define ARRAY(name, expression)                                                                    \
    static void name(int64_t n, const double *x, double *y)                                        \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + WD <= n; i += WD) {                                                             \
            vd a = LOAD_D(x + i);                                                                  \
            STORE_D(y + i, expression);                                                            \
        }                                                                                          \
        if (i < n) {                                                                               \
            double rest[WD];                                                                       \
            vd a = load_some_d(x + i, (int)(n - i));                                               \
            STORE_D(rest, expression);                                                             \
            memcpy(y + i, rest, (size_t)(n - i) * sizeof *y);                                      \
        }                                                                                          \
    }
ARRAY(array_exp, VEXP(a))
ARRAY(array_log1p, VLOG1P(a))
ARRAY(array_erf, VERF(a))
ARRAY(array_gauss, VEXP(-a *a))

/* ---- projections and gradients ------------------------------------------------------------ */

/* chi and z of `ROWS` rows at once: k and v are loaded once for all of them, and 4 * ROWS
 * (2 * ROWS with registers of 16 floats) independent sums hide the latency of the additions. The
 * rows are `apart` rows from each other. */
enum { REGS_F = FINI_LANES_F32 / WF, REGS_D = FINI_LANES_F64 / WD };

#define PROJECT(name, type, vec, lanes, width, regs, LOAD, load_some, FMA_, fold, ROWS)            \
    static inline void name(int64_t d, int64_t apart, const type *X, const type *k, const type *v, \
                            double *chi, double *z)                                                \
    {                                                                                              \
        vec a[ROWS][2] = {{{0}}}, b[ROWS][2] = {{{0}}};                                            \
        int64_t i = 0, ahead = apart * d;                                                          \
        for (; i + lanes <= d; i += lanes)                                                         \
            for (int h = 0; h < regs; h++) {                                                       \
                vec kk = LOAD(k + i + h * width), vv = LOAD(v + i + h * width);                    \
                for (int r = 0; r < ROWS; r++) {                                                   \
                    vec x = LOAD(X + r * ahead + i + h * width);                                   \
                    a[r][h] = FMA_(x, kk, a[r][h]);                                                \
                    b[r][h] = FMA_(x, vv, b[r][h]);                                                \
                }                                                                                  \
            }                                                                                      \
        for (int h = 0; h < regs && i + h * width < d; h++) {                                      \
            vec kk = LOAD(k + i + h * width), vv = LOAD(v + i + h * width);                        \
            int rest = (int)(d - i) - h * width;                                                   \
            for (int r = 0; r < ROWS; r++) {                                                       \
                vec x = load_some(X + r * ahead + i + h * width, rest < width ? rest : width);     \
                a[r][h] = FMA_(x, kk, a[r][h]);                                                    \
                b[r][h] = FMA_(x, vv, b[r][h]);                                                    \
            }                                                                                      \
        }                                                                                          \
        for (int r = 0; r < ROWS; r++) {                                                           \
            chi[r * apart] = (double)fold(a[r][0], a[r][1]);                                       \
            z[r * apart] = (double)fold(b[r][0], b[r][1]);                                         \
        }                                                                                          \
    }
PROJECT(project_f_1, float, vf, FINI_LANES_F32, WF, REGS_F, LOAD_F, load_some_f, FMA_F, fold_f, 1)
PROJECT(project_f_2, float, vf, FINI_LANES_F32, WF, REGS_F, LOAD_F, load_some_f, FMA_F, fold_f, 2)
PROJECT(project_d_1, double, vd, FINI_LANES_F64, WD, REGS_D, LOAD_D, load_some_d, FMA_D, fold_d, 1)
PROJECT(project_d_2, double, vd, FINI_LANES_F64, WD, REGS_D, LOAD_D, load_some_d, FMA_D, fold_d, 2)

/* Rows r and r + half together, not r and r + 1: both rows are then walked in long runs of
 * consecutive addresses, which is what the processor's own prefetching is good at. */
static void project_f32(int64_t rows, int64_t d, const float *X, const float *k, const float *v,
                        double *chi, double *z)
{
    int64_t half = rows / 2;
    for (int64_t r = 0; r < half; r++)
        project_f_2(d, half, X + r * d, k, v, chi + r, z + r);
    if (2 * half < rows)
        project_f_1(d, 0, X + 2 * half * d, k, v, chi + 2 * half, z + 2 * half);
}

static void project_f64(int64_t rows, int64_t d, const double *X, const double *k, const double *v,
                        double *chi, double *z)
{
    int64_t half = rows / 2;
    for (int64_t r = 0; r < half; r++)
        project_d_2(d, half, X + r * d, k, v, chi + r, z + r);
    if (2 * half < rows)
        project_d_1(d, 0, X + 2 * half * d, k, v, chi + 2 * half, z + 2 * half);
}

/* Everything in double; the tail goes through a zero-padded copy. */
#define PROJECT_NORM(name, type, LOAD)                                                             \
    static void name(int64_t rows, int64_t d, const type *X, const double *k, const double *v,     \
                     double *chi, double *z, double *norm2)                                        \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++, X += d) {                                               \
            vd a[2] = {{0}}, b[2] = {{0}}, c[2] = {{0}};                                           \
            for (int64_t i = 0; i < d; i += FINI_LANES_F64) {                                      \
                type copy[FINI_LANES_F64] = {0};                                                   \
                const type *x = X + i;                                                             \
                if (d - i < FINI_LANES_F64) {                                                      \
                    memcpy(copy, x, (size_t)(d - i) * sizeof *x);                                  \
                    x = copy;                                                                      \
                }                                                                                  \
                for (int h = 0; h < REGS_D; h++) {                                                 \
                    vd value = LOAD(x + h * WD);                                                   \
                    a[h] = FMA_D(value, LOAD_D(k + i + h * WD), a[h]);                             \
                    b[h] = FMA_D(value, LOAD_D(v + i + h * WD), b[h]);                             \
                    c[h] = FMA_D(value, value, c[h]);                                              \
                }                                                                                  \
            }                                                                                      \
            chi[r] = fold_d(a[0], a[1]);                                                           \
            z[r] = fold_d(b[0], b[1]);                                                             \
            norm2[r] = fold_d(c[0], c[1]);                                                         \
        }                                                                                          \
    }
PROJECT_NORM(project_norm_f32, float, WIDEN)
PROJECT_NORM(project_norm_f64, double, LOAD_D)

/* Columns in the outer loop, tokens in the inner one: the sums of a strip, `regs` registers wide,
 * stay in registers and each is added to the double accumulator once for up to FINI_GATHER tokens.
 * `regs` is written out by the caller, so that the loops over it disappear. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
ALWAYS_INLINE void gather_strip_f(int regs, int64_t rows, int64_t d, const float *X, const float *p,
                                  const float *q, double *gk, double *gv)
{
    vf a[4] = {{0}}, b[4] = {{0}};
#pragma GCC unroll 2 /* a tenth faster */
    for (int64_t r = 0; r < rows; r++) {
        vf pr = SET_F(p[r]), qr = SET_F(q[r]);
        for (int h = 0; h < regs; h++) {
            vf x = LOAD_F(X + r * d + h * WF);
            a[h] = FMA_F(pr, x, a[h]);
            b[h] = FMA_F(qr, x, b[h]);
        }
    }
    for (int h = 0; h < regs; h++) {
        float sums[2][WF];
        STORE_F(sums[0], a[h]);
        STORE_F(sums[1], b[h]);
        for (int half = 0; half < WF; half += WD) {
            double *to_k = gk + h * WF + half, *to_v = gv + h * WF + half;
            STORE_D(to_k, LOAD_D(to_k) + WIDEN(sums[0] + half));
            STORE_D(to_v, LOAD_D(to_v) + WIDEN(sums[1] + half));
        }
    }
}

static void gather_f32(int64_t rows, int64_t d, int64_t from, int64_t to, const float *X,
                       const double *p, const double *q, double *gk, double *gv)
{
    float pf[FINI_GATHER], qf[FINI_GATHER];
    for (int64_t r = 0; r < rows; r++) {
        pf[r] = (float)p[r];
        qf[r] = (float)q[r];
    }
    int64_t c = from;
    for (; c + 4 * WF <= to; c += 4 * WF)
        gather_strip_f(4, rows, d, X + c, pf, qf, gk + c, gv + c);
    for (; c + 2 * WF <= to; c += 2 * WF)
        gather_strip_f(2, rows, d, X + c, pf, qf, gk + c, gv + c);
    for (; c + WF <= to; c += WF)
        gather_strip_f(1, rows, d, X + c, pf, qf, gk + c, gv + c);
    for (; c < to; c++) {
        float a = 0, b = 0;
        for (int64_t r = 0; r < rows; r++) {
            a = __builtin_fmaf(pf[r], X[r * d + c], a);
            b = __builtin_fmaf(qf[r], X[r * d + c], b);
        }
        gk[c] += (double)a;
        gv[c] += (double)b;
    }
}

ALWAYS_INLINE void gather_strip_d(int regs, int64_t rows, int64_t d, const double *X,
                                  const double *p, const double *q, double *gk, double *gv)
{
    vd a[4] = {{0}}, b[4] = {{0}};
    for (int64_t r = 0; r < rows; r++) {
        vd pr = SET_D(p[r]), qr = SET_D(q[r]);
        for (int h = 0; h < regs; h++) {
            vd x = LOAD_D(X + r * d + h * WD);
            a[h] = FMA_D(pr, x, a[h]);
            b[h] = FMA_D(qr, x, b[h]);
        }
    }
    for (int h = 0; h < regs; h++) {
        STORE_D(gk + h * WD, LOAD_D(gk + h * WD) + a[h]);
        STORE_D(gv + h * WD, LOAD_D(gv + h * WD) + b[h]);
    }
}

static void gather_f64(int64_t rows, int64_t d, int64_t from, int64_t to, const double *X,
                       const double *p, const double *q, double *gk, double *gv)
{
    int64_t c = from;
    for (; c + 4 * WD <= to; c += 4 * WD)
        gather_strip_d(4, rows, d, X + c, p, q, gk + c, gv + c);
    for (; c + WD <= to; c += WD)
        gather_strip_d(1, rows, d, X + c, p, q, gk + c, gv + c);
    for (; c < to; c++) {
        double a = 0, b = 0;
        for (int64_t r = 0; r < rows; r++) {
            a = __builtin_fma(p[r], X[r * d + c], a);
            b = __builtin_fma(q[r], X[r * d + c], b);
        }
        gk[c] += a;
        gv[c] += b;
    }
}

/* ---- queries and keys ------------------------------------------------------------------------ */

#include "kernel/solve_body.h"

#define REAL float
#define VEC vf
#define MASK vi
#define WORDS vu
#define WIDTH WF
#define PANEL FINI_PANEL_F32
#define NAME(x) x##_f32
#define FMA_R FMA_F
#define SET_R SET_F
#define MAX_R MAX_F
#define MIN_R MIN_F
#define SQRT_R SQRT_F
#define LOAD_R LOAD_F
#define STORE_R STORE_F
#define LOAD_SOME_R load_some_f
#define FOLD_R(a) fold_f(a[0], a[PANEL / WIDTH - 1])
#include "kernel/attend_body.h"

#define COVARIANCES
#define REAL double
#define VEC vd
#define MASK vl
#define WORDS vq
#define WIDTH WD
#define PANEL FINI_PANEL_F64
#define NAME(x) x##_f64
#define FMA_R FMA_D
#define SET_R SET_D
#define MAX_R MAX_D
#define MIN_R MIN_D
#define SQRT_R SQRT_D
#define LOAD_R LOAD_D
#define STORE_R STORE_D
#define LOAD_SOME_R load_some_d
#define FOLD_R(a) fold_d(a[0], a[PANEL / WIDTH - 1])
#include "kernel/attend_body.h"

/* ---- exact risk --------------------------------------------------------------------------- */

#define V vd
#define FMA(a, b, c) FMA_D(a, b, c)
#define EXP(x) VEXP(x)
#define ERF(x) VERF(x)
#define ERFC(x) VERFC(x)
#define ATAN(x) VATAN(x)
#define SQRT(x) SQRT_D(x)
#define MIN(a, b) MIN_D(a, b)
#define MAX(a, b) MAX_D(a, b)
#define SIGN_OF(x) ((vd)(((vq)(x)&0x8000000000000000u) | 0x3ff0000000000000u))
#define ERF_RISK erf_risk_points
#define ERF_GRADIENT erf_gradient
#include "kernel/erf_risk_body.h"

static void erf_risk(int64_t n, const double points[][FINI_RISK_IN], double values[][FINI_RISK_OUT])
{
    for (int64_t i = 0; i < n; i += WD) {
        int lanes = n - i < WD ? (int)(n - i) : WD;
        vd in[FINI_RISK_IN] = {{0}}, out[FINI_RISK_OUT];
        for (int j = 0; j < WD; j++) { /* a last, partial group repeats its last point */
            const double *row = points[i + (j < lanes ? j : lanes - 1)];
            for (int f = 0; f < FINI_RISK_IN; f++)
                in[f][j] = row[f];
        }
        erf_risk_points(in, out);
        for (int j = 0; j < lanes; j++)
            for (int f = 0; f < FINI_RISK_OUT; f++)
                values[i + j][f] = out[f][j];
    }
}

/* ---- descents ------------------------------------------------------------------------------- */

#include "kernel/simd_descent_body.h"

#include "kernel/heads_body.h"

#include "kernel/kernel_table.h"
