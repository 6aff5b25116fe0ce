/* The risk on a grid of (kappa, nu), with its gradient and where gradient flow goes. */
#include "landscape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the grid ------------------------------------------------------------------------------- */

static int read_axis(const cli_args *args, const char *name, landscape_axis *axis)
{
    const char *text = cli_get(args, name);
    int used = 0;
    *axis = (landscape_axis){-1, 1};
    if (!text)
        return CLI_OK;
    if (sscanf(text, "%lf:%lf%n", &axis->from, &axis->to, &used) != 2 || text[used])
        return cli_usage("--%s '%.60s' is not FROM:TO, such as 0:1", name, text);
    if (!(axis->from >= -1 && axis->from < axis->to && axis->to <= 1))
        return cli_usage("--%s '%.60s': an overlap is from -1 to 1, and FROM below TO", name, text);
    return CLI_OK;
}

static double setting(const cli_args *args, const char *name)
{
    const fin_group *group = NULL;
    const fin_field *field = cli_field(args, name, &group);
    return fin_settings_get(field, group->values);
}

int landscape_read(landscape *g, const cli_args *args)
{
    memset(g, 0, sizeof *g);
    g->side = (int64_t)setting(args, "grid");
    int code = read_axis(args, "kappa_range", &g->kappa);
    return code ? code : read_axis(args, "nu_range", &g->nu);
}

/* The i-th of n numbers, ends included exactly; symmetric ranges have symmetric points. */
static double coordinate(const landscape_axis *axis, int64_t i, int64_t n)
{
    double b = (double)i / (double)(n - 1), a = (double)(n - 1 - i) / (double)(n - 1);
    return a * axis->from + b * axis->to;
}

/* ---- one point ------------------------------------------------------------------------------ */

/* With grad_k = R_kappa k* + R_eta v* + R_rho v and grad_v = R_theta k* + R_nu v* + R_rho k, the
 * gradient on the spheres is g_k = grad_k - (k.grad_k) k, and g_v likewise:
 *
 *     k.grad_k = R_kappa kappa + R_eta eta + R_rho rho
 *     g_k.k*   = R_kappa + R_rho theta - (k.grad_k) kappa
 *     |g_k|^2  = |grad_k|^2 - (k.grad_k)^2
 *     |grad_k|^2 = R_kappa^2 + R_eta^2 + R_rho^2 + 2 R_rho (R_kappa theta + R_eta nu)
 *
 * and the same for v with (kappa, eta, theta, nu) replaced by (nu, theta, eta, kappa). Gradient
 * flow moves kappa by -g_k.k* and nu by -g_v.v*. */
static void fill(landscape_point *p, const fin_overlaps *o, const fin_risk_report *report)
{
    enum { KAPPA, NU, THETA, ETA, RHO };
    const double *r = report->gradient;
    double k_grad = r[KAPPA] * o->kappa + r[ETA] * o->eta + r[RHO] * o->rho;
    double v_grad = r[NU] * o->nu + r[THETA] * o->theta + r[RHO] * o->rho;
    double k_norm2 = r[KAPPA] * r[KAPPA] + r[ETA] * r[ETA] + r[RHO] * r[RHO] +
                     2 * r[RHO] * (r[KAPPA] * o->theta + r[ETA] * o->nu);
    double v_norm2 = r[NU] * r[NU] + r[THETA] * r[THETA] + r[RHO] * r[RHO] +
                     2 * r[RHO] * (r[NU] * o->eta + r[THETA] * o->kappa);
    double square = k_norm2 - k_grad * k_grad + v_norm2 - v_grad * v_grad;
    *p = (landscape_point){
        .kappa = o->kappa,
        .nu = o->nu,
        .risk = report->risk.value,
        .d_kappa = r[KAPPA],
        .d_nu = r[NU],
        .flow_kappa = k_grad * o->kappa - (r[KAPPA] + r[RHO] * o->theta),
        .flow_nu = v_grad * o->nu - (r[NU] + r[RHO] * o->eta),
        .gradient = square > 0 ? sqrt(square) : 0, /* below 0 by rounding, where there is none */
    };
}

static fin_status compute_point(landscape *g, const cli_args *args, const fin_task *task,
                                const fin_overlaps *o, fin_error *err)
{
    fin_risk_report report;
    if (fin_overlaps_realisable(o, fin_task_get_settings(task)->d, NULL)) {
        g->left_out++;
        return FIN_OK;
    }
    fin_status status =
        fin_risk(task, cli_form(args), cli_values(args, fin_form_table(cli_form(args))), o, NULL,
                 NULL, &report, err);
    if (status)
        return status;
    double error = fmax(g->how.error, report.risk.error);
    g->how = report.risk;
    g->how.error = error;
    fill(&g->points[g->count++], o, &report);
    return FIN_OK;
}

/* Asks for the curvature once, because that call says best which combinations have a gradient. */
static fin_status check_gradient(const cli_args *args, const fin_task *task, fin_error *err)
{
    fin_curvature unused;
    return fin_risk_curvature(task, cli_form(args),
                              cli_values(args, fin_form_table(cli_form(args))), NULL, &unused, err);
}

fin_status landscape_compute(landscape *g, const cli_args *args, const fin_task *task,
                             fin_error *err)
{
    const fin_progress *progress = cli_progress();
    int64_t total = g->side * g->side;
    fin_status status = check_gradient(args, task, err);
    if (status)
        return status;
    g->points = malloc((size_t)total * sizeof *g->points);
    if (!g->points)
        return cli_status_memory(err, (double)total * sizeof *g->points, "the grid");
    for (int64_t i = 0; i < total && !status; i++) {
        fin_overlaps o = {coordinate(&g->kappa, i / g->side, g->side),
                          coordinate(&g->nu, i % g->side, g->side), setting(args, "theta"),
                          setting(args, "eta"), setting(args, "rho")};
        status = compute_point(g, args, task, &o, err);
        if (!status && progress->report(progress->user, "landscape", (double)i, (double)total))
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

fin_status landscape_write(const landscape *g, const char *path, fin_error *err)
{
#define NAME(name) #name,
    static const char *const names[] = {LANDSCAPE_COLUMNS(NAME)};
#undef NAME
    enum { COLUMNS = sizeof names / sizeof *names };
    fin_csv *csv;
    fin_status status = fin_csv_open(path, names, COLUMNS, &csv, err);
    if (status)
        return status;
    for (int64_t i = 0; i < g->count && !status; i++) {
        const landscape_point *p = &g->points[i];
#define VALUE(name) p->name,
        const double row[COLUMNS] = {LANDSCAPE_COLUMNS(VALUE)};
#undef VALUE
        status = fin_csv_row(csv, row, err);
    }
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    return fin_csv_commit(csv, err);
}
