/* What is hidden in a sample: its length, the relevant places, the noise of the output. */
#include "task/task.h"

#include <math.h>

int64_t fini_task_length(const fin_task *task, uint64_t sample)
{
    if (task->shortest == task->longest)
        return task->longest;
    fin_random random;
    fin_random_open(&random, task->seed, FINI_STREAM_LENGTH, sample);
    if (task->lengths == 1)
        return task->shortest + fin_random_below(&random, task->longest - task->shortest + 1);
    double u = fin_random_uniform(&random);
    int64_t low = 0, high = task->lengths - 1; /* the first whose cumulated law reaches u */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (task->length_cumulated[middle] >= u)
            high = middle;
        else
            low = middle + 1;
    }
    return task->length[low];
}

fin_status fin_task_offsets(const fin_task *task, uint64_t first, int64_t n, int64_t *offsets,
                            fin_error *err)
{
    if (n < 0 || n > INT64_MAX / FIN_L_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld samples; it must be from 0 to %lld",
                         (long long)n, (long long)(INT64_MAX / FIN_L_MAX));
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + fini_task_length(task, first + (uint64_t)i);
    return FIN_OK;
}

fin_status fini_task_check_offsets(const fin_task *task, int64_t n, const int64_t *offsets,
                                   fin_error *err)
{
    if (n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld samples; it must not be negative",
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i + 1] - offsets[i] < task->shortest ||
            offsets[i + 1] - offsets[i] > task->longest)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "offsets give sample %lld a length of %lld; take them from fin_task_offsets",
                (long long)i, (long long)(offsets[i + 1] - offsets[i]));
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
            if (s->location[i] == place) {
                place = j;
                break;
            }
        s->location[s->count++] = place;
    }
}

static void sort_locations(fini_selector *s)
{
    for (int64_t i = 1; i < s->count; i++)
        for (int64_t j = i; j > 0 && s->location[j - 1] > s->location[j]; j--) {
            int64_t place = s->location[j];
            s->location[j] = s->location[j - 1];
            s->location[j - 1] = place;
            double z = s->z[j];
            s->z[j] = s->z[j - 1];
            s->z[j - 1] = z;
        }
}

void fini_selector_begin(fini_selector *s, const fin_task *task, uint64_t sample, int64_t L)
{
    s->task = task;
    s->count = 0;
    fin_random_open(&s->random, task->seed, FINI_STREAM_LATENT, sample);
    if (!task->kind->by_score) {
        choose_uniformly(s, L);
        for (int64_t i = 0; i < s->count; i++)
            s->z[i] = 0;
        sort_locations(s);
    }
}

/* Gumbel top-m: the m largest of snr chi + Gumbel are a draw without replacement with probabilities
 * softmax(snr chi). Kept in descending order of score. */
void fini_selector_offer(fini_selector *s, int64_t place, double chi_star, double z_star)
{
    int64_t m = s->task->settings.m;
    double snr = s->task->settings.snr;
    double score = isinf(snr) ? chi_star : snr * chi_star + fin_random_gumbel(&s->random);
    if (s->count == m && score <= s->score[m - 1])
        return;
    int64_t i = s->count < m ? s->count++ : m - 1;
    for (; i > 0 && s->score[i - 1] < score; i--) {
        s->score[i] = s->score[i - 1];
        s->location[i] = s->location[i - 1];
        s->z[i] = s->z[i - 1];
    }
    s->score[i] = score;
    s->location[i] = place;
    s->z[i] = z_star;
}

double fini_selector_end(fini_selector *s)
{
    sort_locations(s);
    double y = 0;
    for (int64_t i = 0; i < s->count; i++)
        y += s->z[i];
    return y + s->task->settings.eps * fin_random_normal(&s->random);
}
