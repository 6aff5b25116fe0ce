/* Another store's studies and runs into this one.
 *
 * The other store is a stranger's file: every value of it passes the same checks as when it is read
 * for any other reason, every hash is worked out again, and every series is unpacked. Then it is
 * attached, and what is missing here is copied by SQL. All of it is one transaction: a difference in
 * the last run leaves the store as it was. */
#include "store/diff.h"

#include "data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct merge {
    fin_store *store;
    fin_store there; /* our connection under the name of the other store, for messages */
    bool force;
    fin_merge_count *count;
    int64_t last; /* the run that differed last */
} merge;

static fin_status run_sql(merge *m, const char *sql, int64_t *changes, fin_error *err)
{
    int code = sqlite3_exec(m->store->db, sql, NULL, NULL, NULL);
    if (changes)
        *changes = sqlite3_changes(m->store->db);
    return code ? fini_store_fail(m->store, code, "merge into", err) : FIN_OK;
}

/* ---- is it what it says? --------------------------------------------------------------------- */

/* Calls check with every row of a statement. */
static fin_status check_rows(merge *m, const char *sql, int64_t parameter,
                             fin_status (*check)(const fin_store *there, sqlite3_stmt *row,
                                                 void *user, fin_error *err),
                             void *user, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    fin_status status = fini_sql_prepare(&m->there, sql, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, parameter);
    while (!status && !(status = fini_sql_step(&m->there, statement, &row, err)) && row)
        status = check(&m->there, statement, user, err);
    sqlite3_finalize(statement);
    return status;
}

enum { HASH, SETTINGS, COMMAND, REASON, VERSION, KERNEL, STATE };

/* Of a planned run an upgraded store may not know the settings. */
static fin_status check_run(const fin_store *there, sqlite3_stmt *row, void *user, fin_error *err)
{
    char expected[FIN_HASH_TEXT];
    const char *texts[6];
    static const struct {
        int most;
        const char *what;
    } limits[] = {{FIN_HASH_TEXT - 1, "a hash"},
                  {FIN_SETTINGS_TEXT - 1, "the settings of a run"},
                  {FINI_SHOWN, "the command of a run"},
                  {FINI_STORE_TEXT, "the reason of a failure"},
                  {FINI_SHOWN, "a version"},
                  {FINI_SHOWN, "the name of a kernel"}};
    bool planned = sqlite3_column_type(row, STATE) == SQLITE_NULL;
    int64_t state;
    (void)user;
    for (int i = 0; i < (planned ? REASON : STATE); i++)
        FINI_TRY(fini_sql_text(there, row, i, limits[i].most, limits[i].what, &texts[i], err));
    if (!planned)
        FINI_TRY(fini_sql_integer(there, row, STATE, FIN_STATE_DONE, FIN_STATE_FAILED,
                                  "the state of a run", &state, err));
    if (planned && strcmp(texts[SETTINGS], "{}") == 0)
        return FIN_OK;
    fini_hash(texts[SETTINGS], expected);
    if (strcmp(expected, texts[HASH]) != 0)
        return fini_store_damaged(there, err, "run %.32s has settings that are not its own",
                                  fini_is_hash(texts[HASH]) ? texts[HASH] : "?");
    return FIN_OK;
}

static fin_status check_scalar(const fin_store *there, sqlite3_stmt *row, void *user,
                               fin_error *err)
{
    (void)row, (void)user;
    return fini_store_damaged(there, err, "a scalar is none");
}

static fin_status check_series(const fin_store *there, sqlite3_stmt *row, void *user,
                               fin_error *err)
{
    fin_series series;
    (void)user;
    fin_status status = fini_read_series(there, row, true, &series, err);
    fini_free((void *)series.data);
    return status;
}

static fin_status check_texts(const fin_store *there, sqlite3_stmt *row, void *user, fin_error *err)
{
    const char *text;
    (void)user;
    for (int i = 0; i < sqlite3_column_count(row); i++)
        FINI_TRY(fini_sql_text(there, row, i, FINI_STORE_TEXT, "a text", &text, err));
    return FIN_OK;
}

/* A plan as far as it was read. */
typedef struct chain {
    int64_t next;
    char hash[FIN_HASH_TEXT];
} chain;

static fin_status check_place(const fin_store *there, sqlite3_stmt *row, void *user, fin_error *err)
{
    chain *c = user;
    int64_t position;
    const char *block, *run;
    fin_status status =
        fini_sql_integer(there, row, 0, c->next, c->next, "a place in a plan", &position, err);
    if (!status)
        status = fini_sql_text(there, row, 1, FINI_STORE_TEXT, "the name of a block", &block, err);
    if (!status)
        status = fini_sql_text(there, row, 2, FIN_HASH_TEXT - 1, "a hash", &run, err);
    if (!status)
        fini_plan_hash(c->hash, block, run);
    c->next++;
    return status;
}

/* The plan gives the hash of its study. */
static fin_status check_study(const fin_store *there, sqlite3_stmt *row, void *user, fin_error *err)
{
    chain c = {0, "00000000000000000000000000000000"};
    const char *hash;
    FINI_TRY(check_rows(user,
                        "SELECT position, block, hash FROM other.plan LEFT JOIN "
                        "other.settings ON id = run_id WHERE study_id = ?1 "
                        "ORDER BY position",
                        sqlite3_column_int64(row, 0), check_place, &c, err));
    FINI_TRY(fini_sql_text(there, row, 1, FINI_STORE_TEXT, "a hash", &hash, err));
    if (strcmp(hash, c.hash) != 0)
        return fini_store_damaged(there, err, "the plan of a study is not the one it was given");
    return FIN_OK;
}

static fin_status check_other(merge *m, fin_error *err)
{
    static const struct {
        const char *sql;
        fin_status (*check)(const fin_store *there, sqlite3_stmt *row, void *user, fin_error *err);
    } checks[] = {
        {"SELECT hash, " FINI_SQL_SETTINGS ", command, reason, version, kernel, state "
         "FROM other.settings AS s LEFT JOIN other.common AS c ON c.id = s.common_id "
         "LEFT JOIN other.runs AS r ON r.id = s.id",
         check_run},
        {"SELECT name FROM other.names", check_texts},
        {"SELECT 1 FROM other.scalars WHERE typeof(how) <> 'integer' OR how NOT BETWEEN 0 AND 6 OR "
         "typeof(samples) <> 'integer' OR samples < 0 OR typeof(value) NOT IN ('real', 'null') OR "
         "typeof(error) NOT IN ('real', 'null')",
         check_scalar},
        {"SELECT name, dtype, shape, data FROM other.series JOIN other.names ON id = name_id",
         check_series},
        {"SELECT name, title, source, text, changes, hash FROM other.studies", check_texts},
        {"SELECT id, hash FROM other.studies", check_study},
        {"SELECT id, statement, source, quantity, expected, figure, how, fails_if, "
         "known, needed FROM other.claims",
         check_texts},
    };
    _Static_assert(FIN_HOW_COUNT == 7, "how a scalar came about is checked above");
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        FINI_TRY(check_rows(m, checks[i].sql, 0, checks[i].check, m, err));
    return FIN_OK;
}

/* ---- studies --------------------------------------------------------------------------------- */

static fin_status refuse_study(const fin_store *there, sqlite3_stmt *row, void *user,
                               fin_error *err)
{
    char shown[FINI_SHOWN];
    const char *name;
    (void)user;
    FINI_TRY(fini_sql_text(there, row, 0, FINI_STORE_TEXT, "a name", &name, err));
    fini_printable(name, strlen(name), shown, sizeof shown);
    return fini_fail(err, FIN_ERR_FORMAT,
                     "study '%s' is in both stores with different runs; nothing was merged; "
                     "rename one of them, or force the other store's plan",
                     shown);
}

#define OTHER_PLAN                                                                                 \
    "main.studies AS m JOIN other.studies AS o ON o.name = m.name AND o.hash <> m.hash"

/* Those that are new, or forced: taken.id, with their number there. */
static fin_status merge_studies(merge *m, fin_error *err)
{
    fin_status status = FIN_OK;
    if (!m->force)
        status = check_rows(m, "SELECT m.name FROM " OTHER_PLAN " ORDER BY m.name LIMIT 1", 0,
                            refuse_study, NULL, err);
    if (!status)
        status = run_sql(m,
                         "DELETE FROM main.studies WHERE id IN (SELECT m.id FROM " OTHER_PLAN "); "
                         "CREATE TEMP TABLE studies_taken AS SELECT id FROM other.studies "
                         "WHERE name NOT IN (SELECT name FROM main.studies)",
                         NULL, err);
    return status
               ? status
               : run_sql(m,
                         "INSERT INTO main.studies(name, title, source, text, changes, full, hash) "
                         "SELECT name, title, source, text, changes, full <> 0, hash "
                         "FROM other.studies WHERE id IN (SELECT id FROM studies_taken)",
                         &m->count->studies, err);
}

/* A study here, s, that was taken from there, o. */
#define TAKEN                                                                                      \
    "FROM studies_taken AS t JOIN other.studies AS o ON o.id = t.id JOIN main.studies AS s "       \
    "ON s.name = o.name "

static fin_status merge_plans(merge *m, fin_error *err)
{
    return run_sql(
        m,
        "INSERT INTO main.plan SELECT s.id, p.position, p.block, x.id " TAKEN
        "JOIN other.plan AS p ON p.study_id = o.id JOIN other.settings AS y "
        "ON y.id = p.run_id JOIN main.settings AS x ON x.hash = y.hash; "
        "INSERT INTO main.claims SELECT s.id, c.position, c.id, c.statement, c.source, "
        "c.quantity, c.expected, c.figure, c.how, c.fails_if, c.known, c.needed, c.value, c.low, "
        "c.high, c.verdict, c.kind " TAKEN "JOIN other.claims AS c ON c.study_id = o.id",
        NULL, err);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* "0.10.2" is newer than "0.9.11". */
static int compare_versions(const char *a, const char *b)
{
    for (int part = 0; part < 3; part++) {
        char *end_a, *end_b;
        long x = strtol(a, &end_a, 10), y = strtol(b, &end_b, 10);
        if (x != y)
            return x < y ? -1 : 1;
        a = *end_a == '.' ? end_a + 1 : end_a;
        b = *end_b == '.' ? end_b + 1 : end_b;
    }
    return 0;
}

/* By force the newer version wins, and of two of the same version the one that ended later. */
static fin_status take_newer(merge *m, const fini_difference *d, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *here, *there;
    FINI_TRY(
        fini_sql_prepare(m->store,
                         "SELECT x.version, y.version, ifnull(y.finished > x.finished, 0) FROM "
                         "main.runs AS x, other.runs AS y WHERE x.id = ?1 AND y.id = ?2",
                         &statement, err));
    sqlite3_bind_int64(statement, 1, d->id[0]);
    sqlite3_bind_int64(statement, 2, d->id[1]);
    fin_status status = fini_sql_step(m->store, statement, &row, err);
    if (!status)
        status = fini_sql_text(m->store, statement, 0, FINI_STORE_TEXT, "a version", &here, err);
    if (!status)
        status = fini_sql_text(&m->there, statement, 1, FINI_STORE_TEXT, "a version", &there, err);
    int newer = status ? 0 : compare_versions(there, here);
    bool later = sqlite3_column_int(statement, 2) == 1;
    sqlite3_finalize(statement);
    if (status || newer < 0 || (newer == 0 && !later))
        return status;
    FINI_TRY(fini_sql_prepare(m->store, "INSERT INTO runs_taken VALUES(?1, ?2)", &statement, err));
    sqlite3_bind_int64(statement, 1, d->id[0]);
    sqlite3_bind_int64(statement, 2, d->id[1]);
    status = fini_sql_step(m->store, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

/* Runs that only one store has are no difference here, nor is one that failed in one of them. */
static fin_status see_difference(void *user, const fini_difference *d, fin_error *err)
{
    merge *m = user;
    char what[FINI_SHOWN], here[FINI_NUMBER + 1] = "", there[FINI_NUMBER + 1] = "";
    if (!d->number && strcmp(d->face.what, "settings") == 0)
        return fini_store_damaged(m->store, err, "run %s has settings that are not its own",
                                  d->face.hash);
    if (!d->number || m->last == d->id[0])
        return FIN_OK;
    m->last = d->id[0];
    if (m->force)
        return take_newer(m, d, err);
    fini_printable(d->face.what, strlen(d->face.what), what, sizeof what);
    fini_print_double(d->face.left, 17, here, sizeof here);
    fini_print_double(d->face.right, 17, there, sizeof there);
    return fini_fail(err, FIN_ERR_FORMAT,
                     "run %s is in both stores, but '%s' is not the same (%s here, %s there); "
                     "nothing was merged; with force the newer version wins",
                     d->face.hash, what, here, there);
}

/* runs_taken: which to copy, and under which number. */
static fin_status choose_runs(merge *m, fin_error *err)
{
    int64_t both = 0;
    FINI_TRY(
        run_sql(m,
                "INSERT INTO main.common(command, text) SELECT command, text FROM other.common "
                "WHERE text NOT IN (SELECT text FROM main.common) GROUP BY text ORDER BY id; "
                "INSERT INTO main.settings(hash, common_id, own) SELECT s.hash, min(x.id), s.own "
                "FROM other.settings AS s JOIN other.common AS c ON c.id = s.common_id "
                "JOIN main.common AS x ON x.text = c.text "
                "WHERE s.hash NOT IN (SELECT hash FROM main.settings) GROUP BY s.id ORDER BY s.id; "
                "CREATE TEMP TABLE runs_taken(here INTEGER PRIMARY KEY, there INTEGER)",
                NULL, err));
    FINI_TRY(fini_store_differences(m->store, 0, see_difference, m, err));
    FINI_TRY(fini_sql_number(m->store,
                             "SELECT count(*) FROM other.settings AS y JOIN other.runs USING(id) "
                             "JOIN main.settings AS x ON x.hash = y.hash JOIN main.runs AS r "
                             "ON r.id = x.id",
                             0, &both, err));
    /* failed here, done there */ FINI_TRY(
        run_sql(m,
                "INSERT INTO runs_taken SELECT x.id, y.id FROM other.settings AS y "
                "JOIN other.runs AS q ON q.id = y.id JOIN main.settings AS x "
                "ON x.hash = y.hash JOIN main.runs AS r ON r.id = x.id "
                "WHERE r.state = 2 AND q.state = 1",
                NULL, err));
    FINI_TRY(
        fini_sql_number(m->store, "SELECT count(*) FROM runs_taken", 0, &m->count->replaced, err));
    m->count->same = both - m->count->replaced;
    return run_sql(m,
                   "DELETE FROM main.runs WHERE id IN (SELECT here FROM runs_taken); "
                   "INSERT INTO runs_taken SELECT x.id, y.id FROM other.settings AS y "
                   "JOIN other.runs AS q ON q.id = y.id JOIN main.settings AS x "
                   "ON x.hash = y.hash WHERE x.id NOT IN (SELECT id FROM main.runs) "
                   "AND x.id NOT IN (SELECT here FROM runs_taken)",
                   &m->count->added, err);
}

static fin_status copy_runs(merge *m, fin_error *err)
{
    return run_sql(m,
                   "INSERT INTO main.runs SELECT t.here, state, reason, version, kernel, seconds, "
                   "finished FROM runs_taken AS t JOIN other.runs AS r ON r.id = t.there "
                   "ORDER BY t.here; "
                   "INSERT INTO main.names(name) SELECT name FROM other.names "
                   "WHERE name NOT IN (SELECT name FROM main.names) ORDER BY id; "
                   "INSERT INTO main.scalars SELECT x.id, t.here, value, error, how, samples "
                   "FROM other.scalars AS s JOIN runs_taken AS t ON t.there = s.run_id "
                   "JOIN other.names AS y ON y.id = s.name_id JOIN main.names AS x "
                   "ON x.name = y.name; "
                   "INSERT INTO main.series SELECT t.here, x.id, dtype, shape, data "
                   "FROM runs_taken AS t JOIN other.series AS s ON s.run_id = t.there "
                   "JOIN other.names AS y ON y.id = s.name_id JOIN main.names AS x "
                   "ON x.name = y.name",
                   NULL, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_same_file(fin_store *store, fin_store *other)
{
    struct stat a, b;
    const char *mine = sqlite3_db_filename(store->db, "main");
    const char *others = sqlite3_db_filename(other->db, "main");
    return mine && others && stat(mine, &a) == 0 && stat(others, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static fin_status merge_all(merge *m, fin_error *err)
{
    FINI_TRY(fini_store_begin(m->store, err));
    fin_status status = check_other(m, err);
    if (!status)
        status = merge_studies(m, err);
    if (!status)
        status = choose_runs(m, err);
    if (!status)
        status = copy_runs(m, err);
    if (!status)
        status = merge_plans(m, err);
    if (!status)
        status = run_sql(m, "DROP TABLE studies_taken; DROP TABLE runs_taken", NULL, err);
    return fini_store_end(m->store, status, err);
}

fin_status fin_store_merge(fin_store *store, const char *other, int force, fin_merge_count *count,
                           fin_error *err)
{
    FINI_NEED(err, store, other);
    fin_merge_count own;
    fin_store *opened = NULL;
    merge m = {.store = store, .force = force != 0, .count = count ? count : &own};
    *m.count = (fin_merge_count){0};
    fin_status status = fin_store_open(other, FIN_STORE_READ, &opened, err);
    if (!status && is_same_file(store, opened))
        status =
            fini_fail(err, FIN_ERR_ARGUMENT, "'%s' cannot be merged into itself", store->shown);
    if (!status)
        status = fini_store_attach(store, opened, err);
    if (!status) {
        m.there.db = store->db;
        memcpy(m.there.shown, opened->shown, sizeof m.there.shown);
        status = merge_all(&m, err);
        fini_store_detach(store);
    }
    fin_store_close(opened);
    if (status)
        *m.count = (fin_merge_count){0};
    return status;
}
