/* Tensors in files: what is written comes back, the same bytes every time, in the layout that
 * Python's safetensors demands. What hostile and damaged files do is in test_data_tensors_bad.c. */
#include "test_data.h"

#include "data/tensors.h"
#include "fault.h"

#include <xxhash.h>

static fin_error err;

static const double f64[6] = {1, -2.5, 1e300, 0, -0.0, 4.9e-324};
static const float f32[3] = {1.5F, -3e38F, 0};
static const int64_t i64[2] = {INT64_MIN, INT64_MAX};
static const int32_t i32[2] = {INT32_MIN, 7};
static const uint8_t u8[5] = {0, 1, 2, 254, 255};

static const fin_tensor all[] = {
    {"bytes", FIN_U8, 1, {5}, u8},           {"a", FIN_F32, 3, {1, 3, 1}, f32},
    {"0.members", FIN_F64, 2, {2, 3}, f64},  {"whole", FIN_I64, 1, {2}, i64},
    {"half", FIN_I32, 4, {1, 2, 1, 1}, i32}, {"nothing", FIN_F64, 2, {0, 3}, NULL},
    {"one", FIN_F64, 0, {0}, f64 + 2},
};
enum { ALL = sizeof all / sizeof *all };

static const fin_entry metadata[] = {
    {"finetti", "test"}, {"version", "3"}, {"text", "quote \" backslash \\ line\nend \xc3\xa9"}};

static const char *write_all(const char *name)
{
    const char *path = in_folder(name);
    assert_ok(fin_tensors_write(path, metadata, 3, all, ALL, &err));
    return path;
}

static fin_tensor_file *open_tensors(const char *path)
{
    fin_tensor_file *file = NULL;
    assert_ok(fin_tensors_open(path, &file, &err));
    return file;
}

static void tensors__come_back(void **state)
{
    (void)state;
    fin_tensor_file *file = open_tensors(write_all("a.fin"));
    assert_int_equal(fin_tensors_count(file), ALL);
    for (int i = 0; i < ALL; i++) {
        const fin_tensor *t = fin_tensors_find(file, all[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, all[i].dtype);
        assert_int_equal(t->ndim, all[i].ndim);
        int64_t count = 1;
        for (int j = 0; j < t->ndim; j++) {
            assert_int_equal(t->shape[j], all[i].shape[j]);
            count *= t->shape[j];
        }
        assert_int_equal((uintptr_t)t->data % fin_dtype_size(t->dtype), 0);
        if (count)
            assert_memory_equal(t->data, all[i].data, (size_t)count * fin_dtype_size(t->dtype));
    }
    assert_null(fin_tensors_find(file, "other"));
    assert_null(fin_tensors_at(file, -1));
    assert_null(fin_tensors_at(file, ALL));
    assert_string_equal(fin_tensors_entry(file, "finetti"), "test");
    assert_string_equal(fin_tensors_entry(file, "text"), metadata[2].value);
    assert_null(fin_tensors_entry(file, "none"));
    fin_tensors_close(file);
    fin_tensors_close(NULL);
}

/* Byte by byte, as the layout is described; made by hand. */
static void tensors__have_the_layout(void **state)
{
    (void)state;
    const fin_tensor two[] = {{"b", FIN_U8, 1, {2}, u8}, {"x", FIN_F64, 1, {1}, f64}};
    const char *path = in_folder("layout.fin");
    assert_ok(fin_tensors_write(path, metadata, 2, two, 2, &err));
    size_t size;
    char *bytes = read_file(path, &size), expected[512];
    int length =
        snprintf(expected, sizeof expected,
                 "{\"__metadata__\":{\"checksum\":\"%.16s\",\"finetti\":\"test\",\"version\":\"3\","
                 "\"written_by\":\"finetti %s\"},"
                 "\"x\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                 "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]}}",
                 bytes + 8 + FINI_CHECKSUM_AT, fin_version());
    while ((8 + length) % 64 != 0)
        expected[length++] = ' ';
    assert_int_equal(size, 8 + (size_t)length + 10);
    assert_int_equal((unsigned char)bytes[0] | (unsigned char)bytes[1] << 8, length);
    assert_memory_equal(bytes + 2, "\0\0\0\0\0", 6);
    assert_memory_equal(bytes + 8, expected, (size_t)length);
    assert_memory_equal(bytes + 8 + length, f64, 8);
    assert_memory_equal(bytes + 16 + length, u8, 2);
    char digits[17], told[17] = "";
    memcpy(told, bytes + 8 + FINI_CHECKSUM_AT, 16);
    memset(bytes + 8 + FINI_CHECKSUM_AT, '0', 16);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(bytes, size));
    assert_string_equal(told, digits);
    free(bytes);
}

static void tensors__same_bytes(void **state)
{
    (void)state;
    size_t size, again;
    char *a = read_file(write_all("a.fin"), &size), *b = read_file(write_all("b.fin"), &again);
    assert_int_equal(size, again);
    assert_memory_equal(a, b, size);
    free(a);
    free(b);
    /* None at all is a file too. */
    assert_ok(fin_tensors_write(in_folder("none.fin"), NULL, 0, NULL, 0, &err));
    fin_tensor_file *file = open_tensors(in_folder("none.fin"));
    assert_int_equal(fin_tensors_count(file), 0);
    assert_string_equal(fin_tensors_entry(file, "finetti"), "tensors");
    assert_string_equal(fin_tensors_entry(file, "version"), "1");
    fin_tensors_close(file);
}

static void write_fails(const fin_entry *entries, int64_t entry_count, const fin_tensor *tensors,
                        int64_t count, const char *part)
{
    const char *path = in_folder("bad.fin");
    assert_int_equal(fin_tensors_write(path, entries, entry_count, tensors, count, &err),
                     FIN_ERR_ARGUMENT);
    assert_message(&err, "bad.fin");
    assert_message(&err, part);
    assert_int_equal(list_folder(0), 0);
}

static void write__rejects(void **state)
{
    (void)state;
    fin_tensor t = {"x", FIN_F64, 1, {1}, f64};
    write_fails(NULL, 0, (fin_tensor[]){t, t}, 2, "two tensors are called 'x'");
    write_fails(NULL, 0, &(fin_tensor){"", FIN_F64, 1, {1}, f64}, 1, "cannot name a tensor");
    write_fails(NULL, 0, &(fin_tensor){"__metadata__", FIN_F64, 1, {1}, f64}, 1, "cannot name");
    write_fails(NULL, 0, &(fin_tensor){"\xff", FIN_F64, 1, {1}, f64}, 1, "cannot name");
    write_fails(NULL, 0, &(fin_tensor){"a\nb", FIN_F64, 1, {1}, f64}, 1, "cannot name");
    memset(t.name, 'x', sizeof t.name);
    write_fails(NULL, 0, &t, 1, "1 to 47 bytes");
    t = all[2];
    t.dtype = (fin_dtype)99;
    write_fails(NULL, 0, &t, 1, "unknown element type");
    t = all[2];
    t.ndim = 5;
    write_fails(NULL, 0, &t, 1, "4 axes");
    t.ndim = -1;
    write_fails(NULL, 0, &t, 1, "axes");
    t = all[2];
    t.shape[0] = -1;
    write_fails(NULL, 0, &t, 1, "negative");
    t.shape[0] = t.shape[1] = INT64_C(1) << 40;
    write_fails(NULL, 0, &t, 1, "overflows");
    t = all[2];
    t.data = NULL;
    write_fails(NULL, 0, &t, 1, "no data");
    write_fails(&(fin_entry){"checksum", "1"}, 1, all, ALL, "'checksum' cannot be an entry");
    write_fails((fin_entry[]){{"a", "1"}, {"a", "2"}}, 2, all, ALL, "'a' cannot be an entry");
    write_fails(&(fin_entry){"a", NULL}, 1, all, ALL, "have a value");
    write_fails(&(fin_entry){NULL, "a"}, 1, all, ALL, "NULL");
    write_fails(&(fin_entry){"a", "\xff"}, 1, all, ALL, "the text of 'a' is not UTF-8");
    char *text = malloc(FINI_HEADER_MOST + 1);
    assert_non_null(text);
    memset(text, 'a', FINI_HEADER_MOST);
    text[FINI_HEADER_MOST] = '\0';
    write_fails(&(fin_entry){"a", text}, 1, all, ALL, "at most 8388608 are allowed");
    free(text);
}

/* A file that is there stays as it is if it cannot be replaced. */
static void write__whole_or_absent(void **state)
{
    (void)state;
    const char *path = write_file("kept.fin", "kept", 4);
    fin_tensor bad = all[2];
    bad.data = NULL;
    assert_int_equal(fin_tensors_write(path, NULL, 0, &bad, 1, &err), FIN_ERR_ARGUMENT);
    assert_file_is(path, "kept");
    assert_int_equal(fin_tensors_write("/dev/full", NULL, 0, all, ALL, &err), FIN_ERR_IO);
    assert_message(&err, "/dev/full");
    assert_int_equal(fin_tensors_write(in_folder("no/x.fin"), NULL, 0, all, ALL, &err), FIN_ERR_IO);
    assert_ok(fin_tensors_write(path, NULL, 0, all, ALL, &err));
    fin_tensors_close(open_tensors(path));
    assert_int_equal(list_folder(0), 1);
}

static fin_status write_and_read(void *user, fin_error *error)
{
    fin_tensor_file *file = NULL;
    fin_status status = fin_tensors_write(user, metadata, 3, all, ALL, error);
    if (!status)
        status = fin_tensors_open(user, &file, error);
    fin_tensors_close(file);
    return status;
}

static void tensors__survive_every_failed_allocation(void **state)
{
    (void)state;
    assert_true(fault_every(write_and_read, (void *)in_folder("fault.fin")) > 4);
}

/* More tensors than anybody needs: in seconds, whatever their order. */
static void tensors__many(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    fin_tensor *many = calloc(MANY, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < MANY; i++) {
        many[i] = (fin_tensor){.dtype = FIN_U8, .ndim = 1, .shape = {1}, .data = u8 + i % 5};
        snprintf(many[i].name, sizeof many[i].name, "%d", i);
    }
    assert_ok(fin_tensors_write(in_folder("many.fin"), NULL, 0, many, MANY, &err));
    free(many);
    fin_tensor_file *file = open_tensors(in_folder("many.fin"));
    assert_int_equal(fin_tensors_count(file), MANY);
    assert_int_equal(*(const uint8_t *)fin_tensors_find(file, "49999")->data, u8[4]);
    fin_tensors_close(file);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors__come_back),     TEST(tensors__have_the_layout),
        TEST(tensors__same_bytes),    TEST(write__rejects),
        TEST(write__whole_or_absent), TEST(tensors__survive_every_failed_allocation),
        TEST(tensors__many),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
