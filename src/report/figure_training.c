/* Training: one run of `train` in four panels, as the experiments of the single-location paper are
 * shown: excess risk, |kappa| and |nu|, paths in the plane, distance to the manifold M. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of the series that the command train leaves: mean, quantiles. */
enum { MEAN, Q025, Q25, MEDIAN, Q75, Q975, ROWS };

static void check(fini_spec *spec)
{
    fini_spec_command(spec, "train", "training");
}

/* Mean with a band between two of the rows. */
static fini_curve *add_band(fini_figure *figure, fini_panel *panel, const char *label, int colour,
                            const fini_matrix *step, const fini_matrix *series, int low, int high)
{
    fini_curve *curve = fini_spec_curve(figure, panel, label, FINI_MARK_SOLID, step, series, MEAN);
    if (!curve)
        return NULL;
    curve->colour = colour;
    curve->low = fini_figure_array(figure, curve);
    curve->high = fini_figure_array(figure, curve);
    for (int64_t i = 0; i < curve->count && !figure->failed; i++) {
        curve->low[i] = series->values[low * series->columns + i];
        curve->high[i] = series->values[high * series->columns + i];
    }
    return curve;
}

static bool positive_somewhere(const fini_matrix *series)
{
    for (int64_t i = 0; i < series->columns; i++)
        if (series->values[MEAN * series->columns + i] > 0)
            return true;
    return false;
}

/* A report is read by people: so many points of a curve are enough. The store has all. */
enum { POINTS_MOST = 220 };

/* Keeps every stride-th column of a matrix, and the last. */
static void thin_out(fini_matrix *m, int64_t stride)
{
    if (!m->values || stride < 2 || m->columns < 2)
        return;
    int64_t kept = (m->columns - 2) / stride + 2, old = m->columns;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t i = 0; i < kept; i++)
            m->values[r * kept + i] = m->values[r * old + (i + 1 < kept ? i * stride : old - 1)];
    m->columns = kept;
}

typedef struct run {
    const fini_frame *frame;
    fini_figure *figure;
    fini_matrix step;
    int64_t stride;
} run;

/* ndim 2 with one row a quantile, else as it is. */
static fini_matrix series_of(const run *r, const char *name, bool quantiles)
{
    fini_matrix out = fini_spec_series(r->frame, 0, name, 2, r->figure);
    if (quantiles && out.values && out.rows != ROWS) {
        fini_figure_fail(r->figure, FIN_ERR_FORMAT, "the series '%s' has %lld rows, not %d", name,
                         (long long)out.rows, (int)ROWS);
        out.values = NULL;
    }
    thin_out(&out, r->stride);
    return out;
}

static fini_panel *panel_of(const run *r, const char *title, const char *x, const char *y)
{
    fini_panel *panel = fini_figure_panel(r->figure, title);
    if (panel) {
        panel->x.label = x;
        panel->y.label = y;
    }
    return panel;
}

/* One quantity on a logarithmic axis, with two bands. */
static void quantity_panel(const run *r, const char *name, const char *title, const char *label)
{
    fini_matrix series = series_of(r, name, true);
    fini_panel *panel = panel_of(r, title, "step", label);
    if (!panel || !series.values)
        return;
    panel->y.log = positive_somewhere(&series);
    add_band(r->figure, panel, "mean, 95 % of runs", 0, &r->step, &series, Q025, Q975);
    fini_curve *inner =
        add_band(r->figure, panel, "middle half of runs", 0, &r->step, &series, Q25, Q75);
    if (inner)
        inner->inner = true;
}

static void overlap_panel(const run *r)
{
    static const char *const names[] = {"abs_kappa", "abs_nu"};
    static const char *const labels[] = {"|kappa|", "|nu|"};
    fini_panel *panel = panel_of(r, "Alignment", "step", "mean, 95 % of runs");
    for (int k = 0; k < 2 && panel; k++) {
        fini_matrix series = series_of(r, names[k], true);
        fini_curve *curve =
            series.values ? add_band(r->figure, panel, labels[k], k, &r->step, &series, Q025, Q975)
                          : NULL;
        if (curve && k)
            curve->mark = FINI_MARK_DASHED;
    }
}

static void add_ends(const run *r, fini_panel *panel, const fini_matrix *kappa,
                     const fini_matrix *nu, int64_t lines, bool last)
{
    fini_curve *ends =
        fini_figure_curve(r->figure, panel, last ? "end" : "start", FINI_MARK_POINTS, lines);
    if (!ends)
        return;
    ends->shape = last ? FINI_CIRCLE : FINI_CROSS;
    ends->colour = last ? 1 : FINI_INK;
    for (int64_t p = 0; p < lines; p++) {
        int64_t at = p * kappa->columns + (last ? kappa->columns - 1 : 0);
        ends->x[p] = kappa->values[at];
        ends->y[p] = nu->values[at];
    }
}

static void path_panel(const run *r)
{
    fini_matrix kappa = series_of(r, "path_kappa", false), nu = series_of(r, "path_nu", false);
    fini_panel *panel = panel_of(r, "Paths", "kappa", "nu");
    if (!panel || !kappa.values || !nu.values || kappa.columns != nu.columns ||
        kappa.rows != nu.rows || kappa.columns == 0)
        return;
    panel->x.low = panel->y.low = -1.08;
    panel->x.high = panel->y.high = 1.08;
    int64_t lines = fini_spec_lines(r->figure, &kappa);
    for (int64_t p = 0; p < lines; p++) {
        fini_curve *path = fini_spec_curve(r->figure, panel,
                                           fini_figure_say(r->figure, "run %lld", (long long)p + 1),
                                           FINI_MARK_SOLID, &kappa, &nu, p);
        if (!path)
            return;
        path->quiet = path->thin = true;
        path->colour = 0;
    }
    add_ends(r, panel, &kappa, &nu, lines, false);
    add_ends(r, panel, &kappa, &nu, lines, true);
}

static void build(fini_spec *spec, fini_figure *figure)
{
    run r = {fini_spec_frame(spec, NULL, figure), figure, {NULL, 0, 0}, 1};
    if (!r.frame || fini_spec_runs(r.frame, 1, figure) == 0) {
        fini_figure_panel(figure, "");
        return;
    }
    r.step = fini_spec_series(r.frame, 0, "step", 1, figure);
    if (!r.step.values) {
        fini_figure_fail(figure, FIN_ERR_ARGUMENT, "the run has no series 'step'");
        return;
    }
    r.stride = (r.step.columns + POINTS_MOST - 1) / POINTS_MOST;
    thin_out(&r.step, r.stride);
    if (r.stride > 1)
        fini_figure_note(figure, "One logged step in %lld is drawn; the store has all.",
                         (long long)r.stride);
    quantity_panel(&r, "excess", "Excess risk", "risk - eps^2");
    overlap_panel(&r);
    path_panel(&r);
    quantity_panel(&r, "distance", "Distance to M", "distance");
}

static const char *const keys[] = {NULL};
const fini_figure_kind fini_figure_training = {"training", keys, check, build};
