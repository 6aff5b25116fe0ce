/* context, second part: kernel scale, noise and temperature from data (empirical Bayes). */
#ifndef FINETTI_CONTEXT_TUNE_H
#define FINETTI_CONTEXT_TUNE_H

#include "finetti/context.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_TUNE_FIELDS(F, C)                                                                      \
    C(by, 0, "auto|evidence|loo",                                                                  \
      "what to tune by: marginal likelihood (cme) or leave-one-out; auto: the former for cme")     \
    F(int64_t, restarts, 4, 1, 1000, "starts of the search; the first is the settings given")      \
    F(int64_t, iterations, 200, 1, 100000, "most iterations of one search")                        \
    F(int64_t, tune_seed, 1, 0, INT64_C(1) << 53, "seed of the other starts")

enum { FIN_TUNE_BY_AUTO, FIN_TUNE_BY_EVIDENCE, FIN_TUNE_BY_LOO };

typedef struct fin_tune_settings {
    FIN_TUNE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_tune_settings;
FIN_API extern const fin_settings fin_tune_table;

/* Sequences that share their settings: ragged, offsets (n + 1). Borrowed. */
typedef struct fin_tune_data {
    int64_t n, dk, dv;
    const int64_t *offsets;      /* (n + 1), ascending from 0 */
    const double *keys, *values; /* (offsets[n], dk) and (offsets[n], dv), finite */
    const char *const *names;    /* (dk) what notes call the columns of keys; NULL: by number */
} fin_tune_data;

enum {
    FIN_TUNE_SCALE = 1,
    FIN_TUNE_PRIOR = 2,
    FIN_TUNE_NOISE = 4,
    FIN_TUNE_TEMPERATURE = 8,
    FIN_TUNE_LEVEL = 16 /* fini_tune_guess only */
};

/* The settings that fin_tune chooses if `which` is 0: for softmax the temperature, for nw the scale,
 * for cme scale, prior and noise. The linear kernel (and the polynomial with offset 0) has no scale
 * beside its prior, and with a scale for every column no prior beside those. */
FIN_API unsigned fin_tune_which(FIN_OR_NULL const fin_cross_settings *cross, int columns);

enum { FIN_TUNE_NOTES = 4 };

typedef struct fin_tune_report {
    unsigned which; /* FIN_TUNE_... that were tuned; 0: none, and the rest says nothing */
    int by;         /* FIN_TUNE_BY_EVIDENCE or FIN_TUNE_BY_LOO */
    int64_t tokens; /* tuned on: all, or with landmarks a random part */
    double before;  /* what is maximised, at the start (NaN where it does not exist) */
    double after;   /* and at the end: log marginal likelihood, or minus the mean squared
                     * leave-one-out error (softmax, nw), or the mean leave-one-out log score (cme) */
    int64_t evaluations;
    int converged;     /* 0: iterations ran out in the best search */
    unsigned at_limit; /* FIN_TUNE_... of those that ended at the end of their range */
    int notes;         /* sentences for the user: about ends of ranges, and iterations */
    char note[FIN_TUNE_NOTES][256];
} fin_tune_report;

/* Searches from `cross` (in) for the best settings (out), over those named in `which` (FIN_TUNE_...,
 * 0: all that the form has). scales: (dk) tuned instead of `scale`, one per column, or NULL: as they
 * are. By L-BFGS on logarithms with exact gradients (cme by evidence; by loo with central
 * differences) or a grid and Brent's method (softmax, nw: one number). Ranges are wide multiples of
 * what fini_tune_guess gives. The landmarks of method nystrom have no gradient: as many tokens of
 * every sequence as there are landmarks, chosen at random by `seed`, are then tuned on exactly.
 * Settings that fail numerically (a matrix without a factor) count as the worst. If the call fails,
 * nothing is changed. report may be NULL. Memory: that of fin_cross and of fin_cross_evidence for
 * the longest sequence (for short ones, in every thread). */
FIN_API fin_status fin_tune(fin_cross_settings *cross, FIN_OR_NULL double *scales, unsigned which,
                            const fin_tune_data *data, const fin_tune_settings *settings,
                            const fin_progress *progress, FIN_OR_NULL fin_tune_report *report,
                            fin_error *err);

/* Settings from data, for those named in `open`: fini_tune_guess, and where `settings` is not NULL
 * fin_tune from there over those of them that the form tunes; report->which says which. If the call
 * fails, `cross` is as it was. */
FIN_API fin_status fin_tune_choose(fin_cross_settings *cross, FIN_OR_NULL double *scales,
                                   unsigned open, const fin_tune_data *data,
                                   FIN_OR_NULL const fin_tune_settings *settings,
                                   const fin_progress *progress,
                                   FIN_OR_NULL fin_tune_report *report, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
