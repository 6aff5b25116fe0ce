/* finetti explore: the page to play with, as one HTML file. */
#include "cli.h"

#include "finetti/report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"out", "FILE", "where it goes, or a folder that gets explore.html; default explore.html"},
    {NULL, NULL, NULL},
};

const cli_command cli_explore = {
    .name = "explore",
    .summary = "a page to play with: drag tokens, starts and settings in a browser",
    .about =
        "Writes one HTML file that needs neither a network nor other files: the library itself,\n"
        "compiled for the browser, behind panels to drag. Each says what to type here for the\n"
        "same numbers. docs/explore.md describes the panels and their addresses.",
    .examples = "  finetti explore\n"
                "  finetti explore --out report\n",
    .words = words,
    .run = run,
};

static int run(cli_args *args)
{
    const char *out = cli_get(args, "out");
    char path[PATH_MAX];
    struct stat info;
    fin_error err = {FIN_OK, ""};
    bool folder = out && stat(out, &info) == 0 && S_ISDIR(info.st_mode);
    int length = snprintf(path, sizeof path, "%s%s%s", out ? out : "", folder ? "/" : "",
                          folder || !out ? "explore.html" : "");
    if (length < 0 || (size_t)length >= sizeof path)
        return cli_usage("the name of the file is too long: %.60s...", out);
    if (fin_explore_write(NULL, path, &err))
        return cli_error(&err);
    printf("%s\n", path);
    return cli_flush();
}
