/* The inverse of a positive definite matrix from its Cholesky factor, A^-1 = W'W with W = C^-1.
 *
 * Twice n^3/3 operations in tiles, as for the factor itself (spd.c): C becomes W from the first
 * block row to the last, and W becomes W'W in the same order, since row i of that needs rows i and
 * later of W only. In each step the tiles of one block row are shared among threads. */
#include "math/gram.h"
#include "math/small.h"
#include "math/spd.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <limits.h>
#include <omp.h>
#include <string.h>

enum { TILE = 256 };

typedef struct matrix {
    int64_t n, ld;
    double *C;
    double *copy; /* (TILE, n): the block row that a step replaces, as it was */
} matrix;

static void keep(const matrix *o, int64_t row, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(o->copy + r * o->n, o->C + (row + r) * o->ld, (size_t)columns * sizeof *o->C);
}

/* W_ij = -C_ii^-1 (C_ij W_jj + sum_{j < k < i} C_ik W_kj); all of C_i. is in the copy. */
static void invert_tile(const matrix *o, int64_t i, int64_t rows, int64_t j)
{
    int n = (int)o->n, ld = (int)o->ld;
    double *to = o->C + i * o->ld + j;
    cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, (int)rows, TILE,
                -1, o->C + j * o->ld + j, ld, to, ld);
    int64_t k = j + TILE;
    if (k < i)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, TILE, (int)(i - k), -1,
                    o->copy + k, n, o->C + k * o->ld + j, ld, 1, to, ld);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)rows, TILE,
                1, o->C + i * o->ld + i, ld, to, ld);
}

static void invert(const matrix *o)
{
    for (int64_t i = 0; i < o->n; i += TILE) {
        int64_t rows = fini_least(TILE, o->n - i);
        keep(o, i, rows, i);
        int threads = (int)fini_least(fin_threads_get(), i / TILE + 1);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t j = 0; j < i; j += TILE) /* the longest sums first */
            invert_tile(o, i, rows, j);
        LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', (lapack_int)rows, o->C + i * o->ld + i,
                            (lapack_int)o->ld);
    }
}

/* sum_{k >= i} W_ki' W_kj; W_ii is in the copy. */
static void multiply_tile(const matrix *o, int64_t i, int64_t rows, int64_t j)
{
    int n = (int)o->n, ld = (int)o->ld, rest = (int)(o->n - i - rows);
    double *to = o->C + i * o->ld + j;
    const double *below = o->C + (i + rows) * o->ld;
    if (j < i) {
        cblas_dtrmm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, (int)rows, TILE,
                    1, o->copy + i, n, to, ld);
        if (rest)
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows, TILE, rest, 1,
                        below + i, ld, below + j, ld, 1, to, ld);
    } else {
        LAPACKE_dlauum_work(LAPACK_COL_MAJOR, 'U', (lapack_int)rows, to, ld);
        if (rest)
            cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)rows, rest, 1, below + i, ld, 1,
                        to, ld);
    }
}

static void multiply(const matrix *o)
{
    for (int64_t i = 0; i < o->n; i += TILE) {
        int64_t rows = fini_least(TILE, o->n - i);
        keep(o, i, rows, i + rows);
        int threads = (int)fini_least(fin_threads_get(), i / TILE + 1);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t j = 0; j <= i; j += TILE)
            multiply_tile(o, i, rows, j);
    }
}

fin_status fini_spd_inverse(fini_spd spd, fin_error *err)
{
    int64_t n = spd.n;
    assert(n >= 0 && spd.ld >= n && spd.ld <= INT_MAX);
    if (n == 0)
        return FIN_OK;
    int64_t rows = fini_least(TILE, n);
    matrix o = {n, spd.ld, spd.C, fini_alloc_array(rows, (size_t)n * sizeof *o.copy)};
    if (!o.copy)
        return fini_fail_memory(err, (size_t)rows * (size_t)n * sizeof *o.copy,
                                "the inverse of a matrix");
    fini_blas_enter();
    invert(&o);
    multiply(&o);
    fini_blas_leave();
    fini_free(o.copy);
    return FIN_OK;
}

/* [A^-1]_ll = |C^-1 e_l|^2, and the columns of C^-1 begin at the diagonal. */
void fini_spd_inverse_diagonal(fini_spd o, int64_t from, int64_t b, double *out, double *room)
{
    int64_t rows = o.n - from;
    memset(out, 0, (size_t)b * sizeof *out);
    memset(room, 0, (size_t)(rows * b) * sizeof *room);
    for (int64_t j = 0; j < b; j++)
        room[j * b + j] = 1;
    fini_spd_lower(fini_spd_of(rows, o.C + from * (o.ld + 1), o.ld), b, room, b);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < b; j++)
            out[j] += room[i * b + j] * room[i * b + j];
}
