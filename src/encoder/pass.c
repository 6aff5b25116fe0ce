/* A pass: arguments looked at, memory taken, blocks shared among threads, sums taken.
 *
 * One thread does a block, group by group, forward and backward (pass_body.h). Its sums of losses
 * and its gradient are a row of `parts`; rows are added in double as a tree over the numbers of
 * blocks. Nothing depends on who did which block. */
#include "encoder/encoder.h"
#include "kernel/layers.h"
#include "math/gram.h"
#include "bags/bags.h" /* fini_sum_alone */

#include <math.h>
#include <omp.h>
#include <string.h>

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Blocks of sequences: how a sum over sequences is cut, so that its bits depend on the number of
 * sequences and of blocks alone. A block is summed by one thread; blocks are added as a binary tree
 * over their numbers (fin_sum), whoever has them. A process has whole blocks. */

int64_t fini_encoder_blocks(int64_t total, int64_t blocks)
{
    int64_t most = blocks < 1 ? FINI_BLOCKS : blocks > FINI_BLOCKS_MOST ? FINI_BLOCKS_MOST : blocks;
    return total < 0 ? 0 : total < most ? total : most;
}

void fin_encoder_share(int64_t total, int64_t blocks, int rank, int ranks, int64_t *first,
                       int64_t *count)
{
    if (!first || !count)
        return;
    int64_t used = fini_encoder_blocks(total, blocks), a, b;
    fini_block_share(used, rank, ranks, &a, &b);
    *first = fini_block_start(total, used, a);
    *count = fini_block_start(total, used, b) - *first;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

typedef struct memory {
    double *parts, *sum;
    void *weights, *sines;   /* where the pass needs its own */
    float *panels;           /* the layers' matrices packed, where there are kernels for them */
    unsigned char **scratch; /* (threads) */
} memory;

static const fini_passer *passer_of(fin_dtype dtype)
{
    return dtype == FIN_F32 ? &fini_passer_f32 : &fini_passer_f64;
}

/* So many products are done before a second thread has begun. */
enum { WORTH = 1 << 18 };

/* As many threads as there is work for. No bit depends on it. */
static int threads_for(const fini_work *job, double work)
{
    int threads = fin_threads_get();
    if (work < WORTH || threads < 1 || job->own < 2)
        return 1;
    return threads > job->own ? (int)job->own : threads;
}

/* The kernels' own products take matrices whose sides are whole panels, and which are small: for
 * large ones a BLAS is as good. Nothing but the encoder decides. */
enum { PANELS_MOST = 1024 };
static bool use_panels(const fini_work *job)
{
    const fin_encoder *o = job->o;
    return job->pass->dtype == FIN_F32 && fini_layers_get()->map && o->width % FINI_PANEL == 0 &&
           o->hidden % FINI_PANEL == 0 && o->width <= PANELS_MOST && o->hidden <= PANELS_MOST;
}

static void pack(const fini_work *job, float *panels)
{
    const fin_encoder *o = job->o;
    const float *weights = job->weights;
    int64_t w = o->width, hidden = o->hidden;
    for (int64_t i = 0; i < job->depth; i++) {
        const fini_layer *at = &o->layer[i];
        const struct {
            int64_t weight, in, out;
        } maps[] = {{at->in.weight, w, 3 * w},
                    {at->out.weight, w, w},
                    {at->ff1.weight, w, hidden},
                    {at->ff2.weight, hidden, w}};
        for (int j = 0; j < (hidden ? 4 : 2); j++)
            fini_map_pack(maps[j].in, maps[j].out, weights + maps[j].weight,
                          panels + maps[j].weight,
                          job->through ? panels + o->count + maps[j].weight : NULL);
    }
}

static void layout(fini_arena *a, const fini_work *job, int threads, memory *m)
{
    const fini_passer *passer = passer_of(job->pass->dtype);
    const fin_encoder *o = job->o;
    bool sines = o->settings.positions == FIN_POSITIONS_SINUSOIDAL;
    bool convert = !job->pass->weights && job->pass->dtype != FIN_F32;
    m->parts = fini_take(a, job->own * job->columns, sizeof *m->parts);
    m->sum = fini_take(a, job->columns, sizeof *m->sum);
    m->weights = fini_take(a, convert ? o->count : 0, passer->size);
    m->sines = fini_take(a, sines ? job->longest * o->width : 0, passer->size);
    m->panels = fini_take(a, use_panels(job) ? 2 * o->count : 0, sizeof *m->panels);
    m->scratch = fini_take(a, threads, sizeof *m->scratch);
    for (int t = 0; t < threads; t++) {
        unsigned char *scratch = fini_take(a, 1, passer->scratch);
        if (a->base)
            m->scratch[t] = scratch;
        passer->layout(job, a, a->base ? scratch : NULL);
    }
}

/* What memory depends on. */
static void plan(fini_work *job, int64_t longest, int64_t tokens, int64_t sequences)
{
    job->longest = longest;
    job->rows = longest > FINI_GROUP ? longest : FINI_GROUP;
    job->rows = tokens < job->rows ? tokens : job->rows;
    job->most = sequences < job->rows ? sequences : job->rows;
}

/* How many targets everybody has, of each head, and what one weighs. */
static fin_status count_targets(fini_work *job, fin_error *err)
{
    double parts[FINI_BLOCKS_MOST * FIN_HEADS_MOST] = {0}, sum[FIN_HEADS_MOST] = {0};
    int64_t heads = job->o->shape.heads;
    for (int64_t b = 0; b < job->own; b++) {
        int64_t at = job->block + b;
        int64_t from = fini_block_start(job->total, job->blocks, at) - job->first;
        int64_t to = fini_block_start(job->total, job->blocks, at + 1) - job->first;
        for (int h = 0; h < (int)heads; h++)
            parts[b * heads + h] = (double)fini_encoder_targets(job, h, from, to);
    }
    FINI_TRY(
        (job->pass->sum ? job->pass->sum : fini_sum_alone)(job->blocks, heads, parts, sum, err));
    for (int h = 0; h < (int)heads; h++) {
        job->pass->head_targets[h] = (int64_t)sum[h];
        job->scale[h] = sum[h] > 0 ? job->o->shape.head[h].weight / sum[h] : 0;
    }
    return FIN_OK;
}

/* The tree of fini_sum_alone, with columns shared among threads. */
static void add_blocks(const fini_work *job, int threads, double *sum)
{
    enum { COLUMNS = 1024 };
    int64_t chunks = (job->columns + COLUMNS - 1) / COLUMNS, n = job->columns;
#pragma omp parallel for num_threads(threads) schedule(static) if (chunks > 16)
    for (int64_t c = 0; c < chunks; c++) {
        int64_t from = c * COLUMNS, to = from + COLUMNS < n ? from + COLUMNS : n;
        fini_add_tree(job->own, n, job->parts, from, to);
        for (int64_t i = from; i < to; i++)
            sum[i] = job->own ? job->parts[i] : 0;
    }
}

static fin_status finish(const fini_work *job, int threads, double *sum, fin_error *err)
{
    fin_pass *pass = job->pass;
    const fin_encoder_shape *shape = &job->o->shape;
    bool any = false;
    if (pass->sum)
        FINI_TRY(pass->sum(job->blocks, job->columns, job->parts, sum, err));
    else
        add_blocks(job, threads, sum);
    pass->loss = 0;
    for (int h = 0; h < (int)shape->heads; h++) {
        bool has = pass->head_targets[h] > 0;
        pass->head_loss[h] = has ? sum[h] / (double)pass->head_targets[h] : NAN;
        pass->loss += has ? shape->head[h].weight * pass->head_loss[h] : 0;
        any = any || has;
    }
    if (!any)
        pass->loss = NAN;
    for (int64_t i = 0; job->back && i < job->slopes; i++)
        pass->gradient[i] = 0;
    if (job->back)
        memcpy(pass->gradient + job->slopes, sum + shape->heads,
               (size_t)(job->o->count - job->slopes) * sizeof *sum);
    return FIN_OK;
}

static void run(fini_work *job, const memory *m, int threads)
{
    const fini_passer *passer = passer_of(job->pass->dtype);
    fini_blas_enter();
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t b = 0; b < job->own; b++)
        passer->run(job, b, m->scratch[omp_get_thread_num()]);
    fini_blas_leave();
}

fin_status fin_encoder_pass(const fin_encoder *o, const fin_sequences *sequences, fin_pass *pass,
                            fin_error *err)
{
    FINI_NEED(err, o, sequences, pass);
    fini_work job = {.o = o, .sequences = sequences, .pass = pass};
    const fini_passer *passer = passer_of(pass->dtype);
    int64_t n = sequences->n;
    memory m = {0};
    fini_arena arena = {0};
    FINI_TRY(fini_encoder_check(&job, err));
    plan(&job, job.longest, n ? sequences->offsets[n] : 0, n);
    int threads = threads_for(&job, (double)(n ? sequences->offsets[n] : 0) * (double)o->count);
    layout(&arena, &job, threads, &m);
    if (arena.overflow)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "out of memory: the size of a pass over sequences of %lld tokens "
                         "overflows",
                         (long long)job.longest);
    size_t size = arena.used;
    void *block = fini_memory_pool_take(o->pool, &size);
    if (!block)
        return fini_fail_memory(err, size, "a pass of an encoder");
    arena = (fini_arena){.base = block};
    layout(&arena, &job, threads, &m);
    job.parts = m.parts;
    job.weights = pass->weights ? pass->weights : m.weights;
    if (!pass->weights && pass->dtype == FIN_F32)
        job.weights = o->weights;
    else if (!pass->weights)
        passer->convert(o->count, o->weights, m.weights);
    if (use_panels(&job)) {
        pack(&job, m.panels);
        job.panels = m.panels;
    }
    job.sines = m.sines;
    if (o->settings.positions == FIN_POSITIONS_SINUSOIDAL)
        passer->sines(job.longest, o->width, m.sines);
    fin_status status = count_targets(&job, err);
    if (!status) {
        run(&job, &m, threads);
        status = finish(&job, threads, m.sum, err);
    }
    fini_memory_pool_give(o->pool, block, size);
    return status;
}

double fini_encoder_bytes(const fin_encoder *o, int64_t L, fin_dtype dtype)
{
    if (!o)
        return 0;
    fin_pass pass = {.dtype = dtype};
    fini_work job = {
        .o = o, .pass = &pass, .back = true, .through = true, .depth = o->settings.layers};
    memory m = {0};
    fini_arena arena = {0};
    int64_t longest = L < 1 ? 1 : L;
    if (longest > FINI_LONGEST)
        return INFINITY; /* a pass refuses it */
    job.own = FINI_BLOCKS;
    job.columns = o->shape.heads + o->count;
    for (int h = 0; h < (int)o->shape.heads; h++)
        job.head[h] = true;
    plan(&job, longest, INT64_MAX, INT64_MAX);
    layout(&arena, &job, threads_for(&job, WORTH), &m);
    return arena.overflow ? INFINITY : (double)arena.used;
}
