/* A command at many points, and ranges of values.
 *
 * Every point is a run of its own, with the numbers that fin_command_run has there. Settings are applied once for all
 * points; a point changes what its columns say. */
#include "command/command.h"

#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCALARS = 256 }; /* of a command */

struct fin_sweep {
    int64_t n;
    int count;
    const char *names[SCALARS]; /* of the command's table, which lives longer */
    double *value[SCALARS], *error[SCALARS];
    fin_how how[SCALARS];
};

void fin_sweep_destroy(fin_sweep *sweep)
{
    for (int i = 0; sweep && i < sweep->count; i++)
        fini_free(sweep->value[i]);
    fini_free(sweep);
}

int fin_sweep_count(const fin_sweep *sweep)
{
    return sweep->count;
}

fin_sweep_column fin_sweep_get(const fin_sweep *sweep, int i)
{
    return (fin_sweep_column){sweep->names[i], sweep->value[i], sweep->error[i], sweep->how[i]};
}

/* ---- one point after the other --------------------------------------------------------------- */

static int place_of(const fin_sweep *sweep, const char *name)
{
    for (int i = 0; i < sweep->count; i++)
        if (strcmp(sweep->names[i], name) == 0)
            return i;
    return -1;
}

/* A column for every output that is not a series, so that the order is that of the table. */
static fin_status lay_out(fin_sweep *sweep, const fin_command *command, fin_error *err)
{
    for (const fin_output *o = command->outputs; o->name; o++) {
        if (o->meaning[0] == '(' || sweep->count == SCALARS)
            continue;
        double *room = fini_alloc_array(sweep->n, 2 * sizeof *room);
        if (!room)
            return fini_fail_memory(err, (size_t)sweep->n * 2 * sizeof *room, "the sweep");
        for (int64_t i = 0; i < 2 * sweep->n; i++)
            room[i] = NAN;
        sweep->names[sweep->count] = o->name;
        sweep->value[sweep->count] = room;
        sweep->error[sweep->count] = room + sweep->n;
        sweep->how[sweep->count++] = FIN_HOW_COUNT; /* none yet */
    }
    return FIN_OK;
}

static void keep(fin_sweep *sweep, int64_t point, const fin_result *result)
{
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        int c = place_of(sweep, scalar.name);
        if (c < 0)
            continue;
        sweep->value[c][point] = scalar.value;
        sweep->error[c][point] = scalar.error;
        bool same = sweep->how[c] == FIN_HOW_COUNT || sweep->how[c] == scalar.how;
        sweep->how[c] = same ? scalar.how : FIN_HOW_DERIVED;
    }
}

/* Columns that no point has are no columns. */
static void drop_empty(fin_sweep *sweep)
{
    int kept = 0;
    for (int i = 0; i < sweep->count; i++) {
        if (sweep->how[i] == FIN_HOW_COUNT) {
            fini_free(sweep->value[i]);
            continue;
        }
        sweep->names[kept] = sweep->names[i];
        sweep->value[kept] = sweep->value[i];
        sweep->error[kept] = sweep->error[i];
        sweep->how[kept++] = sweep->how[i];
    }
    sweep->count = kept;
}

typedef struct part {
    const fin_progress *whole;
    int64_t point, n;
} part;

static int report(void *user, const char *what, double done, double total)
{
    const part *p = user;
    double share = total > 0 ? done / total : 0;
    return fini_report(p->whole, what, (double)p->point + share, (double)p->n);
}

static fin_status one_point(const fin_command *command, fin_pair *pairs, int fixed,
                            const fin_column *columns, int column_count, part *p, fin_sweep *sweep,
                            fin_error *err)
{
    char numbers[FIN_GROUPS * 64][FINI_SHORTEST];
    const fin_progress progress = {report, p};
    fin_result *result;
    for (int c = 0; c < column_count; c++) {
        const char *text = columns[c].texts ? columns[c].texts[p->point] : numbers[c];
        if (!columns[c].texts)
            fini_shortest(columns[c].numbers[p->point], numbers[c]);
        pairs[fixed + c] = (fin_pair){columns[c].name, text, NULL};
    }
    fin_status status =
        fin_command_run(command, pairs, fixed + column_count, &progress, &result, err);
    if (status)
        return status;
    keep(sweep, p->point, result);
    fin_result_destroy(result);
    if (fini_report(p->whole, command->name, (double)p->point + 1, (double)p->n))
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    return FIN_OK;
}

fin_status fin_command_sweep(const fin_command *command, const fin_pair *pairs, int count,
                             const fin_column *columns, int column_count, int64_t n,
                             const fin_progress *progress, fin_sweep **out, int64_t *bad,
                             fin_error *err)
{
    int64_t own;
    bad = bad ? bad : &own;
    *bad = -1;
    if (out)
        *out = NULL;
    if (!command || !out || n < 0 || count < 0 || (count && !pairs) || column_count < 0 ||
        column_count > FIN_GROUPS * 64 || (column_count && !columns))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "fin_command_sweep needs a command, a place for the result, and as many "
                         "pairs, columns and points as it is told");
    fin_pair *all = fini_alloc_array((int64_t)count + column_count, sizeof *all);
    fin_sweep *sweep = fini_alloc(sizeof *sweep);
    fin_status status = FIN_OK;
    if (sweep)
        *sweep = (fin_sweep){.n = n};
    if (!all || !sweep)
        status = fini_fail_memory(err, sizeof *sweep, "the sweep");
    if (!status)
        status = lay_out(sweep, command, err);
    if (!status && count)
        memcpy(all, pairs, (size_t)count * sizeof *all);
    for (part p = {progress, 0, n}; p.point < n && !status; p.point++) {
        status = one_point(command, all, count, columns, column_count, &p, sweep, err);
        *bad = status ? p.point : -1;
    }
    fini_free(all);
    if (status) {
        fin_sweep_destroy(sweep);
        return status;
    }
    drop_empty(sweep);
    *out = sweep;
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
