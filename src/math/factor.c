/* The Cholesky factor of a positive definite matrix: making it and solving with it.
 *
 * Tiles of a fixed size, one step for each tile of the diagonal: factor it, solve the tiles below
 * it, subtract their products from all that is to the right and below. Threads share block rows,
 * BLAS runs on one thread in each: every call of it is the same whatever the number of threads, and
 * so is every bit. (A row-major lower triangle is a column-major upper one, which is what LAPACK is
 * told.) */
#include "math/gram.h"
#include "math/small.h"

#include <assert.h>
#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>
#include <omp.h>

enum { TILE = 256, COLUMNS = 128 };

/* Rows first, ..., first + size - 1, whose tile of the diagonal has just been factored as far as
 * `good`: the first row that is not determined, or -1.
 *
 * C_ii^2 is what is left of A_ii when the rows before have explained what they can, and A_ii is the
 * sum of the squares of row i of C. BLAS does not notice a NaN, and what is left of a row that is a
 * combination of others is rounding: both count as a failure here. */
static int64_t first_bad(int64_t first, int64_t size, int64_t good, const double *A, int64_t ld)
{
    for (int64_t i = first; i < first + good; i++) {
        const double *row = A + i * ld;
        double whole = cblas_ddot((int)i + 1, row, 1, row, 1);
        if (!fini_pivot_holds(row[i] * row[i], whole) || !(row[i] > 0))
            return i;
    }
    return good < size ? first + good : -1;
}

bool fini_pivot_holds(double left, double whole)
{
    return left > 64 * DBL_EPSILON * whole && isfinite(whole);
}

static int64_t factor_tile(int64_t first, int64_t size, double *A, int64_t ld)
{
    lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)size,
                                          A + first * ld + first, (lapack_int)ld);
    return first_bad(first, size, info > 0 ? info - 1 : size, A, ld);
}

/* Rows row, ..., row + rows - 1 of the matrix less the products of columns k, ..., next - 1, from
 * column `next` to the diagonal. */
static void subtract(int64_t k, int64_t next, int64_t row, int64_t rows, double *A, int64_t ld)
{
    const double *left = A + row * ld + k;
    if (row > next)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)(row - next),
                    (int)(next - k), -1, left, (int)ld, A + next * ld + k, (int)ld, 1,
                    A + row * ld + next, (int)ld);
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)rows, (int)(next - k), -1, left,
                (int)ld, 1, A + row * ld + row, (int)ld);
}

/* All that follows the tile of the diagonal in columns k, ..., next - 1. */
static void eliminate(int64_t n, int64_t k, int64_t next, double *A, int64_t ld)
{
    int64_t tiles = (n - next + TILE - 1) / TILE;
    int threads = (int)fini_least(fin_threads_get(), tiles);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic)
        for (int64_t t = 0; t < tiles; t++) {
            int64_t row = next + t * TILE;
            cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
                        (int)fini_least(TILE, n - row), (int)(next - k), 1, A + k * ld + k, (int)ld,
                        A + row * ld + k, (int)ld);
        }
#pragma omp for schedule(dynamic)
        for (int64_t t = tiles - 1; t >= 0; t--) { /* the longest rows first */
            int64_t row = next + t * TILE;
            subtract(k, next, row, fini_least(TILE, n - row), A, ld);
        }
    }
}

fin_status fini_cholesky(int64_t n, double *A, int64_t ld, int64_t *pivot,
                         const fin_progress *progress, fin_error *err)
{
    assert(n >= 0 && ld >= n && ld <= INT_MAX);
    fin_status status = FIN_OK;
    int64_t bad = -1;
    double done = 0, total = (double)n * (double)n * (double)n / 3;
    fini_blas_enter();
    for (int64_t k = 0; k < n && bad < 0; k += TILE) {
        double rest = (double)(n - k);
        done = total - rest * rest * rest / 3;
        if (fini_report(progress, "Cholesky factor", done, total)) {
            status = fini_fail(err, FIN_ERR_CANCELLED,
                               "the Cholesky factor of a matrix of %lld rows was cancelled at "
                               "row %lld",
                               (long long)n, (long long)k);
            break;
        }
        int64_t next = fini_least(k + TILE, n);
        bad = factor_tile(k, next - k, A, ld);
        if (bad < 0 && next < n)
            eliminate(n, k, next, A, ld);
    }
    fini_blas_leave();
    if (pivot)
        *pivot = bad;
    if (bad >= 0)
        status = fini_fail(err, FIN_ERR_NUMERIC,
                           "the matrix of %lld rows is not positive definite: row %lld follows "
                           "from those before it, or holds a number that is not finite",
                           (long long)n, (long long)bad);
    return status;
}

/* Few columns one by one, at the speed of memory: the solver of many packs C first, which takes as
 * long as three of these. */
static bool few(int64_t n, int64_t m)
{
    return m == 1 || (m <= 3 && n >= 128);
}

static void solve(CBLAS_TRANSPOSE trans, int64_t n, const double *C, int64_t ld, int64_t m,
                  double *X, int64_t ldx)
{
    assert(ld <= INT_MAX && ldx <= INT_MAX);
    if (n == 0 || m == 0)
        return;
    int64_t width = few(n, m) ? 1 : COLUMNS, blocks = (m + width - 1) / width;
    int threads = width > 1 ? (int)fini_least(fin_threads_get(), blocks) : 1;
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t t = 0; t < blocks; t++) {
        double *x = X + t * width;
        if (width == 1)
            cblas_dtrsv(CblasRowMajor, CblasLower, trans, CblasNonUnit, (int)n, C, (int)ld, x,
                        (int)ldx);
        else
            cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, trans, CblasNonUnit, (int)n,
                        (int)fini_least(COLUMNS, m - t * width), 1, C, (int)ld, x, (int)ldx);
    }
    fini_blas_leave();
}

void fini_solve_lower(int64_t n, const double *C, int64_t ld, int64_t m, double *X, int64_t ldx)
{
    solve(CblasNoTrans, n, C, ld, m, X, ldx);
}

void fini_solve_upper(int64_t n, const double *C, int64_t ld, int64_t m, double *X, int64_t ldx)
{
    solve(CblasTrans, n, C, ld, m, X, ldx);
}

double fini_cholesky_logdet(int64_t n, const double *C, int64_t ld)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += log(C[i * ld + i]);
    return 2 * sum;
}
