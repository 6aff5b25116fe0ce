/* Draws tokens in R^d: normals straight into the caller's array, then the relevant rows are moved.
 */
#include "task/task.h"

#include "kernel/kernel.h"

#include <omp.h>

/* One sample. `row` of project_norm: X.k*, X.v*, |X|^2, accumulated in double. */
#define DRAW_SAMPLE(name, type, draw_normals, project)                                             \
    static double name(const fin_task *task, uint64_t sample, int64_t L, type *tokens,             \
                       fini_selector *selector)                                                    \
    {                                                                                              \
        const fini_kernel *kernel = fini_kernel_get();                                             \
        const fin_task_settings *s = &task->settings;                                              \
        double chi, z, norm2;                                                                      \
        draw_normals(task->seed, FINI_STREAM_TOKENS, sample, 0, L * s->d, tokens);                 \
        fini_selector_begin(selector, task, sample, L);                                            \
        if (task->kind->by_score) {                                                                \
            for (int64_t l = 0; l < L; l++) {                                                      \
                kernel->project(1, s->d, tokens + l * s->d, task->k_star, task->v_star, &chi, &z,  \
                                &norm2);                                                           \
                fini_selector_offer(selector, l, chi, z);                                          \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < selector->count; i++) {                                        \
                type *x = tokens + selector->location[i] * s->d;                                   \
                for (int64_t c = 0; c < s->d; c++)                                                 \
                    x[c] = (type)(s->gamma * (double)x[c] + s->mu * task->k_star[c]);              \
                kernel->project(1, s->d, x, task->k_star, task->v_star, &chi, &z, &norm2);         \
                selector->z[i] = z;                                                                \
            }                                                                                      \
        }                                                                                          \
        return fini_selector_end(selector);                                                        \
    }
DRAW_SAMPLE(draw_f32, float, fin_random_normals_f32, project_norm_f32)
DRAW_SAMPLE(draw_f64, double, fin_random_normals_f64, project_norm_f64)

static fin_status check(const fin_task *task, int64_t n, fin_dtype dtype, const int64_t *offsets,
                        fin_error *err)
{
    if (!task->k_star)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "the task has no vectors to draw tokens with; make it with FIN_TASK_AMBIENT");
    if (dtype != FIN_F32 && dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tokens are drawn as FIN_F32 or FIN_F64, not type %d", (int)dtype);
    int64_t numbers;
    if (__builtin_mul_overflow(task->longest, task->settings.d, &numbers) ||
        numbers > FIN_NORMALS_MAX)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "a sample of L = %lld tokens in d = %lld dimensions has more than 2^33 numbers",
            (long long)task->longest, (long long)task->settings.d);
    return fini_task_check_offsets(task, n, offsets, err);
}

fin_status fin_task_draw(const fin_task *task, uint64_t first, int64_t n, fin_dtype dtype,
                         const int64_t *offsets, void *tokens, double *y, int64_t *location,
                         fin_error *err)
{
    fin_status status = check(task, n, dtype, offsets, err);
    if (status)
        return status;
    int64_t m = task->settings.m, d = task->settings.d;
    int threads = fini_task_threads((offsets[n] - offsets[0]) * d);
    double *work = fini_alloc_array(threads * 3 * m, sizeof *work); /* score, z, location */
    if (!work)
        return fini_fail_memory(err, (size_t)(threads * 3 * m) * sizeof *work, "a draw");
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        double *mine = work + omp_get_thread_num() * 3 * m;
        fini_selector selector = {
            .score = mine, .z = mine + m, .location = (int64_t *)(mine + 2 * m)};
        int64_t start = (offsets[i] - offsets[0]) * d, L = offsets[i + 1] - offsets[i];
        double output =
            dtype == FIN_F32
                ? draw_f32(task, first + (uint64_t)i, L, (float *)tokens + start, &selector)
                : draw_f64(task, first + (uint64_t)i, L, (double *)tokens + start, &selector);
        if (y)
            y[i] = output;
        for (int64_t j = 0; location && j < m; j++)
            location[i * m + j] = selector.location[j];
    }
    fini_free(work);
    return FIN_OK;
}
