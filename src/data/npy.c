/* The NPY description that stands before the bytes of an array:
 *     \x93NUMPY, version (2 bytes), length (2 bytes in version 1, 4 in 2 and 3),
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   spaces, newline
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 * The text is a Python literal. What is read here is the part of that language that numpy writes
 * for arrays of plain numbers and of texts; everything else is named in the message and refused.
 * Numbers that are no fin_dtype (float16, short integers), and arrays in Fortran order, are
 * converted. */
#include "data/bags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are read and written as they lie in memory, which must be little-endian"
#endif

enum { WORD = 32, DESCRIPTION_MOST = 1 << 16 };

/* ---- writing ------------------------------------------------------------------------------ */

size_t fini_npy_header(const char *descr, int ndim, const int64_t *shape,
                       char buffer[FINI_NPY_HEADER_MOST])
{
    enum { PREFIX = 10, ALIGN = 64 };
    char *text = buffer + PREFIX;
    size_t room = FINI_NPY_HEADER_MOST - PREFIX, used;
    used =
        (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
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

/* Types that are read as others. */
static const struct converted {
    char descr[4];
    fini_npy_kind kind;
    size_t size;
    fin_dtype as;
} converted[] = {
    {"|b1", FINI_NPY_SAME, 1, FIN_U8}, /* numpy's True and False are bytes 1 and 0 */
    {"<f2", FINI_NPY_HALF, 2, FIN_F32}, {"|i1", FINI_NPY_I8, 1, FIN_I32},
    {"<i2", FINI_NPY_I16, 2, FIN_I32},  {"<u2", FINI_NPY_U16, 2, FIN_I32},
    {"<u4", FINI_NPY_U32, 4, FIN_I64},
};

/* "<U12", "|S7": texts of a fixed length. */
static bool find_texts(const char *descr, fini_npy_form *form)
{
    bool wide = descr[0] == '<' && descr[1] == 'U', bytes = descr[0] == '|' && descr[1] == 'S';
    size_t digits = wide || bytes ? strspn(descr + 2, "0123456789") : 0;
    if (digits < 1 || digits > 7 || descr[2 + digits])
        return false;
    form->kind = wide ? FINI_NPY_WIDE : FINI_NPY_BYTES;
    form->size = (wide ? 4 : 1) * (size_t)strtol(descr + 2, NULL, 10);
    return true;
}

static fin_status find_dtype(const char *descr, const char *label, fin_array *out,
                             fini_npy_form *form, fin_error *err)
{
    const char *shown = FINI_SHOW(descr);
    out->dtype = FIN_U8;
    if (fini_dtype_find(descr, true, &out->dtype)) {
        form->size = fin_dtype_size(out->dtype);
        return FIN_OK;
    }
    for (size_t i = 0; i < sizeof converted / sizeof *converted; i++)
        if (strcmp(descr, converted[i].descr) == 0) {
            out->dtype = converted[i].as;
            form->kind = converted[i].kind;
            form->size = converted[i].size;
            return FIN_OK;
        }
    if (find_texts(descr, form))
        return FIN_OK;
    if (strchr(descr, 'O'))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is an array of Python objects; save plain numbers (astype('<f8'))",
                         label);
    if (descr[0] == '>')
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is big-endian ('%s'); save it as little-endian (astype('<f8'))", label,
                         shown);
    return fini_fail(
        err, FIN_ERR_UNSUPPORTED,
        "%s has elements of type '%s'; read are <f2, <f4, <f8, |i1, <i2, <i4, <i8, |u1, "
        "<u2, <u4 and |b1, and texts (<U, |S)",
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
                             fini_npy_form *form, fin_error *err)
{
    reader r = {text, text + size};
    description d = {0};
    char shown[80];
    memset(out, 0, sizeof *out);
    *form = (fini_npy_form){0};
    bool good = take_dictionary(&r, &d, out);
    if (d.structured)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s is a structured array; save each field as an array of its own", label);
    if (!good)
        return fini_fail(err, FIN_ERR_FORMAT, "%s has an NPY description that cannot be read: %s",
                         label, fini_printable(text, size, shown, sizeof shown));
    FINI_TRY(find_dtype(d.descr, label, out, form, err));
    form->fortran = d.fortran && out->ndim > 1;
    if (!fini_shape_count(out->dtype, out->ndim, out->shape, &out->count) ||
        __builtin_mul_overflow(out->count, (int64_t)form->size, &form->bytes))
        return fini_fail(err, FIN_ERR_FORMAT, "%s has a shape whose size overflows", label);
    return FIN_OK;
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* A half has 5 bits of exponent where a float has 8: shifted into its place, it is too small by
 * 2^(127 - 15). Exact, for numbers below the normal ones as well. */
float fini_half(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    float value;
    if (bits >= UINT32_C(31) << 23) { /* infinite or NaN */
        bits |= UINT32_C(0xff) << 23;
    } else {
        memcpy(&value, &bits, sizeof value);
        value *= 0x1p112f;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define CONVERT(type, as, expression)                                                              \
    for (int64_t k = 0; k < count; k++) {                                                          \
        type x;                                                                                    \
        memcpy(&x, (const char *)from + (size_t)k * sizeof x, sizeof x);                           \
        ((as *)to)[k * stride] = (as)(expression);                                                 \
    }                                                                                              \
    break;

/* Elements that are neighbours in the file; in the array they are `stride` apart. */
static void convert(const fini_npy_form *form, int64_t count, const void *from, int64_t stride,
                    void *to)
{
    switch (form->kind) {
    case FINI_NPY_HALF:
        CONVERT(uint16_t, float, fini_half(x))
    case FINI_NPY_I8:
        CONVERT(signed char, int32_t, x)
    case FINI_NPY_I16:
        CONVERT(int16_t, int32_t, x)
    case FINI_NPY_U16:
        CONVERT(uint16_t, int32_t, x)
    case FINI_NPY_U32:
        CONVERT(uint32_t, int64_t, x)
    default:
        for (int64_t k = 0; k < count; k++)
            memcpy((char *)to + (size_t)(k * stride) * form->size,
                   (const char *)from + (size_t)k * form->size, form->size);
    }
}

void fini_npy_place(const fini_npy_form *form, const fin_array *array, int64_t first, int64_t count,
                    const void *from, void *to)
{
    const char *next = from;
    size_t size = form->kind < FINI_NPY_BYTES ? fin_dtype_size(array->dtype) : form->size;
    int64_t length = form->fortran ? array->shape[0] : array->count;
    if (count <= 0) /* an axis may be 0 */
        return;
    int64_t stride = form->fortran ? array->count / length : 1;
    while (count > 0) {
        int64_t inside = first % length, run = length - inside < count ? length - inside : count;
        int64_t at = inside * stride, rest = first / length, step = stride;
        for (int j = 1; form->fortran && j < array->ndim; j++) {
            step /= array->shape[j];
            at += rest % array->shape[j] * step;
            rest /= array->shape[j];
        }
        convert(form, run, next, stride, (char *)to + (size_t)at * size);
        next += (size_t)run * form->size;
        first += run;
        count -= run;
    }
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
                           fini_npy *map, size_t *start, fin_error *err)
{
    unsigned char prefix[12] = {0};
    size_t from, length;
    memcpy(prefix, bytes, size < sizeof prefix ? size : sizeof prefix);
    FINI_TRY(fini_npy_prefix(prefix, label, &from, &length, err));
    if (size < from || length > size - from)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short inside its description", label);
    FINI_TRY(
        fini_npy_describe((const char *)bytes + from, length, label, &map->array, &map->form, err));
    *start = from + length;
    uint64_t need = (uint64_t)map->form.bytes;
    if (need != size - *start)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has %llu bytes of elements where its shape asks for %llu%s", label,
                         (unsigned long long)(size - *start), (unsigned long long)need,
                         need > size - *start ? "; the file is cut short" : "");
    return FIN_OK;
}

/* The array as it is used, in memory of its own; the mapping is no longer needed. */
static fin_status convert_mapped(fini_npy *map, const char *label, fin_error *err)
{
    enum { TURN = 1 << 20 };
    const fin_array *array = &map->array;
    int64_t count = array->count, turns = (count + TURN - 1) / TURN;
    size_t size = map->form.kind < FINI_NPY_BYTES ? fin_dtype_size(array->dtype) : map->form.size;
    const char *from = array->data;
    int threads = turns > 1 ? fin_threads_get() : 1;
    map->owned = fini_alloc_array(count + 1, size ? size : 1);
    if (!map->owned)
        return fini_fail_memory(err, (size_t)count * size, label);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < turns; i++) {
        int64_t first = i * TURN, left = count - first;
        fini_npy_place(&map->form, array, first, left < TURN ? left : TURN,
                       from + (size_t)first * map->form.size, map->owned);
    }
    map->array.data = map->owned;
    munmap(map->base, map->size);
    map->base = NULL;
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
    FINI_TRY(describe(map->base, map->size, label, map, &start, err));
    map->array.data = (const char *)map->base + start;
    return fini_npy_plain(&map->form) ? FIN_OK : convert_mapped(map, label, err);
}

fin_status fini_npy_map(const char *path, fini_npy *map, fin_error *err)
{
    int fd;
    int64_t size;
    *map = (fini_npy){0};
    FINI_TRY(fini_open_regular(path, &fd, &size, err));
    fin_status status = map_file(fd, size, path, map, err);
    close(fd);
    if (status)
        fini_npy_unmap(map);
    return status;
}

void fini_npy_unmap(fini_npy *map)
{
    if (map->base)
        munmap(map->base, map->size);
    fini_free(map->owned);
    *map = (fini_npy){0};
}
