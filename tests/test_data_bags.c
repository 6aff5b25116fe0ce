/* Bags from long CSV files: what is read, and where it lies afterwards. */
#include "test_data_bags.h"

#include <math.h>

static void csv__bags_labels_and_tokens(void **state)
{
    (void)state;
    fin_bag_set *set = read_text("bag,label,x,y\n"
                                 "a,0,1,2\na,0,3,4\nb,1,5,6\nc,0,7,8\nc,0,9,10\nc,0,11,12\n");
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, 3);
    assert_int_equal(bags->d, 2);
    assert_int_equal(bags->first, 0);
    assert_int_equal(bags->total, 3);
    assert_int_equal(bags->dtype, FIN_F64);
    const int64_t offsets[] = {0, 2, 3, 6};
    assert_memory_equal(bags->offsets, offsets, sizeof offsets);
    for (int i = 0; i < 12; i++)
        assert_true(token(set, i / 2, i % 2) == i + 1);
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_true(bags->labels[0] == 0 && bags->labels[1] == 1 && bags->labels[2] == 0);
    assert_string_equal(fin_bag_set_class(set, 0), "0");
    assert_string_equal(fin_bag_set_class(set, 1), "1");
    assert_null(fin_bag_set_class(set, 2));
    assert_string_equal(fin_bag_set_feature(set, 1), "y");
    assert_null(fin_bag_set_feature(set, 2));
    assert_string_equal(fin_bag_set_name(set, 2), "c");
    assert_null(fin_bag_set_name(set, -1));
    assert_string_equal(fin_bag_set_label(set), "label");
    assert_int_equal(fin_bag_set_row(set, 0), 1);
    assert_int_equal(fin_bag_set_row(set, 5), 6);
    assert_int_equal(fin_bag_set_row(set, 6), 0);
    assert_int_equal(fin_bag_set_notes(set), 0);
    assert_null(fin_bag_set_note(set, 0));
    fin_bag_set_destroy(set);
    fin_bag_set_destroy(NULL);
}

/* Bags keep the order of their first rows, tokens that of the file within a bag. */
static void csv__rows_of_a_bag_need_not_be_neighbours(void **state)
{
    (void)state;
    fin_bag_set *set = read_text("id,label,x\nb,p,1\na,q,2\nb,p,3\nc,q,4\na,q,5\nb,p,6\n");
    const double tokens[] = {1, 3, 6, 2, 5, 4};
    const int64_t rows[] = {1, 3, 6, 2, 5, 4};
    assert_string_equal(fin_bag_set_name(set, 0), "b");
    assert_string_equal(fin_bag_set_name(set, 1), "a");
    for (int t = 0; t < 6; t++) {
        assert_true(token(set, t, 0) == tokens[t]);
        assert_int_equal(fin_bag_set_row(set, t), rows[t]);
    }
    assert_string_equal(fin_bag_set_class(set, 1), "q");
    assert_true(fin_bag_set_bags(set)->labels[0] == 0 && fin_bag_set_bags(set)->labels[1] == 1);
    fin_bag_set_destroy(set);
}

/* Quotes, spaces, CRLF, a byte order mark; bag and label at the right end. */
static void csv__all_the_rules_of_cells(void **state)
{
    (void)state;
    fin_bags_source source =
        from(write_text("t.csv", "\xef\xbb\xbf\"x, 1\" , \"the bag\",y\r\n"
                                 " 1.5 ,\"a,\"\"b\"\"\",2\r\n\"2\",\"a,\"\"b\"\"\",2.0\r\n"
                                 "3,\"line\nend\",\" 7 \"\r\n4, plain ,7\r\n\r\n"));
    source.bag = "the bag";
    fin_bag_set *set = read_set(&source);
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, 3);
    assert_string_equal(fin_bag_set_name(set, 0), "a,\"b\"");
    assert_string_equal(fin_bag_set_name(set, 1), "line\nend");
    assert_string_equal(fin_bag_set_name(set, 2), "plain");
    assert_string_equal(fin_bag_set_feature(set, 0), "x, 1");
    assert_string_equal(fin_bag_set_label(set), "y");
    assert_true(token(set, 0, 0) == 1.5 && token(set, 1, 0) == 2 && token(set, 3, 0) == 4);
    fin_bag_set_destroy(set);
}

static void csv__bag_and_label_columns_found(void **state)
{
    (void)state;
    static const char *const heads[] = {"x,bag,label", "x,bag_id,y", "x,bag,y", "x,bag_id,label"};
    for (int i = 0; i < 4; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s\n1,u,5\n2,v,6\n3,v,6\n", heads[i]);
        fin_bag_set *set = read_text(text);
        assert_int_equal(fin_bag_set_bags(set)->n, 2);
        assert_int_equal(fin_bag_set_bags(set)->d, 1);
        assert_true(token(set, 2, 0) == 3);
        fin_bag_set_destroy(set);
    }
    /* neither: the first column is the bag */
    fin_bag_set *set = read_text("molecule,y,x\nm,1,2\nm,1,3\nk,0,4\n");
    assert_string_equal(fin_bag_set_name(set, 1), "k");
    fin_bag_set_destroy(set);
}

/* The features of `list` from columns bag, label, f1, f2, g1, t (text), "1" are `expected`. */
static void chooses(const char *list, const char *expected)
{
    fin_bags_source source = from(write_text("t.csv", "bag,label,f1,f2,g1,t,7\na,0,1,2,3,u,4\n"
                                                      "b,1,5,6,7,v,8\n"));
    source.features = list;
    fin_bag_set *set = read_set(&source);
    char all[64] = "";
    for (int64_t j = 0; fin_bag_set_feature(set, j); j++) {
        strcat(all, fin_bag_set_feature(set, j));
        strcat(all, " ");
    }
    assert_string_equal(all, expected);
    if (list && strcmp(list, "g1,f1") == 0)
        assert_true(token(set, 0, 0) == 3 && token(set, 0, 1) == 1);
    fin_bag_set_destroy(set);
}

static void csv__lists_of_features(void **state)
{
    (void)state;
    chooses(NULL, "f1 f2 g1 7 ");
    chooses("f1:g1", "f1 f2 g1 ");
    chooses("g1,f1", "g1 f1 ");
    chooses(" f* , g1", "f1 f2 g1 ");
    chooses("*", "f1 f2 g1 7 ");
    chooses("3:4", "f1 f2 ");
    chooses("7", "7 "); /* a name goes before a number */
    chooses(":", "f1 f2 g1 7 ");
    chooses("5", "g1 ");
    chooses("[fg]1", "f1 g1 ");
}

static void csv__text_columns_left_out_with_a_note(void **state)
{
    (void)state;
    fin_bag_set *set = read_text("bag,label,x,colour\na,0,1,red\nb,1,2,blue\n");
    assert_int_equal(fin_bag_set_bags(set)->d, 1);
    has_note(set, "column 'colour' is text and is left out");
    fin_bag_set_destroy(set);
    set = read_text("bag,label,s,x,colour\na,0,k,1,red\nb,1,k,2,blue\n");
    has_note(set, "2 columns are text and are left out, 's' the first");
    fin_bag_set_destroy(set);
}

/* Labels: what is a class and what a number. */
static int64_t classes_of(const char *kind, const char *const *labels, int count)
{
    char text[4096] = "bag,label,x\n";
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "b%d,%s,%d\n", i, labels[i], i);
    fin_bags_source source = from(write_text("t.csv", text));
    source.kind = kind;
    fin_bag_set *set = read_set(&source);
    int64_t classes = fin_bag_set_classes(set);
    fin_bag_set_destroy(set);
    return classes;
}

static void labels__classes_or_numbers(void **state)
{
    (void)state;
    const char *two[] = {"0", "1"}, *halves[] = {"0.5", "1.5", "2.5", "0.5"};
    const char *three[] = {"1", "2", "3", "1", "2", "3", "1", "2", "3"};
    const char *four[] = {"1", "2", "3", "1", "2", "3", "1", "2", "3", "1.0"};
    const char *words[] = {"b", "a", "c"};
    assert_int_equal(classes_of(NULL, two, 2), 2);
    assert_int_equal(classes_of("regression", two, 2), 0);
    assert_int_equal(classes_of(NULL, halves, 4), 0);
    assert_int_equal(classes_of("classes", halves, 4), 3);
    assert_int_equal(classes_of(NULL, three, 9), 0); /* not fewer than a third */
    assert_int_equal(classes_of(NULL, four, 10), 3); /* 1.0 is 1 */
    assert_int_equal(classes_of("classes", three, 9), 3);
    assert_int_equal(classes_of(NULL, words, 3), 3);
    const char *mixed[] = {"1", "many", "2", "1"};
    assert_int_equal(classes_of("classes", mixed, 4), 3);
}

/* 21 different whole numbers are numbers, 20 are classes. */
static void labels__at_most_twenty_classes_by_themselves(void **state)
{
    (void)state;
    const char *labels[80];
    char text[80][4];
    for (int most = 20; most <= 21; most++) {
        for (int i = 0; i < 80; i++) {
            sprintf(text[i], "%d", i % most);
            labels[i] = text[i];
        }
        assert_int_equal(classes_of("auto", labels, 80), most == 20 ? 20 : 0);
    }
}

static void labels__classes_in_order(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", "bag,label,x\na,10,1\nb,-2,2\nc,0.25,3\n"));
    source.kind = "classes";
    fin_bag_set *set = read_set(&source);
    assert_string_equal(fin_bag_set_class(set, 0), "-2");
    assert_string_equal(fin_bag_set_class(set, 1), "0.25");
    assert_string_equal(fin_bag_set_class(set, 2), "10");
    assert_true(fin_bag_set_bags(set)->labels[0] == 2 && fin_bag_set_bags(set)->labels[1] == 0);
    fin_bag_set_destroy(set);
    source = from(write_text("t.csv", "bag,label,x\na,b,1\nb,a,2\nc,ab,3\n"));
    set = read_set(&source);
    assert_string_equal(fin_bag_set_class(set, 0), "a");
    assert_string_equal(fin_bag_set_class(set, 1), "ab");
    assert_true(fin_bag_set_bags(set)->labels[0] == 2 && fin_bag_set_bags(set)->labels[2] == 1);
    fin_bag_set_destroy(set);
}

/* ---- prediction ------------------------------------------------------------------------------- */

static void predict__by_the_names_of_the_model(void **state)
{
    (void)state;
    const char *const features[] = {"x2", "x1"}, *const classes[] = {"no", "1"};
    fin_bags_source source =
        from(write_text("t.csv", "bag,x1,extra,x2,label\na,1,foo,2,no\nb,3,5,4,\nc,5,5,6,1.0\n"
                                 "d,7,5,8,nan\ne,9,5,10,maybe\n"));
    source.feature_names = features;
    source.feature_count = 2;
    source.class_names = classes;
    source.class_count = 2;
    fin_bag_set *set = read_set(&source);
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_true(token(set, 0, 0) == 2 && token(set, 0, 1) == 1 && token(set, 4, 0) == 10);
    assert_string_equal(fin_bag_set_feature(set, 0), "x2");
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_true(bags->labels[0] == 0 && isnan(bags->labels[1]) && bags->labels[2] == 1);
    assert_true(isnan(bags->labels[3]) && isnan(bags->labels[4]));
    has_note(set, "bag 'e'");
    fin_bag_set_destroy(set);
}

static void predict__needs_no_labels(void **state)
{
    (void)state;
    const char *const features[] = {"x"}, *const classes[] = {"no", "yes"};
    fin_bags_source source = from(write_text("t.csv", "bag,x\na,1\nb,2\n"));
    source.feature_names = features;
    source.feature_count = 1;
    source.class_names = classes;
    source.class_count = 2;
    source.label = "outcome"; /* as the model remembers it */
    fin_bag_set *set = read_set(&source);
    assert_null(fin_bag_set_bags(set)->labels);
    assert_null(fin_bag_set_label(set));
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_string_equal(fin_bag_set_class(set, 1), "yes");
    fin_bag_set_destroy(set);
    /* a column of nothing is as good as none; numbers are as they stand */
    source.path = write_text("t.csv", "bag,x,outcome\na,1,\nb,2,nan\n");
    set = read_set(&source);
    assert_null(fin_bag_set_bags(set)->labels);
    fin_bag_set_destroy(set);
    source.path = write_text("t.csv", "bag,x,outcome\na,1,2.5\nb,2,\n");
    source.class_count = 0;
    set = read_set(&source);
    assert_true(fin_bag_set_bags(set)->labels[0] == 2.5);
    assert_true(isnan(fin_bag_set_bags(set)->labels[1]));
    assert_int_equal(fin_bag_set_classes(set), 0);
    fin_bag_set_destroy(set);
}

/* ---- sizes ------------------------------------------------------------------------------------ */

/* A table with rows in a wild order: parts of it as several processes read them, by one or several
 * threads, put together are the whole, and all know the same classes. */
static void shares__put_together_are_the_whole(void **state)
{
    (void)state;
    enum { ROWS = 3000, BAGS = 300, D = 5 };
    char *text = malloc(ROWS * 200);
    size_t used = (size_t)sprintf(text, "bag,y,a,b,c,d,e\n");
    uint64_t bits = 12345;
    for (int i = 0; i < ROWS; i++) {
        int bag = (int)(next_bits(&bits) % BAGS);
        used += (size_t)sprintf(text + used, "n%d,%d", bag, bag % 3);
        for (int j = 0; j < D; j++)
            used += (size_t)sprintf(text + used, ",%.*g", 1 + (int)(next_bits(&bits) % 17),
                                    (double)(int64_t)next_bits(&bits) * 1e-19);
        text[used++] = '\n';
    }
    fin_bags_source source = from(write_file("t.csv", text, used));
    free(text);
    fin_bag_set *whole = read_set(&source);
    const fin_bags *all = fin_bag_set_bags(whole);
    for (int ranks = 2; ranks <= 5; ranks++) {
        int64_t next = 0;
        for (int rank = 0; rank < ranks; rank++) {
            source.rank = rank;
            source.ranks = ranks;
            fin_threads_set(rank + 1);
            fin_bag_set *part = read_set(&source);
            const fin_bags *bags = fin_bag_set_bags(part);
            assert_int_equal(bags->first, next);
            assert_int_equal(bags->total, all->n);
            assert_int_equal(fin_bag_set_classes(part), 3);
            int64_t skipped = all->offsets[next], tokens = bags->offsets[bags->n];
            assert_memory_equal(bags->tokens, (const double *)all->tokens + skipped * D,
                                (size_t)(tokens * D) * sizeof(double));
            assert_memory_equal(bags->labels, all->labels + next, (size_t)bags->n * sizeof(double));
            for (int64_t i = 0; i < bags->n; i++)
                assert_string_equal(fin_bag_set_name(part, i), fin_bag_set_name(whole, next + i));
            for (int64_t t = 0; t < tokens; t++)
                assert_int_equal(fin_bag_set_row(part, t), fin_bag_set_row(whole, skipped + t));
            next += bags->n;
            fin_bag_set_destroy(part);
        }
        assert_int_equal(next, all->n);
    }
    fin_threads_set(0);
    fin_bag_set_destroy(whole);
}

/* As many bags as rows, all found by name; more columns than any text editor likes. */
static void csv__many_bags_and_many_columns(void **state)
{
    (void)state;
    enum { MANY = 200000, WIDE = 100000 };
    char *text = malloc(MANY * 32);
    size_t used = (size_t)sprintf(text, "bag,label,x\n");
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < MANY / 2; i++)
            used += (size_t)sprintf(text + used, "%d,%d,%d\n", i, i & 1, pass);
    fin_bags_source source = from(write_file("t.csv", text, used));
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->n, MANY / 2);
    assert_int_equal(fin_bag_set_row(set, 3), MANY / 2 + 2);
    assert_string_equal(fin_bag_set_name(set, MANY / 2 - 1), "99999");
    fin_bag_set_destroy(set);
    used = (size_t)sprintf(text, "bag,label");
    for (int j = 0; j < WIDE; j++)
        used += (size_t)sprintf(text + used, ",x%d", j);
    for (int i = 0; i < 2; i++) {
        used += (size_t)sprintf(text + used, "\nb%d,%d", i, i);
        for (int j = 0; j < WIDE; j++)
            used += (size_t)sprintf(text + used, ",%d", j);
    }
    source = from(write_file("t.csv", text, used));
    free(text);
    set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->d, WIDE);
    assert_true(token(set, 1, WIDE - 1) == WIDE - 1);
    fin_bag_set_destroy(set);
}

static int cancel_after; /* reports until the answer is to cancel */
static int report(void *user, const char *what, double done, double total)
{
    (void)user;
    assert_non_null(what);
    assert_true(done >= 0 && done <= total);
    return cancel_after-- == 0;
}

static void csv__can_be_cancelled(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", "bag,label,x\na,0,1\nb,1,2\n"));
    fin_progress progress = {report, NULL};
    for (int i = 0; i < 3; i++) {
        fin_bag_set *set = NULL;
        cancel_after = i;
        fin_status status = fin_bag_set_read(&set, &source, &progress, &err);
        assert_int_equal(status, i < 2 ? FIN_ERR_CANCELLED : FIN_OK);
        fin_bag_set_destroy(set);
    }
}

static fin_status read_and_destroy(void *user, fin_error *error)
{
    fin_bag_set *set;
    fin_status status = fin_bag_set_read(&set, user, NULL, error);
    fin_bag_set_destroy(set);
    return status;
}

static void csv__every_allocation_may_fail(void **state)
{
    (void)state;
    fin_bags_source source = from(
        write_text("t.csv", "bag,label,x,t,z\na,\"q\"\"\",1,u,2\nb,r,3,v,4\na,\"q\"\"\",5,w,6\n"));
    source.features = "x,z";
    fin_threads_set(1);
    assert_true(fault_every(read_and_destroy, &source) > 10);
    source.rank = 1;
    source.ranks = 2;
    fault_every(read_and_destroy, &source);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(csv__bags_labels_and_tokens, empty_folder),
        cmocka_unit_test_setup(csv__rows_of_a_bag_need_not_be_neighbours, empty_folder),
        cmocka_unit_test_setup(csv__all_the_rules_of_cells, empty_folder),
        cmocka_unit_test_setup(csv__bag_and_label_columns_found, empty_folder),
        cmocka_unit_test_setup(csv__lists_of_features, empty_folder),
        cmocka_unit_test_setup(csv__text_columns_left_out_with_a_note, empty_folder),
        cmocka_unit_test_setup(labels__classes_or_numbers, empty_folder),
        cmocka_unit_test_setup(labels__at_most_twenty_classes_by_themselves, empty_folder),
        cmocka_unit_test_setup(labels__classes_in_order, empty_folder),
        cmocka_unit_test_setup(predict__by_the_names_of_the_model, empty_folder),
        cmocka_unit_test_setup(predict__needs_no_labels, empty_folder),
        cmocka_unit_test_setup(shares__put_together_are_the_whole, empty_folder),
        cmocka_unit_test_setup(csv__many_bags_and_many_columns, empty_folder),
        cmocka_unit_test_setup(csv__can_be_cancelled, empty_folder),
        cmocka_unit_test_setup(csv__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
