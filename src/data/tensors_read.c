/* Tensors from a file in the layout of safetensors (tensors.h), written by us or by others.
 *
 * In this order: the file's size is asked for, the header's length compared with it, the header
 * parsed, the rest read into one block of exactly that size, the checksum compared, kind and version
 * looked at, and only then the list of tensors believed as far as it agrees with the bytes that are
 * there (tensors_list.c). So the message about a damaged file is that it was damaged, and memory
 * taken is bounded by the size of the file. A file that says it is ours must have its checksum where
 * we write it: one wrong byte anywhere is noticed. Read, not mapped, as text is (file.c). */
#include "data/tensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { LEAD = sizeof(uint64_t) };

/* ---- bytes ----------------------------------------------------------------------------------- */

static fin_status read_bytes(fin_tensor_file *file, void *to, int64_t size, fin_error *err)
{
    unsigned char *next = to;
    while (size > 0) {
        ssize_t got = read(file->fd, next, size < 1 << 30 ? (size_t)size : 1 << 30);
        if (got < 0 && errno != EINTR)
            return fini_fail_io(err, "read", file->path, errno);
        if (got == 0)
            return fini_fail(err, FIN_ERR_IO, "'%s' became shorter while it was read", file->path);
        next += got > 0 ? got : 0;
        size -= got > 0 ? got : 0;
    }
    return FIN_OK;
}

/* Length and text of the header. */
static fin_status read_header(fin_tensor_file *file, fin_error *err)
{
    unsigned char lead[LEAD + 1];
    if (file->size < (int64_t)sizeof lead)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' is not a safetensors file (a model of finetti is one), or is cut "
                         "short: it has %lld bytes",
                         file->path, (long long)file->size);
    FINI_TRY(read_bytes(file, lead, sizeof lead, err));
    uint64_t length = 0;
    for (int i = LEAD - 1; i >= 0; i--)
        length = length << 8 | lead[i];
    bool text = true; /* no length has eight letters */
    for (int i = 0; i < LEAD; i++)
        text = text && lead[i] >= ' ' && lead[i] < 127;
    if (text)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' is not a safetensors file (a model of finetti is one): it begins "
                         "like a text or a table",
                         file->path);
    if (length > (uint64_t)file->size - LEAD || length < 2 || lead[LEAD] != '{')
        return fini_fail(
            err, FIN_ERR_FORMAT,
            "'%s' is not a safetensors file (a model of finetti is one), or is cut short: its "
            "first eight bytes announce a header of %llu bytes, and it has %lld bytes",
            file->path, (unsigned long long)length, (long long)file->size);
    if (length > FINI_HEADER_MOST)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the header of '%s' has %llu bytes; at most %d are read", file->path,
                         (unsigned long long)length, FINI_HEADER_MOST);
    file->header_size = (int64_t)length;
    file->size -= LEAD + file->header_size;
    file->header = fini_alloc(LEAD + (size_t)length);
    if (!file->header)
        return fini_fail_memory(err, (size_t)length, "the header of a file of tensors");
    memcpy(file->header, lead, sizeof lead);
    return read_bytes(file, file->header + sizeof lead, file->header_size - 1, err);
}

static fin_status read_data(fin_tensor_file *file, fin_error *err)
{
    file->data = fini_alloc(file->size ? (size_t)file->size : 1);
    if (!file->data)
        return fini_fail_memory(err, (size_t)file->size, "tensors from a file");
    return read_bytes(file, file->data, file->size, err);
}

/* ---- the header ------------------------------------------------------------------------------ */

static fin_status parse_header(fin_tensor_file *file, fin_error *err)
{
    json_error_t why;
    file->root =
        json_loadb(file->header + LEAD, (size_t)file->header_size, JSON_REJECT_DUPLICATES, &why);
    if (file->root && json_is_object(file->root))
        return FIN_OK;
    if (!file->root && json_error_code(&why) == json_error_out_of_memory)
        return fini_fail_memory(err, (size_t)file->header_size, "the header of a file of tensors");
    return fini_fail(err, FIN_ERR_FORMAT,
                     "'%s' is not a safetensors file, or was damaged: its header is no JSON that "
                     "can be read: %s",
                     file->path, FINI_SHOW(why.text));
}

static fin_status list_metadata(fin_tensor_file *file, fin_error *err)
{
    const char *key;
    json_t *value;
    file->metadata = json_incref(json_object_get(file->root, "__metadata__"));
    if (!file->metadata)
        return FIN_OK;
    size_t count = json_object_size(file->metadata);
    FINI_ROOM(err, "metadata", file->entries, (int64_t)count, 1);
    bool texts = json_is_object(file->metadata);
    json_object_foreach(file->metadata, key, value)
    {
        texts &= json_is_string(value);
        file->entries[file->entry_count++] = (fin_entry){key, json_string_value(value)};
    }
    if (!texts)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the metadata of '%s' are not texts with names: the file was damaged, or "
                         "is no safetensors file",
                         file->path);
    return FIN_OK;
}

static fin_status check_sum(fin_tensor_file *file, fin_error *err)
{
    static const char zeros[] = "0000000000000000";
    char told[FINI_CHECKSUM + 1] = "", found[FINI_CHECKSUM + 1];
    const int64_t before = LEAD + FINI_CHECKSUM_AT, after = before + FINI_CHECKSUM;
    bool there = file->header_size > FINI_CHECKSUM_AT + FINI_CHECKSUM &&
                 memcmp(file->header + LEAD, FINI_CHECKSUM_BEFORE, FINI_CHECKSUM_AT) == 0 &&
                 file->header[after] == '"';
    if (!there && fin_tensors_entry(file, "finetti"))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' was damaged or changed after finetti wrote it: its checksum is not "
                         "in its place",
                         file->path);
    if (!there)
        return FIN_OK;
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return fini_fail_memory(err, 1024, "a checksum");
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, file->header, (size_t)before);
    XXH3_64bits_update(state, zeros, FINI_CHECKSUM);
    XXH3_64bits_update(state, file->header + after, (size_t)(LEAD + file->header_size - after));
    XXH3_64bits_update(state, file->data, (size_t)file->size);
    snprintf(found, sizeof found, "%016llx", (unsigned long long)XXH3_64bits_digest(state));
    XXH3_freeState(state);
    memcpy(told, file->header + before, FINI_CHECKSUM);
    if (strcmp(told, found) == 0)
        return FIN_OK;
    char shown[FINI_CHECKSUM + 4];
    return fini_fail(err, FIN_ERR_FORMAT,
                     "'%s' was damaged, cut short or changed after finetti wrote it: its checksum "
                     "is %s, and that of its bytes %s; copy the file again, or make it anew",
                     file->path, fini_printable(told, FINI_CHECKSUM, shown, sizeof shown), found);
}

/* A whole number below a million, or -1. */
static int small_number(const char *text)
{
    int value = 0;
    if (!text || !*text || strlen(text) > 6)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = 10 * value + (*text - '0');
    }
    return value;
}

static fin_status check_kind(const fin_tensor_file *file, const char *kind, int version,
                             fin_error *err)
{
    const char *have = fin_tensors_entry(file, "finetti"),
               *writer = fin_tensors_entry(file, "written_by");
    bool encoder = strcmp(kind, "encoder") == 0;
    const char *article = encoder ? "an" : "a", *command = encoder ? "pretrain" : "fit";
    if (!have)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s' is a safetensors file, but not %s %s of finetti; finetti %s --out "
                         "writes one",
                         file->path, article, kind, command);
    if (strcmp(have, kind) != 0)
        return fini_fail(err, FIN_ERR_FORMAT, "'%s' is a file of finetti with '%s', not %s %s",
                         file->path, FINI_SHOW(have), article, kind);
    int number = small_number(fin_tensors_entry(file, "version"));
    if (number < 1)
        return fini_fail(err, FIN_ERR_FORMAT, "'%s' has no version that can be read", file->path);
    if (number > version)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "'%s' is %s %s file of version %d, written by %s; finetti %s reads version "
            "%d and earlier: a later finetti is needed",
            file->path, article, kind, number, writer ? FINI_SHOW(writer) : "a later finetti",
            fin_version(), version);
    return FIN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void drop_header(fin_tensor_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    json_decref(file->root);
    fini_free(file->header);
    file->fd = -1;
    file->root = NULL;
    file->header = NULL;
}

fin_status fini_tensors_head(const char *path, fin_tensor_file **out, fin_error *err)
{
    *out = NULL;
    FINI_MAKE(err, "a file of tensors", fin_tensor_file, file);
    snprintf(file->path, sizeof file->path, "%s", path);
    fin_status status = fini_open_regular(path, &file->fd, &file->size, err);
    if (status)
        file->fd = -1;
    else
        status = read_header(file, err);
    if (!status)
        status = parse_header(file, err);
    if (!status)
        *out = file;
    else
        fin_tensors_close(file);
    return status;
}

fin_status fini_tensors_open(const char *path, const char *kind, int version, fin_tensor_file **out,
                             fin_error *err)
{
    fin_tensor_file *file;
    fin_status status = fini_tensors_head(path, &file, err);
    *out = NULL;
    if (status)
        return status;
    status = list_metadata(file, err);
    if (!status)
        status = read_data(file, err);
    if (!status)
        status = check_sum(file, err);
    if (!status && kind)
        status = check_kind(file, kind, version, err);
    if (!status)
        status = fini_tensors_list(file, err);
    drop_header(file);
    FINI_HAND_OVER(out, file, status, fin_tensors_close);
}

fin_status fin_tensors_open(const char *path, fin_tensor_file **file, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, file, path);
    return fini_tensors_open(path, NULL, 0, file, err);
}

void fin_tensors_close(fin_tensor_file *file)
{
    if (!file)
        return;
    drop_header(file);
    json_decref(file->metadata);
    fini_free_all(file->entries, file->tensors, file->data, file->copy, file);
}

int64_t fin_tensors_count(const fin_tensor_file *file)
{
    return file ? file->count : 0;
}

const fin_tensor *fin_tensors_at(const fin_tensor_file *file, int64_t i)
{
    return file && i >= 0 && i < file->count ? &file->tensors[i] : NULL;
}

const fin_tensor *fin_tensors_find(const fin_tensor_file *file, const char *name)
{
    return file && name
               ? fini_state_find(&(fini_state_source){"", file->tensors, file->count}, name)
               : NULL;
}

int64_t fini_tensors_entries(const fin_tensor_file *file, const fin_entry **entries)
{
    *entries = file->entries;
    return file->entry_count;
}

fin_status fini_tensors_settings(const fin_tensor_file *file, const char *kind, const char *before,
                                 const fin_settings *table, void *values, bool *found,
                                 fin_error *err)
{
    fin_error why = {FIN_OK, ""};
    fin_status status = FIN_OK;
    size_t length = strlen(before);
    bool any = false;
    fin_settings_defaults(table, values, table->size);
    for (int64_t i = 0; i < file->entry_count && !status; i++) {
        const fin_entry *entry = &file->entries[i];
        if (!fini_begins(entry->key, before))
            continue;
        const char *name = entry->key + length;
        if (table == &fin_fit_table && strcmp(name, "features") == 0)
            name = "basis"; /* so it was called in version 0.1 */
        status = fin_settings_parse(table, values, name, entry->value, &why);
        any = true;
    }
    if (found)
        *found = any;
    if (!status)
        status = fin_settings_validate(table, values, &why);
    if (!status)
        return FIN_OK;
    char text[200];
    return fini_fail(err, FIN_ERR_FORMAT, "the %s '%.200s' has a setting that is not allowed: %s",
                     kind, file->path,
                     fini_printable(why.message, strlen(why.message), text, sizeof text));
}

const char *fin_tensors_entry(const fin_tensor_file *file, const char *key)
{
    return file ? json_string_value(json_object_get(file->metadata, key)) : NULL;
}
