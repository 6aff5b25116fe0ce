/* slr, the paper's task: X_J ~ N(mu k*, gamma^2 I) for J uniform, the other tokens N(0, I).
 *
 * With mu = sqrt(d/2) and gamma = sqrt(1/2) every token has mean squared norm d, so that length
 * does not give the relevant one away. */
#include "task/task.h"

#include <math.h>

#define FIELDS(F, C) FIN_TASK_COMMON(F, C) FIN_TASK_SLR(F, C)
#define FIN_TABLE_STRUCT fin_task_settings
FIN_TABLE(static, slr_settings, "slr", FIELDS);

static fin_status resolve(fin_task_settings *s, fin_error *err)
{
    if (s->gamma > 0 && s->gamma < 1e-100) /* its square would vanish */
        return fini_fail(err, FIN_ERR_ARGUMENT, "slr: gamma = %g; it must be 0 or at least 1e-100",
                         s->gamma);
    if (fin_is_auto(s->mu))
        s->mu = sqrt((double)s->d / 2);
    s->snr = 0;
    return FIN_OK;
}

const fin_task_kind fini_task_slr = {
    .name = "slr",
    .summary = "one token is N(mu k*, gamma^2 I), the others N(0, I); Y is its part along v*",
    .settings = &slr_settings,
    .resolve = resolve,
};
