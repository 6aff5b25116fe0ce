/* The runs that a query selects, one after the other: in the order of a study's plan, or,
 * without a study, all runs by hash.
 *
 * Which they are is decided when the cursor is opened (store_select.c); what else is in a row is
 * read only if somebody asks.
 *
 * A cursor has statements of its own, so that whoever is called with a run may ask the store
 * about other things. Settings of a run that is only planned are in no table: the study is read
 * again from its text for them. */
#include "study/store_cursor.h"

#include "data/data.h"

#include <math.h>
#include <string.h>

static const char one_run[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command, reason, version, kernel FROM runs "
    "WHERE id = ?1";

int64_t fini_cursor_count(const fini_cursor *cursor)
{
    return cursor->count;
}

int64_t fini_cursor_id(const fini_cursor *cursor)
{
    return cursor->id;
}

int64_t fini_cursor_position(const fini_cursor *cursor)
{
    return cursor->position;
}

fin_state fini_cursor_state(const fini_cursor *cursor)
{
    return cursor->state;
}

const char *fini_cursor_hash(const fini_cursor *cursor)
{
    return cursor->hash;
}

const char *fini_cursor_block(const fini_cursor *cursor)
{
    return cursor->block;
}

/* ---- what a row of a statement says ---------------------------------------------------------- */

/* Most of a scan is this, and no text of 32 digits needs to be looked at twice. */
fin_status fini_cursor_read_hash(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err)
{
    const char *text = (const char *)sqlite3_column_text(row, HASH);
    if (!text || sqlite3_column_bytes(row, HASH) != FIN_HASH_TEXT - 1 ||
        !fini_hash_key(text, cursor->key))
        return fini_store_damaged(cursor->store, err, "a run has a hash that is none");
    cursor->hash = text;
    return FIN_OK;
}

/* State, settings and command of a run that is there. */
fin_status fini_cursor_read_run(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err)
{
    fin_store *store = cursor->store;
    int64_t state;
    cursor->at = row;
    cursor->id = sqlite3_column_int64(row, ID);
    fin_status status = fini_sql_integer(store, row, STATE, FIN_STATE_DONE, FIN_STATE_FAILED,
                                         "the state of a run", &state, err);
    if (!status)
        status = fini_sql_text(store, row, SETTINGS, FIN_SETTINGS_TEXT, "the settings of a run",
                               &cursor->settings, err);
    if (!status)
        status = fini_sql_text(store, row, COMMAND, FINI_SHOWN, "the command of a run",
                               &cursor->command, err);
    cursor->state = (fin_state)state;
    return status;
}

/* The settings of a run that no row of `runs` has: from the study, if it still has this run. */
fin_status fini_cursor_read_planned(fini_cursor *cursor, fin_error *err)
{
    fin_status status = FIN_OK;
    cursor->id = 0;
    cursor->state = FIN_STATE_PLANNED;
    cursor->settings = cursor->command = "";
    if (!cursor->study_tried) {
        cursor->study_tried = true;
        status = fini_store_study(cursor->store, cursor->query->study, &cursor->study, err);
    }
    if (!status && cursor->study && cursor->position < fin_study_run_count(cursor->study)) {
        status = fin_study_get_run(cursor->study, cursor->position, &cursor->plan, err);
        if (!status && strcmp(cursor->plan.hash, cursor->hash) == 0) {
            cursor->settings = cursor->plan.settings;
            cursor->command = cursor->plan.command;
        }
    }
    return status == FIN_ERR_MEMORY ? status : FIN_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static fin_status open_where(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    fin_status status = FIN_OK;
    if (query->where_count <= 0)
        return FIN_OK;
    if (query->where_count > FINI_WHERE_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%d conditions on runs; at most %d are possible",
                         query->where_count, FINI_WHERE_MOST);
    cursor->where = fini_alloc_array(query->where_count, sizeof *cursor->where);
    if (!cursor->where)
        return fini_fail_memory(err, sizeof *cursor->where, "conditions on runs");
    while (!status && cursor->where_count < query->where_count) {
        fini_condition *where = &cursor->where[cursor->where_count];
        status = fini_condition_parse(query->where[cursor->where_count], where, err);
        cursor->where_count += !status;
        if (!status)
            status = fini_store_name(cursor->store, where->name, false, &where->name_id, err);
    }
    return status;
}

static fin_status open_has(fini_cursor *cursor, fin_error *err)
{
    const char *has = cursor->query->has;
    if (!has)
        return FIN_OK;
    fin_status status = fini_store_name(cursor->store, has, false, &cursor->has, err);
    if (!status && cursor->has == 0)
        status = fini_store_unknown(cursor->store, "scalar", has,
                                    "SELECT name FROM names WHERE id IN (SELECT DISTINCT name_id "
                                    "FROM scalars) AND ?1 = 0 ORDER BY name",
                                    0, err);
    return status;
}

static fin_status check_block(fini_cursor *cursor, int64_t study, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    fin_status status = fini_sql_prepare(
        cursor->store, "SELECT 1 FROM plan WHERE study_id = ?1 AND block = ?2 LIMIT 1", &statement,
        err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, study);
    fini_sql_bind_text(statement, 2, cursor->query->block);
    status = fini_sql_step(cursor->store, statement, &row, err);
    sqlite3_finalize(statement);
    if (status || row)
        return status;
    return fini_store_unknown(cursor->store, "block", cursor->query->block,
                              "SELECT DISTINCT block FROM plan WHERE study_id = ?1", study, err);
}

static fin_status open_runs(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    fin_status status = FIN_OK;
    if (query->block && !query->study)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a block is a part of a study: name the study of block '%.60s' too",
                         query->block);
    if (query->study)
        status = fini_store_find_study(cursor->store, query->study, &cursor->study_id, err);
    if (!status && query->block)
        status = check_block(cursor, cursor->study_id, err);
    if (!status)
        status = fini_cursor_select(cursor, err);
    return status ? status : fini_sql_prepare(cursor->store, one_run, &cursor->one, err);
}

fin_status fini_cursor_open(fin_store *store, const fin_query *query, fini_cursor **out,
                            fin_error *err)
{
    static const fin_query all;
    *out = NULL;
    fini_cursor *cursor = fini_alloc(sizeof *cursor);
    if (!cursor)
        return fini_fail_memory(err, sizeof *cursor, "a query");
    memset(cursor, 0, sizeof *cursor);
    cursor->store = store;
    cursor->query = query ? query : &all;
    fin_status status = fini_store_look(store, &cursor->mine, err);
    if (!status)
        status = open_where(cursor, err);
    if (!status)
        status = open_has(cursor, err);
    if (!status)
        status = open_runs(cursor, err);
    if (status) {
        fini_cursor_close(cursor);
        return status;
    }
    *out = cursor;
    return FIN_OK;
}

void fini_cursor_close(fini_cursor *cursor)
{
    if (!cursor)
        return;
    sqlite3_finalize(cursor->one);
    sqlite3_finalize(cursor->scalar);
    for (int i = 0; i < cursor->where_count; i++)
        fini_condition_free(&cursor->where[i]);
    fini_free(cursor->where);
    fini_scan_free(&cursor->scan);
    fini_free(cursor->picks);
    fini_name_list_free(&cursor->blocks);
    fin_study_destroy(cursor->study);
    fini_store_unlook(cursor->store, cursor->mine);
    fini_free(cursor);
}

/* ---- the next one ---------------------------------------------------------------------------- */

bool fini_cursor_next(fini_cursor *cursor)
{
    if (cursor->next >= cursor->count)
        return false;
    const fini_pick *pick = &cursor->picks[cursor->next++];
    cursor->id = pick->id;
    cursor->position = pick->position;
    cursor->block = pick->block;
    cursor->state = pick->state;
    cursor->at = NULL;
    fini_key_text(pick->key, cursor->text);
    cursor->hash = cursor->text;
    return true;
}

void fini_cursor_rewind(fini_cursor *cursor)
{
    cursor->next = 0;
}

static fin_status complete(fini_cursor *cursor, fin_error *err)
{
    bool row = false;
    if (cursor->id == 0)
        return fini_cursor_read_planned(cursor, err);
    sqlite3_reset(cursor->one);
    sqlite3_bind_int64(cursor->one, 1, cursor->id);
    fin_status status = fini_sql_step(cursor->store, cursor->one, &row, err);
    if (!status && !row)
        status = fini_store_damaged(cursor->store, err, "a run is gone");
    return status ? status : fini_cursor_read_run(cursor, cursor->one, err);
}

fin_status fini_cursor_row(fini_cursor *cursor, fin_run_row *row, fin_error *err)
{
    fin_status status = complete(cursor, err);
    *row = (fin_run_row){.position = cursor->position,
                         .block = cursor->block,
                         .command = cursor->command,
                         .hash = cursor->hash,
                         .settings = cursor->settings,
                         .state = cursor->state,
                         .reason = "",
                         .version = "",
                         .kernel = "",
                         .seconds = NAN};
    if (status || cursor->id == 0)
        return status;
    row->seconds = fini_sql_double(cursor->at, SECONDS);
    status = fini_sql_text(cursor->store, cursor->at, REASON, FINI_STORE_TEXT,
                           "the reason of a failure", &row->reason, err);
    if (!status)
        status = fini_sql_text(cursor->store, cursor->at, VERSION, FINI_STORE_TEXT, "a version",
                               &row->version, err);
    if (!status)
        status = fini_sql_text(cursor->store, cursor->at, KERNEL, FINI_STORE_TEXT,
                               "the name of a kernel", &row->kernel, err);
    return status;
}
