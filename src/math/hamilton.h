/* Hamiltonian Monte Carlo (hamilton.c): draws from exp(-energy), from its values and slopes. */
#ifndef FINI_HAMILTON_H
#define FINI_HAMILTON_H

#include "finetti/random.h"
#include "math/lbfgs.h"

/* Masses of a block of p coordinates: about the second derivatives of the energy, c S + precision I. */
typedef struct fini_mass {
    int64_t p;
    bool full;       /* S is (p, p), its lower triangle; else (p), a diagonal */
    const double *S; /* borrowed */
    double c, precision;
    double *C; /* C C' = c S + precision I; like S */
} fini_mass;

enum { FINI_HAMILTON_BLOCKS = 2 };
typedef struct fini_hamilton {
    int64_t n; /* coordinates: rows of the first block, of the second, then single ones */
    int64_t rows[FINI_HAMILTON_BLOCKS];
    fini_mass mass[FINI_HAMILTON_BLOCKS];
    int64_t singles; /* that move; others behind them stay */
    double *single;  /* (n less those of blocks) roots of their masses */
    fini_function energy;
    void *user;
    fin_random random;
    double length;                      /* of a leap, where masses are 1 */
    double value;                       /* energy at x */
    double *x, *slope, *try, *momentum; /* (n) */
    double *room;                       /* (p) */
    fini_arena arena;
} fini_hamilton;

/* n, rows, masses' p, full and S are set. x is 0. */
fin_status fini_hamilton_open(fini_hamilton *o, fin_error *err);
void fini_hamilton_close(fini_hamilton *o);
/* Masses for c S + precision I, unless the present ones are near: they decide how fast it goes, not where to. */
fin_status fini_hamilton_weigh(fini_hamilton *o, int block, double c, double precision,
                               fin_error *err);
/* 1/2 log |c S + precision I| of the present masses. */
double fini_hamilton_logdet(const fini_hamilton *o, int block);
/* One draw: so many leaps, which are taken back with probability 1 - *accept. learn: the length of
 * leaps is adapted. */
fin_status fini_hamilton_step(fini_hamilton *o, int leaps, bool learn, double *accept,
                              fin_error *err);

#endif
