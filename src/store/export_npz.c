/* Runs as an NPZ file: settings, scalars and series as arrays, one entry a run along the first
 * axis.
 *
 *     position block command hash state         which run; text as (n, width) bytes, zero-padded
 *     set.NAME                                  a setting: (n) numbers, or text as above
 *     scalar.NAME  error.NAME                   (n); NaN where a run has none
 *     series.NAME                               (n, ...) if every run has it in one shape, else
 *     series.NAME.POSITION                      one array a run (without a study: .HASH)
 *
 * Settings and scalars are columns in memory; series are unpacked one at a time while the file
 * is written. */
#include "store/frame.h"
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 200 }; /* of an array in an NPZ file */

/* One array that is written run by run. */
typedef struct stack {
    struct stack *next;
    struct book *book;
    int64_t name;             /* its number in the store */
    char text[NAME_MOST + 1]; /* its name */
    fin_dtype dtype;
    int ndim;
    int64_t shape[5];
    int64_t at;          /* the run whose bytes come next */
    size_t used, size;   /* of this series */
    unsigned char *data; /* NULL before the first */
} stack;

typedef struct array {
    struct array *next;
    char name[NAME_MOST + 1];
    void *data;
} array;

typedef struct book {
    fin_store *store;
    bool times;
    fini_frame *frame;
    int64_t rows;
    array *arrays;
    stack *stacks;
    sqlite3_stmt *one; /* a series of a run */
    fin_npz_writer *npz;
} book;

/* ---- columns --------------------------------------------------------------------------------- */

static fin_status add_column(book *b, const char *prefix, const char *name, fin_dtype dtype,
                             int64_t width, void **data, fin_error *err)
{
    size_t size = fin_dtype_size(dtype) * (size_t)(width ? width : 1);
    FINI_MAKE(err, "a column of an export", array, c);
    *c = (array){.next = b->arrays};
    b->arrays = c;
    if ((size_t)snprintf(c->name, sizeof c->name, "%s%s", prefix, name) >= sizeof c->name)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%.60s...' is too long for the name of an array; export to .csv", name);
    *data = c->data = fini_alloc_array(b->rows, size);
    if (!c->data)
        return fini_fail_memory(err, size * (size_t)b->rows, "a column of an export");
    memset(c->data, 0, size * (size_t)b->rows);
    int64_t shape[2] = {b->rows, width};
    return fin_npz_add(b->npz, c->name, dtype, width ? 2 : 1, shape, c->data, err);
}

/* The text of row i. */
typedef const char *(*text_of)(const book *b, const void *from, int64_t i);

static fin_status add_text(book *b, const char *prefix, const char *name, text_of get,
                           const void *from, fin_error *err)
{
    size_t width = 1;
    void *data;
    for (int64_t i = 0; i < b->rows; i++)
        width = strlen(get(b, from, i)) > width ? strlen(get(b, from, i)) : width;
    FINI_TRY(add_column(b, prefix, name, FIN_U8, (int64_t)width, &data, err));
    for (int64_t i = 0; i < b->rows; i++)
        memcpy((char *)data + (size_t)i * width, get(b, from, i), strlen(get(b, from, i)));
    return FIN_OK;
}

static const char *text_of_column(const book *b, const void *from, int64_t i)
{
    (void)b;
    return ((const fini_column *)from)->text[i];
}

static const char *text_of_block(const book *b, const void *from, int64_t i)
{
    (void)from;
    return fini_frame_block(b->frame, i);
}

static const char *text_of_hash(const book *b, const void *from, int64_t i)
{
    (void)from;
    return fini_frame_hash(b->frame, i);
}

static const char *text_of_state(const book *b, const void *from, int64_t i)
{
    (void)from;
    return fin_state_name(fini_frame_state(b->frame, i));
}

/* A number wherever it is there: else text. */
static fin_status add_setting(book *b, const char *name, fin_error *err)
{
    const fini_column *column = fini_frame_setting(b->frame, name);
    double number;
    void *data;
    if (!column)
        return fini_frame_status(b->frame, err);
    for (int64_t i = 0; i < b->rows; i++) {
        const char *text = column->text[i];
        if (*text && !fini_text_number(text, (int)strlen(text), &number))
            return add_text(b, "set.", name, text_of_column, column, err);
    }
    FINI_TRY(add_column(b, "set.", name, FIN_F64, 0, &data, err));
    if (b->rows)
        memcpy(data, column->value, (size_t)b->rows * sizeof *column->value);
    return FIN_OK;
}

/* What a clock said is left out unless it is asked for. */
static fin_status add_scalar(book *b, const char *name, fin_error *err)
{
    const fini_column *column = fini_frame_scalar(b->frame, name);
    bool any = false, errors = false;
    void *data;
    fin_status status = column ? FIN_OK : fini_frame_status(b->frame, err);
    for (int64_t i = 0; column && i < b->rows; i++)
        if (column->has[i] && (b->times || column->how[i] != FIN_HOW_CLOCK)) {
            any = true;
            errors = errors || (column->error && column->error[i] != 0);
        }
    for (int e = 0; e <= errors && any && !status; e++) {
        status = add_column(b, e ? "error." : "scalar.", name, FIN_F64, 0, &data, err);
        for (int64_t i = 0; i < b->rows && !status; i++) {
            bool shown = column->has[i] && (b->times || column->how[i] != FIN_HOW_CLOCK);
            ((double *)data)[i] = !shown ? (double)NAN : !e ? column->value[i] : column->error[i];
        }
    }
    return status;
}

static fin_status add_places(book *b, fin_error *err)
{
    void *data;
    const fini_column *command = fini_frame_command(b->frame);
    const fini_column *seconds = b->times ? fini_frame_seconds(b->frame) : NULL;
    fin_status status = fini_frame_status(b->frame, err);
    if (!status && !command && b->rows)
        status = fini_store_damaged(b->store, err, "runs have no settings");
    if (!status)
        status = add_column(b, "", "position", FIN_I64, 0, &data, err);
    for (int64_t i = 0; i < b->rows && !status; i++)
        ((int64_t *)data)[i] = fini_frame_position(b->frame, i);
    if (!status)
        status = add_text(b, "", "block", text_of_block, NULL, err);
    if (!status)
        status = add_text(b, "", "command", text_of_column, command, err);
    if (!status)
        status = add_text(b, "", "hash", text_of_hash, NULL, err);
    if (!status)
        status = add_text(b, "", "state", text_of_state, NULL, err);
    if (!status && b->times)
        status = add_column(b, "", "seconds", FIN_F64, 0, &data, err);
    for (int64_t i = 0; i < b->rows && !status && b->times; i++)
        ((double *)data)[i] = seconds->value[i];
    return status;
}

/* Calls add with each name that a statement finds. */
static fin_status add_each(book *b, const char *sql,
                           fin_status (*add)(book *b, const char *name, fin_error *err),
                           fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *name;
    fin_status status = fini_sql_prepare(b->store, sql, &statement, err);
    while (!status && !(status = fini_sql_step(b->store, statement, &row, err)) && row) {
        status = fini_sql_text(b->store, statement, 0, FINI_STORE_TEXT, "a name", &name, err);
        if (!status)
            status = add(b, name, err);
    }
    sqlite3_finalize(statement);
    return status;
}

/* ---- series ---------------------------------------------------------------------------------- */

static fin_status next_series(stack *s, fin_error *err)
{
    book *b = s->book;
    bool row = false;
    fin_series series = {.name = s->text};
    fini_free(s->data);
    s->data = NULL;
    sqlite3_bind_int64(b->one, 1, fini_frame_id(b->frame, s->at));
    sqlite3_bind_int64(b->one, 2, s->name);
    fin_status status = fini_sql_step(b->store, b->one, &row, err);
    if (!status && row)
        status = fini_blob_read(b->store, b->one, 0, true, &series, err);
    sqlite3_reset(b->one);
    if (!status && (!row || fini_series_bytes(&series) != s->size)) {
        fini_free((void *)series.data);
        return fini_store_damaged(b->store, err, "a series changed while it was read");
    }
    s->data = (unsigned char *)series.data;
    s->used = 0;
    s->at++;
    return status;
}

static fin_status fill(void *user, void *buffer, size_t bytes, fin_error *err)
{
    stack *s = user;
    unsigned char *to = buffer;
    while (bytes > 0) {
        if (!s->data || s->used == s->size) {
            FINI_TRY(next_series(s, err));
        }
        size_t piece = s->size - s->used < bytes ? s->size - s->used : bytes;
        memcpy(to, s->data + s->used, piece);
        s->used += piece;
        to += piece;
        bytes -= piece;
    }
    return FIN_OK;
}

/* The series of the run at place `first`; stacked: of all runs, with an axis for them. */
static fin_status add_stack(book *b, const char *name, int64_t id, const fin_series *shape,
                            int64_t first, bool stacked, fin_error *err)
{
    char label[NAME_MOST + 1], end[FIN_HASH_TEXT + 1] = "";
    int64_t position = fini_frame_position(b->frame, first);
    FINI_MAKE(err, "a series of an export", stack, s);
    *s = (stack){.next = b->stacks,
                 .book = b,
                 .name = id,
                 .dtype = shape->dtype,
                 .ndim = shape->ndim + stacked,
                 .shape = {b->rows},
                 .at = first,
                 .size = fini_series_bytes(shape)};
    b->stacks = s;
    snprintf(s->text, sizeof s->text, "%s", name);
    for (int i = 0; i < shape->ndim; i++)
        s->shape[i + stacked] = shape->shape[i];
    if (!stacked && position >= 0)
        snprintf(end, sizeof end, ".%lld", (long long)position);
    else if (!stacked)
        snprintf(end, sizeof end, ".%s", fini_frame_hash(b->frame, first));
    if ((size_t)snprintf(label, sizeof label, "series.%s%s", name, end) >= sizeof label)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%.60s...' is too long for the name of an array; export to .csv", name);
    return fin_npz_add_stream(b->npz, label, s->dtype, s->ndim, s->shape, fill, s, err);
}

/* Its type and shape in run i; *found = false if the run has none. */
static fin_status read_shape(book *b, int64_t i, int64_t id, const char *name, fin_series *out,
                             bool *found, fin_error *err)
{
    *out = (fin_series){.name = name};
    *found = false;
    sqlite3_bind_int64(b->one, 1, fini_frame_id(b->frame, i));
    sqlite3_bind_int64(b->one, 2, id);
    fin_status status = fini_sql_step(b->store, b->one, found, err);
    if (!status && *found)
        status = fini_blob_read(b->store, b->one, 0, false, out, err);
    sqlite3_reset(b->one);
    return status;
}

static bool same_shape(const fin_series *a, const fin_series *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static fin_status add_series(book *b, const char *name, fin_error *err)
{
    int64_t id;
    bool found, all = true;
    fin_series first = {0}, shape;
    fin_status status = fini_store_name(b->store, name, false, &id, err);
    for (int64_t i = 0; i < b->rows && !status && all; i++) {
        status = read_shape(b, i, id, name, &shape, &found, err);
        if (i == 0)
            first = shape;
        all = found && same_shape(&first, &shape);
    }
    if (!status && all && b->rows > 0)
        return add_stack(b, name, id, &first, 0, true, err);
    for (int64_t i = 0; i < b->rows && !status; i++) {
        status = read_shape(b, i, id, name, &shape, &found, err);
        if (!status && found)
            status = add_stack(b, name, id, &shape, i, false, err);
    }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static fin_status write_book(book *b, const char *path, fin_error *err)
{
    fin_status status = fini_sql_prepare(b->store,
                                         "SELECT dtype, shape, data FROM series WHERE run_id = ?1 "
                                         "AND name_id = ?2",
                                         &b->one, err);
    if (!status)
        status = fin_npz_create(path, &b->npz, err);
    if (!status)
        status = add_places(b, err);
    if (!status)
        status = add_each(b,
                          "SELECT DISTINCT key FROM common AS c, json_each(c.text, '$.settings') "
                          "ORDER BY key",
                          add_setting, err);
    if (!status)
        status = add_each(b, "SELECT name FROM names ORDER BY name", add_scalar, err);
    if (!status)
        status = add_each(b,
                          "SELECT name FROM names WHERE id IN (SELECT name_id FROM series) "
                          "ORDER BY name",
                          add_series, err);
    if (status) {
        fin_npz_abort(b->npz);
        return status;
    }
    return fin_npz_commit(b->npz, NULL, err);
}

static void free_book(book *b)
{
    sqlite3_finalize(b->one);
    for (array *c = b->arrays, *next; c; c = next) {
        next = c->next;
        fini_free_all(c->data, c);
    }
    for (stack *s = b->stacks, *next; s; s = next) {
        next = s->next;
        fini_free_all(s->data, s);
    }
    fini_frame_destroy(b->frame);
}

fin_status fini_export_npz(fin_store *store, const fin_query *query, const char *path, bool times,
                           fin_error *err)
{
    FINI_AT_END(free_book) book b = {.store = store, .times = times};
    FINI_TRY(fini_frame_open(store, query, true, &b.frame, err));
    b.rows = fini_frame_rows(b.frame);
    FINI_TRY(write_book(&b, path, err));
    return FIN_OK;
}
