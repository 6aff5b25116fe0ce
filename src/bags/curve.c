/* The learning curve: what more bags would be worth. Of the bags outside a fold a quarter, a half,
 * three quarters and all are used for training, stratified by label as the folds are, each part
 * inside the next. */
#include "bags/judge.h"

#include <math.h>
#include <omp.h>

enum { LEAST_BAGS = 40, LEAST_OF_CLASS = 10, CELLS = FIN_CURVE_SIZES * FIN_CURVE_FOLDS };

typedef struct cell { /* one size, one fold */
    double bags, score;
} cell;

typedef struct curve {
    fin_fit_settings settings;
    int64_t seed, classes, width;
    const fin_bags *bags;
    int32_t *fold, *quarter; /* (n) */
    int threads;
    double *room; /* (threads, n, 2 + 2 width) */
    cell *cells;  /* (CELLS) */
} curve;

static void layout(fini_arena *a, curve *c)
{
    int64_t n = c->bags->n;
    c->fold = fini_take(a, n, sizeof *c->fold);
    c->quarter = fini_take(a, n, sizeof *c->quarter);
    c->room = fini_take(a, c->threads * n, (size_t)(2 + 2 * c->width) * sizeof *c->room);
    c->cells = fini_take(a, CELLS, sizeof *c->cells);
}

/* Auto has made its choice, and what it chose is what more bags would be used for. Parts that are
 * kept for locations alone have weight 0. */
static fin_fit_settings settings_of(const fin_fit *fit)
{
    fin_fit_settings settings = *fin_fit_get_settings(fit);
    const fin_fit_settings *only = NULL;
    fin_fit_info info;
    int64_t parts = 0;
    fin_fit_get_info(fit, &info);
    for (int64_t i = 0; i < info.parts; i++) {
        double weight;
        const fin_fit_settings *part = fin_fit_part(fit, i, &weight);
        if (weight > 0 && parts++ == 0)
            only = part;
    }
    bool best = fini_chooses(&settings) == FIN_CHOOSES_BEST;
    if (best && parts == 1)
        return *only;
    settings.model = best ? FIN_MODEL_STACK : settings.model;
    return settings;
}

/* ---- one size, one fold ----------------------------------------------------------------------- */

/* Largest fits first, so that no thread is left with one at the end. */
static fin_status one_cell(void *user, int64_t k, const fin_progress *progress, fin_error *err)
{
    curve *c = user;
    const fin_bags *bags = c->bags;
    int64_t n = bags->n, room = n * (2 + 2 * c->width), t = CELLS - 1 - k;
    int64_t size = t / FIN_CURVE_FOLDS, fold = t % FIN_CURVE_FOLDS;
    double *weights = c->room + omp_get_thread_num() * room, *labels = weights + n,
           *mean = labels + n;
    double *sd = mean + n * c->width;
    cell *out = &c->cells[t];
    fin_fit *fit = NULL;
    fin_fit_score score = {.count = 0};
    for (int64_t i = 0; i < n; i++) { /* a label that is not to be judged is "not known" */
        weights[i] = c->fold[i] != fold && c->quarter[i] <= size;
        labels[i] = c->fold[i] == fold ? bags->labels[i] : NAN;
        out->bags += weights[i];
    }
    fin_status status =
        fin_fit_create(&fit, &c->settings, c->classes, bags, weights, NULL, progress, err);
    if (!status)
        status = fin_fit_predict(fit, bags, mean, sd, NULL, err);
    if (!status)
        status = fin_fit_judge(n, c->classes, labels, mean, sd, NULL, &score, err);
    out->score = c->classes ? score.accuracy : score.r2;
    fin_fit_destroy(fit);
    return status;
}

/* ---- the call --------------------------------------------------------------------------------- */

static void sum_up(const cell *cells, fin_curve_size *size)
{
    double squares = 0;
    *size = (fin_curve_size){0, 0, 0};
    for (int f = 0; f < FIN_CURVE_FOLDS; f++) {
        size->bags += cells[f].bags / FIN_CURVE_FOLDS;
        size->score += cells[f].score / FIN_CURVE_FOLDS;
    }
    for (int f = 0; f < FIN_CURVE_FOLDS; f++)
        squares += (cells[f].score - size->score) * (cells[f].score - size->score);
    size->se = sqrt(squares / (FIN_CURVE_FOLDS * (FIN_CURVE_FOLDS - 1)));
}

static fin_status check(const fin_fit *fit, const fin_bags *bags, int64_t classes, fin_error *err)
{
    if (!fit || !bags || !bags->labels || bags->first != 0 || bags->total != bags->n)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "a learning curve needs a fit, and all bags with their labels in one process");
    int64_t least = bags->n < LEAST_BAGS ? 0 : LEAST_OF_CLASS;
    for (int64_t k = 0; k < classes && least == LEAST_OF_CLASS; k++) {
        int64_t count = 0;
        for (int64_t i = 0; i < bags->n; i++)
            count += bags->labels[i] == (double)k;
        least = count < least ? count : least;
    }
    if (least < LEAST_OF_CLASS)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "it takes at least %d bags, and %d of every class", LEAST_BAGS,
                         LEAST_OF_CLASS);
    return FIN_OK;
}

static fin_status run(curve *c, const fin_progress *progress, fin_curve_size size[FIN_CURVE_SIZES],
                      fin_error *err)
{
    const fin_bags *bags = c->bags;
    FINI_TRY(fin_folds_make(bags->n, c->classes, bags->labels, bags->groups, 1, FIN_CURVE_FOLDS,
                            c->seed, c->fold, err));
    /* Another seed: quarters and folds have nothing to do with each other. */
    FINI_TRY(fin_folds_make(bags->n, c->classes, bags->labels, bags->groups, 1, FIN_CURVE_SIZES,
                            c->seed ^ 1, c->quarter, err));
    const fini_fits fits = {.count = CELLS,
                            .fit = one_cell,
                            .user = c,
                            .what = "learning curve",
                            .threads = c->threads};
    FINI_TRY(fini_fits_run(&fits, progress, err));
    for (int s = 0; s < FIN_CURVE_SIZES; s++)
        sum_up(c->cells + s * FIN_CURVE_FOLDS, &size[s]);
    return FIN_OK;
}

fin_status fin_fit_curve(const fin_fit *fit, const fin_bags *bags, const fin_progress *progress,
                         fin_curve_size size[FIN_CURVE_SIZES], fin_error *err)
{
    FINI_NEED(err, fit, bags, size);
    fin_fit_info info = {.classes = 0};
    if (fit)
        fin_fit_get_info(fit, &info);
    FINI_TRY(check(fit, bags, info.classes, err));
    curve c = {.settings = settings_of(fit),
               .seed = fin_fit_get_settings(fit)->seed,
               .classes = info.classes,
               .width = info.classes ? info.classes : 1,
               .bags = bags,
               .threads = fin_threads_get()};
    FINI_AT_END(fini_arena_close) fini_arena arena = {NULL, 0, false};
    FINI_LAY_OUT(err, &arena, "the learning curve", layout(&arena, &c));
    return run(&c, progress, size, err);
}
