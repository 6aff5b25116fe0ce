/* Folds from files. */
#include "test_data_bags.h"

static const char bags_text[] = "bag,label,x\na,0,1\nb,1,2\n\"c,d\",0,3\n4,1,4\n";

static void folds__read_and_counted_from_zero(void **state)
{
    (void)state;
    fin_bag_set *set = read_text(bags_text);
    int repeats = 0, folds = 0;
    int32_t *fold = NULL;
    const char *path = write_text("f.csv", "bag_id,r0,r1\n4,1,7\nb,3,3\nother,9,1\na,7,7\n"
                                           "\"c,d\",7,1\n");
    assert_ok(fin_folds_read(path, set, &repeats, &folds, &fold, &err));
    assert_int_equal(repeats, 2);
    assert_int_equal(folds, 3);
    const int32_t expected[] = {2, 1, 2, 0, 2, 1, 0, 2}; /* 1, 3, 7; 9 is not of the set */
    assert_memory_equal(fold, expected, sizeof expected);
    has_note(set, "folds for 1 more bags");
    fin_folds_free(fold);
    fin_folds_free(NULL);
    fin_bag_set_destroy(set);
}

static void folds__refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"bag_id,r0\na,0\nb,1\n4,0\n", "no folds for bag 'c,d' (1 of 4 bags"},
        {"bag_id,r0\na,0\nb,1\n4,0\n\"c,d\",1\nb,0\n", "line 6: bag 'b' is there twice"},
        {"bag_id,r0\na,0\nb,1.5\n4,0\n\"c,d\",1\n", "line 3, column 2: '1.5'"},
        {"bag_id,r0\na,0\nb,\n4,0\n\"c,d\",1\n", "line 3, column 2: ''"},
        {"bag_id,r0\na,0\nb,x\n4,0\n\"c,d\",1\n", "'x' is not the number of a fold"},
        {"bag_id,r0\na,0\nb,1e10\n4,0\n\"c,d\",1\n", "'1e10' is not the number"},
        {"bag_id,r0\na,0\nb,0\n4,0\n\"c,d\",0\n", "one fold"},
        {"bag_id,r0,r1\na,0,0\nb,1,1\n4,2,0\n\"c,d\",0,1\n", "repeat 2 (column 3) has no bag"},
        {"bag_id,r0\na,0\nb,1,2\n4,0\n\"c,d\",1\n", "line 3 has 3 cells"},
        {"bag_id\na\nb\n4\nc\n", "one column"},
        {"bag_id,r0\n", "no rows"},
        {"bag_id,r0\na,0\n", "bag 'b' (3 of 4 bags"},
        {"bag_id,r\nx,0\n", "bag 'a' (4 of 4 bags"},
        {"bag_id,a,b,c\na,\n", "too short"}};
    fin_bag_set *set = read_text(bags_text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int repeats, folds;
        int32_t *fold = (void *)&err;
        const char *path = write_text("f.csv", cases[i].text);
        assert_int_equal(fin_folds_read(path, set, &repeats, &folds, &fold, &err), FIN_ERR_FORMAT);
        assert_null(fold);
        assert_message(&err, "f.csv");
        assert_message(&err, cases[i].part);
    }
    fin_bag_set_destroy(set);
}

static fin_status read_both(void *user, fin_error *error)
{
    (void)user;
    fin_bag_set *set;
    int repeats, folds;
    int32_t *fold = NULL;
    fin_bags_source source = from(in_folder("t.csv"));
    fin_status status = fin_bag_set_read(&set, &source, NULL, error);
    if (!status)
        status = fin_folds_read(in_folder("f.csv"), set, &repeats, &folds, &fold, error);
    fin_folds_free(fold);
    fin_bag_set_destroy(set);
    return status;
}

static void folds__every_allocation_may_fail(void **state)
{
    (void)state;
    write_text("t.csv", bags_text);
    write_text("f.csv", "bag_id,r0\na,0\nb,1\n4,0\n\"c,d\",1\n");
    fin_threads_set(1);
    fault_every(read_both, NULL);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(folds__read_and_counted_from_zero, empty_folder),
        cmocka_unit_test_setup(folds__refused, empty_folder),
        cmocka_unit_test_setup(folds__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
