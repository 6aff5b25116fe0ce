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

/* AMD's with AVX-512 (2022 and later) are Zen or Haswell to OpenBLAS 0.3.21, at half the rate they could have. */
const char *fin_kernel_blas_core(void)
{
#if defined __x86_64__ && defined __GNUC__
    static const char *const old[] = {"Prescott", "Core2",   "Penryn",  "Dunnington",
                                      "Nehalem",  "Generic", "Haswell", "Zen"};
    const char *core = openblas_get_corename();
    bool wide = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    size_t count = sizeof old / sizeof *old - (wide ? 0 : 2);
    for (size_t i = 0; i < count && __builtin_cpu_supports("avx2"); i++)
        if (core && strcmp(core, old[i]) == 0)
            return wide ? "SkylakeX" : "Haswell";
#endif
    return NULL;
}

/* ---- rows that depend on themselves alone -------------------------------------------------------- */

/* Its kernels take some rows at a time, and may add up those of one place in another order than those of
 * the next. Small products go another way (up to 100^3 in 0.3.21), so that this looks at larger ones. */
enum { STEP_WIDTH = 128, STEP_FROM = 64, STEP_TO = 160 };

static bool is_step(int step, const float *x, const float *W, float *y, float *row)
{
    const int w = STEP_WIDTH;
    const size_t size = (size_t)w * sizeof *y;
    int first = (STEP_FROM + step - 1) / step * step;
    bool same = true;
    for (int rows = first; rows <= STEP_TO && same; rows += step) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, w, w, 1, x, w, W, w, 0, y, w);
        for (int r = 0; r < rows && same; r++)
            if (rows == first && r < step)
                memcpy(row + r * w, y + r * w, size);
            else
                same = memcmp(row + r % step * w, y + r * w, size) == 0;
    }
    return same;
}

static int find_step(float *x)
{
    static const int steps[] = {1, 4, 8, 12, 16, 24, 32, 48};
    const int w = STEP_WIDTH;
    int found = 0;
    float *y = x + STEP_TO * w, *W = y + STEP_TO * w, *row = W + w * w;
    for (int i = 0; i < STEP_TO * w; i++) /* all rows are the same */
        x[i] = 1 / (1 + (float)(i % w));
    for (int i = 0; i < w * w; i++)
        W[i] = (float)(i * 7 % 31) / 10 - 1.5f;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !found; i++)
        found = is_step(steps[i], x, W, y, row) ? steps[i] : 0;
    return found;
}

fin_status fini_blas_step(int *step, fin_error *err)
{
    enum { ROOM = (2 * STEP_TO + STEP_WIDTH + 48) * STEP_WIDTH };
    static atomic_int known = -1;
    *step = atomic_load(&known);
    if (*step >= 0)
        return FIN_OK;
    FINI_FREED float *room = fini_alloc_array(ROOM, sizeof *room);
    FINI_TRY(room ? fini_blas_ready(err) : fini_fail_memory(err, 4 * ROOM, "a product"));
    fini_blas_enter();
    *step = find_step(room);
    fini_blas_leave();
    atomic_store(&known, *step);
    return FIN_OK;
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
