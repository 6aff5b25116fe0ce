/* Runs in a file, and back.
 *
 * The file is an NPZ archive: the library's arrays, the true directions where they are vectors, and
 * "settings", text as bytes with a line "name value" for every setting. What is written depends on
 * the runs alone and not on how they came about: a run that was stopped and resumed leaves the same
 * bytes as one that was not. A file that is read is not trusted. */
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings that are words on the command line and lines in the file. */
static const char *const kept_words[] = {"lengths", "lam_schedule", "alpha_schedule"};
enum { KEPT = sizeof kept_words / sizeof *kept_words, TEXT_MOST = 1 << 24, ARRAYS = 32 };

static const unsigned KEPT_GROUPS =
    CLI_USES_TASK | CLI_USES_FORM | CLI_USES_TRAIN | CLI_USES_OVERLAPS;

/* ---- settings as text ----------------------------------------------------------------------- */

static bool is_kept(const cli_args *args, unsigned use)
{
    return use & KEPT_GROUPS && (use != CLI_USES_OVERLAPS || args->train.init == FIN_INIT_OVERLAPS);
}

/* The values with every "auto" worked out, where somebody knows them. */
static const void *resolved(const training *t, const cli_group *group)
{
    return group->use == CLI_USES_TASK    ? (const void *)fin_task_get_settings(t->task)
           : group->use == CLI_USES_TRAIN ? (const void *)fin_train_get_settings(t->train)
                                          : group->values;
}

static void print_lines(const training *t, FILE *out)
{
    const cli_args *args = t->args;
    char text[64];
    fprintf(out, "finetti %s\ntask %s\nform %s\n", fin_version(), fin_task_kind_name(args->kind),
            fin_form_name(args->form));
    for (int g = 0; g < args->group_count; g++) {
        const cli_group *group = &args->groups[g];
        for (int i = 0; is_kept(args, group->use) && i < group->table->count; i++) {
            const fin_field *field = &group->table->fields[i];
            fprintf(out, "%s %s\n", field->name,
                    fin_settings_text(field, resolved(t, group), text, sizeof text));
        }
    }
    for (int i = 0; i < KEPT; i++)
        if (cli_get(args, kept_words[i]))
            fprintf(out, "%s %s\n", kept_words[i], cli_get(args, kept_words[i]));
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
    int64_t d = fin_task_get_settings(t->task)->d, runs = t->args->train.runs, rows = 0;
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

static bool is_kept_word(const char *name)
{
    for (int i = 0; i < KEPT; i++)
        if (strcmp(kept_words[i], name) == 0)
            return true;
    return false;
}

static fin_status set_line(cli_args *args, const char *name, const char *value, fin_error *err)
{
    const fin_field *field;
    const cli_group *group = cli_find(args, name, &field);
    bool word = is_kept_word(name);
    if (!word && !(group && group->use & KEPT_GROUPS))
        return cli_status(err, FIN_ERR_FORMAT, "the settings have a line '%.40s'", name);
    if (word ? cli_get(args, name) != NULL : cli_given(args, name))
        return cli_status(err, FIN_ERR_FORMAT, "the settings have %s twice", name);
    if (word && !*value)
        return cli_status(err, FIN_ERR_FORMAT, "the settings have %s without a value", name);
    return cli_set(args, name, value, err);
}

static fin_status check_complete(const cli_args *args, fin_error *err)
{
    for (int g = 0; g < args->group_count; g++) {
        const cli_group *group = &args->groups[g];
        for (int i = 0; is_kept(args, group->use) && i < group->table->count; i++)
            if (!(group->given >> i & 1))
                return cli_status(err, FIN_ERR_FORMAT, "the settings have no %s",
                                  group->table->fields[i].name);
    }
    return FIN_OK;
}

/* The first three lines say what the others mean. */
static fin_status read_names(char **rest, const fin_task_kind **kind, const fin_form **form,
                             fin_error *err)
{
    static const char *const expected[3] = {"finetti", "task", "form"};
    char *name, *value[3];
    for (int i = 0; i < 3; i++)
        if (!next_line(rest, &name, &value[i]) || strcmp(name, expected[i]) != 0)
            return cli_status(err, FIN_ERR_FORMAT, "line %d of the settings is not '%s ...'", i + 1,
                              expected[i]);
    *kind = fin_task_find(value[1]);
    *form = fin_form_find(value[2]);
    if (!*kind || !*form)
        return cli_status(err, FIN_ERR_FORMAT, "the settings have %s '%.40s', which is not known",
                          *kind ? "form" : "task", *kind ? value[2] : value[1]);
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
    if (!status && (at.ndim != 1 || at.count != t->args->train.runs))
        status = cli_status(err, FIN_ERR_FORMAT,
                            "array at has %lld numbers, but the settings have runs %lld",
                            (long long)at.count, (long long)t->args->train.runs);
    return status;
}

fin_status training_read_settings(training *t, const char *path, fin_error *err)
{
    static cli_args given; /* large, and used once */
    cli_args *args = t->args;
    const fin_task_kind *kind = NULL;
    const fin_form *form = NULL;
    fin_status status = fin_npz_open(path, &t->file, err);
    if (!status)
        status = read_text(t, path, err);
    if (status)
        return status;
    char *rest = t->text, *name, *value;
    if ((status = read_names(&rest, &kind, &form, err)))
        return status;
    given = *args;
    cli_defaults(args, given.command, kind, form);
    args->pause = given.pause;
    args->run = given.run;
    memcpy(args->word, given.word, sizeof args->word);
    while (!status && next_line(&rest, &name, &value))
        status = set_line(args, name, value, err);
    if (!status)
        status = check_complete(args, err);
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
