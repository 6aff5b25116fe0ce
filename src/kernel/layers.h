/* What a transformer's layer does beside products of matrices: norms, activations, attention of a
 * head, and the optimiser's step. One table for each set of instructions, chosen together with the
 * kernels (kernel.h); the double table is plain C, for checking.
 *
 * Rows are contiguous with w numbers. A row's result depends on that row alone; sums over rows (of
 * gradients) run in the order of the rows. */
#ifndef FINI_LAYERS_H
#define FINI_LAYERS_H

#include <stdint.h>

#define FINI_LAYERS(name, real)                                                                    \
    typedef struct name {                                                                          \
        /* y = (x - mean) inverse gain + bias; mean and inverse = 1/sqrt(variance + 1e-5) of each  \
         * row are kept. */                                                                        \
        void (*norm)(int64_t rows, int64_t w, const real *x, const real *gain, const real *bias,   \
                     real *y, real *mean, real *inverse);                                          \
        /* dx, dgain (w), dbias (w) are added to. */                                               \
        void (*norm_back)(int64_t rows, int64_t w, const real *x, const real *gain,                \
                          const real *mean, const real *inverse, const real *dy, real *dx,         \
                          real *dgain, real *dbias);                                               \
        /* x += bias (w); y = act(x) = x Phi(x), or max(x, 0). */                                  \
        void (*gelu)(int64_t rows, int64_t w, const real *bias, real *x, real *y);                 \
        void (*relu)(int64_t rows, int64_t w, const real *bias, real *x, real *y);                 \
        /* dy <- dy act'(x); dbias (w) += sums over rows of it. */                                 \
        void (*gelu_back)(int64_t rows, int64_t w, const real *x, real *dy, real *dbias);          \
        void (*relu_back)(int64_t rows, int64_t w, const real *x, real *dy, real *dbias);          \
        /* x += bias (w) for every row; and sum (w) += rows of x. */                               \
        void (*add_bias)(int64_t rows, int64_t w, const real *bias, real *x);                      \
        void (*sum_rows)(int64_t rows, int64_t w, const real *x, real *sum);                       \
        /* Softmax attention of one head of one sequence: p (m, L) = softmax(times q k'), out (m,   \
         * d) = p v. q, k, v, out have rows of ld numbers (pieces of wider rows), p of L. L = 0:    \
         * out = 0. */                                                                             \
        void (*attend)(int64_t m, int64_t L, int64_t d, int64_t ld, const real *q, const real *k,  \
                       const real *v, real times, real *p, int64_t ldo, real *out);                \
        /* Given dout and p: dq, dk, dv are written (rows of ld). scratch: (m, L). */              \
        void (*attend_back)(int64_t m, int64_t L, int64_t d, int64_t ld, const real *q,            \
                            const real *k, const real *v, real times, const real *p, int64_t ldo,  \
                            const real *dout, real *dq, real *dk, real *dv, real *scratch);        \
    } name;

FINI_LAYERS(fini_layers_f32, float)
FINI_LAYERS(fini_layers_f64, double)

/* AdamW on n numbers: g = times * gradient; first = b1 first + (1 - b1) g, second likewise with g^2;
 * x -= rate (first / c1 / (sqrt(second / c2) + 1e-8) + decay x), c = 1 - b^step. */
typedef struct fini_adamw {
    double times, rate, decay, b1, b2, c1, c2;
} fini_adamw;

extern const fini_layers_f32 fini_layers_ref;
extern const fini_layers_f64 fini_layers_ref_f64;
#ifdef FINI_KERNEL_AVX2
extern const fini_layers_f32 fini_layers_avx2;
#endif
#ifdef FINI_KERNEL_AVX512
extern const fini_layers_f32 fini_layers_avx512;
#endif

/* The table that belongs to fini_kernel_get(). */
const fini_layers_f32 *fini_layers_get(void);
void fini_adamw_update(const fini_adamw *a, int64_t n, const double *gradient, float *x,
                       float *first, float *second); /* plain C that compilers vectorise */

#endif
