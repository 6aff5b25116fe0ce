/* Quantiles of one engine against the other, for `law` runs: on the diagonal where both train by
 * the same law. A panel for every overlap. */
#include "report/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const overlaps[] = {"kappa", "nu", "theta", "eta", "rho"};
enum { OVERLAPS = sizeof overlaps / sizeof *overlaps, RUNS_MOST = 7 };

/* Which overlaps `of` asks for, as bits; all without it. */
static fin_status read_of(const fini_spec *spec, int *bits, fin_error *err)
{
    const fini_node *of = fini_node_get(spec->node, "of");
    *bits = of ? 0 : (1 << OVERLAPS) - 1;
    int count = !of ? 0 : of->kind == FINI_LIST ? of->count : 1;
    for (int i = 0; i < count; i++) {
        const fini_node *node = of->kind == FINI_LIST ? &of->child[i] : of;
        int k = 0;
        while (k < OVERLAPS && (node->kind != FINI_TEXT || strcmp(node->text, overlaps[k]) != 0))
            k++;
        if (k == OVERLAPS)
            return fini_node_fail(spec->study->tree, node, err,
                                  "'of' takes kappa, nu, theta, eta and rho, not '%.40s'",
                                  node->kind == FINI_TEXT ? node->text : "a list");
        *bits |= 1 << k;
    }
    return FIN_OK;
}

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_block *block;
    int bits;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_command(spec, block, "law", "quantiles", err);
    return status ? status : read_of(spec, &bits, err);
}

static fin_status add_row(const fini_frame *frame, int64_t row, const char *name, const char *label,
                          fini_figure *figure, fini_panel *panel, fin_error *err)
{
    char series[32];
    fini_matrix q;
    snprintf(series, sizeof series, "quantiles_%s", name);
    fin_status status = fini_spec_series(frame, row, series, 2, figure, &q, err);
    if (status || !q.values || q.rows != 2)
        return status;
    fini_curve *curve = fini_figure_curve(figure, panel, label, FINI_MARK_POINTS, q.columns);
    if (!curve)
        return fini_figure_status(figure, err);
    memcpy(curve->x, q.values, (size_t)q.columns * sizeof(double));
    memcpy(curve->y, q.values + q.columns, (size_t)q.columns * sizeof(double));
    curve->colour = (int)row;
    curve->shape = (int)row % (FINI_DIAMOND + 1);
    curve->quiet = !label[0];
    if (!label[0])
        curve->label = "quantiles";
    return FIN_OK;
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    fini_frame *frame = NULL;
    const fini_block *block = NULL;
    int bits = 0;
    fin_status status = read_of(spec, &bits, err);
    if (!status)
        status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_frame(spec, NULL, figure, &frame, err);
    int64_t rows = status ? 0 : fini_frame_rows(frame);
    if (rows > RUNS_MOST) {
        fini_figure_note(figure, "The first %d of %lld runs are shown.", (int)RUNS_MOST,
                         (long long)rows);
        rows = RUNS_MOST;
    }
    for (int k = 0; k < OVERLAPS && !status && rows > 0; k++) {
        if (!(bits >> k & 1))
            continue;
        fini_panel *panel = fini_figure_panel(figure, overlaps[k]);
        if (!panel)
            break;
        panel->square = true;
        panel->x.label = "reduced";
        panel->y.label = "ambient";
        fini_figure_reference(figure, panel, FINI_DIAGONAL, 0, "");
        for (int64_t row = 0; row < rows && !status; row++)
            status = add_row(frame, row, overlaps[k], fini_spec_row(frame, block, row, figure),
                             figure, panel, err);
    }
    if (!status && rows == 0)
        fini_figure_panel(figure, "");
    if (!status)
        status = fini_frame_status(frame, err);
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"of", NULL};
const fini_figure_kind fini_figure_quantiles = {"quantiles", keys, check, build};
