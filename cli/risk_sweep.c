/* finetti risk --sweep: a curve or a grid, as CSV.
 *
 * All points are computed before the first line is written, so that a failure leaves nothing
 * behind; the output is opened before the work, so that a folder that is not there is found at
 * once. */
#include "risk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 2, MOST_POINTS = 1000000, COLUMNS = 16 };

typedef struct sweep_axis {
    cli_group *group;
    const fin_field *field;
    double *values;
    int64_t count;
} sweep_axis;

/* ---- reading NAME=RANGE --------------------------------------------------------------------- */

static int64_t count_commas(const char *text)
{
    int64_t count = 0;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

static bool read_list(const char *text, double *values, int64_t *count)
{
    for (;;) {
        char *end;
        values[(*count)++] = strtod(text, &end);
        if (end == text || (*end && *end != ','))
            return false;
        if (!*end)
            return true;
        text = end + 1;
    }
}

/* The i-th of n numbers from a to b, ends included exactly. */
static double between(double a, double b, int64_t i, int64_t n, bool logarithmic)
{
    if (i == 0)
        return a;
    if (i == n - 1)
        return b;
    double part = (double)i / (double)(n - 1);
    return logarithmic ? exp(log(a) + part * (log(b) - log(a))) : a + part * (b - a);
}

typedef struct range {
    double from, to;
    int64_t count;
    bool logarithmic;
} range;

static int read_range(const char *option, const char *text, range *r)
{
    double count;
    char scale[8] = "";
    int used = 0;
    int found =
        sscanf(text, "%lf:%lf:%lf%n%7[a-z]%n", &r->from, &r->to, &count, &used, scale, &used);
    if (found < 3 || text[used])
        return cli_usage(
            "--sweep '%.60s' is neither NAME=FROM:TO:COUNT, with lin or log behind it, "
            "nor NAME=A,B,C",
            option);
    r->logarithmic = strcmp(scale, "log") == 0;
    if (*scale && !r->logarithmic && strcmp(scale, "lin") != 0)
        return cli_usage("--sweep: '%s' is not lin or log", scale);
    if (!isfinite(r->from) || !isfinite(r->to))
        return cli_usage("--sweep '%.60s': both ends must be finite", option);
    if (!(count >= 1 && count <= MOST_POINTS) || count != floor(count))
        return cli_usage("--sweep '%.60s': the count must be a whole number from 1 to %d", option,
                         MOST_POINTS);
    if (r->logarithmic && !(r->from > 0 && r->to > 0))
        return cli_usage("--sweep '%.60s': a log sweep needs positive ends", option);
    r->count = (int64_t)count;
    return CLI_OK;
}

/* Checks every value against the setting's range; whole numbers are rounded, and kept once. */
static int check_values(sweep_axis *axis, bool rounding)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < axis->count; i++) {
        double value = axis->values[i];
        if (rounding && axis->field->type == FIN_TYPE_int64_t)
            value = nearbyint(value);
        if (rounding && kept && value == axis->values[kept - 1])
            continue;
        fin_error err;
        if (fin_settings_set(axis->group->table, axis->group->values, axis->field, value, &err))
            return cli_usage("--sweep: %s", err.message);
        axis->values[kept++] = value;
    }
    axis->count = kept;
    return CLI_OK;
}

static int find_axis(cli_args *args, const char *option, sweep_axis *axis)
{
    const unsigned allowed = CLI_USES_TASK | CLI_USES_FORM | CLI_USES_OVERLAPS;
    char name[64], hint[96];
    size_t length = strcspn(option, "=");
    if (!option[length] || length >= sizeof name)
        return cli_usage("--sweep '%.60s' has no NAME=, as in lam=0.01:3:100log", option);
    memcpy(name, option, length);
    name[length] = '\0';
    axis->group = cli_find(args, name, &axis->field);
    if (!axis->group || !(axis->group->use & allowed) || axis->field->type == FIN_TYPE_choice) {
        cli_suggest(args, allowed, name, hint, sizeof hint);
        return cli_usage("--sweep: task %s and form %s have no setting '%.40s'%s",
                         fin_task_kind_name(args->kind), fin_form_name(args->form), name, hint);
    }
    if (cli_given(args, axis->field->name))
        return cli_usage("%s is both given and swept; leave one out", axis->field->name);
    if (cli_get(args, "lengths") && name[0] == 'L')
        return cli_usage("--lengths takes the place of L; it cannot be swept");
    return CLI_OK;
}

static int read_axis(cli_args *args, const char *option, sweep_axis *axis)
{
    int code = find_axis(args, option, axis);
    if (code)
        return code;
    const char *text = strchr(option, '=') + 1;
    range r;
    bool list = !strchr(text, ':');
    if (!list && (code = read_range(option, text, &r)))
        return code;
    int64_t room = list ? count_commas(text) + 1 : r.count;
    axis->values = malloc((size_t)room * sizeof *axis->values);
    if (!axis->values)
        return cli_failed("not enough memory for %lld points", (long long)room);
    if (list && !read_list(text, axis->values, &axis->count))
        return cli_usage("--sweep '%.60s': the list holds something that is not a number", option);
    for (; !list && axis->count < r.count; axis->count++)
        axis->values[axis->count] = between(r.from, r.to, axis->count, r.count, r.logarithmic);
    return check_values(axis, !list);
}

/* ---- computing ------------------------------------------------------------------------------ */

typedef struct sweep {
    sweep_axis axis[MOST_AXES];
    int axes;
    int64_t total;
    unsigned show;
    bool parts; /* the risk comes in parts */
    risk_numbers *numbers;
    fin_task_settings previous; /* of the last point; linear and Bayes depend on these alone */
} sweep;

static void set_point(sweep *s, int64_t i)
{
    for (int a = s->axes - 1; a >= 0; a--) {
        sweep_axis *axis = &s->axis[a];
        fin_error err;
        fin_settings_set(axis->group->table, axis->group->values, axis->field,
                         axis->values[i % axis->count], &err);
        i /= axis->count;
    }
}

static fin_status compute_point(cli_args *args, sweep *s, int64_t i, fin_error *err)
{
    unsigned show = s->show;
    bool same = i > 0 && memcmp(&s->previous, &args->task, sizeof args->task) == 0;
    if (same)
        show &= ~(unsigned)RISK_SHOW_bayes;
    fin_task *task;
    fin_status status = cli_task_create(args, &args->task, args->risk.seed, 0, &task, err);
    if (status)
        return status;
    status = risk_evaluate(args, task, show, &s->numbers[i], err);
    fin_task_destroy(task);
    if (same) {
        s->numbers[i].bayes = s->numbers[i - 1].bayes;
        s->numbers[i].has_bayes = s->numbers[i - 1].has_bayes;
    }
    s->previous = args->task;
    return status;
}

static fin_status compute(cli_args *args, sweep *s, fin_error *err)
{
    for (int64_t i = 0; i < s->total; i++) {
        set_point(s, i);
        cli_progress_part((double)i / (double)s->total, 1 / (double)s->total);
        fin_status status = compute_point(args, s, i, err);
        const fin_progress *progress = cli_progress();
        if (!status && progress->report(progress->user, "sweep", 1, 1))
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            return status;
    }
    s->parts = s->show & RISK_SHOW_risk && s->numbers[0].risk.has_parts;
    return FIN_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A row, or with n == NULL the names; one list of columns for both. */
static int fill(const sweep *s, const risk_numbers *n, const char **names, double *row)
{
    int j = s->axes;
#define COLUMN(name, value) (n ? (void)(row[j] = (value)) : (void)(names[j] = (name)), j++)
    if (s->show & RISK_SHOW_risk) {
        COLUMN("risk", n->risk.risk.value);
        COLUMN("risk_error", n->risk.risk.error);
    }
    if (s->parts) {
        COLUMN("signal", n->risk.has_parts ? n->risk.signal : NAN);
        COLUMN("noise", n->risk.has_parts ? n->risk.noise : NAN);
        COLUMN("bias", n->risk.has_parts ? n->risk.bias : NAN);
    }
    if (s->show & RISK_SHOW_oracle) {
        COLUMN("oracle", n->oracle.risk.value);
        COLUMN("oracle_error", n->oracle.risk.error);
    }
    if (s->show & RISK_SHOW_star) {
        COLUMN("lam_star", n->has_star ? n->lam_star : NAN);
        COLUMN("star", n->has_star ? n->star.value : NAN);
        COLUMN("star_error", n->has_star ? n->star.error : NAN);
    }
    if (s->show & RISK_SHOW_linear)
        COLUMN("linear", n->linear.value);
    if (s->show & RISK_SHOW_bayes) {
        COLUMN("bayes", n->has_bayes ? n->bayes.value : NAN);
        COLUMN("bayes_error", n->has_bayes ? n->bayes.error : NAN);
    }
#undef COLUMN
    return j;
}

static fin_status write_rows(const sweep *s, const char *path, fin_error *err)
{
    const char *names[COLUMNS];
    double row[COLUMNS];
    fin_csv *csv;
    for (int a = 0; a < s->axes; a++)
        names[a] = s->axis[a].field->name;
    fin_status status = fin_csv_open(path, names, fill(s, NULL, names, row), &csv, err);
    if (status)
        return status;
    for (int64_t i = 0; i < s->total && !status; i++) {
        int64_t rest = i;
        for (int a = s->axes - 1; a >= 0; a--) {
            row[a] = s->axis[a].values[rest % s->axis[a].count];
            rest /= s->axis[a].count;
        }
        fill(s, &s->numbers[i], names, row);
        status = fin_csv_row(csv, row, err);
    }
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    return fin_csv_commit(csv, err);
}

/* ---- running -------------------------------------------------------------------------------- */

static int prepare(cli_args *args, sweep *s)
{
    int code = risk_show(args, ~(unsigned)RISK_SHOW_star, &s->show);
    int count;
    const char *const *sweeps = cli_list(args, "sweep", &count);
    if (!code && count > MOST_AXES)
        code = cli_usage("at most %d settings can be swept at once", MOST_AXES);
    s->total = 1;
    for (int a = 0; a < count && !code; a++) {
        code = read_axis(args, sweeps[a], &s->axis[a]);
        s->axes = a + 1;
        s->total *= s->axis[a].count;
    }
    if (code)
        return code;
    if (s->axes == 2 && s->axis[0].field == s->axis[1].field)
        return cli_usage("%s is swept twice", s->axis[0].field->name);
    if (s->total > MOST_POINTS)
        return cli_usage("the grid has %lld points; at most %d are possible", (long long)s->total,
                         MOST_POINTS);
    s->numbers = calloc((size_t)s->total, sizeof *s->numbers);
    if (!s->numbers)
        return cli_failed("not enough memory for %lld points", (long long)s->total);
    return CLI_OK;
}

int risk_sweep(cli_args *args)
{
    sweep s = {.axes = 0};
    fin_error err = {FIN_OK, ""};
    const char *path = cli_get(args, "out") ? cli_get(args, "out") : "-";
    int code = prepare(args, &s);
    if (!code &&
        (cli_try_output(path, &err) || compute(args, &s, &err) || write_rows(&s, path, &err)))
        code = cli_error(&err);
    for (int a = 0; a < s.axes; a++)
        free(s.axis[a].values);
    free(s.numbers);
    return code;
}
