/* sphere: |k| = |v| = 1, v ~ von Mises-Fisher(O k, rho), O a uniformly random rotation of R^d.
 * Values point, on average, to E[v | k, O] = A_d(rho) O k, A_d = I_{d/2} / I_{d/2-1}. The posterior
 * of O is the matrix von Mises-Fisher law
 *
 *     p(O | tokens) ~ exp( rho sum_l v_l.O k_l ) = exp(tr(F'O)),  F = rho V'K,
 *
 * whose mean is known by quadrature for d = 2 and 3 (rotation.c). */
#include "family/family.h"
#include "math/bessel.h"

#include <math.h>

#define FIELDS(F, C) FIN_LATENT_DIRECTIONS(F, C) FIN_LATENT_SPHERE(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, sphere_settings, "sphere", FIELDS);

enum { MEAN_MOST = 3 }; /* largest d with a mean of O */

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    int64_t d = latent->settings.d;
    if (latent->settings.keys == FIN_KEYS_GAUSSIAN)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "sphere: keys = gaussian; its keys are unit vectors, sphere or vmf");
    latent->shape.dk = latent->shape.dv = d;
    latent->shape.latent = d * d;
    latent->shape.statistic = d * d + 1;
    latent->shape.posterior = d <= MEAN_MOST ? 2 * d * d : d * d;
    latent->silent = d > MEAN_MOST;
    return FIN_OK;
}

static int64_t room(const fin_latent *latent, int64_t L, int64_t m)
{
    (void)L, (void)m;
    return 2 * latent->shape.dk * latent->shape.dk;
}

/* out = M k. */
static void turn(int64_t d, const double *M, const double *k, double *out)
{
    for (int64_t i = 0; i < d; i++) {
        out[i] = 0;
        for (int64_t j = 0; j < d; j++)
            out[i] += M[i * d + j] * k[j];
    }
}

static void values_near(const fin_latent *latent, const fini_sequence *s, uint32_t stream,
                        int64_t n, const double *keys, double *axis, double *out)
{
    int64_t d = latent->shape.dk;
    fin_random random;
    fin_random_open(&random, s->seed, stream + s->up, s->sample);
    for (int64_t l = 0; l < n; l++) {
        turn(d, s->z, keys + l * d, axis);
        fin_random_vmf(&random, d, axis, latent->settings.rho, out + l * d);
    }
}

static double gain(const fin_latent *latent)
{
    return fini_bessel_ratio((double)latent->settings.d / 2 - 1, latent->settings.rho);
}

static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    (void)err;
    int64_t d = latent->shape.dk;
    fin_random random;
    fini_keys_draw(latent, s);
    fin_random_open(&random, s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample);
    fin_random_rotation(&random, d, s->z);
    if (s->values)
        values_near(latent, s, FINI_STREAM_FAMILY_VALUES, s->L, s->keys, work, s->values);
    if (s->answers)
        values_near(latent, s, FINI_STREAM_FAMILY_ANSWERS, s->Q, s->queries, work, s->answers);
    double A = gain(latent);
    for (int64_t q = 0; s->truth && q < s->Q; q++) {
        turn(d, s->z, s->queries + q * d, s->truth + q * d);
        for (int64_t i = 0; i < d; i++)
            s->truth[q * d + i] *= A;
    }
    return FIN_OK;
}

static void accumulate(const fin_latent *latent, int64_t L, const double *keys,
                       const double *values, double *statistic, double *work)
{
    (void)work;
    int64_t d = latent->shape.dk;
    for (int64_t l = 0; l < L; l++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++)
                statistic[i * d + j] += values[l * d + i] * keys[l * d + j];
    statistic[d * d] += (double)L;
}

static fin_status posterior(const fin_latent *latent, const double *statistic, double *F,
                            double *work, fin_error *err)
{
    (void)work;
    int64_t d = latent->shape.dk;
    for (int64_t i = 0; i < d * d; i++)
        F[i] = latent->settings.rho * statistic[i];
    return d <= MEAN_MOST ? fini_rotation_mean(d, F, F + d * d, err) : FIN_OK;
}

/* |O q| = |q|, so that the variance of A O q is A^2 (|q|^2 - |E[O] q|^2), here a number's share. */
static fin_status predict(const fin_latent *latent, const double *statistic, const fini_query *q,
                          double *work, fin_error *err)
{
    int64_t d = latent->shape.dk;
    double A = gain(latent), *O = work + d * d;
    if (d > MEAN_MOST)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "sphere: the mean of the posterior of a rotation is an integral over "
                         "d (d-1)/2 angles, done here for d = 2 and 3; d = %lld was given. Its "
                         "density is in the posterior, and attention needs no mean",
                         (long long)d);
    FINI_TRY(posterior(latent, statistic, work, NULL, err));
    for (int64_t j = 0; j < q->m; j++) {
        const double *key = q->keys + j * d;
        double *out = q->mean + j * d, known = 0, all = 0;
        turn(d, O, key, out);
        for (int64_t i = 0; i < d; i++) {
            known += out[i] * out[i];
            all += key[i] * key[i];
            out[i] *= A;
        }
        if (q->variance)
            q->variance[j] = A * A * (all > known ? all - known : 0) / (double)d;
    }
    return FIN_OK;
}

/* Behind F; none of rotations of more than 3 dimensions. */
static int64_t posterior_mean(const fin_latent *latent, const double *posterior, double *mean)
{
    int64_t from = latent->shape.dk * latent->shape.dk, size = latent->shape.posterior - from;
    for (int64_t j = 0; mean && j < size; j++)
        mean[j] = posterior[from + j];
    return size;
}

/* |v| = 1, so that it is 1 - |mean|^2 in all. */
static double answer_variance(const fin_latent *latent, const double *mean, double variance)
{
    (void)variance;
    double left = 1;
    for (int64_t j = 0; j < latent->shape.dv; j++)
        left -= mean[j] * mean[j];
    return fmax(left, 0) / (double)latent->shape.dv;
}

static void second_moments(const fin_latent *latent, double *prior, double *noise)
{
    double A = gain(latent), d = (double)latent->settings.d;
    *prior = fmax(1e-100, A * A / d); /* rho = 0: nothing to find */
    *noise = fmax(0, (1 - A * A) / d);
}

const fin_family fini_family_sphere = {
    .name = "sphere",
    .summary = "unit vectors, v von Mises-Fisher around O k, O a random rotation",
    .settings = &sphere_settings,
    .cost = 1000, /* a quadrature over rotations */
    .z_parts = "z dv dk",
    .posterior_parts = "F dv dk; mean dv dk",
    .resolve = resolve,
    .room = room,
    .draw = draw,
    .accumulate = accumulate,
    .posterior = posterior,
    .predict = predict,
    .posterior_mean = posterior_mean,
    .answer_variance = answer_variance,
    .second_moments = second_moments,
};
