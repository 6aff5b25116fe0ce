/* What follows a penalised minimum: gains (bags_relax.c), keys (bags_polish.c). */
#ifndef FINI_BAGS_RELAX_H
#define FINI_BAGS_RELAX_H

#include "train/bags.h"

/* Enough bags beside p columns for it? Fewer, and it costs more than it gains: in simulations (50
 * to 200 columns) the break-even point is between two and four bags a column. */
enum { FINI_RELAX_BAGS = 4 };
/* In place; the loss, without penalty, never grows. For numbers. */
fin_status fini_relax(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                      double *parameters, double *loss, fin_error *err);

/* For numbers: gains and, for softmax with one head and mixture, a key from the posterior location,
 * if the training bags prefer it (bags_polish.c). penalty_of: of keys, of values, where the loss is
 * minus a mean log likelihood. Other forms, classes, and bags fewer than FINI_RELAX_BAGS a column:
 * nothing changes. In place; *loss is the mean loss, without penalty. */
fin_status fini_polish(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                       const fini_phi *phi, const double *labels, const double *weights,
                       const double *penalty_of, fin_sum sum, double *parameters, double *loss,
                       fin_error *err);

#endif
