/* Heat map: a number as the colour of a cell, over two settings. Settings that are numbers have
 * their place on the axis; others stand side by side. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_block *block;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_axis(spec, block, "x", true, err);
    if (!status)
        status = fini_spec_setting(spec, block, fini_node_get(spec->node, "x"), "take", err);
    if (!status)
        status = fini_spec_axis(spec, block, "y", true, err);
    if (!status)
        status = fini_spec_setting(spec, block, fini_node_get(spec->node, "y"), "take", err);
    if (!status)
        status = fini_spec_axis(spec, block, "value", false, err);
    return status ? status : fini_spec_formula(spec, block, spec->node, "take", err);
}

typedef struct side {
    const char **texts;
    int count, *which;
    double *place; /* [count] */
} side;

/* The values of a setting and their places: their numbers, if all can be shown on the scale. */
static fin_status read_side(const fini_frame *frame, const char *setting, fini_figure *figure,
                            fini_scale *scale, side *s, fin_error *err)
{
    fin_status status =
        fini_spec_groups(frame, setting, figure, &s->texts, &s->count, &s->which, err);
    if (status)
        return status;
    s->place = fini_figure_take(figure, s->count, sizeof(double));
    if (!s->place)
        return fini_figure_status(figure, err);
    bool numbers = true;
    for (int i = 0; i < s->count && numbers; i++)
        numbers =
            fini_read_number(s->texts[i], &s->place[i]) && fini_scale_shows(scale, s->place[i]);
    if (numbers)
        return FIN_OK;
    scale->log = false;
    scale->category = s->texts;
    scale->categories = s->count;
    for (int i = 0; i < s->count; i++)
        s->place[i] = i;
    return FIN_OK;
}

static fin_status add_cells(const fini_values *values, const side *x, const side *y,
                            const char *label, fini_figure *figure, fini_panel *panel,
                            fin_error *err)
{
    int64_t count = (int64_t)x->count * y->count;
    fini_curve *cells = fini_figure_curve(figure, panel, label, FINI_MARK_CELLS, count);
    if (!cells || !(cells->value = fini_figure_array(figure, cells)))
        return fini_figure_status(figure, err);
    cells->quiet = true;
    cells->columns = x->count;
    cells->rows = y->count;
    panel->has_value = true;
    for (int64_t i = 0; i < count; i++) {
        cells->x[i] = x->place[i / y->count];
        cells->y[i] = y->place[i % y->count];
        cells->value[i] = NAN;
    }
    bool several = false;
    for (int64_t i = 0; i < values->count; i++) {
        if (x->which[i] < 0 || y->which[i] < 0)
            continue;
        double *value = &cells->value[(int64_t)x->which[i] * y->count + y->which[i]];
        several = several || !isnan(*value);
        if (isnan(*value))
            *value = values->value[i];
    }
    if (several)
        fini_figure_note(figure, "Several runs share a cell: the first one of each is shown.");
    return FIN_OK;
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const char *x_name = fini_node_get(fini_node_get(spec->node, "x"), "take")->text;
    const char *y_name = fini_node_get(fini_node_get(spec->node, "y"), "take")->text;
    const char *take = fini_node_get(spec->node, "take")->text;
    fini_frame *frame = NULL;
    fini_values values;
    side x, y;
    fini_panel *panel = fini_figure_panel(figure, "");
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_spec_frame(spec, NULL, figure, &frame, err);
    if (!status && fini_frame_rows(frame) > 0) {
        fini_spec_scale(spec, figure, "x", x_name, &panel->x);
        fini_spec_scale(spec, figure, "y", y_name, &panel->y);
        fini_spec_scale(spec, figure, "value", take, &panel->value);
        status = fini_spec_values(frame, take, figure, &values, err);
        if (!status)
            status = read_side(frame, x_name, figure, &panel->x, &x, err);
        if (!status)
            status = read_side(frame, y_name, figure, &panel->y, &y, err);
        if (!status)
            status = add_cells(&values, &x, &y, panel->value.label, figure, panel, err);
    }
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"x", "y", "take", "value", NULL};
const fini_figure_kind fini_figure_heat = {"heat", keys, check, build};
