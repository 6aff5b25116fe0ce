/* What the files of the engine share among themselves: where fits start (start.c), the way from
 * starts to members (descend.c), and what helps on it. */
#ifndef FINI_BAGS_DESCEND_H
#define FINI_BAGS_DESCEND_H

#include "bags/bags.h"
#include "math/lbfgs.h"

/* ---- one part -------------------------------------------------------------------------------- */

/* Fills part->member from starts to minima, for every penalty of the grid. */
fin_status fini_part_descend(fini_problem *problem, fin_error *err);
/* A share of the bags goes from weights to held. Which depends on the seed and the number of a bag, or of
 * its group, alone. */
void fini_hold_out(const fini_problem *problem, double share, double *weights, double *held);
/* Are the members polished (polish.c)? Numbers, and bags enough; after fini_problem_count. */
bool fini_polished(const fini_problem *problem);
/* Penalties of a fit, strongest first; returns how many. penalty may be NULL. */
int64_t fini_penalties(const fini_problem *problem, double *penalty);

/* ---- starts (start.c) ------------------------------------------------------------------------ */

/* A view with one token per bag: its mean. Small: a copy; NULL tokens if it would not be. */
fin_status fini_phi_means(const fini_phi *phi, fini_phi *means, fini_cancel *cancel,
                          fin_error *err);
/* Parameters of the part's form from mean pooling's (values and biases): start number `start`, 0
 * with no preference for any token. variance: of the labels around mean pooling. */
void fini_start(const fini_problem *problem, int64_t start, const double *mean, double variance,
                double *x);
/* Parameters that look where the bags of the two classes reach farthest (extreme.c); *found is
 * false if there is no such place, or if there are too many bags. */
fin_status fini_extreme(const fini_problem *problem, double *x, bool *found, fin_error *err);
/* What is known there of w.phi: a form makes a start of it (fini_bag_form.reach). */
typedef struct fini_ends {
    const double *w; /* (p) the direction */
    double L;        /* tokens a bag */
    double mean, sd; /* of w.phi over tokens */
    double up,
        down; /* by how many deviations the largest, the smallest of class 1 is above that of class 0 */
    double above, below; /* half-way between these */
} fini_ends;
/* The start of a form whose keys choose tokens and whose values read them; the values' size. */
void fini_reach_keys(const fini_problem *problem, const fini_ends *ends, double *x);
double fini_reach_value(const fini_ends *ends, double middle);
/* Fills weight, bags and tokens. */
fin_status fini_problem_count(fini_problem *problem, fin_error *err);

/* ---- answers (answer.c) ------------------------------------------------------------------------ */

/* What is wanted of the bags of a view; each may be NULL. In the part's own units. */
typedef struct fini_answer {
    double *mean, *spread, *within; /* as fini_part_predict */
    double coverage, *ends;
    const double *labels;       /* for given */
    const unsigned char *known; /* (n) bags that the part was fitted to; NULL: none */
    bool trained;               /* all are */
    fin_locations to;           /* as fini_part_locate */
    fini_evidence evidence;     /* added to, times share */
    double share;
} fini_answer;
fin_status fini_part_answer(const fini_part *part, const fini_phi *phi, const fini_answer *answer,
                            fini_cancel *cancel, fin_error *err);
/* The same of bags through the part's map, some at a time. */
fin_status fini_part_answer_all(const fini_part *part, const fin_bags *bags,
                                const fini_answer *answer, fini_cancel *cancel, fin_error *err);

/* ---- subsets of the tokens of a bag (evidence.c) ---------------------------------------------- */

/* Doubles of scratch for bags of up to shape->longest tokens. Predictions of the bag (width); (L, width)
 * of it without each token; of each token alone; of the tokens from each place of an order on: added to, times share. */
int64_t fini_evidence_scratch(const fini_bag_shape *shape);
void fini_evidence_whole(const fini_bag *bag, double share, double *room, double *whole);
void fini_evidence_without(const fini_bag *bag, double share, double *room, double *without);
void fini_evidence_alone(const fini_bag *bag, double share, double *room, double *alone);
void fini_evidence_after(const fini_bag *bag, const int64_t *order, double share, double *room,
                         double *after);

/* ---- the mixture and its EM (mixture.c, em.c) --------------------------------------------------- */

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
/* Everything for the label y; stride: numbers of bag->U from one token to the next. */
void fini_mixture_label(const fini_bag *bag, int64_t stride, double y, fini_mixture *to);

/* ---- what follows a penalised minimum: gains, keys (polish.c) ------------------------------------- */

/* Enough bags beside p columns for it? Fewer, and it costs more than it gains: in simulations (50
 * to 200 columns) the break-even point is between two and four bags a column. */
enum { FINI_RELAX_BAGS = 4 };
/* In place; the loss, without penalty, never grows. For numbers. */
fin_status fini_relax(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                      double *parameters, double *loss, fin_error *err);

/* Choices of the setting `gate`. */
enum { FINI_GATE_AUTO, FINI_GATE_FREE, FINI_GATE_GAUSSIAN };
/* After a penalised minimum of a form that finds a token. In place; *loss is the mean loss, without
 * penalty. penalty: of values, where the loss is minus a mean log likelihood.
 *
 *     gains     for numbers, and at least FINI_RELAX_BAGS bags a column, whatever `gate` is
 *     keys      from the posterior location (polish.c), if there is one head. auto: where
 *               there are gains, if the training bags prefer it; free: never; gaussian: always, for
 *               classes and few bags too */
fin_status fini_polish(fini_risk *risk, const fini_problem *problem, double penalty, int gate,
                       double *parameters, double *loss, fin_error *err);

/* ---- second derivatives of least squares on features (ridge.c) ------------------------------------ */

typedef struct fini_ridge fini_ridge;

/* Is it worth its time, with so many bags of everybody? */
bool fini_ridge_helps(const fini_phi *phi, double bags);
/* A (p, p), lower triangle: weighted sum over tokens of (phi - center)(phi - center)' / n; center: NULL: 0. */
fin_status fini_second_moments(const fini_problem *problem, double n, const double *center,
                               double *A, fin_error *err);
/* Of a view of one token per bag, in memory of its own. */
fin_status fini_ridge_create(fini_ridge **ridge, const fini_problem *problem, fin_error *err);
void fini_ridge_destroy(fini_ridge *ridge); /* NULL is fine */
/* For a penalty, over n, and a variance of the noise. */
fin_status fini_ridge_factor(fini_ridge *ridge, double penalty, double variance,
                             fini_cancel *cancel, fin_error *err);
/* d (n), of which the first p belong to features: times the inverse. False: there is no factor. */
bool fini_ridge_solve(const fini_ridge *ridge, int64_t n, double *d);

#endif
