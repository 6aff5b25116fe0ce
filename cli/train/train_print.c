/* What came out of a training, as text and as JSON. Every number comes from the library's result. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUANTITIES = 6, LEVELS = 5, STATUSES = FIN_RUN_DIVERGED + 1 };
/* The rows and columns of the output `quantiles`. */
static const char *const names[QUANTITIES] = {"abs_kappa", "abs_nu",   "risk",
                                              "excess",    "distance", "lam"};
static const char *const titles[QUANTITIES] = {"|kappa|",     "|nu|",          "risk",
                                               "excess risk", "distance to M", "lam"};
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

static void count_statuses(const fin_training *t, const fin_result *r, int64_t count[STATUSES])
{
    const int64_t *status = series(r, "end_status");
    memset(count, 0, STATUSES * sizeof *count);
    for (int64_t i = 0; i < fin_training_get(t).settings->runs; i++)
        count[status[i]]++;
}

/* ---- as text -------------------------------------------------------------------------------- */

static void print_head(const fin_training *t)
{
    fin_training_parts of = fin_training_get(t);
    cli_print_model(of.task, of.lengths, of.form, of.form_settings);
    printf("train %-10s ", "");
    cli_print_settings(&fin_train_table, of.settings);
    if (of.overlaps) {
        printf("start %-10s ", "overlaps");
        cli_print_settings(&fin_overlaps_table, of.overlaps);
    }
    if (of.lam.count)
        printf("lam   %-10s %s\n", "schedule", of.lam_schedule);
    if (of.alpha.count)
        printf("alpha %-10s %s\n", "schedule", of.alpha_schedule);
    putchar('\n');
}

static void print_steps(const fin_result *r, int64_t runs)
{
    double least = scalar(r, "least_steps").value, most = scalar(r, "most_steps").value;
    fin_scalar risk = scalar(r, "risk_error");
    char how[128];
    printf("%-16s %lld, ", "runs", (long long)runs);
    if (least == most)
        printf("%.0f steps each\n", most);
    else
        printf("%.0f to %.0f steps\n", least, most);
    risk.error = risk.value;
    printf("%-16s %s\n", "risk", cli_scalar_how(&risk, how, sizeof how));
}

static void print_statuses(const fin_training *t, const fin_result *r)
{
    int64_t count[STATUSES], runs = fin_training_get(t).settings->runs;
    count_statuses(t, r, count);
    for (int i = 0; i < STATUSES; i++) {
        printf("%-16s %lld", fin_run_status_name((fin_run_status)i), (long long)count[i]);
        if (i == FIN_RUN_CONVERGED)
            printf(" of %lld: %.3g, 95 %% interval %.3g to %.3g", (long long)runs,
                   scalar(r, "share").value, scalar(r, "share_low").value,
                   scalar(r, "share_high").value);
        if (i == FIN_RUN_DIVERGED && count[i])
            printf(" (first run %.0f: the step behind %.0f was not finite)",
                   scalar(r, "first_diverged").value, scalar(r, "first_diverged_step").value);
        putchar('\n');
    }
}

static void print_quantiles(const double *quantiles)
{
    printf("\n%-16s", "quantiles");
    for (int q = 0; q < LEVELS; q++) {
        char percent[16];
        snprintf(percent, sizeof percent, "%g %%", 100 * levels[q]);
        printf(" %*s", q + 1 < LEVELS ? -12 : 0, percent);
    }
    putchar('\n');
    for (int i = 0; i < QUANTITIES; i++) {
        printf("%-16s", titles[i]);
        for (int q = 0; q < LEVELS; q++)
            printf(" %*.6g", q + 1 < LEVELS ? -12 : 0, quantiles[i * LEVELS + q]);
        putchar('\n');
    }
}

/* One line per kind of point. */
static void print_kind(int64_t runs, int64_t d, const fin_curvature *curvature, const char *kind)
{
    int64_t count = 0, least = 0, most = 0, flat = 0;
    double lowest = INFINITY, highest = -INFINITY, steepest = 0;
    for (int64_t r = 0; r < runs; r++) {
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

void train_print(const fin_training *t, const fin_result *r, const fin_curvature *curvature)
{
    static const char *const kinds[] = {"minimum", "degenerate", "saddle", "maximum"};
    fin_training_parts of = fin_training_get(t);
    print_head(t);
    print_steps(r, of.settings->runs);
    print_statuses(t, r);
    print_quantiles(series(r, "quantiles"));
    if (!curvature)
        return;
    printf("\n%-16s %-8s %-20s %-6s %-12s %-12s %s\n", "Hessian at end", "runs",
           "negative directions", "flat", "smallest", "largest", "largest gradient");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        print_kind(of.settings->runs, fin_task_get_settings(of.task)->d, curvature, kinds[i]);
}

/* ---- as JSON -------------------------------------------------------------------------------- */

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
        json_pack("{s:s, s:s, s:o, s:{s:o, s:o}, s:o, s:o}", "task", fin_task_kind_name(kind),
                  "form", fin_form_name(of.form), "task_settings",
                  cli_json_settings(fin_task_kind_table(kind), fin_task_get_settings(of.task)),
                  "length", "mean", cli_json_number(fin_task_length_mean(of.task)), "variance",
                  cli_json_number(fin_task_length_variance(of.task)), "form_settings",
                  cli_json_settings(fin_form_table(of.form), of.form_settings), "train_settings",
                  cli_json_settings(&fin_train_table, of.settings));
    if (of.overlaps)
        json_object_set_new(root, "overlaps", cli_json_settings(&fin_overlaps_table, of.overlaps));
    set_schedule(root, "lam_schedule", &of.lam);
    set_schedule(root, "alpha_schedule", &of.alpha);
    return root;
}

static json_t *json_summary(const fin_training *t, const fin_result *r)
{
    json_t *status = json_object(), *quantiles = json_object(), *at = json_array();
    const double *table = series(r, "quantiles");
    fin_scalar risk = scalar(r, "risk_error");
    int64_t count[STATUSES];
    count_statuses(t, r, count);
    for (int i = 0; i < STATUSES; i++)
        json_object_set_new(status, fin_run_status_name((fin_run_status)i),
                            json_integer((json_int_t)count[i]));
    for (int q = 0; q < LEVELS; q++)
        json_array_append_new(at, json_real(levels[q]));
    for (int i = 0; i < QUANTITIES; i++) {
        json_t *list = json_array();
        for (int q = 0; q < LEVELS; q++)
            json_array_append_new(list, number_or_null(table[i * LEVELS + q]));
        json_object_set_new(quantiles, names[i], list);
    }
    return json_pack("{s:I, s:o, s:o, s:[o, o], s:o, s:o, s:{s:s, s:I, s:o}, s:o}", "runs",
                     (json_int_t)fin_training_get(t).settings->runs, "status", status, "converged",
                     cli_json_number(scalar(r, "share").value), "converged_interval",
                     cli_json_number(scalar(r, "share_low").value),
                     cli_json_number(scalar(r, "share_high").value), "levels", at, "quantiles",
                     quantiles, "risk", "method", fin_how_name(risk.how), "samples",
                     (json_int_t)risk.samples, "largest_error", cli_json_number(risk.value),
                     "largest_distance", number_or_null(scalar(r, "farthest").value));
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

json_t *train_json(const fin_training *t, const fin_result *r, const fin_curvature *curvature)
{
    fin_training_parts of = fin_training_get(t);
    json_t *runs = json_array();
    for (int64_t i = 0; i < of.settings->runs; i++) {
        fin_run run;
        if (fin_train_get_run(of.runs, i, &run, NULL))
            continue; /* the result has been made from them */
        json_t *object = json_run(&run);
        if (curvature && curvature[i].span_count)
            json_object_set_new(object, "curvature",
                                json_curvature(&curvature[i], fin_task_get_settings(of.task)->d));
        json_array_append_new(runs, object);
    }
    return json_pack("{s:o, s:o, s:o}", "settings", json_settings(t), "runs", runs, "summary",
                     json_summary(t, r));
}
