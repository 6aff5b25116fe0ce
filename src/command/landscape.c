/* landscape: the risk over (kappa, nu), its derivatives, and where gradient flow rests. */
#include "command/command.h"

#include <math.h>
#include <string.h>

/*   type     field    default        lowest  highest         meaning */
#define PLANE_FIELDS(F, C)                                                                         \
    F(int64_t, grid, 41, 2, 2049, "points of the grid along kappa, and along nu")                  \
    F(double, theta, 0, -1, 1, "v.k* at every point of the grid")                                  \
    F(double, eta, 0, -1, 1, "k.v* at every point of the grid")                                    \
    F(double, rho, 0, -1, 1, "k.v at every point of the grid")

typedef struct plane_settings {
    PLANE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} plane_settings;
#define FIN_TABLE_STRUCT plane_settings
FIN_TABLE(static, plane_table, "plane", PLANE_FIELDS);
#undef FIN_TABLE_STRUCT

typedef struct landscape_values {
    fini_model model;
    plane_settings plane;
} landscape_values;

static const fin_word words[] = {
    FINI_MODEL_WORDS(landscape_values, model),
    {NULL, 0, 0, NULL, NULL},
};

static const fin_output outputs[] = {
    {"minima", "stationary points on M that are minima in the whole space", NULL},
    {"saddles", "those that are saddles", NULL},
    {"stationary", "stationary points on M (theta = eta = rho = 0)", NULL},
    {"least_risk", "least risk on the grid", NULL},
    {"greatest_risk", "greatest risk on the grid", NULL},
    {"kappa", "(n) the grid along kappa", NULL},
    {"nu", "(n) the grid along nu", NULL},
    {"risk", "(n, n) the risk, a row for every kappa; nan where no unit vectors have the overlaps",
     NULL},
    {"d_kappa", "(n, n) its derivative in kappa", NULL},
    {"d_nu", "(n, n) its derivative in nu", NULL},
    {"point_kappa", "(stationary) kappa of the stationary points, by risk", NULL},
    {"point_nu", "(stationary) their nu", NULL},
    {"point_risk", "(stationary) their risk", NULL},
    {"point_negative", "(stationary) negative eigenvalues of the Hessian there", NULL},
    {NULL, NULL, NULL},
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    landscape_values *v = values;
    fin_status status = fini_model_groups(&v->model, list, count, err);
    if (!status)
        list[(*count)++] = (fin_group){&plane_table, &v->plane};
    return status;
}

/* The curvature at one point says best which combinations have an exact risk, and why not. */
static fin_status check(const void *values, fin_error *err)
{
    const fini_model *model = &((const landscape_values *)values)->model;
    const fin_overlaps oracle = {.kappa = 1, .nu = 1};
    fin_curvature curvature;
    fin_task *task;
    fin_error inner = {FIN_OK, ""};
    fin_status status = fini_model_check(model, err);
    if (!status)
        status = fini_model_task(model, 1, 0, &task, err);
    if (status)
        return status;
    status = fin_risk_curvature(task, fini_model_form(model), &model->form_settings, &oracle,
                                &curvature, &inner);
    fin_task_destroy(task);
    return status == FIN_ERR_UNSUPPORTED ? fini_fail(err, status, "%s", inner.message) : FIN_OK;
}

static void tidy(void *values)
{
    fini_model_tidy(&((landscape_values *)values)->model);
}

/* ---- the grid -------------------------------------------------------------------------------- */

typedef struct grid {
    const landscape_values *v;
    const fin_task *task;
    int64_t side;
    double *axis;                  /* (side) */
    double *risk, *d_kappa, *d_nu; /* (side, side) */
    fin_estimate least, greatest;
    bool any;
} grid;

static fin_status point(grid *g, int64_t i, int64_t j, fin_error *err)
{
    const plane_settings *p = &g->v->plane;
    fin_overlaps at = {g->axis[i], g->axis[j], p->theta, p->eta, p->rho};
    int64_t place = i * g->side + j;
    g->risk[place] = g->d_kappa[place] = g->d_nu[place] = NAN;
    if (fin_overlaps_realisable(&at, fin_task_get_settings(g->task)->d, NULL))
        return FIN_OK;
    fin_risk_report report;
    fin_status status = fin_risk(g->task, fini_model_form(&g->v->model), &g->v->model.form_settings,
                                 &at, NULL, NULL, &report, err);
    if (status)
        return status;
    g->risk[place] = report.risk.value;
    g->d_kappa[place] = report.gradient[0];
    g->d_nu[place] = report.gradient[1];
    if (!g->any || report.risk.value < g->least.value)
        g->least = report.risk;
    if (!g->any || report.risk.value > g->greatest.value)
        g->greatest = report.risk;
    g->any = true;
    return FIN_OK;
}

static fin_status fill(grid *g, const fin_progress *progress, fin_error *err)
{
    double last = (double)(g->side - 1);
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < g->side; i++) /* symmetric, and both ends exactly */
        g->axis[i] = (double)i / last - (double)(g->side - 1 - i) / last;
    for (int64_t i = 0; i < g->side && !status; i++) {
        for (int64_t j = 0; j < g->side && !status; j++)
            status = point(g, i, j, err);
        if (!status && fini_report(progress, "landscape", (double)i, (double)g->side))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    }
    if (!status && !g->any)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "no unit vectors have theta = %g, eta = %g, rho = %g with any kappa and "
                           "nu of the grid; smaller ones usually work",
                           g->v->plane.theta, g->v->plane.eta, g->v->plane.rho);
    return status;
}

static void add_grid(const grid *g, fin_result *result)
{
    const int64_t shape[2] = {g->side, g->side};
    fini_result_series(result, "kappa", FIN_F64, 1, shape, g->axis);
    fini_result_series(result, "nu", FIN_F64, 1, shape, g->axis);
    fini_result_series(result, "risk", FIN_F64, 2, shape, g->risk);
    fini_result_series(result, "d_kappa", FIN_F64, 2, shape, g->d_kappa);
    fini_result_series(result, "d_nu", FIN_F64, 2, shape, g->d_nu);
    fini_result_estimate(result, "least_risk", &g->least);
    fini_result_estimate(result, "greatest_risk", &g->greatest);
}

static fin_status grid_of(const landscape_values *v, const fin_task *task, fin_result *result,
                          const fin_progress *progress, fin_method *method, fin_error *err)
{
    grid g = {.v = v, .task = task, .side = v->plane.grid};
    int64_t plane = g.side * g.side; /* at most 2049^2 */
    g.axis = fini_alloc_array(g.side + 3 * plane, sizeof *g.axis);
    if (!g.axis)
        return fini_fail_memory(err, (size_t)(g.side + 3 * plane) * sizeof *g.axis, "the grid");
    g.risk = g.axis + g.side;
    g.d_kappa = g.risk + plane;
    g.d_nu = g.d_kappa + plane;
    fin_status status = fill(&g, progress, err);
    if (!status)
        add_grid(&g, result);
    *method = g.least.method;
    fini_free(g.axis);
    return status;
}

/* ---- stationary points ----------------------------------------------------------------------- */

typedef struct points {
    fin_stationary *at;
    int64_t count;
} points;

/* Room for the usual number; for all of them if there are more. */
static fin_status find_points(const landscape_values *v, const fin_task *task, points *found,
                              fin_error *err)
{
    int64_t room = 64;
    for (;;) {
        found->at = fini_alloc_array(room, sizeof *found->at);
        if (!found->at)
            return fini_fail_memory(err, (size_t)room * sizeof *found->at, "stationary points");
        fin_status status =
            fin_stationary_points(task, fini_model_form(&v->model), &v->model.form_settings, room,
                                  found->at, &found->count, err);
        if (status || found->count <= room)
            return status;
        fini_free(found->at);
        found->at = NULL;
        room = found->count;
    }
}

static fin_status add_points(const points *found, int64_t d, fin_how how, fin_result *result,
                             fin_error *err)
{
    int64_t minima = 0, saddles = 0, n = found->count;
    double *values = fini_alloc_array(n, 4 * sizeof *values);
    if (!values)
        return fini_fail_memory(err, (size_t)n * 4 * sizeof *values, "stationary points");
    for (int64_t i = 0; i < n; i++) {
        const fin_stationary *p = &found->at[i];
        const char *kind = fin_curvature_name(&p->curvature, d);
        minima += strcmp(kind, "minimum") == 0;
        saddles += strcmp(kind, "saddle") == 0;
        values[i] = p->at.kappa;
        values[n + i] = p->at.nu;
        values[2 * n + i] = p->risk;
        values[3 * n + i] = (double)p->curvature.negative;
    }
    fini_result_scalar(result, "minima", (double)minima, 0, how, 0);
    fini_result_scalar(result, "saddles", (double)saddles, 0, how, 0);
    fini_result_scalar(result, "stationary", (double)n, 0, how, 0);
    fini_result_series(result, "point_kappa", FIN_F64, 1, &n, values);
    fini_result_series(result, "point_nu", FIN_F64, 1, &n, values + n);
    fini_result_series(result, "point_risk", FIN_F64, 1, &n, values + 2 * n);
    fini_result_series(result, "point_negative", FIN_F64, 1, &n, values + 3 * n);
    fini_free(values);
    return fini_result_status(result, err);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The points first: that call says best which combinations have a gradient. */
static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const landscape_values *v = values;
    fin_task *task;
    points found = {NULL, 0};
    fin_method method = FIN_METHOD_AUTO;
    fin_status status = fini_model_task(&v->model, 1, 0, &task, err);
    if (!status)
        status = find_points(v, task, &found, err);
    if (!status)
        status = grid_of(v, task, result, progress, &method, err);
    if (!status)
        status =
            add_points(&found, fin_task_get_settings(task)->d, fini_how_of(method), result, err);
    fini_free(found.at);
    fin_task_destroy(task);
    return status;
}

const fin_command fini_command_landscape = {
    .name = "landscape",
    .summary = "the risk over (kappa, nu), its derivatives and its stationary points",
    .revision = 1,
    .size = sizeof(landscape_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .tidy = tidy,
    .run = run,
};
