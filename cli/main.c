/* finetti: the command line tool. Finds the command, which has one word or two, and hands over. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const cli_command *const own[] = {&cli_risk,         &cli_simulate,
                                         &cli_train,        &cli_landscape,
                                         &cli_curve,        &cli_fit,
                                         &cli_predict,      &cli_locate,
                                         &cli_explain,      &cli_attend,
                                         &cli_latent_risk,  &cli_latent_draw,
                                         &cli_study_run,    &cli_study_ls,
                                         &cli_study_show,   &cli_study_status,
                                         &cli_study_export, &cli_study_diff,
                                         &cli_study_merge,  &cli_study_gc,
                                         &cli_study_check,  &cli_study_commands,
                                         &cli_pretrain,     &cli_finetune,
                                         &cli_probe,        &cli_embed,
                                         &cli_report,       &cli_explore,
                                         &cli_plot,         &cli_reproduce,
                                         &cli_info,         NULL};

static const cli_family families[] = {
    {"latent", "exchangeable tokens: Bayes risks against length, data to try things on",
     "Tokens whose order does not matter are independent given a latent variable. The families\n"
     "here have exact posteriors; docs/exchangeability.md describes them."},
    {"study", "experiments as files: run them into a store, look, compare, join",
     "A study is a YAML file that says what to run and what theory claims about the outcome;\n"
     "docs/studies.md describes it. Its runs go into a store, one SQLite file, from which\n"
     "claims, figures and reports are read."},
    {"lab", "experiments: what studies are made of, one at a time",
     "Every computation that needs no file of yours: the experiments that the studies run over\n"
     "many settings, here for one setting or a sweep (--sweep NAME=RANGE). Each says what it\n"
     "computes, how every number was obtained, and writes JSON, CSV or NPZ."},
    {NULL, NULL, NULL},
};

/* Those above, then a command of the lab for every row of the library's table. */
enum { COMMANDS = 192 };
static const cli_command *commands[COMMANDS];

static void collect(void)
{
    int count = (int)(sizeof own / sizeof *own) - 1;
    memcpy(commands, own, sizeof own);
    cli_lab(own, commands + count, COMMANDS - 1 - count);
}

const char *cli_family_member(const cli_family *family, const cli_command *command)
{
    size_t length = strlen(family->name);
    bool member = strncmp(command->name, family->name, length) == 0 && command->name[length] == ' ';
    return member ? command->name + length + 1 : NULL;
}

static const cli_family *find_family(const char *name)
{
    for (const cli_family *family = families; family->name; family++)
        if (strcmp(family->name, name) == 0)
            return family;
    return NULL;
}

/* The mode of a command that is not running it: help, or the lines that completion reads. */
enum { RUN, HELP, COMPLETE };

/* ---- which command -------------------------------------------------------------------------- */

/* An experiment by its name alone, as messages of the library have it. */
static const cli_command *find_in_lab(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (strncmp(commands[i]->name, "lab ", 4) == 0 && strcmp(commands[i]->name + 4, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS];
    int count = 0;
    for (int i = 0; commands[i]; i++)
        if (!strchr(commands[i]->name, ' '))
            names[count++] = commands[i]->name;
    for (const cli_family *family = families; family->name; family++)
        names[count++] = family->name;
    names[count++] = "help";
    const char *near = fin_nearest_name(name, names, count);
    cli_message_prefix("");
    if (find_in_lab(name))
        near = find_in_lab(name)->name;
    return cli_usage("unknown command '%.40s'%s", name,
                     cli_hint(near, "; 'finetti help' lists them"));
}

static int unknown_member(const cli_family *family, const char *name)
{
    const char *names[COMMANDS];
    int count = 0;
    for (int i = 0; commands[i]; i++)
        if (cli_family_member(family, commands[i]))
            names[count++] = cli_family_member(family, commands[i]);
    const char *near = fin_nearest_name(name, names, count);
    cli_message_prefix(family->name);
    if (near)
        return cli_usage("unknown command '%s %.40s'; did you mean %s %s?", family->name, name,
                         family->name, near);
    return cli_usage("unknown command '%s %.40s'; 'finetti help %s' lists them", family->name, name,
                     family->name);
}

/* Takes one word or two from argv. *command is NULL, without a message, if a family stands alone;
 * *family is NULL if there is none. Returns an exit code, after the message. */
static int find_command(int mode, int *argc, char ***argv, const cli_family **family,
                        const cli_command **command)
{
    const char *name = (*argv)[0];
    *family = find_family(name);
    *command = NULL;
    ++*argv, --*argc;
    const char *second = *family && *argc > 0 && (*argv)[0][0] != '-' ? (*argv)[0] : NULL;
    if (second)
        ++*argv, --*argc;
    for (int i = 0; commands[i]; i++) {
        const char *member = *family ? cli_family_member(*family, commands[i]) : NULL;
        if (second ? member && strcmp(member, second) == 0 : strcmp(commands[i]->name, name) == 0)
            *command = commands[i];
    }
    if (mode == HELP && !*command && !*family)
        *command = find_in_lab(name);
    if (*command || (*family && !second))
        return CLI_OK;
    return *family ? unknown_member(*family, second) : unknown_command(name);
}

/* ---- what to do with it --------------------------------------------------------------------- */

static int overview(void)
{
    cli_help_overview();
    return cli_flush();
}

static int call_family(int mode, const cli_family *family, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--help") != 0 && strcmp(argv[0], "-h") != 0)
        return cli_usage("unexpected argument '%.60s'; a command comes first, 'finetti help %s' "
                         "lists them",
                         argv[0], family->name);
    if (mode != COMPLETE)
        cli_help_family(family, commands);
    for (int i = 0; mode == COMPLETE && commands[i]; i++)
        if (cli_family_member(family, commands[i]) && !commands[i]->unlisted)
            printf("%s\tcommand\t\t\t\t\n", cli_family_member(family, commands[i]));
    return cli_flush();
}

static int call_command(int mode, const cli_command *command, int argc, char **argv)
{
    static cli_args args; /* large, and one is enough */
    bool help;
    int code = cli_parse(&args, command, argc, argv, mode != RUN, &help);
    if (code)
        return code;
    if (mode == RUN && !help) {
        code = command->run(&args);
        cli_progress_end();
        return code;
    }
    if (fin_rank() != 0)
        return CLI_OK;
    if (mode == COMPLETE)
        cli_complete(&args);
    else
        cli_help_command(&args);
    return cli_flush();
}

static int call(int mode, int argc, char **argv)
{
    const cli_family *family;
    const cli_command *command;
    CLI_TRY(find_command(mode, &argc, &argv, &family, &command));
    cli_message_prefix(command ? command->name : family->name);
    if (!command)
        return call_family(mode, family, argc, argv);
    if (mode != RUN || !command->ranks)
        return call_command(mode, command, argc, argv);
    fin_error err = {FIN_OK, ""};
    if (cli_ranks_start(&err))
        return cli_error(&err);
    if (fin_rank() != 0)
        cli_message_silence();
    int code = call_command(mode, command, argc, argv);
    fin_ranks_end();
    return code;
}

/* Hidden: what the shell's completion asks, so that it never goes stale. */
static int complete(int argc, char **argv)
{
    if (argc > 0)
        return call(COMPLETE, argc, argv);
    for (int i = 0; commands[i]; i++)
        if (!strchr(commands[i]->name, ' '))
            printf("%s\n", commands[i]->name);
    for (const cli_family *family = families; family->name; family++)
        printf("%s\n", family->name);
    printf("help\n");
    return cli_flush();
}

/* What OpenBLAS reads before main; if it should have read something else, the tool is started again.
 *
 * OpenBLAS starts threads of its own, of which the tool uses none. Where addresses are limited (ulimit -v)
 * they may ask for ever for memory that is not there, and then the program cannot even end. And on a CPU
 * that is newer than itself OpenBLAS uses instructions of twenty years ago. */
static void start_again(char **argv)
{
    static const char threads[] = "OPENBLAS_NUM_THREADS", core[] = "OPENBLAS_CORETYPE";
    char path[CLI_PATH];
    struct rlimit limit;
    const char *told = getenv(threads), *better = getenv(core) ? NULL : fin_kernel_blas_core();
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                   !(told && strcmp(told, "1") == 0);
    if (!limited && !better)
        return;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if ((!limited || setenv(threads, "1", 1) == 0) && (!better || setenv(core, better, 1) == 0))
        execv(path, argv); /* if that fails, it goes on as it is */
}

int main(int argc, char **argv)
{
    start_again(argv);
    cli_catch_signals();
    cli_json_begin();
    collect();
    if (argc < 2)
        return overview();
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        printf("finetti %s\n", fin_version());
        return cli_flush();
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return overview();
    if (strcmp(name, "help") == 0 && argc > 2 && strcmp(argv[2], "tasks") == 0) {
        cli_help_tasks();
        return cli_flush();
    }
    if (strcmp(name, "help") == 0)
        return argc < 3 || strcmp(argv[2], "help") == 0 ? overview()
                                                        : call(HELP, argc - 2, argv + 2);
    if (strcmp(name, "complete") == 0)
        return complete(argc - 2, argv + 2);
    if (name[0] == '-')
        return cli_usage("unknown option %.60s; a command comes first, 'finetti help' lists them",
                         name);
    return call(RUN, argc - 1, argv + 1);
}
