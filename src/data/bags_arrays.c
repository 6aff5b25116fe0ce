/* Bags from arrays: NPZ archives, and NPY files that are mapped.
 *
 * tokens (N, d) are used where they lie if they are floats, all columns are wanted and the rows of
 * a bag are neighbours; else those of the own share are copied. Which rows make a bag is said by
 * offsets (n + 1), or by bag (N), a number per row. Offsets, bags and labels are small and always
 * copied: they are checked once and trusted from then on. */
#include "data/bags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers from arrays ----------------------------------------------------------------------- */

bool fini_element_whole(const fin_array *array, int64_t i, int64_t *number)
{
    if (array->dtype == FIN_I64) { /* all of them, not only those that a double holds */
        memcpy(number, (const char *)array->data + (size_t)i * sizeof *number, sizeof *number);
        return true;
    }
    double x = fin_dtype_get(array->dtype, array->data, i);
    if (!(x >= -9007199254740992.0 && x <= 9007199254740992.0 && x == floor(x)))
        return false;
    *number = (int64_t)x;
    return true;
}

/* ---- which rows make a bag --------------------------------------------------------------------- */

static fin_status read_offsets(fini_arrays *a, int64_t **out, fin_error *err)
{
    const fin_array *array = &a->offsets;
    int64_t total = array->count - 1, last = 0, here = 0;
    if (array->ndim != 1 || total < 1)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: offsets must be one-dimensional with at least two numbers, the "
                         "first row of every bag and the end",
                         a->file);
    FINI_NEW(err, "offsets", int64_t, offsets, total + 1, 1);
    *out = offsets;
    for (int64_t i = 0; i <= total; i++, last = here) {
        bool whole = fini_element_whole(array, i, &here);
        if (!whole || (i == 0 ? here != 0 : here < last) || here > a->rows)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: offsets[%lld] is %.17g; they must begin with 0, ascend and "
                             "end with the number of rows, %lld",
                             a->file, (long long)i, fin_dtype_get(array->dtype, array->data, i),
                             (long long)a->rows);
        if (i > 0 && here == last)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: bag %lld (from 0) has no rows (offsets[%lld] = offsets[%lld] "
                             "= %lld); leave it out",
                             a->file, (long long)i - 1, (long long)i - 1, (long long)i,
                             (long long)here);
        offsets[i] = here;
    }
    if (here != a->rows)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: the offsets end with %lld, but there are %lld rows of tokens",
                         a->file, (long long)here, (long long)a->rows);
    a->total = total;
    return FIN_OK;
}

/* Numbers the bags in the order of their first rows: a->bag_of (rows). */
static fin_status number_bags(fini_arrays *a, bool *ordered, fin_error *err)
{
    char text[FINI_NUMBER];
    int64_t number = 0, last = 0;
    fin_status status = FIN_OK;
    FINI_ROOM(err, "bags", a->bag_of, a->rows, 1);
    *ordered = true;
    for (int64_t row = 0; row < a->rows && !status; row++) {
        if (!fini_element_whole(&a->bag, row, &number))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: '%s' is %.17g in row %lld (from 0); the numbers of bags are "
                             "whole",
                             a->file, a->bag_name, fin_dtype_get(a->bag.dtype, a->bag.data, row),
                             (long long)row);
        if (row > 0 && number == last) {
            a->bag_of[row] = a->bag_of[row - 1];
            continue;
        }
        last = number;
        size_t size = (size_t)snprintf(text, sizeof text, "%lld", (long long)number);
        status = fini_names_put(&a->names, text, size, &a->bag_of[row], err);
        *ordered &= row == 0 || a->bag_of[row] > a->bag_of[row - 1];
    }
    a->total = a->names.count;
    return status;
}

static fin_status count_bags(fini_arrays *a, int64_t **out, fin_error *err)
{
    bool ordered = true;
    if (a->bag.count != a->rows)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%s' has %lld numbers for %lld rows of tokens; one for each row "
                         "is needed",
                         a->file, a->bag_name, (long long)a->bag.count, (long long)a->rows);
    FINI_TRY(number_bags(a, &ordered, err));
    FINI_NEW(err, "offsets", int64_t, offsets, a->total + 1, 1);
    *out = offsets;
    memset(offsets, 0, (size_t)(a->total + 1) * sizeof *offsets);
    for (int64_t row = 0; row < a->rows; row++)
        offsets[a->bag_of[row] + 1]++;
    for (int64_t i = 0; i < a->total; i++)
        offsets[i + 1] += offsets[i];
    a->gather = !ordered;
    return FIN_OK;
}

/* Every row is a bag. */
static fin_status single_rows(fini_arrays *a, int64_t **out, fin_error *err)
{
    FINI_NEW(err, "offsets", int64_t, offsets, a->rows + 1, 1);
    for (int64_t i = 0; i <= a->rows; i++)
        offsets[i] = i;
    a->total = a->rows;
    *out = offsets;
    return FIN_OK;
}

static fin_status cut(fini_arrays *a, fin_bag_set *set, const fin_bags_source *source,
                      fin_error *err)
{
    int64_t *offsets = NULL;
    fin_status status = source->each      ? single_rows(a, &offsets, err)
                        : a->offsets.data ? read_offsets(a, &offsets, err)
                                          : count_bags(a, &offsets, err);
    if (!status)
        status = fini_arrays_groups(a, offsets, err);
    if (status) {
        fini_free(offsets);
        return status;
    }
    FINI_TRY(fini_bags_cut(set, source, a->total, offsets, &a->skipped, err));
    if (a->group_of)
        FINI_TRY(fini_bags_groups(set, a->group_of, err));
    if (!a->bag_of) /* nobody has named them */
        FINI_TRY(fini_names_numbers(&set->names, set->bags.first, set->bags.n, err));
    set->first_row = a->skipped + 1;
    return FIN_OK;
}

/* Rows of the file that the tokens of the share are, from 1. */
static fin_status place_rows(const fini_arrays *a, fin_bag_set *set, fin_error *err)
{
    const fin_bags *bags = &set->bags;
    int64_t own = bags->offsets[bags->n];
    set->rows = fini_alloc_array(own + 1, sizeof *set->rows);
    int64_t *next = fini_alloc_array(bags->n + 1, sizeof *next);
    if (set->rows && next) {
        memcpy(next, bags->offsets, (size_t)bags->n * sizeof *next);
        for (int64_t row = 0; row < a->rows; row++) {
            int64_t i = a->bag_of[row] - bags->first;
            if (i >= 0 && i < bags->n)
                set->rows[next[i]++] = row + 1;
        }
    }
    fini_free(next);
    return set->rows && next ? FIN_OK
                             : fini_fail_memory(err, (size_t)own * sizeof *set->rows, "rows");
}

/* ---- labels ----------------------------------------------------------------------------------- */

static fin_status fill_labels(fini_arrays *a, double *value, fin_error *err)
{
    const fin_array *y = &a->y;
    if (y->count == a->total) {
        for (int64_t i = 0; i < a->total; i++)
            value[i] = fin_dtype_get(y->dtype, y->data, i);
        return FIN_OK;
    }
    if (y->count != a->rows || !a->bag_of)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%s' has %lld labels for %lld bags; one for each bag is needed%s",
                         a->file, a->label_name, (long long)y->count, (long long)a->total,
                         a->bag_of ? ", or one for each row" : "");
    for (int64_t i = 0; i < a->total; i++)
        value[i] = NAN;
    int64_t seen = 0; /* bags are numbered in the order of their first rows */
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t i = a->bag_of[row];
        double here = fin_dtype_get(y->dtype, y->data, row);
        if (i == seen) {
            value[i] = here;
            seen++;
        } else if (value[i] != here && !(isnan(value[i]) && isnan(here))) {
            return fini_fail(
                err, FIN_ERR_FORMAT,
                "%.200s: row %lld (from 0) has the label %.17g, but bag '%s', to which "
                "it belongs, has %.17g",
                a->file, (long long)row, here, fini_names_get(&a->names, i), value[i]);
        }
    }
    return FIN_OK;
}

/* Texts, one for each bag: classes. An empty one is no label. */
static fin_status fill_texts(fini_arrays *a, fini_labels *all, fin_error *err)
{
    fini_room wide = {0};
    fin_status status = FIN_OK;
    if (a->y.count != a->total)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%s' has %lld texts for %lld bags; one for each bag is needed",
                         a->file, a->label_name, (long long)a->y.count, (long long)a->total);
    for (int64_t i = 0; i < a->total && !status; i++) {
        const char *text;
        size_t size;
        int64_t number = -1;
        status = fini_element_text(&a->y, &a->y_form, i, &wide, &text, &size, err);
        if (!status && fini_text_fault(text, size, false))
            status = fini_fail(err, FIN_ERR_FORMAT,
                               "%.200s: label %lld (from 0) of '%s' has control characters, or is "
                               "no UTF-8",
                               a->file, (long long)i, a->label_name);
        if (!status && size)
            status = fini_names_put(&all->texts, text, size, &number, err);
        all->value[i] = NAN;
        all->text[i] = (int32_t)number;
    }
    fini_free(wide.text);
    return status;
}

static fin_status labels(fini_arrays *a, fin_bag_set *set, const fin_bags_source *source,
                         fin_error *err)
{
    if (!a->y.data)
        return fini_bags_training(source) && !source->unlabelled
                   ? fini_fail(
                         err, FIN_ERR_ARGUMENT,
                         "%.200s has no labels; an array 'y' is needed, a number for each bag",
                         a->file)
                   : fini_bags_labels(set, source, NULL, err);
    fini_labels all = {.n = a->total, .bags = a->bag_of ? &a->names : NULL, .file = a->file};
    all.value = fini_alloc_array(a->total + 1, sizeof *all.value);
    bool texts = a->y_form.kind >= FINI_NPY_BYTES;
    if (texts)
        all.text = fini_alloc_array(a->total + 1, sizeof *all.text);
    fin_status status = all.value && (all.text || !texts)
                            ? FIN_OK
                            : fini_fail_memory(err, (size_t)a->total * sizeof *all.value, "labels");
    if (!status)
        status = fini_bags_keep(&set->label, a->label_name, err);
    if (!status)
        status = all.text ? fill_texts(a, &all, err) : fill_labels(a, all.value, err);
    if (!status)
        status = fini_bags_labels(set, source, &all, err);
    fini_names_close(&all.texts);
    fini_free_all(all.value, all.text);
    return status;
}

/* ---- tokens ----------------------------------------------------------------------------------- */

/* Row `from` of the array into `to`: the columns of the list, or all. One loop for each type. */
#define COPY(type, real)                                                                           \
    for (int64_t j = 0; j < d; j++) {                                                              \
        type value;                                                                                \
        memcpy(&value, row + (size_t)(list ? list[j] : j) * sizeof value, sizeof value);           \
        ((real *)to)[j] = (real)value;                                                             \
    }

static void copy_row(const fin_array *array, int64_t from, int64_t width, const int64_t *list,
                     int64_t d, void *to)
{
    const char *row =
        (const char *)array->data + (size_t)(from * width) * fin_dtype_size(array->dtype);
    switch (array->dtype) {
    case FIN_F32:
        COPY(float, float)
        break;
    case FIN_F64:
        COPY(double, double)
        break;
    case FIN_I32:
        COPY(int32_t, double)
        break;
    case FIN_I64:
        COPY(int64_t, double)
        break;
    case FIN_U8:
        COPY(unsigned char, float)
        break;
    }
}

static fin_status copy_tokens(const fini_arrays *a, fin_bag_set *set, const int64_t *list,
                              fin_error *err)
{
    fin_bags *bags = &set->bags;
    int64_t own = bags->offsets[bags->n], cells;
    bool overflow = __builtin_mul_overflow(own, bags->d, &cells);
    int threads = overflow || cells > 1 << 16 ? fin_threads_get() : 1;
    size_t size = fin_dtype_size(bags->dtype);
    set->tokens = overflow ? NULL : fini_alloc_array(cells + 1, size);
    if (!set->tokens)
        return fini_fail_memory(err, overflow ? SIZE_MAX : (size_t)cells * size, "tokens");
    int64_t turn = 1 + (1 << 24) / (bags->d > 0 ? bags->d : 1); /* at most 128 MB */
    for (int64_t at = 0; at < own; at += turn) {
        int64_t end = own - at < turn ? own : at + turn;
        if (fini_report(a->progress, "copying tokens", (double)at, (double)own))
            return fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", a->file);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t t = at; t < end; t++)
            copy_row(&a->tokens, set->rows ? set->rows[t] - 1 : a->skipped + t, a->width, list,
                     bags->d, (char *)set->tokens + (size_t)(t * bags->d) * size);
    }
    bags->tokens = set->tokens;
    return FIN_OK;
}

static fin_status tokens(fini_arrays *a, fin_bag_set *set, const fin_bags_source *source,
                         fin_error *err)
{
    fin_bags *bags = &set->bags;
    fini_columns columns = {.file = a->file, .names = &a->columns, .nameless = a->nameless};
    int64_t *list, count, row, column;
    fin_status status = fini_bags_columns(set, source, &columns, &list, &count, err);
    if (status)
        return status;
    bool all = count == a->width, floats = a->tokens.dtype == FIN_F32 || a->tokens.dtype == FIN_F64;
    for (int64_t j = 0; j < count; j++)
        all = all && list[j] == j;
    size_t size = fin_dtype_size(a->tokens.dtype);
    bool aligned = (uintptr_t)a->tokens.data % size == 0;
    bags->dtype = a->tokens.dtype == FIN_F32 || a->tokens.dtype == FIN_U8 ? FIN_F32 : FIN_F64;
    if (a->gather)
        status = place_rows(a, set, err);
    if (!status && (!all || !floats || !aligned || a->gather))
        status = copy_tokens(a, set, all ? NULL : list, err);
    else
        bags->tokens = (const char *)a->tokens.data + (size_t)(a->skipped * a->width) * size;
    fini_free(list);
    if (!status && a->bag_of)
        status = fini_bags_names(set, &a->names, err);
    if (!status)
        status = fini_bags_infinite(bags, a->progress, &row, &column, err);
    if (!status && row >= 0)
        status = fini_bags_fail_token(set, a->file, row, column, err);
    return status;
}

fin_status fini_bags_arrays(fini_arrays *a, fin_bag_set *set, const fin_bags_source *source,
                            fin_error *err)
{
    const fin_array *array = &a->tokens;
    a->rows = array->ndim > 0 ? array->shape[0] : 0;
    if (array->count == 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: tokens have %s; an array with a row for each token is needed",
                         a->file, array->ndim == 0 ? "no axes" : "no elements");
    a->width = array->count / a->rows;
    set->axes = array->ndim;
    set->height = array->ndim == 3 ? array->shape[1] : 0;
    if (a->width > FINI_BAGS_COLUMNS_MAX)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: tokens have %lld columns; at most %d are read", a->file,
                         (long long)a->width, FINI_BAGS_COLUMNS_MAX);
    if (a->columns.count == 0) {
        a->nameless = true;
        FINI_TRY(fini_names_numbers(&a->columns, 0, a->width, err));
    }
    if (a->columns.count != a->width)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: there are %lld names of features for %lld columns of tokens",
                         a->file, (long long)a->columns.count, (long long)a->width);
    FINI_TRY(fini_names_index(&a->columns, err));
    FINI_TRY(cut(a, set, source, err));
    if (a->bag.data)
        FINI_TRY(fini_bags_keep(&set->bag, a->bag_name, err));
    if (a->group.data)
        FINI_TRY(fini_bags_keep(&set->group, a->group_name, err));
    FINI_TRY(labels(a, set, source, err));
    FINI_TRY(tokens(a, set, source, err));
    return !source->extras ? FIN_OK : fini_arrays_extras(a, set, source, err);
}
