/* risk: the risk of a predictor and, beside it, those it should be compared with.
 *
 * A number that a combination of task and form does not have is left out; the reader of a store
 * sees that it is not there. Only the numbers in `show` are computed. */
#include "command/command.h"

#include <math.h>
#include <string.h>

typedef struct risk_values {
    fini_model model;
    char show[128];
    fin_overlaps overlaps;
    fin_risk_settings risk;
} risk_values;

#define SHOW_LIST(S) S(risk) S(oracle) S(star) S(linear) S(bayes) S(check)
enum {
#define SHOW_PLACE(name) PLACE_##name,
    SHOW_LIST(SHOW_PLACE)
#undef SHOW_PLACE
        SHOWS,
#define SHOW_BIT(name) SHOW_##name = 1 << PLACE_##name,
    SHOW_LIST(SHOW_BIT)
#undef SHOW_BIT
};
static const char *const show_names[SHOWS] = {
#define SHOW_NAME(name) #name,
    SHOW_LIST(SHOW_NAME)
#undef SHOW_NAME
};

static const fin_word words[] = {
    FINI_MODEL_WORDS(risk_values, model),
    {"show", offsetof(risk_values, show), sizeof(((risk_values *)NULL)->show), "risk",
     "which numbers: a list of risk, oracle, star, linear, bayes, check"},
    {NULL, 0, 0, NULL, NULL},
};

static const fin_output outputs[] = {
    {"risk", "E (Y - f(X))^2 at these overlaps", NULL},
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
    {"linear", "the best linear predictor's risk", NULL},
    {"attention", "the best linear attention's risk (spiked, m = 1, one length)", NULL},
    {"bayes", "the Bayes risk (m = 1)", NULL},
    {"check", "the risk again, by a simulation whose seed is a hash of `seed`", NULL},
    {"z", "(risk - check) / standard error; not there if rare samples make up the simulation",
     NULL},
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    risk_values *v = values;
    fin_status status = fini_model_groups(&v->model, list, count, err);
    if (status)
        return status;
    list[(*count)++] = (fin_group){&fin_overlaps_table, &v->overlaps};
    list[(*count)++] = (fin_group){&fin_risk_table, &v->risk};
    return FIN_OK;
}

static fin_status check(const void *values, fin_error *err)
{
    const risk_values *v = values;
    unsigned show;
    fin_status status = fini_show_parse(v->show, show_names, SHOWS, &show, err);
    return status ? status : fini_model_check(&v->model, err);
}

static void tidy(void *values)
{
    risk_values *v = values;
    fini_show_tidy(v->show, sizeof v->show, show_names, SHOWS);
    fini_model_tidy(&v->model);
}

/* ---- numbers --------------------------------------------------------------------------------- */

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

/* Parts and derivatives come from the same sums as the risk; its error stands for theirs. */
static void add_parts(const setting *s, const fin_risk_report *report)
{
    static const char *const gradient[5] = {"d_kappa", "d_nu", "d_theta", "d_eta", "d_rho"};
    const char *const names[3] = {"signal", "noise", "bias"};
    const double parts[3] = {report->signal, report->noise, report->bias};
    fin_estimate e = report->risk;
    for (int i = 0; report->has_parts && i < 3; i++) {
        e.value = parts[i];
        fini_result_estimate(s->result, names[i], &e);
    }
    for (int i = 0; report->has_gradient && i < 5; i++) {
        e.value = report->gradient[i];
        fini_result_estimate(s->result, gradient[i], &e);
    }
}

/* If rare samples make up the mean, its error is too small by any factor, and z says nothing. */
static fin_status add_check(const setting *s, const fin_estimate *risk, fin_error *err)
{
    fin_risk_settings how = s->v->risk;
    fin_risk_report again;
    how.method = FIN_METHOD_SIMULATION;
    how.seed = fini_seed_apart(how.seed);
    fin_status status = risk_at(s, &s->v->overlaps, &how, &again, err);
    if (status)
        return status;
    fini_result_estimate(s->result, "check", &again.risk);
    double error = hypot(risk->error, again.risk.error), gap = risk->value - again.risk.value;
    if (!again.risk.rare && !risk->rare)
        fini_result_scalar(s->result, "z", gap == 0 ? 0 : gap / error, 0, FIN_HOW_DERIVED,
                           again.risk.samples);
    return FIN_OK;
}

/* A draw of overlaps may hit ones that no vectors have, so this is told by the run and not by the
 * study. */
static fin_status add_risk(const setting *s, unsigned show, fin_error *err)
{
    fin_risk_report report;
    fin_status status =
        fin_overlaps_realisable(&s->v->overlaps, fin_task_get_settings(s->task)->d, err);
    if (!status)
        status = risk_at(s, &s->v->overlaps, &s->v->risk, &report, err);
    if (status)
        return status;
    fini_result_estimate(s->result, "risk", &report.risk);
    add_parts(s, &report);
    return show & SHOW_check ? add_check(s, &report.risk, err) : FIN_OK;
}

static fin_status add_oracle(const setting *s, fin_error *err)
{
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    fin_risk_report report;
    fin_status status = risk_at(s, &oracle, &s->v->risk, &report, err);
    if (!status)
        fini_result_estimate(s->result, "oracle", &report.risk);
    return status;
}

/* What this combination does not have is left out, all else is a failure. */
static fin_status excuse(fin_status status)
{
    return status == FIN_ERR_UNSUPPORTED ? FIN_OK : status;
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
    if (how.samples < 2)
        return FIN_OK;
    for (int i = 0; i < PARTS; i++) {
        fin_estimate star;
        how.seed = fini_seed_apart(how.seed);
        fin_status status = search(s, &how, &lam[i], &star, err);
        if (status)
            return status;
        mean += lam[i] / PARTS;
    }
    for (int i = 0; i < PARTS; i++)
        square += (lam[i] - mean) * (lam[i] - mean);
    *error = sqrt(square / (PARTS - 1)) / sqrt(PARTS);
    return FIN_OK;
}

/* With an exact risk only the tolerance of the search is left; with a simulated one it is added to
 * what the draws do, which may be less. */
static fin_status add_star(const setting *s, fin_error *err)
{
    fin_estimate star;
    double lam, error;
    fin_status status = search(s, &s->v->risk, &lam, &star, err);
    if (status)
        return excuse(status);
    error = 1e-9 * lam;
    if (star.method == FIN_METHOD_SIMULATION) {
        status = star_error(s, &error, err);
        error = hypot(error, 1e-4 * lam);
    }
    if (status)
        return status;
    fini_result_scalar(s->result, "lam_star", lam, error, fini_how_of(star.method), star.samples);
    fini_result_estimate(s->result, "star", &star);
    return FIN_OK;
}

static void add_linear(const setting *s)
{
    const fin_task_settings *t = fin_task_get_settings(s->task);
    fin_estimate linear = fin_risk_linear(s->task, NULL);
    fini_result_estimate(s->result, "linear", &linear);
    bool spiked = strcmp(s->v->model.task, "spiked") == 0;
    if (spiked && t->m == 1 && fin_task_length_variance(s->task) == 0 && t->L_min == t->L)
        fini_result_scalar(s->result, "attention",
                           t->eps * t->eps + fin_spiked_linear(t->snr, t->L), 0, FIN_HOW_CLOSED, 0);
}

/* `method` speaks of the predictor's risk; the Bayes risk takes the most exact way it has. */
static fin_status add_bayes(const setting *s, fin_error *err)
{
    fin_risk_settings how = s->v->risk;
    fin_estimate bayes;
    how.method = FIN_METHOD_AUTO;
    fin_status status = fin_risk_bayes(s->task, &how, s->progress, &bayes, err);
    if (!status)
        fini_result_estimate(s->result, "bayes", &bayes);
    return excuse(status);
}

static fin_status add_all(const setting *s, unsigned show, fin_error *err)
{
    fin_status status = FIN_OK;
    if (show & (SHOW_risk | SHOW_check))
        status = add_risk(s, show, err);
    if (!status && show & SHOW_oracle)
        status = add_oracle(s, err);
    if (!status && show & SHOW_star)
        status = add_star(s, err);
    if (!status && show & SHOW_linear)
        add_linear(s);
    if (!status && show & SHOW_bayes)
        status = add_bayes(s, err);
    if (!status)
        status = fini_result_status(s->result, err);
    if (!status && fin_result_scalar_count(s->result) == 0)
        status = fini_fail(err, FIN_ERR_UNSUPPORTED, "%s on %s has none of the numbers %s",
                           s->v->model.form, s->v->model.task, s->v->show);
    return status;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const risk_values *v = values;
    unsigned show;
    fin_task *task = NULL;
    fin_status status = fini_show_parse(v->show, show_names, SHOWS, &show, err);
    if (!status)
        status = fini_model_task(&v->model, v->risk.seed, 0, &task, err);
    if (!status) {
        setting s = {v, task, fini_model_form(&v->model), result, progress};
        status = add_all(&s, show, err);
    }
    fin_task_destroy(task);
    return status;
}

const fin_command fini_command_risk = {
    .name = "risk",
    .summary = "risk of a predictor, beside oracle, best linear and Bayes",
    .revision = 1,
    .size = sizeof(risk_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .tidy = tidy,
    .run = run,
};
