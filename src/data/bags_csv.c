/* Bags from a long CSV file: one row per token.
 *
 * Two passes over the text. The first finds lines, and in each the bag and the label: that is a
 * search for line ends and a few commas, at the speed of memory. Then every row's place is known,
 * and the second (bags_csv_rows.c) reads numbers straight into it, by several threads, of the own
 * share only: nothing is sorted or copied, whether the rows of a bag are neighbours or not. */
#define _GNU_SOURCE /* memrchr */
#include "data/bags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- first pass: lines, bags, labels ---------------------------------------------------------- */

/* Cell j of a line without quotes, from the nearer end. */
static void plain_cell(const char *line, const char *end, int64_t j, int64_t columns,
                       fini_cell *cell)
{
    const char *p = line, *comma;
    if (j < columns - j) {
        for (; j > 0 && p < end; j--) {
            comma = memchr(p, ',', (size_t)(end - p));
            p = comma ? comma + 1 : end;
        }
        fini_csv_cell(p, end, cell);
        return;
    }
    p = end;
    for (int64_t k = columns - 1;; k--) {
        comma = memrchr(line, ',', (size_t)(p - line));
        if (k == j || !comma)
            break;
        p = comma;
    }
    fini_csv_cell(comma ? comma + 1 : line, end, cell);
}

/* What a row says beside its features. */
typedef struct cells {
    fini_cell bag, label, group;
} cells;

/* The cells of the line at p; returns its end. */
static const char *find_cells(const fini_long *t, const char *p, cells *c)
{
    const char *end = t->csv.end;
    c->bag = c->label = c->group = (fini_cell){.text = p, .end = p};
    if (!t->quotes) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        if (!t->each)
            plain_cell(p, stop, t->bag, t->csv.columns, &c->bag);
        if (t->label >= 0)
            plain_cell(p, stop, t->label, t->csv.columns, &c->label);
        if (t->group >= 0)
            plain_cell(p, stop, t->group, t->csv.columns, &c->group);
        return stop;
    }
    fini_cell cell;
    for (int64_t j = 0;; j++, p++) {
        p = fini_csv_cell(p, end, &cell);
        if (j == t->bag)
            c->bag = cell;
        if (j == t->label)
            c->label = cell;
        if (j == t->group)
            c->group = cell;
        if (p == end || *p == '\n')
            return p;
    }
}

/* Fails for the cell of a row, unless the row has the wrong number of cells, which says more. */
static fin_status fail_cell(const fini_long *t, const char *line, int64_t column,
                            const fini_cell *cell, const char *why, fin_error *err)
{
    const char *name = fini_names_get(&t->names, column);
    FINI_TRY(fini_csv_length(&t->csv, line, err));
    return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line %lld, column '%s': '%s' %s", t->csv.label,
                     (long long)fini_csv_line(&t->csv, line), FINI_SHOW(name), FINI_SHOW_CELL(cell),
                     why);
}

/* Number of the cell's text among `names`; a copy is made only where quotes are doubled. */
static fin_status number_name(fini_names *names, const fini_cell *cell, int64_t *number,
                              fin_error *err)
{
    size_t size = (size_t)(cell->end - cell->text);
    if (!cell->quoted || !memchr(cell->text, '"', size))
        return fini_names_put(names, cell->text, size, number, err);
    FINI_FREED char *copy = fini_alloc(size);
    if (!copy)
        return fini_fail_memory(err, size, "a name");
    size = fini_csv_copy(cell, copy);
    return fini_names_put(names, copy, size, number, err);
}

/* A label that is empty or nan is missing: NaN and -1. */
static fin_status read_label(fini_long *t, const char *line, const fini_cell *cell, double *value,
                             int64_t *text, fin_error *err)
{
    *text = -1;
    *value = NAN;
    if (cell->end == cell->text || (fini_csv_number(cell, value) && !cell->trailing))
        return FIN_OK;
    *value = NAN;
    const char *wrong = fini_csv_bad_name(cell);
    if (wrong)
        return fail_cell(t, line, t->label, cell, wrong, err);
    FINI_TRY(number_name(&t->labels.texts, cell, text, err));
    if (*text >= INT32_MAX)
        return fail_cell(t, line, t->label, cell, "is one label too many", err);
    return FIN_OK;
}

/* The cell of a row does not say what the first row of its bag says. */
static fin_status fail_differs(const fini_long *t, int64_t row, int64_t bag, int64_t column,
                               const fini_cell *cell, const char *what, fin_error *err)
{
    char why[240];
    const char *name = fini_names_get(&t->bags, bag);
    snprintf(why, sizeof why,
             "differs from the %s of the same bag, '%s', in line %lld; is it the right column? A "
             "%s is the same in all rows of a bag",
             what, FINI_SHOW(name), (long long)fini_csv_line(&t->csv, t->line[t->first_row[bag]]),
             what);
    return fail_cell(t, t->line[row], column, cell, why, err);
}

static fin_status check_group(fini_long *t, int64_t row, int64_t bag, const fini_cell *cell,
                              fin_error *err)
{
    int64_t number;
    const char *wrong = fini_csv_bad_name(cell);
    if (!wrong && cell->end == cell->text)
        wrong = "is empty, but every bag needs its group";
    if (wrong)
        return fail_cell(t, t->line[row], t->group, cell, wrong, err);
    FINI_TRY(number_name(&t->groups, cell, &number, err));
    if (t->first_row[bag] == row)
        t->group_of[bag] = number;
    return t->group_of[bag] == number ? FIN_OK
                                      : fail_differs(t, row, bag, t->group, cell, "group", err);
}

static fin_status check_label(fini_long *t, int64_t row, int64_t bag, const fini_cell *cell,
                              fin_error *err)
{
    double value;
    int64_t text;
    const char *line = t->line[row];
    FINI_TRY(read_label(t, line, cell, &value, &text, err));
    if (t->first_row[bag] == row) {
        t->labels.value[bag] = value;
        t->labels.text[bag] = (int32_t)text;
        return FIN_OK;
    }
    double old = t->labels.value[bag];
    if (t->labels.text[bag] == text && (old == value || (isnan(old) && isnan(value))))
        return FIN_OK;
    return fail_differs(t, row, bag, t->label, cell, "label", err);
}

static bool same(const fini_cell *a, const fini_cell *b)
{
    size_t size = (size_t)(a->end - a->text);
    return a->quoted == b->quoted && !a->trailing && !b->trailing &&
           size == (size_t)(b->end - b->text) && memcmp(a->text, b->text, size) == 0;
}

static fin_status read_bag(fini_long *t, int64_t row, const fini_cell *cell, fin_error *err)
{
    const char *line = t->line[row], *wrong = fini_csv_bad_name(cell);
    int64_t before = t->bags.count;
    if (t->each) {
        t->bag_of[row] = t->first_row[row] = row;
        return fini_names_numbers(&t->bags, row + 1, 1, err);
    }
    if (!wrong && cell->end == cell->text)
        wrong = "is empty, but every row needs the name of its bag";
    if (wrong)
        return fail_cell(t, line, t->bag, cell, wrong, err);
    FINI_TRY(number_name(&t->bags, cell, &t->bag_of[row], err));
    if (t->bags.count > before)
        t->first_row[before] = row;
    return FIN_OK;
}

/* There are more rows than the commas of the text are enough for: one of them is short. */
static fin_status fail_short(const fini_long *t, fin_error *err)
{
    for (int64_t row = 0; row < t->rows; row++) {
        FINI_TRY(fini_csv_length(&t->csv, t->line[row], err));
    }
    return fini_fail(err, FIN_ERR_FORMAT, "%.300s has rows that are shorter than its header",
                     t->csv.label);
}

static fin_status index_rows(fini_long *t, const fin_progress *progress, fin_error *err)
{
    enum { OFTEN = 1 << 20 };
    const fini_csv *s = &t->csv;
    cells here, last = {0};
    const char *p = s->body;
    fin_status status = FIN_OK;
    int64_t row = 0;
    for (; p < s->end && !status; row++) {
        if (row == t->rows)
            return fail_short(t, err);
        t->line[row] = p;
        p = find_cells(t, p, &here);
        p += p < s->end;
        bool known = row > 0 && !t->each && same(&here.bag, &last.bag);
        if (known)
            t->bag_of[row] = t->bag_of[row - 1];
        else
            status = read_bag(t, row, &here.bag, err);
        if (!status && t->label >= 0 && !(known && same(&here.label, &last.label)))
            status = check_label(t, row, t->bag_of[row], &here.label, err);
        if (!status && t->group >= 0 && !(known && same(&here.group, &last.group)))
            status = check_group(t, row, t->bag_of[row], &here.group, err);
        last = here;
        if (row % OFTEN == 0 && fini_report(progress, "reading bags", (double)(p - s->start),
                                            (double)(s->end - s->start)))
            return fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", s->label);
    }
    t->rows = row;
    t->line[row] = s->end;
    return status;
}

/* ---- between the passes ----------------------------------------------------------------------- */

static fin_status take_rows(fini_long *t, fin_error *err)
{
    const fini_csv *s = &t->csv;
    /* A row has a comma or a line end for every cell: that bounds memory before any is taken. */
    int64_t lines = fini_csv_lines(s->body, s->end), most = ((s->end - s->body) + 1) / s->columns;
    t->rows = lines < most ? lines : most;
    int64_t room = t->rows + 1;
    t->line = fini_alloc_array(room, sizeof *t->line);
    t->bag_of = fini_alloc_array(room, sizeof *t->bag_of);
    t->first_row = fini_alloc_array(room, sizeof *t->first_row);
    t->labels.value = fini_alloc_array(room, sizeof *t->labels.value);
    t->labels.text = fini_alloc_array(room, sizeof *t->labels.text);
    if (t->group >= 0)
        t->group_of = fini_alloc_array(room, sizeof *t->group_of);
    if (t->group >= 0 && !t->group_of)
        return fini_fail_memory(err, (size_t)room * sizeof *t->group_of, "groups");
    if (!t->line || !t->bag_of || !t->first_row || !t->labels.value || !t->labels.text)
        return fini_fail_memory(err, (size_t)room * sizeof *t->line, "rows");
    t->quotes = memchr(s->body, '"', (size_t)(s->end - s->body)) != NULL;
    return FIN_OK;
}

/* Where the tokens of each bag begin, and with that the place of each row. */
static fin_status place_rows(fini_long *t, fin_bag_set *set, const fin_bags_source *source,
                             fin_error *err)
{
    int64_t total = t->bags.count;
    FINI_NEW(err, "bags", int64_t, offsets, total + 1, 1);
    bool ordered = true;
    memset(offsets, 0, (size_t)(total + 1) * sizeof *offsets);
    for (int64_t row = 0; row < t->rows; row++) {
        offsets[t->bag_of[row] + 1]++;
        ordered &= row == 0 || t->bag_of[row] >= t->bag_of[row - 1];
    }
    for (int64_t i = 0; i < total; i++)
        offsets[i + 1] += offsets[i];
    FINI_TRY(fini_bags_cut(set, source, total, offsets, &t->skipped, err));
    const fin_bags *bags = &set->bags;
    t->own = bags->offsets[bags->n];
    set->first_row = t->skipped + 1;
    if (ordered)
        return FIN_OK;
    t->place = fini_alloc_array(t->rows, sizeof *t->place);
    set->rows = fini_alloc_array(t->own + 1, sizeof *set->rows);
    int64_t *next = t->first_row; /* no longer needed */
    if (!t->place || !set->rows)
        return fini_fail_memory(err, (size_t)t->rows * sizeof *t->place, "rows");
    memcpy(next, bags->offsets, (size_t)bags->n * sizeof *next);
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t i = t->bag_of[row] - bags->first;
        t->place[row] = i >= 0 && i < bags->n ? next[i]++ : -1;
        if (t->place[row] >= 0)
            set->rows[t->place[row]] = row + 1;
    }
    return FIN_OK;
}

static fin_status read_body(fini_long *t, fin_bag_set *set, const fin_bags_source *source,
                            const fin_progress *progress, fin_error *err)
{
    FINI_TRY(take_rows(t, err));
    FINI_TRY(index_rows(t, progress, err));
    FINI_TRY(place_rows(t, set, source, err));
    /* The rows before the labels: a row cut short is worth more words than its label. */
    FINI_TRY(fini_long_rows(t, set, progress, err));
    if (t->extra)
        FINI_TRY(fini_long_extras(t, set, progress, err));
    t->labels.n = t->bags.count;
    t->labels.bags = &t->bags;
    t->labels.file = t->csv.label;
    FINI_TRY(fini_bags_labels(set, source, t->label >= 0 ? &t->labels : NULL, err));
    if (t->group_of)
        FINI_TRY(fini_bags_groups(set, t->group_of, err));
    return fini_bags_names(set, &t->bags, err);
}

/* What was found out, and not asked for or said by the name of the file. */
static void note_dialect(const fin_bag_set *set, const fin_bags_source *source,
                         const fini_dialect *dialect)
{
    bool sep = !source->sep && dialect->sep != ',' &&
               !(dialect->sep == '\t' && (strstr(source->path, ".tsv") || dialect->decimal == '.'));
    bool comma = !source->decimal && dialect->decimal == ',';
    if (sep || comma)
        fini_bags_note(set, "%s%s%s; --sep and --decimal say it otherwise",
                       !sep                   ? ""
                       : dialect->sep == '\t' ? "cells are separated by tabs"
                                              : "cells are separated by semicolons",
                       sep && comma ? ", " : "",
                       comma ? "numbers are read with a decimal comma" : "");
}

void fini_long_close(fini_long *t)
{
    fini_names_close(&t->names);
    fini_names_close(&t->bags);
    fini_names_close(&t->labels.texts);
    fini_names_close(&t->groups);
    fini_free_all(t->kind, t->to, t->extra, t->line, t->bag_of, t->first_row, t->labels.value,
                  t->labels.text, t->group_of, t->place);
    *t = (fini_long){.rows = 0};
}

/* Dialect, header and columns of the text, whose CSV is *plain where it was something else. */
static fin_status open_table(fini_long *t, fin_bag_set *set, const fin_bags_source *source,
                             const char *text, size_t size, char **plain, fin_error *err)
{
    fini_dialect dialect = {source->sep, source->decimal};
    t->csv.index = true;
    FINI_TRY(fini_csv_dialect(t->csv.label, text, size, &dialect, plain, &size, err));
    if (*plain)
        note_dialect(set, source, &dialect);
    FINI_TRY(fini_csv_open(&t->csv, *plain ? *plain : text, size, err));
    FINI_TRY(fini_csv_header(&t->csv, FINI_BAGS_COLUMNS_MAX, err));
    return fini_long_columns(t, set, source, err);
}

fin_status fini_bags_parse(fin_bag_set *set, const fin_bags_source *source, const char *text,
                           size_t size, const fin_progress *progress, fin_error *err)
{
    FINI_AT_END(fini_long_close)
    fini_long t = {.csv.label = strcmp(source->path, "-") ? source->path : "standard input"};
    FINI_FREED char *plain = NULL;
    FINI_TRY(open_table(&t, set, source, text, size, &plain, err));
    return read_body(&t, set, source, progress, err);
}

fin_status fini_long_read(fini_long *t, char **text, fin_bag_set *set,
                          const fin_bags_source *source, fin_error *err)
{
    size_t size;
    char *plain = NULL;
    *t = (fini_long){.csv.label = source->table, .bags_only = true};
    fin_status status = fini_read_text(source->table, text, &size, err);
    if (!status)
        status = open_table(t, set, source, *text, size, &plain, err);
    if (plain) {
        fini_free(*text);
        *text = plain;
    }
    if (!status)
        status = take_rows(t, err);
    if (!status)
        status = index_rows(t, NULL, err);
    t->labels.n = t->bags.count;
    t->labels.bags = &t->bags;
    t->labels.file = t->csv.label;
    return status;
}

fin_status fini_bags_csv(fin_bag_set *set, const fin_bags_source *source,
                         const fin_progress *progress, fin_error *err)
{
    char *text;
    size_t size;
    fin_status status = fini_read_text(source->path, &text, &size, err);
    if (!status)
        status = fini_bags_parse(set, source, text, size, progress, err);
    fini_free(text);
    return status;
}
