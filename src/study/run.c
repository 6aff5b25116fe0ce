/* Running a study: what is missing goes to threads and ranks, what they finish goes to the store.
 *
 * The thread that calls is the only one that talks: to the store, to the caller's report and to other
 * ranks. It computes nothing. Finished runs are committed as soon as they are seen, so that a kill
 * at any moment loses the runs in flight and nothing else; while a commit is under way more runs
 * finish, and go together into the next one. */
#include "study/run.h"
#include "store/store.h"
#include "study/study.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_study_settings
FIN_TABLE(, fin_study_table, "study", FIN_STUDY_FIELDS);

enum { BATCH = 256 };

/* What rank 0 holds while a study runs. */
typedef struct conductor {
    const fin_study *study;
    fin_store *store;
    fini_pool *pool;
    fini_scheduler *scheduler;
    fini_done *batch;  /* [BATCH] */
    fini_known *known; /* [runs] */
    fin_study_report report;
    void *user;
    int64_t session; /* its id in the store */
    int threads;
    bool cancelled, broken;    /* broken: the store has failed */
    double begin, said, wrote; /* times: of the start, the last report, the last session row */
    int64_t total;             /* runs to do */
    fin_study_count count;
} conductor;

/* ---- telling ----------------------------------------------------------------------------------- */

static double expected(const conductor *c, double seconds)
{
    if (!c->count.done)
        return c->total ? NAN : 0;
    return seconds * (double)(c->total - c->count.done) / (double)c->count.done;
}

static fin_status write_session(conductor *c, bool ended, fin_error *err)
{
    double seconds = fini_clock() - c->begin;
    fin_session_row row = {.study = c->study->name,
                           .total = c->total,
                           .done = c->count.done,
                           .failed = c->count.failed,
                           .ranks = fin_ranks(),
                           .threads = c->threads,
                           .seconds = seconds,
                           .left = expected(c, seconds),
                           .ended = ended};
    c->wrote = fini_clock();
    return fini_store_session(c->store, &c->session, &row, err);
}

static void report(conductor *c)
{
    double now = fini_clock();
    fin_study_news news = {.study = c->study->name,
                           .total = c->total,
                           .done = c->count.done,
                           .failed = c->count.failed,
                           .running = fini_pool_now(c->pool).running +
                                      fini_scheduler_running(c->scheduler),
                           .seconds = now - c->begin,
                           .left = expected(c, now - c->begin)};
    c->said = now;
    if (c->report && c->report(c->user, &news))
        c->cancelled = true;
}

/* While runs are planned: how many there are, and none done. */
static int still_planning(void *user, const char *what, double done, double total)
{
    conductor *c = user;
    double now = fini_clock();
    (void)what, (void)done, (void)total;
    if (c->cancelled || !c->report || now - c->said < 0.25)
        return c->cancelled;
    fin_study_news news = {
        .study = c->study->name, .total = c->count.planned, .seconds = now - c->begin, .left = NAN};
    c->said = now;
    c->cancelled = c->report(c->user, &news) != 0;
    return c->cancelled;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

/* Keeps a batch; once the store has failed, drops it. `status`: of before, which an error of the
 * store does not replace. */
static fin_status keep(conductor *c, int count, fin_status status, fin_error *err)
{
    for (int i = 0; i < count; i++) {
        int64_t at = c->batch[i].position;
        c->batch[i].known = at >= 0 && at < c->study->run_count ? c->known[at] : (fini_known){0, 0};
    }
    if (count && !c->broken) {
        fin_status kept = fini_study_keep(c->store, c->study, c->batch, count, status ? NULL : err);
        c->broken = kept != FIN_OK;
        status = status ? status : kept;
    }
    for (int i = 0; i < count; i++) {
        if (!c->broken) {
            c->count.done++;
            c->count.failed += c->batch[i].state == FIN_STATE_FAILED;
            fini_scheduler_learn(c->scheduler, &c->batch[i]);
        }
        fin_result_destroy(c->batch[i].result);
        c->batch[i].result = NULL;
    }
    return status;
}

/* Everything that was finished before a cancel or before trouble on another rank is kept; after an
 * error of the store nothing can be, but the threads and ranks are waited for. */
static fin_status conduct(conductor *c, fin_error *err)
{
    const double shortest = 5e-5, longest = 1e-3; /* between two looks at what other ranks send */
    double pause = shortest;
    bool stopped = false;
    fin_status status = write_session(c, false, err);
    report(c);
    while (!fini_pool_now(c->pool).finished || !fini_scheduler_finished(c->scheduler)) {
        int count = 0;
        bool busy = fini_scheduler_poll(c->scheduler, c->pool, c->batch, BATCH, &count);
        count += fini_pool_drain(c->pool, c->batch + count, BATCH - count);
        status = keep(c, count, status, err);
        if (!status)
            status = fini_scheduler_status(c->scheduler, err);
        double now = fini_clock();
        if (!status && now - c->wrote >= 1)
            status = write_session(c, false, err);
        if (!c->cancelled && now - c->said >= 0.1)
            report(c);
        if ((status || c->cancelled) && !stopped) {
            fini_pool_stop(c->pool);
            fini_scheduler_stop(c->scheduler);
            stopped = true;
        }
        pause = busy || count ? shortest : 2 * pause < longest ? 2 * pause : longest;
        if (fin_ranks() == 1)
            fini_pool_wait(c->pool, 0.1);
        else if (!busy && !count)
            fini_rest(pause);
    }
    return status;
}

static fin_status finish(conductor *c, fin_status status, fin_error *err)
{
    bool complete = c->count.done == c->total;
    c->count.seconds = fini_clock() - c->begin;
    if (!c->cancelled)
        report(c);
    fin_status last = write_session(c, true, status ? NULL : err);
    if (!status && !last)
        last = fini_store_still_has(c->store, c->study->name, NULL, err);
    if (status || last)
        return status ? status : last;
    if (!complete)
        return fini_fail(err, FIN_ERR_CANCELLED,
                         "cancelled: %lld of %lld runs were done and are in the store; the same "
                         "command does the rest",
                         (long long)c->count.done, (long long)c->total);
    return FIN_OK;
}

/* ---- before ------------------------------------------------------------------------------------ */

static fin_status check(const fin_study *study, const fin_study_settings *given,
                        fin_study_settings *settings, fin_error *err)
{
    memset(settings, 0, sizeof *settings);
    fin_settings_defaults(&fin_study_table, settings, sizeof *settings);
    if (given)
        *settings = *given;
    FINI_TRY(fin_settings_validate(&fin_study_table, settings, err));
    if (!study)
        return fini_fail(err, FIN_ERR_ARGUMENT, "there is no study to run");
    if (settings->shard >= settings->shards)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "shard %lld of %lld: they are counted from 0, so that the last is %lld",
                         (long long)settings->shard, (long long)settings->shards,
                         (long long)settings->shards - 1);
    return FIN_OK;
}

/* A rank has the threads that it is told to have, else one: how many ranks share a machine is not
 * known. */
static int choose_threads(const fin_study_settings *settings)
{
    if (settings->threads != FIN_AUTO_INT)
        return (int)settings->threads;
    return fini_ranks_joined() && !fini_threads_told() ? 1 : fin_threads_get();
}

/* The positions of the runs to do, in order. */
static fin_status plan(conductor *c, const fin_study_settings *settings, int64_t **list,
                       fin_error *err)
{
    int64_t runs = c->study->run_count;
    FINI_FREED unsigned char *missing = fini_alloc_array(runs ? runs : 1, 1);
    c->known = fini_alloc_array(runs ? runs : 1, sizeof *c->known);
    if (!missing || !c->known)
        return fini_fail_memory(err, (size_t)runs * (1 + sizeof *c->known),
                                "the plan of the study");
    memset(missing, 0, (size_t)runs);
    c->said = c->begin;
    c->count.claims_left_out = c->study->left_out;
    c->count.planned = (runs - settings->shard + settings->shards - 1) / settings->shards;
    const fin_progress progress = {still_planning, c};
    fin_status status = fini_store_plan(c->store, c->study, settings->retry_failed != 0, missing,
                                        c->known, &progress, err);
    for (int64_t i = settings->shard; !status && i < runs; i += settings->shards)
        c->total += missing[i];
    c->count.present = status ? 0 : c->count.planned - c->total;
    if (!status) {
        *list = fini_alloc_array(c->total ? c->total : 1, sizeof **list);
        if (!*list)
            status = fini_fail_memory(err, (size_t)c->total * sizeof **list, "the runs to do");
    }
    int64_t count = 0;
    for (int64_t i = settings->shard; !status && i < runs; i += settings->shards)
        if (missing[i])
            (*list)[count++] = i;
    return status;
}

/* The plan, the threads, the ranks, and memory for what comes back. */
static fin_status prepare(conductor *c, const fin_study_settings *settings, int64_t **list,
                          fin_error *err)
{
    if (!c->store)
        return fini_fail(err, FIN_ERR_ARGUMENT, "there is no store to keep the runs in");
    c->begin = fini_clock();
    FINI_TRY(fini_store_lock(c->store, c->study->name, err));
    FINI_TRY(plan(c, settings, list, err));
    FINI_ROOM(err, "finished runs", c->batch, BATCH, 1);
    int64_t most = c->total < c->threads ? c->total : c->threads;
    int workers = most > 1 ? (int)most : 1, inner = c->threads / workers;
    fin_status status = fini_scheduler_create(c->study, workers, &c->scheduler, err);
    return status
               ? status
               : fini_pool_create(c->study, workers, inner, c->total ? c->total : 1, &c->pool, err);
}

static fin_status lead(conductor *c, const fin_study_settings *settings, fin_error *err)
{
    int64_t *list = NULL;
    fin_error outcome = {FIN_OK, ""};
    fin_status status = fini_ranks_agree(prepare(c, settings, &list, &outcome), &outcome);
    if (!status) {
        fini_pool_add(c->pool, list, c->total);
        fini_pool_close(c->pool);
        fini_free(list);
        list = NULL;
        status = finish(c, conduct(c, &outcome), &outcome);
        outcome.status = status;
        fini_scheduler_end(&outcome, &c->count);
    }
    fini_pool_destroy(c->pool);
    fini_scheduler_destroy(c->scheduler);
    fini_free(c->batch);
    fini_free(c->known);
    fini_free(list);
    if (c->store)
        fini_store_unlock(c->store);
    if (status && err)
        *err = outcome;
    return status;
}

/* ---- every other rank -------------------------------------------------------------------------- */

static fin_status follow(const fin_study *study, int threads, fin_status status,
                         fin_study_count *count, fin_error *err)
{
    fini_pool *pool = NULL;
    void *buffer = NULL;
    fin_error own = {FIN_OK, ""};
    if (status && err)
        own = *err;
    if (!status && !(buffer = fini_alloc(FINI_MESSAGE)))
        status = fini_fail_memory(&own, FINI_MESSAGE, "messages to other ranks");
    if (!status)
        status = fini_pool_create(study, threads, 1, FINI_MEMBER_ROOM, &pool, &own);
    status = fini_ranks_agree(status, &own);
    if (!status)
        status = fini_scheduler_member(pool, threads, buffer, count, &own);
    fini_pool_destroy(pool);
    fini_free(buffer);
    if (status && err)
        *err = own;
    return status;
}

fin_status fin_study_run(const fin_study *study, fin_store *store, const fin_study_settings *given,
                         fin_study_report report_to, void *user, fin_study_count *count,
                         fin_error *err)
{
    FINI_NEED(err, study);
    fin_study_settings settings;
    fin_error own = {FIN_OK, ""};
    conductor c = {.study = study, .store = store, .report = report_to, .user = user};
    fin_status status = check(study, given, &settings, &own);
    c.threads = status ? 1 : choose_threads(&settings);
    if (fin_rank() > 0) {
        status = follow(study, c.threads, status, &c.count, &own);
    } else if (status) {
        status = fini_ranks_agree(status, &own);
    } else {
        status = lead(&c, &settings, &own);
    }
    if (count)
        *count = c.count;
    if (status && err)
        *err = own;
    return status;
}
