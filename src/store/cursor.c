/* The runs that a query selects, one after the other: in the order of a study's plan, or, without a
 * study, all that were run, by hash.
 *
 * A query is one SELECT, built here; whatever the query says is a parameter of it. A cursor has a
 * statement of its own, so that whoever is called with a run may ask the store about other things. */
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <string.h>

enum { WHERE_MOST = 32, SAMPLE = 500 }; /* SAMPLE: settings to look for names that may be meant */

/* Columns of the SELECT. */
enum {
    POSITION,
    BLOCK,
    HASH,
    ID,
    STATE,
    COMMAND,
    SETTINGS,
    REASON,
    VERSION,
    KERNEL,
    SECONDS,
    COMMON_ID,
    OWN
};

/* Parameters of the SELECT. */
enum { P_STUDY = 1, P_BLOCK, P_COMMAND, P_HASH, P_STATE, P_HAS, P_KEY, P_WHERE };

/* ---- the SELECT ------------------------------------------------------------------------------ */

/* All of it but the conditions. The plan comes first, and its neighbours lie together; what became of
 * a run is looked up only if its settings are right. */
static void put_from(const fini_cursor *cursor, bool settings, sqlite3_str *sql)
{
    const fin_query *query = cursor->query;
    sqlite3_str_appendall(sql, cursor->study ? " FROM plan AS p CROSS JOIN settings AS s "
                                               "ON s.id = p.run_id"
                                             : " FROM settings AS s");
    if (settings || query->command)
        sqlite3_str_appendall(sql, " CROSS JOIN common AS c ON c.id = s.common_id");
    sqlite3_str_appendf(sql, " %s JOIN runs AS r ON r.id = s.id",
                        cursor->study && query->state <= 0 ? "LEFT" : "CROSS");
    sqlite3_str_appendall(sql, cursor->study ? " WHERE p.study_id = ?1" : " WHERE ?1 = 0");
    if (query->block)
        sqlite3_str_appendf(sql, " AND p.block = ?%d", P_BLOCK);
    if (query->command)
        sqlite3_str_appendf(sql, " AND c.command = ?%d", P_COMMAND);
    if (query->hash) /* digits go up to f */
        sqlite3_str_appendf(sql, " AND s.hash BETWEEN ?%d AND ?%d || 'g'", P_HASH, P_HASH);
    if (query->state == -1)
        sqlite3_str_appendall(sql, " AND r.id IS NULL");
    else if (query->state)
        sqlite3_str_appendf(sql, " AND r.state = ?%d", P_STATE);
    if (query->has)
        sqlite3_str_appendf(
            sql, " AND EXISTS (SELECT 1 FROM scalars WHERE name_id = ?%d AND run_id = s.id)",
            P_HAS);
}

static void put_select(const fini_cursor *cursor, sqlite3_str *sql)
{
    bool whole = cursor->what != FINI_CURSOR_PLACES;
    sqlite3_str_appendall(sql, cursor->study ? "SELECT p.position, p.block" : "SELECT -1, ''");
    sqlite3_str_appendall(sql, ", s.hash, s.id, r.state");
    if (whole)
        sqlite3_str_appendf(sql,
                            ", c.command, %s, r.reason, r.version, r.kernel, r.seconds, "
                            "s.common_id, s.own",
                            cursor->what == FINI_CURSOR_ROWS ? FINI_SQL_SETTINGS : "c.text");
    put_from(cursor, whole || cursor->where_count > 0, sql);
    if (cursor->by_key)
        sqlite3_str_appendf(sql, " AND %s = ?%d", cursor->study ? "p.position" : "s.id", P_KEY);
    for (int i = 0; i < cursor->where_count && !cursor->by_key; i++) {
        sqlite3_str_appendall(sql, " AND (");
        fini_condition_sql(&cursor->where[i], sql);
        sqlite3_str_appendall(sql, ")");
    }
    sqlite3_str_appendall(sql, cursor->study ? " ORDER BY p.position" : " ORDER BY s.hash");
}

/* Takes the text over. */
static fin_status prepare(fini_cursor *cursor, sqlite3_str *sql, sqlite3_stmt **out, fin_error *err)
{
    const fin_query *query = cursor->query;
    int64_t has = 0;
    char *text = sqlite3_str_finish(sql);
    *out = NULL;
    if (!text)
        return fini_fail_memory(err, 1000, "a query");
    fin_status status = fini_sql_prepare(cursor->store, text, out, err);
    sqlite3_free(text);
    if (!status && query->has)
        status = fini_store_name(cursor->store, query->has, false, &has, err);
    if (status)
        return status;
    sqlite3_bind_int64(*out, P_STUDY, cursor->study);
    sqlite3_bind_text(*out, P_BLOCK, query->block, -1, SQLITE_STATIC);
    sqlite3_bind_text(*out, P_COMMAND, query->command, -1, SQLITE_STATIC);
    sqlite3_bind_text(*out, P_HASH, query->hash, -1, SQLITE_STATIC);
    sqlite3_bind_int(*out, P_STATE, query->state);
    sqlite3_bind_int64(*out, P_HAS, has);
    for (int i = 0; i < cursor->where_count && !cursor->by_key; i++)
        fini_condition_bind(&cursor->where[i], *out);
    return FIN_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static fin_status open_where(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    fin_status status = FIN_OK;
    int next = P_WHERE;
    if (query->where_count <= 0)
        return FIN_OK;
    if (query->where_count > WHERE_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%d conditions on runs; at most %d are possible",
                         query->where_count, WHERE_MOST);
    FINI_ROOM(err, "conditions on runs", cursor->where, query->where_count, 1);
    while (!status && cursor->where_count < query->where_count) {
        fini_condition *where = &cursor->where[cursor->where_count];
        status = fini_condition_parse(query->where[cursor->where_count], where, err);
        cursor->where_count += !status;
        where->first = next;
        next += fini_condition_parameters(where);
        if (!status)
            status = fini_condition_look_up(cursor->store, where, err);
    }
    return status;
}

static fin_status check_has(fini_cursor *cursor, fin_error *err)
{
    const char *has = cursor->query->has;
    int64_t id;
    FINI_TRY(fini_store_name(cursor->store, has, false, &id, err));
    if (id == 0)
        return fini_store_unknown(cursor->store, "scalar", has,
                                  "SELECT name FROM names WHERE id IN (SELECT DISTINCT name_id "
                                  "FROM scalars) AND ?1 = 0 ORDER BY name",
                                  0, err);
    return FIN_OK;
}

static fin_status check_block(fini_cursor *cursor, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    FINI_TRY(fini_sql_prepare(cursor->store,
                              "SELECT 1 FROM plan WHERE study_id = ?1 AND block = ?2 LIMIT 1",
                              &statement, err));
    sqlite3_bind_int64(statement, 1, cursor->study);
    fini_sql_bind_text(statement, 2, cursor->query->block);
    fin_status status = fini_sql_step(cursor->store, statement, &row, err);
    sqlite3_finalize(statement);
    if (status || row)
        return status;
    return fini_store_unknown(cursor->store, "block", cursor->query->block,
                              "SELECT DISTINCT block FROM plan WHERE study_id = ?1", cursor->study,
                              err);
}

static fin_status open_all(fini_cursor *cursor, fin_error *err)
{
    const fin_query *query = cursor->query;
    FINI_TRY(open_where(cursor, err));
    if (query->has)
        FINI_TRY(check_has(cursor, err));
    if (query->block && !query->study)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a block is a part of a study: name the study of block '%.60s' too",
                         query->block);
    if (query->study)
        FINI_TRY(fini_store_find_study(cursor->store, query->study, &cursor->study, err));
    if (query->block)
        FINI_TRY(check_block(cursor, err));
    if (!cursor->study && !cursor->store->writes) /* by hash is all over the file */
        sqlite3_exec(cursor->store->db, "PRAGMA cache_size = -16384", NULL, NULL, NULL);
    sqlite3_str *sql = sqlite3_str_new(cursor->store->db);
    put_select(cursor, sql);
    return prepare(cursor, sql, &cursor->statement, err);
}

fin_status fini_cursor_open(fin_store *store, const fin_query *query, int what, fini_cursor *out,
                            fin_error *err)
{
    static const fin_query all;
    *out = (fini_cursor){.store = store, .query = query ? query : &all, .what = what};
    FINI_TRY(fini_store_look(store, &out->mine, err));
    return open_all(out, err);
}

void fini_cursor_close(fini_cursor *cursor)
{
    sqlite3_finalize(cursor->statement);
    for (int i = 0; i < cursor->where_count; i++)
        fini_condition_free(&cursor->where[i]);
    fini_free_all(cursor->where, cursor->keys);
    if (cursor->store)
        fini_store_unlook(cursor->store, cursor->mine);
    *cursor = (fini_cursor){0};
}

fin_status fini_cursor_rewind(fini_cursor *cursor, fin_error *err)
{
    sqlite3_reset(cursor->statement);
    cursor->key_next = 0;
    if (!cursor->known)
        cursor->key_count = 0;
    if (!cursor->known || cursor->by_key)
        return FIN_OK;
    cursor->by_key = true;
    sqlite3_finalize(cursor->statement);
    sqlite3_str *sql = sqlite3_str_new(cursor->store->db);
    put_select(cursor, sql);
    return prepare(cursor, sql, &cursor->statement, err);
}

/* Only tables are read twice. */
static fin_status keep_key(fini_cursor *cursor, bool more, fin_error *err)
{
    if (cursor->what != FINI_CURSOR_VALUES || cursor->where_count == 0 || cursor->by_key)
        return FIN_OK;
    cursor->known = !more;
    if (more && cursor->key_count == cursor->key_room) {
        int64_t room = cursor->key_room ? cursor->key_room * 2 : 256;
        int64_t *larger = fini_alloc_array(room, sizeof *larger);
        if (!larger)
            return fini_fail_memory(err, (size_t)room * sizeof *larger, "the runs of a query");
        if (cursor->key_count > 0)
            memcpy(larger, cursor->keys, (size_t)cursor->key_count * sizeof *larger);
        fini_free(cursor->keys);
        cursor->keys = larger;
        cursor->key_room = room;
    }
    if (more)
        cursor->keys[cursor->key_count++] =
            sqlite3_column_int64(cursor->statement, cursor->study ? POSITION : ID);
    return FIN_OK;
}

static fin_status step(fini_cursor *cursor, bool *more, fin_error *err)
{
    bool row = false;
    if (!cursor->by_key)
        return fini_sql_step(cursor->store, cursor->statement, more, err);
    *more = cursor->key_next < cursor->key_count;
    if (!*more)
        return FIN_OK;
    sqlite3_reset(cursor->statement);
    sqlite3_bind_int64(cursor->statement, P_KEY, cursor->keys[cursor->key_next++]);
    FINI_TRY(fini_sql_step(cursor->store, cursor->statement, &row, err));
    return row ? FIN_OK : fini_store_damaged(cursor->store, err, "a run was there only once");
}

/* ---- questions that make no sense ------------------------------------------------------------ */

/* No run has this name: which one may be meant? */
static fin_status unknown_name(fini_cursor *cursor, const char *name, fin_error *err)
{
    char shown[FINI_SHOWN], other[FINI_SHOWN] = "";
    fini_name_list names = {0};
    bool row = false;
    sqlite3_stmt *statement = NULL;
    fin_status status =
        fini_sql_prepare(cursor->store,
                         "SELECT 'seconds' UNION SELECT name FROM names UNION SELECT key FROM "
                         "(SELECT text FROM common LIMIT ?1) AS c, json_each(c.text, '$.settings')",
                         &statement, err);
    if (!status)
        sqlite3_bind_int(statement, 1, SAMPLE);
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        const char *found = (const char *)sqlite3_column_text(statement, 0);
        status = found ? fini_name_list_add(&names, found, (int)strlen(found), err) : FIN_OK;
    }
    sqlite3_finalize(statement);
    if (!status) {
        const char *nearest = fin_nearest_name(name, (const char *const *)names.name, names.count);
        fini_printable(name, strlen(name), shown, sizeof shown);
        if (nearest)
            fini_printable(nearest, strlen(nearest), other, sizeof other);
        status = fini_fail(err, FIN_ERR_ARGUMENT, "no run has a setting or a scalar '%s'%s", shown,
                           fini_did_you_mean_quoted(nearest ? other : NULL, ""));
    }
    fini_name_list_free(&names);
    return status;
}

/* Numbers are never greater than a word, and no number is one. */
static fin_status no_number(const fini_condition *where, fin_error *err)
{
    char name[FINI_SHOWN], value[FINI_SHOWN];
    fini_printable(where->name, strlen(where->name), name, sizeof name);
    fini_printable(where->texts[0], (size_t)where->lengths[0], value, sizeof value);
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "'%s' is a number in all runs and cannot be compared with '%s'; compare it "
                     "with a number, such as %s=0.1 or %s>=0.1",
                     name, value, name, name);
}

/* Nothing was found. That is an answer, unless it was asked about something that none of the runs
 * has: so many have it, and in so many it is a word. */
static fin_status explain_nothing(fini_cursor *cursor, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    sqlite3_str *sql = sqlite3_str_new(cursor->store->db);
    sqlite3_str_appendall(sql, "SELECT count(*)");
    for (int i = 0; i < cursor->where_count; i++) {
        sqlite3_str_appendall(sql, ", count(");
        fini_condition_value(&cursor->where[i], false, sql);
        sqlite3_str_appendall(sql, "), total(");
        fini_condition_value(&cursor->where[i], true, sql);
        sqlite3_str_appendall(sql, " IS NULL AND ");
        fini_condition_value(&cursor->where[i], false, sql);
        sqlite3_str_appendall(sql, " NOT IN ('nan', '-nan'))");
    }
    put_from(cursor, true, sql);
    fin_status status = prepare(cursor, sql, &statement, err);
    if (!status)
        status = fini_sql_step(cursor->store, statement, &row, err);
    bool examined = !status && row && sqlite3_column_int64(statement, 0) > 0;
    for (int i = 0; i < cursor->where_count && examined && !status; i++) {
        if (sqlite3_column_int64(statement, 1 + 2 * i) == 0)
            status = unknown_name(cursor, cursor->where[i].name, err);
        else if (cursor->where[i].words && sqlite3_column_int64(statement, 2 + 2 * i) == 0)
            status = no_number(&cursor->where[i], err);
    }
    sqlite3_finalize(statement);
    return status;
}

/* ---- the next one ---------------------------------------------------------------------------- */

static fin_status read_place(fini_cursor *cursor, fin_error *err)
{
    const fin_store *store = cursor->store;
    sqlite3_stmt *row = cursor->statement;
    int64_t state = FIN_STATE_PLANNED;
    cursor->id = sqlite3_column_int64(row, ID);
    cursor->run = (fin_run_row){
        .command = "", .settings = "", .reason = "", .version = "", .kernel = "", .seconds = NAN};
    FINI_TRY(fini_sql_text(store, row, HASH, FIN_HASH_TEXT - 1, "a hash", &cursor->run.hash, err));
    if (!fini_is_hash(cursor->run.hash))
        return fini_store_damaged(store, err, "a run has a hash that is none");
    FINI_TRY(fini_sql_text(store, row, BLOCK, FINI_STORE_TEXT, "the name of a block",
                           &cursor->run.block, err));
    FINI_TRY(fini_sql_integer(store, row, POSITION, cursor->study ? 0 : -1, INT64_MAX,
                              "the place of a run", &cursor->run.position, err));
    if (sqlite3_column_type(row, STATE) != SQLITE_NULL)
        FINI_TRY(fini_sql_integer(store, row, STATE, FIN_STATE_DONE, FIN_STATE_FAILED,
                                  "the state of a run", &state, err));
    cursor->run.state = (fin_state)state;
    return FIN_OK;
}

static fin_status read_rest(fini_cursor *cursor, fin_error *err)
{
    fin_run_row *run = &cursor->run;
    const struct {
        int column, most;
        const char *what, **text;
    } texts[] = {{COMMAND, FINI_SHOWN, "the command of a run", &run->command},
                 {SETTINGS, FIN_SETTINGS_TEXT, "the settings of a run", &run->settings},
                 {OWN, FIN_SETTINGS_TEXT, "the settings of a run", &cursor->own},
                 {REASON, FINI_STORE_TEXT, "the reason of a failure", &run->reason},
                 {VERSION, FINI_STORE_TEXT, "a version", &run->version},
                 {KERNEL, FINI_STORE_TEXT, "the name of a kernel", &run->kernel}};
    int count = run->state == FIN_STATE_PLANNED ? 3 : 6;
    fin_status status = FIN_OK;
    for (int i = 0; i < count && !status; i++)
        status = fini_sql_text(cursor->store, cursor->statement, texts[i].column, texts[i].most,
                               texts[i].what, texts[i].text, err);
    run->seconds = fini_sql_double(cursor->statement, SECONDS);
    cursor->common_id = sqlite3_column_int64(cursor->statement, COMMON_ID);
    return status;
}

fin_status fini_cursor_next(fini_cursor *cursor, bool *more, fin_error *err)
{
    FINI_TRY(step(cursor, more, err));
    FINI_TRY(keep_key(cursor, *more, err));
    if (!*more && !cursor->any && cursor->where_count > 0)
        FINI_TRY(explain_nothing(cursor, err));
    cursor->any = true;
    if (!*more)
        return FIN_OK;
    FINI_TRY(read_place(cursor, err));
    return cursor->what == FINI_CURSOR_PLACES ? FIN_OK : read_rest(cursor, err);
}
