/* The table of tasks, and making one. */
#include "task/task.h"

#include <math.h>
#include <string.h>

/* In the order in which they are listed. */
#define TASK_LIST(K)                                                                               \
    K(slr)                                                                                         \
    K(spiked)                                                                                      \
    K(max)

#define TASK_EXTERN(name) extern const fin_task_kind fini_task_##name;
TASK_LIST(TASK_EXTERN)

#define TASK_ROW(name) &fini_task_##name,
static const fin_task_kind *const kinds[] = {TASK_LIST(TASK_ROW)};
enum { KINDS = sizeof kinds / sizeof *kinds };

int fin_task_count(void)
{
    return KINDS;
}

const fin_task_kind *fin_task_at(int i)
{
    return i >= 0 && i < KINDS ? kinds[i] : NULL;
}

const fin_task_kind *fin_task_find(const char *name)
{
    for (int i = 0; name && i < KINDS; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const char *fin_task_kind_name(const fin_task_kind *kind)
{
    return kind ? kind->name : NULL;
}

const char *fin_task_kind_summary(const fin_task_kind *kind)
{
    return kind ? kind->summary : NULL;
}

const fin_settings *fin_task_kind_table(const fin_task_kind *kind)
{
    return kind ? kind->settings : NULL;
}

/* ---- create and destroy ------------------------------------------------------------------- */

enum { PAD = 8, FEWEST = 1 };
#define AMBIENT_MOST (INT64_C(1) << 28) /* 2 GB a vector */

static void layout(fini_arena *arena, fin_task *task, int ambient)
{
    int64_t padded = (task->settings.d + PAD - 1) / PAD * PAD;
    task->length = fini_take(arena, task->lengths, sizeof *task->length);
    task->length_cumulated = fini_take(arena, task->lengths, sizeof *task->length_cumulated);
    task->k_star = ambient ? fini_take(arena, padded, sizeof *task->k_star) : NULL;
    task->v_star = ambient ? fini_take(arena, padded, sizeof *task->v_star) : NULL;
}

static fin_status check_lengths(const fin_task_kind *kind, const fin_task_settings *s,
                                const fin_lengths *lengths, fin_error *err)
{
    if (!lengths) {
        if (s->L_min > s->L)
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s: L_min = %lld is above L = %lld",
                             kind->name, (long long)s->L_min, (long long)s->L);
        return FIN_OK;
    }
    if (lengths->count < 1 || !lengths->L || !lengths->p)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "lengths: at least one length with its weight is needed");
    double total = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        if (lengths->L[i] < FEWEST || lengths->L[i] > FIN_L_MAX)
            return fini_fail(err, FIN_ERR_ARGUMENT, "lengths: L = %lld; it must be from 1 to %lld",
                             (long long)lengths->L[i], (long long)FIN_L_MAX);
        if (!(lengths->p[i] > 0 && lengths->p[i] <= 1e100))
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "lengths: the weight of L = %lld is %g; it must be positive and finite",
                (long long)lengths->L[i], lengths->p[i]);
        total += lengths->p[i];
    }
    if (!(total <= 1e300))
        return fini_fail(err, FIN_ERR_ARGUMENT, "lengths: the weights add up to %g", total);
    return FIN_OK;
}

static fini_length_law law_of(const fin_task_settings *s, const fin_lengths *lengths)
{
    if (!lengths) {
        double spread = (double)(s->L - s->L_min) + 1;
        return (fini_length_law){s->L_min, s->L, ((double)s->L_min + (double)s->L) / 2,
                                 (spread * spread - 1) / 12};
    }
    fini_length_law law = {.shortest = INT64_MAX};
    double total = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        total += lengths->p[i];
        law.shortest = lengths->L[i] < law.shortest ? lengths->L[i] : law.shortest;
        law.longest = lengths->L[i] > law.longest ? lengths->L[i] : law.longest;
    }
    for (int64_t i = 0; i < lengths->count; i++)
        law.mean += lengths->p[i] / total * (double)lengths->L[i];
    for (int64_t i = 0; i < lengths->count; i++) {
        double off = (double)lengths->L[i] - law.mean;
        law.variance += lengths->p[i] / total * off * off;
    }
    return law;
}

fin_status fini_task_settle(const fin_task_kind *kind, fin_task_settings *s,
                            const fin_lengths *lengths, fini_length_law *law, fin_error *err)
{
    fin_status status = fin_settings_validate(kind->settings, s, err);
    if (status)
        return status;
    if (fin_is_auto((double)s->L_min))
        s->L_min = s->L;
    if ((status = kind->resolve(s, err)) || (status = check_lengths(kind, s, lengths, err)))
        return status;
    *law = law_of(s, lengths);
    s->L_min = law->shortest;
    s->L = law->longest;
    if (law->shortest < s->m)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: m = %lld relevant tokens do not fit in a sequence of %lld",
                         kind->name, (long long)s->m, (long long)law->shortest);
    return FIN_OK;
}

/* The cumulated law of L. A uniform law needs no table: one row, and the range is in shortest and
 * longest. */
static void set_lengths(fin_task *task, const fin_lengths *lengths)
{
    double total = 0, running = 0;
    task->length[0] = task->longest;
    for (int64_t i = 0; lengths && i < lengths->count; i++)
        total += lengths->p[i];
    for (int64_t i = 0; lengths && i < lengths->count; i++) {
        running += lengths->p[i];
        task->length[i] = lengths->L[i];
        task->length_cumulated[i] = running / total;
    }
    task->length_cumulated[task->lengths - 1] = 1;
}

/* v becomes a unit vector orthogonal to the unit vector k; twice, so that rounding is clean. */
static void make_orthogonal(int64_t d, const double *k, double *v)
{
    for (int pass = 0; pass < 2; pass++) {
        double dot = 0, norm2 = 0;
        for (int64_t i = 0; i < d; i++)
            dot += k[i] * v[i];
        for (int64_t i = 0; i < d; i++) {
            v[i] -= dot * k[i];
            norm2 += v[i] * v[i];
        }
        double scale = 1 / sqrt(norm2);
        for (int64_t i = 0; i < d; i++)
            v[i] *= scale;
    }
}

static fin_status build(fin_task *task, const fin_lengths *lengths, int flags, fin_error *err)
{
    fin_task_settings *s = &task->settings;
    fini_length_law law;
    FINI_TRY(fini_task_settle(task->kind, s, lengths, &law, err));
    task->shortest = law.shortest;
    task->longest = law.longest;
    task->length_mean = law.mean;
    task->length_variance = law.variance;
    int ambient = flags & FIN_TASK_AMBIENT;
    if (ambient && s->d > AMBIENT_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: d = %lld is too large to make vectors (at most %lld); risks and "
                         "projections work at any d",
                         task->kind->name, (long long)s->d, (long long)AMBIENT_MOST);
    task->lengths = lengths ? lengths->count : 1;
    FINI_LAY_OUT(err, &task->arena, "a task", layout(&task->arena, task, ambient));
    set_lengths(task, lengths);
    if (ambient) {
        fin_random random;
        fin_random_open(&random, task->seed, FINI_STREAM_DIRECTIONS, 0);
        fin_random_sphere(&random, s->d, task->k_star);
        fin_random_sphere(&random, s->d, task->v_star);
        make_orthogonal(s->d, task->k_star, task->v_star);
    }
    return FIN_OK;
}

fin_status fin_task_create(fin_task **out, const fin_task_kind *kind,
                           const fin_task_settings *settings, const fin_lengths *lengths,
                           uint64_t seed, int flags, fin_error *err)
{
    FINI_NEED(err, out);
    *out = NULL;
    if (!kind) {
        char names[128] = "";
        for (int i = 0; i < KINDS; i++)
            fini_add_name(kinds[i]->name, names, sizeof names);
        return fini_fail(err, FIN_ERR_ARGUMENT, "no such task; fin_task_find knows %s", names);
    }
    FINI_MAKE(err, "a task", fin_task, task);
    task->kind = kind;
    task->seed = seed;
    if (settings)
        task->settings = *settings;
    else
        fin_settings_defaults(kind->settings, &task->settings, sizeof task->settings);
    fin_status status = build(task, lengths, flags, err);
    FINI_HAND_OVER(out, task, status, fin_task_destroy);
}

void fin_task_destroy(fin_task *task)
{
    if (!task)
        return;
    fini_arena_close(&task->arena);
    fini_free(task);
}

fin_status fin_task_set_directions(fin_task *task, const double *k_star, const double *v_star,
                                   fin_error *err)
{
    FINI_NEED(err, task, k_star, v_star);
    if (!task->k_star)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the task has no vectors; make it with FIN_TASK_AMBIENT");
    double kk = 0, vv = 0, kv = 0;
    int64_t d = task->settings.d;
    for (int64_t i = 0; i < d; i++) {
        kk += k_star[i] * k_star[i];
        vv += v_star[i] * v_star[i];
        kv += k_star[i] * v_star[i];
    }
    if (!(fabs(kk - 1) <= 1e-9 && fabs(vv - 1) <= 1e-9 && fabs(kv) <= 1e-9))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "k* and v* must be orthonormal; given |k*|^2 = %.12g, |v*|^2 = %.12g, "
                         "k*.v* = %.3g",
                         kk, vv, kv);
    memcpy(task->k_star, k_star, (size_t)d * sizeof *k_star);
    memcpy(task->v_star, v_star, (size_t)d * sizeof *v_star);
    return FIN_OK;
}

/* ---- what it is ---------------------------------------------------------------------------- */

const fin_task_kind *fin_task_get_kind(const fin_task *task)
{
    return task ? task->kind : NULL;
}

const fin_task_settings *fin_task_get_settings(const fin_task *task)
{
    return task ? &task->settings : NULL;
}

int64_t fin_task_longest(const fin_task *task)
{
    return task ? task->longest : 0;
}

double fin_task_length_mean(const fin_task *task)
{
    return task ? task->length_mean : NAN;
}

double fin_task_length_variance(const fin_task *task)
{
    return task ? task->length_variance : NAN;
}

const double *fin_task_k_star(const fin_task *task)
{
    return task ? task->k_star : NULL;
}

const double *fin_task_v_star(const fin_task *task)
{
    return task ? task->v_star : NULL;
}
