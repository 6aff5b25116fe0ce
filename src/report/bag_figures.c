/* Figures of the page on a fit: ROC and precision-recall, predicted against observed, calibration, learning curve, flipping
 * curve. All are made of predictions for bags that were left out, where there are some. */
#include "report/bag_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES = 5, BINS = 10, POINTS = 400 };

static void open_figure(fini_figure *figure, const char *id, const char *title, const char *caption)
{
    fini_figure_open(figure);
    figure->study = "fit";
    figure->id = id;
    figure->kind = "fit";
    figure->title = title;
    figure->caption = caption;
    figure->heading = "";
}

/* Draws it into the page, and closes it. */
static fin_status close_figure(fini_figure *figure, fini_page *page, fin_error *err)
{
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_figure_finish(figure, err);
    if (!status)
        fini_html_figure(figure, NULL, "", page);
    fini_figure_close(figure);
    return status;
}

/* The k-th curve of a panel has the k-th colour. */
static fini_curve *next_curve(fini_figure *figure, fini_panel *panel, const char *label,
                              fini_mark mark, int64_t count)
{
    int k = 0;
    for (const fini_curve *c = panel ? panel->curves : NULL; c; c = c->next)
        k++;
    fini_curve *curve = panel ? fini_figure_curve(figure, panel, label, mark, count) : NULL;
    if (curve) {
        curve->colour = k;
        curve->shape = mark == FINI_MARK_POINTS ? FINI_CIRCLE : -1;
    }
    return curve;
}

static void name_axes(fini_panel *panel, const char *x, const char *y)
{
    if (!panel)
        return;
    panel->x.label = x;
    panel->y.label = y;
}

static void limit(fini_scale *scale, double low, double high)
{
    scale->low = low;
    scale->high = high;
}

/* ---- ROC and precision-recall ----------------------------------------------------------------- */

typedef struct ranked {
    double score;
    bool hit;
} ranked;

static int downwards(const void *a, const void *b)
{
    const ranked *p = a, *q = b;
    return p->score > q->score ? -1 : p->score < q->score;
}

/* Places where the score changes, from the highest on: hits and others so far. Returns how many. */
static int64_t steps_of(const fini_bag_view *v, const double *mean, int64_t class, ranked *rows,
                        double *hits, double *others)
{
    int64_t n = 0, count = 0;
    for (int64_t i = 0; i < v->n; i++)
        if (!isnan(v->labels[i]))
            rows[n++] = (ranked){mean[i * v->width + class], (int64_t)v->labels[i] == class};
    qsort(rows, (size_t)n, sizeof *rows, downwards);
    hits[0] = others[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || rows[i].score < rows[i - 1].score) {
            hits[count + 1] = hits[count];
            others[count + 1] = others[count];
            count++;
        }
        hits[count] += rows[i].hit;
        others[count] += !rows[i].hit;
    }
    return count;
}

/* Some of many points: the first, the last, and those between at equal distances. */
static int64_t some_of(int64_t count, int64_t k, int64_t shown)
{
    return shown < 2 ? 0 : k * (count - 1) / (shown - 1);
}

static void add_roc(const fini_bag_view *v, const double *mean, int64_t class, const char *label,
                    fini_figure *figure, fini_panel *const panels[2])
{
    ranked *rows = fini_figure_take(figure, v->n, sizeof *rows);
    double *hits = fini_figure_take(figure, v->n + 1, sizeof *hits);
    double *others = fini_figure_take(figure, v->n + 1, sizeof *others);
    if (!rows || !hits || !others)
        return;
    int64_t count = steps_of(v, mean, class, rows, hits, others);
    int64_t shown = count + 1 < POINTS ? count + 1 : POINTS;
    double all = hits[count], rest = others[count];
    fini_curve *roc = next_curve(figure, panels[0], label, FINI_MARK_SOLID, shown);
    fini_curve *recall = next_curve(figure, panels[1], label, FINI_MARK_SOLID, shown);
    if (!roc || !recall || !(all > 0 && rest > 0))
        return;
    for (int64_t k = 0; k < shown; k++) {
        int64_t at = some_of(count + 1, k, shown), first = at > 0 ? at : 1;
        roc->x[k] = others[at] / rest;
        roc->y[k] = hits[at] / all;
        recall->x[k] = hits[at] / all;
        recall->y[k] = hits[first] / (hits[first] + others[first]);
    }
}

/* Are there bags of the class, and of others? */
static bool both_there(const fini_bag_view *v, int64_t class)
{
    bool in = false, out = false;
    for (int64_t i = 0; i < v->n; i++) {
        in = in || v->labels[i] == (double)class;
        out = out || (!isnan(v->labels[i]) && v->labels[i] != (double)class);
    }
    return in && out;
}

static fin_status rocs(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    fini_figure figure;
    open_figure(
        &figure, "roc", "How well the classes are told apart",
        "ROC curve: the share of positive bags that is found, against the share of the others "
        "that is wrongly called positive. A guess is the diagonal. Precision and recall: "
        "the share of bags called positive that is positive, against the share of "
        "positive bags that is found.");
    fini_panel *panels[2] = {fini_figure_panel(&figure, "ROC curve")};
    panels[1] = fini_figure_panel(&figure, "Precision and recall");
    name_axes(panels[0], "others called positive", "positive ones found");
    name_axes(panels[1], "positive ones found", "called positive and right");
    for (int k = 0; k < 2 && panels[k]; k++) {
        limit(&panels[k]->x, 0, 1);
        limit(&panels[k]->y, 0, 1);
    }
    if (v->classes == 2)
        fini_figure_note(&figure, "Positive is the class \"%s\".", fini_bag_class(v, v->positive));
    if (panels[0])
        fini_figure_reference(&figure, panels[0], FINI_DIAGONAL, 0, "a guess");
    bool any = false;
    for (int64_t c = 0; v->classes > 2 && c < v->classes && c < CURVES; c++)
        if (both_there(v, c)) {
            add_roc(v, v->mean, c, fini_bag_class(v, c), &figure, panels);
            any = true;
        }
    for (int m = 0; v->classes == 2 && both_there(v, v->positive) && m < CURVES; m++) {
        const double *mean = v->left_out && m < v->of->models
                                 ? fin_validation_mean(v->of->validation, m)
                             : m == 0 && !v->left_out ? v->mean
                                                      : NULL;
        if (mean) {
            add_roc(v, mean, v->positive, v->left_out ? v->of->model_names[m] : v->of->model,
                    &figure, panels);
            any = true;
        }
    }
    if (any)
        return close_figure(&figure, page, err);
    fini_figure_close(&figure);
    return FIN_OK;
}

/* ---- predicted and observed ---------------------------------------------------------------------- */

static fin_status scatter(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    fini_figure figure;
    open_figure(&figure, "observed", "Predicted and observed",
                "Each point is a bag. On the line the prediction is right.");
    fini_panel *panel = fini_figure_panel(&figure, "");
    int64_t count = 0, shown = 0;
    for (int64_t i = 0; i < v->n; i++)
        count += !isnan(v->labels[i]);
    fini_curve *curve = panel ? next_curve(&figure, panel, "bags", FINI_MARK_POINTS,
                                           count < 4 * POINTS ? count : 4 * POINTS)
                              : NULL;
    name_axes(panel, "predicted", "observed");
    for (int64_t i = 0, k = 0; i < v->n && curve; i++) {
        if (isnan(v->labels[i]))
            continue;
        if (shown < curve->count && some_of(count, shown, curve->count) == k) {
            curve->x[shown] = v->mean[i];
            curve->y[shown++] = v->labels[i];
        }
        k++;
    }
    if (curve) {
        curve->quiet = true;
        panel->square = true;
        fini_figure_reference(&figure, panel, FINI_DIAGONAL, 0, "right");
    }
    return close_figure(&figure, page, err);
}

/* Wilson's 95 % interval of a share. */
static void interval(double hits, double n, double *low, double *high)
{
    const double z = 1.959963984540054, p = hits / n, q = z * z / n;
    double middle = (p + q / 2) / (1 + q), half = z * sqrt(p * (1 - p) / n + q / n / 4) / (1 + q);
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

static fin_status calibration(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    double count[BINS] = {0}, said[BINS] = {0}, was[BINS] = {0};
    int some = 0;
    for (int64_t i = 0; i < v->n; i++)
        for (int64_t c = 0; c < v->classes && !isnan(v->labels[i]); c++) {
            double p = v->mean[i * v->width + c];
            int b = p >= 1 ? BINS - 1 : p > 0 ? (int)(p * BINS) : 0;
            if (v->classes == 2 && c != v->positive)
                continue;
            count[b]++;
            said[b] += p;
            was[b] += v->labels[i] == (double)c;
        }
    for (int b = 0; b < BINS; b++)
        some += count[b] > 0;
    fini_figure figure;
    open_figure(&figure, "calibration", "Calibration of its probabilities",
                "Bags with about the same predicted probability, and the share of them that was as "
                "predicted, with a 95 % interval. On the line both are equal.");
    fini_panel *panel = fini_figure_panel(&figure, "");
    fini_curve *curve =
        panel ? next_curve(&figure, panel, "observed", FINI_MARK_POINTS, some) : NULL;
    if (curve) {
        curve->low = fini_figure_array(&figure, curve);
        curve->high = fini_figure_array(&figure, curve);
        curve->quiet = true;
        panel->square = true;
        name_axes(panel, "predicted probability", "observed share");
        limit(&panel->x, 0, 1);
        limit(&panel->y, 0, 1);
        fini_figure_reference(&figure, panel, FINI_DIAGONAL, 0, "calibrated");
    }
    for (int b = 0, k = 0; b < BINS && curve && curve->low && curve->high; b++)
        if (count[b] > 0) {
            curve->x[k] = said[b] / count[b];
            curve->y[k] = was[b] / count[b];
            interval(was[b], count[b], &curve->low[k], &curve->high[k]);
            k++;
        }
    return close_figure(&figure, page, err);
}

static fin_status learning(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    const fin_curve_size *size = v->of->sizes;
    fini_figure figure;
    open_figure(&figure, "learning", "Would more bags help?",
                "The score on bags left out, after so many others, with two standard errors on "
                "each side. If it still "
                "rises at the right, more bags would help more than another model.");
    fini_panel *panel = fini_figure_panel(&figure, "");
    fini_curve *curve =
        panel ? next_curve(&figure, panel, "score", FINI_MARK_SOLID, v->of->size_count) : NULL;
    name_axes(panel, "bags learnt from", v->classes ? "share of right classes" : "R2");
    if (curve) {
        curve->low = fini_figure_array(&figure, curve);
        curve->high = fini_figure_array(&figure, curve);
        curve->quiet = true;
    }
    for (int k = 0; k < v->of->size_count && curve && curve->low && curve->high; k++) {
        double se = isnan(size[k].se) ? 0 : size[k].se;
        curve->x[k] = size[k].bags;
        curve->y[k] = size[k].score;
        curve->low[k] = size[k].score - 2 * se;
        curve->high[k] = size[k].score + 2 * se;
    }
    return close_figure(&figure, page, err);
}

fin_status fini_bag_curves(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    bool labels = v->labels && v->score.count > 0;
    if (labels && v->classes)
        FINI_TRY(rocs(v, page, err));
    if (labels)
        FINI_TRY(v->classes ? calibration(v, page, err) : scatter(v, page, err));
    if (v->of->size_count > 0 && v->of->sizes)
        FINI_TRY(learning(v, page, err));
    return FIN_OK;
}

/* ---- the flipping curve ----------------------------------------------------------------------------- */

enum { ORDERS = 3, FLIPPED = 60 };
static const char *const orders[ORDERS] = {"by evidence", "by probability",
                                           "in the order of the file"};

/* How many tokens may be looked at, such that the page takes no more than a second or so. */
static double affordable(const fin_fit *fit)
{
    double weight;
    const fin_fit_settings *part;
    for (int64_t k = 0; (part = fin_fit_part(fit, k, &weight)); k++)
        if (weight > 0 && fin_fit_model_get(part)->whole)
            return 2000;
    return 50000;
}

/* Adds what bag i says, if it has more than one token. */
static fin_status flip_bag(const fini_bag_view *v, int64_t i, bool located, double *room,
                           fin_flipping *sum, fin_error *err)
{
    fin_bags bag = fini_bag_alone(v->bags, i);
    int64_t L = bag.offsets[1] - bag.offsets[0];
    double *change = room, *prior = room + L, *file = prior + L;
    fin_status status =
        fin_fit_evidence(v->of->fit, &bag, &(fin_evidence){.change = change}, NULL, err);
    if (!status && located)
        status = fin_fit_locate(v->of->fit, &bag, &(fin_locations){.prior = prior}, NULL, err);
    for (int64_t l = 0; l < L; l++) {
        change[l] = v->classes ? change[l] : fabs(change[l]);
        file[l] = -(double)l;
    }
    const double *score[ORDERS] = {change, located ? prior : NULL, file};
    for (int o = 0; o < ORDERS && !status; o++) {
        fin_flipping one;
        if (!score[o])
            continue;
        status = fin_fit_flipping(v->of->fit, &bag, score[o], &one, NULL, err);
        sum[o].bags += !status;
        for (int k = 0; k < FIN_FLIP_POINTS && !status; k++)
            sum[o].fall[k] += one.fall[k];
    }
    return status;
}

static fin_status draw_flips(const fini_bag_view *v, const fin_flipping *sum, fini_page *page,
                             fin_error *err)
{
    fini_figure figure;
    open_figure(&figure, "flipping", "What happens when tokens are taken away",
                v->classes ? "How far the probability of the predicted class falls, on average, as "
                             "the tokens of a bag "
                             "are taken away. The faster a curve rises, the better its order tells "
                             "which tokens matter."
                           : "How far the prediction moves, on average, as the tokens of a bag are "
                             "taken away. The faster "
                             "a curve rises, the better its order tells which tokens matter.");
    fini_panel *panel = fini_figure_panel(&figure, "");
    name_axes(panel, "share of tokens taken away",
              v->classes ? "fall of the probability" : "change of the prediction");
    for (int o = 0; o < ORDERS && panel; o++) {
        fini_curve *curve =
            sum[o].bags ? next_curve(&figure, panel, orders[o], FINI_MARK_SOLID, FIN_FLIP_POINTS)
                        : NULL;
        for (int k = 0; k < FIN_FLIP_POINTS && curve; k++) {
            curve->x[k] = (double)k / (FIN_FLIP_POINTS - 1);
            curve->y[k] = sum[o].fall[k] / (double)sum[o].bags;
        }
    }
    fini_figure_note(
        &figure,
        "%lld of %lld bags, evenly spaced in the file; at the right end one token is left.",
        (long long)sum[0].bags, (long long)v->n);
    return close_figure(&figure, page, err);
}

fin_status fini_bag_flips(const fini_bag_view *v, fini_page *page, fin_error *err)
{
    fin_flipping sum[ORDERS] = {{0}};
    double left = affordable(v->of->fit);
    bool located = fin_fit_locates(v->of->fit);
    int64_t longest = 1, step = v->n > FLIPPED ? v->n / FLIPPED : 1;
    for (int64_t i = 0; i < v->n; i++) {
        int64_t L = v->bags->offsets[i + 1] - v->bags->offsets[i];
        longest = L > longest ? L : longest;
    }
    FINI_OWN(err, "a flipping curve", double, room, longest, ORDERS);
    for (int64_t i = 0; i < v->n; i += step) {
        int64_t L = v->bags->offsets[i + 1] - v->bags->offsets[i];
        if (L < 2 || (double)L > left)
            continue;
        left -= (double)L;
        FINI_TRY(flip_bag(v, i, located, room, sum, err));
    }
    return !sum[0].bags ? FIN_OK : draw_flips(v, sum, page, err);
}
