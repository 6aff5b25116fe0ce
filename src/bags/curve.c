/* The learning curve: what more bags would be worth. Of the bags outside a fold a quarter, a half,
 * three quarters and all are used for training, stratified by label as the folds are, each part
 * inside the next. */
#include "base/base.h"
#include "finetti/bags.h"

#include <math.h>
#include <omp.h>

enum { LEAST_BAGS = 40, LEAST_OF_CLASS = 10, CELLS = FIN_CURVE_SIZES * FIN_CURVE_FOLDS };

typedef struct cell { /* one size, one fold */
    fin_status status;
    fin_error err;
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
    const fin_progress *progress;
    int done;
    bool stop;
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
    if (settings.model == FIN_MODEL_AUTO && parts == 1)
        return *only;
    settings.model = settings.model == FIN_MODEL_AUTO ? FIN_MODEL_STACK : settings.model;
    return settings;
}

/* ---- one size, one fold ----------------------------------------------------------------------- */

/* Only the thread that called looks; the others see what it saw. */
static int look(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    curve *c = user;
    int now;
#pragma omp atomic read
    now = c->done;
    if (fini_report(c->progress, "learning curve", now, CELLS)) {
#pragma omp atomic write
        c->stop = true;
        return 1;
    }
    return 0;
}

static fin_status one_cell(curve *c, int t, const fin_progress *progress, cell *out)
{
    const fin_bags *bags = c->bags;
    int64_t n = bags->n, room = n * (2 + 2 * c->width);
    int size = t / FIN_CURVE_FOLDS, fold = t % FIN_CURVE_FOLDS;
    double *weights = c->room + omp_get_thread_num() * room, *labels = weights + n,
           *mean = labels + n;
    double *sd = mean + n * c->width;
    fin_fit *fit = NULL;
    fin_fit_score score = {.count = 0};
    for (int64_t i = 0; i < n; i++) { /* a label that is not to be judged is "not known" */
        weights[i] = c->fold[i] != fold && c->quarter[i] <= size;
        labels[i] = c->fold[i] == fold ? bags->labels[i] : NAN;
        out->bags += weights[i];
    }
    fin_status status =
        fin_fit_create(&fit, &c->settings, c->classes, bags, weights, NULL, progress, &out->err);
    if (!status)
        status = fin_fit_predict(fit, bags, mean, sd, &out->err);
    if (!status)
        status = fin_fit_judge(n, c->classes, labels, mean, sd, &score, &out->err);
    out->score = c->classes ? score.accuracy : score.r2;
    fin_fit_destroy(fit);
    return status;
}

/* Largest fits first, so that no thread is left with one at the end. */
static void all_cells(curve *c)
{
    const fin_progress hook = {look, c};
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->threads)
    for (int t = CELLS - 1; t >= 0; t--) {
        bool stop, first = omp_get_thread_num() == 0;
        cell *out = &c->cells[t];
        if (first)
            look(c, "", 0, 0);
#pragma omp atomic read
        stop = c->stop;
        out->status = stop ? fini_fail(&out->err, FIN_ERR_CANCELLED, "cancelled")
                           : one_cell(c, t, first ? &hook : NULL, out);
#pragma omp atomic update
        c->done++;
    }
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

static fin_status run(curve *c, fin_curve_size size[FIN_CURVE_SIZES], fin_error *err)
{
    const fin_bags *bags = c->bags;
    fin_status status = fin_folds_make(bags->n, c->classes, bags->labels, bags->groups, 1,
                                       FIN_CURVE_FOLDS, c->seed, c->fold, err);
    if (!status) /* another seed: quarters and folds have nothing to do with each other */
        status = fin_folds_make(bags->n, c->classes, bags->labels, bags->groups, 1, FIN_CURVE_SIZES,
                                c->seed ^ 1, c->quarter, err);
    if (status)
        return status;
    all_cells(c);
    for (int t = 0; t < CELLS && !status; t++)
        if ((status = c->cells[t].status))
            fini_fail(err, status, "%s", c->cells[t].err.message);
    for (int s = 0; s < FIN_CURVE_SIZES && !status; s++)
        sum_up(c->cells + s * FIN_CURVE_FOLDS, &size[s]);
    return status;
}

fin_status fin_fit_curve(const fin_fit *fit, const fin_bags *bags, const fin_progress *progress,
                         fin_curve_size size[FIN_CURVE_SIZES], fin_error *err)
{
    fin_fit_info info = {.classes = 0};
    if (fit)
        fin_fit_get_info(fit, &info);
    fin_status status = check(fit, bags, info.classes, err);
    if (status)
        return status;
    curve c = {.settings = settings_of(fit),
               .seed = fin_fit_get_settings(fit)->seed,
               .classes = info.classes,
               .width = info.classes ? info.classes : 1,
               .bags = bags,
               .threads = fin_threads_get(),
               .progress = progress};
    fini_arena arena = {NULL, 0, false};
    layout(&arena, &c);
    if ((status = fini_arena_open(&arena, "the learning curve", err)))
        return status;
    layout(&arena, &c);
    status = run(&c, size, err);
    fini_arena_close(&arena);
    return status;
}
