/* Rows of tokens with a few directions: all scores of a row, and the sums of rows that a gradient
 * is made of, in one reading of the row. One table for each set of instructions, chosen together
 * with the kernels (kernel.h).
 *
 *     t_rj = clamp(x_rj - center_j, -bound_j, bound_j)      or x_rj, where center is NULL
 *     project    U[r][c] = sum_j W[c][j] t_rj
 *     gather     G[c][j] += sum_r D[r][c] t_rj
 *
 * Centring and cutting off are done on the way from memory, which costs less than the reading, so
 * that tokens as large as memory need no copy; a scale belongs to W and G. Floats are made doubles
 * first: differences from the centre and sums are exact to double precision.
 *
 * Same bits in every table: products are fused; a score is eight interleaved partial sums, folded
 * in halves, whatever rows and directions are asked for together; a sum of rows runs over the rows
 * in their order, however they are cut. Not a number stays one. */
#ifndef FINI_ROWS_H
#define FINI_ROWS_H

#include <stdint.h>

typedef struct fini_rows {
    /* X (rows, d); center, bound: (d) or both NULL; W, G (q, d); U, D (rows, q). */
    void (*project_f32)(int64_t rows, int64_t d, const float *X, const double *center,
                        const double *bound, int64_t q, const double *W, double *U);
    void (*project_f64)(int64_t rows, int64_t d, const double *X, const double *center,
                        const double *bound, int64_t q, const double *W, double *U);
    void (*gather_f32)(int64_t rows, int64_t d, const float *X, const double *center,
                       const double *bound, int64_t q, const double *D, double *G);
    void (*gather_f64)(int64_t rows, int64_t d, const double *X, const double *center,
                       const double *bound, int64_t q, const double *D, double *G);
} fini_rows;

extern const fini_rows fini_rows_ref, fini_rows_avx2, fini_rows_avx512; /* those that were built */

/* The table that belongs to fini_kernel_get(). */
const fini_rows *fini_rows_get(void);

#endif
