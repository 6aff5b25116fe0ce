/* Runs of several heads: where they start, the two engines, threads. */
#include "train/heads.h"

#include "finetti/random.h"
#include "math/small.h"
#include "random/streams.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { AT_ONCE = 512 }; /* steps between two looks at the caller */

struct fini_heads {
    fini_heads_plan plan;
    int64_t blocks, width;   /* reduced: FINI_RUNS runs a block; ambient: a run */
    int64_t padded, scratch; /* ambient: of d; doubles of a thread */
    int threads;
    double *state; /* (blocks, width) */
    double *desk;  /* (threads, scratch) */
    double lam[AT_ONCE], alpha[AT_ONCE];
    fini_arena arena;
};

double fini_heads_lam(const fini_heads_plan *plan, int64_t step)
{
    return plan->lam / (1 + plan->decay * (double)fini_least(step, plan->until));
}

/* ---- where runs start --------------------------------------------------------------------------- */

/* Vectors that are uniform on the sphere of R^d: normals along the 2P that do not move, and the
 * triangle of Bartlett's decomposition in the dimensions that are left. */
static void start_reduced(const fini_heads_plan *plan, int64_t run, double *gram, int64_t stride)
{
    const fini_heads_model *m = &plan->model;
    int N = 2 * (int)m->H, S = 2 * (int)m->P, row = 0;
    double x[2 * FINI_HEADS][4 * FINI_HEADS] = {{0}};
    fin_random r;
    fin_random_open(&r, (uint64_t)plan->seed, FINI_STREAM_HEADS_START, (uint64_t)run);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < S + i; j++)
            x[i][j] = fin_random_normal(&r);
        x[i][S + i] = sqrt(fin_random_chi_square(&r, (double)(m->d - S - i)));
        double length = sqrt(fini_dot_in_order(S + i + 1, x[i], x[i]));
        for (int j = 0; j <= S + i; j++)
            x[i][j] /= length;
        for (int j = 0; j < i; j++)
            gram[row++ * stride] = fini_dot_in_order(S + j + 1, x[i], x[j]);
    }
    for (int i = 0; i < N; i++)
        for (int s = 0; s < S; s++)
            gram[row++ * stride] = x[i][s];
}

static void unit(int64_t d, double *x)
{
    double length = sqrt(fini_dot_in_order(d, x, x));
    for (int64_t i = 0; i < d; i++)
        x[i] = isinf(length) ? NAN : x[i] / length; /* a step too long is no step */
}

static void start(fini_heads *o)
{
    const fini_heads_plan *p = &o->plan;
    int64_t H = p->model.H, P = p->model.P, d = p->model.d;
    for (int64_t run = 0; run < p->runs; run++) {
        if (!p->ambient) {
            double *block = o->state + run / FINI_RUNS * o->width;
            start_reduced(p, run, block + run % FINI_RUNS, FINI_RUNS);
        }
        for (int64_t i = 0; i < 2 * H && p->ambient; i++) {
            double *x = o->state + run * o->width + i * o->padded;
            fin_random_normals_f64((uint64_t)p->seed, FINI_STREAM_HEADS_START, (uint64_t)run, i * d,
                                   d, x);
            unit(d, x);
        }
    }
    /* Lanes without a run repeat the last one. */
    for (int64_t run = p->runs; run < o->blocks * FINI_RUNS && !p->ambient; run++)
        for (int row = 0; row < FINI_HEADS_ROWS(H, P); row++) {
            double *lanes = o->state + (o->blocks - 1) * o->width + row * FINI_RUNS;
            lanes[run % FINI_RUNS] = lanes[(p->runs - 1) % FINI_RUNS];
        }
}

/* ---- in R^d ------------------------------------------------------------------------------------- */

double fini_heads_error(const fini_heads_sequence *s, double scale, double *g, double *room)
{
    const fini_kernel *kernel = fini_kernel_get();
    int64_t H = s->H, L = s->L, ld = (s->d + FINI_LANES_F64 - 1) / FINI_LANES_F64 * FINI_LANES_F64;
    double f = 0;
    for (int64_t h = 0; h < H; h++) {
        double *chi = room + 4 * h * L, *z = chi + L, *w = z + L, *slope = w + L;
        kernel->project_f64(L, s->d, s->X, s->kv + 2 * h * ld, s->kv + (2 * h + 1) * ld, chi, z);
        for (int64_t l = 0; l < L; l++)
            chi[l] *= s->lam;
        kernel->erf(L, chi, w);
        kernel->gauss(L, chi, slope);
        f += fini_dot_in_order(L, w, z);
    }
    double df = scale * (f - s->y);
    for (int64_t h = 0; h < H; h++) {
        double *p = room + 4 * h * L, *z = p + L, *q = z + L, *slope = q + L;
        for (int64_t l = 0; l < L; l++) {
            p[l] = df * FINI_TWO_OVER_ROOT_PI * s->lam * slope[l] * z[l];
            q[l] *= df;
        }
        for (int64_t l = 0; l < L; l += FINI_GATHER)
            kernel->gather_f64(fini_least(L - l, FINI_GATHER), s->d, 0, s->d, s->X + l * s->d,
                               p + l, q + l, g + 2 * h * ld, g + (2 * h + 1) * ld);
    }
    return f - s->y;
}

/* Here k*_p is the unit vector p, v*_p the unit vector P + p, and the relevant tokens come first: no
 * law of a run depends on either. Returns the output. */
static double draw(const fini_heads_plan *p, uint64_t sample, double *X)
{
    const fini_heads_model *m = &p->model;
    int64_t d = m->d, P = m->P;
    double y;
    fin_random_normals_f64((uint64_t)p->seed, FINI_STREAM_HEADS_TOKENS, sample, 0, m->L * d, X);
    fin_random_normals_f64((uint64_t)p->seed, FINI_STREAM_HEADS_NOISE, sample, 0, 1, &y);
    y *= m->eps;
    for (int64_t q = 0; q < P; q++) {
        double *x = X + q * d;
        if (m->shared && q > 0)
            memcpy(x, X, (size_t)d * sizeof *x);
        for (int64_t i = 0; i < d && (q == 0 || !m->shared); i++)
            x[i] *= m->gamma;
    }
    for (int64_t q = 0; q < P; q++) {
        X[q * d + q] += m->mu;
        y += X[q * d + P + q];
    }
    return y;
}

static void step_ambient(const fini_heads *o, int64_t run, int64_t at, double *kv, double *desk)
{
    const fini_heads_plan *p = &o->plan;
    const fini_heads_model *m = &p->model;
    int64_t d = m->d, ld = o->padded, vectors = 2 * m->H;
    double *X = desk, *g = X + (m->L * d + 7) / 8 * 8, *room = g + vectors * ld;
    memset(g, 0, (size_t)(vectors * ld) * sizeof *g);
    for (int64_t i = 0; i < p->batch; i++) {
        double y = draw(p, ((uint64_t)run << 40) + (uint64_t)(at * p->batch + i), X);
        fini_heads_sequence s = {m->H, m->L, d, fini_heads_lam(p, at), y, X, kv};
        fini_heads_error(&s, 2 / (double)p->batch, g, room);
    }
    for (int64_t i = 0; i < vectors; i++) {
        double *x = kv + i * ld, *slope = g + i * ld, along = fini_dot_in_order(d, x, slope);
        for (int64_t j = 0; j < d; j++)
            x[j] -= p->alpha * (slope[j] - along * x[j]);
        unit(d, x);
    }
}

/* ---- all runs ----------------------------------------------------------------------------------- */

static void advance_block(const fini_heads *o, int64_t block, int64_t from, int64_t to,
                          double *desk)
{
    const fini_heads_plan *p = &o->plan;
    const fini_heads_model *m = &p->model;
    double *state = o->state + block * o->width;
    if (p->ambient) {
        for (int64_t at = from; at < to; at++)
            step_ambient(o, block, at, state, desk);
        return;
    }
    fini_reduction r = {.seed = (uint64_t)p->seed,
                        .run = (uint64_t)(block * FINI_RUNS),
                        .stream = FINI_STREAM_HEADS_LANES,
                        .d = m->d,
                        .L = m->L,
                        .batch = p->batch,
                        .gamma = m->gamma,
                        .mu = m->mu,
                        .eps = m->eps,
                        .runs = (int)fini_least(FINI_RUNS, p->runs - block * FINI_RUNS),
                        .H = (int)m->H,
                        .P = (int)m->P,
                        .shared = m->shared};
    fini_kernel_get()->heads(&r, from, to - from, o->lam, o->alpha, (double(*)[FINI_RUNS])state);
}

fin_status fini_heads_advance(fini_heads *o, int64_t from, int64_t to, int64_t steps,
                              const fin_progress *progress, fin_error *err)
{
    const fini_heads_model *m = &o->plan.model;
    double cost =
        (double)(o->plan.batch * m->L) * (double)(o->plan.ambient ? m->d : m->H * FINI_RUNS);
    int64_t most = cost * AT_ONCE < 1e7 ? AT_ONCE : cost < 1e7 ? (int64_t)(1e7 / cost) : 1;
    for (int64_t at = from, next; at < to; at = next) {
        if (fini_report(progress, "training", (double)at, (double)steps))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld steps",
                             (long long)at, (long long)steps);
        next = fini_least(to, at + most);
        for (int64_t t = at; t < next; t++) {
            o->lam[t - at] = fini_heads_lam(&o->plan, t);
            o->alpha[t - at] = o->plan.alpha;
        }
#pragma omp parallel for schedule(dynamic, 1) num_threads(o->threads)
        for (int64_t block = 0; block < o->blocks; block++)
            advance_block(o, block, at, next, o->desk + omp_get_thread_num() * o->scratch);
    }
    return FIN_OK;
}

void fini_heads_get(const fini_heads *o, int64_t run, double *gram)
{
    const fini_heads_model *m = &o->plan.model;
    int64_t rows = FINI_HEADS_ROWS(m->H, m->P), d = m->d, at = 0;
    if (!o->plan.ambient) {
        const double *block = o->state + run / FINI_RUNS * o->width + run % FINI_RUNS;
        for (int64_t i = 0; i < rows; i++)
            gram[i] = block[i * FINI_RUNS];
        return;
    }
    const double *kv = o->state + run * o->width;
    for (int64_t i = 0; i < 2 * m->H; i++)
        for (int64_t j = 0; j < i; j++)
            gram[at++] = fini_dot_in_order(d, kv + i * o->padded, kv + j * o->padded);
    for (int64_t i = 0; i < 2 * m->H; i++)
        for (int64_t s = 0; s < 2 * m->P; s++) /* v*, then k* */
            gram[at++] = kv[i * o->padded + (s < m->P ? m->P + s : s - m->P)];
}

/* ---- creation ----------------------------------------------------------------------------------- */

fin_status fini_heads_check(const fini_heads_plan *p, fin_error *err)
{
    const fini_heads_model *m = &p->model;
    long long least = (long long)(p->ambient ? 2 * m->P : 4 * m->H + 2 * m->P);
    double tokens = (double)p->batch * (double)m->L, numbers = (double)m->L * (double)m->d;
    if (m->L < m->P)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = %lld tokens for P = %lld relevant ones; take L = %lld or more",
                         (long long)m->L, (long long)m->P, (long long)m->P);
    if (m->d < least && p->ambient)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "d = %lld; P = %lld pairs are orthonormal in d = %lld dimensions or more",
                         (long long)m->d, (long long)m->P, least);
    if (m->d < least)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "d = %lld; engine = reduced needs 4 H + 2 P = %lld dimensions or more here; "
            "take engine = ambient for fewer",
            (long long)m->d, least);
    if (tokens * (double)m->H > 0x1p30)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a step of batch * L = %g tokens; batch * L * H must be at most 2^30",
                         tokens);
    if (p->ambient && (numbers > 0x1p32 || (double)p->runs * (double)m->H * (double)m->d > 0x1p36))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "d = %lld is too much for vectors and tokens in R^d; engine = reduced costs "
            "the same at any d",
            (long long)m->d);
    return FIN_OK;
}

static void lay_out(fini_heads *o)
{
    o->state = fini_take(&o->arena, o->blocks * o->width, sizeof(double));
    o->desk = fini_take(&o->arena, o->threads * o->scratch, sizeof(double));
}

fin_status fini_heads_create(fini_heads **out, const fini_heads_plan *plan, fin_error *err)
{
    const fini_heads_model *m = &plan->model;
    *out = NULL;
    FINI_TRY(fini_heads_check(plan, err));
    FINI_MAKE(err, "runs of heads", fini_heads, o);
    *o = (fini_heads){.plan = *plan};
    o->padded = (m->d + FINI_LANES_F64 - 1) / FINI_LANES_F64 * FINI_LANES_F64;
    o->blocks = plan->ambient ? plan->runs : (plan->runs + FINI_RUNS - 1) / FINI_RUNS;
    o->width = plan->ambient ? 2 * m->H * o->padded : FINI_HEADS_ROWS(m->H, m->P) * FINI_RUNS;
    o->threads = (int)fini_least(fin_threads_get(), o->blocks);
    if (plan->ambient)
        o->scratch =
            ((m->L * m->d + 7) / 8 * 8 + 2 * m->H * o->padded + 4 * m->H * m->L + 7) / 8 * 8;
    lay_out(o);
    fin_status status = fini_arena_open(&o->arena, "runs of heads", err);
    if (status) {
        fini_free(o);
        return status;
    }
    lay_out(o);
    start(o);
    *out = o;
    return FIN_OK;
}

void fini_heads_destroy(fini_heads *o)
{
    if (o)
        fini_arena_close(&o->arena);
    fini_free(o);
}
