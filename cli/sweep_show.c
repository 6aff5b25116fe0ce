/* What many points leave: columns in a file, JSON, or a table for people. */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Errors are written where there are some. */
static bool has_errors(const double *error, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (error[i] > 0)
            return true;
    return false;
}

static int gather(const plan *p, const fin_sweep *sweep, cli_column columns[CLI_COLUMNS + 1])
{
    int count = 0;
    for (int k = 0; k < p->count; k++) {
        cli_add_column(columns, &count, p->titles[k], "", p->columns[k].numbers);
        columns[k].texts = p->columns[k].texts;
    }
    for (int i = 0; i < fin_sweep_count(sweep); i++) {
        fin_sweep_column c = fin_sweep_get(sweep, i);
        cli_add_column(columns, &count, c.name, "", c.value);
        if (has_errors(c.error, p->n))
            cli_add_column(columns, &count, c.name, "_error", c.error);
    }
    columns[count].name[0] = '\0';
    return count;
}

static int print_json(const cli_args *args, const plan *p, const fin_sweep *sweep,
                      const cli_column *columns, int count)
{
    json_t *points = json_object(), *how = json_object();
    for (int j = 0; j < count; j++) {
        json_t *list = json_array();
        for (int64_t i = 0; i < p->n; i++)
            json_array_append_new(list, columns[j].texts ? json_string(columns[j].texts[i])
                                                         : cli_json_number(columns[j].values[i]));
        json_object_set_new(points, columns[j].name, list);
    }
    for (int i = 0; i < fin_sweep_count(sweep); i++) {
        fin_sweep_column c = fin_sweep_get(sweep, i);
        json_object_set_new(how, c.name, json_string(fin_how_name(c.how)));
    }
    json_t *settings = cli_json_all_settings(args);
    for (int k = 0; k < p->count; k++)
        json_object_del(settings, p->names[k]);
    return cli_print_json(json_pack("{s:s, s:o, s:o, s:o}", "command", args->settings->name,
                                    "settings", settings, "points", points, "how", how));
}

/* ---- as a table ------------------------------------------------------------------------------ */

enum { CELL = 24 };

/* Is the point made by a few samples? Such numbers have a flag of their own. */
static bool is_rare(const fin_sweep *sweep, const char *name, int64_t point)
{
    char flag[80];
    snprintf(flag, sizeof flag, "%s_rare", name);
    for (int i = 0; i < fin_sweep_count(sweep); i++) {
        fin_sweep_column c = fin_sweep_get(sweep, i);
        if (strcmp(c.name, flag) == 0)
            return c.value[point] == 1;
    }
    return false;
}

static bool is_flag(const char *name)
{
    return cli_ends_with(name, "_rare");
}

static void print_cell(const fin_sweep *sweep, const fin_sweep_column *c, int64_t i, bool last)
{
    char text[64] = "-";
    if (is_rare(sweep, c->name, i))
        snprintf(text, sizeof text, "%.6g (!)", c->value[i]);
    else if (c->error[i] > 0 && isfinite(c->value[i]))
        snprintf(text, sizeof text, "%.6g +- %.1g", c->value[i], c->error[i]);
    else if (!isnan(c->value[i]))
        snprintf(text, sizeof text, "%.8g", c->value[i]);
    printf(" %-*s%s", last ? 0 : CELL - 2, text, last ? "\n" : "");
}

/* What a column is, in the words of the command's reference. */
static const char *meaning_of(const fin_command *row, const char *name)
{
    const fin_output *o = row ? row->outputs : NULL;
    while (o && o->name && strcmp(o->name, name) != 0)
        o++;
    return o && o->name ? o->meaning : "";
}

static void print_how(const fin_command *row, const fin_sweep *sweep, const fin_sweep_column *c,
                      int64_t n)
{
    fin_scalar s = {.name = c->name, .how = c->how, .samples = c->samples ? c->samples[n - 1] : 0};
    char how[128];
    bool rare = false;
    for (int64_t i = 0; i < n; i++)
        rare = rare || is_rare(sweep, c->name, i);
    printf("%-12s %-26s %s%s\n", c->name, cli_scalar_how(&s, how, sizeof how),
           meaning_of(row, c->name),
           rare ? "; (!): made by a few samples, most likely too small" : "");
}

/* What is swept, at a point. */
static const char *setting_at(const fin_column *c, int64_t i, char text[32])
{
    return c->texts ? c->texts[i] : cli_number(c->numbers[i], text, 32);
}

static int print_table(const plan *p, const cli_args *args, const fin_sweep *sweep)
{
    fin_sweep_column shown[CLI_COLUMNS];
    char text[32];
    int count = 0, width[MOST_SETTINGS];
    for (int k = 0; k < p->count; k++) {
        width[k] = 7;
        for (int64_t i = 0; i < p->n; i++)
            width[k] = (int)fmax(width[k], (double)strlen(setting_at(&p->columns[k], i, text)));
    }
    for (int i = 0; i < fin_sweep_count(sweep) && count < CLI_COLUMNS; i++) {
        shown[count] = fin_sweep_get(sweep, i);
        count += !is_flag(shown[count].name);
    }
    for (int k = 0; k < p->count; k++)
        printf("%-*s ", width[k], p->titles[k]);
    for (int i = 0; i < count; i++)
        printf(" %-*s%s", i == count - 1 ? 0 : CELL - 2, shown[i].name, i == count - 1 ? "\n" : "");
    for (int64_t i = 0; i < p->n; i++) {
        for (int k = 0; k < p->count; k++)
            printf("%-*s ", width[k], setting_at(&p->columns[k], i, text));
        for (int j = 0; j < count; j++)
            print_cell(sweep, &shown[j], i, j == count - 1);
    }
    putchar('\n');
    for (int k = 0; k < p->count; k++) {
        const fin_group *group;
        const fin_field *field = cli_field(args, p->names[k], &group);
        if (field)
            printf("%-12s %-26s %s\n", field->name, "setting", field->meaning);
    }
    for (int j = 0; j < count; j++)
        print_how(args->settings, sweep, &shown[j], p->n);
    return cli_flush();
}

int cli_sweep_show(const plan *p, const cli_args *args, const fin_sweep *sweep,
                   int (*head)(const cli_args *args))
{
    static cli_column columns[CLI_COLUMNS + 1];
    const char *out = cli_get(args, "out");
    bool json = cli_get(args, "json"), table = args->command->tabular && !out && !json;
    fin_error err = {FIN_OK, ""};
    int count = gather(p, sweep, columns);
    if (table) {
        CLI_TRY(head ? head(args) : CLI_OK);
        return print_table(p, args, sweep);
    }
    if ((out || !json) && cli_write_columns(out ? out : "-", columns, p->n, &err))
        return cli_error(&err);
    return json ? print_json(args, p, sweep, columns, count) : CLI_OK;
}
