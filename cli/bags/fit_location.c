/* Does one token decide? The mixture says so, mean pooling says that all do alike. The best of each
 * kind predicts bags that it was not fitted to, and the losses are compared bag by bag:
 *
 *     d_i = loss(mixture, i) - loss(mean, i),   loss: -log p(label), or (label - prediction)^2
 *     mean d, standard error sd(d) / sqrt(n)
 *
 * With several repeats a bag's prediction is the average over them. */
#include "bags/fit.h"

#include <math.h>
#include <stdlib.h>

static const double SMALLEST = 1e-15; /* of a probability, so that one bag cannot decide */

static double loss(const fit_run *run, const double *prediction, int64_t i, double variance)
{
    double label = run->bags->labels[i];
    if (!run->classes) {
        double off = label - prediction[i];
        return off * off / variance;
    }
    double p = prediction[i * run->classes + (int64_t)label];
    return -log(p < SMALLEST ? SMALLEST : p); /* NaN stays */
}

static double label_variance(const fit_run *run)
{
    int64_t n = run->bags->n;
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        mean += run->bags->labels[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        sum += (run->bags->labels[i] - mean) * (run->bags->labels[i] - mean);
    return sum > 0 ? sum / (double)n : 1;
}

/* Mean loss of row k on bags that were left out; NaN if there are none. */
static double mean_loss(const fit_run *run, int k, double variance)
{
    const double *prediction = fin_validation_mean(run->validation, k);
    double sum = 0, count = 0;
    for (int64_t i = 0; i < run->bags->n; i++) {
        double one = loss(run, prediction, i, variance);
        if (!isfinite(one)) /* a bag that was never left out */
            continue;
        sum += one;
        count++;
    }
    return sum / count;
}

/* The row of this model with the smallest loss, whatever it sees tokens through; -1: none. */
static int best_row(const fit_run *run, int model, double variance)
{
    int best = -1;
    double least = INFINITY;
    for (int k = 0; k < run->models; k++) {
        double one = run->model[k].model == model ? mean_loss(run, k, variance) : INFINITY;
        if (one < least) {
            least = one;
            best = k;
        }
    }
    return best;
}

fin_status fit_location(fit_run *run, fin_error *err)
{
    (void)err;
    int64_t n = run->bags->n;
    if (!run->validation || n < 2)
        return FIN_OK;
    double variance = label_variance(run), mixed = 0, pooled = 0, squares = 0, count = 0;
    int mixture = best_row(run, FIN_MODEL_MIXTURE, variance),
        mean = best_row(run, FIN_MODEL_MEAN, variance);
    if (mixture < 0 || mean < 0)
        return FIN_OK;
    const double *a = fin_validation_mean(run->validation, mixture),
                 *b = fin_validation_mean(run->validation, mean);
    for (int64_t i = 0; i < n; i++) {
        double la = loss(run, a, i, variance), lb = loss(run, b, i, variance);
        if (!isfinite(la) || !isfinite(lb)) /* a bag that was never left out */
            continue;
        mixed += la;
        pooled += lb;
        squares += (la - lb) * (la - lb);
        count++;
    }
    if (count < 2)
        return FIN_OK;
    double average = (mixed - pooled) / count, spread = squares / count - average * average;
    run->loss_mixture = mixed / count;
    run->loss_mean = pooled / count;
    run->loss_se = sqrt((spread > 0 ? spread : 0) / (count - 1));
    run->row_mixture = mixture;
    run->row_mean = mean;
    run->compared = true;
    return FIN_OK;
}
