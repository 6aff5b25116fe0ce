/* spiked, the sequel's: X_J ~ N(sqrt(snr) k*, I). slr with gamma = 1 and a mean of order one, so
 * that the location cannot be found for sure, and softmax attention is exactly the posterior. */
#include "task/task.h"

#include <math.h>

#define FIELDS(F, C) FIN_TASK_COMMON(F, C) FIN_TASK_SNR(F, C)
#define FIN_TABLE_STRUCT fin_task_settings
FIN_TABLE(static, spiked_settings, "spiked", FIELDS);

static fin_status resolve(fin_task_settings *s, fin_error *err)
{
    if (isinf(s->snr))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "spiked: snr = inf; it must be finite here (the task max takes inf)");
    s->mu = sqrt(s->snr);
    s->gamma = 1;
    return FIN_OK;
}

const fin_task_kind fini_task_spiked = {
    .name = "spiked",
    .summary = "one token is N(sqrt(snr) k*, I), the others N(0, I); Y is its part along v*",
    .settings = &spiked_settings,
    .resolve = resolve,
};
