/* What the mixture (mixture.c) and its EM (em.c) share. */
#ifndef FINI_BAGS_MIXTURE_H
#define FINI_BAGS_MIXTURE_H

#include "bags/bags.h"

/* The standard deviation of the Gaussian emission, in units of the labels' own deviation, is
 *
 *     sigma^2 = FINI_SIGMA_LEAST^2 + exp(2 s),    s = extra[outputs], any number.
 *
 * Without a floor the likelihood has no maximum as soon as the values can interpolate the labels:
 * sigma = 0 is infinitely likely, whatever the penalty. One hundredth of the labels' deviation is
 * an R^2 of 0.9999, above what anybody measures. */
#define FINI_SIGMA_LEAST 0.01
double fini_mixture_variance(double s);
double fini_mixture_log_sigma(double variance); /* the s of a variance; at least -12 */
/* What sigma adds to the loss of a bag beside the logp, log(2 pi sigma^2) / 2; ds is added to.
 * square: mean over tokens, by their posterior, of (y - m)^2 / sigma^2. */
double fini_mixture_sigma(double s, double square, double *ds);

/* The tokens of one bag, seen by the mixture; each array is (L) unless it says otherwise. */
typedef struct fini_mixture {
    double *gate;  /* P(J = l | X) */
    double *post;  /* P(J = l | X, y) */
    double *logp;  /* log p(y | J = l), without what is the same for all labels and tokens */
    double *slope; /* (L, outputs): d logp / d mean */
    double log_gate, log_joint; /* log sums of exp: of the gate's scores, of these plus logp */
} fini_mixture;

int64_t fini_mixture_scratch(const fini_bag_shape *shape);
/* Everything for the label y; stride: numbers of U from one token to the next. */
void fini_mixture_label(const fini_bag_shape *shape, const double *extra, int64_t L,
                        const double *U, int64_t stride, double y, fini_mixture *bag,
                        double *scratch);

#endif
