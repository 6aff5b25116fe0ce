/* finetti study gc: what no study needs any more. */
#include "study/study.h"

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"drop", "NAME", "this study too, with the runs that no other study plans"},
    {"dry_run", NULL, "only say what would go"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_gc = {
    .name = "study gc",
    .summary = "remove runs that no study plans, give back the space",
    .about =
        "A study that was changed leaves the runs of its former settings behind, so that going\n"
        "back costs nothing. This removes them.",
    .examples = "  finetti study gc --dry-run\n"
                "  finetti study gc --drop lengths\n",
    .words = words,
    .run = run,
};

static int run(cli_args *args)
{
    fin_store *store = NULL;
    fin_gc_count count = {.runs = 0};
    fin_error err = {FIN_OK, ""};
    bool dry = cli_get(args, "dry_run");
    const char *drop = cli_get(args, "drop");
    fin_status status = study_open(args, dry ? FIN_STORE_READ : FIN_STORE_WRITE, &store, &err);
    if (!status && drop)
        status = study_need(store, drop, &err);
    if (!status)
        status = fin_store_gc(store, drop, dry, &count, &err);
    fin_store_close(store);
    if (status)
        return cli_error(&err);
    return cli_show(args,
                    json_pack("{s:I, s:I, s:I, s:b}", "runs", cli_int(count.runs), "studies",
                              cli_int(count.studies), "bytes", cli_int(count.bytes), "dry", dry),
                    "{runs#run} and {studies#study/studies} [{?dry}would go|removed], {bytes} "
                    "bytes\n");
}
