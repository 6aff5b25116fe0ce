/* What tuning maximises, summed over the sequences that share their settings:
 *
 *     evidence   sum_i log p(values_i | keys_i)                          cme, with its gradient
 *     loo        mean over tokens and columns of log N(v; mean_-l, var_-l)   cme
 *     loo        - mean squared leave-one-out error                          softmax, nw
 *
 * Long sequences are done one after the other, each by all threads; many short ones side by side,
 * each by one thread (inside a team OpenMP gives further calls one thread). Numbers are added in
 * the order of the sequences in both cases, so that the number of threads changes no bit. */
#include "context/tune.h"
#include "base/constants.h"

#include <math.h>
#include <omp.h>
#include <string.h>

void fini_tune_put(const fini_tune *t, const double *at, fin_cross_settings *cross, double *scales)
{
    for (int64_t i = 0; i < t->parts; i++) {
        double value = exp(at[i]);
        if (t->part[i].column >= 0)
            scales[t->part[i].column] = value;
        else if (t->part[i].what == FIN_TUNE_SCALE)
            cross->scale = value;
        else if (t->part[i].what == FIN_TUNE_PRIOR)
            cross->prior = value;
        else if (t->part[i].what == FIN_TUNE_NOISE)
            cross->noise = value;
        else
            cross->temperature = value;
    }
}

/* ---- one sequence --------------------------------------------------------------------------- */

static fin_status evidence(const fini_tune *t, fini_tune_lane *lane, double *value, double *slope,
                           const fin_progress *progress, fin_error *err)
{
    double three[3];
    fin_status status = fin_cross_evidence(lane->cross, value, slope ? three : NULL,
                                           slope && t->ard ? lane->columns : NULL, progress, err);
    for (int64_t i = 0; slope && !status && i < t->parts; i++)
        slope[i] = t->part[i].column >= 0              ? lane->columns[t->part[i].column]
                   : t->part[i].what == FIN_TUNE_SCALE ? three[0]
                   : t->part[i].what == FIN_TUNE_PRIOR ? three[1]
                                                       : three[2];
    return status;
}

/* Sum over the tokens of one sequence. */
static fin_status left_out(const fini_tune *t, fini_tune_lane *lane, int64_t n,
                           const double *values, double *value, const fin_progress *progress,
                           fin_error *err)
{
    FINI_TRY(fin_cross_loo(lane->cross, lane->mean, lane->variance, progress, err));
    *value = 0;
    for (int64_t i = 0; i < n * t->data->dv; i++) {
        double error = values[i] - lane->mean[i], var = lane->variance[i];
        *value -= t->settings.form == FIN_CROSS_CME
                      ? 0.5 * (error * error / var + log(var) + FINI_LOG_TWO_PI)
                      : error * error;
    }
    return FIN_OK;
}

static fin_status one(const fini_tune *t, fini_tune_lane *lane, int64_t i, bool slope,
                      const fin_progress *progress, fin_error *err)
{
    const fin_tune_data *data = t->data;
    int64_t from = data->offsets[i], n = data->offsets[i + 1] - from;
    const double *keys = data->keys + from * data->dk, *values = data->values + from * data->dv;
    t->value[i] = 0;
    if (slope)
        memset(t->gradient + i * t->parts, 0, (size_t)t->parts * sizeof *t->gradient);
    /* A token alone has nothing to attend to. */
    if (n < 1 || (n < 2 && t->settings.form != FIN_CROSS_CME))
        return FIN_OK;
    FINI_TRY(fin_cross_load(lane->cross, n, keys, values, progress, err));
    if (t->loo)
        return left_out(t, lane, n, values, &t->value[i], progress, err);
    return evidence(t, lane, &t->value[i], slope ? t->gradient + i * t->parts : NULL, progress,
                    err);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* The calls made on the way report their own shares of the work, which are nobody's concern. */
static int report(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    const fini_tune *t = user;
    const double usual = 40; /* evaluations of a search */
    double share = 1 - exp(-(double)t->in_start / usual);
    double starts = (double)t->how.restarts;
    return fini_report(t->progress, "tuning", fmin(t->start + share, starts), starts);
}

static fin_status open_lanes(fini_tune *t, fin_error *err)
{
    fin_cross_settings settings = t->settings;
    fini_tune_put(t, t->at, &settings, t->scales);
    for (int k = 0; k < t->lanes; k++)
        FINI_TRY(fin_cross_create(&t->lane[k].cross, &settings, t->scales, t->data->dk, t->data->dv,
                                  t->longest, err));
    return FIN_OK;
}

static void close_lanes(fini_tune *t)
{
    for (int k = 0; k < t->lanes; k++) {
        fin_cross_destroy(t->lane[k].cross);
        t->lane[k].cross = NULL;
    }
}

/* Of several failures the first sequence's counts, as if they had gone one after the other. */
static fin_status side_by_side(fini_tune *t, bool slope, fin_error *err)
{
    int64_t failed = t->data->n;
    fin_status status = FIN_OK;
#pragma omp parallel num_threads(t->lanes)
    {
        fini_tune_lane *lane = &t->lane[omp_get_thread_num()];
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < t->data->n; i++) {
            fin_error own = {FIN_OK, ""};
            fin_status result = one(t, lane, i, slope, NULL, &own);
            if (!result)
                continue;
#pragma omp critical(fini_tune_failed)
            if (i < failed) {
                failed = i;
                status = result;
                *err = own;
            }
        }
    }
    return status;
}

static fin_status every(fini_tune *t, bool slope, fin_error *err)
{
    const fin_progress hook = {report, t};
    if (report(t, "", 0, 0))
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    fin_status status = open_lanes(t, err);
    if (status || t->lanes > 1)
        return status ? status : side_by_side(t, slope, err);
    for (int64_t i = 0; i < t->data->n && !status; i++) {
        if (i % 64 == 63 && report(t, "", 0, 0))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
        status = one(t, &t->lane[0], i, slope, &hook, err);
    }
    return status;
}

static double evaluate(fini_tune *t, double *gradient)
{
    fin_error cause = {FIN_OK, ""};
    if (t->status)
        return -INFINITY;
    t->evaluations++;
    t->in_start++;
    fin_status status = every(t, gradient, &cause);
    close_lanes(t);
    if (status) {
        *t->err = cause; /* of a numerical failure too, in case nothing else is ever found */
        t->status = status == FIN_ERR_NUMERIC ? FIN_OK : status;
        return -INFINITY;
    }
    double sum = 0;
    int64_t tokens = t->data->offsets[t->data->n];
    for (int64_t i = 0; i < t->data->n; i++)
        sum += t->value[i];
    for (int64_t j = 0; gradient && j < t->parts; j++) {
        gradient[j] = 0;
        for (int64_t i = 0; i < t->data->n; i++)
            gradient[j] += t->gradient[i * t->parts + j];
    }
    double value = t->loo ? sum / (double)(tokens * t->data->dv) : sum;
    if (isnan(value))
        return -INFINITY;
    if (value > t->best_value) {
        t->best_value = value;
        t->best_start = t->start;
        memcpy(t->best, t->at, (size_t)t->parts * sizeof *t->best);
    }
    return value;
}

/* Leave-one-out has no gradient of its own: central differences of a function that is good to about
 * 1e-13, with an error of about 1e-8 either way. */
static void differences(fini_tune *t, double *gradient)
{
    const double h = 1e-4;
    for (int64_t j = 0; j < t->parts; j++) {
        double middle = t->at[j];
        t->at[j] = middle + h;
        double above = evaluate(t, NULL);
        t->at[j] = middle - h;
        double below = evaluate(t, NULL);
        t->at[j] = middle;
        gradient[j] = (above - below) / (2 * h);
    }
}

double fini_tune_value(fini_tune *t, double *gradient)
{
    double value = evaluate(t, t->loo ? NULL : gradient);
    if (gradient && t->loo && isfinite(value))
        differences(t, gradient);
    return value;
}
