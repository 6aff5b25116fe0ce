/* The fit as JSON: everything that the text has, with all digits. */
#include "attend/attend.h"

#include <math.h>
#include <string.h>

static json_t *names(const attend_source *source, const attend_list *list)
{
    json_t *array = json_array();
    for (int j = 0; j < list->count; j++)
        json_array_append_new(array, json_string(source->column[list->at[j]].name));
    return array;
}

static json_t *json_context(const attend_data *data)
{
    json_t *object =
        json_pack("{s:s, s:I, s:o, s:o, s:b}", "file", data->context.label, "tokens",
                  (json_int_t)data->tokens.count, "key", names(&data->context, &data->key), "value",
                  names(&data->context, &data->value), "standardized", data->standardized);
    if (data->sequence.count) {
        json_object_set_new(object, "sequence",
                            json_string(data->context.column[data->sequence.at[0]].name));
        json_object_set_new(object, "sequences", json_integer((json_int_t)data->known));
    }
    return object;
}

static json_t *json_scales(const attend_fit *fit)
{
    json_t *object = json_object();
    for (int64_t j = 0; j < fit->data->dk; j++)
        json_object_set_new(object, attend_key_name(fit->data, j),
                            cli_json_number(fit->settings.scale * fit->scales[j]));
    return object;
}

static json_t *json_tune(const attend_fit *fit)
{
    char chosen[64], ends[64];
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:b, s:s, s:I}", "chosen",
                     attend_tuned_names(fit->tune.which, chosen, sizeof chosen), "by",
                     fit->tune.by == FIN_TUNE_BY_EVIDENCE ? "evidence" : "loo", "before",
                     cli_json_number(fit->tune.before), "after", cli_json_number(fit->tune.after),
                     "evaluations", (json_int_t)fit->tune.evaluations, "converged",
                     fit->tune.converged, "at_limit",
                     attend_tuned_names(fit->tune.at_limit, ends, sizeof ends), "tokens",
                     (json_int_t)fit->tune.tokens);
}

static json_t *json_method(const fin_cross_info *info, double jitter)
{
    static const char *const methods[] = {"none", "dual", "primal", "nystrom"};
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name", methods[info->method], "features",
                     (json_int_t)info->features, "jitter", cli_json_number(jitter), "residual",
                     cli_json_number(info->residual), "moved", cli_json_number(info->moved),
                     "bytes", cli_json_number(info->bytes));
}

static json_t *json_score(const attend_fit *fit, const fin_cross_score *s)
{
    json_t *pit = json_array();
    for (int b = 0; b < FIN_SCORE_BINS; b++)
        json_array_append_new(pit, json_integer((json_int_t)s->pit[b]));
    json_t *object =
        json_pack("{s:I, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "count", (json_int_t)s->count, "rmse",
                  cli_json_number(s->rmse), "r2", cli_json_number(s->r2), "coverage", "50",
                  cli_json_number(s->coverage[0]), "90", cli_json_number(s->coverage[1]), "95",
                  cli_json_number(s->coverage[2]), "pit", pit);
    if (fit->settings.form == FIN_CROSS_CME)
        json_object_set_new(object, "log_score", cli_json_number(s->log_score));
    return object;
}

static json_t *json_scores(const attend_fit *fit, int64_t n, const double *values,
                           const double *mean, const double *variance, double noise)
{
    json_t *object = json_object();
    for (int64_t j = 0; j < fit->data->dv; j++) {
        fin_cross_score s;
        fin_cross_judge(n, fit->data->dv, values + j, mean + j, variance + j, noise, &s, NULL);
        json_object_set_new(object, attend_value_name(fit->data, j), json_score(fit, &s));
    }
    return object;
}

static json_t *json_curve(const attend_fit *fit)
{
    json_t *tokens = json_array(), *count = json_array(), *error = json_array(),
           *score = json_array();
    for (int64_t l = 0; l < fit->lengths; l++) {
        if (!fit->curve_count[l])
            continue;
        json_array_append_new(tokens, json_integer((json_int_t)l));
        json_array_append_new(count, json_integer((json_int_t)fit->curve_count[l]));
        json_array_append_new(error, cli_json_number(fit->curve_error[l]));
        json_array_append_new(score, cli_json_number(fit->curve_score[l]));
    }
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o}", "of", fit->curve_of_queries ? "queries" : "tokens",
                  "tokens", tokens, "count", count, "squared_error", error);
    if (fit->settings.form == FIN_CROSS_CME)
        json_object_set_new(object, "minus_log_score", score);
    else
        json_decref(score);
    return object;
}

static json_t *json_answer(const attend_fit *fit, int64_t q)
{
    const attend_data *data = fit->data;
    int64_t row = data->queries.row[q], dv = data->dv;
    bool cme = fit->settings.form == FIN_CROSS_CME;
    json_t *key = json_object(), *mean = json_object(), *sd = json_object(),
           *sd_new = json_object(), *top = json_array();
    for (int64_t j = 0; j < data->dk; j++)
        json_object_set_new(
            key, attend_key_name(data, j),
            cli_json_number(attend_cell(&data->asked->column[data->asked_key.at[j]], row)));
    for (int64_t j = 0; j < dv; j++) {
        const char *name = attend_value_name(data, j);
        double variance = fit->variance[q * dv + j];
        json_object_set_new(mean, name, cli_json_number(fit->mean[q * dv + j]));
        json_object_set_new(sd, name, cli_json_number(sqrt(variance)));
        json_object_set_new(sd_new, name, cli_json_number(sqrt(variance + fit->settings.noise)));
    }
    for (int k = 0; k < fit->top && fit->top_token[q * fit->top + k] >= 0; k++)
        json_array_append_new(
            top, json_pack("{s:I, s:o}", "row", (json_int_t)fit->top_token[q * fit->top + k] + 1,
                           "weight", cli_json_number(fit->top_weight[q * fit->top + k])));
    json_t *object = json_pack("{s:I, s:o, s:o, s:o, s:o}", "query", (json_int_t)row + 1, "key",
                               key, "mean", mean, cme ? "sd" : "spread", sd, "top", top);
    if (data->sequence.count) {
        const attend_column *column = &data->asked->column[data->asked_sequence.at[0]];
        double cell = attend_cell(column, row);
        json_object_set_new(object, "sequence",
                            column->words ? json_string(attend_word(column, (int64_t)cell - 1))
                                          : cli_json_number(cell));
    }
    if (cme)
        json_object_set_new(object, "sd_new", sd_new);
    else
        json_decref(sd_new);
    return object;
}

int attend_print_json(const cli_args *args, const attend_fit *fit)
{
    const attend_data *data = fit->data;
    json_t *notes = json_array(), *answers = json_array();
    for (int i = 0; i < data->notes; i++)
        json_array_append_new(notes, json_string(data->note[i]));
    json_t *root = json_pack("{s:o, s:o, s:o, s:o}", "context", json_context(data), "settings",
                             cli_json_settings(&fin_cross_table, &fit->settings), "method",
                             json_method(&fit->info, fit->jitter), "notes", notes);
    if (fit->scales)
        json_object_set_new(root, "scales", json_scales(fit));
    if (fit->tune.which)
        json_object_set_new(root, "tune", json_tune(fit));
    if (fit->has_evidence)
        json_object_set_new(root, "evidence", cli_json_number(fit->evidence));
    if (fit->leaves_out)
        json_object_set_new(root, "loo",
                            json_scores(fit, data->tokens.count, data->values, fit->loo_mean,
                                        fit->loo_variance, 0));
    if (data->answers)
        json_object_set_new(
            root, "test",
            json_scores(fit, data->queries.count, data->answers, fit->mean, fit->variance,
                        fit->settings.form == FIN_CROSS_CME ? fit->settings.noise : 0));
    if (fit->grows)
        json_object_set_new(root, "prefix", json_curve(fit));
    bool listed = fit->predicts && !cli_get(args, "out");
    for (int64_t q = 0; listed && q < data->queries.count; q++)
        json_array_append_new(answers, json_answer(fit, q));
    if (listed)
        json_object_set_new(root, "answers", answers);
    else
        json_decref(answers);
    return cli_print_json(root);
}
