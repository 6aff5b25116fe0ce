/* mean: v = z + noise, z ~ N(0, prior I): the concept without keys, phi = 1. */
#include "family/family.h"

#include <math.h>

#define FIELDS(F, C) FIN_LATENT_GAUSS(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, mean_settings, "mean", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    /* Affine features of a key with no numbers are the constant 1. */
    latent->settings.features = FIN_FEATURES_AFFINE;
    latent->shape.features = 1;
    fini_gauss_shape(latent);
    latent->shape.latent = latent->shape.dv;
    latent->shape.posterior = latent->shape.dv + 1;
    return FIN_OK;
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    int64_t dv = latent->shape.dv;
    double scale = sqrt(latent->settings.prior);
    fin_random_normals_f64(s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample, 0, dv, s->z);
    for (int64_t i = 0; i < dv; i++)
        s->z[i] *= scale;
    fini_gauss_values(latent, s, s->z, work);
    return FIN_OK;
}

/* dv noise prior / (noise + L prior). */
static double closed_risk(const fin_latent *latent, int64_t L)
{
    const fin_latent_settings *s = &latent->settings;
    if (L == 0)
        return (double)s->dv * s->prior;
    return (double)s->dv * s->noise / (s->noise / s->prior + (double)L);
}

static bool long_risk(const fin_latent *latent)
{
    (void)latent;
    return true;
}

const fin_family fini_family_mean = {
    .name = "mean",
    .summary = "v = z + noise, z Gaussian: a mean to be estimated",
    .settings = &mean_settings,
    .linear = true,
    .latent_gaussian = true,
    .posterior_parts = "mean dv features; covariance features features",
    .resolve = resolve,
    .room = fini_gauss_room,
    .draw = draw,
    .accumulate = fini_gauss_accumulate,
    .posterior = fini_gauss_posterior,
    .predict = fini_gauss_predict,
    .closed_risk = closed_risk,
    .long_risk = long_risk,
    .project = fini_gauss_project,
    .posterior_mean = fini_gauss_mean,
};
