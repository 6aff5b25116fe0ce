/* Extra columns: what a file says of tokens beside their features, such as coordinates, the name of
 * a file or a piece of text. They take no part in a fit, and come back beside the tokens. */
#define _POSIX_C_SOURCE 200809L
#include "data/bags.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which of them ---------------------------------------------------------------------------- */

/* Column j, if it is nothing else and not among the first `named`. */
static void add_free(const fini_columns *columns, int64_t j, int64_t named, int64_t *list,
                     int64_t *count)
{
    bool taken = j < 0 || (columns->skip && columns->skip[j] != FIN_COLUMN_FREE);
    for (int64_t k = 0; k < named && !taken; k++)
        taken = list[k] == j;
    if (!taken)
        list[(*count)++] = j;
}

/* Those of `names` that there are; "*": all. */
static void add_known(const fini_columns *columns, const char *names, int64_t *list, int64_t *count)
{
    const int64_t named = *count;
    if (strcmp(names, "*") == 0) {
        for (int64_t j = 0; j < columns->names->count; j++)
            add_free(columns, j, named, list, count);
        return;
    }
    for (const char *p = names; *p; p += *p == ',') {
        size_t size = strcspn(p, ",");
        add_free(columns, fini_names_find(columns->names, p, size), *count, list, count);
        p += size;
    }
}

/* "x,y;piece": what is before the ';' must be there. */
static fin_status read_lists(const fini_columns *columns, const char *text, int64_t *list,
                             int64_t *count, fin_error *err)
{
    size_t size = strcspn(text, ";");
    char *first = size ? fini_alloc_array((int64_t)size + 1, 1) : NULL;
    fin_status status = FIN_OK;
    if (size && !first)
        return fini_fail_memory(err, size, "a list of columns");
    if (first) {
        memcpy(first, text, size);
        first[size] = '\0';
        status = fini_columns_read(columns, first, list, count, err);
    }
    fini_free(first);
    if (!status && text[size])
        add_known(columns, text + size + 1, list, count);
    return status;
}

fin_status fini_extras_choose(fin_bag_set *set, const fin_bags_source *source,
                              const fini_columns *columns, int64_t **out, int64_t *found,
                              fin_error *err)
{
    int64_t count = 0;
    const char *extras = strcmp(source->extras, "*") == 0 ? ";*" : source->extras;
    FINI_NEW(err, "a list of columns", int64_t, list, columns->names->count + 1, 1);
    fin_status status = read_lists(columns, extras, list, &count, err);
    set->extra = status ? NULL : fini_alloc_array(count + 1, sizeof *set->extra);
    if (!status && !set->extra)
        status = fini_fail_memory(err, (size_t)count * sizeof *set->extra, "extra columns");
    for (int64_t k = 0; k < count && !status; k++) {
        const char *name = fini_names_get(columns->names, list[k]);
        set->extra[set->extra_count++] = (fini_extra){.numbers = NULL};
        status = fini_names_add(&set->extra_names, name, strlen(name), err);
    }
    *out = list;
    *found = count;
    return status;
}

void fini_extras_close(fin_bag_set *set)
{
    for (int64_t k = 0; k < set->extra_count; k++) {
        fini_names_close(&set->extra[k].texts);
        fini_free(set->extra[k].numbers);
    }
    fini_free(set->extra);
    fini_names_close(&set->extra_names);
}

/* ---- texts -------------------------------------------------------------------------------------- */

fin_status fini_extra_add(fin_bag_set *set, int64_t k, const char *text, size_t size,
                          fini_room *room, fin_error *err)
{
    if (fini_text_fault(text, size, true)) {
        if (size > room->size) {
            fini_free(room->text);
            room->size = 2 * size;
            room->text = fini_alloc(room->size);
        }
        if (!room->text) {
            room->size = 0;
            return fini_fail_memory(err, 2 * size, "a text");
        }
        memcpy(room->text, text, size);
        for (size_t i = 0; i < size;) {
            int length = fini_utf8_length(room->text + i, room->text + size);
            if (length == 0 || fini_text_fault(room->text + i, (size_t)length, true))
                room->text[i] = '?';
            i += length > 0 ? (size_t)length : 1;
        }
        text = room->text;
    }
    return fini_names_add(&set->extra[k].texts, text, size, err);
}

fin_status fini_element_text(const fin_array *array, const fini_npy_form *form, int64_t at,
                             fini_room *wide, const char **text, size_t *length, fin_error *err)
{
    const char *from = (const char *)array->data + (size_t)at * form->size;
    size_t size = form->size, used = 0;
    if (form->kind == FINI_NPY_WIDE) {
        if (!wide->text && !(wide->text = fini_alloc(size + 1)))
            return fini_fail_memory(err, size, "a text");
        for (size_t i = 0; i < form->size; i += 4) {
            uint32_t character;
            memcpy(&character, from + i, sizeof character);
            used += (size_t)fini_utf8_put(character, wide->text + used);
        }
        from = wide->text;
        size = used;
    }
    while (size > 0 && !from[size - 1])
        size--;
    *text = from;
    *length = size;
    return FIN_OK;
}

static fin_status add_element(fin_bag_set *set, int64_t k, const fin_array *array,
                              const fini_npy_form *form, int64_t at, fini_room *room,
                              fini_room *wide, fin_error *err)
{
    const char *text;
    size_t size;
    FINI_TRY(fini_element_text(array, form, at, wide, &text, &size, err));
    return fini_extra_add(set, k, text, size, room, err);
}

/* ---- arrays ------------------------------------------------------------------------------------- */

enum { WIDTH_MOST = 16 }; /* wider arrays are features of another kind */

/* A column of an array. */
typedef struct column {
    int64_t array, at, width; /* number of the array, place and number of its columns */
} column;

/* Arrays with a row for each token, and their columns. */
typedef struct others {
    const fini_arrays *arrays;
    fini_names names; /* of arrays: in an archive all, beside NPY files those that are there */
    fini_names columns;
    column *column;
    int64_t room, wide; /* wide: arrays left out */
} others;

static bool taken(const fini_arrays *a, const char *name)
{
    const char *const known[] = {a->bag.data ? a->bag_name : NULL,
                                 a->y.data ? a->label_name : NULL,
                                 a->group.data ? a->group_name : NULL,
                                 "tokens",
                                 "offsets",
                                 "features"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] && strcmp(known[i], name) == 0)
            return true;
    return false;
}

static fin_status add_column(others *o, const char *name, column one, fin_error *err)
{
    char text[300];
    if (o->columns.count == o->room) {
        int64_t room = 2 * o->room + 16;
        column *more = fini_alloc_array(room, sizeof *more);
        if (!more)
            return fini_fail_memory(err, (size_t)room * sizeof *more, "columns");
        if (o->column)
            memcpy(more, o->column, (size_t)o->room * sizeof *more);
        fini_free(o->column);
        o->column = more;
        o->room = room;
    }
    o->column[o->columns.count] = one;
    if (one.width == 0) /* a vector */
        return fini_names_add(&o->columns, name, strlen(name), err);
    snprintf(text, sizeof text, "%.240s.%lld", name, (long long)one.at);
    return fini_names_add(&o->columns, text, strlen(text), err);
}

static fin_status add_array(others *o, int64_t number, const fin_array *array, fin_error *err)
{
    int64_t width = array->ndim == 1 ? 0 : array->ndim == 2 ? array->shape[1] : -1;
    if (array->ndim < 1 || array->shape[0] != o->arrays->rows)
        return FIN_OK;
    if (width < 0 || width > WIDTH_MOST)
        o->wide++;
    else
        for (int64_t at = 0; at < (width ? width : 1); at++)
            FINI_TRY(
                add_column(o, fini_names_get(&o->names, number), (column){number, at, width}, err));
    return FIN_OK;
}

static void path_of(const others *o, int64_t number, char *path, size_t size)
{
    snprintf(path, size, "%s%s.npy", o->arrays->before, fini_names_get(&o->names, number));
}

/* The names of files "before" + name + ".npy", in the order of their bytes. */
static fin_status list_files(others *o, fin_error *err)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", o->arrays->before);
    char *slash = strrchr(folder, '/');
    const char *start = strrchr(o->arrays->before, '/');
    start = start ? start + 1 : o->arrays->before;
    if (slash)
        slash[1] = '\0';
    struct dirent **list = NULL;
    int count = scandir(slash ? folder : ".", &list, NULL, alphasort);
    fin_status status = FIN_OK;
    for (int i = 0; i < count; i++) {
        const char *file = list[i]->d_name;
        size_t length = strlen(file), skip = strlen(start);
        if (length > skip + 4 && strncmp(file, start, skip) == 0 &&
            strcmp(file + length - 4, ".npy") == 0 && !status)
            status = fini_names_add(&o->names, file + skip, length - skip - 4, err);
        free(list[i]);
    }
    free(list);
    return status;
}

/* An array that cannot be read (Python objects) is none of ours. */
static fin_status find(others *o, fin_error *err)
{
    fin_npz *npz = o->arrays->npz;
    fin_status status = FIN_OK;
    fin_array array;
    fini_npy_form form;
    for (int64_t i = 0; npz && i < fin_npz_count(npz) && !status; i++)
        status = fini_names_add(&o->names, fin_npz_name(npz, i), strlen(fin_npz_name(npz, i)), err);
    if (!npz)
        status = list_files(o, err);
    for (int64_t i = 0; i < o->names.count && !status; i++) {
        fini_npy map = {0};
        char path[PATH_MAX + 264];
        if (taken(o->arrays, fini_names_get(&o->names, i)))
            continue;
        path_of(o, i, path, sizeof path);
        fin_error why;
        fin_status here =
            npz ? fini_npz_look(npz, i, &array, &form, &why) : fini_npy_map(path, &map, &why);
        if (here == FIN_ERR_MEMORY)
            status = fini_fail(err, here, "%s", why.message);
        if (here)
            continue;
        status = add_array(o, i, npz ? &array : &map.array, err);
        fini_npy_unmap(&map);
    }
    return status;
}

/* Whole numbers that a double cannot hold are texts. */
static bool exact(const fin_array *array, int64_t from, int64_t step, int64_t rows)
{
    int64_t number;
    for (int64_t i = 0; array->dtype == FIN_I64 && i < rows; i++)
        if (!fini_element_whole(array, from + i * step, &number) || number > INT64_C(1) << 53 ||
            number < -(INT64_C(1) << 53))
            return false;
    return true;
}

static fin_status fill(fin_bag_set *set, int64_t k, const column *c, const fin_array *array,
                       const fini_npy_form *form, fin_error *err)
{
    int64_t own = set->bags.offsets[set->bags.n], step = c->width ? c->width : 1, number;
    bool text = form->kind >= FINI_NPY_BYTES,
         whole = !text && !exact(array, c->at, step, array->shape[0]);
    fini_room room = {0}, wide = {0};
    fin_status status = FIN_OK;
    double *numbers = text || whole ? NULL : fini_alloc_array(own + 1, sizeof *numbers);
    if (!text && !whole && !numbers)
        return fini_fail_memory(err, (size_t)own * sizeof *numbers, "extra columns");
    set->extra[k].numbers = numbers;
    for (int64_t t = 0; t < own && !status; t++) {
        int64_t at = (fin_bag_set_row(set, t) - 1) * step + c->at;
        char digits[FINI_NUMBER];
        if (numbers)
            numbers[t] = fin_dtype_get(array->dtype, array->data, at);
        else if (text)
            status = add_element(set, k, array, form, at, &room, &wide, err);
        else if (fini_element_whole(array, at, &number))
            status = fini_names_add(
                &set->extra[k].texts, digits,
                (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number), err);
    }
    fini_free_all(room.text, wide.text);
    return status;
}

static fin_status fill_one(const others *o, fin_bag_set *set, int64_t k, const column *c,
                           fin_error *err)
{
    FINI_AT_END(fini_npy_unmap) fini_npy map = {0};
    char path[PATH_MAX + 264];
    path_of(o, c->array, path, sizeof path);
    fin_npz *npz = o->arrays->npz;
    FINI_TRY(npz ? fini_npz_any(npz, c->array, &map.array, &map.form, err)
                 : fini_npy_map(path, &map, err));
    const fin_array *a = &map.array;
    int64_t rows = o->arrays->rows, width = c->width ? c->width : 1;
    if (a->ndim < 1 || a->shape[0] != rows || a->count != rows * width)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s changed while it was read", path);
    return fill(set, k, c, &map.array, &map.form, err);
}

fin_status fini_arrays_extras(const fini_arrays *arrays, fin_bag_set *set,
                              const fin_bags_source *source, fin_error *err)
{
    others o = {.arrays = arrays};
    fini_columns columns = {.file = arrays->file, .names = &o.columns, .what = "extra columns"};
    int64_t *list = NULL, count = 0;
    fin_status status = find(&o, err);
    if (!status)
        status = fini_names_index(&o.columns, err);
    if (!status)
        status = fini_extras_choose(set, source, &columns, &list, &count, err);
    for (int64_t k = 0; k < count && !status; k++)
        status = fill_one(&o, set, k, &o.column[list[k]], err);
    if (!status && o.wide)
        fini_bags_note(
            set, "%lld array%s with more than %d columns do%s not come back beside tokens",
            (long long)o.wide, o.wide == 1 ? "" : "s", WIDTH_MOST, o.wide == 1 ? "es" : "");
    fini_names_close(&o.names);
    fini_names_close(&o.columns);
    fini_free_all(o.column, list);
    return status;
}

/* ---- asking ------------------------------------------------------------------------------------ */

int64_t fin_bag_set_extras(const fin_bag_set *set)
{
    return set ? set->extra_count : 0;
}

const char *fin_bag_set_extra(const fin_bag_set *set, int64_t k)
{
    return set ? fini_names_get(&set->extra_names, k) : NULL;
}

const double *fin_bag_set_extra_numbers(const fin_bag_set *set, int64_t k)
{
    return set && k >= 0 && k < set->extra_count ? set->extra[k].numbers : NULL;
}

const char *fin_bag_set_extra_text(const fin_bag_set *set, int64_t k, int64_t t)
{
    return set && k >= 0 && k < set->extra_count ? fini_names_get(&set->extra[k].texts, t) : NULL;
}
