/* Second derivatives of least squares on features, for L-BFGS (ridge.c). */
#ifndef FINI_BAGS_RIDGE_H
#define FINI_BAGS_RIDGE_H

#include "bags/bags.h"

typedef struct fini_ridge fini_ridge;

/* Is it worth its time, with so many bags of everybody? */
bool fini_ridge_helps(const fini_phi *phi, double bags);
/* phi: one token per bag, in memory of its own. n: sum of the weights. */
fin_status fini_ridge_create(fini_ridge **ridge, const fini_phi *phi, const double *weights,
                             double n, fin_sum sum, fini_cancel *cancel, fin_error *err);
void fini_ridge_destroy(fini_ridge *ridge); /* NULL is fine */
/* For a penalty, over n, and a variance of the noise. */
fin_status fini_ridge_factor(fini_ridge *ridge, double penalty, double variance,
                             fini_cancel *cancel, fin_error *err);
/* d (n), of which the first p belong to features: times the inverse. False: there is no factor. */
bool fini_ridge_solve(const fini_ridge *ridge, int64_t n, double *d);

#endif
