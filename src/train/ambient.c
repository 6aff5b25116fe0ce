/* Online SGD with vectors and tokens in R^d. Samples are drawn a few at a time into memory that
 * stays in cache, and the loss and its gradients are taken from there in one pass. */
#include "train/train.h"

#include <math.h>
#include <string.h>

enum { CACHE = 192 * 1024 };

static size_t token_size(const fin_train *t)
{
    return t->settings.dtype == 0 ? sizeof(float) : sizeof(double);
}

/* Samples drawn at a time. */
static int64_t at_a_time(const fin_train *t)
{
    double bytes = (double)t->task->longest * (double)t->task->settings.d * (double)token_size(t);
    int64_t fit = bytes < CACHE ? (int64_t)(CACHE / bytes) : 1;
    return fit < t->settings.batch ? fit : t->settings.batch;
}

static int64_t width(const fin_train *t)
{
    return t->vectors * t->task->settings.d + 1;
}

static int64_t padded(int64_t n)
{
    return (n + 7) / 8 * 8;
}

/* Both gradients, outputs, offsets, tokens. */
static int64_t scratch_size(const fin_train *t)
{
    int64_t d = t->task->settings.d, n = at_a_time(t);
    return 2 * padded(d) + padded(n) + padded(n + 1) + padded(n * t->task->longest * d);
}

fin_status fini_ambient_check(const fin_train *t, fin_error *err)
{
    double d = (double)t->task->settings.d, numbers = (double)t->settings.runs * d * 2;
    if ((double)t->task->longest * d > 0x1p40 || numbers > 0x1p40)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld runs in R^%lld with L = %lld do not fit in memory; the reduced "
                         "engine needs none of it",
                         (long long)t->settings.runs, (long long)t->task->settings.d,
                         (long long)t->task->longest);
    return FIN_OK;
}

static fin_status open_worker(const fin_train *t, void **worker, fin_error *err)
{
    fin_attention *attention;
    fin_status status =
        fin_attention_create(&attention, t->form, &t->form_settings, t->task->settings.d,
                             t->settings.dtype == 0 ? FIN_F32 : FIN_F64, t->task->longest, err);
    *worker = status ? NULL : attention;
    return status;
}

static void close_worker(void *worker)
{
    fin_attention_destroy(worker);
}

static fin_status start(fin_train *t, int64_t run, fin_error *err)
{
    int64_t d = t->task->settings.d;
    double *x = t->state + run * t->width;
    x[t->vectors * d] = fini_lam_at(t, 0);
    return fini_start_vectors(t, run, x, x + d, err);
}

static void read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    int64_t d = t->task->settings.d;
    const double *k = t->state + run * t->width, *v = k + d;
    o->kappa = fini_product(fini_dot(d, k, t->task->k_star));
    o->eta = fini_product(fini_dot(d, k, t->task->v_star));
    o->theta = fini_product(fini_dot(d, v, t->task->k_star));
    o->nu = fini_product(fini_dot(d, v, t->task->v_star));
    o->rho = fini_product(fini_dot(d, k, v));
    *lam = k[t->vectors * d];
}

static fin_status step(fin_train *t, fin_attention *attention, int64_t run, int64_t at,
                       double *scratch, fin_error *err)
{
    int64_t d = t->task->settings.d, b = t->settings.batch, few = at_a_time(t);
    double *k = t->state + run * t->width, *v = k + d, *lam = k + t->vectors * d;
    double *gk = scratch, *gv = gk + padded(d), *y = gv + padded(d);
    int64_t *offsets = (void *)(y + padded(few));
    void *tokens = offsets + padded(few + 1);
    fin_dtype dtype = t->settings.dtype == 0 ? FIN_F32 : FIN_F64;
    bool trained = t->settings.alpha_lam > 0;
    if (!trained)
        *lam = fini_lam_at(t, at);
    fin_form_settings fs = t->form_settings;
    fs.lam = *lam;
    if (isnan(fs.lam) || isnan(k[0]) || isnan(v[0]))
        return FIN_OK; /* diverged: whoever looks at the state will see */
    FINI_TRY(fin_attention_set(attention, &fs, k, v, err));
    memset(gk, 0, (size_t)d * sizeof *gk);
    memset(gv, 0, (size_t)d * sizeof *gv);
    fin_gradient gradient = {.k = gk, .v = gv};
    uint64_t first = ((uint64_t)run << 40) + (uint64_t)(at * b);
    for (int64_t i = 0; i < b; i += few) {
        int64_t n = b - i < few ? b - i : few;
        double loss = 0;
        if (t->cost > 1e6 && fini_stopped(t))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
        fin_batch batch = {n, d, dtype, tokens, offsets};
        FINI_TRY(fin_task_offsets(t->task, first + (uint64_t)i, n, offsets, err));
        FINI_TRY(
            fin_task_draw(t->task, first + (uint64_t)i, n, dtype, offsets, tokens, y, NULL, err));
        FINI_TRY(fin_attention_loss(attention, &batch, y, NULL, &loss, &gradient, err));
    }
    for (int64_t i = 0; i < d; i++) {
        gk[i] /= (double)b;
        gv[i] /= (double)b;
    }
    fini_rates rates = {fini_alpha_at(t, at), t->settings.momentum, t->settings.penalty};
    bool heavy = t->vectors == 4;
    fini_descend(d, k, v, heavy ? k + 2 * d : NULL, heavy ? k + 3 * d : NULL, gk, gv, &rates);
    if (trained)
        *lam = fini_next_lam(t, *lam, gradient.lam / (double)b);
    return FIN_OK;
}

static fin_status advance(fin_train *t, void *worker, double *scratch, int64_t first, int count,
                          int64_t from, int64_t to, fin_error *err)
{
    for (int64_t run = first; run < first + count; run++)
        for (int64_t at = from; at < to; at++) {
            FINI_TRY(step(t, worker, run, at, scratch, err));
        }
    return FIN_OK;
}

const fini_engine fini_ambient = {
    .block = 1,
    .at_once = 16,
    .width = width,
    .scratch = scratch_size,
    .open = open_worker,
    .close = close_worker,
    .start = start,
    .advance = advance,
    .read = read,
};
