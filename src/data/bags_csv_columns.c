/* Columns of a long CSV file: which names the bag, which is the label, which are features, which are
 * text and left out. */
#include "data/bags.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLE = 64 }; /* rows that decide whether a column is text */

static int64_t named(const fini_long *t, const char *name)
{
    return fini_names_find(&t->names, name, strlen(name));
}

static fin_status no_label(const fini_long *t, const char *file, fin_error *err)
{
    char all[FINI_LISTED];
    return fini_fail(
        err, FIN_ERR_ARGUMENT,
        "%.200s has no column 'label' or 'y'; say which column is the label (--label): "
        "there are %s",
        file, fini_names_list(&t->names, all));
}

static fin_status no_model_bag(const fini_long *t, const char *file, const char *wanted,
                               fin_error *err)
{
    char all[FINI_LISTED];
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%.150s has no column '%s', which named the bags that the model was fitted "
                     "to; there are %s (--bag says another)",
                     file, FINI_SHOW(wanted), fini_names_list(&t->names, all));
}

/* The column of the groups has no other part to play. */
static fin_status find_group(fini_long *t, const fin_bags_source *source,
                             const fini_columns *columns, fin_error *err)
{
    t->group = source->group ? named(t, source->group) : -1;
    if (t->group < 0)
        return source->group ? fini_no_column(columns, source->group, err) : FIN_OK;
    if (t->group != t->bag && t->group != t->label)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%.200s: column '%.60s' cannot be both the %s and the group", columns->file,
                     source->group, t->group == t->bag ? "bag" : "label");
}

static fin_status find_bag_and_label(fini_long *t, const fin_bags_source *source,
                                     const fini_columns *columns, fin_error *err)
{
    static const char *const slides[] = {"bag_id", "slide_id", "slide", "file", "path"};
    const char *asked = source->bag ? source->bag : source->model_bag;
    t->bag = named(t, asked ? asked : "bag");
    if (t->bag < 0 && source->bag)
        return fini_no_column(columns, source->bag, err);
    for (size_t i = 0; t->bags_only && t->bag < 0 && i < sizeof slides / sizeof *slides; i++)
        t->bag = named(t, slides[i]);
    if (t->bag < 0 && asked && !t->bags_only)
        return no_model_bag(t, columns->file, asked, err);
    t->each = source->each;
    if (t->each && !source->bag)
        t->bag = -1;
    else if (t->bag < 0)
        t->bag = named(t, "bag_id");
    t->label = named(t, source->label ? source->label : "label");
    if (t->label < 0 && !source->label)
        t->label = named(t, "y");
    if (t->bag < 0 && !t->each)
        t->bag = t->csv.index; /* the first with a name */
    if (t->label < 0 && fini_bags_training(source) && (source->label || !source->unlabelled))
        return source->label ? fini_no_column(columns, source->label, err)
                             : no_label(t, columns->file, err);
    if (t->label == t->bag && t->bag >= 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%.200s: column '%.60s' cannot be both the bag and the label",
                         columns->file, fini_names_get(&t->names, t->bag));
    return find_group(t, source, columns, err);
}

/* A column is text if the first rows have text in it and no number. */
static void look_for_text(fini_long *t)
{
    const fini_csv *s = &t->csv;
    const char *p = s->body;
    double value;
    fini_cell cell;
    for (int row = 0; row < SAMPLE && p < s->end; row++, p++)
        for (int64_t j = 0;; j++, p++) {
            p = fini_csv_cell(p, s->end, &cell);
            if (j < s->columns && cell.end > cell.text) {
                bool number = fini_csv_number(&cell, &value);
                if (number || row == 0)
                    t->kind[j] = number ? FIN_COLUMN_FREE : FIN_COLUMN_UNASKED;
            }
            if (p == s->end || *p == '\n')
                break;
        }
}

/* The number of a row, as pandas' to_csv() writes it without a name and read_csv() names it: rows
 * are often sorted by class, so that it would know the answer. */
static void leave_index(fini_long *t, const fin_bags_source *source, const fin_bag_set *set)
{
    for (int64_t j = 0; j < t->csv.columns; j++) {
        const char *name = fini_names_get(&t->names, j);
        if (!fini_begins(name, "Unnamed: ") || t->kind[j] != FIN_COLUMN_FREE)
            continue;
        t->kind[j] = FIN_COLUMN_UNASKED;
        if (source->feature_names || t->bags_only)
            continue;
        if (j == 0 && t->csv.index)
            fini_bags_note(set, "the first column has no name (pandas' to_csv() writes its index "
                                "so) and is left out");
        else
            fini_bags_note(set, "column '%s' is an index of pandas and is left out",
                           FINI_SHOW(name));
    }
}

static void note_text(const fini_long *t, const fin_bag_set *set)
{
    int64_t count = 0, first = -1;
    for (int64_t j = t->csv.columns - 1; j >= 0; j--)
        if (t->kind[j] == FIN_COLUMN_UNASKED && t->to[j] < 0 &&
            !fini_begins(fini_names_get(&t->names, j), "Unnamed: ")) {
            count++;
            first = j;
        }
    if (count == 0)
        return;
    const char *name = FINI_SHOW(fini_names_get(&t->names, first));
    if (count == 1)
        fini_bags_note(set, "column '%s' is text and is left out", name);
    else
        fini_bags_note(set,
                       "%lld columns are text and are left out, '%s' the first of them; categories "
                       "must be made numbers",
                       (long long)count, name);
}

/* Features, bag and label come back by other ways, unless they are asked for by name. */
static fin_status choose_extras(fini_long *t, fin_bag_set *set, const fin_bags_source *source,
                                fini_columns *all, fin_error *err)
{
    int64_t columns = t->csv.columns;
    FINI_FREED int64_t *list = NULL;
    int64_t count = 0;
    FINI_ROOM(err, "columns", t->extra, columns, 1);
    memset(t->extra, -1, (size_t)columns * sizeof *t->extra);
    for (int64_t j = 0; j < columns; j++)
        t->kind[j] = t->to[j] >= 0 || j == t->bag || j == t->label || j == t->group
                         ? FIN_COLUMN_UNASKED
                         : FIN_COLUMN_FREE;
    FINI_TRY(fini_extras_choose(set, source, all, &list, &count, err));
    for (int64_t k = 0; k < count; k++)
        t->extra[list[k]] = (int32_t)k;
    return FIN_OK;
}

fin_status fini_long_columns(fini_long *t, fin_bag_set *set, const fin_bags_source *source,
                             fin_error *err)
{
    int64_t columns = t->csv.columns, *list = NULL, count = 0;
    fini_columns all = {.file = t->csv.label, .names = &t->names, .taken = fini_bags_taken};
    fin_status status = fini_csv_names(&t->csv, &t->names, err);
    if (!status)
        status = find_bag_and_label(t, source, &all, err);
    if (status)
        return status;
    t->kind = fini_alloc_array(columns, 1);
    t->to = fini_alloc_array(columns, sizeof *t->to);
    if (!t->kind || !t->to)
        return fini_fail_memory(err, (size_t)columns * sizeof *t->to, "columns");
    memset(t->kind, FIN_COLUMN_FREE, (size_t)columns);
    look_for_text(t);
    if (t->bag >= 0)
        t->kind[t->bag] = FIN_COLUMN_TAKEN;
    if (t->label >= 0)
        t->kind[t->label] = FIN_COLUMN_TAKEN + 1;
    if (t->group >= 0)
        t->kind[t->group] = FIN_COLUMN_TAKEN + 2;
    leave_index(t, source, set);
    all.skip = t->kind;
    if (!t->bags_only)
        status = fini_bags_columns(set, source, &all, &list, &count, err);
    memset(t->to, -1, (size_t)columns * sizeof *t->to);
    for (int64_t j = 0; j < count && !status; j++)
        t->to[list[j]] = (int32_t)j;
    fini_free(list);
    if (!status && !source->features && !source->feature_names && !t->bags_only)
        note_text(t, set);
    if (!status)
        status = fini_bags_keep(&set->label, fini_names_get(&t->names, t->label), err);
    if (!status)
        status = fini_bags_keep(&set->bag, fini_names_get(&t->names, t->bag), err);
    if (!status)
        status = fini_bags_keep(&set->group, fini_names_get(&t->names, t->group), err);
    return status || !source->extras || t->bags_only ? status
                                                     : choose_extras(t, set, source, &all, err);
}
