/* A transformer layer on single-location regression, trained by plain SGD (Marion et al. 2025, appendix E.3).
 *
 *     X' = [r; X_1; ...; X_L]           r ~ N(0, I/d): the register token, never trained
 *     Z  = LN(X'), row by row           LN(x) = (x - mean) / (sd + 1e-5)
 *     H  = X' + sum_h softmax(Z Wk_h' Wq_h Z' / sqrt(r_dim)) Z Wv_h      softmax over the second index
 *     f  = theta . (x + W2 relu(W1 x + b1) + b2),   x = first row of H;   loss = mean (f - y)^2
 *
 * The first row alone has a part in f. What it needs is one vector a head, q_h = Wq_h' Wk_h z_0 / sqrt(r_dim): a score is
 * q_h.z_t. And f is a number, so that W2 enters as W2'theta and its gradient is theta times one vector. A step is then
 * 6 m d + 6 H d^2 + 8 H L d flops a sample, in products of matrices over the batch, in float. Tokens
 * are not normalised in memory: LN is a shift and a scale of scores and of weights.
 *
 * Neither attention nor the register sees the order of the tokens, so that the relevant ones stand first. LN
 * has a preferred direction, the mean: k* and v* are drawn for each run, orthonormal.
 *
 * A run is one thread's from its start to its end, with BLAS on one thread: no bit depends on their number. */
#include "train/layer.h"

#include "finetti/random.h"
#include "kernel/kernel.h"
#include "math/gram.h"
#include "math/small.h"
#include "random/streams.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

static void product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t rows, int64_t columns,
                    int64_t inner, const float *A, const float *B, float beta, float *C)
{
    cblas_sgemm(CblasRowMajor, ta, tb, (int)rows, (int)columns, (int)inner, 1, A,
                (int)(ta == CblasTrans ? rows : inner), B,
                (int)(tb == CblasTrans ? inner : columns), beta, C, (int)columns);
}

/* y = alpha A x, or with A' for CblasTrans; A is (rows, columns). */
static void apply(CBLAS_TRANSPOSE ta, int64_t rows, int64_t columns, float alpha, const float *A,
                  const float *x, float *y)
{
    cblas_sgemv(CblasRowMajor, ta, (int)rows, (int)columns, alpha, A, (int)columns, x, 1, 0, y, 1);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static int64_t padded(int64_t d) /* with room behind it for the kernels' lanes */
{
    return (d + 15) / 16 * 16;
}

fini_layer_places fini_layer_places_of(const fini_layer_plan *p)
{
    fini_layer_places at = {0};
    at.Wq = at.Wk + p->H * p->r * p->d;
    at.Wv = at.Wq + p->H * p->r * p->d;
    at.W1 = at.Wv + p->H * p->d * p->d;
    at.b1 = at.W1 + p->m * p->d;
    at.W2 = at.b1 + p->m;
    at.b2 = at.W2 + p->d * p->m;
    at.theta = at.b2 + p->d;
    at.count = at.theta + p->d;
    return at;
}

void fini_layer_desk_cut(const fini_layer_plan *p, fini_arena *arena, fini_layer_desk *desk)
{
    int64_t B = p->batch, H = p->H, d = p->d, L = p->L, wide = p->r > d ? p->r : d;
    *desk = (fini_layer_desk){.plan = p, .at = fini_layer_places_of(p)};
    const struct {
        float **to;
        int64_t count;
    } pieces[] = {
        {&desk->parameters, desk->at.count},
        {&desk->gradient, desk->at.count},
        {&desk->X, B * L * d},
        {&desk->y, B},
        {&desk->start, d},
        {&desk->z0, d},
        {&desk->u, H * p->r},
        {&desk->q, H * d},
        {&desk->inverse, B * L},
        {&desk->mean, B * L},
        {&desk->a, B * H * (L + 1)},
        {&desk->c, B * H * L},
        {&desk->Zbar, B * H * d},
        {&desk->dZbar, B * H * d},
        {&desk->row, B * d},
        {&desk->drow, B * d},
        {&desk->hidden, B * p->m},
        {&desk->dhidden, B * p->m},
        {&desk->w, p->m},
        {&desk->sums, p->m},
        {&desk->f, B},
        {&desk->g, B},
        {&desk->ones, B},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        *pieces[i].to = fini_take(arena, pieces[i].count, sizeof(float));
    desk->star = fini_take(arena, 2 * p->P * d, sizeof(double));
    desk->padded = fini_take(arena, 2 * padded(d), sizeof(double));
    desk->scores = fini_take(arena, (H + 1) * B * L, sizeof(double));
    desk->norm2 = fini_take(arena, B * L, sizeof(double));
    desk->G = fini_take(arena, d * d, sizeof(double));
    desk->squared = fini_take(arena, d * d, sizeof(double));
    desk->wide = fini_take(arena, 3 * wide * wide, sizeof(double));
    desk->top = fini_take(arena, d, sizeof(double));
    for (int64_t i = 0; arena->base && i < B; i++)
        desk->ones[i] = 1;
}

/* ---- start and data --------------------------------------------------------------------------------- */

enum { OF_REGISTER = 8, OF_STARS, PIECES_OF_START = 16 }; /* samples of the stream, a run */

static void draw_piece(const fini_layer_desk *o, int64_t run, int piece, int64_t n, double spread,
                       float *out)
{
    fin_random_normals_f32((uint64_t)o->plan->seed, FINI_STREAM_LAYER_START,
                           (uint64_t)run * PIECES_OF_START + (uint64_t)piece, 0, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] *= (float)spread;
}

/* Gram and Schmidt, twice; there are at most eight. */
static void orthonormal(int64_t n, int64_t d, double *v)
{
    for (int64_t i = 0; i < n; i++)
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t j = 0; j < i; j++)
                cblas_daxpy((int)d, -cblas_ddot((int)d, v + i * d, 1, v + j * d, 1), v + j * d, 1,
                            v + i * d, 1);
            cblas_dscal((int)d, 1 / cblas_dnrm2((int)d, v + i * d, 1), v + i * d, 1);
        }
}

void fini_layer_register(fini_layer_desk *o)
{
    double mean = 0, variance = 0, d = (double)o->plan->d;
    for (int64_t i = 0; i < o->plan->d; i++)
        mean += o->start[i] / d;
    for (int64_t i = 0; i < o->plan->d; i++)
        variance += (o->start[i] - mean) * (o->start[i] - mean) / d;
    for (int64_t i = 0; i < o->plan->d; i++)
        o->z0[i] = (float)((o->start[i] - mean) / (sqrt(variance) + 1e-5));
}

/* Xavier: variance 2 / (in + out). */
void fini_layer_start(fini_layer_desk *o, int64_t run)
{
    const fini_layer_plan *p = o->plan;
    fini_layer_places at = o->at;
    float *w = o->parameters;
    double d = (double)p->d, keys = sqrt(2 / (d + (double)p->r)),
           wide = sqrt(2 / (d + (double)p->m));
    memset(w, 0, (size_t)at.count * sizeof *w);
    draw_piece(o, run, 0, p->H * p->r * p->d, keys, w + at.Wk);
    draw_piece(o, run, 1, p->H * p->r * p->d, p->query * keys, w + at.Wq);
    draw_piece(o, run, 2, p->H * p->d * p->d, 1 / sqrt(d), w + at.Wv);
    draw_piece(o, run, 3, p->m * p->d, wide, w + at.W1);
    draw_piece(o, run, 4, p->d * p->m, wide, w + at.W2);
    draw_piece(o, run, 5, p->d, 1 / d, w + at.theta);
    draw_piece(o, run, OF_REGISTER, p->d, 1 / sqrt(d), o->start);
    fin_random_normals_f64((uint64_t)p->seed, FINI_STREAM_LAYER_START,
                           (uint64_t)run * PIECES_OF_START + OF_STARS, 0, 2 * p->P * p->d, o->star);
    orthonormal(2 * p->P, p->d, o->star);
    fini_layer_register(o);
}

void fini_layer_draw(fini_layer_desk *o, int64_t run, int64_t number, int64_t count, bool test)
{
    const fini_layer_plan *p = o->plan;
    int64_t d = p->d;
    uint64_t sample = ((uint64_t)run << 32) + (uint64_t)number;
    fin_random_normals_f32((uint64_t)p->seed,
                           test ? FINI_STREAM_LAYER_TEST : FINI_STREAM_LAYER_TOKENS, sample, 0,
                           count * p->L * d, o->X);
    fin_random_normals_f32((uint64_t)p->seed, FINI_STREAM_LAYER_NOISE, sample, 0, count, o->y);
    for (int64_t i = 0; i < count; i++) {
        double y = test ? 0 : p->eps * o->y[i];
        float *first = o->X + i * p->L * d;
        for (int64_t j = 0; j < d; j++)
            first[j] *= (float)p->gamma;
        for (int64_t s = 1; s < p->P; s++)
            for (int64_t j = 0; j < d; j++)
                first[s * d + j] = p->shared ? first[j] : first[s * d + j] * (float)p->gamma;
        for (int64_t s = 0; s < p->P; s++) {
            const double *k = o->star + s * d, *v = o->star + (p->P + s) * d;
            for (int64_t j = 0; j < d; j++) {
                first[s * d + j] += (float)(p->mu * k[j]);
                y += first[s * d + j] * v[j];
            }
        }
        o->y[i] = (float)y;
    }
}

/* ---- forward and backward ---------------------------------------------------------------------------- */

/* Scores of tokens that are not normalised, their sums and squares: two directions in one reading. */
static void project(fini_layer_desk *o, int64_t rows)
{
    int64_t d = o->plan->d, H = o->plan->H;
    double *k = o->padded, *v = k + padded(d);
    for (int64_t h = 0; h <= H; h += 2) {
        for (int64_t j = 0; j < d; j++) {
            k[j] = h < H ? o->q[h * d + j] : 1;
            v[j] = h + 1 < H ? o->q[(h + 1) * d + j] : 1;
        }
        double *one = o->scores + h * rows;
        double *other = h < H ? one + rows : one; /* the ones, twice: written twice */
        fini_kernel_get()->project_norm_f32(rows, d, o->X, k, v, one, other, o->norm2);
    }
}

static void weights(fini_layer_desk *o, int64_t count)
{
    const fini_layer_plan *p = o->plan;
    int64_t d = p->d, L = p->L, H = p->H, rows = count * L;
    const double *sum = o->scores + H * rows;
    for (int64_t t = 0; t < rows; t++) {
        double mean = sum[t] / (double)d, variance = o->norm2[t] / (double)d - mean * mean;
        o->mean[t] = (float)mean;
        o->inverse[t] = (float)(1 / (sqrt(fmax(variance, 0)) + 1e-5));
    }
    for (int64_t h = 0; h < H; h++) {
        const float *q = o->q + h * d;
        float total = 0, own = cblas_sdot((int)d, q, 1, o->z0, 1);
        for (int64_t j = 0; j < d; j++)
            total += q[j];
        for (int64_t i = 0; i < count; i++) {
            float *a = o->a + (i * H + h) * (L + 1), *c = o->c + (i * H + h) * L, most = own;
            const double *score = o->scores + h * rows + i * L;
            const float *mean = o->mean + i * L, *inverse = o->inverse + i * L;
            a[0] = own;
            for (int64_t t = 0; t < L; t++) {
                a[t + 1] = ((float)score[t] - mean[t] * total) * inverse[t];
                most = fmaxf(most, a[t + 1]);
            }
            float all = 0;
            for (int64_t t = 0; t <= L; t++)
                all += a[t] = expf(a[t] - most);
            for (int64_t t = 0; t <= L; t++)
                a[t] /= all;
            for (int64_t t = 0; t < L; t++)
                c[t] = a[t + 1] * inverse[t];
        }
    }
}

/* Zbar_h = sum_t a_t z_t = a_0 z_0 + sum_t c_t (x_t - mean_t). */
static void average(fini_layer_desk *o, int64_t count)
{
    const fini_layer_plan *p = o->plan;
    int64_t d = p->d, L = p->L, H = p->H;
    for (int64_t i = 0; i < count; i++) {
        product(CblasNoTrans, CblasNoTrans, H, d, L, o->c + i * H * L, o->X + i * L * d, 0,
                o->Zbar + i * H * d);
        for (int64_t h = 0; h < H; h++) {
            const float *c = o->c + (i * H + h) * L;
            float *z = o->Zbar + (i * H + h) * d, shift = 0, own = o->a[(i * H + h) * (L + 1)];
            for (int64_t t = 0; t < L; t++)
                shift += c[t] * o->mean[i * L + t];
            for (int64_t j = 0; j < d; j++)
                z[j] += own * o->z0[j] - shift;
        }
    }
}

static void forward(fini_layer_desk *o, int64_t count)
{
    const fini_layer_plan *p = o->plan;
    const float *w = o->parameters;
    int64_t d = p->d, m = p->m;
    for (int64_t h = 0; h < p->H; h++) {
        apply(CblasNoTrans, p->r, d, 1, w + o->at.Wk + h * p->r * d, o->z0, o->u + h * p->r);
        apply(CblasTrans, p->r, d, 1 / sqrtf((float)p->r), w + o->at.Wq + h * p->r * d,
              o->u + h * p->r, o->q + h * d);
    }
    project(o, count * p->L);
    weights(o, count);
    average(o, count);
    for (int64_t i = 0; i < count; i++)
        memcpy(o->row + i * d, o->start, (size_t)d * sizeof *o->row);
    product(CblasNoTrans, CblasNoTrans, count, d, p->H * d, o->Zbar, w + o->at.Wv, 1, o->row);
    product(CblasNoTrans, CblasTrans, count, m, d, o->row, w + o->at.W1, 0, o->hidden);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < m; j++) {
            float x = o->hidden[i * m + j] + w[o->at.b1 + j];
            o->hidden[i * m + j] = x > 0 ? x : isnan(x) ? x : 0;
        }
    apply(CblasTrans, d, m, 1, w + o->at.W2, w + o->at.theta, o->w);
    apply(CblasNoTrans, count, d, 1, o->row, w + o->at.theta, o->f);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)count, (int)m, 1, o->hidden, (int)m, o->w, 1, 1,
                o->f, 1);
    float bias = cblas_sdot((int)d, w + o->at.b2, 1, w + o->at.theta, 1);
    for (int64_t i = 0; i < count; i++)
        o->f[i] += bias;
}

/* From drow = df/d row times g: Wv, and dZbar; then through softmax to q, Wq and Wk.
 *     ds_t = a_t (da_t - sum_s a_s da_s),  da_t = dZbar.z_t,  dq = sum_t ds_t z_t */
static void backward_attention(fini_layer_desk *o, int64_t count)
{
    const fini_layer_plan *p = o->plan;
    const float *w = o->parameters;
    int64_t d = p->d, L = p->L, H = p->H, r = p->r;
    float own[FINI_LAYER_HEADS] = {0}, shift[FINI_LAYER_HEADS] = {0}, root = 1 / sqrtf((float)r);
    product(CblasTrans, CblasNoTrans, H * d, d, count, o->Zbar, o->drow, 0, o->gradient + o->at.Wv);
    product(CblasNoTrans, CblasTrans, count, H * d, d, o->drow, w + o->at.Wv, 0, o->dZbar);
    for (int64_t i = 0; i < count; i++) {
        const float *dz = o->dZbar + i * H * d, *inverse = o->inverse + i * L;
        float *c = o->c + i * H * L;
        product(CblasNoTrans, CblasTrans, H, L, d, dz, o->X + i * L * d, 0, c);
        for (int64_t h = 0; h < H; h++, c += L, dz += d) {
            const float *a = o->a + (i * H + h) * (L + 1);
            float total = 0, first = cblas_sdot((int)d, dz, 1, o->z0, 1), mean = a[0] * first;
            for (int64_t j = 0; j < d; j++)
                total += dz[j];
            for (int64_t t = 0; t < L; t++) {
                c[t] = (c[t] - o->mean[i * L + t] * total) * inverse[t];
                mean += a[t + 1] * c[t];
            }
            own[h] += a[0] * (first - mean);
            for (int64_t t = 0; t < L; t++) {
                c[t] = a[t + 1] * (c[t] - mean) * inverse[t];
                shift[h] += c[t] * o->mean[i * L + t];
            }
        }
    }
    float *dq = o->q; /* q is not needed any more */
    memset(dq, 0, (size_t)(H * d) * sizeof *dq);
    for (int64_t i = 0; H > 1 && i < count; i++)
        product(CblasNoTrans, CblasNoTrans, H, d, L, o->c + i * H * L, o->X + i * L * d, 1, dq);
    if (H == 1) /* all tokens are one matrix then */
        apply(CblasTrans, count * L, d, 1, o->X, o->c, dq);
    for (int64_t h = 0; h < H; h++, dq += d) {
        const float *Wq = w + o->at.Wq + h * r * d, *u = o->u + h * r;
        float *gq = o->gradient + o->at.Wq + h * r * d, *gk = o->gradient + o->at.Wk + h * r * d;
        for (int64_t j = 0; j < d; j++)
            dq[j] = root * (dq[j] + own[h] * o->z0[j] - shift[h]);
        for (int64_t s = 0; s < r; s++) {
            float du = cblas_sdot((int)d, Wq + s * d, 1, dq, 1);
            for (int64_t j = 0; j < d; j++) {
                gq[s * d + j] = u[s] * dq[j];
                gk[s * d + j] = du * o->z0[j];
            }
        }
    }
}

/* g = d loss / df = 2 (f - y) / count; hidden units that are 0 pass nothing on. */
static void backward(fini_layer_desk *o, int64_t count)
{
    const fini_layer_plan *p = o->plan;
    const float *w = o->parameters, *theta = w + o->at.theta;
    float *gradient = o->gradient, all = 0;
    int64_t d = p->d, m = p->m;
    for (int64_t i = 0; i < count; i++) {
        o->g[i] = 2 * (o->f[i] - o->y[i]) / (float)count;
        all += o->g[i];
        for (int64_t j = 0; j < m; j++)
            o->dhidden[i * m + j] = o->hidden[i * m + j] > 0 ? o->g[i] * o->w[j] : 0;
        for (int64_t j = 0; j < d; j++)
            o->drow[i * d + j] = o->g[i] * theta[j];
    }
    apply(CblasTrans, count, m, 1, o->hidden, o->g, o->sums);
    apply(CblasTrans, count, d, 1, o->row, o->g, gradient + o->at.theta);
    for (int64_t j = 0; j < d; j++) {
        const float *W2 = w + o->at.W2 + j * m;
        gradient[o->at.b2 + j] = all * theta[j];
        gradient[o->at.theta + j] += cblas_sdot((int)m, W2, 1, o->sums, 1) + all * w[o->at.b2 + j];
        for (int64_t i = 0; i < m; i++)
            gradient[o->at.W2 + j * m + i] = theta[j] * o->sums[i];
    }
    apply(CblasTrans, count, m, 1, o->dhidden, o->ones, gradient + o->at.b1);
    product(CblasTrans, CblasNoTrans, m, d, count, o->dhidden, o->row, 0, gradient + o->at.W1);
    product(CblasNoTrans, CblasNoTrans, count, d, m, o->dhidden, w + o->at.W1, 1, o->drow);
    backward_attention(o, count);
}

void fini_layer_pass(fini_layer_desk *o, int64_t count, bool back)
{
    forward(o, count);
    if (back)
        backward(o, count);
}

/* ---- what is looked at ------------------------------------------------------------------------------- */

/* The vector of the largest eigenvalue of G (n, n), positive semidefinite and not 0, in o->top; G is spent. G over its
 * trace is squared until its trace is 1: all others, (l2/l1)^(2^k), are then below rounding. */
static void find_top(fini_layer_desk *o, int64_t n, double *G)
{
    enum { MOST = 40 };
    double *next = o->squared, trace = 0;
    int64_t best = 0;
    for (int k = 0; k < MOST && !(trace > 1 - 1e-14); k++) {
        trace = 0;
        for (int64_t i = 0; i < n; i++)
            trace += G[i * n + i];
        cblas_dscal((int)(n * n), 1 / trace, G, 1);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)n, (int)n, 1, G, (int)n,
                    G, (int)n, 0, next, (int)n);
        trace = 0;
        for (int64_t i = 0; i < n; i++)
            trace += next[i * n + i];
        double *other = G;
        G = next;
        next = other;
    }
    for (int64_t i = 0; i < n; i++)
        best = G[i * n + i] > G[best * n + best] ? i : best;
    memcpy(o->top, G + best * n, (size_t)n * sizeof *o->top);
    cblas_dscal((int)n, 1 / cblas_dnrm2((int)n, o->top, 1), o->top, 1);
}

/* C (n, columns) = A' B, A (rows, n), B (rows, columns). */
static void cross(int64_t rows, int64_t n, int64_t columns, const double *A, const double *B,
                  double *C)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)columns, (int)rows, 1, A,
                (int)n, B, (int)columns, 0, C, (int)columns);
}

static void look_at_keys(fini_layer_desk *o, int64_t h, fini_layer_look *look)
{
    const fini_layer_plan *p = o->plan;
    int64_t d = p->d, r = p->r, wide = r > d ? r : d;
    double *Wk = o->wide, *Wq = Wk + wide * wide, *M = Wq + wide * wide, sum = 0;
    for (int64_t i = 0; i < r * d; i++) {
        Wk[i] = o->parameters[o->at.Wk + h * r * d + i];
        Wq[i] = o->parameters[o->at.Wq + h * r * d + i];
    }
    cross(r, d, d, Wk, Wq, M); /* Wk'Wq */
    for (int64_t i = 0; i < d * d; i++)
        sum += M[i] * M[i];
    look->rank_one[h] = NAN;
    for (int64_t s = 0; s < p->P; s++)
        look->key[h][s] = 0;
    if (!(sum > 0))
        return;
    cross(d, d, d, M, M, o->G);
    find_top(o, d, o->G);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)d, (int)d, 1, M, (int)d, o->top, 1, 0, Wk, 1);
    look->rank_one[h] = fmin(fini_dot_in_order(d, Wk, Wk) / sum, 1);
    cross(r, d, d, Wq, Wq, o->G);
    find_top(o, d, o->G);
    for (int64_t s = 0; s < p->P; s++)
        look->key[h][s] = fabs(fini_dot_in_order(d, o->top, o->star + s * d));
}

/* theta (I + W2 W1) Wv_h' = Wv_h (theta + W1' W2' theta). */
static void look_at_values(fini_layer_desk *o, fini_layer_look *look)
{
    const fini_layer_plan *p = o->plan;
    const float *w = o->parameters;
    int64_t d = p->d, m = p->m;
    float *read = o->row, *value = o->drow;
    apply(CblasTrans, d, m, 1, w + o->at.W2, w + o->at.theta, o->w);
    apply(CblasTrans, m, d, 1, w + o->at.W1, o->w, read);
    cblas_saxpy((int)d, 1, w + o->at.theta, 1, read, 1);
    for (int64_t h = 0; h < p->H; h++) {
        apply(CblasNoTrans, d, d, 1, w + o->at.Wv + h * d * d, read, value);
        double norm = cblas_snrm2((int)d, value, 1);
        for (int64_t s = 0; s < p->P; s++) {
            double dot = 0;
            for (int64_t j = 0; j < d; j++)
                dot += value[j] * o->star[(p->P + s) * d + j];
            look->value[h][s] = norm > 0 ? dot / norm : 0;
        }
    }
}

void fini_layer_look_at(fini_layer_desk *o, int64_t run, fini_layer_look *look)
{
    const fini_layer_plan *p = o->plan;
    double mean = 0, squares = 0;
    int64_t done = 0;
    for (int64_t number = 0; done < p->test; number++) {
        int64_t count = fini_least(p->batch, p->test - done);
        fini_layer_draw(o, run, number, count, true);
        fini_layer_pass(o, count, false);
        for (int64_t i = 0; i < count; i++) {
            double far = (double)o->f[i] - o->y[i], x = far * far - mean;
            mean += x / (double)++done; /* Welford */
            squares += x * (far * far - mean);
        }
    }
    look->excess = mean;
    look->error = sqrt(squares / (double)(done - 1) / (double)done);
    look_at_values(o, look);
    for (int64_t h = 0; h < p->H; h++)
        look_at_keys(o, h, look);
}

/* ---- runs -------------------------------------------------------------------------------------------- */

int64_t fini_layer_logs(const fini_layer_plan *p)
{
    return p->steps / p->log_every + 1 + (p->steps % p->log_every != 0);
}

int64_t fini_layer_step(const fini_layer_plan *p, int64_t log)
{
    return fini_least(log * p->log_every, p->steps);
}

typedef struct crew {
    const fini_layer_plan *plan;
    fini_layer_look *look;
    int64_t *made;
    const fin_progress *progress;
    atomic_llong steps, left; /* steps made by all; runs not ended */
    atomic_bool stop;
} crew;

/* The caller's thread speaks to the caller; true: all stop. */
static bool ask(crew *c)
{
    const fini_layer_plan *p = c->plan;
    if (omp_get_thread_num() == 0 &&
        fini_report(c->progress, "training", (double)c->steps, (double)p->runs * (double)p->steps))
        atomic_store(&c->stop, true);
    return atomic_load(&c->stop);
}

/* NaN everywhere. */
static fini_layer_look no_look(void)
{
    fini_layer_look look = {.excess = NAN, .error = NAN};
    for (int h = 0; h < FINI_LAYER_HEADS; h++) {
        look.rank_one[h] = NAN;
        for (int s = 0; s < FINI_LAYER_HEADS; s++)
            look.key[h][s] = look.value[h][s] = NAN;
    }
    return look;
}

static void one_run(crew *c, fini_layer_desk *o, int64_t run)
{
    const fini_layer_plan *p = c->plan;
    int64_t logs = fini_layer_logs(p), log = 0, step = 0;
    fini_layer_look *look = c->look + run * logs;
    fini_layer_start(o, run);
    for (;; step++) {
        if (step == fini_layer_step(p, log)) {
            c->made[run] = step;
            fini_layer_look_at(o, run, &look[log]);
            if (!isfinite(look[log].excess))
                break;
            if (++log == logs)
                return;
        }
        if (ask(c))
            return;
        fini_layer_draw(o, run, step, p->batch, false);
        fini_layer_pass(o, p->batch, true);
        cblas_saxpy((int)o->at.count, (float)-p->alpha, o->gradient, 1, o->parameters, 1);
        atomic_fetch_add(&c->steps, 1);
    }
    c->made[run] = log > 0 ? fini_layer_step(p, log - 1) : 0; /* diverged */
    for (; log < logs; log++)
        look[log] = no_look();
    atomic_fetch_add(&c->steps, p->steps - step);
}

fin_status fini_layer_run(const fini_layer_plan *p, fini_layer_look *look, int64_t *made,
                          const fin_progress *progress, fin_error *err)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    crew c = {.plan = p, .look = look, .made = made, .progress = progress, .left = p->runs};
    fini_arena arena = {0};
    int threads = (int)fini_least(fin_threads_get(), p->runs);
    fini_layer_desk *desks = fini_alloc_array(threads, sizeof *desks);
    if (!desks)
        return fini_fail_memory(err, (size_t)threads * sizeof *desks, "training layers");
    for (int i = 0; i < threads; i++)
        fini_layer_desk_cut(p, &arena, &desks[i]);
    fin_status status = fini_arena_open(&arena, "training layers", err);
    fini_blas_expect(threads);
    if (!status)
        status = fini_blas_ready(err);
    for (int i = 0; i < threads && !status; i++)
        fini_layer_desk_cut(p, &arena, &desks[i]);
    if (!status) {
        fini_blas_enter();
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(dynamic, 1) nowait
            for (int64_t run = 0; run < p->runs; run++) {
                if (!atomic_load(&c.stop))
                    one_run(&c, &desks[omp_get_thread_num()], run);
                atomic_fetch_sub(&c.left, 1);
            }
            while (omp_get_thread_num() == 0 && atomic_load(&c.left) > 0) {
                ask(&c);
                nanosleep(&nap, NULL);
            }
        }
        fini_blas_leave();
        if (atomic_load(&c.stop))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    }
    fini_arena_close(&arena);
    fini_free(desks);
    return status;
}
