/* base: status and messages, memory, settings tables, version, threads, progress.
 *
 * Every other module stands on this one. These rules hold for the whole library:
 *   - a call that can fail returns fin_status and takes a `fin_error *err`, which is written only if it fails;
 *   - nothing prints, nothing exits; long work reports through a fin_progress that can cancel it;
 *   - results never depend on the number of threads;
 *   - NULL where something is needed is answered, never followed: by FIN_ERR_ARGUMENT and a sentence from a call that
 *     returns fin_status, by 0, -1, NaN, NULL or "" from any other. An array of no elements may be NULL;
 *   - NULL has a meaning for: err (no message is wanted), progress (nobody is told, nobody cancels), user,
 *     const ..._settings (the defaults), fin_sum (one process), what is destroyed, closed or freed (nothing is done),
 *     and for what is marked FIN_OR_NULL: an input that is not given, an output that is not wanted.
 */
#ifndef FINETTI_BASE_H
#define FINETTI_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FIN_API
#else
#define FIN_API __attribute__((visibility("default")))
#endif

#define FIN_OR_NULL /* before a parameter: it may be NULL */

/* ---- version ---------------------------------------------------------------------------- */

#define FIN_VERSION_MAJOR 0
#define FIN_VERSION_MINOR 1
#define FIN_VERSION_PATCH 0

/* "major.minor.patch" of the library that is running (not of the header compiled against). */
FIN_API const char *fin_version(void);

/* ---- status and messages ---------------------------------------------------------------- */

/* One list of statuses; fin_status_name() and the documentation come from it. */
#define FIN_STATUS_LIST(S)                                                                         \
    S(FIN_OK, "ok")                                                                                \
    S(FIN_ERR_ARGUMENT, "invalid argument")                                                        \
    S(FIN_ERR_MEMORY, "out of memory")                                                             \
    S(FIN_ERR_IO, "input or output failed")                                                        \
    S(FIN_ERR_FORMAT, "malformed data")                                                            \
    S(FIN_ERR_UNSUPPORTED, "not available for this combination")                                   \
    S(FIN_ERR_NUMERIC, "numerical failure")                                                        \
    S(FIN_ERR_CANCELLED, "cancelled")

typedef enum fin_status {
#define FIN_STATUS_ENUM(name, text) name,
    FIN_STATUS_LIST(FIN_STATUS_ENUM)
#undef FIN_STATUS_ENUM
} fin_status;

/* A fixed buffer, so that reporting out-of-memory needs no memory. Caller-owned. */
typedef struct fin_error {
    fin_status status;
    char message[512]; /* what was given, what is allowed, what usually works */
} fin_error;

FIN_API const char *fin_status_name(fin_status status);

/* ---- element types of arrays ------------------------------------------------------------ */

/* One list: enumerators, numpy's descriptions and sizes. */
#define FIN_DTYPE_LIST(D)                                                                          \
    D(F32, "<f4", 4)                                                                               \
    D(F64, "<f8", 8)                                                                               \
    D(I32, "<i4", 4)                                                                               \
    D(I64, "<i8", 8)                                                                               \
    D(U8, "|u1", 1)

typedef enum fin_dtype {
#define FIN_DTYPE_ENUM(name, descr, size) FIN_##name,
    FIN_DTYPE_LIST(FIN_DTYPE_ENUM)
#undef FIN_DTYPE_ENUM
} fin_dtype;

/* Bytes of one element; 0 if there is no such type. */
FIN_API size_t fin_dtype_size(fin_dtype dtype);
/* Element i of an array of this type, which need not be aligned, as a double. */
FIN_API double fin_dtype_get(fin_dtype dtype, const void *data, int64_t i);

/* An array with a name, in files and for them. */
typedef struct fin_tensor {
    char name[48]; /* "0.members", "0.columns" ... */
    fin_dtype dtype;
    int ndim;
    int64_t shape[4];
    const void *data; /* owned by the object that it is of, or by the file */
} fin_tensor;

/* ---- memory ----------------------------------------------------------------------------- */

/* Replaces malloc/free for everything the library allocates itself (NULL, NULL restores them).
 * Not to be called while library objects are alive. Used by the tests to fail each allocation. */
FIN_API void fin_memory_hooks(FIN_OR_NULL void *(*allocate)(size_t size),
                              FIN_OR_NULL void (*release)(void *block));

/* ---- settings tables -------------------------------------------------------------------- */

/* A settings struct is written once, as a list of rows, and struct, defaults, validation, command
 * line options and help all come from that list:
 *
 *     #define FIN_SLR_FIELDS(F, C)                                                   \
 *         F(int64_t, d, 400, 2, FIN_D_MAX, "token dimension")                        \
 *         F(double, mu, FIN_AUTO, 0, 1e9, "mean along k*; auto = sqrt(d/2)")         \
 *         C(dtype, 0, "float|double", "precision of the tokens")
 *
 * F(type, field, default, lowest, highest, meaning) is a number (int64_t or double), C(field,
 * default index, "names", meaning) a choice. A default of FIN_AUTO (below the lowest value) means
 * that the value is worked out from the others unless it is given. */
typedef int fin_choice;
#define FIN_AUTO (-1e300)
#define FIN_AUTO_INT (-(INT64_C(1) << 60))

typedef enum fin_type { FIN_TYPE_int64_t, FIN_TYPE_double, FIN_TYPE_choice } fin_type;

typedef struct fin_field {
    const char *name;
    fin_type type;
    size_t offset;
    double fallback, lowest, highest; /* fallback: the default */
    const char *names;                /* "a|b|c" for a choice, else NULL */
    const char *meaning;
} fin_field;

typedef struct fin_settings {
    const char *name; /* what a message calls it: "slr", "overlaps" */
    const fin_field *fields;
    int count;
    size_t size; /* of the struct */
} fin_settings;

#define FIN_MEMBER_F(type, field, fallback, lowest, highest, meaning) type field;
#define FIN_MEMBER_C(field, fallback, names, meaning) fin_choice field;

#define FIN_ROW_F(type, field, fallback, lowest, highest, meaning)                                 \
    {#field,                                                                                       \
     FIN_TYPE_##type,                                                                              \
     offsetof(FIN_TABLE_STRUCT, field),                                                            \
     (double)(fallback),                                                                           \
     (double)(lowest),                                                                             \
     (double)(highest),                                                                            \
     NULL,                                                                                         \
     meaning},
#define FIN_ROW_C(field, fallback, names, meaning)                                                 \
    {#field, FIN_TYPE_choice, offsetof(FIN_TABLE_STRUCT, field), fallback, 0, 0, names, meaning},
/* Defines the table `symbol` of struct FIN_TABLE_STRUCT (a macro set just before) from its rows;
 * `storage` is static or nothing. */
#define FIN_TABLE(storage, symbol, label, FIELDS)                                                  \
    static const fin_field symbol##_fields[] = {FIELDS(FIN_ROW_F, FIN_ROW_C)};                     \
    storage const fin_settings symbol = {label, symbol##_fields,                                   \
                                         (int)(sizeof symbol##_fields / sizeof *symbol##_fields),  \
                                         sizeof(FIN_TABLE_STRUCT)}

/* The same and, before it, the struct, where nobody else uses it. */
#define FIN_TABLE_OF_ITS_OWN(symbol, label, FIELDS)                                                \
    typedef struct FIN_TABLE_STRUCT {                                                              \
        FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)                                                         \
    } FIN_TABLE_STRUCT;                                                                            \
    FIN_TABLE(static, symbol, label, FIELDS)

/* size: that of the caller's struct, `sizeof values`. It may be that of an older header, which knows fewer rows (new ones
 * come at the end): what is beyond is not touched. */
FIN_API void fin_settings_defaults(const fin_settings *table, void *values, size_t size);
FIN_API fin_status fin_settings_validate(const fin_settings *table, const void *values,
                                         fin_error *err);
/* NULL if there is no such field. */
FIN_API const fin_field *fin_settings_find(const fin_settings *table, const char *name);
/* Reads `text` into a field: a number, "inf", "auto" where allowed, or the name of a choice. */
FIN_API fin_status fin_settings_parse(const fin_settings *table, void *values, const char *name,
                                      const char *text, fin_error *err);
/* Numbers in and out, for sweeps and tables. An int64_t field takes whole numbers only. */
FIN_API fin_status fin_settings_set(const fin_settings *table, void *values, const fin_field *field,
                                    double number, fin_error *err);
FIN_API double fin_settings_get(const fin_field *field, const void *values);
/* The field as text ("auto", the choice's name, shortest exact number; "choice 7 of 3" for one that there is not).
 * Returns buffer. */
FIN_API char *fin_settings_text(const fin_field *field, const void *values, char *buffer,
                                size_t size);
FIN_API int fin_is_auto(double value);

/* The nearest of `count` names to `word` by edit distance, or NULL if none is near. */
FIN_API const char *fin_nearest_name(const char *word, const char *const *names, int count);
/* "; did you mean NEAR?" (at most 64 letters of it) or, if near is NULL, `otherwise`, which must live as long as it is
 * used. Returns buffer or otherwise. */
enum { FIN_HINT = 96 };
FIN_API const char *fin_hint(FIN_OR_NULL const char *near, FIN_OR_NULL const char *otherwise,
                             FIN_OR_NULL char buffer[FIN_HINT]);

/* ---- threads ---------------------------------------------------------------------------- */

/* Number of threads used by library calls. Default: FINETTI_THREADS, else OMP_NUM_THREADS (if set and
 * valid), else the number of processors. 0 restores the default. Results do not depend on it. */
FIN_API void fin_threads_set(int threads);
FIN_API int fin_threads_get(void);

/* ---- progress and cancelling -------------------------------------------------------------- */

/* Called now and then from the thread that made the call, never from two threads at once. A
 * non-zero answer cancels: the call returns FIN_ERR_CANCELLED and leaves nothing half-done. */
typedef struct fin_progress {
    int (*report)(void *user, const char *what, double done, double total);
    void *user;
} fin_progress;

#ifdef __cplusplus
}
#endif
#endif
