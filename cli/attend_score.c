/* How good predictions were: error, log score, coverage, PIT. */
#include "attend.h"

#include <math.h>

const double attend_levels[ATTEND_LEVELS] = {0.5, 0.9, 0.95};

/* P(new value <= the one that came). */
double attend_pit(double value, double mean, double variance)
{
    double error = value - mean;
    if (variance <= 0)
        return error > 0 ? 1 : error < 0 ? 0 : 0.5;
    return 0.5 * erfc(-error / sqrt(2 * variance));
}

static double spread_of(int64_t n, int64_t dv, int64_t j, const double *values, const double *mean)
{
    double sum = 0, square = 0, count = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i * dv + j]) && isfinite(mean[i * dv + j])) {
            sum += values[i * dv + j];
            count++;
        }
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i * dv + j]) && isfinite(mean[i * dv + j])) {
            double x = values[i * dv + j] - sum / count;
            square += x * x;
        }
    return square;
}

void attend_judge(const attend_fit *fit, int64_t n, int64_t j, const double *values,
                  const double *mean, const double *variance, double noise, attend_score *score)
{
    const double log_two_pi = 1.8378770664093454836;
    int64_t dv = fit->data->dv;
    bool density = fit->settings.form == FIN_CROSS_CME;
    double square = 0, logs = 0;
    *score = (attend_score){.count = 0};
    for (int64_t i = 0; i < n; i++) {
        double v = values[i * dv + j], m = mean[i * dv + j], var = variance[i * dv + j] + noise;
        if (!isfinite(v) || !isfinite(m))
            continue;
        double pit = attend_pit(v, m, var);
        int bin = (int)(ATTEND_BINS * pit);
        score->pit[bin < ATTEND_BINS ? bin : ATTEND_BINS - 1]++;
        for (int k = 0; k < ATTEND_LEVELS; k++)
            score->coverage[k] += fabs(pit - 0.5) <= attend_levels[k] / 2;
        square += (v - m) * (v - m);
        logs -= 0.5 * ((v - m) * (v - m) / var + log(var) + log_two_pi);
        score->count++;
    }
    double count = (double)score->count;
    score->rmse = sqrt(square / count);
    score->r2 = 1 - square / spread_of(n, dv, j, values, mean);
    score->log_score = density ? logs / count : NAN;
    for (int k = 0; k < ATTEND_LEVELS; k++)
        score->coverage[k] /= count;
}
