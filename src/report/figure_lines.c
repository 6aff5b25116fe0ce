/* Lines: numbers of runs against a setting or another number. Points are sorted by x; `split` makes
 * a line of every value of a setting, with one colour per value over all lines of the figure;
 * `average` makes one point, with its interval, of all that a line has at one x. */
#include "report/figure.h"
#include "study/claim.h"

#include <math.h>
#include <string.h>

enum { SHAPES_UP_TO = 40 }; /* lines with more points are drawn without their shapes */

/* ---- check ---------------------------------------------------------------------------------- */

static fini_line_spec read_line(fini_spec *spec, const fini_node *node)
{
    static const char *const keys[] = {"take", "label", "split", "style", "band", "fit", "average",
                                       "from", "where", "each",  "as",    "x",    NULL};
    fini_line_spec line = {0};
    fini_ask_keys(&spec->ask, node, "a line", keys);
    const fini_block *block = fini_spec_block(spec, node);
    line.take = fini_spec_formula(spec, block, node, "take");
    line.x = fini_node_get(node, "x") ? fini_spec_formula(spec, block, node, "x") : NULL;
    if (!line.x) /* the figure's, which the line's runs must know then */
        line.x = fini_spec_formula(spec, block, fini_node_get(spec->node, "x"), "take");
    fini_spec_setting(spec, block, node, "split");
    fini_spec_where(spec, block, node);
    line.mark = fini_spec_style(spec, node);
    line.band = fini_ask_flag(&spec->ask, node, "band", 0);
    line.fit = fini_ask_flag(&spec->ask, node, "fit", 0);
    line.several = fini_ask_flag(&spec->ask, node, "average", 0) ? FINI_SEVERAL_MEAN
                   : line.mark == FINI_MARK_POINTS               ? FINI_SEVERAL_KEEP
                                                                 : FINI_SEVERAL_TELL;
    line.label = fini_ask_text(&spec->ask, node, "label", line.take);
    line.split = fini_ask_text(&spec->ask, node, "split", "");
    line.split = line.split[0] ? line.split : NULL;
    line.as = fini_ask_text(&spec->ask, node, "as", "");
    return line;
}

typedef struct reference {
    bool x;
    double at;
    const char *label;
} reference;

static reference read_reference(fini_spec *spec, const fini_node *node)
{
    static const char *const keys[] = {"x", "y", "label", NULL};
    reference r = {.x = fini_node_get(node, "x") != NULL};
    fini_ask_keys(&spec->ask, node, "a reference line", keys);
    if (r.x == (fini_node_get(node, "y") != NULL))
        FINI_ASK_FAIL(&spec->ask, node, "a reference line has either 'x' or 'y'");
    r.at = fini_ask_number(&spec->ask, node, r.x ? "x" : "y", NAN);
    if (isinf(r.at))
        FINI_ASK_FAIL(&spec->ask, node, "a reference line must be at a finite number");
    r.label = fini_ask_text(&spec->ask, node, "label", "");
    return r;
}

static void check(fini_spec *spec)
{
    const fini_node *references = fini_node_get(spec->node, "reference");
    fini_spec_axis(spec, "x", FINI_TAKE_FORMULA);
    fini_spec_axis(spec, "y", FINI_TAKE_NONE);
    const fini_node *lines = fini_spec_list(spec, "lines", "a list such as [{take: risk}]");
    for (int i = 0; i < lines->count; i++)
        read_line(spec, &lines->child[i]);
    if (references && references->kind != FINI_LIST)
        FINI_ASK_FAIL(&spec->ask, references,
                      "'reference' must be a list, such as [{y: 0.5, label: limit}]");
    for (int i = 0; !spec->ask.status && references && i < references->count; i++)
        read_reference(spec, &references->child[i]);
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

/* "slope -1 +- 0.02"; where only one axis is logarithmic, of what and per what. Exact
 * numbers have no uncertainty, though they may be off their line. */
static const char *slope_label(const fini_line *line, int64_t n, bool drawn, fini_figure *figure,
                               const fini_panel *panel)
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
    if (known)
        fini_figure_note(figure, "\xc2\xb1 is half of the 95 %% interval of a slope.");
    return fini_figure_say(figure, "slope %s%s%s%s", slope, known ? " \xc2\xb1 " : "", error, unit);
}

/* A straight line through the points in the scales of the axes, with its slope as the label. */
static void add_fit(fini_curve *curve, bool drawn, fini_figure *figure, fini_panel *panel)
{
    int64_t n = 0;
    double *x = fini_figure_array(figure, curve), *y = fini_figure_array(figure, curve);
    if (figure->failed)
        return;
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
        return;
    fini_line line = fini_fit_line(x, y, n);
    if (!isfinite(line.slope) || !isfinite(line.intercept))
        return;
    curve->slope = slope_label(&line, n, drawn, figure, panel);
    const char *label = fini_figure_say(figure, "%.200s: %s", curve->label, curve->slope);
    fini_curve *fit = fini_figure_curve(figure, panel, label, FINI_MARK_DASHED, 2);
    if (!fit)
        return;
    fit->thin = fit->fit = true;
    fit->of = curve->of;
    fit->colour = curve->colour;
    for (int k = 0; k < 2; k++) {
        double at = k ? last : first, value = line.intercept + line.slope * at;
        fit->x[k] = panel->x.log ? pow(10, at) : at;
        fit->y[k] = panel->y.log ? pow(10, value) : value;
    }
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

/* What a curve is called, and which of several it is ("" if it is the only one). */
typedef struct naming {
    const char *label, *name, *of;
    int colour;
} naming;

/* The rows of one group (group < 0: all) as a curve. */
static void add_curve(const fini_values *x, const fini_values *y, const int *which, int group,
                      const naming *named, const fini_line_spec *line, fini_figure *figure,
                      fini_panel *panel)
{
    int64_t count = 0, k = 0;
    for (int64_t i = 0; i < y->count; i++)
        count += group < 0 || which[i] == group;
    fini_curve *curve = fini_figure_curve(figure, panel, named->label, line->mark, count);
    if (curve && (line->band || line->several >= FINI_SEVERAL_MEAN)) {
        curve->low = fini_figure_array(figure, curve);
        curve->high = fini_figure_array(figure, curve);
    }
    if (figure->failed)
        return;
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
    fini_curve_sort(figure, curve);
    treat_several(curve, line->several, figure);
    note_unknown(curve, figure);
    curve->colour = named->colour;
    curve->name = named->name;
    curve->of = named->of;
    if (line->mark == FINI_MARK_POINTS ||
        (line->mark == FINI_MARK_SOLID && curve->count <= SHAPES_UP_TO))
        curve->shape = named->colour % FINI_SHAPES;
    if (line->fit)
        add_fit(curve, y->drawn, figure, panel);
}

/* A split that other lines of the figure have too gives the same value the same colour. */
static int split_colour(const fini_panel *panel, const char *of)
{
    for (const fini_curve *c = panel->curves; c; c = c->next)
        if (strcmp(c->of, of) == 0 && !c->fit)
            return c->colour;
    return next_colour(panel);
}

/* "L = 16", "uniform", or as the study file has it: "ridge L^{}". */
static const char *value_label(const fini_line_spec *line, const char *text, fini_figure *figure)
{
    const char *braces = line->as ? strstr(line->as, "{}") : NULL;
    bool number = text[0] && strchr("+-.0123456789", text[0]);
    if (braces)
        return fini_figure_say(figure, "%.*s%.200s%.100s",
                               (int)(braces - line->as < 100 ? braces - line->as : 100), line->as,
                               text, braces + 2);
    if (line->as && line->as[0])
        return fini_figure_copy(figure, line->as);
    return number ? fini_figure_say(figure, "%.64s = %.200s", fini_symbol(line->split), text)
                  : fini_figure_copy(figure, text);
}

void fini_lines_add(const fini_frame *frame, const fini_line_spec *line, fini_figure *figure,
                    fini_panel *panel)
{
    fini_values x = fini_spec_values(frame, line->x, figure);
    fini_values y = fini_spec_values(frame, line->take, figure);
    fini_groups groups = {0};
    if (line->split)
        groups = fini_spec_groups(frame, line->split, figure);
    if (figure->failed || fini_frame_rows(frame) == 0)
        return;
    if (!line->split)
        add_curve(&x, &y, NULL, -1, &(naming){line->label, "", "", next_colour(panel)}, line,
                  figure, panel);
    for (int k = 0; k < groups.count && !figure->failed; k++) {
        naming named = {.of = value_label(line, groups.texts[k], figure)};
        /* A label that only says what is split would say it twice. */
        bool own = line->label[0] && strcmp(line->label, line->split) != 0;
        const char *end = fini_figure_say(figure, ", %.300s", named.of);
        named.name = own ? fini_figure_copy(figure, line->label) : "";
        if (figure->failed)
            return;
        named.label = own ? fini_figure_say(figure, "%.200s%s", line->label, end) : named.of;
        named.colour = split_colour(panel, named.of);
        add_curve(&x, &y, groups.which, k, &named, line, figure, panel);
    }
}

static void build_line(fini_spec *spec, const fini_node *node, fini_figure *figure,
                       fini_panel *panel)
{
    fini_line_spec line = read_line(spec, node);
    const fini_frame *frame = fini_spec_frame(spec, node, figure);
    if (frame)
        fini_lines_add(frame, &line, figure, panel);
    if (figure->trouble.status == FIN_ERR_ARGUMENT) { /* its runs do not have it: others may */
        fin_error why = figure->trouble;
        figure->failed = false;
        figure->trouble.status = FIN_OK;
        fini_figure_note(figure, "%.100s: %s", line.label, why.message);
    }
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_node *references = fini_node_get(spec->node, "reference");
    fini_panel *panel = fini_figure_panel(figure, "");
    if (!panel)
        return;
    fini_spec_scale(spec, figure, "x", fini_spec_take(spec, "x"), &panel->x);
    fini_spec_scale(spec, figure, "y",
                    lines->count == 1 ? fini_node_get(&lines->child[0], "take")->text : "",
                    &panel->y);
    for (int i = 0; i < lines->count && !figure->failed; i++)
        build_line(spec, &lines->child[i], figure, panel);
    for (int i = 0; references && i < references->count; i++) {
        reference r = read_reference(spec, &references->child[i]);
        fini_figure_reference(figure, panel, r.x ? FINI_AT_X : FINI_AT_Y, r.at, r.label);
    }
}

static const char *const keys[] = {"x", "y", "lines", "reference", NULL};
const fini_figure_kind fini_figure_lines = {"lines", keys, check, build};
