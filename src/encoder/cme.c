/* Attention that is kernel ridge regression, one head of one sequence, in double.
 *
 *     A = K'K + ridge I,  B = K'V,  W = A^-1 B,  out = Q W
 *
 *     dW = Q'dO,  dB = A^-1 dW,  dA = - dB W',  dQ = dO W',  dV = K dB,
 *     dK = V dB' + K (dA + dA'),  d ridge = trace dA
 *
 * In double also where the rest is float: K'K has the square of the condition of K, and a learnt
 * ridge may be small. A is d x d, d the width of a head. A matrix that is not positive definite
 * (NaN somewhere, a ridge that underflowed) makes every answer NaN, which the loss then shows. */
#include "encoder/encoder.h"

#include "math/spd.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

typedef struct shape {
    int64_t rows, columns, inner;
} shape;

/* C (rows, columns) = alpha op(A) op(B) + beta C; the inner length is `inner`. */
static void multiply(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, shape s, double alpha, const double *A,
                     const double *B, double beta, double *C)
{
    int lda = (int)(ta == CblasNoTrans ? s.inner : s.rows);
    int ldb = (int)(tb == CblasNoTrans ? s.columns : s.inner);
    cblas_dgemm(CblasRowMajor, ta, tb, (int)s.rows, (int)s.columns, (int)s.inner, alpha, A, lda, B,
                ldb, beta, C, (int)s.columns);
}

static void fill(int64_t n, double *x, double value)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

static fini_spd factor_of(const fini_cme *o)
{
    return (fini_spd){.n = o->d, .ld = o->d, .C = o->A, .route = FINI_SPD_SMALL};
}

static bool prepare(fini_cme *o)
{
    int64_t d = o->d;
    multiply(CblasTrans, CblasNoTrans, (shape){d, d, o->L}, 1, o->K, o->K, 0, o->A);
    multiply(CblasTrans, CblasNoTrans, (shape){d, d, o->L}, 1, o->K, o->V, 0, o->W);
    for (int64_t i = 0; i < d; i++)
        o->A[i * d + i] += o->ridge;
    fini_spd A = factor_of(o);
    fini_spd_factor(&A, NULL, NULL);
    if (A.pivot < 0)
        fini_spd_solve(A, d, o->W, d);
    return A.pivot < 0;
}

void fini_cme_forward(fini_cme *o)
{
    if (prepare(o)) {
        multiply(CblasNoTrans, CblasNoTrans, (shape){o->m, o->d, o->d}, 1, o->Q, o->W, 0, o->O);
    } else {
        fill(o->m * o->d, o->O, NAN);
        fill(o->d * o->d, o->A, NAN); /* for the weights */
    }
}

/* After fini_cme_forward: weights of keys for query i, K A^-1 q. */
void fini_cme_weights(fini_cme *o, int64_t i, double *weights)
{
    memcpy(o->B, o->Q + i * o->d, (size_t)o->d * sizeof(double));
    fini_spd_solve(factor_of(o), 1, o->B, 1);
    for (int64_t l = 0; l < o->L; l++) {
        weights[l] = 0;
        for (int64_t j = 0; j < o->d; j++)
            weights[l] += o->K[l * o->d + j] * o->B[j];
    }
}

double fini_cme_backward(fini_cme *o)
{
    int64_t d = o->d, L = o->L, m = o->m;
    double trace = 0;
    if (!prepare(o)) {
        fill(m * d, o->dQ, NAN);
        fill(L * d, o->dK, NAN);
        fill(L * d, o->dV, NAN);
        return NAN;
    }
    multiply(CblasTrans, CblasNoTrans, (shape){d, d, m}, 1, o->Q, o->O, 0, o->B);
    fini_spd_solve(factor_of(o), d, o->B, d);
    multiply(CblasNoTrans, CblasTrans, (shape){m, d, d}, 1, o->O, o->W, 0, o->dQ);
    multiply(CblasNoTrans, CblasNoTrans, (shape){L, d, d}, 1, o->K, o->B, 0, o->dV);
    multiply(CblasNoTrans, CblasTrans, (shape){d, d, d}, -1, o->B, o->W, 0,
             o->A); /* dA, over the factor */
    for (int64_t i = 0; i < d; i++)
        trace += o->A[i * d + i];
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++)
            o->A[i * d + j] = o->A[j * d + i] = o->A[i * d + j] + o->A[j * d + i];
    multiply(CblasNoTrans, CblasTrans, (shape){L, d, d}, 1, o->V, o->B, 0, o->dK);
    multiply(CblasNoTrans, CblasNoTrans, (shape){L, d, d}, 1, o->K, o->A, 1, o->dK);
    return trace;
}
