/* Many processes: MPI, or alone.
 *
 * The only file that knows MPI. Its calls are made by the thread that called fin_ranks_start
 * (MPI_THREAD_FUNNELED), and an error within MPI ends the command by MPI's own handler. A program that
 * was not started by mpirun or srun never calls MPI_Init: that takes half a second and opens
 * sockets, for nothing. Waiting for other ranks is done by asking and sleeping in turn, because MPI's
 * own waiting takes a whole processor, which a rank that computes could use. */
#include "study/run.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#if FINI_MPI
#include <mpi.h>
#endif

static int own_rank, rank_count = 1;

int fin_rank(void)
{
    return own_rank;
}

int fin_ranks(void)
{
    return rank_count;
}

int fin_ranks_built(void)
{
#if FINI_MPI
    return 1;
#else
    return 0;
#endif
}

#if FINI_MPI

enum { TAG_WORK = 1, TAG_SUM = 2, TAG_LEFT = 3, PIECE = 1 << 24 };

static MPI_Comm everybody = MPI_COMM_NULL;
static MPI_Request *posts; /* [ranks * FINI_SLOTS] */
static bool joined, ours;  /* ours: we started MPI, so we end it */
static int64_t sums;       /* that were begun */
static int left_count;     /* words of farewell that have come, */
static int64_t left_sums;  /* the least number of sums in one of them, */
static int left_rank;      /* and whose it was */
static bool broken;        /* a sum that can never be completed was given up */

/* One of the marks that the starters of MPI jobs leave: Open MPI, Hydra (MPICH, Intel), PMIx,
 * MVAPICH, Cray. srun sets those of the PMI it was told to use. */
static bool started_as_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "MPI_LOCALRANKID",
                                        "PALS_RANKID",
                                        "MV2_COMM_WORLD_SIZE",
                                        "MP_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *text = getenv(marks[i]);
        if (text && *text)
            return true;
    }
    return false;
}

fin_status fin_ranks_start(fin_error *err)
{
    int initialized = 0, provided = MPI_THREAD_SINGLE;
    if (joined)
        return FIN_OK;
    MPI_Initialized(&initialized);
    if (!initialized && !started_as_rank())
        return FIN_OK;
    if (initialized) {
        MPI_Query_thread(&provided);
    } else {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
        ours = true;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &everybody);
    MPI_Comm_rank(everybody, &own_rank);
    MPI_Comm_size(everybody, &rank_count);
    joined = true;
    fin_status status = FIN_OK;
    posts = fini_alloc_array((int64_t)rank_count * FINI_SLOTS, sizeof(MPI_Request));
    if (!posts)
        status = fini_fail_memory(err, (size_t)rank_count * FINI_SLOTS * sizeof(MPI_Request),
                                  "the ranks");
    else if (provided < MPI_THREAD_FUNNELED)
        status = fini_fail(err, FIN_ERR_UNSUPPORTED,
                           "this MPI does not allow threads beside the one that talks "
                           "(MPI_THREAD_FUNNELED)");
    for (int i = 0; posts && i < rank_count * FINI_SLOTS; i++)
        posts[i] = MPI_REQUEST_NULL;
    status = fini_ranks_agree(status, err);
    if (status)
        fin_ranks_end();
    return status;
}

static void await(MPI_Request *request)
{
    int complete = 0;
    double pause = 2e-5;
    for (;; pause = 2 * pause < 2e-3 ? 2 * pause : 2e-3) {
        MPI_Test(request, &complete, MPI_STATUS_IGNORE);
        if (complete)
            return;
        fini_rest(pause);
    }
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* A rank that gives up (its memory is out) ends, and the others wait in a sum for its part. So
 * everybody who leaves says how many sums it has taken part in: to rank 0, without whom no sum is
 * completed, and rank 0 to all. Whoever waits in a later sum gives up as well. Who leaves in peace is
 * not mistaken: the others have no later sum. */
static void say_farewell(void)
{
    static int64_t word; /* lives as long as the messages */
    MPI_Request request;
    word = sums;
    for (int to = 0; to < rank_count; to++)
        if (to != own_rank && (to == 0 || own_rank == 0)) {
            MPI_Isend(&word, 1, MPI_INT64_T, to, TAG_LEFT, everybody, &request);
            MPI_Request_free(&request);
        }
}

static void hear_farewell(int from)
{
    int64_t count;
    MPI_Recv(&count, 1, MPI_INT64_T, from, TAG_LEFT, everybody, MPI_STATUS_IGNORE);
    if (left_count++ == 0 || count < left_sums) {
        left_sums = count;
        left_rank = from;
    }
}

/* True if the sum that is under way lacks a rank that has left. */
static bool lacks_rank(void)
{
    int there = 1;
    MPI_Status status;
    while (there) {
        MPI_Iprobe(own_rank == 0 ? MPI_ANY_SOURCE : 0, TAG_LEFT, everybody, &there, &status);
        if (there)
            hear_farewell(status.MPI_SOURCE);
    }
    return left_count && left_sums < sums;
}

void fin_ranks_end(void)
{
    if (!joined)
        return;
    if (broken) /* somebody waits for us in vain: only MPI can end that */
        MPI_Abort(everybody, EXIT_FAILURE);
    say_farewell();
    /* Rank 0 may have much to do yet; the others sleep. */
    MPI_Request request;
    MPI_Ibarrier(everybody, &request);
    await(&request);
    while (left_count < (own_rank == 0 ? rank_count - 1 : 1)) {
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, TAG_LEFT, everybody, &status);
        hear_farewell(status.MPI_SOURCE);
    }
    MPI_Comm_free(&everybody);
    fini_free(posts);
    posts = NULL;
    joined = false;
    own_rank = 0;
    rank_count = 1;
    sums = left_sums = 0;
    left_count = 0;
    if (ours)
        MPI_Finalize();
    ours = false;
}

bool fini_ranks_joined(void)
{
    return joined;
}

fin_status fini_ranks_agree(fin_status status, fin_error *err)
{
    if (rank_count == 1)
        return status;
    int mine = status ? own_rank : INT_MAX, first = INT_MAX;
    MPI_Request request;
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, everybody, &request);
    await(&request);
    if (first == INT_MAX)
        return FIN_OK;
    fin_error told = {status, ""};
    if (first == own_rank && err)
        told = *err;
    told.status = status;
    MPI_Ibcast(&told, (int)sizeof told, MPI_BYTE, first, everybody, &request);
    await(&request);
    if (err)
        *err = told;
    return told.status;
}

void fini_ranks_broadcast(void *bytes, int64_t size)
{
    for (int64_t at = 0; rank_count > 1 && at < size; at += PIECE) {
        MPI_Request request;
        int piece = (int)(size - at < PIECE ? size - at : PIECE);
        MPI_Ibcast((char *)bytes + at, piece, MPI_BYTE, 0, everybody, &request);
        await(&request);
    }
}

bool fini_ranks_probe(int *from, int *size)
{
    int there = 0;
    MPI_Status status;
    if (rank_count == 1)
        return false;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_WORK, everybody, &there, &status);
    if (!there)
        return false;
    *from = status.MPI_SOURCE;
    MPI_Get_count(&status, MPI_BYTE, size);
    return true;
}

void fini_ranks_receive(int from, void *bytes, int size)
{
    MPI_Recv(bytes, size, MPI_BYTE, from, TAG_WORK, everybody, MPI_STATUS_IGNORE);
}

void fini_ranks_send(int to, const void *bytes, int size)
{
    MPI_Request request;
    MPI_Isend(bytes, size, MPI_BYTE, to, TAG_WORK, everybody, &request);
    await(&request);
}

void fini_ranks_post(int to, int slot, const void *bytes, int size)
{
    MPI_Isend(bytes, size, MPI_BYTE, to, TAG_WORK, everybody, &posts[to * FINI_SLOTS + slot]);
}

void fini_ranks_complete(int to, int slot)
{
    MPI_Wait(&posts[to * FINI_SLOTS + slot], MPI_STATUS_IGNORE);
}

/* As await, for answers that come at once as a rule: a fit makes thousands of sums. MPI's own waiting
 * keeps its processor, and where there are more programs than processors the rank that is waited for
 * does not get one for whole time slices: two ranks on a busy machine were several times slower.
 * False if it will never come. */
static bool await_sum(MPI_Request *request)
{
    enum { PATIENCE = 5000 };
    int complete = 0;
    for (int64_t i = 0;; i += i < PATIENCE) {
        MPI_Test(request, &complete, MPI_STATUS_IGNORE);
        if (complete)
            return true;
        if (i < PATIENCE) {
            sched_yield();
        } else if (lacks_rank()) {
            broken = true;
            return false;
        } else {
            fini_rest(5e-4);
        }
    }
}

bool fini_ranks_numbers(fini_ranks_way way, int other, double *numbers, int64_t n)
{
    MPI_Request request;
    for (int64_t at = 0; (way != FINI_SPREAD || rank_count > 1) && at < n; at += PIECE) {
        int piece = (int)(n - at < PIECE ? n - at : PIECE);
        if (way == FINI_SEND)
            MPI_Isend(numbers + at, piece, MPI_DOUBLE, other, TAG_SUM, everybody, &request);
        else if (way == FINI_RECEIVE)
            MPI_Irecv(numbers + at, piece, MPI_DOUBLE, other, TAG_SUM, everybody, &request);
        else
            MPI_Ibcast(numbers + at, piece, MPI_DOUBLE, other, everybody, &request);
        if (!await_sum(&request))
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

#else /* alone */

fin_status fin_ranks_start(fin_error *err)
{
    (void)err;
    return FIN_OK;
}

void fin_ranks_end(void)
{
}

bool fini_ranks_joined(void)
{
    return false;
}

fin_status fini_ranks_agree(fin_status status, fin_error *err)
{
    (void)err;
    return status;
}

void fini_ranks_broadcast(void *bytes, int64_t size)
{
    (void)bytes, (void)size;
}

bool fini_ranks_probe(int *from, int *size)
{
    (void)from, (void)size;
    return false;
}

void fini_ranks_receive(int from, void *bytes, int size)
{
    (void)from, (void)bytes, (void)size;
}

void fini_ranks_send(int to, const void *bytes, int size)
{
    (void)to, (void)bytes, (void)size;
}

void fini_ranks_post(int to, int slot, const void *bytes, int size)
{
    (void)to, (void)slot, (void)bytes, (void)size;
}

void fini_ranks_complete(int to, int slot)
{
    (void)to, (void)slot;
}

bool fini_ranks_numbers(fini_ranks_way way, int other, double *numbers, int64_t n)
{
    (void)way, (void)other, (void)numbers, (void)n;
    return true;
}

fin_status fini_ranks_begin_sum(fin_error *err)
{
    (void)err;
    return FIN_OK;
}

fin_status fini_ranks_fail_sum(fin_error *err)
{
    return fini_fail(err, FIN_ERR_IO, "a rank gave up");
}

#endif
