/* What the size of the data alone says about settings: where a search starts and how wide it is. */
#include "context/tune.h"

#include <math.h>

static fin_status check_rows(const char *what, const double *rows, int64_t n, int64_t d,
                             fin_error *err)
{
    for (int64_t i = 0; i < n * d; i++)
        if (!isfinite(rows[i]))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "tune: %s %lld has %g in column %lld; finite numbers are needed", what,
                             (long long)(i / d), rows[i], (long long)(i % d));
    return FIN_OK;
}

fin_status fini_tune_check(const fin_tune_data *data, fin_error *err)
{
    const int64_t most = INT64_C(1) << 40;
    FINI_NEED(err, data->offsets, data->keys, data->values);
    if (data->n < 1 || data->n > most || data->dk < 1 || data->dk > most || data->dv < 1 ||
        data->dv > most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tune: n = %lld sequences, dk = %lld, dv = %lld; each must be at least 1",
                         (long long)data->n, (long long)data->dk, (long long)data->dv);
    if (data->offsets[0] != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tune: offsets start at %lld, not at 0",
                         (long long)data->offsets[0]);
    for (int64_t i = 0; i < data->n; i++)
        if (data->offsets[i + 1] < data->offsets[i])
            return fini_fail(err, FIN_ERR_ARGUMENT, "tune: offsets fall after sequence %lld",
                             (long long)i);
    int64_t tokens = data->offsets[data->n];
    if (tokens < 1 || tokens > most / data->dk || tokens > most / data->dv)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tune: %lld tokens; at least one is needed, and fewer than 2^40 numbers",
                         (long long)tokens);
    FINI_TRY(check_rows("key", data->keys, tokens, data->dk, err));
    return check_rows("value", data->values, tokens, data->dv, err);
}

/* Mean square of every d-th number, and about their mean: two passes, so that nothing cancels. */
static void squares(const double *x, int64_t n, int64_t d, double *square, double *spread)
{
    double mean = 0;
    *square = *spread = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i * d] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        *square += x[i * d] * x[i * d] / (double)n;
        *spread += (x[i * d] - mean) * (x[i * d] - mean) / (double)n;
    }
    /* What rounding leaves of a constant is no spread. */
    if (*spread <= 1e-28 * *square)
        *spread = 0;
}

void fini_tune_measure(const fin_tune_data *data, fini_tune_size *size)
{
    int64_t tokens = data->offsets[data->n];
    double square, spread;
    *size = (fini_tune_size){0, 0, 0, 0};
    for (int64_t j = 0; j < data->dv; j++) {
        squares(data->values + j, tokens, data->dv, &square, &spread);
        size->mean_square += square / (double)data->dv;
        size->variance += spread / (double)data->dv;
    }
    for (int64_t j = 0; j < data->dk; j++) {
        squares(data->keys + j, tokens, data->dk, &square, &spread);
        size->norm_square += square;
        size->norm_spread += spread;
    }
}

bool fini_tune_centred(const fin_cross_settings *cross)
{
    return cross->kernel >= FIN_KERNEL_RBF;
}

/* A constant column, or one that overflows, says nothing: 1. */
static double positive(double x)
{
    return x > 0 && isfinite(x) ? fmin(fmax(x, 1e-90), 1e90) : 1;
}

double fini_tune_column(const fin_tune_data *data, int64_t column, bool centred)
{
    double square, spread;
    squares(data->keys + column, data->offsets[data->n], data->dk, &square, &spread);
    return positive(sqrt(centred ? spread : square));
}

/* The mean of k(a, a), about. */
static double diagonal(const fin_cross_settings *cross, double norm_square)
{
    double product = norm_square / (cross->scale * cross->scale);
    switch (cross->kernel) {
    case FIN_KERNEL_LINEAR:
        return product;
    case FIN_KERNEL_POLYNOMIAL:
        return pow(cross->offset + product, (double)cross->degree);
    case FIN_KERNEL_EXPONENTIAL:
        return exp(product);
    default:
        return 1;
    }
}

fin_status fini_tune_guess(fin_cross_settings *cross, double *scales, unsigned which,
                           const fin_tune_data *data, fin_error *err)
{
    FINI_NEED(err, cross, data);
    FINI_TRY(fini_tune_check(data, err));
    fini_tune_size size;
    fini_tune_measure(data, &size);
    bool centred = fini_tune_centred(cross);
    double norm = centred ? size.norm_spread : size.norm_square;
    if (which & FIN_TUNE_LEVEL)
        cross->level = fmin(100 * size.mean_square, 1e100);
    if (which & FIN_TUNE_SCALE)
        cross->scale = scales ? 1 : positive(sqrt(norm));
    if (which & FIN_TUNE_TEMPERATURE)
        cross->temperature = positive(size.norm_square / (double)data->dk);
    for (int64_t j = 0; scales && j < data->dk; j++) /* a key over its scales has norm 1 */
        scales[j] = fini_tune_column(data, j, centred) * sqrt((double)data->dk) / cross->scale;
    double spread = positive(cross->level > 0 ? size.variance : size.mean_square);
    double square = scales ? cross->scale * cross->scale : size.norm_square;
    if (which & FIN_TUNE_PRIOR)
        cross->prior = positive(spread / positive(diagonal(cross, square)));
    if (which & FIN_TUNE_NOISE)
        cross->noise = positive(0.1 * spread);
    return FIN_OK;
}
