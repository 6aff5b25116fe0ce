/* --sweep and --points: a command at many points, as a table.
 *
 * All points are computed before the first line is written, so that a failure leaves nothing behind;
 * values are looked at and the output is tried before the work, so that a slip is found at once. */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_AXES = 8, MOST_POINTS = 1000000 };

static void *take(plan *p, size_t bytes)
{
    void *memory = p->owned_count < MOST_SETTINGS ? malloc(bytes ? bytes : 1) : NULL;
    if (memory)
        p->owned[p->owned_count++] = memory;
    return memory;
}

/* ---- the axes of a grid ---------------------------------------------------------------------- */

typedef struct axis {
    char name[CLI_NAME];
    const char *text;
    int64_t count;
    double *numbers;    /* [count], or */
    const char **words; /* [count], cut out of a copy of the text */
} axis;

static int no_memory(int64_t points)
{
    return cli_failed("not enough memory for %lld points", (long long)points);
}

static int read_name(const cli_args *args, const char *option, axis *a)
{
    size_t length = strcspn(option, "=");
    if (!option[length] || length == 0 || length >= sizeof a->name)
        return cli_usage("--sweep '%.60s' has no NAME=, as in lam=0.01:3:100log", option);
    for (size_t i = 0; i < length; i++)
        a->name[i] = option[i] == '-' ? '_' : option[i];
    a->name[length] = '\0';
    a->text = option + length + 1;
    if (cli_given(args, a->name))
        return cli_usage("%s is both given and swept; leave one out", a->name);
    return CLI_OK;
}

static int read_words(plan *p, axis *a)
{
    char *copy = take(p, strlen(a->text) + 1);
    a->count = 1;
    for (const char *c = a->text; *c; c++)
        a->count += *c == ',';
    a->words = take(p, (size_t)a->count * sizeof *a->words);
    if (!copy || !a->words)
        return no_memory(a->count);
    strcpy(copy, a->text);
    for (int64_t i = 0; i < a->count; i++) {
        a->words[i] = copy;
        copy += strcspn(copy, ",");
        *copy++ = '\0';
    }
    return CLI_OK;
}

static int read_numbers(plan *p, const cli_args *args, const fin_group *group,
                        const fin_field *field, axis *a)
{
    fin_error err = {FIN_OK, ""};
    unsigned char scratch[4096];
    bool whole = field->type == FIN_TYPE_int64_t;
    if (group->table->size > sizeof scratch)
        return cli_failed("the settings of %s are too large", args->settings->name);
    if (fin_range_read(a->text, whole, MOST_POINTS, NULL, &a->count, &err))
        return cli_usage("%s: %s", a->name, err.message);
    a->numbers = take(p, (size_t)a->count * sizeof *a->numbers);
    if (!a->numbers)
        return no_memory(a->count);
    fin_range_read(a->text, whole, MOST_POINTS, a->numbers, &a->count, &err);
    for (int64_t i = 0; i < a->count; i++)
        if (fin_settings_set(group->table, scratch, field, a->numbers[i], &err))
            return cli_usage("%s", err.message);
    return CLI_OK;
}

/* Tables are those that the options and the first value of every word that is swept choose. */
static int choose_tables(cli_args *args, const axis *axes, int count)
{
    int given = args->pair_count;
    fin_error err = {FIN_OK, ""};
    for (int k = 0; k < count; k++)
        if (axes[k].words)
            cli_add(args, axes[k].name, axes[k].words[0]);
    fin_status status =
        fin_command_tables(args->settings, args->values, args->pairs, args->pair_count,
                           args->groups, &args->group_count, NULL, &err);
    args->pair_count = given;
    return status ? cli_usage("%s", err.message) : CLI_OK;
}

static int read_row(plan *p, cli_args *args, axis *a)
{
    const fin_group *group = NULL;
    const fin_field *field = cli_field(args, a->name, &group);
    int given = args->pair_count;
    fin_error err = {FIN_OK, ""};
    if (field)
        return field->type == FIN_TYPE_choice ? read_words(p, a)
                                              : read_numbers(p, args, group, field, a);
    cli_add(args, a->name, a->text); /* the library says what is wrong with it */
    fin_command_apply(args->settings, args->values, args->pairs, args->pair_count, NULL, &err);
    args->pair_count = given;
    return cli_usage("%s", err.message);
}

static int make_grid(plan *p, const axis *axes, int count)
{
    p->n = 1;
    for (int k = 0; k < count; k++) {
        for (int j = 0; j < k; j++)
            if (strcmp(axes[j].name, axes[k].name) == 0)
                return cli_usage("%s is swept twice", axes[k].name);
        p->n *= axes[k].count;
        if (p->n > MOST_POINTS)
            return cli_usage("the grid has more than %d points", MOST_POINTS);
    }
    int64_t inner = p->n;
    for (int k = 0; k < count; k++) {
        const axis *a = &axes[k];
        double *numbers = a->numbers ? take(p, (size_t)p->n * sizeof *numbers) : NULL;
        const char **words = a->numbers ? NULL : take(p, (size_t)p->n * sizeof *words);
        if (!numbers && !words)
            return no_memory(p->n);
        inner /= a->count;
        for (int64_t i = 0; i < p->n; i++)
            if (numbers)
                numbers[i] = a->numbers[i / inner % a->count];
            else
                words[i] = a->words[i / inner % a->count];
        strcpy(p->names[k], a->name);
        p->titles[k] = p->names[k];
        p->columns[k] = (fin_column){p->names[k], numbers, words};
    }
    p->count = count;
    return CLI_OK;
}

static int plan_sweep(plan *p, cli_args *args)
{
    static axis axes[MOST_AXES];
    int count, code = CLI_OK;
    const char *const *sweeps = cli_list(args, "sweep", &count);
    memset(axes, 0, sizeof axes);
    if (count > MOST_AXES)
        return cli_usage("at most %d settings can be swept at once", MOST_AXES);
    for (int k = 0; k < count && !code; k++)
        code = read_name(args, sweeps[k], &axes[k]);
    for (int k = 0; k < count && !code; k++)
        if (cli_is_word(args, axes[k].name))
            code = read_words(p, &axes[k]);
    if (!code)
        code = choose_tables(args, axes, count);
    for (int k = 0; k < count && !code; k++)
        if (!axes[k].words)
            code = read_row(p, args, &axes[k]);
    return code ? code : make_grid(p, axes, count);
}

/* ---- a file of points ------------------------------------------------------------------------ */

/* The setting that a column names, as on the command line: L-min is L_min, and lambda is lam. */
static char *setting_of(const char *column, char name[CLI_NAME])
{
    snprintf(name, CLI_NAME, "%.63s", strcmp(column, "lambda") == 0 ? "lam" : column);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return name;
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

static bool has_column(const plan *p, const char *setting)
{
    char name[CLI_NAME];
    for (int j = 0; j < fin_table_columns(p->table); j++)
        if (strcmp(setting_of(fin_table_name(p->table, j), name), setting) == 0)
            return true;
    return false;
}

/* The first choice of a word, such as task spiked, with which there is such a setting; or NULL. */
static const char *owner_of(const cli_args *args, const char *name, const char **chosen)
{
    static _Alignas(max_align_t) unsigned char values[CLI_VALUES];
    fin_group groups[FIN_GROUPS];
    int count;
    for (const fin_word *word = args->settings->words; word->name; word++)
        for (int i = 0; fin_word_choice(word, i); i++) {
            const fin_pair other = {word->name, fin_word_choice(word, i), NULL};
            if (fin_command_tables(args->settings, values, &other, 1, groups, &count, NULL, NULL))
                continue;
            *chosen = cli_word_text(args, word->name);
            for (int g = 0; g < count; g++)
                if (fin_settings_find(groups[g].table, name))
                    return other.text;
        }
    return NULL;
}

/* A setting of another task, form or family, or almost the name of a setting without a column, is a
 * slip; any other unknown column is an extra and stays out. */
static int check_column(const plan *p, const cli_args *args, const char *column)
{
    char name[CLI_NAME];
    const char *chosen, *owner = owner_of(args, setting_of(column, name), &chosen);
    if (owner)
        return cli_failed("%.200s: column '%.40s' is a setting of %s, not of %s", p->path, column,
                          owner, chosen);
    for (int g = 0; g < args->group_count; g++)
        for (int i = 0; i < args->groups[g].table->count; i++) {
            const char *setting = args->groups[g].table->fields[i].name;
            if (!has_column(p, setting) && looks_like(name, setting))
                return cli_failed("%.200s: column '%.40s' is not known; did you mean %s?", p->path,
                                  column, setting);
        }
    return CLI_OK;
}

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end != text && !*end;
}

/* Every value against its range, so that the message can name line and column. */
static int check_values(const plan *p, int j, const fin_group *group, const fin_field *field)
{
    unsigned char scratch[4096];
    const double *values = fin_table_values(p->table, j);
    const char *column = fin_table_name(p->table, j);
    fin_error err = {FIN_OK, ""};
    for (int64_t i = 0; i < p->n && fin_table_texts(p->table, j) > 0; i++) {
        const char *text =
            isnan(values[i]) ? "" : fin_table_text(p->table, j, (int64_t)values[i] - 1);
        if (!is_number(text) && !strpbrk(text, "()^*/+-"))
            return cli_failed("%.200s, line %lld, column %s: '%.40s' is not a number", p->path,
                              (long long)i + 2, column, text);
    }
    for (int64_t i = 0;
         i < p->n && !fin_table_texts(p->table, j) && group->table->size <= sizeof scratch; i++)
        if (fin_settings_set(group->table, scratch, field, values[i], &err))
            return cli_failed("%.200s, line %lld, column %s: %.250s", p->path, (long long)i + 2,
                              column, err.message);
    return CLI_OK;
}

/* Words and choices: a text for every point. */
static int take_texts(plan *p, int j)
{
    const double *values = fin_table_values(p->table, j);
    const char **texts = take(p, (size_t)p->n * sizeof *texts);
    if (!texts)
        return no_memory(p->n);
    for (int64_t i = 0; i < p->n; i++) {
        if (fin_table_texts(p->table, j) == 0 || isnan(values[i]))
            return cli_failed("%.200s, line %lld: column %s has no word", p->path, (long long)i + 2,
                              fin_table_name(p->table, j));
        texts[i] = fin_table_text(p->table, j, (int64_t)values[i] - 1);
    }
    p->columns[p->count].texts = texts;
    return CLI_OK;
}

static int add_file_column(plan *p, const cli_args *args, int j)
{
    const char *column = fin_table_name(p->table, j);
    const fin_group *group = NULL;
    char name[CLI_NAME];
    const fin_field *field = cli_field(args, setting_of(column, name), &group);
    bool text = cli_is_word(args, name) || (field && field->type == FIN_TYPE_choice);
    if (!field && !text)
        return check_column(p, args, column);
    for (int k = 0; k < p->count; k++)
        if (strcmp(p->names[k], name) == 0)
            return cli_failed("%.200s: columns %s and %s are the same setting", p->path,
                              strcmp(name, "lam") == 0 ? "lam" : name,
                              strcmp(name, "lam") == 0 ? "lambda" : column);
    if (p->count == MOST_SETTINGS)
        return cli_failed("%.200s: more than %d columns are settings", p->path, MOST_SETTINGS);
    strcpy(p->names[p->count], name);
    p->titles[p->count] = column;
    p->columns[p->count] = (fin_column){p->names[p->count], NULL, NULL};
    int code = text ? CLI_OK : check_values(p, j, group, field);
    text = text || fin_table_texts(p->table, j) > 0; /* formulas of other settings */
    if (text && !code)
        code = take_texts(p, j);
    if (!text)
        p->columns[p->count].numbers = fin_table_values(p->table, j);
    p->count++;
    return code;
}

static int plan_columns(plan *p, const cli_args *args)
{
    p->n = fin_table_rows(p->table);
    for (int j = 0; j < fin_table_columns(p->table); j++)
        CLI_TRY(add_file_column(p, args, j));
    if (!p->count)
        return cli_failed("%.200s: no column is a setting; 'finetti help %s' lists them", p->path,
                          args->command->name);
    return CLI_OK;
}

static int plan_points(plan *p, const cli_args *args)
{
    fin_error err = {FIN_OK, ""};
    p->path = cli_get(args, "points");
    cli_release_signals();
    fin_status status = fin_table_read_texts(p->path, &p->table, &err);
    cli_catch_signals();
    return status ? cli_failed("%s", err.message) : plan_columns(p, args);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Which point it was: the line of a file, or the values of what is swept. */
static int blame_point(const plan *p, int64_t bad, const fin_error *err)
{
    char point[256] = "";
    if (err->status == FIN_ERR_CANCELLED || bad < 0)
        return cli_error(err);
    if (p->path)
        return cli_failed("%.200s, line %lld: %.250s", p->path, (long long)bad + 2, err->message);
    for (int k = 0; k < p->count && (p->columns[k].texts || p->columns[k].numbers); k++) {
        char number[32];
        size_t used = strlen(point);
        snprintf(point + used, sizeof point - used, "%s%s=%s", k ? " " : "", p->columns[k].name,
                 p->columns[k].texts
                     ? p->columns[k].texts[bad]
                     : cli_number(p->columns[k].numbers[bad], number, sizeof number));
    }
    return err->status == FIN_ERR_ARGUMENT ? cli_usage("%s: %s", point, err->message)
                                           : cli_failed("%s: %s", point, err->message);
}

/* The settings of a point. */
static fin_status apply_point(const plan *p, cli_args *args, int64_t point, fin_error *err)
{
    int given = args->pair_count;
    char text[MOST_SETTINGS][32];
    for (int k = 0; k < p->count && p->n > 0; k++)
        if (p->columns[k].texts || p->columns[k].numbers)
            cli_add(args, p->names[k],
                    p->columns[k].texts
                        ? p->columns[k].texts[point]
                        : cli_number(p->columns[k].numbers[point], text[k], sizeof text[k]));
    CLI_TRY(
        fin_command_apply(args->settings, args->values, args->pairs, args->pair_count, NULL, err));
    args->pair_count = given;
    return FIN_OK;
}

/* What is shown of the settings is that of the first point, with "auto" worked out. */
static fin_status settle(const plan *p, cli_args *args, fin_error *err)
{
    CLI_TRY(apply_point(p, args, 0, err));
    return fin_command_settle(args->settings, args->values, err);
}

/* ---- formulas: numbers that differ from point to point ----------------------------------------- */

/* Is this setting a number, and does the text say how to work it out? */
static bool follows(const cli_args *args, const char *name, const char *text)
{
    const fin_group *group;
    const fin_field *field = cli_field(args, name, &group);
    return field && field->type != FIN_TYPE_choice && strcmp(text, "auto") != 0 && !is_number(text);
}

/* The number that a setting has at the point that was applied last; NaN if it has none there. */
static double number_now(cli_args *args, const char *name)
{
    fin_group groups[FIN_GROUPS];
    int count = 0;
    double number = NAN;
    fin_command_groups(args->settings, args->values, groups, &count, NULL);
    for (int g = 0; g < count && isnan(number); g++)
        number = fin_settings_get(fin_settings_find(groups[g].table, name), groups[g].values);
    return number;
}

/* Options that are formulas become columns, so that the table shows their numbers. */
static void add_formulas(plan *p, const cli_args *args)
{
    for (int i = 0; i < args->pair_count && p->count < MOST_SETTINGS; i++) {
        const char *name = args->pairs[i].name;
        int k = 0;
        while (k < p->count && strcmp(p->names[k], name) != 0)
            k++;
        if (k < p->count || strlen(name) >= CLI_NAME || !follows(args, name, args->pairs[i].text))
            continue;
        strcpy(p->names[k], name);
        p->titles[k] = p->names[k];
        p->columns[k] = (fin_column){p->names[k], NULL, NULL};
        p->count++;
    }
}

/* The numbers of all columns that are formulas. */
static int work_out(plan *p, cli_args *args)
{
    double *numbers[MOST_SETTINGS] = {NULL};
    fin_error err = {FIN_OK, ""};
    int wanted = 0;
    add_formulas(p, args);
    for (int k = 0; k < p->count; k++) {
        bool formula = !p->columns[k].numbers && !p->columns[k].texts;
        for (int64_t i = 0; i < p->n && !formula && p->columns[k].texts; i++)
            formula = follows(args, p->names[k], p->columns[k].texts[i]);
        if (formula && !(numbers[k] = take(p, (size_t)(p->n + 1) * sizeof *numbers[k])))
            return no_memory(p->n);
        wanted += formula;
    }
    for (int64_t i = 0; i < p->n && wanted; i++) {
        if (apply_point(p, args, i, &err))
            return blame_point(p, i, &err);
        for (int k = 0; k < p->count; k++)
            if (numbers[k])
                numbers[k][i] = number_now(args, p->names[k]);
    }
    for (int k = 0; k < p->count; k++)
        if (numbers[k])
            p->columns[k] = (fin_column){p->names[k], numbers[k], NULL};
    return CLI_OK;
}

static int compute(const plan *p, cli_args *args, int (*head)(const cli_args *args))
{
    const char *out = cli_get(args, "out");
    fin_sweep *sweep = NULL;
    int64_t bad = -1;
    fin_error err = {FIN_OK, ""};
    if (out && cli_try_output(out, &err))
        return cli_error(&err);
    if (fin_command_sweep(args->settings, args->pairs, args->pair_count,
                          &(fin_sweep_points){p->n, p->columns, p->count}, cli_progress(), &sweep,
                          &bad, &err))
        return blame_point(p, bad, &err);
    cli_progress_end();
    int code = settle(p, args, &err) ? cli_error(&err) : cli_sweep_show(p, args, sweep, head);
    fin_sweep_destroy(sweep);
    return code;
}

static void release(plan *p)
{
    fin_table_destroy(p->table);
    for (int i = 0; i < p->owned_count; i++)
        free(p->owned[i]);
}

int cli_sweep(cli_args *args, int (*head)(const cli_args *args))
{
    static plan p;
    memset(&p, 0, sizeof p);
    int code = cli_get(args, "points") ? plan_points(&p, args) : plan_sweep(&p, args);
    if (!code)
        code = work_out(&p, args);
    if (!code)
        code = compute(&p, args, head);
    release(&p);
    return code;
}
