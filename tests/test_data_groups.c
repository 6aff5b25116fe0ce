/* Groups of bags, names of columns that a model remembers, and columns that leave a set again. */
#include "test_data_bags.h"

#include <math.h>

static const char grouped[] = "slide,label,patient,x\n"
                              "a,0,Q,1\na,0,Q,2\nb,1,P,3\nc,0,Q,4\nd,1,7,5\nb,1,P,6\n";

static fin_bags_source with_groups(const char *text)
{
    fin_bags_source source = from(write_text("t.csv", text));
    source.bag = "slide";
    source.group = "patient";
    return source;
}

static void groups_are(const fin_bag_set *set, int64_t n, const int64_t *expected)
{
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, n);
    assert_non_null(bags->groups);
    assert_memory_equal(bags->groups, expected, (size_t)n * sizeof *expected);
}

static void csv__groups_in_order_of_appearance(void **state)
{
    (void)state;
    fin_bags_source source = with_groups(grouped);
    fin_bag_set *set = read_set(&source);
    groups_are(set, 4, (int64_t[]){0, 1, 0, 2});
    assert_int_equal(fin_bag_set_bags(set)->d, 1); /* not a feature */
    assert_string_equal(fin_bag_set_bag(set), "slide");
    assert_string_equal(fin_bag_set_group(set), "patient");
    assert_int_equal(fin_bag_set_notes(set), 0);
    fin_bag_set_destroy(set);
    /* the same with quotes in the file, and numbers over the whole file for a share */
    source = with_groups("slide,label,patient,x\n\"a\",0,Q,1\nb,1,\"P\",3\nc,0,Q,4\nd,1,\"7\",5\n");
    set = read_set(&source);
    groups_are(set, 4, (int64_t[]){0, 1, 0, 2});
    fin_bag_set_destroy(set);
    source.rank = 1;
    source.ranks = 2;
    set = read_set(&source);
    groups_are(set, 2, (int64_t[]){0, 2});
    fin_bag_set_destroy(set);
    /* without --group there are none, and the column of numbers is a feature as before */
    source = with_groups("slide,label,patient,x\na,0,1,1\nb,1,2,3\n");
    source.group = NULL;
    set = read_set(&source);
    assert_null(fin_bag_set_bags(set)->groups);
    assert_null(fin_bag_set_group(set));
    assert_int_equal(fin_bag_set_bags(set)->d, 2);
    fin_bag_set_destroy(set);
}

static void csv__groups_refused(void **state)
{
    (void)state;
    fin_bags_source source = with_groups("slide,label,patient,x\na,0,Q,1\nb,1,P,3\na,0,R,2\n");
    read_refuses(&source, FIN_ERR_FORMAT, "line 4, column 'patient': 'R' differs from the group",
                 "bag, 'a', in line 2");
    source = with_groups("slide,label,patient,x\na,0,Q,1\nb,1,,3\n");
    read_refuses(&source, FIN_ERR_FORMAT, "line 3, column 'patient'", "every bag needs its group");
    source = with_groups(grouped);
    source.group = "patiend";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'patiend'", "did you mean patient?");
    source.group = "slide";
    read_refuses(&source, FIN_ERR_ARGUMENT, "'slide' cannot be both the bag and", "the group");
    source.group = "label";
    read_refuses(&source, FIN_ERR_ARGUMENT, "'label' cannot be both the label and", "the group");
    source.group = "patient";
    source.features = "x,patient";
    read_refuses(&source, FIN_ERR_ARGUMENT, "'patient'",
                 "names the groups and cannot be in features too");
}

/* ---- arrays ----------------------------------------------------------------------------------- */

static const char *write_npz(const char *name, const char *bags, int64_t bag_count,
                             const int64_t *bag, fin_dtype dtype, int64_t groups, const void *group)
{
    const double tokens[] = {1, 2, 3, 4, 5, 6}, y[] = {0, 1, 0};
    fin_npz_writer *npz;
    assert_ok(fin_npz_create(in_folder(name), &npz, &err));
    assert_ok(fin_npz_add(npz, "tokens", FIN_F64, 2, (int64_t[]){6, 1}, tokens, &err));
    assert_ok(fin_npz_add(npz, bags, FIN_I64, 1, &bag_count, bag, &err));
    assert_ok(fin_npz_add(npz, "y", FIN_F64, 1, (int64_t[]){3}, y, &err));
    assert_ok(fin_npz_add(npz, "who", dtype, 1, &groups, group, &err));
    assert_ok(fin_npz_commit(npz, NULL, &err));
    return in_folder(name);
}

static void arrays__groups_by_bag_or_by_row(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1, 4, 6}, bag[] = {5, 9, 5, 2, 9, 9};
    const int64_t by_bag[] = {8, 3, 8}, by_row[] = {8, 3, 3, 3, 8, 8}, mixed[] = {8, 3, 8, 8, 3, 3};
    const double broken[] = {8, 3, 3, 4, 8, 8}, fractions[] = {0.5, 0.25, 0.5},
                 none[] = {1, NAN, 1};
    fin_bags_source source = from(write_npz("a.npz", "offsets", 4, offsets, FIN_I64, 3, by_bag));
    source.group = "who";
    fin_bag_set *set = read_set(&source);
    groups_are(set, 3, (int64_t[]){0, 1, 0});
    assert_null(fin_bag_set_bag(set)); /* offsets have no name */
    assert_string_equal(fin_bag_set_group(set), "who");
    fin_bag_set_destroy(set);
    source.path = write_npz("b.npz", "offsets", 4, offsets, FIN_I64, 6, by_row);
    set = read_set(&source);
    groups_are(set, 3, (int64_t[]){0, 1, 0});
    fin_bag_set_destroy(set);
    source.path = write_npz("c.npz", "bag", 6, bag, FIN_I64, 6, mixed);
    set = read_set(&source);
    groups_are(set, 3, (int64_t[]){0, 1, 0});
    assert_string_equal(fin_bag_set_bag(set), "bag");
    fin_bag_set_destroy(set);
    source.path = write_npz("d.npz", "offsets", 4, offsets, FIN_F64, 3, fractions);
    source.rank = 1, source.ranks = 3;
    set = read_set(&source);
    groups_are(set, 1, (int64_t[]){1});
    fin_bag_set_destroy(set);
    source.rank = source.ranks = 0;
    source.path = write_npz("e.npz", "offsets", 4, offsets, FIN_F64, 6, broken);
    read_refuses(&source, FIN_ERR_FORMAT, "row 3 (from 0) of 'who' has the group 4", "bag '1'");
    source.path = write_npz("f.npz", "offsets", 4, offsets, FIN_F64, 3, none);
    read_refuses(&source, FIN_ERR_FORMAT, "'who' is nan in place 1", "needs its group");
    source.path = write_npz("g.npz", "offsets", 4, offsets, FIN_F64, 2, fractions);
    read_refuses(&source, FIN_ERR_FORMAT, "2 groups for 3 bags of 6 rows", "each");
    source.group = "patient";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no array 'patient'", "who");
}

/* ---- the column of a model -------------------------------------------------------------------- */

static void read__model_bag_is_found_or_refused(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1, 4, 6}, bag[] = {5, 9, 5, 2, 9, 9}, group[] = {0, 0, 0};
    static const char *const classes[] = {"0", "1"};
    fin_bags_source source = {.path = write_text("t.csv", "x,slide,label\n1,b,0\n2,a,1\n3,b,0\n"),
                              .model_bag = "slide",
                              .class_names = classes,
                              .class_count = 2};
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->n, 2);
    fin_bag_set_destroy(set);
    source.path = write_text("u.csv", "x,id,label\n1,b,0\n2,a,1\n3,b,0\n");
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'slide', which named the bags",
                 "there are x, id, label (--bag says another)");
    source.bag = "id";
    set = read_set(&source);
    assert_string_equal(fin_bag_set_bag(set), "id");
    fin_bag_set_destroy(set);
    source.bag = NULL; /* arrays: offsets, the model's array, or the usual ones */
    source.path = write_npz("a.npz", "offsets", 4, offsets, FIN_I64, 3, group);
    set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->n, 3);
    fin_bag_set_destroy(set);
    static const char *const names[] = {"slide", "bag"};
    for (int i = 0; i < 2; i++) {
        source.path = write_npz("b.npz", names[i], 6, bag, FIN_I64, 3, group);
        set = read_set(&source);
        assert_string_equal(fin_bag_set_bag(set), names[i]);
        fin_bag_set_destroy(set);
    }
}

/* ---- folds ------------------------------------------------------------------------------------ */

static void folds__groups_stay_together(void **state)
{
    (void)state;
    int repeats, folds;
    int32_t *fold = NULL;
    fin_bags_source source = with_groups(grouped);
    fin_bag_set *set = read_set(&source);
    const char *path = write_text("f.csv", "bag,r,s\na,0,1\nb,1,0\nc,0,1\nd,1,1\n");
    assert_ok(fin_folds_read(path, set, &repeats, &folds, &fold, &err));
    fin_folds_free(fold);
    write_text("f.csv", "bag,r,s\na,0,1\nb,1,0\nc,0,0\nd,1,1\n");
    assert_int_equal(fin_folds_read(path, set, &repeats, &folds, &fold, &err), FIN_ERR_FORMAT);
    assert_null(fold);
    assert_message(&err, "repeat 2 (column 3)");
    assert_message(&err, "(patient) in several folds: a, c;");
    fin_bag_set_destroy(set);
}

/* ---- columns that leave ----------------------------------------------------------------------- */

static void drop__columns_and_names(void **state)
{
    (void)state;
    fin_bag_set *set = read_text("bag,label,x,y,z\na,0,1,2,3\nb,1,4,5,6\n");
    assert_ok(fin_bag_set_drop(set, (unsigned char[]){0, 0, 0}, &err));
    assert_int_equal(fin_bag_set_bags(set)->d, 3);
    assert_int_equal(fin_bag_set_drop(set, (unsigned char[]){1, 1, 1}, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "all 3 columns");
    assert_ok(fin_bag_set_drop(set, (unsigned char[]){0, 1, 0}, &err));
    assert_int_equal(fin_bag_set_bags(set)->d, 2);
    assert_true(token(set, 0, 0) == 1 && token(set, 0, 1) == 3);
    assert_true(token(set, 1, 0) == 4 && token(set, 1, 1) == 6);
    assert_string_equal(fin_bag_set_feature(set, 1), "z");
    assert_null(fin_bag_set_feature(set, 2));
    fin_bag_set_destroy(set);
}

/* Tokens that were mapped, or are somebody else's, stay as they are. */
static void drop__copies_what_is_not_its_own(void **state)
{
    (void)state;
    const float mapped[] = {1, 2, 3, 4, 5, 6};
    const double y[] = {0, 1};
    const int64_t offsets[] = {0, 1, 2};
    write_npy("tokens.npy", FIN_F32, 2, (int64_t[]){2, 3}, mapped);
    write_npy("offsets.npy", FIN_I64, 1, (int64_t[]){3}, offsets);
    write_npy("y.npy", FIN_F64, 1, (int64_t[]){2}, y);
    fin_bags_source source = from(in_folder("."));
    fin_bag_set *set = read_set(&source);
    assert_ok(fin_bag_set_drop(set, (unsigned char[]){1, 0, 0}, &err));
    assert_true(token(set, 0, 0) == 2 && token(set, 1, 1) == 6);
    assert_int_equal(fin_bag_set_bags(set)->dtype, FIN_F32);
    assert_string_equal(fin_bag_set_feature(set, 0), "1");
    fin_bag_set_destroy(set);
    const double tokens[] = {1, 2, 3, 4};
    const int64_t groups[] = {4, 4};
    const fin_bags bags = {.n = 2,
                           .d = 2,
                           .total = 2,
                           .offsets = offsets,
                           .dtype = FIN_F64,
                           .tokens = tokens,
                           .labels = y,
                           .groups = groups};
    const fin_bags_names names = {.bag = "slide", .group = "patient", .class_count = 2};
    assert_ok(fin_bag_set_make(&set, &bags, &names, &err));
    assert_string_equal(fin_bag_set_bag(set), "slide");
    assert_string_equal(fin_bag_set_group(set), "patient");
    groups_are(set, 2, groups);
    assert_ok(fin_bag_set_drop(set, (unsigned char[]){1, 0}, &err));
    assert_true(token(set, 0, 0) == 2 && token(set, 1, 0) == 4 && tokens[0] == 1);
    fin_bag_set_destroy(set);
    const fin_bags_names wrong = {.group = "a\x01"};
    assert_int_equal(fin_bag_set_make(&set, &bags, &wrong, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "name of the groups has a control character");
}

static fin_status read_and_drop(void *user, fin_error *error)
{
    (void)user;
    fin_bag_set *set;
    int repeats, folds;
    int32_t *fold = NULL;
    fin_bags_source source = from(in_folder("a.npz"));
    source.group = "who";
    fin_status status = fin_bag_set_read(&set, &source, NULL, error);
    fin_bag_set_destroy(set);
    source.path = in_folder("t.csv");
    source.bag = "slide";
    source.group = "patient";
    if (!status)
        status = fin_bag_set_read(&set, &source, NULL, error);
    else
        set = NULL;
    if (!status)
        status = fin_folds_read(in_folder("f.csv"), set, &repeats, &folds, &fold, error);
    if (!status)
        status = fin_bag_set_drop(set, (unsigned char[]){1, 0}, error);
    fin_folds_free(fold);
    fin_bag_set_destroy(set);
    return status;
}

static void groups__every_allocation_may_fail(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1, 4, 6}, group[] = {8, 3, 8};
    write_npz("a.npz", "offsets", 4, offsets, FIN_I64, 3, group);
    write_text("t.csv", "slide,label,patient,x,z\na,0,Q,1,1\nb,1,P,3,2\nc,0,Q,4,3\n");
    write_text("f.csv", "bag,r\na,0\nb,1\nc,0\n");
    fin_threads_set(1);
    fault_every(read_and_drop, NULL);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(csv__groups_in_order_of_appearance, empty_folder),
        cmocka_unit_test_setup(csv__groups_refused, empty_folder),
        cmocka_unit_test_setup(arrays__groups_by_bag_or_by_row, empty_folder),
        cmocka_unit_test_setup(read__model_bag_is_found_or_refused, empty_folder),
        cmocka_unit_test_setup(folds__groups_stay_together, empty_folder),
        cmocka_unit_test_setup(drop__columns_and_names, empty_folder),
        cmocka_unit_test_setup(drop__copies_what_is_not_its_own, empty_folder),
        cmocka_unit_test_setup(groups__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
