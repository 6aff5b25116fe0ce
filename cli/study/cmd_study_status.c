/* finetti study status: how far a running study is, seen from another terminal. */
#include "study/study.h"

#include <stdio.h>
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
        "that were to do, the rate, the time that is left and how many failed. A pass whose "
        "process\n"
        "is no more was killed: the same study run goes on where it was. One that has not spoken\n"
        "for ten seconds is silent: it, or its machine, is very busy.",
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
    return row->ended             ? "ended"
           : row->alive == 0      ? "killed"
           : row->silent < SILENT ? "running"
                                  : "silent";
}

static fin_status add_pass(void *user, const fin_session_row *row, fin_error *err)
{
    passes *p = user;
    if (p->only && strcmp(p->only, row->study) != 0)
        return FIN_OK;
    const json_t *old = json_object_get(p->by_study, row->study);
    if (old && json_number_value(json_object_get(old, "silent")) < row->silent)
        return FIN_OK;
    char left[32] = "";
    if (strcmp(state(row), "running") == 0)
        cli_time_left(row->left, left, sizeof left);
    double rate = row->seconds > 0 ? (double)row->done / row->seconds : 0;
    json_t *pass = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:o, s:f, s:s*}", "study", row->study,
        "state", state(row), "total", (json_int_t)row->total, "done", (json_int_t)row->done,
        "failed", (json_int_t)row->failed, "ranks", row->ranks, "threads", row->threads, "seconds",
        row->seconds, "rate", rate, "left", cli_json_number(row->left), "silent", row->silent,
        "time_left", *left ? left : NULL);
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
        p->running += strcmp(json_string_value(json_object_get(pass, "state")), "running") == 0;
    }
    return status;
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char form[] =
    "[{*.|{study:-24.63s} {state:-8s}[{?total} {done}/{total} runs  {rate:.3g}/s[  {time_left}]"
    "[{?failed}  {failed} failed]  on [{?ranks>1}{ranks#rank}|{threads#thread}]"
    "[{?state=silent}  for {silent:.0f} s]| nothing was left to do]\n}]";

static int print(const cli_args *args, const passes *p)
{
    const char *name;
    json_t *pass, *list = json_array();
    json_object_foreach(p->by_study, name, pass)
    {
        json_array_append(list, pass);
    }
    if (json_array_size(list) == 0 && !cli_get(args, "json"))
        printf("nothing was run into this store%s\n", p->only ? " under that name" : "");
    return cli_show(args, list, form);
}

/* On a terminal the lines are drawn over; elsewhere a block of lines every ten seconds. */
static fin_status watch(const cli_args *args, fin_store *store, passes *p, int *code,
                        fin_error *err)
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
        *code = print(args, p);
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
    int code = status ? CLI_OK : print(args, &p);
    if (!status && !code && watching)
        status = watch(args, store, &p, &code, &err);
    json_decref(p.by_study);
    fin_store_close(store);
    return status ? cli_error(&err) : code;
}
