/* The risk of any form on any task, by simulation in the span of k, v, k*, v*.
 *
 * Only the scores chi (and X.k*, where it decides relevance) are drawn. Given them z and y are
 * normal with known moments, so E[(Y - f)^2 | scores] is written down instead of sampled: less
 * variance and one or two normals a token. Where odds decide about one relevant token, its place is
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
    fini_basis frame;
    uint64_t seed;
    bool excess; /* draw_plain: (f - E[Y|X])^2 instead of (y - f)^2 */
    double bayes_lam, bayes_c;
} model;

static double at_least_0(double x)
{
    return x > 0 ? x : 0;
}

static int64_t length(const model *q, uint64_t sample)
{
    return fini_length(q->task, q->seed, FINI_STREAM_RISK_LENGTH, sample);
}

/* Relevant places are uniform: the first m tokens are the relevant ones, by exchangeability. */
static double draw_moved(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = length(q, sample), offsets[2] = {0, L};
    double *chi = scratch, *w = scratch + q->task->longest;
    double rho = q->o.rho, eta = q->o.eta, g2 = s->gamma * s->gamma;
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, 0, L, chi);
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

/* P(token l is the one relevant token | scores e), for tasks with odds. */
static void shares(const fin_task *task, int64_t L, const double *e, double *share)
{
    const int64_t offsets[2] = {0, L};
    for (int64_t l = 0; l < L; l++)
        share[l] = task->kind->odds(&task->settings, e[l]);
    if (fini_task_certain(task))
        fini_hardmax_weights(1, offsets, e, share);
    else
        fini_softmax_weights(1, 0, 1, offsets, share, NULL, share);
}

/* z and X.v* given e = X.k* and chi = kappa e + r u: means theta e + zu u and yu u, (co)variances Vz, Vy, Czy. */
typedef struct given_scores {
    double r, zu, yu, Vz, Vy, Czy;
} given_scores;

static given_scores moments_given(const model *q)
{
    double r = sqrt(at_least_0(1 - q->o.kappa * q->o.kappa));
    double zu = r > 0 ? (q->o.rho - q->o.kappa * q->o.theta) / r : 0, yu = r > 0 ? q->o.eta / r : 0;
    /* Where k is almost k*, r carries rounding: no correlation is above one. */
    double most = sqrt(at_least_0(1 - q->o.theta * q->o.theta));
    zu = fmax(-most, fmin(most, zu));
    yu = fmax(-1, fmin(1, yu));
    return (given_scores){r,
                          zu,
                          yu,
                          at_least_0(1 - q->o.theta * q->o.theta - zu * zu),
                          at_least_0(1 - yu * yu),
                          q->o.nu - zu * yu};
}

/* Relevance by odds of X.k*: X.k* and the part of X.k orthogonal to it, chi = kappa e + r u. */
static double draw_scored(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = length(q, sample), offsets[2] = {0, L}, m = s->m;
    int64_t room = q->task->longest;
    double *e = scratch, *u = e + room, *chi = u + room, *w = chi + room, *share = w + room;
    given_scores c = moments_given(q);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, 0, L, e);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, (L + 63) / 64 * 64, L, u);
    for (int64_t l = 0; l < L; l++)
        chi[l] = q->o.kappa * e[l] + c.r * u[l];
    if (q->form)
        q->form->weights(&q->settings, 1, offsets, chi, NULL, w);
    else
        share = w; /* the Bayes prediction's weights are the shares */
    if (m == 1)
        shares(q->task, L, e, share);
    double f = 0, squares = 0;
    for (int64_t l = 0; l < L; l++) {
        f += w[l] * (q->o.theta * e[l] + c.zu * u[l]);
        squares += w[l] * w[l];
    }
    double risk = s->eps * s->eps + c.Vz * squares;
    if (m == 1) { /* average over the place */
        for (int64_t l = 0; l < L; l++) {
            double miss = c.yu * u[l] - f;
            risk += share[l] * (c.Vy - 2 * w[l] * c.Czy + miss * miss);
        }
        return risk;
    }
    double target = 0;
    fini_selector selector = {.kept = (void *)share};
    fini_selector_begin(&selector, q->task, q->seed, FINI_STREAM_RISK_LATENT, sample, L);
    for (int64_t l = 0; l < L; l++)
        fini_selector_offer(&selector, l, e[l], 0);
    for (int64_t j = 0; j < m; j++) {
        int64_t l = selector.kept[j].location;
        target += c.yu * u[l];
        risk += c.Vy - 2 * w[l] * c.Czy;
    }
    return risk + (target - f) * (target - f);
}

static double square(double x)
{
    return x * x;
}

/* E[Y | X], from X.k*, X.v* (the first two of four numbers each) and |X|^2; w is overwritten. */
static double posterior_mean(const model *q, int64_t L, const double *e, const double *norm2,
                             double *w)
{
    const int64_t offsets[2] = {0, L};
    double mean = 0;
    if (q->task->kind->odds) {
        for (int64_t l = 0; l < L; l++)
            w[l] = e[4 * l];
        shares(q->task, L, w, w);
    } else {
        for (int64_t l = 0; l < L; l++)
            w[l] = q->bayes_lam * e[4 * l] + q->bayes_c * norm2[l];
        fini_softmax_weights(1, 0, 1, offsets, w, NULL, w);
    }
    for (int64_t l = 0; l < L; l++)
        mean += w[l] * e[4 * l + 1];
    return mean;
}

/* Forms that use |X|^2, which z and y are part of: only the noise is integrated, the rest is drawn.
 */
static double draw_plain(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = length(q, sample), offsets[2] = {0, L}, room = q->task->longest, m = s->m;
    double *chi = scratch, *z = chi + room, *norm2 = z + room, *w = norm2 + room, *e = w + room;
    double y = 0, f = 0;
    fini_selector selector = {.kept = (void *)(e + 4 * room)};
    bool by_score = q->task->kind->odds;
    fin_random norms;
    fin_random_open(&norms, q->seed, FINI_STREAM_RISK_NORMS, sample);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, 0, 4 * L, e);
    if (by_score)
        fini_selector_begin(&selector, q->task, q->seed, FINI_STREAM_RISK_LATENT, sample, L);
    for (int64_t l = 0; l < L; l++) {
        bool moved = !by_score && l < m; /* by exchangeability, the first ones */
        double scale = moved ? s->gamma : 1, c[4];
        for (int j = 0; j < 4; j++)
            c[j] = scale * e[4 * l + j];
        c[0] += moved ? s->mu : 0;
        y += moved ? c[1] : 0;
        if (by_score)
            fini_selector_offer(&selector, l, c[0], c[1]);
        chi[l] = q->o.kappa * c[0] + q->o.eta * c[1] + q->frame.a3 * c[2];
        z[l] = q->o.theta * c[0] + q->o.nu * c[1] + q->frame.b3 * c[2] + q->frame.b4 * c[3];
        norm2[l] = fini_norm2(s->d, c, scale, &norms);
        e[4 * l] = c[0];
        e[4 * l + 1] = c[1];
    }
    for (int64_t j = 0; by_score && j < m; j++)
        y += selector.kept[j].z;
    q->form->weights(&q->settings, 1, offsets, chi, norm2, w);
    for (int64_t l = 0; l < L; l++)
        f += w[l] * z[l];
    if (q->excess)
        return square(f - posterior_mean(q, L, e, norm2, w));
    return s->eps * s->eps + (y - f) * (y - f);
}

/* ---- risk above Bayes -------------------------------------------------------------------------- */

/* E (Y - f)^2 - E Var(Y|X) = E (f - E[Y|X])^2, with E[Y|X] = sum_l p_l X_l.v* and p the posterior of the place: no
 * difference of means, and as exact as the two predictions are alike. Tokens X.k* and X.k are drawn if p sees no more of
 * them (gamma = 1, odds); z and X.v* are integrated. */
static double draw_excess(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_task_settings *s = &q->task->settings;
    int64_t L = length(q, sample), offsets[2] = {0, L}, room = q->task->longest;
    double *e = scratch, *u = e + room, *chi = u + room, *w = chi + room, *share = w + room;
    given_scores c = moments_given(q);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, 0, L, e);
    fin_random_normals_f64(q->seed, FINI_STREAM_RISK_SCORES, sample, (L + 63) / 64 * 64, L, u);
    e[0] += s->mu; /* 0 where odds decide */
    for (int64_t l = 0; l < L; l++)
        chi[l] = q->o.kappa * e[l] + c.r * u[l];
    q->form->weights(&q->settings, 1, offsets, chi, NULL, w);
    if (q->task->kind->odds)
        shares(q->task, L, e, share);
    else
        fini_softmax_weights(s->mu, 0, 1, offsets, e, NULL, share);
    double mean = 0, spread = 0;
    for (int64_t l = 0; l < L; l++) {
        mean += w[l] * (q->o.theta * e[l] + c.zu * u[l]) - share[l] * c.yu * u[l];
        double gap = w[l] - share[l]; /* w^2 Vz - 2 w p Czy + p^2 Vy */
        spread +=
            gap * gap * c.Czy + w[l] * w[l] * (c.Vz - c.Czy) + share[l] * share[l] * (c.Vy - c.Czy);
    }
    return mean * mean + at_least_0(spread);
}

fin_status fini_risk_simulated(const fin_task *task, const fin_form *form,
                               const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                               const fin_risk_settings *settings, const fin_progress *progress,
                               fin_risk_report *report, fin_error *err)
{
    model q = {.task = task,
               .form = form,
               .settings = form ? *form_settings : (fin_form_settings){0},
               .o = *overlaps,
               .seed = (uint64_t)settings->seed};
    FINI_TRY(fini_basis_of(overlaps, task->settings.d, &q.frame, err));
    fini_simulation simulation = {
        .model = &q, .samples = settings->samples, .weight = task->length_mean, .what = "risk"};
    const int64_t kept = task->settings.m * (int64_t)(sizeof(fini_relevant) / sizeof(double));
    if (form && form->needs_norm2 && form_settings->c != 0) {
        simulation.draw = draw_plain;
        simulation.scratch = 8 * task->longest + kept;
    } else if (task->kind->odds) {
        simulation.draw = draw_scored;
        simulation.scratch = 5 * task->longest + kept;
    } else {
        simulation.draw = draw_moved;
        simulation.scratch = 2 * task->longest;
    }
    fin_estimate risk;
    FINI_TRY(fini_simulate(&simulation, progress, &risk, err));
    *report = (fin_risk_report){.risk = risk};
    return FIN_OK;
}

fin_status fini_excess_simulated(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *form_settings,
                                 const fin_overlaps *overlaps, const fin_risk_settings *settings,
                                 const fin_progress *progress, fin_estimate *excess, fin_error *err)
{
    model q = {.task = task,
               .form = form,
               .settings = *form_settings,
               .o = *overlaps,
               .seed = (uint64_t)settings->seed,
               .excess = true};
    FINI_TRY(fini_basis_of(overlaps, task->settings.d, &q.frame, err));
    fin_task_bayes_parameters(task, &q.bayes_lam, &q.bayes_c);
    bool plain = task->settings.gamma != 1 || (form->needs_norm2 && form_settings->c != 0);
    fini_simulation simulation = {.draw = plain ? draw_plain : draw_excess,
                                  .model = &q,
                                  .samples = settings->samples,
                                  .scratch = 8 * task->longest +
                                             (int64_t)(sizeof(fini_relevant) / sizeof(double)),
                                  .weight = task->length_mean,
                                  .what = "risk above Bayes"};
    return fini_simulate(&simulation, progress, excess, err);
}
