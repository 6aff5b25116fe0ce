/* urn: how far from independent given the latent a sequence is that cannot go on for ever.
 *
 * Balls drawn without replacement are exchangeable, but de Finetti's theorem needs sequences
 * without end. Diaconis and Freedman (1980): L balls of N are within 2 L / N of a mixture of
 * independent draws (two colours). Exact. */
#include "command/command.h"

#include "finetti/theory_latent.h"
#include "theory/sphere.h"

#include <math.h>

#define URN_FIELDS(F, C)                                                                           \
    F(int64_t, N, 1000, 1, INT64_C(1) << 31, "balls in the urn")                                   \
    F(double, red, 0.5, 0, 1, "share of red ones; their number is rounded")                        \
    F(int64_t, L, 10, 1, INT64_C(1) << 20, "balls drawn")

#define FIN_TABLE_STRUCT urn_values
FIN_TABLE_OF_ITS_OWN(urn_table, "urn", URN_FIELDS);

static const fin_output outputs[] = {
    {"distance", "total variation between draws without and with replacement", NULL},
    {"bound", "2 L / N (Diaconis and Freedman)", NULL},
    {NULL, NULL, NULL},
};

static fin_status check(const void *values, fin_error *err)
{
    const urn_values *v = values;
    if (v->L > v->N)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = %lld balls cannot be drawn from an urn of N = %lld", (long long)v->L,
                         (long long)v->N);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const urn_values *v = values;
    (void)progress;
    int64_t red = (int64_t)nearbyint(v->red * (double)v->N);
    double distance = fini_urn_distance(v->N, red, v->L);
    if (isnan(distance))
        return fini_fail(err, FIN_ERR_NUMERIC, "the distance is not a number");
    fini_result_scalar(result, "distance", distance, 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "bound", 2 * (double)v->L / (double)v->N, 0, FIN_HOW_CLOSED, 0);
    return FIN_OK;
}

const fin_command fini_command_urn = {
    .name = "urn",
    .summary = "distance of a finite exchangeable sequence from independent draws",
    .revision = 1,
    .size = sizeof(urn_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(urn_table),
    .check = check,
    .run = run,
};
