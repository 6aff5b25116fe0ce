/* law: the reduced engine against the ambient one.
 *
 * Both are meant to have the same law. They are run from the same settings with seeds that have
 * nothing to do with each other, and the five overlaps at the end are compared as samples of
 * distributions: Kolmogorov-Smirnov for each, Bonferroni for all. */
#include "command/training.h"

#include <math.h>
#include <stdio.h>

static const fin_word words[] = {
    FINI_MODEL_WORDS(fini_train_values, model),
    FIN_WORDS_END,
};

enum { OVERLAPS = 5, QUANTILES = 101 };
static const char *const overlap_names[OVERLAPS] = {"kappa", "nu", "theta", "eta", "rho"};

static const fin_output outputs[] = {
    {"p_kappa", "probability of such a distance or a larger one, if both have one law of kappa",
     NULL},
    {"p_nu", "the same for nu", NULL},
    {"p_theta", "the same for theta", NULL},
    {"p_eta", "the same for eta", NULL},
    {"p_rho", "the same for rho", NULL},
    {"p_least", "the least of the five, times five (Bonferroni), at most 1", NULL},
    {"distance_kappa", "largest difference of the two distribution functions of kappa", NULL},
    {"distance_nu", "the same for nu", NULL},
    {"distance_theta", "the same for theta", NULL},
    {"distance_eta", "the same for eta", NULL},
    {"distance_rho", "the same for rho", NULL},
    {"quantiles_kappa", "(2, 101) quantiles 0, 1, ..., 100 % of kappa: reduced, ambient", NULL},
    {"quantiles_nu", "(2, 101) of nu", NULL},
    {"quantiles_theta", "(2, 101) of theta", NULL},
    {"quantiles_eta", "(2, 101) of eta", NULL},
    {"quantiles_rho", "(2, 101) of rho", NULL},
    {NULL, NULL, NULL},
};

static fin_status check(const void *values, fin_error *err)
{
    const fini_train_values *v = values;
    fin_train_settings usual;
    fin_settings_defaults(&fin_train_table, &usual, sizeof usual);
    if (v->train.engine != usual.engine)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "law runs the engines reduced and ambient itself; leave engine out");
    if (v->train.rule != FIN_RULE_DESCENT)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "law compares stochastic descent; leave rule out, or give descent");
    fini_train_values own = *v;
    own.train.engine = FIN_ENGINE_REDUCED;
    return fini_train_check(&own, err);
}

/* ---- one engine ------------------------------------------------------------------------------ */

/* What rounding adds to equal numbers is no difference between laws: a start that is given is the
 * same for both engines, but one has it as vectors. */
static double rounded(double x)
{
    return nearbyint(x * 0x1p40) * 0x1p-40;
}

/* out: (OVERLAPS, runs), sorted. */
static fin_status collect(const fin_train *train, const char *engine, int64_t runs, double *out,
                          fin_error *err)
{
    for (int64_t r = 0; r < runs; r++) {
        fin_run run;
        FINI_TRY(fin_train_get_run(train, r, &run, err));
        if (run.status == FIN_RUN_DIVERGED)
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "run %lld of the %s engine diverged behind step %lld; a smaller alpha "
                             "usually helps",
                             (long long)r, engine, (long long)run.step);
        const double now[OVERLAPS] = {run.now.kappa, run.now.nu, run.now.theta, run.now.eta,
                                      run.now.rho};
        for (int i = 0; i < OVERLAPS; i++)
            out[i * runs + r] = rounded(now[i]);
    }
    for (int i = 0; i < OVERLAPS; i++)
        fini_sort(out + i * runs, runs);
    return FIN_OK;
}

static fin_status train_one(const fini_train_values *values, int engine, int64_t seed, double *out,
                            const fin_progress *progress, fin_error *err)
{
    fini_train_values own = *values;
    fin_training *t;
    own.train.engine = engine;
    own.train.seed = seed;
    fin_status status = fini_training_finish(&t, &own, progress, err);
    if (!status)
        status = collect(t->train, engine == FIN_ENGINE_REDUCED ? "reduced" : "ambient",
                         own.train.runs, out, err);
    fin_training_destroy(t);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void compare(const double *reduced, const double *ambient, int64_t runs, fin_result *result)
{
    double least = 1;
    for (int i = 0; i < OVERLAPS; i++) {
        const double *a = reduced + i * runs, *b = ambient + i * runs;
        const int64_t shape[2] = {2, QUANTILES};
        double quantiles[2 * QUANTILES];
        char name[32];
        double distance = fini_ks_distance(a, runs, b, runs);
        double p = fini_ks_probability(distance, runs, runs);
        least = p < least ? p : least;
        snprintf(name, sizeof name, "p_%s", overlap_names[i]);
        fini_result_scalar(result, name, p, 0, FIN_HOW_RUNS, runs);
        snprintf(name, sizeof name, "distance_%s", overlap_names[i]);
        fini_result_scalar(result, name, distance, 0, FIN_HOW_RUNS, runs);
        for (int q = 0; q < QUANTILES; q++) {
            quantiles[q] = fini_quantile(a, runs, q / 100.0);
            quantiles[QUANTILES + q] = fini_quantile(b, runs, q / 100.0);
        }
        snprintf(name, sizeof name, "quantiles_%s", overlap_names[i]);
        fini_result_series(result, name, FIN_F64, 2, shape, quantiles);
    }
    fini_result_scalar(result, "p_least", fmin(1, OVERLAPS * least), 0, FIN_HOW_RUNS, runs);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_train_values *v = values;
    int64_t runs = v->train.runs;
    FINI_OWN(err, "the overlaps", double, both, runs, 2 * OVERLAPS);
    double *reduced = both, *ambient = both + OVERLAPS * runs;
    FINI_TRY(train_one(v, FIN_ENGINE_REDUCED, v->train.seed, reduced, progress, err));
    FINI_TRY(
        train_one(v, FIN_ENGINE_AMBIENT, fini_seed_apart(v->train.seed), ambient, progress, err));
    compare(reduced, ambient, runs, result);
    return FIN_OK;
}

const fin_command fini_command_law = {
    .name = "law",
    .summary = "the reduced engine against the ambient one, as laws of the overlaps",
    .revision = 1,
    .size = sizeof(fini_train_values),
    .words = words,
    .instead = fini_train_instead,
    .outputs = outputs,
    .groups = fini_train_groups,
    .check = check,
    .hidden = "engine", /* both run */
    .run = run,
};
