/* Every stream of random numbers that the library draws from, one a purpose: two rows with one
 * number would make two things that should be independent the same (test_random_streams looks).
 * A number never changes, as then the same seed would give other numbers; a new one is taken below
 * FIN_STREAM_USER, where those of callers begin. */
#ifndef FINI_STREAMS_H
#define FINI_STREAMS_H

#include "finetti/random.h"

#define FINI_STREAMS(S)                                                                            \
    S(SUBSET, 0) /* data: which sequences of a set are kept */                                     \
    /* a task: what it is, then its samples */                                                     \
    S(DIRECTIONS, 1)                                                                               \
    S(LENGTH, 2)                                                                                   \
    S(LATENT, 3) /* location and output noise */                                                   \
    S(TOKENS, 4)                                                                                   \
    S(PROJECT, 5)                                                                                  \
    S(NORMS, 6)                                                                                    \
    /* theory: risk of a form, Bayes risk; nothing in common with the data of the same seed */     \
    S(RISK_LENGTH, 7)                                                                              \
    S(RISK_LATENT, 8)                                                                              \
    S(RISK_SCORES, 9)                                                                              \
    S(RISK_NORMS, 10)                                                                              \
    S(BAYES_LENGTH, 11)                                                                            \
    S(BAYES_TOKENS, 12)                                                                            \
    S(BAYES_NORMS, 13)                                                                             \
    S(SPHERES, 22) /* where searches over unit vectors start */                                    \
    S(RIDGE, 27)   /* fields of bags that ridge-penalised attention is fitted to */                \
    /* train: where a run starts, its steps, and seeds of logged risks */                          \
    S(TRAIN_START, 14)                                                                             \
    S(TRAIN_LANES, 15)                                                                             \
    S(TRAIN_LENGTH, 16)                                                                            \
    S(TRAIN_LATENT, 17)                                                                            \
    S(TRAIN_TOKENS, 18)                                                                            \
    S(TRAIN_STAIRS, 19)                                                                            \
    S(TRAIN_REST, 20)                                                                              \
    S(TRAIN_RISK, 21)                                                                              \
    S(LAYER_START, 30) /* a transformer layer: parameters, register, directions; samples */        \
    S(LAYER_TOKENS, 31)                                                                            \
    S(LAYER_NOISE, 32)                                                                             \
    S(LAYER_TEST, 33)                                                                              \
    S(HEADS_START, 23) /* several heads: where a run starts, its steps */                          \
    S(HEADS_LANES, 24)                                                                             \
    S(HEADS_TOKENS, 25)                                                                            \
    S(HEADS_NOISE, 26)                                                                             \
    S(TUNE_START, 200) /* context: where a search starts, landmarks, which tokens are looked at */ \
    S(LANDMARKS, 201)                                                                              \
    S(TUNE_TOKENS, FIN_STREAM_USER) /* was given away with the callers' first, and stays */        \
    S(BAGS_START, 210)              /* bags: keys, bags held out, frequencies, folds */            \
    S(BAGS_HELD, 211)                                                                              \
    S(BAGS_FREQUENCIES, 212)                                                                       \
    S(BAYES_START, 213) /* bayes: keys, chains */                                                  \
    S(BAYES_CHAIN, 214)                                                                            \
    S(BAGS_FOLDS, 301)                                                                             \
    S(LEARN_ORDER, 250) /* encoder: order of sequences, lengths of batches */                      \
    S(LEARN_LENGTH, 251)                                                                           \
    S(CORPUS_DIRECTION, 340) /* A of the label <A, z> */                                           \
    S(CORPUS_LABEL, 341)     /* its noise */                                                       \
    S(CORPUS_HIDING, 342)    /* which tokens of data are hidden */                                 \
    S(CORPUS_KEEPING, 343)   /* which are shown */                                                 \
    S(PROBE, 345)                                                                                  \
    S(ENCODER, 401) /* parameters at the start */                                                  \
    S(RATE_KEYS, 704)                                                                              \
    S(RATE_QUERIES, 705)                                                                           \
    S(RATE_TURNS, 706)                                                                             \
    S(RATE_PICKS, 707)                                                                             \
    S(PRIOR, 720)                                                                                  \
    S(SMALL, 724)                                                                                  \
    S(SMALL_TEST, 725)                                                                             \
    S(SMALL_OWN, 726)                                                                              \
    S(LINEAR, 728)                                                                                 \
    S(LINEAR_TEST, 729)                                                                            \
    S(LIPSCHITZ, 732)                                                                              \
    S(STATIONARY, 733)                                                                             \
    S(SHIFT_AXES, 736)                                                                             \
    S(HEAD_LABELS, 740)                                                                            \
    S(HEAD, 741)                                                                                   \
    S(HEAD_STARTS, 742)                                                                            \
    S(MIL_BAGS, 750)                                                                               \
    S(MIL_TOKENS, 751)                                                                             \
    S(TEXT_SPLIT, 760) /* sentences: which words are for training; one sentence */                 \
    S(TEXT_SENTENCE, 761)                                                                          \
    S(STUDY_AXES, 900) /* study: random axes */                                                    \
    S(IDENTITY, 910)                                                                               \
    FINI_STREAMS_OF_FAMILIES(S, 0, ) /* their data, then simulations of the theory module */       \
    FINI_STREAMS_OF_FAMILIES(S, FINI_STREAMS_UP, _THEORY)

/* Of families of exchangeable tokens: what all sequences share (frequencies, tables of concepts; the
 * finite set), and one sequence. */
#define FINI_STREAMS_OF_FAMILIES(S, up, who)                                                       \
    S(FAMILY_COMMON##who, 256 + up)                                                                \
    S(FAMILY_FINITE##who, 257 + up)                                                                \
    S(FAMILY_Z##who, 272 + up)                                                                     \
    S(FAMILY_KEYS##who, 273 + up)                                                                  \
    S(FAMILY_VALUES##who, 274 + up)                                                                \
    S(FAMILY_WRONG##who, 275 + up)                                                                 \
    S(FAMILY_QUERIES##who, 276 + up)                                                               \
    S(FAMILY_ANSWERS##who, 277 + up)

enum { FINI_STREAMS_UP = 32 }; /* how far the theory's are above a family's own */

enum {
#define FINI_STREAM_NUMBER(name, number) FINI_STREAM_##name = (number),
    FINI_STREAMS(FINI_STREAM_NUMBER)
#undef FINI_STREAM_NUMBER
};

/* Every order of the items is equally likely (Fisher and Yates). */
void fini_random_shuffle(fin_random *r, int64_t n, int64_t *items);

#endif
