/* task, second part: families of exchangeable tokens with a latent variable.
 *
 * Given the latent z the tokens (key, value) are independent draws of one law, so their order does
 * not matter (de Finetti), and all that they say about a new token is in the posterior of z.
 *
 *     concept    v = Z phi(k) + noise, Z Gaussian with variance `prior`     (linear concept)
 *     mean       v = z + noise: concept with phi = 1
 *     process    v = f(k) + noise, f a Gaussian process: concept with infinitely many features
 *     counts     tokens are categories, their probabilities Dirichlet       (Dirichlet-multinomial)
 *     concepts   z one of finitely many tables P_z(r | c); tokens are covariate c, response r
 *     sphere     |k| = |v| = 1, v ~ von Mises-Fisher(O k, rho), O a random rotation
 *     finite     concept, but Z one of finitely many: cme attention is not Bayes here (a control)
 *     urn        balls drawn without replacement: exchangeable, but only finitely many (N balls)
 *
 * A key has dk numbers (0 for mean, counts, urn) and a value dv. Categories, covariates and
 * responses are whole numbers 0, 1, ... kept as doubles (dv = 1). A prediction is a mean and a
 * variance or, where `outcomes` > 0, a row of probabilities.
 *
 * Sequence i is a pure function of (seed, i), token l of it of (seed, i, l) wherever tokens are
 * independent given z: a longer sequence begins with the shorter one. */
#ifndef FINETTI_TASK_LATENT_H
#define FINETTI_TASK_LATENT_H

#include "finetti/base.h"
#include "finetti/math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of all families; each has a table with its own rows of these. */
#define FIN_LATENT_KEYS(F, C)                                                                      \
    F(int64_t, d, 5, 1, 4096, "numbers in a key")                                                  \
    C(keys, 0, "gaussian|sphere|vmf",                                                              \
      "law of keys: N(0, I), uniform on the sphere, or von "                                       \
      "Mises-Fisher around the first axis")                                                        \
    F(double, concentration, 2, 0, 1e6, "of vmf keys")
/* The same for keys that are unit vectors. */
#define FIN_LATENT_DIRECTIONS(F, C)                                                                \
    F(int64_t, d, 3, 2, 512, "numbers in a key")                                                   \
    C(keys, 1, "gaussian|sphere|vmf",                                                              \
      "law of keys: uniform on the sphere, or von Mises-Fisher around the first axis")             \
    F(double, concentration, 2, 0, 1e6, "of vmf keys")
#define FIN_LATENT_VALUES(F, C)                                                                    \
    F(int64_t, dv, 1, 1, 4096, "numbers in a value")                                               \
    F(double, prior, 1, 1e-100, 1e100, "prior variance tau^2 of the latent's numbers")
#define FIN_LATENT_NOISE(F, C)                                                                     \
    F(double, noise, 0.1, 0, 1e100, "variance s^2 of a value around its mean")
#define FIN_LATENT_SOME_NOISE(F, C) /* finite: without noise one token tells all */                \
    F(double, noise, 0.1, 1e-100, 1e100, "variance s^2 of a value around its mean")
#define FIN_LATENT_GAUSS(F, C) FIN_LATENT_VALUES(F, C) FIN_LATENT_NOISE(F, C)
#define FIN_LATENT_FEATURES(F, C)                                                                  \
    C(features, 0, "identity|affine|quadratic|fourier",                                            \
      "phi(k): k; 1 and k; 1, k and products of two; random cosines")                              \
    F(int64_t, D, 64, 1, 16384, "fourier: how many cosines")                                       \
    F(double, frequency, 1, 1e-6, 1e6, "fourier: standard deviation of their frequencies")
#define FIN_LATENT_OUTCOMES(F, C)                                                                  \
    F(int64_t, outcomes, 4, 2, 4096, "categories of a token, or responses")
#define FIN_LATENT_ALPHA(F, C)                                                                     \
    F(double, alpha, 1, 1e-6, 1e6, "Dirichlet parameter of every outcome")
#define FIN_LATENT_SKEW(F, C)                                                                      \
    F(double, skew, 0, -10, 10,                                                                    \
      "outcome j has its Dirichlet parameter, or share of the balls, times (1 + j)^skew")
#define FIN_LATENT_CONCEPTS(F, C) F(int64_t, concepts, 16, 1, 65536, "how many z there are")
#define FIN_LATENT_COVARIATES(F, C)                                                                \
    F(int64_t, covariates, 5, 1, 4096, "values of the covariate c")                                \
    F(double, wrong, 0, 0, 1,                                                                      \
      "share of responses in the context replaced by uniform ones; "                               \
      "inference does not know")
#define FIN_LATENT_SPHERE(F, C) F(double, rho, 10, 0, 1e6, "concentration of values around O k")
#define FIN_LATENT_URN(F, C) F(int64_t, balls, 100, 1, INT64_C(1) << 31, "balls in the urn")

enum { FIN_KEYS_GAUSSIAN, FIN_KEYS_SPHERE, FIN_KEYS_VMF };
enum { FIN_FEATURES_IDENTITY, FIN_FEATURES_AFFINE, FIN_FEATURES_QUADRATIC, FIN_FEATURES_FOURIER };

typedef struct fin_latent_settings {
    FIN_LATENT_KEYS(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_GAUSS(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_FEATURES(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_COVARIANCE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_OUTCOMES(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_ALPHA(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_SKEW(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_CONCEPTS(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_COVARIATES(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_SPHERE(FIN_MEMBER_F, FIN_MEMBER_C)
    FIN_LATENT_URN(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_latent_settings;

typedef struct fin_family fin_family; /* one row of the table of families */

FIN_API int fin_family_count(void);
FIN_API const fin_family *fin_family_at(int i);
FIN_API const fin_family *fin_family_find(const char *name); /* NULL if there is none */
FIN_API const char *fin_family_name(const fin_family *family);
FIN_API const char *fin_family_summary(const fin_family *family);
FIN_API const fin_settings *fin_family_table(const fin_family *family);
/* What z and its posterior are made of: "mean dv features; covariance features features" is names, each with its
 * sizes, which are members of fin_latent_shape. z NULL: `latent` numbers in a row; posterior NULL: there is none. */
FIN_API const char *fin_family_z_parts(const fin_family *family);
FIN_API const char *fin_family_posterior_parts(const fin_family *family);

/* A family with its settings (copied; NULL: the defaults of its table). What is common to all
 * sequences and random (frequencies, the finite set, the tables of concepts) comes from the seed;
 * an urn's balls are split between the kinds in the shares (1 + j)^skew, as nearly as whole balls
 * can. */
typedef struct fin_latent fin_latent;

FIN_API fin_status fin_latent_create(fin_latent **latent, const fin_family *family,
                                     const fin_latent_settings *settings, uint64_t seed,
                                     fin_error *err);
FIN_API void fin_latent_destroy(fin_latent *latent); /* NULL is fine */

typedef struct fin_latent_shape {
    int64_t dk, dv;    /* numbers in a key and a value */
    int64_t features;  /* D of phi; 0 where there is none (process: infinitely many) */
    int64_t latent;    /* numbers of z as fin_latent_draw writes it; 0: it does not (process) */
    int64_t statistic; /* numbers in the sufficient statistic; 0: the tokens themselves (process) */
    int64_t posterior; /* numbers that fin_latent_posterior writes; 0: none (process) */
    int64_t outcomes;  /* > 0: predictions are probabilities of so many outcomes */
    int64_t longest;   /* most tokens of a sequence, INT64_MAX if any (urn: balls) */
} fin_latent_shape;
FIN_API void fin_latent_get_shape(const fin_latent *latent, fin_latent_shape *shape);
FIN_API const fin_family *fin_latent_get_family(const fin_latent *latent);
FIN_API const fin_latent_settings *fin_latent_get_settings(const fin_latent *latent);

/* n sequences, a context of L tokens and Q queries each. Arrays are the caller's, any may be NULL:
 *
 *     keys (n, L, dk), values (n, L, dv)
 *     queries (n, Q, dk), answers (n, Q, dv)   drawn like keys and values, but never wrong ones
 *     truth (n, Q, w)   mean of an answer given z (w = dv), or its probabilities (w = outcomes)
 *     z (n, latent)     the matrix Z or O, the probabilities, the number of the concept, the urn */
typedef struct fin_latent_sample {
    int64_t n, L, Q;
    double *keys, *values, *queries, *answers, *truth, *z;
} fin_latent_sample;
/* Draws sequences first .. first + n - 1.
 * Queries and their answers come from streams of their own, so that they do not change with L. Two
 * families differ. The urn's answers are the balls drawn after the context, and truth is their law
 * given the context. A process is one joint draw of f at tokens and queries, at most 16384
 * together, by Cholesky; where rounding leaves their covariance indefinite, 1e-12, 1e-11, ... at
 * most 1e-8 times its mean diagonal is added to the variances: a little noise of its own at each
 * point. */
FIN_API fin_status fin_latent_draw(const fin_latent *latent, uint64_t first,
                                   const fin_latent_sample *sample, fin_error *err);
/* phi: (n, features) of n keys (families with features). */
FIN_API fin_status fin_latent_features(const fin_latent *latent, int64_t n, const double *keys,
                                       double *phi, fin_error *err);

/* ---- the sufficient statistic ---------------------------------------------------------------- */

/* Additive: a zero array is that of no tokens; tokens are added, statistics too, in any order, up
 * to rounding. concept, mean, finite: Phi'Phi, V'Phi, V'V, L; counts, urn: counts; concepts: the
 * table of (c, r) counts; sphere: V'K, L. FIN_ERR_NUMERIC if a number overflows; after accumulate
 * the statistic is then lost, after merge it is as before. */
FIN_API fin_status fin_latent_accumulate(const fin_latent *latent, int64_t L, const double *keys,
                                         const double *values, double *statistic, fin_error *err);
FIN_API fin_status fin_latent_merge(const fin_latent *latent, const double *other,
                                    double *statistic, fin_error *err);
/* Pseudo-tokens with the same statistic, at most features + dv of them however long the sequence
 * (concept, mean, finite: by QR): phi (count, features), values (count, dv), both with room for
 * features + dv rows. FIN_ERR_UNSUPPORTED elsewhere, where the statistic is itself the short form.
 * */
FIN_API fin_status fin_latent_compress(const fin_latent *latent, int64_t L, const double *keys,
                                       const double *values, int64_t *count, double *phi,
                                       double *pseudo, fin_error *err);

/* ---- posterior and prediction ---------------------------------------------------------------- */

/* The posterior of z, as numbers. concept, mean: mean (dv, D), then the covariance of a row (D, D);
 * counts: Dirichlet parameters; concepts, finite: probabilities of z; sphere: the matrix rho V'K of
 * the density exp(tr(F'O)), then the mean of O (d = 2 and 3); urn: balls left of each kind. */
FIN_API fin_status fin_latent_posterior(const fin_latent *latent, const double *statistic,
                                        double *posterior, fin_error *err);
/* At m queries: mean (m, dv) or probabilities (m, outcomes) of an answer; variance (m) of its mean
 * given z (add the noise for an answer), averaged over the dv numbers, which all have the same one
 * but for sphere and finite; or NULL; not for outcomes. From a statistic or from tokens (every
 * family; concept with fewer tokens than features goes by the tokens' Gram matrix). sphere: d = 2
 * and 3. With noise = 0 the posterior is the limit of little noise, to about 1e-8 of the largest
 * features' squares; a Gram matrix tells whether the tokens then contradict each other, and they
 * are refused (FIN_ERR_NUMERIC), where the statistic gives the best fit. */
FIN_API fin_status fin_latent_predict(const fin_latent *latent, const double *statistic, int64_t m,
                                      const double *queries, double *mean,
                                      FIN_OR_NULL double *variance, fin_error *err);
FIN_API fin_status fin_latent_predict_tokens(const fin_latent *latent, int64_t L,
                                             const double *keys, const double *values, int64_t m,
                                             const double *queries, double *mean,
                                             FIN_OR_NULL double *variance, fin_error *err);
/* concept, mean: a token at a time, by Kalman's recursion: the third way to the same posterior,
 * without a matrix to invert. posterior: as fin_latent_posterior writes it. A token that tells no
 * more than rounding is left out (noise = 0, and known from those before it). */
FIN_API fin_status fin_latent_filter(const fin_latent *latent, int64_t L, const double *keys,
                                     const double *values, double *posterior, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
