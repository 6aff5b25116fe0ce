/* Gradient and Hessian of the risk on the product of two unit spheres of R^d.
 *
 * R depends on k and v through the five overlaps q = (kappa, nu, theta, eta, rho) only, so
 *
 *     grad_k = R_kappa k* + R_eta v* + R_rho v,    grad_v = R_theta k* + R_nu v* + R_rho k
 *     D^2R[xi, xi] = dq^T H dq + 2 R_rho xi_k.xi_v
 *     dq = (xi_k.k*, xi_v.v*, xi_v.k*, xi_k.v*, xi_k.v + k.xi_v)
 *     Hess[xi, xi] = D^2R[xi, xi] - (k.grad_k) |xi_k|^2 - (v.grad_v) |xi_v|^2,  xi tangent
 *
 * (the last two terms: the spheres bend away from the tangent). It is written down in a frame of
 * min(4, d) vectors that holds k, v, k*, v*; orthogonal to it dq = 0, and what is left is the same
 * 2x2 matrix in every dimension.
 *
 * H, the Hessian in the overlaps, is exact: R is a polynomial in nu, theta, eta and rho whose
 * coefficients are the Gaussian moments of the weight (moments.c), and a derivative in kappa only
 * raises their order. The fourth-order ones, which the forms do not give, come from central
 * differences of the third; they are multiplied by rho, so on M nothing is differenced at all. */
#include "theory/theory.h"

#include "math/small.h"

#include <math.h>

enum { KAPPA, NU, THETA, ETA, RHO, OVERLAPS };
enum { FRAME = FINI_FRAME, TANGENT = FINI_TANGENT };

/* Rounding of the formulas and of the eigenvalues, relative to the largest entry: 256 units. */
static const double rounding = 0x1p-44;

typedef struct model {
    const fin_task *task;
    const fin_form *form;
    const fin_form_settings *settings;
} model;

typedef struct hessian {
    double at[OVERLAPS][OVERLAPS];
    double error; /* of the differences, in the entry kappa, kappa */
} hessian;

/* d/dmean of the third moments, order 8 in the step; *error: how far order 6 is from it. The forms
 * are functions of c + lam chi, smoothed over sd: that is the scale of the step. */
static void fourth_moments(const model *q, double mean, double sd, double *m4, double *h4,
                           double *m_error, double *h_error)
{
    static const double w8[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
    static const double w6[] = {3.0 / 4, -3.0 / 20, 1.0 / 60, 0};
    double lam = q->settings->lam, sum[2] = {0, 0}, less[2] = {0, 0};
    *m4 = *h4 = *m_error = *h_error = 0;
    if (!(lam > 1e-100)) /* the weight is a constant to any precision */
        return;
    double step = 0x1p-7 * sqrt(1 + 2 * lam * sd * lam * sd) / lam;
    for (int j = 0; j < 4; j++) {
        double m[2][4], h[2][4];
        for (int side = 0; side < 2; side++)
            q->form->moments(q->settings, mean + (side ? 1 : -1) * (j + 1) * step, sd, m[side],
                             h[side]);
        sum[0] += w8[j] * (m[1][3] - m[0][3]);
        sum[1] += w8[j] * (h[1][3] - h[0][3]);
        less[0] += w6[j] * (m[1][3] - m[0][3]);
        less[1] += w6[j] * (h[1][3] - h[0][3]);
    }
    *m4 = sum[0] / step;
    *h4 = sum[1] / step;
    *m_error = fabs(sum[0] - less[0]) / step;
    *h_error = fabs(sum[1] - less[1]) / step;
}

/* Second derivatives of R = eps^2 + m (E[u^2] - E[u]^2) + N Var(w z) + (m E[u] + N C)^2
 * + Var(L) C^2, the terms as in moments.c. */
static void hessian_of(const model *q, const fin_overlaps *o, hessian *out)
{
    const fin_task_settings *s = &q->task->settings;
    double a[5], h[5], b[4], g[4], a_error = 0, h_error = 0;
    double g2 = s->gamma * s->gamma, mu = s->mu, mu2 = mu * mu, t = mu * o->theta;
    double nu = o->nu, eta = o->eta, rho = o->rho, gr = g2 * rho;
    double m = (double)s->m, N = q->task->length_mean - m, spread = q->task->length_variance;
    q->form->moments(q->settings, mu * o->kappa, s->gamma, a, h);
    q->form->moments(q->settings, 0, 1, b, g);
    a[4] = h[4] = 0;
    if (rho != 0)
        fourth_moments(q, mu * o->kappa, s->gamma, &a[4], &h[4], &a_error, &h_error);

    /* E[u] and C, and their derivatives */
    double mean = t * a[0] + gr * a[1], bias = m * mean + N * b[1] * rho;
    double d_mean[OVERLAPS] = {
        [KAPPA] = mu * (t * a[1] + gr * a[2]), [THETA] = mu * a[0], [RHO] = g2 * a[1]};
    double dd_mean[OVERLAPS][OVERLAPS] = {
        [KAPPA] =
            {[KAPPA] = mu2 * (t * a[2] + gr * a[3]), [THETA] = mu2 * a[1], [RHO] = mu * g2 * a[2]},
    };
    /* E[u^2] */
    double dd_square[OVERLAPS][OVERLAPS] = {
        [KAPPA] = {[KAPPA] = mu2 * (-2 * g2 * nu * a[2] - 2 * g2 * eta * (t * a[3] + gr * a[4]) +
                                    (t * t + g2) * h[2] + 2 * t * gr * h[3] + gr * gr * h[4]),
                   [NU] = -2 * g2 * mu * a[1],
                   [THETA] = mu2 * (-2 * g2 * eta * a[2] + 2 * t * h[1] + 2 * gr * h[2]),
                   [ETA] = -2 * g2 * mu * (t * a[2] + gr * a[3]),
                   [RHO] = 2 * mu * g2 * (-g2 * eta * a[3] + t * h[2] + gr * h[3])},
        [THETA] =
            {[THETA] = 2 * mu2 * h[0], [ETA] = -2 * g2 * mu * a[1], [RHO] = 2 * mu * g2 * h[1]},
        [ETA] = {[RHO] = -2 * g2 * g2 * a[2]},
        [RHO] = {[RHO] = 2 * g2 * g2 * h[2]},
    };
    for (int i = 0; i < OVERLAPS; i++)
        for (int j = i; j < OVERLAPS; j++) {
            double bias_i = m * d_mean[i] + (i == RHO ? N * b[1] : 0);
            double bias_j = m * d_mean[j] + (j == RHO ? N * b[1] : 0);
            double value =
                m * (dd_square[i][j] - 2 * d_mean[i] * d_mean[j] - 2 * mean * dd_mean[i][j]) +
                2 * bias_i * bias_j + 2 * bias * m * dd_mean[i][j];
            if (i == RHO) /* then j is, too: the irrelevant tokens */
                value += 2 * N * (g[2] - b[1] * b[1]) + 2 * spread * b[1] * b[1];
            out->at[i][j] = out->at[j][i] = value;
        }
    out->error = m * mu2 * (2 * g2 * fabs(eta * gr) * a_error + gr * gr * h_error);
}

/* Orthonormal basis of what is orthogonal to the unit vector x of R^n: columns 1 .. n-1 of the
 * reflection that takes x to a multiple of the first axis. */
static void tangent_basis(int n, const double *x, double basis[FRAME - 1][FRAME])
{
    double u[FRAME] = {0}, u2;
    for (int i = 0; i < n; i++)
        u[i] = x[i];
    u[0] += x[0] < 0 ? -1 : 1;
    u2 = fini_dot_in_order(n, u, u);
    for (int j = 1; j < n; j++)
        for (int i = 0; i < n; i++)
            basis[j - 1][i] = (i == j) - 2 * u[i] * u[j] / u2;
}

/* Everything in the frame: coordinates of k and v, Euclidean gradients. */
typedef struct place {
    int n;
    double k[FRAME], v[FRAME], grad_k[FRAME], grad_v[FRAME], R_rho;
    double bend_k, bend_v; /* k.grad_k, v.grad_v */
} place;

/* Hess on the tangent basis, column after column; returns the norm of what it was made from, which
 * is what its rounding is relative to. */
static double span_matrix(const place *p, const hessian *H, double basis[2][FRAME - 1][FRAME],
                          double *matrix)
{
    double dq[TANGENT][OVERLAPS] = {{0}}, norm2 = 0;
    int n = p->n, half = n - 1, size = 2 * half;
    tangent_basis(n, p->k, basis[0]);
    tangent_basis(n, p->v, basis[1]);
    for (int j = 0; j < half; j++) {
        const double *xk = basis[0][j], *xv = basis[1][j];
        dq[j][KAPPA] = xk[0];
        dq[j][ETA] = xk[1];
        dq[j][RHO] = fini_dot_in_order(n, xk, p->v);
        dq[half + j][THETA] = xv[0];
        dq[half + j][NU] = xv[1];
        dq[half + j][RHO] = fini_dot_in_order(n, xv, p->k);
    }
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= i; j++) {
            double value = 0;
            for (int a = 0; a < OVERLAPS; a++)
                value += dq[i][a] * fini_dot_in_order(OVERLAPS, H->at[a], dq[j]);
            if (i >= half && j < half)
                value += p->R_rho * fini_dot_in_order(n, basis[1][i - half], basis[0][j]);
            if (i == j)
                value -= i < half ? p->bend_k : p->bend_v;
            matrix[j * size + i] = matrix[i * size + j] = value;
        }
    for (int a = 0; a < OVERLAPS; a++)
        norm2 += fini_dot_in_order(OVERLAPS, H->at[a], H->at[a]);
    return sqrt(norm2 + p->bend_k * p->bend_k + p->bend_v * p->bend_v + p->R_rho * p->R_rho);
}

static double gradient_norm(const place *p)
{
    double sum = 0;
    for (int i = 0; i < p->n; i++) {
        double gk = p->grad_k[i] - p->bend_k * p->k[i], gv = p->grad_v[i] - p->bend_v * p->v[i];
        sum += gk * gk + gv * gv;
    }
    return sqrt(sum);
}

/* The gradients at k and v, which are there. */
static void fill(const double R[OVERLAPS], place *p)
{
    double along_k[2] = {R[KAPPA], R[ETA]}, along_v[2] = {R[THETA], R[NU]};
    p->R_rho = R[RHO];
    for (int i = 0; i < p->n; i++) {
        p->grad_k[i] = R[RHO] * p->v[i] + (i < 2 ? along_k[i] : 0);
        p->grad_v[i] = R[RHO] * p->k[i] + (i < 2 ? along_v[i] : 0);
    }
    p->bend_k = fini_dot_in_order(p->n, p->k, p->grad_k);
    p->bend_v = fini_dot_in_order(p->n, p->v, p->grad_v);
}

static fin_status place_of(const model *q, const fin_overlaps *o, place *p, fin_error *err)
{
    int64_t d = q->task->settings.d;
    fini_basis f;
    fin_risk_report report;
    fin_status status;
    if ((status = fini_basis_of(o, d, &f, err)) ||
        (status = fin_risk(q->task, q->form, q->settings, o, NULL, NULL, &report, err)))
        return status;
    *p = (place){.n = (int)fini_least(d, FRAME),
                 .k = {o->kappa, o->eta, f.a3, 0},
                 .v = {o->theta, o->nu, f.b3, f.b4}};
    /* Overlaps carry rounding; tangents are orthogonal to unit vectors. */
    double k_norm = sqrt(fini_dot_in_order(p->n, p->k, p->k)),
           v_norm = sqrt(fini_dot_in_order(p->n, p->v, p->v));
    for (int i = 0; i < p->n; i++) {
        p->k[i] /= k_norm;
        p->v[i] /= v_norm;
    }
    fill(report.gradient, p);
    return FIN_OK;
}

static double product(double x) /* of unit vectors, to rounding */
{
    return x < -1 ? -1 : x > 1 ? 1 : x;
}

fin_status fini_spheres_look(const fin_task *task, const fin_form *form,
                             const fin_form_settings *settings, fini_spheres *s, fin_error *err)
{
    const model q = {task, form, settings};
    place p = {.n = s->n};
    hessian H;
    fin_risk_report report;
    s->at = (fin_overlaps){product(s->k[0]), product(s->v[1]), product(s->v[0]), product(s->k[1]),
                           product(fini_dot_in_order(s->n, s->k, s->v))};
    FINI_TRY(fin_risk(task, form, settings, &s->at, NULL, NULL, &report, err));
    for (int i = 0; i < s->n; i++) {
        p.k[i] = s->k[i];
        p.v[i] = s->v[i];
    }
    fill(report.gradient, &p);
    hessian_of(&q, &s->at, &H);
    double norm = span_matrix(&p, &H, s->basis, s->hessian);
    s->risk = report.risk.value;
    s->size = 2 * (s->n - 1);
    for (int j = 0; j < s->n - 1; j++) {
        s->gradient[j] = fini_dot_in_order(s->n, p.grad_k, s->basis[0][j]);
        s->gradient[s->n - 1 + j] = fini_dot_in_order(s->n, p.grad_v, s->basis[1][j]);
    }
    return isfinite(norm)
               ? FIN_OK
               : fini_fail(err, FIN_ERR_NUMERIC, "the curvature overflows at these settings");
}

static void count(fin_curvature *c, double value, double tolerance, int64_t times)
{
    if (value < -tolerance)
        c->negative += times;
    else if (value <= tolerance)
        c->flat += times;
}

fin_status fin_risk_curvature(const fin_task *task, const fin_form *form,
                              const fin_form_settings *form_settings, const fin_overlaps *overlaps,
                              fin_curvature *curvature, fin_error *err)
{
    FINI_NEED(err, task, form, curvature);
    fin_form_settings fs;
    fin_overlaps at;
    place p;
    hessian H;
    double matrix[TANGENT * TANGENT], basis[2][FRAME - 1][FRAME];
    model q = {task, form, fini_or_defaults(form->settings, form_settings, &fs)};
    overlaps = fini_or_defaults(&fin_overlaps_table, overlaps, &at);
    const char *why = fini_no_exact_risk(task, form);
    if (!why && !form->moments)
        why = "its moments have no closed form";
    if (why)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "curvature and stationary points need an exact risk; there is none for %s on %s: %s",
            form->name, task->kind->name, why);
    FINI_TRY(place_of(&q, overlaps, &p, err));
    hessian_of(&q, overlaps, &H);
    fin_curvature c = {.gradient = gradient_norm(&p),
                       .span_count = 2 * (p.n - 1),
                       .rest_count = task->settings.d > FRAME ? task->settings.d - FRAME : 0};
    c.tolerance = rounding * span_matrix(&p, &H, basis, matrix) + H.error;
    if (!isfinite(c.tolerance))
        return fini_fail(err, FIN_ERR_NUMERIC, "the curvature overflows at these settings");
    fini_eigen(c.span_count, matrix, c.span, NULL);
    for (int i = 0; i < c.span_count; i++)
        count(&c, c.span[i], c.tolerance, 1);
    if (c.rest_count) {
        double mid = -(p.bend_k + p.bend_v) / 2;
        double radius = hypot((p.bend_k - p.bend_v) / 2, p.R_rho);
        c.rest[0] = mid - radius;
        c.rest[1] = mid + radius;
        /* Made of first derivatives: the large entries of the span have no part in its error. */
        for (int i = 0; i < 2; i++)
            count(&c, c.rest[i], rounding * (fabs(mid) + radius), c.rest_count);
    }
    *curvature = c;
    return FIN_OK;
}

const char *fin_curvature_name(const fin_curvature *c, int64_t d)
{
    if (!c)
        return NULL;
    int64_t all = 2 * (d - 1), positive = all - c->negative - c->flat;
    if (c->negative == 0 && c->flat == 0)
        return "minimum";
    if (c->negative == all)
        return "maximum";
    return c->negative > 0 && positive > 0 ? "saddle" : "degenerate";
}
