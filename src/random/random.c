/* The cursor: uniform words from Philox block by block, normals from the kernels group by group.
 *
 * Words use the stream's own counters; normals use the upper half of the stream numbers (top bit
 * set), so neither sequence depends on how much of the other was taken. */
#include "random/streams.h"

#include "kernel/kernel.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#define NORMALS_OF(stream) ((stream) | 0x80000000u)

void fin_random_open(fin_random *r, uint64_t seed, uint32_t stream, uint64_t sample)
{
    if (!r)
        return;
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->stream = stream;
    r->sample = sample;
}

uint32_t fin_random_word(fin_random *r)
{
    if (!r)
        return 0;
    if (r->words_left == 0) {
        philox4x32_ctr_t counter = {
            {r->block++, r->stream, (uint32_t)r->sample, (uint32_t)(r->sample >> 32)}};
        philox4x32_key_t key = {{(uint32_t)r->seed, (uint32_t)(r->seed >> 32)}};
        counter = philox4x32_R(10, counter, key);
        memcpy(r->words, counter.v, sizeof r->words);
        r->words_left = 4;
    }
    return r->words[4 - r->words_left--];
}

double fin_random_uniform(fin_random *r)
{
    if (!r)
        return NAN;
    uint64_t low = fin_random_word(r), high = fin_random_word(r);
    return ((double)((high << 32 | low) >> 12) + 0.5) * 0x1p-52;
}

/* Lemire 2019: the high half of word * bound, with the few words rejected that would favour some
 * values. Bounds above 2^32 take two words. */
int64_t fin_random_below(fin_random *r, int64_t bound)
{
    if (!r || bound <= 1)
        return 0;
    if (bound <= INT64_C(1) << 32) {
        uint64_t range = (uint64_t)bound, product = fin_random_word(r) * range;
        uint64_t reject = (UINT64_C(0x100000000) - range) % range;
        while ((product & 0xffffffffu) < reject)
            product = fin_random_word(r) * range;
        return (int64_t)(product >> 32);
    }
    uint64_t limit = UINT64_MAX - UINT64_MAX % (uint64_t)bound, word;
    do {
        uint64_t low = fin_random_word(r);
        word = (uint64_t)fin_random_word(r) << 32 | low;
    } while (word >= limit);
    return (int64_t)(word % (uint64_t)bound);
}

void fini_random_shuffle(fin_random *r, int64_t n, int64_t *items)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = fin_random_below(r, i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

double fin_random_normal(fin_random *r)
{
    if (!r)
        return NAN;
    if (r->normals_left == 0) {
        fini_key key = {r->seed, r->sample, NORMALS_OF(r->stream)};
        fini_kernel_get()->normals_f64(key, r->group++, 1, r->normals);
        r->normals_left = FINI_NORMALS_F64;
    }
    return r->normals[FINI_NORMALS_F64 - r->normals_left--];
}

double fin_random_gumbel(fin_random *r)
{
    return -log(-log(fin_random_uniform(r)));
}

/* Marsaglia and Tsang 2000: d v with v = (1 + c x)^3, x normal, accepted by a squeeze or by
 *     log u < x^2/2 + d - d v + d log v,   d = shape - 1/3, c = 1/sqrt(9 d).
 * Acceptance is above 0.95 for every shape >= 1; below, shape + 1 and a power of a uniform. */
double fin_random_gamma(fin_random *r, double shape)
{
    if (!r || isnan(shape)) /* would never be accepted below */
        return NAN;
    if (shape < 1)
        return shape > 0 ? fin_random_gamma(r, shape + 1) * pow(fin_random_uniform(r), 1 / shape)
                         : 0;
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = fin_random_normal(r), t = 1 + c * x;
        if (t <= 0)
            continue;
        double v = t * t * t, u = fin_random_uniform(r), xx = x * x;
        if (u < 1 - 0.0331 * xx * xx || log(u) < 0.5 * xx + d * (1 - v + log(v)))
            return d * v;
    }
}

double fin_random_chi_square(fin_random *r, double dof)
{
    return 2 * fin_random_gamma(r, dof / 2);
}

void fin_random_sphere(fin_random *r, int64_t d, double *x)
{
    if (!r || !x)
        return;
    double norm2;
    do {
        norm2 = 0;
        for (int64_t i = 0; i < d; i++) {
            x[i] = fin_random_normal(r);
            norm2 += x[i] * x[i];
        }
    } while (norm2 == 0 && d > 0);
    double scale = 1 / sqrt(norm2);
    for (int64_t i = 0; i < d; i++)
        x[i] *= scale;
}

/* W = (C A)(C A)^T with M = C C^T and A lower triangular: chi_n, chi_{n-1} on the diagonal, a
 * normal below. A singular M is fine: its factor has zeros. */
void fin_random_wishart2(fin_random *r, double dof, const double M[3], double W[3])
{
    if (!r || !M || !W)
        return;
    double c00 = sqrt(M[0] > 0 ? M[0] : 0), c10 = c00 > 0 ? M[1] / c00 : 0;
    double rest = M[2] - c10 * c10, c11 = sqrt(rest > 0 ? rest : 0);
    double a00 = sqrt(fin_random_chi_square(r, dof)), a11 = sqrt(fin_random_chi_square(r, dof - 1));
    double a10 = fin_random_normal(r);
    double b00 = c00 * a00, b10 = c10 * a00 + c11 * a10, b11 = c11 * a11;
    W[0] = b00 * b00;
    W[1] = b00 * b10;
    W[2] = b10 * b10 + b11 * b11;
}
