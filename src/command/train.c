/* train: many runs of one training, summed up.
 *
 * The scalars say where the runs ended, with an error that comes from the runs alone: a share has
 * its binomial one, a quantile that of its order statistics. The series show the way there. */
#include "command/command.h"

#include <math.h>
#include <string.h>

static const fin_word words[] = {
    FINI_MODEL_WORDS(fini_train_values, model),
    {"lam_schedule", offsetof(fini_train_values, lam_schedule), 512, "",
     "lam from a step on, such as 0:1,1000:0.5, instead of lam"},
    {"alpha_schedule", offsetof(fini_train_values, alpha_schedule), 512, "",
     "alpha from a step on, such as 0:0.1,1000:0.01, instead of alpha"},
    {NULL, 0, 0, NULL, NULL},
};

static const fin_output outputs[] = {
    {"share", "share of runs that converged", NULL},
    {"moving", "share of runs that did not, and are not stuck", NULL},
    {"stuck", "share of runs that are stuck", NULL},
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
    {"step", "(T) logged steps", NULL},
    {"excess", "(6, T) excess risk: mean, 2.5, 25, 50, 75 and 97.5 % quantiles over runs", NULL},
    {"risk", "(6, T) risk", NULL},
    {"abs_kappa", "(6, T) |kappa|", NULL},
    {"abs_nu", "(6, T) |nu|", NULL},
    {"distance", "(6, T) distance to M", NULL},
    {"lam", "(6, T) lam", NULL},
    {"path_kappa", "(8 or fewer, T) kappa of the first runs; nan where a run has ended", NULL},
    {"path_nu", "(8 or fewer, T) nu of the first runs", NULL},
    {"end_kappa", "(runs) kappa at the end; nan if the run diverged", NULL},
    {"end_nu", "(runs) nu at the end", NULL},
    {"end_theta", "(runs) theta at the end", NULL},
    {"end_eta", "(runs) eta at the end", NULL},
    {"end_rho", "(runs) rho at the end", NULL},
    {NULL, NULL, NULL},
};

/* What is drawn along the way, and which of it is summed up at the end. */
#define QUANTITY_LIST(Q)                                                                           \
    Q(excess, "excess", 0, "median_excess", "low_excess", "high_excess")                           \
    Q(risk, "risk", 0, "median_risk", NULL, NULL)                                                  \
    Q(abs_kappa, "kappa", 1, "median_abs_kappa", "low_abs_kappa", "high_abs_kappa")                \
    Q(abs_nu, "nu", 1, "median_abs_nu", "low_abs_nu", "high_abs_nu")                               \
    Q(distance, "distance", 0, "median_distance", NULL, NULL)                                      \
    Q(lam, "lam", 0, NULL, NULL, NULL)
typedef struct quantity {
    const char *name, *log; /* as a series here, and as an array of the training */
    bool absolute;
    const char *median, *low, *high;
} quantity;
static const quantity quantities[] = {
#define QUANTITY_ROW(name, log, absolute, median, low, high)                                       \
    {#name, log, absolute, median, low, high},
    QUANTITY_LIST(QUANTITY_ROW)
#undef QUANTITY_ROW
};
enum { QUANTITIES = sizeof quantities / sizeof *quantities, BANDS = 6, PATHS = 8 };
static const double band_quantiles[BANDS - 1] = {0.025, 0.25, 0.5, 0.75, 0.975};

typedef struct summary {
    const fin_train *train;
    fin_result *result;
    int64_t runs, logs, kept;
    const int64_t *status; /* (runs) */
    double *column;        /* (runs): scratch */
    double *series;        /* (BANDS, logs): scratch */
} summary;

/* ---- at the end ------------------------------------------------------------------------------ */

static void add_shares(summary *s)
{
    static const char *const names[] = {"moving", "share", "stuck", "diverged"};
    _Static_assert(FIN_RUN_MOVING == 0 && FIN_RUN_CONVERGED == 1 && FIN_RUN_STUCK == 2 &&
                       FIN_RUN_DIVERGED == 3,
                   "the names above are in the order of the statuses");
    for (int i = 0; i < 4; i++) {
        int64_t count = 0;
        for (int64_t r = 0; r < s->runs; r++)
            count += s->status[r] == i;
        double p = (double)count / (double)s->runs;
        fini_result_scalar(s->result, names[i], p, sqrt(p * (1 - p) / (double)s->runs),
                           FIN_HOW_SHARE, s->runs);
    }
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

static fin_status add_ends(summary *s, fin_error *err)
{
    for (int i = 0; i < QUANTITIES; i++) {
        const quantity *q = &quantities[i];
        int64_t n = 0;
        for (int64_t r = 0; r < s->runs && q->median; r++) {
            fin_run run;
            fin_status status = fin_train_get_run(s->train, r, &run, err);
            if (status)
                return status;
            const double now[QUANTITIES] = {run.now.excess, run.now.risk,     run.now.kappa,
                                            run.now.nu,     run.now.distance, run.now.lam};
            if (run.status != FIN_RUN_DIVERGED && !isnan(now[i]))
                s->column[n++] = value_of(q, now[i]);
        }
        fini_sort(s->column, n);
        add_quantile(s, q->median, n, 0.5);
        add_quantile(s, q->low, n, 0.05);
        add_quantile(s, q->high, n, 0.95);
    }
    return FIN_OK;
}

static fin_status add_overlaps(summary *s, fin_error *err)
{
    static const char *const names[5] = {"end_kappa", "end_nu", "end_theta", "end_eta", "end_rho"};
    for (int i = 0; i < 5; i++) {
        for (int64_t r = 0; r < s->runs; r++) {
            fin_run run;
            fin_status status = fin_train_get_run(s->train, r, &run, err);
            if (status)
                return status;
            const double now[5] = {run.now.kappa, run.now.nu, run.now.theta, run.now.eta,
                                   run.now.rho};
            s->column[r] = run.status == FIN_RUN_DIVERGED ? NAN : now[i];
        }
        fini_result_series(s->result, names[i], FIN_F64, 1, &s->runs, s->column);
    }
    return FIN_OK;
}

/* ---- along the way --------------------------------------------------------------------------- */

static bool is_kept(const summary *s, int64_t run)
{
    return s->status[run] != FIN_RUN_DIVERGED;
}

static void add_farthest(summary *s)
{
    const double *distance = fini_train_named(s->train, "distance").data;
    double most = 0;
    for (int64_t r = 0; r < s->runs; r++)
        for (int64_t t = 0; t < s->logs && is_kept(s, r); t++)
            most = fmax(most, distance[r * s->logs + t]); /* never NaN */
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
        const double *log = fini_train_named(s->train, quantities[i].log).data;
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
    const int64_t shape[2] = {s->runs < PATHS ? s->runs : PATHS, s->logs};
    fini_result_series(s->result, "path_kappa", FIN_F64, 2, shape,
                       fini_train_named(s->train, "kappa").data);
    fini_result_series(s->result, "path_nu", FIN_F64, 2, shape,
                       fini_train_named(s->train, "nu").data);
    const int64_t *step = fini_train_named(s->train, "step").data;
    for (int64_t t = 0; t < s->logs; t++)
        s->series[t] = (double)step[t];
    fini_result_series(s->result, "step", FIN_F64, 1, &s->logs, s->series);
}

/* ---- running --------------------------------------------------------------------------------- */

static fin_status add_all(summary *s, const fin_progress *progress, fin_error *err)
{
    add_shares(s);
    fin_status status = add_ends(s, err);
    if (!status)
        status = add_overlaps(s, err);
    if (!status)
        status = add_bands(s, progress, err);
    if (status)
        return status;
    add_farthest(s);
    add_paths(s);
    return fini_result_status(s->result, err);
}

static fin_status check_kept(summary *s, fin_error *err)
{
    const int64_t *at = fini_train_named(s->train, "at").data;
    int64_t last = 0;
    for (int64_t r = 0; r < s->runs; r++) {
        s->kept += is_kept(s, r);
        last = at[r] > last ? at[r] : last;
    }
    if (s->kept)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "all %lld runs diverged, the last one behind step %lld; a smaller alpha "
                     "usually helps",
                     (long long)s->runs, (long long)last);
}

static fin_status sum_up(const fin_train *train, fin_result *result, const fin_progress *progress,
                         fin_error *err)
{
    summary s = {.train = train, .result = result};
    fin_train_array status_of = fini_train_named(train, "status");
    s.status = status_of.data;
    s.runs = status_of.shape[0];
    s.logs = fini_train_named(train, "step").shape[0];
    fin_status status = check_kept(&s, err);
    if (status)
        return status;
    s.column = fini_alloc_array(s.runs, sizeof *s.column);
    s.series = fini_alloc_array(s.logs, BANDS * sizeof *s.series);
    if (!s.column || !s.series)
        status = fini_fail_memory(err, ((size_t)s.runs + (size_t)s.logs * BANDS) * sizeof(double),
                                  "the summary of the runs");
    else
        status = add_all(&s, progress, err);
    fini_free(s.column);
    fini_free(s.series);
    return status;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    fin_task *task;
    fin_train *train;
    fin_status status = fini_train_finish(values, progress, &task, &train, err);
    if (status)
        return status;
    status = sum_up(train, result, progress, err);
    fin_train_destroy(train);
    fin_task_destroy(task);
    return status;
}

const fin_command fini_command_train = {
    .name = "train",
    .summary = "many runs of one training: how many converge, and how they get there",
    .revision = 1,
    .size = sizeof(fini_train_values),
    .words = words,
    .outputs = outputs,
    .groups = fini_train_groups,
    .check = fini_train_check,
    .tidy = fini_train_tidy,
    .run = run,
};
