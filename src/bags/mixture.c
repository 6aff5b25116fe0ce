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

static void cut(const fini_bag_shape *shape, int64_t L, double *scratch, fini_mixture *bag)
{
    (void)shape;
    bag->gate = scratch;
    bag->post = scratch + L;
    bag->logp = scratch + 2 * L;
    bag->slope = scratch + 3 * L;
}

/* ---- gate ----------------------------------------------------------------------------------- */

/* w <- softmax(w); the logarithm of the sum of exponentials. */
static double softmax(int64_t L, double *w)
{
    double top = w[0], total = 0;
    for (int64_t l = 1; l < L; l++)
        top = fmax(top, w[l]);
    for (int64_t l = 0; l < L; l++)
        w[l] -= top;
    fini_kernel_get()->exp(L, w, w);
    for (int64_t l = 0; l < L; l++)
        total += w[l];
    for (int64_t l = 0; l < L; l++)
        w[l] /= total;
    return top + log(total);
}

static double gate_of(int64_t L, const double *U, int64_t stride, double *gate)
{
    for (int64_t l = 0; l < L; l++)
        gate[l] = U[l * stride];
    return softmax(L, gate);
}

/* ---- emissions: log p(y | m_l) and its slope in m_l ------------------------------------------ */

static void normal(const double *extra, int64_t L, const double *U, int64_t stride, double y,
                   fini_mixture *bag)
{
    double variance = fini_mixture_variance(extra[1]);
    for (int64_t l = 0; l < L; l++) {
        double rest = y - (U[l * stride + 1] + extra[0]);
        bag->slope[l] = rest / variance;
        bag->logp[l] = -0.5 * rest * bag->slope[l];
    }
}

/* t = m for class 1, -m for class 0: log p = min(t, 0) - log1p(e), e = exp(-|t|). */
static void logistic(const double *extra, int64_t L, const double *U, int64_t stride, double y,
                     fini_mixture *bag)
{
    const fini_kernel *kernel = fini_kernel_get();
    double sign = y > 0.5 ? 1 : -1, *e = bag->slope;
    for (int64_t l = 0; l < L; l++)
        e[l] = -fabs(U[l * stride + 1] + extra[0]);
    kernel->exp(L, e, e);
    kernel->log1p(L, e, bag->logp);
    for (int64_t l = 0; l < L; l++) {
        double t = sign * (U[l * stride + 1] + extra[0]);
        bag->logp[l] = fmin(t, 0) - bag->logp[l];
        bag->slope[l] = sign * (t > 0 ? e[l] : 1) / (1 + e[l]);
    }
}

/* slope_c = 1[c = y] - P_c. */
static void several(int64_t classes, const double *extra, int64_t L, const double *U,
                    int64_t stride, double y, fini_mixture *bag)
{
    int64_t is = (int64_t)y;
    for (int64_t l = 0; l < L; l++) {
        double *P = bag->slope + l * classes;
        for (int64_t c = 0; c < classes; c++)
            P[c] = U[l * stride + 1 + c] + extra[c];
        double score = P[is];
        bag->logp[l] = score - softmax(classes, P);
        for (int64_t c = 0; c < classes; c++)
            P[c] = (double)(c == is) - P[c];
    }
}

void fini_mixture_label(const fini_bag_shape *shape, const double *extra, int64_t L,
                        const double *U, int64_t stride, double y, fini_mixture *bag,
                        double *scratch)
{
    cut(shape, L, scratch, bag);
    if (shape->classes == 0)
        normal(extra, L, U, stride, y, bag);
    else if (shape->classes == 2)
        logistic(extra, L, U, stride, y, bag);
    else
        several(shape->classes, extra, L, U, stride, y, bag);
    bag->log_gate = gate_of(L, U, stride, bag->gate);
    for (int64_t l = 0; l < L; l++)
        bag->post[l] = U[l * stride] + bag->logp[l];
    bag->log_joint = softmax(L, bag->post);
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

static double loss(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                   double y, double *dU, double *dextra, double *scratch)
{
    int64_t outs = shape->outputs, q = 1 + outs;
    double square = 0;
    fini_mixture bag;
    fini_mixture_label(shape, extra, L, U, q, y, &bag, scratch);
    for (int64_t l = 0; l < L; l++) {
        dU[l * q] = bag.gate[l] - bag.post[l];
        for (int64_t o = 0; o < outs; o++) {
            double slope = -bag.post[l] * bag.slope[l * outs + o];
            dU[l * q + 1 + o] = slope;
            dextra[o] += slope;
        }
        square -= bag.post[l] > 0 ? 2 * bag.post[l] * bag.logp[l] : 0; /* not 0 times infinity */
    }
    double value = bag.log_gate - bag.log_joint;
    return shape->classes ? value : value + fini_mixture_sigma(extra[1], square, &dextra[1]);
}

/* Mean of the mixture; its variance is sigma^2 and the spread of the tokens' means. */
static void predict_number(const double *extra, int64_t L, const double *U, const double *gate,
                           double *out, double *variance)
{
    double mean = 0, spread = 0;
    for (int64_t l = 0; l < L; l++)
        mean += gate[l] * U[l * 2 + 1];
    for (int64_t l = 0; l < L; l++)
        spread += gate[l] * (U[l * 2 + 1] - mean) * (U[l * 2 + 1] - mean);
    out[0] = mean + extra[0];
    if (variance)
        variance[0] = fini_mixture_variance(extra[1]) + spread;
}

static void predict(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                    double *out, double *variance, double *scratch)
{
    int64_t q = 1 + shape->outputs, classes = shape->classes;
    double *gate = scratch, *P = scratch + L;
    gate_of(L, U, q, gate);
    if (classes == 0) {
        predict_number(extra, L, U, gate, out, variance);
        return;
    }
    for (int64_t c = 0; c < classes; c++)
        out[c] = 0;
    for (int64_t l = 0; l < L; l++) {
        const double *u = U + l * q + 1;
        if (classes == 2) {
            out[0] += gate[l] / (1 + exp(u[0] + extra[0]));
            out[1] += gate[l] / (1 + exp(-u[0] - extra[0]));
            continue;
        }
        for (int64_t c = 0; c < classes; c++)
            P[c] = u[c] + extra[c];
        softmax(classes, P);
        for (int64_t c = 0; c < classes; c++)
            out[c] += gate[l] * P[c];
    }
}

/* The exact posterior. The variance of the label given the token is the form's own, not that of a
 * label around the prediction. */
static void locate(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                   const double *y, double sigma2, double *weight, double *scratch)
{
    (void)sigma2;
    if (!y) {
        gate_of(L, U, 1 + shape->outputs, weight);
        return;
    }
    fini_mixture bag;
    fini_mixture_label(shape, extra, L, U, 1 + shape->outputs, *y, &bag, scratch);
    for (int64_t l = 0; l < L; l++)
        weight[l] = bag.post[l];
}

/* The mixture has a null location too, if labels other than the positive one are taken for "no token
 * did it":  P(token l did it) = gate_l P(positive | m_l),  P(none) = sum_l gate_l (1 - P(positive | m_l)).
 * The positive class is 1 inside; the caller's first class stands for none (fit.c). */
static double own(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                  double *out, double *scratch)
{
    double none = 0;
    gate_of(L, U, 2, scratch);
    for (int64_t l = 0; l < L; l++) {
        double m = (shape->positive ? 1 : -1) * (U[2 * l + 1] + extra[0]);
        out[l] = scratch[l] / (1 + exp(-m));
        none += scratch[l] / (1 + exp(m));
    }
    return none;
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
    .own = own,
};
