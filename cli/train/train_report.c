/* What came out of a training, as text and as JSON. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double train_quantiles[TRAIN_QUANTILES] = {0.05, 0.25, 0.5, 0.75, 0.95};

#define NAME(name, title, value) #name,
static const char *const quantity_names[] = {TRAIN_QUANTITY_LIST(NAME)};
#undef NAME
#define TITLE(name, title, value) title,
static const char *const quantity_titles[] = {TRAIN_QUANTITY_LIST(TITLE)};
#undef TITLE

/* ---- summing up ----------------------------------------------------------------------------- */

static double quantity(const fin_train_point *p, int i)
{
#define VALUE(name, title, value) value,
    const double values[] = {TRAIN_QUANTITY_LIST(VALUE)};
#undef VALUE
    return values[i];
}

static void count_run(train_summary *s, int64_t r, const fin_run *run)
{
    s->count[run->status]++;
    if (run->status == FIN_RUN_DIVERGED) {
        if (s->count[FIN_RUN_DIVERGED] == 1 || run->step < s->first_step) {
            s->first_diverged = r;
            s->first_step = run->step;
        }
        return;
    }
    if (s->runs == s->count[FIN_RUN_DIVERGED]) /* the first that did not diverge */
        s->least_step = s->most_step = run->step;
    s->least_step = run->step < s->least_step ? run->step : s->least_step;
    s->most_step = run->step > s->most_step ? run->step : s->most_step;
    if (run->now.risk_error > s->risk.error)
        s->risk.error = run->now.risk_error;
}

/* values: (TRAIN_QUANTITIES, runs) */
static fin_status collect(const training *t, train_summary *s, double *values, fin_error *err)
{
    int64_t runs = fin_train_get_settings(t->train)->runs, kept = 0;
    for (int64_t r = 0; r < runs; r++) {
        fin_run run;
        fin_status status = fin_train_get_run(t->train, r, &run, err);
        if (status)
            return status;
        count_run(s, r, &run);
        s->runs++;
        for (int i = 0; run.status != FIN_RUN_DIVERGED && i < TRAIN_QUANTITIES; i++)
            values[i * runs + kept] = quantity(&run.now, i);
        kept += run.status != FIN_RUN_DIVERGED;
    }
    for (int i = 0; i < TRAIN_QUANTITIES; i++) {
        stats_sort(values + i * runs, kept);
        for (int q = 0; q < TRAIN_QUANTILES; q++)
            s->quantile[i][q] = stats_quantile(values + i * runs, kept, train_quantiles[q]);
    }
    s->converged = stats_wilson(s->count[FIN_RUN_CONVERGED], runs);
    return FIN_OK;
}

/* The method does not depend on the point, so one cheap call tells it. */
static fin_status find_method(const training *t, train_summary *s, fin_error *err)
{
    fin_risk_settings how;
    fin_risk_report report;
    fin_settings_defaults(&fin_risk_table, &how);
    how.samples = 2;
    fin_status status = fin_risk(t->task, cli_form(t->args), &train_get(t->args)->form_settings,
                                 NULL, &how, NULL, &report, err);
    if (status)
        return status;
    s->risk.method = report.risk.method;
    if (s->risk.method == FIN_METHOD_SIMULATION)
        s->risk.samples = fin_train_get_settings(t->train)->risk_samples;
    return FIN_OK;
}

static double farthest(const training *t)
{
    fin_train_array a = training_array(t, "distance");
    const double *distance = a.data;
    double largest = 0;
    for (int64_t i = 0; i < a.shape[0] * a.shape[1]; i++)
        largest = distance[i] > largest ? distance[i] : largest; /* never, for NaN */
    return largest;
}

fin_status train_summarise(const training *t, train_summary *summary, fin_error *err)
{
    memset(summary, 0, sizeof *summary);
    size_t room = (size_t)fin_train_get_settings(t->train)->runs * TRAIN_QUANTITIES;
    double *values = malloc(room * sizeof *values);
    if (!values)
        return cli_status_memory(err, 8.0 * (double)room, "the summary");
    fin_status status = collect(t, summary, values, err);
    if (!status)
        status = find_method(t, summary, err);
    summary->farthest = farthest(t);
    free(values);
    return status;
}

static fin_status curvature_of(const training *t, int64_t r, fin_curvature *out, fin_error *err)
{
    fin_run run;
    fin_status status = fin_train_get_run(t->train, r, &run, err);
    if (status || run.status == FIN_RUN_DIVERGED)
        return status;
    fin_form_settings form = train_get(t->args)->form_settings;
    form.lam = run.now.lam;
    fin_overlaps at = {run.now.kappa, run.now.nu, run.now.theta, run.now.eta, run.now.rho};
    return fin_risk_curvature(t->task, cli_form(t->args), &form, &at, out, err);
}

fin_status train_curvature(const training *t, fin_curvature **curvature, fin_error *err)
{
    int64_t runs = fin_train_get_settings(t->train)->runs;
    *curvature = calloc((size_t)runs, sizeof **curvature);
    if (!*curvature)
        return cli_status_memory(err, (double)runs * sizeof **curvature, "the curvatures");
    const fin_progress *progress = cli_progress();
    for (int64_t r = 0; r < runs; r++) {
        fin_status status = curvature_of(t, r, &(*curvature)[r], err);
        if (!status && progress->report(progress->user, "curvature", (double)r, (double)runs))
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            return status;
    }
    return FIN_OK;
}

/* ---- as text -------------------------------------------------------------------------------- */

void train_print_head(const training *t)
{
    const cli_args *args = t->args;
    cli_print_model(args, t->task);
    printf("train %-10s ", "");
    cli_print_settings(&fin_train_table, fin_train_get_settings(t->train));
    if (train_get(t->args)->train.init == FIN_INIT_OVERLAPS) {
        printf("start %-10s ", "overlaps");
        cli_print_settings(&fin_overlaps_table, &train_get(t->args)->overlaps);
    }
    if (cli_get(args, "lam_schedule"))
        printf("lam   %-10s %s\n", "schedule", cli_get(args, "lam_schedule"));
    if (cli_get(args, "alpha_schedule"))
        printf("alpha %-10s %s\n", "schedule", cli_get(args, "alpha_schedule"));
    putchar('\n');
}

static void print_steps(const train_summary *s)
{
    char how[128];
    printf("%-16s %lld, ", "runs", (long long)s->runs);
    if (s->least_step == s->most_step)
        printf("%lld steps each\n", (long long)s->most_step);
    else
        printf("%lld to %lld steps\n", (long long)s->least_step, (long long)s->most_step);
    printf("%-16s %s\n", "risk", cli_how(&s->risk, how, sizeof how));
}

void train_print_summary(const train_summary *s)
{
    print_steps(s);
    for (int i = 0; i < TRAIN_STATUSES; i++) {
        printf("%-16s %lld", fin_run_status_name((fin_run_status)i), (long long)s->count[i]);
        if (i == FIN_RUN_CONVERGED)
            printf(" of %lld: %.3g, 95 %% interval %.3g to %.3g", (long long)s->runs,
                   (double)s->count[i] / (double)s->runs, s->converged.low, s->converged.high);
        if (i == FIN_RUN_DIVERGED && s->count[i])
            printf(" (first run %lld: the step behind %lld was not finite)",
                   (long long)s->first_diverged, (long long)s->first_step);
        putchar('\n');
    }
    printf("\n%-16s", "quantiles");
    for (int q = 0; q < TRAIN_QUANTILES; q++) {
        char percent[16];
        snprintf(percent, sizeof percent, "%g %%", 100 * train_quantiles[q]);
        printf(" %*s", q + 1 < TRAIN_QUANTILES ? -12 : 0, percent);
    }
    putchar('\n');
    for (int i = 0; i < TRAIN_QUANTITIES; i++) {
        printf("%-16s", quantity_titles[i]);
        for (int q = 0; q < TRAIN_QUANTILES; q++)
            printf(" %*.6g", q + 1 < TRAIN_QUANTILES ? -12 : 0, s->quantile[i][q]);
        putchar('\n');
    }
}

/* One line per kind of point. */
static void print_kind(const training *t, const fin_curvature *curvature, const char *kind)
{
    int64_t count = 0, least = 0, most = 0, d = fin_task_get_settings(t->task)->d;
    double lowest = INFINITY, highest = -INFINITY, steepest = 0;
    int64_t flat = 0;
    for (int64_t r = 0; r < fin_train_get_settings(t->train)->runs; r++) {
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
    char negative[64];
    snprintf(negative, sizeof negative, least == most ? "%lld" : "%lld to %lld", (long long)least,
             (long long)most);
    if (count)
        printf("  %-14s %-8lld %-20s %-6lld %-12.6g %-12.6g %.2g\n", kind, (long long)count,
               negative, (long long)flat, lowest, highest, steepest);
}

void train_print_curvature(const training *t, const fin_curvature *curvature)
{
    static const char *const kinds[] = {"minimum", "degenerate", "saddle", "maximum"};
    printf("\n%-16s %-8s %-20s %-6s %-12s %-12s %s\n", "Hessian at end", "runs",
           "negative directions", "flat", "smallest", "largest", "largest gradient");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        print_kind(t, curvature, kinds[i]);
}

/* ---- as JSON -------------------------------------------------------------------------------- */

/* Not met, or not known. */
static json_t *number_or_null(double number)
{
    return isnan(number) ? json_null() : cli_json_number(number);
}

static void set_schedule(json_t *object, const char *name, const fin_schedule *schedule)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < schedule->count; i++)
        json_array_append_new(list, json_pack("[I, o]", (json_int_t)schedule->step[i],
                                              cli_json_number(schedule->value[i])));
    if (schedule->count)
        json_object_set_new(object, name, list);
    else
        json_decref(list);
}

json_t *train_json_settings(const training *t)
{
    const cli_args *args = t->args;
    json_t *root = cli_json_model(args, t->task);
    json_object_set_new(root, "train_settings",
                        cli_json_settings(&fin_train_table, fin_train_get_settings(t->train)));
    if (train_get(t->args)->train.init == FIN_INIT_OVERLAPS)
        json_object_set_new(root, "overlaps",
                            cli_json_settings(&fin_overlaps_table, &train_get(t->args)->overlaps));
    set_schedule(root, "lam_schedule", &(fin_schedule){t->lam.count, t->lam.step, t->lam.value});
    set_schedule(root, "alpha_schedule",
                 &(fin_schedule){t->alpha.count, t->alpha.step, t->alpha.value});
    return root;
}

json_t *train_json_summary(const train_summary *s)
{
    json_t *status = json_object(), *quantiles = json_object(), *at = json_array();
    for (int i = 0; i < TRAIN_STATUSES; i++)
        json_object_set_new(status, fin_run_status_name((fin_run_status)i),
                            json_integer((json_int_t)s->count[i]));
    for (int q = 0; q < TRAIN_QUANTILES; q++)
        json_array_append_new(at, json_real(train_quantiles[q]));
    for (int i = 0; i < TRAIN_QUANTITIES; i++) {
        json_t *list = json_array();
        for (int q = 0; q < TRAIN_QUANTILES; q++)
            json_array_append_new(list, number_or_null(s->quantile[i][q]));
        json_object_set_new(quantiles, quantity_names[i], list);
    }
    return json_pack("{s:I, s:o, s:o, s:[o, o], s:o, s:o, s:{s:s, s:I, s:o}, s:o}", "runs",
                     (json_int_t)s->runs, "status", status, "converged",
                     cli_json_number((double)s->count[FIN_RUN_CONVERGED] / (double)s->runs),
                     "converged_interval", cli_json_number(s->converged.low),
                     cli_json_number(s->converged.high), "levels", at, "quantiles", quantiles,
                     "risk", "method", fin_method_name(s->risk.method), "samples",
                     (json_int_t)s->risk.samples, "largest_error", cli_json_number(s->risk.error),
                     "largest_distance", cli_json_number(s->farthest));
}

static json_t *json_point(const fin_train_point *point)
{
    json_t *object = json_object();
#define SET(name, meaning) json_object_set_new(object, #name, number_or_null(point->name));
    FIN_LOG_LIST(SET)
#undef SET
    return object;
}

json_t *train_json_curvature(const fin_curvature *c, int64_t d)
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

json_t *train_json_runs(const training *t, const fin_curvature *curvature)
{
    json_t *list = json_array();
    int64_t d = fin_task_get_settings(t->task)->d;
    for (int64_t r = 0; r < fin_train_get_settings(t->train)->runs; r++) {
        fin_run run;
        fin_error err;
        if (fin_train_get_run(t->train, r, &run, &err)) {
            json_decref(list);
            return NULL;
        }
        json_t *object =
            json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "final", json_point(&run.now), "status",
                      fin_run_status_name(run.status), "step", (json_int_t)run.step, "converged_at",
                      number_or_null(run.converged_at), "stuck_at", number_or_null(run.stuck_at),
                      "left_at", number_or_null(run.left_at));
        if (curvature && curvature[r].span_count)
            json_object_set_new(object, "curvature", train_json_curvature(&curvature[r], d));
        json_array_append_new(list, object);
    }
    return list;
}
