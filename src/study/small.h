/* What the jobs of learning share: small dense systems, solved on the spot.
 *
 * They have at most a few hundred unknowns and are solved many thousand times, so that the tiled and
 * parallel routines of the math room would spend their time on starting threads. */
#ifndef FINI_STUDY_SMALL_H
#define FINI_STUDY_SMALL_H

#include "study/job.h"

/* A = C C' in place of the lower triangle of A (n, n), row by row. False if A is not positive
 * definite, by the rule of fini_pivot_holds, or not finite. */
bool fini_small_cholesky(int64_t n, double *A);
/* x <- (C C')^-1 x. */
void fini_small_solve(int64_t n, const double *C, double *x);

#endif
