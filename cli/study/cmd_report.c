/* finetti report: one HTML file from a store. */
#include "study/study.h"

#include <stdio.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"out", "FILE", "where it goes; default report.html"},
    {"title", "TEXT", "its title"},
    {NULL, NULL, NULL},
};

static const cli_word lists[] = {
    {"study", "NAME", "only this study; as often as needed; default: all of the store"},
    {NULL, NULL, NULL},
};

const cli_command cli_report = {
    .name = "report",
    .summary = "claims, figures and data of a store as one HTML file",
    .about =
        "Writes one HTML file that needs nothing else, neither a network nor other files. It has\n"
        "the claims with their verdicts, interactive figures with the data behind them, settings\n"
        "and what computed them. Nothing is computed anew.",
    .examples = "  finetti report\n"
                "  finetti report --study lengths --out lengths.html\n"
                "  finetti report --store all.db --title 'Lengths, all machines'\n",
    .words = words,
    .lists = lists,
    .run = run,
};

static int run(cli_args *args)
{
    const char *path = cli_get(args, "out") ? cli_get(args, "out") : "report.html";
    fin_store *store = NULL;
    fin_error err = {FIN_OK, ""};
    int count;
    const char *const *studies = cli_list(args, "study", &count);
    fin_status status = study_open(args, FIN_STORE_READ, &store, &err);
    for (int i = 0; i < count && !status; i++)
        status = study_need(store, studies[i], &err);
    if (!status)
        status = fin_report_write(store, count ? studies : NULL, count, cli_get(args, "title"),
                                  path, &err);
    fin_store_close(store);
    if (status)
        return cli_error(&err);
    printf("%s\n", path);
    return cli_flush();
}
