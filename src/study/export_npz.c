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
#include "store/store.h"
#include "study/study.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 200 }; /* of an array in an NPZ file */

/* One array that is written run by run. */
typedef struct stack {
    struct stack *next;
    struct book *book;
    int64_t name;     /* its number in the store */
    const char *text; /* its name, which the book holds */
    fin_dtype dtype;
    int ndim;
    int64_t shape[5];
    int64_t at;          /* the run whose bytes come next */
    size_t used, size;   /* of the series at hand */
    unsigned char *data; /* NULL before the first */
} stack;

typedef struct column {
    struct column *next;
    char name[NAME_MOST + 1];
    fin_dtype dtype;
    int64_t width; /* of text; 0: numbers */
    void *data;
} column;

typedef struct book {
    fin_store *store;
    const fin_query *query;
    bool times;
    int64_t rows, room;
    struct entry {
        int64_t id, position;
        fin_state state;
        double seconds;
        char hash[FIN_HASH_TEXT];
        char *texts[3]; /* block, command, settings */
    } * entries;
    fini_name_list settings, scalars, errors, series;
    column *columns;
    stack *stacks;
    fini_sheet sheet;  /* scalars of a run */
    sqlite3_stmt *one; /* a series of a run */
    fin_npz_writer *npz;
} book;

/* ---- reading --------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fini_alloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

static fin_status grow(book *b, fin_error *err)
{
    if (b->rows < b->room)
        return FIN_OK;
    int64_t room = b->room ? b->room * 2 : 256;
    struct entry *larger = fini_alloc_array(room, sizeof *larger);
    if (!larger)
        return fini_fail_memory(err, (size_t)room * sizeof *larger, "the runs of an export");
    if (b->rows)
        memcpy(larger, b->entries, (size_t)b->rows * sizeof *larger);
    fini_free(b->entries);
    b->entries = larger;
    b->room = room;
    return FIN_OK;
}

static fin_status note_scalars(book *b, int64_t id, fin_error *err)
{
    fin_status status = fini_sheet_read(&b->sheet, id, err);
    for (int64_t i = 0; i < b->sheet.count && !status; i++) {
        const fin_scalar *scalar = &b->sheet.rows[i].scalar;
        int length = (int)strlen(scalar->name);
        if (scalar->how == FIN_HOW_CLOCK && !b->times)
            continue;
        status = fini_name_list_add(&b->scalars, scalar->name, length, err);
        if (!status && scalar->error != 0)
            status = fini_name_list_add(&b->errors, scalar->name, length, err);
    }
    return status;
}

static fin_status note_run(book *b, fini_cursor *cursor, fin_error *err)
{
    fin_run_row run;
    fin_status status = grow(b, err);
    if (!status)
        status = fini_cursor_row(cursor, &run, err);
    if (status)
        return status;
    struct entry *e = &b->entries[b->rows++];
    *e = (struct entry){
        .id = fini_cursor_id(cursor),
        .position = run.position,
        .state = run.state,
        .seconds = run.seconds,
        .texts = {copy_text(run.block), copy_text(run.command), copy_text(run.settings)}};
    memcpy(e->hash, run.hash, FIN_HASH_TEXT);
    if (!e->texts[0] || !e->texts[1] || !e->texts[2])
        return fini_fail_memory(err, strlen(run.settings), "the runs of an export");
    status = fini_name_list_settings(&b->settings, run.settings, err);
    return status || e->id == 0 ? status : note_scalars(b, e->id, err);
}

static fin_status read_runs(book *b, fin_error *err)
{
    fini_cursor *cursor;
    fin_status status = fini_cursor_open(b->store, b->query, &cursor, err);
    if (!status)
        status = fini_sheet_open(b->store, &b->sheet, err);
    while (!status && fini_cursor_next(cursor))
        status = note_run(b, cursor, err);
    fini_cursor_close(cursor);
    return status;
}

/* ---- columns --------------------------------------------------------------------------------- */

static fin_status add_column(book *b, const char *prefix, const char *name, fin_dtype dtype,
                             int64_t width, column **out, fin_error *err)
{
    size_t size = fin_dtype_size(dtype) * (size_t)(width ? width : 1);
    column *c = fini_alloc(sizeof *c);
    if (!c)
        return fini_fail_memory(err, sizeof *c, "a column of an export");
    *c = (column){.next = b->columns, .dtype = dtype, .width = width};
    b->columns = c;
    *out = c;
    if ((size_t)snprintf(c->name, sizeof c->name, "%s%s", prefix, name) >= sizeof c->name)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%.60s...' is too long for the name of an array; export to .csv", name);
    c->data = fini_alloc_array(b->rows, size);
    if (!c->data)
        return fini_fail_memory(err, size * (size_t)b->rows, "a column of an export");
    memset(c->data, 0, size * (size_t)b->rows);
    int64_t shape[2] = {b->rows, width};
    return fin_npz_add(b->npz, c->name, dtype, width ? 2 : 1, shape, c->data, err);
}

/* The text of a column in row i. */
typedef const char *(*text_of)(const book *b, int64_t i, const char *name, int *length);

static const char *get_setting(const book *b, int64_t i, const char *name, int *length)
{
    const char *text;
    return fini_setting_find(b->entries[i].texts[2], name, &text, length) ? text : NULL;
}

static const char *get_place(const book *b, int64_t i, const char *name, int *length)
{
    const struct entry *e = &b->entries[i];
    const char *text = strcmp(name, "block") == 0     ? e->texts[0]
                       : strcmp(name, "command") == 0 ? e->texts[1]
                       : strcmp(name, "hash") == 0    ? e->hash
                                                      : fin_state_name(e->state);
    *length = (int)strlen(text);
    return text;
}

static fin_status add_text(book *b, const char *prefix, const char *name, text_of get,
                           fin_error *err)
{
    int length;
    int64_t width = 1;
    column *c;
    for (int64_t i = 0; i < b->rows; i++)
        if (get(b, i, name, &length) && length > width)
            width = length;
    fin_status status = add_column(b, prefix, name, FIN_U8, width, &c, err);
    for (int64_t i = 0; i < b->rows && !status; i++) {
        const char *text = get(b, i, name, &length);
        if (text)
            memcpy((char *)c->data + i * width, text, (size_t)length);
    }
    return status;
}

/* A number wherever it is there: else text. */
static fin_status add_setting(book *b, const char *name, fin_error *err)
{
    int length;
    double number;
    column *c;
    for (int64_t i = 0; i < b->rows; i++) {
        const char *text = get_setting(b, i, name, &length);
        if (text && !fini_text_number(text, length, &number))
            return add_text(b, "set.", name, get_setting, err);
    }
    fin_status status = add_column(b, "set.", name, FIN_F64, 0, &c, err);
    for (int64_t i = 0; i < b->rows && !status; i++) {
        const char *text = get_setting(b, i, name, &length);
        ((double *)c->data)[i] = NAN;
        if (text)
            fini_text_number(text, length, &((double *)c->data)[i]);
    }
    return status;
}

static fin_status add_places(book *b, fin_error *err)
{
    static const char *const names[] = {"block", "command", "hash", "state"};
    column *c;
    fin_status status = add_column(b, "", "position", FIN_I64, 0, &c, err);
    for (int64_t i = 0; i < b->rows && !status; i++)
        ((int64_t *)c->data)[i] = b->entries[i].position;
    for (int k = 0; k < 4 && !status; k++)
        status = add_text(b, "", names[k], get_place, err);
    if (!status && b->times)
        status = add_column(b, "", "seconds", FIN_F64, 0, &c, err);
    for (int64_t i = 0; i < b->rows && !status && b->times; i++)
        ((double *)c->data)[i] = b->entries[i].seconds;
    return status;
}

/* One column after the other, from the file: a walk along the runs for each. */
static fin_status fill_scalar(book *b, const char *name, double *value, double *error,
                              fin_error *err)
{
    int64_t id;
    bool row = false;
    sqlite3_stmt *statement;
    fin_status status = fini_store_name(b->store, name, false, &id, err);
    if (!status)
        status = fini_sql_prepare(b->store,
                                  "SELECT value, error, how FROM scalars WHERE name_id = ?1 AND "
                                  "run_id = ?2",
                                  &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    for (int64_t i = 0; i < b->rows && !status; i++) {
        value[i] = NAN;
        if (error)
            error[i] = NAN;
        sqlite3_bind_int64(statement, 2, b->entries[i].id);
        status = fini_sql_step(b->store, statement, &row, err);
        bool clock = row && sqlite3_column_int(statement, 2) == FIN_HOW_CLOCK && !b->times;
        if (row && !clock)
            value[i] = fini_sql_double(statement, 0);
        if (row && !clock && error)
            error[i] = fini_sql_double(statement, 1);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status add_scalar(book *b, const char *name, fin_error *err)
{
    column *value, *error = NULL;
    fin_status status = add_column(b, "scalar.", name, FIN_F64, 0, &value, err);
    if (!status && fini_name_list_find(&b->errors, name, (int)strlen(name)) >= 0)
        status = add_column(b, "error.", name, FIN_F64, 0, &error, err);
    return status ? status : fill_scalar(b, name, value->data, error ? error->data : NULL, err);
}

/* ---- series ---------------------------------------------------------------------------------- */

static fin_status next_series(stack *s, fin_error *err)
{
    book *b = s->book;
    bool row = false;
    fin_series series = {.name = s->text};
    fini_free(s->data);
    s->data = NULL;
    sqlite3_bind_int64(b->one, 1, b->entries[s->at].id);
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
            fin_status status = next_series(s, err);
            if (status)
                return status;
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
    const struct entry *e = &b->entries[first];
    stack *s = fini_alloc(sizeof *s);
    if (!s)
        return fini_fail_memory(err, sizeof *s, "a series of an export");
    *s = (stack){.next = b->stacks,
                 .book = b,
                 .name = id,
                 .text = name,
                 .dtype = shape->dtype,
                 .ndim = shape->ndim + stacked,
                 .shape = {b->rows},
                 .at = first,
                 .size = fini_series_bytes(shape)};
    b->stacks = s;
    for (int i = 0; i < shape->ndim; i++)
        s->shape[i + stacked] = shape->shape[i];
    if (!stacked && e->position >= 0)
        snprintf(end, sizeof end, ".%lld", (long long)e->position);
    else if (!stacked)
        snprintf(end, sizeof end, ".%s", e->hash);
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
    if (b->entries[i].id == 0)
        return FIN_OK;
    sqlite3_bind_int64(b->one, 1, b->entries[i].id);
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

/* The names of all series that some run has, in order. */
static fin_status find_series(book *b, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *name;
    fin_status status = fini_sql_prepare(b->store,
                                         "SELECT n.name FROM series AS s JOIN names AS n "
                                         "ON n.id = s.name_id WHERE s.run_id = ?1",
                                         &statement, err);
    if (status)
        return status;
    for (int64_t i = 0; i < b->rows && !status; i++) {
        sqlite3_bind_int64(statement, 1, b->entries[i].id);
        while (!status && !(status = fini_sql_step(b->store, statement, &row, err)) && row) {
            status = fini_sql_text(b->store, statement, 0, FINI_STORE_TEXT, "the name of a series",
                                   &name, err);
            if (!status)
                status = fini_name_list_add(&b->series, name, (int)strlen(name), err);
        }
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static fin_status write_book(book *b, const char *path, fin_error *err)
{
    fin_status status = read_runs(b, err);
    if (!status)
        status = fini_sql_prepare(b->store,
                                  "SELECT dtype, shape, data FROM series WHERE run_id = ?1 AND "
                                  "name_id = ?2",
                                  &b->one, err);
    if (!status)
        status = find_series(b, err);
    if (!status)
        status = fin_npz_create(path, &b->npz, err);
    if (!status)
        status = add_places(b, err);
    for (int i = 0; i < b->settings.count && !status; i++)
        status = add_setting(b, b->settings.name[i], err);
    for (int i = 0; i < b->scalars.count && !status; i++)
        status = add_scalar(b, b->scalars.name[i], err);
    for (int i = 0; i < b->series.count && !status; i++)
        status = add_series(b, b->series.name[i], err);
    if (status) {
        fin_npz_abort(b->npz);
        return status;
    }
    return fin_npz_commit(b->npz, NULL, err);
}

static void free_book(book *b)
{
    fini_sheet_close(&b->sheet);
    sqlite3_finalize(b->one);
    for (column *c = b->columns, *next; c; c = next) {
        next = c->next;
        fini_free(c->data);
        fini_free(c);
    }
    for (stack *s = b->stacks, *next; s; s = next) {
        next = s->next;
        fini_free(s->data);
        fini_free(s);
    }
    for (int64_t i = 0; i < b->rows; i++)
        for (int k = 0; k < 3; k++)
            fini_free(b->entries[i].texts[k]);
    fini_free(b->entries);
    fini_name_list_free(&b->settings);
    fini_name_list_free(&b->scalars);
    fini_name_list_free(&b->errors);
    fini_name_list_free(&b->series);
}

fin_status fini_export_npz(fin_store *store, const fin_query *query, const char *path, bool times,
                           fin_error *err)
{
    book b = {.store = store, .query = query, .times = times};
    fin_status status = write_book(&b, path, err);
    free_book(&b);
    return status;
}
