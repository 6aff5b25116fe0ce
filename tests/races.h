/* Several threads at once, for tests that look for races. What is asserted is asserted after they
 * have ended: cmocka knows one thread. A header with static functions, after cmocka.h. */
#ifndef RACES_H
#define RACES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { RACES_MOST = 8 };

typedef struct races_runner {
    pthread_barrier_t *start;
    void (*run)(void *user, int me);
    void *user;
    int me;
} races_runner;

static inline void *races_begin(void *runner)
{
    races_runner *r = runner;
    pthread_barrier_wait(r->start);
    r->run(r->user, r->me);
    return NULL;
}

/* run(user, 0), ..., run(user, count - 1), each in a thread; they begin together. */
static inline void races_run(int count, void (*run)(void *user, int me), void *user)
{
    pthread_barrier_t start;
    pthread_t thread[RACES_MOST];
    races_runner runner[RACES_MOST];
    assert_in_range(count, 1, RACES_MOST);
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) {
        runner[i] = (races_runner){&start, run, user, i};
        assert_int_equal(pthread_create(&thread[i], NULL, races_begin, &runner[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&start);
}

static inline void races_rest(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* A call that another thread cancels: the `at`-th report (from 1) wakes that thread and waits for
 * its word, so that work is under way however fast the machine is. There may be fewer reports. */
typedef struct races_cancel {
    atomic_int reports, stop, ended;
    int at, after; /* after: reports after the one that said no */
    pthread_t other;
} races_cancel;

static inline int races_report(races_cancel *c)
{
    c->after += atomic_load(&c->stop);
    if (atomic_fetch_add(&c->reports, 1) + 1 == c->at)
        while (!atomic_load(&c->stop))
            races_rest();
    return atomic_load(&c->stop);
}

static inline int races_hear(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return races_report(user);
}

static inline void *races_wait_and_stop(void *cancel)
{
    races_cancel *c = cancel;
    while (atomic_load(&c->reports) < c->at && !atomic_load(&c->ended))
        races_rest();
    atomic_store(&c->stop, 1);
    return NULL;
}

static inline void races_cancel_begin(races_cancel *c)
{
    assert_int_equal(pthread_create(&c->other, NULL, races_wait_and_stop, c), 0);
}

/* After the call. True if it was told to stop. */
static inline bool races_cancel_end(races_cancel *c)
{
    atomic_store(&c->ended, 1);
    pthread_join(c->other, NULL);
    return atomic_load(&c->reports) >= c->at;
}

#endif
