/* Series of runs: arrays that a run has left, one against another. A line is a series (n), or every
 * row of one (rows, n) in one colour; `diagonal` says that both axes show the same. */
#include "report/figure.h"

#include <string.h>

enum { RUNS_MOST = 7, SHAPES_UP_TO = 40 };

/* ---- check ----------------------------------------------------------------------------------- */

/* Is child `key` of map the name of something that the block's command leaves? */
static void check_output(fini_spec *spec, const fini_block *block, const fini_node *map,
                         const char *key)
{
    enum { NAMES = 128 };
    const char *name = fini_ask_text(&spec->ask, map, key, NULL), *names[NAMES];
    int count = 0;
    for (const fin_output *o = block->command->outputs; o->name && count < NAMES; o++) {
        names[count++] = o->name;
        if (strcmp(o->name, name) == 0)
            return;
    }
    char hint[FIN_HINT];
    FINI_ASK_FAIL(&spec->ask, fini_node_get(map, key), "%s leaves no series '%.40s'%s",
                  block->command->name, name,
                  fin_hint(fin_nearest_name(name, names, count),
                           "; 'finetti study commands' lists them", hint));
}

static void check(fini_spec *spec)
{
    static const char *const keys[] = {"take",  "label", "style", "from",
                                       "where", "each",  "error", NULL};
    fini_spec_axis(spec, "x", FINI_TAKE_FORMULA);
    fini_spec_axis(spec, "y", FINI_TAKE_NONE);
    fini_ask_text(&spec->ask, spec->node, "diagonal", "");
    const fini_node *lines = fini_spec_list(spec, "lines", "a list such as [{take: mean}]");
    for (int i = 0; i < lines->count; i++) {
        const fini_node *line = &lines->child[i];
        fini_ask_keys(&spec->ask, line, "a line", keys);
        const fini_block *block = fini_spec_block(spec, line);
        check_output(spec, block, line, "take");
        check_output(spec, block, fini_node_get(spec->node, "x"), "take");
        if (fini_node_get(line, "error"))
            check_output(spec, block, line, "error");
        fini_ask_text(&spec->ask, line, "label", "");
        fini_spec_where(spec, block, line);
        fini_spec_style(spec, line);
    }
}

/* ---- build ----------------------------------------------------------------------------------- */

/* What all runs of a line share. */
typedef struct line_spec {
    const fini_frame *frame;
    const char *x, *y;
    fini_mark mark;
    const char *error; /* the series of standard errors, or "" */
} line_spec;

/* The 95 % interval around every point, on a log axis not below 0. */
static void add_band(fini_curve *curve, const fini_matrix *error, int64_t row, fini_figure *figure)
{
    if (!error->values || error->columns < curve->count || error->rows <= row)
        return;
    curve->low = fini_figure_array(figure, curve);
    curve->high = fini_figure_array(figure, curve);
    for (int64_t i = 0; i < curve->count && !figure->failed; i++) {
        double half = FINI_Z95 * error->values[row * error->columns + i];
        curve->low[i] = curve->y[i] - half;
        curve->high[i] = curve->y[i] + half;
    }
}

/* What lies outside of limits that are given is left out: a run may be much longer than what is shown of it. */
static void cut(fini_curve *curve, const fini_scale *x)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < curve->count; i++) {
        if (curve->x[i] < x->low || curve->x[i] > x->high) /* NaN: there are none */
            continue;
        curve->x[kept] = curve->x[i];
        if (curve->low) {
            curve->low[kept] = curve->low[i];
            curve->high[kept] = curve->high[i];
        }
        curve->y[kept++] = curve->y[i];
    }
    curve->count = kept;
}

static void add_run(const line_spec *line, int64_t run, const char *label, int colour,
                    fini_figure *figure, fini_panel *panel)
{
    fini_matrix x = fini_spec_series(line->frame, run, line->x, 0, figure);
    fini_matrix y = fini_spec_series(line->frame, run, line->y, 0, figure), error = {NULL, 0, 0};
    if (line->error[0])
        error = fini_spec_series(line->frame, run, line->error, 0, figure);
    if (figure->failed)
        return;
    if (!x.values || !y.values)
        fini_figure_note(figure, "A run has no series %.64s.", x.values ? line->y : line->x);
    int64_t lines = x.values && y.values ? fini_spec_lines(figure, &y) : 0;
    for (int64_t k = 0; k < lines; k++) {
        fini_curve *curve = fini_spec_curve(figure, panel, label, line->mark, &x, &y, k);
        if (!curve)
            return;
        add_band(curve, &error, k, figure);
        if (figure->failed)
            return;
        cut(curve, &panel->x);
        curve->colour = colour;
        curve->thin = y.rows > 1;
        curve->quiet = k > 0;
        curve->shape = line->mark == FINI_MARK_POINTS || curve->count <= SHAPES_UP_TO
                           ? colour % FINI_SHAPES
                           : -1;
    }
}

static void add_line(fini_spec *spec, const fini_node *node, int *colour, fini_figure *figure,
                     fini_panel *panel)
{
    const fini_block *block = fini_spec_block(spec, node);
    line_spec line = {fini_spec_frame(spec, node, figure), fini_spec_take(spec, "x"),
                      fini_ask_text(&spec->ask, node, "take", NULL), fini_spec_style(spec, node),
                      fini_ask_text(&spec->ask, node, "error", "")};
    const char *label = fini_ask_text(&spec->ask, node, "label", line.y);
    int64_t runs = line.frame ? fini_spec_runs(line.frame, RUNS_MOST, figure) : 0;
    for (int64_t run = 0; run < runs && !figure->failed; run++) {
        const char *own = fini_spec_row(line.frame, block, run, figure);
        const char *name =
            fini_figure_say(figure, "%.100s%s%.100s", label, own[0] ? ", " : "", own);
        add_run(&line, run, name, (*colour)++, figure, panel);
    }
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_node *lines = fini_node_get(spec->node, "lines");
    const fini_node *diagonal = fini_node_get(spec->node, "diagonal");
    fini_panel *panel = fini_figure_panel(figure, "");
    int colour = 0;
    if (!panel)
        return;
    fini_spec_scale(spec, figure, "x", fini_spec_take(spec, "x"), &panel->x);
    fini_spec_scale(spec, figure, "y",
                    lines->count == 1 ? fini_node_get(&lines->child[0], "take")->text : "",
                    &panel->y);
    if (diagonal) {
        panel->square = true;
        fini_figure_reference(figure, panel, FINI_DIAGONAL, 0, diagonal->text);
    }
    for (int i = 0; i < lines->count && !figure->failed; i++)
        add_line(spec, &lines->child[i], &colour, figure, panel);
}

static const char *const keys[] = {"x", "y", "lines", "diagonal", NULL};
const fini_figure_kind fini_figure_series = {"series", keys, check, build};
