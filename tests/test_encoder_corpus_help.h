/* Short ways to make corpora and draw from them for the tests. Include after cmocka.h. */
#ifndef TEST_ENCODER_CORPUS_HELP_H
#define TEST_ENCODER_CORPUS_HELP_H

#include "finetti/encoder_learn.h"
#include "test_family_help.h"

static inline fin_corpus_settings corpus_defaults(int objective)
{
    fin_corpus_settings s;
    fin_settings_defaults(&fin_corpus_table, &s, sizeof s);
    s.objective = (fin_choice)objective;
    return s;
}

static inline fin_corpus *corpus_latent(const fin_corpus_settings *s, const fin_latent *latent)
{
    fin_corpus *corpus;
    fin_error err = {FIN_OK, ""};
    if (fin_corpus_latent(&corpus, s, latent, 3, &err))
        fail_msg("%s", err.message);
    return corpus;
}

static inline fin_corpus *corpus_memory(const fin_corpus_settings *s, const fin_memory *memory)
{
    fin_corpus *corpus;
    fin_error err = {FIN_OK, ""};
    if (fin_corpus_memory(&corpus, s, memory, 3, &err))
        fail_msg("%s", err.message);
    return corpus;
}

static inline void corpus_draw(const fin_corpus *corpus, uint64_t first, int64_t n, int64_t L,
                               uint64_t epoch, int flags, fin_examples *examples)
{
    fin_error err = {FIN_OK, ""};
    if (fin_corpus_draw(corpus, first, n, L, epoch, flags, examples, &err))
        fail_msg("%s", err.message);
}

/* Are rows i of one and j of the other the same bytes? Both may be NULL together. */
static inline int corpus_same_rows(const void *a, const void *b, int64_t from_a, int64_t from_b,
                                   int64_t count, size_t size)
{
    if (!a || !b)
        return a == b;
    return memcmp((const char *)a + (size_t)from_a * size, (const char *)b + (size_t)from_b * size,
                  (size_t)count * size) == 0;
}

/* Sequence i of a and j of b: all that was made of them. */
static inline int corpus_same(const fin_corpus *corpus, const fin_examples *a, int64_t i,
                              const fin_examples *b, int64_t j)
{
    fin_encoder_shape shape;
    fin_corpus_get_shape(corpus, &shape);
    const int64_t *x = a->sequences.offsets, *y = b->sequences.offsets;
    int64_t L = x[i + 1] - x[i], inputs = shape.inputs;
    int64_t targets = fin_head_targets(&shape.head[0]), answers = fin_head_answers(&shape.head[0]);
    int tokens = shape.head[0].where == FIN_HEAD_TOKENS;
    int64_t row = tokens ? x[i] : i, other = tokens ? y[j] : j, rows = tokens ? L : 1;
    return L == y[j + 1] - y[j] && a->z_size == b->z_size &&
           corpus_same_rows(a->sequences.tokens, b->sequences.tokens, x[i] * inputs, y[j] * inputs,
                            L * inputs, sizeof(float)) &&
           corpus_same_rows(a->sequences.hidden, b->sequences.hidden, x[i], y[j], L, 1) &&
           corpus_same_rows(a->targets, b->targets, row * targets, other * targets, rows * targets,
                            sizeof(double)) &&
           corpus_same_rows(a->bayes, b->bayes, row * answers, other * answers, rows * answers,
                            sizeof(double)) &&
           corpus_same_rows(a->variance, b->variance, row, other, rows, sizeof(double)) &&
           corpus_same_rows(a->z, b->z, i * a->z_size, j * a->z_size, a->z_size, sizeof(double));
}

#endif
