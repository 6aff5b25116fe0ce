/* The risk of softmax attention (and of hardmax, its limit) without simulation, one relevant token.
 *
 * On M (theta = eta = rho = 0) the values z do not see the scores, and given the weights
 *
 *     E[(Y - f)^2] = eps^2 + gamma^2 ((1 - w_J)^2 + 2 (1 - nu) w_J) + sum_{l != J} w_l^2.
 *
 * The three means of weights are one-dimensional integrals (posterior.c) for any lam, kappa, gamma and law
 * of L. Where odds decide about relevance, they and the scores are two softmaxes at once, unless they are the same:
 * for k = k* and lam that of the posterior
 *
 *     E[(Y - f)^2] = eps^2 + (1 - S) + 2 (1 - nu) S,   S = E[sum_l w_l^2]. */
#include "theory/theory.h"

#include <math.h>

static bool on_manifold(const fin_overlaps *o)
{
    return o->theta == 0 && o->eta == 0 && o->rho == 0;
}

const char *fini_no_softmax_risk(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *settings, const fin_overlaps *o)
{
    double lam, c, posterior;
    if (!form->scores)
        return "a weight depends on all tokens at once";
    form->scores(settings, &lam, &c);
    if (c != 0 || task->settings.m != 1 || !on_manifold(o))
        return "its weights depend on all tokens at once, and there is a quadrature on M (theta = "
               "eta = "
               "rho = 0) with m = 1 and c = 0 only";
    if (!fini_few_lengths(task))
        return "there are more than 64 lengths to average over";
    if (!task->kind->odds)
        return NULL;
    fin_task_bayes_parameters(task, &posterior, &c);
    return task->kind->lam && o->kappa == 1 && lam == posterior
               ? NULL
               : "relevance depends on all tokens at once, and there is a quadrature for the "
                 "posterior "
                 "itself only (kappa = 1 and its lam)";
}

fin_status fini_risk_softmax(const fin_task *task, const fin_form *form,
                             const fin_form_settings *settings, const fin_overlaps *o,
                             fin_risk_report *report, fin_error *err)
{
    const fin_task_settings *s = &task->settings;
    double lam, c, g2 = s->gamma * s->gamma, value, error;
    form->scores(settings, &lam, &c);
    if (task->kind->odds) {
        fin_estimate miss;
        FINI_TRY(fini_over_lengths(task, fin_max_bayes, lam, &miss, err));
        value = miss.value + 2 * (1 - o->nu) * (1 - miss.value);
        error = fabs(2 * o->nu - 1) * miss.error;
    } else {
        fini_misses miss;
        if (!fini_softmax_misses(task, lam, o->kappa, &miss))
            return fini_fail(
                err, FIN_ERR_NUMERIC,
                "the quadrature did not settle at lam = %g, gamma = %g; use simulation", lam,
                s->gamma);
        value =
            g2 * (miss.squared.value + 2 * (1 - o->nu) * (1 - miss.once.value)) + miss.others.value;
        error = g2 * (miss.squared.error + 2 * (1 - o->nu) * miss.once.error) + miss.others.error;
    }
    *report =
        (fin_risk_report){.risk = {s->eps * s->eps + value, error, FIN_METHOD_QUADRATURE, 0, 0}};
    return FIN_OK;
}

bool fini_lam_known(const fin_task *task, const fin_form *form, double *lam)
{
    double c;
    bool exists = task->kind->odds ? task->kind->lam != NULL : task->settings.gamma == 1;
    if (!form->scores || !fin_settings_find(form->settings, "lam") || task->settings.m != 1 ||
        !exists)
        return false;
    fin_task_bayes_parameters(task, lam, &c);
    return *lam <= FIN_LAM_MOST;
}

/* ---- the best linear attention ----------------------------------------------------------------- */

/* f = sum_l (a + b X_l.k*) X_l.v*; no other directions are better, because Y changes its sign with v* and knows no
 * direction but k* and v*. With s = m gamma^2 and N = E[L] - m, E[Y f] = s (a + b mu) and
 *
 *     E[f^2] = s (a^2 + 2 a b mu + b^2 (mu^2 + gamma^2)) + N (a^2 + b^2)
 *     least:  eps^2 + s N (s gamma^2 + N) / (s^2 gamma^2 + s N (1 + mu^2 + gamma^2) + N^2),   b/a = N mu / (s gamma^2 + N).
 *
 * With odds (m = 1): E[Y f] = a + b e, e = E[X_J.k*], E[f^2] = E[L] (a^2 + b^2); least: eps^2 + 1 - (1 + e^2)/E[L], b/a = e. */
fin_status fin_risk_linear_attention(const fin_task *task, double *lam, fin_estimate *risk,
                                     fin_error *err)
{
    FINI_NEED(err, task, risk);
    const fin_task_settings *t = &task->settings;
    double ratio, value, eps2 = t->eps * t->eps;
    *risk = (fin_estimate){.method = FIN_METHOD_CLOSED};
    if (task->kind->odds) {
        fin_estimate e;
        if (t->m != 1 || !task->kind->lam || !fini_few_lengths(task))
            return fini_fail(
                err, FIN_ERR_UNSUPPORTED,
                "the best linear attention on %s is known for m = 1 and up to 64 lengths",
                task->kind->name);
        FINI_TRY(fini_mean_score(task, &e, err));
        ratio = e.value;
        value = 1 - (1 + e.value * e.value) / task->length_mean;
        *risk = (fin_estimate){.error = 2 * e.value * e.error / task->length_mean + 0x1p-52,
                               .method = FIN_METHOD_QUADRATURE};
    } else {
        double g2 = t->gamma * t->gamma, s = (double)t->m * g2,
               N = task->length_mean - (double)t->m;
        double top = s * g2 + N, bottom = s * s * g2 + s * N * (1 + t->mu * t->mu + g2) + N * N;
        ratio = N > 0 ? N * t->mu / top : 0;
        value = s > 0 && N > 0 ? s * N * top / bottom : 0;
    }
    risk->value = eps2 + fmax(0, value);
    if (lam)
        *lam = ratio;
    return FIN_OK;
}
