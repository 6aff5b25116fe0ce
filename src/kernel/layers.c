/* The parts of a layer in plain C, which is the reference; matrices in panels; the step of the
 * optimiser; the choice of a table. */
#include "kernel/layers.h"

#include "kernel/kernel.h"

#include <math.h>
#include <stddef.h>

#define REAL float
#define NAME(name) name##_f32
#define EXP expf
#define ERFC erfcf
#include "kernel/layers_plain.h"

#define REAL double
#define NAME(name) name##_f64
#define EXP exp
#define ERFC erfc
#include "kernel/layers_plain.h"

#define TABLE(suffix)                                                                              \
    {                                                                                              \
        norm_##suffix, norm_back_##suffix, gelu_##suffix, relu_##suffix, act_back_##suffix,        \
            add_bias_##suffix, sum_rows_##suffix, attend_##suffix, attend_back_##suffix,           \
            weights_##suffix, NULL, NULL                                                           \
    }

const fini_layers_f32 fini_layers_ref = TABLE(f32);
const fini_layers_f64 fini_layers_ref_f64 = TABLE(f64);

const fini_layers_f32 *fini_layers_get(void)
{
    return fini_kernel_get()->layers;
}

int64_t fini_attend_scratch(int64_t L, int64_t d)
{
    int64_t wide = (L + 15) / 16 * 16 + 16; /* keys in whole registers, and one apart */
    return wide * (2 * d + 2 * FINI_ATTEND_ROWS);
}

/* Panel after panel, each a row of FINI_PANEL numbers for every term of the sums. */
void fini_map_pack(int64_t in, int64_t out, const float *W, float *forward, float *back)
{
    for (int64_t j = 0; j < out; j += FINI_PANEL)
        for (int64_t k = 0; k < in; k++)
            for (int64_t i = 0; i < FINI_PANEL; i++)
                *forward++ = W[(j + i) * in + k];
    for (int64_t j = 0; j < in && back; j += FINI_PANEL)
        for (int64_t k = 0; k < out; k++)
            for (int64_t i = 0; i < FINI_PANEL; i++)
                *back++ = W[k * in + j + i];
}

/* Loshchilov and Hutter 2019. In double: the square of a small gradient is no float. */
void fini_adamw_update(const fini_adamw *a, int64_t n, const double *gradient, float *x,
                       float *first, float *second)
{
    const double keep = 1 - a->rate * a->decay, rate = a->rate / a->c1, from = 1 / a->c2;
    for (int64_t i = 0; i < n; i++) {
        double g = a->times * gradient[i];
        double m = a->b1 * (double)first[i] + (1 - a->b1) * g;
        double s = a->b2 * (double)second[i] + (1 - a->b2) * g * g;
        first[i] = (float)m;
        second[i] = (float)s;
        x[i] = (float)(keep * (double)x[i] - rate * m / (sqrt(s * from) + 1e-8));
    }
}
