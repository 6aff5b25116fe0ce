/* Where fits start.
 *
 * Attention with keys of zero is mean pooling, a convex problem: its minimum is start number 0.
 * Other starts have random keys, of a length that makes scores of training tokens differ by about
 * one; several heads begin with different random keys and share the values, or they would stay the
 * same for ever. */
#include "bags/descend.h"

#include "random/streams.h"

#include <omp.h>
#include <string.h>

static int threads_for(const fin_bags *bags)
{
    int64_t rows = bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
    return rows * bags->d < 2000000 ? 1 : fin_threads_get();
}

/* Mean over the rows of one bag, in double, rows in their order. */
static void mean_of(const fini_phi *phi, int64_t row, int64_t rows, double *buffer, double *mean,
                    fini_cancel *cancel)
{
    int64_t p = phi->bags.d;
    memset(mean, 0, (size_t)p * sizeof *mean);
    for (int64_t l = row; l < row + rows && !fini_row_cancelled(cancel, l - row, rows, p); l++) {
        const double *x = fini_phi_row(phi, l, buffer);
        for (int64_t j = 0; j < p; j++)
            mean[j] += x[j];
    }
    for (int64_t j = 0; j < p; j++)
        mean[j] /= (double)rows;
}

fin_status fini_phi_means(const fini_phi *phi, fini_phi *means, fini_cancel *cancel, fin_error *err)
{
    const int64_t most = 64 * 1024 * 1024; /* bytes for all processes together */
    int64_t n = phi->bags.n, p = phi->bags.d;
    *means = (fini_phi){.bags = phi->bags};
    means->bags.tokens = NULL;
    if (phi->bags.total > most / (int64_t)sizeof(double) / p)
        return FIN_OK;
    int threads = threads_for(&phi->bags);
    double *mean = fini_alloc_array(n * p, sizeof *mean);
    double *buffer = fini_alloc_array(threads * p, sizeof *buffer);
    means->owned = mean;
    means->owned_offsets = fini_alloc_array(n + 1, sizeof *means->owned_offsets);
    if (!mean || !buffer || !means->owned_offsets) {
        fini_free(buffer);
        fini_phi_close(means);
        return fini_fail_memory(err, (size_t)(n * p) * sizeof *mean, "means of the bags");
    }
    const int64_t *offsets = phi->bags.offsets;
    atomic_llong left = n;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for nowait
        for (int64_t i = 0; i < n; i++) {
            mean_of(phi, offsets[i] - offsets[0], offsets[i + 1] - offsets[i],
                    buffer + omp_get_thread_num() * p, mean + i * p, cancel);
            atomic_fetch_sub(&left, 1);
        }
        fini_cancel_wait(cancel, &left);
    }
    fini_free(buffer);
    for (int64_t i = 0; i <= n; i++)
        means->owned_offsets[i] = i;
    means->bags.tokens = mean;
    means->bags.offsets = means->owned_offsets;
    means->bags.dtype = FIN_F64;
    return fini_cancel_end(cancel, err); /* closed with the others, cancelled or not */
}

/* ---- starts --------------------------------------------------------------------------------------- */

/* Keys of head h: standard normals, since |phi|^2 is 1 on average; 0 for columns left out. */
static void random_keys(const fini_problem *problem, int64_t start, int64_t h, double *k)
{
    const fini_part *part = problem->part;
    fin_random_normals_f64((uint64_t)part->settings.seed, FINI_STREAM_BAGS_START,
                           (uint64_t)(start * 64 + h), 0, problem->phi->bags.d, k);
    for (int64_t j = 0; problem->phi->scale && j < problem->phi->bags.d; j++)
        if (problem->phi->scale[j] == 0)
            k[j] = 0;
}

void fini_start(const fini_problem *problem, int64_t start, const double *mean, double variance,
                double *x)
{
    const fini_part *part = problem->part;
    const fini_bag_form *form = part->form;
    int64_t p = problem->phi->bags.d, O = part->shape.outputs, keys = form->keys(&part->shape);
    int64_t heads = keys ? keys : 1;
    double *values = x + keys * p, *extra = values + heads * O * p;
    double share = 1 / (double)heads;
    memset(x, 0, (size_t)part->parameters * sizeof *x);
    if (form->begin) {
        form->begin(problem, x);
        return;
    }
    for (int64_t h = 0; h < keys; h++)
        if (start > 0 || h > 0)
            random_keys(problem, start, h, x + h * p);
    memcpy(extra, mean + O * p, (size_t)O * sizeof *extra);
    if (form->begin_extras)
        share *= form->begin_extras(problem, variance, extra);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t j = 0; j < O * p; j++)
            values[h * O * p + j] = share * mean[j];
}

/* ---- how much there is ------------------------------------------------------------------------- */

static void count(const void *user, int64_t i, double *sums)
{
    const fini_problem *problem = user;
    const int64_t *offsets = problem->phi->bags.offsets;
    if (!(problem->weights[i] > 0))
        return;
    sums[0] += (double)(offsets[i + 1] - offsets[i]);
    sums[1] += 1;
    sums[2] += problem->weights[i];
}

fin_status fini_problem_count(fini_problem *problem, fin_error *err)
{
    double sum[3] = {0};
    FINI_TRY(fini_bags_sum(&problem->phi->bags, problem->sum, 1, 3, count, problem, sum, err));
    problem->tokens = sum[0];
    problem->bags = sum[1];
    problem->weight = sum[2];
    return FIN_OK;
}
