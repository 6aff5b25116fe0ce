/* A bag as one row: its largest values, or means, smallest and largest values and size.
 *
 *     max          max_l x_lj                                                    (d)
 *     statistics   mean_l x_lj, min_l x_lj, max_l x_lj, log L                    (3 d + 1)
 *
 * of raw tokens: what a column's scale does to them comes after, over bags. The mean is taken of
 * differences from the first token: no overflow short of that of the differences, and a column that
 * is constant within a bag has exactly that value as its mean. */
#include "bags/map.h"

#include <math.h>
#include <omp.h>
#include <string.h>

fin_status fini_phi_open(fini_phi *phi, const fin_bags *bags, int64_t p, bool bag_each,
                         fin_error *err)
{
    int64_t n = bags->n, rows = bag_each ? n : fini_bags_tokens(bags);
    double *numbers;
    *phi = (fini_phi){.bags = *bags};
    fin_status status = fini_numbers(&numbers, rows, p, "features of bags", err);
    if (status)
        return status;
    phi->owned = numbers;
    phi->bags.d = p;
    phi->bags.dtype = FIN_F64;
    phi->bags.tokens = numbers;
    if (!bag_each)
        return FIN_OK;
    phi->owned_offsets = fini_alloc_array(n + 1, sizeof *phi->owned_offsets);
    if (!phi->owned_offsets) {
        fini_phi_close(phi);
        return fini_fail_memory(err, (size_t)(n + 1) * sizeof(int64_t), "features of bags");
    }
    for (int64_t i = 0; i <= n; i++)
        phi->owned_offsets[i] = i;
    phi->bags.offsets = phi->owned_offsets;
    return FIN_OK;
}

/* room (d): for a row that has to be converted. */
static void largest(const fin_bags *bags, int64_t i, double *out, double *room)
{
    int64_t d = bags->d, from, to;
    fini_bag_rows(bags, i, &from, &to);
    for (int64_t r = from; r < to; r++) {
        const double *x = fini_row(bags, r, 0, d, room);
        for (int64_t j = 0; j < d; j++)
            out[j] = r == from || x[j] > out[j] || isnan(x[j]) ? x[j] : out[j]; /* NaN stays */
    }
}

static void everything(const fin_bags *bags, int64_t i, double *out, double *room)
{
    int64_t d = bags->d, from, to;
    double *mean = out, *low = out + d, *high = low + d, *first = room + d;
    fini_bag_rows(bags, i, &from, &to);
    memset(mean, 0, (size_t)d * sizeof *mean);
    for (int64_t r = from; r < to; r++) {
        const double *x = fini_row(bags, r, 0, d, room);
        if (r == from)
            for (int64_t j = 0; j < d; j++)
                low[j] = high[j] = first[j] = x[j];
        for (int64_t j = 0; j < d; j++) {
            mean[j] += x[j] - first[j];
            low[j] = x[j] < low[j] || isnan(x[j]) ? x[j] : low[j];
            high[j] = x[j] > high[j] || isnan(x[j]) ? x[j] : high[j];
        }
    }
    for (int64_t j = 0; j < d; j++)
        mean[j] = first[j] + mean[j] / (double)(to - from);
    out[3 * d] = log((double)(to - from));
}

fin_status fini_statistics(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                           fini_cancel *cancel, fin_error *err)
{
    fin_status status = fini_phi_open(phi, bags, map->s, true, err);
    if (status)
        return status;
    int threads = fini_map_threads((double)fini_bags_tokens(bags) * (double)bags->d);
    double *room = fini_alloc_array(threads, 2 * (size_t)bags->d * sizeof *room);
    if (!room) {
        fini_phi_close(phi);
        return fini_fail_memory(err, 2 * (size_t)bags->d * sizeof *room, "statistics of bags");
    }
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t L = bags->offsets[i + 1] - bags->offsets[i];
        if (fini_cancelled(cancel, 4 * (double)(L * bags->d)))
            continue;
        double *out = (double *)phi->owned + i * map->s;
        double *own = room + omp_get_thread_num() * 2 * bags->d;
        if (map->statistics == FINI_MAX)
            largest(bags, i, out, own);
        else
            everything(bags, i, out, own);
    }
    fini_free(room);
    status = fini_cancel_end(cancel, err);
    if (status)
        fini_phi_close(phi);
    return status;
}
