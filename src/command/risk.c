/* risk: the risk of a predictor and, beside it, those it should be compared with.
 *
 * Only the numbers in `show` are computed. One that a combination of task and form does not have
 * (FIN_ERR_UNSUPPORTED) is left out, and a note says why; everything else that goes wrong is a failure.
 * Overlaps that no unit vectors have are no failure where there is a formula: the number is what it gives,
 * `unreal` is 1 and a note says so. */
#include "command/command.h"

#include "theory/theory.h"
#include "task/task.h"

#include <math.h>
#include <string.h>

typedef struct risk_values {
    fini_model model;
    char show[128];
    fin_overlaps overlaps;
    fin_risk_settings risk;
} risk_values;

#define SHOW_LIST(S) S(risk) S(oracle) S(star) S(best) S(linear) S(bayes) S(check)
enum {
#define SHOW_PLACE(name) PLACE_##name,
    SHOW_LIST(SHOW_PLACE)
#undef SHOW_PLACE
#define SHOW_BIT(name) SHOW_##name = 1 << PLACE_##name,
        SHOW_LIST(SHOW_BIT)
#undef SHOW_BIT
};
static const char *const show_names[] = {
#define SHOW_NAME(name) #name,
    SHOW_LIST(SHOW_NAME)
#undef SHOW_NAME
        NULL};

static const fin_word words[] = {
    FINI_MODEL_WORDS(risk_values, model),
    FINI_NAMES("show", risk_values, show, "risk",
               "which numbers: a list of risk, oracle, star, best, linear, bayes, check",
               show_names),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"risk", "the expected squared error E (Y - f(X))^2", NULL},
    {"eps2", "its part from label noise (exact risks only)", NULL},
    {"signal", "its part from relevant tokens (exact risks only)", NULL},
    {"noise", "its part from irrelevant tokens (exact risks only)", NULL},
    {"bias", "the square of the mean error (exact risks only)", NULL},
    {"d_kappa", "derivative of the risk in kappa (exact risks only)", NULL},
    {"d_nu", "derivative in nu", NULL},
    {"d_theta", "derivative in theta", NULL},
    {"d_eta", "derivative in eta", NULL},
    {"d_rho", "derivative in rho", NULL},
    {"oracle", "the risk at k = k*, v = v*, same lam", NULL},
    {"lam_star", "the best lam of the oracle (forms with a lam)", NULL},
    {"star", "the oracle's risk at its best lam", NULL},
    {"best", "the least risk of any unit vectors k, v and any lam (exact risks only)", NULL},
    {"best_lam", "lam there", NULL},
    {"best_kappa", "kappa there; the risk is the same with k and v changed in sign (erf)", NULL},
    {"best_nu", "nu there", NULL},
    {"best_theta", "theta there", NULL},
    {"best_eta", "eta there", NULL},
    {"best_rho", "rho there", NULL},
    {"linear", "the best linear predictor's risk", NULL},
    {"attention", "the best linear attention's risk", NULL},
    {"bayes", "the Bayes risk, the least there is (one relevant token)", NULL},
    {"over_bayes", "risk - bayes (where both are shown), on common draws where it is simulated",
     NULL},
    {"star_over_bayes", "star - bayes (where both are shown), in the same way", NULL},
    {"check", "the risk again, by a simulation whose seed is a hash of `seed`", NULL},
    {"z", "risk - check in standard errors; not there if rare samples make up the simulation",
     NULL},
    {"unreal", "1 if no unit vectors have the overlaps: risk is what the formula gives", NULL},
#define RARE                                                                                       \
    "1 if one sample makes up a tenth of it, so that it is too small and its error not known"
    {"risk_rare", RARE, NULL},
    {"oracle_rare", RARE, NULL},
    {"star_rare", RARE, NULL},
    {"bayes_rare", RARE, NULL},
    {"over_bayes_rare", RARE, NULL},
    {"star_over_bayes_rare", RARE, NULL},
    {"check_rare", RARE, NULL},
#undef RARE
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    risk_values *v = values;
    FINI_TRY(fini_model_groups(&v->model, list, count, err));
    list[(*count)++] = (fin_group){&fin_overlaps_table, &v->overlaps};
    list[(*count)++] = (fin_group){&fin_risk_table, &v->risk};
    return FIN_OK;
}

static fin_status check(const void *values, fin_error *err)
{
    return fini_model_check(&((const risk_values *)values)->model, err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const fin_overlaps at_oracle = {.kappa = 1, .nu = 1};

typedef struct setting {
    const risk_values *v;
    const fin_task *task;
    const fin_form *form;
    fin_result *result;
    const fin_progress *progress;
} setting;

static fin_status risk_at(const setting *s, const fin_overlaps *at, const fin_risk_settings *how,
                          fin_risk_report *report, fin_error *err)
{
    return fin_risk(s->task, s->form, &s->v->model.form_settings, at, how, s->progress, report,
                    err);
}

/* A risk and what it is made of. Parts and derivatives come from the same sums as the risk; its error
 * stands for theirs. */
static void add_report(const setting *s, const fin_risk_report *report)
{
    static const char *const names[9] = {"eps2", "signal",  "noise", "bias", "d_kappa",
                                         "d_nu", "d_theta", "d_eta", "d_rho"};
    const double *g = report->gradient, eps = fin_task_get_settings(s->task)->eps;
    const double values[9] = {eps * eps, report->signal, report->noise, report->bias, g[0],
                              g[1],      g[2],           g[3],          g[4]};
    int from = report->has_parts ? 0 : 4, to = report->has_gradient ? 9 : 4;
    fin_estimate e = report->risk;
    fini_result_flagged(s->result, "risk", &e);
    for (int i = from; i < to; i++) {
        e.value = values[i];
        fini_result_estimate(s->result, names[i], &e);
    }
}

/* If rare samples make up the mean, its error is too small by any factor, and z says nothing. */
static fin_status add_check(const setting *s, const fin_estimate *risk, fin_error *err)
{
    fin_risk_settings how = s->v->risk;
    fin_risk_report again;
    how.method = FIN_METHOD_SIMULATION;
    how.seed = fini_seed_apart(how.seed);
    FINI_TRY(risk_at(s, &s->v->overlaps, &how, &again, err));
    fini_result_flagged(s->result, "check", &again.risk);
    double error = hypot(risk->error, again.risk.error), gap = risk->value - again.risk.value;
    if (!again.risk.rare && !risk->rare)
        fini_result_scalar(s->result, "z", gap == 0 ? 0 : gap / error, 0, FIN_HOW_DERIVED,
                           again.risk.samples);
    return FIN_OK;
}

/* ---- what the point before has already --------------------------------------------------------- */

#define SAME(a, b) (memcmp(&(a), &(b), sizeof(a)) == 0)

/* In a sweep: takes these numbers, which depend on the task and how it is simulated and, if `form`, on the
 * form but for lam, from the point before. False if they may differ or are not there. */
static bool repeat(const setting *s, bool form, int count, const char *const names[])
{
    const void *other;
    const fin_result *before = fini_result_before(s->result, &other);
    if (!before)
        return false;
    risk_values was = *(const risk_values *)other;
    const risk_values *v = s->v;
    if (!form) {
        was.risk.method = v->risk.method;
        memcpy(was.model.form, v->model.form, sizeof was.model.form);
        was.model.form_settings = v->model.form_settings;
    }
    was.model.form_settings.lam = v->model.form_settings.lam;
    bool found = false;
    for (int i = 0; SAME(was.model, v->model) && SAME(was.risk, v->risk) &&
                    i < fin_result_scalar_count(before);
         i++) {
        fin_scalar n = fin_result_get_scalar(before, i);
        for (int j = 0; j < count; j++)
            if (strcmp(n.name, names[j]) == 0) {
                fini_result_scalar(s->result, n.name, n.value, n.error, n.how, n.samples);
                found = true;
            }
    }
    return found;
}

/* ---- numbers, continued ------------------------------------------------------------------------ */

/* What is simulated needs the vectors and fails without; a formula does not. */
static void look_at_overlaps(const setting *s)
{
    fin_error why;
    if (!fini_overlaps_realisable(&s->v->overlaps, fin_task_get_settings(s->task)->d, &why))
        return;
    fini_result_scalar(s->result, "unreal", 1, 0, FIN_HOW_DERIVED, 0);
    fini_result_note(s->result, "%s; the risk is what the formula gives", why.message);
}

static fin_status add_risk(const setting *s, unsigned show, fin_error *err)
{
    fin_risk_report report;
    FINI_TRY(risk_at(s, &s->v->overlaps, &s->v->risk, &report, err));
    look_at_overlaps(s);
    add_report(s, &report);
    return show & SHOW_check ? add_check(s, &report.risk, err) : FIN_OK;
}

/* Its parts are those of the risk at kappa = nu = 1. */
static fin_status add_oracle(const setting *s, fin_error *err)
{
    fin_risk_report report;
    FINI_TRY(risk_at(s, &at_oracle, &s->v->risk, &report, err));
    fini_result_flagged(s->result, "oracle", &report.risk);
    return FIN_OK;
}

/* What this combination does not have is left out, all else is a failure. */
static fin_status excuse(const setting *s, const char *name, fin_status status,
                         const fin_error *err)
{
    if (status != FIN_ERR_UNSUPPORTED)
        return status;
    fini_result_note(s->result, "%s: %s", name, err->message);
    return FIN_OK;
}

static fin_status search(const setting *s, const fin_risk_settings *how, double *lam,
                         fin_estimate *star, fin_error *err)
{
    return fin_lam_star(s->task, s->form, &s->v->model.form_settings, how, s->progress, lam, star,
                        err);
}

/* The standard error of a minimum that was searched among simulations: four searches with a quarter
 * of the samples each, and draws of their own. A quarter of the samples has twice the error. */
static fin_status star_error(const setting *s, double *error, fin_error *err)
{
    enum { PARTS = 4 };
    fin_risk_settings how = s->v->risk;
    double lam[PARTS], mean = 0, square = 0;
    how.samples /= PARTS;
    how.seed = fini_seed_apart(how.seed); /* that of `check` */
    *error = NAN;
    for (int i = 0; i < PARTS; i++) {
        fin_estimate star;
        how.seed = fini_seed_apart(how.seed);
        FINI_TRY(search(s, &how, &lam[i], &star, err));
        mean += lam[i] / PARTS;
    }
    for (int i = 0; i < PARTS; i++)
        square += (lam[i] - mean) * (lam[i] - mean);
    *error = sqrt(square / (PARTS - 1)) / sqrt(PARTS);
    return FIN_OK;
}

static void look_at_lam(const setting *s, const char *name, double lam)
{
    if (lam < 1.01 * FIN_LAM_LEAST || lam > 0.99 * FIN_LAM_MOST)
        fini_result_note(s->result, "%s: at the end of the search; the risk still falls there",
                         name);
}

/* With an exact risk only the tolerance of the search is left (a quadrature's rounding lets a minimum wander by its root);
 * with a simulated one it is added to what the draws do, which may be less. */
static fin_status add_star(const setting *s, fin_error *err)
{
    fin_estimate star;
    double lam, error;
    if (repeat(s, true, 3, (const char *const[]){"lam_star", "star", "star_rare"}))
        return FIN_OK;
    fin_status status = search(s, &s->v->risk, &lam, &star, err);
    if (status)
        return excuse(s, "star", status, err);
    double best;
    bool known = s->v->risk.method == FIN_METHOD_AUTO && fini_lam_known(s->task, s->form, &best);
    error = known ? 0 : star.method == FIN_METHOD_QUADRATURE ? 1e-6 * lam : 1e-9 * lam;
    if (star.method == FIN_METHOD_SIMULATION && !known) {
        status = star.rare ? FIN_OK : star_error(s, &error, err);
        error = star.rare ? NAN : hypot(error, 1e-4 * lam);
    }
    if (status == FIN_ERR_UNSUPPORTED) { /* fewer samples do not tell one lam from another */
        status = FIN_OK;
        error = NAN;
    }
    if (status)
        return status;
    fini_result_scalar(s->result, "lam_star", lam, error,
                       known ? FIN_HOW_CLOSED : fini_how_of(star.method), known ? 0 : star.samples);
    fini_result_flagged(s->result, "star", &star);
    look_at_lam(s, "star", lam);
    return FIN_OK;
}

/* Whatever `method` says: the search needs the exact risk. */
static fin_status add_best(const setting *s, fin_error *err)
{
    static const char *const names[] = {"best",       "best_lam", "best_kappa", "best_nu",
                                        "best_theta", "best_eta", "best_rho"};
    fin_best best;
    if (repeat(s, true, 7, names))
        return FIN_OK;
    fin_status status =
        fin_risk_best(s->task, s->form, &s->v->model.form_settings, s->progress, &best, err);
    if (status)
        return excuse(s, "best", status, err);
    const fin_overlaps *o = &best.at;
    const double at[6] = {best.lam, o->kappa, o->nu, o->theta, o->eta, o->rho};
    fini_result_estimate(s->result, "best", &best.risk);
    look_at_lam(s, "best", best.lam);
    for (int i = 0; i < 6; i++)
        fini_result_scalar(s->result, names[1 + i], at[i], 0, fini_how_of(best.risk.method), 0);
    return FIN_OK;
}

static fin_status add_linear(const setting *s, fin_error *err)
{
    fin_estimate linear = fin_risk_linear(s->task, NULL), attention;
    fini_result_estimate(s->result, "linear", &linear);
    fin_status status = fin_risk_linear_attention(s->task, NULL, &attention, err);
    if (!status)
        fini_result_estimate(s->result, "attention", &attention);
    return excuse(s, "attention", status, err);
}

/* `method` speaks of the predictor's risk; the Bayes risk takes the most exact way it has. */
static fin_status add_bayes(const setting *s, fin_error *err)
{
    fin_risk_settings how = s->v->risk;
    fin_estimate bayes;
    if (repeat(s, false, 2, (const char *const[]){"bayes", "bayes_rare"}))
        return FIN_OK;
    how.method = FIN_METHOD_AUTO;
    fin_status status = fin_risk_bayes(s->task, &how, s->progress, &bayes, err);
    if (!status)
        fini_result_flagged(s->result, "bayes", &bayes);
    return excuse(s, "bayes", status, err);
}

/* Without m = 1 there is no Bayes risk, and the note is there already. `rare`: the lam is not to be trusted. */
static fin_status add_over(const setting *s, const char *name, const fin_overlaps *at, double lam,
                           bool rare, fin_error *err)
{
    fin_estimate over;
    fin_form_settings form = s->v->model.form_settings;
    form.lam = lam;
    if (fin_task_get_settings(s->task)->m != 1)
        return FIN_OK;
    fin_status status =
        fin_risk_over_bayes(s->task, s->form, &form, at, &s->v->risk, s->progress, &over, err);
    if (!status) {
        over.rare = over.rare || rare;
        fini_result_flagged(s->result, name, &over);
    }
    return excuse(s, name, status, err);
}

static fin_status add_star_over(const setting *s, fin_error *err)
{
    if (repeat(s, true, 2, (const char *const[]){"star_over_bayes", "star_over_bayes_rare"}))
        return FIN_OK;
    double lam = NAN;
    bool rare = false;
    for (int i = 0; i < fin_result_scalar_count(s->result); i++) {
        fin_scalar n = fin_result_get_scalar(s->result, i);
        lam = strcmp(n.name, "lam_star") == 0 ? n.value : lam;
        rare = rare || strcmp(n.name, "star_rare") == 0;
    }
    if (isnan(lam)) /* a note says why there is no star */
        return FIN_OK;
    return add_over(s, "star_over_bayes", &at_oracle, lam, rare, err);
}

static fin_status add_all(const setting *s, unsigned show, fin_error *err)
{
    if (show & (SHOW_risk | SHOW_check))
        FINI_TRY(add_risk(s, show, err));
    if (show & SHOW_oracle)
        FINI_TRY(add_oracle(s, err));
    if (show & SHOW_star)
        FINI_TRY(add_star(s, err));
    if (show & SHOW_best)
        FINI_TRY(add_best(s, err));
    if (show & SHOW_linear)
        FINI_TRY(add_linear(s, err));
    if (show & SHOW_bayes)
        FINI_TRY(add_bayes(s, err));
    if (show & SHOW_bayes && show & SHOW_risk)
        FINI_TRY(
            add_over(s, "over_bayes", &s->v->overlaps, s->v->model.form_settings.lam, false, err));
    if (show & SHOW_bayes && show & SHOW_star)
        FINI_TRY(add_star_over(s, err));
    FINI_TRY(fini_result_status(s->result, err));
    if (fin_result_scalar_count(s->result) > 0)
        return FIN_OK;
    const char *why = fin_result_note(s->result, 0);
    return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s on %s has none of the numbers %s%s%.300s",
                     s->v->model.form, s->v->model.task, s->v->show, why ? "; " : "",
                     why ? why : "");
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const risk_values *v = values;
    unsigned show;
    fin_task *task = NULL;
    fin_status status = fini_parse_names(v->show, "show", show_names, &show, err);
    if (!status)
        status = fini_model_task(&v->model, v->risk.seed, 0, &task, err);
    if (!status) {
        setting s = {v, task, fini_model_form(&v->model), result, progress};
        status = add_all(&s, show, err);
    }
    fin_task_destroy(task);
    return status;
}

/* ---- many points ------------------------------------------------------------------------------- */

/* Is it a closed form with rows at all points? */
static bool is_formula(const fin_points *points, const fin_form *form, const fin_task_kind *kind)
{
    const risk_values *v = points->values;
    return form->lanes && !kind->odds && strcmp(v->show, "risk") == 0 &&
           v->risk.method <= FIN_METHOD_CLOSED;
}

enum { BLOCK = 1024, NUMBERS = 10 };

static fin_status flag_unreal(fin_sweep *sweep, int64_t at, fin_error *err)
{
    int place = fini_sweep_place(sweep, "unreal");
    if (place < 0)
        return fini_fail_memory(err, sizeof(double), "the sweep");
    fini_sweep_put(sweep, place, at, &(fin_scalar){.value = 1, .how = FIN_HOW_DERIVED});
    return FIN_OK;
}

typedef struct formula {
    const fin_form *form;
    const fin_task_kind *kind;
    const fin_lengths *lengths;
    int places[NUMBERS];
    fin_risk_point row[BLOCK];
    fin_risk_value value[BLOCK];
    double numbers[NUMBERS][BLOCK];
    fin_task_settings given, settled; /* the task of the point before, and what it comes to */
    fini_length_law law;
    fin_overlaps at; /* its overlaps, and whether no vectors have them */
    bool any, unreal;
} formula;

/* What most points have in common with the one before is not worked out again. */
static fin_status settle_point(formula *f, const risk_values *v, fin_error *err)
{
    bool same = f->any && SAME(f->given, v->model.task_settings);
    fin_status status = FIN_OK;
    if (same && SAME(f->at, v->overlaps))
        return FIN_OK;
    f->given = v->model.task_settings;
    f->at = v->overlaps;
    f->any = true;
    if (!same) {
        f->settled = f->given;
        status = fini_task_settle(f->kind, &f->settled, f->lengths, &f->law, err);
    }
    f->unreal = !status && fini_overlaps_realisable(&f->at, f->settled.d, NULL);
    return status;
}

/* As add_report() does. */
static fin_status put_block(formula *f, fin_sweep *sweep, int64_t from, int64_t count,
                            fin_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        const fin_risk_value *value = &f->value[i];
        f->numbers[0][i] = value->risk;
        f->numbers[1][i] = f->row[i].eps * f->row[i].eps;
        f->numbers[2][i] = value->signal;
        f->numbers[3][i] = value->noise;
        f->numbers[4][i] = value->bias;
        for (int g = 0; g < 5; g++)
            f->numbers[5 + g][i] = value->gradient[g];
    }
    for (int i = 0; i < NUMBERS; i++)
        if (!fini_sweep_put_exact(sweep, f->places[i], from, count, f->numbers[i]))
            return fini_fail_memory(err, sizeof f->numbers, "the sweep");
    return FIN_OK;
}

static fin_status one_block(formula *f, fin_points *points, int64_t from, int64_t count,
                            fin_sweep *sweep, fin_error *err)
{
    const risk_values *v = points->values;
    for (int64_t i = 0; i < count; i++) {
        if (!fini_points_go(points, from + i))
            return FIN_ERR_ARGUMENT;
        FINI_TRY(settle_point(f, v, err));
        if (f->unreal)
            FINI_TRY(flag_unreal(sweep, from + i, err));
        f->row[i] = fini_risk_point(&f->settled, f->law.mean, f->law.variance, &v->overlaps,
                                    v->model.form_settings.lam);
    }
    if (fini_risk_rows(f->form, count, f->row, f->value, NULL))
        return FIN_ERR_UNSUPPORTED; /* which one, they say one by one */
    return put_block(f, sweep, from, count, err);
}

static fin_status many(fin_points *points, fin_sweep *sweep, const fin_progress *progress,
                       fin_error *err)
{
    static const char *const names[NUMBERS] = {"risk",    "eps2", "signal",  "noise", "bias",
                                               "d_kappa", "d_nu", "d_theta", "d_eta", "d_rho"};
    const risk_values *v = points->values;
    const fin_task_kind *kind = fin_task_find(v->model.task);
    fini_lengths room;
    const fin_form *form = fini_model_form(&v->model);
    if (!is_formula(points, form, kind))
        return FIN_ERR_UNSUPPORTED;
    FINI_OWN(err, "the sweep", formula, f, 1, 1);
    f->form = form;
    f->kind = kind;
    f->any = false;
    FINI_TRY(fini_model_lengths(&v->model, &room, &f->lengths, err));
    for (int i = 0; i < NUMBERS; i++)
        if ((f->places[i] = fini_sweep_place(sweep, names[i])) < 0)
            return fini_fail_memory(err, sizeof(double), "the sweep");
    for (int64_t from = 0; from < points->n; from += BLOCK) {
        int64_t count = points->n - from < BLOCK ? points->n - from : BLOCK;
        FINI_TRY(one_block(f, points, from, count, sweep, err));
        FINI_TRY(fini_go_on(progress, "risk", (double)(from + count), (double)points->n, err));
    }
    return FIN_OK;
}

static fin_status settle(void *values, fin_error *err)
{
    return fini_model_settle(&((risk_values *)values)->model, err);
}

const fin_command fini_command_risk = {
    .name = "risk",
    .summary = "risk of a predictor, beside oracle, best linear and Bayes",
    .revision = 2,
    .size = sizeof(risk_values),
    .words = words,
    .instead = fini_model_instead,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
    .settle = settle,
    .many = many,
};
