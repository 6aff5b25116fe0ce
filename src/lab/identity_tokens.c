/* Sufficiency: what may be done to the tokens of a linear concept without changing any answer.
 *
 *     permutation    another order (all forms of attention)
 *     mixing         (Phi, V) -> (O Phi, O V), O a rotation of R^L: S = Phi'Phi and T = V'Phi stay
 *     compression    by QR to at most D + dv pseudo-tokens
 *     merge          the statistics of three parts, added, in place of the tokens
 *     perturbation   the control: eps on one number of one key, which moves statistic and answers
 *
 * `one` is the answer to the first query before, `other` afterwards. */
#include "lab/identity.h"

#include <math.h>
#include <string.h>

enum { QUERIES = 4 };

static fin_status open_concept(const fini_identity_values *values, int64_t model, fini_context *c,
                               fin_latent_settings *s, fin_random *r, fin_error *err)
{
    *c = (fini_context){.latent = NULL};
    FINI_TRY(fini_family_defaults("concept", s, err));
    fini_identity_random(values, model, r);
    s->d = 2 + fin_random_below(r, 4);
    s->dv = 1 + fin_random_below(r, 3);
    s->features = (fin_choice)(model % 3); /* k; 1 and k; with products of two */
    return fini_context_open(c, "concept", s, (uint64_t)(values->own.seed + model), values->own.L,
                             QUERIES, err);
}

/* Room for other tokens and the answers to them. */
typedef struct changed {
    double *phi, *keys, *values; /* (L + dv + D, ..): compression may need D + dv rows */
    double *mean, *variance;     /* (Q, dv) */
    double *work;                /* (L, L) */
    double *statistic, *other;   /* of the family */
    fini_arena arena;
} changed;

static void lay_out(changed *h, const fini_context *c)
{
    int64_t D = c->shape.features, dv = c->shape.dv, rows = c->L + D + dv;
    h->phi = fini_take(&h->arena, rows * D, sizeof(double));
    h->keys = fini_take(&h->arena, rows * c->shape.dk, sizeof(double));
    h->values = fini_take(&h->arena, rows * dv, sizeof(double));
    h->mean = fini_take(&h->arena, c->Q * dv, sizeof(double));
    h->variance = fini_take(&h->arena, c->Q * dv, sizeof(double));
    h->work = fini_take(&h->arena, c->L * c->L, sizeof(double));
    h->statistic = fini_take(&h->arena, c->shape.statistic, sizeof(double));
    h->other = fini_take(&h->arena, c->shape.statistic, sizeof(double));
}

static fin_status open_changed(changed *h, const fini_context *c, fin_error *err)
{
    *h = (changed){.phi = NULL};
    FINI_LAY_OUT(err, &h->arena, "changed tokens", lay_out(h, c));
    return FIN_OK;
}

/* cme on `tokens` rows (phi, values) against cme on the context itself. */
static fin_status compare(const fin_cross_settings *cross, fini_context *c, changed *h,
                          int64_t tokens, fini_trial *t, fin_error *err)
{
    int64_t D = c->shape.features, dv = c->shape.dv;
    const fini_tokens own = {c->L, D, dv, dv, c->phi, c->values};
    const fini_tokens other = {tokens, D, dv, dv, h->phi, h->values};
    FINI_TRY(fini_attend(cross, &own, c->Q, c->phi_q, c->mean, c->variance, err));
    FINI_TRY(fini_attend(cross, &other, c->Q, c->phi_q, h->mean, h->variance, err));
    if (isnan(t->worst))
        t->worst = t->worst_variance = 0;
    fini_widen(c->mean, h->mean, c->Q * dv, &t->worst);
    if (cross->form == FIN_CROSS_CME)
        fini_widen(c->variance, h->variance, c->Q * dv, &t->worst_variance);
    t->one[0] = c->mean[0];
    t->other[0] = h->mean[0];
    return FIN_OK;
}

static void measure_move(const fini_context *c, const changed *h, fini_trial *t)
{
    t->moved = 0;
    fini_widen(c->phi, h->phi, c->L * c->shape.features, &t->moved);
    fini_widen(c->values, h->values, c->L * c->shape.dv, &t->moved);
}

/* A concept, its context, and room for changed tokens: what every identity of this file begins with. */
typedef struct frame {
    const fini_identity_values *values;
    fini_trial *trial;
    fini_context c;
    changed h;
    fin_latent_settings s;
    fin_random r;
} frame;

static fin_status with_frame(const fini_identity_values *values, int64_t model, fini_trial *trial,
                             fin_status (*change)(frame *f, fin_error *err), fin_error *err)
{
    frame f = {.values = values, .trial = trial};
    fin_status status = open_concept(values, model, &f.c, &f.s, &f.r, err);
    if (!status)
        status = open_changed(&f.h, &f.c, err);
    if (!status)
        status = change(&f, err);
    fini_arena_close(&f.h.arena);
    fini_context_close(&f.c);
    return status;
}

/* CHANGE(name) { ... } is the identity of this name, given a frame f. */
#define CHANGE(name)                                                                               \
    static fin_status change_##name(frame *f, fin_error *err);                                     \
    FINI_IDENTITY_RUN(name)                                                                        \
    {                                                                                              \
        return with_frame(values, model, trial, change_##name, err);                               \
    }                                                                                              \
    static fin_status change_##name(frame *f, fin_error *err)

/* Cme on all changed tokens, and how far they moved. */
static fin_status compare_moved(frame *f, fin_error *err)
{
    fin_cross_settings cross = fini_concept_attention(&f->s);
    fin_status status = compare(&cross, &f->c, &f->h, f->c.L, f->trial, err);
    measure_move(&f->c, &f->h, f->trial);
    return status;
}

/* ---- another order --------------------------------------------------------------------------- */

/* Fisher and Yates, from inside out: token l takes a place among the first l + 1, and what was
 * there goes to place l. */
static void shuffle(fin_random *r, const fini_context *c, changed *h)
{
    size_t D = (size_t)c->shape.features, dv = (size_t)c->shape.dv;
    for (int64_t l = 0; l < c->L; l++) {
        int64_t to = fin_random_below(r, l + 1);
        memmove(h->phi + l * (int64_t)D, h->phi + to * (int64_t)D, D * sizeof(double));
        memmove(h->values + l * (int64_t)dv, h->values + to * (int64_t)dv, dv * sizeof(double));
        memcpy(h->phi + to * (int64_t)D, c->phi + l * (int64_t)D, D * sizeof(double));
        memcpy(h->values + to * (int64_t)dv, c->values + l * (int64_t)dv, dv * sizeof(double));
    }
}

CHANGE(permutation)
{
    static const fin_choice forms[] = {FIN_CROSS_CME, FIN_CROSS_SOFTMAX, FIN_CROSS_NW};
    fin_status status = FIN_OK;
    shuffle(&f->r, &f->c, &f->h);
    for (int i = 0; i < 3 && !status; i++) {
        fin_cross_settings cross = fini_concept_attention(&f->s);
        cross.form = forms[i];
        if (cross.form == FIN_CROSS_NW)
            cross.kernel = FIN_KERNEL_RBF;
        status = compare(&cross, &f->c, &f->h, f->c.L, f->trial, err);
    }
    if (!status)
        measure_move(&f->c, &f->h, f->trial);
    return status;
}

/* ---- orthogonal mixing ----------------------------------------------------------------------- */

static void mix(int64_t n, int64_t columns, const double *O, const double *from, double *to)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < columns; k++) {
            to[i * columns + k] = 0;
            for (int64_t j = 0; j < n; j++)
                to[i * columns + k] += O[i * n + j] * from[j * columns + k];
        }
}

CHANGE(mixing)
{
    const fini_context *c = &f->c;
    fin_random_rotation(&f->r, c->L, f->h.work);
    mix(c->L, c->shape.features, f->h.work, c->phi, f->h.phi);
    mix(c->L, c->shape.dv, f->h.work, c->values, f->h.values);
    return compare_moved(f, err);
}

/* ---- fewer tokens ---------------------------------------------------------------------------- */

CHANGE(compression)
{
    fini_context *c = &f->c;
    fin_cross_settings cross = fini_concept_attention(&f->s);
    int64_t count = 0;
    fin_status status = fin_latent_compress(c->latent, c->L, c->keys, c->values, &count, f->h.phi,
                                            f->h.values, err);
    if (status)
        return status;
    f->trial->tokens = (double)count;
    return compare(&cross, c, &f->h, count, f->trial, err);
}

/* The context is cut at a third and at two thirds; the parts are added in the other order. */
static fin_status merge_parts(const fini_context *c, changed *h, fin_error *err)
{
    for (int part = 2; part >= 0; part--) {
        int64_t first = c->L * part / 3, end = c->L * (part + 1) / 3;
        memset(h->other, 0, (size_t)c->shape.statistic * sizeof(double));
        FINI_TRY(fin_latent_accumulate(c->latent, end - first, c->keys + first * c->shape.dk,
                                       c->values + first * c->shape.dv, h->other, err));
        FINI_TRY(fin_latent_merge(c->latent, h->other, h->statistic, err));
    }
    return FIN_OK;
}

CHANGE(merge)
{
    fini_context *c = &f->c;
    changed *h = &f->h;
    fini_trial *t = f->trial;
    fin_status status = merge_parts(c, h, err);
    if (!status)
        status = fin_latent_predict(c->latent, h->statistic, c->Q, c->queries, h->mean, h->variance,
                                    err);
    if (!status)
        status = fin_latent_predict_tokens(c->latent, c->L, c->keys, c->values, c->Q, c->queries,
                                           c->mean, c->variance, err);
    if (status)
        return status;
    t->worst = t->worst_variance = 0;
    fini_widen(c->mean, h->mean, c->Q * c->shape.dv, &t->worst);
    fini_widen(c->variance, h->variance, c->Q, &t->worst_variance);
    t->one[0] = c->mean[0];
    t->other[0] = h->mean[0];
    return FIN_OK;
}

/* ---- the control ----------------------------------------------------------------------------- */

/* Changes of the statistic beside those of the answers: neither may stay. */
CHANGE(perturbation)
{
    const fini_context *c = &f->c;
    changed *h = &f->h;
    memcpy(h->keys, c->keys, (size_t)(c->L * c->shape.dk) * sizeof(double));
    memcpy(h->values, c->values, (size_t)(c->L * c->shape.dv) * sizeof(double));
    h->keys[0] += f->values->control.eps;
    fin_status status = fin_latent_features(c->latent, c->L, h->keys, h->phi, err);
    if (!status)
        status = fin_latent_accumulate(c->latent, c->L, c->keys, c->values, h->statistic, err);
    if (!status)
        status = fin_latent_accumulate(c->latent, c->L, h->keys, h->values, h->other, err);
    if (status)
        return status;
    f->trial->statistic = 0;
    fini_widen(h->statistic, h->other, c->shape.statistic, &f->trial->statistic);
    return compare_moved(f, err);
}
