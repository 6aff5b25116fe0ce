/* Progress with the time that is left, and stopping by signal.
 *
 * A signal only sets a flag: the library asks through the progress callback and gives up cleanly,
 * so that no half-written file stays. The handler is good for one signal; the next one ends the
 * program, in case a step that does not ask takes long. */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void on_stop(const struct sigaction *action)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        /* What the parent ignores (nohup) stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], action, NULL);
    }
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    on_stop(&action);
    /* A closed pipe and a file that may not grow are then write errors, with a message. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void cli_release_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigemptyset(&action.sa_mask);
    on_stop(&action);
}

bool cli_cancelled(void)
{
    return stopped != 0;
}

/* ---- the line ------------------------------------------------------------------------------- */

static struct {
    double first, share; /* the part of the whole that is under way */
    double start;        /* time at fraction `origin` */
    double origin, last; /* fractions */
    double drawn;        /* time of the last drawing */
    bool visible;
} line = {.share = 1};

/* Short jobs show nothing; a line that comes and goes only flickers. */
static const double PATIENCE = 0.7, INTERVAL = 0.2;

void cli_progress_part(double first, double share)
{
    line.first = first;
    line.share = share;
}

static void draw(const char *what, double fraction, double now)
{
    double left = (now - line.start) * (1 - fraction) / (fraction - line.origin);
    fprintf(stderr, "\r\033[K%s  %3.0f%%", what, 100 * fraction);
    if (left < 100)
        fprintf(stderr, "  %.0f s left", left);
    else if (left < 6000)
        fprintf(stderr, "  %.0f min left", left / 60);
    else
        fprintf(stderr, "  %.1f h left", left / 3600);
    fflush(stderr);
    line.drawn = now;
    line.visible = true;
}

static int report(void *user, const char *what, double done, double total)
{
    (void)user;
    static int terminal = -1;
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    if (stopped || !terminal || !(total > 0))
        return stopped;
    double now = cli_clock(), fraction = line.first + line.share * (done / total);
    if (line.start == 0 || fraction < line.last) { /* another piece of work has begun */
        line.start = now;
        line.origin = fraction;
    }
    line.last = fraction;
    if (now - line.start > PATIENCE && now - line.drawn > INTERVAL && fraction > line.origin)
        draw(what, fraction, now);
    return 0;
}

const fin_progress *cli_progress(void)
{
    static const fin_progress hook = {report, NULL};
    return &hook;
}

void cli_progress_end(void)
{
    if (line.visible)
        fputs("\r\033[K", stderr);
    line.visible = false;
}
