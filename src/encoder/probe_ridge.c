/* The ridge probe: for x and y of mean 0 (and y of deviation 1, so that every column counts the
 * same in the choice),
 *
 *     minimise (1/n) sum_i |y_i - W x_i|^2 + penalty |W|^2
 *
 * With X'X / n = V diag(s) V' and Z = X V, every penalty costs only a product:
 *
 *     C = Z'Y / n,  D = diag(1 / (s + penalty)) C,  W' = V D,  fit = Z D
 *     h_i = 1/n + sum_k Z_ik^2 / (n (s_k + penalty))          the mean's share, and the hat matrix
 *     left-one-out residual of row i = (y_i - fit_i) / (1 - h_i)        (Allen 1974)
 *
 * With fewer rows than features X X' / n = U diag(s) U' is the smaller matrix: Z = U diag(sqrt(n s))
 * and V = X'Z diag(1 / (n s)). Directions with s below 1e-12 of the largest are left out: X says
 * nothing about them, and a penalty of 0 then gives the shortest of all solutions. */
#include "encoder/probe.h"

#include "math/gram.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

enum { HALF_DECADES = 23 }; /* penalties 1e-8 .. 1e3 */

typedef struct ridge {
    int64_t n, p, m, r; /* r: the smaller of n and p */
    const double *x;
    double *y, *y_mean, *y_scale;    /* (n, m), (m) */
    double *s, *V, *Z, *C, *D, *fit; /* (r), (p, r), (n, r), (r, m), (r, m), (n, m) */
    double *G, *work;
    lapack_int *places;
    int64_t works, place_count;
} ridge;

static void lay_out(ridge *o, fini_arena *arena)
{
    int64_t n = o->n, p = o->p, m = o->m, r = o->r;
    o->works = 1 + 6 * r + 2 * r * r; /* what dsyevd asks for */
    o->place_count = 3 + 5 * r;
    o->y = fini_take(arena, n * m, sizeof(double));
    o->y_mean = fini_take(arena, m, sizeof(double));
    o->y_scale = fini_take(arena, m, sizeof(double));
    o->s = fini_take(arena, r, sizeof(double));
    o->V = fini_take(arena, p * r, sizeof(double));
    o->Z = fini_take(arena, n * r, sizeof(double));
    o->C = fini_take(arena, r * m, sizeof(double));
    o->D = fini_take(arena, r * m, sizeof(double));
    o->fit = fini_take(arena, n * m, sizeof(double));
    o->G = fini_take(arena, r * r, sizeof(double));
    o->work = fini_take(arena, o->works, sizeof(double));
    o->places = fini_take(arena, o->place_count, sizeof *o->places);
}

static void standardise(ridge *o, const double *y)
{
    for (int64_t c = 0; c < o->m; c++) {
        fini_probe_column(o->n, o->m, y + c, &o->y_mean[c], &o->y_scale[c]);
        for (int64_t i = 0; i < o->n; i++)
            o->y[i * o->m + c] =
                o->y_scale[c] > 0 ? (y[i * o->m + c] - o->y_mean[c]) / o->y_scale[c] : 0;
    }
}

/* out (a, b) = x'y or x y, all row-major. */
static void multiply(bool transposed, int64_t a, int64_t b, int64_t inner, double scale,
                     const double *x, const double *y, double *out)
{
    cblas_dgemm(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)a, (int)b,
                (int)inner, scale, x, (int)(transposed ? a : inner), y, (int)b, 0, out, (int)b);
}

/* s, V and Z. dsyevd leaves vector k in column k, of LAPACK's columns: row k of ours. */
static fin_status decompose(ridge *o, fin_error *err)
{
    int64_t n = o->n, p = o->p, r = o->r;
    bool wide = n < p;
    cblas_dsyrk(CblasRowMajor, CblasUpper, wide ? CblasNoTrans : CblasTrans, (int)r,
                (int)(wide ? p : n), 1 / (double)n, o->x, (int)p, 0, o->G, (int)r);
    lapack_int info =
        LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)r, o->G, (lapack_int)r, o->s,
                            o->work, (lapack_int)o->works, o->places, (lapack_int)o->place_count);
    if (info)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "probe: the eigenvalues of the features' covariance were not found");
    double least = 1e-12 * fmax(o->s[r - 1], 0);
    double *first = wide ? o->Z : o->V; /* (n, r) or (p, r): the vectors as columns */
    for (int64_t i = 0; i < r; i++)
        for (int64_t k = 0; k < r; k++)
            first[i * r + k] = o->s[k] > least ? o->G[k * r + i] : 0;
    if (!wide) {
        multiply(false, n, r, p, 1, o->x, o->V, o->Z);
        return FIN_OK;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < r; k++)
            if (o->s[k] > least)
                o->Z[i * r + k] *= sqrt((double)n * o->s[k]);
    multiply(true, p, r, n, 1, o->x, o->Z, o->V);
    for (int64_t j = 0; j < p; j++)
        for (int64_t k = 0; k < r; k++)
            o->V[j * r + k] = o->s[k] > least ? o->V[j * r + k] / ((double)n * o->s[k]) : 0;
    return FIN_OK;
}

static void shrink(ridge *o, double penalty)
{
    for (int64_t k = 0; k < o->r; k++)
        for (int64_t c = 0; c < o->m; c++) {
            double x = o->C[k * o->m + c];
            o->D[k * o->m + c] = x != 0 ? x / (o->s[k] + penalty) : 0;
        }
}

/* Mean square of the left-one-out residuals. */
static double leave_one_out(ridge *o, double penalty)
{
    double total = 0;
    shrink(o, penalty);
    multiply(false, o->n, o->m, o->r, 1, o->Z, o->D, o->fit);
    for (int64_t i = 0; i < o->n; i++) {
        double h = 1, squares = 0;
        for (int64_t k = 0; k < o->r; k++) {
            double z = o->Z[i * o->r + k];
            h += z != 0 ? z * z / (o->s[k] + penalty) : 0;
        }
        for (int64_t c = 0; c < o->m; c++)
            squares += pow(o->y[i * o->m + c] - o->fit[i * o->m + c], 2);
        double left = 1 - h / (double)o->n;
        if (left < 1e-10) /* the row is fitted whatever it says */
            return INFINITY;
        total += squares / (left * left);
    }
    return total / (double)o->n;
}

/* The largest of those that are best. */
static double choose(ridge *o)
{
    double best = INFINITY, chosen = 1;
    for (int k = HALF_DECADES - 1; k >= 0; k--) {
        double penalty = pow(10, -8 + k / 2.0), loss = leave_one_out(o, penalty);
        if (loss < best) {
            best = loss;
            chosen = penalty;
        }
    }
    return chosen;
}

static fin_status fit(ridge *o, fin_probe *probe, double penalty, fin_error *err)
{
    FINI_TRY(decompose(o, err));
    multiply(true, o->r, o->m, o->n, 1 / (double)o->n, o->Z, o->y, o->C);
    probe->penalty = fin_is_auto(penalty) ? choose(o) : penalty;
    shrink(o, probe->penalty);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, (int)o->m, (int)o->p, (int)o->r, 1, o->D,
                (int)o->m, o->V, (int)o->r, 0, probe->W, (int)o->p);
    for (int64_t c = 0; c < o->m; c++) {
        probe->b[c] = o->y_mean[c];
        for (int64_t j = 0; j < o->p; j++)
            probe->W[c * o->p + j] *= o->y_scale[c];
    }
    return FIN_OK;
}

fin_status fini_probe_ridge(fin_probe *probe, const fini_probe_rows *rows, double penalty,
                            fin_error *err)
{
    ridge o = {.n = rows->n, .p = rows->p, .m = rows->m, .x = rows->x};
    fini_arena arena = {0};
    o.r = o.n < o.p ? o.n : o.p;
    FINI_LAY_OUT(err, &arena, "a ridge probe", lay_out(&o, &arena));
    standardise(&o, rows->y);
    fini_blas_enter();
    fin_status status = fit(&o, probe, penalty, err);
    fini_blas_leave();
    fini_arena_close(&arena);
    return status;
}
