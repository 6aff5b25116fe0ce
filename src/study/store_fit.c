/* Which runs does a query want?
 *
 * A run is looked at when it is at hand (fini_cursor_fits), or all of them are, in the order in
 * which they lie in the file (fini_cursor_scan); scalars that a condition asks about are then
 * read beside them, in the same order. */
#include "study/store_cursor.h"

#include <math.h>
#include <string.h>

/* A column that nobody looks at costs time too. */
static const char all_runs[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command FROM runs ORDER BY id";
static const char all_settings[] = "SELECT -1, '', hash, id, state, settings FROM runs ORDER BY id";
static const char all_hashes[] = "SELECT -1, '', hash, id FROM runs ORDER BY hash";
static const char all_failed[] = "SELECT id FROM runs WHERE state = 2 ORDER BY id";
static const char one_scalar[] = "SELECT value FROM scalars WHERE name_id = ?1 AND run_id = ?2";
static const char all_scalars[] =
    "SELECT run_id, value FROM scalars WHERE name_id = ?1 AND run_id >= ?2 ORDER BY run_id";

/* ---- does it fit? ---------------------------------------------------------------------------- */

static fin_status step_walk(fini_cursor *cursor, fini_walk *w, fin_error *err)
{
    fin_status status = fini_sql_step(cursor->store, w->statement, &w->there, err);
    if (!status && w->there) {
        w->id = sqlite3_column_int64(w->statement, 0);
        w->value = fini_sql_double(w->statement, 1);
    }
    return status;
}

/* While all runs are read, their scalars are read beside them, in the same order. */
static fin_status walk_scalar(fini_cursor *cursor, fini_walk *w, int64_t name, bool *found,
                              double *value, fin_error *err)
{
    fin_status status = FIN_OK;
    if (!w->statement) {
        status = fini_sql_prepare(cursor->store, all_scalars, &w->statement, err);
        if (status)
            return status;
        sqlite3_bind_int64(w->statement, 1, name);
        sqlite3_bind_int64(w->statement, 2, cursor->id);
        status = step_walk(cursor, w, err);
    }
    while (!status && w->there && w->id < cursor->id)
        status = step_walk(cursor, w, err);
    *found = !status && w->there && w->id == cursor->id;
    *value = w->value;
    return status;
}

static fin_status get_scalar(fini_cursor *cursor, int i, int64_t name, bool *found, double *value,
                             fin_error *err)
{
    *found = false;
    if (cursor->id == 0 || name == 0)
        return FIN_OK;
    if (cursor->walks)
        return walk_scalar(cursor, &cursor->walk[i], name, found, value, err);
    fin_status status = FIN_OK;
    if (!cursor->scalar)
        status = fini_sql_prepare(cursor->store, one_scalar, &cursor->scalar, err);
    if (status)
        return status;
    sqlite3_bind_int64(cursor->scalar, 1, name);
    sqlite3_bind_int64(cursor->scalar, 2, cursor->id);
    status = fini_sql_step(cursor->store, cursor->scalar, found, err);
    if (!status && *found)
        *value = fini_sql_double(cursor->scalar, 0);
    sqlite3_reset(cursor->scalar);
    return status;
}

static bool is_seconds(const fini_condition *where)
{
    return strcmp(where->name, "seconds") == 0;
}

static fin_status meets(fini_cursor *cursor, int i, fini_scan_run *run, fin_error *err)
{
    const fini_condition *where = &cursor->where[i];
    const char *text = "";
    int length = 0;
    double number = NAN;
    fin_status status = FIN_OK;
    bool found = fini_setting_seek(cursor->settings, where->needle, &text, &length);
    if (found)
        run->words |= (uint32_t)!fini_text_number(text, length, &number) << i;
    else {
        if (is_seconds(where) && cursor->id) {
            found = true;
            number = fini_sql_double(cursor->at, SECONDS);
        } else
            status = get_scalar(cursor, i, where->name_id, &found, &number, err);
        text = isnan(number) ? "nan" : ""; /* a number has no text to compare */
        length = (int)strlen(text);
    }
    run->seen |= (uint32_t)found << i;
    run->fit = run->fit && found && fini_condition_holds(where, text, length, number);
    return status;
}

/* Every condition is looked at, even where another one has failed: else a mistyped name would pass
 * for one that nothing meets. */
fin_status fini_cursor_fits(fini_cursor *cursor, fini_scan_run *run, fin_error *err)
{
    const fin_query *query = cursor->query;
    fin_status status = FIN_OK;
    double value;
    *run = (fini_scan_run){
        .key = {cursor->key[0], cursor->key[1]}, .id = cursor->id, .state = (uint8_t)cursor->state};
    run->examined =
        (query->state == 0 || (query->state == -1 && cursor->state == FIN_STATE_PLANNED) ||
         query->state == (int)cursor->state) &&
        (!query->command || strcmp(query->command, cursor->command) == 0);
    run->fit = run->examined;
    for (int i = 0; i < cursor->where_count && run->examined && !status; i++)
        status = meets(cursor, i, run, err);
    if (!status && run->fit && cursor->has)
        status = get_scalar(cursor, FINI_WHERE_MOST, cursor->has, &run->fit, &value, err);
    return status;
}

/* ---- reading all runs ------------------------------------------------------------------------ */

/* What the conditions need, and no more: whoever is given the run has all of it checked first. */
static fin_status glance(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err)
{
    int state = sqlite3_column_int(row, STATE);
    cursor->at = row;
    cursor->id = sqlite3_column_int64(row, ID);
    cursor->state = (fin_state)state;
    cursor->settings =
        cursor->where_count > 0 ? (const char *)sqlite3_column_text(row, SETTINGS) : "";
    cursor->command = cursor->query->command ? (const char *)sqlite3_column_text(row, COMMAND) : "";
    if (state != FIN_STATE_DONE && state != FIN_STATE_FAILED)
        return fini_store_damaged(cursor->store, err, "the state of a run is %d", state);
    if (!cursor->settings || !cursor->command)
        return fini_store_damaged(cursor->store, err, "a run has no settings");
    return FIN_OK;
}

static fin_status scan_all(fini_cursor *cursor, sqlite3_stmt *statement, fin_error *err)
{
    bool row = false;
    fin_status status = FIN_OK;
    fini_scan_run run;
    cursor->walks = true;
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        status = fini_cursor_read_hash(cursor, statement, err);
        if (!status)
            status = glance(cursor, statement, err);
        if (!status)
            status = fini_cursor_fits(cursor, &run, err);
        if (!status)
            status = fini_scan_add(&cursor->scan, &run, err);
    }
    cursor->walks = false;
    return status;
}

/* Without conditions the hashes will do, which have an index of their own: a third of the time. */
static fin_status scan_hashes(fini_cursor *cursor, sqlite3_stmt *statement, fin_error *err)
{
    bool row = false;
    fin_status status = FIN_OK;
    int wanted = cursor->query->state;
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        status = fini_cursor_read_hash(cursor, statement, err);
        fini_scan_run run = {.key = {cursor->key[0], cursor->key[1]},
                             .id = sqlite3_column_int64(statement, ID),
                             .state = FIN_STATE_DONE,
                             .fit = wanted == 0 || wanted == FIN_STATE_DONE};
        if (!status)
            status = fini_scan_add(&cursor->scan, &run, err);
    }
    return status;
}

/* Corrects the state of those that failed. */
static fin_status scan_failed(fini_cursor *cursor, fin_error *err)
{
    sqlite3_stmt *failed, *hash = NULL;
    bool row = false;
    int wanted = cursor->query->state;
    fin_status status = fini_sql_prepare(cursor->store, all_failed, &failed, err);
    if (!status)
        status = fini_sql_prepare(cursor->store, "SELECT -1, '', hash FROM runs WHERE id = ?1",
                                  &hash, err);
    while (!status && !(status = fini_sql_step(cursor->store, failed, &row, err)) && row) {
        sqlite3_bind_int64(hash, 1, sqlite3_column_int64(failed, 0));
        status = fini_sql_step(cursor->store, hash, &row, err);
        if (!status && row)
            status = fini_cursor_read_hash(cursor, hash, err);
        fini_scan_run *run = NULL;
        if (!status && row)
            status = fini_scan_find(&cursor->scan, cursor->key, &run, err);
        if (run) {
            bool fit = wanted == 0 || wanted == FIN_STATE_FAILED;
            cursor->scan.fit += fit - run->fit;
            run->state = FIN_STATE_FAILED;
            run->fit = fit;
        }
        sqlite3_reset(hash);
    }
    sqlite3_finalize(hash);
    sqlite3_finalize(failed);
    return status;
}

fin_status fini_cursor_scan(fini_cursor *cursor, fin_error *err)
{
    sqlite3_stmt *statement;
    bool plain = cursor->where_count == 0 && !cursor->has && !cursor->query->command;
    bool narrow = !cursor->query->command;
    for (int i = 0; i < cursor->where_count; i++)
        narrow = narrow && !is_seconds(&cursor->where[i]);
    fin_status status = fini_sql_prepare(cursor->store,
                                         plain    ? all_hashes
                                         : narrow ? all_settings
                                                  : all_runs,
                                         &statement, err);
    if (!status)
        status = (plain ? scan_hashes : scan_all)(cursor, statement, err);
    sqlite3_finalize(statement);
    for (int i = 0; i <= FINI_WHERE_MOST; i++) {
        sqlite3_finalize(cursor->walk[i].statement);
        cursor->walk[i].statement = NULL;
    }
    if (!status && !cursor->query->study && !plain)
        fini_scan_sort(&cursor->scan);
    return status || !plain ? status : scan_failed(cursor, err);
}
