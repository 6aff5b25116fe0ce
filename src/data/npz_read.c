/* Arrays from an NPZ archive, through libzip.
 *
 * Nothing the archive says about itself is believed before memory is taken for it: an entry cannot
 * be larger than the file (stored) or than deflate can shrink it, and its NPY header must ask for
 * exactly the bytes that the entry has. */
#include "data/data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

enum { NAME_MOST = 256, DEFLATE_MOST = 1032 }; /* deflate makes at most 1032 bytes of one */

struct slot {
    char *name; /* without ".npy" */
    uint64_t index;
    void *block; /* NULL: not read yet */
    fin_array array;
};

struct fin_npz {
    zip_t *zip;
    int64_t count, file_size;
    struct slot *slots; /* [count] */
    char *letters;      /* the names' text */
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

/* Two walks over the entries: how many arrays and letters, then their names. */
static fin_status list_arrays(fin_npz *npz, fin_error *err)
{
    zip_int64_t entries = zip_get_num_entries(npz->zip, 0);
    size_t letters = 0, length;
    int64_t count = 0;
    for (zip_int64_t i = 0; i < entries; i++)
        if ((length = array_name(zip_get_name(npz->zip, (zip_uint64_t)i, 0))) > 0) {
            count++;
            letters += length + 1;
        }
    if (count == 0)
        return fini_fail(err, FIN_ERR_FORMAT, "'%s' holds no arrays (no entry ends in .npy)",
                         npz->path);
    npz->slots = fini_alloc_array(count, sizeof *npz->slots);
    npz->letters = fini_alloc(letters);
    if (!npz->slots || !npz->letters)
        return fini_fail_memory(err, (size_t)count * sizeof *npz->slots + letters, "an NPZ file");
    memset(npz->slots, 0, (size_t)count * sizeof *npz->slots);
    char *to = npz->letters;
    for (zip_int64_t i = 0; i < entries; i++) {
        const char *name = zip_get_name(npz->zip, (zip_uint64_t)i, 0);
        if ((length = array_name(name)) == 0)
            continue;
        npz->slots[npz->count++] = (struct slot){.name = to, .index = (uint64_t)i};
        memcpy(to, name, length);
        to[length] = '\0';
        to += length + 1;
    }
    return FIN_OK;
}

static fin_status open_zip(fin_npz *npz, const char *path, fin_error *err)
{
    struct stat info;
    int code = 0;
    if (stat(path, &info) != 0)
        return fini_fail_io(err, "read", path, errno);
    if (!S_ISREG(info.st_mode))
        return fini_fail(err, FIN_ERR_IO, "cannot read '%s': it is %s, not a regular file",
                         npz->path, S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    npz->file_size = info.st_size;
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
    *out = NULL;
    fin_npz *npz = fini_alloc(sizeof *npz);
    if (!npz)
        return fini_fail_memory(err, sizeof *npz, "an NPZ file");
    memset(npz, 0, sizeof *npz);
    snprintf(npz->path, sizeof npz->path, "%s", path);
    fin_status status = open_zip(npz, path, err);
    if (!status)
        status = list_arrays(npz, err);
    if (status)
        fin_npz_close(npz);
    else
        *out = npz;
    return status;
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
                                   fin_array *array, fin_error *err)
{
    unsigned char prefix[12] = {0};
    size_t start, size;
    if (*left < sizeof prefix)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short: it has %d bytes", label,
                         (int)*left);
    fin_status status = read_exactly(file, prefix, 10, label, err);
    if (!status && prefix[6] != 1)
        status = read_exactly(file, prefix + 10, 2, label, err);
    if (!status)
        status = fini_npy_prefix(prefix, label, &start, &size, err);
    if (status)
        return status;
    if (size > *left - start)
        return fini_fail(err, FIN_ERR_FORMAT, "%s is cut short inside its description", label);
    char *text = fini_alloc(size ? size : 1);
    if (!text)
        return fini_fail_memory(err, size, "the description of an array");
    status = read_exactly(file, text, size, label, err);
    if (!status)
        status = fini_npy_describe(text, size, label, array, err);
    fini_free(text);
    *left -= start + size;
    return status;
}

static fin_status read_elements(zip_file_t *file, struct slot *slot, const char *label,
                                uint64_t left, fin_error *err)
{
    uint64_t bytes = (uint64_t)slot->array.count * fin_dtype_size(slot->array.dtype);
    if (bytes != left)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has %llu bytes of elements where its shape asks for %llu", label,
                         (unsigned long long)left, (unsigned long long)bytes);
    void *block = fini_alloc(bytes ? (size_t)bytes : 1);
    if (!block)
        return fini_fail_memory(err, (size_t)bytes, label);
    char beyond;
    fin_status status = read_exactly(file, block, bytes, label, err);
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

static fin_status load(fin_npz *npz, struct slot *slot, fin_error *err)
{
    char name[64], label[sizeof npz->path + sizeof name + 32];
    fini_printable(slot->name, strlen(slot->name), name, sizeof name);
    snprintf(label, sizeof label, "array '%s' of '%.200s'", name, npz->path);
    uint64_t left = 0;
    fin_status status = claimed_size(npz, slot, label, &left, err);
    if (status)
        return status;
    zip_file_t *file = zip_fopen_index(npz->zip, slot->index, 0);
    if (!file)
        return fail_zip(err, label, zip_get_error(npz->zip));
    status = read_description(file, label, &left, &slot->array, err);
    if (!status)
        status = read_elements(file, slot, label, left, err);
    zip_fclose(file);
    return status;
}

/* "'x.npz' has no array 'z'; it has a, b, c", as many as fit. */
static fin_status fail_missing(const fin_npz *npz, const char *name, fin_error *err)
{
    char list[160] = "", shown[48], wanted[48];
    size_t used = 0;
    for (int64_t i = 0; i < npz->count; i++) {
        const char *have = npz->slots[i].name;
        fini_printable(have, strlen(have), shown, sizeof shown);
        if (used + strlen(shown) + 8 > sizeof list) {
            strcpy(list + used, ", ...");
            break;
        }
        used += (size_t)sprintf(list + used, "%s%s", used ? ", " : "", shown);
    }
    fini_printable(name, strlen(name), wanted, sizeof wanted);
    return fini_fail(err, FIN_ERR_ARGUMENT, "'%.200s' has no array '%s'; it has %s", npz->path,
                     wanted, list);
}

fin_status fin_npz_array(fin_npz *npz, const char *name, fin_array *out, fin_error *err)
{
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < npz->count; i++) {
        struct slot *slot = &npz->slots[i];
        if (strcmp(slot->name, name) != 0)
            continue;
        fin_status status = slot->block ? FIN_OK : load(npz, slot, err);
        if (!status)
            *out = slot->array;
        return status;
    }
    return fail_missing(npz, name, err);
}

int64_t fin_npz_count(const fin_npz *npz)
{
    return npz->count;
}

const char *fin_npz_name(const fin_npz *npz, int64_t i)
{
    return i >= 0 && i < npz->count ? npz->slots[i].name : NULL;
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
    fini_free(npz->letters);
    fini_free(npz);
}
