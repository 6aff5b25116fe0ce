/* layer: a transformer layer trained by SGD on single-location regression, and what its matrices become.
 *
 * src/train/layer.c has the layer. With several heads which head is on which direction is an accident: numbers "matched" are
 * those of the assignment of heads to directions whose sum of |top . k*| is largest. */
#include "command/command.h"
#include "train/layer.h"

#include <math.h>
#include <string.h>

#define LAYER_FIELDS(F, C)                                                                         \
    F(int64_t, H, 1, 1, FINI_LAYER_HEADS, "heads, whose outputs are added")                        \
    F(int64_t, P, FIN_AUTO_INT, 1, FINI_LAYER_HEADS,                                               \
      "pairs (k*, v*), and relevant tokens; auto = H")                                             \
    C(noise, 0, "independent|shared",                                                              \
      "of the P relevant tokens of a sequence: each its own, or one vector for all")               \
    F(int64_t, d, 80, 2, 1024, "token dimension, at least 2P")                                     \
    F(int64_t, r_dim, FIN_AUTO_INT, 1, 1024, "rows of Wk and Wq; auto = d")                        \
    F(int64_t, hidden, 200, 1, 16384, "units of the hidden layer")                                 \
    F(int64_t, L, 10, 1, 4096, "tokens of a sequence, without the register; at least P")           \
    F(double, gamma, 0.7071067811865476, 0, 1e3, "standard deviation of a relevant token")         \
    F(double, mu, FIN_AUTO, 0, 1e3, "mean of relevant token p along k*_p; auto = sqrt(d/2)")       \
    F(double, eps, 0.1, 0, 1e3, "standard deviation of the output's noise")                        \
    F(double, query, 0, 0, 100, "Wq starts as so many times Xavier's law")                         \
    F(double, alpha, 0.01, 0, 100, "step size")                                                    \
    F(int64_t, batch, 128, 1, 65536, "fresh samples in a step")                                    \
    F(int64_t, steps, 8000, 0, 1000000000, "steps of a run")                                       \
    F(int64_t, runs, 20, 1, 100000, "independent runs")                                            \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; run r is a function of the seed and r")        \
    F(int64_t, log_every, 100, 1, 1000000000, "steps between two logged ones")                     \
    F(int64_t, test, 1000, 2, 10000000, "samples that a logged risk is measured on")               \
    F(double, found, 0.9, 0, 1, "a head is on direction p if |top . k*_p| is at least this")

#define FIN_TABLE_STRUCT layer_values
FIN_TABLE_OF_ITS_OWN(layer_table, "layer", LAYER_FIELDS);

static const fin_output outputs[] = {
    {"excess", "risk less eps^2 at the end: mean over runs, error from the runs", NULL},
    {"excess_start", "the same at step 0", NULL},
    {"excess_worst", "that of the worst run, error from its test samples", NULL},
    {"rank_one", "s1^2 / sum s^2 of Wk'Wq at the end: mean over heads and runs", NULL},
    {"rank_one_least", "the least over logged steps behind 0: mean over heads and runs", NULL},
    {"key", "|top right singular vector of Wq . k*|, matched: mean over runs", NULL},
    {"value", "cosine of theta (I + W2 W1) Wv' and v*, matched: mean over runs", NULL},
    {"apart", "share of runs in which min(H, P) directions have a head of their own", NULL},
    {"same", "share of runs that are not, and have two heads on one direction", NULL},
    {"diverged", "share of runs that are not finite; in none of the other numbers", NULL},
    {"linear", "risk less eps^2 of the best predictor that is linear in the tokens, by the formula",
     NULL},
    {"step", "(T) logged steps", "steps"},
    {"mean", "(5, T) over runs: excess, rank_one, key, value, share apart", NULL},
    {"excess_path", "(runs, T) excess risk of each run", NULL},
    {"excess_path_error", "(runs, T) its standard error", NULL},
    {"rank_one_path", "(runs, T, H) s1^2 / sum s^2 of Wk'Wq; NaN where it is 0", NULL},
    {"key_path", "(runs, T, H, P) |top right singular vector of Wq . k*_p|", NULL},
    {"value_path", "(runs, T, H, P) cosine of theta (I + W2 W1) Wv' and v*_p", NULL},
    {NULL, NULL, NULL},
};

static fini_layer_plan plan_of(const layer_values *v)
{
    return (fini_layer_plan){.H = v->H,
                             .P = v->P == FIN_AUTO_INT ? v->H : v->P,
                             .d = v->d,
                             .r = v->r_dim == FIN_AUTO_INT ? v->d : v->r_dim,
                             .m = v->hidden,
                             .L = v->L,
                             .gamma = v->gamma,
                             .mu = fin_is_auto(v->mu) ? sqrt(0.5 * (double)v->d) : v->mu,
                             .eps = v->eps,
                             .shared = v->noise == 1,
                             .query = v->query,
                             .alpha = v->alpha,
                             .batch = v->batch,
                             .steps = v->steps,
                             .runs = v->runs,
                             .test = v->test,
                             .log_every = v->log_every,
                             .seed = v->seed};
}

static fin_status check(const void *values, fin_error *err)
{
    fini_layer_plan p = plan_of(values);
    if (p.d < 2 * p.P)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%lld pairs of orthonormal vectors do not fit into d = %lld dimensions; d = "
            "%lld or more is allowed",
            (long long)p.P, (long long)p.d, (long long)(2 * p.P));
    if (p.L < p.P)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = %lld tokens are fewer than the P = %lld relevant ones",
                         (long long)p.L, (long long)p.P);
    if (p.batch * p.L * p.d > INT64_C(1) << 31)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a batch of %lld samples of %lld tokens in %lld dimensions has more than "
                         "2^31 numbers; a smaller batch is allowed",
                         (long long)p.batch, (long long)p.L, (long long)p.d);
    if (fini_layer_logs(&p) * p.runs > 10000000)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld logged steps of %lld runs are more than 10 million; a larger "
                         "log_every is allowed",
                         (long long)fini_layer_logs(&p), (long long)p.runs);
    return FIN_OK;
}

/* ---- heads and directions ----------------------------------------------------------------------- */

typedef struct match {
    double sum; /* of keys */
    int of[FINI_LAYER_HEADS];
} match;

/* All ways to give heads h, h + 1, ... different directions, or none where there are fewer. */
static void assign(const fini_layer_plan *p, const fini_layer_look *look, int h, unsigned taken,
                   match *now, match *best)
{
    if (h == p->H) {
        if (now->sum > best->sum)
            *best = *now;
        return;
    }
    int free_heads = (int)p->H - h, free_directions = (int)p->P;
    for (int s = 0; s < p->P; s++)
        free_directions -= taken >> s & 1;
    for (int s = free_heads > free_directions ? -1 : 0; s < p->P; s++) {
        if (s >= 0 && taken >> s & 1)
            continue;
        match next = *now;
        next.of[h] = s;
        next.sum += s >= 0 ? look->key[h][s] : 0;
        assign(p, look, h + 1, s >= 0 ? taken | 1u << s : taken, &next, best);
    }
}

/* What a run has come to: matched means, and whether heads are apart or on the same direction. */
typedef struct sight {
    double rank_one, key, value;
    bool apart, same;
} sight;

static sight see(const fini_layer_plan *p, const fini_layer_look *look, double found)
{
    sight out = {0};
    match none = {0}, best = {.sum = -1};
    double pairs = (double)(p->H < p->P ? p->H : p->P);
    assign(p, look, 0, 0, &none, &best);
    out.apart = true;
    for (int h = 0; h < p->H; h++) {
        int s = best.of[h];
        out.rank_one += look->rank_one[h] / (double)p->H;
        if (s < 0)
            continue;
        out.key += look->key[h][s] / pairs;
        out.value += look->value[h][s] / pairs;
        out.apart = out.apart && look->key[h][s] >= found;
    }
    for (int s = 0; s < p->P; s++) {
        int on = 0;
        for (int h = 0; h < p->H; h++)
            on += look->key[h][s] >= found;
        out.same = out.same || (on > 1 && !out.apart);
    }
    return out;
}

/* ---- the result ------------------------------------------------------------------------------------ */

typedef struct work {
    fini_layer_plan plan;
    double found;
    int64_t logs;
    fini_layer_look *look;      /* (runs, logs) */
    int64_t *made, *step;       /* (runs), (logs) */
    double *values, *mean, *at; /* (runs); (5, logs); (runs, logs, H, P) */
    fini_arena arena;
} work;

static void lay_out(work *w)
{
    const fini_layer_plan *p = &w->plan;
    w->look = fini_take(&w->arena, p->runs * w->logs, sizeof *w->look);
    w->made = fini_take(&w->arena, p->runs, sizeof *w->made);
    w->step = fini_take(&w->arena, w->logs, sizeof *w->step);
    w->values = fini_take(&w->arena, p->runs, sizeof *w->values);
    w->mean = fini_take(&w->arena, 5 * w->logs, sizeof *w->mean);
    w->at = fini_take(&w->arena, p->runs * w->logs * p->H * p->P, sizeof *w->at);
}

static bool ended(const work *w, int64_t run)
{
    return isfinite(w->look[(run + 1) * w->logs - 1].excess);
}

/* Mean and standard error of the first n of w->values. */
static void add_mean(const work *w, const char *name, int64_t n, fin_result *result)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        mean += w->values[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (w->values[i] - mean) * (w->values[i] - mean);
    fini_result_scalar(result, name, mean,
                       n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : NAN, FIN_HOW_RUNS, n);
}

/* One number of every run that ended; which: 0 excess, 1 rank_one, 2 key, 3 value, 4 apart, 5 same. */
static int64_t gather(const work *w, int64_t log, int which)
{
    int64_t n = 0;
    for (int64_t run = 0; run < w->plan.runs; run++) {
        const fini_layer_look *look = &w->look[run * w->logs + log];
        if (!ended(w, run))
            continue;
        sight s = see(&w->plan, look, w->found);
        const double all[] = {look->excess, s.rank_one, s.key, s.value, s.apart, s.same};
        w->values[n++] = all[which];
    }
    return n;
}

static void add_ends(const work *w, fin_result *result)
{
    static const char *const names[] = {"excess", "rank_one", "key", "value", "apart", "same"};
    const fini_layer_plan *p = &w->plan;
    int64_t last = w->logs - 1, n = gather(w, 0, 0);
    add_mean(w, "excess_start", n, result);
    const fini_layer_look *worst = NULL;
    for (int64_t run = 0; run < p->runs; run++) {
        const fini_layer_look *look = &w->look[run * w->logs + last];
        if (ended(w, run) && (!worst || look->excess > worst->excess))
            worst = look;
    }
    fini_result_scalar(result, "excess_worst", worst->excess, worst->error, FIN_HOW_SIMULATION,
                       p->test);
    for (int i = 0; i < 6; i++) {
        gather(w, last, i);
        if (i < 4 && !(i == 1 && isnan(w->values[0])))
            add_mean(w, names[i], n, result);
        int64_t count = 0;
        for (int64_t k = 0; k < n; k++)
            count += w->values[k] > 0;
        if (i >= 4)
            fini_result_share(result, names[i], NULL, count, n);
    }
    fini_result_share(result, "diverged", NULL, p->runs - n, p->runs);
    if (w->logs < 2 || isnan(w->look[last].rank_one[0]))
        return;
    int64_t k = 0;
    for (int64_t run = 0; run < p->runs; run++) {
        double least = 1;
        for (int64_t log = 1; log <= last; log++)
            least = fmin(least, see(p, &w->look[run * w->logs + log], w->found).rank_one);
        if (ended(w, run))
            w->values[k++] = least;
    }
    add_mean(w, "rank_one_least", k, result);
}

/* c sum_l X_l.(v*_1 + ... + v*_P) at its best c = a gamma^2 / N has the excess risk
 *     P gamma^2 (1 - a^2 gamma^2 / N),  N = a P gamma^2 + L - P,  a = 1, or P if the noise is shared. */
static double linear_excess(const fini_layer_plan *p)
{
    double P = (double)p->P, a = p->shared ? P : 1, square = p->gamma * p->gamma;
    double N = a * P * square + (double)(p->L - p->P);
    return N > 0 ? P * square * (1 - a * a * square / N) : 0;
}

static void add_series(const work *w, fin_result *result)
{
    const fini_layer_plan *p = &w->plan;
    int64_t T = w->logs, cells = p->runs * T;
    for (int64_t t = 0; t < T; t++) {
        w->step[t] = fini_layer_step(p, t);
        for (int i = 0; i < 5; i++) {
            int64_t n = gather(w, t, i);
            w->mean[i * T + t] = 0;
            for (int64_t k = 0; k < n; k++)
                w->mean[i * T + t] += w->values[k] / (double)n;
        }
    }
    fini_result_series(result, "step", FIN_I64, 1, (int64_t[]){T}, w->step);
    fini_result_series(result, "mean", FIN_F64, 2, (int64_t[]){5, T}, w->mean);
    for (int64_t i = 0; i < cells; i++)
        w->at[i] = w->look[i].excess;
    fini_result_series(result, "excess_path", FIN_F64, 2, (int64_t[]){p->runs, T}, w->at);
    for (int64_t i = 0; i < cells; i++)
        w->at[i] = w->look[i].error;
    fini_result_series(result, "excess_path_error", FIN_F64, 2, (int64_t[]){p->runs, T}, w->at);
    for (int64_t i = 0; i < cells * p->H; i++)
        w->at[i] = w->look[i / p->H].rank_one[i % p->H];
    fini_result_series(result, "rank_one_path", FIN_F64, 3, (int64_t[]){p->runs, T, p->H}, w->at);
    for (int value = 0; value < 2; value++) {
        for (int64_t i = 0; i < cells * p->H * p->P; i++) {
            const fini_layer_look *look = &w->look[i / p->P / p->H];
            int64_t h = i / p->P % p->H, s = i % p->P;
            w->at[i] = value ? look->value[h][s] : look->key[h][s];
        }
        fini_result_series(result, value ? "value_path" : "key_path", FIN_F64, 4,
                           (int64_t[]){p->runs, T, p->H, p->P}, w->at);
    }
}

static fin_status sum_up(const work *w, fin_result *result, fin_error *err)
{
    int64_t last = 0;
    for (int64_t run = 0; run < w->plan.runs; run++) {
        if (ended(w, run)) {
            add_ends(w, result);
            fini_result_scalar(result, "linear", linear_excess(&w->plan), 0, FIN_HOW_CLOSED, 0);
            add_series(w, result);
            return FIN_OK;
        }
        last = w->made[run] > last ? w->made[run] : last;
    }
    return fini_fail(
        err, FIN_ERR_NUMERIC,
        "all %lld runs diverged, the last one behind step %lld; a smaller alpha usually "
        "helps",
        (long long)w->plan.runs, (long long)last);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const layer_values *v = values;
    work w = {.plan = plan_of(v), .found = v->found};
    w.logs = fini_layer_logs(&w.plan);
    FINI_LAY_OUT(err, &w.arena, "what is logged of layers", lay_out(&w));
    fin_status status = fini_layer_run(&w.plan, w.look, w.made, progress, err);
    if (!status)
        status = sum_up(&w, result, err);
    fini_arena_close(&w.arena);
    return status;
}

const fin_command fini_command_layer = {
    .name = "layer",
    .summary = "a transformer layer trained on single-location regression: risk, rank, directions",
    .revision = 1,
    .size = sizeof(layer_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(layer_table),
    .check = check,
    .run = run,
};
