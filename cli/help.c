/* Help and completion, made from the same tables as the options. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { MARGIN = 24, WIDTH = 92 };

/* Text from column MARGIN on, broken at spaces before column WIDTH. */
static void print_wrapped(const char *text)
{
    int column = MARGIN;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > MARGIN && column + 1 + length > WIDTH) {
            printf("\n%*s", MARGIN, "");
            column = MARGIN;
        }
        column += printf("%s%.*s", column > MARGIN ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const char *name, const char *value, const char *text)
{
    char option[CLI_NAME + 2];
    int used = printf("  %s%s%s", cli_dashed(name, option), value ? " " : "", value ? value : "");
    if (used + 1 >= MARGIN)
        printf("\n%*s", MARGIN, "");
    else
        printf("%*s", MARGIN - used, "");
    print_wrapped(text);
}

/* A number as short as it can be said, powers of two included: limits are often those. */
static char *limit_text(double number, char *buffer, size_t size)
{
    for (int p = 20; p <= 60; p++)
        if (number == (double)(INT64_C(1) << p)) {
            snprintf(buffer, size, "2^%d", p);
            return buffer;
        }
    cli_number(number, buffer, size);
    char *exponent = strchr(buffer, 'e'); /* 1e+06 -> 1e6, 1e-06 -> 1e-6 */
    if (exponent) {
        char *digits = exponent + 1;
        digits += *digits == '-';
        size_t dropped = strspn(digits, "+0");
        memmove(digits, digits + dropped, strlen(digits + dropped) + 1);
    }
    return buffer;
}

static void print_field(const fin_field *field)
{
    char text[512], low[32], high[32], usual[32];
    if (field->type == FIN_TYPE_choice) {
        fin_choice values = (fin_choice)field->fallback;
        fin_field first = *field;
        first.offset = 0;
        snprintf(text, sizeof text, "%s [%s; default %s]", field->meaning, field->names,
                 fin_settings_text(&first, &values, usual, sizeof usual));
        print_option(field->name, "NAME", text);
        return;
    }
    limit_text(field->fallback, usual, sizeof usual);
    snprintf(text, sizeof text, "%s [%s to %s; default %s]", field->meaning,
             limit_text(field->lowest, low, sizeof low),
             limit_text(field->highest, high, sizeof high),
             fin_is_auto(field->fallback) ? "auto" : usual);
    print_option(field->name, field->type == FIN_TYPE_int64_t ? "INTEGER" : "NUMBER", text);
}

/* "slr|spiked|max": what a word that chooses a table, or takes the place of a row, can be; "" for
 * other words. */
static char *choices_of(const cli_args *args, const fin_word *word, char *buffer, size_t size)
{
    const fin_group *group;
    const fin_field *field = cli_field(args, word->name, &group);
    snprintf(buffer, size, "%s", field && field->names ? field->names : "");
    for (int i = 0; fin_word_choice(word, i); i++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", i ? "|" : "", fin_word_choice(word, i));
    }
    return buffer;
}

/* ---- settings ------------------------------------------------------------------------------- */

/* What stands above the rows of a table, by what messages call it. */
static void print_title(const cli_args *args, const fin_settings *table)
{
    static const struct {
        const char *name, *title;
    } titles[] = {
        {"overlaps", "Overlaps of the unit vectors k, v with k*, v*"},
        {"risk", "How to compute"},
        {"train", "Training"},
        {"plane", "The grid"},
        {"attention", "Attention"},
        {"cross", "Attention"},
        {"tune", "Tuning"},
        {"fit", "The model"},
        {"corpus", "What is learnt"},
        {"data", "Data"},
        {"encoder", "The encoder"},
        {"learn", "Learning"},
        {"probe", "The probe"},
        {"options", "How to run"},
    };
    for (const fin_word *word = args->settings->words; word->name; word++)
        if (!word->names && fin_word_choice(word, 0) &&
            strcmp(table->name, (const char *)args->values + word->offset) == 0) {
            printf("\nSettings of %s %s:\n", word->name, table->name);
            return;
        }
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(titles[i].name, table->name) == 0) {
            printf("\n%s:\n", titles[i].title);
            return;
        }
    printf("\nSettings of %s:\n", table->name);
}

/* The row is an option: no word has its name, and no table before this one. */
static bool is_option(const cli_args *args, const fin_group *group, const fin_field *field)
{
    const fin_group *first = NULL;
    cli_field(args, field->name, &first);
    if (cli_hidden(args->command, field->name))
        return false;
    for (const fin_word *word = args->settings->words; word->name; word++)
        if (strcmp(word->name, field->name) == 0)
            return false;
    return first == group;
}

static void print_group(const cli_args *args, const fin_group *group)
{
    const fin_settings *table = group->table;
    int shown = 0;
    for (int i = 0; i < table->count; i++)
        if (is_option(args, group, &table->fields[i])) {
            if (!shown++)
                print_title(args, table);
            print_field(&table->fields[i]);
        }
    if (table->count == 0) {
        print_title(args, table);
        printf("  (none)\n");
    }
}

static void print_setting_word(const cli_args *args, const fin_word *word)
{
    char names[512], text[1024];
    choices_of(args, word, names, sizeof names);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", word->meaning,
             *names || *word->fallback ? " [" : "", names,
             *names            ? "; default "
             : *word->fallback ? "default "
                               : "",
             *names && !*word->fallback ? "none" : word->fallback,
             *names || *word->fallback ? "]" : "");
    print_option(word->name, *names ? "NAME" : word->size == CLI_PATH ? "FILE" : "TEXT", text);
}

/* "a, b, c" */
static char *shipped_names(char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; i < fin_shipped_count(); i++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", fin_shipped_name(i));
    }
    return buffer;
}

/* "FILE ", "[STUDY...] ", "A.db B.db " */
static void print_usage(const cli_command *command)
{
    const cli_operands *operands = &command->operands;
    printf("Usage: finetti %s ", command->name);
    if (operands->name)
        printf("%s%s%s%s ", operands->least ? "" : "[", operands->name,
               operands->most < 0 ? "..." : "", operands->least ? "" : "]");
    printf("[--OPTION VALUE]...\n\n%s\n", command->about);
    if (!operands->name)
        return;
    char names[1024], text[1536];
    snprintf(text, sizeof text, "%s%s%s", operands->meaning, operands->shipped ? ": " : "",
             operands->shipped ? shipped_names(names, sizeof names) : "");
    int used = printf("\n  %s", operands->name) - 1;
    printf("%*s", used < MARGIN ? MARGIN - used : 1, "");
    print_wrapped(text);
}

/* What a row of the library's table leaves: its numbers, then its series. */
static void print_outputs(const fin_command *row)
{
    printf("\nNumbers:\n");
    bool series = false;
    for (const fin_output *o = row->outputs; o->name; o++) {
        if (o->meaning[0] == '(' && !series)
            printf("\nSeries (--out FILE.npz, --json):\n");
        series = o->meaning[0] == '(';
        char text[512];
        snprintf(text, sizeof text, "%s%s%s%s", o->meaning, o->unit ? " [" : "",
                 o->unit ? o->unit : "", o->unit ? "]" : "");
        int used = printf("  %s", o->name);
        if (used + 1 >= MARGIN)
            printf("\n%*s", MARGIN, "");
        else
            printf("%*s", MARGIN - used, "");
        print_wrapped(text);
    }
}

void cli_help_command(const cli_args *args)
{
    const cli_command *command = args->command;
    bool chooses = false;
    print_usage(command);
    printf("\nOptions:\n");
    for (const fin_word *word = args->settings ? args->settings->words : NULL; word && word->name;
         word++)
        if (!cli_hidden(command, word->name)) {
            print_setting_word(args, word);
            chooses = chooses || (!word->names && fin_word_choice(word, 0));
        }
    for (const cli_word *word = command->lists; word && word->name; word++)
        print_option(word->name, word->value, word->meaning);
    for (const cli_word *word = command->words; word->name; word++)
        print_option(word->name, word->value, word->meaning);
    print_option("help", NULL,
                 chooses ? "this text; with --task, --form or --family, their settings"
                         : "this text");
    for (int g = 0; g < args->group_count; g++)
        print_group(args, &args->groups[g]);
    if (command->computes) {
        printf("\nHow to run:\n");
        print_field(cli_threads_table.fields);
    }
    if (command->row)
        print_outputs(args->settings);
    printf("\nExamples:\n%s", command->examples);
}

void cli_help_family(const cli_family *family, const cli_command *const *commands)
{
    printf("Usage: finetti %s COMMAND [--OPTION VALUE]...\n\n%s\n\nCommands:\n", family->name,
           family->about);
    for (; *commands; commands++)
        if (cli_family_member(family, *commands) && !(*commands)->unlisted)
            printf("  %-12s%s\n", cli_family_member(family, *commands), (*commands)->summary);
    printf("\n'finetti help %s COMMAND' explains one.\n", family->name);
}

/* The first screen: 24 lines of 80 characters. The test cli_info looks for what is missing. */
static const struct {
    const char *group, *name, *brief;
} overview[] = {
    {"Theory", "risk", "exact risks of a predictor"},
    {NULL, "curve", "best risk from n bags"},
    {NULL, "train", "descent from many starts"},
    {NULL, "landscape", "stationary points, Hessian"},
    {NULL, "latent", "exchangeable tokens"},
    {NULL, "lab", "the studies' experiments"},
    {NULL, "simulate", "samples of a task"},
    {NULL, "explore", "interactive page (HTML)"},
    {"Your data", "fit", "fit attention to your bags"},
    {NULL, "predict", "labels of new bags"},
    {NULL, "locate", "the responsible token"},
    {NULL, "explain", "report on new bags (HTML)"},
    {NULL, "attend", "a table as a context"},
    {"Learning", "pretrain", "train an encoder"},
    {NULL, "finetune", "labels with that encoder"},
    {NULL, "probe", "linear maps of its states"},
    {NULL, "embed", "texts as bags of tokens"},
    {"Studies", "reproduce", "test the papers' claims"},
    {NULL, "study", "run experiments in files"},
    {NULL, "report", "claims, figures (HTML)"},
    {NULL, "plot", "one figure: SVG, PDF, PNG"},
};

void cli_help_overview(void)
{
    printf("finetti %s: an attention layer as a statistical estimator\n"
           "Usage: finetti COMMAND [--OPTION VALUE]...\n\n",
           fin_version());
    bool left = true;
    for (size_t i = 0; i < sizeof overview / sizeof *overview; i++) {
        bool ends = i + 1 == sizeof overview / sizeof *overview || overview[i + 1].group;
        if (overview[i].group)
            printf("%s\n", overview[i].group);
        printf(!left  ? " %-10s %s%s"
               : ends ? "  %-10s %s%s"
                      : "  %-10s %-27s%s",
               overview[i].name, overview[i].brief, ends || !left ? "\n" : "");
        left = ends || !left;
    }
    printf("\nfinetti help COMMAND   options and examples of a command\n"
           "finetti help tasks     tasks, forms of attention, families of tokens\n"
           "finetti info           version, libraries, what is in a model file\n"
           "finetti risk           a first result: exact risks in the paper's setting\n");
}

void cli_help_tasks(void)
{
    printf("Tasks (--task): how a relevant token differs\n");
    for (int i = 0; i < fin_task_count(); i++)
        printf("  %-12s%s\n", fin_task_kind_name(fin_task_at(i)),
               fin_task_kind_summary(fin_task_at(i)));
    printf("\nForms of attention (--form)\n");
    for (int i = 0; i < fin_form_count(); i++)
        printf("  %-12s%s\n", fin_form_name(fin_form_at(i)), fin_form_summary(fin_form_at(i)));
    printf("\nFamilies of exchangeable tokens (--family)\n");
    for (int i = 0; i < fin_family_count(); i++)
        printf("  %-12s%s\n", fin_family_name(fin_family_at(i)),
               fin_family_summary(fin_family_at(i)));
    printf("\n'finetti COMMAND --task NAME --help' has the settings of one; so have --form and "
           "--family.\n"
           "A number may be a formula of other settings: --lam 'sqrt(snr)', --L "
           "'round(d^0.9)'.\n");
}

/* ---- completion ----------------------------------------------------------------------------- */

static void complete_field(const fin_field *field)
{
    static const char *const types[] = {"integer", "number", "choice"};
    char option[CLI_NAME + 2];
    printf("%s\t%s\t%.17g\t%.17g\t%.17g\t%s\n", cli_dashed(field->name, option), types[field->type],
           field->fallback, field->lowest, field->highest, field->names ? field->names : "");
}

static void complete_word(const cli_word *word)
{
    char option[CLI_NAME + 2];
    bool file =
        word->value && (strcmp(word->value, "FILE") == 0 || strcmp(word->value, "DIR") == 0);
    printf("%s\t%s\t\t\t\t\n", cli_dashed(word->name, option),
           !word->value ? "flag"
           : file       ? "file"
                        : "text");
}

static void complete_settings(const cli_args *args)
{
    char option[CLI_NAME + 2], names[512];
    for (const fin_word *word = args->settings->words; word->name; word++)
        if (!cli_hidden(args->command, word->name))
            printf("%s\t%s\t\t\t\t%s\n", cli_dashed(word->name, option),
                   word->size == CLI_PATH ? "file" : "text",
                   choices_of(args, word, names, sizeof names));
    for (int g = 0; g < args->group_count; g++)
        for (int i = 0; i < args->groups[g].table->count; i++)
            if (is_option(args, &args->groups[g], &args->groups[g].table->fields[i]))
                complete_field(&args->groups[g].table->fields[i]);
}

/* A study and, where several may be named, before the first of its group the beginning of names
 * that stands for all of them: slr for slr_risk and slr_sgd. */
static void complete_study(int i, bool groups)
{
    const char *name = fin_shipped_name(i);
    size_t length = strcspn(name, "_");
    bool first = groups && name[length] == '_';
    for (int k = 0; k < i && first; k++)
        first = strncmp(fin_shipped_name(k), name, length) != 0 ||
                (fin_shipped_name(k)[length] != '_' && fin_shipped_name(k)[length] != '\0');
    if (first)
        printf("%.*s\toperand\t\t\t\t\n", (int)length, name);
    printf("%s\toperand\t\t\t\t\n", name);
}

void cli_complete(const cli_args *args)
{
    const cli_command *command = args->command;
    for (int i = 0; command->operands.shipped && i < fin_shipped_count(); i++)
        complete_study(i, command->operands.most != 1);
    for (const cli_word *word = command->lists; word && word->name; word++)
        complete_word(word);
    for (const cli_word *word = command->words; word->name; word++)
        complete_word(word);
    printf("--help\tflag\t\t\t\t\n");
    if (args->settings)
        complete_settings(args);
    if (command->computes)
        complete_field(cli_threads_table.fields);
}
