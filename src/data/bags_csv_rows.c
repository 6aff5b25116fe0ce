/* Second pass over a long CSV file: the numbers of the own rows, each straight into its place.
 *
 * Rows are shared out over threads in batches. A short loop knows what a good row looks like; the
 * first row of the file that it refuses is read again, slowly, to say what is wrong with it, so
 * that the message is the same for any number of threads. */
#include "data/bags.h"

#include <math.h>
#include <string.h>

enum { BATCH = 1 << 26, CHUNK = 64 }; /* bytes between reports, rows a thread takes at a time */

static const char *skip_cell(const char *p, const char *end)
{
    fini_cell cell;
    p = fini_csv_cell(p, end, &cell);
    return cell.open || cell.trailing ? NULL : p;
}

/* Is this row good? Then its features are in `values`. */
static bool read_row(const fini_long *t, int64_t row, double *values)
{
    const char *p = t->line[row], *end = t->csv.end;
    const int32_t *to = t->to;
    int64_t columns = t->csv.columns;
    double bad = 0;
    for (int64_t j = 0; j < columns; j++) {
        if (j > 0) {
            if (p == end || *p != ',')
                return false;
            p++;
        }
        if (to[j] >= 0) {
            double value;
            p = fini_csv_value(p, end, &value);
            bad += value * 0; /* NaN, and stays so, if one is not finite */
            values[to[j]] = value;
        } else {
            p = skip_cell(p, end);
        }
        if (!p)
            return false;
    }
    if (p < end && *p == '\r')
        p++;
    return (p == end || *p == '\n') && bad == 0;
}

/* Where other tables may have nan or inf, tokens may not: so they are not recommended. */
static fin_status no_token(const fini_long *t, const char *line, const char *name, bool empty,
                           fin_error *err)
{
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.200s, line %lld, column '%s': %s, or leave the row or the column out",
                     t->csv.label, (long long)fini_csv_line(&t->csv, line), FINI_SHOW(name),
                     empty ? "the cell is empty; fill it in"
                           : "the number is beyond 1.8e308; scale the column");
}

static fin_status diagnose(const fini_long *t, int64_t row, fin_error *err)
{
    const fini_csv *s = &t->csv;
    const char *line = t->line[row], *p = line;
    fini_cell cell;
    FINI_TRY(fini_csv_length(s, line, err));
    for (int64_t j = 0; j < s->columns; j++, p++) {
        double value = 0;
        const char *name = fini_names_get(&t->names, j);
        p = fini_csv_cell(p, s->end, &cell);
        bool number = t->to[j] < 0 || fini_csv_number(&cell, &value);
        if (cell.trailing) /* show what was not understood */
            cell.end = p, value = NAN;
        if ((!number && cell.end == cell.text) || (!number && isinf(value)))
            return no_token(t, line, name, cell.end == cell.text, err);
        if (!number || cell.trailing)
            return fini_csv_no_number(s, line, name, &cell, value, err);
        if (!isfinite(value)) {
            const char *bag = fini_names_get(&t->bags, t->bag_of[row]);
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s, line %lld, column '%s' of bag '%s': %s is not a finite "
                             "number; fill it in, "
                             "or leave the row or the column out",
                             s->label, (long long)fini_csv_line(s, line), FINI_SHOW(name),
                             FINI_SHOW(bag),
                             isnan(value) ? "nan"
                             : value > 0  ? "inf"
                                          : "-inf");
        }
    }
    return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld cannot be read", s->label,
                     (long long)fini_csv_line(s, line));
}

/* The first row from `from` to `to` - 1 that is not good; `to` if all are. */
static int64_t read_batch(const fini_long *t, double *tokens, int64_t d, int64_t from, int64_t to)
{
    int64_t bad = to;
    int threads = to - from > CHUNK ? fin_threads_get() : 1;
#pragma omp parallel for num_threads(threads) schedule(dynamic, CHUNK) reduction(min : bad)
    for (int64_t row = from; row < to; row++) {
        int64_t place = t->place ? t->place[row] : row - t->skipped;
        if (place >= 0 && place < t->own && row < bad && !read_row(t, row, tokens + place * d))
            bad = row;
    }
    return bad;
}

fin_status fini_long_rows(fini_long *t, fin_bag_set *set, const fin_progress *progress,
                          fin_error *err)
{
    int64_t d = set->bags.d, cells;
    bool overflow = __builtin_mul_overflow(t->own, d, &cells);
    double *tokens = overflow ? NULL : fini_alloc_array(cells + 1, sizeof *tokens);
    if (!tokens)
        return fini_fail_memory(err, overflow ? SIZE_MAX : (size_t)cells * sizeof *tokens,
                                "tokens");
    set->tokens = tokens;
    set->bags.tokens = tokens;
    set->bags.dtype = FIN_F64;
    double size = (double)(t->csv.end - t->csv.start);
    for (int64_t from = 0, to; from < t->rows; from = to) {
        const char *stop = t->line[from];
        if (fini_report(progress, "reading tokens", (double)(stop - t->csv.start), size))
            return fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", t->csv.label);
        for (to = from; to < t->rows && t->line[to] - stop < BATCH; to++) {
        }
        int64_t bad = read_batch(t, tokens, d, from, to);
        if (bad < to)
            return diagnose(t, bad, err);
    }
    return FIN_OK;
}

/* ---- extra columns ---------------------------------------------------------------------------- */

/* A number that a double holds: row ids may have more digits. */
static bool holds(const fini_cell *cell, double *value)
{
    size_t size = (size_t)(cell->end - cell->text);
    if (size == 0)
        return true;
    if (!fini_csv_number(cell, value))
        return false;
    return !(fabs(*value) >= 0x1p53) || memchr(cell->text, '.', size) ||
           memchr(cell->text, 'e', size);
}

/* The cells of the line at p that are extra columns, as texts and, as long as `number` says so, as
 * numbers. */
static fin_status read_extras(const fini_long *t, fin_bag_set *set, const char *p, int64_t at,
                              bool *number, fini_room *room, fin_error *err)
{
    fini_cell cell;
    fin_status status = FIN_OK;
    for (int64_t j = 0; j < t->csv.columns && !status; j++, p++) {
        p = fini_csv_cell(p, t->csv.end, &cell);
        int32_t k = t->extra[j];
        if (k < 0)
            continue;
        size_t size = (size_t)(cell.end - cell.text);
        double value = NAN;
        number[k] = number[k] && holds(&cell, &value);
        set->extra[k].numbers[at] = value;
        if (!cell.quoted || !memchr(cell.text, '"', size)) {
            status = fini_extra_add(set, k, cell.text, size, room, err);
            continue;
        }
        char *copy = fini_alloc(size);
        status = copy ? fini_extra_add(set, k, copy, fini_csv_copy(&cell, copy), room, err)
                      : fini_fail_memory(err, size, "a cell");
        fini_free(copy);
    }
    return status;
}

fin_status fini_long_extras(const fini_long *t, fin_bag_set *set, const fin_progress *progress,
                            fin_error *err)
{
    enum { OFTEN = 1 << 16 };
    int64_t count = set->extra_count;
    fini_room room = {0};
    fin_status status = FIN_OK;
    FINI_NEW(err, "columns", bool, number, count + 1, 1);
    for (int64_t k = 0; k < count; k++) {
        number[k] = true;
        set->extra[k].numbers = fini_alloc_array(t->own + 1, sizeof(double));
        if (!set->extra[k].numbers)
            status = fini_fail_memory(err, (size_t)t->own * sizeof(double), "extra columns");
    }
    for (int64_t at = 0; at < t->own && !status; at++) {
        int64_t row = set->rows ? set->rows[at] - 1 : set->first_row - 1 + at;
        status = read_extras(t, set, t->line[row], at, number, &room, err);
        if (at % OFTEN == 0 &&
            fini_report(progress, "reading extra columns", (double)at, (double)t->own))
            status =
                fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", t->csv.label);
    }
    for (int64_t k = 0; k < count; k++) /* of text there are no numbers */
        if (!number[k]) {
            fini_free(set->extra[k].numbers);
            set->extra[k].numbers = NULL;
        }
    fini_free_all(number, room.text);
    return status;
}
