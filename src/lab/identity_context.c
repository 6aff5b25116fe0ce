/* What the kinds of `identity` need again and again: a drawn context, attention to it, and Gaussian
 * conditioning that shares no code with the library's. */
#include "lab/identity.h"

#include <math.h>
#include <string.h>

void fini_identity_random(const fini_identity_values *values, int64_t model, fin_random *r)
{
    fin_random_open(r, (uint64_t)values->own.seed, FINI_STREAM_IDENTITY, (uint64_t)model);
}

fin_status fini_family_defaults(const char *family, fin_latent_settings *settings, fin_error *err)
{
    const fin_family *row = fin_family_find(family);
    if (!row)
        return fini_fail(err, FIN_ERR_ARGUMENT, "there is no family '%.32s'", family);
    memset(settings, 0, sizeof *settings);
    fin_settings_defaults(fin_family_table(row), settings, sizeof *settings);
    return FIN_OK;
}

static void lay_out(fini_context *c)
{
    fini_arena *arena = &c->arena;
    int64_t D = c->shape.features;
    c->keys = fini_take(arena, c->L * c->shape.dk, sizeof(double));
    c->values = fini_take(arena, c->L * c->shape.dv, sizeof(double));
    c->queries = fini_take(arena, c->Q * c->shape.dk, sizeof(double));
    c->phi = fini_take(arena, c->L * D, sizeof(double));
    c->phi_q = fini_take(arena, c->Q * D, sizeof(double));
    c->mean = fini_take(arena, c->Q * c->shape.dv, sizeof(double));
    c->variance = fini_take(arena, c->Q * c->shape.dv, sizeof(double));
    if (D == 0)
        c->phi = c->phi_q = NULL;
}

fin_status fini_context_open(fini_context *context, const char *family,
                             const fin_latent_settings *settings, uint64_t seed, int64_t L,
                             int64_t Q, fin_error *err)
{
    *context = (fini_context){.L = L, .Q = Q};
    FINI_TRY(fin_latent_create(&context->latent, fin_family_find(family), settings, seed, err));
    fin_latent_get_shape(context->latent, &context->shape);
    FINI_LAY_OUT(err, &context->arena, "a context", lay_out(context));
    const fin_latent_sample sample = {
        1, L, Q, context->keys, context->values, context->queries, NULL, NULL, NULL};
    FINI_TRY(fin_latent_draw(context->latent, 0, &sample, err));
    if (context->phi)
        FINI_TRY(fin_latent_features(context->latent, L, context->keys, context->phi, err));
    if (context->phi)
        FINI_TRY(fin_latent_features(context->latent, Q, context->queries, context->phi_q, err));
    return FIN_OK;
}

void fini_context_close(fini_context *context)
{
    fin_latent_destroy(context->latent);
    fini_arena_close(&context->arena);
    *context = (fini_context){.latent = NULL};
}

/* ---- attention ------------------------------------------------------------------------------- */

fin_cross_settings fini_concept_attention(const fin_latent_settings *settings)
{
    fin_cross_settings cross;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    cross.form = FIN_CROSS_CME;
    cross.kernel = FIN_KERNEL_LINEAR;
    cross.prior = settings->prior;
    cross.noise = settings->noise;
    return cross;
}

fin_status fini_attend(const fin_cross_settings *settings, const fini_tokens *tokens, int64_t m,
                       const double *queries, double *mean, double *variance, fin_error *err)
{
    fin_cross *cross = NULL;
    fin_status status =
        fin_cross_create(&cross, settings, NULL, tokens->dk, tokens->dv, tokens->n, err);
    if (!status)
        status = fin_cross_load(cross, tokens->n, tokens->keys, tokens->values, NULL, err);
    if (!status)
        status = fin_cross_predict(cross, m, queries, mean, variance, NULL, NULL, err);
    fin_cross_destroy(cross);
    return status;
}

void fini_widen(const double *a, const double *b, int64_t n, double *worst)
{
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs(a[i] - b[i]);
        if (isnan(difference) || difference > *worst) /* a NaN stays: nothing is above it */
            *worst = difference;
    }
}

/* ---- Gaussian conditioning ------------------------------------------------------------------- */

/* W: (n, n + m) rows [K | k]; afterwards its right part is K^-1 k. */
static bool eliminate(int64_t n, int64_t m, long double *W)
{
    int64_t width = n + m;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t i = c + 1; i < n; i++)
            if (fabsl(W[i * width + c]) > fabsl(W[pivot * width + c]))
                pivot = i;
        if (!(fabsl(W[pivot * width + c]) > 0))
            return false;
        for (int64_t j = c; j < width && pivot != c; j++) {
            long double other = W[pivot * width + j];
            W[pivot * width + j] = W[c * width + j];
            W[c * width + j] = other;
        }
        for (int64_t i = c + 1; i < n; i++) {
            long double factor = W[i * width + c] / W[c * width + c];
            if (factor == 0) /* most are in a covariance of independent blocks */
                continue;
            for (int64_t j = c; j < width; j++)
                W[i * width + j] -= factor * W[c * width + j];
        }
    }
    for (int64_t c = n - 1; c >= 0; c--)
        for (int64_t j = n; j < width; j++) {
            long double sum = W[c * width + j];
            for (int64_t i = c + 1; i < n; i++)
                sum -= W[c * width + i] * W[i * width + j];
            W[c * width + j] = sum / W[c * width + c];
        }
    return true;
}

fin_status fini_condition(const fini_joint *joint, int64_t dv, const double *v, double *mean,
                          double *variance, fin_error *err)
{
    int64_t n = joint->n, m = joint->m, width = n + m;
    const double *k = joint->k;
    long double *W = fini_alloc_array(n * width, sizeof *W);
    if (!W)
        return fini_fail_memory(err, (size_t)(n * width) * sizeof *W, "a covariance");
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            W[i * width + j] = joint->K[i * n + j];
        for (int64_t j = 0; j < m; j++)
            W[i * width + n + j] = k[i * m + j];
    }
    bool fine = eliminate(n, m, W);
    for (int64_t j = 0; j < m && fine; j++) {
        for (int64_t c = 0; c < dv; c++) {
            long double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += W[i * width + n + j] * v[i * dv + c];
            mean[j * dv + c] = (double)sum;
        }
        long double left = joint->own[j];
        for (int64_t i = 0; i < n; i++)
            left -= W[i * width + n + j] * k[i * m + j];
        if (variance)
            variance[j] = (double)left;
    }
    fini_free(W);
    return fine ? FIN_OK : fini_fail(err, FIN_ERR_NUMERIC, "the covariance has no inverse");
}
