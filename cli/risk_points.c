/* finetti risk --points: a table in, the same table with risks and gradients out.
 *
 * A column is a setting of the task, the form or the overlaps (lambda is read as lam); a setting
 * without a column has the option's value. slr with erf goes through fin_risk_erf in one call, so
 * that millions of rows take seconds; every other combination is computed row by row. */
#include "risk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_COLUMNS = 40, GRADIENT = 5, CHECK_EVERY = 4096 };

typedef struct points_column {
    const char *name; /* as written */
    cli_group *group;
    const fin_field *field;
    const double *values; /* NULL: not in the file */
} points_column;

typedef struct points {
    const char *path, *out;
    fin_table *table;
    int64_t rows;
    points_column column[MOST_COLUMNS];
    int columns;
    bool fast;      /* slr with erf, in closed form */
    bool gradient;  /* d_... columns are written */
    double *cells;  /* (rows, columns): the settings of every row */
    double *answer; /* (rows, 2 + GRADIENT): risk, risk_error, gradient */
} points;

enum { ANSWERS = 2 + GRADIENT };

/* ---- which columns -------------------------------------------------------------------------- */

/* The same setting, as on the command line: L-min is L_min, and lambda is lam. */
static bool is_name_of(const char *name, const fin_field *field)
{
    const char *own = field->name;
    if (strcmp(name, "lambda") == 0)
        return strcmp(own, "lam") == 0;
    for (; *name && (*name == *own || (*name == '-' && *own == '_')); name++, own++) {
    }
    return *name == *own;
}

static int column_of(const points *p, const fin_field *field)
{
    for (int j = 0; j < fin_table_columns(p->table); j++)
        if (is_name_of(fin_table_name(p->table, j), field))
            return j;
    return -1;
}

/* Settings that every task has and that the papers keep fixed stay out unless the file has them. */
static bool optional(const fin_field *field)
{
    return strcmp(field->name, "d") == 0 || strcmp(field->name, "m") == 0 ||
           strcmp(field->name, "L_min") == 0;
}

static bool shared_by_tasks(const fin_field *field)
{
    for (int i = 0; i < fin_task_count(); i++)
        if (!fin_settings_find(fin_task_kind_table(fin_task_at(i)), field->name))
            return false;
    return true;
}

static void add_column(points *p, cli_group *group, const fin_field *field)
{
    int j = column_of(p, field);
    if (field->type == FIN_TYPE_choice || p->columns == MOST_COLUMNS)
        return;
    points_column *column = &p->column[p->columns++];
    *column = (points_column){field->name, group, field, NULL};
    if (strcmp(field->name, "lam") == 0)
        column->name = "lambda";
    if (j >= 0) {
        column->name = fin_table_name(p->table, j);
        column->values = fin_table_values(p->table, j);
    }
}

/* pass 0: what only this task has, 1: what all tasks have, 2: those that are optional. */
static void add_columns(points *p, cli_args *args, unsigned use, int pass)
{
    for (int g = 0; g < args->group_count; g++) {
        cli_group *group = &args->groups[g];
        for (int i = 0; group->use == use && i < group->table->count; i++) {
            const fin_field *field = &group->table->fields[i];
            int place = use != CLI_USES_TASK     ? 0
                        : optional(field)        ? 2
                        : shared_by_tasks(field) ? 1
                                                 : 0;
            if (place == pass && (place < 2 || column_of(p, field) >= 0))
                add_column(p, group, field);
        }
    }
}

/* One letter too many, too few, wrong, or two of them swapped. */
static bool one_slip(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    size_t m = strlen(a), n = strlen(b);
    while (m && n && a[m - 1] == b[n - 1])
        m--, n--;
    return (m <= 1 && n <= 1) || (m == 2 && n == 2 && a[0] == b[1] && a[1] == b[0]);
}

/* Only long names: beta is another thing than eta. Of short ones, K is k in capitals. */
static bool looks_like(const char *name, const char *setting)
{
    return strcasecmp(name, setting) == 0 || (strlen(setting) >= 5 && one_slip(name, setting));
}

static bool is_setting_of(const char *name, const fin_settings *table)
{
    for (int i = 0; i < table->count; i++)
        if (is_name_of(name, &table->fields[i]))
            return true;
    return false;
}

/* A setting of another task or form, or almost the name of a setting without a column, is a slip;
 * any other unknown column is an extra and stays out. */
static int check_name(const points *p, cli_args *args, const char *name)
{
    const fin_field *field;
    if (cli_find(args, name, &field) || strcmp(name, "lambda") == 0)
        return CLI_OK;
    for (int i = 0; i < fin_task_count(); i++)
        if (is_setting_of(name, fin_task_kind_table(fin_task_at(i))))
            return cli_failed("%.200s: column '%.40s' is a setting of %s, not of %s", p->path, name,
                              fin_task_kind_name(fin_task_at(i)), fin_task_kind_name(args->kind));
    for (int i = 0; i < fin_form_count(); i++)
        if (is_setting_of(name, fin_form_table(fin_form_at(i))))
            return cli_failed("%.200s: column '%.40s' is a setting of %s, not of %s", p->path, name,
                              fin_form_name(fin_form_at(i)), fin_form_name(args->form));
    for (int i = 0; i < p->columns; i++)
        if (!p->column[i].values && looks_like(name, p->column[i].name))
            return cli_failed("%.200s: column '%.40s' is not known; did you mean %s?", p->path,
                              name, p->column[i].name);
    return CLI_OK;
}

static int check_names(const points *p, cli_args *args)
{
    int used = 0;
    for (int j = 0; j < fin_table_columns(p->table); j++) {
        int code = check_name(p, args, fin_table_name(p->table, j));
        if (code)
            return code;
    }
    for (int i = 0; i < p->columns; i++)
        used += p->column[i].values != NULL;
    if (!used)
        return cli_failed("%.200s: no column is a setting; kappa, nu, lambda, L and such are",
                          p->path);
    return CLI_OK;
}

static bool has_column(const points *p, const char *name)
{
    return column_of(p, &(fin_field){.name = name}) >= 0;
}

static int plan(points *p, cli_args *args)
{
    if (fin_table_column(p->table, "lam") >= 0 && fin_table_column(p->table, "lambda") >= 0)
        return cli_failed("%.200s: columns lam and lambda are the same setting", p->path);
    if (cli_get(args, "lengths") &&
        (fin_table_column(p->table, "L") >= 0 || fin_table_column(p->table, "L_min") >= 0))
        return cli_failed("%.200s: --lengths takes the place of column L", p->path);
    add_columns(p, args, CLI_USES_OVERLAPS, 0);
    add_columns(p, args, CLI_USES_FORM, 0);
    for (int pass = 0; pass < 3; pass++)
        add_columns(p, args, CLI_USES_TASK, pass);
    p->rows = fin_table_rows(p->table);
    /* With a column d or L_min, what is "auto" differs from row to row: the library works it out.
     */
    p->fast = strcmp(fin_task_kind_name(args->kind), "slr") == 0 &&
              strcmp(fin_form_name(args->form), "erf") == 0 &&
              args->risk.method <= FIN_METHOD_CLOSED && fin_is_auto((double)args->task.L_min) &&
              !has_column(p, "d") && !has_column(p, "L_min");
    return check_names(p, args);
}

/* ---- one row -------------------------------------------------------------------------------- */

/* Puts row i into the settings of args. */
static fin_status set_row(points *p, int64_t i, fin_error *err)
{
    for (int j = 0; j < p->columns; j++) {
        const points_column *column = &p->column[j];
        fin_error cause;
        if (column->values && fin_settings_set(column->group->table, column->group->values,
                                               column->field, column->values[i], &cause))
            return cli_status(err, FIN_ERR_FORMAT, "%.200s, line %lld, column %s: %.250s", p->path,
                              (long long)i + 2, column->name, cause.message);
    }
    return FIN_OK;
}

/* Copies what the row really used, "auto" worked out, to the output. */
static void keep_row(points *p, int64_t i, const fin_task *task)
{
    double *cells = &p->cells[i * p->columns];
    for (int j = 0; j < p->columns; j++) {
        const points_column *column = &p->column[j];
        const void *values = column->group->use == CLI_USES_TASK && !column->values
                                 ? (const void *)fin_task_get_settings(task)
                                 : column->group->values;
        cells[j] = fin_settings_get(column->field, values);
        if (fin_is_auto(cells[j]) && column->group->use == CLI_USES_FORM) {
            double lam, c; /* those of the task's posterior */
            fin_task_bayes_parameters(task, &lam, &c);
            cells[j] = strcmp(column->field->name, "lam") == 0 ? lam : c;
        }
    }
}

/* ---- slr with erf --------------------------------------------------------------------------- */

static fin_status fast_points(points *p, cli_args *args, const fin_task *task,
                              fin_risk_point *point, fin_error *err)
{
    const fin_task_settings *base = fin_task_get_settings(task), *s = &args->task;
    int L = fin_table_column(p->table, "L");
    for (int64_t i = 0; i < p->rows; i++) {
        fin_status status = set_row(p, i, err);
        if (status)
            return status;
        if (i % CHECK_EVERY == 0 && cli_cancelled())
            return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        keep_row(p, i, task);
        const fin_overlaps *o = &args->overlaps;
        point[i] = (fin_risk_point){.kappa = o->kappa,
                                    .nu = o->nu,
                                    .theta = o->theta,
                                    .eta = o->eta,
                                    .rho = o->rho,
                                    .lam = args->form_settings.lam,
                                    .gamma = s->gamma,
                                    .mu = fin_is_auto(s->mu) ? base->mu : s->mu,
                                    .eps = s->eps,
                                    .m = (double)s->m,
                                    .L_mean = L >= 0 ? (double)s->L : fin_task_length_mean(task),
                                    .L_var = L >= 0 ? 0 : fin_task_length_variance(task)};
    }
    return FIN_OK;
}

static fin_status compute_fast(points *p, cli_args *args, fin_error *err)
{
    fin_task *task = NULL;
    fin_risk_point *point = calloc((size_t)p->rows, sizeof *point);
    fin_risk_value *value = calloc((size_t)p->rows, sizeof *value);
    fin_status status = point && value
                            ? set_row(p, 0, err) /* what the table gives comes first */
                            : cli_status_memory(err, 168.0 * (double)p->rows, "the table");
    fin_error cause;
    if (!status)
        status = cli_task_create(args, &args->task, args->risk.seed, 0, &task, err);
    if (!status)
        status = fast_points(p, args, task, point, err);
    if (!status && (status = fin_risk_erf(p->rows, point, value, &cause))) {
        int64_t i = 0; /* which one, for its line */
        while (i < p->rows - 1 && fin_risk_erf(1, &point[i], value, &cause) == FIN_OK)
            i++;
        const char *reason = strchr(cause.message, ':');
        cli_status(err, FIN_ERR_FORMAT, "%.200s, line %lld%.250s", p->path, (long long)i + 2,
                   reason ? reason : "");
    }
    for (int64_t i = 0; i < p->rows && !status; i++) {
        double *answer = &p->answer[i * ANSWERS];
        answer[0] = value[i].risk;
        memcpy(&answer[2], value[i].gradient, GRADIENT * sizeof *answer);
    }
    p->gradient = true;
    fin_task_destroy(task);
    free(point);
    free(value);
    return status;
}

/* ---- everything else ------------------------------------------------------------------------ */

static fin_status compute_row(points *p, cli_args *args, int64_t i, fin_error *err)
{
    fin_task *task;
    fin_error cause = {FIN_OK, ""};
    fin_risk_report report;
    fin_status status = set_row(p, i, err);
    if (status)
        return status;
    status = cli_task_create(args, &args->task, args->risk.seed, 0, &task, &cause);
    if (!status) {
        keep_row(p, i, task);
        status = fin_risk(task, args->form, &args->form_settings, &args->overlaps, &args->risk,
                          cli_progress(), &report, &cause);
        fin_task_destroy(task);
    }
    if (status == FIN_ERR_CANCELLED)
        return cli_status(err, status, "cancelled");
    if (status)
        return cli_status(err, FIN_ERR_FORMAT, "%.200s, line %lld: %.250s", p->path,
                          (long long)i + 2, cause.message);
    double *answer = &p->answer[i * ANSWERS];
    answer[0] = report.risk.value;
    answer[1] = report.risk.error;
    for (int j = 0; j < GRADIENT; j++)
        answer[2 + j] = report.has_gradient ? report.gradient[j] : NAN;
    p->gradient = p->gradient || report.has_gradient;
    return FIN_OK;
}

static fin_status compute_rows(points *p, cli_args *args, fin_error *err)
{
    for (int64_t i = 0; i < p->rows; i++) {
        const fin_progress *progress = cli_progress();
        cli_progress_part((double)i / (double)p->rows, 1 / (double)p->rows);
        fin_status status = compute_row(p, args, i, err);
        if (!status && progress->report(progress->user, "points", 1, 1))
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            return status;
    }
    return FIN_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static fin_status write_points(points *p, fin_error *err)
{
    static const char *const answers[ANSWERS] = {"risk",    "risk_error", "d_kappa", "d_nu",
                                                 "d_theta", "d_eta",      "d_rho"};
    const char *names[MOST_COLUMNS + ANSWERS];
    double row[MOST_COLUMNS + ANSWERS];
    int used[ANSWERS], count = 0;
    for (int j = 0; j < ANSWERS; j++)
        if (j == 0 || (j == 1 && !p->fast) || (j > 1 && p->gradient))
            used[count++] = j;
    for (int j = 0; j < p->columns; j++)
        names[j] = p->column[j].name;
    for (int j = 0; j < count; j++)
        names[p->columns + j] = answers[used[j]];
    fin_csv *csv;
    fin_status status = fin_csv_open(p->out, names, p->columns + count, &csv, err);
    if (status)
        return status;
    for (int64_t i = 0; i < p->rows && !status; i++) {
        memcpy(row, &p->cells[i * p->columns], (size_t)p->columns * sizeof *row);
        for (int j = 0; j < count; j++)
            row[p->columns + j] = p->answer[i * ANSWERS + used[j]];
        status = i % CHECK_EVERY == 0 && cli_cancelled()
                     ? cli_status(err, FIN_ERR_CANCELLED, "cancelled")
                     : fin_csv_row(csv, row, err);
    }
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    return fin_csv_commit(csv, err);
}

int risk_points(cli_args *args)
{
    points p = {.path = cli_get(args, "points"),
                .out = cli_get(args, "out") ? cli_get(args, "out") : "-"};
    fin_error err = {FIN_OK, ""};
    cli_release_signals();
    fin_status read = fin_table_read(p.path, &p.table, &err);
    cli_catch_signals();
    if (read)
        return cli_failed("%s", err.message);
    int code = plan(&p, args);
    fin_status status = FIN_OK;
    if (!code) {
        p.cells = calloc((size_t)p.rows * (size_t)p.columns, sizeof *p.cells);
        p.answer = calloc((size_t)p.rows, ANSWERS * sizeof *p.answer);
        if (!p.cells || !p.answer)
            status =
                cli_status_memory(&err, 8.0 * (double)p.rows * (p.columns + ANSWERS), "the table");
        if (!status)
            status = p.fast ? compute_fast(&p, args, &err) : compute_rows(&p, args, &err);
        if (!status)
            status = write_points(&p, &err);
        code = status ? cli_error(&err) : CLI_OK;
    }
    fin_table_destroy(p.table);
    free(p.cells);
    free(p.answer);
    return code;
}
