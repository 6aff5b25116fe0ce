/* Short ways to make an encoder that learns, and processes that are threads. After cmocka.h. */
#ifndef TEST_ENCODER_LEARN_HELP_H
#define TEST_ENCODER_LEARN_HELP_H

#include "encoder/learn.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_OK(call)                                                                              \
    do {                                                                                           \
        fin_error help_err = {FIN_OK, ""};                                                         \
        if ((call))                                                                                \
            fail_msg("%s", help_err.message);                                                      \
    } while (0)

/* Settings of a small case; change them before help_open. */
typedef struct help_case {
    const char *family;
    fin_latent_settings latent_set;
    fin_corpus_settings corpus_set;
    fin_encoder_settings encoder_set;
    fin_learn_settings learn_set;
    const fin_memory *memory; /* instead of a family */
    fin_sum sum;
    int rank, ranks;
    fin_latent *latent;
    fin_corpus *corpus;
    fin_encoder *encoder;
    fin_learn *learn;
} help_case;

/* A linear concept in two dimensions, a small encoder, a dozen steps. */
static inline help_case help_defaults(const char *family)
{
    help_case c = {.family = family, .ranks = 1};
    fin_settings_defaults(fin_family_table(fin_family_find(family)), &c.latent_set,
                          sizeof c.latent_set);
    fin_settings_defaults(&fin_corpus_table, &c.corpus_set, sizeof c.corpus_set);
    fin_settings_defaults(&fin_encoder_table, &c.encoder_set, sizeof c.encoder_set);
    fin_settings_defaults(&fin_learn_table, &c.learn_set, sizeof c.learn_set);
    if (strcmp(family, "concept") == 0)
        c.latent_set.d = 2;
    c.corpus_set.L = 6;
    c.corpus_set.M = 3;
    c.encoder_set.width = 8;
    c.encoder_set.heads = 2;
    c.encoder_set.layers = 1;
    c.learn_set.steps = 12;
    c.learn_set.batch = 16;
    c.learn_set.evaluate_every = 4;
    c.learn_set.evaluate_on = 20;
    return c;
}

static inline fin_status help_try(help_case *c, fin_error *err)
{
    fin_encoder_shape shape;
    fin_status status = FIN_OK;
    if (!c->memory)
        status = fin_latent_create(&c->latent, fin_family_find(c->family), &c->latent_set, 7, err);
    if (!status)
        status = c->memory ? fin_corpus_memory(&c->corpus, &c->corpus_set, c->memory, 3, err)
                           : fin_corpus_latent(&c->corpus, &c->corpus_set, c->latent, 3, err);
    if (status)
        return status;
    fin_corpus_get_shape(c->corpus, &shape);
    status = fin_encoder_create(&c->encoder, &c->encoder_set, &shape, 5, err);
    if (!status)
        status = fin_learn_create(&c->learn, &c->learn_set, c->encoder, c->corpus, NULL, c->sum,
                                  c->rank, c->ranks, err);
    return status;
}

static inline void help_open(help_case *c)
{
    fin_error err = {FIN_OK, ""};
    if (help_try(c, &err))
        fail_msg("%s", err.message);
}

static inline void help_close(help_case *c)
{
    fin_learn_destroy(c->learn);
    fin_encoder_destroy(c->encoder);
    fin_corpus_destroy(c->corpus);
    fin_latent_destroy(c->latent);
    c->learn = NULL;
    c->encoder = NULL;
    c->corpus = NULL;
    c->latent = NULL;
}

static inline void help_run(help_case *c, int64_t until)
{
    fin_error err = {FIN_OK, ""};
    if (fin_learn_run(c->learn, until, NULL, NULL, &err))
        fail_msg("%s", err.message);
}

/* ---- everything that learning has made, as bytes --------------------------------------------- */

typedef struct help_bytes {
    size_t size;
    unsigned char *data;
} help_bytes;

static inline void help_add(help_bytes *b, const void *data, size_t size)
{
    b->data = realloc(b->data, b->size + size + 1);
    assert_non_null(b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline size_t help_tensor_bytes(const fin_tensor *t)
{
    size_t n = t->dtype == FIN_F32 ? sizeof(float) : sizeof(double);
    for (int i = 0; i < t->ndim; i++)
        n *= (size_t)t->shape[i];
    return n;
}

/* Weights and state. */
static inline help_bytes help_all(const help_case *c)
{
    help_bytes b = {0, NULL};
    fin_tensor tensors[16];
    int64_t count = fini_learn_tensors(c->learn, tensors, 16);
    assert_true(count <= 16);
    help_add(&b, fin_encoder_weights(c->encoder),
             (size_t)fin_encoder_parameters(c->encoder) * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        help_add(&b, tensors[i].name, strlen(tensors[i].name));
        help_add(&b, tensors[i].data, help_tensor_bytes(&tensors[i]));
    }
    return b;
}

static inline int help_same(const help_bytes *a, const help_bytes *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* A state that is on its own, as if it had been in a file (and not aligned). */
typedef struct help_state {
    int64_t count, parameters;
    fin_tensor tensors[16];
    unsigned char *data[16];
    float *weights;
} help_state;

static inline help_state help_save(const help_case *c)
{
    help_state s = {0};
    s.count = fini_learn_tensors(c->learn, s.tensors, 16);
    for (int64_t i = 0; i < s.count; i++) {
        size_t size = help_tensor_bytes(&s.tensors[i]);
        s.data[i] = malloc(size + 1);
        assert_non_null(s.data[i]);
        memcpy(s.data[i] + 1, s.tensors[i].data, size);
        s.tensors[i].data = s.data[i] + 1;
    }
    s.parameters = fin_encoder_parameters(c->encoder);
    s.weights = malloc((size_t)s.parameters * sizeof(float));
    assert_non_null(s.weights);
    memcpy(s.weights, fin_encoder_weights(c->encoder), (size_t)s.parameters * sizeof(float));
    return s;
}

static inline void help_load(help_case *c, const help_state *s)
{
    fin_error err = {FIN_OK, ""};
    memcpy(fin_encoder_weights(c->encoder), s->weights, (size_t)s->parameters * sizeof(float));
    if (fini_learn_restore(c->learn, s->tensors, s->count, &err))
        fail_msg("%s", err.message);
}

static inline void help_drop(help_state *s)
{
    for (int64_t i = 0; i < s->count; i++)
        free(s->data[i]);
    free(s->weights);
}

/* The tensor of a state with this name, and its numbers to change. */
static inline fin_tensor *help_tensor(help_state *s, const char *name, unsigned char **data)
{
    for (int64_t i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0) {
            if (data)
                *data = s->data[i] + 1;
            return &s->tensors[i];
        }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

enum { HELP_RANKS = 4 };
static _Thread_local int help_rank;
static int help_ranks;
static pthread_barrier_t help_barrier;
static double *help_board; /* (blocks, n) */

/* As fin_ranks_sum: everybody writes its blocks, everybody adds all of them up. */
static inline fin_status help_sum(int64_t blocks, int64_t n, double *parts, double *sum,
                                  fin_error *err)
{
    int64_t least = blocks / help_ranks, more = blocks % help_ranks;
    int64_t first = help_rank * least + (help_rank < more ? help_rank : more);
    int64_t own = least + (help_rank < more);
    size_t size = (size_t)(blocks * n) * sizeof(double);
    int lead = pthread_barrier_wait(&help_barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    if (lead)
        help_board = malloc(size + 1);
    pthread_barrier_wait(&help_barrier);
    memcpy(help_board + first * n, parts, (size_t)(own * n) * sizeof(double));
    pthread_barrier_wait(&help_barrier);
    double *copy = malloc(size + 1);
    memcpy(copy, help_board, size);
    fin_status status = fini_sum_alone(blocks, n, copy, sum, err);
    free(copy);
    if (pthread_barrier_wait(&help_barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        free(help_board);
    return status;
}

#endif
