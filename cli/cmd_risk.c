/* finetti risk: the risk of a predictor and, beside it, the risks it should be compared with. */
#include "cli.h"

#include <stdio.h>

static int run(cli_args *args);
static void prepare(cli_args *args);

static const cli_word words[] = {CLI_ROW_WORDS, {NULL, NULL, NULL}};
static const cli_word lists[] = {CLI_ROW_LISTS, {NULL, NULL, NULL}};

/* Flags, which notes explain. */
static const char *const folded[] = {"unreal", "_rare", NULL};

const cli_command cli_risk = {
    .name = "risk",
    .summary = "exact risk of a predictor, beside oracle, best linear and Bayes",
    .about =
        "Prints E (Y - f(X))^2 for f(X) = sum_l w_l X_l.v with weights from the scores X_l.k,\n"
        "given the overlaps of k and v with the true directions. Beside it stand the oracle's, "
        "the\n"
        "best of all k, v and lam, the best linear predictor's and the Bayes risk. Every number\n"
        "says how it was obtained. Without --show: risk, oracle, star, best, linear and bayes, in\n"
        "a sweep all but star and best, with --points the risk and its derivatives.",
    .examples = "  finetti risk --d 400 --L 10 --lam 0.1 --kappa 0.5 --nu 0.9\n"
                "  finetti risk --task spiked --form softmax --snr 4 --lam 2 --samples 1000000\n"
                "  finetti risk --sweep lam=0.01:3:100log --show risk,linear --out curve.csv\n"
                "  finetti risk --sweep form=erf,softmax --sweep L=2:50:10\n"
                "  finetti risk --points table.csv --out answers.csv\n",
    .row = "risk",
    .words = words,
    .lists = lists,
    .folded = folded,
    .prepare = prepare,
    .computes = true,
    .run = run,
};

static int print_head(const cli_args *args)
{
    CLI_TRY(cli_print_asked_model(args));
    printf("at    %-10s ", "overlaps");
    cli_print_settings(&fin_overlaps_table, cli_values(args, &fin_overlaps_table));
    putchar('\n');
    return CLI_OK;
}

static void prepare(cli_args *args)
{
    if (!cli_given(args, "show"))
        cli_add(args, "show",
                cli_get(args, "points") ? "risk"
                : cli_is_many(args)     ? "risk,oracle,linear,bayes"
                                        : "risk,oracle,star,best,linear,bayes");
}

static int run(cli_args *args)
{
    return cli_run(args, print_head);
}
