/* Folds of bags from a CSV file: the bag's name, then a column per repeat with its fold's number.
 *
 * The numbers may be any whole ones; those that occur are put in order and counted from 0. */
#include "data/bags.h"
#include "math/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS_MOST = 10000, FOLDS_MOST = 10000 };

typedef struct folds {
    fini_csv csv;
    fini_names bags; /* of the set, findable */
    int64_t n, repeats;
    int32_t *fold;      /* (repeats, n) */
    char *seen;         /* (n) */
    int64_t others;     /* bags of the file that the set does not have */
    int32_t *different; /* (FOLDS_MOST + 1) ascending numbers of folds */
    int64_t count;
} folds;

static fin_status find_bag(folds *f, const fini_cell *cell, const char *line, int64_t *bag,
                           fin_error *err)
{
    size_t size = (size_t)(cell->end - cell->text);
    char *copy = fini_alloc(size + 1);
    if (!copy)
        return fini_fail_memory(err, size, "a name");
    *bag = fini_names_find(&f->bags, copy, fini_csv_copy(cell, copy));
    fini_free(copy);
    if (*bag < 0) {
        f->others++;
        return FIN_OK;
    }
    if (f->seen[*bag])
        return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line %lld: bag '%s' is there twice",
                         f->csv.label, (long long)fini_csv_line(&f->csv, line),
                         FINI_SHOW_CELL(cell));
    f->seen[*bag] = 1;
    return FIN_OK;
}

static fin_status read_fold(folds *f, const fini_cell *cell, const char *line, int64_t column,
                            int32_t *fold, fin_error *err)
{
    double value;
    if (fini_csv_number(cell, &value) && !cell->trailing && value == floor(value) &&
        fabs(value) <= INT32_MAX) {
        *fold = (int32_t)value;
        return FIN_OK;
    }
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.200s, line %lld, column %lld: '%s' is not the number of a fold (0, 1, ...)",
                     f->csv.label, (long long)fini_csv_line(&f->csv, line), (long long)column,
                     FINI_SHOW_CELL(cell));
}

/* Where the number stands among the different ones, or belongs. */
static int64_t place_of(const folds *f, int32_t fold)
{
    return fini_first_from_i32(f->count, f->different, fold);
}

/* Puts the number among the different ones; false: there are too many. */
static bool remember(folds *f, int32_t fold)
{
    int64_t low = place_of(f, fold);
    if (low < f->count && f->different[low] == fold)
        return true;
    memmove(f->different + low + 1, f->different + low,
            (size_t)(f->count - low) * sizeof *f->different);
    f->different[low] = fold;
    return ++f->count <= FOLDS_MOST;
}

static fin_status read_row(folds *f, const char **at, fin_error *err)
{
    const char *line = *at, *p = line;
    fini_cell cell;
    int64_t bag = -1;
    fin_status status = fini_csv_length(&f->csv, line, err);
    for (int64_t j = 0; j < f->csv.columns && !status; j++, p++) {
        int32_t fold = 0;
        p = fini_csv_cell(p, f->csv.end, &cell);
        if (j == 0)
            status = find_bag(f, &cell, line, &bag, err);
        else
            status = read_fold(f, &cell, line, j + 1, &fold, err);
        if (status || j == 0 || bag < 0)
            continue;
        f->fold[(j - 1) * f->n + bag] = fold;
        if (!remember(f, fold))
            status = fini_fail(err, FIN_ERR_FORMAT, "%.300s has more than %d folds", f->csv.label,
                               FOLDS_MOST);
    }
    *at = p;
    return status;
}

/* Every bag has its folds? Then they are counted from 0, and none is empty. */
static fin_status finish(folds *f, const fin_bag_set *set, fin_error *err)
{
    int64_t missing = 0, first = -1;
    for (int64_t i = f->n - 1; i >= 0; i--)
        if (!f->seen[i]) {
            missing++;
            first = i;
        }
    if (missing) {
        const char *name = fini_names_get(&set->names, first);
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s has no folds for bag '%s' (%lld of %lld bags are missing); the "
                         "first column must have every bag's name",
                         f->csv.label, FINI_SHOW(name), (long long)missing, (long long)f->n);
    }
    if (f->count < 2)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s puts all bags into one fold; at least two are needed",
                         f->csv.label);
    for (int64_t r = 0; r < f->repeats; r++) {
        int32_t *fold = f->fold + r * f->n;
        memset(f->seen, 0, (size_t)f->count);
        for (int64_t i = 0; i < f->n; i++) {
            fold[i] = (int32_t)place_of(f, fold[i]);
            f->seen[fold[i]] = 1;
        }
        for (int64_t k = 0; k < f->count && set->bags.n == set->bags.total; k++)
            if (!f->seen[k])
                return fini_fail(err, FIN_ERR_FORMAT,
                                 "%.200s: repeat %lld (column %lld) has no bag in fold %d, which "
                                 "other repeats have",
                                 f->csv.label, (long long)r + 1, (long long)r + 2,
                                 (int)f->different[k]);
    }
    if (f->others)
        fini_bags_note(set, "%.120s has folds for %lld more bags; they are not used", f->csv.label,
                       (long long)f->others);
    return FIN_OK;
}

static fin_status take(folds *f, const fin_bag_set *set, fin_error *err)
{
    int64_t cells;
    f->n = set->bags.n;
    f->repeats = f->csv.columns - 1;
    if (f->repeats == 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s has one column; the bag's name and a fold for each repeat are "
                         "needed, separated by commas",
                         f->csv.label);
    /* There is at least a comma in the file for each number, if every bag is in it. */
    if (f->n > f->csv.end - f->csv.body + 1 || __builtin_mul_overflow(f->n, f->repeats, &cells) ||
        cells > f->csv.end - f->csv.body + 1)
        return fini_fail(err, FIN_ERR_FORMAT, "%.200s is too short to have folds for all %lld bags",
                         f->csv.label, (long long)f->n);
    f->fold = fini_alloc_array(cells + 1, sizeof *f->fold);
    f->seen = fini_alloc_array(f->n + FOLDS_MOST + 1, 1);
    f->different = fini_alloc_array(FOLDS_MOST + 2, sizeof *f->different);
    if (!f->fold || !f->seen || !f->different)
        return fini_fail_memory(err, (size_t)cells * sizeof *f->fold, "folds");
    memset(f->seen, 0, (size_t)(f->n + FOLDS_MOST + 1));
    f->bags = set->names; /* letters are borrowed; the table is our own */
    f->bags.slots = NULL;
    f->bags.places = 0;
    return fini_names_index(&f->bags, err);
}

fin_status fini_folds_parse(const char *text, size_t size, const char *label,
                            const fin_bag_set *set, int *repeats, int *count, int32_t **fold,
                            fin_error *err)
{
    folds f = {.csv.label = label};
    fin_status status = fini_csv_open(&f.csv, text, size, err);
    *fold = NULL;
    if (!status)
        status = fini_csv_header(&f.csv, REPEATS_MOST + 1, err);
    if (!status)
        status = take(&f, set, err);
    for (const char *p = f.csv.body; !status && p < f.csv.end;)
        status = read_row(&f, &p, err);
    if (!status)
        status = finish(&f, set, err);
    if (!status)
        status = fini_folds_groups(set, label, f.repeats, f.fold, err);
    fini_free_all(f.seen, f.different, f.bags.slots);
    if (status) {
        fini_free(f.fold);
        return status;
    }
    *fold = f.fold;
    *repeats = (int)f.repeats;
    *count = (int)f.count;
    return FIN_OK;
}

fin_status fin_folds_read(const char *path, const fin_bag_set *set, int *repeats, int *count,
                          int32_t **fold, fin_error *err)
{
    FINI_NEED(err, path, set, repeats, count, fold);
    char *text;
    size_t size;
    *fold = NULL;
    fin_status status = fini_read_text(path, &text, &size, err);
    if (!status)
        status = fini_folds_parse(text, size, strcmp(path, "-") ? path : "standard input", set,
                                  repeats, count, fold, err);
    fini_free(text);
    return status;
}

void fin_folds_free(int32_t *fold)
{
    fini_free(fold);
}
