/* finetti latent risk: what is left to know about a family of exchangeable tokens after L of them,
 * and how far attention is from it: the command `latent`, swept over L. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);
static void prepare(cli_args *args);

static const cli_word words[] = {
    {"L", "RANGE", "numbers of tokens, such as 1,2,5,10 or 1:1000:10log; default 1,2,4,...,64"},
    {"attention", "LIST",
     "forms beside the Bayes risk: cme, softmax, nw, or none; default cme,softmax where there are "
     "keys and values are numbers"},
    {"out", "FILE", "FILE.csv or FILE.npz instead of the table; - is CSV on standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};
static const cli_word lists[] = {CLI_ROW_LISTS, {NULL, NULL, NULL}};

const cli_command cli_latent_risk = {
    .name = "latent risk",
    .summary = "Bayes risk against length, and attention's beside it",
    .about =
        "Prints E |truth - prediction|^2 at a new query after L tokens, without the noise of the\n"
        "answer itself: for the posterior mean (nobody can do better), for cme attention with the\n"
        "family's own prior and noise, and for softmax attention at its best temperature.",
    .examples = "  finetti latent risk\n"
                "  finetti latent risk --family counts --outcomes 4 --L 1,10,100\n"
                "  finetti latent risk --family process --kernel matern32 --d 1 --L 5,20,80\n"
                "  finetti latent risk --family finite --samples 20000 --attention cme\n",
    .row = "latent",
    .words = words,
    .lists = lists,
    .prepare = prepare,
    .computes = true,
    .tabular = true,
    .run = run,
};

/* Do the settings fit together with this list of numbers? */
static bool fits(cli_args *args, const char *show)
{
    int given = args->pair_count;
    cli_add(args, "show", show);
    cli_add(args, "L", "0");
    bool fit = fin_command_apply(args->settings, args->values, args->pairs, args->pair_count, NULL,
                                 NULL) == FIN_OK;
    args->pair_count = given;
    return fit;
}

static void prepare(cli_args *args)
{
    static char show[128], lengths[256];
    const char *attention = cli_get(args, "attention"), *L = cli_get(args, "L");
    if (!attention)
        attention =
            fits(args, "bayes,cme,softmax") || !fits(args, "bayes") ? "cme,softmax" : "none";
    bool none = strcmp(attention, "none") == 0;
    snprintf(show, sizeof show, "bayes%s%.100s", none ? "" : ",", none ? "" : attention);
    snprintf(lengths, sizeof lengths, "L=%.250s", L ? L : "1,2,4,8,16,32,64");
    if (!cli_given(args, "show"))
        cli_add(args, "show", show);
    if (!cli_given(args, "samples"))
        cli_add(args, "samples", "10000");
    if (args->list_count[0] < CLI_LIST_MOST)
        args->list[0][args->list_count[0]++] = lengths;
}

static int print_head(const cli_args *args)
{
    const fin_family *family = cli_settings_family(args);
    printf("family %-9s ", fin_family_name(family));
    cli_print_settings(fin_family_table(family), cli_values(args, fin_family_table(family)));
    putchar('\n');
    return CLI_OK;
}

static int run(cli_args *args)
{
    if (cli_get(args, "out") && cli_get(args, "json"))
        return cli_usage("--out writes a file and --json prints; give one or the other");
    return cli_run(args, print_head);
}
