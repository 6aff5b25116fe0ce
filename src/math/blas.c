/* BLAS on the calling thread alone.
 *
 * The library shares tiles of a matrix among its own threads, so that results do not depend on how
 * many there are; a BLAS with threads of its own would cut the tiles once more, differently for
 * each number of threads, and two sets of threads would fight for the cores. OpenBLAS knows only
 * one number for the whole process: it is set to 1 by the first who enters and set back by the last
 * who leaves. Whoever calls OpenBLAS from another thread meanwhile gets one thread, too.
 *
 * An OpenBLAS that is built with OpenMP asks OpenMP instead, which has a number for every thread:
 * each thread sets and restores its own. Parallel regions of this library name their number of
 * threads and do not notice. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "math/gram.h"

#include "finetti/kernel.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long inside;
static int before; /* what the host had set */

static _Thread_local int depth, own; /* of this thread; what OpenMP had set for it */

void fini_blas_enter(void)
{
    if (depth++ > 0) /* this thread is counted already */
        return;
    own = omp_get_max_threads();
    pthread_mutex_lock(&mutex);
    if (inside++ == 0) {
        before = openblas_get_num_threads();
        if (before != 1)
            openblas_set_num_threads(1);
    }
    pthread_mutex_unlock(&mutex);
    omp_set_num_threads(1); /* after OpenBLAS, which may have set this number itself */
}

void fini_blas_leave(void)
{
    if (--depth > 0)
        return;
    pthread_mutex_lock(&mutex);
    if (--inside == 0 && before != 1)
        openblas_set_num_threads(before);
    pthread_mutex_unlock(&mutex);
    omp_set_num_threads(own);
}

/* ---- the CPU it knows ------------------------------------------------------------------------- */

const char *fin_kernel_blas_core(void)
{
#if defined __x86_64__ && defined __GNUC__
    static const char *const old[] = {"Prescott",   "Core2",   "Penryn",
                                      "Dunnington", "Nehalem", "Generic"};
    const char *core = openblas_get_corename();
    for (size_t i = 0; i < sizeof old / sizeof *old && __builtin_cpu_supports("avx2"); i++)
        if (core && strcmp(core, old[i]) == 0)
            return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                       ? "SkylakeX"
                       : "Haswell";
#endif
    return NULL;
}

/* ---- its memory ------------------------------------------------------------------------------ */

/* A thread within OpenBLAS has a buffer of its own, of 128 MB of addresses, which stays for whoever
 * calls next. Where there are no more of them (ulimit -v), OpenBLAS asks again and again, for ever:
 * so the system is asked here first, and OpenBLAS takes what was found before anybody else does. */
enum { BUFFER = (1 << 27) + (1 << 16) };
void *blas_memory_alloc(int unused) __attribute__((weak));
void blas_memory_free(void *buffer) __attribute__((weak));

static atomic_int expected = 1, sure; /* threads that may call at once; those that have a buffer */

void fini_blas_expect(int threads)
{
    int most = atomic_load(&expected);
    while (most < threads && !atomic_compare_exchange_weak(&expected, &most, threads))
        continue;
}

static bool is_room(void)
{
    void *room = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, BUFFER);
    return true;
}

static void take_buffers(int threads, void **taken)
{
    int count = 0;
    for (; count < threads && (count < sure || is_room()); count++)
        taken[count] = blas_memory_alloc ? blas_memory_alloc(0) : NULL;
    atomic_store(&sure, count);
    while (blas_memory_free && count-- > 0)
        blas_memory_free(taken[count]);
}

fin_status fini_blas_ready(fin_error *err)
{
    struct rlimit limit;
    int threads = fin_threads_get();
    if (threads < atomic_load(&expected))
        threads = atomic_load(&expected);
    /* Without a limit all that can be missing is memory itself, which buffers hardly use. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
        threads = 1;
    if (atomic_load(&sure) >= threads)
        return FIN_OK;
    void *one = NULL, **taken = threads == 1 ? &one : fini_alloc_array(threads, sizeof *taken);
    if (!taken)
        return fini_fail_memory(err, (size_t)threads * sizeof *taken, "OpenBLAS");
    pthread_mutex_lock(&mutex);
    take_buffers(threads, taken);
    pthread_mutex_unlock(&mutex);
    if (taken != &one)
        fini_free(taken);
    if (atomic_load(&sure) >= threads)
        return FIN_OK;
    return fini_fail(
        err, FIN_ERR_MEMORY,
        "not enough memory for OpenBLAS: %d times 0.13 GB, once for each thread; fewer "
        "threads, or a higher limit (ulimit -v), help",
        threads);
}
