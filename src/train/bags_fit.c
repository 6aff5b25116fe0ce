/* A fit from outside: labels in their own units, one part or several.
 *
 * Numbers are standardised with mean and deviation of the training bags, so that a penalty and a
 * noise mean the same for all labels; predictions go back through the same two numbers. */
#include "train/bags.h"

#include <string.h>

/* ---- labels and weights ----------------------------------------------------------------------------- */

/* What is said of one bag that cannot be learnt from, or NULL. */
static const char *fault_of(int64_t classes, double y, double w)
{
    if (!(w >= 0 && w < INFINITY))
        return "has a weight that is negative or not a number";
    if (w > 0 && !isfinite(y))
        return "has no label; give it the weight 0, or leave it out";
    if (w > 0 && classes && !(y >= 0 && y < (double)classes && y == floor(y)))
        return "has a label that is not one of the classes 0, 1, ...";
    return NULL;
}

/* Sums over bags: those that cannot be used, weight, weight * (y - center), its square and its
 * absolute value. Every process takes part, also one that has found a fault: the others would wait
 * for it. */
static fin_status sum_labels(const fin_bags *bags, const double *weights, int64_t classes,
                             double center, fin_sum sum, double out[5], fin_error *err)
{
    double parts[5 * FIN_BAGS_BLOCKS];
    int64_t first, own;
    fini_bags_own(bags, &first, &own);
    for (int64_t b = 0; b < own; b++) {
        int64_t from, to;
        double *part = parts + 5 * b;
        memset(part, 0, 5 * sizeof *part);
        fini_bags_block(bags, b, &from, &to);
        for (int64_t i = from; i < to; i++) {
            double w = weights ? weights[i] : 1, rest = bags->labels[i] - center;
            part[0] += fault_of(classes, bags->labels[i], w) != NULL;
            part[1] += w > 0 ? w : 0;
            part[2] += w > 0 ? w * rest : 0;
            part[3] += w > 0 ? w * rest * rest : 0;
            part[4] += w > 0 ? w * fabs(rest) : 0;
        }
    }
    return sum(fin_bags_blocks(bags->total), 5, parts, out, err);
}

static fin_status complain(const fin_bags *bags, const double *weights, int64_t classes,
                           fin_error *err)
{
    for (int64_t i = 0; i < bags->n; i++) {
        const char *fault = fault_of(classes, bags->labels[i], weights ? weights[i] : 1);
        if (fault)
            return fini_fail(err, FIN_ERR_ARGUMENT, "bag %lld %s", (long long)(bags->first + i),
                             fault);
    }
    return fini_fail(err, FIN_ERR_ARGUMENT, "bags of another process cannot be used");
}

/* Are there two classes with weight? Sums of the lowest and the highest say: the weighted variance
 * of the class numbers is zero if there is one only. */
static fin_status check_labels(fin_fit *fit, const fin_bags *bags, const double *weights,
                               fin_sum sum, fin_error *err)
{
    double s[5];
    fin_status status = sum_labels(bags, weights, fit->classes, 0, sum, s, err);
    if (status)
        return status;
    if (s[0] > 0)
        return complain(bags, weights, fit->classes, err);
    if (!(s[1] > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld bags, and none has a weight: there is nothing to learn from",
                         (long long)bags->total);
    if (!(s[1] < INFINITY))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the weights of the bags are too large to be summed; divide them by a "
                         "power of ten");
    double center = s[2] / s[1];
    status = sum_labels(bags, weights, fit->classes, center, sum, s, err);
    if (status)
        return status;
    if (fit->classes && s[3] <= 1e-18 * s[1])
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "all training bags have the class number %g; at least two classes are "
                         "needed to learn a difference",
                         center);
    fit->label_center = fit->classes ? 0 : center + s[2] / s[1];
    double variance = s[3] / s[1] - s[2] / s[1] * (s[2] / s[1]);
    fit->label_scale = fit->classes ? 1 : variance > 0 ? sqrt(variance) : 1;
    if (!isfinite(fit->label_center) || !isfinite(fit->label_scale))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the labels are too large for their mean and variance to be numbers; "
                         "divide them by a power of ten");
    /* Their squares vanish, and they would pass for constant ones; those differ by roundings. */
    double spread = s[4] / s[1];
    if (!fit->classes && spread < 1e-150 && spread > 1e-12 * fabs(center))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the labels differ by %.3g only, too little for their variance to be a "
                         "number; multiply them by a power of ten",
                         spread);
    return FIN_OK;
}

/* ---- fitting ------------------------------------------------------------------------------------------ */

/* Numbers: with few bags for its parameters a model goes through its training labels, and how far it
 * is off there says nothing of new ones. Then the noise is measured on bags left out (bags_choose.c).
 * The mixture has a noise of its own. */
static bool measures_noise(const fin_fit *fit)
{
    const fin_fit_settings *s = &fit->settings;
    bool many = s->model == FIN_MODEL_EMBEDDING || s->basis > FIN_BASIS_LINEAR || fit->bags / 4 < fit->d;
    return fit->classes == 0 && s->model != FIN_MODEL_MIXTURE &&
           (s->calibrate == 2 || (s->calibrate == 0 && many && fit->bags >= 2 * s->inner));
}

static fin_status fit_parts(fin_fit *fit, const fin_bags *bags, const double *labels,
                            const double *weights, fin_sum sum, const fin_progress *progress,
                            fin_error *err)
{
    int model = fit->settings.model;
    if (model == FIN_MODEL_AUTO || model == FIN_MODEL_STACK ||
        fini_calibrates(&fit->settings, fit->classes) || measures_noise(fit))
        return fini_fit_choose(fit, bags, labels, weights, sum, progress, err);
    fit->part = fini_alloc(sizeof *fit->part);
    if (!fit->part)
        return fini_fail_memory(err, sizeof *fit->part, "a model");
    memset(fit->part, 0, sizeof *fit->part);
    fit->parts = 1;
    return fini_part_fit(fit->part, &fit->settings, fit->classes, bags, labels, weights, sum,
                         progress, err);
}

static fin_status count(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                        fin_error *err)
{
    double parts[2 * FIN_BAGS_BLOCKS], s[2];
    int64_t first, own;
    fini_bags_own(bags, &first, &own);
    for (int64_t b = 0; b < own; b++) {
        int64_t from, to;
        fini_bags_block(bags, b, &from, &to);
        parts[2 * b] = parts[2 * b + 1] = 0;
        for (int64_t i = from; i < to; i++)
            if (!weights || weights[i] > 0) {
                parts[2 * b] += 1;
                parts[2 * b + 1] += (double)(bags->offsets[i + 1] - bags->offsets[i]);
            }
    }
    fin_status status = sum(fin_bags_blocks(bags->total), 2, parts, s, err);
    fit->bags = (int64_t)s[0];
    fit->tokens = (int64_t)s[1];
    return status;
}

static fin_status fit_all(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                          const fin_progress *progress, fin_error *err)
{
    fin_status status = check_labels(fit, bags, weights, sum, err);
    if (!status)
        status = count(fit, bags, weights, sum, err);
    double *labels = status ? NULL : fini_alloc_array(bags->n, sizeof *labels);
    if (!status && !labels)
        status = fini_fail_memory(err, (size_t)bags->n * sizeof *labels, "labels");
    for (int64_t i = 0; !status && i < bags->n; i++)
        labels[i] = (bags->labels[i] - fit->label_center) / fit->label_scale;
    if (!status)
        status = fit_parts(fit, bags, labels, weights, sum, progress, err);
    fini_free(labels);
    double variance = 0;
    for (int64_t k = 0; !status && k < fit->parts; k++)
        variance += fit->part[k].weight * fit->part[k].noise * fit->part[k].noise;
    fit->noise = sqrt(variance);
    return status;
}

fin_status fin_fit_create(fin_fit **out, const fin_fit_settings *settings, int64_t classes,
                          const fin_bags *bags, const double *weights, fin_sum sum,
                          const fin_progress *progress, fin_error *err)
{
    *out = NULL;
    fin_status status = fin_settings_validate(&fin_fit_table, settings, err);
    if (!status)
        status = fini_bags_check(bags, err);
    if (status)
        return status;
    if (classes < 0 || classes == 1 || classes > 1000000)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld classes; 0 stands for numbers, and otherwise there are at least 2",
                         (long long)classes);
    if (bags->n && !bags->labels)
        return fini_fail(err, FIN_ERR_ARGUMENT, "bags without labels: there is nothing to learn");
    fin_fit *fit = fini_alloc(sizeof *fit);
    if (!fit)
        return fini_fail_memory(err, sizeof *fit, "a fit");
    *fit = (fin_fit){.settings = *settings, .classes = classes, .d = bags->d, .sharpness = 1};
    status = fit_all(fit, bags, weights, sum ? sum : fini_sum_alone, progress, err);
    if (!status)
        status = fini_fit_finish(fit, err);
    if (status) {
        fin_fit_destroy(fit);
        return status;
    }
    *out = fit;
    return FIN_OK;
}

void fin_fit_destroy(fin_fit *fit)
{
    if (!fit)
        return;
    for (int64_t k = 0; fit->part && k < fit->parts; k++)
        fini_part_close(&fit->part[k]);
    fini_free(fit->part);
    fini_free(fit);
}

/* ---- predictions -------------------------------------------------------------------------------------- */

static fin_status check_bags(const fin_fit *fit, const fin_bags *bags, fin_error *err)
{
    fin_status status = fini_bags_check(bags, err);
    if (!status && bags->d != fit->d)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "tokens have %lld columns; the model was fitted to %lld",
                           (long long)bags->d, (long long)fit->d);
    return status;
}

/* mean = sum_k w_k m_k;   variance = sum_k w_k (var_k + (m_k - mean)^2), with var_k the spread of
 * part k's members and, for numbers, its noise: the variance within the model if it has one, else
 * that of the training labels around the prediction. The last two as sums of squares first. */
static void add_part(const fin_fit *fit, const fini_part *part, int64_t n, int64_t width,
                     const double *m, const double *spread, const double *within, double *mean,
                     double *square)
{
    for (int64_t i = 0; i < n * width; i++) {
        mean[i] += part->weight * m[i];
        double variance = spread[i] * spread[i];
        if (fit->classes == 0)
            variance += within[i] > 0 ? within[i] : part->noise * part->noise;
        square[i] += part->weight * (variance + m[i] * m[i]);
    }
}

fin_status fini_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                            fini_look *look, fin_error *err)
{
    fin_status status = check_bags(fit, bags, err);
    if (status)
        return status;
    int64_t n = bags->n, width = fit->classes ? fit->classes : 1;
    fini_arena a = {0};
    double *m = NULL, *spread = NULL, *within = NULL, *square = NULL;
    for (int twice = 0; twice < 2; twice++) {
        m = fini_take(&a, n, (size_t)width * sizeof *m);
        spread = fini_take(&a, n, (size_t)width * sizeof *spread);
        square = fini_take(&a, n, (size_t)width * sizeof *square);
        within = fini_take(&a, n, sizeof *within);
        status = twice ? FIN_OK : fini_arena_open(&a, "predictions", err);
        if (status)
            return status;
    }
    for (int64_t i = 0; i < n * width; i++)
        mean[i] = 0;
    for (int64_t k = 0; k < fit->parts && !status; k++) {
        status = fini_part_predict(&fit->part[k], bags, m, spread, within, look, err);
        if (!status)
            add_part(fit, &fit->part[k], n, width, m, spread, within, mean, square);
    }
    for (int64_t i = 0; i < n * width && !status; i++) {
        double variance = square[i] - mean[i] * mean[i];
        if (sd)
            sd[i] = fit->label_scale * sqrt(variance > 0 ? variance : 0);
        mean[i] = fit->label_center + fit->label_scale * mean[i];
    }
    if (fit->classes && !status)
        fini_sharpen(fit->sharpness, n, width, mean, sd);
    fini_arena_close(&a);
    return status;
}

fin_status fin_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                           fin_error *err)
{
    return fini_fit_predict(fit, bags, mean, sd, NULL, err);
}

/* ---- locations ------------------------------------------------------------------------------------------ */

int fin_fit_locates(const fin_fit *fit)
{
    for (int64_t k = 0; k < fit->parts; k++)
        if (fit->part[k].form->locate && fit->part[k].weight > 0)
            return 1;
    return 0;
}

static fin_status locate_parts(const fin_fit *fit, const fin_bags *bags, const double *labels,
                               double *one, double *prior, double *given, fin_error *err)
{
    int64_t tokens = bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
    double all = 0, *some = one, *more = one + tokens;
    for (int64_t k = 0; k < fit->parts; k++)
        all += fit->part[k].form->locate ? fit->part[k].weight : 0;
    for (int64_t t = 0; t < tokens; t++) {
        prior[t] = 0;
        if (given)
            given[t] = 0;
    }
    for (int64_t k = 0; k < fit->parts; k++) {
        const fini_part *part = &fit->part[k];
        double w = part->weight / all;
        if (!part->form->locate || !(w > 0))
            continue;
        fin_status status = fini_part_locate(part, bags, labels, some, given ? more : NULL, err);
        if (status)
            return status;
        for (int64_t t = 0; t < tokens; t++) {
            prior[t] += w * some[t];
            if (given)
                given[t] += w * more[t];
        }
    }
    return FIN_OK;
}

fin_status fin_fit_locate(const fin_fit *fit, const fin_bags *bags, const fin_locations *to,
                          fin_error *err)
{
    double *prior = to->prior, *given = to->given;
    fin_status status = check_bags(fit, bags, err);
    if (status)
        return status;
    if (!fin_fit_locates(fit))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this model looks at a bag as a whole and has no location; softmax and "
                         "mixture have one");
    int64_t tokens = bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
    double *labels = fini_alloc_array(bags->n, sizeof *labels);
    double *one = fini_alloc_array(tokens, 2 * sizeof *one);
    if (!labels || !one)
        status = fini_fail_memory(err, (size_t)tokens * 2 * sizeof *one, "locations");
    for (int64_t i = 0; i < bags->n && !status; i++) {
        double y = bags->labels ? bags->labels[i] : NAN;
        if (!isfinite(y))
            y = NAN;
        else if (fit->classes && !(y >= 0 && y < (double)fit->classes && y == floor(y)))
            status = fini_fail(err, FIN_ERR_ARGUMENT,
                               "bag %lld has the label %g; the classes are 0 to %lld",
                               (long long)(bags->first + i), y, (long long)fit->classes - 1);
        labels[i] = (y - fit->label_center) / fit->label_scale;
    }
    if (!status)
        status = locate_parts(fit, bags, labels, one, prior, given, err);
    fini_free(labels);
    fini_free(one);
    return status;
}
