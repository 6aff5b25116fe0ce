/* What came out of a training, as one record. Every number comes from the library's result. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUANTITIES = 6, LEVELS = 5, STATUSES = FIN_RUN_DIVERGED + 1 };
/* The rows and columns of the output `quantiles`. */
static const char *const names[QUANTITIES] = {"abs_kappa", "abs_nu",   "risk",
                                              "excess",    "distance", "lam"};
static const double levels[LEVELS] = {0.05, 0.25, 0.5, 0.75, 0.95};

static fin_scalar scalar(const fin_result *r, const char *name)
{
    fin_scalar s = {.value = NAN};
    for (int i = 0; i < fin_result_scalar_count(r); i++)
        if (strcmp((s = fin_result_get_scalar(r, i)).name, name) == 0)
            return s;
    return (fin_scalar){.value = NAN};
}

static const void *series(const fin_result *r, const char *name)
{
    for (int i = 0; i < fin_result_series_count(r); i++)
        if (strcmp(fin_result_get_series(r, i).name, name) == 0)
            return fin_result_get_series(r, i).data;
    return NULL;
}

/* Not met, or not known. */
static json_t *number_or_null(double number)
{
    return isnan(number) ? json_null() : cli_json_number(number);
}

static void set_schedule(json_t *object, const char *name, const fin_schedule *schedule)
{
    if (!schedule->count)
        return;
    json_t *list = json_array();
    for (int64_t i = 0; i < schedule->count; i++)
        json_array_append_new(list, json_pack("[I, o]", (json_int_t)schedule->step[i],
                                              cli_json_number(schedule->value[i])));
    json_object_set_new(object, name, list);
}

static json_t *json_settings(const fin_training *t)
{
    fin_training_parts of = fin_training_get(t);
    const fin_task_kind *kind = fin_task_get_kind(of.task);
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:{s:o, s:o}, s:s, s:o, s:o}", "task", fin_task_kind_name(kind),
                  "form", fin_form_name(of.form), "task_settings",
                  cli_json_settings(fin_task_kind_table(kind), fin_task_get_settings(of.task)),
                  "length", "mean", cli_json_number(fin_task_length_mean(of.task)), "variance",
                  cli_json_number(fin_task_length_variance(of.task)), "lengths", of.lengths,
                  "form_settings", cli_json_settings(fin_form_table(of.form), of.form_settings),
                  "train_settings", cli_json_settings(&fin_train_table, of.settings));
    if (of.overlaps)
        json_object_set_new(root, "overlaps", cli_json_settings(&fin_overlaps_table, of.overlaps));
    set_schedule(root, "lam_schedule", &of.lam);
    set_schedule(root, "alpha_schedule", &of.alpha);
    return root;
}

/* How many ended where, and with which risk. */
static json_t *json_ended(const fin_result *r, int64_t runs)
{
    static const char *const rows[][4] = {
        {"oracle", "oracle_low", "oracle_high", "oracle_risk"},
        {"swapped", "swapped_low", "swapped_high", "swapped_risk"},
        {"other", "other_low", "other_high", "other_risk"}};
    const int64_t *place = series(r, "end_place");
    static const int codes[] = {1, 2, 0}; /* of the output end_place */
    json_t *list = json_array();
    for (int i = 0; i < 3; i++) {
        int64_t count = 0;
        for (int64_t k = 0; k < runs; k++)
            count += place[k] == codes[i];
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:o, s:[o, o], s:o}", "where", rows[i][0], "runs",
                            cli_int(count), "share", cli_json_number(scalar(r, rows[i][0]).value),
                            "interval", cli_json_number(scalar(r, rows[i][1]).value),
                            cli_json_number(scalar(r, rows[i][2]).value), "risk",
                            number_or_null(scalar(r, rows[i][3]).value)));
    }
    return list;
}

static json_t *json_summary(const fin_training *t, const fin_result *r)
{
    json_t *status = json_object(), *quantiles = json_object(), *at = json_array();
    const double *table = series(r, "quantiles");
    const int64_t *end = series(r, "end_status");
    fin_scalar risk = scalar(r, "risk_error"), how = risk;
    int64_t count[STATUSES] = {0}, runs = fin_training_get(t).settings->runs;
    char text[128];
    for (int64_t i = 0; i < runs; i++)
        count[end[i]]++;
    for (int i = 0; i < STATUSES; i++)
        json_object_set_new(status, fin_run_status_name((fin_run_status)i),
                            json_integer(cli_int(count[i])));
    for (int q = 0; q < LEVELS; q++)
        json_array_append_new(at, json_real(levels[q]));
    for (int i = 0; i < QUANTITIES; i++) {
        json_t *list = json_array();
        for (int q = 0; q < LEVELS; q++)
            json_array_append_new(list, number_or_null(table[i * LEVELS + q]));
        json_object_set_new(quantiles, names[i], list);
    }
    how.error = how.value;
    json_t *summary = json_pack(
        "{s:I, s:o, s:o, s:[o, o], s:o, s:o, s:{s:s, s:I, s:o, s:s}, s:o, s:b}", "runs",
        cli_int(runs), "status", status, "converged", cli_json_number(scalar(r, "share").value),
        "converged_interval", cli_json_number(scalar(r, "share_low").value),
        cli_json_number(scalar(r, "share_high").value), "levels", at, "quantiles", quantiles,
        "risk", "method", fin_how_name(risk.how), "samples", cli_int(risk.samples), "largest_error",
        cli_json_number(risk.value), "how", cli_scalar_how(&how, text, sizeof text),
        "largest_distance", number_or_null(scalar(r, "farthest").value), "same_steps",
        scalar(r, "least_steps").value == scalar(r, "most_steps").value);
    bool diverged = count[FIN_RUN_DIVERGED] > 0;
    const char *note;
    json_t *notes = json_array();
    for (int i = 0; (note = fin_result_note(r, i)); i++)
        json_array_append_new(notes, json_string(note));
    json_object_set_new(summary, "ended", json_ended(r, runs));
    json_object_set_new(summary, "oracle_risk", number_or_null(scalar(r, "level").value));
    json_object_set_new(summary, "reached",
                        json_integer(cli_int(llround(scalar(r, "reached").value * (double)runs))));
    json_object_set_new(summary, "notes", notes);
    cli_put(summary, "least_steps", scalar(r, "least_steps").value, "most_steps",
            scalar(r, "most_steps").value, "first_diverged",
            diverged ? scalar(r, "first_diverged").value : NAN, "first_diverged_step",
            diverged ? scalar(r, "first_diverged_step").value : NAN, NULL);
    return summary;
}

/* The runs that end at one kind of point, taken together; NULL: there are none. */
static json_t *json_kind(const fin_training *t, const fin_curvature *curvature, const char *kind)
{
    fin_training_parts of = fin_training_get(t);
    int64_t count = 0, least = 0, most = 0, flat = 0, d = fin_task_get_settings(of.task)->d;
    double lowest = INFINITY, highest = -INFINITY, steepest = 0;
    for (int64_t r = 0; r < of.settings->runs; r++) {
        const fin_curvature *c = &curvature[r];
        if (c->span_count == 0 || strcmp(fin_curvature_name(c, d), kind) != 0)
            continue;
        least = count && least < c->negative ? least : c->negative;
        most = most > c->negative ? most : c->negative;
        flat = flat > c->flat ? flat : c->flat;
        steepest = fmax(steepest, c->gradient);
        lowest = fmin(lowest, c->rest_count ? fmin(c->span[0], c->rest[0]) : c->span[0]);
        highest = fmax(highest, c->rest_count ? fmax(c->span[c->span_count - 1], c->rest[1])
                                              : c->span[c->span_count - 1]);
        count++;
    }
    return !count ? NULL
                  : json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "kind", kind, "runs",
                              cli_int(count), "negative", cli_int(least), "more_negative",
                              cli_int(most > least ? most : 0), "flat", cli_int(flat), "smallest",
                              cli_json_number(lowest), "largest", cli_json_number(highest),
                              "gradient", cli_json_number(steepest));
}

static json_t *json_kinds(const fin_training *t, const fin_curvature *curvature)
{
    static const char *const kinds[] = {"minimum", "degenerate", "saddle", "maximum"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        json_t *one = json_kind(t, curvature, kinds[i]);
        if (one)
            json_array_append_new(list, one);
    }
    return list;
}

static json_t *json_curvature(const fin_curvature *c, int64_t d)
{
    json_t *span = json_array(), *rest = json_array();
    for (int i = 0; i < c->span_count; i++)
        json_array_append_new(span, cli_json_number(c->span[i]));
    for (int i = 0; i < 2 && c->rest_count; i++)
        json_array_append_new(rest, cli_json_number(c->rest[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "kind", fin_curvature_name(c, d),
                     "gradient", cli_json_number(c->gradient), "span", span, "rest", rest,
                     "rest_count", (json_int_t)c->rest_count, "negative", (json_int_t)c->negative,
                     "flat", (json_int_t)c->flat, "tolerance", cli_json_number(c->tolerance));
}

static json_t *json_run(const fin_run *run)
{
    json_t *end = json_object();
#define SET(name, meaning) json_object_set_new(end, #name, number_or_null(run->now.name));
    FIN_LOG_LIST(SET)
#undef SET
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "final", end, "status",
                     fin_run_status_name(run->status), "step", (json_int_t)run->step,
                     "converged_at", number_or_null(run->converged_at), "stuck_at",
                     number_or_null(run->stuck_at), "left_at", number_or_null(run->left_at));
}

json_t *train_record(const fin_training *t, const fin_result *r, const fin_curvature *curvature,
                     bool every)
{
    fin_training_parts of = fin_training_get(t);
    json_t *runs = json_array();
    for (int64_t i = 0; i < of.settings->runs && every; i++) {
        fin_run run;
        if (fin_train_get_run(of.runs, i, &run, NULL))
            continue; /* the result has been made from them */
        json_t *object = json_run(&run);
        if (curvature && curvature[i].span_count)
            json_object_set_new(object, "curvature",
                                json_curvature(&curvature[i], fin_task_get_settings(of.task)->d));
        json_array_append_new(runs, object);
    }
    json_t *summary = json_summary(t, r);
    if (curvature)
        json_object_set_new(summary, "curvature", json_kinds(t, curvature));
    return json_pack("{s:o, s:o, s:o}", "settings", json_settings(t), "runs", runs, "summary",
                     summary);
}

#define SCHEDULE(name, title)                                                                      \
    "[{?settings." name "}" title " schedule   {*settings." name "|[{!first},]{0}:{1}}\n]"
#define QUANTILES(name, title)                                                                     \
    title " {summary.quantiles." name ".0:-12.6g} {summary.quantiles." name                        \
          ".1:-12.6g} {summary.quantiles." name ".2:-12.6g} {summary.quantiles." name              \
          ".3:-12.6g} {summary.quantiles." name ".4:.6g}\n"

const char train_form[] =
    "task  {settings.task:-10s} {settings.task_settings=}\n"
    "[{?settings.lengths}                 lengths {settings.lengths}: mean "
    "{settings.length.mean:g}, variance {settings.length.variance:g}\n]"
    "form  {settings.form:-10s} {settings.form_settings=}\n"
    "train            {settings.train_settings=}\n[start overlaps   "
    "{settings.overlaps=}\n]" SCHEDULE("lam_schedule", "lam  ") SCHEDULE(
        "alpha_schedule",
        "alpha") "\nruns             {summary.runs}, "
                 "[{?summary.same_steps}{summary.most_steps:.0f} steps each"
                 "|{summary.least_steps:.0f} to {summary.most_steps:.0f} steps]\n"
                 "risk             {summary.risk.how}\n"
                 "places           oracle: k = k*, v = v*; swapped: k = v*, v = k*; "
                 "M: theta = eta = rho = 0\n"
                 "\nended at         runs     share    95 % interval      median risk\n"
                 "{*summary.ended|{where:-16s} {runs:-8d} {share:-8.3g} "
                 "<-18:{interval.0:.3g} to {interval.1:.3g}> {risk:.6g}\n}"
                 "[{?summary.status.diverged}diverged         {summary.status.diverged} (first run "
                 "{summary.first_diverged:.0f}: the step behind {summary.first_diverged_step:.0f} "
                 "was not finite)\n]"
                 "oracle's risk    {summary.oracle_risk:.6g}, reached within 5 % by "
                 "{summary.reached} of {summary.runs}\n"
                 "\nquantiles        5 %          25 %         50 %         75 %         95 "
                 "%\n" QUANTILES("abs_kappa", "|kappa|         ") QUANTILES("abs_nu",
                                                                            "|nu|            ")
                     QUANTILES("risk", "risk            ") QUANTILES("excess", "risk - eps^2    ")

                         QUANTILES("distance", "distance to M   ") QUANTILES(
                             "lam",
                             "lam             ") "[{?summary.curvature}\nHessian at end   runs     "
                                                 "negative directions  flat   smallest     largest"
                                                 "      largest gradient\n{*summary.curvature|  "
                                                 "{kind:-14s} {runs:-8d} "
                                                 "<-20:{negative}[{?more_negative} to "
                                                 "{more_negative}]> {flat:-6d} {smallest:-12.6g} "
                                                 "{largest:-12.6g} {gradient:.2g}\n}]"
                                                 "[{?tty}\ntime             {seconds:.3g} s, "
                                                 "{steps_a_second:.3g} steps a second\n]";
