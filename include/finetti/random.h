/* random: numbers that are a pure function of (seed, stream, sample).
 *
 * Philox4x32-10 with key = seed and counter = (block, stream, sample): any sample can be drawn at
 * any time, in any order, by any thread, and comes out with the same bits, on every CPU. A *stream*
 * is a purpose (tokens, noise, directions...), a *sample* one replicate of it.
 *
 * The arrays fin_random_normals_* are the fast way to many normals. The cursor fin_random is the
 * convenient way to a few numbers of any law; it keeps its own normals apart from its words, so how
 * many of each are drawn does not shift the other. */
#ifndef FINETTI_RANDOM_H
#define FINETTI_RANDOM_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Streams from FIN_STREAM_USER to 2^31 - 1 are free for callers; those below are the library's. Use
 * a stream for one thing only: words, float arrays and double arrays of one stream number share
 * bits. (A cursor's own normals come from stream number + 2^31.) */
#define FIN_STREAM_USER 1024u
/* Largest n + first of the arrays below: 2^32 blocks of four (float) or two (double) normals. */
#define FIN_NORMALS_MAX (INT64_C(1) << 33)

/* out[i] = standard normal number first + i of this sample, 0 <= first, first + n at most
 * FIN_NORMALS_MAX. float and double are different sequences: 31 and 52 bits of radius, so |x| stays
 * below 6.66 and 8.57. */
FIN_API void fin_random_normals_f32(uint64_t seed, uint32_t stream, uint64_t sample, int64_t first,
                                    int64_t n, float *out);
FIN_API void fin_random_normals_f64(uint64_t seed, uint32_t stream, uint64_t sample, int64_t first,
                                    int64_t n, double *out);

/* A cursor: a plain value, copied freely, no clean-up. Fields are private. */
typedef struct fin_random {
    uint64_t seed, sample;
    uint32_t stream, block, group;
    int words_left, normals_left;
    uint32_t words[4];
    double normals[16];
} fin_random;

FIN_API void fin_random_open(fin_random *r, uint64_t seed, uint32_t stream, uint64_t sample);
FIN_API uint32_t fin_random_word(fin_random *r);
FIN_API double fin_random_uniform(fin_random *r);               /* in (0, 1), 52 bits */
FIN_API int64_t fin_random_below(fin_random *r, int64_t bound); /* 0 .. bound-1, unbiased */
FIN_API double fin_random_normal(fin_random *r);
FIN_API double fin_random_gumbel(fin_random *r); /* -log(-log U) */
/* Gamma(shape, 1), shape > 0 (Marsaglia and Tsang 2000), and chi-square with real dof >= 0. */
FIN_API double fin_random_gamma(fin_random *r, double shape);
FIN_API double fin_random_chi_square(fin_random *r, double dof);
/* Uniform on the unit sphere of R^d. */
FIN_API void fin_random_sphere(fin_random *r, int64_t d, double *x);
/* von Mises-Fisher on the unit sphere of R^d: density proportional to exp(kappa axis.x). Only the
 * direction of `axis` matters. kappa = 0 is the uniform law (`axis` may be zero then), infinite
 * kappa the axis itself. By inversion for d = 3, by rejection (Wood 1994) otherwise; any kappa. NaN
 * in x if kappa is negative or NaN, or the axis is not finite or shorter than 1e-290. x may not be
 * `axis`. */
FIN_API void fin_random_vmf(fin_random *r, int64_t d, const double *axis, double kappa, double *x);
/* Dirichlet(alpha) of n probabilities, sum 1; right also where every alpha is tiny (one place has
 * it all). A zero alpha gives 0; NaN in out if an alpha is negative, NaN or infinite, or all are 0.
 * out may be alpha. */
FIN_API void fin_random_dirichlet(fin_random *r, int64_t n, const double *alpha, double *out);
/* A rotation of R^d, uniform (Haar) on SO(d): O is (d, d), O O' = 1, det O = 1. O(d^3). */
FIN_API void fin_random_rotation(fin_random *r, int64_t d, double *O);
/* W ~ Wishart_2(dof, M) by Bartlett's decomposition, M = [M0 M1; M1 M2] positive semidefinite,
 * dof >= 2 (a real number, so 1e12 dimensions cost what 2 do). W as W00, W01, W11. */
FIN_API void fin_random_wishart2(fin_random *r, double dof, const double M[3], double W[3]);

#ifdef __cplusplus
}
#endif
#endif
