/* A row of the library's table, run: its result as a table, JSON, CSV or NPZ. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- looking into a result ------------------------------------------------------------------- */

bool cli_find_scalar(const fin_result *result, const char *name, fin_scalar *scalar)
{
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        *scalar = fin_result_get_scalar(result, i);
        if (strcmp(scalar->name, name) == 0)
            return true;
    }
    return false;
}

/* Notes that say why a number is not there begin with its name and a colon. */
static const char *reason(const fin_result *result, const char *name)
{
    size_t length = strlen(name);
    const char *note;
    for (int i = 0; (note = fin_result_note(result, i)); i++)
        if (strncmp(note, name, length) == 0 && strncmp(note + length, ": ", 2) == 0)
            return note + length + 2;
    return NULL;
}

static bool is_reason(const fin_command *row, const fin_result *result, const char *note)
{
    fin_scalar scalar;
    for (const fin_output *o = row->outputs; o->name; o++)
        if (!cli_find_scalar(result, o->name, &scalar) && reason(result, o->name) &&
            strncmp(note, o->name, strlen(o->name)) == 0 && note[strlen(o->name)] == ':')
            return true;
    return false;
}

char *cli_scalar_how(const fin_scalar *s, char *buffer, size_t size)
{
    const char *name = fin_how_name(s->how);
    char samples[48] = "", error[48] = "";
    if (s->samples > 0)
        snprintf(samples, sizeof samples, ", %lld %s", (long long)s->samples,
                 s->how == FIN_HOW_SHARE || s->how == FIN_HOW_RUNS ? "runs" : "samples");
    if (s->error > 0)
        snprintf(error, sizeof error, ", %s %.2g",
                 s->how == FIN_HOW_CLOSED || s->how == FIN_HOW_QUADRATURE ? "error" : "s.e.",
                 s->error);
    else if (isnan(s->error) && s->how == FIN_HOW_SIMULATION)
        snprintf(error, sizeof error, ", error not known");
    snprintf(buffer, size, "%s%s%s", name, samples, error);
    return buffer;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct widths {
    int name, how;
} widths;

static int longer(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_line(const widths *w, const fin_output *o, const fin_result *result)
{
    fin_scalar s;
    char how[160];
    if (cli_find_scalar(result, o->name, &s))
        printf("%-*s  %-18.12g  %-*s  %s\n", w->name, o->name, s.value, w->how,
               cli_scalar_how(&s, how, sizeof how), o->meaning);
    else if (reason(result, o->name))
        printf("%-*s  %-18s  %s\n", w->name, o->name, "-", reason(result, o->name));
}

static void print_series(const fin_result *result)
{
    int count = fin_result_series_count(result);
    if (!count)
        return;
    printf("\nseries (--out FILE.npz and --json have them):");
    for (int i = 0; i < count; i++) {
        fin_series s = fin_result_get_series(result, i);
        printf("%s %s (", i ? "," : "", s.name);
        for (int k = 0; k < s.ndim; k++)
            printf("%s%lld", k ? ", " : "", (long long)s.shape[k]);
        printf(")");
    }
    putchar('\n');
}

/* Is it only for programs? */
static bool is_folded(const cli_args *args, const char *name)
{
    const char *const *ends = args->command->folded;
    for (; ends && *ends; ends++) {
        size_t length = strlen(*ends), own = strlen(name);
        if ((*ends)[0] == '_' ? own > length && strcmp(name + own - length, *ends) == 0
                              : strncmp(name, *ends, length) == 0)
            return true;
    }
    return false;
}

void cli_print_result(const cli_args *args, const fin_result *result)
{
    widths w = {4, 11};
    char how[160];
    const char *note;
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        if (is_folded(args, s.name))
            continue;
        w.name = longer(w.name, s.name);
        w.how = longer(w.how, cli_scalar_how(&s, how, sizeof how));
    }
    printf("%-*s  %-18s  %-*s  %s\n", w.name, "", "value", w.how, "how", "what");
    for (const fin_output *o = args->settings->outputs; o->name; o++)
        if (o->meaning[0] != '(' && !is_folded(args, o->name))
            print_line(&w, o, result);
    print_series(result);
    for (int i = 0; (note = fin_result_note(result, i)); i++)
        if (!is_reason(args->settings, result, note))
            printf("note: %s\n", note);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_elements(const fin_series *s, int dim, int64_t *next)
{
    if (dim == s->ndim) {
        double x = fin_dtype_get(s->dtype, s->data, (*next)++);
        bool whole = s->dtype != FIN_F32 && s->dtype != FIN_F64;
        return whole ? json_integer((json_int_t)x) : cli_json_number(x);
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < s->shape[dim]; i++)
        json_array_append_new(list, json_elements(s, dim + 1, next));
    return list;
}

static json_t *json_scalar(const fin_scalar *s)
{
    return json_pack("{s:o, s:o, s:s, s:I}", "value", cli_json_number(s->value), "error",
                     cli_json_number(s->error), "how", fin_how_name(s->how), "samples",
                     (json_int_t)s->samples);
}

json_t *cli_json_all_settings(const cli_args *args)
{
    json_t *object = json_object();
    for (const fin_word *word = args->settings->words; word->name; word++)
        json_object_set_new(object, word->name,
                            json_string((const char *)args->values + word->offset));
    for (int g = args->group_count - 1; g >= 0; g--) {
        json_t *part = cli_json_settings(args->groups[g].table, args->groups[g].values);
        json_object_update(object, part);
        json_decref(part);
    }
    return object;
}

int cli_print_result_json(const cli_args *args, const fin_result *result)
{
    json_t *scalars = json_object(), *series = json_object(), *notes = json_array();
    const char *note;
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        json_object_set_new(scalars, s.name, json_scalar(&s));
    }
    for (int i = 0; i < fin_result_series_count(result); i++) {
        fin_series s = fin_result_get_series(result, i);
        int64_t next = 0;
        json_object_set_new(series, s.name, json_elements(&s, 0, &next));
    }
    for (int i = 0; (note = fin_result_note(result, i)); i++)
        json_array_append_new(notes, json_string(note));
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o}", "command", args->settings->name,
                             "settings", cli_json_all_settings(args), "scalars", scalars, "series",
                             series, "notes", notes);
    return cli_print_json(root);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct sheet {
    const cli_column *columns;
    int64_t rows;
} sheet;

static void tell_row(cli_row *row, const void *user, int64_t i)
{
    const sheet *s = user;
    for (const cli_column *c = s->columns; *c->name; c++)
        if (i >= s->rows) /* the names of a table without rows */
            cli_cell(row, c->name, NAN);
        else if (c->texts)
            cli_cell_text(row, c->name, c->texts[i]);
        else
            cli_cell(row, c->name, c->values[i]);
}

/* Texts are no arrays that every reader knows; they are left out. */
static void add_columns(cli_npz *z, const cli_column *columns, int ndim, int64_t rows)
{
    for (; *columns->name; columns++)
        if (!columns->texts)
            cli_npz_add(z, columns->name, FIN_F64, ndim, &rows, columns->values);
}

fin_status cli_write_columns(const char *path, const cli_column *columns, int64_t rows,
                             fin_error *err)
{
    cli_npz z;
    if (!cli_ends_with(path, ".npz"))
        return cli_write_rows(path, tell_row, &(sheet){columns, rows}, rows, err);
    if (cli_npz_open(&z, path, err))
        return err->status;
    add_columns(&z, columns, 1, rows);
    return cli_npz_close(&z);
}

void cli_add_column(cli_column *columns, int *count, const char *name, const char *ending,
                    const double *values)
{
    if (*count == CLI_COLUMNS)
        return;
    cli_column *column = &columns[(*count)++];
    snprintf(column->name, sizeof column->name, "%s%s", name, ending);
    column->values = values;
    column->texts = NULL;
}

fin_status cli_write_result(const char *path, const fin_result *result, fin_error *err)
{
    static cli_column columns[CLI_COLUMNS + 1];
    static double values[2 * CLI_COLUMNS];
    int count = 0, used = 0;
    for (int i = 0; i < fin_result_scalar_count(result) && i < CLI_COLUMNS; i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        values[used] = s.value;
        values[used + 1] = s.error;
        cli_add_column(columns, &count, s.name, "", &values[used]);
        if (s.error > 0)
            cli_add_column(columns, &count, s.name, "_error", &values[used + 1]);
        used += 2;
    }
    columns[count].name[0] = '\0';
    cli_npz z;
    if (!cli_ends_with(path, ".npz"))
        return cli_write_columns(path, columns, 1, err);
    if (cli_npz_open(&z, path, err))
        return err->status;
    add_columns(&z, columns, 0, 1);
    for (int i = 0; i < fin_result_series_count(result); i++) {
        fin_series s = fin_result_get_series(result, i);
        cli_npz_add(&z, s.name, s.dtype, s.ndim, s.shape, s.data);
    }
    return cli_npz_close(&z);
}

/* ---- running --------------------------------------------------------------------------------- */

fin_status cli_task_create(const cli_args *args, int64_t seed, int flags, fin_task **task,
                           fin_error *err)
{
    return fin_command_task(args->settings, args->values, seed, flags, task, err);
}

int cli_check_row(const cli_args *args)
{
    const char *points = cli_get(args, "points"), *out = cli_get(args, "out");
    int sweeps;
    cli_list(args, "sweep", &sweeps);
    if (points && sweeps)
        return cli_usage("--points and --sweep do not go together");
    if (out && cli_get(args, "json") && strcmp(out, "-") == 0)
        return cli_usage("--out - and --json both write to standard output; give one of them");
    return CLI_OK;
}

int cli_run_row(cli_args *args, fin_result **result)
{
    const char *out = cli_get(args, "out");
    fin_error err = {FIN_OK, ""};
    *result = NULL;
    fin_status status = out ? cli_try_output(out, &err) : FIN_OK;
    if (!status)
        status = fin_command_run(args->settings, args->pairs, args->pair_count, cli_progress(),
                                 result, &err);
    if (!status && cli_cancelled())
        status = cli_status(&err, FIN_ERR_CANCELLED, "cancelled");
    cli_progress_end();
    if (!status)
        return CLI_OK;
    fin_result_destroy(*result);
    *result = NULL;
    return cli_error(&err);
}

int cli_run(cli_args *args, int (*head)(const cli_args *args))
{
    const char *out = cli_get(args, "out");
    fin_result *result;
    fin_error err = {FIN_OK, ""};
    int code = cli_check_row(args);
    if (code || cli_is_many(args))
        return code ? code : cli_sweep(args, head);
    if ((code = cli_run_row(args, &result)))
        return code;
    if (fin_command_settle(args->settings, args->values, &err) ||
        (out && cli_write_result(out, result, &err)))
        code = cli_error(&err);
    if (!code && cli_get(args, "json")) {
        code = cli_print_result_json(args, result);
    } else if (!code && !(out && strcmp(out, "-") == 0)) {
        code = head ? head(args) : CLI_OK;
        if (!code) {
            cli_print_result(args, result);
            code = cli_flush();
        }
    }
    fin_result_destroy(result);
    return code;
}
