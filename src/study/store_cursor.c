/* The runs that a query selects, one after the other: in the order of a study's plan, or,
 * without a study, all runs by hash.
 *
 * Two ways to the same answer. A query for few of a store's runs looks each of them up. One for
 * many first reads all runs in the order in which they lie in the file, decides there and then
 * which ones fit, and walks the plan with that table (store_scan.c) at hand; what else is in a
 * row is read only if somebody asks.
 *
 * A cursor has statements of its own, so that whoever is called with a run may ask the store
 * about other things. Settings of a run that is only planned are in no table: the study is read
 * again from its text for them. */
#include "study/store_cursor.h"

#include "data/data.h"

#include <math.h>
#include <string.h>

enum { FEW = 4 }; /* all runs are read unless the plan has less than 1 in FEW */

static const char by_plan[] =
    "SELECT p.position, p.block, p.hash, r.id, r.state, r.settings, r.seconds, r.command, "
    "r.reason, "
    "r.version, r.kernel FROM plan AS p LEFT JOIN runs AS r ON r.hash = p.hash "
    "WHERE p.study_id = ?1 ORDER BY p.position";
static const char by_hash[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command, reason, version, kernel FROM runs "
    "WHERE hash >= ?1 ORDER BY hash";
static const char plan_alone[] =
    "SELECT position, block, hash FROM plan WHERE study_id = ?1 ORDER BY position";
static const char one_run[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command, reason, version, kernel FROM runs "
    "WHERE id = ?1";

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

/* Most of a scan is this, and no text of 32 characters needs to be looked at twice. */
fin_status fini_cursor_read_hash(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err)
{
    const char *text = sqlite3_column_type(row, HASH) == SQLITE_TEXT
                           ? (const char *)sqlite3_column_text(row, HASH)
                           : NULL;
    if (!text || sqlite3_column_bytes(row, HASH) != FIN_HASH_TEXT - 1 ||
        !fini_hash_key(text, cursor->key))
        return fini_store_damaged(cursor->store, err, "a run has a hash that is none");
    cursor->hash = text;
    return FIN_OK;
}

/* Hash, place and block. *wanted: they fit; *past: no later run can. */
static fin_status read_place(fini_cursor *cursor, bool *wanted, bool *past, fin_error *err)
{
    const fin_query *query = cursor->query;
    sqlite3_stmt *row = cursor->runs;
    fin_status status = fini_cursor_read_hash(cursor, row, err);
    if (!status)
        status = fini_sql_text(cursor->store, row, BLOCK, FINI_STORE_TEXT, "the name of a block",
                               &cursor->block, err);
    if (!status)
        status = fini_sql_integer(cursor->store, row, POSITION, query->study ? 0 : -1, INT64_MAX,
                                  "the place of a run", &cursor->position, err);
    if (status)
        return status;
    bool begins = !query->hash || strncmp(cursor->hash, query->hash, strlen(query->hash)) == 0;
    *past = !begins && !query->study;
    *wanted = begins && (!query->block || strcmp(query->block, cursor->block) == 0);
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
static fin_status read_planned(fini_cursor *cursor, fin_error *err)
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

/* Numbers of runs and places in a plan are nearly without gaps: the last says how many there
 * are. */
static fin_status choose(fini_cursor *cursor, int64_t study, fin_error *err)
{
    int64_t runs, planned = 0;
    fin_status status = fini_sql_number(cursor->store, "SELECT max(id) FROM runs", 0, &runs, err);
    if (!status && study)
        status =
            fini_sql_number(cursor->store, "SELECT max(position) FROM plan WHERE study_id = ?1",
                            study, &planned, err);
    cursor->scans =
        runs <= FINI_SCAN_MOST && (study ? planned >= runs / FEW : !cursor->query->hash);
    return status;
}

static fin_status open_runs(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    int64_t study = 0;
    fin_status status = FIN_OK;
    if (query->block && !query->study)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a block is a part of a study: name the study of block '%.60s' too",
                         query->block);
    if (query->study)
        status = fini_store_find_study(cursor->store, query->study, &study, err);
    if (!status && query->block)
        status = check_block(cursor, study, err);
    if (!status)
        status = choose(cursor, study, err);
    if (!status && cursor->scans)
        status = fini_cursor_scan(cursor, err);
    if (!status)
        status = fini_sql_prepare(cursor->store,
                                  !query->study   ? by_hash
                                  : cursor->scans ? plan_alone
                                                  : by_plan,
                                  &cursor->runs, err);
    if (!status)
        status = fini_sql_prepare(cursor->store, one_run, &cursor->one, err);
    if (status)
        return status;
    if (query->study)
        sqlite3_bind_int64(cursor->runs, 1, study);
    else
        sqlite3_bind_text(cursor->runs, 1, query->hash ? query->hash : "", -1, SQLITE_TRANSIENT);
    return FIN_OK;
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
    sqlite3_finalize(cursor->runs);
    sqlite3_finalize(cursor->one);
    sqlite3_finalize(cursor->scalar);
    for (int i = 0; i < cursor->where_count; i++)
        fini_condition_free(&cursor->where[i]);
    fini_free(cursor->where);
    fini_scan_free(&cursor->scan);
    fin_study_destroy(cursor->study);
    fini_store_unlook(cursor->store, cursor->mine);
    fini_free(cursor);
}

/* ---- the next one ---------------------------------------------------------------------------- */

/* No run has this name: which one may be meant? */
static fin_status unknown_name(fini_cursor *cursor, const char *name, fin_error *err)
{
    char shown[FINI_SHOWN], other[FINI_SHOWN] = "";
    fini_names names = {0};
    bool row = false;
    sqlite3_stmt *statement = NULL;
    fin_status status = fini_names_add(&names, "seconds", 7, err);
    if (!status)
        status =
            fini_sql_prepare(cursor->store,
                             "SELECT settings FROM runs UNION ALL SELECT '\"settings\":{\"' || "
                             "name || '\":1}' FROM names",
                             &statement, err);
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        const char *settings = (const char *)sqlite3_column_text(statement, 0);
        status = settings ? fini_names_settings(&names, settings, err) : FIN_OK;
    }
    sqlite3_finalize(statement);
    if (!status) {
        const char *nearest = fin_nearest_name(name, (const char *const *)names.name, names.count);
        fini_printable(name, strlen(name), shown, sizeof shown);
        if (nearest)
            fini_printable(nearest, strlen(nearest), other, sizeof other);
        status = fini_fail(err, FIN_ERR_ARGUMENT, "no run has a setting or a scalar '%s'%s%s%s",
                           shown, nearest ? "; did you mean '" : "", other, nearest ? "'?" : "");
    }
    fini_names_free(&names);
    return status;
}

static fin_status at_end(fini_cursor *cursor, fin_error *err)
{
    for (int i = 0; i < cursor->where_count && cursor->examined > 0; i++)
        if (!(cursor->seen >> i & 1))
            return unknown_name(cursor, cursor->where[i].name, err);
    return FIN_OK;
}

/* Takes what is known of a run; true if it is one of those asked for. */
static bool take(fini_cursor *cursor, const fini_scan_run *run)
{
    cursor->id = run->id;
    cursor->state = (fin_state)run->state;
    cursor->examined += run->examined;
    cursor->seen |= run->seen;
    return run->fit;
}

/* The row of `runs` at hand. *fit: this run is one of those asked for. */
static fin_status examine(fini_cursor *cursor, bool *fit, bool *past, fin_error *err)
{
    fini_scan_run run;
    *fit = false;
    cursor->at = NULL;
    fin_status status = read_place(cursor, fit, past, err);
    if (status || !*fit)
        return status;
    const fini_scan_run *known = cursor->scans ? fini_scan_find(&cursor->scan, cursor->key) : NULL;
    if (known) {
        *fit = take(cursor, known);
        return FIN_OK;
    }
    bool planned = cursor->scans || sqlite3_column_type(cursor->runs, ID) == SQLITE_NULL;
    status = planned ? read_planned(cursor, err) : fini_cursor_read_run(cursor, cursor->runs, err);
    if (!status)
        status = fini_cursor_fits(cursor, &run, err);
    *fit = !status && take(cursor, &run);
    return status;
}

static bool next_of_scan(fini_cursor *cursor)
{
    cursor->position = -1;
    cursor->block = "";
    cursor->hash = cursor->text;
    cursor->at = NULL;
    while (cursor->next < cursor->scan.count) {
        const fini_scan_run *run = &cursor->scan.runs[cursor->next++];
        fini_scan_hash(run, cursor->text);
        if (take(cursor, run))
            return true;
    }
    return false;
}

fin_status fini_cursor_next(fini_cursor *cursor, bool *more, fin_error *err)
{
    bool row, fit = false, past = false;
    *more = cursor->scans && !cursor->query->study && next_of_scan(cursor);
    if (*more)
        return FIN_OK;
    if (cursor->scans && !cursor->query->study)
        return at_end(cursor, err);
    while (!fit) {
        fin_status status = fini_sql_step(cursor->store, cursor->runs, &row, err);
        if (!status && row)
            status = examine(cursor, &fit, &past, err);
        if (status)
            return status;
        if (!row || past)
            return at_end(cursor, err);
    }
    *more = true;
    return FIN_OK;
}

/* Reads the run, if it has only been taken from the scan so far. */
static fin_status complete(fini_cursor *cursor, fin_error *err)
{
    bool row = false;
    if (cursor->at || cursor->id == 0)
        return FIN_OK;
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
