/* Runs of a study as columns.
 *
 * A frame fixes which runs are its rows; a column is read when it is first asked for, because a
 * claim looks at two of a hundred. Scalars lie in the file by name and then by run, so a column is
 * one walk along neighbouring rows; only a frame with few of the store's runs picks its rows one by
 * one. */
#include "study/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, FEW = 8 }; /* a walk passes at most FEW runs for one that it needs */

/* Memory for the texts of a column. */
typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    char bytes[];
} chunk;

typedef struct column {
    struct column *next;
    fini_column face;
    bool there; /* false: asked for, and no row has it */
    fini_arena arena;
    double *value, *error;
    fin_how *how;
    int64_t *samples;
    const char **text;
    chunk *chunks;
    char name[];
} column;

typedef struct place {
    int64_t id, row;
} place;

struct fini_frame {
    fin_store *store;
    int64_t rows, missing, failed;
    fini_arena arena;
    int64_t *id;                 /* [rows] */
    char (*hash)[FIN_HASH_TEXT]; /* [rows] */
    const char **block;          /* [rows] */
    place *order;                /* [rows] by id; NULL until needed */
    chunk *blocks;
    column *columns;
    fini_names names;
    bool named;
    fin_error failure;
};

int64_t fini_frame_rows(const fini_frame *frame)
{
    return frame->rows;
}

int64_t fini_frame_missing(const fini_frame *frame)
{
    return frame->missing;
}

int64_t fini_frame_failed(const fini_frame *frame)
{
    return frame->failed;
}

const char *fini_frame_hash(const fini_frame *frame, int64_t row)
{
    return row >= 0 && row < frame->rows ? frame->hash[row] : NULL;
}

const char *fini_frame_block(const fini_frame *frame, int64_t row)
{
    return row >= 0 && row < frame->rows ? frame->block[row] : NULL;
}

fin_status fini_frame_status(const fini_frame *frame, fin_error *err)
{
    if (frame->failure.status && err)
        *err = frame->failure;
    return frame->failure.status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A terminated copy; NULL: no memory. */
static const char *keep_text(chunk **chunks, const char *text, size_t length)
{
    chunk *top = *chunks;
    if (!top || top->size - top->used <= length) {
        size_t size = length + 1 > CHUNK ? length + 1 : CHUNK;
        top = fini_alloc(sizeof *top + size);
        if (!top)
            return NULL;
        *top = (chunk){.next = *chunks, .size = size};
        *chunks = top;
    }
    char *copy = top->bytes + top->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    top->used += length + 1;
    return copy;
}

static void free_chunks(chunk *chunks)
{
    for (chunk *next; chunks; chunks = next) {
        next = chunks->next;
        fini_free(chunks);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void layout_rows(fini_arena *arena, fini_frame *frame, int64_t most)
{
    frame->id = fini_take(arena, most, sizeof *frame->id);
    frame->hash = fini_take(arena, most, sizeof *frame->hash);
    frame->block = fini_take(arena, most, sizeof *frame->block);
}

static fin_status add_row(fini_frame *frame, const fini_cursor *cursor, fin_error *err)
{
    int64_t row = frame->rows;
    const char *block = fini_cursor_block(cursor);
    const char *before = row > 0 ? frame->block[row - 1] : NULL;
    if (!before || strcmp(before, block) != 0)
        before = keep_text(&frame->blocks, block, strlen(block));
    if (!before)
        return fini_fail_memory(err, CHUNK, "the runs of a study");
    frame->id[row] = fini_cursor_id(cursor);
    frame->block[row] = before;
    memcpy(frame->hash[row], fini_cursor_hash(cursor), FIN_HASH_TEXT);
    frame->rows++;
    return FIN_OK;
}

static fin_status read_rows(fini_frame *frame, const fin_query *query, fin_error *err)
{
    fini_cursor *cursor;
    int64_t study, most;
    bool more = true;
    fin_status status = fini_cursor_open(frame->store, query, &cursor, err);
    if (!status)
        status = fini_store_find_study(frame->store, query->study, &study, err);
    if (!status)
        status = fini_sql_number(frame->store, "SELECT count(*) FROM plan WHERE study_id = ?1",
                                 study, &most, err);
    if (!status) {
        layout_rows(&frame->arena, frame, most);
        status = fini_arena_open(&frame->arena, "the runs of a study", err);
    }
    if (!status)
        layout_rows(&frame->arena, frame, most);
    while (!status && !(status = fini_cursor_next(cursor, &more, err)) && more) {
        fin_state state = fini_cursor_state(cursor);
        frame->missing += state == FIN_STATE_PLANNED;
        frame->failed += state == FIN_STATE_FAILED;
        if (state == FIN_STATE_DONE)
            status = add_row(frame, cursor, err);
    }
    fini_cursor_close(cursor);
    return status;
}

fin_status fini_frame_read(fin_store *store, const char *study, const char *block,
                           const char *const *where, int where_count, fini_frame **out,
                           fin_error *err)
{
    fin_query query = {.study = study, .block = block, .where = where, .where_count = where_count};
    *out = NULL;
    fini_frame *frame = fini_alloc(sizeof *frame);
    if (!frame)
        return fini_fail_memory(err, sizeof *frame, "the runs of a study");
    memset(frame, 0, sizeof *frame);
    frame->store = store;
    fin_status status = read_rows(frame, &query, err);
    if (status) {
        fini_frame_destroy(frame);
        return status;
    }
    *out = frame;
    return FIN_OK;
}

static void free_column(column *c)
{
    if (!c)
        return;
    fini_arena_close(&c->arena);
    free_chunks(c->chunks);
    fini_free(c);
}

void fini_frame_destroy(fini_frame *frame)
{
    if (!frame)
        return;
    for (column *c = frame->columns, *next; c; c = next) {
        next = c->next;
        free_column(c);
    }
    fini_names_free(&frame->names);
    free_chunks(frame->blocks);
    fini_free(frame->order);
    fini_arena_close(&frame->arena);
    fini_free(frame);
}

/* ---- columns of scalars ---------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const place *p = a, *q = b;
    if (p->id != q->id)
        return p->id < q->id ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

static fin_status sort_rows(fini_frame *frame, fin_error *err)
{
    if (frame->order)
        return FIN_OK;
    frame->order = fini_alloc_array(frame->rows, sizeof *frame->order);
    if (!frame->order)
        return fini_fail_memory(err, (size_t)frame->rows * sizeof *frame->order, "a column");
    bool sorted = true;
    for (int64_t i = 0; i < frame->rows; i++) {
        frame->order[i] = (place){frame->id[i], i};
        sorted = sorted && (i == 0 || frame->id[i - 1] <= frame->id[i]);
    }
    if (!sorted)
        qsort(frame->order, (size_t)frame->rows, sizeof *frame->order, by_id);
    return FIN_OK;
}

static void layout_column(fini_arena *arena, column *c, int64_t rows, bool scalar)
{
    c->value = fini_take(arena, rows, sizeof *c->value);
    c->error = scalar ? fini_take(arena, rows, sizeof *c->error) : NULL;
    c->how = scalar ? fini_take(arena, rows, sizeof *c->how) : NULL;
    c->samples = scalar ? fini_take(arena, rows, sizeof *c->samples) : NULL;
    c->text = scalar ? NULL : fini_take(arena, rows, sizeof *c->text);
}

static fin_status open_column(column *c, int64_t rows, bool scalar, fin_error *err)
{
    layout_column(&c->arena, c, rows, scalar);
    fin_status status = fini_arena_open(&c->arena, "a column", err);
    if (status)
        return status;
    layout_column(&c->arena, c, rows, scalar);
    for (int64_t i = 0; i < rows; i++)
        c->value[i] = NAN;
    c->face = (fini_column){
        .name = c->name, .value = c->value, .how = c->how, .samples = c->samples, .text = c->text};
    return FIN_OK;
}

/* Columns run_id, value, error, how, samples. */
static fin_status set_scalar(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                             int64_t row, fin_error *err)
{
    int64_t how;
    fin_status status = fini_sql_integer(frame->store, statement, 3, 0, FIN_HOW_COUNT - 1,
                                         "how a scalar came about", &how, err);
    if (!status)
        status = fini_sql_integer(frame->store, statement, 4, 0, INT64_MAX, "a number of samples",
                                  &c->samples[row], err);
    if (status)
        return status;
    c->value[row] = fini_sql_double(statement, 1);
    c->error[row] = fini_sql_double(statement, 2);
    c->how[row] = (fin_how)how;
    if (c->error[row] != 0)
        c->face.error = c->error;
    c->there = true;
    return FIN_OK;
}

/* Walks along the rows of the file and those of the frame, both by number of the run. */
static fin_status walk(const fini_frame *frame, column *c, sqlite3_stmt *statement, fin_error *err)
{
    const place *order = frame->order;
    int64_t k = 0;
    bool row = false;
    fin_status status = FIN_OK;
    sqlite3_bind_int64(statement, 2, order[0].id);
    sqlite3_bind_int64(statement, 3, order[frame->rows - 1].id);
    while (!status && !(status = fini_sql_step(frame->store, statement, &row, err)) && row) {
        int64_t id = sqlite3_column_int64(statement, 0);
        while (k < frame->rows && order[k].id < id)
            k++;
        for (; k < frame->rows && order[k].id == id && !status; k++)
            status = set_scalar(frame, c, statement, order[k].row, err);
    }
    return status;
}

static fin_status pick(const fini_frame *frame, column *c, sqlite3_stmt *statement, fin_error *err)
{
    bool row = false;
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < frame->rows && !status; i++) {
        sqlite3_bind_int64(statement, 2, frame->id[i]);
        sqlite3_bind_int64(statement, 3, frame->id[i]);
        status = fini_sql_step(frame->store, statement, &row, err);
        if (!status && row)
            status = set_scalar(frame, c, statement, i, err);
        sqlite3_reset(statement);
    }
    return status;
}

static fin_status load_scalar(fini_frame *frame, column *c, fin_error *err)
{
    int64_t name;
    sqlite3_stmt *statement;
    fin_status status = fini_store_name(frame->store, c->name, false, &name, err);
    if (status || name == 0)
        return status;
    status = sort_rows(frame, err);
    if (!status)
        status = open_column(c, frame->rows, true, err);
    if (!status)
        status = fini_sql_prepare(frame->store,
                                  "SELECT run_id, value, error, how, samples FROM scalars "
                                  "WHERE name_id = ?1 AND run_id BETWEEN ?2 AND ?3 ORDER BY run_id",
                                  &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, name);
    int64_t passed = frame->order[frame->rows - 1].id - frame->order[0].id;
    status = (passed / FEW <= frame->rows ? walk : pick)(frame, c, statement, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- columns of settings and seconds --------------------------------------------------------- */

static fin_status set_setting(column *c, const char *settings, int64_t row, fin_error *err)
{
    const char *text = "", *before = row > 0 ? c->text[row - 1] : NULL;
    int length = 0;
    if (fini_setting_find(settings, c->name, &text, &length)) {
        c->there = true;
        fini_text_number(text, length, &c->value[row]);
    } else
        text = "";
    /* Neighbours mostly have the same text. */
    if (before && strncmp(before, text, (size_t)length) == 0 && before[length] == '\0')
        c->text[row] = before;
    else
        c->text[row] = keep_text(&c->chunks, text, (size_t)length);
    return c->text[row] ? FIN_OK : fini_fail_memory(err, CHUNK, "a column");
}

/* From the table of runs, row by row. */
static fin_status read_runs(fini_frame *frame, column *c, bool seconds, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *settings;
    fin_status status = fini_sql_prepare(
        frame->store, "SELECT settings, seconds FROM runs WHERE id = ?1", &statement, err);
    for (int64_t i = 0; i < frame->rows && !status; i++) {
        sqlite3_bind_int64(statement, 1, frame->id[i]);
        status = fini_sql_step(frame->store, statement, &row, err);
        if (!status && row && seconds)
            c->value[i] = fini_sql_double(statement, 1);
        else if (!status && row)
            status = fini_sql_text(frame->store, statement, 0, FIN_SETTINGS_TEXT,
                                   "the settings of a run", &settings, err);
        if (!status && !seconds)
            status = set_setting(c, row ? settings : "", i, err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status load_setting(fini_frame *frame, column *c, fin_error *err)
{
    fin_status status = open_column(c, frame->rows, false, err);
    return status ? status : read_runs(frame, c, false, err);
}

static fin_status load_seconds(fini_frame *frame, column *c, fin_error *err)
{
    fin_status status = open_column(c, frame->rows, true, err);
    for (int64_t i = 0; i < frame->rows && !status; i++)
        c->how[i] = FIN_HOW_CLOCK;
    c->there = true;
    return status ? status : read_runs(frame, c, true, err);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Has the first run a setting of this name? */
static fin_status first_has(fini_frame *frame, const char *name, bool *has, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *text;
    int length;
    *has = false;
    fin_status status =
        fini_sql_prepare(frame->store, "SELECT settings FROM runs WHERE id = ?1", &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, frame->id[0]);
    status = fini_sql_step(frame->store, statement, &row, err);
    const char *settings = row ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    *has = settings && fini_setting_find(settings, name, &text, &length);
    sqlite3_finalize(statement);
    return status;
}

/* A setting, if the first run has it; else seconds or a scalar; else a setting that only later runs
 * have. In this order a scalar costs no look at the settings of every run. */
static fin_status load(fini_frame *frame, column *c, fin_error *err)
{
    bool setting = false;
    fin_status status = first_has(frame, c->name, &setting, err);
    if (status)
        return status;
    if (setting)
        return load_setting(frame, c, err);
    if (strcmp(c->name, "seconds") == 0)
        return load_seconds(frame, c, err);
    status = load_scalar(frame, c, err);
    if (status || c->there)
        return status;
    fini_arena_close(&c->arena);
    c->arena = (fini_arena){0};
    return load_setting(frame, c, err);
}

/* In one look: a row at a time, a look for each would take longer than all the rest. */
static fin_status load_at_once(fini_frame *frame, column *c, fin_error *err)
{
    bool mine;
    fin_status status = fini_store_look(frame->store, &mine, err);
    if (!status)
        status = load(frame, c, err);
    fini_store_unlook(frame->store, mine);
    return status;
}

static column *make_column(fini_frame *frame, const char *name)
{
    size_t size = strlen(name) + 1;
    fin_error *failure = &frame->failure;
    column *c = fini_alloc(sizeof *c + size);
    if (!c) {
        fini_fail_memory(failure, sizeof *c + size, "a column");
        return NULL;
    }
    memset(c, 0, sizeof *c);
    memcpy(c->name, name, size);
    if (load_at_once(frame, c, failure)) {
        free_column(c);
        return NULL;
    }
    c->next = frame->columns;
    frame->columns = c;
    return c;
}

const fini_column *fini_frame_column(const fini_frame *frame, const char *name)
{
    if (frame->rows == 0)
        return NULL;
    for (const column *c = frame->columns; c; c = c->next)
        if (strcmp(c->name, name) == 0)
            return c->there ? &c->face : NULL;
    const column *c = make_column((fini_frame *)frame, name); /* what it has read is no change */
    return c && c->there ? &c->face : NULL;
}

static fin_status collect_settings(fini_frame *frame, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *settings;
    fin_status status =
        fini_sql_prepare(frame->store, "SELECT settings FROM runs WHERE id = ?1", &statement, err);
    for (int64_t i = 0; i < frame->rows && !status; i++) {
        sqlite3_bind_int64(statement, 1, frame->id[i]);
        status = fini_sql_step(frame->store, statement, &row, err);
        if (!status && row)
            status = fini_sql_text(frame->store, statement, 0, FIN_SETTINGS_TEXT,
                                   "the settings of a run", &settings, err);
        if (!status && row)
            status = fini_names_settings(&frame->names, settings, err);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status collect_names(fini_frame *frame, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *name;
    fin_status status = fini_names_add(&frame->names, "seconds", 7, err);
    if (!status)
        status = collect_settings(frame, err);
    if (!status)
        status = fini_sql_prepare(frame->store, "SELECT name FROM names", &statement, err);
    if (status)
        return status;
    while (!status && !(status = fini_sql_step(frame->store, statement, &row, err)) && row) {
        status = fini_sql_text(frame->store, statement, 0, FINI_STORE_TEXT, "a name", &name, err);
        if (!status && fini_frame_column(frame, name))
            status = fini_names_add(&frame->names, name, (int)strlen(name), err);
        if (!status)
            status = frame->failure.status;
    }
    sqlite3_finalize(statement);
    return status;
}

const char *const *fini_frame_names(const fini_frame *frame, int *count)
{
    fini_frame *inside = (fini_frame *)frame; /* as above */
    fin_error err = {FIN_OK, ""};
    bool mine = false;
    if (!frame->named) {
        fini_names_free(&inside->names);
        inside->named = fini_store_look(frame->store, &mine, &err) == FIN_OK &&
                        collect_names(inside, &err) == FIN_OK;
        fini_store_unlook(frame->store, mine);
        if (!inside->named && !inside->failure.status)
            inside->failure = err;
    }
    *count = frame->names.count;
    return (const char *const *)frame->names.name;
}

/* ---- series ---------------------------------------------------------------------------------- */

fin_status fini_frame_series(const fini_frame *frame, int64_t row, const char *name,
                             fin_series *out, fin_error *err)
{
    sqlite3_stmt *statement;
    bool found = false;
    int64_t id;
    *out = (fin_series){.name = name};
    if (row < 0 || row >= frame->rows)
        return fini_fail(err, FIN_ERR_ARGUMENT, "there is no run %lld; there are %lld",
                         (long long)row, (long long)frame->rows);
    fin_status status = fini_store_name(frame->store, name, false, &id, err);
    if (!status)
        status = fini_sql_prepare(frame->store,
                                  "SELECT dtype, shape, data FROM series WHERE run_id = ?1 AND "
                                  "name_id = ?2",
                                  &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, frame->id[row]);
    sqlite3_bind_int64(statement, 2, id);
    status = fini_sql_step(frame->store, statement, &found, err);
    if (!status && found)
        status = fini_blob_read(frame->store, statement, 0, true, out, err);
    sqlite3_finalize(statement);
    if (!status && !found)
        status =
            fini_store_unknown(frame->store, "series", name,
                               "SELECT name FROM names WHERE id IN (SELECT name_id FROM series "
                               "WHERE run_id = ?1) ORDER BY name",
                               frame->id[row], err);
    return status;
}
