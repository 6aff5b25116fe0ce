/* The best that can be learnt of the task spiked from n = alpha d bags, k* and v* unknown, d large.
 *
 * q_k and q_v are the squared cosines of the posterior means of k and v with k* and v*. With Delta = eps^2, c = snr q_k and
 * V = 1 - q_v + Delta a bag looks like
 *
 *     a_l = c 1[l = J] + sqrt(c) g_l,    b_l = sqrt(q_v) h_l,    y = b_J + sqrt(V) e,    u_l = (y - b_l) / sqrt(V),
 *     p_l = softmax_l(a_l - u_l^2/2)     (the location given X and y),        g, h, e standard normal,
 *
 *     r_k = alpha snr E[p_J],                     q_k = r_k / (1 + r_k),
 *     r_v = alpha E[sum_l p_l^2 u_l^2] / V,       q_v = r_v / (1 + r_v),
 *     risk = Delta + 1 - q_v (1 - B(c)),          B(c) = fin_spiked_bayes(c, L).
 *
 * Both means are integrals over two numbers for any L: given y tokens are independent, the relevant one has the density of
 * the others times A / E[A | y], A = exp(a - u^2/2), and 1/sum A = int exp(-s sum A) ds with s = e^t gives
 *
 *     E[p_J]               = (2 pi V)^(-1/2) int int E_b[    exp(-u^2/2) K1(t + c - u^2/2)] K0(t, y)^(L-1) dt dy,
 *     E[sum_l p_l^2 u_l^2] = the same with u^2 before the exponential,
 *     K0(t, y) = 1 - E_b[1 - K0(t - u^2/2)],      u = (y - b)/sqrt(V), b ~ N(0, q_v),
 *
 * K0, K1 those of posterior.c at the standard deviation sqrt(c). Everything is analytic and decays: trapezoidal sums. The
 * means over b are sums over a grid of u, which y shares. E_b[..] has a factor sqrt(V), taken out by hand, so that V may
 * be as small as it likes: without noise and alpha > 1 it is 0 in the end.
 *
 * The map of (r_k, r_v) to itself rises in both: from the low end it climbs to the lowest fixed point, from the high end it
 * falls to the highest one. Where they differ, the posterior is where the free entropy is higher,
 *
 *     phi(high) - phi(low) = 1/2 int (r_k - q_k/(1 - q_k)) dq_k + (r_v - q_v/(1 - q_v)) dq_v      along any path. */
#include "theory/learning.h"

#include "base/constants.h"
#include "finetti/math.h"
#include "theory/theory.h"
#include "math/small.h"

#include <assert.h>
#include <math.h>

enum { TABLE = 1200, AT_T = 600, AT_Y = 48, AT_U = 1200, ROUNDS = 2000, TAPS = 6 };
static const double still = 1e-10, creep = 0.15, whole = 48; /* of log r */

typedef struct map {
    const fini_learning_task *task;
    double noise, fine; /* eps^2; the steps are so much of the usual ones */
    const fin_progress *progress;
    int64_t rounds;
    fini_scores scores;
    double first, step; /* of the table of 1 - K0 and K1 */
    int64_t nodes;
    double rest[TABLE], K1[TABLE];
    double weight[AT_Y][AT_U], half[AT_U], K0_row[AT_U], K1_row[AT_U];
} map;

/* ---- the table ----------------------------------------------------------------------------------- */

/* Below `low` 1 - K0 < e^-34: x^2/2c is what a normal score that far costs, |x| - c/2 where Gumbel's tail is cheaper. */
static void fill(map *m, double c)
{
    double b = sqrt(c), low = c > 68 ? -sqrt(68 * c) : -34 - c / 2, high = 4 + 8.3 * b;
    fini_scores_prepare(&m->scores, b, 0);
    m->step = 0.1 * fmax(1, b / 2) * m->fine;
    m->nodes = (int64_t)ceil((high - low) / m->step) + 1;
    m->first = low;
    assert(m->nodes <= TABLE);
    for (int64_t i = 0; i < m->nodes; i++) {
        fini_score_means K = fini_scores_at(&m->scores, low + (double)i * m->step);
        m->rest[i] = K.rest;
        m->K1[i] = K.K1;
    }
}

/* Lagrange's polynomial through the six nodes around x; before and after the table 0 and `after`. */
static double look_up(const map *m, const double *table, double x, double after)
{
    double at = (x - m->first) / m->step;
    if (at < 0)
        return 0;
    if (at >= (double)(m->nodes - 1))
        return after;
    int64_t i = (int64_t)at - 2;
    i = i < 0 ? 0 : i > m->nodes - TAPS ? m->nodes - TAPS : i;
    double s = at - (double)i, a = s, b = s - 1, c = s - 2, d = s - 3, e = s - 4, f = s - 5;
    const double *T = table + i;
    double ab = a * b, cd = c * d, ef = e * f;
    return (b * T[0] / -120 + a * T[1] / 24) * cd * ef +
           (d * T[2] / -12 + c * T[3] / 12) * ab * ef + (f * T[4] / -24 + e * T[5] / 120) * ab * cd;
}

/* ---- the map ------------------------------------------------------------------------------------- */

typedef struct place {
    double z[2]; /* log r_k, log r_v */
} place;

static double q_of(double z)
{
    return 1 / (1 + exp(-z));
}

/* K0(t, y)^(L-1), from 1 - K0. */
static double power(double rest, double n)
{
    return rest < 1 ? exp(n * log1p(-rest)) : n > 0 ? 0 : 1;
}

/* The density of b at the grid of u, u and -u together, for every y; returns how many u there are. */
static int64_t weigh(map *m, double q_v, double V, double y_step, double u_step, double u_most)
{
    double root = sqrt(V), scale = u_step * FINI_NORMAL_0 / sqrt(q_v);
    int64_t count = (int64_t)fmin(ceil(u_most / u_step), AT_U);
    for (int64_t k = 0; k < count; k++) {
        double u = ((double)k + 0.5) * u_step;
        m->half[k] = u * u / 2;
        for (int64_t j = 0; j < AT_Y; j++) {
            double y = ((double)j + 0.5) * y_step, less = y - root * u, more = y + root * u;
            m->weight[j][k] =
                scale * (exp(-less * less / (2 * q_v)) + exp(-more * more / (2 * q_v)));
        }
    }
    return count;
}

/* E[p_J] and E[sum p^2 u^2]. Below a standard deviation of b of `narrow` in units of u that of u is all there is. */
static void integrate(map *m, double c, double q_v, double V, double mean[2])
{
    const double narrow = 0.02 * m->fine;
    double n = (double)(m->task->L - 1), y_scale = sqrt(1 + m->noise);
    q_v = fmax(q_v, narrow * narrow * V);
    fill(m, c);
    double b = sqrt(c), t_step = 0.4 * fmax(1, b / 3) * m->fine, y_step = 0.3 * y_scale * m->fine;
    double last = m->first + (double)(m->nodes - 1) * m->step, t_low = m->first - c,
           t_high = last - c + 34;
    double spread = sqrt(q_v / V), u_step = fmin(0.15, 0.8 * spread) * m->fine;
    double u_most =
        fmin(sqrt(2 * fmax(t_high - m->first, 34)), 7 * y_scale / sqrt(V) + 7.5 * spread);
    int64_t count = weigh(m, q_v, V, y_step, u_step, u_most);
    int64_t ys = (int64_t)fmin(ceil(7 * y_scale / y_step), AT_Y);
    mean[0] = mean[1] = 0;
    for (int64_t i = 0; t_low + (double)i * t_step < t_high; i++) {
        double t = t_low + (double)i * t_step;
        for (int64_t k = 0; k < count; k++) {
            m->K0_row[k] = look_up(m, m->rest, t - m->half[k], 1);
            m->K1_row[k] = exp(-m->half[k]) * look_up(m, m->K1, t + c - m->half[k], 0);
        }
        for (int64_t j = 0; j < ys; j++) {
            double rest = 0, once = 0, twice = 0;
            for (int64_t k = 0; k < count; k++) {
                double w = m->weight[j][k], at = w * m->K1_row[k];
                rest += w * m->K0_row[k];
                once += at;
                twice += at * 2 * m->half[k];
            }
            double others = power(sqrt(V) * rest, n);
            mean[0] += others * once;
            mean[1] += others * twice;
        }
    }
    for (int k = 0; k < 2; k++) /* y and -y */
        mean[k] *= 2 * FINI_NORMAL_0 * t_step * y_step;
}

static place go(map *m, place from)
{
    const fini_learning_task *s = m->task;
    double mean[2], V = 1 / (1 + exp(from.z[1])) + m->noise;
    integrate(m, s->snr * q_of(from.z[0]), q_of(from.z[1]), V, mean);
    double z_v = fmin(log(fmax(s->alpha * mean[1] / V, 1e-300)), whole);
    /* Without noise V = 0 is a fixed point from alpha = 1 on, to which it creeps. */
    if (m->noise == 0 && s->alpha >= 1 &&
        (from.z[1] >= whole || (from.z[1] > 16 && z_v > from.z[1])))
        z_v = whole;
    return (place){{log(fmax(s->alpha * s->snr * mean[0], 1e-300)), z_v}};
}

/* ---- fixed points -------------------------------------------------------------------------------- */

/* The last two differences of residuals f say which step would make it 0, were the map linear. */
static bool secant(const place at[3], const place f[3], double step[2])
{
    double F[2][2], Z[2][2];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            F[k][i] = f[2 - i].z[k] - f[1 - i].z[k];
            Z[k][i] = at[2 - i].z[k] - at[1 - i].z[k];
        }
    double det = F[0][0] * F[1][1] - F[0][1] * F[1][0];
    double size = fabs(F[0][0] * F[1][1]) + fabs(F[0][1] * F[1][0]);
    if (!(fabs(det) > 1e-6 * size))
        return false;
    double x = (F[1][1] * f[2].z[0] - F[0][1] * f[2].z[1]) / det,
           y = (F[0][0] * f[2].z[1] - F[1][0] * f[2].z[0]) / det;
    for (int k = 0; k < 2; k++)
        step[k] = -Z[k][0] * x - Z[k][1] * y;
    return fabs(step[0]) < 0.5 && fabs(step[1]) < 0.5;
}

/* Iterates, in longer steps where it creeps in one direction; near the end by secants, which are dropped where they do
 * not bring the residual down. */
static fin_status settle(map *m, place *p, fin_error *err)
{
    place at[3] = {*p}, f[3] = {{{0}}};
    double before = INFINITY, stretch = 1;
    for (int kept = 0, round = 0; round < ROUNDS; round++) {
        double step[2];
        place to = go(m, at[2] = *p);
        for (int k = 0; k < 2; k++)
            f[2].z[k] = to.z[k] - p->z[k];
        double gap = fmax(fabs(f[2].z[0]), fabs(f[2].z[1]));
        if (gap < still)
            return FIN_OK;
        kept = gap < before && gap < 0.05 ? kept + 1 : 0;
        bool on = f[2].z[0] * f[1].z[0] >= 0 && f[2].z[1] * f[1].z[1] >= 0;
        stretch = fmax(1, fmin(on ? 1.5 * stretch : 1, creep / gap));
        if (kept > 2 && secant(at, f, step))
            *p = (place){{p->z[0] + step[0], p->z[1] + step[1]}};
        else
            for (int k = 0; k < 2; k++)
                p->z[k] = fmin(p->z[k] + stretch * f[2].z[k], whole);
        before = gap;
        for (int i = 0; i < 2; i++) {
            at[i] = at[i + 1];
            f[i] = f[i + 1];
        }
        FINI_TRY(fini_go_on(m->progress, "fixed point", (double)++m->rounds, ROUNDS, err));
    }
    return fini_fail(
        err, FIN_ERR_NUMERIC,
        "the fixed point of snr = %g, L = %lld, eps = %g, alpha = %g did not settle in "
        "%d rounds",
        m->task->snr, (long long)m->task->L, m->task->eps, m->task->alpha, (int)ROUNDS);
}

/* 2 (phi(high) - phi(low)), along the straight line in (log r_k, log r_v); dq = q (1 - q) dz. */
static double gain(map *m, place low, place high)
{
    enum { NODES = 24 };
    double x[NODES], w[NODES], sum = 0;
    fini_legendre(NODES, x, w, NULL);
    for (int i = 0; i < NODES; i++) {
        place at;
        for (int k = 0; k < 2; k++)
            at.z[k] = low.z[k] + (x[i] + 1) / 2 * (high.z[k] - low.z[k]);
        place to = go(m, at);
        for (int k = 0; k < 2; k++) {
            double q = q_of(at.z[k]), rest = 1 / (1 + exp(at.z[k]));
            sum += w[i] / 2 * (exp(to.z[k]) - exp(at.z[k])) * q * rest * (high.z[k] - low.z[k]);
        }
    }
    return sum;
}

/* ---- risks --------------------------------------------------------------------------------------- */

static fin_status look(const map *m, place at, fini_learnt *learnt, fin_error *err)
{
    double q_k = m->task->snr > 0 ? q_of(at.z[0]) : 0, q_v = q_of(at.z[1]),
           lost = 1 / (1 + exp(at.z[1]));
    fin_estimate B;
    FINI_TRY(fin_spiked_bayes(m->task->snr * q_k, m->task->L, &B, err));
    *learnt = (fini_learnt){.q_k = {.value = q_k, .method = FIN_METHOD_QUADRATURE},
                            .q_v = {.value = q_v, .method = FIN_METHOD_QUADRATURE},
                            .risk = {.value = m->noise + lost + q_v * B.value,
                                     .error = B.error,
                                     .method = FIN_METHOD_QUADRATURE}};
    return FIN_OK;
}

static void differ(fin_estimate *fine, const fin_estimate *usual)
{
    fine->error += fabs(fine->value - usual->value) + 1e-10 * fabs(fine->value);
}

/* Once more with finer steps: what changes is the error. */
static fin_status refine(map *m, place at, fini_learnt *learnt, fin_error *err)
{
    fini_learnt usual;
    FINI_TRY(look(m, at, &usual, err));
    m->fine = 0.7;
    FINI_TRY(settle(m, &at, err));
    FINI_TRY(look(m, at, learnt, err));
    m->fine = 1;
    differ(&learnt->q_k, &usual.q_k);
    differ(&learnt->q_v, &usual.q_v);
    differ(&learnt->risk, &usual.risk);
    return FIN_OK;
}

/* r of a regression on alpha d rows: the signal has the power `signal`, the noise `noise`,
 *
 *     r = alpha signal / (noise + signal (1 - q)), q = r / (1 + r):
 *     noise r^2 + (noise + (1 - alpha) signal) r - alpha signal = 0. */
static double regression(double signal, double noise, double alpha)
{
    double b = noise + (1 - alpha) * signal, root = sqrt(b * b + 4 * noise * alpha * signal);
    return b > 0       ? 2 * alpha * signal / (b + root)
           : noise > 0 ? (root - b) / (2 * noise)
                       : INFINITY;
}

/* The high end: all locations known. */
static fin_status both_ends(map *m, fini_learning *out, fin_error *err)
{
    const fini_learning_task *s = m->task;
    double lowest = s->alpha / (double)s->L, seen = regression(1, m->noise, s->alpha);
    place low = {{log(fmax(s->snr * lowest, 1e-300)), log(lowest / (1 + m->noise))}},
          high = {{log(fmax(s->alpha * s->snr, 1e-300)), fmin(log(seen), whole)}};
    if (s->L == 1)
        low = high;
    FINI_TRY(settle(m, &low, err));
    FINI_TRY(settle(m, &high, err));
    out->differ = fabs(high.z[0] - low.z[0]) > 1e-5 || fabs(high.z[1] - low.z[1]) > 1e-5;
    bool exact = m->noise == 0 && s->alpha > 1; /* phi is infinite there */
    out->low_wins = !out->differ || (!exact && gain(m, low, high) < 0);
    FINI_TRY(refine(m, out->low_wins ? low : high, &out->optimal, err));
    if (out->differ)
        FINI_TRY(refine(m, out->low_wins ? high : low, &out->other, err));
    return FIN_OK;
}

/* y = s.v* / sqrt(L) + noise of variance W = 1 - 1/L + eps^2 that is independent of s = sum_l X_l / sqrt(L), N(0, I) but for a
 * mean along k*. Ridge regression of y on s at its best penalty, W L d, is the posterior mean. Its risk is W + (1 - q)/L. */
static double linear_risk(const fini_learning_task *s)
{
    double L = (double)s->L, W = 1 - 1 / L + s->eps * s->eps;
    return W + 1 / (L * (1 + regression(1 / L, W, s->alpha)));
}

fin_status fini_learning_curve(const fini_learning_task *task, const fin_progress *progress,
                               fini_learning *out, fin_error *err)
{
    FINI_OWN(err, "a learning curve", map, m, 1, 1);
    m->task = task;
    m->noise = task->eps * task->eps;
    m->fine = 1;
    m->progress = progress;
    m->rounds = 0;
    *out = (fini_learning){.linear = {.value = linear_risk(task), .method = FIN_METHOD_CLOSED}};
    fin_status status = fin_spiked_bayes(task->snr, task->L, &out->known, err);
    out->known.value += m->noise;
    if (!status)
        status = both_ends(m, out, err);
    return status;
}
