/* Bags for tests of fits: one token of each bag is shifted along column 0 and decides the label
 * through columns 1 and 2. A header with static functions, after cmocka.h. */
#ifndef BAGS_SAMPLE_H
#define BAGS_SAMPLE_H

#include "finetti/random.h"
#include "finetti/bags.h"

#include <math.h>
#include <stdlib.h>

typedef struct bags_sample {
    fin_bags bags;
    int64_t *offsets, *where; /* where: the responsible token of each bag */
    double *tokens, *labels;
} bags_sample;

/* classes 0: y = value + noise; else classes by equal pieces of the value's law. shift: how far the
 * responsible token is from the others. */
static inline bags_sample bags_make(int64_t n, int64_t d, int64_t classes, double shift,
                                    double noise, uint64_t seed)
{
    bags_sample s = {.offsets = malloc((size_t)(n + 1) * sizeof(int64_t)),
                     .where = malloc((size_t)n * sizeof(int64_t)),
                     .labels = malloc((size_t)n * sizeof(double))};
    s.offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        s.offsets[i + 1] = s.offsets[i] + 2 + i % 5;
    s.tokens = malloc((size_t)(s.offsets[n] * d) * sizeof(double));
    fin_random_normals_f64(seed, FIN_STREAM_USER, 0, 0, s.offsets[n] * d, s.tokens);
    for (int64_t i = 0; i < n; i++) {
        fin_random r;
        fin_random_open(&r, seed, FIN_STREAM_USER + 1, (uint64_t)i);
        s.where[i] = fin_random_below(&r, s.offsets[i + 1] - s.offsets[i]);
        double *x = s.tokens + (s.offsets[i] + s.where[i]) * d;
        x[0] += shift;
        double value = (x[1 % d] - x[2 % d]) / sqrt(2) + noise * fin_random_normal(&r);
        double u = 0.5 * erfc(-value / sqrt(2)); /* uniform without noise */
        s.labels[i] = classes ? fmin(floor(u * (double)classes), (double)classes - 1) : value;
    }
    s.bags = (fin_bags){.n = n,
                        .d = d,
                        .total = n,
                        .offsets = s.offsets,
                        .dtype = FIN_F64,
                        .tokens = s.tokens,
                        .labels = s.labels};
    return s;
}

static inline void bags_free(bags_sample *s)
{
    free(s->offsets);
    free(s->where);
    free(s->tokens);
    free(s->labels);
}

#endif
