/* Tables with other separators and decimal commas, as spreadsheets and other programs write them.
 *
 * They are written anew as CSV before anybody reads them: one pass more over such files, and not one
 * branch in the loops that read numbers. Lines stay lines, so that messages count right. */
#include "data/csv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 20 }; /* lines that decide between separators */

/* A cell, from p to its separator, line end or the end of the text. */
typedef struct piece {
    const char *text, *end; /* without blanks around and quotes */
    const char *next;
    bool quoted;
} piece;

static const char *skip(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

static piece cut(const char *p, const char *end, char sep)
{
    const char *start = skip(p, end);
    piece c = {.quoted = start < end && *start == '"'};
    if (c.quoted) {
        for (p = start + 1; p < end && (*p != '"' || (p + 1 < end && p[1] == '"'));)
            p += *p == '"' ? 2 : 1;
        c.text = start + 1;
        c.end = p;
    }
    while (p < end && *p != sep && *p != '\n')
        p++;
    c.next = p;
    if (c.quoted)
        return c;
    while (p > start &&
           (p[-1] == ' ' || (p[-1] == '\r' && p == c.next && (p == end || *p == '\n'))))
        p--;
    c.text = start;
    c.end = p < start ? start : p;
    return c;
}

/* Is the cell a number with this sign and digits on at least one side of it? */
static bool fraction(const piece *c, char sign)
{
    const char *p = skip(c->text, c->end), *end = c->end;
    int digits = 0;
    while (end > p && end[-1] == ' ')
        end--;
    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        digits++;
    if (p == end || *p++ != sign)
        return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        digits++;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        if (p == end)
            return false;
        while (p < end && *p >= '0' && *p <= '9')
            p++;
    }
    return digits > 0 && p == end;
}

/* ---- what the file uses ------------------------------------------------------------------------- */

/* Separators of the line at p, which then is the next. */
static int64_t count_line(const char **p, const char *end, char sep)
{
    int64_t count = 0;
    bool inside = false;
    for (; *p < end && (inside || **p != '\n'); ++*p) {
        inside ^= **p == '"';
        count += !inside && **p == sep;
    }
    *p += *p < end;
    return count;
}

/* As many in each of the first lines as in the header? */
static bool steady(const char *p, const char *end, char sep)
{
    int64_t first = count_line(&p, end, sep);
    for (int line = 1; line < LOOKED_AT && p < end; line++) {
        const char *start = p;
        if (count_line(&p, end, sep) != first && skip(start, end) < end &&
            *skip(start, end) != '\n')
            return false;
    }
    return first > 0;
}

static char find_separator(const char *text, const char *end, const char *label)
{
    static const char others[] = {'\t', ';'};
    const char *p = text;
    size_t length = strlen(label);
    bool tsv = (length > 4 && strcasecmp(label + length - 4, ".tsv") == 0) ||
               (length > 7 && strcasecmp(label + length - 7, ".tsv.gz") == 0);
    if (tsv && steady(text, end, '\t'))
        return '\t';
    if (count_line(&p, end, ',') > 0 && steady(text, end, ','))
        return ',';
    for (size_t i = 0; i < sizeof others; i++)
        if (steady(text, end, others[i]))
            return others[i];
    p = text;
    if (count_line(&p, end, ',') == 0) /* a bad row: its message is about the right cells */
        for (size_t i = 0; i < sizeof others; i++) {
            p = text;
            if (count_line(&p, end, others[i]) > 0)
                return others[i];
        }
    return ',';
}

/* The first number with a decimal comma and the first with a point; NULL: there is none. */
static void find_fractions(const char *p, const char *end, char sep, piece *comma, piece *point)
{
    *comma = *point = (piece){.text = NULL};
    for (; p < end && !(comma->text && point->text); p++) {
        piece c = cut(p, end, sep);
        if (!comma->text && fraction(&c, ','))
            *comma = c;
        if (!point->text && fraction(&c, '.'))
            *point = c;
        p = c.next;
    }
}

/* ---- writing anew ------------------------------------------------------------------------------- */

static size_t put(char *to, size_t at, const char *text, size_t size)
{
    if (to)
        memcpy(to + at, text, size);
    return at + size;
}

/* The cell, or with `to` NULL its size; at: where it begins. */
static size_t put_cell(char *to, size_t at, const piece *c, const char *from, char decimal)
{
    bool number = decimal == ',' && fraction(c, ',');
    size_t start = at;
    if (number) {
        at = put(to, at, c->text, (size_t)(c->end - c->text));
        char *comma = to ? memchr(to + start, ',', at - start) : NULL;
        if (comma)
            *comma = '.';
        return at;
    }
    if (c->quoted || !memchr(c->text, ',', (size_t)(c->end - c->text)))
        return put(to, at, from, (size_t)(c->next - from));
    at = put(to, at, "\"", 1);
    for (const char *p = c->text; p < c->end; p++)
        at = put(to, at, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    return put(to, at, "\"", 1);
}

static size_t put_all(char *to, const char *p, const char *end, char sep, char decimal)
{
    size_t at = 0;
    for (;; p++) {
        piece c = cut(p, end, sep);
        at = put_cell(to, at, &c, p, decimal);
        p = c.next;
        if (p == end)
            return at;
        at = put(to, at, *p == '\n' ? "\n" : ",", 1);
    }
}

static long long line_of(const char *text, const char *p)
{
    return (long long)fini_csv_lines(text, p);
}

static const char *shown(const piece *c, char room[FINI_SHORT])
{
    return fini_printable(c->text, (size_t)(c->end - c->text), room, FINI_SHORT);
}

static fin_status fail_mixed(const char *label, const char *text, const piece *comma,
                             const piece *point, fin_error *err)
{
    char a[FINI_SHORT], b[FINI_SHORT];
    if (!comma->text)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s, line %lld: '%s' has a decimal point, and commas are asked for "
                         "(--decimal); if points separate thousands, leave them out",
                         label, line_of(text, point->text), shown(point, a));
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.200s has numbers with a comma ('%s', line %lld) and with a point ('%s', "
                     "line %lld); write all in one way, or say --decimal . if those with a comma "
                     "are text",
                     label, shown(comma, a), line_of(text, comma->text), shown(point, b),
                     line_of(text, point->text));
}

fin_status fini_csv_dialect(const char *label, const char *text, size_t size, fini_dialect *dialect,
                            char **out, size_t *out_size, fin_error *err)
{
    const char *end = text + size;
    piece comma = {.text = NULL}, point = {.text = NULL};
    *out = NULL;
    if (size && memchr(text, '\0', size)) /* no text: refused by who reads it */
        return FIN_OK;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    if (!dialect->sep)
        dialect->sep = find_separator(text, end, label);
    if (!dialect->decimal || dialect->decimal == ',')
        if (dialect->sep != ',' || dialect->decimal)
            find_fractions(text, end, dialect->sep, &comma, &point);
    if (point.text && (dialect->decimal || comma.text))
        return fail_mixed(label, text, &comma, &point, err);
    if (!dialect->decimal)
        dialect->decimal = comma.text ? ',' : '.';
    if (dialect->sep == ',' && dialect->decimal == '.')
        return FIN_OK;
    *out_size = put_all(NULL, text, end, dialect->sep, dialect->decimal);
    *out = fini_alloc(*out_size + 1);
    if (!*out)
        return fini_fail_memory(err, *out_size, "the text of a table");
    put_all(*out, text, end, dialect->sep, dialect->decimal);
    return FIN_OK;
}
