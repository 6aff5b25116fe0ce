/* The models `stack` and `auto`, and calibration: several fits weighed, or one chosen, by
 * cross-validation.
 *
 * Every candidate is fitted with one fold of the training bags left out after the other, and
 * predicts those: the out-of-fold predictions, one for every bag, made without its label. From them
 * alone comes the decision; then what was decided is fitted to all training bags. Bags of weight 0
 * take no part in any of it, so that a cross-validation around it is not fooled.
 *
 *     stack   weights on the simplex with the least out-of-fold loss (bags_weights.c)
 *     auto    the first candidate, in order of preference, whose mean loss is within one standard
 *             error (of the best one's loss) of the least. The stack is a candidate too; its loss
 *             in a fold is that of weights found without this fold.
 *
 * The same predictions say how sure probabilities may be (bags_calibrate.c): those of the model
 * that was chosen, or those of the stack, again with weights found without the fold. A model that
 * was named and is to be calibrated is the only candidate.
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
#include <time.h>

/* A part with less weight than this is not worth its time. */
static const double least_weight = 0.01;
/* Bags' worth of belief that all candidates are equally good. */
static const double prior = 10;

/* ---- bags of all processes ------------------------------------------------------------------- */

typedef struct choice {
    const fin_bags *bags;
    int64_t classes, width, total;
    const double *labels, *weights; /* own bags */
    fin_sum sum;                    /* NULL: alone */
    bool automatic, calibrated;
    int models, folds, chosen; /* chosen: a candidate, or `models`: the stack */
    fin_fit_settings *model;   /* (models) candidates but the stack */
    double *weight;            /* (models + 1) of the stack; what was decided */
    double *w;                 /* (inner, models): of the stack without a fold */
    double *of_class;          /* (classes): sums of weights */
    double *y, *omega;         /* (total) labels and weights of all bags */
    unsigned char *use;        /* (total) */
    int32_t *fold;             /* (total) */
    double *out;               /* (models, n, width) out-of-fold predictions of own bags */
    double *own;               /* (n) */
    double *P;                 /* (models + 1, total): probability of the label, or prediction */
    double *left;              /* (total): omega without a fold */
} choice;

static void layout(fini_arena *a, choice *c, int64_t inner)
{
    c->model = fini_take(a, c->models, sizeof *c->model);
    c->weight = fini_take(a, c->models + 1, sizeof *c->weight);
    c->w = fini_take(a, c->models * inner, sizeof *c->w);
    c->of_class = fini_take(a, c->classes, sizeof *c->of_class);
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

/* Weights of the bags that are predicted, in place of those to learn from. Their unit does not
 * matter; with the largest 1, no square is too large or too small for a number. */
static void weigh_predictions(choice *c, bool balanced)
{
    double most = 0;
    for (int64_t i = 0; i < c->total; i++) {
        c->omega[i] = c->fold[i] < 0 ? 0 : c->omega[i];
        most = fmax(most, c->omega[i]);
    }
    for (int64_t i = 0; i < c->total; i++)
        c->omega[i] /= most;
    if (!balanced || !c->classes)
        return;
    for (int64_t i = 0; i < c->total; i++)
        if (c->omega[i] > 0)
            c->of_class[(int64_t)c->y[i]] += c->omega[i];
    for (int64_t i = 0; i < c->total; i++)
        if (c->omega[i] > 0)
            c->omega[i] /= c->of_class[(int64_t)c->y[i]];
}

/* Labels, weights and folds of all bags. Bags that are alone in their class are never left out. */
static fin_status deal_folds(choice *c, const fin_fit_settings *base, fin_error *err)
{
    int64_t inner = base->inner, n = c->bags->n, count = 0;
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
        status = fini_folds_make(c->total, c->classes, c->y, c->use, true, 1, c->folds, base->seed,
                                 c->fold, err);
        if (status != FIN_ERR_ARGUMENT)
            break;
    }
    if (c->folds < 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld training bags are too few to choose a model or to calibrate one by "
                         "cross-validation, which leaves out bags whose class has others; name a "
                         "model, such as softmax, with calibrate=no",
                         (long long)count);
    if (!status)
        weigh_predictions(c, base->class_weights == 1);
    return status;
}

/* ---- out-of-fold predictions ----------------------------------------------------------------- */

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
                              .what = c->models > 1 ? "comparing models" : "calibrating",
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
        double *w = c->w + (int64_t)f * c->models;
        for (int64_t i = 0; i < c->total; i++)
            c->left[i] = c->fold[i] == f ? 0 : c->omega[i];
        fin_status status = fini_weights(c->models, c->total, c->P, c->classes ? NULL : c->y,
                                         c->left, prior, w, err);
        if (status)
            return status;
        for (int64_t i = 0; i < c->total; i++) {
            if (c->fold[i] != f)
                continue;
            stack[i] = 0;
            for (int m = 0; m < c->models; m++)
                stack[i] += w[m] * c->P[m * c->total + i];
        }
    }
    return FIN_OK;
}

/* ---- the decision ---------------------------------------------------------------------------- */

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
    if (!status && (c->automatic || c->calibrated))
        status = predict_stack(c, err);
    if (status)
        return status;
    int chosen = c->chosen = c->automatic ? prefer(c) : c->models;
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

/* Out-of-fold predictions of what was chosen take the place of the first candidate's. */
static fin_status calibrate(choice *c, double *sharpness, fin_error *err)
{
    int64_t size = c->bags->n * c->width;
    const int32_t *fold = c->fold + c->bags->first;
    for (int64_t k = 0; k < size; k++) {
        double p = 0;
        int64_t f = fold[k / c->width];
        for (int m = 0; m < c->models && f >= 0; m++) {
            double w = c->chosen < c->models ? m == c->chosen : c->w[f * c->models + m];
            p += w > 0 ? w * c->out[m * size + k] : 0;
        }
        c->out[k] = p;
    }
    return fini_sharpness(c->bags, c->classes, c->labels, c->omega + c->bags->first, c->out,
                          c->sum ? c->sum : fini_sum_alone, sharpness, err);
}

/* ---- the fits -------------------------------------------------------------------------------- */

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

/* Parts that are fitted side by side: the thread that made the call asks for all. */
typedef struct chorus {
    const fin_progress *progress;
    atomic_bool stop;
    atomic_llong left; /* parts not yet fitted */
} chorus;

static int speak(void *user, const char *what, double done, double total)
{
    chorus *c = user;
    if (!atomic_load(&c->stop) && fini_report(c->progress, what, done, total))
        atomic_store(&c->stop, true);
    return atomic_load(&c->stop);
}

static int listen(void *user, const char *what, double done, double total)
{
    chorus *c = user;
    (void)what, (void)done, (void)total;
    return atomic_load(&c->stop);
}

static void wait_for_others(chorus *c, double parts)
{
    const struct timespec moment = {0, 5000000};
    for (long long left; (left = atomic_load(&c->left)) > 0;) {
        nanosleep(&moment, NULL);
        speak(c, "fit", parts - (double)left, parts);
    }
}

/* Parts in a row: each has all threads. No region of one thread around them: in one, libomp of LLVM 14
 * leaves out iterations of loops inside. */
static fin_status fit_in_turn(fin_fit *fit, const choice *c, const fin_progress *progress,
                              fin_error *err)
{
    fin_status status = FIN_OK;
    for (int64_t k = 0; k < fit->parts && !status; k++)
        status = fit_part(&fit->part[k], c, progress, err);
    return status;
}

/* Side by side if this process is alone, and if there are several. */
static fin_status fit_parts(fin_fit *fit, const choice *c, const fin_progress *progress,
                            fin_error *err)
{
    int64_t failed = fit->parts;
    fin_status result = FIN_OK;
    int threads = fin_threads_get();
    if (c->sum || fit->parts == 1 || threads == 1)
        return fit_in_turn(fit, c, progress, err);
    chorus all = {.progress = progress};
    atomic_init(&all.left, fit->parts);
#pragma omp parallel num_threads(threads)
    {
        bool speaks = omp_get_thread_num() == 0;
        const fin_progress heard = {speaks ? speak : listen, &all};
        int before = fini_threads_limit(1);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t k = 0; k < fit->parts; k++) {
            fin_error error = {FIN_OK, ""};
            fin_status status = fit_part(&fit->part[k], c, &heard, &error);
#pragma omp critical(finetti_parts)
            if (status && k < failed) {
                failed = k;
                result = fini_fail(err, status, "%s", error.message);
            }
            atomic_fetch_sub(&all.left, 1);
        }
        if (speaks)
            wait_for_others(&all, (double)fit->parts);
        fini_threads_limit(before);
    }
    /* The answer may have come when the last part was just done. */
    if (!result && atomic_load(&all.stop))
        result = fini_fail(err, FIN_ERR_CANCELLED, "the fit was cancelled");
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
    choice c = {.bags = bags,
                .classes = fit->classes,
                .width = fit->classes ? fit->classes : 1,
                .total = bags->total,
                .labels = labels,
                .weights = weights,
                .sum = sum == fini_sum_alone ? NULL : sum,
                .automatic = base->model == FIN_MODEL_AUTO,
                .calibrated = fini_calibrates(base, fit->classes)};
    fini_arena arena = {0};
    c.models = fini_candidates(base, c.classes, NULL);
    layout(&arena, &c, base->inner);
    fin_status status = fini_arena_open(&arena, "choosing a model", err);
    if (status)
        return status;
    layout(&arena, &c, base->inner);
    c.models = fini_candidates(base, c.classes, c.model);
    status = deal_folds(&c, base, err);
    if (!status)
        status = predict_all(&c, progress, err);
    if (!status)
        status = decide(&c, err);
    if (!status && c.calibrated)
        status = calibrate(&c, &fit->sharpness, err);
    if (!status)
        status = open_parts(fit, &c, err);
    if (!status)
        status = fit_parts(fit, &c, progress, err);
    if (!status)
        measure_noise(fit, &c);
    fini_arena_close(&arena);
    return status;
}
