/* Names of bags, columns and classes: many short texts in one block, found by a hash table.
 *
 * Ten million bags are ten million names: one allocation each, or one comparison with every other,
 * would be most of the reading. The table is open, at most half full, keeps the whole hash beside
 * each number, and is seeded by the clock and an address, so that a file cannot be written to make
 * it slow. The seed shows nowhere: names are numbered in the order in which they come. */
#include "data/data.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

struct fini_name_slot {
    uint64_t hash;
    int64_t number; /* from 1; 0: free */
};

enum { FIRST_ROOM = 64, FIRST_SIZE = 1024 };

/* A block twice as large, or as large as needed, with what was in the old one. */
static void *grown(void *old, size_t used, size_t size)
{
    void *block = fini_alloc(size);
    if (block && used)
        memcpy(block, old, used);
    if (block)
        fini_free(old);
    return block;
}

static fin_status make_room(fini_names *names, size_t size, fin_error *err)
{
    if (names->count == names->room) {
        int64_t room = names->room ? 2 * names->room : FIRST_ROOM;
        int64_t *at =
            grown(names->at, (size_t)names->count * sizeof *at, (size_t)room * sizeof *at);
        if (!at)
            return fini_fail_memory(err, (size_t)room * sizeof *at, "names");
        names->at = at;
        names->room = room;
    }
    if (size >= names->size - names->used) {
        if (size > SIZE_MAX / 4 - names->size)
            return fini_fail_memory(err, size, "names");
        size_t more = 2 * names->size + size + FIRST_SIZE;
        char *letters = grown(names->letters, names->used, more);
        if (!letters)
            return fini_fail_memory(err, more, "names");
        names->letters = letters;
        names->size = more;
    }
    return FIN_OK;
}

static fin_status append(fini_names *names, const char *text, size_t size, const char *more,
                         size_t more_size, fin_error *err)
{
    FINI_TRY(make_room(names, size + more_size, err));
    char *to = names->letters + names->used;
    names->at[names->count++] = (int64_t)names->used;
    memcpy(to, text, size);
    memcpy(to + size, more, more_size);
    to[size + more_size] = '\0';
    names->used += size + more_size + 1;
    return FIN_OK;
}

fin_status fini_names_add(fini_names *names, const char *text, size_t size, fin_error *err)
{
    return append(names, text, size, "", 0, err);
}

fin_status fini_names_join(fini_names *names, const char *first, const char *second, fin_error *err)
{
    return append(names, first, strlen(first), second, strlen(second), err);
}

const char *fini_names_get(const fini_names *names, int64_t i)
{
    return i >= 0 && i < names->count ? names->letters + names->at[i] : NULL;
}

const char *fini_names_near(const fini_names *names, const char *word)
{
    const char *some[FINI_NEAR_MOST];
    int count = (int)(names->count < FINI_NEAR_MOST ? names->count : FINI_NEAR_MOST);
    for (int j = 0; j < count; j++)
        some[j] = fini_names_get(names, j);
    return word[0] && strlen(word) < 64 ? fin_nearest_name(word, some, count) : NULL;
}

const char *fini_names_list(const fini_names *names, char text[FINI_LISTED])
{
    enum { ENOUGH = 120 }; /* one more name and ", ..." fit behind it */
    size_t used = 0;
    int64_t i = 0;
    text[0] = '\0';
    for (; i < names->count && used < ENOUGH; i++)
        used += (size_t)snprintf(text + used, FINI_LISTED - used, "%s%s", i ? ", " : "",
                                 FINI_SHOW(fini_names_get(names, i)));
    if (i < names->count)
        snprintf(text + used, FINI_LISTED - used, ", ...");
    return text;
}

/* ---- the table -------------------------------------------------------------------------------- */

/* The slot of the text, or the free one where it belongs. */
static struct fini_name_slot *slot_of(const fini_names *names, const char *text, size_t size,
                                      uint64_t hash)
{
    uint64_t mask = (uint64_t)names->places - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        struct fini_name_slot *slot = &names->slots[i];
        if (slot->number == 0)
            return slot;
        if (slot->hash != hash)
            continue;
        int64_t k = slot->number - 1;
        size_t start = (size_t)names->at[k];
        size_t end = k + 1 < names->count ? (size_t)names->at[k + 1] : names->used;
        if (end - start - 1 == size && memcmp(names->letters + start, text, size) == 0)
            return slot;
    }
}

static fin_status make_places(fini_names *names, int64_t places, fin_error *err)
{
    FINI_NEW(err, "names", struct fini_name_slot, slots, places, 1);
    memset(slots, 0, (size_t)places * sizeof *slots);
    for (int64_t i = 0; i < names->places; i++) {
        struct fini_name_slot *slot = &names->slots[i];
        uint64_t mask = (uint64_t)places - 1, j = slot->hash & mask;
        if (slot->number == 0)
            continue;
        while (slots[j].number)
            j = (j + 1) & mask;
        slots[j] = *slot;
    }
    fini_free(names->slots);
    names->slots = slots;
    names->places = places;
    return FIN_OK;
}

fin_status fini_names_index(fini_names *names, fin_error *err)
{
    int64_t places = FIRST_ROOM;
    while (places < 2 * names->count)
        places *= 2;
    names->seed = (uint64_t)time(NULL) * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)names;
    fini_free(names->slots);
    names->slots = NULL;
    names->places = 0;
    FINI_TRY(make_places(names, places, err));
    for (int64_t i = 0; i < names->count; i++) {
        const char *text = fini_names_get(names, i);
        size_t size = strlen(text);
        uint64_t hash = XXH3_64bits_withSeed(text, size, names->seed);
        struct fini_name_slot *slot = slot_of(names, text, size, hash);
        if (slot->number == 0)
            *slot = (struct fini_name_slot){hash, i + 1};
    }
    return FIN_OK;
}

int64_t fini_names_find(const fini_names *names, const char *text, size_t size)
{
    if (!names->slots)
        return -1;
    return slot_of(names, text, size, XXH3_64bits_withSeed(text, size, names->seed))->number - 1;
}

fin_status fini_names_put(fini_names *names, const char *text, size_t size, int64_t *number,
                          fin_error *err)
{
    if (!names->slots)
        FINI_TRY(fini_names_index(names, err));
    else if (2 * names->count >= names->places)
        FINI_TRY(make_places(names, 2 * names->places, err));
    uint64_t hash = XXH3_64bits_withSeed(text, size, names->seed);
    struct fini_name_slot *slot = slot_of(names, text, size, hash);
    if (slot->number == 0) {
        FINI_TRY(fini_names_add(names, text, size, err));
        *slot = (struct fini_name_slot){hash, names->count};
    }
    *number = slot->number - 1;
    return FIN_OK;
}

fin_status fini_names_numbers(fini_names *names, int64_t first, int64_t count, fin_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        char text[24], *p = text + sizeof text;
        uint64_t number = (uint64_t)(first + i);
        do
            *--p = (char)('0' + number % 10);
        while (number /= 10);
        FINI_TRY(fini_names_add(names, p, (size_t)(text + sizeof text - p), err));
    }
    return FIN_OK;
}

void fini_names_close(fini_names *names)
{
    fini_free_all(names->at, names->letters, names->slots);
    *names = (fini_names){0};
}
