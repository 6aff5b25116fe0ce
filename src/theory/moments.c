/* The risk of any element-wise form from Gaussian moments of its weight.
 *
 * For a relevant token let u = w z - y be its error (chi, z, y jointly normal, means mu kappa,
 * mu theta, 0). Integration by parts, E[f(chi) z] = E[z] E[f] + Cov(chi, z) E[f'], turns E[u] and
 * E[u^2] into moments of w and w^2 and their derivatives; another token adds w z with mean C. As in
 * the erf kernel,
 *     R = eps^2 + m Var(u) + (E[L] - m) Var(w z) + (m E[u] + (E[L] - m) C)^2 + Var(L) C^2.
 */
#include "theory/theory.h"
#include "base/constants.h"

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

/* E[w^(j)(mean + sd G)] = E[w(mean + sd G) He_j(G)] / sd^j: no derivative of w is needed. The mean
 * over G is a trapezoidal sum on [-REACH, REACH], which for smooth w converges faster than any
 * power of the step, and for a steep one honestly: the steps are halved until the risk stands. */
typedef struct activation {
    double (*f)(double chi, void *user);
    void *user;
} activation;

static const double reach = 10; /* density 8e-23 there */

/* Adds the nodes (i + shift) step - reach of w at mean + sd G. */
static void add_nodes(const activation *a, int64_t n, double shift, double step, double mean,
                      double sd, double m[4], double h[4])
{
    for (int64_t i = 0; i < n; i++) {
        double x = ((double)i + shift) * step - reach, value = a->f(mean + sd * x, a->user);
        double density = FINI_NORMAL_0 * exp(-0.5 * x * x);
        double hermite[4] = {1, x, x * x - 1, x * (x * x - 3)};
        for (int j = 0; j < 4; j++) {
            m[j] += density * hermite[j] * value;
            h[j] += density * hermite[j] * value * value;
        }
    }
}

/* sums * step / sd^j. */
static void scale_sums(const double sums[4], double step, double sd, double out[4])
{
    double scale = step;
    for (int j = 0; j < 4; j++, scale /= sd)
        out[j] = sums[j] * scale;
}

fin_status fin_risk_activation(const fin_task *task, double (*f)(double chi, void *user),
                               void *user, const fin_overlaps *overlaps, int64_t nodes,
                               fin_risk_report *report, fin_error *err)
{
    FINI_NEED(err, task, f, report);
    const fin_task_settings *s = &task->settings;
    fin_overlaps at;
    overlaps = fini_or_defaults(&fin_overlaps_table, overlaps, &at);
    FINI_TRY(fin_settings_validate(&fin_overlaps_table, overlaps, err));
    if (task->kind->odds)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "%s: relevance depends on all tokens at once, so there is no quadrature over "
            "one token; use simulation",
            task->kind->name);
    if (nodes < 64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "nodes = %lld; it must be at least 64, usually 65536", (long long)nodes);
    if (s->gamma < 1e-3) /* derivatives are sums over gamma^j, and lose j times its digits */
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "gamma = %g; quadrature needs at least 1e-3, closed forms and simulation do not",
            s->gamma);
    activation a = {f, user};
    fini_moments sums = {{{0}}, {{0}}}, moments;
    fin_risk_report now = {0};
    double mean[2] = {s->mu * overlaps->kappa, 0}, sd[2] = {s->gamma, 1}, change = INFINITY;
    /* Each level adds the points between those of the level before. A steep activation can hide
     * from a few nodes, so at least 1024 are taken, and two levels must agree with the last one. */
    int64_t count = 0, settled = 0;
    for (int64_t add = 32; count + add <= nodes && settled < 2; add = count) {
        double step = 2 * reach / (double)add, before = now.risk.value;
        for (int which = 0; which < 2; which++)
            add_nodes(&a, add, count ? 0.5 : 0, step, mean[which], sd[which], sums.m[which],
                      sums.h[which]);
        count += add;
        for (int which = 0; which < 2; which++) {
            scale_sums(sums.m[which], 2 * reach / (double)count, sd[which], moments.m[which]);
            scale_sums(sums.h[which], 2 * reach / (double)count, sd[which], moments.h[which]);
        }
        fini_risk_from_moments(task, overlaps, &moments, &now);
        double rounding = 0x1p-48 * fabs(now.risk.value);
        change = fabs(now.risk.value - before) + rounding;
        settled = change <= 2 * rounding && count >= 1024 ? settled + 1 : 0;
    }
    if (!isfinite(now.risk.value))
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "the activation is not finite on the real line, or its "
                         "moments are not");
    now.risk =
        (fin_estimate){.value = now.risk.value, .error = change, .method = FIN_METHOD_QUADRATURE};
    *report = now;
    return FIN_OK;
}
