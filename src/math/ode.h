/* Stiff systems y' = f(s, y) of a few equations, with an error that is kept below a bound. */
#ifndef FINI_ODE_H
#define FINI_ODE_H

#include <stdbool.h>

enum { FINI_ODE_MOST = 9, FINI_ODE_STAGES = 3 };

/* 0; 1: no slope here, perhaps a shorter step does better; -1: give up. */
typedef int fini_slope(double s, const double *y, double *slope, void *user);

typedef enum fini_ode_end {
    FINI_ODE_DONE,
    FINI_ODE_STOPPED, /* f gave up */
    FINI_ODE_STUCK    /* no step is short enough */
} fini_ode_end;

typedef struct fini_ode {
    int n;
    double relative, absolute; /* error of a step in each y: absolute + relative |y| */
    fini_slope *slope;
    void *user;
    /* The rest is written by the calls below. */
    double s, y[FINI_ODE_MOST];          /* where it stands */
    double before, start[FINI_ODE_MOST]; /* where the last step began: s, y */
    double bend
        [FINI_ODE_STAGES]
        [FINI_ODE_MOST]; /* the last step is y + sum_j bend[j] x^(j+1), x = (s - before) / step */
    double at[FINI_ODE_MOST];     /* slope at s */
    double h, last_h, last_error; /* the next step, if nothing is in its way; of the last one */
    double J[FINI_ODE_MOST][FINI_ODE_MOST];
    bool has_slope, has_J, has_bend;
    long steps, calls; /* counted, for whoever wants to know */
} fini_ode;

/* Begins at (s, y), whatever was before. n, the tolerances, slope and user are set by the caller. */
void fini_ode_begin(fini_ode *o, double s, const double *y);

/* One step, not beyond `limit` > s. */
fini_ode_end fini_ode_step(fini_ode *o, double limit);

/* y at s, which lies in the last step. */
void fini_ode_at(const fini_ode *o, double s, double *y);

#endif
