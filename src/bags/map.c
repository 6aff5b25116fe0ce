/* The map from bags to what a form sees: fitted to the training bags, applied to any.
 *
 * Tokens that are seen through their columns alone are not copied: the view says how to see them
 * (kernel/rows.h does), because they may be as large as memory. Everything else is made once, row
 * by row, by threads that share tiles of rows; how it is cut does not change a bit of it. */
#include "bags/map.h"

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

/* ---- fitting --------------------------------------------------------------------------------- */

static int statistics_of(int model)
{
    return model == FIN_MODEL_EMBEDDING                         ? FINI_STATISTICS
           : model == FIN_MODEL_MEAN || model == FIN_MODEL_BASE ? FINI_MEAN
           : model == FIN_MODEL_MAX                             ? FINI_MAX
                                                                : FINI_TOKENS;
}

/* The embedding is one in the space of a kernel always; the statistics themselves are seen beside
 * it unless `features` is rbf. */
fin_status fini_map_open(fini_map *map, const fin_fit_settings *settings, int64_t d, fin_error *err)
{
    enum { LINEAR, RBF, BOTH };
    *map = (fini_map){.statistics = statistics_of(settings->model),
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
    fin_status status = fini_numbers(&map->center, 4, map->s, "centres and scales of columns", err);
    if (status)
        return status;
    map->scale = map->center + map->s;
    map->bound = map->scale + map->s;
    map->spread = map->bound + map->s;
    memset(map->center, 0, 4 * (size_t)map->s * sizeof *map->center);
    return FIN_OK;
}

fin_status fini_map_fit(fini_map *map, const fin_fit_settings *settings, int64_t classes,
                        const fin_bags *bags, const double *weights, fin_sum sum,
                        fini_cancel *cancel, fin_error *err)
{
    (void)classes; /* no map looks at labels */
    fin_status status = fini_map_open(map, settings, bags->d, err);
    if (status)
        return status;
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
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t i = 0; i < bags->n; i++)
            mean_of_bag(map, bags, i, (double *)phi->owned + i * map->p,
                        scratch + omp_get_thread_num() * room, cancel);
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
