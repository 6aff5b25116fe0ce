/* Private face of the families of exchangeable tokens: the row of their table, the object, and what
 * several families share.
 *
 * A family is one file, <name>.c, with one row. The row's functions allocate nothing: the
 * public calls (draw.c, infer.c) and the simulations of the theory module check the
 * arguments, take memory once and hand out `work`, so that a million short sequences cost no
 * million allocations. */
#ifndef FINI_FAMILY_H
#define FINI_FAMILY_H

#include "base/base.h"
#include "finetti/family.h"
#include "math/spd.h"
#include "random/streams.h"

#define FINI_FEATURES_MOST INT64_C(16384)   /* a statistic of 2 GB */
#define FINI_POINTS_MOST INT64_C(16384)     /* tokens and queries of a process: a matrix of 2 GB */
#define FINI_COMMON_MOST (INT64_C(1) << 27) /* numbers in the tables of all concepts: 1 GB */

/* One sequence to draw. values, answers and truth may be NULL; keys is there if values are, queries
 * if answers or truth are, z if the family has one. */
typedef struct fini_sequence {
    uint64_t seed, sample;
    uint32_t up; /* added to the streams: 0 or FINI_STREAMS_UP */
    int64_t L, Q;
    double *keys, *values, *queries, *answers, *truth, *z;
} fini_sequence;

/* What is asked, and where the answers go. variance may be NULL. */
typedef struct fini_query {
    int64_t m;
    const double *keys; /* (m, dk) */
    double *mean, *variance;
} fini_query;

struct fin_family {
    const char *name, *summary;
    const fin_settings *settings;
    bool linear;          /* v = Z phi(k) + noise: statistic and compress are those of gauss.c */
    bool latent_gaussian; /* and Z is Gaussian, so that there is a filter */
    bool finite;          /* z is one of settings.concepts: the posterior is their probabilities */
    bool joint;           /* tokens and queries are one draw */
    bool by_keys; /* the posterior variance does not depend on the values: its mean is the risk */
    bool covariance;   /* attention's kernel is that of the settings, not the features' product */
    const char *limit; /* where longest is finite: tokens and queries are at most its ... */
    double cost;       /* of a prediction beyond that of its tokens, in tokens of a cheap family */
    /* What z and its posterior are made of, for whoever names the parts: "mean dv features; covariance features
     * features", sizes being members of fin_latent_shape. z NULL: a row of numbers; posterior NULL: there is none. */
    const char *z_parts, *posterior_parts;
    /* Judges the settings beyond their ranges; fills shape and `common`, how many numbers all
     * sequences share. */
    fin_status (*resolve)(fin_latent *latent, fin_error *err);
    void (*prepare)(fin_latent *latent); /* fills them; NULL if there are none */
    /* Doubles of work that any of the functions below takes with L tokens and m queries, but for
     * predict_tokens, and for draw of the linear families, which takes D. */
    int64_t (*room)(const fin_latent *latent, int64_t L, int64_t m);
    fin_status (*draw)(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err);
    /* Tokens and statistics come here checked: finite, categories whole and in range. */
    void (*accumulate)(const fin_latent *latent, int64_t L, const double *keys,
                       const double *values, double *statistic, double *work);
    fin_status (*posterior)(const fin_latent *latent, const double *statistic, double *posterior,
                            double *work, fin_error *err);
    fin_status (*predict)(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err);
    /* Straight from tokens, and its doubles of work; NULL: through the statistic. */
    fin_status (*predict_tokens)(const fin_latent *latent, int64_t L, const double *keys,
                                 const double *values, const fini_query *q, double *work,
                                 fin_error *err);
    int64_t (*room_tokens)(const fin_latent *latent, int64_t L, int64_t m);
    bool key_categories, value_categories; /* whole numbers, not real ones */
    /* What else is known; NULL: it is not. */
    double (*closed_risk)(const fin_latent *latent, int64_t L); /* the Bayes risk after L tokens */
    bool (*long_risk)(const fin_latent *latent); /* is it dv noise D / L in the long run? */
    /* <A, z> given a posterior, for A as long as z: its mean and variance. Labels may be made of it. */
    void (*project)(const fin_latent *latent, const double *A, const double *posterior,
                    double *mean, double *variance);
    /* The mean of z: how many numbers, written if `mean` is not NULL. NULL here: the posterior is it. */
    int64_t (*posterior_mean)(const fin_latent *latent, const double *posterior, double *mean);
    /* Variance of each of an answer's numbers, given its mean and the variance of that given z. NULL here: plus
     * the noise. */
    double (*answer_variance)(const fin_latent *latent, const double *mean, double variance);
    /* Prior and noise of a linear concept with the same second moments. NULL here: those of the settings. */
    void (*second_moments)(const fin_latent *latent, double *prior, double *noise);
};

struct fin_latent {
    const fin_family *family;
    fin_latent_settings settings;
    fin_latent_shape shape;
    uint64_t seed;
    bool silent; /* there is a posterior, but no prediction (resolve says so) */
    int64_t commons;
    double *common; /* (commons): what all sequences share, laid out by the family */
};

/* ---- sequences without allocation (draw.c, infer.c) ---------------------------- */

/* Are n sequences of L tokens and Q queries possible, and do their sizes fit an int64_t? */
fin_status fini_latent_check_sizes(const fin_latent *latent, int64_t n, int64_t L, int64_t Q,
                                   fin_error *err);
/* The same for L tokens, and whether their numbers are what the family knows. */
fin_status fini_latent_check_tokens(const fin_latent *latent, int64_t L, const double *keys,
                                    const double *values, fin_error *err);
/* As fin_latent_draw, from another seed and other streams. */
fin_status fini_latent_draw_many(const fin_latent *latent, uint64_t seed, uint32_t up,
                                 uint64_t first, int64_t n, const fini_sequence *arrays,
                                 fin_error *err);
/* Doubles of work of the next two; of fini_latent_predict_one alone. */
int64_t fini_latent_room(const fin_latent *latent, int64_t L, int64_t m);
int64_t fini_latent_predict_room(const fin_latent *latent, int64_t L, int64_t m);
fin_status fini_latent_draw_one(const fin_latent *latent, const fini_sequence *s, double *work,
                                fin_error *err);
fin_status fini_latent_predict_one(const fin_latent *latent, int64_t L, const double *keys,
                                   const double *values, const fini_query *q, double *work,
                                   fin_error *err);
/* Numbers of truth and of a prediction for one query: dv or outcomes. */
int64_t fini_latent_width(const fin_latent *latent);

/* "concept, mean": the families that can do something; NULL: all. */
const char *fini_families_that(bool (*can)(const fin_family *family), char *list, size_t size);

/* ---- parts of rows that several families have ------------------------------------------------ */

void fini_gauss_project(const fin_latent *latent, const double *A, const double *posterior,
                        double *mean, double *variance);
int64_t fini_gauss_mean(const fin_latent *latent, const double *posterior, double *mean);
int64_t fini_outcomes_mean(const fin_latent *latent, const double *posterior, double *mean);

/* ---- keys and their features (keys.c) ------------------------------------------------- */

/* dk, D, and how many numbers features have in common. */
fin_status fini_features_resolve(fin_latent *latent, fin_error *err);
void fini_features_prepare(const fin_latent *latent, double *common);
void fini_keys_draw(const fin_latent *latent, const fini_sequence *s);
/* phi of n keys into rows of `ld` numbers. */
void fini_features(const fin_latent *latent, int64_t n, const double *keys, double *phi,
                   int64_t ld);
/* out (D, D): E phi phi' under the law of keys, where it is known; false where it is not. */
bool fini_features_moment(const fin_latent *latent, double *out);

/* ---- Gaussian machinery: concept, mean, finite (gauss.c, dual.c) --------------- */

/* Where the parts of a statistic begin. */
typedef struct fini_moments_at {
    int64_t S, T, VV, L; /* Phi'Phi (D, D), V'Phi (dv, D), V'V (dv, dv), tokens */
} fini_moments_at;
fini_moments_at fini_gauss_parts(const fin_latent *latent);
void fini_gauss_shape(fin_latent *latent); /* all but latent and posterior */
int64_t fini_gauss_room(const fin_latent *latent, int64_t L, int64_t m);
void fini_gauss_accumulate(const fin_latent *latent, int64_t L, const double *keys,
                           const double *values, double *statistic, double *work);
fin_status fini_gauss_posterior(const fin_latent *latent, const double *statistic,
                                double *posterior, double *work, fin_error *err);
fin_status fini_gauss_predict(const fin_latent *latent, const double *statistic,
                              const fini_query *q, double *work, fin_error *err);
/* Lower Cholesky factor of S + lam I into C (D, D); *ridge: lam, or what took its place where
 * rounding leaves no positive definite matrix (see gauss.c). */
fin_status fini_gauss_factor(const fin_latent *latent, const double *S, double *C, double *ridge,
                             fin_error *err);
/* Values and truth of a sequence given dv x D numbers Z; work: D. */
void fini_gauss_values(const fin_latent *latent, const fini_sequence *s, const double *Z,
                       double *work);
/* mean (n, dv) = P'X and norm2 (n) = |P_j|^2, for P (rows, n) and X (rows, dv). */
void fini_gauss_means(int64_t rows, int64_t dv, const double *X, int64_t n, const double *P,
                      double *mean, double *norm2);
/* In the space of tokens: the prior times a covariance of keys, and noise (dual.c). For a linear
 * concept the keys are features and the covariance is their product. */
typedef struct fini_process {
    fin_covariance covariance;
    double prior, noise;
    fini_tokens tokens;
} fini_process;
/* Lower Cholesky factor of prior k(a_i, a_j) + (noise + jitter) I, into C (L, L). */
fin_status fini_process_factor(const fini_process *p, double *C, double *jitter, fin_error *err);
int64_t fini_process_room(int64_t L, int64_t dv, int64_t m);
/* work: fini_process_room. */
fin_status fini_process_predict(const fini_process *p, const fini_query *q, double *work,
                                fin_error *err);

/* ---- outcomes: counts, concepts, urn (counts.c) --------------------------------------- */

/* The first entry of a cumulated law that reaches u. */
int64_t fini_category(int64_t n, const double *cumulated, double u);
void fini_cumulate(int64_t n, const double *p, double *cumulated);
/* The same law for every query: `weights` over their sum. */
void fini_outcomes_answer(const fin_latent *latent, const double *weights, double total,
                          const fini_query *q);
/* Room and statistic of tokens that are categories: how often each came. */
int64_t fini_outcomes_room(const fin_latent *latent, int64_t L, int64_t m);
void fini_outcomes_count(const fin_latent *latent, int64_t L, const double *keys,
                         const double *values, double *statistic, double *work);

/* ---- rotations (rotation.c) ----------------------------------------------------------- */

/* Mean of O under the density exp(tr(F'O)) on the rotations of R^d, d = 2 or 3. */
fin_status fini_rotation_mean(int64_t d, const double *F, double *mean, fin_error *err);

#endif
