/* finetti study export: the runs of a study as a table or as arrays. */
#include "study/study.h"

#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"out", "FILE",
     "required: FILE.csv has a row per run with settings, numbers and their errors; FILE.npz has "
     "the series too; - writes CSV to standard output"},
    {"block", "ID", "only runs of this block of the study"},
    {"times", NULL, "seconds, version and kernels too, which differ from machine to machine"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_export = {
    .name = "study export",
    .summary = "the runs of a study as CSV or NPZ",
    .about = "Writes the finished runs of a study, in the order of the study. Without --times the\n"
             "file depends on the study and the numbers alone, so that exports can be compared.",
    .examples = "  finetti study export lengths --out lengths.csv\n"
                "  finetti study export slr_training --block manifold --out manifold.npz\n"
                "  finetti study export lengths --where L=10 --out - | head\n",
    .operands = {"NAME", "a study of the store", 1, 1, false},
    .words = words,
    .lists = study_where,
    .run = run,
};

static int run(cli_args *args)
{
    const char *path = cli_get(args, "out");
    fin_store *store = NULL;
    fin_query query;
    fin_error err = {FIN_OK, ""};
    if (!path)
        return cli_usage("--out FILE.csv or FILE.npz is missing; - is standard output");
    if (strcmp(path, "-") != 0 && !cli_ends_with(path, ".csv") && !cli_ends_with(path, ".npz"))
        return cli_usage("--out '%.200s': the format is CSV or NPZ; end it in .csv or .npz", path);
    CLI_TRY(study_query(args, args->operand[0], &query));
    query.state = FIN_STATE_DONE;
    fin_status status = study_open(args, FIN_STORE_READ, &store, &err);
    if (!status)
        status = study_need(store, args->operand[0], &err);
    if (!status)
        status = fin_store_export(store, &query, path, cli_get(args, "times") != NULL, &err);
    fin_store_close(store);
    return status ? cli_error(&err) : cli_flush();
}
