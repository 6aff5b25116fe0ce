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

static void check(fini_spec *spec)
{
    static const char *const part_keys[] = {"take", "label", NULL};
    const fini_node *y = fini_node_get(spec->node, "y");
    fini_spec_axis(spec, "x", FINI_TAKE_SETTING);
    fini_spec_axis(spec, "y", FINI_TAKE_NONE);
    const fini_node *lines = fini_spec_list(
        spec, "lines", "the parts of a bar, such as [{take: signal}, {take: noise}]");
    if (is_log(spec) && (!fini_node_get(y, "limits") || lines->count > 1))
        FINI_ASK_FAIL(&spec->ask, y,
                      "bars on a log axis have one part and 'limits', such as [1e-18, 1]: they "
                      "stand on the lower one");
    for (int i = 0; i < lines->count; i++) {
        fini_ask_keys(&spec->ask, &lines->child[i], "a part of a bar", part_keys);
        fini_spec_formula(spec, fini_spec_block(spec, NULL), &lines->child[i], "take");
        fini_ask_text(&spec->ask, &lines->child[i], "label", "");
    }
}

typedef struct stack {
    double up[PLACES], down[PLACES];
} stack;

static void add_part(const fini_frame *frame, const fini_node *part, int colour, const int *which,
                     int places, stack *s, fini_figure *figure, fini_panel *panel)
{
    const fini_node *label = fini_node_get(part, "label");
    const char *take = fini_node_get(part, "take")->text;
    fini_values values = fini_spec_values(frame, take, figure);
    fini_curve *bars =
        fini_figure_curve(figure, panel, label ? label->text : take, FINI_MARK_BARS, places);
    if (!bars)
        return;
    bars->low = fini_figure_array(figure, bars);
    bars->high = fini_figure_array(figure, bars);
    if (figure->failed)
        return;
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
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const char *setting = fini_spec_take(spec, "x");
    stack s = {{0}, {0}};
    fini_panel *panel = fini_figure_panel(figure, "");
    const fini_frame *frame = panel ? fini_spec_frame(spec, NULL, figure) : NULL;
    if (!frame)
        return;
    fini_spec_scale(spec, figure, "x", setting, &panel->x);
    fini_spec_scale(spec, figure, "y", "", &panel->y);
    panel->x.log = false; /* makes no sense for a stack; nor does y's, for more than one part */
    fini_groups bars = fini_spec_groups(frame, setting, figure);
    panel->x.category = bars.texts;
    panel->x.categories = bars.count;
    if (fini_frame_rows(frame) > bars.count && bars.count > 0)
        fini_figure_note(figure, "Several runs share a bar: the first one of each is shown.");
    for (int i = 0; i < lines->count && !figure->failed && fini_frame_rows(frame) > 0; i++)
        add_part(frame, &lines->child[i], i, bars.which, bars.count, &s, figure, panel);
    double lowest = 0;
    for (int k = 0; k < PLACES; k++)
        lowest = fmin(lowest, s.down[k]);
    if (lowest == 0 && isnan(panel->y.low)) /* never a log axis */
        panel->y.low = 0;                   /* bars stand on the axis */
}

static const char *const keys[] = {"x", "y", "lines", NULL};
const fini_figure_kind fini_figure_bars = {"bars", keys, check, build};
