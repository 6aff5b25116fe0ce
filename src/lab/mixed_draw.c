/* Sequences of the linear concept, mixed: see mixed.h. Sequence i is a function of (seed, stream,
 * i) alone. */
#include "lab/mixed.h"

#include "finetti/random.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fini_mixed_task
FIN_TABLE(, fini_mixed_table, "concept", FINI_MIXED_FIELDS);

enum { P = FINI_MIXED_TOKEN };

/* ---- the world ------------------------------------------------------------------------------- */

/* B = R diag(s) Q with s from 1/2 to 2: no direction of a token is lost, none is where it was. */
void fini_mixed_world_make(fini_mixed_world *world, const fini_mixed_task *task, uint64_t seed)
{
    int64_t p = task->d + task->dv;
    double R[P * P], Q[P * P];
    fin_random r;
    *world = (fini_mixed_world){.task = *task, .p = p, .seed = seed};
    fin_random_open(&r, seed, FINI_STREAM_SMALL_OWN, 0);
    fin_random_rotation(&r, p, R);
    fin_random_rotation(&r, p, Q);
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < p; j++)
            for (int64_t k = 0; k < p; k++) {
                double s = 0.5 * pow(4, (double)k / (double)(p - 1));
                world->B[i * p + j] += R[i * p + k] * s * Q[k * p + j];
                world->inverse[i * p + j] += Q[k * p + i] / s * R[j * p + k];
            }
    for (int64_t i = 0; i < task->d; i++)
        world->root[i * task->d + i] = 1;
}

bool fini_mixed_world_queries(fini_mixed_world *world, const double *covariance)
{
    int64_t d = world->task.d;
    for (int64_t i = 0; i < d * d; i++)
        world->root[i] = covariance[i] * (double)d; /* keys have covariance 1 / d */
    if (!fini_hand_cholesky(d, world->root))
        return false;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = i + 1; j < d; j++)
            world->root[i * d + j] = 0;
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------- */

void fini_mixed_set_take(fini_mixed_set *set, fini_arena *arena, bool tokens)
{
    const fini_mixed_task *t = &set->world->task;
    int64_t n = set->n, p = set->world->p, all = t->L + t->masked;
    set->moments = fini_take(arena, n * p * p, sizeof(double));
    set->q = fini_take(arena, n * t->masked * t->d, sizeof(double));
    set->y = fini_take(arena, n * t->masked * t->dv, sizeof(double));
    set->z = fini_take(arena, n * t->dv * t->d, sizeof(double));
    set->mean = fini_take(arena, n * t->dv * t->d, sizeof(double));
    set->label = fini_take(arena, n, sizeof(double));
    set->room = fini_take(arena, t->dv * t->d + all * p, sizeof(double));
    if (tokens)
        set->tokens = fini_take(arena, n * t->L * p, sizeof(double));
}

static void normalise(int64_t n, int64_t d, double *rows)
{
    for (int64_t i = 0; i < n; i++) {
        double norm2 = 0;
        for (int64_t j = 0; j < d; j++)
            norm2 += rows[i * d + j] * rows[i * d + j];
        for (int64_t j = 0; j < d && norm2 > 0; j++)
            rows[i * d + j] /= sqrt(norm2);
    }
}

/* mean = T (S + lam)^-1 with S = K'K and T = V'K, which are blocks of the moments of (k, v). */
static void posterior(const fini_mixed_task *t, int64_t p, const double *moments, double *mean)
{
    double A[FINI_MIXED_KEYS * FINI_MIXED_KEYS];
    int64_t d = t->d;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            A[i * d + j] = moments[i * p + j] + (i == j ? t->noise / t->prior : 0);
    bool good = fini_hand_cholesky(d, A);
    for (int64_t i = 0; i < t->dv; i++) {
        memcpy(mean + i * d, moments + (d + i) * p, (size_t)d * sizeof *mean);
        if (good)
            fini_hand_solve(d, A, mean + i * d);
    }
}

/* out = A B, with B_kj at B[k * down + j * across]. */
static void multiply(int64_t p, const double *A, const double *B, int64_t down, int64_t across,
                     double *out)
{
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < p; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p; k++)
                sum += A[i * p + k] * B[k * down + j * across];
            out[i * p + j] = sum;
        }
}

/* out = B M B'. */
static void mix_moments(int64_t p, const double *B, const double *M, double *out)
{
    double half[P * P];
    multiply(p, B, M, p, 1, half);
    multiply(p, half, B, 1, p, out);
}

static void add_moments(int64_t p, const double *x, double *M)
{
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j <= i; j++)
            M[i * p + j] += x[i] * x[j];
}

static void apply(int64_t rows, int64_t columns, const double *A, const double *x, double *out)
{
    for (int64_t i = 0; i < rows; i++) {
        out[i] = 0;
        for (int64_t j = 0; j < columns; j++)
            out[i] += A[i * columns + j] * x[j];
    }
}

static void one(fini_mixed_set *set, int64_t i, uint32_t stream, uint64_t sample)
{
    const fini_mixed_world *world = set->world;
    const fini_mixed_task *t = &world->task;
    int64_t d = t->d, dv = t->dv, p = world->p, all = t->L + t->masked;
    double M[P * P] = {0}, pair[P], x[P], *z = set->z + i * dv * d, noise = sqrt(t->noise);
    double *keys = set->room, *values = keys + all * d, *concept = values + all * dv;
    fin_random_normals_f64(world->seed, stream, sample, 0, all * p + dv * d, set->room);
    for (int64_t j = 0; j < dv * d; j++)
    z[j] = concept[j] * sqrt(t->prior);
    normalise(all, d, keys);
    for (int64_t l = 0; l < all; l++) {
        int64_t m = l - t->L; /* masked ones come last */
        memcpy(pair, keys + l * d, (size_t)d * sizeof *pair);
        if (m >= 0)
            apply(d, d, world->root, keys + l * d, pair);
        apply(dv, d, z, pair, pair + d);
        for (int64_t j = 0; j < dv; j++)
            pair[d + j] += noise * values[l * dv + j];
        if (m >= 0) {
            memcpy(set->q + (i * t->masked + m) * d, pair, (size_t)d * sizeof *pair);
            memcpy(set->y + (i * t->masked + m) * dv, pair + d, (size_t)dv * sizeof *pair);
            continue;
        }
        add_moments(p, pair, M);
        if (!set->tokens)
            continue;
        apply(p, p, world->B, pair, x);
        for (int64_t c = 0; c < p; c++)
            set->tokens[(i * p + c) * t->L + l] = x[c];
    }
    fini_hand_mirror(p, M);
    posterior(t, p, M, set->mean + i * dv * d);
    mix_moments(p, world->B, M, set->moments + i * p * p);
}

void fini_mixed_draw(fini_mixed_set *set, uint32_t stream, uint64_t first)
{
    for (int64_t i = 0; i < set->n; i++)
        one(set, i, stream, first + (uint64_t)i);
}

void fini_mixed_label_draw(fini_mixed_set *set, const double *A, double noise, fin_random *r)
{
    int64_t D = set->world->task.dv * set->world->task.d;
    for (int64_t i = 0; i < set->n; i++)
        set->label[i] = fini_hand_dot(D, A, set->z + i * D) + sqrt(noise) * fin_random_normal(r);
}

fini_mixed_set fini_mixed_part(const fini_mixed_set *set, int64_t first, int64_t n)
{
    const fini_mixed_task *t = &set->world->task;
    fini_mixed_set part = *set;
    int64_t p = set->world->p;
    part.n = n;
    part.tokens = set->tokens ? set->tokens + first * t->L * p : NULL;
    part.moments += first * p * p;
    part.q += first * t->masked * t->d;
    part.y += first * t->masked * t->dv;
    part.z += first * t->dv * t->d;
    part.label += first;
    part.mean += first * t->dv * t->d;
    return part;
}

double fini_mixed_bayes(const fini_mixed_set *set, int64_t i, int64_t k)
{
    const fini_mixed_task *t = &set->world->task;
    return fini_hand_dot(t->d, set->mean + (i * t->dv + k % t->dv) * t->d,
                         set->q + (i * t->masked + k / t->dv) * t->d);
}
