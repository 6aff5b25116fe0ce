/* The Cholesky factor of a positive definite matrix: making it and solving with it.
 *
 * Large ones in tiles of a fixed size, one step for each tile of the diagonal: factor it, solve the
 * tiles below it, subtract their products from all that is to the right and below. Threads share
 * block rows, BLAS runs on one thread in each: every call of it is the same whatever the number of
 * threads, and so is every bit. (A row-major lower triangle is a column-major upper one, which is
 * what LAPACK is told.) Small ones by hand or by the kernels (kernel/solve_body.h). One rule for all
 * decides whether a pivot is rounding alone. */
#include "math/spd.h"

#include "kernel/kernel.h"
#include "math/gram.h"
#include "math/small.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>
#include <omp.h>

enum { TILE = 256, COLUMNS = 128 };
enum { BY_HAND = 32 };   /* rows up to which FINI_SPD_SMALL calls nobody */
enum { IN_CACHE = 256 }; /* rows up to which FINI_SPD_BATCH is the kernels' */
enum { LINE = 8 };       /* doubles in a cache line */

/* ---- pivots ---------------------------------------------------------------------------------- */

static bool holds(const fini_spd *o, double left, double whole)
{
    return fini_pivot_holds(left, whole) && left >= o->share * whole;
}

/* ---- in tiles ------------------------------------------------------------------------------- */

/* Rows first, ..., first + size - 1, whose tile of the diagonal has just been factored as far as
 * `good`: the first row that is not determined, or -1.
 *
 * C_ii^2 is what is left of A_ii when the rows before have explained what they can, and A_ii is the
 * sum of the squares of row i of C. BLAS does not notice a NaN, and what is left of a row that is a
 * combination of others is rounding: both count as a failure here. */
static int64_t first_bad(const fini_spd *o, int64_t first, int64_t size, int64_t good)
{
    for (int64_t i = first; i < first + good; i++) {
        const double *row = o->C + i * o->ld;
        double whole = cblas_ddot((int)i + 1, row, 1, row, 1);
        if (!holds(o, row[i] * row[i], whole) || !(row[i] > 0))
            return i;
    }
    return good < size ? first + good : -1;
}

static int64_t factor_tile(const fini_spd *o, int64_t first, int64_t size)
{
    lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)size,
                                          o->C + first * o->ld + first, (lapack_int)o->ld);
    return first_bad(o, first, size, info > 0 ? info - 1 : size);
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

static fin_status factor_tiled(fini_spd *o, const fin_progress *progress, fin_error *err)
{
    int64_t n = o->n;
    assert(n >= 0 && o->ld >= n && o->ld <= INT_MAX);
    fin_status status = FIN_OK;
    double done = 0, total = (double)n * (double)n * (double)n / 3;
    fini_blas_enter();
    for (int64_t k = 0; k < n && o->pivot < 0; k += TILE) {
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
        o->pivot = factor_tile(o, k, next - k);
        if (o->pivot < 0 && next < n)
            eliminate(n, k, next, o->C, o->ld);
    }
    fini_blas_leave();
    return status;
}

/* ---- by hand, by the kernels ----------------------------------------------------------------- */

/* Row by row: C_ij = (A_ij - sum_{c<j} C_ic C_jc) / C_jj. */
static int64_t factor_by_hand(const fini_spd *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        double *row = o->C + i * o->ld, left = row[i];
        for (int64_t j = 0; j < i; j++) {
            const double *other = o->C + j * o->ld;
            double rest = row[j];
            for (int64_t c = 0; c < j; c++)
                rest -= row[c] * other[c];
            row[j] = rest / other[j];
        }
        for (int64_t c = 0; c < i; c++)
            left -= row[c] * row[c];
        if (!holds(o, left, row[i]))
            return i;
        row[i] = sqrt(left);
    }
    return -1;
}

bool fini_spd_upper_half(int64_t n)
{
    return n <= IN_CACHE;
}

int64_t fini_spd_leading(int64_t columns)
{
    int64_t lines = (columns + FINI_PANEL_F64 + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

static bool upper(const fini_spd *o)
{
    return o->route == FINI_SPD_BATCH && fini_spd_upper_half(o->n);
}

/* A_ii from the squares above it. */
static double column_square(const fini_spd *o, int64_t i)
{
    double whole = 0;
    for (int64_t k = 0; k <= i; k++)
        whole += o->C[k * o->ld + i] * o->C[k * o->ld + i];
    return whole;
}

/* Nearly all pivots hold even beside the trace. */
static int64_t factor_upper(const fini_spd *o)
{
    double trace = 0;
    for (int64_t i = 0; i < o->n; i++)
        trace += o->C[i * o->ld + i];
    int64_t bad = fini_kernel_get()->factor(o->n, o->C, o->ld);
    for (int64_t i = 0; bad < 0 && i < o->n; i++) {
        double left = o->C[i * o->ld + i] * o->C[i * o->ld + i];
        bad = holds(o, left, trace) || holds(o, left, column_square(o, i)) ? -1 : i;
    }
    return bad;
}

fin_status fini_spd_factor(fini_spd *o, const fin_progress *progress, fin_error *err)
{
    o->pivot = -1;
    if (upper(o))
        o->pivot = factor_upper(o);
    else if (o->route == FINI_SPD_HAND || (o->route == FINI_SPD_SMALL && o->n <= BY_HAND))
        o->pivot = factor_by_hand(o);
    else
        return factor_tiled(o, progress, err);
    return FIN_OK;
}

/* ---- solving --------------------------------------------------------------------------------- */

/* Few columns one by one, at the speed of memory: the solver of many packs C first, which takes as
 * long as three of these. */
static bool few(int64_t n, int64_t m)
{
    return m == 1 || (m <= 3 && n >= 128);
}

static void solve(CBLAS_TRANSPOSE trans, const fini_spd *o, int64_t m, double *X, int64_t ldx)
{
    int64_t n = o->n, ld = o->ld;
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
            cblas_dtrsv(CblasRowMajor, CblasLower, trans, CblasNonUnit, (int)n, o->C, (int)ld, x,
                        (int)ldx);
        else
            cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, trans, CblasNonUnit, (int)n,
                        (int)fini_least(COLUMNS, m - t * width), 1, o->C, (int)ld, x, (int)ldx);
    }
    fini_blas_leave();
}

/* A column at a time, by rows of C, which lie one after another in memory. */
static void lower_by_hand(const fini_spd *o, double *x, int64_t ldx)
{
    for (int64_t i = 0; i < o->n; i++) {
        for (int64_t k = 0; k < i; k++)
            x[i * ldx] -= o->C[i * o->ld + k] * x[k * ldx];
        x[i * ldx] /= o->C[i * o->ld + i];
    }
}

static void upper_by_hand(const fini_spd *o, double *x, int64_t ldx)
{
    for (int64_t i = o->n - 1; i >= 0; i--) {
        x[i * ldx] /= o->C[i * o->ld + i];
        for (int64_t k = 0; k < i; k++)
            x[k * ldx] -= o->C[i * o->ld + k] * x[i * ldx];
    }
}

void fini_spd_lower(fini_spd o, int64_t m, double *X, int64_t ldx)
{
    if (upper(&o))
        fini_kernel_get()->forward(o.n, o.C, o.ld, m, X, ldx);
    else if (o.route != FINI_SPD_HAND)
        solve(CblasNoTrans, &o, m, X, ldx);
    else
        for (int64_t j = 0; j < m; j++)
            lower_by_hand(&o, X + j, ldx);
}

void fini_spd_upper(fini_spd o, int64_t m, double *X, int64_t ldx)
{
    if (upper(&o))
        fini_kernel_get()->back(o.n, o.C, o.ld, m, X, ldx);
    else if (o.route != FINI_SPD_HAND)
        solve(CblasTrans, &o, m, X, ldx);
    else
        for (int64_t j = 0; j < m; j++)
            upper_by_hand(&o, X + j, ldx);
}

void fini_spd_solve(fini_spd o, int64_t m, double *X, int64_t ldx)
{
    fini_spd_lower(o, m, X, ldx);
    fini_spd_upper(o, m, X, ldx);
}

double fini_spd_logdet(fini_spd o)
{
    double sum = 0;
    for (int64_t i = 0; i < o.n; i++)
        sum += log(o.C[i * o.ld + i]);
    return 2 * sum;
}
