/* What a pass of a study says about itself while it runs, and the claims of a study. */
#include "store/store.h"

#include <math.h>
#include <string.h>

enum { SESSIONS_KEPT = 100 };

/* ---- sessions -------------------------------------------------------------------------------- */

static fin_status add_session(fin_store *store, int64_t *id, const char *study, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_prepare(
        store,
        "INSERT INTO sessions(study, started, total, done, failed, ranks, threads) "
        "VALUES(?1, ?2, 0, 0, 0, 0, 0)",
        &statement, err));
    fini_sql_bind_text(statement, 1, study);
    sqlite3_bind_double(statement, 2, fini_now());
    fin_status status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    *id = sqlite3_last_insert_rowid(store->db);
    if (status)
        return status;
    FINI_TRY(fini_sql_prepare(store,
                              "DELETE FROM sessions WHERE id <= (SELECT id FROM sessions "
                              "ORDER BY id DESC LIMIT 1 OFFSET ?1)",
                              &statement, err));
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
    FINI_TRY(fini_sql_get(store, FINI_SQL_SESSION_SAY, &statement, err));
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
    FINI_TRY(fini_store_end(store, status, err));
    *id = number;
    return FIN_OK;
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

/* ---- claims ---------------------------------------------------------------------------------- */

static fin_status add_claim(fin_store *store, int64_t study, int position, const fin_claim *claim,
                            fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    const char *texts[] = {claim->id,       claim->statement, claim->source, claim->quantity,
                           claim->expected, claim->figure,    claim->how,    claim->fails_if,
                           claim->known,    claim->needed};
    FINI_TRY(fini_sql_get(store, FINI_SQL_CLAIM_ADD, &statement, err));
    sqlite3_bind_int64(statement, 1, study);
    sqlite3_bind_int(statement, 2, position);
    for (int k = 0; k < 10; k++)
        fini_sql_bind_text(statement, 3 + k, texts[k] ? texts[k] : "");
    fini_sql_bind_number(statement, 13, claim->value);
    fini_sql_bind_number(statement, 14, claim->low);
    fini_sql_bind_number(statement, 15, claim->high);
    sqlite3_bind_int(statement, 16, (int)claim->verdict);
    sqlite3_bind_int(statement, 17, (int)claim->kind);
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_store_delete_claims(fin_store *store, int64_t id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_prepare(store, "DELETE FROM claims WHERE study_id = ?1", &statement, err));
    sqlite3_bind_int64(statement, 1, id);
    fin_status status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

fin_status fini_store_keep_claims(fin_store *store, const char *study, const fin_claim *claims,
                                  int count, fin_error *err)
{
    int64_t id;
    FINI_TRY(fini_store_begin(store, err));
    fin_status status = fini_store_still_has(store, study, &id, err);
    if (!status)
        status = fini_store_delete_claims(store, id, err);
    for (int i = 0; i < count && !status; i++)
        status = add_claim(store, id, i, &claims[i], err);
    return fini_store_end(store, status, err);
}
