/* Many processes, or alone.
 *
 * How they talk is a table of calls that comes from outside (fin_ranks_calls): the library knows no
 * MPI. The calls are made by the thread that called fin_ranks_start. Waiting for other ranks is done
 * by asking, and after a while sleeping, in turn, because MPI's own waiting takes a whole processor,
 * which a rank that computes could use. */
#include "study/run.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_WORK = 1, TAG_SUM = 2, TAG_LEFT = 3, PIECE = 1 << 24 };
enum { SLOT_LEFT = FINI_SLOTS, SLOTS }; /* of a rank: those for work, and one for the farewell */

static fin_ranks_calls calls; /* calls.ranks is 0: alone */
static struct post {
    uint64_t request;
    bool busy;
} * posts;                /* [ranks * SLOTS] */
static int64_t sums;      /* that were begun */
static int left_count;    /* words of farewell that have come, */
static int64_t left_sums; /* the least number of sums in one of them, */
static int left_rank;     /* and whose it was */
static bool broken;       /* a sum that can never be completed was given up */

int fin_rank(void)
{
    return calls.rank;
}

int fin_ranks(void)
{
    return calls.ranks > 1 ? calls.ranks : 1;
}

bool fini_ranks_joined(void)
{
    return calls.ranks > 0;
}

fin_status fin_ranks_start(const fin_ranks_calls *given, fin_error *err)
{
    if (fini_ranks_joined() || !given)
        return FIN_OK;
    if (given->version != FIN_RANKS_VERSION || given->rank < 0 || given->rank >= given->ranks)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "rank %d of %d by calls of version %d; ranks are counted from 0, and the "
                         "version is %d",
                         given->rank, given->ranks, given->version, FIN_RANKS_VERSION);
    fin_status status = FIN_OK;
    size_t size = (size_t)given->ranks * SLOTS * sizeof *posts;
    posts = fini_alloc_array((int64_t)given->ranks * SLOTS, sizeof *posts);
    if (posts)
        memset(posts, 0, size);
    else
        status = fini_fail_memory(err, size, "the ranks");
    calls = *given;
    status = fini_ranks_agree(status, err);
    if (status) { /* on all ranks: nobody says farewell */
        fini_free(posts);
        posts = NULL;
        fin_ranks_end();
    }
    return status;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool lacks_rank(void);

/* Answers come at once as a rule (a fit makes thousands of sums), so the processor is offered to
 * others first, and kept if nobody wants it: where there are more programs than processors, the rank
 * that is waited for would not get one for whole time slices. False if it will never come: only a sum
 * can wait for a rank that has left. */
static bool await_or_leave(uint64_t *request, bool sum)
{
    enum { PATIENCE = 5000 };
    for (int i = 0; !calls.test(request); i += i < PATIENCE) {
        if (i < PATIENCE) {
            sched_yield();
        } else if (sum && lacks_rank()) {
            broken = true;
            return false;
        } else {
            fini_rest(5e-4);
        }
    }
    return true;
}

static void await(uint64_t request)
{
    await_or_leave(&request, false);
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* A rank that gives up (its memory is out) ends, and the others wait in a sum for its part. So
 * everybody who leaves says how many sums it has taken part in: to rank 0, without whom no sum is
 * completed, and rank 0 to all. Whoever waits in a later sum gives up as well. Who leaves in peace is
 * not mistaken: the others have no later sum. */
static void say_farewell(void)
{
    static int64_t word; /* lives as long as the messages */
    word = sums;
    for (int to = 0; posts && to < calls.ranks; to++)
        if (to != calls.rank && (to == 0 || calls.rank == 0))
            posts[to * SLOTS + SLOT_LEFT] =
                (struct post){calls.send(to, TAG_LEFT, &word, sizeof word), true};
}

/* True if there was a farewell to hear. */
static bool hear_farewell(void)
{
    int64_t count;
    int from, size;
    if (!calls.probe(TAG_LEFT, &from, &size))
        return false;
    await(calls.receive(from, TAG_LEFT, &count, sizeof count));
    if (left_count++ == 0 || count < left_sums) {
        left_sums = count;
        left_rank = from;
    }
    return true;
}

/* True if the sum that is under way lacks a rank that has left. */
static bool lacks_rank(void)
{
    while (hear_farewell())
        continue;
    return left_count && left_sums < sums;
}

void fin_ranks_end(void)
{
    if (!fini_ranks_joined())
        return;
    if (broken) /* somebody waits for us in vain: only all can end that */
        calls.abort(EXIT_FAILURE);
    say_farewell();
    /* Rank 0 may have much to do yet; the others sleep. */
    int mine = 0, least;
    await(calls.least(&mine, &least));
    while (posts && left_count < (calls.rank == 0 ? calls.ranks - 1 : 1))
        if (!hear_farewell())
            fini_rest(5e-4);
    for (int to = 0; posts && to < calls.ranks; to++)
        fini_ranks_complete(to, SLOT_LEFT);
    fini_free(posts);
    posts = NULL;
    sums = left_sums = 0;
    left_count = 0;
    calls.end();
    calls = (fin_ranks_calls){.ranks = 0};
}

/* ---- all together --------------------------------------------------------------------------- */

fin_status fini_ranks_agree(fin_status status, fin_error *err)
{
    if (calls.ranks <= 1)
        return status;
    int mine = status ? calls.rank : INT_MAX, first = INT_MAX;
    await(calls.least(&mine, &first));
    if (first == INT_MAX)
        return FIN_OK;
    fin_error told = {status, ""};
    if (first == calls.rank && err)
        told = *err;
    told.status = status;
    await(calls.broadcast(first, &told, (int)sizeof told));
    if (err)
        *err = told;
    return told.status;
}

static int piece(int64_t left)
{
    return (int)(left < PIECE ? left : PIECE);
}

void fini_ranks_broadcast(void *bytes, int64_t size)
{
    for (int64_t at = 0; calls.ranks > 1 && at < size; at += PIECE)
        await(calls.broadcast(0, (char *)bytes + at, piece(size - at)));
}

/* ---- work ----------------------------------------------------------------------------------- */

bool fini_ranks_probe(int *from, int *size)
{
    return calls.ranks > 1 && calls.probe(TAG_WORK, from, size);
}

void fini_ranks_receive(int from, void *bytes, int size)
{
    await(calls.receive(from, TAG_WORK, bytes, size));
}

void fini_ranks_send(int to, const void *bytes, int size)
{
    await(calls.send(to, TAG_WORK, bytes, size));
}

void fini_ranks_post(int to, int slot, const void *bytes, int size)
{
    posts[to * SLOTS + slot] = (struct post){calls.send(to, TAG_WORK, bytes, size), true};
}

void fini_ranks_complete(int to, int slot)
{
    struct post *post = &posts[to * SLOTS + slot];
    if (post->busy)
        await(post->request);
    post->busy = false;
}

/* ---- sums ----------------------------------------------------------------------------------- */

bool fini_ranks_numbers(fini_ranks_way way, int other, double *numbers, int64_t n)
{
    int64_t size = n * (int64_t)sizeof *numbers;
    for (int64_t at = 0; calls.ranks > 1 && at < size; at += PIECE) {
        char *bytes = (char *)numbers + at;
        int count = piece(size - at);
        uint64_t request = way == FINI_SEND      ? calls.send(other, TAG_SUM, bytes, count)
                           : way == FINI_RECEIVE ? calls.receive(other, TAG_SUM, bytes, count)
                                                 : calls.broadcast(other, bytes, count);
        if (!await_or_leave(&request, true))
            return false;
    }
    return true;
}

fin_status fini_ranks_begin_sum(fin_error *err)
{
    sums++;
    return broken ? fini_fail(err, FIN_ERR_IO, "a rank has left: nothing can be summed any more")
                  : FIN_OK;
}

fin_status fini_ranks_fail_sum(fin_error *err)
{
    return fini_fail(err, FIN_ERR_IO,
                     "rank %d gave up, and the others waited for its part of a sum; usually its "
                     "memory was out: more machines, or fewer ranks on each, help",
                     left_rank);
}
