/* theory, second part: exchangeable tokens. What attention makes of a context in the limit, how
 * fast it gets there, and what no predictor can beat. */
#ifndef FINETTI_THEORY_LATENT_H
#define FINETTI_THEORY_LATENT_H

#include "finetti/context.h"
#include "finetti/family.h"
#include "finetti/theory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Bayes risks (latent.c) ------------------------------------------------- */

/* E |truth - its posterior mean|^2 at a fresh query after L tokens, summed over a value's numbers
 * (or over outcomes): the excess over the noise. Closed form for mean, counts and urn (0);
 * otherwise a simulation over contexts in which everything that can be is integrated out (concept,
 * process: the posterior variance itself, no values drawn). concepts with `wrong` > 0: the risk of
 * an inference that does not know of the wrong ones, which is not the least. */
FIN_API fin_status fin_latent_risk(const fin_latent *latent, int64_t L,
                                   const fin_risk_settings *settings, const fin_progress *progress,
                                   fin_estimate *risk, fin_error *err);
/* Attention of this form (FIN_CROSS_...) as it suits the family: its own prior and noise (of a sphere, those of its second
 * moments), its kernel (of a process), else the linear one, and rbf for Nadaraya-Watson. So cme is the posterior mean
 * wherever that is linear in the values. */
FIN_API void fin_latent_cross(const fin_latent *latent, int form, fin_cross_settings *cross);
/* The same for attention with these settings in place of the posterior (families with keys and real
 * values; for concept and finite keys enter as their features phi). */
FIN_API fin_status fin_latent_risk_cross(const fin_latent *latent,
                                         FIN_OR_NULL const fin_cross_settings *cross, int64_t L,
                                         const fin_risk_settings *settings,
                                         const fin_progress *progress, fin_estimate *risk,
                                         fin_error *err);
/* L large: concept with identity or affine features, whatever the law of keys, and mean:
 * dv noise D / L. */
FIN_API fin_status fin_latent_risk_long(const fin_latent *latent, int64_t L, double *risk,
                                        fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
