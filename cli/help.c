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

/* Names are shown with '-', as shells are used to; '_' is understood as well. */
static const char *dashed(const char *name, char *buffer, size_t size)
{
    snprintf(buffer, size, "--%s", name);
    for (char *c = buffer; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return buffer;
}

static void print_option(const char *name, const char *value, const char *text)
{
    char option[64];
    int used = printf("  %s%s%s", dashed(name, option, sizeof option), value ? " " : "",
                      value ? value : "");
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

/* "a|b|c" */
static char *task_names(char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; i < fin_task_count(); i++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", i ? "|" : "",
                 fin_task_kind_name(fin_task_at(i)));
    }
    return buffer;
}

static char *form_names(char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; i < fin_form_count(); i++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", i ? "|" : "", fin_form_name(fin_form_at(i)));
    }
    return buffer;
}

static char *family_names(char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; i < fin_family_count(); i++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", i ? "|" : "",
                 fin_family_name(fin_family_at(i)));
    }
    return buffer;
}

static void print_group(cli_args *args, const cli_group *group)
{
    const char *name = group->use == CLI_USES_TASK     ? fin_task_kind_name(args->kind)
                       : group->use == CLI_USES_FORM   ? fin_form_name(args->form)
                       : group->use == CLI_USES_FAMILY ? fin_family_name(args->family)
                                                       : NULL;
    printf("\n%s%s%s:\n", group->title, name ? " " : "", name ? name : "");
    if (name && group->table->count == 0)
        printf("  (none)\n");
    for (int i = 0; i < group->table->count; i++)
        if (!cli_hidden(args->command, group->table->fields[i].name))
            print_field(&group->table->fields[i]);
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

static void print_word(const cli_command *command, const cli_word *word)
{
    char names[512], text[768];
    snprintf(text, sizeof text, "%s", word->meaning);
    if (strcmp(word->name, "task") == 0 && command->uses & CLI_USES_FAMILY)
        snprintf(text, sizeof text, "%s [%s; default none]", word->meaning,
                 task_names(names, sizeof names));
    else if (strcmp(word->name, "task") == 0)
        snprintf(text, sizeof text, "%s [%s; default %s]", word->meaning,
                 task_names(names, sizeof names), fin_task_kind_name(fin_task_at(0)));
    if (strcmp(word->name, "form") == 0)
        snprintf(text, sizeof text, "%s [%s; default %s]", word->meaning,
                 form_names(names, sizeof names), fin_form_name(fin_form_at(0)));
    if (strcmp(word->name, "family") == 0)
        snprintf(text, sizeof text, "%s [%s; default %s]", word->meaning,
                 family_names(names, sizeof names), fin_family_name(fin_family_at(0)));
    print_option(word->name, word->value, text);
}

void cli_help_command(cli_args *args)
{
    const cli_command *command = args->command;
    print_usage(command);
    printf("\nOptions:\n");
    for (const cli_word *word = command->lists; word && word->name; word++)
        print_word(command, word);
    for (const cli_word *word = command->words; word->name; word++)
        print_word(command, word);
    print_option("help", NULL,
                 command->uses & (CLI_USES_TASK | CLI_USES_FORM)
                     ? "this text; with --task or --form, their settings"
                     : "this text");
    for (int g = 0; g < args->group_count; g++)
        print_group(args, &args->groups[g]);
    printf("\nExamples:\n%s", command->examples);
}

void cli_help_family(const cli_family *family, const cli_command *const *commands)
{
    printf("Usage: finetti %s COMMAND [--OPTION VALUE]...\n\n%s\n\nCommands:\n", family->name,
           family->about);
    for (; *commands; commands++)
        if (cli_family_member(family, *commands))
            printf("  %-12s%s\n", cli_family_member(family, *commands), (*commands)->summary);
    printf("\n'finetti help %s COMMAND' explains one.\n", family->name);
}

void cli_help_overview(const cli_command *const *commands, const cli_family *families)
{
    printf("finetti %s: an attention layer as a statistical estimator.\n\n"
           "Usage: finetti COMMAND [--OPTION VALUE]...\n\nCommands:\n",
           fin_version());
    const cli_family *shown = NULL; /* a family stands where its first command is */
    for (; *commands; commands++) {
        const cli_family *family = families;
        while (family->name && !cli_family_member(family, *commands))
            family++;
        if (!family->name)
            printf("  %-12s%s\n", (*commands)->name, (*commands)->summary);
        else if (family != shown)
            printf("  %-12s%s\n", family->name, family->summary);
        shown = family->name ? family : shown;
    }
    printf("  %-12s%s\n", "help", "help on a command: finetti help risk");
    printf("\nTasks (--task):\n");
    for (int i = 0; i < fin_task_count(); i++)
        printf("  %-12s%s\n", fin_task_kind_name(fin_task_at(i)),
               fin_task_kind_summary(fin_task_at(i)));
    printf("\nForms of attention (--form):\n");
    for (int i = 0; i < fin_form_count(); i++)
        printf("  %-12s%s\n", fin_form_name(fin_form_at(i)), fin_form_summary(fin_form_at(i)));
    printf("\nFamilies of exchangeable tokens (--family):\n");
    for (int i = 0; i < fin_family_count(); i++)
        printf("  %-12s%s\n", fin_family_name(fin_family_at(i)),
               fin_family_summary(fin_family_at(i)));
    printf("\nFirst steps:\n"
           "  finetti risk                              the paper's setting, every reference risk\n"
           "  finetti risk --sweep lam=0.01:3:100log    a curve, as CSV\n"
           "  finetti train                             30 runs of descent on the exact risk\n"
           "  finetti latent risk                       exchangeable tokens: Bayes risk and "
           "attention's\n"
           "  finetti attend FILE.csv --key x --value y your own table as a context\n"
           "  finetti fit BAGS.csv --bag id --label y   your own bags: fit, predict, locate\n"
           "  finetti pretrain --family concept --out enc.fin   an encoder that learns to infer\n"
           "  finetti reproduce                         every claim of the papers, tested\n"
           "  finetti study run FILE.yaml               an experiment of your own\n");
}

/* ---- completion ----------------------------------------------------------------------------- */

static void complete_table(const cli_command *command, const fin_settings *table)
{
    static const char *const types[] = {"integer", "number", "choice"};
    for (int i = 0; i < table->count; i++) {
        const fin_field *field = &table->fields[i];
        char option[64];
        if (cli_hidden(command, field->name))
            continue;
        printf("%s\t%s\t%.17g\t%.17g\t%.17g\t%s\n", dashed(field->name, option, sizeof option),
               types[field->type], field->fallback, field->lowest, field->highest,
               field->names ? field->names : "");
    }
}

static void complete_word(const cli_word *word)
{
    char names[512];
    const char *choices = strcmp(word->name, "task") == 0     ? task_names(names, sizeof names)
                          : strcmp(word->name, "form") == 0   ? form_names(names, sizeof names)
                          : strcmp(word->name, "family") == 0 ? family_names(names, sizeof names)
                                                              : "";
    bool file =
        word->value && (strcmp(word->value, "FILE") == 0 || strcmp(word->value, "DIR") == 0);
    printf("--%s\t%s\t\t\t\t%s\n", word->name,
           !word->value ? "flag"
           : file       ? "file"
                        : "text",
           choices);
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

void cli_complete(cli_args *args)
{
    const cli_command *command = args->command;
    for (int i = 0; command->operands.shipped && i < fin_shipped_count(); i++)
        complete_study(i, command->operands.most != 1);
    for (const cli_word *word = command->lists; word && word->name; word++)
        complete_word(word);
    for (const cli_word *word = command->words; word->name; word++)
        complete_word(word);
    printf("--help\tflag\t\t\t\t\n");
    for (int g = 0; g < args->group_count; g++)
        complete_table(command, args->groups[g].table);
}
