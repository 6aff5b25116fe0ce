/* Where every parameter stands in the one block, what it is called, and what it starts as.
 *
 * The list is written once, as a walk; it is run twice, first to count (piece == NULL), then to
 * fill in. Places depend on settings and shape alone. Pieces follow each other without gaps, so
 * that the block as a whole is what an optimiser works on. */
#include "encoder/encoder.h"
#include "bags/bags.h" /* tensors */

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
    fin_encoder *o;
    int64_t at, pieces;
} walk;

static int64_t put(walk *w, const char *prefix, const char *name, int64_t rows, int64_t columns,
                   double start, double spread)
{
    int64_t at = w->at;
    if (w->o->piece) {
        fini_piece *p = &w->o->piece[w->pieces];
        *p = (fini_piece){
            .at = at, .rows = rows, .columns = columns, .start = start, .spread = spread};
        snprintf(p->name, sizeof p->name, "%s%s", prefix, name);
    }
    w->pieces++;
    w->at += rows * (columns ? columns : 1);
    return at;
}

/* A linear map: N(0, 1/fan-in) times `factor`, bias 0. */
static fini_pair put_map(walk *w, const char *prefix, int64_t rows, int64_t columns, double factor)
{
    fini_pair pair;
    pair.weight = put(w, prefix, ".weight", rows, columns, 0, factor / sqrt((double)columns));
    pair.bias = put(w, prefix, ".bias", rows, 0, 0, 0);
    return pair;
}

static fini_pair put_norm(walk *w, const char *prefix)
{
    fini_pair pair = {-1, -1};
    if (w->o->settings.norm == FIN_NORM_NONE)
        return pair;
    pair.weight = put(w, prefix, ".weight", w->o->width, 0, 1, 0);
    pair.bias = put(w, prefix, ".bias", w->o->width, 0, 0, 0);
    return pair;
}

/* A map whose bias is N(0, 1): it is most of what the first norm divides by, so that this norm is
 * about linear in a token, however large the token is; and without norms the units of the
 * feed-forward part bend at different places. Measured on a linear concept, softmax attention, 500
 * steps, two seeds: 43 and 49 % above Bayes without it, 38 and 34 % with it. Where all but
 * attention is linear it is 0: there it made short sequences worse. */
static fini_pair put_input(walk *w)
{
    const fin_encoder *o = w->o;
    fini_pair pair;
    double spread = o->settings.norm == FIN_NORM_NONE && o->hidden == 0 ? 0 : 1;
    pair.weight =
        put(w, "input.weight", "", o->width, o->shape.inputs, 0, 1 / sqrt((double)o->shape.inputs));
    pair.bias = put(w, "input.bias", "", o->width, 0, 0, spread);
    return pair;
}

static void put_layer(walk *w, int64_t i)
{
    const fin_encoder *o = w->o;
    double residual = 1 / sqrt(2 * (double)o->settings.layers);
    int64_t width = o->width;
    char name[48];
    fini_layer layer = {.ridge = -1, .norm2 = {-1, -1}, .ff1 = {-1, -1}, .ff2 = {-1, -1}};
#define NAME(text) (snprintf(name, sizeof name, "layer.%d.%s", (int)i, text), name)
    layer.norm1 = put_norm(w, NAME("norm1"));
    layer.in = put_map(w, NAME("attention.in"), 3 * width, width, 1);
    layer.out = put_map(w, NAME("attention.out"), width, width, residual);
    if (o->settings.attention == FIN_ENCODER_CME)
        layer.ridge = put(w, NAME("attention.ridge"), "", o->settings.heads, 0, 0, 0);
    if (o->hidden) {
        layer.norm2 = put_norm(w, NAME("norm2"));
        layer.ff1 = put_map(w, NAME("ff1"), o->hidden, width, 1);
        layer.ff2 = put_map(w, NAME("ff2"), width, o->hidden, residual);
    }
#undef NAME
    if (o->layer)
        o->layer[i] = layer;
}

void fini_encoder_layout(fin_encoder *o)
{
    walk w = {o, 0, 0};
    o->input = put_input(&w);
    o->mask = put(&w, "mask", "", o->width, 0, 0, 0);
    o->positions = -1;
    if (o->settings.positions == FIN_POSITIONS_LEARNED)
        o->positions = put(&w, "positions", "", o->settings.longest, o->width, 0, 0);
    for (int64_t i = 0; i < o->settings.layers; i++)
        put_layer(&w, i);
    o->norm = put_norm(&w, "norm");
    for (int h = 0; h < (int)o->shape.heads; h++) {
        char name[48];
        snprintf(name, sizeof name, "head.%.23s", o->shape.head[h].name);
        o->head[h] = put_map(&w, name, fin_head_answers(&o->shape.head[h]), o->width, 0.1);
    }
    o->count = w.at;
    o->pieces = w.pieces;
}

int64_t fin_encoder_tensors(const fin_encoder *o, fin_tensor *tensors, int64_t room)
{
    for (int64_t i = 0; i < o->pieces && i < room; i++) {
        const fini_piece *p = &o->piece[i];
        fin_tensor *t = &tensors[i];
        *t = (fin_tensor){.dtype = FIN_F32, .ndim = p->columns ? 2 : 1, .data = o->weights + p->at};
        memcpy(t->name, p->name, sizeof t->name);
        t->shape[0] = p->rows;
        t->shape[1] = p->columns;
    }
    return o->pieces;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Parameters copied in by name, from a file that may be hostile or of another encoder.
 *
 * Everything is looked at before anything is copied, so that a failure leaves the encoder as it
 * was. */

static int64_t numbers(const fini_piece *p)
{
    return p->rows * (p->columns ? p->columns : 1);
}

static void print_shape(int ndim, const int64_t *shape, char *text, size_t size)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < ndim && i < 4 && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? " x " : "", (long long)shape[i]);
}

/* Doubles are rounded to float: what is too large for that counts as not finite. */
static float number(const fin_tensor *t, int64_t i)
{
    return (float)fini_tensor_number(t, i);
}

static fin_status check_tensor(const fini_piece *p, const fin_tensor *t, fin_error *err)
{
    if (!fini_tensor_fits(t, t->dtype, p->rows, p->columns)) {
        char here[64], there[128];
        print_shape(p->columns ? 2 : 1, (int64_t[]){p->rows, p->columns}, here, sizeof here);
        print_shape(t->ndim, t->shape, there, sizeof there);
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor %.47s is %s, but that of this encoder is %s: it belongs to an "
                         "encoder of another shape",
                         p->name, t->ndim > 0 ? there : "a single number", here);
    }
    if ((t->dtype != FIN_F32 && t->dtype != FIN_F64) || !t->data)
        return fini_fail(err, FIN_ERR_FORMAT, "tensor %.47s has no float or double numbers",
                         p->name);
    int64_t n = numbers(p);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(number(t, i)))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "number %lld of tensor %.47s is not finite; nothing was loaded",
                             (long long)i, p->name);
    return FIN_OK;
}

static const fini_piece *find_piece(const fin_encoder *o, const char *name)
{
    for (int64_t i = 0; i < o->pieces; i++)
        if (strncmp(o->piece[i].name, name, sizeof o->piece[i].name) == 0)
            return &o->piece[i];
    return NULL;
}

fin_status fin_encoder_load(fin_encoder *o, const fin_tensor *tensors, int64_t count, int some,
                            int64_t *copied, fin_error *err)
{
    int64_t found = 0;
    if (copied)
        *copied = 0;
    if (count < 0 || (count && !tensors))
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld tensors to load", (long long)count);
    for (int64_t i = 0; !some && i < count; i++)
        if (!find_piece(o, tensors[i].name))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "there is a tensor %.47s that this encoder has not: it belongs to an "
                             "encoder with other settings",
                             tensors[i].name);
    for (int64_t i = 0; i < o->pieces; i++) {
        const fini_piece *p = &o->piece[i];
        const fin_tensor *t = fini_tensor_find(tensors, count, "", p->name);
        if (!t && !some)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "tensor %.47s is missing: the others belong to an encoder with other "
                             "settings",
                             p->name);
        fin_status status = t ? check_tensor(p, t, err) : FIN_OK;
        if (status)
            return status;
        found += t != NULL;
    }
    for (int64_t i = 0; i < o->pieces; i++) {
        const fini_piece *p = &o->piece[i];
        const fin_tensor *t = fini_tensor_find(tensors, count, "", p->name);
        for (int64_t j = 0, n = t ? numbers(p) : 0; j < n; j++)
            o->weights[p->at + j] = number(t, j);
    }
    if (copied)
        *copied = found;
    return FIN_OK;
}
