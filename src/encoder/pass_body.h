/* A block of sequences, group by group, forward and backward: one text for float and double. The
 * file that includes it defines REAL, GEMM (cblas), and HEAD, NORM and LAYERS (kernel/layers.h).
 *
 * Linear maps are products of whole groups with matrices. The gradient of a block is added up in
 * REAL for some thousand tokens and then goes to the block's sums in double: a float sum over a few
 * groups is as good as the product inside it, a float sum over a large batch would not be. */

#include "encoder/encoder.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { FLUSH = 8192 }; /* tokens after which the gradient goes to double */
static const REAL NORM_EPS = (REAL)1e-5;

#include "encoder/scratch_body.h"

/* ---- linear maps: y (rows, out), x (rows, in), W (out, in) ----------------------------------- */

/* y = beta y + x W' */
static void map(int64_t rows, int64_t in, int64_t out, const REAL *x, const REAL *W, REAL beta,
                REAL *y)
{
    GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)out, (int)in, 1, x, (int)in, W,
         (int)in, beta, y, (int)out);
}

/* y = x W' + bias: the bias is there before the product, which then needs not begin with zeros. */
static void map_bias(int64_t rows, int64_t in, int64_t out, const REAL *x, const REAL *weights,
                     fini_pair at, REAL *y)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * out, weights + at.bias, (size_t)out * sizeof(REAL));
    map(rows, in, out, x, weights + at.weight, 1, y);
}

/* dx = beta dx + dy W */
static void map_back(int64_t rows, int64_t in, int64_t out, const REAL *dy, const REAL *W,
                     REAL beta, REAL *dx)
{
    GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)in, (int)out, 1, dy, (int)out,
         W, (int)in, beta, dx, (int)in);
}

/* dW += dy' x */
static void map_back_weight(int64_t rows, int64_t in, int64_t out, const REAL *x, const REAL *dy,
                            REAL *dW)
{
    GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)rows, 1, dy, (int)out, x,
         (int)in, 1, dW, (int)in);
}

/* Maps of layers, whose matrices stand in panels where there are kernels for them (pass.c):
 * y = x W' (+ bias) (+ from, with a bias only) */
static void layer_map(const fini_work *job, int64_t rows, int64_t in, int64_t out, const REAL *x,
                      fini_pair at, bool bias, const REAL *from, REAL *y)
{
    const REAL *weights = job->weights, *panels = job->panels;
    if (panels)
        LAYERS->map(rows, in, out, x, panels + at.weight, bias ? weights + at.bias : NULL, from, y);
    else if (bias && !from)
        map_bias(rows, in, out, x, weights, at, y);
    else {
        if (from)
            LAYERS->add_bias(rows, out, weights + at.bias, from, y);
        map(rows, in, out, x, weights + at.weight, from ? 1 : 0, y);
    }
}

/* dx = dy W, dW += dy' x */
static void layer_map_back(const fini_work *job, scratch *s, int64_t rows, int64_t in, int64_t out,
                           const REAL *x, fini_pair at, const REAL *dy, REAL *dx)
{
    const REAL *weights = job->weights, *panels = job->panels;
    if (panels) {
        LAYERS->map_weight(rows, in, out, x, dy, s->gradient + at.weight);
        LAYERS->map(rows, out, in, dy, panels + job->o->count + at.weight, NULL, NULL, dx);
        return;
    }
    map_back_weight(rows, in, out, x, dy, s->gradient + at.weight);
    map_back(rows, in, out, dy, weights + at.weight, 0, dx);
}

#include "encoder/attention_body.h"
#include "encoder/heads_body.h"

/* ---- norms ----------------------------------------------------------------------------------- */

static void norm(const fini_work *job, int64_t rows, fini_pair at, const REAL *x, REAL *y,
                 REAL *mean, REAL *inverse)
{
    const REAL *weights = job->weights;
    if (at.weight >= 0)
        LAYERS->norm(&(NORM){rows, job->o->width, x, weights + at.weight, mean, inverse, NORM_EPS},
                     weights + at.bias, y);
}

/* dx += the norm's gradient, from dy; without norms dy is added as it is. */
static void norm_back(const fini_work *job, scratch *s, int64_t rows, fini_pair at, const REAL *x,
                      REAL *mean, REAL *inverse)
{
    const REAL *weights = job->weights;
    int64_t w = job->o->width;
    if (at.weight >= 0)
        LAYERS->norm_back(&(NORM){rows, w, x, weights + at.weight, mean, inverse, NORM_EPS}, s->dy,
                          s->dx, s->gradient + at.weight, s->gradient + at.bias);
    else
        for (int64_t i = 0; i < rows * w; i++)
            s->dx[i] += s->dy[i];
}

/* ---- rows at the end ------------------------------------------------------------------------- */

/* From the last layer's attention on there are only the rows that somebody asks for, one after the
 * other: in masked training the visible tokens are no more than keys and values there, and a good
 * part of the work is saved. */
static int64_t rows_after(const fini_work *job, int64_t layer, const scratch *s)
{
    return layer == job->o->settings.layers - 1 ? s->end[s->n] : s->rows;
}

/* x of the rows that are asked for: x itself if these are all, else gathered in `to`, which may be
 * x. */
static const REAL *asked_rows(const scratch *s, int64_t rows, int64_t w, const REAL *x, REAL *to)
{
    if (rows == s->rows)
        return x;
    for (int64_t i = 0; i < s->n; i++)
        memmove(to + s->end[i] * w, x + (s->start[i] + s->skip[i]) * w,
                (size_t)((s->end[i + 1] - s->end[i]) * w) * sizeof(REAL));
    return to;
}

/* The way back, in place: rows go to where they came from, and the others become 0. From the last
 * sequence to the first, since none moves to the front. */
static void all_rows(const scratch *s, int64_t rows, int64_t w, REAL *x)
{
    for (int64_t i = s->n - 1; i >= 0 && rows < s->rows; i--) {
        memmove(x + (s->start[i] + s->skip[i]) * w, x + s->end[i] * w,
                (size_t)((s->end[i + 1] - s->end[i]) * w) * sizeof(REAL));
        memset(x + s->start[i] * w, 0, (size_t)(s->skip[i] * w) * sizeof(REAL));
    }
}

/* ---- a layer --------------------------------------------------------------------------------- */

static void forward_layer(const fini_work *job, int64_t i, scratch *s)
{
    const fin_encoder *o = job->o;
    const fini_layer *at = &o->layer[i];
    const REAL *weights = job->weights;
    int64_t rows = rows_after(job, i, s), w = o->width, hidden = o->hidden;
    kept *k = &s->layer[i];
    REAL *out = s->layer[i + 1].x, *mid = hidden ? k->mid : out;
    norm(job, s->rows, at->norm1, k->x, k->y, k->mean1, k->inverse1);
    layer_map(job, s->rows, w, 3 * w, k->y, at->in, true, NULL, k->qkv);
    attend(job, i, s);
    layer_map(job, rows, w, w, k->att, at->out, true, asked_rows(s, rows, w, k->x, mid), mid);
    if (!hidden)
        return;
    norm(job, rows, at->norm2, mid, k->z, k->mean2, k->inverse2);
    layer_map(job, rows, w, hidden, k->z, at->ff1, false, NULL, k->slope);
    (o->settings.activation == FIN_ENCODER_GELU ? LAYERS->gelu : LAYERS->relu)(
        rows, hidden, weights + at->ff1.bias, k->slope, k->act);
    layer_map(job, rows, hidden, w, k->act, at->ff2, true, mid, out);
}

static void backward_feed_forward(const fini_work *job, const fini_layer *at, scratch *s,
                                  int64_t rows, const kept *k)
{
    int64_t w = job->o->width, hidden = job->o->hidden;
    REAL *g = s->gradient;
    LAYERS->sum_rows(rows, w, s->dx, g + at->ff2.bias);
    layer_map_back(job, s, rows, hidden, w, k->act, at->ff2, s->dx, s->wide);
    LAYERS->act_back(rows, hidden, k->slope, s->wide, g + at->ff1.bias);
    layer_map_back(job, s, rows, w, hidden, k->z, at->ff1, s->wide, s->dy);
    norm_back(job, s, rows, at->norm2, k->mid, k->mean2, k->inverse2);
}

/* dx: the gradient of what comes out; afterwards of what goes in. */
static void backward_layer(const fini_work *job, int64_t i, scratch *s)
{
    const fini_layer *at = &job->o->layer[i];
    int64_t rows = rows_after(job, i, s), w = job->o->width;
    const kept *k = &s->layer[i];
    REAL *g = s->gradient;
    if (job->o->hidden)
        backward_feed_forward(job, at, s, rows, k);
    LAYERS->sum_rows(rows, w, s->dx, g + at->out.bias);
    layer_map_back(job, s, rows, w, w, k->att, at->out, s->dx, s->dy);
    attend_back(job, i, s);
    all_rows(s, rows, w, s->dx);
    LAYERS->sum_rows(s->rows, 3 * w, s->wide, g + at->in.bias);
    layer_map_back(job, s, s->rows, w, 3 * w, k->y, at->in, s->wide, s->dy);
    norm_back(job, s, s->rows, at->norm1, k->x, k->mean1, k->inverse1);
}

/* ---- a group --------------------------------------------------------------------------------- */

static void forward(const fini_work *job, scratch *s)
{
    const fin_pass *pass = job->pass;
    bool states = pass->states || pass->pooled;
    forward_input(job, s);
    for (int64_t i = 0; i <= job->depth; i++) {
        if (states && pass->layer == i && i < job->o->settings.layers)
            write_states(job, s, s->layer[i].x);
        if (i < job->depth)
            forward_layer(job, i, s);
    }
    if (job->depth < job->o->settings.layers)
        return;
    kept *end = &s->layer[job->depth];
    norm(job, rows_after(job, job->depth - 1, s), job->o->norm, end->x, end->y, end->mean1,
         end->inverse1);
    if (states && pass->layer == job->depth)
        write_states(job, s, end->y);
}

/* Losses of all heads are added to `losses`; dx becomes the gradient of the end. */
static void answers(const fini_work *job, scratch *s, double *losses)
{
    const fin_encoder_shape *shape = &job->o->shape;
    const kept *end = &s->layer[job->depth];
    int64_t rows = rows_after(job, job->depth - 1, s);
    size_t bytes = (size_t)(rows * job->o->width) * sizeof(REAL);
    bool pooled = false;
    for (int h = 0; h < (int)shape->heads; h++)
        pooled = pooled || (job->head[h] && shape->head[h].where == FIN_HEAD_POOLED);
    if (pooled)
        pool(job, s, end->y);
    if (job->through) {
        memset(s->dx, 0, bytes);
        memset(s->dy, 0, bytes);
        memset(s->dmean, 0, (size_t)(s->n * job->o->width) * sizeof(REAL));
    }
    for (int h = 0; h < (int)shape->heads; h++)
        if (job->head[h])
            losses[h] += answer(job, h, s, end->y);
    if (job->through && pooled)
        pool_back(job, s);
    if (job->through)
        norm_back(job, s, rows, job->o->norm, end->x, end->mean1, end->inverse1);
}

/* ---- a block --------------------------------------------------------------------------------- */

/* The gradient so far goes to the block's sums: written the first time, then added. */
static void flush(int64_t n, bool written, REAL *gradient, double *sums)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] = written ? sums[i] + (double)gradient[i] : (double)gradient[i];
    memset(gradient, 0, (size_t)n * sizeof(REAL));
}

static void run(const fini_work *job, int64_t block, void *memory)
{
    scratch *s = memory;
    const fin_encoder *o = job->o;
    int64_t b = job->block + block, tokens = 0;
    int64_t at = fini_block_start(job->total, job->blocks, b) - job->first;
    int64_t end = fini_block_start(job->total, job->blocks, b + 1) - job->first;
    double *losses = job->parts + block * job->columns, *sums = losses + o->shape.heads;
    bool written = false;
    memset(losses, 0, (size_t)o->shape.heads * sizeof *losses);
    if (job->back)
        memset(s->gradient, 0, (size_t)o->count * sizeof(REAL));
    int64_t slopes = o->count - job->slopes;
    for (; at < end; at += s->n) {
        load_group(job, s, at, end);
        forward(job, s);
        if (job->depth == o->settings.layers)
            answers(job, s, losses);
        for (int64_t i = job->depth - 1; i >= 0 && job->through; i--)
            backward_layer(job, i, s);
        if (job->through)
            backward_input(job, s);
        tokens += s->rows;
        if (job->back && (tokens >= FLUSH || at + s->n == end)) {
            flush(slopes, written, s->gradient + job->slopes, sums);
            written = true;
            tokens = 0;
        }
    }
}

static void convert(int64_t n, const float *from, void *to)
{
    for (int64_t i = 0; i < n; i++)
        ((REAL *)to)[i] = (REAL)from[i];
}

/* sin and cos of place / 10000^(2j / width), in turns (Vaswani et al. 2017). */
static void sines(int64_t longest, int64_t width, void *to)
{
    REAL *row = to;
    for (int64_t l = 0; l < longest; l++, row += width)
        for (int64_t j = 0; j < width; j++) {
            double angle = (double)l * pow(10000, -(double)(j / 2 * 2) / (double)width);
            row[j] = (REAL)(j % 2 ? cos(angle) : sin(angle));
        }
}
