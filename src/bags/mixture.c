/* mixture: the likelihood of single-location regression itself. One token J of a bag decided; which
 * one is latent, with a gate that prefers some tokens, and the label has a simple law given it:
 *
 *     P(J = l | X) = softmax_l(a_l),  a_l = k.phi_l,       m_l = V phi_l + b,
 *     p(y | X) = sum_l P(J = l | X) p(y | m_l),            loss = -log p(y | X)
 *
 *     numbers          p(y | m) = N(y; m, sigma^2)
 *     two classes      P(y = 1 | m) = 1 / (1 + exp(-m))
 *     several classes  P(y = c | m) = softmax_c(m)
 *
 * (Jordan and Jacobs, Hierarchical mixtures of experts and the EM algorithm, 1994, with one expert
 * and as many places as the bag has tokens.) With post_l = P(J = l | X, y) the derivatives are
 *
 *     dloss / da_l = gate_l - post_l,     dloss / dm_l = -post_l dlog p(y | m_l) / dm_l:
 *
 * posterior and prior pull at each other until they agree. Sums are taken in logarithms, since a
 * label that no token explains has a likelihood far below the smallest number. Exponentials go
 * through the kernels, a bag at a time. */
#include "bags/descend.h"

#include "kernel/kernel.h"
#include "math/small.h"

#include <math.h>

/* ---- sigma ---------------------------------------------------------------------------------- */

/* Beyond these a search has lost its way; they keep exp(2 s) a number. */
static const double s_least = -12, s_most = 50;

double fini_mixture_variance(double s)
{
    return FINI_SIGMA_LEAST * FINI_SIGMA_LEAST + exp(2 * fmin(s, s_most));
}

double fini_mixture_log_sigma(double variance)
{
    double above = variance - FINI_SIGMA_LEAST * FINI_SIGMA_LEAST;
    return above > 0 ? fmin(fmax(0.5 * log(above), s_least), s_most) : s_least;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static int64_t extras(const fini_bag_shape *shape)
{
    return shape->outputs + (shape->classes == 0);
}

int64_t fini_mixture_scratch(const fini_bag_shape *shape)
{
    return shape->longest * (3 + shape->outputs);
}

/* ---- gate ----------------------------------------------------------------------------------- */

static double gate_of(int64_t L, const double *U, int64_t stride, double *gate)
{
    for (int64_t l = 0; l < L; l++)
        gate[l] = U[l * stride];
    return fini_softmax(L, gate, true);
}

/* ---- emissions: log p(y | m_l) and its slope in m_l ------------------------------------------ */

static void normal(const fini_bag *bag, int64_t stride, double y, const fini_mixture *to)
{
    double variance = fini_mixture_variance(bag->extra[1]), bias = bag->extra[0];
    for (int64_t l = 0; l < bag->L; l++) {
        double rest = y - (bag->U[l * stride + 1] + bias);
        to->slope[l] = rest / variance;
        to->logp[l] = -0.5 * rest * to->slope[l];
    }
}

/* t = m for class 1, -m for class 0: log p = min(t, 0) - log1p(e), e = exp(-|t|). */
static void logistic(const fini_bag *bag, int64_t stride, double y, const fini_mixture *to)
{
    const fini_kernel *kernel = fini_kernel_get();
    const double *U = bag->U, bias = bag->extra[0];
    double sign = y > 0.5 ? 1 : -1, *e = to->slope;
    for (int64_t l = 0; l < bag->L; l++)
        e[l] = -fabs(U[l * stride + 1] + bias);
    kernel->exp(bag->L, e, e);
    kernel->log1p(bag->L, e, to->logp);
    for (int64_t l = 0; l < bag->L; l++) {
        double t = sign * (U[l * stride + 1] + bias);
        to->logp[l] = fmin(t, 0) - to->logp[l];
        to->slope[l] = sign * (t > 0 ? e[l] : 1) / (1 + e[l]);
    }
}

/* slope_c = 1[c = y] - P_c. */
static void several(const fini_bag *bag, int64_t stride, double y, const fini_mixture *to)
{
    int64_t is = (int64_t)y, classes = bag->shape->classes;
    for (int64_t l = 0; l < bag->L && !fini_cancelled(bag->cancel, 8 * (double)classes); l++) {
        double *P = to->slope + l * classes;
        for (int64_t c = 0; c < classes; c++)
            P[c] = bag->U[l * stride + 1 + c] + bag->extra[c];
        double score = P[is];
        to->logp[l] = score - fini_softmax(classes, P, true);
        for (int64_t c = 0; c < classes; c++)
            P[c] = (double)(c == is) - P[c];
    }
}

void fini_mixture_label(const fini_bag *bag, int64_t stride, double y, fini_mixture *to)
{
    int64_t L = bag->L;
    double *room = bag->scratch;
    *to = (fini_mixture){room, room + L, room + 2 * L, room + 3 * L, 0, 0};
    if (bag->shape->classes == 0)
        normal(bag, stride, y, to);
    else if (bag->shape->classes == 2)
        logistic(bag, stride, y, to);
    else
        several(bag, stride, y, to);
    to->log_gate = gate_of(L, bag->U, stride, to->gate);
    for (int64_t l = 0; l < L; l++)
        to->post[l] = bag->U[l * stride] + to->logp[l];
    to->log_joint = fini_softmax(L, to->post, true);
}

/* ---- the form -------------------------------------------------------------------------------- */

/* -log N(y; m, sigma^2) adds log(2 pi sigma^2) / 2, and with q_l = (y - m_l)^2 / sigma^2
 *
 *     d / ds = (1 - sum_l post_l q_l) exp(2 s) / sigma^2. */
double fini_mixture_sigma(double s, double square, double *ds)
{
    const double log_2_pi = 1.8378770664093453;
    double variance = fini_mixture_variance(s);
    *ds += (1 - square) * (1 - FINI_SIGMA_LEAST * FINI_SIGMA_LEAST / variance);
    return 0.5 * (log_2_pi + log(variance));
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    int64_t outs = bag->shape->outputs, q = 1 + outs;
    double square = 0;
    fini_mixture at;
    fini_mixture_label(bag, q, y, &at);
    for (int64_t l = 0; l < bag->L; l++) {
        dU[l * q] = at.gate[l] - at.post[l];
        for (int64_t o = 0; o < outs; o++) {
            double slope = -at.post[l] * at.slope[l * outs + o];
            dU[l * q + 1 + o] = slope;
            dextra[o] += slope;
        }
        square -= at.post[l] > 0 ? 2 * at.post[l] * at.logp[l] : 0; /* not 0 times infinity */
    }
    double value = at.log_gate - at.log_joint;
    return bag->shape->classes ? value
                               : value + fini_mixture_sigma(bag->extra[1], square, &dextra[1]);
}

/* Mean of the mixture; its variance is sigma^2 and the spread of the tokens' means. */
static void predict_number(const fini_bag *bag, const double *gate, double *out, double *variance)
{
    const double *U = bag->U;
    double mean = 0, spread = 0;
    for (int64_t l = 0; l < bag->L; l++)
        mean += gate[l] * U[l * 2 + 1];
    for (int64_t l = 0; l < bag->L; l++)
        spread += gate[l] * (U[l * 2 + 1] - mean) * (U[l * 2 + 1] - mean);
    out[0] = mean + bag->extra[0];
    if (variance)
        variance[0] = fini_mixture_variance(bag->extra[1]) + spread;
}

static void predict(const fini_bag *bag, double *out, double *variance)
{
    int64_t L = bag->L, q = 1 + bag->shape->outputs, classes = bag->shape->classes;
    const double *extra = bag->extra;
    double *gate = bag->scratch, *P = gate + L;
    gate_of(L, bag->U, q, gate);
    if (classes == 0) {
        predict_number(bag, gate, out, variance);
        return;
    }
    for (int64_t c = 0; c < classes; c++)
        out[c] = 0;
    for (int64_t l = 0; l < L && !fini_cancelled(bag->cancel, 8 * (double)classes); l++) {
        const double *u = bag->U + l * q + 1;
        if (classes == 2) {
            out[0] += gate[l] / (1 + exp(u[0] + extra[0]));
            out[1] += gate[l] / (1 + exp(-u[0] - extra[0]));
            continue;
        }
        for (int64_t c = 0; c < classes; c++)
            P[c] = u[c] + extra[c];
        fini_softmax(classes, P, true);
        for (int64_t c = 0; c < classes; c++)
            out[c] += gate[l] * P[c];
    }
}

/* The exact posterior. The variance of the label given the token is the form's own, not that of a
 * label around the prediction. */
static void locate(const fini_bag *bag, const double *y, double sigma2, double *weight)
{
    (void)sigma2;
    if (!y) {
        gate_of(bag->L, bag->U, 1 + bag->shape->outputs, weight);
        return;
    }
    fini_mixture at;
    fini_mixture_label(bag, 1 + bag->shape->outputs, *y, &at);
    for (int64_t l = 0; l < bag->L; l++)
        weight[l] = at.post[l];
}

/* The mixture has a null location too, if labels other than the positive one are taken for "no token
 * did it":  P(token l did it) = gate_l P(positive | m_l),  P(none) = sum_l gate_l (1 - P(positive | m_l)).
 * The positive class is 1 inside; the caller's first class stands for none (fit.c). */
static double own(const fini_bag *bag, double *out)
{
    double none = 0, *gate = bag->scratch, sign = bag->shape->positive ? 1 : -1;
    gate_of(bag->L, bag->U, 2, gate);
    for (int64_t l = 0; l < bag->L; l++) {
        double m = sign * (bag->U[2 * l + 1] + bag->extra[0]);
        out[l] = gate[l] / (1 + exp(-m));
        none += gate[l] / (1 + exp(m));
    }
    return none;
}

/* own' = own (1 - none') / (1 - none): the sum of own' is 1 - none'. */
static void own_after(int64_t L, double none, const double *after, double *out)
{
    double r = after[1] / (1 - none);
    for (int64_t l = 0; l < L && isfinite(r); l++)
        out[l] = r * out[l];
}

/* ---- subsets: a token's term is g, its gate relative to the largest, and g times what it predicts ---- */

static int64_t term(const fini_bag_shape *shape)
{
    return 1 + (shape->classes ? shape->classes : 1);
}

/* Of two classes, both: the smaller one loses no digits. P(1 | m) = e / (1 + e) or 1 / (1 + e), e = exp(-|m|). */
static void two_terms(const fini_bag *bag, const double *gate, double *e, double *to)
{
    const double *U = bag->U, bias = bag->extra[0];
    for (int64_t l = 0; l < bag->L; l++)
        e[l] = -fabs(U[2 * l + 1] + bias);
    fini_kernel_get()->exp(bag->L, e, e);
    for (int64_t l = 0; l < bag->L; l++, to += 3) {
        bool up = U[2 * l + 1] + bias > 0;
        double large = gate[l] / (1 + e[l]), small = e[l] * large;
        to[0] = gate[l];
        to[1] = up ? small : large;
        to[2] = up ? large : small;
    }
}

static void terms(const fini_bag *bag, bool apart, double *to)
{
    int64_t L = bag->L, classes = bag->shape->classes, q = 1 + bag->shape->outputs;
    double *gate = bag->scratch;
    for (int64_t l = 0; l < L; l++)
        gate[l] = apart ? 0 : bag->U[l * q];
    if (!apart)
        fini_softmax_shift(L, gate);
    fini_kernel_get()->exp(L, gate, gate);
    if (classes == 2) {
        two_terms(bag, gate, gate + L, to);
        return;
    }
    for (int64_t l = 0; l < L && !fini_cancelled(bag->cancel, 8 * (double)classes); l++) {
        const double *u = bag->U + l * q + 1;
        *to++ = gate[l];
        for (int64_t o = 0; o < q - 1; o++)
            to[o] = u[o] + bag->extra[o];
        if (classes)
            fini_softmax(classes, to, true);
        for (int64_t o = 0; o < q - 1; o++)
            *to++ *= gate[l];
    }
}

static void settle(const fini_bag *bag, int64_t count, const double *sums, double *out)
{
    int64_t width = term(bag->shape) - 1;
    for (int64_t i = 0; i < count; i++, sums += 1 + width)
        for (int64_t c = 0; c < width; c++)
            out[i * width + c] = sums[0] > FINI_FAINT_SUM ? sums[1 + c] / sums[0] : NAN;
}

/* Numbers: from the noise of mean pooling. */
static double begin_sigma(const fini_problem *problem, double variance, double *extra)
{
    if (problem->shape->classes == 0)
        extra[problem->shape->outputs] = fini_mixture_log_sigma(fmax(0.1, variance));
    return 1;
}

const fini_bag_form fini_bag_mixture = {
    .name = "mixture",
    .keys = fini_size_one,
    .values = fini_size_outputs,
    .extras = extras,
    .scratch = fini_mixture_scratch,
    .loss = loss,
    .predict = predict,
    .locate = locate,
    .term = term,
    .terms = terms,
    .settle = settle,
    .own = own,
    .own_after = own_after,
    .begin_extras = begin_sigma,
    .reach = fini_reach_keys,
    .approach = fini_em,
    .likelihood = true,
    .finds = true,
};

const fini_bag_model fini_bag_model_mixture = {.is = {.name = "mixture"},
                                               .form = &fini_bag_mixture,
                                               .basis = FIN_BASIS_BOTH,
                                               .preferred = 5,
                                               .preferred_both = 2,
                                               .compared = 4,
                                               .strong = true,
                                               .decides = FINI_DECIDES_ONE};
