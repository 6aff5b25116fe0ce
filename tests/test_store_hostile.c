/* Stores that somebody has tampered with, and names that look like something else: every answer is
 * data or a message, and nothing else happens. The sanitizers watch. */
#include "test_store.h"

#include "test_size.h"

static fin_status any_run(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    *(size_t *)user += strlen(run->hash) + strlen(run->settings) + strlen(run->block) +
                       strlen(run->reason) + strlen(run->version) + strlen(run->kernel) +
                       strlen(run->command);
    return FIN_OK;
}

static fin_status any_scalar(void *user, const fin_run_row *run, const fin_scalar *s, fin_error *e)
{
    assert_true((int)s->how >= 0 && s->how < FIN_HOW_COUNT && s->samples >= 0);
    *(size_t *)user += strlen(s->name);
    return any_run(user, run, e);
}

static fin_status any_series(void *user, const fin_run_row *run, const fin_series *s, fin_error *e)
{
    size_t bytes = fin_dtype_size(s->dtype);
    assert_true(s->ndim >= 0 && s->ndim <= 4);
    for (int i = 0; i < s->ndim; i++)
        bytes *= (size_t)s->shape[i];
    for (size_t i = 0; i < bytes; i++)
        *(size_t *)user += ((const unsigned char *)s->data)[i];
    return any_run(user, run, e);
}

static fin_status any_study(void *user, const fin_study_row *s, fin_error *e)
{
    (void)e;
    *(size_t *)user += strlen(s->name) + strlen(s->title) + strlen(s->source);
    return FIN_OK;
}

static fin_status any_session(void *user, const fin_session_row *s, fin_error *e)
{
    (void)e;
    *(size_t *)user += strlen(s->study);
    return FIN_OK;
}

static fin_status any_claim(void *user, const fin_claim *c, fin_error *e)
{
    (void)e;
    *(size_t *)user += strlen(c->id) + strlen(c->statement) + strlen(c->how);
    assert_true(c->verdict >= FIN_VERDICT_UNTESTED && c->verdict < FIN_VERDICTS &&
                c->kind < FIN_KINDS);
    return FIN_OK;
}

static int count_status(fin_status status)
{
    if (status && !err.message[0])
        fail_msg("status '%s' without a message", fin_status_name(status));
    if (status == FIN_ERR_NUMERIC || status == FIN_ERR_CANCELLED)
        fail_msg("status '%s': %s", fin_status_name(status), err.message);
    err.message[0] = '\0';
    return status != FIN_OK;
}

/* Everything that can be asked; returns how many answers were messages. */
static int ask_all(fin_store *store, const char *target)
{
    size_t bytes = 0;
    int bad = 0;
    int64_t count;
    fini_frame *frame = NULL;
    fin_study *study = NULL;
    const char *const where[] = {"L>=2", "risk<100"};
    const fin_query queries[] = {{0},
                                 {.study = "small"},
                                 {.study = "small", .where = where, .where_count = 2},
                                 {.where = where, .where_count = 2},
                                 {.hash = "7", .has = "odd"}};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        bad += count_status(fin_store_runs(store, &queries[i], any_run, &bytes, &err));
        bad += count_status(fin_store_scalars(store, &queries[i], any_scalar, &bytes, &err));
        bad += count_status(fin_store_series(store, &queries[i], 1, any_series, &bytes, &err));
    }
    bad += count_status(fin_store_studies(store, any_study, &bytes, &err));
    bad += count_status(fin_store_sessions(store, any_session, &bytes, &err));
    bad += count_status(fin_store_claims(store, NULL, any_claim, &bytes, &err));
    bad += count_status(fini_store_study(store, "small", &study, &err));
    fin_study_destroy(study);
    bad += count_status(fini_frame_read(store, "small", NULL, NULL, 0, &frame, &err));
    if (frame) {
        int names;
        fin_series series = {0};
        fini_frame_names(frame, &names);
        bad += count_status(fini_frame_status(frame, &err));
        bad += count_status(fini_frame_series(frame, 0, "curve", &series, &err));
        fini_free((void *)series.data);
    }
    fini_frame_destroy(frame);
    bad += count_status(fin_store_export(store, &queries[1], in_folder("x.csv"), 1, &err));
    bad += count_status(fin_store_export(store, &queries[1], in_folder("x.npz"), 1, &err));
    bad += count_status(fin_store_diff(store, store, 0, NULL, NULL, &count, &err));
    bad += count_status(fin_store_check(store, &err));
    remove(target);
    return bad;
}

/* A store with a bit of everything. */
static void make_rich(const char *path)
{
    fill_store(path, 0, 2);
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    const fin_claim claim = {.id = "a", .statement = "b", .how = "c"};
    const fin_session_row session = {.study = "small", .total = 3};
    int64_t id = 0;
    assert_ok(keep_failed(store, study, 1, "no"));
    assert_ok(fini_store_keep_claims(store, "small", &claim, 1, &err));
    assert_ok(fini_store_session(store, &id, &session, &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

static void tampered__rows_are_told(void **state)
{
    (void)state;
    static const char *const harm[] = {
        "UPDATE settings SET own = x'00' WHERE id = 2",
        "UPDATE settings SET own = CAST(zeroblob(20000) AS TEXT) WHERE id = 2",
        "UPDATE settings SET own = '{' WHERE id = 2",
        "UPDATE settings SET own = '{\"settings\":{\"L\":' WHERE id = 2",
        "PRAGMA foreign_keys = OFF; UPDATE settings SET common_id = 77",
        "UPDATE settings SET own = printf('{\"settings\":{\"L\":\"%.*c\"}}', 70000, 'x')",
        "UPDATE common SET text = CAST(x'7b22ff' AS TEXT)",
        "UPDATE common SET text = x'7b7d'",
        "UPDATE common SET text = '[1, 2'",
        "UPDATE settings SET hash = 'short' WHERE id = 2",
        "UPDATE settings SET hash = upper(hash)",
        "UPDATE runs SET state = 0 WHERE id = 2",
        "UPDATE runs SET state = 'done' WHERE id = 2",
        "UPDATE runs SET state = 1e300 WHERE id = 2",
        "UPDATE common SET command = x'07'",
        "UPDATE runs SET version = CAST(zeroblob(3000000) AS TEXT)",
        "UPDATE runs SET reason = CAST(x'c0af' AS TEXT)",
        "UPDATE scalars SET how = -1",
        "UPDATE scalars SET how = 'x', value = 'y', error = x'01'",
        "UPDATE scalars SET samples = -9223372036854775808",
        "UPDATE names SET name = CAST(x'80' AS TEXT) WHERE name = 'risk'",
        "UPDATE names SET name = x'41' WHERE name = 'curve'",
        "UPDATE series SET dtype = '<f9'",
        "UPDATE series SET shape = '1,1,1,1,1'",
        "UPDATE series SET shape = '-1'",
        "UPDATE series SET shape = '2,'",
        "UPDATE series SET shape = '2,3x'",
        "UPDATE series SET shape = '999999999999,999999999999,999999999999'",
        "UPDATE series SET shape = '100000000'",
        "UPDATE series SET shape = '2,4'",
        "UPDATE series SET data = zeroblob(1000)",
        "UPDATE series SET data = CAST(data || x'00' AS BLOB)",
        "UPDATE series SET data = substr(data, 1, length(data) - 1)",
        "UPDATE series SET data = 'text'",
        "UPDATE plan SET position = -5 WHERE position = 0",
        "PRAGMA foreign_keys = OFF; UPDATE plan SET run_id = 99 WHERE position = 3",
        "UPDATE plan SET block = x'ff' WHERE position = 3",
        "UPDATE studies SET text = 'study: [', hash = 5",
        "UPDATE studies SET title = x'00'",
        "UPDATE sessions SET total = -1",
        "UPDATE sessions SET ranks = 99999999999",
        "UPDATE claims SET verdict = 17",
        "UPDATE claims SET statement = CAST(x'ff' AS TEXT)",
        "PRAGMA foreign_keys = OFF; UPDATE scalars SET run_id = run_id + 1000",
    };
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        list_folder(1);
        make_rich(in_folder("h.db"));
        hack(in_folder("h.db"), harm[i]);
        fin_store *store = open_store(in_folder("h.db"), FIN_STORE_READ);
        if (ask_all(store, in_folder("x.csv")) == 0)
            fail_msg("nobody noticed: %s", harm[i]);
        fin_store_close(store);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

/* Bytes changed at random, or the end cut off. */
static void tampered__bytes_are_survived(void **state)
{
    (void)state;
    size_t size;
    int opened = 0, noticed = 0;
    uint64_t random = 4;
    make_rich(in_folder("good.db"));
    char *good = read_file(in_folder("good.db"), &size), *bad = malloc(size);
    assert_non_null(bad);
    const int count = (int)sized(200, 200, 2000);
    for (int i = 0; i < count; i++) {
        fin_store *store = NULL;
        memcpy(bad, good, size);
        size_t length = i % 10 == 9 ? (size_t)next_random(&random) % size : size;
        int changes = 1 + (int)(next_random(&random) % 20);
        for (int k = 0; k < changes; k++) { /* mostly in the first bytes of a page */
            size_t page = next_random(&random) % (size / 4096) * 4096;
            size_t at = page + next_random(&random) % (k % 2 ? 4096 : 64);
            bad[at] = (char)next_random(&random);
        }
        write_file("bad.db", bad, length);
        fin_status status = fin_store_open(in_folder("bad.db"),
                                           i % 3 ? FIN_STORE_READ : FIN_STORE_WRITE, &store, &err);
        if (status) {
            assert_true(status == FIN_ERR_FORMAT || status == FIN_ERR_IO);
            assert_true(err.message[0] != '\0');
        } else {
            opened++;
            noticed += ask_all(store, in_folder("x.csv")) > 0;
        }
        fin_store_close(store);
        remove(in_folder("bad.db-wal"));
        remove(in_folder("bad.db-shm"));
        remove(in_folder("bad.db-journal"));
    }
    print_message("%d of %d opened, %d of them with messages\n", opened, count, noticed);
    assert_true(opened > 20 && noticed > 20);
    free(good);
    free(bad);
}

/* A log that does not belong to the file. */
static void tampered__log_is_survived(void **state)
{
    (void)state;
    char noise[20000];
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)next_random(&random);
    make_rich(in_folder("l.db"));
    write_file("l.db-wal", noise, sizeof noise);
    fin_store *store = open_store(in_folder("l.db"), FIN_STORE_WRITE);
    assert_int_equal(ask_all(store, in_folder("x.csv")), 0);
    fin_store_close(store);
    assert_int_equal(list_folder(1), 2); /* x.npz is the other */
}

/* Names as they come: SQL, quotes, newlines, emoji, very long ones. */
static void names__are_only_names(void **state)
{
    (void)state;
    char longer[10001];
    memset(longer, 'n', 10000);
    longer[10000] = '\0';
    const char *const names[] = {"'; DROP TABLE runs; --",
                                 "\"quoted\"",
                                 "a\nb\tc",
                                 "\xf0\x9f\x90\x8c",
                                 "%s%n%d",
                                 "; SELECT 1",
                                 longer};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        list_folder(1);
        make_rich(in_folder("n.db"));
        sqlite3 *db;
        sqlite3_stmt *statement;
        static const char *const changes[] = {
            "UPDATE names SET name = ?1 WHERE name = 'risk'", "UPDATE studies SET name = ?1",
            "UPDATE plan SET block = ?1 WHERE position < 12", "UPDATE claims SET id = ?1",
            "UPDATE sessions SET study = ?1"};
        assert_int_equal(sqlite3_open(in_folder("n.db"), &db), SQLITE_OK);
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
            assert_int_equal(sqlite3_prepare_v2(db, changes[k], -1, &statement, NULL), SQLITE_OK);
            sqlite3_bind_text(statement, 1, names[i], -1, SQLITE_STATIC);
            assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
            sqlite3_finalize(statement);
        }
        sqlite3_close(db);
        fin_store *store = open_store(in_folder("n.db"), FIN_STORE_WRITE);
        size_t bytes = 0;
        const fin_query query = {.study = names[i], .block = names[i], .has = names[i]};
        assert_ok(fin_store_scalars(store, &query, any_scalar, &bytes, &err));
        assert_true(bytes > 0);
        assert_ok(fin_store_studies(store, any_study, &bytes, &err));
        assert_ok(fin_store_claims(store, names[i], any_claim, &bytes, &err));
        assert_ok(fin_store_sessions(store, any_session, &bytes, &err));
        assert_ok(fin_store_export(store, &query, in_folder("n.csv"), 0, &err));
        const fin_query wrong = {.study = "nn", .has = names[i]};
        assert_int_equal(fin_store_runs(store, &wrong, any_run, &bytes, &err), FIN_ERR_ARGUMENT);
        assert_null(strchr(err.message, '\n'));
        fin_gc_count count;
        assert_ok(fin_store_gc(store, names[i], 0, &count, &err));
        assert_int_equal(count.studies, 1);
        assert_ok(fin_store_check(store, &err));
        fin_store_close(store);
        assert_int_equal(ask(in_folder("n.db"), "SELECT count(*) FROM runs"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tampered__rows_are_told, empty_folder),
        cmocka_unit_test_setup(tampered__bytes_are_survived, empty_folder),
        cmocka_unit_test_setup(tampered__log_is_survived, empty_folder),
        cmocka_unit_test_setup(names__are_only_names, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_store_folder, remove_folder);
}
