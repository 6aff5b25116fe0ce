/* Several heads: each projects tokens and queries with its own maps, attends with its own settings,
 * and their answers stand side by side or go through W.
 *
 *     K_h = X K_h', V_h = X V_h', Q_h = Y Q_h',   O = [attend_1 .. attend_H],   out = O W'
 *
 * Heads are taken one after the other; inside a head contexts are shared by threads. Products
 * with the maps are cut into blocks of rows of a fixed size, and those that sum over rows are
 * done by one thread: no bit depends on how many there are. */
#include "base/base.h"
#include "finetti/context.h"
#include "math/gram.h"

#include <cblas.h>
#include <string.h>

enum { BLOCK = 256, MOST = 1 << 20 };

typedef struct work {
    int64_t tokens, queries;       /* of all contexts */
    double *keys, *values, *asked; /* of one head: (tokens, dk), (tokens, dv), (queries, dk) */
    double *answer;                /* (queries, dv) */
    double *beside;                /* (queries, H dv): answers of all heads */
    double *dkeys, *dvalues, *dasked, *danswer, *dbeside;
    fini_arena arena;
} work;

static fin_status check(const fin_heads *h, const fin_heads_batch *b, fin_error *err)
{
    const int64_t sizes[] = {h->H, h->d, h->dk, h->dv, h->out};
    for (int i = 0; i < 5; i++)
        if (sizes[i] < 1 || sizes[i] > MOST)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "H = %lld heads, d = %lld, dk = %lld, dv = %lld, out = %lld: each must "
                "be 1 to 2^20",
                (long long)h->H, (long long)h->d, (long long)h->dk, (long long)h->dv,
                (long long)h->out);
    if (h->H * h->dv > INT32_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "H dv = %lld numbers beside each other; 2^31 - 1 are possible",
                         (long long)(h->H * h->dv));
    if (!h->W && h->out != h->H * h->dv)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "without W an answer has H dv = %lld numbers, not out = %lld",
                         (long long)(h->H * h->dv), (long long)h->out);
    if (!h->settings || !h->Q || !h->K || !h->V)
        return fini_fail(err, FIN_ERR_ARGUMENT, "settings, Q, K or V of the heads are missing");
    if (b->n < 0 || !b->offsets || !b->query_offsets)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld contexts, or their offsets are missing",
                         (long long)b->n);
    int64_t tokens = b->offsets[b->n], queries = b->query_offsets[b->n];
    const int64_t most = INT64_C(1) << 56;
    if (tokens < 0 || queries < 0 || tokens > most / MOST || queries > most / MOST ||
        queries > most / (h->H * h->dv))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld tokens and %lld queries: 0 to 2^36 are possible, and 2^56 numbers "
                         "in all answers",
                         (long long)tokens, (long long)queries);
    if ((tokens && !b->tokens) || (queries && !b->queries))
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens or queries are missing (NULL)");
    return FIN_OK;
}

static void layout(fini_arena *a, const fin_heads *h, bool backward, work *w)
{
    w->keys = fini_take(a, w->tokens * h->dk, sizeof(double));
    w->values = fini_take(a, w->tokens * h->dv, sizeof(double));
    w->asked = fini_take(a, w->queries * h->dk, sizeof(double));
    w->answer = fini_take(a, w->queries * h->dv, sizeof(double));
    w->beside = fini_take(a, w->queries * h->H * h->dv, sizeof(double));
    if (!backward)
        return;
    w->dkeys = fini_take(a, w->tokens * h->dk, sizeof(double));
    w->dvalues = fini_take(a, w->tokens * h->dv, sizeof(double));
    w->dasked = fini_take(a, w->queries * h->dk, sizeof(double));
    w->danswer = fini_take(a, w->queries * h->dv, sizeof(double));
    w->dbeside = fini_take(a, w->queries * h->H * h->dv, sizeof(double));
}

static fin_status open_work(const fin_heads *h, const fin_heads_batch *b, bool backward, work *w,
                            fin_error *err)
{
    FINI_TRY(check(h, b, err));
    FINI_TRY(fini_blas_ready(err));
    *w = (work){.tokens = b->offsets[b->n], .queries = b->query_offsets[b->n]};
    FINI_LAY_OUT(err, &w->arena, "heads", layout(&w->arena, h, backward, w));
    return FIN_OK;
}

/* ---- products ------------------------------------------------------------------------------- */

/* out (rows, n) = beta out + x (rows, k) times M' (n, k), or M (k, n) if it is not transposed. */
static void rows_times(int64_t rows, int64_t n, int64_t k, const double *x, const double *M,
                       bool transposed, double beta, double *out)
{
    int64_t blocks = (rows + BLOCK - 1) / BLOCK;
    fini_blas_enter();
#pragma omp parallel for schedule(static) num_threads(fin_threads_get()) if (blocks > 1)
    for (int64_t i = 0; i < blocks; i++) {
        int64_t count = rows - i * BLOCK < BLOCK ? rows - i * BLOCK : BLOCK;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasTrans : CblasNoTrans, (int)count,
                    (int)n, (int)k, 1, x + i * BLOCK * k, (int)k, M, (int)(transposed ? k : n),
                    beta, out + i * BLOCK * n, (int)n);
    }
    fini_blas_leave();
}

/* M (n, k) += x' y over rows, x: (rows, n), y: (rows, k); in blocks, in their order. */
static void sum_over_rows(int64_t rows, int64_t n, int64_t k, const double *x, const double *y,
                          double *M)
{
    fini_blas_enter();
    for (int64_t i = 0; i < rows; i += BLOCK) {
        int64_t count = rows - i < BLOCK ? rows - i : BLOCK;
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)k, (int)count, 1,
                    x + i * n, (int)n, y + i * k, (int)k, 1, M, (int)k);
    }
    fini_blas_leave();
}

static fin_cross_batch project(const fin_heads *h, const fin_heads_batch *b, int64_t head, work *w)
{
    rows_times(w->tokens, h->dk, h->d, b->tokens, h->K + head * h->dk * h->d, true, 0, w->keys);
    rows_times(w->tokens, h->dv, h->d, b->tokens, h->V + head * h->dv * h->d, true, 0, w->values);
    rows_times(w->queries, h->dk, h->d, b->queries, h->Q + head * h->dk * h->d, true, 0, w->asked);
    return (fin_cross_batch){.n = b->n,
                             .dk = h->dk,
                             .dv = h->dv,
                             .dtype = FIN_F64,
                             .offsets = b->offsets,
                             .query_offsets = b->query_offsets,
                             .keys = w->keys,
                             .values = w->values,
                             .queries = w->asked};
}

/* Column block `head` of the answers that stand side by side: to it, or from it. */
static void place(const fin_heads *h, int64_t head, int64_t queries, double *beside, double *alone,
                  bool to_beside)
{
    for (int64_t i = 0; i < queries; i++) {
        double *one = beside + (i * h->H + head) * h->dv, *other = alone + i * h->dv;
        memcpy(to_beside ? one : other, to_beside ? other : one, (size_t)h->dv * sizeof *one);
    }
}

static fin_status attend(const fin_heads *h, const fin_heads_batch *b, work *w, fin_error *err)
{
    for (int64_t head = 0; head < h->H; head++) {
        fin_cross_batch batch = project(h, b, head, w);
        FINI_TRY(fin_cross_forward(h->settings + head, &batch, w->answer, NULL, err));
        place(h, head, w->queries, w->beside, w->answer, true);
    }
    return FIN_OK;
}

/* ---- the calls ------------------------------------------------------------------------------ */

fin_status fin_heads_forward(const fin_heads *h, const fin_heads_batch *b, double *out,
                             fin_error *err)
{
    FINI_NEED(err, h, b);
    work w = {0};
    fin_status status = open_work(h, b, false, &w, err);
    if (!status && w.queries && !out)
        status = fini_fail(err, FIN_ERR_ARGUMENT, "there is no room for the answers (out is NULL)");
    if (!status)
        status = attend(h, b, &w, err);
    if (!status && h->W)
        rows_times(w.queries, h->out, h->H * h->dv, w.beside, h->W, true, 0, out);
    else if (!status && w.queries)
        memcpy(out, w.beside, (size_t)(w.queries * h->out) * sizeof *out);
    fini_arena_close(&w.arena);
    return status;
}

/* One head: dbeside's column block goes back to its maps, tokens and queries. */
static fin_status backward_head(const fin_heads *h, const fin_heads_batch *b, int64_t head, work *w,
                                fin_heads_gradient *g, fin_error *err)
{
    fin_cross_batch batch = project(h, b, head, w);
    fin_cross_gradient part = {.keys = w->dkeys, .values = w->dvalues, .queries = w->dasked};
    memset(w->dkeys, 0, (size_t)(w->tokens * h->dk) * sizeof *w->dkeys);
    memset(w->dvalues, 0, (size_t)(w->tokens * h->dv) * sizeof *w->dvalues);
    memset(w->dasked, 0, (size_t)(w->queries * h->dk) * sizeof *w->dasked);
    place(h, head, w->queries, w->dbeside, w->danswer, false);
    FINI_TRY(fin_cross_backward(h->settings + head, &batch, w->danswer, &part, err));
    int64_t key = head * h->dk * h->d, value = head * h->dv * h->d;
    if (g->K)
        sum_over_rows(w->tokens, h->dk, h->d, w->dkeys, b->tokens, g->K + key);
    if (g->V)
        sum_over_rows(w->tokens, h->dv, h->d, w->dvalues, b->tokens, g->V + value);
    if (g->Q)
        sum_over_rows(w->queries, h->dk, h->d, w->dasked, b->queries, g->Q + key);
    if (g->tokens) {
        rows_times(w->tokens, h->d, h->dk, w->dkeys, h->K + key, false, 1, g->tokens);
        rows_times(w->tokens, h->d, h->dv, w->dvalues, h->V + value, false, 1, g->tokens);
    }
    if (g->queries)
        rows_times(w->queries, h->d, h->dk, w->dasked, h->Q + key, false, 1, g->queries);
    if (g->hyper) {
        g->hyper[head * 4] += part.log_scale;
        g->hyper[head * 4 + 1] += part.log_noise;
        g->hyper[head * 4 + 2] += part.log_prior;
        g->hyper[head * 4 + 3] += part.log_temperature;
    }
    return FIN_OK;
}

fin_status fin_heads_backward(const fin_heads *h, const fin_heads_batch *b, const double *dout,
                              fin_heads_gradient *g, fin_error *err)
{
    FINI_NEED(err, h, b, g);
    work w = {0};
    fin_status status = open_work(h, b, true, &w, err);
    int64_t beside = h->H * h->dv;
    if (!status && w.queries && !dout)
        status = fini_fail(err, FIN_ERR_ARGUMENT, "the output's gradient is missing (NULL)");
    if (!status && h->W && g->W) /* answers are needed for W's gradient only */
        status = attend(h, b, &w, err);
    if (!status && h->W && g->W)
        sum_over_rows(w.queries, h->out, beside, dout, w.beside, g->W);
    if (!status && h->W)
        rows_times(w.queries, beside, h->out, dout, h->W, false, 0, w.dbeside);
    else if (!status && w.queries)
        memcpy(w.dbeside, dout, (size_t)(w.queries * beside) * sizeof *dout);
    for (int64_t head = 0; !status && head < h->H; head++)
        status = backward_head(h, b, head, &w, g, err);
    fini_arena_close(&w.arena);
    return status;
}
