/* Models to files (model.c says what is in them). The same fit, names and notes give the same bytes. */
#include "data/tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIXED = 5, TEXT = 64 }; /* entries beside settings and notes; room for a setting as text */

/* The names from the set, one after the other, as a tensor; *letters for fini_free. */
static fin_status join_names(const char *(*name)(const fin_bag_set *set, int64_t i),
                             const fin_bag_set *set, const char *title, int64_t count,
                             fin_tensor *tensor, char **letters, fin_error *err)
{
    size_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *text = name(set, i);
        if (!text)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "a model needs the names of its %s, and number %lld has none", title,
                             (long long)i);
        size += strlen(text) + 1;
    }
    char *to = *letters = fini_alloc(size ? size : 1);
    if (!to)
        return fini_fail_memory(err, size, "the names of a model");
    for (int64_t i = 0; i < count; i++) {
        size_t length = strlen(name(set, i)) + 1;
        memcpy(to, name(set, i), length);
        to += length;
    }
    *tensor = (fin_tensor){.dtype = FIN_U8, .ndim = 1, .shape = {(int64_t)size}, .data = *letters};
    snprintf(tensor->name, sizeof tensor->name, FINI_NAMES "%s", title);
    return FIN_OK;
}

/* Tensors of the fit and the names; *count of them, for fini_free. */
static fin_status gather_tensors(const fin_fit *fit, const fin_bag_set *set, fin_tensor **tensors,
                                 int64_t *count, char *letters[2], fin_error *err)
{
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    int64_t of_fit = fin_fit_tensors(fit, NULL, 0);
    if (info.d != fin_bag_set_bags(set)->d || info.classes != fin_bag_set_classes(set))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the fit has %lld columns and %lld classes, and the bags that name them "
                         "%lld and %lld",
                         (long long)info.d, (long long)info.classes,
                         (long long)fin_bag_set_bags(set)->d, (long long)fin_bag_set_classes(set));
    *tensors = fini_alloc_array(of_fit + 2, sizeof **tensors);
    if (!*tensors)
        return fini_fail_memory(err, (size_t)(of_fit + 2) * sizeof **tensors, "a model");
    *count = fin_fit_tensors(fit, *tensors, of_fit);
    fin_status status = join_names(fin_bag_set_feature, set, "features", info.d,
                                   &(*tensors)[(*count)++], &letters[0], err);
    if (!status && info.classes)
        status = join_names(fin_bag_set_class, set, "classes", info.classes,
                            &(*tensors)[(*count)++], &letters[1], err);
    return status;
}

/* Room for `most` entries whose keys and values are made here. */
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

static fin_status gather_entries(const fin_fit *fit, const fin_bag_set *set, const fin_entry *notes,
                                 int64_t count, struct entries *list, fin_error *err)
{
    const fin_settings *table = &fin_fit_table;
    const char *label = fin_bag_set_label(set), *bag = fin_bag_set_bag(set),
               *group = fin_bag_set_group(set);
    char text[TEXT];
    list->room =
        256 + (label ? strlen(label) : 0) + (bag ? strlen(bag) : 0) + (group ? strlen(group) : 0);
    for (int i = 0; i < table->count; i++)
        list->room += strlen(table->fields[i].name) + TEXT + 16;
    for (int64_t i = 0; i < count; i++)
        list->room += strlen(notes[i].key) + strlen(notes[i].value) + 40;
    list->entry = fini_alloc_array(FIXED + table->count + count, sizeof *list->entry);
    list->letters = fini_alloc(list->room);
    if (!list->entry || !list->letters)
        return fini_fail_memory(err, list->room, "a model");
    add_entry(list, "model", "finetti");
    snprintf(text, sizeof text, "%d", FIN_MODEL_VERSION);
    add_entry(list, text, "version");
    add_entry(list, label ? label : "", "label");
    if (bag)
        add_entry(list, bag, "bag");
    if (group)
        add_entry(list, group, "group");
    const fin_fit_settings *settings = fin_fit_get_settings(fit);
    for (int i = 0; i < table->count; i++)
        add_entry(list, fin_settings_text(&table->fields[i], settings, text, sizeof text),
                  "setting.%s", table->fields[i].name);
    for (int64_t i = 0; i < count; i++)
        add_entry(list, notes[i].value, "note.%lld.%s", (long long)i + 1, notes[i].key);
    return FIN_OK;
}

fin_status fin_model_write(const char *path, const fin_fit *fit, const fin_bag_set *set,
                           const fin_entry *notes, int64_t count, fin_error *err)
{
    fin_tensor *tensors = NULL;
    char *letters[2] = {NULL, NULL};
    int64_t tensor_count = 0;
    struct entries list = {0};
    fin_status status = gather_tensors(fit, set, &tensors, &tensor_count, letters, err);
    if (!status)
        status = gather_entries(fit, set, notes, count, &list, err);
    if (!status)
        status = fin_tensors_write(path, list.entry, list.count, tensors, tensor_count, err);
    fini_free(list.entry);
    fini_free(list.letters);
    fini_free(letters[0]);
    fini_free(letters[1]);
    fini_free(tensors);
    return status;
}
