/* The report of a fit as JSON: everything that the text has, with all digits, and times. */
#include "bags/fit.h"

#include <math.h>
#include <string.h>

static void put(json_t *object, const char *name, double number)
{
    if (isfinite(number)) /* what does not apply is not there */
        json_object_set_new(object, name, json_real(number));
}

json_t *fit_json_score(const fin_fit_score *score, int64_t classes)
{
    json_t *object = json_object();
    if (classes) {
        put(object, "accuracy", score->accuracy);
        put(object, "auc", score->auc);
        put(object, "log_loss", score->log_loss);
        put(object, "brier", score->brier);
        put(object, "ece", score->ece);
    } else {
        put(object, "r2", score->r2);
        put(object, "rmse", score->rmse);
        put(object, "mae", score->mae);
        put(object, "log_score", score->log_score);
        put(object, "coverage_90", score->coverage);
    }
    return object;
}

/* Columns that are constant within every bag, kept or not. */
static json_t *json_levels(const fit_run *run)
{
    json_t *list = json_array();
    const char *name = run->level_names;
    for (int64_t k = 0; k < run->levels; k++, name += strlen(name) + 1)
        json_array_append_new(list, json_string(name));
    return list;
}

static json_t *json_data(const fit_run *run)
{
    char note[900];
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s}", "file", run->path, "bags",
                               (json_int_t)run->info.bags, "tokens", (json_int_t)run->info.tokens,
                               "columns", (json_int_t)run->bags->d, "columns_left_out",
                               (json_int_t)(run->bags->d - run->info.columns), "kind",
                               run->classes ? "classes" : "regression");
    const char *label = fin_bag_set_label(run->set);
    json_object_set_new(object, "label", label ? json_string(label) : json_null());
    json_t *notes = json_array();
    for (int i = 0; i < fin_bag_set_notes(run->set); i++)
        json_array_append_new(notes, json_string(fin_bag_set_note(run->set, i)));
    if (run->level_kept)
        json_array_append_new(notes, json_string(fit_level_note(run, note, sizeof note)));
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "columns_of_bags", json_levels(run));
    if (run->groups)
        json_object_set_new(object, "groups",
                            json_pack("{s:s, s:I}", "column", fin_bag_set_group(run->set), "count",
                                      (json_int_t)run->groups));
    if (run->classes) {
        json_t *classes = json_array();
        for (int64_t c = 0; c < run->classes; c++)
            json_array_append_new(classes,
                                  json_pack("{s:s, s:I}", "name", fin_bag_set_class(run->set, c),
                                            "bags", (json_int_t)run->class_count[c]));
        json_object_set_new(object, "classes", classes);
    }
    return object;
}

static json_t *json_fitted(const fit_run *run)
{
    const fin_fit_info *info = &run->info;
    char name[64];
    json_t *object = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "model",
        fit_name(&run->settings, run->classes, name, sizeof name), "settings",
        cli_json_settings(&fin_fit_table, &run->settings), "parts", fit_json_parts(run->fit),
        "members", (json_int_t)info->members, "parameters", (json_int_t)info->parameters,
        "iterations", (json_int_t)info->iterations, "evaluations", (json_int_t)info->evaluations,
        "unfinished", (json_int_t)info->unfinished, "locates", run->locates);
    json_object_set_new(object, "locator", fit_json_locator(run->fit));
    if (run->classes == 2 && info->positive >= 0)
        json_object_set_new(object, "positive",
                            json_string(fin_bag_set_class(run->set, info->positive)));
    put(object, "inner_loss", info->inner_loss);
    put(object, "base_loss", info->base_loss);
    put(object, "training_loss", info->loss);
    if (!run->classes)
        put(object, "noise", info->noise);
    return object;
}

static json_t *json_row(const fit_run *run, int i)
{
    const fin_validation_row *row = fin_validation_at(run->validation, i);
    char name[64];
    json_t *object = json_pack("{s:s, s:s, s:o, s:o, s:o}", "model",
                               fit_name(&run->model[i], run->classes, name, sizeof name), "basis",
                               fit_basis_name(&run->model[i], run->classes), "settings",
                               cli_json_settings(&fin_fit_table, &run->model[i]), "mean",
                               fit_json_score(&row->mean, run->classes), "se",
                               fit_json_score(&row->se, run->classes));
    put(object, "main", row->main);
    put(object, "main_se", row->main_se);
    if (i > 0) {
        put(object, "gain_of_first", -row->gain);
        put(object, "gain_se", row->gain_se);
    }
    put(object, "seconds", row->seconds);
    return object;
}

static json_t *json_validation(const fit_run *run)
{
    json_t *rows = json_array(), *bins = json_array();
    for (int i = 0; i < run->models; i++)
        json_array_append_new(rows, json_row(run, i));
    for (int b = 0; b < FIT_BINS && run->classes; b++) {
        json_t *bin = json_pack("{s:f, s:f, s:I}", "from", (double)b / FIT_BINS, "to",
                                (double)(b + 1) / FIT_BINS, "count", (json_int_t)run->bin_count[b]);
        if (run->bin_count[b]) {
            put(bin, "predicted", run->bin_predicted[b]);
            put(bin, "observed", run->bin_observed[b]);
        }
        json_array_append_new(bins, bin);
    }
    json_t *object = json_pack("{s:i, s:i, s:s, s:o}", "folds", run->folds, "repeats", run->repeats,
                               "main", fit_main_name(run->classes), "models", rows);
    if (run->classes)
        json_object_set(object, "reliability", bins);
    json_decref(bins);
    return object;
}

static json_t *json_location(const fit_run *run)
{
    double off = run->loss_mixture - run->loss_mean;
    char mixture[64], mean[64];
    fit_name(&run->model[run->row_mixture], run->classes, mixture, sizeof mixture);
    fit_name(&run->model[run->row_mean], run->classes, mean, sizeof mean);
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:b}", "mixture_model", mixture,
                     "mean_model", mean, "loss", run->classes ? "log loss" : "squared error",
                     "mixture", run->loss_mixture, "mean", run->loss_mean, "difference", off,
                     "difference_se", run->loss_se, "warning", off > 2 * run->loss_se);
}

static json_t *json_importance(const fit_run *run)
{
    json_t *array = json_array();
    for (int64_t j = 0; j < run->bags->d; j++) {
        json_t *one = json_object();
        json_object_set_new(one, "column", json_string(fin_bag_set_feature(run->set, j)));
        put(one, "key", run->key[j]);
        put(one, "value", run->value[j]);
        json_array_append_new(array, one);
    }
    return array;
}

static json_t *json_curve(const fit_run *run)
{
    json_t *array = json_array();
    for (int s = 0; s < run->sizes; s++) {
        json_t *one = json_object();
        put(one, "bags", run->size[s].bags);
        put(one, "score", run->size[s].score);
        put(one, "se", run->size[s].se);
        json_array_append_new(array, one);
    }
    return array;
}

int fit_print_json(const fit_run *run)
{
    const char *out = cli_get(run->args, "out");
    json_t *root = json_pack("{s:o, s:o}", "data", json_data(run), "fit", json_fitted(run));
    if (run->validation)
        json_object_set_new(root, "validation", json_validation(run));
    else if (run->no_validation[0])
        json_object_set_new(root, "no_validation", json_string(run->no_validation));
    if (run->compared)
        json_object_set_new(root, "one_token", json_location(run));
    if (run->key)
        json_object_set_new(root, "importance", json_importance(run));
    if (run->sizes)
        json_object_set_new(root, "learning_curve", json_curve(run));
    else if (run->no_curve[0])
        json_object_set_new(root, "no_learning_curve", json_string(run->no_curve));
    if (out)
        json_object_set_new(root, "out", json_string(out));
    json_object_set_new(root, "seconds",
                        json_pack("{s:f, s:f, s:f, s:f}", "read", run->seconds_read, "fit",
                                  run->seconds_fit, "validate", run->seconds_validate, "curve",
                                  run->seconds_curve));
    return cli_print_json(root);
}
