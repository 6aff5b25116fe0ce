/* One row more at the end of a Cholesky factor, and some rows less at its beginning. */
#include "math/gram.h"

#include <cblas.h>
#include <limits.h>
#include <assert.h>
#include <math.h>
#include <string.h>

/* With row n of A = (y'C', .): C_n = (y, sqrt(A_nn - y.y)). */
bool fini_cholesky_append(int64_t n, double *C, int64_t ld, const double *row)
{
    assert(n >= 0 && ld > n && ld <= INT_MAX);
    double *to = C + n * ld, whole = row[n], left = whole;
    memmove(to, row, (size_t)n * sizeof *to);
    if (n > 0) {
        fini_blas_enter();
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, C, (int)ld, to,
                    1);
        left -= cblas_ddot((int)n, to, 1, to, 1);
        fini_blas_leave();
    }
    if (!fini_pivot_holds(left, whole))
        return false;
    to[n] = sqrt(left);
    return true;
}

/* Rotations of columns j, j + 1, ... of C, one each, with the column that is added. */
enum { BLOCK = 1024, SIDE = 4 };
typedef struct rotations {
    int64_t count;
    double c[BLOCK], s[BLOCK];
} rotations;

/* Rotations from, ..., to - 1 of `rows` rows of L (which begin at column j) and of the numbers of x
 * in the same rows. SIDE rows side by side, because each number of x waits for the one before. */
static inline __attribute__((always_inline)) void
rotate(const rotations *o, int64_t from, int64_t to, int rows, double *L, double *x, int64_t ld)
{
    double y[SIDE];
    for (int r = 0; r < rows; r++)
        y[r] = x[r * ld];
    for (int64_t k = from; k < to; k++) {
        double c = o->c[k], s = o->s[k];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            double l = L[r * ld + k];
            L[r * ld + k] = c * l + s * y[r];
            y[r] = c * y[r] - s * l;
        }
    }
    for (int r = 0; r < rows; r++)
        x[r * ld] = y[r];
}

/* Rotations 0, ..., count - 1 of all of these rows. */
static void rotate_rows(const rotations *o, int64_t rows, double *L, double *x, int64_t ld)
{
    int64_t i = 0;
    for (; i + SIDE <= rows; i += SIDE)
        rotate(o, 0, o->count, SIDE, L + i * ld, x + i * ld, ld);
    for (; i < rows; i++)
        rotate(o, 0, o->count, 1, L + i * ld, x + i * ld, ld);
}

/* SIDE or fewer rows that go on to the diagonal, the first at rotation `count`: one more rotation
 * each, which turns (L_ii, x_i) into (r, 0). */
static void extend(rotations *o, int64_t rows, double *L, double *x, int64_t ld)
{
    int64_t first = o->count;
    rotate_rows(o, rows, L, x, ld);
    for (int64_t r = 0; r < rows; r++) {
        double *row = L + r * ld, *end = x + r * ld;
        rotate(o, first, o->count, 1, row, end, ld);
        double length = hypot(row[o->count], *end);
        o->c[o->count] = row[o->count] / length;
        o->s[o->count] = *end / length;
        row[o->count++] = length;
    }
}

/* Rows and columns at, ..., n - 1 of C become the factor of L L' + x x', x being column `from` of
 * the same rows, which is lost. Rows move up and left by `shift` as soon as they are done: nobody
 * needs what was there. */
static void add_column(int64_t n, int64_t at, int64_t from, int64_t shift, double *C, int64_t ld)
{
    for (int64_t j = at; j < n; j += BLOCK) {
        rotations o;
        o.count = 0;
        int64_t end = j + BLOCK < n ? j + BLOCK : n;
        for (int64_t i = j; i < end; i += SIDE) {
            int64_t rows = end - i < SIDE ? end - i : SIDE;
            extend(&o, rows, C + i * ld + j, C + i * ld + from, ld);
            for (int64_t r = i; shift && r < i + rows; r++)
                memmove(C + (r - shift) * ld, C + r * ld + shift,
                        (size_t)(r - shift + 1) * sizeof *C);
        }
        rotate_rows(&o, n - end, C + end * ld + j, C + end * ld + from, ld);
    }
}

/* C = (L11, 0; L21, L22): A22 = L22 L22' + L21 L21', so that dropping rows *adds* the columns of
 * L21 to L22. Nothing is ever subtracted, and no length of a sliding window makes it unstable. */
void fini_cholesky_drop(int64_t n, int64_t count, double *C, int64_t ld)
{
    if (count <= 0 || count >= n)
        return;
    for (int64_t k = 0; k < count; k++)
        add_column(n, count, k, k == count - 1 ? count : 0, C, ld);
}
