/* Are two runs, of two stores, the same numbers?
 *
 * Their scalars and series are walked side by side, by name. Without a tolerance, numbers are the
 * same if they have the same bits; NaN is the same as NaN. With one, two numbers may differ by that
 * much of the larger of them and 1. What a clock said differs in any two runs and is no
 * difference. */
#include "store/store.h"

#include <math.h>
#include <string.h>

fin_status fini_compare_open(fin_store *left, fin_store *right, double tolerance, fini_compare *out,
                             fin_error *err)
{
    *out = (fini_compare){.store = {left, right}, .tolerance = tolerance};
    fin_status status = FIN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = fini_sql_prepare(out->store[i], fini_sql_scalars, &out->scalars[i], err);
        if (!status)
            status = fini_sql_prepare(out->store[i], fini_sql_series, &out->series[i], err);
    }
    return status;
}

void fini_compare_close(fini_compare *compare)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(compare->scalars[i]);
        sqlite3_finalize(compare->series[i]);
    }
}

static bool same_number(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (tolerance > 0 && fabs(a - b) <= tolerance * fmax(1, fmax(fabs(a), fabs(b))))
        return true;
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_scalar(const fin_scalar *a, const fin_scalar *b, double tolerance)
{
    if (a->how == FIN_HOW_CLOCK && b->how == FIN_HOW_CLOCK)
        return true;
    return a->how == b->how && a->samples == b->samples &&
           same_number(a->value, b->value, tolerance) && same_number(a->error, b->error, tolerance);
}

static bool same_data(const fin_series *a, const fin_series *b, double tolerance)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim ||
        memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return false;
    size_t bytes = fini_series_bytes(a);
    if (memcmp(a->data, b->data, bytes) == 0)
        return true;
    bool same = a->dtype == FIN_F64 || a->dtype == FIN_F32;
    for (size_t i = 0; same && a->dtype == FIN_F64 && i < bytes / 8; i++)
        same = same_number(((const double *)a->data)[i], ((const double *)b->data)[i], tolerance);
    for (size_t i = 0; same && a->dtype == FIN_F32 && i < bytes / 4; i++)
        same = same_number((double)((const float *)a->data)[i], (double)((const float *)b->data)[i],
                           tolerance);
    return same;
}

/* One side of a walk: the row at hand, if there is one. */
typedef struct side {
    bool there;
    fin_scalar scalar;
    fin_series series;
} side;

static fin_status step(const fini_compare *compare, int i, bool series, side *s, fin_error *err)
{
    sqlite3_stmt *statement = series ? compare->series[i] : compare->scalars[i];
    fini_free((void *)s->series.data);
    *s = (side){0};
    fin_status status = fini_sql_step(compare->store[i], statement, &s->there, err);
    if (status || !s->there)
        return status;
    return series ? fini_read_series(compare->store[i], statement, true, &s->series, err)
                  : fini_read_scalar(compare->store[i], statement, &s->scalar, err);
}

static const char *name_of(const side *s, bool series)
{
    return series ? s->series.name : s->scalar.name;
}

/* The rows at hand have this order of names: which side is the smaller, or do both have it? */
static int first_of(const side s[2], bool series)
{
    if (!s[0].there || !s[1].there)
        return s[0].there ? -1 : 1;
    int order = strcmp(name_of(&s[0], series), name_of(&s[1], series));
    return (order > 0) - (order < 0);
}

static fin_status tell(const fini_compare *compare, const side s[2], int order, bool series,
                       fini_compare_row row, void *user, fin_error *err)
{
    bool left = order <= 0, right = order >= 0;
    if (order == 0 && (series ? same_data(&s[0].series, &s[1].series, compare->tolerance)
                              : same_scalar(&s[0].scalar, &s[1].scalar, compare->tolerance)))
        return FIN_OK;
    return row(user, name_of(&s[left ? 0 : 1], series),
               left && !series ? s[0].scalar.value : (double)NAN,
               right && !series ? s[1].scalar.value : (double)NAN, left, right, err);
}

static fin_status walk(const fini_compare *compare, const int64_t id[2], bool series,
                       fini_compare_row row, void *user, fin_error *err)
{
    side s[2] = {{0}, {0}};
    fin_status status = FIN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        sqlite3_bind_int64(series ? compare->series[i] : compare->scalars[i], 1, id[i]);
        status = step(compare, i, series, &s[i], err);
    }
    while (!status && (s[0].there || s[1].there)) {
        int order = first_of(s, series);
        status = tell(compare, s, order, series, row, user, err);
        if (!status && order <= 0)
            status = step(compare, 0, series, &s[0], err);
        if (!status && order >= 0)
            status = step(compare, 1, series, &s[1], err);
    }
    for (int i = 0; i < 2; i++) {
        fini_free((void *)s[i].series.data);
        sqlite3_reset(series ? compare->series[i] : compare->scalars[i]);
    }
    return status;
}

fin_status fini_compare_runs(const fini_compare *compare, int64_t left, int64_t right,
                             fini_compare_row row, void *user, fin_error *err)
{
    const int64_t id[2] = {left, right};
    fin_status status = walk(compare, id, false, row, user, err);
    return status ? status : walk(compare, id, true, row, user, err);
}
