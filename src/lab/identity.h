/* What the files of the command `identity` share: one random model of a kind, looked at in several
 * ways that must agree. identity.c has the table of kinds and collects; identity_<topic>.c have
 * the kinds. */
#ifndef FINI_LAB_IDENTITY_H
#define FINI_LAB_IDENTITY_H

#include "finetti/context.h"
#include "random/streams.h"
#include "finetti/family.h"
#include "command/command.h"
#include "math/spd.h"

#define FINI_IDENTITY_FIELDS(F, C)                                                                 \
    F(int64_t, models, 50, 1, 100000, "random models")                                             \
    F(int64_t, L, 40, 2, 1000, "tokens in a context (bma, nw, density: at most)")                  \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the models")
#define FINI_IDENTITY_CONTROL_FIELDS(F, C)                                                         \
    F(double, eps, 1e-3, 1e-12, 1e3, "what is added to one number of one key")
#define FINI_IDENTITY_BLOCKS_FIELDS(F, C)                                                          \
    F(int64_t, H, 3, 1, 32, "heads, and independent blocks of the latent")                         \
    F(int64_t, D, 4, 1, 64, "features of a block")                                                 \
    F(double, noise, 0.1, 1e-6, 1e6, "variance of a value around its mean; the prior variance is 1")

typedef struct fini_identity_own {
    FINI_IDENTITY_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_identity_own;
typedef struct fini_identity_control {
    FINI_IDENTITY_CONTROL_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_identity_control;
typedef struct fini_identity_blocks {
    FINI_IDENTITY_BLOCKS_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_identity_blocks;

typedef struct fini_identity_values {
    char which[32];
    fini_identity_own own;
    fini_identity_control control; /* perturbation */
    fini_identity_blocks blocks;   /* heads */
} fini_identity_values;

/* What one model has to say. Arrays have room for the kind's `points`; numbers that a kind does not
 * have stay NaN. */
typedef struct fini_trial {
    double *x, *one, *other, *third; /* the same numbers by each route */
    double worst, worst_variance;    /* largest differences between routes, of all numbers */
    double moved;                    /* how far a token went */
    double statistic;                /* largest change of the sufficient statistic */
    double tokens;                   /* left after compression */
    double condition;                /* bound of the condition number of G prior + noise */
    double risk_one, risk_heads;     /* one head with the joint kernel; one head a block */
} fini_trial;

typedef struct fini_identity_kind {
    const char *name;
    int points; /* numbers that a model leaves for figures */
    int routes; /* 2, or 3 with `third` */
    fin_status (*run)(const fini_identity_values *values, int64_t model, fini_trial *trial,
                      fin_error *err);
} fini_identity_kind;

#define FINI_IDENTITY_RUN(name)                                                                    \
    fin_status fini_identity_##name(const fini_identity_values *values, int64_t model,             \
                                    fini_trial *trial, fin_error *err)
FINI_IDENTITY_RUN(bma);          /* identity_bayes.c */
FINI_IDENTITY_RUN(permutation);  /* identity_tokens.c */
FINI_IDENTITY_RUN(mixing);       /* " */
FINI_IDENTITY_RUN(compression);  /* " */
FINI_IDENTITY_RUN(merge);        /* " */
FINI_IDENTITY_RUN(perturbation); /* " */
FINI_IDENTITY_RUN(memory);       /* identity_attention.c */
FINI_IDENTITY_RUN(density);      /* " */
FINI_IDENTITY_RUN(nw);           /* " */
FINI_IDENTITY_RUN(heads);        /* identity_heads.c */
enum { FINI_DENSITY_POINTS = 64 };

/* The cursor of a model: what is drawn about it beside its tokens. */
void fini_identity_random(const fini_identity_values *values, int64_t model, fin_random *r);

/* ---- a context to look at (identity_context.c) ----------------------------------------------- */

typedef struct fini_context {
    fin_latent *latent;
    fin_latent_shape shape;
    int64_t L, Q;
    double *keys, *values, *queries; /* (L, dk), (L, dv), (Q, dk) */
    double *phi, *phi_q;             /* (L, D), (Q, D); NULL without features */
    double *mean, *variance;         /* (Q, dv) room for answers */
    fini_arena arena;
} fini_context;

/* The first sequence of a family: L tokens, Q queries. */
fin_status fini_context_open(fini_context *context, const char *family,
                             const fin_latent_settings *settings, uint64_t seed, int64_t L,
                             int64_t Q, fin_error *err);
void fini_context_close(fini_context *context); /* half-open ones too */
/* Settings of a family, at their defaults. */
fin_status fini_family_defaults(const char *family, fin_latent_settings *settings, fin_error *err);

/* Answers of attention to tokens (their ldv = dv) at m queries: mean (m, dv), variance (m, dv) or NULL. */
fin_status fini_attend(const fin_cross_settings *settings, const fini_tokens *tokens, int64_t m,
                       const double *queries, double *mean, double *variance, fin_error *err);
/* Attention that is the posterior of a linear concept, on features: cme, linear kernel. */
fin_cross_settings fini_concept_attention(const fin_latent_settings *settings);

/* max |a - b| into *worst, which a NaN on either side makes NaN. */
void fini_widen(const double *a, const double *b, int64_t n, double *worst);

/* A joint Gaussian of n observations and m unknowns. */
typedef struct fini_joint {
    int64_t n, m;
    const double *K, *k,
        *own; /* covariance (n, n), with the unknowns (n, m); their variances (m) */
} fini_joint;
/* Its conditioning on observations v (n, dv), written out.
 *     mean = k'K^-1 v (m, dv),  variance = own - diag(k'K^-1 k) (m), or NULL
 * By elimination with row pivots in long double: on purpose not the library's way. */
fin_status fini_condition(const fini_joint *joint, int64_t dv, const double *v, double *mean,
                          double *variance, fin_error *err);

#endif
