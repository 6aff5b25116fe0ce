/* finetti study status: how far a running study is, seen from another terminal. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"watch", NULL, "look again every second until nothing runs any more"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_status = {
    .name = "study status",
    .summary = "how far a running study is, seen from another terminal",
    .about =
        "Prints, for every study that was run into the store, its last pass: runs done of those\n"
        "that were to do, the rate, the time that is left and how many failed. A pass that has\n"
        "not spoken for ten seconds is silent: it was killed, or its machine is gone.",
    .examples = "  finetti study status\n"
                "  finetti study status slr_training --watch\n"
                "  finetti study status --store /scratch/lengths.db --json\n",
    .operands = {"NAME", "only this study", 0, 1, false},
    .words = words,
    .run = run,
};

/* ---- the last pass of every study ----------------------------------------------------------- */

static const double SILENT = 10; /* seconds */

typedef struct passes {
    const char *only; /* NULL: every study */
    json_t *by_study; /* name: object; a later one takes the place of an earlier one */
    int running;
} passes;

static const char *state(const fin_session_row *row)
{
    return row->ended ? "ended" : row->silent < SILENT ? "running" : "silent";
}

static fin_status add_pass(void *user, const fin_session_row *row, fin_error *err)
{
    passes *p = user;
    if (p->only && strcmp(p->only, row->study) != 0)
        return FIN_OK;
    const json_t *old = json_object_get(p->by_study, row->study);
    if (old && json_number_value(json_object_get(old, "silent")) < row->silent)
        return FIN_OK;
    double rate = row->seconds > 0 ? (double)row->done / row->seconds : 0;
    json_t *pass = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:o, s:f}", "study", row->study, "state",
        state(row), "total", (json_int_t)row->total, "done", (json_int_t)row->done, "failed",
        (json_int_t)row->failed, "ranks", row->ranks, "threads", row->threads, "seconds",
        row->seconds, "rate", rate, "left", cli_json_number(row->left), "silent", row->silent);
    if (!pass || json_object_set_new(p->by_study, row->study, pass))
        return cli_status(err, FIN_ERR_MEMORY, "not enough memory for the sessions");
    return FIN_OK;
}

static fin_status look(fin_store *store, passes *p, fin_error *err)
{
    const char *name;
    const json_t *pass;
    json_decref(p->by_study);
    p->by_study = json_object();
    p->running = 0;
    fin_status status = fin_store_sessions(store, add_pass, p, err);
    json_object_foreach(p->by_study, name, pass)
    {
        p->running += strcmp(study_json_text(pass, "state"), "running") == 0;
    }
    return status;
}

/* ---- printing ------------------------------------------------------------------------------- */

static long long whole(const json_t *pass, const char *name)
{
    return (long long)json_integer_value(json_object_get(pass, name));
}

static void print_pass(const json_t *pass)
{
    char study[64], left[32] = "";
    const json_t *seconds = json_object_get(pass, "left");
    const char *now = study_json_text(pass, "state");
    bool running = strcmp(now, "running") == 0;
    printf("%-24s %-8s", study_clean(study_json_text(pass, "study"), study, sizeof study), now);
    if (whole(pass, "total") == 0) {
        printf(" nothing was left to do\n");
        return;
    }
    printf(" %lld/%lld runs  %.3g/s", whole(pass, "done"), whole(pass, "total"),
           json_number_value(json_object_get(pass, "rate")));
    if (running && json_is_real(seconds))
        cli_time_left(json_real_value(seconds), left, sizeof left);
    if (*left)
        printf("  %s", left);
    if (whole(pass, "failed"))
        printf("  %lld failed", whole(pass, "failed"));
    char ranks[32], threads[32];
    if (whole(pass, "ranks") > 1)
        printf("  on %s", study_plural(whole(pass, "ranks"), "rank", ranks, sizeof ranks));
    else
        printf("  on %s", study_plural(whole(pass, "threads"), "thread", threads, sizeof threads));
    if (strcmp(now, "silent") == 0)
        printf("  for %.0f s", json_number_value(json_object_get(pass, "silent")));
    putchar('\n');
}

static int print(const passes *p, bool json)
{
    const char *name;
    const json_t *pass;
    json_t *list = json_array();
    json_object_foreach(p->by_study, name, pass)
    {
        if (json)
            json_array_append(list, (json_t *)pass);
        else
            print_pass(pass);
    }
    if (json)
        return cli_print_json(list);
    json_decref(list);
    if (json_object_size(p->by_study) == 0)
        printf("nothing was run into this store%s\n", p->only ? " under that name" : "");
    return cli_flush();
}

/* On a terminal the lines are drawn over; elsewhere a block of lines every ten seconds. */
static fin_status watch(fin_store *store, passes *p, int *code, fin_error *err)
{
    bool terminal = isatty(STDOUT_FILENO);
    fin_status status = FIN_OK;
    for (int second = 0; p->running && !status && !*code && !cli_cancelled(); second++) {
        struct timespec pause = {.tv_sec = 1};
        nanosleep(&pause, NULL);
        size_t lines = json_object_size(p->by_study);
        status = look(store, p, err);
        if (status || (!terminal && second % 10 != 9 && p->running))
            continue;
        if (terminal)
            printf("\033[%zuA\033[J", lines);
        *code = print(p, false);
    }
    return status;
}

static int run(cli_args *args)
{
    fin_store *store;
    fin_error err = {FIN_OK, ""};
    passes p = {.only = args->operand_count ? args->operand[0] : NULL};
    bool json = cli_get(args, "json"), watching = cli_get(args, "watch");
    if (json && watching)
        return cli_usage("--watch prints lines; --json does not go with it");
    fin_status status = study_open(args, FIN_STORE_READ, &store, &err);
    if (!status && p.only)
        status = study_need(store, p.only, &err);
    if (!status)
        status = look(store, &p, &err);
    int code = status ? CLI_OK : print(&p, json);
    if (!status && !code && watching)
        status = watch(store, &p, &code, &err);
    json_decref(p.by_study);
    fin_store_close(store);
    return status ? cli_error(&err) : code;
}
