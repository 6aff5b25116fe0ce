/* Bags from memory: the same set as from a file, models of fits made from arrays, names that are
 * refused, failing allocations. */
#include "test_data.h"

#include "finetti/data_bags.h"

#include "fault.h"

#include <math.h>

static fin_error err;

enum { N = 12, L = 2, D = 3 };
static const char *const features[D] = {"f1", "mass, in kg", "gr\xc3\xb6\xc3\x9f\x65\n(line)"};
static const char *const classes[2] = {"no", "yes"};

/* Twelve bags of two tokens; a bag's class is the sign of the larger first column. */
typedef struct sample {
    double tokens[N * L * D], labels[N];
    int64_t offsets[N + 1];
    fin_bags bags;
} sample;

static sample *draw(sample *s)
{
    for (int i = 0; i < N * L; i++) {
        s->tokens[D * i] = (i % L ? 1.0 : 0.1) * (i / L % 2 ? 1 : -1) + 0.01 * i;
        s->tokens[D * i + 1] = sin(3.0 * i);
        s->tokens[D * i + 2] = cos(5.0 * i);
    }
    for (int i = 0; i < N; i++) {
        s->labels[i] = i % 2;
        s->offsets[i] = 100 + L * i; /* a share of something larger may begin anywhere */
    }
    s->offsets[N] = 100 + L * N;
    s->bags = (fin_bags){N, D, 0, N, s->offsets, FIN_F64, s->tokens, s->labels, NULL};
    return s;
}

static const fin_bags_names all_names = {
    .features = features, .classes = classes, .class_count = 2, .label = "label"};

static fin_fit *fit_to(const fin_bags *bags)
{
    fin_fit *fit = NULL;
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = FIN_MODEL_SOFTMAX;
    settings.penalty = 0.01;
    assert_ok(fin_fit_create(&fit, &settings, 2, bags, NULL, NULL, NULL, &err));
    return fit;
}

static void make__borrows_bags_and_copies_names(void **state)
{
    (void)state;
    sample s;
    fin_bag_set *set;
    char first[] = "f1", label[] = "label", bag[] = "bag";
    const char *names[D] = {first, "b", "c"}, *bags[N];
    for (int i = 0; i < N; i++)
        bags[i] = bag;
    fin_bags_names n = {names, classes, 2, bags, label, NULL, NULL};
    assert_ok(fin_bag_set_make(&set, &draw(&s)->bags, &n, &err));
    first[0] = label[0] = bag[0] = 'x';
    const fin_bags *have = fin_bag_set_bags(set);
    assert_ptr_equal(have->tokens, s.tokens);
    assert_ptr_equal(have->offsets, s.offsets);
    assert_ptr_equal(have->labels, s.labels);
    assert_int_equal(fin_bag_set_classes(set), 2);
    assert_string_equal(fin_bag_set_feature(set, 0), "f1");
    assert_string_equal(fin_bag_set_feature(set, 2), "c");
    assert_null(fin_bag_set_feature(set, 3));
    assert_string_equal(fin_bag_set_class(set, 1), "yes");
    assert_null(fin_bag_set_class(set, 2));
    assert_string_equal(fin_bag_set_name(set, N - 1), "bag");
    assert_string_equal(fin_bag_set_label(set), "label");
    assert_int_equal(fin_bag_set_row(set, 0), 1);
    assert_int_equal(fin_bag_set_row(set, N * L - 1), N * L);
    assert_int_equal(fin_bag_set_row(set, N * L), 0);
    assert_int_equal(fin_bag_set_notes(set), 0);
    fin_bag_set_destroy(set);
}

static void make__numbers_what_has_no_name(void **state)
{
    (void)state;
    sample s;
    fin_bag_set *set;
    assert_ok(fin_bag_set_make(&set, &draw(&s)->bags, NULL, &err));
    assert_int_equal(fin_bag_set_classes(set), 0);
    assert_string_equal(fin_bag_set_feature(set, D - 1), "2");
    assert_string_equal(fin_bag_set_name(set, N - 1), "11");
    assert_null(fin_bag_set_class(set, 0));
    assert_null(fin_bag_set_label(set));
    fin_bag_set_destroy(set);
    s.bags.first = 7;
    s.bags.total = 7 + N;
    assert_ok(fin_bag_set_make(&set, &s.bags, &(fin_bags_names){.class_count = 2}, &err));
    assert_string_equal(fin_bag_set_class(set, 1), "1");
    assert_string_equal(fin_bag_set_name(set, 0), "7");
    fin_bag_set_destroy(set);
}

/* The same bytes from the bags, from names alone, and from a file with the same numbers. */
static void model__is_that_of_a_file(void **state)
{
    (void)state;
    sample s;
    fin_bag_set *set, *none, *read;
    fin_npz_writer *writer;
    const int64_t shape[2] = {N * L, D};
    fin_fit *fit = fit_to(&draw(&s)->bags);
    assert_ok(
        fin_bag_set_make(&set, &s.bags, &(fin_bags_names){.class_count = 2, .label = "y"}, &err));
    assert_ok(fin_bag_set_make(&none, &(fin_bags){.d = D},
                               &(fin_bags_names){.class_count = 2, .label = "y"}, &err));
    for (int i = 0; i <= N; i++)
        s.offsets[i] -= 100;
    assert_ok(fin_npz_create(in_folder("b.npz"), &writer, &err));
    assert_ok(fin_npz_add(writer, "tokens", FIN_F64, 2, shape, s.tokens, &err));
    assert_ok(fin_npz_add(writer, "offsets", FIN_I64, 1, (int64_t[]){N + 1}, s.offsets, &err));
    assert_ok(fin_npz_add(writer, "y", FIN_F64, 1, (int64_t[]){N}, s.labels, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
    const fin_bags_source source = {.path = in_folder("b.npz"), .ranks = 1, .class_count = -1};
    assert_ok(fin_bag_set_read(&read, &source, NULL, &err));
    const fin_bag_set *sets[3] = {read, set, none};
    char *bytes[3];
    size_t size[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(fin_model_write(in_folder("m.fin"), fit, sets[i], NULL, 0, &err));
        bytes[i] = read_file(in_folder("m.fin"), &size[i]);
        assert_int_equal(size[i], size[0]);
        assert_memory_equal(bytes[i], bytes[0], size[0]);
    }
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
    fin_bag_set_destroy(set);
    fin_bag_set_destroy(none);
    fin_bag_set_destroy(read);
    fin_fit_destroy(fit);
}

static void model__keeps_odd_names(void **state)
{
    (void)state;
    sample s;
    fin_bag_set *set;
    fin_model *model;
    fin_fit *fit = fit_to(&draw(&s)->bags);
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *odd[2] = {long_name, "\"{}%s%n"};
    fin_bags_names names = all_names;
    names.classes = odd;
    assert_ok(fin_bag_set_make(&set, &(fin_bags){.d = D}, &names, &err));
    assert_ok(fin_model_write(in_folder("m.fin"), fit, set, NULL, 0, &err));
    fin_bag_set_destroy(set);
    fin_fit_destroy(fit);
    assert_ok(fin_model_read(in_folder("m.fin"), &model, &err));
    for (int j = 0; j < D; j++)
        assert_string_equal(fin_model_feature_names(model)[j], features[j]);
    for (int c = 0; c < 2; c++)
        assert_string_equal(fin_model_class_names(model)[c], odd[c]);
    fin_model_destroy(model);
}

static void refuses(const fin_bags *bags, const fin_bags_names *names, const char *part)
{
    fin_bag_set *set = (void *)&err;
    err.message[0] = '\0';
    assert_int_equal(fin_bag_set_make(&set, bags, names, &err), FIN_ERR_ARGUMENT);
    assert_null(set);
    assert_message(&err, part);
    for (const char *p = err.message; *p; p++)
        assert_true((unsigned char)*p >= ' ');
}

static void make__refuses_hostile_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "is empty"},
        {NULL, "is missing"},
        {"\xff", "is not UTF-8"},
        {"caf\xe9", "is not UTF-8"},
        {"\xed\xa0\x80", "is not UTF-8"},  /* half of a surrogate pair */
        {"a\xf0\x9f\x98", "is not UTF-8"}, /* cut short */
        {"\x1b[2J", "has a control character"},
        {"f1", "is there twice"},
    };
    sample s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *names[D] = {"f1", bad[i].text, "f3"}, *bags[N];
        fin_bags_names n = {.features = names};
        refuses(&draw(&s)->bags, &n, bad[i].part);
        assert_message(&err, "column 1 (from 0)");
        n = (fin_bags_names){.classes = names, .class_count = 3};
        refuses(&s.bags, &n, bad[i].part);
        assert_message(&err, "class 1 (from 0)");
        for (int k = 0; k < N; k++)
            bags[k] = k == N - 1 ? bad[i].text : "f1";
        n = (fin_bags_names){.bags = bags};
        if (bad[i].text && strcmp(bad[i].text, "f1") == 0)
            continue;
        refuses(&s.bags, &n, bad[i].part);
        assert_message(&err, "bag 11 (from 0)");
        n = (fin_bags_names){.label = bad[i].text};
        if (bad[i].text)
            refuses(&s.bags, &n, bad[i].part);
    }
}

static void make__refuses_sizes(void **state)
{
    (void)state;
    sample s;
    const int64_t zero[2] = {0, 0};
    const fin_bags_names names = all_names;
    draw(&s);
    fin_bags b = s.bags;
    refuses(&(fin_bags){.d = 0}, NULL, "can have 1 to");
    refuses(&(fin_bags){.d = INT64_MAX}, NULL, "can have 1 to");
    refuses(&(fin_bags){.d = INT64_MIN}, NULL, "can have 1 to");
    refuses(&b, &(fin_bags_names){.class_count = -1}, "0 (labels are numbers) to 1000");
    refuses(&b, &(fin_bags_names){.class_count = 1001}, "0 (labels are numbers) to 1000");
    b.n = -1;
    refuses(&b, &names, "bags");
    b = s.bags;
    b.total = N - 1;
    refuses(&b, &names, "total is n");
    b = s.bags;
    b.tokens = NULL;
    refuses(&b, &names, "without tokens");
    b = s.bags;
    b.offsets = NULL;
    refuses(&b, &names, "without offsets");
    b = s.bags;
    b.dtype = FIN_I64;
    refuses(&b, &names, "FIN_F32 or FIN_F64");
    b = (fin_bags){1, D, 0, 1, zero, FIN_F64, s.tokens, s.labels, NULL};
    refuses(&b, &names, "at least one token");
}

static fin_status make_and_write(void *user, fin_error *error)
{
    fin_bag_set *set = NULL;
    fin_fit *fit = NULL;
    sample s;
    fin_fit_settings settings;
    (void)user;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = FIN_MODEL_SOFTMAX;
    settings.penalty = 0.01;
    settings.iterations = 2;
    fin_status status = fin_bag_set_make(&set, &draw(&s)->bags, &all_names, error);
    if (!status)
        status = fin_fit_create(&fit, &settings, 2, fin_bag_set_bags(set), NULL, NULL, NULL, error);
    if (!status)
        status = fin_model_write(in_folder("m.fin"), fit, set, NULL, 0, error);
    fin_fit_destroy(fit);
    fin_bag_set_destroy(set);
    return status;
}

static void make__survives_every_failed_allocation(void **state)
{
    (void)state;
    assert_true(fault_every(make_and_write, NULL) > 10);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(make__borrows_bags_and_copies_names),
        TEST(make__numbers_what_has_no_name),
        TEST(model__is_that_of_a_file),
        TEST(model__keeps_odd_names),
        TEST(make__refuses_hostile_names),
        TEST(make__refuses_sizes),
        TEST(make__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
