/* Runs of a store by hash, in memory: number, state, and whether a query wants them.
 *
 * To look up every run of a large study by its hash, each with two walks down a tree in the file,
 * takes several times as long as reading all runs in the order in which they lie there. So a query
 * for much of a store reads all of it once into this table. A hash is uniform: its own bits are the
 * place in the table. In a file made to harm, they may not be, and then the search gives up. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1024, PROBES_MOST = 10000 };

void fini_key_text(const uint64_t key[2], char hash[FIN_HASH_TEXT])
{
    for (int i = 0; i < 32; i++)
        hash[i] = "0123456789abcdef"[key[i / 16] >> (60 - i % 16 * 4) & 15];
    hash[32] = '\0';
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
    scan->fit += run->fit;
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

static fin_status make_index(fini_scan *scan, fin_error *err)
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

static bool is_run(const fini_scan *scan, int64_t i, const uint64_t key[2])
{
    return scan->runs[i].key[0] == key[0] && scan->runs[i].key[1] == key[1];
}

/* A study writes its runs nearly in the order of its plan: the next one is tried first. */
fin_status fini_scan_find(fini_scan *scan, const uint64_t key[2], fini_scan_run **run,
                          fin_error *err)
{
    int64_t found = scan->next < scan->count && is_run(scan, scan->next, key) ? scan->next : -1;
    fin_status status = found < 0 && !scan->slots ? make_index(scan, err) : FIN_OK;
    *run = NULL;
    if (status)
        return status;
    if (found < 0)
        for (uint64_t at = key[0] & scan->mask; scan->slots[at] >= 0 && found < 0;
             at = (at + 1) & scan->mask)
            found = is_run(scan, scan->slots[at], key) ? scan->slots[at] : -1;
    if (found < 0)
        return FIN_OK;
    scan->next = found + 1;
    *run = &scan->runs[found];
    return FIN_OK;
}

void fini_scan_free(fini_scan *scan)
{
    fini_free(scan->runs);
    fini_free(scan->slots);
    *scan = (fini_scan){0};
}
