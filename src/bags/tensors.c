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
 *     K.columns ...            of the map (map_tensors.c)
 *
 * Tensors point into the fit, so what is not an array there is made one when a fit is complete. */
#include "bags/bags.h"

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

typedef struct list {
    fin_tensor *tensors;
    int64_t count, room;
} list;

static void put(list *l, const char *prefix, const char *name, fin_dtype dtype, int64_t rows,
                int64_t columns, const void *data)
{
    if (l->count < l->room) {
        fin_tensor *t = &l->tensors[l->count];
        *t = (fin_tensor){.dtype = dtype, .ndim = columns ? 2 : 1, .data = data};
        snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
        t->shape[0] = rows;
        t->shape[1] = columns;
    }
    l->count++;
}

int64_t fin_fit_tensors(const fin_fit *fit, fin_tensor *tensors, int64_t room)
{
    list l = {tensors, 0, tensors ? room : 0};
    put(&l, "", "counts", FIN_I64, 5, 0, fit->counts);
    put(&l, "", "numbers", FIN_F64, 3, 0, fit->numbers);
    if (fit->sharpness != 1)
        put(&l, "", "sharpness", FIN_F64, 1, 0, fit->numbers + 3);
    put(&l, "", "choice", FIN_I64, 2, 0, fit->choice);
    put(&l, "", "inner", FIN_F64, 4, 0, fit->inner);
    if (fit->range)
        put(&l, "", "range", FIN_F64, 2, fit->d, fit->range);
    if (fit->hashes)
        put(&l, "", "hashes", FIN_I64, fit->hashes, 0, fit->hash);
    for (int64_t k = 0; k < fit->parts; k++) {
        const fini_part *part = &fit->part[k];
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%lld.", (long long)k);
        put(&l, prefix, "settings", FIN_U8, part->counts[5], 0, part->text);
        put(&l, prefix, "counts", FIN_I64, 5, 0, part->counts);
        put(&l, prefix, "numbers", FIN_F64, 3, 0, part->numbers);
        put(&l, prefix, "penalty", FIN_F64, part->members, 0, part->penalty);
        put(&l, prefix, "members", FIN_F64, part->members, part->parameters, part->member);
        int64_t left = l.room > l.count ? l.room - l.count : 0;
        l.count += fini_map_tensors(&part->map, prefix, left ? tensors + l.count : NULL, left);
    }
    return l.count;
}
