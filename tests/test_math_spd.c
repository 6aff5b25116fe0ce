/* Cholesky factors: against the definition, the same bits for any number of threads, matrices that
 * are not positive definite, rows more and rows less, the inverse, and the guard around BLAS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/random.h"
#include "math/gram.h"
#include "math/spd.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *numbers(int64_t n)
{
    double *x = malloc((size_t)(n ? n : 1) * sizeof *x);
    assert_non_null(x);
    return x;
}

static double *normals(uint64_t seed, int64_t n)
{
    double *x = numbers(n);
    fin_random r;
    fin_random_open(&r, seed, 3100, 0);
    for (int64_t i = 0; i < n; i++)
        x[i] = fin_random_normal(&r);
    return x;
}

/* pivot NULL: there is a factor. A matrix without one is no failure, and says nothing. */
static fin_status cholesky(int64_t n, double *A, int64_t ld, int64_t *pivot,
                           const fin_progress *progress, fin_error *err)
{
    fini_spd o = fini_spd_of(n, A, ld);
    fin_status status = fini_spd_factor(&o, progress, err);
    if (pivot)
        *pivot = o.pivot;
    else
        assert_int_equal(o.pivot, -1);
    return status;
}

enum { ABOVE = -7 };

/* Covariances of n keys in the plane plus `noise` on the diagonal: eigenvalues from noise up to
 * about n. ABOVE above the diagonal and past it. */
static double *covariances(int64_t n, int64_t ld, double noise)
{
    double *a = normals(1, n * 2), *A = numbers(n * ld);
    fin_covariance c;
    fin_settings_defaults(&fin_covariance_table, &c, sizeof c);
    for (int64_t t = 0; t < n * ld; t++)
        A[t] = ABOVE;
    fini_covariance_lower(&c, 2, n, a, A, ld);
    for (int64_t i = 0; i < n; i++)
        A[i * ld + i] += noise;
    free(a);
    return A;
}

static double *copy_of(const double *x, int64_t n)
{
    double *y = numbers(n);
    memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

static double element(const double *A, int64_t ld, int64_t i, int64_t j) /* of a symmetric matrix */
{
    return i >= j ? A[i * ld + j] : A[j * ld + i];
}

static void assert_above_untouched(int64_t n, const double *A, int64_t ld)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < ld; j++)
            assert_true(A[i * ld + j] == ABOVE);
}

/* |C C' - A| <= roundings eps |C| |C'| element by element, with n + 1 roundings for a fresh factor
 * (Higham, Accuracy and Stability, theorem 10.3), and |C_i| |C_j| = sqrt(A_ii A_jj). Elements in
 * steps that reach every tile and edge. */
static void assert_factor_of(int64_t n, const double *C, const double *A, int64_t ld,
                             int64_t roundings)
{
    for (int64_t i = 0; i < n; i += 1 + (i > 3 && i < n - 3) * (i % 7))
        for (int64_t j = 0; j <= i; j += 1 + (j > 3 && j < i - 3) * (j % 5)) {
            long double sum = 0;
            for (int64_t k = 0; k <= j; k++)
                sum += (long double)C[i * ld + k] * C[j * ld + k];
            double size = sqrt(A[i * ld + i] * A[j * ld + j]);
            assert_true(fabsl(sum - A[i * ld + j]) <= (double)roundings * DBL_EPSILON * size);
        }
    for (int64_t i = 0; i < n; i++)
        assert_true(C[i * ld + i] > 0);
}

static void cholesky__is_a_factor_at_every_size(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 2, 3, 31, 255, 256, 257, 512, 700};
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
        int64_t n = sizes[t], ld = n + 5, pivot = 99;
        double *A = covariances(n, ld, 1e-3), *C = copy_of(A, n * ld);
        assert_int_equal(cholesky(n, C, ld, &pivot, NULL, NULL), FIN_OK);
        assert_int_equal(pivot, -1);
        assert_factor_of(n, C, A, ld, n + 1);
        assert_above_untouched(n, C, ld);
        free(A);
        free(C);
    }
}

static void all__same_bits_for_any_threads(void **state)
{
    (void)state;
    enum { N = 800, LD = 803, M = 300 };
    double *A = covariances(N, LD, 1e-2), *V = normals(2, N * M), *before[4] = {NULL};
    for (int threads = 1; threads <= 3; threads++) {
        double *C = copy_of(A, N * LD), *X = copy_of(V, N * M), *Y = copy_of(V, N * M);
        fin_threads_set(threads);
        assert_int_equal(cholesky(N, C, LD, NULL, NULL, NULL), FIN_OK);
        fini_spd_lower(fini_spd_of(N, C, LD), M, X, M);
        fini_spd_upper(fini_spd_of(N, C, LD), M, Y, M);
        double *inverse = copy_of(C, N * LD);
        assert_int_equal(fini_spd_inverse(fini_spd_of(N, inverse, LD), NULL), FIN_OK);
        assert_above_untouched(N, inverse, LD);
        double *const now[4] = {C, X, Y, inverse};
        const size_t sizes[4] = {N * LD, N * M, N * M, N * LD};
        for (int v = 0; v < 4; v++) {
            if (before[v])
                assert_memory_equal(before[v], now[v], sizes[v] * sizeof *A);
            free(before[v]);
            before[v] = now[v];
        }
    }
    for (int v = 0; v < 4; v++)
        free(before[v]);
    fin_threads_set(0);
    free(A);
    free(V);
}

static void expect_pivot(int64_t n, const double *A, int64_t ld, int64_t expected)
{
    double *C = copy_of(A, n * ld);
    fin_error err = {FIN_OK, ""};
    int64_t pivot = -5;
    assert_int_equal(cholesky(n, C, ld, &pivot, NULL, &err), FIN_OK);
    assert_int_equal(pivot, expected);
    assert_string_equal(err.message, "");
    free(C);
}

static void cholesky__names_the_row_that_fails(void **state)
{
    (void)state;
    enum { N = 600 };
    const int64_t rows[] = {0, 1, 100, 255, 256, 300, 511, 512, 599};
    double *A = covariances(N, N, 1e-2);
    for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        int64_t i = rows[t];
        double diagonal = A[i * N + i], before = A[i * N];
        const double bad[] = {0, -1, NAN, INFINITY, -INFINITY};
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            A[i * N + i] = bad[b];
            expect_pivot(N, A, N, i);
        }
        A[i * N + i] = diagonal;
        if (i > 0) { /* off the diagonal it shows in the same row */
            A[i * N] = NAN;
            expect_pivot(N, A, N, i);
            A[i * N] = INFINITY;
            expect_pivot(N, A, N, i);
            A[i * N] = before;
        }
    }
    free(A);
}

/* Row i once more as row j, without noise: rounding is all that is left of it, and its sign is
 * chance. With 1e-12 on the diagonal, the smallest jitter, it is positive definite. */
static void cholesky__a_repeated_row_fails_and_jitter_helps(void **state)
{
    (void)state;
    const int64_t n = 300;
    for (int64_t i = 3; i < 250; i += 60)
        for (int64_t j = i + 1; j < n; j += 13) {
            double *A = covariances(n, n, 0.5);
            for (int64_t k = 0; k < n; k++)
                if (k < j)
                    A[j * n + k] = element(A, n, i, k);
                else if (k > j)
                    A[k * n + j] = element(A, n, i, k);
            A[j * n + j] = A[i * n + i];
            expect_pivot(n, A, n, j);
            double *C = copy_of(A, n * n);
            assert_int_equal(cholesky(j, C, n, NULL, NULL, NULL), FIN_OK);
            assert_false(fini_spd_append(fini_spd_of(j, C, n), A + j * n));
            free(C);
            A[j * n + j] *= 1 + 1e-12;
            assert_int_equal(cholesky(n, A, n, NULL, NULL, NULL), FIN_OK);
            free(A);
        }
}

/* Every route: the same factor, solutions and pivots, but for rounding; for the kernels in the upper
 * triangle. A share above what is left of a row makes that row the one that fails. */
static void routes__agree(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 7, 32, 33, 100, 256, 257};
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++)
        for (int route = FINI_SPD_TILED; route <= FINI_SPD_BATCH; route++) {
            int64_t n = sizes[t], ld = fini_spd_leading(n);
            bool upper = route == FINI_SPD_BATCH && fini_spd_upper_half(n);
            double *A = covariances(n, ld, 1e-2), *C = copy_of(A, n * ld), *X = normals(4, n * 24);
            double *Y = copy_of(X, n * 24);
            for (int64_t i = 0; i < n && upper; i++)
                for (int64_t j = 0; j < i; j++)
                    C[j * ld + i] = A[i * ld + j];
            double *again = copy_of(C, n * ld);
            fini_spd tiled = fini_spd_of(n, copy_of(A, n * ld), ld);
            fini_spd o = {.n = n, .ld = ld, .C = C, .route = (fini_spd_route)route};
            assert_int_equal(fini_spd_factor(&tiled, NULL, NULL), FIN_OK);
            assert_int_equal(fini_spd_factor(&o, NULL, NULL), FIN_OK);
            assert_true(o.pivot == -1 && tiled.pivot == -1);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j <= i; j++) {
                    double c = upper ? C[j * ld + i] : C[i * ld + j];
                    assert_true(fabs(c - tiled.C[i * ld + j]) < 1e-11);
                }
            assert_true(fabs(fini_spd_logdet(o) - fini_spd_logdet(tiled)) < 1e-9);
            fini_spd_solve(o, 3, X, 24);
            fini_spd_solve(tiled, 3, Y, 24);
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < 3; c++)
                    assert_true(fabs(X[24 * i + c] - Y[24 * i + c]) < 1e-9);
            int64_t row = n / 2;
            double left = tiled.C[row * ld + row] * tiled.C[row * ld + row];
            memcpy(C, again, (size_t)(n * ld) * sizeof *C);
            o.share = left / A[row * ld + row] * (1 + 1e-6);
            fini_spd_factor(&o, NULL, NULL);
            int64_t first = row;
            for (int64_t i = row - 1; i >= 0; i--)
                if (tiled.C[i * ld + i] * tiled.C[i * ld + i] < o.share * A[i * ld + i])
                    first = i;
            assert_int_equal(o.pivot, first);
            o.share = 0;
            memcpy(C, again, (size_t)(n * ld) * sizeof *C);
            C[row * ld + row] = NAN;
            fini_spd_factor(&o, NULL, NULL);
            assert_int_equal(o.pivot, row);
            free(A);
            free(C);
            free(X);
            free(Y);
            free(again);
            free(tiled.C);
        }
}

/* Into the factor and out of it again; what a matrix does not have cannot be taken out. */
static void rank_one__goes_both_ways(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 3, 4, 5, 63, 130};
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
        int64_t n = sizes[t], ld = n + 2;
        double *A = covariances(n, ld, 0.5), *C = copy_of(A, n * ld), *v = normals(9, n);
        double *more = copy_of(A, n * ld), *x = copy_of(v, n), *room = numbers(2 * n);
        assert_int_equal(cholesky(n, C, ld, NULL, NULL, NULL), FIN_OK);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                more[i * ld + j] += v[i] * v[j];
        assert_true(fini_spd_rank_one(fini_spd_of(n, C, ld), 1, x, room));
        assert_factor_of(n, C, more, ld, n + 20);
        memcpy(x, v, (size_t)n * sizeof *x);
        assert_true(fini_spd_rank_one(fini_spd_of(n, C, ld), -1, x, room));
        assert_factor_of(n, C, A, ld, 100 * n + 100);
        for (int64_t i = 0; i < n; i++)
            x[i] = 1e3 * v[i];
        assert_false(fini_spd_rank_one(fini_spd_of(n, C, ld), -1, x, room));
        free(A);
        free(C);
        free(v);
        free(more);
        free(x);
        free(room);
    }
}

/* ---- jitter ---------------------------------------------------------------------------------- */

typedef struct filler {
    fini_spd *o;
    double lack, jitter[FINI_SPD_STEPS]; /* what the last diagonal element lacks of 1 */
    int calls;
} filler;

/* Two rows of ones: positive definite once the last diagonal element is above 1. */
static void fill_ones(void *user, double jitter)
{
    filler *f = user;
    f->jitter[f->calls++] = jitter;
    for (int i = 0; i < 4; i++)
        f->o->C[i] = 1;
    f->o->C[0] += jitter;
    f->o->C[3] += jitter - f->lack;
}

static void ladder__takes_the_first_jitter_that_works(void **state)
{
    (void)state;
    double C[4];
    for (int leap = 0; leap < 2; leap++)
        for (int power = -13; power <= -7; power++) {
            fini_spd o = fini_spd_of(2, C, 2);
            filler f = {&o, .lack = power < -12 ? -1e-3 : 1.5 * pow(10, power)};
            fini_spd_steps steps = {fill_ones, &f, .last = FINI_SPD_STEPS - 1, .leap = leap};
            int works = power + 13 < 5 ? (leap && power > -13 ? 5 : power + 13) : 5;
            assert_int_equal(fini_spd_ladder(&o, &steps, NULL, NULL), FIN_OK);
            assert_true(fabs(steps.mean - 1) < 1e-2);
            assert_int_equal(o.pivot, power < -7 ? -1 : 1);
            assert_int_equal(f.calls, leap && works > 0 ? 2 : works + 1);
            assert_true(f.jitter[0] == 0 && o.jitter == f.jitter[f.calls - 1]);
            assert_true(fabs(o.jitter - (works ? pow(10, works - 13) : 0)) <
                        1e-3 * o.jitter + 1e-30);
            assert_int_equal(o.stopped, works ? 1 : 0);
            f.calls = 0; /* from a later step on, and to an earlier one */
            steps = (fini_spd_steps){fill_ones, &f, 1, .first = 1, .last = 1};
            assert_int_equal(fini_spd_ladder(&o, &steps, NULL, NULL), FIN_OK);
            assert_true(f.calls == 1 && (o.pivot < 0) == (power <= -12) && o.jitter == 1e-12);
        }
    fini_spd o = fini_spd_of(2, C, 2);
    filler f = {&o, .lack = INFINITY};
    fini_spd_steps steps = {fill_ones, &f, .last = FINI_SPD_STEPS - 1};
    assert_int_equal(fini_spd_ladder(&o, &steps, NULL, NULL), FIN_OK);
    assert_true(o.pivot >= 0 && f.calls == 1 && !isfinite(steps.mean));
}

/* By a table or pair by pair: the same answer. */
static void contradiction__finds_the_first_pair(void **state)
{
    (void)state;
    enum { N = 200, DK = 3, DV = 2, LDV = 5 };
    double keys[N * DK], values[N * LDV] = {0}, room[N];
    for (int seed = 0; seed < 60; seed++) {
        fin_random r;
        fin_random_open(&r, (uint64_t)seed, 3100, 1);
        int64_t kinds = 1 + fin_random_below(&r, 400), later = -1, before = -1, earlier = -2;
        for (int64_t i = 0; i < N; i++) {
            int64_t kind = fin_random_below(&r, kinds);
            keys[i * DK] = keys[i * DK + 1] = kind % 3 ? 1 : i % 2 ? 0.0 : -0.0;
            keys[i * DK + 2] = (double)kind;
            values[i * LDV + 1] = (double)(kind + (fin_random_below(&r, 100) == 0));
        }
        fini_tokens t = {N, DK, DV, LDV, keys, values};
        for (int64_t i = 0; i < N && later < 0; i++)
            for (int64_t j = 0; j < i && later < 0; j++)
                if (keys[i * DK + 2] == keys[j * DK + 2] &&
                    values[i * LDV + 1] != values[j * LDV + 1])
                    later = i, before = j;
        assert_int_equal(fini_spd_contradiction(&t, 0, room, &earlier), later);
        if (later < 0)
            continue;
        assert_int_equal(earlier, before);
        t.n = later + 1;
        assert_int_equal(fini_spd_contradiction(&t, later, room, &earlier), later);
        assert_int_equal(earlier, before);
        t.n = later;
        assert_int_equal(fini_spd_contradiction(&t, 0, room, &earlier), -1);
        t.n = 0;
        assert_int_equal(fini_spd_contradiction(&t, 0, room, &earlier), -1);
    }
}

typedef struct watcher {
    int calls, stop_at;
    double last, total;
} watcher;

static int watch(void *user, const char *what, double done, double total)
{
    watcher *o = user;
    assert_non_null(what);
    assert_true(done >= o->last && done <= total);
    o->last = done;
    o->total = total;
    return ++o->calls == o->stop_at;
}

static void cholesky__reports_and_cancels(void **state)
{
    (void)state;
    enum { N = 800 };
    double *A = covariances(N, N, 1e-2), *C = copy_of(A, N * N);
    watcher o = {.stop_at = -1};
    fin_progress progress = {watch, &o};
    assert_int_equal(cholesky(N, C, N, NULL, &progress, NULL), FIN_OK);
    assert_true(o.calls >= 3 && o.last > 0 && o.last < o.total);
    o = (watcher){.stop_at = 2};
    memcpy(C, A, N * N * sizeof *C);
    fin_error err = {FIN_OK, ""};
    int64_t pivot;
    assert_int_equal(cholesky(N, C, N, &pivot, &progress, &err), FIN_ERR_CANCELLED);
    assert_true(o.calls == 2 && pivot == -1 && strstr(err.message, "cancelled"));
    free(A);
    free(C);
}

/* C (C^-1 X) = X and C'(C'^-1 X) = X, residuals relative to |C| |solution| row by row (Higham,
 * theorem 8.5). */
static void solves__leave_small_residuals(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 65, 300}, columns[] = {0, 1, 2, 3, 7, 129, 260};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t t = 0; t < sizeof columns / sizeof *columns; t++) {
            int64_t n = sizes[s], m = columns[t], ldx = m + 3;
            double *C = covariances(n, n + 1, 1e-4), *X = normals(3, n * ldx);
            assert_int_equal(cholesky(n, C, n + 1, NULL, NULL, NULL), FIN_OK);
            double *L = copy_of(X, n * ldx), *U = copy_of(X, n * ldx);
            fini_spd_lower(fini_spd_of(n, C, n + 1), m, L, ldx);
            fini_spd_upper(fini_spd_of(n, C, n + 1), m, U, ldx);
            for (int64_t i = 0; i < n; i += 1 + i % 3)
                for (int64_t j = 0; j < ldx; j += 1 + (j < m - 3) * (j % 4)) {
                    long double lower = 0, upper = 0, size[2] = {0, 0};
                    for (int64_t k = 0; k < n; k++) {
                        long double x = (long double)(k <= i ? C[i * (n + 1) + k] : 0);
                        long double y = (long double)(k >= i ? C[k * (n + 1) + i] : 0);
                        lower += x * L[k * ldx + j];
                        upper += y * U[k * ldx + j];
                        size[0] += fabsl(x * L[k * ldx + j]);
                        size[1] += fabsl(y * U[k * ldx + j]);
                    }
                    if (j >= m) { /* beyond the columns nothing is touched */
                        assert_true(L[i * ldx + j] == X[i * ldx + j]);
                        assert_true(U[i * ldx + j] == X[i * ldx + j]);
                        continue;
                    }
                    double allowed = (double)(n + 1) * DBL_EPSILON;
                    assert_true(fabsl(lower - X[i * ldx + j]) <= allowed * size[0]);
                    assert_true(fabsl(upper - X[i * ldx + j]) <= allowed * size[1]);
                }
            free(C);
            free(X);
            free(L);
            free(U);
        }
    fini_spd_lower(fini_spd_of(0, NULL, 1), 3, NULL, 3);
}

static void append__builds_the_factor_row_by_row(void **state)
{
    (void)state;
    enum { N = 300, LD = 304 };
    double *A = covariances(N, LD, 1e-2), *C = numbers(N * LD), *in_place = copy_of(A, N * LD);
    for (int t = 0; t < N * LD; t++)
        C[t] = ABOVE;
    for (int64_t i = 0; i < N; i++) {
        assert_true(fini_spd_append(fini_spd_of(i, C, LD), A + i * LD));
        assert_true(fini_spd_append(fini_spd_of(i, in_place, LD), in_place + i * LD));
    }
    assert_factor_of(N, C, A, LD, N + 1);
    assert_above_untouched(N, C, LD);
    assert_memory_equal(C, in_place, N * LD * sizeof *C);
    free(A);
    free(C);
    free(in_place);
}

static void append__refuses_and_leaves_the_factor(void **state)
{
    (void)state;
    enum { N = 20, LD = N + 1 };
    double *A = covariances(LD, LD, 1e-2), *C = copy_of(A, LD * LD), row[LD];
    assert_int_equal(cholesky(N, C, LD, NULL, NULL, NULL), FIN_OK);
    double *before = copy_of(C, LD * LD);
    for (int v = 0; v < 5; v++) {
        memcpy(row, A + N * LD, sizeof row);
        row[v < 3 ? N : 4] = v == 0 ? -1 : v == 1 ? NAN : v == 2 ? 1e-9 : v == 3 ? NAN : INFINITY;
        assert_false(fini_spd_append(fini_spd_of(N, C, LD), row));
        assert_memory_equal(C, before, N * LD * sizeof *C);
    }
    assert_true(fini_spd_append(fini_spd_of(N, C, LD), A + N * LD));
    assert_factor_of(LD, C, A, LD, LD + 1);
    double zero = 0, one[1];
    assert_false(fini_spd_append(fini_spd_of(0, one, 1), &zero));
    free(A);
    free(C);
    free(before);
}

/* The roundings of the whole factor stay, and each column that is added has six of its own. */
static void drop_from(int64_t n, const int64_t *counts, int64_t many)
{
    int64_t ld = n + 5;
    double *A = covariances(n, ld, 1e-2), *factor = copy_of(A, n * ld);
    assert_int_equal(cholesky(n, factor, ld, NULL, NULL, NULL), FIN_OK);
    for (int64_t t = 0; t < many; t++) {
        int64_t count = counts[t];
        double *C = copy_of(factor, n * ld);
        fini_spd_drop(fini_spd_of(n, C, ld), count);
        assert_factor_of(n - count, C, A + count * ld + count, ld, n + 1 + 6 * count);
        free(C);
    }
    free(A);
    free(factor);
}

static void drop__leaves_the_factor_of_the_rest(void **state)
{
    (void)state;
    const int64_t counts[] = {0, 1, 2, 63, 64, 65, 200, 268, 269}, few[] = {1, 3};
    drop_from(270, counts, sizeof counts / sizeof *counts);
    drop_from(1100, few, 2);
}

/* A window of 50 tokens that slides over 2000: 1950 rows in and out. The error of each step is a
 * few units, and they add up at worst; a factor by subtraction would have lost its digits by
 * then. */
static void drop__a_sliding_window_stays_accurate(void **state)
{
    (void)state;
    enum { TOKENS = 2000, WINDOW = 50, LD = WINDOW + 1 };
    double *a = normals(4, TOKENS * 2), C[LD * LD], A[LD * LD], row[LD];
    fin_covariance c;
    fin_settings_defaults(&fin_covariance_table, &c, sizeof c);
    const double noise = 1e-3;
    int64_t held = 0;
    for (int64_t i = 0; i < TOKENS; i++) {
        fini_covariance_tile(&c, 2, 1, a + 2 * i, held + 1, a + 2 * (i - held), row, LD);
        row[held] += noise;
        assert_true(fini_spd_append(fini_spd_of(held, C, LD), row));
        if (++held > WINDOW) {
            fini_spd_drop(fini_spd_of(held, C, LD), 1);
            held--;
        }
    }
    fini_covariance_tile(&c, 2, held, a + 2 * (TOKENS - held), held, a + 2 * (TOKENS - held), A,
                         LD);
    double worst = 0;
    for (int64_t i = 0; i < held; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = -A[i * LD + j] - (i == j ? noise : 0);
            for (int64_t k = 0; k <= j; k++)
                sum += C[i * LD + k] * C[j * LD + k];
            worst = fmax(worst, fabs(sum));
        }
    print_message("error after %d rows: %.2g\n", TOKENS, worst);
    assert_true(worst <= 2 * WINDOW * 8 * DBL_EPSILON);
    free(a);
}

static void logdet__of_known_matrices(void **state)
{
    (void)state;
    /* A = D (I + 1 1') D: det = (n + 1) prod D_i^2. */
    enum { N = 40, LD = 41 };
    double A[N * LD], expected = log(N + 1);
    for (int i = 0; i < N; i++) {
        expected += 2 * log(1e-9 * pow(3, i));
        for (int j = 0; j <= i; j++)
            A[i * LD + j] = (1 + (i == j)) * 1e-18 * pow(3, i + j);
    }
    assert_int_equal(cholesky(N, A, LD, NULL, NULL, NULL), FIN_OK);
    assert_true(fabs(fini_spd_logdet(fini_spd_of(N, A, LD)) - expected) < 1e-12 * fabs(expected));
    assert_true(fini_spd_logdet(fini_spd_of(0, NULL, 1)) == 0);
}

/* |A^-1 A - I| <= c n eps |A^-1| |A|, in the largest row sums. */
static void inverse__times_matrix_is_identity(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 1, 2, 100, 256, 257, 530};
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
        int64_t n = sizes[t], ld = n + 2;
        double *A = covariances(n, ld, 1e-2), *W = copy_of(A, n * ld), *one = numbers(n);
        assert_int_equal(cholesky(n, W, ld, NULL, NULL, NULL), FIN_OK);
        assert_int_equal(fini_spd_inverse(fini_spd_of(n, W, ld), NULL), FIN_OK);
        assert_above_untouched(n, W, ld);
        double norm_A = 0, norm_W = 0;
        for (int64_t i = 0; i < n; i++) {
            double a = 0, w = 0;
            for (int64_t j = 0; j < n; j++) {
                a += fabs(element(A, ld, i, j));
                w += fabs(element(W, ld, i, j));
            }
            norm_A = fmax(norm_A, a);
            norm_W = fmax(norm_W, w);
        }
        for (int64_t i = 0; i < n; i += 1 + i % 11) {
            memset(one, 0, (size_t)n * sizeof *one);
            for (int64_t k = 0; k < n; k++)
                for (int64_t j = 0; j < n; j++)
                    one[j] += element(W, ld, i, k) * element(A, ld, k, j);
            for (int64_t j = 0; j < n; j++)
                assert_true(fabs(one[j] - (i == j)) <= (double)n * DBL_EPSILON * norm_A * norm_W);
        }
        free(A);
        free(W);
        free(one);
    }
}

static fin_status run_inverse(void *user, fin_error *err)
{
    double C[4] = {2, ABOVE, 1, 3};
    (void)user;
    return fini_spd_inverse(fini_spd_of(2, C, 2), err);
}

static void inverse__survives_failed_allocations(void **state)
{
    (void)state;
    assert_true(fault_every(run_inverse, NULL) >= 1);
}

static void blas__guard_nests_and_gives_back_the_threads(void **state)
{
    (void)state;
    openblas_set_num_threads(2);
    fini_blas_enter();
    assert_int_equal(openblas_get_num_threads(), 1);
    fini_blas_enter();
    fini_blas_leave();
    assert_int_equal(openblas_get_num_threads(), 1);
    fini_blas_leave();
    assert_int_equal(openblas_get_num_threads(), 2);
    int wrong = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 2000; i++) {
        fini_blas_enter();
        wrong += openblas_get_num_threads() != 1;
        fini_blas_leave();
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(openblas_get_num_threads(), 2);
    openblas_set_num_threads(1);
}

/* Two threads that come and go until they have met often: each sees that the other has moved on
 * between two turns of its own, as it does only while both are running. */
static void blas__guard_holds_where_threads_meet(void **state)
{
    (void)state;
    enum { OFTEN = 2000, PATIENCE = 5000000 };
    atomic_long turns[2] = {0, 0};
    atomic_int enough = 0;
    int wrong = 0;
    openblas_set_num_threads(2);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    {
        int me = omp_get_thread_num(), other = omp_get_num_threads() - 1 - me;
        long met = 0, seen = 0;
        for (long i = 0; i < PATIENCE && met < OFTEN && !atomic_load(&enough); i++) {
            fini_blas_enter();
            wrong += openblas_get_num_threads() != 1;
            fini_blas_leave();
            atomic_fetch_add(&turns[me], 1);
            long now = atomic_load(&turns[other]);
            met += now != seen;
            seen = now;
        }
        atomic_store(&enough, 1);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(openblas_get_num_threads(), 2);
    openblas_set_num_threads(1);
}

/* What an OpenBLAS with OpenMP asks for: one thread inside, for every thread that enters, and
 * afterwards what it was, whoever leaves last. */
static void blas__guard_keeps_the_number_of_every_thread(void **state)
{
    (void)state;
    int wrong = 0;
    openblas_set_num_threads(2);
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    {
        int me = omp_get_thread_num();
        omp_set_num_threads(3 + me);
        if (me == 0)
            fini_blas_enter();
#pragma omp barrier
        if (me == 1)
            fini_blas_enter();
        wrong += omp_get_max_threads() != 1;
#pragma omp barrier
        if (me == 0)
            fini_blas_leave();
#pragma omp barrier
        if (me == 1)
            fini_blas_leave();
        wrong += omp_get_max_threads() != 3 + me;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(openblas_get_num_threads(), 2);
    openblas_set_num_threads(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cholesky__is_a_factor_at_every_size),
        cmocka_unit_test(all__same_bits_for_any_threads),
        cmocka_unit_test(cholesky__names_the_row_that_fails),
        cmocka_unit_test(cholesky__a_repeated_row_fails_and_jitter_helps),
        cmocka_unit_test(routes__agree),
        cmocka_unit_test(rank_one__goes_both_ways),
        cmocka_unit_test(ladder__takes_the_first_jitter_that_works),
        cmocka_unit_test(contradiction__finds_the_first_pair),
        cmocka_unit_test(cholesky__reports_and_cancels),
        cmocka_unit_test(solves__leave_small_residuals),
        cmocka_unit_test(append__builds_the_factor_row_by_row),
        cmocka_unit_test(append__refuses_and_leaves_the_factor),
        cmocka_unit_test(drop__leaves_the_factor_of_the_rest),
        cmocka_unit_test(drop__a_sliding_window_stays_accurate),
        cmocka_unit_test(logdet__of_known_matrices),
        cmocka_unit_test(inverse__times_matrix_is_identity),
        cmocka_unit_test(inverse__survives_failed_allocations),
        cmocka_unit_test(blas__guard_nests_and_gives_back_the_threads),
        cmocka_unit_test(blas__guard_holds_where_threads_meet),
        cmocka_unit_test(blas__guard_keeps_the_number_of_every_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
