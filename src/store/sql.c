/* SQLite in our words: statements, transactions, and what a row holds.
 *
 * A store is a file that anybody may have written, so no column is believed: text is checked to be
 * text, UTF-8 and of a sensible length, and numbers to be in range, before anyone else sees them.
 * SQLite's codes become messages that say what to do. */
#include "store/store.h"

#include "data/data.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- failures -------------------------------------------------------------------------------- */

static fin_status fail_system(fin_store *store, const char *action, const char *what,
                              fin_error *err)
{
    char reason[128] = "unknown error";
    int number = store->db ? sqlite3_system_errno(store->db) : 0;
    if (number)
        strerror_r(number, reason, sizeof reason);
    return fini_fail(err, FIN_ERR_IO, "cannot %s the store '%s': %s%s%s", action, store->shown,
                     what, number ? ": " : "", number ? reason : "");
}

/* Was SQLite writing? A question may do so too: to make room in memory for the pages it reads, a
 * transaction writes those that it has changed. */
static bool is_writing(int code)
{
    return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE ||
           code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC ||
           code == SQLITE_IOERR_TRUNCATE || code == SQLITE_IOERR_SHMSIZE ||
           code == SQLITE_IOERR_COMMIT_ATOMIC;
}

fin_status fini_store_fail(fin_store *store, int code, const char *action, fin_error *err)
{
    if (is_writing(code))
        action = "write to";
    const char *text = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
    char shown[FINI_SHOWN * 2];
    fini_printable(text, strlen(text), shown, sizeof shown);
    switch (code & 0xff) {
    case SQLITE_INTERRUPT:
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled; the store '%s' is as it was",
                         store->shown);
    case SQLITE_NOMEM:
        /* SQLite says the same of some records that claim to be huge. */
        return fini_fail(err, FIN_ERR_MEMORY,
                         "out of memory: cannot %s the store '%s'; if there is enough, it is "
                         "damaged",
                         action, store->shown);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_ERROR:
        return fini_fail(err, FIN_ERR_FORMAT,
                         "cannot %s the store '%s': it is damaged (%s); take a copy of it that is "
                         "not, or run the study into a new one",
                         action, store->shown, shown);
    case SQLITE_FULL:
        return fini_fail(err, FIN_ERR_IO,
                         "cannot %s the store '%s': the disk is full; what was in it is still "
                         "there; make room and go on",
                         action, store->shown);
    case SQLITE_IOERR:
        return fail_system(store, action,
                           "reading or writing failed; what was in it is still there", err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fini_fail(err, FIN_ERR_IO,
                         "cannot %s the store '%s': another program has been writing to it for "
                         "more than %d seconds; wait for it or end it",
                         action, store->shown, FINI_STORE_WAIT / 1000);
    case SQLITE_READONLY:
        return fini_fail(err, FIN_ERR_IO,
                         "cannot %s the store '%s': the file or its folder cannot be written to",
                         action, store->shown);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return fail_system(store, action, "it, or the files beside it, cannot be opened", err);
    default:
        return fini_fail(err, FIN_ERR_IO, "cannot %s the store '%s': %s", action, store->shown,
                         shown);
    }
}

fin_status fini_store_damaged(const fin_store *store, fin_error *err, const char *format, ...)
{
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return fini_fail(err, FIN_ERR_FORMAT, "the store '%s' is damaged: %s", store->shown, what);
}

fin_status fini_store_unknown(fin_store *store, const char *kind, const char *name, const char *sql,
                              int64_t parameter, fin_error *err)
{
    char shown[FINI_SHOWN], best[FINI_SHOWN] = "";
    int least = strlen(name) <= 3 ? 2 : 4, count = 0;
    sqlite3_stmt *statement;
    FINI_TRY(fini_sql_prepare(store, sql, &statement, err));
    sqlite3_bind_int64(statement, 1, parameter);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *other = (const char *)sqlite3_column_text(statement, 0);
        if (!other)
            continue;
        count++;
        bool starts = strlen(name) >= 3 && strncmp(name, other, strlen(name)) == 0;
        int distance = starts ? 1 : fini_edit_distance(name, other, least - 1);
        if (distance < least || count == 1) /* the first one: better than nothing */
            fini_printable(other, strlen(other), best, sizeof best);
        least = distance < least ? distance : least;
    }
    sqlite3_finalize(statement);
    fini_printable(name, strlen(name), shown, sizeof shown);
    if (count == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the store '%s' has no %s '%s': it has none",
                         store->shown, kind, shown);
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "the store '%s' has no %s '%s'; it has, for example, '%s'", store->shown, kind,
                     shown, best);
}

/* ---- statements ------------------------------------------------------------------------------ */

fin_status fini_sql_prepare(fin_store *store, const char *sql, sqlite3_stmt **out, fin_error *err)
{
    int code = sqlite3_prepare_v2(store->db, sql, -1, out, NULL);
    return code ? fini_store_fail(store, code, "read", err) : FIN_OK;
}

fin_status fini_sql_get(fin_store *store, fini_sql which, sqlite3_stmt **out, fin_error *err)
{
    static const char *const texts[FINI_SQL_COUNT] = {
#define FINI_SQL_TEXT(name, text) text,
        FINI_SQL_LIST(FINI_SQL_TEXT)
#undef FINI_SQL_TEXT
    };
    sqlite3_stmt **statement = &store->statements[which];
    int code = SQLITE_OK;
    if (*statement)
        sqlite3_reset(*statement);
    else
        code = sqlite3_prepare_v3(store->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement,
                                  NULL);
    *out = *statement;
    return code ? fini_store_fail(store, code, "use", err) : FIN_OK;
}

fin_status fini_sql_step(fin_store *store, sqlite3_stmt *statement, bool *row, fin_error *err)
{
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return FIN_OK;
    bool reads = sqlite3_column_count(statement) > 0; /* BEGIN and COMMIT write */
    fin_status status = FIN_OK;
    if (code != SQLITE_DONE)
        status = fini_store_fail(store, code, reads ? "read" : "write to", err);
    sqlite3_reset(statement);
    return status;
}

fin_status fini_sql_run(fin_store *store, fini_sql which, fin_error *err)
{
    bool row;
    sqlite3_stmt *statement;
    FINI_TRY(fini_sql_get(store, which, &statement, err));
    return fini_sql_step(store, statement, &row, err);
}

fin_status fini_sql_number(fin_store *store, const char *sql, int64_t parameter, int64_t *number,
                           fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *number = 0;
    FINI_TRY(fini_sql_prepare(store, sql, &statement, err));
    if (sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, parameter);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && row)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

void fini_sql_bind_number(sqlite3_stmt *statement, int parameter, double number)
{
    if (isnan(number))
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_double(statement, parameter, number);
}

/* The text must stay until the statement has been stepped. */
void fini_sql_bind_text(sqlite3_stmt *statement, int parameter, const char *text)
{
    sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC);
}

double fini_sql_double(sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(statement, column)
                                                          : (double)NAN;
}

bool fini_is_utf8(const char *text, size_t size)
{
    const char *p = text, *end = text + size;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8) { /* nearly always all of it is ASCII */
            memcpy(&eight, p, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                p += 8;
                continue;
            }
        }
        int length = fini_utf8_length(p, end);
        if (length == 0)
            return false;
        p += length;
    }
    return true;
}

bool fini_is_hash(const char *text)
{
    return strlen(text) == FIN_HASH_TEXT - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

fin_status fini_sql_text(const fin_store *store, sqlite3_stmt *statement, int column, int most,
                         const char *what, const char **text, fin_error *err)
{
    *text = "";
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return fini_store_damaged(store, err, "%s is no text", what);
    const char *found = (const char *)sqlite3_column_text(statement, column);
    int size = sqlite3_column_bytes(statement, column);
    if (!found)
        return fini_fail_memory(err, (size_t)size, "text from a store");
    if (size > most)
        return fini_store_damaged(store, err, "%s has %d bytes; at most %d make sense", what, size,
                                  most);
    if (strlen(found) != (size_t)size || !fini_is_utf8(found, (size_t)size))
        return fini_store_damaged(store, err, "%s is not valid UTF-8 text", what);
    *text = found;
    return FIN_OK;
}

fin_status fini_sql_integer(const fin_store *store, sqlite3_stmt *statement, int column,
                            int64_t least, int64_t most, const char *what, int64_t *number,
                            fin_error *err)
{
    *number = sqlite3_column_int64(statement, column);
    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER || *number < least ||
        *number > most) {
        *number = least;
        return fini_store_damaged(store, err, "%s is not between %lld and %lld", what,
                                  (long long)least, (long long)most);
    }
    return FIN_OK;
}

/* SQL's number(x): what a number or a JSON text, which may be a string, is as a number; NULL if it is
 * none, or NaN. SQLite's own conversion of decimals is not right to the last bit. */
void fini_sql_number_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    double number;
    (void)count;
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT) {
        sqlite3_result_value(context, values[0]);
        return;
    }
    const char *text = (const char *)sqlite3_value_text(values[0]);
    int length = sqlite3_value_bytes(values[0]);
    bool quoted = text && length >= 2 && text[0] == '"' && text[length - 1] == '"';
    if (text && fini_text_number(text + quoted, length - 2 * quoted, &number) && !isnan(number))
        sqlite3_result_double(context, number);
}

/* ---- transactions ---------------------------------------------------------------------------- */

fin_status fini_store_begin(fin_store *store, fin_error *err)
{
    if (!store->writes)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the store '%s' was opened to be read only",
                         store->shown);
    return fini_sql_run(store, FINI_SQL_BEGIN, err);
}

/* Ends every statement that is still at a row: COMMIT and ROLLBACK must not find one. */
static void reset_all(fin_store *store)
{
    for (int i = 0; i < FINI_SQL_COUNT; i++)
        if (store->statements[i]) {
            sqlite3_reset(store->statements[i]);
            sqlite3_clear_bindings(store->statements[i]);
        }
}

fin_status fini_store_end(fin_store *store, fin_status status, fin_error *err)
{
    reset_all(store);
    if (!status)
        status = fini_sql_run(store, FINI_SQL_COMMIT, err);
    if (!status)
        return FIN_OK;
    fini_store_forget_names(store); /* some may be gone with the transaction */
    if (!sqlite3_get_autocommit(store->db))
        (void)fini_sql_run(store, FINI_SQL_ROLLBACK, NULL);
    return status;
}

fin_status fini_store_look(fin_store *store, bool *mine, fin_error *err)
{
    *mine = false;
    if (!sqlite3_get_autocommit(store->db))
        return FIN_OK;
    int code = sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL);
    *mine = code == SQLITE_OK;
    return code ? fini_store_fail(store, code, "read", err) : FIN_OK;
}

void fini_store_unlook(fin_store *store, bool mine)
{
    if (mine && !sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL); /* nothing was written */
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Names are never removed from the file, so that a number that is remembered here stays right
 * whatever other programs do. */
void fini_store_forget_names(fin_store *store)
{
    for (int i = 0; i < store->name_count; i++)
        fini_free(store->names[i].name);
    store->name_count = store->name_next = 0;
}

static fin_status remember(fin_store *store, const char *name, int64_t id, fin_error *err)
{
    size_t size = strlen(name) + 1;
    if (store->name_count == FINI_STORE_NAMES)
        fini_store_forget_names(store);
    char *copy = fini_alloc(size);
    if (!copy)
        return fini_fail_memory(err, size, "a name in a store");
    memcpy(copy, name, size);
    store->names[store->name_count].name = copy;
    store->names[store->name_count++].id = id;
    return FIN_OK;
}

/* Runs have the same names in the same order: the name after the last one is tried first. */
static int64_t recall(fin_store *store, const char *name)
{
    for (int i = 0; i < store->name_count; i++) {
        int k = (store->name_next + i) % store->name_count;
        if (strcmp(store->names[k].name, name) == 0) {
            store->name_next = k + 1;
            return store->names[k].id;
        }
    }
    return 0;
}

fin_status fini_store_name(fin_store *store, const char *name, bool add, int64_t *id,
                           fin_error *err)
{
    bool row;
    size_t size = strlen(name);
    *id = recall(store, name);
    if (*id)
        return FIN_OK;
    if (size == 0 || size > FINI_STORE_TEXT || !fini_is_utf8(name, size))
        return add ? fini_fail(err, FIN_ERR_ARGUMENT,
                               "a name in a store is UTF-8 text of 1 to %d bytes", FINI_STORE_TEXT)
                   : FIN_OK;
    sqlite3_stmt *statement;
    FINI_TRY(fini_sql_get(store, FINI_SQL_NAME_FIND, &statement, err));
    fini_sql_bind_text(statement, 1, name);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && row)
        *id = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (!status && *id == 0 && add) {
        FINI_TRY(fini_sql_get(store, FINI_SQL_NAME_ADD, &statement, err));
        fini_sql_bind_text(statement, 1, name);
        status = fini_sql_step(store, statement, &row, err);
        sqlite3_clear_bindings(statement);
        *id = sqlite3_last_insert_rowid(store->db);
    }
    return status || *id == 0 ? status : remember(store, name, *id, err);
}

fin_status fini_store_find_study(fin_store *store, const char *name, int64_t *id, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *id = 0;
    FINI_TRY(fini_sql_prepare(store, "SELECT id FROM studies WHERE name = ?1", &statement, err));
    fini_sql_bind_text(statement, 1, name);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && row)
        *id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    if (status || row)
        return status;
    return fini_store_unknown(store, "study", name,
                              "SELECT name FROM studies WHERE ?1 = 0 ORDER BY name", 0, err);
}

double fini_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
