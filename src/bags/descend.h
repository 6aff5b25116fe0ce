/* What the files of the engine share among themselves: L-BFGS (lbfgs.c), where fits start
 * (start.c), and the way from starts to members (descend.c). */
#ifndef FINI_BAGS_DESCEND_H
#define FINI_BAGS_DESCEND_H

#include "bags/bags.h"

/* ---- L-BFGS (lbfgs.c) ---------------------------------------------------------------------- */

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

/* ---- one problem -------------------------------------------------------------------------------- */

typedef struct fini_problem {
    fini_part *part;
    const fini_phi *phi;
    const double *labels;
    const double *weights; /* (n) of bags to learn from */
    const double *held;    /* (n) of bags held out to stop early, or NULL */
    fin_sum sum;           /* never NULL */
    fini_cancel *cancel;   /* stage "fit" */
    /* sums over training bags of all processes */
    double weight, bags, tokens;
} fini_problem;

/* Fills part->member from starts to minima, for every penalty of the grid. */
fin_status fini_part_descend(fini_problem *problem, fin_error *err);
/* Are the members polished (polish.c)? Numbers, and bags enough; after fini_problem_count. */
bool fini_polished(const fini_problem *problem);
/* Penalties of a fit, strongest first; returns how many. penalty may be NULL. */
int64_t fini_penalties(const fini_problem *problem, double *penalty);

/* ---- starts (start.c) ------------------------------------------------------------------------ */

/* A view with one token per bag: its mean. Small: a copy; NULL tokens if it would not be. */
fin_status fini_phi_means(const fini_phi *phi, fini_phi *means, fini_cancel *cancel,
                          fin_error *err);
/* Parameters of the part's form from mean pooling's (values and biases): start number `start`, 0
 * with no preference for any token. variance: of the labels around mean pooling. */
void fini_start(const fini_problem *problem, int64_t start, const double *mean, double variance,
                double *x);
/* Parameters that look where the bags of the two classes reach farthest (extreme.c); *found is
 * false if there is no such place, or if there are too many bags. */
fin_status fini_extreme(const fini_problem *problem, double *x, bool *found, fin_error *err);
/* Fills weight, bags and tokens. */
fin_status fini_problem_count(fini_problem *problem, fin_error *err);

/* ---- answers (answer.c) ------------------------------------------------------------------------ */

/* What is wanted of the bags of a view; each may be NULL. In the part's own units. */
typedef struct fini_answer {
    double *mean, *spread, *within; /* as fini_part_predict */
    const double *labels;           /* for given */
    fin_locations to;               /* as fini_part_locate */
} fini_answer;
fin_status fini_part_answer(const fini_part *part, const fini_phi *phi, const fini_answer *answer,
                            fini_cancel *cancel, fin_error *err);

#endif
