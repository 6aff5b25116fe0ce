/* A start for a needle: where the bags reach farthest.
 *
 * Attention that starts at mean pooling sees nothing of one odd token among a thousand: it moves the
 * mean by a thousandth. It moves the largest or the smallest value of a column by much. So
 *
 *     a_ij = max_l phi_ilj,  b_ij = min_l phi_ilj,     each standardised over the training bags,
 *
 * and a ridge-penalised logistic regression of the labels on both (2 p numbers a bag, convex, cheap:
 * bags, not tokens) gives alpha, beta and with them a direction for tokens,
 *
 *     w_j = alpha_j / sd(a_j) + beta_j / sd(b_j):
 *
 * a token far out on the side on which class 1 is has a large w.phi. With t_i = max_l w.phi_il and
 * s_i = min_l w.phi_il, either the bags of class 1 reach higher (t is what tells them apart) or those
 * of class 0 reach lower (s is). Keys look there, values read w.phi there. Whether it is a better place
 * to start from than the mean the objective says (descend.c). Two classes.
 *
 * Where a form sees columns and RBF features, j runs over the columns alone: a needle that is rare is no
 * landmark, and the ends of many features are noise. */
#include "bags/descend.h"

#include <omp.h>
#include <string.h>

/* Penalty of the regression, against the sum of losses; the direction hardly depends on it. */
static const double penalty = 1, widest = 4;
enum { STEPS = 100, ZERO = 1, ONE = 4, TALLY = 7 }; /* where a class stands in a tally */

typedef struct extreme {
    const fini_problem *problem;
    int64_t n, p;         /* p: columns that are looked at, the first ones of phi */
    double *values;       /* (n, 2 p) a, b of the bags */
    double *mean, *scale; /* (2 p) */
    double *x;            /* (2 p + 1) of the regression */
    double *sum;          /* (2 p) */
    bool squares;         /* what is summed */
    double *low, *high;   /* (n) ends of w.phi in a bag */
    double *tokens;       /* (n, 2) its mean over a bag, and sum of squares about it */
    double means[TALLY];  /* what squares are about */
    fini_arena arena;
    fini_lbfgs search;
    fini_risk *risk;
} extreme;

static void layout(extreme *e)
{
    fini_arena *a = &e->arena;
    e->values = fini_take(a, e->n, 2 * (size_t)e->p * sizeof(double));
    e->mean = fini_take(a, 2 * e->p, sizeof(double));
    e->scale = fini_take(a, 2 * e->p, sizeof(double));
    e->x = fini_take(a, 2 * e->p + 1, sizeof(double));
    e->sum = fini_take(a, 2 * e->p, sizeof(double));
    e->low = fini_take(a, e->n, sizeof(double));
    e->high = fini_take(a, e->n, sizeof(double));
    e->tokens = fini_take(a, e->n, 2 * sizeof(double));
}

/* ---- largest and smallest values ---------------------------------------------------------------- */

static fin_status take_values(extreme *e, fin_error *err)
{
    const fini_problem *o = e->problem;
    const fini_phi *phi = o->phi;
    int64_t p = e->p, d = phi->bags.d;
    int threads = phi->bags.n * p < 20000 ? 1 : fin_threads_get();
    double *buffer = fini_alloc_array(threads * d, sizeof *buffer);
    if (!buffer)
        return fini_fail_memory(err, (size_t)(threads * d) * sizeof *buffer, "ends of columns");
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int64_t i = 0; i < e->n; i++) {
        int64_t from = phi->bags.offsets[i] - phi->bags.offsets[0];
        int64_t to = phi->bags.offsets[i + 1] - phi->bags.offsets[0];
        double *a = e->values + i * 2 * p, *b = a + p;
        for (int64_t r = from; r < to && o->weights[i] > 0; r++) {
            if (fini_row_cancelled(o->cancel, r - from, to - from, 2 * p))
                break;
            const double *x = fini_phi_row(phi, r, buffer + omp_get_thread_num() * d);
            for (int64_t j = 0; j < p; j++) {
                a[j] = r == from || x[j] > a[j] ? x[j] : a[j];
                b[j] = r == from || x[j] < b[j] ? x[j] : b[j];
            }
        }
    }
    fini_free(buffer);
    return fini_cancel_end(o->cancel, err);
}

/* Sums over training bags of values - mean, or of its square. */
static void add_values(const void *user, int64_t i, double *sums)
{
    const extreme *e = user;
    int64_t width = 2 * e->p;
    for (int64_t j = 0; j < width && e->problem->weights[i] > 0; j++) {
        double t = e->values[i * width + j] - e->mean[j];
        sums[j] += e->squares ? t * t : t;
    }
}

static fin_status sum_values(extreme *e, bool squares, fin_error *err)
{
    e->squares = squares;
    return fini_bags_sum(&e->problem->phi->bags, e->problem->sum, 1, 2 * e->p, add_values, e,
                         e->sum, err);
}

/* Centred, divided by deviations, and all by one number that makes the mean of |.|^2 1. */
static fin_status standardise(extreme *e, bool *any, fin_error *err)
{
    const fini_problem *o = e->problem;
    int64_t width = 2 * e->p, used = 0;
    fin_status status = sum_values(e, false, err);
    for (int64_t j = 0; j < width && !status; j++)
        e->mean[j] = e->sum[j] / o->bags;
    if (!status)
        status = sum_values(e, true, err);
    for (int64_t j = 0; j < width && !status; j++) {
        double deviation = sqrt(e->sum[j] / o->bags);
        e->scale[j] = deviation > 1e-9 ? 1 / deviation : 0;
        used += e->scale[j] > 0;
    }
    *any = used > 0;
    for (int64_t j = 0; j < width && !status && *any; j++)
        e->scale[j] /= sqrt((double)used);
    for (int64_t k = 0; k < e->n * width && !status; k++)
        if (o->weights[k / width] > 0)
            e->values[k] = (e->values[k] - e->mean[k % width]) * e->scale[k % width];
    return status;
}

/* ---- the regression ------------------------------------------------------------------------------ */

static fin_status evaluate(void *user, const double *x, double *value, double *slope,
                           fin_error *err)
{
    extreme *e = user;
    FINI_TRY(fini_risk_value(e->risk, x, value, slope, err));
    double times = penalty / e->problem->weight;
    for (int64_t j = 0; j < 2 * e->p; j++) {
        *value += 0.5 * times * x[j] * x[j];
        slope[j] += times * x[j];
    }
    return FIN_OK;
}

/* The first p of w, as above. */
static fin_status regress(extreme *e, double *w, fin_error *err)
{
    const fini_problem *o = e->problem;
    int64_t p = e->p;
    FINI_OWN(err, "ends of columns", int64_t, offsets, e->n + 1, 1);
    for (int64_t i = 0; i <= e->n; i++)
        offsets[i] = i;
    fini_problem means = *o;
    fini_phi rows = {.bags = o->phi->bags};
    rows.bags.d = 2 * p;
    rows.bags.dtype = FIN_F64;
    rows.bags.tokens = e->values;
    rows.bags.offsets = offsets;
    means.phi = &rows;
    FINI_TRY(fini_risk_create(&e->risk, &fini_bag_mean, &means, err));
    FINI_TRY(fini_lbfgs_create(&e->search, 2 * p + 1, err));
    e->search.iterations = STEPS;
    e->search.relative = 1e-4;
    e->search.function = evaluate;
    e->search.user = e;
    FINI_TRY(fini_lbfgs_run(&e->search, e->x, err));
    for (int64_t j = 0; j < p; j++)
        w[j] = e->x[j] * e->scale[j] + e->x[p + j] * e->scale[p + j];
    return FIN_OK;
}

/* ---- what tokens have of it --------------------------------------------------------------------- */

static fin_status project(extreme *e, const double *w, fin_error *err)
{
    const fini_problem *o = e->problem;
    const fini_phi *phi = o->phi;
    int64_t longest = fini_bags_longest(&phi->bags), room = fini_project_scratch(phi, 1);
    FINI_OWN(err, "scores", double, u, longest + room, 1);
    for (int64_t i = 0; i < e->n; i++) {
        int64_t row = phi->bags.offsets[i] - phi->bags.offsets[0];
        int64_t L = phi->bags.offsets[i + 1] - phi->bags.offsets[i];
        double *mean = e->tokens + 2 * i, *squares = mean + 1;
        *mean = *squares = 0;
        if (!(o->weights[i] > 0) || fini_cancelled(o->cancel, 0))
            continue;
        fini_project(phi, row, L, 1, w, u, u + longest, o->cancel);
        e->low[i] = e->high[i] = u[0];
        for (int64_t l = 0; l < L; l++) {
            e->low[i] = fmin(e->low[i], u[l]);
            e->high[i] = fmax(e->high[i], u[l]);
            *mean += u[l];
        }
        *mean /= (double)L;
        for (int64_t l = 0; l < L; l++)
            *squares += (u[l] - *mean) * (u[l] - *mean);
    }
    return fini_cancel_end(o->cancel, err);
}

/* Sums of tokens' w.phi, and for each class of bags, lower and upper ends; or of squares about the means. */
static void tally(const void *user, int64_t i, double *sums)
{
    const extreme *e = user;
    const fini_problem *o = e->problem;
    const int64_t *offsets = o->phi->bags.offsets;
    int at = o->labels[i] > 0.5 ? ONE : ZERO;
    double L = (double)(offsets[i + 1] - offsets[i]), off = e->tokens[2 * i] - e->means[0];
    double low = e->low[i] - e->means[at + 1], high = e->high[i] - e->means[at + 2];
    if (!(o->weights[i] > 0))
        return;
    sums[0] += e->squares ? e->tokens[2 * i + 1] + L * off * off : L * off;
    sums[at] += 1;
    sums[at + 1] += e->squares ? low * low : low;
    sums[at + 2] += e->squares ? high * high : high;
}

/* Means, and mean squares about them; *found: there are bags of both classes. */
static fin_status measure(extreme *e, double variance[TALLY], bool *found, fin_error *err)
{
    const fini_problem *o = e->problem;
    fin_status status = FIN_OK;
    memset(e->means, 0, sizeof e->means);
    for (int pass = 0; pass < 2 && !status && *found; pass++) {
        double *to = pass ? variance : e->means, sum[TALLY];
        e->squares = pass > 0;
        status = fini_bags_sum(&o->phi->bags, o->sum, 1, TALLY, tally, e, sum, err);
        *found = !status && sum[ZERO] > 0 && sum[ONE] > 0;
        for (int k = 0; k < TALLY && *found; k++)
            to[k] = sum[k] / (k == 0 ? o->tokens : sum[k < ONE ? ZERO : ONE]);
    }
    return status;
}

/* How far apart the classes are at an end (1: lower, 2: upper), in deviations; where: half-way. */
static double gap(const extreme *e, const double *variance, int end, double *where)
{
    double a = e->means[ZERO + end], b = e->means[ONE + end];
    *where = 0.5 * (a + b);
    return (b - a) / sqrt(fmax(variance[ZERO + end] + variance[ONE + end], 1e-12));
}

double fini_reach_value(const fini_ends *e, double middle)
{
    return fmin(widest, 2 / fmax(fabs(middle - e->mean) / e->sd, 1e-3)) / e->sd;
}

void fini_reach_keys(const fini_problem *problem, const fini_ends *e, double *x)
{
    const fini_bag_shape *shape = problem->shape;
    int64_t p = problem->phi->bags.d, keys = shape->form->keys(shape);
    double side = e->up >= e->down ? 1 : -1, middle = side > 0 ? e->above : e->below;
    double key = fmax(1, 0.5 * sqrt(2 * log(e->L))) / e->sd, value = fini_reach_value(e, middle);
    for (int64_t h = 0; h < keys; h++)
        for (int64_t j = 0; j < p; j++) {
            x[h * p + j] = side * key * e->w[j];
            x[(keys + h) * p + j] = value * e->w[j] / (double)keys;
        }
    x[2 * keys * p] = -value * middle;
}

/* From w and what tokens have of it to parameters of the form. */
static void set_parameters(const extreme *e, const double *w, const double variance[TALLY],
                           double *x)
{
    const fini_part *part = e->problem->part;
    fini_ends ends = {.w = w,
                      .L = e->problem->tokens / e->problem->bags,
                      .mean = e->means[0],
                      .sd = sqrt(fmax(variance[0], 1e-300))};
    ends.up = gap(e, variance, 2, &ends.above);
    ends.down = gap(e, variance, 1, &ends.below);
    memset(x, 0, (size_t)part->parameters * sizeof *x);
    part->form->reach(e->problem, &ends, x);
}

fin_status fini_extreme(const fini_problem *problem, double *x, bool *found, fin_error *err)
{
    const int64_t most = 64 * 1024 * 1024; /* bytes for all processes together */
    const fin_bags *bags = &problem->phi->bags;
    const fini_map *map = &problem->part->map;
    extreme e = {.problem = problem, .n = bags->n, .p = bags->d};
    if (map->m > 0 && map->linear > 0)
        e.p = map->linear;
    double variance[TALLY];
    *found = false;
    if (bags->total > most / 16 / bags->d)
        return FIN_OK;
    FINI_LAY_OUT(err, &e.arena, "ends of columns", layout(&e));
    double *w = fini_alloc_array(bags->d, sizeof *w);
    if (w)
        memset(w, 0, (size_t)bags->d * sizeof *w);
    fin_status status = w ? take_values(&e, err)
                          : fini_fail_memory(err, (size_t)bags->d * sizeof *w, "ends of columns");
    if (!status)
        status = standardise(&e, found, err);
    if (!status && *found)
        status = regress(&e, w, err);
    if (!status && *found)
        status = project(&e, w, err);
    if (!status && *found)
        status = measure(&e, variance, found, err);
    *found = *found && !status;
    if (*found)
        set_parameters(&e, w, variance, x);
    fini_risk_destroy(e.risk);
    fini_lbfgs_close(&e.search);
    fini_free(w);
    fini_arena_close(&e.arena);
    return status;
}
