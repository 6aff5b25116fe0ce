/* One NPY file mapped into memory: a gigabyte of tokens is neither read nor copied, and processes
 * that share a machine share its pages.
 *
 * The mapping is read-only and its bounds are those of the file when it was opened: a header that
 * asks for more than the file has is refused. A file that another program cuts short while it is
 * mapped ends this one with SIGBUS; that is the price of not copying, and why everything else in
 * this room is read instead. Small arrays that are checked and then trusted (offsets) are copied by
 * the caller, because whoever may write to the file could change them in between. */
#include "data/bags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the description; *start is where the elements begin. */
static fin_status describe(const unsigned char *bytes, size_t size, const char *label,
                           fin_array *array, size_t *start, fin_error *err)
{
    unsigned char prefix[12] = {0};
    size_t from, length;
    memcpy(prefix, bytes, size < sizeof prefix ? size : sizeof prefix);
    fin_status status = fini_npy_prefix(prefix, label, &from, &length, err);
    if (status)
        return status;
    if (size < from || length > size - from)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short inside its description", label);
    status = fini_npy_describe((const char *)bytes + from, length, label, array, err);
    if (status)
        return status;
    *start = from + length;
    uint64_t need = (uint64_t)array->count * fin_dtype_size(array->dtype);
    if (need != size - *start)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has %llu bytes of elements where its shape asks for %llu%s", label,
                         (unsigned long long)(size - *start), (unsigned long long)need,
                         need > size - *start ? "; the file is cut short" : "");
    return FIN_OK;
}

static fin_status map_file(int fd, const char *path, fini_npy *map, fin_error *err)
{
    struct stat info;
    char label[320];
    size_t start = 0;
    snprintf(label, sizeof label, "'%.300s'", path);
    if (fstat(fd, &info) != 0)
        return fini_fail_io(err, "read", path, errno);
    if (!S_ISREG(info.st_mode))
        return fini_fail(err, FIN_ERR_IO, "cannot read '%.300s': it is %s, not a regular file",
                         path, S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    if (info.st_size == 0)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is empty", label);
    if ((uintmax_t)info.st_size > SIZE_MAX / 2)
        return fini_fail_io(err, "read", path, EFBIG);
    map->size = (size_t)info.st_size;
    map->base = mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map->base == MAP_FAILED) {
        int number = errno;
        map->base = NULL;
        return number == ENOMEM ? fini_fail_memory(err, map->size, label)
                                : fini_fail_io(err, "map", path, number);
    }
    fin_status status = describe(map->base, map->size, label, &map->array, &start, err);
    map->array.data = (const char *)map->base + start;
    return status;
}

fin_status fini_npy_map(const char *path, fini_npy *map, fin_error *err)
{
    *map = (fini_npy){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return fini_fail_io(err, "read", path, errno);
    fin_status status = map_file(fd, path, map, err);
    close(fd);
    if (status)
        fini_npy_unmap(map);
    return status;
}

void fini_npy_unmap(fini_npy *map)
{
    if (map->base)
        munmap(map->base, map->size);
    *map = (fini_npy){0};
}
