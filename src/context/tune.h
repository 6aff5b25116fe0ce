/* Private face of tuning: one search, its parameters and what it maximises. */
#ifndef FINI_TUNE_H
#define FINI_TUNE_H

#include "base/base.h"
#include "finetti/context_tune.h"

/* A parameter is the logarithm of a setting or of a column's scale. */
typedef struct fini_tune_part {
    unsigned what;       /* FIN_TUNE_... */
    int64_t column;      /* of a scale; -1: `scale` itself */
    double low, high;    /* ends of its range */
    double first, guess; /* where the first search starts; what the data suggest */
    double below, above; /* other starts lie from guess - below to guess + above */
} fini_tune_part;

/* One thread's share of the work. */
typedef struct fini_tune_lane {
    fin_cross *cross;
    double *mean, *variance; /* (longest, dv) for leave-one-out */
    double *columns;         /* (dk) gradient of one sequence */
} fini_tune_lane;

typedef struct fini_tune {
    const fin_tune_data *data;
    fin_cross_settings settings; /* those that are not tuned, and the place for those that are */
    fin_tune_settings how;
    bool loo; /* else evidence */
    bool ard;
    int64_t parts, longest;
    fini_tune_part *part; /* (parts) */
    double *scales;       /* (dk) or NULL */
    int lanes;
    fini_tune_lane *lane; /* (lanes) */
    double *value;        /* (n) of every sequence */
    double *gradient;     /* (n, parts) */

    double *at;        /* (parts): where the search is, as logarithms */
    double *slope;     /* (parts) */
    double *x;         /* (parts): the same without ends, for L-BFGS */
    double *best;      /* (parts) */
    double best_value; /* the largest so far; -infinity: none */
    int best_start;

    const fin_progress *progress; /* the caller's */
    int64_t evaluations, in_start;
    int start;         /* which search */
    fin_status status; /* what stops everything: memory, cancelling */
    fin_error *err;
} fini_tune;

/* Sums and squares of the data (tune_guess.c). */
typedef struct fini_tune_size {
    double mean_square, variance;    /* of a value, over all columns */
    double norm_square, norm_spread; /* of a key: mean of |k|^2, and about the mean */
} fini_tune_size;
fin_status fini_tune_check(const fin_tune_data *data, fin_error *err);
void fini_tune_measure(const fin_tune_data *data, fini_tune_size *size);
/* Root of a column's variance, or of its mean square. */
double fini_tune_column(const fin_tune_data *data, int64_t column, bool centred);
/* Does the kernel depend on a - b only? */
bool fini_tune_centred(const fin_cross_settings *cross);

/* What is maximised, at t->at, and its derivatives (parts) or NULL (tune_value.c). A numerical
 * failure is -infinity; what stops everything is left in t->status. */
double fini_tune_value(fini_tune *t, double *gradient);
/* Puts parameters into settings and scales. */
void fini_tune_put(const fini_tune *t, const double *at, fin_cross_settings *cross, double *scales);

/* The part of the tokens that is tuned on: at most `most` of every sequence, at random
 * (tune_choose.c). *part borrows from `arena`, which the caller closes. */
fin_status fini_tune_portion(const fin_tune_data *data, int64_t most, int64_t seed,
                             fini_arena *arena, fin_tune_data *part, fin_error *err);
/* What the user should know of the end of a search; settings and scales are those found. */
void fini_tune_notes(const fini_tune *t, const fin_cross_settings *cross, const double *scales,
                     fin_tune_report *report);
/* Is the best point at the end of this range? -1: the lower one; 1: the upper one. */
int fini_tune_end(const fini_tune *t, int64_t i);

/* From t->at (tune_search.c). *converged: before iterations ran out. */
void fini_tune_climb(fini_tune *t, bool *converged);
void fini_tune_scan(fini_tune *t, bool *converged);

/* Reasonable values from the size of keys and values alone, for those named in `which`:
 *     scale        sqrt(sum over columns of the keys' variance), or of their mean square for kernels
 *                  of the product a.b
 *     temperature  mean square of a key's coordinate
 *     level        100 times the mean square of the values: practically a free constant
 *     prior        variance of the values (mean square, if level is 0) over the mean of k(a, a)
 *     noise        a tenth of that variance
 * scales: (dk) or NULL: a scale for every column, with `scale` (if it is named) then 1. */
fin_status fini_tune_guess(fin_cross_settings *cross, FIN_OR_NULL double *scales, unsigned which,
                           const fin_tune_data *data, fin_error *err);

#endif
