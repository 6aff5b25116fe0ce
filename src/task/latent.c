/* What is hidden in a sample: its length, the relevant places, the noise of the output. */
#include "task/task.h"
#include "math/small.h"

#include <omp.h>

int64_t fini_length(const fin_task *task, uint64_t seed, uint32_t stream, uint64_t sample)
{
    if (task->shortest == task->longest)
        return task->longest;
    fin_random random;
    fin_random_open(&random, seed, stream, sample);
    if (task->lengths == 1)
        return task->shortest + fin_random_below(&random, task->longest - task->shortest + 1);
    double u = fin_random_uniform(&random);
    return task->length[fini_first_from(task->lengths - 1, task->length_cumulated, u)];
}

static int64_t data_length(const fin_task *task, uint64_t sample)
{
    return fini_length(task, task->seed, FINI_STREAM_LENGTH, sample);
}

fin_status fin_task_offsets(const fin_task *task, uint64_t first, int64_t n, int64_t *offsets,
                            fin_error *err)
{
    FINI_NEED(err, task, offsets);
    if (n < 0 || n > INT64_MAX / FIN_L_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld samples; it must be from 0 to %lld",
                         (long long)n, (long long)(INT64_MAX / FIN_L_MAX));
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + data_length(task, first + (uint64_t)i);
    return FIN_OK;
}

/* ---- relevant places ------------------------------------------------------------------------ */

/* Floyd's algorithm: m distinct places of L, in O(m^2) and without a table of L. */
static void choose_uniformly(fini_selector *s, int64_t L)
{
    int64_t m = s->task->settings.m;
    for (int64_t j = L - m; j < L; j++) {
        int64_t place = fin_random_below(&s->random, j + 1);
        for (int64_t i = 0; i < s->count; i++)
            if (s->kept[i].location == place) {
                place = j;
                break;
            }
        s->kept[s->count++] = (fini_relevant){.location = place};
    }
}

static void sort_locations(fini_selector *s)
{
    for (int64_t i = 1; i < s->count; i++)
        for (int64_t j = i; j > 0 && s->kept[j - 1].location > s->kept[j].location; j--) {
            fini_relevant token = s->kept[j];
            s->kept[j] = s->kept[j - 1];
            s->kept[j - 1] = token;
        }
}

void fini_selector_begin(fini_selector *s, const fin_task *task, uint64_t seed, uint32_t stream,
                         uint64_t sample, int64_t L)
{
    s->task = task;
    s->count = 0;
    fin_random_open(&s->random, seed, stream, sample);
    s->certain = fini_task_certain(task);
    if (!task->kind->odds) {
        choose_uniformly(s, L);
        sort_locations(s);
    }
}

/* Gumbel top-m: the m largest of odds + Gumbel are a draw without replacement with probabilities
 * softmax(odds). Kept in descending order of score. */
void fini_selector_offer(fini_selector *s, int64_t place, double chi_star, double z_star)
{
    int64_t m = s->task->settings.m;
    double score = s->task->kind->odds(&s->task->settings, chi_star);
    if (!s->certain)
        score += fin_random_gumbel(&s->random);
    if (s->count == m && score <= s->kept[m - 1].score)
        return;
    int64_t i = s->count < m ? s->count++ : m - 1;
    for (; i > 0 && s->kept[i - 1].score < score; i--)
        s->kept[i] = s->kept[i - 1];
    s->kept[i] = (fini_relevant){score, z_star, place};
}

double fini_selector_end(fini_selector *s)
{
    sort_locations(s);
    double y = 0;
    for (int64_t i = 0; i < s->count; i++)
        y += s->kept[i].z;
    return y + s->task->settings.eps * fin_random_normal(&s->random);
}

/* ---- many samples --------------------------------------------------------------------------- */

enum { FEW = 64, SAMPLES_AT_ONCE = 4 };

int fini_threads_for(double numbers)
{
    return numbers < 50000 ? 1 : fin_threads_get();
}

static fin_status check_offsets(const fin_task *task, const fini_samples *s, fin_error *err)
{
    if (s->n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld samples; it must not be negative",
                         (long long)s->n);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t L = s->offsets[i + 1] - s->offsets[i];
        int64_t expected = data_length(task, s->first + (uint64_t)i);
        if (L != expected)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "offsets give sample %lld a length of %lld, it has %lld; take them from "
                "fin_task_offsets",
                (long long)(s->first + (uint64_t)i), (long long)L, (long long)expected);
    }
    return FIN_OK;
}

fin_status fini_each_sample(const fin_task *task, const fini_samples *samples, double numbers,
                            fini_draw_sample *draw, const void *context, fin_error *err)
{
    fin_status status = check_offsets(task, samples, err);
    if (status)
        return status;
    int64_t m = task->settings.m, n = samples->n;
    const int64_t *offsets = samples->offsets;
    int threads = fini_threads_for(numbers * (double)(offsets[n] - offsets[0]));
    fini_relevant *work = NULL; /* (threads, m) */
    if (m > FEW && !(work = fini_alloc_array(threads * m, sizeof *work)))
        return fini_fail_memory(err, (size_t)(threads * m) * sizeof *work, "a draw");
#pragma omp parallel for schedule(dynamic, SAMPLES_AT_ONCE) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        fini_relevant few[FEW];
        fini_selector selector = {.kept = work ? work + omp_get_thread_num() * m : few};
        double output = draw(context, samples->first + (uint64_t)i, offsets[i] - offsets[0],
                             offsets[i + 1] - offsets[i], &selector);
        if (samples->y)
            samples->y[i] = output;
        for (int64_t j = 0; samples->location && j < m; j++)
            samples->location[i * m + j] = selector.kept[j].location;
    }
    fini_free(work);
    return FIN_OK;
}
