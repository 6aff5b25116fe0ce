/* attention, second part: queries that attend to a context of (key, value) tokens.
 *
 *     softmax   sum_l w_l v_l,  w = softmax(q.k_l / temperature)
 *     nw        sum_l w_l v_l,  w_l = k(q, k_l) / sum           (Nadaraya and Watson)
 *     cme       V'(G + lam I)^-1 k_q,  lam = noise / prior      (conditional mean embedding)
 *
 * The tokens are exchangeable: their order does not matter. If values are v = f(k) + noise with f a
 * Gaussian process of covariance prior * kernel + level (a linear concept is one), then cme attention is
 * the posterior mean of f(q), exactly, at every length, and its variance is the posterior's:
 *
 *     prior k(q,q) + level - K_q'(G prior + level + noise I)^-1 K_q,  K_q = prior k_q + level
 *
 * softmax is nw with the kernel `exponential` and scale^2 = temperature.
 *
 * fin_cross is one context, made for many queries, for growing and for shrinking; fin_cross_forward
 * and fin_cross_backward do many short contexts at once. */
#ifndef FINETTI_ATTENTION_CROSS_H
#define FINETTI_ATTENTION_CROSS_H

#include "finetti/base.h"
#include "finetti/math.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIN_CROSS_FIELDS(F, C)                                                                     \
    C(form, 0, "cme|softmax|nw", "attention form: kernel ridge, softmax, Nadaraya-Watson")         \
    FIN_COVARIANCE_FIELDS(F, C)                                                                    \
    F(double, prior, 1, 1e-100, 1e100, "cme: prior variance of the function, in units of k(a, a)") \
    F(double, noise, 0.1, 0, 1e100, "cme: variance of a value around the function")                \
    F(double, level, 0, 0, 1e100, "cme: prior variance of a constant added to the function")       \
    F(double, temperature, 1, 1e-100, 1e100, "softmax: scores are q.k / temperature")              \
    C(method, 0, "auto|dual|primal|nystrom",                                                       \
      "cme: tokens x tokens, features x features, or landmarks; auto: the cheaper exact one")      \
    F(int64_t, landmarks, 1000, 1, 20000, "nystrom: tokens that stand for all")                    \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "nystrom: which tokens are landmarks")

enum { FIN_CROSS_CME, FIN_CROSS_SOFTMAX, FIN_CROSS_NW };
enum { FIN_CROSS_AUTO, FIN_CROSS_DUAL, FIN_CROSS_PRIMAL, FIN_CROSS_NYSTROM };

typedef struct fin_cross_settings {
    FIN_CROSS_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_cross_settings;
FIN_API extern const fin_settings fin_cross_table;

/* ---- one context ---------------------------------------------------------------------------- */

/* Most tokens of the dual method: its matrix has L^2 doubles (3.2 GB at 20 000). */
#define FIN_CROSS_DUAL_MOST 32768

typedef struct fin_cross fin_cross;

/* A context of at most `capacity` tokens with dk numbers in a key and dv in a value (both at least 1).
 * scales: (dk) a length scale for every column, times `scale`, or NULL. All memory is taken here; see
 * fin_cross_bytes. */
FIN_API fin_status fin_cross_create(fin_cross **cross, const fin_cross_settings *settings,
                                    const double *scales, int64_t dk, int64_t dv, int64_t capacity,
                                    fin_error *err);
FIN_API void fin_cross_destroy(fin_cross *cross); /* NULL is fine */
/* Bytes that create takes, for stating and bounding them; FIN_ERR_UNSUPPORTED with the numbers and
 * the alternative for a dual method beyond FIN_CROSS_DUAL_MOST. */
FIN_API fin_status fin_cross_bytes(const fin_cross_settings *settings, int64_t dk, int64_t dv,
                                   int64_t capacity, double *bytes, fin_error *err);

/* What was done, and how well. */
typedef struct fin_cross_info {
    int method;       /* FIN_CROSS_DUAL, PRIMAL or NYSTROM; FIN_CROSS_AUTO for forms without one */
    int64_t tokens;   /* in the context now */
    int64_t features; /* primal: D, with the level's; nystrom: landmarks in use; else 0 */
    double jitter;    /* what was added to the noise so that rounding leaves the matrix positive
                       * definite; 0 nearly always */
    double
        residual; /* nystrom: share of the tokens' prior variance that the landmarks do not see, on
                       * average: 0 is exact */
    double bytes; /* memory taken */
} fin_cross_info;
FIN_API void fin_cross_get_info(const fin_cross *cross, fin_cross_info *info);
FIN_API const fin_cross_settings *fin_cross_get_settings(const fin_cross *cross);

/* Replaces all tokens: keys (n, dk), values (n, dv), both finite. Blocked, in parallel: O(n^3 / 3)
 * dual, O(n D^2) primal. n = 0 is fine: the prior. Keys that are equal while noise is 0 make a matrix
 * that has no inverse: FIN_ERR_NUMERIC, unless the jitter of 1e-12, 1e-11, ... at most 1e-8 times its
 * mean diagonal repairs what is rounding only (info.jitter says so). */
FIN_API fin_status fin_cross_load(fin_cross *cross, int64_t n, const double *keys,
                                  const double *values, const fin_progress *progress,
                                  fin_error *err);
/* n more tokens, one after the other: O(L^2) each dual, O(D^2) primal. All or nothing. */
FIN_API fin_status fin_cross_append(fin_cross *cross, int64_t n, const double *keys,
                                    const double *values, fin_error *err);
/* Without the n oldest tokens: the same costs. For a sliding window. */
FIN_API fin_status fin_cross_drop(fin_cross *cross, int64_t n, fin_error *err);

/* m queries (m, dk). mean: (m, dv). variance: (m, dv) or NULL: for cme that of the function, the same
 * in every column and never negative (add `noise` for a new value); for softmax and nw the weighted
 * variance of the values around the mean. weights: (m, tokens) or NULL: mean = weights values; those
 * of cme may be negative and need not sum to one (plus nothing, if level > 0). With no tokens: the
 * prior for cme, FIN_ERR_ARGUMENT for the others. */
FIN_API fin_status fin_cross_predict(const fin_cross *cross, int64_t m, const double *queries,
                                     double *mean, double *variance, double *weights,
                                     const fin_progress *progress, fin_error *err);

/* Leave-one-out: token l predicted from all others. mean, variance: (tokens, dv); for cme the
 * variance is that of a value (noise included), in closed form from one inverse. */
FIN_API fin_status fin_cross_loo(const fin_cross *cross, double *mean, double *variance,
                                 const fin_progress *progress, fin_error *err);

/* The learning curve: what was to be known after the first l tokens, l = 0 .. tokens. Squared error
 * and minus log predictive density (of a value, noise included; cme only, else NaN), mean over m
 * queries with answers (m, dv), summed over columns. All prefixes come from one factor: the factor
 * of a prefix is its corner, so that the whole curve costs O(L^3 / 3 + m L^2). queries NULL (m = 0):
 * entry l is about token l itself, predicted from those before it (tokens entries then). error,
 * score: (tokens + 1) or (tokens); score may be NULL. */
FIN_API fin_status fin_cross_prefix(const fin_cross *cross, int64_t m, const double *queries,
                                    const double *answers, double *error, double *score,
                                    const fin_progress *progress, fin_error *err);

/* cme: log p(values | keys), summed over columns, and its derivatives in the logarithms of scale,
 * prior, noise (gradient[0..2], or NULL) and of every column's scale (by_column: (dk) or NULL).
 * Destroys nothing; takes another L^2 doubles while it runs if a gradient is wanted (dual). */
FIN_API fin_status fin_cross_evidence(const fin_cross *cross, double *evidence, double gradient[3],
                                      double *by_column, const fin_progress *progress,
                                      fin_error *err);

/* ---- many short contexts ---------------------------------------------------------------------- */

/* n contexts, ragged: tokens offsets[i] .. offsets[i+1]-1 and queries query_offsets[i] .. are those
 * of context i. dtype: FIN_F32 or FIN_F64 of keys, values and queries. Borrowed. */
typedef struct fin_cross_batch {
    int64_t n, dk, dv;
    fin_dtype dtype;
    const int64_t *offsets, *query_offsets; /* (n + 1) each, ascending from 0 */
    const void *keys, *values, *queries;    /* (tokens, dk), (tokens, dv), (queries, dk) */
} fin_cross_batch;

/* out: (queries, dv) of dtype; variance: (queries) of dtype or NULL, cme only. A context's numbers do
 * not depend on what else is in the batch. Scratch is taken once per call and thread, and bounded:
 * about the largest context's matrix (cme), a few tiles (softmax, nw). Methods auto, dual, primal. */
FIN_API fin_status fin_cross_forward(const fin_cross_settings *settings,
                                     const fin_cross_batch *batch, void *out, void *variance,
                                     fin_error *err);

/* Gradients are added to what is there (caller-owned); any may be NULL. Of dtype, shaped like what
 * they are the gradients of. The last four: in log scale, log noise, log prior, log temperature;
 * summed over contexts in their order. cme takes two solves with the same factor. */
typedef struct fin_cross_gradient {
    void *keys, *values, *queries;
    double log_scale, log_noise, log_prior, log_temperature;
} fin_cross_gradient;
/* Given dout = d loss / d out (queries, dv). */
FIN_API fin_status fin_cross_backward(const fin_cross_settings *settings,
                                      const fin_cross_batch *batch, const void *dout,
                                      fin_cross_gradient *gradient, fin_error *err);

/* ---- several heads ------------------------------------------------------------------------------ */

/* Tokens and queries x in R^d; head h sees keys K_h x, values V_h x and queries Q_h x, has its own
 * settings, and its output stands beside the others' (out = H * dv numbers) or goes through W. */
typedef struct fin_heads {
    int64_t H, d, dk, dv;
    int64_t out;                        /* width of an answer: H * dv if W is NULL */
    const fin_cross_settings *settings; /* (H) */
    const double *Q, *K, *V;            /* (H, dk, d), (H, dk, d), (H, dv, d) */
    const double *W;                    /* (out, H * dv) or NULL */
} fin_heads;

typedef struct fin_heads_batch {
    int64_t n;
    const int64_t *offsets, *query_offsets;
    const double *tokens, *queries; /* (tokens, d), (queries, d) */
} fin_heads_batch;

typedef struct fin_heads_gradient { /* added to; any may be NULL */
    double *Q, *K, *V, *W;          /* as in fin_heads */
    double *tokens, *queries;       /* as in fin_heads_batch */
    double *hyper; /* (H, 4): log scale, log noise, log prior, log temperature of each head */
} fin_heads_gradient;

FIN_API fin_status fin_heads_forward(const fin_heads *heads, const fin_heads_batch *batch,
                                     double *out, fin_error *err);
FIN_API fin_status fin_heads_backward(const fin_heads *heads, const fin_heads_batch *batch,
                                      const double *dout, fin_heads_gradient *gradient,
                                      fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
