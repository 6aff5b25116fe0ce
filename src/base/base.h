/* Private face of the base module: what the other modules use to fail, allocate and report. */
#ifndef FINI_BASE_H
#define FINI_BASE_H

#include "finetti/base.h"

#include <stdbool.h>
#include <string.h>

/* Writes the message if err is not NULL; returns status, so that `return fini_fail(...)` reads
 * well. */
fin_status fini_fail(fin_error *err, fin_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Hands on what failed. Only where nothing is to be given back. */
#define FINI_TRY(call)                                                                             \
    do {                                                                                           \
        const fin_status fini_tried = (call);                                                      \
        if (fini_tried)                                                                            \
            return fini_tried;                                                                     \
    } while (0)
/* The end of a call that makes an object: it is there, or it is destroyed and the status handed on. */
#define FINI_HAND_OVER(out, object, status, destroy)                                               \
    do {                                                                                           \
        if (status)                                                                                \
            destroy(object);                                                                       \
        else                                                                                       \
            *(out) = (object);                                                                     \
        return status;                                                                             \
    } while (0)
/* For public functions: FIN_ERR_ARGUMENT with the name of the first pointer that is NULL. FINI_NEED(err, task, !n || y): y
 * counts only where there is something in it. */
#define FINI_NEED(err, ...)                                                                        \
    do {                                                                                           \
        const bool fini_given[] = {__VA_ARGS__};                                                   \
        if (fini_missing(fini_given, sizeof fini_given, #__VA_ARGS__, __func__, err))              \
            return FIN_ERR_ARGUMENT;                                                               \
    } while (0)
/* The same for a call that leaves an object in *out: NULL until there is one. */
#define FINI_NEED_TO_MAKE(err, out, ...)                                                           \
    do {                                                                                           \
        if (out)                                                                                   \
            *(out) = NULL;                                                                         \
        FINI_NEED(err, out, __VA_ARGS__);                                                          \
    } while (0)
bool fini_missing(const bool *given, size_t count, const char *names, const char *function,
                  fin_error *err);
fin_status fini_fail_memory(fin_error *err, size_t size, const char *what);

/* 64-byte aligned, through the hooks. fini_free takes NULL. */
void *fini_alloc(size_t size);
void fini_free(void *block);
/* Several of them. */
#define fini_free_all(...)                                                                         \
    fini_free_list((void *const[]){__VA_ARGS__},                                                   \
                   sizeof(void *const[]){__VA_ARGS__} / sizeof(void *))
void fini_free_list(void *const *blocks, size_t count);
/* count * size with overflow checked; NULL if it overflows or memory is out. */
void *fini_alloc_array(int64_t count, size_t size);

/* place = memory for count * each elements; returns if there is none. Only where nothing is to be given back. FINI_NEW
 * declares a local `type *name` of them, FINI_MAKE one of zeros; that of FINI_OWN is freed where the block ends, on any
 * way out. */
#define FINI_ROOM(err, what, place, count, each)                                                   \
    do {                                                                                           \
        (place) = fini_alloc_array(count, (size_t)(each) * sizeof *(place));                       \
        if (!(place))                                                                              \
            return fini_fail_memory(err, (size_t)(count) * (size_t)(each) * sizeof *(place),       \
                                    what);                                                         \
    } while (0)
#define FINI_NEW(err, what, type, name, count, each)                                               \
    type *name = NULL;                                                                             \
    FINI_ROOM(err, what, name, count, each)
#define FINI_MAKE(err, what, type, name)                                                           \
    FINI_NEW(err, what, type, name, 1, 1);                                                         \
    memset(name, 0, sizeof(type))
#define FINI_OWN(err, what, type, name, count, each)                                               \
    FINI_FREED FINI_NEW(err, what, type, name, count, each)
/* Before the declaration of a local: what is called with its address where its block ends. */
#define FINI_AT_END(close) __attribute__((cleanup(close)))
#define FINI_FREED FINI_AT_END(fini_free_at)
void fini_free_at(void *place); /* fini_free of the pointer at this place */

/* One block of memory per object, cut by a layout function that is run twice: first with base ==
 * NULL, when it only measures, then to cut. Every piece is 64-byte aligned and zeroed. */
typedef struct fini_arena {
    unsigned char *base;
    size_t used;
    bool overflow;
} fini_arena;

void *fini_take(fini_arena *arena, int64_t count, size_t size);
/* After measuring: allocates arena->used bytes, zeroes them, rewinds. */
fin_status fini_arena_open(fini_arena *arena, const char *what, fin_error *err);
void fini_arena_close(fini_arena *arena);
/* Calls `layout`, which takes its pieces, before and after opening; returns that memory is out. */
#define FINI_LAY_OUT(err, arena, what, layout)                                                     \
    do {                                                                                           \
        (void)(layout);                                                                            \
        FINI_TRY(fini_arena_open(arena, what, err));                                               \
        (void)(layout);                                                                            \
    } while (0)

/* From here on, calls made by this thread use so many threads; 0: as many as all others. For those
 * who run calls side by side. Returns what was in force before. */
int fini_threads_limit(int threads);

/* What FINETTI_THREADS or, after it, OMP_NUM_THREADS says; 0 if neither gives a number. */
int fini_threads_told(void);

/* True if the caller wants to stop. `progress` may be NULL. */
bool fini_report(const fin_progress *progress, const char *what, double done, double total);
/* The same as a status: FIN_ERR_CANCELLED. */
fin_status fini_go_on(const fin_progress *progress, const char *what, double done, double total,
                      fin_error *err);

/* What one of `count` equal pieces of work says, as a part of the whole. Its progress: {fini_share_report, part}. */
typedef struct fini_share {
    const fin_progress *whole; /* may be NULL */
    int64_t at, count;
} fini_share;
int fini_share_report(void *part, const char *what, double done, double total);

/* Element types by their numbers: "F32", numpy's "<f4", bytes. (dtype.c) */
typedef struct fini_dtype {
    const char *name, *descr;
    size_t size;
} fini_dtype;
enum { FINI_DTYPES = FIN_U8 + 1 };
extern const fini_dtype fini_dtypes[FINI_DTYPES];
/* The type called so by us ("F32"), or by numpy ("<f4"); false: there is none. */
bool fini_dtype_find(const char *text, bool numpy, fin_dtype *dtype);
/* Product of the shape; false if it is negative somewhere or the bytes overflow. */
bool fini_shape_count(fin_dtype dtype, int ndim, const int64_t *shape, int64_t *count);

/* strtod in the C locale, whatever locale the host program runs in. */
double fini_strtod(const char *text, char **end);
/* %.*g in the C locale. */
void fini_print_double(double number, int digits, char *buffer, size_t size);

/* `given`, or if it is NULL the defaults, which `room` has then. */
const void *fini_or_defaults(const fin_settings *table, const void *given, void *room);

/* fin_hint into memory of the block that it is called in. */
#define fini_did_you_mean(near, otherwise) fin_hint(near, otherwise, (char[FIN_HINT]){""})
/* The same with the name in quotes. */
#define fini_did_you_mean_quoted(near, otherwise)                                                  \
    fin_hint(fini_quoted(near, (char[FIN_HINT]){""}), otherwise, (char[FIN_HINT]){""})
const char *fini_quoted(const char *name, char buffer[FIN_HINT]); /* NULL stays NULL */
/* Adds a name to a list of names, "slr, spiked, max", as far as there is room. */
void fini_add_name(const char *name, char *list, size_t size);

/* Edit distance of two short words, at most `limit` + 1. */
int fini_edit_distance(const char *a, const char *b, int limit);

#endif
