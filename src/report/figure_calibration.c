/* Calibration: what was predicted against what was observed, with the 95 % interval of the latter
 * and the diagonal, on which a calibrated prediction lies; `diagonal` says what it stands for. */
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
        status = fini_spec_axis(spec, block, "y", true, err);
    const char *text;
    if (!status)
        status = fini_node_text(spec->study->tree, spec->node, "diagonal", "", &text, err);
    return status ? status : fini_spec_setting(spec, block, spec->node, "split", err);
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const fini_node *diagonal = fini_node_get(spec->node, "diagonal");
    const fini_node *split = fini_node_get(spec->node, "split");
    const char *x = fini_node_get(fini_node_get(spec->node, "x"), "take")->text;
    fini_line_spec line = {fini_node_get(fini_node_get(spec->node, "y"), "take")->text,
                           split ? "" : "observed",
                           split ? split->text : NULL,
                           FINI_MARK_POINTS,
                           true,
                           false,
                           FINI_SEVERAL_KEEP};
    fini_frame *frame = NULL;
    fini_panel *panel = fini_figure_panel(figure, "");
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = fini_spec_frame(spec, NULL, figure, &frame, err);
    if (!status) {
        fini_spec_scale(spec, figure, "x", "predicted", &panel->x);
        fini_spec_scale(spec, figure, "y", "observed", &panel->y);
        panel->square = true;
        fini_figure_reference(figure, panel, FINI_DIAGONAL, 0,
                              diagonal ? diagonal->text : "calibrated");
        status = fini_lines_add(frame, x, &line, figure, panel, err);
        if (!status && !split && panel->curves)
            panel->curves->quiet = true; /* the axis says it already */
    }
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"x", "y", "split", "diagonal", NULL};
const fini_figure_kind fini_figure_calibration = {"calibration", keys, check, build};
