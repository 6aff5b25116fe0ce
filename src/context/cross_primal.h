/* Between the files of the primal method: cross_primal.c keeps S, T and M, cross_primal_query.c
 * answers with them, cross_primal_curve.c makes the learning curve, cross_nystrom.c the
 * landmarks. */
#ifndef FINI_CROSS_PRIMAL_H
#define FINI_CROSS_PRIMAL_H

#include "context/cross.h"

void fini_primal_add(const fin_cross *o, int64_t b, const double *F, int64_t ld, const double *V,
                     double *S, double *T);
/* S + noise I into M, to be factored. */
fini_spd fini_primal_matrix(const fin_cross *o, double noise, const double *S, double *M);
/* The factor that there is. */
static inline fini_spd fini_primal_M(const fin_cross *o)
{
    return fini_spd_of(o->features, o->M, o->D);
}

int64_t fini_primal_scratch(const fin_cross *o, int64_t m);
void fini_primal_predict(const fin_cross *o, int64_t m, const double *queries, double *mean,
                         double *variance, double *weights, double *scratch);
fin_status fini_primal_loo(const fin_cross *o, double *mean, double *variance,
                           const fin_progress *progress, fin_error *err);
fin_status fini_primal_prefix(const fin_cross *o, int64_t m, const double *queries,
                              const double *answers, double *error, double *score,
                              const fin_progress *progress, fin_error *err);
fin_status fini_primal_evidence(const fin_cross *o, double *evidence, double *gradient,
                                double *by_column, const fin_progress *progress, fin_error *err);

/* Chooses landmarks among the tokens; measures residual and moved; keeps the residual true when n
 * tokens have come that are not counted yet. */
fin_status fini_nystrom_choose(fin_cross *o, const fin_progress *progress, fin_error *err);
fin_status fini_nystrom_judge(fin_cross *o, fin_error *err);
void fini_nystrom_watch(fin_cross *o, int64_t n);

#endif
