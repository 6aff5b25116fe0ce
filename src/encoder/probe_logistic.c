/* The logistic probe: multinomial,
 *
 *     minimise (1/n) sum_i -log softmax(W x_i + b)_{y_i} + penalty |W|^2 / 2
 *
 * by L-BFGS (math/lbfgs.c). The penalty is chosen by the mean log loss of rows left out, in
 * stratified folds: 5, or 3 from 2000 rows on. Penalties go down from 1 by half decades, every fit
 * starts where the last one of its fold ended, and the search stops after two that are worse than
 * the best. Sums over rows go by a fixed number of blocks, which threads share. */
#include "encoder/probe.h"

#include "math/gram.h"
#include "math/lbfgs.h"
#include "math/small.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { HALF_DECADES = 13, BLOCKS = 32, CHUNK = 128, FOLDS_MOST = 5, MANY = 2000, FEW = 1000000 };
#define ABSENT (-40.0) /* bias of a class that no row has: a probability of 4e-18 */

typedef struct logistic {
    int64_t n, p, m, size; /* size: m p + m parameters, W and then b */
    const double *x, *y;
    double penalty;
    uint8_t *fold;           /* (n) */
    int folds, held;         /* learns from rows of other folds than `held`; -1: from all */
    double *gradients;       /* (BLOCKS, size) */
    double *logits;          /* (BLOCKS, CHUNK, m) */
    double *losses, *counts; /* (BLOCKS) */
    double *paths;           /* (FOLDS_MOST, size): where the fits of the folds are */
    fini_lbfgs search;
} logistic;

static void lay_out(logistic *o, fini_arena *arena)
{
    o->fold = fini_take(arena, o->n, 1);
    o->gradients = fini_take(arena, o->size, BLOCKS * sizeof(double));
    o->logits = fini_take(arena, o->m, BLOCKS * CHUNK * sizeof(double));
    o->losses = fini_take(arena, BLOCKS, sizeof(double));
    o->counts = fini_take(arena, BLOCKS, sizeof(double));
    o->paths = fini_take(arena, o->size, FOLDS_MOST * sizeof(double));
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* Is row i in the sum? Learning takes the rows that are not held out, judging those that are. */
static bool counts_row(const logistic *o, int64_t i, bool judge)
{
    return o->held < 0 || (o->fold[i] == o->held) == judge;
}

/* Rows from .. from + rows - 1: adds to the block's loss and, unless judging, to its gradient. */
static void add_chunk(logistic *o, const double *w, int64_t block, int64_t from, int64_t rows,
                      bool judge)
{
    int64_t m = o->m, p = o->p;
    const double *x = o->x + from * p, *b = w + m * p;
    double *f = o->logits + block * CHUNK * m, *g = o->gradients + block * o->size;
    for (int64_t i = 0; i < rows; i++)
        memcpy(f + i * m, b, (size_t)m * sizeof *f);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)m, (int)p, 1, x, (int)p, w,
                (int)p, 1, f, (int)m);
    for (int64_t i = 0; i < rows; i++) {
        double *row = f + i * m;
        if (!counts_row(o, from + i, judge)) {
            memset(row, 0, (size_t)m * sizeof *row);
            continue;
        }
        int64_t c = (int64_t)o->y[from + i];
        double own = row[c];
        o->losses[block] += fini_softmax_libm(m, row, true) - own;
        o->counts[block]++;
        row[c] -= 1;
    }
    if (judge)
        return;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)p, (int)rows, 1, f, (int)m, x,
                (int)p, 1, g, (int)p);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < m; c++)
            g[m * p + c] += f[i * m + c];
}

/* Mean loss of the rows; the blocks' gradients are left where they are. Returns how many rows. */
static double sum_rows(logistic *o, const double *w, bool judge, double *loss)
{
    double total = 0, count = 0;
    int threads = o->n * o->size < FEW ? 1 : fin_threads_get(); /* else waiting takes longest */
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t block = 0; block < BLOCKS; block++) {
        int64_t from = o->n * block / BLOCKS, end = o->n * (block + 1) / BLOCKS;
        o->losses[block] = o->counts[block] = 0;
        if (!judge)
            memset(o->gradients + block * o->size, 0, (size_t)o->size * sizeof(double));
        for (; from < end; from += CHUNK)
            add_chunk(o, w, block, from, end - from < CHUNK ? end - from : CHUNK, judge);
    }
    for (int64_t block = 0; block < BLOCKS; block++) {
        total += o->losses[block];
        count += o->counts[block];
    }
    *loss = total / count;
    return count;
}

static fin_status value(void *user, const double *w, double *loss, double *gradient, fin_error *err)
{
    (void)err;
    logistic *o = user;
    double count = sum_rows(o, w, false, loss);
    for (int64_t i = 0; i < o->size; i++) {
        double g = 0;
        for (int64_t block = 0; block < BLOCKS; block++)
            g += o->gradients[block * o->size + i];
        gradient[i] = g / count;
        if (i < o->m * o->p) {
            gradient[i] += o->penalty * w[i];
            *loss += o->penalty * w[i] * w[i] / 2;
        }
    }
    return FIN_OK;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Biases that give every class its share of the rows. */
static void start(const logistic *o, double *w)
{
    double *b = w + o->m * o->p, count = 0;
    memset(w, 0, (size_t)o->size * sizeof *w);
    for (int64_t i = 0; i < o->n; i++)
        if (counts_row(o, i, false)) {
            b[(int64_t)o->y[i]]++;
            count++;
        }
    for (int64_t c = 0; c < o->m; c++)
        b[c] = b[c] > 0 ? log(b[c] / count) : ABSENT;
}

/* Dealt class by class, each class beginning with the fold where the last one stopped. seen: (m). */
static void deal(logistic *o, double *seen)
{
    int64_t next = 0;
    o->folds = o->n < MANY ? FOLDS_MOST : 3;
    if (o->folds > o->n)
        o->folds = (int)o->n;
    memset(seen, 0, (size_t)o->m * sizeof *seen);
    for (int64_t i = 0; i < o->n; i++)
        seen[(int64_t)o->y[i]]++;
    for (int64_t c = 0; c < o->m; c++) {
        int64_t count = (int64_t)seen[c];
        seen[c] = (double)next;
        next = (next + count) % o->folds;
    }
    for (int64_t i = 0; i < o->n; i++) {
        double *place = &seen[(int64_t)o->y[i]];
        o->fold[i] = (uint8_t)((int64_t)*place % o->folds);
        *place += 1;
    }
}

/* rough: as near the minimum as a choice needs. */
static fin_status descend(logistic *o, double penalty, bool rough, double *w, fin_error *err)
{
    o->penalty = penalty;
    o->search.gradient = rough ? 1e-4 : 1e-8;
    o->search.decrease = rough ? 1e-5 : 1e-13;
    o->search.iterations = rough ? 200 : 2000;
    return fini_lbfgs_run(&o->search, w, err);
}

/* Mean log loss of the rows left out, over all folds. */
static fin_status judge(logistic *o, double penalty, double *loss, fin_error *err)
{
    double total = 0, rows = 0;
    for (o->held = 0; o->held < o->folds; o->held++) {
        double *w = o->paths + o->held * o->size, one, count;
        FINI_TRY(descend(o, penalty, true, w, err));
        count = sum_rows(o, w, true, &one);
        total += one * count;
        rows += count;
    }
    o->held = -1;
    *loss = total / rows;
    return FIN_OK;
}

static fin_status choose(logistic *o, double *chosen, fin_error *err)
{
    double best = INFINITY;
    int worse = 0;
    deal(o, o->logits);
    for (o->held = 0; o->held < o->folds; o->held++)
        start(o, o->paths + o->held * o->size);
    *chosen = 1;
    for (int k = 0; k < HALF_DECADES && worse < 2; k++) {
        double penalty = pow(10, -k / 2.0), loss;
        FINI_TRY(judge(o, penalty, &loss, err));
        worse = loss < best ? 0 : worse + 1;
        if (loss < best) {
            best = loss;
            *chosen = penalty;
        }
    }
    return FIN_OK;
}

static fin_status fit(logistic *o, fin_probe *probe, double penalty, fin_error *err)
{
    fin_status status = FIN_OK;
    double *w = o->paths;
    probe->penalty = penalty;
    if (fin_is_auto(penalty) && (status = choose(o, &probe->penalty, err)))
        return status;
    o->held = -1;
    start(o, w);
    FINI_TRY(descend(o, probe->penalty, false, w, err));
    memcpy(probe->W, w, (size_t)(o->m * o->p) * sizeof *w);
    memcpy(probe->b, w + o->m * o->p, (size_t)o->m * sizeof *w);
    return FIN_OK;
}

fin_status fini_probe_logistic(fin_probe *probe, const fini_probe_rows *rows, double penalty,
                               fin_error *err)
{
    logistic o = {.n = rows->n, .p = rows->p, .m = rows->m, .x = rows->x, .y = rows->y, .held = -1};
    fini_arena arena = {0};
    o.size = o.m * o.p + o.m;
    lay_out(&o, &arena);
    fin_status status = fini_arena_open(&arena, "a logistic probe", err);
    if (status)
        return status;
    lay_out(&o, &arena);
    if (!(status = fini_lbfgs_create(&o.search, o.size, err))) {
        o.search.function = value;
        o.search.user = &o;
        fini_blas_enter();
        status = fit(&o, probe, penalty, err);
        fini_blas_leave();
        fini_lbfgs_close(&o.search);
    }
    fini_arena_close(&arena);
    return status;
}
