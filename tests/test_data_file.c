/* The all-or-nothing output file: where it goes, what is left when something fails. */
#define _XOPEN_SOURCE 700 /* S_IFMT and friends, symlink, mkfifo */
#include "test_data.h"

#include "data/data.h"
#include "fault.h"
#include "test_skip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static fin_error err;

static fini_output *open_output(const char *path)
{
    fini_output *output = NULL;
    assert_ok(fini_output_open(path, false, &output, &err));
    assert_non_null(output);
    return output;
}

static void refuses(const char *path, bool seekable, fin_status expected, const char *part)
{
    fini_output *output = (void *)&err;
    assert_int_equal(fini_output_open(path, seekable, &output, &err), expected);
    assert_null(output);
    assert_message(&err, part);
}

static void output__appears_only_at_commit(void **state)
{
    (void)state;
    const char *path = in_folder("a.txt");
    fini_output *output = open_output(path);
    assert_ok(fini_output_write(output, "hello\n", 6, &err));
    assert_int_equal(access(path, F_OK), -1);
    assert_true(list_folder(0) <=
                1); /* none where a file may have no name, else the temporary one */
    assert_ok(fini_output_commit(output, &err));
    assert_file_is(path, "hello\n");
    assert_int_equal(list_folder(0), 1);
}

static void output__abort_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = write_file("a.txt", "old", 3);
    fini_output *output = open_output(path);
    assert_ok(fini_output_write(output, "new", 3, &err));
    fini_output_abort(output);
    fini_output_abort(NULL);
    assert_file_is(path, "old");
    assert_int_equal(list_folder(0), 1);
}

static void output__mode_follows_umask_and_old_file(void **state)
{
    (void)state;
    struct stat info;
    mode_t before = umask(027);
    const char *path = in_folder("a.txt");
    assert_ok(fini_output_commit(open_output(path), &err));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_ok(fini_output_commit(open_output(path), &err));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0604);
    umask(before);
}

static void output__follows_symbolic_link(void **state)
{
    (void)state;
    const char *target = write_file("target", "old", 3), *link = in_folder("link");
    struct stat info;
    assert_int_equal(symlink("target", link), 0);
    fini_output *output = open_output(link);
    assert_ok(fini_output_write(output, "new", 3, &err));
    assert_ok(fini_output_commit(output, &err));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_file_is(target, "new");
    assert_int_equal(unlink(target), 0);
    refuses(link, false, FIN_ERR_IO, "symbolic link to nothing");
}

static void output__large_and_small_writes_keep_order(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    unsigned char *data = malloc(SIZE);
    uint64_t seed = 7;
    for (int i = 0; i < SIZE; i++)
        data[i] = (unsigned char)next_bits(&seed);
    const char *path = in_folder("a.bin");
    fini_output *output = open_output(path);
    for (size_t at = 0, piece; at < SIZE; at += piece) {
        piece = next_bits(&seed) % (next_bits(&seed) % 4 ? 100 : 200000);
        piece = piece < SIZE - at ? piece : SIZE - at;
        assert_ok(fini_output_write(output, data + at, piece, &err));
        assert_int_equal(fini_output_tell(output), at + piece);
    }
    assert_ok(fini_output_commit(output, &err));
    size_t size;
    char *back = read_file(path, &size);
    assert_int_equal(size, SIZE);
    assert_memory_equal(back, data, SIZE);
    free(back);
    free(data);
}

static void output__seeks(void **state)
{
    (void)state;
    const char *path = in_folder("a.bin");
    fini_output *output;
    assert_ok(fini_output_open(path, true, &output, &err));
    assert_ok(fini_output_write(output, "0123456789", 10, &err));
    assert_ok(fini_output_seek(output, 2, &err));
    assert_ok(fini_output_write(output, "ab", 2, &err));
    assert_int_equal(fini_output_tell(output), 4);
    assert_ok(fini_output_seek(output, 10, &err));
    assert_ok(fini_output_write(output, "!", 1, &err));
    assert_ok(fini_output_commit(output, &err));
    assert_file_is(path, "01ab456789!");
}

static void output__rejects_bad_names(void **state)
{
    (void)state;
    char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    refuses("", false, FIN_ERR_ARGUMENT, "empty");
    refuses(folder, false, FIN_ERR_IO, folder);
    refuses(folder, false, FIN_ERR_IO, "is a folder");
    refuses(in_folder("none/"), false, FIN_ERR_IO, "names a folder");
    refuses(in_folder("none/a.txt"), false, FIN_ERR_IO, strerror(ENOENT));
    refuses(in_folder("none/a.txt"), false, FIN_ERR_IO, "none/a.txt");
    write_file("plain", "", 0);
    refuses(in_folder("plain/a.txt"), false, FIN_ERR_IO, strerror(ENOTDIR));
    refuses(longest, false, FIN_ERR_IO, strerror(ENAMETOOLONG));
    refuses("-", true, FIN_ERR_IO, "standard output");
    refuses("/dev/null", true, FIN_ERR_IO, "device");
}

static void output__rejects_what_may_not_be_written(void **state)
{
    (void)state;
    const uid_t me = geteuid(), nobody = 65534; /* to root nothing is forbidden */
    const char *path = write_file("readonly", "old", 3);
    assert_int_equal(chmod(path, 0444), 0);
    if (me == 0) {
        assert_int_equal(chown(path, nobody, (gid_t)-1), 0);
        assert_int_equal(chown(folder, nobody, (gid_t)-1), 0);
        assert_int_equal(seteuid(nobody), 0);
    }
    refuses(path, false, FIN_ERR_IO, strerror(EACCES));
    assert_int_equal(chmod(folder, 0555), 0);
    refuses(in_folder("new"), false, FIN_ERR_IO, strerror(EACCES));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(seteuid(me), 0);
}

static void output__full_device_is_reported_and_kept(void **state)
{
    (void)state;
    struct stat info;
    char data[100] = "";
    if (stat("/dev/full", &info) != 0 || access("/dev/full", W_OK) != 0)
        SKIP("no /dev/full");
    fini_output *output = open_output("/dev/full");
    assert_ok(fini_output_write(output, data, sizeof data, &err)); /* still in the buffer */
    assert_int_equal(fini_output_commit(output, &err), FIN_ERR_IO);
    assert_message(&err, "/dev/full");
    assert_message(&err, strerror(ENOSPC));
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    output = open_output("/dev/full");
    fin_status status = FIN_OK;
    for (int i = 0; i < 10000 && !status; i++)
        status = fini_output_write(output, data, sizeof data, &err);
    assert_int_equal(status, FIN_ERR_IO);
    assert_int_equal(fini_output_write(output, data, 1, NULL), FIN_ERR_IO);
    assert_int_equal(fini_output_commit(output, NULL), FIN_ERR_IO);
}

/* A limit on the size of files is the nearest thing to a full disk a test can have. */
static void output__full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = write_file("a.txt", "old", 3);
    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    fini_output *output = open_output(path);
    for (int i = 0; i < 20000; i++)
        fini_output_write(output, "0123456789", 10, NULL);
    fin_status status = fini_output_commit(output, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, FIN_ERR_IO);
    assert_message(&err, strerror(EFBIG));
    assert_file_is(path, "old");
    assert_int_equal(list_folder(0), 1);
}

static void output__rename_failure_leaves_nothing(void **state)
{
    (void)state;
    const char *path = in_folder("a.txt");
    fini_output *output = open_output(path);
    assert_int_equal(mkdir(path, 0777), 0); /* appears after the check */
    assert_int_equal(fini_output_commit(output, &err), FIN_ERR_IO);
    assert_message(&err, "a.txt");
    assert_int_equal(list_folder(0), 1);
}

static void output__pipe_is_written_directly(void **state)
{
    (void)state;
    const char *path = in_folder("pipe");
    char data[8] = "";
    assert_int_equal(mkfifo(path, 0666), 0);
    int fd = open(path, O_RDWR); /* so that nobody waits */
    assert_true(fd >= 0);
    fini_output *output = open_output(path);
    assert_ok(fini_output_write(output, "hello", 5, &err));
    assert_ok(fini_output_commit(output, &err));
    assert_int_equal(read(fd, data, sizeof data), 5);
    assert_string_equal(data, "hello");
    close(fd);
}

static void output__dash_is_standard_output(void **state)
{
    (void)state;
    const char *path = in_folder("stdout");
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), fd = open(path, O_WRONLY | O_CREAT, 0666);
    dup2(fd, STDOUT_FILENO);
    printf("first ");
    fini_output *output = NULL;
    fin_status status = fini_output_open("-", false, &output, &err);
    if (!status)
        status = fini_output_write(output, "second", 6, &err);
    if (!status)
        status = fini_output_commit(output, &err);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(status, FIN_OK);
    assert_file_is(path, "first second");
}

static fin_status write_once(void *user, fin_error *e)
{
    fini_output *output;
    fin_status status = fini_output_open(user, false, &output, e);
    if (status)
        return status;
    fini_output_write(output, "x", 1, NULL);
    return fini_output_commit(output, e);
}

static void output__survives_allocation_faults(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/a.txt", folder);
    assert_true(fault_every(write_once, path) >= 1);
    assert_int_equal(list_folder(0), 1);
}

static void printable__cuts_and_cleans(void **state)
{
    (void)state;
    char out[16];
    assert_string_equal(fini_printable("abc", 3, out, sizeof out), "abc");
    assert_string_equal(fini_printable("a\x1b[2J\n\x7f", 7, out, sizeof out), "a?[2J??");
    assert_string_equal(fini_printable("\xc3\xbc\xff\xc2\x80z", 6, out, sizeof out), "\xc3\xbc??z");
    assert_string_equal(fini_printable("0123456789abcdefghi", 19, out, sizeof out),
                        "0123456789ab...");
    assert_string_equal(fini_printable("", 0, out, sizeof out), "");
}

#define TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(output__appears_only_at_commit),
        TEST(output__abort_leaves_the_old_file),
        TEST(output__mode_follows_umask_and_old_file),
        TEST(output__follows_symbolic_link),
        TEST(output__large_and_small_writes_keep_order),
        TEST(output__seeks),
        TEST(output__rejects_bad_names),
        TEST(output__rejects_what_may_not_be_written),
        TEST(output__full_device_is_reported_and_kept),
        TEST(output__full_disk_leaves_the_old_file),
        TEST(output__rename_failure_leaves_nothing),
        TEST(output__pipe_is_written_directly),
        TEST(output__dash_is_standard_output),
        TEST(output__survives_allocation_faults),
        TEST(printable__cuts_and_cleans),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
