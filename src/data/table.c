/* CSV text to a table of doubles: one block for each column, columns found by name.
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
#include <strings.h>

struct fin_table {
    int64_t rows, capacity;
    int columns;
    fini_names names;
    double *values;    /* [columns][capacity] */
    fini_names *texts; /* [columns] the different texts of each; NULL: all columns are numbers */
};

/* ---- rows --------------------------------------------------------------------------------- */

/* The cell of column j is no number; p: where its text ends, quotes and all. */
static fin_status bad_cell(const fini_csv *s, const fin_table *table, const char *line, int j,
                           fini_cell cell, const char *p, double value, fin_error *err)
{
    if (cell.trailing) /* show what was not understood */
        cell.end = p, value = NAN;
    return fini_csv_no_number(s, line, fin_table_name(table, j), &cell, value, err);
}

/* Says what is wrong with the line at p; it is known that something is. */
static fin_status diagnose(const fini_csv *s, const fin_table *table, const char *p, fin_error *err)
{
    const char *start = p;
    double value;
    fini_cell cell;
    fin_status status = fini_csv_length(s, p, err);
    for (int j = 0; !status && j < table->columns; j++, p++) {
        p = fini_csv_cell(p, s->end, &cell);
        if (!fini_csv_number(&cell, &value) || cell.trailing)
            return bad_cell(s, table, start, j, cell, p, value, err);
    }
    if (status) /* a row the fast loop refuses is refused here too; what follows is for safety only */
        return status;
    return fini_fail(err, FIN_ERR_FORMAT, "%.300s, line %lld cannot be read", s->label,
                     (long long)fini_csv_line(s, start));
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
            p = fini_csv_value(p, end, value);
            p = p && p < end && *p == ',' ? p + 1 : NULL;
        }
        p = p ? fini_csv_value(p, end, value) : NULL;
        p = p ? read_line_end(p, end) : NULL;
        if (!p)
            return diagnose(s, table, line, err);
    }
    table->rows = row;
    return FIN_OK;
}

/* ---- rows with texts ------------------------------------------------------------------------ */

static bool is_missing(const fini_cell *cell)
{
    static const char *const words[] = {"", "NA", "N/A", "null", "none"};
    size_t size = (size_t)(cell->end - cell->text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size && strncasecmp(words[i], cell->text, size) == 0)
            return true;
    return false;
}

/* Number of the text in its column, from 1. room: as long as the longest cell. */
static fin_status read_text(fini_names *texts, const fini_cell *cell, char *room, double *value,
                            fin_error *err)
{
    int64_t number;
    FINI_TRY(fini_names_put(texts, room, fini_csv_copy(cell, room), &number, err));
    *value = (double)number + 1;
    return FIN_OK;
}

/* First finds out which columns are text (is_text), then fills the table. */
static fin_status read_cells(const fini_csv *s, fin_table *table, bool *is_text, char *room,
                             bool fills, fin_error *err)
{
    fin_status status = FIN_OK;
    int64_t row = 0;
    for (const char *p = s->body; p < s->end && !status; row++, p += p < s->end) {
        fini_cell cell;
        const char *line = p;
        FINI_TRY(fini_csv_length(s, p, err));
        if (row == table->capacity)
            return diagnose(s, table, p, err);
        for (int j = 0; j < table->columns && !status; j++, p += j < table->columns) {
            double value = NAN;
            p = fini_csv_cell(p, s->end, &cell);
            bool missing = is_missing(&cell), text = !missing && !fini_csv_number(&cell, &value);
            if (cell.trailing || (text && isinf(value)))
                return bad_cell(s, table, line, j, cell, p, value, err);
            is_text[j] |= text;
            if (fills && is_text[j] && !missing)
                status = read_text(&table->texts[j], &cell, room, &value, err);
            if (fills)
                table->values[j * table->capacity + row] = value;
        }
    }
    table->rows = row;
    return status;
}

static fin_status take_values(fin_table *table, fin_error *err)
{
    int64_t cells;
    if (__builtin_mul_overflow(table->capacity, (int64_t)table->columns, &cells))
        cells = -1; /* which is not allocated */
    fini_free(table->values);
    FINI_ROOM(err, "a table", table->values, cells, 1);
    return FIN_OK;
}

/* An empty cell has a separator only. */
static fin_status read_texts(const fini_csv *s, fin_table *table, fin_error *err)
{
    size_t size = (size_t)(s->end - s->body), columns = (size_t)table->columns;
    int64_t lines = fini_csv_lines(s->body, s->end),
            most = ((s->end - s->body) + 1) / table->columns;
    FINI_FREED bool *is_text = fini_alloc(columns);
    FINI_FREED char *room = fini_alloc(size);
    table->capacity = lines < most ? lines : most;
    table->texts = fini_alloc(columns * sizeof *table->texts);
    fin_status status = take_values(table, err);
    if (!status && !(is_text && room && table->texts))
        status = fini_fail_memory(err, size + columns * sizeof *table->texts, "a table");
    if (table->texts)
        memset(table->texts, 0, columns * sizeof *table->texts);
    if (is_text)
        memset(is_text, 0, columns);
    for (int fills = 0; fills <= 1 && !status; fills++)
        status = read_cells(s, table, is_text, room, fills, err);
    return status;
}

/* ---- the whole text ------------------------------------------------------------------------- */

static fin_status fill(fin_table *table, const fini_csv *s, bool texts, fin_error *err)
{
    FINI_TRY(fini_csv_names(s, &table->names, err));
    FINI_TRY(take_values(table, err));
    fin_status status = read_rows(s, table, err);
    return status == FIN_ERR_FORMAT && texts ? read_texts(s, table, err) : status;
}

static fin_status parse(const char *text, size_t size, const char *label, bool texts,
                        fin_table **out, fin_error *err)
{
    *out = NULL;
    fini_csv s = {.label = label};
    FINI_TRY(fini_csv_open(&s, text, size, err));
    FINI_TRY(fini_csv_header(&s, FIN_TABLE_COLUMNS_MAX, err));
    int64_t most = ((s.end - s.body) + 1) / (2 * s.columns);
    int64_t capacity = fini_csv_lines(s.body, s.end);
    capacity = capacity < most ? capacity : most;
    if (capacity > FIN_TABLE_ROWS_MAX)
        return fini_fail(err, FIN_ERR_FORMAT, "%.300s has more than %lld rows; split the file",
                         label, (long long)FIN_TABLE_ROWS_MAX);
    FINI_MAKE(err, "a table", fin_table, table);
    *table = (fin_table){.capacity = capacity, .columns = (int)s.columns};
    fin_status status = fill(table, &s, texts, err);
    FINI_HAND_OVER(out, table, status, fin_table_destroy);
}

static fin_status read_file(const char *path, bool texts, fin_table **out, fin_error *err)
{
    char *text;
    size_t size;
    *out = NULL;
    fin_status status = fini_read_text(path, &text, &size, err);
    if (!status)
        status = parse(text, size, strcmp(path, "-") ? path : "standard input", texts, out, err);
    fini_free(text);
    return status;
}

fin_status fin_table_parse(const char *text, size_t size, const char *label, fin_table **out,
                           fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !size || text);
    return parse(text, size, label, false, out, err);
}

fin_status fin_table_read(const char *path, fin_table **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    return read_file(path, false, out, err);
}

fin_status fin_table_parse_texts(const char *text, size_t size, const char *label, fin_table **out,
                                 fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !size || text);
    return parse(text, size, label, true, out, err);
}

fin_status fin_table_read_texts(const char *path, fin_table **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    return read_file(path, true, out, err);
}

void fin_table_destroy(fin_table *table)
{
    if (!table)
        return;
    for (int j = 0; table->texts && j < table->columns; j++)
        fini_names_close(&table->texts[j]);
    fini_free(table->texts);
    fini_names_close(&table->names);
    fini_free_all(table->values, table);
}

/* ---- what is in it -------------------------------------------------------------------------- */

int64_t fin_table_rows(const fin_table *table)
{
    return table ? table->rows : 0;
}

int fin_table_columns(const fin_table *table)
{
    return table ? table->columns : 0;
}

const char *fin_table_name(const fin_table *table, int j)
{
    return table ? fini_names_get(&table->names, j) : NULL;
}

const double *fin_table_values(const fin_table *table, int j)
{
    return table && j >= 0 && j < table->columns ? table->values + j * table->capacity : NULL;
}

int64_t fin_table_texts(const fin_table *table, int j)
{
    return table && table->texts && j >= 0 && j < table->columns ? table->texts[j].count : 0;
}

const char *fin_table_text(const fin_table *table, int j, int64_t i)
{
    return fin_table_texts(table, j) ? fini_names_get(&table->texts[j], i) : NULL;
}

int64_t fin_table_find_text(const fin_table *table, int j, const char *text)
{
    return text && fin_table_texts(table, j) ? fini_names_find(&table->texts[j], text, strlen(text))
                                             : -1;
}

int fin_table_column(const fin_table *table, const char *name)
{
    return !table || !name ? -1 : (int)fini_names_find(&table->names, name, strlen(name));
}
