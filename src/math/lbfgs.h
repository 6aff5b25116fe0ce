/* L-BFGS: the minimum of a smooth function from its values and gradients (lbfgs.c). It can stop and
 * go on, and takes the same steps, to the last bit, in every process that sees the same values. */
#ifndef FINI_LBFGS_H
#define FINI_LBFGS_H

#include "base/base.h"

/* What is minimised: value and gradient (n) at x. */
typedef fin_status (*fini_function)(void *user, const double *x, double *value, double *gradient,
                                    fin_error *err);
/* After each iteration; true stops it there. */
typedef bool (*fini_watch)(void *user, int64_t iteration, const double *x, double value);

/* d (n) times an inverse of the second derivatives, about; false if there is none. */
typedef bool (*fini_newton)(void *user, double *d);

enum { FINI_LBFGS_MEMORY = 10, FINI_LBFGS_PAST = 10 };
typedef struct fini_lbfgs {
    int64_t n;
    int64_t iterations; /* at most */
    double gradient;    /* stop when the gradient's length is below that, */
    double relative;    /* or below that times its length at the start */
    double decrease;    /* stop when ten iterations gained less than that, relative to the value */
    double noise;       /* the values' rounding; 0: 1e-14 of the value */
    fini_function function;
    fini_watch watch;   /* may be NULL */
    fini_newton newton; /* may be NULL: a multiple of one */
    void *user;
    /* what came out */
    double value;
    int64_t done, evaluations;
    bool finished; /* false: it ran out of iterations */
    fini_arena arena;
    double *g, *d, *try, *try_g, *S, *Y, *rho, *alpha; /* work */
    /* Where it is: with these, g, S, Y, rho, value and done, it goes on as if it had not stopped. */
    int64_t kept, newest; /* pairs in S and Y (FINI_LBFGS_MEMORY, n); place of the newest */
    double enough, past[FINI_LBFGS_PAST];
} fini_lbfgs;

fin_status fini_lbfgs_create(fini_lbfgs *o, int64_t n, fin_error *err);
fin_status fini_lbfgs_run(fini_lbfgs *o, double *x, fin_error *err); /* x: start, then the end */
/* The same iteration by iteration: begin, then next until *more is false (it has arrived; `watch`
 * has stopped it) or the caller has enough. After a failure it is where it was before. */
fin_status fini_lbfgs_begin(fini_lbfgs *o, const double *x, fin_error *err);
fin_status fini_lbfgs_next(fini_lbfgs *o, double *x, bool *more, fin_error *err);
void fini_lbfgs_close(fini_lbfgs *o);

#endif
