/* A Cholesky factor that changes: one row more at its end, some less at its beginning, and a rank-one
 * matrix more or less. The last two are rotations of columns of C with a column x that is added or
 * taken out. */
#include "math/gram.h"
#include "math/small.h"
#include "math/spd.h"

#include <assert.h>
#include <cblas.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* With row n of A = (y'C', .): C_n = (y, sqrt(A_nn - y.y)). */
bool fini_spd_append(fini_spd o, const double *row)
{
    int64_t n = o.n;
    assert(n >= 0 && o.ld > n && o.ld <= INT_MAX);
    double *to = o.C + n * o.ld, whole = row[n], left = whole;
    memmove(to, row, (size_t)n * sizeof *to);
    if (n > 0) {
        fini_blas_enter();
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, o.C, (int)o.ld,
                    to, 1);
        left -= cblas_ddot((int)n, to, 1, to, 1);
        fini_blas_leave();
    }
    if (!fini_pivot_holds(left, whole) || left < o.share * whole)
        return false;
    to[n] = sqrt(left);
    return true;
}

/* ---- rotations ------------------------------------------------------------------------------- */

enum { SIDE = 4 }; /* rows turned side by side, because each number of x waits for the one before */

/* c and s of as many rotations as there are columns. */
typedef struct rotations {
    double *c, *s;
    bool careful; /* lengths that neither over- nor underflow on the way */
} rotations;

/* Rotations from, ..., to - 1 of `rows` rows of L (which begin at column 0 of them) and of the
 * numbers of x, `step` apart. sign -1 is the mixed form of the downdate (Bojanczyk, Brent, van Dooren
 * and de Hoog 1987), the stable one. */
static inline __attribute__((always_inline)) void rotate(const rotations *o, int sign, int64_t from,
                                                         int64_t to, int rows, double *L,
                                                         int64_t ld, double *x, int64_t step)
{
    double y[SIDE];
    for (int r = 0; r < rows; r++)
        y[r] = x[r * step];
    for (int64_t k = from; k < to; k++) {
        double c = o->c[k], s = o->s[k], inverse = sign > 0 ? 0 : 1 / c;
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            double old = L[r * ld + k];
            double turned = sign > 0 ? c * old + s * y[r] : (old - s * y[r]) * inverse;
            L[r * ld + k] = turned;
            y[r] = c * y[r] - s * (sign > 0 ? old : turned);
        }
    }
    for (int r = 0; r < rows; r++)
        x[r * step] = y[r];
}

/* The rotation that takes x into (sign 1) or out of (-1) the pivot. */
static bool turn_pivot(const rotations *o, int64_t k, int sign, double *pivot, double x)
{
    double square = *pivot * *pivot + sign * x * x;
    double root = o->careful ? hypot(*pivot, x) : sqrt(square);
    if (!o->careful && !(square > DBL_EPSILON * *pivot * *pivot))
        return false;
    o->c[k] = sign > 0 ? *pivot / root : root / *pivot;
    o->s[k] = sign > 0 ? x / root : x / *pivot;
    *pivot = root;
    return true;
}

/* `rows` rows that go on to the diagonal, which the first meets at rotation k: k turns of all of
 * them, then one more each. */
static inline __attribute__((always_inline)) bool extend(const rotations *o, int sign, int64_t k,
                                                         int64_t rows, double *L, int64_t ld,
                                                         double *x, int64_t step)
{
    int64_t from = rows == SIDE ? k : 0;
    if (rows == SIDE)
        rotate(o, sign, 0, k, SIDE, L, ld, x, step);
    for (int64_t r = 0; r < rows; r++) {
        rotate(o, sign, from, k + r, 1, L + r * ld, ld, x + r * step, step);
        if (!turn_pivot(o, k + r, sign, L + r * ld + k + r, x[r * step]))
            return false;
    }
    return true;
}

static inline __attribute__((always_inline)) bool rank_one(fini_spd o, int sign, double *x,
                                                           double *room)
{
    const rotations turns = {room, room + o.n, false};
    bool safe = true;
    for (int64_t i = 0; i < o.n && safe; i += SIDE)
        safe = extend(&turns, sign, i, fini_least(SIDE, o.n - i), o.C + i * o.ld, o.ld, x + i, 1);
    return safe;
}

bool fini_spd_rank_one(fini_spd o, int sign, double *x, double *room)
{
    return sign > 0 ? rank_one(o, 1, x, room) : rank_one(o, -1, x, room);
}

/* ---- rows less ------------------------------------------------------------------------------- */

enum { BLOCK = 1024 }; /* columns whose rotations are kept at a time */

/* Rows and columns at, ..., n - 1 of C become the factor of L L' + x x', x being column `from` of
 * the same rows, which is lost. Rows move up and left by `shift` as soon as they are done: nobody
 * needs what was there. */
static void add_column(fini_spd o, int64_t at, int64_t from, int64_t shift)
{
    double c[BLOCK], s[BLOCK];
    const rotations turns = {c, s, true};
    int64_t ld = o.ld;
    for (int64_t j = at; j < o.n; j += BLOCK) {
        int64_t end = fini_least(j + BLOCK, o.n), i = j;
        for (; i < end; i += SIDE) {
            int64_t rows = fini_least(SIDE, end - i);
            extend(&turns, 1, i - j, rows, o.C + i * ld + j, ld, o.C + i * ld + from, ld);
            for (int64_t r = i; shift && r < i + rows; r++)
                memmove(o.C + (r - shift) * ld, o.C + r * ld + shift,
                        (size_t)(r - shift + 1) * sizeof *o.C);
        }
        for (i = end; i + SIDE <= o.n; i += SIDE)
            rotate(&turns, 1, 0, end - j, SIDE, o.C + i * ld + j, ld, o.C + i * ld + from, ld);
        for (; i < o.n; i++)
            rotate(&turns, 1, 0, end - j, 1, o.C + i * ld + j, ld, o.C + i * ld + from, ld);
    }
}

/* C = (L11, 0; L21, L22): A22 = L22 L22' + L21 L21', so that dropping rows *adds* the columns of
 * L21 to L22. Nothing is ever subtracted, and no length of a sliding window makes it unstable. */
void fini_spd_drop(fini_spd o, int64_t count)
{
    for (int64_t k = 0; k < count && count < o.n; k++)
        add_column(o, count, k, k == count - 1 ? count : 0);
}
