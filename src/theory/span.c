/* The risk of any form on any task, by simulation in the span of k, v, k*, v*.
 *
 * Only the scores chi (and X.k*, where it decides relevance) are drawn. Given them z and y are
 * normal with known moments, so E[(Y - f)^2 | scores] is written down instead of sampled: less
 * variance and one or two normals a token. With one relevant token in the task `max` its place is
 * averaged over too.
 *
 * Given the scores, with F = sum_l w_l E[z_l], over relevant tokens J:
 *     E[(Y - f)^2] = eps^2 + sum_J (Vy - 2 w_J Czy) + sum_l w_l^2 Vz_l + (sum_J E[y_J] - F)^2
 */
#include "theory/theory.h"

#include "kernel/kernel.h"

#include <math.h>

typedef struct model {
    const fin_task *task;
    const fin_form *form;
    fin_form_settings settings;
    fin_overlaps o;
    fini_frame frame;
    uint64_t seed;
} model;

static double at_least_0(double x)
{
    return x > 0 ? x : 0;
}

/* slr and spiked: the first m tokens are the relevant ones, by exchangeability. */
static double draw_moved(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = fini_task_length(q->task, sample), offsets[2] = {0, L};
    double *chi = scratch, *w = scratch + q->task->longest;
    double rho = q->o.rho, eta = q->o.eta, g2 = s->gamma * s->gamma;
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK, sample, 0, L, chi);
    double target = 0, shift = s->mu * q->o.kappa;
    for (int64_t l = 0; l < s->m; l++) {
        target += eta * s->gamma * chi[l]; /* E[y | chi] */
        chi[l] = shift + s->gamma * chi[l];
    }
    q->form->weights(&q->settings, 1, offsets, chi, NULL, w);
    double f = 0, noise = 0, signal = 0, scale = at_least_0(1 - rho * rho);
    for (int64_t l = 0; l < s->m; l++) {
        f += w[l] * (s->mu * q->o.theta + rho * (chi[l] - shift));
        signal +=
            at_least_0(1 - eta * eta) - 2 * w[l] * (q->o.nu - rho * eta) + w[l] * w[l] * scale;
    }
    for (int64_t l = s->m; l < L; l++) {
        f += w[l] * rho * chi[l];
        noise += w[l] * w[l];
    }
    return s->eps * s->eps + g2 * signal + scale * noise + (target - f) * (target - f);
}

/* max: X.k* and the part of X.k orthogonal to it, chi = kappa e + r u. */
static double draw_scored(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = fini_task_length(q->task, sample), offsets[2] = {0, L}, m = s->m;
    int64_t most = q->task->longest;
    double *e = scratch, *u = e + most, *chi = u + most, *w = chi + most, *share = w + most;
    double r = sqrt(at_least_0(1 - q->o.kappa * q->o.kappa));
    double zu = r > 0 ? (q->o.rho - q->o.kappa * q->o.theta) / r : 0, yu = r > 0 ? q->o.eta / r : 0;
    double Vz = at_least_0(1 - q->o.theta * q->o.theta - zu * zu), Vy = at_least_0(1 - yu * yu);
    double Czy = q->o.nu - zu * yu;
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK, sample, 0, L, e);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK, sample, (L + 63) / 64 * 64, L, u);
    for (int64_t l = 0; l < L; l++)
        chi[l] = q->o.kappa * e[l] + r * u[l];
    q->form->weights(&q->settings, 1, offsets, chi, NULL, w);
    double f = 0, squares = 0;
    for (int64_t l = 0; l < L; l++) {
        f += w[l] * (q->o.theta * e[l] + zu * u[l]);
        squares += w[l] * w[l];
    }
    double risk = s->eps * s->eps + Vz * squares;
    if (m == 1) { /* average over the place */
        if (isinf(s->snr))
            fini_hardmax_weights(1, offsets, e, share);
        else
            fini_softmax_weights(s->snr, 0, 1, offsets, e, NULL, share);
        for (int64_t l = 0; l < L; l++) {
            double miss = yu * u[l] - f;
            risk += share[l] * (Vy - 2 * w[l] * Czy + miss * miss);
        }
        return risk;
    }
    double target = 0;
    fini_selector selector = {
        .score = share, .z = share + m, .location = (int64_t *)(share + 2 * m)};
    fini_selector_begin(&selector, q->task, sample, L);
    for (int64_t l = 0; l < L; l++)
        fini_selector_offer(&selector, l, e[l], 0);
    for (int64_t j = 0; j < m; j++) {
        int64_t l = selector.location[j];
        target += yu * u[l];
        risk += Vy - 2 * w[l] * Czy;
    }
    return risk + (target - f) * (target - f);
}

/* Forms that use |X|^2, which z and y are part of: nothing is integrated, all is drawn. */
static double draw_plain(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = fini_task_length(q->task, sample), offsets[2] = {0, L}, most = q->task->longest;
    double *chi = scratch, *z = chi + most, *norm2 = z + most, *w = norm2 + most, *e = w + most;
    fin_random norms, latent;
    fin_random_open(&norms, q->seed, FINI_STREAM_NORMS, sample);
    fin_random_open(&latent, q->seed, FINI_STREAM_LATENT, sample);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK, sample, 0, 4 * L, e);
    double y = s->eps * fin_random_normal(&latent), f = 0;
    for (int64_t l = 0; l < L; l++) {
        double scale = l < s->m ? s->gamma : 1, c[4];
        for (int j = 0; j < 4; j++)
            c[j] = scale * e[4 * l + j];
        c[0] += l < s->m ? s->mu : 0;
        y += l < s->m ? c[1] : 0;
        chi[l] = q->o.kappa * c[0] + q->o.eta * c[1] + q->frame.a3 * c[2];
        z[l] = q->o.theta * c[0] + q->o.nu * c[1] + q->frame.b3 * c[2] + q->frame.b4 * c[3];
        norm2[l] = c[0] * c[0] + c[1] * c[1];
        norm2[l] += s->d > 2 ? c[2] * c[2] : 0;
        norm2[l] += s->d > 3 ? c[3] * c[3] : 0;
        if (s->d > 4)
            norm2[l] += scale * scale * fin_random_chi_square(&norms, (double)(s->d - 4));
    }
    q->form->weights(&q->settings, 1, offsets, chi, norm2, w);
    for (int64_t l = 0; l < L; l++)
        f += w[l] * z[l];
    return (y - f) * (y - f);
}

fin_status fini_risk_simulated(const fin_task *task, const fin_form *form,
                               const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                               const fin_risk_settings *settings, const fin_progress *progress,
                               fin_risk_report *report, fin_error *err)
{
    model q = {.task = task,
               .form = form,
               .settings = *form_settings,
               .o = *overlaps,
               .seed = (uint64_t)settings->seed};
    fin_status status = fini_frame_of(overlaps, task->settings.d, &q.frame, err);
    if (status)
        return status;
    fini_simulation simulation = {
        .model = &q, .samples = settings->samples, .weight = task->length_mean, .what = "risk"};
    if (task->kind->by_score) {
        simulation.draw = draw_scored;
        simulation.scratch = 5 * task->longest + 3 * task->settings.m;
    } else if (form->needs_norm2 && form_settings->c != 0) {
        simulation.draw = draw_plain;
        simulation.scratch = 8 * task->longest;
    } else {
        simulation.draw = draw_moved;
        simulation.scratch = 2 * task->longest;
    }
    report->has_parts = report->has_gradient = 0;
    return fini_simulate(&simulation, progress, &report->risk, err);
}
