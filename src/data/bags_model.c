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

#include <stdio.h>
#include <string.h>

/* Tensors that are names and not part of the fit begin so. */
#define NAMES "names."

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

/* The key of a note without its number, or NULL if it is none. */
static const char *note_key(const char *key)
{
    if (!fini_begins(key, "note."))
        return NULL;
    key += strlen("note.");
    const char *digits = key;
    while (*key >= '0' && *key <= '9')
        key++;
    return key > digits && *key == '.' ? key + 1 : NULL;
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

/* The fit: from the tensors that it knows; the names are none of them. */
static fin_status restore(const char *path, const fin_tensor_file *file, fin_fit **fit,
                          fin_error *err)
{
    fin_fit_settings settings;
    fin_error why = {FIN_OK, ""};
    FINI_TRY(
        fini_tensors_settings(file, "model", "setting.", &fin_fit_table, &settings, NULL, err));
    fin_status status = fin_fit_restore(fit, &settings, file->tensors, file->count, &why);
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
    const fin_tensor *features = fin_tensors_find(file, NAMES "features"),
                     *classes = fin_tensors_find(file, NAMES "classes");
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
    FINI_TRY(fini_arena_open(&arena, "a model", err));
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
    FINI_NEED_TO_MAKE(err, out, path);
    fin_tensor_file *file;
    fin_model sizes = {0};
    fin_fit_info info;
    FINI_TRY(fini_tensors_open(path, "model", FIN_MODEL_VERSION, &file, err));
    fin_status status = restore(path, file, &sizes.fit, err);
    if (!status) {
        fin_fit_get_info(sizes.fit, &info);
        sizes.features = info.d;
        sizes.classes = info.classes;
        if (count_names(fin_tensors_find(file, NAMES "features")) != info.d ||
            (info.classes && count_names(fin_tensors_find(file, NAMES "classes")) != info.classes))
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
    return model ? model->fit : NULL;
}

int64_t fin_model_features(const fin_model *model)
{
    return model ? model->features : 0;
}

int64_t fin_model_classes(const fin_model *model)
{
    return model ? model->classes : 0;
}

const char *const *fin_model_feature_names(const fin_model *model)
{
    return model ? model->feature_names : NULL;
}

const char *const *fin_model_class_names(const fin_model *model)
{
    return model ? model->class_names : NULL;
}

const char *fin_model_label(const fin_model *model)
{
    return model ? model->label : NULL;
}

const char *fin_model_bag(const fin_model *model)
{
    return model ? model->bag : NULL;
}

const char *fin_model_group(const fin_model *model)
{
    return model ? model->group : NULL;
}

int64_t fin_model_notes(const fin_model *model, const fin_entry **notes)
{
    if (notes)
        *notes = model ? model->notes : NULL;
    return model ? model->note_count : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

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
    snprintf(tensor->name, sizeof tensor->name, NAMES "%s", title);
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
    FINI_ROOM(err, "a model", *tensors, of_fit + 2, 1);
    *count = fin_fit_tensors(fit, *tensors, of_fit);
    FINI_TRY(join_names(fin_bag_set_feature, set, "features", info.d, &(*tensors)[(*count)++],
                        &letters[0], err));
    if (info.classes)
        FINI_TRY(join_names(fin_bag_set_class, set, "classes", info.classes,
                            &(*tensors)[(*count)++], &letters[1], err));
    return FIN_OK;
}

/* The same fit, names and notes give the same bytes. */
fin_status fin_model_write(const char *path, const fin_fit *fit, const fin_bag_set *set,
                           const fin_entry *notes, int64_t count, fin_error *err)
{
    FINI_NEED(err, path, fit, set, !count || notes);
    const char *label = fin_bag_set_label(set), *bag = fin_bag_set_bag(set),
               *group = fin_bag_set_group(set);
    fin_tensor *tensors = NULL;
    char *letters[2] = {NULL, NULL}, before[40];
    int64_t tensor_count = 0;
    fini_metadata m;
    fini_metadata_open(&m, "model", FIN_MODEL_VERSION, err);
    fini_metadata_add(&m, "", "label", label ? label : "");
    if (bag)
        fini_metadata_add(&m, "", "bag", bag);
    if (group)
        fini_metadata_add(&m, "", "group", group);
    fini_metadata_settings(&m, "setting.", &fin_fit_table, fin_fit_get_settings(fit));
    for (int64_t i = 0; i < count; i++) {
        snprintf(before, sizeof before, "note.%lld.", (long long)i + 1);
        fini_metadata_add(&m, before, notes[i].key, notes[i].value);
    }
    if (!m.status)
        m.status = gather_tensors(fit, set, &tensors, &tensor_count, letters, err);
    fin_status status = fini_metadata_write(&m, path, tensors, tensor_count);
    fini_free_all(letters[0], letters[1], tensors);
    return status;
}
