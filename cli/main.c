/* finetti: the command line tool. Finds the command and hands over. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {&cli_risk, &cli_simulate,  &cli_train, &cli_landscape,
                                              &cli_info, &cli_reproduce, NULL};

static const cli_command *find_command(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[16];
    int count = 0;
    for (; commands[count]; count++)
        names[count] = commands[count]->name;
    names[count++] = "help";
    const char *near = fin_nearest_name(name, names, count);
    cli_message_prefix("");
    return near ? cli_usage("unknown command '%.40s'; did you mean %s?", name, near)
                : cli_usage("unknown command '%.40s'; 'finetti help' lists them", name);
}

static int overview(void)
{
    cli_help_overview(commands);
    return cli_flush();
}

/* The mode of a command that is not running it: help, or the lines that completion reads. */
enum { RUN, HELP, COMPLETE };

static int call(int mode, const char *name, int argc, char **argv)
{
    const cli_command *command = find_command(name);
    if (!command)
        return unknown_command(name);
    static cli_args args; /* large, and one is enough */
    bool help;
    cli_message_prefix(command->name);
    int code = cli_parse(&args, command, argc, argv, &help);
    if (code)
        return code;
    if (mode == COMPLETE) {
        cli_complete(&args);
        return cli_flush();
    }
    if (help || mode == HELP) {
        cli_help_command(&args);
        return cli_flush();
    }
    code = command->run(&args);
    cli_progress_end();
    return code;
}

/* Hidden: what the shell's completion asks, so that it never goes stale. */
static int complete(int argc, char **argv)
{
    if (argc > 0)
        return call(COMPLETE, argv[0], argc - 1, argv + 1);
    for (int i = 0; commands[i]; i++)
        printf("%s\n", commands[i]->name);
    printf("help\n");
    return cli_flush();
}

int main(int argc, char **argv)
{
    cli_catch_signals();
    if (argc < 2)
        return overview();
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        printf("finetti %s\n", fin_version());
        return cli_flush();
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return overview();
    if (strcmp(name, "help") == 0)
        return argc < 3 || strcmp(argv[2], "help") == 0 ? overview()
                                                        : call(HELP, argv[2], argc - 3, argv + 3);
    if (strcmp(name, "complete") == 0)
        return complete(argc - 2, argv + 2);
    if (name[0] == '-')
        return cli_usage("unknown option %.60s; a command comes first, 'finetti help' lists them",
                         name);
    return call(RUN, name, argc - 2, argv + 2);
}
