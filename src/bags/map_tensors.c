/* A map to tensors and back.
 *
 *     columns    (4, s)   centres, scales, bounds, spreads
 *     groups     (2)      features of each group of columns
 *     bandwidth  (2)
 *     landmarks  (numbers of all groups)      whiten: the same
 *     features   (2, m)   shifts, stretches: two tensors, "shift" and "stretch"
 *
 * Those of features are there only where the map has some. What settings say is not repeated. On
 * the way back every shape, and every number whose size matters, is looked at. */
#include "bags/map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 20 }; /* features of a group: far more than settings allow */

/* Numbers in landmarks and in whiten. */
static void sizes(const fini_map *map, int64_t *landmarks, int64_t *whiten)
{
    *landmarks = *whiten = 0;
    for (int g = 0; g < fini_map_groups(map); g++) {
        int64_t m = map->group_m[g];
        *landmarks += (map->kind == 0 ? m : m / 2) * fini_map_width(map, g);
        *whiten += map->kind == 0 ? m * m : 0;
    }
}

static int64_t put(fin_tensor *tensors, int64_t at, int64_t room, const char *prefix,
                   const char *name, fin_dtype dtype, int64_t rows, int64_t columns,
                   const void *data)
{
    if (at < room) {
        fin_tensor *t = &tensors[at];
        *t = (fin_tensor){.dtype = dtype, .ndim = rows ? 2 : 1, .data = data};
        snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
        t->shape[0] = rows ? rows : columns;
        t->shape[1] = rows ? columns : 0;
    }
    return at + 1;
}

int64_t fini_map_tensors(const fini_map *map, const char *prefix, fin_tensor *tensors, int64_t room)
{
    int64_t landmarks, whiten, n = 0, m = map->m;
    sizes(map, &landmarks, &whiten);
    n = put(tensors, n, room, prefix, "columns", FIN_F64, 4, map->s, map->center);
    if (!map->features)
        return n;
    n = put(tensors, n, room, prefix, "groups", FIN_I64, 0, 2, map->group_m);
    n = put(tensors, n, room, prefix, "bandwidth", FIN_F64, 0, 2, map->bandwidth);
    n = put(tensors, n, room, prefix, "landmarks", FIN_F64, 0, landmarks, map->landmarks);
    if (map->kind == 0)
        n = put(tensors, n, room, prefix, "whiten", FIN_F64, 0, whiten, map->whiten);
    n = put(tensors, n, room, prefix, "shift", FIN_F64, 0, m, map->shift);
    return put(tensors, n, room, prefix, "stretch", FIN_F64, 0, m, map->stretch);
}

/* ---- back ------------------------------------------------------------------------------------ */

typedef struct source {
    const char *prefix;
    const fin_tensor *tensors;
    int64_t count;
    fin_error *err;
} source;

static const fin_tensor *look_up(const source *s, const char *name)
{
    size_t n = strlen(s->prefix);
    for (int64_t i = 0; i < s->count; i++)
        if (strncmp(s->tensors[i].name, s->prefix, n) == 0 &&
            strcmp(s->tensors[i].name + n, name) == 0)
            return &s->tensors[i];
    return NULL;
}

/* The tensor of that name, type and shape (rows 0: one dimension; columns -1: any); else NULL. */
static const fin_tensor *find(const source *s, const char *name, fin_dtype dtype, int64_t rows,
                              int64_t columns, fin_status *status)
{
    const fin_tensor *t = look_up(s, name);
    int ndim = rows ? 2 : 1;
    bool good = t && t->dtype == dtype && t->ndim == ndim && (!rows || t->shape[0] == rows) &&
                (columns < 0 ? t->shape[ndim - 1] > 0 : t->shape[ndim - 1] == columns) &&
                (t->data || columns == 0);
    if (good)
        return t;
    *status = fini_fail(s->err, FIN_ERR_FORMAT, "the model's tensor %s%s %s", s->prefix, name,
                        t ? "has another type or shape than its settings ask for" : "is missing");
    return NULL;
}

/* Copies n numbers from a tensor; those that are not between low and high are refused. */
static fin_status copy(const source *s, const char *name, int64_t n, double low, double high,
                       double **to)
{
    fin_status status = FIN_OK;
    const fin_tensor *t = find(s, name, FIN_F64, 0, n, &status);
    if (!status)
        status = fini_numbers(to, 1, n, "a map from a file", s->err);
    if (status)
        return status;
    const double *x = t->data;
    for (int64_t i = 0; i < n; i++) {
        (*to)[i] = x[i];
        if (!(x[i] >= low && x[i] <= high))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model's tensor %s%s has %g at place %lld; it should be between "
                             "%g and %g",
                             s->prefix, name, x[i], (long long)i, low, high);
    }
    return FIN_OK;
}

static fin_status restore_columns(fini_map *map, const source *s, const fin_tensor *t)
{
    memcpy(map->center, t->data, 4 * (size_t)map->s * sizeof(double));
    for (int64_t j = 0; j < map->s; j++) {
        bool good = isfinite(map->center[j]) && map->scale[j] >= 0 && isfinite(map->scale[j]) &&
                    map->bound[j] >= 0 && map->spread[j] >= 0 && isfinite(map->spread[j]);
        if (!good)
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model's column %lld has centre %g, scale %g, bound %g and spread "
                             "%g; the first must be finite, the others not negative",
                             (long long)j, map->center[j], map->scale[j], map->bound[j],
                             map->spread[j]);
        map->used += map->scale[j] > 0;
    }
    return FIN_OK;
}

static fin_status restore_features(fini_map *map, const source *s)
{
    fin_status status = FIN_OK;
    const fin_tensor *groups = find(s, "groups", FIN_I64, 0, 2, &status);
    const fin_tensor *bandwidth = status ? NULL : find(s, "bandwidth", FIN_F64, 0, 2, &status);
    if (status)
        return status;
    memcpy(map->group_m, groups->data, sizeof map->group_m);
    memcpy(map->bandwidth, bandwidth->data, sizeof map->bandwidth);
    for (int g = 0; g < 2; g++) {
        int64_t m = map->group_m[g], most = g < fini_map_groups(map) ? MOST : 0;
        bool there = g < fini_map_groups(map);
        if (m < 0 || m > most || (map->kind == 1 && m % 2) ||
            !(map->bandwidth[g] >= 0 && map->bandwidth[g] <= 1e100) ||
            (there && !(map->bandwidth[g] > 0)))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "the model has %lld features of bandwidth %g in group %d of its "
                             "columns, which cannot be",
                             (long long)m, map->bandwidth[g], g);
        map->m += m;
    }
    int64_t landmarks, whiten;
    if (map->s > (INT64_MAX >> 24))
        return fini_fail(s->err, FIN_ERR_FORMAT, "the model has %lld columns", (long long)map->s);
    sizes(map, &landmarks, &whiten);
    status = copy(s, "landmarks", landmarks, -1e150, 1e150, &map->landmarks);
    if (!status && map->kind == 0)
        status = copy(s, "whiten", whiten, -1e150, 1e150, &map->whiten);
    if (!status)
        status = copy(s, "shift", map->m, -1e150, 1e150, &map->shift);
    if (!status)
        status = copy(s, "stretch", map->m, 0, 1e150, &map->stretch);
    return status;
}

fin_status fini_map_restore(fini_map *map, const fin_fit_settings *settings, const char *prefix,
                            const fin_tensor *tensors, int64_t count, fin_error *err)
{
    source s = {prefix, tensors, count, err};
    fin_status status = FIN_OK;
    *map = (fini_map){0};
    const fin_tensor *columns = find(&s, "columns", FIN_F64, 4, -1, &status);
    if (status)
        return status;
    int64_t d = columns->shape[1];
    bool thrice = settings->model == FIN_MODEL_EMBEDDING;
    if (thrice && (d < 4 || d % 3 != 1))
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the model's tensor %scolumns has %lld columns, which are not the "
                         "statistics of tokens",
                         prefix, (long long)d);
    status = fini_map_open(map, settings, thrice ? d / 3 : d, err);
    if (!status)
        status = restore_columns(map, &s, columns);
    if (!status && map->features)
        status = restore_features(map, &s);
    map->p = map->linear + map->m;
    if (status)
        fini_map_close(map);
    return status;
}
