/* heads: several heads on several pairs (k*, v*), trained by online SGD, and what the heads find.
 *
 * Head i is on direction j if |k_i.k*_j| is at least `found`. A run
 *     specialises  if min(H, P) directions have a head that is on them alone;
 *     coincides    if it does not, and two heads are on one direction alone;
 *     partly       if it is neither, and some head is on a direction, or on several;
 *     found nothing otherwise.
 * A sum of heads on one direction splits v* between them and a large lam leaves |k.k*| well below 1, so
 * `found` is no closeness: with shared noise runs end with |k.k*| near 0.75 or 0.49, or below 0.15, and
 * at 0.2 the logs of the paper's authors (toy-multihead.ipynb) are 5, 10, 1 and 4 of 20. */
#include "command/command.h"
#include "math/small.h"
#include "train/heads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HEADS_FIELDS(F, C)                                                                         \
    C(engine, 0, "reduced|ambient",                                                                \
      "reduced: at a cost that does not depend on d, exact in law; ambient: in R^d")               \
    C(noise, 0, "independent|shared",                                                              \
      "of the P relevant tokens of a sequence: each its own, or one vector for all")               \
    F(int64_t, H, 2, 1, FINI_HEADS, "heads, whose outputs are added")                              \
    F(int64_t, P, 2, 1, FINI_HEADS, "pairs (k*, v*), and relevant tokens")                         \
    F(int64_t, d, 80, 2, INT64_C(1) << 50, "token dimension")                                      \
    F(int64_t, L, 10, 1, INT64_C(1) << 30, "tokens of a sequence")                                 \
    F(double, gamma, 0.7071067811865476, 0, 1e6, "standard deviation of a relevant token")         \
    F(double, mu, FIN_AUTO, 0, 1e9, "mean of relevant token p along k*_p; auto = sqrt(d/2)")       \
    F(double, eps, 0.1, 0, 1e6, "standard deviation of the output's noise")                        \
    F(double, lam, 2, 0, 1e6, "scale of the scores at step 0")                                     \
    F(double, decay, 2e-4, 0, 1e6, "lam at step t is lam / (1 + decay t)")                         \
    F(int64_t, until, 25000, 0, INT64_C(1) << 27, "step from which on lam is constant")            \
    F(double, alpha, 1e-3, 0, 1e300, "step size")                                                  \
    F(int64_t, batch, 5, 1, 4096, "fresh samples in a step")                                       \
    F(int64_t, steps, 100000, 0, INT64_C(1) << 27, "steps of a run")                               \
    F(int64_t, runs, 20, 1, 1000000, "independent runs")                                           \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; run r is a function of the seed and r")        \
    F(int64_t, log_every, FIN_AUTO_INT, 1, INT64_C(1) << 27,                                       \
      "steps between two logged ones; auto = steps/100")                                           \
    F(double, found, 0.2, 0, 1, "a head is on direction j if |k.k*_j| is at least this")

#define FIN_TABLE_STRUCT heads_values
FIN_TABLE_OF_ITS_OWN(heads_table, "heads", HEADS_FIELDS);

enum { SPECIALISE, PARTLY, COINCIDE, NOTHING, OUTCOMES };
static const char *const names[OUTCOMES] = {"specialise", "partly", "coincide", "nothing"};

static const fin_output outputs[] = {
    {"specialise", "share of runs in which min(H, P) directions have a head that is on them alone",
     NULL},
    {"specialise_low", "lower end of its 95 % interval (Wilson)", NULL},
    {"specialise_high", "upper end of it", NULL},
    {"partly", "share of runs that do neither, with a head on a direction, or on several", NULL},
    {"partly_low", "lower end of its 95 % interval (Wilson)", NULL},
    {"partly_high", "upper end of it", NULL},
    {"coincide", "share of other runs in which two heads are on one direction alone", NULL},
    {"coincide_low", "lower end of its 95 % interval (Wilson)", NULL},
    {"coincide_high", "upper end of it", NULL},
    {"nothing", "share of runs in which no head is on a direction", NULL},
    {"nothing_low", "lower end of its 95 % interval (Wilson)", NULL},
    {"nothing_high", "upper end of it", NULL},
    {"swapped", "share of runs with a head that has |k.v*_j| and |v.k*_l| of at least `found`",
     NULL},
    {"diverged", "share of runs that are not finite; in none of the numbers below", NULL},
    {"excess", "risk less eps^2 at the end: mean over runs", NULL},
    {"median_excess", "the same: median", NULL},
    {"excess_specialise", "the same: mean over runs that specialise; others likewise", NULL},
    {"excess_partly", "...", NULL},
    {"excess_coincide", "...", NULL},
    {"excess_nothing", "...", NULL},
    {"kappa_specialise", "mean |k_i.k*_j| of heads on directions, in runs that specialise", NULL},
    {"kappa_coincide", "the same in runs that coincide", NULL},
    {"nu_specialise", "mean |v_i.v*_j| of heads on directions, in runs that specialise", NULL},
    {"nu_coincide", "the same in runs that coincide", NULL},
    {"lam_end", "lam of the last step", NULL},
    {"step", "(T) logged steps", "steps"},
    {"lam", "(T) lam there", NULL},
    {"excess_path", "(6, T) excess risk: mean, 2.5, 25, 50, 75 and 97.5 % quantiles over runs",
     NULL},
    {"shares", "(4, T) shares that specialise, partly, coincide, found nothing", NULL},
    {"path_k", "(20 or fewer, H, P, T) |k_i.k*_j| of the first runs", NULL},
    {"path_v", "(20 or fewer, H, P, T) |v_i.v*_j| of the first runs", NULL},
    {"end_kk", "(runs, H, P) k_i.k*_j at the end", NULL},
    {"end_vv", "(runs, H, P) v_i.v*_j", NULL},
    {"end_kv", "(runs, H, P) k_i.v*_j", NULL},
    {"end_vk", "(runs, H, P) v_i.k*_j", NULL},
    {"end_between", "(runs, H(2H-1)) k_1.v_1, k_1.k_2, v_1.k_2, k_1.v_2, v_1.v_2, k_2.v_2, ...",
     NULL},
    {"end_excess", "(runs) excess risk at the end, in closed form", NULL},
    {"end_outcome", "(runs) 0 specialise, 1 partly, 2 coincide, 3 nothing, 4 diverged", NULL},
    {NULL, NULL, NULL},
};

enum { BANDS = 6, SHOWN = 20 };

static void settle_values(heads_values *v)
{
    if (fin_is_auto(v->mu))
        v->mu = sqrt(0.5 * (double)v->d);
    if (v->log_every == FIN_AUTO_INT)
        v->log_every = v->steps > 100 ? v->steps / 100 : 1;
}

static fin_status settle(void *values, fin_error *err)
{
    (void)err;
    settle_values(values);
    return FIN_OK;
}

static fini_heads_plan plan_of(const heads_values *v)
{
    return (fini_heads_plan){.model = {.H = v->H,
                                       .P = v->P,
                                       .d = v->d,
                                       .L = v->L,
                                       .gamma = v->gamma,
                                       .mu = v->mu,
                                       .eps = v->eps,
                                       .shared = v->noise == 1},
                             .lam = v->lam,
                             .decay = v->decay,
                             .alpha = v->alpha,
                             .until = v->until,
                             .batch = v->batch,
                             .runs = v->runs,
                             .seed = v->seed,
                             .ambient = v->engine == 1};
}

static int64_t logs_of(const heads_values *v)
{
    return v->steps / v->log_every + 1 + (v->steps % v->log_every != 0);
}

static fin_status check(const void *values, fin_error *err)
{
    heads_values own = *(const heads_values *)values;
    settle_values(&own);
    fini_heads_plan plan = plan_of(&own);
    if (logs_of(&own) > 100000)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "log_every = %lld gives %lld logged steps; at most 100000 are kept",
                         (long long)own.log_every, (long long)logs_of(&own));
    return fini_heads_check(&plan, err);
}

/* ---- one state ---------------------------------------------------------------------------------- */

typedef struct work {
    heads_values v; /* settled */
    fini_heads_plan plan;
    fini_heads *runs;
    int64_t logs, rows, shown, pairs; /* pairs: H P */
    double *gram;                     /* (runs, rows) */
    double *excess;                   /* (runs) */
    double *column;                   /* (runs): scratch */
    int64_t *outcome;                 /* (runs) */
    double *step, *lam, *bands, *shares, *path_k, *path_v;
    double *ends; /* (4, runs, H P) */
    fini_arena arena;
} work;

static void lay_out(work *w)
{
    fini_arena *a = &w->arena;
    int64_t runs = w->v.runs;
    const size_t size = sizeof(double);
    w->gram = fini_take(a, runs * w->rows, size);
    w->excess = fini_take(a, runs, size);
    w->column = fini_take(a, runs, size);
    w->outcome = fini_take(a, runs, sizeof *w->outcome);
    w->step = fini_take(a, w->logs, size);
    w->lam = fini_take(a, w->logs, size);
    w->bands = fini_take(a, BANDS * w->logs, size);
    w->shares = fini_take(a, OUTCOMES * w->logs, size);
    w->path_k = fini_take(a, w->shown * w->pairs * w->logs, size);
    w->path_v = fini_take(a, w->shown * w->pairs * w->logs, size);
    w->ends = fini_take(a, 4 * runs * w->pairs, size);
}

/* The product of k_i (or v_i) with k*_j (or v*_j). */
static double overlap(const work *w, int64_t run, int64_t i, bool value, int64_t j, bool value_star)
{
    int64_t H = w->v.H, P = w->v.P;
    return w->gram[run * w->rows + FINI_HEADS_ROWS(H, 0) + (2 * i + value) * 2 * P +
                   (value_star ? j : P + j)];
}

static bool on(const work *w, int64_t run, int64_t i, int64_t j)
{
    return fabs(overlap(w, run, i, false, j, false)) >= w->v.found;
}

static int outcome_of(const work *w, int64_t run)
{
    int64_t P = w->v.P, alone[FINI_HEADS] = {0}, heads = 0, taken = 0, twice = 0;
    if (!isfinite(w->excess[run]))
        return OUTCOMES;
    for (int64_t i = 0; i < w->v.H; i++) {
        int64_t count = 0, which = 0;
        for (int64_t j = 0; j < P; j++)
            if (on(w, run, i, j)) {
                count++;
                which = j;
            }
        heads += count > 0;
        alone[which] += count == 1;
    }
    for (int64_t j = 0; j < P; j++) {
        taken += alone[j] > 0;
        twice += alone[j] > 1;
    }
    return heads == 0                       ? NOTHING
           : taken == fini_least(w->v.H, P) ? SPECIALISE
           : twice > 0                      ? COINCIDE
                                            : PARTLY;
}

/* Overlaps, risks and outcomes of all runs now. */
static void look(work *w, double lam)
{
#pragma omp parallel for schedule(static) num_threads(fin_threads_get())
    for (int64_t run = 0; run < w->v.runs; run++) {
        double *gram = w->gram + run * w->rows;
        fini_heads_get(w->runs, run, gram);
        w->excess[run] = fini_heads_risk(&w->plan.model, lam, gram) - w->v.eps * w->v.eps;
        w->outcome[run] = outcome_of(w, run);
    }
}

/* Sorted into the column: the excess of runs of this outcome, or of all that are finite. */
static int64_t gather(const work *w, int outcome)
{
    int64_t n = 0;
    for (int64_t run = 0; run < w->v.runs; run++)
        if (outcome < OUTCOMES ? w->outcome[run] == outcome : w->outcome[run] < OUTCOMES)
            w->column[n++] = w->excess[run];
    fini_sort(w->column, n);
    return n;
}

static double mean_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static void log_all(work *w, int64_t log, int64_t step)
{
    static const double quantiles[BANDS - 1] = {0.025, 0.25, 0.5, 0.75, 0.975};
    /* lam of the last step made */
    double lam = fini_heads_lam(&w->plan, step > 0 ? step - 1 : 0);
    look(w, lam);
    w->step[log] = (double)step;
    w->lam[log] = lam;
    int64_t n = gather(w, OUTCOMES);
    w->bands[log] = n ? mean_of(w->column, n) : NAN;
    for (int i = 1; i < BANDS; i++)
        w->bands[i * w->logs + log] = fini_quantile(w->column, n, quantiles[i - 1]);
    for (int64_t run = 0; run < w->v.runs; run++)
        if (w->outcome[run] < OUTCOMES)
            w->shares[w->outcome[run] * w->logs + log] += 1 / (double)w->v.runs;
    for (int64_t run = 0; run < w->shown; run++)
        for (int64_t i = 0; i < w->v.H; i++)
            for (int64_t j = 0; j < w->v.P; j++) {
                int64_t at = (run * w->pairs + i * w->v.P + j) * w->logs + log;
                w->path_k[at] = fabs(overlap(w, run, i, false, j, false));
                w->path_v[at] = fabs(overlap(w, run, i, true, j, true));
            }
}

/* ---- at the end --------------------------------------------------------------------------------- */

/* The mean of the first n numbers of the column with its standard error over runs; nothing if there are none. */
static void add_mean(const work *w, fin_result *result, const char *name, int64_t n)
{
    if (n == 0)
        return;
    double mean = mean_of(w->column, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (w->column[i] - mean) * (w->column[i] - mean);
    double error = n > 1 ? sqrt(sum / (double)(n - 1) / (double)n) : NAN;
    fini_result_scalar(result, name, mean, error, FIN_HOW_RUNS, n);
}

/* In each run of an outcome, the mean of |k_i.k*_j| (or |v_i.v*_j|) over heads on directions. */
static int64_t gather_overlaps(const work *w, int outcome, bool value)
{
    int64_t n = 0;
    for (int64_t run = 0; run < w->v.runs; run++) {
        double sum = 0, count = 0;
        for (int64_t i = 0; i < w->v.H && w->outcome[run] == outcome; i++)
            for (int64_t j = 0; j < w->v.P; j++)
                if (on(w, run, i, j)) {
                    sum += fabs(overlap(w, run, i, value, j, value));
                    count++;
                }
        if (count > 0)
            w->column[n++] = sum / count;
    }
    return n;
}

static bool is_swapped(const work *w, int64_t run)
{
    for (int64_t i = 0; i < w->v.H; i++) {
        double key = 0, value = 0;
        for (int64_t j = 0; j < w->v.P; j++) {
            key = fmax(key, fabs(overlap(w, run, i, false, j, true)));
            value = fmax(value, fabs(overlap(w, run, i, true, j, false)));
        }
        if (key >= w->v.found && value >= w->v.found)
            return true;
    }
    return false;
}

static void add_scalars(const work *w, fin_result *result)
{
    int64_t counts[OUTCOMES + 1] = {0}, swapped = 0;
    char name[40];
    for (int64_t run = 0; run < w->v.runs; run++) {
        counts[w->outcome[run]]++;
        swapped += w->outcome[run] < OUTCOMES && is_swapped(w, run);
    }
    for (int i = 0; i < OUTCOMES; i++)
        fini_result_share(result, names[i], names[i], counts[i], w->v.runs);
    fini_result_share(result, "swapped", NULL, swapped, w->v.runs);
    fini_result_share(result, "diverged", NULL, counts[OUTCOMES], w->v.runs);
    if (counts[OUTCOMES] > 0)
        fini_result_note(result, "%lld of %lld runs diverged; a smaller alpha usually helps",
                         (long long)counts[OUTCOMES], (long long)w->v.runs);
    int64_t n = gather(w, OUTCOMES);
    add_mean(w, result, "excess", n);
    if (n > 0)
        fini_result_scalar(result, "median_excess", fini_quantile(w->column, n, 0.5), 0,
                           FIN_HOW_RUNS, n);
    for (int i = 0; i < OUTCOMES; i++) {
        snprintf(name, sizeof name, "excess_%s", names[i]);
        add_mean(w, result, name, gather(w, i));
    }
    add_mean(w, result, "kappa_specialise", gather_overlaps(w, SPECIALISE, false));
    add_mean(w, result, "kappa_coincide", gather_overlaps(w, COINCIDE, false));
    add_mean(w, result, "nu_specialise", gather_overlaps(w, SPECIALISE, true));
    add_mean(w, result, "nu_coincide", gather_overlaps(w, COINCIDE, true));
    fini_result_scalar(result, "lam_end", w->lam[w->logs - 1], 0, FIN_HOW_CLOSED, 0);
}

static void add_series(const work *w, fin_result *result)
{
    static const char *const ends[4] = {"end_kk", "end_kv", "end_vk", "end_vv"};
    int64_t T = w->logs, runs = w->v.runs, H = w->v.H, P = w->v.P, between = FINI_HEADS_ROWS(H, 0);
    const int64_t path[4] = {w->shown, H, P, T}, end[3] = {runs, H, P};
    fini_result_series(result, "step", FIN_F64, 1, &T, w->step);
    fini_result_series(result, "lam", FIN_F64, 1, &T, w->lam);
    fini_result_series(result, "excess_path", FIN_F64, 2, (int64_t[]){BANDS, T}, w->bands);
    fini_result_series(result, "shares", FIN_F64, 2, (int64_t[]){OUTCOMES, T}, w->shares);
    fini_result_series(result, "path_k", FIN_F64, 4, path, w->path_k);
    fini_result_series(result, "path_v", FIN_F64, 4, path, w->path_v);
    for (int which = 0; which < 4; which++) {
        for (int64_t at = 0; at < runs * H * P; at++)
            w->ends[at] = overlap(w, at / (H * P), at / P % H, which & 2, at % P, which & 1);
        fini_result_series(result, ends[which], FIN_F64, 3, end, w->ends);
    }
    for (int64_t run = 0; run < runs; run++) /* to the front of the rows, in place */
        memmove(w->gram + run * between, w->gram + run * w->rows, (size_t)between * sizeof(double));
    fini_result_series(result, "end_between", FIN_F64, 2, (int64_t[]){runs, between}, w->gram);
    fini_result_series(result, "end_excess", FIN_F64, 1, &runs, w->excess);
    fini_result_series(result, "end_outcome", FIN_I64, 1, &runs, w->outcome);
}

static fin_status train(work *w, const fin_progress *progress, fin_error *err)
{
    int64_t at = 0;
    log_all(w, 0, 0);
    for (int64_t log = 1; log < w->logs; log++) {
        int64_t next = at + w->v.log_every < w->v.steps ? at + w->v.log_every : w->v.steps;
        FINI_TRY(fini_heads_advance(w->runs, at, next, w->v.steps, progress, err));
        log_all(w, log, at = next);
    }
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    work w = {.v = *(const heads_values *)values};
    settle_values(&w.v);
    w.plan = plan_of(&w.v);
    w.logs = logs_of(&w.v);
    w.rows = FINI_HEADS_ROWS(w.v.H, w.v.P);
    w.pairs = w.v.H * w.v.P;
    w.shown = w.v.runs < SHOWN ? w.v.runs : SHOWN;
    fin_status status = fini_heads_create(&w.runs, &w.plan, err);
    if (!status) {
        lay_out(&w);
        status = fini_arena_open(&w.arena, "logs of heads", err);
    }
    if (!status) {
        lay_out(&w);
        status = train(&w, progress, err);
    }
    if (!status) {
        add_scalars(&w, result);
        add_series(&w, result);
    }
    fini_arena_close(&w.arena);
    fini_heads_destroy(w.runs);
    return status;
}

const fin_command fini_command_heads = {
    .name = "heads",
    .summary = "several heads on several pairs (k*, v*): do they specialise or coincide?",
    .revision = 1,
    .size = sizeof(heads_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(heads_table),
    .check = check,
    .settle = settle,
    .run = run,
};
