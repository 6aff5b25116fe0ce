/* any: the label is 1 if any of the tokens is "on" (noisy-or; two classes; 1 stands for the positive
 * class, shape->positive).
 *
 *     u_l = v.phi_l + b,   P(l on) = s_l = 1 / (1 + exp(-u_l)), independently,
 *     P(y = 1 | X) = 1 - prod_l (1 - s_l) = 1 - exp(-S),
 *     S = sum_l lam_l,   lam_l = -log(1 - s_l) = log(1 + exp(u_l))
 *
 * (Pearl, Probabilistic Reasoning in Intelligent Systems, 1988.) For labels such as "contains a
 * nine", where no token argues against and several may argue for. Loss and derivatives:
 *
 *     y = 0   S                      du_l = s_l
 *     y = 1   -log(1 - exp(-S))      du_l = -s_l / (exp(S) - 1)
 *
 * Both are P(l on) - P(l on | y). Which of the tokens that are on decided? Let each have a clock
 * that rings at the rate lam_l; a token is on if its clock rings before time 1, with probability
 * 1 - exp(-lam_l) = s_l as above. The first to ring decides, and that is token l with probability
 *
 *     lam_l / S,
 *
 * whenever it happens: knowing the label changes nothing. (After a label 0 it is the token that
 * would have been the first.)
 *
 * Where all tokens are far from being on, S is smaller than any number: then lam_l = s_l = exp(u_l)
 * to all digits, and sums are taken in logarithms. */
#include "bags/descend.h"

#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

/* Below this score exp(u) (1 - exp(u) / 2) is exp(u) to the last bit. */
static const double faint = -40;

static int64_t scratch(const fini_bag_shape *shape)
{
    return shape->longest;
}

/* The bag as a whole. */
typedef struct sums {
    double S, log_S;
    bool faint;  /* no token has a score above `faint`; log_S is known */
    double *lam; /* (L); faint: exp(u_l - log_S) = lam_l / S instead */
} sums;

static sums sum_up(const fini_bag *bag)
{
    int64_t L = bag->L;
    const double *U = bag->U;
    double *lam = bag->scratch, bias = bag->extra[0], top = U[0] + bias;
    sums all = {.lam = lam};
    for (int64_t l = 0; l < L; l++)
        top = U[l] + bias > top ? U[l] + bias : top;
    all.faint = top < faint && isfinite(top);
    for (int64_t l = 0; l < L; l++)
        lam[l] = all.faint ? U[l] + bias - top : -fabs(U[l] + bias);
    fini_kernel_get()->exp(L, lam, lam);
    for (int64_t l = 0; l < L; l++) {
        if (!all.faint)
            lam[l] = log1p(lam[l]) + (U[l] + bias > 0 ? U[l] + bias : 0);
        all.S += lam[l];
    }
    if (all.faint) {
        for (int64_t l = 0; l < L; l++)
            lam[l] /= all.S;
        all.log_S = top + log(all.S);
        all.S = exp(all.log_S);
    }
    return all;
}

/* -log(1 - exp(-S)), for all S > 0. */
static double log_loss(double S)
{
    return S < 0.5 ? -log(-expm1(-S)) : -log1p(-exp(-S));
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    sums all = sum_up(bag);
    bool on = (y > 0.5) == bag->shape->positive;
    for (int64_t l = 0; l < bag->L; l++) {
        double lam = all.lam[l];
        if (all.faint) /* s = S lam, exp(S) - 1 = S */
            dU[l] = on ? -lam : all.S * lam;
        else /* s = 1 - exp(-lam) */
            dU[l] = on ? expm1(-lam) / expm1(all.S) : -expm1(-lam);
        dextra[0] += dU[l];
    }
    return !on ? all.S : all.faint ? -all.log_S : log_loss(all.S);
}

static void predict(const fini_bag *bag, double *out, double *variance)
{
    sums all = sum_up(bag);
    out[!bag->shape->positive] = exp(-all.S);
    out[bag->shape->positive] = -expm1(-all.S);
    if (variance)
        variance[0] = 0;
}

static void locate(const fini_bag *bag, const double *y, double sigma2, double *weight)
{
    (void)y, (void)sigma2;
    sums all = sum_up(bag);
    bool usable = all.faint || (all.S > 0 && isfinite(all.S));
    for (int64_t l = 0; l < bag->L; l++)
        weight[l] = !usable ? 1 / (double)bag->L : all.faint ? all.lam[l] : all.lam[l] / all.S;
}

/* P(l on) = s_l, and exp(-S) that none is. */
static double own(const fini_bag *bag, double *on)
{
    sums all = sum_up(bag);
    for (int64_t l = 0; l < bag->L; l++)
        on[l] = all.faint ? all.S * all.lam[l] : -expm1(-all.lam[l]);
    return exp(-all.S);
}

/* 1 - own' = (1 - own)^r,  r = log none' / sum log(1 - own):  the product of 1 - own' is none'. */
static void own_after(int64_t L, double none, const double *after, double *on)
{
    double sum = 0;
    (void)none;
    for (int64_t l = 0; l < L; l++)
        sum += log1p(-on[l]);
    double r = log(after[0]) / sum;
    for (int64_t l = 0; l < L && isfinite(r); l++)
        on[l] = -expm1(r * log1p(-on[l]));
}

/* ---- subsets: a token's term is lam_l ----------------------------------------------------------- */

static void terms(const fini_bag *bag, bool apart, double *lam)
{
    int64_t L = bag->L;
    (void)apart;
    for (int64_t l = 0; l < L; l++)
        lam[l] = -fabs(bag->U[l] + bag->extra[0]);
    fini_kernel_get()->exp(L, lam, lam);
    fini_kernel_get()->log1p(L, lam, lam);
    for (int64_t l = 0; l < L; l++)
        lam[l] += fmax(bag->U[l] + bag->extra[0], 0);
}

/* 1 - exp(-S) has lost no more than three digits from S = 0.001 on. */
static void settle(const fini_bag *bag, int64_t count, const double *S, double *out)
{
    int on = bag->shape->positive;
    double *off = out + count;
    for (int64_t i = 0; i < count; i++)
        off[i] = -S[i];
    fini_kernel_get()->exp(count, off, off);
    for (int64_t i = 0; i < count; i++) { /* what is written over has been read */
        double none = off[i], some = S[i] > 1e-3 ? 1 - none : -expm1(-S[i]);
        out[2 * i + on] = some;
        out[2 * i + !on] = none;
    }
}

/* ---- where it starts --------------------------------------------------------------------------- */

/* Half of the bags, whatever the tokens. */
static void begin(const fini_problem *problem, double *x)
{
    int64_t p = problem->phi->bags.d;
    memset(x, 0, (size_t)p * sizeof *x);
    x[p] = log(expm1(log(2) * problem->bags / problem->tokens));
}

/* Far out, towards the class that a token can bring about. */
static void reach(const fini_problem *problem, const fini_ends *e, double *x)
{
    int64_t p = problem->phi->bags.d;
    double side = problem->shape->positive ? 1 : -1, middle = side > 0 ? e->above : e->below;
    double nu = fmax(1, fini_reach_value(e, middle) * e->sd) / e->sd;
    for (int64_t j = 0; j < p; j++)
        x[j] = side * nu * e->w[j];
    x[p] = fmin(-nu * fabs(middle), log(log(2) / e->L) - 0.5 * nu * nu * e->sd * e->sd);
}

static const fini_bag_form form = {.name = "any",
                                   .keys = fini_size_none,
                                   .values = fini_size_one,
                                   .extras = fini_size_one,
                                   .scratch = scratch,
                                   .loss = loss,
                                   .predict = predict,
                                   .locate = locate,
                                   .term = fini_size_one,
                                   .terms = terms,
                                   .settle = settle,
                                   .own = own,
                                   .own_after = own_after,
                                   .begin = begin,
                                   .reach = reach};

const fini_bag_model fini_bag_model_any = {.is = {"any", .sides = 1},
                                           .form = &form,
                                           .preferred = 7,
                                           .preferred_both = 6,
                                           .monotone = true,
                                           .strong_both = true};
