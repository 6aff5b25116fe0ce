/* Linear algebra of the page: what BLAS and LAPACK do for the library, for matrices of a hundred rows, in loops that can
 * be read. Nothing here is blocked; tests/web/module.mjs compares what comes of it with OpenBLAS. */
#include "cblas.h"
#include "lapacke.h"

#include <math.h>

#define AT(A, ld, i, j) (A)[(long)(i) * (ld) + (j)]

double cblas_ddot(int n, const double *x, int step_x, const double *y, int step_y)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += x[i * step_x] * y[i * step_y];
    return sum;
}

static void scale(int m, int n, double beta, double *C, int ldc)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            AT(C, ldc, i, j) = beta == 0 ? 0 : beta * AT(C, ldc, i, j);
}

void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n,
                 int k, double alpha, const double *A, int lda, const double *B, int ldb,
                 double beta, double *C, int ldc)
{
    (void)order;
    scale(m, n, beta, C, ldc);
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++) {
            double a = alpha * (trans_a == CblasTrans ? AT(A, lda, l, i) : AT(A, lda, i, l));
            for (int j = 0; j < n; j++)
                AT(C, ldc, i, j) +=
                    a * (trans_b == CblasTrans ? AT(B, ldb, j, l) : AT(B, ldb, l, j));
        }
}

void cblas_dgemv(CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int m, int n, double alpha,
                 const double *A, int lda, const double *x, int step_x, double beta, double *y,
                 int step_y)
{
    int rows = trans == CblasTrans ? n : m, columns = trans == CblasTrans ? m : n;
    cblas_dgemm(order, trans, CblasNoTrans, rows, 1, columns, alpha, A, lda, x, step_x, beta, y,
                step_y);
}

void cblas_dsyrk(CBLAS_ORDER order, CBLAS_UPLO half, CBLAS_TRANSPOSE trans, int n, int k,
                 double alpha, const double *A, int lda, double beta, double *C, int ldc)
{
    (void)order;
    for (int i = 0; i < n; i++)
        for (int j = half == CblasLower ? 0 : i; j < (half == CblasLower ? i + 1 : n); j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += trans == CblasTrans ? AT(A, lda, l, i) * AT(A, lda, l, j)
                                           : AT(A, lda, i, l) * AT(A, lda, j, l);
            AT(C, ldc, i, j) = alpha * sum + (beta == 0 ? 0 : beta * AT(C, ldc, i, j));
        }
}

void cblas_dtrsv(CBLAS_ORDER order, CBLAS_UPLO half, CBLAS_TRANSPOSE trans, CBLAS_DIAG diag, int n,
                 const double *L, int ldl, double *x, int step)
{
    (void)order, (void)half, (void)diag;
    for (int r = 0; r < n; r++) {
        int i = trans == CblasTrans ? n - 1 - r : r;
        double left = x[(long)i * step];
        for (int j = trans == CblasTrans ? i + 1 : 0; j < (trans == CblasTrans ? n : i); j++)
            left -= (trans == CblasTrans ? AT(L, ldl, j, i) : AT(L, ldl, i, j)) * x[(long)j * step];
        x[(long)i * step] = left / AT(L, ldl, i, i);
    }
}

/* Columns of B on the left; on the right rows of B, x op(L)^-1 being op(L)'^-1 x'. */
void cblas_dtrsm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO half, CBLAS_TRANSPOSE trans,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double *L, int ldl, double *B,
                 int ldb)
{
    CBLAS_TRANSPOSE turned = trans == CblasTrans ? CblasNoTrans : CblasTrans;
    if (alpha != 1)
        scale(m, n, alpha, B, ldb);
    if (side == CblasLeft)
        for (int j = 0; j < n; j++)
            cblas_dtrsv(order, half, trans, diag, m, L, ldl, B + j, ldb);
    else
        for (int i = 0; i < m; i++)
            cblas_dtrsv(order, half, turned, diag, n, L, ldl, B + (long)i * ldb, 1);
}

/* x = op(L) x, from the end that is not needed any more */
static void multiply(CBLAS_TRANSPOSE trans, int n, const double *L, int ldl, double *x, int step)
{
    for (int r = 0; r < n; r++) {
        int i = trans == CblasTrans ? r : n - 1 - r;
        double sum = 0;
        for (int j = trans == CblasTrans ? i : 0; j < (trans == CblasTrans ? n : i + 1); j++)
            sum += (trans == CblasTrans ? AT(L, ldl, j, i) : AT(L, ldl, i, j)) * x[(long)j * step];
        x[(long)i * step] = sum;
    }
}

void cblas_dtrmm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO half, CBLAS_TRANSPOSE trans,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double *L, int ldl, double *B,
                 int ldb)
{
    CBLAS_TRANSPOSE turned = trans == CblasTrans ? CblasNoTrans : CblasTrans;
    (void)order, (void)half, (void)diag;
    if (side == CblasLeft)
        for (int j = 0; j < n; j++)
            multiply(trans, m, L, ldl, B + j, ldb);
    else
        for (int i = 0; i < m; i++)
            multiply(turned, n, L, ldl, B + (long)i * ldb, 1);
    if (alpha != 1)
        scale(m, n, alpha, B, ldb);
}

lapack_int LAPACKE_dpotrf_work(int order, char half, lapack_int n, double *A, lapack_int ld)
{
    (void)order, (void)half;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double left = AT(A, ld, i, j) - cblas_ddot(j, &AT(A, ld, i, 0), 1, &AT(A, ld, j, 0), 1);
            if (i == j && !(left > 0))
                return i + 1;
            AT(A, ld, i, j) = i == j ? sqrt(left) : left / AT(A, ld, j, j);
        }
    return 0;
}

lapack_int LAPACKE_dtrtri_work(int order, char half, char diag, lapack_int n, double *A,
                               lapack_int ld)
{
    (void)order, (void)half, (void)diag;
    for (int i = 0; i < n; i++)
        if (AT(A, ld, i, i) == 0)
            return i + 1;
    for (int i = 0; i < n; i++) {
        AT(A, ld, i, i) = 1 / AT(A, ld, i, i);
        for (int j = 0; j < i; j++) {
            double sum = 0;
            for (int l = j; l < i; l++)
                sum += AT(A, ld, i, l) * AT(A, ld, l, j);
            AT(A, ld, i, j) = -sum * AT(A, ld, i, i);
        }
    }
    return 0;
}

lapack_int LAPACKE_dlauum_work(int order, char half, lapack_int n, double *A, lapack_int ld)
{
    (void)order, (void)half;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int l = i; l < n; l++)
                sum += AT(A, ld, l, i) * AT(A, ld, l, j);
            AT(A, ld, i, j) = sum;
        }
    return 0;
}
