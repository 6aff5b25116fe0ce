/* Runs of a study as columns.
 *
 * A frame fixes which runs are its rows. A column is read when it is first asked for, because a claim
 * looks at two of a hundred. Scalars lie in the file by name and then by run, and settings by run, so
 * a column is one walk along neighbouring rows; only a frame with few of the store's runs picks its
 * rows one by one. */
#include "store/frame.h"

#include "store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 1 << 16,
    FEW = 8 /* a walk passes at most FEW runs for one that it needs */
};

/* Memory for texts. */
typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    char bytes[];
} chunk;

typedef enum source { ANY, SETTING, SCALAR, SECONDS, COMMAND } source;

typedef struct column {
    struct column *next;
    fini_column face;
    source kind;
    bool there; /* false: asked for, and no row has it */
    fini_arena arena;
    double *value, *error;
    fin_how *how;
    int64_t *samples;
    bool *has;
    const char **text;
    const char *last; /* the text that was kept last */
    chunk *chunks;
    char name[];
} column;

typedef struct member {
    int64_t id, position;
    const char *block;
    fin_state state;
    char hash[FIN_HASH_TEXT];
} member;

typedef struct place {
    int64_t id, row;
} place;

struct fini_frame {
    fin_store *store;
    int64_t rows, room, missing, failed;
    member *row;  /* [rows] */
    place *order; /* [rows] by id; NULL until needed */
    chunk *blocks;
    column *columns;
    fini_name_list names;
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

const char *fini_frame_hash(const fini_frame *frame, int64_t i)
{
    return i >= 0 && i < frame->rows ? frame->row[i].hash : NULL;
}

const char *fini_frame_block(const fini_frame *frame, int64_t i)
{
    return i >= 0 && i < frame->rows ? frame->row[i].block : NULL;
}

int64_t fini_frame_position(const fini_frame *frame, int64_t i)
{
    return frame->row[i].position;
}

fin_state fini_frame_state(const fini_frame *frame, int64_t i)
{
    return frame->row[i].state;
}

int64_t fini_frame_id(const fini_frame *frame, int64_t i)
{
    return frame->row[i].id;
}

fin_status fini_frame_status(const fini_frame *frame, fin_error *err)
{
    if (frame->failure.status && err)
        *err = frame->failure;
    return frame->failure.status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A terminated copy; NULL: no memory. Neighbours mostly have the same text as the last one. */
static const char *keep(chunk **chunks, const char *last, const char *text)
{
    size_t length = strlen(text);
    chunk *top = *chunks;
    if (last && strcmp(last, text) == 0)
        return last;
    if (!top || top->size - top->used <= length) {
        size_t size = length + 1 > CHUNK ? length + 1 : CHUNK;
        top = fini_alloc(sizeof *top + size);
        if (!top)
            return NULL;
        *top = (chunk){.next = *chunks, .size = size};
        *chunks = top;
    }
    char *copy = memcpy(top->bytes + top->used, text, length + 1);
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

static fin_status add_row(fini_frame *frame, const fini_cursor *cursor, fin_error *err)
{
    if (frame->rows == frame->room) {
        int64_t room = frame->room ? frame->room * 2 : 256;
        member *larger = fini_alloc_array(room, sizeof *larger);
        if (!larger)
            return fini_fail_memory(err, (size_t)room * sizeof *larger, "the runs of a study");
        if (frame->rows)
            memcpy(larger, frame->row, (size_t)frame->rows * sizeof *larger);
        fini_free(frame->row);
        frame->row = larger;
        frame->room = room;
    }
    const char *last = frame->rows > 0 ? frame->row[frame->rows - 1].block : NULL;
    member *r = &frame->row[frame->rows];
    *r = (member){.id = cursor->id,
                  .position = cursor->run.position,
                  .block = keep(&frame->blocks, last, cursor->run.block),
                  .state = cursor->run.state};
    if (!r->block)
        return fini_fail_memory(err, CHUNK, "the runs of a study");
    memcpy(r->hash, cursor->run.hash, FIN_HASH_TEXT);
    frame->rows++;
    return FIN_OK;
}

static fin_status read_rows(fini_frame *frame, const fin_query *query, bool all, fin_error *err)
{
    fini_cursor cursor;
    bool more = true;
    fin_status status = fini_cursor_open(frame->store, query, FINI_CURSOR_PLACES, &cursor, err);
    while (!status && !(status = fini_cursor_next(&cursor, &more, err)) && more) {
        frame->missing += cursor.run.state == FIN_STATE_PLANNED;
        frame->failed += cursor.run.state == FIN_STATE_FAILED;
        if (all || cursor.run.state == FIN_STATE_DONE)
            status = add_row(frame, &cursor, err);
    }
    fini_cursor_close(&cursor);
    return status;
}

fin_status fini_frame_open(fin_store *store, const fin_query *query, bool all, fini_frame **out,
                           fin_error *err)
{
    *out = NULL;
    FINI_MAKE(err, "the runs of a study", fini_frame, frame);
    frame->store = store;
    fin_status status = read_rows(frame, query, all, err);
    FINI_HAND_OVER(out, frame, status, fini_frame_destroy);
}

fin_status fini_frame_read(fin_store *store, const char *study, const char *block,
                           const char *const *where, int where_count, fini_frame **out,
                           fin_error *err)
{
    fin_query query = {.study = study, .block = block, .where = where, .where_count = where_count};
    return fini_frame_open(store, &query, false, out, err);
}

static void free_column(column *c)
{
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
    fini_name_list_free(&frame->names);
    free_chunks(frame->blocks);
    fini_free_all(frame->order, frame->row, frame);
}

/* ---- reading a column ------------------------------------------------------------------------ */

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
    FINI_ROOM(err, "a column", frame->order, frame->rows, 1);
    bool sorted = true;
    for (int64_t i = 0; i < frame->rows; i++) {
        frame->order[i] = (place){frame->row[i].id, i};
        sorted = sorted && (i == 0 || frame->row[i - 1].id <= frame->row[i].id);
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
    c->has = fini_take(arena, rows, sizeof *c->has);
    c->text = scalar ? NULL : fini_take(arena, rows, sizeof *c->text);
}

static fin_status open_column(column *c, int64_t rows, bool scalar, fin_error *err)
{
    FINI_LAY_OUT(err, &c->arena, "a column", layout_column(&c->arena, c, rows, scalar));
    for (int64_t i = 0; i < rows; i++) {
        c->value[i] = NAN;
        c->has[i] = false;
        if (c->text)
            c->text[i] = "";
    }
    c->face = (fini_column){.name = c->name,
                            .value = c->value,
                            .how = c->how,
                            .samples = c->samples,
                            .has = c->has,
                            .text = c->text};
    return FIN_OK;
}

/* Puts what a statement says of a run into its row. */
typedef fin_status (*set_row)(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                              int64_t row, fin_error *err);

/* Walks along the rows of the file and those of the frame, both by number of the run. */
static fin_status walk(const fini_frame *frame, column *c, sqlite3_stmt *statement, set_row set,
                       fin_error *err)
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
            status = set(frame, c, statement, order[k].row, err);
    }
    return status;
}

static fin_status pick(const fini_frame *frame, column *c, sqlite3_stmt *statement, set_row set,
                       fin_error *err)
{
    bool row = false;
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < frame->rows && !status; i++) {
        sqlite3_bind_int64(statement, 2, frame->row[i].id);
        sqlite3_bind_int64(statement, 3, frame->row[i].id);
        status = fini_sql_step(frame->store, statement, &row, err);
        if (!status && row)
            status = set(frame, c, statement, i, err);
        sqlite3_reset(statement);
    }
    return status;
}

/* The statement has the number of the run first, and those from ?2 to ?3 in order. */
static fin_status fill(fini_frame *frame, column *c, const char *sql, int64_t name,
                       const char *path, set_row set, fin_error *err)
{
    sqlite3_stmt *statement;
    FINI_TRY(sort_rows(frame, err));
    FINI_TRY(fini_sql_prepare(frame->store, sql, &statement, err));
    if (path)
        fini_sql_bind_text(statement, 1, path);
    else
        sqlite3_bind_int64(statement, 1, name);
    int64_t passed = frame->order[frame->rows - 1].id - frame->order[0].id;
    fin_status status = (passed / FEW <= frame->rows ? walk : pick)(frame, c, statement, set, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- three kinds ----------------------------------------------------------------------------- */

static fin_status set_scalar(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                             int64_t row, fin_error *err)
{
    int64_t how;
    FINI_TRY(fini_sql_integer(frame->store, statement, 3, 0, FIN_HOW_COUNT - 1,
                              "how a scalar came about", &how, err));
    FINI_TRY(fini_sql_integer(frame->store, statement, 4, 0, INT64_MAX, "a number of samples",
                              &c->samples[row], err));
    c->value[row] = fini_sql_double(statement, 1);
    c->error[row] = fini_sql_double(statement, 2);
    c->how[row] = (fin_how)how;
    if (c->error[row] != 0)
        c->face.error = c->error;
    c->there = c->has[row] = true;
    return FIN_OK;
}

static fin_status set_setting(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                              int64_t row, fin_error *err)
{
    const char *text;
    if (sqlite3_column_type(statement, 1) == SQLITE_NULL)
        return FIN_OK;
    FINI_TRY(fini_sql_text(frame->store, statement, 1, FIN_SETTINGS_TEXT, "a setting", &text, err));
    c->there = c->has[row] = true;
    fini_text_number(text, (int)strlen(text), &c->value[row]);
    c->last = keep(&c->chunks, c->last, text);
    if (!c->last)
        return fini_fail_memory(err, strlen(text), "a column");
    c->text[row] = c->last;
    return FIN_OK;
}

static fin_status set_seconds(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                              int64_t row, fin_error *err)
{
    (void)frame;
    (void)err;
    c->value[row] = fini_sql_double(statement, 1);
    return FIN_OK;
}

static fin_status load_scalar(fini_frame *frame, column *c, fin_error *err)
{
    int64_t name;
    FINI_TRY(fini_store_name(frame->store, c->name, false, &name, err));
    if (name == 0)
        return FIN_OK;
    FINI_TRY(open_column(c, frame->rows, true, err));
    return fill(frame, c,
                "SELECT run_id, value, error, how, samples FROM scalars WHERE name_id = ?1 AND "
                "run_id BETWEEN ?2 AND ?3 ORDER BY run_id",
                name, NULL, set_scalar, err);
}

static fin_status load_setting(fini_frame *frame, column *c, fin_error *err)
{
    FINI_FREED char *path = fini_alloc(strlen(c->name) + 16);
    if (!path)
        return fini_fail_memory(err, strlen(c->name), "a column");
    fini_setting_path(c->name, path);
    FINI_TRY(open_column(c, frame->rows, false, err));
    return fill(frame, c,
                "SELECT s.id, coalesce(iif(json_type(s.own, ?1) = 'text', s.own ->> ?1, "
                "s.own -> ?1), iif(json_type(c.text, ?1) = 'text', c.text ->> ?1, "
                "c.text -> ?1)) FROM settings AS s CROSS JOIN common AS c "
                "ON c.id = s.common_id WHERE s.id BETWEEN ?2 AND ?3 ORDER BY s.id",
                0, path, set_setting, err);
}

static fin_status load_command(fini_frame *frame, column *c, fin_error *err)
{
    FINI_TRY(open_column(c, frame->rows, false, err));
    return fill(frame, c,
                "SELECT s.id, command FROM settings AS s CROSS JOIN common AS c ON "
                "c.id = common_id WHERE ?1 = 0 AND s.id BETWEEN ?2 AND ?3 ORDER BY s.id",
                0, NULL, set_setting, err);
}

static fin_status load_seconds(fini_frame *frame, column *c, fin_error *err)
{
    FINI_TRY(open_column(c, frame->rows, true, err));
    for (int64_t i = 0; i < frame->rows; i++)
        c->how[i] = FIN_HOW_CLOCK;
    c->there = true;
    return fill(frame, c,
                "SELECT id, seconds FROM runs WHERE ?1 = 0 AND id BETWEEN ?2 AND ?3 ORDER BY id", 0,
                NULL, set_seconds, err);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Has the first run a setting of this name? */
static fin_status first_has(fini_frame *frame, const char *name, bool *has, fin_error *err)
{
    sqlite3_stmt *statement = NULL;
    char *path = fini_alloc(strlen(name) + 16);
    *has = false;
    if (!path)
        return fini_fail_memory(err, strlen(name), "a column");
    fini_setting_path(name, path);
    fin_status status =
        fini_sql_prepare(frame->store,
                         "SELECT 1 FROM settings AS s JOIN common AS c ON c.id = s.common_id "
                         "WHERE s.id = ?1 AND json_type(c.text, ?2) IS NOT NULL",
                         &statement, err);
    if (!status) {
        sqlite3_bind_int64(statement, 1, frame->row[0].id);
        fini_sql_bind_text(statement, 2, path);
        status = fini_sql_step(frame->store, statement, has, err);
    }
    sqlite3_finalize(statement);
    fini_free(path);
    return status;
}

/* A setting, if the first run has it; else seconds or a scalar; else a setting that only later runs
 * have. In this order a scalar costs no look at the settings of every run. */
static fin_status load(fini_frame *frame, column *c, fin_error *err)
{
    bool setting = c->kind == SETTING;
    FINI_TRY(c->kind == ANY ? first_has(frame, c->name, &setting, err) : FIN_OK);
    if (setting)
        return load_setting(frame, c, err);
    if (c->kind == COMMAND)
        return load_command(frame, c, err);
    if (c->kind == SECONDS || (c->kind == ANY && strcmp(c->name, "seconds") == 0))
        return load_seconds(frame, c, err);
    FINI_TRY(load_scalar(frame, c, err));
    if (c->there || c->kind == SCALAR)
        return FIN_OK;
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

static column *make_column(fini_frame *frame, const char *name, source kind)
{
    size_t size = strlen(name) + 1;
    column *c = fini_alloc(sizeof *c + size);
    if (!c) {
        fini_fail_memory(&frame->failure, sizeof *c + size, "a column");
        return NULL;
    }
    memset(c, 0, sizeof *c);
    memcpy(c->name, name, size);
    c->kind = kind;
    if (load_at_once(frame, c, &frame->failure)) {
        free_column(c);
        return NULL;
    }
    c->next = frame->columns;
    frame->columns = c;
    return c;
}

static const fini_column *get(const fini_frame *frame, const char *name, source kind)
{
    if (frame->rows == 0)
        return NULL;
    const column *c = frame->columns;
    while (c && !(c->kind == kind && strcmp(c->name, name) == 0))
        c = c->next;
    if (!c)
        c = make_column((fini_frame *)frame, name, kind); /* what it has read is no change */
    return c && c->there ? &c->face : NULL;
}

const fini_column *fini_frame_column(const fini_frame *frame, const char *name)
{
    return get(frame, name, ANY);
}

const fini_column *fini_frame_setting(const fini_frame *frame, const char *name)
{
    return get(frame, name, SETTING);
}

const fini_column *fini_frame_scalar(const fini_frame *frame, const char *name)
{
    return get(frame, name, SCALAR);
}

const fini_column *fini_frame_seconds(const fini_frame *frame)
{
    return get(frame, "seconds", SECONDS);
}

const fini_column *fini_frame_command(const fini_frame *frame)
{
    return get(frame, "command", COMMAND);
}

/* ---- names ----------------------------------------------------------------------------------- */

static fin_status collect_names(fini_frame *frame, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *name;
    fin_status status = fini_sql_prepare(frame->store,
                                         "SELECT 'seconds' UNION SELECT name FROM names UNION "
                                         "SELECT key FROM common AS c, json_each(c.text, "
                                         "'$.settings')",
                                         &statement, err);
    while (!status && !(status = fini_sql_step(frame->store, statement, &row, err)) && row) {
        status = fini_sql_text(frame->store, statement, 0, FINI_STORE_TEXT, "a name", &name, err);
        if (!status && fini_frame_column(frame, name))
            status = fini_name_list_add(&frame->names, name, (int)strlen(name), err);
        if (!status)
            status = frame->failure.status;
    }
    sqlite3_finalize(statement);
    return status;
}

const char *const *fini_frame_names(const fini_frame *frame, int *count)
{
    fini_frame *inside = (fini_frame *)frame; /* what it has read is no change */
    fin_error err = {FIN_OK, ""};
    bool mine = false;
    if (!frame->named) {
        fini_name_list_free(&inside->names);
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
    FINI_TRY(fini_store_name(frame->store, name, false, &id, err));
    FINI_TRY(fini_sql_prepare(frame->store,
                              "SELECT dtype, shape, data FROM series WHERE run_id = ?1 AND "
                              "name_id = ?2",
                              &statement, err));
    sqlite3_bind_int64(statement, 1, frame->row[row].id);
    sqlite3_bind_int64(statement, 2, id);
    fin_status status = fini_sql_step(frame->store, statement, &found, err);
    if (!status && found)
        status = fini_blob_read(frame->store, statement, 0, true, out, err);
    sqlite3_finalize(statement);
    if (!status && !found)
        status =
            fini_store_unknown(frame->store, "series", name,
                               "SELECT name FROM names WHERE id IN (SELECT name_id FROM series "
                               "WHERE run_id = ?1) ORDER BY name",
                               frame->row[row].id, err);
    return status;
}
