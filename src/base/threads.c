/* How many threads a library call uses. The number never changes a result, only the time. */
#include "base/base.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_THREADS = 4096 };

static atomic_int chosen;       /* 0: the default */
static _Thread_local int limit; /* 0: none */

static int default_threads(void)
{
    const char *text = getenv("FINETTI_THREADS");
    if (text && *text) {
        char *end;
        long value = strtol(text, &end, 10);
        if (*end == '\0' && value >= 1 && value <= MOST_THREADS)
            return (int)value;
    }
    return omp_get_num_procs();
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
