/* finetti attend: rows of a table as tokens, and attention to them. */
#include "attend/attend.h"

#include <stdio.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"key", "COLUMNS", "key columns: names, x*, a:c or numbers from 1, with commas"},
    {"value", "COLUMNS", "value columns, what is predicted"},
    {"query", "FILE",
     "what is asked: a CSV or NPZ file with the key columns (if it has the value columns too, the "
     "answers are judged). Or points such as x=1,y=2;x=3,y=4, or columns of CONTEXT"},
    {"sequence", "COLUMN",
     "several sequences of tokens: rows with the same number or word here; they share all "
     "settings, and "
     "a query attends to its own"},
    {"tune", NULL,
     "choose the settings that are not given: scale, prior and noise by marginal likelihood (cme), "
     "scale or temperature by leave-one-out"},
    {"ard", NULL, "a scale for every key column, tuned if --tune is given"},
    {"scales", "N,N,...", "key columns are divided by these first"},
    {"standardize", NULL, "key columns get mean 0 and standard deviation 1; constant ones go"},
    {"loo", NULL,
     "leave-one-out: error, log score, coverage of 50, 90 and 95 % intervals, PIT histogram"},
    {"prefix", NULL, "the learning curve: error and log score after 0, 1, 2, ... tokens"},
    {"out", "FILE",
     "FILE.csv gets the answers (with --prefix the curve, with --loo that of every token), "
     "FILE.npz "
     "all of it; - is CSV on standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

/* The library's table of cross attention, with settings that the tool can take from the data. */
static const fin_settings *cross_table(void)
{
    static const struct {
        const char *name, *meaning;
    } autos[] = {
        {"scale", "length scale: keys are divided by it; auto: the spread of the keys"},
        {"prior", "cme: prior variance of the function, in units of k(a, a); auto: the values'"},
        {"noise", "cme: variance of a value around the function; auto: a tenth of the values'"},
        {"level", "cme: prior variance of a constant added to the function; auto: 100 times the "
                  "mean square of the values, practically a free constant"},
        {"temperature", "softmax: scores are q.k / temperature; auto: mean square of the keys"},
    };
    enum { FIELDS = 32 };
    static fin_field fields[FIELDS];
    static fin_settings table;
    table = fin_cross_table;
    for (int i = 0; i < table.count && i < FIELDS; i++) {
        fields[i] = fin_cross_table.fields[i];
        for (size_t k = 0; k < sizeof autos / sizeof *autos; k++)
            if (strcmp(fields[i].name, autos[k].name) == 0) {
                fields[i].fallback = FIN_AUTO;
                fields[i].meaning = autos[k].meaning;
            }
    }
    table.fields = fields;
    return &table;
}

#define FIN_TABLE_STRUCT attend_list_settings
FIN_TABLE(static, list_table, "attend", ATTEND_FIELDS);

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    attend_settings *s = values;
    (void)err;
    list[(*count)++] = (fin_group){cross_table(), &s->cross};
    list[(*count)++] = (fin_group){&fin_tune_table, &s->tune};
    list[(*count)++] = (fin_group){&list_table, &s->list};
    return FIN_OK;
}

static const fin_command options = {
    .name = "attend",
    .size = sizeof(attend_settings),
    .words = cli_no_words,
    .groups = groups,
};

const cli_command cli_attend = {
    .name = "attend",
    .summary = "your table as a context: predictions with uncertainty, tuned by evidence",
    .about =
        "Rows of a CSV or NPZ file are exchangeable tokens with a key and a value. Queries\n"
        "attend to them by cme (kernel ridge, the posterior of a Gaussian process, exactly),\n"
        "softmax or nw (Nadaraya-Watson). Prints predictions, their standard deviation and the\n"
        "most attended rows; without --query, how well the tokens predict each other.\n"
        "Settings that are auto come from the size of the data; --tune chooses them better.",
    .examples =
        "  finetti attend train.csv --key 'x*' --value y --query test.csv --tune\n"
        "  finetti attend train.csv --key x1:x5 --value y --tune --ard --standardize --loo\n"
        "  finetti attend train.csv --key x --value y --query 'x=0.5;x=1.5' --tune --json\n"
        "  finetti attend visits.csv --key age --value dose --sequence patient --tune --prefix\n",
    .settings = &options,
    .computes = true,
    .operands = {.name = "CONTEXT",
                 .meaning = "CSV or NPZ file with the tokens; - is CSV from "
                            "standard input",
                 .least = 1,
                 .most = 1},
    .words = words,
    .run = run,
};

static int check_options(cli_args *args)
{
    const char *out = cli_get(args, "out");
    bool loo = cli_get(args, "loo"), prefix = cli_get(args, "prefix"),
         query = cli_get(args, "query"), npz = out && cli_ends_with(out, ".npz");
    if (!cli_get(args, "key") || !cli_get(args, "value"))
        return cli_usage("--key and --value are needed: the columns that are compared, and those "
                         "that are predicted");
    if (query && strcmp(cli_get(args, "query"), "-") == 0 && strcmp(args->operand[0], "-") == 0)
        return cli_usage("the context and --query cannot both be standard input");
    if (cli_get(args, "ard") && attend_asked(args)->cross.form != FIN_CROSS_CME)
        return cli_usage("--ard is for --form cme; --standardize or --scales go with every form");
    if (cli_get(args, "ard") && (cli_get(args, "scales") || cli_given(args, "scale")))
        return cli_usage("--ard chooses a scale for every column; --scale and --scales do not go "
                         "with it");
    if (out && !npz && loo && (prefix || query))
        return cli_usage("a CSV file holds one table: --loo and %s do not go together there; "
                         "--out FILE.npz holds all",
                         prefix ? "--prefix" : "--query");
    if (out && strcmp(out, "-") == 0 && cli_get(args, "json"))
        return cli_usage("--out - and --json both write to standard output; give one of them");
    if (cli_get(args, "tune") == NULL)
        for (int i = 0; i < fin_tune_table.count; i++)
            if (cli_given(args, fin_tune_table.fields[i].name))
                return cli_usage("--%s goes with --tune", fin_tune_table.fields[i].name);
    return CLI_OK;
}

static void print_notes(const attend_data *data)
{
    for (int i = 0; i < data->notes; i++)
        cli_note("note: %s", data->note[i]);
}

static int finish(cli_args *args, const attend_fit *fit)
{
    const char *out = cli_get(args, "out");
    fin_error err = {FIN_OK, ""};
    if (out && attend_write(out, fit, &err))
        return cli_error(&err);
    cli_progress_end();
    print_notes(fit->data);
    return out && strcmp(out, "-") == 0 ? cli_flush() : attend_report(args, fit);
}

static int run(cli_args *args)
{
    CLI_TRY(check_options(args));
    static attend_data data;
    static attend_fit fit;
    fin_error err = {FIN_OK, ""};
    const char *out = cli_get(args, "out");
    fin_status status = out ? cli_try_output(out, &err) : FIN_OK;
    if (!status)
        status = attend_data_open(&data, args, &err);
    if (!status)
        status = attend_fit_run(&fit, args, &data, &err);
    int code = status ? cli_error(&err) : finish(args, &fit);
    attend_fit_close(&fit);
    attend_data_close(&data);
    return code;
}
