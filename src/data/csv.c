/* CSV text to a table of doubles.
 *
 * The header is scanned cell by cell with all the rules of RFC 4180. The rows, which are most of
 * the text, go through a short loop that knows only what a good row looks like; at the first thing
 * it does not know, diagnose() reads that one line again, slowly, to say what is wrong with it.
 *
 * Memory is bounded by the size of the text before anything is parsed: a cell has at least one byte
 * and one separator, so there are at most (bytes + 1) / (2 columns) rows. */
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 48 }; /* bytes of a cell or a name in a message */

typedef struct source {
    const char *label;       /* for messages */
    const char *start, *end; /* without byte order mark and blank lines at the end */
    const char *body;        /* the line after the header */
    int64_t body_line;       /* its number, from 1 */
    bool ended;              /* the last row had a line end, so it is not cut short */
} source;

struct cell {
    const char *text, *end; /* without spaces around, without outer quotes */
    bool quoted, open;      /* open: the closing quote is missing */
    bool trailing;          /* something stands between the closing quote and the comma */
};

/* ---- cells -------------------------------------------------------------------------------- */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* Reads the cell at p by the rules; returns its comma, line end or the end of the text. */
static const char *scan_cell(const char *p, const char *end, struct cell *cell)
{
    p = skip_blanks(p, end);
    *cell = (struct cell){.text = p, .end = p};
    if (p < end && *p == '"') {
        cell->quoted = true;
        cell->text = ++p;
        while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"')))
            p += *p == '"' ? 2 : 1;
        cell->end = p;
        cell->open = p == end;
        p = skip_blanks(cell->open ? p : p + 1, end);
        const char *rest = p;
        while (p < end && *p != ',' && *p != '\n')
            p++;
        cell->trailing = p > rest && !(p - rest == 1 && *rest == '\r' && (p == end || *p == '\n'));
        return p;
    }
    while (p < end && *p != ',' && *p != '\n')
        p++;
    cell->end = p;
    if (cell->end > cell->text && cell->end[-1] == '\r' && (p == end || *p == '\n'))
        cell->end--;
    while (cell->end > cell->text && is_blank(cell->end[-1]))
        cell->end--;
    return p;
}

static bool is_number(const struct cell *cell, double *value)
{
    const char *text = cell->text, *end = cell->end;
    if (cell->quoted) { /* spaces inside the quotes are spaces around a number as well */
        text = skip_blanks(text, end);
        while (end > text && is_blank(end[-1]))
            end--;
    }
    const char *stop = fini_decimal(text, end, value);
    if (stop && stop != end)
        *value = NAN; /* "infinite" begins with a number but is none */
    return stop == end;
}

/* ---- header ------------------------------------------------------------------------------- */

static fin_status check_name(const source *s, const struct cell *cell, int64_t column,
                             fin_error *err)
{
    char name[SHOWN];
    fini_printable(cell->text, (size_t)(cell->end - cell->text), name, sizeof name);
    const char *wrong = NULL;
    for (const char *p = cell->text; p < cell->end && !wrong;) {
        unsigned char c = (unsigned char)*p;
        int length = fini_utf8_length(p, cell->end);
        if (length == 0)
            wrong = "is not UTF-8; save the file as UTF-8 text";
        else if (c < 0x20 && c != '\t' && !(cell->quoted && (c == '\n' || c == '\r')))
            wrong = "has a control character; is this a CSV file with LF or CRLF line ends?";
        p += length;
    }
    if (cell->open)
        wrong = "has an opening quote that is never closed; the file may be cut short";
    else if (cell->trailing)
        wrong = "has text after its closing quote";
    else if (cell->end == cell->text)
        wrong = "is empty; every column needs a name";
    if (!wrong)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line 1, column %lld: the name '%s' %s", s->label,
                     (long long)column, name, wrong);
}

/* Counts the columns, finds the body; allocates nothing, so a wild header costs nothing. */
static fin_status scan_header(source *s, int *columns, fin_error *err)
{
    int64_t count = 0, numbers = 0;
    double value;
    struct cell cell;
    const char *p = s->start;
    for (;; p++) {
        p = scan_cell(p, s->end, &cell);
        if (++count > FIN_TABLE_COLUMNS_MAX)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.300s, line 1: more than %d columns; at most that many are read",
                             s->label, FIN_TABLE_COLUMNS_MAX);
        fin_status status = check_name(s, &cell, count, err);
        if (status)
            return status;
        numbers += is_number(&cell, &value);
        if (p == s->end || *p == '\n')
            break;
    }
    if (numbers == count)
        return fini_fail(
            err, FIN_ERR_FORMAT,
            "%.300s, line 1: %s; a header line with the names of the columns is needed", s->label,
            count == 1 ? "its cell is a number" : "all cells are numbers");
    if (p == s->end)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s has a header but no rows", s->label);
    s->body = p + 1;
    s->body_line = 1;
    for (const char *q = s->start; q < s->body; q++)
        s->body_line += *q == '\n';
    *columns = (int)count;
    return FIN_OK;
}

/* The same walk again, now copying; "" inside quotes becomes ". */
static void copy_names(const source *s, fin_table *table)
{
    char *to = table->letters;
    const char *p = s->start;
    struct cell cell;
    for (int j = 0; j < table->columns; j++, p++) {
        p = scan_cell(p, s->end, &cell);
        table->names[j] = to;
        for (const char *c = cell.text; c < cell.end; c++) {
            *to++ = *c;
            c += cell.quoted && *c == '"';
        }
        *to++ = '\0';
    }
}

static fin_status check_duplicates(const source *s, const fin_table *table, fin_error *err)
{
    char name[SHOWN];
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

static fin_status bad_cell(const source *s, const fin_table *table, int64_t line, int j,
                           const struct cell *cell, double value, fin_error *err)
{
    char name[SHOWN], text[SHOWN];
    size_t size = (size_t)(cell->end - cell->text);
    fini_printable(table->names[j], strlen(table->names[j]), name, sizeof name);
    fini_printable(cell->text, size, text, sizeof text);
    if (size == 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, line %lld, column '%s': the cell is empty; write nan for a "
                         "missing value",
                         s->label, (long long)line, name);
    if (isinf(value))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, line %lld, column '%s': %s is beyond the range of a double "
                         "(1.8e308); write inf if that is meant",
                         s->label, (long long)line, name, text);
    bool other = memchr(cell->text, ';', size) || memchr(cell->text, '\t', size);
    return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line %lld, column '%s': '%s' is not a number%s",
                     s->label, (long long)line, name, text,
                     other ? "; cells must be separated by commas" : "");
}

/* Says what is wrong with the line at p; it is known that something is. */
static fin_status diagnose(const source *s, const fin_table *table, const char *p, int64_t line,
                           fin_error *err)
{
    const char *start = p;
    int64_t cells = 0;
    double value;
    struct cell cell, first = {0};
    int bad = -1;
    double bad_value = NAN;
    for (;; p++, cells++) {
        p = scan_cell(p, s->end, &cell);
        if (cell.open)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.300s, line %lld: an opening quote is never closed; the file may be "
                             "cut short",
                             s->label, (long long)line);
        if (bad < 0 && cells < table->columns && (!is_number(&cell, &value) || cell.trailing)) {
            bad = (int)cells;
            bad_value = value;
            first = cell;
            if (cell.trailing) /* show what was not understood */
                first.end = p, bad_value = NAN;
        }
        if (p == s->end || *p == '\n')
            break;
    }
    cells++;
    const char *after = skip_blanks(start, s->end);
    if (after < s->end && (*after == '\n' || (*after == '\r' && after + 1 == p)))
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld is blank, but rows follow it",
                         s->label, (long long)line);
    if (cells != table->columns)
        return fini_fail(
            err, FIN_ERR_FORMAT, "%.300s, line %lld has %lld %s, but the header has %d%s", s->label,
            (long long)line, (long long)cells, cells == 1 ? "cell" : "cells", table->columns,
            cells < table->columns && p == s->end && !s->ended
                ? "; the file ends there and may be cut short"
                : "");
    if (bad < 0) /* a row the fast loop refuses is refused here too; this is for safety only */
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld cannot be read", s->label,
                         (long long)line);
    return bad_cell(s, table, line, bad, &first, bad_value, err);
}

static const char *read_quoted(const char *p, const char *end, double *value)
{
    struct cell cell;
    p = scan_cell(p, end, &cell);
    return cell.open || cell.trailing || !is_number(&cell, value) ? NULL : p;
}

static inline const char *read_cell(const char *p, const char *end, double *value)
{
    if (p < end && (unsigned char)*p <= '"') { /* a space, a tab or a quote */
        p = skip_blanks(p, end);
        if (p < end && *p == '"')
            return read_quoted(p, end, value);
    }
    p = fini_decimal(p, end, value);
    return p && p < end && is_blank(*p) ? skip_blanks(p, end) : p;
}

/* Past the line end at p; NULL if there is none. */
static inline const char *read_line_end(const char *p, const char *end)
{
    if (p < end && *p == '\r')
        p++;
    return p == end ? p : *p == '\n' ? p + 1 : NULL;
}

static fin_status read_rows(const source *s, fin_table *table, fin_error *err)
{
    const char *p = s->body, *end = s->end;
    int64_t row = 0, stride = table->capacity;
    int last = table->columns - 1;
    for (; p < end; row++) {
        const char *line = p;
        double *value = table->values + row;
        if (row == table->capacity) /* too few bytes are left for a full row */
            return diagnose(s, table, line, s->body_line + row, err);
        for (int j = 0; p && j < last; j++, value += stride) {
            p = read_cell(p, end, value);
            p = p && p < end && *p == ',' ? p + 1 : NULL;
        }
        p = p ? read_cell(p, end, value) : NULL;
        p = p ? read_line_end(p, end) : NULL;
        if (!p)
            return diagnose(s, table, line, s->body_line + row, err);
    }
    table->rows = row;
    return FIN_OK;
}

/* ---- the whole text ------------------------------------------------------------------------- */

static int64_t count_lines(const char *p, const char *end)
{
    int64_t lines = 1;
    for (; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

/* Is it text at all? Then cuts off byte order mark and blank end. */
static fin_status open_source(source *s, const char *text, size_t size, fin_error *err)
{
    s->start = text;
    s->end = text + size;
    if (size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s is UTF-16 text; save it as UTF-8", s->label);
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (nul)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.300s is a binary file, not CSV text: byte %lld is zero", s->label,
                         (long long)(nul - text) + 1);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        s->start += 3;
    while (s->end > s->start && (is_blank(s->end[-1]) || s->end[-1] == '\n' || s->end[-1] == '\r'))
        s->ended |= *--s->end == '\n';
    if (s->end == s->start)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s is empty", s->label);
    return FIN_OK;
}

fin_status fin_table_parse(const char *text, size_t size, const char *label, fin_table **out,
                           fin_error *err)
{
    *out = NULL;
    source s = {.label = label};
    int columns = 0;
    fin_status status = open_source(&s, text, size, err);
    if (!status)
        status = scan_header(&s, &columns, err);
    if (status)
        return status;
    int64_t most = ((s.end - s.body) + 1) / (2 * (int64_t)columns);
    int64_t capacity = count_lines(s.body, s.end);
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
