/* Memory of one thread: the current group of sequences, and what is known of it in every layer.
 * Part of pass_f32.c and pass_f64.c. */

/* A layer, or (the last entry) the end: x and its norm. Without a way back all layers share the
 * same memory. Rows are those of the group; from `att` of the last layer on, those that are asked
 * for (scratch.end). */
typedef struct kept {
    REAL *x;                    /* (rows, width) what the layer is given */
    REAL *y, *mean1, *inverse1; /* (rows, width), (rows), (rows): its norm; without norms y = x */
    REAL *qkv;                  /* (rows, 3 width) queries, keys, values */
    REAL *sums;                 /* (heads, rows, 2) of softmax: largest score and 1 / sum */
    REAL *att;                  /* (rows, width) answers of the attention heads */
    REAL *mid;                  /* (rows, width) x after attention */
    REAL *z, *mean2, *inverse2; /* norm of mid, as y */
    REAL *slope, *act;          /* (rows, hidden) act' and act */
} kept;

typedef struct scratch {
    int64_t first, n, rows;   /* the group: sequences of this process, tokens */
    int64_t *start, *visible; /* (most + 1), (most): first row and visible tokens of a sequence */
    int64_t *skip;            /* (most) so many of its first rows nobody asks for at the end */
    int64_t *end;             /* (most + 1) where the others stand from the last attention on */
    int64_t *place;           /* (rows) which token of its sequence a row is */
    int64_t *twin;            /* (rows) the row of the group whose answers are this row's, too */
    fini_sorter sorter;
    REAL *t;            /* (rows, inputs) */
    kept *layer;        /* (depth + 1) */
    REAL *answers;      /* (rows, most answers), and on the way back their gradient */
    REAL *mean, *dmean; /* (most, width) means over sequences, for pooled heads */
    double *row;        /* (2 most answers) */
    REAL *attend;       /* scratch of the kernels */
    REAL *weights;      /* (longest) of one query, for maps */
    fini_cme cme;
    REAL *gradient; /* (count) of what has not gone to the block's sums yet */
    REAL *dx, *dy;  /* (rows, width) */
    REAL *wide;     /* (rows, max(3 width, hidden)) */
} scratch;

static REAL *take(fini_arena *a, int64_t rows, int64_t columns)
{
    if (rows > 0 && columns > INT64_MAX / rows) {
        a->overflow = true;
        return NULL;
    }
    return fini_take(a, rows * columns, sizeof(REAL));
}

static void layout_norm(fini_arena *a, const fini_work *job, REAL *x, REAL **y, REAL **mean,
                        REAL **inverse)
{
    bool norms = job->o->settings.norm == FIN_NORM_LAYER;
    *y = norms ? take(a, job->rows, job->o->width) : x;
    *mean = take(a, job->rows, norms);
    *inverse = take(a, job->rows, norms);
}

static void layout_layer(fini_arena *a, const fini_work *job, kept *k, REAL *x)
{
    const fin_encoder *o = job->o;
    int64_t rows = job->rows, w = o->width;
    k->x = x;
    layout_norm(a, job, k->x, &k->y, &k->mean1, &k->inverse1);
    k->qkv = take(a, rows, 3 * w);
    k->sums = take(a, rows, 2 * o->settings.heads);
    k->att = take(a, rows, w);
    if (!o->hidden)
        return; /* mid is the next layer's x */
    k->mid = take(a, rows, w);
    layout_norm(a, job, k->mid, &k->z, &k->mean2, &k->inverse2);
    k->slope = take(a, rows, o->hidden);
    k->act = take(a, rows, o->hidden);
}

/* Layers, each with memory of its own if there is a way back. */
static void layout_layers(fini_arena *a, const fini_work *job, scratch *s)
{
    s->layer = fini_take(a, job->depth + 1, sizeof *s->layer);
    kept one = {0};
    for (int64_t i = 0; i <= job->depth; i++) {
        REAL *x = i && !job->through ? one.x : take(a, job->rows, job->o->width);
        if (i < job->depth && (i == 0 || job->through))
            layout_layer(a, job, &one, x);
        one.x = x;
        if (i == job->depth)
            layout_norm(a, job, x, &one.y, &one.mean1, &one.inverse1);
        if (a->base)
            s->layer[i] = one;
    }
}

static void layout_cme(fini_arena *a, const fini_work *job, fini_cme *c)
{
    bool cme = job->o->settings.attention == FIN_ENCODER_CME;
    int64_t d = job->o->d, longest = cme ? job->longest : 0, back = job->through ? longest : 0;
    double **const forward[] = {&c->Q, &c->K, &c->V, &c->O};
    double **const backward[] = {&c->dQ, &c->dK, &c->dV};
    double **const square[] = {&c->A, &c->W, &c->B};
    for (int i = 0; i < 4; i++)
        *forward[i] = fini_take(a, longest * d, sizeof(double));
    for (int i = 0; i < 3; i++)
        *backward[i] = fini_take(a, back * d, sizeof(double));
    for (int i = 0; i < 3; i++)
        *square[i] = fini_take(a, cme ? d * d : 0, sizeof(double));
}

static int64_t most_answers(const fini_work *job)
{
    int64_t most = 0;
    for (int h = 0; h < (int)job->o->shape.heads; h++) {
        int64_t n = fin_head_answers(&job->o->shape.head[h]);
        most = job->head[h] && n > most ? n : most;
    }
    return most;
}

static void layout(const fini_work *job, fini_arena *a, void *to)
{
    const fin_encoder *o = job->o;
    int64_t rows = job->rows, w = o->width, most = most_answers(job);
    int64_t back = job->through ? rows : 0;
    scratch s = {0};
    s.start = fini_take(a, job->most + 1, sizeof *s.start);
    s.visible = fini_take(a, job->most, sizeof *s.visible);
    s.skip = fini_take(a, job->most, sizeof *s.skip);
    s.end = fini_take(a, job->most + 1, sizeof *s.end);
    s.place = fini_take(a, rows, sizeof *s.place);
    s.twin = fini_take(a, rows, sizeof *s.twin);
    s.sorter.keys = fini_take(a, job->longest, sizeof *s.sorter.keys);
    s.sorter.other = fini_take(a, job->longest, sizeof *s.sorter.other);
    s.t = take(a, rows, o->shape.inputs);
    layout_layers(a, job, &s);
    s.answers = take(a, rows, most);
    s.mean = take(a, job->most, w);
    s.dmean = take(a, job->through ? job->most : 0, w);
    s.row = fini_take(a, 2 * most, sizeof *s.row);
    s.attend = take(a, 1, fini_attend_scratch(job->longest, o->d));
    s.weights = take(a, 1, job->longest);
    layout_cme(a, job, &s.cme);
    s.gradient = take(a, job->back, o->count);
    s.dx = take(a, back, w);
    s.dy = take(a, back, w);
    s.wide = take(a, back, 3 * w > o->hidden ? 3 * w : o->hidden);
    if (to)
        *(scratch *)to = s;
}
