/* What no study wants any more, and the space it took. */
#include "store/store.h"

#include <string.h>

/* ?1: the study that goes; its plan does not count. */
#define UNWANTED "NOT EXISTS(SELECT 1 FROM plan WHERE run_id = settings.id AND study_id IS NOT ?1)"

static fin_status change(fin_store *store, const char *sql, int64_t study, int64_t *count,
                         fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_prepare(store, sql, &statement, err));
    sqlite3_bind_int64(statement, 1, study);
    fin_status status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    *count = sqlite3_changes(store->db);
    return status;
}

/* What it would be, more or less: the texts and blobs, and some bytes for every number. */
static fin_status count_only(fin_store *store, int64_t study, fin_gc_count *count, fin_error *err)
{
    int64_t texts = 0, numbers = 0, series = 0;
    FINI_TRY(fini_sql_number(store,
                             "SELECT count(*) FROM settings JOIN runs USING(id) WHERE " UNWANTED,
                             study, &count->runs, err));
    FINI_TRY(fini_sql_number(store, "SELECT sum(length(own) + 150) FROM settings WHERE " UNWANTED,
                             study, &texts, err));
    FINI_TRY(fini_sql_number(store,
                             "SELECT 40 * count(*) FROM settings JOIN scalars AS n ON "
                             "n.run_id = settings.id WHERE " UNWANTED,
                             study, &numbers, err));
    FINI_TRY(fini_sql_number(store,
                             "SELECT sum(length(data)) FROM settings JOIN series AS n ON "
                             "n.run_id = settings.id WHERE " UNWANTED,
                             study, &series, err));
    count->studies = study != 0;
    count->bytes = texts + numbers + series;
    return FIN_OK;
}

static fin_status size_of(fin_store *store, int64_t *bytes, fin_error *err)
{
    int64_t pages = 0, size = 0;
    FINI_TRY(fini_sql_number(store, "PRAGMA page_count", 0, &pages, err));
    FINI_TRY(fini_sql_number(store, "PRAGMA page_size", 0, &size, err));
    *bytes = pages * size;
    return FIN_OK;
}

static fin_status sweep(fin_store *store, int64_t study, fin_gc_count *count, fin_error *err)
{
    int64_t other;
    FINI_TRY(fini_store_begin(store, err));
    fin_status status =
        change(store, "DELETE FROM studies WHERE id = ?1", study, &count->studies, err);
    if (!status)
        status = fini_sql_number(
            store, "SELECT count(*) FROM settings JOIN runs USING(id) WHERE " UNWANTED, study,
            &count->runs, err);
    if (!status)
        status = change(store, "DELETE FROM settings WHERE " UNWANTED, study, &other, err);
    if (!status)
        status = change(store,
                        "DELETE FROM common WHERE ?1 = ?1 AND id NOT IN (SELECT common_id "
                        "FROM settings)",
                        study, &other, err);
    return fini_store_end(store, status, err);
}

/* Runs that a study is about to want are in no plan yet: with a pass under way nothing goes. */
static fin_status remove_all(fin_store *store, int64_t study, fin_gc_count *count, fin_error *err)
{
    int64_t before = 0, after = 0;
    FINI_TRY(size_of(store, &before, err));
    FINI_TRY(sweep(store, study, count, err));
    int code = sqlite3_exec(store->db, "VACUUM", NULL, NULL, NULL);
    if (!code) /* a reader may keep the log: then whoever closes the store last folds it */
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (code)
        return fini_store_fail(store, code, "tidy up", err);
    FINI_TRY(size_of(store, &after, err));
    count->bytes = before > after ? before - after : 0;
    return FIN_OK;
}

fin_status fin_store_gc(fin_store *store, const char *drop, int dry, fin_gc_count *count,
                        fin_error *err)
{
    FINI_NEED(err, store);
    fin_gc_count own;
    int64_t study = 0;
    count = count ? count : &own;
    *count = (fin_gc_count){0};
    FINI_TRY(drop ? fini_store_find_study(store, drop, &study, err) : FIN_OK);
    if (dry)
        return count_only(store, study, count, err);
    FINI_TRY(fini_store_lock_all(store, err));
    fin_status status = remove_all(store, study, count, err);
    fini_store_unlock(store);
    return status;
}
