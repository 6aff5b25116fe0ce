/* CSV text cut into cells: what the readers of tables, of bags and of folds share. */
#ifndef FINI_CSV_H
#define FINI_CSV_H

#include "data/data.h"

typedef struct fini_csv {
    const char *label;       /* for messages */
    const char *start, *end; /* without byte order mark and blank lines at the end */
    const char *body;        /* the line after the header */
    int64_t body_line;       /* its number, from 1 */
    int64_t columns;
    bool ended; /* the last row had a line end, so it is not cut short */
    bool
        index; /* before the header is read: may the first column have no name? after: it has none */
} fini_csv;

/* What a nameless first column is called, as pandas calls it. */
#define FINI_CSV_INDEX "Unnamed: 0"

typedef struct fini_cell {
    const char *text, *end; /* without spaces around, without outer quotes */
    bool quoted, open;      /* open: the closing quote is missing */
    bool trailing;          /* something stands between the closing quote and the comma */
} fini_cell;

static inline bool fini_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline const char *fini_skip_blanks(const char *p, const char *end)
{
    while (p < end && fini_is_blank(*p))
        p++;
    return p;
}

/* The cell in a message, as FINI_SHOW. */
#define FINI_SHOW_CELL(cell)                                                                       \
    fini_printable((cell)->text, (size_t)((cell)->end - (cell)->text), (char[FINI_SHORT]){""},     \
                   (size_t)FINI_SHORT)

/* How a table is written: ',' ';' '\t' or '|', and '.' or ','; 0 is found out, and set. */
typedef struct fini_dialect {
    char sep, decimal;
} fini_dialect;

/* The table as CSV with points in *out (*out_size), for fini_free; NULL: it is that already. */
fin_status fini_csv_dialect(const char *label, const char *text, size_t size, fini_dialect *dialect,
                            char **out, size_t *out_size, fin_error *err);

/* Is it text at all? Then cuts off byte order mark and blank end. s->label is set before. */
fin_status fini_csv_open(fini_csv *s, const char *text, size_t size, fin_error *err);
/* Counts the columns, checks their names, finds the body; allocates nothing, so that a wild header
 * costs nothing. */
fin_status fini_csv_header(fini_csv *s, int64_t most, fin_error *err);
/* Reads the cell at p by the rules; returns its comma, line end or the end of the text. */
const char *fini_csv_cell(const char *p, const char *end, fini_cell *cell);
/* Copies the cell's text without a NUL ("" inside quotes becomes "); returns its length. */
size_t fini_csv_copy(const fini_cell *cell, char *to);
/* The names of the columns, which must differ, into `names`; after fini_csv_header. */
fin_status fini_csv_names(const fini_csv *s, fini_names *names, fin_error *err);
/* Is the cell a number? If not, *value is infinite for one out of range, else NaN. */
bool fini_csv_number(const fini_cell *cell, double *value);
/* A number in quotes at p; returns the cell's end, or NULL if it is not good. */
const char *fini_csv_quoted(const char *p, const char *end, double *value);
/* The same for any cell, quickly: what is not good is read again, slowly, to say why. */
static inline const char *fini_csv_value(const char *p, const char *end, double *value)
{
    if (p < end && (unsigned char)*p <= '"') { /* a space, a tab or a quote */
        p = fini_skip_blanks(p, end);
        if (p < end && *p == '"')
            return fini_csv_quoted(p, end, value);
    }
    p = fini_decimal(p, end, value);
    return p && p < end && fini_is_blank(*p) ? fini_skip_blanks(p, end) : p;
}
/* What keeps the cell from being a name ("is empty; ..."), or NULL. */
const char *fini_csv_bad_name(const fini_cell *cell);
int64_t fini_csv_lines(const char *p, const char *end);
/* Number of the line that p stands in, counting line ends inside quotes too. */
int64_t fini_csv_line(const fini_csv *s, const char *p);
/* Why the number of cells of the line at p is wrong; FIN_OK if it is right. */
fin_status fini_csv_length(const fini_csv *s, const char *p, fin_error *err);
/* Why a cell is no number: `value` as from fini_csv_number. */
fin_status fini_csv_no_number(const fini_csv *s, const char *p, const char *column,
                              const fini_cell *cell, double value, fin_error *err);

#endif
