/* Tuning: which settings, over which ranges, from which starts.
 *
 * A search is cheap beside what a wrong local optimum costs (a kernel method has two typical ones:
 * everything is noise, and nothing is), so there are several, from starts that depend on the seed
 * alone. All of it happens on logarithms: settings are positive and matter by their ratios. */
#include "context/tune.h"

#include "random/streams.h"

#include <math.h>
#include <omp.h>

#define FIN_TABLE_STRUCT fin_tune_settings
FIN_TABLE(, fin_tune_table, "tune", FIN_TUNE_FIELDS);
#undef FIN_TABLE_STRUCT

/* ---- which settings ------------------------------------------------------------------------- */

/* prior a.b / scale^2 has one number for two, and so has (a.b / scale^2)^degree. */
static bool scale_is_prior(const fin_cross_settings *cross)
{
    return cross->kernel == FIN_KERNEL_LINEAR ||
           (cross->kernel == FIN_KERNEL_POLYNOMIAL && cross->offset == 0);
}

unsigned fin_tune_which(const fin_cross_settings *cross, int columns)
{
    cross = fini_or_defaults(&fin_cross_table, cross, &(fin_cross_settings){0});
    if (cross->form == FIN_CROSS_SOFTMAX)
        return FIN_TUNE_TEMPERATURE;
    if (cross->form == FIN_CROSS_NW)
        return FIN_TUNE_SCALE;
    if (!scale_is_prior(cross))
        return FIN_TUNE_SCALE | FIN_TUNE_PRIOR | FIN_TUNE_NOISE;
    return columns ? FIN_TUNE_SCALE | FIN_TUNE_NOISE : FIN_TUNE_PRIOR | FIN_TUNE_NOISE;
}

static unsigned possible(const fin_cross_settings *cross)
{
    return cross->form == FIN_CROSS_SOFTMAX ? FIN_TUNE_TEMPERATURE
           : cross->form == FIN_CROSS_NW    ? FIN_TUNE_SCALE
                                            : FIN_TUNE_SCALE | FIN_TUNE_PRIOR | FIN_TUNE_NOISE;
}

static const char *form_name(const fin_cross_settings *cross)
{
    static const char *const names[] = {"cme", "softmax", "nw"};
    return names[cross->form];
}

static fin_status check(const fin_cross_settings *cross, const double *scales, unsigned *which,
                        const fin_tune_data *data, const fin_tune_settings *how, fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_cross_table, cross, err));
    FINI_TRY(fin_settings_validate(&fin_tune_table, how, err));
    FINI_TRY(fini_tune_check(data, err));
    bool cme = cross->form == FIN_CROSS_CME;
    if (scales && !cme)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "tune: a scale for every column is for cme; %s has one number to tune: "
                         "standardise the columns instead",
                         form_name(cross));
    if (how->by == FIN_TUNE_BY_EVIDENCE && !cme)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "tune: %s has no marginal likelihood; tune it by loo", form_name(cross));
    for (int64_t j = 0; scales && j < data->dk; j++)
        if (!(scales[j] > 0 && scales[j] <= 1e100))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "tune: scale %lld is %g; it must be above 0 and at most 1e100",
                             (long long)j, scales[j]);
    if (!*which)
        *which = fin_tune_which(cross, scales != NULL);
    if (scales)
        *which |= FIN_TUNE_SCALE;
    if (*which & ~possible(cross))
        return fini_fail(err, FIN_ERR_ARGUMENT, "tune: %s is tuned by %s", form_name(cross),
                         cme ? "scale, prior and noise"
                             : (cross->form == FIN_CROSS_NW ? "its scale" : "its temperature"));
    int64_t longest = 0;
    for (int64_t i = 0; i < data->n; i++)
        longest = longest > data->offsets[i + 1] - data->offsets[i]
                      ? longest
                      : data->offsets[i + 1] - data->offsets[i];
    if (longest < 2 && !cme)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "tune: no sequence has two tokens; leaving one out leaves nothing");
    return FIN_OK;
}

/* ---- their ranges --------------------------------------------------------------------------- */

/* Factors on the guess: the range, and where other starts lie. Scales end far above the keys, where
 * a column does not matter any more. Kernels that grow end where they would overflow. */
static void set_range(fini_tune_part *p, const fin_cross_settings *cross, double guess,
                      double given)
{
    double low = 1e-8, high = 1e8, below = 10, above = 10; /* prior */
    if (p->what == FIN_TUNE_SCALE) {
        low = cross->kernel == FIN_KERNEL_EXPONENTIAL ? 0.05
              : fini_tune_centred(cross)              ? 1e-4
                                                      : 1e-2;
        high = 1e5;
        below = fini_tune_centred(cross) ? 30 : 3;
    } else if (p->what == FIN_TUNE_NOISE) {
        low = 1e-7, high = 1e3, below = 1000, above = 3;
    } else if (p->what == FIN_TUNE_TEMPERATURE) {
        low = 1e-6, high = 1e6;
    }
    p->guess = log(guess);
    p->first = log(given > 0 ? given : guess); /* a noise of 0 has no logarithm */
    p->low = fmax(fmin(p->guess + log(low), p->first), log(1e-99));
    p->high = fmin(fmax(p->guess + log(high), p->first), log(1e99));
    p->below = log(below);
    p->above = log(above);
}

static fin_status set_ranges(fini_tune *t, unsigned which, const double *scales, fin_error *err)
{
    fin_cross_settings guess = t->settings;
    int64_t i = 0;
    /* What is held is part of the guess of the rest. */
    FINI_TRY(fini_tune_guess(&guess, NULL, which & ~(scales ? FIN_TUNE_SCALE : 0u), t->data, err));
    bool centred = fini_tune_centred(&guess);
    for (int64_t j = 0; scales && j < t->data->dk; j++) {
        t->part[i] = (fini_tune_part){.what = FIN_TUNE_SCALE, .column = j};
        double own = fini_tune_column(t->data, j, centred) * sqrt((double)t->data->dk);
        set_range(&t->part[i++], &guess, own / t->settings.scale, scales[j]);
    }
    const unsigned names[] = {FIN_TUNE_SCALE, FIN_TUNE_PRIOR, FIN_TUNE_NOISE, FIN_TUNE_TEMPERATURE};
    const double guessed[] = {guess.scale, guess.prior, guess.noise, guess.temperature};
    const fin_cross_settings *s = &t->settings;
    const double given[] = {s->scale, s->prior, s->noise, s->temperature};
    for (int k = 0; k < 4; k++) {
        if (!(which & names[k]) || (scales && names[k] == FIN_TUNE_SCALE))
            continue;
        t->part[i] = (fini_tune_part){.what = names[k], .column = -1};
        set_range(&t->part[i++], &guess, guessed[k], given[k]);
    }
    return FIN_OK;
}

/* ---- memory --------------------------------------------------------------------------------- */

static int64_t count_parts(unsigned which, bool scales, int64_t dk)
{
    int64_t parts = scales ? dk : (which & FIN_TUNE_SCALE) != 0;
    return parts + ((which & FIN_TUNE_PRIOR) != 0) + ((which & FIN_TUNE_NOISE) != 0) +
           ((which & FIN_TUNE_TEMPERATURE) != 0);
}

static void layout(fini_arena *a, fini_tune *t)
{
    const fin_tune_data *data = t->data;
    t->part = fini_take(a, t->parts, sizeof *t->part);
    t->scales = t->ard ? fini_take(a, data->dk, sizeof(double)) : NULL;
    t->value = fini_take(a, data->n, sizeof(double));
    t->gradient = fini_take(a, data->n, (size_t)t->parts * sizeof(double));
    t->at = fini_take(a, t->parts, sizeof(double));
    t->slope = fini_take(a, t->parts, sizeof(double));
    t->best = fini_take(a, t->parts, sizeof(double));
    t->x = fini_take(a, t->parts, sizeof(double));
    fini_tune_lane *lane = fini_take(a, t->lanes, sizeof *lane);
    for (int k = 0; k < t->lanes; k++) {
        double *mean = t->loo ? fini_take(a, t->longest * data->dv, sizeof(double)) : NULL;
        double *variance = t->loo ? fini_take(a, t->longest * data->dv, sizeof(double)) : NULL;
        double *columns = t->ard ? fini_take(a, data->dk, sizeof(double)) : NULL;
        if (lane)
            lane[k] = (fini_tune_lane){NULL, mean, variance, columns};
    }
    t->lane = lane;
}

/* Short sequences go side by side; their matrices are small. A thread that has less to do than this
 * costs more than it gives. */
static int count_lanes(const fini_tune *t)
{
    enum { SHORT = 512 };
    const double least = 1e6; /* operations */
    double work = 0;
    for (int64_t i = 0; i < t->data->n; i++) {
        double length = (double)(t->data->offsets[i + 1] - t->data->offsets[i]);
        work += length * length * (length + (double)t->data->dk);
    }
    if (t->longest > SHORT || omp_in_parallel())
        return 1;
    double lanes = fmin(fmin(fin_threads_get(), (double)t->data->n), 1 + work / least);
    return (int)lanes;
}

static void plan(fini_tune *t, unsigned which, bool scales)
{
    const fin_tune_data *data = t->data;
    t->ard = scales;
    t->parts = count_parts(which, scales, data->dk);
    t->longest = 1;
    for (int64_t i = 0; i < data->n; i++) {
        int64_t length = data->offsets[i + 1] - data->offsets[i];
        t->longest = length > t->longest ? length : t->longest;
    }
    t->lanes = count_lanes(t);
    t->best_value = -INFINITY;
}

/* ---- searching ------------------------------------------------------------------------------ */

static void set_start(fini_tune *t, int start)
{
    fin_random random;
    fin_random_open(&random, (uint64_t)t->how.tune_seed, FINI_STREAM_TUNE_START, (uint64_t)start);
    for (int64_t i = 0; i < t->parts; i++) {
        const fini_tune_part *p = &t->part[i];
        double u = fin_random_uniform(&random);
        double other = p->guess - p->below + u * (p->below + p->above);
        t->at[i] = start == 0 ? p->first : fmin(fmax(other, p->low), p->high);
    }
    t->start = start;
    t->in_start = 0;
}

static void search(fini_tune *t, fin_tune_report *report)
{
    bool one = t->settings.form != FIN_CROSS_CME;
    set_start(t, 0);
    double before = fini_tune_value(t, NULL);
    report->before = isfinite(before) ? before : NAN;
    for (int start = 0; start < t->how.restarts && !t->status; start++) {
        bool converged;
        set_start(t, start);
        if (one)
            fini_tune_scan(t, &converged);
        else
            fini_tune_climb(t, &converged);
        if (t->best_start == start)
            report->converged = converged;
        if (one)
            break; /* the grid has seen the whole range */
    }
    report->after = t->best_value;
    report->evaluations = t->evaluations;
    for (int64_t i = 0; i < t->parts && t->best_value > -INFINITY; i++)
        if (fini_tune_end(t, i))
            report->at_limit |= t->part[i].what;
}

/* The settings of the call, where landmarks have given way to a part of the tokens. */
static fin_status tune(fin_cross_settings *cross, double *scales, unsigned which,
                       const fin_tune_data *data, const fin_tune_settings *settings,
                       const fin_progress *progress, fin_tune_report *report, fin_error *err)
{
    fin_error cause = {FIN_OK, ""};
    fini_tune t = {.data = data,
                   .settings = *cross,
                   .how = *settings,
                   .loo = cross->form != FIN_CROSS_CME || settings->by == FIN_TUNE_BY_LOO,
                   .progress = progress,
                   .err = &cause};
    plan(&t, which, scales != NULL);
    if (t.parts > INT32_MAX - 64)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "tune: %lld parameters are too many",
                         (long long)t.parts);
    fini_arena arena = {NULL, 0, false};
    FINI_LAY_OUT(err, &arena, "tune", layout(&arena, &t));
    fin_status status = set_ranges(&t, which, scales, err);
    if (!status) {
        search(&t, report);
        status = t.status ? t.status : t.best_value == -INFINITY ? FIN_ERR_NUMERIC : FIN_OK;
        if (status)
            fini_fail(err, status, "%s", cause.message);
    }
    if (!status) {
        fini_tune_put(&t, t.best, cross, scales);
        fini_tune_notes(&t, cross, scales, report);
    }
    fini_arena_close(&arena);
    return status;
}

fin_status fin_tune(fin_cross_settings *cross, double *scales, unsigned which,
                    const fin_tune_data *data, const fin_tune_settings *settings,
                    const fin_progress *progress, fin_tune_report *report, fin_error *err)
{
    FINI_NEED(err, cross, data);
    settings = fini_or_defaults(&fin_tune_table, settings, &(fin_tune_settings){0});
    fin_status status = check(cross, scales, &which, data, settings, err);
    if (status)
        return status;
    bool cme = cross->form == FIN_CROSS_CME, loo = !cme || settings->by == FIN_TUNE_BY_LOO;
    fin_tune_report own = {.which = which, .by = loo ? FIN_TUNE_BY_LOO : FIN_TUNE_BY_EVIDENCE};
    fin_cross_settings exact = *cross;
    fin_tune_data part = *data;
    fini_arena arena = {NULL, 0, false};
    if (cme && cross->method == FIN_CROSS_NYSTROM) {
        exact.method = FIN_CROSS_AUTO;
        status = fini_tune_portion(data, cross->landmarks, cross->seed, &arena, &part, err);
    }
    if (!status) {
        own.tokens = part.offsets[part.n];
        status = tune(&exact, scales, which, &part, settings, progress, &own, err);
    }
    fini_arena_close(&arena);
    if (status)
        return status;
    exact.method = cross->method;
    *cross = exact;
    if (report)
        *report = own;
    return FIN_OK;
}
