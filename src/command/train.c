/* train: many runs of one training, summed up.
 *
 * The scalars say where the runs ended, with an error that comes from the runs alone: a share has
 * its binomial one, a quantile that of its order statistics. The series show the way there. */
#include "command/training.h"
#include "theory/theory.h"

#include <math.h>
#include <string.h>

static const fin_word words[] = {
    FINI_MODEL_WORDS(fini_train_values, model),
    FINI_LIST(
        "lam_schedule", fini_train_values, lam_schedule, "",
        "lam from a step on, such as 0:1,1000:0.5, instead of lam; divided by 1 + decay t too",
        FIN_WORD_PAIRS),
    FINI_LIST("alpha_schedule", fini_train_values, alpha_schedule, "",
              "alpha from a step on, such as 0:0.1,1000:0.01, instead of alpha", FIN_WORD_PAIRS),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"oracle", "share of runs that ended at k*, v*: by |kappa| and |nu|, or by the risk", NULL},
    {"oracle_low", "lower end of the 95 % interval of that share (Wilson)", NULL},
    {"oracle_high", "upper end of it", NULL},
    {"oracle_risk", "median of their risk", NULL},
    {"swapped", "share of runs that ended with k = +-v*, and v rather k* than v*", NULL},
    {"swapped_low", "lower end of its interval", NULL},
    {"swapped_high", "upper end of it", NULL},
    {"swapped_risk", "median of their risk", NULL},
    {"other", "share of runs that ended elsewhere, but finite", NULL},
    {"other_low", "lower end of its interval", NULL},
    {"other_high", "upper end of it", NULL},
    {"other_risk", "median of their risk", NULL},
    {"reached", "share of runs, wherever, whose risk is at most 5 % above the oracle's", NULL},
    {"reached_low", "lower end of its interval", NULL},
    {"reached_high", "upper end of it", NULL},
    {"level", "the oracle's risk at the lam of the end (of the last run, if lam is trained)", NULL},
    {"share",
     "share of runs that found both directions: |k.k*| and |v.v*| end above 0.9 (the setting "
     "`converged`)",
     NULL},
    {"share_low", "lower end of the 95 % interval of that share (Wilson)", NULL},
    {"share_high", "upper end of it", NULL},
    {"unconverged", "share of runs that did not, and are not stuck", NULL},
    {"stuck", "share of runs at rest (gradient below `stuck`) that have not; often the better ones",
     NULL},
    {"diverged", "share of runs that diverged; the numbers below are of the others", NULL},
    {"median_abs_kappa", "median of |kappa| at the end", NULL},
    {"median_abs_nu", "median of |nu| at the end", NULL},
    {"median_risk", "median of the risk at the end", NULL},
    {"median_excess", "median of the risk less eps^2 at the end", NULL},
    {"median_distance", "median of the distance to M at the end", NULL},
    {"low_abs_kappa", "5 % quantile of |kappa| at the end", NULL},
    {"high_abs_kappa", "95 % quantile of |kappa| at the end", NULL},
    {"low_abs_nu", "5 % quantile of |nu| at the end", NULL},
    {"high_abs_nu", "95 % quantile of |nu| at the end", NULL},
    {"low_excess", "5 % quantile of the excess risk at the end", NULL},
    {"high_excess", "95 % quantile of the excess risk at the end", NULL},
    {"farthest", "largest distance to M of any of these runs at any logged step", NULL},
    {"risk_error", "largest error of their risks at the end; obtained as these risks are", NULL},
    {"least_steps", "fewest steps that any of them made", "steps"},
    {"most_steps", "most steps that any of them made", "steps"},
    {"first_diverged", "the run that diverged first, if any did, counted from 0", NULL},
    {"first_diverged_step", "steps that it had made: the next one was not finite", "steps"},
    {"step", "(T) logged steps", "steps"},
    {"excess", "(6, T) excess risk: mean, 2.5, 25, 50, 75 and 97.5 % quantiles over runs", NULL},
    {"risk", "(6, T) risk", NULL},
    {"abs_kappa", "(6, T) |kappa|", NULL},
    {"abs_nu", "(6, T) |nu|", NULL},
    {"distance", "(6, T) distance to M", NULL},
    {"lam", "(6, T) lam", NULL},
    {"path_kappa", "(8 or fewer, T) kappa of the first runs; nan where a run has ended", NULL},
    {"path_nu", "(8 or fewer, T) nu of the first runs", NULL},
    {"path_excess", "(8 or fewer, T) excess risk of the first runs", NULL},
    {"path_distance", "(8 or fewer, T) distance to M of the first runs", NULL},
    {"quantiles",
     "(6, 5) 5, 25, 50, 75 and 95 % quantiles over runs at the end: |kappa|, |nu|, risk, excess, "
     "distance, lam",
     NULL},
    {"end_kappa", "(runs) kappa at the end; nan if the run diverged", NULL},
    {"end_nu", "(runs) nu at the end", NULL},
    {"end_theta", "(runs) theta at the end", NULL},
    {"end_eta", "(runs) eta at the end", NULL},
    {"end_rho", "(runs) rho at the end", NULL},
    {"end_lam", "(runs) lam at the end", NULL},
    {"end_risk", "(runs) risk at the end", NULL},
    {"end_risk_error", "(runs) its error; 0: exact", NULL},
    {"end_excess", "(runs) excess risk at the end", NULL},
    {"end_distance", "(runs) distance to M at the end", NULL},
    {"end_gradient", "(runs) norm of the gradient at the end; nan if the risk is simulated", NULL},
    {"end_status", "(runs) 0 not converged, 1 converged, 2 stuck, 3 diverged", NULL},
    {"end_place", "(runs) 0 other, 1 oracle, 2 swapped, 3 diverged", NULL},
    {"end_step", "(runs) steps made", "steps"},
    {"converged_at", "(runs) step first seen converged; nan: not met", "steps"},
    {"stuck_at", "(runs) step first seen stuck", "steps"},
    {"left_at", "(runs) step first seen away from M", "steps"},
    {NULL, NULL, NULL},
};

/* What is drawn along the way, and summed up at the end: of a fin_train_point, |x| if it is absolute. */
typedef struct quantity {
    const char *name, *log; /* as a series here, and as an array of the training */
    bool absolute;
    const char *median, *low, *high;
    size_t offset;
} quantity;
#define AT(name) offsetof(fin_train_point, name)
static const quantity quantities[] = {
    {"abs_kappa", "kappa", 1, "median_abs_kappa", "low_abs_kappa", "high_abs_kappa", AT(kappa)},
    {"abs_nu", "nu", 1, "median_abs_nu", "low_abs_nu", "high_abs_nu", AT(nu)},
    {"risk", "risk", 0, "median_risk", NULL, NULL, AT(risk)},
    {"excess", "excess", 0, "median_excess", "low_excess", "high_excess", AT(excess)},
    {"distance", "distance", 0, "median_distance", NULL, NULL, AT(distance)},
    {"lam", "lam", 0, NULL, NULL, NULL, AT(lam)},
};
#undef AT
enum { QUANTITIES = sizeof quantities / sizeof *quantities, BANDS = 6, PATHS = 8, LEVELS = 5 };
static const double band_quantiles[BANDS - 1] = {0.025, 0.25, 0.5, 0.75, 0.975};
static const double end_quantiles[LEVELS] = {0.05, 0.25, 0.5, 0.75, 0.95};

typedef struct summary {
    const fin_training *training;
    fin_result *result;
    int64_t runs, logs, kept;
    fin_run *ends;  /* (runs) */
    double *column; /* (runs): scratch */
    double *series; /* (BANDS, logs): scratch */
} summary;

static bool is_kept(const summary *s, int64_t run)
{
    return s->ends[run].status != FIN_RUN_DIVERGED;
}

/* ---- at the end ------------------------------------------------------------------------------ */

static void add_shares(summary *s)
{
    static const char *const names[] = {"unconverged", "share", "stuck", "diverged"};
    _Static_assert(FIN_RUN_UNCONVERGED == 0 && FIN_RUN_CONVERGED == 1 && FIN_RUN_STUCK == 2 &&
                       FIN_RUN_DIVERGED == 3,
                   "the names above are in the order of the statuses");
    for (int i = 0; i < 4; i++) {
        int64_t count = 0;
        for (int64_t r = 0; r < s->runs; r++)
            count += (int)s->ends[r].status == i;
        fini_result_share(s->result, names[i], i == FIN_RUN_CONVERGED ? "share" : NULL, count,
                          s->runs);
    }
}

/* How many steps runs made, and which one diverged first. */
static void add_steps(summary *s)
{
    int64_t first = -1;
    double least = NAN, most = NAN;
    for (int64_t r = 0; r < s->runs; r++) {
        double step = (double)s->ends[r].step;
        if (is_kept(s, r)) {
            least = fmin(least, step); /* not NaN, if one of them is not */
            most = fmax(most, step);
        } else if (first < 0 || s->ends[r].step < s->ends[first].step) {
            first = r;
        }
    }
    fini_result_scalar(s->result, "least_steps", least, 0, FIN_HOW_RUNS, s->kept);
    fini_result_scalar(s->result, "most_steps", most, 0, FIN_HOW_RUNS, s->kept);
    if (first < 0)
        return;
    fini_result_scalar(s->result, "first_diverged", (double)first, 0, FIN_HOW_RUNS, s->runs);
    fini_result_scalar(s->result, "first_diverged_step", (double)s->ends[first].step, 0,
                       FIN_HOW_RUNS, s->runs);
}

/* The number of values below a quantile is binomial, so order statistics z standard deviations
 * around it hold the quantile of the law in 95 % of all cases: half of that, over z, is the error.
 * With so few runs that they would lie outside, it is not known: NaN. */
static double quantile_error(const double *sorted, int64_t n, double q)
{
    const double z = 1.959963984540054;
    double middle = q * (double)(n - 1), half = z * sqrt((double)n * q * (1 - q));
    double low = floor(middle - half), high = ceil(middle + half);
    if (!(low >= 0 && high <= (double)(n - 1)))
        return NAN;
    return (sorted[(int64_t)high] - sorted[(int64_t)low]) / (2 * z); /* inf - inf: not known too */
}

static void add_quantile(summary *s, const char *name, int64_t n, double q)
{
    if (name)
        fini_result_scalar(s->result, name, fini_quantile(s->column, n, q),
                           quantile_error(s->column, n, q), FIN_HOW_RUNS, n);
}

static double value_of(const quantity *q, double x)
{
    return q->absolute ? fabs(x) : x;
}

static double number_at(const void *record, size_t offset)
{
    double number;
    memcpy(&number, (const char *)record + offset, sizeof number);
    return number;
}

static void add_quantiles(summary *s)
{
    double table[QUANTITIES][LEVELS];
    for (int i = 0; i < QUANTITIES; i++) {
        const quantity *q = &quantities[i];
        int64_t n = 0;
        for (int64_t r = 0; r < s->runs; r++) {
            double x = number_at(&s->ends[r].now, q->offset);
            if (is_kept(s, r) && !isnan(x))
                s->column[n++] = value_of(q, x);
        }
        fini_sort(s->column, n);
        add_quantile(s, q->median, n, 0.5);
        add_quantile(s, q->low, n, 0.05);
        add_quantile(s, q->high, n, 0.95);
        for (int level = 0; level < LEVELS; level++)
            table[i][level] = fini_quantile(s->column, n, end_quantiles[level]);
    }
    fini_result_series(s->result, "quantiles", FIN_F64, 2, (int64_t[]){QUANTITIES, LEVELS}, table);
}

/* One number of every run, NaN where it diverged if it is none that was met before. */
static void add_ends(summary *s)
{
    static const struct {
        const char *name;
        size_t offset;
        bool always;
    } rows[] = {
#define ROW(name, meaning) {"end_" #name, offsetof(fin_run, now.name), false},
        FIN_LOG_LIST(ROW)
#undef ROW
            {"converged_at", offsetof(fin_run, converged_at), true},
        {"stuck_at", offsetof(fin_run, stuck_at), true},
        {"left_at", offsetof(fin_run, left_at), true},
    };
    int64_t *whole = (void *)s->column; /* allocated, of 8 bytes a run */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int64_t r = 0; r < s->runs; r++)
            s->column[r] =
                rows[i].always || is_kept(s, r) ? number_at(&s->ends[r], rows[i].offset) : NAN;
        fini_result_series(s->result, rows[i].name, FIN_F64, 1, &s->runs, s->column);
    }
    for (int64_t r = 0; r < s->runs; r++)
        whole[r] = s->ends[r].status;
    fini_result_series(s->result, "end_status", FIN_I64, 1, &s->runs, whole);
    for (int64_t r = 0; r < s->runs; r++)
        whole[r] = s->ends[r].step;
    fini_result_series(s->result, "end_step", FIN_I64, 1, &s->runs, whole);
}

/* The largest error, as the method of the risk says: it does not depend on the point, so one cheap call tells it. */
static fin_status add_risk_error(summary *s, fin_error *err)
{
    fin_training_parts of = fin_training_get(s->training);
    fin_risk_settings how;
    fin_risk_report report;
    double most = 0;
    fin_settings_defaults(&fin_risk_table, &how, sizeof how);
    how.samples = 2;
    if (fini_no_exact_risk(of.task, of.form))
        how.method = FIN_METHOD_SIMULATION;
    FINI_TRY(fin_risk(of.task, of.form, of.form_settings, NULL, &how, NULL, &report, err));
    for (int64_t r = 0; r < s->runs; r++)
        most = is_kept(s, r) ? fmax(most, s->ends[r].now.risk_error) : most;
    fini_result_scalar(s->result, "risk_error", most, 0, fini_how_of(report.risk.method),
                       report.risk.method == FIN_METHOD_SIMULATION ? of.settings->risk_samples : 0);
    return FIN_OK;
}

/* ---- along the way --------------------------------------------------------------------------- */

static void add_farthest(summary *s)
{
    const double *distance = fin_train_named(s->training->train, "distance").data;
    double most = NAN; /* if there are none */
    for (int64_t r = 0; r < s->runs; r++)
        for (int64_t t = 0; t < s->logs && is_kept(s, r); t++)
            most = fmax(most, distance[r * s->logs + t]);
    fini_result_scalar(s->result, "farthest", most, 0, FIN_HOW_RUNS, s->kept);
}

/* Mean and quantiles at one logged step over the runs that were there. */
static void fill_bands(summary *s, const quantity *q, const double *log, int64_t t)
{
    int64_t n = 0;
    double sum = 0;
    for (int64_t r = 0; r < s->runs; r++)
        if (is_kept(s, r) && !isnan(log[r * s->logs + t]))
            s->column[n++] = value_of(q, log[r * s->logs + t]);
    fini_sort(s->column, n);
    for (int64_t i = 0; i < n; i++)
        sum += s->column[i];
    s->series[t] = n ? sum / (double)n : NAN;
    for (int i = 1; i < BANDS; i++)
        s->series[i * s->logs + t] = fini_quantile(s->column, n, band_quantiles[i - 1]);
}

static fin_status add_bands(summary *s, const fin_progress *progress, fin_error *err)
{
    const int64_t shape[2] = {BANDS, s->logs};
    for (int i = 0; i < QUANTITIES; i++) {
        const double *log = fin_train_named(s->training->train, quantities[i].log).data;
        for (int64_t t = 0; t < s->logs; t++) {
            fill_bands(s, &quantities[i], log, t);
            if (t % 64 == 0 && fini_report(progress, "summing up", i, QUANTITIES))
                return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
        }
        fini_result_series(s->result, quantities[i].name, FIN_F64, 2, shape, s->series);
    }
    return FIN_OK;
}

static void add_paths(summary *s)
{
    const fin_train *train = s->training->train;
    const int64_t shape[2] = {s->runs < PATHS ? s->runs : PATHS, s->logs};
    static const char *const names[][2] = {{"path_kappa", "kappa"},
                                           {"path_nu", "nu"},
                                           {"path_excess", "excess"},
                                           {"path_distance", "distance"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fini_result_series(s->result, names[i][0], FIN_F64, 2, shape,
                           fin_train_named(train, names[i][1]).data);
    const int64_t *step = fin_train_named(train, "step").data;
    for (int64_t t = 0; t < s->logs; t++)
        s->series[t] = (double)step[t];
    fini_result_series(s->result, "step", FIN_F64, 1, &s->logs, s->series);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static fin_status add_all(summary *s, const fin_progress *progress, fin_error *err)
{
    for (int64_t r = 0; r < s->runs; r++) {
        FINI_TRY(fin_train_get_run(s->training->train, r, &s->ends[r], err));
        s->kept += is_kept(s, r);
    }
    fin_error why;
    FINI_TRY(fini_training_places(s->training, s->ends, s->result, progress, err));
    add_shares(s);
    add_steps(s);
    add_quantiles(s);
    add_ends(s);
    FINI_TRY(add_risk_error(s, err));
    FINI_TRY(add_bands(s, progress, err));
    add_farthest(s);
    add_paths(s);
    if (fin_training_check_step(s->training, &why))
        fini_result_note(s->result, "%s", why.message);
    return fini_result_status(s->result, err);
}

static fin_status sum_up(const fin_training *t, fin_result *result, const fin_progress *progress,
                         fin_error *err)
{
    summary s = {.training = t,
                 .result = result,
                 .runs = fin_train_get_settings(t->train)->runs,
                 .logs = fin_train_named(t->train, "step").shape[0]};
    fin_status status = FIN_OK;
    s.ends = fini_alloc_array(s.runs, sizeof *s.ends);
    s.column = fini_alloc_array(s.runs, sizeof *s.column);
    s.series = fini_alloc_array(s.logs, BANDS * sizeof *s.series);
    if (!s.ends || !s.column || !s.series)
        status = fini_fail_memory(err,
                                  (size_t)s.runs * (sizeof *s.ends + sizeof *s.column) +
                                      (size_t)s.logs * BANDS * sizeof *s.series,
                                  "the summary of the runs");
    else
        status = add_all(&s, progress, err);
    fini_free_all(s.ends, s.column, s.series);
    return status;
}

fin_status fin_training_result(const fin_training *t, const fin_progress *progress,
                               fin_result **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, t);
    *out = fin_result_create();
    if (!*out)
        return fini_fail_memory(err, 1, "a result");
    fin_status status = sum_up(t, *out, progress, err);
    if (!status)
        return FIN_OK;
    fin_result_destroy(*out);
    *out = NULL;
    return status;
}

fin_status fin_training_check(const fin_training *t, fin_error *err)
{
    FINI_NEED(err, t);
    fin_train_array ends = fin_train_named(t->train, "status");
    const int64_t *status = ends.data, *at = fin_train_named(t->train, "at").data;
    int64_t last = 0;
    for (int64_t r = 0; r < ends.shape[0]; r++) {
        if (status[r] != FIN_RUN_DIVERGED)
            return FIN_OK;
        last = at[r] > last ? at[r] : last;
    }
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "all %lld runs diverged, the last one behind step %lld; a smaller alpha "
                     "usually helps",
                     (long long)ends.shape[0], (long long)last);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    fin_training *t;
    fin_status status = fini_training_finish(&t, values, progress, err);
    if (!status)
        status = fin_training_check(t, err);
    if (!status)
        status = sum_up(t, result, progress, err);
    fin_training_destroy(t);
    return status;
}

const fin_command fini_command_train = {
    .name = "train",
    .summary = "many runs of one training: where they end, and how they get there",
    .revision = 2,
    .size = sizeof(fini_train_values),
    .words = words,
    .instead = fini_train_instead,
    .outputs = outputs,
    .groups = fini_train_groups,
    .check = fini_train_check,
    .run = run,
};

const fin_command fin_training_settings = {
    .name = "train",
    .size = sizeof(fini_train_values),
    .words = words,
    .groups = fini_train_groups,
};
