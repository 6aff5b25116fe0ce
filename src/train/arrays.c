/* Results and state as arrays, and back: what a file holds, and how a stopped run goes on. */
#include "train/train.h"

#include <math.h>
#include <string.h>

static const char *const log_name[FIN_LOG_COUNT] = {
#define NAME(name, meaning) #name,
    FIN_LOG_LIST(NAME)
#undef NAME
};
static const char *const log_meaning[FIN_LOG_COUNT] = {
#define MEANING(name, meaning) meaning,
    FIN_LOG_LIST(MEANING)
#undef MEANING
};

enum { STEP, AT, STATUS, CONVERGED_AT, STUCK_AT, LEFT_AT, STATE, OTHERS };

int fin_train_array_count(const fin_train *t)
{
    (void)t;
    return FIN_LOG_COUNT + OTHERS;
}

/* The arrays that are not logs, in the order of the enum. Their numbers of dimensions follow from
 * the shape: 0 ends it. */
static fin_train_array other(const fin_train *t, int i)
{
    int64_t runs = t->settings.runs;
    const fin_train_array rows[OTHERS] = {
        {"step", "steps made at each log", FIN_I64, 1, {t->logs, 0}, t->step},
        {"at", "steps made by each run", FIN_I64, 1, {runs, 0}, t->at},
        {"status", "0 moving, 1 converged, 2 stuck, 3 diverged", FIN_I64, 1, {runs, 0}, t->status},
        {"converged_at", "first step seen converged", FIN_F64, 1, {runs, 0}, t->converged_at},
        {"stuck_at", "first step seen stuck", FIN_F64, 1, {runs, 0}, t->stuck_at},
        {"left_at", "first step seen away from M", FIN_F64, 1, {runs, 0}, t->left_at},
        {"state", "what a run goes on from", FIN_F64, 2, {runs, t->width}, t->state},
    };
    return rows[i];
}

fin_status fin_train_get_array(const fin_train *t, int i, fin_train_array *out, fin_error *err)
{
    if (i < 0 || i >= fin_train_array_count(t))
        return fini_fail(err, FIN_ERR_ARGUMENT, "array %d; there are %d, from 0 on", i,
                         fin_train_array_count(t));
    if (i == 0)
        *out = other(t, STEP);
    else if (i <= FIN_LOG_COUNT)
        *out = (fin_train_array){
            log_name[i - 1], log_meaning[i - 1], FIN_F64, 2, {t->settings.runs, t->logs},
            t->log[i - 1]};
    else
        *out = other(t, i - FIN_LOG_COUNT);
    return FIN_OK;
}

fin_train_array fin_train_named(const fin_train *t, const char *name)
{
    fin_train_array a;
    for (int i = 0; fin_train_get_array(t, i, &a, NULL) == FIN_OK; i++)
        if (strcmp(a.name, name) == 0)
            return a;
    return (fin_train_array){.name = NULL};
}

/* ---- resuming ------------------------------------------------------------------------------------ */

static const fin_train_array *find(const fin_train_array *arrays, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(arrays[i].name, name) == 0)
            return &arrays[i];
    return NULL;
}

/* The array of this name, of the type and shape that `like` has (its last dimension may be any if
 * it is negative there). */
static fin_status take(const fin_train_array *arrays, int count, const fin_train_array *like,
                       const fin_train_array **out, fin_error *err)
{
    const fin_train_array *a = *out = find(arrays, count, like->name);
    if (!a)
        return fini_fail(err, FIN_ERR_FORMAT, "the array '%s' is missing", like->name);
    bool fits = a->dtype == like->dtype && a->ndim == like->ndim;
    for (int j = 0; fits && j < like->ndim; j++)
        fits = like->shape[j] < 0 || a->shape[j] == like->shape[j];
    if (!fits)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the array '%s' has not the type or the shape that these settings give",
                         like->name);
    return FIN_OK;
}

/* Whether some unit vectors have these overlaps, up to the rounding of a long run: what k and v have
 * beyond k*, v* is not longer than it can be, and no more parallel. */
static bool gram_is_positive(const fin_overlaps *o)
{
    const double slack = 1e-6;
    double k = 1 - o->kappa * o->kappa - o->eta * o->eta + slack;
    double v = 1 - o->theta * o->theta - o->nu * o->nu + slack;
    double both = o->rho - o->kappa * o->theta - o->eta * o->nu;
    return !fin_settings_validate(&fin_overlaps_table, o, NULL) && k > 0 && v > 0 &&
           both * both <= k * v + slack;
}

/* A state that a run could be in: finite (but for a lam that may be infinite), and of unit vectors. */
static bool plausible(const fin_train *t, int64_t run)
{
    const double *x = t->state + run * t->width;
    int64_t lam_at = t->width - (t->engine == &fini_population ? 2 : 1);
    fin_overlaps o;
    double lam;
    t->engine->read(t, run, &o, &lam);
    for (int64_t i = 0; i < t->width; i++)
        if (!isfinite(x[i]) && !(i == lam_at && x[i] == INFINITY && !t->has_gradient))
            return false;
    if (!(lam >= 0) || (t->has_gradient && lam > FINI_LAM_MOST))
        return false;
    if (t->engine->width == fini_population_lanes.width || t->engine == &fini_flow)
        return gram_is_positive(&o);
    double k = fini_dot(t->frame, x, x), v = fini_dot(t->frame, x + t->frame, x + t->frame);
    return fabs(k - 1) < 1e-9 && fabs(v - 1) < 1e-9;
}

static fin_status check_runs(fin_train *t, fin_error *err)
{
    for (int64_t run = 0; run < t->settings.runs; run++) {
        if (t->at[run] < 0 || t->at[run] > t->settings.steps)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "run %lld has made %lld steps, but steps = %lld; give more steps",
                             (long long)run, (long long)t->at[run], (long long)t->settings.steps);
        if (t->status[run] < 0 || t->status[run] > FIN_RUN_DIVERGED)
            return fini_fail(err, FIN_ERR_FORMAT, "run %lld has the status %lld", (long long)run,
                             (long long)t->status[run]);
        if (!plausible(t, run))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "the state of run %lld is not that of two unit vectors",
                             (long long)run);
    }
    return FIN_OK;
}

/* Every step that was made and is logged here must be in the file. */
static fin_status check_steps(const fin_train *t, const fin_train_array *step, fin_error *err)
{
    int64_t farthest = 0, c = 0;
    const int64_t *there = step->data;
    for (int64_t run = 0; run < t->settings.runs; run++)
        farthest = t->at[run] > farthest ? t->at[run] : farthest;
    for (int64_t i = 0; i < t->logs && t->step[i] <= farthest; i++) {
        while (c < step->shape[0] && there[c] < t->step[i])
            c++;
        if (c == step->shape[0] || there[c] != t->step[i])
            return fini_fail(err, FIN_ERR_FORMAT,
                             "step %lld is logged with these settings but not in the file; resume "
                             "with the same log_every and log_decade",
                             (long long)t->step[i]);
    }
    return FIN_OK;
}

/* Logged steps of the file that are logged steps here; the last one of a shorter run may not be. */
static fin_status copy_logs(fin_train *t, const fin_train_array *arrays, int count, fin_error *err)
{
    const fin_train_array *step, *log, like_step = {"step", "", FIN_I64, 1, {-1, 0}, NULL};
    fin_status status = take(arrays, count, &like_step, &step, err);
    if (!status)
        status = check_steps(t, step, err);
    for (int j = 0; !status && j < FIN_LOG_COUNT; j++) {
        fin_train_array like = {log_name[j], "", FIN_F64, 2, {t->settings.runs, -1}, NULL};
        like.shape[1] = step->shape[0];
        if ((status = take(arrays, count, &like, &log, err)))
            break;
        for (int64_t c = 0; c < step->shape[0]; c++) {
            int64_t at = ((const int64_t *)step->data)[c], i = fini_log_at(t, at);
            for (int64_t run = 0; i >= 0 && run < t->settings.runs; run++)
                if (at <= t->at[run])
                    t->log[j][run * t->logs + i] =
                        ((const double *)log->data)[run * step->shape[0] + c];
        }
    }
    return status;
}

/* Events are seen at logged steps: one that was seen at a step that is not logged any more is seen
 * again, later. */
static void copy_events(const fin_train *t, const double *from, double *to)
{
    for (int64_t run = 0; run < t->settings.runs; run++) {
        double at = from[run];
        bool known = t->settings.rule == FIN_RULE_FLOW
                         ? at >= 0 && at <= (double)t->settings.steps
                         : at >= 0 && at <= (double)t->at[run] && fini_log_at(t, (int64_t)at) >= 0;
        to[run] = known ? at : NAN;
    }
}

static fin_status copy_all(fin_train *t, const fin_train_array *arrays, int count, fin_error *err)
{
    const fin_train_array *from[OTHERS];
    for (int i = AT; i < OTHERS; i++) {
        fin_train_array like = other(t, i);
        fin_status status = take(arrays, count, &like, &from[i], err);
        if (status)
            return status;
    }
    size_t runs = (size_t)t->settings.runs;
    memcpy(t->at, from[AT]->data, runs * sizeof *t->at);
    memcpy(t->status, from[STATUS]->data, runs * sizeof *t->status);
    memcpy(t->state, from[STATE]->data, runs * (size_t)t->width * sizeof *t->state);
    fin_status status = check_runs(t, err);
    if (status || (status = copy_logs(t, arrays, count, err)))
        return status;
    copy_events(t, from[CONVERGED_AT]->data, t->converged_at);
    copy_events(t, from[STUCK_AT]->data, t->stuck_at);
    copy_events(t, from[LEFT_AT]->data, t->left_at);
    return FIN_OK;
}

fin_status fin_train_resume(fin_train *t, const fin_train_array *arrays, int count, fin_error *err)
{
    fin_status status = copy_all(t, arrays, count, err);
    if (status) { /* whatever was copied goes: the runs are at step 0 again */
        fin_status again = fini_begin(t, NULL);
        (void)again; /* it went well before */
    }
    return status;
}
