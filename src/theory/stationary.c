/* The stationary points of the risk on M (theta = eta = rho = 0).
 *
 * There R is affine in nu (moments.c, with theta = eta = rho = 0),
 *
 *     R(kappa, nu) = m gamma^2 (1 - 2 nu m0(kappa) + h0(kappa)) + const,
 *
 * and with kappa = cos a, nu = cos b both derivatives in the angles vanish where
 *
 *     sin b m0(kappa) = 0   and   sin a (h1(kappa) - 2 nu m1(kappa)) = 0:
 *
 *     - at the four corners kappa = +-1, nu = +-1;
 *     - on the edges nu = +-1, at the roots of h1 - 2 nu m1;
 *     - inside, at the roots of m0, if nu = h1 / (2 m1) is between -1 and 1.
 *
 * So the search is for roots of functions of one variable, which are bracketed and halved: unlike
 * Newton steps in the plane that neither misses a root nor takes a plateau, where the gradient is
 * exp(-100), for one. (Where m0 has a root at kappa = +-1 exactly, that edge is a curve of
 * stationary points; its ends are the corners.) */
#include "theory/theory.h"
#include "base/constants.h"
#include "math/stats.h"
#include "task/task.h"

#include <math.h>
#include <stdlib.h>

enum {
    EVEN = 512, /* intervals of the angle */
    NEAR = 64,  /* intervals of the stretch where the weight changes, however short */
    NODES = EVEN + 1 + NEAR + 1,
    MOST = 4 + 3 * NODES
};

typedef struct model {
    const fin_task *task;
    const fin_form *form;
    const fin_form_settings *settings;
    double nu; /* of the edge */
} model;

typedef struct scratch {
    double nodes[NODES], roots[NODES];
    fin_overlaps found[MOST];
    fin_stationary all[MOST];
} scratch;

static void moments_at(const model *q, double kappa, double m[4], double h[4])
{
    const fin_task_settings *s = &q->task->settings;
    q->form->moments(q->settings, s->mu * kappa, s->gamma, m, h);
}

/* The two functions whose roots are wanted; *size: of the terms that they are differences of. */
static double inside(const model *q, double kappa, double *size)
{
    double m[4], h[4];
    moments_at(q, kappa, m, h);
    *size = fabs(m[0]);
    return m[0];
}

static double on_edge(const model *q, double kappa, double *size)
{
    double m[4], h[4];
    moments_at(q, kappa, m, h);
    *size = fabs(h[1]) + 2 * fabs(m[1]);
    return h[1] - 2 * q->nu * m[1];
}

typedef double function(const model *q, double kappa, double *size);

static int by_risk(const void *p, const void *q)
{
    const fin_stationary *a = p, *b = q;
    if (a->risk != b->risk)
        return a->risk < b->risk ? -1 : 1;
    if (a->at.kappa != b->at.kappa)
        return a->at.kappa > b->at.kappa ? -1 : 1;
    return (a->at.nu < b->at.nu) - (a->at.nu > b->at.nu);
}

static double clamp(double x)
{
    return x < -1 ? -1 : x > 1 ? 1 : x;
}

/* Points between which a sign change is looked for. Weights are functions of c + lam chi, smoothed
 * by gamma; at large d they change within a stretch of kappa that even nodes would step over. */
static void make_nodes(const model *q, double nodes[NODES])
{
    const fin_task_settings *s = &q->task->settings;
    double lam = q->settings->lam, scale = lam * s->mu, *node = nodes;
    double g = lam * s->gamma, centre = -q->settings->c / scale;
    double reach = 8 * sqrt(1 + 2 * g * g) / scale;
    for (int i = 0; i <= EVEN; i++)
        *node++ = 2 * i == EVEN ? 0 : -cos(FINI_PI * i / EVEN);
    for (int i = 0; i <= NEAR; i++) {
        double x = centre + reach * (2.0 * i / NEAR - 1);
        *node++ = isfinite(x) ? clamp(x) : 0;
    }
    fini_sort(nodes, NODES);
}

/* Where f, of opposite sign at both ends, changes it. */
static double halve(function *f, const model *q, double low, double high)
{
    double size, sign = f(q, low, &size) > 0 ? 1 : -1;
    for (;;) {
        double middle = low + (high - low) / 2, value = f(q, middle, &size);
        if (value == 0 || middle == low || middle == high)
            return middle;
        if (sign * value > 0)
            low = middle;
        else
            high = middle;
    }
}

/* Roots where the sign changes. Values that may be all rounding (2^-36 leaves room for exponentials
 * that lost digits) have no sign; a function that nowhere has one gets the root 0. */
static int find_roots(function *f, const model *q, const double nodes[NODES], double roots[NODES])
{
    int count = 0, last = -1; /* the last node with a sign */
    double last_value = 0;
    for (int i = 0; i < NODES; i++) {
        double size, value = f(q, nodes[i], &size);
        if (!(fabs(value) > 0x1p-36 * size))
            continue;
        if (last >= 0 && (last_value > 0) != (value > 0))
            roots[count++] = halve(f, q, nodes[last], nodes[i]);
        last = i;
        last_value = value;
    }
    if (last < 0)
        roots[count++] = 0;
    return count;
}

/* Adds a point, unless it is there or R^d has no such k, v. */
static void add(const model *q, double kappa, double nu, fin_overlaps *found, int64_t *count)
{
    fin_overlaps o = {.kappa = kappa, .nu = nu};
    for (int64_t i = 0; i < *count; i++)
        if (fabs(found[i].kappa - kappa) <= 1e-12 && fabs(found[i].nu - nu) <= 1e-12)
            return;
    if (!fini_overlaps_realisable(&o, q->task->settings.d, NULL))
        found[(*count)++] = o;
}

static int64_t find(model *q, scratch *w)
{
    int64_t count = 0;
    double *nodes = w->nodes, *roots = w->roots;
    fin_overlaps *found = w->found;
    make_nodes(q, nodes);
    for (int corner = 0; corner < 4; corner++)
        add(q, corner & 1 ? -1 : 1, corner & 2 ? -1 : 1, found, &count);
    for (q->nu = 1; q->nu >= -1; q->nu -= 2) {
        int n = find_roots(on_edge, q, nodes, roots);
        for (int i = 0; i < n; i++)
            add(q, roots[i], q->nu, found, &count);
    }
    int n = find_roots(inside, q, nodes, roots);
    for (int i = 0; i < n; i++) {
        double m[4], h[4];
        moments_at(q, roots[i], m, h);
        double nu = m[1] != 0 ? h[1] / (2 * m[1]) : h[1] == 0 ? 0 : INFINITY;
        if (fabs(nu) <= 1)
            add(q, roots[i], nu, found, &count);
    }
    return count;
}

fin_status fin_stationary_points(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *form_settings, int64_t most,
                                 fin_stationary *points, int64_t *count, fin_error *err)
{
    FINI_NEED(err, task, form, !most || points, count);
    fin_form_settings fs = {0}; /* a form without c leaves it alone */
    fin_curvature curvature;
    model q = {.task = task,
               .form = form,
               .settings = fini_or_defaults(form->settings, form_settings, &fs)};
    /* At the oracle first: what is refused there is refused everywhere. */
    fin_status status = fin_risk_curvature(task, form, q.settings, NULL, &curvature, err);
    if (status)
        return status;
    if (most < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "room for %lld points; it must not be negative",
                         (long long)most);
    FINI_OWN(err, "stationary points", scratch, w, 1, 1);
    int64_t n = find(&q, w);
    for (int64_t i = 0; i < n; i++) {
        fin_risk_report report;
        const fin_overlaps *at = &w->found[i];
        if ((status = fin_risk(task, form, q.settings, at, NULL, NULL, &report, err)) ||
            (status = fin_risk_curvature(task, form, q.settings, at, &curvature, err)))
            break;
        w->all[i] = (fin_stationary){*at, report.risk.value, curvature};
    }
    if (!status) {
        qsort(w->all, (size_t)n, sizeof *w->all, by_risk);
        for (int64_t i = 0; i < n && i < most; i++)
            points[i] = w->all[i];
        *count = n;
    }
    return status;
}
