/* Positive definite matrices of either size: up to FINI_SMALL by the kernels, which keep the upper
 * triangle in a core's own cache; larger ones in tiles, the lower triangle (math/gram.h). */
#include "context/batch.h"

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

/* fini_cholesky's rule for a factor of the kernels': is pivot i more than rounding of A_ii, the sum
 * of the squares above it? Nearly all are, even of the trace. */
static bool holds(int64_t i, const double *U, int64_t ld, double trace)
{
    double whole = 0, left = U[i * ld + i] * U[i * ld + i];
    if (fini_pivot_holds(left, trace))
        return true;
    for (int64_t k = 0; k <= i; k++)
        whole += U[k * ld + i] * U[k * ld + i];
    return fini_pivot_holds(left, whole);
}

fin_status fini_factor(int64_t n, double *A, int64_t ld, double trace, int64_t *pivot,
                       fin_error *err)
{
    if (!fini_factor_small(n)) {
        fin_status status = fini_cholesky(n, A, ld, pivot, NULL, err);
        return *pivot >= 0 ? FIN_OK : status;
    }
    *pivot = fini_kernel_get()->factor(n, A, ld);
    for (int64_t i = 0; *pivot < 0 && i < n; i++)
        if (!holds(i, A, ld, trace))
            *pivot = i;
    return FIN_OK;
}

double fini_factor_jitter(double relative)
{
    return relative == 0 ? 1e-12 : relative < 5e-9 ? relative * 10 : 0;
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
