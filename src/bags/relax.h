/* What follows a penalised minimum: gains (relax.c), keys (polish.c). */
#ifndef FINI_BAGS_RELAX_H
#define FINI_BAGS_RELAX_H

#include "bags/bags.h"

/* Enough bags beside p columns for it? Fewer, and it costs more than it gains: in simulations (50
 * to 200 columns) the break-even point is between two and four bags a column. */
enum { FINI_RELAX_BAGS = 4 };
/* In place; the loss, without penalty, never grows. For numbers. */
fin_status fini_relax(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                      double *parameters, double *loss, fin_error *err);

/* Choices of the setting `gate`. */
enum { FINI_GATE_AUTO, FINI_GATE_FREE, FINI_GATE_GAUSSIAN };
/* After a penalised minimum of softmax or the mixture; other forms are left as they are. In place;
 * *loss is the mean loss, without penalty. penalty_of: of keys, of values, where the loss is minus
 * a mean log likelihood.
 *
 *     gains     for numbers, and at least FINI_RELAX_BAGS bags a column, whatever `gate` is
 *     keys      from the posterior location (polish.c), if there is one head. auto: where
 *               there are gains, if the training bags prefer it; free: never; gaussian: always, for
 *               classes and few bags too */
fin_status fini_polish(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                       const fini_phi *phi, const double *labels, const double *weights,
                       const double *penalty_of, int gate, fin_sum sum, double *parameters,
                       double *loss, fin_error *err);

#endif
