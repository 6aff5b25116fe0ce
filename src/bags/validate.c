/* Cross-validation of several models on the same folds, and what it says (nested.c makes the
 * predictions).
 *
 * Every fit is judged on the bags it has not seen, fold by fold; means and standard errors are over
 * the (repeats x folds) values. Two scores are not means over bags and need more of them than a
 * fold has: the ECE is that of all predictions of a repeat together, and so is the AUC if no fold
 * has two classes (leave-one-out). r2 is 1 - mean squared error / variance of all labels, so that
 * it means the same in every fold.
 *
 * Models are compared by their difference in each fold. Training sets of different folds overlap,
 * so that the differences are not independent and s / sqrt(J) is too small; Nadeau and Bengio
 * (Machine Learning 52, 2003) correct it for J = repeats x folds values with variance s^2:
 *
 *     se^2 = (1 / J + test / training) s^2,      test / training = 1 / (folds - 1) */
#include "bags/judge.h"

#include <math.h>
#include <string.h>

enum { MOST = 10000 /* models, and repeats */, CLASSES = 1000000 };

struct fin_validation {
    fini_arena arena;
    int count, repeats, folds;
    int64_t n, classes, width;
    double variance;         /* of all labels, if they are numbers */
    fin_validation_row *row; /* (count) */
    double *labels;          /* (n) */
    double *all;             /* (count, repeats, n, width) out-of-fold predictions */
    double *sd, *ends;       /* (count, repeats, n), (count, repeats, n, 2), numbers; else NULL */
    double *mean;            /* (count, n, width): over repeats */
    double *seconds;         /* (count) */
    fin_fit_score *score;    /* (count, repeats, folds) */
    fin_fit_score *pooled;   /* (count, repeats) */
    double *fold_labels, *fold_mean, *fold_sd; /* (n), (n, width), (n): scratch */
    double *fold_ends;                         /* (n, 2) the same */
};

static void layout(fini_arena *a, fin_validation *v)
{
    int64_t runs = (int64_t)v->count * v->repeats;
    v->row = fini_take(a, v->count, sizeof *v->row);
    v->labels = fini_take(a, v->n, sizeof *v->labels);
    v->all = fini_take(a, runs * v->n, (size_t)v->width * sizeof *v->all);
    v->sd = v->classes ? NULL : fini_take(a, runs * v->n, sizeof *v->sd);
    v->ends = v->classes ? NULL : fini_take(a, runs * v->n, 2 * sizeof *v->ends);
    v->mean = fini_take(a, v->count * v->n, (size_t)v->width * sizeof *v->mean);
    v->seconds = fini_take(a, v->count, sizeof *v->seconds);
    v->score = fini_take(a, runs * v->folds, sizeof *v->score);
    v->pooled = fini_take(a, runs, sizeof *v->pooled);
    v->fold_labels = fini_take(a, v->n, sizeof *v->fold_labels);
    v->fold_mean = fini_take(a, v->n, (size_t)v->width * sizeof *v->fold_mean);
    v->fold_sd = fini_take(a, v->n, sizeof *v->fold_sd);
    v->fold_ends = fini_take(a, v->n, 2 * sizeof *v->fold_ends);
}

/* ---- scores of a fold ------------------------------------------------------------------------ */

/* Population variance of all labels. */
static double label_variance(const fin_validation *v)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < v->n; i++) {
        double gap = v->labels[i] - mean;
        mean += gap / (double)(i + 1);
        squares += gap * (v->labels[i] - mean);
    }
    return squares / (double)v->n;
}

/* Bags of fold f; f = -1: all that were left out some time. */
static fin_status judge_fold(fin_validation *v, const int32_t *fold, int f, const double *mean,
                             const double *sd, const double *ends, fin_fit_score *score,
                             fin_error *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < v->n; i++) {
        if (f >= 0 && fold[i] != f)
            continue;
        v->fold_labels[count] = v->labels[i];
        memcpy(v->fold_mean + count * v->width, mean + i * v->width,
               (size_t)v->width * sizeof *mean);
        if (sd)
            v->fold_sd[count] = sd[i];
        if (ends)
            memcpy(v->fold_ends + 2 * count, ends + 2 * i, 2 * sizeof *ends);
        count++;
    }
    fin_status status =
        fin_fit_judge(count, v->classes, v->fold_labels, v->fold_mean, sd ? v->fold_sd : NULL,
                      ends ? v->fold_ends : NULL, score, err);
    if (!v->classes)
        score->r2 = v->variance > 0 ? 1 - score->rmse * score->rmse / v->variance : NAN;
    return status;
}

static fin_status judge_all(fin_validation *v, const int32_t *fold, fin_error *err)
{
    for (int64_t run = 0; run < (int64_t)v->count * v->repeats; run++) {
        const double *mean = v->all + run * v->n * v->width,
                     *sd = v->sd ? v->sd + run * v->n : NULL,
                     *ends = v->ends ? v->ends + 2 * run * v->n : NULL;
        const int32_t *dealt = fold + run % v->repeats * v->n;
        FINI_TRY(judge_fold(v, dealt, -1, mean, sd, ends, &v->pooled[run], err));
        for (int f = 0; f < v->folds; f++)
            FINI_TRY(judge_fold(v, dealt, f, mean, sd, ends, &v->score[run * v->folds + f], err));
    }
    return FIN_OK;
}

/* ---- means and standard errors --------------------------------------------------------------- */

/* Places of the scores in fin_fit_score. */
#define PLACE(name) offsetof(fin_fit_score, name)
static const size_t place[] = {
    PLACE(accuracy), PLACE(auc),         PLACE(log_loss),   PLACE(brier),     PLACE(ece),
    PLACE(rmse),     PLACE(r2),          PLACE(mae),        PLACE(log_score), PLACE(coverage),
    PLACE(balanced), PLACE(sensitivity), PLACE(specificity)};

static double *at(fin_fit_score *score, size_t where)
{
    return (double *)(void *)((unsigned char *)score + where);
}

static double get(const fin_fit_score *score, size_t where)
{
    double value;
    memcpy(&value, (const unsigned char *)score + where, sizeof value);
    return value;
}

/* Over the scores that are numbers. Returns how many. */
static int64_t summarise(int64_t n, const fin_fit_score *score, size_t where, double *mean,
                         double *se)
{
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = get(&score[i], where);
        if (isnan(value))
            continue;
        count++;
        double gap = value - sum;
        sum += gap / (double)count;
        squares += gap * (value - sum);
    }
    *mean = count ? sum : NAN;
    *se = count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : NAN;
    return count;
}

static void fill_row(fin_validation *v, int m)
{
    fin_validation_row *row = &v->row[m];
    int64_t runs = (int64_t)v->repeats * v->folds;
    const fin_fit_score *score = v->score + m * runs, *pooled = v->pooled + m * v->repeats;
    for (size_t k = 0; k < sizeof place / sizeof *place; k++) {
        bool whole = place[k] == PLACE(ece);
        double *mean = at(&row->mean, place[k]), *se = at(&row->se, place[k]);
        if (whole || (!summarise(runs, score, place[k], mean, se) && place[k] == PLACE(auc)))
            summarise(v->repeats, pooled, place[k], mean, se);
    }
    row->mean.count = v->n * v->repeats;
    row->se.count = runs;
    row->main = v->classes ? row->mean.accuracy : row->mean.r2;
    row->main_se = v->classes ? row->se.accuracy : row->se.r2;
    row->seconds = v->seconds[m];
}

/* Paired differences from model 0, with the corrected standard error above. */
static void compare_row(fin_validation *v, int m)
{
    size_t where = v->classes ? PLACE(accuracy) : PLACE(r2);
    int64_t runs = (int64_t)v->repeats * v->folds;
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < runs; i++) {
        double value = get(&v->score[m * runs + i], where) - get(&v->score[i], where);
        double gap = value - mean;
        mean += gap / (double)(i + 1);
        squares += gap * (value - mean);
    }
    v->row[m].gain = mean;
    v->row[m].gain_se =
        sqrt((1.0 / (double)runs + 1.0 / (v->folds - 1)) * squares / (double)(runs - 1));
}

static void average_repeats(fin_validation *v)
{
    int64_t size = v->n * v->width;
    for (int m = 0; m < v->count; m++)
        for (int64_t i = 0; i < size; i++) {
            double sum = 0;
            for (int r = 0; r < v->repeats; r++)
                sum += v->all[((int64_t)m * v->repeats + r) * size + i];
            v->mean[m * size + i] = sum / v->repeats;
        }
}

/* ---- the call -------------------------------------------------------------------------------- */

static fin_status check(int count, int64_t classes, const fin_bags *bags, const fin_folds *folds,
                        fin_error *err)
{
    if (count < 1 || count > MOST || folds->repeats < 1 || folds->repeats > MOST ||
        folds->folds < 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cross-validation of %d models with %d folds, %d times; give 1 to %d "
                         "models, at least 2 folds, 1 to %d times",
                         count, folds->folds, folds->repeats, MOST, MOST);
    if (bags->n < 2 || bags->first != 0 || bags->total != bags->n || !bags->labels)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "cross-validation needs all bags in one process, at least two, and their "
                         "labels");
    if (classes < 0 || classes == 1 || classes > CLASSES)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld classes; 0 stands for numbers, else there are 2 to %d",
                         (long long)classes, CLASSES);
    for (int64_t i = 0; i < bags->n; i++)
        if (!isfinite(bags->labels[i]))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "bag %lld has no label (%g); cross-validation needs those of all "
                             "bags: leave out the others",
                             (long long)i, bags->labels[i]);
    return FIN_OK;
}

/* Every fold of every repeat has bags, and nothing else is in the list. */
static fin_status check_folds(int64_t n, const fin_folds *all, fin_error *err)
{
    int folds = all->folds;
    FINI_OWN(err, "folds", int64_t, count, folds, 1);
    for (int r = 0; r < all->repeats; r++) {
        memset(count, 0, (size_t)folds * sizeof *count);
        for (int64_t i = 0; i < n; i++) {
            int32_t f = all->fold[r * n + i];
            if (f < 0 || f >= folds)
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "bag %lld is in fold %d of repeat %d (from 0); folds are 0 .. %d",
                                 (long long)i, (int)f, r, folds - 1);
            else
                count[f]++;
        }
        for (int f = 0; f < folds; f++)
            if (!count[f])
                return fini_fail(err, FIN_ERR_ARGUMENT,
                                 "fold %d of repeat %d (from 0) has no bags; give fewer folds", f,
                                 r);
    }
    return FIN_OK;
}

static fin_status open_validation(fin_validation **out, int count, int64_t classes,
                                  const fin_bags *bags, const fin_folds *folds, fin_error *err)
{
    FINI_MAKE(err, "a cross-validation", fin_validation, v);
    *v = (fin_validation){.count = count,
                          .repeats = folds->repeats,
                          .folds = folds->folds,
                          .n = bags->n,
                          .classes = classes,
                          .width = classes ? classes : 1};
    layout(&v->arena, v);
    fin_status status = fini_arena_open(&v->arena, "the predictions of a cross-validation", err);
    if (status) {
        fini_free(v);
        return status;
    }
    layout(&v->arena, v);
    memcpy(v->labels, bags->labels, (size_t)v->n * sizeof *v->labels);
    v->variance = label_variance(v);
    *out = v;
    return FIN_OK;
}

fin_status fin_validate(fin_validation **out, int count, const fin_fit_settings *models,
                        int64_t classes, const fin_bags *bags, const fin_folds *folds,
                        const fin_progress *progress, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, !count || models, bags, folds);
    FINI_NEED(err, folds->fold);
    fin_validation *v = NULL;
    FINI_TRY(fini_bags_check(bags, err));
    FINI_TRY(check(count, classes, bags, folds, err));
    FINI_TRY(check_folds(bags->n, folds, err));
    for (int m = 0; m < count; m++)
        FINI_TRY(fin_settings_validate(&fin_fit_table, &models[m], err));
    FINI_TRY(open_validation(&v, count, classes, bags, folds, err));
    fini_nested nested = {.bags = bags,
                          .classes = classes,
                          .count = count,
                          .asked = models,
                          .repeats = folds->repeats,
                          .folds = folds->folds,
                          .fold = folds->fold,
                          .mean = v->all,
                          .sd = v->sd,
                          .ends = v->ends,
                          .seconds = v->seconds};
    fin_status status = fini_nested_run(&nested, progress, err);
    if (!status)
        status = judge_all(v, folds->fold, err);
    for (int m = 0; !status && m < count; m++) {
        v->row[m].settings = models[m];
        fill_row(v, m);
        compare_row(v, m);
    }
    if (status) {
        fin_validation_destroy(v);
        return status;
    }
    average_repeats(v);
    *out = v;
    return FIN_OK;
}

void fin_validation_destroy(fin_validation *v)
{
    if (!v)
        return;
    fini_arena_close(&v->arena);
    fini_free(v);
}

const fin_validation_row *fin_validation_at(const fin_validation *v, int i)
{
    return v && i >= 0 && i < v->count ? &v->row[i] : NULL;
}

const double *fin_validation_mean(const fin_validation *v, int i)
{
    return v && i >= 0 && i < v->count ? v->mean + i * v->n * v->width : NULL;
}

/* ---- does one token decide? ------------------------------------------------------------------- */

/* Loss of model m for bag i: -log p(label), or (label - prediction)^2 over the labels' variance. Not a
 * number for a bag that was never left out. */
static double loss_of(const fin_validation *v, int m, int64_t i)
{
    const double least = 1e-15; /* of a probability, so that one bag cannot decide */
    const double *prediction = v->mean + (m * v->n + i) * v->width, y = v->labels[i];
    double off = y - prediction[0], p = v->classes ? prediction[(int64_t)y] : 1;
    return v->classes        ? -log(p < least ? least : p)
           : v->variance > 0 ? off * off / v->variance
                             : off * off;
}

/* Mean over bags of the losses of model a, and of their difference from those of b. */
static double mean_losses(const fin_validation *v, int a, int b, double *difference, double *count)
{
    double sum = 0, gaps = 0;
    *count = 0;
    for (int64_t i = 0; i < v->n; i++) {
        double one = loss_of(v, a, i), other = loss_of(v, b, i);
        if (!isfinite(one) || !isfinite(other))
            continue;
        sum += one;
        gaps += one - other;
        ++*count;
    }
    *difference = gaps / *count;
    return sum / *count;
}

/* The best of the models of a kind, whatever they see tokens through; -1: there is none. */
static int best_of(const fin_validation *v, int decides)
{
    int best = -1;
    double least = INFINITY, ignored, count;
    for (int m = 0; m < v->count; m++) {
        bool is = (int)fini_bag_model_of(v->row[m].settings.model)->decides == decides;
        double loss = is ? mean_losses(v, m, m, &ignored, &count) : INFINITY;
        best = loss < least ? m : best;
        least = fmin(loss, least);
    }
    return best;
}

void fin_validation_locate(const fin_validation *v, fin_validation_location *to)
{
    if (!to)
        return;
    *to = (fin_validation_location){.one = -1, .all = -1};
    int one = v ? best_of(v, FINI_DECIDES_ONE) : -1, all = v ? best_of(v, FINI_DECIDES_ALL) : -1;
    double mean, back, squares = 0, count = 0;
    if (one < 0 || all < 0)
        return;
    double one_loss = mean_losses(v, one, all, &mean, &count);
    double all_loss = mean_losses(v, all, one, &back, &count);
    for (int64_t i = 0; i < v->n; i++) {
        double rest = loss_of(v, one, i) - loss_of(v, all, i) - mean;
        squares += isfinite(rest) ? rest * rest : 0;
    }
    if (count >= 2)
        *to = (fin_validation_location){one, all, one_loss, all_loss,
                                        sqrt(squares / count / (count - 1))};
}

fin_status fin_validation_reliability(const fin_validation *v, int i, int bins, int64_t *count,
                                      double *predicted, double *observed, fin_error *err)
{
    FINI_NEED(err, v, count, predicted, observed);
    if (!v->classes)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "reliability is of probabilities, and the labels are numbers; look at the "
                         "coverage");
    if (i < 0 || i >= v->count || bins < 1)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "model %d in %d bins; there are %d models, from 0 on, and at least one bin", i, bins,
            v->count);
    const double *p = v->all + (int64_t)i * v->repeats * v->n * v->width;
    for (int b = 0; b < bins; b++)
        count[b] = 0, predicted[b] = observed[b] = 0;
    for (int64_t k = 0; k < v->repeats * v->n * v->width; k++) {
        int b = fini_bin(p[k], bins);
        count[b]++;
        predicted[b] += p[k];
        observed[b] += v->labels[k / v->width % v->n] == (double)(k % v->width);
    }
    for (int b = 0; b < bins; b++) {
        predicted[b] = count[b] ? predicted[b] / (double)count[b] : NAN;
        observed[b] = count[b] ? observed[b] / (double)count[b] : NAN;
    }
    return FIN_OK;
}
