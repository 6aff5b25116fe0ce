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
 * in their order, however they are cut. Not a number stays one.
 *
 * The same in float, for tokens that are as large as memory, at the speed of memory. They are cut off where they
 * are, and not centred: what that does to a score, or a sum, is the same for all tokens.
 *
 *     project    U[r][c] = start[c] + sum_j W[c][j] min(max(x_rj, low_j), high_j)
 *     gather     G[c][j] += sum_r D[r][c] min(max(x_rj, low_j), high_j),    total[c] += sum_r D[r][c]
 *
 * A score is FINI_ROWS_LANES interleaved partial sums in float for every FINI_ROWS_COLUMNS columns, folded in
 * halves and added as doubles; a sum of rows is one in float for every FINI_ROWS_TOGETHER rows of a call, added as
 * doubles. D is a float before anything else. */
#ifndef FINI_ROWS_H
#define FINI_ROWS_H

#include <stdint.h>

enum { FINI_ROWS_LANES = 16, FINI_ROWS_COLUMNS = 1024, FINI_ROWS_TOGETHER = 64 };
/* d filled up to whole steps. */
#define FINI_ROWS_WIDE(d) (((d) + FINI_ROWS_LANES - 1) / FINI_ROWS_LANES * FINI_ROWS_LANES)

typedef struct fini_rows_view {
    int64_t d;
    const float *low, *high; /* (wide), 0 behind d */
} fini_rows_view;

/* Sums over rows, column by column, each in the order of the rows; t = x - a, cut off at -bound and bound:
 *
 *     SIZES        first += x,                  second += |x|
 *     SQUARES      first += (x - a) b,          second += ((x - a) b)^2
 *     CUT_SQUARES  first += (b t)^2
 *     FARTHEST     first = max(first, |t|)
 *     ENDS         first = min(first, x),       second = max(second, x) */
typedef struct fini_rows_sums {
    enum { FINI_SIZES, FINI_ENDS, FINI_SQUARES, FINI_CUT_SQUARES, FINI_FARTHEST } kind;
    int64_t n, d;                /* columns; from a row to the next */
    const double *a, *b, *bound; /* (n) */
} fini_rows_sums;

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
    /* X (rows, d); W (q, wide), 0 behind d; start, total (q); G (q, wide). */
    void (*project_float)(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                          const float *W, const double *start, double *U);
    void (*gather_float)(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                         const double *D, double *G, double *total);
    /* X (rows, d) from the first column on; first, second (n). */
    void (*sums_f32)(int64_t rows, const fini_rows_sums *of, const float *X, double *first,
                     double *second);
    void (*sums_f64)(int64_t rows, const fini_rows_sums *of, const double *X, double *first,
                     double *second);
    /* Rows of parts (blocks, n) into the first as a binary tree; columns from .. to - 1 (math/small.h). */
    void (*add_tree)(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to);
} fini_rows;

extern const fini_rows fini_rows_ref, fini_rows_avx2, fini_rows_avx512; /* those that were built */

/* The table that belongs to fini_kernel_get(). */
const fini_rows *fini_rows_get(void);

#endif
