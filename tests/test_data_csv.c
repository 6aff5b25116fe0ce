/* Tables from CSV: what is read, what is refused and with which words. */
#include "test_data.h"

#include "data/data.h"
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>

static fin_error err;

static fin_table *parse(const char *text)
{
    fin_table *table = NULL;
    /* A copy of the exact size, so that a sanitizer sees a read past the end. */
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    fin_status status = fin_table_parse(copy, size, "t.csv", &table, &err);
    free(copy);
    if (status)
        fail_msg("%s", err.message);
    return table;
}

static void refuses_bytes(const char *text, size_t size, const char *part)
{
    fin_table *table = (void *)&err;
    assert_int_equal(fin_table_parse(text, size, "t.csv", &table, &err), FIN_ERR_FORMAT);
    assert_null(table);
    assert_message(&err, "t.csv");
    assert_message(&err, part);
}

static void refuses(const char *text, const char *part)
{
    refuses_bytes(text, strlen(text), part);
}

static void read_fails(const char *path, const char *part)
{
    fin_table *table = (void *)&err;
    assert_int_equal(fin_table_read(path, &table, &err), FIN_ERR_IO);
    assert_null(table);
    assert_message(&err, path);
    assert_message(&err, part);
}

/* One column of the text equals these numbers, bit by bit but for NaN. */
static void reads(const char *text, const char *name, const double *expected, int64_t rows)
{
    fin_table *table = parse(text);
    assert_int_equal(fin_table_rows(table), rows);
    const double *values = fin_table_values(table, fin_table_column(table, name));
    assert_non_null(values);
    for (int64_t i = 0; i < rows; i++)
        if (memcmp(&values[i], &expected[i], sizeof *values) != 0 &&
            !(isnan(values[i]) && isnan(expected[i])))
            fail_msg("row %d: %.17g, expected %.17g", (int)i, values[i], expected[i]);
    fin_table_destroy(table);
}

/* ---- what is read --------------------------------------------------------------------------- */

static void table__names_and_values(void **state)
{
    (void)state;
    fin_table *table = parse("x,label,a b\n1,0,2.5\n-3,1,1e3\n");
    assert_int_equal(fin_table_rows(table), 2);
    assert_int_equal(fin_table_columns(table), 3);
    assert_string_equal(fin_table_name(table, 0), "x");
    assert_string_equal(fin_table_name(table, 2), "a b");
    assert_null(fin_table_name(table, 3));
    assert_null(fin_table_name(table, -1));
    assert_null(fin_table_values(table, 3));
    assert_null(fin_table_values(table, -1));
    assert_int_equal(fin_table_column(table, "label"), 1);
    assert_int_equal(fin_table_column(table, "a b"), 2);
    assert_int_equal(fin_table_column(table, "none"), -1);
    assert_int_equal(fin_table_column(table, ""), -1);
    assert_true(fin_table_values(table, 0)[1] == -3);
    assert_true(fin_table_values(table, 2)[1] == 1000);
    fin_table_destroy(table);
    fin_table_destroy(NULL);
}

static void table__dialects_read_the_same(void **state)
{
    (void)state;
    const double b[] = {2, 4};
    const char *texts[] = {
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r\n1,2\r\n3,4\r",
        ("\xef\xbb\xbf"
         "a,b\n1,2\n3,4\n\n \r\n\t\n"),
        " a , b \n 1\t,\t2 \n3 , 4 \n",
        "\"a\",\"b\"\n\"1\",\"2\"\n3,\" 4 \"\n",
        "\"a\" , \"b\"\r\n\"1\" , \"2\" \r\n3,4\r\n",
        "a,b\n+1,+2.\n03,4e0\n",
        "a,b\n1E0,.2e1\n3,0.04E+2\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        reads(texts[i], "b", b, 2);
}

static void table__quoted_names(void **state)
{
    (void)state;
    fin_table *table = parse("\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\" c \",gr\xc3\xb6\xc3\x9f"
                             "e\n1,2,3,4,5\n");
    assert_string_equal(fin_table_name(table, 0), "a,b");
    assert_string_equal(fin_table_name(table, 1), "say \"hi\"");
    assert_string_equal(fin_table_name(table, 2), "two\nlines");
    assert_string_equal(fin_table_name(table, 3), " c ");
    assert_string_equal(fin_table_name(table, 4), "gr\xc3\xb6\xc3\x9f"
                                                  "e");
    assert_int_equal(fin_table_column(table, "say \"hi\""), 1);
    fin_table_destroy(table);
    refuses("\"two\nlines\",b\n1,2\n1,x\n", "line 4, column 'b'");
}

static void table__special_numbers(void **state)
{
    (void)state;
    const double x[] = {NAN, INFINITY, -INFINITY, INFINITY, NAN, NAN, -0.0, 0};
    reads("x\nnan\ninf\n-Inf\n+INFINITY\nNaN\n-nan\n-0\n0e999\n", "x", x, 8);
}

static void table__numbers_are_correctly_rounded(void **state)
{
    (void)state;
    /* Halfway cases, limits of the fast paths, limits of the format. */
    const char *texts[] = {"9007199254740993",
                           "9007199254740993.00000000000000000001",
                           "9007199254740992e22",
                           "9007199254740993e22",
                           "1e22",
                           "1e23",
                           "1e-22",
                           "1e-23",
                           "18446744073709551615",
                           "18446744073709551616",
                           "9999999999999999999",
                           "9999999999999999999e27",
                           "9999999999999999999e-27",
                           "9999999999999999999e28",
                           "1e27",
                           "1e-27",
                           "4.9406564584124654e-324",
                           "2.4703282292062327e-324",
                           "1e-400",
                           "2.2250738585072011e-308",
                           "1.7976931348623157e308",
                           "0.1",
                           "123456.789",
                           "0.000000000000000000000000000000000000000000000001234567890123456789",
                           "6.02214076e23",
                           "9007199254740991.5",
                           "4503599627370496.5",
                           "4503599627370497.5",
                           "0.50000000000000011102230246251565404"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value, expected = strtod(texts[i], NULL);
        const char *end = texts[i] + strlen(texts[i]);
        assert_ptr_equal(fini_decimal(texts[i], end, &value), end);
        if (memcmp(&value, &expected, sizeof value) != 0)
            fail_msg("%s: %.17g, expected %.17g", texts[i], value, expected);
    }
}

static void decimal__random_text_agrees_with_strtod(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int i = 0; i < 300000; i++) {
        char text[80];
        int length = 0, digits = 1 + (int)(next_bits(&seed) % 22);
        int point = (int)(next_bits(&seed) % (unsigned)(digits + 1));
        if (next_bits(&seed) & 1)
            text[length++] = '-';
        for (int k = 0; k < digits; k++) {
            if (k == point)
                text[length++] = '.';
            text[length++] = (char)('0' + next_bits(&seed) % 10);
        }
        if (next_bits(&seed) % 3)
            length += sprintf(text + length, "e%d", (int)(next_bits(&seed) % 80) - 40);
        text[length] = '\0';
        double value, expected = strtod(text, NULL);
        if (fini_decimal(text, text + length, &value) != text + length ||
            memcmp(&value, &expected, sizeof value) != 0)
            fail_msg("%s: %.17g, expected %.17g", text, value, expected);
    }
}

static void table__widest_is_read_and_wider_refused_at_once(void **state)
{
    (void)state;
    enum { MOST = FIN_TABLE_COLUMNS_MAX, WILD = 10000000 };
    char *text = malloc(2 * WILD + 100), *to = text;
    for (int j = 0; j < MOST; j++) /* descending, so that the sort has work to do */
        to += sprintf(to, "c%d,", MOST - j);
    to[-1] = '\n';
    for (int j = 0; j < MOST; j++)
        to += sprintf(to, "%d,", j);
    to[-1] = '\0';
    fin_table *table = parse(text);
    assert_int_equal(fin_table_columns(table), MOST);
    assert_int_equal(fin_table_column(table, "c1"), MOST - 1);
    assert_int_equal(fin_table_column(table, "c777"), MOST - 777);
    assert_true(fin_table_values(table, 31415)[0] == 31415);
    fin_table_destroy(table);
    memset(text, 'x', 2 * WILD);
    for (int j = 0; j < WILD; j++)
        text[2 * j + 1] = ',';
    fault_begin(-1, 0);
    refuses_bytes(text, 2 * WILD, "more than 100000 columns");
    fault_end();
    assert_int_equal(atomic_load(&fault_count), 0); /* found without taking memory */
    free(text);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void table__rejects_files(void **state)
{
    (void)state;
    fin_table *table;
    read_fails(in_folder("none.csv"), strerror(ENOENT));
    read_fails(folder, "is a folder");
    const char *path = write_file("empty.csv", "", 0);
    assert_int_equal(fin_table_read(path, &table, &err), FIN_ERR_FORMAT);
    assert_message(&err, "empty.csv is empty");
    assert_int_equal(fin_table_read("/dev/zero", &table, &err), FIN_ERR_FORMAT);
    assert_message(&err, "binary");
}

static void table__rejects_headers(void **state)
{
    (void)state;
    refuses("", "is empty");
    refuses("\n \r\n", "is empty");
    refuses("\xef\xbb\xbf", "is empty");
    refuses("a,b", "has a header but no rows");
    refuses("a,b\n\n\n", "has a header but no rows");
    refuses("1,2\n3,4\n", "all cells are numbers; a header line");
    refuses("1\n2\n", "a header line");
    refuses("a,b,a\n1,2,3\n", "columns 1 and 3 are both called 'a'");
    refuses("a,,c\n1,2,3\n", "line 1, column 2: the name '' is empty");
    refuses("a,b,\n1,2,3\n", "column 3");
    refuses("a,\"b\n1,2\n3,4\n", "never closed");
    refuses("a,\"b\"c\n1,2\n", "after its closing quote");
    refuses("a,b\r1,2\r", "control character");
    refuses("gr\xfc"
            "n,b\n1,2\n",
            "not UTF-8");
    refuses_bytes("a,b\n1,\0"
                  "2\n",
                  9, "binary");
    refuses_bytes("\xff\xfe"
                  "a\0,\0b\0\n\0",
                  10, "UTF-16");
    refuses_bytes("PK\3\4zip,b\n1,2\n", 14, "control character");
}

static void table__rejects_rows(void **state)
{
    (void)state;
    refuses("a,b\n1,2\n3\n4,5\n", "line 3 has 1 cell, but the header has 2");
    refuses("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the header has 2");
    refuses("a,b,c\n1,2,3\n4,5", "line 3 has 2 cells, but the header has 3; the file ends there");
    refuses("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 cells, but the header has 3");
    assert_null(strstr(err.message, "ends there"));
    refuses("a,b\n1,2\n\n3,4\n", "line 3 is blank");
    refuses("a,b\r\n1,2\r\n \r\n3,4\r\n", "line 3 is blank");
    refuses("a\n1\n\n3\n", "line 3 is blank");
    refuses("a,b\n1,2\n3,\"4\n", "line 3: an opening quote is never closed");
    refuses("a,b\n1,\n", "line 2, column 'b': the cell is empty; write nan");
    refuses("a,b\n,2\n", "line 2, column 'a': the cell is empty");
    refuses("a,b\n1, \n3,4\n", "line 2, column 'b': the cell is empty");
    refuses("a,b\n1,\"\"\n", "line 2, column 'b': the cell is empty");
    refuses("a,b\n1,2,\n", "3 cells");
    refuses("a,b\n1,2\r3,4\n", "3 cells");
}

static void table__rejects_cells(void **state)
{
    (void)state;
    refuses("a,b\n1,red\n", "line 2, column 'b': 'red' is not a number");
    refuses("a,b\n1,2\n1 2,3\n", "line 3, column 'a': '1 2' is not a number");
    refuses("a\n1e5x\n", "'1e5x'");
    refuses("a\n1e\n", "'1e'");
    refuses("a\n-\n", "'-'");
    refuses("a\n.\n", "'.'");
    refuses("a\n--1\n", "'--1'");
    refuses("a\n0x10\n", "'0x10'");
    refuses("a\nnan(1)\n", "'nan(1)'");
    refuses("a\ninfinit\n", "'infinit'");
    refuses("a\n1,5\n", "2 cells");
    refuses("a;b\n1;2\n", "separated by commas");
    refuses("a\tb\n1\t2\n", "separated by commas");
    refuses("a\n1e999\n", "1e999 is beyond the range");
    refuses("a\n\"1\"x\n", "is not a number");
    refuses("a\n\"1\"\"2\"\n", "is not a number");
    refuses("a\n\x1b[31mred\n", "'?[31mred' is not a number");
    refuses("a\nabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n",
            "'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr...' is not a number");
    char text[3000] = "a\n";
    memset(text + 2, '1', sizeof text - 3); /* longer than any number is read */
    refuses(text, "is not a number");
}

/* Cut anywhere, a good file is still read or refused, and refused with a message. */
static void table__truncated_anywhere(void **state)
{
    (void)state;
    const char text[] =
        "\xef\xbb\xbf\"a \"\"x\"\"\",b\r\n1.5e-3,\"2\"\r\n-inf, nan \r\n12345678901,3\r\n";
    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size ? size : 1);
        memcpy(copy, text, size);
        fin_table *table;
        for (int texts = 0; texts <= 1; texts++) {
            err.message[0] = '\0';
            if ((texts ? fin_table_parse_texts : fin_table_parse)(copy, size, "t.csv", &table,
                                                                  &err))
                assert_message(&err, "t.csv");
            else
                assert_true(fin_table_rows(table) >= 1);
            fin_table_destroy(table);
        }
        free(copy);
    }
}

/* Any byte changed to any of a few nasty ones: no crash, and a message if refused. */
static void table__damaged_anywhere(void **state)
{
    (void)state;
    const char good[] = "a,\"b\"\n1.5e-3,\"2\"\n-inf, nan \n", nasty[] = "\",\n\r\0 e-.9\xff";
    for (size_t i = 0; i + 1 < sizeof good; i++)
        for (size_t k = 0; k + 1 < sizeof nasty; k++) {
            char *copy = malloc(sizeof good - 1);
            memcpy(copy, good, sizeof good - 1);
            copy[i] = nasty[k];
            fin_table *table;
            for (int texts = 0; texts <= 1; texts++) {
                err.message[0] = '\0';
                if ((texts ? fin_table_parse_texts : fin_table_parse)(copy, sizeof good - 1,
                                                                      "t.csv", &table, &err))
                    assert_message(&err, "t.csv");
                fin_table_destroy(table);
            }
            free(copy);
        }
}

/* ---- texts ---------------------------------------------------------------------------- */

static fin_table *parse_texts(const char *text)
{
    fin_table *table = NULL;
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    fin_status status = fin_table_parse_texts(copy, size, "t.csv", &table, &err);
    free(copy);
    if (status)
        assert_null(table);
    return table;
}

static void texts__are_numbered_as_they_come(void **state)
{
    (void)state;
    fin_table *table =
        parse_texts("who,x,y\r\n ann ,1,NA\r\n\"b \"\"o\"\" b\",,2\r\nann,n/a,-inf\r\n"
                    "7,4,none\r\nNULL,5,6");
    const double who[] = {1, 2, 1, 3, NAN}, x[] = {1, NAN, NAN, 4, 5},
                 y[] = {NAN, 2, -INFINITY, NAN, 6}, *const expected[] = {who, x, y};
    assert_non_null(table);
    assert_int_equal(fin_table_rows(table), 5);
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 5; i++) {
            double value = fin_table_values(table, j)[i], wanted = expected[j][i];
            if (value != wanted && !(isnan(value) && isnan(wanted)))
                fail_msg("column %d, row %d: %g, not %g", j, i, value, wanted);
        }
    assert_int_equal(fin_table_texts(table, 0), 3);
    assert_string_equal(fin_table_text(table, 0, 0), "ann");
    assert_string_equal(fin_table_text(table, 0, 1), "b \"o\" b");
    assert_string_equal(fin_table_text(table, 0, 2), "7");
    assert_null(fin_table_text(table, 0, 3));
    assert_int_equal(fin_table_find_text(table, 0, "7"), 2);
    assert_int_equal(fin_table_find_text(table, 0, "8"), -1);
    for (int j = -1; j < 4; j++)
        if (j != 0) {
            assert_int_equal(fin_table_texts(table, j), 0);
            assert_null(fin_table_text(table, j, 0));
            assert_int_equal(fin_table_find_text(table, j, "ann"), -1);
        }
    fin_table_destroy(table);
    table = parse_texts("a,b\n,\n,\n,\n"); /* hardly more bytes than cells */
    assert_non_null(table);
    assert_int_equal(fin_table_rows(table), 3);
    fin_table_destroy(table);
    table = parse_texts("a,b\n1,2\n"); /* numbers alone */
    assert_int_equal(fin_table_texts(table, 0), 0);
    fin_table_destroy(table);
}

/* What is malformed is told of the line where it is: that a text before it is no number is no fault. */
static void texts__malformed_files_are_told_where(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"a,b\nx\n", "line 2 has 1 cell, but the header has 2"},
        {"a,b\nx,1\nwell, yes,2\n", "line 3 has 3 cells, but the header has 2"},
        {"a\n\"x\n", "line 2: an opening quote is never closed"},
        {"a\n\"x\"y\n", "line 2, column 'a': 'x\"y' is not a number"},
        {"", "is empty"},
        {"a\nx\n\ny\n", "line 3 is blank, but rows follow it"},
        {"a,b\nx,1\ny,1e999\n", "line 3, column 'b': 1e999 is beyond the range"},
        {"a,a\nx,y\n", "columns 1 and 2 are both called 'a'"},
        {"1,2\nx,y\n", "all cells are numbers"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse_texts(bad[i][0]) || err.status != FIN_ERR_FORMAT ||
            !strstr(err.message, bad[i][1]))
            fail_msg("'%s': '%s', not '%s'", bad[i][0], err.message, bad[i][1]);
}

static fin_status read_texts(void *user, fin_error *e)
{
    fin_table *table = NULL;
    fin_status status = fin_table_parse_texts(user, strlen(user), "t.csv", &table, e);
    fin_table_destroy(table);
    return status;
}

static void texts__every_allocation_may_fail(void **state)
{
    (void)state;
    char text[] = "a,b\nx,1\n\"y\"\"\",z\n";
    assert_true(fault_every(read_texts, text) > 5);
}

/* ---- files, faults -------------------------------------------------------------------- */

static void table__dash_is_standard_input(void **state)
{
    (void)state;
    enum { ROWS = 50000 }; /* more than the first block of a pipe */
    const char *path = in_folder("in.csv");
    FILE *file = fopen(path, "w");
    fprintf(file, "i,j\n");
    for (int i = 0; i < ROWS; i++)
        fprintf(file, "%d,%d\n", i, -i);
    fclose(file);
    char command[1100];
    snprintf(command, sizeof command, "cat '%s'", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    int saved = dup(STDIN_FILENO);
    dup2(fileno(pipe), STDIN_FILENO);
    fin_table *table = NULL;
    fin_status status = fin_table_read("-", &table, &err);
    dup2(saved, STDIN_FILENO);
    close(saved);
    pclose(pipe);
    assert_int_equal(status, FIN_OK);
    assert_int_equal(fin_table_rows(table), ROWS);
    assert_true(fin_table_values(table, 1)[ROWS - 1] == 1 - ROWS);
    fin_table_destroy(table);
}

static fin_status read_pipe(void *user, fin_error *e)
{
    fin_table *table = NULL;
    int saved = dup(STDIN_FILENO);
    FILE *pipe = popen(user, "r");
    dup2(fileno(pipe), STDIN_FILENO);
    fin_status status = fin_table_read("-", &table, e);
    dup2(saved, STDIN_FILENO);
    close(saved);
    pclose(pipe);
    fin_table_destroy(table);
    return status;
}

static void table__survives_allocation_faults(void **state)
{
    (void)state;
    char command[1100];
    FILE *file = fopen(in_folder("in.csv"), "w");
    fprintf(file, "a\n");
    for (int i = 0; i < 100000; i++)
        fprintf(file, "%d\n", i);
    fclose(file);
    snprintf(command, sizeof command, "cat '%s' 2>/dev/null", in_folder("in.csv"));
    assert_true(fault_every(read_pipe, command) >= 4);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(table__names_and_values),
        TEST(table__dialects_read_the_same),
        TEST(table__quoted_names),
        TEST(table__special_numbers),
        TEST(table__numbers_are_correctly_rounded),
        TEST(decimal__random_text_agrees_with_strtod),
        TEST(table__widest_is_read_and_wider_refused_at_once),
        TEST(table__rejects_files),
        TEST(table__rejects_headers),
        TEST(table__rejects_rows),
        TEST(table__rejects_cells),
        TEST(table__truncated_anywhere),
        TEST(table__damaged_anywhere),
        TEST(texts__are_numbered_as_they_come),
        TEST(texts__malformed_files_are_told_where),
        TEST(texts__every_allocation_may_fail),
        TEST(table__dash_is_standard_input),
        TEST(table__survives_allocation_faults),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
