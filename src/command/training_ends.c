/* Where runs ended, judged by their overlaps and by their risk, and whether their steps were too long.
 *
 *     oracle    |kappa| and |nu| above `converged`; or on that side, |kappa nu| >= |theta eta|, with the oracle's risk (the
 *               risk is flat in kappa once lam mu kappa is large: from M at d = 2000 it is reached with |kappa| = 0.5)
 *     swapped   k = +-v*: |eta| above `converged`, and |theta| above |nu| (theta is +-1 there only for small lam)
 *     other     neither
 *
 * The oracle's risk is that of k*, v* at the lam of the run; reached, if the run's is at most a twentieth above it. A step
 * alpha is too long where alpha times the largest eigenvalue of the Hessian is above 2 (1 + momentum): there the
 * linear recursion of the error grows. */
#include "command/training.h"

#include "math/stats.h"
#include "train/train.h"

#include <math.h>

static const double above = 0.05; /* of the oracle's risk: still reached */

enum { OTHER, ORACLE, SWAPPED, DIVERGED, PLACES };

/* The oracle's risk at one lam, until another is asked for. */
typedef struct level {
    const fin_training *t;
    double lam;
    fin_estimate risk;
} level;

static fin_status find_level(level *l, double lam, const fin_progress *progress, fin_error *err)
{
    if (lam == l->lam)
        return FIN_OK;
    fin_training_parts of = fin_training_get(l->t);
    fin_form_settings form = *of.form_settings;
    fin_risk_settings how;
    fin_risk_report report;
    fin_settings_defaults(&fin_risk_table, &how, sizeof how);
    how.samples = of.settings->risk_samples;
    form.lam = l->lam = lam;
    FINI_TRY(fin_risk(of.task, of.form, &form, NULL, &how, progress, &report, err));
    l->risk = report.risk;
    return FIN_OK;
}

static int place_of(const fin_run *run, double converged, bool reached)
{
    const fin_train_point *p = &run->now;
    double kappa = fabs(p->kappa), nu = fabs(p->nu), theta = fabs(p->theta), eta = fabs(p->eta);
    if (run->status == FIN_RUN_DIVERGED)
        return DIVERGED;
    if ((kappa > converged && nu > converged) || (reached && kappa * nu >= theta * eta))
        return ORACLE;
    return eta > converged && theta > nu ? SWAPPED : OTHER;
}

static double median_risk(const fin_run *ends, const int64_t *place, int64_t runs, int which,
                          double *room)
{
    int64_t n = 0;
    for (int64_t r = 0; r < runs; r++)
        if (place[r] == which)
            room[n++] = ends[r].now.risk;
    fini_sort(room, n);
    return fini_quantile(room, n, 0.5);
}

static void add_places(const fin_run *ends, const int64_t *place, int64_t runs, int64_t reached,
                       double *room, fin_result *result)
{
    static const char *const names[DIVERGED][2] = {
        {"other", "other_risk"}, {"oracle", "oracle_risk"}, {"swapped", "swapped_risk"}};
    for (int i = 0; i < DIVERGED; i++) {
        int64_t count = 0;
        for (int64_t r = 0; r < runs; r++)
            count += place[r] == i;
        fini_result_share(result, names[i][0], names[i][0], count, runs);
        fini_result_scalar(result, names[i][1], median_risk(ends, place, runs, i, room), 0,
                           FIN_HOW_RUNS, count);
    }
    fini_result_share(result, "reached", "reached", reached, runs);
    fini_result_series(result, "end_place", FIN_I64, 1, &runs, place);
}

fin_status fini_training_places(const fin_training *t, const fin_run *ends, fin_result *result,
                                const fin_progress *progress, fin_error *err)
{
    const fin_train_settings *s = fin_train_get_settings(t->train);
    level l = {.t = t, .lam = NAN, .risk.value = NAN};
    int64_t runs = s->runs, all = 0;
    fin_status status = FIN_OK;
    FINI_FREED int64_t *place = fini_alloc_array(runs, sizeof *place);
    FINI_FREED double *room = fini_alloc_array(runs, sizeof *room);
    if (!place || !room)
        status = fini_fail_memory(err, (size_t)runs * (sizeof *place + sizeof *room), "the ends");
    for (int64_t r = 0; r < runs && !status; r++) {
        bool kept = ends[r].status != FIN_RUN_DIVERGED, reached = false;
        status = kept ? find_level(&l, ends[r].now.lam, progress, err) : FIN_OK;
        if (!status && kept)
            reached = ends[r].now.risk <= (1 + above) * l.risk.value;
        place[r] = place_of(&ends[r], s->converged, reached);
        all += reached;
    }
    if (!status) {
        fini_result_estimate(result, "level", &l.risk);
        add_places(ends, place, runs, all, room, result);
    }
    return status;
}

/* ---- steps that are too long ------------------------------------------------------------------- */

static double largest(const fin_curvature *c)
{
    double most = c->span_count ? c->span[c->span_count - 1] : 0;
    return c->rest_count ? fmax(most, c->rest[1]) : most;
}

/* One digit, rounded down. */
static double plain(double x)
{
    double unit = pow(10, floor(log10(x)));
    return floor(x / unit * (1 + 1e-12)) * unit;
}

fin_status fin_training_check_step(const fin_training *t, fin_error *err)
{
    FINI_NEED(err, t);
    enum { FEW = 1000 };
    const fin_train_settings *s = fin_train_get_settings(t->train);
    double limit = 2 * (1 + s->momentum), most = 0;
    int64_t seen = 0, beyond = 0;
    double alpha = 0;
    if (s->rule != FIN_RULE_DESCENT)
        return FIN_OK;
    for (int64_t r = 0; r < s->runs && r < FEW; r++) {
        fin_run run;
        fin_curvature c;
        if (fin_train_get_run(t->train, r, &run, NULL) || run.status == FIN_RUN_DIVERGED ||
            run.step == 0)
            continue;
        fin_error why;
        fin_status status = fin_training_curvature(t, r, &c, &why);
        if (status == FIN_ERR_UNSUPPORTED) /* no exact risk: nothing is known */
            return FIN_OK;
        if (status)
            return fini_fail(err, status,
                             "it cannot be told whether steps are too long where run %lld is: %s",
                             (long long)r, why.message);
        alpha = fini_alpha_at(t->train, run.step - 1);
        most = fmax(most, largest(&c));
        beyond += alpha * largest(&c) > limit;
        seen++;
    }
    if (!beyond)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "alpha = %g is too long a step for %lld of %lld runs: times the largest "
                     "curvature where they are, up to %.4g, it is above %.3g, and such steps go up "
                     "as well as down; alpha = %.1g usually works",
                     alpha, (long long)beyond, (long long)seen, most, limit, plain(1 / most));
}
