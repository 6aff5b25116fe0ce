/* urn: balls drawn without replacement from an urn whose composition is known. Exchangeable, but
 * only N balls long, so that no latent variable makes the draws independent (Diaconis and Freedman
 * 1980): what the context tells is what is left. */
#include "family/family.h"

#include <math.h>

#define FIELDS(F, C) FIN_LATENT_URN(F, C) FIN_LATENT_OUTCOMES(F, C) FIN_LATENT_SKEW(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, urn_settings, "urn", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    int64_t outcomes = latent->settings.outcomes;
    latent->shape.dv = 1;
    latent->shape.outcomes = latent->shape.latent = outcomes;
    latent->shape.statistic = latent->shape.posterior = latent->commons = outcomes;
    latent->shape.longest = latent->settings.balls;
    return FIN_OK;
}

/* Kind j gets the balls between the cumulated shares before and after it, rounded: whole numbers
 * that add up to N, each less than one off. */
static void prepare(fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    double total = 0, sum = 0, before = 0;
    for (int64_t j = 0; j < s->outcomes; j++)
        total += pow((double)(1 + j), s->skew);
    for (int64_t j = 0; j < s->outcomes; j++) {
        sum += pow((double)(1 + j), s->skew);
        double after =
            j + 1 < s->outcomes ? floor((double)s->balls * (sum / total) + 0.5) : (double)s->balls;
        latent->common[j] = after - before;
        before = after;
    }
}

static double draw_ball(int64_t outcomes, fin_random *random, double *left, int64_t total)
{
    int64_t ball = fin_random_below(random, total), kind = 0;
    while (kind + 1 < outcomes && (double)ball >= left[kind])
        ball -= (int64_t)left[kind++];
    left[kind]--;
    return (double)kind;
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    int64_t outcomes = latent->shape.outcomes, total = latent->settings.balls;
    fin_random random;
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_VALUES + s->up, s->sample);
    for (int64_t j = 0; j < outcomes; j++)
        s->z[j] = work[j] = latent->common[j];
    for (int64_t l = 0; l < s->L; l++, total--) {
        double kind = draw_ball(outcomes, &random, work, total);
        if (s->values)
            s->values[l] = kind;
    }
    for (int64_t q = 0; s->truth && q < s->Q; q++)
        for (int64_t j = 0; j < outcomes; j++)
            s->truth[q * outcomes + j] = work[j] / (double)total;
    for (int64_t q = 0; s->answers && q < s->Q; q++, total--)
        s->answers[q] = draw_ball(outcomes, &random, work, total);
    return FIN_OK;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *left,
                            double *work, fin_error *err)
{
    (void)work;
    for (int64_t j = 0; j < latent->shape.outcomes; j++) {
        left[j] = latent->common[j] - statistic[j];
        if (left[j] < 0)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "urn: %g balls of kind %lld were drawn, of %g that there are",
                             statistic[j], (long long)j, latent->common[j]);
    }
    return FIN_OK;
}

static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err)
{
    int64_t outcomes = latent->shape.outcomes;
    double total = 0;
    FINI_TRY(posterior(latent, statistic, work, NULL, err));
    for (int64_t j = 0; j < outcomes; j++)
        total += work[j];
    if (q->m > 0 && total < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "urn: all %lld balls are drawn, so that there is no next one",
                         (long long)latent->settings.balls);
    fini_outcomes_answer(latent, work, total, q);
    return FIN_OK;
}

/* Its truth is the law given the context, so that nothing is left to err about. */
static double closed_risk(const fin_latent *latent, int64_t L)
{
    (void)latent, (void)L;
    return 0;
}

const fin_family fini_family_urn = {
    .name = "urn",
    .summary = "balls drawn without replacement: exchangeable, but only finitely many",
    .settings = &urn_settings,
    .value_categories = true,
    .limit = "balls",
    .posterior_parts = "left outcomes",
    .resolve = resolve,
    .prepare = prepare,
    .room = fini_outcomes_room,
    .draw = draw,
    .accumulate = fini_outcomes_count,
    .posterior = posterior,
    .predict = predict,
    .closed_risk = closed_risk,
    .posterior_mean = fini_outcomes_mean,
};
