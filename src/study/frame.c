/* Runs of a study as columns: the rows, and the names of the columns.
 *
 * A frame fixes which runs are its rows; a column is read when it is first asked for
 * (frame_column.c). */
#include "study/frame.h"

#include <string.h>

enum { CHUNK = 1 << 16 };

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

const char *fini_chunk_keep(fini_chunk **chunks, const char *text, size_t length)
{
    fini_chunk *top = *chunks;
    if (!top || top->size - top->used <= length) {
        size_t size = length + 1 > CHUNK ? length + 1 : CHUNK;
        top = fini_alloc(sizeof *top + size);
        if (!top)
            return NULL;
        *top = (fini_chunk){.next = *chunks, .size = size};
        *chunks = top;
    }
    char *copy = top->bytes + top->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    top->used += length + 1;
    return copy;
}

void fini_chunk_free(fini_chunk *chunks)
{
    for (fini_chunk *next; chunks; chunks = next) {
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
        before = fini_chunk_keep(&frame->blocks, block, strlen(block));
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
    fin_status status = fini_cursor_open(frame->store, query, &cursor, err);
    if (status)
        return status;
    layout_rows(&frame->arena, frame, fini_cursor_count(cursor));
    status = fini_arena_open(&frame->arena, "the runs of a study", err);
    if (!status)
        layout_rows(&frame->arena, frame, fini_cursor_count(cursor));
    while (!status && fini_cursor_next(cursor)) {
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

void fini_frame_destroy(fini_frame *frame)
{
    if (!frame)
        return;
    fini_frame_free_columns(frame);
    fini_name_list_free(&frame->names);
    fini_chunk_free(frame->blocks);
    fini_free(frame->order);
    fini_arena_close(&frame->arena);
    fini_free(frame);
}

/* ---- names ----------------------------------------------------------------------------------- */

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
            status = fini_name_list_settings(&frame->names, settings, err);
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
    fin_status status = fini_name_list_add(&frame->names, "seconds", 7, err);
    if (!status)
        status = collect_settings(frame, err);
    if (!status)
        status = fini_sql_prepare(frame->store, "SELECT name FROM names", &statement, err);
    if (status)
        return status;
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
    fini_frame *inside = (fini_frame *)frame; /* as above */
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
