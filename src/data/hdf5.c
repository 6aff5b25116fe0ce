/* HDF5 files, through the HDF5 library, which is loaded when the first such file is opened: it is
 * larger than this one, and who has no such files needs no such library. A build without its headers
 * says so, as does a machine without it.
 *
 * The library is not made for several threads at once and prints what goes wrong: whoever uses it is
 * alone and silent from fini_h5_enter to fini_h5_leave. */
#define _POSIX_C_SOURCE 200809L
#include "data/bags.h"

#include <stdio.h>
#include <string.h>

#ifdef FINETTI_HDF5

#include <dlfcn.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { READ_ONLY = 0 }; /* H5F_ACC_RDONLY, whose macro calls the library */

/* What is called of the library. */
#define CALLS(C)                                                                                   \
    C(H5open)                                                                                      \
    C(H5get_libversion)                                                                            \
    C(H5Eget_auto2)                                                                                \
    C(H5Eset_auto2)                                                                                \
    C(H5Fopen)                                                                                     \
    C(H5Fclose)                                                                                    \
    C(H5Lexists)                                                                                   \
    C(H5Lget_name_by_idx)                                                                          \
    C(H5Oopen)                                                                                     \
    C(H5Oclose)                                                                                    \
    C(H5Iget_type)                                                                                 \
    C(H5Dget_space)                                                                                \
    C(H5Dget_type)                                                                                 \
    C(H5Dget_create_plist)                                                                         \
    C(H5Pget_layout)                                                                               \
    C(H5Pget_chunk)                                                                                \
    C(H5Pclose)                                                                                    \
    C(H5Sget_simple_extent_ndims)                                                                  \
    C(H5Sget_simple_extent_dims)                                                                   \
    C(H5Sselect_hyperslab)                                                                         \
    C(H5Screate_simple)                                                                            \
    C(H5Sclose)                                                                                    \
    C(H5Tget_class)                                                                                \
    C(H5Tget_size)                                                                                 \
    C(H5Tget_order)                                                                                \
    C(H5Tget_precision)                                                                            \
    C(H5Tget_fields)                                                                               \
    C(H5Tget_ebias)                                                                                \
    C(H5Tget_sign)                                                                                 \
    C(H5Tclose)                                                                                    \
    C(H5Dread)

static struct calls {
#define DECLARE(name) __typeof__(name) *name;
    CALLS(DECLARE)
#undef DECLARE
    hid_t real32, real64, whole64; /* types in memory */
} h5;

static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static char reason[200]; /* why it cannot be loaded; "": not tried yet */
static char version[32];
static H5E_auto2_t before; /* how errors were told */
static void *before_data;

static bool find_all(void *library)
{
    void *call;
#define FIND(name)                                                                                 \
    call = dlsym(library, #name);                                                                  \
    if (!call)                                                                                     \
        return false;                                                                              \
    memcpy(&h5.name, &call, sizeof call);
    CALLS(FIND)
#undef FIND
    return true;
}

/* The types are variables that H5open fills. */
static bool find_types(void *library)
{
    const hid_t *real32 = dlsym(library, "H5T_NATIVE_FLOAT_g"),
                *real64 = dlsym(library, "H5T_NATIVE_DOUBLE_g"),
                *whole64 = dlsym(library, "H5T_NATIVE_INT64_g");
    if (!real32 || !real64 || !whole64 || h5.H5open() < 0)
        return false;
    h5.real32 = *real32;
    h5.real64 = *real64;
    h5.whole64 = *whole64;
    return true;
}

static void load(void)
{
    const char *told = getenv("FINETTI_HDF5");
    const char *name = told && *told ? told : FINETTI_HDF5;
    unsigned major = 0, minor = 0, release = 0;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(reason, sizeof reason, "needs the HDF5 library (%.100s), which is not here", name);
    else if (!find_all(library) || !find_types(library) ||
             h5.H5get_libversion(&major, &minor, &release) < 0 || major != 1 || minor < 10)
        snprintf(reason, sizeof reason, "needs HDF5 1.10 or later, and %.100s is not that", name);
    loaded = !reason[0];
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, release);
}

fin_status fini_h5_enter(const char *path, fin_error *err)
{
    pthread_mutex_lock(&alone);
    if (!loaded && !reason[0])
        load();
    if (!loaded) {
        pthread_mutex_unlock(&alone);
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "'%.200s' %s (Debian: libhdf5-dev; FINETTI_HDF5 names another file)", path,
                         reason);
    }
    h5.H5Eget_auto2(H5E_DEFAULT, &before, &before_data);
    h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return FIN_OK;
}

void fini_h5_leave(void)
{
    h5.H5Eset_auto2(H5E_DEFAULT, before, before_data);
    pthread_mutex_unlock(&alone);
}

const char *fin_hdf5_version(void)
{
    pthread_mutex_lock(&alone);
    if (!loaded && !reason[0])
        load();
    pthread_mutex_unlock(&alone);
    return loaded ? version : NULL;
}

fin_status fini_h5_open(const char *path, int64_t *file, fin_error *err)
{
    int fd;
    int64_t size;
    *file = -1;
    FINI_TRY(fini_open_regular(path, &fd, &size, err));
    close(fd);
    *file = h5.H5Fopen(path, READ_ONLY, H5P_DEFAULT);
    return *file >= 0 ? FIN_OK
                      : fini_fail(err, FIN_ERR_FORMAT,
                                  "'%.300s' is no HDF5 file, or is damaged or cut short", path);
}

void fini_h5_close(int64_t file)
{
    if (file >= 0)
        h5.H5Fclose(file);
}

bool fini_h5_name(int64_t file, int64_t i, char *name, size_t size)
{
    ssize_t length = h5.H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, name,
                                           size, H5P_DEFAULT);
    return length > 0 && (size_t)length < size;
}

void fini_h5_shut(fini_h5_set *set)
{
    if (set->id > 0)
        h5.H5Oclose(set->id);
    *set = (fini_h5_set){0};
}

/* IEEE's, in the order of this machine: others are converted by the library, which takes its time. */
static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return h5.H5Tget_size(type) == 2 && h5.H5Tget_order(type) == H5T_ORDER_LE &&
           h5.H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >=
               0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
           mantissa_bits == 10 && h5.H5Tget_ebias(type) == 15;
}

static fin_status find_type(fini_h5_set *set, const char *path, const char *name, fin_error *err)
{
    hid_t type = h5.H5Dget_type(set->id);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : h5.H5Tget_class(type);
    size_t size = type < 0 ? 0 : h5.H5Tget_size(type);
    set->half = class == H5T_FLOAT && is_half(type);
    set->dtype = class == H5T_INTEGER ? FIN_I64 : size > 4 ? FIN_F64 : FIN_F32;
    bool unsigned64 = class == H5T_INTEGER && size == 8 && h5.H5Tget_sign(type) == H5T_SGN_NONE;
    if (unsigned64)
        set->dtype = FIN_F64;
    if (type >= 0)
        h5.H5Tclose(type);
    if ((class == H5T_INTEGER || class == H5T_FLOAT) && size <= 8)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_UNSUPPORTED,
                     "%.200s: '%.60s' holds no plain numbers of at most 64 bits; save it as "
                     "float32",
                     path, name);
}

static fin_status find_shape(fini_h5_set *set, const char *path, const char *name, fin_error *err)
{
    hsize_t shape[FIN_DIMS_MAX] = {0};
    int64_t count;
    hid_t space = h5.H5Dget_space(set->id);
    int ndim = space < 0 ? -1 : h5.H5Sget_simple_extent_ndims(space);
    bool good = ndim >= 0 && ndim <= FIN_DIMS_MAX;
    good = good && (ndim == 0 || h5.H5Sget_simple_extent_dims(space, shape, NULL) >= 0);
    if (space >= 0)
        h5.H5Sclose(space);
    set->single = good && ndim > 2 && shape[0] == 1;
    set->ndim = ndim - set->single;
    set->rows = ndim > 0 ? (int64_t)shape[set->single] : 1;
    set->width = 1;
    for (int i = 0; i < ndim && good; i++)
        good = shape[i] <= INT64_MAX &&
               (i <= set->single ||
                !__builtin_mul_overflow(set->width, (int64_t)shape[i], &set->width));
    if (!good || __builtin_mul_overflow(set->rows, set->width, &count) || count > INT64_MAX / 64)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%.60s' has a shape that cannot be read or overflows", path,
                         name);
    return FIN_OK;
}

static void find_chunk(fini_h5_set *set)
{
    hsize_t shape[FIN_DIMS_MAX] = {0};
    hid_t list = h5.H5Dget_create_plist(set->id);
    set->chunk = 1;
    if (list >= 0 && h5.H5Pget_layout(list) == H5D_CHUNKED &&
        h5.H5Pget_chunk(list, FIN_DIMS_MAX, shape) > set->single && shape[set->single] > 0 &&
        shape[set->single] < INT64_MAX)
        set->chunk = (int64_t)shape[set->single];
    if (list >= 0)
        h5.H5Pclose(list);
}

fin_status fini_h5_find(int64_t file, const char *path, const char *name, fini_h5_set *set,
                        bool *found, fin_error *err)
{
    *set = (fini_h5_set){0};
    *found = h5.H5Lexists(file, name, H5P_DEFAULT) > 0;
    if (!*found)
        return FIN_OK;
    set->id = h5.H5Oopen(file, name, H5P_DEFAULT);
    if (set->id > 0 && h5.H5Iget_type(set->id) != H5I_DATASET) { /* a group */
        fini_h5_shut(set);
        *found = false;
        return FIN_OK;
    }
    fin_status status = set->id > 0 ? FIN_OK
                                    : fini_fail(err, FIN_ERR_FORMAT,
                                                "%.200s: '%.60s' cannot be opened", path, name);
    if (!status)
        status = find_type(set, path, name, err);
    if (!status)
        status = find_shape(set, path, name, err);
    if (!status)
        find_chunk(set);
    if (status)
        fini_h5_shut(set);
    return status;
}

/* The numbers as they are in the file if they are halves, else as the library converts them. */
static bool read_block(const fini_h5_set *set, int64_t from, int64_t count, void *to)
{
    hsize_t start[FIN_DIMS_MAX] = {0}, size[FIN_DIMS_MAX] = {0};
    hid_t space = h5.H5Dget_space(set->id), type = h5.H5Dget_type(set->id), memory = -1;
    int ndim = set->ndim + set->single, read = -1;
    if (space >= 0 && ndim > 0 && h5.H5Sget_simple_extent_ndims(space) == ndim &&
        h5.H5Sget_simple_extent_dims(space, size, NULL) >= 0) {
        start[set->single] = (hsize_t)from;
        size[set->single] = (hsize_t)count;
        memory = h5.H5Screate_simple(ndim, size, NULL);
        if (memory >= 0 &&
            h5.H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) >= 0)
            read = h5.H5Dread(set->id,
                              set->half               ? type
                              : set->dtype == FIN_F32 ? h5.real32
                              : set->dtype == FIN_F64 ? h5.real64
                                                      : h5.whole64,
                              memory, space, H5P_DEFAULT, to);
    }
    if (memory >= 0)
        h5.H5Sclose(memory);
    if (type >= 0)
        h5.H5Tclose(type);
    if (space >= 0)
        h5.H5Sclose(space);
    return read >= 0;
}

fin_status fini_h5_read(const fini_h5_set *set, const char *path, const char *name, int64_t from,
                        int64_t count, void *to, fin_error *err)
{
    int64_t cells = count * set->width;
    char *block = to;
    if (cells == 0)
        return FIN_OK;
    if (set->half) /* at the end of its place, so that it is widened from the front on */
        block += (size_t)cells * 2;
    if (!read_block(set, from, count, block))
        return fini_fail(
            err, FIN_ERR_FORMAT,
            "%.200s: rows %lld to %lld of '%.60s' cannot be read; the file is damaged, "
            "or compressed in a way that this HDF5 library does not know (lzf; gzip it knows)",
            path, (long long)from, (long long)(from + count - 1), name);
    for (int64_t i = 0; set->half && i < cells; i++) {
        uint16_t half;
        memcpy(&half, block + (size_t)i * 2, sizeof half);
        float value = fini_half(half);
        memcpy((char *)to + (size_t)i * sizeof value, &value, sizeof value);
    }
    return FIN_OK;
}

#else

fin_status fini_h5_enter(const char *path, fin_error *err)
{
    return fini_fail(
        err, FIN_ERR_UNSUPPORTED,
        "'%.200s' is HDF5, and this finetti was built without it (Debian: libhdf5-dev)", path);
}

const char *fin_hdf5_version(void)
{
    return NULL;
}

void fini_h5_leave(void)
{
}

fin_status fini_h5_open(const char *path, int64_t *file, fin_error *err)
{
    *file = -1;
    return fini_h5_enter(path, err);
}

void fini_h5_close(int64_t file)
{
    (void)file;
}

bool fini_h5_name(int64_t file, int64_t i, char *name, size_t size)
{
    (void)file, (void)i, (void)name, (void)size;
    return false;
}

fin_status fini_h5_find(int64_t file, const char *path, const char *name, fini_h5_set *set,
                        bool *found, fin_error *err)
{
    (void)file, (void)name;
    *set = (fini_h5_set){0};
    *found = false;
    return fini_h5_enter(path, err);
}

void fini_h5_shut(fini_h5_set *set)
{
    (void)set;
}

fin_status fini_h5_read(const fini_h5_set *set, const char *path, const char *name, int64_t from,
                        int64_t count, void *to, fin_error *err)
{
    (void)set, (void)name, (void)from, (void)count, (void)to;
    return fini_h5_enter(path, err);
}

#endif
