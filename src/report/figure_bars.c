/* Stacked bars: one for every value of a setting, whose parts are `lines`. Parts above 0 are
 * stacked upwards, those below downwards. Bars of a single part may have a log axis: they stand on
 * its lower limit then, which must be given because nothing else is the bottom of such an axis. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

enum { PLACES = 64 };

static bool is_log(const fini_spec *spec)
{
    const fini_node *scale = fini_node_get(fini_node_get(spec->node, "y"), "scale");
    return scale && scale->kind == FINI_TEXT && strcmp(scale->text, "log") == 0;
}

static fin_status check(const fini_spec *spec, fin_error *err)
{
    static const char *const part_keys[] = {"take", "label", NULL};
    const fini_tree *tree = spec->study->tree;
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_block *block;
    const char *text;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_axis(spec, block, "x", true, err);
    if (!status)
        status = fini_spec_setting(spec, block, fini_node_get(spec->node, "x"), "take", err);
    if (!status)
        status = fini_spec_axis(spec, block, "y", false, err);
    if (!status && is_log(spec) &&
        (!fini_node_get(fini_node_get(spec->node, "y"), "limits") ||
         (lines && lines->kind == FINI_LIST && lines->count > 1)))
        status = fini_node_fail(tree, fini_node_get(spec->node, "y"), err,
                                "bars on a log axis have one part and 'limits', such as "
                                "[1e-18, 1]: they stand on the lower one");
    if (!status && (!lines || lines->kind != FINI_LIST || lines->count == 0))
        status = fini_node_fail(tree, lines ? lines : spec->node, err,
                                "a figure of bars needs 'lines', the parts of a bar, such as "
                                "[{take: signal}, {take: noise}]");
    for (int i = 0; !status && i < lines->count; i++) {
        status = fini_node_keys(tree, &lines->child[i], "a part of a bar", part_keys, err);
        if (!status)
            status = fini_spec_formula(spec, block, &lines->child[i], "take", err);
        if (!status)
            status = fini_node_text(tree, &lines->child[i], "label", "", &text, err);
    }
    return status;
}

typedef struct stack {
    double up[PLACES], down[PLACES];
} stack;

static fin_status add_part(const fini_frame *frame, const fini_node *part, int colour,
                           const int *which, int places, stack *s, fini_figure *figure,
                           fini_panel *panel, fin_error *err)
{
    const fini_node *label = fini_node_get(part, "label");
    const char *take = fini_node_get(part, "take")->text;
    fini_values values;
    fin_status status = fini_spec_values(frame, take, figure, &values, err);
    fini_curve *bars = status ? NULL
                              : fini_figure_curve(figure, panel, label ? label->text : take,
                                                  FINI_MARK_BARS, places);
    if (!bars)
        return status ? status : fini_figure_status(figure, err);
    bars->low = fini_figure_array(figure, bars);
    bars->high = fini_figure_array(figure, bars);
    if (figure->failed)
        return fini_figure_status(figure, err);
    bars->colour = colour;
    for (int k = 0; k < places; k++) {
        bars->x[k] = k;
        bars->y[k] = bars->low[k] = bars->high[k] = NAN;
    }
    for (int64_t i = values.count - 1; i >= 0; i--) /* the first of several stays */
        if (which[i] >= 0 && which[i] < places)
            bars->y[which[i]] = values.value[i];
    for (int k = 0; k < places; k++) {
        double y = bars->y[k], *base = y < 0 ? &s->down[k] : &s->up[k];
        if (!isfinite(y))
            continue;
        if (panel->y.log) { /* what is below the axis is drawn as nothing, and its number is kept */
            bars->low[k] = panel->y.low;
            bars->high[k] = fmax(y, panel->y.low);
            continue;
        }
        bars->low[k] = fmin(*base, *base + y);
        bars->high[k] = fmax(*base, *base + y);
        *base += y;
    }
    return FIN_OK;
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const char *setting = fini_node_get(fini_node_get(spec->node, "x"), "take")->text;
    fini_frame *frame = NULL;
    stack s = {{0}, {0}};
    int *which = NULL;
    fini_panel *panel = fini_figure_panel(figure, "");
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_spec_frame(spec, NULL, figure, &frame, err);
    if (!status) {
        fini_spec_scale(spec, figure, "x", setting, &panel->x);
        fini_spec_scale(spec, figure, "y", "", &panel->y);
        panel->x.log = false; /* makes no sense for a stack; nor does y's, for more than one part */
        status = fini_spec_groups(frame, setting, figure, &panel->x.category, &panel->x.categories,
                                  &which, err);
    }
    if (!status && fini_frame_rows(frame) > panel->x.categories && panel->x.categories > 0)
        fini_figure_note(figure, "Several runs share a bar: the first one of each is shown.");
    for (int i = 0; i < lines->count && !status && fini_frame_rows(frame) > 0; i++)
        status = add_part(frame, &lines->child[i], i, which, panel->x.categories, &s, figure, panel,
                          err);
    double lowest = 0;
    for (int k = 0; k < PLACES; k++)
        lowest = fmin(lowest, s.down[k]);
    if (!status && lowest == 0 && isnan(panel->y.low)) /* never a log axis */
        panel->y.low = 0;                              /* bars stand on the axis */
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"x", "y", "lines", NULL};
const fini_figure_kind fini_figure_bars = {"bars", keys, check, build};
