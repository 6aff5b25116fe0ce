/* NPZ archives: written and read back, streamed, failed. That numpy opens them rests on the layout
 * of zip and NPY, of which npz__bytes_are_fixed spells out the bytes. */
#include "test_data.h"

#include "data/data.h"
#include "fault.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

static fin_error err;

static fin_npz_writer *create(const char *path)
{
    fin_npz_writer *npz = NULL;
    assert_ok(fin_npz_create(path, &npz, &err));
    return npz;
}

/* ---- round trips ---------------------------------------------------------------------------- */

static void npz__round_trip_of_every_type(void **state)
{
    (void)state;
    const char *path = in_folder("a.npz");
    const float f4[6] = {1, -2, 3.5f, 4, 5, 6};
    const double f8[2] = {0.1, 1e300};
    const int32_t i4[3] = {-7, 0, INT32_MAX};
    const int64_t i8[3] = {INT64_MIN, 0, INT64_MAX};
    const unsigned char u1[4] = {0, 1, 254, 255};
    const double scalar = 2.5;
    const struct {
        const char *name;
        fin_dtype dtype;
        int ndim;
        int64_t shape[3];
        const void *data;
        size_t bytes;
    } arrays[] = {
        {"f4", FIN_F32, 2, {2, 3}, f4, sizeof f4},
        {"f8", FIN_F64, 1, {2}, f8, sizeof f8},
        {"i4", FIN_I32, 1, {3}, i4, sizeof i4},
        {"i8", FIN_I64, 3, {1, 3, 1}, i8, sizeof i8},
        {"u1", FIN_U8, 1, {4}, u1, sizeof u1},
        {"scalar", FIN_F64, 0, {0}, &scalar, sizeof scalar},
        {"nothing", FIN_F64, 2, {0, 4}, NULL, 0},
        {"gr\xc3\xb6\xc3\x9f"
         "e",
         FIN_F64,
         1,
         {1},
         &scalar,
         sizeof scalar},
    };
    enum { COUNT = sizeof arrays / sizeof *arrays };
    fin_npz_writer *writer = create(path);
    for (int i = 0; i < COUNT; i++)
        assert_ok(fin_npz_add(writer, arrays[i].name, arrays[i].dtype, arrays[i].ndim,
                              arrays[i].shape, arrays[i].data, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
    fin_npz *npz = open_npz(path);
    assert_int_equal(fin_npz_count(npz), COUNT);
    assert_null(fin_npz_name(npz, COUNT));
    assert_null(fin_npz_name(npz, -1));
    for (int i = COUNT - 1; i >= 0; i--) {
        fin_array array, again;
        assert_string_equal(fin_npz_name(npz, i), arrays[i].name);
        assert_ok(fin_npz_array(npz, arrays[i].name, &array, &err));
        assert_int_equal(array.dtype, arrays[i].dtype);
        assert_int_equal(array.ndim, arrays[i].ndim);
        for (int k = 0; k < array.ndim; k++)
            assert_int_equal(array.shape[k], arrays[i].shape[k]);
        assert_int_equal((size_t)array.count * fin_dtype_size(array.dtype), arrays[i].bytes);
        assert_non_null(array.data);
        if (arrays[i].bytes)
            assert_memory_equal(array.data, arrays[i].data, arrays[i].bytes);
        assert_ok(fin_npz_array(npz, arrays[i].name, &again, &err));
        assert_ptr_equal(again.data, array.data);
    }
    fin_npz_close(npz);
    fin_npz_close(NULL);
    assert_int_equal(list_folder(0), 1);
}

typedef struct counter {
    int64_t next, fail_at, calls;
    bool silent;
} counter;

/* 0, 1, 2, ... as i8. */
static fin_status count_up(void *user, void *buffer, size_t bytes, fin_error *e)
{
    counter *c = user;
    int64_t *to = buffer;
    assert_int_equal(bytes % sizeof *to, 0);
    c->calls++;
    for (size_t i = 0; i < bytes / sizeof *to; i++, c->next++) {
        if (c->next == c->fail_at && c->silent)
            return FIN_ERR_UNSUPPORTED;
        if (c->next == c->fail_at)
            return fini_fail(e, FIN_ERR_NUMERIC, "sample %lld went wrong", (long long)c->next);
        to[i] = c->next;
    }
    return FIN_OK;
}

static void npz__stream_of_many_chunks(void **state)
{
    (void)state;
    enum { N = 400003 };
    const char *path = in_folder("s.npz");
    counter first = {.fail_at = -1}, second = {.next = 5, .fail_at = -1};
    fin_npz_writer *writer = create(path);
    assert_ok(
        fin_npz_add_stream(writer, "first", FIN_I64, 1, (int64_t[]){N}, count_up, &first, &err));
    assert_ok(fin_npz_add_stream(writer, "second", FIN_I64, 2, (int64_t[]){3, 2}, count_up, &second,
                                 &err));
    assert_ok(
        fin_npz_add_stream(writer, "none", FIN_I64, 1, (int64_t[]){0}, count_up, &second, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
    assert_int_equal(first.next, N);
    assert_int_equal(second.calls, 1);
    fin_npz *npz = open_npz(path);
    fin_array array;
    assert_ok(fin_npz_array(npz, "first", &array, &err));
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(((const int64_t *)array.data)[i], i);
    assert_ok(fin_npz_array(npz, "second", &array, &err));
    assert_int_equal(((const int64_t *)array.data)[5], 10);
    fin_npz_close(npz);
}

/* Known bytes: a stored zip entry of 1980-01-01 with a version 1.0 NPY header of 128 bytes. */
static void npz__bytes_are_fixed(void **state)
{
    (void)state;
    const char *path = in_folder("a.npz");
    const unsigned char head[] = {'P', 'K', 3, 4};
    const char npy[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, "
                       "'shape': (3,), }";
    size_t size, again_size;
    write_small(path);
    unsigned char *bytes = (unsigned char *)read_file(path, &size);
    assert_memory_equal(bytes, head, sizeof head);
    assert_int_equal(bytes[8] | bytes[9] << 8, 0);     /* stored */
    assert_int_equal(bytes[10] | bytes[11] << 8, 0);   /* 00:00:00 */
    assert_int_equal(bytes[12] | bytes[13] << 8, 33);  /* 1980-01-01 */
    assert_int_equal(bytes[18] | bytes[19] << 8, 152); /* 128 + 3 * 8 */
    assert_int_equal(bytes[28] | bytes[29] << 8, 0);   /* no extra field, so the data come next */
    assert_memory_equal(bytes + 30, "x.npy", 5);
    assert_memory_equal(bytes + 35, npy, sizeof npy - 1);
    assert_int_equal(bytes[35 + 127], '\n');
    assert_memory_equal(bytes + 35 + 128, &(double){1}, 8);
    setenv("TZ", "Asia/Tokyo", 1);
    write_small(path);
    unsetenv("TZ");
    char *again = read_file(path, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
}

/* ---- failures while writing ----------------------------------------------------------------- */

static void create_fails(const char *path, const char *part)
{
    fin_npz_writer *writer = (void *)&err;
    assert_int_equal(fin_npz_create(path, &writer, &err), FIN_ERR_IO);
    assert_null(writer);
    assert_message(&err, part);
}

static void npz__create_rejects_bad_paths(void **state)
{
    (void)state;
    create_fails(in_folder("none/a.npz"), strerror(ENOENT));
    create_fails(folder, "is a folder");
    create_fails("/dev/null", "device");
    create_fails("-", "standard output");
}

static void npz__add_rejects_bad_arguments(void **state)
{
    (void)state;
    const double x[4] = {0};
    int64_t three[] = {3}, huge[] = {INT64_C(1) << 40, INT64_C(1) << 40}, negative[] = {-1},
            tricky[] = {0, INT64_MAX, INT64_MAX};
    int64_t many[FIN_DIMS_MAX + 1] = {0};
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    fin_npz_writer *writer = create(in_folder("a.npz"));
    assert_int_equal(fin_npz_add(writer, "", FIN_F64, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, name, FIN_F64, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a/b", FIN_F64, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", (fin_dtype)99, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", (fin_dtype)-1, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, -1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, FIN_DIMS_MAX + 1, many, x, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, 2, huge, x, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "overflows");
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, 1, negative, x, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, 1, three, NULL, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_npz_commit(writer, NULL, &err), FIN_ERR_ARGUMENT); /* none was added */
    assert_message(&err, "at least one");
    assert_int_equal(list_folder(0), 0);
    writer = create(in_folder("a.npz"));
    assert_ok(fin_npz_add(writer, "a", FIN_F64, 1, three, x, &err));
    assert_int_equal(fin_npz_add(writer, "a", FIN_F64, 1, three, x, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "two arrays");
    assert_ok(fin_npz_add(writer, "many", FIN_F64, FIN_DIMS_MAX, many, NULL, &err));
    assert_ok(fin_npz_add(writer, "tricky", FIN_F64, 3, tricky, NULL, &err));
    fin_npz_abort(writer);
    fin_npz_abort(NULL);
    assert_int_equal(list_folder(0), 0);
}

static fin_status commit_counter(const char *path, counter *c, const fin_progress *progress)
{
    fin_npz_writer *writer = create(path);
    assert_ok(fin_npz_add_stream(writer, "c", FIN_I64, 1, (int64_t[]){1000000}, count_up, c, &err));
    return fin_npz_commit(writer, progress, &err);
}

static void npz__failed_stream_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = write_file("a.npz", "old", 3);
    counter c = {.fail_at = 500000};
    assert_int_equal(commit_counter(path, &c, NULL), FIN_ERR_NUMERIC);
    assert_string_equal(err.message, "sample 500000 went wrong");
    c = (counter){.fail_at = 0, .silent = true};
    assert_int_equal(commit_counter(path, &c, NULL), FIN_ERR_UNSUPPORTED);
    assert_message(&err, "c.npy");
    assert_file_is(path, "old");
    assert_int_equal(list_folder(0), 1);
}

typedef struct watcher {
    int calls, cancel_at;
    double last;
} watcher;

static int watch(void *user, const char *what, double done, double total)
{
    watcher *w = user;
    assert_non_null(what);
    assert_true(done >= w->last && done <= total && total == 8e6);
    w->last = done;
    return w->calls++ == w->cancel_at;
}

static void npz__progress_and_cancel(void **state)
{
    (void)state;
    const char *path = in_folder("a.npz");
    watcher w = {.cancel_at = 3};
    fin_progress progress = {watch, &w};
    counter c = {.fail_at = -1};
    assert_int_equal(commit_counter(path, &c, &progress), FIN_ERR_CANCELLED);
    assert_message(&err, "cancelled");
    assert_int_equal(list_folder(0), 0);
    w = (watcher){.cancel_at = -1};
    c = (counter){.fail_at = -1};
    assert_int_equal(commit_counter(path, &c, &progress), FIN_OK);
    assert_true(w.calls > 4);
}

static void npz__full_disk_leaves_nothing(void **state)
{
    (void)state;
    const char *path = in_folder("a.npz");
    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = 1000000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    counter c = {.fail_at = -1};
    fin_status status = commit_counter(path, &c, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, FIN_ERR_IO);
    assert_message(&err, strerror(EFBIG));
    assert_message(&err, "a.npz");
    assert_int_equal(list_folder(0), 0);
}

/* ---- faults --------------------------------------------------------------------------------- */

static fin_status write_and_read(void *user, fin_error *e)
{
    const double x[3] = {1, 2, 3};
    counter c = {.fail_at = -1};
    fin_npz_writer *writer;
    fin_npz *npz;
    fin_array array;
    fin_status status = fin_npz_create(user, &writer, e);
    if (status)
        return status;
    status = fin_npz_add(writer, "x", FIN_F64, 1, (int64_t[]){3}, x, e);
    if (!status)
        status = fin_npz_add_stream(writer, "c", FIN_I64, 1, (int64_t[]){9}, count_up, &c, e);
    if (status) {
        fin_npz_abort(writer);
        return status;
    }
    status = fin_npz_commit(writer, NULL, e);
    if (!status)
        status = fin_npz_open(user, &npz, e);
    if (status)
        return status;
    status = fin_npz_array(npz, "x", &array, e);
    if (!status)
        status = fin_npz_array(npz, "c", &array, e);
    fin_npz_close(npz);
    return status;
}

static void npz__survives_allocation_faults(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/a.npz", folder);
    assert_true(fault_every(write_and_read, path) >= 10);
    assert_int_equal(list_folder(0), 1);
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(npz__round_trip_of_every_type),
        TEST(npz__stream_of_many_chunks),
        TEST(npz__bytes_are_fixed),
        TEST(npz__create_rejects_bad_paths),
        TEST(npz__add_rejects_bad_arguments),
        TEST(npz__failed_stream_leaves_the_old_file),
        TEST(npz__progress_and_cancel),
        TEST(npz__full_disk_leaves_nothing),
        TEST(npz__survives_allocation_faults),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
