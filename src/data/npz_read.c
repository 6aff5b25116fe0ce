/* Arrays from an NPZ archive, through libzip.
 *
 * Nothing the archive says about itself is believed before memory is taken for it: an entry cannot
 * be larger than the file (stored) or than deflate can shrink it, and its NPY header must ask for
 * exactly the bytes that the entry has. */
#include "data/data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { NAME_MOST = 256, DEFLATE_MOST = 1032 }; /* deflate makes at most 1032 bytes of one */

struct slot {
    uint64_t index;
    void *block; /* NULL: not read yet */
    fin_array array;
    fini_npy_form form;
};

struct fin_npz {
    zip_t *zip;
    int64_t count, file_size;
    struct slot *slots; /* [count] */
    fini_names names;   /* without ".npy" */
    char path[300];
};

static fin_status fail_zip(fin_error *err, const char *label, zip_error_t *code)
{
    int number = zip_error_code_zip(code);
    fin_status status = number == ZIP_ER_MEMORY                          ? FIN_ERR_MEMORY
                        : number == ZIP_ER_OPEN || number == ZIP_ER_SEEK ? FIN_ERR_IO
                                                                         : FIN_ERR_FORMAT;
    return fini_fail(err, status, "cannot read %s: %s", label, zip_error_strerror(code));
}

/* ---- opening -------------------------------------------------------------------------------- */

static size_t array_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return length > 4 && strcmp(name + length - 4, ".npy") == 0 ? length - 4 : 0;
}

static fin_status list_arrays(fin_npz *npz, fin_error *err)
{
    zip_int64_t entries = zip_get_num_entries(npz->zip, 0);
    fin_status status = FIN_OK;
    FINI_ROOM(err, "an NPZ file", npz->slots, entries, 1);
    for (zip_int64_t i = 0; i < entries && !status; i++) {
        const char *name = zip_get_name(npz->zip, (zip_uint64_t)i, 0);
        size_t length = array_name(name);
        if (length == 0)
            continue;
        status = fini_names_add(&npz->names, name, length, err);
        npz->slots[npz->count++] = (struct slot){.index = (uint64_t)i};
    }
    if (!status && npz->count == 0)
        status = fini_fail(err, FIN_ERR_FORMAT, "'%s' holds no arrays (no entry ends in .npy)",
                           npz->path);
    return status;
}

static fin_status open_zip(fin_npz *npz, const char *path, fin_error *err)
{
    int fd, code = 0;
    FINI_TRY(fini_open_regular(path, &fd, &npz->file_size, err));
    close(fd);
    npz->zip = zip_open(path, ZIP_RDONLY, &code);
    if (npz->zip)
        return FIN_OK;
    if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' is not a readable NPZ file: no zip archive, or cut short; numpy "
                         "writes one with np.savez",
                         npz->path);
    char label[sizeof npz->path + 2];
    snprintf(label, sizeof label, "'%s'", npz->path);
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    fin_status status = fail_zip(err, label, &error);
    zip_error_fini(&error);
    return status;
}

fin_status fin_npz_open(const char *path, fin_npz **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    FINI_MAKE(err, "an NPZ file", fin_npz, npz);
    snprintf(npz->path, sizeof npz->path, "%s", path);
    fin_status status = open_zip(npz, path, err);
    if (!status)
        status = list_arrays(npz, err);
    FINI_HAND_OVER(out, npz, status, fin_npz_close);
}

/* ---- reading -------------------------------------------------------------------------------- */

static fin_status read_exactly(zip_file_t *file, void *to, uint64_t size, const char *label,
                               fin_error *err)
{
    unsigned char *next = to;
    while (size > 0) {
        zip_int64_t got = zip_fread(file, next, size);
        if (got < 0)
            return fail_zip(err, label, zip_file_get_error(file));
        if (got == 0)
            return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short", label);
        next += got;
        size -= (uint64_t)got;
    }
    return FIN_OK;
}

/* The size the archive claims for an entry, if it is possible. */
static fin_status claimed_size(const fin_npz *npz, const struct slot *slot, const char *label,
                               uint64_t *size, fin_error *err)
{
    zip_stat_t stat;
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(npz->zip, slot->index, 0, &stat) != 0)
        return fail_zip(err, label, zip_get_error(npz->zip));
    uint64_t most = stat.comp_size;
    if (stat.comp_method != ZIP_CM_STORE)
        most = most < UINT64_MAX / DEFLATE_MOST ? most * DEFLATE_MOST : UINT64_MAX;
    if ((stat.valid & needed) != needed || stat.comp_size > (uint64_t)npz->file_size ||
        stat.size > most || stat.size > INT64_MAX)
        return fini_fail(err, FIN_ERR_FORMAT, "%s claims a size that the file cannot hold", label);
    *size = stat.size;
    return FIN_OK;
}

/* Prefix and description; *left are the bytes of the entry that follow. */
static fin_status read_description(zip_file_t *file, const char *label, uint64_t *left,
                                   struct slot *slot, fin_error *err)
{
    unsigned char prefix[12] = {0};
    size_t start, size;
    if (*left < sizeof prefix)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short: it has %d bytes", label,
                         (int)*left);
    FINI_TRY(read_exactly(file, prefix, 10, label, err));
    if (prefix[6] != 1)
        FINI_TRY(read_exactly(file, prefix + 10, 2, label, err));
    FINI_TRY(fini_npy_prefix(prefix, label, &start, &size, err));
    if (size > *left - start)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short inside its description", label);
    char *text = fini_alloc(size ? size : 1);
    if (!text)
        return fini_fail_memory(err, size, "the description of an array");
    fin_status status = read_exactly(file, text, size, label, err);
    if (!status)
        status = fini_npy_describe(text, size, label, &slot->array, &slot->form, err);
    fini_free(text);
    *left -= start + size;
    return status;
}

/* Elements that are not in the file as they are used: piece by piece. */
static fin_status read_converted(zip_file_t *file, const struct slot *slot, const char *label,
                                 void *block, fin_error *err)
{
    enum { PIECE = 1 << 15 };
    int64_t count = slot->array.count;
    size_t size = slot->form.size ? slot->form.size : 1;
    int64_t most = PIECE / (int64_t)size;
    char piece[PIECE];
    if (most < 1)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s has texts of %zu bytes in Fortran order; save np.ascontiguousarray of "
                         "it",
                         label, slot->form.size);
    for (int64_t first = 0; first < count; first += most) {
        int64_t here = count - first < most ? count - first : most;
        FINI_TRY(read_exactly(file, piece, (uint64_t)here * slot->form.size, label, err));
        fini_npy_place(&slot->form, &slot->array, first, here, piece, block);
    }
    return FIN_OK;
}

static fin_status read_elements(zip_file_t *file, struct slot *slot, const char *label,
                                uint64_t left, fin_error *err)
{
    uint64_t bytes = (uint64_t)slot->form.bytes;
    if (bytes != left)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has %llu bytes of elements where its shape asks for %llu", label,
                         (unsigned long long)left, (unsigned long long)bytes);
    bool plain = fini_npy_plain(&slot->form), text = slot->form.kind >= FINI_NPY_BYTES;
    size_t room =
        text ? (size_t)bytes : (size_t)slot->array.count * fin_dtype_size(slot->array.dtype);
    void *block = fini_alloc(room ? room : 1);
    if (!block)
        return fini_fail_memory(err, room, label);
    char beyond;
    fin_status status = plain ? read_exactly(file, block, bytes, label, err)
                              : read_converted(file, slot, label, block, err);
    if (!status && zip_fread(file, &beyond, 1) != 0) /* only here is the checksum compared */
        status = fail_zip(err, label, zip_file_get_error(file));
    if (status) {
        fini_free(block);
        return status;
    }
    slot->block = block;
    slot->array.data = block;
    return FIN_OK;
}

/* elements: else the description alone. */
static fin_status load(fin_npz *npz, int64_t i, bool elements, fin_error *err)
{
    struct slot *slot = &npz->slots[i];
    char label[sizeof npz->path + FINI_SHORT + 32];
    snprintf(label, sizeof label, "array '%s' of '%.200s'",
             FINI_SHOW(fini_names_get(&npz->names, i)), npz->path);
    uint64_t left = 0;
    FINI_TRY(claimed_size(npz, slot, label, &left, err));
    zip_file_t *file = zip_fopen_index(npz->zip, slot->index, 0);
    if (!file)
        return fail_zip(err, label, zip_get_error(npz->zip));
    fin_status status = read_description(file, label, &left, slot, err);
    if (!status && elements)
        status = read_elements(file, slot, label, left, err);
    zip_fclose(file);
    return status;
}

static fin_status get(fin_npz *npz, int64_t i, bool elements, fin_array *out, fini_npy_form *form,
                      fin_error *err)
{
    FINI_TRY(npz->slots[i].block ? FIN_OK : load(npz, i, elements, err));
    *out = npz->slots[i].array;
    *form = npz->slots[i].form;
    return FIN_OK;
}

fin_status fini_npz_look(fin_npz *npz, int64_t i, fin_array *out, fini_npy_form *form,
                         fin_error *err)
{
    return get(npz, i, false, out, form, err);
}

fin_status fini_npz_any(fin_npz *npz, int64_t i, fin_array *out, fini_npy_form *form,
                        fin_error *err)
{
    return get(npz, i, true, out, form, err);
}

fin_status fin_npz_array(fin_npz *npz, const char *name, fin_array *out, fin_error *err)
{
    FINI_NEED(err, npz, name, out);
    char all[FINI_LISTED];
    fini_npy_form form;
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < npz->count; i++) {
        if (strcmp(fini_names_get(&npz->names, i), name) != 0)
            continue;
        fin_status status = get(npz, i, false, out, &form, err);
        if (!status && form.kind >= FINI_NPY_BYTES)
            status = fini_fail(err, FIN_ERR_UNSUPPORTED,
                               "array '%s' of '%.200s' holds texts; numbers are needed",
                               FINI_SHOW(name), npz->path);
        if (!status)
            status = get(npz, i, true, out, &form, err);
        if (status)
            memset(out, 0, sizeof *out);
        return status;
    }
    return fini_fail(err, FIN_ERR_ARGUMENT, "'%.200s' has no array '%s'; it has %s", npz->path,
                     FINI_SHOW(name), fini_names_list(&npz->names, all));
}

int64_t fin_npz_count(const fin_npz *npz)
{
    return npz ? npz->count : 0;
}

const char *fin_npz_name(const fin_npz *npz, int64_t i)
{
    return npz ? fini_names_get(&npz->names, i) : NULL;
}

void fin_npz_close(fin_npz *npz)
{
    if (!npz)
        return;
    for (int64_t i = 0; i < npz->count; i++)
        fini_free(npz->slots[i].block);
    if (npz->zip)
        zip_discard(npz->zip);
    fini_free(npz->slots);
    fini_names_close(&npz->names);
    fini_free(npz);
}
