/* Corpora: settings, the object, and what all kinds have in common. */
#include "encoder/corpus.h"

#include <math.h>
#include <stdio.h>

#define FIN_TABLE_STRUCT fin_corpus_settings
FIN_TABLE(, fin_corpus_table, "corpus", FIN_CORPUS_FIELDS);

fin_status fini_corpus_open(fin_corpus **corpus, const fini_corpus_kind *kind,
                            const fin_corpus_settings *settings, const void *source, uint64_t seed,
                            fin_error *err)
{
    fin_corpus_settings s;
    *corpus = NULL;
    if (settings)
        s = *settings;
    else
        fin_settings_defaults(&fin_corpus_table, &s, sizeof s);
    FINI_TRY(fin_settings_validate(&fin_corpus_table, &s, err));
    if (s.L_least == FIN_AUTO_INT)
        s.L_least = s.L;
    if (s.L_least > s.L)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "corpus: L_least = %lld is more than L = %lld; it must be from 0 to L",
                         (long long)s.L_least, (long long)s.L);
    FINI_MAKE(err, "a corpus", fin_corpus, c);
    *c = (fin_corpus){.kind = kind, .settings = s, .seed = seed};
    c->masked = s.objective == FIN_OBJECTIVE_MASKED;
    c->by_token =
        c->masked && (s.readout == FIN_READOUT_TOKENS || kind != &fini_corpus_kind_memory);
    fin_status status = kind->resolve(c, source, err);
    FINI_HAND_OVER(corpus, c, status, fin_corpus_destroy);
}

void fin_corpus_destroy(fin_corpus *corpus)
{
    if (!corpus)
        return;
    fini_free_all(corpus->direction, corpus);
}

void fini_corpus_head(fin_corpus *corpus, int64_t size, int64_t classes)
{
    fin_head *head = &corpus->shape.head[0];
    corpus->shape.heads = 1;
    snprintf(head->name, sizeof head->name, "%s", corpus->masked ? "value" : "label");
    head->where = corpus->by_token ? FIN_HEAD_TOKENS : FIN_HEAD_POOLED;
    head->kind = classes > 0                                      ? FIN_HEAD_CLASSES
                 : corpus->settings.answer == FIN_ANSWER_GAUSSIAN ? FIN_HEAD_GAUSSIAN
                                                                  : FIN_HEAD_VALUE;
    head->size = classes > 0 ? classes : size;
    head->weight = 1;
}

const fin_corpus_settings *fin_corpus_get_settings(const fin_corpus *corpus)
{
    return corpus ? &corpus->settings : NULL;
}

void fin_corpus_get_shape(const fin_corpus *corpus, fin_encoder_shape *shape)
{
    if (!corpus || !shape)
        return;
    *shape = corpus->shape;
}

int64_t fin_corpus_longest(const fin_corpus *corpus)
{
    return corpus ? corpus->longest : 0;
}

int64_t fin_corpus_sequences(const fin_corpus *corpus)
{
    return corpus ? corpus->sequences : 0;
}

uint64_t fini_corpus_whole(const fin_corpus *corpus)
{
    uint64_t n = (uint64_t)corpus->sequences;
    return (FIN_TEST_FIRST + n - 1) / n * n;
}

int fin_corpus_has_bayes(const fin_corpus *corpus)
{
    return corpus ? corpus->bayes : 0;
}

/* The Gaussian with the Bayes mean and variance is the best answer of that head, but for the limits
 * of its log variance. */
void fini_corpus_answer(const fin_corpus *corpus, const double *mean, double variance,
                        double *bayes)
{
    const fin_head *head = &corpus->shape.head[0];
    for (int64_t j = 0; j < head->size; j++)
        bayes[j] = mean[j];
    if (head->kind != FIN_HEAD_GAUSSIAN)
        return;
    double spread = fmin(fmax(log(variance), -20), 20);
    for (int64_t j = 0; j < head->size; j++)
        bayes[head->size + j] = spread;
}

void fini_corpus_answer_classes(int64_t classes, const double *probabilities, double *bayes)
{
    for (int64_t j = 0; j < classes; j++)
        bayes[j] = log(fmax(probabilities[j], 1e-300));
}
