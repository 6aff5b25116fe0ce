/* Chooses the kernels: the widest that this CPU runs, unless FINETTI_KERNEL forces another. */
#include "kernel/kernel.h"

#include "finetti/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const fini_kernel *kernel;
    int (*runs)(void);
} entry;

static int always(void)
{
    return 1;
}

#ifdef FINI_KERNEL_AVX2
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#ifdef FINI_KERNEL_AVX512
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
}
#endif

/* From plain to wide: the last one that runs is the default. */
static const entry entries[] = {
    {&fini_kernel_ref, always},
#ifdef FINI_KERNEL_AVX2
    {&fini_kernel_avx2, has_avx2},
#endif
#ifdef FINI_KERNEL_AVX512
    {&fini_kernel_avx512, has_avx512},
#endif
};
enum { COUNT = sizeof entries / sizeof *entries };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const fini_kernel *automatic;
static char available[64];
static _Atomic(const fini_kernel *) forced;

static const fini_kernel *find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(entries[i].kernel->name, name) == 0 && entries[i].runs())
            return entries[i].kernel;
    return NULL;
}

static void choose(void)
{
    size_t used = 0;
    for (int i = 0; i < COUNT; i++)
        if (entries[i].runs()) {
            automatic = entries[i].kernel;
            used += (size_t)snprintf(available + used, sizeof available - used, "%s%s",
                                     used ? " " : "", automatic->name);
        }
    const char *wish = getenv("FINETTI_KERNEL");
    const fini_kernel *granted = wish ? find(wish) : NULL;
    if (granted)
        automatic = granted;
}

const fini_kernel *fini_kernel_get(void)
{
    const fini_kernel *kernel = atomic_load_explicit(&forced, memory_order_acquire);
    if (kernel)
        return kernel;
    pthread_once(&once, choose);
    return automatic;
}

int fini_kernel_force(const char *name)
{
    const fini_kernel *kernel = name ? find(name) : NULL;
    atomic_store(&forced, kernel);
    return !name || kernel;
}

const char *fin_kernel_name(void)
{
    return fini_kernel_get()->name;
}

const char *fin_kernel_available(void)
{
    pthread_once(&once, choose);
    return available;
}
