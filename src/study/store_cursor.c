/* The runs that a query selects, one after the other: in the order of a study's plan, or, without a
 * study, all runs by hash.
 *
 * A cursor has statements of its own, so that whoever is called with a run may ask the store about
 * other things. Settings of a run that is only planned are in no table: the study is read again from
 * its text for them. */
#include "study/store.h"

#include "data/data.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { POSITION, BLOCK, HASH, ID, STATE, SETTINGS, SECONDS, COMMAND, REASON, VERSION, KERNEL };

static const char of_study[] =
    "SELECT p.position, p.block, p.hash, r.id, r.state, r.settings, r.seconds, r.command, "
    "r.reason, "
    "r.version, r.kernel FROM plan AS p LEFT JOIN runs AS r ON r.hash = p.hash "
    "WHERE p.study_id = ?1 ORDER BY p.position";
static const char of_store[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command, reason, version, kernel FROM runs "
    "WHERE hash >= ?1 ORDER BY hash";
static const char one_scalar[] = "SELECT value FROM scalars WHERE name_id = ?1 AND run_id = ?2";

struct fini_cursor {
    fin_store *store;
    const fin_query *query;
    sqlite3_stmt *runs, *scalar;
    fini_condition *where; /* [where_count] */
    int where_count;
    int64_t has;      /* number of the scalar it must have; 0: any run will do */
    bool mine;        /* the look at the store */
    fin_study *study; /* NULL until a planned run needs it, or if it cannot be read */
    bool study_tried;
    int64_t id, position, examined;
    fin_state state;
    const char *hash, *block, *command, *settings;
    fin_plan plan; /* of a planned run */
};

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

/* ---- opening ------------------------------------------------------------------------------------------ */

static fin_status open_where(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    fin_status status = FIN_OK;
    if (query->where_count <= 0)
        return FIN_OK;
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
        status =
            fini_sql_prepare(cursor->store, query->study ? of_study : of_store, &cursor->runs, err);
    if (!status)
        status = fini_sql_prepare(cursor->store, one_scalar, &cursor->scalar, err);
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
    sqlite3_finalize(cursor->scalar);
    for (int i = 0; i < cursor->where_count; i++)
        fini_condition_free(&cursor->where[i]);
    fini_free(cursor->where);
    fin_study_destroy(cursor->study);
    fini_store_unlook(cursor->store, cursor->mine);
    fini_free(cursor);
}

/* ---- one run -------------------------------------------------------------------------------------------- */

/* The settings of a run that no row of `runs` has: from the study, if it still has this run. */
static fin_status read_planned(fini_cursor *cursor, fin_error *err)
{
    fin_status status = FIN_OK;
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

static fin_status read_run(fini_cursor *cursor, fin_error *err)
{
    fin_store *store = cursor->store;
    sqlite3_stmt *row = cursor->runs;
    int64_t state;
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

/* Hash, place and block first: they decide whether the rest is worth reading. *wanted: they fit. */
static fin_status read_place(fini_cursor *cursor, bool *wanted, bool *past, fin_error *err)
{
    const fin_query *query = cursor->query;
    sqlite3_stmt *row = cursor->runs;
    fin_status status =
        fini_sql_text(cursor->store, row, HASH, FIN_HASH_TEXT - 1, "a hash", &cursor->hash, err);
    if (!status && !fini_is_hash(cursor->hash))
        status = fini_store_damaged(cursor->store, err, "a run has a hash that is none");
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

static bool state_fits(const fini_cursor *cursor)
{
    int wanted = cursor->query->state;
    return wanted == 0 ||
           (wanted == -1 ? cursor->state == FIN_STATE_PLANNED : (int)cursor->state == wanted);
}

/* ---- does it fit? ----------------------------------------------------------------------------------------- */

static fin_status get_scalar(fini_cursor *cursor, int64_t name, bool *found, double *value,
                             fin_error *err)
{
    *found = false;
    if (cursor->id == 0 || name == 0)
        return FIN_OK;
    sqlite3_bind_int64(cursor->scalar, 1, name);
    sqlite3_bind_int64(cursor->scalar, 2, cursor->id);
    fin_status status = fini_sql_step(cursor->store, cursor->scalar, found, err);
    if (!status && *found)
        *value = fini_sql_double(cursor->scalar, 0);
    sqlite3_reset(cursor->scalar);
    return status;
}

static fin_status meets(fini_cursor *cursor, fini_condition *where, bool *holds, fin_error *err)
{
    const char *text = "nan";
    int length = 3;
    double number = NAN;
    fin_status status = FIN_OK;
    bool found = fini_setting_find(cursor->settings, where->name, &text, &length);
    if (found)
        fini_text_number(text, length, &number);
    else if (strcmp(where->name, "seconds") == 0 && cursor->id) {
        found = true;
        number = fini_sql_double(cursor->runs, SECONDS);
    } else
        status = get_scalar(cursor, where->name_id, &found, &number, err);
    where->seen = where->seen || found;
    *holds = found && fini_condition_holds(where, text, length, number);
    return status;
}

/* A condition is looked at until some run has its name, even where another one has failed: else a
 * mistyped name would pass for one that nothing meets. */
static fin_status fits(fini_cursor *cursor, bool *fit, fin_error *err)
{
    fin_status status = FIN_OK;
    double value;
    *fit = true;
    for (int i = 0; i < cursor->where_count && !status; i++) {
        bool holds = false;
        if (!*fit && cursor->where[i].seen)
            continue;
        status = meets(cursor, &cursor->where[i], &holds, err);
        *fit = *fit && holds;
    }
    if (!status && *fit && cursor->has)
        status = get_scalar(cursor, cursor->has, fit, &value, err);
    return status;
}

/* ---- the next one ------------------------------------------------------------------------------------------ */

/* No run has this name: which one may be meant? */
static fin_status unknown_name(fini_cursor *cursor, const char *name, fin_error *err)
{
    char shown[FINI_SHOWN], other[FINI_SHOWN] = "";
    fini_names names = {0};
    bool row = false;
    sqlite3_stmt *statement = NULL;
    sqlite3_reset(cursor->runs);
    fin_status status = fini_names_add(&names, "seconds", 7, err);
    while (!status && !(status = fini_sql_step(cursor->store, cursor->runs, &row, err)) && row) {
        const char *settings = (const char *)sqlite3_column_text(cursor->runs, SETTINGS);
        status = settings ? fini_names_settings(&names, settings, err) : FIN_OK;
    }
    if (!status)
        status = fini_sql_prepare(cursor->store, "SELECT name FROM names", &statement, err);
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        status = text ? fini_names_add(&names, text, (int)strlen(text), err) : FIN_OK;
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
        if (!cursor->where[i].seen)
            return unknown_name(cursor, cursor->where[i].name, err);
    return FIN_OK;
}

/* *fit: this run is one of those asked for. */
static fin_status examine(fini_cursor *cursor, bool *fit, bool *past, fin_error *err)
{
    const char *command = cursor->query->command;
    *fit = false;
    fin_status status = read_place(cursor, fit, past, err);
    if (status || !*fit)
        return status;
    bool planned = sqlite3_column_type(cursor->runs, ID) == SQLITE_NULL;
    if (planned) {
        cursor->id = 0;
        cursor->state = FIN_STATE_PLANNED;
    }
    status = planned ? read_planned(cursor, err) : read_run(cursor, err);
    if (status)
        return status;
    *fit = state_fits(cursor) && (!command || strcmp(command, cursor->command) == 0);
    if (!*fit)
        return FIN_OK;
    cursor->examined++;
    return fits(cursor, fit, err);
}

fin_status fini_cursor_next(fini_cursor *cursor, bool *more, fin_error *err)
{
    bool row, fit = false, past = false;
    *more = false;
    while (!fit) {
        fin_status status = fini_sql_step(cursor->store, cursor->runs, &row, err);
        if (status)
            return status;
        if (row)
            status = examine(cursor, &fit, &past, err);
        if (status)
            return status;
        if (!row || past)
            return at_end(cursor, err);
    }
    *more = true;
    return FIN_OK;
}

fin_status fini_cursor_row(fini_cursor *cursor, fin_run_row *row, fin_error *err)
{
    fin_status status = FIN_OK;
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
    if (cursor->id == 0)
        return FIN_OK;
    row->seconds = fini_sql_double(cursor->runs, SECONDS);
    status = fini_sql_text(cursor->store, cursor->runs, REASON, FINI_STORE_TEXT,
                           "the reason of a failure", &row->reason, err);
    if (!status)
        status = fini_sql_text(cursor->store, cursor->runs, VERSION, FINI_STORE_TEXT, "a version",
                               &row->version, err);
    if (!status)
        status = fini_sql_text(cursor->store, cursor->runs, KERNEL, FINI_STORE_TEXT,
                               "the name of a kernel", &row->kernel, err);
    return status;
}
