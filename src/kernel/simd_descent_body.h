/* The descents in registers: after erf_risk_body.h, with the names that it asks for, and simd_normals_body.h.
 *
 * Included by simd_body.h, and by the page's kernel (web/simd). */

#define ALL(x) SET_D(x)
#define LANES_V WD
#define LOAD_V(p) LOAD_D(p)
#define STORE_V(p, x) STORE_D(p, x)
#define SELECT(a, b, x) BLEND_D(a, b, x)
#define TIMES_POWER(p, near) ((vd)((vq)(p) + ((vq)(near) << 52)))
#define EXP_NEGATIVE exp_negative
#define ERFCX erfcx
#include "kernel/descent_body.h"

#define F vf
#define LANES_F WF
#define HALVES (WF / WD)
#define ALL_F(x) SET_F(x)
#define SELECT_F(a, b, x) BLEND_F(a, b, x)
#define SIGNED_F(size, x) ((vf)((vu)(size) | ((vu)(x)&0x80000000u)))
#define NARROW(to, runs, member) to = narrow((runs)[0].member, (runs)[1].member);
#define GAUSS_F gauss_f
#define ERF_F erf_f
#define TIMES_POWER_F(p, near) ((vf)((vu)(p) + ((vu)(near) << 23)))

/* Normals of WF runs at once, a run in each lane: even runs go through one register, odd ones
 * through the other. Where at most a half or a quarter of the lanes have a run, 2 or 4 blocks of theirs
 * stand side by side, and are moved to the first lanes in the end. */
typedef struct lane_keys {
    round_keys keys;
    uint64_t run;
    int beside; /* blocks side by side */
    vq runs[2],
        blocks[2]; /* of each lane: its run less the first one, times 2^8; its block among them */
    vq stream, low, high[2];
} lane_keys;

/* `lanes`: so many have a run, the first ones. */
static void lanes_open(lane_keys *keys, uint64_t seed, uint32_t stream, uint64_t run, int lanes)
{
    spread_keys(seed, &keys->keys);
    keys->run = run;
    keys->stream = SET_Q(stream);
    keys->beside = lanes > WF / 2 ? 1 : lanes > WF / 4 ? 2 : 4;
    for (int i = 0; i < WF; i++) {
        keys->runs[i % 2][i / 2] = (uint64_t)(i % (WF / keys->beside)) << 8;
        keys->blocks[i % 2][i / 2] = (uint64_t)(i / (WF / keys->beside));
    }
}

/* The sample is run * 2^40 + step. */
static inline void lanes_step(lane_keys *keys, int64_t step)
{
    uint64_t sample = (keys->run << 40) + (uint64_t)step;
    keys->low = SET_Q(sample & 0xffffffffu);
    for (int i = 0; i < 2; i++)
        keys->high[i] = keys->runs[i] + (sample >> 32);
}

static inline void pair_lanes(polar_f pair, vf *first, vf *second)
{
    vf radius = SQRT_F(pair.square);
    *first = radius * pair.along;
    *second = radius * pair.across;
}

static inline void words_lanes(const lane_keys *keys, uint32_t block, vu w[4])
{
    vq at = SET_Q(block);
    vq a[4] = {at + keys->blocks[0], keys->stream, keys->low, keys->high[0]};
    vq b[4] = {at + keys->blocks[1], keys->stream, keys->low, keys->high[1]};
    philox(a, b, &keys->keys);
    for (int j = 0; j < 4; j++)
        w[j] = EVEN_ODD(a[j], b[j] << 32);
}

/* Four normals from each of `count` blocks, in the three overlapping steps of normals_f32. */
static void normals_lanes(const lane_keys *keys, uint32_t block, int count, vf *out)
{
    const int beside = keys->beside, groups = (count + beside - 1) / beside;
    polar_f left = {{0}, {0}, {0}}, right = left;
    vu w[4], next[4];
    vf *before = out;
    words_lanes(keys, block, w);
    for (int i = 0; i < groups; i++) {
        words_lanes(keys, block + (uint32_t)((i + 1) * beside), next);
        pair_lanes(left, before, before + 1);
        left = pair_begin_f(w[0], w[1]);
        pair_lanes(right, before + 2, before + 3);
        right = pair_begin_f(w[2], w[3]);
        before = out + 4 * i;
        for (int j = 0; j < 4; j++)
            w[j] = next[j];
    }
    pair_lanes(left, before, before + 1);
    pair_lanes(right, before + 2, before + 3);
    if (beside == 1)
        return;
    out[4 * groups] = out[0]; /* the last ones are read with what comes after them */
    for (int i = count - 1; i > 0; i--)
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = LOAD_F((const float *)(const void *)(out + 4 * (i / beside) + j) +
                                    i % beside * (WF / beside));
}
#include "kernel/reduced_body.h"
