/* Bayes risk E Var(Y | X), one relevant token.
 *
 * Y is the v*-part z_J of an unknown token plus noise, so Var(Y | X) = eps^2 + Var_w(z), with w the
 * posterior. The signs of z are not seen by w, hence E Var_w(z) = E sum_l w_l (1 - w_l) z_l^2.
 * Where w does not depend on z at all (gamma = 1, and the task max) E[z^2] = 1 comes out too and
 * what is left is the quadrature of posterior.c. Otherwise it is simulated, in O(L) a sample at any
 * d: a token is X.k*, X.v* and a chi-square for the rest of |X|^2.
 *
 * Errors of the posterior are rare (at d = 400, one in 10^40), so sampling from the task would never
 * meet one. With r the ratio of the relevant token's density to N(0, I), w_l = r_l / sum r, and
 * averaging over the location gives an expectation over exchangeable tokens N(0, I),
 *
 *     E Var_w(z) = (L-1) E_0[ r_1 r_2 / (r_1 + ... + r_L) z_1^2 ].
 *
 * Tokens 1 and 2 are drawn half-way instead, with density sqrt(r) N(0, I) / Z: normal, with
 *
 *     mean mu/(1+gamma^2) k*,  variance t^2 = 2 gamma^2/(1+gamma^2),
 *     Z = E_0[sqrt r] = (2 gamma/(1+gamma^2))^(d/2) exp(-mu^2 / (4 (1+gamma^2))).
 *
 * What remains to be averaged is of order one:
 *
 *     E Var_w(z) = Z^2 E[ (L-1) sqrt(r_1 r_2)/(r_1 + ... + r_L) (z_1^2 + z_2^2)/2 ].
 */
#include "theory/theory.h"

#include "finetti/random.h"

#include <math.h>

typedef struct model {
    const fin_task *task;
    double lam, c; /* log r = lam X.k* + c |X|^2 + const */
    uint64_t seed;
} model;

static double draw(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = fini_length(q->task, q->seed, FINI_STREAM_BAYES_LENGTH, sample);
    double *odds = scratch, *g = odds + q->task->longest, g2 = s->gamma * s->gamma;
    if (L == 1)
        return 0;
    fin_random norms;
    fin_random_open(&norms, q->seed, FINI_STREAM_BAYES_NORMS, sample);
    fin_random_normals_f64(q->seed, FINI_STREAM_BAYES_TOKENS, sample, 0, 2 * L, g);
    double t = sqrt(2 * g2 / (1 + g2)), half = s->mu / (1 + g2), z2 = 0, top = -INFINITY;
    for (int64_t l = 0; l < L; l++) {
        double scale = l < 2 ? t : 1, chi = scale * g[2 * l] + (l < 2 ? half : 0);
        double z = scale * g[2 * l + 1];
        double rest = s->d > 2 ? fin_random_chi_square(&norms, (double)(s->d - 2)) : 0;
        odds[l] = q->lam * chi + q->c * (chi * chi + z * z + scale * scale * rest);
        top = odds[l] > top ? odds[l] : top;
        z2 += l < 2 ? z * z : 0;
    }
    double total = 0;
    for (int64_t l = 0; l < L; l++)
        total += exp(odds[l] - top);
    return (double)(L - 1) * exp((odds[0] + odds[1]) / 2 - top) / total * z2 / 2;
}

static fin_status simulate(const fin_task *task, const fin_risk_settings *settings,
                           const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    const fin_task_settings *s = &task->settings;
    double g2 = s->gamma * s->gamma;
    model q = {.task = task, .seed = (uint64_t)settings->seed};
    fin_task_bayes_parameters(task, &q.lam, &q.c);
    fini_simulation simulation = {.draw = draw,
                                  .model = &q,
                                  .samples = settings->samples,
                                  .scratch = 3 * task->longest,
                                  .weight = 4 * task->length_mean,
                                  .what = "Bayes risk"};
    fin_estimate scaled;
    FINI_TRY(fini_simulate(&simulation, progress, &scaled, err));
    /* 2 gamma/(1+gamma^2) = 1 - (1-gamma)^2/(1+gamma^2): exactly 1 for gamma = 1. */
    double gap = (1 - s->gamma) * (1 - s->gamma) / (1 + g2);
    double Z2 = exp((double)s->d * log1p(-gap) - s->mu * s->mu / (2 * (1 + g2)));
    *risk = scaled;
    risk->value = s->eps * s->eps + Z2 * scaled.value;
    risk->error = Z2 * scaled.error;
    return FIN_OK;
}

/* With odds and more lengths than are averaged over, or odds that are not linear. */
static fin_status simulate_odds(const fin_task *task, const fin_risk_settings *settings,
                                const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    fin_risk_report report;
    fin_overlaps oracle = {1, 1, 0, 0, 0};
    FINI_TRY(fini_risk_simulated(task, NULL, NULL, &oracle, settings, progress, &report, err));
    *risk = report.risk;
    return FIN_OK;
}

fin_status fin_risk_bayes(const fin_task *task, const fin_risk_settings *settings,
                          const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, task, risk);
    const fin_task_settings *s = &task->settings;
    fin_risk_settings how;
    settings = fini_or_defaults(&fin_risk_table, settings, &how);
    int method = settings->method;
    FINI_TRY(fin_settings_validate(&fin_risk_table, settings, err));
    if (s->m != 1)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the Bayes risk is computed for m = 1 only, here m = %lld",
                         (long long)s->m);
    /* With gamma = 0 the relevant token is the constant mu k*, and Y is noise; one token is known.
     */
    if (s->gamma == 0 || task->longest == 1) {
        *risk = (fin_estimate){s->eps * s->eps, 0, FIN_METHOD_CLOSED, 0, 0};
        return FIN_OK;
    }
    const fin_task_kind *kind = task->kind;
    bool exact = s->gamma == 1 && fini_few_lengths(task) && (kind->lam || !kind->odds);
    if (method == FIN_METHOD_CLOSED || (method == FIN_METHOD_QUADRATURE && !exact))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the Bayes risk of %s with gamma = %g has no %s; use %s", kind->name,
                         s->gamma, method == FIN_METHOD_CLOSED ? "closed form" : "quadrature",
                         exact ? "quadrature" : "simulation");
    if (exact && method != FIN_METHOD_SIMULATION) {
        fin_estimate mean;
        FINI_TRY(kind->lam ? fini_over_lengths(task, fin_max_bayes, kind->lam(s), &mean, err)
                           : fini_over_lengths(task, fin_spiked_bayes, s->mu * s->mu, &mean, err));
        *risk = mean;
        risk->value += s->eps * s->eps;
        return FIN_OK;
    }
    return kind->odds ? simulate_odds(task, settings, progress, risk, err)
                      : simulate(task, settings, progress, risk, err);
}

/* Are the form's weights the posterior of the location, f = E[Y | X]? Then what a simulation finds above Bayes is rounding. */
static bool is_posterior(const fin_task *task, const fin_form *form, const fin_form_settings *fs,
                         const fin_overlaps *o)
{
    double lam, c, bayes_lam, bayes_c;
    if (!form->scores || (task->kind->odds && !task->kind->lam) || o->kappa != 1 || o->nu != 1 ||
        o->theta != 0 || o->eta != 0 || o->rho != 0)
        return false;
    form->scores(fs, &lam, &c);
    fin_task_bayes_parameters(task, &bayes_lam, &bayes_c);
    return lam == bayes_lam && c == bayes_c;
}

fin_status fin_risk_over_bayes(const fin_task *task, const fin_form *form,
                               const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                               const fin_risk_settings *settings, const fin_progress *progress,
                               fin_estimate *over, fin_error *err)
{
    FINI_NEED(err, task, form, over);
    fin_form_settings fs;
    fin_overlaps at;
    fin_risk_settings how;
    fin_risk_report report;
    fin_estimate bayes;
    overlaps = fini_or_defaults(&fin_overlaps_table, overlaps, &at);
    how = *(const fin_risk_settings *)fini_or_defaults(&fin_risk_table, settings, &how);
    FINI_TRY(fin_risk(task, form, form_settings, overlaps, &how, progress, &report, err));
    if (report.risk.method == FIN_METHOD_SIMULATION) {
        if (task->settings.m != 1 || task->settings.gamma == 0)
            return fini_fail(err, FIN_ERR_UNSUPPORTED,
                             "the risk above Bayes is simulated for m = 1 and gamma > 0 only");
        FINI_TRY(fini_form_resolve(task, form, form_settings, &fs, err));
        FINI_TRY(fini_excess_simulated(task, form, &fs, overlaps, &how, progress, over, err));
        if (is_posterior(task, form, &fs, overlaps)) {
            over->rare = 0;
            over->error = fmax(over->error, over->value);
        }
        return FIN_OK;
    }
    how.method = FIN_METHOD_AUTO;
    FINI_TRY(fin_risk_bayes(task, &how, progress, &bayes, err));
    *over = bayes.method == FIN_METHOD_CLOSED ? report.risk : bayes;
    over->value = report.risk.value - bayes.value;
    over->error = report.risk.error + bayes.error;
    return FIN_OK;
}
