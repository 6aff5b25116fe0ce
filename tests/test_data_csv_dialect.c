/* Tables as spreadsheets and other programs write them: separators, decimal commas, an index without a
 * name, gzip; and files that are not read. */
#include "test_data_bags.h"

#include <zlib.h>

static const char plain[] =
    "bag,label,x,note,z\na,0,1.5,\"p,q\",-2\nb,1,-0.25,\"r \"\"s\"\"\",1e3\n";

/* The text is read as `plain` is, its texts too. */
static void same_as_plain(fin_bags_source source, const char *note)
{
    source.extras = "*";
    source.class_count = -1;
    fin_bag_set *set = read_set(&source);
    const fin_bags *bags = fin_bag_set_bags(set);
    assert_int_equal(bags->n, 2);
    assert_int_equal(bags->d, 2);
    assert_true(token(set, 0, 0) == 1.5 && token(set, 1, 0) == -0.25);
    assert_true(token(set, 0, 1) == -2 && token(set, 1, 1) == 1000);
    assert_string_equal(fin_bag_set_name(set, 1), "b");
    assert_string_equal(fin_bag_set_extra_text(set, fin_bag_set_extras(set) - 1, 0), "p,q");
    assert_string_equal(fin_bag_set_extra_text(set, fin_bag_set_extras(set) - 1, 1), "r \"s\"");
    if (note)
        has_note(set, note);
    for (int i = 0; i < fin_bag_set_notes(set) && !note; i++)
        assert_null(strstr(fin_bag_set_note(set, i), "--sep"));
    fin_bag_set_destroy(set);
}

static void dialect__is_found_out(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *note;
    } cases[] = {
        {"t.csv", plain, NULL},
        {"t.csv", "bag;label;x;note;z\na;0;1,5;p,q;-2\nb;1;-0,25;\"r \"\"s\"\"\";1e3\n",
         "separated by semicolons, numbers are read with a decimal comma"},
        {"t.csv", "bag;label;x;note;z\r\na;0;1.5;p,q;-2\r\nb;1;-.25; \"r \"\"s\"\"\" ;1e3\r\n",
         "separated by semicolons;"},
        {"t.csv",
         "\xef\xbb\xbf"
         "bag;label;x;note;z\n\"a\";0; +1,5 ;\"p,q\";-2\nb;1;\"-,25\";r \"s\";1,0e3",
         "decimal comma"},
        {"t.tsv", "bag\tlabel\tx\tnote\tz\na\t0\t1.5\tp,q\t-2\nb\t1\t-0.25\tr \"s\"\t1e3\n", NULL},
        {"t.csv", "bag\tlabel\tx\tnote\tz\na\t0\t1,5\t\"p,q\"\t-2\nb\t1\t-0,25\tr \"s\"\t1e3\n",
         "decimal comma"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        same_as_plain((fin_bags_source){.path = write_text(cases[i].name, cases[i].text)},
                      cases[i].note);
}

static void dialect__is_insisted_on(void **state)
{
    (void)state;
    fin_bags_source source = {.sep = '|', .decimal = ','};
    source.path =
        write_text("t.csv", "bag|label|x|note|z\na|0|1,5|p,q|-2\nb|1|-0,25|r \"s\"|1e3\n");
    same_as_plain(source, NULL);
    source = (fin_bags_source){.sep = ',', .decimal = ','};
    source.path = write_text(
        "t.csv", "bag,label,x,note,z\na,0,\"1,5\",\"p,q\",-2\nb,1,\"-0,25\",\"r \"\"s\"\"\",1e3\n");
    same_as_plain(source, NULL);
    source = (fin_bags_source){.decimal = '.'}; /* 1,5 is text then */
    source.path =
        write_text("t.csv", "bag;label;x;z;note\na;0;1.5;-2;p,q\nb;1;-0.25;1e3;r \"s\"\n");
    same_as_plain(source, "semicolons");
    source = from(write_text("t.csv", "bag;label;x\na;0;1\nb;1;2,5\n"));
    source.decimal = '.';
    read_refuses(&source, FIN_ERR_FORMAT, "line 3, column 'x'", "'2,5' is not a number");
    source.sep = 'x';
    read_refuses(&source, FIN_ERR_ARGUMENT, "separated by", "tabs");
}

static void dialect__mixed_is_refused(void **state)
{
    (void)state;
    fin_bags_source source = from(write_text("t.csv", "bag;label;x\na;0;1.250\nb;1;2,5\n"));
    read_refuses(&source, FIN_ERR_FORMAT, "comma ('2,5', line 3)", "point ('1.250', line 2)");
    source.decimal = ',';
    read_refuses(&source, FIN_ERR_FORMAT, "comma ('2,5', line 3)", "point ('1.250', line 2)");
    source.path = write_text("t.csv", "bag;label;x\na;0;1.250\nb;1;2\n");
    read_refuses(&source, FIN_ERR_FORMAT, "line 2: '1.250' has a decimal point", "thousands");
    source = from(write_text("t.csv", "bag;label;x\na;0;1\nb;1\n"));
    read_refuses(&source, FIN_ERR_FORMAT, "line 3 has 2 cells", "the header has 3");
}

static void index__of_pandas_is_left_out(void **state)
{
    (void)state;
    fin_bags_source source = from(
        write_text("t.csv", ",patient,label,x,Unnamed: 0.1\n0,a,0,1,5\n1,a,0,2,6\n2,b,1,3,7\n"));
    source.extras = "*";
    fin_bag_set *set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->d, 1);
    assert_string_equal(fin_bag_set_bag(set), "patient"); /* the first with a name */
    has_note(set, "the first column has no name");
    has_note(set, "column 'Unnamed: 0.1' is an index");
    assert_int_equal(fin_bag_set_notes(set), 2);
    assert_string_equal(fin_bag_set_extra(set, 0), "Unnamed: 0"); /* row ids come back */
    assert_true(fin_bag_set_extra_numbers(set, 0)[2] == 2);
    fin_bag_set_destroy(set);
    source.features = "x,Unnamed: 0"; /* named: meant */
    set = read_set(&source);
    assert_int_equal(fin_bag_set_bags(set)->d, 2);
    fin_bag_set_destroy(set);
    source = from(write_text("t.csv", "bag,,label,x\na,1,0,1\nb,2,1,2\n"));
    read_refuses(&source, FIN_ERR_FORMAT, "column 2", "every column needs a name");
}

/* ---- gzip --------------------------------------------------------------------------------------- */

static const char *write_gzip(const char *name, const char *text, size_t size, const char *mode)
{
    const char *path = in_folder(name);
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

static void gzip__is_unpacked(void **state)
{
    (void)state;
    size_t half = sizeof plain / 2;
    same_as_plain((fin_bags_source){.path = write_gzip("t.csv.gz", plain, sizeof plain - 1, "wb")},
                  NULL);
    write_gzip("t.csv.gz", plain, half, "wb"); /* two members */
    same_as_plain((fin_bags_source){.path = write_gzip("t.csv.gz", plain + half,
                                                       sizeof plain - 1 - half, "ab")},
                  NULL);
    enum { ROWS = 300000 }; /* pieces of more than a megabyte */
    char *text = malloc(ROWS * 16 + 32), *next = text + sprintf(text, "bag,label,x\n");
    for (int i = 0; i < ROWS; i++)
        next += sprintf(next, "%d,%d,%d\n", i / 3, i / 3 % 2, i);
    fin_bags_source source = from(write_gzip("t.csv", text, (size_t)(next - text), "wb"));
    fin_bag_set *set = read_set(&source);
    for (int i = 0; i < ROWS; i += 999)
        assert_true(token(set, i, 0) == i);
    assert_int_equal(fin_bag_set_bags(set)->n, ROWS / 3);
    fin_bag_set_destroy(set);
    free(text);
}

static void gzip__damaged_is_refused(void **state)
{
    (void)state;
    size_t size;
    char *bytes = read_file(write_gzip("t.csv.gz", plain, sizeof plain - 1, "wb"), &size);
    for (size_t length = 2; length < size; length++) {
        fin_bags_source source = from(write_file("cut.csv.gz", bytes, length));
        read_refuses(&source, FIN_ERR_FORMAT, "cut.csv.gz", "gzip that is damaged or cut short");
    }
    bytes[size - 6] ^= 1; /* of the checksum */
    fin_bags_source source = from(write_file("bad.csv.gz", bytes, size));
    read_refuses(&source, FIN_ERR_FORMAT, "bad.csv.gz", "damaged");
    free(bytes);
}

/* ---- what is not read ---------------------------------------------------------------------------- */

static void formats__say_how_to_convert(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"x.parquet", "pandas.read_parquet('x.parquet')"},
                                           {"d/x.PT", "torch.load('d/x.PT')"},
                                           {"x.pth", "torch.load"},
                                           {"x.xlsx", "pandas.read_excel('x.xlsx').to_csv"},
                                           {"x.feather", "read_feather"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fin_bags_source source = from(cases[i][0]);
        read_refuses(&source, FIN_ERR_UNSUPPORTED, "is not read; Python converts it", cases[i][1]);
    }
    fin_bags_source source = from(folder); /* a folder of them */
    write_text("a.pt", "");
    read_refuses(&source, FIN_ERR_UNSUPPORTED, "a.pt'", "torch.load");
}

static fin_status read_and_destroy(void *user, fin_error *e)
{
    fin_bag_set *set;
    fin_status status = fin_bag_set_read(&set, user, NULL, e);
    fin_bag_set_destroy(set);
    return status;
}

static void dialect__every_allocation_may_fail(void **state)
{
    (void)state;
    const char text[] = ";bag;label;x\n0;a;0;1,5\n1;b;1;2\n";
    fin_threads_set(1);
    fin_bags_source source = from(write_gzip("t.csv.gz", text, sizeof text - 1, "wb"));
    assert_true(fault_every(read_and_destroy, &source) > 5);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dialect__is_found_out, empty_folder),
        cmocka_unit_test_setup(dialect__is_insisted_on, empty_folder),
        cmocka_unit_test_setup(dialect__mixed_is_refused, empty_folder),
        cmocka_unit_test_setup(index__of_pandas_is_left_out, empty_folder),
        cmocka_unit_test_setup(gzip__is_unpacked, empty_folder),
        cmocka_unit_test_setup(gzip__damaged_is_refused, empty_folder),
        cmocka_unit_test_setup(formats__say_how_to_convert, empty_folder),
        cmocka_unit_test_setup(dialect__every_allocation_may_fail, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
