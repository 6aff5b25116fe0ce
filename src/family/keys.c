/* Laws of keys, and the feature maps phi of the linear families.
 *
 *     identity   k                                        D = d
 *     affine     1, k                                     D = 1 + d
 *     quadratic  1, k, k_i k_j for i <= j                 D = 1 + d + d (d + 1) / 2
 *     fourier    sqrt(2/D) cos(w_j.k + b_j)               w ~ N(0, frequency^2 I), b ~ U(0, 2 pi)
 *
 * The last one's kernel phi(a).phi(b) tends to exp(-frequency^2 |a - b|^2 / 2) as D grows (Rahimi
 * and Recht 2007). */
#include "family/family.h"
#include "base/constants.h"
#include "math/bessel.h"

#include <math.h>

enum { D_MOST = 4096 }; /* of a key, see the rows of settings */
static const double first_axis[D_MOST] = {1};
fin_status fini_features_resolve(fin_latent *latent, fin_error *err)
{
    const fin_latent_settings *s = &latent->settings;
    int64_t d = s->d, D = d;
    latent->shape.dk = d;
    if (s->features == FIN_FEATURES_AFFINE)
        D = 1 + d;
    else if (s->features == FIN_FEATURES_QUADRATIC)
        D = 1 + d + d * (d + 1) / 2;
    else if (s->features == FIN_FEATURES_FOURIER) {
        D = s->D;
        latent->commons += D * (d + 1);
    }
    if (D > FINI_FEATURES_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: quadratic features of d = %lld numbers are %lld; at most %lld are "
                         "possible (d = 179); process with the kernel polynomial has no such limit",
                         latent->family->name, (long long)d, (long long)D,
                         (long long)FINI_FEATURES_MOST);
    latent->shape.features = D;
    return FIN_OK;
}

/* common: w (D, d), then b (D). */
void fini_features_prepare(const fin_latent *latent, double *common)
{
    const fin_latent_settings *s = &latent->settings;
    if (s->features != FIN_FEATURES_FOURIER)
        return;
    int64_t D = latent->shape.features;
    fin_random random;
    fin_random_open(&random, latent->seed, FINI_STREAM_FAMILY_COMMON, 0);
    for (int64_t i = 0; i < D * s->d; i++)
        common[i] = s->frequency * fin_random_normal(&random);
    for (int64_t j = 0; j < D; j++)
        common[D * s->d + j] = FINI_TWO_PI * fin_random_uniform(&random);
}

static void draw_keys(const fin_latent *latent, uint64_t seed, uint32_t stream, uint64_t sample,
                      int64_t n, double *keys)
{
    const fin_latent_settings *s = &latent->settings;
    int64_t d = s->d;
    if (s->keys == FIN_KEYS_GAUSSIAN) {
        fin_random_normals_f64(seed, stream, sample, 0, n * d, keys);
        return;
    }
    fin_random random;
    fin_random_open(&random, seed, stream, sample);
    for (int64_t l = 0; l < n; l++) {
        double *k = keys + l * d;
        if (s->keys == FIN_KEYS_SPHERE)
            fin_random_sphere(&random, d, k);
        else
            fin_random_vmf(&random, d, first_axis, s->concentration, k);
    }
}

void fini_keys_draw(const fin_latent *latent, const fini_sequence *s)
{
    if (s->keys)
        draw_keys(latent, s->seed, FINI_STREAM_FAMILY_KEYS + s->up, s->sample, s->L, s->keys);
    if (s->queries)
        draw_keys(latent, s->seed, FINI_STREAM_FAMILY_QUERIES + s->up, s->sample, s->Q, s->queries);
}

static void cosines(const fin_latent *latent, const double *k, double *phi)
{
    int64_t d = latent->settings.d, D = latent->shape.features;
    const double *w = latent->common, *b = w + D * d;
    double scale = sqrt(2 / (double)D);
    for (int64_t j = 0; j < D; j++) {
        double angle = b[j];
        for (int64_t i = 0; i < d; i++)
            angle += w[j * d + i] * k[i];
        phi[j] = scale * cos(angle);
    }
}

void fini_features(const fin_latent *latent, int64_t n, const double *keys, double *phi, int64_t ld)
{
    int64_t d = latent->shape.dk, kind = latent->settings.features;
    for (int64_t l = 0; l < n; l++) {
        const double *k = keys ? keys + l * d : NULL; /* the family mean: d = 0, no key, phi = 1 */
        double *p = phi + l * ld;
        if (kind == FIN_FEATURES_FOURIER) {
            cosines(latent, k, p);
            continue;
        }
        if (kind != FIN_FEATURES_IDENTITY)
            *p++ = 1;
        for (int64_t i = 0; i < d; i++)
            *p++ = k[i];
        if (kind == FIN_FEATURES_QUADRATIC)
            for (int64_t i = 0; i < d; i++)
                for (int64_t j = i; j < d; j++)
                    *p++ = k[i] * k[j];
    }
}

/* E k k' is diagonal under all three laws, and E k is along the first axis. von Mises-Fisher, with
 * A = A_d(c) = E k_1:  E k_i^2 = A/c for i > 1, hence E k_1^2 = 1 - (d-1) A/c. */
bool fini_features_moment(const fin_latent *latent, double *out)
{
    const fin_latent_settings *s = &latent->settings;
    int64_t D = latent->shape.features, d = latent->shape.dk;
    if (s->features == FIN_FEATURES_QUADRATIC || s->features == FIN_FEATURES_FOURIER)
        return false;
    double first = 1, rest = 1, mean = 0, c = s->concentration;
    if (s->keys == FIN_KEYS_SPHERE || (s->keys == FIN_KEYS_VMF && c == 0))
        first = rest = 1 / (double)d;
    else if (s->keys == FIN_KEYS_VMF) {
        mean = d == 1 ? tanh(c) : fini_bessel_ratio((double)d / 2 - 1, c);
        rest = mean / c;
        first = 1 - (double)(d - 1) * rest;
    }
    int64_t from = s->features == FIN_FEATURES_AFFINE;
    for (int64_t i = 0; i < D * D; i++)
        out[i] = 0;
    for (int64_t i = from; i < D; i++)
        out[i * D + i] = i == from ? first : rest;
    if (from) {
        out[0] = 1;
        out[1] = out[D] = mean; /* d >= 1, so that D >= 2 */
    }
    return true;
}
