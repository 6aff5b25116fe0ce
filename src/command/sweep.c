/* A command at many points, and ranges of values.
 *
 * Every point is a run of its own, with the numbers that fin_command_run has there. Two things make it faster: a
 * command that can do many points at once (many) gets them all, as numbers that never become text; and one that
 * cannot sees the point before, so that what does not change is not computed again. */
#include "command/command.h"

#include "data/data.h"

#include <math.h>
#include <string.h>

enum { SCALARS = 256, COLUMNS = FIN_GROUPS * 64 };

struct fin_sweep {
    int64_t n;
    int count;
    bool memory;   /* ran out */
    double *zeros; /* the errors of all columns that are exact */
    struct column {
        const char *name;      /* of the command's table, which lives longer */
        double *value, *error; /* NULL until there is a number */
        unsigned char *hows;
        int64_t *samples;
        fin_how how;
    } columns[SCALARS];
};

static void free_column(const fin_sweep *sweep, struct column *column)
{
    fini_free(column->value);
    if (column->error != sweep->zeros)
        fini_free(column->error);
    fini_free_all(column->hows, column->samples);
}

void fin_sweep_destroy(fin_sweep *sweep)
{
    for (int i = 0; sweep && i < sweep->count; i++)
        free_column(sweep, &sweep->columns[i]);
    if (sweep)
        fini_free(sweep->zeros);
    fini_free(sweep);
}

int fin_sweep_count(const fin_sweep *sweep)
{
    return sweep ? sweep->count : 0;
}

fin_sweep_column fin_sweep_get(const fin_sweep *sweep, int i)
{
    if (!sweep || i < 0 || i >= sweep->count)
        return (fin_sweep_column){.name = NULL};
    const struct column *c = &sweep->columns[i];
    return (fin_sweep_column){c->name, c->value, c->error, c->how, c->hows, c->samples};
}

/* ---- numbers of a point ---------------------------------------------------------------------- */

/* A column for every output that is not a series, so that the order is that of the table. */
static void lay_out(fin_sweep *sweep, const fin_command *command)
{
    for (const fin_output *o = command->outputs; o->name && sweep->count < SCALARS; o++)
        if (o->meaning[0] != '(')
            sweep->columns[sweep->count++] = (struct column){.name = o->name};
}

int fini_sweep_place(fin_sweep *sweep, const char *name)
{
    for (int i = 0; i < sweep->count; i++) {
        struct column *c = &sweep->columns[i];
        if (strcmp(c->name, name) != 0)
            continue;
        if (!c->value) {
            c->value = fini_alloc_array(sweep->n, sizeof *c->value);
            c->how = FIN_HOW_COUNT; /* none yet */
        }
        sweep->memory = sweep->memory || !c->value;
        return c->value ? i : -1;
    }
    return -1;
}

/* The first number of a column, which other points may not have. */
static void open_column(fin_sweep *sweep, struct column *c)
{
    c->error = fini_alloc_array(sweep->n, sizeof *c->error);
    sweep->memory = sweep->memory || !c->error;
    for (int64_t i = 0; c->error && i < sweep->n; i++)
        c->value[i] = c->error[i] = NAN;
}

/* Points before this one had the common `how`. */
static void tell_apart(fin_sweep *sweep, struct column *c)
{
    if ((c->hows = fini_alloc_array(sweep->n, sizeof *c->hows)))
        memset(c->hows, (int)c->how, (size_t)sweep->n * sizeof *c->hows);
    sweep->memory = sweep->memory || !c->hows;
    c->how = FIN_HOW_DERIVED;
}

void fini_sweep_put(fin_sweep *sweep, int place, int64_t point, const fin_scalar *scalar)
{
    struct column *c = &sweep->columns[place];
    if (!c->error || c->error == sweep->zeros)
        open_column(sweep, c);
    if (!c->error)
        return;
    c->value[point] = scalar->value;
    c->error[point] = scalar->error;
    if (c->how == FIN_HOW_COUNT)
        c->how = scalar->how;
    if (!c->hows && c->how != scalar->how)
        tell_apart(sweep, c);
    if (c->hows)
        c->hows[point] = (unsigned char)scalar->how;
    if (scalar->samples && !c->samples) {
        if ((c->samples = fini_alloc_array(sweep->n, sizeof *c->samples)))
            memset(c->samples, 0, (size_t)sweep->n * sizeof *c->samples);
        sweep->memory = sweep->memory || !c->samples;
    }
    if (c->samples)
        c->samples[point] = scalar->samples;
}

bool fini_sweep_put_exact(fin_sweep *sweep, int place, int64_t from, int64_t count,
                          const double *values)
{
    struct column *c = &sweep->columns[place];
    size_t size = (size_t)sweep->n * sizeof *values;
    if (!sweep->zeros && (sweep->zeros = fini_alloc(size)))
        memset(sweep->zeros, 0, size);
    c->error = sweep->zeros;
    c->how = FIN_HOW_CLOSED;
    memcpy(c->value + from, values, (size_t)count * sizeof *values);
    return c->error;
}

static void keep(fin_sweep *sweep, int64_t point, const fin_result *result)
{
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        int place = fini_sweep_place(sweep, scalar.name);
        if (place >= 0)
            fini_sweep_put(sweep, place, point, &scalar);
    }
}

/* Columns that no point has are no columns. */
static void drop_empty(fin_sweep *sweep)
{
    int kept = 0;
    for (int i = 0; i < sweep->count; i++)
        if (sweep->columns[i].value)
            sweep->columns[kept++] = sweep->columns[i];
    sweep->count = kept;
}

/* ---- one point after the other --------------------------------------------------------------- */

typedef struct walk {
    const fin_command *command;
    const fin_column *columns;
    fin_pair *pairs; /* `fixed` of the caller's, then one a column */
    int fixed, column_count;
    fin_sweep *sweep;
    const fin_progress *whole;
    int64_t point;
    fin_result *results[2]; /* of this point and of the one before */
    void *values[2];
} walk;

static fin_status apply_point(walk *w, void *values, fin_error *err)
{
    char numbers[COLUMNS][FINI_SHORTEST];
    for (int c = 0; c < w->column_count; c++) {
        const fin_column *column = &w->columns[c];
        const char *text = column->texts ? column->texts[w->point] : numbers[c];
        if (!column->texts)
            fini_shortest(column->numbers[w->point], numbers[c]);
        w->pairs[w->fixed + c] = (fin_pair){column->name, text, NULL};
    }
    return fin_command_apply(w->command, values, w->pairs, w->fixed + w->column_count, NULL, err);
}

static fin_status one_point(walk *w, bool follows, fin_error *err)
{
    int me = (int)(w->point % 2), other = 1 - me;
    fin_result *result = w->results[me];
    fini_share part = {w->whole, w->point, w->sweep->n};
    const fin_progress progress = {fini_share_report, &part};
    FINI_TRY(apply_point(w, w->values[me], err));
    fini_result_clear(result);
    fini_result_follow(result, follows ? w->results[other] : NULL, w->values[other]);
    FINI_TRY(fini_command_perform(w->command, w->values[me], result, &progress, err));
    keep(w->sweep, w->point, result);
    FINI_TRY(
        fini_go_on(w->whole, w->command->name, (double)w->point + 1, (double)w->sweep->n, err));
    return FIN_OK;
}

static fin_status all_points(walk *w, fin_error *err)
{
    fin_status status = FIN_OK;
    for (w->point = 0; w->point < w->sweep->n && !status; w->point += !status)
        status = one_point(w, w->point > 0, err);
    return status;
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Where the numbers of a column go: a row of a table. */
struct fini_target {
    const fin_field *field;
    unsigned char *values;
    const double *numbers;
};

/* A number that a table takes as text, it takes here, and no other; adding 0 leaves no -0, as text does. */
bool fini_points_go(fin_points *points, int64_t point)
{
    points->at = point;
    for (int i = 0; i < points->target_count; i++) {
        const struct fini_target *t = &points->targets[i];
        double x = t->numbers[point] + 0.0;
        void *place = t->values + t->field->offset;
        bool whole = t->field->type == FIN_TYPE_int64_t;
        if (!(x >= t->field->lowest && x <= t->field->highest) || (whole && x != floor(x)))
            return false;
        if (whole)
            *(int64_t *)place = (int64_t)x;
        else
            *(double *)place = x;
    }
    return true;
}

/* FIN_ERR_UNSUPPORTED if a column is no row of numbers, or a setting follows others. */
static fin_status find_targets(walk *w, fin_points *points, fin_error *err)
{
    fin_group groups[FIN_GROUPS];
    int group_count = 0;
    fin_status status = fin_command_groups(w->command, points->values, groups, &group_count, err);
    for (int c = 0; c < w->column_count && !status; c++) {
        int before = points->target_count;
        for (int g = 0; g < group_count; g++) {
            const fin_field *field = fini_field_find(groups[g].table, w->columns[c].name);
            if (field && field->type != FIN_TYPE_choice && w->columns[c].numbers)
                points->targets[points->target_count++] =
                    (struct fini_target){field, groups[g].values, w->columns[c].numbers};
        }
        if (points->target_count == before)
            status = FIN_ERR_UNSUPPORTED;
    }
    /* Columns are numbers, and their texts are gone. */
    const fini_filling with = {w->command, groups, group_count, w->pairs, w->fixed};
    return !status && fini_has_formulas(&with) ? FIN_ERR_UNSUPPORTED : status;
}

/* What a command says of a point that it refuses is said by the point alone, in the same words. */
static fin_status many_points(walk *w, fin_error *err)
{
    fin_points points = {.values = w->values[0], .n = w->sweep->n};
    if (!w->command->many || points.n < 2)
        return FIN_ERR_UNSUPPORTED;
    fin_status status = apply_point(w, points.values, err);
    if (status)
        return status == FIN_ERR_MEMORY ? status : FIN_ERR_UNSUPPORTED;
    points.targets =
        fini_alloc_array((int64_t)w->column_count * FIN_GROUPS + 1, sizeof *points.targets);
    if (!points.targets)
        return fini_fail_memory(err, sizeof *points.targets, "the sweep");
    status = find_targets(w, &points, NULL);
    if (!status)
        status = w->command->many(&points, w->sweep, w->whole, err);
    fini_free(points.targets);
    w->point = points.at;
    if (status == FIN_ERR_ARGUMENT) {
        fin_status alone = one_point(w, false, err);
        status = alone ? alone : status;
    }
    return status;
}

static fin_status open_walk(walk *w, const fin_pair *pairs, const fin_command *command,
                            fin_error *err)
{
    w->pairs = fini_alloc_array((int64_t)w->fixed + w->column_count + 1, sizeof *w->pairs);
    bool good = w->pairs && w->sweep;
    for (int i = 0; i < 2; i++) {
        w->results[i] = fin_result_create();
        w->values[i] = fini_alloc(command->size);
        good = good && w->results[i] && w->values[i];
    }
    if (!good)
        return fini_fail_memory(err, sizeof *w->sweep, "the sweep");
    lay_out(w->sweep, command);
    if (w->fixed)
        memcpy(w->pairs, pairs, (size_t)w->fixed * sizeof *pairs);
    return FIN_OK;
}

static void close_walk(walk *w)
{
    for (int i = 0; i < 2; i++) {
        fin_result_destroy(w->results[i]);
        fini_free(w->values[i]);
    }
    fini_free(w->pairs);
}

fin_status fin_command_sweep(const fin_command *command, const fin_pair *pairs, int count,
                             const fin_sweep_points *points, const fin_progress *progress,
                             fin_sweep **out, int64_t *bad, fin_error *err)
{
    if (bad)
        *bad = -1;
    FINI_NEED_TO_MAKE(err, out, command, !count || pairs, points);
    FINI_NEED(err, !points->count || points->columns);
    if (points->n < 0 || count < 0 || points->count < 0 || points->count > COLUMNS)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "fin_command_sweep needs a command, a place for the result, and as many "
                         "pairs, columns and points as it is told");
    walk w = {.command = command,
              .columns = points->columns,
              .fixed = count,
              .column_count = points->count,
              .whole = progress,
              .sweep = fini_alloc(sizeof *w.sweep)};
    if (w.sweep)
        *w.sweep = (fin_sweep){.n = points->n};
    fin_status status = open_walk(&w, pairs, command, err);
    bool opened = !status;
    if (!status && (status = many_points(&w, err)) == FIN_ERR_UNSUPPORTED)
        status = all_points(&w, err);
    if (!status && w.sweep->memory)
        status = fini_fail_memory(err, (size_t)points->n * 2 * sizeof(double), "the sweep");
    if (status && opened && bad && status != FIN_ERR_MEMORY && status != FIN_ERR_CANCELLED)
        *bad = w.point;
    close_walk(&w);
    if (status) {
        fin_sweep_destroy(w.sweep);
        return status;
    }
    drop_empty(w.sweep);
    *out = w.sweep;
    return FIN_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

enum { DIGITS = 12 };

double fini_range_tidy(double x, double low, double high)
{
    char text[FINI_SHORTEST];
    double size = fmax(fabs(low), fabs(high)), rounded = x;
    if (isfinite(size) && fabs(x) < 1e-14 * size && low <= 0 && high >= 0)
        return 0;
    fini_print_double(x, DIGITS, text, sizeof text);
    fini_read_number(text, &rounded);
    return fmin(fmax(rounded, low), high);
}

double fini_range_value(double from, double to, bool logarithmic, int64_t i, int64_t n)
{
    double t = (double)i / (double)(n - 1), low = fmin(from, to), high = fmax(from, to);
    if (i == 0 || i == n - 1)
        return i == 0 ? from : to;
    if (logarithmic)
        return fini_range_tidy(exp((1 - t) * log(from) + t * log(to)), low, high);
    return fini_range_tidy((1 - t) * from + t * to, low, high);
}

static fin_status read_list(const char *text, int64_t most, double *values, int64_t *count,
                            fin_error *err)
{
    for (const char *rest = text; rest;) {
        char piece[FINI_SHORTEST];
        double number;
        size_t length = strcspn(rest, ",");
        if (length < sizeof piece) {
            memcpy(piece, rest, length);
            piece[length] = '\0';
        }
        if (length >= sizeof piece || !fini_read_number(piece, &number))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "'%.60s': the list holds something that is not a number", text);
        if (*count >= most)
            return fini_fail(err, FIN_ERR_ARGUMENT, "'%.60s': at most %lld values are possible",
                             text, (long long)most);
        if (values)
            values[*count] = number;
        ++*count;
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    return FIN_OK;
}

fin_status fin_range_read(const char *text, int whole, int64_t most, double *values, int64_t *count,
                          fin_error *err)
{
    FINI_NEED(err, text, count);
    double from, to, many;
    char *end;
    *count = 0;
    if (!strchr(text, ':'))
        return read_list(text, most, values, count, err);
    from = fini_strtod(text, &end);
    bool good = end != text && *end == ':';
    const char *next = end + 1;
    to = good ? fini_strtod(next, &end) : 0;
    good = good && end != next && *end == ':';
    next = end + 1;
    many = good ? fini_strtod(next, &end) : 0;
    good = good && end != next;
    bool logarithmic = good && strcmp(end, "log") == 0;
    if (!good || (*end && !logarithmic && strcmp(end, "lin") != 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%.60s' is neither FROM:TO:COUNT, with lin or log behind it, nor A,B,C",
                         text);
    if (!isfinite(from) || !isfinite(to))
        return fini_fail(err, FIN_ERR_ARGUMENT, "'%.60s': both ends must be finite", text);
    if (!(many >= 1 && many <= (double)most) || many != floor(many))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%.60s': the count must be a whole number from 1 to %lld", text,
                         (long long)most);
    if (logarithmic && !(from > 0 && to > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT, "'%.60s': a log range needs positive ends", text);
    double last = NAN;
    for (int64_t i = 0; i < (int64_t)many; i++) {
        double x = fini_range_value(from, to, logarithmic, i, (int64_t)many);
        x = whole ? round(x) : x;
        if (x == last)
            continue;
        last = x;
        if (values)
            values[*count] = x;
        ++*count;
    }
    return FIN_OK;
}
