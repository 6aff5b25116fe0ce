/* The NPY description that stands before the bytes of an array:
 *     \x93NUMPY, version (2 bytes), length (2 bytes in version 1, 4 in 2 and 3),
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   spaces, newline
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 * The text is a Python literal. What is read here is the part of that language that numpy writes
 * for arrays of plain numbers; everything else is named in the message and refused. */
#include "data/bags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are read and written as they lie in memory, which must be little-endian"
#endif

enum { WORD = 32, DESCRIPTION_MOST = 1 << 16 };

/* ---- writing ------------------------------------------------------------------------------ */

size_t fini_npy_header(fin_dtype dtype, int ndim, const int64_t *shape,
                       char buffer[FINI_NPY_HEADER_MOST])
{
    enum { PREFIX = 10, ALIGN = 64 };
    char *text = buffer + PREFIX;
    size_t room = FINI_NPY_HEADER_MOST - PREFIX, used;
    used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                            fini_dtypes[dtype].descr);
    for (int i = 0; i < ndim; i++)
        used += (size_t)snprintf(text + used, room - used, i + 1 < ndim ? "%lld, " : "%lld",
                                 (long long)shape[i]);
    used += (size_t)snprintf(text + used, room - used, ndim == 1 ? ",), }" : "), }");
    size_t total = (PREFIX + used + 1 + ALIGN - 1) / ALIGN * ALIGN; /* 1: the newline */
    memset(text + used, ' ', total - PREFIX - used);
    buffer[total - 1] = '\n';
    memcpy(buffer, "\x93NUMPY\x01\x00", 8);
    buffer[8] = (char)((total - PREFIX) & 0xff);
    buffer[9] = (char)((total - PREFIX) >> 8);
    return total;
}

/* ---- reading ------------------------------------------------------------------------------ */

fin_status fini_npy_prefix(const unsigned char bytes[12], const char *label, size_t *start,
                           size_t *size, fin_error *err)
{
    if (memcmp(bytes, "\x93NUMPY", 6) != 0)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is not in NPY format (wrong magic bytes)", label);
    if (bytes[6] < 1 || bytes[6] > 3)
        return fini_fail(err, FIN_ERR_FORMAT, "%s has NPY version %d; 1, 2 and 3 are read", label,
                         bytes[6]);
    *start = bytes[6] == 1 ? 10 : 12;
    *size = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        *size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*size > DESCRIPTION_MOST)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has a description of %zu bytes; at most %d are read", label, *size,
                         DESCRIPTION_MOST);
    return FIN_OK;
}

typedef struct reader {
    const char *p, *end;
} reader;

static void skip_spaces(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

/* Takes the character if it comes next. */
static bool take(reader *r, char c)
{
    skip_spaces(r);
    bool found = r->p < r->end && *r->p == c;
    r->p += found;
    return found;
}

static bool take_string(reader *r, char word[WORD])
{
    size_t length = 0;
    skip_spaces(r);
    char quote = r->p < r->end ? *r->p : '\0';
    if (quote != '\'' && quote != '"')
        return false;
    for (r->p++; r->p < r->end && *r->p != quote; r->p++) {
        if (length + 1 == WORD)
            return false;
        word[length++] = *r->p;
    }
    word[length] = '\0';
    return take(r, quote);
}

static bool take_bool(reader *r, bool *value)
{
    skip_spaces(r);
    size_t left = (size_t)(r->end - r->p);
    *value = left >= 4 && memcmp(r->p, "True", 4) == 0;
    if (!*value && !(left >= 5 && memcmp(r->p, "False", 5) == 0))
        return false;
    r->p += *value ? 4 : 5;
    return true;
}

static bool take_length(reader *r, int64_t *value)
{
    skip_spaces(r);
    const char *start = r->p;
    *value = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (__builtin_mul_overflow(*value, (int64_t)10, value) ||
            __builtin_add_overflow(*value, (int64_t)(*r->p - '0'), value))
            return false;
    bool found = r->p > start;
    if (found && r->p < r->end && *r->p == 'L') /* Python 2 wrote its long integers so */
        r->p++;
    return found;
}

/* "()", "(3,)", "(3, 4)", "(3, 4,)". */
static bool take_shape(reader *r, fin_array *out)
{
    out->ndim = 0;
    if (!take(r, '('))
        return false;
    while (!take(r, ')')) {
        if (out->ndim == FIN_DIMS_MAX || !take_length(r, &out->shape[out->ndim++]))
            return false;
        if (!take(r, ',') && (r->p == r->end || *r->p != ')'))
            return false;
    }
    return true;
}

static fin_status find_dtype(const char *descr, const char *label, fin_array *out, fin_error *err)
{
    const char *shown = FINI_SHOW(descr);
    if (fini_dtype_find(descr, true, &out->dtype))
        return FIN_OK;
    if (strcmp(descr, "|b1") == 0) { /* numpy's True and False are bytes 1 and 0 */
        out->dtype = FIN_U8;
        return FIN_OK;
    }
    if (strchr(descr, 'O'))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is an array of Python objects; save plain numbers (astype('<f8'))",
                         label);
    if (descr[0] == '>')
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is big-endian ('%s'); save it as little-endian (astype('<f8'))", label,
                         shown);
    return fini_fail(err, FIN_ERR_UNSUPPORTED,
                     "%s has elements of type '%s'; read are <f4, <f8, <i4, <i8, |u1 and |b1",
                     label, shown);
}

typedef struct description {
    char descr[WORD];
    bool fortran, structured;
    bool seen[3]; /* descr, fortran_order, shape */
} description;

/* One "key: value" of the three; false if it is anything else. */
static bool take_pair(reader *r, description *d, fin_array *out)
{
    char key[WORD];
    if (!take_string(r, key) || !take(r, ':'))
        return false;
    int which = strcmp(key, "descr") == 0           ? 0
                : strcmp(key, "fortran_order") == 0 ? 1
                : strcmp(key, "shape") == 0         ? 2
                                                    : -1;
    if (which < 0 || d->seen[which])
        return false;
    d->seen[which] = true;
    if (which == 0) {
        d->structured = take(r, '['); /* then the rest need not be understood */
        return !d->structured && take_string(r, d->descr);
    }
    return which == 1 ? take_bool(r, &d->fortran) : take_shape(r, out);
}

static bool take_dictionary(reader *r, description *d, fin_array *out)
{
    if (!take(r, '{'))
        return false;
    while (!take(r, '}')) {
        if (!take_pair(r, d, out))
            return false;
        if (!take(r, ',') && (r->p == r->end || *r->p != '}'))
            return false;
    }
    skip_spaces(r);
    return r->p == r->end && d->seen[0] && d->seen[1] && d->seen[2];
}

fin_status fini_npy_describe(const char *text, size_t size, const char *label, fin_array *out,
                             fin_error *err)
{
    reader r = {text, text + size};
    description d = {0};
    char shown[80];
    memset(out, 0, sizeof *out);
    bool good = take_dictionary(&r, &d, out);
    if (d.structured)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is a structured array; save each field as an array of its own", label);
    if (!good)
        return fini_fail(err, FIN_ERR_FORMAT, "%s has an NPY description that cannot be read: %s",
                         label, fini_printable(text, size, shown, sizeof shown));
    fin_status status = find_dtype(d.descr, label, out, err);
    if (status)
        return status;
    if (d.fortran && out->ndim > 1)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is in Fortran order; save np.ascontiguousarray of it", label);
    if (!fini_shape_count(out->dtype, out->ndim, out->shape, &out->count))
        return fini_fail(err, FIN_ERR_FORMAT, "%s has a shape whose size overflows", label);
    return FIN_OK;
}

/* ---- one file, mapped ------------------------------------------------------------------------ */

/* A file mapped into memory: a gigabyte of tokens is neither read nor copied, and processes
 * that share a machine share its pages.
 *
 * The mapping is read-only and its bounds are those of the file when it was opened: a header that
 * asks for more than the file has is refused. A file that another program cuts short while it is
 * mapped ends this one with SIGBUS; that is the price of not copying, and why everything else in
 * this module is read instead. Small arrays that are checked and then trusted (offsets) are copied by
 * the caller, because whoever may write to the file could change them in between. */

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

static fin_status map_file(int fd, int64_t size, const char *path, fini_npy *map, fin_error *err)
{
    char label[320];
    size_t start = 0;
    snprintf(label, sizeof label, "'%.300s'", path);
    if (size == 0)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is empty", label);
    if ((uintmax_t)size > SIZE_MAX / 2)
        return fini_fail_io(err, "read", path, EFBIG);
    map->size = (size_t)size;
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
    int fd;
    int64_t size;
    *map = (fini_npy){0};
    fin_status status = fini_open_regular(path, &fd, &size, err);
    if (status)
        return status;
    status = map_file(fd, size, path, map, err);
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
