/* The learning curve: what more bags would be worth. Five folds; of the bags outside a fold a
 * quarter, a half, three quarters and all are used for training, stratified by label as the folds
 * are, each part inside the next. */
#include "fit.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST_BAGS = 40, LEAST_OF_CLASS = 10 };

typedef struct cell { /* one size, one fold */
    fin_status status;
    fin_error err;
    double bags, score;
} cell;

typedef struct curve {
    const fit_run *run;
    const int32_t *fold, *quarter; /* (n) */
    cell cells[FIT_SIZES * FIT_CURVE_FOLDS];
    bool stop;
} curve;

/* Auto has made its choice by now, and what it chose is what more bags would be used for. */
static fin_fit_settings curve_settings(const fit_run *run)
{
    fin_fit_settings settings = run->settings;
    const fin_fit_settings *only = &settings;
    int64_t parts = fit_parts(run->fit, &only);
    if (settings.model == FIN_MODEL_AUTO && parts == 1)
        settings = *only;
    else if (settings.model == FIN_MODEL_AUTO)
        settings.model = FIN_MODEL_STACK;
    return settings;
}

/* The bags of a fold, judged: labels (n) are scratch, and those of other bags are "not known". */
static fin_status judge(const curve *c, int fold, const double *mean, const double *sd,
                        double *labels, cell *out)
{
    const fit_run *run = c->run;
    fin_fit_score score;
    for (int64_t i = 0; i < run->bags->n; i++)
        labels[i] = c->fold[i] == fold ? run->bags->labels[i] : NAN;
    fin_status status =
        fin_fit_judge(run->bags->n, run->classes, labels, mean, sd, &score, &out->err);
    out->score = run->classes ? score.accuracy : score.r2;
    return status;
}

static fin_status one_cell(const curve *c, const fin_fit_settings *settings, int size, int fold,
                           cell *out)
{
    const fit_run *run = c->run;
    int64_t n = run->bags->n, width = run->classes ? run->classes : 1;
    size_t room = (size_t)n * (size_t)(2 + 2 * width);
    double *weights = calloc(room, sizeof *weights);
    fin_fit *fit = NULL;
    if (!weights)
        return cli_status_memory(&out->err, 8.0 * (double)room, "the learning curve");
    double *mean = weights + n, *sd = mean + n * width, *labels = sd + n * width;
    for (int64_t i = 0; i < n; i++) {
        weights[i] = c->fold[i] != fold && c->quarter[i] <= size;
        out->bags += weights[i];
    }
    fin_status status =
        fin_fit_create(&fit, settings, run->classes, run->bags, weights, NULL, NULL, &out->err);
    if (!status)
        status = fin_fit_predict(fit, run->bags, mean, sd, &out->err);
    if (!status)
        status = judge(c, fold, mean, sd, labels, out);
    fin_fit_destroy(fit);
    free(weights);
    return status;
}

static void report(curve *c, int done, int total)
{
    const fin_progress *progress = cli_progress();
    if (progress->report(progress->user, "learning curve", done, total))
        c->stop = true;
}

/* Largest fits first, so that no thread is left with one at the end. */
static void all_cells(curve *c, const fin_fit_settings *settings)
{
    int total = FIT_SIZES * FIT_CURVE_FOLDS, done = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(fin_threads_get())
    for (int t = total - 1; t >= 0; t--) {
        bool stop;
#pragma omp atomic read
        stop = c->stop;
        cell *out = &c->cells[t];
        if (stop || cli_cancelled())
            out->status = cli_status(&out->err, FIN_ERR_CANCELLED, "cancelled");
        else
            out->status = one_cell(c, settings, t / FIT_CURVE_FOLDS, t % FIT_CURVE_FOLDS, out);
        int now;
#pragma omp atomic capture
        now = ++done;
        if (omp_get_thread_num() == 0)
            report(c, now, total);
    }
}

static void sum_up(fit_run *run, const curve *c)
{
    for (int s = 0; s < FIT_SIZES; s++) {
        fit_size *size = &run->size[s];
        double squares = 0;
        for (int f = 0; f < FIT_CURVE_FOLDS; f++) {
            size->bags += c->cells[s * FIT_CURVE_FOLDS + f].bags / FIT_CURVE_FOLDS;
            size->score += c->cells[s * FIT_CURVE_FOLDS + f].score / FIT_CURVE_FOLDS;
        }
        for (int f = 0; f < FIT_CURVE_FOLDS; f++) {
            double off = c->cells[s * FIT_CURVE_FOLDS + f].score - size->score;
            squares += off * off;
        }
        size->se = sqrt(squares / (FIT_CURVE_FOLDS * (FIT_CURVE_FOLDS - 1)));
    }
    run->sizes = FIT_SIZES;
}

static bool is_small(const fit_run *run)
{
    if (run->bags->n < LEAST_BAGS)
        return true;
    for (int64_t k = 0; k < run->classes; k++)
        if (run->class_count[k] < LEAST_OF_CLASS)
            return true;
    return false;
}

/* A part of the bags can lack what all have (a class, a column that varies): then there is no curve,
 * and that is said. */
static fin_status outcome(fit_run *run, const curve *c, fin_error *err)
{
    for (int t = 0; t < FIT_SIZES * FIT_CURVE_FOLDS; t++) {
        fin_status status = c->cells[t].status;
        if (status == FIN_ERR_MEMORY || status == FIN_ERR_CANCELLED) {
            *err = c->cells[t].err;
            return status;
        }
        if (status) {
            snprintf(run->no_curve, sizeof run->no_curve, "%.150s", c->cells[t].err.message);
            return FIN_OK;
        }
    }
    sum_up(run, c);
    return FIN_OK;
}

fin_status fit_curve(fit_run *run, fin_error *err)
{
    double start = fit_clock();
    int64_t n = run->bags->n;
    if (is_small(run)) {
        snprintf(run->no_curve, sizeof run->no_curve,
                 "it takes at least %d bags, and %d of every class", LEAST_BAGS, LEAST_OF_CLASS);
        return FIN_OK;
    }
    int32_t *fold = malloc((size_t)n * 2 * sizeof *fold);
    curve *c = calloc(1, sizeof *c);
    fin_status status = FIN_OK;
    if (!fold || !c)
        status = cli_status_memory(err, 8.0 * (double)n, "the learning curve");
    if (!status)
        status = fin_folds_make(n, run->classes, run->bags->labels, run->bags->groups, 1,
                                FIT_CURVE_FOLDS, run->settings.seed, fold, err);
    if (!status) /* another seed: quarters and folds have nothing to do with each other */
        status = fin_folds_make(n, run->classes, run->bags->labels, run->bags->groups, 1, FIT_SIZES,
                                run->settings.seed ^ 1, fold + n, err);
    if (!status) {
        fin_fit_settings settings = curve_settings(run);
        c->run = run;
        c->fold = fold;
        c->quarter = fold + n;
        all_cells(c, &settings);
        status = outcome(run, c, err);
    }
    free(c);
    free(fold);
    run->seconds_curve = fit_clock() - start;
    return status;
}
