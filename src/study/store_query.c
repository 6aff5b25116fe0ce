/* Runs, scalars and series of a store, row by row, as a query asks for them. */
#include "study/store.h"

#include <string.h>

const char fini_sql_scalars[] =
    "SELECT n.name, s.value, s.error, s.how, s.samples FROM scalars AS s JOIN names AS n "
    "ON n.id = s.name_id WHERE s.run_id = ?1 ORDER BY n.name";
const char fini_sql_series[] =
    "SELECT n.name, s.dtype, s.shape, s.data FROM series AS s JOIN names AS n "
    "ON n.id = s.name_id WHERE s.run_id = ?1 ORDER BY n.name";

fin_status fini_read_scalar(const fin_store *store, sqlite3_stmt *statement, fin_scalar *out,
                            fin_error *err)
{
    int64_t how = 0;
    fin_status status = fini_sql_text(store, statement, 0, FINI_STORE_TEXT, "the name of a scalar",
                                      &out->name, err);
    if (!status)
        status = fini_sql_integer(store, statement, 3, 0, FIN_HOW_COUNT - 1,
                                  "how a scalar came about", &how, err);
    if (!status)
        status = fini_sql_integer(store, statement, 4, 0, INT64_MAX, "a number of samples",
                                  &out->samples, err);
    out->value = fini_sql_double(statement, 1);
    out->error = fini_sql_double(statement, 2);
    out->how = (fin_how)how;
    return status;
}

fin_status fini_read_series(const fin_store *store, sqlite3_stmt *statement, bool data,
                            fin_series *out, fin_error *err)
{
    memset(out, 0, sizeof *out);
    fin_status status = fini_sql_text(store, statement, 0, FINI_STORE_TEXT, "the name of a series",
                                      &out->name, err);
    return status ? status : fini_blob_read(store, statement, 1, data, out, err);
}

/* What is done with every run; rows of `detail` belong to it. */
typedef struct visit {
    fin_store *store;
    sqlite3_stmt *detail; /* NULL: the runs themselves */
    bool data;
    void *user;
    fin_status (*run)(void *user, const fin_run_row *run, fin_error *err);
    fin_status (*scalar)(void *user, const fin_run_row *run, const fin_scalar *scalar,
                         fin_error *err);
    fin_status (*series)(void *user, const fin_run_row *run, const fin_series *series,
                         fin_error *err);
} visit;

static fin_status visit_detail(const visit *v, const fin_run_row *run, fin_error *err)
{
    fin_scalar scalar;
    fin_series series;
    fin_status status;
    if (v->scalar) {
        status = fini_read_scalar(v->store, v->detail, &scalar, err);
        return status ? status : v->scalar(v->user, run, &scalar, err);
    }
    status = fini_read_series(v->store, v->detail, v->data, &series, err);
    if (!status)
        status = v->series(v->user, run, &series, err);
    fini_free((void *)series.data);
    return status;
}

static fin_status visit_run(const visit *v, fini_cursor *cursor, fin_error *err)
{
    fin_run_row run;
    bool row = false;
    fin_status status = FIN_OK;
    if (!v->detail) {
        status = fini_cursor_row(cursor, &run, err);
        return status ? status : v->run(v->user, &run, err);
    }
    if (fini_cursor_id(cursor) == 0)
        return FIN_OK;
    status = fini_cursor_row(cursor, &run, err);
    sqlite3_bind_int64(v->detail, 1, fini_cursor_id(cursor));
    while (!status && !(status = fini_sql_step(v->store, v->detail, &row, err)) && row)
        status = visit_detail(v, &run, err);
    sqlite3_reset(v->detail);
    return status;
}

static fin_status visit_all(visit *v, const fin_query *query, const char *detail, fin_error *err)
{
    fini_cursor *cursor;
    bool more = true;
    fin_status status = fini_cursor_open(v->store, query, &cursor, err);
    if (!status && detail)
        status = fini_sql_prepare(v->store, detail, &v->detail, err);
    while (!status && !(status = fini_cursor_next(cursor, &more, err)) && more)
        status = visit_run(v, cursor, err);
    sqlite3_finalize(v->detail);
    fini_cursor_close(cursor);
    return status;
}

fin_status fin_store_runs(fin_store *store, const fin_query *query,
                          fin_status (*row)(void *user, const fin_run_row *run, fin_error *err),
                          void *user, fin_error *err)
{
    visit v = {.store = store, .user = user, .run = row};
    return visit_all(&v, query, NULL, err);
}

fin_status fin_store_scalars(fin_store *store, const fin_query *query,
                             fin_status (*row)(void *user, const fin_run_row *run,
                                               const fin_scalar *scalar, fin_error *err),
                             void *user, fin_error *err)
{
    visit v = {.store = store, .user = user, .scalar = row};
    return visit_all(&v, query, fini_sql_scalars, err);
}

fin_status fin_store_series(fin_store *store, const fin_query *query, int data,
                            fin_status (*row)(void *user, const fin_run_row *run,
                                              const fin_series *series, fin_error *err),
                            void *user, fin_error *err)
{
    visit v = {.store = store, .user = user, .series = row, .data = data != 0};
    return visit_all(&v, query, fini_sql_series, err);
}
