/* Tensors from files of others, hostile ones and damaged ones: read, or refused in words. */
#include "test_data.h"

#include "data/tensors.h"

#include <errno.h>
#include <xxhash.h>

static fin_error err;

/* A file with this header and so many bytes 0, 1, 2, ... of data. */
static const char *file_of(const char *header, size_t bytes)
{
    static char data[1 << 16];
    size_t length = strlen(header);
    assert_true(8 + length + bytes <= sizeof data);
    for (int i = 0; i < 8; i++)
        data[i] = (char)(length >> 8 * i & 0xff);
    memcpy(data + 8, header, length);
    for (size_t i = 0; i < bytes; i++)
        data[8 + length + i] = (char)i;
    return write_file("x.fin", data, 8 + length + bytes);
}

static void refuses_as(const char *path, fin_status expected, const char *part)
{
    fin_tensor_file *file = (void *)&err;
    err.message[0] = '\0';
    fin_status status = fin_tensors_open(path, &file, &err);
    if (status != expected)
        fail_msg("%s: %s: %s", part, fin_status_name(status), err.message);
    assert_null(file);
    assert_message(&err, path);
    assert_message(&err, part);
}

static void refuses(const char *header, size_t bytes, const char *part)
{
    refuses_as(file_of(header, bytes), FIN_ERR_FORMAT, part);
}

static fin_tensor_file *reads(const char *header, size_t bytes)
{
    fin_tensor_file *file = NULL;
    assert_ok(fin_tensors_open(file_of(header, bytes), &file, &err));
    return file;
}

/* Without metadata, in any order, with spaces, and where elements are not aligned. */
static void open__reads_files_of_others(void **state)
{
    (void)state;
    fin_tensor_file *file = reads(
        "{\"b\": {\"shape\": [2], \"dtype\": \"F64\", \"data_offsets\": [3, 19]},\n"
        " \"a\": {\"dtype\": \"U8\", \"shape\": [3], \"data_offsets\": [0, 3], \"more\": {}},\n"
        " \"e\": {\"dtype\": \"I64\", \"shape\": [0, 7], \"data_offsets\": [3, 3]}}   ",
        19);
    assert_int_equal(fin_tensors_count(file), 3);
    assert_string_equal(fin_tensors_at(file, 0)->name, "a");
    assert_string_equal(fin_tensors_at(file, 2)->name, "b");
    const fin_tensor *b = fin_tensors_find(file, "b");
    assert_int_equal((uintptr_t)b->data % 64, 0);
    const unsigned char *bytes = b->data;
    for (int i = 0; i < 16; i++)
        assert_int_equal(bytes[i], 3 + i);
    assert_null(fin_tensors_entry(file, "finetti"));
    fin_tensors_close(file);
    fin_tensors_close(reads("{}", 0));
    /* Somebody else's checksum is nothing to us. */
    file = reads("{\"__metadata__\":{\"checksum\":\"1\"}}", 0);
    assert_string_equal(fin_tensors_entry(file, "checksum"), "1");
    fin_tensors_close(file);
}

static void open__rejects_lengths(void **state)
{
    (void)state;
    refuses_as(in_folder("none.fin"), FIN_ERR_IO, strerror(ENOENT));
    refuses_as(folder, FIN_ERR_IO, "is a folder");
    refuses_as("/dev/null", FIN_ERR_IO, "device");
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    refuses_as(in_folder("pipe"), FIN_ERR_IO, "pipe");
    refuses_as(write_file("x", "", 0), FIN_ERR_FORMAT, "0 bytes");
    refuses_as(write_file("x", "\2\0\0\0\0\0\0\0", 8), FIN_ERR_FORMAT, "cut short");
    refuses_as(write_file("x", "\3\0\0\0\0\0\0\0{}", 10), FIN_ERR_FORMAT, "a header of 3 bytes");
    refuses_as(write_file("x", "\0\0\0\0\0\0\0\0{}", 10), FIN_ERR_FORMAT, "a header of 0 bytes");
    refuses_as(write_file("x", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), FIN_ERR_FORMAT,
               "a header of 18446744073709551615 bytes");
    refuses_as(write_file("x", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10), FIN_ERR_FORMAT,
               "a header of 9223372036854775807 bytes");
    refuses_as(write_file("x", "bag_id,label,f1\n1,2,3\n", 22), FIN_ERR_FORMAT,
               "is not a safetensors file");
    size_t size = FINI_HEADER_MOST + 10;
    char *large = calloc(1, size);
    assert_non_null(large);
    memcpy(large, "\1\0\x80\0\0\0\0\0{", 9);
    refuses_as(write_file("x", large, size), FIN_ERR_FORMAT, "has 8388609 bytes; at most 8388608");
    free(large);
}

static void open__rejects_headers(void **state)
{
    (void)state;
    const char *none = "is no JSON that can be read", *shape = "is not what its shape asks for",
               *keys = "no readable dtype, shape and data_offsets", *place = "no holes";
    refuses("{]", 0, none);
    refuses("{} x", 0, none);
    refuses(" {}", 0, "is not a safetensors file");
    refuses("[1]", 0, "is not a safetensors file");
    refuses("{\"a\":1,\"a\":2}", 0, none);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, "duplicate");
    refuses("{\"\xff\":1}", 0, none);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,1]}}", 1,
            none);
    refuses("{\"__metadata__\":1}", 0, "metadata");
    refuses("{\"__metadata__\":[]}", 0, "metadata");
    refuses("{\"__metadata__\":{\"a\":1}}", 0, "metadata");
    refuses("{\"a\":1}", 0, keys);
    refuses("{\"a\":{}}", 0, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":{},\"data_offsets\":[0,1]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1.0]}}", 1, keys);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, shape);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, shape);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, shape);
    refuses("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, shape);
    refuses("{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296,0,1],"
            "\"data_offsets\":[0,4]}}",
            4, shape);
    refuses("{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
            0, shape);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, place);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
            3, place);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
            2, place);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
            5, place);
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1,
            "have 2 bytes, and 1 are there");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 3, "3 are there");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1152921504606846976],"
            "\"data_offsets\":[0,1152921504606846976]}}",
            3, "3 are there");
    refuses("{}", 1, "1 are there");
}

static void open__names_what_it_cannot_read(void **state)
{
    (void)state;
    refuses_as(file_of("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4),
               FIN_ERR_UNSUPPORTED, "has dtype BF16");
    refuses_as(
        file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,1]}}", 1),
        FIN_ERR_UNSUPPORTED, "5 axes");
    refuses_as(file_of("{\"0123456789012345678901234567890123456789012345678\":"
                       "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                       1),
               FIN_ERR_UNSUPPORTED, "at most 47 bytes");
    refuses_as(
        file_of("{\"a\\u001b[2J\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
        FIN_ERR_UNSUPPORTED, "'a?[2J'");
}

/* Nested as deep as the header has room for. */
static void open__survives_nesting(void **state)
{
    (void)state;
    static char header[60001];
    const char *const openings[] = {"[", "{\"a\":"};
    for (int i = 0; i < 2; i++) {
        header[0] = '\0';
        strcpy(header, "{\"a\":");
        size_t used = strlen(header), step = strlen(openings[i]);
        for (; used + step < sizeof header; used += step)
            memcpy(header + used, openings[i], step + 1);
        refuses(header, 0, "is no JSON that can be read");
    }
    for (int depth = 1; depth < 2000; depth += 333) {
        char *to = header + sprintf(header, "{\"a\":");
        memset(to, '[', (size_t)depth);
        memset(to + depth, ']', (size_t)depth);
        strcpy(to + 2 * depth, "}");
        refuses(header, 0, "no readable dtype");
    }
}

/* ---- files of ours ------------------------------------------------------------------------------ */

static const double numbers[3] = {1, 2, 3};
static const fin_tensor ours[] = {{"x", FIN_F64, 1, {3}, numbers}, {"b", FIN_U8, 1, {1}, numbers}};

static char *own_file(const fin_entry *metadata, int64_t entries, size_t *size)
{
    const char *path = in_folder("own.fin");
    assert_ok(fin_tensors_write(path, metadata, entries, ours, 2, &err));
    return read_file(path, size);
}

static void open__notices_every_cut(void **state)
{
    (void)state;
    size_t size;
    char *bytes = own_file(NULL, 0, &size);
    char *longer = calloc(1, size + 1);
    assert_non_null(longer);
    memcpy(longer, bytes, size);
    const char *path = write_file("cut.fin", longer, size + 1);
    refuses_as(path, FIN_ERR_FORMAT, "damaged");
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        refuses_as(path, FIN_ERR_FORMAT, "cut short");
    }
    free(longer);
    free(bytes);
}

/* Every bit of every byte, and some nasty values. */
static void open__notices_every_flip(void **state)
{
    (void)state;
    size_t size;
    int said = 0, tried = 0;
    char *bytes = own_file(NULL, 0, &size);
    const char *path = write_file("flip.fin", bytes, size);
    for (size_t i = 0; i < size; i++) {
        const char nasty[] = {0, '"', ' ', '}'};
        for (int k = 0; k < 12; k++) {
            const char byte = k < 8 ? (char)(bytes[i] ^ 1 << k) : nasty[k - 8];
            if (byte == bytes[i])
                continue;
            patch_file(path, i, byte);
            refuses_as(path, FIN_ERR_FORMAT, "flip.fin");
            said += strstr(err.message, "damaged") != NULL;
            tried++;
        }
        patch_file(path, i, bytes[i]);
    }
    free(bytes);
    print_message("%d flips, %d called damage\n", tried, said);
    assert_true(said > tried * 9 / 10); /* the others are in the length */
}

/* A program that reads and writes safetensors keeps our metadata, but not our checksum's place. */
static void open__notices_files_written_anew(void **state)
{
    (void)state;
    refuses("{\"__metadata__\":{\"finetti\":\"model\",\"checksum\":\"0123456789abcdef\"}}", 0,
            "its checksum is not in its place");
    refuses("{\"__metadata__\":{\"finetti\":\"model\"}}", 0, "its checksum is not in its place");
    refuses("{\"__metadata__\":{\"checksum\":\"0123456789abcdef\"}}", 0,
            "its checksum is 0123456789abcdef");
}

static void open_as_model(const fin_entry *metadata, int64_t entries, fin_status expected,
                          const char *part)
{
    size_t size;
    fin_tensor_file *file;
    free(own_file(metadata, entries, &size));
    assert_int_equal(fini_tensors_open(in_folder("own.fin"), "model", 2, &file, &err), expected);
    assert_message(&err, part);
    fin_tensors_close(file);
}

static void open__asks_for_kind_and_version(void **state)
{
    (void)state;
    err.message[0] = '\0';
    open_as_model((fin_entry[]){{"finetti", "model"}, {"version", "2"}}, 2, FIN_OK, "");
    open_as_model((fin_entry[]){{"finetti", "model"}, {"version", "1"}}, 2, FIN_OK, "");
    open_as_model(
        (fin_entry[]){{"finetti", "model"}, {"version", "3"}, {"written_by", "finetti 9.8.7"}}, 3,
        FIN_ERR_UNSUPPORTED,
        "of version 3, written by finetti 9.8.7; finetti 0.1.0 reads version 2");
    open_as_model(NULL, 0, FIN_ERR_FORMAT, "with 'tensors', not a model");
    const char *const wrong[] = {"", "0", "-1", "x", "1.5", "99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        open_as_model((fin_entry[]){{"finetti", "model"}, {"version", wrong[i]}}, 2, FIN_ERR_FORMAT,
                      "no version that can be read");
    open_as_model((fin_entry[]){{"finetti", "model"}}, 1, FIN_ERR_FORMAT, "no version");
    fin_tensor_file *file;
    assert_int_equal(fini_tensors_open(file_of("{}", 0), "model", 2, &file, &err), FIN_ERR_FORMAT);
    assert_message(&err, "is a safetensors file, but not a model of finetti; finetti fit --out");
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(open__reads_files_of_others),     TEST(open__rejects_lengths),
        TEST(open__rejects_headers),           TEST(open__names_what_it_cannot_read),
        TEST(open__survives_nesting),          TEST(open__notices_every_cut),
        TEST(open__notices_every_flip),        TEST(open__notices_files_written_anew),
        TEST(open__asks_for_kind_and_version),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
