/* finetti study check: is the store sound? */
#include "study/study.h"

#include <stdio.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {NULL, NULL, NULL},
};

const cli_command cli_study_check = {
    .name = "study check",
    .summary = "whether a store is sound",
    .about = "Looks at every page of the file and at every reference between its tables. The exit\n"
             "code is 1 if something is wrong.",
    .examples = "  finetti study check\n"
                "  finetti study check --store report/finetti.db\n",
    .words = words,
    .run = run,
};

static int run(cli_args *args)
{
    fin_store *store = NULL;
    fin_error err = {FIN_OK, ""};
    fin_status status = study_open(args, FIN_STORE_READ, &store, &err);
    if (!status)
        status = fin_store_check(store, &err);
    fin_store_close(store);
    if (status)
        return cli_error(&err);
    printf("%s is sound\n", study_store(args));
    return cli_flush();
}
