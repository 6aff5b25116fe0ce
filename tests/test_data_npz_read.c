/* NPZ archives that others wrote, or that were damaged on the way: read, or refused in words. */
#include "test_data.h"

#include "data/data.h"

#include <errno.h>
#include <zip.h>

static fin_error err;

/* An archive with one entry "x.npy" of these bytes. */
static const char *zip_of(const void *data, size_t size, bool deflate)
{
    const char *path = in_folder("z.npz");
    int code;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    zip_source_t *source = zip_source_buffer(zip, data, size, 0);
    zip_int64_t index = zip_file_add(zip, "x.npy", source, 0);
    assert_true(index >= 0);
    zip_set_file_compression(zip, (zip_uint64_t)index, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    assert_int_equal(zip_close(zip), 0);
    return path;
}

/* An entry of version 1.0 with this description and `bytes` zeros behind it. */
static fin_status read_described(const char *description, size_t bytes, fin_array *array)
{
    char data[2048] = "\x93NUMPY\x01";
    size_t length = strlen(description);
    data[8] = (char)(length & 0xff);
    data[9] = (char)(length >> 8);
    memcpy(data + 10, description, length);
    fin_npz *npz = open_npz(zip_of(data, 10 + length + bytes, false));
    fin_status status = fin_npz_array(npz, "x", array, &err);
    fin_npz_close(npz);
    return status;
}

static void refuses(const char *description, size_t bytes, fin_status expected, const char *part)
{
    fin_array array;
    fin_status status = read_described(description, bytes, &array);
    if (status != expected)
        fail_msg("%s: %s: %s", description, fin_status_name(status), err.message);
    assert_message(&err, "array 'x' of");
    assert_message(&err, "z.npz");
    assert_message(&err, part);
}

static void npz__reads_descriptions(void **state)
{
    (void)state;
    fin_array a;
    const char *same[] = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f8\"}",
        "{ 'shape' : ( 2L , 3L ) , 'descr' : '<f8' , 'fortran_order' : False , } \n",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_ok(read_described(same[i], 48, &a));
        assert_int_equal(a.dtype, FIN_F64);
        assert_int_equal(a.ndim, 2);
        assert_int_equal(a.shape[0], 2);
        assert_int_equal(a.shape[1], 3);
    }
    assert_ok(read_described("{'descr': '|u1', 'fortran_order': True, 'shape': (5,), }", 5, &a));
    assert_int_equal(a.count, 5);
    assert_ok(read_described("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", 4, &a));
    assert_int_equal(a.count, 1);
}

static void npz__rejects_descriptions(void **state)
{
    (void)state;
    const fin_status format = FIN_ERR_FORMAT, other = FIN_ERR_UNSUPPORTED;
    refuses("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 48, other, "objects");
    refuses("{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }", 16, other, "big-endian");
    refuses("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", 16, other, "'<c16'");
    refuses("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", 12, other, "holds texts");
    refuses("{'descr': '<U', 'fortran_order': False, 'shape': (1,), }", 12, other, "'<U'");
    refuses("{'descr': '|S99999999', 'fortran_order': False, 'shape': (1,), }", 12, other, "S9999");
    refuses("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }", 11, format,
            "asks for 12");
    refuses("{'descr': '|S9999999', 'fortran_order': False, 'shape': (1152921504606846976,), }", 8,
            format, "overflows");
    refuses("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", 8, other,
            "structured");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 16, format,
            "has 16 bytes of elements where its shape asks for 24");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 16, format, "asks for 8");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8,
            format, "overflows");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }", 8,
            format, "overflows");
    refuses("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8,
            format, "cannot be read");
    const char *broken[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f8'}",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f8",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'extra': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x",
        "{'a_key_that_is_longer_than_any_key_may_be': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        refuses(broken[i], 8, format, "cannot be read");
}

static void bytes_refused(const void *data, size_t size, const char *part)
{
    fin_array array;
    fin_npz *npz = open_npz(zip_of(data, size, false));
    assert_int_equal(fin_npz_array(npz, "x", &array, &err), FIN_ERR_FORMAT);
    assert_message(&err, part);
    fin_npz_close(npz);
}

static void npz__rejects_prefixes(void **state)
{
    (void)state;
    bytes_refused("", 0, "cut short");
    bytes_refused("\x93NUMPY", 6, "cut short");
    bytes_refused("NUMPY is not here", 17, "magic");
    bytes_refused("\x93NUMPY\x09\x00\x00\x00\x00\x00\x00\x00", 14, "version 9");
    bytes_refused("\x93NUMPY\x01\x00\x76\x00{'descr'", 18, "inside its description");
    bytes_refused("\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'", 20, "at most 65536");
}

static void npz__reads_deflated_and_checks_sums(void **state)
{
    (void)state;
    enum { N = 1000 };
    char data[FINI_NPY_HEADER_MOST + N];
    size_t head = fini_npy_header("|u1", 1, (int64_t[]){N}, data), size;
    memset(data + head, 'A', N);
    fin_array array;
    fin_npz *npz = open_npz(zip_of(data, head + N, true));
    assert_ok(fin_npz_array(npz, "x", &array, &err));
    assert_memory_equal(array.data, data + head, N);
    fin_npz_close(npz);
    char *bytes = read_file(zip_of(data, head + N, false), &size);
    bytes[30 + 5 + head + 500] ^= 1; /* one element */
    npz = open_npz(write_file("z.npz", bytes, size));
    free(bytes);
    assert_int_equal(fin_npz_array(npz, "x", &array, &err), FIN_ERR_FORMAT);
    assert_message(&err, "CRC");
    assert_null(array.data);
    fin_npz_close(npz);
}

static void open_fails(const char *path, fin_status expected, const char *part)
{
    fin_npz *npz = (void *)&err;
    assert_int_equal(fin_npz_open(path, &npz, &err), expected);
    assert_null(npz);
    assert_message(&err, path);
    assert_message(&err, part);
}

static void npz__open_rejects_bad_files(void **state)
{
    (void)state;
    open_fails(in_folder("none.npz"), FIN_ERR_IO, strerror(ENOENT));
    open_fails(folder, FIN_ERR_IO, "is a folder");
    open_fails("/dev/null", FIN_ERR_IO, "device");
    open_fails(write_file("empty", "", 0), FIN_ERR_FORMAT, "empty");
    open_fails(write_file("text", "a,b\n1,2\n", 8), FIN_ERR_FORMAT, "np.savez");
    const char *path = in_folder("a.npz");
    write_small(path);
    fin_npz *npz = open_npz(path);
    fin_array array;
    assert_int_equal(fin_npz_array(npz, "z", &array, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "has no array 'z'; it has x, y");
    fin_npz_close(npz);
}

/* Reads all it can; whatever is refused must have a message. */
static void read_everything(const char *path)
{
    fin_npz *npz;
    fin_array array;
    err.message[0] = '\0';
    if (fin_npz_open(path, &npz, &err)) {
        assert_message(&err, "cut.npz");
        return;
    }
    for (int64_t i = 0; i < fin_npz_count(npz); i++) {
        err.message[0] = '\0';
        if (fin_npz_array(npz, fin_npz_name(npz, i), &array, &err))
            assert_message(&err, "cut.npz");
        else
            assert_non_null(array.data);
    }
    fin_npz_close(npz);
}

static void npz__truncated_or_damaged_anywhere(void **state)
{
    (void)state;
    size_t size;
    const unsigned char nasty[] = {0x00, 0x01, 0x7f, 0xff};
    const char *path = in_folder("a.npz");
    write_small(path);
    char *bytes = read_file(path, &size);
    for (size_t cut = 0; cut <= size; cut++)
        read_everything(write_file("cut.npz", bytes, cut));
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < sizeof nasty; k++) {
            char kept = bytes[i];
            bytes[i] = (char)nasty[k];
            read_everything(write_file("cut.npz", bytes, size));
            bytes[i] = kept;
        }
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(npz__reads_descriptions),     TEST(npz__rejects_descriptions),
        TEST(npz__rejects_prefixes),       TEST(npz__reads_deflated_and_checks_sums),
        TEST(npz__open_rejects_bad_files), TEST(npz__truncated_or_damaged_anywhere),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
