/* A model and bags for it, as predict and locate need them, and names in files. */
#include "bags/fit.h"

#include <math.h>
#include <string.h>

static bool is_data(const char *path)
{
    static const char *const ends[] = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".npz", ".npy", ".h5"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (cli_ends_with(path, ends[i]))
            return true;
    return false;
}

/* .csv, .npz, - or nothing. */
static int check(const cli_args *args)
{
    const char *out = cli_get(args, "out"), *model = args->operand[0], *data = args->operand[1];
    if (is_data(model) && !is_data(data))
        return cli_usage("'%.150s' is data and stands where the model is expected; the model comes "
                         "first: finetti %s MODEL.fin DATA",
                         model, args->command->name);
    if (cli_ends_with(data, ".fin"))
        return cli_usage("'%.150s' is a model and stands where data are expected: finetti %s "
                         "MODEL.fin DATA",
                         data, args->command->name);
    if (out && strcmp(out, "-") != 0 && !cli_ends_with(out, ".csv") && !cli_ends_with(out, ".npz"))
        return cli_usage("--out '%.200s' tells no format; end it in .csv or .npz, or give - for "
                         "CSV on standard output",
                         out);
    if (out && strcmp(out, "-") == 0 && cli_get(args, "json"))
        return cli_usage("--out - and --json both write to standard output; give one of them");
    return CLI_OK;
}

static fin_status open_both(fit_answer *answer, const cli_args *args, const char *extras,
                            fin_error *err)
{
    CLI_TRY(fin_model_read(args->operand[0], &answer->model, err));
    answer->fit = fin_model_fit(answer->model);
    answer->classes = fin_model_classes(answer->model);
    answer->class_names = fin_model_class_names(answer->model);
    const char *label = cli_get(args, "label");
    fin_bags_source source = {
        .path = args->operand[1],
        .bag = cli_get(args, "bag"),
        .model_bag = fin_model_bag(answer->model),
        .label = label ? label : fin_model_label(answer->model),
        .kind = answer->classes ? "classes" : "regression",
        .ranks = 1,
        .feature_names = fin_model_feature_names(answer->model),
        .feature_count = fin_model_features(answer->model),
        .class_names = answer->class_names,
        .class_count = answer->classes,
        .extras = extras,
        .beside = extras ? cli_get(args, "beside") : NULL,
    };
    CLI_TRY(fit_file_read(args, &source, err));
    CLI_TRY(fin_bag_set_read(&answer->set, &source, cli_progress(), err));
    answer->bags = fin_bag_set_bags(answer->set);
    answer->tokens = answer->bags->offsets[answer->bags->n] - answer->bags->offsets[0];
    answer->labels = answer->bags->labels;
    const char *found = fin_bag_set_label(answer->set);
    if (label && (!found || strcmp(found, label) != 0))
        return cli_status(err, FIN_ERR_ARGUMENT, "--label: %.200s has no column '%.60s'",
                          args->operand[1], label);
    return fit_answer_look(answer, err);
}

int fit_answer_open(fit_answer *answer, const cli_args *args, const char *extras)
{
    const char *out = cli_get(args, "out");
    fin_error err = {FIN_OK, ""};
    memset(answer, 0, sizeof *answer);
    CLI_TRY(check(args));
    if ((out && cli_try_output(out, &err)) || open_both(answer, args, extras, &err))
        return cli_error(&err);
    return CLI_OK;
}

void fit_answer_close(fit_answer *answer)
{
    fin_bag_set_destroy(answer->set);
    fin_model_destroy(answer->model);
}

/* ---- names ---------------------------------------------------------------------------------- */

const char *fit_bag_name(const void *set, int64_t i)
{
    return fin_bag_set_name(set, i);
}

const char *fit_class_name(const void *names, int64_t c)
{
    return ((const char *const *)names)[c];
}

const char *fit_class_text(const fit_answer *answer, int64_t i)
{
    double label = answer->labels && answer->classes ? answer->labels[i] : NAN;
    return isnan(label) ? "" : answer->class_names[(int64_t)label];
}
