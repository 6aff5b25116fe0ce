/* The transformer layer that learns single-location regression, by plain SGD: layer.c. */
#ifndef FINI_LAYER_H
#define FINI_LAYER_H

#include "base/base.h"

enum { FINI_LAYER_HEADS = 4 }; /* most heads, and most pairs (k*, v*) */

typedef struct fini_layer_plan {
    int64_t H, P, d, r, m, L; /* heads, pairs, dimension, rows of Wk and Wq, hidden width, tokens */
    double gamma, mu, eps;
    bool shared;  /* one noise vector for all relevant tokens of a sequence */
    double query; /* Wq starts as so many times Xavier's law */
    double alpha;
    int64_t batch, steps, runs, test, log_every;
    int64_t seed;
} fini_layer_plan;

/* Where the parameters stand in their block. */
typedef struct fini_layer_places {
    int64_t Wk, Wq; /* (H, r, d) each */
    int64_t Wv;     /* (H, d, d) */
    int64_t W1, b1; /* (m, d), (m) */
    int64_t W2, b2; /* (d, m), (d) */
    int64_t theta;  /* (d) */
    int64_t count;
} fini_layer_places;
fini_layer_places fini_layer_places_of(const fini_layer_plan *p);

/* What one thread works with. Zbar, row, hidden, up: of every sample of a batch. */
typedef struct fini_layer_desk {
    const fini_layer_plan *plan;
    fini_layer_places at;
    float *parameters, *gradient;     /* (count) */
    double *star;                     /* (2P, d): k*_1 .. k*_P, v*_1 .. v*_P */
    float *X, *y;                     /* (batch, L, d), (batch) */
    float *start, *z0;                /* (d) the register token, and after the norm */
    float *u, *q;                     /* (H, r), (H, d): Wk z0, and Wq'u / sqrt(r) */
    double *padded, *scores, *norm2;  /* (2, d + 8), (H + 1, batch L), (batch L): for the kernel */
    float *inverse, *mean;            /* (batch, L): 1/(sd + 1e-5) and mean of a token */
    float *a, *c;                     /* (batch, H, L + 1), (batch, H, L): weights; times inverse */
    float *Zbar, *dZbar;              /* (batch, H, d) */
    float *row, *drow;                /* (batch, d): the register's row behind attention */
    float *hidden, *dhidden;          /* (batch, m) */
    float *w, *sums;                  /* (m) each: W2'theta; hidden summed with weights g */
    float *f, *g;                     /* (batch): output; derivative of the loss by it */
    float *ones;                      /* (batch) */
    double *G, *squared, *wide, *top; /* (d, d), (d, d), (2, max(r, d), max(r, d)), (d): for look */
} fini_layer_desk;

/* Cuts a desk out of the arena, or measures it; the plan is borrowed. */
void fini_layer_desk_cut(const fini_layer_plan *p, fini_arena *arena, fini_layer_desk *desk);
/* Register, directions and parameters of a run at step 0. */
void fini_layer_start(fini_layer_desk *o, int64_t run);
void fini_layer_register(fini_layer_desk *o); /* z0, from start */
/* `count` samples into X and y. number: of the step; or a test's, without noise in y. */
void fini_layer_draw(fini_layer_desk *o, int64_t run, int64_t number, int64_t count, bool test);
/* f for the first `count` samples in X; and, with `back`, the gradient of their mean (f - y)^2. */
void fini_layer_pass(fini_layer_desk *o, int64_t count, bool back);

/* What is looked at, of one run at one step. */
typedef struct fini_layer_look {
    double excess, error;              /* mean and standard error of (f - E[Y|X, J])^2 */
    double rank_one[FINI_LAYER_HEADS]; /* s1^2 / sum s^2 of Wk'Wq; NaN if that is 0 */
    double key[FINI_LAYER_HEADS][FINI_LAYER_HEADS];   /* |top right singular vector of Wq . k*_p| */
    double value[FINI_LAYER_HEADS][FINI_LAYER_HEADS]; /* cosine of theta (I + W2 W1) Wv' and v*_p */
} fini_layer_look;
void fini_layer_look_at(fini_layer_desk *o, int64_t run, fini_layer_look *look);

int64_t fini_layer_logs(const fini_layer_plan *p); /* logged steps: 0, log_every, ..., steps */
int64_t fini_layer_step(const fini_layer_plan *p, int64_t log);
/* All runs, over threads: look (runs, logs), made (runs) steps made, fewer than `steps` if a run diverged:
 * what is logged behind that is NaN. */
fin_status fini_layer_run(const fini_layer_plan *p, fini_layer_look *look, int64_t *made,
                          const fin_progress *progress, fin_error *err);

#endif
