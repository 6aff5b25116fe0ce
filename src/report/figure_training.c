/* Training: runs of `train` in four panels each, as the experiments of the single-location paper are shown: excess risk, |kappa| and
 * |nu|, paths in the plane, distance to the manifold M. `columns` puts several blocks beside each other.
 *
 * Runs end in one of a few places, so that a mean with a band would show where no run is: single runs are drawn as thin lines,
 * coloured by where they ended, and the legend says how many of all did. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where a run ended: by the number of end_status (1: converged) and that of end_place (2: swapped, 3: diverged). */
enum { OTHER, FOUND, SWAPPED, DIVERGED, PLACES };
static const struct {
    const char *ended;
    int colour;
} places[PLACES] = {[OTHER] = {"neither", 3},
                    [FOUND] = {"found k*, v*", 0},
                    [SWAPPED] = {"swapped", 1},
                    [DIVERGED] = {"diverged", 6}};

/* A report is read by people: so many points of a line are enough. The store has all. */
enum { POINTS_MOST = 24, COLUMNS_MOST = 8 };

static void check(fini_spec *spec)
{
    static const char *const keys[] = {"from", "where", "title", NULL};
    const fini_node *columns = fini_node_get(spec->node, "columns");
    if (!columns) {
        fini_spec_command(spec, "train", "training");
        return;
    }
    if (columns->kind != FINI_LIST || columns->count < 1 || columns->count > COLUMNS_MOST)
        FINI_ASK_FAIL(&spec->ask, columns,
                      "'columns' is a list of 1 to %d blocks, such as [{from: runs, title: Runs}]",
                      (int)COLUMNS_MOST);
    for (int i = 0; !spec->ask.status && i < columns->count; i++) {
        const fini_node *column = &columns->child[i];
        fini_ask_keys(&spec->ask, column, "a column", keys);
        const fini_block *block = fini_spec_block(spec, column);
        fini_ask_text(&spec->ask, column, "title", block->id);
        fini_spec_where(spec, block, column);
        if (strcmp(block->command->name, "train") != 0)
            FINI_ASK_FAIL(
                &spec->ask, column,
                "a figure of kind training shows runs of the command train, and block %.64s is %s",
                block->id, block->command->name);
    }
}

/* ---- one run of the command: a number of paths ------------------------------------------------- */

typedef struct run {
    const fini_frame *frame;
    fini_figure *figure;
    const char *title; /* of the column; "" alone */
    fini_matrix step, kappa, nu, excess, distance, place, status;
    int64_t paths;
    const char *counts[PLACES]; /* "found k*, v*: 1941 of 4000" */
} run;

static fini_matrix path_of(const run *r, const char *name)
{
    fini_matrix out = fini_spec_series(r->frame, 0, name, 2, r->figure);
    fini_matrix_thin(&out, POINTS_MOST);
    return out;
}

static int place_of(const run *r, int64_t path)
{
    double place = path < r->place.columns ? r->place.values[path] : OTHER;
    bool found = path < r->status.columns && r->status.values[path] == 1;
    return found ? FOUND : place == SWAPPED || place == DIVERGED ? (int)place : OTHER;
}

static void read_places(run *r)
{
    long long counts[PLACES] = {0}, all = r->place.columns;
    for (int64_t i = 0; i < all; i++)
        counts[place_of(r, i)]++;
    for (int p = 0; p < PLACES; p++)
        r->counts[p] = !counts[p] ? ""
                                  : fini_figure_say(r->figure, "%s: %lld of %lld", places[p].ended,
                                                    counts[p], all);
}

/* false: there is nothing to draw. */
static bool read_run(run *r)
{
    if (!r->frame || fini_spec_runs(r->frame, 1, r->figure) == 0)
        return false;
    r->step = fini_spec_series(r->frame, 0, "step", 1, r->figure);
    if (!r->step.values) {
        fini_figure_fail(r->figure, FIN_ERR_ARGUMENT, "the run has no series 'step'");
        return false;
    }
    int64_t logged = r->step.columns;
    fini_matrix_thin(&r->step, POINTS_MOST);
    r->kappa = path_of(r, "path_kappa");
    r->nu = path_of(r, "path_nu");
    r->excess = path_of(r, "path_excess");
    r->distance = path_of(r, "path_distance");
    r->place = fini_spec_series(r->frame, 0, "end_place", 1, r->figure);
    r->status = fini_spec_series(r->frame, 0, "end_status", 1, r->figure);
    if (!r->kappa.values || !r->nu.values || !r->place.values || !r->status.values ||
        r->kappa.columns != r->nu.columns || r->kappa.rows != r->nu.rows || r->figure->failed)
        return false;
    r->paths = fini_spec_lines(r->figure, &r->kappa);
    read_places(r);
    if (r->step.columns < logged)
        fini_figure_note(r->figure, "Not every logged step is drawn; the store has all.");
    if (r->place.columns > r->paths)
        fini_figure_note(r->figure, "Lines are the first %lld runs; the legend counts all.",
                         (long long)r->paths);
    return true;
}

/* ---- panels ----------------------------------------------------------------------------------- */

static fini_panel *panel_of(const run *r, const char *title, const char *x, const char *y)
{
    fini_panel *panel = fini_figure_panel(
        r->figure, r->title[0] ? fini_figure_say(r->figure, "%.100s", r->title) : title);
    if (panel) {
        panel->x.label = x;
        panel->y.label = y;
        panel->part = r->title[0] ? title : "";
    }
    return panel;
}

static bool positive_somewhere(const fini_matrix *m)
{
    for (int64_t i = 0; i < m->rows * m->columns; i++)
        if (m->values[i] > 0)
            return true;
    return false;
}

/* A line for every path, in the colour of where it ended; the legend has each place once if `named`. */
static void add_paths(const run *r, fini_panel *panel, const fini_matrix *x, const fini_matrix *y,
                      fini_mark mark, bool named)
{
    bool seen[PLACES] = {false};
    for (int64_t p = 0; p < r->paths && p < y->rows; p++) {
        int place = place_of(r, p);
        fini_curve *curve = fini_spec_curve(r->figure, panel, places[place].ended, mark, x, y, p);
        if (!curve)
            return;
        curve->name = r->counts[place];
        curve->colour = places[place].colour;
        curve->thin = true;
        curve->quiet = !named || seen[place];
        seen[place] = true;
    }
    for (int place = 0; place < PLACES && named;
         place++) { /* where none of the few ended, but others */
        fini_curve *none = seen[place] || !r->counts[place][0]
                               ? NULL
                               : fini_figure_curve(r->figure, panel, places[place].ended, mark, 0);
        if (!none)
            continue;
        none->colour = places[place].colour;
        none->thin = true;
        none->name = r->counts[place];
    }
}

static void quantity_panel(const run *r, const fini_matrix *m, const char *title, const char *label,
                           bool named)
{
    fini_panel *panel = panel_of(r, title, "step", label);
    if (!panel || !m->values)
        return;
    panel->y.log = positive_somewhere(m);
    add_paths(r, panel, &r->step, m, FINI_MARK_SOLID, named);
}

static void absolute(fini_matrix *m)
{
    for (int64_t i = 0; i < m->rows * m->columns; i++)
        m->values[i] = fabs(m->values[i]);
}

static fini_matrix copy_of(const run *r, const fini_matrix *from)
{
    fini_matrix m = *from;
    m.values = fini_figure_take(r->figure, m.rows * m.columns, sizeof(double));
    if (m.values)
        memcpy(m.values, from->values, (size_t)(m.rows * m.columns) * sizeof(double));
    return m;
}

/* Off M by less than doubles can tell from 0: drawn at that, and said. */
static void distance_panel(const run *r)
{
    const double rounding = 1e-16;
    fini_matrix m = copy_of(r, &r->distance);
    bool some = m.values && positive_somewhere(&m), below = false;
    for (int64_t i = 0; some && i < m.rows * m.columns; i++)
        if (m.values[i] < rounding) {
            m.values[i] = rounding;
            below = true;
        }
    if (below)
        fini_figure_note(r->figure, "Distances below 1e-16 are below rounding and drawn there.");
    quantity_panel(r, &m, "Distance to M", "distance to M", false);
}

static void overlap_panel(const run *r)
{
    fini_matrix kappa = copy_of(r, &r->kappa), nu = copy_of(r, &r->nu);
    fini_panel *panel = panel_of(r, "Alignment", "step", "|κ| solid, |ν| dashed");
    if (!panel || !kappa.values || !nu.values)
        return;
    absolute(&kappa);
    absolute(&nu);
    panel->y.low = 0;
    panel->y.high = 1.04;
    add_paths(r, panel, &r->step, &kappa, FINI_MARK_SOLID, false);
    add_paths(r, panel, &r->step, &nu, FINI_MARK_DASHED, false);
}

static void add_ends(const run *r, fini_panel *panel, bool last)
{
    fini_curve *ends =
        fini_figure_curve(r->figure, panel, last ? "end" : "start", FINI_MARK_POINTS, r->paths);
    if (!ends)
        return;
    ends->shape = last ? FINI_CIRCLE : FINI_CROSS;
    ends->colour = FINI_INK;
    for (int64_t p = 0; p < r->paths; p++) {
        int64_t at = p * r->kappa.columns + (last ? r->kappa.columns - 1 : 0);
        ends->x[p] = r->kappa.values[at];
        ends->y[p] = r->nu.values[at];
    }
}

static void path_panel(const run *r)
{
    fini_panel *panel = panel_of(r, "Paths", "κ = k·k*", "ν = v·v*");
    if (!panel || r->kappa.columns == 0)
        return;
    panel->x.low = panel->y.low = -1.08;
    panel->x.high = panel->y.high = 1.08;
    add_paths(r, panel, &r->kappa, &r->nu, FINI_MARK_SOLID, false);
    add_ends(r, panel, false);
    add_ends(r, panel, true);
}

enum { QUANTITIES = 4 };

static void add_panel(const run *r, int which)
{
    if (which == 0)
        quantity_panel(r, &r->excess, "Excess risk", "risk - ε²", true);
    else if (which == 1)
        overlap_panel(r);
    else if (which == 2)
        distance_panel(r);
    else
        path_panel(r);
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_node *columns = fini_node_get(spec->node, "columns");
    run runs[COLUMNS_MOST] = {{0}};
    bool known[COLUMNS_MOST] = {false}, any = false;
    int count = columns ? columns->count : 1;
    for (int i = 0; i < count; i++) {
        const fini_node *column = columns ? &columns->child[i] : NULL;
        const fini_node *title = fini_node_get(column, "title");
        runs[i].figure = figure;
        runs[i].frame = fini_spec_frame(spec, column, figure);
        runs[i].title = !columns ? "" : title ? title->text : fini_spec_block(spec, column)->id;
        known[i] = read_run(&runs[i]);
        any = any || known[i];
    }
    figure->columns = columns ? count : 0;
    for (int which = 0; any && which < QUANTITIES; which++)
        for (int i = 0; i < count && !figure->failed; i++) {
            if (known[i])
                add_panel(&runs[i], which);
            else
                fini_figure_panel(figure, runs[i].title);
        }
    if (!any)
        fini_figure_panel(figure, "");
}

static const char *const keys[] = {"columns", NULL};
const fini_figure_kind fini_figure_training = {"training", keys, check, build};
