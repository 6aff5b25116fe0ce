/* The risk of attention on the tokens of a family, by simulation: contexts are drawn and answered
 * in batches, and errors merged in the order of the contexts, so that no bit depends on the threads
 * or on the size of a batch. */
#include "theory/theory.h"

#include "finetti/theory_latent.h"
#include "math/gram.h"
#include "family/family.h"

#include <math.h>

enum { QUERIES = 8, BATCH_MOST = 4096 };
static const double batch_numbers = 0x1p20; /* of one batch, about */

/* A batch of B contexts; for linear families keys are replaced by their features. */
typedef struct batch {
    const fin_latent *latent;
    int64_t B, L, width; /* width: numbers of a key as attention sees it */
    double *keys, *values, *queries, *truth, *mean, *phi, *phi_q;
    int64_t *offsets, *query_offsets;
    fini_arena arena;
} batch;

static void layout(batch *b)
{
    const fin_latent_shape *s = &b->latent->shape;
    int64_t tokens = b->B * b->L, queries = b->B * QUERIES;
    bool linear = b->latent->family->linear;
    b->keys = fini_take(&b->arena, tokens * s->dk, sizeof *b->keys);
    b->values = fini_take(&b->arena, tokens * s->dv, sizeof *b->values);
    b->queries = fini_take(&b->arena, queries * s->dk, sizeof *b->queries);
    b->truth = fini_take(&b->arena, queries * s->dv, sizeof *b->truth);
    b->mean = fini_take(&b->arena, queries * s->dv, sizeof *b->mean);
    b->phi = linear ? fini_take(&b->arena, tokens * b->width, sizeof *b->phi) : b->keys;
    b->phi_q = linear ? fini_take(&b->arena, queries * b->width, sizeof *b->phi_q) : b->queries;
    b->offsets = fini_take(&b->arena, b->B + 1, sizeof *b->offsets);
    b->query_offsets = fini_take(&b->arena, b->B + 1, sizeof *b->query_offsets);
}

static fin_status open_batch(batch *b, const fin_latent *latent, int64_t L, int64_t samples,
                             fin_error *err)
{
    const fin_latent_shape *s = &latent->shape;
    b->latent = latent;
    b->L = L;
    b->width = latent->family->linear ? s->features : s->dk;
    double each = (double)(L + QUERIES) * (double)(s->dk + s->dv + b->width);
    b->B = each * BATCH_MOST > batch_numbers ? (int64_t)(batch_numbers / each) : BATCH_MOST;
    b->B = b->B < 4 ? 4 : b->B;
    b->B = b->B < samples ? b->B : samples;
    FINI_TRY(fini_latent_check_sizes(latent, b->B, L, QUERIES, err));
    FINI_LAY_OUT(err, &b->arena, "a batch of contexts", layout(b));
    for (int64_t i = 0; i <= b->B; i++) {
        b->offsets[i] = i * L;
        b->query_offsets[i] = i * QUERIES;
    }
    return FIN_OK;
}

/* Contexts first .. first + n - 1, n <= B, and what attention answers. */
static fin_status answer(const batch *b, const fin_cross_settings *cross, uint64_t seed,
                         uint64_t first, int64_t n, fin_error *err)
{
    const fin_latent *latent = b->latent;
    fini_sequence arrays = {.L = b->L,
                            .Q = QUERIES,
                            .keys = b->keys,
                            .values = b->values,
                            .queries = b->queries,
                            .truth = b->truth};
    FINI_TRY(fini_latent_draw_many(latent, seed, FINI_STREAMS_UP, first, n, &arrays, err));
    if (latent->family->linear) {
        fini_features(latent, n * b->L, b->keys, b->phi, b->width);
        fini_features(latent, n * QUERIES, b->queries, b->phi_q, b->width);
    }
    fin_cross_batch view = {.n = n,
                            .dk = b->width,
                            .dv = latent->shape.dv,
                            .dtype = FIN_F64,
                            .offsets = b->offsets,
                            .query_offsets = b->query_offsets,
                            .keys = b->phi,
                            .values = b->values,
                            .queries = b->phi_q};
    return fin_cross_forward(cross, &view, b->mean, NULL, err);
}

/* Mean and spread of the errors so far (Welford). */
typedef struct summary {
    double n, mean, M2, largest;
} summary;

static void add_errors(const batch *b, int64_t n, summary *total)
{
    int64_t numbers = QUERIES * b->latent->shape.dv;
    for (int64_t i = 0; i < n; i++) {
        double error = 0;
        for (int64_t j = i * numbers; j < (i + 1) * numbers; j++)
            error += (b->truth[j] - b->mean[j]) * (b->truth[j] - b->mean[j]);
        error /= QUERIES;
        double gap = error - total->mean;
        total->n++;
        total->mean += gap / total->n;
        total->M2 += gap * (error - total->mean);
        total->largest = fmax(total->largest, error);
    }
}

static fin_status simulate(const batch *b, const fin_cross_settings *cross,
                           const fin_risk_settings *settings, const fin_progress *progress,
                           summary *total, fin_error *err)
{
    for (int64_t first = 0; first < settings->samples; first += b->B) {
        int64_t n = settings->samples - first < b->B ? settings->samples - first : b->B;
        if (fini_report(progress, "risk of attention", (double)first, (double)settings->samples))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld samples",
                             (long long)first, (long long)settings->samples);
        FINI_TRY(answer(b, cross, (uint64_t)settings->seed, (uint64_t)first, n, err));
        add_errors(b, n, total);
    }
    fini_report(progress, "risk of attention", (double)settings->samples,
                (double)settings->samples);
    return FIN_OK;
}

static fin_status check(const fin_latent *latent, const fin_risk_settings *settings, int64_t L,
                        fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_risk_table, settings, err));
    if (latent->shape.dk == 0 || latent->shape.outcomes > 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s: attention needs keys and real values",
                         latent->family->name);
    if (settings->method == FIN_METHOD_CLOSED || settings->method == FIN_METHOD_QUADRATURE)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the risk of attention on %s has no %s; use simulation",
                         latent->family->name,
                         settings->method == FIN_METHOD_CLOSED ? "closed form" : "quadrature");
    return fini_latent_check_sizes(latent, 1, L, QUERIES, err);
}

void fin_latent_cross(const fin_latent *latent, int form, fin_cross_settings *cross)
{
    if (!latent || !cross)
        return;
    const fin_latent_settings *s = fin_latent_get_settings(latent);
    fin_settings_defaults(&fin_cross_table, cross, sizeof *cross);
    cross->form = form;
    cross->kernel = form == FIN_CROSS_NW ? FIN_KERNEL_RBF : FIN_KERNEL_LINEAR;
    cross->prior = s->prior;
    cross->noise = s->noise;
    if (latent->family->covariance) {
        cross->kernel = s->kernel;
        cross->scale = s->scale;
        cross->degree = s->degree;
        cross->offset = s->offset;
    }
    if (latent->family->second_moments)
        latent->family->second_moments(latent, &cross->prior, &cross->noise);
}

fin_status fin_latent_risk_cross(const fin_latent *latent, const fin_cross_settings *cross,
                                 int64_t L, const fin_risk_settings *settings,
                                 const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, latent, risk);
    fin_risk_settings how;
    fin_cross_settings as;
    batch b = {0};
    summary total = {0, 0, 0, 0};
    settings = fini_or_defaults(&fin_risk_table, settings, &how);
    cross = fini_or_defaults(&fin_cross_table, cross, &as);
    fin_status status = check(latent, settings, L, err);
    if (status || (status = open_batch(&b, latent, L, settings->samples, err)))
        return status;
    fini_blas_enter();
    status = simulate(&b, cross, settings, progress, &total, err);
    fini_blas_leave();
    fini_arena_close(&b.arena);
    if (status)
        return status;
    if (!isfinite(total.mean))
        return fini_fail(err, FIN_ERR_NUMERIC, "the simulation overflows at these settings");
    *risk = (fin_estimate){.value = total.mean,
                           .error = sqrt(total.M2 / (total.n - 1) / total.n),
                           .method = FIN_METHOD_SIMULATION,
                           .samples = settings->samples,
                           .rare = total.largest >= 0.1 * total.n * fabs(total.mean)};
    return FIN_OK;
}
