/* Stores: opening and refusing, plans, finished runs, sessions, claims; what is left after a crash,
 * a full disk, a read-only folder, or no memory. */
#include "test_store.h"

#include "fault_places.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- opening --------------------------------------------------------------------------------- */

static void open__creates_one_file(void **state)
{
    (void)state;
    const char *path = in_folder("a b?c#d%.db"); /* what a URI would read otherwise */
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    assert_int_equal(list_folder(0), 1);
    assert_int_equal(access(path, F_OK), 0);
    for (int how = FIN_STORE_READ; how <= FIN_STORE_CREATE; how++) {
        store = open_store(path, how);
        assert_ok(fin_store_check(store, &err));
        fin_store_close(store);
        assert_int_equal(list_folder(0), 1);
    }
    assert_int_equal(ask(path, "PRAGMA application_id"), FINI_STORE_APPLICATION);
    assert_int_equal(ask(path, "PRAGMA user_version"), 3);
    fin_store_close(NULL);
}

static void assert_refused(const char *path, int how, fin_status expected, const char *message)
{
    fin_store *store = (fin_store *)&err;
    fin_status status = fin_store_open(path, how, &store, &err);
    if (status != expected)
        fail_msg("%s: status '%s', message '%s'", path, fin_status_name(status), err.message);
    assert_null(store);
    assert_message(&err, message);
}

static void open__refuses_what_is_not_there(void **state)
{
    (void)state;
    const char *path = in_folder("none.db");
    assert_refused(path, FIN_STORE_READ, FIN_ERR_IO, "No such file");
    assert_refused(path, FIN_STORE_WRITE, FIN_ERR_IO, "No such file");
    assert_refused(in_folder("none/x.db"), FIN_STORE_CREATE, FIN_ERR_IO, "none/x.db");
    assert_refused(in_folder(""), FIN_STORE_CREATE, FIN_ERR_IO, "folder");
    assert_refused("", FIN_STORE_CREATE, FIN_ERR_ARGUMENT, "1 to 4095");
    assert_refused(path, 17, FIN_ERR_ARGUMENT, "read, write or create");
    assert_int_equal(list_folder(0), 0);
}

/* Whatever is refused has the same bytes afterwards, and nothing beside it. */
static void assert_refused_unchanged(const char *path, int how, const char *message)
{
    size_t before, after;
    int files = list_folder(0);
    char *a = read_file(path, &before);
    assert_refused(path, how, FIN_ERR_FORMAT, message);
    char *b = read_file(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(a, b, before);
    assert_int_equal(list_folder(0), files);
    free(a);
    free(b);
}

static void open__refuses_other_files_and_leaves_them(void **state)
{
    (void)state;
    const char *path = write_file("text.db", "lam,risk\n1,2\n", 13);
    for (int how = FIN_STORE_READ; how <= FIN_STORE_CREATE; how++)
        assert_refused_unchanged(path, how, "no SQLite database");
    path = write_file("empty.db", "", 0);
    assert_refused_unchanged(path, FIN_STORE_READ, "it is empty");
    assert_refused_unchanged(path, FIN_STORE_WRITE, "it is empty");
    fin_store_close(open_store(path, FIN_STORE_CREATE));
    path = in_folder("other.db");
    hack(path, "CREATE TABLE t(x); PRAGMA journal_mode = WAL; INSERT INTO t VALUES(1)");
    for (int how = FIN_STORE_READ; how <= FIN_STORE_CREATE; how++)
        assert_refused_unchanged(path, how, "another program");
    hack(path, "PRAGMA application_id = 77");
    assert_refused_unchanged(path, FIN_STORE_CREATE, "another program");
}

static void open__refuses_other_schemas(void **state)
{
    (void)state;
    const char *path = in_folder("new.db");
    fin_store_close(open_store(path, FIN_STORE_CREATE));
    hack(path, "PRAGMA user_version = 7");
    assert_refused_unchanged(path, FIN_STORE_WRITE,
                             "made by a newer finetti, schema 7; this one knows up to 3");
    hack(path, "PRAGMA user_version = 0");
    assert_refused_unchanged(path, FIN_STORE_WRITE, "schema 0");
    hack(path, "PRAGMA user_version = 2; DROP TABLE claims");
    assert_refused(path, FIN_STORE_WRITE, FIN_ERR_FORMAT, "missing");
    hack(path, "CREATE TABLE claims(x)");
    assert_refused(path, FIN_STORE_WRITE, FIN_ERR_FORMAT, "not those of a store");
}

static void open__refuses_triggers_and_views(void **state)
{
    (void)state;
    const char *path = in_folder("trigger.db");
    fin_store_close(open_store(path, FIN_STORE_CREATE));
    hack(path, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END");
    assert_refused(path, FIN_STORE_WRITE, FIN_ERR_FORMAT, "not those of a store");
    hack(path, "DROP TRIGGER t; CREATE VIEW v AS SELECT 1");
    assert_refused(path, FIN_STORE_READ, FIN_ERR_FORMAT, "not those of a store");
    hack(path, "DROP VIEW v");
    fin_store_close(open_store(path, FIN_STORE_READ));
}

static fin_status see_study(void *user, const fin_study_row *row, fin_error *e)
{
    (void)e;
    *(fin_study_row *)user = *row;
    assert_string_equal(row->name, "small");
    assert_string_equal(row->title, "A small one");
    return FIN_OK;
}

static fin_status count_runs(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    assert_int_equal(run->state, FIN_STATE_PLANNED);
    ++*(int *)user;
    return FIN_OK;
}

/* Claims as schema 2 had them, and one that was vague. */
static void make_old_claims(const char *path)
{
    hack(path,
         "DROP TABLE claims; CREATE TABLE claims(study_id INTEGER NOT NULL REFERENCES studies(id) "
         "ON DELETE CASCADE, position INTEGER NOT NULL, id TEXT NOT NULL, "
         "statement TEXT NOT NULL, source TEXT NOT NULL, quantity TEXT NOT NULL, "
         "expected TEXT NOT NULL, figure TEXT NOT NULL, how TEXT NOT NULL, value REAL, "
         "low REAL, high REAL, verdict INTEGER NOT NULL, PRIMARY KEY(study_id, position)) "
         "WITHOUT ROWID; INSERT INTO claims SELECT id, 0, 'old', 'S', 'so', 'q', 'at most 1', '', "
         "'by hand', 1.0, 0.5, 1.5, 3 FROM studies; PRAGMA user_version = 2; VACUUM");
}

static fin_status see_old_claim(void *user, const fin_claim *claim, fin_error *e)
{
    (void)e;
    ++*(int *)user;
    assert_string_equal(claim->id, "old");
    assert_string_equal(claim->how, "by hand");
    assert_string_equal(claim->needed, "");
    assert_true(claim->verdict == FIN_VERDICT_UNDECIDED && claim->kind == FIN_KIND_DERIVED &&
                claim->low == 0.5 && claim->high == 1.5);
    return FIN_OK;
}

static void assert_old_claim(fin_store *store)
{
    int seen = 0;
    assert_ok(fin_store_claims(store, "small", see_old_claim, &seen, &err));
    assert_int_equal(seen, 1);
}

/* A store as schema 1 had it: all settings with each run, and hashes in the plan. */
static void make_old(const char *path, int version)
{
    make_old_claims(path);
    if (version == 2)
        return;
    hack(path,
         "CREATE TABLE r AS SELECT s.id, hash, command, json_patch(c.text, s.own) AS settings, "
         "state, reason, version, kernel, seconds, finished FROM settings AS s JOIN common AS c "
         "ON c.id = s.common_id JOIN runs USING(id); CREATE TABLE p AS SELECT study_id, position, "
         "block, hash FROM plan JOIN settings ON id = run_id; DROP TABLE plan; DROP TABLE runs; "
         "DROP TABLE settings; DROP TABLE common; "
         "CREATE TABLE plan(study_id INTEGER NOT NULL REFERENCES studies(id) ON DELETE CASCADE, "
         "position INTEGER NOT NULL, block TEXT NOT NULL, hash TEXT NOT NULL, "
         "PRIMARY KEY(study_id, position)) WITHOUT ROWID; CREATE INDEX plan_hash ON plan(hash); "
         "CREATE TABLE runs(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, "
         "command TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER, state INTEGER NOT NULL, "
         "reason TEXT NOT NULL, version TEXT NOT NULL, kernel TEXT NOT NULL, seconds REAL, "
         "finished REAL); CREATE INDEX runs_failed ON runs(state) WHERE state = 2; "
         "INSERT INTO runs SELECT id, hash, command, settings, 1, state, reason, version, kernel, "
         "seconds, finished FROM r; INSERT INTO plan SELECT * FROM p; DROP TABLE r; DROP TABLE p; "
         "PRAGMA user_version = 1; VACUUM");
}

static void export_small(fin_store *store, const char *path)
{
    const fin_query query = {.study = "small", .state = FIN_STATE_DONE};
    assert_ok(fin_store_export(store, &query, path, 0, &err));
}

/* Read, it stays as it is; written to, it becomes a new one. Of planned runs it knew only hashes. */
static void bring_up_to_date(int version)
{
    char path[1024]; /* in_folder gives a few names, and then the first again */
    snprintf(path, sizeof path, "%s", in_folder("old.db"));
    fin_study *study = parse_study(small_text);
    fill_store(path, 0, 2);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    assert_ok(keep_failed(store, study, 1, "no"));
    export_small(store, in_folder("new.csv"));
    fin_store_close(store);
    copy_file(path, "new.db");
    make_old(path, version);
    size_t size, after;
    char *before = read_file(path, &size);
    store = open_store(path, FIN_STORE_READ);
    assert_ok(fin_store_check(store, &err));
    assert_old_claim(store);
    export_small(store, in_folder("old.csv"));
    assert_same_file(in_folder("new.csv"), in_folder("old.csv"));
    fin_store *other = open_store(in_folder("new.db"), FIN_STORE_WRITE);
    int64_t differences = -1;
    assert_ok(fin_store_diff(other, store, 0, NULL, NULL, &differences, &err));
    assert_int_equal(differences, 0);
    fin_merge_count count;
    assert_ok(fin_store_merge(other, path, 0, &count, &err));
    assert_true(count.same == SMALL / 2 + 1 && count.added == 0 && count.studies == 0);
    fin_store_close(other);
    fin_store_close(store);
    char *now = read_file(path, &after);
    assert_int_equal(size, after);
    assert_memory_equal(before, now, size);
    free(before);
    free(now);
    store = open_store(path, FIN_STORE_WRITE);
    assert_ok(fin_store_check(store, &err));
    assert_int_equal(ask(path, "PRAGMA user_version"), 3);
    assert_old_claim(store);
    export_small(store, in_folder("up.csv"));
    assert_same_file(in_folder("new.csv"), in_folder("up.csv"));
    fin_study_row row = {.planned = 0};
    assert_ok(fin_store_studies(store, see_study, &row, &err));
    assert_true(row.planned == SMALL && row.done == SMALL / 2 && row.failed == 1);
    const char *const where[] = {"L=6"}; /* planned: not known before it is planned again */
    const fin_query query = {.study = "small", .where = where, .where_count = 1};
    int seen = 0;
    assert_ok(fin_store_runs(store, &query, count_runs, &seen, &err));
    assert_int_equal(seen, version == 1 ? 0 : 1);
    seen = 0;
    plan(store, study);
    assert_ok(fin_store_runs(store, &query, count_runs, &seen, &err));
    assert_int_equal(seen, 1);
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    fin_study_destroy(study);
    remove(path);
    remove(in_folder("new.db"));
}

static void open__brings_an_older_store_up_to_date(void **state)
{
    (void)state;
    bring_up_to_date(1);
    bring_up_to_date(2);
}

static void open__read_does_not_write(void **state)
{
    (void)state;
    const char *path = in_folder("r.db");
    fill_store(path, 0, 1);
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_READ);
    assert_int_equal(keep(store, study, 1), FIN_ERR_ARGUMENT);
    assert_message(&err, "read only");
    int64_t id = 0;
    fin_session_row row = {.study = "small"};
    assert_int_equal(fini_store_session(store, &id, &row, &err), FIN_ERR_ARGUMENT);
    fin_store_close(store);
    fin_study_destroy(study);
    assert_int_equal(list_folder(0), 1);
}

/* Root may write everywhere: then the test is done as somebody else. */
static bool become_nobody(void)
{
    return geteuid() != 0 || seteuid(65534) == 0;
}

static void open__read_only_file_and_folder(void **state)
{
    (void)state;
    const char *path = in_folder("ro.db");
    fill_store(path, 0, 1);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    uid_t user = geteuid();
    assert_true(become_nobody());
    fin_store *store = NULL;
    fin_status write = fin_store_open(path, FIN_STORE_WRITE, &store, &err);
    fin_error refused = err;
    fin_status read = fin_store_open(path, FIN_STORE_READ, &store, &err);
    fin_status check = read ? read : fin_store_check(store, &err);
    fin_store_close(store);
    if (user != geteuid())
        assert_int_equal(seteuid(user), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(write, FIN_ERR_IO);
    assert_message(&refused, "cannot be written to");
    if (check)
        fail_msg("reading: %s", err.message);
    assert_int_equal(list_folder(0), 1);
}

static void open__waits_for_a_lock_and_says_so(void **state)
{
    (void)state;
    const char *path = in_folder("lock.db");
    fill_store(path, 0, 1);
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_WRITE),
              *other = open_store(path, FIN_STORE_WRITE);
    sqlite3_busy_timeout(store->db, 20); /* ten seconds are for people */
    assert_int_equal(sqlite3_exec(other->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(keep(store, study, 0), FIN_ERR_IO);
    assert_message(&err, "another program");
    assert_int_equal(sqlite3_exec(other->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_ok(keep(store, study, 0));
    fin_store_close(other);
    fin_store_close(store);
    fin_study_destroy(study);
    assert_int_equal(list_folder(0), 1);
}

static void open__says_why_it_cannot_create(void **state)
{
    (void)state;
    char path[1100];
    fin_store *store;
    assert_int_equal(fin_store_open(in_folder("no/x.db"), FIN_STORE_CREATE, &store, &err),
                     FIN_ERR_IO);
    assert_message(&err, "No such file or directory");
    if (geteuid() == 0)
        return; /* may write everywhere */
    assert_int_equal(mkdir(in_folder("closed"), 0555), 0);
    snprintf(path, sizeof path, "%s", in_folder("closed/x.db"));
    fin_status status = fin_store_open(path, FIN_STORE_CREATE, &store, &err);
    assert_int_equal(rmdir(in_folder("closed")), 0);
    assert_int_equal(status, FIN_ERR_IO);
    assert_message(&err, "Permission denied");
}

static void open__shows_a_strange_schema(void **state)
{
    (void)state;
    const char *path = in_folder("n.db");
    fin_store *store;
    fill_store(path, 0, 0);
    hack(path, "PRAGMA user_version = -5; PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(fin_store_open(path, FIN_STORE_READ, &store, &err), FIN_ERR_FORMAT);
    assert_message(&err, "schema -5");
}

/* A second look at an open store must not cost the first its locks: closing any descriptor of a
 * file drops them, and another program would take the log for nobody's. */
static void open__twice_keeps_the_locks(void **state)
{
    (void)state;
    const char *path = in_folder("l.db");
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    fin_study *study = parse_study(small_text);
    plan(store, study);
    fin_store *second = open_store(path, FIN_STORE_WRITE);
    assert_ok(fini_store_lock(second, "small", &err));
    fin_store_close(second);
    pid_t child = fork();
    if (child == 0) { /* whoever may lock all of the file is alone with it */
        int fd = open(path, O_RDWR);
        struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000};
        range.l_len = 512;
        _exit(fcntl(fd, F_SETLK, &range) == 0 ? 1 : 0);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_ok(fini_store_lock(store, "small", &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- plans and runs -------------------------------------------------------------------------- */

static int count_missing(fin_store *store, const fin_study *study, bool retry)
{
    unsigned char missing[64] = {0};
    int count = 0;
    assert_true(fin_study_run_count(study) <= 64);
    memset(missing, 7, sizeof missing);
    assert_ok(fini_store_plan(store, study, retry, missing, NULL, NULL, &err));
    for (int i = 0; i < fin_study_run_count(study); i++) {
        assert_true(missing[i] <= 1);
        count += missing[i];
    }
    return count;
}

static void plan__knows_what_is_missing(void **state)
{
    (void)state;
    const char *path = in_folder("p.db");
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    assert_int_equal(count_missing(store, study, false), SMALL);
    assert_ok(keep(store, study, 3));
    assert_ok(keep_failed(store, study, 4, "it did not work"));
    assert_int_equal(count_missing(store, study, false), SMALL - 2);
    assert_int_equal(count_missing(store, study, true), SMALL - 1);
    assert_ok(keep(store, study, 4)); /* a failed run is replaced */
    assert_int_equal(count_missing(store, study, true), SMALL - 2);
    assert_ok(keep_failed(store, study, 4, "too late")); /* a done one is not */
    assert_int_equal(count_missing(store, study, true), SMALL - 2);
    int changes = sqlite3_total_changes(store->db);
    assert_int_equal(count_missing(store, study, true), SMALL - 2);
    assert_int_equal(sqlite3_total_changes(store->db), changes); /* the same plan: not a byte */
    fin_store_close(store);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 2);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs WHERE state = 1 AND reason = ''"), 2);
    assert_int_equal(ask(path, "SELECT count(*) FROM plan"), SMALL);
    fin_study_destroy(study);
}

static void plan__follows_a_changed_study(void **state)
{
    (void)state;
    const char *path = in_folder("c.db");
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    plan(store, study);
    for (int i = 0; i < SMALL; i++)
        assert_ok(keep(store, study, i));
    const fin_claim claim = {.id = "a", .statement = "b", .verdict = FIN_VERDICT_HOLDS};
    assert_ok(fini_store_keep_claims(store, "small", &claim, 1, &err));
    plan(store, study);
    assert_int_equal(ask(path, "SELECT count(*) FROM claims"), 1);
    fin_study_destroy(study);
    study = parse_study("study: small\nruns:\n  - command: risk\n    id: grid\n"
                        "    axes: {L: [2, 7], lam: [0.1, 0.2]}\n");
    assert_int_equal(count_missing(store, study, false), 2); /* those with L = 7 */
    fin_store_close(store);
    assert_int_equal(ask(path, "SELECT count(*) FROM plan"), 4);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), SMALL);
    assert_int_equal(ask(path, "SELECT count(*) FROM claims"), 0);
    assert_int_equal(ask(path, "SELECT count(*) FROM studies"), 1);
    fin_study_destroy(study);
}

static int cancel_at_zero(void *user, const char *what, double done, double total)
{
    (void)what;
    assert_true(done >= 0 && done <= total && total == 5000);
    return --*(int *)user <= 0;
}

/* However far it got, among them the removal of what the old plan had. */
static void plan__a_cancel_leaves_the_store_as_it_was(void **state)
{
    (void)state;
    const char *path = in_folder("x.db");
    fin_study *study = parse_study("study: small\nruns:\n  - command: risk\n"
                                   "    axes: {L: {from: 2, to: 5001, count: 5000}}\n");
    unsigned char missing[5000];
    fill_store(path, 0, 1);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    fin_status status = FIN_ERR_CANCELLED;
    int first = 1;
    for (; status == FIN_ERR_CANCELLED && first < 100; first++) {
        int left = first;
        const fin_progress progress = {cancel_at_zero, &left};
        status = fini_store_plan(store, study, false, missing, NULL, &progress, &err);
        if (status)
            assert_message(&err, "the store");
        assert_int_equal(ask(path, "SELECT count(*) FROM plan"), status ? SMALL : 5000);
        assert_int_equal(ask(path, "SELECT count(*) FROM studies WHERE title = 'A small one'"),
                         status != FIN_OK);
    }
    assert_ok(status);
    assert_true(first > 4);
    fin_store_close(store);
    fin_study_destroy(study);
}

static fin_status see_planned(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    assert_int_equal(run->state, FIN_STATE_PLANNED);
    ++*(int *)user;
    return FIN_OK;
}

/* One of four combinations does not fit together: planned and listed like the others. */
static void plan__has_runs_that_will_fail(void **state)
{
    (void)state;
    fin_study *study = parse_study("study: small\nruns:\n  - command: risk\n"
                                   "    axes: {L_min: [1, 20], L: [10, 30]}\n");
    fin_store *store = open_store(in_folder("m.db"), FIN_STORE_CREATE);
    const fin_query query = {.study = "small", .state = -1};
    int planned = 0;
    assert_int_equal(count_missing(store, study, false), 4);
    assert_ok(fin_store_runs(store, &query, see_planned, &planned, &err));
    assert_int_equal(planned, 4);
    assert_ok(keep_failed(store, study, 2, "it does not fit"));
    assert_int_equal(count_missing(store, study, false), 3);
    fin_store_close(store);
    fin_study_destroy(study);
}

static void plan__a_run_twice_is_done_once(void **state)
{
    (void)state;
    fin_study *study = parse_study("study: twice\nruns:\n"
                                   "  - {id: a, command: risk, axes: {L: [2, 3]}}\n"
                                   "  - {id: b, command: risk, axes: {L: [3, 2, 4]}}\n");
    fin_store *store = open_store(in_folder("t.db"), FIN_STORE_CREATE);
    unsigned char missing[5];
    const unsigned char expected[5] = {1, 1, 0, 0, 1};
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    assert_memory_equal(missing, expected, 5);
    for (int i = 0; i < 2; i++)
        assert_ok(keep(store, study, i));
    assert_int_equal(count_missing(store, study, false), 1);
    fini_frame *frame;
    assert_ok(fini_frame_read(store, "twice", NULL, NULL, 0, &frame, &err));
    assert_int_equal(fini_frame_rows(frame), 4);
    assert_int_equal(fini_frame_missing(frame), 1);
    const fini_column *risk = fini_frame_column(frame, "risk");
    assert_true(risk->value[3] == risk->value[0] && risk->value[2] == risk->value[1]);
    assert_string_equal(fini_frame_block(frame, 1), "a");
    assert_string_equal(fini_frame_block(frame, 2), "b");
    fini_frame_destroy(frame);
    fin_store_close(store);
    fin_study_destroy(study);
}

static void plan__other_settings_under_a_hash_are_damage(void **state)
{
    (void)state;
    const char *path = in_folder("h.db");
    fill_store(path, 0, 1);
    hack(path, "UPDATE settings SET own = '{}' WHERE id = 5");
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    unsigned char missing[SMALL];
    assert_int_equal(fini_store_plan(store, study, false, missing, NULL, NULL, &err),
                     FIN_ERR_FORMAT);
    assert_message(&err, "other settings");
    assert_int_equal(keep(store, study, 4), FIN_ERR_FORMAT);
    assert_ok(keep(store, study, 5)); /* and the store still works */
    fin_store_close(store);
    fin_study_destroy(study);
}

static fin_status see_row(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    assert_string_equal(run->version, fin_version());
    assert_true(run->kernel[0] != '\0');
    assert_true(run->seconds == 0.5);
    assert_null(strchr(run->reason, 0x1b));
    ++*(int *)user;
    return FIN_OK;
}

static void keep__says_where_a_run_comes_from(void **state)
{
    (void)state;
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(in_folder("k.db"), FIN_STORE_CREATE);
    int count = 0;
    plan(store, study);
    assert_ok(keep(store, study, 0));
    assert_ok(keep_failed(store, study, 1, "no \x1b[31m good \xff"));
    assert_ok(fin_store_runs(store, NULL, see_row, &count, &err));
    assert_int_equal(count, 2);
    fini_done wrong = {.position = 99, .state = FIN_STATE_FAILED};
    assert_int_not_equal(fini_study_keep(store, study, &wrong, 1, &err), FIN_OK);
    wrong = (fini_done){.position = 2, .state = FIN_STATE_PLANNED};
    assert_int_equal(fini_study_keep(store, study, &wrong, 1, &err), FIN_ERR_ARGUMENT);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* What is known of a run from its plan is believed if the store still has it so; else the run is looked for. */
static void keep__believes_a_plan_that_still_holds(void **state)
{
    (void)state;
    const char *path = in_folder("b.db");
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    unsigned char missing[SMALL];
    fini_known known[SMALL];
    assert_ok(fini_store_plan(store, study, false, missing, known, NULL, &err));
    const fini_known of[] = {
        known[0], known[5], {known[2].id, ~known[2].hash}, {1 << 20, known[3].hash}, {0, 0}};
    for (int i = 0; i < 5; i++) { /* the second is run 5, whatever its place */
        fini_done done = {.position = i, .state = FIN_STATE_FAILED, .known = of[i]};
        snprintf(done.reason, sizeof done.reason, "run %d", i == 1 ? 5 : i);
        assert_ok(fini_study_keep(store, study, &done, 1, &err));
    }
    for (int i = 0; i < SMALL; i++) {
        fin_plan plan;
        char sql[300];
        assert_ok(fin_study_get_run(study, i, &plan, &err));
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM runs AS r JOIN settings AS s ON s.id = r.id "
                 "WHERE s.hash = '%s' AND r.reason = 'run %d'",
                 plan.hash, i);
        assert_int_equal(ask(path, sql), i < 6 && i != 1);
    }
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 5);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* All runs of a call or none. */
static void keep__is_one_transaction(void **state)
{
    (void)state;
    const char *path = in_folder("o.db");
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    plan(store, study);
    fini_done done[3] = {{.position = 0, .state = FIN_STATE_DONE},
                         {.position = 1, .state = FIN_STATE_DONE},
                         {.position = 1000, .state = FIN_STATE_DONE}};
    for (int i = 0; i < 3; i++)
        done[i].result = make_result(i);
    assert_int_not_equal(fini_study_keep(store, study, done, 3, &err), FIN_OK);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 0);
    assert_int_equal(ask(path, "SELECT count(*) FROM names"), 0);
    assert_ok(fini_study_keep(store, study, done, 2, &err));
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 2);
    assert_int_equal(ask(path, "SELECT count(*) FROM names"), 4);
    for (int i = 0; i < 3; i++)
        fin_result_destroy(done[i].result);
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- sessions and claims --------------------------------------------------------------------- */

static fin_status see_session(void *user, const fin_session_row *row, fin_error *e)
{
    fin_session_row *first = user;
    (void)e;
    if (first->total == 0)
        *first = *row;
    first->ranks++;
    return FIN_OK;
}

static void sessions__are_told_and_forgotten(void **state)
{
    (void)state;
    fin_store *store = open_store(in_folder("s.db"), FIN_STORE_CREATE);
    fin_session_row row = {.study = "a'; DROP TABLE runs; --", .total = 5, .threads = 2};
    row.left = NAN;
    int64_t id = 0;
    for (int i = 0; i < 150; i++) {
        id = 0;
        row.done = i;
        assert_ok(fini_store_session(store, &id, &row, &err));
        assert_true(id > 0);
    }
    row.done = 777;
    row.ended = 1;
    row.left = 3;
    int64_t same = id;
    assert_ok(fini_store_session(store, &same, &row, &err));
    assert_int_equal(same, id);
    fin_session_row first = {0};
    assert_ok(fin_store_sessions(store, see_session, &first, &err));
    assert_int_equal(first.ranks, 100);
    assert_int_equal(first.done, 777);
    assert_int_equal(first.threads, 2);
    assert_int_equal(first.ended, 1);
    assert_true(first.left == 3 && first.silent >= 0 && first.silent < 60);
    fin_store_close(store);
}

static fin_status see_claim(void *user, const fin_claim *claim, fin_error *e)
{
    int *count = user;
    (void)e;
    assert_string_equal(claim->study, "small");
    assert_string_equal(claim->id, *count ? "two" : "one");
    assert_string_equal(claim->statement, "\"quoted\", 'quoted' \xf0\x9f\x90\x8c\nand broken");
    assert_string_equal(claim->figure, "");
    assert_true(*count ? claim->value == INFINITY && claim->verdict == FIN_VERDICT_FAILS
                       : isnan(claim->value) && claim->verdict == FIN_VERDICT_UNTESTED);
    ++*count;
    return *count == 7 ? FIN_ERR_CANCELLED : FIN_OK;
}

static void claims__are_kept_in_order(void **state)
{
    (void)state;
    const char *path = in_folder("cl.db");
    fill_store(path, 0, 2);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    fin_claim claims[2] = {{.id = "one", .verdict = FIN_VERDICT_UNTESTED, .value = NAN},
                           {.id = "two", .verdict = FIN_VERDICT_FAILS, .value = INFINITY}};
    int count = 0;
    for (int i = 0; i < 2; i++)
        claims[i].statement = "\"quoted\", 'quoted' \xf0\x9f\x90\x8c\nand broken";
    for (int i = 0; i < 2; i++) /* the second time instead of the first */
        assert_ok(fini_store_keep_claims(store, "small", claims, 2, &err));
    assert_ok(fin_store_claims(store, NULL, see_claim, &count, &err));
    assert_int_equal(count, 2);
    count = 0;
    assert_ok(fin_store_claims(store, "small", see_claim, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(fin_store_claims(store, "smal", see_claim, &count, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "'small'");
    claims[1].verdict = FIN_VERDICT_HOLDS;
    assert_ok(fini_store_keep_claims(store, "small", claims, 2, &err));
    fin_study_row row;
    assert_ok(fin_store_studies(store, see_study, &row, &err));
    assert_int_equal(row.planned, SMALL);
    assert_int_equal(row.done, SMALL / 2);
    assert_int_equal(row.failed, 0);
    assert_int_equal(row.claims, 2);
    assert_int_equal(row.held, 1);
    assert_true(row.seconds == 0.5 * SMALL / 2);
    fin_store_close(store);
}

static void study__comes_back_as_it_was(void **state)
{
    (void)state;
    const char *path = in_folder("st.db");
    const char *const set[] = {"runs.grid.axes.L=[2, 10]"};
    const fin_study_changes changes = {.set = set, .count = 1};
    fin_study *study = NULL, *again = NULL;
    assert_ok(fin_study_parse(small_text, strlen(small_text), "x", &changes, &study, &err));
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    plan(store, study);
    assert_ok(fini_store_study(store, "small", &again, &err));
    assert_int_equal(fin_study_run_count(again), 12);
    for (int i = 0; i < 12; i++) {
        fin_plan a, b;
        assert_ok(fin_study_get_run(study, i, &a, &err));
        assert_ok(fin_study_get_run(again, i, &b, &err));
        assert_string_equal(a.settings, b.settings);
    }
    fin_study_destroy(again);
    assert_int_equal(fini_store_study(store, "smalll", &again, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "'small'");
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- crashes, full disks, no memory ---------------------------------------------------------- */

/* A copy of the file and its log at any moment is a store with whole runs only. */
static void crash__leaves_whole_runs(void **state)
{
    (void)state;
    const char *path = in_folder("crash.db");
    fin_study *study = parse_study("study: many\nruns:\n  - command: risk\n"
                                   "    axes: {L: {from: 2, to: 301, count: 300}}\n");
    pid_t child = fork();
    if (child == 0) {
        fin_store *store;
        unsigned char missing[300];
        if (fin_store_open(path, FIN_STORE_CREATE, &store, &err) ||
            fini_store_plan(store, study, false, missing, NULL, NULL, &err))
            _exit(1);
        for (int round = 0;; round = (round + 1) % 300)
            if (keep(store, study, round))
                _exit(1);
    }
    char log[1100];
    snprintf(log, sizeof log, "%s-wal", path);
    int64_t last = 0;
    for (int i = 0; i < 40; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000 + i * 700000 % 5000000}, NULL);
        if (i == 30) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
        }
        if (access(log, F_OK) != 0)
            continue;
        /* The log first: what a checkpoint moves in between is then in both. */
        copy_file(log, "copy.db-wal");
        copy_file(path, "copy.db");
        remove(in_folder("copy.db-shm"));
        fin_store *store = NULL;
        if (fin_store_open(in_folder("copy.db"), FIN_STORE_READ, &store, &err)) {
            assert_message(&err, "it is empty");
            continue;
        }
        assert_ok(fin_store_check(store, &err));
        int64_t runs, whole;
        assert_ok(fini_sql_number(store, "SELECT count(*) FROM runs", 0, &runs, &err));
        assert_ok(fini_sql_number(store,
                                  "SELECT count(*) FROM runs WHERE (SELECT count(*) FROM scalars "
                                  "WHERE run_id = runs.id) >= 3",
                                  0, &whole, &err));
        assert_int_equal(runs, whole);
        assert_true(runs >= last);
        last = runs;
        fin_store_close(store);
    }
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    assert_ok(fin_store_check(store, &err));
    unsigned char missing[300];
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    for (int i = 0; i < 300; i++)
        if (missing[i])
            assert_ok(keep(store, study, i));
    fin_store_close(store);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 300);
    fin_study_destroy(study);
    remove(in_folder("copy.db-shm"));
}

static void full_disk__leaves_the_store_as_it_was(void **state)
{
    (void)state;
    const char *path = in_folder("full.db");
    fill_store(path, 1, 2);
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 8192;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fin_status status = keep(store, study, 0);
    fin_error message = err;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, FIN_ERR_IO);
    assert_message(&message, "cannot write to the store");
    assert_ok(fin_store_check(store, &err));
    /* And SQLite's own "full". */
    assert_int_equal(sqlite3_exec(store->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL),
                     SQLITE_OK);
    fin_study *large = parse_study("study: large\nruns:\n  - command: risk\n"
                                   "    axes: {L: {from: 2, to: 3001, count: 3000}}\n");
    unsigned char missing[3000];
    assert_int_equal(fini_store_plan(store, large, false, missing, NULL, NULL, &err), FIN_ERR_IO);
    assert_message(&err, "cannot write to the store");
    assert_message(&err, "the disk is full");
    assert_int_equal(sqlite3_exec(store->db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_ok(keep(store, study, 0));
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), SMALL / 2 + 1);
    assert_int_equal(ask(path, "SELECT count(*) FROM studies"), 1);
    fin_study_destroy(study);
    fin_study_destroy(large);
}

static fin_status nothing(void *user, const fin_run_row *run, fin_error *e)
{
    (void)user;
    (void)run;
    (void)e;
    return FIN_OK;
}

static fin_status nothing_series(void *user, const fin_run_row *run, const fin_series *series,
                                 fin_error *e)
{
    (void)series;
    return nothing(user, run, e);
}

/* The whole life of a store, with memory failing somewhere in it. */
static fin_status live(void *user, fin_error *e)
{
    const char *path = user;
    fin_store *store = NULL;
    fin_study *study = NULL;
    unsigned char missing[SMALL];
    const char *const where[] = {"L=2|10", "risk>=0"};
    const fin_query query = {.study = "small", .where = where, .where_count = 2};
    fini_done done = {.position = 2, .state = FIN_STATE_DONE};
    remove(path);
    fin_status status = fin_study_parse(small_text, strlen(small_text), "x", NULL, &study, e);
    if (!status)
        status = fin_store_open(path, FIN_STORE_CREATE, &store, e);
    if (!status)
        status = fini_store_plan(store, study, false, missing, NULL, NULL, e);
    if (!status && !(done.result = fin_result_create()))
        status = fini_fail(e, FIN_ERR_MEMORY, "no result");
    if (!status) {
        const double curve[3] = {1, 2, 3};
        fini_result_scalar(done.result, "risk", 1, 0, FIN_HOW_CLOSED, 0);
        fini_result_series(done.result, "curve", FIN_F64, 1, (int64_t[]){3}, curve);
        status = fini_result_status(done.result, e);
    }
    if (!status)
        status = fini_study_keep(store, study, &done, 1, e);
    if (!status)
        status = fin_store_runs(store, &query, nothing, NULL, e);
    if (!status)
        status = fin_store_series(store, &query, 1, nothing_series, NULL, e);
    fin_result_destroy(done.result);
    fin_store_close(store);
    fin_study_destroy(study);
    return status;
}

static fin_status look(void *user, fin_error *e)
{
    fin_store *store = NULL;
    fini_frame *frame = NULL;
    fin_series series = {0};
    int count;
    fin_status status = fin_store_open(user, FIN_STORE_READ, &store, e);
    if (!status)
        status = fini_frame_read(store, "small", "grid", NULL, 0, &frame, e);
    if (!status) {
        const char *const names[] = {"risk", "lam", "check", "seconds"};
        for (int i = 0; i < 4 && !status; i++)
            if (!fini_frame_column(frame, names[i]))
                status = fini_frame_status(frame, e);
        if (!status && !fini_frame_names(frame, &count))
            status = fini_frame_status(frame, e);
        if (!status)
            status = fini_frame_status(frame, e);
    }
    if (!status)
        status = fini_frame_series(frame, 0, "curve", &series, e);
    fini_free((void *)series.data);
    fini_frame_destroy(frame);
    fin_store_close(store);
    return status;
}

static fin_status join(void *user, fin_error *e)
{
    char *target = user;
    fin_store *store = NULL, *other = NULL;
    int64_t count;
    char from[1024];
    snprintf(from, sizeof from, "%s", in_folder("fault.db"));
    remove(target);
    fin_status status = fin_store_open(target, FIN_STORE_CREATE, &store, e);
    if (!status)
        status = fin_store_merge(store, from, 0, NULL, e);
    if (!status)
        status = fin_store_open(from, FIN_STORE_READ, &other, e);
    if (!status)
        status = fin_store_diff(store, other, 0, NULL, NULL, &count, e);
    if (!status)
        status = fin_store_export(store, NULL, in_folder("fault.csv"), 1, e);
    if (!status)
        status =
            fin_store_export(store, &(fin_query){.study = "small"}, in_folder("fault.npz"), 1, e);
    fin_store_close(other);
    fin_store_close(store);
    return status;
}

static void memory__every_failure_is_told(void **state)
{
    (void)state;
    char path[1024], target[1024];
    snprintf(path, sizeof path, "%s", in_folder("fault.db"));
    snprintf(target, sizeof target, "%s", in_folder("target.db"));
    assert_true(fault_places(live, path) > 20);
    remove(path);
    fill_store(path, 0, 1);
    print_message("%ld allocations\n", fault_every(look, path));
    remove(path);
    fill_store(path, 0, 5); /* planned runs too */
    assert_true(fault_places(join, target) > 20);
}

static void names__of_states_and_kinds(void **state)
{
    (void)state;
    assert_string_equal(fin_how_name(FIN_HOW_SHARE), "share of runs");
    assert_string_equal(fin_state_name(FIN_STATE_FAILED), "failed");
    assert_null(fin_how_name(FIN_HOW_COUNT));
    assert_null(fin_how_name((fin_how)-1));
    assert_null(fin_state_name((fin_state)3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(open__creates_one_file, empty_folder),
        cmocka_unit_test_setup(open__refuses_what_is_not_there, empty_folder),
        cmocka_unit_test_setup(open__refuses_other_files_and_leaves_them, empty_folder),
        cmocka_unit_test_setup(open__refuses_other_schemas, empty_folder),
        cmocka_unit_test_setup(open__refuses_triggers_and_views, empty_folder),
        cmocka_unit_test_setup(open__brings_an_older_store_up_to_date, empty_folder),
        cmocka_unit_test_setup(open__read_does_not_write, empty_folder),
        cmocka_unit_test_setup(open__read_only_file_and_folder, empty_folder),
        cmocka_unit_test_setup(open__waits_for_a_lock_and_says_so, empty_folder),
        cmocka_unit_test_setup(open__says_why_it_cannot_create, empty_folder),
        cmocka_unit_test_setup(open__shows_a_strange_schema, empty_folder),
        cmocka_unit_test_setup(open__twice_keeps_the_locks, empty_folder),
        cmocka_unit_test_setup(plan__knows_what_is_missing, empty_folder),
        cmocka_unit_test_setup(plan__follows_a_changed_study, empty_folder),
        cmocka_unit_test_setup(plan__a_cancel_leaves_the_store_as_it_was, empty_folder),
        cmocka_unit_test_setup(plan__has_runs_that_will_fail, empty_folder),
        cmocka_unit_test_setup(plan__a_run_twice_is_done_once, empty_folder),
        cmocka_unit_test_setup(plan__other_settings_under_a_hash_are_damage, empty_folder),
        cmocka_unit_test_setup(keep__says_where_a_run_comes_from, empty_folder),
        cmocka_unit_test_setup(keep__believes_a_plan_that_still_holds, empty_folder),
        cmocka_unit_test_setup(keep__is_one_transaction, empty_folder),
        cmocka_unit_test_setup(sessions__are_told_and_forgotten, empty_folder),
        cmocka_unit_test_setup(claims__are_kept_in_order, empty_folder),
        cmocka_unit_test_setup(study__comes_back_as_it_was, empty_folder),
        cmocka_unit_test_setup(crash__leaves_whole_runs, empty_folder),
        cmocka_unit_test_setup(full_disk__leaves_the_store_as_it_was, empty_folder),
        cmocka_unit_test_setup(memory__every_failure_is_told, empty_folder),
        cmocka_unit_test(names__of_states_and_kinds),
    };
    return cmocka_run_group_tests(tests, make_store_folder, remove_folder);
}
