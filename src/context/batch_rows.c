/* softmax and Nadaraya-Watson attention of many contexts: weights that are normalised row by row.
 *
 *     out_i = sum_j w_ij v_j,   w_ij = k(q_i, k_j) / sum_l k(q_i, k_l)
 *
 * Forward: a block of queries walks over tiles of FINI_TILE keys and keeps, for every query, the
 * largest exponent so far and the sums relative to it (Milakov & Gimelshein, arXiv 1805.02867;
 * Dao et al., arXiv 2205.14135). A tile's keys, values and the block stay in a core's own cache;
 * a matrix of weights never exists, in the type of the batch and with sums in double.
 *
 * Backward, in double: weights of a tile are computed again, from the sums of the forward pass.
 *
 *     dv_j = sum_i w_ij dout_i,   d loss / du_ij = slope_ij (dout_i.v_j - dout_i.out_i)
 *
 * with u = q.k or -|q - k|^2/2 and slope = (dk/du) / sum_l k. */
#include "context/batch.h"
#include "math/small.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

void fini_rows_layout(fini_arena *arena, const fini_many *o, fini_scratch *s)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, L = o->longest;
    size_t size = o->batch->dtype == FIN_F32 ? sizeof(float) : sizeof(double);
    int64_t block = o->batch->dtype == FIN_F32 ? FINI_BLOCK_F32 : FINI_BLOCK_F64;
    block = o->dout ? FINI_QUERIES : block;
    int64_t rows = fini_least(block, o->widest);
    s->top = fini_take(arena, rows, sizeof(double));
    s->sum = fini_take(arena, rows, sizeof(double));
    if (!o->dout) {
        s->q_rows = fini_take(arena, rows * dk, size);
        s->out_rows = fini_take(arena, rows * dv, size);
        s->key_panels = fini_take(arena, FINI_TILE * dk, size);
        return;
    }
    s->ldc = FINI_TILE;
    s->keys = fini_take(arena, L * dk, sizeof(double));
    s->values = fini_take(arena, L * dv, sizeof(double));
    s->dkeys = fini_take(arena, L * dk, sizeof(double));
    s->dvalues = fini_take(arena, L * dv, sizeof(double));
    s->queries = fini_take(arena, rows * dk, sizeof(double));
    s->dqueries = fini_take(arena, rows * dk, sizeof(double));
    s->dout = fini_take(arena, rows * dv, sizeof(double));
    s->out = fini_take(arena, rows * dv, sizeof(double));
    s->panels = fini_take(arena, FINI_TILE * dk, sizeof(double));
    s->T = fini_take(arena, rows * FINI_TILE, sizeof(double));
    s->S = fini_take(arena, rows * FINI_TILE, sizeof(double));
    s->D = fini_take(arena, rows * FINI_TILE, sizeof(double));
}

/* A sum is one at least, unless a product of query and key had no number. */
static fin_status check_sums(const fini_one *c, int64_t first, int64_t count, const double *sum,
                             fin_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(sum[i]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "context %lld, query %lld: the weights sum to %g; products of query "
                             "and key are too large: take a larger temperature (or scale)",
                             (long long)c->context, (long long)(first + i), sum[i]);
    return FIN_OK;
}

/* Keys and values that a block of queries attends to, in the batch's type or in double. */
typedef struct tokens {
    int64_t L;
    bool in_double;
    const void *keys, *values, *origin; /* origin: NULL, or what is taken off every key */
    double times;
    void *panels;
} tokens;

/* out, top and sum of a block of queries. */
static void sweep(const tokens *x, fini_attend_tile *a)
{
    const fini_kernel *kernel = fini_kernel_get();
    size_t size = x->in_double ? sizeof(double) : sizeof(float);
    memset(a->out, 0, (size_t)(a->queries * a->dv) * size);
    for (int64_t i = 0; i < a->queries; i++) {
        a->top[i] = -INFINITY;
        a->sum[i] = 0;
    }
    a->panels = x->panels;
    for (int64_t t = 0; t < x->L; t += FINI_TILE) {
        a->keys = fini_least(x->L - t, FINI_TILE);
        a->v = (const char *)x->values + (size_t)(t * a->dv) * size;
        if (x->in_double) {
            kernel->pack_f64(a->dk, a->keys, (const double *)x->keys + t * a->dk, x->origin,
                             x->times, x->panels);
            kernel->attend_f64(a);
        } else {
            kernel->pack_f32(a->dk, a->keys, (const float *)x->keys + t * a->dk, x->origin,
                             x->times, x->panels);
            kernel->attend_f32(a);
        }
    }
}

/* Queries in the batch's type, relative to the origin and scaled. */
static void scale_queries(const fini_many *o, int64_t from, int64_t count, const void *origin,
                          void *to)
{
    int64_t d = o->batch->dk;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < d; k++)
            if (o->batch->dtype == FIN_F64)
                ((double *)to)[i * d + k] =
                    (((const double *)o->batch->queries)[(from + i) * d + k] -
                     (origin ? ((const double *)origin)[k] : 0)) *
                    o->query_times;
            else
                ((float *)to)[i * d + k] =
                    (float)(((double)((const float *)o->batch->queries)[(from + i) * d + k] -
                             (origin ? (double)((const float *)origin)[k] : 0)) *
                            o->query_times);
}

fin_status fini_rows_forward(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                             fini_scratch *s, fin_error *err)
{
    const fin_cross_batch *b = o->batch;
    size_t size = b->dtype == FIN_F64 ? sizeof(double) : sizeof(float);
    if (count <= 0)
        return FIN_OK;
    tokens x = {.L = c->L,
                .in_double = b->dtype == FIN_F64,
                .keys = (const char *)b->keys + (size_t)(c->token * b->dk) * size,
                .values = (const char *)b->values + (size_t)(c->token * b->dv) * size,
                .times = o->key_times,
                .panels = s->key_panels};
    x.origin = fini_score_distance(&o->score) ? x.keys : NULL;
    scale_queries(o, c->query + first, count, x.origin, s->q_rows);
    sweep(&x, &(fini_attend_tile){.score = o->score,
                                  .queries = count,
                                  .dk = b->dk,
                                  .dv = b->dv,
                                  .q = s->q_rows,
                                  .out = s->out_rows,
                                  .top = s->top,
                                  .sum = s->sum});
    FINI_TRY(check_sums(c, first, count, s->sum, err));
    for (int64_t i = 0; i < count; i++) {
        double times = 1 / s->sum[i], bad = 0;
        int64_t from = i * b->dv, to = (c->query + first) * b->dv + from;
        for (int64_t j = 0; j < b->dv; j++) {
            double y = (x.in_double ? ((double *)s->out_rows)[from + j]
                                    : (double)((float *)s->out_rows)[from + j]) *
                       times;
            if (x.in_double)
                ((double *)o->out)[to + j] = y;
            else
                ((float *)o->out)[to + j] = (float)y;
            bad += y - y;
        }
        if (bad != 0)
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "context %lld, query %lld: the answer is not finite; values are too "
                             "large to be summed: divide them by a number",
                             (long long)c->context, (long long)(first + i));
    }
    return FIN_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

/* One tile of keys from number t on; delta_i = dout_i.out_i. */
static void backward_tile(const fini_many *o, int64_t count, int64_t t, int64_t keys,
                          fini_scratch *s, const double *delta)
{
    int64_t dk = o->batch->dk, dv = o->batch->dv, ld = s->ldc;
    const fini_kernel *kernel = fini_kernel_get();
    kernel->pack_f64(dk, keys, s->keys + t * dk, NULL, 1, s->panels);
    kernel->covariances(&(fini_covariances){.score = o->score,
                                            .queries = count,
                                            .keys = keys,
                                            .dk = dk,
                                            .ld = ld,
                                            .q = s->queries,
                                            .panels = s->panels,
                                            .times = 1,
                                            .top = s->top,
                                            .sum = s->sum,
                                            .value = s->T,
                                            .slope = s->S});
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)keys, (int)dv, (int)count, 1, s->T,
                (int)ld, s->dout, (int)dv, 1, s->dvalues + t * dv, (int)dv);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)keys, (int)dv, 1, s->dout,
                (int)dv, s->values + t * dv, (int)dv, 0, s->D, (int)ld);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < keys; j++)
            s->D[i * ld + j] = s->S[i * ld + j] * (s->D[i * ld + j] - delta[i]);
    fini_many_pull(o, &(fini_pull){count, keys, s->queries, s->keys + t * dk, s->D, ld},
                   s->dqueries, s->dkeys + t * dk);
}

fin_status fini_rows_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                              fin_error *err)
{
    const fin_cross_batch *b = o->batch;
    int64_t dk = b->dk, dv = b->dv;
    double delta[FINI_QUERIES], scale = 0, temperature = 0;
    bool softmax = o->settings->form == FIN_CROSS_SOFTMAX;
    tokens x = {.L = c->L,
                .in_double = true,
                .keys = s->keys,
                .values = s->values,
                .times = 1,
                .panels = s->panels};
    if (c->m == 0)
        return FIN_OK;
    fini_many_points(o, c, 0, c->L, s, true);
    fini_many_read(o, b->values, c->token * dv, c->L * dv, 1, s->values);
    memset(s->dkeys, 0, (size_t)(c->L * dk) * sizeof *s->dkeys);
    memset(s->dvalues, 0, (size_t)(c->L * dv) * sizeof *s->dvalues);
    for (int64_t first = 0; first < c->m; first += FINI_QUERIES) {
        int64_t count = fini_least(c->m - first, FINI_QUERIES);
        fini_many_points(o, c, first, count, s, false);
        fini_many_read(o, o->dout, (c->query + first) * dv, count * dv, 1, s->dout);
        memset(s->dqueries, 0, (size_t)(count * dk) * sizeof *s->dqueries);
        sweep(&x, &(fini_attend_tile){.score = o->score,
                                      .queries = count,
                                      .dk = dk,
                                      .dv = dv,
                                      .q = s->queries,
                                      .out = s->out,
                                      .top = s->top,
                                      .sum = s->sum});
        FINI_TRY(check_sums(c, first, count, s->sum, err));
        for (int64_t i = 0; i < count; i++)
            delta[i] = fini_dot_in_order(dv, s->dout + i * dv, s->out + i * dv) / s->sum[i];
        for (int64_t t = 0; t < c->L; t += FINI_TILE)
            backward_tile(o, count, t, fini_least(c->L - t, FINI_TILE), s, delta);
        double by_query = fini_dot_in_order(count * dk, s->queries, s->dqueries);
        scale -= by_query;
        temperature -= by_query;
        fini_many_add(o, o->gradient->queries, (c->query + first) * dk, count * dk, o->query_times,
                      s->dqueries);
    }
    scale -= fini_dot_in_order(c->L * dk, s->keys, s->dkeys);
    fini_many_add(o, o->gradient->keys, c->token * dk, c->L * dk, o->key_times, s->dkeys);
    fini_many_add(o, o->gradient->values, c->token * dv, c->L * dv, 1, s->dvalues);
    o->hyper[c->context][0] = softmax ? 0 : scale;
    o->hyper[c->context][3] = softmax ? temperature : 0;
    return FIN_OK;
}
