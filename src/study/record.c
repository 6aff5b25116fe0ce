/* The plan of a study into a store, and the study back.
 *
 * A plan that is already there is compared, not written again, so that resuming a study of 100 000
 * runs writes nothing. */
#include "store/store.h"
#include "study/study.h"

#include <stdio.h>
#include <string.h>

/* Between two questions whether to go on: runs, and instructions of SQLite. */
enum { RUNS_A_LOOK = 1024, STEPS_A_LOOK = 200000 };

/* ---- plans ----------------------------------------------------------------------------------- */

/* *known: the study is in the store exactly like this. */
static fin_status find_study(fin_store *store, const fin_study *study, int64_t *id, bool *known,
                             char hash[FIN_HASH_TEXT], fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *id = 0;
    *known = false;
    FINI_TRY(fini_sql_prepare(store,
                              "SELECT id, text = ?2 AND changes = ?3 AND full = ?4, hash "
                              "FROM studies WHERE name = ?1",
                              &statement, err));
    fini_sql_bind_text(statement, 1, study->name);
    sqlite3_bind_text64(statement, 2, study->text, study->text_size, SQLITE_STATIC, SQLITE_UTF8);
    fini_sql_bind_text(statement, 3, study->changes);
    sqlite3_bind_int(statement, 4, study->full);
    fin_status status = fini_sql_step(store, statement, &row, err);
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
    FINI_TRY(fini_sql_prepare(
        store,
        "INSERT INTO studies(name, title, source, text, changes, full, hash) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(name) DO UPDATE SET title = ?2, "
        "source = ?3, text = ?4, changes = ?5, full = ?6, hash = ?7",
        &statement, err));
    fini_sql_bind_text(statement, 1, study->name);
    fini_sql_bind_text(statement, 2, study->title ? study->title : "");
    fini_sql_bind_text(statement, 3, study->source ? study->source : "");
    sqlite3_bind_text64(statement, 4, study->text, study->text_size, SQLITE_STATIC, SQLITE_UTF8);
    fini_sql_bind_text(statement, 5, study->changes ? study->changes : "");
    sqlite3_bind_int(statement, 6, study->full);
    fini_sql_bind_text(statement, 7, hash);
    fin_status status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status ? status : fini_store_find_study(store, study->name, id, err);
}

static fin_status add_to_plan(fin_store *store, int64_t study, int64_t position, const char *block,
                              int64_t run, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_get(store, FINI_SQL_PLAN_ADD, &statement, err));
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int64(statement, 2, position);
    fini_sql_bind_text(statement, 3, block);
    sqlite3_bind_int64(statement, 4, run);
    return fini_sql_step(store, statement, &row, err);
}

static fin_status cut_plan(fin_store *store, int64_t study, int64_t position, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_get(store, FINI_SQL_PLAN_CUT, &statement, err));
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int64(statement, 2, position);
    return fini_sql_step(store, statement, &row, err);
}

/* Is the next run of the plan in the store this one? */
static fin_status same_as_next(fin_store *store, sqlite3_stmt *old, int64_t position,
                               const char *block, int64_t run, bool *same, fin_error *err)
{
    bool row;
    *same = false;
    FINI_TRY(fini_sql_step(store, old, &row, err));
    if (!row)
        return FIN_OK;
    const char *text = (const char *)sqlite3_column_text(old, 1);
    *same = sqlite3_column_int64(old, 0) == position && text && strcmp(text, block) == 0 &&
            sqlite3_column_int64(old, 2) == run;
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
    fini_known *known; /* or NULL */
    char hash[FIN_HASH_TEXT];
    const fin_progress *progress;
    int64_t at; /* runs that are planned */
    /* The run whose settings the next ones have in common, but for some of their own. */
    const fini_block *block;
    int64_t common;
    void *base, *values; /* the command's size bytes */
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

static fin_status enter_block(planner *p, const fini_block *block, fin_error *err)
{
    size_t size = block->command->size;
    fini_free_all(p->base, p->values);
    p->base = fini_alloc(size);
    p->values = fini_alloc(size);
    p->block = block;
    p->common = 0;
    return p->base && p->values ? FIN_OK : fini_fail_memory(err, size, "the settings of a run");
}

/* Settings that cannot be said by those of the run before are what the next ones have in common. */
static fin_status put_settings(planner *p, const fin_plan *plan, int64_t *run, int64_t *state,
                               fin_error *err)
{
    char own[FIN_SETTINGS_TEXT] = "{}";
    const fin_command *command = p->block->command;
    fin_status status = FIN_OK;
    if (p->common == 0 || !fini_command_difference(command, p->base, p->values, own, sizeof own)) {
        status = fini_store_common(p->store, plan->command, plan->settings, &p->common, err);
        memcpy(p->base, p->values, command->size);
        strcpy(own, "{}");
    }
    return status ? status : fini_store_settings(p->store, plan, p->common, own, run, state, err);
}

static fin_status plan_one(planner *p, int64_t i, fin_error *err)
{
    fin_plan plan;
    int64_t run, state;
    const fini_block *block = fini_study_block_at(p->study, i);
    FINI_TRY(block != p->block ? enter_block(p, block, err) : FIN_OK);
    FINI_TRY(fini_study_get_run(p->study, i, p->values, &plan, err));
    FINI_TRY(put_settings(p, &plan, &run, &state, err));
    if (p->same) {
        FINI_TRY(same_as_next(p->store, p->old, i, plan.block, run, &p->same, err));
        if (!p->same) {
            sqlite3_reset(p->old);
            FINI_TRY(cut_plan(p->store, p->id, i, err));
        }
    }
    if (!p->same)
        FINI_TRY(add_to_plan(p->store, p->id, i, plan.block, run, err));
    p->missing[i] = state == FIN_STATE_PLANNED || (p->retry && state == FIN_STATE_FAILED);
    if (p->known)
        p->known[i] = (fini_known){run, fini_hash_head(plan.hash)};
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
        p->store, "SELECT position, block, run_id FROM plan WHERE study_id = ?1 ORDER BY position",
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
 * runs in order, and the places of one run in order. */
static fin_status drop_repeats(planner *p, fin_error *err)
{
    sqlite3_stmt *statement;
    int64_t last = -1;
    bool row = false;
    fin_status status =
        fini_sql_prepare(p->store,
                         "SELECT position, run_id FROM plan INDEXED BY plan_run WHERE "
                         "study_id = ?1 ORDER BY run_id, position",
                         &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, p->id);
    while (!(status = fini_sql_step(p->store, statement, &row, err)) && row) {
        int64_t position = sqlite3_column_int64(statement, 0);
        int64_t run = sqlite3_column_int64(statement, 1);
        if (run == last && position >= 0 && position < p->study->run_count)
            p->missing[position] = 0;
        last = run;
    }
    sqlite3_finalize(statement);
    return status;
}

/* The row of the study must be there before its plan (foreign keys), its hash is known after it. */
static fin_status plan_all(planner *p, fin_error *err)
{
    char before[FIN_HASH_TEXT] = "";
    bool known;
    FINI_TRY(find_study(p->store, p->study, &p->id, &known, before, err));
    if (p->id == 0)
        FINI_TRY(write_study(p->store, p->study, "", &p->id, err));
    FINI_TRY(write_plan(p, err));
    FINI_TRY(drop_repeats(p, err));
    if (!(known && strcmp(p->hash, before) == 0)) {
        FINI_TRY(write_study(p->store, p->study, p->hash, &p->id, err));
        FINI_TRY(fini_store_delete_claims(p->store, p->id, err)); /* of another study */
    }
    return FIN_OK;
}

fin_status fini_store_plan(fin_store *store, const fin_study *study, bool retry,
                           unsigned char *missing, fini_known *known, const fin_progress *progress,
                           fin_error *err)
{
    planner p = {.store = store, .study = study, .retry = retry};
    p.missing = missing;
    p.known = known;
    p.progress = progress;
    FINI_TRY(fini_store_begin(store, err));
    /* One statement may take long: to remove a plan of a million runs. */
    sqlite3_progress_handler(store->db, STEPS_A_LOOK, look_up, &p);
    fin_status status = plan_all(&p, err);
    sqlite3_progress_handler(store->db, 0, NULL, NULL);
    fini_free_all(p.base, p.values);
    if (status == FIN_ERR_CANCELLED) /* between two runs, or by SQLite within a statement */
        fini_fail(err, status, "cancelled after planning %lld of %lld runs; the store is as it was",
                  (long long)p.at, (long long)study->run_count);
    return fini_store_end(store, status, err);
}

/* ---- and back --------------------------------------------------------------------------------- */

fin_status fini_store_study(fin_store *store, const char *name, fin_study **out, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    int64_t id;
    const char *texts[2];
    *out = NULL;
    FINI_TRY(fini_store_find_study(store, name, &id, err));
    FINI_TRY(fini_sql_prepare(store, "SELECT text, changes, full FROM studies WHERE id = ?1",
                              &statement, err));
    sqlite3_bind_int64(statement, 1, id);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && !row)
        status = fini_store_damaged(store, err, "study '%.60s' is gone", name);
    if (!status)
        status = fini_sql_text(store, statement, 0, FINI_STORE_TEXT, "the text of a study",
                               &texts[0], err);
    if (!status)
        status = fini_sql_text(store, statement, 1, FINI_STORE_TEXT, "the changes of a study",
                               &texts[1], err);
    if (!status)
        status = fini_study_restore(texts[0], strlen(texts[0]), texts[1],
                                    sqlite3_column_int(statement, 2) != 0, name, out, err);
    sqlite3_finalize(statement);
    return status;
}
