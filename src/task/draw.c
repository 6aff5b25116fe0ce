/* Draws tokens in R^d: normals straight into the caller's array, then the relevant rows are moved.
 */
#include "task/task.h"

#include "kernel/kernel.h"

typedef struct tokens {
    const fin_task *task;
    void *rows;
} tokens;

/* One sample. X.k*, X.v* and |X|^2 of a row come from the kernels, accumulated in double. */
#define DRAW_SAMPLE(name, type, draw_normals, project)                                             \
    static double name(const void *context, uint64_t sample, int64_t start, int64_t L,             \
                       fini_selector *selector)                                                    \
    {                                                                                              \
        const fini_kernel *kernel = fini_kernel_get();                                             \
        const fin_task *task = ((const tokens *)context)->task;                                    \
        const fin_task_settings *s = &task->settings;                                              \
        type *rows = (type *)((const tokens *)context)->rows + start * s->d;                       \
        double chi, z, norm2;                                                                      \
        draw_normals(task->seed, FINI_STREAM_TOKENS, sample, 0, L * s->d, rows);                   \
        fini_selector_begin(selector, task, task->seed, FINI_STREAM_LATENT, sample, L);            \
        for (int64_t l = 0; task->kind->odds && l < L; l++) {                                      \
            kernel->project(1, s->d, rows + l * s->d, task->k_star, task->v_star, &chi, &z,        \
                            &norm2);                                                               \
            fini_selector_offer(selector, l, chi, z);                                              \
        }                                                                                          \
        for (int64_t i = 0; !task->kind->odds && i < selector->count; i++) {                       \
            type *x = rows + selector->kept[i].location * s->d;                                    \
            for (int64_t c = 0; c < s->d; c++)                                                     \
                x[c] = (type)(s->gamma * (double)x[c] + s->mu * task->k_star[c]);                  \
            kernel->project(1, s->d, x, task->k_star, task->v_star, &chi, &z, &norm2);             \
            selector->kept[i].z = z;                                                               \
        }                                                                                          \
        return fini_selector_end(selector);                                                        \
    }
DRAW_SAMPLE(draw_f32, float, fin_random_normals_f32, project_norm_f32)
DRAW_SAMPLE(draw_f64, double, fin_random_normals_f64, project_norm_f64)

static fin_status check(const fin_task *task, fin_dtype dtype, fin_error *err)
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
    return FIN_OK;
}

fin_status fin_task_draw(const fin_task *task, uint64_t first, int64_t n, fin_dtype dtype,
                         const int64_t *offsets, void *rows, double *y, int64_t *location,
                         fin_error *err)
{
    FINI_NEED(err, task, offsets, !n || rows);
    FINI_TRY(check(task, dtype, err));
    return fini_each_sample(task, &(fini_samples){first, n, offsets, y, location},
                            (double)task->settings.d, dtype == FIN_F32 ? draw_f32 : draw_f64,
                            &(tokens){task, rows}, err);
}
