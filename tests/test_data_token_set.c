/* Sequences of tokens from files: bags with keys, images as patches, scales, folds and so many of a
 * class; and everything that a file can have wrong. */
#include "test_data.h"

#include "fault.h"
#include "finetti/data_encoder.h"

#include <math.h>

static fin_error err;

static fin_token_source source_of(const char *path, int64_t patch)
{
    return (fin_token_source){.bags = {.path = path, .class_count = -1}, .patch = patch};
}

static fin_token_set *read_set(const fin_token_source *source)
{
    fin_token_set *set = NULL;
    assert_ok(fin_token_set_read(&set, source, NULL, &err));
    return set;
}

static void refuse(const fin_token_source *source, fin_status status, const char *part)
{
    fin_token_set *set = (fin_token_set *)&err;
    assert_int_equal(fin_token_set_read(&set, source, NULL, &err), status);
    assert_null(set);
    assert_message(&err, part);
}

static const char *text_file(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

/* Number j of token t before it was scaled. */
static double raw(const fin_token_set *set, int64_t t, int64_t j)
{
    const fin_memory *m = fin_token_set_memory(set);
    const fin_token_scale *s = fin_token_set_scale(set);
    return (double)m->tokens[t * m->inputs + j] / s->scale[j] + s->center[j];
}

/* ---- bags -------------------------------------------------------------------------------------- */

static const char *bags_file(void)
{
    return text_file("bags.csv", "bag,label,k,v,w\n"
                                 "a,yes,1,10,5\na,yes,2,20,5\nb,no,3,30,5\na,yes,4,40,5\n");
}

static void bags__keys_come_first(void **state)
{
    (void)state;
    fin_token_source source = source_of(bags_file(), 0);
    source.keys = "w,k";
    fin_token_set *set = read_set(&source);
    const fin_memory *m = fin_token_set_memory(set);
    assert_int_equal(m->n, 2);
    assert_int_equal(m->inputs, 3);
    assert_int_equal(m->values, 1);
    assert_int_equal(m->offsets[1], 3);
    assert_int_equal(m->offsets[2], 4);
    const double rows[4][3] = {{5, 1, 10}, {5, 2, 20}, {5, 4, 40}, {5, 3, 30}};
    for (int t = 0; t < 4; t++)
        for (int j = 0; j < 3; j++)
            assert_true(fabs(raw(set, t, j) - rows[t][j]) < 1e-5);
    assert_int_equal(m->classes, 2);
    assert_string_equal(fin_token_set_class(set, 0), "no");
    assert_null(fin_token_set_class(set, 2));
    assert_null(fin_token_set_class(set, -1));
    assert_true(m->labels[0] == 1 && m->labels[1] == 0);
    fin_token_set_destroy(set);
    fin_token_set_destroy(NULL);
}

/* Mean 0 and deviation 1 of each column; one that does not vary is left as 0. */
static void bags__columns_are_scaled_apart(void **state)
{
    (void)state;
    fin_token_source source = source_of(bags_file(), 0);
    fin_token_set *set = read_set(&source);
    const fin_memory *m = fin_token_set_memory(set);
    const fin_token_scale *s = fin_token_set_scale(set);
    assert_true(s->center[0] == 2.5 && s->center[1] == 25 && s->center[2] == 5);
    assert_true(s->scale[2] == 1);
    for (int j = 0; j < 2; j++) {
        double sum = 0, squares = 0;
        for (int t = 0; t < 4; t++) {
            sum += (double)m->tokens[t * 3 + j];
            squares += pow((double)m->tokens[t * 3 + j], 2);
        }
        assert_true(fabs(sum) < 1e-6 && fabs(squares / 4 - 1) < 1e-6);
    }
    assert_true(m->tokens[2] == 0);
    /* The same of arrays. */
    const double raw[] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    const int64_t offsets[] = {0, 1, 3};
    fin_bags bags = {
        .n = 2, .d = 3, .total = 2, .offsets = offsets, .dtype = FIN_F64, .tokens = raw};
    double center[3], scale[3];
    fin_token_scale found = {.center = center, .scale = scale};
    assert_int_equal(fin_token_scale_find(&bags, &found, &err), FIN_OK);
    assert_true(found.columns == 3 && center[0] == 2 && center[1] == 4 && center[2] == 6);
    assert_true(fabs(scale[0] - sqrt(1.5)) < 1e-15 && fabs(scale[2] - sqrt(3 / 14.0)) < 1e-15);
    const double wild[] = {1e200, 0, 0, -1e200, 0, 0, 0, 0, 0};
    bags.tokens = wild;
    assert_int_equal(fin_token_scale_find(&bags, &found, &err), FIN_ERR_NUMERIC);
    fin_token_set_destroy(set);
}

static void scale__of_the_first_file_is_used_for_the_next(void **state)
{
    (void)state;
    fin_token_source source = source_of(bags_file(), 0);
    fin_token_set *first = read_set(&source);
    fin_token_source next =
        source_of(text_file("next.csv", "bag,k,v,w\nq,2.5,25,7\nr,3.5,35,8\n"), 0);
    next.scale = fin_token_set_scale(first);
    fin_token_set *set = read_set(&next);
    const fin_memory *m = fin_token_set_memory(set);
    assert_null(m->labels);
    assert_int_equal(m->classes, 0);
    assert_true(m->tokens[0] == 0 && m->tokens[1] == 0 && m->tokens[2] == 2);
    assert_memory_equal(fin_token_set_scale(set)->scale, next.scale->scale, 3 * sizeof(double));
    fin_token_set_destroy(set);
    next = source_of(text_file("wide.csv", "bag,k,v,w,x\nq,2.5,25,7,1\n"), 0);
    next.scale = fin_token_set_scale(first);
    refuse(&next, FIN_ERR_ARGUMENT, "4 columns, and the encoder was trained with 3");
    fin_token_set_destroy(first);
}

static void labels__may_be_missing(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t classes;
        int labels;
    } files[] = {
        {"bag,x\na,1\nb,2\n", 0, 0},
        {"bag,label,x\na,,1\nb,,2\n", 0, 0},
        {"bag,label,x\na,,1\nb,u,2\nc,v,3\n", 2, 1},
        {"bag,label,x\na,,1\nb,0.5,2\nc,1.5,3\nd,2.5,3\n", 0, 1},
        {"bag,label,x\na,7,1\nb,7,2\n", 0, 1}, /* all the same: nothing to learn, but no harm */
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fin_token_source source = source_of(text_file("some.csv", files[i].text), 0);
        fin_token_set *set = read_set(&source);
        const fin_memory *m = fin_token_set_memory(set);
        assert_int_equal(m->classes, files[i].classes);
        assert_int_equal(m->labels != NULL, files[i].labels);
        if (i == 2 || i == 3)
            assert_true(isnan(m->labels[0]) && !isnan(m->labels[1]));
        fin_token_set_destroy(set);
    }
    fin_token_source source = source_of(text_file("none.csv", files[0].text), 0);
    source.bags.label = "digit";
    refuse(&source, FIN_ERR_ARGUMENT, "no column 'digit'");
}

static void bags__bad_columns_are_refused(void **state)
{
    (void)state;
    fin_token_source source = source_of(bags_file(), 0);
    source.keys = "k,v,w";
    refuse(&source, FIN_ERR_ARGUMENT, "all 3 columns are keys");
    source.keys = "z";
    refuse(&source, FIN_ERR_ARGUMENT, "no column 'z'");
    source.keys = "";
    refuse(&source, FIN_ERR_ARGUMENT, "a name is missing");
    source.keys = "k";
    source.patch = 1;
    refuse(&source, FIN_ERR_ARGUMENT, "no columns as keys");
    source = source_of(text_file("nan.csv", "bag,x\na,1\nb,nan\n"), 0);
    refuse(&source, FIN_ERR_FORMAT, "not a finite number");
    source = source_of(in_folder("absent.csv"), 0);
    refuse(&source, FIN_ERR_IO, "absent.csv");
    /* What is finite in a file may be too large for a float once it is scaled by another's scale. */
    double center[1] = {0}, scale[1] = {1e30};
    fin_token_scale of = {1, center, scale};
    source = source_of(text_file("far.csv", "bag,x\na,1\nb,1e9\n"), 0);
    source.scale = &of;
    refuse(&source, FIN_ERR_FORMAT, "row 2, column 'x'");
}

/* ---- images ------------------------------------------------------------------------------------ */

/* Image i has the pixels 100 i + 0, 1, 2, ... */
static const char *image_table(int rows, int pixels)
{
    static char text[1 << 16];
    size_t used = 0;
    for (int j = 0; j < pixels; j++)
        used += (size_t)sprintf(text + used, "p%d,", j);
    used += (size_t)sprintf(text + used, "digit\n");
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < pixels; j++)
            used += (size_t)sprintf(text + used, "%d,", 100 * i + j);
        used += (size_t)sprintf(text + used, "%d\n", i % 3);
    }
    return write_file("images.csv", text, used);
}

static void images__are_cut_into_patches(void **state)
{
    (void)state;
    fin_token_source source = source_of(image_table(12, 16), 2);
    source.bags.label = "digit";
    fin_token_set *set = read_set(&source);
    const fin_memory *m = fin_token_set_memory(set);
    assert_int_equal(m->n, 12);
    assert_int_equal(m->inputs, 2 + 2 + 4);
    assert_int_equal(m->values, 4);
    assert_int_equal(m->offsets[12], 48);
    assert_int_equal(m->classes, 3);
    const int patches[4][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}};
    for (int i = 0; i < 12; i++) {
        assert_int_equal(m->offsets[i], 4 * i);
        assert_true(m->labels[i] == i % 3);
        for (int t = 0; t < 4; t++)
            for (int j = 0; j < 4; j++) {
                assert_true(fabs(raw(set, 4 * i + t, 4 + j) - 100 * i - patches[t][j]) < 1e-3);
                /* The place: row t / 2 of two, place t % 2 of two, one-hot; squares sum to 4. */
                int one = j < 2 ? j == t / 2 : j - 2 == t % 2;
                assert_true(m->tokens[(4 * i + t) * 8 + j] == (one ? (float)sqrt(2) : 0));
            }
    }
    /* One scale for all pixels. */
    const fin_token_scale *s = fin_token_set_scale(set);
    assert_int_equal(s->columns, 8);
    assert_true(s->center[4] == 550 + 7.5);
    for (int j = 5; j < 8; j++)
        assert_true(s->center[j] == s->center[4] && s->scale[j] == s->scale[4]);
    fin_token_set_destroy(set);
}

static void images__need_not_be_square(void **state)
{
    (void)state;
    fin_token_source source = source_of(image_table(4, 8), 2);
    source.bags.label = "digit";
    refuse(&source, FIN_ERR_FORMAT, "8 pixels");
    source.rows = 2;
    fin_token_set *set = read_set(&source);
    const int patches[2][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}};
    assert_int_equal(fin_token_set_memory(set)->offsets[4], 8);
    assert_int_equal(fin_token_set_across(set), 2);
    for (int t = 0; t < 2; t++)
        for (int j = 0; j < 4; j++)
            assert_true(fabs(raw(set, t, 3 + j) - patches[t][j]) < 1e-3);
    fin_token_set_destroy(set);
}

static void images__bad_patches_are_refused(void **state)
{
    (void)state;
    fin_token_source source = source_of(image_table(4, 16), 3);
    source.bags.label = "digit";
    refuse(&source, FIN_ERR_ARGUMENT, "3 x 3 pixels do not tile images of 4 x 4");
    source.patch = 8;
    refuse(&source, FIN_ERR_ARGUMENT, "8 x 8 pixels do not tile");
    source.patch = INT64_MAX;
    refuse(&source, FIN_ERR_ARGUMENT, "do not tile");
    source.patch = -1;
    refuse(&source, FIN_ERR_ARGUMENT, "0 or more");
    source.patch = 2;
    source.rows = 5;
    refuse(&source, FIN_ERR_FORMAT, "do not make 5 rows");
    source.rows = 0;
    source.bags.label = NULL; /* then the digit is a pixel, and 17 are no square */
    refuse(&source, FIN_ERR_FORMAT, "17 pixels");
    source.bags.features = "p*";
    fin_token_set *set = read_set(&source);
    assert_null(fin_token_set_memory(set)->labels);
    fin_token_set_destroy(set);
    source = source_of(text_file("short.csv", "a,b,c,d\n1,2,3,4\n1,2,3\n"), 2);
    refuse(&source, FIN_ERR_FORMAT, "line 3");
    source = source_of(text_file("words.csv", "a,b,c,d\n1,2,3,4\n1,2,3,x\n"), 2);
    refuse(&source, FIN_ERR_FORMAT, "line 3, column 'd'");
    source = source_of(text_file("none.csv", "a,b,c,d\n"), 2);
    refuse(&source, FIN_ERR_FORMAT, "none.csv");
}

static const char *image_archive(const char *name, int ndim, const int64_t *shape, fin_dtype dtype,
                                 const void *data, int64_t labels)
{
    static const int64_t y[64] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
    fin_npz_writer *writer;
    assert_ok(fin_npz_create(in_folder("images.npz"), &writer, &err));
    assert_ok(fin_npz_add(writer, name, dtype, ndim, shape, data, &err));
    if (labels)
        assert_ok(fin_npz_add(writer, "labels", FIN_I64, 1, &labels, y, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
    return in_folder("images.npz");
}

static void archive__shapes_and_types(void **state)
{
    (void)state;
    unsigned char bytes[12 * 36];
    float reals[12 * 36];
    for (int k = 0; k < 12 * 36; k++) {
        bytes[k] = (unsigned char)(k % 251);
        reals[k] = (float)bytes[k];
    }
    const char *names[] = {"images", "x", "pixels"};
    for (int which = 0; which < 3; which++) {
        /* 4 rows and 9 columns: the array says so, and 36 pixels could be a square. */
        fin_token_source source = source_of(
            image_archive(names[which], 3, (int64_t[]){12, 4, 9}, which ? FIN_F32 : FIN_U8,
                          which ? (void *)reals : (void *)bytes, 12),
            1);
        fin_token_set *set = read_set(&source);
        assert_int_equal(fin_token_set_memory(set)->offsets[12], 12 * 36);
        assert_int_equal(fin_token_set_memory(set)->classes, 3);
        for (int k = 0; k < 12 * 36; k++)
            assert_true(fabs(raw(set, k, 4 + 9) - bytes[k]) < 1e-3);
        fin_token_set_destroy(set);
        source.patch = 2;
        refuse(&source, FIN_ERR_ARGUMENT, "images of 4 x 9");
        source.rows = 6;
        set = read_set(&source);
        assert_int_equal(fin_token_set_memory(set)->inputs, 3 + 3 + 4);
        fin_token_set_destroy(set);
    }
    fin_token_source source =
        source_of(image_archive("images", 2, (int64_t[]){12, 36}, FIN_U8, bytes, 0), 3);
    fin_token_set *set = read_set(&source);
    assert_null(fin_token_set_memory(set)->labels);
    assert_int_equal(fin_token_set_memory(set)->offsets[12], 12 * 4);
    fin_token_set_destroy(set);
    source = source_of(image_archive("images", 4, (int64_t[]){4, 3, 6, 6}, FIN_U8, bytes, 4), 3);
    refuse(&source, FIN_ERR_UNSUPPORTED, "4 axes");
    source = source_of(image_archive("images", 2, (int64_t[]){12, 36}, FIN_U8, bytes, 11), 3);
    refuse(&source, FIN_ERR_FORMAT, "11 labels for 12");
    source = source_of(image_archive("other", 2, (int64_t[]){12, 36}, FIN_U8, bytes, 12), 3);
    refuse(&source, FIN_ERR_ARGUMENT, "no array 'images'");
    reals[40] = NAN;
    source = source_of(image_archive("images", 2, (int64_t[]){12, 36}, FIN_F32, reals, 12), 3);
    refuse(&source, FIN_ERR_FORMAT, "column '4'");
}

/* ---- parts ------------------------------------------------------------------------------------- */

static fin_token_set *images(void)
{
    fin_token_source source = source_of(image_table(60, 4), 1);
    source.bags.label = "digit";
    return read_set(&source);
}

static fin_token_set *part_of(const fin_token_set *set, const fin_token_part *which)
{
    fin_token_set *part = NULL;
    assert_ok(fin_token_set_part(&part, set, which, &err));
    return part;
}

/* Which image sequence i of the part was: its first pixel is 100 times the number. */
static int number_of(const fin_token_set *part, int64_t i)
{
    return (int)lround(raw(part, fin_token_set_memory(part)->offsets[i], 2 + 2) / 100);
}

static void part__folds_are_disjoint_and_complete(void **state)
{
    (void)state;
    fin_token_set *set = images();
    for (int fold = 0; fold < 7; fold++) {
        const fin_token_part train = {.folds = 7, .fold = fold}, test = {7, fold, 1, 0, 0};
        fin_token_set *a = part_of(set, &train), *b = part_of(set, &test);
        assert_int_equal(fin_token_set_memory(a)->n + fin_token_set_memory(b)->n, 60);
        for (int64_t i = 0; i < fin_token_set_memory(b)->n; i++) {
            assert_int_equal(number_of(b, i), 7 * i + fold);
            assert_true(fin_token_set_memory(b)->labels[i] == (7 * i + fold) % 3);
        }
        for (int64_t i = 0; i < fin_token_set_memory(a)->n; i++)
            assert_int_not_equal(number_of(a, i) % 7, fold);
        assert_string_equal(fin_token_set_class(a, 2), "2");
        fin_token_set_destroy(a);
        fin_token_set_destroy(b);
    }
    const fin_token_part all = {0};
    fin_token_set *copy = part_of(set, &all);
    const fin_memory *m = fin_token_set_memory(set), *c = fin_token_set_memory(copy);
    assert_memory_equal(m->tokens, c->tokens, (size_t)m->offsets[60] * sizeof(float));
    fin_token_set_destroy(copy);
    fin_token_set_destroy(set);
}

static void part__so_many_of_each_class(void **state)
{
    (void)state;
    fin_token_set *set = images();
    fin_token_part which = {.folds = 5, .fold = 2, .per_class = 3, .seed = 7};
    fin_token_set *a = part_of(set, &which), *again = part_of(set, &which);
    which.seed = 8;
    fin_token_set *b = part_of(set, &which);
    which.seed = 7;
    which.per_class = 5;
    fin_token_set *more = part_of(set, &which);
    assert_int_equal(fin_token_set_memory(a)->n, 9);
    assert_int_equal(fin_token_set_memory(more)->n, 15);
    int count[3] = {0}, differ = 0, among = 0;
    for (int64_t i = 0; i < 9; i++) {
        int number = number_of(a, i);
        count[number % 3]++;
        assert_int_not_equal(number % 5, 2);
        assert_true(i == 0 || number > number_of(a, i - 1));
        assert_int_equal(number, number_of(again, i));
        differ += number != number_of(b, i);
        for (int64_t k = 0; k < 15; k++) /* a larger part has the smaller one in it */
            among += number_of(more, k) == number;
    }
    assert_true(count[0] == 3 && count[1] == 3 && count[2] == 3);
    assert_true(differ > 0);
    assert_int_equal(among, 9);
    which.per_class = 17;
    fin_token_set *none;
    assert_int_equal(fin_token_set_part(&none, set, &which, &err), FIN_ERR_ARGUMENT);
    assert_null(none);
    assert_message(&err, "has only 16");
    fin_token_set_destroy(a);
    fin_token_set_destroy(again);
    fin_token_set_destroy(b);
    fin_token_set_destroy(more);
    fin_token_set_destroy(set);
}

static void part__refuses(void **state)
{
    (void)state;
    fin_token_set *set = images(), *none;
    const fin_token_part bad[] = {{-1, 0, 0, 0, 0}, {5, 5, 0, 0, 0},  {5, -1, 1, 0, 0},
                                  {1, 0, 1, 0, 0},  {0, 0, 0, -1, 0}, {100, 99, 1, 0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(fin_token_set_part(&none, set, &bad[i], &err), FIN_ERR_ARGUMENT);
        assert_null(none);
    }
    fin_token_set_destroy(set);
    fin_token_source source = source_of(text_file("plain.csv", "bag,x\na,1\nb,2\n"), 0);
    set = read_set(&source);
    const fin_token_part classes = {.folds = 2, .per_class = 1};
    assert_int_equal(fin_token_set_part(&none, set, &classes, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "missing");
    fin_token_set_destroy(set);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static fin_status read_and_cut(void *user, fin_error *error)
{
    fin_token_set *set = NULL, *part = NULL;
    const fin_token_part which = {.folds = 4, .fold = 1, .per_class = 2, .seed = 3};
    const fin_token_source *source = user;
    fin_status status = fin_token_set_read(&set, source, NULL, error);
    if (!status && source->patch)
        status = fin_token_set_part(&part, set, &which, error);
    fin_token_set_destroy(set);
    fin_token_set_destroy(part);
    return status;
}

static void faults__every_allocation(void **state)
{
    (void)state;
    fin_token_source source = source_of(bags_file(), 0);
    source.keys = "w,k";
    fault_every(read_and_cut, &source);
    source = source_of(image_table(24, 4), 1);
    source.bags.label = "digit";
    fault_every(read_and_cut, &source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bags__keys_come_first, empty_folder),
        cmocka_unit_test_setup(bags__columns_are_scaled_apart, empty_folder),
        cmocka_unit_test_setup(scale__of_the_first_file_is_used_for_the_next, empty_folder),
        cmocka_unit_test_setup(labels__may_be_missing, empty_folder),
        cmocka_unit_test_setup(bags__bad_columns_are_refused, empty_folder),
        cmocka_unit_test_setup(images__are_cut_into_patches, empty_folder),
        cmocka_unit_test_setup(images__need_not_be_square, empty_folder),
        cmocka_unit_test_setup(images__bad_patches_are_refused, empty_folder),
        cmocka_unit_test_setup(archive__shapes_and_types, empty_folder),
        cmocka_unit_test_setup(part__folds_are_disjoint_and_complete, empty_folder),
        cmocka_unit_test_setup(part__so_many_of_each_class, empty_folder),
        cmocka_unit_test_setup(part__refuses, empty_folder),
        cmocka_unit_test_setup(faults__every_allocation, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
