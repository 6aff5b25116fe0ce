/* Runs of a store by hash, in memory: number, state, and whether a query wants them.
 *
 * To look up every run of a large study by its hash, each with two walks down a tree in the file,
 * takes several times as long as reading all runs in the order in which they lie there. So a query
 * for much of a store reads all of it once into this table. A hash is uniform: its own bits are the
 * place in the table. In a file made to harm, they may not be, and then the search gives up. */
#include "study/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1024, PROBES_MOST = 10000 };

void fini_scan_hash(const fini_scan_run *run, char hash[FIN_HASH_TEXT])
{
    snprintf(hash, FIN_HASH_TEXT, "%016llx%016llx", (unsigned long long)run->key[0],
             (unsigned long long)run->key[1]);
}

fin_status fini_scan_add(fini_scan *scan, const fini_scan_run *run, fin_error *err)
{
    if (scan->count == scan->room) {
        int64_t room = scan->room ? scan->room * 2 : FIRST;
        fini_scan_run *larger = fini_alloc_array(room, sizeof *larger);
        if (!larger)
            return fini_fail_memory(err, (size_t)room * sizeof *larger, "the runs of a store");
        if (scan->count)
            memcpy(larger, scan->runs, (size_t)scan->count * sizeof *larger);
        fini_free(scan->runs);
        scan->runs = larger;
        scan->room = room;
    }
    scan->runs[scan->count++] = *run;
    return FIN_OK;
}

static int by_hash(const void *a, const void *b)
{
    const fini_scan_run *p = a, *q = b;
    int half = p->key[0] == q->key[0];
    return (p->key[half] > q->key[half]) - (p->key[half] < q->key[half]);
}

void fini_scan_sort(fini_scan *scan)
{
    if (scan->count > 1)
        qsort(scan->runs, (size_t)scan->count, sizeof *scan->runs, by_hash);
}

fin_status fini_scan_index(fini_scan *scan, fin_error *err)
{
    int64_t slots = FIRST;
    while (slots < scan->count * 2)
        slots *= 2;
    scan->slots = fini_alloc_array(slots, sizeof *scan->slots);
    if (!scan->slots)
        return fini_fail_memory(err, (size_t)slots * sizeof *scan->slots, "the runs of a store");
    memset(scan->slots, 0xff, (size_t)slots * sizeof *scan->slots);
    scan->mask = (uint64_t)slots - 1;
    for (int64_t i = 0; i < scan->count; i++) {
        uint64_t at = scan->runs[i].key[0] & scan->mask;
        int probes = 0;
        while (scan->slots[at] >= 0 && probes++ < PROBES_MOST)
            at = (at + 1) & scan->mask;
        if (probes > PROBES_MOST)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "the store is damaged: the hashes of its runs are none");
        scan->slots[at] = (int32_t)i;
    }
    return FIN_OK;
}

fini_scan_run *fini_scan_find(const fini_scan *scan, const uint64_t key[2])
{
    uint64_t at = key[0] & scan->mask;
    for (; scan->slots[at] >= 0; at = (at + 1) & scan->mask) {
        fini_scan_run *run = &scan->runs[scan->slots[at]];
        if (run->key[0] == key[0] && run->key[1] == key[1])
            return run;
    }
    return NULL;
}

void fini_scan_free(fini_scan *scan)
{
    fini_free(scan->runs);
    fini_free(scan->slots);
    *scan = (fini_scan){0};
}
