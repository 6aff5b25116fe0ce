/* finetti study diff: what differs between two stores. */
#include "study/study.h"

static int run(cli_args *args);

static const cli_word words[] = {
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

#define COMPARE_FIELDS(F, C)                                                                       \
    F(double, tolerance, 0, 0, 1e300, "numbers that differ by no more are equal")
#define FIN_TABLE_STRUCT compare_settings
FIN_TABLE_OF_ITS_OWN(compare_table, "study diff", COMPARE_FIELDS);

CLI_SETTINGS(options, "study diff", compare_settings, cli_no_words, {&compare_table, 0});

const cli_command cli_study_diff = {
    .name = "study diff",
    .summary = "what differs between two stores",
    .about =
        "Prints the runs that only one of two stores has and the numbers that differ. The exit\n"
        "code is 1 if there are any.",
    .examples = "  finetti study diff old.db new.db\n"
                "  finetti study diff here.db there.db --tolerance 1e-12\n",
    .settings = &options,
    .operands = {"STORE", "two stores, A.db and B.db", 2, 2, false},
    .words = words,
    .run = run,
};

static const char form[] =
    "[{*.|{%20,12,18,24,0|{study}|{hash:.12s}|[{?what=missing}run|{what}]"
    "|[{?what=missing}[{?in_left}there|missing]|{!left=nan}{left}|-]"
    "|[{?what=missing}[{?in_right}there|missing]|{!right=nan}{right}|-]}}]{.#difference}\n";

static fin_status add(void *user, const fin_difference *d, fin_error *err)
{
    (void)err;
    json_array_append_new(user,
                          json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o}", "study",
                                    d->study ? d->study : "", "hash", d->hash, "what", d->what,
                                    "in_left", d->in_left, "in_right", d->in_right, "left",
                                    cli_json_number(d->left), "right", cli_json_number(d->right)));
    return FIN_OK;
}

static int run(cli_args *args)
{
    fin_store *left = NULL, *right = NULL;
    fin_error err = {FIN_OK, ""};
    json_t *list = json_array();
    int64_t count = 0;
    fin_status status = fin_store_open(args->operand[0], FIN_STORE_READ, &left, &err);
    if (!status)
        status = fin_store_open(args->operand[1], FIN_STORE_READ, &right, &err);
    if (!status)
        status = fin_store_diff(left, right,
                                ((const compare_settings *)(const void *)args->values)->tolerance,
                                add, list, &count, &err);
    fin_store_close(left);
    fin_store_close(right);
    if (status)
        json_decref(list);
    int code = status ? cli_error(&err) : cli_show(args, list, form);
    return code || !count ? code : CLI_FAILED;
}
