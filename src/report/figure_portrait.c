/* Phase portrait: the risk over (kappa, nu) of a `landscape` run as colours, the direction of
 * descent as arrows, stationary points, and the paths of a `train` block if it is named. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

enum { ARROWS = 17, PATH_POINTS = 60 }; /* arrows a side; points of a path */

/* NULL: none is asked for. */
static const fini_block *paths_block(fini_spec *spec)
{
    const fini_node *paths = fini_node_get(spec->node, "paths");
    const char *id = fini_ask_text(&spec->ask, spec->node, "paths", "");
    const fini_block *block = paths ? fini_study_block(spec->study, id) : NULL;
    if (paths && (!block || strcmp(block->command->name, "train") != 0))
        FINI_ASK_FAIL(&spec->ask, paths,
                      "'paths' must name a block of runs of the command train; '%.64s' %s", id,
                      block ? "is of another one" : "is no block");
    return block;
}

static void check(fini_spec *spec)
{
    fini_spec_command(spec, "landscape", "portrait");
    fini_spec_axis(spec, "value", FINI_TAKE_NONE);
    paths_block(spec);
}

typedef struct plane {
    fini_matrix kappa, nu, risk, d_kappa, d_nu;
} plane;

static plane read_plane(const fini_frame *frame, fini_figure *figure)
{
    static const char *const names[] = {"risk", "d_kappa", "d_nu"};
    plane p = {.kappa = fini_spec_series(frame, 0, "kappa", 1, figure),
               .nu = fini_spec_series(frame, 0, "nu", 1, figure)};
    fini_matrix *to[] = {&p.risk, &p.d_kappa, &p.d_nu};
    const char *missing = !p.kappa.values ? "kappa" : !p.nu.values ? "nu" : NULL;
    for (int i = 0; i < 3 && !missing; i++) {
        *to[i] = fini_spec_series(frame, 0, names[i], 2, figure);
        if (!to[i]->values || to[i]->rows != p.kappa.columns || to[i]->columns != p.nu.columns)
            missing = names[i];
    }
    fini_matrix *round[] = {&p.kappa, &p.nu, &p.risk};
    for (int i = 0; i < 3; i++)
        fini_matrix_thin(round[i], round[i]->columns + 1); /* digits alone */
    if (missing)
        fini_figure_fail(figure, FIN_ERR_FORMAT, "the run has no series '%s' of the right shape",
                         missing);
    return p;
}

static void add_cells(const plane *p, fini_figure *figure, fini_panel *panel)
{
    int64_t n = p->kappa.columns, m = p->nu.columns;
    fini_curve *cells = fini_figure_curve(figure, panel, "risk", FINI_MARK_CELLS, n * m);
    if (!cells || !(cells->value = fini_figure_array(figure, cells)))
        return;
    cells->quiet = true;
    cells->columns = n;
    cells->rows = m;
    for (int64_t i = 0; i < n * m; i++) {
        cells->x[i] = p->kappa.values[i / m];
        cells->y[i] = p->nu.values[i % m];
        cells->value[i] = p->risk.values[i];
    }
    panel->has_value = true;
}

/* Place k of `count` among n, from the middle of the first stride to that of the last. */
static int64_t spread(int64_t k, int64_t count, int64_t n)
{
    return (2 * k + 1) * n / (2 * count);
}

/* Descent on the two spheres: the gradient of the risk in k and in v loses what points outwards,
 * which takes the factors 1 - kappa^2 and 1 - nu^2. That is so on M, where the plane is invariant;
 * off M descent leaves the plane, and theta, eta and rho take part. */
static bool on_manifold(const fini_frame *frame)
{
    static const char *const names[] = {"theta", "eta", "rho"};
    for (int i = 0; i < 3; i++) {
        const fini_column *column = fini_frame_column(frame, names[i]);
        if (column && column->value[0] != 0)
            return false;
    }
    return true;
}

static void add_arrows(const plane *p, fini_figure *figure, fini_panel *panel)
{
    int64_t n = p->kappa.columns, m = p->nu.columns;
    int64_t a = n < ARROWS ? n : ARROWS, b = m < ARROWS ? m : ARROWS;
    fini_curve *arrows =
        fini_figure_curve(figure, panel, "direction of descent", FINI_MARK_ARROWS, a * b);
    if (!arrows)
        return;
    arrows->quiet = true;
    arrows->dx = fini_figure_array(figure, arrows);
    arrows->dy = fini_figure_array(figure, arrows);
    for (int64_t k = 0; k < a * b && !figure->failed; k++) {
        int64_t i = spread(k / b, a, n), j = spread(k % b, b, m), at = i * m + j;
        double kappa = p->kappa.values[i], nu = p->nu.values[j];
        double u = -(1 - kappa * kappa) * p->d_kappa.values[at];
        double v = -(1 - nu * nu) * p->d_nu.values[at], size = hypot(u, v);
        bool moves = size > 0 && isfinite(size);
        arrows->x[k] = kappa;
        arrows->y[k] = nu;
        arrows->dx[k] = moves ? u / size : 0;
        arrows->dy[k] = moves ? v / size : 0;
    }
}

/* By the number of negative eigenvalues of the Hessian, which is that of the whole space: a point
 * that looks like a maximum in this plane may be a saddle. */
static void add_stationary(const fini_frame *frame, fini_figure *figure, fini_panel *panel)
{
    static const char *const labels[] = {"minimum", "saddle"};
    static const int shapes[] = {FINI_CIRCLE, FINI_DIAMOND}, colours[] = {1, 3};
    fini_matrix kappa = fini_spec_series(frame, 0, "point_kappa", 1, figure);
    fini_matrix nu = fini_spec_series(frame, 0, "point_nu", 1, figure);
    fini_matrix negative = fini_spec_series(frame, 0, "point_negative", 1, figure);
    if (!kappa.values || !nu.values || !negative.values || nu.columns != kappa.columns ||
        negative.columns != kappa.columns)
        return;
    for (int type = 0; type < 2; type++) {
        int64_t count = 0;
        for (int64_t i = 0; i < kappa.columns; i++)
            count += (negative.values[i] > 0) == type;
        if (count == 0)
            continue;
        fini_curve *points =
            fini_figure_curve(figure, panel, labels[type], FINI_MARK_POINTS, count);
        if (!points)
            return;
        points->shape = shapes[type];
        points->colour = colours[type];
        for (int64_t i = 0, k = 0; i < kappa.columns; i++)
            if ((negative.values[i] > 0) == type) {
                points->x[k] = kappa.values[i];
                points->y[k++] = nu.values[i];
            }
    }
}

static void add_paths(const fini_spec *spec, const fini_block *block, fini_figure *figure,
                      fini_panel *panel)
{
    const fini_frame *frame =
        fini_figure_runs(figure, spec->store, spec->study->name, block->id, NULL, 0);
    for (int64_t row = 0; frame && row < fini_frame_rows(frame) && row < 8; row++) {
        fini_matrix kappa = fini_spec_series(frame, row, "path_kappa", 2, figure);
        fini_matrix nu = fini_spec_series(frame, row, "path_nu", 2, figure);
        fini_matrix_thin(&kappa, PATH_POINTS);
        fini_matrix_thin(&nu, PATH_POINTS);
        bool fits = kappa.values && nu.values && kappa.rows == nu.rows;
        int64_t lines = fits ? fini_spec_lines(figure, &kappa) : 0;
        for (int64_t p = 0; p < lines && !figure->failed; p++) {
            fini_curve *path =
                fini_spec_curve(figure, panel, "path of a run", FINI_MARK_SOLID, &kappa, &nu, p);
            if (!path)
                return;
            path->colour = 4;
            path->quiet = p > 0 || row > 0;
        }
    }
}

static void build(fini_spec *spec, fini_figure *figure)
{
    const fini_block *paths = paths_block(spec);
    fini_panel *panel = fini_figure_panel(figure, "");
    const fini_frame *frame = panel ? fini_spec_frame(spec, NULL, figure) : NULL;
    if (!frame || fini_spec_runs(frame, 1, figure) == 0)
        return;
    panel->x.label = "κ = k·k*";
    panel->y.label = "ν = v·v*";
    fini_spec_scale(spec, figure, "value", "risk", &panel->value);
    plane p = read_plane(frame, figure);
    if (figure->failed)
        return;
    add_cells(&p, figure, panel);
    if (on_manifold(frame))
        add_arrows(&p, figure, panel);
    else
        fini_figure_note(figure, "Off M (θ, η or ρ is not 0) descent leaves this plane: its "
                                 "direction is not drawn.");
    if (paths)
        add_paths(spec, paths, figure, panel);
    add_stationary(frame, figure, panel);
}

static const char *const keys[] = {"paths", "value", NULL};
const fini_figure_kind fini_figure_portrait = {"portrait", keys, check, build};
