/* The map from bags to what a form sees: fitted to the training bags, applied to any.
 *
 * Tokens that are seen through their columns alone are not copied: the view says how to see them
 * (kernel/rows.h does), because they may be as large as memory. Everything else is made once, row
 * by row, by threads that share tiles of rows; how it is cut does not change a bit of it. */
#include "bags/map.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { TILE = FINI_MAP_TILE };

static bool bag_each(const fini_map *map) /* are rows bags before the columns are scaled? */
{
    return map->statistics == FINI_MAX || map->statistics == FINI_STATISTICS;
}

void fini_map_close(fini_map *map)
{
    if (!map)
        return;
    fini_free(map->center); /* and scale, bound, spread */
    fini_free(map->landmarks);
    fini_free(map->whiten);
    fini_free(map->shift);
    fini_free(map->stretch);
    *map = (fini_map){0};
}

void fini_phi_close(fini_phi *phi)
{
    if (!phi)
        return;
    fini_free(phi->owned);
    fini_free(phi->owned_offsets);
    *phi = (fini_phi){0};
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* A bag as one row: its largest values, or means, smallest and largest values and size.
 *
 *     max          max_l x_lj                                                    (d)
 *     statistics   mean_l x_lj, min_l x_lj, max_l x_lj, log L                    (3 d + 1)
 *
 * of raw tokens: what a column's scale does to them comes after, over bags. The mean is taken of
 * differences from the first token: no overflow short of that of the differences, and a column that
 * is constant within a bag has exactly that value as its mean. */

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
static void largest(const fin_bags *bags, int64_t i, double *out, double *room, fini_cancel *cancel)
{
    int64_t d = bags->d, from, to;
    fini_bag_rows(bags, i, &from, &to);
    for (int64_t r = from; r < to && !fini_row_cancelled(cancel, r - from, to - from, 4 * d); r++) {
        const double *x = fini_row(bags, r, 0, d, room);
        for (int64_t j = 0; j < d; j++)
            out[j] = r == from || x[j] > out[j] || isnan(x[j]) ? x[j] : out[j]; /* NaN stays */
    }
}

static void everything(const fin_bags *bags, int64_t i, double *out, double *room,
                       fini_cancel *cancel)
{
    int64_t d = bags->d, from, to;
    double *mean = out, *low = out + d, *high = low + d, *first = room + d;
    fini_bag_rows(bags, i, &from, &to);
    memset(mean, 0, (size_t)d * sizeof *mean);
    for (int64_t r = from; r < to && !fini_row_cancelled(cancel, r - from, to - from, 4 * d); r++) {
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
    atomic_llong left = bags->n;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 8) nowait
        for (int64_t i = 0; i < bags->n; i++) {
            double *own = room + omp_get_thread_num() * 2 * bags->d;
            (map->statistics == FINI_MAX ? largest : everything)(
                bags, i, (double *)phi->owned + i * map->s, own, cancel);
            atomic_fetch_sub(&left, 1);
        }
        fini_cancel_wait(cancel, &left);
    }
    fini_free(room);
    status = fini_cancel_end(cancel, err);
    if (status)
        fini_phi_close(phi);
    return status;
}

/* ---- fitting --------------------------------------------------------------------------------- */

/* The embedding is one in the space of a kernel always; the statistics themselves are seen beside
 * it unless `features` is rbf. */
fin_status fini_map_open(fini_map *map, const fin_fit_settings *settings, int64_t d, fin_error *err)
{
    enum { LINEAR, RBF, BOTH };
    *map = (fini_map){.statistics = fini_bag_model_of(settings->model)->statistics,
                      .features = settings->basis > FIN_BASIS_LINEAR ? settings->basis - 1 : LINEAR,
                      .kind = settings->map,
                      .d = d,
                      .s = d};
    if (d < 1 || d > INT64_MAX / 256)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens of %lld columns; at least 1 is needed",
                         (long long)d);
    if (map->statistics == FINI_STATISTICS) {
        map->s = 3 * d + 1;
        if (map->features == LINEAR)
            map->features = BOTH;
    }
    map->linear = map->features != RBF ? map->s : map->statistics == FINI_STATISTICS ? 1 : 0;
    return FIN_OK;
}

void fini_map_cut(fini_map *map)
{
    map->scale = map->center + map->s;
    map->bound = map->scale + map->s;
    map->spread = map->bound + map->s;
}

fin_status fini_map_fit(fini_map *map, const fin_fit_settings *settings, int64_t classes,
                        const fin_bags *bags, const double *weights, fin_sum sum,
                        fini_cancel *cancel, fin_error *err)
{
    (void)classes; /* no map looks at labels */
    fin_status status = fini_map_open(map, settings, bags->d, err);
    if (!status)
        status = fini_numbers(&map->center, 4, map->s, "centres and scales of columns", err);
    if (status)
        return status;
    memset(map->center, 0, 4 * (size_t)map->s * sizeof *map->center);
    fini_map_cut(map);
    fini_phi rows = {.bags = *bags};
    if (bag_each(map))
        status = fini_statistics(map, bags, &rows, cancel, err);
    if (!status)
        status = fini_columns_fit(map, settings->scaling, &rows.bags, weights, sum, cancel, err);
    if (!status)
        status = fini_cancel_stage(cancel, FINI_FEATURES, 1, 3, err);
    if (!status && map->features)
        status = fini_features_fit(map, settings, &rows.bags, weights, sum, cancel, err);
    if (!status)
        status = fini_cancel_stage(cancel, FINI_FEATURES, 2, 3, err);
    map->p = map->linear + map->m;
    fini_phi_close(&rows);
    if (status)
        fini_map_close(map);
    return status;
}

/* ---- applying -------------------------------------------------------------------------------- */

/* All rows of `rows`, to as many rows of p numbers. */
static void apply_rows(const fini_map *map, const fin_bags *bags, int64_t rows, double *out,
                       double *scratch, int threads, fini_cancel *cancel)
{
    int64_t room = fini_features_scratch(map);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t r = 0; r < rows; r += TILE) {
        int64_t some = rows - r < TILE ? rows - r : TILE;
        if (!fini_cancelled(cancel, fini_features_cost(map, some)))
            fini_features_apply(map, bags, r, some, out + r * map->p,
                                scratch + omp_get_thread_num() * (room + TILE * map->p));
    }
}

/* The mean over a bag's rows, added up in their order. */
static void mean_of_bag(const fini_map *map, const fin_bags *bags, int64_t i, double *out,
                        double *scratch, fini_cancel *cancel)
{
    int64_t from, to;
    double *tile = scratch + fini_features_scratch(map);
    fini_bag_rows(bags, i, &from, &to);
    memset(out, 0, (size_t)map->p * sizeof *out);
    for (int64_t r = from; r < to; r += TILE) {
        int64_t rows = to - r < TILE ? to - r : TILE;
        if (fini_cancelled(cancel, fini_features_cost(map, rows)))
            return;
        fini_features_apply(map, bags, r, rows, tile, scratch);
        for (int64_t t = 0; t < rows; t++)
            for (int64_t j = 0; j < map->p; j++)
                out[j] += tile[t * map->p + j];
    }
    for (int64_t j = 0; j < map->p; j++)
        out[j] /= (double)(to - from);
}

static fin_status materialise(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                              fini_cancel *cancel, fin_error *err)
{
    bool means = map->statistics == FINI_MEAN;
    double each = (double)map->s + (double)map->m * (double)(map->s + map->m);
    int threads = fini_map_threads((double)fini_bags_tokens(bags) * each);
    int64_t room = fini_features_scratch(map) + TILE * map->p;
    double *scratch;
    fin_status status = fini_phi_open(phi, bags, map->p, means, err);
    if (!status)
        status = fini_numbers(&scratch, threads, room, "features of bags", err);
    if (status) {
        fini_phi_close(phi);
        return status;
    }
    if (means) {
        atomic_llong left = bags->n;
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(dynamic) nowait
            for (int64_t i = 0; i < bags->n; i++) {
                mean_of_bag(map, bags, i, (double *)phi->owned + i * map->p,
                            scratch + omp_get_thread_num() * room, cancel);
                atomic_fetch_sub(&left, 1);
            }
            fini_cancel_wait(cancel, &left);
        }
    } else {
        apply_rows(map, bags, fini_bags_tokens(bags), phi->owned, scratch, threads, cancel);
    }
    fini_free(scratch);
    status = fini_cancel_end(cancel, err);
    if (status)
        fini_phi_close(phi);
    return status;
}

static fin_status apply(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                        fini_cancel *cancel, fin_error *err)
{
    if (map->statistics == FINI_TOKENS && map->features == 0) {
        phi->center = map->center;
        phi->scale = map->scale;
        phi->bound = map->bound;
        return FIN_OK;
    }
    if (!bag_each(map))
        return materialise(map, bags, phi, cancel, err);
    fini_phi rows;
    fin_status status = fini_statistics(map, bags, &rows, cancel, err);
    if (status)
        return status;
    status = materialise(map, &rows.bags, phi, cancel, err);
    if (!status) { /* what was borrowed from the rows goes over to phi */
        phi->owned_offsets = rows.owned_offsets;
        rows.owned_offsets = NULL;
    }
    fini_phi_close(&rows);
    return status;
}

fin_status fini_map_apply(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                          fini_cancel *cancel, fin_error *err)
{
    *phi = (fini_phi){.bags = *bags};
    if (bags->d != map->d)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tokens of %lld columns; the model was fitted to %lld", (long long)bags->d,
                         (long long)map->d);
    fin_status status = apply(map, bags, phi, cancel, err);
    for (int64_t j = map->s - map->linear; j < map->s && !status; j++)
        phi->left_out += map->scale[j] == 0;
    return status;
}
