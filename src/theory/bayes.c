/* Bayes risk E Var(Y | X), one relevant token.
 *
 * Y is the v*-part z_J of an unknown token plus noise, so Var(Y | X) = eps^2 + Var_w(z), with w the
 * posterior. The signs of z are not seen by w, hence E Var_w(z) = E sum_l w_l (1 - w_l) z_l^2.
 * Where w does not depend on z at all (gamma = 1, and the task max) E[z^2] = 1 comes out too and
 * what is left is the quadrature of posterior.c. Otherwise it is simulated: a token is X.k*, X.v*
 * and a chi-square for the rest of |X|^2, so a sample costs O(L) at any d. */
#include "theory/theory.h"

#include "finetti/random.h"

#include <math.h>

typedef struct model {
    const fin_task *task;
    double lam, c;
    uint64_t seed;
} model;

/* 1 - w of the likeliest token is the sum of the others, and is taken as such: it may be 1e-60. */
static double draw(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = fini_task_length(q->task, sample), top = 0;
    double *z = scratch, *odds = z + q->task->longest, *g = odds + q->task->longest;
    fin_random norms;
    fin_random_open(&norms, q->seed, FINI_STREAM_NORMS, sample);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK, sample, 0, 2 * L, g);
    for (int64_t l = 0; l < L; l++) {
        double scale = l == 0 ? s->gamma : 1, chi = scale * g[2 * l] + (l == 0 ? s->mu : 0);
        z[l] = scale * g[2 * l + 1];
        odds[l] = q->lam * chi;
        if (q->c != 0) {
            double rest = s->d > 2 ? fin_random_chi_square(&norms, (double)(s->d - 2)) : 0;
            odds[l] += q->c * (chi * chi + z[l] * z[l] + scale * scale * rest);
        }
        top = odds[l] > odds[top] ? l : top;
    }
    double highest = odds[top], others = 0, sum = 0;
    for (int64_t l = 0; l < L; l++)
        if (l != top)
            others += odds[l] = exp(odds[l] - highest);
    double total = 1 + others;
    for (int64_t l = 0; l < L; l++)
        if (l != top)
            sum += odds[l] / total * ((total - odds[l]) / total) * z[l] * z[l];
    sum += others / total / total * z[top] * z[top];
    return s->eps * s->eps + sum;
}

enum { METHOD_CLOSED = 1, METHOD_SIMULATION = 3 };

fin_status fin_risk_bayes(const fin_task *task, const fin_risk_settings *settings,
                          const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    const fin_task_settings s = task->settings;
    fin_status status = fin_settings_validate(&fin_risk_settings_table, settings, err);
    if (status)
        return status;
    if (s.m != 1)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the Bayes risk is computed for m = 1 only, here m = %lld",
                         (long long)s.m);
    if (s.gamma == 0)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "with gamma = 0 the relevant token is a constant and Y is noise: the Bayes risk "
            "is eps^2 without any inference");
    fini_at_length *exact = task->kind->by_score ? fin_max_bayes : fin_spiked_bayes;
    double snr = task->kind->by_score ? s.snr : s.mu * s.mu;
    if (s.gamma == 1 && settings->method < METHOD_SIMULATION &&
        fini_over_lengths(task, exact, snr, risk)) {
        risk->value += s.eps * s.eps;
        return FIN_OK;
    }
    if (settings->method == METHOD_CLOSED || settings->method == METHOD_CLOSED + 1)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "the Bayes risk of %s with gamma = %g has no closed form or quadrature; use "
            "simulation",
            task->kind->name, s.gamma);
    if (task->kind->by_score) { /* too many lengths to average over: as any other form */
        fin_risk_report report;
        fin_form_settings fs = {0};
        fin_overlaps oracle = {1, 1, 0, 0, 0};
        fin_task_bayes_parameters(task, &fs.lam, &fs.c);
        status = fini_risk_simulated(task, &fini_form_bayes, &fs, &oracle, settings, progress,
                                     &report, err);
        if (!status)
            *risk = report.risk;
        return status;
    }
    model q = {.task = task, .seed = (uint64_t)settings->seed};
    fin_task_bayes_parameters(task, &q.lam, &q.c);
    fini_simulation simulation = {.draw = draw,
                                  .model = &q,
                                  .samples = settings->samples,
                                  .scratch = 4 * task->longest,
                                  .weight = 4 * task->length_mean,
                                  .what = "Bayes risk"};
    return fini_simulate(&simulation, progress, risk, err);
}
