/* Loss over bags and its gradient: the only place that walks through all tokens.
 *
 *     risk(W, e) = sum_i w_i loss(form, W phi_i, e; y_i) / sum_i w_i
 *
 * Bags are taken in runs that fit a core's own cache: a run's tokens are projected on the q rows of
 * W, given to the form bag by bag, and what the form gives back is gathered from the same tokens
 * while they are there. Views of raw columns are centred and cut off on the way from memory
 * (kernel/rows.h), and nothing is copied, so tokens mapped from a file are read once per evaluation,
 * at the speed of memory. What is small, and read hundreds of times, is standardised beforehand.
 *
 * What is large and in float is seen and multiplied in float, and added up in double, if the problem says that it
 * may be rough; then runs fit the nearest cache. The loss is off by some 1e-9 of itself then, its slopes by 1e-7.
 *
 * Threads share blocks of bags (share.c), and a block is summed bag by bag. So no bit depends
 * on the threads. */
#include "bags/bags.h"
#include "bags/map.h"

#include "kernel/rows.h"
#include "math/small.h"

#include <float.h>
#include <omp.h>
#include <string.h>

enum {
    CACHE = 256 * 1024,
    NEAR_CACHE = 16 * 1024,
    LEAST_ROWS = 16,
    MOST_ROWS = 4096,
    FEW_NUMBERS = 4000000
};

/* Tokens of a run. */
static int64_t rows_of(const fini_phi *phi, bool rough)
{
    int64_t rows =
        (rough ? NEAR_CACHE : CACHE) / (phi->bags.dtype == FIN_F32 ? 4 : 8) / phi->bags.d;
    return rows < LEAST_ROWS ? LEAST_ROWS : rows > MOST_ROWS ? MOST_ROWS : rows;
}

/* ---- tokens of a view ------------------------------------------------------------------------- */

/* W with the columns' scales: what the kernels, which centre and cut off but do not scale, want. */
static void scaled(const fini_phi *phi, int64_t q, const double *W, double *to)
{
    int64_t p = phi->bags.d;
    for (int64_t c = 0; c < q; c++)
        for (int64_t j = 0; j < p; j++)
            to[c * p + j] = phi->scale ? phi->scale[j] * W[c * p + j] : W[c * p + j];
}

static void project(const fini_phi *phi, int64_t row, int64_t rows, int64_t q, const double *W,
                    double *U)
{
    const fini_rows *kernel = fini_rows_get();
    int64_t p = phi->bags.d;
    if (phi->bags.dtype == FIN_F32)
        kernel->project_f32(rows, p, (const float *)phi->bags.tokens + row * p, phi->center,
                            phi->bound, q, W, U);
    else
        kernel->project_f64(rows, p, (const double *)phi->bags.tokens + row * p, phi->center,
                            phi->bound, q, W, U);
}

static void gather(const fini_phi *phi, int64_t row, int64_t rows, int64_t q, const double *dU,
                   double *G)
{
    const fini_rows *kernel = fini_rows_get();
    int64_t p = phi->bags.d;
    if (phi->bags.dtype == FIN_F32)
        kernel->gather_f32(rows, p, (const float *)phi->bags.tokens + row * p, phi->center,
                           phi->bound, q, dU, G);
    else
        kernel->gather_f64(rows, p, (const double *)phi->bags.tokens + row * p, phi->center,
                           phi->bound, q, dU, G);
}

int64_t fini_project_scratch(const fini_phi *phi, int64_t q)
{
    return phi->scale ? q * phi->bags.d : 0;
}

/* A long bag is projected, and gathered from, piece by piece: in between somebody may want to stop it. No
 * bit depends on the pieces (kernel/rows.h). */
static void project_all(const fini_phi *phi, int64_t row, int64_t rows, int64_t q, const double *W,
                        double *U, fini_cancel *cancel)
{
    for (int64_t at = 0, some; at < rows; at += some) {
        some = rows - at < MOST_ROWS ? rows - at : MOST_ROWS;
        if (fini_cancelled(cancel, (double)(some * phi->bags.d * q)))
            return;
        project(phi, row + at, some, q, W, U + at * q);
    }
}

void fini_project(const fini_phi *phi, int64_t first_row, int64_t rows, int64_t q, const double *W,
                  double *U, double *scratch, fini_cancel *cancel)
{
    if (phi->scale)
        scaled(phi, q, W, scratch);
    project_all(phi, first_row, rows, q, phi->scale ? scratch : W, U, cancel);
}

const double *fini_phi_row(const fini_phi *phi, int64_t row, double *buffer)
{
    int64_t p = phi->bags.d;
    const double *x = fini_row(&phi->bags, row, 0, p, buffer);
    if (!phi->center)
        return x;
    for (int64_t j = 0; j < p; j++) {
        double t = x[j] - phi->center[j], most = phi->bound[j];
        t = t > most ? most : t < -most ? -most : t;
        buffer[j] = phi->scale[j] * t;
    }
    return buffer;
}

static void count_tokens(const void *user, int64_t i, double *sums)
{
    const fin_bags *bags = user;
    sums[0] += (double)(bags->offsets[i + 1] - bags->offsets[i]);
}

fin_status fini_phi_settle(fini_phi *phi, fin_sum sum, fin_error *err)
{
    const double most = 32e6; /* bytes */
    int64_t p = phi->bags.d, n = phi->bags.n, used = 0;
    int64_t rows = n ? phi->bags.offsets[n] - phi->bags.offsets[0] : 0;
    double tokens;
    if (!phi->center || phi->owned)
        return FIN_OK;
    /* The number of tokens of everybody decides, or the bits would depend on the processes. */
    FINI_TRY(fini_bags_sum(&phi->bags, sum, 1, 1, count_tokens, &phi->bags, &tokens, err));
    if (tokens * (double)p * sizeof(double) > most)
        return FIN_OK;
    for (int64_t j = 0; j < p; j++)
        used += phi->scale[j] != 0;
    double *row = fini_alloc_array(p, sizeof *row);
    double *copy = fini_alloc_array(rows * used, sizeof *copy);
    if (!copy || !row) {
        fini_free_all(row, copy);
        return fini_fail_memory(err, (size_t)(rows * used) * sizeof *copy, "standardised tokens");
    }
    for (int64_t r = 0, at = 0; r < rows; r++) {
        fini_phi_row(phi, r, row);
        for (int64_t j = 0; j < p; j++)
            if (phi->scale[j] != 0)
                copy[at++] = row[j];
    }
    fini_free(row);
    phi->owned = copy;
    phi->bags.tokens = copy;
    phi->bags.dtype = FIN_F64;
    phi->bags.d = used;
    phi->left_out = 0;
    phi->center = phi->scale = phi->bound = NULL;
    return FIN_OK;
}

/* ---- a training problem ------------------------------------------------------------------------- */

typedef struct lane {
    double *U, *dU;    /* (tokens, q) */
    double *work;      /* the form's */
    double *bag_extra; /* (extras) of one bag */
    double *G, *total; /* rough: (q, wide), (q) of a block */
} lane;

struct fini_risk {
    fini_bag_shape shape;
    const fini_phi *phi;
    const double *labels, *weights;
    fin_sum sum;
    int64_t p, q, extras, parameters;
    int64_t blocks, own; /* of everybody, of this process */
    int64_t rows;        /* of a run */
    double weight;       /* sum over all bags of everybody */
    int64_t *begin;      /* (own + 1) first bag of every block */
    int lanes;
    lane *lane;   /* (lanes) */
    double *W;    /* (q, p) scaled */
    double *part; /* (own, parameters + 1) gradient, loss */
    double *all;  /* (parameters + 1) */
    bool rough;
    fini_rows_view view;
    float *low, *high, *Wf; /* rough: (wide) that the view is of; (q, wide) scaled */
    double *start;          /* rough: (q) what the centre does to scores */
    fini_cancel *cancel;
    fini_arena arena;
};

static void layout(fini_arena *a, fini_risk *o)
{
    int64_t longest = o->shape.longest > o->rows ? o->shape.longest : o->rows;
    int64_t wide = o->rough ? FINI_ROWS_WIDE(o->p) : 0, work = o->shape.form->scratch(&o->shape);
    if (o->rough && work < 5 * MOST_ROWS)
        work = 5 * MOST_ROWS;
    o->lane = fini_take(a, o->lanes, sizeof *o->lane);
    o->begin = fini_take(a, o->own + 1, sizeof *o->begin);
    o->W = fini_take(a, o->q * o->p, sizeof *o->W);
    o->part = fini_take(a, o->own * (o->parameters + 1), sizeof *o->part);
    o->all = fini_take(a, o->parameters + 1, sizeof *o->all);
    o->low = fini_take(a, wide, sizeof *o->low);
    o->high = fini_take(a, wide, sizeof *o->high);
    o->start = fini_take(a, o->q, sizeof *o->start);
    o->Wf = fini_take(a, o->q * wide, sizeof *o->Wf);
    for (int i = 0; i < o->lanes; i++) {
        lane one = {0};
        one.U = fini_take(a, longest * o->q, sizeof(double));
        one.dU = fini_take(a, longest * o->q, sizeof(double));
        one.work = fini_take(a, work, sizeof(double));
        one.bag_extra = fini_take(a, o->extras, sizeof(double));
        one.G = fini_take(a, o->q * wide, sizeof(double));
        one.total = fini_take(a, o->q, sizeof(double));
        if (a->base)
            o->lane[i] = one;
    }
}

/* Columns that lie at most so many deviations from 0, and in the range of float. The mean of |z|^2 is 1. */
static bool may_be_rough(const fini_problem *problem)
{
    const double far = 50, range = 1e15;
    const fini_phi *phi = problem->phi;
    bool may = problem->rough && phi->bags.dtype == FIN_F32 && phi->center;
    for (int64_t j = 0; may && j < phi->bags.d; j++) {
        double scale = phi->scale[j], center = fabs(phi->center[j]);
        if (scale != 0)
            may = scale < range && scale > 1 / range && center < range &&
                  center * scale * sqrt((double)phi->bags.d) < far;
    }
    return may;
}

static float in_range(double x)
{
    return x > FLT_MAX ? INFINITY : x < -FLT_MAX ? -INFINITY : (float)x;
}

static void open_view(fini_risk *o)
{
    const fini_phi *phi = o->phi;
    int64_t wide = FINI_ROWS_WIDE(o->p);
    memset(o->low, 0, (size_t)wide * sizeof *o->low);
    memset(o->high, 0, (size_t)wide * sizeof *o->high);
    memset(o->Wf, 0, (size_t)(o->q * wide) * sizeof *o->Wf);
    for (int64_t j = 0; j < o->p; j++)
        if (phi->scale[j] != 0) {
            o->low[j] = in_range(phi->center[j] - phi->bound[j]);
            o->high[j] = in_range(phi->center[j] + phi->bound[j]);
        }
    o->view = (fini_rows_view){o->p, o->low, o->high};
}

/* W in float, and what it makes of the centre. */
static void round_off(fini_risk *o)
{
    for (int64_t c = 0; c < o->q; c++) {
        float *w = o->Wf + c * FINI_ROWS_WIDE(o->p);
        o->start[c] = 0;
        for (int64_t j = 0; j < o->p; j++) {
            w[j] = (float)o->W[c * o->p + j];
            o->start[c] -= o->phi->scale[j] != 0 ? (double)w[j] * o->phi->center[j] : 0;
        }
    }
}

double fini_risk_noise(const fini_risk *risk)
{
    return risk->rough ? 1e-8 : 0;
}

static double weight_of(const fini_risk *o, int64_t i)
{
    return o->weights ? o->weights[i] : 1;
}

static void add_weight(const void *user, int64_t i, double *sums)
{
    double w = weight_of(user, i);
    sums[0] += w > 0 ? w : 0;
}

static fin_status weigh(fini_risk *o, fin_error *err)
{
    for (int64_t b = 0; b < o->own; b++)
        fini_bags_block(&o->phi->bags, b, &o->begin[b], &o->begin[b + 1]);
    FINI_TRY(fini_bags_sum(&o->phi->bags, o->sum, 1, 1, add_weight, o, &o->weight, err));
    if (!(o->weight > 0 && o->weight < INFINITY))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the weights of the bags sum to %g; at least one must be positive",
                         o->weight);
    return FIN_OK;
}

fin_status fini_risk_create(fini_risk **risk, const fini_bag_form *form,
                            const fini_problem *problem, fin_error *err)
{
    const fini_phi *phi = problem->phi;
    fini_bag_shape shape = *problem->shape;
    *risk = NULL;
    shape.form = form;
    shape.longest = fini_bags_longest(&phi->bags);
    FINI_MAKE(err, "a training problem", fini_risk, o);
    *o = (fini_risk){.shape = shape,
                     .phi = phi,
                     .labels = problem->labels,
                     .weights = problem->weights,
                     .sum = problem->sum ? problem->sum : fini_sum_alone,
                     .cancel = problem->cancel,
                     .p = phi->bags.d,
                     .q = form->keys(&shape) + form->values(&shape),
                     .extras = form->extras(&shape),
                     .rough = may_be_rough(problem)};
    o->rows = rows_of(phi, o->rough);
    int64_t first;
    o->parameters = o->q * o->p + o->extras;
    o->blocks = fin_bags_blocks(phi->bags.total);
    fini_bags_own(&phi->bags, &first, &o->own);
    int threads = fin_threads_get(); /* once: another thread may set another number meanwhile */
    o->lanes = threads < o->own ? threads : (int)o->own;
    o->lanes = o->lanes < 1 ? 1 : o->lanes;
    layout(&o->arena, o);
    fin_status status = fini_arena_open(&o->arena, "a training problem", err);
    if (!status) {
        layout(&o->arena, o);
        if (o->rough)
            open_view(o);
        status = weigh(o, err);
    }
    FINI_HAND_OVER(risk, o, status, fini_risk_destroy);
}

void fini_risk_destroy(fini_risk *risk)
{
    if (!risk)
        return;
    fini_arena_close(&risk->arena);
    fini_free(risk);
}

int64_t fini_risk_parameters(const fini_risk *risk)
{
    return risk->parameters;
}

/* ---- one evaluation ------------------------------------------------------------------------------ */

/* Form and derivatives of bags from .. to - 1, whose tokens begin at row 0 of the lane's U. */
static double ask(const fini_risk *o, const lane *t, int64_t from, int64_t to, const double *extra,
                  double *gradient)
{
    const int64_t *offsets = o->phi->bags.offsets;
    double loss = 0, *dextra = t->bag_extra;
    memset(dextra, 0, (size_t)o->extras * sizeof *dextra);
    if (o->rough && o->shape.form->losses && o->shape.heads == 1 && o->shape.classes == 2 &&
        offsets[to] - offsets[from] <= MOST_ROWS) {
        const fini_bag_run some = {.shape = &o->shape,
                                   .extra = extra,
                                   .bags = to - from,
                                   .offsets = offsets + from,
                                   .labels = o->labels + from,
                                   .weights = o->weights ? o->weights + from : NULL,
                                   .U = t->U,
                                   .scratch = t->work};
        return o->shape.form->losses(&some, t->dU, gradient ? gradient + o->q * o->p : dextra);
    }
    for (int64_t i = from; i < to; i++) {
        int64_t L = offsets[i + 1] - offsets[i], at = (offsets[i] - offsets[from]) * o->q;
        double w = weight_of(o, i);
        memset(dextra, 0, (size_t)o->extras * sizeof *dextra);
        const fini_bag bag = {&o->shape, extra, L, t->U + at, t->work, o->cancel};
        loss += w * o->shape.form->loss(&bag, o->labels[i], t->dU + at, dextra);
        for (int64_t e = 0; gradient && e < o->extras; e++)
            gradient[o->q * o->p + e] += w * dextra[e];
        for (int64_t j = 0; gradient && w != 1 && j < L * o->q; j++)
            t->dU[at + j] *= w;
    }
    return loss;
}

static void project_run(const fini_risk *o, int64_t row, int64_t rows, double *U)
{
    if (o->rough)
        fini_rows_get()->project_float(rows, &o->view,
                                       (const float *)o->phi->bags.tokens + row * o->p, o->q, o->Wf,
                                       o->start, U);
    else
        project(o->phi, row, rows, o->q, o->W, U);
}

static void gather_run(const fini_risk *o, const lane *t, int64_t row, int64_t rows,
                       const double *dU, double *gradient)
{
    if (o->rough)
        fini_rows_get()->gather_float(rows, &o->view,
                                      (const float *)o->phi->bags.tokens + row * o->p, o->q, dU,
                                      t->G, t->total);
    else
        gather(o->phi, row, rows, o->q, dU, gradient);
}

/* A run of bags: projected, asked, gathered. */
static double run(const fini_risk *o, const lane *t, int64_t from, int64_t to, const double *extra,
                  double *gradient)
{
    const int64_t *offsets = o->phi->bags.offsets;
    int64_t first = offsets[from] - offsets[0], tokens = offsets[to] - offsets[from], some;
    double products = (double)(o->p * o->q), loss;
    for (int64_t at = 0; at < tokens; at += some) {
        some = fini_least(tokens - at, MOST_ROWS);
        if (fini_cancelled(o->cancel, (double)some * products))
            break;
        project_run(o, first + at, some, t->U + at * o->q);
    }
    loss = ask(o, t, from, to, extra, gradient);
    for (int64_t at = 0; at < tokens && gradient; at += some) {
        some = fini_least(tokens - at, MOST_ROWS);
        if (fini_cancelled(o->cancel, (double)some * products))
            break;
        gather_run(o, t, first + at, some, t->dU + at * o->q, gradient);
    }
    return loss;
}

/* Runs end before bags without weight, and where the cache is full. */
static double block(const fini_risk *o, const lane *t, int64_t b, const double *extra,
                    double *gradient)
{
    const int64_t *offsets = o->phi->bags.offsets;
    int64_t from = o->begin[b], to = o->begin[b + 1], wide = FINI_ROWS_WIDE(o->p);
    double loss = 0;
    if (o->rough) {
        memset(t->G, 0, (size_t)(o->q * wide) * sizeof *t->G);
        memset(t->total, 0, (size_t)o->q * sizeof *t->total);
    }
    while (from < to) {
        int64_t end = from + 1;
        if (!(weight_of(o, from) > 0)) {
            from++;
            continue;
        }
        while (end < to && weight_of(o, end) > 0 && offsets[end + 1] - offsets[from] <= o->rows)
            end++;
        if (fini_cancelled(o->cancel, 0))
            break;
        loss += run(o, t, from, end, extra, gradient);
        from = end;
    }
    for (int64_t c = 0; c < o->q && o->rough && gradient; c++)
        for (int64_t j = 0; j < o->p; j++)
            gradient[c * o->p + j] = t->G[c * wide + j] - t->total[c] * o->phi->center[j];
    return loss;
}

fin_status fini_risk_value(fini_risk *o, const double *parameters, double *loss, double *gradient,
                           fin_error *err)
{
    const int64_t *offsets = o->phi->bags.offsets;
    int64_t n = o->phi->bags.n, width = gradient ? o->parameters + 1 : 1;
    const double *extra = parameters + o->q * o->p;
    int threads = fin_threads_get();
    threads = threads < o->lanes ? threads : o->lanes;
    if (n == 0 || (offsets[n] - offsets[0]) * o->p * o->q < FEW_NUMBERS)
        threads = 1; /* waking a second thread costs more */
    scaled(o->phi, o->q, parameters, o->W);
    if (o->rough)
        round_off(o);
    atomic_llong left = o->own;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t b = 0; b < o->own; b++) {
            double *part = o->part + b * width;
            memset(part, 0, (size_t)width * sizeof *part);
            part[width - 1] =
                block(o, &o->lane[omp_get_thread_num()], b, extra, gradient ? part : NULL);
            atomic_fetch_sub(&left, 1);
        }
        fini_cancel_wait(o->cancel, &left);
    }
    fin_status status = fini_cancel_end(o->cancel, err);
    if (status)
        return status;
    status = o->sum(o->blocks, width, o->part, o->all, err);
    *loss = o->all[width - 1] / o->weight;
    for (int64_t j = 0; gradient && j < o->parameters; j++)
        gradient[j] = o->all[j] / o->weight;
    for (int64_t j = 0; gradient && o->phi->scale && j < o->q * o->p; j++)
        gradient[j] *= o->phi->scale[j % o->p];
    return status;
}
