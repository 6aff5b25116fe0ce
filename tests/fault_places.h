/* fault_every (fault.h) for runs that are long and make many allocations: of those below one place
 * in the code, a call in any function on the way to the allocation, the first, the second and the
 * last are refused, so that every call that can run out of memory does. At FINETTI_TEST_SIZE=small
 * the second is not; at full, and where the calls on the way cannot be told, all are. The run must
 * allocate in the same order each time, so from one thread. */
#ifndef FAULT_PLACES_H
#define FAULT_PLACES_H

#include "fault.h"
#include "test_size.h"

#ifdef __GLIBC__
#include <execinfo.h>

enum { FAULT_PLACES = 4096, FAULT_DEPTH = 64 };

static struct fault_place {
    void *address;            /* where a call returns to */
    long first, second, last; /* allocations below it */
} fault_place_list[FAULT_PLACES];
static long fault_place_count;

/* Refuses nothing, and notes who asks. */
static inline void *fault_place_note(size_t size)
{
    void *address[FAULT_DEPTH];
    int depth = backtrace(address, FAULT_DEPTH);
    long k = atomic_load(&fault_count);
    for (int i = 1; i < depth; i++) {
        long j = 0;
        while (j < fault_place_count && fault_place_list[j].address != address[i])
            j++;
        struct fault_place *place = &fault_place_list[j];
        if (j == fault_place_count) {
            if (j == FAULT_PLACES)
                fail_msg("more than %d places", (int)FAULT_PLACES);
            *place = (struct fault_place){address[i], k, k, k};
            fault_place_count++;
        }
        if (place->second == place->first)
            place->second = k;
        place->last = k;
    }
    return fault_allocate(size);
}

static inline int fault_place_takes(long k)
{
    for (long i = 0; i < fault_place_count; i++)
        if (k == fault_place_list[i].first || k == fault_place_list[i].last ||
            (k == fault_place_list[i].second && sized(0, 1, 1)))
            return 1;
    return 0;
}

/* Returns how many allocations were refused. They are few if the calls cannot be told: look at it. */
static inline long fault_places(fin_status (*run)(void *user, fin_error *err), void *user)
{
    if (sized(0, 0, 1))
        return fault_every(run, user);
    fin_error told = {FIN_OK, ""};
    fault_place_count = 0;
    fault_begin(-1, 0);
    fin_memory_hooks(fault_place_note, fault_release);
    fin_status status = run(user, &told);
    fault_end();
    const long count = atomic_load(&fault_count);
    if (status != FIN_OK || atomic_load(&fault_live) != 0)
        fail_msg("status '%s', message '%s', %ld blocks are still alive", fin_status_name(status),
                 told.message, atomic_load(&fault_live));
    long refused = 0;
    for (long k = 0; k < count; k++)
        if (fault_place_takes(k)) {
            if (fault_one(run, user, k) == 0)
                fail_msg("allocation %ld was not asked for again", k);
            refused++;
        }
    printf("%ld of %ld allocations, below %ld places\n", refused, count, fault_place_count);
    return refused;
}
#else
static inline long fault_places(fin_status (*run)(void *user, fin_error *err), void *user)
{
    return fault_every(run, user);
}
#endif

#endif
