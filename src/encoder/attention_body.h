/* Attention of a group: every head of every sequence by itself. Hidden tokens are the last rows of
 * a sequence, so that its keys and values are simply its first rows. Part of pass_f32.c and
 * pass_f64.c. */

/* A head of a sequence: its tokens are rows at .. at + L - 1 of queries, keys and values, of which
 * the first `seen` are visible; queries are asked for m of them, from row `ask` on, and their
 * answers are rows to .. to + m - 1. */
typedef struct piece {
    int64_t at, L, seen, ask, m, to, head;
} piece;

static piece piece_of(const fini_work *job, int64_t layer, const scratch *s, int64_t i)
{
    bool last = layer == job->o->settings.layers - 1;
    int64_t at = s->start[i], L = s->start[i + 1] - at, skip = last ? s->skip[i] : 0;
    return (piece){at, L, s->visible[i], at + skip, L - skip, last ? s->end[i] : at, 0};
}

static HEAD head_of(const fini_work *job, const scratch *s, const kept *k, const piece *p)
{
    int64_t w = job->o->width, d = job->o->d, column = p->head * d;
    const REAL *keys = k->qkv + p->at * 3 * w + column + w;
    return (HEAD){.m = p->m,
                  .L = p->seen,
                  .d = d,
                  .ld = 3 * w,
                  .ldo = w,
                  .times = (REAL)(1 / sqrt((double)d)),
                  .q = k->qkv + p->ask * 3 * w + column,
                  .k = keys,
                  .v = keys + w,
                  .out = k->att + p->to * w + column,
                  .kept = k->sums + (p->head * s->rows + p->to) * 2,
                  .scratch = s->attend};
}

static void attend_softmax(const fini_work *job, const scratch *s, const kept *k, const piece *p)
{
    HEAD h = head_of(job, s, k, p);
    LAYERS->attend(&h);
}

static void attend_softmax_back(const fini_work *job, scratch *s, const kept *k, const piece *p)
{
    HEAD h = head_of(job, s, k, p);
    LAYERS->attend_back(&h, s->dy + (h.out - k->att), s->wide + (h.q - k->qkv),
                        s->wide + (h.k - k->qkv), s->wide + (h.v - k->qkv));
}

/* ---- kernel ridge ---------------------------------------------------------------------------- */

static void gather(int64_t rows, int64_t d, int64_t ld, const REAL *from, double *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < d; j++)
            to[i * d + j] = (double)from[i * ld + j];
}

static void scatter(int64_t rows, int64_t d, int64_t ld, const double *from, REAL *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < d; j++)
            to[i * ld + j] = (REAL)from[i * d + j];
}

static void load_cme(const fini_work *job, int64_t layer, scratch *s, const kept *k, const piece *p)
{
    const fin_encoder *o = job->o;
    const REAL *weights = job->weights;
    fini_cme *c = &s->cme;
    int64_t w = o->width, d = o->d;
    const REAL *q = k->qkv + p->ask * 3 * w + p->head * d;
    const REAL *keys = k->qkv + p->at * 3 * w + p->head * d + w;
    c->m = p->m;
    c->L = p->seen;
    c->d = d;
    c->ridge = exp((double)weights[o->layer[layer].ridge + p->head]);
    gather(p->m, d, 3 * w, q, c->Q);
    gather(p->seen, d, 3 * w, keys, c->K);
    gather(p->seen, d, 3 * w, keys + w, c->V);
}

static void attend_cme(const fini_work *job, int64_t layer, scratch *s, kept *k, const piece *p)
{
    int64_t w = job->o->width, d = job->o->d;
    load_cme(job, layer, s, k, p);
    fini_cme_forward(&s->cme);
    scatter(p->m, d, w, s->cme.O, k->att + p->to * w + p->head * d);
}

static void attend_cme_back(const fini_work *job, int64_t layer, scratch *s, const kept *k,
                            const piece *p)
{
    const fin_encoder *o = job->o;
    fini_cme *c = &s->cme;
    int64_t w = o->width, d = o->d;
    REAL *dq = s->wide + p->ask * 3 * w + p->head * d;
    REAL *dkeys = s->wide + p->at * 3 * w + p->head * d + w;
    load_cme(job, layer, s, k, p);
    gather(p->m, d, w, s->dy + p->to * w + p->head * d, c->O);
    double slope = fini_cme_backward(c);
    s->gradient[o->layer[layer].ridge + p->head] += (REAL)(slope * c->ridge);
    scatter(p->m, d, 3 * w, c->dQ, dq);
    scatter(p->seen, d, 3 * w, c->dK, dkeys);
    scatter(p->seen, d, 3 * w, c->dV, dkeys + w);
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Weights of one head of one sequence in the order of its tokens. After its attention, in which
 * every token has asked. */
static void write_map(const fini_work *job, scratch *s, const kept *k, const piece *p, double *map)
{
    const fin_encoder *o = job->o;
    bool cme = o->settings.attention == FIN_ENCODER_CME;
    int64_t L = p->L;
    const int64_t *place = s->place + p->at, *twin = s->twin + p->at;
    for (int64_t i = 0; i < L * L; i++)
        map[i] = 0;
    for (int64_t i = 0; i < L && p->seen; i++) {
        int64_t from = twin[i] - p->at;
        if (cme)
            fini_cme_weights(&s->cme, from, s->cme.O);
        else {
            piece one = *p;
            one.ask = one.to = twin[i];
            one.m = 1;
            HEAD h = head_of(job, s, k, &one);
            LAYERS->weights(&h, s->weights);
        }
        for (int64_t j = 0; j < p->seen; j++) {
            int64_t key = twin[j] - p->at;
            map[place[i] * L + place[j]] = cme ? s->cme.O[key] : (double)s->weights[key];
        }
    }
}

/* ---- a group --------------------------------------------------------------------------------- */

/* Numbers of the maps of the sequences before `sequence`. */
static int64_t map_start(const fini_work *job, int64_t from, int64_t to)
{
    const int64_t *offsets = job->sequences->offsets;
    int64_t sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += (offsets[i + 1] - offsets[i]) * (offsets[i + 1] - offsets[i]);
    return sum;
}

static void attend(const fini_work *job, int64_t layer, scratch *s)
{
    const fin_encoder *o = job->o;
    const fin_pass *pass = job->pass;
    kept *k = &s->layer[layer];
    bool cme = o->settings.attention == FIN_ENCODER_CME;
    bool maps = pass->maps && pass->layer == layer;
    int64_t map = maps ? map_start(job, 0, s->first) : 0;
    for (int64_t i = 0; i < s->n; i++) {
        piece p = piece_of(job, layer, s, i);
        for (; p.head < o->settings.heads; p.head++) {
            if (p.seen == 0)
                for (int64_t l = 0; l < p.m; l++)
                    memset(k->att + (p.to + l) * o->width + p.head * o->d, 0,
                           (size_t)o->d * sizeof(REAL));
            else if (cme)
                attend_cme(job, layer, s, k, &p);
            else
                attend_softmax(job, s, k, &p);
            if (maps && p.head == pass->map_head)
                write_map(job, s, k, &p, pass->maps + map);
        }
        map += p.L * p.L;
    }
}

/* From the gradient of att, in dy, to that of queries, keys and values, in wide. */
static void attend_back(const fini_work *job, int64_t layer, scratch *s)
{
    const fin_encoder *o = job->o;
    kept *k = &s->layer[layer];
    bool cme = o->settings.attention == FIN_ENCODER_CME;
    int64_t w = o->width;
    for (int64_t i = 0; i < s->n; i++) {
        piece p = piece_of(job, layer, s, i);
        for (; p.head < o->settings.heads && p.seen; p.head++) {
            if (cme)
                attend_cme_back(job, layer, s, k, &p);
            else
                attend_softmax_back(job, s, k, &p);
        }
        /* Nothing came of queries that were not asked, nor of any where nothing is seen; keys and
         * values of hidden tokens are nobody's. */
        for (int64_t l = p.at; l < p.at + p.L; l++) {
            if (l < p.ask || !p.seen)
                memset(s->wide + l * 3 * w, 0, (size_t)w * sizeof(REAL));
            if (l >= p.at + p.seen)
                memset(s->wide + l * 3 * w + w, 0, (size_t)(2 * w) * sizeof(REAL));
        }
    }
}
