/* Risks of predictions from exchangeable tokens: of the posterior mean, which nothing beats, and of
 * attention in its place. All are E |truth - prediction|^2 for a fresh query, summed over a value's
 * numbers or over outcomes; the noise of an answer is not in it.
 *
 *     closed_risk   in the family's file
 *     by_keys       dv E[ posterior variance at q ], simulated over keys alone; with features
 *                   dv noise E tr[ Sigma_q (S + lam I)^-1 ],  S = Phi'Phi, Sigma_q = E phi(q) phi(q)',
 *                   Sigma_q exact where it is known
 *
 * The other families are simulated as they are. */
#include "theory/theory.h"

#include "finetti/theory_latent.h"
#include "math/gram.h"
#include "math/spd.h"
#include "family/family.h"

#include <math.h>

enum { QUERIES = 8, MOMENT_MOST = 256, TRIAL_FROM = 100 };

typedef struct model {
    const fin_latent *latent;
    uint64_t seed;
    int64_t L, Q;
    bool variance;      /* simulate the posterior variance, not an error */
    const double *root; /* (D, D) lower triangular, root root' = Sigma_q, or NULL: from queries */
    fin_status *status; /* the first failure, by the number of its sample */
    fin_error *failure;
    uint64_t *failed;
} model;

static double fail(const model *q, uint64_t sample, fin_status status, const fin_error *err)
{
#pragma omp critical(fini_latent_risk)
    if (sample <= *q->failed) {
        *q->failed = sample;
        *q->status = status;
        *q->failure = *err;
    }
    return NAN;
}

/* ---- one context ----------------------------------------------------------------------------- */

/* Arrays of one context: keys, values, queries, truth, mean, variance, then work. */
static int64_t room(const model *q)
{
    const fin_latent_shape *s = &q->latent->shape;
    int64_t D = s->features, work = fini_latent_room(q->latent, q->L, q->Q);
    int64_t trace =
        q->root ? s->statistic + 2 * D * D + q->latent->family->room(q->latent, q->L, 0) : 0;
    return q->L * (s->dk + s->dv) + q->Q * (s->dk + 2 * fini_latent_width(q->latent) + 1) +
           (work > trace ? work : trace);
}

/* dv prior lam tr[ Sigma_q (S + lam I)^-1 ] = dv prior lam | C^-1 root |^2, C C' = S + lam I. */
static fin_status trace(const model *q, const double *keys, const double *values, double *work,
                        double *risk, fin_error *err)
{
    const fin_latent *latent = q->latent;
    int64_t D = latent->shape.features;
    double *S = work, *C = S + latent->shape.statistic, *X = C + D * D, ridge, norm2 = 0;
    for (int64_t i = 0; i < latent->shape.statistic; i++)
        S[i] = 0;
    latent->family->accumulate(latent, q->L, keys, values, S, X + D * D);
    FINI_TRY(fini_gauss_factor(latent, S, C, &ridge, err));
    for (int64_t i = 0; i < D * D; i++)
        X[i] = q->root[i];
    fini_spd_lower(fini_spd_of(D, C, D), D, X, D);
    for (int64_t i = 0; i < D * D; i++)
        norm2 += X[i] * X[i];
    *risk = (double)latent->shape.dv * latent->settings.prior * ridge * norm2;
    return FIN_OK;
}

static double draw(const void *p, uint64_t sample, double *scratch)
{
    const model *q = p;
    const fin_latent *latent = q->latent;
    const fin_latent_shape *s = &latent->shape;
    int64_t w = fini_latent_width(latent), Q = q->Q;
    double *keys = scratch, *values = keys + q->L * s->dk, *queries = values + q->L * s->dv;
    double *truth = queries + Q * s->dk, *mean = truth + Q * w, *variance = mean + Q * w;
    double *work = variance + Q, sum = 0;
    fini_sequence sequence = {.seed = q->seed,
                              .sample = sample,
                              .up = FINI_STREAMS_UP,
                              .L = q->L,
                              .Q = Q,
                              .keys = keys,
                              .values = q->variance ? NULL : values,
                              .queries = queries,
                              .truth = q->variance ? NULL : truth};
    fin_error err;
    fin_status status = fini_latent_draw_one(latent, &sequence, work, &err);
    for (int64_t i = 0; q->variance && i < q->L * s->dv; i++)
        values[i] = 0; /* the variance does not depend on them */
    if (!status && q->root) {
        if (!(status = trace(q, keys, values, work, &sum, &err)))
            return sum;
    } else if (!status) {
        const fini_query asked = {Q, queries, mean, q->variance ? variance : NULL};
        status = fini_latent_predict_one(latent, q->L, keys, values, &asked, work, &err);
    }
    if (status)
        return fail(q, sample, status, &err);
    for (int64_t i = 0; i < Q && q->variance; i++)
        sum += (double)s->dv * variance[i];
    for (int64_t i = 0; i < Q * w && !q->variance; i++)
        sum += (truth[i] - mean[i]) * (truth[i] - mean[i]);
    return sum / (double)Q;
}

/* ---- the Bayes risk -------------------------------------------------------------------------- */

/* root root' = Sigma_q; NULL (and no harm) where it is not known, or too large to be worth it. */
static fin_status find_root(const fin_latent *latent, double **root, fin_error *err)
{
    int64_t D = latent->shape.features;
    *root = NULL;
    if (!latent->family->by_keys || !latent->family->linear || D > MOMENT_MOST)
        return FIN_OK;
    FINI_NEW(err, "a risk's moments", double, A, D, D);
    fini_spd moment = fini_spd_of(D, A, D);
    if (fini_features_moment(latent, A) && !fini_spd_factor(&moment, NULL, NULL) &&
        moment.pivot < 0) {
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = i + 1; j < D; j++)
                A[i * D + j] = 0;
        *root = A;
    } else {
        fini_free(A);
    }
    return FIN_OK;
}

/* About what a context costs, in tokens of a cheap one. */
static double weight(const fin_latent *latent, int64_t L, int64_t Q)
{
    const fin_latent_shape *s = &latent->shape;
    double rows = s->statistic == 0 ? (double)L : (double)s->features; /* of a matrix to factor */
    return (double)(L + Q) * (double)(s->dk + s->dv) + rows * rows * (1 + rows / 100) +
           latent->family->cost;
}

static fin_status simulate(const fin_latent *latent, int64_t L, const fin_risk_settings *settings,
                           const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    const fin_latent_shape *s = &latent->shape;
    fin_status inside = FIN_OK;
    fin_error failure;
    uint64_t failed = UINT64_MAX;
    double *root = NULL;
    int64_t Q = s->dk > 0 ? QUERIES : 1;
    fin_status status = fini_latent_check_sizes(latent, 1, L, Q, err);
    if (status || (status = find_root(latent, &root, err)))
        return status;
    model q = {.latent = latent,
               .seed = (uint64_t)settings->seed,
               .L = L,
               .Q = Q,
               .variance = latent->family->by_keys,
               .root = root,
               .status = &inside,
               .failure = &failure,
               .failed = &failed};
    fini_simulation simulation = {.draw = draw,
                                  .model = &q,
                                  .samples = settings->samples,
                                  .scratch = room(&q),
                                  .weight = weight(latent, L, Q),
                                  .what = "Bayes risk of a family"};
    fini_blas_enter();
    /* What fails always fails with two samples too, before minutes are spent. */
    fini_simulation trial = simulation;
    trial.samples = 2;
    if (settings->samples > TRIAL_FROM)
        status = fini_simulate(&trial, NULL, risk, err);
    if (!status)
        status = fini_simulate(&simulation, progress, risk, err);
    fini_blas_leave();
    fini_free(root);
    if (inside) {
        if (err)
            *err = failure;
        return inside;
    }
    return status;
}

fin_status fin_latent_risk(const fin_latent *latent, int64_t L, const fin_risk_settings *settings,
                           const fin_progress *progress, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, latent, risk);
    const fin_family *family = latent->family;
    fin_risk_settings how;
    settings = fini_or_defaults(&fin_risk_table, settings, &how);
    fin_status status = fin_settings_validate(&fin_risk_table, settings, err);
    /* One query, so that an empty urn is refused. */
    if (status || (status = fini_latent_check_sizes(latent, 1, L, 1, err)))
        return status;
    bool closed = family->closed_risk;
    if (settings->method == FIN_METHOD_QUADRATURE ||
        (settings->method == FIN_METHOD_CLOSED && !closed))
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "the Bayes risk of %s has no %s; use %s",
                         family->name,
                         settings->method == FIN_METHOD_CLOSED ? "closed form" : "quadrature",
                         closed ? "closed" : "simulation");
    if (!closed || settings->method == FIN_METHOD_SIMULATION)
        return simulate(latent, L, settings, progress, risk, err);
    *risk = (fin_estimate){family->closed_risk(latent, L), 0, FIN_METHOD_CLOSED, 0, 0};
    return FIN_OK;
}

fin_status fin_latent_risk_long(const fin_latent *latent, int64_t L, double *risk, fin_error *err)
{
    FINI_NEED(err, latent, risk);
    const fin_latent_settings *s = &latent->settings;
    if (!latent->family->long_risk || !latent->family->long_risk(latent))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the risk of a long context, dv noise D / L, needs keys whose features "
                         "vary in all D directions: concept with identity or affine features, or "
                         "mean; every family has the risk after L tokens");
    if (L < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld tokens; a long context has at least 1",
                         (long long)L);
    *risk = (double)s->dv * s->noise * (double)latent->shape.features / (double)L;
    return FIN_OK;
}
