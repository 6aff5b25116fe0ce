/* Claims in parts: claim_read.c reads what the file says, claim_reduce.c makes one number with its
 * interval of many, claim.c asks the store and judges. */
#ifndef FINI_CLAIM_H
#define FINI_CLAIM_H

#include "study/study.h"

/*   name in the file, how texts begin: "largest of 20 numbers", quantity: "max of abs(z)" */
#define FINI_REDUCE_LIST(R)                                                                        \
    R(ONLY, "only", "", "")                                                                        \
    R(FIRST, "first", "first of", "first of ")                                                     \
    R(LAST, "last", "last of", "last of ")                                                         \
    R(MIN, "min", "least of", "min of ")                                                           \
    R(MAX, "max", "largest of", "max of ")                                                         \
    R(MEAN, "mean", "mean of", "mean of ")                                                         \
    R(MEDIAN, "median", "median of", "median of ")                                                 \
    R(SUM, "sum", "sum of", "sum of ")                                                             \
    R(COUNT, "count", "count among", "number of runs with ")                                       \
    R(SHARE, "share", "share of", "share of runs with ")                                           \
    R(SLOPE, "slope", "slope through", "slope of ")
typedef enum fini_reduce {
#define FINI_REDUCE_ENUM(name, word, how, quantity) FINI_REDUCE_##name,
    FINI_REDUCE_LIST(FINI_REDUCE_ENUM)
#undef FINI_REDUCE_ENUM
        FINI_REDUCTIONS
} fini_reduce;
const char *fini_reduce_quantity(fini_reduce reduce);

/* One number of a claim: which runs, what of each, and how they become one. */
typedef struct fini_measure {
    const char *name; /* among the `values` of a claim; NULL alone */
    const fini_block *block;
    fini_where where;
    const char *take_text, *against_text; /* against: NULL unless a slope is asked for */
    fini_formula *take, *against;
    fini_reduce reduce;
} fini_measure;

struct fini_claim_plan {
    const char *id, *statement, *source, *figure;
    const char *fails_if, *known; /* "" if the file does not say it */
    const char *key;              /* "true", a chapter that it is a key claim of, or "" */
    fin_kind kind;
    double low, high; /* what is expected; may be infinite */
    char expected[96];
    fini_measure *measures; /* [count] */
    int count;
    const char *quantity_text; /* NULL: the one measure is the quantity */
    fini_formula *quantity;
};

/* A number, its 95 % interval, and how it came about or why it is not there. */
typedef struct fini_measured {
    double value, low, high;
    char how[320];
    fin_how kind;
    bool known;
} fini_measured;

/* x: what a slope is taken against, else NULL. n >= 1; no number is NaN. sampled: the runs are a
 * sample (random axes, several seeds), so that numbers without errors of their own spread, too.
 * low and high are NaN if nothing is known of the uncertainty; then `how` says so. */
fin_status fini_reduce_numbers(fini_reduce reduce, const fini_number *numbers, const double *x,
                               int64_t n, bool sampled, fini_measured *out, fin_error *err);
/* The 97.5 % quantile of Student's law. */
double fini_student_95(int64_t degrees);

#endif
