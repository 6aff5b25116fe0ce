/* Between the files that run a study: threads that compute (workers.c), processes that talk
 * (ranks.c), work that is handed out over them (scheduler.c), and who keeps it all going (run.c). */
#ifndef FINI_RUN_H
#define FINI_RUN_H

#include "study/study.h"

/* Seconds on a clock that never goes back. */
double fini_clock(void);
void fini_rest(double seconds); /* sleeps; less than a second */

/* ---- threads that compute (workers.c) -------------------------------------------------------- */

/* A list of positions that the threads take runs from, and a bounded queue of what they finished.
 * All calls below are made by one thread, the one that made the pool. */
typedef struct fini_pool fini_pool;

typedef struct fini_pool_state {
    int64_t todo;  /* runs that no thread has taken yet */
    int64_t next;  /* position of the first of them; -1: none */
    int running;   /* threads that are at a run */
    int ready;     /* finished runs that wait to be drained */
    bool finished; /* nothing is left, and nothing will come: closed or stopped, and drained */
} fini_pool_state;

/* Starts `workers` threads that wait for work; the calls of each use `inner` threads. The list never
 * holds more than `room` positions at a time. */
fin_status fini_pool_create(const fin_study *study, int workers, int inner, int64_t room,
                            fini_pool **out, fin_error *err);
/* Stops the threads, waits for them, and drops what they have. NULL is fine. */
void fini_pool_destroy(fini_pool *pool);
void fini_pool_add(fini_pool *pool, const int64_t *positions, int64_t count);
/* Takes at most `most` runs off the front of the list, all of them before position `end`. */
int64_t fini_pool_take(fini_pool *pool, int64_t most, int64_t end, int64_t *positions);
void fini_pool_close(fini_pool *pool); /* nothing will be added any more */
void fini_pool_stop(fini_pool *pool);  /* drops the list and the runs in flight */
/* Waits until something is ready or finished, at most so long. */
void fini_pool_wait(fini_pool *pool, double seconds);
int fini_pool_drain(fini_pool *pool, fini_done *done, int most);
fini_pool_state fini_pool_now(fini_pool *pool);

/* ---- processes that talk (ranks.c) ------------------------------------------------------------ */

/* The status of the first rank that has one other than FIN_OK, with its message, on every rank.
 * Collective. */
fin_status fini_ranks_agree(fin_status status, fin_error *err);
/* Rank 0's bytes on every rank. Collective; waits without spinning. */
void fini_ranks_broadcast(void *bytes, int64_t size);
/* Is there a message? From whom, and how long? */
bool fini_ranks_probe(int *from, int *size);
void fini_ranks_receive(int from, void *bytes, int size);
void fini_ranks_send(int to, const void *bytes, int size);
/* Sends without waiting. The bytes must stay, and the slot of this rank is taken, until
 * fini_ranks_complete, which waits for the other side to receive. */
enum { FINI_SLOTS = 2 };
void fini_ranks_post(int to, int slot, const void *bytes, int size);
void fini_ranks_complete(int to, int slot);
/* True in a command of ranks, even if it has only one. */
bool fini_ranks_joined(void);
/* For sums (ranks_sum.c): numbers to or from another rank, or its own to all. False if the other side
 * has left: it will never come. */
typedef enum fini_ranks_way { FINI_SEND, FINI_RECEIVE, FINI_SPREAD } fini_ranks_way;
fin_status fini_ranks_begin_sum(fin_error *err);
bool fini_ranks_numbers(fini_ranks_way way, int other, double *numbers, int64_t n);
fin_status fini_ranks_fail_sum(fin_error *err); /* says who has left */

/* ---- work over ranks (scheduler.c) ----------------------------------------------------------------- */

/* Rank 0's view of the others; alone, a scheduler without any. */
typedef struct fini_scheduler fini_scheduler;
fin_status fini_scheduler_create(const fin_study *study, int threads, fini_scheduler **out,
                                 fin_error *err);
void fini_scheduler_destroy(fini_scheduler *scheduler); /* NULL is fine */
/* Receives what has come, hands out runs of the pool's list; *count finished runs are put into done.
 * True if anything came. */
bool fini_scheduler_poll(fini_scheduler *scheduler, fini_pool *pool, fini_done *done, int most,
                         int *count);
/* What a finished run took, so that pieces of work get a fitting size. */
void fini_scheduler_learn(fini_scheduler *scheduler, const fini_done *done);
void fini_scheduler_stop(fini_scheduler *scheduler); /* once or more */
bool fini_scheduler_finished(const fini_scheduler *scheduler);
int64_t fini_scheduler_running(const fini_scheduler *scheduler);
/* What went wrong on another rank or in talking to it; FIN_OK if nothing did. */
fin_status fini_scheduler_status(const fini_scheduler *scheduler, fin_error *err);
/* When the scheduler has finished: tells everybody how it ended. */
void fini_scheduler_end(const fin_error *outcome, const fin_study_count *count);

/* What every other rank does until rank 0 says that it is over: its outcome and count. buffer: of
 * FINI_MESSAGE bytes; the pool has room for FINI_MEMBER_ROOM runs. */
enum { FINI_CHUNK = 256, FINI_MEMBER_ROOM = 2 * FINI_CHUNK, FINI_MESSAGE = 1 << 18 };
fin_status fini_scheduler_member(fini_pool *pool, int threads, void *buffer, fin_study_count *count,
                                 fin_error *err);

#endif
