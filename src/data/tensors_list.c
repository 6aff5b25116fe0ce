/* The list of tensors in a file's header, believed only as far as it agrees with the bytes that are
 * there: every tensor has as many bytes as its shape asks for, and together they are the data, from
 * the first byte to the last, without holes and overlaps, as safetensors itself demands.
 *
 * Tensors stay where they were read, if their alignment allows it; others, which only files of other
 * programs have, are copied. */
#include "data/tensors.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    fin_tensor tensor;
    int64_t begin, end; /* in the data */
} place;

/* False if it is not a whole number from 0 on. */
static bool whole(const json_t *array, size_t i, int64_t *value)
{
    const json_t *number = json_array_get(array, i);
    *value = json_integer_value(number);
    return json_is_integer(number) && *value >= 0;
}

static fin_status read_slot(const fin_tensor_file *file, const char *name, const json_t *json,
                            place *slot, fin_error *err)
{
    fin_tensor *tensor = &slot->tensor;
    const json_t *shape = json_object_get(json, "shape"),
                 *offsets = json_object_get(json, "data_offsets");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    const char *shown = FINI_SHOW(name);
    if (!json_is_array(shape) || !dtype || json_array_size(offsets) != 2 ||
        !whole(offsets, 0, &slot->begin) || !whole(offsets, 1, &slot->end) ||
        slot->begin > slot->end)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor '%s' of '%s' has no readable dtype, shape and data_offsets", shown,
                         file->path);
    if (!fini_dtype_find(dtype, false, &tensor->dtype) ||
        json_array_size(shape) > FINI_TENSOR_AXES || strlen(name) >= sizeof tensor->name ||
        fini_text_fault(name, strlen(name), false))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "tensor '%s' of '%s' has dtype %s and %zu axes; F32, F64, I32, I64 and U8 "
                         "with at most %d axes and printable names of at most %d bytes are read",
                         shown, file->path, FINI_SHOW(dtype), json_array_size(shape),
                         FINI_TENSOR_AXES, (int)sizeof tensor->name - 1);
    strcpy(tensor->name, name);
    tensor->ndim = (int)json_array_size(shape);
    int64_t count = 0;
    bool ok = true;
    for (int i = 0; i < tensor->ndim; i++)
        ok &= whole(shape, (size_t)i, &tensor->shape[i]);
    if (!ok || !fini_shape_count(tensor->dtype, tensor->ndim, tensor->shape, &count) ||
        slot->end - slot->begin != count * (int64_t)fin_dtype_size(tensor->dtype))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor '%s' of '%s' has %lld bytes, which is not what its shape asks for",
                         shown, file->path, (long long)(slot->end - slot->begin));
    return FIN_OK;
}

static int by_place(const void *a, const void *b)
{
    const place *s = a, *t = b;
    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    if (s->end != t->end)
        return s->end < t->end ? -1 : 1;
    return strcmp(s->tensor.name, t->tensor.name);
}

/* Sorts the tensors as they lie in the file, one after the other from the first byte to the last. */
static fin_status check_places(const fin_tensor_file *file, place *slots, fin_error *err)
{
    int64_t at = 0;
    if (file->count)
        qsort(slots, (size_t)file->count, sizeof *slots, by_place);
    for (int64_t i = 0; i < file->count; at = slots[i++].end)
        if (slots[i].begin != at)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "tensor '%s' of '%s' begins at byte %lld of the data, and the one "
                             "before it ends at byte %lld: no holes and no overlaps are allowed",
                             slots[i].tensor.name, file->path, (long long)slots[i].begin,
                             (long long)at);
    if (at != file->size)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the tensors of '%s' have %lld bytes, and %lld are there: the file was "
                         "cut short or changed",
                         file->path, (long long)at, (long long)file->size);
    return FIN_OK;
}

/* Bytes of a copy; 0: it can stay where it is. */
static int64_t copy_bytes(const place *slot)
{
    const int64_t step = FINI_TENSOR_ALIGN, bytes = slot->end - slot->begin;
    bool aligned = slot->begin % (int64_t)fin_dtype_size(slot->tensor.dtype) == 0;
    return aligned ? 0 : (bytes + step - 1) / step * step;
}

static fin_status place_tensors(fin_tensor_file *file, const place *slots, fin_error *err)
{
    int64_t more = 0;
    for (int64_t i = 0; i < file->count; i++)
        more += copy_bytes(&slots[i]);
    if (more && !(file->copy = fini_alloc((size_t)more)))
        return fini_fail_memory(err, (size_t)more, "tensors from a file");
    more = 0;
    for (int64_t i = 0; i < file->count; i++) {
        const unsigned char *data = file->data + slots[i].begin;
        int64_t bytes = copy_bytes(&slots[i]);
        if (bytes)
            data = memcpy(file->copy + more, data, (size_t)(slots[i].end - slots[i].begin));
        more += bytes;
        file->tensors[i] = slots[i].tensor;
        file->tensors[i].data = data;
    }
    return FIN_OK;
}

fin_status fini_tensors_list(fin_tensor_file *file, fin_error *err)
{
    const char *name;
    json_t *value;
    int64_t room = (int64_t)json_object_size(file->root);
    place *slots = fini_alloc_array(room, sizeof *slots);
    file->tensors = fini_alloc_array(room, sizeof *file->tensors);
    fin_status status = slots && file->tensors
                            ? FIN_OK
                            : fini_fail_memory(err, (size_t)room * sizeof *slots, "tensors");
    json_object_foreach(file->root, name, value)
    {
        if (status || strcmp(name, "__metadata__") == 0)
            continue;
        slots[file->count] = (place){.begin = 0};
        status = read_slot(file, name, value, &slots[file->count++], err);
    }
    if (!status)
        status = check_places(file, slots, err);
    if (!status)
        status = place_tensors(file, slots, err);
    fini_free(slots);
    return status;
}
