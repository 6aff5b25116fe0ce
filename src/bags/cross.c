/* Many fits, each with some bags left out, and the predictions for those.
 *
 * There are `outers` training sets, each with its bags to be tested on and, inside it, inner folds. For
 * every training set a model is fitted to all of it, and predicts the test bags; and to all but one inner
 * fold, and predicts that one. So every bag is predicted once for every training set, by a fit that has
 * not seen it. Choices and calibration of several models need the same inner fits: they are made once.
 *
 * A task is one (model, training set, inner fold or none). Tasks run side by side, each on one thread, and
 * write to places of their own, so that the result is the same for any number of threads; costly models go
 * first, so that no thread is left with one at the end. When the bags are split over processes, a fit is
 * work of all of them together, and the tasks run one after another.
 *
 * Bags are left out by weights of 0: nothing of the training set is copied. The bags to predict are
 * scattered, so they are copied together, a few at a time. */
#include "bags/judge.h"
#include "bags/map.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1 << 24 }; /* bytes of tokens copied together, if a bag has not more */

/* ---- fits side by side ----------------------------------------------------------------------- */

typedef struct scheduler {
    const fini_fits *fits;
    const fin_progress *progress;
    double done, total;
    atomic_bool stop;
    atomic_llong left; /* fits not yet done */
    int64_t failed;    /* first fit that failed, or -1 */
    fin_status status;
    fin_error error;
} scheduler;

/* What a fit reports while it runs: the thread that made the call passes it on, the others only
 * learn whether they are to stop. */
typedef struct listener {
    scheduler *scheduler;
    bool speaks;
} listener;

static int hear(void *user, const char *what, double done, double total)
{
    listener *l = user;
    scheduler *w = l->scheduler;
    bool early = strcmp(what, FINI_FEATURES) == 0;
    if (l->speaks && !atomic_load(&w->stop)) {
        double finished, part = !early && total > 0 && done <= total ? done / total : 0;
#pragma omp atomic read
        finished = w->done;
        if (fini_report(w->progress, w->fits->what, fmin(finished + part, w->total), w->total))
            atomic_store(&w->stop, true);
    }
    return atomic_load(&w->stop);
}

/* The first that failed is told of; those that were stopped because of it are not. */
static void note_failure(scheduler *w, int64_t number, fin_status status, const fin_error *error)
{
    bool stopped = status == FIN_ERR_CANCELLED;
#pragma omp critical(finetti_fits)
    if (w->failed < 0 || (w->status == FIN_ERR_CANCELLED && !stopped) ||
        (number < w->failed && (w->status == FIN_ERR_CANCELLED) == stopped)) {
        w->failed = number;
        w->status = status;
        w->error = *error;
    }
    atomic_store(&w->stop, true);
}

static void run_one(scheduler *w, int64_t number, bool speaks)
{
    listener l = {w, speaks};
    const fin_progress progress = {hear, &l};
    fin_error error = {FIN_OK, ""};
    fin_status status = w->fits->fit(w->fits->user, number, &progress, &error);
    if (status)
        note_failure(w, number, status, &error);
#pragma omp atomic
    w->done += 1;
    hear(&l, "", 0, 1);
}

/* The thread that made the call has nothing more to do, and goes on asking while others have. */
static void wait_for_others(scheduler *w)
{
    const struct timespec moment = {0, 5000000};
    listener l = {w, true};
    while (atomic_load(&w->left) > 0) {
        nanosleep(&moment, NULL);
        hear(&l, "", 0, 1);
    }
}

static void run_all(scheduler *w, int threads)
{
    atomic_store(&w->left, w->fits->count);
#pragma omp parallel num_threads(threads)
    {
        int before = fini_threads_limit(1);
        bool speaks = omp_get_thread_num() == 0;
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t k = 0; k < w->fits->count; k++) {
            if (!atomic_load(&w->stop))
                run_one(w, k, speaks);
            atomic_fetch_sub(&w->left, 1);
        }
        if (speaks)
            wait_for_others(w);
        fini_threads_limit(before);
    }
}

/* In turn there is no region of one thread around the fits: in one, libomp of LLVM 14 leaves out
 * iterations of loops inside. */
fin_status fini_fits_run(const fini_fits *fits, const fin_progress *progress, fin_error *err)
{
    scheduler w = {.fits = fits, .progress = progress, .total = (double)fits->count, .failed = -1};
    int threads = fits->count < fits->threads ? (int)fits->count : fits->threads;
    atomic_store(&w.stop, fini_report(progress, fits->what, 0, w.total));
    if (fits->in_turn || threads < 2)
        for (int64_t k = 0; k < fits->count && !atomic_load(&w.stop); k++)
            run_one(&w, k, true);
    else
        run_all(&w, threads);
    if (w.failed >= 0)
        return fini_fail(err, w.status, "%s", w.error.message);
    if (atomic_load(&w.stop))
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %.0f of %.0f fits", w.done,
                         w.total);
    return FIN_OK;
}

typedef struct task {
    int model, outer, inner; /* inner: a fold, or -1: the whole training set */
} task;

typedef struct crossing {
    const fini_crossing *c;
    task *task; /* (tasks) costly ones first */
    int64_t tasks;
} crossing;

static int64_t width_of(const fini_crossing *c)
{
    return c->classes ? c->classes : 1;
}

/* ---- predictions for scattered bags ---------------------------------------------------------- */

/* Room for `bags` bags with `bytes` of tokens, and what they get. */
typedef struct chunk {
    int64_t n;
    int64_t *bag;     /* (n) numbers of the bags */
    int64_t *offsets; /* (n + 1) */
    unsigned char *tokens;
    double *mean, *spread; /* (n, width) */
    double *within, *ends; /* (n), (n, 2) */
} chunk;

static void layout(fini_arena *a, chunk *k, int64_t bags, int64_t bytes, int64_t width)
{
    k->bag = fini_take(a, bags, sizeof *k->bag);
    k->offsets = fini_take(a, bags + 1, sizeof *k->offsets);
    k->tokens = fini_take(a, bytes, 1);
    k->mean = fini_take(a, bags * width, sizeof *k->mean);
    k->spread = fini_take(a, bags * width, sizeof *k->spread);
    k->within = fini_take(a, bags, sizeof *k->within);
    k->ends = fini_take(a, bags, 2 * sizeof *k->ends);
}

static fin_status predict_chunk(const fini_crossing *c, int64_t at, const fini_part *part, chunk *k,
                                fini_cancel *cancel, fin_error *err)
{
    int64_t width = width_of(c), n = c->bags->n;
    double *mean = c->mean + at * n * width;
    fin_bags bags = *c->bags;
    bags.n = bags.total = k->n;
    bags.first = 0;
    bags.offsets = k->offsets;
    bags.tokens = k->tokens;
    bags.labels = NULL;
    bags.groups = NULL;
    const fini_said to = {.mean = k->mean,
                          .spread = k->spread,
                          .within = k->within,
                          .coverage = 0.9,
                          .ends = c->ends ? k->ends : NULL};
    FINI_TRY(fini_part_predict(part, &bags, NULL, &to, cancel, err));
    for (int64_t j = 0; j < k->n; j++) {
        memcpy(mean + k->bag[j] * width, k->mean + j * width, (size_t)width * sizeof *mean);
        if (c->spread)
            c->spread[at * n + k->bag[j]] = k->spread[j];
        if (c->within)
            c->within[at * n + k->bag[j]] = k->within[j];
        if (c->ends)
            memcpy(c->ends + 2 * (at * n + k->bag[j]), k->ends + 2 * j, 2 * sizeof *k->ends);
    }
    k->n = 0;
    return FIN_OK;
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

/* Is bag i predicted by the fit of this task? */
static bool is_asked(const fini_crossing *c, const task *t, int64_t i)
{
    int64_t at = t->outer * c->bags->n + i;
    bool test = c->test && c->test[at];
    return t->inner < 0 ? test : !test && c->fold[at] == t->inner;
}

static fin_status predict_asked(const fini_crossing *c, const task *t, const fini_part *part,
                                fini_cancel *cancel, fin_error *err)
{
    int64_t count = 0, bytes = 0, longest = 0, at = (int64_t)t->model * c->outers + t->outer;
    for (int64_t i = 0; i < c->bags->n; i++) {
        if (!is_asked(c, t, i))
            continue;
        count++;
        bytes += bytes_of(c->bags, i);
        longest = bytes_of(c->bags, i) > longest ? bytes_of(c->bags, i) : longest;
    }
    if (!count)
        return FIN_OK; /* a process may have none of them */
    chunk k = {0};
    fini_arena arena = {0};
    int64_t room = bytes < CHUNK ? bytes : longest > CHUNK ? longest : CHUNK, held = 0;
    layout(&arena, &k, count, room, width_of(c));
    fin_status status = fini_arena_open(&arena, "the bags that were left out", err);
    if (status)
        return status;
    layout(&arena, &k, count, room, width_of(c));
    for (int64_t i = 0; !status && i < c->bags->n; i++) {
        if (!is_asked(c, t, i))
            continue;
        int64_t more = bytes_of(c->bags, i);
        if (k.n && held + more > room) {
            status = predict_chunk(c, at, part, &k, cancel, err);
            held = 0;
        }
        append(c->bags, i, &k);
        held += more;
    }
    if (!status)
        status = predict_chunk(c, at, part, &k, cancel, err);
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

static fin_status fit_and_predict(const fini_crossing *c, const task *t,
                                  const fin_progress *progress, fin_error *err)
{
    int64_t n = c->bags->n, at = t->outer * n;
    fini_cancel cancel;
    fini_part part = {.stands_for = (double)c->size[t->outer]};
    FINI_OWN(err, "weights of bags", double, weights, n, 1);
    for (int64_t i = 0; i < n; i++) {
        bool out = (c->test && c->test[at + i]) || (t->inner >= 0 && c->fold[at + i] == t->inner);
        weights[i] = out ? 0 : c->weights ? c->weights[i] : 1;
    }
    fin_status status = fini_part_fit(&part, &c->model[t->model], c->classes, c->bags,
                                      c->labels + at, weights, c->sum, progress, err);
    fini_cancel_open(&cancel, progress, "fit");
    if (!status)
        status = fini_cancel_stage(&cancel, "fit", 1, 1, err);
    if (!status)
        status = predict_asked(c, t, &part, &cancel, err);
    if (!status && t->inner < 0 && c->noise)
        c->noise[t->model * c->outers + t->outer] = part.noise;
    if (!status && t->inner < 0 && c->outlook)
        c->outlook[t->model * c->outers + t->outer] =
            fini_outlook(&part, (double)c->size[t->outer]);
    fini_part_close(&part);
    return status;
}

static fin_status run_task(void *user, int64_t number, const fin_progress *progress, fin_error *err)
{
    const crossing *w = user;
    const fini_crossing *c = w->c;
    const task *t = &w->task[number];
    fin_error why = {FIN_OK, ""};
    double begin = processor_seconds();
    fin_status status = fit_and_predict(c, t, progress, &why);
    double spent = processor_seconds() - begin;
    if (c->seconds) {
#pragma omp atomic
        c->seconds[t->model] += spent;
    }
    if (status && c->test && status != FIN_ERR_CANCELLED)
        return fini_fail(err, status, "with fold %d of repeat %d (from 0) left out: %.430s",
                         t->outer % c->folds, t->outer / c->folds, why.message);
    return status ? fini_fail(err, status, "%s", why.message) : FIN_OK;
}

/* ---- all tasks ------------------------------------------------------------------------------- */

static void list_tasks(crossing *w)
{
    const fini_crossing *c = w->c;
    w->tasks = 0;
    for (int costly = 1; costly >= 0; costly--) /* features cost more than columns */
        for (int m = 0; m < c->models; m++)
            for (int o = 0; o < c->outers; o++)
                for (int f = -1; f < c->inner[o]; f++) {
                    int todo = c->todo[m * c->outers + o] & (f < 0 ? FINI_WHOLE : FINI_INNER);
                    if (fini_has_features(&c->model[m]) != costly || !todo)
                        continue;
                    if (w->task)
                        w->task[w->tasks] = (task){m, o, f};
                    w->tasks++;
                }
}

/* Features of tokens are made for each fit at a time, and are far larger than what they are made of. */
static double bytes_of_features(const fini_crossing *c, int m)
{
    const fin_fit_settings *s = &c->model[m];
    bool tokens = fini_bag_model_of(s->model)->statistics == FINI_TOKENS;
    double columns = s->basis == FIN_BASIS_BOTH ? (double)c->bags->d : 0;
    double each = (columns + (double)s->landmarks) * sizeof(double);
    return tokens && s->basis > FIN_BASIS_LINEAR ? (double)fini_bags_tokens(c->bags) * each : 0;
}

/* No more fits side by side than there is memory for; an error if there is too little for one. */
static fin_status share_memory(const crossing *w, int *threads, fin_error *err)
{
    const double share = 0.9, much = 64e6; /* less than this is not asked about */
    double most = 0, left;
    int model = 0;
    for (int64_t k = 0; k < w->tasks; k++) {
        double bytes = bytes_of_features(w->c, w->task[k].model);
        model = bytes > most ? w->task[k].model : model;
        most = fmax(most, bytes);
    }
    if (most <= much || (left = share * fini_memory_left()) >= most * *threads)
        return FIN_OK;
    *threads = (int)(left / most);
    if (*threads > 0)
        return FIN_OK;
    return fini_fail(
        err, FIN_ERR_MEMORY,
        "%s: the RBF features of %lld tokens for the model %s take %.3g GB, and %.3g GB of "
        "memory are left; basis = linear goes without them; if that model is only there to locate "
        "or to compare with, locator = no and no comparison go without it",
        w->c->what, (long long)fini_bags_tokens(w->c->bags),
        fin_fit_model_get(&w->c->model[model])->name, most / 1e9, left / 1e9);
}

fin_status fini_cross(const fini_crossing *c, const fin_progress *progress, fin_error *err)
{
    crossing w = {.c = c};
    list_tasks(&w);
    FINI_ROOM(err, "cross-validation", w.task, w.tasks, 1);
    list_tasks(&w);
    int threads = fin_threads_get();
    fin_status status = share_memory(&w, &threads, err);
    const fini_fits fits = {.count = w.tasks,
                            .fit = run_task,
                            .user = &w,
                            .what = c->what,
                            .threads = threads,
                            .in_turn = c->sum && c->sum != fini_sum_alone};
    if (!status)
        status = fini_fits_run(&fits, progress, err);
    fini_free(w.task);
    return status;
}
