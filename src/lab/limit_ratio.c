/* measure = ratio of the command `limit`: cme over softmax at one query.
 *
 * m(k) = k. Outputs are averaged in the plane of the query and the keys' mean direction, where
 * symmetry leaves all of their mean; C(q) = |cme| / |softmax| and the cosine between the two are
 * those of the means. */
#include "lab/limit.h"

#include "finetti/random.h"
#include "base/constants.h"
#include "theory/sphere.h"

#include <math.h>

/* Queries cos(angle) e_1 + sin(angle) t and, orthogonal to them and towards e_1, the sides
 * sin(angle) e_1 - cos(angle) t, with t a random direction orthogonal to e_1. */
static void turn(fini_limit *w, int64_t context)
{
    int64_t d = w->v->d;
    double radians = w->v->angle * (FINI_PI / 180);
    double c = cos(radians), s = sin(radians);
    fin_random r;
    fin_random_open(&r, (uint64_t)w->v->seed, FINI_STREAM_RATE_TURNS, (uint64_t)context);
    for (int64_t i = 0; i < w->asked; i++) {
        double *q = w->queries + i * d, *side = w->side + i * d, t[16];
        fin_random_sphere(&r, d - 1, t);
        q[0] = c;
        side[0] = s;
        for (int64_t j = 1; j < d; j++) {
            q[j] = s * t[j - 1];
            side[j] = -c * t[j - 1];
        }
    }
}

/* sum_l k(q, k_l) / lam over the tokens that cme sees: with a ridge far above L cme is softmax times
 * this, because (G + lam)^-1 is 1 / lam then. */
static double mass(const fini_limit *w, const double *q)
{
    const fini_limit_settings *v = w->v;
    double sum = 0;
    for (int64_t l = 0; l < v->L; l++)
        sum += exp(v->kappa * (fini_dot_in_order(v->d, q, w->keys + l * v->d) - 1));
    return sum / (v->alpha * (double)v->L);
}

/* Means over the queries of the output along query and side; `massive`, unless NULL: times mass. */
static fin_status in_plane(fini_limit *w, fin_cross *cross, const fin_progress *progress,
                           double plane[2], double *massive, fin_error *err)
{
    int64_t d = w->v->d;
    for (int64_t first = 0; first < w->asked; first += w->block) {
        int64_t left = w->asked - first, count = left < w->block ? left : w->block;
        FINI_TRY(fin_cross_predict(cross, count, w->queries + first * d, w->out, NULL, NULL,
                                   progress, err));
        for (int64_t i = 0; i < count; i++) {
            const double *q = w->queries + (first + i) * d, *side = w->side + (first + i) * d;
            const double along[2] = {fini_dot_in_order(d, w->out + i * d, q),
                                     fini_dot_in_order(d, w->out + i * d, side)};
            double factor = massive ? mass(w, q) : 0;
            for (int j = 0; j < 2; j++) {
                plane[j] += along[j] / (double)w->asked;
                if (massive)
                    massive[j] += factor * along[j] / (double)w->asked;
            }
        }
    }
    return FIN_OK;
}

fin_status fini_limit_one_ratio(fini_limit *w, int64_t context, const fin_progress *progress,
                                fin_error *err)
{
    double *planar = w->planar + FINI_LIMIT_PLANE * context;
    turn(w, context);
    FINI_TRY(fini_limit_load(w, context, progress, err));
    FINI_TRY(in_plane(w, w->cme, progress, planar, NULL, err));
    return in_plane(w, w->softmax, progress, planar + 2, w->v->longer == 1 ? planar + 4 : NULL,
                    err);
}

/* Ratio, cosine and proportion of the mean outputs, without one context (or none: -1). */
static void compare(const fini_limit *w, int64_t without, double out[3])
{
    double m[FINI_LIMIT_PLANE] = {0};
    for (int64_t i = 0; i < w->v->contexts; i++)
        for (int j = 0; j < FINI_LIMIT_PLANE && i != without; j++)
            m[j] += w->planar[FINI_LIMIT_PLANE * i + j];
    double cme = hypot(m[0], m[1]), softmax = hypot(m[2], m[3]);
    out[0] = cme / softmax;
    out[1] = (m[0] * m[2] + m[1] * m[3]) / (cme * softmax);
    out[2] = cme / hypot(m[4], m[5]);
}

/* Quenouille and Tukey's jackknife: the numbers without one context, their spread times (n-1)^2. */
void fini_limit_add_ratio(const fini_limit *w, fin_result *result)
{
    static const char *const names[3] = {"ratio", "cosine", "proportion"};
    double n = (double)w->v->contexts, number[3];
    fini_average average[3] = {0};
    for (int64_t i = 0; i < w->v->contexts; i++) {
        compare(w, i, number);
        for (int j = 0; j < 3; j++)
            fini_average_add(&average[j], number[j]);
    }
    compare(w, -1, number);
    for (int j = 0; j < (w->v->longer == 1 ? 3 : 2); j++)
        fini_result_scalar(result, names[j], number[j], (n - 1) * fini_average_error(&average[j]),
                           FIN_HOW_SIMULATION, w->v->contexts);
}

/* cme tends to m(q) = q as alpha falls, softmax to A_d(b) (kappa q + c) / b, b = |kappa q + c|; with
 * uniform keys cme to mu_1 / (mu_1 + alpha) q. */
void fini_limit_add_ratio_limits(const fini_limit_settings *v, fin_result *result)
{
    double c[16] = {0}, q[16] = {0}, limit[16] = {0}, kept = 1;
    double radians = v->angle * (FINI_PI / 180);
    c[0] = v->keys == FINI_RATE_VMF ? v->concentration : 0;
    q[0] = cos(radians);
    q[1] = sin(radians);
    fini_sphere_limit_vmf(v->d, v->kappa, c, q, limit);
    if (v->keys == FINI_RATE_SPHERE)
        kept = fini_sphere_filter_cme(v->d, v->kappa, v->alpha, 1);
    double length = sqrt(fini_dot_in_order(v->d, limit, limit));
    fini_result_scalar(result, "ratio_limit", kept / length, 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "cosine_limit", fini_dot_in_order(v->d, limit, q) / length, 0,
                       FIN_HOW_CLOSED, 0);
}
