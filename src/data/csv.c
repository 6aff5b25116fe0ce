/* CSV text to a table of doubles.
 *
 * The header is scanned cell by cell with all the rules of RFC 4180. The rows, which are most of
 * the text, go through a short loop that knows only what a good row looks like; at the first thing
 * it does not know, diagnose() reads that one line again, slowly, to say what is wrong with it.
 *
 * Memory is bounded by the size of the text before anything is parsed: a cell has at least one byte
 * and one separator, so there are at most (bytes + 1) / (2 columns) rows. */
#include "data/csv.h"

#include <math.h>
#include <string.h>

/* The same walk again, now copying; "" inside quotes becomes ". */
static void copy_names(const fini_csv *s, fin_table *table)
{
    char *to = table->letters;
    const char *p = s->start;
    fini_cell cell;
    for (int j = 0; j < table->columns; j++, p++) {
        p = fini_csv_cell(p, s->end, &cell);
        table->names[j] = to;
        to += fini_csv_copy(&cell, to);
        *to++ = '\0';
    }
}

static fin_status check_duplicates(const fini_csv *s, const fin_table *table, fin_error *err)
{
    char name[FINI_SHOWN];
    for (int i = 1; i < table->columns; i++) {
        int a = table->order[i - 1], b = table->order[i];
        if (strcmp(table->names[a], table->names[b]) == 0)
            return fini_fail(
                err, FIN_ERR_FORMAT,
                "%.300s, line 1: columns %d and %d are both called '%s'; names must "
                "differ",
                s->label, a + 1, b + 1,
                fini_printable(table->names[a], strlen(table->names[a]), name, sizeof name));
    }
    return FIN_OK;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* Says what is wrong with the line at p; it is known that something is. */
static fin_status diagnose(const fini_csv *s, const fin_table *table, const char *p, fin_error *err)
{
    const char *start = p;
    double value;
    fini_cell cell;
    fin_status status = fini_csv_length(s, p, err);
    for (int j = 0; !status && j < table->columns; j++, p++) {
        p = fini_csv_cell(p, s->end, &cell);
        if (fini_csv_number(&cell, &value) && !cell.trailing)
            continue;
        if (cell.trailing) /* show what was not understood */
            cell.end = p, value = NAN;
        return fini_csv_no_number(s, start, table->names[j], &cell, value, err);
    }
    if (status) /* a row the fast loop refuses is refused here too; what follows is for safety only */
        return status;
    return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld cannot be read", s->label,
                     (long long)fini_csv_line(s, start));
}

static const char *read_quoted(const char *p, const char *end, double *value)
{
    fini_cell cell;
    p = fini_csv_cell(p, end, &cell);
    return cell.open || cell.trailing || !fini_csv_number(&cell, value) ? NULL : p;
}

static inline const char *read_cell(const char *p, const char *end, double *value)
{
    if (p < end && (unsigned char)*p <= '"') { /* a space, a tab or a quote */
        p = fini_skip_blanks(p, end);
        if (p < end && *p == '"')
            return read_quoted(p, end, value);
    }
    p = fini_decimal(p, end, value);
    return p && p < end && fini_is_blank(*p) ? fini_skip_blanks(p, end) : p;
}

/* Past the line end at p; NULL if there is none. */
static inline const char *read_line_end(const char *p, const char *end)
{
    if (p < end && *p == '\r')
        p++;
    return p == end ? p : *p == '\n' ? p + 1 : NULL;
}

static fin_status read_rows(const fini_csv *s, fin_table *table, fin_error *err)
{
    const char *p = s->body, *end = s->end;
    int64_t row = 0, stride = table->capacity;
    int last = table->columns - 1;
    for (; p < end; row++) {
        const char *line = p;
        double *value = table->values + row;
        if (row == table->capacity) /* too few bytes are left for a full row */
            return diagnose(s, table, line, err);
        for (int j = 0; p && j < last; j++, value += stride) {
            p = read_cell(p, end, value);
            p = p && p < end && *p == ',' ? p + 1 : NULL;
        }
        p = p ? read_cell(p, end, value) : NULL;
        p = p ? read_line_end(p, end) : NULL;
        if (!p)
            return diagnose(s, table, line, err);
    }
    table->rows = row;
    return FIN_OK;
}

/* ---- the whole text ------------------------------------------------------------------------- */

fin_status fin_table_parse(const char *text, size_t size, const char *label, fin_table **out,
                           fin_error *err)
{
    *out = NULL;
    fini_csv s = {.label = label};
    fin_status status = fini_csv_open(&s, text, size, err);
    if (!status)
        status = fini_csv_header(&s, FIN_TABLE_COLUMNS_MAX, err);
    if (status)
        return status;
    int columns = (int)s.columns;
    int64_t most = ((s.end - s.body) + 1) / (2 * (int64_t)columns);
    int64_t capacity = fini_csv_lines(s.body, s.end);
    capacity = capacity < most ? capacity : most;
    if (capacity > FIN_TABLE_ROWS_MAX)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s has more than %lld rows; split the file",
                         label, (long long)FIN_TABLE_ROWS_MAX);
    int64_t letters = (s.body - s.start) + columns;
    fin_table *table;
    status = fini_table_create(columns, capacity, letters, &table, err);
    if (status)
        return status;
    copy_names(&s, table);
    fini_table_sort(table);
    status = check_duplicates(&s, table, err);
    if (!status)
        status = read_rows(&s, table, err);
    if (status)
        fin_table_destroy(table);
    else
        *out = table;
    return status;
}

fin_status fin_table_read(const char *path, fin_table **out, fin_error *err)
{
    char *text;
    size_t size;
    *out = NULL;
    fin_status status = fini_read_text(path, &text, &size, err);
    if (!status)
        status = fin_table_parse(text, size, strcmp(path, "-") ? path : "standard input", out, err);
    fini_free(text);
    return status;
}
