/* The plan of a study, what it says about itself while it runs, and its claims.
 *
 * A plan that is already there is compared, not written again, so that resuming a study of 100 000
 * runs writes nothing. */
#include "study/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SESSIONS_KEPT = 100 };

/* ---- plans ----------------------------------------------------------------------------------- */

void fini_plan_hash(char hash[FIN_HASH_TEXT], const char *block, const char *run)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s %.400s", hash, run, block);
    fini_hash(line, hash);
}

/* *known: the study is in the store exactly like this. */
static fin_status find_study(fin_store *store, const fin_study *study, int64_t *id, bool *known,
                             char hash[FIN_HASH_TEXT], fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *id = 0;
    *known = false;
    fin_status status =
        fini_sql_prepare(store,
                         "SELECT id, text = ?2 AND changes = ?3 AND full = ?4, hash "
                         "FROM studies WHERE name = ?1",
                         &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, study->name);
    sqlite3_bind_text64(statement, 2, study->text, study->text_size, SQLITE_STATIC, SQLITE_UTF8);
    fini_sql_bind_text(statement, 3, study->changes);
    sqlite3_bind_int(statement, 4, study->full);
    status = fini_sql_step(store, statement, &row, err);
    if (!status && row) {
        const char *text = (const char *)sqlite3_column_text(statement, 2);
        *id = sqlite3_column_int64(statement, 0);
        *known = sqlite3_column_int(statement, 1) == 1;
        snprintf(hash, FIN_HASH_TEXT, "%.32s", text ? text : "");
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status write_study(fin_store *store, const fin_study *study, const char *hash,
                              int64_t *id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    fin_status status = fini_sql_prepare(
        store,
        "INSERT INTO studies(name, title, source, text, changes, full, hash) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(name) DO UPDATE SET title = ?2, "
        "source = ?3, text = ?4, changes = ?5, full = ?6, hash = ?7",
        &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, study->name);
    fini_sql_bind_text(statement, 2, study->title ? study->title : "");
    fini_sql_bind_text(statement, 3, study->source ? study->source : "");
    sqlite3_bind_text64(statement, 4, study->text, study->text_size, SQLITE_STATIC, SQLITE_UTF8);
    fini_sql_bind_text(statement, 5, study->changes ? study->changes : "");
    sqlite3_bind_int(statement, 6, study->full);
    fini_sql_bind_text(statement, 7, hash);
    status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status ? status : fini_store_find_study(store, study->name, id, err);
}

static fin_status add_to_plan(fin_store *store, int64_t study, int64_t position,
                              const fin_plan *plan, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_get(store, FINI_SQL_PLAN_ADD, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int64(statement, 2, position);
    fini_sql_bind_text(statement, 3, plan->block);
    fini_sql_bind_text(statement, 4, plan->hash);
    return fini_sql_step(store, statement, &row, err);
}

static fin_status cut_plan(fin_store *store, int64_t study, int64_t position, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_get(store, FINI_SQL_PLAN_CUT, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int64(statement, 2, position);
    return fini_sql_step(store, statement, &row, err);
}

/* Is the next run of the plan in the store this one? */
static fin_status same_as_next(fin_store *store, sqlite3_stmt *old, int64_t position,
                               const fin_plan *plan, bool *same, fin_error *err)
{
    bool row;
    *same = false;
    fin_status status = fini_sql_step(store, old, &row, err);
    if (status || !row)
        return status;
    const char *block = (const char *)sqlite3_column_text(old, 1);
    const char *hash = (const char *)sqlite3_column_text(old, 2);
    *same = sqlite3_column_int64(old, 0) == position && block && hash &&
            strcmp(block, plan->block) == 0 && strcmp(hash, plan->hash) == 0;
    return FIN_OK;
}

/* Walks along the old plan as long as it is the same, and writes from there on. missing[i] = 1
 * where the run is not in the store. */
static fin_status write_plan(fin_store *store, const fin_study *study, int64_t id, bool retry,
                             unsigned char *missing, char hash[FIN_HASH_TEXT], fin_error *err)
{
    fin_plan plan;
    sqlite3_stmt *old;
    int64_t count = fin_study_run_count(study), run, state;
    bool same = true;
    memset(hash, '0', FIN_HASH_TEXT - 1);
    hash[FIN_HASH_TEXT - 1] = '\0';
    fin_status status = fini_sql_prepare(
        store, "SELECT position, block, hash FROM plan WHERE study_id = ?1 ORDER BY position", &old,
        err);
    if (status)
        return status;
    sqlite3_bind_int64(old, 1, id);
    for (int64_t i = 0; i < count && !status; i++) {
        status = fin_study_get_run(study, i, &plan, err);
        if (!status && same) {
            status = same_as_next(store, old, i, &plan, &same, err);
            if (!status && !same) {
                sqlite3_reset(old);
                status = cut_plan(store, id, i, err);
            }
        }
        if (!status && !same)
            status = add_to_plan(store, id, i, &plan, err);
        if (!status)
            status = fini_store_find_run(store, &plan, &run, &state, err);
        if (!status) {
            missing[i] = state == FIN_STATE_PLANNED || (retry && state == FIN_STATE_FAILED);
            fini_plan_hash(hash, plan.block, plan.hash);
        }
    }
    sqlite3_finalize(old);
    return status ? status : cut_plan(store, id, count, err);
}

/* The same run may stand at several places of a plan: it is done for the first. */
static fin_status drop_repeats(fin_store *store, int64_t id, int64_t count, unsigned char *missing,
                               fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    fin_status status = fini_sql_prepare(
        store,
        "SELECT position FROM plan AS p WHERE study_id = ?1 AND EXISTS(SELECT 1 FROM plan AS q "
        "WHERE q.hash = p.hash AND q.study_id = ?1 AND q.position < p.position)",
        &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    while (!(status = fini_sql_step(store, statement, &row, err)) && row) {
        int64_t position = sqlite3_column_int64(statement, 0);
        if (position >= 0 && position < count)
            missing[position] = 0;
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status delete_claims(fin_store *store, int64_t id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status =
        fini_sql_prepare(store, "DELETE FROM claims WHERE study_id = ?1", &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

/* The row of the study must be there before its plan (foreign keys), its hash is known after it. */
static fin_status plan_all(fin_store *store, const fin_study *study, bool retry,
                           unsigned char *missing, fin_error *err)
{
    char hash[FIN_HASH_TEXT], before[FIN_HASH_TEXT] = "";
    int64_t id;
    bool known;
    fin_status status = find_study(store, study, &id, &known, before, err);
    if (!status && id == 0)
        status = write_study(store, study, "", &id, err);
    if (!status)
        status = write_plan(store, study, id, retry, missing, hash, err);
    if (!status)
        status = drop_repeats(store, id, fin_study_run_count(study), missing, err);
    if (!status && !(known && strcmp(hash, before) == 0)) {
        status = write_study(store, study, hash, &id, err);
        if (!status)
            status = delete_claims(store, id, err); /* they were of another study */
    }
    return status;
}

fin_status fini_store_plan(fin_store *store, const fin_study *study, bool retry,
                           unsigned char *missing, fin_error *err)
{
    fin_status status = fini_store_begin(store, err);
    return status ? status
                  : fini_store_end(store, plan_all(store, study, retry, missing, err), err);
}

/* ---- sessions and claims --------------------------------------------------------------------- */

static fin_status add_session(fin_store *store, int64_t *id, const char *study, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_prepare(
        store,
        "INSERT INTO sessions(study, started, total, done, failed, ranks, threads) "
        "VALUES(?1, ?2, 0, 0, 0, 0, 0)",
        &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, study);
    sqlite3_bind_double(statement, 2, fini_now());
    status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    *id = sqlite3_last_insert_rowid(store->db);
    if (status)
        return status;
    status = fini_sql_prepare(store,
                              "DELETE FROM sessions WHERE id <= (SELECT id FROM sessions "
                              "ORDER BY id DESC LIMIT 1 OFFSET ?1)",
                              &statement, err);
    if (status)
        return status;
    sqlite3_bind_int(statement, 1, SESSIONS_KEPT);
    status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

static fin_status say(fin_store *store, int64_t id, const fin_session_row *session, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    double now = fini_now();
    fin_status status = fini_sql_get(store, FINI_SQL_SESSION_SAY, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_double(statement, 2, now);
    fini_sql_bind_number(statement, 3, session->ended ? now : (double)NAN);
    sqlite3_bind_int64(statement, 4, session->total);
    sqlite3_bind_int64(statement, 5, session->done);
    sqlite3_bind_int64(statement, 6, session->failed);
    sqlite3_bind_int(statement, 7, session->ranks);
    sqlite3_bind_int(statement, 8, session->threads);
    fini_sql_bind_number(statement, 9, session->seconds);
    fini_sql_bind_number(statement, 10, session->left);
    fini_sql_bind_text(statement, 11, session->study);
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_store_session(fin_store *store, int64_t *id, const fin_session_row *row,
                              fin_error *err)
{
    int64_t number = *id;
    fin_status status = fini_store_begin(store, err);
    if (status)
        return status;
    if (number <= 0)
        status = add_session(store, &number, row->study, err);
    if (!status)
        status = say(store, number, row, err);
    status = fini_store_end(store, status, err);
    if (!status)
        *id = number;
    return status;
}

fin_status fini_store_add_claim(fin_store *store, int64_t study, int position,
                                const fin_claim *claim, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    const char *texts[] = {claim->id,       claim->statement, claim->source, claim->quantity,
                           claim->expected, claim->figure,    claim->how};
    fin_status status = fini_sql_get(store, FINI_SQL_CLAIM_ADD, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int(statement, 2, position);
    for (int k = 0; k < 7; k++)
        fini_sql_bind_text(statement, 3 + k, texts[k] ? texts[k] : "");
    fini_sql_bind_number(statement, 10, claim->value);
    fini_sql_bind_number(statement, 11, claim->low);
    fini_sql_bind_number(statement, 12, claim->high);
    sqlite3_bind_int(statement, 13, (int)claim->verdict);
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_store_keep_claims(fin_store *store, const char *study, const fin_claim *claims,
                                  int count, fin_error *err)
{
    int64_t id;
    fin_status status = fini_store_begin(store, err);
    if (status)
        return status;
    status = fini_store_find_study(store, study, &id, err);
    if (!status)
        status = delete_claims(store, id, err);
    for (int i = 0; i < count && !status; i++)
        status = fini_store_add_claim(store, id, i, &claims[i], err);
    return fini_store_end(store, status, err);
}
