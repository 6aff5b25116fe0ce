/* Heat map: a number as the colour of a cell, over two settings. Settings that are numbers have
 * their place on the axis; others stand side by side. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

static void check(fini_spec *spec)
{
    fini_spec_axis(spec, "x", FINI_TAKE_SETTING);
    fini_spec_axis(spec, "y", FINI_TAKE_SETTING);
    fini_spec_axis(spec, "value", FINI_TAKE_NONE);
    fini_spec_formula(spec, fini_spec_block(spec, NULL), spec->node, "take");
}

typedef struct side {
    fini_groups groups;
    double *place; /* [groups.count] */
} side;

/* The values of a setting and their places: their numbers, if all can be shown on the scale. */
static side read_side(const fini_frame *frame, const char *setting, fini_figure *figure,
                      fini_scale *scale)
{
    side s = {.groups = fini_spec_groups(frame, setting, figure)};
    const fini_groups *g = &s.groups;
    s.place = fini_figure_take(figure, g->count, sizeof(double));
    if (!s.place)
        return s;
    bool numbers = true;
    for (int i = 0; i < g->count && numbers; i++)
        numbers = fini_read_number(g->texts[i], &s.place[i]) && fini_scale_shows(scale, s.place[i]);
    if (numbers)
        return s;
    scale->log = false;
    scale->category = g->texts;
    scale->categories = g->count;
    for (int i = 0; i < g->count; i++)
        s.place[i] = i;
    return s;
}

static void add_cells(const fini_values *values, const side *x, const side *y, const char *label,
                      fini_figure *figure, fini_panel *panel)
{
    int64_t count = (int64_t)x->groups.count * y->groups.count;
    fini_curve *cells = fini_figure_curve(figure, panel, label, FINI_MARK_CELLS, count);
    if (!cells || !(cells->value = fini_figure_array(figure, cells)))
        return;
    cells->quiet = true;
    cells->columns = x->groups.count;
    cells->rows = y->groups.count;
    panel->has_value = true;
    for (int64_t i = 0; i < count; i++) {
        cells->x[i] = x->place[i / y->groups.count];
        cells->y[i] = y->place[i % y->groups.count];
        cells->value[i] = NAN;
    }
    bool several = false;
    for (int64_t i = 0; i < values->count; i++) {
        if (x->groups.which[i] < 0 || y->groups.which[i] < 0)
            continue;
        double *value =
            &cells->value[(int64_t)x->groups.which[i] * y->groups.count + y->groups.which[i]];
        several = several || !isnan(*value);
        if (isnan(*value))
            *value = values->value[i];
    }
    if (several)
        fini_figure_note(figure, "Several runs share a cell: the first one of each is shown.");
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const char *x_name = fini_spec_take(spec, "x"), *y_name = fini_spec_take(spec, "y");
    const char *take = fini_ask_text(&spec->ask, spec->node, "take", NULL);
    fini_panel *panel = fini_figure_panel(figure, "");
    const fini_frame *frame = panel ? fini_spec_frame(spec, NULL, figure) : NULL;
    if (!frame || fini_frame_rows(frame) == 0)
        return;
    fini_spec_scale(spec, figure, "x", x_name, &panel->x);
    fini_spec_scale(spec, figure, "y", y_name, &panel->y);
    fini_spec_scale(spec, figure, "value", take, &panel->value);
    fini_values values = fini_spec_values(frame, take, figure);
    side x = read_side(frame, x_name, figure, &panel->x);
    side y = read_side(frame, y_name, figure, &panel->y);
    if (!figure->failed)
        add_cells(&values, &x, &y, panel->value.label, figure, panel);
}

static const char *const keys[] = {"x", "y", "take", "value", NULL};
const fini_figure_kind fini_figure_heat = {"heat", keys, check, build};
