/* One sequence after the other: predict a token, pay for it, see it (formulas: regret.c).
 *
 * Tokens are drawn as queries with their answers: the task tells the truth about these. The regret
 * is summed from predictions, not taken from the formulas that it is compared with. */
#include "lab/regret.h"

#include "math/gram.h"
#include "math/spd.h"

#include <math.h>
#include <string.h>

static void lay_out(fini_regret *w)
{
    fini_arena *arena = &w->arena;
    const fin_latent_shape *shape = &w->shape;
    int64_t T = w->v->own.T, n = w->v->own.sequences,
            D = fini_regret_counts(w) ? 0 : shape->features;
    int64_t Z = fini_regret_counts(w) ? w->v->latent.concepts : 1;
    int64_t width = fini_regret_counts(w) ? shape->outcomes : shape->dv;
    w->queries = fini_take(arena, T * shape->dk, sizeof(double));
    w->answers = fini_take(arena, T * shape->dv, sizeof(double));
    w->truth = fini_take(arena, T * width, sizeof(double));
    w->z = fini_take(arena, shape->latent, sizeof(double));
    w->statistic = fini_take(arena, shape->statistic, sizeof(double));
    w->posterior = fini_take(arena, shape->posterior, sizeof(double));
    w->guess = fini_take(arena, width, sizeof(double));
    w->phi = fini_take(arena, T * D, sizeof(double));
    w->S = fini_take(arena, D * D, sizeof(double));
    w->factor = fini_take(arena, D * D, sizeof(double));
    w->sums = fini_take(arena, w->times * n, sizeof(double));
    w->known = fini_take(arena, w->times * n, sizeof(double));
    w->rate = fini_take(arena, n, sizeof(double));
    w->divergence = fini_take(arena, n, sizeof(double));
    w->nearest = fini_take(arena, Z, sizeof(double));
    w->race_true = fini_take(arena, w->race, sizeof(double));
    w->race_others = fini_take(arena, (Z - 1) * w->race, sizeof(double));
}

/* 1 .. T, evenly on a log scale, each once. */
static void choose_times(fini_regret *w)
{
    int64_t T = w->v->own.T;
    for (int i = 0; i < FINI_REGRET_TIMES; i++) {
        int64_t t = (int64_t)nearbyint(exp(log((double)T) * i / (FINI_REGRET_TIMES - 1)));
        if (w->times == 0 || t > w->at[w->times - 1])
            w->at[w->times++] = t;
    }
    w->race = T + 1 < FINI_REGRET_RACE ? T + 1 : FINI_REGRET_RACE;
}

/* KL(z || z') is a mean over covariates, which are uniform. */
static void find_nearest(fini_regret *w)
{
    const fin_latent_settings *s = &w->v->latent;
    int64_t cells = s->covariates * s->outcomes;
    for (int64_t z = 0; z < s->concepts; z++) {
        w->nearest[z] = INFINITY;
        for (int64_t other = 0; other < s->concepts; other++) {
            const double *p = w->tables + z * cells, *q = w->tables + other * cells;
            double sum = 0;
            for (int64_t i = 0; i < cells; i++)
                sum += p[i] > 0 ? p[i] * log(p[i] / q[i]) / (double)s->covariates : 0;
            if (other != z)
                w->nearest[z] = fmin(w->nearest[z], sum);
        }
    }
}

fin_status fini_regret_open(fini_regret *w, const fini_regret_values *v, const fin_latent *latent,
                            fin_error *err)
{
    *w = (fini_regret){.v = v, .latent = latent, .largest = -INFINITY};
    fin_latent_get_shape(latent, &w->shape);
    choose_times(w);
    FINI_LAY_OUT(err, &w->arena, "sequences", lay_out(w));
    if (fini_regret_counts(w)) {
        FINI_TRY(fini_concept_tables(latent, &w->tables, err));
        find_nearest(w);
    }
    return FIN_OK;
}

void fini_regret_close(fini_regret *w)
{
    fini_free(w->tables);
    fini_arena_close(&w->arena);
}

/* What token t costs: log p(v | z) - log p(v | past). */
static fin_status cost(fini_regret *w, int64_t t, double *out, fin_error *err)
{
    const fin_latent_shape *shape = &w->shape;
    const double *answer = w->answers + t * shape->dv;
    double variance = 0, noise = w->v->latent.noise;
    fin_status status = fin_latent_predict(w->latent, w->statistic, 1, w->queries + t * shape->dk,
                                           w->guess, fini_regret_counts(w) ? NULL : &variance, err);
    *out = 0;
    if (fini_regret_counts(w)) {
        int64_t r = (int64_t)answer[0];
        *out = log(w->truth[t * shape->outcomes + r] / w->guess[r]);
        return status;
    }
    for (int64_t i = 0; i < shape->dv; i++) {
        double far = answer[i] - w->guess[i], near = answer[i] - w->truth[t * shape->dv + i];
        double total = variance + noise;
        *out += 0.5 * (log(total / noise) + far * far / total - near * near / noise);
    }
    return status;
}

/* 1/2 log det(I + prior S / noise) for every number of a value. */
static fin_status information(fini_regret *w, double *out, fin_error *err)
{
    int64_t D = w->shape.features;
    double scale = w->v->latent.prior / w->v->latent.noise;
    for (int64_t i = 0; i < D * D; i++)
        w->factor[i] = scale * w->S[i] + (i % (D + 1) == 0);
    fini_spd A = fini_spd_of(D, w->factor, D);
    FINI_TRY(fini_spd_factor(&A, NULL, err));
    if (A.pivot >= 0)
        return fini_fail(err, FIN_ERR_NUMERIC, "I + prior S / noise is not positive definite");
    *out = 0.5 * (double)w->shape.dv * fini_spd_logdet(A);
    return FIN_OK;
}

static void add_square(const double *phi, int64_t D, double *S)
{
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < D; j++)
            S[i * D + j] += phi[i] * phi[j];
}

static fin_status step_race(fini_regret *w, int64_t seen, fin_error *err)
{
    FINI_TRY(fin_latent_posterior(w->latent, w->statistic, w->posterior, err));
    int64_t z = (int64_t)w->z[0], row = 0;
    for (int64_t k = 0; k < w->v->latent.concepts; k++) {
        double *to = k == z ? w->race_true : w->race_others + row++ * w->race;
        to[seen] = w->posterior[k];
    }
    return FIN_OK;
}

/* Beside the regret of sequence i, what belongs to its time: bound, information, race. */
static fin_status keep(fini_regret *w, int64_t i, int64_t seen, int64_t *time, double sum,
                       fin_error *err)
{
    const fin_latent_settings *s = &w->v->latent;
    bool now = *time < w->times && w->at[*time] == seen;
    fin_status status = FIN_OK;
    if (now && !fini_regret_counts(w))
        status = information(w, &w->known[*time * w->v->own.sequences + i], err);
    if (now)
        w->sums[(*time)++ * w->v->own.sequences + i] = sum;
    if (fini_regret_counts(w)) {
        w->largest = fmax(w->largest, sum);
        w->violations += !(sum <= log((double)s->concepts) + 1e-9);
        if (i == 0 && seen < w->race)
            status = step_race(w, seen, err);
    }
    return status;
}

static fin_status end_race(fini_regret *w, int64_t i, fin_error *err)
{
    int64_t z = (int64_t)w->z[0];
    double second = 0;
    FINI_TRY(fin_latent_posterior(w->latent, w->statistic, w->posterior, err));
    for (int64_t k = 0; k < w->v->latent.concepts; k++)
        second = k != z ? fmax(second, w->posterior[k]) : second;
    if (!(second > 0) && w->v->latent.concepts > 1)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "after T = %lld tokens no other concept has a probability that a number "
                         "can hold; a smaller T helps",
                         (long long)w->v->own.T);
    w->rate[i] = log(w->posterior[z] / second) / (double)w->v->own.T;
    w->divergence[i] = w->nearest[z];
    return FIN_OK;
}

fin_status fini_regret_sequence(fini_regret *w, int64_t i, fin_error *err)
{
    const fin_latent_shape *shape = &w->shape;
    int64_t T = w->v->own.T, D = shape->features, time = 0;
    double sum = 0, more;
    memset(w->statistic, 0, (size_t)shape->statistic * sizeof(double));
    const fin_latent_sample sample = {
        1, 0, T, NULL, NULL, w->queries, w->answers, w->truth, shape->latent ? w->z : NULL};
    fin_status status = fin_latent_draw(w->latent, (uint64_t)i, &sample, err);
    if (!status && !fini_regret_counts(w)) {
        memset(w->S, 0, (size_t)(D * D) * sizeof(double));
        status = fin_latent_features(w->latent, T, w->queries, w->phi, err);
    }
    if (!status && fini_regret_counts(w) && i == 0)
        status = step_race(w, 0, err);
    for (int64_t t = 0; t < T && !status; t++) {
        status = cost(w, t, &more, err);
        if (!status)
            status = fin_latent_accumulate(w->latent, 1, w->queries + t * shape->dk,
                                           w->answers + t * shape->dv, w->statistic, err);
        if (status)
            break;
        sum += more;
        if (!fini_regret_counts(w))
            add_square(w->phi + t * D, D, w->S);
        status = keep(w, i, t + 1, &time, sum, err);
    }
    if (!status && fini_regret_counts(w))
        status = end_race(w, i, err);
    return status;
}
