/* max, the sequel's: all tokens are N(0, I) and the relevant one is drawn with probability
 * softmax(snr * X.k*), or is the argmax when snr is infinite. m of them: without replacement. */
#include "task/task.h"

#include <math.h>

#define FIELDS(F, C) FIN_TASK_COMMON(F, C) FIN_TASK_SNR(F, C)
#define FIN_TABLE_STRUCT fin_task_settings
FIN_TABLE(static, max_settings, "max", FIELDS);

static fin_status resolve(fin_task_settings *s, fin_error *err)
{
    if (s->snr > 1e100 && !isinf(s->snr))
        return fini_fail(err, FIN_ERR_ARGUMENT, "max: snr = %g; it must be at most 1e100, or inf",
                         s->snr);
    s->mu = 0;
    s->gamma = 1;
    return FIN_OK;
}

static double lam(const fin_task_settings *s)
{
    return s->snr;
}

static double odds(const fin_task_settings *s, double chi_star)
{
    return isinf(s->snr) ? chi_star : s->snr * chi_star;
}

const fin_task_kind fini_task_max = {
    .name = "max",
    .summary =
        "tokens N(0, I); the relevant one is drawn by softmax(snr X.k*), or argmax for snr = inf",
    .settings = &max_settings,
    .resolve = resolve,
    .odds = odds,
    .lam = lam,
};
