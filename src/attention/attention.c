/* The predictor on tokens in R^d: f = sum_l w_l z_l, and its gradients in k, v, lam and c.
 *
 * Tokens are read from memory once. Samples are taken in blocks that fit the cache; in each block
 * chi = X.k and z = X.v come first (threads share the samples), then weights, outputs and the token
 * coefficients p = dloss/dchi, q = dloss/dz, and then the gradients
 *
 *     g_k = sum p_l X_l,   g_v = sum q_l X_l
 *
 * from the same rows, now in cache, with the threads sharing the *columns*. Every column is therefore
 * summed in the order of the samples, and neither the number of threads nor the blocks change a bit.
 */
#include "attention/form.h"

#include "kernel/kernel.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

struct fin_attention {
    const fin_form *form;
    fin_form_settings settings;
    int64_t d, longest;
    fin_dtype dtype;
    bool has_c;     /* the form has a setting c */
    double *k, *v;  /* (padded d) */
    float *kf, *vf; /* (padded d), for float tokens */
    int64_t tokens; /* room for a block: tokens and samples */
    int64_t samples;
    double *chi, *z, *norm2, *w, *p, *q; /* (tokens) */
    double *f, *df, *dlam, *dc;          /* (samples) */
    fini_arena arena;
};

enum { PAD = 16, SAMPLES = 4096, COLUMNS = 64 };
/* Bytes of tokens in a block: what fits one core's own cache; with several threads, what fits the
 * cache they share, so that they seldom have to wait for each other. */
enum { OWN_CACHE = 192 * 1024, SHARED_CACHE = 4 * 1024 * 1024 };

static int64_t tokens_in(int64_t bytes, const fin_attention *o)
{
    return bytes / (o->dtype == FIN_F32 ? 4 : 8) / o->d;
}

static void layout(fini_arena *a, fin_attention *o)
{
    int64_t padded = (o->d + PAD - 1) / PAD * PAD;
    o->k = fini_take(a, padded, sizeof *o->k);
    o->v = fini_take(a, padded, sizeof *o->v);
    o->kf = fini_take(a, padded, sizeof *o->kf);
    o->vf = fini_take(a, padded, sizeof *o->vf);
    double **const per_token[] = {&o->chi, &o->z, &o->norm2, &o->w, &o->p, &o->q};
    for (size_t i = 0; i < sizeof per_token / sizeof *per_token; i++)
        *per_token[i] = fini_take(a, o->tokens, sizeof(double));
    double **const per_sample[] = {&o->f, &o->df, &o->dlam, &o->dc};
    for (size_t i = 0; i < sizeof per_sample / sizeof *per_sample; i++)
        *per_sample[i] = fini_take(a, o->samples, sizeof(double));
}

fin_status fin_attention_create(fin_attention **out, const fin_form *form,
                                const fin_form_settings *settings, int64_t d, fin_dtype dtype,
                                int64_t longest, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, form);
    if (d < 1 || d > INT64_C(1) << 40 || longest < 1 || longest > INT64_C(1) << 40)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "d = %lld and longest = %lld must be at least 1 (and at most 2^40)",
                         (long long)d, (long long)longest);
    if (dtype != FIN_F32 && dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens must be FIN_F32 or FIN_F64, not type %d",
                         (int)dtype);
    FINI_MAKE(err, "a predictor", fin_attention, o);
    o->form = form;
    o->d = d;
    o->dtype = dtype;
    o->longest = longest;
    o->has_c = fin_settings_find(form->settings, "c") != NULL;
    int64_t fit = tokens_in(SHARED_CACHE, o);
    fit = fit > 65536 ? 65536 : fit;
    o->tokens = longest > fit ? longest : fit;
    o->samples = SAMPLES;
    layout(&o->arena, o);
    fin_status status = fini_arena_open(&o->arena, "a predictor", err);
    if (!status) {
        layout(&o->arena, o);
        fin_settings_defaults(form->settings, &o->settings, sizeof o->settings);
        status = fin_attention_set(o, settings ? settings : &o->settings, NULL, NULL, err);
    }
    FINI_HAND_OVER(out, o, status, fin_attention_destroy);
}

void fin_attention_destroy(fin_attention *o)
{
    if (!o)
        return;
    fini_arena_close(&o->arena);
    fini_free(o);
}

fin_status fin_attention_set(fin_attention *o, const fin_form_settings *settings, const double *k,
                             const double *v, fin_error *err)
{
    FINI_NEED(err, o);
    if (settings) {
        FINI_TRY(fini_form_check(o->form, settings, err));
        o->settings = *settings;
    }
    for (int64_t i = 0; k && i < o->d; i++)
        o->kf[i] = (float)(o->k[i] = k[i]);
    for (int64_t i = 0; v && i < o->d; i++)
        o->vf[i] = (float)(o->v[i] = v[i]);
    return FIN_OK;
}

/* ---- one block ------------------------------------------------------------------------------ */

/* What a call asks for. Exactly one of y and df may be given; without either, only outputs. */
typedef struct request {
    const fin_batch *batch;
    const double *y, *df;
    double *f, *w, *loss;
    fin_gradient *gradient;
} request;

/* |X|^2 costs as much as a projection: taken by the form that uses it only. */
static bool has_norms(const fin_attention *o)
{
    return o->form->needs_norm2 && !isinf(o->settings.lam);
}

static void project(const fin_attention *o, const fin_batch *batch, int64_t row, int64_t rows,
                    double *chi, double *z, double *norm2)
{
    const fini_kernel *kernel = fini_kernel_get();
    size_t size = o->dtype == FIN_F32 ? sizeof(float) : sizeof(double);
    const void *X = (const unsigned char *)batch->tokens + (size_t)(row * o->d) * size;
    bool norms = has_norms(o);
    if (o->dtype == FIN_F32 && norms)
        kernel->project_norm_f32(rows, o->d, X, o->k, o->v, chi, z, norm2);
    else if (o->dtype == FIN_F32)
        kernel->project_f32(rows, o->d, X, o->kf, o->vf, chi, z);
    else if (norms)
        kernel->project_norm_f64(rows, o->d, X, o->k, o->v, chi, z, norm2);
    else
        kernel->project_f64(rows, o->d, X, o->k, o->v, chi, z);
}

/* Samples from .. to-1 (of the batch), whose block begins at sample `block`: everything that has
 * one number per token. */
static void forward_samples(fin_attention *o, const request *r, int64_t block, int64_t from,
                            int64_t to)
{
    if (from >= to)
        return;
    const int64_t *offsets = r->batch->offsets + from;
    int64_t n = to - from, at = offsets[0] - r->batch->offsets[block],
            tokens = offsets[n] - offsets[0];
    double *chi = o->chi + at, *z = o->z + at, *norm2 = o->norm2 + at, *w = o->w + at;
    double *f = o->f + (from - block), *df = o->df + (from - block);
    project(o, r->batch, offsets[0] - r->batch->offsets[0], tokens, chi, z, norm2);
    o->form->weights(&o->settings, n, offsets, chi, norm2, w);
    for (int64_t i = 0; i < n; i++) {
        f[i] = 0;
        for (int64_t l = offsets[i] - offsets[0]; l < offsets[i + 1] - offsets[0]; l++)
            f[i] += w[l] * z[l];
        df[i] = r->y ? 2 * (f[i] - r->y[from + i]) : r->df ? r->df[from + i] : 0;
    }
    if (r->f)
        memcpy(r->f + from, f, (size_t)n * sizeof *f);
    if (r->w)
        memcpy(r->w + (offsets[0] - r->batch->offsets[0]), w, (size_t)tokens * sizeof *w);
    if (r->gradient) {
        double *dlam = o->dlam + (from - block), *dc = o->dc + (from - block);
        memset(dlam, 0, (size_t)n * sizeof *dlam);
        memset(dc, 0, (size_t)n * sizeof *dc);
        fini_pass pass = {.n = n,
                          .offsets = offsets,
                          .chi = chi,
                          .norm2 = has_norms(o) ? norm2 : NULL,
                          .z = z,
                          .w = w,
                          .f = f,
                          .df = df,
                          .p = o->p + at,
                          .dlam = dlam,
                          .dc = dc};
        o->form->backward(&o->settings, &pass);
        for (int64_t i = 0; i < n; i++)
            for (int64_t l = offsets[i] - offsets[0]; l < offsets[i + 1] - offsets[0]; l++)
                o->q[at + l] = df[i] * w[l];
    }
}

/* Columns from .. to-1 of the gradients, samples in order, at most FINI_GATHER tokens at a time. */
static void gather_columns(const fin_attention *o, const request *r, int64_t block, int64_t end,
                           int64_t from, int64_t to)
{
    const fini_kernel *kernel = fini_kernel_get();
    const int64_t *offsets = r->batch->offsets;
    for (int64_t i = block; i < end && from < to; i++)
        for (int64_t l = offsets[i]; l < offsets[i + 1]; l += FINI_GATHER) {
            int64_t rows = offsets[i + 1] - l < FINI_GATHER ? offsets[i + 1] - l : FINI_GATHER;
            int64_t start = (l - offsets[0]) * o->d;
            const double *p = o->p + (l - offsets[block]), *q = o->q + (l - offsets[block]);
            if (o->dtype == FIN_F32)
                kernel->gather_f32(rows, o->d, from, to, (const float *)r->batch->tokens + start, p,
                                   q, r->gradient->k, r->gradient->v);
            else
                kernel->gather_f64(rows, o->d, from, to, (const double *)r->batch->tokens + start,
                                   p, q, r->gradient->k, r->gradient->v);
        }
}

/* Where the block that begins at `block` ends: at most `most` tokens (but at least one sample). */
static int64_t block_end(const fin_attention *o, const fin_batch *batch, int64_t block,
                         int64_t most)
{
    int64_t end = block + 1;
    while (end < batch->n && end - block < o->samples &&
           batch->offsets[end + 1] - batch->offsets[block] <= most)
        end++;
    return end;
}

/* Where the threads meet. OpenMP's own barrier spins for milliseconds, which on a machine that is
 * busy with other work keeps from the processor the very thread that is waited for; this one gives
 * the processor away soon. */
typedef struct meeting {
    atomic_int arrived;
    atomic_uint round;
} meeting;

static void meet(meeting *m, int threads)
{
    enum { SPINS = 2000 };
    unsigned round = atomic_load(&m->round);
    if (threads == 1)
        return;
    if (atomic_fetch_add(&m->arrived, 1) + 1 == threads) {
        atomic_store(&m->arrived, 0);
        atomic_store(&m->round, round + 1);
        return;
    }
    for (int spins = 0; atomic_load(&m->round) == round; spins++)
        if (spins >= SPINS)
            sched_yield();
}

static void run(fin_attention *o, const request *r)
{
    int threads = fin_threads_get();
    int64_t numbers = (r->batch->offsets[r->batch->n] - r->batch->offsets[0]) * o->d;
    if (numbers < 100000) /* waking a second thread costs more than this */
        threads = 1;
    int64_t most = tokens_in(threads == 1 ? OWN_CACHE : SHARED_CACHE, o);
    most = most > o->tokens ? o->tokens : most;
    meeting m = {0, 0};
#pragma omp parallel num_threads(threads)
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads();
        for (int64_t block = 0, end; block < r->batch->n; block = end) {
            end = block_end(o, r->batch, block, most);
            int64_t n = end - block;
            forward_samples(o, r, block, block + n * me / all, block + n * (me + 1) / all);
            meet(&m, all);
            if (r->gradient) {
                int64_t strips = (o->d + COLUMNS - 1) / COLUMNS;
                int64_t from = strips * me / all * COLUMNS, to = strips * (me + 1) / all * COLUMNS;
                gather_columns(o, r, block, end, from, to < o->d ? to : o->d);
            }
            if (me == 0) {
                for (int64_t i = 0; r->gradient && i < n; i++) {
                    r->gradient->lam += o->dlam[i];
                    r->gradient->c += o->has_c ? o->dc[i] : 0;
                }
                for (int64_t i = 0; r->loss && i < n; i++) {
                    double miss = o->f[i] - r->y[block + i];
                    *r->loss += miss * miss;
                }
            }
            meet(&m, all);
        }
    }
}

/* ---- the calls ------------------------------------------------------------------------------ */

static fin_status check(const fin_attention *o, const fin_batch *batch, fin_error *err)
{
    if (batch->d != o->d || batch->dtype != o->dtype)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the batch has d = %lld (%s), the predictor d = %lld (%s)",
                         (long long)batch->d, batch->dtype == FIN_F32 ? "float" : "double",
                         (long long)o->d, o->dtype == FIN_F32 ? "float" : "double");
    if (batch->n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the batch has n = %lld samples",
                         (long long)batch->n);
    for (int64_t i = 0; i < batch->n; i++) {
        int64_t L = batch->offsets[i + 1] - batch->offsets[i];
        if (L < 0 || L > o->longest)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "sample %lld has %lld tokens; the predictor was made for 0 to %lld",
                             (long long)i, (long long)L, (long long)o->longest);
    }
    return FIN_OK;
}

fin_status fin_attention_forward(fin_attention *o, const fin_batch *batch, double *f, double *w,
                                 fin_error *err)
{
    FINI_NEED(err, o, batch);
    FINI_TRY(check(o, batch, err));
    run(o, &(request){.batch = batch, .f = f, .w = w});
    return FIN_OK;
}

fin_status fin_attention_backward(fin_attention *o, const fin_batch *batch, const double *df,
                                  fin_gradient *gradient, fin_error *err)
{
    FINI_NEED(err, o, batch, df, gradient);
    FINI_TRY(check(o, batch, err));
    run(o, &(request){.batch = batch, .df = df, .gradient = gradient});
    return FIN_OK;
}

fin_status fin_attention_loss(fin_attention *o, const fin_batch *batch, const double *y, double *f,
                              double *loss, fin_gradient *gradient, fin_error *err)
{
    FINI_NEED(err, o, batch, y);
    FINI_TRY(check(o, batch, err));
    run(o, &(request){.batch = batch, .y = y, .f = f, .loss = loss, .gradient = gradient});
    return FIN_OK;
}
