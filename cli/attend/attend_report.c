/* What attention has found out, as one record: what was given, what was chosen, how good it is, what it
 * answers. And --out: answers, leave-one-out predictions or the learning curve as CSV; all there is as
 * NPZ. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_cme(const attend_fit *fit)
{
    return fit->settings.form == FIN_CROSS_CME;
}

/* ---- the head ------------------------------------------------------------------------------- */

static json_t *names(const attend_source *source, const attend_list *list)
{
    json_t *array = json_array();
    for (int j = 0; j < list->count; j++)
        json_array_append_new(array, cli_json_text(source->column[list->at[j]].name));
    return array;
}

static json_t *context_of(const attend_data *data)
{
    json_t *object =
        json_pack("{s:o, s:I, s:I, s:o, s:o, s:b}", "file", cli_json_text(data->context.label),
                  "tokens", cli_int(data->tokens.count), "longest", cli_int(data->longest), "key",
                  names(&data->context, &data->key), "value", names(&data->context, &data->value),
                  "standardized", data->standardized);
    if (data->sequence.count) {
        json_object_set_new(object, "sequence",
                            cli_json_text(data->context.column[data->sequence.at[0]].name));
        json_object_set_new(object, "sequences", json_integer(cli_int(data->known)));
    }
    return object;
}

static json_t *scales_of(const attend_fit *fit)
{
    json_t *object = json_object();
    for (int64_t j = 0; j < fit->data->dk; j++)
        json_object_set_new_nocheck(object, attend_key_name(fit->data, j),
                                    cli_json_number(fit->settings.scale * fit->scales[j]));
    return object;
}

static json_t *tune_of(const attend_fit *fit)
{
    char chosen[64], ends[64];
    const fin_tune_report *t = &fit->tune;
    bool evidence = t->by == FIN_TUNE_BY_EVIDENCE, cme = is_cme(fit);
    double sign = evidence || cme ? 1 : -1;
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:b, s:s, s:I, s:s, s:f, s:f}", "chosen",
                     attend_tuned_names(t->which, chosen, sizeof chosen), "by",
                     evidence ? "evidence" : "loo", "before", cli_json_number(t->before), "after",
                     cli_json_number(t->after), "evaluations", cli_int(t->evaluations), "converged",
                     t->converged, "at_limit", attend_tuned_names(t->at_limit, ends, sizeof ends),
                     "tokens", cli_int(t->tokens), "measure",
                     evidence ? "marginal likelihood"
                     : cme    ? "leave-one-out log score"
                              : "leave-one-out squared error",
                     "measured_before", sign * t->before, "measured_after", sign * t->after);
}

/* "24 kB", "3.2 GB" */
static char *bytes_text(double bytes, char *buffer, size_t size)
{
    const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 999.5 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(buffer, size, "%.3g %s", bytes, units[unit]);
    return buffer;
}

static json_t *method_of(const fin_cross_info *info, double jitter)
{
    static const char *const methods[] = {"none", "dual", "primal", "nystrom"};
    char memory[32];
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o, s:s}", "name", methods[info->method],
                     "features", cli_int(info->features), "jitter", cli_json_number(jitter),
                     "residual", cli_json_number(info->residual), "moved",
                     cli_json_number(info->moved), "bytes", cli_json_number(info->bytes), "memory",
                     bytes_text(info->bytes, memory, sizeof memory));
}

static const char head_form[] =
    "context     {context.file}: {context.tokens#token}[ in {context.sequences#sequence} "
    "({context.sequence}), the longest has {context.longest}]\n"
    "key         {context.key,30}[{?context.standardized} (standardized)]\n"
    "value       {context.value,30}\n"
    "form        [{?settings.form=softmax}softmax: temperature {settings.temperature:.6g}"
    "|{settings.form}: {settings.kernel} kernel"
    "[{?settings.kernel=polynomial}, degree {settings.degree}, offset {settings.offset:.6g}]"
    "[{!scales}, scale {settings.scale:.6g}][{?settings.form=cme}, prior {settings.prior:.6g}, "
    "noise {settings.noise:.6g}, level {settings.level:.6g}]]\n"
    "[{*scales|<-12:[{?first}scales]>{@:-20s} {.:.6g}\n}]"
    "[tuned       {tune.chosen} by {tune.measure}: {tune.measured_after:.6g}, before "
    "{tune.measured_before:.6g}\n[{?settings.form=cme}{?settings.method=nystrom}            "
    "on a random part of {tune.tokens} tokens, by the dual method\n]]"
    "[{?method.name=dual}method      dual, exact; {method.memory}\n"
    "|{?method.name=primal}method      primal, exact, {method.features} features; "
    "{method.memory}\n"
    "|{?method.name=nystrom}method      nystrom, {method.features} landmarks: "
    "{~method.residual:.3g} of the prior variance missed, means off by about "
    "{~method.moved:.2g} sd of the values; {method.memory}\n]"
    "[{?method.jitter}jitter      {method.jitter:.3g} added to the noise\n]"
    "[evidence    {evidence:.8g} (log marginal likelihood)\n]";

/* ---- scores --------------------------------------------------------------------------------- */

/* Predictions and what they are judged by. */
typedef struct judged {
    int64_t n;
    const double *values, *mean, *variance;
    double noise;
} judged;

static json_t *scores_of(const attend_fit *fit, const judged *of, int64_t pit[FIN_SCORE_BINS])
{
    json_t *object = json_object();
    int64_t dv = fit->data->dv;
    for (int64_t j = 0; j < dv; j++) {
        fin_cross_score s;
        json_t *bins = json_array();
        fin_cross_judge(of->n, dv, of->values + j, of->mean + j, of->variance + j, of->noise, &s,
                        NULL);
        for (int b = 0; b < FIN_SCORE_BINS; b++) {
            json_array_append_new(bins, json_integer(cli_int(s.pit[b])));
            pit[b] += s.pit[b];
        }
        json_object_set_new_nocheck(
            object, attend_value_name(fit->data, j),
            json_pack("{s:I, s:o, s:o, s:{s:o, s:o, s:o}, s:o, s:o*}", "count", cli_int(s.count),
                      "rmse", cli_json_number(s.rmse), "r2", cli_json_number(s.r2), "coverage",
                      "50", cli_json_number(s.coverage[0]), "90", cli_json_number(s.coverage[1]),
                      "95", cli_json_number(s.coverage[2]), "pit", bins, "log_score",
                      is_cme(fit) ? cli_json_number(s.log_score) : NULL));
    }
    return object;
}

/* The histogram over all columns of values, with bars. */
static json_t *histogram(const int64_t pit[FIN_SCORE_BINS])
{
    enum { BAR = 50 };
    int64_t most = 1, total = 0;
    json_t *bins = json_array();
    for (int b = 0; b < FIN_SCORE_BINS; b++) {
        most = pit[b] > most ? pit[b] : most;
        total += pit[b];
    }
    for (int b = 0; b < FIN_SCORE_BINS; b++) {
        char bar[BAR + 1] = "";
        memset(bar, '#', (size_t)(((double)pit[b] * BAR) / (double)most + 0.5));
        json_array_append_new(bins,
                              json_pack("{s:f, s:f, s:I, s:s*}", "from", (double)b / FIN_SCORE_BINS,
                                        "to", (double)(b + 1) / FIN_SCORE_BINS, "count",
                                        cli_int(pit[b]), "bar", *bar ? bar : NULL));
    }
    return json_pack("{s:I, s:f, s:o}", "values", cli_int(total), "in_every_bin",
                     (double)total / FIN_SCORE_BINS, "bins", bins);
}

#define SCORES_FORM(list, title, pit, nothing, more)                                               \
    "[{?" list "}\n" title                                                                         \
    "     values         rmse        R2    log score  in 50%  in 90%  in 95%\n"                    \
    "{*" list "|{@:-20.60s} {count:8d} {~rmse:12.6g} {~r2:9.4f} {~log_score:12.6g}"                \
    " <7:[{coverage.50:.1p}%|-]> <7:[{coverage.90:.1p}%|-]> <7:[{coverage.95:.1p}%|-]>\n}"         \
    "[{!settings.form=cme}(in ..%: intervals from the weighted spread of the values, which is no " \
    "posterior)\n][{!" pit ".values}(nothing to judge: " nothing ")\n" more "]]"

static const char scores_form[] =
    SCORES_FORM("loo", "leave-one-out     ", "loo_pit", "no token has another one in its sequence",
                "|PIT of {loo_pit.values} values[{!settings.form=cme} (a normal law with the "
                "weighted spread)]; "
                "uniform if calibrated, {loo_pit.in_every_bin:.3g} in every row\n"
                "{*loo_pit.bins|  {from:.1f}-{to:.1f} {count:7d}[  {bar}]\n}");
static const char test_form[] =
    SCORES_FORM("test", "queries           ", "test_pit", "no query has an answer", "");

/* ---- the learning curve --------------------------------------------------------------------- */

static json_t *curve_of(const attend_fit *fit)
{
    json_t *list[4];
    for (int k = 0; k < 4; k++)
        list[k] = json_array();
    for (int64_t l = 0; l < fit->lengths; l++) {
        if (!fit->curve_count[l])
            continue;
        json_array_append_new(list[0], json_integer(cli_int(l)));
        json_array_append_new(list[1], json_integer(cli_int(fit->curve_count[l])));
        json_array_append_new(list[2], cli_json_number(fit->curve_error[l]));
        json_array_append_new(list[3], cli_json_number(fit->curve_score[l]));
    }
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:O*}", "of", fit->curve_of_queries ? "queries" : "tokens",
                  "tokens", list[0], "count", list[1], "squared_error", list[2], "minus_log_score",
                  is_cme(fit) ? list[3] : NULL);
    json_decref(list[3]);
    return object;
}

/* 0, 1, 2, 3, 5, 7, 10, 14, 20, ..., and the last one. */
static bool is_shown(int64_t l, int64_t last)
{
    static const int64_t steps[] = {10, 14, 20, 30, 50, 70};
    if (l <= 3 || l == 5 || l == 7 || l == last)
        return true;
    for (int64_t scale = 1; scale <= l; scale *= 10)
        for (int i = 0; i < 6; i++)
            if (l == scale * steps[i])
                return true;
    return false;
}

/* A few rows of it. One token's error says little: of tokens, a row is the mean since the row before. */
static json_t *curve_rows(const attend_fit *fit)
{
    bool mean = !fit->curve_of_queries;
    double error = 0, score = 0;
    int64_t count = 0;
    json_t *rows = json_array();
    for (int64_t l = 0; l < fit->lengths; l++) {
        int64_t here = fit->curve_count[l];
        bool shown = is_shown(l, fit->lengths - 1);
        error = (mean ? error : 0) + (here ? (double)here * fit->curve_error[l] : 0);
        score = (mean ? score : 0) + (here ? (double)here * fit->curve_score[l] : 0);
        count = (mean ? count : 0) + here;
        if (count && shown) {
            double n = (double)count;
            json_array_append_new(
                rows,
                json_pack("{s:I, s:I, s:o, s:o*}", "tokens", cli_int(l), "averaged", cli_int(count),
                          "squared_error", cli_json_number(mean ? error / n : fit->curve_error[l]),
                          "minus_log_score",
                          is_cme(fit) ? cli_json_number(mean ? score / n : fit->curve_score[l])
                                      : NULL));
        }
        if (shown)
            error = score = 0, count = 0;
    }
    return rows;
}

static const char curve_form[] =
    "[{?prefix}\nlearning curve: [{?prefix.of=queries}queries predicted from the first tokens"
    "|every token predicted from those before it; means over the tokens since the row above]\n"
    "  tokens   averaged [{?prefix.of=queries}      squared error[{?settings.form=cme}"
    "        -log score]| mean squared error[{?settings.form=cme}   mean -log score]]\n"
    "{*prefix_rows|{tokens:8d} {averaged:10d} {~squared_error:19.6g}[ {minus_log_score:17.6g}]\n}]";

/* ---- answers, and rows of files -------------------------------------------------------------- */

typedef struct listing {
    const attend_fit *fit;
    const int64_t *order; /* of the rows: that of the file they come from; NULL: as they are */
} listing;

static int64_t at(const listing *l, int64_t i)
{
    return l->order ? l->order[i] : i;
}

static void tell_keys(cli_row *row, const attend_data *data, const attend_source *source,
                      const attend_list *const lists[2], int64_t i)
{
    json_t *object = cli_row_object(row);
    const attend_list *sequence = lists[0], *key = lists[1];
    cli_cell_int(row, object ? "query" : "row", i + 1);
    if (data->sequence.count) {
        const attend_column *column = &source->column[sequence->at[0]];
        if (object && column->words)
            cli_cell_text(row, "sequence",
                          attend_word(column, (int64_t)attend_cell(column, i) - 1));
        else
            cli_cell(row, object ? "sequence" : data->context.column[data->sequence.at[0]].name,
                     object ? attend_cell(column, i) : attend_label(data, source, sequence, i));
    }
    for (int64_t j = 0; j < data->dk; j++)
        cli_cell_of(row, "key", "", attend_key_name(data, j), "",
                    attend_cell(&source->column[key->at[j]], i));
}

static void tell_answer(cli_row *row, const void *user, int64_t i)
{
    const attend_fit *fit = ((const listing *)user)->fit;
    const attend_data *data = fit->data;
    int64_t q = at(user, i), dv = data->dv;
    json_t *top = cli_row_object(row) ? json_array() : NULL;
    tell_keys(row, data, data->asked,
              (const attend_list *const[]){&data->asked_sequence, &data->asked_key},
              data->queries.row[q]);
    for (int64_t j = 0; j < dv; j++) {
        const char *name = attend_value_name(data, j), *sd = is_cme(fit) ? "sd" : "spread";
        double variance = fit->variance[q * dv + j];
        cli_cell_of(row, "mean", "", name, "mean", fit->mean[q * dv + j]);
        cli_cell_of(row, sd, "", name, sd, sqrt(variance));
        if (is_cme(fit))
            cli_cell_of(row, "sd_new", "", name, "sd_new", sqrt(variance + fit->settings.noise));
    }
    for (int k = 0; k < fit->top; k++) {
        int64_t token = fit->top_token[q * fit->top + k];
        double weight = fit->top_weight[q * fit->top + k];
        if (top && token >= 0)
            json_array_append_new(top, json_pack("{s:I, s:o}", "row", cli_int(token + 1), "weight",
                                                 cli_json_number(weight)));
        if (!top) {
            cli_cell_at(row, "top", k + 1, token >= 0 ? (double)token + 1 : NAN);
            cli_cell_at(row, "weight", k + 1, weight);
        }
    }
    if (top)
        json_object_set_new(cli_row_object(row), "top", top);
}

static void tell_left_out(cli_row *row, const void *user, int64_t i)
{
    const attend_fit *fit = ((const listing *)user)->fit;
    const attend_data *data = fit->data;
    int64_t token = at(user, i);
    tell_keys(row, data, &data->context, (const attend_list *const[]){&data->sequence, &data->key},
              data->tokens.row[token]);
    for (int64_t j = 0; j < data->dv; j++) {
        const char *name = attend_value_name(data, j);
        int64_t k = token * data->dv + j;
        double mean = fit->loo_mean[k], variance = fit->loo_variance[k];
        cli_cell(row, name, data->values[k]);
        cli_cell_of(row, "", "", name, "mean", mean);
        cli_cell_of(row, "", "", name, is_cme(fit) ? "sd_new" : "spread", sqrt(variance));
        cli_cell_of(row, "", "", name, "pit", fin_cross_pit(data->values[k], mean, variance));
    }
}

static void tell_length(cli_row *row, const void *user, int64_t l)
{
    const attend_fit *fit = ((const listing *)user)->fit;
    cli_cell_int(row, "tokens", l);
    cli_cell_int(row, "count", fit->curve_count[l]);
    cli_cell(row, "squared_error", fit->curve_error[l]);
    if (is_cme(fit))
        cli_cell(row, "minus_log_score", fit->curve_score[l]);
}

enum { ANSWERS = 20 };
static const char answers_form[] =
    "[{?answers}{!prefix.of=queries}\n query[ {context.sequence:10.10s}]"
    "{*context.key|[{?@<4} {.:10.10s}]}[{?context.key>4} ...]"
    "{*context.value| {.:12.12s} [{?/settings.form=cme}        sd  sd of new obs.|    spread]}"
    "[{?top}  most attended rows: weight]\n"
    "{*answers|{query:6d}[ {sequence:10.10s}]{*key|[{?@<4} {~.:10.6g}]}[{?key>4} ...]"
    "{*mean| {~.:12.6g} [{?/settings.form=cme}{~^sd.@:10.4g} {~^sd_new.@:15.4g}"
    "|{~^spread.@:10.4g}]}{*top|[{?first}  |, ]{row}: {~weight:.3g}}\n}"
    "[{?more}... {more} more; --out FILE has all\n]]";

int attend_report(const cli_args *args, const attend_fit *fit)
{
    const attend_data *data = fit->data;
    bool json = cli_get(args, "json"), listed = fit->predicts && !cli_get(args, "out");
    int64_t m = data->queries.count, most = json || m < ANSWERS ? m : ANSWERS,
            pit[2][FIN_SCORE_BINS] = {{0}};
    json_t *notes = json_array();
    for (int i = 0; i < data->notes; i++)
        json_array_append_new(notes, cli_json_text(data->note[i]));
    const judged left = {data->tokens.count, data->values, fit->loo_mean, fit->loo_variance, 0},
                 asked = {m, data->answers, fit->mean, fit->variance,
                          is_cme(fit) ? fit->settings.noise : 0};
    json_t *loo = fit->leaves_out ? scores_of(fit, &left, pit[0]) : NULL;
    json_t *test = data->answers ? scores_of(fit, &asked, pit[1]) : NULL;
    json_t *record = json_pack(
        "{s:o, s:o, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:i, "
        "s:I}",
        "context", context_of(data), "settings",
        cli_json_settings(&fin_cross_table, &fit->settings), "method",
        method_of(&fit->info, fit->jitter), "notes", notes, "scales",
        fit->scales ? scales_of(fit) : NULL, "tune", fit->tune.which ? tune_of(fit) : NULL,
        "evidence", fit->has_evidence ? cli_json_number(fit->evidence) : NULL, "loo", loo,
        "loo_pit", loo ? histogram(pit[0]) : NULL, "test", test, "test_pit",
        test ? histogram(pit[1]) : NULL, "prefix", fit->grows ? curve_of(fit) : NULL, "prefix_rows",
        fit->grows ? curve_rows(fit) : NULL, "answers",
        listed ? cli_json_rows(tell_answer, &(listing){fit, NULL}, most) : NULL, "top", fit->top,
        "more", cli_int(m - most));
    return cli_show(args, record, head_form, scores_form, curve_form, test_form, answers_form);
}

/* ---- files ---------------------------------------------------------------------------------- */

static fin_status write_csv(const char *path, const attend_fit *fit, fin_error *err)
{
    const attend_data *data = fit->data;
    bool curve = fit->grows, answers = !curve && fit->predicts;
    const attend_rows *rows = curve ? NULL : answers ? &data->queries : &data->tokens;
    int64_t count = curve ? fit->lengths : rows->count;
    CLI_FREED int64_t *order = malloc((size_t)(count + 1) * sizeof *order);
    if (!order)
        return cli_status_memory(err, 8.0 * (double)count, "the order of the rows");
    for (int64_t i = 0; i < count; i++)
        order[rows ? rows->row[i] : i] = i;
    return cli_write_rows(path,
                          curve     ? tell_length
                          : answers ? tell_answer
                                    : tell_left_out,
                          &(listing){fit, order}, count, err);
}

/* Rows as they stand in `rows`: numbers of the file's rows come along as an array. */
static fin_status write_npz(const char *path, const attend_fit *fit, fin_error *err)
{
    const attend_data *data = fit->data;
    int64_t n = data->tokens.count, m = data->queries.count, dv = data->dv, lengths = fit->lengths;
    char settings[2048];
    size_t used = 0;
    cli_npz z;
    if (cli_npz_open(&z, path, err))
        return err->status;
    for (int i = 0; i < fin_cross_table.count; i++) {
        char number[64];
        const fin_field *field = &fin_cross_table.fields[i];
        used += (size_t)snprintf(settings + used, sizeof settings - used, "%s %s\n", field->name,
                                 fin_settings_text(field, &fit->settings, number, sizeof number));
    }
    cli_npz_add(&z, "settings", FIN_U8, 1, (int64_t[]){(int64_t)used}, settings);
    if (fit->scales)
        cli_npz_add(&z, "scales", FIN_F64, 1, &data->dk, fit->scales);
    if (fit->predicts) {
        cli_npz_add(&z, "row", FIN_I64, 1, &m, data->queries.row);
        cli_npz_add(&z, "query", FIN_F64, 2, (int64_t[]){m, data->dk}, data->query);
        cli_npz_add(&z, "mean", FIN_F64, 2, (int64_t[]){m, dv}, fit->mean);
        cli_npz_add(&z, "variance", FIN_F64, 2, (int64_t[]){m, dv}, fit->variance);
    }
    if (fit->predicts && fit->top) {
        cli_npz_add(&z, "top", FIN_I64, 2, (int64_t[]){m, fit->top}, fit->top_token);
        cli_npz_add(&z, "weight", FIN_F64, 2, (int64_t[]){m, fit->top}, fit->top_weight);
    }
    if (fit->leaves_out) {
        cli_npz_add(&z, "loo_row", FIN_I64, 1, &n, data->tokens.row);
        cli_npz_add(&z, "loo_value", FIN_F64, 2, (int64_t[]){n, dv}, data->values);
        cli_npz_add(&z, "loo_mean", FIN_F64, 2, (int64_t[]){n, dv}, fit->loo_mean);
        cli_npz_add(&z, "loo_variance", FIN_F64, 2, (int64_t[]){n, dv}, fit->loo_variance);
    }
    if (fit->grows) {
        cli_npz_add(&z, "prefix_count", FIN_I64, 1, &lengths, fit->curve_count);
        cli_npz_add(&z, "prefix_error", FIN_F64, 1, &lengths, fit->curve_error);
        cli_npz_add(&z, "prefix_score", FIN_F64, 1, &lengths, fit->curve_score);
    }
    return cli_npz_close(&z);
}

fin_status attend_write(const char *path, const attend_fit *fit, fin_error *err)
{
    return cli_ends_with(path, ".npz") ? write_npz(path, fit, err) : write_csv(path, fit, err);
}
