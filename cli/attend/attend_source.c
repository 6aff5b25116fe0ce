/* Columns by name, whatever they come from: a CSV file, the arrays of an NPZ file (a matrix M gives
 * M.0, M.1, ...), or points written on the command line, where a word may tell the sequence. */
#include "attend/attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double attend_cell(const attend_column *column, int64_t row)
{
    return fin_dtype_get(column->dtype, column->data, row * column->stride);
}

const char *attend_word(const attend_column *column, int64_t i)
{
    return fin_table_text(column->table, column->number, i);
}

char *attend_cell_text(const attend_column *column, int64_t row, char *buffer, size_t size)
{
    double number = attend_cell(column, row);
    if (number >= 1 && number <= (double)column->words)
        snprintf(buffer, size, "%s", attend_word(column, (int64_t)number - 1));
    else
        snprintf(buffer, size, "%.6g", number);
    return buffer;
}

int attend_find(const attend_source *source, const char *name)
{
    for (int j = 0; j < source->columns; j++)
        if (strcmp(source->column[j].name, name) == 0)
            return j;
    return -1;
}

void attend_source_close(attend_source *source)
{
    fin_table_destroy(source->table);
    fin_npz_close(source->npz);
    free(source->column);
    free(source->letters);
    *source = (attend_source){.label = source->label};
}

static fin_status take_columns(attend_source *source, int64_t count, fin_error *err)
{
    source->column = calloc((size_t)count + 1, sizeof *source->column);
    return source->column ? FIN_OK
                          : cli_status_memory(err, (double)count * sizeof *source->column,
                                              "the columns' names");
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static fin_status use_table(attend_source *source, fin_error *err)
{
    int count = fin_table_columns(source->table);
    fin_status status = take_columns(source, count, err);
    for (int j = 0; j < count && !status; j++)
        source->column[j] = (attend_column){.name = fin_table_name(source->table, j),
                                            .dtype = FIN_F64,
                                            .data = fin_table_values(source->table, j),
                                            .rows = fin_table_rows(source->table),
                                            .stride = 1,
                                            .table = source->table,
                                            .number = j,
                                            .words = fin_table_texts(source->table, j)};
    source->columns = status ? 0 : count;
    return status;
}

/* ---- NPZ ------------------------------------------------------------------------------------ */

enum { DIGITS = 12 };

static void add_array(attend_source *source, const char *name, const fin_array *array, char **at)
{
    int64_t width = array->ndim == 2 ? array->shape[1] : 1;
    for (int64_t c = 0; c < width; c++) {
        attend_column *column = &source->column[source->columns++];
        *column = (attend_column){
            .name = *at, .dtype = array->dtype, .rows = array->shape[0], .stride = width};
        column->data = (const char *)array->data + (size_t)c * fin_dtype_size(array->dtype);
        *at += width > 1 ? sprintf(*at, "%s.%lld", name, (long long)c) : sprintf(*at, "%s", name);
        ++*at; /* behind the NUL */
    }
}

/* Arrays of numbers with one or two axes are columns; all else matters when it is asked for
 * (unknown() in attend_columns.c says then what is wrong with it). */
static bool is_column(fin_npz *npz, const char *name, fin_array *array)
{
    fin_error none;
    return !fin_npz_array(npz, name, array, &none) &&
           (array->ndim == 1 ||
            (array->ndim == 2 && array->shape[1] >= 1 && array->shape[1] <= FIN_TABLE_COLUMNS_MAX));
}

static fin_status use_arrays(attend_source *source, fin_error *err)
{
    int64_t count = fin_npz_count(source->npz), columns = 0;
    size_t letters = 1;
    fin_array array;
    for (int64_t i = 0; i < count; i++) {
        const char *name = fin_npz_name(source->npz, i);
        if (!is_column(source->npz, name, &array))
            continue;
        int64_t width = array.ndim == 2 ? array.shape[1] : 1;
        columns += width;
        letters += (size_t)width * (strlen(name) + DIGITS);
        if (columns > FIN_TABLE_COLUMNS_MAX)
            return cli_status(err, FIN_ERR_FORMAT, "%.200s: more than %d columns", source->label,
                              FIN_TABLE_COLUMNS_MAX);
    }
    CLI_TRY(take_columns(source, columns, err));
    if (!(source->letters = malloc(letters)))
        return cli_status_memory(err, (double)letters, "the columns' names");
    char *at = source->letters;
    for (int64_t i = 0; i < count; i++) {
        const char *name = fin_npz_name(source->npz, i);
        if (is_column(source->npz, name, &array))
            add_array(source, name, &array, &at);
    }
    return FIN_OK;
}

fin_status attend_source_open(attend_source *source, const char *path, fin_error *err)
{
    *source = (attend_source){.label = path};
    bool npz = cli_ends_with(path, ".npz");
    CLI_TRY(npz ? fin_npz_open(path, &source->npz, err)
                : fin_table_read_texts(path, &source->table, err));
    CLI_TRY(npz ? use_arrays(source, err) : use_table(source, err));
    if (source->columns == 0)
        return cli_status(err, FIN_ERR_FORMAT, "%.200s: no columns; an array needs one or two axes",
                          path);
    return FIN_OK;
}

/* ---- points --------------------------------------------------------------------------------- */

static fin_status bad_point(const char *text, const char *what, fin_error *err)
{
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--query '%.60s': %s; points are written x=1,y=2;x=3,y=4", text, what);
}

/* Turns "x=1,y=2;x=3,y=4" into the lines of a CSV file: names from the first point, then numbers;
 * the others must have the same names in the same order. */
static fin_status to_csv(const char *text, char *csv, fin_error *err)
{
    char *out = csv;
    const char *first_end = text + strcspn(text, ";");
    for (const char *p = text; p < first_end;) {
        p += strspn(p, " ");
        size_t cell = strcspn(p, ",;"), name = strcspn(p, "=");
        if (name == 0 || name + 1 >= cell || (p[cell] == ',' && p + cell + 1 == first_end))
            return bad_point(text, "a name and a value are needed", err);
        out += sprintf(out, "%s%.*s", out == csv ? "" : ",", (int)name, p);
        p += cell + (p[cell] == ',');
    }
    *out++ = '\n';
    const char *names = text; /* walks along the first point */
    for (const char *p = text; *p;) {
        p += strspn(p, " ");
        names += strspn(names, " ");
        size_t cell = strcspn(p, ",;"), name = strcspn(p, "=");
        if (name == 0 || name >= cell || names >= first_end || strncmp(p, names, name + 1) != 0)
            return bad_point(text, "every point needs the same names, in the same order", err);
        out += sprintf(out, "%.*s", (int)(cell - name - 1), p + name + 1);
        names += strcspn(names, ",;");
        names += *names == ',';
        p += cell;
        bool ends = *p != ',';
        if (ends && names < first_end)
            return bad_point(text, "every point needs the same names, in the same order", err);
        *out++ = ends ? '\n' : ',';
        names = ends ? text : names;
        p += *p != '\0';
    }
    *out = '\0';
    return FIN_OK;
}

fin_status attend_source_points(attend_source *source, const char *text, fin_error *err)
{
    *source = (attend_source){.label = "--query"};
    char *csv = malloc(2 * strlen(text) + 16);
    fin_status status =
        csv ? to_csv(text, csv, err) : cli_status_memory(err, 0, "the query points");
    if (!status)
        status = fin_table_parse_texts(csv, strlen(csv), "--query", &source->table, err);
    if (!status)
        status = use_table(source, err);
    if (status == FIN_ERR_FORMAT)
        err->status = status = FIN_ERR_ARGUMENT; /* the text is part of the command line */
    free(csv);
    return status;
}
