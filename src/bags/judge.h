/* Private face of judging and choosing: scores, folds, many fits side by side, weights of a stack. */
#ifndef FINI_BAGS_JUDGE_H
#define FINI_BAGS_JUDGE_H

#include "bags/bags.h"

/* Area under the curve of `score` for telling the bags whose label is `class` from the others: the
 * share of pairs that are in the right order, ties count half. NaN if there are no pairs. score has
 * `stride` numbers a bag; bags whose label is NaN do not count. scratch: (n). */
double fini_auc(int64_t n, const double *labels, double class, const double *score, int64_t stride,
                double *scratch);

enum { FINI_ECE_BINS = 15 };
/* Number of the bin of a probability among `bins` equal ones; 1 is in the last. */
int fini_bin(double probability, int bins);

/* Bags that are dealt to folds. */
typedef struct fini_dealt {
    int64_t n, classes;
    const double *labels;     /* (n) */
    const int64_t *groups;    /* (n) or NULL: every bag on its own */
    const unsigned char *use; /* (n) or NULL: all; the others get -1 */
    bool lone;                /* a class that has one bag (one group) is no error: it gets -1 too */
} fini_dealt;

/* As fin_folds_make. */
fin_status fini_folds_make(const fini_dealt *bags, int repeats, int folds, int64_t seed,
                           int32_t *fold, fin_error *err);
/* The same for one repeat, with bags taken in the order of these numbers (n), not in that of the file:
 * which bags are together does not depend on how they are sorted. */
fin_status fini_folds_ordered(const fini_dealt *bags, const double *order, int folds, int64_t seed,
                              int32_t *fold, fin_error *err);
/* Groups with numbers from 0 on, in the order of their first bag with use[i] (NULL: all); -1 for the
 * others. Returns how many there are. */
fin_status fini_groups_number(int64_t n, const int64_t *groups, const unsigned char *use,
                              int64_t *number, int64_t *count, fin_error *err);

/* ---- many fits (cross.c) ------------------------------------------------------------------- */

/* Fits 0 .. count - 1, each on one thread, side by side; the thread that made the call reports for
 * all. The first that fails is told of, and stops the others. */
typedef struct fini_fits {
    int64_t count;
    fin_status (*fit)(void *user, int64_t k, const fin_progress *progress, fin_error *err);
    void *user;
    const char *what; /* reported, with fits done of count */
    int threads;      /* at most */
    bool in_turn;     /* one after another, each on all threads: bags are split over processes */
} fini_fits;

fin_status fini_fits_run(const fini_fits *fits, const fin_progress *progress, fin_error *err);

/* Fits of models to training sets and to all but a fold of each, and their predictions (cross.c). */
typedef struct fini_crossing {
    const fin_bags *bags;
    int64_t classes;
    const double *weights;         /* (n) or NULL */
    fin_sum sum;                   /* NULL: alone, and the fits run side by side */
    int models, outers;            /* outers: training sets */
    const fin_fit_settings *model; /* (models) single models */
    const unsigned char *todo;     /* (models, outers): FINI_WHOLE, FINI_INNER or both */
    const unsigned char
        *test;               /* (outers, n): bags that are not in the training set and are predicted
                                * by fits to all of it; NULL: none */
    const int64_t *size;     /* (outers) bags of the training sets, of all processes */
    const int *inner;        /* (outers) inner folds; 0: none */
    const int32_t *fold;     /* (outers, n) inner fold of a bag; -1: never left out */
    const double *labels;    /* (outers, n): what fini_part_fit wants */
    int folds;               /* outer folds of a repeat, for messages */
    const char *what;        /* for progress */
    double *mean;            /* (models, outers, n, width): width 1 or classes */
    double *spread, *within; /* (models, outers, n), numbers, as fini_part_predict; or NULL */
    double *ends;            /* (models, outers, n, 2) of 90 %, the same */
    double *noise, *outlook; /* (models, outers) of fits to whole training sets; or NULL */
    double *seconds;         /* (models): processor time is added; or NULL */
} fini_crossing;
enum { FINI_WHOLE = 1, FINI_INNER = 2 }; /* fits to whole training sets, to all but an inner fold */

/* What nothing is written to is left as it is. */
fin_status fini_cross(const fini_crossing *crossing, const fin_progress *progress, fin_error *err);

/* ---- candidates (decide.c) ------------------------------------------------------------- */

/* The settings asked for, with classes as they are inside. */
fin_fit_settings fini_asked(const fin_fit_settings *settings, bool swapped);
/* Does it choose among models: FIN_CHOOSES_...? Does it see RBF features? */
int fini_chooses(const fin_fit_settings *settings);
bool fini_has_features(const fin_fit_settings *settings);
/* A model as fini_cross takes it: what does not matter to it, or is decided by then, has one value. */
void fini_single(fin_fit_settings *settings, int64_t classes);
/* Is it held back by inner folds, unless it is settled: numbers, and penalties that are not given? Then an
 * average of the model, stronger penalties and the mean is what it predicts. */
bool fini_shrinks(const fin_fit_settings *settings, int64_t classes);
/* Mean squared error to be expected of new bags, over the labels' variance, if each parameter cost the fit
 * two of its `bags`; INFINITY if there are too few. Below FINI_SETTLED no inner folds are needed to see
 * that a fit is better than the mean. */
double fini_outlook(const fini_part *part, double bags);
#define FINI_SETTLED 0.9
/* The model itself, or both sides of `any` if it is not given. Fills two at most, returns how many. */
int fini_sides(const fin_fit_settings *asked, int64_t classes, fin_fit_settings *side);
/* The single models that a model asked for is made of, in order of preference: those of auto and stack,
 * those of an average, sides. Fills at most `room`, returns how many there are. */
int fini_candidates(const fin_fit_settings *asked, int64_t classes, fin_fit_settings *model,
                    int room);
bool fini_same(const fin_fit_settings *a, const fin_fit_settings *b);
/* Place of `model` in the list, where it is put if it is not there. */
int fini_place(fin_fit_settings *list, int *count, const fin_fit_settings *model);
enum { FINI_CANDIDATES = 64, FINI_OTHERS = 16 /* that auto is given */ };

/* ---- decisions (decide.c) --------------------------------------------------------------------- */

/* What was predicted, inside one training set, for bags left out; bags of all processes. */
typedef struct fini_inner {
    int64_t total, classes;
    int models, folds;
    const fin_fit_settings *model; /* (models) */
    double *y;                     /* (total) labels */
    double *learn;                 /* (total) weights to learn from */
    double *omega;                 /* (total) weights of predictions; 0: not predicted */
    const double *order; /* (total) numbers of bags that do not depend on how they are sorted */
    int32_t *fold;       /* (total) */
    int64_t *group;      /* (total) 0 .. groups - 1; NULL: every bag for itself */
    int64_t groups;
    double *P; /* (models, total): probability of the label, or prediction */
} fini_inner;

typedef struct fini_decision {
    double *weight; /* (models) */
    double *w;      /* (folds, models): the same, found without a fold */
} fini_decision;

/* of: (count) numbers of the candidates, in order of preference; one of a model that shrinks: it is settled. */
fin_status fini_decide(const fini_inner *in, const fin_fit_settings *asked, int count,
                       const int *of, fini_decision *out, fin_error *err);
double fini_inner_loss(const fini_inner *in, int m); /* mean loss of model m */
/* Mean loss of a guess, and by how much less predictions with these losses (total) lose, with its
 * standard error over bags or groups. */
fin_status fini_inner_base(const fini_inner *in, const double *loss, double *base, double *gain,
                           double *se, fin_error *err);

/* Does a fit with these settings need inner folds, settled or not? bags: how many it has. */
bool fini_is_nested(const fin_fit_settings *settings, int64_t classes, int64_t bags, int64_t d);
/* Inner folds and weights of all bags (y and learn are there): fills fold, omega and group (or NULL), sets
 * folds; 0: there are too few bags. */
fin_status fini_inner_deal(fini_inner *in, const int64_t *groups, const fin_fit_settings *settings,
                           fin_error *err);
/* Predictions of own bags (n, width) by what was decided: mean (models, stride) of all models, from
 * first on. fold: of own bags. */
void fini_inner_mix(const fini_inner *in, const fini_decision *decision, int64_t n, int64_t width,
                    const int32_t *fold, const double *mean, int64_t stride, double *out);

/* ---- choices (choose.c) ----------------------------------------------------------------------- */

typedef struct fini_choice {
    const fin_bags *bags;
    const double *labels, *weights; /* own bags */
    fin_sum sum;                    /* NULL: alone */
    int64_t width;
    fin_fit_settings asked; /* with classes as they are inside */
    fini_inner in;
    fini_decision decision;
    int count, of[FINI_CANDIDATES];          /* candidates of the model asked for */
    fin_fit_settings model[FINI_CANDIDATES]; /* theirs, and those that may locate */
    unsigned char todo[FINI_CANDIDATES];
    bool shrinks;     /* fini_shrinks, and not settled */
    fini_part *whole; /* model 0 fitted to all bags already, or NULL */
    int locator;      /* which model locates, or -1 */
    bool measured; /* numbers: the noise is that on inner folds (they may be there for a locator) */
    double noise;  /* of what shrinks */
    double *out;   /* (models, stride): (n, width) out-of-fold predictions of own bags */
    int64_t stride; /* from model to model */
    double *own;    /* (n) */
    double *mix;    /* (n, width) */
    double *order;  /* (total) */
    double *loss;   /* (total) of what was decided; may share room with order */
} fini_choice;

/* With inner folds dealt and predicted: fills decision, and the fit's sharpness and losses. */
fin_status fini_choice_decide(fini_choice *c, fin_fit *fit, fin_error *err);
/* Without inner folds: the same, or an error if they are needed. */
fin_status fini_choice_skip(fini_choice *c, fin_fit *fit, fin_error *err);
/* The noise of model m; fitted: what its own fit says. */
double fini_choice_noise(const fini_choice *c, int m, double fitted);
/* Classes, without inner folds: the sharpness that a model's own draws say, or 1. */
double fini_choice_sharpness(const fini_choice *c, double fitted);

/* ---- nested cross-validation (nested.c) ------------------------------------------------------- */

typedef struct fini_nested {
    const fin_bags *bags;
    int64_t classes;
    int count; /* models */
    const fin_fit_settings *asked;
    int repeats, folds;
    const int32_t *fold; /* (repeats, n) */
    double *mean;        /* (count, repeats, n, width) predictions for bags left out */
    double *sd, *ends;   /* (count, repeats, n), (count, repeats, n, 2) of 90 %; numbers; or NULL */
    double *seconds;     /* (count) processor time of all its fits */
} fini_nested;

fin_status fini_nested_run(const fini_nested *nested, const fin_progress *progress, fin_error *err);

/* ---- weights of a stack (weights.c) ------------------------------------------------------- */

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
