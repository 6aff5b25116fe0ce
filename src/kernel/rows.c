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
    }
ROWS(f32, float)
ROWS(f64, double)

const fini_rows fini_rows_ref = {project_f32, project_f64, gather_f32, gather_f64};

const fini_rows *fini_rows_get(void)
{
    return fini_kernel_get()->rows;
}
