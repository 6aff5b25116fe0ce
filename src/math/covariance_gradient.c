/* Gradients of a weighted sum of covariances, S = sum_ij G_ij k(a_i, b_j), in the scales of columns.
 *
 * of |a - b|:  dk/dlog scale_c = h (a_c - b_c)^2        of a.b:  dk/dlog scale_c = -2 h a_c b_c
 * (the keys are divided by the scales, so d a_c / dlog scale_c = -a_c), where
 *
 *     rbf, exponential  h = k               matern32  h = 3 e^-s,          s = sqrt(3) r
 *     linear            h = 1               matern52  h = 5/3 (1+s) e^-s,  s = sqrt(5) r
 *     polynomial        h = degree (offset + a.b)^(degree-1)
 *
 * With P = G h everything is made of P b and the sums of P over rows and columns:
 *
 *     sum_ij P_ij (a_ic - b_jc)^2 = sum_i a_ic^2 sum_j P_ij + sum_j b_jc^2 sum_i P_ij
 *                                   - 2 sum_i a_ic (P b)_ic
 *
 * which is done in blocks, both keys less the first b of the block: only the differences matter,
 * and keys far from the origin would lose their digits here. */
#include "kernel/pairs.h"
#include "math/gram.h"
#include "math/small.h"

#include <cblas.h>

enum { BLOCK = 64 };

/* A block of pairs: P, its sums over rows and columns, and BLOCK or fewer columns of both keys. */
typedef struct block {
    const fin_covariance *c;
    bool stationary;
    int64_t d, n, m;     /* keys here */
    const double *a, *b; /* (n, d), (m, d) */
    int64_t from, width; /* columns of the keys here */
    double P[BLOCK * BLOCK], rows[BLOCK], columns[BLOCK];
    double A[BLOCK * BLOCK], B[BLOCK * BLOCK], T[BLOCK * BLOCK];
} block;

/* h in P. */
static void slopes(block *o, const double *K, int64_t ld)
{
    const fini_pairs *pairs = fini_pairs_get();
    double *P = o->P, degree = (double)o->c->degree;
    int64_t n = o->n, m = o->m;
    switch (o->c->kernel) {
    case FIN_KERNEL_LINEAR:
        for (int64_t t = 0; t < n * m; t++)
            P[t] = 1;
        break;
    case FIN_KERNEL_POLYNOMIAL: {
        fin_covariance lower = *o->c;
        lower.degree--;
        fini_covariance_tile(&lower, o->d, n, o->a, m, o->b, P, m);
        for (int64_t t = 0; t < n * m; t++)
            P[t] *= degree;
        break;
    }
    case FIN_KERNEL_MATERN32:
        pairs->squares(o->d, n, o->a, m, o->b, 3, P, m);
        pairs->decay(n * m, P, P);
        for (int64_t t = 0; t < n * m; t++)
            P[t] *= 3;
        break;
    case FIN_KERNEL_MATERN52:
        pairs->squares(o->d, n, o->a, m, o->b, 5, P, m);
        pairs->matern32(n * m, P, P); /* (1 + s) e^-s, with the s of 5/2 */
        for (int64_t t = 0; t < n * m; t++)
            P[t] *= 5. / 3;
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++)
                P[i * m + j] = K[i * ld + j];
    }
}

static void weigh(block *o, const double *K, const double *G, int64_t ld)
{
    slopes(o, K, ld);
    for (int64_t j = 0; j < o->m; j++)
        o->columns[j] = 0;
    for (int64_t i = 0; i < o->n; i++) {
        o->rows[i] = 0;
        for (int64_t j = 0; j < o->m; j++) {
            double p = o->P[i * o->m + j] * G[i * ld + j];
            o->P[i * o->m + j] = p;
            o->rows[i] += p;
            o->columns[j] += p;
        }
    }
}

/* Columns from, ..., from + width - 1 of the keys. */
static void load(block *o, int64_t from)
{
    o->from = from;
    o->width = fini_least(BLOCK, o->d - from);
    for (int64_t k = 0; k < o->width; k++) {
        double centre = o->stationary ? o->b[from + k] : 0;
        for (int64_t i = 0; i < o->n; i++)
            o->A[i * o->width + k] = o->a[i * o->d + from + k] - centre;
        for (int64_t j = 0; j < o->m; j++)
            o->B[j * o->width + k] = o->b[j * o->d + from + k] - centre;
    }
}

/* By T = P B (n, width). */
static void add_scales(block *o, double *out)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)o->n, (int)o->width, (int)o->m, 1,
                o->P, (int)o->m, o->B, (int)o->width, 0, o->T, (int)o->width);
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t k = 0; k < o->width; k++) {
            double x = o->A[i * o->width + k], t = o->T[i * o->width + k];
            out[o->from + k] += o->stationary ? x * (o->rows[i] * x - 2 * t) : -2 * x * t;
        }
    if (!o->stationary)
        return;
    for (int64_t j = 0; j < o->m; j++)
        for (int64_t k = 0; k < o->width; k++) {
            double y = o->B[j * o->width + k];
            out[o->from + k] += o->columns[j] * y * y;
        }
}

void fini_covariance_scales(const fini_covariance_pairs *p, double *out)
{
    block o; /* too large to be cleared for every tile */
    o.c = p->c;
    o.stationary = p->c->kernel >= FIN_KERNEL_RBF;
    o.d = p->d;
    fini_blas_enter();
    for (int64_t i = 0; i < p->n; i += BLOCK)
        for (int64_t j = 0; j < p->m; j += BLOCK) {
            o.n = fini_least(BLOCK, p->n - i);
            o.m = fini_least(BLOCK, p->m - j);
            o.a = p->a + i * o.d;
            o.b = p->b + j * o.d;
            weigh(&o, p->K + i * p->ld + j, p->G + i * p->ld + j, p->ld);
            for (int64_t k = 0; k < o.d; k += BLOCK) {
                load(&o, k);
                add_scales(&o, out);
            }
        }
    fini_blas_leave();
}
