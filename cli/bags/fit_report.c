/* The report of a fit: everything that was found out as one record, and how people read it. */
#include "bags/fit.h"

#include <math.h>
#include <string.h>

/* ---- the data ------------------------------------------------------------------------------- */

/* Column j has the same value everywhere. */
static bool is_constant(const fin_bags *bags, int64_t j)
{
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0], d = bags->d;
    const float *f = bags->tokens;
    const double *g = bags->tokens;
    for (int64_t t = 1; t < rows; t++)
        if (bags->dtype == FIN_F32 ? f[t * d + j] != f[j] : g[t * d + j] != g[j])
            return false;
    return true;
}

static json_t *constant_columns(const fit_run *run)
{
    json_t *list = json_array();
    for (int64_t j = 0; j < run->bags->d && run->info.columns < run->bags->d; j++)
        if (is_constant(run->bags, j))
            json_array_append_new(list, cli_json_text(fin_bag_set_feature(run->set, j)));
    return list;
}

/* Columns that are constant within every bag, kept or not. */
static json_t *level_columns(const fit_run *run)
{
    json_t *list = json_array();
    const char *name = run->level_names;
    for (int64_t k = 0; k < run->levels; k++, name += strlen(name) + 1)
        json_array_append_new(list, cli_json_text(name));
    return list;
}

static json_t *classes_of(const fit_run *run)
{
    json_t *list = json_array();
    for (int64_t c = 0; c < run->classes; c++)
        json_array_append_new(list, json_pack("{s:o, s:I}", "name",
                                              cli_json_text(fin_bag_set_class(run->set, c)), "bags",
                                              cli_int((int64_t)run->class_count[c])));
    return list;
}

static void put_label(const fit_run *run, json_t *object)
{
    const double *labels = run->bags->labels;
    double mean = 0, squares = 0, n = (double)run->bags->n;
    for (int64_t i = 0; i < run->bags->n; i++)
        mean += labels[i] / n;
    for (int64_t i = 0; i < run->bags->n; i++)
        squares += (labels[i] - mean) * (labels[i] - mean) / n;
    cli_put(object, "label_mean", mean, "label_sd", sqrt(squares), NULL);
}

static json_t *data_of(const fit_run *run)
{
    char note[900];
    bool alone = fin_ranks() == 1;
    json_t *notes = json_array();
    for (int i = 0; i < fin_bag_set_notes(run->set); i++)
        json_array_append_new(notes, cli_json_text(fin_bag_set_note(run->set, i)));
    for (int kind = 0; kind < FIT_OWN_NOTES; kind++)
        if (fit_note(run, kind, note, sizeof note))
            json_array_append_new(notes, cli_json_text(note));
    json_t *object = json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:s, s:o?, s:o, s:o, s:b, s:i, s:o*, s:o*}", "file",
        cli_json_text(run->path), "bags", cli_int(run->info.bags), "tokens",
        cli_int(run->info.tokens), "columns", cli_int(run->bags->d), "columns_left_out",
        cli_int(run->bags->d - run->info.columns), "kind", run->classes ? "classes" : "regression",
        "label", cli_json_text(fin_bag_set_label(run->set)), "notes", notes, "columns_of_bags",
        level_columns(run), "columns_of_bags_kept", run->level_kept, "processes", fin_ranks(),
        "classes", run->classes ? classes_of(run) : NULL, "constant_columns",
        alone ? constant_columns(run) : NULL);
    if (run->groups)
        json_object_set_new(object, "groups",
                            json_pack("{s:o, s:I}", "column",
                                      cli_json_text(fin_bag_set_group(run->set)), "count",
                                      cli_int(run->groups)));
    if (!run->classes && alone)
        put_label(run, object);
    return object;
}

static const char data_form[] =
    "data        {data.file}: {data.bags#bag}, {data.tokens#token}, {data.columns#column}\n"
    "[{?data.processes>1}            read by {data.processes} processes\n]"
    "[groups      {data.groups.column}: {data.groups.count} of {data.bags} bags\n]"
    "label       {data.label}: "
    "[{data.classes#class/classes}\nclasses     {data.classes,20|{name}: {bags}}"
    "|a number[, mean {data.label_mean:.4g}, standard deviation {data.label_sd:.4g}]]\n"
    "[{?data.columns_of_bags}{!data.columns_of_bags_kept}left out    "
    "{data.columns_of_bags#column that is/columns that are} constant within every bag: "
    "{data.columns_of_bags,6} (--features names "
    "[{?data.columns_of_bags>1}them to keep them|it to keep it])\n]"
    "[{?data.columns_left_out}left out    {data.columns_left_out#constant column}"
    "[:\n            {data.constant_columns,10}]\n]";

/* ---- what was fitted ------------------------------------------------------------------------ */

static const char *class_name(const void *set, int64_t c)
{
    return fin_bag_set_class(set, c);
}

/* Which class a token can bring about matters to `any`; else only to what locate says of tokens. */
static bool has_any(const fit_run *run)
{
    double weight;
    for (int64_t i = 0; i < run->info.parts; i++)
        if (fin_fit_model_get(fin_fit_part(run->fit, i, &weight))->sides)
            return true;
    return false;
}

static json_t *fitted(const fit_run *run)
{
    const fin_fit_info *info = &run->info;
    char name[64], title[64], chosen[64];
    const fin_fit_settings *only = &run->settings;
    int64_t parts = fit_parts(run->fit, &only);
    fit_title(&run->settings, run->classes, title, sizeof title);
    fit_title(only, run->classes, chosen, sizeof chosen);
    json_t *object = json_pack(
        "{s:s, s:s, s:s*, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o?, s:s, s:s}",
        "model", fit_name(&run->settings, run->classes, name, sizeof name), "title", title,
        "chosen", parts == 1 && strcmp(title, chosen) != 0 ? chosen : NULL, "settings",
        cli_json_settings(&fin_fit_table, &run->settings), "parts",
        fit_parts_of(run->fit, class_name, run->set), "predicting", cli_int(parts), "members",
        cli_int(info->members), "parameters", cli_int(info->parameters), "iterations",
        cli_int(info->iterations), "evaluations", cli_int(info->evaluations), "unfinished",
        cli_int(info->unfinished), "draws", cli_int(fin_fit_model_get(&run->settings)->draws),
        "locates", run->locates, "locator", fit_locator(run->fit), "loss",
        fit_loss_name(run->classes), "score", fit_main_name(run->classes));
    const fin_fit_model *model = fin_fit_model_get(&run->settings);
    if (run->settings.basis == FIN_BASIS_AUTO && !model->chooses &&
        fin_fit_basis(&run->settings, run->classes) == FIN_BASIS_BOTH)
        json_object_set_new(object, "rbf_by_default", json_true());
    if (run->classes == 2 && info->positive >= 0) {
        json_object_set_new(object, "positive",
                            cli_json_text(fin_bag_set_class(run->set, info->positive)));
        json_object_set_new(object, "positive_by",
                            json_string(!fin_is_auto((double)run->settings.positive) ? "as asked"
                                        : has_any(run)
                                            ? "chosen on inner folds"
                                            : "the second class; --positive names the other"));
    }
    cli_put(object, "inner_loss", info->inner_loss, "base_loss", info->base_loss, "training_loss",
            info->loss, "noise", run->classes ? NAN : info->noise, NULL);
    return object;
}

static const char fit_form[] =
    "model       {fit.title}[: {fit.chosen}]; [{?fit.draws}{fit.members#draw} from the posterior"
    "|{fit.members#fit} averaged], "
    "[{?fit.parts>1}up to ]{fit.parameters} parameters[{?fit.members>1} each]\n"
    "[{?fit.rbf_by_default}            +rbf: RBF features beside the columns, usual for classes; "
    "--basis linear leaves them out\n]"
    "[{?fit.predicting>1}{*fit.parts|" FIT_PART_FORM "}]"
    "[positive    {fit.positive} ({fit.positive_by})\n]"
    "[{?fit.draws}chains      {fit.iterations} steps, {fit.evaluations} "
    "evaluations[{?fit.unfinished}"
    "; they disagree: intervals and probabilities may be too sure (more bags usually help)]\n"
    "|search      {fit.iterations} iterations of L-BFGS, {fit.evaluations} evaluations"
    "[{?fit.unfinished}; {fit.unfinished} of {fit.members} fits used all of theirs "
    "(--iterations)]\n]"
    "training    {fit.loss} {fit.training_loss:.4g} on the bags it was fitted to "
    "([{?validation}new bags: see below|{?learning_curve}new bags: see below"
    "|too good: new bags were not tried])\n"
    "[inner folds {fit.loss} {fit.inner_loss:.4f}[ (base rate {fit.base_loss:.4f})]: inside the "
    "fit, "
    "for its choices[{?validation}; the table below is of outer folds]\n]"
    "[noise       a label is off its prediction by {fit.noise:.4g} (standard deviation)\n]"
    "[{?tty}time        {seconds.all:.3g} s of the processor: reading {seconds.read:.3g}, "
    "fitting {seconds.fit:.3g}, cross-validation {seconds.validate:.3g}, "
    "learning curve {seconds.curve:.3g}\n]"
    "locations   [by " FIT_LOCATOR_FORM(
        "fit.locator.") "|{?fit.locates}by the model|none: it sees a bag as a whole; for `locate` "
                        "name a model, such as mixture]\n"
                        "[written to  {out}\n][written to  {report}\n]";

/* ---- on bags that were not fitted to --------------------------------------------------------- */

json_t *fit_score_of(const fin_fit_score *s, int64_t classes)
{
    json_t *object = json_object();
    if (classes)
        cli_put(object, "accuracy", s->accuracy, "auc", s->auc, "log_loss", s->log_loss, "brier",
                s->brier, "ece", s->ece, "balanced_accuracy", s->balanced, "sensitivity",
                s->sensitivity, "specificity", s->specificity, NULL);
    else
        cli_put(object, "r2", s->r2, "rmse", s->rmse, "mae", s->mae, "log_score", s->log_score,
                "coverage_90", s->coverage, NULL);
    return object;
}

static json_t *row_of(const fit_run *run, int i)
{
    const fin_validation_row *row = fin_validation_at(run->validation, i);
    const fin_fit_settings *model = &run->model[i];
    char name[64], title[64];
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o}", "model", fit_name(model, run->classes, name, sizeof name),
        "title", fit_title(model, run->classes, title, sizeof title), "basis",
        fit_basis_name(model, run->classes), "settings", cli_json_settings(&fin_fit_table, model),
        "mean", fit_score_of(&row->mean, run->classes), "se", fit_score_of(&row->se, run->classes));
    cli_put(object, "main", row->main, "main_se", row->main_se, "gain_of_first",
            i ? 0 - row->gain : NAN, "gain_se", i ? row->gain_se : NAN, "seconds", row->seconds,
            NULL);
    return object;
}

static json_t *validation_of(const fit_run *run)
{
    json_t *rows = json_array(), *bins = json_array();
    for (int i = 0; i < run->models; i++)
        json_array_append_new(rows, row_of(run, i));
    for (int b = 0; b < FIT_BINS && run->classes; b++) {
        bool some = run->bin_count[b] > 0;
        json_t *bin = json_pack("{s:f, s:f, s:I}", "from", (double)b / FIT_BINS, "to",
                                (double)(b + 1) / FIT_BINS, "count", cli_int(run->bin_count[b]));
        cli_put(bin, "predicted", some ? run->bin_predicted[b] : NAN, "observed",
                some ? run->bin_observed[b] : NAN, NULL);
        json_array_append_new(bins, bin);
    }
    json_t *object =
        json_pack("{s:i, s:i, s:s, s:o, s:O*, s:o*}", "folds", run->folds, "repeats", run->repeats,
                  "main", fit_main_name(run->classes), "models", rows, "reliability",
                  run->classes ? bins : NULL, "from", cli_json_text(cli_get(run->args, "folds")));
    json_decref(bins);
    return object;
}

#define PAIR_FORM(value, se) "<18:[{" value ":.4f}[ +- {" se ":.4f}]|-]>"
static const char validation_form[] =
    "\n[cross-validation: {validation.folds} folds, {validation.repeats#time}"
    "[, from {validation.from}] (mean +- standard error over folds)\n"
    "[{?validation.models>1}first minus this: difference in {fit.score}; its +- is corrected for "
    "overlapping training sets (Nadeau-Bengio)\n]"
    "model            {fit.score:18s} [{?data.classes}      AUC  log loss     Brier       ECE"
    "|     rmse       mae log score    in 90%][{?validation.models>1}    first minus this]"
    "[{?tty}   seconds]\n"
    "{*validation.models|{title:-16s} " PAIR_FORM(
        "main",
        "main_se") " "
                   "[{?/data.classes}{~mean.auc:9.4f} {~mean.log_loss:9.4f} "
                   "{~mean.brier:9.4f} {~mean.ece:9.4f}"
                   "|{~mean.rmse:9.4f} {~mean.mae:9.4f} {~mean.log_score:9.4f} "
                   "{~mean.coverage_90:9.4f}]"
                   "[ <19:{gain_of_first:+.4f}[ +- {gain_se:.4f}]>]"
                   "[{?tty}[{?first}{?/validation.models>1}                    ] "
                   "{~seconds:9.3g}]\n}"
                   "[{?validation.reliability}\ncalibration of "
                   "{validation.models.0.title}: Brier score "
                   "{~validation.models.0.mean.brier:.4f}, expected calibration error "
                   "{~validation.models.0.mean.ece:.4f} (a bag counts once for every class)\n"
                   "  probability  how many  predicted   observed\n"
                   "{*validation.reliability|  {from:.1f}-{to:.1f}     {count:9d}"
                   "[ {predicted:10.3f} {observed:10.3f}]\n}]"
                   "|cross-validation: none[, {no_validation}]\n]";

/* Loss of a prediction that looks at no token: the classes' shares, or the mean of the labels. */
static double blind_loss(const fit_run *run)
{
    double total = 0, entropy = 0;
    for (int64_t c = 0; c < run->classes; c++)
        total += (double)run->class_count[c];
    for (int64_t c = 0; c < run->classes; c++) {
        double share = (double)run->class_count[c] / total;
        entropy -= share > 0 ? share * log(share) : 0;
    }
    return run->classes ? entropy : 1;
}

/* The warning, if mean pooling is better by more than two standard errors, or nothing is good. */
static bool nothing_helps(const fit_run *run)
{
    return fmin(run->location.one_loss, run->location.all_loss) > 0.99 * blind_loss(run);
}

const char *fit_verdict(const fit_run *run)
{
    double off = run->location.one_loss - run->location.all_loss, se = run->location.se;
    return run->location.one < 0 ? NULL
           : nothing_helps(run)
               ? "Warning: neither a single token nor the bag's mean says much about the labels"
           : off > 2 * se
               ? "Warning: mean pooling explains the labels better than any single token does"
           : off < -2 * se
               ? "It looks so: a single token explains the labels better than the bag's mean does"
               : "It cannot be told from the bag's mean";
}

static json_t *one_token(const fit_run *run)
{
    double off = run->location.one_loss - run->location.all_loss, se = run->location.se;
    char mixture[64], mean[64];
    fit_name(&run->model[run->location.one], run->classes, mixture, sizeof mixture);
    fit_name(&run->model[run->location.all], run->classes, mean, sizeof mean);
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:b, s:f, s:b, s:s}", "mixture_model",
                     mixture, "mean_model", mean, "loss",
                     run->classes ? "log loss" : "squared error", "mixture", run->location.one_loss,
                     "mean", run->location.all_loss, "difference", off, "difference_se", se,
                     "warning", off > 2 * se, "blind", blind_loss(run), "nothing_helps",
                     nothing_helps(run), "verdict", fit_verdict(run));
}

static json_t *curve_of(const fit_run *run)
{
    json_t *array = json_array();
    for (int s = 0; s < run->sizes; s++) {
        json_t *one = json_object();
        cli_put(one, "bags", run->size[s].bags, "score", run->size[s].score, "se", run->size[s].se,
                NULL);
        json_array_append_new(array, one);
    }
    return array;
}

static const char judged_form[] =
    "[\none responsible token? {one_token.verdict}\n"
    "  ({fit.loss} of {one_token.mixture_model} {one_token.mixture:.4f}, of "
    "{one_token.mean_model} {one_token.mean:.4f}, "
    "[{?one_token.nothing_helps}without looking {one_token.blind:.4f})"
    "|mixture minus mean pooling {one_token.difference:.4f} +- {one_token.difference_se:.4f})"
    "[{?one_token.warning}:\n  locations may not mean much]]\n]"
    "[\nlearning curve: none, {no_learning_curve}\n]"
    "[{?learning_curve}\nlearning curve: {fit.score} on the bags of a fold after so many others "
    "({learning_curve_folds} folds: mean +- standard error)\n        bags {fit.score:18s}\n"
    "{*learning_curve|  {bags:10.0f} " PAIR_FORM("score", "se") "\n}]";

/* ---- what matters --------------------------------------------------------------------------- */

/* The heaviest column behind `last` (-1: of all), where weights are above 0; -1: there is none. */
static int64_t next_heaviest(const double *weights, int64_t d, int64_t last)
{
    int64_t best = -1;
    for (int64_t j = 0; j < d; j++) {
        bool behind =
            last < 0 || weights[j] < weights[last] || (weights[j] == weights[last] && j > last);
        if (weights[j] > 0 && behind && (best < 0 || weights[j] > weights[best]))
            best = j;
    }
    return best;
}

/* sign: (d) of them. */
static json_t *weighed(const fit_run *run, const double *weights, const double *sign, int64_t j)
{
    if (j < 0)
        return NULL;
    const char *which = sign[j] > 0 ? "+" : sign[j] < 0 ? "-" : "";
    return json_pack("{s:o, s:s, s:f}", "column", cli_json_text(fin_bag_set_feature(run->set, j)),
                     "sign", which, "weight", weights[j]);
}

/* The columns that matter most, to the score and to the value. */
static json_t *ranking(const fit_run *run)
{
    json_t *array = json_array();
    int64_t k = -1, v = -1, d = run->bags->d;
    for (int i = 0; i < FIT_TOP; i++) {
        k = i && k < 0 ? -1 : next_heaviest(run->key, d, k);
        v = i && v < 0 ? -1 : next_heaviest(run->value, d, v);
        if (k < 0 && v < 0)
            break;
        json_array_append_new(array, json_pack("{s:i, s:o*, s:o*}", "rank", i + 1, "key",
                                               weighed(run, run->key, run->key_sign, k), "value",
                                               weighed(run, run->value, run->value_sign, v)));
    }
    return array;
}

static json_t *importance_of(const fit_run *run)
{
    json_t *array = json_array();
    for (int64_t j = 0; j < run->bags->d; j++) {
        json_t *one = json_pack("{s:o}", "column", cli_json_text(fin_bag_set_feature(run->set, j)));
        cli_put(one, "key", run->key[j], "value", run->value[j], "key_sign", run->key_sign[j],
                "value_sign", run->value_sign[j], NULL);
        json_array_append_new(array, one);
    }
    return array;
}

static const char importance_form[] =
    "\nfeatures that matter[: {no_importance}"
    "| (standard deviation of a token's score, and of its value, that is due to them)\n"
    "      score: which token (k)             value: its part in the label (v)"
    "[{*most_important|\n  {rank:2d}  [{key.column:-22.22s} {key.sign:1s} {key.weight:8.4f}"
    "|                                 ][  {value.column:-22.22s} {value.sign:1s} "
    "{value.weight:8.4f}]}]"
    "[\n  of {columns_of}: other parts do not see columns by themselves]]\n";

/* The parts that this is about, where there are others: "mean (0.31), softmax:linear (0.22)". */
static char *columns_of(const fit_run *run, char *buffer, size_t size)
{
    size_t used = 0;
    bool others = false;
    buffer[0] = '\0';
    for (int64_t i = 0; i < run->info.parts; i++) {
        char title[64];
        double weight = 0;
        const fin_fit_settings *part = fin_fit_part(run->fit, i, &weight);
        if (!(weight > 0) || fin_fit_model_get(part)->constant)
            continue;
        others = others || !fin_fit_by_columns(run->fit, i);
        if (fin_fit_by_columns(run->fit, i) && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s (%.3f)", used ? ", " : "",
                                     fit_title(part, run->classes, title, sizeof title), weight);
    }
    return others && *buffer ? buffer : NULL;
}

/* ---- all of it ------------------------------------------------------------------------------ */

int fit_report(const fit_run *run)
{
    double all = run->seconds_read + run->seconds_fit + run->seconds_validate + run->seconds_curve;
    json_t *record = json_pack(
        "{s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "data", data_of(run),
        "fit", fitted(run), "validation", run->validation ? validation_of(run) : NULL, "one_token",
        run->location.one >= 0 ? one_token(run) : NULL, "importance",
        run->key ? importance_of(run) : NULL, "most_important", run->key ? ranking(run) : NULL,
        "no_validation",
        cli_json_text(!run->validation && *run->no_validation ? run->no_validation : NULL),
        "no_importance", cli_json_text(run->key ? NULL : run->unimportant), "no_learning_curve",
        cli_json_text(!run->sizes && *run->no_curve ? run->no_curve : NULL), "out",
        cli_json_text(cli_get(run->args, "out")), "report",
        cli_json_text(cli_get(run->args, "report")));
    if (run->sizes) {
        json_object_set_new(record, "learning_curve", curve_of(run));
        json_object_set_new(record, "learning_curve_folds", json_integer(FIN_CURVE_FOLDS));
    }
    char parts[1024];
    json_object_set_new(record, "columns_of",
                        cli_json_text(run->key ? columns_of(run, parts, sizeof parts) : NULL));
    json_object_set_new(record, "seconds",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "read", run->seconds_read, "fit",
                                  run->seconds_fit, "validate", run->seconds_validate, "curve",
                                  run->seconds_curve, "all", all));
    return cli_show(run->args, record, data_form, fit_form, validation_form, judged_form,
                    importance_form);
}
