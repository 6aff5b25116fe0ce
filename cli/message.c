/* Messages to the person: always one line, always on standard error. */
#include "cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *prefix = "";
static bool silent;

void cli_message_prefix(const char *command)
{
    prefix = command;
}

void cli_message_silence(void)
{
    silent = true;
}

/* What the user typed may hold line breaks or escape codes; a message shows them as '?'. */
static void say(const char *format, va_list list)
{
    char text[1024];
    if (silent)
        return;
    vsnprintf(text, sizeof text, format, list);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    cli_progress_end();
    fprintf(stderr, "finetti%s%s: %s\n", *prefix ? " " : "", prefix, text);
}

#define SAY(format)                                                                                \
    va_list list;                                                                                  \
    va_start(list, format);                                                                        \
    say(format, list);                                                                             \
    va_end(list)

int cli_usage(const char *format, ...)
{
    SAY(format);
    return CLI_USAGE;
}

int cli_failed(const char *format, ...)
{
    SAY(format);
    return CLI_FAILED;
}

static int stop_code(void)
{
    return cli_signal() ? CLI_SIGNAL + cli_signal() : CLI_FAILED;
}

int cli_stopped(const char *format, ...)
{
    SAY(format);
    return stop_code();
}

void cli_note(const char *format, ...)
{
    SAY(format);
}

int cli_error(const fin_error *err)
{
    const char *text = err->message[0] ? err->message : fin_status_name(err->status);
    if (err->status == FIN_ERR_IO && strstr(text, "standard output") && cli_output_closed())
        return CLI_SIGNAL + SIGPIPE;
    return err->status == FIN_ERR_ARGUMENT    ? cli_usage("%s", text)
           : err->status == FIN_ERR_CANCELLED ? cli_stopped("%s", text)
                                              : cli_failed("%s", text);
}

fin_status cli_status(fin_error *err, fin_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, list);
    va_end(list);
    return status;
}

fin_status cli_status_memory(fin_error *err, double bytes, const char *what)
{
    return cli_status(err, FIN_ERR_MEMORY, "not enough memory for %s (%.3g GB)", what, bytes / 1e9);
}

double cli_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
