/* The public calls about what tokens tell: the statistic, the posterior, predictions. They check
 * what comes in and take memory; the mathematics is in the files of the families. */
#include "family/family.h"

#include <math.h>
#include <string.h>

/* ---- checks ---------------------------------------------------------------------------------- */

/* n rows of `width` numbers: finite, or categories below `limit` if limit > 0. */
static fin_status check_rows(const fin_latent *latent, const char *what, int64_t n, int64_t width,
                             int64_t limit, const double *rows, fin_error *err)
{
    const char *name = latent->family->name;
    if (!rows && n > 0 && width > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: the %s are NULL; %lld numbers are needed",
                         name, what, (long long)(n * width));
    for (int64_t i = 0; i < n * width; i++) {
        double x = rows[i];
        if (limit > 0 && !(x >= 0 && x < (double)limit && x == floor(x)))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: number %lld of the %s is %g; it must be a whole number from 0 to "
                             "%lld",
                             name, (long long)i, what, x, (long long)(limit - 1));
        if (!isfinite(x))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: row %lld of the %s has %g in column %lld; all numbers must be "
                             "finite",
                             name, (long long)(i / width), what, x, (long long)(i % width));
    }
    return FIN_OK;
}

fin_status fini_latent_check_tokens(const fin_latent *latent, int64_t L, const double *keys,
                                    const double *values, fin_error *err)
{
    const fin_latent_shape *shape = &latent->shape;
    const fin_family *family = latent->family;
    FINI_TRY(fini_latent_check_sizes(latent, 1, L, 0, err));
    FINI_TRY(check_rows(latent, "keys", L, shape->dk,
                        family->key_categories ? latent->settings.covariates : 0, keys, err));
    return check_rows(latent, "values", L, shape->dv,
                      family->value_categories ? shape->outcomes : 0, values, err);
}

static fin_status check_queries(const fin_latent *latent, int64_t m, const double *queries,
                                const double *mean, const double *variance, fin_error *err)
{
    const fin_latent_shape *shape = &latent->shape;
    const fin_family *family = latent->family;
    if (variance && shape->outcomes > 0)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "%s: a prediction is a row of probabilities and has no variance beside it; "
            "give NULL",
            family->name);
    if (m < 0 || m > FIN_NORMALS_MAX / (shape->dk + fini_latent_width(latent) + 1))
        return fini_fail(
            err, FIN_ERR_ARGUMENT, "%s: %lld queries; from 0 to %lld are possible", family->name,
            (long long)m,
            (long long)(FIN_NORMALS_MAX / (shape->dk + fini_latent_width(latent) + 1)));
    if (!mean && m > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: no array for the predictions was given",
                         family->name);
    return check_rows(latent, "queries", m, shape->dk,
                      family->key_categories ? latent->settings.covariates : 0, queries, err);
}

/* Finite, and no negative number where it counts or is a sum of squares. */
static fin_status check_statistic(const fin_latent *latent, const double *statistic, fin_error *err)
{
    const fin_latent_shape *shape = &latent->shape;
    const char *name = latent->family->name;
    if (shape->statistic == 0)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s: a Gaussian process has no statistic shorter than its tokens; use "
                         "fin_latent_predict_tokens",
                         name);
    if (!statistic)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: no statistic was given; zeros are that of no "
                         "tokens",
                         name);
    int64_t D = shape->features;
    for (int64_t i = 0; i < shape->statistic; i++) {
        bool sign = latent->family->value_categories || i == shape->statistic - 1 ||
                    (latent->family->linear && i < D * D && i % (D + 1) == 0);
        if (!isfinite(statistic[i]) || (sign && statistic[i] < 0))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: number %lld of the statistic is %g; it must be finite%s", name,
                             (long long)i, statistic[i], sign ? " and not negative" : "");
    }
    return FIN_OK;
}

static fin_status take(int64_t numbers, double **work, fin_error *err)
{
    *work = fini_alloc_array(numbers, sizeof **work);
    return *work ? FIN_OK
                 : fini_fail_memory(err, (size_t)numbers * sizeof **work, "a posterior's matrices");
}

/* Finite tokens may be so large that their products are not. */
static fin_status check_result(const fin_latent *latent, int64_t m, const double *mean,
                               const double *variance, fin_error *err)
{
    bool good = true;
    for (int64_t i = 0; i < m * fini_latent_width(latent); i++)
        good = good && isfinite(mean[i]);
    for (int64_t i = 0; variance && i < m; i++)
        good = good && isfinite(variance[i]);
    return good ? FIN_OK
                : fini_fail(err, FIN_ERR_NUMERIC,
                            "%s: the prediction overflows; divide keys or values by a constant",
                            latent->family->name);
}

/* ---- the statistic --------------------------------------------------------------------------- */

fin_status fin_latent_features(const fin_latent *latent, int64_t n, const double *keys, double *phi,
                               fin_error *err)
{
    FINI_NEED(err, latent, !n || phi);
    if (!latent->family->linear)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "%s has no features; concept, mean and finite have", latent->family->name);
    if (n < 0 || n > FIN_NORMALS_MAX / latent->shape.features)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: features of %lld keys; from 0 to %lld are "
                         "possible",
                         latent->family->name, (long long)n,
                         (long long)(FIN_NORMALS_MAX / latent->shape.features));
    FINI_TRY(check_rows(latent, "keys", n, latent->shape.dk, 0, keys, err));
    fini_features(latent, n, keys, phi, latent->shape.features);
    return FIN_OK;
}

fin_status fin_latent_accumulate(const fin_latent *latent, int64_t L, const double *keys,
                                 const double *values, double *statistic, fin_error *err)
{
    FINI_NEED(err, latent, !L || values, statistic);
    double *work;
    fin_status status = check_statistic(latent, statistic, err);
    if (status || (status = fini_latent_check_tokens(latent, L, keys, values, err)) ||
        (status = take(latent->family->room(latent, L, 0), &work, err)))
        return status;
    latent->family->accumulate(latent, L, keys, values, statistic, work);
    fini_free(work);
    for (int64_t i = 0; i < latent->shape.statistic; i++)
        if (!isfinite(statistic[i]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "%s: the statistic overflows and is lost; divide keys or values by a "
                             "constant and start from zeros",
                             latent->family->name);
    return FIN_OK;
}

fin_status fin_latent_merge(const fin_latent *latent, const double *other, double *statistic,
                            fin_error *err)
{
    FINI_NEED(err, latent, other, statistic);
    fin_status status = check_statistic(latent, statistic, err);
    if (status || (status = check_statistic(latent, other, err)))
        return status;
    for (int64_t i = 0; i < latent->shape.statistic; i++)
        if (!isfinite(statistic[i] + other[i]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "%s: number %lld of the merged statistic overflows: %g and %g",
                             latent->family->name, (long long)i, statistic[i], other[i]);
    for (int64_t i = 0; i < latent->shape.statistic; i++)
        statistic[i] += other[i];
    return FIN_OK;
}

/* ---- posterior and prediction ---------------------------------------------------------------- */

fin_status fin_latent_posterior(const fin_latent *latent, const double *statistic,
                                double *posterior, fin_error *err)
{
    FINI_NEED(err, latent, statistic, posterior);
    double *work;
    fin_status status = check_statistic(latent, statistic, err);
    if (status || (status = take(latent->family->room(latent, 0, 0), &work, err)))
        return status;
    status = latent->family->posterior(latent, statistic, posterior, work, err);
    fini_free(work);
    return status;
}

fin_status fin_latent_predict(const fin_latent *latent, const double *statistic, int64_t m,
                              const double *queries, double *mean, double *variance, fin_error *err)
{
    FINI_NEED(err, latent, statistic, !m || mean);
    double *work;
    fin_status status = check_statistic(latent, statistic, err);
    if (status || (status = check_queries(latent, m, queries, mean, variance, err)) ||
        (status = take(latent->family->room(latent, 0, m), &work, err)))
        return status;
    status = latent->family->predict(latent, statistic, &(fini_query){m, queries, mean, variance},
                                     work, err);
    fini_free(work);
    return status ? status : check_result(latent, m, mean, variance, err);
}

enum { PIECE = 4096 }; /* queries at once, where all their features are kept */

/* No statistic, or tokens are fewer than features. */
static bool by_tokens(const fin_latent *latent, int64_t L)
{
    return latent->family->predict_tokens &&
           (latent->shape.statistic == 0 || L < latent->shape.features);
}

int64_t fini_latent_predict_room(const fin_latent *latent, int64_t L, int64_t m)
{
    return by_tokens(latent, L) ? latent->family->room_tokens(latent, L, m)
                                : latent->shape.statistic + latent->family->room(latent, L, m);
}

fin_status fini_latent_predict_one(const fin_latent *latent, int64_t L, const double *keys,
                                   const double *values, const fini_query *q, double *work,
                                   fin_error *err)
{
    const fin_family *family = latent->family;
    int64_t size = latent->shape.statistic;
    if (by_tokens(latent, L))
        return family->predict_tokens(latent, L, keys, values, q, work, err);
    double *statistic = work, *rest = work + size;
    memset(statistic, 0, (size_t)size * sizeof *statistic);
    family->accumulate(latent, L, keys, values, statistic, rest);
    return family->predict(latent, statistic, q, rest, err);
}

fin_status fin_latent_predict_tokens(const fin_latent *latent, int64_t L, const double *keys,
                                     const double *values, int64_t m, const double *queries,
                                     double *mean, double *variance, fin_error *err)
{
    FINI_NEED(err, latent, !L || values, !m || mean);
    double *work;
    fin_status status = fini_latent_check_tokens(latent, L, keys, values, err);
    if (status || (status = check_queries(latent, m, queries, mean, variance, err)))
        return status;
    if (by_tokens(latent, L) && latent->shape.features > 0 && m > PIECE) {
        int64_t dk = latent->shape.dk, dv = latent->shape.dv;
        for (int64_t from = 0; from < m && !status; from += PIECE)
            status = fin_latent_predict_tokens(
                latent, L, keys, values, m - from < PIECE ? m - from : PIECE, queries + from * dk,
                mean + from * dv, variance ? variance + from : NULL, err);
        return status;
    }
    FINI_TRY(take(fini_latent_predict_room(latent, L, m), &work, err));
    status = fini_latent_predict_one(latent, L, keys, values,
                                     &(fini_query){m, queries, mean, variance}, work, err);
    fini_free(work);
    return status ? status : check_result(latent, m, mean, variance, err);
}
