/* Options from the command line: words of the command and rows of settings tables.
 *
 * Not getopt_long: which options exist depends on the values of --task and --form, so these two are
 * looked for first, and then the rest is read against the tables of that task and form. A value is
 * the next argument whatever it starts with, except "--", so that -0.5 is a number. */
#include "encoder.h"
#include "fit.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

#define FIN_TABLE_STRUCT cli_draw_settings
FIN_TABLE(static, draw_table, "simulate", CLI_DRAW_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_samples_settings
FIN_TABLE(static, samples_table, "latent risk", CLI_SAMPLES_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_sequence_settings
FIN_TABLE(static, sequence_table, "latent draw", CLI_SEQUENCE_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_run_settings
FIN_TABLE(static, run_table, "options", CLI_RUN_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_pause_settings
FIN_TABLE(static, pause_table, "options", CLI_PAUSE_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_plane_settings
FIN_TABLE(static, plane_table, "landscape", CLI_PLANE_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_compare_settings
FIN_TABLE(static, compare_table, "options", CLI_COMPARE_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_paper_settings
FIN_TABLE(static, paper_table, "options", CLI_PAPER_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_attend_settings
FIN_TABLE(static, attend_table, "options", CLI_ATTEND_FIELDS);
#undef FIN_TABLE_STRUCT

#define FIN_TABLE_STRUCT cli_locate_settings
FIN_TABLE(static, locate_table, "locate", CLI_LOCATE_FIELDS);
#undef FIN_TABLE_STRUCT

#define FIN_TABLE_STRUCT cli_data_settings
FIN_TABLE(static, data_table, "options", CLI_DATA_FIELDS);
#undef FIN_TABLE_STRUCT

/* The library's table of cross attention, with settings that the tool can take from the data. */
static const fin_settings *cross_table(void)
{
    static const struct {
        const char *name, *meaning;
    } autos[] = {
        {"scale", "length scale: keys are divided by it; auto: the spread of the keys"},
        {"prior", "cme: prior variance of the function, in units of k(a, a); auto: the values'"},
        {"noise", "cme: variance of a value around the function; auto: a tenth of the values'"},
        {"level", "cme: prior variance of a constant added to the function; auto: 100 times the "
                  "mean square of the values, practically a free constant"},
        {"temperature", "softmax: scores are q.k / temperature; auto: mean square of the keys"},
    };
    static fin_field fields[32];
    static fin_settings table;
    table = fin_cross_table;
    for (int i = 0; i < table.count && i < COUNT(fields); i++) {
        fields[i] = fin_cross_table.fields[i];
        for (int k = 0; k < COUNT(autos); k++)
            if (strcmp(fields[i].name, autos[k].name) == 0) {
                fields[i].fallback = FIN_AUTO;
                fields[i].meaning = autos[k].meaning;
            }
    }
    table.fields = fields;
    return &table;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

static const fin_field *find_field(const fin_settings *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (same_name(table->fields[i].name, name))
            return &table->fields[i];
    return NULL;
}

cli_group *cli_find(cli_args *args, const char *name, const fin_field **field)
{
    for (int g = 0; g < args->group_count; g++) {
        const fin_field *found = find_field(args->groups[g].table, name);
        if (found) {
            *field = found;
            return &args->groups[g];
        }
    }
    return NULL;
}

bool cli_given(cli_args *args, const char *name)
{
    const fin_field *field;
    cli_group *group = cli_find(args, name, &field);
    return group && (group->given >> (field - group->table->fields) & 1);
}

/* words may be NULL. */
static int find_word(const cli_word *words, const char *name)
{
    for (int i = 0; words && words[i].name; i++)
        if (same_name(words[i].name, name))
            return i;
    return -1;
}

bool cli_hidden(const cli_command *command, const char *name)
{
    return find_word(command->words, name) >= 0;
}

const char *cli_get(const cli_args *args, const char *name)
{
    int i = find_word(args->command->words, name);
    return i < 0 ? NULL : args->word[i];
}

const char *const *cli_list(const cli_args *args, const char *name, int *count)
{
    int i = find_word(args->command->lists, name);
    *count = i < 0 ? 0 : args->list_count[i];
    return i < 0 ? NULL : args->list[i];
}

int cli_check_lengths(cli_args *args)
{
    if (cli_get(args, "lengths") && (cli_given(args, "L") || cli_given(args, "L_min")))
        return cli_usage("--lengths takes the place of --L and --L_min; give one or the other");
    return CLI_OK;
}

void cli_suggest(cli_args *args, unsigned uses, const char *word, char *buffer, size_t size)
{
    const char *names[256];
    int count = 0;
    for (int g = 0; g < args->group_count; g++)
        for (int i = 0; args->groups[g].use & uses && i < args->groups[g].table->count; i++)
            if (count < COUNT(names))
                names[count++] = args->groups[g].table->fields[i].name;
    const char *dashes = uses == ~0u ? "--" : "";
    if (uses == ~0u) { /* an option: words count as well */
        const cli_word *words = args->command->words, *lists = args->command->lists;
        for (int i = 0; words[i].name && count < COUNT(names); i++)
            names[count++] = words[i].name;
        for (int i = 0; lists && lists[i].name && count < COUNT(names); i++)
            names[count++] = lists[i].name;
    }
    const char *near = fin_nearest_name(word, names, count);
    buffer[0] = '\0';
    if (near)
        snprintf(buffer, size, "; did you mean %s%s?", dashes, near);
}

/* ---- settings that other tasks and forms have ----------------------------------------------- */

static const char *task_name(int i)
{
    return fin_task_kind_name(fin_task_at(i));
}

static const fin_settings *task_table(int i)
{
    return fin_task_kind_table(fin_task_at(i));
}

static const char *form_name(int i)
{
    return fin_form_name(fin_form_at(i));
}

static const fin_settings *form_table(int i)
{
    return fin_form_table(fin_form_at(i));
}

static const char *family_name(int i)
{
    return fin_family_name(fin_family_at(i));
}

static const fin_settings *family_table(int i)
{
    return fin_family_table(fin_family_at(i));
}

/* True, after the message, if one of `count` other tables has this setting. */
static bool belongs_elsewhere(const char *here, const char *name, int count,
                              const char *(*label)(int), const fin_settings *(*table)(int))
{
    char owners[256] = "";
    const char *spelling = name;
    for (int i = 0; i < count; i++) {
        const fin_field *field = find_field(table(i), name);
        size_t used = strlen(owners);
        if (field) {
            spelling = field->name;
            snprintf(owners + used, sizeof owners - used, "%s%s", used ? ", " : "", label(i));
        }
    }
    if (owners[0])
        cli_usage("%s has no setting %s; it belongs to %s", here, spelling, owners);
    return owners[0] != '\0';
}

static int unknown_option(cli_args *args, const char *name)
{
    unsigned uses = args->command->uses;
    if (uses & CLI_USES_TASK && args->kind &&
        belongs_elsewhere(fin_task_kind_name(args->kind), name, fin_task_count(), task_name,
                          task_table))
        return CLI_USAGE;
    if (uses & CLI_USES_FORM &&
        belongs_elsewhere(fin_form_name(args->form), name, fin_form_count(), form_name, form_table))
        return CLI_USAGE;
    if (uses & CLI_USES_FAMILY && args->family &&
        belongs_elsewhere(fin_family_name(args->family), name, fin_family_count(), family_name,
                          family_table))
        return CLI_USAGE;
    char hint[96];
    cli_suggest(args, ~0u, name, hint, sizeof hint);
    if (!*hint)
        snprintf(hint, sizeof hint, "; see 'finetti help %s'", args->command->name);
    return cli_usage("unknown option --%.60s%s", name, hint);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The last value of --name in argv, or NULL. Enough for --task and --form, which come first. */
static const char *look_ahead(const char *name, int argc, char **argv)
{
    const char *value = NULL;
    size_t length = strlen(name);
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], name, length) != 0)
            continue;
        if (argv[i][length] == '=')
            value = argv[i] + length + 1;
        else if (argv[i][length] == '\0' && i + 1 < argc)
            value = argv[++i];
    }
    return value;
}

static int unknown_name(const char *what, const char *word, int count, const char *(*label)(int))
{
    const char *names[64];
    char list[512] = "";
    for (int i = 0; i < count && i < COUNT(names); i++) {
        size_t used = strlen(list);
        names[i] = label(i);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[i]);
    }
    const char *near = fin_nearest_name(word, names, count < COUNT(names) ? count : COUNT(names));
    if (near)
        return cli_usage("unknown %s '%.40s'; did you mean %s? There are %s", what, word, near,
                         list);
    return cli_usage("unknown %s '%.40s'; there are %s", what, word, list);
}

static int choose_names(cli_args *args, int argc, char **argv)
{
    const char *task = look_ahead("--task", argc, argv);
    const char *form = look_ahead("--form", argc, argv);
    unsigned both = CLI_USES_TASK | CLI_USES_FAMILY;
    bool either = (args->command->uses & both) == both; /* or neither */
    bool file = either && (look_ahead("--data", argc, argv) || look_ahead("--resume", argc, argv));
    if (either && !!task + !!look_ahead("--family", argc, argv) + file > 1)
        return cli_usage("--task, --family, --data and --resume each say where sequences come "
                         "from; give one of them");
    if (args->command->uses & CLI_USES_TASK && (task || !either)) {
        args->kind = task ? fin_task_find(task) : fin_task_at(0);
        if (!args->kind)
            return unknown_name("task", task, fin_task_count(), task_name);
    }
    if (args->command->uses & CLI_USES_FORM) {
        args->form = form ? fin_form_find(form) : fin_form_at(0);
        if (!args->form)
            return unknown_name("form", form, fin_form_count(), form_name);
    }
    if (args->command->uses & CLI_USES_FAMILY && !(either && (task || file))) {
        const char *family = look_ahead("--family", argc, argv);
        args->family = family ? fin_family_find(family) : fin_family_at(0);
        if (!args->family)
            return unknown_name("family", family, fin_family_count(), family_name);
    }
    return CLI_OK;
}

static void add_group(cli_args *args, unsigned use, const char *title, const fin_settings *table,
                      void *values)
{
    if (!(args->command->uses & use))
        return;
    args->groups[args->group_count++] = (cli_group){use, title, table, values, 0};
    fin_settings_defaults(table, values);
}

static void add_groups(cli_args *args)
{
    fin_settings_defaults(&fin_overlaps_table, &args->overlaps);
    fin_settings_defaults(&fin_risk_table, &args->risk);
    if (args->form)
        add_group(args, CLI_USES_FORM, "Settings of form", fin_form_table(args->form),
                  &args->form_settings);
    if (args->kind)
        add_group(args, CLI_USES_TASK, "Settings of task", fin_task_kind_table(args->kind),
                  &args->task);
    if (args->family)
        add_group(args, CLI_USES_FAMILY, "Settings of family", fin_family_table(args->family),
                  &args->latent);
    add_group(args, CLI_USES_SAMPLES, "How to compute", &samples_table, &args->samples);
    add_group(args, CLI_USES_SEQUENCE, "What to draw", &sequence_table, &args->sequence);
    add_group(args, CLI_USES_OVERLAPS,
              args->command->uses & CLI_USES_TRAIN
                  ? "Overlaps of k, v with k*, v* where runs start with --init overlaps"
                  : "Overlaps of the unit vectors k, v with k*, v*",
              &fin_overlaps_table, &args->overlaps);
    add_group(args, CLI_USES_PLANE, "The grid", &plane_table, &args->plane);
    add_group(args, CLI_USES_TRAIN, "Training", &fin_train_table, &args->train);
    add_group(args, CLI_USES_RISK, "How to compute", &fin_risk_table, &args->risk);
    add_group(args, CLI_USES_DRAW, "What to draw", &draw_table, &args->draw);
    add_group(args, CLI_USES_COMPARE, "What is equal", &compare_table, &args->compare);
    add_group(args, CLI_USES_PAPER, "Size of the figure", &paper_table, &args->paper);
    add_group(args, CLI_USES_CROSS, "Attention", cross_table(), &args->cross);
    add_group(args, CLI_USES_TUNE, "Tuning", &fin_tune_table, &args->tune);
    add_group(args, CLI_USES_ATTEND, "What to list", &attend_table, &args->attend);
    add_group(args, CLI_USES_FIT, "The model", &fin_fit_table, &args->fit);
    add_group(args, CLI_USES_LOCATE, "What to list", &locate_table, &args->locate);
    add_group(args, CLI_USES_CORPUS, "What is learnt", &fin_corpus_table, &args->corpus);
    add_group(args, CLI_USES_DATA, "Data", &data_table, &args->data);
    add_group(args, CLI_USES_ENCODER, "The encoder", &fin_encoder_table, &args->encoder);
    add_group(args, CLI_USES_LEARN, "Learning", encoder_learn_table(), &args->learn);
    add_group(args, CLI_USES_PROBE, "The probe", encoder_probe_table(), &args->probe);
    add_group(args, CLI_USES_PAUSE, "Stopping and going on", &pause_table, &args->pause);
    add_group(args, CLI_USES_RUN, "How to run", &run_table, &args->run);
}

static int add_to_list(cli_args *args, int i, const char *value)
{
    if (args->list_count[i] == CLI_LIST_MOST)
        return cli_usage("--%s can be given at most %d times", args->command->lists[i].name,
                         CLI_LIST_MOST);
    args->list[i][args->list_count[i]++] = value;
    return CLI_OK;
}

static fin_status set_row(cli_group *group, const fin_field *field, const char *text,
                          fin_error *err)
{
    fin_status status = fin_settings_parse(group->table, group->values, field->name, text, err);
    if (!status)
        group->given |= UINT64_C(1) << (field - group->table->fields);
    return status;
}

fin_status cli_set(cli_args *args, const char *name, const char *text, fin_error *err)
{
    const fin_field *field = NULL;
    cli_group *group = cli_find(args, name, &field);
    int word = find_word(args->command->words, name);
    if (group)
        return set_row(group, field, text, err);
    if (word < 0)
        return cli_status(err, FIN_ERR_ARGUMENT, "%s has no setting '%.40s'", args->command->name,
                          name);
    args->word[word] = text;
    return FIN_OK;
}

/* Operands are kept in argv itself, in front of what is still to be read. */
static int add_operand(cli_args *args, char *word)
{
    const cli_operands *wanted = &args->command->operands;
    if (!wanted->name)
        return cli_usage("unexpected argument '%.60s'; options look like --name value", word);
    if (!*word)
        return cli_usage("%s is empty", wanted->name);
    if (wanted->most >= 0 && args->operand_count == wanted->most)
        return cli_usage("unexpected argument '%.60s'; only %d %s can be given", word, wanted->most,
                         wanted->name);
    args->operand[args->operand_count++] = word;
    return CLI_OK;
}

static int check_operands(const cli_args *args)
{
    const cli_operands *wanted = &args->command->operands;
    if (args->operand_count >= wanted->least)
        return CLI_OK;
    if (wanted->least == 1)
        return cli_usage("%s is missing: %s", wanted->name, wanted->meaning);
    return cli_usage("%d %s are needed, %d given: %s", wanted->least, wanted->name,
                     args->operand_count, wanted->meaning);
}

/* Reads the option at argv[*i] and moves *i to the last argument used. */
static int read_option(cli_args *args, int argc, char **argv, int *i)
{
    const char *start = argv[*i];
    if (start[0] != '-' || !start[1]) /* "-" is standard input */
        return add_operand(args, argv[*i]);
    if (strncmp(start, "--", 2) != 0 || !start[2])
        return cli_usage("unexpected argument '%.60s'; options look like --name value", start);
    char name[64];
    size_t length = strcspn(start + 2, "=");
    if (length >= sizeof name)
        return cli_usage("unknown option %.60s...", start);
    memcpy(name, start + 2, length);
    name[length] = '\0';
    const char *value = start[2 + length] ? start + 3 + length : NULL;

    const fin_field *field = NULL;
    cli_group *group = cli_find(args, name, &field);
    int word = find_word(args->command->words, name), list = find_word(args->command->lists, name);
    if (!group && word < 0 && list < 0)
        return unknown_option(args, name);
    if (word >= 0 && !args->command->words[word].value) {
        if (value)
            return cli_usage("option --%s takes no value", name);
        args->word[word] = "";
        return CLI_OK;
    }
    if (!value && *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    if (!value || (!group && !*value))
        return cli_usage("option --%s needs a value: --%s %s", name, name,
                         word >= 0   ? args->command->words[word].value
                         : list >= 0 ? args->command->lists[list].value
                                     : "VALUE");
    if (list >= 0)
        return add_to_list(args, list, value);
    if (word >= 0) {
        args->word[word] = value;
        return CLI_OK;
    }
    fin_error err;
    bool model = group->use == CLI_USES_FIT && strcmp(field->name, "model") == 0;
    args->fit_model = model ? value : args->fit_model;
    fin_status status = model && strpbrk(value, "+: ") ? fit_model_set(args, value, &err)
                                                       : set_row(group, field, value, &err);
    return status ? cli_usage("%s", err.message) : CLI_OK;
}

void cli_defaults(cli_args *args, const cli_command *command, const fin_task_kind *kind,
                  const fin_form *form)
{
    memset(args, 0, sizeof *args);
    args->command = command;
    args->kind = kind;
    args->form = form;
    add_groups(args);
}

int cli_parse(cli_args *args, const cli_command *command, int argc, char **argv, bool bare,
              bool *help)
{
    memset(args, 0, sizeof *args);
    args->command = command;
    *help = false;
    for (int i = 0; i < argc; i++)
        *help = *help || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    int code = choose_names(args, argc, argv);
    if (code)
        return code;
    add_groups(args);
    if (*help)
        return CLI_OK;
    args->operand = argv;
    for (int i = 0; i < argc; i++)
        if ((code = read_option(args, argc, argv, &i)))
            return code;
    if (!bare && (code = check_operands(args)))
        return code;
    if (!fin_is_auto((double)args->run.threads))
        fin_threads_set((int)args->run.threads);
    return CLI_OK;
}
