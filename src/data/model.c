/* Models in files: a fit with the names of its columns and classes, as safetensors (tensors.h).
 *
 *     metadata   finetti = "model", version, written_by, label, bag, group (names of columns; bag and
 *                group only if there are such),
 *                setting.<field> = "softmax" ..., note.<number>.<key> = what a person may read again
 *     tensors    those of the fit ("0.members" ...), and names.features and names.classes: the names,
 *                each with a NUL behind it
 *
 * Names are tensors because there may be millions of them, and a header is small. A setting that a
 * file does not have keeps its default, so that settings can be added without a new version; one that
 * this version does not know is refused, because the model would mean something else without it. */
#include "data/tensors.h"

#include <string.h>

struct fin_model {
    fini_arena arena; /* holds this struct too */
    fin_fit *fit;
    int64_t features, classes, note_count;
    const char **feature_names, **class_names; /* class_names: NULL for numbers */
    char *label, *bag, *group;                 /* bag, group: NULL if the file has none */
    fin_entry *notes;
    char *letters; /* texts of all of these */
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The key of a note without its number, or NULL if it is none. */
static const char *note_key(const char *key)
{
    if (!begins(key, "note."))
        return NULL;
    key += strlen("note.");
    const char *digits = key;
    while (*key >= '0' && *key <= '9')
        key++;
    return key > digits && *key == '.' ? key + 1 : NULL;
}

static fin_status read_settings(const char *path, const fin_tensor_file *file,
                                fin_fit_settings *settings, fin_error *err)
{
    const fin_entry *entry;
    int64_t count = fini_tensors_entries(file, &entry);
    fin_error why = {FIN_OK, ""};
    fin_status status = FIN_OK;
    fin_settings_defaults(&fin_fit_table, settings);
    for (int64_t i = 0; i < count && !status; i++)
        if (begins(entry[i].key, "setting.")) {
            const char *name = entry[i].key + strlen("setting.");
            if (strcmp(name, "features") == 0) /* so it was called in version 0.1 */
                name = "basis";
            status = fin_settings_parse(&fin_fit_table, settings, name, entry[i].value, &why);
        }
    if (!status)
        status = fin_settings_validate(&fin_fit_table, settings, &why);
    if (!status)
        return FIN_OK;
    char text[200];
    fini_printable(why.message, strlen(why.message), text, sizeof text);
    return fini_fail(err, FIN_ERR_FORMAT,
                     "the model '%.200s' has a setting that is not allowed: %s", path, text);
}

static int64_t count_names(const fin_tensor *tensor)
{
    const char *text = tensor ? tensor->data : NULL;
    int64_t count = 0, size = tensor && tensor->ndim == 1 ? tensor->shape[0] : 0;
    if (!tensor || tensor->dtype != FIN_U8 || (size && text[size - 1]))
        return -1;
    for (int64_t i = 0; i < size; i++)
        count += !text[i];
    return count;
}

/* The fit: from all tensors but the names. */
static fin_status restore(const char *path, const fin_tensor_file *file, fin_fit **fit,
                          fin_error *err)
{
    fin_fit_settings settings;
    fin_error why = {FIN_OK, ""};
    int64_t count = 0;
    fin_status status = read_settings(path, file, &settings, err);
    if (status)
        return status;
    fin_tensor *tensors = fini_alloc_array(fin_tensors_count(file), sizeof *tensors);
    if (!tensors)
        return fini_fail_memory(err, (size_t)fin_tensors_count(file) * sizeof *tensors, "a model");
    for (int64_t i = 0; i < fin_tensors_count(file); i++)
        if (!begins(fin_tensors_at(file, i)->name, FINI_NAMES))
            tensors[count++] = *fin_tensors_at(file, i);
    status = fin_fit_restore(fit, &settings, tensors, count, &why);
    fini_free(tensors);
    if (status)
        fini_fail(err, status, "cannot read the model '%.200s': %.280s", path, why.message);
    return status;
}

/* The names begin in `letters`; their texts are copied there first. */
static const char *list_names(const fin_tensor *tensor, int64_t count, const char **names,
                              char *letters)
{
    if (tensor && tensor->shape[0])
        memcpy(letters, tensor->data, (size_t)tensor->shape[0]);
    for (int64_t i = 0; i < count; i++) {
        names[i] = letters;
        letters += strlen(letters) + 1;
    }
    return letters;
}

static fin_model *layout(fini_arena *arena, const fin_model *sizes, int64_t letters)
{
    fin_model *model = fini_take(arena, 1, sizeof *model);
    const char **features = fini_take(arena, sizes->features, sizeof *features);
    const char **classes = fini_take(arena, sizes->classes, sizeof *classes);
    fin_entry *notes = fini_take(arena, sizes->note_count, sizeof *notes);
    char *text = fini_take(arena, letters, 1);
    if (!arena->base)
        return NULL;
    *model = *sizes;
    model->feature_names = features;
    model->class_names = sizes->classes ? classes : NULL;
    model->notes = notes;
    model->letters = text;
    return model;
}

static char *copy_text(char **to, const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = memcpy(*to, text, length);
    *to += length;
    return copy;
}

/* Takes the fit in `sizes`. */
static fin_status build(const fin_tensor_file *file, fin_model *sizes, fin_model **out,
                        fin_error *err)
{
    const fin_tensor *features = fin_tensors_find(file, FINI_NAMES "features"),
                     *classes = fin_tensors_find(file, FINI_NAMES "classes");
    const char *label = fin_tensors_entry(file, "label"), *bag = fin_tensors_entry(file, "bag"),
               *group = fin_tensors_entry(file, "group");
    const fin_entry *entry;
    int64_t entries = fini_tensors_entries(file, &entry), letters = features->shape[0];
    label = label ? label : "";
    letters += (sizes->classes ? classes->shape[0] : 0) + (int64_t)strlen(label) + 1;
    letters += (int64_t)((bag ? strlen(bag) + 1 : 0) + (group ? strlen(group) + 1 : 0));
    for (int64_t i = 0; i < entries; i++)
        if (note_key(entry[i].key)) {
            sizes->note_count++;
            letters += (int64_t)(strlen(entry[i].key) + strlen(entry[i].value) + 2);
        }
    fini_arena arena = {0};
    layout(&arena, sizes, letters);
    fin_status status = fini_arena_open(&arena, "a model", err);
    if (status)
        return status;
    fin_model *model = *out = layout(&arena, sizes, letters);
    model->arena = arena;
    char *to = model->letters + features->shape[0];
    list_names(features, model->features, model->feature_names, model->letters);
    if (model->classes) {
        list_names(classes, model->classes, model->class_names, to);
        to += classes->shape[0];
    }
    model->label = copy_text(&to, label);
    model->bag = bag ? copy_text(&to, bag) : NULL;
    model->group = group ? copy_text(&to, group) : NULL;
    fin_entry *note = model->notes;
    for (int64_t i = 0; i < entries; i++)
        if (note_key(entry[i].key)) {
            note->key = copy_text(&to, note_key(entry[i].key));
            note++->value = copy_text(&to, entry[i].value);
        }
    return FIN_OK;
}

fin_status fin_model_read(const char *path, fin_model **out, fin_error *err)
{
    fin_tensor_file *file;
    fin_model sizes = {0};
    fin_fit_info info;
    *out = NULL;
    fin_status status = fini_tensors_open(path, "model", FIN_MODEL_VERSION, &file, err);
    if (status)
        return status;
    status = restore(path, file, &sizes.fit, err);
    if (!status) {
        fin_fit_get_info(sizes.fit, &info);
        sizes.features = info.d;
        sizes.classes = info.classes;
        if (count_names(fin_tensors_find(file, FINI_NAMES "features")) != info.d ||
            (info.classes &&
             count_names(fin_tensors_find(file, FINI_NAMES "classes")) != info.classes))
            status = fini_fail(err, FIN_ERR_FORMAT,
                               "the model '%.200s' has %lld columns and %lld classes, and not as "
                               "many names for them",
                               path, (long long)info.d, (long long)info.classes);
    }
    if (!status)
        status = build(file, &sizes, out, err);
    if (status)
        fin_fit_destroy(sizes.fit);
    fin_tensors_close(file);
    return status;
}

void fin_model_destroy(fin_model *model)
{
    if (!model)
        return;
    fin_fit_destroy(model->fit);
    fini_arena arena = model->arena; /* the model lies in it */
    fini_arena_close(&arena);
}

/* ---- what is in it --------------------------------------------------------------------------- */

const fin_fit *fin_model_fit(const fin_model *model)
{
    return model->fit;
}

int64_t fin_model_features(const fin_model *model)
{
    return model->features;
}

int64_t fin_model_classes(const fin_model *model)
{
    return model->classes;
}

const char *const *fin_model_feature_names(const fin_model *model)
{
    return model->feature_names;
}

const char *const *fin_model_class_names(const fin_model *model)
{
    return model->class_names;
}

const char *fin_model_label(const fin_model *model)
{
    return model->label;
}

const char *fin_model_bag(const fin_model *model)
{
    return model->bag;
}

const char *fin_model_group(const fin_model *model)
{
    return model->group;
}

int64_t fin_model_notes(const fin_model *model, const fin_entry **notes)
{
    *notes = model->notes;
    return model->note_count;
}
