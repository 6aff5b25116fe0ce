/* How well a probe reads: share of variance explained, or accuracy and log loss. */
#include "encoder/probe.h"

#include <math.h>

void fini_probe_score_none(fin_probe_score *score)
{
    *score = (fin_probe_score){.r2 = NAN,
                               .r2_least = NAN,
                               .r2_most = NAN,
                               .rmse = NAN,
                               .accuracy = NAN,
                               .accuracy_se = NAN,
                               .log_loss = NAN,
                               .penalty = NAN};
}

void fini_probe_score_classes(int64_t n, int64_t classes, const double *y, const double *P,
                              fin_probe_score *score)
{
    double right = 0, loss = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *row = P + i * classes;
        int64_t best = 0, own = (int64_t)y[i];
        for (int64_t c = 1; c < classes; c++)
            best = row[c] > row[best] ? c : best;
        right += best == own;
        loss -= log(fmax(row[own], 1e-15));
    }
    score->accuracy = right / (double)n;
    score->accuracy_se = sqrt(score->accuracy * (1 - score->accuracy) / (double)n);
    score->log_loss = loss / (double)n;
}

void fini_probe_score_numbers(int64_t n, int64_t m, const double *y, const double *out,
                              fin_probe_score *score, double *column_r2, int64_t room)
{
    double sum = 0, squares = 0, counted = 0, least = INFINITY, most = -INFINITY;
    for (int64_t c = 0; c < m; c++) {
        double mean, deviation, error = 0;
        fini_probe_column(n, m, y + c, &mean, &deviation);
        for (int64_t i = 0; i < n; i++)
            error += pow(y[i * m + c] - out[i * m + c], 2) / (double)n;
        double r2 = deviation > 0 ? 1 - error / (deviation * deviation) : NAN;
        squares += error / (double)m;
        if (column_r2 && c < room)
            column_r2[c] = r2;
        if (isnan(r2))
            continue;
        sum += r2;
        counted++;
        least = fmin(least, r2);
        most = fmax(most, r2);
    }
    score->r2 = counted > 0 ? sum / counted : NAN;
    score->r2_least = counted > 0 ? least : NAN;
    score->r2_most = counted > 0 ? most : NAN;
    score->rmse = sqrt(squares);
}
