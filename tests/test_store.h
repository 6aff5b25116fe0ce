/* What the tests of stores share: a small study, results made up from positions, and stores. */
#ifndef TEST_STORE_H
#define TEST_STORE_H

#include "test_data.h"

#include "fault.h"

#include "store/store.h"
#include "study/study.h"

#include <math.h>
#include <time.h>

static fin_error err;

/* Group set-up: in memory where there is such a folder, for stores wait for their disk. */
static inline int make_store_folder(void **state)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return make_folder(state);
}

/* Two blocks of 12 and 4 runs. */
static const char small_text[] = "study: small\n"
                                 "title: A small one\n"
                                 "runs:\n"
                                 "  - id: grid\n"
                                 "    command: risk\n"
                                 "    axes:\n"
                                 "      L: [2, 10, 100]\n"
                                 "      lam: [0.1, 0.2, 0.5, 1]\n"
                                 "  - id: other\n"
                                 "    command: risk\n"
                                 "    set: {form: softmax, lam: 0.1}\n"
                                 "    axes: {L: [3, 4, 5, 6]}\n";
enum { SMALL = 16 };

static inline fin_study *parse_study(const char *text)
{
    fin_study *study = NULL;
    assert_ok(fin_study_parse(text, strlen(text), "a test", NULL, &study, &err));
    return study;
}

static inline fin_store *open_store(const char *path, int how)
{
    fin_store *store = NULL;
    assert_ok(fin_store_open(path, how, &store, &err));
    return store;
}

/* What a run at this place leaves: three scalars and, at even places, a series. */
static inline fin_result *make_result(int64_t position)
{
    double curve[6];
    const int64_t shape[2] = {2, 3};
    fin_result *result = fin_result_create();
    for (int i = 0; i < 6; i++)
        curve[i] = (double)position + i / 7.0;
    fini_result_scalar(result, "risk", (double)position / 3, 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "check", (double)position, 0.25, FIN_HOW_SIMULATION, 100);
    fini_result_scalar(result, "time", (double)clock(), 0, FIN_HOW_CLOCK, 0);
    if (position == 3)
        fini_result_scalar(result, "odd", NAN, 0, FIN_HOW_CLOSED, 0);
    if (position == 4)
        fini_result_scalar(result, "odd", -INFINITY, NAN, FIN_HOW_CLOSED, 0);
    if (position % 2 == 0)
        fini_result_series(result, "curve", FIN_F64, 2, shape, curve);
    return result;
}

static inline fin_status keep(fin_store *store, const fin_study *study, int64_t position)
{
    fini_done done = {.position = position, .state = FIN_STATE_DONE, .seconds = 0.5};
    done.result = make_result(position);
    fin_status status = fini_study_keep(store, study, &done, 1, &err);
    fin_result_destroy(done.result);
    return status;
}

static inline fin_status keep_failed(fin_store *store, const fin_study *study, int64_t position,
                                     const char *reason)
{
    fini_done done = {.position = position, .state = FIN_STATE_FAILED, .seconds = 0.5};
    snprintf(done.reason, sizeof done.reason, "%s", reason);
    return fini_study_keep(store, study, &done, 1, &err);
}

static inline void plan(fin_store *store, const fin_study *study)
{
    unsigned char *missing = calloc((size_t)fin_study_run_count(study), 1);
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    free(missing);
}

/* The small study in a store, with the runs at places first, first + stride, ... */
static inline void fill_store(const char *path, int first, int stride)
{
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    plan(store, study);
    for (int i = first; i < SMALL && stride > 0; i += stride)
        assert_ok(keep(store, study, i));
    for (int i = first; i >= 0 && stride < 0; i += stride)
        assert_ok(keep(store, study, i));
    fin_store_close(store);
    fin_study_destroy(study);
}

/* SQL behind the store's back; triggers, views and everything else allowed. */
static inline void hack(const char *path, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

static inline int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

static inline void copy_file(const char *from, const char *to_name)
{
    size_t size;
    char *data = read_file(from, &size);
    write_file(to_name, data, size);
    free(data);
}

static inline void assert_same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_file(a, &n), *y = read_file(b, &m);
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("%s and %s differ:\n%s\n%s", a, b, x, y);
    free(x);
    free(y);
}

#endif
