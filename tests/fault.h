/* Fails the k-th allocation of a piece of code, for k = 0, 1, 2, ... until all of them succeed.
 *
 *     static fin_status run(void *user, fin_error *err) { create; use; destroy; return status; }
 *     ...
 *     fault_every(run, user);
 *
 * Every run in which an allocation failed must return FIN_ERR_MEMORY with a message, and every run
 * must free what it took, failing or not. Each k is tried twice: only that allocation fails, and
 * all from it on fail. A header with static functions, so that a test needs nothing but to include
 * it (after cmocka.h). Nothing else of the library may be alive meanwhile. */
#ifndef FAULT_H
#define FAULT_H

#include "finetti/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long fault_count;  /* allocations asked for since fault_begin */
static atomic_long fault_live;   /* blocks not yet freed */
static atomic_long fault_failed; /* allocations that were refused */
static long fault_at = -1;       /* the first to be refused; -1: none */
static int fault_stays;          /* refuse all later ones too */

static inline void *fault_allocate(size_t size)
{
    long k = atomic_fetch_add(&fault_count, 1);
    if (fault_at >= 0 && (k == fault_at || (fault_stays && k > fault_at))) {
        atomic_fetch_add(&fault_failed, 1);
        return NULL;
    }
    void *block = malloc(size);
    if (block)
        atomic_fetch_add(&fault_live, 1);
    return block;
}

static inline void fault_release(void *block)
{
    if (block)
        atomic_fetch_sub(&fault_live, 1);
    free(block);
}

/* at = -1 refuses nothing and only counts. */
static inline void fault_begin(long at, int stays)
{
    atomic_store(&fault_count, 0);
    atomic_store(&fault_live, 0);
    atomic_store(&fault_failed, 0);
    fault_at = at;
    fault_stays = stays;
    fin_memory_hooks(fault_allocate, fault_release);
}

static inline void fault_end(void)
{
    fin_memory_hooks(NULL, NULL);
}

/* Allocation k fails, then all from k on. Returns how many were refused the second time. */
static inline long fault_one(fin_status (*run)(void *user, fin_error *err), void *user, long k)
{
    long failed = 0;
    for (int stays = 0; stays <= 1; stays++) {
        fin_error err = {FIN_OK, ""};
        fault_begin(k, stays);
        fin_status status = run(user, &err);
        fault_end();
        failed = atomic_load(&fault_failed);
        if (failed ? status != FIN_ERR_MEMORY || !err.message[0] : status != FIN_OK)
            fail_msg("allocation %ld%s: status '%s', message '%s'", k,
                     stays ? " and all later ones" : "", fin_status_name(status), err.message);
        if (atomic_load(&fault_live) != 0)
            fail_msg("allocation %ld: %ld blocks are still alive", k, atomic_load(&fault_live));
    }
    return failed;
}

/* Returns how many allocations the successful run made. */
static inline long fault_every(fin_status (*run)(void *user, fin_error *err), void *user)
{
    enum { MOST = 100000 };
    for (long k = 0; k < MOST; k++)
        if (fault_one(run, user, k) == 0)
            return atomic_load(&fault_count);
    fail_msg("more than %d allocations", (int)MOST);
    return -1;
}

#endif
