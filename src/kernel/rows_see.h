/* How a row of tokens is seen, then rows_body.h for both types of tokens, then floats that stay floats. */

#define INLINE static inline __attribute__((always_inline))
/* AHEAD, FAR: bytes between what is read and what is asked for beforehand. Rows are short, and the
 * processor's own guess stops with each of them. */
enum { STEP = 8, REGISTERS = STEP / WD, AHEAD = 4096, FAR = 8192 };

typedef struct sight { /* of one register of columns */
    bool raw;
    vd center, low, high;
} sight;

INLINE sight sight_at(bool raw, const double *center, const double *bound)
{
    sight s = {raw, SET_D(0.0), SET_D(0.0), SET_D(0.0)};
    if (!raw) {
        s.center = LOAD_D(center);
        s.high = LOAD_D(bound);
        s.low = -s.high;
    }
    return s;
}

INLINE vd see(sight s, vd x)
{
    return s.raw ? x : MAX_D(s.low, MIN_D(s.high, x - s.center)); /* NaN is the second one */
}

/* The last columns, fewer than STEP, filled up with zeros. */
typedef struct rest {
    int64_t n;
    double center[STEP], bound[STEP];
} rest;

INLINE rest rest_of(int64_t d, const double *center, const double *bound)
{
    rest end = {d % STEP, {0}, {0}};
    for (int64_t j = 0; j < end.n && center; j++) {
        end.center[j] = center[d - end.n + j];
        end.bound[j] = bound[d - end.n + j];
    }
    return end;
}

/* n, but at most what a register has. */
INLINE int least(int64_t n)
{
    return n < WD ? (int)n : WD;
}

#define REAL float
#define NAME(name) name##_f32
#define FETCH(p) WIDEN(p)
#define FETCH_SOME(p, n) WIDE(load_some_f(p, n), 0)
#include "kernel/rows_body.h"

#define REAL double
#define NAME(name) name##_f64
#define FETCH(p) LOAD_D(p)
#define FETCH_SOME(p, n) load_some_d(p, n)
#include "kernel/rows_body.h"

/* ---- in float --------------------------------------------------------------------------------------
 *
 * LANES numbers of a row are one step: one register, or two. Rows are read from memory as they are needed, and
 * nothing is kept of what is seen of them: writing it down costs more than seeing it again, from the cache. */

enum { LANES = FINI_ROWS_LANES, PARTS = LANES / WF, TOGETHER = WF == LANES ? 4 : 2 };

/* Registers of columns of which sums are kept together. */
enum { SIDE_BY_SIDE = WF == LANES ? 4 : 2 };

/* WF numbers of a row from j on, 0 behind its end, cut off. */
INLINE vf cut_off(bool whole, const float *x, int64_t j, int64_t d, vf low, vf high)
{
    int64_t n = d - j < 0 ? 0 : d - j < WF ? d - j : WF;
    vf t = whole ? LOAD_F(x + j) : load_some_f(x + (n ? j : 0), (int)n);
    return MAX_F(low, MIN_F(high, t)); /* NaN is the second one */
}

/* Sums of lanes, as fold_f does it; eight registers at once where they are wide. */
INLINE void fold_all(int n, vf sum[8][2], double *out)
{
#if WF == 16
    if (n == 8) {
        vf two[4], four[2];
        for (int k = 0; k < 4; k++)
            two[k] = PAIR_HALVES(sum[2 * k][0], sum[2 * k + 1][0]);
        for (int k = 0; k < 2; k++)
            four[k] = PAIR_QUARTERS(two[2 * k], two[2 * k + 1]);
        STORE_D(out, last_folds(four[0], four[1]));
        return;
    }
#endif
    for (int i = 0; i < n; i++)
        out[i] = (double)fold_f(sum[i][0], sum[i][1]);
}

INLINE void meet_step(int R, int C, bool whole, const fini_rows_view *view, int64_t j,
                      const float *X, const float *W, vf sum[8][2])
{
    int64_t d = view->d, wide = FINI_ROWS_WIDE(d);
    for (int h = 0; h < PARTS; h++, j += WF) {
        vf low = LOAD_F(view->low + j), high = LOAD_F(view->high + j), w[2];
        for (int c = 0; c < C; c++)
            w[c] = LOAD_F(W + c * wide + j);
        for (int r = 0; r < R; r++) {
            vf t = cut_off(whole, X + r * d, j, d, low, high);
            for (int c = 0; c < C; c++)
                sum[r * C + c][h] = FMA_F(w[c], t, sum[r * C + c][h]);
        }
    }
}

/* R rows and C directions. */
INLINE void meet_float(int R, int C, const fini_rows_view *view, const float *X, const float *W,
                       const double *start, double *U, int64_t q)
{
    int64_t d = view->d;
    for (int64_t from = 0; from < d; from += FINI_ROWS_COLUMNS) {
        vf sum[8][2];
        double part[8];
        for (int i = 0; i < R * C; i++)
            sum[i][0] = sum[i][1] = SET_F(0);
        int64_t to = d - from < FINI_ROWS_COLUMNS ? d : from + FINI_ROWS_COLUMNS, j = from;
        for (; j + LANES <= to; j += LANES)
            meet_step(R, C, true, view, j, X, W, sum);
        if (j < to)
            meet_step(R, C, false, view, j, X, W, sum);
        fold_all(R * C, sum, part);
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++)
                U[r * q + c] = (from ? U[r * q + c] : start[c]) + part[r * C + c];
    }
}

INLINE void ask_ahead(int64_t numbers, const float *X)
{
    for (int64_t at = 0; at < numbers; at += 16)
        __builtin_prefetch((const char *)(X + at) + FAR);
}

/* Groups of rows; the last one goes back over some that were seen, as rows one by one wait for their sums. */
static void project_float(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                          const float *W, const double *start, double *U)
{
    int64_t d = view->d, wide = FINI_ROWS_WIDE(d), all = q == 1 ? 2 * TOGETHER : TOGETHER;
    int64_t groups = rows < all ? 0 : (rows + all - 1) / all;
    for (int64_t g = 0; g < groups; g++) {
        int64_t r = g + 1 < groups ? g * all : rows - all, c = 0;
        const float *x = X + r * d;
        double *u = U + r * q;
        ask_ahead(all * d, x);
        if (q == 1) {
            meet_float(2 * TOGETHER, 1, view, x, W, start, u, 1);
            continue;
        }
        for (; c + 2 <= q; c += 2)
            meet_float(TOGETHER, 2, view, x, W + c * wide, start + c, u + c, q);
        if (c < q)
            meet_float(TOGETHER, 1, view, x, W + c * wide, start + c, u + c, q);
    }
    for (int64_t r = 0; r < rows && !groups; r++)
        for (int64_t c = 0; c < q; c++)
            meet_float(1, 1, view, X + r * d, W + c * wide, start + c, U + r * q + c, q);
}

/* V registers of columns from j on, the last one not whole, and C directions. */
INLINE void collect_float(int V, int C, bool whole, int64_t rows, const fini_rows_view *view,
                          int64_t j, const float *X, int64_t q, const double *D, double *G,
                          double *total)
{
    int64_t d = view->d, wide = FINI_ROWS_WIDE(d);
    vf all[2] = {SET_F(0), SET_F(0)}, sum[SIDE_BY_SIDE][2], low[SIDE_BY_SIDE], high[SIDE_BY_SIDE];
    for (int v = 0; v < V; v++) {
        low[v] = LOAD_F(view->low + j + v * WF);
        high[v] = LOAD_F(view->high + j + v * WF);
        for (int c = 0; c < C; c++)
            sum[v][c] = SET_F(0);
    }
    for (int64_t r = 0; r < rows; r++) {
        vf by[2];
        for (int c = 0; c < C; c++) {
            by[c] = SET_F((float)D[r * q + c]);
            all[c] += by[c];
        }
        for (int v = 0; v < V; v++) {
            vf t = cut_off(whole || v + 1 < V, X + r * d, j + v * WF, d, low[v], high[v]);
            for (int c = 0; c < C; c++)
                sum[v][c] = FMA_F(by[c], t, sum[v][c]);
        }
    }
    for (int v = 0; v < V; v++)
        for (int c = 0; c < C; c++) {
            double *to = G + c * wide + j + v * WF;
            STORE_D(to, LOAD_D(to) + WIDE(sum[v][c], 0));
            STORE_D(to + WD, LOAD_D(to + WD) + WIDE(sum[v][c], 1));
        }
    for (int c = 0; c < C && j == 0; c++)
        total[c] += (double)all[c][0];
}

INLINE void collect_columns(int V, bool whole, int64_t rows, const fini_rows_view *view, int64_t j,
                            const float *X, int64_t q, const double *D, double *G, double *total)
{
    int64_t wide = FINI_ROWS_WIDE(view->d), c = 0;
    for (; c + 2 <= q; c += 2)
        collect_float(V, 2, whole, rows, view, j, X, q, D + c, G + c * wide, total + c);
    if (c < q)
        collect_float(V, 1, whole, rows, view, j, X, q, D + c, G + c * wide, total + c);
}

static void gather_float(int64_t rows, const fini_rows_view *view, const float *X, int64_t q,
                         const double *D, double *G, double *total)
{
    int64_t d = view->d;
    for (int64_t at = 0, n; at < rows; at += n, X += n * d, D += n * q) {
        int64_t j = 0;
        n = rows - at < FINI_ROWS_TOGETHER ? rows - at : FINI_ROWS_TOGETHER;
        for (; j + SIDE_BY_SIDE * WF <= d; j += SIDE_BY_SIDE * WF)
            collect_columns(SIDE_BY_SIDE, true, n, view, j, X, q, D, G, total);
        if (d - j > 3 * WF)
            collect_columns(SIDE_BY_SIDE, false, n, view, j, X, q, D, G, total);
        else if (d - j > 2 * WF)
            collect_columns(SIDE_BY_SIDE < 3 ? 2 : 3, false, n, view, j, X, q, D, G, total);
        else if (d - j > WF)
            collect_columns(2, false, n, view, j, X, q, D, G, total);
        else if (d > j)
            collect_columns(1, false, n, view, j, X, q, D, G, total);
    }
}

/* ---- sums of blocks -------------------------------------------------------------------------------- */

INLINE void climb(int64_t blocks, int64_t n, double *parts, int V)
{
    for (int64_t h = 1; h < blocks; h *= 2)
        for (int64_t a = 0; a + h < blocks; a += 2 * h)
            for (int v = 0; v < V; v++) {
                double *into = parts + a * n + v * WD;
                STORE_D(into, LOAD_D(into) + LOAD_D(into + h * n));
            }
}

static void add_tree(int64_t blocks, int64_t n, double *parts, int64_t from, int64_t to)
{
    for (; from + 32 <= to; from += 32)
        climb(blocks, n, parts + from, 32 / WD);
    for (; from + WD <= to; from += WD)
        climb(blocks, n, parts + from, 1);
    for (int64_t h = 1; h < blocks && from < to; h *= 2)
        for (int64_t a = 0; a + h < blocks; a += 2 * h)
            for (int64_t i = from; i < to; i++)
                parts[a * n + i] += parts[(a + h) * n + i];
}

const fini_rows TABLE_OF(rows) = {project_f32,  project_f64, gather_f32, gather_f64, project_float,
                                  gather_float, sums_f32,    sums_f64,   add_tree};
