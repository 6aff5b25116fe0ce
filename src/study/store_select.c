/* Which runs does a query select? The list of them, in order.
 *
 * Three ways to the same answer. A query about a small part of a store looks up each run of the
 * plan. Any other first reads all runs in the order in which they lie in the file (store_fit.c) and
 * decides there and then which ones fit; then, if they are few, it looks up the places of those in
 * the plan, and else it walks along the plan with the table of runs (store_scan.c) at hand. */
#include "study/store_cursor.h"

#include "data/data.h"

#include <stdlib.h>
#include <string.h>

enum {
    PART = 4,    /* all runs are read unless the plan has less than 1 in PART */
    SOME = 16,   /* places are looked up if less than 1 in SOME of the plan fits */
    SAMPLE = 500 /* runs to look for names that may be meant, at either end */
};

static const char by_plan[] =
    "SELECT p.position, p.block, p.hash, r.id, r.state, r.settings, r.seconds, r.command "
    "FROM plan AS p LEFT JOIN runs AS r ON r.hash = p.hash WHERE p.study_id = ?1 "
    "ORDER BY p.position";
static const char by_hash[] =
    "SELECT -1, '', hash, id, state, settings, seconds, command FROM runs WHERE hash >= ?1 "
    "ORDER BY hash";
static const char plan_alone[] =
    "SELECT position, block, hash FROM plan WHERE study_id = ?1 ORDER BY position";
static const char plan_of_run[] =
    "SELECT position, block, hash FROM plan WHERE study_id = ?1 AND hash = ?2";

/* ---- the list -------------------------------------------------------------------------------- */

static fin_status make_room(fini_cursor *cursor, fin_error *err)
{
    if (cursor->count < cursor->room)
        return FIN_OK;
    int64_t room = cursor->room ? cursor->room * 2 : 256;
    fini_pick *larger = fini_alloc_array(room, sizeof *larger);
    if (!larger)
        return fini_fail_memory(err, (size_t)room * sizeof *larger, "the runs of a query");
    if (cursor->count)
        memcpy(larger, cursor->picks, (size_t)cursor->count * sizeof *larger);
    fini_free(cursor->picks);
    cursor->picks = larger;
    cursor->room = room;
    return FIN_OK;
}

/* A name that stays. Neighbours mostly have the same. */
static fin_status keep_block(fini_cursor *cursor, const char *block, const char **out,
                             fin_error *err)
{
    int length = (int)strlen(block);
    *out = cursor->count ? cursor->picks[cursor->count - 1].block : NULL;
    if (*out && strcmp(*out, block) == 0)
        return FIN_OK;
    fin_status status = fini_name_list_add(&cursor->blocks, block, length, err);
    if (!status)
        *out = cursor->blocks.name[fini_name_list_find(&cursor->blocks, block, length)];
    return status;
}

/* Takes what is known of a run, and adds it to the list if it is one of those asked for. */
static fin_status take(fini_cursor *cursor, const fini_scan_run *run, fin_error *err)
{
    const char *block;
    cursor->examined += run->examined;
    cursor->seen |= run->seen;
    cursor->words |= run->words;
    if (!run->fit)
        return FIN_OK;
    fin_status status = make_room(cursor, err);
    if (!status)
        status = keep_block(cursor, cursor->block, &block, err);
    if (!status)
        cursor->picks[cursor->count++] = (fini_pick){.position = cursor->position,
                                                     .id = run->id,
                                                     .key = {run->key[0], run->key[1]},
                                                     .block = block,
                                                     .state = (fin_state)run->state};
    return status;
}

/* Hash, place and block. *wanted: they fit; *past: no later run can. */
static fin_status read_place(fini_cursor *cursor, sqlite3_stmt *row, bool *wanted, bool *past,
                             fin_error *err)
{
    const fin_query *query = cursor->query;
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

/* ---- three ways ------------------------------------------------------------------------------ */

static bool wants_planned(const fini_cursor *cursor)
{
    return cursor->query->state == 0 || cursor->query->state == -1;
}

/* The row at hand, of the plan alone or with its run. */
static fin_status examine(fini_cursor *cursor, sqlite3_stmt *row, bool *past, fin_error *err)
{
    fini_scan_run run;
    bool wanted;
    fin_status status = read_place(cursor, row, &wanted, past, err);
    if (status || !wanted)
        return status;
    bool alone = sqlite3_column_count(row) <= ID;
    fini_scan_run *known = NULL;
    if (alone)
        status = fini_scan_find(&cursor->scan, cursor->key, &known, err);
    if (status || known)
        return status ? status : take(cursor, known, err);
    bool planned = alone || sqlite3_column_type(row, ID) == SQLITE_NULL;
    if (planned && !wants_planned(cursor))
        return FIN_OK;
    status =
        planned ? fini_cursor_read_planned(cursor, err) : fini_cursor_read_run(cursor, row, err);
    if (!status)
        status = fini_cursor_fits(cursor, &run, err);
    return status ? status : take(cursor, &run, err);
}

static fin_status walk(fini_cursor *cursor, const char *sql, fin_error *err)
{
    const char *hash = cursor->query->hash;
    sqlite3_stmt *statement;
    bool row = false, past = false;
    fin_status status = fini_sql_prepare(cursor->store, sql, &statement, err);
    if (status)
        return status;
    if (cursor->study_id)
        sqlite3_bind_int64(statement, 1, cursor->study_id);
    else
        fini_sql_bind_text(statement, 1, hash ? hash : "");
    while (!status && !past && !(status = fini_sql_step(cursor->store, statement, &row, err)) &&
           row)
        status = examine(cursor, statement, &past, err);
    sqlite3_finalize(statement);
    return status;
}

static int by_position(const void *a, const void *b)
{
    const fini_pick *p = a, *q = b;
    return (p->position > q->position) - (p->position < q->position);
}

static fin_status look_up(fini_cursor *cursor, sqlite3_stmt *statement, const fini_scan_run *run,
                          fin_error *err)
{
    char hash[FIN_HASH_TEXT];
    bool row = false, wanted, past;
    fin_status status = FIN_OK;
    fini_key_text(run->key, hash);
    fini_sql_bind_text(statement, 2, hash);
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        status = read_place(cursor, statement, &wanted, &past, err);
        if (!status && wanted)
            status = take(cursor, run, err);
    }
    sqlite3_reset(statement);
    return status;
}

static fin_status look_up_all(fini_cursor *cursor, fin_error *err)
{
    sqlite3_stmt *statement;
    fin_status status = fini_sql_prepare(cursor->store, plan_of_run, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, cursor->study_id);
    for (int64_t i = 0; i < cursor->scan.count && !status; i++)
        if (cursor->scan.runs[i].fit)
            status = look_up(cursor, statement, &cursor->scan.runs[i], err);
    sqlite3_finalize(statement);
    if (!status && cursor->count > 1)
        qsort(cursor->picks, (size_t)cursor->count, sizeof *cursor->picks, by_position);
    return status;
}

/* After the scan, in the order of the plan. If nothing is found, the plan is walked all the same,
 * because what its runs have decides whether the question makes sense. */
static fin_status follow_plan(fini_cursor *cursor, int64_t planned, fin_error *err)
{
    fin_status status = FIN_OK;
    if (!wants_planned(cursor) && cursor->scan.fit < planned / SOME)
        status = look_up_all(cursor, err);
    if (status || cursor->count > 0)
        return status;
    return walk(cursor, plan_alone, err);
}

static fin_status follow_scan(fini_cursor *cursor, fin_error *err)
{
    fin_status status = FIN_OK;
    cursor->position = -1;
    cursor->block = "";
    for (int64_t i = 0; i < cursor->scan.count && !status; i++)
        status = take(cursor, &cursor->scan.runs[i], err);
    return status;
}

/* ---- questions that make no sense ------------------------------------------------------------ */

/* No run has this name: which one may be meant? */
static fin_status unknown_name(fini_cursor *cursor, const char *name, fin_error *err)
{
    char shown[FINI_SHOWN], other[FINI_SHOWN] = "";
    fini_name_list names = {0};
    bool row = false;
    sqlite3_stmt *statement = NULL;
    fin_status status = fini_name_list_add(&names, "seconds", 7, err);
    if (!status)
        status =
            fini_sql_prepare(cursor->store,
                             "SELECT '\"settings\":{\"' || name || '\":1}' FROM names UNION ALL "
                             "SELECT settings FROM runs WHERE id IN "
                             "(SELECT id FROM (SELECT id FROM runs ORDER BY id LIMIT ?1)) OR id IN "
                             "(SELECT id FROM (SELECT id FROM runs ORDER BY id DESC LIMIT ?1))",
                             &statement, err);
    if (!status)
        sqlite3_bind_int(statement, 1, SAMPLE);
    while (!status && !(status = fini_sql_step(cursor->store, statement, &row, err)) && row) {
        const char *settings = (const char *)sqlite3_column_text(statement, 0);
        status = settings ? fini_name_list_settings(&names, settings, err) : FIN_OK;
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

/* Nothing was found. That is an answer, unless it was asked about something that no run has. */
static fin_status explain_nothing(fini_cursor *cursor, fin_error *err)
{
    for (int i = 0; i < cursor->where_count && cursor->examined > 0; i++) {
        if (!(cursor->seen >> i & 1))
            return unknown_name(cursor, cursor->where[i].name, err);
        if (cursor->where[i].words && !(cursor->words >> i & 1))
            return no_number(&cursor->where[i], err);
    }
    return FIN_OK;
}

/* Numbers of runs and places in a plan are nearly without gaps: the last says how many there
 * are. */
fin_status fini_cursor_select(fini_cursor *cursor, fin_error *err)
{
    int64_t runs, planned = 0, study = cursor->study_id;
    fin_status status = fini_sql_number(cursor->store, "SELECT max(id) FROM runs", 0, &runs, err);
    if (!status && study)
        status =
            fini_sql_number(cursor->store, "SELECT max(position) FROM plan WHERE study_id = ?1",
                            study, &planned, err);
    if (status)
        return status;
    if (runs > FINI_SCAN_MOST || (study ? planned < runs / PART : cursor->query->hash != NULL))
        status = walk(cursor, study ? by_plan : by_hash, err);
    else {
        status = fini_cursor_scan(cursor, err);
        if (!status)
            status = study ? follow_plan(cursor, planned, err) : follow_scan(cursor, err);
        fini_scan_free(&cursor->scan);
    }
    return status || cursor->count > 0 ? status : explain_nothing(cursor, err);
}
