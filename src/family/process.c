/* process: v = f(k) + noise, f a Gaussian process with covariance prior * kernel: the concept with
 * infinitely many features. There is no finite statistic, so that everything is done with the
 * tokens themselves: drawing is one joint Gaussian draw of f at all tokens and queries. */
#include "family/family.h"

#include "math/gram.h"

#include <math.h>

#define FIELDS(F, C) FIN_LATENT_KEYS(F, C) FIN_LATENT_GAUSS(F, C) FIN_COVARIANCE_FIELDS(F, C)
#define FIN_TABLE_STRUCT fin_latent_settings
FIN_TABLE(static, process_settings, "process", FIELDS);

static fin_status resolve(fin_latent *latent, fin_error *err)
{
    (void)err;
    latent->shape.dk = latent->settings.d;
    latent->shape.dv = latent->settings.dv;
    latent->shape.longest = FINI_POINTS_MOST;
    return FIN_OK;
}

static fin_covariance covariance_of(const fin_latent *latent)
{
    const fin_latent_settings *s = &latent->settings;
    return (fin_covariance){
        .kernel = s->kernel, .scale = s->scale, .degree = s->degree, .offset = s->offset};
}

static int64_t room(const fin_latent *latent, int64_t L, int64_t m)
{
    int64_t N = L + m;
    return N * latent->shape.dk + N * N + N * latent->shape.dv;
}

static int64_t room_tokens(const fin_latent *latent, int64_t L, int64_t m)
{
    return (L + m) * latent->shape.dk + fini_process_room(L, latent->shape.dv, m);
}

static void scaled(const fin_latent *latent, int64_t n, const double *keys, double *out)
{
    for (int64_t i = 0; i < n * latent->shape.dk; i++)
        out[i] = keys[i] / latent->settings.scale;
}

/* out = f, plus noise from the stream if there is one. */
static void answer(const fin_latent *latent, const fini_sequence *s, uint32_t stream, int64_t n,
                   const double *f, double *out)
{
    double spread = sqrt(latent->settings.noise);
    n *= latent->shape.dv;
    fin_random_normals_f64(s->seed, stream + s->up, s->sample, 0, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = f[i] + spread * out[i];
}

/* f = C g with the covariance C C' and g normal. Tokens come first, so that f at a token does not
 * depend on the points after it. */
static fin_status draw(const fin_latent *latent, const fini_sequence *s, double *work,
                       fin_error *err)
{
    int64_t N = s->L + s->Q, dk = latent->shape.dk, dv = latent->shape.dv;
    double *points = work, *C = points + N * dk, *f = C + N * N, jitter;
    const fini_process prior = {covariance_of(latent), 1, 0, {N, dk, .keys = points}};
    fini_keys_draw(latent, s);
    if (!s->values && !s->answers && !s->truth)
        return FIN_OK;
    scaled(latent, s->L, s->keys, points);
    scaled(latent, s->Q, s->queries, points + s->L * dk);
    FINI_TRY(fini_process_factor(&prior, C, &jitter, err));
    fin_random_normals_f64(s->seed, FINI_STREAM_FAMILY_Z + s->up, s->sample, 0, N * dv, f);
    double scale = sqrt(latent->settings.prior);
    for (int64_t i = N - 1; i >= 0; i--) /* from below, so that g is not overwritten too early */
        for (int64_t c = 0; c < dv; c++) {
            double x = 0;
            for (int64_t j = 0; j <= i; j++)
                x += C[i * N + j] * f[j * dv + c];
            f[i * dv + c] = scale * x;
        }
    const double *at_queries = f + s->L * dv;
    if (s->values)
        answer(latent, s, FINI_STREAM_FAMILY_VALUES, s->L, f, s->values);
    if (s->answers)
        answer(latent, s, FINI_STREAM_FAMILY_ANSWERS, s->Q, at_queries, s->answers);
    for (int64_t i = 0; s->truth && i < s->Q * dv; i++)
        s->truth[i] = at_queries[i];
    return FIN_OK;
}

static fin_status predict_tokens(const fin_latent *latent, int64_t L, const double *keys,
                                 const double *values, const fini_query *q, double *work,
                                 fin_error *err)
{
    int64_t dk = latent->shape.dk, dv = latent->shape.dv;
    double *a = work, *b = a + L * dk;
    const fini_process p = {covariance_of(latent),
                            latent->settings.prior,
                            latent->settings.noise,
                            {L, dk, dv, dv, a, values}};
    scaled(latent, L, keys, a);
    scaled(latent, q->m, q->keys, b);
    const fini_query at = {q->m, b, q->mean, q->variance};
    return fini_process_predict(&p, &at, b + q->m * dk, err);
}

const fin_family fini_family_process = {
    .name = "process",
    .summary = "v = f(k) + noise, f a Gaussian process: a concept with infinitely many features",
    .settings = &process_settings,
    .joint = true,
    .by_keys = true,
    .covariance = true,
    .limit = "rows of a square matrix",
    .resolve = resolve,
    .room = room,
    .draw = draw,
    .predict_tokens = predict_tokens,
    .room_tokens = room_tokens,
};
