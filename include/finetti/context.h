/* context: queries that attend to a context of (key, value) tokens.
 *
 *     softmax   sum_l w_l v_l,  w = softmax(q.k_l / temperature)
 *     nw        sum_l w_l v_l,  w_l = k(q, k_l) / sum           (Nadaraya and Watson)
 *     cme       V'(G + lam I)^-1 k_q,  lam = noise / prior      (conditional mean embedding)
 *
 * The tokens are exchangeable: their order does not matter. If values are v = f(k) + noise with f a
 * Gaussian process of covariance prior * kernel + level (a linear concept is one), then cme
 * attention is the posterior mean of f(q), exactly, at every length, and its variance is the
 * posterior's:
 *
 *     prior k(q,q) + level - K_q'(G prior + level + noise I)^-1 K_q,  K_q = prior k_q + level
 *
 * softmax is nw with the kernel `exponential` and scale^2 = temperature. nw divides by the sum of
 * the kernel and refuses linear and polynomial, which can be zero or negative.
 *
 * fin_cross is one context, made for many queries, for growing and for shrinking; fin_cross_forward
 * and fin_cross_backward do many short contexts at once. */
#ifndef FINETTI_CONTEXT_H
#define FINETTI_CONTEXT_H

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

/* A context of at most `capacity` tokens with dk numbers in a key and dv in a value (both at least
 * 1). scales: (dk) a length scale for every column, times `scale`, or NULL. softmax looks neither
 * at kernel nor at scale: its keys and queries are divided by `scales` and its scores by the
 * temperature. What depends on the capacity is taken here (see fin_cross_bytes), the scratch of a
 * call in the call. method auto is primal where its D features cost less, that is
 * L D^2 + D^3 / 3 < L^3 / 3 with L = capacity, else dual; it never approximates. primal: at most
 * 20 000 features. */
FIN_API fin_status fin_cross_create(fin_cross **cross, const fin_cross_settings *settings,
                                    FIN_OR_NULL const double *scales, int64_t dk, int64_t dv,
                                    int64_t capacity, fin_error *err);
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
    double residual;  /* nystrom: share of the tokens' prior variance that the landmarks do not see,
                       * on average: 0 is exact. What they do not see of a query's is added to its
                       * variance, which is above the exact one at most queries, yet no bound: where
                       * the residual times the prior is not small beside the noise, single queries
                       * had down to a fifth of it, and an error of some of these deviations */
    double moved;     /* nystrom: by how much the mean at the tokens moves from half the landmarks
                       * to all of them, root mean square, in standard deviations of the values: an
                       * estimate (not a bound) of the error that is left: of its size, often
                       * above */
    double bytes;     /* memory taken */
} fin_cross_info;
FIN_API void fin_cross_get_info(const fin_cross *cross, fin_cross_info *info);

/* Replaces all tokens: keys (n, dk), values (n, dv), both finite. Blocked, in parallel: O(n^3 / 3)
 * dual, O(n D^2) primal. n = 0 is fine: the prior. Keys that are equal while noise is 0 make a
 * matrix that has no inverse: FIN_ERR_NUMERIC, unless the jitter of 1e-12, 1e-11, ... at most 1e-8
 * times its mean diagonal repairs what is rounding only (info.jitter says so): a jitter above the
 * noise must leave the means at the tokens within 1e-6 of the column's largest value and 8
 * standard deviations of noise of that variance (values that were drawn with such a jitter are
 * that far off), after append and drop too, and equal keys with different values are refused by
 * number. (Primal and nystrom have a jitter with a positive noise only, and then answer for noise
 * + jitter.) Primal with noise 0 is least squares, once the tokens fix all features; until then
 * questions are answered by FIN_ERR_NUMERIC. Rounding: answers are good to about 1e-16 times the
 * condition of the matrix, which is up to 1 + tokens (prior k + level) / noise; beyond 1e10 think
 * of a larger noise or a smaller level. Numbers that are refused one by one (not finite, too large
 * to be squared) change nothing; after any other failure the context is empty. */
FIN_API fin_status fin_cross_load(fin_cross *cross, int64_t n, const double *keys,
                                  const double *values, const fin_progress *progress,
                                  fin_error *err);
/* n more tokens, one after the other: O(L^2) each dual, O(D^2) primal. All or nothing. nystrom
 * keeps its landmarks and moved, and adds to the residual, until a quarter as many tokens have come
 * as there were when they were chosen; then, and after a failure on the way, it chooses again. */
FIN_API fin_status fin_cross_append(fin_cross *cross, int64_t n, const double *keys,
                                    const double *values, fin_error *err);
/* Without the n oldest tokens: the same costs. For a sliding window. Out of memory (primal and
 * nystrom sum their tokens anew now and then), and a jitter that those left do not bear, leave the
 * context empty. */
FIN_API fin_status fin_cross_drop(fin_cross *cross, int64_t n, fin_error *err);

/* m queries (m, dk). mean: (m, dv). variance: (m, dv) or NULL: for cme that of the function, the
 * same in every column and never negative (add `noise` for a new value); for softmax and nw the
 * weighted variance of the values around the mean. weights: (m, tokens) or NULL: mean = weights
 * values; those of cme may be negative and need not sum to one. With no tokens: the prior for cme,
 * FIN_ERR_ARGUMENT for the others. Several threads may ask the same context at once. */
FIN_API fin_status fin_cross_predict(const fin_cross *cross, int64_t m, const double *queries,
                                     double *mean, FIN_OR_NULL double *variance,
                                     FIN_OR_NULL double *weights, const fin_progress *progress,
                                     fin_error *err);

/* Leave-one-out: token l predicted from all others. mean, variance: (tokens, dv); for cme the
 * variance is that of a value (noise included), in closed form from one inverse. */
FIN_API fin_status fin_cross_loo(const fin_cross *cross, double *mean, FIN_OR_NULL double *variance,
                                 const fin_progress *progress, fin_error *err);

/* The learning curve: what was to be known after the first l tokens, l = 0 .. tokens. Squared error
 * and minus log predictive density (of a value, noise included; cme only, else NaN), mean over m
 * queries with answers (m, dv), summed over columns. All prefixes come from one factor: the factor
 * of a prefix is its corner, so that the whole curve costs O(L^3 / 3 + m L^2). With m = 0
 * entry l is about token l itself, predicted from those before it (tokens entries then). error,
 * score: (tokens + 1) or (tokens); score may be NULL. Entry 0 of softmax and nw, which have no
 * prior, is NaN. Primal and nystrom go through the tokens in blocks: O(L D^2 + m L D). */
FIN_API fin_status fin_cross_prefix(const fin_cross *cross, int64_t m, const double *queries,
                                    const double *answers, double *error, FIN_OR_NULL double *score,
                                    const fin_progress *progress, fin_error *err);

/* cme: log p(values | keys), summed over columns, and its derivatives in the logarithms of scale,
 * prior, noise (gradient[0..2], or NULL) and of every column's scale (by_column: (dk) or NULL).
 * Destroys nothing; takes another L^2 doubles while it runs if a gradient is wanted (dual); primal
 * has it in O(D^3). nystrom: evidence of the approximation, and FIN_ERR_UNSUPPORTED for its
 * gradient. */
FIN_API fin_status fin_cross_evidence(const fin_cross *cross, double *evidence,
                                      FIN_OR_NULL double gradient[3], FIN_OR_NULL double *by_column,
                                      const fin_progress *progress, fin_error *err);

/* ---- how good it is -------------------------------------------------------------------------- */

enum { FIN_SCORE_LEVELS = 3, FIN_SCORE_BINS = 10 };

/* A number that there is nothing to take it from is NaN. */
typedef struct fin_cross_score {
    int64_t count; /* numbers judged */
    double rmse, r2;
    double log_score;                  /* mean log density of a normal law */
    double coverage[FIN_SCORE_LEVELS]; /* share in the intervals of 50, 90 and 95 % */
    int64_t pit[FIN_SCORE_BINS];       /* histogram of fin_cross_pit */
} fin_cross_score;
/* n numbers against their predictions, each `step` after the one before (dv, for a column); those
 * where value or mean is not finite do not count. noise is added to the variance. */
FIN_API fin_status fin_cross_judge(int64_t n, int64_t step, const double *values,
                                   const double *mean, const double *variance, double noise,
                                   fin_cross_score *score, fin_error *err);
/* A column of keys in units of 2^power, in which nothing overflows or vanishes when it is squared and
 * nothing is rounded: keys are standardised as (ldexp(x, -power) - mean) / deviation. deviation 0: it
 * is constant, rounding included. */
typedef struct fin_cross_column {
    int power;
    double mean, deviation;
} fin_cross_column;
/* Of n finite numbers, each `step` after the one before; n at least 1. */
FIN_API fin_status fin_cross_measure(int64_t n, int64_t step, const double *keys,
                                     fin_cross_column *column, fin_error *err);
/* P(new value <= the one that came), of a normal law. */
FIN_API double fin_cross_pit(double value, double mean, double variance);

/* ---- many short contexts --------------------------------------------------------------------- */

/* n contexts, ragged: tokens offsets[i] .. offsets[i+1]-1 and queries query_offsets[i] .. are those
 * of context i. dtype: FIN_F32 or FIN_F64 of keys, values and queries. Borrowed. */
typedef struct fin_cross_batch {
    int64_t n, dk, dv;
    fin_dtype dtype;
    const int64_t *offsets, *query_offsets; /* (n + 1) each, ascending from 0 */
    const void *keys, *values, *queries;    /* (tokens, dk), (tokens, dv), (queries, dk) */
} fin_cross_batch;

/* out: (queries, dv) of dtype; variance: (queries) of dtype or NULL, cme only: that of the
 * function. A context's numbers do not depend on what else is in the batch, nor on threads. Scratch
 * is taken once per call and thread, and bounded: the largest context's matrix and 64 queries'
 * columns (cme dual; 0.3 MB at 128 tokens), the matrix of the features (primal), a tile of 128
 * tokens and 384 (float) or 192 queries (softmax, nw; 0.3 MB at dk = dv = 64); never tokens times
 * queries.
 *
 * Precision: cme computes in double whatever dtype is, since the condition of its matrix is up to
 * 1 + L prior / noise, and rounds at the end; softmax and nw compute in dtype, with sums of weights
 * in double. Jitter as in fin_cross_load, without a report. Methods auto, dual, primal: auto takes
 * the cheaper one for every context.
 *
 * A context without tokens is the prior for cme and refused (by its number) for the others, if it
 * has queries. Numbers that are not finite are refused. FIN_ERR_NUMERIC names the context: equal
 * keys with other values while noise is 0, and numbers beyond their type: covariances, products of
 * query and key, sums of values. Distances are no failure: they end at 2^40 scales in float, 2^300
 * in double. After a failure out holds nothing of use. */
FIN_API fin_status fin_cross_forward(const fin_cross_settings *settings,
                                     const fin_cross_batch *batch, void *out,
                                     FIN_OR_NULL void *variance, fin_error *err);

/* Gradients are added to what is there (caller-owned); any may be NULL. Of dtype, shaped like what
 * they are the gradients of. The last four: in log scale, log noise, log prior, log temperature;
 * summed over contexts in their order. cme takes two solves with the same factor. */
typedef struct fin_cross_gradient {
    void *keys, *values, *queries;
    double log_scale, log_noise, log_prior, log_temperature;
} fin_cross_gradient;
/* Given dout = d loss / d out (queries, dv). In double inside, also for FIN_F32; a context by one
 * thread. softmax and nw compute their weights again, tile by tile. The linear kernel goes backward
 * by features where it goes forward by them, the polynomial one by tokens. After a failure the
 * arrays may have been added to, the four numbers not. */
FIN_API fin_status fin_cross_backward(const fin_cross_settings *settings,
                                      const fin_cross_batch *batch, const void *dout,
                                      fin_cross_gradient *gradient, fin_error *err);

/* ---- several heads --------------------------------------------------------------------------- */

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
