/* train, second part: kernel scale, noise and temperature from data (empirical Bayes). */
#ifndef FINETTI_TRAIN_TUNE_H
#define FINETTI_TRAIN_TUNE_H

#include "finetti/attention_cross.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_TUNE_FIELDS(F, C)                                                                      \
    C(by, 0, "auto|evidence|loo",                                                                  \
      "what to tune by: marginal likelihood (cme) or leave-one-out; auto: the former for cme")     \
    F(int64_t, restarts, 4, 1, 1000, "starts of the search; the first is the settings given")      \
    F(int64_t, iterations, 200, 1, 100000, "most iterations of one search")                        \
    F(int64_t, tune_seed, 1, 0, INT64_C(1) << 53, "seed of the other starts")

typedef struct fin_tune_settings {
    FIN_TUNE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_tune_settings;
FIN_API extern const fin_settings fin_tune_table;

/* Sequences that share their settings: ragged, offsets (n + 1). Borrowed. */
typedef struct fin_tune_data {
    int64_t n, dk, dv;
    const int64_t *offsets;
    const double *keys, *values;
} fin_tune_data;

enum { FIN_TUNE_SCALE = 1, FIN_TUNE_PRIOR = 2, FIN_TUNE_NOISE = 4, FIN_TUNE_TEMPERATURE = 8 };

typedef struct fin_tune_report {
    double before,
        after; /* what is maximised, at the start and at the end: log marginal likelihood, or minus
                            * the mean squared leave-one-out error (softmax, nw), or the mean leave-one-out log score (cme) */
    int64_t evaluations;
    int converged;     /* 0: iterations ran out in the best search */
    unsigned at_limit; /* FIN_TUNE_... of those that ended at the end of their range */
} fin_tune_report;

/* Searches from `cross` (in) for the best settings (out), over those named in `which` (FIN_TUNE_..., 0: all
 * that the form has). scales: (dk) tuned as well, one per column, or NULL. By L-BFGS on logarithms
 * with exact gradients (cme) or Brent's method (softmax, nw: one number). */
FIN_API fin_status fin_tune(fin_cross_settings *cross, double *scales, unsigned which,
                            const fin_tune_data *data, const fin_tune_settings *settings,
                            const fin_progress *progress, fin_tune_report *report, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
