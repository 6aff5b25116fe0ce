/* regret: what it costs not to know the latent, summed over the tokens of a sequence.
 *
 * Token t is predicted from those before it; what the prediction pays is the difference of log
 * probabilities (or densities) of the truth, which knows z, and of the posterior's prediction:
 *     R_T = sum_t log p(v_t | z) - log p(v_t | past)
 *
 * Finitely many concepts: R_T = log post_T(z) / prior(z) <= log |Z|, whatever happens, so that the
 * mean regret R_T / T falls like 1/T; and log(post(z') / post(z)) / T tends to -KL(z || z').
 *
 * Linear concept: E R_T = 1/2 E log det(I + prior Phi'Phi / noise) for every number of a value, the
 * mutual information, which grows like (D / 2) log T. */
#include "lab/regret.h"

#include "family/family.h"

#include <math.h>

enum { GROUPS = 10 }; /* of sequences, for the error of a slope */

#define FIN_TABLE_STRUCT fini_regret_own
FIN_TABLE(static, regret_table, "regret", FINI_REGRET_FIELDS);

static bool has_tables(const fin_family *family)
{
    return family->finite && family->value_categories;
}

/* Tables P_z(r | c) of finitely many z, or Z Gaussian with keys. */
static int suits(const char *name)
{
    const fin_family *family = fin_family_find(name);
    return family && (has_tables(family) || (family->latent_gaussian && family->by_keys));
}

static const fin_word words[] = {
    {FIN_WORD_OF("family", fini_regret_values, family, "concepts",
                 "a family with tables of finitely many concepts, or a linear Gaussian one"),
     .suits = suits},
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"regret", "mean of the summed regret after T tokens", "nats"},
    {"slope", "of log(mean regret / t) against log t, t from T / 8 on (concepts)", NULL},
    {"growth", "of the mean summed regret against log t, t from T / 8 on (concept)", "nats"},
    {"bound", "log |Z|, which no sequence may exceed (concepts)", "nats"},
    {"largest", "the largest summed regret of all sequences at all t (concepts)", "nats"},
    {"violations", "sequences and t where it is above the bound by more than rounding (concepts)",
     NULL},
    {"rate", "log(post of the truth / largest post of another) / T, mean (concepts)",
     "nats a token"},
    {"divergence", "least KL(z || z'), mean over the drawn z (concepts)", "nats"},
    {"ratio", "rate / divergence, from the same sequences (concepts)", NULL},
    {"information", "1/2 E log det(I + prior Phi'Phi / noise) dv at T (concept)", "nats"},
    {"information_growth", "its slope against log t, t from T / 8 on (concept)", "nats"},
    {"difference", "regret - information, from the same sequences (concept)", "nats"},
    {"t", "(times) tokens seen, about evenly spaced on a log scale", "tokens"},
    {"mean", "(times) mean summed regret", "nats"},
    {"average", "(times) mean summed regret / t", "nats a token"},
    {"average_bound", "(times) log |Z| / t (concepts)", "nats a token"},
    {"upper", "(times) 95 % quantile of the summed regret over sequences, over t", "nats a token"},
    {"known", "(times) the information (concept)", "nats"},
    {"race_t", "(race) tokens seen, 0 .. , in the race of the first sequence (concepts)", "tokens"},
    {"race_true", "(race) posterior probability of the true concept", NULL},
    {"race_others", "(concepts - 1, race) of the others", NULL},
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    fini_regret_values *v = values;
    list[(*count)++] = (fin_group){&regret_table, &v->own};
    return fin_word_group("family", v->family, &v->latent, list, count, err);
}

static fin_status check(const void *values, fin_error *err)
{
    const fini_regret_values *v = values;
    bool tables = has_tables(fin_family_find(v->family));
    if (!tables && !(v->latent.noise > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "noise = 0 makes a regret without bound; "
                         "noise = 0.1 is usual");
    if (v->latent.wrong > 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "regret is about tokens without wrong labels; "
                         "leave wrong out");
    double cells = (double)v->latent.covariates * (double)v->latent.outcomes;
    double pairs = (double)v->latent.concepts * (double)v->latent.concepts;
    if (tables && pairs * cells > 1e9)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "concepts = %lld: every two of them are compared, and concepts^2 "
                         "covariates outcomes = %g is more than 1e9; fewer concepts do",
                         (long long)v->latent.concepts, pairs * cells);
    if (v->own.T > INT64_C(100000000) / v->own.sequences)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "T = %lld tokens of %lld sequences are more than 1e8; fewer sequences do",
                         (long long)v->own.T, (long long)v->own.sequences);
    return FIN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static double mean_of(const double *numbers, int64_t first, int64_t end)
{
    double sum = 0;
    for (int64_t i = first; i < end; i++)
        sum += numbers[i];
    return sum / (double)(end - first);
}

/* From T / 8 on: slope of the mean over sequences first .. end-1, or of log(mean / t). */
static double slope_of(const fini_regret *w, const double *sums, int64_t first, int64_t end,
                       bool average)
{
    double x[FINI_REGRET_TIMES], y[FINI_REGRET_TIMES];
    int64_t n = 0;
    for (int64_t k = 0; k < w->times; k++) {
        double mean = mean_of(sums + k * w->v->own.sequences, first, end), t = (double)w->at[k];
        if (8 * w->at[k] < w->v->own.T)
            continue;
        x[n] = log(t);
        y[n++] = average ? log(mean / t) : mean;
    }
    return fini_fit_line(x, y, n).slope;
}

/* Points of one curve share their sequences, so that its error comes from groups of sequences. */
static void add_slope(const fini_regret *w, const double *sums, bool average, const char *name,
                      fin_result *result)
{
    int64_t n = w->v->own.sequences;
    double part[GROUPS], squares = 0;
    for (int g = 0; g < GROUPS; g++)
        part[g] = slope_of(w, sums, n * g / GROUPS, n * (g + 1) / GROUPS, average);
    double mean = mean_of(part, 0, GROUPS);
    for (int g = 0; g < GROUPS; g++)
        squares += (part[g] - mean) * (part[g] - mean);
    fini_result_scalar(result, name, slope_of(w, sums, 0, n, average),
                       sqrt(squares / (GROUPS - 1) / GROUPS), FIN_HOW_SIMULATION, n);
}

static void add_mean(const double *numbers, int64_t n, const char *name, fin_result *result)
{
    double mean = mean_of(numbers, 0, n), squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (numbers[i] - mean) * (numbers[i] - mean);
    fini_result_scalar(result, name, mean, sqrt(squares / (double)(n - 1) / (double)n),
                       FIN_HOW_SIMULATION, n);
}

/* Of means a / b, with the error of the mean of a - ratio b. */
static void add_ratio(const double *a, const double *b, int64_t n, const char *name,
                      fin_result *result)
{
    double ratio = mean_of(a, 0, n) / mean_of(b, 0, n), squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (a[i] - ratio * b[i]) * (a[i] - ratio * b[i]);
    fini_result_scalar(result, name, ratio,
                       sqrt(squares / (double)(n - 1) / (double)n) / mean_of(b, 0, n),
                       FIN_HOW_SIMULATION, n);
}

static void add_curves(fini_regret *w, fin_result *result)
{
    double t[FINI_REGRET_TIMES], mean[FINI_REGRET_TIMES], average[FINI_REGRET_TIMES],
        bound[FINI_REGRET_TIMES], upper[FINI_REGRET_TIMES], known[FINI_REGRET_TIMES];
    int64_t n = w->v->own.sequences;
    for (int64_t k = 0; k < w->times; k++) {
        double *sums = w->sums + k * n;
        t[k] = (double)w->at[k];
        mean[k] = mean_of(sums, 0, n);
        average[k] = mean[k] / t[k];
        bound[k] = log((double)w->v->latent.concepts) / t[k];
        known[k] = mean_of(w->known + k * n, 0, n);
        fini_sort(sums, n); /* nobody needs their order after this */
        upper[k] = fini_quantile(sums, n, 0.95) / t[k];
    }
    fini_result_series(result, "t", FIN_F64, 1, &w->times, t);
    fini_result_series(result, "mean", FIN_F64, 1, &w->times, mean);
    fini_result_series(result, "average", FIN_F64, 1, &w->times, average);
    fini_result_series(result, "upper", FIN_F64, 1, &w->times, upper);
    if (fini_regret_counts(w))
        fini_result_series(result, "average_bound", FIN_F64, 1, &w->times, bound);
    else
        fini_result_series(result, "known", FIN_F64, 1, &w->times, known);
}

static void add_race(const fini_regret *w, fin_result *result)
{
    const int64_t shape[2] = {w->v->latent.concepts - 1, w->race};
    double t[FINI_REGRET_RACE];
    for (int64_t k = 0; k < w->race; k++)
        t[k] = (double)k;
    fini_result_series(result, "race_t", FIN_F64, 1, &w->race, t);
    fini_result_series(result, "race_true", FIN_F64, 1, &w->race, w->race_true);
    if (shape[0] > 0)
        fini_result_series(result, "race_others", FIN_F64, 2, shape, w->race_others);
}

static void add_concepts(fini_regret *w, fin_result *result)
{
    int64_t n = w->v->own.sequences, looks = n * w->v->own.T;
    add_slope(w, w->sums, true, "slope", result);
    fini_result_scalar(result, "bound", log((double)w->v->latent.concepts), 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "largest", w->largest, 0, FIN_HOW_RUNS, looks);
    fini_result_scalar(result, "violations", (double)w->violations, 0, FIN_HOW_RUNS, looks);
    add_race(w, result);
    if (w->v->latent.concepts < 2)
        return; /* there is no other one */
    add_mean(w->rate, n, "rate", result);
    add_mean(w->divergence, n, "divergence", result);
    add_ratio(w->rate, w->divergence, n, "ratio", result);
}

static void add_concept(fini_regret *w, fin_result *result)
{
    int64_t n = w->v->own.sequences;
    double *sums = w->sums + (w->times - 1) * n, *known = w->known + (w->times - 1) * n;
    add_slope(w, w->sums, false, "growth", result);
    add_slope(w, w->known, false, "information_growth", result);
    add_mean(known, n, "information", result);
    for (int64_t i = 0; i < n; i++)
        w->rate[i] = sums[i] - known[i];
    add_mean(w->rate, n, "difference", result);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_regret_values *v = values;
    fin_latent *latent = NULL;
    fini_regret w = {.v = v};
    fin_status status = fin_latent_create(&latent, fin_family_find(v->family), &v->latent,
                                          (uint64_t)v->own.seed, err);
    if (!status)
        status = fini_regret_open(&w, v, latent, err);
    for (int64_t i = 0; i < v->own.sequences && !status; i++) {
        if (fini_report(progress, "sequences", (double)i, (double)v->own.sequences))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld sequences",
                               (long long)i, (long long)v->own.sequences);
        else
            status = fini_regret_sequence(&w, i, err);
    }
    if (!status) {
        add_mean(w.sums + (w.times - 1) * v->own.sequences, v->own.sequences, "regret", result);
        if (fini_regret_counts(&w))
            add_concepts(&w, result);
        else
            add_concept(&w, result);
        add_curves(&w, result);
    }
    fini_regret_close(&w);
    fin_latent_destroy(latent);
    return status;
}

const fin_command fini_command_regret = {
    .name = "regret",
    .summary = "what it costs not to know the latent, summed over a sequence",
    .revision = 1,
    .size = sizeof(fini_regret_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
