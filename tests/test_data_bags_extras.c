/* Extra columns of bags in files: what comes back beside tokens, and arrays of other types. */
#include "test_data_bags.h"

#include <math.h>

static void extra_is(const fin_bag_set *set, const char *name, const char *const *texts)
{
    for (int64_t k = 0; k < fin_bag_set_extras(set); k++)
        if (strcmp(fin_bag_set_extra(set, k), name) == 0) {
            for (int64_t t = 0; texts[t]; t++)
                assert_string_equal(fin_bag_set_extra_text(set, k, t), texts[t]);
            return;
        }
    fail_msg("there is no extra column %s", name);
}

static const double *numbers_of(const fin_bag_set *set, const char *name)
{
    for (int64_t k = 0; k < fin_bag_set_extras(set); k++)
        if (strcmp(fin_bag_set_extra(set, k), name) == 0)
            return fin_bag_set_extra_numbers(set, k);
    fail_msg("there is no extra column %s", name);
    return NULL;
}

/* Rows of a bag that are no neighbours; cells with quotes, line ends, odd bytes; long row ids. */
static const char table[] = "bag,label,id,x,file,empty,px\n"
                            "a,0,9007199254740993,1,\"one, \"\"two\"\"\",,1.50\n"
                            "b,1,2,3,\"line\nend\",,\n"
                            "a,0,3,2,\xff\x01,,-2\n"
                            "b,1,4,4,,,1e-3\n"
                            "c,0,5,6,z,,nan\n";

static void extras__of_a_table(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", table));
    source.features = "x";
    source.extras = "*";
    for (source.ranks = 1; source.ranks <= 2; source.ranks++) {
        fin_bag_set *set = read_set(&source);
        assert_int_equal(fin_bag_set_extras(set), 4);
        assert_string_equal(fin_bag_set_extra(set, 0), "id");
        extra_is(set, "id", (const char *[]){"9007199254740993", "3", NULL});
        assert_null(numbers_of(set, "id")); /* no double holds 2^53 + 1 */
        extra_is(set, "file", (const char *[]){"one, \"two\"", "??", NULL});
        extra_is(set, "empty", (const char *[]){"", "", NULL});
        extra_is(set, "px", (const char *[]){"1.50", "-2", NULL});
        const double *px = numbers_of(set, "px");
        assert_true(px[0] == 1.5 && px[1] == -2);
        assert_null(numbers_of(set, "file"));
        if (source.ranks == 1) {
            extra_is(set, "file",
                     (const char *[]){"one, \"two\"", "??", "line\nend", "", "z", NULL});
            assert_true(isnan(px[2]) && px[3] == 1e-3 && isnan(px[4]));
        }
        assert_null(fin_bag_set_extra_text(set, 0, 99));
        assert_null(fin_bag_set_extra(set, 4));
        fin_bag_set_destroy(set);
    }
    source.ranks = 2;
    source.rank = 1;
    fin_bag_set *set = read_set(&source);
    extra_is(set, "file", (const char *[]){"z", NULL});
    fin_bag_set_destroy(set);
}

static void extras__by_a_list(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", table));
    source.features = "x";
    source.extras = "px,id,x";
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_extras(set), 3);
    assert_string_equal(fin_bag_set_extra(set, 0), "px");
    extra_is(set, "x", (const char *[]){"1", "2", "3", NULL});
    fin_bag_set_destroy(set);
    source.extras = "pz";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'pz'", "did you mean px");
    source.extras = NULL;
    set = read_set(&source);
    assert_int_equal(fin_bag_set_extras(set), 0);
    fin_bag_set_destroy(set);
}

/* ---- arrays ----------------------------------------------------------------------------------- */

enum { N = 6, D = 2 };
static const float tokens[N * D] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int64_t offsets[4] = {0, 1, 4, 6}, bag[N] = {5, 3, 5, 4, 3, 5};
static const double y[3] = {0, 1, 0};
static const char *const pieces[N] = {"", "a", "b\xc3\xa9", "\xf0\x9f\x98\x80", "line\nend", "zz"};

static const char *piece(const void *user, int64_t i)
{
    (void)user;
    return pieces[i];
}

static const char *mood(const void *user, int64_t i)
{
    (void)user;
    return pieces[2 - i % 2];
}

static const char *write_archive(bool by_bag)
{
    static const int64_t id[N] = {1, 2, 3, 4, 5, (INT64_C(1) << 53) + 1};
    static const unsigned char wide[N * 17];
    fin_npz_writer *z;
    const char *path = in_folder("t.npz");
    assert_ok(fin_npz_create(path, &z, &err));
    assert_ok(fin_npz_add(z, "tokens", FIN_F32, 2, (int64_t[]){N, D}, tokens, &err));
    if (by_bag)
        assert_ok(fin_npz_add(z, "bag", FIN_I64, 1, (int64_t[]){N}, bag, &err));
    else
        assert_ok(fin_npz_add(z, "offsets", FIN_I64, 1, (int64_t[]){4}, offsets, &err));
    assert_ok(fin_npz_add(z, "y", FIN_F64, 1, (int64_t[]){3}, y, &err));
    assert_ok(fin_npz_add_texts(z, "piece", N, piece, NULL, &err));
    assert_ok(fin_npz_add(z, "xy", FIN_F32, 2, (int64_t[]){N, D}, tokens, &err));
    assert_ok(fin_npz_add(z, "id", FIN_I64, 1, (int64_t[]){N}, id, &err));
    assert_ok(fin_npz_add(z, "wide", FIN_U8, 2, (int64_t[]){N, 17}, wide, &err));
    assert_ok(fin_npz_add_texts(z, "mood", 3, mood, NULL, &err));
    assert_ok(fin_npz_add(z, "other", FIN_F64, 1, (int64_t[]){3}, y, &err));
    assert_ok(fin_npz_commit(z, NULL, &err));
    return path;
}

static void extras__of_an_archive(void **state)
{
    (void)state;
    fin_bags_source source = from(write_archive(false));
    source.extras = "*";
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_extras(set), 4);
    extra_is(
        set, "piece",
        (const char *[]){pieces[0], pieces[1], pieces[2], pieces[3], pieces[4], pieces[5], NULL});
    extra_is(set, "id", (const char *[]){"1", "2", "3", "4", "5", "9007199254740993", NULL});
    assert_null(numbers_of(set, "id"));
    for (int t = 0; t < N; t++)
        assert_true(numbers_of(set, "xy.1")[t] == tokens[D * t + 1]);
    assert_null(fin_bag_set_extra_text(set, 1, 0)); /* numbers of an array */
    has_note(set, "1 array with more than 16 columns");
    fin_bag_set_destroy(set);
    source = from(write_archive(true)); /* bags in the order of their first rows: 5, 3, 4 */
    source.extras = "xy,piece";
    set = read_set(&source);
    assert_int_equal(fin_bag_set_extras(set), 3);
    extra_is(
        set, "piece",
        (const char *[]){pieces[0], pieces[2], pieces[5], pieces[1], pieces[4], pieces[3], NULL});
    assert_true(numbers_of(set, "xy.0")[3] == 3);
    fin_bag_set_destroy(set);
    source.extras = "z";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'z'", "piece, xy.0, xy.1");
    source.label = "piece"; /* a text for each token, not for each bag */
    read_refuses(&source, FIN_ERR_FORMAT, "'piece'", "6 texts for 3 bags");
    source.label = NULL;
    source.group = "piece"; /* texts where numbers are needed */
    read_refuses(&source, FIN_ERR_UNSUPPORTED, "'piece'", "holds texts");
}

/* Labels of arrays that are texts are classes. */
static void labels__may_be_texts(void **state)
{
    (void)state;
    fin_bags_source source = from(write_archive(false));
    source.label = "mood";
    fin_bag_set *set = read_set(&source);
    const double *labels = fin_bag_set_bags(set)->labels;
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_string_equal(fin_bag_set_class(set, (int64_t)labels[0]), "b\xc3\xa9");
    assert_string_equal(fin_bag_set_class(set, (int64_t)labels[1]), "a");
    assert_true(labels[0] == labels[2] && labels[0] != labels[1]);
    fin_bag_set_destroy(set);
    source.class_names =
        (const char *const[]){"x", "a"}; /* of a model, which knows only one of them */
    source.class_count = 2;
    set = read_set(&source);
    labels = fin_bag_set_bags(set)->labels;
    assert_true(isnan(labels[0]) && labels[1] == 1 && isnan(labels[2]));
    fin_bag_set_destroy(set);
}

/* One NPY file of version 1.0. */
static const char *write_described(const char *name, const char *description, const void *data,
                                   size_t size)
{
    char bytes[1024] = "\x93NUMPY\x01";
    size_t length = strlen(description);
    bytes[8] = (char)length;
    memcpy(bytes + 10, description, length);
    memcpy(bytes + 10 + length, data, size);
    return write_file(name, bytes, 10 + length + size);
}

static void extras__beside_mapped_files(void **state)
{
    (void)state;
    write_npy("u.offsets.npy", FIN_I64, 1, (int64_t[]){4}, offsets);
    write_npy("u.y.npy", FIN_F64, 1, (int64_t[]){3}, y);
    write_npy("u.row.npy", FIN_I64, 1, (int64_t[]){N}, bag);
    write_npy("v.row.npy", FIN_I64, 1, (int64_t[]){N}, bag); /* of another set */
    write_described("u.s.npy", "{'descr': '|S3', 'fortran_order': False, 'shape': (6,)}",
                    "a\0\0bcd\xff\0\0\0\0\0e\0ff\0\0", 18);
    write_described("u.o.npy", "{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", "", 0);
    fin_bags_source source = from(write_npy("u.tokens.npy", FIN_F32, 2, (int64_t[]){N, D}, tokens));
    source.extras = "*";
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_extras(set), 2);
    assert_true(numbers_of(set, "row")[5] == 5);
    extra_is(set, "s", (const char *[]){"a", "bcd", "?", "", "e?f", "f", NULL});
    fin_bag_set_destroy(set);
}

/* ---- elements that are converted ----------------------------------------------------------------- */

/* (-1)^s 2^(e - 15) (1 + m / 1024), or 2^-14 m / 1024 where e = 0. */
static void half__is_exact(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        int sign = bits >> 15 ? -1 : 1, e = bits >> 10 & 31, m = bits & 1023;
        float value = fini_half((uint16_t)bits);
        double expected = e ? ldexp(1 + m / 1024.0, e - 15) : ldexp(m / 1024.0, -14);
        if (e == 31 && m)
            assert_true(isnan(value));
        else
            assert_true((double)value == sign * (e == 31 ? (double)INFINITY : expected));
        assert_int_equal(signbit(value) != 0, sign < 0);
    }
}

/* Every element of a (2, 3, 2) array in Fortran order, and every type, mapped and from an archive. */
static void npy__converts(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        size_t size;
        fin_dtype dtype;
        int64_t last; /* the bytes of the last element are 0xff... */
    } types[] = {{"<f4", 4, FIN_F32, 0},     {"<f8", 8, FIN_F64, 0},
                 {"<i8", 8, FIN_I64, -1},    {"|u1", 1, FIN_U8, 255},
                 {"|i1", 1, FIN_I32, -1},    {"<i2", 2, FIN_I32, -1},
                 {"<u2", 2, FIN_I32, 65535}, {"<u4", 4, FIN_I64, 4294967295}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int fortran = 0; fortran < 2; fortran++) {
            char text[120];
            unsigned char bytes[12 * 8] = {0};
            for (size_t k = 0; k < 12; k++) { /* element k is k, but for the last */
                float f = (float)k;
                double x = (double)k;
                if (i < 2)
                    memcpy(bytes + k * types[i].size, i ? (void *)&x : (void *)&f, types[i].size);
                else
                    bytes[k * types[i].size] = (unsigned char)k;
            }
            if (i >= 2)
                memset(bytes + 11 * types[i].size, 0xff, types[i].size);
            snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3, 2)}",
                     types[i].descr, fortran ? "True" : "False");
            fini_npy map;
            assert_ok(fini_npy_map(write_described("x.npy", text, bytes, 12 * types[i].size), &map,
                                   &err));
            assert_int_equal(map.array.dtype, types[i].dtype);
            for (int a = 0; a < 2; a++)
                for (int b = 0; b < 3; b++)
                    for (int c = 0; c < 2; c++) {
                        int64_t k = fortran ? a + 2 * (b + 3 * c) : c + 2 * (b + 3 * a);
                        double expected = k == 11 && i >= 2 ? (double)types[i].last : (double)k;
                        assert_true(fin_dtype_get(map.array.dtype, map.array.data,
                                                  c + 2 * (b + 3 * a)) == expected);
                    }
            fini_npy_unmap(&map);
        }
}

/* ---- out of memory ------------------------------------------------------------------------------ */

static fin_status read_and_destroy(void *user, fin_error *e)
{
    fin_bag_set *set;
    fin_status status = fin_bag_set_read(&set, user, NULL, e);
    fin_bag_set_destroy(set);
    return status;
}

static void extras__every_allocation_may_fail(void **state)
{
    (void)state;
    fin_threads_set(1);
    fin_bags_source source = from(write_text("t.csv", table));
    source.features = "x";
    source.extras = "*";
    assert_true(fault_every(read_and_destroy, &source) > 5);
    source = from(write_archive(true));
    source.extras = "*";
    assert_true(fault_every(read_and_destroy, &source) > 5);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(extras__of_a_table, empty_folder),
        cmocka_unit_test_setup(extras__by_a_list, empty_folder),
        cmocka_unit_test_setup(extras__of_an_archive, empty_folder),
        cmocka_unit_test_setup(labels__may_be_texts, empty_folder),
        cmocka_unit_test_setup(extras__beside_mapped_files, empty_folder),
        cmocka_unit_test(half__is_exact),
        cmocka_unit_test_setup(npy__converts, empty_folder),
        cmocka_unit_test_setup(extras__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
