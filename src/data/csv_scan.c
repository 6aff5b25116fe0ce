/* CSV text cut into cells by the rules of RFC 4180, its header, and words for what is wrong with it.
 *
 * Slow but complete: the readers of numbers have short loops of their own for good rows and come
 * back here at the first thing that they do not know. */
#include "data/csv.h"

#include <math.h>

/* ---- cells -------------------------------------------------------------------------------- */

const char *fini_csv_cell(const char *p, const char *end, fini_cell *cell)
{
    p = fini_skip_blanks(p, end);
    *cell = (fini_cell){.text = p, .end = p};
    if (p < end && *p == '"') {
        cell->quoted = true;
        cell->text = ++p;
        while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"')))
            p += *p == '"' ? 2 : 1;
        cell->end = p;
        cell->open = p == end;
        p = fini_skip_blanks(cell->open ? p : p + 1, end);
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
    while (cell->end > cell->text && fini_is_blank(cell->end[-1]))
        cell->end--;
    return p;
}

size_t fini_csv_copy(const fini_cell *cell, char *to)
{
    char *start = to;
    for (const char *c = cell->text; c < cell->end; c++) {
        *to++ = *c;
        c += cell->quoted && *c == '"';
    }
    return (size_t)(to - start);
}

bool fini_csv_number(const fini_cell *cell, double *value)
{
    const char *text = cell->text, *end = cell->end;
    if (cell->quoted) { /* spaces inside the quotes are spaces around a number as well */
        text = fini_skip_blanks(text, end);
        while (end > text && fini_is_blank(end[-1]))
            end--;
    }
    const char *stop = fini_decimal(text, end, value);
    if (stop && stop != end)
        *value = NAN; /* "infinite" begins with a number but is none */
    return stop == end;
}

const char *fini_csv_quoted(const char *p, const char *end, double *value)
{
    fini_cell cell;
    p = fini_csv_cell(p, end, &cell);
    return cell.open || cell.trailing || !fini_csv_number(&cell, value) ? NULL : p;
}

/* ---- header ------------------------------------------------------------------------------- */

const char *fini_csv_bad_name(const fini_cell *cell)
{
    size_t size = (size_t)(cell->end - cell->text);
    fini_fault fault = fini_text_fault(cell->text, size, true);
    if (cell->open)
        return "has an opening quote that is never closed; the file may be cut short";
    if (cell->trailing)
        return "has text after its closing quote";
    if (fault == FINI_FAULT_UTF8)
        return "is not UTF-8; save the file as UTF-8 text";
    return fault || (!cell->quoted && memchr(cell->text, '\r', size))
               ? "has a control character; is this a CSV file with LF or CRLF line ends?"
               : NULL;
}

static fin_status check_name(const fini_csv *s, const fini_cell *cell, int64_t column,
                             fin_error *err)
{
    const char *wrong = fini_csv_bad_name(cell);
    if (!wrong && cell->end == cell->text)
        wrong = "is empty; every column needs a name";
    if (!wrong)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line 1, column %lld: the name '%s' %s", s->label,
                     (long long)column, FINI_SHOW_CELL(cell), wrong);
}

fin_status fini_csv_header(fini_csv *s, int64_t most, fin_error *err)
{
    int64_t count = 0, numbers = 0;
    double value;
    fini_cell cell;
    const char *p = s->start;
    for (;; p++) {
        p = fini_csv_cell(p, s->end, &cell);
        if (++count > most)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.300s, line 1: more than %lld columns; at most that many are read",
                             s->label, (long long)most);
        s->index &= count > 1 || (cell.end == cell.text && p < s->end && *p == ',');
        if (count == 1 && s->index)
            continue;
        FINI_TRY(check_name(s, &cell, count, err));
        numbers += fini_csv_number(&cell, &value);
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
    s->columns = count;
    return FIN_OK;
}

fin_status fini_csv_names(const fini_csv *s, fini_names *names, fin_error *err)
{
    size_t room = (size_t)(s->body - s->start) + 1;
    FINI_FREED char *copy = fini_alloc(room);
    fini_cell cell;
    FINI_TRY(copy ? FIN_OK : fini_fail_memory(err, room, "the names of columns"));
    const char *p = s->start;
    for (int64_t j = 0, number; j < s->columns; j++, p++) {
        p = fini_csv_cell(p, s->end, &cell);
        size_t size = fini_csv_copy(&cell, copy);
        FINI_TRY(j == 0 && s->index ? fini_names_put(names, FINI_CSV_INDEX,
                                                     sizeof FINI_CSV_INDEX - 1, &number, err)
                                    : fini_names_put(names, copy, size, &number, err));
        if (number < j)
            return fini_fail(
                err, FIN_ERR_FORMAT,
                "%.300s, line 1: columns %lld and %lld are both called '%s'; names must differ",
                s->label, (long long)number + 1, (long long)j + 1,
                FINI_SHOW(fini_names_get(names, number)));
    }
    return FIN_OK;
}

int64_t fini_csv_lines(const char *p, const char *end)
{
    int64_t lines = 1;
    for (; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

fin_status fini_csv_open(fini_csv *s, const char *text, size_t size, fin_error *err)
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
    while (s->end > s->start &&
           (fini_is_blank(s->end[-1]) || s->end[-1] == '\n' || s->end[-1] == '\r'))
        s->ended |= *--s->end == '\n';
    if (s->end == s->start)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s is empty", s->label);
    return FIN_OK;
}

/* ---- what is wrong ---------------------------------------------------------------------------- */

int64_t fini_csv_line(const fini_csv *s, const char *p)
{
    return p < s->body ? 1 : s->body_line + fini_csv_lines(s->body, p) - 1;
}

fin_status fini_csv_length(const fini_csv *s, const char *p, fin_error *err)
{
    const char *start = p;
    int64_t cells = 0;
    fini_cell cell;
    for (;; p++) {
        p = fini_csv_cell(p, s->end, &cell);
        cells++;
        if (cell.open)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.300s, line %lld: an opening quote is never closed; the file may be "
                             "cut short",
                             s->label, (long long)fini_csv_line(s, start));
        if (p == s->end || *p == '\n')
            break;
    }
    const char *after = fini_skip_blanks(start, s->end);
    if (after < s->end && (*after == '\n' || (*after == '\r' && after + 1 == p)))
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld is blank, but rows follow it",
                         s->label, (long long)fini_csv_line(s, start));
    if (cells == s->columns)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.300s, line %lld has %lld %s, but the header has %lld%s", s->label,
                     (long long)fini_csv_line(s, start), (long long)cells,
                     cells == 1 ? "cell" : "cells", (long long)s->columns,
                     cells < s->columns && p == s->end && !s->ended
                         ? "; the file ends there and may be cut short"
                         : "");
}

fin_status fini_csv_no_number(const fini_csv *s, const char *p, const char *column,
                              const fini_cell *cell, double value, fin_error *err)
{
    const char *name = FINI_SHOW(column), *text = FINI_SHOW_CELL(cell);
    size_t size = (size_t)(cell->end - cell->text);
    long long line = fini_csv_line(s, p);
    if (size == 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, line %lld, column '%s': the cell is empty; write nan for a "
                         "missing value",
                         s->label, line, name);
    if (isinf(value))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, line %lld, column '%s': %s is beyond the range of a double "
                         "(1.8e308); write inf if that is meant",
                         s->label, line, name, text);
    bool other = memchr(cell->text, ';', size) || memchr(cell->text, '\t', size);
    return fini_fail(err, FIN_ERR_FORMAT, "%.200s, line %lld, column '%s': '%s' is not a number%s",
                     s->label, line, name, text,
                     other ? "; cells must be separated by commas" : "");
}
