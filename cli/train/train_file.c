/* Runs in a file, and back.
 *
 * The file is an NPZ archive: the library's arrays, the true directions where they are vectors, and
 * "settings", text as bytes with a line "name value" for every setting. What is written depends on
 * the runs alone and not on how they came about: a run that was stopped and resumed leaves the same
 * bytes as one that was not. A file that is read is not trusted. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 1 << 24, ARRAYS = 32 };

/* ---- settings as text ----------------------------------------------------------------------- */

static bool is_kept(cli_args *args, const fin_group *group)
{
    bool overlaps = train_get(args)->train.init == FIN_INIT_OVERLAPS;
    return group->table != &cli_pause_table && (group->table != &fin_overlaps_table || overlaps);
}

/* The values with every "auto" worked out, where somebody knows them. */
static const void *resolved(const training *t, const fin_group *group)
{
    bool task = group->table == fin_task_kind_table(cli_task_kind(t->args));
    return task                               ? (const void *)fin_task_get_settings(t->task)
           : group->table == &fin_train_table ? (const void *)fin_train_get_settings(t->train)
                                              : group->values;
}

static void print_lines(const training *t, FILE *out)
{
    cli_args *args = t->args;
    char text[64];
    fprintf(out, "finetti %s\ntask %s\nform %s\n", fin_version(), train_get(args)->task,
            train_get(args)->form);
    for (int g = 0; g < args->group_count; g++) {
        const fin_group *group = &args->groups[g];
        for (int i = 0; is_kept(args, group) && i < group->table->count; i++) {
            const fin_field *field = &group->table->fields[i];
            fprintf(out, "%s %s\n", field->name,
                    fin_settings_text(field, resolved(t, group), text, sizeof text));
        }
    }
    for (const fin_word *word = args->settings->words; word->name; word++)
        if (!fin_word_choice(word->name, 0) && cli_get(args, word->name))
            fprintf(out, "%s %s\n", word->name, cli_get(args, word->name));
}

static fin_status settings_text(const training *t, char **text, size_t *size, fin_error *err)
{
    *text = NULL;
    FILE *out = open_memstream(text, size);
    if (out)
        print_lines(t, out);
    if (!out || fclose(out) != 0)
        return cli_status_memory(err, 4096, "the settings");
    return FIN_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static fin_status add_arrays(const training *t, fin_npz_writer *npz, const char *text, size_t size,
                             fin_error *err)
{
    fin_status status =
        fin_npz_add(npz, "settings", FIN_U8, 1, (int64_t[]){(int64_t)size}, text, err);
    for (int i = 0; i < fin_train_array_count(t->train) && !status; i++) {
        fin_train_array a;
        status = fin_train_get_array(t->train, i, &a, err);
        if (!status)
            status = fin_npz_add(npz, a.name, a.dtype, a.ndim, a.shape, a.data, err);
    }
    const int64_t d[] = {fin_task_get_settings(t->task)->d};
    if (!status && fin_task_k_star(t->task))
        status = fin_npz_add(npz, "k_star", FIN_F64, 1, d, fin_task_k_star(t->task), err);
    if (!status && fin_task_v_star(t->task))
        status = fin_npz_add(npz, "v_star", FIN_F64, 1, d, fin_task_v_star(t->task), err);
    return status;
}

fin_status training_write(const training *t, const char *path, fin_error *err)
{
    char *text;
    size_t size;
    fin_npz_writer *npz = NULL;
    fin_status status = settings_text(t, &text, &size, err);
    if (!status)
        status = fin_npz_create(path, &npz, err);
    if (!status)
        status = add_arrays(t, npz, text, size, err);
    /* No progress: whoever has pressed Ctrl-C wants this file more than anything. */
    if (!status)
        status = fin_npz_commit(npz, NULL, err);
    else
        fin_npz_abort(npz);
    free(text);
    return status;
}

fin_status training_try(const char *path, fin_error *err)
{
    fin_npz_writer *npz;
    fin_status status = fin_npz_create(path, &npz, err);
    if (!status)
        fin_npz_abort(npz);
    return status;
}

/* ---- starting points ------------------------------------------------------------------------ */

static bool has_array(const fin_npz *file, const char *name)
{
    for (int64_t i = 0; i < fin_npz_count(file); i++)
        if (strcmp(fin_npz_name(file, i), name) == 0)
            return true;
    return false;
}

/* An array of rows of d numbers as doubles, for the caller to free. */
static fin_status read_rows(fin_npz *file, const char *path, const char *name, int64_t d,
                            int64_t *rows, double **out, fin_error *err)
{
    fin_array a;
    fin_status status = fin_npz_array(file, name, &a, err);
    if (status)
        return status;
    if (a.dtype != FIN_F32 && a.dtype != FIN_F64)
        return cli_status(err, FIN_ERR_FORMAT,
                          "'%.100s': %s holds whole numbers; float or double is needed", path,
                          name);
    if (a.ndim < 1 || a.ndim > 2 || a.shape[a.ndim - 1] != d)
        return cli_status(err, FIN_ERR_FORMAT,
                          "'%.100s': %s has %d dimensions, the last of length %lld; it must be (d) "
                          "or (runs, d) with d = %lld, which --d sets",
                          path, name, a.ndim, (long long)(a.ndim > 0 ? a.shape[a.ndim - 1] : 0),
                          (long long)d);
    *rows = a.ndim == 2 ? a.shape[0] : 1;
    *out = malloc(((size_t)a.count + 1) * sizeof **out);
    if (!*out)
        return cli_status_memory(err, 8.0 * (double)a.count, name);
    for (int64_t i = 0; i < a.count; i++) {
        (*out)[i] =
            a.dtype == FIN_F32 ? (double)((const float *)a.data)[i] : ((const double *)a.data)[i];
        if (!isfinite((*out)[i]))
            return cli_status(err, FIN_ERR_FORMAT, "'%.100s': %s[%lld] is %g", path, name,
                              (long long)i, (*out)[i]);
    }
    return FIN_OK;
}

static fin_status set_directions(training *t, const char *path, fin_error *err)
{
    int64_t d = fin_task_get_settings(t->task)->d, rows[2] = {0, 0};
    double *k = NULL, *v = NULL;
    fin_status status = read_rows(t->file, path, "k_star", d, &rows[0], &k, err);
    if (!status)
        status = read_rows(t->file, path, "v_star", d, &rows[1], &v, err);
    if (!status && (rows[0] != 1 || rows[1] != 1))
        status = cli_status(err, FIN_ERR_FORMAT,
                            "'%.100s': k_star and v_star must have one row of d = %lld numbers",
                            path, (long long)d);
    if (!status)
        status = fin_task_set_directions(t->task, k, v, err);
    free(k);
    free(v);
    return status;
}

fin_status training_read_start(training *t, const char *path, fin_train_start *start,
                               fin_error *err)
{
    int64_t d = fin_task_get_settings(t->task)->d, runs = train_get(t->args)->train.runs, rows = 0;
    fin_status status = fin_npz_open(path, &t->file, err);
    if (!status)
        status = read_rows(t->file, path, "k", d, &start->count, (double **)&start->k, err);
    if (!status)
        status = read_rows(t->file, path, "v", d, &rows, (double **)&start->v, err);
    if (!status && (rows != start->count || (rows != 1 && rows != runs)))
        status = cli_status(err, FIN_ERR_FORMAT,
                            "'%.100s': k has %lld rows and v %lld; both must have one, or one for "
                            "each of --runs %lld",
                            path, (long long)start->count, (long long)rows, (long long)runs);
    bool k_star = !status && has_array(t->file, "k_star"),
         v_star = !status && has_array(t->file, "v_star");
    if (k_star != v_star)
        return cli_status(err, FIN_ERR_FORMAT, "'%.100s' has %s but not %s; give both or neither",
                          path, k_star ? "k_star" : "v_star", k_star ? "v_star" : "k_star");
    return k_star ? set_directions(t, path, err) : status;
}

/* ---- going on ------------------------------------------------------------------------------- */

/* The bytes of "settings" as text in t->text. */
static fin_status read_text(training *t, const char *path, fin_error *err)
{
    fin_array a;
    if (!has_array(t->file, "settings"))
        return cli_status(err, FIN_ERR_FORMAT,
                          "'%.100s' has no array settings; --resume takes a file written by "
                          "finetti train --out or --checkpoint",
                          path);
    fin_status status = fin_npz_array(t->file, "settings", &a, err);
    if (status)
        return status;
    if (a.dtype != FIN_U8 || a.ndim != 1 || a.count > TEXT_MOST ||
        memchr(a.data, 0, (size_t)a.count))
        return cli_status(err, FIN_ERR_FORMAT, "'%.100s': settings is not text", path);
    t->text = malloc((size_t)a.count + 1);
    if (!t->text)
        return cli_status_memory(err, (double)a.count, "the settings");
    memcpy(t->text, a.data, (size_t)a.count);
    t->text[a.count] = '\0';
    return FIN_OK;
}

/* Cuts the next "name value" line off; false at the end. value is "" if there is none. */
static bool next_line(char **rest, char **name, char **value)
{
    if (!**rest)
        return false;
    *name = *rest;
    size_t length = strcspn(*rest, "\n");
    *rest += length;
    if (**rest)
        *(*rest)++ = '\0';
    *value = *name + strcspn(*name, " ");
    if (**value)
        *(*value)++ = '\0';
    return true;
}

static fin_status set_line(cli_args *args, const char *name, const char *value, fin_error *err)
{
    const fin_group *group = NULL;
    bool word = cli_is_word(args, name) && !fin_word_choice(name, 0),
         row = cli_field(args, name, &group) && group->table != &cli_pause_table;
    if (!word && !row)
        return cli_status(err, FIN_ERR_FORMAT, "the settings have a line '%.40s'", name);
    if (cli_given(args, name))
        return cli_status(err, FIN_ERR_FORMAT, "the settings have %s twice", name);
    if (word && !*value)
        return cli_status(err, FIN_ERR_FORMAT, "the settings have %s without a value", name);
    cli_add(args, name, value);
    return FIN_OK;
}

static fin_status check_complete(cli_args *args, fin_error *err)
{
    for (int g = 0; g < args->group_count; g++) {
        const fin_group *group = &args->groups[g];
        for (int i = 0; is_kept(args, group) && i < group->table->count; i++)
            if (!cli_given(args, group->table->fields[i].name))
                return cli_status(err, FIN_ERR_FORMAT, "the settings have no %s",
                                  group->table->fields[i].name);
    }
    return FIN_OK;
}

/* The first three lines say what the others mean. */
static fin_status read_names(char **rest, cli_args *args, fin_error *err)
{
    static const char *const expected[3] = {"finetti", "task", "form"};
    char *name, *value[3];
    for (int i = 0; i < 3; i++)
        if (!next_line(rest, &name, &value[i]) || strcmp(name, expected[i]) != 0)
            return cli_status(err, FIN_ERR_FORMAT, "line %d of the settings is not '%s ...'", i + 1,
                              expected[i]);
    args->pair_count = 0;
    cli_add(args, "task", value[1]);
    cli_add(args, "form", value[2]);
    if (fin_command_tables(args->settings, args->values, args->pairs, 2, args->groups,
                           &args->group_count, NULL, err))
        return err->status = FIN_ERR_FORMAT;
    if (strcmp(value[0], fin_version()) != 0)
        cli_note("note: the file was written by version %.20s, this is %s; numbers may differ",
                 value[0], fin_version());
    return FIN_OK;
}

/* Before memory is taken for so many runs, there should be so many. */
static fin_status check_runs(training *t, fin_error *err)
{
    fin_array at;
    fin_status status = fin_npz_array(t->file, "at", &at, err);
    if (!status && (at.ndim != 1 || at.count != train_get(t->args)->train.runs))
        status = cli_status(err, FIN_ERR_FORMAT,
                            "array at has %lld numbers, but the settings have runs %lld",
                            (long long)at.count, (long long)train_get(t->args)->train.runs);
    return status;
}

fin_status training_read_settings(training *t, const char *path, fin_error *err)
{
    cli_args *args = t->args;
    const cli_pause_settings pause = train_get(args)->pause;
    fin_status status = fin_npz_open(path, &t->file, err);
    if (!status)
        status = read_text(t, path, err);
    if (status)
        return status;
    char *rest = t->text, *name, *value;
    status = read_names(&rest, args, err);
    while (!status && next_line(&rest, &name, &value))
        status = set_line(args, name, value, err);
    if (!status)
        status = fin_command_apply(args->settings, args->values, args->pairs, args->pair_count,
                                   NULL, err);
    if (!status)
        status = check_complete(args, err);
    train_get(args)->pause = pause;
    return status ? status : check_runs(t, err);
}

fin_status training_read_directions(training *t, const char *path, fin_error *err)
{
    return fin_task_k_star(t->task) ? set_directions(t, path, err) : FIN_OK;
}

fin_status training_read_state(training *t, fin_error *err)
{
    fin_train_array arrays[ARRAYS];
    int count = fin_train_array_count(t->train);
    for (int i = 0; i < count; i++) {
        fin_array a;
        fin_status status = i < ARRAYS ? fin_train_get_array(t->train, i, &arrays[i], err)
                                       : cli_status(err, FIN_ERR_FORMAT, "too many arrays");
        if (!status)
            status = fin_npz_array(t->file, arrays[i].name, &a, err);
        if (!status && (a.ndim < 1 || a.ndim > 2))
            status = cli_status(err, FIN_ERR_FORMAT, "array %s has %d dimensions; it must have %d",
                                arrays[i].name, a.ndim, arrays[i].ndim);
        if (status)
            return status;
        arrays[i].dtype = a.dtype;
        arrays[i].ndim = a.ndim;
        arrays[i].shape[0] = a.shape[0];
        arrays[i].shape[1] = a.ndim == 2 ? a.shape[1] : 1;
        arrays[i].data = a.data;
    }
    return fin_train_resume(t->train, arrays, count, err);
}
