/* A fit from outside: labels in their own units, one part or several.
 *
 * Numbers are standardised with mean and deviation of the training bags, so that a penalty and a
 * noise mean the same for all labels; predictions go back through the same two numbers. */
#include "bags/bags.h"

#include "math/stats.h"

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

typedef struct labelling {
    const fin_bags *bags;
    const double *weights;
    int64_t classes;
    double center;
} labelling;

/* Sums over bags: those that cannot be used, weight, weight * (y - center), its square and its
 * absolute value. Every process takes part, also one that has found a fault: the others would wait
 * for it. */
static void add_label(const void *user, int64_t i, double *sums)
{
    const labelling *l = user;
    double w = l->weights ? l->weights[i] : 1, y = l->bags->labels[i], rest = y - l->center;
    sums[0] += fault_of(l->classes, y, w) != NULL;
    if (!(w > 0))
        return;
    sums[1] += w;
    sums[2] += w * rest;
    sums[3] += w * rest * rest;
    sums[4] += w * fabs(rest);
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
    labelling l = {bags, weights, fit->classes, 0};
    FINI_TRY(fini_bags_sum(bags, sum, 1, 5, add_label, &l, s, err));
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
    double center = l.center = s[2] / s[1];
    FINI_TRY(fini_bags_sum(bags, sum, 1, 5, add_label, &l, s, err));
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

/* The class of the first training bag of everybody; -1: there is none. */
static fin_status first_class(const fin_bags *bags, const double *weights, fin_sum sum,
                              double *first, fin_error *err)
{
    double parts[FIN_BAGS_BLOCKS * FIN_BAGS_BLOCKS] = {0}, all[FIN_BAGS_BLOCKS] = {0};
    int64_t from, to, start, own, blocks = fin_bags_blocks(bags->total);
    fini_bags_own(bags, &start, &own);
    for (int64_t b = 0; b < own; b++) {
        fini_bags_block(bags, b, &from, &to);
        for (int64_t i = to - 1; i >= from; i--)
            if (!weights || weights[i] > 0)
                parts[b * blocks + start + b] = 1 + bags->labels[i];
    }
    FINI_TRY(sum(blocks, blocks, parts, all, err));
    *first = -1;
    for (int64_t b = blocks - 1; b >= 0; b--)
        *first = all[b] > 0 ? all[b] - 1 : *first;
    return FIN_OK;
}

fin_status fini_fit_labels(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                           double *labels, fin_error *err)
{
    double first = 0;
    fin_status status = check_labels(fit, bags, weights, sum, err);
    if (!status && fit->classes == 2)
        status = first_class(bags, weights, sum, &first, err);
    fit->swapped = !status && first == 1;
    for (int64_t i = 0; !status && i < bags->n; i++)
        labels[i] = fit->swapped ? 1 - bags->labels[i]
                                 : (bags->labels[i] - fit->label_center) / fit->label_scale;
    return status;
}

/* ---- fitting ------------------------------------------------------------------------------------------ */

static void count(const void *user, int64_t i, double *sums)
{
    const labelling *l = user;
    if (l->weights && !(l->weights[i] > 0))
        return;
    sums[0] += 1;
    sums[1] += (double)(l->bags->offsets[i + 1] - l->bags->offsets[i]);
}

static fin_status fit_all(fin_fit *fit, const fin_bags *bags, const double *weights,
                          const fin_fit_others *others, fin_sum sum, const fin_progress *progress,
                          fin_error *err)
{
    double *labels = fini_alloc_array(bags->n, sizeof *labels), variance = 0, sums[2] = {0};
    labelling l = {.bags = bags, .weights = weights};
    fin_status status = labels ? fini_fit_labels(fit, bags, weights, sum, labels, err)
                               : fini_fail_memory(err, (size_t)bags->n * sizeof *labels, "labels");
    if (!status)
        status = fini_bags_sum(bags, sum, 1, 2, count, &l, sums, err);
    fit->bags = (int64_t)sums[0];
    fit->tokens = (int64_t)sums[1];
    if (!status)
        status = fini_fit_choose(fit, bags, labels, weights, others, sum, progress, err);
    if (!status)
        status = fini_fit_remember(fit, bags, weights, sum, err);
    fini_free(labels);
    for (int64_t k = 0; !status && k < fit->parts; k++)
        variance += fit->part[k].weight * fit->part[k].noise * fit->part[k].noise;
    fit->noise = sqrt(variance);
    return status;
}

fin_status fin_fit_create(fin_fit **out, const fin_fit_settings *settings, int64_t classes,
                          const fin_bags *bags, const double *weights, fin_sum sum,
                          const fin_progress *progress, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, bags);
    return fin_fit_create_among(out, NULL, settings, classes, bags, weights, sum, progress, err);
}

fin_status fin_fit_create_among(fin_fit **out, const fin_fit_others *others,
                                const fin_fit_settings *settings, int64_t classes,
                                const fin_bags *bags, const double *weights, fin_sum sum,
                                const fin_progress *progress, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !others || !others->count || others->models, bags);
    settings = fini_or_defaults(&fin_fit_table, settings, &(fin_fit_settings){0});
    FINI_TRY(fin_settings_validate(&fin_fit_table, settings, err));
    FINI_TRY(fini_bags_check(bags, err));
    if (classes < 0 || classes == 1 || classes > 1000000)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld classes; 0 stands for numbers, and otherwise there are at least 2",
                         (long long)classes);
    if (settings->assume == 1 && classes != 2)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "assume = monotone is about a positive class, and needs two classes; these "
            "%s",
            classes ? "are more" : "labels are numbers");
    if (bags->n && !bags->labels)
        return fini_fail(err, FIN_ERR_ARGUMENT, "bags without labels: there is nothing to learn");
    FINI_MAKE(err, "a fit", fin_fit, fit);
    *fit = (fin_fit){.settings = *settings,
                     .classes = classes,
                     .d = bags->d,
                     .sharpness = 1,
                     .locator = -1,
                     .locator_sharpness = 1,
                     .inner_loss = NAN,
                     .base_loss = NAN,
                     .locator_loss = NAN};
    fin_status status =
        fit_all(fit, bags, weights, others, sum ? sum : fini_sum_alone, progress, err);
    if (!status)
        status = fini_fit_finish(fit, err);
    FINI_HAND_OVER(out, fit, status, fin_fit_destroy);
}

void fin_fit_destroy(fin_fit *fit)
{
    if (!fit)
        return;
    for (int64_t k = 0; fit->part && k < fit->parts; k++)
        fini_part_close(&fit->part[k]);
    fini_free_all(fit->part, fit->range, fit->hash, fit);
}

/* ---- predictions -------------------------------------------------------------------------------------- */

fin_status fini_fit_check_bags(const fin_fit *fit, const fin_bags *bags, fin_error *err)
{
    FINI_TRY(fini_bags_check(bags, err));
    if (bags->d != fit->d)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tokens have %lld columns; the model was fitted to %lld",
                         (long long)bags->d, (long long)fit->d);
    return FIN_OK;
}

/* mean = sum_k w_k m_k;   variance = sum_k w_k (var_k + (m_k - mean)^2), with var_k the spread of
 * part k's members and, for numbers, its noise: the variance within the model if it has one, else
 * that of the training labels around the prediction. Added part by part (West 1979): no difference of
 * large squares. */
void fini_add_part(const fin_fit *fit, const fini_said *part, double before, int64_t n,
                   double *mean, double *variance)
{
    int64_t width = fit->classes ? fit->classes : 1;
    double weight = part->weight, all = before + weight;
    for (int64_t i = 0; i < n * width; i++) {
        double own = part->spread[i] * part->spread[i], gap = part->mean[i] - mean[i];
        if (fit->classes == 0)
            own += part->within[i] > 0 ? part->within[i] : part->noise * part->noise;
        mean[i] += weight / all * gap;
        variance[i] += weight * own + weight * before / all * gap * gap;
    }
}

void fini_fit_outside_units(const fin_fit *fit, int64_t n, double *mean, double *variance,
                            double *sd)
{
    int64_t width = fit->classes ? fit->classes : 1;
    for (int64_t i = 0; i < n * width; i++) {
        if (sd)
            sd[i] = fit->label_scale * sqrt(variance[i] > 0 ? variance[i] : 0);
        mean[i] = fit->label_center + fit->label_scale * mean[i];
    }
    if (fit->classes)
        fini_sharpen(fit->sharpness, n, width, mean, sd);
    for (int64_t i = 0; i < n && fit->swapped; i++) {
        double kept = mean[2 * i];
        mean[2 * i] = mean[2 * i + 1];
        mean[2 * i + 1] = kept;
        kept = sd ? sd[2 * i] : 0;
        if (sd) {
            sd[2 * i] = sd[2 * i + 1];
            sd[2 * i + 1] = kept;
        }
    }
}

void fini_fit_ends(const fin_fit *fit, int64_t n, double coverage, const double *own,
                   const double *mean, const double *sd, double *ends)
{
    const double one = 1, none = 0;
    double z = fini_normals_quantile(1, &one, &none, &one, 0.5 + 0.5 * coverage);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            ends[2 * i + k] = own && !isnan(own[2 * i + k])
                                  ? fit->label_center + fit->label_scale * own[2 * i + k]
                                  : mean[i] + (k ? z : -z) * sd[i];
}

/* mean, sd and ends may be NULL, and both of the first only with the third. */
static fin_status predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                          double coverage, double *ends, fini_cancel *cancel, fin_error *err)
{
    FINI_TRY(fini_fit_check_bags(fit, bags, err));
    int64_t n = bags->n, width = fit->classes ? fit->classes : 1;
    fini_arena a = {0};
    fini_said said = {0};
    int counted = 0;
    unsigned char *known = NULL;
    double *variance = NULL, *own = NULL, *middle = NULL, before = 0;
    for (int twice = 0; twice < 2; twice++) {
        said.mean = fini_take(&a, n, (size_t)width * sizeof *said.mean);
        said.spread = fini_take(&a, n, (size_t)width * sizeof *said.spread);
        variance = fini_take(&a, n, (size_t)width * sizeof *variance);
        said.within = fini_take(&a, n, sizeof *said.within);
        own = fini_take(&a, ends ? n : 0, 2 * sizeof *own);
        middle = fini_take(&a, mean ? 0 : n, sizeof *middle);
        known = fini_take(&a, n, sizeof *known);
        FINI_TRY(twice ? FIN_OK : fini_arena_open(&a, "predictions", err));
    }
    mean = mean ? mean : middle;
    said.ends = ends ? own : NULL;
    said.coverage = coverage;
    for (int64_t i = 0; i < n * width; i++)
        mean[i] = 0;
    fin_status status = fin_fit_known(fit, bags, known, err);
    for (int64_t k = 0; k < fit->parts && !status; k++) {
        const fini_part *part = &fit->part[k];
        if (!(part->weight > 0)) /* it only locates */
            continue;
        counted++;
        status = fini_part_predict(part, bags, known, &said, cancel, err);
        said.weight = part->weight;
        said.noise = part->noise;
        if (!status)
            fini_add_part(fit, &said, before, n, mean, variance);
        before += part->weight;
    }
    sd = sd ? sd : ends ? variance : NULL;
    if (!status)
        fini_fit_outside_units(fit, n, mean, variance, sd);
    if (!status && ends)
        fini_fit_ends(fit, n, coverage, counted == 1 ? own : NULL, mean, sd, ends);
    fini_arena_close(&a);
    return status;
}

fin_status fini_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                            fini_cancel *cancel, fin_error *err)
{
    return predict(fit, bags, mean, sd, 0, NULL, cancel, err);
}

fin_status fin_fit_interval(const fin_fit *fit, const fin_bags *bags, double coverage, double *mean,
                            double *sd, double *ends, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, ends);
    if (fit->classes || !(coverage > 0 && coverage < 1))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         fit->classes ? "labels are classes, of which there are no intervals; "
                                        "fin_fit_predict has their probabilities"
                                      : "coverage is %g; it must be between 0 and 1, such as 0.9",
                         coverage);
    fini_cancel cancel;
    fini_cancel_open(&cancel, progress, "answers");
    return predict(fit, bags, mean, sd, coverage, ends, &cancel, err);
}

fin_status fin_fit_predict(const fin_fit *fit, const fin_bags *bags, double *mean, double *sd,
                           const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, mean);
    fini_cancel cancel;
    fini_cancel_open(&cancel, progress, "answers");
    return fini_fit_predict(fit, bags, mean, sd, &cancel, err);
}

/* ---- locations ------------------------------------------------------------------------------------------ */

int fini_positive(const fin_fit *fit)
{
    if (fit->classes != 2)
        return -1;
    const fini_part *locator = fit->locator >= 0 ? &fit->part[fit->locator] : NULL;
    const fini_part *sided = locator && locator->model->is.sides ? locator : NULL;
    for (int64_t k = 0; k < fit->parts && !sided; k++)
        sided = fit->part[k].model->is.sides ? &fit->part[k] : NULL;
    if (sided)
        return (sided->shape.positive != 0) != fit->swapped;
    if (!locator || !locator->form->own)
        return -1;
    return fin_is_auto((double)fit->settings.positive) ? 1 : (int)fit->settings.positive;
}

int fin_fit_locates(const fin_fit *fit)
{
    return fit ? fit->locator >= 0 : 0;
}

/* `none` as sharp as predictions are, and tokens such that they still go together. */
static void calibrate_tokens(const fin_fit *fit, const fini_part *part, const fin_bags *bags,
                             const fin_locations *to)
{
    for (int64_t i = 0; i < bags->n && fit->locator_sharpness != 1; i++) {
        double before = to->none[i], p[2] = {before, 1 - before};
        int64_t from = bags->offsets[i] - bags->offsets[0];
        if (!(before > 0 && before < 1))
            continue;
        fini_sharpen(fit->locator_sharpness, 1, 2, p, NULL);
        to->none[i] = p[0];
        if (to->own)
            part->form->own_after(bags->offsets[i + 1] - bags->offsets[i], before, p,
                                  to->own + from);
    }
}

fin_status fin_fit_locate(const fin_fit *fit, const fin_bags *bags, const fin_locations *to,
                          const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, fit, bags, to);
    FINI_TRY(fini_fit_check_bags(fit, bags, err));
    if (!fin_fit_locates(fit))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this model looks at a bag as a whole and has no location; softmax and "
                         "mixture have one, and locator = auto keeps one beside it");
    FINI_OWN(err, "labels", double, labels, bags->n ? bags->n : 1, 3);
    unsigned char *known = (unsigned char *)(labels + 2 * bags->n);
    fin_status status = fin_fit_known(fit, bags, known, err);
    fin_locations all = *to;
    if (all.own && !all.none) /* it takes one to calibrate the other */
        all.none = labels + bags->n;
    for (int64_t i = 0; i < bags->n && !status; i++) {
        double y = bags->labels ? bags->labels[i] : NAN;
        if (!isfinite(y))
            y = NAN;
        else if (fit->classes && !(y >= 0 && y < (double)fit->classes && y == floor(y)))
            status = fini_fail(err, FIN_ERR_ARGUMENT,
                               "bag %lld has the label %g; the classes are 0 to %lld",
                               (long long)(bags->first + i), y, (long long)fit->classes - 1);
        labels[i] = fit->swapped ? 1 - y : (y - fit->label_center) / fit->label_scale;
    }
    fini_part part = fit->part[fit->locator];
    fini_cancel cancel;
    fini_cancel_open(&cancel, progress, "answers");
    if (part.form->own && !part.model->is.sides && fit->classes == 2)
        part.shape.positive = (fini_positive(fit) == 1) != fit->swapped;
    if (!status)
        status = fini_part_locate(&part, bags, known, labels, &all, &cancel, err);
    if (!status && all.none)
        calibrate_tokens(fit, &part, bags, &all);
    return status;
}
