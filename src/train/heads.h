/* Online SGD of a sum of erf heads on several pairs (theory/heads.h): every k_h and v_h on its sphere,
 *
 *     k <- normalise(k - alpha (I - k k^T) g_k),   g of the mean squared error of `batch` fresh samples,
 *
 * lam_t = lam / (1 + decay t), from step `until` on constant. In law, at a cost that does not depend on d
 * (kernel/heads_body.h), or with vectors and tokens in R^d. Run r is a function of the plan and r. */
#ifndef FINI_TRAIN_HEADS_H
#define FINI_TRAIN_HEADS_H

#include "theory/heads.h"

typedef struct fini_heads_plan {
    fini_heads_model model;
    double lam, decay, alpha;
    int64_t until, batch, runs, seed;
    bool ambient;
} fini_heads_plan;

typedef struct fini_heads fini_heads;

/* Do they fit together, and into memory? */
fin_status fini_heads_check(const fini_heads_plan *plan, fin_error *err);
/* All runs at step 0, from vectors that are uniform on the sphere. */
fin_status fini_heads_create(fini_heads **out, const fini_heads_plan *plan, fin_error *err);
void fini_heads_destroy(fini_heads *o); /* NULL is fine */
/* Takes all runs from step `from`, where they are, to step `to`. `steps`: of the whole, for progress. When
 * cancelled the runs are lost. */
fin_status fini_heads_advance(fini_heads *o, int64_t from, int64_t to, int64_t steps,
                              const fin_progress *progress, fin_error *err);
/* The products of a run's vectors, FINI_HEADS_ROWS(H, P) of them; not finite if it has diverged. */
void fini_heads_get(const fini_heads *o, int64_t run, double *gram);
double fini_heads_lam(const fini_heads_plan *plan, int64_t step);

/* One sequence in R^d before all heads. */
typedef struct fini_heads_sequence {
    int64_t H, L, d;
    double lam, y;
    const double *X; /* (L, d) */
    const double
        *kv; /* (2H, d padded to a multiple of FINI_LANES_F64 with zeros): k_1, v_1, k_2, ... */
} fini_heads_sequence;
/* f - y; adds scale (f - y) df/dkv to g, which is like kv. room: 4 H L doubles. */
double fini_heads_error(const fini_heads_sequence *s, double scale, double *g, double *room);

#endif
