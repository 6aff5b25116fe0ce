/* Progress with the time that is left, and stopping by signal.
 *
 * A signal only sets a flag: the library asks through the progress callback and gives up cleanly,
 * so that no half-written file stays. The handler is good for one signal; the next one, whichever,
 * ends the program at once, in case a step that does not ask takes long. */
#include "cli.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static atomic_int stopped; /* number of the signal, which the system may give to any thread */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a handler may touch lock-free objects only");

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

static void stop(int number)
{
    atomic_store(&stopped, number);
    cli_release_signals();
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
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
    return cli_signal() != 0;
}

int cli_signal(void)
{
    return atomic_load(&stopped);
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

char *cli_time_left(double seconds, char *buffer, size_t size)
{
    if (!(seconds >= 0 && seconds < 1e9)) /* NaN: not known */
        snprintf(buffer, size, "%s", "");
    else if (seconds < 100)
        snprintf(buffer, size, "%.0f s left", seconds);
    else if (seconds < 6000)
        snprintf(buffer, size, "%.0f min left", seconds / 60);
    else
        snprintf(buffer, size, "%.1f h left", seconds / 3600);
    return buffer;
}

static void draw(const char *what, double fraction, double now)
{
    double left = (now - line.start) * (1 - fraction) / (fraction - line.origin);
    char text[32];
    cli_time_left(left, text, sizeof text);
    fprintf(stderr, "\r\033[K%s  %3.0f%%%s%s", what, 100 * fraction, *text ? "  " : "", text);
    fflush(stderr);
    line.drawn = now;
    line.visible = true;
}

static bool is_terminal(void)
{
    static int terminal = -1;
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    return terminal;
}

static int report(void *user, const char *what, double done, double total)
{
    (void)user;
    if (cli_cancelled() || !is_terminal() || !(total > 0))
        return cli_cancelled();
    double now = cli_clock(), fraction = line.first + line.share * (done / total);
    if (line.start == 0 || fraction < line.last) { /* another piece of work has begun */
        line.start = now;
        line.origin = fraction;
    }
    line.last = fraction;
    if (now - line.start > PATIENCE && now - line.drawn > INTERVAL)
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

/* ---- an encoder that learns ---------------------------------------------------------------- */

/* Columns of the terminal: a longer line would be broken, and stay when the next one is drawn. */
static int columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col - 1 : 79;
}

static void draw_learn(const fin_learn_report *r, double seconds, double steps, double tokens)
{
    char left[32], test[64] = "", text[256];
    cli_time_left(steps > 0 ? seconds / steps * (double)(r->steps - r->step) : NAN, left,
                  sizeof left);
    if (r->row && isfinite(r->row->test.excess) && r->row->test.bayes > 0)
        snprintf(test, sizeof test, "  excess %.1f %% of Bayes",
                 100 * r->row->test.excess / r->row->test.bayes);
    else if (r->row && isfinite(r->row->test.accuracy))
        snprintf(test, sizeof test, "  accuracy %.3f", r->row->test.accuracy);
    else if (r->row)
        snprintf(test, sizeof test, "  test %.4g", r->row->test.risk);
    snprintf(text, sizeof text, "step %lld/%lld  loss %.4g%s  %s%s%.3g tokens/s",
             (long long)r->step, (long long)r->steps, r->loss, test, left, *left ? "  " : "",
             tokens / seconds);
    fprintf(stderr, "\r\033[K%.*s", columns(), text);
    fflush(stderr);
    line.visible = true;
}

int cli_progress_learn(void *user, const fin_learn_report *report)
{
    static struct {
        double time, step, tokens, last;
    } from; /* where this piece of learning was first heard of */
    (void)user;
    if (cli_cancelled() || !is_terminal() || fin_rank() != 0)
        return cli_cancelled();
    double now = cli_clock(), step = (double)report->step;
    if (from.time == 0 || step < from.last) {
        from.time = now;
        from.step = step;
        from.tokens = report->tokens;
    }
    from.last = step;
    if (now - from.time > PATIENCE && now - line.drawn > INTERVAL) {
        draw_learn(report, now - from.time, step - from.step, report->tokens - from.tokens);
        line.drawn = now;
    }
    return 0;
}

/* ---- the runs of a study -------------------------------------------------------------------- */

static void draw_study(const fin_study_news *news)
{
    char left[32];
    cli_time_left(news->left, left, sizeof left);
    fprintf(stderr, "\r\033[K%.60s  %lld/%lld runs", news->study, (long long)news->done,
            (long long)news->total);
    if (news->done > 0 && news->seconds > 0)
        fprintf(stderr, "  %.3g/s", (double)news->done / news->seconds);
    if (*left)
        fprintf(stderr, "  %s", left);
    if (news->failed > 0)
        fprintf(stderr, "  %lld failed", (long long)news->failed);
    fflush(stderr);
    line.visible = true;
}

/* For a log: whole lines, and few of them. */
static void say_study(const fin_study_news *news)
{
    char left[32];
    cli_time_left(news->left, left, sizeof left);
    fprintf(stderr, "%.60s: %lld of %lld runs, %lld failed, %.1f s%s%s\n", news->study,
            (long long)news->done, (long long)news->total, (long long)news->failed, news->seconds,
            *left ? ", " : "", left);
}

int cli_progress_study(void *user, const fin_study_news *news)
{
    (void)user;
    static double said; /* seconds since the start, when a line was last written to a log */
    static const double QUIET = 10;
    double now = cli_clock();
    if (cli_cancelled())
        return 1;
    if (is_terminal() && news->seconds > PATIENCE && now - line.drawn > INTERVAL) {
        draw_study(news);
        line.drawn = now;
    }
    said = news->seconds < said ? 0 : said; /* another study */
    if (!is_terminal() && news->seconds - said >= QUIET) {
        say_study(news);
        said = news->seconds;
    }
    return 0;
}
