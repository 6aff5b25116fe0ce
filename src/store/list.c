/* Studies, sessions and claims of a store. */
#include "store/store.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { SOME = 1 << 30 };

/* Texts of `count` columns, from the first on. */
static fin_status read_texts(const fin_store *store, sqlite3_stmt *statement, int first, int count,
                             const char *what, const char **texts, fin_error *err)
{
    for (int i = 0; i < count; i++)
        FINI_TRY(fini_sql_text(store, statement, first + i, FINI_STORE_TEXT, what, &texts[i], err));
    return FIN_OK;
}

/* ---- studies --------------------------------------------------------------------------------- */

static fin_status count_runs(fin_store *store, sqlite3_stmt *count, int64_t id, fin_study_row *out,
                             fin_error *err)
{
    bool row = false;
    sqlite3_bind_int64(count, 1, id);
    fin_status status = fini_sql_step(store, count, &row, err);
    if (!status && row) {
        out->planned = sqlite3_column_int64(count, 0);
        out->done = sqlite3_column_int64(count, 1);
        out->failed = sqlite3_column_int64(count, 2);
        out->seconds = sqlite3_column_double(count, 3);
        out->claims = sqlite3_column_int(count, 4);
        out->held = sqlite3_column_int(count, 5);
    }
    sqlite3_reset(count);
    return status;
}

fin_status fin_store_studies(fin_store *store,
                             fin_status (*row)(void *user, const fin_study_row *study,
                                               fin_error *err),
                             void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    sqlite3_stmt *studies = NULL, *count = NULL;
    bool more, mine;
    fin_status status = fini_store_look(store, &mine, err);
    if (!status)
        status = fini_sql_prepare(store,
                                  "SELECT id, full, name, title, source FROM studies ORDER BY name",
                                  &studies, err);
    if (!status)
        status = fini_sql_prepare(
            store,
            "SELECT count(*), total(r.state = 1), total(r.state = 2), total(r.seconds), "
            "(SELECT count(*) FROM claims WHERE study_id = ?1), "
            "(SELECT count(*) FROM claims WHERE study_id = ?1 AND verdict = 1) "
            "FROM plan AS p LEFT JOIN runs AS r ON r.id = p.run_id WHERE p.study_id = ?1",
            &count, err);
    while (!status && !(status = fini_sql_step(store, studies, &more, err)) && more) {
        const char *texts[3];
        fin_study_row study = {.full = sqlite3_column_int(studies, 1) != 0};
        status = read_texts(store, studies, 2, 3, "the name or title of a study", texts, err);
        if (!status)
            status = count_runs(store, count, sqlite3_column_int64(studies, 0), &study, err);
        study.name = texts[0];
        study.title = texts[1];
        study.source = texts[2];
        if (!status)
            status = row(user, &study, err);
    }
    sqlite3_finalize(studies);
    sqlite3_finalize(count);
    fini_store_unlook(store, mine);
    return status;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static fin_status read_session(fin_store *store, sqlite3_stmt *statement, double now,
                               fin_session_row *out, fin_error *err)
{
    int64_t ranks = 0, threads = 0;
    fin_status status =
        read_texts(store, statement, 0, 1, "the study of a session", &out->study, err);
    if (!status)
        status = fini_sql_integer(store, statement, 1, 0, INT64_MAX, "a number of runs",
                                  &out->total, err);
    if (!status)
        status = fini_sql_integer(store, statement, 2, 0, INT64_MAX, "a number of runs", &out->done,
                                  err);
    if (!status)
        status = fini_sql_integer(store, statement, 3, 0, INT64_MAX, "a number of runs",
                                  &out->failed, err);
    if (!status)
        status = fini_sql_integer(store, statement, 4, 0, SOME, "a number of ranks", &ranks, err);
    if (!status)
        status =
            fini_sql_integer(store, statement, 5, 0, SOME, "a number of threads", &threads, err);
    double spoke = fini_sql_double(statement, 8);
    out->ranks = (int)ranks;
    out->threads = (int)threads;
    out->seconds = fini_sql_double(statement, 6);
    out->left = fini_sql_double(statement, 7);
    out->silent = now > spoke ? now - spoke : 0; /* clocks of two machines may differ */
    out->ended = sqlite3_column_type(statement, 9) != SQLITE_NULL;
    out->alive = out->ended || status ? 0 : fini_store_is_locked(store, out->study);
    return status;
}

/* The newest first. */
fin_status fin_store_sessions(fin_store *store,
                              fin_status (*row)(void *user, const fin_session_row *session,
                                                fin_error *err),
                              void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    sqlite3_stmt *statement;
    bool more;
    double now = fini_now();
    fin_status status = fini_sql_prepare(
        store,
        "SELECT study, total, done, failed, ranks, threads, seconds, left, spoke, ended "
        "FROM sessions ORDER BY id DESC",
        &statement, err);
    while (!status && !(status = fini_sql_step(store, statement, &more, err)) && more) {
        fin_session_row session;
        status = read_session(store, statement, now, &session, err);
        if (!status)
            status = row(user, &session, err);
    }
    sqlite3_finalize(statement);
    return status;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static fin_status read_claim(const fin_store *store, sqlite3_stmt *statement, fin_claim *out,
                             fin_error *err)
{
    const char *texts[11];
    int64_t verdict = 0, kind = 0;
    FINI_TRY(read_texts(store, statement, 0, 11, "a text of a claim", texts, err));
    FINI_TRY(fini_sql_integer(store, statement, 14, 0, FIN_VERDICTS - 1, "the verdict on a claim",
                              &verdict, err));
    FINI_TRY(fini_sql_integer(store, statement, 15, 0, FIN_KINDS - 1, "the kind of a claim", &kind,
                              err));
    *out = (fin_claim){.study = texts[0],
                       .id = texts[1],
                       .statement = texts[2],
                       .source = texts[3],
                       .quantity = texts[4],
                       .expected = texts[5],
                       .figure = texts[6],
                       .how = texts[7],
                       .fails_if = texts[8],
                       .known = texts[9],
                       .needed = texts[10],
                       .value = fini_sql_double(statement, 11),
                       .low = fini_sql_double(statement, 12),
                       .high = fini_sql_double(statement, 13),
                       .verdict = (fin_verdict)verdict,
                       .kind = (fin_kind)kind};
    return FIN_OK;
}

fin_status fin_store_claims(fin_store *store, const char *study,
                            fin_status (*row)(void *user, const fin_claim *claim, fin_error *err),
                            void *user, fin_error *err)
{
    FINI_NEED(err, store, row);
    sqlite3_stmt *statement = NULL;
    bool more;
    int64_t id = 0;
    fin_status status = study ? fini_store_find_study(store, study, &id, err) : FIN_OK;
    if (!status)
        status = fini_sql_prepare(
            store,
            "SELECT s.name, c.id, statement, c.source, quantity, expected, figure, how, "
            "fails_if, known, needed, value, low, high, verdict, kind FROM claims AS c JOIN "
            "studies AS s ON s.id = c.study_id "
            "WHERE ?1 IS NULL OR s.id = ?1 ORDER BY s.name, c.position",
            &statement, err);
    if (!status && study)
        sqlite3_bind_int64(statement, 1, id);
    while (!status && !(status = fini_sql_step(store, statement, &more, err)) && more) {
        fin_claim claim;
        status = read_claim(store, statement, &claim, err);
        if (!status)
            status = row(user, &claim, err);
    }
    sqlite3_finalize(statement);
    return status;
}
