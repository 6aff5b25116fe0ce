/* What the commands that train share: settings, checks, and runs that are finished. */
#include "command/command.h"

#include <string.h>

fin_status fini_train_groups(void *values, fin_group groups[FIN_GROUPS], int *count, fin_error *err)
{
    fini_train_values *v = values;
    fin_status status = fini_model_groups(&v->model, groups, count, err);
    if (status)
        return status;
    groups[(*count)++] = (fin_group){&fin_overlaps_table, &v->overlaps};
    groups[(*count)++] = (fin_group){&fin_train_table, &v->train};
    return FIN_OK;
}

/* ---- schedules ------------------------------------------------------------------------------- */

typedef struct pieces {
    int64_t step[FINI_PIECES];
    double value[FINI_PIECES];
    int count;
} pieces;

static fin_status read_schedule(const char *text, const char *what, pieces *p, fin_error *err)
{
    return fini_parse_pieces(text, what, "0:1,1000:0.5 (STEP:VALUE)", FINI_PIECES, p->step,
                             p->value, &p->count, err);
}

static fin_schedule schedule_of(const pieces *p)
{
    return (fin_schedule){p->count, p->step, p->value};
}

/* What fin_train_create would say, but before anything has run. */
static fin_status check_schedule(const char *text, const char *what, double highest, fin_error *err)
{
    pieces p;
    fin_status status = read_schedule(text, what, &p, err);
    for (int i = 0; i < p.count && !status; i++) {
        if (i == 0 ? p.step[0] != 0 : p.step[i] <= p.step[i - 1])
            status = fini_fail(err, FIN_ERR_ARGUMENT,
                               "%s has a piece from step %lld on; steps must begin with 0 and "
                               "ascend, as in 0:1,1000:0.5",
                               what, (long long)p.step[i]);
        else if (!(p.value[i] >= 0 && p.value[i] <= highest))
            status =
                fini_fail(err, FIN_ERR_ARGUMENT, "%s has the value %g; it must be from 0 to %g",
                          what, p.value[i], highest);
    }
    return status;
}

static fin_status check_schedules(const fini_train_values *values, fin_error *err)
{
    const fin_settings *form = fin_form_table(fini_model_form(&values->model));
    const fin_field *lam = fin_settings_find(form, "lam"), *alpha;
    if (!lam && values->lam_schedule[0])
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s has no lam, so there is no lam_schedule for it",
                         values->model.form);
    fin_status status =
        check_schedule(values->lam_schedule, "lam_schedule", lam ? lam->highest : 0, err);
    alpha = fin_settings_find(&fin_train_table, "alpha");
    return status ? status
                  : check_schedule(values->alpha_schedule, "alpha_schedule", alpha->highest, err);
}

/* ---- the runs -------------------------------------------------------------------------------- */

static fin_status create(const fini_train_values *values, const fin_task *task, fin_train **train,
                         fin_error *err)
{
    pieces lam, alpha;
    fin_status status = read_schedule(values->lam_schedule, "lam_schedule", &lam, err);
    if (!status)
        status = read_schedule(values->alpha_schedule, "alpha_schedule", &alpha, err);
    if (status)
        return status;
    fin_train_start start = {.lam = schedule_of(&lam), .alpha = schedule_of(&alpha)};
    if (values->train.init == FIN_INIT_OVERLAPS) {
        start.count = 1;
        start.overlaps = &values->overlaps;
    }
    return fin_train_create(train, task, fini_model_form(&values->model),
                            &values->model.form_settings, &values->train, &start, err);
}

fin_status fini_train_finish(const fini_train_values *values, const fin_progress *progress,
                             fin_task **task, fin_train **train, fin_error *err)
{
    int flags = values->train.engine == FIN_ENGINE_AMBIENT ? FIN_TASK_AMBIENT : 0;
    *train = NULL;
    fin_status status = fini_model_task(&values->model, values->train.seed, flags, task, err);
    if (!status)
        status = create(values, *task, train, err);
    if (!status)
        status = fin_train_run(*train, values->train.steps, progress, err);
    if (!status)
        return FIN_OK;
    fin_train_destroy(*train);
    fin_task_destroy(*task);
    *train = NULL;
    *task = NULL;
    return status;
}

fin_train_array fini_train_named(const fin_train *train, const char *name)
{
    for (int i = 0; i < fin_train_array_count(train); i++) {
        fin_train_array a;
        if (fin_train_get_array(train, i, &a, NULL) == FIN_OK && strcmp(a.name, name) == 0)
            return a;
    }
    return (fin_train_array){.name = NULL};
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Is the row of this name there, and not at its default? */
static bool is_changed(const fin_settings *table, const char *name, const void *values)
{
    const fin_field *field = fin_settings_find(table, name);
    double now = field ? fin_settings_get(field, values) : 0;
    return field && now != field->fallback && !(fin_is_auto(now) && fin_is_auto(field->fallback));
}

/* One run of no steps: whatever creation has to say about settings, it says it now. The ambient
 * engine needs vectors in R^d even for that; what it alone refuses waits for the run. */
static fin_status try_settings(const fini_train_values *values, fin_error *err)
{
    fini_train_values trial = *values;
    fin_task *task;
    fin_train *train = NULL;
    trial.train.runs = 1;
    trial.train.steps = 0;
    trial.train.risk_samples = 2;
    if (trial.train.engine == FIN_ENGINE_AMBIENT)
        trial.train.engine = FIN_ENGINE_REDUCED;
    fin_status status = fini_model_task(&trial.model, 1, 0, &task, err);
    if (!status)
        status = create(&trial, task, &train, err);
    fin_train_destroy(train);
    fin_task_destroy(task);
    return status;
}

/* Settings that would be ignored: two runs that differ in them only would be the same one. */
static fin_status check_ignored(const fini_train_values *values, fin_error *err)
{
    const fin_settings *form = fin_form_table(fini_model_form(&values->model));
    for (int i = 0; i < fin_overlaps_table.count && values->train.init != FIN_INIT_OVERLAPS; i++)
        if (is_changed(&fin_overlaps_table, fin_overlaps_table.fields[i].name, &values->overlaps))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s is where runs start with init = overlaps; add that, or leave %s "
                             "out",
                             fin_overlaps_table.fields[i].name, fin_overlaps_table.fields[i].name);
    if (values->lam_schedule[0] && is_changed(form, "lam", &values->model.form_settings))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "lam_schedule takes the place of lam; give one or the other");
    if (values->alpha_schedule[0] && is_changed(&fin_train_table, "alpha", &values->train))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "alpha_schedule takes the place of alpha; give one or the other");
    return FIN_OK;
}

fin_status fini_train_check(const void *values, fin_error *err)
{
    const fini_train_values *v = values;
    if (v->train.init == FIN_INIT_VECTORS)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "init = vectors needs a file of vectors, which a study has not; use "
                         "sphere, manifold or overlaps");
    fin_status status = check_schedules(v, err);
    if (!status)
        status = check_ignored(v, err);
    if (!status)
        status = fini_model_check(&v->model, err);
    return status ? status : try_settings(v, err);
}

void fini_train_tidy(void *values)
{
    fini_train_values *v = values;
    fini_model_tidy(&v->model);
    fini_tidy_pieces(v->lam_schedule, sizeof v->lam_schedule);
    fini_tidy_pieces(v->alpha_schedule, sizeof v->alpha_schedule);
}
