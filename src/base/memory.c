/* Allocation through replaceable hooks, and arenas.
 *
 * Blocks are 64-byte aligned (one cache line, one AVX-512 register). The hook only promises
 * malloc's alignment, so each block is over-allocated and the hook's own pointer is kept just
 * before the aligned address. */
#ifdef __linux__
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>
#endif
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, PAGE = 4096, LARGE = 4 << 20 };

static void *(*allocate_hook)(size_t) = malloc;
static void (*release_hook)(void *) = free;

void fin_memory_hooks(void *(*allocate)(size_t size), void (*release)(void *block))
{
    allocate_hook = allocate ? allocate : malloc;
    release_hook = release ? release : free;
}

/* Large pages where the system has them: the first touch of a large array is a third of the time that simple work on
 * it takes. */
static void prefer_large_pages(unsigned char *block, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    size_t skip = PAGE - (uintptr_t)block % PAGE;
    if (size >= LARGE)
        madvise(block + skip, size - skip, MADV_HUGEPAGE);
#else
    (void)block, (void)size;
#endif
}

void *fini_alloc(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    unsigned char *raw = allocate_hook(size + ALIGN + sizeof(void *));
    if (!raw)
        return NULL;
    uintptr_t address = ((uintptr_t)raw + sizeof(void *) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    unsigned char *block = raw + (address - (uintptr_t)raw);
    memcpy(block - sizeof raw, &raw, sizeof raw);
    prefer_large_pages(block, size);
    return block;
}

void fini_free(void *block)
{
    if (!block)
        return;
    void *raw;
    memcpy(&raw, (unsigned char *)block - sizeof raw, sizeof raw);
    release_hook(raw);
}

void fini_free_list(void *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fini_free(blocks[i]);
}

void fini_free_at(void *place)
{
    void *block;
    memcpy(&block, place, sizeof block);
    fini_free(block);
}

void *fini_alloc_array(int64_t count, size_t size)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes))
        return NULL;
    return fini_alloc(bytes ? bytes : 1);
}

void *fini_take(fini_arena *arena, int64_t count, size_t size)
{
    size_t bytes, end;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        bytes > SIZE_MAX / 4 - ALIGN || __builtin_add_overflow(arena->used, bytes, &end) ||
        end > SIZE_MAX / 4) {
        arena->overflow = true;
        return NULL;
    }
    size_t start = arena->used;
    arena->used = (end + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return arena->base ? arena->base + start : NULL;
}

fin_status fini_arena_open(fini_arena *arena, const char *what, fin_error *err)
{
    if (arena->overflow)
        return fini_fail(err, FIN_ERR_MEMORY, "out of memory: the size of %s overflows", what);
    size_t size = arena->used ? arena->used : ALIGN;
    arena->base = fini_alloc(size);
    if (!arena->base)
        return fini_fail_memory(err, size, what);
    memset(arena->base, 0, size);
    arena->used = 0;
    return FIN_OK;
}

void fini_arena_close(fini_arena *arena)
{
    fini_free(arena->base);
    arena->base = NULL;
    arena->used = 0;
}
