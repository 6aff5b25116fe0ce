/* What a transformer's layer does beside products of matrices: norms, activations, attention of a
 * head, and the optimiser's step. One table for each set of instructions, chosen together with the
 * kernels (kernel.h); the double table is plain C, for checking.
 *
 * Rows are contiguous with w numbers. A row's result depends on that row alone; sums over rows (of
 * gradients) run in the order of the rows. Not a number stays one. Arrays need no alignment and do
 * not overlap, unless it is said that they may. */
#ifndef FINI_LAYERS_H
#define FINI_LAYERS_H

#include <stdint.h>

/* norm       y = (x - mean) inverse gain + bias; mean and inverse = 1/sqrt(variance + eps) of each
 *            row are kept
 * norm_back  from dy: dx, dgain (w), dbias (w) are added to
 * gelu, relu y = act(x + bias), act(t) = t Phi(t) or max(t, 0); x is left as act'(x + bias), which
 *            the way back needs and nobody else
 * act_back   dy <- dy x, with x as they left it; dbias (w) += sums over rows of it
 * add_bias   y = x + bias (w) for every row; y may be x
 * sum_rows   sum (w) += rows of x
 * attend     softmax attention of one head of one sequence: out (m, d) = softmax(times q k') v,
 *            with q (m, d), k and v (L, d). q, k, v have rows of ld numbers (pieces of wider rows),
 *            out of ldo. kept (m, 2): largest score of a row and 1 / sum exp(score - largest), so
 *            that the weights need not be kept. L = 0: out = 0. scratch: fini_attend_scratch(L, d)
 *            numbers
 * attend_back  given dout (rows of ldo): dq (m rows), dk and dv (L rows) are written, rows of ld;
 *            without queries (m = 0) dk = dv = 0
 * weights    the weights themselves, p (m, L), for whoever wants to look at them; without v, out
 *            and scratch
 * map        y (rows, out) = x (rows, in) W' (+ bias (out)) (+ from (rows, out); with a bias only);
 *            NULL: not wanted. W in panels (fini_map_pack); from may be y. in and out are multiples
 *            of FINI_PANEL. Without vectors map and map_weight are NULL: a BLAS is faster
 * map_weight dW (out, in) += dy' x */
#define FINI_LAYERS(suffix, real)                                                                  \
    typedef struct fini_norm_##suffix {                                                            \
        int64_t rows, w;                                                                           \
        const real *x, *gain;                                                                      \
        real *mean, *inverse;                                                                      \
        real eps;                                                                                  \
    } fini_norm_##suffix;                                                                          \
    typedef struct fini_head_##suffix {                                                            \
        int64_t m, L, d, ld, ldo;                                                                  \
        real times;                                                                                \
        const real *q, *k, *v;                                                                     \
        real *out, *kept, *scratch;                                                                \
    } fini_head_##suffix;                                                                          \
    typedef struct fini_layers_##suffix {                                                          \
        void (*norm)(const fini_norm_##suffix *n, const real *bias, real *y);                      \
        void (*norm_back)(const fini_norm_##suffix *n, const real *dy, real *dx, real *dgain,      \
                          real *dbias);                                                            \
        void (*gelu)(int64_t rows, int64_t w, const real *bias, real *x, real *y);                 \
        void (*relu)(int64_t rows, int64_t w, const real *bias, real *x, real *y);                 \
        void (*act_back)(int64_t rows, int64_t w, const real *x, real *dy, real *dbias);           \
        void (*add_bias)(int64_t rows, int64_t w, const real *bias, const real *x, real *y);       \
        void (*sum_rows)(int64_t rows, int64_t w, const real *x, real *sum);                       \
        void (*attend)(const fini_head_##suffix *h);                                               \
        void (*attend_back)(const fini_head_##suffix *h, const real *dout, real *dq, real *dk,     \
                            real *dv);                                                             \
        void (*weights)(const fini_head_##suffix *h, real *p);                                     \
        void (*map)(int64_t rows, int64_t in, int64_t out, const real *x, const real *panels,      \
                    const real *bias, const real *from, real *y);                                  \
        void (*map_weight)(int64_t rows, int64_t in, int64_t out, const real *x, const real *dy,   \
                           real *dW);                                                              \
    } fini_layers_##suffix;

FINI_LAYERS(f32, float)
FINI_LAYERS(f64, double)

/* W (out, in) in panels of FINI_PANEL columns, for map with it, and, if `back` is not NULL, with
 * its transpose (from out to in). Both have in * out numbers. */
enum { FINI_PANEL = 16 };
void fini_map_pack(int64_t in, int64_t out, const float *W, float *forward, float *back);

/* Queries that are taken together. */
enum { FINI_ATTEND_ROWS = 24 };
/* Numbers of scratch that attend and attend_back take, whatever m. */
int64_t fini_attend_scratch(int64_t L, int64_t d);

/* AdamW on n numbers: g = times * gradient; first = b1 first + (1 - b1) g, second likewise with
 * g^2; x -= rate (first / c1 / (sqrt(second / c2) + 1e-8) + decay x), c = 1 - b^step. */
typedef struct fini_adamw {
    double times, rate, decay, b1, b2, c1, c2;
} fini_adamw;

extern const fini_layers_f32 fini_layers_ref, fini_layers_avx2,
    fini_layers_avx512; /* those that were built */
extern const fini_layers_f64 fini_layers_ref_f64;

/* The table that belongs to fini_kernel_get(). */
const fini_layers_f32 *fini_layers_get(void);
void fini_adamw_update(const fini_adamw *a, int64_t n, const double *gradient, float *x,
                       float *first, float *second); /* plain C that compilers vectorise */

#endif
