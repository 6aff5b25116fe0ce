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
#include "bags/bags.h"

#include "kernel/kernel.h"

#include <math.h>

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

static sums sum_up(double bias, int64_t L, const double *U, double *lam)
{
    sums all = {.lam = lam};
    double top = U[0] + bias;
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

static double loss(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                   double y, double *dU, double *dextra, double *work)
{
    sums all = sum_up(extra[0], L, U, work);
    bool on = (y > 0.5) == shape->positive;
    for (int64_t l = 0; l < L; l++) {
        double lam = all.lam[l];
        if (all.faint) /* s = S lam, exp(S) - 1 = S */
            dU[l] = on ? -lam : all.S * lam;
        else /* s = 1 - exp(-lam) */
            dU[l] = on ? expm1(-lam) / expm1(all.S) : -expm1(-lam);
        dextra[0] += dU[l];
    }
    return !on ? all.S : all.faint ? -all.log_S : log_loss(all.S);
}

static void predict(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                    double *out, double *variance, double *work)
{
    sums all = sum_up(extra[0], L, U, work);
    out[!shape->positive] = exp(-all.S);
    out[shape->positive] = -expm1(-all.S);
    if (variance)
        variance[0] = 0;
}

static void locate(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                   const double *y, double sigma2, double *weight, double *work)
{
    (void)shape;
    (void)y;
    (void)sigma2;
    sums all = sum_up(extra[0], L, U, work);
    bool usable = all.faint || (all.S > 0 && isfinite(all.S));
    for (int64_t l = 0; l < L; l++)
        weight[l] = !usable ? 1 / (double)L : all.faint ? all.lam[l] : all.lam[l] / all.S;
}

/* P(l on) = s_l, and exp(-S) that none is. */
static double own(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                  double *on, double *work)
{
    (void)shape;
    sums all = sum_up(extra[0], L, U, work);
    for (int64_t l = 0; l < L; l++)
        on[l] = all.faint ? all.S * all.lam[l] : -expm1(-all.lam[l]);
    return exp(-all.S);
}

const fini_bag_form fini_bag_any = {
    "any", fini_size_none, fini_size_one, fini_size_one, scratch, loss, predict, locate, own};
