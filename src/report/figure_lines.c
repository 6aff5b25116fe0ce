/* Lines: numbers of runs against a setting or another number. Points are sorted by x; `split` makes
 * a line of every value of a setting, with one colour per value over all lines of the figure;
 * `average` makes one point, with its interval, of all that a line has at one x. */
#include "report/figure.h"
#include "study/claim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const styles[] = {
#define NAME(name, text) text,
    FINI_MARK_LIST(NAME)
#undef NAME
};
enum { SHAPES_UP_TO = 40 }; /* lines with more points are drawn without their shapes */

/* ---- check ---------------------------------------------------------------------------------- */

static fin_status check_style(const fini_tree *tree, const fini_node *line, fini_mark *mark,
                              fin_error *err)
{
    const char *text;
    fin_status status = fini_node_text(tree, line, "style", "solid", &text, err);
    if (status)
        return status;
    for (int i = 0; i < FINI_MARK_STYLES; i++)
        if (strcmp(text, styles[i]) == 0) {
            *mark = (fini_mark)i;
            return FIN_OK;
        }
    return fini_node_fail(tree, fini_node_get(line, "style"), err,
                          "a style is solid, dashed, dotted or points, not '%.40s'", text);
}

static fin_status read_line(const fini_spec *spec, const fini_node *node, fini_line_spec *line,
                            fin_error *err)
{
    static const char *const keys[] = {"take",    "label", "split", "style", "band", "fit",
                                       "average", "from",  "where", "each",  NULL};
    const fini_tree *tree = spec->study->tree;
    const fini_node *x = fini_node_get(spec->node, "x");
    const fini_block *block = NULL;
    bool average = false;
    memset(line, 0, sizeof *line);
    fin_status status = fini_node_keys(tree, node, "a line", keys, err);
    if (!status)
        status = fini_spec_block(spec, node, &block, err);
    if (!status)
        status = fini_spec_formula(spec, block, node, "take", err);
    if (!status)
        status = fini_spec_formula(spec, block, x, "take", err);
    if (!status)
        status = fini_spec_setting(spec, block, node, "split", err);
    if (!status)
        status = fini_spec_where(spec, block, node, err);
    if (!status)
        status = check_style(tree, node, &line->mark, err);
    if (!status)
        status = fini_node_flag(tree, node, "band", 0, &line->band, err);
    if (!status)
        status = fini_node_flag(tree, node, "fit", 0, &line->fit, err);
    if (!status)
        status = fini_node_flag(tree, node, "average", 0, &average, err);
    line->several = average                          ? FINI_SEVERAL_MEAN
                    : line->mark == FINI_MARK_POINTS ? FINI_SEVERAL_KEEP
                                                     : FINI_SEVERAL_TELL;
    if (!status)
        status = fini_node_text(tree, node, "take", NULL, &line->take, err);
    if (!status)
        status = fini_node_text(tree, node, "label", line->take, &line->label, err);
    if (!status)
        status = fini_node_text(tree, node, "split", "", &line->split, err);
    if (!status && !line->split[0])
        line->split = NULL;
    return status;
}

static fin_status check_reference(const fini_tree *tree, const fini_node *node, fin_error *err)
{
    static const char *const keys[] = {"x", "y", "label", NULL};
    const char *text;
    double number;
    fin_status status = fini_node_keys(tree, node, "a reference line", keys, err);
    bool x = fini_node_get(node, "x"), y = fini_node_get(node, "y");
    if (!status && x == y)
        status = fini_node_fail(tree, node, err, "a reference line has either 'x' or 'y'");
    if (!status)
        status = fini_node_number(tree, node, x ? "x" : "y", NAN, &number, err);
    if (!status && isinf(number))
        status = fini_node_fail(tree, node, err, "a reference line must be at a finite number");
    return status ? status : fini_node_text(tree, node, "label", "", &text, err);
}

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_tree *tree = spec->study->tree;
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_node *references = fini_node_get(spec->node, "reference");
    const fini_block *block;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_axis(spec, block, "x", true, err);
    if (!status)
        status = fini_spec_axis(spec, block, "y", false, err);
    if (!status && (!lines || lines->kind != FINI_LIST || lines->count == 0))
        status = fini_node_fail(tree, lines ? lines : spec->node, err,
                                "a figure of lines needs 'lines', a list such as "
                                "[{take: risk}]");
    for (int i = 0; !status && i < lines->count; i++) {
        fini_line_spec line;
        status = read_line(spec, &lines->child[i], &line, err);
    }
    if (!status && references && references->kind != FINI_LIST)
        status = fini_node_fail(tree, references, err,
                                "'reference' must be a list, such as [{y: 0.5, label: limit}]");
    for (int i = 0; !status && references && i < references->count; i++)
        status = check_reference(tree, &references->child[i], err);
    return status;
}

/* ---- build ---------------------------------------------------------------------------------- */

/* The next one that no curve has yet. */
static int next_colour(const fini_panel *panel)
{
    int most = -1;
    for (const fini_curve *c = panel->curves; c; c = c->next)
        most = c->colour > most ? c->colour : most;
    return most + 1;
}

/* "risk: slope -1 +- 0.02 (95 %)"; where only one axis is logarithmic, of what and per what. Exact
 * numbers have no uncertainty, though they may be off their line. */
static const char *slope_label(const fini_curve *curve, const fini_line *line, int64_t n,
                               bool drawn, fini_figure *figure, const fini_panel *panel)
{
    char slope[32], error[32] = "";
    double half = fini_student_95(n - 2) * line->slope_error;
    bool known = drawn && n > 2 && isfinite(half);
    fini_print_double(line->slope, 3, slope, sizeof slope);
    if (known)
        fini_print_double(half, 2, error, sizeof error);
    const char *unit = panel->x.log == panel->y.log ? ""
                       : panel->y.log               ? " decades per unit of x"
                                                    : " per decade of x";
    return fini_figure_say(figure, "%.200s: slope %s%s%s%s%s", curve->label, slope,
                           known ? " \xc2\xb1 " : "", error, known ? " (95 %)" : "", unit);
}

/* A straight line through the points in the scales of the axes, with its slope as the label. */
static fin_status add_fit(const fini_curve *curve, bool drawn, fini_figure *figure,
                          fini_panel *panel, fin_error *err)
{
    int64_t n = 0;
    double *x = fini_figure_array(figure, curve), *y = fini_figure_array(figure, curve);
    if (figure->failed)
        return fini_figure_status(figure, err);
    double first = INFINITY, last = -INFINITY;
    for (int64_t i = 0; i < curve->count; i++) {
        if (!fini_scale_shows(&panel->x, curve->x[i]) || !fini_scale_shows(&panel->y, curve->y[i]))
            continue;
        x[n] = panel->x.log ? log10(curve->x[i]) : curve->x[i];
        y[n] = panel->y.log ? log10(curve->y[i]) : curve->y[i];
        first = fmin(first, x[n]);
        last = fmax(last, x[n]);
        n++;
    }
    if (n < 2 || !(first < last))
        return FIN_OK;
    fini_line line = fini_fit_line(x, y, n);
    if (!isfinite(line.slope) || !isfinite(line.intercept))
        return FIN_OK;
    const char *label = slope_label(curve, &line, n, drawn, figure, panel);
    fini_curve *fit = fini_figure_curve(figure, panel, label, FINI_MARK_DASHED, 2);
    if (!fit)
        return fini_figure_status(figure, err);
    fit->thin = true;
    fit->colour = curve->colour;
    for (int k = 0; k < 2; k++) {
        double at = k ? last : first, value = line.intercept + line.slope * at;
        fit->x[k] = panel->x.log ? pow(10, at) : at;
        fit->y[k] = panel->y.log ? pow(10, value) : value;
    }
    return fini_figure_status(figure, err);
}

/* The mean of n points at one x, those that are no finite numbers left out, as point `to`; returns
 * how many were left out. A single number keeps its own interval. */
static int64_t average_points(fini_curve *curve, int64_t from, int64_t n, int64_t to)
{
    int64_t known = 0, one = from;
    double mean = 0, squares = 0;
    for (int64_t i = from; i < from + n; i++) {
        if (!isfinite(curve->y[i]))
            continue;
        double off = curve->y[i] - mean; /* one pass (Welford), which no large sum can spoil */
        mean += off / (double)++known;
        squares += off * (curve->y[i] - mean);
        one = i;
    }
    curve->x[to] = curve->x[from];
    if (known > 1) {
        double variance = squares / (double)(known - 1) / (double)known;
        double half = fini_student_95(known - 1) * sqrt(variance);
        bool sure = isfinite(half);
        curve->y[to] = mean;
        curve->low[to] = sure ? mean - half : NAN;
        curve->high[to] = sure ? mean + half : NAN;
    } else {
        curve->y[to] = curve->y[one];
        curve->low[to] = curve->low[one];
        curve->high[to] = curve->high[one];
    }
    return known > 0 ? n - known : n - 1; /* a point that cannot be drawn is counted later */
}

/* Where a sorted curve has several points at one x, what the line wants done with them. */
static void treat_several(fini_curve *curve, fini_several several, fini_figure *figure)
{
    bool mean = several == FINI_SEVERAL_MEAN || several == FINI_SEVERAL_AUTO;
    int64_t to = 0, most = 1, left_out = 0;
    for (int64_t i = 0, n; i < curve->count; i += n) {
        for (n = 1; i + n < curve->count && curve->x[i + n] == curve->x[i];)
            n++;
        most = n > most ? n : most;
        if (mean)
            left_out += average_points(curve, i, n, to++);
    }
    if (mean)
        curve->count = to;
    if (most > 1 && several == FINI_SEVERAL_TELL)
        fini_figure_note(figure, "Several runs at one x: 'average: true' draws their mean.");
    if (most > 1 && several == FINI_SEVERAL_AUTO)
        fini_figure_note(figure, "Several runs at one x: their mean is drawn, with the 95 %% "
                                 "interval from their spread.");
    if (left_out > 0)
        fini_figure_note(figure, "%.200s: %lld number%s not finite and left out of the means.",
                         curve->label, (long long)left_out, left_out == 1 ? " is" : "s are");
}

static void note_unknown(const fini_curve *curve, fini_figure *figure)
{
    int64_t unknown = 0;
    for (int64_t i = 0; curve->low && i < curve->count; i++)
        unknown += !isnan(curve->y[i]) && isnan(curve->low[i]);
    if (unknown > 0)
        fini_figure_note(figure, "%.200s: the interval of %lld point%s is not known and not drawn.",
                         curve->label, (long long)unknown, unknown == 1 ? "" : "s");
}

/* The rows of one group (group < 0: all) as a curve. */
static fin_status add_curve(const fini_values *x, const fini_values *y, const int *which, int group,
                            const char *label, int colour, const fini_line_spec *line,
                            fini_figure *figure, fini_panel *panel, fin_error *err)
{
    int64_t count = 0, k = 0;
    for (int64_t i = 0; i < y->count; i++)
        count += group < 0 || which[i] == group;
    fini_curve *curve = fini_figure_curve(figure, panel, label, line->mark, count);
    if (curve && (line->band || line->several >= FINI_SEVERAL_MEAN)) {
        curve->low = fini_figure_array(figure, curve);
        curve->high = fini_figure_array(figure, curve);
    }
    if (figure->failed)
        return fini_figure_status(figure, err);
    for (int64_t i = 0; i < y->count; i++) {
        if (group >= 0 && which[i] != group)
            continue;
        curve->x[k] = x->value[i];
        curve->y[k] = y->value[i];
        if (curve->low) {
            curve->low[k] = y->low[i];
            curve->high[k] = y->high[i];
        }
        k++;
    }
    fin_status status = fini_curve_sort(curve, err);
    if (status)
        return status;
    treat_several(curve, line->several, figure);
    note_unknown(curve, figure);
    curve->colour = colour;
    if (line->mark == FINI_MARK_POINTS ||
        (line->mark == FINI_MARK_SOLID && curve->count <= SHAPES_UP_TO))
        curve->shape = colour % (FINI_DIAMOND + 1);
    return line->fit ? add_fit(curve, y->drawn, figure, panel, err) : FIN_OK;
}

/* A split that other lines of the figure have too gives the same value the same colour: found by
 * the label's end. */
static int split_colour(const fini_panel *panel, const char *end)
{
    size_t length = strlen(end);
    for (const fini_curve *c = panel->curves; c; c = c->next) {
        size_t size = strlen(c->label);
        if (size > length && strcmp(c->label + size - length, end) == 0 && !c->thin)
            return c->colour;
    }
    return next_colour(panel);
}

fin_status fini_lines_add(const fini_frame *frame, const char *x_formula,
                          const fini_line_spec *line, fini_figure *figure, fini_panel *panel,
                          fin_error *err)
{
    fini_values x, y;
    const char **texts = NULL;
    int groups = 0, *which = NULL;
    fin_status status = fini_spec_values(frame, x_formula, figure, &x, err);
    if (!status)
        status = fini_spec_values(frame, line->take, figure, &y, err);
    if (!status && line->split)
        status = fini_spec_groups(frame, line->split, figure, &texts, &groups, &which, err);
    if (status || fini_frame_rows(frame) == 0)
        return status;
    if (!line->split)
        return add_curve(&x, &y, NULL, -1, line->label, next_colour(panel), line, figure, panel,
                         err);
    for (int k = 0; k < groups && !status; k++) {
        bool number = texts[k][0] && strchr("+-.0123456789", texts[k][0]);
        const char *end = number
                              ? fini_figure_say(figure, ", %.64s = %.200s", line->split, texts[k])
                              : fini_figure_say(figure, ", %.200s", texts[k]);
        /* A label that only says what is split would say it twice. */
        bool named = line->label[0] && strcmp(line->label, line->split) != 0;
        const char *label = named ? fini_figure_say(figure, "%.200s%s", line->label, end) : end + 2;
        status = fini_figure_status(figure, err);
        if (!status)
            status = add_curve(&x, &y, which, k, label, split_colour(panel, end), line, figure,
                               panel, err);
    }
    return status;
}

static fin_status build_line(const fini_spec *spec, const fini_node *node, const char *x,
                             fini_figure *figure, fini_panel *panel, fin_error *err)
{
    fini_line_spec line;
    fini_frame *frame = NULL;
    fin_status status = read_line(spec, node, &line, err);
    if (!status)
        status = fini_spec_frame(spec, node, figure, &frame, err);
    if (!status) {
        fin_error why = {FIN_OK, ""};
        status = fini_lines_add(frame, x, &line, figure, panel, &why);
        if (status == FIN_ERR_ARGUMENT) { /* its runs do not have it: the other lines may */
            fini_figure_note(figure, "%.100s: %s", line.label, why.message);
            status = FIN_OK;
        } else if (status) {
            fini_fail(err, status, "%s", why.message);
        }
    }
    fini_frame_destroy(frame);
    return status;
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_node *references = fini_node_get(spec->node, "reference");
    const fini_node *take = fini_node_get(fini_node_get(spec->node, "x"), "take");
    fini_panel *panel = fini_figure_panel(figure, "");
    if (!panel)
        return fini_figure_status(figure, err);
    fini_spec_scale(spec, figure, "x", take->text, &panel->x);
    fini_spec_scale(spec, figure, "y",
                    lines->count == 1 ? fini_node_get(&lines->child[0], "take")->text : "",
                    &panel->y);
    fin_status status = FIN_OK;
    for (int i = 0; i < lines->count && !status; i++)
        status = build_line(spec, &lines->child[i], take->text, figure, panel, err);
    for (int i = 0; references && i < references->count && !status; i++) {
        const fini_node *node = &references->child[i];
        bool x = fini_node_get(node, "x");
        const char *label = "";
        double at = NAN;
        status = fini_node_number(spec->study->tree, node, x ? "x" : "y", NAN, &at, err);
        if (!status)
            status = fini_node_text(spec->study->tree, node, "label", "", &label, err);
        if (!status)
            fini_figure_reference(figure, panel, x ? FINI_AT_X : FINI_AT_Y, at, label);
    }
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"x", "y", "lines", "reference", NULL};
const fini_figure_kind fini_figure_lines = {"lines", keys, check, build};
