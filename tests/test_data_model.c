/* Models in files: a fit with its names comes back to the last bit; damaged files, files of others and
 * of later versions are refused, saying which of these they are. */
#include "test_data.h"

#include "data/tensors.h"
#include "fault.h"

#include <math.h>
#include <xxhash.h>

static fin_error err;

static const fin_entry notes[] = {
    {"accuracy", "0.86 +- 0.01"}, {"warning", "first"}, {"warning", "second, with \"quotes\"\n"}};
enum { NOTES = sizeof notes / sizeof *notes };

/* Twelve bags of two tokens; a bag's class is the sign of the larger first column. */
static const char *bags_file(void)
{
    char text[4096];
    size_t used = (size_t)sprintf(text, "bag,label,f1,f2,f3\n");
    for (int i = 0; i < 24; i++) {
        int bag = i / 2, positive = bag % 2;
        used += (size_t)sprintf(text + used, "b%d,%s,%g,%g,%g\n", bag, positive ? "yes" : "no",
                                (i % 2 ? 1.0 : 0.1) * (positive ? 1 : -1) + 0.01 * i, sin(3.0 * i),
                                cos(5.0 * i));
    }
    return write_file("bags.csv", text, used);
}

static fin_bag_set *read_set(const char *path)
{
    fin_bag_set *set = NULL;
    const fin_bags_source source = {.path = path, .ranks = 1, .class_count = -1};
    assert_ok(fin_bag_set_read(&set, &source, NULL, &err));
    return set;
}

static fin_fit *fit_to(const fin_bag_set *set, int model)
{
    fin_fit *fit = NULL;
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = model;
    settings.penalty = 0.01;
    settings.tolerance = 1.0 / 3000;
    settings.landmarks = 5;
    settings.seed = (INT64_C(1) << 53) - 1;
    assert_ok(fin_fit_create(&fit, &settings, fin_bag_set_classes(set), fin_bag_set_bags(set), NULL,
                             NULL, NULL, &err));
    return fit;
}

/* The bytes of a small model, for malloc's free. */
static char *model_bytes(size_t *size)
{
    fin_bag_set *set = read_set(bags_file());
    fin_fit *fit = fit_to(set, FIN_MODEL_SOFTMAX);
    assert_ok(fin_model_write(in_folder("m.fin"), fit, set, notes, NOTES, &err));
    fin_fit_destroy(fit);
    fin_bag_set_destroy(set);
    return read_file(in_folder("m.fin"), size);
}

static void same_predictions(const fin_fit *a, const fin_fit *b, const fin_bag_set *set)
{
    double one[2][64], two[2][64];
    const fin_bags *bags = fin_bag_set_bags(set);
    size_t size = (size_t)(bags->n * fin_bag_set_classes(set)) * sizeof(double);
    assert_true(size <= sizeof one[0]);
    assert_ok(fin_fit_predict(a, bags, one[0], one[1], NULL, &err));
    assert_ok(fin_fit_predict(b, bags, two[0], two[1], NULL, &err));
    assert_memory_equal(one[0], two[0], size);
    assert_memory_equal(one[1], two[1], size);
}

static void model__comes_back(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE, FIN_MODEL_EMBEDDING,
                          FIN_MODEL_STACK};
    fin_bag_set *set = read_set(bags_file());
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        fin_fit *fit = fit_to(set, models[i]);
        fin_model *model;
        assert_ok(fin_model_write(in_folder("m.fin"), fit, set, notes, NOTES, &err));
        assert_ok(fin_model_read(in_folder("m.fin"), &model, &err));
        for (int k = 0; k < fin_fit_table.count; k++) {
            const fin_field *field = &fin_fit_table.fields[k];
            assert_true(fin_settings_get(field, fin_fit_get_settings(fin_model_fit(model))) ==
                        fin_settings_get(field, fin_fit_get_settings(fit)));
        }
        assert_int_equal(fin_model_features(model), 3);
        assert_int_equal(fin_model_classes(model), 2);
        assert_string_equal(fin_model_feature_names(model)[0], "f1");
        assert_string_equal(fin_model_feature_names(model)[2], "f3");
        for (int64_t c = 0; c < 2; c++)
            assert_string_equal(fin_model_class_names(model)[c], fin_bag_set_class(set, c));
        assert_string_equal(fin_model_label(model), "label");
        assert_string_equal(fin_model_bag(model), "bag");
        assert_null(fin_model_group(model));
        const fin_entry *have;
        assert_int_equal(fin_model_notes(model, &have), NOTES);
        for (int k = 0; k < NOTES; k++) {
            assert_string_equal(have[k].key, notes[k].key);
            assert_string_equal(have[k].value, notes[k].value);
        }
        same_predictions(fit, fin_model_fit(model), set);
        /* Written once more, it is the same file. */
        size_t size, again;
        assert_ok(
            fin_model_write(in_folder("n.fin"), fin_model_fit(model), set, have, NOTES, &err));
        char *a = read_file(in_folder("m.fin"), &size), *b = read_file(in_folder("n.fin"), &again);
        assert_int_equal(size, again);
        assert_memory_equal(a, b, size);
        free(a);
        free(b);
        fin_model_destroy(model);
        fin_fit_destroy(fit);
    }
    fin_bag_set_destroy(set);
    fin_model_destroy(NULL);
}

static void refuses(const char *path, fin_status expected, const char *part)
{
    fin_model *model = (void *)&err;
    err.message[0] = '\0';
    fin_status status = fin_model_read(path, &model, &err);
    if (status != expected)
        fail_msg("%s: %s: %s", part, fin_status_name(status), err.message);
    assert_null(model);
    assert_message(&err, path);
    assert_message(&err, part);
}

static void read__notices_every_cut_and_flip(void **state)
{
    (void)state;
    size_t size;
    char *bytes = model_bytes(&size);
    const char *path = write_file("cut.fin", bytes, size);
    for (size_t i = 0; i < size; i++) {
        patch_file(path, i, (char)(bytes[i] ^ 1 << i % 8));
        refuses(path, FIN_ERR_FORMAT, "cut.fin");
        patch_file(path, i, bytes[i]);
    }
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        refuses(path, FIN_ERR_FORMAT, "cut short");
    }
    free(bytes);
}

/* ---- files with a right checksum that are wrong all the same ------------------------------------ */

/* m.fin is in the folder. */
static void need_model(void)
{
    size_t size;
    if (access(in_folder("m.fin"), R_OK) != 0)
        free(model_bytes(&size));
}

/* The model with one entry or one tensor changed: NULL data or value takes it out. */
static const char *changed(const char *key, const char *value, const fin_tensor *instead)
{
    enum { MOST = 64 };
    fin_tensor_file *file;
    fin_entry entries[MOST];
    fin_tensor tensors[MOST];
    const fin_entry *have;
    int64_t used = 0, kept = 0;
    need_model();
    assert_ok(fin_tensors_open(in_folder("m.fin"), &file, &err));
    int64_t count = fini_tensors_entries(file, &have);
    for (int64_t i = 0; i < count; i++)
        if (strcmp(have[i].key, "checksum") != 0 && (!key || strcmp(have[i].key, key) != 0))
            entries[used++] = have[i];
    if (key && value)
        entries[used++] = (fin_entry){key, value};
    for (int64_t i = 0; i < fin_tensors_count(file); i++)
        if (!instead || strcmp(fin_tensors_at(file, i)->name, instead->name) != 0)
            tensors[kept++] = *fin_tensors_at(file, i);
    if (instead && instead->data)
        tensors[kept++] = *instead;
    const char *path = in_folder("changed.fin");
    assert_ok(fin_tensors_write(path, entries, used, tensors, kept, &err));
    fin_tensors_close(file);
    return path;
}

static void read__asks_for_kind_and_version(void **state)
{
    (void)state;
    refuses(changed("finetti", "tensors", NULL), FIN_ERR_FORMAT, "with 'tensors', not a model");
    refuses(changed("version", "3", NULL), FIN_ERR_UNSUPPORTED, "version 3, written by finetti 0.");
    refuses(changed("version", NULL, NULL), FIN_ERR_FORMAT, "no version");
    refuses(write_file("x.fin", "\2\0\0\0\0\0\0\0{}", 10), FIN_ERR_FORMAT, "finetti fit --out");
    refuses(bags_file(), FIN_ERR_FORMAT, "is not a safetensors file");
    refuses(in_folder("none.fin"), FIN_ERR_IO, "none.fin");
}

static void read__rejects_settings(void **state)
{
    (void)state;
    refuses(changed("setting.heads", "0", NULL), FIN_ERR_FORMAT, "heads");
    refuses(changed("setting.heads", "nan", NULL), FIN_ERR_FORMAT, "heads");
    refuses(changed("setting.model", "transformer", NULL), FIN_ERR_FORMAT, "transformer");
    refuses(changed("setting.colour", "red", NULL), FIN_ERR_FORMAT, "colour");
    /* What a file does not have keeps its default. */
    fin_model *model;
    assert_ok(fin_model_read(changed("setting.tolerance", NULL, NULL), &model, &err));
    assert_true(fin_fit_get_settings(fin_model_fit(model))->tolerance == 1e-5);
    fin_model_destroy(model);
    assert_ok(fin_model_read(changed("label", NULL, NULL), &model, &err));
    assert_string_equal(fin_model_label(model), "");
    fin_model_destroy(model);
    /* Files of version 0.1 have no columns of bags and groups, and call the basis features. */
    assert_ok(fin_model_read(changed("bag", NULL, NULL), &model, &err));
    assert_null(fin_model_bag(model));
    fin_model_destroy(model);
    assert_ok(fin_model_read(changed("group", "patient", NULL), &model, &err));
    assert_string_equal(fin_model_bag(model), "bag");
    assert_string_equal(fin_model_group(model), "patient");
    fin_model_destroy(model);
    assert_ok(fin_model_read(changed("setting.features", "linear", NULL), &model, &err));
    fin_model_destroy(model);
    refuses(changed("setting.features", "cubic", NULL), FIN_ERR_FORMAT, "cubic");
    /* A note is note.<number>.<key>. */
    static const char *const others[] = {"note.x", "note..x", "note.7x", "note.7", "note."};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const fin_entry *have;
        assert_ok(fin_model_read(changed(others[i], "no note", NULL), &model, &err));
        assert_int_equal(fin_model_notes(model, &have), NOTES);
        fin_model_destroy(model);
    }
}

static void read__rejects_names(void **state)
{
    (void)state;
    const char *part = "not as many names";
    fin_tensor names = {"names.features", FIN_U8, 1, {9}, "f1\0f2\0f3\0"};
    fin_model *model;
    assert_ok(fin_model_read(changed(NULL, NULL, &names), &model, &err));
    fin_model_destroy(model);
    names.shape[0] = 8; /* the last one has no end */
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names.shape[0] = 6; /* one too few */
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names.shape[0] = 10; /* one too many: an empty one */
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names.data = "f1\0f2\0f3\0x"; /* more behind them */
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names = (fin_tensor){"names.features", FIN_U8, 2, {3, 3}, "f1\0f2\0f3\0"};
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names = (fin_tensor){"names.features", FIN_I32, 1, {2}, "f1\0f2\0f3\0"};
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names = (fin_tensor){"names.features", FIN_U8, 1, {0}, NULL};
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
    names = (fin_tensor){"names.classes", FIN_U8, 1, {0}, NULL};
    refuses(changed(NULL, NULL, &names), FIN_ERR_FORMAT, part);
}

/* Read or refused, in words; 1 if it was refused. */
static int tried(const char *path, const char *name)
{
    fin_model *model = NULL;
    fin_status status = fin_model_read(path, &model, &err);
    if (status && status != FIN_ERR_FORMAT && status != FIN_ERR_UNSUPPORTED)
        fail_msg("%s: %s: %s", name, fin_status_name(status), err.message);
    if (status)
        assert_message(&err, path);
    fin_model_destroy(model);
    return status != FIN_OK;
}

/* Files of version 0.1 do not have these, and a model that is not calibrated has no sharpness. */
static bool may_be_missing(const char *name)
{
    return !strcmp(name, "choice") || !strcmp(name, "sharpness") || !strcmp(name, "range") ||
           !strcmp(name, "hashes");
}

/* Every tensor of the fit missing, of another type, of another shape: refused. */
static void read__rejects_other_tensors(void **state)
{
    (void)state;
    static const double zeros[4096];
    fin_tensor_file *file;
    need_model();
    assert_ok(fin_tensors_open(in_folder("m.fin"), &file, &err));
    for (int64_t i = 0; i < fin_tensors_count(file); i++) {
        const fin_tensor *have = fin_tensors_at(file, i);
        for (int change = 0; change < 4; change++) {
            fin_tensor t = *have;
            if (change == 0)
                t.data = NULL;
            else if (change == 1)
                t.dtype = t.dtype == FIN_F32 ? FIN_F64 : FIN_F32;
            else if (change == 2)
                t = (fin_tensor){.dtype = t.dtype, .ndim = 4, .shape = {2, 3, 5, 1}};
            else
                t.shape[t.ndim ? t.ndim - 1 : t.ndim++] = 1000;
            memcpy(t.name, have->name, sizeof t.name);
            t.data = change ? zeros : NULL;
            bool no = tried(changed(NULL, NULL, &t), t.name);
            if (!no && !(change == 0 && may_be_missing(t.name)))
                fail_msg("tensor '%s', change %d: it was read", t.name, change);
        }
    }
    fin_tensors_close(file);
}

/* Puts the right checksum into a file's bytes. */
static void seal(char *bytes, size_t size)
{
    char digits[FINI_CHECKSUM + 1];
    memset(bytes + 8 + FINI_CHECKSUM_AT, '0', FINI_CHECKSUM);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(bytes, size));
    memcpy(bytes + 8 + FINI_CHECKSUM_AT, digits, FINI_CHECKSUM);
}

/* The first, the second and the last number of every tensor not finite, huge, negative: what is not
 * finite is refused. */
static void read__survives_any_number(void **state)
{
    (void)state;
    const double nasty[] = {NAN, INFINITY, -INFINITY, -1, 1e18, -1e300, 0.5, 0};
    const int64_t whole[] = {-1, INT64_MAX, INT64_MIN, 0, 7, 1 << 30, 3, 1};
    size_t size;
    int refused = 0, all = 0;
    fin_tensor_file *file;
    char *bytes = model_bytes(&size);
    char *at = bytes + 8 + ((unsigned char)bytes[0] | (size_t)(unsigned char)bytes[1] << 8);
    assert_ok(fin_tensors_open(in_folder("m.fin"), &file, &err));
    for (int64_t i = 0; i < fin_tensors_count(file); i++) {
        const fin_tensor *t = fin_tensors_at(file, i);
        int64_t count = 1;
        for (int j = 0; j < t->ndim; j++)
            count *= t->shape[j];
        for (int k = 0; k < 24 && count > 0 && fin_dtype_size(t->dtype) == 8; k++) {
            int64_t e = (int64_t[]){0, count > 1, count - 1}[k % 3];
            char kept[8];
            memcpy(kept, at + 8 * e, 8);
            memcpy(at + 8 * e, t->dtype == FIN_F64 ? (const void *)&nasty[k / 3] : &whole[k / 3],
                   8);
            seal(bytes, size);
            int no = tried(write_file("changed.fin", bytes, size), t->name);
            if (t->dtype == FIN_F64 && !no && !isfinite(nasty[k / 3]))
                fail_msg("tensor '%s', number %d: %g was read", t->name, (int)e, nasty[k / 3]);
            refused += no;
            all++;
            memcpy(at + 8 * e, kept, 8);
        }
        at += count * (int64_t)fin_dtype_size(t->dtype);
    }
    fin_tensors_close(file);
    free(bytes);
    print_message("%d of %d refused\n", refused, all);
}

static void write__rejects_other_bags(void **state)
{
    (void)state;
    fin_bag_set *set = read_set(bags_file());
    fin_fit *fit = fit_to(set, FIN_MODEL_SOFTMAX);
    const char *text = "bag,label,f1\n1,a,1\n1,a,2\n2,b,3\n";
    fin_bag_set *other = read_set(write_file("other.csv", text, strlen(text)));
    assert_int_equal(fin_model_write(in_folder("o.fin"), fit, other, NULL, 0, &err),
                     FIN_ERR_ARGUMENT);
    assert_message(&err, "the fit has 3 columns and 2 classes");
    assert_int_equal(fin_model_write(in_folder("no/o.fin"), fit, set, NULL, 0, &err), FIN_ERR_IO);
    assert_int_equal(list_folder(0), 2);
    fin_bag_set_destroy(other);
    fin_fit_destroy(fit);
    fin_bag_set_destroy(set);
}

static fin_status write_and_read(void *user, fin_error *error)
{
    fin_bag_set *set = NULL;
    fin_model *model = NULL, *again = NULL;
    const fin_bags_source source = {.path = user, .ranks = 1, .class_count = -1};
    fin_status status = fin_model_read(in_folder("m.fin"), &model, error);
    if (!status)
        status = fin_bag_set_read(&set, &source, NULL, error);
    if (!status)
        status =
            fin_model_write(in_folder("n.fin"), fin_model_fit(model), set, notes, NOTES, error);
    if (!status)
        status = fin_model_read(in_folder("n.fin"), &again, error);
    fin_model_destroy(again);
    fin_bag_set_destroy(set);
    fin_model_destroy(model);
    return status;
}

static void model__survives_every_failed_allocation(void **state)
{
    (void)state;
    char path[1024];
    size_t size;
    free(model_bytes(&size));
    snprintf(path, sizeof path, "%s", in_folder("bags.csv"));
    assert_true(fault_every(write_and_read, path) > 10);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(model__comes_back),
        TEST(read__notices_every_cut_and_flip),
        TEST(read__asks_for_kind_and_version),
        TEST(read__rejects_settings),
        TEST(read__rejects_names),
        TEST(read__rejects_other_tensors),
        TEST(read__survives_any_number),
        TEST(write__rejects_other_bags),
        TEST(model__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
