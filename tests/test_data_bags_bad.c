/* Bags that are refused: with the file, the line, the column and the bag in the message. */
#include "test_data_bags.h"

static void refuses(const char *text, const char *a, const char *b)
{
    fin_bags_source source = from(write_text("t.csv", text));
    read_refuses(&source, FIN_ERR_FORMAT, "t.csv", a);
    assert_message(&err, b);
}

static void csv__numbers_that_are_none(void **state)
{
    (void)state;
    refuses("bag,label,x,z\na,0,1,2\nb,1,3,4\nb,1,5,red\n", "line 4, column 'z'",
            "'red' is not a number");
    refuses("bag,label,x,z\na,0,1,2\nb,1,,4\n", "line 3, column 'x'", "empty; fill it in");
    refuses("bag,label,x,z\na,0,1,2\nb,1,nan,4\n", "line 3, column 'x' of bag 'b'",
            "nan is not a finite number");
    refuses("bag,label,x,z\na,0,1,-inf\nb,1,2,4\n", "line 2, column 'z' of bag 'a'", "-inf");
    refuses("bag,label,x,z\na,0,1,2\nb,1,1e999,4\n", "line 3, column 'x'", "beyond 1.8e308");
    refuses("bag,label,x,z\na,0,1,2\nb,1,\"3\"x,4\n", "line 3, column 'x'", "not a number");
    refuses("bag,label,x,z\n\"a\nb\",0,1,2\nb,1,0x10,4\n", "line 4, column 'x'", "'0x10'");
}

/* A column of text that is asked for is refused with its first line. */
static void csv__text_that_is_asked_for(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", "bag,label,t,x\na,0,u,1\nb,1,v,2\n"));
    source.features = "t,x";
    read_refuses(&source, FIN_ERR_FORMAT, "line 2, column 't'", "'u' is not a number");
}

static void csv__rows_of_the_wrong_length(void **state)
{
    (void)state;
    refuses("bag,label,x\na,0,1\nb,1\n", "line 3 has 2 cells", "header has 3");
    refuses("bag,label,x\na,0,1,7\nb,1,2\n", "line 2 has 4 cells", "header has 3");
    refuses("bag,label,x\na,0,1\n\nb,1,2\n", "line 3 is blank", "rows follow");
    refuses("bag,label,x\na,0,1\nb,1,\"2\n", "line 3", "never closed");
    refuses("bag,label,x\na,0,1\nb,1,2\nc,0", "line 4 has 2 cells", "cut short");
    refuses("bag,label,x,y,z\na\nb\nc\nd\ne\nf\ng\n", "line 2 has 1 cell", "header has 5");
    refuses("x,label,bag\n1,0,a\n2,1\n", "line 3 has 2 cells", "header has 3");
    refuses("bag,label,x\n", "t.csv", "no rows");
    refuses("", "t.csv", "is empty");
    refuses("bag,label,x,x\na,0,1,2\n", "columns 3 and 4 are both called 'x'", "differ");
    refuses("1,2,3\n4,5,6\n", "line 1", "a header line");
}

static void csv__bags_and_labels(void **state)
{
    (void)state;
    refuses("bag,label,x\na,0,1\nb,1,2\na,1,3\n", "line 4, column 'label': '1' differs",
            "bag, 'a', in line 2");
    refuses("bag,label,x\na,u,1\nb,1,2\na,v,3\n", "line 4, column 'label': 'v' differs",
            "bag, 'a', in line 2");
    refuses("bag,label,x\na,0,1\na,,2\nb,1,2\n", "line 3, column 'label'", "differs");
    refuses("bag,label,x\na,0,1\n,1,2\n", "line 3, column 'bag'", "every row needs");
    refuses("bag,label,x\na,0,1\nb\xff,1,2\n", "line 3, column 'bag'", "not UTF-8");
    refuses("bag,label,x\na,0,1\nb,\"1\"2,2\n", "line 3, column 'label'",
            "after its closing quote");
    refuses("bag,label,x\na,0,1\nb,,2\nc,,3\n", "bag 'b' has no label", "2 of 3 bags");
    refuses("bag,label,x\na,0,1\nb,inf,2\n", "bag 'b'", "infinite");
    refuses("bag,label,x\na,yes,1\nb,yes,2\n", "all 2 bags are of class 'yes'", "two classes");
    refuses("bag,label,x\na,3,1\nb,3,2\n", "all 2 bags have the label 3", "differ");
    refuses("bag,label,x\na,3,1\nb,NA,2\nc,4,2\n", "bag 'b': the label 'NA'", "leave out");
    fin_bags_source source = from(write_text("t.csv", "bag,label,x\na,yes,1\nb,no,2\n"));
    source.kind = "regression";
    read_refuses(&source, FIN_ERR_FORMAT, "bag 'a': the label 'yes'", "no number");
    source.class_count = 0;
    read_refuses(&source, FIN_ERR_FORMAT, "bag 'a': the label 'yes'", "model predicts numbers");
}

static void csv__too_many_classes(void **state)
{
    (void)state;
    enum { LABELS = 1001 };
    for (int numbers = 0; numbers < 2; numbers++) {
        char *text = malloc(LABELS * 32);
        size_t used = (size_t)sprintf(text, "bag,label,x\n");
        for (int i = 0; i < LABELS; i++)
            used += (size_t)sprintf(text + used, "%d,%s%d,0\n", i, numbers ? "" : "l", i);
        fin_bags_source source = from(write_file("t.csv", text, used));
        free(text);
        source.kind = "classes";
        read_refuses(&source, FIN_ERR_FORMAT, "more than 1000 different labels", "right column");
    }
}

/* Ten million columns are refused before anything is made of them; so are rows that are far too
 * short for a wide header, before memory is taken for them. */
static void csv__too_wide(void **state)
{
    (void)state;
    enum { WIDE = 10000000, SHORT = 100000 };
    size_t size = 2 * WIDE + 16;
    char *text = malloc(size);
    memset(text, 'x', size);
    for (size_t i = 1; i < size; i += 2)
        text[i] = ',';
    memcpy(text + size - 5, "y\n1,2", 5);
    fin_bags_source source = from(write_file("t.csv", text, size));
    read_refuses(&source, FIN_ERR_FORMAT, "t.csv", "more than 1048576 columns");
    size_t used = (size_t)sprintf(text, "bag,label");
    for (int j = 0; j < SHORT; j++)
        used += (size_t)sprintf(text + used, ",x%d", j);
    for (int i = 0; i < SHORT; i++)
        used += (size_t)sprintf(text + used, "\n1,2,3");
    source = from(write_file("t.csv", text, used));
    read_refuses(&source, FIN_ERR_FORMAT, "line 2 has 3 cells", "header has 100002");
    free(text);
}

static void source__what_is_asked_for(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", "bag,label,f1,f2\na,0,1,2\nb,1,3,4\n"));
    static const struct {
        const char *features, *part;
    } lists[] = {{"f3", "did you mean"},
                 {"q", "there are 4: bag, label, f1, f2"},
                 {"f2:f1", "left to right"},
                 {"f1,,f2", "a name is missing"},
                 {"f1,f1", "twice"},
                 {"label", "is the label and cannot be in features too"},
                 {"g*", "no column 'g*'"},
                 {"9", "no column '9'"},
                 {"f1:9", "no column '9'"},
                 {"bag:label", "no column is left"},
                 {"f1,bag", "names the bags and cannot be"},
                 {"0", "no column '0'"},
                 {"", "a name is missing"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        source.features = lists[i].features;
        read_refuses(&source, FIN_ERR_ARGUMENT, "", lists[i].part);
    }
    source.features = NULL;
    source.bag = "bg";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'bg'", "did you mean bag?");
    source.bag = "label";
    read_refuses(&source, FIN_ERR_ARGUMENT, "label", "both the bag and the label");
    source.bag = NULL;
    source.label = "lable";
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'lable'", "did you mean label?");
    source.label = NULL;
    source.kind = "ordinal";
    read_refuses(&source, FIN_ERR_ARGUMENT, "'ordinal'", "regression and classes");
    source.kind = NULL;
    source.ranks = 2;
    source.rank = 2;
    read_refuses(&source, FIN_ERR_ARGUMENT, "process 2 of 2", "from 0");
    source = from(in_folder("nothing.csv"));
    read_refuses(&source, FIN_ERR_IO, "nothing.csv", "No such file");
    source = from("");
    read_refuses(&source, FIN_ERR_ARGUMENT, "name of the file", "empty");
    source = from(write_text("t.csv", "bag,x\na,1\nb,2\n"));
    read_refuses(&source, FIN_ERR_ARGUMENT, "t.csv has no column 'label' or 'y'",
                 "say which column");
    source = from(write_text("t.csv", "bag,label,t\na,1,u\nb,2,v\n"));
    read_refuses(&source, FIN_ERR_ARGUMENT, "t.csv", "no column is left");
}

static void source__a_model_for_other_features(void **state)
{
    (void)state;
    const char *const names[] = {"x1", "x9"};
    fin_bags_source source = from(write_text("t.csv", "bag,x1,x2\na,1,2\nb,3,4\n"));
    source.feature_names = names;
    source.feature_count = 2;
    source.class_count = 0;
    read_refuses(&source, FIN_ERR_ARGUMENT, "no column 'x9'", "1 of its 2 are missing");
    const char *const others[] = {"size", "colour", "X2"};
    source.feature_names = others;
    source.feature_count = 3;
    read_refuses(&source, FIN_ERR_ARGUMENT, "no columns 'size', 'colour', 'X2'",
                 "is its 'x2' the model's 'X2'?");
}

/* The message is about the first bad row, whatever the threads. */
static void csv__same_message_for_any_number_of_threads(void **state)
{
    (void)state;
    enum { ROWS = 20000 };
    char *text = malloc(ROWS * 16);
    size_t used = (size_t)sprintf(text, "bag,label,x\n");
    for (int i = 0; i < ROWS; i++)
        used += (size_t)sprintf(text + used, i > 9000 && i % 7 == 0 ? "%d,%d,bad\n" : "%d,%d,1\n",
                                i, i & 1);
    fin_bags_source source = from(write_file("t.csv", text, used));
    free(text);
    for (int threads = 1; threads <= 8; threads *= 2) {
        fin_threads_set(threads);
        read_refuses(&source, FIN_ERR_FORMAT, "line 9004, column 'x'", "'bad'");
    }
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(csv__numbers_that_are_none, empty_folder),
        cmocka_unit_test_setup(csv__text_that_is_asked_for, empty_folder),
        cmocka_unit_test_setup(csv__rows_of_the_wrong_length, empty_folder),
        cmocka_unit_test_setup(csv__bags_and_labels, empty_folder),
        cmocka_unit_test_setup(csv__too_many_classes, empty_folder),
        cmocka_unit_test_setup(csv__too_wide, empty_folder),
        cmocka_unit_test_setup(source__what_is_asked_for, empty_folder),
        cmocka_unit_test_setup(source__a_model_for_other_features, empty_folder),
        cmocka_unit_test_setup(csv__same_message_for_any_number_of_threads, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
