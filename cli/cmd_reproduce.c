/* finetti reproduce: the papers' numbers, beside what the papers say. */
#include "reproduce.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word topics[] = {
    {"limits", NULL, "the papers' limits beside exact values, in two seconds"},
    {"slr", NULL, "the five training experiments of single-location regression"},
    {NULL, NULL, NULL},
};

static const cli_word words[] = {
    {"only", "NAME",
     "one experiment of slr: manifold, sphere_large_lambda, sphere_small_lambda, sphere_schedule "
     "or sgd_schedule"},
    {"out", "DIR",
     "folder (made if missing) that gets NAME.npz of every experiment, as from train"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_reproduce = {
    .name = "reproduce",
    .summary = "the papers' limits and training experiments, beside what theory says",
    .about =
        "limits prints, for single-location regression with gamma = sqrt(1/2), mu = sqrt(d/2),\n"
        "eps = 0, the erf oracle at its best lambda, the best linear predictor and the Bayes\n"
        "risk, beside the limits of the papers; then, for the spiked task, how fast softmax and\n"
        "linear attention improve with the signal. slr trains attention as the paper does and\n"
        "prints what came out beside what theory says; the exit code is 1 if that does not hold,\n"
        "judged by the 95 % interval. Without a word: both. Times are printed to terminals only,\n"
        "so that outputs can be compared.",
    .examples = "  finetti reproduce\n"
                "  finetti reproduce limits --json\n"
                "  finetti reproduce slr --out runs\n"
                "  finetti reproduce slr --only sgd_schedule --runs 100\n"
                "  make reproduce ARGS=limits\n",
    .uses = CLI_USES_STUDY | CLI_USES_RUN,
    .topics = topics,
    .words = words,
    .run = run,
};

/* What belongs to slr and stands beside limits, or NULL. */
static const char *misplaced(cli_args *args)
{
    return cli_get(args, "only")     ? "only"
           : cli_get(args, "out")    ? "out"
           : cli_given(args, "runs") ? "runs"
           : cli_given(args, "seed") ? "seed"
                                     : NULL;
}

static int run(cli_args *args)
{
    bool limits = args->topic ? strcmp(args->topic, "limits") == 0 : !cli_get(args, "only");
    bool slr = !args->topic || !limits;
    if (!slr && misplaced(args))
        return cli_usage("--%s goes with slr, not with limits", misplaced(args));
    json_t *first = NULL, *second = NULL;
    int code = slr ? reproduce_slr_check(args) : CLI_OK;
    if (!code && limits)
        code = reproduce_limits(args, &first);
    bool text = !cli_get(args, "json");
    if (!code && limits && slr && text)
        putchar('\n');
    bool holds = true;
    if (!code && slr)
        code = reproduce_slr(args, &second, &holds);
    if (!code && !text) {
        json_t *root = json_object();
        if (first)
            json_object_set(root, "limits", first);
        if (second)
            json_object_set(root, "slr", second);
        code = cli_print_json(root);
    }
    json_decref(first);
    json_decref(second);
    return code || holds ? code : CLI_FAILED;
}
