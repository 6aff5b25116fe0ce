/* Small positive definite systems: see small.h. */
#include "study/small.h"

#include "math/gram.h"

#include <math.h>

bool fini_small_cholesky(int64_t n, double *A)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = A[i * n + j], whole = A[i * n + i];
            for (int64_t k = 0; k < j; k++)
                sum -= A[i * n + k] * A[j * n + k];
            if (j < i) {
                A[i * n + j] = sum / A[j * n + j];
                continue;
            }
            if (!fini_pivot_holds(sum, whole) || !isfinite(sum))
                return false;
            A[i * n + i] = sqrt(sum);
        }
    return true;
}

void fini_small_solve(int64_t n, const double *C, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++)
            x[i] -= C[i * n + k] * x[k];
        x[i] /= C[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++)
            x[i] -= C[k * n + i] * x[k];
        x[i] /= C[i * n + i];
    }
}
