/* Tensors to a file, in the layout of safetensors (tensors.h).
 *
 * The same tensors and metadata give the same bytes: no time, no name of a machine. Python's reader
 * wants the tensors to follow each other without holes, so only the start of the data is aligned (by
 * spaces behind the header), and tensors with larger elements come first: each then lies at a
 * multiple of its element's size, and the file can be mapped.
 *
 * jansson takes its memory from malloc and not through the hooks of fin_memory_hooks: its own hooks
 * are one for the whole process, and may be the host program's. */
#include "data/tensors.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#if XXH_VERSION_NUMBER < 800
#error "xxHash 0.8.0 or later is needed: XXH3 was not final before"
#endif

/* ---- what may be written --------------------------------------------------------------------- */

static fin_status check_tensor(const char *path, const fin_tensor *tensor, int64_t *bytes,
                               fin_error *err)
{
    char name[sizeof tensor->name + 8];
    size_t length = strnlen(tensor->name, sizeof tensor->name);
    int64_t count = 0;
    fini_printable(tensor->name, length, name, sizeof name);
    if (length < 1 || length == sizeof tensor->name ||
        fini_text_fault(tensor->name, length, false) || strcmp(tensor->name, "__metadata__") == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot write '%.200s': '%s' cannot name a tensor; a name has 1 to %d "
                         "bytes of printable UTF-8 and is not __metadata__",
                         path, name, (int)sizeof tensor->name - 1);
    if (!fin_dtype_size(tensor->dtype) || tensor->ndim < 0 || tensor->ndim > FINI_TENSOR_AXES ||
        !fini_shape_count(tensor->dtype, tensor->ndim, tensor->shape, &count))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot write '%.200s': tensor '%s' has an unknown element type, more "
                         "than %d axes, a negative length or a size that overflows",
                         path, name, FINI_TENSOR_AXES);
    if (count > 0 && !tensor->data)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot write '%.200s': tensor '%s' has elements but no data", path, name);
    *bytes = count * (int64_t)fin_dtype_size(tensor->dtype);
    return FIN_OK;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Adds a new key to an object; takes the value. False: out of memory, or not UTF-8. */
static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static fin_status fail_json(const char *path, fin_error *err)
{
    return fini_fail(err, FIN_ERR_MEMORY, "cannot write '%.200s': out of memory for its header",
                     path);
}

/* The checksum first, at its fixed place; then the caller's; a file that does not say what it is, is
 * one of tensors. */
static fin_status put_metadata(json_t *root, const char *path, const fin_entry *metadata,
                               int64_t entries, fin_error *err)
{
    json_t *object = json_object();
    bool told = false;
    if (!put(root, "__metadata__", object) ||
        !put(object, "checksum", json_string("0000000000000000")))
        return fail_json(path, err);
    for (int64_t i = 0; i < entries; i++) {
        const char *key = metadata[i].key, *value = metadata[i].value;
        if (!key || !value || json_object_get(object, key) ||
            fini_text_fault(key, strlen(key), false))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "cannot write '%.200s': '%s' cannot be an entry of the metadata: keys "
                             "are printable UTF-8, different from each other and from checksum, "
                             "and have a value",
                             path, key ? FINI_SHOW(key) : "NULL");
        json_t *text = json_string(value);
        if (!text && fini_text_fault(value, strlen(value), true) == FINI_FAULT_UTF8)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "cannot write '%.200s': the text of '%s' is not UTF-8", path,
                             FINI_SHOW(key)); /* else it was memory */
        if (!put(object, key, text))
            return fail_json(path, err);
        told |= strcmp(key, "finetti") == 0;
    }
    if (!told &&
        (!put(object, "finetti", json_string("tensors")) ||
         (!json_object_get(object, "version") && !put(object, "version", json_string("1")))))
        return fail_json(path, err);
    if (!json_object_get(object, "written_by") &&
        !put(object, "written_by", json_sprintf("finetti %s", fin_version())))
        return fail_json(path, err);
    return FIN_OK;
}

static fin_status put_tensor(json_t *root, const char *path, const fin_tensor *tensor,
                             int64_t begin, int64_t end, fin_error *err)
{
    if (json_object_get(root, tensor->name))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot write '%.200s': two tensors are called '%s'", path, tensor->name);
    json_t *shape = json_array();
    for (int i = 0; shape && i < tensor->ndim; i++)
        if (json_array_append_new(shape, json_integer(tensor->shape[i]))) {
            json_decref(shape);
            shape = NULL;
        }
    json_t *object = json_object();
    bool ok = put(root, tensor->name, object) &&
              put(object, "dtype", json_string(fini_dtypes[tensor->dtype].name));
    if (!ok)
        json_decref(shape);
    if (!ok || !put(object, "shape", shape) ||
        !put(object, "data_offsets", json_pack("[I, I]", (json_int_t)begin, (json_int_t)end)))
        return fail_json(path, err);
    return FIN_OK;
}

/* The tensors in the order of the file: larger elements first, else as they were given. */
static fin_status put_tensors(json_t *root, const char *path, const fin_tensor *tensors,
                              int64_t count, int64_t *order, fin_error *err)
{
    int64_t at = 0, placed = 0, bytes;
    for (size_t size = 8; size > 0; size /= 2)
        for (int64_t i = 0; i < count; i++) {
            if (fin_dtype_size(tensors[i].dtype) != size)
                continue;
            FINI_TRY(check_tensor(path, &tensors[i], &bytes, err));
            if (bytes > INT64_MAX / 2 - at)
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "cannot write '%.200s': the size of its tensors overflows", path);
            FINI_TRY(put_tensor(root, path, &tensors[i], at, at + bytes, err));
            order[placed++] = i;
            at += bytes;
        }
    for (int64_t i = 0; placed < count && i < count; i++) /* an unknown type */
        if (!fin_dtype_size(tensors[i].dtype))
            return check_tensor(path, &tensors[i], &bytes, err);
    return FIN_OK;
}

/* *header: length, text and spaces, for fini_free. */
static fin_status make_header(const char *path, const json_t *root, char **header, size_t *size,
                              fin_error *err)
{
    const size_t lead = sizeof(uint64_t), step = FINI_TENSOR_ALIGN;
    size_t length = json_dumpb(root, NULL, 0, JSON_COMPACT);
    size_t total = (lead + length + step - 1) / step * step;
    if (length == 0)
        return fail_json(path, err);
    if (total - lead > FINI_HEADER_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot write '%.200s': its header has %zu bytes; at most %d are allowed: "
                         "fewer tensors or shorter metadata are needed",
                         path, total - lead, FINI_HEADER_MOST);
    char *bytes = fini_alloc(total);
    if (!bytes)
        return fini_fail_memory(err, total, "the header of a file of tensors");
    *header = bytes;
    *size = total;
    for (size_t i = 0; i < lead; i++)
        bytes[i] = (char)((uint64_t)(total - lead) >> 8 * i & 0xff);
    memset(bytes + lead, ' ', total - lead);
    return json_dumpb(root, bytes + lead, length, JSON_COMPACT) == length ? FIN_OK
                                                                          : fail_json(path, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static size_t tensor_bytes(const fin_tensor *tensor)
{
    int64_t count = 0;
    fini_shape_count(tensor->dtype, tensor->ndim, tensor->shape, &count);
    return (size_t)count * fin_dtype_size(tensor->dtype);
}

/* Puts the checksum of header and tensors into the header. */
static fin_status put_checksum(char *header, size_t size, const fin_tensor *tensors, int64_t count,
                               const int64_t *order, fin_error *err)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return fini_fail_memory(err, 1024, "a checksum");
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, header, size);
    for (int64_t i = 0; i < count; i++) {
        size_t bytes = tensor_bytes(&tensors[order[i]]);
        if (bytes)
            XXH3_64bits_update(state, tensors[order[i]].data, bytes);
    }
    char digits[FINI_CHECKSUM + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits_digest(state));
    memcpy(header + sizeof(uint64_t) + FINI_CHECKSUM_AT, digits, FINI_CHECKSUM);
    XXH3_freeState(state);
    return FIN_OK;
}

static fin_status write_all(const char *path, const char *header, size_t size,
                            const fin_tensor *tensors, int64_t count, const int64_t *order,
                            fin_error *err)
{
    fini_output *output;
    FINI_TRY(fini_output_open(path, false, &output, err));
    fin_status status = fini_output_write(output, header, size, err);
    for (int64_t i = 0; i < count && !status; i++) {
        size_t bytes = tensor_bytes(&tensors[order[i]]);
        if (bytes)
            status = fini_output_write(output, tensors[order[i]].data, bytes, err);
    }
    if (!status)
        return fini_output_commit(output, err);
    fini_output_abort(output);
    return status;
}

fin_status fin_tensors_write(const char *path, const fin_entry *metadata, int64_t entries,
                             const fin_tensor *tensors, int64_t count, fin_error *err)
{
    FINI_NEED(err, path, !entries || metadata, !count || tensors);
    FINI_FREED char *header = NULL;
    size_t size = 0;
    json_t *root = json_object();
    FINI_FREED int64_t *order = fini_alloc_array(count, sizeof *order);
    fin_status status = FIN_OK;
    if (!order)
        status = fini_fail_memory(err, (size_t)count * sizeof *order, "a file of tensors");
    else if (!root)
        status = fail_json(path, err);
    if (!status)
        status = put_metadata(root, path, metadata, entries, err);
    if (!status)
        status = put_tensors(root, path, tensors, count, order, err);
    if (!status)
        status = make_header(path, root, &header, &size, err);
    json_decref(root);
    if (!status)
        status = put_checksum(header, size, tensors, count, order, err);
    if (!status)
        status = write_all(path, header, size, tensors, count, order, err);
    return status;
}

/* ---- metadata -------------------------------------------------------------------------------- */

void fini_metadata_add(fini_metadata *m, const char *before, const char *key, const char *value)
{
    if (!m->status)
        m->status = fini_names_join(&m->texts, before, key, m->err);
    if (!m->status)
        m->status = fini_names_add(&m->texts, value, strlen(value), m->err);
}

void fini_metadata_number(fini_metadata *m, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    fini_metadata_add(m, "", key, text);
}

void fini_metadata_open(fini_metadata *m, const char *kind, int version, fin_error *err)
{
    *m = (fini_metadata){.err = err};
    fini_metadata_add(m, "", "finetti", kind);
    fini_metadata_number(m, "version", version);
}

void fini_metadata_settings(fini_metadata *m, const char *before, const fin_settings *table,
                            const void *values)
{
    char text[64];
    for (int i = 0; i < table->count; i++)
        fini_metadata_add(m, before, table->fields[i].name,
                          fin_settings_text(&table->fields[i], values, text, sizeof text));
}

fin_status fini_metadata_write(fini_metadata *m, const char *path, const fin_tensor *tensors,
                               int64_t count)
{
    int64_t entries = m->texts.count / 2;
    fin_entry *entry = m->status ? NULL : fini_alloc_array(entries, sizeof *entry);
    if (!m->status && !entry)
        m->status = fini_fail_memory(m->err, (size_t)entries * sizeof *entry, "metadata");
    for (int64_t i = 0; i < entries && !m->status; i++)
        entry[i] =
            (fin_entry){fini_names_get(&m->texts, 2 * i), fini_names_get(&m->texts, 2 * i + 1)};
    if (!m->status)
        m->status = fin_tensors_write(path, entry, entries, tensors, count, m->err);
    fini_free(entry);
    fini_names_close(&m->texts);
    return m->status;
}
