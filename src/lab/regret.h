/* What the two files of the command `regret` share: regret_play.c goes through sequences, regret.c has
 * the settings and makes numbers of the sums. */
#ifndef FINI_LAB_REGRET_H
#define FINI_LAB_REGRET_H

#include "finetti/family.h"
#include "command/command.h"

#define FINI_REGRET_FIELDS(F, C)                                                                   \
    F(int64_t, T, 200, 8, 100000, "tokens in a sequence")                                          \
    F(int64_t, sequences, 200, 10, 1000000, "sequences")                                           \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of family and sequences")

typedef struct fini_regret_own {
    FINI_REGRET_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_regret_own;

typedef struct fini_regret_values {
    char family[32];
    fini_regret_own own;
    fin_latent_settings latent;
} fini_regret_values;

enum { FINI_REGRET_TIMES = 96, FINI_REGRET_RACE = 256 };

typedef struct fini_regret {
    const fini_regret_values *v;
    const fin_latent *latent;
    fin_latent_shape shape;
    int64_t times, at[FINI_REGRET_TIMES];  /* when sums are kept */
    int64_t race;                          /* tokens of the race, and the start */
    double *queries, *answers, *truth, *z; /* one sequence: (T, dk), (T, dv), (T, width) */
    double *statistic, *posterior, *guess;
    double *phi, *S, *factor;        /* concept: (T, D), (D, D), (D, D) */
    double *sums, *known;            /* (times, sequences) regret and information */
    double *rate, *divergence;       /* (sequences) */
    double *tables, *nearest;        /* concepts: (Z, C, R), least KL of each (Z) */
    double *race_true, *race_others; /* (race), (Z - 1, race) */
    double largest;
    int64_t violations;
    fini_arena arena;
} fini_regret;

/* Are predictions probabilities (concepts), or Gaussian (concept)? */
static inline bool fini_regret_counts(const fini_regret *w)
{
    return w->shape.outcomes > 0;
}

/* Memory, times and, for concepts, tables and divergences. */
fin_status fini_regret_open(fini_regret *w, const fini_regret_values *v, const fin_latent *latent,
                            fin_error *err);
void fini_regret_close(fini_regret *w); /* half-open ones too */
/* Draws sequence i and keeps its sums. */
fin_status fini_regret_sequence(fini_regret *w, int64_t i, fin_error *err);

#endif
