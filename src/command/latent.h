/* latent: what its two files share. */
#ifndef FINI_COMMAND_LATENT_H
#define FINI_COMMAND_LATENT_H

#include "command/command.h"
#include "finetti/theory_latent.h"

#define FINI_LATENT_FIELDS(F, C) F(int64_t, L, 10, 0, INT64_C(1) << 20, "tokens in a context")
#define FINI_LATENT_BEST_FIELDS(F, C)                                                              \
    F(double, temperature, FIN_AUTO, 1e-100, 1e100,                                                \
      "softmax: scores are q.k / temperature; auto = the best one for this L, by search")

typedef struct fini_latent_own {
    FINI_LATENT_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_latent_own;

typedef struct fini_latent_best {
    FINI_LATENT_BEST_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_latent_best;

typedef struct fini_latent_values {
    char family[32], show[128];
    fini_latent_own own;
    fini_latent_best best;
    fin_latent_settings latent;
    fin_cross_settings cross;
    fin_risk_settings risk;
} fini_latent_values;

/* The risk of cme, softmax or nw (FIN_CROSS_...), set as it suits the family. */
fin_status fini_latent_form(const fini_latent_values *v, const fin_latent *latent, int form,
                            fin_result *result, const fin_progress *progress, fin_error *err);

#endif
