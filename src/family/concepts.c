/* concepts: z is one of finitely many tables P_z(r | c), equally likely; a token is a covariate c,
 * uniform, and a response r. Responses of the context may be wrong: replaced by uniform ones, which
 * inference does not know. The posterior is softmax attention over a memory of concepts, exactly:
 * the query is the table N(c, r) of counts, the keys are log P_z,
 *
 *     p(z | tokens) = softmax_z( sum_{c,r} N(c, r) log P_z(r | c) ).
 *
 * Tables have independent rows Dirichlet(alpha); a probability that underflows to 0 is a 0: its
 * concept is ruled out by one such token. */
#include "family/family.h"
#include "math/small.h"

#include <math.h>

#define FIELDS(F, C)                                                                               \
    FIN_LATENT_CONCEPTS(F, C)                                                                      \
    FIN_LATENT_COVARIATES(F, C) FIN_LATENT_OUTCOMES(F, C) FIN_LATENT_ALPHA(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, concepts_settings, "concepts", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    const fin_latent_settings *s = &latent->settings;
    latent->shape.dk = latent->shape.dv = latent->shape.latent = 1;
    latent->shape.outcomes = s->outcomes;
    latent->shape.statistic = s->covariates * s->outcomes;
    latent->shape.posterior = s->concepts;
    latent->commons = 2 * s->concepts * s->covariates * s->outcomes;
    return FIN_OK;
}

/* common: P (concepts, covariates, outcomes), then its logarithms. */
static const double *table(const fin_latent *latent, int64_t z)
{
    return latent->common + z * latent->shape.statistic;
}

static const double *logs(const fin_latent *latent, int64_t z)
{
    return latent->common + (latent->settings.concepts + z) * latent->shape.statistic;
}

static void prepare(fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    int64_t half = latent->commons / 2;
    for (int64_t row = 0; row < s->concepts * s->covariates; row++) {
        double *p = latent->common + row * s->outcomes;
        fin_random random;
        fin_random_open(&random, latent->seed, FINI_STREAM_FAMILY_COMMON, (uint64_t)row);
        for (int64_t r = 0; r < s->outcomes; r++)
            p[r] = s->alpha;
        fin_random_dirichlet(&random, s->outcomes, p, p);
    }
    for (int64_t i = 0; i < half; i++)
        latent->common[half + i] = log(latent->common[i]);
}

static int64_t room(const fin_latent *latent, int64_t L, int64_t m)
{
    (void)L, (void)m;
    int64_t cumulated = latent->shape.statistic, concepts = latent->settings.concepts;
    return cumulated > concepts ? cumulated : concepts;
}

/* Covariates and responses; cumulated: (covariates, outcomes). */
static void covariates(const fin_latent *latent, const fini_sequence *s, uint32_t stream, int64_t n,
                       double *out)
{
    fin_random random;
    fin_random_open(&random, s->seed, stream + s->up, s->sample);
    for (int64_t l = 0; l < n; l++)
        out[l] = (double)fin_random_below(&random, latent->settings.covariates);
}

static void responses(const fin_latent *latent, const fini_sequence *s, uint32_t stream, int64_t n,
                      const double *keys, const double *cumulated, double *out)
{
    int64_t outcomes = latent->shape.outcomes;
    fin_random random;
    fin_random_open(&random, s->seed, stream + s->up, s->sample);
    for (int64_t l = 0; l < n; l++)
        out[l] = (double)fini_category(outcomes, cumulated + (int64_t)keys[l] * outcomes,
                                       fin_random_uniform(&random));
}

/* From a stream of its own, so that the other responses are the same with and without. */
static void spoil(const fin_latent *latent, const fini_sequence *s)
{
    fin_random random;
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_WRONG + s->up, s->sample);
    for (int64_t l = 0; l < s->L; l++) {
        double u = fin_random_uniform(&random), v = fin_random_uniform(&random);
        if (u < latent->settings.wrong)
            s->values[l] = floor(v * (double)latent->shape.outcomes);
    }
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    int64_t outcomes = latent->shape.outcomes;
    fin_random random;
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample);
    int64_t z = fin_random_below(&random, latent->settings.concepts);
    const double *P = table(latent, z);
    s->z[0] = (double)z;
    for (int64_t c = 0; c < latent->settings.covariates; c++)
        fini_cumulate(outcomes, P + c * outcomes, work + c * outcomes);
    if (s->keys)
        covariates(latent, s, FINI_STREAM_FAMILY_KEYS, s->L, s->keys);
    if (s->queries)
        covariates(latent, s, FINI_STREAM_FAMILY_QUERIES, s->Q, s->queries);
    if (s->values) {
        responses(latent, s, FINI_STREAM_FAMILY_VALUES, s->L, s->keys, work, s->values);
        spoil(latent, s);
    }
    if (s->answers)
        responses(latent, s, FINI_STREAM_FAMILY_ANSWERS, s->Q, s->queries, work, s->answers);
    for (int64_t q = 0; s->truth && q < s->Q; q++)
        for (int64_t r = 0; r < outcomes; r++)
            s->truth[q * outcomes + r] = P[(int64_t)s->queries[q] * outcomes + r];
    return FIN_OK;
}

static void accumulate(const fin_latent *latent, int64_t L, const double *keys,
                       const double *values, double *statistic, double *work)
{
    (void)work;
    for (int64_t l = 0; l < L; l++)
        statistic[(int64_t)keys[l] * latent->shape.outcomes + (int64_t)values[l]]++;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *p,
                            double *work, fin_error *err)
{
    (void)work;
    for (int64_t z = 0; z < latent->settings.concepts; z++) {
        const double *key = logs(latent, z);
        p[z] = 0;
        for (int64_t i = 0; i < latent->shape.statistic; i++)
            if (statistic[i] > 0) /* 0 times log 0 is 0 here */
                p[z] += statistic[i] * key[i];
    }
    if (!isfinite(fini_softmax_libm(latent->settings.concepts, p, true)))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "concepts: these tokens have probability 0 under each of the %lld "
                         "concepts, so that there is no posterior; a larger alpha makes tables "
                         "without zeros",
                         (long long)latent->settings.concepts);
    return FIN_OK;
}

static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err)
{
    int64_t outcomes = latent->shape.outcomes;
    FINI_TRY(posterior(latent, statistic, work, NULL, err));
    for (int64_t i = 0; i < q->m; i++) {
        double *out = q->mean + i * outcomes;
        int64_t c = (int64_t)q->keys[i];
        for (int64_t r = 0; r < outcomes; r++)
            out[r] = 0;
        for (int64_t z = 0; z < latent->settings.concepts; z++)
            for (int64_t r = 0; r < outcomes && work[z] > 0; r++)
                out[r] += work[z] * table(latent, z)[c * outcomes + r];
    }
    return FIN_OK;
}

const fin_family fini_family_concepts = {
    .name = "concepts",
    .summary = "z one of finitely many tables P_z(r | c); tokens are covariate and response",
    .settings = &concepts_settings,
    .key_categories = true,
    .value_categories = true,
    .finite = true,
    .z_parts = "z",
    .posterior_parts = "probability posterior",
    .resolve = resolve,
    .prepare = prepare,
    .room = room,
    .draw = draw,
    .accumulate = accumulate,
    .posterior = posterior,
    .predict = predict,
};
