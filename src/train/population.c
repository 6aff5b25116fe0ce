/* Descent on the exact risk. The gradients lie in span(k, v, k*, v*) and stay there, so a run is
 * five overlaps (lanes: the paper's form, many runs at once) or the coordinates of a few vectors in
 * four dimensions (any form with an exact risk, momentum, line search, lam trained). */
#include "train/train.h"

#include <math.h>
#include <string.h>

/* ---- lanes ----------------------------------------------------------------------------------- */

enum { AT_ONCE = 256 };

static int64_t lanes_width(const fin_train *t)
{
    (void)t;
    return FINI_STATE;
}

static int64_t lanes_scratch(const fin_train *t)
{
    (void)t;
    return 2 * AT_ONCE + FINI_STATE * FINI_RUNS;
}

static fin_status lanes_start(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    fin_status status = fini_start_overlaps(t, run, &o, err);
    double *x = t->state + run * FINI_STATE;
    x[0] = o.kappa;
    x[1] = o.nu;
    x[2] = o.theta;
    x[3] = o.eta;
    x[4] = o.rho;
    x[5] = fini_lam_at(t, 0);
    return status;
}

static void lanes_read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    const double *x = t->state + run * FINI_STATE;
    *o = (fin_overlaps){x[0], x[1], x[2], x[3], x[4]};
    *lam = x[5];
}

/* Lanes without a run repeat the last one. */
static void gather(const fin_train *t, int64_t first, int count, double lanes[][FINI_RUNS])
{
    for (int lane = 0; lane < FINI_RUNS; lane++)
        for (int i = 0; i < FINI_STATE; i++)
            lanes[i][lane] = t->state[(first + (lane < count ? lane : count - 1)) * FINI_STATE + i];
}

static void scatter(fin_train *t, int64_t first, int count, double lanes[][FINI_RUNS])
{
    for (int lane = 0; lane < count; lane++)
        for (int i = 0; i < FINI_STATE; i++)
            t->state[(first + lane) * FINI_STATE + i] = lanes[i][lane];
}

static void schedule(const fin_train *t, int64_t from, int64_t n, double *lam, double *alpha)
{
    for (int64_t i = 0; i < n; i++) {
        lam[i] = fini_lam_at(t, from + i);
        alpha[i] = fini_alpha_at(t, from + i);
    }
}

static fin_status population_lanes(fin_train *t, void *worker, double *scratch, int64_t first,
                                   int count, int64_t from, int64_t to, fin_error *err)
{
    (void)worker, (void)err;
    const fin_task_settings *s = &t->task->settings;
    double *lam = scratch, *alpha = scratch + AT_ONCE;
    double(*lanes)[FINI_RUNS] = (double(*)[FINI_RUNS])(scratch + 2 * AT_ONCE);
    fini_population_model p = {.gamma = s->gamma,
                               .mu = s->mu,
                               .m = (double)s->m,
                               .L_mean = t->task->length_mean,
                               .L_var = t->task->length_variance,
                               .penalty = t->settings.penalty,
                               .runs = count};
    schedule(t, from, to - from, lam, alpha);
    gather(t, first, count, lanes);
    fini_kernel_get()->population(&p, to - from, lam, alpha, lanes);
    scatter(t, first, count, lanes);
    return FIN_OK;
}

static fin_status reduced_lanes(fin_train *t, void *worker, double *scratch, int64_t first,
                                int count, int64_t from, int64_t to, fin_error *err)
{
    (void)worker, (void)err;
    const fin_task_settings *s = &t->task->settings;
    double *lam = scratch, *alpha = scratch + AT_ONCE;
    double(*lanes)[FINI_RUNS] = (double(*)[FINI_RUNS])(scratch + 2 * AT_ONCE);
    fini_reduction p = {.seed = (uint64_t)t->settings.seed,
                        .run = (uint64_t)first,
                        .stream = FINI_STREAM_TRAIN_LANES,
                        .d = s->d,
                        .L = t->task->longest,
                        .batch = t->settings.batch,
                        .gamma = s->gamma,
                        .mu = s->mu,
                        .eps = s->eps,
                        .penalty = t->settings.penalty,
                        .alpha_lam = t->settings.alpha_lam,
                        .runs = count};
    schedule(t, from, to - from, lam, alpha);
    gather(t, first, count, lanes);
    fini_kernel_get()->reduced(&p, from, to - from, lam, alpha, lanes);
    scatter(t, first, count, lanes);
    return FIN_OK;
}

const fini_engine fini_population_lanes = {
    .block = FINI_RUNS,
    .at_once = AT_ONCE,
    .width = lanes_width,
    .scratch = lanes_scratch,
    .start = lanes_start,
    .advance = population_lanes,
    .read = lanes_read,
};

const fini_engine fini_reduced_lanes = {
    .block = FINI_RUNS,
    .at_once = AT_ONCE,
    .width = lanes_width,
    .scratch = lanes_scratch,
    .start = lanes_start,
    .advance = reduced_lanes,
    .read = lanes_read,
};

/* ---- any form --------------------------------------------------------------------------------- */

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
    fin_overlaps o;
    int64_t n = t->frame;
    double *x = t->state + run * t->width;
    fin_status status = fini_start_overlaps(t, run, &o, err);
    x[t->vectors * n] = fini_lam_at(t, 0);
    x[t->vectors * n + 1] = fini_alpha_at(t, 0);
    return status ? status : fini_frame_vectors(&o, t->task->settings.d, n, x, x + n, err);
}

static void read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    const double *x = t->state + run * t->width;
    fini_overlaps_of(t->frame, x, x + t->frame, o);
    *lam = x[t->vectors * t->frame];
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
    double slope = fini_gradient_norm(o, R), value = objective(t, o, here->risk);
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
        fin_status status = fini_exact_risk(t, &there, lam, &risk, err);
        if (status)
            return status;
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
    fin_status status = fini_exact_risk(t, &o, *lam, &value, err);
    if (status)
        return status;
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
            fin_status status = step(t, t->state + run * t->width, at, scratch, err);
            if (status)
                return status;
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
    .read = read,
};
