/* Private face of probes: the object and the two fits. */
#ifndef FINI_PROBE_H
#define FINI_PROBE_H

#include "base/base.h"
#include "finetti/encoder_probe.h"

struct fin_probe {
    int64_t p, m;    /* features; numbers of an answer, or classes */
    int64_t classes; /* 0: numbers */
    double penalty;
    double *W, *b;        /* (m, p), (m): out = W x + b, for features as they come */
    double *mean, *scale; /* (p) of the training rows; scale 0: a constant column */
    fini_arena arena;
};

/* Rows to learn from: x (n, p) with mean 0 and deviation 1 in every column (or all 0). Both fill
 * probe->W and b for these x, and penalty: `penalty` or, if it is FIN_AUTO, the one chosen. */
typedef struct fini_probe_rows {
    int64_t n, p, m;
    const double *x;
    const double *y; /* (n, m) numbers, or (n) classes */
} fini_probe_rows;
fin_status fini_probe_ridge(fin_probe *probe, const fini_probe_rows *rows, double penalty,
                            fin_error *err);
fin_status fini_probe_logistic(fin_probe *probe, const fini_probe_rows *rows, double penalty,
                               fin_error *err);

/* Mean and deviation of n rows' column of stride `step`; a deviation that is only rounding is 0. */
void fini_probe_column(int64_t n, int64_t step, const double *x, double *mean, double *deviation);

/* ---- representations (probe_features.c) ------------------------------------------------------ */

typedef struct fini_features {
    const fin_encoder *encoder;
    int64_t first, last; /* representations after these layers, side by side */
    int pool;            /* FIN_POOL_ */
    bool tokens;         /* a row for every token, else one for every sequence, pooled */
    int64_t longest;     /* FIN_POOL_TOKENS: tokens of every sequence */
    int64_t one, width;  /* numbers of a layer, of a row */
} fini_features;
int64_t fini_features_width(fini_features *f); /* fills in one and width, and returns it */
/* x: (tokens or sequences, width). */
fin_status fini_features_of(const fini_features *f, const fin_examples *e, double *x,
                            fin_error *err);

/* ---- the location of single-location regression (probe_location.c) --------------------------- */

typedef struct fini_located {
    double value, error;
} fini_located;
typedef struct fini_location {
    fini_located attended, place, bayes, before, after, cos_key, cos_value;
} fini_location;
fin_status fini_location_check(const fin_encoder *encoder, const fin_task *task, fin_error *err);
/* Of n sequences to learn from and n to judge by. One relevant token, equal lengths, softmax. */
fin_status fini_location_read(const fin_encoder *encoder, const fin_task *task, int64_t n,
                              fini_location *out, fin_error *err);

/* (n, m) numbers, or (n, classes) probabilities. */
fin_status fini_probe_predict(const fin_probe *probe, int64_t n, const double *x, double *out,
                              fin_error *err);
double fini_probe_penalty(const fin_probe *probe); /* in use */
/* The map itself, of features as they came: W (m or classes, p), b (m or classes); predictions are
 * W x + b, or its softmax. */
void fini_probe_weights(const fin_probe *probe, double *W, double *b);

#endif
