/* A training: from settings to runs.
 *
 * Whoever trains comes through here, with pairs (the tool, Python), with the settings of a command (studies) or with the
 * lines of a file, which are pairs too. */
#include "command/training.h"

#include "train/train.h"

#include <stdio.h>
#include <string.h>

const char *const fini_list_names[FINI_LISTS] = {"lengths", "lam_schedule", "alpha_schedule"};

fin_status fini_train_groups(void *values, fin_group groups[FIN_GROUPS], int *count, fin_error *err)
{
    fini_train_values *v = values;
    FINI_TRY(fini_model_groups(&v->model, groups, count, err));
    groups[(*count)++] = (fin_group){&fin_overlaps_table, &v->overlaps};
    groups[(*count)++] = (fin_group){&fin_train_table, &v->train};
    return FIN_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static fin_status read_list(fini_list *list, const char *text, const char *name, fin_error *err)
{
    const char *example = name == fini_list_names[FINI_LENGTHS] ? "5:0.2,10:0.8 (LENGTH:WEIGHT)"
                                                                : "0:1,1000:0.5 (STEP:VALUE)";
    int64_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    if (most > 1 << 20)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s has %lld pieces; it may have at most %d", name,
                         (long long)most, 1 << 20);
    const size_t text_of_one = 24 + FINI_SHORTEST,
                 each = sizeof(int64_t) + sizeof(double) + text_of_one;
    list->whole = fini_alloc_array(most, each);
    if (!list->whole)
        return fini_fail_memory(err, (size_t)most * each, name);
    list->number = (void *)(list->whole + most);
    list->text = (char *)(list->number + most);
    FINI_TRY(fini_parse_pieces(text, name, example, (int)most, list->whole, list->number,
                               &list->count, err));
    list->text[0] = '\0';
    fini_print_pieces(list->whole, list->number, list->count, list->text,
                      (size_t)most * text_of_one);
    return FIN_OK;
}

/* ---- from texts to settings ------------------------------------------------------------------ */

static fin_status begin(fin_training **out, fin_error *err)
{
    fin_training *t = *out = fini_alloc(sizeof *t);
    if (!t)
        return fini_fail_memory(err, sizeof *t, "a training");
    memset(t, 0, sizeof *t);
    snprintf(t->version, sizeof t->version, "%s", fin_version());
    return FIN_OK;
}

static fin_status read_lists(fin_training *t, const char *const texts[FINI_LISTS], fin_error *err)
{
    for (int i = 0; i < FINI_LISTS; i++)
        FINI_TRY(read_list(&t->lists[i], texts[i], fini_list_names[i], err));
    return FIN_OK;
}

static int which_list(const char *name)
{
    for (int i = 0; i < FINI_LISTS; i++)
        if (fini_same_name(fini_list_names[i], name))
            return i;
    return -1;
}

fin_status fini_training_from_pairs(fin_training **out, const fin_pair *pairs, int count,
                                    fin_error *err)
{
    const char *texts[FINI_LISTS] = {"", "", ""};
    int rest = 0;
    fin_status status = begin(out, err);
    fin_pair *others = status ? NULL : fini_alloc_array(count + 1, sizeof *others);
    if (!status && !others)
        status = fini_fail_memory(err, (size_t)count * sizeof *others, "the settings");
    for (int i = 0; i < count && !status; i++) {
        int list = which_list(pairs[i].name);
        if (list >= 0)
            texts[list] = pairs[i].text;
        else
            others[rest++] = pairs[i];
    }
    if (!status)
        status = fini_command_fill(&fin_training_settings, &(*out)->values, others, rest, err);
    if (!status)
        status = read_lists(*out, texts, err);
    fini_free(others);
    return status;
}

fin_status fini_training_from_values(fin_training **out, const fini_train_values *values,
                                     fin_error *err)
{
    FINI_TRY(begin(out, err));
    (*out)->values = *values;
    return read_lists(*out,
                      (const char *[FINI_LISTS]){values->model.lengths, values->lam_schedule,
                                                 values->alpha_schedule},
                      err);
}

/* ---- what goes together ---------------------------------------------------------------------- */

const fin_instead fini_train_instead[] = {
    FINI_MODEL_INSTEAD,
    {.name = "lam_schedule", .of = "lam"},
    {.name = "alpha_schedule", .of = "alpha"},
    {.name = "log_decade", .of = "log_every"},
    {.name = "init",
     .of = "kappa nu theta eta rho",
     .only = "overlaps",
     .why = "is where runs start"},
    {.name = NULL},
};

/* One run of no steps: whatever creation has to say about settings, it says it now. The ambient
 * engine needs vectors in R^d even for that; what it alone refuses waits for the run. */
fin_status fini_train_check(const void *values, fin_error *err)
{
    fini_train_values trial = *(const fini_train_values *)values;
    fin_training *t;
    if (trial.train.init == FIN_INIT_VECTORS)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "init = vectors needs a file of vectors, which a study has not; use "
                         "sphere, manifold or overlaps");
    trial.train.runs = 1;
    trial.train.steps = 0;
    trial.train.risk_samples = 2;
    if (trial.train.engine == FIN_ENGINE_AMBIENT)
        trial.train.engine = FIN_ENGINE_REDUCED;
    fin_status status = fini_training_from_values(&t, &trial, err);
    if (!status)
        status = fini_training_make_task(t, NULL, err);
    if (!status)
        status = fini_training_make_runs(t, NULL, err);
    fin_training_destroy(t);
    return status;
}

/* ---- making the runs ------------------------------------------------------------------------- */

/* Vectors in R^d are made only where somebody looks at them: they are what limits d. */
fin_status fini_training_make_task(fin_training *t, const uint64_t *seed, fin_error *err)
{
    const fini_train_values *v = &t->values;
    const fini_list *list = &t->lists[FINI_LENGTHS];
    const fin_lengths lengths = {list->count, list->whole, list->number};
    bool vectors = v->train.engine == FIN_ENGINE_AMBIENT || v->train.init == FIN_INIT_VECTORS;
    t->seed = seed ? *seed : (uint64_t)v->train.seed;
    return fin_task_create(&t->task, fin_task_find(v->model.task), &v->model.task_settings,
                           list->count ? &lengths : NULL, t->seed, vectors ? FIN_TASK_AMBIENT : 0,
                           err);
}

static fin_schedule schedule_of(const fini_list *list)
{
    return (fin_schedule){list->count, list->whole, list->number};
}

fin_status fini_training_make_runs(fin_training *t, const fin_training_start *start, fin_error *err)
{
    fini_train_values *v = &t->values;
    fin_train_start first = {.lam = schedule_of(&t->lists[FINI_LAM]),
                             .alpha = schedule_of(&t->lists[FINI_ALPHA])};
    if (v->train.init == FIN_INIT_OVERLAPS) {
        bool given = start && start->overlaps;
        if (given && start->count > 0)
            v->overlaps = start->overlaps[0];
        first.count = given ? start->count : 1;
        first.overlaps = given ? start->overlaps : &v->overlaps;
    } else if (v->train.init == FIN_INIT_VECTORS && start) {
        first.count = start->count;
        first.k = start->k;
        first.v = start->v;
    }
    return fin_train_create(&t->train, t->task, fini_model_form(&v->model), &v->model.form_settings,
                            &v->train, &first, err);
}

/* What is given as vectors, and nothing that would be ignored. */
static fin_status check_start(const fin_training *t, const fin_training_start *start,
                              fin_error *err)
{
    int init = t->values.train.init;
    bool vectors = start && (start->k || start->v || start->path);
    if (vectors && init != FIN_INIT_VECTORS)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a start of vectors goes with init = vectors; add that, or leave it out");
    if (start && start->overlaps && init != FIN_INIT_OVERLAPS)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a start of overlaps goes with init = overlaps; add that, or leave it "
                         "out");
    if (start && !start->k_star != !start->v_star)
        return fini_fail(err, FIN_ERR_ARGUMENT, "k_star and v_star come together; give both");
    return FIN_OK;
}

static fin_status make(fin_training *t, const fin_training_start *start, fin_error *err)
{
    fin_training_start own = start ? *start : (fin_training_start){.count = 0};
    fini_vectors file = {0, NULL, NULL};
    fin_status status = check_start(t, start, err);
    if (!status)
        status = fini_training_make_task(t, own.seed, err);
    if (!status && own.path) {
        status = fini_training_read_start(t, own.path, &file, err);
        own.count = file.count;
        own.k = file.k;
        own.v = file.v;
    }
    if (!status && own.k_star && fin_task_k_star(t->task))
        status = fin_task_set_directions(t->task, own.k_star, own.v_star, err);
    if (!status)
        status = fini_training_make_runs(t, &own, err);
    fini_free_all(file.k, file.v);
    return status;
}

fin_status fin_training_create(fin_training **out, const fin_pair *pairs, int count,
                               const fin_training_start *start, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !count || pairs);
    fin_status status = fini_training_from_pairs(out, pairs, count, err);
    if (!status)
        status = fini_command_void(&fini_command_train, pairs, count, err);
    if (!status)
        status = make(*out, start, err);
    if (!status)
        status = fini_training_describe(*out, err);
    if (!status)
        return FIN_OK;
    fin_training_destroy(*out);
    *out = NULL;
    return status;
}

fin_status fini_training_finish(fin_training **out, const fini_train_values *values,
                                const fin_progress *progress, fin_error *err)
{
    FINI_TRY(fini_training_from_values(out, values, err));
    FINI_TRY(make(*out, NULL, err));
    return fin_train_run((*out)->train, values->train.steps, progress, err);
}

void fin_training_destroy(fin_training *t)
{
    if (!t)
        return;
    fin_train_destroy(t->train);
    fin_task_destroy(t->task);
    for (int i = 0; i < FINI_LISTS; i++)
        fini_free(t->lists[i].whole);
    fini_free_all(t->text, t);
}

/* ---- what it is ------------------------------------------------------------------------------- */

fin_train *fin_training_runs(fin_training *t)
{
    return t ? t->train : NULL;
}

fin_training_parts fin_training_get(const fin_training *t)
{
    if (!t)
        return (fin_training_parts){.task = NULL};
    const fini_train_values *v = &t->values;
    return (fin_training_parts){
        .task = t->task,
        .form = fini_model_form(&v->model),
        .form_settings = &t->train->form_settings,
        .runs = t->train,
        .settings = fin_train_get_settings(t->train),
        .overlaps = v->train.init == FIN_INIT_OVERLAPS ? &v->overlaps : NULL,
        .lengths = t->lists[FINI_LENGTHS].text,
        .lam_schedule = t->lists[FINI_LAM].text,
        .alpha_schedule = t->lists[FINI_ALPHA].text,
        .lam = schedule_of(&t->lists[FINI_LAM]),
        .alpha = schedule_of(&t->lists[FINI_ALPHA]),
        .version = t->version,
    };
}

fin_status fin_training_curvature(const fin_training *t, int64_t run, fin_curvature *out,
                                  fin_error *err)
{
    FINI_NEED(err, t, out);
    fin_run now;
    memset(out, 0, sizeof *out);
    FINI_TRY(fin_train_get_run(t->train, run, &now, err));
    if (now.status == FIN_RUN_DIVERGED)
        return FIN_OK;
    fin_form_settings form = t->values.model.form_settings;
    form.lam = now.now.lam;
    const fin_overlaps at = {now.now.kappa, now.now.nu, now.now.theta, now.now.eta, now.now.rho};
    return fin_risk_curvature(t->task, fini_model_form(&t->values.model), &form, &at, out, err);
}
