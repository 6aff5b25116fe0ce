/* Phase portrait: the risk over (kappa, nu) of a `landscape` run as colours, the direction of
 * descent as arrows, stationary points, and the paths of a `train` block if it is named. */
#include "report/figure.h"

#include <math.h>
#include <string.h>

enum { ARROWS = 17 }; /* a side */

static fin_status paths_block(const fini_spec *spec, const fini_block **block, fin_error *err)
{
    const fini_node *paths = fini_node_get(spec->node, "paths");
    const char *id;
    *block = NULL;
    if (!paths)
        return FIN_OK;
    fin_status status = fini_node_text(spec->study->tree, spec->node, "paths", NULL, &id, err);
    if (status)
        return status;
    *block = fini_study_block(spec->study, id);
    if (*block && strcmp((*block)->command->name, "train") == 0)
        return FIN_OK;
    return fini_node_fail(spec->study->tree, paths, err,
                          "'paths' must name a block of runs of the command train; '%.64s' %s", id,
                          *block ? "is of another one" : "is no block");
}

static fin_status check(const fini_spec *spec, fin_error *err)
{
    const fini_block *block;
    fin_status status = fini_spec_block(spec, NULL, &block, err);
    if (!status)
        status = fini_spec_command(spec, block, "landscape", "portrait", err);
    if (!status)
        status = fini_spec_axis(spec, block, "value", false, err);
    return status ? status : paths_block(spec, &block, err);
}

typedef struct plane {
    fini_matrix kappa, nu, risk, d_kappa, d_nu;
} plane;

static fin_status read_plane(const fini_frame *frame, fini_figure *figure, plane *p, fin_error *err)
{
    const struct {
        const char *name;
        int ndim;
        fini_matrix *to;
    } all[] = {{"kappa", 1, &p->kappa},
               {"nu", 1, &p->nu},
               {"risk", 2, &p->risk},
               {"d_kappa", 2, &p->d_kappa},
               {"d_nu", 2, &p->d_nu}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fin_status status =
            fini_spec_series(frame, 0, all[i].name, all[i].ndim, figure, all[i].to, err);
        if (status)
            return status;
        bool fits = all[i].to->values &&
                    (all[i].ndim == 1 ||
                     (all[i].to->rows == p->kappa.columns && all[i].to->columns == p->nu.columns));
        if (!fits)
            return fini_fail(err, FIN_ERR_FORMAT, "the run has no series '%s' of the right shape",
                             all[i].name);
    }
    return FIN_OK;
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
static fin_status add_stationary(const fini_frame *frame, fini_figure *figure, fini_panel *panel,
                                 fin_error *err)
{
    static const char *const labels[] = {"minimum", "saddle"};
    static const int shapes[] = {FINI_CIRCLE, FINI_DIAMOND}, colours[] = {1, 3};
    fini_matrix kappa, nu, negative;
    fin_status status = fini_spec_series(frame, 0, "point_kappa", 1, figure, &kappa, err);
    if (!status)
        status = fini_spec_series(frame, 0, "point_nu", 1, figure, &nu, err);
    if (!status)
        status = fini_spec_series(frame, 0, "point_negative", 1, figure, &negative, err);
    if (status || !kappa.values || !nu.values || !negative.values || nu.columns != kappa.columns ||
        negative.columns != kappa.columns)
        return status;
    for (int type = 0; type < 2; type++) {
        int64_t count = 0;
        for (int64_t i = 0; i < kappa.columns; i++)
            count += (negative.values[i] > 0) == type;
        if (count == 0)
            continue;
        fini_curve *points =
            fini_figure_curve(figure, panel, labels[type], FINI_MARK_POINTS, count);
        if (!points)
            return fini_figure_status(figure, err);
        points->shape = shapes[type];
        points->colour = colours[type];
        for (int64_t i = 0, k = 0; i < kappa.columns; i++)
            if ((negative.values[i] > 0) == type) {
                points->x[k] = kappa.values[i];
                points->y[k++] = nu.values[i];
            }
    }
    return FIN_OK;
}

static fin_status add_paths(const fini_spec *spec, const fini_block *block, fini_figure *figure,
                            fini_panel *panel, fin_error *err)
{
    fini_frame *frame = NULL;
    fini_matrix kappa, nu;
    fin_status status =
        fini_frame_read(spec->store, spec->study->name, block->id, NULL, 0, &frame, err);
    for (int64_t row = 0; !status && row < fini_frame_rows(frame) && row < 8; row++) {
        status = fini_spec_series(frame, row, "path_kappa", 2, figure, &kappa, err);
        if (!status)
            status = fini_spec_series(frame, row, "path_nu", 2, figure, &nu, err);
        bool fits = !status && kappa.values && nu.values && kappa.rows == nu.rows;
        int64_t lines = fits ? fini_spec_lines(figure, &kappa) : 0;
        for (int64_t p = 0; p < lines && !figure->failed; p++) {
            fini_curve *path =
                fini_spec_curve(figure, panel, "path of a run", FINI_MARK_SOLID, &kappa, &nu, p);
            if (!path)
                break;
            path->colour = 4;
            path->quiet = p > 0 || row > 0;
        }
    }
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static fin_status build(const fini_spec *spec, fini_figure *figure, fin_error *err)
{
    fini_frame *frame = NULL;
    const fini_block *paths = NULL;
    plane p;
    fini_panel *panel = fini_figure_panel(figure, "");
    fin_status status = fini_figure_status(figure, err);
    if (!status)
        status = paths_block(spec, &paths, err);
    if (!status)
        status = fini_spec_frame(spec, NULL, figure, &frame, err);
    if (!status && fini_frame_rows(frame) > 0) {
        if (fini_frame_rows(frame) > 1)
            fini_figure_note(figure, "The first of %lld runs is shown.",
                             (long long)fini_frame_rows(frame));
        panel->x.label = "kappa";
        panel->y.label = "nu";
        fini_spec_scale(spec, figure, "value", "risk", &panel->value);
        status = read_plane(frame, figure, &p, err);
        if (!status) {
            add_cells(&p, figure, panel);
            if (on_manifold(frame))
                add_arrows(&p, figure, panel);
            else
                fini_figure_note(figure, "Off M (theta, eta or rho is not 0) descent leaves this "
                                         "plane: its direction is not drawn.");
            status = fini_frame_status(frame, err);
            if (!status)
                status = fini_figure_status(figure, err);
        }
        if (!status && paths)
            status = add_paths(spec, paths, figure, panel, err);
        if (!status)
            status = add_stationary(frame, figure, panel, err);
    }
    fini_frame_destroy(frame);
    return status ? status : fini_figure_status(figure, err);
}

static const char *const keys[] = {"paths", "value", NULL};
const fini_figure_kind fini_figure_portrait = {"portrait", keys, check, build};
