/* How well the location can be known when tokens differ only in their mean (spiked) or when it is
 * drawn by softmax (max): exact expectations of softmax weights, by quadrature, for any L.
 *
 * Write w_l = A_l / sum A with A = exp(score), 1/sum^j as an integral over s = e^t of s^j exp(-s sum),
 * and the tokens fall apart. With b the standard deviation of a score, G standard normal and
 *     K0(t) = E[exp(-e^(t + b G))],   K1(t) = E[e^(t + b G) exp(-e^(t + b G))]:
 *
 *     spiked (b = sqrt snr):  1 - E[w_J]      = (L-1)   int K1(t) K0(t + snr) K0(t)^(L-2) dt
 *     max    (b = snr):       1 - E[sum w^2]  = L (L-1) int K1(t)^2           K0(t)^(L-2) dt
 *
 * Every term is positive, so small errors are relatively exact too. All functions are analytic and
 * decay fast: trapezoidal sums converge exponentially. The outer step is halved until the sum stands.
 * For b >= 1 the inner mean is taken over x = t + b G against the Gumbel density e^(x - e^x), which is
 * smooth at scale one however large b is; for b < 1 over G. */
#include "theory/theory.h"
#include "base/constants.h"

#include <math.h>

enum { X_NODES = 430, G_NODES = 77 };

typedef struct scores {
    double b;
    int nodes;
    double node[X_NODES], weight[X_NODES]; /* x and its density, or G and its density */
} scores;

static void prepare(scores *q, double b)
{
    q->b = b;
    if (b >= 1) {
        q->nodes = X_NODES;
        for (int i = 0; i < X_NODES; i++) {
            q->node[i] = -102 + 0.25 * i; /* up to 5.25: e^(x - e^x) is 1e-80 there */
            q->weight[i] = 0.25 * exp(q->node[i] - exp(q->node[i]));
        }
    } else {
        q->nodes = G_NODES;
        for (int i = 0; i < G_NODES; i++) {
            q->node[i] = -9.5 + 0.25 * i;
            q->weight[i] = 0.25 * FINI_NORMAL_0 * exp(-0.5 * q->node[i] * q->node[i]);
        }
    }
}

/* K1(t), K0(t) and 1 - K0(t), each without cancellation. */
static void evaluate(const scores *q, double t, double *K1, double *K0, double *rest)
{
    *K1 = *K0 = *rest = 0;
    for (int i = 0; i < q->nodes; i++) {
        if (q->b >= 1) {
            double at = (q->node[i] - t) / q->b;
            if (q->weight[i] == 0)
                continue;
            *K1 += q->weight[i] * FINI_NORMAL_0 * exp(-0.5 * at * at) / q->b;
            double tail =
                0.5 * erfc(fabs(at) * FINI_ROOT_HALF); /* the smaller of Phi and 1 - Phi */
            *K0 += q->weight[i] * (at > 0 ? 1 - tail : tail);
            *rest += q->weight[i] * (at > 0 ? tail : 1 - tail);
        } else {
            double x = t + q->b * q->node[i], e = exp(x);
            *K1 += q->weight[i] * exp(x - e);
            *K0 += q->weight[i] * exp(-e);
            *rest += q->weight[i] * -expm1(-e);
        }
    }
}

/* K0^n, from whichever of K0 and 1 - K0 is the accurate one. */
static double power(double K0, double rest, double n)
{
    if (n <= 0)
        return 1;
    return rest < 0.5 ? exp(n * log1p(-rest)) : K0 > 0 ? exp(n * log(K0)) : 0;
}

/* The integrand at t; shift: snr for spiked, none (squared) for max. */
static double integrand(const scores *q, double t, double snr, int spiked, int64_t L)
{
    double K1, K0, rest, other, other0, other_rest;
    evaluate(q, t, &K1, &K0, &rest);
    if (K1 == 0)
        return 0;
    double many = power(K0, rest, (double)(L - 2));
    if (!spiked)
        return K1 * K1 * many;
    evaluate(q, t + snr, &other, &other0, &other_rest);
    return K1 * other0 * many;
}

static fin_status integrate(double b, double snr, int spiked, int64_t L, fin_estimate *risk,
                            fin_error *err)
{
    scores q;
    prepare(&q, b);
    double scale = b > 1 ? b : 1, low = -102 - 38 * b, high = 6 + 38 * b;
    /* Points of one level are those between the points of the level before. */
    double step = 2 * scale, sum = 0, value = 0, previous;
    int64_t points = (int64_t)((high - low) / step) + 1;
    for (int64_t i = 0; i <= points; i++)
        sum += integrand(&q, low + (double)i * step, snr, spiked, L);
    value = sum * step;
    for (int level = 0; level < 10; level++) {
        for (int64_t i = 0; i < points; i++)
            sum += integrand(&q, low + ((double)i + 0.5) * step, snr, spiked, L);
        points *= 2;
        step /= 2;
        previous = value;
        value = sum * step;
        if (level > 0 && fabs(value - previous) <= 1e-13 * value + 1e-290) {
            double front = (double)(L - 1) * (spiked ? 1 : (double)L);
            *risk = (fin_estimate){.value = front * value,
                                   .error = front * (fabs(value - previous) + 0x1p-49 * value),
                                   .method = FIN_METHOD_QUADRATURE};
            return FIN_OK;
        }
    }
    return fini_fail(err, FIN_ERR_NUMERIC, "the quadrature did not settle at snr = %g, L = %lld",
                     snr, (long long)L);
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
    fin_status status = check(snr, 1e18, L, err);
    if (status)
        return status;
    *risk = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    return L == 1 ? FIN_OK : integrate(sqrt(snr), snr, 1, L, risk, err);
}

fin_status fin_max_bayes(double snr, int64_t L, fin_estimate *risk, fin_error *err)
{
    FINI_NEED(err, risk);
    fin_status status = check(snr, INFINITY, L, err);
    if (status)
        return status;
    *risk = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    return L == 1 || isinf(snr) ? FIN_OK : integrate(snr, 0, 0, L, risk, err);
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

fin_status fini_over_lengths(const fin_task *task, fini_at_length *value, double snr,
                             fin_estimate *mean, fin_error *err)
{
    int64_t count = count_lengths(task);
    *mean = (fin_estimate){0, 0, FIN_METHOD_QUADRATURE, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        double p = 1 / (double)count;
        if (task->lengths > 1)
            p = task->length_cumulated[i] - (i ? task->length_cumulated[i - 1] : 0);
        fin_estimate risk;
        fin_status status =
            value(snr, task->lengths > 1 ? task->length[i] : task->shortest + i, &risk, err);
        if (status)
            return status;
        mean->value += p * risk.value;
        mean->error += p * risk.error;
    }
    return FIN_OK;
}
