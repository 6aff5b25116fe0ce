/* Looking into stores: queries, conditions, scalars, series, frames; all ways of the cursor. */
#include "test_store.h"

typedef struct seen {
    int count;
    int64_t sum;  /* of positions */
    int64_t next; /* the least position that may come */
    char last[FIN_HASH_TEXT];
    bool by_hash;
} seen;

static fin_status see_run(void *user, const fin_run_row *run, fin_error *e)
{
    seen *s = user;
    (void)e;
    assert_int_equal(strlen(run->hash), 32);
    assert_string_equal(run->state == FIN_STATE_PLANNED ? "" : fin_version(), run->version);
    assert_string_equal(run->command, "risk");
    assert_non_null(strstr(run->settings, "\"settings\":{"));
    assert_true(!s->by_hash || strcmp(s->last, run->hash) < 0);
    assert_true(s->by_hash || run->position >= s->next);
    s->next = run->position + 1;
    memcpy(s->last, run->hash, FIN_HASH_TEXT);
    s->count++;
    s->sum += run->position;
    return FIN_OK;
}

/* How many runs a query selects, and the sum of their positions. */
static int64_t select_runs(fin_store *store, fin_query query, int count)
{
    seen s = {.by_hash = !query.study};
    assert_ok(fin_store_runs(store, &query, see_run, &s, &err));
    assert_int_equal(s.count, count);
    return s.sum;
}

static fin_query small_where(const char *const *where, int count)
{
    return (fin_query){.study = "small", .where = where, .where_count = count};
}

#define WHERE(...)                                                                                 \
    small_where((const char *const[]){__VA_ARGS__},                                                \
                (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* Runs 0 .. 11: L = 2, 10, 100 and lam = 0.1, 0.2, 0.5, 1; 12 .. 15: softmax, L = 3 .. 6. */
static void ask_everything(fin_store *store)
{
    assert_int_equal(select_runs(store, (fin_query){.study = "small"}, 16), 120);
    assert_int_equal(select_runs(store, (fin_query){0}, 14), -14);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .block = "other"}, 4), 54);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .state = FIN_STATE_DONE}, 13),
                     120 - 1 - 14 - 15);
    assert_int_equal(
        select_runs(store, (fin_query){.study = "small", .state = FIN_STATE_FAILED}, 1), 1);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .state = -1}, 2), 29);
    assert_int_equal(select_runs(store, (fin_query){.state = FIN_STATE_FAILED}, 1), -1);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .command = "risk"}, 16), 120);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .command = "train"}, 0), 0);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .has = "odd"}, 2), 7);
    assert_int_equal(select_runs(store, (fin_query){.has = "odd"}, 2), -2);
    assert_int_equal(select_runs(store, WHERE("lam=0.1", "form=erf"), 3), 0 + 4 + 8);
    assert_int_equal(select_runs(store, WHERE("lam = 1e-1", "form=erf"), 3), 12);
    assert_int_equal(select_runs(store, WHERE("L>=10"), 8), 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11);
    assert_int_equal(select_runs(store, WHERE("L<=10", "L>3"), 7), 4 + 5 + 6 + 7 + 13 + 14 + 15);
    assert_int_equal(select_runs(store, WHERE("L<3", "lam!=0.1"), 3), 1 + 2 + 3);
    assert_int_equal(select_runs(store, WHERE("L=2|100,5"), 4), 6); /* no number is "100,5" */
    assert_int_equal(select_runs(store, WHERE("L=2,5"), 5), 0 + 1 + 2 + 3 + 14);
    assert_int_equal(select_runs(store, WHERE("L=2|5"), 5), 0 + 1 + 2 + 3 + 14);
    assert_int_equal(select_runs(store, WHERE("L!=2|5|10"), 7), 8 + 9 + 10 + 11 + 12 + 13 + 15);
    assert_int_equal(select_runs(store, WHERE("form=softmax"), 4), 54);
    assert_int_equal(select_runs(store, WHERE("form!=softmax"), 12), 66);
    assert_int_equal(select_runs(store, WHERE("form>=10"), 0), 0); /* a word and a number */
    assert_int_equal(select_runs(store, WHERE("risk>=3"), 5), 9 + 10 + 11 + 12 + 13);
    assert_int_equal(select_runs(store, WHERE("risk>=3", "form=softmax"), 2), 25);
    assert_int_equal(select_runs(store, WHERE("odd=-inf"), 1), 4);
    assert_int_equal(select_runs(store, WHERE("odd=nan"), 1), 3);
    assert_int_equal(select_runs(store, WHERE("seconds<1"), 14), 120 - 29);
    assert_int_equal(select_runs(store, WHERE("L=6"), 1), 15); /* planned */
    assert_int_equal(select_runs(store, WHERE("L-min=auto"), 16), 120);
    assert_int_equal(select_runs(store, WHERE("L_min=3"), 0), 0);
    assert_int_equal(select_runs(store, WHERE("lam=0.5,x", "form=erf"), 3), 2 + 6 + 10);
}

/* The small study with runs 14 and 15 missing and run 1 failed. */
static void make_small(const char *path)
{
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(path, FIN_STORE_CREATE);
    plan(store, study);
    assert_ok(keep_failed(store, study, 1, "it did not work"));
    for (int i = 13; i >= 0; i--)
        if (i != 1)
            assert_ok(keep(store, study, i));
    fin_store_close(store);
    fin_study_destroy(study);
}

static void query__selects(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    ask_everything(store);
    fin_store_close(store);
}

/* Numbers of runs that are far apart and not in the order of the plan. */
static void query__selects_the_same_from_a_large_store(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    hack(
        in_folder("q.db"),
        "UPDATE settings SET id = 5000000 WHERE id = 1; UPDATE runs SET id = 5000000 WHERE id = 1; "
        "UPDATE plan SET run_id = 5000000 WHERE run_id = 1; "
        "UPDATE scalars SET run_id = 5000000 WHERE run_id = 1; "
        "UPDATE series SET run_id = 5000000 WHERE run_id = 1");
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    ask_everything(store);
    fin_store_close(store);
}

/* Few of many finished runs: their places are looked up, whatever other studies have. */
static void query__selects_few_of_many(void **state)
{
    (void)state;
    fin_study *one = parse_study("study: one\nruns:\n  - command: risk\n"
                                 "    axes: {L: {from: 2, to: 101, count: 100}}\n");
    fin_study *two = parse_study("study: two\nruns:\n  - id: a\n    command: risk\n"
                                 "    axes: {L: {from: 120, to: 60, count: 61}}\n"
                                 "  - id: b\n    command: risk\n"
                                 "    axes: {L: {from: 50, to: 59, count: 10}}\n");
    fin_store *store = open_store(in_folder("few.db"), FIN_STORE_CREATE);
    unsigned char missing[100];
    assert_ok(fini_store_plan(store, one, false, missing, NULL, NULL, &err));
    for (int i = 0; i < 100; i++)
        assert_ok(keep(store, one, (i * 37) % 100));
    assert_ok(fini_store_plan(store, two, false, missing, NULL, NULL, &err));
    for (int i = 60; i >= 1; i--) /* of the one with L = 120 there is only the plan */
        if (missing[i])
            assert_ok(keep(store, two, i));
    fin_query query = WHERE("L>=97", "L<=99");
    for (int done = 0; done < 2; done++) {
        query.state = done ? FIN_STATE_DONE : 0;
        query.study = "one";
        assert_int_equal(select_runs(store, query, 3), 95 + 96 + 97);
        query.study = "two";
        assert_int_equal(select_runs(store, query, 3), 21 + 22 + 23);
        query.block = "a";
        assert_int_equal(select_runs(store, query, 3), 21 + 22 + 23);
        query.block = "b";
        assert_int_equal(select_runs(store, query, 0), 0);
        query.block = NULL;
    }
    query = WHERE("L=120");
    query.study = "two";
    assert_int_equal(select_runs(store, query, 1), 0);
    query.state = FIN_STATE_DONE;
    assert_int_equal(select_runs(store, query, 0), 0);
    query = WHERE("L=10"); /* in the store, but of the other study */
    query.study = "two";
    query.state = FIN_STATE_DONE;
    assert_int_equal(select_runs(store, query, 0), 0);
    fin_store_close(store);
    fin_study_destroy(one);
    fin_study_destroy(two);
}

static void assert_bad(fin_store *store, fin_query query, const char *message)
{
    seen s = {0};
    assert_int_equal(fin_store_runs(store, &query, see_run, &s, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(s.count, 0);
    assert_message(&err, message);
}

static void query__names_what_is_wrong(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    assert_bad(store, (fin_query){.study = "smal"}, "it has, for example, 'small'");
    assert_bad(store, (fin_query){.study = "small", .block = "gird"}, "'grid'");
    assert_bad(store, (fin_query){.block = "grid"}, "name the study");
    assert_bad(store, (fin_query){.has = "rsik"}, "'risk'");
    assert_bad(store, WHERE("lamm=1"), "did you mean 'lam'?");
    assert_bad(store, WHERE("L=77", "rsik=1"), "did you mean 'risk'?");
    assert_bad(store, WHERE("lam>=x"), "'lam' is a number in all runs");
    assert_bad(store, WHERE("form=softmax", "lam="), "cannot be compared with ''");
    assert_bad(store, WHERE("risk<x"), "such as risk=0.1");
    assert_bad(store, WHERE("L"), "NAME OPERATOR VALUE");
    assert_bad(store, WHERE("=3"), "NAME OPERATOR VALUE");
    assert_bad(store, WHERE(""), "NAME OPERATOR VALUE");
    assert_bad(store, WHERE("x'; DROP TABLE runs; --=1"), "no run has");
    assert_bad(store, WHERE("command=risk"), "no run has"); /* it is no setting */
    const char *many[33];
    for (int i = 0; i < 33; i++)
        many[i] = "L=2";
    assert_bad(store, small_where(many, 33), "at most 32");
    fin_store_close(store);
}

static fin_status one_hash(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    memcpy(user, run->hash, FIN_HASH_TEXT);
    return FIN_ERR_CANCELLED;
}

static void query__by_hash_and_stopping(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    char hash[FIN_HASH_TEXT];
    assert_int_equal(fin_store_runs(store, &(fin_query){.study = "small", .block = "other"},
                                    one_hash, hash, &err),
                     FIN_ERR_CANCELLED);
    assert_int_equal(select_runs(store, (fin_query){.hash = hash}, 1), -1);
    assert_int_equal(select_runs(store, (fin_query){.study = "small", .hash = hash}, 1), 12);
    hash[20] = '\0';
    assert_int_equal(select_runs(store, (fin_query){.hash = hash}, 1), -1);
    assert_int_equal(select_runs(store, (fin_query){.hash = "zz"}, 0), 0);
    assert_int_equal(select_runs(store, (fin_query){.hash = ""}, 14), -14);
    fin_store_close(store);
}

/* ---- scalars and series ---------------------------------------------------------------------- */

typedef struct list {
    char text[4096];
    size_t used;
} list;

static fin_status list_scalar(void *user, const fin_run_row *run, const fin_scalar *s, fin_error *e)
{
    list *l = user;
    (void)e;
    l->used +=
        (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%lld %s %g %g %s %lld\n",
                         (long long)run->position, s->name, s->how == FIN_HOW_CLOCK ? 0 : s->value,
                         s->error, fin_how_name(s->how), (long long)s->samples);
    return FIN_OK;
}

static void scalars__come_run_by_run_and_by_name(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    list l = {0};
    fin_query query = WHERE("L=2");
    query.state = FIN_STATE_DONE;
    assert_ok(fin_store_scalars(store, &query, list_scalar, &l, &err));
    assert_string_equal(l.text, "0 check 0 0.25 simulation 100\n"
                                "0 risk 0 0 closed form 0\n"
                                "0 time 0 0 clock 0\n"
                                "2 check 2 0.25 simulation 100\n"
                                "2 risk 0.666667 0 closed form 0\n"
                                "2 time 0 0 clock 0\n"
                                "3 check 3 0.25 simulation 100\n"
                                "3 odd nan 0 closed form 0\n"
                                "3 risk 1 0 closed form 0\n"
                                "3 time 0 0 clock 0\n");
    fin_store_close(store);
}

static fin_status check_series(void *user, const fin_run_row *run, const fin_series *s,
                               fin_error *e)
{
    int *count = user;
    (void)e;
    assert_string_equal(s->name, "curve");
    assert_int_equal(s->dtype, FIN_F64);
    assert_int_equal(s->ndim, 2);
    assert_true(s->shape[0] == 2 && s->shape[1] == 3 && s->stored > 0);
    for (int i = 0; s->data && i < 6; i++)
        assert_true(((const double *)s->data)[i] == (double)run->position + i / 7.0);
    *count += s->data ? 100 : 1;
    return FIN_OK;
}

static void series__come_back_to_the_bit(void **state)
{
    (void)state;
    make_small(in_folder("q.db"));
    fin_store *store = open_store(in_folder("q.db"), FIN_STORE_READ);
    int count = 0;
    const fin_query query = {.study = "small"};
    assert_ok(fin_store_series(store, &query, 1, check_series, &count, &err));
    assert_int_equal(count, 700);
    assert_ok(fin_store_series(store, &query, 0, check_series, &count, &err));
    assert_int_equal(count, 707);
    fin_store_close(store);
}

/* Every type, shapes without elements and without axes. */
static void series__of_every_type(void **state)
{
    (void)state;
    static const struct {
        fin_dtype dtype;
        int ndim;
        int64_t shape[4];
    } cases[] = {{FIN_F32, 1, {5}},        {FIN_F64, 3, {2, 3, 4}},   {FIN_I32, 2, {7, 1}},
                 {FIN_I64, 1, {1}},        {FIN_U8, 4, {2, 1, 2, 3}}, {FIN_F64, 2, {0, 4}},
                 {FIN_F64, 2, {1000, 100}}};
    enum { CASES = sizeof cases / sizeof *cases };
    static unsigned char data[800000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * i >> 7 ^ i);
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(in_folder("t.db"), FIN_STORE_CREATE);
    plan(store, study);
    for (int i = 0; i < CASES; i++) {
        fini_done done = {.position = i, .state = FIN_STATE_DONE, .result = fin_result_create()};
        fini_result_series(done.result, "x", cases[i].dtype, cases[i].ndim, cases[i].shape, data);
        assert_ok(fini_result_status(done.result, &err));
        assert_ok(fini_study_keep(store, study, &done, 1, &err));
        fin_result_destroy(done.result);
    }
    fini_frame *frame;
    assert_ok(fini_frame_read(store, "small", NULL, NULL, 0, &frame, &err));
    for (int i = 0; i < CASES; i++) {
        fin_series series;
        assert_ok(fini_frame_series(frame, i, "x", &series, &err));
        assert_int_equal(series.dtype, cases[i].dtype);
        assert_int_equal(series.ndim, cases[i].ndim);
        size_t bytes = fin_dtype_size(series.dtype);
        for (int k = 0; k < series.ndim; k++) {
            assert_int_equal(series.shape[k], cases[i].shape[k]);
            bytes *= (size_t)series.shape[k];
        }
        assert_non_null(series.data);
        assert_memory_equal(series.data, data, bytes);
        fini_free((void *)series.data);
    }
    fini_frame_destroy(frame);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void frame__has_columns(void **state)
{
    (void)state;
    make_small(in_folder("f.db"));
    fin_store *store = open_store(in_folder("f.db"), FIN_STORE_READ);
    fini_frame *frame;
    static const double lams[] = {0.1, 0.2, 0.5, 1};
    static const char *const texts[] = {"0.1", "0.2", "0.5", "1"};
    assert_ok(fini_frame_read(store, "small", "grid", NULL, 0, &frame, &err));
    assert_int_equal(fini_frame_rows(frame), 11);
    assert_int_equal(fini_frame_missing(frame), 0);
    assert_int_equal(fini_frame_failed(frame), 1);
    assert_string_equal(fini_frame_block(frame, 10), "grid");
    assert_null(fini_frame_block(frame, 11));
    assert_null(fini_frame_hash(frame, -1));
    const fini_column *risk = fini_frame_column(frame, "risk");
    assert_non_null(risk);
    assert_ptr_equal(risk, fini_frame_column(frame, "risk"));
    assert_null(risk->error);
    assert_null(risk->text);
    const fini_column *check = fini_frame_column(frame, "check");
    const fini_column *lam = fini_frame_column(frame, "lam");
    const fini_column *form = fini_frame_column(frame, "form");
    for (int i = 0; i < 11; i++) {
        int position = i ? i + 1 : 0;
        assert_true(risk->value[i] == position / 3.0 && risk->how[i] == FIN_HOW_CLOSED);
        assert_true(check->value[i] == position && check->error[i] == 0.25);
        assert_int_equal(check->samples[i], 100);
        assert_true(lam->value[i] == lams[position % 4]);
        assert_string_equal(lam->text[i], texts[position % 4]);
        assert_string_equal(form->text[i], "erf");
        assert_true(isnan(form->value[i]));
    }
    const fini_column *odd = fini_frame_column(frame, "odd");
    assert_true(isnan(odd->value[0]) && isnan(odd->value[2]) && odd->value[3] == -INFINITY);
    assert_true(odd->error && isnan(odd->error[3]));
    const fini_column *seconds = fini_frame_column(frame, "seconds");
    assert_true(seconds->value[3] == 0.5 && seconds->how[3] == FIN_HOW_CLOCK);
    assert_null(fini_frame_column(frame, "rsik"));
    assert_null(fini_frame_column(frame, "curve")); /* a series is no column */
    assert_ok(fini_frame_status(frame, &err));
    int count;
    const char *const *names = fini_frame_names(frame, &count);
    assert_string_equal(fin_nearest_name("rsik", names, count), "risk");
    assert_string_equal(fin_nearest_name("lamb", names, count), "lam");
    for (int i = 0; i < count; i++)
        assert_non_null(fini_frame_column(frame, names[i]));
    fini_frame_destroy(frame);
    fini_frame_destroy(NULL);
    fin_store_close(store);
}

static void frame__of_some_runs(void **state)
{
    (void)state;
    make_small(in_folder("f.db"));
    fin_store *store = open_store(in_folder("f.db"), FIN_STORE_READ);
    fini_frame *frame;
    const char *const where[] = {"L=2|6"};
    assert_ok(fini_frame_read(store, "small", NULL, where, 1, &frame, &err));
    assert_int_equal(fini_frame_rows(frame), 3);
    assert_int_equal(fini_frame_missing(frame), 1);
    assert_int_equal(fini_frame_failed(frame), 1);
    assert_true(fini_frame_column(frame, "check")->value[2] == 3);
    fin_series series;
    assert_int_equal(fini_frame_series(frame, 0, "curv", &series, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "'curve'");
    assert_int_equal(fini_frame_series(frame, 3, "curve", &series, &err), FIN_ERR_ARGUMENT);
    assert_ok(fini_frame_series(frame, 1, "curve", &series, &err));
    assert_true(((const double *)series.data)[0] == 2);
    fini_free((void *)series.data);
    fini_frame_destroy(frame);
    const char *const none[] = {"L=77"};
    assert_ok(fini_frame_read(store, "small", NULL, none, 1, &frame, &err));
    assert_int_equal(fini_frame_rows(frame), 0);
    assert_null(fini_frame_column(frame, "risk"));
    fini_frame_destroy(frame);
    assert_int_equal(fini_frame_read(store, "none", NULL, NULL, 0, &frame, &err), FIN_ERR_ARGUMENT);
    assert_null(frame);
    fin_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(query__selects, empty_folder),
        cmocka_unit_test_setup(query__selects_the_same_from_a_large_store, empty_folder),
        cmocka_unit_test_setup(query__selects_few_of_many, empty_folder),
        cmocka_unit_test_setup(query__names_what_is_wrong, empty_folder),
        cmocka_unit_test_setup(query__by_hash_and_stopping, empty_folder),
        cmocka_unit_test_setup(scalars__come_run_by_run_and_by_name, empty_folder),
        cmocka_unit_test_setup(series__come_back_to_the_bit, empty_folder),
        cmocka_unit_test_setup(series__of_every_type, empty_folder),
        cmocka_unit_test_setup(frame__has_columns, empty_folder),
        cmocka_unit_test_setup(frame__of_some_runs, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_store_folder, remove_folder);
}
