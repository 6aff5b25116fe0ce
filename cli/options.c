/* Options from the command line: words of the tool, and settings as names and texts for the library.
 *
 * Not getopt_long: which options exist depends on the values of --task and --form, so everything that
 * is no word of the tool is kept as a pair first; the library then says which tables the pairs choose
 * (fin_command_tables) and what is wrong with them (fin_command_apply), in the sentences that studies
 * and Python have. A value is the next argument whatever it starts with, except "--", so that -0.5 is
 * a number. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

#define CLI_THREADS_FIELDS(F, C)                                                                   \
    F(int64_t, threads, FIN_AUTO_INT, 1, 4096,                                                     \
      "threads; auto = FINETTI_THREADS, OMP_NUM_THREADS or all processors; no result depends on "  \
      "it")
#define FIN_TABLE_STRUCT cli_args
FIN_TABLE(, cli_threads_table, "options", CLI_THREADS_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT cli_pause_settings
FIN_TABLE(, cli_pause_table, "options", CLI_PAUSE_FIELDS);
#undef FIN_TABLE_STRUCT

const fin_word cli_no_words[] = {FIN_WORDS_END};

/* ---- names ---------------------------------------------------------------------------------- */

/* words may be NULL. Names of words are written with '_'. */
static int find_word(const cli_word *words, const char *name)
{
    for (int i = 0; words && words[i].name; i++)
        if (strcmp(words[i].name, name) == 0)
            return i;
    return -1;
}

static const char *find_pair(const cli_args *args, const char *name)
{
    const char *text = NULL;
    for (int i = 0; i < args->pair_count; i++)
        if (strcmp(args->pairs[i].name, name) == 0)
            text = args->pairs[i].text;
    return text;
}

const fin_field *cli_field(const cli_args *args, const char *name, const fin_group **group)
{
    for (int g = 0; g < args->group_count; g++) {
        const fin_field *field = fin_settings_find(args->groups[g].table, name);
        if (field) {
            *group = &args->groups[g];
            return field;
        }
    }
    return NULL;
}

bool cli_given(const cli_args *args, const char *name)
{
    return find_pair(args, name) != NULL;
}

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

const char *cli_odd_option(const cli_args *args, const char *const *fitting)
{
    const cli_word *words = args->command->words;
    for (int i = 0; i < args->pair_count; i++)
        if (!is_among(args->pairs[i].name, fitting))
            return args->pairs[i].name;
    for (int i = 0; words[i].name; i++)
        if (args->word[i] && !is_among(words[i].name, fitting))
            return words[i].name;
    return NULL;
}

bool cli_hidden(const cli_command *command, const char *name)
{
    return find_word(command->words, name) >= 0 || find_word(command->lists, name) >= 0;
}

const char *cli_get(const cli_args *args, const char *name)
{
    int i = find_word(args->command->words, name);
    return i < 0 ? find_pair(args, name) : args->word[i];
}

const char *const *cli_list(const cli_args *args, const char *name, int *count)
{
    int i = find_word(args->command->lists, name);
    *count = i < 0 ? 0 : args->list_count[i];
    return i < 0 ? NULL : args->list[i];
}

static const fin_word *find_setting_word(const cli_args *args, const char *name)
{
    const fin_word *word = args->settings ? args->settings->words : NULL;
    while (word && word->name && strcmp(word->name, name) != 0)
        word++;
    return word && word->name && !cli_hidden(args->command, name) ? word : NULL;
}

bool cli_is_word(const cli_args *args, const char *name)
{
    return find_setting_word(args, name) != NULL;
}

const char *cli_word_text(const cli_args *args, const char *name)
{
    const fin_word *word = find_setting_word(args, name);
    return word ? (const char *)args->values + word->offset : "";
}

const fin_task_kind *cli_task_kind(const cli_args *args)
{
    return fin_task_find(cli_word_text(args, "task"));
}

const fin_form *cli_form(const cli_args *args)
{
    return fin_form_find(cli_word_text(args, "form"));
}

const fin_family *cli_settings_family(const cli_args *args)
{
    return fin_family_find(cli_word_text(args, "family"));
}

const void *cli_values(const cli_args *args, const fin_settings *table)
{
    for (int g = 0; g < args->group_count; g++)
        if (args->groups[g].table == table)
            return args->groups[g].values;
    return NULL;
}

/* Nearest to `name` among the tool's words alone or, with all, settings as well. */
static const char *nearest(const cli_args *args, const char *name, bool all)
{
    enum { NAMES = 512 };
    const char *names[NAMES];
    int count = 0;
    const cli_word *const own[] = {args->command->words, args->command->lists};
    for (int k = 0; k < 2; k++)
        for (const cli_word *word = own[k]; word && word->name && count < NAMES; word++)
            names[count++] = word->name;
    if (args->command->computes)
        names[count++] = "threads";
    if (all && args->settings)
        for (const fin_word *word = args->settings->words; word->name && count < NAMES; word++)
            names[count++] = word->name;
    for (int g = 0; all && g < args->group_count; g++)
        for (int i = 0; i < args->groups[g].table->count && count < NAMES; i++)
            names[count++] = args->groups[g].table->fields[i].name;
    return fin_nearest_name(name, names, count);
}

char *cli_dashed(const char *name, char buffer[CLI_NAME + 2])
{
    snprintf(buffer, CLI_NAME + 2, "--%s", name);
    for (char *c = buffer; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return buffer;
}

/* A slip in a word of the tool is the tool's affair; what looks like a setting, or like nothing, the
 * library has a sentence for. */
static int unknown_option(cli_args *args, const char *name)
{
    const char *near = nearest(args, name, true), *own = nearest(args, name, false);
    char option[CLI_NAME + 2], other[CLI_NAME + 2];
    fin_error err = {FIN_OK, ""};
    cli_dashed(name, option);
    for (int i = 0; i < args->pair_count;
         i++) /* a value that is missing farther on is not told first */
        if (!args->pairs[i].text)
            args->pairs[i].text = "";
    if (args->settings)
        fin_command_apply(args->settings, args->values, args->pairs, args->pair_count, NULL, &err);
    bool elsewhere = strstr(err.message, "; it belongs to "); /* a setting of another task, say */
    if (near && own && strcmp(near, own) == 0 && !elsewhere)
        return cli_usage("unknown option %s; did you mean %s?", option, cli_dashed(own, other));
    if (err.status)
        return cli_error(&err);
    return cli_usage("unknown option %s; see 'finetti help %s'", option, args->command->name);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int add_to_list(cli_args *args, int i, const char *value)
{
    if (args->list_count[i] == CLI_LIST_MOST)
        return cli_usage("--%s can be given at most %d times", args->command->lists[i].name,
                         CLI_LIST_MOST);
    args->list[i][args->list_count[i]++] = value;
    return CLI_OK;
}

void cli_add(cli_args *args, const char *name, const char *text)
{
    if (args->pair_count == CLI_PAIRS)
        return;
    char *copy = args->names[args->pair_count];
    snprintf(copy, CLI_NAME, "%s", name);
    args->pairs[args->pair_count++] = (fin_pair){copy, text, NULL};
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

static int needs_value(const char *name, const char *value)
{
    char option[CLI_NAME + 2];
    cli_dashed(name, option);
    return cli_usage("option %s needs a value: %s %s", option, option, value);
}

/* A word of the tool, or a list. */
static int read_word(cli_args *args, int word, int list, const char *name, const char *value)
{
    char option[CLI_NAME + 2];
    const cli_word *found = word >= 0 ? &args->command->words[word] : &args->command->lists[list];
    if (!found->value && value)
        return cli_usage("option %s takes no value", cli_dashed(name, option));
    if (found->value && (!value || !*value))
        return needs_value(name, found->value);
    if (list >= 0)
        return add_to_list(args, list, value);
    args->word[word] = value ? value : "";
    return CLI_OK;
}

static int read_threads(cli_args *args, const char *value)
{
    fin_error err = {FIN_OK, ""};
    if (!value)
        return needs_value("threads", "INTEGER");
    if (fin_settings_parse(&cli_threads_table, args, "threads", value, &err))
        return cli_error(&err);
    return CLI_OK;
}

/* Reads the option at argv[*i] and moves *i to the last argument used. help: only settings count. */
static int read_option(cli_args *args, int argc, char **argv, int *i, bool help)
{
    char *start = argv[*i], name[CLI_NAME];
    if (help && (strncmp(start, "--", 2) != 0 || strcmp(start, "--help") == 0))
        return CLI_OK;
    if (start[0] != '-' || !start[1]) /* "-" is standard input */
        return add_operand(args, start);
    if (strncmp(start, "--", 2) != 0 || !start[2])
        return cli_usage("unexpected argument '%.60s'; options look like --name value", start);
    size_t length = strcspn(start + 2, "=");
    if (length >= sizeof name)
        return cli_usage("unknown option %.60s...", start);
    for (size_t k = 0; k < length; k++)
        name[k] = start[2 + k] == '-' ? '_' : start[2 + k];
    name[length] = '\0';
    const char *value = start[2 + length] ? start + 3 + length : NULL;
    int word = find_word(args->command->words, name), list = find_word(args->command->lists, name);
    bool flag = word >= 0 && !args->command->words[word].value;
    if (!value && !flag && *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
        value = argv[++*i];
    if (word >= 0 || list >= 0)
        return help ? CLI_OK : read_word(args, word, list, name, value);
    if (args->command->computes && strcmp(name, "threads") == 0)
        return read_threads(args, value);
    if (args->pair_count == CLI_PAIRS)
        return cli_usage("at most %d settings can be given", CLI_PAIRS);
    cli_add(args, name, value);
    return CLI_OK;
}

/* Chooses the tables, by pairs that have a value, and says what is no setting or has none. */
static int check_pairs(cli_args *args, bool names)
{
    fin_error err = {FIN_OK, ""};
    fin_pair whole[CLI_PAIRS];
    int count = 0;
    const fin_group *group;
    for (int i = 0; i < args->pair_count; i++)
        if (args->pairs[i].text)
            whole[count++] = args->pairs[i];
    if (args->settings && args->settings->size > sizeof args->values)
        return cli_failed("the settings of %s are too large", args->settings->name);
    if (args->settings && fin_command_tables(args->settings, args->values, whole, count,
                                             args->groups, &args->group_count, NULL, &err))
        return cli_error(&err);
    for (int i = 0; i < args->pair_count && names; i++) {
        const char *name = args->pairs[i].name;
        const fin_word *word = find_setting_word(args, name);
        bool missing = !args->pairs[i].text;
        if (missing)
            args->pairs[i].text = "";
        if (!word && !cli_field(args, name, &group))
            return unknown_option(args, name);
        if (missing || (word && !*args->pairs[i].text && !fin_word_choice(word, 0)))
            return needs_value(name, "VALUE");
    }
    return CLI_OK;
}

int cli_apply(cli_args *args)
{
    fin_error err = {FIN_OK, ""};
    if (args->settings &&
        fin_command_apply(args->settings, args->values, args->pairs, args->pair_count, NULL, &err))
        return cli_error(&err);
    return CLI_OK;
}

bool cli_is_many(const cli_args *args)
{
    int sweeps;
    cli_list(args, "sweep", &sweeps);
    return sweeps > 0 || (args->command->row && cli_get(args, "points"));
}

int cli_parse(cli_args *args, const cli_command *command, int argc, char **argv, bool bare,
              bool *help)
{
    memset(args, 0, sizeof *args);
    args->command = command;
    args->settings = command->row ? fin_command_find(command->row) : command->settings;
    args->threads = FIN_AUTO_INT;
    args->operand = argv;
    *help = false;
    for (int i = 0; i < argc; i++)
        *help = *help || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    int code = CLI_OK;
    for (int i = 0; i < argc && !code; i++)
        code = read_option(args, argc, argv, &i, *help);
    if (!code && command->prepare)
        command->prepare(args);
    if (!code)
        code = check_pairs(args, !*help);
    if (*help || code)
        return code;
    if (!bare && !cli_is_many(args))
        code = cli_apply(args);
    if (!code && !bare)
        code = check_operands(args);
    if (!code && !fin_is_auto((double)args->threads))
        fin_threads_set((int)args->threads);
    return code;
}
