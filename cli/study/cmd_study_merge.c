/* finetti study merge: stores into one. */
#include "study/study.h"

static int run(cli_args *args);

static const cli_word words[] = {
    {"force", NULL,
     "where both stores have a run and its numbers differ, keep the newer version's"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_merge = {
    .name = "study merge",
    .summary = "join stores, such as the parts of a job array, into one",
    .about = "Takes the studies and runs of the stores behind the first into the first, which is\n"
             "made if it does not exist, and judges the claims anew. Runs that both have must be\n"
             "equal; if they are not, that store is left out, and the exit code is 1.",
    .examples = "  finetti study merge all.db part1.db part2.db part3.db\n"
                "  finetti study merge all.db other.db --force\n",
    .operands = {"STORE", "OUT.db, and behind it the stores that go into it", 2, -1, false},
    .words = words,
    .run = run,
};

static fin_status merge(cli_args *args, fin_store *store, fin_merge_count *sum, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int i = 1; i < args->operand_count && !status; i++) {
        fin_merge_count count = {.added = 0};
        status =
            fin_store_merge(store, args->operand[i], cli_get(args, "force") != NULL, &count, err);
        sum->added += count.added;
        sum->same += count.same;
        sum->replaced += count.replaced;
        sum->studies += count.studies;
    }
    return status;
}

static int run(cli_args *args)
{
    fin_store *store = NULL, *source = NULL;
    fin_merge_count sum = {.added = 0};
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK;
    /* A name that is wrong should not leave a new, empty store behind. */
    for (int i = 1; i < args->operand_count && !status; i++) {
        status = fin_store_open(args->operand[i], FIN_STORE_READ, &source, &err);
        fin_store_close(source);
        source = NULL;
    }
    if (!status)
        status = fin_store_open(args->operand[0], FIN_STORE_CREATE, &store, &err);
    if (!status)
        status = merge(args, store, &sum, &err);
    if (!status)
        status = fin_store_judge(store, NULL, &err);
    fin_store_close(store);
    if (status)
        return cli_error(&err);
    return cli_show(args,
                    json_pack("{s:I, s:I, s:I, s:I}", "studies", cli_int(sum.studies), "added",
                              cli_int(sum.added), "same", cli_int(sum.same), "replaced",
                              cli_int(sum.replaced)),
                    "{added#run} added, {same} already present, {replaced} replaced\n");
}
