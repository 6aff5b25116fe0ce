/* Runs as a CSV file: one line a run, its settings and scalars as columns.
 *
 * Two passes over the same runs, so that memory does not grow with their numbers: the first finds
 * which columns there are, the second writes. With conditions, the second takes the runs that the
 * first has found, by their places (8 bytes a run). Runs come in the order of the plan and columns
 * by name, so two stores with the same runs give the same bytes, in whatever order they were filled.
 * Times differ from pass to pass and are left out unless they are asked for. */
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct table {
    fin_store *store;
    fini_cursor cursor;
    bool times;
    fini_values values;           /* settings of this run */
    fini_sheet sheet;             /* its scalars */
    fini_name_list names, errors; /* errors: of scalars that have one somewhere */
    fin_scalar *row;              /* [names.count] of this run */
    fini_output *output;
} table;

static fin_status put(table *t, const char *text, size_t size, fin_error *err)
{
    return fini_output_write(t->output, text, size, err);
}

/* A cell: quoted where it must be (RFC 4180). */
static fin_status put_text(table *t, const char *text, size_t size, bool first, fin_error *err)
{
    fin_status status = first ? FIN_OK : put(t, ",", 1, err);
    bool quoted = false;
    for (size_t i = 0; i < size && !quoted; i++)
        quoted = strchr(",\"\r\n", text[i]) != NULL || text[i] == '\0';
    if (status || !quoted)
        return status ? status : put(t, text, size, err);
    FINI_TRY(put(t, "\"", 1, err));
    for (size_t i = 0; i < size; i++)
        FINI_TRY(put(t, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1, err));
    return put(t, "\"", 1, err);
}

static fin_status put_number(table *t, double number, fin_error *err)
{
    char text[FINI_NUMBER];
    size_t size = fini_format(number, text);
    FINI_TRY(put(t, ",", 1, err));
    return put(t, text, size, err);
}

/* ---- which columns --------------------------------------------------------------------------- */

static fin_status note_scalars(table *t, int64_t id, fin_error *err)
{
    FINI_TRY(fini_sheet_read(&t->sheet, id, err));
    for (int64_t i = 0; i < t->sheet.count; i++) {
        const fin_scalar *scalar = &t->sheet.rows[i].scalar;
        int length = (int)strlen(scalar->name);
        if (scalar->how == FIN_HOW_CLOCK && !t->times)
            continue;
        FINI_TRY(fini_name_list_add(&t->names, scalar->name, length, err));
        if (scalar->error != 0)
            FINI_TRY(fini_name_list_add(&t->errors, scalar->name, length, err));
    }
    return FIN_OK;
}

static fin_status note_run(table *t, fin_error *err)
{
    FINI_TRY(fini_values_read(&t->values, &t->cursor, err));
    return t->cursor.run.state == FIN_STATE_PLANNED ? FIN_OK : note_scalars(t, t->cursor.id, err);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static fin_status put_header(table *t, fin_error *err)
{
    static const char first[] = "position,block,command,hash,state";
    fin_status status = put(t, first, sizeof first - 1, err);
    for (int i = 0; i < t->values.count && !status; i++) {
        const char *name = t->values.value[i].name;
        status = put_text(t, name, strlen(name), false, err);
    }
    for (int i = 0; i < t->names.count && !status; i++) {
        const char *name = t->names.name[i];
        status = put_text(t, name, strlen(name), false, err);
        if (!status && fini_name_list_find(&t->errors, name, (int)strlen(name)) >= 0) {
            char *both = sqlite3_mprintf("%s_error", name);
            status = both ? put_text(t, both, strlen(both), false, err)
                          : fini_fail_memory(err, strlen(name), "the name of a column");
            sqlite3_free(both);
        }
    }
    if (!status && t->times)
        status = put_text(t, "seconds", 7, false, err);
    return status ? status : put(t, "\n", 1, err);
}

static fin_status read_scalars(table *t, fin_error *err)
{
    for (int i = 0; i < t->names.count; i++)
        t->row[i].name = NULL;
    if (t->cursor.run.state == FIN_STATE_PLANNED)
        return FIN_OK;
    FINI_TRY(fini_sheet_read(&t->sheet, t->cursor.id, err));
    for (int64_t k = 0; k < t->sheet.count; k++) {
        const fin_scalar *scalar = &t->sheet.rows[k].scalar;
        int i = fini_name_list_find(&t->names, scalar->name, (int)strlen(scalar->name));
        if (i >= 0 && !(scalar->how == FIN_HOW_CLOCK && !t->times))
            t->row[i] = *scalar;
    }
    return FIN_OK;
}

static fin_status put_scalars(table *t, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int i = 0; i < t->names.count && !status; i++) {
        const fin_scalar *scalar = &t->row[i];
        const char *name = t->names.name[i];
        bool error = fini_name_list_find(&t->errors, name, (int)strlen(name)) >= 0;
        if (!scalar->name) {
            status = put(t, ",,", error ? 2 : 1, err);
            continue;
        }
        status = put_number(t, scalar->value, err);
        if (!status && error)
            status = put_number(t, scalar->error, err);
    }
    return status;
}

static fin_status put_run(table *t, fin_error *err)
{
    const fin_run_row *run = &t->cursor.run;
    char position[32];
    const char *texts[] = {position, run->block, run->command, run->hash,
                           fin_state_name(run->state)};
    fin_status status = fini_values_read(&t->values, &t->cursor, err);
    snprintf(position, sizeof position, "%lld", (long long)run->position);
    for (int i = 0; i < 5 && !status; i++)
        status = put_text(t, texts[i], strlen(texts[i]), i == 0, err);
    for (int i = 0; i < t->values.count && !status; i++) {
        const char *text = t->values.value[i].text;
        status = put_text(t, text ? text : "", text ? strlen(text) : 0, false, err);
    }
    if (!status)
        status = read_scalars(t, err);
    if (!status)
        status = put_scalars(t, err);
    if (!status && t->times)
        status = isnan(run->seconds) ? put(t, ",", 1, err) : put_number(t, run->seconds, err);
    return status ? status : put(t, "\n", 1, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static fin_status each(table *t, fin_status (*visit)(table *, fin_error *), fin_error *err)
{
    bool more = true;
    fin_status status = fini_cursor_rewind(&t->cursor, err);
    while (!status && !(status = fini_cursor_next(&t->cursor, &more, err)) && more)
        status = visit(t, err);
    return status;
}

static fin_status write_table(table *t, const char *path, fin_error *err)
{
    fin_status status = fini_sheet_open(t->store, &t->sheet, err);
    if (!status)
        status = fini_values_open(t->store, &t->values, err);
    if (!status)
        status = each(t, note_run, err);
    if (!status && !(t->row = fini_alloc_array(t->names.count, sizeof *t->row)))
        status =
            fini_fail_memory(err, (size_t)t->names.count * sizeof *t->row, "a line of a table");
    if (!status)
        status = fini_output_open(path, false, &t->output, err);
    if (!status)
        status = put_header(t, err);
    if (!status)
        status = each(t, put_run, err);
    if (status) {
        fini_output_abort(t->output);
        return status;
    }
    return fini_output_commit(t->output, err);
}

static fin_status export_csv(fin_store *store, const fin_query *query, const char *path, bool times,
                             fin_error *err)
{
    table t = {.store = store, .times = times};
    fin_status status = fini_cursor_open(store, query, FINI_CURSOR_VALUES, &t.cursor, err);
    if (!status)
        status = write_table(&t, path, err);
    fini_cursor_close(&t.cursor);
    fini_values_close(&t.values);
    fini_sheet_close(&t.sheet);
    fini_name_list_free(&t.names);
    fini_name_list_free(&t.errors);
    fini_free(t.row);
    return status;
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);
    return length >= size && strcmp(path + length - size, end) == 0;
}

fin_status fin_store_export(fin_store *store, const fin_query *query, const char *path, int times,
                            fin_error *err)
{
    FINI_NEED(err, store, path);
    bool mine;
    bool npz = ends_with(path, ".npz");
    if (!npz && strcmp(path, "-") != 0 && !ends_with(path, ".csv"))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cannot export to '%.200s': the name ends in .csv or .npz, or is -", path);
    FINI_TRY(fini_store_look(store, &mine, err));
    fin_status status = (npz ? fini_export_npz : export_csv)(store, query, path, times != 0, err);
    fini_store_unlook(store, mine);
    return status;
}
