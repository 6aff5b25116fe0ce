/* fin_risk: picks the most exact way there is; and the best linear predictor and lambda*. */
#include "theory/theory.h"

#include "finetti/math.h"
#include "math/small.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_risk_settings
FIN_TABLE(, fin_risk_table, "risk", FIN_RISK_FIELDS);

const char *fin_method_name(fin_method method)
{
    static const char *const names[] = {"auto", "closed form", "quadrature", "simulation"};
    return (unsigned)method < sizeof names / sizeof *names ? names[method] : "unknown";
}

void fini_risk_closed(const fin_task *task, const fin_form *form, const fin_form_settings *fs,
                      const fin_overlaps *o, fin_risk_report *report)
{
    const fin_task_settings *s = &task->settings;
    fini_moments moments;
    *report = (fin_risk_report){.risk.method = FIN_METHOD_CLOSED};
    form->moments(fs, s->mu * o->kappa, s->gamma, moments.m[0], moments.h[0]);
    form->moments(fs, 0, 1, moments.m[1], moments.h[1]);
    fini_risk_from_moments(task, o, &moments, report);
}

static fin_status closed_form_of_rows(const fin_task *task, const fin_form *form,
                                      const fin_form_settings *fs, const fin_overlaps *o,
                                      fin_risk_report *report, fin_error *err)
{
    fin_risk_point point =
        fini_risk_point(&task->settings, task->length_mean, task->length_variance, o, fs->lam);
    fin_risk_value value;
    FINI_TRY(fini_risk_rows(form, 1, &point, &value, err));
    *report = (fin_risk_report){.risk = {value.risk, 0, FIN_METHOD_CLOSED, 0, 0},
                                .has_parts = 1,
                                .has_gradient = 1,
                                .signal = value.signal,
                                .noise = value.noise,
                                .bias = value.bias};
    for (int i = 0; i < 5; i++)
        report->gradient[i] = value.gradient[i];
    return FIN_OK;
}

typedef struct activation {
    const fin_form *form;
    const fin_form_settings *settings;
} activation;

static double activate(double chi, void *user)
{
    const activation *a = user;
    return a->form->value(a->settings, chi);
}

static fin_status lam_auto(const fin_task *task, const fin_form *form, double *lam, fin_error *err);

fin_status fini_form_resolve(const fin_task *task, const fin_form *form,
                             const fin_form_settings *given, fin_form_settings *out, fin_error *err)
{
    fin_form_settings room;
    double lam, c;
    memset(&room, 0, sizeof room);
    *out = *(const fin_form_settings *)fini_or_defaults(form->settings, given, &room);
    bool left = fin_is_auto(out->lam) || fin_is_auto(out->c);
    if (left && !form->needs_norm2) {
        FINI_TRY(lam_auto(task, form, &out->lam, err));
        return fini_form_check(form, out, err);
    }
    if (left && task->settings.gamma == 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "with gamma = 0 the relevant token is a constant and has no posterior; "
                         "give lam and c");
    if (left && task->kind->odds && !task->kind->lam)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the posterior of %s is no softmax of lam X.k* + c |X|^2; give lam and c",
                         task->kind->name);
    fin_task_bayes_parameters(task, &lam, &c);
    out->lam = fin_is_auto(out->lam) ? lam : out->lam;
    out->c = fin_is_auto(out->c) ? c : out->c;
    return fini_form_check(form, out, err);
}

const char *fini_no_exact_risk(const fin_task *task, const fin_form *form)
{
    return !form->elementwise ? "a weight depends on all tokens at once"
           : task->kind->odds ? "relevance depends on all tokens at once"
                              : NULL;
}

fin_status fin_risk(const fin_task *task, const fin_form *form,
                    const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                    const fin_risk_settings *settings, const fin_progress *progress,
                    fin_risk_report *report, fin_error *err)
{
    FINI_NEED(err, task, form, report);
    fin_form_settings fs;
    fin_overlaps at;
    fin_risk_settings how;
    fin_status status;
    overlaps = fini_or_defaults(&fin_overlaps_table, overlaps, &at);
    settings = fini_or_defaults(&fin_risk_table, settings, &how);
    if ((status = fini_form_resolve(task, form, form_settings, &fs, err)) ||
        (status = fin_settings_validate(&fin_overlaps_table, overlaps, err)) ||
        (status = fin_settings_validate(&fin_risk_table, settings, err)))
        return status;
    const char *why = fini_no_exact_risk(task, form);
    int method = settings->method;
    if (why && form->scores && method != FIN_METHOD_SIMULATION &&
        !(why = fini_no_softmax_risk(task, form, &fs, overlaps)) && method != FIN_METHOD_CLOSED) {
        status = fini_risk_softmax(task, form, &fs, overlaps, report, err);
        if (status != FIN_ERR_NUMERIC || method == FIN_METHOD_QUADRATURE)
            return status;
        why = "the quadrature does not settle";
    }
    if (method == FIN_METHOD_AUTO)
        method = why             ? FIN_METHOD_SIMULATION
                 : form->moments ? FIN_METHOD_CLOSED
                                 : FIN_METHOD_QUADRATURE;
    if (method != FIN_METHOD_SIMULATION && why)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "there is no closed form or quadrature for %s on %s: %s; use simulation",
                         form->name, task->kind->name, why);
    if (method == FIN_METHOD_CLOSED && !form->moments)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s has no closed form; use quadrature",
                         form->name);
    if (method == FIN_METHOD_SIMULATION)
        return fini_risk_simulated(task, form, &fs, overlaps, settings, progress, report, err);
    if (method == FIN_METHOD_QUADRATURE)
        return fin_risk_activation(task, activate, &(activation){form, &fs}, overlaps,
                                   settings->nodes, report, err);
    if (form->lanes)
        return closed_form_of_rows(task, form, &fs, overlaps, report, err);
    fini_risk_closed(task, form, &fs, overlaps, report);
    return FIN_OK;
}

/* c sum_l X_l.v*:  E[Y S] = m gamma^2, E[S^2] = m gamma^2 + E[L] - m  (gamma = 1 for max). */
fin_estimate fin_risk_linear(const fin_task *task, double *coefficient)
{
    if (!task)
        return (fin_estimate){.value = NAN};
    const fin_task_settings *s = &task->settings;
    double signal = (double)s->m * s->gamma * s->gamma, noise = task->length_mean - (double)s->m;
    double c = signal + noise > 0 ? signal / (signal + noise) : 0;
    if (coefficient)
        *coefficient = c;
    /* signal - signal^2/(signal + noise), without the subtraction */
    fin_estimate risk = {s->eps * s->eps + c * noise, 0, FIN_METHOD_CLOSED, 0, 0};
    return risk;
}

/* ---- lambda* -------------------------------------------------------------------------------- */

typedef struct search {
    const fin_task *task;
    const fin_form *form;
    fin_form_settings form_settings;
    const fin_overlaps *at;
    fin_risk_settings settings;
    const fin_progress *progress;
    fin_status status;
    fin_error error;
} search;

static const double unusable = 1e100; /* finite, for Brent's parabolas */

/* A mean that rare samples make up is too small by any factor, and would win against all others. */
static double risk_at(double log_lam, void *user)
{
    search *s = user;
    fin_risk_report report;
    if (s->status)
        return INFINITY;
    s->form_settings.lam = exp(log_lam);
    s->status = fin_risk(s->task, s->form, &s->form_settings, s->at, &s->settings, s->progress,
                         &report, &s->error);
    return s->status ? INFINITY : report.risk.rare ? unusable : report.risk.value;
}

enum { GRID = 56 };

/* The least of a grid and of what Brent's method finds beside it. *edge: the grid knows no better because rare
 * samples make up what comes next. */
static fin_status least_risk(search *s, bool simulated, double *at, bool *edge, fin_error *err)
{
    const double low = log(FIN_LAM_LEAST), high = log(FIN_LAM_MOST), step = (high - low) / GRID;
    const int64_t samples = s->settings.samples;
    double values[GRID + 1], least;
    if (simulated && samples > 4096)
        s->settings.samples = samples / 16 > 4096 ? samples / 16 : 4096;
    int best = 0;
    for (int i = 0; i <= GRID; i++) {
        if (!simulated && fini_report(s->progress, "best lam", i, GRID))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
        values[i] = risk_at(low + i * step, s);
        best = values[i] < values[best] ? i : best;
    }
    if (s->status) /* the reason, not what the search made of it */
        return fini_fail(err, s->status, "%s", s->error.message);
    if (values[best] == unusable)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "rare samples make up the risk at every lam, so that none is seen to be best; "
            "more samples may help");
    s->settings.samples = samples;
    int from = best > 0 ? best - 1 : 0, to = best < GRID ? best + 1 : GRID;
    *edge = values[from] == unusable || values[to] == unusable;
    fin_status status = fini_brent(risk_at, s, low + from * step, low + to * step,
                                   simulated ? 1e-4 : 1e-9, at, &least, err);
    return s->status ? fini_fail(err, s->status, "%s", s->error.message) : status;
}

fin_status fini_lam_best(const fin_task *task, const fin_form *form,
                         const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                         const fin_risk_settings *settings, const fin_progress *progress,
                         double *lam, fin_estimate *risk, fin_error *err)
{
    if (form->needs_norm2 || !fin_settings_find(form->settings, "lam"))
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s has no lam to choose", form->name);
    fin_form_settings fs;
    fin_risk_settings how;
    form_settings = fini_or_defaults(form->settings, form_settings, &fs);
    settings = fini_or_defaults(&fin_risk_table, settings, &how);
    search s = {.task = task,
                .form = form,
                .form_settings = *form_settings,
                .at = overlaps,
                .settings = *settings,
                .progress = progress};
    bool edge = false;
    if (settings->method != FIN_METHOD_AUTO || overlaps->kappa != 1 || overlaps->nu != 1 ||
        !fini_lam_known(task, form, &s.form_settings.lam)) {
        /* One way at all lam: an exact risk would be compared with a simulated one. */
        s.form_settings.lam = 1;
        if (settings->method == FIN_METHOD_AUTO && fini_no_exact_risk(task, form) &&
            (task->kind->odds || fini_no_softmax_risk(task, form, &s.form_settings, overlaps)))
            s.settings.method = FIN_METHOD_SIMULATION;
        double at;
        FINI_TRY(least_risk(&s, s.settings.method == FIN_METHOD_SIMULATION, &at, &edge, err));
        s.form_settings.lam = exp(at);
    }
    fin_risk_report report;
    FINI_TRY(fin_risk(task, form, &s.form_settings, overlaps, &s.settings, progress, &report, err));
    *lam = s.form_settings.lam;
    *risk = report.risk;
    risk->rare = risk->rare || edge;
    return FIN_OK;
}

fin_status fin_lam_star(const fin_task *task, const fin_form *form,
                        const fin_form_settings *form_settings, const fin_risk_settings *settings,
                        const fin_progress *progress, double *lam, fin_estimate *risk,
                        fin_error *err)
{
    FINI_NEED(err, task, form, lam, risk);
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    return fini_lam_best(task, form, form_settings, &oracle, settings, progress, lam, risk, err);
}

/* ---- lam = auto ------------------------------------------------------------------------------ */

/* By quadrature, to 1e-4 (the risk is flat there), near what is best of two tokens: their scores differ by
 * N(+-mu, 1 + gamma^2), whose log odds are 2 mu / (1 + gamma^2) times the difference. More tokens move it. */
static fin_status lam_near(search *s, double *lam, fin_error *err)
{
    const fin_task_settings *t = &s->task->settings;
    double guess = 2 * fabs(t->mu) / (1 + t->gamma * t->gamma), at, least;
    *lam = fmin(guess, FIN_LAM_MOST);
    s->settings.method = FIN_METHOD_QUADRATURE;
    s->form_settings.lam = 1;
    if (!(guess > 10 * FIN_LAM_LEAST) || t->gamma == 0 || guess > FIN_LAM_MOST)
        return FIN_OK;
    fin_status status =
        fini_brent(risk_at, s, log(guess) - 6, log(guess) + 2 + log1p(t->gamma * t->gamma), 1e-4,
                   &at, &least, err);
    if (s->status == FIN_ERR_NUMERIC) /* too steep for the quadrature: few rivals there */
        return FIN_OK;
    if (s->status)
        return fini_fail(err, s->status, "%s", s->error.message);
    *lam = least > 0 ? exp(at) : *lam; /* 0: below all numbers */
    return status;
}

/* What was found last, for laws of L that the settings say: a study's runs mostly differ in their seeds alone. */
static _Thread_local struct {
    const fin_task_kind *kind;
    const fin_form *form;
    fin_task_settings settings;
    double lam;
} last;

static bool is_last(const fin_task *task, const fin_form *form)
{
    return last.kind == task->kind && last.form == form && task->lengths == 1 &&
           memcmp(&last.settings, &task->settings, sizeof last.settings) == 0;
}

/* The best lam at k = k*, v = v* that is known: of the posterior, by quadrature, else (m > 1) among simulations. With more
 * than 64 lengths it is that of the mean length. */
static fin_status lam_auto(const fin_task *task, const fin_form *form, double *lam, fin_error *err)
{
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    fin_task bare = *task; /* borrowed; without label noise, in which a small risk would drown */
    search s = {.task = &bare, .form = form, .at = &oracle};
    bare.settings.eps = 0;
    if (fini_lam_known(task, form, lam))
        return FIN_OK;
    *lam = FIN_LAM_MOST;
    if (task->settings.m == 1 && task->kind->odds && task->kind->lam) /* hardmax is the best */
        return FIN_OK;
    if (is_last(&bare, form)) {
        *lam = last.lam;
        return FIN_OK;
    }
    fin_task *mean = NULL;
    fin_status status = FIN_OK;
    if (!fini_few_lengths(task)) {
        fin_task_settings one = bare.settings;
        one.L = one.L_min = llround(task->length_mean);
        FINI_TRY(fin_task_create(&mean, task->kind, &one, NULL, 1, 0, err));
        s.task = mean;
    }
    fin_settings_defaults(&fin_risk_table, &s.settings, sizeof s.settings);
    if (task->settings.m == 1 && !task->kind->odds) {
        status = lam_near(&s, lam, err);
    } else {
        fin_estimate risk;
        s.settings.samples = (int64_t)fmax(256, fmin(20000, 2e5 / task->length_mean));
        status = fin_lam_star(s.task, form, &s.form_settings, &s.settings, NULL, lam, &risk, err);
    }
    fin_task_destroy(mean);
    if (status == FIN_ERR_UNSUPPORTED)
        return fini_fail(err, status, "no best lam of %s is known here; give lam", form->name);
    if (!status && bare.lengths == 1) {
        last.kind = bare.kind;
        last.form = form;
        last.settings = bare.settings;
        last.lam = *lam;
    }
    return status;
}
