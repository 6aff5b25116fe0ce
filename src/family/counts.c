/* counts: tokens are categories with probabilities theta ~ Dirichlet(a), a_j = alpha (1 + j)^skew.
 * Posterior Dirichlet(a + counts), prediction (a_j + count_j) / (a_0 + L): conjugate, in closed
 * form. What all families of outcomes need to draw and to normalize is here too. */
#include "family/family.h"

#include "task/task.h"
#include "math/small.h"

#include <math.h>

#define FIELDS(F, C)                                                                               \
    FIN_LATENT_OUTCOMES(F, C)                                                                      \
    FIN_LATENT_ALPHA(F, C) FIN_LATENT_SKEW(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, counts_settings, "counts", FIELDS);

/* ---- for all families of outcomes ------------------------------------------------------------ */

void fini_cumulate(int64_t n, const double *p, double *cumulated)
{
    double sum = 0;
    int64_t last = 0; /* the last that is possible takes what rounding leaves */
    for (int64_t i = 0; i < n; i++) {
        cumulated[i] = sum += p[i];
        last = p[i] > 0 ? i : last;
    }
    for (int64_t i = last; i < n; i++)
        cumulated[i] = 1;
}

int64_t fini_category(int64_t n, const double *cumulated, double u)
{
    return fini_first_from(n - 1, cumulated, u);
}

/* ---- the family ------------------------------------------------------------------------------ */

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    int64_t outcomes = latent->settings.outcomes;
    latent->shape.dv = 1;
    latent->shape.outcomes = latent->shape.latent = outcomes;
    latent->shape.statistic = latent->shape.posterior = latent->commons = outcomes;
    return FIN_OK;
}

static void prepare(fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    for (int64_t j = 0; j < s->outcomes; j++)
        latent->common[j] = s->alpha * pow((double)(1 + j), s->skew);
}

int64_t fini_outcomes_room(const fin_latent *latent, int64_t L, int64_t m)
{
    (void)L, (void)m;
    return latent->shape.outcomes;
}

static void categories(const fin_latent *latent, const fini_sequence *s, uint32_t stream, int64_t n,
                       const double *cumulated, double *out)
{
    fin_random random;
    fin_random_open(&random, s->seed, stream + s->up, s->sample);
    for (int64_t l = 0; l < n; l++)
        out[l] =
            (double)fini_category(latent->shape.outcomes, cumulated, fin_random_uniform(&random));
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    int64_t outcomes = latent->shape.outcomes;
    fin_random random;
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample);
    fin_random_dirichlet(&random, outcomes, latent->common, s->z);
    fini_cumulate(outcomes, s->z, work);
    if (s->values)
        categories(latent, s, FINI_STREAM_FAMILY_VALUES, s->L, work, s->values);
    if (s->answers)
        categories(latent, s, FINI_STREAM_FAMILY_ANSWERS, s->Q, work, s->answers);
    for (int64_t q = 0; s->truth && q < s->Q; q++)
        for (int64_t j = 0; j < outcomes; j++)
            s->truth[q * outcomes + j] = s->z[j];
    return FIN_OK;
}

void fini_outcomes_count(const fin_latent *latent, int64_t L, const double *keys,
                         const double *values, double *statistic, double *work)
{
    (void)latent, (void)keys, (void)work;
    for (int64_t l = 0; l < L; l++)
        statistic[(int64_t)values[l]]++;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *parameters,
                            double *work, fin_error *err)
{
    (void)work, (void)err;
    for (int64_t j = 0; j < latent->shape.outcomes; j++)
        parameters[j] = latent->common[j] + statistic[j];
    return FIN_OK;
}

void fini_outcomes_answer(const fin_latent *latent, const double *weights, double total,
                          const fini_query *q)
{
    int64_t outcomes = latent->shape.outcomes;
    for (int64_t i = 0; i < q->m * outcomes; i++)
        q->mean[i] = weights[i % outcomes] / total;
}

static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err)
{
    int64_t outcomes = latent->shape.outcomes;
    double total = 0;
    posterior(latent, statistic, work, NULL, err);
    for (int64_t j = 0; j < outcomes; j++)
        total += work[j];
    if (isinf(total))
        return fini_fail(err, FIN_ERR_NUMERIC, "counts: the sum of the counts overflows");
    fini_outcomes_answer(latent, work, total, q);
    return FIN_OK;
}

/* sum_j a_j (a_0 - a_j) / (a_0 (a_0 + 1) (a_0 + L)): E Var(theta_j | counts), the mean of a beta law's variance. */
static double closed_risk(const fin_latent *latent, int64_t L)
{
    double total = 0, sum = 0;
    for (int64_t j = 0; j < latent->shape.outcomes; j++)
        total += latent->common[j];
    for (int64_t j = 0; j < latent->shape.outcomes; j++)
        sum += latent->common[j] * (total - latent->common[j]);
    return sum / (total * (total + 1) * (total + (double)L));
}

/* A Dirichlet law with parameters a: m = a / a0, and the covariance (diag(m) - m m') / (a0 + 1). */
static void project(const fin_latent *latent, const double *A, const double *a, double *mean,
                    double *variance)
{
    double total = 0, first = 0, second = 0;
    for (int64_t j = 0; j < latent->shape.outcomes; j++) {
        total += a[j];
        first += A[j] * a[j];
        second += A[j] * A[j] * a[j];
    }
    *mean = first / total;
    *variance = fmax(second / total - *mean * *mean, 0) / (total + 1);
}

int64_t fini_outcomes_mean(const fin_latent *latent, const double *posterior, double *mean)
{
    double total = 0;
    for (int64_t j = 0; mean && j < latent->shape.outcomes; j++)
        total += posterior[j];
    for (int64_t j = 0; mean && j < latent->shape.outcomes; j++)
        mean[j] = (total > 0 ? 1 / total : 0) * posterior[j];
    return latent->shape.outcomes;
}

const fin_family fini_family_counts = {
    .name = "counts",
    .summary = "tokens are categories, their probabilities Dirichlet",
    .settings = &counts_settings,
    .value_categories = true,
    .posterior_parts = "alpha outcomes",
    .resolve = resolve,
    .prepare = prepare,
    .room = fini_outcomes_room,
    .draw = draw,
    .accumulate = fini_outcomes_count,
    .posterior = posterior,
    .predict = predict,
    .closed_risk = closed_risk,
    .project = project,
    .posterior_mean = fini_outcomes_mean,
};
