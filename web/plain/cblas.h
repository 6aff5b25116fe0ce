/* The calls of BLAS that the modules of the page make, in plain C (linear.c): row-major, and triangles are lower ones. */
#ifndef FINETTI_WEB_CBLAS_H
#define FINETTI_WEB_CBLAS_H

typedef enum { CblasRowMajor = 101 } CBLAS_ORDER;
typedef enum { CblasNoTrans = 111, CblasTrans = 112 } CBLAS_TRANSPOSE;
typedef enum { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;
typedef enum { CblasNonUnit = 131 } CBLAS_DIAG;
typedef enum { CblasLeft = 141, CblasRight = 142 } CBLAS_SIDE;

double cblas_ddot(int n, const double *x, int step_x, const double *y, int step_y);
/* C = alpha op(A) op(B) + beta C */
void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n,
                 int k, double alpha, const double *A, int lda, const double *B, int ldb,
                 double beta, double *C, int ldc);
/* y = alpha op(A) x + beta y */
void cblas_dgemv(CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int m, int n, double alpha,
                 const double *A, int lda, const double *x, int step_x, double beta, double *y,
                 int step_y);
/* C = alpha op(A) op(A)' + beta C, one triangle */
void cblas_dsyrk(CBLAS_ORDER order, CBLAS_UPLO half, CBLAS_TRANSPOSE trans, int n, int k,
                 double alpha, const double *A, int lda, double beta, double *C, int ldc);
/* x = op(L)^-1 x */
void cblas_dtrsv(CBLAS_ORDER order, CBLAS_UPLO half, CBLAS_TRANSPOSE trans, CBLAS_DIAG diag, int n,
                 const double *L, int ldl, double *x, int step);
/* B = alpha op(L)^-1 B, or alpha B op(L)^-1 */
void cblas_dtrsm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO half, CBLAS_TRANSPOSE trans,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double *L, int ldl, double *B,
                 int ldb);
/* B = alpha op(L) B, or alpha B op(L) */
void cblas_dtrmm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO half, CBLAS_TRANSPOSE trans,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double *L, int ldl, double *B,
                 int ldb);

#endif
