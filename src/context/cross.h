/* Private face of fin_cross: one context of (key, value) tokens.
 *
 * cross.c makes it, cross_tokens.c takes tokens in and out, cross_query.c checks what is asked and
 * hands it to the method, a table of functions: cross_dual.c (tokens x tokens), cross_primal.c
 * (features x features; also the landmarks of cross_nystrom.c, which are features), cross_form.c
 * (softmax and nw, which need no matrix). */
#ifndef FINI_CROSS_H
#define FINI_CROSS_H

#include "base/base.h"
#include "finetti/context.h"
#include "math/gram.h"
#include "math/spd.h"
#include "base/constants.h"

enum {
    FINI_CROSS_LANES = 8, /* shares of blocks that threads do side by side, each with its scratch */
    FINI_CROSS_LANE_FEATURES = 512,  /* most features for which each may have its own matrix */
    FINI_CROSS_TILE = 128,           /* tokens of a tile that one thread does alone */
    FINI_CROSS_BLOCK = 256,          /* queries, or tokens on their way into features, at a time */
    FINI_CROSS_FEW = 1 << 16,        /* numbers for which waking a second thread does not pay */
    FINI_CROSS_FEATURES_MOST = 20000 /* of a primal method: its matrix has D^2 doubles */
};

typedef struct fini_cross_method fini_cross_method;

/* Explicit features of the linear and the polynomial kernel (cross_features.c): number j of the
 * monomials is number parent[j] times column[j] of the key; the first `skip` of them only lead to
 * others. feature = factor[j] * monomial, then one constant sqrt(level) if level > 0. */
typedef struct fini_monomials {
    int64_t all, skip;
    int32_t *parent, *column; /* (all); parent 0 is the monomial 1, number 0 */
    double *factor;           /* (all) */
} fini_monomials;

struct fin_cross {
    fin_cross_settings settings;
    fin_covariance kernel; /* the settings' own, or exponential for softmax */
    const fini_cross_method *method;
    int64_t dk, dv, capacity;
    int64_t room, first, tokens; /* arrays have room for `room`; in use: first .. first+tokens-1 */
    double *divisor;             /* (dk): keys are divided by these */
    double *keys, *values;       /* (room, dk) divided already, (room, dv) */
    double jitter;               /* added to the noise */

    double *C;         /* dual (capacity, capacity): factor of prior G + level + noise I */
    double *diagonal;  /* dual (capacity): of that matrix, without jitter */
    double *w, *alpha; /* dual (capacity, dv): C^-1 V and C'^-1 C^-1 V */
    double *row;       /* dual (capacity + 1) */

    int64_t D, features;  /* most features, and those in use */
    fini_monomials basis; /* primal */
    double *landmarks;    /* nystrom (D, dk): their keys */
    double *Cm;           /* nystrom (D, D): factor of the landmarks' own matrix */
    double *half;         /* nystrom (D, dv): B of the first half of the landmarks */
    double *S, *M;        /* (D, D): F F' over the tokens, factor of S + noise I */
    double *T, *u, *B;    /* (D, dv): F V, M^-1 T, M'^-1 M^-1 T */
    double *F;            /* (D, FINI_CROSS_BLOCK): features of a block, a token in each column */
    double *x;            /* (D) */
    double *peak;         /* (D): the largest S_jj since it was last summed anew */
    bool solved;          /* false: noise is 0 and the tokens do not fix all features */
    int64_t dropped;      /* tokens taken out of S since it was last summed anew */
    int64_t chosen_from;  /* nystrom: tokens there were when the landmarks were chosen */
    int64_t added;        /* nystrom: tokens that have come since */
    double prior, unseen; /* nystrom: sums over both; residual is their ratio */
    double residual, moved;

    fini_arena arena;
    double bytes;
};

/* What a method does. Keys and queries come divided; load and append find the tokens in their
 * place; append's are not counted in o->tokens yet, drop's are still counted. */
struct fini_cross_method {
    int name; /* FIN_CROSS_... */
    fin_status (*load)(fin_cross *o, const fin_progress *progress, fin_error *err);
    fin_status (*append)(fin_cross *o, int64_t n, fin_error *err);
    fin_status (*drop)(fin_cross *o, int64_t n, fin_error *err);
    /* One block of at most `block` queries; scratch: scratch(o, m) doubles. */
    int64_t block;
    int64_t (*scratch)(const fin_cross *o, int64_t m);
    void (*predict)(const fin_cross *o, int64_t m, const double *queries, double *mean,
                    double *variance, double *weights, double *scratch);
    fin_status (*loo)(const fin_cross *o, double *mean, double *variance,
                      const fin_progress *progress, fin_error *err);
    /* The tokens themselves (m = 0) or queries; error and score are zero when they come. */
    fin_status (*prefix)(const fin_cross *o, int64_t m, const double *queries,
                         const double *answers, double *error, double *score,
                         const fin_progress *progress, fin_error *err);
    /* gradient (3) and by_column (dk) are zero when they come, or both NULL. */
    fin_status (*evidence)(const fin_cross *o, double *evidence, double *gradient,
                           double *by_column, const fin_progress *progress, fin_error *err);
};

extern const fini_cross_method fini_cross_dual, fini_cross_primal, fini_cross_nystrom,
    fini_cross_form;

/* ---- shared ---------------------------------------------------------------------------------- */

static inline const double *fini_cross_key(const fin_cross *o, int64_t token)
{
    return o->keys + (o->first + token) * o->dk;
}
static inline const double *fini_cross_value(const fin_cross *o, int64_t token)
{
    return o->values + (o->first + token) * o->dv;
}

/* The table's, and that nw has a kernel of one sign. */
fin_status fini_cross_check_settings(const fin_cross_settings *s, fin_error *err);
/* out = rows divided column by column (cross_tokens.c). */
void fini_cross_divide(const fin_cross *o, int64_t n, const double *rows, double *out);
/* All finite, and no square overflows; `what` is "token" or "query". */
fin_status fini_cross_check(const fin_cross *o, const char *what, int64_t n, const double *rows,
                            fin_error *err);
/* Rows that are divided already, number base on: k(x, x) does not overflow. */
fin_status fini_cross_overflow(const fin_cross *o, const char *what, int64_t base, int64_t n,
                               const double *divided, fin_error *err);
/* No tokens. */
fin_status fini_cross_clear(fin_cross *o, fin_error *err);
/* prior k(a, a) + level of n rows (divided). */
void fini_cross_prior(const fin_cross *o, int64_t n, const double *rows, double *out);
/* prior k(a_i, b_j) + level (a: n rows, b: m), out (n, m) with ld; threads share it. */
void fini_cross_covariances(const fin_cross *o, int64_t n, const double *a, int64_t m,
                            const double *b, double *out, int64_t ld);
fin_status fini_cross_cancelled(fin_error *err);

/* Dual and primal prefix curves come from the same numbers (cross_prefix.c). After the first l
 * tokens, with rows X_l of C^-1 K_q and w_l of C^-1 V,
 *     mean_l(q) = sum_{i<l} X_iq w_i,   variance_l(q) = variance_0(q) - sum_{i<l} X_iq^2. */
typedef struct fini_prefix {
    int64_t m, dv;         /* queries of this block */
    const double *answers; /* (m, dv) */
    double noise;
    double *mean;          /* (m, dv): so far */
    double *variance;      /* (m): so far */
    double *terms;         /* (rows, m), at least (2, m): room */
    double *error, *score; /* from entry 0 on; score may be NULL */
} fini_prefix;
/* Entry l: what is known now. */
void fini_prefix_now(const fini_prefix *p, int64_t l);
/* Entries l + 1 .. l + rows, after tokens l .. l + rows - 1, from X (rows, m), which is lost. */
void fini_prefix_rows(const fini_prefix *p, int64_t l, int64_t rows, double *X, const double *w);

/* cross_features.c: how many (in double: it may be huge), the tables, and features of b keys, F
 * (features, b) with leading dimension ld. */
double fini_monomials_count(const fin_cross_settings *s, int64_t dk);
void fini_monomials_take(fini_arena *a, fini_monomials *basis, const fin_cross_settings *s,
                         int64_t dk);
void fini_monomials_fill(fini_monomials *basis, const fin_cross_settings *s, int64_t dk);
void fini_monomials_features(const fin_cross *o, int64_t b, const double *keys, double *F,
                             int64_t ld);
/* How often column c is a factor of feature j (0 for the level's). */
int64_t fini_monomials_power(const fin_cross *o, int64_t j, int64_t c);

/* Do D features cost less than a matrix of L tokens? L D^2 + D^3 / 3 < L^3 / 3 operations, and fewer. */
static inline bool fini_cross_cheaper(double D, double L)
{
    return D > 0 && D <= FINI_CROSS_FEATURES_MOST && D < L &&
           L * D * D + D * D * D / 3 < L * L * L / 3;
}

/* Features of b keys as above, by either. */
void fini_cross_features(const fin_cross *o, int64_t b, const double *keys, double *F, int64_t ld);
/* unseen (b): prior variance less |F|^2, at least 0 (all 0 for primal). */
void fini_cross_unseen(const fin_cross *o, int64_t b, const double *keys, const double *F,
                       int64_t ld, double *unseen);

#endif
