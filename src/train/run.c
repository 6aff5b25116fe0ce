/* Taking runs from step to step: blocks of neighbouring runs over threads, logs, divergence.
 *
 * A block advances to its next logged step (or for as many steps as the engine does at once), is
 * looked at, and goes on. What a run becomes does not depend on the block it is in, so a run that is
 * found to have diverged is taken back and led there again step by step, to stop before it. */
#include "train/train.h"
#include "math/small.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* ---- one run ----------------------------------------------------------------------------------- */

static bool finite_state(const fin_train *t, int64_t run)
{
    fin_overlaps o;
    double lam;
    t->engine->read(t, run, &o, &lam);
    return isfinite(o.kappa + o.nu + o.theta + o.eta + o.rho) && !isnan(lam);
}

static bool has_converged(const fin_train *t, const fin_train_point *p)
{
    return fabs(p->kappa) > t->settings.converged && fabs(p->nu) > t->settings.converged;
}

static void note(double *at, bool seen, double step)
{
    if (seen && isnan(*at))
        *at = step;
}

/* A simulated risk may take long: it asks, from whatever thread it is in. */
static int ask(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return fini_stopped(user);
}

fin_status fini_log_point(fin_train *t, int64_t run, int64_t i, const fin_overlaps *o, double lam,
                          fin_error *err)
{
    fin_train_point p;
    fin_progress asked = {ask, t};
    FINI_TRY(fini_point_of(t, run, t->step[i], o, lam, &asked, &p, err));
    double values[FIN_LOG_COUNT];
    memcpy(values, &p, sizeof values);
    for (int j = 0; j < FIN_LOG_COUNT; j++)
        t->log[j][run * t->logs + i] = values[j];
    if (t->settings.rule != FIN_RULE_FLOW) {
        double step = (double)t->step[i];
        bool converged = has_converged(t, &p);
        note(&t->converged_at[run], converged, step);
        note(&t->stuck_at[run], !converged && p.gradient < t->settings.stuck, step);
        note(&t->left_at[run], p.distance > t->settings.left, step);
    }
    return FIN_OK;
}

int64_t fini_log_at(const fin_train *t, int64_t step)
{
    int64_t low = fini_first_from_i64(t->logs - 1, t->step, step);
    return t->step[low] == step ? low : -1;
}

static fin_status log_run(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    double lam;
    int64_t i = fini_log_at(t, t->at[run]);
    if (i < 0 || (t->engine->at_once == 0 && i > 0)) /* a flow writes its own */
        return FIN_OK;
    t->engine->read(t, run, &o, &lam);
    return fini_log_point(t, run, i, &o, lam, err);
}

/* A flow that came to nothing is left at the last step it has logged. */
static void end_flow(fin_train *t, int64_t run)
{
    int64_t i = t->logs - 1;
    while (i > 0 && isnan(t->log[0][run * t->logs + i]))
        i--;
    t->at[run] = t->step[i];
    for (int j = 0; j < FINI_STATE; j++) /* overlaps and lam: the first logs there are */
        t->state[run * t->width + j] = t->log[j][run * t->logs + i];
}

/* From a state that was fine at step `from` to the last one before `to` that is. */
static fin_status find_end(fin_train *t, void *worker, double *scratch, int64_t run,
                           const double *before, int64_t from, int64_t to, double *one,
                           fin_error *err)
{
    double *state = t->state + run * t->width;
    size_t size = (size_t)t->width * sizeof *state;
    memcpy(state, before, size);
    for (int64_t at = from; t->engine->at_once > 0 && at < to; at++) {
        memcpy(one, state, size);
        fin_status status = t->engine->advance(t, worker, scratch, run, 1, at, at + 1, err);
        if (status) { /* to be tried again from where it was */
            memcpy(state, before, size);
            t->at[run] = from;
            return status;
        }
        if (!finite_state(t, run)) {
            memcpy(state, one, size);
            break;
        }
        t->at[run] = at + 1;
    }
    if (t->engine->at_once == 0)
        end_flow(t, run);
    t->status[run] = FIN_RUN_DIVERGED;
    return FIN_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

typedef struct fini_scheduler {
    fin_train *t;
    int64_t until, blocks;
    atomic_llong next, made; /* block to be taken; run-steps made */
    atomic_int busy, stop;
    const fin_progress *progress;
    double total;
    fin_status status; /* of the first run, in their order, that failed */
    int64_t failed;
    fin_error error;
} fini_scheduler;

static void fail(fini_scheduler *c, int64_t run, fin_status status, const fin_error *err)
{
#pragma omp critical(fini_train_fail)
    if (!c->status || run < c->failed) {
        c->status = status;
        c->failed = run;
        c->error = *err;
    }
    atomic_store(&c->stop, 1);
}

/* The caller's own thread speaks to the caller. */
static void report(fini_scheduler *c)
{
    if (omp_get_thread_num() == 0 &&
        fini_report(c->progress, "training", (double)atomic_load(&c->made), c->total))
        atomic_store(&c->stop, 1);
}

bool fini_stopped(fin_train *t)
{
    if (!t->scheduler)
        return false;
    report(t->scheduler);
    return atomic_load(&t->scheduler->stop);
}

static bool alive(const fin_train *t, int64_t run, int64_t until)
{
    return t->status[run] != FIN_RUN_DIVERGED && t->at[run] < until;
}

/* Runs first .. first+count-1, which are at step `from` (those that live), to step `to`. */
static fin_status advance(fini_scheduler *c, void *worker, double *scratch, double *copy,
                          int64_t first, int count, int64_t from, int64_t to, fin_error *err)
{
    fin_train *t = c->t;
    size_t size = (size_t)t->width * sizeof(double);
    double *state = t->state + first * t->width, *one = copy + t->engine->block * t->width;
    memcpy(copy, state, (size_t)count * size);
    fin_status status = t->engine->advance(t, worker, scratch, first, count, from, to, err);
    for (int i = 0; i < count; i++) {
        int64_t run = first + i;
        double *mine = state + i * t->width, *before = copy + i * t->width;
        if (status || !alive(t, run, c->until) || t->at[run] != from) {
            memcpy(mine, before, size);
            continue;
        }
        if (finite_state(t, run)) {
            t->at[run] = to;
            if ((status = log_run(t, run, err))) {
                t->at[run] = from;
                memcpy(mine, before, size);
            }
        } else {
            status = find_end(t, worker, scratch, run, before, from, to, one, err);
        }
        atomic_fetch_add(&c->made, (long long)(to - from));
    }
    return status;
}

static int64_t next_stop(const fini_scheduler *c, int64_t from)
{
    const fin_train *t = c->t;
    if (t->engine->at_once == 0)
        return t->settings.steps;
    int64_t to = fini_next_logged(&t->settings, from), most = t->engine->at_once;
    if ((double)most * t->cost > 1e6) /* a tenth of a second or so */
        most = t->cost < 1e6 ? (int64_t)(1e6 / t->cost) : 1;
    to = to < from + most ? to : from + most;
    return to < c->until ? to : c->until;
}

static fin_status work_on(fini_scheduler *c, void *worker, double *scratch, double *copy,
                          int64_t block, int64_t *run, fin_error *err)
{
    fin_train *t = c->t;
    int64_t first = block * t->engine->block, end = first + t->engine->block;
    end = end < t->settings.runs ? end : t->settings.runs;
    fin_status status = FIN_OK;
    for (int64_t r = first; !status && r < end; r++)
        if (*run = r, t->at[r] == 0 && isnan(t->log[0][r * t->logs]))
            status = log_run(t, r, err);
    while (!status && !atomic_load(&c->stop)) {
        /* The runs of a block are at the same step unless they were resumed from elsewhere. */
        int64_t from = INT64_MAX, to;
        bool together = true;
        for (int64_t r = first; r < end; r++)
            if (alive(t, r, c->until))
                from = t->at[r] < from ? t->at[r] : from;
        if (from == INT64_MAX)
            break;
        for (int64_t r = first; r < end; r++)
            together = together && (!alive(t, r, c->until) || t->at[r] == from);
        to = next_stop(c, from);
        *run = first;
        if (together)
            status = advance(c, worker, scratch, copy, first, (int)(end - first), from, to, err);
        for (int64_t r = first; !together && !status && r < end; r++)
            if (*run = r, alive(t, r, c->until) && t->at[r] == from)
                status = advance(c, worker, scratch, copy, r, 1, from, to, err);
        report(c);
    }
    return status;
}

static void work(fini_scheduler *c, double *scratch, double *copy)
{
    fin_train *t = c->t;
    fin_error err = {FIN_OK, ""};
    void *worker = NULL;
    fin_status status = t->engine->open ? t->engine->open(t, &worker, &err) : FIN_OK;
    int64_t run = 0;
    while (!status && !atomic_load(&c->stop)) {
        int64_t block = (int64_t)atomic_fetch_add(&c->next, 1);
        if (block >= c->blocks)
            break;
        status = work_on(c, worker, scratch, copy, block, &run, &err);
    }
    if (status && status != FIN_ERR_CANCELLED)
        fail(c, run, status, &err);
    if (worker)
        t->engine->close(worker);
    atomic_fetch_sub(&c->busy, 1);
    /* The first thread stays awake for the caller while others finish. */
    while (omp_get_thread_num() == 0 && c->progress && atomic_load(&c->busy) > 0) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        report(c);
    }
}

static fin_run_status status_of(const fin_train *t, int64_t run, const fin_train_point *p)
{
    if (t->status[run] == FIN_RUN_DIVERGED)
        return FIN_RUN_DIVERGED;
    return has_converged(t, p)               ? FIN_RUN_CONVERGED
           : p->gradient < t->settings.stuck ? FIN_RUN_STUCK
                                             : FIN_RUN_UNCONVERGED;
}

/* Without simulating anything: where the risk is not exact, a run is not known to be stuck. */
static fin_status classify(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    double lam;
    t->engine->read(t, run, &o, &lam);
    fin_train_point p = {.kappa = o.kappa, .nu = o.nu, .gradient = NAN};
    if (t->has_gradient && t->status[run] != FIN_RUN_DIVERGED)
        FINI_TRY(fini_point_of(t, run, t->at[run], &o, lam, NULL, &p, err));
    t->status[run] = status_of(t, run, &p);
    return FIN_OK;
}

fin_status fin_train_run(fin_train *t, int64_t until, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, t);
    if (until < 0 || until > t->settings.steps)
        return fini_fail(err, FIN_ERR_ARGUMENT, "until = %lld; it must be from 0 to steps = %lld",
                         (long long)until, (long long)t->settings.steps);
    if (t->engine->at_once == 0 && until > 0)
        until = t->settings.steps; /* a flow is one piece */
    fini_scheduler c = {.t = t,
                        .until = until,
                        .blocks = (t->settings.runs + t->engine->block - 1) / t->engine->block,
                        .progress = progress};
    for (int64_t run = 0; run < t->settings.runs; run++)
        c.total += alive(t, run, until) ? (double)(until - t->at[run]) : 0;
    int threads = fin_threads_get();
    threads = c.blocks < threads ? (int)c.blocks : threads;
    int64_t scratch = (t->engine->scratch(t) + 7) / 8 * 8;
    int64_t copy = ((t->engine->block + 1) * t->width + 7) / 8 * 8, numbers;
    double *memory = __builtin_mul_overflow(scratch + copy, (int64_t)threads, &numbers)
                         ? NULL
                         : fini_alloc_array(numbers, sizeof *memory);
    if (!memory)
        return fini_fail(
            err, FIN_ERR_MEMORY,
            "out of memory: training with %g numbers a thread; take a smaller batch or L",
            (double)scratch + (double)copy);
    if (fini_report(progress, "training", 0, c.total))
        atomic_store(&c.stop, 1);
    atomic_store(&c.busy, threads);
    t->scheduler = &c;
#pragma omp parallel num_threads(threads)
    {
        /* Should there be fewer threads than asked for, the missing ones have done their work. */
#pragma omp single
        atomic_fetch_sub(&c.busy, threads - omp_get_num_threads());
        double *mine = memory + omp_get_thread_num() * (scratch + copy);
        work(&c, mine, mine + scratch);
    }
    t->scheduler = NULL;
    fini_free(memory);
    bool complete = true;
    for (int64_t run = 0; !c.status && run < t->settings.runs; run++) {
        complete = complete && !alive(t, run, until);
        c.status = classify(t, run, &c.error);
    }
    if (c.status)
        return fini_fail(err, c.status, "%s", c.error.message);
    if (!complete)
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %.0f of %.0f steps",
                         (double)atomic_load(&c.made), c.total);
    fini_report(progress, "training", c.total, c.total);
    return FIN_OK;
}

/* ---- what came out ------------------------------------------------------------------------------ */

const char *fin_run_status_name(fin_run_status status)
{
    static const char *const names[] = {
#define NAME(status, text) text,
        FIN_RUN_STATUS_LIST(NAME)
#undef NAME
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

fin_status fin_train_get_run(const fin_train *t, int64_t run, fin_run *out, fin_error *err)
{
    FINI_NEED(err, t, out);
    if (run < 0 || run >= t->settings.runs)
        return fini_fail(err, FIN_ERR_ARGUMENT, "run %lld; there are %lld, from 0 on",
                         (long long)run, (long long)t->settings.runs);
    fin_overlaps o;
    double lam;
    int64_t i = fini_log_at(t, t->at[run]);
    *out = (fin_run){.step = t->at[run],
                     .converged_at = t->converged_at[run],
                     .stuck_at = t->stuck_at[run],
                     .left_at = t->left_at[run]};
    t->engine->read(t, run, &o, &lam);
    if (i >= 0 && !isnan(t->log[0][run * t->logs + i])) {
        double values[FIN_LOG_COUNT];
        for (int j = 0; j < FIN_LOG_COUNT; j++)
            values[j] = t->log[j][run * t->logs + i];
        memcpy(&out->now, values, sizeof values);
    } else {
        FINI_TRY(fini_point_of(t, run, t->at[run], &o, lam, NULL, &out->now, err));
    }
    out->status = status_of(t, run, &out->now);
    return FIN_OK;
}
