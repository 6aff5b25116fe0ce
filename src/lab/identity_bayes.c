/* bma: three ways to the posterior of a random model must agree.
 *
 *     one      cme attention (fin_cross)
 *     other    Kalman's recursion, a token at a time: on the latent for a linear concept
 *              (fin_latent_filter), on the values of the function for a Gaussian process
 *     third    the joint Gaussian of tokens and query, conditioned by elimination in long double
 *
 * Odd models are Gaussian processes, even ones linear concepts; kernels, features, sizes, prior and
 * noise are random, and cme takes its dual and its primal method in turn. */
#include "lab/identity.h"

#include <math.h>
#include <string.h>

enum { QUERIES = 4 };

static double log_uniform(fin_random *r, double low, double high)
{
    return low * pow(high / low, fin_random_uniform(r));
}

/* Exponential and polynomial kernels take keys on the sphere: a product of long keys would make
 * covariances of very different size, and cond(G) with them. */
static void choose(int64_t model, fin_random *r, fin_latent_settings *s)
{
    static const int kernels[] = {FIN_KERNEL_RBF, FIN_KERNEL_MATERN32, FIN_KERNEL_MATERN52,
                                  FIN_KERNEL_EXPONENTIAL, FIN_KERNEL_POLYNOMIAL};
    s->d = 1 + fin_random_below(r, 6);
    s->dv = 1 + fin_random_below(r, 3);
    s->prior = log_uniform(r, 0.3, 3);
    s->noise = log_uniform(r, 0.01, 1);
    s->features = (fin_choice)(model / 2 % 4);
    s->D = 4 + fin_random_below(r, 29);
    s->kernel = kernels[model / 2 % 5];
    s->scale = log_uniform(r, 0.5, 2);
    bool product = s->kernel == FIN_KERNEL_EXPONENTIAL || s->kernel == FIN_KERNEL_POLYNOMIAL;
    s->keys = model % 2 == 1 && product ? FIN_KEYS_SPHERE : FIN_KEYS_GAUSSIAN;
}

/* ---- the joint covariance -------------------------------------------------------------------- */

/* Of the function at tokens and queries: K (L, L) without noise, k (L, Q), own (Q). */
typedef struct joint {
    double *K, *k, *own;
    fini_arena arena;
} joint;

static void lay_out(joint *j, int64_t L, int64_t Q)
{
    j->K = fini_take(&j->arena, L * L, sizeof(double));
    j->k = fini_take(&j->arena, L * Q, sizeof(double));
    j->own = fini_take(&j->arena, Q, sizeof(double));
}

static double product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void covariances_concept(const fini_context *c, joint *j)
{
    int64_t L = c->L, Q = c->Q, D = c->shape.features;
    for (int64_t a = 0; a < L; a++) {
        for (int64_t b = 0; b < L; b++)
            j->K[a * L + b] = product(c->phi + a * D, c->phi + b * D, D);
        for (int64_t b = 0; b < Q; b++)
            j->k[a * Q + b] = product(c->phi + a * D, c->phi_q + b * D, D);
    }
    for (int64_t b = 0; b < Q; b++)
        j->own[b] = product(c->phi_q + b * D, c->phi_q + b * D, D);
}

static fin_status covariances_process(const fini_context *c, const fin_latent_settings *s, joint *j,
                                      fin_error *err)
{
    int64_t L = c->L, Q = c->Q, d = c->shape.dk;
    const fin_covariance kernel = {s->kernel, s->scale, s->degree, s->offset};
    FINI_TRY(fin_covariance_matrix(&kernel, d, L, c->keys, L, c->keys, j->K, err));
    FINI_TRY(fin_covariance_matrix(&kernel, d, L, c->keys, Q, c->queries, j->k, err));
    for (int64_t b = 0; b < Q; b++)
        FINI_TRY(fin_covariance_matrix(&kernel, d, 1, c->queries + b * d, 1, c->queries + b * d,
                                       j->own + b, err));
    return FIN_OK;
}

static fin_status joint_open(joint *j, const fini_context *c, const fin_latent_settings *s,
                             fin_error *err)
{
    *j = (joint){.K = NULL};
    lay_out(j, c->L, c->Q);
    fin_status status = fini_arena_open(&j->arena, "covariances", err);
    if (status)
        return status;
    lay_out(j, c->L, c->Q);
    if (c->phi)
        covariances_concept(c, j);
    else
        status = covariances_process(c, s, j, err);
    for (int64_t i = 0; i < c->L * c->L; i++)
        j->K[i] *= s->prior;
    for (int64_t i = 0; i < c->L * c->Q; i++)
        j->k[i] *= s->prior;
    for (int64_t i = 0; i < c->Q; i++)
        j->own[i] *= s->prior;
    return status;
}

/* ---- Kalman's recursion ---------------------------------------------------------------------- */

/* Means and covariances of the latent -> of the function at the queries. */
static fin_status kalman_concept(const fini_context *c, double *mean, double *variance,
                                 fin_error *err)
{
    int64_t D = c->shape.features, dv = c->shape.dv;
    FINI_OWN(err, "a posterior", double, posterior, c->shape.posterior, 1);
    FINI_TRY(fin_latent_filter(c->latent, c->L, c->keys, c->values, posterior, err));
    const double *Z = posterior, *C = posterior + dv * D;
    for (int64_t q = 0; q < c->Q; q++) {
        const double *phi = c->phi_q + q * D;
        for (int64_t i = 0; i < dv; i++)
            mean[q * dv + i] = product(Z + i * D, phi, D);
        variance[q] = 0;
        for (int64_t i = 0; i < D; i++)
            variance[q] += phi[i] * product(C + i * D, phi, D);
    }
    return FIN_OK;
}

/* The state is the function at all tokens and queries, n = L + Q numbers with covariance C (n, n)
 * and mean M (n, dv). Token l tells number l of it:  g = C_l / (C_ll + noise);  M += g (v - M_l);
 * C -= g C_l'. */
static void kalman_steps(const fini_context *c, double noise, int64_t n, double *C, double *M,
                         double *g)
{
    int64_t dv = c->shape.dv;
    for (int64_t l = 0; l < c->L; l++) {
        double scale = 1 / (C[l * n + l] + noise);
        for (int64_t i = 0; i < n; i++)
            g[i] = C[i * n + l] * scale;
        for (int64_t v = 0; v < dv; v++) {
            double news = c->values[l * dv + v] - M[l * dv + v];
            for (int64_t i = 0; i < n; i++)
                M[i * dv + v] += g[i] * news;
        }
        double *row = g + n;
        memcpy(row, C + l * n, (size_t)n * sizeof(double));
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++)
                C[i * n + k] -= g[i] * row[k];
    }
}

/* Queries do not see each other here, so that each is done with the tokens alone. */
static fin_status kalman_process(const fini_context *c, const joint *j, double noise, double *mean,
                                 double *variance, fin_error *err)
{
    int64_t L = c->L, Q = c->Q, n = L + 1, dv = c->shape.dv;
    FINI_OWN(err, "a covariance", double, C, n, n + dv + 2);
    for (int64_t q = 0; q < Q; q++) {
        double *M = C + n * n;
        memset(M, 0, (size_t)(n * dv) * sizeof *M);
        for (int64_t a = 0; a < L; a++) {
            memcpy(C + a * n, j->K + a * L, (size_t)L * sizeof *C);
            C[a * n + L] = C[L * n + a] = j->k[a * Q + q];
        }
        C[L * n + L] = j->own[q];
        kalman_steps(c, noise, n, C, M, M + n * dv);
        memcpy(mean + q * dv, M + L * dv, (size_t)dv * sizeof *mean);
        variance[q] = C[L * n + L];
    }
    return FIN_OK;
}

/* ---- all three ------------------------------------------------------------------------------- */

typedef struct answers {
    double cme[QUERIES * 4], cme_variance[QUERIES * 4]; /* (Q, dv), at most 3 columns */
    double kalman[QUERIES * 4], kalman_variance[QUERIES];
    double joint[QUERIES * 4], joint_variance[QUERIES];
} answers;

static fin_status attend(const fini_context *c, const fin_latent_settings *s, int64_t model,
                         answers *a, fin_error *err)
{
    fin_cross_settings cross = fini_concept_attention(s);
    int64_t dv = c->shape.dv;
    if (c->phi) {
        const fini_tokens features = {c->L, c->shape.features, dv, dv, c->phi, c->values};
        cross.method = model / 2 % 2 ? FIN_CROSS_DUAL : FIN_CROSS_PRIMAL;
        return fini_attend(&cross, &features, c->Q, c->phi_q, a->cme, a->cme_variance, err);
    }
    cross.kernel = s->kernel;
    cross.scale = s->scale;
    cross.degree = s->degree;
    cross.offset = s->offset;
    const fini_tokens tokens = {c->L, c->shape.dk, dv, dv, c->keys, c->values};
    return fini_attend(&cross, &tokens, c->Q, c->queries, a->cme, a->cme_variance, err);
}

static fin_status three_ways(const fini_context *c, const fin_latent_settings *s, int64_t model,
                             joint *j, answers *a, fin_error *err)
{
    fin_status status = attend(c, s, model, a, err);
    if (!status)
        status = c->phi ? kalman_concept(c, a->kalman, a->kalman_variance, err)
                        : kalman_process(c, j, s->noise, a->kalman, a->kalman_variance, err);
    for (int64_t i = 0; i < c->L; i++)
        j->K[i * c->L + i] += s->noise;
    if (!status)
        status = fini_condition(&(fini_joint){c->L, c->Q, j->K, j->k, j->own}, c->shape.dv,
                                c->values, a->joint, a->joint_variance, err);
    return status;
}

/* 1 + prior L max k(a, a) / noise bounds the condition number. */
static void compare(const fini_context *c, const joint *j, double noise, const answers *a,
                    fini_trial *t)
{
    int64_t dv = c->shape.dv;
    double largest = 0, variance[QUERIES];
    for (int64_t q = 0; q < c->Q; q++)
        variance[q] = a->cme_variance[q * dv];
    t->worst = t->worst_variance = 0;
    fini_widen(a->cme, a->kalman, c->Q * dv, &t->worst);
    fini_widen(a->cme, a->joint, c->Q * dv, &t->worst);
    fini_widen(a->kalman, a->joint, c->Q * dv, &t->worst);
    fini_widen(variance, a->kalman_variance, c->Q, &t->worst_variance);
    fini_widen(variance, a->joint_variance, c->Q, &t->worst_variance);
    fini_widen(a->kalman_variance, a->joint_variance, c->Q, &t->worst_variance);
    for (int64_t i = 0; i < c->L; i++)
        largest = fmax(largest, j->K[i * c->L + i] - noise);
    t->condition = 1 + (double)c->L * largest / noise;
    t->one[0] = a->cme[0];
    t->other[0] = a->kalman[0];
    t->third[0] = a->joint[0];
}

FINI_IDENTITY_RUN(bma)
{
    const char *family = model % 2 ? "process" : "concept";
    fin_latent_settings s;
    fin_random r;
    fini_context c = {.latent = NULL};
    joint j = {.K = NULL};
    answers a;
    fini_identity_random(values, model, &r);
    fin_status status = fini_family_defaults(family, &s, err);
    if (status)
        return status;
    choose(model, &r, &s);
    int64_t L = 1 + fin_random_below(&r, values->own.L);
    status =
        fini_context_open(&c, family, &s, (uint64_t)(values->own.seed + model), L, QUERIES, err);
    if (!status)
        status = joint_open(&j, &c, &s, err);
    if (!status)
        status = three_ways(&c, &s, model, &j, &a, err);
    if (!status)
        compare(&c, &j, s.noise, &a, trial);
    fini_arena_close(&j.arena);
    fini_context_close(&c);
    return status;
}
