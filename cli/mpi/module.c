/* finetti_mpi.so: how ranks talk, by MPI. The only file that knows MPI; the tool loads it under mpirun
 * or srun and hands its calls to the library (cli/ranks.c).
 *
 * All calls are made by one thread (MPI_THREAD_FUNNELED), and an error within MPI ends the program by
 * MPI's own handler. */
#include <finetti/study.h>

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_Comm everybody;
static int ours; /* we started MPI, so we end it */

/* A request of MPI is a pointer or a number; the library keeps it as 64 bits. */
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request of MPI has at most 64 bits");

static uint64_t keep(MPI_Request request)
{
    uint64_t bits = 0;
    memcpy(&bits, &request, sizeof request);
    return bits;
}

static uint64_t send_bytes(int to, int tag, const void *bytes, int size)
{
    MPI_Request request;
    MPI_Isend(bytes, size, MPI_BYTE, to, tag, everybody, &request);
    return keep(request);
}

static uint64_t receive_bytes(int from, int tag, void *bytes, int size)
{
    MPI_Request request;
    MPI_Irecv(bytes, size, MPI_BYTE, from, tag, everybody, &request);
    return keep(request);
}

static uint64_t broadcast(int from, void *bytes, int size)
{
    MPI_Request request;
    MPI_Ibcast(bytes, size, MPI_BYTE, from, everybody, &request);
    return keep(request);
}

static uint64_t least_of_all(const int *mine, int *least)
{
    MPI_Request request;
    MPI_Iallreduce(mine, least, 1, MPI_INT, MPI_MIN, everybody, &request);
    return keep(request);
}

static int test(uint64_t *bits)
{
    MPI_Request request;
    int complete = 0;
    memcpy(&request, bits, sizeof request);
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    *bits = keep(request);
    return complete;
}

static int probe(int tag, int *from, int *size)
{
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, everybody, &there, &status);
    if (!there)
        return 0;
    *from = status.MPI_SOURCE;
    MPI_Get_count(&status, MPI_BYTE, size);
    return 1;
}

static void abort_all(int code)
{
    MPI_Abort(everybody, code);
}

static void end(void)
{
    MPI_Comm_free(&everybody);
    if (ours)
        MPI_Finalize();
    ours = 0;
}

FIN_API fin_status finetti_ranks_join(fin_ranks_calls *calls, fin_error *err);

fin_status finetti_ranks_join(fin_ranks_calls *calls, fin_error *err)
{
    int there = 0, provided = MPI_THREAD_SINGLE;
    const char *wrong = NULL;
    if (calls->version != FIN_RANKS_VERSION)
        wrong = "the module for MPI belongs to another version of finetti";
    else if (MPI_Initialized(&there), there)
        MPI_Query_thread(&provided);
    else
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), ours = 1;
    if (!wrong && provided < MPI_THREAD_FUNNELED)
        wrong = "this MPI does not allow threads beside the one that talks (MPI_THREAD_FUNNELED)";
    if (wrong) {
        err->status = FIN_ERR_UNSUPPORTED;
        snprintf(err->message, sizeof err->message, "%s", wrong);
        return err->status;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &everybody);
    *calls = (fin_ranks_calls){.version = FIN_RANKS_VERSION,
                               .send = send_bytes,
                               .receive = receive_bytes,
                               .broadcast = broadcast,
                               .least = least_of_all,
                               .test = test,
                               .probe = probe,
                               .abort = abort_all,
                               .end = end};
    MPI_Comm_rank(everybody, &calls->rank);
    MPI_Comm_size(everybody, &calls->ranks);
    return FIN_OK;
}
