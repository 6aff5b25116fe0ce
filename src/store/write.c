/* Finished runs into the store.
 *
 * A run that the store has is left alone: its numbers are those that would be written. Only a
 * failed run is replaced. Whoever calls often has few runs in a call, so what a transaction
 * costs counts: statements are prepared once, names are remembered, and nothing waits for the
 * disk. */
#include "store/store.h"

#include "data/data.h"
#include "finetti/kernel.h"

#include <math.h>
#include <string.h>

/* A run in the store with our hash but other settings: either hashes collide, which nobody will see
 * by accident, or somebody wrote it by hand. */
static fin_status other_settings(const fin_store *store, const char *hash, fin_error *err)
{
    return fini_store_damaged(store, err,
                              "run %s has other settings than those its hash stands for", hash);
}

fin_status fini_store_find_run(fin_store *store, const fin_plan *plan, int64_t *id, int64_t *state,
                               fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    const char *settings;
    *id = 0;
    *state = FIN_STATE_PLANNED;
    fin_status status = fini_sql_get(store, FINI_SQL_RUN_FIND, &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, plan->hash);
    status = fini_sql_step(store, statement, &row, err);
    if (status || !row)
        return status;
    *id = sqlite3_column_int64(statement, 0);
    status = fini_sql_integer(store, statement, 1, FIN_STATE_DONE, FIN_STATE_FAILED,
                              "the state of a run", state, err);
    if (!status)
        status = fini_sql_text(store, statement, 2, FIN_SETTINGS_TEXT, "the settings of a run",
                               &settings, err);
    if (!status && strcmp(settings, plan->settings) != 0)
        status = other_settings(store, plan->hash, err);
    sqlite3_reset(statement);
    return status;
}

static fin_status add_run(fin_store *store, const fin_plan *plan, const fini_done *done,
                          const char *reason, int64_t *id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    const char *seed;
    int length;
    double number;
    fin_status status = fini_sql_get(store, FINI_SQL_RUN_ADD, &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, plan->hash);
    fini_sql_bind_text(statement, 2, plan->command);
    fini_sql_bind_text(statement, 3, plan->settings);
    if (fini_setting_find(plan->settings, "seed", &seed, &length) &&
        fini_text_number(seed, length, &number) && fabs(number) < 9e15)
        sqlite3_bind_int64(statement, 4, (int64_t)number);
    else
        sqlite3_bind_null(statement, 4);
    sqlite3_bind_int(statement, 5, (int)done->state);
    fini_sql_bind_text(statement, 6, reason);
    fini_sql_bind_text(statement, 7, fin_version());
    fini_sql_bind_text(statement, 8, fin_kernel_name());
    fini_sql_bind_number(statement, 9, done->seconds);
    sqlite3_bind_double(statement, 10, fini_now());
    status = fini_sql_step(store, statement, &row, err);
    *id = sqlite3_last_insert_rowid(store->db);
    return status;
}

static fin_status delete_of(fin_store *store, fini_sql which, int64_t id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_get(store, which, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    return fini_sql_step(store, statement, &row, err);
}

static fin_status change_run(fin_store *store, int64_t id, const fini_done *done,
                             const char *reason, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = delete_of(store, FINI_SQL_SCALARS_DELETE, id, err);
    if (!status)
        status = delete_of(store, FINI_SQL_SERIES_DELETE, id, err);
    if (!status)
        status = fini_sql_get(store, FINI_SQL_RUN_CHANGE, &statement, err);
    if (status)
        return status;
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
    fin_status status = fini_store_name(store, scalar->name, true, &name, err);
    if (!status)
        status = fini_sql_get(store, FINI_SQL_SCALAR_ADD, &statement, err);
    if (status)
        return status;
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

static fin_status keep_run(fin_store *store, const fin_plan *plan, const fini_done *done,
                           fin_error *err)
{
    char reason[sizeof done->reason];
    int64_t id, state;
    const fin_result *result = done->state == FIN_STATE_DONE ? done->result : NULL;
    fin_status status = fini_store_find_run(store, plan, &id, &state, err);
    if (status || state == FIN_STATE_DONE)
        return status;
    fini_printable(done->reason, strnlen(done->reason, sizeof done->reason), reason, sizeof reason);
    status = id ? change_run(store, id, done, reason, err)
                : add_run(store, plan, done, reason, &id, err);
    for (int i = 0; result && i < fin_result_scalar_count(result) && !status; i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        status = fini_store_add_scalar(store, id, &scalar, err);
    }
    for (int i = 0; result && i < fin_result_series_count(result) && !status; i++) {
        fin_series series = fin_result_get_series(result, i);
        status = fini_store_add_series(store, id, &series, err);
    }
    return status;
}

fin_status fini_store_keep(fin_store *store, fini_plan_of *plan_of, const void *study,
                           const fini_done *done, int count, fin_error *err)
{
    fin_plan plan;
    fin_status status = fini_store_begin(store, err);
    if (status)
        return status;
    for (int i = 0; i < count && !status; i++) {
        if (done[i].state != FIN_STATE_DONE && done[i].state != FIN_STATE_FAILED)
            status = fini_fail(err, FIN_ERR_ARGUMENT, "a finished run is done or failed");
        if (!status)
            status = plan_of(study, done[i].position, &plan, err);
        if (!status)
            status = keep_run(store, &plan, &done[i], err);
    }
    return fini_store_end(store, status, err);
}
