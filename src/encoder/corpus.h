/* Private face of corpora: the object, and what each of the three kinds does for one sequence.
 *
 * A kind is one file, corpus_<name>.c, with one row of functions. They allocate nothing: the draw
 * (corpus_draw.c) lays out memory for all sequences and for the work of every thread, once, and
 * uses it again in the next call. */
#ifndef FINI_CORPUS_H
#define FINI_CORPUS_H

#include "base/base.h"
#include "finetti/encoder_learn.h"
#include "random/streams.h"

/* One sequence to make: where its numbers go. Targets and Bayes predictions are rows for tokens
 * (masked) or one row (supervised). NULL: not wanted; hidden: NULL if all are in sight. */
typedef struct fini_example {
    uint64_t number, epoch;
    int64_t L;      /* tokens in sight, of families */
    int64_t length; /* tokens, hidden ones too */
    float *tokens;
    uint8_t *hidden;
    double *targets, *bayes, *variance, *posterior;
} fini_example;

typedef struct fini_corpus_kind {
    /* What its source is, checked: the shape, lengths and what Bayes knows are filled in. */
    fin_status (*resolve)(fin_corpus *corpus, const void *source, fin_error *err);
    /* Tokens of a sequence, hidden ones too. */
    fin_status (*length)(const fin_corpus *corpus, uint64_t number, uint64_t epoch, int64_t L,
                         int64_t *length, fin_error *err);
    /* Doubles of work for a sequence of at most `length` tokens, with what flags ask for. */
    int64_t (*work)(const fin_corpus *corpus, int64_t L, int64_t length, int flags);
    fin_status (*draw)(const fin_corpus *corpus, const fini_example *e, double *work,
                       fin_error *err);
} fini_corpus_kind;

extern const fini_corpus_kind fini_corpus_kind_latent, fini_corpus_kind_task,
    fini_corpus_kind_memory;

struct fin_corpus {
    const fini_corpus_kind *kind;
    fin_corpus_settings settings; /* with every auto worked out */
    fin_encoder_shape shape;
    const fin_latent *latent;
    const fin_task *task;
    fin_memory memory;
    uint64_t seed;
    int64_t longest, sequences, posterior;
    bool masked, bayes, variance;
    bool by_token;     /* hidden tokens are in the sequences, and targets are rows for tokens */
    double *direction; /* A: a unit vector of as many numbers as z has; or NULL */
};

/* Most bytes of work of all threads together, if fewer threads can do with less. */
#define FINI_CORPUS_WORK_MOST 0x1p31

/* Checks the settings and makes a corpus of the kind from its source. */
fin_status fini_corpus_open(fin_corpus **corpus, const fini_corpus_kind *kind,
                            const fin_corpus_settings *settings, const void *source, uint64_t seed,
                            fin_error *err);
/* The one head: masked: "value" of tokens (or of all of them), else "label" of the sequence;
 * classes > 0: so many. */
void fini_corpus_head(fin_corpus *corpus, int64_t size, int64_t classes);
/* Data: the number of sequence 0 under which it shows all tokens: those from it on do, in order. */
uint64_t fini_corpus_whole(const fin_corpus *corpus);
/* A row of answers from a Bayes mean (size numbers) and the variance of each of them. */
void fini_corpus_answer(const fin_corpus *corpus, const double *mean, double variance,
                        double *bayes);
/* The same from probabilities of classes: their logarithms, none below that of 1e-300. */
void fini_corpus_answer_classes(int64_t classes, const double *probabilities, double *bayes);

/* ---- labels of families (corpus_label.c) ----------------------------------------------------- */

fin_status fini_corpus_direction(fin_corpus *corpus, fin_error *err); /* draws A */
void fini_corpus_label(const fin_corpus *corpus, const fini_example *e, const double *z);
void fini_corpus_label_bayes(const fin_corpus *corpus, const fini_example *e,
                             const double *posterior);
/* Numbers of the posterior's mean, which are written if `mean` is not NULL; 0: there is none. */
int64_t fini_corpus_posterior_mean(const fin_corpus *corpus, const double *posterior, double *mean);

#endif
