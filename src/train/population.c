/* Descent on the exact risk of any form that has one, with momentum, line search or lam trained. The
 * gradients lie in span(k, v, k*, v*) and stay there, so a run is the coordinates of a few vectors in
 * four dimensions. The paper's form without any of that has a faster way: lanes.c. */
#include "train/train.h"

#include <math.h>
#include <string.h>

/* State: k, v (and their velocities) in t->frame coordinates, lam, and the last step of a line
 * search. */
static int64_t width(const fin_train *t)
{
    return t->vectors * t->frame + 2;
}

static int64_t scratch_size(const fin_train *t)
{
    return 4 * t->frame;
}

static fin_status start(fin_train *t, int64_t run, fin_error *err)
{
    t->state[run * t->width + t->vectors * t->frame + 1] = fini_alpha_at(t, 0);
    return fini_basis_start(t, run, err);
}

/* grad_k = R_kappa k* + R_eta v* + R_rho v,  grad_v = R_theta k* + R_nu v* + R_rho k. */
static void gradients(int64_t n, const double R[5], const double *k, const double *v, double *gk,
                      double *gv)
{
    for (int64_t i = 0; i < n; i++) {
        gk[i] = R[4] * v[i] + (i == 0 ? R[0] : i == 1 ? R[3] : 0);
        gv[i] = R[4] * k[i] + (i == 0 ? R[2] : i == 1 ? R[1] : 0);
    }
}

static double objective(const fin_train *t, const fin_overlaps *o, double risk)
{
    return risk + t->settings.penalty * o->rho * o->rho;
}

/* Halves the step, from twice the last one, until the risk falls by a share of what its slope
 * promises. A step too small to tell is not taken. */
static fin_status line_search(const fin_train *t, double *x, double lam, const fin_risk_value *here,
                              const fin_overlaps *o, double *scratch, fin_error *err)
{
    int64_t n = t->frame;
    double *k = x, *v = x + n, *last = x + t->vectors * n + 1;
    double *new_k = scratch, *new_v = new_k + n, *gk = new_v + n, *gv = gk + n;
    double R[5];
    memcpy(R, here->gradient, sizeof R);
    R[4] += 2 * t->settings.penalty * o->rho;
    double slope = fini_gradient_of(o, R).norm, value = objective(t, o, here->risk);
    const double least = 1e-18, most = 1e18; /* where nothing changes any more, either way */
    if (!(slope > 0))
        return FIN_OK;
    for (double alpha = fmin(2 * *last, most); alpha > least; alpha /= 2) {
        fin_overlaps there;
        fin_risk_value risk;
        memcpy(new_k, k, (size_t)n * sizeof *k);
        memcpy(new_v, v, (size_t)n * sizeof *v);
        gradients(n, R, k, v, gk, gv);
        fini_descend(n, new_k, new_v, NULL, NULL, gk, gv, &(fini_rates){alpha, 0, 0});
        fini_overlaps_of(n, new_k, new_v, &there);
        if (!isfinite(there.kappa + there.nu + there.theta + there.eta + there.rho))
            continue;
        FINI_TRY(fini_exact_risk(t, &there, lam, &risk, err));
        if (objective(t, &there, risk.risk) <= value - 1e-4 * alpha * slope * slope) {
            memcpy(k, new_k, (size_t)n * sizeof *k);
            memcpy(v, new_v, (size_t)n * sizeof *v);
            *last = alpha;
            return FIN_OK;
        }
    }
    return FIN_OK;
}

static fin_status step(const fin_train *t, double *x, int64_t at, double *scratch, fin_error *err)
{
    int64_t n = t->frame;
    double *k = x, *v = x + n, *lam = x + t->vectors * n, *gk = scratch, *gv = scratch + n;
    bool trained = t->settings.alpha_lam > 0;
    fin_overlaps o;
    fin_risk_value value;
    fini_overlaps_of(n, k, v, &o);
    if (!trained)
        *lam = fini_lam_at(t, at);
    if (!isfinite(o.kappa + o.nu + o.theta + o.eta + o.rho + *lam))
        return FIN_OK; /* diverged: whoever looks at the state will see */
    FINI_TRY(fini_exact_risk(t, &o, *lam, &value, err));
    if (t->settings.rule == FIN_RULE_ARMIJO)
        return line_search(t, x, *lam, &value, &o, scratch, err);
    gradients(n, value.gradient, k, v, gk, gv);
    fini_rates rates = {fini_alpha_at(t, at), t->settings.momentum, t->settings.penalty};
    bool heavy = t->vectors == 4;
    fini_descend(n, k, v, heavy ? x + 2 * n : NULL, heavy ? x + 3 * n : NULL, gk, gv, &rates);
    if (trained)
        *lam = fini_next_lam(t, *lam, value.d_lam);
    return FIN_OK;
}

static fin_status advance(fin_train *t, void *worker, double *scratch, int64_t first, int count,
                          int64_t from, int64_t to, fin_error *err)
{
    (void)worker;
    for (int64_t run = first; run < first + count; run++)
        for (int64_t at = from; at < to; at++) {
            FINI_TRY(step(t, t->state + run * t->width, at, scratch, err));
        }
    return FIN_OK;
}

const fini_engine fini_population = {
    .block = 4,
    .at_once = 64,
    .width = width,
    .scratch = scratch_size,
    .start = start,
    .advance = advance,
    .read = fini_basis_read,
};
