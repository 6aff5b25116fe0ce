/* Bags from HDF5: blocks of any size, memory that does not hold the tokens, shares of processes. The
 * files are those of the fuzzers' corpus, which h5py wrote; tests/cli/hdf5.sh has all types. */
#include "test_data_bags.h"
#include "test_skip.h"

static const char *const features[] = {"0", "1"};

/* A file of the corpus without its first byte, in the folder as `name`. */
static const char *copy(const char *which, const char *name)
{
    char path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/../fuzz/corpus/hdf5/%s", FIN_TEST_DATA, which);
    char *bytes = read_file(path, &size);
    const char *to = write_file(name, bytes + 1, size - 1);
    free(bytes);
    return to;
}

/* A bag for a model of two columns. */
static fin_bags_source to_predict(const char *path)
{
    return (fin_bags_source){
        .path = path, .feature_names = features, .feature_count = 2, .extras = "*"};
}

/* Token t has 2t and 2t + 1. */
static void is_counted(const fin_bag_set *set, int64_t rows, fin_dtype dtype)
{
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->offsets[bags->n], rows);
    assert_int_equal(bags->dtype, dtype);
    for (int64_t t = 0; t < rows; t++)
        assert_true(token(set, t, 0) == 2 * (double)t && token(set, t, 1) == 2 * (double)t + 1);
}

static const double *extra_of(const fin_bag_set *set, const char *name)
{
    for (int64_t k = 0; k < fin_bag_set_extras(set); k++)
        if (strcmp(fin_bag_set_extra(set, k), name) == 0)
            return fin_bag_set_extra_numbers(set, k);
    return NULL;
}

static void hdf5__blocks_of_every_size(void **state)
{
    (void)state;
    if (!fin_hdf5_version())
        SKIP("built without HDF5, or it is not here");
    fin_bags_source source[] = {to_predict(copy("bag", "bag.h5")),
                                to_predict(copy("chunks", "chunks.h5")),
                                from(copy("file", "file.h5"))};
    source[2].extras = "*";
    for (int64_t block = 1; block < 400; block += block < 40 ? 1 : 60)
        for (int memory = 0; memory < 2; memory++)
            for (int k = 0; k < 3; k++) {
                fini_h5_block = block;
                fini_h5_memory = memory; /* one byte: everything goes to a file */
                fin_bag_set *set = read_set(&source[k]);
                is_counted(set, k < 2 ? 10 : 6, k == 1 ? FIN_F64 : FIN_F32);
                if (memory)
                    has_note(set, "kept in a temporary file");
                if (k == 0)
                    assert_true(extra_of(set, "coords.1")[9] == 19);
                if (k == 2)
                    assert_true(extra_of(set, "coords")[5] == 7.5);
                if (k == 2)
                    assert_int_equal(fin_bag_set_bags(set)->n, 3);
                assert_ok(fin_bag_set_drop(set, (unsigned char[]){1, 0}, &err));
                assert_true(token(set, 3, 0) == 7);
                fin_bag_set_destroy(set);
            }
    fini_h5_block = 16 << 20;
    fini_h5_memory = 0;
    setenv("TMPDIR", in_folder("nowhere"), 1);
    fini_h5_memory = 1;
    read_refuses(&source[0], FIN_ERR_IO, "cannot write", "nowhere");
    fini_h5_memory = 0;
    unsetenv("TMPDIR");
}

/* Bags whose rows are no neighbours, integers, some columns, groups. */
static void hdf5__rows_in_any_order(void **state)
{
    (void)state;
    if (!fin_hdf5_version())
        SKIP("built without HDF5, or it is not here");
    fin_bags_source source = from(copy("rows", "rows.h5"));
    source.group = "g";
    for (int memory = 0; memory < 2; memory++) {
        fini_h5_memory = memory;
        fin_bag_set *set = read_set(&source); /* bags 3, 7, 9; 3 has rows 1, 2 and 4 */
        assert_int_equal(fin_bag_set_bags(set)->n, 3);
        assert_true(token(set, 2, 0) == 6 && token(set, 3, 0) == 4);
        assert_int_equal(fin_bag_set_row(set, 2), 4);
        assert_string_equal(fin_bag_set_name(set, 1), "7");
        assert_string_equal(fin_bag_set_group(set), "g");
        fin_bag_set_destroy(set);
    }
    fini_h5_memory = 0;
    source.group = NULL;
    source.features = "1";
    source.path = copy("integers", "integers.h5");
    fin_bag_set *set = read_set(&source);
    assert_true(fin_bag_set_bags(set)->d == 1 && token(set, 3, 0) == 5);
    fin_bag_set_destroy(set);
    source.label = "z";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no data set 'z'", "integers.h5");
}

/* A folder, by a table with a bag that has no file; three processes. */
static void hdf5__folder_by_a_table(void **state)
{
    (void)state;
    if (!fin_hdf5_version())
        SKIP("built without HDF5, or it is not here");
    char path[600];
    snprintf(path, sizeof path, "%s", folder);
    copy("bag", "b.h5");
    copy("chunks", "a.hdf5");
    copy("bag", "c.svs.h5");
    fin_bags_source source = from(path);
    source.table = write_text("t.csv", "group;slide_id;y\nu;none;1\nu;c.svs;0\nv;a;1\nu;b.h5;0\n");
    source.group = "group";
    fin_bag_set *set = read_set(&source);
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, 3);
    assert_int_equal(bags->dtype, FIN_F64); /* one of them is */
    assert_true(token(set, 9, 1) == 19 && token(set, 10, 0) == 0 && token(set, 29, 1) == 19);
    assert_true(bags->labels[1] == 1 && bags->labels[2] == 0);
    assert_true(bags->groups[0] == 0 && bags->groups[1] == 1 && bags->groups[2] == 0);
    assert_string_equal(fin_bag_set_name(set, 2), "b.h5");
    assert_int_equal(fin_bag_set_row(set, 10), 1);
    has_note(set, "1 of the 4 bags of the table have no file and are left out, 'none'");
    fin_bag_set_destroy(set);
    source.ranks = 3;
    for (source.rank = 0; source.rank < 3; source.rank++) {
        set = read_set(&source);
        is_counted(set, 10, FIN_F64);
        assert_int_equal(fin_bag_set_bags(set)->first, source.rank);
        fin_bag_set_destroy(set);
    }
    source.ranks = 1;
    source.rank = 0;
    char list[1400]; /* of paths, seen from a folder that holds none */
    snprintf(list, sizeof list, "file,y,group\n../b.h5,0,u\n%s/a.hdf5,1,v\n", folder);
    source.table = write_text("list.csv", list);
    assert_int_equal(mkdir(in_folder("below"), 0777), 0);
    source.path = in_folder("below");
    set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->n, 2);
    assert_string_equal(fin_bag_set_name(set, 0), "../b.h5");
    fin_bag_set_destroy(set);
    source.path = path;
    source.table = NULL;
    read_refuses(&source, FIN_ERR_ARGUMENT, "no labels", "--labels");
    source.unlabelled = 1;
    source.group = NULL;
    set = read_set(&source); /* in the order of names */
    assert_string_equal(fin_bag_set_name(set, 0), "a");
    assert_string_equal(fin_bag_set_name(set, 2), "c.svs");
    fin_bag_set_destroy(set);
}

static fin_status read_and_destroy(void *user, fin_error *e)
{
    fin_bag_set *set;
    fin_status status = fin_bag_set_read(&set, user, NULL, e);
    fin_bag_set_destroy(set);
    return status;
}

static void hdf5__every_allocation_may_fail(void **state)
{
    (void)state;
    if (!fin_hdf5_version())
        SKIP("built without HDF5, or it is not here");
    char path[600];
    snprintf(path, sizeof path, "%s", folder);
    copy("bag", "a.h5");
    copy("chunks", "b.h5");
    fin_threads_set(1);
    fin_bags_source source = from(path);
    source.table = write_text("t.csv", "bag,y,g\na,0,u\nb,1,u\nc,1,v\n");
    source.group = "g";
    source.extras = "*";
    assert_true(fault_every(read_and_destroy, &source) > 5);
    empty_folder(NULL);
    source = from(copy("rows", "rows.h5"));
    source.extras = "*";
    assert_true(fault_every(read_and_destroy, &source) > 5);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(hdf5__blocks_of_every_size, empty_folder),
        cmocka_unit_test_setup(hdf5__rows_in_any_order, empty_folder),
        cmocka_unit_test_setup(hdf5__folder_by_a_table, empty_folder),
        cmocka_unit_test_setup(hdf5__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
