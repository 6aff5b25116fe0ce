/* The models `stack` and `auto`: several fits weighed, or one chosen, by cross-validation.
 *
 * Every candidate is fitted with one fold of the training bags left out after the other, and
 * predicts those: the out-of-fold predictions, one for every bag, made without its label. From them
 * alone comes the decision; then what was decided is fitted to all training bags. Bags of weight 0
 * take no part in any of it, so that a cross-validation around it is not fooled.
 *
 *     stack   weights on the simplex with the least out-of-fold loss (bags_weights.c)
 *     auto    the first candidate, in order of preference, whose mean loss is within one standard
 *             error (of the best one's loss) of the least. The stack is a candidate too; its loss in
 *             a fold is that of weights found without this fold.
 *
 * The loss is the log loss, or squared error: accuracies of a few hundred bags tell good models
 * from each other no better than coins.
 *
 * When the bags are split over processes, labels and predictions are brought together (they are one
 * number a bag), and everybody decides the same. */
#include "train/bags_judge.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

/* A part with less weight than this is not worth its time. */
static const double least_weight = 0.01;
/* Bags' worth of belief that all candidates are equally good. */
static const double prior = 10;

/* ---- candidates ------------------------------------------------------------------------------------ */

/* In order of preference. features -1: as given. */
static const struct {
    int model, features;
} preference[] = {
    {FIN_MODEL_STACK, -1},     {FIN_MODEL_SOFTMAX, 2}, {FIN_MODEL_MIXTURE, 2},
    {FIN_MODEL_EMBEDDING, -1}, {FIN_MODEL_SOFTMAX, 0}, {FIN_MODEL_MIXTURE, 0},
    {FIN_MODEL_ANY, 2},
};

/* Models with RBF features are there beside the linear ones, unless the caller wants one kind. */
int fin_fit_candidates(const fin_fit_settings *base, fin_fit_settings *models, int room)
{
    int count = 0;
    for (size_t k = 0; k < sizeof preference / sizeof *preference; k++) {
        fin_fit_settings s = *base;
        s.model = preference[k].model;
        if (s.model == FIN_MODEL_STACK && base->model == FIN_MODEL_STACK)
            continue;
        if (preference[k].features >= 0 && base->features && preference[k].features == 0)
            continue;
        if (preference[k].features >= 0 && !base->features)
            s.features = preference[k].features;
        if (count < room)
            models[count] = s;
        count++;
    }
    return count;
}

/* ---- bags of all processes ------------------------------------------------------------------------ */

typedef struct choice {
    const fin_bags *bags;
    int64_t classes, width, total;
    const double *labels, *weights; /* own bags */
    fin_sum sum;                    /* NULL: alone */
    bool automatic;
    int models, folds;
    fin_fit_settings *model; /* (models) candidates but the stack */
    double *weight;          /* (models + 1) of the stack; what was decided */
    double *w;               /* (models) */
    double *y, *omega;       /* (total) labels and weights of all bags */
    unsigned char *use;      /* (total) */
    int32_t *fold;           /* (total) */
    double *out;             /* (models, n, width) out-of-fold predictions of own bags */
    double *own;             /* (n) */
    double *P;               /* (models + 1, total): probability of the label, or prediction */
    double *left;            /* (total): omega without a fold */
} choice;

static void layout(fini_arena *a, choice *c)
{
    c->model = fini_take(a, c->models, sizeof *c->model);
    c->weight = fini_take(a, c->models + 1, sizeof *c->weight);
    c->w = fini_take(a, c->models, sizeof *c->w);
    c->y = fini_take(a, c->total, sizeof *c->y);
    c->omega = fini_take(a, c->total, sizeof *c->omega);
    c->use = fini_take(a, c->total, sizeof *c->use);
    c->fold = fini_take(a, c->total, sizeof *c->fold);
    c->out = fini_take(a, c->bags->n * c->models, (size_t)c->width * sizeof *c->out);
    c->own = fini_take(a, c->bags->n, sizeof *c->own);
    c->P = fini_take(a, c->total, (size_t)(c->models + 1) * sizeof *c->P);
    c->left = fini_take(a, c->total, sizeof *c->left);
}

/* all: (total) from the own (n) of every process. One block at a time is summed, in which only its
 * owner has something to add: exact, whatever the number of processes. */
static fin_status gather(const choice *c, const double *own, double *all, fin_error *err)
{
    int64_t blocks = fin_bags_blocks(c->total), first, count, most = 0;
    fin_status status = FIN_OK;
    if (!c->sum) {
        memcpy(all, own, (size_t)c->total * sizeof *all);
        return FIN_OK;
    }
    fini_bags_own(c->bags, &first, &count);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t size = (b + 1) * c->total / blocks - b * c->total / blocks;
        most = size > most ? size : most;
    }
    double *parts = fini_alloc_array(most * (count ? count : 1), sizeof *parts);
    if (!parts)
        return fini_fail_memory(err, (size_t)(most * count) * sizeof *parts, "labels of all bags");
    for (int64_t b = 0; !status && b < blocks; b++) {
        int64_t from = b * c->total / blocks, size = (b + 1) * c->total / blocks - from;
        memset(parts, 0, (size_t)(size * count) * sizeof *parts);
        if (b >= first && b < first + count)
            memcpy(parts + (b - first) * size, own + (from - c->bags->first),
                   (size_t)size * sizeof *parts);
        status = c->sum(blocks, size, parts, all + from, err);
    }
    fini_free(parts);
    return status;
}

/* Labels, weights and folds of all bags. Bags that are alone in their class are never left out. */
static fin_status deal_folds(choice *c, int64_t inner, int64_t seed, fin_error *err)
{
    int64_t n = c->bags->n, count = 0;
    for (int64_t i = 0; i < n; i++)
        c->own[i] = c->weights ? c->weights[i] : 1;
    fin_status status = gather(c, c->own, c->omega, err);
    if (!status)
        status = gather(c, c->labels, c->y, err);
    if (status)
        return status;
    for (int64_t i = 0; i < c->total; i++)
        count += c->use[i] = c->omega[i] > 0;
    c->folds = (int)(inner < count ? inner : count);
    for (; c->folds >= 2; c->folds--) { /* lone bags may leave too few for so many folds */
        status = fini_folds_make(c->total, c->classes, c->y, c->use, true, 1, c->folds, seed,
                                 c->fold, err);
        if (status != FIN_ERR_ARGUMENT || c->folds == 2)
            break;
    }
    if (!status && c->folds < 2)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "%lld bags are too few to choose a model by cross-validation; name a "
                           "model, such as softmax",
                           (long long)count);
    for (int64_t i = 0; !status && i < c->total; i++)
        if (c->fold[i] < 0)
            c->omega[i] = 0; /* from here on: weights of what is predicted */
    return status;
}

/* ---- out-of-fold predictions ------------------------------------------------------------------------ */

static fin_status predict_all(choice *c, const fin_progress *progress, fin_error *err)
{
    int64_t n = c->bags->n;
    fini_crossing crossing = {.bags = c->bags,
                              .classes = c->classes,
                              .labels = c->labels,
                              .weights = c->weights,
                              .sum = c->sum,
                              .models = c->models,
                              .repeats = 1,
                              .folds = c->folds,
                              .model = c->model,
                              .fold = c->fold + c->bags->first,
                              .what = "comparing models",
                              .mean = c->out};
    fin_status status = fini_cross(&crossing, progress, err);
    for (int m = 0; !status && m < c->models; m++) {
        for (int64_t i = 0; i < n; i++) {
            const double *p = c->out + (m * n + i) * c->width;
            bool left = c->fold[c->bags->first + i] >= 0;
            c->own[i] = !left ? 0 : c->classes ? p[(int64_t)c->labels[i]] : p[0];
        }
        status = gather(c, c->own, c->P + m * c->total, err);
    }
    return status;
}

/* Row `models` of P: the stack's, with weights found without the fold of the bag. */
static fin_status predict_stack(choice *c, fin_error *err)
{
    double *stack = c->P + c->models * c->total;
    for (int f = 0; f < c->folds; f++) {
        for (int64_t i = 0; i < c->total; i++)
            c->left[i] = c->fold[i] == f ? 0 : c->omega[i];
        fin_status status = fini_weights(c->models, c->total, c->P, c->classes ? NULL : c->y,
                                         c->left, prior, c->w, err);
        if (status)
            return status;
        for (int64_t i = 0; i < c->total; i++) {
            if (c->fold[i] != f)
                continue;
            stack[i] = 0;
            for (int m = 0; m < c->models; m++)
                stack[i] += c->w[m] * c->P[m * c->total + i];
        }
    }
    return FIN_OK;
}

/* ---- the decision ----------------------------------------------------------------------------------- */

static double loss_of(const choice *c, int m, int64_t i)
{
    double p = c->P[m * c->total + i], gap = p - c->y[i];
    return c->classes ? -log(p < DBL_EPSILON ? DBL_EPSILON : p) : gap * gap;
}

/* Weighted mean over bags, and its standard error. */
static double mean_loss(const choice *c, int m, double *se)
{
    double sum = 0, total = 0, squares = 0, of_weights = 0;
    for (int64_t i = 0; i < c->total; i++)
        if (c->omega[i] > 0) {
            sum += c->omega[i] * loss_of(c, m, i);
            total += c->omega[i];
        }
    for (int64_t i = 0; i < c->total; i++)
        if (c->omega[i] > 0) {
            double gap = loss_of(c, m, i) - sum / total;
            squares += c->omega[i] * c->omega[i] * gap * gap;
            of_weights += c->omega[i] * c->omega[i];
        }
    double effective = total * total / of_weights;
    *se = effective > 1 ? sqrt(squares / (total * total) * effective / (effective - 1)) : 0;
    return sum / total;
}

/* The stack (number `models`) comes first in the order of preference, then the others as listed. */
static int prefer(const choice *c)
{
    double least = INFINITY, se = 0, own;
    for (int m = 0; m <= c->models; m++) {
        double loss = mean_loss(c, m, &own);
        se = loss < least ? own : se;
        least = fmin(loss, least);
    }
    int m = 0;
    if (mean_loss(c, c->models, &own) <= least + se)
        return c->models;
    while (m < c->models && !(mean_loss(c, m, &own) <= least + se))
        m++;
    return m;
}

/* weight: what each candidate has in the end; the least ones are dropped. */
static fin_status decide(choice *c, fin_error *err)
{
    double sum = 0;
    fin_status status = fini_weights(c->models, c->total, c->P, c->classes ? NULL : c->y, c->omega,
                                     prior, c->weight, err);
    if (!status && c->automatic)
        status = predict_stack(c, err);
    if (status)
        return status;
    int chosen = c->automatic ? prefer(c) : c->models;
    for (int m = 0; m < c->models; m++) {
        if (chosen < c->models)
            c->weight[m] = m == chosen;
        else if (c->weight[m] < fmin(least_weight, 0.5 / c->models))
            c->weight[m] = 0;
        sum += c->weight[m];
    }
    for (int m = 0; m < c->models; m++)
        c->weight[m] /= sum;
    return FIN_OK;
}

/* ---- the fits ---------------------------------------------------------------------------------------- */

/* What a part is to be: settings and weight, in fit->part. */
static fin_status open_parts(fin_fit *fit, const choice *c, fin_error *err)
{
    int64_t parts = 0;
    for (int m = 0; m < c->models; m++)
        parts += c->weight[m] > 0;
    fit->part = fini_alloc_array(parts, sizeof *fit->part);
    if (!fit->part)
        return fini_fail_memory(err, (size_t)parts * sizeof *fit->part, "the parts of a stack");
    memset(fit->part, 0, (size_t)parts * sizeof *fit->part);
    for (int m = 0; m < c->models; m++)
        if (c->weight[m] > 0) {
            fit->part[fit->parts].settings = c->model[m];
            fit->part[fit->parts++].weight = c->weight[m];
        }
    return FIN_OK;
}

static fin_status fit_part(fini_part *part, const choice *c, const fin_progress *progress,
                           fin_error *err)
{
    double weight = part->weight;
    fin_fit_settings settings = part->settings;
    fin_status status = fini_part_fit(part, &settings, c->classes, c->bags, c->labels, c->weights,
                                      c->sum, progress, err);
    part->weight = weight;
    return status;
}

/* Side by side if this process is alone, and if there are several. */
static fin_status fit_parts(fin_fit *fit, const choice *c, const fin_progress *progress,
                            fin_error *err)
{
    int64_t failed = fit->parts;
    fin_status result = FIN_OK;
    bool many = !c->sum && fit->parts > 1 && fin_threads_get() > 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(many ? fin_threads_get() : 1)
    for (int64_t k = 0; k < fit->parts; k++) {
        fin_error error = {FIN_OK, ""};
        bool speaks = omp_get_thread_num() == 0;
        int before = many ? fini_threads_limit(1) : 0;
        fin_status status = fit_part(&fit->part[k], c, speaks ? progress : NULL, &error);
        if (many)
            fini_threads_limit(before);
#pragma omp critical(finetti_parts)
        if (status && k < failed) {
            failed = k;
            result = fini_fail(err, status, "%s", error.message);
        }
    }
    return result;
}

/* Numbers: the noise of a part is how far its out-of-fold predictions were off. On bags that it was
 * fitted to it looks smaller than it is. */
static void measure_noise(fin_fit *fit, const choice *c)
{
    for (int m = 0, k = 0; m < c->models && !c->classes; m++) {
        double se;
        if (c->weight[m] > 0)
            fit->part[k++].noise = sqrt(mean_loss(c, m, &se));
    }
}

fin_status fini_fit_choose(fin_fit *fit, const fin_bags *bags, const double *labels,
                           const double *weights, fin_sum sum, const fin_progress *progress,
                           fin_error *err)
{
    const fin_fit_settings *base = &fit->settings;
    fin_fit_settings stack = *base;
    choice c = {.bags = bags,
                .classes = fit->classes,
                .width = fit->classes ? fit->classes : 1,
                .total = bags->total,
                .labels = labels,
                .weights = weights,
                .sum = sum == fini_sum_alone ? NULL : sum,
                .automatic = base->model == FIN_MODEL_AUTO};
    fini_arena arena = {0};
    stack.model = FIN_MODEL_STACK; /* its candidates: all but itself */
    c.models = fin_fit_candidates(&stack, NULL, 0);
    layout(&arena, &c);
    fin_status status = fini_arena_open(&arena, "choosing a model", err);
    if (status)
        return status;
    layout(&arena, &c);
    fin_fit_candidates(&stack, c.model, c.models);
    for (int m = c.models - 1; m >= 0; m--) /* any is for two classes */
        if (c.model[m].model == FIN_MODEL_ANY && c.classes != 2)
            memmove(&c.model[m], &c.model[m + 1], (size_t)(--c.models - m) * sizeof *c.model);
    status = deal_folds(&c, base->inner, base->seed, err);
    if (!status)
        status = predict_all(&c, progress, err);
    if (!status)
        status = decide(&c, err);
    if (!status)
        status = open_parts(fit, &c, err);
    if (!status)
        status = fit_parts(fit, &c, progress, err);
    if (!status)
        measure_noise(fit, &c);
    fini_arena_close(&arena);
    return status;
}
