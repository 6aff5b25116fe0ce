/* The encoder: its settings and shape checked, its block of parameters made and drawn. */
#include "encoder/encoder.h"

#include "math/gram.h"
#include "random/streams.h"

#include <string.h>

#define FIN_TABLE_STRUCT fin_encoder_settings
FIN_TABLE(, fin_encoder_table, "encoder", FIN_ENCODER_FIELDS);
#undef FIN_TABLE_STRUCT

enum { SIZE_MOST = 65536 }; /* columns of a token, numbers of an answer */

int64_t fin_head_answers(const fin_head *head)
{
    return !head ? 0 : head->kind == FIN_HEAD_GAUSSIAN ? 2 * head->size : head->size;
}

int64_t fin_head_targets(const fin_head *head)
{
    return !head ? 0 : head->kind == FIN_HEAD_CLASSES ? 1 : head->size;
}

/* ---- what is allowed ------------------------------------------------------------------------- */

/* Names become names of tensors: letters, digits, _, and no two the same. */
static fin_status check_name(const fin_encoder_shape *shape, int h, fin_error *err)
{
    const fin_head *head = &shape->head[h];
    size_t n = strnlen(head->name, sizeof head->name);
    bool good = n > 0 && n < sizeof head->name;
    for (size_t i = 0; good && i < n; i++) {
        char c = head->name[i];
        good =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    if (!good)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the name of head %d must be 1 to 23 letters, digits or _, such as "
                         "\"value\"",
                         h);
    for (int g = 0; g < h; g++)
        if (strcmp(shape->head[g].name, head->name) == 0)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "heads %d and %d are both called %s; names must differ", g, h,
                             head->name);
    return FIN_OK;
}

static fin_status check_head(const fin_encoder_shape *shape, int h, fin_error *err)
{
    const fin_head *head = &shape->head[h];
    FINI_TRY(check_name(shape, h, err));
    if (head->kind < FIN_HEAD_VALUE || head->kind > FIN_HEAD_CLASSES ||
        head->where < FIN_HEAD_TOKENS || head->where > FIN_HEAD_POOLED)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "head %s has kind %d and place %d; kinds are value 0, gaussian 1, "
                         "classes 2, places tokens 0 and pooled 1",
                         head->name, head->kind, head->where);
    int64_t least = head->kind == FIN_HEAD_CLASSES ? 2 : 1;
    if (head->size < least || head->size > SIZE_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "head %s has size %lld; it must be between %lld and %d", head->name,
                         (long long)head->size, (long long)least, SIZE_MOST);
    if (!(head->weight >= 0 && head->weight <= 1e30))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "head %s has weight %g; it must be between 0 and 1e30, usually 1",
                         head->name, head->weight);
    return FIN_OK;
}

static fin_status check_shape(const fin_encoder_shape *shape, fin_error *err)
{
    if (shape->inputs < 1 || shape->inputs > SIZE_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a token has %lld columns; there must be 1 to %d of them",
                         (long long)shape->inputs, SIZE_MOST);
    if (shape->values < 0 || shape->values > shape->inputs)
        return fini_fail(
            err, FIN_ERR_ARGUMENT, "%lld of %lld columns are the value's; there can be 0 to %lld",
            (long long)shape->values, (long long)shape->inputs, (long long)shape->inputs);
    if (shape->heads < 1 || shape->heads > FIN_HEADS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld heads of answers; there can be 1 to %d",
                         (long long)shape->heads, FIN_HEADS_MOST);
    for (int h = 0; h < (int)shape->heads; h++)
        FINI_TRY(check_head(shape, h, err));
    return FIN_OK;
}

static fin_status check(const fin_encoder_settings *s, const fin_encoder_shape *shape,
                        fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_encoder_table, s, err));
    if (s->width % s->heads) {
        int64_t near = (s->width / s->heads + 1) * s->heads;
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a width of %lld cannot be divided among %lld heads; the width must be a "
                         "multiple of heads, such as %lld",
                         (long long)s->width, (long long)s->heads, (long long)near);
    }
    if (s->positions == FIN_POSITIONS_LEARNED && s->longest == FIN_AUTO_INT)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "learned positions need the setting longest: the tokens of the longest "
                         "sequence there will be");
    return check_shape(shape, err);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void cut(fini_arena *a, fin_encoder *o)
{
    o->weights = fini_take(a, o->count, sizeof *o->weights);
    o->layer = fini_take(a, o->settings.layers, sizeof *o->layer);
    o->piece = fini_take(a, o->pieces, sizeof *o->piece);
}

/* Every piece has normal numbers of its own: one more layer changes none of the others'. */
static void draw(fin_encoder *o, uint64_t seed)
{
    for (int64_t i = 0; i < o->pieces; i++) {
        const fini_piece *p = &o->piece[i];
        float *w = o->weights + p->at;
        int64_t n = p->rows * (p->columns ? p->columns : 1);
        if (p->spread > 0)
            fin_random_normals_f32(seed, FINI_STREAM_ENCODER, (uint64_t)i, 0, n, w);
        for (int64_t j = 0; j < n; j++)
            w[j] = p->spread > 0 ? (float)p->spread * w[j] : (float)p->start;
    }
}

fin_status fin_encoder_create(fin_encoder **encoder, const fin_encoder_settings *settings,
                              const fin_encoder_shape *shape, uint64_t seed, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, encoder, shape);
    settings = fini_or_defaults(&fin_encoder_table, settings, &(fin_encoder_settings){0});
    FINI_TRY(check(settings, shape, err));
    FINI_MAKE(err, "an encoder", fin_encoder, o);
    o->settings = *settings;
    o->shape = *shape;
    o->width = settings->width;
    o->d = settings->width / settings->heads;
    if (settings->hidden == FIN_AUTO_INT)
        o->settings.hidden = 4 * o->width;
    o->hidden = o->settings.hidden;
    fini_encoder_layout(o); /* counts */
    cut(&o->arena, o);
    fin_status status = fini_blas_ready(err);
    if (!status)
        status = fini_arena_open(&o->arena, "the parameters of an encoder", err);
    if (!status)
        status = fini_memory_pool_create(&o->pool, err);
    if (status) {
        fin_encoder_destroy(o);
        return status;
    }
    cut(&o->arena, o);
    fini_encoder_layout(o);
    draw(o, seed);
    *encoder = o;
    return FIN_OK;
}

void fin_encoder_destroy(fin_encoder *o)
{
    if (!o)
        return;
    fini_memory_pool_destroy(o->pool);
    fini_arena_close(&o->arena);
    fini_free(o);
}

const fin_encoder_settings *fin_encoder_get_settings(const fin_encoder *o)
{
    return o ? &o->settings : NULL;
}

const fin_encoder_shape *fin_encoder_get_shape(const fin_encoder *o)
{
    return o ? &o->shape : NULL;
}

int64_t fin_encoder_parameters(const fin_encoder *o)
{
    return o ? o->count : 0;
}

float *fin_encoder_weights(fin_encoder *o)
{
    return o ? o->weights : NULL;
}
