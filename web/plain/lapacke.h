/* The calls of LAPACK that the modules of the page make, in plain C (linear.c). All are made column by column on an upper
 * triangle, which row by row is the lower one. */
#ifndef FINETTI_WEB_LAPACKE_H
#define FINETTI_WEB_LAPACKE_H

typedef int lapack_int;
#define LAPACK_COL_MAJOR 102

/* A = L L'; the number of the first pivot that is not positive, from 1, or 0. */
lapack_int LAPACKE_dpotrf_work(int order, char half, lapack_int n, double *A, lapack_int ld);
/* L^-1; the number of the first zero on the diagonal, from 1, or 0. */
lapack_int LAPACKE_dtrtri_work(int order, char half, char diag, lapack_int n, double *A,
                               lapack_int ld);
/* L' L */
lapack_int LAPACKE_dlauum_work(int order, char half, lapack_int n, double *A, lapack_int ld);
/* Declared, not there: nothing that the page calls needs them, and the linker leaves out what does. */
lapack_int LAPACKE_dgeqrf_work(int order, lapack_int m, lapack_int n, double *A, lapack_int ld,
                               double *tau, double *work, lapack_int size);
lapack_int LAPACKE_dgesvd_work(int order, char job_u, char job_v, lapack_int m, lapack_int n,
                               double *A, lapack_int ld, double *s, double *U, lapack_int ldu,
                               double *V, lapack_int ldv, double *work, lapack_int size);

#endif
