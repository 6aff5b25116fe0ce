/* Threads that compute runs.
 *
 * One list of positions, one queue of finished runs, one mutex for both: a run takes far longer than
 * the lock. The queue is bounded, in runs and in bytes, so that a slow disk makes the threads wait
 * and does not fill the memory. A thread has everything it needs before it starts; what a run itself
 * cannot get makes that run fail and no other. Results do not depend on who computes what when,
 * because a run is a function of its settings alone. */
#include "study/run.h"

#include "data/data.h"
#include "math/gram.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { QUEUE_RUNS = 1024, QUEUE_BYTES = 1 << 26 };

typedef struct worker {
    fini_pool *pool;
    pthread_t thread;
    void *values; /* settings of this run */
} worker;

struct fini_pool {
    fini_arena arena;
    const fin_study *study;
    int workers, inner, started;
    worker *worker; /* [workers] */
    unsigned char *values;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* for the workers: there is something to do, or to leave */
    pthread_cond_t space; /* for the workers: the queue has room */
    pthread_cond_t ready; /* for the owner: the queue has something, or nothing is left */
    bool closed;
    atomic_bool stop;

    int64_t *list, room, at, end; /* the list is list[at..end) */
    fini_done *queue;             /* [QUEUE_RUNS], a ring */
    size_t *bytes;                /* [QUEUE_RUNS] */
    int first, count, running;
    size_t held; /* bytes of all that is in the queue */
};

double fini_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void fini_rest(double seconds)
{
    struct timespec pause = {0, (long)(1e9 * seconds)};
    nanosleep(&pause, NULL);
}

/* ---- one run ---------------------------------------------------------------------------------- */

static int asked_to_stop(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return atomic_load(&((fini_pool *)user)->stop);
}

static fin_status compute(fini_pool *pool, int64_t position, void *values, fin_result *result,
                          fin_error *err)
{
    const fin_progress progress = {asked_to_stop, pool};
    if (!result)
        return fini_fail(err, FIN_ERR_MEMORY, "out of memory for the results of the run");
    FINI_TRY(fini_study_settings(pool->study, position, values, err));
    const fin_command *command = fini_study_block_at(pool->study, position)->command;
    return fini_command_perform(command, values, result, &progress, err);
}

/* False if it was dropped on the way. */
static bool run(worker *self, int64_t position, fini_done *done)
{
    fin_error err = {FIN_OK, ""};
    memset(done, 0, sizeof *done);
    done->position = position;
    done->result = fin_result_create();
    double begin = fini_clock();
    fin_status status = compute(self->pool, position, self->values, done->result, &err);
    done->seconds = fini_clock() - begin;
    done->state = status ? FIN_STATE_FAILED : FIN_STATE_DONE;
    if (!status)
        return true;
    fin_result_destroy(done->result);
    done->result = NULL;
    snprintf(done->reason, sizeof done->reason, "%s",
             err.message[0] ? err.message : fin_status_name(status));
    return !(status == FIN_ERR_CANCELLED && atomic_load(&self->pool->stop));
}

static size_t result_bytes(const fin_result *result)
{
    size_t sum = 0;
    for (int i = 0; result && i < fin_result_series_count(result); i++) {
        fin_series series = fin_result_get_series(result, i);
        size_t size = fin_dtype_size(series.dtype);
        for (int j = 0; j < series.ndim; j++)
            size *= (size_t)series.shape[j];
        sum += size;
    }
    return sum;
}

/* ---- a thread --------------------------------------------------------------------------------- */

/* With the lock held. A single run may be larger than the queue's bytes. */
static void put(fini_pool *pool, const fini_done *done, size_t bytes)
{
    while (pool->count == QUEUE_RUNS || (pool->count && pool->held + bytes > QUEUE_BYTES))
        pthread_cond_wait(&pool->space, &pool->lock);
    int slot = (pool->first + pool->count++) % QUEUE_RUNS;
    pool->queue[slot] = *done;
    pool->bytes[slot] = bytes;
    pool->held += bytes;
    if (pool->count == 1)
        pthread_cond_signal(&pool->ready);
}

static void *work(void *user)
{
    worker *self = user;
    fini_pool *pool = self->pool;
    fini_done done;
    fini_threads_limit(pool->inner);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->at == pool->end && !pool->closed)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->at == pool->end)
            break;
        int64_t position = pool->list[pool->at++];
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        bool keep = run(self, position, &done);
        size_t bytes = keep ? result_bytes(done.result) : 0;
        pthread_mutex_lock(&pool->lock);
        if (keep)
            put(pool, &done, bytes);
        pool->running--;
        if (!pool->running && pool->at == pool->end)
            pthread_cond_signal(&pool->ready);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the pool --------------------------------------------------------------------------------- */

static void layout(fini_arena *a, fini_pool *pool, size_t values)
{
    pool->worker = fini_take(a, pool->workers, sizeof *pool->worker);
    pool->values = fini_take(a, pool->workers, values);
    pool->list = fini_take(a, pool->room, sizeof *pool->list);
    pool->queue = fini_take(a, QUEUE_RUNS, sizeof *pool->queue);
    pool->bytes = fini_take(a, QUEUE_RUNS, sizeof *pool->bytes);
}

/* The largest settings of any block, rounded up so that all of them are aligned. */
static size_t values_size(const fin_study *study)
{
    size_t size = 64;
    for (int i = 0; i < study->block_count; i++)
        size = study->blocks[i].command->size > size ? study->blocks[i].command->size : size;
    return (size + 63) / 64 * 64;
}

/* Signals are for the threads of the program, not for these. */
static fin_status start(fini_pool *pool, size_t values, fin_error *err)
{
    sigset_t all, before;
    int code = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool->started < pool->workers && !code; pool->started += !code) {
        worker *self = &pool->worker[pool->started];
        self->pool = pool;
        self->values = pool->values + (size_t)pool->started * values;
        code = pthread_create(&self->thread, NULL, work, self);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pool->started) /* some are enough */
        return FIN_OK;
    char reason[128] = "unknown error";
    strerror_r(code, reason, sizeof reason);
    return fini_fail(err, FIN_ERR_MEMORY, "the system refused to start a thread: %s", reason);
}

fin_status fini_pool_create(const fin_study *study, int workers, int inner, int64_t room,
                            fini_pool **out, fin_error *err)
{
    *out = NULL;
    FINI_MAKE(err, "the threads of the study", fini_pool, pool);
    pool->study = study;
    pool->workers = workers;
    fini_blas_expect(workers * inner);
    pool->inner = inner;
    pool->room = room;
    atomic_init(&pool->stop, false);
    size_t values = values_size(study);
    layout(&pool->arena, pool, values);
    fin_status status = fini_arena_open(&pool->arena, "the threads of the study", err);
    if (status) {
        fini_free(pool);
        return status;
    }
    layout(&pool->arena, pool, values);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->space, NULL);
    pthread_cond_init(&pool->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
    status = start(pool, values, err);
    FINI_HAND_OVER(out, pool, status, fini_pool_destroy);
}

void fini_pool_destroy(fini_pool *pool)
{
    fini_done done;
    if (!pool)
        return;
    fini_pool_stop(pool);
    /* A thread may be waiting for room in the queue. */
    while (!fini_pool_now(pool).finished) {
        fini_pool_wait(pool, 1);
        while (fini_pool_drain(pool, &done, 1))
            fin_result_destroy(done.result);
    }
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->ready);
    pthread_cond_destroy(&pool->space);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    fini_arena_close(&pool->arena);
    fini_free(pool);
}

/* ---- what its owner does ---------------------------------------------------------------------- */

void fini_pool_add(fini_pool *pool, const int64_t *positions, int64_t count)
{
    pthread_mutex_lock(&pool->lock);
    int64_t left = pool->end - pool->at;
    if (pool->end + count > pool->room) {
        memmove(pool->list, pool->list + pool->at, (size_t)left * sizeof *pool->list);
        pool->at = 0;
        pool->end = left;
    }
    memcpy(pool->list + pool->end, positions, (size_t)count * sizeof *positions);
    pool->end += count;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

int64_t fini_pool_take(fini_pool *pool, int64_t most, int64_t end, int64_t *positions)
{
    int64_t count = 0;
    pthread_mutex_lock(&pool->lock);
    while (count < most && pool->at < pool->end && pool->list[pool->at] < end)
        positions[count++] = pool->list[pool->at++];
    if (!pool->running && pool->at == pool->end)
        pthread_cond_signal(&pool->ready);
    pthread_mutex_unlock(&pool->lock);
    return count;
}

void fini_pool_close(fini_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

void fini_pool_stop(fini_pool *pool)
{
    atomic_store(&pool->stop, true);
    pthread_mutex_lock(&pool->lock);
    pool->at = pool->end;
    pool->closed = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

static bool finished(const fini_pool *pool)
{
    return pool->closed && pool->at == pool->end && !pool->running && !pool->count;
}

void fini_pool_wait(fini_pool *pool, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(1e9 * (seconds - (double)(long)seconds));
    until.tv_sec += (long)seconds + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_mutex_lock(&pool->lock);
    int late = 0;
    while (!late && !pool->count && !finished(pool))
        late = pthread_cond_timedwait(&pool->ready, &pool->lock, &until);
    pthread_mutex_unlock(&pool->lock);
}

int fini_pool_drain(fini_pool *pool, fini_done *done, int most)
{
    int count = 0;
    pthread_mutex_lock(&pool->lock);
    for (; count < most && pool->count; count++) {
        done[count] = pool->queue[pool->first];
        pool->held -= pool->bytes[pool->first];
        pool->first = (pool->first + 1) % QUEUE_RUNS;
        pool->count--;
    }
    if (count)
        pthread_cond_broadcast(&pool->space);
    pthread_mutex_unlock(&pool->lock);
    return count;
}

fini_pool_state fini_pool_now(fini_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    fini_pool_state state = {pool->end - pool->at, pool->at < pool->end ? pool->list[pool->at] : -1,
                             pool->running, pool->count, finished(pool)};
    pthread_mutex_unlock(&pool->lock);
    return state;
}
