/* Normals in float, WF at a time: Philox4x32-10 and Box-Muller.
 *
 * Included by simd_body.h, and by the page's kernel (web/simd), whose registers hold four floats. */

#define PHILOX_MUL0 0xd2511f53u
#define PHILOX_MUL1 0xcd9e8d57u
#define PHILOX_KEY0 0x9e3779b9u
#define PHILOX_KEY1 0xbb67ae85u

/* The ten round keys, spread over the lanes once per call. */
typedef struct round_keys {
    vq k0[10], k1[10];
} round_keys;

static inline void spread_keys(uint64_t seed, round_keys *keys)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, k0 += PHILOX_KEY0, k1 += PHILOX_KEY1) {
        keys->k0[round] = SET_Q(k0);
        keys->k1[round] = SET_Q(k1);
    }
}

/* Philox4x32-10, a block in each 64-bit lane, two registers at a time so that one's multiplications
 * run while the other's are waited for. The products' upper halves are left where they are: MUL_32
 * does not see them, and whoever takes the words masks them. */
static inline void philox(vq a[4], vq b[4], const round_keys *keys)
{
    vq m0 = SET_Q(PHILOX_MUL0), m1 = SET_Q(PHILOX_MUL1);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        vq a0 = MUL_32(a[0], m0), a1 = MUL_32(a[2], m1);
        vq b0 = MUL_32(b[0], m0), b1 = MUL_32(b[2], m1);
        a[0] = (a1 >> 32) ^ (a[1] ^ keys->k0[round]);
        b[0] = (b1 >> 32) ^ (b[1] ^ keys->k0[round]);
        a[2] = (a0 >> 32) ^ (a[3] ^ keys->k1[round]);
        b[2] = (b0 >> 32) ^ (b[3] ^ keys->k1[round]);
        a[1] = a1;
        a[3] = a0;
        b[1] = b1;
        b[3] = b0;
    }
}

/* Pairs of normals in the making: squared radius, cosine and sine of the angle. */
typedef struct polar_f {
    vf square, along, across;
} polar_f;

/* See pair_f32 in kernel_ref.c: the same operations in the same order. */
static inline polar_f pair_begin_f(vu w0, vu w1)
{
    vf u = FMA_F(__builtin_convertvector((vi)(w0 >> 1), vf), SET_F(0x1p-31f), SET_F(0x1p-32f));
    vi shifted = (vi)((vu)u - 0x3f3504f3u);
    vf e = __builtin_convertvector(shifted >> 23, vf);
    vf f = 1.0f - (vf)(((vu)shifted & 0x7fffffu) + 0x3f3504f3u);
    vf ff = f * f;
    vf p01 = FMA_F(SET_F(fini_log_f32[1]), f, SET_F(fini_log_f32[0]));
    vf p23 = FMA_F(SET_F(fini_log_f32[3]), f, SET_F(fini_log_f32[2]));
    vf p45 = FMA_F(SET_F(fini_log_f32[5]), f, SET_F(fini_log_f32[4]));
    vf p = FMA_F(FMA_F(SET_F(fini_log_f32[6]), ff, p45), ff * ff, FMA_F(p23, ff, p01));
    vf log_m = FMA_F(ff, FMA_F(p, f, SET_F(1.0f)), f + f);
    vf square = FMA_F(e, SET_F(-2 * 0.693147182464599609375f), log_m);

    vu turned = w1 + 0x20000000u;
    vf x = __builtin_convertvector((vi)(turned & 0x3fffffffu) - 0x20000000, vf) * 0x1.921fb6p-30f;
    vf z = x * x;
    vf sine =
        FMA_F(FMA_F(SET_F(fini_sin_f32[2]), z, SET_F(fini_sin_f32[1])), z, SET_F(fini_sin_f32[0]));
    sine = FMA_F(x * z, sine, x);
    vf cosine = SET_F(fini_cos_f32[3]);
    for (int i = 2; i >= 0; i--)
        cosine = FMA_F(cosine, z, SET_F(fini_cos_f32[i]));
    cosine = FMA_F(cosine, z, SET_F(1.0f));
    vu odd = turned << 1; /* the quadrant's low bit on top */
    vu along = (vu)BLEND_F(cosine, sine, odd), across = (vu)BLEND_F(sine, cosine, odd);
    return (polar_f){square, (vf)(along ^ ((turned + 0x40000000u) & 0x80000000u)),
                     (vf)(across ^ (turned & 0x80000000u))};
}

static inline void pair_end_f(polar_f pair, float *first, float *second)
{
    vf radius = SQRT_F(pair.square);
    STORE_F(first, radius * pair.along);
    STORE_F(second, radius * pair.across);
}

/* The words of WF blocks from `block` on, in order: even blocks go through one register, odd ones
 * through the other. */
static inline void words_f(fini_key key, const round_keys *keys, uint32_t block, vu w[4])
{
    vq at = 2 * COUNT_UP_Q + (uint64_t)block;
    vq low = SET_Q(key.sample & 0xffffffffu), high = SET_Q(key.sample >> 32);
    vq a[4] = {at, SET_Q(key.stream), low, high}, b[4] = {at + 1, SET_Q(key.stream), low, high};
    philox(a, b, keys);
    for (int j = 0; j < 4; j++)
        w[j] = EVEN_ODD(a[j], b[j] << 32);
}

/* Three steps at a time: the words of the next blocks, the pairs of these, the square roots of the
 * ones before. Each is a long chain of dependent operations, and the processor looks ahead only so
 * far. No branches: the first square roots, of nothing, are written over, and the last words are
 * not used. */
static void normals_f32(fini_key key, uint32_t first, int64_t groups, float *out)
{
    round_keys keys;
    spread_keys(key.seed, &keys);
    int64_t steps = groups * (16 / WF);
    if (steps == 0)
        return;
    float *before = out;
    polar_f left = {{0}, {0}, {0}}, right = left;
    vu w[4], next[4];
    words_f(key, &keys, 16 * first, w);
    for (int64_t step = 0; step < steps; step++) {
        words_f(key, &keys, 16 * first + (uint32_t)(step + 1) * WF, next);
        pair_end_f(left, before, before + 16);
        left = pair_begin_f(w[0], w[1]);
        pair_end_f(right, before + 32, before + 48);
        right = pair_begin_f(w[2], w[3]);
        before = out + step / (16 / WF) * FINI_NORMALS_F32 + step % (16 / WF) * WF;
        for (int j = 0; j < 4; j++)
            w[j] = next[j];
    }
    pair_end_f(left, before, before + 16);
    pair_end_f(right, before + 32, before + 48);
}
