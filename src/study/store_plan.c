/* The plan of a study, what it says about itself while it runs, and its claims.
 *
 * A plan that is already there is compared, not written again, so that resuming a study of 100 000
 * runs writes nothing. */
#include "store/store.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Between two questions whether to go on: runs, and instructions of SQLite. */
enum { SESSIONS_KEPT = 100, RUNS_A_LOOK = 1024, STEPS_A_LOOK = 200000 };

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

/* A plan as it is made. */
typedef struct planner {
    fin_store *store;
    const fin_study *study;
    int64_t id;        /* of the study */
    sqlite3_stmt *old; /* the plan that is there */
    bool same;         /* as far as we have come */
    bool retry;        /* failed runs are missing */
    unsigned char *missing;
    char hash[FIN_HASH_TEXT];
    const fin_progress *progress;
    int64_t at; /* runs that are planned */
} planner;

static bool cancelled(const planner *p)
{
    return p->progress && p->progress->report &&
           p->progress->report(p->progress->user, "planning", (double)p->at,
                               (double)p->study->run_count);
}

static int look_up(void *user)
{
    return cancelled(user);
}

static fin_status plan_one(planner *p, int64_t i, fin_error *err)
{
    fin_plan plan;
    int64_t run, state;
    fin_status status = fin_study_get_run(p->study, i, &plan, err);
    if (!status && p->same) {
        status = same_as_next(p->store, p->old, i, &plan, &p->same, err);
        if (!status && !p->same) {
            sqlite3_reset(p->old);
            status = cut_plan(p->store, p->id, i, err);
        }
    }
    if (!status && !p->same)
        status = add_to_plan(p->store, p->id, i, &plan, err);
    if (!status)
        status = fini_store_find_run(p->store, &plan, &run, &state, err);
    if (status)
        return status;
    p->missing[i] = state == FIN_STATE_PLANNED || (p->retry && state == FIN_STATE_FAILED);
    fini_plan_hash(p->hash, plan.block, plan.hash);
    return FIN_OK;
}

/* Walks along the old plan as long as it is the same, and writes from there on. missing[i] = 1
 * where the run is not in the store. */
static fin_status write_plan(planner *p, fin_error *err)
{
    p->same = true;
    memset(p->hash, '0', FIN_HASH_TEXT - 1);
    p->hash[FIN_HASH_TEXT - 1] = '\0';
    fin_status status = fini_sql_prepare(
        p->store, "SELECT position, block, hash FROM plan WHERE study_id = ?1 ORDER BY position",
        &p->old, err);
    if (status)
        return status;
    sqlite3_bind_int64(p->old, 1, p->id);
    for (p->at = 0; p->at < p->study->run_count && !status; p->at++) {
        if (p->at % RUNS_A_LOOK == RUNS_A_LOOK - 1 && cancelled(p))
            status = FIN_ERR_CANCELLED;
        if (!status)
            status = plan_one(p, p->at, err);
    }
    sqlite3_finalize(p->old);
    p->old = NULL;
    return status ? status : cut_plan(p->store, p->id, p->study->run_count, err);
}

/* The same run may stand at several places of a plan: it is done for the first. The index has the
 * hashes in order, and the places of one hash in order. */
static fin_status drop_repeats(planner *p, fin_error *err)
{
    sqlite3_stmt *statement;
    char last[FIN_HASH_TEXT] = "";
    bool row = false;
    fin_status status =
        fini_sql_prepare(p->store,
                         "SELECT position, hash FROM plan INDEXED BY plan_hash WHERE study_id = ?1 "
                         "ORDER BY hash, position",
                         &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, p->id);
    while (!(status = fini_sql_step(p->store, statement, &row, err)) && row) {
        int64_t position = sqlite3_column_int64(statement, 0);
        const char *hash = (const char *)sqlite3_column_text(statement, 1);
        if (!hash)
            continue;
        if (strcmp(hash, last) != 0)
            snprintf(last, sizeof last, "%s", hash);
        else if (position >= 0 && position < p->study->run_count)
            p->missing[position] = 0;
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
static fin_status plan_all(planner *p, fin_error *err)
{
    char before[FIN_HASH_TEXT] = "";
    bool known;
    fin_status status = find_study(p->store, p->study, &p->id, &known, before, err);
    if (!status && p->id == 0)
        status = write_study(p->store, p->study, "", &p->id, err);
    if (!status)
        status = write_plan(p, err);
    if (!status)
        status = drop_repeats(p, err);
    if (!status && !(known && strcmp(p->hash, before) == 0)) {
        status = write_study(p->store, p->study, p->hash, &p->id, err);
        if (!status)
            status = delete_claims(p->store, p->id, err); /* they were of another study */
    }
    return status;
}

fin_status fini_store_plan(fin_store *store, const fin_study *study, bool retry,
                           unsigned char *missing, const fin_progress *progress, fin_error *err)
{
    planner p = {.store = store, .study = study, .retry = retry};
    p.missing = missing;
    p.progress = progress;
    fin_status status = fini_store_begin(store, err);
    if (status)
        return status;
    /* One statement may take long: to remove a plan of a million runs. */
    sqlite3_progress_handler(store->db, STEPS_A_LOOK, look_up, &p);
    status = plan_all(&p, err);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    if (status == FIN_ERR_CANCELLED) /* between two runs, or by SQLite within a statement */
        fini_fail(err, status, "cancelled after planning %lld of %lld runs; the store is as it was",
                  (long long)p.at, (long long)study->run_count);
    return fini_store_end(store, status, err);
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

/* Whoever asks has just run or read the study: that it is gone is no mistake of theirs. */
fin_status fini_store_still_has(fin_store *store, const char *study, int64_t *id, fin_error *err)
{
    int64_t own;
    fin_error inner = {FIN_OK, ""};
    fin_status status = fini_store_find_study(store, study, id ? id : &own, &inner);
    if (status == FIN_ERR_ARGUMENT)
        return fini_fail(
            err, FIN_ERR_IO,
            "the study '%.80s' is no longer in the store '%s': another program removed "
            "it; run it again, which does what is missing",
            study, store->shown);
    if (status && err)
        *err = inner;
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
    status = fini_store_still_has(store, study, &id, err);
    if (!status)
        status = delete_claims(store, id, err);
    for (int i = 0; i < count && !status; i++)
        status = fini_store_add_claim(store, id, i, &claims[i], err);
    return fini_store_end(store, status, err);
}
