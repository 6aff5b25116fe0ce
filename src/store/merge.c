/* Another store's studies and runs into this one.
 *
 * The other store is a stranger's file: every value of it passes the same checks as when it is read
 * for any other reason, every hash is worked out again, and every series is unpacked. All of it is
 * one transaction: a difference in the last run leaves the store as it was. */
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct merge {
    fin_store *store, *other;
    bool force;
    fin_merge_count *count;
    sqlite3_stmt *runs;             /* of the other store */
    sqlite3_stmt *scalars, *series; /* of one of its runs */
    sqlite3_stmt *mine;             /* a run of this store */
    fini_compare compare;
    bool differs; /* the run at hand */
    char what[FINI_SHOWN];
    double here, there;
} merge;

enum { ID, HASH, COMMAND, SETTINGS, SEED, STATE, REASON, VERSION, KERNEL, SECONDS, FINISHED };

/* ---- one run --------------------------------------------------------------------------------- */

/* A run of the other store, checked. */
typedef struct stranger {
    int64_t id, state;
    const char *hash, *command, *settings, *reason, *version, *kernel;
    double seconds, finished;
} stranger;

static fin_status read_run(merge *m, stranger *s, fin_error *err)
{
    char hash[FIN_HASH_TEXT];
    const struct {
        int column, most;
        const char *what, **text;
    } texts[] = {{HASH, FIN_HASH_TEXT - 1, "a hash", &s->hash},
                 {COMMAND, FINI_SHOWN, "the command of a run", &s->command},
                 {SETTINGS, FIN_SETTINGS_TEXT - 1, "the settings of a run", &s->settings},
                 {REASON, FINI_STORE_TEXT, "the reason of a failure", &s->reason},
                 {VERSION, FINI_SHOWN, "a version", &s->version},
                 {KERNEL, FINI_SHOWN, "the name of a kernel", &s->kernel}};
    fin_status status = FIN_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++)
        status = fini_sql_text(m->other, m->runs, texts[i].column, texts[i].most, texts[i].what,
                               texts[i].text, err);
    if (!status)
        status = fini_sql_integer(m->other, m->runs, STATE, FIN_STATE_DONE, FIN_STATE_FAILED,
                                  "the state of a run", &s->state, err);
    if (status)
        return status;
    s->id = sqlite3_column_int64(m->runs, ID);
    s->seconds = fini_sql_double(m->runs, SECONDS);
    s->finished = fini_sql_double(m->runs, FINISHED);
    fini_hash(s->settings, hash);
    if (strcmp(hash, s->hash) != 0)
        return fini_store_damaged(m->other, err, "run %.32s has settings that are not its own",
                                  fini_is_hash(s->hash) ? s->hash : "?");
    return FIN_OK;
}

static fin_status copy_scalars(merge *m, int64_t from, int64_t to, fin_error *err)
{
    bool row = false;
    fin_scalar scalar;
    fin_status status = FIN_OK;
    sqlite3_bind_int64(m->scalars, 1, from);
    while (!status && !(status = fini_sql_step(m->other, m->scalars, &row, err)) && row) {
        status = fini_read_scalar(m->other, m->scalars, &scalar, err);
        if (!status)
            status = fini_store_add_scalar(m->store, to, &scalar, err);
    }
    sqlite3_reset(m->scalars);
    return status;
}

static fin_status copy_series(merge *m, int64_t from, int64_t to, fin_error *err)
{
    bool row = false;
    fin_series series;
    fin_status status = FIN_OK;
    sqlite3_bind_int64(m->series, 1, from);
    while (!status && !(status = fini_sql_step(m->other, m->series, &row, err)) && row) {
        status = fini_read_series(m->other, m->series, true, &series, err);
        if (!status)
            status = fini_store_add_series(m->store, to, &series, err);
        fini_free((void *)series.data);
    }
    sqlite3_reset(m->series);
    return status;
}

static fin_status copy_run(merge *m, const stranger *s, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_get(m->store, FINI_SQL_RUN_ADD, &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, s->hash);
    fini_sql_bind_text(statement, 2, s->command);
    fini_sql_bind_text(statement, 3, s->settings);
    if (sqlite3_column_type(m->runs, SEED) == SQLITE_INTEGER)
        sqlite3_bind_int64(statement, 4, sqlite3_column_int64(m->runs, SEED));
    else
        sqlite3_bind_null(statement, 4);
    sqlite3_bind_int(statement, 5, (int)s->state);
    fini_sql_bind_text(statement, 6, s->reason);
    fini_sql_bind_text(statement, 7, s->version);
    fini_sql_bind_text(statement, 8, s->kernel);
    fini_sql_bind_number(statement, 9, s->seconds);
    fini_sql_bind_number(statement, 10, s->finished);
    status = fini_sql_step(m->store, statement, &row, err);
    int64_t id = sqlite3_last_insert_rowid(m->store->db);
    if (!status)
        status = copy_scalars(m, s->id, id, err);
    return status ? status : copy_series(m, s->id, id, err);
}

static fin_status replace_run(merge *m, int64_t id, const stranger *s, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    fin_status status = fini_sql_get(m->store, FINI_SQL_RUN_DELETE, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    status = fini_sql_step(m->store, statement, &row, err);
    m->count->replaced += !status;
    return status ? status : copy_run(m, s, err);
}

/* ---- two of the same hash -------------------------------------------------------------------- */

static fin_status note(void *user, const char *what, double left, double right, bool in_left,
                       bool in_right, fin_error *err)
{
    merge *m = user;
    (void)in_left;
    (void)in_right;
    (void)err;
    if (!m->differs)
        fini_printable(what, strlen(what), m->what, sizeof m->what);
    if (!m->differs) {
        m->here = left;
        m->there = right;
    }
    m->differs = true;
    return FIN_OK;
}

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

static fin_status refuse(const merge *m, const char *hash, fin_error *err)
{
    char here[FINI_NUMBER + 1] = "", there[FINI_NUMBER + 1] = "";
    fini_print_double(m->here, 17, here, sizeof here);
    fini_print_double(m->there, 17, there, sizeof there);
    return fini_fail(err, FIN_ERR_FORMAT,
                     "run %s is in both stores, but '%s' is not the same (%s here, %s there); "
                     "nothing was merged; with force the newer version wins",
                     hash, m->what, here, there);
}

/* Columns of m->mine: id, state, settings, version, finished. */
static fin_status merge_known(merge *m, const stranger *s, fin_error *err)
{
    int64_t id = sqlite3_column_int64(m->mine, 0), state;
    const char *settings, *version;
    fin_status status = fini_sql_integer(m->store, m->mine, 1, FIN_STATE_DONE, FIN_STATE_FAILED,
                                         "the state of a run", &state, err);
    if (!status)
        status = fini_sql_text(m->store, m->mine, 2, FIN_SETTINGS_TEXT, "the settings of a run",
                               &settings, err);
    if (!status)
        status = fini_sql_text(m->store, m->mine, 3, FINI_STORE_TEXT, "a version", &version, err);
    if (status)
        return status;
    if (strcmp(settings, s->settings) != 0)
        return fini_store_damaged(m->store, err, "run %s has settings that are not its own",
                                  s->hash);
    if (state == FIN_STATE_FAILED && s->state == FIN_STATE_DONE)
        return replace_run(m, id, s, err);
    m->differs = false;
    if (state == FIN_STATE_DONE && s->state == FIN_STATE_DONE)
        status = fini_compare_runs(&m->compare, id, s->id, note, m, err);
    if (!status && m->differs && !m->force)
        status = refuse(m, s->hash, err);
    if (status)
        return status;
    int newer = compare_versions(s->version, version);
    double finished = fini_sql_double(m->mine, 4);
    if (m->differs && (newer > 0 || (newer == 0 && s->finished > finished)))
        return replace_run(m, id, s, err);
    m->count->same++;
    return FIN_OK;
}

static fin_status merge_run(merge *m, fin_error *err)
{
    stranger s;
    bool known = false;
    fin_status status = read_run(m, &s, err);
    if (status)
        return status;
    fini_sql_bind_text(m->mine, 1, s.hash);
    status = fini_sql_step(m->store, m->mine, &known, err);
    if (!status && known)
        status = merge_known(m, &s, err);
    else if (!status) {
        status = copy_run(m, &s, err);
        m->count->added += !status;
    }
    sqlite3_reset(m->mine);
    return status;
}

static fin_status merge_runs(merge *m, fin_error *err)
{
    bool row = false;
    fin_status status =
        fini_sql_prepare(m->other,
                         "SELECT id, hash, command, settings, seed, state, reason, "
                         "version, kernel, seconds, finished FROM runs ORDER BY hash",
                         &m->runs, err);
    if (!status)
        status = fini_sql_prepare(m->other, fini_sql_scalars, &m->scalars, err);
    if (!status)
        status = fini_sql_prepare(m->other, fini_sql_series, &m->series, err);
    if (!status)
        status = fini_sql_prepare(m->store,
                                  "SELECT id, state, settings, version, finished FROM runs "
                                  "WHERE hash = ?1",
                                  &m->mine, err);
    if (!status)
        status = fini_compare_open(m->store, m->other, 0, &m->compare, err);
    while (!status && !(status = fini_sql_step(m->other, m->runs, &row, err)) && row)
        status = merge_run(m, err);
    sqlite3_finalize(m->runs);
    sqlite3_finalize(m->scalars);
    sqlite3_finalize(m->series);
    sqlite3_finalize(m->mine);
    fini_compare_close(&m->compare);
    return status;
}

/* ---- studies --------------------------------------------------------------------------------- */

/* Copies the plan, and works out its hash, which must be that of the study. */
static fin_status copy_plan(merge *m, int64_t from, int64_t to, const char *hash, fin_error *err)
{
    sqlite3_stmt *statement, *add;
    bool row = false;
    int64_t position = 0, expected = 0;
    const char *block, *run;
    char sum[FIN_HASH_TEXT] = "00000000000000000000000000000000";
    fin_status status = fini_sql_prepare(
        m->other, "SELECT position, block, hash FROM plan WHERE study_id = ?1 ORDER BY position",
        &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, from);
    while (!status && !(status = fini_sql_step(m->other, statement, &row, err)) && row) {
        status = fini_sql_integer(m->other, statement, 0, expected, expected, "a place in a plan",
                                  &position, err);
        if (!status)
            status = fini_sql_text(m->other, statement, 1, FINI_STORE_TEXT, "the name of a block",
                                   &block, err);
        if (!status)
            status = fini_sql_text(m->other, statement, 2, FIN_HASH_TEXT - 1, "a hash", &run, err);
        if (!status)
            status = fini_sql_get(m->store, FINI_SQL_PLAN_ADD, &add, err);
        if (status)
            break;
        sqlite3_bind_int64(add, 1, to);
        sqlite3_bind_int64(add, 2, position);
        fini_sql_bind_text(add, 3, block);
        fini_sql_bind_text(add, 4, run);
        status = fini_sql_step(m->store, add, &row, err);
        fini_plan_hash(sum, block, run);
        expected++;
    }
    sqlite3_finalize(statement);
    if (!status && strcmp(sum, hash) != 0)
        status =
            fini_store_damaged(m->other, err, "the plan of a study is not the one it was given");
    return status;
}

typedef struct claims {
    fin_store *store;
    int64_t study;
    int count;
} claims;

static fin_status copy_claim(void *user, const fin_claim *claim, fin_error *err)
{
    claims *c = user;
    return fini_store_add_claim(c->store, c->study, c->count++, claim, err);
}

/* Columns of `from`: id, name, title, source, text, changes, hash, full. */
static fin_status copy_study(merge *m, sqlite3_stmt *from, const char *const texts[6],
                             fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    claims c = {.store = m->store};
    fin_status status =
        fini_sql_prepare(m->store,
                         "INSERT INTO studies(name, title, source, text, changes, hash, full) "
                         "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                         &statement, err);
    if (status)
        return status;
    for (int i = 0; i < 6; i++)
        fini_sql_bind_text(statement, i + 1, texts[i]);
    sqlite3_bind_int(statement, 7, sqlite3_column_int(from, 7) != 0);
    status = fini_sql_step(m->store, statement, &row, err);
    sqlite3_finalize(statement);
    c.study = sqlite3_last_insert_rowid(m->store->db);
    if (!status)
        status = copy_plan(m, sqlite3_column_int64(from, 0), c.study, texts[5], err);
    if (!status)
        status = fin_store_claims(m->other, texts[0], copy_claim, &c, err);
    m->count->studies += !status;
    return status;
}

/* What this store has under the name; *id = 0: nothing. */
static fin_status find_mine(merge *m, const char *name, const char *hash, int64_t *id, bool *same,
                            fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    *id = 0;
    fin_status status = fini_sql_prepare(
        m->store, "SELECT id, hash = ?2 FROM studies WHERE name = ?1", &statement, err);
    if (status)
        return status;
    fini_sql_bind_text(statement, 1, name);
    fini_sql_bind_text(statement, 2, hash);
    status = fini_sql_step(m->store, statement, &row, err);
    if (!status && row) {
        *id = sqlite3_column_int64(statement, 0);
        *same = sqlite3_column_int(statement, 1) == 1;
    }
    sqlite3_finalize(statement);
    return status;
}

static fin_status merge_study(merge *m, sqlite3_stmt *from, fin_error *err)
{
    const char *texts[6];
    char shown[FINI_SHOWN];
    int64_t id;
    bool same = false;
    fin_status status = FIN_OK;
    for (int i = 0; i < 6 && !status; i++)
        status = fini_sql_text(m->other, from, i + 1, FINI_STORE_TEXT, "a text of a study",
                               &texts[i], err);
    if (!status)
        status = find_mine(m, texts[0], texts[5], &id, &same, err);
    if (status || same)
        return status;
    if (id && !m->force) {
        fini_printable(texts[0], strlen(texts[0]), shown, sizeof shown);
        return fini_fail(err, FIN_ERR_FORMAT,
                         "study '%s' is in both stores with different runs; nothing was merged; "
                         "rename one of them, or force the other store's plan",
                         shown);
    }
    if (id) {
        sqlite3_stmt *statement;
        bool row;
        status = fini_sql_prepare(m->store, "DELETE FROM studies WHERE id = ?1", &statement, err);
        if (status)
            return status;
        sqlite3_bind_int64(statement, 1, id);
        status = fini_sql_step(m->store, statement, &row, err);
        sqlite3_finalize(statement);
    }
    return status ? status : copy_study(m, from, texts, err);
}

static fin_status merge_studies(merge *m, fin_error *err)
{
    sqlite3_stmt *from;
    bool row = false;
    fin_status status = fini_sql_prepare(
        m->other,
        "SELECT id, name, title, source, text, changes, hash, full FROM studies ORDER BY name",
        &from, err);
    while (!status && !(status = fini_sql_step(m->other, from, &row, err)) && row)
        status = merge_study(m, from, err);
    sqlite3_finalize(from);
    return status;
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
    fin_status status = fini_store_begin(m->store, err);
    if (status)
        return status;
    status = merge_studies(m, err);
    if (!status)
        status = merge_runs(m, err);
    return fini_store_end(m->store, status, err);
}

fin_status fin_store_merge(fin_store *store, const char *other, int force, fin_merge_count *count,
                           fin_error *err)
{
    fin_merge_count own;
    bool mine = false;
    merge m = {.store = store, .force = force != 0, .count = count ? count : &own};
    *m.count = (fin_merge_count){0};
    fin_status status = fin_store_open(other, FIN_STORE_READ, &m.other, err);
    if (!status && is_same_file(store, m.other))
        status =
            fini_fail(err, FIN_ERR_ARGUMENT, "'%s' cannot be merged into itself", store->shown);
    if (!status)
        status = fini_store_look(m.other, &mine, err);
    if (!status)
        status = merge_all(&m, err);
    if (m.other)
        fini_store_unlook(m.other, mine);
    fin_store_close(m.other);
    if (status)
        *m.count = (fin_merge_count){0};
    return status;
}
