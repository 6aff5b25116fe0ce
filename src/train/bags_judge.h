/* Private face of judging and choosing: scores, folds, many fits side by side, weights of a stack. */
#ifndef FINI_BAGS_JUDGE_H
#define FINI_BAGS_JUDGE_H

#include "train/bags.h"

/* Area under the curve of `score` for telling the bags whose label is `class` from the others: the
 * share of pairs that are in the right order, ties count half. NaN if there are no pairs. score has
 * `stride` numbers a bag; bags whose label is NaN do not count. scratch: (n). */
double fini_auc(int64_t n, const double *labels, double class, const double *score, int64_t stride,
                double *scratch);

enum { FINI_ECE_BINS = 15 };
/* Number of the bin of a probability among `bins` equal ones; 1 is in the last. */
int fini_bin(double probability, int bins);

/* As fin_folds_make, for the bags with use[i] (NULL: all); the others get -1. lone: a class that has
 * one bag is no error, that bag gets -1 too. */
fin_status fini_folds_make(int64_t n, int64_t classes, const double *labels,
                           const unsigned char *use, bool lone, int repeats, int folds,
                           int64_t seed, int32_t *fold, fin_error *err);

/* ---- many fits (bags_cross.c) ------------------------------------------------------------------- */

/* A fit to the bags that are not in a fold, and its predictions for those that are. */
typedef struct fini_crossing {
    const fin_bags *bags;
    int64_t classes;
    const double *labels;  /* (n): what fini_part_fit wants, if `whole` is 0 */
    const double *weights; /* (n) or NULL */
    fin_sum sum;           /* NULL: alone, and the fits run side by side */
    int models, repeats, folds;
    const fin_fit_settings *model; /* (models) */
    const int32_t *fold;           /* (repeats, n); -1: never left out */
    bool whole;                    /* fin_fit_create, as a user would; else one part */
    const char *what;              /* for progress */
    double *mean;                  /* (models, repeats, n, width): width 1 or classes */
    double *sd;                    /* (models, repeats, n), numbers; or NULL */
    double *seconds;               /* (models): processor time; or NULL */
} fini_crossing;

fin_status fini_cross(const fini_crossing *crossing, const fin_progress *progress, fin_error *err);

/* ---- candidates (bags_candidates.c) ------------------------------------------------------------- */

/* What fini_fit_choose compares: the parts of a stack for auto and stack, else the model itself. How
 * many there are at most; with room for so many, fills the list and returns how many there are. */
int fini_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *model);

/* ---- weights of a stack (bags_weights.c) ------------------------------------------------------- */

/* Weights w >= 0 with sum 1 that make a convex loss of n bags smallest:
 *
 *     classes   mean of -log(sum_m w_m P_im)                       P: probability of the label it has
 *     numbers   mean of (sum_m w_m P_im - y_i)^2 / (2 sigma^2)     P: prediction; sigma^2: mean square
 *                                                                  error of the best model alone
 *               - (prior / bags) mean of log w_m                   as if `prior` bags more had been
 *                                                                  best predicted by each in turn
 *
 * The means over bags are weighted by omega: (n) or NULL; bags with 0 do not count. P: (models, n).
 * y: NULL for classes. */
fin_status fini_weights(int models, int64_t n, const double *P, const double *y,
                        const double *omega, double prior, double *w, fin_error *err);

#endif
