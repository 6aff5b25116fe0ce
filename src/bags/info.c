/* What a fit says about itself: sizes, settings, directions, which columns matter. */
#include "bags/bags.h"

#include <string.h>

void fin_fit_get_info(const fin_fit *fit, fin_fit_info *info)
{
    if (!fit || !info)
        return;
    *info = (fin_fit_info){.classes = fit->classes,
                           .d = fit->d,
                           .bags = fit->bags,
                           .tokens = fit->tokens,
                           .parts = fit->parts,
                           .sharpness = fit->sharpness,
                           .positive = fini_positive(fit),
                           .locator = fit->locator,
                           .inner_loss = fit->inner_loss,
                           .base_loss = fit->base_loss,
                           .locator_loss = fit->locator_loss,
                           .noise = fit->classes ? 0 : fit->noise * fit->label_scale};
    for (int64_t k = 0; k < fit->parts; k++) {
        const fini_part *part = &fit->part[k];
        int64_t used = 0;
        for (int64_t j = 0; j < part->map.d && j < part->map.s; j++)
            used += part->map.scale[j] != 0;
        info->columns = used > info->columns ? used : info->columns;
        if (part->weight > 0) {
            info->members += part->members;
            info->parameters =
                part->parameters > info->parameters ? part->parameters : info->parameters;
        }
        info->iterations += part->iterations;
        info->evaluations += part->evaluations;
        info->unfinished += part->unfinished;
        info->loss += part->weight * part->loss;
    }
}

const fin_fit_settings *fin_fit_get_settings(const fin_fit *fit)
{
    return fit ? &fit->settings : NULL;
}

const fin_fit_settings *fin_fit_part(const fin_fit *fit, int64_t i, double *weight)
{
    if (!fit || i < 0 || i >= fit->parts)
        return NULL;
    if (weight)
        *weight = fit->part[i].weight;
    return &fit->part[i].settings;
}

/* Does the part see tokens, or their mean, column by column? */
static bool by_columns(const fini_part *part)
{
    return part->map.linear == part->map.d &&
           (part->map.statistics == FINI_TOKENS || part->map.statistics == FINI_MEAN);
}

/* Mean over members of row r of W, the columns of z alone: (d). */
static void mean_row(const fini_part *part, int64_t r, double *row)
{
    memset(row, 0, (size_t)part->map.d * sizeof *row);
    for (int64_t m = 0; m < part->members; m++)
        for (int64_t j = 0; j < part->map.d; j++)
            row[j] +=
                part->member[m * part->parameters + r * part->map.p + j] / (double)part->members;
}

/* 1 if a larger value speaks for class 1 (or a larger number), -1 if for class 0, as inside classes may be swapped. */
static double turned(const fin_fit *fit, const fini_part *part)
{
    double side = part->model->is.sides && !part->shape.positive ? -1 : 1;
    return fit->swapped ? -side : side;
}

fin_status fin_fit_directions(const fin_fit *fit, int64_t i, int64_t h, int64_t o, double *key,
                              double *value, fin_error *err)
{
    FINI_NEED(err, fit, key, value);
    if (i < 0 || i >= fit->parts)
        return fini_fail(err, FIN_ERR_ARGUMENT, "part %lld of %lld parts", (long long)i,
                         (long long)fit->parts);
    const fini_part *part = &fit->part[i];
    int64_t keys = part->form->keys(&part->shape), heads = part->shape.heads;
    if (!by_columns(part))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this model does not see the columns of a token; with basis = linear "
                         "it has a key and a value");
    if (h < 0 || h >= heads || o < 0 || o >= part->shape.outputs)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "head %lld of %lld and output %lld of %lld do not exist", (long long)h,
                         (long long)heads, (long long)o, (long long)part->shape.outputs);
    if (keys)
        mean_row(part, h, key);
    else
        memset(key, 0, (size_t)fit->d * sizeof *key);
    mean_row(part, keys + h * part->shape.outputs + o, value);
    double side = part->shape.outputs == 1 ? turned(fit, part) : 1;
    for (int64_t j = 0; j < fit->d; j++) {
        key[j] *= part->map.scale[j];
        value[j] *= side * part->map.scale[j] * fit->label_scale;
    }
    return FIN_OK;
}

/* Roots of mean squares over heads, outputs and members of |w_j| spread_j. */
static void add_rows(const fini_part *part, int64_t from, int64_t to, double weight, double *sum)
{
    double share = weight / (double)part->members / (double)(to - from);
    for (int64_t m = 0; m < part->members; m++)
        for (int64_t r = from; r < to; r++)
            for (int64_t j = 0; j < part->map.d; j++) {
                double w =
                    part->member[m * part->parameters + r * part->map.p + j] * part->map.spread[j];
                sum[j] += share * w * w;
            }
}

fin_status fin_fit_importance(const fin_fit *fit, double *key, double *value, fin_error *err)
{
    FINI_NEED(err, fit, key, value);
    double keys = 0, values = 0;
    bool blind = false; /* the mean, beside others or alone, has nothing to say of columns */
    memset(key, 0, (size_t)fit->d * sizeof *key);
    memset(value, 0, (size_t)fit->d * sizeof *value);
    for (int64_t i = 0; i < fit->parts; i++) {
        bool constant = fit->part[i].model->is.constant;
        blind |= !constant && !by_columns(&fit->part[i]);
        if (!constant && by_columns(&fit->part[i])) {
            values += fit->part[i].weight;
            keys += fit->part[i].form->keys(&fit->part[i].shape) ? fit->part[i].weight : 0;
        }
    }
    if (!(values > 0) && blind)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this model does not see the columns of a token; with basis = linear "
                         "or both it does");
    for (int64_t i = 0; i < fit->parts; i++) {
        const fini_part *part = &fit->part[i];
        int64_t k = part->form->keys(&part->shape), v = part->form->values(&part->shape);
        if (part->model->is.constant || !(part->weight > 0) || !by_columns(part))
            continue;
        if (k && keys > 0)
            add_rows(part, 0, k, part->weight / keys, key);
        add_rows(part, k, k + v, part->weight / values, value);
    }
    for (int64_t j = 0; j < fit->d; j++) {
        key[j] = sqrt(key[j]);
        value[j] = sqrt(value[j]) * fit->label_scale;
    }
    return FIN_OK;
}

int fin_fit_by_columns(const fin_fit *fit, int64_t i)
{
    return fit && i >= 0 && i < fit->parts ? by_columns(&fit->part[i]) : 0;
}

/* Sums of w_j spread_j and of its square, over rows from .. to - 1 of all members. */
static void add_signed(const fini_part *part, int64_t from, int64_t to, double side, int64_t j,
                       double *sum)
{
    double share = part->weight / (double)part->members / (double)(to - from);
    for (int64_t m = 0; m < part->members; m++)
        for (int64_t r = from; r < to; r++) {
            double w =
                part->member[m * part->parameters + r * part->map.p + j] * part->map.spread[j];
            sum[0] += share * side * w;
            sum[1] += share * w * w;
            sum[2] += share;
        }
}

/* The mean, if it is at least half of the root of the mean square. */
static double sign_of(const double *sum)
{
    bool clear = sum[2] > 0 && sum[0] * sum[0] / sum[2] >= 0.25 * sum[1];
    return !clear || sum[0] == 0 ? 0 : sum[0] > 0 ? 1 : -1;
}

fin_status fin_fit_signs(const fin_fit *fit, double *key, double *value, fin_error *err)
{
    FINI_NEED(err, fit, key, value);
    for (int64_t j = 0; j < fit->d; j++) {
        double keys[3] = {0}, values[3] = {0};
        for (int64_t i = 0; i < fit->parts; i++) {
            const fini_part *part = &fit->part[i];
            int64_t k = part->form->keys(&part->shape), v = part->form->values(&part->shape);
            if (part->model->is.constant || !by_columns(part))
                continue;
            if (k)
                add_signed(part, 0, k, 1, j, keys);
            if (part->shape.outputs == 1)
                add_signed(part, k, k + v, turned(fit, part), j, values);
        }
        key[j] = sign_of(keys);
        value[j] = sign_of(values);
    }
    return FIN_OK;
}
