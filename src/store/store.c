/* The store: one SQLite file.
 *
 * It is in WAL mode: one writer and any number of readers at the same time, a commit without
 * waiting for the disk, and after a kill -9 exactly the transactions that were committed. The
 * last program to close it folds the log into the file, so that one file is all there is to
 * copy.
 *
 * A file is looked at with plain reads before SQLite gets it, because SQLite changes what it
 * opens (it folds logs, it rolls back journals): what is refused stays as it was. Then the
 * tables are compared, text by text, with those that this file would create: a store with other
 * tables, with triggers or views, was not made by us. */
#include "store/store.h"

#include "data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The settings of a run are those that its block has in common, and its own: what a query looks at
 * is short. scalars are kept by name, because columns are what is asked for; (run_id) serves one run
 * at a time and its removal. NaN is NULL, infinities are themselves. */
static const struct {
    int first, last; /* schemas that have it */
    const char *name, *sql;
} schema[] = {
    {1, 3, "studies",
     "CREATE TABLE studies(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
     "title TEXT NOT NULL, source TEXT NOT NULL, text TEXT NOT NULL, "
     "changes TEXT NOT NULL, full INTEGER NOT NULL, hash TEXT NOT NULL)"},
    {1, 1, "plan",
     "CREATE TABLE plan(study_id INTEGER NOT NULL REFERENCES studies(id) ON DELETE CASCADE, "
     "position INTEGER NOT NULL, block TEXT NOT NULL, hash TEXT NOT NULL, "
     "PRIMARY KEY(study_id, position)) WITHOUT ROWID"},
    {1, 1, "plan_hash", "CREATE INDEX plan_hash ON plan(hash)"},
    {1, 1, "runs",
     "CREATE TABLE runs(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, "
     "command TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER, state INTEGER NOT NULL, "
     "reason TEXT NOT NULL, version TEXT NOT NULL, kernel TEXT NOT NULL, seconds REAL, "
     "finished REAL)"},
    {1, 1, "runs_failed", "CREATE INDEX runs_failed ON runs(state) WHERE state = 2"},
    {2, 3, "common",
     "CREATE TABLE common(id INTEGER PRIMARY KEY, command TEXT NOT NULL, "
     "text TEXT NOT NULL)"},
    {2, 3, "settings",
     "CREATE TABLE settings(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, "
     "common_id INTEGER NOT NULL REFERENCES common(id), own TEXT NOT NULL)"},
    {2, 3, "plan",
     "CREATE TABLE plan(study_id INTEGER NOT NULL REFERENCES studies(id) ON DELETE CASCADE, "
     "position INTEGER NOT NULL, block TEXT NOT NULL, "
     "run_id INTEGER NOT NULL REFERENCES settings(id), "
     "PRIMARY KEY(study_id, position)) WITHOUT ROWID"},
    {2, 3, "plan_run", "CREATE INDEX plan_run ON plan(run_id)"},
    {2, 3, "runs",
     "CREATE TABLE runs(id INTEGER PRIMARY KEY REFERENCES settings(id) ON DELETE CASCADE, "
     "state INTEGER NOT NULL, reason TEXT NOT NULL, version TEXT NOT NULL, "
     "kernel TEXT NOT NULL, seconds REAL, finished REAL)"},
    {1, 3, "names", "CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"},
    {1, 3, "scalars",
     "CREATE TABLE scalars(name_id INTEGER NOT NULL REFERENCES names(id), "
     "run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, value REAL, "
     "error REAL, how INTEGER NOT NULL, samples INTEGER NOT NULL, "
     "PRIMARY KEY(name_id, run_id)) WITHOUT ROWID"},
    {1, 3, "scalars_run", "CREATE INDEX scalars_run ON scalars(run_id)"},
    {1, 3, "series",
     "CREATE TABLE series(run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, "
     "name_id INTEGER NOT NULL REFERENCES names(id), dtype TEXT NOT NULL, "
     "shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY(run_id, name_id)) "
     "WITHOUT ROWID"},
    {1, 2, "claims",
     "CREATE TABLE claims(study_id INTEGER NOT NULL REFERENCES studies(id) "
     "ON DELETE CASCADE, position INTEGER NOT NULL, id TEXT NOT NULL, "
     "statement TEXT NOT NULL, source TEXT NOT NULL, quantity TEXT NOT NULL, "
     "expected TEXT NOT NULL, figure TEXT NOT NULL, how TEXT NOT NULL, value REAL, "
     "low REAL, high REAL, verdict INTEGER NOT NULL, PRIMARY KEY(study_id, position)) "
     "WITHOUT ROWID"},
    {3, 3, "claims",
     "CREATE TABLE claims(study_id INTEGER NOT NULL REFERENCES studies(id) "
     "ON DELETE CASCADE, position INTEGER NOT NULL, id TEXT NOT NULL, "
     "statement TEXT NOT NULL, source TEXT NOT NULL, quantity TEXT NOT NULL, "
     "expected TEXT NOT NULL, figure TEXT NOT NULL, how TEXT NOT NULL, fails_if TEXT NOT NULL, "
     "known TEXT NOT NULL, needed TEXT NOT NULL, value REAL, low REAL, high REAL, "
     "verdict INTEGER NOT NULL, kind INTEGER NOT NULL, PRIMARY KEY(study_id, position)) "
     "WITHOUT ROWID"},
    {1, 3, "sessions",
     "CREATE TABLE sessions(id INTEGER PRIMARY KEY, study TEXT NOT NULL, started REAL, "
     "spoke REAL, ended REAL, total INTEGER NOT NULL, done INTEGER NOT NULL, "
     "failed INTEGER NOT NULL, ranks INTEGER NOT NULL, threads INTEGER NOT NULL, "
     "seconds REAL, left REAL)"},
};
enum { TABLES = sizeof schema / sizeof *schema, HEADER = 100 };

/* How a file may be used is said by the mode in its URI. */
enum {
    OPEN_FLAGS = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
};

const char *fin_how_name(fin_how how)
{
    static const char *const names[] = {
#define FIN_HOW_TEXT(name, text) text,
        FIN_HOW_LIST(FIN_HOW_TEXT)
#undef FIN_HOW_TEXT
    };
    return (int)how >= 0 && how < FIN_HOW_COUNT ? names[how] : NULL;
}

const char *fin_state_name(fin_state state)
{
    static const char *const names[] = {
#define FIN_STATE_TEXT(name, text) text,
        FIN_STATE_LIST(FIN_STATE_TEXT)
#undef FIN_STATE_TEXT
    };
    return (int)state >= 0 && state <= FIN_STATE_FAILED ? names[state] : NULL;
}

/* ---- before SQLite sees the file ------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static fin_status wrong_schema(const fin_store *store, int64_t version, fin_error *err)
{
    if (version > FINI_STORE_SCHEMA)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' was made by a newer finetti, schema %lld; this one knows up to %d",
                         store->shown, (long long)version, FINI_STORE_SCHEMA);
    return fini_fail(err, FIN_ERR_FORMAT, "'%s' has schema %lld, which no finetti has made",
                     store->shown, (long long)version);
}

static fin_status not_a_store(const fin_store *store, const char *why, fin_error *err)
{
    return fini_fail(err, FIN_ERR_FORMAT, "'%s' is no store of studies: %s", store->shown, why);
}

/* The first bytes of the file: is it SQLite's, and one of ours? */
static fin_status check_header(const fin_store *store, const unsigned char *header, size_t size,
                               fin_error *err)
{
    if (size < HEADER || memcmp(header, "SQLite format 3", 16) != 0)
        return not_a_store(store, "it is no SQLite database", err);
    uint32_t application = big_endian(header + 68), version = big_endian(header + 60);
    if (application == 0 && version == 0 && big_endian(header + 40) == 0)
        return FIN_OK; /* it never had a table: a program died while it made it */
    if (application != FINI_STORE_APPLICATION)
        return not_a_store(store, "it is a SQLite database of another program", err);
    return version >= 1 && version <= FINI_STORE_SCHEMA
               ? FIN_OK
               : wrong_schema(store, (int32_t)version, err);
}

static fin_status inspect(const fin_store *store, const char *path, int how, fin_error *err)
{
    struct stat info;
    unsigned char header[HEADER] = {0};
    if (stat(path, &info) != 0)
        return errno == ENOENT && how == FIN_STORE_CREATE
                   ? FIN_OK
                   : fini_fail_io(err, "open the store", path, errno);
    if (S_ISDIR(info.st_mode))
        return fini_fail(err, FIN_ERR_IO, "cannot open the store '%s': it is a folder",
                         store->shown);
    if (!S_ISREG(info.st_mode))
        return fini_fail(err, FIN_ERR_IO, "cannot open the store '%s': it is no regular file",
                         store->shown);
    /* Closing it would drop SQLite's locks on it; and it has been looked at. */
    if (fini_stores_have((uint64_t)info.st_dev, (uint64_t)info.st_ino))
        return FIN_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, header, sizeof header);
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0)
        return fini_fail_io(err, "open the store", path, number);
    if (size == 0 && how == FIN_STORE_CREATE)
        return FIN_OK;
    if (size == 0)
        return not_a_store(store, "it is empty", err);
    return check_header(store, header, (size_t)size, err);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* "file:..." with everything that a URI reads otherwise written as %XX. */
static char *make_uri(const char *path, const char *query)
{
    size_t length = strlen(path), used = 5;
    char *uri = fini_alloc(length * 3 + strlen(query) + 8);
    if (!uri)
        return NULL;
    memcpy(uri, "file:", 5);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)path[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '/' || c == '.' || c == '_' || c == '-';
        used += (size_t)sprintf(uri + used, plain ? "%c" : "%%%02X", c);
    }
    strcpy(uri + used, query);
    return uri;
}

/* 0, or why not. */
static int folder_is_closed(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static bool has_log(const char *path)
{
    char name[4200];
    struct stat info;
    snprintf(name, sizeof name, "%.4096s-wal", path);
    return stat(name, &info) == 0 && info.st_size > 0;
}

/* To read a store in WAL mode SQLite needs to write beside it. Where it can, it may: then the last
 * reader leaves one file, as a writer does. Where it cannot, and there is no log, nobody else can
 * write either, and the file is read as it stands. */
static fin_status open_file(fin_store *store, const char *path, int how, fin_error *err)
{
    int closed = folder_is_closed(path);
    bool beside = closed == 0;
    bool writable = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
    if (how == FIN_STORE_CREATE && closed && faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) != 0)
        return fini_fail_io(err, "create the store", path, closed);
    const char *mode = "?mode=ro";
    if (how == FIN_STORE_CREATE)
        mode = "?mode=rwc";
    else if (how == FIN_STORE_WRITE || (beside && writable))
        mode = "?mode=rw";
    else if (!beside && !has_log(path))
        mode = "?mode=ro&immutable=1";
    store->uri = make_uri(path, mode);
    if (!store->uri)
        return fini_fail_memory(err, strlen(path) * 3, "the name of a store");
    int code = sqlite3_open_v2(store->uri, &store->db, OPEN_FLAGS, NULL);
    if (code)
        return fini_store_fail(store, code, "open", err);
    if (how != FIN_STORE_READ && sqlite3_db_readonly(store->db, "main") == 1)
        return fini_store_fail(store, SQLITE_READONLY, "write to", err);
    return FIN_OK;
}

static fin_status exec(fin_store *store, const char *sql, const char *action, fin_error *err)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code ? fini_store_fail(store, code, action, err) : FIN_OK;
}

/* What SQLite advises for files from strangers, and our own way of writing. */
static fin_status configure(fin_store *store, fin_error *err)
{
    static const struct {
        int option, value;
    } options[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                   {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                   {SQLITE_DBCONFIG_ENABLE_FKEY, 1},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                   {SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0}};
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, FINI_STORE_WAIT);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        sqlite3_db_config(store->db, options[i].option, options[i].value, NULL);
    int code = sqlite3_create_function_v2(store->db, "number", 1,
                                          SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                          NULL, fini_sql_number_of, NULL, NULL, NULL);
    if (code)
        return fini_store_fail(store, code, "open", err);
    /* Pages of 8 KiB make a scan of all runs a quarter faster. Checkpoints wait for the disk:
     * rarely, and then of pages that were written many times. */
    FINI_TRY(exec(store,
                  "PRAGMA page_size = 8192; PRAGMA cell_size_check = ON; "
                  "PRAGMA mmap_size = 0; PRAGMA synchronous = NORMAL; "
                  "PRAGMA wal_autocheckpoint = 4096; PRAGMA temp_store = MEMORY",
                  "open", err));
    /* Who only reads passes along most pages once: the system keeps them, and a second copy in
     * fresh memory takes longer than the reading. */
    return exec(store, store->writes ? "PRAGMA cache_size = -65536" : "PRAGMA cache_size = -2048",
                "open", err);
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* Those that schema `before` has not. */
static fin_status create_tables(fin_store *store, int before, fin_error *err)
{
    char pragma[128];
    fin_status status = FIN_OK;
    for (int i = 0; i < TABLES && !status; i++)
        if (schema[i].first > before && schema[i].last == FINI_STORE_SCHEMA)
            status = exec(store, schema[i].sql, "create", err);
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             FINI_STORE_APPLICATION, FINI_STORE_SCHEMA);
    return status ? status : exec(store, pragma, "create", err);
}

static bool is_of(int table, int64_t version)
{
    return schema[table].first <= version && version <= schema[table].last;
}

/* Are all our tables there as they should be, and nothing that should not? */
static fin_status compare_tables(fin_store *store, int64_t version, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = true;
    int left = 0;
    for (int i = 0; i < TABLES; i++)
        left += is_of(i, version);
    fin_status status =
        fini_sql_prepare(store, "SELECT type, name, sql FROM sqlite_schema", &statement, err);
    if (status)
        return status;
    while (!(status = fini_sql_step(store, statement, &row, err)) && row) {
        const char *type = (const char *)sqlite3_column_text(statement, 0);
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        const char *sql = (const char *)sqlite3_column_text(statement, 2);
        bool plain = type && (strcmp(type, "table") == 0 || strcmp(type, "index") == 0);
        int i = 0;
        while (i < TABLES && !(name && is_of(i, version) && strcmp(name, schema[i].name) == 0))
            i++;
        if (!plain || (i < TABLES && !(sql && strcmp(sql, schema[i].sql) == 0))) {
            status = not_a_store(store, "its tables are not those of a store", err);
            break;
        }
        left -= i < TABLES;
    }
    sqlite3_finalize(statement);
    return status || left == 0 ? status : not_a_store(store, "some of its tables are missing", err);
}

/* As SQLite sees it now, with its log. *version = 0: there is nothing in it. */
static fin_status check_tables(fin_store *store, int64_t *version, fin_error *err)
{
    int64_t application = 0, objects = 0;
    FINI_TRY(fini_sql_number(store, "SELECT count(*) FROM sqlite_schema", 0, &objects, err));
    FINI_TRY(fini_sql_number(store, "PRAGMA application_id", 0, &application, err));
    FINI_TRY(fini_sql_number(store, "PRAGMA user_version", 0, version, err));
    if (application == 0 && *version == 0 && objects == 0)
        return FIN_OK;
    if (application != FINI_STORE_APPLICATION)
        return not_a_store(store, "it is a SQLite database of another program", err);
    if (*version < 1 || *version > FINI_STORE_SCHEMA)
        return wrong_schema(store, *version, err);
    return compare_tables(store, *version, err);
}

/* Schema 1 had all settings with every run, and of a planned run nothing but its hash: its settings
 * are "{}" until the study is planned again. */
static fin_status upgrade_runs(fin_store *store, fin_error *err)
{
    return exec(store,
                "INSERT INTO common SELECT id, command, settings FROM old_runs; "
                "INSERT INTO settings SELECT id, hash, id, '{}' FROM old_runs; "
                "INSERT INTO common(command, text) VALUES('', '{}'); "
                "INSERT INTO settings(hash, common_id, own) SELECT DISTINCT hash, "
                "(SELECT max(id) FROM common), '{}' FROM old_plan "
                "WHERE hash NOT IN (SELECT hash FROM old_runs); "
                "INSERT INTO runs SELECT id, state, reason, version, kernel, seconds, "
                "finished FROM old_runs; "
                "INSERT INTO plan SELECT study_id, position, block, s.id "
                "FROM old_plan AS p JOIN settings AS s ON s.hash = p.hash; "
                "DROP TABLE old_plan; DROP TABLE old_runs",
                "upgrade", err);
}

/* Up to schema 2 claims had no kind (derived, then) and said neither what would make them fail nor what
 * would decide them; what was vague is undecided. */
static fin_status upgrade(fin_store *store, int64_t version, fin_error *err)
{
    FINI_TRY(exec(store, "ALTER TABLE claims RENAME TO old_claims", "upgrade", err));
    if (version == 1)
        FINI_TRY(exec(store,
                      "DROP INDEX plan_hash; DROP INDEX runs_failed; "
                      "ALTER TABLE runs RENAME TO old_runs; "
                      "ALTER TABLE plan RENAME TO old_plan",
                      "upgrade", err));
    FINI_TRY(create_tables(store, (int)version, err));
    if (version == 1)
        FINI_TRY(upgrade_runs(store, err));
    return exec(store,
                "INSERT INTO claims SELECT study_id, position, id, statement, source, "
                "quantity, expected, figure, how, '', '', '', value, low, high, verdict, "
                "1 FROM old_claims; DROP TABLE old_claims",
                "upgrade", err);
}

/* Two programs may create or upgrade the same store at the same time: the second finds it done. Names
 * in foreign keys stay as they are while a table has another name. */
static fin_status create(fin_store *store, fin_error *err)
{
    int64_t version = 0;
    FINI_TRY(exec(store,
                  "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; "
                  "BEGIN EXCLUSIVE",
                  "create", err));
    fin_status status = check_tables(store, &version, err);
    if (!status && version == 0)
        status = create_tables(store, 0, err);
    else if (!status && version < FINI_STORE_SCHEMA)
        status = upgrade(store, version, err);
    if (!status)
        status = exec(store, "COMMIT", "create", err);
    if (status)
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_exec(store->db, "PRAGMA foreign_keys = ON; PRAGMA legacy_alter_table = OFF", NULL, NULL,
                 NULL);
    return status;
}

/* Whoever only reads an older store reads a copy in memory, brought up to date there. */
static fin_status copy_to_memory(fin_store *store, fin_error *err)
{
    enum { SIZE = 64 };
    char *uri = fini_alloc(SIZE);
    sqlite3 *memory = NULL;
    sqlite3_stmt *statement = NULL;
    bool row;
    if (!uri)
        return fini_fail_memory(err, SIZE, "the name of a store");
    snprintf(uri, SIZE, "file:/%p?vfs=memdb", (void *)store);
    int code = sqlite3_open_v2(uri, &memory, OPEN_FLAGS, NULL);
    fin_status status = code ? fini_store_fail(store, code, "read", err) : FIN_OK;
    if (!status)
        status = fini_sql_prepare(store, "VACUUM INTO ?1", &statement, err);
    if (!status) {
        fini_sql_bind_text(statement, 1, uri);
        status = fini_sql_step(store, statement, &row, err);
    }
    sqlite3_finalize(statement);
    sqlite3_close_v2(store->db);
    fini_free(store->uri);
    store->db = memory;
    store->uri = uri;
    if (!status)
        status = configure(store, err);
    return status ? status : create(store, err);
}

/* A file system that cannot do WAL keeps a rollback journal, which is as safe, only slower. Another
 * program that is just looking makes SQLite answer "busy", which it does not wait out by itself. */
static fin_status use_log(fin_store *store, fin_error *err)
{
    int code = SQLITE_BUSY;
    for (int i = 0; i < FINI_STORE_WAIT / 10 && (code & 0xff) == SQLITE_BUSY; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        code = sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    }
    return code ? fini_store_fail(store, code, "write to", err) : FIN_OK;
}

static fin_status open_tables(fin_store *store, int how, fin_error *err)
{
    int64_t version = 0;
    FINI_TRY(check_tables(store, &version, err));
    if (version == 0 && how != FIN_STORE_CREATE)
        FINI_TRY(not_a_store(store, "it is empty", err));
    if (version < FINI_STORE_SCHEMA)
        FINI_TRY((how == FIN_STORE_READ ? copy_to_memory : create)(store, err));
    if (how == FIN_STORE_READ)
        FINI_TRY(exec(store, "PRAGMA query_only = ON", "open", err));
    if (how != FIN_STORE_READ)
        FINI_TRY(use_log(store, err));
    return FIN_OK;
}

fin_status fin_store_open(const char *path, int how, fin_store **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    if (how != FIN_STORE_READ && how != FIN_STORE_WRITE && how != FIN_STORE_CREATE)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a store is opened to read, write or create");
    if (!*path || strlen(path) >= 4096)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the name of a store has 1 to 4095 bytes");
    FINI_MAKE(err, "a store", fin_store, store);
    store->writes = how != FIN_STORE_READ;
    store->lock = -1;
    fini_printable(path, strlen(path), store->shown, sizeof store->shown);
    fini_stores_lock();
    fin_status status = inspect(store, path, how, err);
    if (!status)
        status = open_file(store, path, how, err);
    if (!status)
        fini_stores_add(store);
    fini_stores_unlock();
    if (!status)
        status = configure(store, err);
    if (!status)
        status = open_tables(store, how, err);
    FINI_HAND_OVER(out, store, status, fin_store_close);
}

void fin_store_close(fin_store *store)
{
    if (!store)
        return;
    fini_store_forget_names(store);
    if (store->deflates)
        deflateEnd(&store->deflate);
    for (int i = 0; i < FINI_SQL_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close_v2(store->db); /* folds the log into the file, if nobody else has it open */
    fini_stores_remove(store);
    fini_free_all(store->uri, store);
}

/* ---- checking -------------------------------------------------------------------------------- */

static fin_status first_trouble(fin_store *store, const char *sql, const char *fine,
                                const char *what, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    FINI_TRY(fini_sql_prepare(store, sql, &statement, err));
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && row) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        char shown[FINI_SHOWN * 2] = "";
        if (text)
            fini_printable(text, strlen(text), shown, sizeof shown);
        if (!text || !fine || strcmp(text, fine) != 0)
            status = fini_store_damaged(store, err, "%s: %s", what, shown);
    }
    sqlite3_finalize(statement);
    return status;
}

fin_status fin_store_check(fin_store *store, fin_error *err)
{
    FINI_NEED(err, store);
    FINI_TRY(
        first_trouble(store, "PRAGMA integrity_check(1)", "ok", "the integrity check says", err));
    return first_trouble(store, "PRAGMA foreign_key_check", NULL, "rows belong to nothing in table",
                         err);
}
