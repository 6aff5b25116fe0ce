/* Exports, merging, differences, tidying up: the same bytes for the same runs, however they came to
 * be in the store. */
#include "test_store.h"

/* ---- CSV ------------------------------------------------------------------------------------- */

static void export_to(const char *store_path, const fin_query *query, const char *path, int times)
{
    fin_store *store = open_store(store_path, FIN_STORE_READ);
    assert_ok(fin_store_export(store, query, path, times, &err));
    fin_store_close(store);
}

/* Cuts all settings but L and lam out of a line: they are those of the library. */
static void assert_cells(const char *text, int line, const char *expected)
{
    const char *header = text, *row = text;
    char got[512] = "";
    while (line-- > 0)
        row = strchr(row, '\n') + 1;
    while (*header != '\n') {
        size_t h = strcspn(header, ",\n"), r = strcspn(row, ",\n");
        static const char *const wanted[] = {"position", "block",     "state", "L",
                                             "lam",      "check",     "odd",   "check_error",
                                             "risk",     "odd_error", "time",  "seconds"};
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (strlen(wanted[k]) == h && memcmp(wanted[k], header, h) == 0)
                snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s,", (int)r, row);
        header += h + (header[h] == ',');
        row += r + (row[r] == ',');
    }
    assert_string_equal(got, expected);
}

static void csv__has_a_row_a_run(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 3);
    const fin_query query = {.study = "small"};
    export_to(in_folder("a.db"), &query, in_folder("a.csv"), 0);
    char *text = read_file(in_folder("a.csv"), NULL);
    assert_memory_equal(text, "position,block,command,hash,state,L,", 36);
    assert_null(strstr(text, "time"));
    assert_null(strstr(text, "seconds"));
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, SMALL + 1);
    assert_cells(text, 0, "position,block,state,L,lam,check,check_error,odd,risk,");
    assert_cells(text, 1, "0,grid,done,2,0.1,0,0.25,,0,");
    assert_cells(text, 2, "1,grid,planned,2,0.2,,,,,");
    assert_cells(text, 4, "3,grid,done,2,1,3,0.25,nan,1,");
    assert_cells(text, 16, "15,other,done,6,0.1,15,0.25,,5,");
    free(text);
    export_to(in_folder("a.db"), &query, in_folder("b.csv"), 1);
    text = read_file(in_folder("b.csv"), NULL);
    assert_cells(text, 0, "position,block,state,L,lam,check,check_error,odd,risk,time,seconds,");
    free(text);
}

static void csv__does_not_depend_on_the_order_of_filling(void **state)
{
    (void)state;
    const fin_query queries[] = {{.study = "small"}, {0}, {.study = "small", .block = "other"}};
    fill_store(in_folder("a.db"), 0, 1);
    fill_store(in_folder("b.db"), SMALL - 1, -1);
    for (int i = 0; i < 3; i++) {
        export_to(in_folder("a.db"), &queries[i], in_folder("a.csv"), 0);
        export_to(in_folder("b.db"), &queries[i], in_folder("b.csv"), 0);
        assert_same_file(in_folder("a.csv"), in_folder("b.csv"));
        export_to(in_folder("a.db"), &queries[i], in_folder("a.npz"), 0);
        export_to(in_folder("b.db"), &queries[i], in_folder("b.npz"), 0);
        assert_same_file(in_folder("a.npz"), in_folder("b.npz"));
    }
}

static void csv__quotes(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 16);
    hack(in_folder("a.db"),
         "UPDATE names SET name = 'a\"b,c' || char(10) || 'd' WHERE name = 'risk'");
    export_to(in_folder("a.db"), NULL, in_folder("a.csv"), 0);
    char *text = read_file(in_folder("a.csv"), NULL);
    assert_non_null(strstr(text, ",\"a\"\"b,c\nd\""));
    free(text);
}

static void export__refuses_other_names(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 1);
    fin_store *store = open_store(in_folder("a.db"), FIN_STORE_READ);
    assert_int_equal(fin_store_export(store, NULL, in_folder("a.txt"), 0, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, ".csv or .npz");
    assert_int_equal(fin_store_export(store, NULL, in_folder("no/a.csv"), 0, &err), FIN_ERR_IO);
    const fin_query wrong = {.study = "none"};
    assert_int_equal(fin_store_export(store, &wrong, in_folder("a.csv"), 0, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_store_export(store, &wrong, in_folder("a.npz"), 0, &err),
                     FIN_ERR_ARGUMENT);
    fin_store_close(store);
    assert_int_equal(list_folder(0), 1);
}

/* ---- NPZ ------------------------------------------------------------------------------------- */

static fin_array get(fin_npz *npz, const char *name)
{
    fin_array array;
    assert_ok(fin_npz_array(npz, name, &array, &err));
    return array;
}

static bool has(fin_npz *npz, const char *name)
{
    for (int64_t i = 0; i < fin_npz_count(npz); i++)
        if (strcmp(fin_npz_name(npz, i), name) == 0)
            return true;
    return false;
}

static void npz__has_arrays(void **state)
{
    (void)state;
    fin_npz *npz;
    fill_store(in_folder("a.db"), 0, 2); /* even places: all have the series */
    const fin_query query = {.study = "small", .state = FIN_STATE_DONE};
    export_to(in_folder("a.db"), &query, in_folder("a.npz"), 0);
    assert_ok(fin_npz_open(in_folder("a.npz"), &npz, &err));
    fin_array position = get(npz, "position"), risk = get(npz, "scalar.risk");
    fin_array error = get(npz, "error.check"), form = get(npz, "set.form"), curve;
    fin_array lam = get(npz, "set.lam"), odd = get(npz, "scalar.odd");
    assert_true(position.ndim == 1 && position.shape[0] == 8 && position.dtype == FIN_I64);
    assert_true(form.ndim == 2 && form.shape[1] == 7 && form.dtype == FIN_U8);
    curve = get(npz, "series.curve");
    assert_true(curve.ndim == 3 && curve.shape[0] == 8 && curve.shape[1] == 2);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(((const int64_t *)position.data)[i], 2 * i);
        assert_true(((const double *)risk.data)[i] == 2 * i / 3.0);
        assert_true(((const double *)error.data)[i] == 0.25);
        assert_true(((const double *)curve.data)[6 * i + 5] == 2 * i + 5 / 7.0);
        assert_true(isnan(((const double *)odd.data)[i]) == (i != 2));
        assert_memory_equal((const char *)form.data + 7 * i, i < 6 ? "erf\0\0\0\0" : "softmax", 7);
    }
    assert_true(((const double *)lam.data)[1] == 0.5);
    assert_false(has(npz, "scalar.time"));
    assert_false(has(npz, "error.risk"));
    fin_npz_close(npz);
}

static void npz__of_uneven_series(void **state)
{
    (void)state;
    fin_npz *npz;
    fill_store(in_folder("a.db"), 0, 1);
    const fin_query query = {.study = "small", .block = "other"};
    export_to(in_folder("a.db"), &query, in_folder("a.npz"), 1);
    assert_ok(fin_npz_open(in_folder("a.npz"), &npz, &err));
    assert_false(has(npz, "series.curve"));
    assert_true(has(npz, "series.curve.12") && has(npz, "series.curve.14"));
    assert_false(has(npz, "series.curve.13"));
    assert_true(has(npz, "seconds") && has(npz, "scalar.time"));
    fin_array curve = get(npz, "series.curve.14");
    assert_true(curve.ndim == 2 && ((const double *)curve.data)[0] == 14);
    fin_npz_close(npz);
    const fin_query none = {.study = "small", .command = "train"};
    export_to(in_folder("a.db"), &none, in_folder("b.npz"), 0);
    assert_ok(fin_npz_open(in_folder("b.npz"), &npz, &err));
    assert_int_equal(get(npz, "position").shape[0], 0);
    fin_npz_close(npz);
}

/* ---- merging --------------------------------------------------------------------------------- */

static fin_merge_count merge_ok(const char *into, const char *from, int force)
{
    fin_merge_count count;
    fin_store *store = open_store(into, FIN_STORE_CREATE);
    assert_ok(fin_store_merge(store, from, force, &count, &err));
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    return count;
}

static void assert_no_merge(const char *into, const char *from, fin_status expected,
                            const char *message)
{
    fin_merge_count count;
    fin_store *store = open_store(into, FIN_STORE_WRITE);
    int64_t runs, after;
    assert_ok(fini_sql_number(store, "SELECT count(*) FROM runs", 0, &runs, &err));
    assert_int_equal(fin_store_merge(store, from, 0, &count, &err), expected);
    assert_message(&err, message);
    assert_ok(fini_sql_number(store, "SELECT count(*) FROM runs", 0, &after, &err));
    assert_int_equal(runs, after);
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
}

static void merge__shards_are_the_whole(void **state)
{
    (void)state;
    const fin_query query = {.study = "small"};
    fill_store(in_folder("whole.db"), 0, 1);
    fill_store(in_folder("a.db"), 0, 3);
    fill_store(in_folder("b.db"), 1, 3);
    fill_store(in_folder("c.db"), 2, 3);
    fin_merge_count count = merge_ok(in_folder("m.db"), in_folder("c.db"), 0);
    assert_true(count.added == 5 && count.studies == 1 && count.same == 0 && count.replaced == 0);
    count = merge_ok(in_folder("m.db"), in_folder("a.db"), 0);
    assert_true(count.added == 6 && count.studies == 0);
    merge_ok(in_folder("m.db"), in_folder("b.db"), 0);
    count = merge_ok(in_folder("m.db"), in_folder("b.db"), 0);
    assert_true(count.added == 0 && count.same == 5);
    count = merge_ok(in_folder("m.db"), in_folder("whole.db"), 0);
    assert_true(count.added == 0 && count.same == 16);
    export_to(in_folder("whole.db"), &query, in_folder("a.csv"), 0);
    export_to(in_folder("m.db"), &query, in_folder("b.csv"), 0);
    assert_same_file(in_folder("a.csv"), in_folder("b.csv"));
    export_to(in_folder("whole.db"), &query, in_folder("a.npz"), 0);
    export_to(in_folder("m.db"), &query, in_folder("b.npz"), 0);
    assert_same_file(in_folder("a.npz"), in_folder("b.npz"));
}

static void merge__done_replaces_failed(void **state)
{
    (void)state;
    fin_study *study = parse_study(small_text);
    fin_store *store = open_store(in_folder("a.db"), FIN_STORE_CREATE);
    plan(store, study);
    assert_ok(keep_failed(store, study, 2, "no"));
    fin_store_close(store);
    fill_store(in_folder("b.db"), 2, 16);
    fin_merge_count count = merge_ok(in_folder("a.db"), in_folder("b.db"), 0);
    assert_true(count.replaced == 1 && count.added == 0);
    assert_int_equal(ask(in_folder("a.db"), "SELECT count(*) FROM scalars"), 3);
    assert_int_equal(ask(in_folder("a.db"), "SELECT state FROM runs"), FIN_STATE_DONE);
    store = open_store(in_folder("c.db"), FIN_STORE_CREATE);
    plan(store, study);
    assert_ok(keep_failed(store, study, 2, "no"));
    fin_store_close(store);
    count = merge_ok(in_folder("a.db"), in_folder("c.db"), 0); /* and not the other way */
    assert_true(count.replaced == 0 && count.same == 1);
    fin_study_destroy(study);
}

static void merge__a_difference_stops_it(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 2);
    fill_store(in_folder("b.db"), 0, 1);
    hack(in_folder("b.db"),
         "UPDATE scalars SET value = value + 1e-15 WHERE run_id = 9 AND name_id = "
         "(SELECT id FROM names WHERE name = 'risk')");
    assert_no_merge(in_folder("a.db"), in_folder("b.db"), FIN_ERR_FORMAT, "'risk' is not the same");
    hack(in_folder("b.db"), "UPDATE runs SET version = '99.0.0', finished = 0");
    fin_merge_count count = merge_ok(in_folder("a.db"), in_folder("b.db"), 1);
    assert_true(count.replaced == 1 && count.same == 7 && count.added == 8);
    assert_int_equal(ask(in_folder("a.db"), "SELECT count(*) FROM runs WHERE version = '99.0.0'"),
                     9);
    fill_store(in_folder("c.db"), 0, 2); /* older: loses even by force */
    hack(in_folder("c.db"), "UPDATE scalars SET value = 7; UPDATE runs SET version = '0.0.1'");
    count = merge_ok(in_folder("a.db"), in_folder("c.db"), 1);
    assert_true(count.replaced == 0 && count.same == 8);
    assert_no_merge(in_folder("a.db"), in_folder("a.db"), FIN_ERR_ARGUMENT, "itself");
    assert_no_merge(in_folder("a.db"), in_folder("none.db"), FIN_ERR_IO, "No such file");
}

static void merge__series_count_too(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 1);
    fill_store(in_folder("b.db"), 0, 1);
    hack(in_folder("b.db"), "UPDATE series SET data = (SELECT data FROM series WHERE run_id = 1) "
                            "WHERE run_id = 3");
    assert_no_merge(in_folder("a.db"), in_folder("b.db"), FIN_ERR_FORMAT, "'curve'");
}

static void merge__other_plans_stop_it(void **state)
{
    (void)state;
    fill_store(in_folder("a.db"), 0, 1);
    fin_study *study = parse_study("study: small\nruns:\n  - {command: risk, axes: {L: [2, 3]}}\n");
    fin_store *store = open_store(in_folder("b.db"), FIN_STORE_CREATE);
    plan(store, study);
    fin_store_close(store);
    fin_study_destroy(study);
    assert_no_merge(in_folder("a.db"), in_folder("b.db"), FIN_ERR_FORMAT, "study 'small'");
    fin_merge_count count = merge_ok(in_folder("a.db"), in_folder("b.db"), 1);
    assert_int_equal(count.studies, 1);
    assert_int_equal(ask(in_folder("a.db"), "SELECT count(*) FROM plan"), 2);
}

static void merge__damage_stops_it(void **state)
{
    (void)state;
    static const char *const harm[] = {
        "UPDATE settings SET own = '{}' WHERE id = 4",
        "UPDATE settings SET hash = 'x' WHERE id = 4",
        "UPDATE runs SET state = 9 WHERE id = 4",
        "UPDATE common SET command = x'00'",
        "UPDATE runs SET version = CAST(x'ff41' AS TEXT) WHERE id = 4",
        "UPDATE scalars SET how = 99 WHERE run_id = 4",
        "UPDATE scalars SET samples = -1 WHERE run_id = 4",
        "UPDATE series SET shape = '2,300' WHERE run_id = 3",
        "UPDATE series SET shape = '99999999999,99999999999' WHERE run_id = 3",
        "UPDATE series SET data = x'789c' WHERE run_id = 3",
        "UPDATE series SET dtype = 'f8' WHERE run_id = 3",
        "UPDATE plan SET block = 'other' WHERE position = 3",
        "DELETE FROM plan WHERE position = 3",
        "UPDATE studies SET hash = ''",
        "UPDATE studies SET name = CAST(zeroblob(2000000) AS TEXT)",
        "UPDATE names SET name = CAST(x'ff' AS TEXT) WHERE name = 'risk'"};
    fill_store(in_folder("a.db"), 0, 7);
    hack(in_folder("a.db"), "UPDATE studies SET name = 'mine'");
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        remove(in_folder("b.db"));
        fill_store(in_folder("b.db"), 0, 1);
        hack(in_folder("b.db"), harm[i]);
        assert_no_merge(in_folder("a.db"), in_folder("b.db"), FIN_ERR_FORMAT, "b.db' is damaged");
    }
    fill_store(in_folder("c.db"), 0, 1);
    hack(in_folder("c.db"), "UPDATE settings SET own = '{\"settings\":' WHERE id = 4");
    assert_no_merge(in_folder("a.db"), in_folder("c.db"), FIN_ERR_FORMAT, "c.db': it is damaged");
}

/* ---- differences ----------------------------------------------------------------------------- */

typedef struct heard {
    int missing, states, numbers, series;
    double left, right;
} heard;

static fin_status hear(void *user, const fin_difference *d, fin_error *e)
{
    heard *h = user;
    (void)e;
    assert_string_equal(d->study, "small");
    assert_int_equal(strlen(d->hash), 32);
    h->missing += strcmp(d->what, "missing") == 0;
    h->states += strcmp(d->what, "state") == 0;
    h->series += strcmp(d->what, "curve") == 0;
    if (strcmp(d->what, "risk") == 0) {
        h->numbers++;
        h->left = d->left;
        h->right = d->right;
    }
    assert_true(strcmp(d->what, "missing") != 0 || d->in_left + d->in_right == 1);
    return FIN_OK;
}

static int64_t diff_of(const char *a, const char *b, double tolerance, heard *h)
{
    int64_t count;
    *h = (heard){0};
    fin_store *left = open_store(a, FIN_STORE_READ), *right = open_store(b, FIN_STORE_READ);
    assert_ok(fin_store_diff(left, right, tolerance, hear, h, &count, &err));
    fin_store_close(left);
    fin_store_close(right);
    return count;
}

static void diff__tells_all(void **state)
{
    (void)state;
    heard h;
    fill_store(in_folder("a.db"), 0, 1);
    fill_store(in_folder("b.db"), SMALL - 1, -1);
    assert_int_equal(diff_of(in_folder("a.db"), in_folder("b.db"), 0, &h), 0);
    hack(in_folder("b.db"),
         "UPDATE scalars SET value = value + 1e-9 WHERE run_id = 5 AND name_id = "
         "(SELECT id FROM names WHERE name = 'risk')");
    assert_int_equal(diff_of(in_folder("a.db"), in_folder("b.db"), 0, &h), 1);
    assert_true(h.numbers == 1 && h.right > h.left && h.right - h.left < 2e-9);
    assert_int_equal(diff_of(in_folder("a.db"), in_folder("b.db"), 1e-6, &h), 0);
    hack(in_folder("b.db"), "DELETE FROM scalars WHERE run_id = 5 AND name_id = "
                            "(SELECT id FROM names WHERE name = 'risk')");
    assert_int_equal(diff_of(in_folder("a.db"), in_folder("b.db"), 0, &h), 1);
    assert_true(isnan(h.right) && !isnan(h.left));
    hack(in_folder("b.db"), "PRAGMA foreign_keys = ON; DELETE FROM runs WHERE id IN (15, 16)");
    hack(in_folder("a.db"), "PRAGMA foreign_keys = ON; DELETE FROM runs WHERE id = 1");
    hack(in_folder("b.db"), "DELETE FROM series WHERE run_id = 3; UPDATE runs SET state = 2 WHERE "
                            "id = 6");
    assert_int_equal(diff_of(in_folder("a.db"), in_folder("b.db"), 0, &h), 6);
    assert_true(h.missing == 3 && h.numbers == 1 && h.states == 1 && h.series == 1);
    fin_store *store = open_store(in_folder("a.db"), FIN_STORE_READ);
    int64_t count;
    assert_int_equal(fin_store_diff(store, store, NAN, NULL, NULL, &count, &err), FIN_ERR_ARGUMENT);
    assert_ok(fin_store_diff(store, store, 0, NULL, NULL, &count, &err));
    assert_int_equal(count, 0);
    fin_store_close(store);
}

/* ---- tidying up ------------------------------------------------------------------------------ */

static void gc__removes_what_no_plan_wants(void **state)
{
    (void)state;
    const char *path = in_folder("a.db");
    fill_store(path, 0, 1);
    fin_study *study = parse_study("study: small\nruns:\n  - command: risk\n    id: grid\n"
                                   "    axes: {L: [2, 10], lam: [0.1, 0.2]}\n");
    fin_study *second = parse_study("study: second\nruns:\n  - command: risk\n    id: grid\n"
                                    "    axes: {L: [2, 100], lam: [0.1]}\n");
    fin_store *store = open_store(path, FIN_STORE_WRITE);
    fin_gc_count count;
    plan(store, study);
    plan(store, second);
    assert_ok(fin_store_gc(store, NULL, 1, &count, &err));
    assert_true(count.runs == 11 && count.studies == 0 && count.bytes > 0);
    assert_ok(fin_store_gc(store, "second", 1, &count, &err));
    assert_true(count.runs == 12 && count.studies == 1);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), SMALL);
    assert_ok(fin_store_gc(store, NULL, 0, &count, &err));
    assert_true(count.runs == 11 && count.studies == 0);
    assert_int_equal(ask(path, "SELECT count(*) FROM runs"), 5);
    assert_int_equal(ask(path, "SELECT count(*) FROM scalars WHERE run_id NOT IN (SELECT id FROM "
                               "runs)"),
                     0);
    assert_ok(fin_store_gc(store, "second", 0, &count, &err));
    assert_true(count.runs == 1 && count.studies == 1);
    assert_int_equal(fin_store_gc(store, "secnd", 0, &count, &err), FIN_ERR_ARGUMENT);
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    assert_int_equal(ask(path, "PRAGMA freelist_count"), 0);
    assert_int_equal(ask(path, "PRAGMA application_id"), FINI_STORE_APPLICATION);
    store = open_store(path, FIN_STORE_READ);
    assert_ok(fin_store_gc(store, NULL, 1, NULL, &err));
    assert_int_equal(fin_store_gc(store, NULL, 0, NULL, &err), FIN_ERR_ARGUMENT);
    fin_store_close(store);
    assert_int_equal(list_folder(0), 1);
    fin_study_destroy(study);
    fin_study_destroy(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(csv__has_a_row_a_run, empty_folder),
        cmocka_unit_test_setup(csv__does_not_depend_on_the_order_of_filling, empty_folder),
        cmocka_unit_test_setup(csv__quotes, empty_folder),
        cmocka_unit_test_setup(export__refuses_other_names, empty_folder),
        cmocka_unit_test_setup(npz__has_arrays, empty_folder),
        cmocka_unit_test_setup(npz__of_uneven_series, empty_folder),
        cmocka_unit_test_setup(merge__shards_are_the_whole, empty_folder),
        cmocka_unit_test_setup(merge__done_replaces_failed, empty_folder),
        cmocka_unit_test_setup(merge__a_difference_stops_it, empty_folder),
        cmocka_unit_test_setup(merge__series_count_too, empty_folder),
        cmocka_unit_test_setup(merge__other_plans_stop_it, empty_folder),
        cmocka_unit_test_setup(merge__damage_stops_it, empty_folder),
        cmocka_unit_test_setup(diff__tells_all, empty_folder),
        cmocka_unit_test_setup(gc__removes_what_no_plan_wants, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_store_folder, remove_folder);
}
