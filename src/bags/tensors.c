/* The numbers of a fit as named tensors, for files; restore.c is the way back.
 *
 *     counts, numbers          of the fit: parts, classes, columns, bags, tokens; the labels' centre
 *                              and scale, the noise
 *     sharpness                power of the probabilities, if it is not 1
 *     choice                   are two classes swapped inside; the part that locates (from 1; 0: none)
 *     inner                    losses on inner folds: of the fit, of the base rate, of what locates (-1: not
 *                              known); sharpness of what locates
 *     range, hashes            of training tokens (2, d); of training bags (same.c)
 *     K.settings               of part K, as lines "name=value": a later version that knows more
 *                              settings can still be read, and so can an earlier one
 *     K.counts, K.numbers      members, parameters, iterations, evaluations, unfinished; weight,
 *                              noise, loss
 *     K.penalty, K.members     (members), (members, parameters)
 *     K.columns                (4, s) of the map: centres, scales, bounds, spreads
 *     K.groups, K.bandwidth    (2) features of each group of columns, if the map has features
 *     K.landmarks, K.whiten    numbers of all groups
 *     K.shift, K.stretch       (m)
 *
 * Tensors point into the fit, so what is not an array there is made one when a fit is complete. */
#include "bags/map.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 2048 };

/* "name=value" for every setting, a line each. */
static fin_status write_settings(fini_part *part, fin_error *err)
{
    size_t used = 0;
    fini_free(part->text);
    part->text = fini_alloc(TEXT);
    if (!part->text)
        return fini_fail_memory(err, TEXT, "settings");
    for (int i = 0; i < fin_fit_table.count; i++) {
        char value[64];
        const fin_field *field = &fin_fit_table.fields[i];
        fin_settings_text(field, &part->settings, value, sizeof value);
        int more = snprintf(part->text + used, TEXT - used, "%s=%s\n", field->name, value);
        if (more < 0 || (size_t)more >= TEXT - used)
            return fini_fail(err, FIN_ERR_NUMERIC, "the settings do not fit %d letters", TEXT);
        used += (size_t)more;
    }
    part->counts[5] = (int64_t)used;
    return FIN_OK;
}

fin_status fini_fit_finish(fin_fit *fit, fin_error *err)
{
    fin_status status = FIN_OK;
    int64_t counts[] = {fit->parts, fit->classes, fit->d, fit->bags, fit->tokens};
    double numbers[] = {fit->label_center, fit->label_scale, fit->noise, fit->sharpness};
    const double losses[] = {fit->inner_loss, fit->base_loss, fit->locator_loss};
    memcpy(fit->counts, counts, sizeof counts);
    memcpy(fit->numbers, numbers, sizeof numbers);
    for (int i = 0; i < 3; i++)
        fit->inner[i] = isfinite(losses[i]) ? losses[i] : -1;
    fit->inner[3] = fit->locator_sharpness;
    fit->choice[0] = fit->swapped;
    fit->choice[1] = fit->locator + 1;
    for (int64_t k = 0; k < fit->parts && !status; k++) {
        fini_part *part = &fit->part[k];
        int64_t part_counts[] = {part->members, part->parameters, part->iterations,
                                 part->evaluations, part->unfinished};
        double part_numbers[] = {part->weight, part->noise, part->loss};
        memcpy(part->counts, part_counts, sizeof part_counts);
        memcpy(part->numbers, part_numbers, sizeof part_numbers);
        status = write_settings(part, err);
    }
    return status;
}

/* ---- lists of tensors ------------------------------------------------------------------------ */

void fini_tensor_put(fini_tensor_list *list, const char *prefix, const char *name, fin_dtype dtype,
                     int64_t rows, int64_t columns, const void *data)
{
    if (list->count < list->room) {
        fin_tensor *t = &list->tensors[list->count];
        *t = (fin_tensor){.dtype = dtype, .ndim = columns ? 2 : 1, .data = data};
        snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
        t->shape[0] = rows;
        t->shape[1] = columns;
    }
    list->count++;
}

const fin_tensor *fini_tensor_find(const fin_tensor *tensors, int64_t count, const char *prefix,
                                   const char *name)
{
    size_t n = strlen(prefix);
    for (int64_t i = 0; i < count; i++)
        if (strncmp(tensors[i].name, prefix, n) == 0 &&
            strncmp(tensors[i].name + n, name, sizeof tensors[i].name - n) == 0)
            return &tensors[i];
    return NULL;
}

bool fini_tensor_fits(const fin_tensor *t, fin_dtype dtype, int64_t rows, int64_t columns)
{
    return t->dtype == dtype && t->ndim == (columns ? 2 : 1) &&
           (rows < 0 ? t->shape[0] >= 0 : t->shape[0] == rows) &&
           (columns < 0 ? t->shape[1] > 0 : columns == 0 || t->shape[1] == columns);
}

double fini_tensor_number(const fin_tensor *t, int64_t i)
{
    float f;
    double d;
    if (t->dtype == FIN_F32) {
        memcpy(&f, (const char *)t->data + (size_t)i * sizeof f, sizeof f);
        return (double)f;
    }
    memcpy(&d, (const char *)t->data + (size_t)i * sizeof d, sizeof d);
    return d;
}

/* ---- of a map, of a fit ---------------------------------------------------------------------- */

void fini_map_sizes(const fini_map *map, int64_t *landmarks, int64_t *whiten)
{
    *landmarks = *whiten = 0;
    for (int g = 0; g < fini_map_groups(map); g++) {
        int64_t m = map->group_m[g];
        *landmarks += (map->kind == 0 ? m : m / 2) * fini_map_width(map, g);
        *whiten += map->kind == 0 ? m * m : 0;
    }
}

int64_t fini_map_tensors(const fini_map *map, const char *prefix, fin_tensor *tensors, int64_t room)
{
    fini_tensor_list l = {tensors, 0, room};
    int64_t landmarks, whiten, m = map->m;
    fini_map_sizes(map, &landmarks, &whiten);
    fini_tensor_put(&l, prefix, "columns", FIN_F64, 4, map->s, map->center);
    if (!map->features)
        return l.count;
    fini_tensor_put(&l, prefix, "groups", FIN_I64, 2, 0, map->group_m);
    fini_tensor_put(&l, prefix, "bandwidth", FIN_F64, 2, 0, map->bandwidth);
    fini_tensor_put(&l, prefix, "landmarks", FIN_F64, landmarks, 0, map->landmarks);
    if (map->kind == 0)
        fini_tensor_put(&l, prefix, "whiten", FIN_F64, whiten, 0, map->whiten);
    fini_tensor_put(&l, prefix, "shift", FIN_F64, m, 0, map->shift);
    fini_tensor_put(&l, prefix, "stretch", FIN_F64, m, 0, map->stretch);
    return l.count;
}

int64_t fin_fit_tensors(const fin_fit *fit, fin_tensor *tensors, int64_t room)
{
    fini_tensor_list l = {tensors, 0, tensors ? room : 0};
    fini_tensor_put(&l, "", "counts", FIN_I64, 5, 0, fit->counts);
    fini_tensor_put(&l, "", "numbers", FIN_F64, 3, 0, fit->numbers);
    if (fit->sharpness != 1)
        fini_tensor_put(&l, "", "sharpness", FIN_F64, 1, 0, fit->numbers + 3);
    fini_tensor_put(&l, "", "choice", FIN_I64, 2, 0, fit->choice);
    fini_tensor_put(&l, "", "inner", FIN_F64, 4, 0, fit->inner);
    if (fit->range)
        fini_tensor_put(&l, "", "range", FIN_F64, 2, fit->d, fit->range);
    if (fit->hashes)
        fini_tensor_put(&l, "", "hashes", FIN_I64, fit->hashes, 0, fit->hash);
    for (int64_t k = 0; k < fit->parts; k++) {
        const fini_part *part = &fit->part[k];
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%lld.", (long long)k);
        fini_tensor_put(&l, prefix, "settings", FIN_U8, part->counts[5], 0, part->text);
        fini_tensor_put(&l, prefix, "counts", FIN_I64, 5, 0, part->counts);
        fini_tensor_put(&l, prefix, "numbers", FIN_F64, 3, 0, part->numbers);
        fini_tensor_put(&l, prefix, "penalty", FIN_F64, part->members, 0, part->penalty);
        fini_tensor_put(&l, prefix, "members", FIN_F64, part->members, part->parameters,
                        part->member);
        int64_t left = l.room > l.count ? l.room - l.count : 0;
        l.count += fini_map_tensors(&part->map, prefix, left ? tensors + l.count : NULL, left);
    }
    return l.count;
}
