/* What the tests of the data module share: a folder of their own, and files in it. */
#ifndef TEST_DATA_H
#define TEST_DATA_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "finetti/data.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512];

/* Group set-up. */
static inline int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.400s/finetti-test-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

/* Path of a file in the folder; four answers stay valid. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* How many names the folder holds; removes them if asked to. Folders in it must be empty. */
static inline int list_folder(int erase)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (erase)
            remove(in_folder(entry->d_name));
    }
    closedir(dir);
    return count;
}

/* Group tear-down. */
static inline int remove_folder(void **state)
{
    (void)state;
    list_folder(1);
    return rmdir(folder);
}

/* Before each test. */
static inline int empty_folder(void **state)
{
    (void)state;
    list_folder(1);
    return 0;
}

static inline const char *write_file(const char *name, const void *data, size_t size)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The whole file with a NUL behind it; the caller frees it. */
static inline char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long length = ftell(file);
    rewind(file);
    char *data = malloc((size_t)length + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)length, file), (size_t)length);
    data[length] = '\0';
    fclose(file);
    if (size)
        *size = (size_t)length;
    return data;
}

/* Changes one byte of a file where it is: to write a file anew for every byte takes the disk. */
static inline void patch_file(const char *path, size_t at, char byte)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_file_is(const char *path, const char *expected)
{
    char *text = read_file(path, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static inline void assert_message(const fin_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("'%s' is not in the message: %s", part, err->message);
}

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != FIN_OK)                                                                      \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static inline fin_npz *open_npz(const char *path)
{
    fin_error err;
    fin_npz *npz = NULL;
    assert_ok(fin_npz_open(path, &npz, &err));
    return npz;
}

/* x = [1, 2, 3], y = [[4, 5]]. */
static inline void write_small(const char *path)
{
    fin_error err;
    const double x[3] = {1, 2, 3};
    const int64_t y[2] = {4, 5};
    fin_npz_writer *writer;
    assert_ok(fin_npz_create(path, &writer, &err));
    assert_ok(fin_npz_add(writer, "x", FIN_F64, 1, (int64_t[]){3}, x, &err));
    assert_ok(fin_npz_add(writer, "y", FIN_I64, 2, (int64_t[]){1, 2}, y, &err));
    assert_ok(fin_npz_commit(writer, NULL, &err));
}

/* Replayable random bits: xorshift64 (Marsaglia 2003). */
static inline uint64_t next_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
