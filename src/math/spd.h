/* The one core of Gaussian conditioning: a positive definite matrix A = C C', given by a triangle.
 *
 *     factor          fini_spd_factor, fini_spd_ladder (with the jitter that rounding may need)
 *     what it bears   fini_pivot_holds, fini_spd_contradiction, fini_spd_harmless
 *     solve           fini_spd_lower, fini_spd_upper, fini_spd_solve, fini_spd_inverse, fini_spd_logdet
 *     change          fini_spd_append, fini_spd_drop (rows), fini_spd_rank_one
 *
 * Row-major with a leading dimension. Work is cut into tiles of a fixed size, each tile is done by
 * one thread with BLAS on one thread: no bit of a result depends on the number of threads. */
#ifndef FINI_SPD_H
#define FINI_SPD_H

#include "base/base.h"

#include <float.h>
#include <math.h>

/* How it is computed, which the size decides within each. */
typedef enum fini_spd_route {
    FINI_SPD_TILED, /* lower triangle, in tiles by LAPACK: from a few rows to 32 768 */
    FINI_SPD_SMALL, /* the same, but up to 32 rows factored by hand: of these there are thousands */
    FINI_SPD_HAND,  /* lower triangle, everything by hand, whatever the size */
    FINI_SPD_BATCH /* up to 256 rows the upper triangle (A = U'U) by the kernels, which keep it in a
                     * core's own cache; beyond that as tiled. Rows and columns of X have the leading
                     * dimension of fini_spd_leading. */
} fini_spd_route;

typedef struct fini_spd {
    int64_t n, ld;
    double *C; /* (n, ld): A, then its factor; the other triangle is not touched */
    fini_spd_route route;
    double share;    /* a pivot must leave more than this of its diagonal element; 0: 64 eps */
    double jitter;   /* of a ladder: what it added to the diagonal */
    int64_t pivot;   /* after an attempt: the row that stopped it, or -1: there is a factor */
    int64_t stopped; /* of a ladder: the row that stopped the step before the last */
} fini_spd;

/* Of a matrix or its factor in the lower triangle. */
static inline fini_spd fini_spd_of(int64_t n, double *C, int64_t ld)
{
    return (fini_spd){.n = n, .ld = ld, .C = C, .pivot = -1};
}

/* ---- factors --------------------------------------------------------------------------------- */

/* A becomes C, in parallel if it is large. A matrix that is not positive definite is no failure but
 * an answer, o->pivot (what is in o->C is of no use then), and so is one whose numbers are not
 * finite; only cancelling is: err stays as it is otherwise. */
fin_status fini_spd_factor(fini_spd *o, const fin_progress *progress, fin_error *err);
/* Is a pivot of `left`, what remains of a diagonal element `whole`, more than rounding? False for
 * NaN. The rule of all factors: left > 64 eps whole. */
static inline bool fini_pivot_holds(double left, double whole)
{
    return left > 64 * DBL_EPSILON * whole && isfinite(whole);
}

/* Steps 0 .. 5 add nothing, 1e-12, 1e-11, ... 1e-8 of the mean diagonal. */
enum { FINI_SPD_STEPS = 6 };
typedef struct fini_spd_steps {
    void (*fill)(void *user, double jitter); /* the triangle of A + jitter I */
    void *user;
    double mean;     /* of the diagonal; taken from the matrix on step 0 */
    int first, last; /* steps to try; first > 0 needs a mean */
    bool leap;       /* from step 0 to the last one */
} fini_spd_steps;
/* Fills and factors with the first jitter that leaves a factor; o->pivot says whether one did. A
 * mean that is not finite ends it at once. */
fin_status fini_spd_ladder(fini_spd *o, fini_spd_steps *steps, const fin_progress *progress,
                           fin_error *err);

/* ---- what values bear ------------------------------------------------------------------------ */

typedef struct fini_tokens {
    int64_t n, dk, dv, ldv;
    const double *keys, *values; /* (n, dk), (n, dv) with leading dimension ldv */
} fini_tokens;
/* Without noise a function has one value at one key: the first token from number `from` on that has
 * the key of an earlier one and other values, or -1. 0 is -0. room: n doubles. */
int64_t fini_spd_contradiction(const fini_tokens *t, int64_t from, double *room, int64_t *earlier);
/* (A + jitter I) alpha = values: jitter * alpha is what the means at the tokens miss. A jitter above
 * the noise may leave that within 1e-6 of the largest value and 8 standard deviations of noise of
 * that variance. One column of each, because every column has its own unit. */
bool fini_spd_harmless(double jitter, double noise, int64_t n, const double *alpha, int64_t lda,
                       const double *values, int64_t ldv);

/* ---- with a factor --------------------------------------------------------------------------- */

/* X (n, m) <- C^-1 X, C'^-1 X, A^-1 X. In parallel over columns of X where there are many. */
void fini_spd_lower(fini_spd o, int64_t m, double *X, int64_t ldx);
void fini_spd_upper(fini_spd o, int64_t m, double *X, int64_t ldx);
void fini_spd_solve(fini_spd o, int64_t m, double *X, int64_t ldx);
/* 2 sum log C_ii. */
double fini_spd_logdet(fini_spd o);
/* Numbers from .. from + b - 1 of the diagonal of A^-1, of a lower factor. room: (n - from) b doubles. */
void fini_spd_inverse_diagonal(fini_spd o, int64_t from, int64_t b, double *out, double *room);
/* The lower triangle of A^-1 = C'^-1 C^-1, in place of C (not of an upper one). */
fin_status fini_spd_inverse(fini_spd o, fin_error *err);

/* Of lower factors. One more row: row[0..n-1] = A[n][0..n-1], row[n] = A[n][n]; becomes row n of C.
 * False if A is not positive definite any more (C is as it was then, but for row n). row may be row
 * n of C itself. O(n^2). */
bool fini_spd_append(fini_spd o, const double *row);
/* Without its first `count` rows and columns: C is then (n - count) and starts where it did. O(n^2)
 * for each of them, by rotations. */
void fini_spd_drop(fini_spd o, int64_t count);
/* Of A + x x' (sign 1) or A - x x' (-1): O(n^2). x is lost; room: 2 n doubles. False if the result is
 * not safely positive definite; C is spoilt then. */
bool fini_spd_rank_one(fini_spd o, int sign, double *x, double *room);

/* ---- the triangle of FINI_SPD_BATCH ---------------------------------------------------------- */

bool fini_spd_upper_half(int64_t n);
/* Room for a panel more than the columns, and an odd number of cache lines. */
int64_t fini_spd_leading(int64_t columns);

#endif
