/* Work over ranks: rank 0 hands out runs and receives results, the others ask, compute and send.
 *
 *     up    (rank -> 0)   I want work; I am done; and a piece of my stream of finished runs
 *     down  (0 -> rank)   WORK: positions; DRY: there is no more; STOP: drop it; END: it is over
 *
 * Finished runs are a stream of bytes, record after record (size, then fini_done_pack), which is cut
 * into messages of at most FINI_MESSAGE bytes wherever it comes: many small runs travel in one message,
 * a large one in many, and the buffers have a fixed size. A rank has at most one question open, and
 * asks before its list runs dry. Rank 0 never waits for a rank to receive: its messages are posted,
 * and the answer to a question can only follow the one before.
 *
 * How much a rank gets at a time is guided self-scheduling, a share of what is left, so that all
 * finish together; and not more than a tenth of a second's work, as far as is known of the block,
 * so that one rank does not get all the long runs. */
#include "study/run.h"

#include <string.h>

enum { SLOT_WORK, SLOT_STOP };
enum { DOWN_WORK, DOWN_DRY, DOWN_STOP, DOWN_END };

typedef struct up {
    int32_t wants, last, status; /* status: not FIN_OK: a message follows instead of the stream */
    int32_t threads, running;
    int32_t size; /* bytes that follow */
} up;
enum { PIECE = FINI_MESSAGE - (int)sizeof(up) }; /* of the stream, at most */

typedef struct down {
    int32_t kind, count;
    int64_t position[FINI_CHUNK];
} down;

typedef struct ending {
    int32_t kind, unused;
    fin_error outcome;
    fin_study_count count;
} ending;

/* A rank as rank 0 sees it. */
typedef struct mate {
    down answer;   /* on its way, perhaps */
    int32_t wants; /* it waits for an answer */
    int32_t last;  /* nothing will come from it any more */
    int32_t threads, running;
    unsigned char *record; /* under way; NULL: there was no memory for it */
    uint64_t size, have;   /* of the record; have counts the 8 bytes of the size too */
    unsigned char head[8];
} mate;

struct fini_scheduler {
    fini_arena arena;
    const fin_study *study;
    int threads;            /* of rank 0 */
    mate *mate;             /* [ranks]; 0 is not used */
    double *cost;           /* [blocks]: seconds of a run, lately; 0: not known */
    unsigned char *message; /* [FINI_MESSAGE] */
    int left;               /* ranks that have not said their last word */
    bool stopped;
    down stop;
    fin_error trouble;
    /* A message whose records did not all fit into what poll was given. */
    int from;
    const unsigned char *rest;
    size_t rest_size;
};

/* ---- rank 0 ------------------------------------------------------------------------------------ */

static void layout(fini_arena *a, fini_scheduler *scheduler)
{
    scheduler->mate = fini_take(a, fin_ranks(), sizeof *scheduler->mate);
    scheduler->cost = fini_take(a, scheduler->study->block_count, sizeof *scheduler->cost);
    scheduler->message = fini_take(a, FINI_MESSAGE, 1);
}

fin_status fini_scheduler_create(const fin_study *study, int threads, fini_scheduler **out,
                                 fin_error *err)
{
    *out = NULL;
    FINI_MAKE(err, "the ranks", fini_scheduler, scheduler);
    scheduler->study = study;
    scheduler->threads = threads;
    scheduler->left = fin_ranks() - 1;
    scheduler->stop.kind = DOWN_STOP;
    layout(&scheduler->arena, scheduler);
    fin_status status = fini_arena_open(&scheduler->arena, "the ranks", err);
    if (status) {
        fini_free(scheduler);
        return status;
    }
    layout(&scheduler->arena, scheduler);
    for (int i = 1; i < fin_ranks(); i++)
        scheduler->mate[i].threads = 1;
    *out = scheduler;
    return FIN_OK;
}

void fini_scheduler_destroy(fini_scheduler *scheduler)
{
    if (!scheduler)
        return;
    for (int i = 1; i < fin_ranks(); i++)
        fini_free(scheduler->mate[i].record);
    fini_arena_close(&scheduler->arena);
    fini_free(scheduler);
}

static void post(int to, int slot, const down *message)
{
    fini_ranks_post(
        to, slot, message,
        (int)(offsetof(down, position) + (size_t)message->count * sizeof *message->position));
}

/* The first trouble counts; then everything is to stop. */
static void trouble(fini_scheduler *scheduler, fin_status status, const char *message)
{
    if (!scheduler->trouble.status)
        fini_fail(&scheduler->trouble, status, "%s", message);
}

void fini_scheduler_learn(fini_scheduler *scheduler, const fini_done *done)
{
    double *cost = &scheduler->cost[fini_study_block_at(scheduler->study, done->position) -
                                    scheduler->study->blocks];
    *cost = *cost > 0 ? 0.75 * *cost + 0.25 * done->seconds : done->seconds;
}

static int64_t chunk(const fini_scheduler *scheduler, const mate *m, int64_t left,
                     const fini_block *block)
{
    const double patience = 0.1; /* seconds */
    int64_t threads = scheduler->threads;
    for (int i = 1; i < fin_ranks(); i++)
        threads += scheduler->mate[i].threads;
    double cost = scheduler->cost[block - scheduler->study->blocks];
    double guided = (double)m->threads * (double)left / (4 * (double)threads);
    double timed = (double)m->threads * (cost > 0 ? patience / cost : 1);
    double size = guided < timed ? guided : timed;
    return size < 1 ? 1 : size < FINI_CHUNK ? (int64_t)size : FINI_CHUNK;
}

static void answer(fini_scheduler *scheduler, fini_pool *pool, int to)
{
    mate *m = &scheduler->mate[to];
    fini_pool_state state = fini_pool_now(pool);
    fini_ranks_complete(to, SLOT_WORK);
    m->answer.kind = DOWN_DRY;
    m->answer.count = 0;
    if (state.todo) {
        const fini_block *block = fini_study_block_at(scheduler->study, state.next);
        m->answer.count = (int32_t)fini_pool_take(pool, chunk(scheduler, m, state.todo, block),
                                                  block->first + block->count, m->answer.position);
        /* Nothing, because the list has just come to the next block: the next poll. */
        if (!m->answer.count && fini_pool_now(pool).todo)
            return;
        m->answer.kind = m->answer.count ? DOWN_WORK : DOWN_DRY;
    }
    m->wants = 0;
    post(to, SLOT_WORK, &m->answer);
}

/* The next record of the stream, from the bytes that are here; *size is counted down. True if one is
 * complete, in m->record; false if more bytes are needed. */
static bool next_record(fini_scheduler *scheduler, mate *m, const unsigned char **bytes,
                        size_t *size)
{
    while (*size && m->have < 8) {
        m->head[m->have++] = *(*bytes)++;
        --*size;
        if (m->have < 8)
            continue;
        memcpy(&m->size, m->head, 8);
        m->record = fini_alloc(m->size);
        if (!m->record)
            trouble(scheduler, FIN_ERR_MEMORY, "out of memory for the results of another rank");
    }
    if (m->have < 8)
        return false;
    size_t missing = (size_t)(m->size + 8 - m->have), piece = *size < missing ? *size : missing;
    if (m->record && piece)
        memcpy(m->record + (m->have - 8), *bytes, piece);
    *bytes += piece;
    *size -= piece;
    m->have += piece;
    return m->have == m->size + 8;
}

static int unpack_rest(fini_scheduler *scheduler, fini_done *done, int most)
{
    int count = 0;
    mate *m = &scheduler->mate[scheduler->from];
    while (scheduler->rest_size && count < most &&
           next_record(scheduler, m, &scheduler->rest, &scheduler->rest_size)) {
        fin_error err = {FIN_OK, ""};
        fin_status status = FIN_OK;
        if (m->record)
            status = fini_done_unpack(m->record, (size_t)m->size, &done[count], &err);
        if (status)
            trouble(scheduler, status, err.message);
        else if (m->record)
            count++;
        fini_free(m->record);
        m->record = NULL;
        m->have = 0;
    }
    return count;
}

static void receive(fini_scheduler *scheduler, int from, int size)
{
    up head;
    mate *m = &scheduler->mate[from];
    fini_ranks_receive(from, scheduler->message, size);
    memcpy(&head, scheduler->message, sizeof head);
    m->threads = head.threads;
    m->running = head.running;
    m->wants |= head.wants;
    if (head.last && !m->last) {
        m->last = 1;
        scheduler->left--;
    }
    scheduler->from = from;
    scheduler->rest = scheduler->message + sizeof head;
    scheduler->rest_size = (size_t)head.size;
    if (head.status) {
        trouble(scheduler, (fin_status)head.status, (const char *)scheduler->rest);
        scheduler->rest_size = 0;
    }
}

bool fini_scheduler_poll(fini_scheduler *scheduler, fini_pool *pool, fini_done *done, int most,
                         int *count)
{
    int from, size;
    bool busy = false;
    *count = unpack_rest(scheduler, done, most);
    while (!scheduler->rest_size && *count < most && scheduler->left &&
           fini_ranks_probe(&from, &size)) {
        receive(scheduler, from, size);
        if (scheduler->mate[from].wants && !scheduler->stopped)
            answer(scheduler, pool, from);
        *count += unpack_rest(scheduler, done + *count, most - *count);
        busy = true;
    }
    for (int i = 1; i < fin_ranks() && !scheduler->stopped; i++)
        if (scheduler->mate[i].wants)
            answer(scheduler, pool, i);
    return busy || *count;
}

void fini_scheduler_stop(fini_scheduler *scheduler)
{
    for (int i = 1; !scheduler->stopped && i < fin_ranks(); i++)
        post(i, SLOT_STOP, &scheduler->stop);
    scheduler->stopped = true;
}

bool fini_scheduler_finished(const fini_scheduler *scheduler)
{
    return !scheduler->left && !scheduler->rest_size;
}

int64_t fini_scheduler_running(const fini_scheduler *scheduler)
{
    int64_t running = 0;
    for (int i = 1; i < fin_ranks(); i++)
        running += scheduler->mate[i].last ? 0 : scheduler->mate[i].running;
    return running;
}

fin_status fini_scheduler_status(const fini_scheduler *scheduler, fin_error *err)
{
    if (scheduler->trouble.status && err)
        *err = scheduler->trouble;
    return scheduler->trouble.status;
}

void fini_scheduler_end(const fin_error *outcome, const fin_study_count *count)
{
    ending end = {DOWN_END, 0, *outcome, *count};
    for (int i = 1; i < fin_ranks(); i++) {
        fini_ranks_send(i, &end, (int)sizeof end);
        fini_ranks_complete(i, SLOT_WORK);
        fini_ranks_complete(i, SLOT_STOP);
    }
}

/* ---- every other rank -------------------------------------------------------------------------- */

typedef struct member {
    fini_pool *pool;
    int threads;
    bool asked, dry, stopped, last, over;
    up *head;               /* of the message that is being made */
    unsigned char *message; /* [FINI_MESSAGE] */
    double cost;            /* seconds of a run, lately */
    fin_error trouble;
    ending end;
} member;

static void send_up(member *m)
{
    m->head->threads = m->threads;
    m->head->running = fini_pool_now(m->pool).running;
    fini_ranks_send(0, m->message, (int)(sizeof *m->head + (size_t)m->head->size));
    memset(m->head, 0, sizeof *m->head);
}

static void put(member *m, const void *bytes, size_t size)
{
    while (size) {
        size_t room = (size_t)(PIECE - m->head->size), piece = size < room ? size : room;
        memcpy(m->message + sizeof *m->head + m->head->size, bytes, piece);
        m->head->size += (int32_t)piece;
        bytes = (const unsigned char *)bytes + piece;
        size -= piece;
        if (m->head->size == PIECE)
            send_up(m);
    }
}

static void put_done(member *m, fini_done *done)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    m->cost = m->cost > 0 ? 0.75 * m->cost + 0.25 * done->seconds : done->seconds;
    fin_status status = m->trouble.status;
    if (!status)
        status = fini_done_pack(done, &bytes, &size, &m->trouble);
    if (!status) {
        uint64_t head = size;
        put(m, &head, sizeof head);
        put(m, bytes, size);
    } else {
        m->trouble.status = status;
        fini_pool_stop(m->pool);
    }
    fini_free(bytes);
    fin_result_destroy(done->result);
}

static void hear(member *m)
{
    union {
        down work;
        ending end;
    } message;
    int from, size;
    while (!m->over && fini_ranks_probe(&from, &size)) {
        fini_ranks_receive(from, &message, size);
        if (message.work.kind == DOWN_WORK && !m->stopped && !m->trouble.status) {
            fini_pool_add(m->pool, message.work.position, message.work.count);
            m->asked = false;
        } else if (message.work.kind == DOWN_DRY) {
            m->dry = true;
            fini_pool_close(m->pool);
        } else if (message.work.kind == DOWN_STOP) {
            m->stopped = true;
            fini_pool_stop(m->pool);
        } else if (message.work.kind == DOWN_END) {
            m->over = true;
            m->end = message.end;
        }
    }
}

/* Short runs: ask while there is still something to do. Long ones: ask when a thread has nothing,
 * since what is asked for early may wait here while another rank has nothing. */
static bool hungry(const member *m, const fini_pool_state *state)
{
    const double short_run = 0.05, ahead = 0.02; /* seconds */
    if (m->asked || m->dry || m->stopped || m->trouble.status || state->todo > FINI_CHUNK)
        return false; /* the list has room for one more answer */
    if (m->cost > 0 && m->cost < short_run)
        return (double)state->todo * m->cost < ahead * m->threads;
    return state->todo + state->running < m->threads;
}

/* One round: true if a message was sent. */
static bool speak(member *m)
{
    fini_done done;
    while (fini_pool_drain(m->pool, &done, 1))
        put_done(m, &done);
    fini_pool_state state = fini_pool_now(m->pool);
    if (hungry(m, &state))
        m->head->wants = m->asked = true;
    if (state.finished && !m->last) {
        if (m->trouble.status) {
            if (m->head->size) /* the runs before the trouble */
                send_up(m);
            m->head->status = (int32_t)m->trouble.status;
            put(m, m->trouble.message, sizeof m->trouble.message);
        }
        m->head->last = m->last = true;
    }
    bool something = m->head->size || m->head->wants || m->head->last;
    if (something)
        send_up(m);
    return something;
}

fin_status fini_scheduler_member(fini_pool *pool, int threads, void *buffer, fin_study_count *count,
                                 fin_error *err)
{
    const double shortest = 2e-4, longest = 1e-3; /* shortest: some runs travel together */
    double pause = shortest;
    member m = {.pool = pool, .threads = threads, .head = buffer, .message = buffer};
    memset(m.head, 0, sizeof *m.head);
    while (!m.over) {
        hear(&m);
        pause = speak(&m) ? shortest : 2 * pause < longest ? 2 * pause : longest;
        if (!m.over)
            fini_rest(pause);
    }
    *count = m.end.count;
    if (m.end.outcome.status && err)
        *err = m.end.outcome;
    return m.end.outcome.status;
}
