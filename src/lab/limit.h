/* What the files of the command `limit` share: limit.c has the settings, gains and dimensions,
 * limit_ratio.c compares cme and softmax at one query. */
#ifndef FINI_LAB_LIMIT_H
#define FINI_LAB_LIMIT_H

#include "finetti/context.h"
#include "lab/rate.h"
#include "math/small.h"

/*   type     field    default        lowest  highest         meaning */
#define FINI_LIMIT_FIELDS(F, C)                                                                    \
    C(measure, 0, "gain|ratio|dimension",                                                          \
      "gain of a degree; cme over softmax at a query; effective dimension")                        \
    F(int64_t, d, 3, 2, 16, "numbers in a key")                                                    \
    C(keys, 0, "sphere|vmf",                                                                       \
      "law of keys: uniform on the sphere, von Mises-Fisher around the first axis")                \
    F(double, concentration, 2, 0, 1e3, "of vmf keys")                                             \
    F(double, kappa, 3, 1e-6, 1e6, "kernel exp(kappa (q.k - 1)), scores kappa q.k")                \
    F(double, alpha, 0.1, 1e-12, 1e12, "ridge of cme over L")                                      \
    F(int64_t, degree, 1, 0, 64, "gain: degree of the harmonics")                                  \
    F(double, angle, 0, 0, 180, "ratio: degrees between the query and the first axis")             \
    F(int64_t, longer, 1, 1, 65536, "ratio: softmax's contexts are so many times longer")          \
    F(int64_t, L, 1024, 2, FIN_CROSS_DUAL_MOST, "tokens in a context")                             \
    F(int64_t, contexts, 8, 2, 100000, "contexts")                                                 \
    F(int64_t, queries, 64, 1, 65536, "queries to each context (dimension: the tokens)")           \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of keys and queries")

typedef struct fini_limit_settings {
    FINI_LIMIT_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_limit_settings;
enum { FINI_LIMIT_GAIN, FINI_LIMIT_RATIO, FINI_LIMIT_DIMENSION };
enum { FINI_LIMIT_PLANE = 6 };

/* Both forms with one context. */
typedef struct fini_limit {
    const fini_limit_settings *v;
    fini_rate_law law;
    int64_t longest, asked, block; /* softmax's L; queries; of them at once */
    fin_cross *cme, *softmax;
    fini_arena arena;
    double *keys, *queries; /* (longest, d), (asked, d) */
    double *side;           /* (asked, d): unit vectors, orthogonal to the query */
    double *out, *spread;   /* (block, d) */
    double *weights;        /* (block, L) */
    double *planar;         /* (contexts, 6): ratio's outputs along query and side: cme, softmax,
                             * softmax times the kernel's mass */
    fini_average first, second;
} fini_limit;

/* Draws a context and loads it. */
fin_status fini_limit_load(fini_limit *w, int64_t context, const fin_progress *progress,
                           fin_error *err);

/* Outputs of one context, averaged in the plane; numbers of all of them; what they tend to. */
fin_status fini_limit_one_ratio(fini_limit *w, int64_t context, const fin_progress *progress,
                                fin_error *err);
void fini_limit_add_ratio(const fini_limit *w, fin_result *result);
void fini_limit_add_ratio_limits(const fini_limit_settings *v, fin_result *result);

#endif
