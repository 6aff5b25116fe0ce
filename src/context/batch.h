/* Private: many short contexts at once. batch.c checks and shares the work, batch_rows.c does
 * the forms whose weights are normalised row by row (softmax, nw), batch_dual.c and
 * batch_primal.c kernel ridge by tokens and by features. */
#ifndef FINI_BATCH_H
#define FINI_BATCH_H

#include "context/cross.h"
#include "base/base.h"
#include "kernel/kernel.h"

/* One call. */
typedef struct fini_many {
    const fin_cross_settings *settings;
    const fin_cross_batch *batch;
    fini_score score;
    double key_times, query_times; /* what keys and queries are multiplied by */
    int64_t longest, widest;  /* most tokens (of those not primal), most queries of a context */
    int64_t features, stored; /* of contexts that are primal; their most tokens */
    void *out, *variance;     /* forward */
    const void *dout;         /* backward, with: */
    const fin_cross_gradient *gradient;
    double (*hyper)[4]; /* (n): a context's part of log scale, noise, prior, temperature */
} fini_many;

/* One context of it. */
typedef struct fini_one {
    int64_t context, L, m; /* number, tokens, queries */
    int64_t token, query;  /* number of its first */
} fini_one;

/* Memory of a thread: cut by a layout function, for the largest context of the call. Which
 * pieces there are is up to it. */
typedef struct fini_scratch {
    int64_t ld, ldx, ldc; /* leading dimensions of A, M; of X, U, B, R; of T, S, D, F */
    double *keys, *queries, *values, *dout, *out; /* in double, scaled */
    double *panels, *query_panels;
    double *A, *X, *U, *T, *S, *D;
    double jitter; /* in A or M, of this context */
    double *dkeys, *dqueries, *dvalues;
    double *top, *sum;
    void *q_rows, *out_rows, *key_panels; /* in the batch's type */
    double *M, *F, *B, *R;                /* primal */
    fin_cross basis;                      /* primal: the parts of it that features are made of */
} fini_scratch;

enum {
    FINI_QUERIES = 64,    /* queries of a chunk, where matrices (tokens, queries) are needed */
    FINI_BLOCK_F32 = 384, /* queries of a unit of work in the row-wise forms */
    FINI_BLOCK_F64 = 192
};

/* A context on its way to a factor: what filling its matrix takes. */
typedef struct fini_filling {
    const fini_many *o;
    const fini_one *c;
    fini_scratch *s;
} fini_filling;

fini_one fini_many_context(const fini_many *o, int64_t context);
/* `count` numbers from number `from` of an array of the batch's type, times `times`, in double. */
void fini_many_read(const fini_many *o, const void *array, int64_t from, int64_t count,
                    double times, double *to);
/* And the other way: rounds; adds `times` x to what is there. */
void fini_many_write(const fini_many *o, void *array, int64_t from, int64_t count, const double *x);
void fini_many_add(const fini_many *o, void *array, int64_t from, int64_t count, double times,
                   const double *x);
bool fini_score_distance(const fini_score *score);
/* Keys and queries of a context, scaled. Those that only their differences matter of are taken
 * relative to the first key, so that nothing is lost to a common offset. */
void fini_many_points(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                      fini_scratch *s, bool keys);
/* da_i += sum_j C_ij (b_j - a_i), db_j += sum_i C_ij (a_i - b_j); where u = a.b instead of a
 * distance: without what is taken off. Either may be NULL. */
typedef struct fini_pull {
    int64_t n, m;
    const double *a, *b; /* (n, dk), (m, dk) */
    const double *C;     /* (n, m) with leading dimension ld */
    int64_t ld;
} fini_pull;
void fini_many_pull(const fini_many *o, const fini_pull *p, double *da, double *db);

void fini_rows_layout(fini_arena *arena, const fini_many *o, fini_scratch *s);
/* Queries first .. first+count-1 of a context. */
fin_status fini_rows_forward(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                             fini_scratch *s, fin_error *err);
fin_status fini_rows_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                              fin_error *err);

/* ---- kernel ridge --------------------------------------------------------------------------- */

/* Is this one done by features? Where they are fewer than tokens and cost less, or by wish. */
bool fini_many_primal(const fini_many *o, const fini_one *c);

void fini_dual_layout(fini_arena *arena, const fini_many *o, fini_scratch *s);
fin_status fini_dual_forward(const fini_many *o, const fini_one *c, fini_scratch *s,
                             fin_error *err);
fin_status fini_dual_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                              fin_error *err);
/* Writes s->out, (count, dv) means and, if wanted, (count) variances, as answers to queries first ..;
 * FIN_ERR_NUMERIC if one is not finite, in the batch's type. */
fin_status fini_cme_answer(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                           const fini_scratch *s, fin_error *err);
/* The same question to numbers (count, width). */
fin_status fini_cme_check(const fini_many *o, const fini_one *c, int64_t first, int64_t count,
                          int64_t width, const double *x, fin_error *err);

void fini_primal_layout(fini_arena *arena, const fini_many *o, fini_scratch *s);
fin_status fini_primal_forward(const fini_many *o, const fini_one *c, fini_scratch *s,
                               fin_error *err);
fin_status fini_primal_backward(const fini_many *o, const fini_one *c, fini_scratch *s,
                                fin_error *err);

#endif
