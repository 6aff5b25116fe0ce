/* Linear probes: checks, columns of mean 0 and deviation 1, predictions. The fits are in
 * probe_ridge.c and probe_logistic.c. */
#include "encoder/probe.h"

#include "math/gram.h"
#include "math/small.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_probe_settings
FIN_TABLE(, fin_probe_table, "probe", FIN_PROBE_FIELDS);

/* ---- checks ---------------------------------------------------------------------------------- */

static fin_status check_sizes(int64_t n, int64_t p, int64_t classes, int64_t m, double penalty,
                              fin_error *err)
{
    int64_t numbers, width = classes > 0 ? classes : m;
    if (n < 2 || p < 1 || n > INT_MAX || p > INT_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: %lld rows of %lld features; at least 2 rows and 1 feature are "
                         "needed, and at most 2^31 - 1 of either",
                         (long long)n, (long long)p);
    if (classes < 0 || classes == 1 || classes > INT_MAX ||
        (classes == 0 && (m < 1 || m > INT_MAX)))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: %lld classes and %lld numbers to predict; either 2 or more "
                         "classes, or 0 classes and 1 or more numbers",
                         (long long)classes, (long long)m);
    if (!fin_is_auto(penalty) && !(penalty >= 0 && penalty <= 1e12))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: penalty = %g; it must be from 0 to 1e12, or auto to choose it",
                         penalty);
    if (__builtin_mul_overflow(n > p ? n : p, width > p ? width : p, &numbers) ||
        numbers > INT64_MAX / 64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "probe: %lld rows, %lld features and %lld numbers to predict are too many",
                         (long long)n, (long long)p, (long long)width);
    return FIN_OK;
}

static fin_status check_finite(const char *what, int64_t n, int64_t width, const double *rows,
                               fin_error *err)
{
    if (!rows)
        return fini_fail(err, FIN_ERR_ARGUMENT, "probe: the %ss are NULL", what);
    for (int64_t i = 0; i < n * width; i++)
        if (!isfinite(rows[i]))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "probe: %s %lld of row %lld is %g; all numbers must be finite", what,
                             (long long)(i % width), (long long)(i / width), rows[i]);
    return FIN_OK;
}

static fin_status check_classes(int64_t n, int64_t classes, const double *y, bool several,
                                fin_error *err)
{
    bool differ = !several; /* what is judged may be of one class, what is learnt from may not */
    for (int64_t i = 0; i < n; i++) {
        if (!(y[i] >= 0 && y[i] < (double)classes && y[i] == floor(y[i])))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "probe: row %lld has class %g; it must be a whole number from 0 to "
                             "%lld",
                             (long long)i, y[i], (long long)(classes - 1));
        differ = differ || y[i] != y[0];
    }
    return differ ? FIN_OK
                  : fini_fail(err, FIN_ERR_ARGUMENT,
                              "probe: all %lld rows have class %g; at least two classes must be "
                              "among them",
                              (long long)n, y[0]);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Two passes; the mean's own rounding is taken out of the second. */
void fini_probe_column(int64_t n, int64_t step, const double *x, double *mean, double *deviation)
{
    double sum = 0, most = 0, rest = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i * step] / (double)n;
        most = fmax(most, fabs(x[i * step]));
    }
    for (int64_t i = 0; i < n; i++)
        rest += (x[i * step] - sum) / (double)n;
    *mean = sum + rest;
    for (int64_t i = 0; i < n && most > 0; i++)
        squares += pow((x[i * step] - *mean) / most, 2) / (double)n;
    *deviation = sqrt(squares) > 1e-13 ? most * sqrt(squares) : 0;
}

static void standardise(const fin_probe *probe, int64_t n, const double *x, double *out)
{
    int64_t p = probe->p;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < p; j++)
            out[i * p + j] =
                probe->scale[j] > 0 ? (x[i * p + j] - probe->mean[j]) / probe->scale[j] : 0;
}

/* W x + b for standardised x, as a map of x itself. */
static void unfold(fin_probe *probe)
{
    int64_t p = probe->p;
    for (int64_t c = 0; c < probe->m; c++)
        for (int64_t j = 0; j < p; j++) {
            double *w = &probe->W[c * p + j];
            *w = probe->scale[j] > 0 ? *w / probe->scale[j] : 0;
            probe->b[c] -= *w * probe->mean[j];
        }
}

/* ---- fit and predict ------------------------------------------------------------------------- */

static void lay_out(fin_probe *probe, fini_arena *arena)
{
    probe->W = fini_take(arena, probe->m * probe->p, sizeof *probe->W);
    probe->b = fini_take(arena, probe->m, sizeof *probe->b);
    probe->mean = fini_take(arena, probe->p, sizeof *probe->mean);
    probe->scale = fini_take(arena, probe->p, sizeof *probe->scale);
}

static fin_status create(fin_probe **out, int64_t p, int64_t classes, int64_t m, fin_error *err)
{
    FINI_MAKE(err, "a probe", fin_probe, probe);
    *probe = (fin_probe){.p = p, .m = classes > 0 ? classes : m, .classes = classes};
    lay_out(probe, &probe->arena);
    fin_status status = fini_blas_ready(err);
    if (!status)
        status = fini_arena_open(&probe->arena, "a probe", err);
    if (status) {
        fini_free(probe);
        return status;
    }
    lay_out(probe, &probe->arena);
    *out = probe;
    return FIN_OK;
}

void fin_probe_destroy(fin_probe *probe)
{
    if (!probe)
        return;
    fini_arena_close(&probe->arena);
    fini_free(probe);
}

fin_status fin_probe_fit(fin_probe **out, int64_t n, int64_t p, const double *x, int64_t classes,
                         int64_t m, const double *y, double penalty, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, x, y);
    fin_probe *probe = NULL;
    fin_status status = check_sizes(n, p, classes, m, penalty, err);
    if (status || (status = check_finite("feature", n, p, x, err)) ||
        (status = check_finite("target", n, classes > 0 ? 1 : m, y, err)) ||
        (classes > 0 && (status = check_classes(n, classes, y, true, err))) ||
        (status = create(&probe, p, classes, m, err)))
        return status;
    double *standard = fini_alloc_array(n * p, sizeof *standard);
    if (standard) {
        for (int64_t j = 0; j < p; j++)
            fini_probe_column(n, p, x + j, &probe->mean[j], &probe->scale[j]);
        standardise(probe, n, x, standard);
        fini_probe_rows rows = {n, p, probe->m, standard, y};
        status = classes > 0 ? fini_probe_logistic(probe, &rows, penalty, err)
                             : fini_probe_ridge(probe, &rows, penalty, err);
        unfold(probe);
    } else {
        status = fini_fail_memory(err, (size_t)(n * p) * sizeof *standard, "a probe's features");
    }
    fini_free(standard);
    FINI_HAND_OVER(out, probe, status, fin_probe_destroy);
}

fin_status fini_probe_predict(const fin_probe *probe, int64_t n, const double *x, double *out,
                              fin_error *err)
{
    FINI_NEED(err, probe, !n || x, !n || out);
    int64_t numbers, m = probe->m, p = probe->p;
    if (n < 0 || n > INT_MAX || __builtin_mul_overflow(n, p > m ? p : m, &numbers))
        return fini_fail(err, FIN_ERR_ARGUMENT, "probe: %lld rows; from 0 to 2^31 - 1 are possible",
                         (long long)n);
    if (n == 0)
        return FIN_OK;
    FINI_TRY(check_finite("feature", n, p, x, err));
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < m; c++)
            out[i * m + c] = probe->b[c];
    fini_blas_enter();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)m, (int)p, 1, x, (int)p,
                probe->W, (int)p, 1, out, (int)m);
    fini_blas_leave();
    for (int64_t i = 0; probe->classes > 0 && i < n; i++)
        fini_softmax_libm(m, out + i * m, false);
    return FIN_OK;
}

void fini_probe_weights(const fin_probe *probe, double *W, double *b)
{
    if (!probe || !W || !b)
        return;
    memcpy(W, probe->W, (size_t)(probe->m * probe->p) * sizeof *W);
    memcpy(b, probe->b, (size_t)probe->m * sizeof *b);
}

double fini_probe_penalty(const fin_probe *probe)
{
    return probe ? probe->penalty : NAN;
}

/* ---- how well it reads: share of variance explained, or accuracy and log loss ---------------- */

/* y (n) classes, P (n, classes) probabilities. */
static void score_classes(int64_t n, int64_t classes, const double *y, const double *P,
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

/* y and out (n, m). A column that is the same in all rows has no variance to explain: its r2 is NaN
 * and not in the mean. */
static void score_numbers(int64_t n, int64_t m, const double *y, const double *out,
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

fin_status fin_probe_judge(const fin_probe *probe, int64_t n, const double *x, const double *y,
                           fin_probe_score *score, double *column_r2, int64_t room, fin_error *err)
{
    FINI_NEED(err, probe, !n || x, !n || y, score);
    int64_t targets = probe->classes > 0 ? 1 : probe->m;
    FINI_OWN(err, "a probe's predictions", double, out, n, probe->m);
    FINI_TRY(fini_probe_predict(probe, n, x, out, err));
    FINI_TRY(check_finite("target", n, targets, y, err));
    if (probe->classes > 0)
        FINI_TRY(check_classes(n, probe->classes, y, false, err));
    *score = (fin_probe_score){score->train, n,   probe->m, NAN, NAN,           NAN,
                               NAN,          NAN, NAN,      NAN, probe->penalty};
    if (probe->classes > 0)
        score_classes(n, probe->classes, y, out, score);
    else
        score_numbers(n, probe->m, y, out, score, column_r2, room);
    return FIN_OK;
}
