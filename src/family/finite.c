/* finite: v = Z phi(k) + noise with Z one of finitely many, equally likely matrices. The posterior
 * is a softmax,
 *
 *     log p(Z_c | tokens) = ( tr(Z_c'T) - tr(Z_c S Z_c')/2 ) / noise + const,
 *
 * so that the Bayes prediction is not linear in the values and cme attention, the best linear one
 * (it knows the same second moments), is strictly worse: a control. */
#include "family/family.h"
#include "math/small.h"

#include <math.h>

#define FIELDS(F, C)                                                                               \
    FIN_LATENT_KEYS(F, C)                                                                          \
    FIN_LATENT_FEATURES(F, C)                                                                      \
    FIN_LATENT_VALUES(F, C) FIN_LATENT_SOME_NOISE(F, C) FIN_LATENT_CONCEPTS(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, finite_settings, "finite", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    const fin_latent_settings *s = &latent->settings;
    FINI_TRY(fini_features_resolve(latent, err));
    fini_gauss_shape(latent);
    latent->shape.latent = 1;
    latent->shape.posterior = s->concepts;
    latent->commons += s->concepts * s->dv * latent->shape.features;
    return FIN_OK;
}

/* (concepts, dv, D), after what the features have. */
static double *matrices(const fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    return latent->common + latent->commons - s->concepts * s->dv * latent->shape.features;
}

static void prepare(fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    int64_t count = s->concepts * s->dv * latent->shape.features;
    double *Z = matrices(latent), scale = sqrt(s->prior);
    fini_features_prepare(latent, latent->common);
    fin_random_normals_f64(latent->seed, FINI_STREAM_FAMILY_FINITE, 0, 0, count, Z);
    for (int64_t i = 0; i < count; i++)
        Z[i] *= scale;
}

static int64_t room(const fin_latent *latent, int64_t L, int64_t m)
{
    return fini_gauss_room(latent, L, m) + latent->settings.concepts + latent->shape.features +
           latent->shape.dv;
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    fin_random random;
    fini_keys_draw(latent, s);
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample);
    int64_t c = fin_random_below(&random, latent->settings.concepts);
    s->z[0] = (double)c;
    fini_gauss_values(latent, s, matrices(latent) + c * latent->shape.dv * latent->shape.features,
                      work);
    return FIN_OK;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *p,
                            double *work, fin_error *err)
{
    (void)work;
    int64_t D = latent->shape.features, dv = latent->shape.dv, concepts = latent->settings.concepts;
    const double *S = statistic, *T = statistic + fini_gauss_parts(latent).T, *Z = matrices(latent);
    for (int64_t c = 0; c < concepts; c++) {
        double odds = 0;
        for (int64_t r = 0; r < dv; r++) {
            const double *z = Z + (c * dv + r) * D, *t = T + r * D;
            for (int64_t i = 0; i < D; i++) {
                double Sz = 0;
                for (int64_t j = 0; j < D; j++)
                    Sz += S[i * D + j] * z[j];
                odds += z[i] * (t[i] - Sz / 2);
            }
        }
        p[c] = odds / latent->settings.noise;
    }
    if (!isfinite(fini_softmax_libm(concepts, p, true)))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "finite: the log-odds of the concepts overflow; are the numbers of the "
                         "statistic very large, or noise = %g very small?",
                         latent->settings.noise);
    return FIN_OK;
}

/* Mean and variance of Z_c phi over the posterior of c. */
static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk;
    int64_t concepts = latent->settings.concepts;
    double *p = work, *phi = p + concepts, *image = phi + D;
    FINI_TRY(posterior(latent, statistic, p, work, err));
    for (int64_t j = 0; j < q->m; j++) {
        double *out = q->mean + j * dv, spread = 0;
        fini_features(latent, 1, q->keys + j * dk, phi, D);
        for (int64_t r = 0; r < dv; r++)
            out[r] = 0;
        /* West's weighted mean and variance, which lose no digits; never below 0. */
        double total = 0;
        for (int64_t c = 0; c < concepts; c++) {
            if (p[c] == 0)
                continue;
            double before = total;
            total += p[c];
            for (int64_t r = 0; r < dv; r++) {
                const double *z = matrices(latent) + (c * dv + r) * D;
                image[r] = 0;
                for (int64_t i = 0; i < D; i++)
                    image[r] += z[i] * phi[i];
                double gap = image[r] - out[r];
                out[r] += gap * (p[c] / total);
                spread += p[c] * (before / total) * gap * gap;
            }
        }
        if (q->variance)
            q->variance[j] = spread / (double)dv;
    }
    return FIN_OK;
}

const fin_family fini_family_finite = {
    .name = "finite",
    .summary = "v = Z phi(k) + noise, Z one of finitely many: attention is not Bayes here",
    .settings = &finite_settings,
    .linear = true,
    .finite = true,
    .z_parts = "z",
    .posterior_parts = "probability posterior",
    .resolve = resolve,
    .prepare = prepare,
    .room = room,
    .draw = draw,
    .accumulate = fini_gauss_accumulate,
    .posterior = posterior,
    .predict = predict,
};
