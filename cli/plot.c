/* Figures as files. The library writes SVG and CSV; PDF and PNG are made from the SVG by
 * rsvg-convert, which is started without a shell, so that no name can be taken for a command. It
 * writes into a folder beside the target, from where the result is moved into place: a file is
 * there completely or not at all. */
#include "plot.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool is_converted(const char *path)
{
    return cli_ends_with(path, ".pdf") || cli_ends_with(path, ".png");
}

int plot_check(const char *path)
{
    if (!path)
        return cli_usage("--out FILE.svg, FILE.pdf, FILE.png or FILE.csv is missing");
    if (!is_converted(path) && !cli_ends_with(path, ".svg") && !cli_ends_with(path, ".csv"))
        return cli_usage("--out '%.200s': the format is SVG, PDF, PNG or CSV; end it in .svg, "
                         ".pdf, .png or .csv",
                         path);
    return CLI_OK;
}

/* ---- rsvg-convert --------------------------------------------------------------------------- */

static int no_converter(void)
{
    return cli_failed("PDF and PNG need rsvg-convert, which is not here (Debian and Ubuntu: "
                      "librsvg2-bin, Fedora: librsvg2-tools, Homebrew: librsvg); --out FILE.svg "
                      "and FILE.csv need nothing");
}

static int convert(const char *from, const char *to, bool pdf)
{
    /* A unit of the figure is a point on paper: 72 to an inch. 300 dots an inch are what journals
     * ask for. */
    char *argv[] = {"rsvg-convert",
                    pdf ? "--format=pdf" : "--format=png",
                    "--dpi-x=72",
                    "--dpi-y=72",
                    pdf ? "--zoom=1" : "--zoom=4.16666",
                    "--output",
                    (char *)to,
                    (char *)from,
                    NULL};
    pid_t child;
    int state, failed = posix_spawnp(&child, argv[0], NULL, NULL, argv, environ);
    if (failed == ENOENT)
        return no_converter();
    if (failed)
        return cli_failed("rsvg-convert cannot be started: %s", strerror(failed));
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return cli_failed("rsvg-convert was lost: %s", strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return no_converter();
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return cli_failed("rsvg-convert failed to make the figure");
    return CLI_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A folder of our own beside path. */
static int make_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path + 1) : 0;
    if (length + 32 >= PATH_MAX)
        return cli_failed("cannot write '%.200s': %s", path, strerror(ENAMETOOLONG));
    snprintf(folder, PATH_MAX, "%.*s.finetti-XXXXXX", length, path);
    if (!mkdtemp(folder))
        return cli_failed("cannot write '%.200s': %s", path, strerror(errno));
    return CLI_OK;
}

static int write_converted(fin_store *store, const fin_figure *figure, const char *path)
{
    char folder[PATH_MAX], svg[PATH_MAX + 16], made[PATH_MAX + 16];
    fin_error err = {FIN_OK, ""};
    int code = cli_try_output(path, &err) ? cli_error(&err) : make_folder(path, folder);
    if (code)
        return code;
    snprintf(svg, sizeof svg, "%s/figure.svg", folder);
    snprintf(made, sizeof made, "%s/figure.out", folder);
    if (fin_report_figure(store, figure, svg, &err))
        code = cli_error(&err);
    if (!code)
        code = convert(svg, made, cli_ends_with(path, ".pdf"));
    if (!code && rename(made, path) != 0)
        code = cli_failed("cannot write '%.200s': %s", path, strerror(errno));
    unlink(svg);
    unlink(made);
    rmdir(folder);
    return code;
}

int plot_write(fin_store *store, const fin_figure *figure, const char *path)
{
    fin_error err = {FIN_OK, ""};
    if (is_converted(path))
        CLI_TRY(write_converted(store, figure, path));
    else if (fin_report_figure(store, figure, path, &err))
        return cli_error(&err);
    printf("%s\n", path);
    return cli_flush();
}
