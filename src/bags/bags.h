/* Private face of fitting to bags: what its files share.
 *
 * A fit is a list of parts (one, or those of a stack). A part is a map, a form and members:
 *
 *     bags --map--> tokens phi in R^p --W--> scores U (L, q) --form--> loss, prediction, location
 *
 * A form never sees tokens: it gets the q scores of each token of one bag, and gives back what the
 * loss wants them to be. So the engine reads a bag's tokens once, projects, asks the form, gathers,
 * and a new form is a few formulas. Models of a bag as a whole (mean, max, embedding) are the form
 * `mean` after a map that makes one token of a bag. */
#ifndef FINI_BAGS_H
#define FINI_BAGS_H

#include "base/cancel.h"
#include "base/state.h"
#include "finetti/bags.h"

#include <math.h>

#define FINI_FEATURES "features" /* what is reported while tokens are prepared */

/* ---- forms (attention.c, mixture.c, any.c, mean.c) --------------------------------------- */

typedef struct fini_bag_form fini_bag_form;
typedef struct fini_risk fini_risk; /* a training problem with its scratch (risk.c) */
typedef struct fini_problem fini_problem;
struct fini_part;
struct fini_ends;

typedef struct fini_bag_shape {
    int64_t heads, classes; /* classes 0: numbers */
    int64_t outputs;        /* 1 for numbers and two classes, else classes */
    int64_t longest;        /* tokens of the longest bag, for scratch */
    int positive;           /* models with sides: the class that a token brings about */
    const fini_bag_form *form;
} fini_bag_shape;

/* One bag, as a form sees it. */
typedef struct fini_bag {
    const fini_bag_shape *shape;
    const double *extra; /* (extras) parameters beside W */
    int64_t L;
    const double *U; /* (L, q) scores of its tokens */
    double *scratch;
    fini_cancel *cancel; /* or NULL; when it is cancelled it does not matter what is written */
} fini_bag;

/* Neighbouring bags, as a form sees them. */
typedef struct fini_bag_run {
    const fini_bag_shape *shape;
    const double *extra;
    int64_t bags;
    const int64_t *offsets;         /* (bags + 1) of tokens, wherever they begin */
    const double *labels, *weights; /* (bags); NULL: all 1 */
    const double *U;                /* (tokens, q) */
    double *scratch;                /* (tokens + 4 bags) */
} fini_bag_run;

struct fini_bag_form {
    const char *name;
    /* Scores of a token: q of them; W has q rows of p numbers: first those of keys, then values. */
    int64_t (*keys)(const fini_bag_shape *shape);
    int64_t (*values)(const fini_bag_shape *shape);
    /* Parameters beside W (biases first: `outputs` of them, then e.g. the logarithm of sigma). Not
     * penalised. */
    int64_t (*extras)(const fini_bag_shape *shape);
    /* Doubles of scratch for bags of up to shape->longest tokens. */
    int64_t (*scratch)(const fini_bag_shape *shape);
    /* Loss of one bag (for numbers (f - y)^2 / 2 with y standardised, or minus the log likelihood),
     * and its derivatives: dU (L, q) is written, dextra is added to. */
    double (*loss)(const fini_bag *bag, double y, double *dU, double *dextra);
    /* The same, weighted, of several bags at once, as rough as scores in float are; two classes and one head. NULL:
     * bag by bag. */
    double (*losses)(const fini_bag_run *run, double *dU, double *dextra);
    /* numbers: out[0] mean, variance[0] that of the label within the model (0 if it has none);
     * classes: out (classes) probabilities. */
    void (*predict)(const fini_bag *bag, double *out, double *variance);
    /* Numbers: the law of a label within the model is a mixture of normals, one a token. Their weights and
     * means (L); returns their deviation. NULL: it is told by mean and variance. */
    double (*law)(const fini_bag *bag, double *weight, double *mean);
    /* Probabilities of the tokens (L); y: NULL, or the label (standardised, or the class), with
     * sigma2 the variance of a label around its prediction. NULL: the form has no location. */
    void (*locate)(const fini_bag *bag, const double *y, double sigma2, double *weight);
    /* What `predict` says of any subset of a bag's tokens depends on a sum over them (evidence.c): the
     * doubles of a token's term; terms (L, term), relative to the largest score of the bag or, apart, each
     * as if the token were alone; and out (count, width) of as many sums, NaN where a sum is too small to
     * say. NULL: `predict` is asked for each subset. */
    int64_t (*term)(const fini_bag_shape *shape);
    void (*terms)(const fini_bag *bag, bool apart, double *terms);
    void (*settle)(const fini_bag *bag, int64_t count, const double *sums, double *out);
    /* Members are draws from a posterior: log probability of the bag, and of its label y unless that is
     * NULL, but for what all members share. NULL: they count alike. */
    double (*vouch)(const fini_bag *bag, const double *y);
    /* Two classes: probabilities of the tokens (L) that they are of the positive class by themselves;
     * returns that of none being so. NULL: the form does not say. */
    double (*own)(const fini_bag *bag, double *own);
    /* With `own`: these probabilities (L) when that of none goes from `none` to after[0] = 1 - after[1]. */
    void (*own_after)(int64_t L, double none, const double *after, double *own);
    /* The start, if it is not mean pooling's minimum. */
    void (*begin)(const fini_problem *problem, double *x);
    /* Extras after the biases, where it is; returns what mean pooling's values are multiplied by.
     * variance: of the labels around mean pooling. NULL: there are none, and 1. */
    double (*begin_extras)(const fini_problem *problem, double variance, double *extra);
    /* A start where bags reach farthest (extreme.c). NULL: it has none. */
    void (*reach)(const fini_problem *problem, const struct fini_ends *ends, double *x);
    /* Goes `steps` steps towards a penalised minimum, in place, before L-BFGS does. NULL: there is no such way. */
    fin_status (*approach)(fini_risk *risk, const fini_problem *problem, const double *penalty_of,
                           int64_t steps, double *parameters, double *value, fin_error *err);
    bool pools;      /* it is mean pooling, which is convex, and from whose minimum others start */
    bool likelihood; /* of numbers too: the noise is among its parameters, not in a squared error */
    bool finds;      /* its keys look for the one token that decides: they can be polished */
    const struct fini_weighting *weighting; /* attention.c */
    const fini_bag_form *of;                /* em.c, polish.c: the form that it helps */
};

extern const fini_bag_form fini_bag_softmax, fini_bag_mixture, fini_bag_mean;
/* Sizes that several forms have: none, one, as many as there are outputs. */
int64_t fini_size_none(const fini_bag_shape *shape);
int64_t fini_size_one(const fini_bag_shape *shape);
int64_t fini_size_outputs(const fini_bag_shape *shape);

/* ---- models: a form, a map, and what is usual (table in model.c) -------------------------- */

enum { FINI_TOKENS, FINI_MEAN, FINI_MAX, FINI_STATISTICS }; /* what a map takes of a bag (map.c) */

typedef struct fini_bag_model {
    fin_fit_model is;
    const fini_bag_form *form; /* NULL: it chooses among others */
    int statistics;            /* FINI_TOKENS, ... */
    int basis;      /* the usual one, of classes; of numbers it is linear. 0: linear too */
    int64_t starts; /* the usual number; 0: 1 */
    /* Its own way to members, is.draws of them; NULL: descend.c, a member for each penalty. */
    fin_status (*fit)(fini_problem *problem, fin_error *err);
    bool calibrated;         /* its answers are as sure as they should be by themselves */
    const double *penalties; /* the usual ones of numbers, ended by 0; NULL: those of all models */
    /* Place, from 1, in the order of preference of auto, with the columns and with RBF features beside
     * them; 0: it is no candidate. */
    int preferred, preferred_both;
    int compared;     /* place among the models that others are compared with; 0: it is not */
    bool monotone;    /* one more token can only raise the positive class */
    bool strong;      /* adds to an average of others; */
    bool strong_both; /* it does with RBF features, or among monotone ones */
    enum { FINI_DECIDES_UNSAID, FINI_DECIDES_ONE, FINI_DECIDES_ALL } decides; /* which tokens do */
} fini_bag_model;

/* The row of FIN_MODEL_...; NULL: there is none. */
const fini_bag_model *fini_bag_model_of(int model);

/* ---- maps (map.c, features.c) ----------------------------------- */

/* From bags to what a form sees, in four steps, each left out where it is not wanted:
 *
 *     statistics   a bag becomes one row: its largest values, or its statistics
 *     columns      z_j = scale_j clamp(x_j - center_j, -bound_j, bound_j); scale and bound are 0
 *                  for columns left out, the bound is infinite where nothing is cut off
 *     features     of an RBF kernel of z, beside z or instead of it
 *     mean         a bag becomes one row: the mean of its rows (FINI_MEAN)
 *
 * Scales are such that the mean over training rows of |z|^2 is 1, and of the features too: a
 * penalty means the same whatever d and m are, and needs no factor for them. */
typedef struct fini_map {
    int statistics;          /* FINI_TOKENS: none */
    int features;            /* 0 linear, 1 rbf, 2 both */
    int kind;                /* 0 nystrom, 1 fourier */
    int64_t d;               /* columns of a raw token */
    int64_t s;               /* after the statistics; s = d for tokens and their mean */
    int64_t m;               /* features; 0: none */
    int64_t linear;          /* columns of z, the last ones, that the form sees: s, 0 or 1 */
    int64_t p;               /* what a form sees: linear + m; first z, then the features */
    double *center, *scale;  /* (s); with bound and spread one block, owned by center */
    double *bound;           /* (s) */
    double *spread;          /* (s) root of the mean of z_j^2: importance is |k_j| spread_j */
    int64_t used;            /* columns that are not left out */
    int64_t group_m[2];      /* features of the one or two groups of columns (features.c) */
    double bandwidth[2];     /* of each, in units of z */
    double *landmarks;       /* (m, columns used) of each group: nystrom: rows z; fourier:
                              * frequencies, of which there are m / 2 */
    double *whiten;          /* nystrom: (m, m) of each group, lower triangular; else NULL */
    double *shift, *stretch; /* (m) features seen: (f - shift) stretch */
} fini_map;

/* What a form sees. Either the caller's bags, seen through centre, bound and scale without copying,
 * or tokens of its own (owned; the three are then NULL). Kernels for both: kernel/rows.h. */
typedef struct fini_phi {
    fin_bags bags;                        /* d = p; n, first, total, labels as in the raw bags */
    const double *center, *scale, *bound; /* (p) or NULL; borrowed from the map */
    int64_t left_out;                     /* columns, of p, that are 0 for all tokens */
    void *owned;
    int64_t *owned_offsets;
} fini_phi;

/* Only which weights are positive matters here, not how large they are. */
fin_status fini_map_fit(fini_map *map, const fin_fit_settings *settings, int64_t classes,
                        const fin_bags *bags, const double *weights, fin_sum sum,
                        fini_cancel *cancel, fin_error *err);
fin_status fini_map_apply(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                          fini_cancel *cancel, fin_error *err);
void fini_phi_close(fini_phi *phi);
void fini_map_close(fini_map *map);
/* The map of tokens of d columns back from a file, copied and checked. (state.c) */
fin_status fini_map_restore(fini_map *map, const fin_fit_settings *settings, int64_t d,
                            const fini_state_source *from, fin_error *err);

/* ---- blocks of bags (share.c) ----------------------------------------------------------- */

/* all: (total) from the own (n) numbers of every process; sum NULL: alone. */
fin_status fini_bags_gather(const fin_bags *bags, fin_sum sum, const double *own, double *all,
                            fin_error *err);

/* The blocks of this process: numbers first .. first + count - 1 (of fin_bags_blocks(total)). */
void fini_bags_own(const fin_bags *bags, int64_t *first, int64_t *count);
/* Own block i (from 0): its bags are from .. to - 1, counted from this process's first bag. */
void fini_bags_block(const fin_bags *bags, int64_t i, int64_t *from, int64_t *to);
/* Adds what it has to say of bag i to `sums`. */
typedef void (*fini_bag_numbers)(const void *user, int64_t i, double *sums);
/* Sums of `width` numbers over all bags of all processes, the same bits for any threads; sum NULL:
 * alone. */
fin_status fini_bags_sum(const fin_bags *bags, fin_sum sum, int threads, int64_t width,
                         fini_bag_numbers numbers, const void *user, double *out, fin_error *err);
/* Tokens of the longest bag, at least 1. */
static inline int64_t fini_bags_longest(const fin_bags *bags)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t L = bags->offsets[i + 1] - bags->offsets[i];
        longest = L > longest ? L : longest;
    }
    return longest;
}
/* In a loop over the rows of one bag, which may be as long as all others: has it been cancelled? Asks now
 * and then. row: of `rows`, from 0; products: of a row. */
static inline bool fini_row_cancelled(fini_cancel *cancel, int64_t row, int64_t rows,
                                      int64_t products)
{
    enum { EVERY = 1024 };
    int64_t next = rows - row < EVERY ? rows - row : EVERY;
    return row % EVERY == 0 && fini_cancelled(cancel, (double)next * (double)products);
}
/* Sizes, offsets and type make sense. Tokens and labels are not looked at. */
fin_status fini_bags_check(const fin_bags *bags, fin_error *err);

/* ---- outputs to losses, for all forms (model.c) ----------------------------------------- */

/* Loss of outputs f (outputs) and df = dloss/df, as fini_bag_form.loss says. df may be NULL. */
double fini_emission_loss(const fini_bag_shape *shape, const double *f, double y, double *df);
/* The same for two classes and many bags, by the kernels: value and df (count). */
void fini_two_classes(int64_t count, const double *f, const double *y, double *value, double *df);
/* Numbers: out[0] = f[0]; classes: probabilities (classes). */
void fini_emission_predict(const fini_bag_shape *shape, const double *f, double *out);
/* The same of many, out (count, width), from outputs (count, outputs) that are put there: at the start, of
 * two classes in the second half. */
double *fini_emissions_room(const fini_bag_shape *shape, int64_t count, double *out);
void fini_emissions_predict(const fini_bag_shape *shape, int64_t count, double *out);
/* Sums of weights below this are not divided by. */
#define FINI_FAINT_SUM 1e-280

/* ---- the engine (risk.c: loss and gradient; descend.c: L-BFGS) --------------------- */

/* What is learnt from, by a form or by several in turn. */
struct fini_problem {
    struct fini_part *part;      /* that is fitted; forms alone do without */
    const fini_bag_shape *shape; /* of everything but the form, and the longest bag */
    const fini_phi *phi;
    const double *labels;  /* (n) standardised, or classes */
    const double *weights; /* (n) of bags to learn from; NULL: all 1 */
    const double *held;    /* (n) of bags held out to stop early, or NULL */
    fin_sum sum;           /* NULL: alone */
    fini_cancel *cancel;   /* stage "fit"; NULL: evaluations cannot be cancelled */
    bool rough;            /* tokens in float may be seen, and summed, in float (risk.c) */
    /* sums over training bags of all processes (fini_problem_count) */
    double weight, bags, tokens;
};

/* For many evaluations. What the problem points to is borrowed. */
fin_status fini_risk_create(fini_risk **risk, const fini_bag_form *form,
                            const fini_problem *problem, fin_error *err);
void fini_risk_destroy(fini_risk *risk);
int64_t fini_risk_parameters(const fini_risk *risk); /* q p + extras */
/* Rounding of its values where they are sums in float; else 0. */
double fini_risk_noise(const fini_risk *risk);
/* Weighted mean loss over bags, without penalty; gradient (parameters) or NULL. */
fin_status fini_risk_value(fini_risk *risk, const double *parameters, double *loss,
                           double *gradient, fin_error *err);

/* Sums blocks in the order of fin_ranks_sum (a binary tree over block numbers), in one process. */
fin_status fini_sum_alone(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *err);

/* Scores U (rows, q) of rows of a view, with W (q, p) given: the engine's projection, for
 * prediction. scratch: so many doubles. */
int64_t fini_project_scratch(const fini_phi *phi, int64_t q);
void fini_project(const fini_phi *phi, int64_t first_row, int64_t rows, int64_t q, const double *W,
                  double *U, double *scratch, fini_cancel *cancel);
/* One token of a view as p doubles: in the buffer (p), or where it is. */
const double *fini_phi_row(const fini_phi *phi, int64_t row, double *buffer);
/* A small view of raw columns becomes a standardised copy, to be read many times; columns that are
 * left out are not in it (d is then smaller). */
fin_status fini_phi_settle(fini_phi *phi, fin_sum sum, fin_error *err);

/* ---- parts and fits (fit.c, part.c, state.c) -------------------------------- */

typedef struct fini_part {
    fin_fit_settings settings; /* of a model that does not choose among others */
    const fini_bag_model *model;
    const fini_bag_form *form;
    fini_bag_shape shape; /* longest is set per call */
    fini_map map;
    /* One after the other as in files (state.c): members .. unfinished, weight .. loss. */
    int64_t members, parameters, iterations, evaluations, unfinished;
    double
        stands_for; /* bags of the fit to a whole training set that this one speaks for; 0: itself */
    double weight;  /* in the fit */
    double
        noise; /* numbers: standard deviation around the prediction, in standardised units; classes:
                     * how sharp draws say they should be, or 0 */
    double loss;
    double *member;  /* (members, parameters) */
    float *draw;     /* of is.draws: the members, for files; else NULL */
    double *penalty; /* (members) */
    int64_t letters;
    char *text; /* (letters) the settings, for files */
} fini_part;

struct fin_fit {
    fin_fit_settings settings;
    /* One after the other as in files (state.c): parts .. tokens, label_center .. noise. */
    int64_t parts, classes, d, bags, tokens;
    double label_center,
        label_scale; /* numbers: y = center + scale * standardised; classes: 0, 1 */
    double noise;    /* standard deviation of a label around the prediction, standardised */
    bool swapped;    /* two classes: 1 is 0 inside, and 0 is 1 */
    fini_part *part;
    double sharpness; /* classes: power of the probabilities (calibrate.c); 1: none */
    int64_t locator;  /* part that locates, or -1 */
    double inner_loss, base_loss, locator_loss; /* on inner folds; NaN: not known */
    double locator_sharpness;
    double *range;  /* (2, d) of training tokens, or NULL (same.c) */
    int64_t hashes; /* of training bags, ascending */
    int64_t *hash;
    double inner[4];   /* for files: the losses and the locator's sharpness, */
    int64_t choice[2]; /* and what locates */
};

/* Center and scale of labels, and which class is which inside, from the training bags; the labels as parts
 * want them (n). Two classes are numbered in the order in which they appear: so their names, which decide
 * about their numbers outside, change nothing. */
fin_status fini_fit_labels(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                           double *labels, fin_error *err);
/* A number for every bag of everybody (total), from its tokens whatever their order: 52 bits; -1 for bags
 * without weight (same.c). order: powers of two in the units of columns change nothing. */
fin_status fini_bags_hash(const fin_bags *bags, const double *weights, bool order, fin_sum sum,
                          double *all, fin_error *err);
/* Ranges and hashes (same.c). */
fin_status fini_fit_remember(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                             fin_error *err);

/* One part, fitted: what all models but auto and stack are. labels: standardised, or classes. */
fin_status fini_part_fit(fini_part *part, const fin_fit_settings *settings, int64_t classes,
                         const fin_bags *bags, const double *labels, const double *weights,
                         fin_sum sum, const fin_progress *progress, fin_error *err);
/* Model, form and shape from part->settings; the form is NULL for auto and stack. */
void fini_part_shape(fini_part *part, int64_t classes);
void fini_part_close(fini_part *part);
/* Predictions of subsets of each bag, in the part's own units, added to, times `share` (evidence.c). */
typedef struct fini_evidence {
    double *whole;              /* (n, width) of the bags themselves, or NULL */
    double *without, *alone;    /* (tokens, width) as fin_evidence; or NULL */
    const int64_t *order;       /* (tokens) as fini_fit_flip, or NULL, */
    double *after;              /* (tokens, width) with it */
    const unsigned char *known; /* (n) as in fini_part_predict */
} fini_evidence;
fin_status fini_part_evidence(const fini_part *part, const fin_bags *bags, double share,
                              const fini_evidence *to, fini_cancel *cancel, fin_error *err);

/* What a part says of bags, and what that counts. */
typedef struct fini_said {
    double weight, noise;
    double *mean, *spread; /* as fin_fit_predict, in the part's own units */
    double *within;        /* (n) or NULL: mean over members of the variance within the model */
    double coverage,
        *ends; /* (n, 2) or NULL: interval that a label is in with this probability, by the law
                             * of the model; NaN where it has none */
} fini_said;
/* As fin_fit_predict and fin_fit_locate, in the part's own units. known: (n) 1 for bags that it was fitted
 * to, or NULL: none. */
fin_status fini_part_predict(const fini_part *part, const fin_bags *bags,
                             const unsigned char *known, const fini_said *to, fini_cancel *cancel,
                             fin_error *err);
fin_status fini_part_locate(const fini_part *part, const fin_bags *bags, const unsigned char *known,
                            const double *labels, const fin_locations *to, fini_cancel *cancel,
                            fin_error *err);

/* Adds a part to mean and variance, both (n, width), 0 at first; before: weight of those added before.
 * fini_fit_outside_units ends it: labels and classes as the caller knows them, sharpened. */
void fini_add_part(const fin_fit *fit, const fini_said *part, double before, int64_t n,
                   double *mean, double *variance);
void fini_fit_outside_units(const fin_fit *fit, int64_t n, double *mean, double *variance,
                            double *sd);
/* Intervals (n, 2) in the caller's units. own: those of the only part, or NULL; where they are NaN too:
 * about the mean as for a normal law. */
void fini_fit_ends(const fin_fit *fit, int64_t n, double coverage, const double *own,
                   const double *mean, const double *sd, double *ends);
/* The class that own and none of fin_fit_locate are about, as the caller numbers them: what `any` takes
 * for positive, else what is asked for, else 1; -1: there is none. */
int fini_positive(const fin_fit *fit);
/* Are these bags that it can be asked about? */
fin_status fini_fit_check_bags(const fin_fit *fit, const fin_bags *bags, fin_error *err);
/* fin_fit_predict, which can be cancelled. */
fin_status fini_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                            fini_cancel *cancel, fin_error *err);

/* What files need of a fit that is complete; and the tables of what they have. (state.c) */
fin_status fini_fit_finish(fin_fit *fit, fin_error *err);
extern const fini_state fini_fit_state, fini_part_state, fini_map_state;

/* EM for the mixture (em.c): `steps` steps on the penalised likelihood, in place; the
 * penalised risk never grows. Returns its value. penalty_of: of keys, of values. */
fin_status fini_em(fini_risk *risk, const fini_problem *problem, const double *penalty_of,
                   int64_t steps, double *parameters, double *value, fin_error *err);

/* Choices, calibration, and the fits (choose.c): fills fit->part and what inner folds say. others:
 * further candidates of auto, or NULL. */
fin_status fini_fit_choose(fin_fit *fit, const fin_bags *bags, const double *labels,
                           const double *weights, const fin_fit_others *others, fin_sum sum,
                           const fin_progress *progress, fin_error *err);

/* ---- calibration (calibrate.c) ------------------------------------------------------------ */

#define FINI_SHARPEST 16.0 /* sharpness is at most this, at least one over it */
/* The sharpness that makes the log loss of predictions (n, classes) smallest, over the bags of all
 * processes with a positive omega (n). The predictions are overwritten. */
fin_status fini_sharpness(const fin_bags *bags, int64_t classes, const double *labels,
                          const double *omega, double *probability, fin_sum sum, double *sharpness,
                          fin_error *err);
/* Applies it to probabilities (n, classes) and their deviations, which may be NULL. */
void fini_sharpen(double sharpness, int64_t n, int64_t classes, double *mean, double *sd);

/* The flipping curve: predictions as tokens are taken away. order: (tokens) the tokens of each bag, numbers
 * from 0 in it, the first to go first; curve: (tokens, width) row r of a bag is its prediction without the
 * first r of them. */
fin_status fini_fit_flip(const fin_fit *fit, const fin_bags *bags, const int64_t *order,
                         double *curve, const fin_progress *progress, fin_error *err);

#endif
