/* Weights of an encoder: a safetensors file that stays where it is.
 *
 * The file is mapped, so that weights that are asked for are in memory once, shared with whoever else
 * has the file, and those that are not never are. (A file that another program cuts short meanwhile ends
 * this one, as it would any reader of mapped weights; a file of ours is read instead, tensors_read.c.)
 * Half precisions are converted where they are used. A tensor is believed as far as its bytes are in
 * the file and as many as its shape asks for. */
#define _DEFAULT_SOURCE /* madvise */
#include "data/tensors.h"
#include "text/text.h"

#include <string.h>
#include <sys/mman.h>

struct fini_weights {
    fin_tensor_file *file;
    unsigned char *map; /* from the first byte of the file */
    size_t size, data;  /* of it; where the tensors begin */
};

static const size_t widths[] = {[FINI_F32] = 4, [FINI_F16] = 2, [FINI_BF16] = 2};

fin_status fini_weights_open(fini_weights **out, const char *path, fin_error *err)
{
    *out = NULL;
    FINI_MAKE(err, "weights", fini_weights, w);
    *w = (fini_weights){0};
    fin_status status = fini_tensors_head(path, &w->file, err);
    if (!status) {
        w->data = 8 + (size_t)w->file->header_size;
        w->size = w->data + (size_t)w->file->size;
        w->map = mmap(NULL, w->size, PROT_READ, MAP_PRIVATE, w->file->fd, 0);
        if (w->map == MAP_FAILED) {
            w->map = NULL;
            status = fini_fail(err, FIN_ERR_MEMORY, "'%.200s' (%.2g GB) cannot be mapped", path,
                               (double)w->size / 1e9);
        }
    }
    FINI_HAND_OVER(out, w, status, fini_weights_close);
}

void fini_weights_close(fini_weights *w)
{
    if (!w)
        return;
    if (w->map)
        munmap(w->map, w->size);
    fin_tensors_close(w->file);
    fini_free(w);
}

bool fini_weights_has(const fini_weights *w, const char *name)
{
    return json_object_get(w->file->root, name) != NULL;
}

static bool whole(const json_t *array, size_t i, int64_t *value)
{
    const json_t *number = json_array_get(array, i);
    *value = json_integer_value(number);
    return json_is_integer(number) && *value >= 0;
}

static bool read_type(const char *name, fini_float *type)
{
    static const char *const names[] = {
        [FINI_F32] = "F32", [FINI_F16] = "F16", [FINI_BF16] = "BF16"};
    for (int i = FINI_F32; i <= FINI_BF16; i++)
        if (name && strcmp(name, names[i]) == 0) {
            *type = (fini_float)i;
            return true;
        }
    return false;
}

fin_status fini_weights_get(const fini_weights *w, const char *name, int64_t rows, int64_t columns,
                            fini_weight *weight, fin_error *err)
{
    const json_t *tensor = json_object_get(w->file->root, name);
    const json_t *shape = json_object_get(tensor, "shape"),
                 *offsets = json_object_get(tensor, "data_offsets");
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    int64_t have[2] = {0, 1}, begin, end;
    size_t axes = columns ? 2 : 1;
    if (!tensor)
        return fini_fail(err, FIN_ERR_FORMAT, "'%s' has no tensor '%.120s'", w->file->path, name);
    if (!read_type(type, &weight->type))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "tensor '%.120s' of '%s' has dtype %s; F32, F16 and BF16 are read", name,
                         w->file->path, type ? FINI_SHOW(type) : "none");
    if (json_array_size(shape) != axes || !whole(shape, 0, &have[0]) ||
        (columns && !whole(shape, 1, &have[1])) || have[0] != rows ||
        (columns && have[1] != columns))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor '%.120s' of '%s' has not the shape that config.json asks for, "
                         "%lld x %lld",
                         name, w->file->path, (long long)rows, (long long)(columns ? columns : 1));
    if (json_array_size(offsets) != 2 || !whole(offsets, 0, &begin) || !whole(offsets, 1, &end) ||
        begin > end || end > w->file->size ||
        end - begin != rows * have[1] * (int64_t)widths[weight->type])
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor '%.120s' of '%s' has not the bytes that its shape asks for: the "
                         "file was cut short or changed",
                         name, w->file->path);
    weight->rows = rows;
    weight->columns = have[1];
    weight->data = w->map + w->data + begin;
    return FIN_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------ */

static float brain(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const float *floats(fini_float type, int64_t count, const unsigned char *data, float *room)
{
    uint16_t h;
    if (type == FINI_F32 && (uintptr_t)data % sizeof(float) == 0)
        return (const float *)(const void *)data;
    if (type == FINI_F32)
        memcpy(room, data, (size_t)count * sizeof *room);
    else
        for (int64_t i = 0; i < count; i++) {
            memcpy(&h, data + 2 * i, sizeof h);
            room[i] = type == FINI_F16 ? fini_half(h) : brain(h);
        }
    return room;
}

const float *fini_weight_floats(const fini_weight *w, float *room)
{
    return floats(w->type, w->rows * w->columns, w->data, room);
}

const float *fini_weight_row(const fini_weight *w, int64_t r, float *room)
{
    return floats(w->type, w->columns, w->data + r * w->columns * (int64_t)widths[w->type], room);
}
