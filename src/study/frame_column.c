/* Columns of a frame: settings, scalars, seconds.
 *
 * A column is read when it is first asked for, because a claim looks at two of a hundred. Scalars
 * lie in the file by name and then by run, and settings by run, so a column is one walk along
 * neighbouring rows; only a frame with few of the store's runs picks its rows one by one. */
#include "study/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* a walk passes at most FEW runs for one that it needs */

typedef struct fini_frame_column {
    struct fini_frame_column *next;
    fini_column face;
    bool there; /* false: asked for, and no row has it */
    fini_arena arena;
    double *value, *error;
    fin_how *how;
    int64_t *samples;
    const char **text;
    const char *last; /* the text that was kept last */
    fini_chunk *chunks;
    char *needle; /* see fini_setting_seek */
    char name[];  /* and behind it the needle */
} column;

static void free_column(column *c)
{
    if (!c)
        return;
    fini_arena_close(&c->arena);
    fini_chunk_free(c->chunks);
    fini_free(c);
}

void fini_frame_free_columns(fini_frame *frame)
{
    for (column *c = frame->columns, *next; c; c = next) {
        next = c->next;
        free_column(c);
    }
    frame->columns = NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const fini_place *p = a, *q = b;
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
        frame->order[i] = (fini_place){frame->id[i], i};
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
    for (int64_t i = 0; i < rows; i++) {
        c->value[i] = NAN;
        if (c->text)
            c->text[i] = "";
    }
    c->face = (fini_column){
        .name = c->name, .value = c->value, .how = c->how, .samples = c->samples, .text = c->text};
    return FIN_OK;
}

/* Puts what a statement says of a run into its row. */
typedef fin_status (*set_row)(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                              int64_t row, fin_error *err);

/* Walks along the rows of the file and those of the frame, both by number of the run. */
static fin_status walk(const fini_frame *frame, column *c, sqlite3_stmt *statement, set_row set,
                       fin_error *err)
{
    const fini_place *order = frame->order;
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
        sqlite3_bind_int64(statement, 2, frame->id[i]);
        sqlite3_bind_int64(statement, 3, frame->id[i]);
        status = fini_sql_step(frame->store, statement, &row, err);
        if (!status && row)
            status = set(frame, c, statement, i, err);
        sqlite3_reset(statement);
    }
    return status;
}

/* The statement has the number of the run first, and those from ?2 to ?3 in order. */
static fin_status fill(fini_frame *frame, column *c, const char *sql, int64_t name, set_row set,
                       fin_error *err)
{
    sqlite3_stmt *statement;
    fin_status status = sort_rows(frame, err);
    if (!status)
        status = fini_sql_prepare(frame->store, sql, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, name);
    int64_t passed = frame->order[frame->rows - 1].id - frame->order[0].id;
    status = (passed / FEW <= frame->rows ? walk : pick)(frame, c, statement, set, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- three kinds ----------------------------------------------------------------------------- */

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

static fin_status set_setting(const fini_frame *frame, column *c, sqlite3_stmt *statement,
                              int64_t row, fin_error *err)
{
    const char *settings, *text;
    int length;
    fin_status status = fini_sql_text(frame->store, statement, 1, FIN_SETTINGS_TEXT,
                                      "the settings of a run", &settings, err);
    if (status || !fini_setting_seek(settings, c->needle, &text, &length))
        return status;
    c->there = true;
    fini_text_number(text, length, &c->value[row]);
    /* Neighbours mostly have the same text. */
    if (!c->last || strncmp(c->last, text, (size_t)length) != 0 || c->last[length] != '\0')
        c->last = fini_chunk_keep(&c->chunks, text, (size_t)length);
    if (!c->last)
        return fini_fail_memory(err, (size_t)length, "a column");
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
    fin_status status = fini_store_name(frame->store, c->name, false, &name, err);
    if (status || name == 0)
        return status;
    status = open_column(c, frame->rows, true, err);
    if (status)
        return status;
    return fill(frame, c,
                "SELECT run_id, value, error, how, samples FROM scalars WHERE name_id = ?1 AND "
                "run_id BETWEEN ?2 AND ?3 ORDER BY run_id",
                name, set_scalar, err);
}

static fin_status load_setting(fini_frame *frame, column *c, fin_error *err)
{
    fin_status status = open_column(c, frame->rows, false, err);
    if (status)
        return status;
    return fill(frame, c,
                "SELECT id, settings FROM runs WHERE ?1 = 0 AND id BETWEEN ?2 AND ?3 ORDER BY id",
                0, set_setting, err);
}

static fin_status load_seconds(fini_frame *frame, column *c, fin_error *err)
{
    fin_status status = open_column(c, frame->rows, true, err);
    for (int64_t i = 0; i < frame->rows && !status; i++)
        c->how[i] = FIN_HOW_CLOCK;
    c->there = true;
    if (status)
        return status;
    return fill(frame, c,
                "SELECT id, seconds FROM runs WHERE ?1 = 0 AND id BETWEEN ?2 AND ?3 ORDER BY id", 0,
                set_seconds, err);
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
    column *c = fini_alloc(sizeof *c + 2 * size + 3);
    if (!c) {
        fini_fail_memory(failure, sizeof *c + 2 * size, "a column");
        return NULL;
    }
    memset(c, 0, sizeof *c);
    memcpy(c->name, name, size);
    c->needle = c->name + size;
    fini_setting_needle(name, c->needle);
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
