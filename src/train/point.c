/* What is logged of a state: its exact risk where there is one, its distances. */
#include "train/train.h"

#include "finetti/random.h"
#include "theory/theory.h"

#include <math.h>

fin_status fini_exact_risk(const fin_train *t, const fin_overlaps *o, double lam,
                           fin_risk_value *value, fin_error *err)
{
    if (t->form->lanes) {
        fin_risk_point point = fini_risk_point(&t->task->settings, t->task->length_mean,
                                               t->task->length_variance, o, lam);
        return fini_risk_rows(t->form, 1, &point, value, err);
    }
    fin_form_settings fs = t->form_settings;
    fin_risk_report report;
    fs.lam = lam;
    if (t->form->moments && !fini_no_exact_risk(t->task, t->form))
        fini_risk_closed(t->task, t->form, &fs, o, &report);
    else
        FINI_TRY(fin_risk(t->task, t->form, &fs, o, NULL, NULL, &report, err));
    *value = (fin_risk_value){.signal = report.signal,
                              .noise = report.noise,
                              .bias = report.bias,
                              .risk = report.risk.value,
                              .d_lam = NAN};
    for (int i = 0; i < 5; i++)
        value->gradient[i] = report.gradient[i];
    return FIN_OK;
}

/* g_k is what grad_k = R_kappa k* + R_eta v* + R_rho v has orthogonal to k, and g_v likewise; products as in
 * kernel/descent_body.h. |g_k|^2 = grad_k.g_k. */
fini_sphere_gradient fini_gradient_of(const fin_overlaps *o, const double R[5])
{
    double Rk = R[0], Rn = R[1], Rt = R[2], Re = R[3], Rr = R[4];
    double k_ks = Rk * (1 - o->kappa * o->kappa) - Re * o->kappa * o->eta +
                  Rr * (o->theta - o->kappa * o->rho);
    double k_vs =
        -Rk * o->kappa * o->eta + Re * (1 - o->eta * o->eta) + Rr * (o->nu - o->eta * o->rho);
    double k_v = Rk * (o->theta - o->kappa * o->rho) + Re * (o->nu - o->eta * o->rho) +
                 Rr * (1 - o->rho * o->rho);
    double v_ks = Rt * (1 - o->theta * o->theta) - Rn * o->theta * o->nu +
                  Rr * (o->kappa - o->theta * o->rho);
    double v_vs =
        -Rt * o->theta * o->nu + Rn * (1 - o->nu * o->nu) + Rr * (o->eta - o->nu * o->rho);
    double v_k = Rt * (o->kappa - o->theta * o->rho) + Rn * (o->eta - o->nu * o->rho) +
                 Rr * (1 - o->rho * o->rho);
    double total = Rk * k_ks + Re * k_vs + Rr * k_v + Rt * v_ks + Rn * v_vs + Rr * v_k;
    return (fini_sphere_gradient){k_ks, v_vs, sqrt(total > 0 ? total : 0)};
}

/* Each simulated risk has draws of its own, so that errors average out over runs and steps. */
static int64_t risk_seed(const fin_train *t, int64_t run, int64_t step)
{
    fin_random r;
    fin_random_open(&r, (uint64_t)t->settings.seed, FINI_STREAM_TRAIN_RISK,
                    ((uint64_t)run << 40) + (uint64_t)step);
    uint64_t high = fin_random_word(&r);
    return (int64_t)((high << 32 | fin_random_word(&r)) >> 11);
}

fin_status fini_point_of(const fin_train *t, int64_t run, int64_t step, const fin_overlaps *o,
                         double lam, const fin_progress *progress, fin_train_point *p,
                         fin_error *err)
{
    *p =
        (fin_train_point){.kappa = o->kappa,
                          .nu = o->nu,
                          .theta = o->theta,
                          .eta = o->eta,
                          .rho = o->rho,
                          .lam = lam,
                          .distance = sqrt(o->theta * o->theta + o->eta * o->eta + o->rho * o->rho),
                          .gradient = NAN};
    if (t->has_gradient) {
        fin_risk_value value;
        FINI_TRY(fini_exact_risk(t, o, lam, &value, err));
        p->risk = value.risk;
        p->excess = value.signal + value.noise + value.bias;
        value.gradient[4] += 2 * t->settings.penalty * o->rho;
        p->gradient = fini_gradient_of(o, value.gradient).norm;
        return FIN_OK;
    }
    double eps = t->task->settings.eps;
    fin_form_settings fs = t->form_settings;
    fin_risk_settings how;
    fin_risk_report report;
    fin_settings_defaults(&fin_risk_table, &how, sizeof how);
    how.method = FIN_METHOD_SIMULATION; /* on M, too: one way along a run */
    how.samples = t->settings.risk_samples;
    how.seed = risk_seed(t, run, step);
    fs.lam = lam;
    FINI_TRY(fin_risk(t->task, t->form, &fs, o, &how, progress, &report, err));
    p->risk = report.risk.value;
    p->risk_error = report.risk.error;
    p->excess = report.risk.value - eps * eps;
    return FIN_OK;
}
