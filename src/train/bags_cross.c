/* Many fits, each with some bags left out, and the predictions for those.
 *
 * A task is one (model, repeat, fold). Tasks run side by side, each on one thread, and write to
 * places of their own, so that the result is the same for any number of threads; costly models go
 * first, so that no thread is left with one at the end. When the bags are split over processes, a
 * fit is work of all of them together, and the tasks run one after another.
 *
 * Bags are left out by weights of 0: nothing of the training set is copied. The bags to predict are
 * scattered, so they are copied together, a few at a time. */
#include "train/bags_judge.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1 << 24 }; /* bytes of tokens copied together, if a bag has not more */

typedef struct crew {
    const fini_crossing *c;
    const fin_progress *progress;
    double done, total;
    int *order; /* (models): costly ones first */
    atomic_bool stop;
    atomic_llong left; /* tasks not yet done */
    int64_t failed;    /* first task that failed, or -1 */
    fin_status status;
    fin_error error;
} crew;

/* ---- predictions for scattered bags ---------------------------------------------------------- */

typedef struct fitted {
    fin_fit *whole;
    fini_part part;
} fitted;

static int64_t width_of(const fini_crossing *c)
{
    return c->classes ? c->classes : 1;
}

/* Room for `bags` bags with `bytes` of tokens, and what they get. */
typedef struct chunk {
    int64_t n;
    int64_t *bag;     /* (n) numbers of the bags */
    int64_t *offsets; /* (n + 1) */
    unsigned char *tokens;
    double *mean, *sd; /* (n, width) */
} chunk;

static void layout(fini_arena *a, chunk *k, int64_t bags, int64_t bytes, int64_t width)
{
    k->bag = fini_take(a, bags, sizeof *k->bag);
    k->offsets = fini_take(a, bags + 1, sizeof *k->offsets);
    k->tokens = fini_take(a, bytes, 1);
    k->mean = fini_take(a, bags * width, sizeof *k->mean);
    k->sd = fini_take(a, bags * width, sizeof *k->sd);
}

static fin_status predict_chunk(const fini_crossing *c, const fitted *fit, chunk *k, double *mean,
                                double *sd, fini_look *look, fin_error *err)
{
    int64_t width = width_of(c);
    fin_bags bags = *c->bags;
    bags.n = bags.total = k->n;
    bags.first = 0;
    bags.offsets = k->offsets;
    bags.tokens = k->tokens;
    bags.labels = NULL;
    fin_status status = c->whole
                            ? fini_fit_predict(fit->whole, &bags, k->mean, k->sd, look, err)
                            : fini_part_predict(&fit->part, &bags, k->mean, k->sd, NULL, look, err);
    for (int64_t j = 0; !status && j < k->n; j++) {
        memcpy(mean + k->bag[j] * width, k->mean + j * width, (size_t)width * sizeof *mean);
        if (sd)
            sd[k->bag[j]] = k->sd[j];
    }
    k->n = 0;
    return status;
}

static int64_t bytes_of(const fin_bags *bags, int64_t i)
{
    int64_t size = bags->dtype == FIN_F32 ? 4 : 8;
    return (bags->offsets[i + 1] - bags->offsets[i]) * bags->d * size;
}

static void append(const fin_bags *bags, int64_t i, chunk *k)
{
    int64_t row = bytes_of(bags, i) / (bags->offsets[i + 1] - bags->offsets[i]);
    const unsigned char *from =
        (const unsigned char *)bags->tokens + (bags->offsets[i] - bags->offsets[0]) * row;
    memcpy(k->tokens + k->offsets[k->n] * row, from, (size_t)bytes_of(bags, i));
    k->bag[k->n] = i;
    k->offsets[k->n + 1] = k->offsets[k->n] + bags->offsets[i + 1] - bags->offsets[i];
    k->n++;
}

/* mean: (n, width), sd: (n) or NULL; written for the bags of the fold only. */
static fin_status predict_fold(const fini_crossing *c, const fitted *fit, const int32_t *fold,
                               int f, double *mean, double *sd, fini_look *look, fin_error *err)
{
    int64_t count = 0, bytes = 0, longest = 0;
    for (int64_t i = 0; i < c->bags->n; i++) {
        if (fold[i] != f)
            continue;
        count++;
        bytes += bytes_of(c->bags, i);
        longest = bytes_of(c->bags, i) > longest ? bytes_of(c->bags, i) : longest;
    }
    if (!count)
        return FIN_OK; /* a process may have none of them */
    chunk k = {0};
    fini_arena arena = {0};
    int64_t room = bytes < CHUNK ? bytes : longest > CHUNK ? longest : CHUNK;
    layout(&arena, &k, count, room, width_of(c));
    fin_status status = fini_arena_open(&arena, "the bags that were left out", err);
    if (status)
        return status;
    layout(&arena, &k, count, room, width_of(c));
    int64_t held = 0;
    for (int64_t i = 0; !status && i < c->bags->n; i++) {
        if (fold[i] != f)
            continue;
        int64_t more = bytes_of(c->bags, i);
        if (k.n && held + more > room) {
            status = predict_chunk(c, fit, &k, mean, sd, look, err);
            held = 0;
        }
        append(c->bags, i, &k);
        held += more;
    }
    if (!status)
        status = predict_chunk(c, fit, &k, mean, sd, look, err);
    fini_arena_close(&arena);
    return status;
}

/* ---- one task -------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
               ? 0
               : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Fits that are nested cost as many fits as they look at. */
static double cost_of(const fin_fit_settings *s)
{
    bool nested = s->model == FIN_MODEL_AUTO || s->model == FIN_MODEL_STACK;
    double fits = nested ? fin_fit_candidates(s, 2, NULL, 0) : 1;
    return nested || s->calibrate == 2 ? (double)(s->inner + 1) * fits : 1;
}

/* What a fit reports while it runs: the thread that made the call passes it on, the others only
 * learn whether they are to stop. */
typedef struct listener {
    crew *crew;
    double cost;
    bool speaks;
} listener;

static int hear(void *user, const char *what, double done, double total)
{
    listener *l = user;
    crew *w = l->crew;
    bool early = strcmp(what, FINI_FEATURES) == 0;
    if (l->speaks && !atomic_load(&w->stop)) {
        double finished, part = !early && total > 0 && done <= total ? done / total : 0;
#pragma omp atomic read
        finished = w->done;
        if (fini_report(w->progress, w->c->what, fmin(finished + part * l->cost, w->total),
                        w->total))
            atomic_store(&w->stop, true);
    }
    return atomic_load(&w->stop);
}

static fin_status fit_task(crew *w, int m, int r, int f, bool speaks, fin_error *err)
{
    const fini_crossing *c = w->c;
    int64_t n = c->bags->n, at = (int64_t)m * c->repeats + r;
    const int32_t *fold = c->fold + r * n;
    listener l = {w, cost_of(&c->model[m]), speaks};
    const fin_progress progress = {hear, &l};
    fini_look look;
    fitted fit = {0};
    double *weights = fini_alloc_array(n, sizeof *weights);
    if (!weights)
        return fini_fail_memory(err, (size_t)n * sizeof *weights, "weights of bags");
    for (int64_t i = 0; i < n; i++)
        weights[i] = fold[i] == f ? 0 : c->weights ? c->weights[i] : 1;
    fin_status status = c->whole ? fin_fit_create(&fit.whole, &c->model[m], c->classes, c->bags,
                                                  weights, c->sum, &progress, err)
                                 : fini_part_fit(&fit.part, &c->model[m], c->classes, c->bags,
                                                 c->labels, weights, c->sum, &progress, err);
    fini_look_open(&look, &progress, "fit");
    if (!status)
        status = fini_look_stage(&look, "fit", 1, 1, err);
    if (!status)
        status = predict_fold(c, &fit, fold, f, c->mean + at * n * width_of(c),
                              c->sd ? c->sd + at * n : NULL, &look, err);
    fin_fit_destroy(fit.whole);
    fini_part_close(&fit.part);
    fini_free(weights);
    return status;
}

/* The first that failed is told of; those that were stopped because of it are not. */
static void note_failure(crew *w, int64_t task, int r, int f, fin_status status,
                         const fin_error *error)
{
    bool stopped = status == FIN_ERR_CANCELLED;
#pragma omp critical(finetti_cross)
    if (w->failed < 0 || (w->status == FIN_ERR_CANCELLED && !stopped) ||
        (task < w->failed && (w->status == FIN_ERR_CANCELLED) == stopped)) {
        w->failed = task;
        w->status = status;
        w->error = *error;
        if (w->c->whole && !stopped)
            snprintf(w->error.message, sizeof w->error.message,
                     "with fold %d of repeat %d (from 0) left out: %.430s", f, r, error->message);
    }
    atomic_store(&w->stop, true);
}

static void run_task(crew *w, int64_t task, bool speaks)
{
    const fini_crossing *c = w->c;
    int m = w->order[task / ((int64_t)c->repeats * c->folds)];
    int r = (int)(task / c->folds % c->repeats), f = (int)(task % c->folds);
    fin_error error = {FIN_OK, ""};
    double begin = processor_seconds(), cost = cost_of(&c->model[m]);
    fin_status status = fit_task(w, m, r, f, speaks, &error);
    double spent = processor_seconds() - begin;
    if (status)
        note_failure(w, task, r, f, status, &error);
    if (c->seconds) {
#pragma omp atomic
        c->seconds[m] += spent;
    }
#pragma omp atomic
    w->done += cost;
    if (speaks && !atomic_load(&w->stop)) {
        double finished;
#pragma omp atomic read
        finished = w->done;
        if (fini_report(w->progress, c->what, finished, w->total))
            atomic_store(&w->stop, true);
    }
}

/* ---- all tasks ------------------------------------------------------------------------------- */

static void order_models(crew *w)
{
    const fini_crossing *c = w->c;
    int count = 0;
    for (int costly = 1; costly >= 0; costly--)
        for (int m = 0; m < c->models; m++)
            if ((cost_of(&c->model[m]) > 1) == costly)
                w->order[count++] = m;
    for (int m = 0; m < c->models; m++)
        w->total += cost_of(&c->model[m]) * c->repeats * c->folds;
}

/* The thread that made the call has nothing more to do, and goes on asking while others have. */
static void wait_for_others(crew *w)
{
    const struct timespec moment = {0, 5000000};
    listener l = {w, 0, true};
    while (atomic_load(&w->left) > 0) {
        nanosleep(&moment, NULL);
        hear(&l, w->c->what, 0, 1);
    }
}

static void run_alone(crew *w, int64_t tasks)
{
    int threads = fin_threads_get();
    threads = tasks < threads ? (int)tasks : threads;
    atomic_store(&w->left, tasks);
#pragma omp parallel num_threads(threads)
    {
        int before = fini_threads_limit(1);
        bool speaks = omp_get_thread_num() == 0;
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t t = 0; t < tasks; t++) {
            if (!atomic_load(&w->stop))
                run_task(w, t, speaks);
            atomic_fetch_sub(&w->left, 1);
        }
        if (speaks)
            wait_for_others(w);
        fini_threads_limit(before);
    }
}

fin_status fini_cross(const fini_crossing *c, const fin_progress *progress, fin_error *err)
{
    int64_t tasks = (int64_t)c->models * c->repeats * c->folds;
    int64_t slots = (int64_t)c->models * c->repeats * c->bags->n;
    crew w = {.c = c, .progress = progress, .failed = -1};
    w.order = fini_alloc_array(c->models, sizeof *w.order);
    if (!w.order)
        return fini_fail_memory(err, (size_t)c->models * sizeof *w.order, "cross-validation");
    order_models(&w);
    for (int64_t i = 0; i < slots * width_of(c); i++)
        c->mean[i] = NAN;
    for (int64_t i = 0; c->sd && i < slots; i++)
        c->sd[i] = NAN;
    for (int m = 0; c->seconds && m < c->models; m++)
        c->seconds[m] = 0;
    atomic_store(&w.stop, fini_report(progress, c->what, 0, w.total));
    if (c->sum && c->sum != fini_sum_alone) {
        for (int64_t t = 0; t < tasks && !atomic_load(&w.stop); t++)
            run_task(&w, t, true);
    } else {
        run_alone(&w, tasks);
    }
    fini_free(w.order);
    if (w.failed >= 0)
        return fini_fail(err, w.status, "%s", w.error.message);
    if (atomic_load(&w.stop))
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %.0f of %.0f fits", w.done,
                         w.total);
    return FIN_OK;
}
