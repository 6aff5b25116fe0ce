/* The risk of any element-wise form from Gaussian moments of its weight.
 *
 * For a relevant token let u = w z - y be its error (chi, z, y jointly normal, means mu kappa,
 * mu theta, 0). Integration by parts turns E[u] and E[u^2] into moments of w and w^2 and their
 * derivatives (theory, section 3); another token adds w z with mean C. As in the erf kernel,
 *     R = eps^2 + m Var(u) + (E[L] - m) Var(w z) + (m E[u] + (E[L] - m) C)^2 + Var(L) C^2.
 */
#include "theory/theory.h"

#include "finetti/math.h"

#include <math.h>

void fini_risk_from_moments(const fin_task *task, const fin_overlaps *o,
                            const fini_moments *moments, fin_risk_report *report)
{
    const fin_task_settings *s = &task->settings;
    const double *a = moments->m[0], *h = moments->h[0], *b = moments->m[1], *g = moments->h[1];
    double g2 = s->gamma * s->gamma, mu = s->mu, t = mu * o->theta, rho = o->rho, eta = o->eta;
    double m = (double)s->m, N = task->length_mean - m, spread = task->length_variance;

    double mean = t * a[0] + g2 * rho * a[1];
    double cross = g2 * o->nu * a[0] + g2 * eta * (t * a[1] + g2 * rho * a[2]); /* E[y w z] */
    double square = (t * t + g2) * h[0] + 2 * t * g2 * rho * h[1] + g2 * g2 * rho * rho * h[2];
    double Vs = g2 - 2 * cross + square - mean * mean;
    double C = rho * b[1], Vn = g[0] + rho * rho * g[2] - C * C;
    double bias = m * mean + N * C;

    report->has_parts = report->has_gradient = 1;
    report->signal = m * Vs;
    report->noise = N * Vn;
    report->bias = bias * bias + spread * C * C;
    report->risk.value = s->eps * s->eps + report->signal + report->noise + report->bias;

    /* Derivatives of E[u] and E[u^2]; a derivative in kappa raises the order and brings mu. */
    double slope = t * a[1] + g2 * rho * a[2];
    double mean_k = mu * slope, mean_t = mu * a[0], mean_r = g2 * a[1];
    double square_k =
        mu * ((t * t + g2) * h[1] + 2 * t * g2 * rho * h[2] + g2 * g2 * rho * rho * h[3] -
              2 * g2 * o->nu * a[1] - 2 * g2 * eta * (t * a[2] + g2 * rho * a[3]));
    double square_t = mu * (2 * t * h[0] + 2 * g2 * rho * h[1] - 2 * g2 * eta * a[1]);
    double square_r = 2 * t * g2 * h[1] + 2 * g2 * g2 * rho * h[2] - 2 * g2 * g2 * eta * a[2];
    double *d = report->gradient;
    d[0] = m * (square_k - 2 * mean * mean_k) + 2 * bias * m * mean_k;
    d[1] = m * -2 * g2 * a[0];
    d[2] = m * (square_t - 2 * mean * mean_t) + 2 * bias * m * mean_t;
    d[3] = m * -2 * g2 * slope;
    d[4] = m * (square_r - 2 * mean * mean_r) + N * (2 * rho * g[2] - 2 * C * b[1]) +
           2 * bias * (m * mean_r + N * b[1]) + 2 * spread * C * b[1];
}

/* ---- moments by quadrature ------------------------------------------------------------------ */

/* E[w^(j)(mean + sd G)] = E[w(mean + sd G) He_j(G)] / sd^j: no derivative of w is needed. */
static void quadrature(double (*f)(double, void *), void *user, int n, const double *x,
                       const double *w, double mean, double sd, double m[4], double h[4])
{
    for (int j = 0; j < 4; j++)
        m[j] = h[j] = 0;
    for (int i = 0; i < n; i++) {
        double value = f(mean + sd * x[i], user);
        double hermite[4] = {1, x[i], x[i] * x[i] - 1, x[i] * (x[i] * x[i] - 3)};
        for (int j = 0; j < 4; j++) {
            m[j] += w[i] * hermite[j] * value;
            h[j] += w[i] * hermite[j] * value * value;
        }
    }
    for (int j = 1; j < 4; j++)
        for (int i = 0; i < j; i++) {
            m[j] /= sd;
            h[j] /= sd;
        }
}

static fin_status with_nodes(const fin_task *task, double (*f)(double, void *), void *user,
                             const fin_overlaps *overlaps, int n, fin_risk_report *report,
                             fin_error *err)
{
    double x[512], w[512];
    fini_moments moments;
    fin_status status = fin_hermite(n, x, w, err);
    if (status)
        return status;
    const fin_task_settings *s = &task->settings;
    quadrature(f, user, n, x, w, s->mu * overlaps->kappa, s->gamma, moments.m[0], moments.h[0]);
    quadrature(f, user, n, x, w, 0, 1, moments.m[1], moments.h[1]);
    fini_risk_from_moments(task, overlaps, &moments, report);
    return FIN_OK;
}

fin_status fin_risk_activation(const fin_task *task, double (*f)(double chi, void *user),
                               void *user, const fin_overlaps *overlaps, int64_t nodes,
                               fin_risk_report *report, fin_error *err)
{
    fin_status status = fin_settings_validate(&fin_overlaps_settings, overlaps, err);
    if (status)
        return status;
    if (task->kind->by_score)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "%s: relevance depends on all tokens at once, so there is no quadrature over "
            "one token; use simulation",
            task->kind->name);
    if (nodes < 8 || nodes > 512)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "nodes = %lld; it must be from 8 to 512, usually 128", (long long)nodes);
    if (task->settings.gamma == 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "quadrature needs gamma > 0; the closed form takes gamma = 0");
    fin_risk_report coarse;
    if ((status = with_nodes(task, f, user, overlaps, (int)nodes / 2, &coarse, err)) ||
        (status = with_nodes(task, f, user, overlaps, (int)nodes, report, err)))
        return status;
    report->risk.method = FIN_METHOD_QUADRATURE;
    report->risk.error = fabs(report->risk.value - coarse.risk.value);
    report->risk.samples = 0;
    return FIN_OK;
}
