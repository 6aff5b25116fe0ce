/* A training in a file, or in arrays, and back.
 *
 * What is read is not trusted: the settings are lines of text, of which every one must be known, be there, and be there
 * once; they go the way of all settings; and the arrays are looked at by fini_train_resume. */
#include "command/training.h"

#include "finetti/data.h"
#include "train/train.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 1 << 24, LINES_MOST = 128, ARRAYS_MOST = 64 };

/* ---- settings as text ------------------------------------------------------------------------ */

/* The tables in the order of the file, with every "auto" worked out where somebody knows it. */
static int tables_of(const fin_training *t, fin_group groups[4])
{
    const fini_train_values *v = &t->values;
    const void *values[4] = {&v->model.form_settings,
                             t->task ? fin_task_get_settings(t->task) : &v->model.task_settings,
                             v->train.init == FIN_INIT_OVERLAPS ? &v->overlaps : NULL,
                             t->train ? fin_train_get_settings(t->train) : &v->train};
    const fin_settings *tables[4] = {fin_form_table(fini_model_form(&v->model)),
                                     fin_task_kind_table(fin_task_find(v->model.task)),
                                     &fin_overlaps_table, &fin_train_table};
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (values[i]) /* only read */
            groups[count++] = (fin_group){tables[i], (void *)(uintptr_t)values[i]};
    return count;
}

/* Appends to what fits; *used counts all of it. */
static void line(char *buffer, size_t size, size_t *used, const char *name, const char *text)
{
    bool fits = *used < size;
    *used += (size_t)snprintf(fits ? buffer + *used : NULL, fits ? size - *used : 0, "%s %s\n",
                              name, text);
}

static size_t print_lines(const fin_training *t, char *buffer, size_t size)
{
    fin_group groups[4];
    char text[64];
    size_t used = 0;
    int count = tables_of(t, groups);
    line(buffer, size, &used, "finetti", fin_version());
    line(buffer, size, &used, "task", t->values.model.task);
    line(buffer, size, &used, "form", t->values.model.form);
    for (int g = 0; g < count; g++)
        for (int i = 0; i < groups[g].table->count; i++) {
            const fin_field *field = &groups[g].table->fields[i];
            line(buffer, size, &used, field->name,
                 fin_settings_text(field, groups[g].values, text, sizeof text));
        }
    for (int i = 0; i < FINI_LISTS; i++)
        if (t->lists[i].count)
            line(buffer, size, &used, fini_list_names[i], t->lists[i].text);
    return used;
}

fin_status fini_training_describe(fin_training *t, fin_error *err)
{
    t->size = print_lines(t, NULL, 0);
    t->text = fini_alloc(t->size + 1);
    if (!t->text)
        return fini_fail_memory(err, t->size + 1, "the settings");
    print_lines(t, t->text, t->size + 1);
    return FIN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

int fin_training_array_count(const fin_training *t)
{
    return t ? 1 + fini_train_array_count(t->train) + (fin_task_k_star(t->task) ? 2 : 0) : 0;
}

fin_status fin_training_get_array(const fin_training *t, int i, fin_train_array *out,
                                  fin_error *err)
{
    FINI_NEED(err, t, out);
    int runs = fini_train_array_count(t->train);
    int64_t d = fin_task_get_settings(t->task)->d;
    if (i < 0 || i >= fin_training_array_count(t))
        return fini_fail(err, FIN_ERR_ARGUMENT, "array %d; there are %d, from 0 on", i,
                         fin_training_array_count(t));
    if (i >= 1 && i <= runs)
        return fini_train_get_array(t->train, i - 1, out, err);
    *out = i == 0 ? (fin_train_array){"settings", "text", FIN_U8, 1, {(int64_t)t->size, 0}, t->text}
           : i == runs + 1
               ? (fin_train_array){"k_star", "k*", FIN_F64, 1, {d, 0}, fin_task_k_star(t->task)}
               : (fin_train_array){"v_star", "v*", FIN_F64, 1, {d, 0}, fin_task_v_star(t->task)};
    return FIN_OK;
}

fin_status fin_training_write(const fin_training *t, const char *path, fin_error *err)
{
    FINI_NEED(err, t, path);
    const fin_train_settings *settings = fin_train_get_settings(t->train);
    fin_npz_writer *npz = NULL;
    if (settings->engine == FIN_ENGINE_AMBIENT && t->seed != (uint64_t)settings->seed)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the file has one seed; here the task's is %llu and the training's %lld. "
                         "Give both the same one",
                         (unsigned long long)t->seed, (long long)settings->seed);
    fin_status status = fin_npz_create(path, &npz, err);
    for (int i = 0; i < fin_training_array_count(t) && !status; i++) {
        fin_train_array a;
        status = fin_training_get_array(t, i, &a, err);
        if (!status)
            status = fin_npz_add(npz, a.name, a.dtype, a.ndim, a.shape, a.data, err);
    }
    /* No progress: whoever has pressed Ctrl-C wants this file more than anything. */
    if (!status)
        return fin_npz_commit(npz, NULL, err);
    fin_npz_abort(npz);
    return status;
}

/* ---- arrays, from wherever they are ---------------------------------------------------------- */

typedef struct source {
    const fin_training_source *from;
    fin_npz *file; /* NULL: in memory */
} source;

static fin_status open_source(source *s, const fin_training_source *from, fin_error *err)
{
    *s = (source){from, NULL};
    return from->path ? fin_npz_open(from->path, &s->file, err) : FIN_OK;
}

/* An array of one or two dimensions. found may be NULL; else its lack is no failure. */
static fin_status get(const source *s, const char *name, fin_train_array *out, bool *found,
                      fin_error *err)
{
    bool there = false;
    for (int i = 0; !s->file && i < s->from->count && !there; i++)
        if ((there = strcmp(s->from->arrays[i].name, name) == 0))
            *out = s->from->arrays[i];
    for (int64_t i = 0; s->file && i < fin_npz_count(s->file) && !there; i++)
        there = strcmp(fin_npz_name(s->file, i), name) == 0;
    if (found)
        *found = there;
    if (!there)
        return found ? FIN_OK : fini_fail(err, FIN_ERR_FORMAT, "there is no array %s", name);
    if (s->file) {
        fin_array a;
        FINI_TRY(fin_npz_array(s->file, name, &a, err));
        *out = (fin_train_array){name, "", a.dtype, a.ndim, {a.shape[0], a.shape[1]}, a.data};
    }
    if (out->ndim < 1 || out->ndim > 2)
        return fini_fail(err, FIN_ERR_FORMAT, "array %s has %d dimensions; it must have 1 or 2",
                         name, out->ndim);
    if (out->ndim == 1)
        out->shape[1] = 1;
    return FIN_OK;
}

/* Whatever is wrong here is wrong with the file. */
static fin_status blame(const char *path, fin_status status, fin_error *err)
{
    if (status != FIN_ERR_ARGUMENT && status != FIN_ERR_FORMAT && status != FIN_ERR_UNSUPPORTED)
        return status;
    if (!err)
        return FIN_ERR_FORMAT;
    fin_error first = *err;
    if (path && !strstr(first.message, path))
        fini_fail(err, FIN_ERR_FORMAT, "'%.100s': %.380s", path, first.message);
    return err->status = FIN_ERR_FORMAT;
}

/* ---- starting points ------------------------------------------------------------------------- */

/* An array of rows of d numbers as doubles, in memory from fini_alloc. */
static fin_status read_rows(const source *s, const char *name, int64_t d, int64_t *rows,
                            double **out, fin_error *err)
{
    fin_train_array a;
    FINI_TRY(get(s, name, &a, NULL, err));
    int64_t last = a.shape[a.ndim - 1];
    *rows = a.ndim == 2 ? a.shape[0] : 1;
    if (a.dtype != FIN_F32 && a.dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_FORMAT, "%s holds whole numbers; float or double is needed",
                         name);
    if (last != d)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%s has rows of %lld numbers; it must be (d) or (runs, d) with d = %lld, "
                         "a setting",
                         name, (long long)last, (long long)d);
    FINI_ROOM(err, name, *out, *rows * d + 1, 1);
    for (int64_t i = 0; i < *rows * d; i++) {
        (*out)[i] = fin_dtype_get(a.dtype, a.data, i);
        if (!isfinite((*out)[i]))
            return fini_fail(err, FIN_ERR_FORMAT, "%s[%lld] is %g", name, (long long)i, (*out)[i]);
    }
    return FIN_OK;
}

static fin_status set_directions(fin_training *t, const source *s, fin_error *err)
{
    int64_t d = fin_task_get_settings(t->task)->d, rows[2] = {0, 0};
    FINI_FREED double *k = NULL, *v = NULL;
    FINI_TRY(read_rows(s, "k_star", d, &rows[0], &k, err));
    FINI_TRY(read_rows(s, "v_star", d, &rows[1], &v, err));
    if (rows[0] != 1 || rows[1] != 1)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "k_star and v_star must have one row of d = %lld numbers", (long long)d);
    return fin_task_set_directions(t->task, k, v, err);
}

static fin_status read_start(fin_training *t, const source *s, fini_vectors *out, fin_error *err)
{
    int64_t d = fin_task_get_settings(t->task)->d, runs = t->values.train.runs, rows = 0;
    FINI_TRY(read_rows(s, "k", d, &out->count, &out->k, err));
    FINI_TRY(read_rows(s, "v", d, &rows, &out->v, err));
    if (rows != out->count || (rows != 1 && rows != runs))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "k has %lld rows and v %lld; both must have one, or one for each of the "
                         "%lld runs",
                         (long long)out->count, (long long)rows, (long long)runs);
    bool k_star = false, v_star = false;
    fin_train_array a;
    FINI_TRY(get(s, "k_star", &a, &k_star, err));
    FINI_TRY(get(s, "v_star", &a, &v_star, err));
    if (k_star != v_star)
        return fini_fail(err, FIN_ERR_FORMAT, "there is %s but not %s; give both or neither",
                         k_star ? "k_star" : "v_star", k_star ? "v_star" : "k_star");
    return !k_star ? FIN_OK : set_directions(t, s, err);
}

fin_status fini_training_read_start(fin_training *t, const char *path, fini_vectors *out,
                                    fin_error *err)
{
    const fin_training_source from = {.path = path};
    source s;
    fin_status status = open_source(&s, &from, err);
    if (!status)
        status = blame(path, read_start(t, &s, out, err), err);
    fin_npz_close(s.file);
    return status;
}

/* ---- going on -------------------------------------------------------------------------------- */

/* The bytes of "settings" as text, in memory from fini_alloc. */
static fin_status read_text(const source *s, char **text, fin_error *err)
{
    fin_train_array a;
    FINI_TRY(get(s, "settings", &a, NULL, err));
    size_t size = (size_t)a.shape[0];
    if (a.dtype != FIN_U8 || a.ndim != 1 || a.shape[0] > TEXT_MOST ||
        (size > 0 && memchr(a.data, 0, size)))
        return fini_fail(err, FIN_ERR_FORMAT, "settings is not text");
    *text = fini_alloc(size + 1);
    if (!*text)
        return fini_fail_memory(err, size + 1, "the settings");
    if (size > 0)
        memcpy(*text, a.data, size);
    (*text)[size] = '\0';
    return FIN_OK;
}

/* Cuts text into lines "name value", which become pairs; value is "" if there is none. */
static fin_status cut_lines(char *text, fin_pair pairs[LINES_MOST], int *count, fin_error *err)
{
    for (*count = 0; *text; ++*count) {
        if (*count == LINES_MOST)
            return fini_fail(err, FIN_ERR_FORMAT, "the settings have more than %d lines",
                             LINES_MOST);
        char *name = text, shown[FINI_SHOWN];
        text += strcspn(text, "\n");
        if (*text)
            *text++ = '\0';
        char *value = name + strcspn(name, " ");
        if (*value)
            *value++ = '\0';
        if (!*value)
            return fini_fail(err, FIN_ERR_FORMAT, "the settings have '%s' without a value",
                             fini_shown(name, shown));
        for (int i = 0; i < *count; i++)
            if (fini_same_name(pairs[i].name, name))
                return fini_fail(err, FIN_ERR_FORMAT, "the settings have %s twice",
                                 fini_shown(name, shown));
        pairs[*count] = (fin_pair){.name = name, .text = value};
    }
    return FIN_OK;
}

/* Every line that would be written now must have been in what was read. */
static fin_status check_complete(const fin_training *t, const fin_pair *pairs, int count,
                                 fin_error *err)
{
    fin_group groups[4];
    int group_count = tables_of(t, groups);
    for (int g = 0; g < group_count; g++)
        for (int i = 0; i < groups[g].table->count; i++) {
            const char *name = groups[g].table->fields[i].name;
            int at = 0;
            while (at < count && strcmp(pairs[at].name, name) != 0)
                at++;
            if (at == count)
                return fini_fail(err, FIN_ERR_FORMAT, "the settings have no %s", name);
        }
    return FIN_OK;
}

/* The settings, from lines of which the first three say what the others mean. */
static fin_status read_settings(fin_training **out, const source *s, char *text, fin_error *err)
{
    static const char *const first[3] = {"finetti", "task", "form"};
    fin_pair pairs[LINES_MOST];
    int count;
    FINI_TRY(cut_lines(text, pairs, &count, err));
    for (int i = 0; i < 3; i++)
        if (i >= count || strcmp(pairs[i].name, first[i]) != 0)
            return fini_fail(err, FIN_ERR_FORMAT, "line %d of the settings is not '%s ...'", i + 1,
                             first[i]);
    FINI_TRY(fini_training_from_pairs(out, pairs + 1, count - 1, err));
    FINI_TRY(check_complete(*out, pairs, count, err));
    fini_shown(pairs[0].text, (*out)->version);
    /* Before memory is taken for so many runs, there should be so many. */
    fin_train_array at;
    int64_t runs = (*out)->values.train.runs;
    FINI_TRY(get(s, "at", &at, NULL, err));
    if (at.ndim != 1 || at.shape[0] != runs)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "array at has %lld numbers, but the settings have runs %lld",
                         (long long)at.shape[0], (long long)runs);
    return FIN_OK;
}

static fin_status lengthen(fin_training *t, int64_t steps, fin_error *err)
{
    int64_t *now = &t->values.train.steps;
    if (steps >= 0 && steps < *now)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "steps = %lld is less than the %lld steps that there are; give more of "
                         "them",
                         (long long)steps, (long long)*now);
    *now = steps > *now ? steps : *now;
    return fin_settings_validate(&fin_train_table, &t->values.train, err);
}

static fin_status put_back(fin_training *t, const source *s, fin_error *err)
{
    fin_train_array arrays[ARRAYS_MOST];
    int count = fini_train_array_count(t->train);
    assert(count <= ARRAYS_MOST);
    for (int i = 0; i < count; i++) {
        FINI_TRY(fini_train_get_array(t->train, i, &arrays[i], err));
        FINI_TRY(get(s, arrays[i].name, &arrays[i], NULL, err));
    }
    return fini_train_resume(t->train, arrays, count, err);
}

static fin_status go_on(fin_training *t, const source *s, fin_error *err)
{
    FINI_TRY(fini_training_make_task(t, s->from->seed, err));
    if (fin_task_k_star(t->task))
        FINI_TRY(set_directions(t, s, err));
    /* The runs have left their starting points; any vectors do, since the state follows. */
    const fin_training_start start = {
        .count = 1, .k = fin_task_k_star(t->task), .v = fin_task_v_star(t->task)};
    FINI_TRY(fini_training_make_runs(t, &start, err));
    FINI_TRY(put_back(t, s, err));
    return fini_training_describe(t, err);
}

fin_status fin_training_resume(fin_training **out, const fin_training_source *from, int64_t steps,
                               fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, from);
    source s;
    char *text = NULL;
    fin_status status = open_source(&s, from, err);
    if (!status)
        status = blame(from->path, read_text(&s, &text, err), err);
    if (!status)
        status = blame(from->path, read_settings(out, &s, text, err), err);
    if (!status)
        status = lengthen(*out, steps, err);
    if (!status)
        status = blame(from->path, go_on(*out, &s, err), err);
    fini_free(text);
    fin_npz_close(s.file);
    if (!status)
        return FIN_OK;
    fin_training_destroy(*out);
    *out = NULL;
    return status;
}
