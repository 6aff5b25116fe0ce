/* finetti lab: every row of the library's table of commands, run and shown in one way. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 128 };

static const cli_word words[] = {CLI_ROW_WORDS, {NULL, NULL, NULL}};
static const cli_word lists[] = {CLI_ROW_LISTS, {NULL, NULL, NULL}};

static int run(cli_args *args)
{
    return cli_run(args, NULL);
}

/* Has the tool a command for this row, with a layout of its own? */
static bool has_command(const cli_command *const *commands, const char *row)
{
    for (; *commands; commands++)
        if ((*commands)->row && strcmp((*commands)->row, row) == 0)
            return true;
    return false;
}

int cli_lab(const cli_command *const *commands, const cli_command **list, int room)
{
    static cli_command rows[ROWS];
    static char names[ROWS][80], examples[ROWS][256];
    int count = 0;
    for (; count < fin_command_count() && count < ROWS && count < room; count++) {
        const fin_command *row = fin_command_at(count);
        snprintf(names[count], sizeof names[count], "lab %.64s", row->name);
        snprintf(examples[count], sizeof examples[count],
                 "  finetti lab %.64s\n  finetti lab %.64s --json\n", row->name, row->name);
        rows[count] = (cli_command){.name = names[count],
                                    .summary = row->summary,
                                    .about = row->summary,
                                    .examples = examples[count],
                                    .row = row->name,
                                    .words = words,
                                    .lists = lists,
                                    .computes = true,
                                    .unlisted = has_command(commands, row->name),
                                    .run = run};
        list[count] = &rows[count];
    }
    return count;
}
