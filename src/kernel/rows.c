/* The reference for rows of tokens, in plain C, and the choice of a table. */
#include "kernel/rows.h"

#include "kernel/kernel.h"

#include <math.h>
#include <stddef.h>

static double see(double x, const double *center, const double *bound, int64_t j)
{
    if (!center)
        return x;
    double t = x - center[j];
    t = bound[j] < t ? bound[j] : t;
    return -bound[j] > t ? -bound[j] : t;
}

#define ROWS(suffix, real)                                                                         \
    static void project_##suffix(int64_t rows, int64_t d, const real *X, const double *center,     \
                                 const double *bound, int64_t q, const double *W, double *U)       \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < q; c++) {                                                      \
                double s[8] = {0};                                                                 \
                for (int64_t j = 0; j < d; j++)                                                    \
                    s[j % 8] =                                                                     \
                        fma(W[c * d + j], see((double)X[r * d + j], center, bound, j), s[j % 8]);  \
                for (int half = 4; half; half /= 2)                                                \
                    for (int i = 0; i < half; i++)                                                 \
                        s[i] += s[i + half];                                                       \
                U[r * q + c] = s[0];                                                               \
            }                                                                                      \
    }                                                                                              \
    static void gather_##suffix(int64_t rows, int64_t d, const real *X, const double *center,      \
                                const double *bound, int64_t q, const double *D, double *G)        \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t j = 0; j < d; j++) {                                                      \
                double t = see((double)X[r * d + j], center, bound, j);                            \
                for (int64_t c = 0; c < q; c++)                                                    \
                    G[c * d + j] = fma(D[r * q + c], t, G[c * d + j]);                             \
            }                                                                                      \
    }                                                                                              \
    static void sums_##suffix(int64_t rows, const fini_rows_sums *of, const real *X,               \
                              double *first, double *second)                                       \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t j = 0; j < of->n; j++)                                                    \
                add(of, j, (double)X[r * of->d + j], first, second);                               \
    }
/* What one number adds to its column. */
static void add(const fini_rows_sums *of, int64_t j, double x, double *first, double *second)
{
    double t = of->kind == FINI_SIZES || of->kind == FINI_ENDS ? x : x - of->a[j];
    if (of->kind == FINI_CUT_SQUARES || of->kind == FINI_FARTHEST) {
        t = of->bound[j] < t ? of->bound[j] : t;
        t = -of->bound[j] > t ? -of->bound[j] : t;
    }
    if (of->kind == FINI_SIZES) {
        first[j] += t;
        second[j] += fabs(t);
    } else if (of->kind == FINI_ENDS) {
        first[j] = t < first[j] ? t : first[j];
        second[j] = t > second[j] ? t : second[j];
    } else if (of->kind == FINI_FARTHEST) {
        first[j] = fabs(t) > first[j] ? fabs(t) : first[j];
    } else if (of->kind == FINI_SQUARES) {
        t *= of->b[j];
        first[j] += t;
        second[j] += t * t;
    } else {
        t *= of->b[j];
        first[j] += t * t;
    }
}

ROWS(f32, float)
ROWS(f64, double)

static float cut_off(const fini_rows_view *view, float x, int64_t j)
{
    x = view->high[j] < x ? view->high[j] : x;
    return view->low[j] > x ? view->low[j] : x;
}

static void project_float(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                          const float *W, const double *start, double *U)
{
    enum { LANES = FINI_ROWS_LANES, COLUMNS = FINI_ROWS_COLUMNS };
    int64_t d = view->d, wide = FINI_ROWS_WIDE(d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < q; c++) {
            double *u = U + r * q + c;
            *u = start[c];
            for (int64_t from = 0; from < d; from += COLUMNS) {
                float s[LANES] = {0};
                for (int64_t j = from; j < d && j < from + COLUMNS; j++)
                    s[j % LANES] =
                        fmaf(W[c * wide + j], cut_off(view, X[r * d + j], j), s[j % LANES]);
                for (int half = LANES / 2; half; half /= 2)
                    for (int i = 0; i < half; i++)
                        s[i] += s[i + half];
                *u += (double)s[0];
            }
        }
}

static void gather_float(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                         const double *D, double *G, double *total)
{
    int64_t d = view->d, wide = FINI_ROWS_WIDE(d);
    for (int64_t at = 0; at < rows; at += FINI_ROWS_TOGETHER)
        for (int64_t c = 0; c < q; c++) {
            int64_t end = rows - at < FINI_ROWS_TOGETHER ? rows : at + FINI_ROWS_TOGETHER;
            float all = 0;
            for (int64_t r = at; r < end; r++)
                all += (float)D[r * q + c];
            total[c] += (double)all;
            for (int64_t j = 0; j < d; j++) {
                float s = 0;
                for (int64_t r = at; r < end; r++)
                    s = fmaf((float)D[r * q + c], cut_off(view, X[r * d + j], j), s);
                G[c * wide + j] += (double)s;
            }
        }
}

/* level h = 1, 2, 4, ...: row(a) <- row(a) + row(a + h) for a = 0, 2h, 4h, ...; a few columns at a time
 * climb the whole tree, so that all levels but the first find them in the nearest cache. */
static void add_tree(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to)
{
    enum { COLUMNS = 32 };
    for (int64_t end; from < to; from = end) {
        end = from + COLUMNS < to ? from + COLUMNS : to;
        for (int64_t h = 1; h < blocks; h *= 2)
            for (int64_t a = 0; a + h < blocks; a += 2 * h) {
                double *into = parts + a * n;
                const double *row = parts + (a + h) * n;
#pragma omp simd
                for (int64_t i = from; i < end; i++)
                    into[i] += row[i];
            }
    }
}

const fini_rows fini_rows_ref = {project_f32,  project_f64, gather_f32, gather_f64, project_float,
                                 gather_float, sums_f32,    sums_f64,   add_tree};

const fini_rows *fini_rows_get(void)
{
    return fini_kernel_get()->rows;
}
