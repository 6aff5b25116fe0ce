/* finetti study diff: what differs between two stores. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

typedef struct comparison {
    json_t *list; /* NULL: text */
    int64_t count;
} comparison;

static void print(const fin_difference *d)
{
    static const int widths[] = {20, 12, 18, 24, 0};
    char hash[13], left[64] = "-", right[64] = "-";
    bool run = strcmp(d->what, "missing") == 0;
    snprintf(hash, sizeof hash, "%.12s", d->hash);
    if (run) {
        snprintf(left, sizeof left, "%s", d->in_left ? "there" : "missing");
        snprintf(right, sizeof right, "%s", d->in_right ? "there" : "missing");
    }
    if (!run && !isnan(d->left))
        cli_number(d->left, left, sizeof left);
    if (!run && !isnan(d->right))
        cli_number(d->right, right, sizeof right);
    const char *cells[] = {d->study ? d->study : "", hash, run ? "run" : d->what, left, right};
    study_print_cells(cells, widths, 5);
}

static fin_status add(void *user, const fin_difference *d, fin_error *err)
{
    comparison *c = user;
    (void)err;
    if (c->list)
        json_array_append_new(c->list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o}", "study",
                                                 d->study ? d->study : "", "hash", d->hash, "what",
                                                 d->what, "in_left", d->in_left, "in_right",
                                                 d->in_right, "left", cli_json_number(d->left),
                                                 "right", cli_json_number(d->right)));
    else
        print(d);
    return FIN_OK;
}

static int run(cli_args *args)
{
    fin_store *left = NULL, *right = NULL;
    fin_error err = {FIN_OK, ""};
    bool json = cli_get(args, "json");
    comparison c = {.list = json ? json_array() : NULL};
    fin_status status = fin_store_open(args->operand[0], FIN_STORE_READ, &left, &err);
    if (!status)
        status = fin_store_open(args->operand[1], FIN_STORE_READ, &right, &err);
    if (!status)
        status = fin_store_diff(left, right,
                                ((const compare_settings *)(const void *)args->values)->tolerance,
                                add, &c, &c.count, &err);
    fin_store_close(left);
    fin_store_close(right);
    int code = CLI_OK;
    char text[64];
    if (status)
        code = cli_error(&err);
    else if (json)
        code = cli_print_json(json_incref(c.list));
    else
        printf("%s\n", study_plural(c.count, "difference", text, sizeof text));
    json_decref(c.list);
    if (!code)
        code = cli_flush();
    return code || !c.count ? code : CLI_FAILED;
}
