/* Many short contexts at once: what is checked, and who does what.
 *
 * The unit of work is a context, or, in the forward pass of the row-wise forms, a fixed number
 * of its queries. Threads take units in any order; a unit's arithmetic is that of one thread and
 * knows nothing of the others, and what is summed over contexts is summed afterwards, in their
 * order. If units fail, the message is that of the first one that did, whichever thread came to it
 * first. */
#include "context/batch.h"

#include "math/gram.h"

#include <assert.h>
#include <cblas.h>
#include <omp.h>
#include <string.h>

_Static_assert((int)FINI_SCORE_MATERN52 == (int)FIN_KERNEL_MATERN52 &&
                   (int)FINI_SCORE_EXPONENTIAL == (int)FIN_KERNEL_EXPONENTIAL,
               "kernels and scores are the same list");

/* ---- numbers of either type ----------------------------------------------------------------- */

void fini_many_read(const fini_many *o, const void *array, int64_t from, int64_t count,
                    double times, double *to)
{
    if (o->batch->dtype == FIN_F32) {
        const float *f = (const float *)array + from;
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)f[i] * times;
    } else {
        const double *d = (const double *)array + from;
        for (int64_t i = 0; i < count; i++)
            to[i] = d[i] * times;
    }
}

void fini_many_write(const fini_many *o, void *array, int64_t from, int64_t count, const double *x)
{
    if (o->batch->dtype == FIN_F64)
        memcpy((double *)array + from, x, (size_t)count * sizeof *x);
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)array)[from + i] = (float)x[i];
}

void fini_many_add(const fini_many *o, void *array, int64_t from, int64_t count, double times,
                   const double *x)
{
    if (array && o->batch->dtype == FIN_F32) {
        float *f = (float *)array + from;
        for (int64_t i = 0; i < count; i++)
            f[i] = (float)((double)f[i] + times * x[i]);
    } else if (array) {
        double *d = (double *)array + from;
        for (int64_t i = 0; i < count; i++)
            d[i] += times * x[i];
    }
}

/* ---- pieces of both forms ------------------------------------------------------------------- */

fini_one fini_many_context(const fini_many *o, int64_t context)
{
    const int64_t *at = o->batch->offsets + context, *query = o->batch->query_offsets + context;
    return (fini_one){context, at[1] - at[0], query[1] - query[0], at[0], query[0]};
}

bool fini_score_distance(const fini_score *score)
{
    return score->kind >= FINI_SCORE_RBF;
}

void fini_many_points(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                      fini_scratch *s, bool keys)
{
    int64_t d = o->batch->dk;
    const fin_cross_batch *b = o->batch;
    double *to = keys ? s->keys : s->queries, times = keys ? o->key_times : o->query_times;
    bool relative = fini_score_distance(&o->score) && c->L > 0;
    fini_many_read(o, keys ? b->keys : b->queries, ((keys ? c->token : c->query) + first) * d,
                   count * d, relative ? 1 : times, to);
    for (int64_t k = 0; relative && k < d; k++) {
        double origin;
        fini_many_read(o, b->keys, c->token * d + k, 1, 1, &origin);
        for (int64_t i = 0; i < count; i++)
            to[i * d + k] = (to[i * d + k] - origin) * times;
    }
}

void fini_many_pull(const fini_many *o, const fini_pull *p, double *da, double *db)
{
    int64_t d = o->batch->dk, n = p->n, m = p->m, ldc = p->ld;
    const double *a = p->a, *b = p->b, *C = p->C;
    bool distance = fini_score_distance(&o->score);
    if (da)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)d, (int)m, 1, C,
                    (int)ldc, b, (int)d, 1, da, (int)d);
    if (db)
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)d, (int)n, 1, C, (int)ldc,
                    a, (int)d, 1, db, (int)d);
    for (int64_t i = 0; distance && da && i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += C[i * ldc + j];
        for (int64_t k = 0; k < d; k++)
            da[i * d + k] -= sum * a[i * d + k];
    }
    enum { COLUMNS = 32 }; /* summed side by side */
    for (int64_t j = 0; distance && db && j < m; j += COLUMNS) {
        int64_t count = m - j < COLUMNS ? m - j : COLUMNS;
        double sum[COLUMNS] = {0};
        for (int64_t i = 0; i < n; i++)
            for (int64_t r = 0; r < count; r++)
                sum[r] += C[i * ldc + j + r];
        for (int64_t r = 0; r < count; r++)
            for (int64_t k = 0; k < d; k++)
                db[(j + r) * d + k] -= sum[r] * b[(j + r) * d + k];
    }
}

/* ---- checks --------------------------------------------------------------------------------- */

enum { DIMENSION_MOST = 1 << 24 };
#define COUNT_MOST (INT64_C(1) << 56)

static fin_status check_settings(const fin_cross_settings *s, fin_error *err)
{
    FINI_TRY(fini_cross_check_settings(s, err));
    if (s->form != FIN_CROSS_CME)
        return FIN_OK;
    if (s->method == FIN_CROSS_NYSTROM)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "many contexts at once are answered exactly; method nystrom is not for "
                         "them: take auto, or one context at a time");
    if (s->method == FIN_CROSS_PRIMAL && s->kernel > FIN_KERNEL_POLYNOMIAL)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "method primal needs a kernel with finitely many features: linear or "
                         "polynomial; for the others take auto or dual");
    return FIN_OK;
}

static fin_status check_offsets(const char *what, int64_t n, const int64_t *offsets, fin_error *err)
{
    if (!offsets || offsets[0] != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "offsets of %s must be given and begin with 0",
                         what);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] > COUNT_MOST)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "offsets of %s must not fall (nor pass 2^56): context %lld has %lld to "
                "%lld",
                what, (long long)i, (long long)offsets[i], (long long)offsets[i + 1]);
    return FIN_OK;
}

bool fini_many_primal(const fini_many *o, const fini_one *c)
{
    const fin_cross_settings *s = o->settings;
    if (s->form != FIN_CROSS_CME || o->features == 0 || c->L == 0)
        return false;
    if (o->dout && (s->kernel != FIN_KERNEL_LINEAR || s->noise == 0))
        return false; /* batch_primal.c says why */
    return s->method == FIN_CROSS_PRIMAL || (s->method == FIN_CROSS_AUTO && s->noise > 0 &&
                                             fini_cross_cheaper((double)o->features, (double)c->L));
}

static fin_status check_features(fini_many *o, fin_error *err)
{
    double D = fini_monomials_count(o->settings, o->batch->dk);
    o->features = D <= FINI_CROSS_FEATURES_MOST ? (int64_t)D : 0;
    if (o->settings->form == FIN_CROSS_CME && o->settings->method == FIN_CROSS_PRIMAL &&
        o->features == 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this kernel has %.0f features of %lld columns; method primal is made for "
                         "at most %d: take auto or dual",
                         D, (long long)o->batch->dk, FINI_CROSS_FEATURES_MOST);
    return FIN_OK;
}

static fin_status check_batch(fini_many *o, fin_error *err)
{
    const fin_cross_batch *b = o->batch;
    if (b->n < 0 || b->dk < 1 || b->dv < 1 || b->dk > DIMENSION_MOST || b->dv > DIMENSION_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "n = %lld contexts, dk = %lld, dv = %lld; n must be at least 0, dk and dv "
                         "1 to 2^24",
                         (long long)b->n, (long long)b->dk, (long long)b->dv);
    if (b->dtype != FIN_F32 && b->dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "keys, values and queries must be FIN_F32 or FIN_F64, not type %d",
                         (int)b->dtype);
    FINI_TRY(check_offsets("tokens", b->n, b->offsets, err));
    FINI_TRY(check_offsets("queries", b->n, b->query_offsets, err));
    int64_t wide = b->dk > b->dv ? b->dk : b->dv;
    if (b->offsets[b->n] > COUNT_MOST / wide || b->query_offsets[b->n] > COUNT_MOST / wide)
        return fini_fail(err, FIN_ERR_ARGUMENT, "more than 2^56 numbers");
    if ((b->offsets[b->n] && (!b->keys || !b->values)) || (b->query_offsets[b->n] && !b->queries))
        return fini_fail(err, FIN_ERR_ARGUMENT, "keys, values or queries are missing (NULL)");
    FINI_TRY(check_features(o, err));
    for (int64_t i = 0; i < b->n; i++) {
        fini_one c = fini_many_context(o, i);
        bool primal = fini_many_primal(o, &c);
        int64_t *most = primal ? &o->stored : &o->longest;
        *most = c.L > *most ? c.L : *most;
        o->widest = c.m > o->widest ? c.m : o->widest;
        if (c.L > INT32_MAX)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "context %lld has %lld tokens; 2^31 - 1 are possible", (long long)i,
                             (long long)c.L);
        if (o->settings->form != FIN_CROSS_CME && c.L == 0 && c.m > 0)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "context %lld has queries but no tokens; %s attention is a mean of "
                             "values and needs one at least (cme would answer with its prior)",
                             (long long)i, o->settings->form == FIN_CROSS_NW ? "nw" : "softmax");
        if (o->settings->form == FIN_CROSS_CME && !primal && c.L > FIN_CROSS_DUAL_MOST)
            return fini_fail(err, FIN_ERR_UNSUPPORTED,
                             "context %lld has %lld tokens; a matrix of tokens by tokens is made "
                             "for at most %d: take one context at a time with method nystrom, "
                             "or a kernel with few features",
                             (long long)i, (long long)c.L, FIN_CROSS_DUAL_MOST);
    }
    return FIN_OK;
}

/* The context whose tokens (or queries) include number `row`. */
static int64_t context_of(const int64_t *offsets, int64_t row)
{
    int64_t context = 0;
    while (offsets[context + 1] <= row)
        context++;
    return context;
}

/* x - x is 0 for every number that is one. */
static fin_status check_finite(const fini_many *o, const char *what, const void *array,
                               const int64_t *offsets, int64_t d, fin_error *err)
{
    int64_t rows = offsets[o->batch->n];
    for (int64_t i = 0; i < rows; i++) {
        double bad = 0;
        for (int64_t k = 0; k < d; k++) {
            double x = o->batch->dtype == FIN_F32 ? (double)((const float *)array)[i * d + k]
                                                  : ((const double *)array)[i * d + k];
            bad += x - x;
        }
        if (bad != 0) {
            int64_t context = context_of(offsets, i);
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s %lld of context %lld is not finite; leave out rows with missing "
                             "numbers, or fill them in",
                             what, (long long)(i - offsets[context]), (long long)context);
        }
    }
    return FIN_OK;
}

static fin_status check(fini_many *o, fin_error *err)
{
    const fin_cross_batch *b = o->batch;
    FINI_TRY(check_settings(o->settings, err));
    FINI_TRY(check_batch(o, err));
    FINI_TRY(check_finite(o, "the key of token", b->keys, b->offsets, b->dk, err));
    FINI_TRY(check_finite(o, "the value of token", b->values, b->offsets, b->dv, err));
    FINI_TRY(check_finite(o, "query", b->queries, b->query_offsets, b->dk, err));
    if (o->dout)
        FINI_TRY(
            check_finite(o, "the output gradient of query", o->dout, b->query_offsets, b->dv, err));
    return FIN_OK;
}

/* ---- sharing -------------------------------------------------------------------------------- */

/* softmax is nw with the kernel `exponential` and scale^2 = temperature. */
static void prepare(fini_many *o)
{
    const fin_cross_settings *s = o->settings;
    bool softmax = s->form == FIN_CROSS_SOFTMAX;
    o->score = (fini_score){softmax ? FINI_SCORE_EXPONENTIAL : s->kernel, s->degree, s->offset};
    o->key_times = softmax ? 1 : 1 / s->scale;
    o->query_times = softmax ? 1 / s->temperature : 1 / s->scale;
}

static int64_t block_of(const fini_many *o)
{
    if (o->dout || o->settings->form == FIN_CROSS_CME)
        return INT64_MAX;
    return o->batch->dtype == FIN_F32 ? FINI_BLOCK_F32 : FINI_BLOCK_F64;
}

/* Units of context i: at least one, so that a unit's context is found by counting. */
static int64_t units_of(const fini_many *o, int64_t context)
{
    int64_t m = fini_many_context(o, context).m, block = block_of(o);
    return m > block ? (m + block - 1) / block : 1;
}

/* A thread's memory: for one way of computing, and for contexts by features. */
typedef struct memory {
    fini_scratch usual, primal;
    fini_arena arena;
} memory;

static fin_status run_unit(const fini_many *o, int64_t context, int64_t number, memory *m,
                           fin_error *err)
{
    fini_one c = fini_many_context(o, context);
    fini_scratch *s = &m->usual, *p = &m->primal;
    if (fini_many_primal(o, &c))
        return o->dout ? fini_primal_backward(o, &c, p, err) : fini_primal_forward(o, &c, p, err);
    if (o->settings->form == FIN_CROSS_CME)
        return o->dout ? fini_dual_backward(o, &c, s, err) : fini_dual_forward(o, &c, s, err);
    if (o->dout)
        return fini_rows_backward(o, &c, s, err);
    int64_t block = block_of(o), first = number * block;
    return fini_rows_forward(o, &c, first, c.m - first < block ? c.m - first : block, s, err);
}

static void layout(const fini_many *o, memory *m)
{
    if (o->settings->form == FIN_CROSS_CME)
        fini_dual_layout(&m->arena, o, &m->usual);
    else
        fini_rows_layout(&m->arena, o, &m->usual);
    if (o->stored > 0)
        fini_primal_layout(&m->arena, o, &m->primal);
}

/* One arena, taken by the thread itself, so that it is near. */
static void run_thread(const fini_many *o, int64_t units, const int64_t *first, fin_error *err,
                       int64_t *failed)
{
    memory m = {0};
    fin_error mine = {FIN_OK, ""};
    layout(o, &m);
    fin_status status = fini_arena_open(&m.arena, "attention to many contexts", &mine);
    if (!status)
        layout(o, &m);
    if (!status && o->stored > 0)
        fini_monomials_fill(&m.primal.basis.basis, o->settings, o->batch->dk);
    int64_t at = status ? -1 : INT64_MAX; /* the first unit that failed; -1: no memory */
    int64_t context = 0;
#pragma omp for schedule(monotonic : dynamic, 1)
    for (int64_t unit = 0; unit < units; unit++) {
        while (first[context + 1] <= unit)
            context++;
        if (at < unit)
            continue;
        status = run_unit(o, context, unit - first[context], &m, &mine);
        at = status ? unit : at;
    }
#pragma omp critical(fini_batch)
    if (at < *failed) {
        *failed = at;
        *err = mine;
        err->status = status;
    }
    fini_arena_close(&m.arena);
}

static fin_status run(const fini_many *o, fin_error *err)
{
    fin_status status = fini_blas_ready(err);
    if (status)
        return status;
    int64_t *first = fini_alloc_array(o->batch->n + 1, sizeof *first), failed = INT64_MAX;
    if (!first)
        return fini_fail_memory(err, (size_t)(o->batch->n + 1) * sizeof *first,
                                "attention to many contexts");
    first[0] = 0;
    for (int64_t i = 0; i < o->batch->n; i++)
        first[i + 1] = first[i] + units_of(o, i);
    int64_t units = first[o->batch->n];
    int threads = fin_threads_get();
    threads = threads > units ? (int)(units > 0 ? units : 1) : threads;
    fin_error message = {FIN_OK, ""};
    fini_blas_enter();
#pragma omp parallel num_threads(threads)
    run_thread(o, units, first, &message, &failed);
    fini_blas_leave();
    fini_free(first);
    if (failed < INT64_MAX)
        return fini_fail(err, message.status, "%s", message.message);
    return FIN_OK;
}

/* ---- the calls ------------------------------------------------------------------------------ */

fin_status fin_cross_forward(const fin_cross_settings *settings, const fin_cross_batch *batch,
                             void *out, void *variance, fin_error *err)
{
    FINI_NEED(err, batch);
    settings = fini_or_defaults(&fin_cross_table, settings, &(fin_cross_settings){0});
    fini_many o = {.settings = settings, .batch = batch, .out = out, .variance = variance};
    FINI_TRY(check(&o, err));
    if (!out && batch->query_offsets[batch->n])
        return fini_fail(err, FIN_ERR_ARGUMENT, "there is no room for the answers (out is NULL)");
    if (variance && settings->form != FIN_CROSS_CME)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "only cme attention has a variance for every query of many contexts; give "
                         "NULL, or take one context at a time (fin_cross_predict)");
    prepare(&o);
    return run(&o, err);
}

fin_status fin_cross_backward(const fin_cross_settings *settings, const fin_cross_batch *batch,
                              const void *dout, fin_cross_gradient *gradient, fin_error *err)
{
    FINI_NEED(err, batch, gradient);
    settings = fini_or_defaults(&fin_cross_table, settings, &(fin_cross_settings){0});
    fini_many o = {.settings = settings, .batch = batch, .dout = dout, .gradient = gradient};
    FINI_TRY(check(&o, err));
    if (!dout && batch->query_offsets[batch->n])
        return fini_fail(err, FIN_ERR_ARGUMENT, "the output's gradient is missing (NULL)");
    if (!dout)
        return FIN_OK; /* no queries, no gradient */
    prepare(&o);
    FINI_ROOM(err, "gradients", o.hyper, batch->n + 1, 1);
    memset(o.hyper, 0, (size_t)(batch->n + 1) * sizeof *o.hyper);
    fin_status status = run(&o, err);
    for (int64_t i = 0; !status && i < batch->n; i++) {
        gradient->log_scale += o.hyper[i][0];
        gradient->log_noise += o.hyper[i][1];
        gradient->log_prior += o.hyper[i][2];
        gradient->log_temperature += o.hyper[i][3];
    }
    fini_free(o.hyper);
    return status;
}
