/* data: tables from and to CSV, arrays from and to NPZ.
 *
 * Input is never trusted: whatever the bytes are, a call answers with data or with a message that
 * names the file, the line and the column. Output is all or nothing: it goes to a temporary file in
 * the same folder that takes the final name only when everything has been written and flushed. */
#ifndef FINETTI_DATA_H
#define FINETTI_DATA_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tables from CSV -------------------------------------------------------------------- */

/* A table of numbers with named columns.
 *
 * The first line holds the names and is required; names are unique and not empty. Cells are
 * separated by commas, lines end in LF or CRLF, cells may be quoted (RFC 4180), spaces around a
 * cell and blank lines at the end are ignored, a UTF-8 byte order mark is skipped. A cell is a
 * decimal number, read to the nearest double, or nan, inf or infinity in any case (kept as they
 * are). Refused: empty cells (write nan for a missing value), rows of another length than the
 * header, numbers beyond the range of a double, a file without rows. */
typedef struct fin_table fin_table;

#define FIN_TABLE_COLUMNS_MAX 100000
#define FIN_TABLE_ROWS_MAX INT64_C(2147483647)

/* Reads a file; "-" is standard input. On failure *out is NULL. The caller destroys the table. */
FIN_API fin_status fin_table_read(const char *path, fin_table **out, fin_error *err);
/* The same from memory. `text` is borrowed during the call; messages call it `label`. */
FIN_API fin_status fin_table_parse(const char *text, size_t size, FIN_OR_NULL const char *label,
                                   fin_table **out, fin_error *err);
/* The same, where columns may be text: where some cell of a column is no number, every different
 * text gets one, from 1 in the order of appearance. What is missing (an empty cell, NA, N/A, null or
 * none in any case) is nan, in columns of numbers too. */
FIN_API fin_status fin_table_read_texts(const char *path, fin_table **out, fin_error *err);
FIN_API fin_status fin_table_parse_texts(const char *text, size_t size,
                                         FIN_OR_NULL const char *label, fin_table **out,
                                         fin_error *err);
FIN_API void fin_table_destroy(fin_table *table);

FIN_API int64_t fin_table_rows(const fin_table *table);
FIN_API int fin_table_columns(const fin_table *table);
/* Name and values of column j, owned by the table; NULL if there is no column j. */
FIN_API const char *fin_table_name(const fin_table *table, int j);
FIN_API const double *fin_table_values(const fin_table *table, int j);
/* How many different texts column j has, 0 for one of numbers; and text i, from 0: that of value
 * i + 1. */
FIN_API int64_t fin_table_texts(const fin_table *table, int j);
FIN_API const char *fin_table_text(const fin_table *table, int j, int64_t i);
FIN_API int64_t fin_table_find_text(const fin_table *table, int j, const char *text); /* or -1 */
/* Number of the column with this name, or -1. */
FIN_API int fin_table_column(const fin_table *table, const char *name);

/* ---- lists of columns --------------------------------------------------------------------- */

/* UNASKED: not in ranges and patterns, only by name. TAKEN + k: refused by name too, because the
 * column `taken[k]`, such as "is in --value already". */
enum { FIN_COLUMN_FREE, FIN_COLUMN_UNASKED, FIN_COLUMN_TAKEN };

typedef struct fin_columns {
    const char *what, *file; /* for messages: what is read ("--key"), and of which file */
    int64_t count;
    const char *const *names; /* (count) */
    const char *skip;         /* (count) FIN_COLUMN_..., or NULL: all are free */
    const char *const *taken;
} fin_columns;

/* Columns as people write them, with commas: names, numbers from 1, ranges a:c (also a: and :c),
 * patterns x*, and M for columns M.0, M.1, ...; each at most once. list: (count); *found of them. */
FIN_API fin_status fin_columns_read(const fin_columns *columns, const char *text, int64_t *list,
                                    int64_t *found, fin_error *err);

/* ---- tables to CSV ---------------------------------------------------------------------- */

/* Writes a header line, then one line per row; numbers as %.17g, so that they read back equal.
 * "-" writes to standard output. A device or pipe is written directly. */
typedef struct fin_csv fin_csv;

/* The names are copied. On failure *out is NULL. */
FIN_API fin_status fin_csv_open(const char *path, const char *const *names, int count,
                                fin_csv **out, fin_error *err);
/* One row of `count` values. After a failure every later call, commit included, fails as well. */
FIN_API fin_status fin_csv_row(fin_csv *csv, const double *values, fin_error *err);
/* The same with text in it: texts[j] if it is not NULL (quoted where needed), else values[j]. */
FIN_API fin_status fin_csv_cells(fin_csv *csv, FIN_OR_NULL const char *const *texts,
                                 FIN_OR_NULL const double *values, fin_error *err);
/* Flushes and gives the file its name. Ends the writer in any case; on failure nothing is left. */
FIN_API fin_status fin_csv_commit(fin_csv *csv, fin_error *err);
/* Ends the writer and leaves nothing. Takes NULL. */
FIN_API void fin_csv_abort(fin_csv *csv);

/* ---- arrays ------------------------------------------------------------------------------ */

#define FIN_DIMS_MAX 32

typedef struct fin_array {
    fin_dtype dtype;
    int ndim;
    int64_t shape[FIN_DIMS_MAX]; /* the first ndim count */
    int64_t count;               /* product of the shape */
    const void *data;            /* row-major, 64-byte aligned, owned by the fin_npz */
} fin_array;

/* ---- arrays to NPZ ----------------------------------------------------------------------- */

/* Collects arrays, then writes them in one go, uncompressed. The same arrays give the same bytes
 * (the time stamp is fixed). The file is created at once, so that a folder that cannot be written
 * to is found before the work and not after it. */
typedef struct fin_npz_writer fin_npz_writer;

/* Produces the next `bytes` bytes of an array (always whole elements) in `buffer`. What it writes
 * to err is what fin_npz_commit reports. */
typedef fin_status (*fin_npz_fill)(void *user, void *buffer, size_t bytes, fin_error *err);

FIN_API fin_status fin_npz_create(const char *path, fin_npz_writer **out, fin_error *err);
/* Adds an array called `name` (copied). `data`: row-major, borrowed until commit or abort. */
FIN_API fin_status fin_npz_add(fin_npz_writer *npz, const char *name, fin_dtype dtype, int ndim,
                               const int64_t *shape, const void *data, fin_error *err);
/* The same for an array that need not fit in memory: commit calls `fill` for its bytes, in order.
 */
FIN_API fin_status fin_npz_add_stream(fin_npz_writer *npz, const char *name, fin_dtype dtype,
                                      int ndim, const int64_t *shape, fin_npz_fill fill, void *user,
                                      fin_error *err);
/* An array of `count` texts (UTF-8), which numpy reads as str ('<U'): as wide as the longest. `text`
 * answers for i = 0 .. count - 1, more than once, until commit or abort. */
typedef const char *(*fin_npz_text)(const void *user, int64_t i);
FIN_API fin_status fin_npz_add_texts(fin_npz_writer *npz, const char *name, int64_t count,
                                     fin_npz_text text, FIN_OR_NULL const void *user,
                                     fin_error *err);
/* Writes everything. Ends the writer in any case; on failure nothing is left behind. */
FIN_API fin_status fin_npz_commit(fin_npz_writer *npz, const fin_progress *progress,
                                  fin_error *err);
/* Ends the writer and leaves nothing. Takes NULL. */
FIN_API void fin_npz_abort(fin_npz_writer *npz);

/* ---- arrays from NPZ ----------------------------------------------------------------------- */

/* An archive opened for reading, compressed or not. Arrays are read on first use. */
typedef struct fin_npz fin_npz;

FIN_API fin_status fin_npz_open(const char *path, fin_npz **out, fin_error *err);
/* Fills *out; its data stay valid until close. Elements are as in the file, but float16 is read as
 * float, integers of 8 and 16 bits with a sign and uint16 as int32, uint32 as int64, and Fortran
 * order is turned around. Texts are refused. */
FIN_API fin_status fin_npz_array(fin_npz *npz, const char *name, fin_array *out, fin_error *err);
/* The arrays in the archive, in file order; fin_npz_name is NULL if there is no array i. */
FIN_API int64_t fin_npz_count(const fin_npz *npz);
FIN_API const char *fin_npz_name(const fin_npz *npz, int64_t i);
FIN_API void fin_npz_close(fin_npz *npz);

#ifdef __cplusplus
}
#endif
#endif
