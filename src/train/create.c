/* Making the runs: which engine, is it possible, how much memory. */
#include "train/train.h"

#include "finetti/random.h"
#include "theory/theory.h"
#include "task/task.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_train_settings
FIN_TABLE(, fin_train_table, "train", FIN_TRAIN_FIELDS);

/* ---- what goes together ----------------------------------------------------------------------- */

static fin_status check_lam(const fin_train *t, const fin_train_start *start, fin_error *err)
{
    const fin_train_settings *s = &t->settings;
    bool scheduled = s->decay > 0 || (start && start->lam.count);
    if (!t->has_lam && (scheduled || s->alpha_lam > 0))
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s has no lam: no decay, schedule or training",
                         t->form->name);
    if (scheduled && s->alpha_lam > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "lam is either trained (alpha_lam = %g) or follows a schedule; choose one",
                         s->alpha_lam);
    if (s->alpha_lam > 0 && isinf(t->form_settings.lam))
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "lam = inf cannot be trained");
    return FIN_OK;
}

static fin_status check_population(const fin_train *t, fin_error *err)
{
    const fin_train_settings *s = &t->settings;
    if (!t->has_gradient)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the population engine needs the exact risk, and %s on %s has none: %s; "
                         "use engine = reduced",
                         t->form->name, t->task->kind->name, fini_no_exact_risk(t->task, t->form));
    if (s->alpha_lam > 0 && !t->form->lanes)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the exact risk of %s has no derivative in lam here: train lam with erf, "
                         "or with the reduced engine",
                         t->form->name);
    if (s->alpha_lam > 0 && s->rule == FIN_RULE_ARMIJO)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "the line search moves k and v only, not lam");
    if (s->momentum > 0 && s->rule != FIN_RULE_DESCENT)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "momentum goes with rule = descent only");
    return FIN_OK;
}

/* The engine for these settings; the fast lanes where they apply. */
static fin_status choose_engine(fin_train *t, fin_error *err)
{
    const fin_train_settings *s = &t->settings;
    const fin_task *task = t->task;
    bool lanes = t->form->lanes;
    if (s->engine == FIN_ENGINE_POPULATION) {
        bool plain = s->rule == FIN_RULE_DESCENT && s->momentum == 0 && s->alpha_lam == 0;
        t->engine = s->rule == FIN_RULE_FLOW ? &fini_flow
                    : lanes && plain         ? &fini_population_lanes
                                             : &fini_population;
        return check_population(t, err);
    }
    if (s->rule != FIN_RULE_DESCENT)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "rule = %s needs an exact risk: use the population engine",
                         s->rule == FIN_RULE_FLOW ? "flow" : "armijo");
    if ((double)s->steps * (double)s->batch > (double)FIN_STEPS_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "steps * batch = %g samples; a run has less than 2^40 = %g",
                         (double)s->steps * (double)s->batch, 0x1p40);
    if (s->engine == FIN_ENGINE_AMBIENT) {
        t->engine = &fini_ambient;
        return fini_ambient_check(t, err);
    }
    lanes = lanes && !task->kind->odds && task->settings.m == 1 &&
            task->shortest == task->longest && s->momentum == 0 && task->settings.d >= FINI_D_LEAST;
    if (lanes && (double)s->batch * (double)task->longest < 0x1p30) {
        t->engine = &fini_reduced_lanes;
        return FIN_OK;
    }
    t->engine = &fini_reduced;
    return fini_reduced_check(t, err);
}

static fin_status check_start(const fin_train *t, const fin_train_start *start, fin_error *err)
{
    int init = t->settings.init;
    bool ambient = t->settings.engine == FIN_ENGINE_AMBIENT;
    if ((ambient || init == FIN_INIT_VECTORS) && !t->task->k_star)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s needs k* and v* in R^d: make the task with FIN_TASK_AMBIENT",
                         ambient ? "the ambient engine" : "init = vectors");
    if (init == FIN_INIT_OVERLAPS || init == FIN_INIT_VECTORS) {
        bool given = start && (init == FIN_INIT_OVERLAPS ? start->overlaps != NULL
                                                         : start->k != NULL && start->v != NULL);
        if (!given)
            return fini_fail(err, FIN_ERR_ARGUMENT, "init = %s to start from",
                             init == FIN_INIT_OVERLAPS
                                 ? "overlaps needs the overlaps"
                                 : "vectors needs the vectors k and v (--start FILE.npz)");
        if (start->count != 1 && start->count != t->settings.runs)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%lld starting points for %lld runs; give one for all, or one each",
                             (long long)start->count, (long long)t->settings.runs);
    }
    if (!start)
        return FIN_OK;
    const fin_field *lam = fin_settings_find(t->form->settings, "lam");
    FINI_TRY(fini_schedule_check("lam", &start->lam, 0, lam ? lam->highest : 0, err));
    return fini_schedule_check("alpha", &start->alpha, 0, 1e300, err);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void layout(fini_arena *a, fin_train *t)
{
    int64_t runs = t->settings.runs, d = t->task->settings.d;
    bool vectors = t->settings.init == FIN_INIT_VECTORS;
    t->state = fini_take(a, runs * t->width, sizeof *t->state);
    t->start = fini_take(a, t->starts, sizeof *t->start);
    t->start_k = vectors ? fini_take(a, t->starts * d, sizeof *t->start_k) : NULL;
    t->start_v = vectors ? fini_take(a, t->starts * d, sizeof *t->start_v) : NULL;
    t->lam_step = fini_take(a, t->lam_count, sizeof *t->lam_step);
    t->lam_value = fini_take(a, t->lam_count, sizeof *t->lam_value);
    t->alpha_step = fini_take(a, t->alpha_count, sizeof *t->alpha_step);
    t->alpha_value = fini_take(a, t->alpha_count, sizeof *t->alpha_value);
    t->step = fini_take(a, t->logs, sizeof *t->step);
    for (int i = 0; i < FIN_LOG_COUNT; i++)
        t->log[i] = fini_take(a, runs * t->logs, sizeof *t->log[i]);
    t->at = fini_take(a, runs, sizeof *t->at);
    t->status = fini_take(a, runs, sizeof *t->status);
    t->converged_at = fini_take(a, runs, sizeof(double));
    t->stuck_at = fini_take(a, runs, sizeof(double));
    t->left_at = fini_take(a, runs, sizeof(double));
}

static fin_status check_size(const fin_train *t, fin_error *err)
{
    double logs = (double)t->logs * (double)t->settings.runs * FIN_LOG_COUNT;
    double state = (double)t->width * (double)t->settings.runs;
    if (logs > 0x1p42 || state > 0x1p42)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld runs with %lld logged steps each do not fit in memory; log less "
                         "often (log_every, log_decade) or take fewer runs",
                         (long long)t->settings.runs, (long long)t->logs);
    return FIN_OK;
}

/* ---- filling it -------------------------------------------------------------------------------- */

static fin_status copy_unit(int64_t d, const char *name, int64_t i, const double *from, double *to,
                            fin_error *err)
{
    double largest = 0, norm2 = 0;
    for (int64_t j = 0; j < d; j++)
        largest = fabs(from[j]) > largest ? fabs(from[j]) : largest;
    for (int64_t j = 0; j < d; j++)
        norm2 += from[j] / largest * (from[j] / largest);
    if (!(largest > 0) || !isfinite(norm2) || !isfinite(largest))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "starting vector %s number %lld is zero or not finite", name,
                         (long long)i);
    for (int64_t j = 0; j < d; j++)
        to[j] = from[j] / largest / sqrt(norm2);
    return FIN_OK;
}

static fin_status copy_start(fin_train *t, const fin_train_start *start, fin_error *err)
{
    int64_t d = t->task->settings.d;
    fin_status status = FIN_OK;
    for (int64_t i = 0; !status && i < t->starts; i++) {
        if (t->settings.init == FIN_INIT_OVERLAPS) {
            t->start[i] = start->overlaps[i];
            status = fini_overlaps_realisable(&t->start[i], d, err);
        } else {
            status = copy_unit(d, "k", i, start->k + i * d, t->start_k + i * d, err);
            if (!status)
                status = copy_unit(d, "v", i, start->v + i * d, t->start_v + i * d, err);
        }
    }
    for (int64_t i = 0; i < t->lam_count; i++) {
        t->lam_step[i] = start->lam.step[i];
        t->lam_value[i] = start->lam.value[i];
    }
    for (int64_t i = 0; i < t->alpha_count; i++) {
        t->alpha_step[i] = start->alpha.step[i];
        t->alpha_value[i] = start->alpha.value[i];
    }
    return status;
}

fin_status fini_begin(fin_train *t, fin_error *err)
{
    int64_t runs = t->settings.runs;
    memset(t->state, 0, (size_t)(runs * t->width) * sizeof *t->state);
    memset(t->at, 0, (size_t)runs * sizeof *t->at);
    memset(t->status, 0, (size_t)runs * sizeof *t->status);
    for (int64_t i = 0, step = 0; i < t->logs; i++, step = fini_next_logged(&t->settings, step))
        t->step[i] = step;
    for (int i = 0; i < FIN_LOG_COUNT; i++)
        for (int64_t j = 0; j < runs * t->logs; j++)
            t->log[i][j] = NAN;
    for (int64_t run = 0; run < runs; run++) {
        t->converged_at[run] = t->stuck_at[run] = t->left_at[run] = NAN;
        FINI_TRY(t->engine->start(t, run, err));
    }
    return FIN_OK;
}

static fin_status build(fin_train *t, const fin_form_settings *form_settings,
                        const fin_train_settings *settings, const fin_train_start *start,
                        fin_error *err)
{
    fin_train_settings *s = &t->settings;
    fin_settings_defaults(&fin_train_table, s, sizeof *s);
    if (settings)
        *s = *settings;
    fin_status status = fin_settings_validate(&fin_train_table, s, err);
    if (status ||
        (status = fini_form_resolve(t->task, t->form, form_settings, &t->form_settings, err)))
        return status;
    if (s->log_every == FIN_AUTO_INT)
        s->log_every = s->steps >= 100 ? s->steps / 100 : 1;
    t->has_lam = fin_settings_find(t->form->settings, "lam") != NULL;
    t->has_gradient = !fini_no_exact_risk(t->task, t->form);
    t->vectors = s->momentum > 0 ? 4 : 2;
    int64_t d = t->task->settings.d, most = s->engine == FIN_ENGINE_REDUCED ? 2 + t->vectors : 4;
    t->frame = s->engine == FIN_ENGINE_AMBIENT || d < most ? d : most;
    if ((status = check_lam(t, start, err)) || (status = check_start(t, start, err)) ||
        (status = choose_engine(t, err)))
        return status;
    t->width = t->engine->width(t);
    t->cost = s->engine == FIN_ENGINE_POPULATION
                  ? 1
                  : (double)s->batch * (double)t->task->longest * (double)t->engine->block *
                        (t->engine == &fini_reduced_lanes ? 1 : (double)t->frame);
    if (s->init == FIN_INIT_OVERLAPS || s->init == FIN_INIT_VECTORS)
        t->starts = start->count;
    t->lam_count = start ? start->lam.count : 0;
    t->alpha_count = start ? start->alpha.count : 0;
    t->logs = fini_logged_count(s);
    FINI_TRY(check_size(t, err));
    FINI_LAY_OUT(err, &t->arena, "the runs", layout(&t->arena, t));
    FINI_TRY(copy_start(t, start, err));
    return fini_begin(t, err);
}

fin_status fin_train_create(fin_train **out, const fin_task *task, const fin_form *form,
                            const fin_form_settings *form_settings,
                            const fin_train_settings *settings, const fin_train_start *start,
                            fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, task, form);
    FINI_MAKE(err, "the runs", fin_train, t);
    t->task = task;
    t->form = form;
    fin_status status = build(t, form_settings, settings, start, err);
    FINI_HAND_OVER(out, t, status, fin_train_destroy);
}

void fin_train_destroy(fin_train *t)
{
    if (!t)
        return;
    fini_arena_close(&t->arena);
    fini_free(t);
}

const fin_train_settings *fin_train_get_settings(const fin_train *t)
{
    return t ? &t->settings : NULL;
}
