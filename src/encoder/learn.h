/* Private face of learning: what the files learn*.c and evaluate.c share.
 *
 * A learn is the encoder's parameters (which the encoder owns), and a state beside them: counts,
 * numbers, moments or the memory of L-BFGS, the best weights and the log. A step is a pure function
 * of both, of the settings and of the number of the step: no cursor of random numbers, no order of
 * data is kept anywhere. So a state that is saved and read again goes on to the same bytes. */
#ifndef FINI_LEARN_H
#define FINI_LEARN_H

#include "base/state.h"
#include "finetti/encoder_learn.h"
#include "bags/bags.h" /* sums over processes */
#include "math/lbfgs.h"

/* ---- state ----------------------------------------------------------------------------------- */

/* Counts and numbers that are saved as they stand here: new ones go to the end. */
enum {
    FINI_STEP,        /* steps done */
    FINI_STOPPED,     /* 1: early, or L-BFGS has arrived */
    FINI_WAITED,      /* evaluations since the best one */
    FINI_SINCE,       /* steps since the last row of the log */
    FINI_KEPT,        /* L-BFGS: pairs in its memory, */
    FINI_NEWEST,      /* the place of the newest, */
    FINI_EVALUATIONS, /* and values computed; 0: it has not begun */
    FINI_COUNTS
};
enum {
    FINI_TOKENS_SEEN, /* of all processes */
    FINI_BEST,        /* smallest loss of an evaluation; infinite if there is none */
    FINI_LOSS_SUM,    /* over the steps since the last row */
    FINI_NORM_SUM,
    FINI_VALUE,  /* L-BFGS: the loss, */
    FINI_ENOUGH, /* the gradient's length that is small enough, */
    FINI_PAST,   /* and the losses of the last iterations */
    FINI_NUMBERS = FINI_PAST + FINI_LBFGS_PAST
};
/* What files have of it (learn_state.c). */
extern const fini_state fini_learn_state;
/* A row of the log as numbers: four, then the evaluation. */
enum { FINI_ROW = 17 };
void fini_learn_row_numbers(const fin_learn_row *row, double numbers[FINI_ROW]);
void fini_learn_row_from(const double numbers[FINI_ROW], fin_learn_row *row);

struct fin_learn {
    fin_learn_settings settings;
    fin_encoder *encoder;
    const fin_corpus *corpus, *test; /* test: corpus if none was given */
    fin_sum sum;
    int rank, ranks;
    int64_t head;          /* of the encoder, that the corpus has targets for */
    int64_t batch;         /* sequences of a batch */
    int64_t sample;        /* sequences to learn from; 0: fresh ones */
    int64_t warmup, every; /* settings that may be auto */
    int64_t first, own;    /* this process's sequences of a batch (of the sample: L-BFGS) */

    int64_t tensors, parameters;
    fin_tensor *tensor; /* (tensors) of the encoder */

    fini_arena arena;
    int64_t *count;                      /* (FINI_COUNTS) */
    double *number;                      /* (FINI_NUMBERS) */
    double *gradient;                    /* (parameters) */
    double *total;                       /* (parameters) if accumulate > 1 */
    float *moment_first, *moment_second; /* (parameters) AdamW */
    float *keep;                         /* (3, parameters) weights and moments before a step */
    float *best;                         /* (parameters) if patience > 0 */
    uint64_t *order;                     /* (own) numbers of sequences, fixed sample */
    double *x;                           /* (parameters) L-BFGS: the weights, */
    fini_lbfgs search;                   /* its memory, */
    double sample_tokens;                /* and tokens of the sample */
    fin_examples examples;

    int64_t rows, room;
    fin_learn_row *row;  /* (room) */
    double *row_numbers; /* (room, FINI_ROW), for files */
    double last_loss;    /* of the last step, for reports */
};

/* ---- order (learn_order.c) ------------------------------------------------------------------- */

/* Learning rate of a step, from 0. */
double fini_learn_rate(const fin_learn *learn, int64_t step);
/* Place p (0 .. n - 1) of epoch e: a number 0 .. n - 1, a permutation for every epoch. n at most
 * 2^40. */
uint64_t fini_learn_order(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t p);
/* Tokens in sight of a batch; -1: as the corpus says. */
int64_t fini_learn_length(const fin_learn *learn, int64_t batch);

/* ---- steps (learn_step.c, learn_lbfgs.c) ----------------------------------------------------- */

/* Numbers of a tensor of the encoder, and where they are in the block. */
int64_t fini_tensor_size(const fin_tensor *tensor);
int64_t fini_tensor_place(const fin_learn *learn, int64_t i);
/* Tokens of these examples, of all processes; total: their sequences. */
fin_status fini_learn_tokens(fin_learn *learn, int64_t total, double *tokens, fin_error *err);
/* Loss and gradient of these examples; weights of dtype, or NULL: the encoder's. What is not
 * trained has the gradient 0. */
fin_status fini_learn_gradient(fin_learn *learn, int64_t total, fin_dtype dtype,
                               const void *weights, double *gradient, double *loss, double *targets,
                               fin_error *err);
/* FIN_ERR_NUMERIC with step and tensor, unless loss and gradient are finite. norm: of the
 * gradient. */
fin_status fini_learn_finite(const fin_learn *learn, double loss, const double *gradient,
                             double *norm, fin_error *err);
/* One step; the state is that of before if it fails. */
fin_status fini_learn_adamw(fin_learn *learn, fin_error *err);
fin_status fini_learn_lbfgs(fin_learn *learn, fin_error *err);
fin_status fini_learn_lbfgs_open(fin_learn *learn, fin_error *err);
void fini_learn_lbfgs_save(fin_learn *learn); /* what it knows into counts and numbers */
void fini_learn_lbfgs_load(fin_learn *learn); /* and back */

/* ---- log (learn_log.c) ----------------------------------------------------------------------- */

/* Room for one more row. */
fin_status fini_learn_room(fin_learn *learn, int64_t rows, fin_error *err);
/* Has this step to be evaluated, and has it not been yet? */
bool fini_learn_due(const fin_learn *learn);
fin_status fini_learn_evaluate(fin_learn *learn, fin_error *err);

/* ---- fitting together (learn.c) --------------------------------------------------------- */

/* The head of the encoder that has the corpus's targets. Everything else has to fit, too. */
fin_status fini_learn_head(const fin_encoder *encoder, const fin_corpus *corpus, int64_t *head,
                           fin_error *err);

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

/* What is evaluated, as fin_encoder_evaluate says, and who shares the work. */
typedef struct fini_trial {
    const fin_encoder *encoder;
    const fin_corpus *corpus;
    uint64_t first;
    int64_t sequences, L;
    fin_sum sum; /* NULL: alone */
    int rank, ranks;
} fini_trial;
fin_status fini_evaluate(const fini_trial *trial, fin_evaluation *evaluation,
                         const fin_progress *progress, fin_error *err);

/* State beside the encoder's parameters: moments, step, log, best weights. A learn that is made
 * with the same arguments (encoder with the saved weights) and restored goes on to the same
 * bytes. */
int64_t fini_learn_tensors(const fin_learn *learn, FIN_OR_NULL fin_tensor *tensors, int64_t room);
fin_status fini_learn_restore(fin_learn *learn, const fin_tensor *tensors, int64_t count,
                              fin_error *err);

#endif
