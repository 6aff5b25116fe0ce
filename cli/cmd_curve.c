/* finetti curve: what can be learnt from n bags, the command `curve` swept over alpha = n/d. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);
static void prepare(cli_args *args);

static const cli_word words[] = {
    {"alpha", "RANGE",
     "n/d, bags divided by columns, such as 1,2,5 or 0.1:100:31log; default 0.5:50:20log; from "
     "0.001 to 1e6"},
    {"out", "FILE", "FILE.csv or FILE.npz instead of the table; - is CSV on standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};
static const cli_word lists[] = {CLI_ROW_LISTS, {NULL, NULL, NULL}};

const cli_command cli_curve = {
    .name = "curve",
    .summary = "learning curves: what any learner could reach from n bags",
    .about =
        "For the task spiked with unknown k* and v*, n bags of d columns with n = alpha d, and "
        "large d:\n"
        "give --alpha n/d, such as 4 for 200 bags of 50 columns. Shown is how well the\n"
        "posterior finds them (q_k, q_v), and the risk of the Bayes-optimal learner. Then the\n"
        "Bayes risk with k* and v* known, and that of the best linear predictor learnt from the "
        "same bags.\n"
        "Where the fixed point from knowing nothing (stuck) or from knowing all locations\n"
        "(beside) is another one than the posterior's, its risk is shown too.\n"
        "With --form the risk of attention that is fitted to the bags with a ridge penalty (erm).\n"
        "Where its equations do not settle there is none, and a note says so.",
    .examples = "  finetti curve --snr 5 --L 3 --eps 0.5 --alpha 0.5:50:20log\n"
                "  finetti curve --eps 0.1 --alpha 1,2,4,10 --json\n"
                "  finetti curve --form softmax --ridge 1,1 --alpha 2,4,10\n"
                "  finetti curve --sweep L=2,5,20 --alpha 1,10 --out curve.csv\n",
    .row = "curve",
    .words = words,
    .lists = lists,
    .prepare = prepare,
    .computes = true,
    .tabular = true,
    .run = run,
};

static void prepare(cli_args *args)
{
    static char alpha[256];
    const char *range = cli_get(args, "alpha");
    snprintf(alpha, sizeof alpha, "alpha=%.240s", range ? range : "0.5:50:20log");
    if (args->list_count[0] < CLI_LIST_MOST)
        args->list[0][args->list_count[0]++] = alpha;
}

static bool is_swept(const cli_args *args, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < args->list_count[0]; i++)
        if (strncmp(args->list[0][i], name, length) == 0 && args->list[0][i][length] == '=')
            return true;
    return false;
}

/* The settings that all rows share. */
static int print_head(const cli_args *args)
{
    const fin_settings *table = args->groups[0].table;
    printf("task spiked:");
    for (int i = 0; i < table->count; i++) {
        const fin_field *field = &table->fields[i];
        char text[64];
        if (!is_swept(args, field->name))
            printf(" %s=%s", field->name,
                   fin_settings_text(field, args->groups[0].values, text, sizeof text));
    }
    printf("\n\n");
    return CLI_OK;
}

static int run(cli_args *args)
{
    if (cli_get(args, "out") && cli_get(args, "json"))
        return cli_usage("--out writes a file and --json prints; give one or the other");
    return cli_run(args, print_head);
}
