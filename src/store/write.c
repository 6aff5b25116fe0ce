/* Planned and finished runs into the store.
 *
 * A run that the store has is left alone: its numbers are those that would be written. Only a
 * failed run is replaced. Whoever calls often has few runs in a call, so what a transaction
 * costs counts: statements are prepared once, names are remembered, and nothing waits for the
 * disk. */
#include "store/store.h"

#include "data/data.h"
#include "finetti/kernel.h"

#include <stdio.h>
#include <string.h>

/* A run in the store with our hash but other settings: either hashes collide, which nobody will see
 * by accident, or somebody wrote it by hand. */
static fin_status other_settings(const fin_store *store, const char *hash, fin_error *err)
{
    return fini_store_damaged(store, err,
                              "run %s has other settings than those its hash stands for", hash);
}

fin_status fini_store_common(fin_store *store, const char *command, const char *text, int64_t *id,
                             fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    FINI_TRY(fini_sql_get(store, FINI_SQL_COMMON_FIND, &statement, err));
    fini_sql_bind_text(statement, 1, text);
    fin_status status = fini_sql_step(store, statement, &row, err);
    *id = row ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    if (!status && !row)
        status = fini_sql_get(store, FINI_SQL_COMMON_ADD, &statement, err);
    if (status || row)
        return status;
    fini_sql_bind_text(statement, 1, command);
    fini_sql_bind_text(statement, 2, text);
    status = fini_sql_step(store, statement, &row, err);
    *id = sqlite3_last_insert_rowid(store->db);
    return status;
}

/* The statement has the hash or the number of the run first. */
static fin_status put_settings(fin_store *store, sqlite3_stmt *statement, int64_t common,
                               const char *own, fin_error *err)
{
    bool row;
    sqlite3_bind_int64(statement, 2, common);
    fini_sql_bind_text(statement, 3, own);
    return fini_sql_step(store, statement, &row, err);
}

/* *id = 0: there is none. common = 0: not known; then a planned run of this hash is the one. */
static fin_status find_settings(fin_store *store, const fin_plan *plan, int64_t common,
                                const char *own, int64_t *id, int64_t *state, bool *same,
                                fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    *id = 0;
    *state = FIN_STATE_PLANNED;
    FINI_TRY(fini_sql_get(store, FINI_SQL_SETTINGS_FIND, &statement, err));
    fini_sql_bind_text(statement, 1, plan->hash);
    sqlite3_bind_int64(statement, 2, common);
    fini_sql_bind_text(statement, 3, own);
    fini_sql_bind_text(statement, 4, plan->settings);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (status || !row)
        return status;
    *id = sqlite3_column_int64(statement, 0);
    *same = sqlite3_column_int(statement, 2) == 1;
    status = fini_sql_integer(store, statement, 1, FIN_STATE_PLANNED, FIN_STATE_FAILED,
                              "the state of a run", state, err);
    sqlite3_reset(statement);
    return status;
}

fin_status fini_store_settings(fin_store *store, const fin_plan *plan, int64_t common,
                               const char *own, int64_t *id, int64_t *state, fin_error *err)
{
    sqlite3_stmt *statement;
    bool same = false;
    fin_status status = find_settings(store, plan, common, own, id, state, &same, err);
    if (status || (*id && same))
        return status;
    if (*state != FIN_STATE_PLANNED)
        return other_settings(store, plan->hash, err);
    if (common == 0) /* a run that no plan has put here */
        status = fini_store_common(store, plan->command, plan->settings, &common, err);
    if (!status)
        status = fini_sql_get(store, *id ? FINI_SQL_SETTINGS_CHANGE : FINI_SQL_SETTINGS_ADD,
                              &statement, err);
    if (status)
        return status;
    if (*id)
        sqlite3_bind_int64(statement, 1, *id);
    else
        fini_sql_bind_text(statement, 1, plan->hash);
    status = put_settings(store, statement, common, own, err);
    if (*id == 0)
        *id = sqlite3_last_insert_rowid(store->db);
    return status;
}

/* What a failed one left goes with it. */
static fin_status put_run(fin_store *store, int64_t id, const fini_done *done, const char *reason,
                          fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_get(store, FINI_SQL_RUN_PUT, &statement, err));
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int(statement, 2, (int)done->state);
    fini_sql_bind_text(statement, 3, reason);
    fini_sql_bind_text(statement, 4, fin_version());
    fini_sql_bind_text(statement, 5, fin_kernel_name());
    fini_sql_bind_number(statement, 6, done->seconds);
    sqlite3_bind_double(statement, 7, fini_now());
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_store_add_scalar(fin_store *store, int64_t run, const fin_scalar *scalar,
                                 fin_error *err)
{
    int64_t name;
    bool row;
    sqlite3_stmt *statement;
    FINI_TRY(fini_store_name(store, scalar->name, true, &name, err));
    FINI_TRY(fini_sql_get(store, FINI_SQL_SCALAR_ADD, &statement, err));
    sqlite3_bind_int64(statement, 1, name);
    sqlite3_bind_int64(statement, 2, run);
    fini_sql_bind_number(statement, 3, scalar->value);
    fini_sql_bind_number(statement, 4, scalar->error);
    sqlite3_bind_int(statement, 5, (int)scalar->how);
    sqlite3_bind_int64(statement, 6, scalar->samples);
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_store_add_series(fin_store *store, int64_t run, const fin_series *series,
                                 fin_error *err)
{
    int64_t name;
    bool row;
    void *bytes = NULL;
    size_t size = 0;
    char shape[FINI_SHAPE_TEXT];
    sqlite3_stmt *statement;
    static const char *const dtypes[] = {
#define FINI_DTYPE_NAME(name, descr, size) descr,
        FIN_DTYPE_LIST(FINI_DTYPE_NAME)
#undef FINI_DTYPE_NAME
    };
    fin_status status = fini_store_name(store, series->name, true, &name, err);
    if (!status)
        status = fini_sql_get(store, FINI_SQL_SERIES_ADD, &statement, err);
    if (!status)
        status = fini_blob_pack(store, series, &bytes, &size, err);
    if (status)
        return status;
    fini_shape_text(series, shape);
    sqlite3_bind_int64(statement, 1, run);
    sqlite3_bind_int64(statement, 2, name);
    fini_sql_bind_text(statement, 3, dtypes[series->dtype]);
    fini_sql_bind_text(statement, 4, shape);
    sqlite3_bind_blob64(statement, 5, bytes, size, SQLITE_STATIC);
    status = fini_sql_step(store, statement, &row, err);
    sqlite3_clear_bindings(statement);
    fini_free(bytes);
    return status;
}

uint64_t fini_hash_head(const char *hash)
{
    uint64_t head = 0;
    for (int i = 0; i < 16 && hash[i]; i++)
        head = head << 4 | (uint64_t)(hash[i] <= '9' ? hash[i] - '0' : hash[i] - 'a' + 10);
    return head;
}

/* *id = 0: it has gone since it was planned, or another run has its number. */
static fin_status find_known(fin_store *store, const fini_known *known, int64_t *id, int64_t *state,
                             fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *id = 0;
    fin_status status = fini_sql_get(store, FINI_SQL_KNOWN_FIND, &statement, err);
    if (status || known->id == 0)
        return status;
    sqlite3_bind_int64(statement, 1, known->id);
    status = fini_sql_step(store, statement, &row, err);
    const char *hash = row ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (!status && hash && fini_is_hash(hash) && fini_hash_head(hash) == known->hash) {
        *id = known->id;
        status = fini_sql_integer(store, statement, 1, FIN_STATE_PLANNED, FIN_STATE_FAILED,
                                  "the state of a run", state, err);
    }
    sqlite3_reset(statement);
    return status;
}

static fin_status keep_run(fin_store *store, fini_plan_of *plan_of, const void *study,
                           const fini_done *done, fin_error *err)
{
    char reason[sizeof done->reason];
    int64_t id, state = FIN_STATE_PLANNED;
    const fin_result *result = done->state == FIN_STATE_DONE ? done->result : NULL;
    fin_status status = find_known(store, &done->known, &id, &state, err);
    if (!status && id == 0) {
        fin_plan plan;
        status = plan_of(study, done->position, &plan, err);
        if (!status)
            status = fini_store_settings(store, &plan, 0, "{}", &id, &state, err);
    }
    if (status || state == FIN_STATE_DONE)
        return status;
    fini_printable(done->reason, strnlen(done->reason, sizeof done->reason), reason, sizeof reason);
    FINI_TRY(put_run(store, id, done, reason, err));
    for (int i = 0; result && i < fin_result_scalar_count(result); i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        FINI_TRY(fini_store_add_scalar(store, id, &scalar, err));
    }
    for (int i = 0; result && i < fin_result_series_count(result); i++) {
        fin_series series = fin_result_get_series(result, i);
        FINI_TRY(fini_store_add_series(store, id, &series, err));
    }
    return FIN_OK;
}

fin_status fini_store_keep(fin_store *store, fini_plan_of *plan_of, const void *study,
                           const fini_done *done, int count, fin_error *err)
{
    fin_status status = fini_store_begin(store, err);
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++) {
        if (done[i].state != FIN_STATE_DONE && done[i].state != FIN_STATE_FAILED)
            status = fini_fail(err, FIN_ERR_ARGUMENT, "a finished run is done or failed");
        if (!status)
            status = keep_run(store, plan_of, study, &done[i], err);
    }
    return fini_store_end(store, status, err);
}

void fini_plan_hash(char hash[FIN_HASH_TEXT], const char *block, const char *run)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s %.400s", hash, run, block);
    fini_hash(line, hash);
}
