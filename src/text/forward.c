/* The pass of an encoder of text.
 *
 * Texts are taken in chunks of some thousand pieces, and a chunk goes through layer after layer, so that
 * half-precision weights of one layer at a time are floats and memory does not grow with the texts. Within
 * a layer threads share groups of whole texts, a few hundred pieces each, large enough for a BLAS. A text
 * begins at a row whose bits depend on nothing but the text (fini_blas_step): they depend neither on the
 * texts beside it nor on who did what. */
#include "finetti/kernel.h"
#include "kernel/layers.h"
#include "math/gram.h"
#include "text/text.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>

enum { CHUNK = 8192, GROUP = 512, ACT_ROWS = 16 };
/* Numbers of a matrix that is not worth a BLAS, and products of all rows from which on OpenBLAS takes its
 * usual way. */
enum { SMALL = 1 << 14, USUAL = 1 << 20 };

/* A layer's weights as floats. */
typedef struct parts {
    int64_t in, w, hidden;
    const float *query[2], *key[2], *value[2], *out[2], *norm1[2], *up[2], *down[2], *norm2[2],
        *residual[2]; /* weight, bias */
} parts;

/* What a thread needs. */
typedef struct scratch {
    float *qkv, *att, *y, *z, *h, *act, *mean, *inverse, *kept, *attend;
    double *sum;
} scratch;

typedef struct job {
    const fin_text_encoder *e;
    const fin_text_pieces *p;
    const fin_text_pass *pass;
    int64_t depth, longest;   /* layers to go through; of a text */
    int step;                 /* texts begin at multiples of it; 0: each is a group */
    int64_t least;            /* rows of a group */
    int64_t most, rows, many; /* most rows of a chunk, of a group; texts of a chunk */
    int64_t first, used;      /* text of the chunk, its rows */
    int64_t *row;             /* (texts of the chunk + 1) where each begins */
    int64_t *group;           /* (groups + 1) texts of the chunk */
    int64_t groups;
    float *x, *next; /* (chunk, width): next where widths differ, else x */
    float *room;     /* weights that are converted */
    scratch **scratch;
    int threads;
} job;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- rows ------------------------------------------------------------------------------------------- */

static int64_t pieces_of(const job *j, int64_t i)
{
    return j->p->offsets[i + 1] - j->p->offsets[i];
}

static int64_t up_to(int64_t rows, int64_t step)
{
    return step ? (rows + step - 1) / step * step : rows;
}

static int64_t row_of(const job *j, int64_t i)
{
    return j->row[i - j->first];
}

/* Cuts a chunk into groups, from text `from` on: returns the text behind it. row NULL: measures only. */
static int64_t cut_chunk(job *j, int64_t from)
{
    const int64_t n = j->p->n;
    int64_t i = from;
    j->first = from;
    j->groups = j->used = 0;
    while (i < n) {
        int64_t rows = 0, to = i;
        do
            rows += up_to(pieces_of(j, to++), j->step);
        while (to < n && j->step && rows + up_to(pieces_of(j, to), j->step) <= GROUP);
        rows = larger(rows, j->least);
        if (j->groups && j->used + rows > CHUNK)
            break;
        if (j->row)
            j->group[j->groups] = i;
        for (int64_t at = j->used; i < to; at += up_to(pieces_of(j, i++), j->step))
            if (j->row)
                j->row[i - from] = at;
        j->groups++;
        j->used += rows;
        j->rows = larger(j->rows, rows);
    }
    if (j->row)
        j->group[j->groups] = i;
    if (j->row)
        j->row[i - from] = j->used;
    return i;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static void lay_scratch(fini_arena *a, const job *j, scratch *s)
{
    const fin_text_shape *o = &j->e->shape;
    int64_t w = larger(o->width, j->e->first), d = w / o->heads;
    scratch cut = {.qkv = fini_take(a, j->rows * w, 3 * sizeof(float)),
                   .att = fini_take(a, j->rows * w, sizeof(float)),
                   .y = fini_take(a, j->rows * w, sizeof(float)),
                   .z = fini_take(a, j->rows * w, sizeof(float)),
                   .h = fini_take(a, j->rows * o->hidden, sizeof(float)),
                   .act = fini_take(a, ACT_ROWS * o->hidden, sizeof(float)),
                   .mean = fini_take(a, j->rows, sizeof(float)),
                   .inverse = fini_take(a, j->rows, sizeof(float)),
                   .kept = fini_take(a, j->longest, 2 * sizeof(float)),
                   .attend = fini_take(a, fini_attend_scratch(j->longest, d), sizeof(float)),
                   .sum = fini_take(a, w, sizeof(double))};
    if (s)
        *s = cut;
}

static bool is_float(const fini_weight *w)
{
    return w->type == FINI_F32 && (uintptr_t)w->data % sizeof(float) == 0;
}

/* Numbers of a layer that have to be converted. */
static int64_t converted(const fini_text_layer *l)
{
    const fini_linear *maps[] = {&l->query, &l->key,  &l->value, &l->out,     &l->norm1,
                                 &l->up,    &l->down, &l->norm2, &l->residual};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const fini_weight *w = &maps[i]->weight, *b = &maps[i]->bias;
        sum += (is_float(w) ? 0 : w->rows * w->columns) + (is_float(b) ? 0 : b->rows);
    }
    return sum;
}

static void layout(fini_arena *a, job *j)
{
    const fin_text_encoder *e = j->e;
    int64_t room = 0, w = e->shape.width;
    for (int64_t i = 0; i < j->depth; i++)
        room = larger(room, converted(&e->layer[i]));
    room = larger(room, (w + 1) * w + 2 * e->first); /* the pooler's, or the embedding's norm */
    j->row = fini_take(a, j->many + 1, sizeof *j->row);
    j->group = fini_take(a, j->many + 1, sizeof *j->group);
    j->x = fini_take(a, j->most * larger(w, e->first), sizeof(float));
    j->next = w == e->first ? j->x : fini_take(a, j->most * w, sizeof(float));
    j->room = fini_take(a, room, sizeof(float));
    j->scratch = fini_take(a, j->threads, sizeof *j->scratch);
    for (int t = 0; t < j->threads; t++) {
        scratch *s = fini_take(a, 1, sizeof *s);
        if (a->base)
            j->scratch[t] = s;
        lay_scratch(a, j, a->base ? s : NULL);
    }
}

/* ---- weights as floats ------------------------------------------------------------------------------ */

static void convert(const fini_linear *l, float **room, const float *to[2])
{
    const fini_weight *both[] = {&l->weight, &l->bias};
    for (int i = 0; i < 2; i++) {
        to[i] = both[i]->rows ? fini_weight_floats(both[i], *room) : NULL;
        if (to[i] == *room)
            *room += both[i]->rows * both[i]->columns;
    }
}

static parts parts_of(const job *j, int64_t i)
{
    const fini_text_layer *l = &j->e->layer[i];
    parts out = {.in = l->in, .w = j->e->shape.width, .hidden = j->e->shape.hidden};
    float *room = j->room;
    convert(&l->query, &room, out.query);
    convert(&l->key, &room, out.key);
    convert(&l->value, &room, out.value);
    convert(&l->out, &room, out.out);
    convert(&l->norm1, &room, out.norm1);
    convert(&l->up, &room, out.up);
    convert(&l->down, &room, out.down);
    convert(&l->norm2, &room, out.norm2);
    convert(&l->residual, &room, out.residual);
    return out;
}

/* ---- parts of a layer -------------------------------------------------------------------------------- */

/* y (rows of ld) = beta y + x W' */
static void map(int64_t rows, int64_t in, int64_t out, const float *x, const float *W, float beta,
                float *y, int64_t ld)
{
    for (int64_t i = 0; i < rows * out && in * out < SMALL; i++) {
        float *to = y + i / out * ld + i % out, sum = beta == 0 ? 0 : beta * *to;
        for (int64_t k = 0; k < in; k++)
            sum += x[i / out * in + k] * W[i % out * in + k];
        *to = sum;
    }
    if (in * out < SMALL)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)out, (int)in, 1, x,
                (int)in, W, (int)in, beta, y, (int)ld);
}

static void norm(const job *j, scratch *s, int64_t rows, int64_t w, const float *const at[2],
                 const float *x, float *y)
{
    fini_layers_get()->norm(&(fini_norm_f32){rows, w, x, at[0], s->mean, s->inverse, j->e->eps},
                            at[1], y);
}

/* y = from + bias + x W' */
static void map_add(int64_t rows, int64_t in, int64_t out, const float *x, const float *const at[2],
                    const float *from, float *y)
{
    fini_layers_get()->add_bias(rows, out, at[1], from, y);
    map(rows, in, out, x, at[0], 1, y, out);
}

/* t (1 + tanh(sqrt(2 / pi) (t + 0.044715 t^3))) / 2 (Hendrycks and Gimpel 2016) */
static void gelu_tanh(int64_t count, int64_t w, const float *bias, float *x)
{
    for (int64_t i = 0; i < count; i++) {
        float t = x[i] + bias[i % w];
        x[i] = 0.5f * t * (1 + tanhf(0.79788456f * (t + 0.044715f * t * t * t)));
    }
}

/* h <- act(h + bias). The kernels leave the derivative beside it, so a few rows at a time. */
static void activate(const job *j, scratch *s, int64_t rows, int64_t w, const float *bias)
{
    const fini_layers_f32 *kernels = fini_layers_get();
    if (j->e->act == FINI_ACT_TANH) {
        gelu_tanh(rows * w, w, bias, s->h);
        return;
    }
    for (int64_t r = 0; r < rows; r += ACT_ROWS) {
        int64_t some = rows - r < ACT_ROWS ? rows - r : ACT_ROWS;
        float *h = s->h + r * w;
        (j->e->act == FINI_ACT_RELU ? kernels->relu : kernels->gelu)(some, w, bias, h, s->act);
        memcpy(h, s->act, (size_t)(some * w) * sizeof *h);
    }
}

/* att = softmax(q k' / sqrt(d)) v, head by head, text by text */
static void attend(const job *j, const parts *l, scratch *s, const float *x, int64_t from,
                   int64_t to)
{
    const int64_t in = l->in, d = in / j->e->shape.heads;
    const int64_t start = row_of(j, from), rows = row_of(j, to) - start;
    const float *const *maps[] = {l->query, l->key, l->value};
    for (int part = 0; part < 3; part++) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(s->qkv + (3 * r + part) * in, maps[part][1], (size_t)in * sizeof *s->qkv);
        map(rows, in, in, x, maps[part][0], 1, s->qkv + part * in, 3 * in);
    }
    for (int64_t i = from; i < to; i++) {
        int64_t at = row_of(j, i) - start, L = pieces_of(j, i), left = row_of(j, i + 1) - start;
        memset(s->att + (at + L) * in, 0, (size_t)((left - at - L) * in) * sizeof *s->att);
        for (int64_t head = 0; head < j->e->shape.heads; head++) {
            const float *q = s->qkv + at * 3 * in + head * d;
            fini_layers_get()->attend(&(fini_head_f32){.m = L,
                                                       .L = L,
                                                       .d = d,
                                                       .ld = 3 * in,
                                                       .ldo = in,
                                                       .times = 1 / sqrtf((float)d),
                                                       .q = q,
                                                       .k = q + in,
                                                       .v = q + 2 * in,
                                                       .out = s->att + at * in + head * d,
                                                       .kept = s->kept,
                                                       .scratch = s->attend});
        }
    }
}

/* ---- a layer ------------------------------------------------------------------------------------------ */

/* x (rows, in) to y (rows, w), which may be x where in = w. */
static void norm_last(const job *j, const parts *l, scratch *s, int64_t rows, const float *x,
                      float *y)
{
    map_add(rows, l->in, l->w, s->att, l->out, x, s->y);
    norm(j, s, rows, l->w, l->norm1, s->y, s->z);
    map(rows, l->w, l->hidden, s->z, l->up[0], 0, s->h, l->hidden);
    activate(j, s, rows, l->hidden, l->up[1]);
    map_add(rows, l->hidden, l->w, s->h, l->down, s->z, s->y);
    norm(j, s, rows, l->w, l->norm2, s->y, y);
}

static void norm_first(const job *j, const parts *l, scratch *s, int64_t rows, const float *x,
                       float *y)
{
    const float *from = x;
    if (l->residual[0]) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(s->z + r * l->w, l->residual[1], (size_t)l->w * sizeof *x);
        map(rows, l->in, l->w, x, l->residual[0], 1, s->z, l->w);
        from = s->z;
    }
    map_add(rows, l->in, l->w, s->att, l->out, from, s->y);
    norm(j, s, rows, l->w, l->norm2, s->y, s->z);
    map(rows, l->w, l->hidden, s->z, l->up[0], 0, s->h, l->hidden);
    activate(j, s, rows, l->hidden, l->up[1]);
    map_add(rows, l->hidden, l->w, s->h, l->down, s->y, y);
}

static void run_group(const job *j, const parts *l, int64_t g, scratch *s)
{
    const int64_t from = j->group[g], to = j->group[g + 1];
    int64_t at = row_of(j, from), rows = row_of(j, to) - at;
    const float *x = j->x + at * l->in;
    float *y = (l->in == l->w ? j->x : j->next) + at * l->w;
    if (j->e->norm_first) {
        norm(j, s, rows, l->in, l->norm1, x, s->y);
        attend(j, l, s, s->y, from, to);
        norm_first(j, l, s, rows, x, y);
    } else {
        attend(j, l, s, x, from, to);
        norm_last(j, l, s, rows, x, y);
    }
}

/* ---- embedding and ends ------------------------------------------------------------------------------- */

/* x = norm(word + place + kind 0), a row at a time in `row`; those that are converted in `room`. */
static void embed_text(const job *j, int64_t i, const float *const at[2], float *row, float *room,
                       float *x)
{
    const fin_text_encoder *e = j->e;
    const int64_t w = e->first, *offsets = j->p->offsets;
    float mean, inverse;
    for (int64_t t = offsets[i]; t < offsets[i + 1]; t++, x += w) {
        memcpy(row, fini_weight_row(&e->words, j->p->id[t], room), (size_t)w * sizeof *x);
        const float *more = fini_weight_row(&e->places, t - offsets[i], room);
        for (int64_t k = 0; k < w; k++)
            row[k] += more[k];
        more = e->kinds.rows ? fini_weight_row(&e->kinds, 0, room) : NULL;
        for (int64_t k = 0; k < w && more; k++)
            row[k] += more[k];
        if (at[0])
            fini_layers_get()->norm(&(fini_norm_f32){1, w, row, at[0], &mean, &inverse, e->eps},
                                    at[1], x);
        else
            memcpy(x, row, (size_t)w * sizeof *x);
    }
}

static void embed(const job *j)
{
    const float *at[2] = {NULL, NULL};
    const int64_t w = j->e->first;
    float *room = j->room;
    if (j->e->norm.weight.rows)
        convert(&j->e->norm, &room, at);
#pragma omp parallel for num_threads(j->threads) schedule(dynamic, 1)
    for (int64_t g = 0; g < j->groups; g++) {
        scratch *s = j->scratch[omp_get_thread_num()];
        for (int64_t i = j->group[g]; i < j->group[g + 1]; i++) {
            int64_t end = row_of(j, i) + pieces_of(j, i), left = row_of(j, i + 1) - end;
            embed_text(j, i, at, s->y, s->z, j->x + row_of(j, i) * w);
            memset(j->x + end * w, 0, (size_t)(left * w) * sizeof *j->x);
        }
    }
}

/* The row of a text that is asked for. */
static void pick(const job *j, int64_t w, int64_t L, const float *x, float *out)
{
    const int kind = j->pass->pick;
    int64_t at = kind == FIN_TEXT_AT ? j->pass->at : kind == FIN_TEXT_LAST ? L - 1 : 0;
    if (kind != FIN_TEXT_MEAN) {
        memcpy(out, x + at * w, (size_t)w * sizeof *out);
        return;
    }
    for (int64_t k = 0; k < w; k++) {
        double sum = 0;
        for (int64_t l = 0; l < L; l++)
            sum += (double)x[l * w + k];
        out[k] = (float)(sum / (double)L);
    }
}

static void keep(const job *j, int64_t layer, int64_t from, int64_t to)
{
    float *states = j->pass->states ? j->pass->states[layer] : NULL;
    const int64_t *offsets = j->p->offsets, w = fin_text_encoder_width(j->e, layer);
    for (int64_t i = from; i < to && states; i++) {
        const float *x = j->x + row_of(j, i) * w;
        int64_t L = pieces_of(j, i);
        if (j->pass->pick == FIN_TEXT_ALL)
            memcpy(states + offsets[i] * w, x, (size_t)(L * w) * sizeof *x);
        else
            pick(j, w, L, x, states + i * w);
    }
}

/* The mean m of x_l; use-lite: tanh(P m + p), of length 1. */
static void pool_text(const job *j, const float *const at[2], int64_t L, const float *x,
                      double *sum, float *out)
{
    const int64_t w = j->e->shape.width;
    double square = 0, share = 1 / (double)L;
    for (int64_t k = 0; k < w; k++)
        sum[k] = 0;
    for (int64_t l = 0; l < L; l++)
        for (int64_t k = 0; k < w; k++)
            sum[k] += (double)x[l * w + k] * share;
    for (int64_t k = 0; k < w && !at[0]; k++)
        out[k] = (float)sum[k];
    for (int64_t k = 0; k < w && at[0]; k++) {
        double value = (double)at[1][k];
        for (int64_t i = 0; i < w; i++)
            value += (double)at[0][k * w + i] * sum[i];
        out[k] = (float)tanh(value);
        square += (double)out[k] * (double)out[k];
    }
    for (int64_t k = 0; k < w && at[0]; k++)
        out[k] = (float)((double)out[k] / sqrt(fmax(square, 1e-12)));
}

static void pool(const job *j, int64_t from, int64_t to)
{
    const int64_t w = j->e->shape.width;
    const float *at[2] = {NULL, NULL};
    float *room = j->room;
    if (j->e->norm_first)
        convert(&j->e->pooler, &room, at);
#pragma omp parallel for num_threads(j->threads) schedule(dynamic, 1)
    for (int64_t i = from; i < to; i++) {
        scratch *s = j->scratch[omp_get_thread_num()];
        pool_text(j, at, pieces_of(j, i), j->x + row_of(j, i) * w, s->sum, j->pass->pooled + i * w);
    }
}

/* ---- chunks -------------------------------------------------------------------------------------------- */

static fin_status check_states(const job *j, int64_t from, int64_t to, fin_error *err)
{
    const int64_t w = fin_text_encoder_width(j->e, j->depth);
    for (int64_t i = from; i < to; i++) {
        const float *x = j->x + row_of(j, i) * w;
        float sum = 0;
        for (int64_t k = 0; k < pieces_of(j, i) * w; k++)
            sum += 0 * *x++; /* NaN for what is not finite */
        if (!(sum == 0))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "the states of text %lld (from 0) are not finite: the weights hold "
                             "infinities, or numbers too large for float32",
                             (long long)i);
    }
    return FIN_OK;
}

static fin_status run_chunk(job *j, int64_t from, int64_t to, const fin_progress *progress,
                            fin_error *err)
{
    const int64_t *offsets = j->p->offsets, tokens = offsets[to] - offsets[from];
    const double total = (double)offsets[j->p->n], depth = (double)(j->depth + 1);
    embed(j);
    keep(j, 0, from, to);
    for (int64_t i = 0; i < j->depth; i++) {
        double done = (double)offsets[from] + (double)tokens * (double)(i + 1) / depth;
        if (fini_report(progress, "texts", done, total))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled while texts were encoded");
        parts l = parts_of(j, i);
#pragma omp parallel for num_threads(j->threads) schedule(dynamic, 1)
        for (int64_t g = 0; g < j->groups; g++)
            run_group(j, &l, g, j->scratch[omp_get_thread_num()]);
        if (l.in != l.w)
            memcpy(j->x, j->next, (size_t)(j->used * l.w) * sizeof *j->x);
        keep(j, i + 1, from, to);
    }
    fin_status status = check_states(j, from, to, err);
    if (!status && j->pass->pooled)
        pool(j, from, to);
    return status;
}

/* Rows that a group needs for the usual way of the BLAS, and what all chunks come to. */
static fin_status plan_rows(job *j, fin_error *err)
{
    const fin_text_shape *s = &j->e->shape;
    int64_t small = s->width < j->e->first ? s->width : j->e->first;
    fin_status status = fini_blas_step(&j->step, err);
    small = small < s->hidden ? small : s->hidden;
    j->least = j->step ? up_to(USUAL / larger(SMALL, small * small) + 1, j->step) : 0;
    for (int64_t i = 0, to; i < j->p->n && !status; i = to) {
        to = cut_chunk(j, i);
        j->most = larger(j->most, j->used);
        j->many = larger(j->many, to - i);
    }
    return status;
}

/* How far, and the longest text. */
static fin_status plan(job *j, fin_error *err)
{
    const fin_text_encoder *e = j->e;
    j->depth = j->pass->pooled ? e->shape.layers : 0;
    for (int64_t i = 0; i <= e->shape.layers && j->pass->states; i++)
        if (j->pass->states[i] && i > j->depth)
            j->depth = i;
    if (j->pass->pick < FIN_TEXT_ALL || j->pass->pick > FIN_TEXT_MEAN)
        return fini_fail(err, FIN_ERR_ARGUMENT, "pick %d is none of FIN_TEXT_ALL to _MEAN",
                         j->pass->pick);
    for (int64_t i = 0; i < j->p->n && j->pass->pick == FIN_TEXT_AT; i++)
        if (j->pass->at < 0 || j->pass->at >= j->p->offsets[i + 1] - j->p->offsets[i])
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "piece %lld is asked for, and text %lld (from 0) has %lld",
                             (long long)j->pass->at, (long long)i,
                             (long long)(j->p->offsets[i + 1] - j->p->offsets[i]));
    for (int64_t i = 0; i < j->p->n; i++)
        j->longest = larger(j->longest, j->p->offsets[i + 1] - j->p->offsets[i]);
    j->threads = fin_threads_get();
    if (j->longest > e->shape.longest)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a text of %lld pieces, and this encoder takes %lld: the pieces were cut "
                         "for another one",
                         (long long)j->longest, (long long)e->shape.longest);
    for (int64_t t = 0; t < j->p->offsets[j->p->n]; t++)
        if (j->p->id[t] >= e->shape.vocabulary)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "piece %lld is not of this encoder: the pieces were cut for another "
                             "one",
                             (long long)j->p->id[t]);
    FINI_TRY(fini_blas_ready(err));
    return plan_rows(j, err);
}

fin_status fin_text_encoder_run(const fin_text_encoder *e, const fin_text_pieces *p,
                                const fin_text_pass *pass, const fin_progress *progress,
                                fin_error *err)
{
    FINI_NEED(err, e, p, pass);
    job j = {.e = e, .p = p, .pass = pass};
    fini_arena arena = {0};
    fin_status status = plan(&j, err);
    if (status || p->n == 0)
        return status;
    layout(&arena, &j);
    status = fini_arena_open(&arena, "a pass over texts", err);
    if (status)
        return status;
    layout(&arena, &j);
    fini_blas_enter();
    for (int64_t i = 0, to; i < p->n && !status; i = to) {
        to = cut_chunk(&j, i);
        status = run_chunk(&j, i, to, progress, err);
    }
    fini_blas_leave();
    fini_arena_close(&arena);
    return status;
}
