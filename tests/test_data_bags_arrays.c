/* Bags from NPZ archives and mapped NPY files. */
#include "test_data_bags.h"

#include <math.h>

enum { N = 6, D = 2, BAGS = 3 };
static const double tokens64[N * D] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int64_t offsets[BAGS + 1] = {0, 1, 4, 6}, labels[BAGS] = {4, 4, 9};

typedef struct arrays {
    fin_dtype dtype;
    int ndim;
    int64_t shape[4];
    const void *tokens;
    const int64_t *offsets, *bag;
    int64_t offsets_count, bag_count;
    const double *y;
    int64_t y_count;
} arrays;

static const double y_default[BAGS] = {4, 4, 9};
static const arrays usual = {.dtype = FIN_F64,
                             .ndim = 2,
                             .shape = {N, D},
                             .tokens = tokens64,
                             .offsets = offsets,
                             .offsets_count = BAGS + 1,
                             .y = y_default,
                             .y_count = BAGS};

static const char *write_npz(const arrays *a)
{
    fin_npz_writer *writer;
    const char *path = in_folder("t.npz");
    assert_ok(fin_npz_create(path, &writer, &err));
    assert_ok(fin_npz_add(writer, "tokens", a->dtype, a->ndim, a->shape, a->tokens, &err));
    if (a->offsets)
        assert_ok(fin_npz_add(writer, "offsets", FIN_I64, 1, &a->offsets_count, a->offsets, &err));
    if (a->bag)
        assert_ok(fin_npz_add(writer, "bag", FIN_I64, 1, &a->bag_count, a->bag, &err));
    if (a->y)
        assert_ok(fin_npz_add(writer, "y", FIN_F64, 1, &a->y_count, a->y, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
    return path;
}

/* The same as files; returns that of the tokens. */
static const char *write_npys(const arrays *a)
{
    if (a->offsets)
        write_npy("u.offsets.npy", FIN_I64, 1, &a->offsets_count, a->offsets);
    if (a->bag)
        write_npy("u.bag.npy", FIN_I64, 1, &a->bag_count, a->bag);
    if (a->y)
        write_npy("u.y.npy", FIN_F64, 1, &a->y_count, a->y);
    return write_npy("u.tokens.npy", a->dtype, a->ndim, a->shape, a->tokens);
}

static void is_usual(const fin_bag_set *set, fin_dtype dtype)
{
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, BAGS);
    assert_int_equal(bags->d, D);
    assert_int_equal(bags->dtype, dtype);
    assert_memory_equal(bags->offsets, offsets, sizeof offsets);
    for (int i = 0; i < N * D; i++)
        assert_true(token(set, i / D, i % D) == tokens64[i]);
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_true(bags->labels[0] == 0 && bags->labels[1] == 0 && bags->labels[2] == 1);
    assert_string_equal(fin_bag_set_class(set, 1), "9");
    assert_string_equal(fin_bag_set_label(set), "y");
    assert_string_equal(fin_bag_set_feature(set, 1), "1");
    assert_string_equal(fin_bag_set_name(set, 2), "2");
    assert_int_equal(fin_bag_set_row(set, 3), 4);
}

static void arrays__every_type_of_tokens(void **state)
{
    (void)state;
    float f[N * D];
    int32_t i32[N * D];
    int64_t i64[N * D];
    unsigned char u8[N * D];
    for (int i = 0; i < N * D; i++) {
        f[i] = (float)tokens64[i];
        i32[i] = (int32_t)tokens64[i];
        i64[i] = (int64_t)tokens64[i];
        u8[i] = (unsigned char)tokens64[i];
    }
    const struct {
        fin_dtype dtype, result;
        const void *data;
    } types[] = {{FIN_F32, FIN_F32, f},
                 {FIN_F64, FIN_F64, tokens64},
                 {FIN_I32, FIN_F64, i32},
                 {FIN_I64, FIN_F64, i64},
                 {FIN_U8, FIN_F32, u8}};
    for (int k = 0; k < 5; k++) {
        arrays a = usual;
        a.dtype = types[k].dtype;
        a.tokens = types[k].data;
        fin_bags_source source = from(write_npz(&a));
        fin_bag_set *set = read_set(&source);
        is_usual(set, types[k].result);
        fin_bag_set_destroy(set);
        source = from(write_npys(&a));
        set = read_set(&source);
        is_usual(set, types[k].result);
        /* floats are where the file has them, not copied */
        assert_int_equal(set->tokens == NULL, k < 2);
        fin_bag_set_destroy(set);
    }
}

static void arrays__folder_of_files(void **state)
{
    (void)state;
    write_npy("tokens.npy", FIN_F64, 2, usual.shape, tokens64);
    write_npy("offsets.npy", FIN_I64, 1, &usual.offsets_count, offsets);
    write_npy("y.npy", FIN_I64, 1, &usual.y_count, labels);
    char path[600];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", folder, i == 0 ? "" : i == 1 ? "/" : "/tokens.npy");
        fin_bags_source source = from(path);
        fin_bag_set *set = read_set(&source);
        is_usual(set, FIN_F64);
        fin_bag_set_destroy(set);
    }
}

/* (3, 2, 2) pixels are rows of four. */
static void arrays__more_axes_are_one(void **state)
{
    (void)state;
    const unsigned char pixels[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
    const int64_t bag[3] = {-7, -7, 1234567890123456789};
    const double y[3] = {0, 0, 1};
    arrays a = {.dtype = FIN_U8,
                .ndim = 3,
                .shape = {3, 2, 2},
                .tokens = pixels,
                .bag = bag,
                .bag_count = 3,
                .y = y,
                .y_count = 3};
    fin_bags_source source = from(write_npz(&a));
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->d, 4);
    assert_int_equal(fin_bag_set_bags(set)->n, 2);
    assert_true(token(set, 2, 3) == 255 && token(set, 1, 0) == 4);
    assert_string_equal(fin_bag_set_name(set, 0), "-7");
    assert_string_equal(fin_bag_set_name(set, 1), "1234567890123456789");
    fin_bag_set_destroy(set);
}

static void arrays__rows_by_bag_in_any_order(void **state)
{
    (void)state;
    const int64_t bag[N] = {5, 3, 5, 4, 3, 5};
    const double row_labels[N] = {1, 2, 1, NAN, 2, 1}, bag_labels[3] = {1, 2, NAN};
    const double expected[N] = {1, 5, 11, 3, 9, 7};
    for (int k = 0; k < 4; k++) {
        arrays a = usual;
        a.offsets = NULL;
        a.bag = bag;
        a.bag_count = N;
        a.y = k < 2 ? row_labels : bag_labels;
        a.y_count = k < 2 ? N : 3;
        fin_bags_source source = from(k % 2 ? write_npys(&a) : write_npz(&a));
        source.class_count = 0;
        fin_bag_set *set = read_set(&source);
        assert_int_equal(fin_bag_set_bags(set)->n, 3);
        assert_string_equal(fin_bag_set_name(set, 1), "3");
        for (int t = 0; t < N; t++) {
            assert_true(token(set, t, 0) == expected[t]);
            assert_true(tokens64[(fin_bag_set_row(set, t) - 1) * D] == expected[t]);
        }
        const double *y = fin_bag_set_bags(set)->labels;
        assert_true(y[0] == 1 && y[1] == 2 && isnan(y[2]));
        fin_bag_set_destroy(set);
    }
}

static void arrays__some_columns(void **state)
{
    (void)state;
    fin_bags_source source = from(write_npys(&usual));
    source.features = "1,0";
    fin_bag_set *set = read_set(&source);
    assert_true(token(set, 0, 0) == 2 && token(set, 0, 1) == 1 && token(set, 5, 0) == 12);
    assert_string_equal(fin_bag_set_feature(set, 0), "1");
    fin_bag_set_destroy(set);
    /* a model that was fitted to a table: by place, with a note; or refused */
    const char *const names[] = {"f1", "f2", "f3"};
    source = from(source.path);
    source.feature_names = names;
    source.feature_count = 2;
    source.class_count = 0;
    set = read_set(&source);
    has_note(set, "by place");
    assert_true(token(set, 0, 0) == 1);
    assert_string_equal(fin_bag_set_feature(set, 0), "f1");
    fin_bag_set_destroy(set);
    source.feature_count = 3;
    read_refuses(&source, FIN_ERR_ARGUMENT, "2 columns without names", "fitted to 3");
}

static void arrays__names_of_features(void **state)
{
    (void)state;
    fin_npz_writer *writer;
    const int64_t shape[2] = {2, 3};
    const char *path = in_folder("t.npz");
    for (int k = 0; k < 2; k++) {
        assert_ok(fin_npz_create(path, &writer, &err));
        assert_ok(fin_npz_add(writer, "tokens", FIN_F64, 2, usual.shape, tokens64, &err));
        assert_ok(fin_npz_add(writer, "offsets", FIN_I64, 1, &usual.offsets_count, offsets, &err));
        assert_ok(fin_npz_add(writer, "y", FIN_F64, 1, &usual.y_count, y_default, &err));
        assert_ok(fin_npz_add(writer, "features", FIN_U8, 2, shape, k ? "a\0\0b\x01z" : "a\0\0bcd",
                              &err));
        assert_ok(fin_npz_commit(writer, NULL, &err));
        fin_bags_source source = from(path);
        if (k) {
            read_refuses(&source, FIN_ERR_FORMAT, "name 1 (from 0)", "control");
            continue;
        }
        source.features = "bcd";
        fin_bag_set *set = read_set(&source);
        assert_string_equal(fin_bag_set_feature(set, 0), "bcd");
        assert_true(token(set, 0, 0) == 2);
        fin_bag_set_destroy(set);
    }
}

/* Mapped, each process has its rows where they lie. */
static void arrays__shares(void **state)
{
    (void)state;
    fin_bags_source source = from(write_npys(&usual));
    source.ranks = 2;
    int64_t next = 0;
    for (source.rank = 0; source.rank < 2; source.rank++) {
        fin_bag_set *set = read_set(&source);
        const fin_bags *bags = fin_bag_set_bags(set);
        assert_int_equal(bags->first, next);
        assert_int_equal(bags->total, BAGS);
        assert_int_equal(fin_bag_set_classes(set), 2);
        assert_true(token(set, 0, 0) == tokens64[offsets[next] * D]);
        assert_int_equal(fin_bag_set_row(set, 0), offsets[next] + 1);
        assert_int_equal(atoi(fin_bag_set_name(set, 0)), next);
        assert_int_equal(bags->offsets[bags->n] - bags->offsets[0],
                         offsets[next + bags->n] - offsets[next]);
        next += bags->n;
        fin_bag_set_destroy(set);
    }
    assert_int_equal(next, BAGS);
    source.rank = 0;
    source.ranks = 50; /* most have nothing */
    for (next = 0; source.rank < 50; source.rank++) {
        fin_bag_set *set = read_set(&source);
        next += fin_bag_set_bags(set)->n;
        fin_bag_set_destroy(set);
    }
    assert_int_equal(next, BAGS);
}

/* Copied: one column, or bytes, or rows in another order. */
static void arrays__shares_that_are_copied(void **state)
{
    (void)state;
    const int64_t bag[N] = {0, 1, 1, 1, 2, 2}, mixed[N] = {5, 3, 5, 4, 3, 5};
    const double expected[2][N] = {{2, 4, 6, 8, 10, 12}, {2, 6, 12, 4, 10, 8}};
    for (int k = 0; k < 3; k++) {
        arrays a = usual;
        a.offsets = k == 0 ? offsets : NULL;
        a.bag = k == 0 ? NULL : k == 1 ? bag : mixed;
        a.bag_count = N;
        empty_folder(NULL);
        fin_bags_source source = from(write_npys(&a));
        source.features = "1";
        source.ranks = 2;
        int64_t t = 0;
        for (source.rank = 0; source.rank < 2; source.rank++) {
            fin_bag_set *set = read_set(&source);
            const fin_bags *bags = fin_bag_set_bags(set);
            int64_t own = bags->offsets[bags->n] - bags->offsets[0];
            for (int64_t i = 0; i < own; i++, t++)
                assert_true(token(set, i, 0) == expected[k == 2][t]);
            fin_bag_set_destroy(set);
        }
        assert_int_equal(t, N);
    }
}

static void refuses(const arrays *a, const char *part)
{
    for (int k = 0; k < 2; k++) {
        empty_folder(NULL);
        fin_bags_source source = from(k ? write_npys(a) : write_npz(a));
        read_refuses(&source, FIN_ERR_FORMAT, part, k ? "u.tokens.npy" : "t.npz");
    }
}

static void arrays__offsets_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t offsets[4], count;
        const char *part;
    } cases[] = {{{0, 1, 1, 6}, 4, "bag 1 (from 0) has no rows"},
                 {{0, 0, 4, 6}, 4, "bag 0 (from 0) has no"},
                 {{0, 4, 1, 6}, 4, "offsets[2] is 1"},
                 {{1, 2, 4, 6}, 4, "offsets[0] is 1"},
                 {{0, 1, 4, 7}, 4, "offsets[3] is 7"},
                 {{0, 1, 4, 5}, 4, "end with 5"},
                 {{0, -1, 4, 6}, 4, "offsets[1] is -1"},
                 {{0}, 1, "at least two numbers"},
                 {{0, INT64_MAX, 4, 6}, 4, "offsets[1] is 9.2"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arrays a = usual;
        a.offsets = cases[i].offsets;
        a.offsets_count = cases[i].count;
        refuses(&a, cases[i].part);
    }
}

static void arrays__others_refused(void **state)
{
    (void)state;
    const int64_t bag[N] = {1, 1, 2, 2, 3, 3};
    const double y[N] = {1, 1, 2, 3, 1, 1}, some[BAGS] = {1, NAN, 2}, same[BAGS] = {1, 1, 1};
    double odd[N * D];
    arrays a = usual;
    a.y_count = 2;
    refuses(&a, "2 labels for 3 bags");
    a.y_count = BAGS;
    a.y = some;
    refuses(&a, "bag '1' has no label");
    a.y = same;
    refuses(&a, "labels that differ");
    a = usual;
    a.tokens = odd;
    for (int i = 0; i < N * D; i += 5) {
        memcpy(odd, tokens64, sizeof odd);
        odd[i] = i % 2 ? INFINITY : NAN;
        char part[64];
        snprintf(part, sizeof part, "row %d of bag '%d', column '%d': %s", i / D + 1,
                 i / D < 1   ? 0
                 : i / D < 4 ? 1
                             : 2,
                 i % D, i % 2 ? "inf" : "nan");
        refuses(&a, part);
    }
    a = usual;
    a.shape[1] = 0;
    refuses(&a, "no elements");
    a = usual;
    a.offsets = NULL;
    a.bag = bag;
    a.bag_count = N - 1;
    refuses(&a, "5 numbers for 6 rows");
    a.bag_count = N;
    a.y = y;
    a.y_count = N;
    refuses(&a, "row 3 (from 0) has the label 3, but bag '2'");
    a.y_count = N - 1;
    refuses(&a, "or one for each row");
}

/* The infinite one is found wherever it is, in pieces of any length. */
static void infinite__found_at_every_place(void **state)
{
    (void)state;
    enum { MANY = 700 };
    double x[MANY] = {0};
    float f[MANY] = {0};
    const int64_t all[2] = {0, MANY};
    fin_bags bags = {.n = 1, .d = 1, .offsets = all, .dtype = FIN_F64, .tokens = x};
    int64_t row = 0, column = 0;
    x[0] = 1.7e308;
    f[0] = -3.4e38f;
    for (int i = 0; i < MANY; i++) {
        x[i] = i % 2 ? -INFINITY : NAN;
        bags.dtype = FIN_F64;
        bags.tokens = x;
        assert_int_equal(fini_bags_infinite(&bags, NULL, &row, &column, &err), FIN_OK);
        assert_int_equal(row, i);
        x[i] = 1.7e308;
        assert_int_equal(fini_bags_infinite(&bags, NULL, &row, &column, &err), FIN_OK);
        assert_int_equal(row, -1);
        f[i] = i % 2 ? NAN : INFINITY;
        bags.dtype = FIN_F32;
        bags.tokens = f;
        assert_int_equal(fini_bags_infinite(&bags, NULL, &row, &column, &err), FIN_OK);
        assert_int_equal(row, i);
        f[i] = 3.4e38f;
        assert_int_equal(fini_bags_infinite(&bags, NULL, &row, &column, &err), FIN_OK);
        assert_int_equal(row, -1);
    }
}

static void arrays__what_is_missing(void **state)
{
    (void)state;
    arrays a = usual;
    a.offsets = NULL;
    fin_bags_source source = from(write_npys(&a));
    read_refuses(&source, FIN_ERR_ARGUMENT, "neither 'offsets'", "nor 'bag'");
    source.bag = "group";
    read_refuses(&source, FIN_ERR_ARGUMENT, "u.group.npy", "no file");
    empty_folder(NULL);
    a = usual;
    a.y = NULL;
    source = from(write_npys(&a));
    read_refuses(&source, FIN_ERR_ARGUMENT, "no labels", "'y'");
    source.label = "target";
    read_refuses(&source, FIN_ERR_ARGUMENT, "u.target.npy", "no file");
    source.class_count = 0; /* for prediction there need not be any */
    fin_bag_set *set = read_set(&source);
    assert_null(fin_bag_set_bags(set)->labels);
    fin_bag_set_destroy(set);
    source = from(in_folder("u.offsets.npy"));
    read_refuses(&source, FIN_ERR_ARGUMENT, "is one array", "x.tokens.npy");
    source = from(folder);
    read_refuses(&source, FIN_ERR_ARGUMENT, "no file", folder);
}

/* A mapped file that ends at any byte before its end is refused. */
static void npy__cut_at_every_byte(void **state)
{
    (void)state;
    fini_npy map;
    write_npys(&usual);
    size_t size;
    char *bytes = read_file(in_folder("u.tokens.npy"), &size);
    for (size_t cut = 0; cut < size; cut++) {
        write_file("cut.npy", bytes, cut);
        assert_int_equal(fini_npy_map(in_folder("cut.npy"), &map, &err), FIN_ERR_FORMAT);
        assert_null(map.base);
        assert_message(&err, "cut.npy");
    }
    write_file("cut.npy", bytes, size + 1); /* the NUL that read_file puts behind */
    assert_int_equal(fini_npy_map(in_folder("cut.npy"), &map, &err), FIN_ERR_FORMAT);
    free(bytes);
    assert_int_equal(fini_npy_map(folder, &map, &err), FIN_ERR_IO);
    assert_int_equal(fini_npy_map(in_folder("none.npy"), &map, &err), FIN_ERR_IO);
    assert_ok(fini_npy_map(in_folder("u.tokens.npy"), &map, &err));
    assert_memory_equal(map.array.data, tokens64, sizeof tokens64);
    fini_npy_unmap(&map);
    fini_npy_unmap(&map);
}

static fin_status read_and_destroy(void *user, fin_error *error)
{
    fin_bag_set *set;
    fin_status status = fin_bag_set_read(&set, user, NULL, error);
    fin_bag_set_destroy(set);
    return status;
}

static void arrays__every_allocation_may_fail(void **state)
{
    (void)state;
    const int64_t bag[N] = {5, 3, 5, 4, 3, 5};
    arrays a = usual;
    fin_threads_set(1);
    fin_bags_source source = from(write_npys(&a));
    source.ranks = 2;
    assert_true(fault_every(read_and_destroy, &source) > 5);
    empty_folder(NULL);
    a.offsets = NULL;
    a.bag = bag;
    a.bag_count = N;
    source = from(write_npys(&a));
    source.features = "1";
    assert_true(fault_every(read_and_destroy, &source) > 5);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(arrays__every_type_of_tokens, empty_folder),
        cmocka_unit_test_setup(arrays__folder_of_files, empty_folder),
        cmocka_unit_test_setup(arrays__more_axes_are_one, empty_folder),
        cmocka_unit_test_setup(arrays__rows_by_bag_in_any_order, empty_folder),
        cmocka_unit_test_setup(arrays__some_columns, empty_folder),
        cmocka_unit_test_setup(arrays__names_of_features, empty_folder),
        cmocka_unit_test_setup(arrays__shares, empty_folder),
        cmocka_unit_test_setup(arrays__shares_that_are_copied, empty_folder),
        cmocka_unit_test_setup(arrays__offsets_refused, empty_folder),
        cmocka_unit_test_setup(arrays__others_refused, empty_folder),
        cmocka_unit_test(infinite__found_at_every_place),
        cmocka_unit_test_setup(arrays__what_is_missing, empty_folder),
        cmocka_unit_test_setup(npy__cut_at_every_byte, empty_folder),
        cmocka_unit_test_setup(arrays__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
