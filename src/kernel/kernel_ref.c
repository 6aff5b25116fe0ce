/* The reference kernels: plain C, one number at a time, what the others are tested against.
 *
 * fma() is called where the vector kernels use a fused multiply-add, so that draws and sums come
 * out with the same bits; on a CPU without the instruction libm computes it, slowly but exactly. */
#include "kernel/coefficients.h"
#include "kernel/kernel.h"

#include <Random123/philox.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static philox4x32_ctr_t block_of(fini_key key, uint32_t block)
{
    philox4x32_ctr_t counter = {
        {block, key.stream, (uint32_t)key.sample, (uint32_t)(key.sample >> 32)}};
    philox4x32_key_t words = {{(uint32_t)key.seed, (uint32_t)(key.seed >> 32)}};
    return philox4x32_R(10, counter, words);
}

/* Box-Muller in float: radius from 31 bits of w0, angle from the 32 bits of w1. */
static void pair_f32(uint32_t w0, uint32_t w1, float *first, float *second)
{
    /* u = (w + 1/2) / 2^31 in (0, 1]; -2 log u with u = 2^e (1 - f). */
    float u = fmaf((float)(int32_t)(w0 >> 1), 0x1p-31f, 0x1p-32f);
    uint32_t bits;
    memcpy(&bits, &u, sizeof bits);
    int32_t shifted = (int32_t)(bits - 0x3f3504f3u); /* the bits of sqrt(1/2) */
    int32_t e = shifted >> 23;
    bits = ((uint32_t)shifted & 0x7fffffu) + 0x3f3504f3u;
    float f;
    memcpy(&f, &bits, sizeof f);
    f = 1.0f - f;
    float ff = f * f;
    float p01 = fmaf(fini_log_f32[1], f, fini_log_f32[0]);
    float p23 = fmaf(fini_log_f32[3], f, fini_log_f32[2]);
    float p45 = fmaf(fini_log_f32[5], f, fini_log_f32[4]);
    float p = fmaf(fmaf(fini_log_f32[6], ff, p45), ff * ff, fmaf(p23, ff, p01));
    float log_m = fmaf(ff, fmaf(p, f, 1.0f), f + f);
    float radius = sqrtf(fmaf((float)e, -2 * 0.693147182464599609375f, log_m));

    /* angle = 2 pi w1 / 2^32 = quadrant * pi/2 + x, |x| <= pi/4. */
    uint32_t turned = w1 + 0x20000000u;
    float x = (float)((int32_t)(turned & 0x3fffffffu) - 0x20000000) * 0x1.921fb6p-30f;
    float z = x * x;
    float sine =
        fmaf(x * z, fmaf(fmaf(fini_sin_f32[2], z, fini_sin_f32[1]), z, fini_sin_f32[0]), x);
    float cosine = fini_cos_f32[3];
    for (int i = 2; i >= 0; i--)
        cosine = fmaf(cosine, z, fini_cos_f32[i]);
    cosine = fmaf(cosine, z, 1.0f);
    int odd = (turned >> 30) & 1;
    float along = odd ? sine : cosine, across = odd ? cosine : sine;
    *first = radius * ((turned + 0x40000000u) >> 31 ? -along : along);
    *second = radius * (turned >> 31 ? -across : across);
}

static void normals_f32(fini_key key, uint32_t first, int64_t groups, float *out)
{
    for (int64_t g = 0; g < groups; g++, out += FINI_NORMALS_F32)
        for (uint32_t i = 0; i < 16; i++) {
            philox4x32_ctr_t w = block_of(key, 16 * (first + (uint32_t)g) + i);
            pair_f32(w.v[0], w.v[1], &out[i], &out[16 + i]);
            pair_f32(w.v[2], w.v[3], &out[32 + i], &out[48 + i]);
        }
}

/* 52 bits to [1, 2). */
static double one_to_two(uint64_t word)
{
    uint64_t bits = (word >> 12) | 0x3ff0000000000000u;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void pair_f64(uint64_t w0, uint64_t w1, double *first, double *second)
{
    double u = one_to_two(w0) - 0x1.fffffffffffffp-1; /* (k + 1/2) / 2^52 */
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    int64_t shifted = (int64_t)(bits - 0x3fe6a09e667f3bcdu); /* the bits of sqrt(1/2) */
    double e = (double)(shifted >> 52);
    bits = ((uint64_t)shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double f;
    memcpy(&f, &bits, sizeof f);
    f -= 1.0;
    double s = f / (2.0 + f), z = s * s, p = fini_log_f64[6];
    for (int i = 5; i >= 0; i--)
        p = fma(p, z, fini_log_f64[i]);
    double log_m = fma(s * z, p, 2.0 * s);
    double log_u = fma(e, 0x1.62e42fefa39efp-1, fma(e, 0x1.abc9e3b39803fp-56, log_m));
    double radius = sqrt(-2.0 * log_u);

    double turns = 4.0 * (one_to_two(w1) - 1.0); /* quarter turns in [0, 4), exact */
    double near = turns + 0x1.8p52;
    memcpy(&bits, &near, sizeof bits);
    double x = (turns - (near - 0x1.8p52)) * 0x1.921fb54442d18p0;
    z = x * x;
    double sine = fini_sin_f64[5], cosine = fini_cos_f64[6];
    for (int i = 4; i >= 0; i--)
        sine = fma(sine, z, fini_sin_f64[i]);
    sine = fma(x * z, sine, x);
    for (int i = 5; i >= 0; i--)
        cosine = fma(cosine, z, fini_cos_f64[i]);
    cosine = fma(cosine, z, 1.0);
    double along = bits & 1 ? sine : cosine, across = bits & 1 ? cosine : sine;
    *first = radius * ((bits + 1) & 2 ? -along : along);
    *second = radius * (bits & 2 ? -across : across);
}

static void normals_f64(fini_key key, uint32_t first, int64_t groups, double *out)
{
    for (int64_t g = 0; g < groups; g++, out += FINI_NORMALS_F64)
        for (uint32_t i = 0; i < 8; i++) {
            philox4x32_ctr_t w = block_of(key, 8 * (first + (uint32_t)g) + i);
            pair_f64(w.v[0] | (uint64_t)w.v[1] << 32, w.v[2] | (uint64_t)w.v[3] << 32, &out[i],
                     &out[8 + i]);
        }
}

/* ---- arrays ------------------------------------------------------------------------------- */

static void array_exp(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(x[i]);
}

static void array_log1p(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = log1p(x[i]);
}

static void array_erf(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = erf(x[i]);
}

static void array_gauss(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = exp(-x[i] * x[i]);
}

/* ---- projections and gradients ------------------------------------------------------------ */

/* Interleaved partial sums, folded in halves: the order every kernel keeps. */
#define FOLD(part, lanes)                                                                          \
    for (int half = (lanes) / 2; half > 0; half /= 2)                                              \
        for (int j = 0; j < half; j++)                                                             \
            part[j] += part[j + half];

static void project_f32(int64_t rows, int64_t d, const float *X, const float *k, const float *v,
                        double *chi, double *z)
{
    for (int64_t r = 0; r < rows; r++, X += d) {
        float a[FINI_LANES_F32] = {0}, b[FINI_LANES_F32] = {0};
        for (int64_t i = 0; i < d; i++) {
            a[i % FINI_LANES_F32] = fmaf(X[i], k[i], a[i % FINI_LANES_F32]);
            b[i % FINI_LANES_F32] = fmaf(X[i], v[i], b[i % FINI_LANES_F32]);
        }
        FOLD(a, FINI_LANES_F32)
        FOLD(b, FINI_LANES_F32)
        chi[r] = (double)a[0];
        z[r] = (double)b[0];
    }
}

static void project_f64(int64_t rows, int64_t d, const double *X, const double *k, const double *v,
                        double *chi, double *z)
{
    for (int64_t r = 0; r < rows; r++, X += d) {
        double a[FINI_LANES_F64] = {0}, b[FINI_LANES_F64] = {0};
        for (int64_t i = 0; i < d; i++) {
            a[i % FINI_LANES_F64] = fma(X[i], k[i], a[i % FINI_LANES_F64]);
            b[i % FINI_LANES_F64] = fma(X[i], v[i], b[i % FINI_LANES_F64]);
        }
        FOLD(a, FINI_LANES_F64)
        FOLD(b, FINI_LANES_F64)
        chi[r] = a[0];
        z[r] = b[0];
    }
}

#define PROJECT_NORM(name, type)                                                                   \
    static void name(int64_t rows, int64_t d, const type *X, const double *k, const double *v,     \
                     double *chi, double *z, double *norm2)                                        \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++, X += d) {                                               \
            double a[FINI_LANES_F64] = {0}, b[FINI_LANES_F64] = {0}, c[FINI_LANES_F64] = {0};      \
            for (int64_t i = 0; i < d; i++) {                                                      \
                int lane = (int)(i % FINI_LANES_F64);                                              \
                double value = (double)X[i];                                                       \
                a[lane] = fma(value, k[i], a[lane]);                                               \
                b[lane] = fma(value, v[i], b[lane]);                                               \
                c[lane] = fma(value, value, c[lane]);                                              \
            }                                                                                      \
            FOLD(a, FINI_LANES_F64)                                                                \
            FOLD(b, FINI_LANES_F64)                                                                \
            FOLD(c, FINI_LANES_F64)                                                                \
            chi[r] = a[0];                                                                         \
            z[r] = b[0];                                                                           \
            norm2[r] = c[0];                                                                       \
        }                                                                                          \
    }
PROJECT_NORM(project_norm_f32, float)
PROJECT_NORM(project_norm_f64, double)

static void gather_f32(int64_t rows, int64_t d, int64_t from, int64_t to, const float *X,
                       const double *p, const double *q, double *gk, double *gv)
{
    for (int64_t c = from; c < to; c++) {
        float a = 0, b = 0;
        for (int64_t r = 0; r < rows; r++) {
            a = fmaf((float)p[r], X[r * d + c], a);
            b = fmaf((float)q[r], X[r * d + c], b);
        }
        gk[c] += (double)a;
        gv[c] += (double)b;
    }
}

static void gather_f64(int64_t rows, int64_t d, int64_t from, int64_t to, const double *X,
                       const double *p, const double *q, double *gk, double *gv)
{
    for (int64_t c = from; c < to; c++) {
        double a = 0, b = 0;
        for (int64_t r = 0; r < rows; r++) {
            a = fma(p[r], X[r * d + c], a);
            b = fma(q[r], X[r * d + c], b);
        }
        gk[c] += a;
        gv[c] += b;
    }
}

#include "kernel/attend_ref.h"

/* ---- exact risk --------------------------------------------------------------------------- */

#define V double
#define FMA(a, b, c) fma(a, b, c)
#define EXP(x) exp(x)
#define ERF(x) erf(x)
#define ERFC(x) erfc(x)
#define ATAN(x) atan(x)
#define SQRT(x) sqrt(x)
#define MIN(a, b) ((a) < (b) ? (a) : (b)) /* as the instructions do: b if one is not a number */
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define SIGN_OF(x) copysign(1.0, x)
#define ERF_RISK erf_risk_point
#define ERF_GRADIENT erf_gradient
#include "kernel/erf_risk_body.h"

static void erf_risk(int64_t n, const double points[][FINI_RISK_IN], double values[][FINI_RISK_OUT])
{
    for (int64_t i = 0; i < n; i++)
        erf_risk_point(points[i], values[i]);
}

/* ---- descents ------------------------------------------------------------------------------- */

#define ALL(x) (x)
#define LANES_V 1
#define LOAD_V(p) (*(p))
#define STORE_V(p, x) (*(p) = (x))
#define SELECT(a, b, x) (signbit(x) ? (b) : (a)) /* by the sign of x */

/* p * 2^n, n in the low bits of `near`. */
static double times_power(double p, double near)
{
    uint64_t bits, n;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&n, &near, sizeof n);
    bits += n << 52;
    memcpy(&p, &bits, sizeof p);
    return p;
}
#define TIMES_POWER(p, near) times_power(p, near)
#define EXP_NEGATIVE exp_negative
#define ERFCX erfcx
#include "kernel/descent_body.h"

#define F float
#define LANES_F 1
#define HALVES 1
#define ALL_F(x) (x)
#define FMA_F(a, b, c) fmaf(a, b, c)
#define MIN_F(a, b) ((a) < (b) ? (a) : (b))
#define MAX_F(a, b) ((a) > (b) ? (a) : (b))
#define SELECT_F(a, b, x) (signbit(x) ? (b) : (a))
#define SIGNED_F(size, x) copysignf(size, x)
#define WIDE(x, half) ((void)(half), (double)(x))
#define NARROW(to, runs, member) to = (float)(runs)[0].member;
#define GAUSS_F gauss_f
#define ERF_F erf_f

static float times_power_f(float p, float near)
{
    uint32_t bits, n;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&n, &near, sizeof n);
    bits += n << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}
#define TIMES_POWER_F(p, near) times_power_f(p, near)

typedef struct lane_keys {
    fini_key key;
    uint64_t run;
} lane_keys;

static void lanes_open(lane_keys *keys, uint64_t seed, uint32_t stream, uint64_t run, int lanes)
{
    (void)lanes;
    *keys = (lane_keys){{seed, 0, stream}, run};
}

static void lanes_step(lane_keys *keys, int64_t step)
{
    keys->key.sample = (keys->run << 40) + (uint64_t)step;
}

static void normals_lanes(const lane_keys *keys, uint32_t block, int count, float *out)
{
    for (int i = 0; i < count; i++)
        fini_normals_block(keys->key, block + (uint32_t)i, out + 4 * i);
}
#include "kernel/reduced_body.h"

#include "kernel/heads_body.h"

void fini_normals_block(fini_key key, uint32_t block, float out[4])
{
    philox4x32_ctr_t words = block_of(key, block);
    pair_f32(words.v[0], words.v[1], out, out + 1);
    pair_f32(words.v[2], words.v[3], out + 2, out + 3);
}

double fini_gamma_retry(fini_key key, uint32_t block, double scale)
{
    double c = 1 / sqrt(9 * scale);
    for (;; block -= 2) {
        float n[4];
        fini_normals_block(key, block, n);
        double x = (double)n[0], t = 1 + c * x, v = t * t * t;
        double e = 0.5 * ((double)n[1] * (double)n[1] + (double)n[2] * (double)n[2]);
        if (t > 0 && e > -(0.5 * x * x + scale * (1 - v + log(v))))
            return v;
    }
}

#define KERNEL_NAME "ref"
#define TABLE_OF(what) fini_##what##_ref
#include "kernel/kernel_table.h"
