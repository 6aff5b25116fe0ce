/* Finding the arrays of bags: in an NPZ archive, in a folder of NPY files, or beside one of them.
 *
 * Tokens of NPY files stay mapped as long as the set lives; the other arrays are mapped only until
 * they have been copied. */
#define _POSIX_C_SOURCE 200809L
#include "data/bags.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARRAYS = 5, TOKENS = 0, LABEL = 3 };

/* Where arrays come from: an archive, or files called before + name + ".npy". */
typedef struct place {
    fin_npz *npz;
    char before[PATH_MAX];
    fini_npy map[ARRAYS]; /* tokens first */
} place;

/* *out has data NULL if there is no such array. */
static fin_status get(place *from, int which, const char *name, fin_array *out, fin_error *err)
{
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; from->npz && i < fin_npz_count(from->npz); i++)
        if (strcmp(fin_npz_name(from->npz, i), name) == 0)
            return which == LABEL ? fini_npz_any(from->npz, i, out, &from->map[LABEL].form, err)
                                  : fin_npz_array(from->npz, name, out, err);
    if (from->npz)
        return FIN_OK;
    char path[PATH_MAX + 264];
    if (strlen(name) > 200 || strchr(name, '/'))
        return fini_fail(err, FIN_ERR_ARGUMENT, "'%.60s' is no name of an array", name);
    snprintf(path, sizeof path, "%s%s.npy", from->before, name);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return FIN_OK;
    fini_npy_unmap(&from->map[which]);
    FINI_TRY(fini_npy_map(path, &from->map[which], err));
    if (which != LABEL && from->map[which].form.kind >= FINI_NPY_BYTES)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "'%.300s' holds texts; numbers are needed",
                         path);
    *out = from->map[which].array;
    return FIN_OK;
}

/* "x.npz has no array 'z'; it has a, b"; "folder/z.npy" for files. */
static fin_status no_array(const place *from, const char *wanted, fin_error *err)
{
    fin_array none;
    if (from->npz)
        return fin_npz_array(from->npz, wanted, &none, err); /* which says so */
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "there is no file %.300s%s.npy; bags are tokens.npy, offsets.npy and y.npy",
                     from->before, FINI_SHOW(wanted));
}

/* The first of the names that is there; `wanted`, if not NULL, is the only one and must be there. */
static fin_status get_one(place *from, int which, const char *wanted, const char *const *names,
                          fin_array *out, const char **found, fin_error *err)
{
    *found = wanted;
    if (wanted) {
        FINI_TRY(get(from, which, wanted, out, err));
        return out->data ? FIN_OK : no_array(from, wanted, err);
    }
    for (; *names; names++) {
        *found = *names;
        FINI_TRY(get(from, which, *names, out, err));
        if (out->data)
            return FIN_OK;
    }
    *found = NULL;
    return FIN_OK;
}

static fin_status find_arrays(place *from, fini_arrays *a, const fin_bags_source *source,
                              fin_error *err)
{
    static const char *const tokens[] = {"tokens", NULL}, *const offsets[] = {"offsets", NULL},
                             *const bag[] = {"bag", "bag_id", NULL},
                             *const label[] = {"y", "label", "labels", NULL};
    static const char *const images[] = {"images", "x", "pixels", "tokens", NULL};
    const char *name;
    /* a model remembers the label's name, which data to be predicted need not have */
    const char *wanted = fini_bags_training(source) ? source->label : NULL;
    FINI_TRY(get_one(from, TOKENS, source->each ? NULL : "tokens", source->each ? images : tokens,
                     &a->tokens, &name, err));
    if (!a->tokens.data)
        FINI_TRY(no_array(from, images[0], err));
    if (!source->bag && !source->each)
        FINI_TRY(get_one(from, 1, NULL, offsets, &a->offsets, &name, err));
    if (!a->offsets.data && !source->each && !source->bag && source->model_bag) {
        FINI_TRY(get(from, 2, source->model_bag, &a->bag, err));
        a->bag_name = source->model_bag;
    }
    if (!a->offsets.data && !a->bag.data && !source->each)
        FINI_TRY(get_one(from, 2, source->bag, bag, &a->bag, &a->bag_name, err));
    if (!a->offsets.data && !a->bag.data && !source->each)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%.200s has neither 'offsets' (n + 1 numbers) nor 'bag' (one for each "
                         "row of tokens); one is needed",
                         a->file);
    if (source->label) {
        FINI_TRY(get(from, LABEL, source->label, &a->y, err));
        a->label_name = source->label;
    }
    if (!a->y.data)
        FINI_TRY(get_one(from, LABEL, wanted, label, &a->y, &a->label_name, err));
    if (source->group)
        FINI_TRY(get_one(from, 4, source->group, NULL, &a->group, &a->group_name, err));
    a->y_form = from->map[LABEL].form;
    return FIN_OK;
}

static void close_arrays(fini_arrays *a)
{
    fini_names_close(&a->columns);
    fini_names_close(&a->names);
    fini_free_all(a->bag_of, a->group_of);
}

/* "features" (d, letters) of bytes, padded with NUL or spaces: the columns' names. */
static fin_status read_features(fin_npz *npz, fini_arrays *a, fin_error *err)
{
    fin_array array = {0};
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < fin_npz_count(npz) && !status && !array.data; i++)
        if (strcmp(fin_npz_name(npz, i), "features") == 0)
            status = fin_npz_array(npz, "features", &array, err);
    if (status || !array.data)
        return status;
    if (array.dtype != FIN_U8 || array.ndim != 2)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%.200s: 'features' must be bytes, a row for each name: "
                         "np.array(names, 'S').view('u1').reshape(len(names), -1)",
                         a->file);
    for (int64_t j = 0; j < array.shape[0] && !status; j++) {
        const char *text = (const char *)array.data + (size_t)(j * array.shape[1]);
        size_t size = strnlen(text, (size_t)array.shape[1]);
        if (size == 0 || fini_text_fault(text, size, false))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: name %lld (from 0) of 'features' is empty, not UTF-8 or has "
                             "control characters",
                             a->file, (long long)j);
        status = fini_names_add(&a->columns, text, size, err);
    }
    return status;
}

/* "folder/", or what stands before "tokens.npy" in a name. */
static fin_status find_siblings(place *from, const char *path, fin_error *err)
{
    static const char tail[] = "tokens.npy";
    struct stat info;
    size_t length = strlen(path), cut = sizeof tail - 1;
    if (length + 2 > sizeof from->before)
        return fini_fail_io(err, "read", path, ENAMETOOLONG);
    memcpy(from->before, path, length + 1);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        if (path[length - 1] != '/')
            strcpy(from->before + length, "/");
        return FIN_OK;
    }
    if (length < cut || strcasecmp(path + length - cut, tail) != 0)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "'%.200s' is one array; bags are a folder with tokens.npy, offsets.npy and "
            "y.npy, or a file x.tokens.npy with x.offsets.npy and x.y.npy beside it",
            path);
    from->before[length - cut] = '\0';
    return FIN_OK;
}

static fin_status read_place(place *from, fin_bag_set *set, const fin_bags_source *source,
                             const fin_progress *progress, fin_error *err)
{
    FINI_AT_END(close_arrays)
    fini_arrays a = {
        .file = source->path, .progress = progress, .npz = from->npz, .before = from->before};
    if (fini_report(progress, from->npz ? "reading tokens" : "mapping tokens", 0, 1))
        return fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", source->path);
    FINI_TRY(find_arrays(from, &a, source, err));
    if (from->npz)
        FINI_TRY(read_features(from->npz, &a, err));
    return fini_bags_arrays(&a, set, source, err);
}

/* The set keeps the archive, or the mapping, unless tokens were copied. */
fin_status fini_bags_files(fin_bag_set *set, const fin_bags_source *source, bool archive,
                           const fin_progress *progress, fin_error *err)
{
    FINI_OWN(err, "arrays", place, from, 1, 1);
    memset(from, 0, sizeof *from);
    fin_status status = archive ? fin_npz_open(source->path, &set->npz, err)
                                : find_siblings(from, source->path, err);
    from->npz = set->npz;
    if (!status)
        status = read_place(from, set, source, progress, err);
    if (!status && set->tokens) {
        fin_npz_close(set->npz);
        set->npz = NULL;
    } else if (!status) {
        set->map = from->map[TOKENS];
        from->map[TOKENS] = (fini_npy){0};
    }
    for (int i = 0; i < ARRAYS; i++)
        fini_npy_unmap(&from->map[i]);
    return status;
}
