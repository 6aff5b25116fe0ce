/* How many threads a library call uses. The number never changes a result, only the time. */
#include "base/base.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_THREADS = 4096 };

static atomic_int chosen;       /* 0: the default */
static _Thread_local int limit; /* 0: none */

/* The number that a variable gives, 0 if it gives none. A list as OMP_NUM_THREADS may be one, "4,2",
 * begins with the number of the outermost region. */
static int from_variable(const char *name, char separator)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return 0;
    char *end;
    long value = strtol(text, &end, 10);
    bool whole = *end == '\0' || (separator && *end == separator);
    return end != text && whole && value >= 1 && value <= MOST_THREADS ? (int)value : 0;
}

/* Job queues and the pools of other languages hand out processors through OMP_NUM_THREADS. It is
 * read here, and not asked of OpenMP, whose number a BLAS may have changed for the calling thread
 * (math/blas.c). */
int fini_threads_told(void)
{
    int own = from_variable("FINETTI_THREADS", 0);
    return own ? own : from_variable("OMP_NUM_THREADS", ',');
}

static int default_threads(void)
{
    int told = fini_threads_told();
    return told ? told : omp_get_num_procs();
}

void fin_threads_set(int threads)
{
    atomic_store(&chosen, threads < 0 ? 0 : threads > MOST_THREADS ? MOST_THREADS : threads);
}

int fini_threads_limit(int threads)
{
    int before = limit;
    limit = threads;
    return before;
}

int fin_threads_get(void)
{
    int threads = atomic_load(&chosen);
    if (limit > 0)
        return limit;
    return threads > 0 ? threads : default_threads();
}
