/* encoder, second part: learning. Where sequences come from, objectives, optimisers, and the exact
 * Bayes prediction beside the model at every evaluation.
 *
 * A corpus makes sequences with targets; sequence i is a pure function of the corpus and i.
 *
 *     latent   a family of exchangeable tokens (family.h). masked: L tokens in sight and M
 *              hidden ones, whose values are the targets; Bayes: the posterior predictive.
 *              supervised: the label is a number, <A, z> + noise with A a random unit vector for
 *              concept, mean, counts; or z itself, a class, for concepts and finite
 *     task     single-location regression (task.h): the label is y. Nothing to mask
 *     memory   sequences of the caller (bags, patches of images), with labels or not. masked: a
 *              share of the tokens, drawn anew in every epoch. readout = pooled: they are left out
 *              altogether, and one answer from the mean representation of the others has the values
 *              of all tokens, in their order; a linear map can then read much from that mean, which
 *              is what a label needs. keep: supervised, a random part of the tokens is shown, anew
 *              in every epoch, which keeps a few labels from being learnt by heart; sequences from
 *              FIN_TEST_FIRST on show all. No Bayes prediction
 *
 * Tokens of families with outcomes are one-hot: counts: (value); concepts: (covariate,
 * response). */
#ifndef FINETTI_ENCODER_LEARN_H
#define FINETTI_ENCODER_LEARN_H

#include "finetti/encoder.h"
#include "finetti/task.h"
#include "finetti/family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- corpora --------------------------------------------------------------------------------- */

#define FIN_CORPUS_FIELDS(F, C)                                                                    \
    C(objective, 0, "masked|supervised", "learn the values of hidden tokens, or the label")        \
    C(answer, 0, "value|gaussian",                                                                 \
      "numbers: squared error, or a Gaussian with learnt variance (classes: cross-entropy)")       \
    F(int64_t, L, 32, 0, 1048576, "families: tokens in sight")                                     \
    F(int64_t, L_least, FIN_AUTO_INT, 0, 1048576,                                                  \
      "families: a batch has a length drawn from L_least .. L, log-uniformly; auto = L")           \
    F(int64_t, M, 32, 1, 65536, "families, masked: hidden tokens of a sequence")                   \
    F(double, share, 0.5, 0, 1, "data, masked: share of the tokens that is hidden (at least one)") \
    C(readout, 0, "tokens|pooled",                                                                 \
      "data, masked: hidden values are answered by their own token, or all of them by the mean "   \
      "representation of the others (sequences of equal length)")                                  \
    F(double, keep, 1, 0, 1,                                                                       \
      "data, supervised: a random share of the tokens from keep to 1 is shown in each epoch")      \
    F(double, label_noise, 0.1, 0, 1e100, "families, supervised: variance of the label")           \
    F(int64_t, samples, 0, 0, INT64_C(1) << 40,                                                    \
      "fixed-sample (ERM) training: so many sequences, again and again; 0 = fresh ones")

enum { FIN_OBJECTIVE_MASKED, FIN_OBJECTIVE_SUPERVISED };
enum { FIN_ANSWER_VALUE, FIN_ANSWER_GAUSSIAN };
enum { FIN_READOUT_TOKENS, FIN_READOUT_POOLED };

typedef struct fin_corpus_settings {
    FIN_CORPUS_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_corpus_settings;
FIN_API extern const fin_settings fin_corpus_table;

/* Sequences in memory. Borrowed by the corpus. */
typedef struct fin_memory {
    int64_t n, inputs, values;
    const int64_t *offsets;
    const float *tokens;
    const double *labels; /* (n) numbers or classes, NaN: none; or NULL */
    int64_t classes;      /* 0: numbers */
} fin_memory;

typedef struct fin_corpus fin_corpus;

/* The latent and the task are borrowed, too. */
FIN_API fin_status fin_corpus_latent(fin_corpus **corpus, const fin_corpus_settings *settings,
                                     const fin_latent *latent, uint64_t seed, fin_error *err);
FIN_API fin_status fin_corpus_task(fin_corpus **corpus, const fin_corpus_settings *settings,
                                   const fin_task *task, fin_error *err);
FIN_API fin_status fin_corpus_memory(fin_corpus **corpus, const fin_corpus_settings *settings,
                                     const fin_memory *memory, uint64_t seed, fin_error *err);
FIN_API void fin_corpus_destroy(fin_corpus *corpus); /* NULL is fine */
FIN_API const fin_corpus_settings *fin_corpus_get_settings(const fin_corpus *corpus);
/* Shape of an encoder for it: inputs, values and one head ("value" or "label"). */
FIN_API void fin_corpus_get_shape(const fin_corpus *corpus, fin_encoder_shape *shape);
FIN_API int64_t fin_corpus_longest(const fin_corpus *corpus); /* tokens of a sequence, hidden too */
FIN_API int64_t fin_corpus_sequences(const fin_corpus *corpus); /* how many; 0: any number */
FIN_API int fin_corpus_has_bayes(const fin_corpus *corpus);

/* Sequences made, in memory of their own that is used again. Zero-initialise; fin_examples_close
 * at the end. */
typedef struct fin_examples {
    fin_sequences sequences;
    int64_t rows, tokens; /* targets: rows of it (tokens or sequences) */
    double *targets;      /* (rows, fin_head_targets) */
    double *bayes;        /* (rows, fin_head_answers): the best answer: Bayes mean (gaussian: and
                           * log variances), or log probabilities of classes; NULL, or rows of NaN:
                           * none */
    double *variance;     /* (rows): Bayes variance of each of a target's numbers, noise included
                           * (their mean where they differ); NULL if there is none */
    double *z;            /* (n, posterior) or NULL: numbers of the posterior (fin_latent_posterior)
                           * given the tokens in sight, for probes */
    int64_t z_size;
    void *memory;
    size_t room;
} fin_examples;
enum { FIN_EXAMPLES_BAYES = 1, FIN_EXAMPLES_POSTERIOR = 2 };
/* Sequences first .. first + n - 1. L: tokens in sight (families), -1: as the settings say. `epoch`
 * changes which tokens of data are hidden. Test sequences are those from FIN_TEST_FIRST on: they
 * are never among the training ones. Data: number modulo the sequences there are. */
#define FIN_TEST_FIRST (UINT64_C(1) << 52)
FIN_API fin_status fin_corpus_draw(const fin_corpus *corpus, uint64_t first, int64_t n, int64_t L,
                                   uint64_t epoch, int flags, fin_examples *examples,
                                   fin_error *err);
/* The same for sequences of any numbers, number[0 .. n-1] (ERM in random order, data). */
FIN_API fin_status fin_corpus_pick(const fin_corpus *corpus, const uint64_t *number, int64_t n,
                                   int64_t L, uint64_t epoch, int flags, fin_examples *examples,
                                   fin_error *err);
FIN_API void fin_examples_close(fin_examples *examples);

/* ---- evaluation ------------------------------------------------------------------------------ */

/* Monte Carlo means over fresh sequences with standard errors over sequences; what does not apply
 * is NaN. risk: of value and gaussian the squared error (summed over numbers), of classes the
 * cross-entropy. excess: risk - bayes, a mean of differences on the same targets. */
typedef struct fin_evaluation {
    int64_t sequences, targets;
    double risk, risk_se, bayes, bayes_se, excess, excess_se;
    double quotient;    /* risk / bayes */
    double distance;    /* mean squared distance of prediction and Bayes prediction (classes: of
                         * probabilities; KL(bayes | model) is then `excess` in expectation) */
    double correlation; /* of predictions and Bayes predictions, over all numbers; NaN where either
                         * are all the same */
    double accuracy;    /* classes */
    double loss;        /* what training minimises */
} fin_evaluation;
FIN_API fin_status fin_encoder_evaluate(const fin_encoder *encoder, const fin_corpus *corpus,
                                        uint64_t first, int64_t sequences, int64_t L,
                                        fin_evaluation *evaluation, const fin_progress *progress,
                                        fin_error *err);

/* ---- learning -------------------------------------------------------------------------------- */

#define FIN_LEARN_FIELDS(F, C)                                                                     \
    C(optimizer, 0, "adamw|lbfgs", "AdamW, or L-BFGS on a fixed sample (small models)")            \
    F(int64_t, steps, 2000, 0, INT64_C(1) << 40, "steps, or iterations of L-BFGS")                 \
    F(int64_t, batch, 32, 1, 1048576, "sequences of a step")                                       \
    F(int64_t, accumulate, 1, 1, 65536, "batches whose gradients make one step")                   \
    F(double, rate, 3e-3, 0, 100, "largest learning rate")                                         \
    F(int64_t, warmup, FIN_AUTO_INT, 0, INT64_C(1) << 40,                                          \
      "steps in which the rate rises; auto = a twentieth")                                         \
    F(double, final_rate, 0, 0, 1, "rate at the end of its cosine, over the largest one")          \
    F(double, beta1, 0.9, 0, 0.999999, "AdamW: memory of the gradient")                            \
    F(double, beta2, 0.99, 0, 0.999999, "AdamW: memory of its square")                             \
    F(double, decay, 0.01, 0, 10, "AdamW: weight decay of matrices (not of biases and norms)")     \
    F(double, clip, 1, 0, 1e100, "largest norm of a gradient; 0 = any")                            \
    C(train, 0, "all|heads", "what is trained: everything, or the answers' maps only")             \
    F(int64_t, blocks, 8, 1, 64, "blocks that a gradient is summed in: most threads x processes")  \
    F(int64_t, evaluate_every, FIN_AUTO_INT, 1, INT64_C(1) << 40,                                  \
      "steps between evaluations; auto = a twentieth of all")                                      \
    F(int64_t, evaluate_on, 512, 1, INT64_C(1) << 30, "sequences of an evaluation")                \
    F(int64_t, patience, 0, 0, 1000000,                                                            \
      "stop after so many evaluations without a smaller loss; the end has the best weights, and "  \
      "not the last ones; 0 = never")                                                              \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "first weights, order and hiding of data")

enum { FIN_OPTIMIZER_ADAMW, FIN_OPTIMIZER_LBFGS };
enum { FIN_LEARN_ALL, FIN_LEARN_HEADS };

typedef struct fin_learn_settings {
    FIN_LEARN_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_learn_settings;
FIN_API extern const fin_settings fin_learn_table;

typedef struct fin_learn fin_learn; /* an encoder that learns: it, its optimiser and its log */

/* One line of the log: at an evaluation. The first one is of step 0, before any training. */
typedef struct fin_learn_row {
    int64_t step;
    double rate, loss, norm; /* of the steps since the last row: mean training loss, gradient norm
                              * before clipping; NaN in the first row */
    fin_evaluation test;
} fin_learn_row;

/* Told after every step (done = total: at the end); a non-zero answer stops after this step with
 * FIN_ERR_CANCELLED, from where fin_learn_run goes on when it is called again. */
typedef struct fin_learn_report {
    int64_t step, steps;
    double loss, rate;
    double tokens;            /* so far */
    const fin_learn_row *row; /* the last line of the log; NULL: there is none yet */
    int evaluated;            /* 1: the row is of this step */
} fin_learn_report;
typedef int (*fin_learn_hook)(void *user, const fin_learn_report *report);

/* encoder, corpus and test (evaluations; NULL: fresh sequences of corpus) are borrowed; the encoder
 * is changed by learning. With processes (ranks > 1) everybody has the same arguments; each
 * computes its share of a batch and all have the same bits. */
FIN_API fin_status fin_learn_create(fin_learn **learn, const fin_learn_settings *settings,
                                    fin_encoder *encoder, const fin_corpus *corpus,
                                    FIN_OR_NULL const fin_corpus *test, fin_sum sum, int rank,
                                    int ranks, fin_error *err);
FIN_API void fin_learn_destroy(fin_learn *learn); /* NULL is fine */
/* From where it is to step `until` (-1: the end). A loss or a gradient that is not finite is
 * FIN_ERR_NUMERIC with the step and the first tensor that is not; the encoder then has the weights
 * of before that step. */
FIN_API fin_status fin_learn_run(fin_learn *learn, int64_t until, FIN_OR_NULL fin_learn_hook hook,
                                 void *user, fin_error *err);
FIN_API int64_t fin_learn_step(const fin_learn *learn);
FIN_API int fin_learn_done(const fin_learn *learn); /* all steps, or stopped early */
FIN_API int64_t fin_learn_log(const fin_learn *learn, const fin_learn_row **rows);
FIN_API const fin_learn_settings *fin_learn_get_settings(const fin_learn *learn);

#ifdef __cplusplus
}
#endif
#endif
