/* From a model asked for to parts that are fitted: choices and calibration by inner cross-validation.
 *
 * Every candidate is fitted with one fold of the training bags left out after the other, and predicts
 * those: the out-of-fold predictions, one for every bag, made without its label (cross.c). From them
 * alone come all decisions (decide.c); then what was decided is fitted to all training bags. Bags of
 * weight 0 take no part in any of it, so that a cross-validation around it is not fooled; bags of a group
 * are left out together.
 *
 *   - which model, of those that auto and stack have; which side, for `any`;
 *   - how far numbers may be from their mean: what is predicted is an average of the model, of itself with
 *     stronger penalties and of the mean, unless the training bags are so many for its parameters, and the
 *     fit so good, that it is settled without folds;
 *   - how sure probabilities may be (calibrate.c), from the predictions of what was chosen, those of
 *     a stack with weights found without the fold; how large the noise of numbers is;
 *   - auto, and the average of numbers, are never worse there than the base rate: unless they are better by
 *     more than a standard error (of groups, where there are some: two), the base rate is what is written;
 *   - which model locates: the model itself if it can and is one; else the best of those that can, which
 *     is kept beside the others with no weight in predictions.
 *
 * A model that needs none of it, or has too few bags for folds, is fitted as it is.
 *
 * When the bags are split over processes, labels and predictions are brought together (they are one
 * number a bag), and everybody decides the same. */
#include "bags/judge.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Bags for every inner fold that calibration takes. */
enum { LEAST = 2 };
/* Standard errors by which an average of numbers must be better than the mean to be believed at all, and
 * how many more, over the bags: of few bags the error is not well known, and a fit that passes by chance is
 * far off. */
#define SURE 1.25
#define SURE_FEW 20.0

/* ---- what is needed ---------------------------------------------------------------------------- */

static bool has_noise(const fini_bag_model *model)
{
    return model->form && model->form->likelihood;
}

/* Numbers: with few bags for its parameters a model goes through its training labels, and how far it
 * is off there says nothing of new ones. Then the noise is measured on bags left out. The mixture has a
 * noise of its own. */
static bool measures_noise(const fin_fit_settings *s, int64_t classes, int64_t bags, int64_t d)
{
    const fini_bag_model *model = fini_bag_model_of(s->model);
    bool many = fini_has_features(s) || bags / 4 < d;
    return classes == 0 && !has_noise(model) && !model->is.constant &&
           (s->calibrate == 2 || (s->calibrate == 0 && many && bags >= LEAST * s->inner));
}

static bool calibrates(const fin_fit_settings *s, int64_t classes, int64_t bags)
{
    const fini_bag_model *model = fini_bag_model_of(s->model);
    bool base = model->is.constant; /* shares are what they are */
    return classes > 0 && !base &&
           (s->calibrate == 2 ||
            (s->calibrate == 0 && !model->calibrated && bags >= LEAST * s->inner));
}

static bool must_choose(const fin_fit_settings *s, int64_t classes)
{
    return fini_chooses(s) || fini_sides(s, classes, NULL) > 1;
}

bool fini_is_nested(const fin_fit_settings *s, int64_t classes, int64_t bags, int64_t d)
{
    return must_choose(s, classes) || calibrates(s, classes, bags) ||
           measures_noise(s, classes, bags, d);
}

static bool locates(const fin_fit_settings *s)
{
    const fini_bag_form *form = fini_bag_model_of(s->model)->form;
    return form && form->locate;
}

/* The candidates; and, where they cannot locate, those that may. */
static fin_status list_models(fini_choice *c, const fin_fit_others *others, fin_error *err)
{
    const fin_fit_settings *asked = &c->asked;
    fin_fit_settings list[FINI_CANDIDATES], as_auto = *asked;
    int64_t classes = c->in.classes;
    int found = fini_shrinks(asked, classes) && !c->shrinks
                    ? fini_sides(asked, classes, list)
                    : fini_candidates(asked, classes, list, FINI_CANDIDATES);
    bool more = others && fini_chooses(asked) == FIN_CHOOSES_BEST && asked->assume == 0;
    bool one = (found == 1 || c->shrinks) && locates(&list[0]);
    for (int k = 0; k < found; k++)
        c->of[c->count++] = fini_place(c->model, &c->in.models, &list[k]);
    for (int k = 0; more && k < others->count; k++) {
        const fin_fit_settings *other = &others->models[k];
        fin_fit_settings some[2];
        int sides = fini_chooses(other) ? 0 : fini_sides(other, classes, some);
        if (c->in.models + sides > FINI_OTHERS)
            return fini_fail(err, FIN_ERR_ARGUMENT, "auto chooses among %d models at most",
                             FINI_OTHERS);
        for (int i = 0; i < sides; i++) {
            int before = c->in.models, at = fini_place(c->model, &c->in.models, &some[i]);
            if (at == before)
                c->of[c->count++] = at;
        }
    }
    memset(c->todo, FINI_INNER, sizeof c->todo);
    if (one || asked->locator == 1)
        return FIN_OK;
    as_auto.model = FIN_MODEL_AUTO;
    found = fin_fit_candidates(&as_auto, classes, list, FINI_CANDIDATES);
    for (int k = 0; k < found; k++)
        if (locates(&list[k]))
            fini_place(c->model, &c->in.models, &list[k]);
    return FIN_OK;
}

/* ---- inner folds --------------------------------------------------------------------------------- */

/* Weights of the bags that are predicted. Their unit does not matter; with the largest 1, no square is too
 * large or too small for a number. */
static fin_status weigh_predictions(fini_inner *in, bool balanced, fin_error *err)
{
    double most = 0;
    FINI_OWN(err, "classes", double, of_class, in->classes + 1, 1);
    memset(of_class, 0, (size_t)(in->classes + 1) * sizeof *of_class);
    for (int64_t i = 0; i < in->total; i++) {
        in->omega[i] = in->fold[i] < 0 ? 0 : in->learn[i];
        most = fmax(most, in->omega[i]);
    }
    for (int64_t i = 0; i < in->total; i++) {
        in->omega[i] /= most;
        if (in->omega[i] > 0 && in->classes)
            of_class[(int64_t)in->y[i]] += in->omega[i];
    }
    for (int64_t i = 0; i < in->total && balanced && in->classes; i++)
        if (in->omega[i] > 0)
            in->omega[i] /= of_class[(int64_t)in->y[i]];
    return FIN_OK;
}

/* Bags that are alone in their class, or groups that have all of a class, are never left out. */
fin_status fini_inner_deal(fini_inner *in, const int64_t *groups, const fin_fit_settings *s,
                           fin_error *err)
{
    fin_error why = {FIN_OK, ""};
    fin_status status = FIN_ERR_ARGUMENT;
    int64_t count = 0;
    FINI_OWN(err, "folds", unsigned char, use, in->total ? in->total : 1, 1);
    for (int64_t i = 0; i < in->total; i++)
        count += use[i] = in->learn[i] > 0;
    in->folds = (int)(s->inner < count ? s->inner : count);
    fini_dealt bags = {in->total, in->classes, in->y, groups, use, true};
    for (; in->folds >= 2; in->folds--) { /* lone bags may leave too few for so many folds */
        status = fini_folds_ordered(&bags, in->order, in->folds, s->seed, in->fold, &why);
        if (status != FIN_ERR_ARGUMENT)
            break;
    }
    in->folds = status ? 0 : in->folds;
    if (status == FIN_ERR_ARGUMENT)
        status = FIN_OK;
    else if (status)
        fini_fail(err, status, "%s", why.message);
    if (!status && in->folds && in->group && groups)
        status = fini_groups_number(in->total, groups, use, in->group, &in->groups, err);
    if (!groups)
        in->group = NULL, in->groups = 0;
    if (!status && in->folds)
        status = weigh_predictions(in, s->class_weights == 1, err);
    return status;
}

/* Labels, weights, groups of all bags; folds. */
static fin_status deal_folds(fini_choice *c, const fin_fit_settings *asked, int64_t *groups,
                             fin_error *err)
{
    const fin_bags *bags = c->bags;
    for (int64_t i = 0; i < bags->n; i++)
        c->own[i] = c->weights ? c->weights[i] : 1;
    fin_status status = fini_bags_gather(bags, c->sum, c->own, c->in.learn, err);
    if (!status)
        status = fini_bags_gather(bags, c->sum, c->labels, c->in.y, err);
    for (int64_t i = 0; i < bags->n && bags->groups; i++)
        c->own[i] = (double)bags->groups[i];
    if (!status && bags->groups) /* omega is not yet in use */
        status = fini_bags_gather(bags, c->sum, c->own, c->in.omega, err);
    for (int64_t i = 0; i < bags->total && bags->groups && !status; i++)
        groups[i] = (int64_t)c->in.omega[i];
    if (!status)
        status = fini_bags_hash(bags, c->weights, true, c->sum, c->order, err);
    c->in.order = c->order;
    return status ? status : fini_inner_deal(&c->in, bags->groups ? groups : NULL, asked, err);
}

static fin_status predict_all(fini_choice *c, int64_t bags, const fin_progress *progress,
                              fin_error *err)
{
    int64_t n = c->bags->n;
    const int32_t *fold = c->in.fold + c->bags->first;
    fini_crossing crossing = {.bags = c->bags,
                              .classes = c->in.classes,
                              .labels = c->labels,
                              .weights = c->weights,
                              .sum = c->sum,
                              .models = c->in.models,
                              .outers = 1,
                              .inner = &c->in.folds,
                              .model = c->model,
                              .todo = c->todo,
                              .size = &bags,
                              .fold = fold,
                              .what = c->in.models > 1 ? "comparing models" : "calibrating",
                              .mean = c->out};
    FINI_TRY(fini_cross(&crossing, progress, err));
    for (int m = 0; m < c->in.models; m++) {
        for (int64_t i = 0; i < n; i++) {
            const double *p = c->out + (m * n + i) * c->width;
            c->own[i] = fold[i] < 0 ? 0 : c->in.classes ? p[(int64_t)c->labels[i]] : p[0];
        }
        FINI_TRY(fini_bags_gather(c->bags, c->sum, c->own, c->in.P + m * c->in.total, err));
    }
    return FIN_OK;
}

void fini_inner_mix(const fini_inner *in, const fini_decision *decision, int64_t n, int64_t width,
                    const int32_t *fold, const double *mean, int64_t stride, double *out)
{
    for (int64_t k = 0; k < n * width; k++) {
        int64_t f = fold[k / width];
        out[k] = 0;
        for (int m = 0; m < in->models && f >= 0; m++) {
            double w = decision->w[f * in->models + m];
            out[k] += w > 0 ? w * mean[m * stride + k] : 0;
        }
    }
}

/* ---- what comes of it ---------------------------------------------------------------------------- */

/* Losses of c->mix, taken to a power, of all bags: c->loss; and their mean. */
static fin_status mixed_loss(fini_choice *c, double sharpness, double *loss, fin_error *err)
{
    double sum = 0, total = 0;
    const double *omega = c->in.omega;
    if (c->in.classes)
        fini_sharpen(sharpness, c->bags->n, c->width, c->mix, NULL);
    for (int64_t i = 0; i < c->bags->n; i++) {
        bool left = omega[c->bags->first + i] > 0;
        double gap = c->mix[i] - c->labels[i];
        double p = c->in.classes && left ? c->mix[i * c->width + (int64_t)c->labels[i]] : 1;
        c->own[i] = !left ? 0 : c->in.classes ? -log(p < DBL_EPSILON ? DBL_EPSILON : p) : gap * gap;
    }
    FINI_TRY(fini_bags_gather(c->bags, c->sum, c->own, c->loss, err));
    for (int64_t i = 0; i < c->in.total; i++)
        if (omega[i] > 0)
            sum += omega[i] / (total += omega[i]) * (c->loss[i] - sum);
    *loss = sum;
    return FIN_OK;
}

/* Sharpness of what `decision` predicts, if it is wanted, and its loss. */
static fin_status calibrate(fini_choice *c, const fini_decision *decision, bool wanted,
                            double *sharpness, double *loss, fin_error *err)
{
    const int32_t *fold = c->in.fold + c->bags->first;
    int64_t n = c->bags->n;
    fin_status status = FIN_OK;
    *sharpness = 1;
    fini_inner_mix(&c->in, decision, n, c->width, fold, c->out, c->stride, c->mix);
    if (wanted)
        status = fini_sharpness(c->bags, c->in.classes, c->labels, c->in.omega + c->bags->first,
                                c->mix, c->sum ? c->sum : fini_sum_alone, sharpness, err);
    fini_inner_mix(&c->in, decision, n, c->width, fold, c->out, c->stride, c->mix);
    return status ? status : mixed_loss(c, *sharpness, loss, err);
}

/* One model alone. */
static void take_one(const fini_choice *c, int m, fini_decision *decision)
{
    for (int k = 0; k < c->in.models; k++)
        decision->weight[k] = k == m;
    for (int f = 0; f < c->in.folds; f++)
        memcpy(decision->w + (int64_t)f * c->in.models, decision->weight,
               (size_t)c->in.models * sizeof *decision->w);
}

/* The best of the models that locate; with its own sharpness. */
static fin_status choose_locator(fini_choice *c, fin_fit *fit, fini_decision *room, fin_error *err)
{
    double least = INFINITY;
    bool itself = (c->count == 1 || c->shrinks) && locates(&c->model[c->of[0]]);
    if (c->asked.locator == 1 && !itself)
        return FIN_OK;
    bool side = c->count > 1 && fini_bag_model_of(c->asked.model)->is.sides;
    for (int m = 0; m < c->in.models; m++) {
        double loss = locates(&c->model[m]) && (!side || c->decision.weight[m] > 0)
                          ? fini_inner_loss(&c->in, m)
                          : INFINITY;
        c->locator = loss < least ? m : c->locator;
        least = fmin(loss, least);
    }
    if (c->locator < 0)
        return FIN_OK;
    take_one(c, c->locator, room);
    return calibrate(c, room, c->in.classes > 0, &fit->locator_sharpness, &fit->locator_loss, err);
}

/* All models times `share`, and the mean, which is the last of them, for the rest. */
static void hold_back(fini_choice *c, double share)
{
    int models = c->in.models, base = c->of[c->count - 1];
    for (int f = -1; f < c->in.folds; f++) {
        double *w = f < 0 ? c->decision.weight : c->decision.w + (int64_t)f * models;
        for (int m = 0; m < models; m++)
            w[m] *= share;
        w[base] += 1 - share;
    }
}

/* Mean over bags of the variance between the models that are averaged, which predictions add to the noise. */
static double mean_gap(const fini_choice *c)
{
    const fini_inner *in = &c->in;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < in->total; i++) {
        double mean = 0, square = 0;
        if (!(in->omega[i] > 0))
            continue;
        const double *w = c->decision.w + (int64_t)in->fold[i] * in->models;
        for (int m = 0; m < in->models; m++)
            mean += w[m] > 0 ? w[m] * in->P[m * in->total + i] : 0;
        for (int m = 0; m < in->models; m++) {
            double gap = w[m] > 0 ? in->P[m * in->total + i] - mean : 0;
            square += w[m] * gap * gap;
        }
        sum += in->omega[i] * square;
        total += in->omega[i];
    }
    return sum / total;
}

fin_status fini_choice_decide(fini_choice *c, fin_fit *fit, fin_error *err)
{
    const fin_fit_settings *asked = &c->asked;
    bool sharpen = calibrates(asked, c->in.classes, fit->bags);
    double gain = 0, se = 0, sure = c->in.groups ? 2 : 1; /* few groups: se is uncertain itself */
    double bags = c->in.groups ? (double)c->in.groups : (double)fit->bags;
    c->measured = c->shrinks || fini_is_nested(asked, c->in.classes, fit->bags, fit->d);
    fin_status status = fini_decide(&c->in, asked, c->count, c->of, &c->decision, err);
    if (!status)
        status = calibrate(c, &c->decision, sharpen, &fit->sharpness, &fit->inner_loss, err);
    if (!status)
        status = fini_inner_base(&c->in, c->loss, &fit->base_loss, &gain, &se, err);
    if (!status && c->shrinks) {
        sure = SURE + SURE_FEW / bags;
        hold_back(c, gain > sure * se ? 1 - sure * se / gain * (sure * se / gain) : 0);
        status = calibrate(c, &c->decision, false, &fit->sharpness, &fit->inner_loss, err);
    }
    bool best = c->shrinks || fini_chooses(asked) == FIN_CHOOSES_BEST;
    for (int k = 0; k < c->count && !status && best; k++)
        if (fini_bag_model_of(c->model[c->of[k]].model)->is.constant && !(gain > sure * se)) {
            take_one(c, c->of[k], &c->decision);
            fit->sharpness = 1;
            fit->inner_loss = fit->base_loss;
        }
    c->noise = sqrt(fmax(fit->inner_loss - mean_gap(c), 0));
    return status;
}

/* ---- the fits -------------------------------------------------------------------------------- */

/* What a part is to be: settings and weight, in fit->part. The part that locates may have no weight. */
static fin_status open_parts(fin_fit *fit, const fini_choice *c, fin_error *err)
{
    const double *weight = c->decision.weight;
    int64_t parts = 0;
    for (int m = 0; m < c->in.models; m++)
        parts += weight[m] > 0 || m == c->locator;
    FINI_ROOM(err, "the parts of a stack", fit->part, parts, 1);
    memset(fit->part, 0, (size_t)parts * sizeof *fit->part);
    for (int m = 0; m < c->in.models; m++) {
        if (!(weight[m] > 0) && m != c->locator)
            continue;
        if (m == c->locator)
            fit->locator = fit->parts;
        fit->part[fit->parts].settings = c->model[m];
        fit->part[fit->parts++].weight = weight[m];
    }
    return FIN_OK;
}

typedef struct fitting {
    fin_fit *fit;
    const fini_choice *c;
} fitting;

static fin_status fit_part(void *user, int64_t k, const fin_progress *progress, fin_error *err)
{
    const fini_choice *c = ((fitting *)user)->c;
    fini_part *part = &((fitting *)user)->fit->part[k];
    double weight = part->weight;
    fin_fit_settings settings = part->settings;
    if (c->whole && fini_same(&settings, &c->model[0])) {
        *part = *c->whole;
        *c->whole = (fini_part){0};
        part->weight = weight;
        return FIN_OK;
    }
    FINI_TRY(fini_part_fit(part, &settings, c->in.classes, c->bags, c->labels, c->weights, c->sum,
                           progress, err));
    part->weight = weight;
    return FIN_OK;
}

/* Side by side if this process is alone, and if there are several; else each has all threads, and
 * reports for itself. */
static fin_status fit_parts(fin_fit *fit, const fini_choice *c, const fin_progress *progress,
                            fin_error *err)
{
    fitting all = {fit, c};
    const fini_fits fits = {.count = fit->parts,
                            .fit = fit_part,
                            .user = &all,
                            .what = "fit",
                            .threads = fin_threads_get()};
    if (!c->sum && fit->parts > 1 && fits.threads > 1)
        return fini_fits_run(&fits, progress, err);
    for (int64_t k = 0; k < fit->parts; k++)
        FINI_TRY(fit_part(&all, k, progress, err));
    return FIN_OK;
}

/* Numbers: the noise of a part is how far its out-of-fold predictions were off. On bags that it was
 * fitted to it looks smaller than it is. */
double fini_choice_noise(const fini_choice *c, int m, double fitted)
{
    bool own = has_noise(fini_bag_model_of(c->model[m].model)) && c->count == 1;
    if (c->shrinks && c->measured)
        return c->noise;
    return c->in.classes || !c->measured || own ? fitted : sqrt(fini_inner_loss(&c->in, m));
}

double fini_choice_sharpness(const fini_choice *c, double fitted)
{
    bool own = !c->in.folds && c->in.classes && c->count == 1 && c->asked.calibrate == 0;
    return own && fitted > 0 ? fitted : 1;
}

static void measure_noise(fin_fit *fit, const fini_choice *c)
{
    if (c->in.classes && !c->in.folds)
        fit->sharpness = fit->locator_sharpness = fini_choice_sharpness(c, fit->part[0].noise);
    for (int m = 0, k = 0; m < c->in.models; m++)
        if (c->decision.weight[m] > 0 || m == c->locator) {
            fit->part[k].noise = fini_choice_noise(c, m, fit->part[k].noise);
            k++;
        }
}

/* Too few bags for inner folds, or no need of them: the model as it is. */
fin_status fini_choice_skip(fini_choice *c, fin_fit *fit, fin_error *err)
{
    if (fini_chooses(&c->asked) || c->asked.calibrate == 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld training bags are too few to choose a model or to calibrate one by "
                         "cross-validation, which leaves out bags whose class has others; name a "
                         "model, such as softmax, with calibrate=no",
                         (long long)fit->bags);
    c->in.folds = 0;
    c->measured = false;
    take_one(c, c->of[0], &c->decision);
    c->locator = locates(&c->model[c->of[0]]) ? c->of[0] : -1;
    fit->sharpness = 1;
    return FIN_OK;
}

static void layout(fini_arena *a, fini_choice *c, fini_decision *room, int64_t **groups,
                   int64_t inner)
{
    int64_t n = c->bags->n, total = c->in.total, models = c->in.models;
    c->in.y = fini_take(a, total, sizeof(double));
    c->in.learn = fini_take(a, total, sizeof(double));
    c->in.omega = fini_take(a, total, sizeof(double));
    c->in.fold = fini_take(a, total, sizeof *c->in.fold);
    c->in.group = fini_take(a, total, sizeof *c->in.group);
    c->in.P = fini_take(a, total, (size_t)models * sizeof(double));
    c->decision.weight = fini_take(a, models, sizeof(double));
    c->decision.w = fini_take(a, models * inner, sizeof(double));
    room->weight = fini_take(a, models, sizeof(double));
    room->w = fini_take(a, models * inner, sizeof(double));
    c->out = fini_take(a, n * models, (size_t)c->width * sizeof(double));
    c->mix = fini_take(a, n, (size_t)c->width * sizeof(double));
    c->own = fini_take(a, n, sizeof(double));
    c->order = fini_take(a, total, sizeof(double));
    c->loss = fini_take(a, total, sizeof(double));
    *groups = fini_take(a, total, sizeof **groups);
}

static fin_status choose(fin_fit *fit, fini_choice *c, fini_decision *room, int64_t *groups,
                         const fin_progress *progress, fin_error *err)
{
    const fin_fit_settings *asked = &c->asked;
    bool kept = c->in.models > c->count; /* a model that locates is to be found */
    bool nested = kept || c->shrinks || fini_is_nested(asked, fit->classes, fit->bags, fit->d);
    FINI_TRY(nested ? deal_folds(c, asked, groups, err) : FIN_OK);
    if (!c->in.folds)
        return fini_choice_skip(c, fit, err);
    FINI_TRY(predict_all(c, fit->bags, progress, err));
    FINI_TRY(fini_choice_decide(c, fit, err));
    return choose_locator(c, fit, room, err);
}

/* Numbers: the fit to all bags, which is wanted anyway, says whether it is settled. */
static fin_status look_first(fini_choice *c, const fin_fit *fit, const fin_progress *progress,
                             fin_error *err)
{
    fin_fit_settings own[2];
    c->shrinks = fini_shrinks(&c->asked, c->in.classes);
    if (!c->shrinks)
        return FIN_OK;
    FINI_ROOM(err, "a fit", c->whole, 1, 1);
    *c->whole = (fini_part){0};
    fini_sides(&c->asked, c->in.classes, own);
    fin_status status = fini_part_fit(c->whole, &own[0], c->in.classes, c->bags, c->labels,
                                      c->weights, c->sum, progress, err);
    c->shrinks = !status && !(fini_outlook(c->whole, (double)fit->bags) < FINI_SETTLED);
    return status;
}

fin_status fini_fit_choose(fin_fit *fit, const fin_bags *bags, const double *labels,
                           const double *weights, const fin_fit_others *others, fin_sum sum,
                           const fin_progress *progress, fin_error *err)
{
    fini_arena arena = {0};
    fini_decision room;
    int64_t *groups;
    FINI_OWN(err, "choosing a model", fini_choice, c, 1, 1);
    *c = (fini_choice){.bags = bags,
                       .labels = labels,
                       .weights = weights,
                       .sum = sum == fini_sum_alone ? NULL : sum,
                       .width = fit->classes ? fit->classes : 1,
                       .stride = bags->n * (fit->classes ? fit->classes : 1),
                       .asked = fini_asked(&fit->settings, fit->swapped),
                       .in = {.classes = fit->classes, .total = bags->total, .model = c->model},
                       .locator = -1};
    fin_status status = look_first(c, fit, progress, err);
    if (!status)
        status = list_models(c, others, err);
    if (!status) {
        layout(&arena, c, &room, &groups, c->asked.inner);
        status = fini_arena_open(&arena, "choosing a model", err);
    }
    if (!status) {
        layout(&arena, c, &room, &groups, c->asked.inner);
        status = choose(fit, c, &room, groups, progress, err);
    }
    if (!status)
        status = open_parts(fit, c, err);
    if (!status)
        status = fit_parts(fit, c, progress, err);
    if (!status)
        measure_noise(fit, c);
    for (int64_t k = 0; !status && fit->swapped && k < fit->parts; k++)
        if (fit->part[k].model->is.sides) /* as the caller numbers them */
            fit->part[k].settings.positive = 1 - fit->part[k].settings.positive;
    fini_part_close(c->whole);
    fini_free(c->whole);
    fini_arena_close(&arena);
    return status;
}
