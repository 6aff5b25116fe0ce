/* Many processes: MPI, or alone.
 *
 * The only file that knows MPI. Its calls are made by the thread that called fin_ranks_start
 * (MPI_THREAD_FUNNELED), and an error within MPI ends the job by MPI's own handler. A program that
 * was not started by mpirun or srun never calls MPI_Init: that takes half a second and opens
 * sockets, for nothing. Waiting for other ranks is done by asking and sleeping in turn, because MPI's
 * own waiting takes a whole processor, which a rank that computes could use. */
#include "study/run.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

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

enum { TAG_CREW = 1, TAG_SUM = 2, PIECE = 1 << 24 };

static MPI_Comm everybody = MPI_COMM_NULL;
static MPI_Request *posts; /* [ranks * FINI_SLOTS] */
static bool joined, ours;  /* ours: we started MPI, so we end it */

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

void fin_ranks_end(void)
{
    if (!joined)
        return;
    /* Rank 0 may have much to do yet; the others sleep. */
    MPI_Request request;
    MPI_Ibarrier(everybody, &request);
    await(&request);
    MPI_Comm_free(&everybody);
    fini_free(posts);
    posts = NULL;
    joined = false;
    own_rank = 0;
    rank_count = 1;
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
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_CREW, everybody, &there, &status);
    if (!there)
        return false;
    *from = status.MPI_SOURCE;
    MPI_Get_count(&status, MPI_BYTE, size);
    return true;
}

void fini_ranks_receive(int from, void *bytes, int size)
{
    MPI_Recv(bytes, size, MPI_BYTE, from, TAG_CREW, everybody, MPI_STATUS_IGNORE);
}

void fini_ranks_send(int to, const void *bytes, int size)
{
    MPI_Request request;
    MPI_Isend(bytes, size, MPI_BYTE, to, TAG_CREW, everybody, &request);
    await(&request);
}

void fini_ranks_post(int to, int slot, const void *bytes, int size)
{
    MPI_Isend(bytes, size, MPI_BYTE, to, TAG_CREW, everybody, &posts[to * FINI_SLOTS + slot]);
}

void fini_ranks_complete(int to, int slot)
{
    MPI_Wait(&posts[to * FINI_SLOTS + slot], MPI_STATUS_IGNORE);
}

/* As await, for answers that come at once as a rule: a fit makes thousands of sums. MPI's own waiting
 * keeps its processor, and where there are more programs than processors the rank that is waited for
 * does not get one for whole time slices: two ranks on a busy machine were several times slower. */
static void await_soon(MPI_Request *request)
{
    enum { PATIENCE = 5000 };
    for (int i = 0, complete = 0; i < PATIENCE; i++) {
        MPI_Test(request, &complete, MPI_STATUS_IGNORE);
        if (complete)
            return;
        sched_yield();
    }
    await(request);
}

static void send_numbers(int to, const double *numbers, int64_t n)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        MPI_Request request;
        MPI_Isend(numbers + at, (int)(n - at < PIECE ? n - at : PIECE), MPI_DOUBLE, to, TAG_SUM,
                  everybody, &request);
        await_soon(&request);
    }
}

static void receive_numbers(int from, double *numbers, int64_t n)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        MPI_Request request;
        MPI_Irecv(numbers + at, (int)(n - at < PIECE ? n - at : PIECE), MPI_DOUBLE, from, TAG_SUM,
                  everybody, &request);
        await_soon(&request);
    }
}

static void broadcast_numbers(double *numbers, int64_t n)
{
    for (int64_t at = 0; rank_count > 1 && at < n; at += PIECE) {
        MPI_Request request;
        MPI_Ibcast(numbers + at, (int)(n - at < PIECE ? n - at : PIECE), MPI_DOUBLE, 0, everybody,
                   &request);
        await_soon(&request);
    }
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

static void send_numbers(int to, const double *numbers, int64_t n)
{
    (void)to, (void)numbers, (void)n;
}

static void receive_numbers(int from, double *numbers, int64_t n)
{
    (void)from, (void)numbers, (void)n;
}

static void broadcast_numbers(double *numbers, int64_t n)
{
    (void)numbers, (void)n;
}

#endif

/* ---- sums in a fixed order --------------------------------------------------------------------- */

/* The first blocks % ranks ranks have one block more than the others. */
void fin_ranks_share(int64_t blocks, int64_t *first, int64_t *count)
{
    int64_t least = blocks / rank_count, more = blocks % rank_count;
    *first = own_rank * least + (own_rank < more ? own_rank : more);
    *count = least + (own_rank < more);
}

static int owner(int64_t blocks, int64_t block)
{
    int64_t least = blocks / rank_count, more = blocks % rank_count;
    if (block < more * (least + 1))
        return (int)(block / (least + 1));
    return (int)(more + (block - more * (least + 1)) / least);
}

static void add(int64_t n, double *to, const double *from)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* A node of the tree is known by its leftmost leaf, whose owner has its sum, in that leaf's place:
 *
 *     level h = 1, 2, 4, ...:   node(a) <- node(a) + node(a + h)    for a = 0, 2h, 4h, ... if a + h
 *                                                                   is a block
 *
 * A rank sends to ranks before it and receives from ranks after it, level by level: nobody waits in
 * a circle. What comes in goes through `sum`, so that nothing is allocated. */
fin_status fin_ranks_sum(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *err)
{
    int64_t first, count;
    if (blocks < 0 || n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a sum of %lld blocks of %lld numbers; neither can be negative",
                         (long long)blocks, (long long)n);
    fin_ranks_share(blocks, &first, &count);
    for (int64_t h = 1; h < blocks; h *= 2) {
        int64_t a = first < h ? 0 : (first - h + 2 * h - 1) / (2 * h) * (2 * h);
        for (; count && a < first + count && a + h < blocks; a += 2 * h) {
            int left = owner(blocks, a), right = owner(blocks, a + h);
            if (left != own_rank && right != own_rank) {
                continue; /* it reaches over all of this rank's blocks */
            } else if (left != own_rank) {
                send_numbers(left, parts + (a + h - first) * n, n);
            } else if (right != own_rank) {
                receive_numbers(right, sum, n);
                add(n, parts + (a - first) * n, sum);
            } else {
                add(n, parts + (a - first) * n, parts + (a + h - first) * n);
            }
        }
    }
    if (own_rank == 0 && n)
        blocks ? memcpy(sum, parts, (size_t)n * sizeof *sum)
               : memset(sum, 0, (size_t)n * sizeof *sum);
    broadcast_numbers(sum, n);
    return FIN_OK;
}
