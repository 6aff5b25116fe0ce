/* encoder, third part: probes. What can be read, linearly, from a representation.
 *
 *     ridge      y = W x + b by least squares with a penalty, chosen by leave-one-out (closed form)
 *     logistic   multinomial, L2 penalty chosen by folds or given
 *
 * Columns are centred and divided by their deviations on the training rows. Minimised are
 * mean |y - W x - b|^2 + penalty |W|^2 and mean -log softmax(W x + b)_y + penalty |W|^2 / 2. */
#ifndef FINETTI_ENCODER_PROBE_H
#define FINETTI_ENCODER_PROBE_H

#include "finetti/encoder_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_PROBE_FIELDS(F, C)                                                                     \
    C(target, 0, "label|posterior|bayes|mean",                                                     \
      "what is read: the label; the posterior's numbers; the Bayes prediction; posterior means")   \
    F(int64_t, layer, -1, -2, 256,                                                                 \
      "representation after so many layers; -1 = the last, normed; -2 = all of them side by side") \
    C(pool, 0, "mean|max|both|tokens",                                                             \
      "representation of a sequence: mean over its visible tokens, largest number, both, or all "  \
      "its tokens one after another (equal lengths)")                                              \
    F(int64_t, train, 2000, 2, INT64_C(1) << 30, "sequences (or rows of data) to fit the probe")   \
    F(int64_t, test, 2000, 2, INT64_C(1) << 30, "others to judge it")                              \
    F(double, penalty, FIN_AUTO, 0, 1e12,                                                          \
      "L2 penalty on the mean loss; auto = chosen from the "                                       \
      "training rows")

enum { FIN_POOL_MEAN, FIN_POOL_MAX, FIN_POOL_BOTH, FIN_POOL_TOKENS };
enum { FIN_PROBE_LABEL, FIN_PROBE_POSTERIOR, FIN_PROBE_BAYES, FIN_PROBE_MEAN };
typedef struct fin_probe_settings {
    FIN_PROBE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_probe_settings;
FIN_API extern const fin_settings fin_probe_table;

/* A linear probe of any rows: x (n, p) features, y (n, m) numbers or (n) classes. */
typedef struct fin_probe fin_probe;
FIN_API fin_status fin_probe_fit(fin_probe **probe, int64_t n, int64_t p, const double *x,
                                 int64_t classes, int64_t m, const double *y, double penalty,
                                 fin_error *err);
FIN_API void fin_probe_destroy(fin_probe *probe); /* NULL is fine */

/* How well: numbers: share of variance explained (r2, mean over columns; smallest and largest too);
 * classes: accuracy and log loss. Standard errors over test rows. */
typedef struct fin_probe_score {
    int64_t train, test, columns;
    double r2, r2_least, r2_most, rmse;
    double accuracy, accuracy_se, log_loss;
    double penalty;
} fin_probe_score;
/* Of a probe on n rows that it was not fitted to, with their targets; train is left as it is. column_r2: (columns)
 * or NULL with its room. */
FIN_API fin_status fin_probe_judge(const fin_probe *probe, int64_t n, const double *x,
                                   const double *y, fin_probe_score *score,
                                   FIN_OR_NULL double *column_r2, int64_t room, fin_error *err);
/* Of an encoder on a corpus: states after a layer (pooled for sequences' targets; of the hidden
 * tokens for the Bayes prediction of them). column_r2: (columns) or NULL with its room. posterior:
 * representation sufficiency: how much of the posterior's numbers (fin_latent_posterior) the pooled
 * representation tells, linearly. test: the corpus to judge it on; NULL: other sequences of `corpus` (families have fresh
 * ones, data are cut at random). */
FIN_API fin_status fin_encoder_probe_on(const fin_encoder *encoder, const fin_corpus *corpus,
                                        FIN_OR_NULL const fin_corpus *test,
                                        const fin_probe_settings *settings, fin_probe_score *score,
                                        FIN_OR_NULL double *column_r2, int64_t room,
                                        const fin_progress *progress, fin_error *err);

/* Sets the head of a supervised corpus (classes or one number, pooled) to the probe of the end's
 * mean fitted to all its sequences: where fine-tuning should begin, as a map that is random at
 * first pulls the representation about while it is learnt. FIN_ERR_UNSUPPORTED for families, hidden
 * tokens and Gaussian heads. */
FIN_API fin_status fin_encoder_start_head(fin_encoder *encoder, const fin_corpus *corpus,
                                          double penalty, const fin_progress *progress,
                                          fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
