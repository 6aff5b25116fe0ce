/* Series of runs: arrays that a run has left, one against another. A line is a series (n), or every
 * row of one (rows, n) in one colour; `diagonal` says that both axes show the same. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

enum { RUNS_MOST = 7, SHAPES_UP_TO = 40 };

/* ---- check ----------------------------------------------------------------------------------- */

/* Is child `key` of map the name of something that the block's command leaves? */
static fin_status check_output(const fini_spec *spec, const fini_block *block, const fini_node *map,
                               const char *key, fin_error *err)
{
    enum { NAMES = 128 };
    const char *name, *names[NAMES];
    int count = 0;
    fin_status status = fini_node_text(spec->study->tree, map, key, NULL, &name, err);
    if (status)
        return status;
    for (const fin_output *o = block->command->outputs; o->name && count < NAMES; o++) {
        names[count++] = o->name;
        if (strcmp(o->name, name) == 0)
            return FIN_OK;
    }
    const char *near = fin_nearest_name(name, names, count);
    return fini_node_fail(spec->study->tree, fini_node_get(map, key), err,
                          "%s leaves no series '%.40s'%s", block->command->name, name,
                          fini_did_you_mean(near, "; 'finetti study commands' lists them"));
}

static fin_status read_style(const fini_tree *tree, const fini_node *line, fini_mark *mark,
                             fin_error *err)
{
    const char *text;
    fin_status status = fini_node_text(tree, line, "style", "solid", &text, err);
    for (int i = 0; i < FINI_MARK_STYLES && !status; i++) {
        *mark = (fini_mark)i;
        if (strcmp(text, fini_mark_name(*mark)) == 0)
            return FIN_OK;
    }
    return status ? status
                  : fini_node_fail(tree, fini_node_get(line, "style"), err,
                                   "a style is solid, dashed, dotted or points, not '%.40s'", text);
}

static fin_status check_line(const fini_spec *spec, const fini_node *line, fin_error *err)
{
    static const char *const keys[] = {"take", "label", "style", "from", "where", "each", NULL};
    const fini_tree *tree = spec->study->tree;
    const fini_block *block = NULL;
    const char *text;
    fini_mark mark;
    fin_status status = fini_node_keys(tree, line, "a line", keys, err);
    if (!status)
        status = fini_spec_block(spec, line, &block, err);
    if (!status)
        status = check_output(spec, block, line, "take", err);
    if (!status)
        status = check_output(spec, block, fini_node_get(spec->node, "x"), "take", err);
    if (!status)
        status = fini_node_text(tree, line, "label", "", &text, err);
    if (!status)
        status = fini_spec_where(spec, block, line, err);
    return status ? status : read_style(tree, line, &mark, err);
}

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_tree *tree = spec->study->tree;
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_block *block;
    const char *text;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_axis(spec, block, "x", true, err);
    if (!status)
        status = fini_spec_axis(spec, block, "y", false, err);
    if (!status)
        status = fini_node_text(tree, spec->node, "diagonal", "", &text, err);
    if (!status && (!lines || lines->kind != FINI_LIST || lines->count == 0))
        status = fini_node_fail(tree, lines ? lines : spec->node, err,
                                "a figure of series needs 'lines', a list such as [{take: mean}]");
    for (int i = 0; !status && i < lines->count; i++)
        status = check_line(spec, &lines->child[i], err);
    return status;
}

/* ---- build ----------------------------------------------------------------------------------- */

static fin_status read_any(const fini_frame *frame, int64_t row, const char *name,
                           fini_figure *figure, fini_matrix *matrix, fin_error *err)
{
    fin_status status = fini_spec_series(frame, row, name, 1, figure, matrix, err);
    return status == FIN_ERR_FORMAT ? fini_spec_series(frame, row, name, 2, figure, matrix, err)
                                    : status;
}

static fin_status add_run(const fini_frame *frame, int64_t run, const char *x_name,
                          const char *y_name, const char *label, fini_mark mark, int colour,
                          fini_figure *figure, fini_panel *panel, fin_error *err)
{
    fini_matrix x, y;
    fin_error ignored;
    fin_status status = read_any(frame, run, x_name, figure, &x, &ignored);
    if (!status)
        status = read_any(frame, run, y_name, figure, &y, &ignored);
    if (status)
        return fini_fail(err, status, "%s", ignored.message);
    if (!x.values || !y.values)
        fini_figure_note(figure, "A run has no series %.64s.", x.values ? y_name : x_name);
    int64_t lines = x.values && y.values ? fini_spec_lines(figure, &y) : 0;
    for (int64_t k = 0; k < lines; k++) {
        fini_curve *curve = fini_spec_curve(figure, panel, label, mark, &x, &y, k);
        if (!curve)
            break;
        curve->colour = colour;
        curve->thin = y.rows > 1;
        curve->quiet = k > 0;
        curve->shape = mark == FINI_MARK_POINTS || curve->count <= SHAPES_UP_TO
                           ? colour % (FINI_DIAMOND + 1)
                           : -1;
    }
    return fini_figure_status(figure, err);
}

static fin_status add_line(const fini_spec *spec, const fini_node *line, int *colour,
                           fini_figure *figure, fini_panel *panel, fin_error *err)
{
    const fini_node *label = fini_node_get(line, "label");
    const char *x = fini_node_get(fini_node_get(spec->node, "x"), "take")->text;
    const char *y = fini_node_get(line, "take")->text;
    const fini_block *block = NULL;
    fini_frame *frame = NULL;
    fini_mark mark = FINI_MARK_SOLID;
    fin_status status = fini_spec_block(spec, line, &block, err);
    if (!status)
        status = read_style(spec->study->tree, line, &mark, err);
    if (!status)
        status = fini_spec_frame(spec, line, figure, &frame, err);
    int64_t runs = status ? 0 : fini_frame_rows(frame);
    if (runs > RUNS_MOST)
        fini_figure_note(figure, "The first %d of %lld runs are shown.", (int)RUNS_MOST,
                         (long long)runs);
    for (int64_t run = 0; run < runs && run < RUNS_MOST && !status; run++) {
        const char *own = fini_spec_row(frame, block, run, figure);
        const char *name = fini_figure_say(figure, "%.100s%s%.100s", label ? label->text : y,
                                           own[0] ? ", " : "", own);
        status = fini_figure_status(figure, err);
        if (!status)
            status = add_run(frame, run, x, y, name, mark, (*colour)++, figure, panel, err);
    }
    fini_frame_destroy(frame);
    return status;
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_node *diagonal = fini_node_get(spec->node, "diagonal");
    const fini_node *x = fini_node_get(fini_node_get(spec->node, "x"), "take");
    fini_panel *panel = fini_figure_panel(figure, "");
    int colour = 0;
    if (!panel)
        return fini_figure_status(figure, err);
    fini_spec_scale(spec, figure, "x", x->text, &panel->x);
    fini_spec_scale(spec, figure, "y",
                    lines->count == 1 ? fini_node_get(&lines->child[0], "take")->text : "",
                    &panel->y);
    if (diagonal) {
        panel->square = true;
        fini_figure_reference(figure, panel, FINI_DIAGONAL, 0, diagonal->text);
    }
    fin_status status = FIN_OK;
    for (int i = 0; i < lines->count && !status; i++)
        status = add_line(spec, &lines->child[i], &colour, figure, panel, err);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"x", "y", "lines", "diagonal", NULL};
const fini_figure_kind fini_figure_series = {"series", keys, check, build};
