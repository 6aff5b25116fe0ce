/* Runs, scalars and series of a store, row by row, as a query asks for them. */
#include "store/store.h"

#include <string.h>

const char fini_sql_series[] =
    "SELECT n.name, s.dtype, s.shape, s.data FROM series AS s JOIN names AS n "
    "ON n.id = s.name_id WHERE s.run_id = ?1 ORDER BY n.name";

fin_status fini_read_series(const fin_store *store, sqlite3_stmt *statement, bool data,
                            fin_series *out, fin_error *err)
{
    memset(out, 0, sizeof *out);
    FINI_TRY(fini_sql_text(store, statement, 0, FINI_STORE_TEXT, "the name of a series", &out->name,
                           err));
    return fini_blob_read(store, statement, 1, data, out, err);
}

/* What is done with every run: one of the three functions is called. */
typedef struct visit {
    fin_store *store;
    sqlite3_stmt *statement; /* series of a run */
    fini_sheet sheet;        /* scalars of a run */
    bool data;
    void *user;
    fin_status (*run)(void *user, const fin_run_row *run, fin_error *err);
    fin_status (*scalar)(void *user, const fin_run_row *run, const fin_scalar *scalar,
                         fin_error *err);
    fin_status (*series)(void *user, const fin_run_row *run, const fin_series *series,
                         fin_error *err);
} visit;

static fin_status visit_scalars(visit *v, int64_t id, const fin_run_row *run, fin_error *err)
{
    FINI_TRY(fini_sheet_read(&v->sheet, id, err));
    for (int64_t i = 0; i < v->sheet.count; i++)
        FINI_TRY(v->scalar(v->user, run, &v->sheet.rows[i].scalar, err));
    return FIN_OK;
}

static fin_status visit_series(visit *v, int64_t id, const fin_run_row *run, fin_error *err)
{
    bool row = false;
    fin_series series;
    fin_status status = FIN_OK;
    sqlite3_bind_int64(v->statement, 1, id);
    while (!status && !(status = fini_sql_step(v->store, v->statement, &row, err)) && row) {
        status = fini_read_series(v->store, v->statement, v->data, &series, err);
        if (!status)
            status = v->series(v->user, run, &series, err);
        fini_free((void *)series.data);
    }
    sqlite3_reset(v->statement);
    return status;
}

static fin_status visit_run(visit *v, const fini_cursor *cursor, fin_error *err)
{
    if (v->run)
        return v->run(v->user, &cursor->run, err);
    if (cursor->run.state == FIN_STATE_PLANNED)
        return FIN_OK;
    return (v->scalar ? visit_scalars : visit_series)(v, cursor->id, &cursor->run, err);
}

static fin_status visit_all(visit *v, const fin_query *query, fin_error *err)
{
    fini_cursor cursor;
    bool more = true;
    fin_status status = fini_cursor_open(v->store, query, FINI_CURSOR_ROWS, &cursor, err);
    if (!status && v->scalar)
        status = fini_sheet_open(v->store, &v->sheet, err);
    if (!status && v->series)
        status = fini_sql_prepare(v->store, fini_sql_series, &v->statement, err);
    while (!status && !(status = fini_cursor_next(&cursor, &more, err)) && more)
        status = visit_run(v, &cursor, err);
    fini_sheet_close(&v->sheet);
    sqlite3_finalize(v->statement);
    fini_cursor_close(&cursor);
    return status;
}

fin_status fin_store_runs(fin_store *store, const fin_query *query,
                          fin_status (*row)(void *user, const fin_run_row *run, fin_error *err),
                          void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    visit v = {.store = store, .user = user, .run = row};
    return visit_all(&v, query, err);
}

fin_status fin_store_scalars(fin_store *store, const fin_query *query,
                             fin_status (*row)(void *user, const fin_run_row *run,
                                               const fin_scalar *scalar, fin_error *err),
                             void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    visit v = {.store = store, .user = user, .scalar = row};
    return visit_all(&v, query, err);
}

fin_status fin_store_series(fin_store *store, const fin_query *query, int data,
                            fin_status (*row)(void *user, const fin_run_row *run,
                                              const fin_series *series, fin_error *err),
                            void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    visit v = {.store = store, .user = user, .series = row, .data = data != 0};
    return visit_all(&v, query, err);
}
