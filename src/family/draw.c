/* Draws sequences of any family: checks sizes, takes memory once, shares sequences between threads.
 * A sequence is a pure function of (seed, its number), so that neither threads nor the split into
 * calls matter. */
#include "family/family.h"

#include "task/task.h"

#include <omp.h>

#define NUMBERS_MOST (INT64_C(1) << 58)
#define MATRICES_MOST 0x1p28 /* doubles of work of all threads together, if one can do with less */

/* a * b, or more than any size that is allowed. Not negative, both. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
}

fin_status fini_latent_check_sizes(const fin_latent *latent, int64_t n, int64_t L, int64_t Q,
                                   fin_error *err)
{
    const fin_latent_shape *shape = &latent->shape;
    const char *name = latent->family->name;
    if (n < 0 || L < 0 || Q < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: %lld sequences of %lld tokens and %lld queries; none of them may be "
                         "negative",
                         name, (long long)n, (long long)L, (long long)Q);
    if (L > shape->longest || Q > shape->longest - L)
        return fini_fail(
            err, FIN_ERR_ARGUMENT, "%s: %lld tokens and %lld queries are more than its %lld %s",
            name, (long long)L, (long long)Q, (long long)shape->longest, latent->family->limit);
    int64_t token = product(L, shape->dk + shape->dv + 1);
    int64_t query = product(Q, shape->dk + shape->dv + shape->outcomes + 1);
    int64_t each = token > FIN_NORMALS_MAX || query > FIN_NORMALS_MAX ? INT64_MAX : token + query;
    if (each > FIN_NORMALS_MAX || product(n, each + shape->latent + 1) > NUMBERS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: %lld sequences of %lld tokens and %lld queries are too many numbers; "
                         "a sequence may have at most %lld",
                         name, (long long)n, (long long)L, (long long)Q,
                         (long long)FIN_NORMALS_MAX);
    return FIN_OK;
}

/* Rows i, i+1, ... of one of the caller's arrays. */
static double *row(double *array, int64_t i, int64_t width)
{
    return array ? array + i * width : NULL;
}

/* Arrays that the caller does not want but the family needs stand in front of its work. */
typedef struct extra {
    int64_t keys, queries, z, work;
} extra;

static extra extras(const fin_latent *latent, const fini_sequence *s)
{
    const fin_latent_shape *shape = &latent->shape;
    extra e = {0};
    e.work = latent->family->linear ? shape->features : latent->family->room(latent, s->L, s->Q);
    bool values = s->values, answers = s->answers || s->truth;
    if (latent->family->joint)
        values = answers = values || answers;
    if (values && !s->keys)
        e.keys = s->L * shape->dk;
    if (answers && !s->queries)
        e.queries = s->Q * shape->dk;
    if (!s->z)
        e.z = shape->latent;
    return e;
}

/* work: room for the extras. */
static fin_status draw_one(const fin_latent *latent, const fini_sequence *s, const extra *e,
                           double *work, fin_error *err)
{
    fini_sequence full = *s;
    if (e->keys)
        full.keys = work;
    if (e->queries)
        full.queries = work + e->keys;
    if (e->z)
        full.z = work + e->keys + e->queries;
    return latent->family->draw(latent, &full, work + e->keys + e->queries + e->z, err);
}

fin_status fini_latent_draw_one(const fin_latent *latent, const fini_sequence *s, double *work,
                                fin_error *err)
{
    extra e = extras(latent, s);
    return draw_one(latent, s, &e, work, err);
}

static int threads_for(const fin_latent *latent, int64_t n, int64_t L, int64_t Q, int64_t room)
{
    const fin_latent_shape *shape = &latent->shape;
    double numbers = (double)(L + Q) * (double)(shape->dk + shape->dv + 1) + (double)room;
    int threads = fini_threads_for((double)n * numbers);
    while (threads > 1 && (threads > n || threads * (double)room > MATRICES_MOST))
        threads--;
    return threads;
}

fin_status fini_latent_draw_many(const fin_latent *latent, uint64_t seed, uint32_t up,
                                 uint64_t first, int64_t n, const fini_sequence *arrays,
                                 fin_error *err)
{
    const fin_latent_shape *shape = &latent->shape;
    int64_t L = arrays->L, Q = arrays->Q, width = fini_latent_width(latent);
    fin_status status = fini_latent_check_sizes(latent, n, L, Q, err);
    if (status || n == 0)
        return status;
    extra e = extras(latent, arrays);
    int64_t room = (e.keys + e.queries + e.z + e.work + 7) / 8 * 8, failed = INT64_MAX;
    int threads = threads_for(latent, n, L, Q, room);
    double *work = fini_alloc_array(product(threads, room), sizeof *work);
    if (!work)
        return fini_fail_memory(err, (size_t)room * (size_t)threads * sizeof *work, "a draw");
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        fini_sequence s = {.seed = seed,
                           .sample = first + (uint64_t)i,
                           .up = up,
                           .L = L,
                           .Q = Q,
                           .keys = row(arrays->keys, i, L * shape->dk),
                           .values = row(arrays->values, i, L * shape->dv),
                           .queries = row(arrays->queries, i, Q * shape->dk),
                           .answers = row(arrays->answers, i, Q * shape->dv),
                           .truth = row(arrays->truth, i, Q * width),
                           .z = shape->latent ? row(arrays->z, i, shape->latent) : NULL};
        fin_error local;
        fin_status mine = draw_one(latent, &s, &e, work + omp_get_thread_num() * room, &local);
        if (mine)
#pragma omp critical(fini_latent_draw)
            if (i < failed) { /* the first one's reason, whoever came first */
                failed = i;
                status = mine;
                if (err)
                    *err = local;
            }
    }
    fini_free(work);
    return status;
}

fin_status fin_latent_draw(const fin_latent *latent, uint64_t first,
                           const fin_latent_sample *sample, fin_error *err)
{
    FINI_NEED(err, latent, sample);
    fini_sequence arrays = {.L = sample->L,
                            .Q = sample->Q,
                            .keys = sample->keys,
                            .values = sample->values,
                            .queries = sample->queries,
                            .answers = sample->answers,
                            .truth = sample->truth,
                            .z = sample->z};
    return fini_latent_draw_many(latent, latent->seed, 0, first, sample->n, &arrays, err);
}

int64_t fini_latent_room(const fin_latent *latent, int64_t L, int64_t m)
{
    fini_sequence none = {.L = L, .Q = m};
    int64_t draw = (L + m) * latent->shape.dk + latent->shape.latent + extras(latent, &none).work;
    int64_t predict = fini_latent_predict_room(latent, L, m);
    return draw > predict ? draw : predict;
}
