/* bags: attention fitted to bags of tokens with one label each.
 *
 * A bag is a set of vectors (tokens) with one label, and one or a few of the tokens decided it:
 * single-location regression, which others call multiple-instance learning. A model is fitted to
 * bags, answers for new ones with its uncertainty, and says of every token how probable it is that
 * it decided.
 *
 *     softmax    f(X) = sum_h sum_l softmax(K_h phi_l) V_h phi_l + b           (H heads)
 *     erf        the paper's element-wise weights erf(k phi_l)
 *     linear     weights 1 + k phi_l, over the number of tokens
 *     mixture    p(y | X) = sum_l softmax(k phi_l) p(y | V phi_l + b): the location is latent, the
 *                label has a Gaussian or logistic emission given the token
 *     bayes      the mixture's posterior in place of its maximum: draws, whose scales and noise are
 *                learnt too. For numbers the law of tokens is learnt from, if bags left out say so
 *     embedding  logistic or ridge regression on statistics of the bag as a whole: the kernel mean
 *                embedding, smallest, largest and mean values, size
 *     mean, max  the same on the bag's mean, on its largest values (baselines)
 *     any        1 - prod_l (1 - s(v phi_l + b)): two classes, positive if any token is (noisy-or)
 *     base       the classes' shares, or the mean of the labels: what a guess knows
 *     stack      a convex combination, weights by cross-validation
 *     auto       what cross-validation prefers, never worse there than the base rate
 *
 * phi is the token, or features of an RBF kernel of it, or both. Columns are centred, divided by
 * their deviations, and what is far beyond what an ordinary bag reaches is cut off (at three deviations
 * or more); then all are divided by one number that makes the mean of |phi|^2 over training tokens 1.
 * What is minimised is
 *
 *     sum_i w_i loss_i + penalty/2 (2 |keys|^2 + |values|^2)
 *
 * with the log loss, or for numbers minus the log likelihood of a noise that is estimated too: a
 * penalty means the same for any number of bags and of columns. Every model is an ensemble: the
 * average over a fixed grid of penalties, each started at the optimum of mean pooling. For numbers,
 * softmax and mixture are then freed of what a penalty shrinks, if there are four bags a column:
 * lengths of keys and values are fitted again, and keys may be replaced (`gate`). Where bags are few, or
 * say little, what is predicted is an average of the model, of the model with stronger penalties and of
 * the mean of the labels, with weights from inner folds (`calibrate`).
 *
 * Sums over bags are taken in an order that depends on the number of bags alone: the same bits for
 * any number of threads and of processes. */
#ifndef FINETTI_BAGS_H
#define FINETTI_BAGS_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bags ----------------------------------------------------------------------------------- */

/* A view; everything is borrowed and nothing is copied by the calls below, unless they say so.
 * Several processes that fit together have a share each: bags first .. first + n - 1 of `total`,
 * as fin_bags_share cuts them. Alone: first = 0, total = n. */
typedef struct fin_bags {
    int64_t n, d;           /* bags here; columns of a token */
    int64_t first, total;   /* number of the first bag; bags of everybody */
    const int64_t *offsets; /* (n + 1) ascending; rows of bag i in tokens: offsets[i] - offsets[0]
                             * to offsets[i + 1] - offsets[0] - 1, at least one */
    fin_dtype dtype;        /* FIN_F32 or FIN_F64 */
    const void *tokens;     /* (offsets[n] - offsets[0], d), row-major, finite */
    const double *labels;   /* (n) numbers, or classes 0 .. classes - 1; NULL: not known */
    const int64_t
        *groups; /* (n) or NULL: bags with the same number (slides of one patient) are never
                             * on both sides of a fold, nor of any other split. 0 .. 2^52 */
} fin_bags;

enum { FIN_BAGS_BLOCKS = 64 };
/* Sums are taken over min(total, 64) blocks of bags; block b has the bags from b total / blocks on.
 */
FIN_API int64_t fin_bags_blocks(int64_t total);
/* The bags of process `rank` of `ranks`: whole blocks. */
FIN_API void fin_bags_share(int64_t total, int rank, int ranks, int64_t *first, int64_t *count);

/* Adds the parts (own blocks, n) of all processes; fin_ranks_sum (study.h) is one. NULL: alone.
 * Everybody calls it equally often, with the same n. A process that fails alone (its memory is out)
 * calls it no more, and has to make the sums of the others fail, as fin_ranks_end does. */
typedef fin_status (*fin_sum)(int64_t blocks, int64_t n, double *parts, double *sum,
                              fin_error *err);

/* ---- settings ------------------------------------------------------------------------------- */

/* The models beside auto, which comes first: FIN_MODEL_SOFTMAX, "softmax" and so on. A new one is a
 * line here and a row (fini_bag_model_<name>) in a file of src/bags. */
#define FIN_MODELS(M)                                                                              \
    M(SOFTMAX, softmax)                                                                            \
    M(ERF, erf)                                                                                    \
    M(LINEAR, linear)                                                                              \
    M(MIXTURE, mixture)                                                                            \
    M(EMBEDDING, embedding)                                                                        \
    M(MEAN, mean)                                                                                  \
    M(MAX, max)                                                                                    \
    M(STACK, stack)                                                                                \
    M(ANY, any)                                                                                    \
    M(BASE, base)                                                                                  \
    M(BAYES, bayes)
#define FIN_MODEL_ENUM(NAME, name) FIN_MODEL_##NAME,
#define FIN_MODEL_CHOICE(NAME, name) "|" #name
enum { FIN_MODEL_AUTO, FIN_MODELS(FIN_MODEL_ENUM) };

#define FIN_FIT_FIELDS(F, C)                                                                       \
    C(model, FIN_MODEL_SOFTMAX, "auto" FIN_MODELS(FIN_MODEL_CHOICE), "predictor")                  \
    F(int64_t, heads, 1, 1, 64, "softmax, erf, linear: attention heads")                           \
    C(basis, 0, "auto|linear|rbf|both",                                                            \
      "features of a token: its columns (linear), RBF features, both; auto = both for "            \
      "softmax and mixture with classes, else linear")                                             \
    C(map, 0, "nystrom|fourier", "RBF features: landmarks from the data, or random frequencies")   \
    F(int64_t, landmarks, 150, 1, 20000,                                                           \
      "number of RBF features (landmarks of embedding and max are bags: at least 1000, or all)")   \
    F(double, bandwidth, FIN_AUTO, 1e-100, 1e100,                                                  \
      "of the RBF, in standardised units; auto = 0.55 median distances of landmarks")              \
    C(scaling, 0, "standard|pooled|none",                                                          \
      "columns are divided by: their own deviation, one for all (both cut off far out), nothing")  \
    F(double, penalty, FIN_AUTO, 0, 1e12,                                                          \
      "L2 penalty on the sum of losses; auto = the average over a fixed grid; of numbers, "        \
      "predictions are shrunk by inner folds")                                                     \
    F(int64_t, restarts, FIN_AUTO_INT, 1, 1000,                                                    \
      "starts of a fit, of which the best is kept; auto = 4 for erf, else 1")                      \
    F(int64_t, iterations, FIN_AUTO_INT, 1, 100000,                                                \
      "most iterations of L-BFGS; auto = 20 for attention to classes, else more")                  \
    F(double, tolerance, 1e-5, 1e-14, 1, "stop when the gradient is that small, relative")         \
    F(double, early, 0, 0, 0.5, "share of training bags held out to stop early; 0 = none")         \
    F(int64_t, em_steps, FIN_AUTO_INT, 0, 10000,                                                   \
      "mixture: EM steps before L-BFGS takes over; auto = 0 for classes, 5 for numbers")           \
    C(gate, 0, "auto|free|gaussian",                                                               \
      "keys of softmax and mixture: as fitted (free), or the discriminant of responsible and "     \
      "other tokens (gaussian); auto = for numbers, what the training bags prefer")                \
    C(class_weights, 0, "none|balanced", "weights of bags: equal, or equal sums for all classes")  \
    C(calibrate, 0, "auto|no|yes",                                                                 \
      "sharpness of probabilities, noise of numbers and how far they go from the mean, by inner "  \
      "cross-validation. Auto: of classes, stack and auto, and of numbers with few bags")          \
    F(int64_t, positive, FIN_AUTO_INT, 0, 1,                                                       \
      "any: the class that a single token can bring about; auto = what inner folds prefer, 1 if "  \
      "assume is monotone")                                                                        \
    C(assume, 0, "nothing|monotone",                                                               \
      "auto, stack: choose among all models, or among those for which one more token can only "    \
      "raise the positive class")                                                                  \
    C(locator, 0, "auto|no",                                                                       \
      "keep a model that locates, the best on inner folds, beside one that cannot or is a choice") \
    F(int64_t, inner, 5, 2, 100, "auto, stack, calibrate: folds of the inner cross-validation")    \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "landmarks, frequencies, starts, folds")

enum { FIN_BASIS_AUTO, FIN_BASIS_LINEAR, FIN_BASIS_RBF, FIN_BASIS_BOTH };

typedef struct fin_fit_settings {
    FIN_FIT_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_fit_settings;
FIN_API extern const fin_settings fin_fit_table;
/* What a basis of auto stands for with these classes: FIN_BASIS_LINEAR and so on. */
FIN_API int fin_fit_basis(const fin_fit_settings *settings, int64_t classes);
/* What a model is: its row in the table of models. */
typedef struct fin_fit_model {
    const char *name;  /* as the setting has it */
    const char *title; /* in tables, where its name does not say it; or NULL */
    int chooses; /* by inner folds: FIN_CHOOSES_BEST of the candidates, FIN_CHOOSES_AVERAGE; else 0 */
    int heads;   /* it can have several; where it can not, `heads` does not count */
    int sides; /* two classes, one of which a token brings about; else `positive` does not count */
    int constant;  /* it looks at no token, and basis, heads, penalty do not count */
    int whole;     /* it looks at a bag as a whole, and has no location of its own */
    int64_t draws; /* its members are so many draws from a posterior; 0: they are fits */
} fin_fit_model;
enum { FIN_CHOOSES_BEST = 1, FIN_CHOOSES_AVERAGE };
/* Of settings->model; NULL: there is no such model. */
FIN_API const fin_fit_model *fin_fit_model_get(const fin_fit_settings *settings);

/* Columns that are constant within every bag, and not all the same: they say something about the bag
 * (a patient's number, a grade), not about a token, and may know the answer. level: (d), 1 for such a
 * column. None if every bag has one token. */
FIN_API fin_status fin_bags_level(const fin_bags *bags, fin_sum sum, unsigned char *level,
                                  fin_error *err);

/* ---- fitting -------------------------------------------------------------------------------- */

typedef struct fin_fit fin_fit;

/* Fits to the bags whose weight is positive. weights: (n) or NULL: all 1. classes: 0 for numbers,
 * else at least 2. Everything that is estimated (centres, scales, landmarks, parameters) comes from
 * those bags alone. Columns that are constant are left out. */
FIN_API fin_status fin_fit_create(fin_fit **fit, const fin_fit_settings *settings, int64_t classes,
                                  const fin_bags *bags, FIN_OR_NULL const double *weights,
                                  fin_sum sum, const fin_progress *progress, fin_error *err);
/* The same; auto chooses among further models too: single ones, at most 16. */
typedef struct fin_fit_others {
    int count;
    const fin_fit_settings *models; /* (count) */
} fin_fit_others;
FIN_API fin_status fin_fit_create_among(fin_fit **fit, FIN_OR_NULL const fin_fit_others *others,
                                        const fin_fit_settings *settings, int64_t classes,
                                        const fin_bags *bags, FIN_OR_NULL const double *weights,
                                        fin_sum sum, const fin_progress *progress, fin_error *err);
FIN_API void fin_fit_destroy(fin_fit *fit); /* NULL is fine */

/* What was fitted. */
typedef struct fin_fit_info {
    int64_t classes, d; /* columns given */
    int64_t columns;    /* columns used: not constant */
    int64_t bags, tokens;
    int64_t parts;                   /* models in it: 1, or those of a stack */
    int64_t members;                 /* fits averaged, over all parts */
    int64_t parameters;              /* of one member of the largest part */
    int64_t iterations, evaluations; /* over all members */
    int64_t unfinished;              /* members that ran out of iterations */
    double loss;      /* mean training loss: squared error over the label's variance, or log loss */
    double noise;     /* numbers: standard deviation of a label around the prediction */
    double sharpness; /* classes: the power that probabilities are taken to (calibrate); 1: none */
    int64_t positive; /* the class that own and none of fin_fit_locate are about, and that one token
                       * brings about if `any` is among the parts; -1: none */
    int64_t locator;  /* part that answers fin_fit_locate; -1: none can */
    /* Mean losses on inner folds (log loss; squared error over the labels' variance); NaN where there
     * were none: of the fit, of the base rate, of the part that locates. */
    double inner_loss, base_loss, locator_loss;
} fin_fit_info;
FIN_API void fin_fit_get_info(const fin_fit *fit, fin_fit_info *info);
FIN_API const fin_fit_settings *fin_fit_get_settings(const fin_fit *fit);
/* Part i: its model, its settings and its weight in the whole. */
FIN_API const fin_fit_settings *fin_fit_part(const fin_fit *fit, int64_t i,
                                             FIN_OR_NULL double *weight);
/* Average over members of the key and the value of a linear token model in units of the raw columns
 * (d each; columns left out are 0): head h, output o. FIN_ERR_UNSUPPORTED if it has none. */
FIN_API fin_status fin_fit_directions(const fin_fit *fit, int64_t part, int64_t h, int64_t o,
                                      double *key, double *value, fin_error *err);
/* How much columns matter: for each, standard deviation of the token's score and of its value that
 * is due to it (|k_j| sd_j, |v_j| sd_j), averaged over parts that have them. (d) each. */
FIN_API fin_status fin_fit_importance(const fin_fit *fit, double *key, double *value,
                                      fin_error *err);

/* Does part i see the columns of a token by themselves? importance and signs speak of those parts alone. */
FIN_API int fin_fit_by_columns(const fin_fit *fit, int64_t i);
/* Which way columns matter, (d) each: 1, -1, or 0 where heads, members and parts do not agree. key: larger
 * numbers draw attention, or repel it; value: they speak for class 1 of two and for larger labels, or
 * against; 0 with more classes. */
FIN_API fin_status fin_fit_signs(const fin_fit *fit, double *key, double *value, fin_error *err);

/* Predictions. Numbers: mean (n), sd (n): of a new label: noise, spread of the ensemble and, for
 * the mixture, of the tokens. Classes: probability (n, classes), sd (n, classes) of the probability
 * over the ensemble. sd may be NULL. */
FIN_API fin_status fin_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean,
                                   FIN_OR_NULL double *sd, const fin_progress *progress,
                                   fin_error *err);
/* Numbers: the same, and ends (n, 2) of an interval that holds a new label with probability `coverage`:
 * between quantiles of what draws from a posterior say, else mean -+ z sd. mean and sd may be NULL. */
FIN_API fin_status fin_fit_interval(const fin_fit *fit, const fin_bags *bags, double coverage,
                                    FIN_OR_NULL double *mean, FIN_OR_NULL double *sd, double *ends,
                                    const fin_progress *progress, fin_error *err);
/* What is known of the tokens; each may be NULL. */
typedef struct fin_locations {
    double *
        prior; /* (tokens) probability that it is responsible, without the label; sums to 1 over a bag */
    double *given; /* (tokens) given the bag's label too; NaN where the label is NaN */
    /* Two classes, models any and mixture (NaN elsewhere): */
    double
        *own; /* (tokens) probability that the token is positive: any: that it is on; mixture: that
                   * it decides and says so */
    double
        *none; /* (n) probability that no token is, as sharp as predictions are; own goes with it:
                   * mixture: their sum is 1; any: none is the product of 1 - own, if it is calibrated */
} fin_locations;
/* Models of the bag as a whole (embedding, mean, max, base) have no location: FIN_ERR_UNSUPPORTED,
 * unless a model that has one was kept beside them (`locator`), which then answers. */
FIN_API fin_status fin_fit_locate(const fin_fit *fit, const fin_bags *bags,
                                  const fin_locations *locations, const fin_progress *progress,
                                  fin_error *err);
FIN_API int fin_fit_locates(const fin_fit *fit); /* 1 if it has a location */

/* ---- evidence --------------------------------------------------------------------------------- */

/* What every token does to the prediction of its bag; models of the bag as a whole too. Numbers: width 1,
 * means; classes: width classes, probabilities, as fin_fit_predict gives them. Each may be NULL. */
typedef struct fin_evidence {
    double *
        without; /* (tokens, width) prediction of the bag without the token; NaN if it has no other */
    double *alone; /* (tokens, width) prediction of the token as a bag of its own */
    /* (tokens) The same of one number, what the bag is predicted: of its likeliest class the
     * probability, or the mean. change: the bag's less that without the token, 0 if it has no other;
     * only: the token's. */
    double *change, *only;
} fin_evidence;
FIN_API fin_status fin_fit_evidence(const fin_fit *fit, const fin_bags *bags,
                                    const fin_evidence *evidence, const fin_progress *progress,
                                    fin_error *err);
/* The same in short: each bag's tokens are taken away from the highest score on (tokens), and the number
 * above, of the class that is likeliest with all of them, is compared with what it was: by how much the
 * probability has fallen, or how far the mean has moved. Means over the bags of more than one token. */
enum { FIN_FLIP_POINTS = 11 };
typedef struct fin_flipping {
    int64_t bags;
    double
        fall[FIN_FLIP_POINTS]; /* with k tenths of its tokens gone; at last with one token left */
    double area,
        area_se; /* mean over 0 to L - 1 tokens gone; over bags. Larger: what matters goes first */
} fin_flipping;
FIN_API fin_status fin_fit_flipping(const fin_fit *fit, const fin_bags *bags, const double *score,
                                    fin_flipping *flipping, const fin_progress *progress,
                                    fin_error *err);

/* How well scores of tokens find those that are known to be responsible, over bags that have such tokens and
 * others. first: share of bags whose highest score is one of them (ties count by their shares); auc: mean
 * over bags of the share of pairs in the right order; ece: expected calibration error of the scores as
 * probabilities (15 bins), NaN unless all are in [0, 1]; share_ece: the same of what is above 0, divided by
 * its sum over the bag. NaN where there is no such bag. */
typedef struct fin_found {
    int64_t bags;
    double first, auc, ece, share_ece;
    double first_se, auc_se; /* over bags */
} fin_found;
/* relevant, score: (tokens); relevant is 0 or 1. */
FIN_API fin_status fin_tokens_judge(const fin_bags *bags, const unsigned char *relevant,
                                    const double *score, fin_found *found, fin_error *err);

/* ---- is it the same kind of data? ------------------------------------------------------------- */

/* outside: (d) tokens whose column is far outside of what the model was fitted to: below low or above
 * high by more than the range high - low; 0 where they are at most one in fifty. low, high: (d) each or NULL, the training range. All 0 where
 * the model does not know (files of version 0.1). Tokens of bags may be anything finite. */
FIN_API fin_status fin_fit_outside(const fin_fit *fit, const fin_bags *bags, int64_t *outside,
                                   FIN_OR_NULL double *low, FIN_OR_NULL double *high,
                                   fin_error *err);
/* known: (n) 1 for a bag that the model was fitted to, whatever the order of its tokens. */
FIN_API fin_status fin_fit_known(const fin_fit *fit, const fin_bags *bags, unsigned char *known,
                                 fin_error *err);

/* ---- the numbers of a fit, for files -------------------------------------------------------- */

/* Everything beside the settings. Fills at most `room` tensors; returns how many there are. */
FIN_API int64_t fin_fit_tensors(const fin_fit *fit, FIN_OR_NULL fin_tensor *tensors, int64_t room);
/* The fit back from its tensors (copied), which may come from a hostile file: shapes, ranges and
 * finiteness are checked. */
FIN_API fin_status fin_fit_restore(fin_fit **fit, const fin_fit_settings *settings,
                                   const fin_tensor *tensors, int64_t count, fin_error *err);

/* ---- how good it is -------------------------------------------------------------------------- */

/* Judged on predictions for n bags; those whose label is NaN do not count. Not a number where it
 * does not apply. Log loss and log score are minus log probability or density (smaller is better);
 * Brier's score is half the squared distance of the probabilities from what happened; the expected
 * calibration error has 15 equal bins of the probability of the predicted class. ends: (n, 2) 90 %
 * intervals; NULL: mean -+ 1.645 sd. */
typedef struct fin_fit_score {
    int64_t count;
    double accuracy, auc, log_loss, brier, ece; /* classes; auc: one against the rest, mean */
    double rmse, r2, mae, log_score, coverage;  /* numbers; coverage of 90 % intervals */
    /* classes: mean over those that occur of the share of their bags that is recognised; two classes: that
     * share of class 1, and of class 0 */
    double balanced, sensitivity, specificity;
} fin_fit_score;
FIN_API fin_status fin_fit_judge(int64_t n, int64_t classes, const double *labels,
                                 const double *mean, FIN_OR_NULL const double *sd,
                                 FIN_OR_NULL const double *ends, fin_fit_score *score,
                                 fin_error *err);

/* Stratified folds by label (quantiles of numbers), repeated: fold (repeats, n). groups: (n) or NULL,
 * as in fin_bags. What classes are called (their numbers) changes nothing. */
FIN_API fin_status fin_folds_make(int64_t n, int64_t classes, const double *labels,
                                  FIN_OR_NULL const int64_t *groups, int repeats, int folds,
                                  int64_t seed, int32_t *fold, fin_error *err);

/* Cross-validation of several models on the same folds (each fold of each repeat is left out once).
 */
typedef struct fin_folds {
    int repeats, folds;
    const int32_t *fold; /* (repeats, n), from 0 */
} fin_folds;
typedef struct fin_validation fin_validation;
typedef struct fin_validation_row {
    fin_fit_settings settings;
    fin_fit_score mean;   /* over repeats x folds; the ECE over repeats; r2: 1 - squared error over
                           * the variance of all labels; count: predictions judged */
    fin_fit_score se;     /* standard errors of these means over folds; count: folds judged */
    double main, main_se; /* accuracy, or r2 */
    double gain, gain_se; /* paired difference from the first row in `main`; its standard error
                            * corrected for overlapping training sets (Nadeau and Bengio) */
    double seconds;       /* processor time of all its fits */
    double share;         /* auto, stack: not used here (0) */
} fin_validation_row;

/* models: the settings to compare (choices and calibration are nested: they are made inside each
 * training set; auto chooses among its candidates and the other models). bags: all of them (one
 * process). */
FIN_API fin_status fin_validate(fin_validation **out, int count, const fin_fit_settings *models,
                                int64_t classes, const fin_bags *bags, const fin_folds *folds,
                                const fin_progress *progress, fin_error *err);
FIN_API void fin_validation_destroy(fin_validation *validation); /* NULL is fine */
FIN_API const fin_validation_row *fin_validation_at(const fin_validation *validation, int i);
/* Out-of-fold predictions of model i, averaged over repeats: as fin_fit_predict. */
FIN_API const double *fin_validation_mean(const fin_validation *validation, int i);
/* Reliability: in each of `bins` equal bins of the predicted probability (classes; of every class)
 * how many, their mean probability and the share that was right. */
FIN_API fin_status fin_validation_reliability(const fin_validation *validation, int i, int bins,
                                              int64_t *count, double *predicted, double *observed,
                                              fin_error *err);

/* Does one token decide? Of the models that say so (mixture) and of those that say that all do alike
 * (mean), the best of each kind: losses on bags left out, compared bag by bag. With several repeats the
 * prediction of a bag is the average over them. NULL: there is no validation, and neither is there. */
typedef struct fin_validation_location {
    int one, all; /* the models' numbers; -1: not both are there, and all else is 0 */
    double one_loss,
        all_loss; /* means of log losses, or of squared errors over the labels' variance */
    double se;    /* standard error of their difference */
} fin_validation_location;
FIN_API void fin_validation_locate(const fin_validation *validation,
                                   fin_validation_location *location);

/* The learning curve of a fit on the bags that it was made from: what more bags would be worth. Of
 * those outside each of five folds a quarter, a half, three quarters and all are fitted with its
 * settings (of auto: with what it chose), and judged on the fold. At least 40 bags, 10 of a class;
 * a part of the bags that cannot be fitted ends it, with its message. Fits go
 * side by side, with the same numbers for any number of threads. */
enum { FIN_CURVE_SIZES = 4, FIN_CURVE_FOLDS = 5 };
typedef struct fin_curve_size {
    double bags;      /* trained on: mean over folds */
    double score, se; /* accuracy or R2: mean over folds, its standard error */
} fin_curve_size;
FIN_API fin_status fin_fit_curve(const fin_fit *fit, const fin_bags *bags,
                                 const fin_progress *progress, fin_curve_size size[FIN_CURVE_SIZES],
                                 fin_error *err);

/* The candidates of `auto` beside their stack: single models, fully specified, in the order of
 * preference when they are equally good. Fills at most `room`; returns how many there are. base: the
 * settings they share. */
FIN_API int fin_fit_candidates(FIN_OR_NULL const fin_fit_settings *base, int64_t classes,
                               FIN_OR_NULL fin_fit_settings *models, int room);
/* The same for the models that others are compared with: the base rate, simple ones, and one for which
 * one token decides. */
FIN_API int fin_fit_baselines(FIN_OR_NULL const fin_fit_settings *base,
                              FIN_OR_NULL fin_fit_settings *models, int room);

#ifdef __cplusplus
}
#endif
#endif
