/* Training: one run of `train` in four panels, as the experiments of the single-location paper are
 * shown: excess risk, |kappa| and |nu|, paths in the plane, distance to the manifold M. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of the series that job_train.c leaves: mean, quantiles. */
enum { MEAN, Q025, Q25, MEDIAN, Q75, Q975, ROWS };

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_block *block;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    return status ? status : fini_spec_command(spec, block, "train", "training", err);
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

static fin_status series_of(const run *r, const char *name, fini_matrix *out, fin_error *err)
{
    fin_status status = fini_spec_series(r->frame, 0, name, 2, r->figure, out, err);
    if (!status && out->values && out->rows != ROWS)
        status = fini_fail(err, FIN_ERR_FORMAT, "the series '%s' has %lld rows, not %d", name,
                           (long long)out->rows, (int)ROWS);
    if (!status)
        thin_out(out, r->stride);
    return status;
}

/* One quantity on a logarithmic axis, with two bands. */
static fin_status quantity_panel(const run *r, const char *name, const char *title,
                                 const char *label, fin_error *err)
{
    fini_matrix series;
    fin_status status = series_of(r, name, &series, err);
    fini_panel *panel = status ? NULL : fini_figure_panel(r->figure, title);
    if (!panel)
        return status ? status : fini_figure_status(r->figure, err);
    panel->x.label = "step";
    panel->y.label = label;
    if (!series.values)
        return FIN_OK;
    panel->y.log = positive_somewhere(&series);
    add_band(r->figure, panel, "mean, 95 % of runs", 0, &r->step, &series, Q025, Q975);
    fini_curve *inner =
        add_band(r->figure, panel, "middle half of runs", 0, &r->step, &series, Q25, Q75);
    if (inner)
        inner->inner = true;
    return fini_figure_status(r->figure, err);
}

static fin_status overlap_panel(const run *r, fin_error *err)
{
    static const char *const names[] = {"abs_kappa", "abs_nu"};
    static const char *const labels[] = {"|kappa|", "|nu|"};
    fini_panel *panel = fini_figure_panel(r->figure, "Alignment");
    fin_status status = fini_figure_status(r->figure, err);
    if (status)
        return status;
    panel->x.label = "step";
    panel->y.label = "mean, 95 % of runs";
    for (int k = 0; k < 2 && !status; k++) {
        fini_matrix series;
        status = series_of(r, names[k], &series, err);
        if (status || !series.values)
            continue;
        fini_curve *curve = add_band(r->figure, panel, labels[k], k, &r->step, &series, Q025, Q975);
        if (curve && k)
            curve->mark = FINI_MARK_DASHED;
        status = fini_figure_status(r->figure, err);
    }
    return status;
}

static fin_status add_ends(const run *r, fini_panel *panel, const fini_matrix *kappa,
                           const fini_matrix *nu, int64_t lines, bool last, fin_error *err)
{
    fini_curve *ends =
        fini_figure_curve(r->figure, panel, last ? "end" : "start", FINI_MARK_POINTS, lines);
    if (!ends)
        return fini_figure_status(r->figure, err);
    ends->shape = last ? FINI_CIRCLE : FINI_CROSS;
    ends->colour = last ? 1 : FINI_INK;
    for (int64_t p = 0; p < lines; p++) {
        int64_t at = p * kappa->columns + (last ? kappa->columns - 1 : 0);
        ends->x[p] = kappa->values[at];
        ends->y[p] = nu->values[at];
    }
    return FIN_OK;
}

static fin_status path_panel(const run *r, fin_error *err)
{
    fini_matrix kappa, nu;
    fin_status status = fini_spec_series(r->frame, 0, "path_kappa", 2, r->figure, &kappa, err);
    if (!status)
        status = fini_spec_series(r->frame, 0, "path_nu", 2, r->figure, &nu, err);
    if (!status) {
        thin_out(&kappa, r->stride);
        thin_out(&nu, r->stride);
    }
    fini_panel *panel = status ? NULL : fini_figure_panel(r->figure, "Paths");
    if (!panel)
        return status ? status : fini_figure_status(r->figure, err);
    panel->x.label = "kappa";
    panel->y.label = "nu";
    if (!kappa.values || !nu.values || kappa.columns != nu.columns || kappa.rows != nu.rows ||
        kappa.columns == 0)
        return FIN_OK;
    panel->x.low = panel->y.low = -1.08;
    panel->x.high = panel->y.high = 1.08;
    int64_t lines = fini_spec_lines(r->figure, &kappa);
    for (int64_t p = 0; p < lines; p++) {
        fini_curve *path = fini_spec_curve(r->figure, panel,
                                           fini_figure_say(r->figure, "run %lld", (long long)p + 1),
                                           FINI_MARK_SOLID, &kappa, &nu, p);
        if (!path)
            return fini_figure_status(r->figure, err);
        path->quiet = path->thin = true;
        path->colour = 0;
    }
    status = add_ends(r, panel, &kappa, &nu, lines, false, err);
    return status ? status : add_ends(r, panel, &kappa, &nu, lines, true, err);
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    fini_frame *frame = NULL;
    fin_status status = fini_spec_frame(spec, NULL, figure, &frame, err);
    run r = {frame, figure, {NULL, 0, 0}, 1};
    if (!status && fini_frame_rows(frame) == 0) {
        fini_figure_panel(figure, "");
    } else if (!status) {
        if (fini_frame_rows(frame) > 1)
            fini_figure_note(figure, "The first of %lld runs is shown.",
                             (long long)fini_frame_rows(frame));
        status = fini_spec_series(frame, 0, "step", 1, figure, &r.step, err);
        if (!status && !r.step.values)
            status = fini_fail(err, FIN_ERR_ARGUMENT, "the run has no series 'step'");
        if (!status) {
            r.stride = (r.step.columns + POINTS_MOST - 1) / POINTS_MOST;
            thin_out(&r.step, r.stride);
            if (r.stride > 1)
                fini_figure_note(figure, "One logged step in %lld is drawn; the store has all.",
                                 (long long)r.stride);
        }
        if (!status)
            status = quantity_panel(&r, "excess", "Excess risk", "risk - eps^2", err);
        if (!status)
            status = overlap_panel(&r, err);
        if (!status)
            status = path_panel(&r, err);
        if (!status)
            status = quantity_panel(&r, "distance", "Distance to M", "distance", err);
    }
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {NULL};
const fini_figure_kind fini_figure_training = {"training", keys, check, build};
