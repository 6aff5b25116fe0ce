/* Results and state as arrays, and back: what a file holds, and how a stopped run goes on. */
#include "train/train.h"

#include <math.h>
#include <string.h>

/* All arrays, in the order of files: the logged steps, the logs, and what a run goes on from. Of a log
 * only the columns of steps that are logged here too are taken back, so its numbers are not loaded. */
#define RUNS FINI_SIZE(fin_train, settings.runs)
#define FIELD(name_, type, member)                                                                 \
    .name = name_, .dtype = FIN_##type, .at = offsetof(fin_train, member),                         \
    .flags = FINI_STATE_THERE | FINI_STATE_ANY
enum { STEP, LOGS, AT = LOGS + FIN_LOG_COUNT, EVENTS = AT + 2, STATE = EVENTS + 3, ARRAYS };

static const fini_state_field fields[ARRAYS] = {
    {FIELD("step", I64, step) | FINI_STATE_FREE, .rows = FINI_SIZE(fin_train, logs),
     .most = INT64_C(1) << 32},
#define LOG(name, meaning)                                                                         \
    {FIELD(#name, F64, log[offsetof(fin_train_point, name) / sizeof(double)]), .rows = RUNS,       \
     .columns = FINI_SIZE(fin_train, logs)},
    FIN_LOG_LIST(LOG)
#undef LOG
        {FIELD("at", I64, at), .rows = RUNS},
    {FIELD("status", I64, status), .rows = RUNS},
    {FIELD("converged_at", F64, converged_at), .rows = RUNS},
    {FIELD("stuck_at", F64, stuck_at), .rows = RUNS},
    {FIELD("left_at", F64, left_at), .rows = RUNS},
    {FIELD("state", F64, state), .rows = RUNS, .columns = FINI_SIZE(fin_train, width)},
};
static const char *const meanings[ARRAYS] = {
    "steps made at each log",
#define MEANING(name, meaning) meaning,
    FIN_LOG_LIST(MEANING)
#undef MEANING
        "steps made by each run",
    "0 not converged, 1 converged, 2 stuck, 3 diverged",
    "first step seen converged",
    "first step seen stuck",
    "first step seen away from M",
    "what a run goes on from",
};
#define TRAINING "training", "other settings"
const fini_state fini_train_state = {TRAINING, fields, ARRAYS};

int fini_train_array_count(const fin_train *t)
{
    return t ? ARRAYS : 0;
}

fin_status fini_train_get_array(const fin_train *t, int i, fin_train_array *out, fin_error *err)
{
    FINI_NEED(err, t, out);
    if (i < 0 || i >= ARRAYS)
        return fini_fail(err, FIN_ERR_ARGUMENT, "array %d; there are %d, from 0 on", i, ARRAYS);
    fin_tensor a;
    fini_state_save(&(fini_state){TRAINING, &fields[i], 1}, t, "", &(fini_tensor_list){&a, 0, 1});
    *out = (fin_train_array){fields[i].name,           meanings[i], a.dtype, a.ndim,
                             {a.shape[0], a.shape[1]}, a.data};
    return FIN_OK;
}

fin_train_array fin_train_named(const fin_train *t, const char *name)
{
    fin_train_array a;
    for (int i = 0; name && fini_train_get_array(t, i, &a, NULL) == FIN_OK; i++)
        if (strcmp(a.name, name) == 0)
            return a;
    return (fin_train_array){.name = NULL};
}

/* ---- resuming ------------------------------------------------------------------------------------ */

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
static fin_status check_steps(const fin_train *t, const fin_tensor *step, fin_error *err)
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
static fin_status copy_logs(fin_train *t, const fini_state_source *from, fin_error *err)
{
    fin_status status = fini_state_verify(&(fini_state){TRAINING, fields, 1}, t, from, err);
    const fin_tensor *step = status ? NULL : fini_state_find(from, "step");
    if (!status)
        status = check_steps(t, step, err);
    for (int j = 0; !status && j < FIN_LOG_COUNT; j++) {
        fini_state_field like = fields[LOGS + j];
        like.columns = step->shape[0];
        if ((status = fini_state_verify(&(fini_state){TRAINING, &like, 1}, t, from, err)))
            break;
        const double *log = fini_state_find(from, like.name)->data;
        for (int64_t c = 0; c < step->shape[0]; c++) {
            int64_t at = ((const int64_t *)step->data)[c], i = fini_log_at(t, at);
            for (int64_t run = 0; i >= 0 && run < t->settings.runs; run++)
                if (at <= t->at[run])
                    t->log[j][run * t->logs + i] = log[run * step->shape[0] + c];
        }
    }
    return status;
}

/* Events are seen at logged steps: one that was seen at a step that is not logged any more is seen
 * again, later. */
static void keep_events(const fin_train *t, double *event)
{
    for (int64_t run = 0; run < t->settings.runs; run++) {
        double at = event[run];
        bool known = t->settings.rule == FIN_RULE_FLOW
                         ? at >= 0 && at <= (double)t->settings.steps
                         : at >= 0 && at <= (double)t->at[run] && fini_log_at(t, (int64_t)at) >= 0;
        event[run] = known ? at : NAN;
    }
}

static fin_status copy_all(fin_train *t, const fini_state_source *from, fin_error *err)
{
    const fini_state of_runs = {TRAINING, fields + AT, ARRAYS - AT};
    FINI_TRY(fini_state_load(&of_runs, t, from, err));
    FINI_TRY(check_runs(t, err));
    FINI_TRY(copy_logs(t, from, err));
    keep_events(t, t->converged_at);
    keep_events(t, t->stuck_at);
    keep_events(t, t->left_at);
    return FIN_OK;
}

fin_status fini_train_resume(fin_train *t, const fin_train_array *arrays, int count, fin_error *err)
{
    FINI_NEED(err, t, !count || arrays);
    fin_tensor tensors[ARRAYS];
    int found = 0;
    for (int i = 0; i < ARRAYS; i++)
        for (int k = 0; k < count; k++)
            if (strcmp(arrays[k].name, fields[i].name) == 0) {
                const fin_train_array *a = &arrays[k];
                tensors[found] = (fin_tensor){"", a->dtype, a->ndim, {a->shape[0]}, a->data};
                tensors[found].shape[1] = a->shape[1];
                strcpy(tensors[found++].name, fields[i].name);
                break;
            }
    fin_status status = copy_all(t, &(fini_state_source){"", tensors, found}, err);
    if (status) { /* whatever was copied goes: the runs are at step 0 again */
        fin_status again = fini_begin(t, NULL);
        (void)again; /* it went well before */
    }
    return status;
}
