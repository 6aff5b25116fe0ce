/* Encoders to files (checkpoint.h says what is in them). The same encoder and entries give the same
 * bytes. The file is written whole under a temporary name and renamed (fin_tensors_write), so that a
 * full disk or a power cut leaves the last good checkpoint. */
#include "data/checkpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIXED = 4, TEXT = 64, SCALES = 2 };

const char *const fini_head_kinds[FINI_HEAD_KINDS] = {"value", "gaussian", "classes"};
const char *const fini_head_places[FINI_HEAD_PLACES] = {"tokens", "pooled"};

/* ---- metadata --------------------------------------------------------------------------------- */

/* Room for the entries whose keys and values are made here. */
struct entries {
    fin_entry *entry;
    int64_t count;
    char *letters;
    size_t used, room;
};

__attribute__((format(printf, 3, 4))) static void add_entry(struct entries *list, const char *value,
                                                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *key = list->letters + list->used;
    int length = vsnprintf(key, list->room - list->used, format, arguments);
    va_end(arguments);
    list->used += (size_t)length + 1;
    char *copy = list->letters + list->used;
    memcpy(copy, value, strlen(value) + 1);
    list->used += strlen(value) + 1;
    list->entry[list->count++] = (fin_entry){key, copy};
}

static void add_settings(struct entries *list, const fin_settings *table, const void *values,
                         const char *before)
{
    char text[TEXT];
    for (int i = 0; i < table->count; i++)
        add_entry(list, fin_settings_text(&table->fields[i], values, text, sizeof text), "%s%s",
                  before, table->fields[i].name);
}

static void add_shape(struct entries *list, const fin_encoder_shape *shape)
{
    char text[2 * TEXT], weight[TEXT];
    snprintf(text, sizeof text, "%lld", (long long)shape->inputs);
    add_entry(list, text, "inputs");
    snprintf(text, sizeof text, "%lld", (long long)shape->values);
    add_entry(list, text, "values");
    for (int64_t i = 0; i < shape->heads; i++) {
        const fin_head *head = &shape->head[i];
        fini_print_double(head->weight, 17, weight, sizeof weight);
        snprintf(text, sizeof text, "%s %s %s %lld %s", head->name, fini_head_kinds[head->kind],
                 fini_head_places[head->where], (long long)head->size, weight);
        add_entry(list, text, FINI_CHECKPOINT_HEAD "%lld", (long long)i);
    }
}

static size_t settings_room(const fin_settings *table)
{
    size_t room = 0;
    for (int i = 0; i < table->count; i++)
        room += strlen(table->fields[i].name) + TEXT + 16;
    return room;
}

static fin_status gather_entries(struct entries *list, const fin_encoder *encoder,
                                 const fin_learn *learn, const fin_entry *entries, int64_t count,
                                 fin_error *err)
{
    char text[TEXT];
    list->room = 512 + FIN_HEADS_MOST * (2 * TEXT + 32) + settings_room(&fin_encoder_table) +
                 settings_room(&fin_learn_table);
    for (int64_t i = 0; i < count; i++)
        list->room += strlen(entries[i].key) + strlen(entries[i].value) + 16;
    int64_t most = FIXED + FIN_HEADS_MOST + fin_encoder_table.count + fin_learn_table.count + count;
    list->entry = fini_alloc_array(most, sizeof *list->entry);
    list->letters = fini_alloc(list->room);
    if (!list->entry || !list->letters)
        return fini_fail_memory(err, list->room, "a checkpoint");
    add_entry(list, "encoder", "finetti");
    snprintf(text, sizeof text, "%d", FIN_CHECKPOINT_VERSION);
    add_entry(list, text, "version");
    add_settings(list, &fin_encoder_table, fin_encoder_get_settings(encoder),
                 FINI_CHECKPOINT_SETTING);
    add_shape(list, fin_encoder_get_shape(encoder));
    if (learn)
        add_settings(list, &fin_learn_table, fin_learn_get_settings(learn), FINI_CHECKPOINT_LEARN);
    for (int64_t i = 0; i < count; i++)
        add_entry(list, entries[i].value, FINI_CHECKPOINT_ENTRY "%s", entries[i].key);
    return FIN_OK;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

static fin_status gather_tensors(const fin_encoder *encoder, const fin_learn *learn,
                                 const fin_token_scale *scale, fin_tensor **out, int64_t *count,
                                 fin_error *err)
{
    int64_t own = fin_encoder_tensors(encoder, NULL, 0);
    int64_t state = learn ? fin_learn_tensors(learn, NULL, 0) : 0, room = own + state + SCALES;
    fin_tensor *tensors = *out = fini_alloc_array(room, sizeof *tensors);
    if (!tensors)
        return fini_fail_memory(err, (size_t)room * sizeof *tensors, "a checkpoint");
    fin_encoder_tensors(encoder, tensors, own);
    if (learn) /* their names begin with "learn." */
        fin_learn_tensors(learn, tensors + own, state);
    *count = own + state;
    if (scale) {
        const fin_tensor center = {"scale.center", FIN_F64, 1, {scale->columns}, scale->center};
        tensors[(*count)++] = center;
        const fin_tensor by = {"scale.scale", FIN_F64, 1, {scale->columns}, scale->scale};
        tensors[(*count)++] = by;
    }
    return FIN_OK;
}

fin_status fin_checkpoint_write(const char *path, const fin_encoder *encoder,
                                const fin_learn *learn, const fin_token_scale *scale,
                                const fin_entry *entries, int64_t count, fin_error *err)
{
    fin_tensor *tensors = NULL;
    int64_t tensor_count = 0;
    struct entries list = {0};
    fin_status status = gather_tensors(encoder, learn, scale, &tensors, &tensor_count, err);
    if (!status)
        status = gather_entries(&list, encoder, learn, entries, count, err);
    if (!status)
        status = fin_tensors_write(path, list.entry, list.count, tensors, tensor_count, err);
    fini_free(list.entry);
    fini_free(list.letters);
    fini_free(tensors);
    return status;
}
