/* Positive definite matrices of either size: up to FINI_SMALL by the kernels, which keep the upper
 * triangle in a core's own cache; larger ones in tiles, the lower triangle (math/gram.h). */
#include "attention/batch.h"

#include "math/gram.h"

enum { LINE = 8 }; /* doubles in a cache line */

int64_t fini_factor_leading(int64_t columns)
{
    int64_t lines = (columns + FINI_PANEL_F64 + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

bool fini_factor_small(int64_t n)
{
    return n <= FINI_SMALL;
}

fin_status fini_factor(int64_t n, double *A, int64_t ld, double size, int64_t *pivot,
                       fin_error *err)
{
    if (fini_factor_small(n))
        *pivot = fini_kernel_get()->factor(n, A, ld);
    else {
        fin_status status = fini_cholesky(n, A, ld, pivot, NULL, err);
        if (status)
            return status;
    }
    for (int64_t i = 0; *pivot < 0 && i < n; i++) {
        double p = A[i * ld + i];
        if (p * p <= 0x1p-50 * size)
            *pivot = i;
    }
    return FIN_OK;
}

void fini_factor_half(int64_t n, const double *A, int64_t ld, int64_t columns, double *X,
                      int64_t ldx)
{
    if (fini_factor_small(n))
        fini_kernel_get()->forward(n, A, ld, columns, X, ldx);
    else
        fini_solve_lower(n, A, ld, columns, X, ldx);
}

void fini_factor_solve(int64_t n, const double *A, int64_t ld, int64_t columns, double *X,
                       int64_t ldx)
{
    fini_factor_half(n, A, ld, columns, X, ldx);
    if (fini_factor_small(n))
        fini_kernel_get()->back(n, A, ld, columns, X, ldx);
    else
        fini_solve_upper(n, A, ld, columns, X, ldx);
}
