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
#include "math/gram.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>

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
