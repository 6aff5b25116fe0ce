/* Calibration: what was predicted against what was observed, with the 95 % interval of the latter
 * and the diagonal, on which a calibrated prediction lies; `diagonal` says what it stands for. */
#include "report/figure.h"

static void check(fini_spec *spec)
{
    fini_spec_axis(spec, "x", FINI_TAKE_FORMULA);
    fini_spec_axis(spec, "y", FINI_TAKE_FORMULA);
    fini_ask_text(&spec->ask, spec->node, "diagonal", "");
    fini_spec_setting(spec, fini_spec_block(spec, NULL), spec->node, "split");
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_node *split = fini_node_get(spec->node, "split");
    fini_line_spec line = {.x = fini_spec_take(spec, "x"),
                           .take = fini_spec_take(spec, "y"),
                           .label = split ? "" : "observed",
                           .split = split ? split->text : NULL,
                           .mark = FINI_MARK_POINTS,
                           .band = true,
                           .several = FINI_SEVERAL_KEEP};
    fini_panel *panel = fini_figure_panel(figure, "");
    const fini_frame *frame = panel ? fini_spec_frame(spec, NULL, figure) : NULL;
    if (!frame)
        return;
    fini_spec_scale(spec, figure, "x", "predicted", &panel->x);
    fini_spec_scale(spec, figure, "y", "observed", &panel->y);
    panel->square = true;
    fini_figure_reference(figure, panel, FINI_DIAGONAL, 0,
                          fini_ask_text(&spec->ask, spec->node, "diagonal", "calibrated"));
    fini_lines_add(frame, &line, figure, panel);
    if (!split && panel->curves)
        panel->curves->quiet = true; /* the axis says it already */
}

static const char *const keys[] = {"x", "y", "split", "diagonal", NULL};
const fini_figure_kind fini_figure_calibration = {"calibration", keys, check, build};
