/* finetti plot: a figure of a study, for a paper. */
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"study", "NAME", "the study whose runs are drawn; required, but for --list"},
    {"figure", "ID", "a figure that the study file describes"},
    {"x", "FORMULA",
     "instead of --figure: a setting, a number or a formula, such as 'lam*sqrt(L)'"},
    {"y", "FORMULA,...", "and what is drawn against it, such as risk,linear"},
    {"split", "SETTING", "a line for every value of this setting"},
    {"block", "ID", "the block of the study whose runs are drawn; default its first"},
    {"log", "AXES", "logarithmic axes: x, y or xy"},
    {"fit", NULL, "a straight line through the points, with its slope"},
    {"title", "TEXT", "above the figure"},
    {"out", "FILE",
     "required: FILE.svg, FILE.pdf, FILE.png (300 dots per inch) or, for the numbers in it, "
     "FILE.csv"},
    {"list", NULL, "list the figures that there are"},
    {"json", NULL, "print the --list as JSON"},
    {NULL, NULL, NULL},
};

#define PAPER_FIELDS(F, C)                                                                         \
    F(double, width, FIN_AUTO, 72, 7200, "width in points (1/72 inch); auto = 432 a panel")        \
    F(double, height, FIN_AUTO, 72, 7200, "height in points; auto = 288 a panel")
#define FIN_TABLE_STRUCT paper_settings
FIN_TABLE_OF_ITS_OWN(paper_table, "plot", PAPER_FIELDS);

CLI_SETTINGS(options, "plot", paper_settings, cli_no_words, {&paper_table, 0});

const cli_command cli_plot = {
    .name = "plot",
    .summary = "a figure of a study as SVG, PDF or PNG, or its numbers as CSV",
    .about =
        "Draws a figure that a study file describes, or any number against any other, from the\n"
        "store alone. PDF and PNG are made from the SVG by rsvg-convert. What a reader must know,\n"
        "runs that are missing or points that are left out, goes to standard error.",
    .examples =
        "  finetti plot --list\n"
        "  finetti plot --study slr_training --figure experiments --out experiments.pdf\n"
        "  finetti plot --study lengths --x L --y risk,linear --split lam --log x --out a.svg\n"
        "  finetti plot --study lengths --x 'log(L)' --y 'log(risk)' --fit --out slope.png\n",
    .settings = &options,
    .words = words,
    .lists = study_where,
    .run = run,
};

/* ---- --list --------------------------------------------------------------------------------- */

static fin_status add_figure(void *user, const fin_figure_row *figure, fin_error *err)
{
    (void)err;
    json_array_append_new(user,
                          json_pack("{s:s, s:s, s:s, s:s}", "study", figure->study, "id",
                                    figure->id, "kind", figure->kind, "title", figure->title));
    return FIN_OK;
}

/* --list goes with --study, --store and --json alone. */
static int check_list(cli_args *args)
{
    for (const cli_word *w = words; w->name; w++)
        if (strcmp(w->name, "list") != 0 && strcmp(w->name, "json") != 0 &&
            strcmp(w->name, "study") != 0 && strcmp(w->name, "store") != 0 &&
            cli_get(args, w->name))
            return cli_usage("--%s does not go with --list, which draws nothing", w->name);
    const paper_settings *paper = (const void *)args->values;
    if (args->list_count[0] || !fin_is_auto(paper->width) || !fin_is_auto(paper->height))
        return cli_usage("--where, --width and --height do not go with --list, which draws "
                         "nothing");
    return CLI_OK;
}

static int list_figures(cli_args *args, fin_store *store)
{
    json_t *list = json_array();
    fin_error err = {FIN_OK, ""};
    const char *study = cli_get(args, "study");
    if ((study && study_need(store, study, &err)) ||
        fin_report_figures(store, study, add_figure, list, &err)) {
        json_decref(list);
        return cli_error(&err);
    }
    return cli_show(args, list, "[{*.|{%24,24,12,0|{study}|{id}|{kind}|{title}}}]");
}

/* ---- which figure --------------------------------------------------------------------------- */

enum { LINES = 32 };

/* Cuts "a,min(b,c)" at commas outside brackets. text is written into. */
static int split_lines(char *text, const char *lines[LINES], int *count)
{
    int depth = 0;
    char *start = text;
    *count = 0;
    for (char *c = text;; c++) {
        depth += (*c == '(') - (*c == ')');
        if (*c && (*c != ',' || depth > 0))
            continue;
        bool last = !*c;
        *c = '\0';
        if (!*start)
            return cli_usage("--y has an empty formula; write them as risk,linear");
        if (*count == LINES)
            return cli_usage("--y has more than %d formulas", LINES);
        lines[(*count)++] = start;
        start = c + 1;
        if (last)
            return CLI_OK;
    }
}

static int read_axes(const char *text, fin_figure *figure)
{
    if (!text)
        return CLI_OK;
    figure->log_x = strcmp(text, "x") == 0 || strcmp(text, "xy") == 0;
    figure->log_y = strcmp(text, "y") == 0 || strcmp(text, "xy") == 0;
    return figure->log_x || figure->log_y ? CLI_OK
                                          : cli_usage("--log '%.40s' is not one of x, y, xy", text);
}

/* Either --figure or --x and --y, and what goes with them. */
static int check(cli_args *args)
{
    static const char *const free_only[] = {"x", "y", "split", "block", "log", "fit"};
    const char *figure = cli_get(args, "figure"), *x = cli_get(args, "x"), *y = cli_get(args, "y");
    if (!cli_get(args, "study"))
        return cli_usage("--study NAME is missing; 'finetti plot --list' lists figures");
    if (!figure && !(x && y))
        return cli_usage("either --figure ID or --x FORMULA and --y FORMULA,... is needed; "
                         "'finetti plot --list' lists figures");
    for (size_t i = 0; figure && i < sizeof free_only / sizeof *free_only; i++)
        if (cli_get(args, free_only[i]))
            return cli_usage("--%s goes with --x and --y; --figure says how it is drawn",
                             free_only[i]);
    if (figure && args->list_count[0])
        return cli_usage("--where goes with --x and --y; --figure says which runs it shows");
    return plot_check(cli_get(args, "out"));
}

static void print_note(void *user, const char *text)
{
    char clean[1024];
    (void)user;
    cli_note("%s", cli_clean(text, clean, sizeof clean));
}

static int draw(cli_args *args, fin_store *store)
{
    fin_figure figure = {.study = cli_get(args, "study"),
                         .id = cli_get(args, "figure"),
                         .block = cli_get(args, "block"),
                         .x = cli_get(args, "x"),
                         .split = cli_get(args, "split"),
                         .title = cli_get(args, "title"),
                         .fit = cli_get(args, "fit") != NULL,
                         .note = print_note};
    const char *lines[LINES];
    fin_error err = {FIN_OK, ""};
    char *y = cli_get(args, "y") ? strdup(cli_get(args, "y")) : NULL;
    const paper_settings *paper = (const void *)args->values;
    figure.width = fin_is_auto(paper->width) ? 0 : paper->width;
    figure.height = fin_is_auto(paper->height) ? 0 : paper->height;
    figure.where = cli_list(args, "where", &figure.where_count);
    figure.y = lines;
    int code = read_axes(cli_get(args, "log"), &figure);
    if (!code && y)
        code = split_lines(y, lines, &figure.y_count);
    if (!code && study_need(store, figure.study, &err))
        code = cli_error(&err);
    if (!code)
        code = plot_write(store, &figure, cli_get(args, "out"));
    free(y);
    return code;
}

static int run(cli_args *args)
{
    bool list = cli_get(args, "list");
    fin_store *store = NULL;
    fin_error err = {FIN_OK, ""};
    CLI_TRY(list ? check_list(args) : check(args));
    if (cli_get(args, "json") && !list)
        return cli_usage("--json goes with --list");
    if (study_open(args, FIN_STORE_READ, &store, &err))
        return cli_error(&err);
    int code = list ? list_figures(args, store) : draw(args, store);
    fin_store_close(store);
    return code;
}
