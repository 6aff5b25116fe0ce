/* The head of an encoder, set to the probe of what it reads: the mean of the end. */
#include "encoder/corpus.h"
#include "encoder/learn.h"
#include "encoder/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 256 };

typedef struct heading {
    fin_encoder *encoder;
    const fin_corpus *corpus;
    const fin_head *head;
    int64_t n, width, rows;
    double *x, *y; /* (n, width), (n): those with a label */
    double *W, *b; /* (size, width), (size) */
    fini_arena arena;
} heading;

static void lay_out(heading *o, fini_arena *arena)
{
    o->x = fini_take(arena, o->n * o->width, sizeof *o->x);
    o->y = fini_take(arena, o->n, sizeof *o->y);
    o->W = fini_take(arena, o->head->size * o->width, sizeof *o->W);
    o->b = fini_take(arena, o->head->size, sizeof *o->b);
}

/* All sequences with all their tokens: under numbers from FIN_TEST_FIRST on. */
static fin_status read_all(heading *o, const fin_progress *progress, fin_error *err)
{
    fin_examples e = {0};
    fin_status status = FIN_OK;
    fini_features f = {.encoder = o->encoder};
    f.first = f.last = fin_encoder_get_settings(o->encoder)->layers;
    fini_features_width(&f);
    for (int64_t from = 0; from < o->n && !status; from += CHUNK) {
        int64_t n = o->n - from < CHUNK ? o->n - from : CHUNK;
        status = fin_corpus_draw(o->corpus, fini_corpus_whole(o->corpus) + (uint64_t)from, n, -1, 0,
                                 0, &e, err);
        if (!status)
            status = fini_features_of(&f, &e, o->x + o->rows * o->width, err);
        for (int64_t i = 0, to = o->rows; i < n && !status; i++) {
            double *row = o->x + o->rows * o->width;
            if (isnan(e.targets[i]))
                continue;
            memmove(row, o->x + (to + i) * o->width, (size_t)o->width * sizeof *row);
            o->y[o->rows++] = e.targets[i];
        }
        if (!status && fini_report(progress, "head", (double)(from + n), (double)o->n))
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld sequences",
                               (long long)(from + n), (long long)o->n);
    }
    fin_examples_close(&e);
    return status;
}

static fin_status load(const heading *o, fin_error *err)
{
    fin_tensor tensors[2] = {{.dtype = FIN_F64, .ndim = 2, .data = o->W},
                             {.dtype = FIN_F64, .ndim = 1, .data = o->b}};
    snprintf(tensors[0].name, sizeof tensors[0].name, "head.%s.weight", o->head->name);
    snprintf(tensors[1].name, sizeof tensors[1].name, "head.%s.bias", o->head->name);
    tensors[0].shape[0] = tensors[1].shape[0] = o->head->size;
    tensors[0].shape[1] = o->width;
    return fin_encoder_load(o->encoder, tensors, 2, 1, NULL, err);
}

static fin_status fit(heading *o, double penalty, const fin_progress *progress, fin_error *err)
{
    fin_probe *probe = NULL;
    fin_status status = read_all(o, progress, err);
    if (!status)
        status = fin_probe_fit(&probe, o->rows, o->width, o->x,
                               o->head->kind == FIN_HEAD_CLASSES ? o->head->size : 0, 1, o->y,
                               penalty, err);
    if (!status) {
        fin_probe_weights(probe, o->W, o->b);
        status = load(o, err);
    }
    fin_probe_destroy(probe);
    return status;
}

fin_status fin_encoder_start_head(fin_encoder *encoder, const fin_corpus *corpus, double penalty,
                                  const fin_progress *progress, fin_error *err)
{
    heading o = {.encoder = encoder, .corpus = corpus};
    int64_t h;
    fin_status status = fini_learn_head(encoder, corpus, &h, err);
    if (status)
        return status;
    o.head = &fin_encoder_get_shape(encoder)->head[h];
    o.n = fin_corpus_sequences(corpus);
    o.width = fin_encoder_get_settings(encoder)->width;
    if (corpus->masked || o.n == 0 || o.head->kind == FIN_HEAD_GAUSSIAN)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "a head starts at a probe for labels of data, classes or numbers without "
                         "variances");
    lay_out(&o, &o.arena);
    status = fini_arena_open(&o.arena, "representations", err);
    if (status)
        return status;
    lay_out(&o, &o.arena);
    status = fit(&o, penalty, progress, err);
    fini_arena_close(&o.arena);
    return status;
}
