/* Quantiles of one engine against the other, for `law` runs: on the diagonal where both train by
 * the same law. A panel for every overlap. */
#include "report/figure.h"

#include <stdio.h>
#include <string.h>

static const char *const overlaps[] = {"kappa", "nu", "theta", "eta", "rho"};
enum { OVERLAPS = sizeof overlaps / sizeof *overlaps, RUNS_MOST = 7 };

/* Which overlaps `of` asks for, as bits; all without it. */
static int read_of(fini_spec *spec)
{
    const fini_node *of = fini_node_get(spec->node, "of");
    int bits = of ? 0 : (1 << OVERLAPS) - 1, count = !of                     ? 0
                                                     : of->kind == FINI_LIST ? of->count
                                                                             : 1;
    for (int i = 0; i < count; i++) {
        const fini_node *node = of->kind == FINI_LIST ? &of->child[i] : of;
        int k = 0;
        while (k < OVERLAPS && (node->kind != FINI_TEXT || strcmp(node->text, overlaps[k]) != 0))
            k++;
        if (k == OVERLAPS)
            FINI_ASK_FAIL(&spec->ask, node, "'of' takes kappa, nu, theta, eta and rho, not '%.40s'",
                          node->kind == FINI_TEXT ? node->text : "a list");
        bits |= 1 << k;
    }
    return bits;
}

static void check(fini_spec *spec)
{
    fini_spec_command(spec, "law", "quantiles");
    read_of(spec);
}

static void add_row(const fini_frame *frame, int64_t row, const char *name, const char *label,
                    fini_figure *figure, fini_panel *panel)
{
    char series[32];
    snprintf(series, sizeof series, "quantiles_%s", name);
    fini_matrix q = fini_spec_series(frame, row, series, 2, figure);
    if (!q.values || q.rows != 2)
        return;
    fini_curve *curve = fini_figure_curve(figure, panel, label, FINI_MARK_POINTS, q.columns);
    if (!curve)
        return;
    memcpy(curve->x, q.values, (size_t)q.columns * sizeof(double));
    memcpy(curve->y, q.values + q.columns, (size_t)q.columns * sizeof(double));
    curve->colour = (int)row;
    curve->shape = (int)row % FINI_SHAPES;
    curve->quiet = !label[0];
    if (!label[0])
        curve->label = "quantiles";
}

static void build(fini_spec *spec, fini_figure *figure)
{
    int bits = read_of(spec);
    const fini_block *block = fini_spec_block(spec, NULL);
    const fini_frame *frame = fini_spec_frame(spec, NULL, figure);
    int64_t rows = frame ? fini_spec_runs(frame, RUNS_MOST, figure) : 0;
    for (int k = 0; k < OVERLAPS && rows > 0; k++) {
        static const char *const signs[OVERLAPS] = {"κ = k·k*", "ν = v·v*", "θ = v·k*", "η = k·v*",
                                                    "ρ = k·v"};
        fini_panel *panel = bits >> k & 1 ? fini_figure_panel(figure, signs[k]) : NULL;
        if (!panel)
            continue;
        panel->square = true;
        panel->x.label = "reduced";
        panel->y.label = "ambient";
        fini_figure_reference(figure, panel, FINI_DIAGONAL, 0, "");
        for (int64_t row = 0; row < rows && !figure->failed; row++)
            add_row(frame, row, overlaps[k], fini_spec_row(frame, block, row, figure), figure,
                    panel);
    }
    if (rows == 0)
        fini_figure_panel(figure, "");
}

static const char *const keys[] = {"of", NULL};
const fini_figure_kind fini_figure_quantiles = {"quantiles", keys, check, build};
