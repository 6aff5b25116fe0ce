/* Where runs start: k and v in R^d, or only what any of it means, the five overlaps. */
#include "train/train.h"

#include "finetti/random.h"
#include "task/task.h"

#include <math.h>

double fini_dot(int64_t n, const double *a, const double *b)
{
    double sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        sums[0] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
           ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

double fini_product(double x)
{
    return x > 1 ? 1 : x < -1 ? -1 : x;
}

void fini_overlaps_of(int64_t n, const double *k, const double *v, fin_overlaps *o)
{
    o->kappa = fini_product(k[0]);
    o->eta = fini_product(k[1]);
    o->theta = fini_product(v[0]);
    o->nu = fini_product(v[1]);
    o->rho = fini_product(fini_dot(n, k, v));
}

fin_status fini_basis_vectors(const fin_overlaps *o, int64_t d, int64_t n, double *k, double *v,
                              fin_error *err)
{
    fini_basis frame;
    FINI_TRY(fini_basis_of(o, d, &frame, err));
    const double kk[4] = {o->kappa, o->eta, frame.a3, 0};
    const double vv[4] = {o->theta, o->nu, frame.b3, frame.b4};
    for (int64_t i = 0; i < n; i++) {
        k[i] = i < 4 ? kk[i] : 0;
        v[i] = i < 4 ? vv[i] : 0;
    }
    return FIN_OK;
}

/* ---- in law, at any d ------------------------------------------------------------------------ */

static fin_overlaps clean(fin_overlaps o)
{
    o.kappa = fini_product(o.kappa);
    o.nu = fini_product(o.nu);
    o.theta = fini_product(o.theta);
    o.eta = fini_product(o.eta);
    o.rho = fini_product(o.rho);
    return o;
}

/* Two uniform unit vectors, k = (k1, k2, |rest|) and v = (v1, v2, v3, |rest|) in the frame k*, v*,
 * direction of k's rest, direction of v's. */
static fin_overlaps on_sphere(fin_random *r, double d)
{
    double k1 = fin_random_normal(r), k2 = fin_random_normal(r);
    double k3 = sqrt(d > 2 ? fin_random_chi_square(r, d - 2) : 0);
    double v1 = fin_random_normal(r), v2 = fin_random_normal(r);
    double v3 = d > 2 ? fin_random_normal(r) : 0;
    double rest = d > 3 ? fin_random_chi_square(r, d - 3) : 0;
    double k = sqrt(k1 * k1 + k2 * k2 + k3 * k3), v = sqrt(v1 * v1 + v2 * v2 + v3 * v3 + rest);
    fin_overlaps o = {.kappa = k1 / k,
                      .eta = k2 / k,
                      .theta = v1 / v,
                      .nu = v2 / v,
                      .rho = (k1 * v1 + k2 * v2 + k3 * v3) / (k * v)};
    return clean(o);
}

/* k orthogonal to v*; v to k* and to what k has beside k*. In two dimensions there is no choice but
 * the signs. */
static fin_overlaps on_manifold(fin_random *r, double d)
{
    double k1 = fin_random_normal(r), k2 = d > 2 ? fin_random_chi_square(r, d - 2) : 0;
    double v1 = fin_random_normal(r), v2 = d > 3 ? fin_random_chi_square(r, d - 3) : 0;
    fin_overlaps o = {.kappa = k1 / sqrt(k1 * k1 + k2), .nu = v1 / sqrt(v1 * v1 + v2)};
    return clean(o);
}

fin_status fini_start_overlaps(const fin_train *t, int64_t run, fin_overlaps *o, fin_error *err)
{
    fin_random r;
    int64_t given = t->starts > 1 ? run : 0, d = t->task->settings.d;
    fin_random_open(&r, (uint64_t)t->settings.seed, FINI_STREAM_TRAIN_START, (uint64_t)run);
    switch (t->settings.init) {
    case FIN_INIT_SPHERE:
        *o = on_sphere(&r, (double)d);
        return FIN_OK;
    case FIN_INIT_MANIFOLD:
        *o = on_manifold(&r, (double)d);
        return FIN_OK;
    case FIN_INIT_OVERLAPS:
        *o = t->start[given];
        return fini_overlaps_realisable(o, d, err);
    default: {
        const double *k = t->start_k + given * d, *v = t->start_v + given * d;
        const double *k_star = t->task->k_star, *v_star = t->task->v_star;
        *o = clean((fin_overlaps){.kappa = fini_dot(d, k, k_star),
                                  .nu = fini_dot(d, v, v_star),
                                  .theta = fini_dot(d, v, k_star),
                                  .eta = fini_dot(d, k, v_star),
                                  .rho = fini_dot(d, k, v)});
        return FIN_OK;
    }
    }
}

/* k, v (velocities: zero) as coordinates in the frame, and lam. */
fin_status fini_basis_start(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    double *x = t->state + run * t->width;
    fin_status status = fini_start_overlaps(t, run, &o, err);
    x[t->vectors * t->frame] = fini_lam_at(t, 0);
    return status ? status
                  : fini_basis_vectors(&o, t->task->settings.d, t->frame, x, x + t->frame, err);
}

void fini_basis_read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    const double *x = t->state + run * t->width;
    fini_overlaps_of(t->frame, x, x + t->frame, o);
    *lam = x[t->vectors * t->frame];
}

/* ---- in R^d ----------------------------------------------------------------------------------- */

/* x without its part along the unit vector u, normalised; 0 if nothing is left. */
static double without(int64_t d, double *x, const double *u)
{
    for (int twice = 0; u && twice < 2; twice++) {
        double along = fini_dot(d, x, u);
        for (int64_t i = 0; i < d; i++)
            x[i] -= along * u[i];
    }
    double length = sqrt(fini_dot(d, x, x));
    for (int64_t i = 0; length > 0 && i < d; i++)
        x[i] /= length;
    return length;
}

/* A unit vector orthogonal to those in `others` (orthonormal), made from x or, if x lies in their
 * span, from the first coordinate vector that does not. */
static void make_unit(int64_t d, double *x, int count, const double *const *others)
{
    for (int64_t try = -1; try < d; try++) {
        for (int64_t i = 0; try >= 0 && i < d; i++)
            x[i] = i == try;
        double left = 1;
        for (int j = 0; j < count; j++)
            left *= without(d, x, others[j]);
        if (count == 0)
            left = without(d, x, NULL);
        if (left > 1e-8)
            return;
    }
    for (int64_t i = 0; i < d; i++)
        x[i] = 0; /* there is no room: d = 2 */
}

/* Vectors with given overlaps: coordinates in k*, v* and two more unit vectors, from `r`. */
static fin_status with_overlaps(const fin_train *t, const fin_overlaps *o, fin_random *r, double *k,
                                double *v, fin_error *err)
{
    int64_t d = t->task->settings.d;
    double kk[4], vv[4];
    fin_status status = fini_basis_vectors(o, d, 4, kk, vv, err);
    if (status)
        return status;
    double *e3 = fini_alloc_array(d, sizeof *e3), *e4 = fini_alloc_array(d, sizeof *e4);
    if (e3 && e4) {
        const double *frame[4] = {t->task->k_star, t->task->v_star, e3, e4};
        fin_random_sphere(r, d, e3);
        make_unit(d, e3, 2, frame);
        fin_random_sphere(r, d, e4);
        make_unit(d, e4, 3, frame);
        for (int64_t i = 0; i < d; i++) {
            k[i] = v[i] = 0;
            for (int j = 0; j < 4; j++) {
                k[i] += kk[j] * frame[j][i];
                v[i] += vv[j] * frame[j][i];
            }
        }
    } else {
        status = fini_fail_memory(err, (size_t)d * sizeof *e3, "starting vectors");
    }
    fini_free_all(e3, e4);
    without(d, k, NULL);
    without(d, v, NULL);
    return status;
}

fin_status fini_start_vectors(const fin_train *t, int64_t run, double *k, double *v, fin_error *err)
{
    fin_random r;
    int64_t given = t->starts > 1 ? run : 0, d = t->task->settings.d;
    const double *k_star = t->task->k_star, *v_star = t->task->v_star;
    fin_random_open(&r, (uint64_t)t->settings.seed, FINI_STREAM_TRAIN_START, (uint64_t)run);
    switch (t->settings.init) {
    case FIN_INIT_OVERLAPS:
        return with_overlaps(t, &t->start[given], &r, k, v, err);
    case FIN_INIT_VECTORS:
        for (int64_t i = 0; i < d; i++) {
            k[i] = t->start_k[given * d + i];
            v[i] = t->start_v[given * d + i];
        }
        return FIN_OK;
    case FIN_INIT_SPHERE:
        fin_random_sphere(&r, d, k);
        fin_random_sphere(&r, d, v);
        return FIN_OK;
    default: { /* on M: k without v*, v without k* and what k has beside k* */
        fin_random_sphere(&r, d, k);
        make_unit(d, k, 1, &v_star);
        double *side = fini_alloc_array(d, sizeof *side);
        if (!side)
            return fini_fail_memory(err, (size_t)d * sizeof *side, "starting vectors");
        for (int64_t i = 0; i < d; i++)
            side[i] = k[i];
        const double *others[2] = {k_star, side};
        int count = without(d, side, k_star) > 1e-12 ? 2 : 1;
        fin_random_sphere(&r, d, v);
        make_unit(d, v, count, others);
        fini_free(side);
        return FIN_OK;
    }
    }
}
