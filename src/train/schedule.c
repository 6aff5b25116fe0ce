/* lam and alpha of a step, and the steps that are logged. */
#include "train/train.h"
#include "math/small.h"

#include <math.h>

/* The value that holds at a step: the last one that begins there or before. */
static double piece(int64_t count, const int64_t *from, const double *value, int64_t step)
{
    int64_t next = fini_first_from_i64(count, from, step + 1);
    return value[next ? next - 1 : 0];
}

double fini_lam_at(const fin_train *t, int64_t step)
{
    double lam =
        t->lam_count ? piece(t->lam_count, t->lam_step, t->lam_value, step) : t->form_settings.lam;
    return lam / (1 + t->settings.decay * (double)step);
}

double fini_alpha_at(const fin_train *t, int64_t step)
{
    return t->alpha_count ? piece(t->alpha_count, t->alpha_step, t->alpha_value, step)
                          : t->settings.alpha;
}

fin_status fini_schedule_check(const char *name, const fin_schedule *s, double lowest,
                               double highest, fin_error *err)
{
    if (s->count < 0 || s->count > 1 << 20)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the schedule of %s has %lld pieces; it must have 0 to %d", name,
                         (long long)s->count, 1 << 20);
    for (int64_t i = 0; i < s->count; i++) {
        if (i == 0 ? s->step[0] != 0 : s->step[i] <= s->step[i - 1])
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "the schedule of %s has a piece from step %lld on; steps must begin "
                             "with 0 and ascend",
                             name, (long long)s->step[i]);
        if (!(s->value[i] >= lowest && s->value[i] <= highest))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "the schedule of %s has the value %g; it must be from %g to %g", name,
                             s->value[i], lowest, highest);
    }
    return FIN_OK;
}

/* Log-spaced: 0 and the whole numbers nearest to 10^(i/decade), without repetition. */
static int64_t next_by_decade(int64_t decade, int64_t step)
{
    if (step == 0)
        return 1;
    double i = floor(log10((double)step) * (double)decade);
    int64_t next = step;
    while (next <= step)
        next = llround(pow(10, ++i / (double)decade));
    return next;
}

int64_t fini_next_logged(const fin_train_settings *s, int64_t step)
{
    int64_t next = s->log_decade > 0 ? next_by_decade(s->log_decade, step)
                                     : (step / s->log_every + 1) * s->log_every;
    return next < s->steps ? next : s->steps;
}

int64_t fini_logged_count(const fin_train_settings *s)
{
    if (s->log_decade == 0)
        return 1 + s->steps / s->log_every + (s->steps % s->log_every != 0);
    int64_t count = 1;
    for (int64_t step = 0; step < s->steps; step = fini_next_logged(s, step))
        count++;
    return count;
}
