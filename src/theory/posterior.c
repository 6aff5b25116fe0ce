/* Exact expectations of softmax weights, by quadrature, for any L: how well the location can be known when
 * tokens differ only in their mean (spiked) or when it is drawn by softmax (max), and how often any softmax
 * attention on M misses it.
 *
 * Write w_l = A_l / sum A with A = exp(score), 1/sum^j as an integral over s = e^t of s^j exp(-s sum),
 * and the tokens fall apart. With b the standard deviation of a score, G standard normal and
 *     K0(t) = E[exp(-e^(t + b G))],   K1(t) = E[e^(t + b G) exp(-e^(t + b G))]:
 *
 *     spiked (b = sqrt snr):  1 - E[w_J]      = (L-1)   int K1(t) K0(t + snr) K0(t)^(L-2) dt
 *     max    (b = snr):       1 - E[sum w^2]  = L (L-1) int K1(t)^2           K0(t)^(L-2) dt
 *
 *
 * and on M, with b = lam for the score of an irrelevant token, N(lam mu kappa, (lam gamma)^2) for that of the relevant
 * one, H(t) its K0, and K2(t) = E[e^(2 (t + b G)) exp(-e^(t + b G))]:
 *
 *     E[1 - w_J]             = (L-1)       int K1(t)   H(t) K0(t)^(L-2) dt
 *     E[sum_{l != J} w_l^2]  = (L-1)       int K2(t)   H(t) K0(t)^(L-2) dt
 *     E[(1 - w_J)^2] - that  = (L-1) (L-2) int K1(t)^2 H(t) K0(t)^(L-3) dt
 *
 * Every term is positive, so small errors are relatively exact too. All functions are analytic and
 * decay fast: trapezoidal sums converge exponentially. The outer step is halved until the sum stands.
 * For b >= 1 the inner mean is taken over x = t + b G against the Gumbel density e^(x - e^x), which is
 * smooth at scale one however large b is; for b < 1 over G. */
#include "theory/theory.h"
#include "base/constants.h"

#include <math.h>

enum { X_NODES = FINI_SCORE_NODES, G_NODES = 77, X_MORE = FINI_SCORE_MORE };

void fini_scores_prepare(fini_scores *q, double b, double lower)
{
    q->b = b;
    if (b >= 1) {
        int more = (int)(4 * fmax(0, fmin(lower, 0.25 * X_MORE)));
        q->nodes = X_NODES + more;
        for (int i = 0; i < q->nodes; i++) {
            q->node[i] = -102 + 0.25 * (i - more); /* up to 5.25: e^(x - e^x) is 1e-80 there */
            q->weight[i] = 0.25 * exp(q->node[i] - exp(q->node[i]));
            q->more[i] = q->weight[i] * exp(q->node[i]);
        }
    } else {
        q->nodes = G_NODES;
        for (int i = 0; i < G_NODES; i++) {
            q->node[i] = -9.5 + 0.25 * i;
            q->weight[i] = 0.25 * FINI_NORMAL_0 * exp(-0.5 * q->node[i] * q->node[i]);
        }
    }
}

fini_score_means fini_scores_at(const fini_scores *q, double t)
{
    fini_score_means K = {0, 0, 0, 0};
    for (int i = 0; i < q->nodes; i++) {
        if (q->b >= 1) {
            double at = (q->node[i] - t) / q->b;
            if (q->weight[i] == 0)
                continue;
            double density = FINI_NORMAL_0 * exp(-0.5 * at * at) / q->b;
            K.K1 += q->weight[i] * density;
            K.K2 += q->more[i] * density;
            double tail =
                0.5 * erfc(fabs(at) * FINI_ROOT_HALF); /* the smaller of Phi and 1 - Phi */
            K.K0 += q->weight[i] * (at > 0 ? 1 - tail : tail);
            K.rest += q->weight[i] * (at > 0 ? tail : 1 - tail);
        } else {
            double x = t + q->b * q->node[i], e = exp(x);
            K.K1 += q->weight[i] * exp(x - e);
            K.K2 += q->weight[i] * exp(2 * x - e);
            K.K0 += q->weight[i] * exp(-e);
            K.rest += q->weight[i] * -expm1(-e);
        }
    }
    return K;
}

/* K0^n, from whichever of K0 and 1 - K0 is the accurate one. */
static double power(double K0, double rest, double n)
{
    if (n <= 0)
        return 1;
    return rest < 0.5 ? exp(n * log1p(-rest)) : K0 > 0 ? exp(n * log(K0)) : 0;
}

/* What is integrated: the answers of one t, added to sum[]. */
typedef struct integral {
    fini_scores others, relevant;
    double shift;         /* spiked, softmax: mean score of the relevant token */
    int64_t L;            /* spiked, max */
    const fin_task *task; /* softmax: its lengths */
    int count;            /* of the answers, at most 3 */
    void (*add)(const struct integral *q, double t, double sum[3]);
} integral;

static void add_spiked(const integral *q, double t, double sum[3])
{
    fini_score_means K = fini_scores_at(&q->others, t);
    if (K.K1 > 0)
        sum[0] += (double)(q->L - 1) * K.K1 * fini_scores_at(&q->relevant, t + q->shift).K0 *
                  power(K.K0, K.rest, (double)(q->L - 2));
}

static void add_max(const integral *q, double t, double sum[3])
{
    fini_score_means K = fini_scores_at(&q->others, t);
    sum[0] +=
        (double)q->L * (double)(q->L - 1) * K.K1 * K.K1 * power(K.K0, K.rest, (double)(q->L - 2));
}

/* The step of a trapezoidal sum is halved until all answers stand. Points of one level are those between the
 * points of the level before. */
static bool integrate(const integral *q, double lower, fin_estimate out[])
{
    double b = q->others.b, low = -102 - 38 * b - lower, high = 6 + 38 * b;
    double step = 2 * fmax(b, 1), sum[3] = {0, 0, 0}, value[3], previous[3];
    int64_t points = (int64_t)((high - low) / step) + 1;
    for (int64_t i = 0; i <= points; i++)
        q->add(q, low + (double)i * step, sum);
    for (int k = 0; k < q->count; k++)
        value[k] = sum[k] * step;
    for (int level = 0; level < 10; level++) {
        for (int64_t i = 0; i < points; i++)
            q->add(q, low + ((double)i + 0.5) * step, sum);
        points *= 2;
        step /= 2;
        bool stands = level > 0;
        for (int k = 0; k < q->count; k++) {
            previous[k] = value[k];
            value[k] = sum[k] * step;
            stands = stands && fabs(value[k] - previous[k]) <= 1e-13 * value[k] + 1e-290;
        }
        for (int k = 0; k < q->count && stands; k++)
            out[k] = (fin_estimate){.value = value[k],
                                    .error = fabs(value[k] - previous[k]) + 0x1p-49 * value[k],
                                    .method = FIN_METHOD_QUADRATURE};
        if (stands)
            return true;
    }
    return false;
}

static fin_status of_length(void (*add)(const integral *, double, double[3]), double b,
                            double shift, int64_t L, fin_estimate *risk, fin_error *err)
{
    integral q = {.shift = shift, .L = L, .count = 1, .add = add};
    fini_scores_prepare(&q.others, b, 0);
    q.relevant = q.others;
    if (integrate(&q, 0, risk))
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC, "the quadrature did not settle at snr = %g, L = %lld",
                     shift > 0 ? shift : b, (long long)L);
}

static fin_status check(double snr, double highest, int64_t L, fin_error *err)
{
    if (!(snr >= 0 && snr <= highest))
        return fini_fail(err, FIN_ERR_ARGUMENT, "snr = %g; it must be from 0 to %g", snr, highest);
    if (L < 1 || L > FIN_L_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld; it must be from 1 to %lld", (long long)L,
                         (long long)FIN_L_MAX);
    return FIN_OK;
}

fin_status fin_spiked_bayes(double snr, int64_t L, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, risk);
    FINI_TRY(check(snr, 1e18, L, err));
    *risk = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    return L == 1 ? FIN_OK : of_length(add_spiked, sqrt(snr), snr, L, risk, err);
}

fin_status fin_max_bayes(double snr, int64_t L, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, risk);
    FINI_TRY(check(snr, INFINITY, L, err));
    *risk = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    return L == 1 || isinf(snr) ? FIN_OK : of_length(add_max, snr, 0, L, risk, err);
}

double fin_spiked_linear(double snr, int64_t L)
{
    double l = (double)L;
    return L <= 1 ? 0 : 1 / (l / (l - 1) + snr / l);
}

enum { FEW_LENGTHS = 64 };

static int64_t count_lengths(const fin_task *task)
{
    return task->lengths > 1 ? task->lengths : task->longest - task->shortest + 1;
}

bool fini_few_lengths(const fin_task *task)
{
    return count_lengths(task) <= FEW_LENGTHS;
}

/* The i-th length and its probability. */
static int64_t length_at(const fin_task *task, int64_t i, double *p)
{
    *p = 1 / (double)count_lengths(task);
    if (task->lengths <= 1)
        return task->shortest + i;
    *p = task->length_cumulated[i] - (i ? task->length_cumulated[i - 1] : 0);
    return task->length[i];
}

fin_status fini_over_lengths(const fin_task *task, fini_at_length *value, double snr,
                             fin_estimate *mean, fin_error *err)
{
    *mean = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    for (int64_t i = 0; i < count_lengths(task); i++) {
        double p;
        int64_t L = length_at(task, i, &p);
        fin_estimate risk;
        FINI_TRY(value(snr, L, &risk, err));
        mean->value += p * risk.value;
        mean->error += p * risk.error;
    }
    return FIN_OK;
}

/* ---- any softmax on M -------------------------------------------------------------------------- */

static void add_softmax(const integral *q, double t, double sum[3])
{
    fini_score_means K = fini_scores_at(&q->others, t);
    if (K.K1 == 0)
        return;
    double H = fini_scores_at(&q->relevant, t + q->shift).K0, one = 0, two = 0;
    for (int64_t i = 0; i < count_lengths(q->task); i++) {
        double p, L = (double)length_at(q->task, i, &p);
        one += p * (L - 1) * power(K.K0, K.rest, L - 2);
        two += p * (L - 1) * (L - 2) * power(K.K0, K.rest, L - 3);
    }
    sum[0] += K.K1 * H * one;
    sum[1] += K.K2 * H * one;
    sum[2] += K.K1 * K.K1 * H * two;
}

/* lam = inf: the relevant token's score is not the largest,
 *
 *     int phi(g) (1 - Phi(mu kappa + gamma g)^(L-1)) dg   = (L-1) int phi(x) Phi((x - mu kappa)/gamma) Phi(x)^(L-2) dx,
 *
 * the first, which is smooth, for gamma <= 1, the second for gamma > 1. */
static double missed(const fin_task *task, double mean, double x)
{
    double gamma = task->settings.gamma, at = gamma > 1 ? x : mean + gamma * x, sum = 0;
    double above = 0.5 * erfc(at * FINI_ROOT_HALF), below = 0.5 * erfc(-at * FINI_ROOT_HALF);
    for (int64_t i = 0; i < count_lengths(task); i++) {
        double p, L = (double)length_at(task, i, &p);
        if (gamma > 1)
            sum += p * (L - 1) * power(below, above, L - 2);
        else if (L > 1)
            sum += p * (above < 0.5 ? -expm1((L - 1) * log1p(-above)) : 1 - pow(below, L - 1));
    }
    if (gamma > 1)
        sum *= 0.5 * erfc((mean - x) / gamma * FINI_ROOT_HALF);
    return FINI_NORMAL_0 * exp(-0.5 * x * x) * sum;
}

/* int f(x) dx, f as smooth as the normal density and not above it by much. */
typedef struct line {
    double (*f)(const fin_task *task, double mean, double x);
    const fin_task *task;
    double mean;
} line;

static bool over_line(const line *q, fin_estimate *out)
{
    double step = 0.5, sum = 0, value, previous;
    int64_t points = 156; /* -39 to 39 */
    for (int64_t i = 0; i <= points; i++)
        sum += q->f(q->task, q->mean, -39 + (double)i * step);
    value = sum * step;
    for (int level = 0; level < 10; level++) {
        for (int64_t i = 0; i < points; i++)
            sum += q->f(q->task, q->mean, -39 + ((double)i + 0.5) * step);
        points *= 2;
        step /= 2;
        previous = value;
        value = sum * step;
        if (level > 0 && fabs(value - previous) <= 1e-13 * value + 1e-290) {
            *out = (fin_estimate){.value = value,
                                  .error = fabs(value - previous) + 0x1p-49 * value,
                                  .method = FIN_METHOD_QUADRATURE};
            return true;
        }
    }
    return false;
}

bool fini_softmax_misses(const fin_task *task, double lam, double kappa, fini_misses *out)
{
    const fin_task_settings *s = &task->settings;
    fin_estimate part[3];
    if (isinf(lam)) {
        if (!over_line(&(line){missed, task, s->mu * kappa}, &part[0]))
            return false;
        out->once = out->squared = out->others = part[0];
        return true;
    }
    integral q = {.shift = lam * s->mu * kappa, .task = task, .count = 3, .add = add_softmax};
    double lower = fmax(0, fmin(q.shift - lam * lam, 0.25 * X_MORE));
    fini_scores_prepare(&q.others, lam, lower);
    fini_scores_prepare(&q.relevant, lam * s->gamma, 0);
    if (!integrate(&q, lower, part))
        return false;
    out->once = part[0];
    out->others = part[1];
    out->squared = part[1];
    out->squared.value += part[2].value;
    out->squared.error += part[2].error;
    return true;
}

/* E[max of L normals] = L (L-1) int phi(x)^2 Phi(x)^(L-2) dx, by parts. */
static double largest(const fin_task *task, double mean, double x)
{
    (void)mean;
    double density = FINI_NORMAL_0 * exp(-0.5 * x * x), sum = 0;
    double above = 0.5 * erfc(x * FINI_ROOT_HALF), below = 0.5 * erfc(-x * FINI_ROOT_HALF);
    for (int64_t i = 0; i < count_lengths(task); i++) {
        double p, L = (double)length_at(task, i, &p);
        sum += p * L * (L - 1) * power(below, above, L - 2);
    }
    return density * density * sum;
}

/* By Stein's lemma E[sum_l w_l X_l.k*] = snr E[sum_l w_l (1 - w_l)]. */
fin_status fini_mean_score(const fin_task *task, fin_estimate *mean, fin_error *err)
{
    double snr = task->kind->lam(&task->settings);
    if (isinf(snr))
        return over_line(&(line){largest, task, 0}, mean)
                   ? FIN_OK
                   : fini_fail(err, FIN_ERR_NUMERIC,
                               "the mean of the largest score does not settle");
    FINI_TRY(fini_over_lengths(task, fin_max_bayes, snr, mean, err));
    mean->value *= snr;
    mean->error *= snr;
    return FIN_OK;
}
