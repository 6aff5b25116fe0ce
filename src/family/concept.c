/* concept: v = Z phi(k) + noise with Z a matrix of independent N(0, prior). The main family: cme
 * attention with the kernel phi(a).phi(b) and lam = noise / prior is its posterior mean. */
#include "family/family.h"

#include <math.h>

#define FIELDS(F, C) FIN_LATENT_KEYS(F, C) FIN_LATENT_FEATURES(F, C) FIN_LATENT_GAUSS(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, concept_settings, "concept", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    FINI_TRY(fini_features_resolve(latent, err));
    int64_t D = latent->shape.features, dv = latent->settings.dv;
    fini_gauss_shape(latent);
    latent->shape.latent = dv * D;
    latent->shape.posterior = dv * D + D * D;
    return FIN_OK;
}

static void prepare(fin_latent *latent)
{
    fini_features_prepare(latent, latent->common);
}

static int64_t room_tokens(const fin_latent *latent, int64_t L, int64_t m)
{
    return (L + m) * latent->shape.features + fini_process_room(L, latent->shape.dv, m);
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    fini_keys_draw(latent, s);
    fin_random_normals_f64(s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample, 0,
                           latent->shape.latent, s->z);
    double scale = sqrt(latent->settings.prior);
    for (int64_t i = 0; i < latent->shape.latent; i++)
        s->z[i] *= scale;
    fini_gauss_values(latent, s, s->z, work);
    return FIN_OK;
}

/* With fewer tokens than features their Gram matrix is the smaller one. */
static fin_status predict_tokens(const fin_latent *latent, int64_t L, const double *keys,
                                 const double *values, const fini_query *q, double *work,
                                 fin_error *err)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv;
    double *phi = work, *phi_q = phi + L * D;
    const fini_process p = {{.kernel = FIN_KERNEL_LINEAR, .scale = 1},
                            latent->settings.prior,
                            latent->settings.noise,
                            {L, D, dv, dv, phi, values}};
    fini_features(latent, L, keys, phi, D);
    fini_features(latent, q->m, q->keys, phi_q, D);
    const fini_query at = {q->m, phi_q, q->mean, q->variance};
    return fini_process_predict(&p, &at, phi_q + q->m * D, err);
}

/* Then all D directions of the features vary. */
static bool long_risk(const fin_latent *latent)
{
    return latent->settings.features <= FIN_FEATURES_AFFINE;
}

const fin_family fini_family_concept = {
    .name = "concept",
    .summary = "v = Z phi(k) + noise, Z Gaussian: a linear concept",
    .settings = &concept_settings,
    .linear = true,
    .latent_gaussian = true,
    .by_keys = true,
    .z_parts = "z dv features",
    .posterior_parts = "mean dv features; covariance features features",
    .resolve = resolve,
    .prepare = prepare,
    .room = fini_gauss_room,
    .draw = draw,
    .accumulate = fini_gauss_accumulate,
    .posterior = fini_gauss_posterior,
    .predict = fini_gauss_predict,
    .predict_tokens = predict_tokens,
    .room_tokens = room_tokens,
    .long_risk = long_risk,
    .project = fini_gauss_project,
    .posterior_mean = fini_gauss_mean,
};
