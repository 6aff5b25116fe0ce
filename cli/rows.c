/* Tables that are told row by row and cell by cell, by one function for CSV and for JSON; arrays for
 * NPZ. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows --------------------------------------------------------------------------------------- */

struct cli_row {
    json_t *object; /* JSON: the row; NULL: CSV */
    char **names;   /* CSV: (count) of the columns, which the first telling collects */
    const char **texts;
    double *values;
    int count, room; /* room 0: names are collected */
    char label[64];
    bool failed;
};

/* A name of a column: those of its parts that are there. */
static void add_name(cli_row *row, const char *prefix, const char *name, const char *suffix)
{
    size_t size = strlen(prefix) + strlen(name) + strlen(suffix) + 3;
    char **more = realloc(row->names, (size_t)(row->count + 1) * sizeof *more);
    char *text = more ? malloc(size) : NULL;
    row->names = more ? more : row->names;
    row->failed = row->failed || !text;
    if (!text)
        return;
    snprintf(text, size, "%s%s%s%s%s", prefix, *prefix ? "_" : "", name, *suffix ? "_" : "",
             suffix);
    row->names[row->count++] = text;
}

static void cell(cli_row *row, const char *name, const char *text, double number)
{
    if (row->room == 0) {
        add_name(row, "", name, "");
    } else if (row->count < row->room) {
        row->texts[row->count] = text;
        row->values[row->count++] = number;
    }
}

void cli_cell(cli_row *row, const char *name, double number)
{
    if (row->object)
        json_object_set_new_nocheck(row->object, name, cli_json_number(number));
    else
        cell(row, name, NULL, number);
}

void cli_cell_at(cli_row *row, const char *name, int64_t place, double number)
{
    char whole[64] = "";
    if (row->object || row->room == 0) /* else it is known */
        snprintf(whole, sizeof whole, "%.40s%lld", name, (long long)place);
    cli_cell(row, whole, number);
}

void cli_cell_int(cli_row *row, const char *name, int64_t number)
{
    if (row->object)
        json_object_set_new_nocheck(row->object, name, json_integer(cli_int(number)));
    else
        cell(row, name, NULL, (double)number);
}

void cli_cell_known(cli_row *row, const char *name, double number)
{
    if (!row->object || !isnan(number))
        cli_cell(row, name, number);
}

void cli_cell_text(cli_row *row, const char *name, const char *text)
{
    if (!row->object)
        cell(row, name, text, NAN);
    else if (*text)
        json_object_set_new_nocheck(row->object, name, cli_json_text(text));
}

void cli_cell_label(cli_row *row, const char *name, double number)
{
    if (row->object)
        cli_cell_known(row, name, number);
    else
        cell(row, name, isnan(number) ? "" : cli_number(number, row->label, sizeof row->label),
             NAN);
}

void cli_cell_of(cli_row *row, const char *group, const char *prefix, const char *name,
                 const char *suffix, double number)
{
    if (!row->object && row->room == 0)
        add_name(row, prefix, name, suffix);
    else if (!row->object)
        cell(row, name, NULL, number);
    if (!row->object)
        return;
    json_t *object = json_object_get(row->object, group);
    if (!object) {
        json_object_set_new_nocheck(row->object, group, json_object());
        object = json_object_get(row->object, group);
    }
    json_object_set_new_nocheck(object, name, cli_json_number(number));
}

json_t *cli_row_object(cli_row *row)
{
    return row->object;
}

json_t *cli_json_row(cli_teller *tell, const void *user, int64_t i)
{
    cli_row row = {.object = json_object()};
    if (row.object)
        tell(&row, user, i);
    return row.object;
}

json_t *cli_json_rows(cli_teller *tell, const void *user, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, cli_json_row(tell, user, i));
    return list;
}

static fin_status write_rows(cli_row *row, fin_csv *csv, cli_teller *tell, const void *user,
                             int64_t count, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        row->count = 0;
        tell(row, user, i);
        status = cli_cancelled() ? cli_status(err, FIN_ERR_CANCELLED, "cancelled")
                                 : fin_csv_cells(csv, row->texts, row->values, err);
    }
    if (!status)
        return fin_csv_commit(csv, err);
    fin_csv_abort(csv);
    return status;
}

fin_status cli_write_rows(const char *path, cli_teller *tell, const void *user, int64_t count,
                          fin_error *err)
{
    cli_row row = {.object = NULL};
    fin_csv *csv = NULL;
    fin_status status = FIN_OK;
    tell(&row, user, 0);
    int columns = row.room = row.count;
    row.texts = calloc((size_t)columns + 1, sizeof *row.texts);
    row.values = calloc((size_t)columns + 1, sizeof *row.values);
    if (row.failed || !row.texts || !row.values)
        status = cli_status_memory(err, 48.0 * columns, "a line");
    else if (columns > FIN_TABLE_COLUMNS_MAX)
        status = cli_status(err, FIN_ERR_ARGUMENT,
                            "%d columns are too many for CSV (at most %d); write FILE.npz", columns,
                            FIN_TABLE_COLUMNS_MAX);
    else
        status = fin_csv_open(path, (const char *const *)row.names, columns, &csv, err);
    if (!status)
        status = write_rows(&row, csv, tell, user, count, err);
    for (int j = 0; j < columns; j++)
        free(row.names[j]);
    free(row.names);
    free(row.texts);
    free(row.values);
    return status;
}

/* ---- arrays ------------------------------------------------------------------------------------- */

fin_status cli_npz_open(cli_npz *z, const char *path, fin_error *err)
{
    *z = (cli_npz){.err = err};
    return z->status = fin_npz_create(path, &z->npz, err);
}

void cli_npz_add(cli_npz *z, const char *name, fin_dtype dtype, int ndim, const int64_t *shape,
                 const void *data)
{
    if (!z->status)
        z->status = fin_npz_add(z->npz, name, dtype, ndim, shape, data, z->err);
}

void cli_npz_names(cli_npz *z, const char *array, int64_t count,
                   const char *(*name)(const void *user, int64_t i), const void *user)
{
    size_t size = 0;
    for (int64_t i = 0; i < count; i++)
        size += strlen(name(user, i)) + 1;
    char *next = z->status || z->owned_count == CLI_NPZ_OWNED ? NULL : malloc(size + 1);
    if (!next && !z->status)
        z->status = cli_status_memory(z->err, (double)size, "names");
    if (z->status)
        return;
    z->owned[z->owned_count++] = next;
    for (int64_t i = 0; i < count; i++) {
        const char *one = name(user, i);
        for (; *one; one++)
            *next++ = *one == '\n' ? ' ' : *one;
        *next++ = '\n';
    }
    cli_npz_add(z, array, FIN_U8, 1, (int64_t[]){(int64_t)size}, z->owned[z->owned_count - 1]);
}

void cli_npz_settings(cli_npz *z, const char *what, const char *name, const char *prefix,
                      const fin_settings *table, const void *values)
{
    double *numbers = z->status || z->owned_count == CLI_NPZ_OWNED
                          ? NULL
                          : malloc((size_t)(table->count + 1) * sizeof *numbers);
    if (!numbers && !z->status)
        z->status = cli_status_memory(z->err, 8.0 * table->count, "the settings");
    if (z->status)
        return;
    z->owned[z->owned_count++] = numbers;
    cli_npz_add(z, what, FIN_U8, 1, (int64_t[]){(int64_t)strlen(name)}, name);
    for (int i = 0; i < table->count; i++) {
        char label[96];
        snprintf(label, sizeof label, "%s%s", prefix, table->fields[i].name);
        numbers[i] = fin_settings_get(&table->fields[i], values);
        cli_npz_add(z, label, FIN_F64, 0, NULL, &numbers[i]);
    }
}

fin_status cli_npz_close(cli_npz *z)
{
    if (!z->status)
        z->status = fin_npz_commit(z->npz, cli_progress(), z->err);
    else
        fin_npz_abort(z->npz);
    for (int i = 0; i < z->owned_count; i++)
        free(z->owned[i]);
    return z->status;
}
