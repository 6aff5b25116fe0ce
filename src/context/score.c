/* How good predictions were: error, log score, coverage, PIT. And what columns of keys are like. */
#include "base/base.h"
#include "finetti/context.h"
#include "base/constants.h"

#include <math.h>

static const double levels[FIN_SCORE_LEVELS] = {0.5, 0.9, 0.95};

double fin_cross_pit(double value, double mean, double variance)
{
    double error = value - mean;
    if (variance <= 0)
        return error > 0 ? 1 : error < 0 ? 0 : 0.5;
    return 0.5 * erfc(-error / sqrt(2 * variance));
}

static double spread_of(int64_t n, int64_t step, const double *values, const double *mean)
{
    double sum = 0, square = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i * step]) && isfinite(mean[i * step])) {
            sum += values[i * step];
            count++;
        }
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i * step]) && isfinite(mean[i * step])) {
            double x = values[i * step] - sum / count;
            square += x * x;
        }
    return square;
}

fin_status fin_cross_judge(int64_t n, int64_t step, const double *values, const double *mean,
                           const double *variance, double noise, fin_cross_score *score,
                           fin_error *err)
{
    FINI_NEED(err, values, mean, variance, score);
    if (n < 0 || step < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT, "judge: n = %lld, step = %lld; 0 and 1 at least",
                         (long long)n, (long long)step);
    double square = 0, logs = 0;
    *score = (fin_cross_score){.count = 0};
    for (int64_t i = 0; i < n; i++) {
        double v = values[i * step], m = mean[i * step], var = variance[i * step] + noise;
        if (!isfinite(v) || !isfinite(m))
            continue;
        if (!(var >= 0))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "judge: variance %lld is %g; it must be at least 0", (long long)i,
                             var);
        double pit = fin_cross_pit(v, m, var);
        int bin = (int)(FIN_SCORE_BINS * pit);
        score->pit[bin < FIN_SCORE_BINS ? bin : FIN_SCORE_BINS - 1]++;
        for (int k = 0; k < FIN_SCORE_LEVELS; k++)
            score->coverage[k] += fabs(pit - 0.5) <= levels[k] / 2;
        square += (v - m) * (v - m);
        logs -= 0.5 * ((v - m) * (v - m) / var + log(var) + FINI_LOG_TWO_PI);
        score->count++;
    }
    double count = (double)score->count;
    score->rmse = sqrt(square / count);
    score->r2 = 1 - square / spread_of(n, step, values, mean);
    score->log_score = logs / count;
    for (int k = 0; k < FIN_SCORE_LEVELS; k++)
        score->coverage[k] /= count;
    return FIN_OK;
}

fin_status fin_cross_measure(int64_t n, int64_t step, const double *keys, fin_cross_column *column,
                             fin_error *err)
{
    if (n < 1 || step < 1 || !keys || !column)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a column is measured from n >= 1 numbers, and not from n = %lld, step = "
                         "%lld or NULL",
                         (long long)n, (long long)step);
    fin_cross_column c = {0, 0, 0};
    double square = 0, size = 0;
    for (int64_t i = 0; i < n; i++)
        size = fmax(size, fabs(keys[i * step]));
    size = frexp(size, &c.power);
    for (int64_t i = 0; i < n; i++)
        c.mean += ldexp(keys[i * step], -c.power) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = ldexp(keys[i * step], -c.power) - c.mean;
        square += x * x / (double)n;
    }
    c.deviation = sqrt(square) > 1e-14 * size ? sqrt(square) : 0;
    *column = c;
    return FIN_OK;
}
