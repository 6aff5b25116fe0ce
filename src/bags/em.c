/* EM for the mixture (mixture.c), on the penalised likelihood.
 *
 * With r_il = P(J_i = l | X_i, y_i) at the parameters x0 (E-step), the risk is bounded by
 *
 *     Q(x; x0) = mean_i [ log sum_l exp a_il - sum_l r_il (a_il + log p(y_i | m_il) - log r_il) ]
 *                + 1/2 (penalty_k |keys|^2 + penalty_v |values|^2),
 *     Q(x; x0) >= risk(x),    Q(x0; x0) = risk(x0)
 *
 * (Dempster, Laird and Rubin 1977): lowering Q lowers the risk (M-step). Q is a multinomial
 * logistic regression of the gate plus a weighted ridge or logistic regression of the values,
 * convex in both together, and takes a few L-BFGS steps; sigma, which is the minimiser in closed
 * form
 *
 *     sigma^2 = mean_i sum_l r_il (y_i - m_il)^2   (or the floor),
 *
 * comes last. The normal equations of the values would cost p passes over the tokens to build; an
 * L-BFGS step costs one.
 *
 * The r_il are never stored. They are a function of the scores at x0, so a form with twice the
 * scores (those of x, then those of x0) finds them again, bag by bag, while the bag is in cache;
 * and the engine that sums any form over blocks, threads and processes sums this one too. */
#include "bags/descend.h"

#include <math.h>
#include <string.h>

/* ---- the bound as a form -------------------------------------------------------------------- */

static int64_t keys(const fini_bag_shape *shape)
{
    return 2 * fini_bag_mixture.keys(shape);
}

static int64_t values(const fini_bag_shape *shape)
{
    return 2 * fini_bag_mixture.values(shape);
}

static int64_t extras(const fini_bag_shape *shape)
{
    return 2 * fini_bag_mixture.extras(shape);
}

static int64_t scratch(const fini_bag_shape *shape)
{
    return 2 * fini_mixture_scratch(shape);
}

/* A row of U: q scores at x, q at x0; extras alike. Derivatives are those in x; x0 has none.
 *
 *     Q = log_gate - log_joint0 - sum_l r_l (a_l + logp_l - a0_l - logp0_l)
 *
 * is the sum above, since log r_l = a0_l + logp0_l - log_joint0. */
static double bound(const fini_bag *bag, double y, double *dU, double *dextra)
{
    const fini_bag_shape *shape = bag->shape;
    const double *U = bag->U;
    int64_t outs = shape->outputs, q = 1 + outs, stride = 2 * q;
    fini_bag before = *bag;
    fini_mixture at, old;
    before.extra += fini_bag_mixture.extras(shape);
    before.U += q;
    before.scratch += fini_mixture_scratch(shape);
    fini_mixture_label(bag, stride, y, &at);
    fini_mixture_label(&before, stride, y, &old);
    double value = at.log_gate - old.log_joint, square = 0;
    for (int64_t l = 0; l < bag->L; l++) {
        double r = old.post[l], *d = dU + l * stride;
        if (r > 0) /* 0 times minus infinity is 0 here */
            value -= r * (U[l * stride] + at.logp[l] - U[l * stride + q] - old.logp[l]);
        d[0] = at.gate[l] - r;
        for (int64_t o = 0; o < outs; o++) {
            d[1 + o] = -r * at.slope[l * outs + o];
            dextra[o] += d[1 + o];
        }
        memset(d + q, 0, (size_t)q * sizeof *d);
        square -= r > 0 ? 2 * r * at.logp[l] : 0;
    }
    return shape->classes ? value : value + fini_mixture_sigma(bag->extra[1], square, &dextra[1]);
}

static const fini_bag_form bound_form = {
    .name = "mixture, EM",
    .keys = keys,
    .values = values,
    .extras = extras,
    .scratch = scratch,
    .loss = bound,
};

/* ---- EM -------------------------------------------------------------------------------------- */

enum { INNER = 4 };               /* L-BFGS steps of an M-step */
static const double flat = 1e-12; /* relative gain of a step at which EM has ended */

typedef struct em {
    fini_arena arena;
    fini_lbfgs search; /* of the M-step */
    fini_risk *risk, *bound;
    const double *penalty;      /* of keys, of values */
    int64_t n, keys, weights;   /* parameters; those of keys; those of W */
    int64_t extras, sigma;      /* beside W; which is log sigma, -1: there is none */
    double looked, sigma_slope; /* dQ / dlog sigma where Q was looked at last; at x */
    double *x, *slope;          /* (n) */
    double *both, *both_slope;  /* (2 n) W, W0, extras, extras0 */
} em;

static void layout(em *o)
{
    o->x = fini_take(&o->arena, o->n, sizeof(double));
    o->slope = fini_take(&o->arena, o->n, sizeof(double));
    o->both = fini_take(&o->arena, o->n, 2 * sizeof(double));
    o->both_slope = fini_take(&o->arena, o->n, 2 * sizeof(double));
}

/* Adds the penalty, and its slope. log sigma is not searched for: its slope is put aside. */
static double penalise(em *o, const double *x, double value, double *slope)
{
    for (int64_t j = 0; j < o->weights; j++) {
        double penalty = o->penalty[j >= o->keys];
        value += 0.5 * penalty * x[j] * x[j];
        slope[j] += penalty * x[j];
    }
    if (o->sigma >= 0) {
        o->looked = slope[o->sigma];
        slope[o->sigma] = 0;
    }
    return value;
}

/* Q at x; W0 and extras0 are in place. */
static fin_status bound_at(void *user, const double *x, double *value, double *slope,
                           fin_error *err)
{
    em *o = user;
    size_t W = (size_t)o->weights * sizeof(double), E = (size_t)o->extras * sizeof(double);
    memcpy(o->both, x, W);
    memcpy(o->both + 2 * o->weights, x + o->weights, E);
    FINI_TRY(fini_risk_value(o->bound, o->both, value, o->both_slope, err));
    memcpy(slope, o->both_slope, W);
    memcpy(slope + o->weights, o->both_slope + 2 * o->weights, E);
    *value = penalise(o, x, *value, slope);
    return FIN_OK;
}

/* A point that was accepted is the one that was looked at last. */
static bool accepted(void *user, int64_t iteration, const double *x, double value)
{
    em *o = user;
    (void)iteration, (void)x, (void)value;
    o->sigma_slope = o->looked;
    return false;
}

/* dQ/ds = (1 - R / variance) c, c = 1 - floor^2 / variance, tells the mean residual R: the best
 * variance. */
static void best_sigma(em *o)
{
    double *s = &o->x[o->sigma], variance = fini_mixture_variance(*s);
    double c = 1 - FINI_SIGMA_LEAST * FINI_SIGMA_LEAST / variance;
    if (c > 0)
        *s = fini_mixture_log_sigma(variance * (1 - o->sigma_slope / c));
}

static fin_status step(em *o, fin_error *err)
{
    size_t W = (size_t)o->weights * sizeof(double), E = (size_t)o->extras * sizeof(double);
    memcpy(o->both + o->weights, o->x, W);
    memcpy(o->both + 2 * o->weights + o->extras, o->x + o->weights, E);
    o->sigma_slope = o->looked;
    FINI_TRY(fini_lbfgs_run(&o->search, o->x, err));
    if (o->sigma >= 0)
        best_sigma(o);
    return FIN_OK;
}

static fin_status run(em *o, int64_t steps, double *parameters, double *value, fin_error *err)
{
    size_t bytes = (size_t)o->n * sizeof(double);
    memcpy(o->x, parameters, bytes);
    for (int64_t k = 0; k <= steps; k++) {
        double here;
        FINI_TRY(fini_risk_value(o->risk, o->x, &here, o->slope, err));
        here = penalise(o, o->x, here, o->slope);
        if (k > 0 && !(here <= *value)) /* rounding: the last step gained nothing */
            return FIN_OK;
        double gain = k > 0 ? *value - here : INFINITY;
        *value = here;
        memcpy(parameters, o->x, bytes);
        if (k == steps || !isfinite(here) || gain <= flat * (1 + fabs(here)))
            return FIN_OK;
        FINI_TRY(step(o, err));
    }
    return FIN_OK;
}

static fin_status open_em(em *o, fin_error *err)
{
    FINI_LAY_OUT(err, &o->arena, "EM", layout(o));
    FINI_TRY(fini_lbfgs_create(&o->search, o->n, err));
    o->search.iterations = INNER;
    o->search.function = bound_at;
    o->search.watch = accepted;
    o->search.user = o;
    return FIN_OK;
}

fin_status fini_em(fini_risk *risk, const fini_problem *problem, const double *penalty_of,
                   int64_t steps, double *parameters, double *value, fin_error *err)
{
    em o = {.risk = risk, .penalty = penalty_of, .n = fini_risk_parameters(risk), .sigma = -1};
    o.extras = fini_bag_mixture.extras(problem->shape);
    o.weights = o.n - o.extras;
    o.keys = problem->phi->bags.d;
    if (problem->shape->classes == 0)
        o.sigma = o.n - 1;
    fin_status status = open_em(&o, err);
    if (!status)
        status = fini_risk_create(&o.bound, &bound_form, problem, err);
    if (!status)
        status = run(&o, steps, parameters, value, err);
    fini_risk_destroy(o.bound);
    fini_lbfgs_close(&o.search);
    fini_arena_close(&o.arena);
    return status;
}
