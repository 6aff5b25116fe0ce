/* Exact risks of many points at once, for forms that have a kernel of them; erf's is in kernel/erf_risk_body.h. */
#include "theory/theory.h"

_Static_assert(sizeof(fin_risk_point) == FINI_RISK_IN * sizeof(double), "a point is a kernel row");
_Static_assert(sizeof(fin_risk_value) == FINI_RISK_OUT * sizeof(double), "a value is a kernel row");

/* Limits of each column, in the order of fin_risk_point. */
static const struct {
    const char *name;
    double lowest, highest;
} columns[FINI_RISK_IN] = {
    {"kappa", -1, 1}, {"nu", -1, 1},    {"theta", -1, 1},      {"eta", -1, 1},
    {"rho", -1, 1},   {"lam", 0, 1e6},  {"gamma", 0, 1e6},     {"mu", 0, 1e9},
    {"eps", 0, 1e6},  {"m", 0, 0x1p53}, {"L_mean", 0, 0x1p53}, {"L_var", 0, 0x1p106},
};

static fin_status check(int64_t i, const double *row, fin_error *err)
{
    for (int c = 0; c < FINI_RISK_IN; c++)
        if (!(row[c] >= columns[c].lowest && row[c] <= columns[c].highest))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "point %lld: %s = %.17g; it must be from %g to %g", (long long)i,
                             columns[c].name, row[c], columns[c].lowest, columns[c].highest);
    if (!(row[9] <= row[10]))
        return fini_fail(err, FIN_ERR_ARGUMENT, "point %lld: m = %g relevant tokens among L = %g",
                         (long long)i, row[9], row[10]);
    return FIN_OK;
}

enum { CHUNK = 1024 };

fin_status fin_risk_erf(int64_t n, const fin_risk_point *points, fin_risk_value *values,
                        fin_error *err)
{
    FINI_NEED(err, !n || points, !n || values);
    return fini_risk_rows(&fini_form_erf, n, points, values, err);
}

fin_status fini_risk_rows(const fin_form *form, int64_t n, const fin_risk_point *points,
                          fin_risk_value *values, fin_error *err)
{
    const double(*in)[FINI_RISK_IN] = (const void *)points;
    double(*out)[FINI_RISK_OUT] = (void *)values;
    if (n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "n = %lld points; it must not be negative",
                         (long long)n);
    for (int64_t i = 0; i < n; i++) {
        fin_status status = check(i, in[i], err);
        if (status)
            return status;
    }
    int threads = n > CHUNK ? fin_threads_get() : 1;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t from = 0; from < n; from += CHUNK)
        form->lanes->risk(n - from < CHUNK ? n - from : CHUNK, in + from, out + from);
    return FIN_OK;
}
