/* Softmax attention that is a posterior, or a kernel estimate, exactly.
 *
 *     memory     Bayesian model averaging over finitely many concepts is softmax attention to a
 *                memory of them: the query is the table of counts N(c, r) and a 1, the keys are
 *                log P_z (flattened) and log pi_z, the values are the rows P_z(. | c_q)
 *     density    on the circle, the mean of v under the kernel estimate of p(v | q),
 *                    Phat(v | q) = sum_l w_l(q) vmf(v; v_l, kappa_v),  w = softmax(kappa q.k_l),
 *                is A_2(kappa_v) times softmax attention, at every L; the integral is a sum over
 *                512 angles
 *     nw         on the unit sphere Nadaraya-Watson with the kernel rbf is softmax, because
 *                |q - k|^2 = 2 - 2 q.k there  */
#include "finetti/theory_latent.h"
#include "lab/identity.h"
#include "base/constants.h"
#include "theory/sphere.h"

#include <math.h>
#include <string.h>

/* ---- a memory of concepts -------------------------------------------------------------------- */

static double uniform_between(fin_random *r, double low, double high)
{
    return low + (high - low) * fin_random_uniform(r);
}

/* Posterior and averaged prediction from products of probabilities in long double, in the order of
 * the tokens: no logarithm, no counts. */
static void brute_force(const fini_context *c, const double *tables, int64_t concepts,
                        int64_t covariates, long double *posterior, double *prediction)
{
    int64_t R = c->shape.outcomes;
    long double sum = 0;
    for (int64_t z = 0; z < concepts; z++) {
        posterior[z] = 1;
        for (int64_t l = 0; l < c->L; l++)
            posterior[z] *=
                tables[(z * covariates + (int64_t)c->keys[l]) * R + (int64_t)c->values[l]];
        sum += posterior[z];
    }
    for (int64_t q = 0; q < c->Q; q++)
        for (int64_t r = 0; r < R; r++) {
            long double mean = 0;
            for (int64_t z = 0; z < concepts; z++)
                mean +=
                    posterior[z] / sum * tables[(z * covariates + (int64_t)c->queries[q]) * R + r];
            prediction[q * R + r] = (double)mean;
        }
}

/* The memory as a context: keys (Z, C R + 1), values (Z, Q R), one query (C R + 1). */
static fin_status ask_memory(const fini_context *c, const double *tables, int64_t concepts,
                             int64_t covariates, double *room, double *prediction, fin_error *err)
{
    int64_t R = c->shape.outcomes, cells = covariates * R, dk = cells + 1, dv = c->Q * R;
    double *keys = room, *values = keys + concepts * dk, *query = values + concepts * dv;
    fin_cross_settings cross;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    cross.form = FIN_CROSS_SOFTMAX;
    cross.temperature = 1;
    memset(query, 0, (size_t)dk * sizeof *query);
    for (int64_t l = 0; l < c->L; l++)
        query[(int64_t)c->keys[l] * R + (int64_t)c->values[l]] += 1;
    query[cells] = 1;
    for (int64_t z = 0; z < concepts; z++) {
        for (int64_t i = 0; i < cells; i++)
            keys[z * dk + i] = log(tables[z * cells + i]);
        keys[z * dk + cells] = -log((double)concepts); /* the prior */
        for (int64_t q = 0; q < c->Q; q++)
            memcpy(values + z * dv + q * R, tables + z * cells + (int64_t)c->queries[q] * R,
                   (size_t)R * sizeof(double));
    }
    return fini_attend(&cross, &(fini_tokens){concepts, dk, dv, dv, keys, values}, 1, query,
                       prediction, NULL, err);
}

enum { MEMORY_QUERIES = 3 };

/* Attention, products of probabilities, and the family's own prediction. */
static fin_status three_predictions(const fini_context *c, int64_t concepts, int64_t covariates,
                                    double *tables, fini_trial *t, fin_error *err)
{
    int64_t R = c->shape.outcomes, all = c->Q * R, cells = covariates * R;
    int64_t room_size = concepts * (cells + 1 + all) + cells + 1;
    double *room = fini_alloc_array(room_size + 3 * all, sizeof *room);
    long double *posterior = fini_alloc_array(concepts, sizeof *posterior);
    fin_status status = FIN_OK;
    if (!room || !posterior)
        status = fini_fail_memory(err, (size_t)room_size * sizeof *room, "a memory");
    double *attention = room ? room + room_size : NULL;
    if (!status)
        status = ask_memory(c, tables, concepts, covariates, room, attention, err);
    if (!status)
        status = fin_latent_predict_tokens(c->latent, c->L, c->keys, c->values, c->Q, c->queries,
                                           attention + 2 * all, NULL, err);
    if (!status) {
        brute_force(c, tables, concepts, covariates, posterior, attention + all);
        t->worst = 0;
        fini_widen(attention, attention + all, all, &t->worst);
        fini_widen(attention + 2 * all, attention + all, all, &t->worst);
        t->one[0] = attention[0];
        t->other[0] = attention[all];
        t->third[0] = attention[2 * all];
    }
    fini_free_all(posterior, room);
    return status;
}

/* Small tables, so that all of their rows are met soon (fini_concept_tables). */
FINI_IDENTITY_RUN(memory)
{
    fin_latent_settings s;
    fin_random r;
    fini_context c = {.latent = NULL};
    fin_status status = fini_family_defaults("concepts", &s, err);
    if (status)
        return status;
    fini_identity_random(values, model, &r);
    s.concepts = 2 + fin_random_below(&r, 15);
    s.covariates = 1 + fin_random_below(&r, 5);
    s.outcomes = 2 + fin_random_below(&r, 4);
    int64_t L = 1 + fin_random_below(&r, values->own.L);
    status = fini_context_open(&c, "concepts", &s, (uint64_t)(values->own.seed + model), L,
                               MEMORY_QUERIES, err);
    double *tables = NULL;
    if (!status)
        status = fini_concept_tables(c.latent, &tables, err);
    if (!status)
        status = three_predictions(&c, s.concepts, s.covariates, tables, trial, err);
    fini_free(tables);
    fini_context_close(&c);
    return status;
}

/* ---- a density estimate on the circle -------------------------------------------------------- */

enum { ANGLES = 512 };

static void on_circle(double angle, double *x)
{
    x[0] = cos(angle);
    x[1] = sin(angle);
}

/* D[a][l] = exp(kappa_v (v_a.v_l - 1)) at the angles: the density around a value, but for a factor
 * that is the same for all. */
static void densities(int64_t L, const double *values, double kappa_v, double *D)
{
    for (int a = 0; a < ANGLES; a++) {
        double v[2];
        on_circle(2 * FINI_PI * a / ANGLES, v);
        for (int64_t l = 0; l < L; l++)
            D[a * L + l] = exp(kappa_v * (v[0] * values[2 * l] + v[1] * values[2 * l + 1] - 1));
    }
}

/* int v Phat(v | q) dv, both numbers of it. The density is normalised by the same sum over angles,
 * which is exact to rounding for a periodic function as smooth as this. */
static void mean_of_density(int64_t L, const double *weights, const double *D, double mean[2])
{
    double total = 0;
    mean[0] = mean[1] = 0;
    for (int a = 0; a < ANGLES; a++) {
        double v[2], density = 0;
        on_circle(2 * FINI_PI * a / ANGLES, v);
        for (int64_t l = 0; l < L; l++)
            density += weights[l] * D[a * L + l];
        total += density;
        mean[0] += density * v[0];
        mean[1] += density * v[1];
    }
    mean[0] /= total;
    mean[1] /= total;
}

/* w_l of one query, but for a factor. */
static void weigh(int64_t L, const double *keys, const double *query, double kappa, double *weights)
{
    double largest = -INFINITY;
    for (int64_t l = 0; l < L; l++) {
        weights[l] = kappa * (query[0] * keys[2 * l] + query[1] * keys[2 * l + 1]);
        largest = fmax(largest, weights[l]);
    }
    for (int64_t l = 0; l < L; l++)
        weights[l] = exp(weights[l] - largest);
}

/* work: (ANGLES + 1, L). */
static fin_status density_at(int64_t L, const double *keys, const double *values, double kappa,
                             double kappa_v, double *work, fini_trial *t, fin_error *err)
{
    enum { Q = FINI_DENSITY_POINTS };
    double queries[2 * Q], attention[2 * Q], density[2 * Q], A = fini_sphere_mean(2, kappa_v);
    fin_cross_settings cross;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    cross.form = FIN_CROSS_SOFTMAX;
    cross.temperature = 1 / kappa;
    for (int q = 0; q < Q; q++) {
        t->x[q] = 2 * FINI_PI * (q + 0.5) / Q - FINI_PI;
        on_circle(t->x[q], queries + 2 * q);
    }
    FINI_TRY(fini_attend(&cross, &(fini_tokens){L, 2, 2, 2, keys, values}, Q, queries, attention,
                         NULL, err));
    densities(L, values, kappa_v, work + L);
    for (int q = 0; q < Q; q++) {
        weigh(L, keys, queries + 2 * q, kappa, work);
        mean_of_density(L, work, work + L, density + 2 * q);
        attention[2 * q] *= A;
        attention[2 * q + 1] *= A;
        t->one[q] = attention[2 * q];
        t->other[q] = density[2 * q];
    }
    t->worst = 0;
    fini_widen(attention, density, 2 * Q, &t->worst);
    return FIN_OK;
}

/* Values lie around twice the angle of their key, so that there is something to see. */
FINI_IDENTITY_RUN(density)
{
    fin_random r;
    fini_identity_random(values, model, &r);
    int64_t L = 1 + fin_random_below(&r, values->own.L);
    double kappa = exp(uniform_between(&r, log(0.2), log(20)));
    double kappa_v = exp(uniform_between(&r, log(0.2), log(20)));
    double *room = fini_alloc_array((5 + ANGLES) * L, sizeof *room);
    if (!room)
        return fini_fail_memory(err, (size_t)((5 + ANGLES) * L) * sizeof *room, "densities");
    double *keys = room, *targets = room + 2 * L;
    for (int64_t l = 0; l < L; l++) {
        double angle = uniform_between(&r, -FINI_PI, FINI_PI);
        on_circle(angle, keys + 2 * l);
        on_circle(2 * angle + 0.5 * fin_random_normal(&r), targets + 2 * l);
    }
    fin_status status = density_at(L, keys, targets, kappa, kappa_v, room + 4 * L, trial, err);
    fini_free(room);
    return status;
}

/* ---- Nadaraya and Watson --------------------------------------------------------------------- */

FINI_IDENTITY_RUN(nw)
{
    fin_latent_settings s;
    fin_random r;
    fini_context c = {.latent = NULL};
    fin_cross_settings cross;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    fin_status status = fini_family_defaults("concept", &s, err);
    if (status)
        return status;
    fini_identity_random(values, model, &r);
    s.d = 2 + fin_random_below(&r, 7);
    s.dv = 1 + fin_random_below(&r, 3);
    s.keys = FIN_KEYS_SPHERE; /* queries too */
    double kappa = exp(uniform_between(&r, log(0.2), log(50)));
    int64_t L = 1 + fin_random_below(&r, values->own.L);
    status = fini_context_open(&c, "concept", &s, (uint64_t)(values->own.seed + model), L, 1, err);
    const fini_tokens tokens = {L, s.d, s.dv, s.dv, c.keys, c.values};
    double softmax[3];
    cross.form = FIN_CROSS_SOFTMAX;
    cross.temperature = 1 / kappa;
    if (!status)
        status = fini_attend(&cross, &tokens, 1, c.queries, softmax, NULL, err);
    cross.form = FIN_CROSS_NW;
    cross.kernel = FIN_KERNEL_RBF;
    cross.scale = 1 / sqrt(kappa);
    if (!status)
        status = fini_attend(&cross, &tokens, 1, c.queries, c.mean, NULL, err);
    if (!status) {
        trial->worst = 0;
        fini_widen(softmax, c.mean, s.dv, &trial->worst);
        trial->one[0] = c.mean[0];
        trial->other[0] = softmax[0];
    }
    fini_context_close(&c);
    return status;
}
