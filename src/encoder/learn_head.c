/* Does an encoder fit a corpus? Its head with the corpus's name must be what the corpus has targets
 * for, and tokens must be those that it was made for: a head that is not there, or answers with
 * something else, is refused before anything is computed. */
#include "encoder/learn.h"

#include <string.h>

static const char *kind_name(const fin_head *head)
{
    static const char *const names[] = {"numbers", "numbers with variances", "classes"};
    return names[head->kind];
}

fin_status fini_learn_head(const fin_encoder *encoder, const fin_corpus *corpus, int64_t *head,
                           fin_error *err)
{
    const fin_encoder_shape *own = fin_encoder_get_shape(encoder);
    const fin_encoder_settings *set = fin_encoder_get_settings(encoder);
    fin_encoder_shape asked;
    fin_corpus_get_shape(corpus, &asked);
    if (own->inputs != asked.inputs || own->values != asked.values)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the encoder was made for tokens of %lld columns, %lld of them values; "
                         "these sequences have %lld and %lld",
                         (long long)own->inputs, (long long)own->values, (long long)asked.inputs,
                         (long long)asked.values);
    int64_t longest = fin_corpus_longest(corpus);
    if (set->positions == FIN_POSITIONS_LEARNED && set->longest < longest)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the encoder has learned positions for %lld tokens; the longest of these "
                         "sequences has %lld",
                         (long long)set->longest, (long long)longest);
    const fin_corpus_settings *c = fin_corpus_get_settings(corpus);
    bool some =
        c->objective == FIN_OBJECTIVE_MASKED ? asked.head[0].where == FIN_HEAD_POOLED : c->keep < 1;
    if (set->positions != FIN_POSITIONS_NONE && some)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "with %s tokens are left out and the others lose their places, which the "
                         "encoder has positions for; take positions = none, and key columns that "
                         "say where a token is",
                         c->objective == FIN_OBJECTIVE_MASKED ? "readout = pooled" : "keep < 1");
    const fin_head *want = &asked.head[0];
    for (*head = 0; *head < own->heads; ++*head) {
        const fin_head *have = &own->head[*head];
        if (strcmp(have->name, want->name) != 0)
            continue;
        if (have->kind == want->kind && have->where == want->where && have->size == want->size)
            return FIN_OK;
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the head '%s' of the encoder answers with %lld %s for %s; these "
                         "sequences ask for %lld %s for %s",
                         want->name, (long long)have->size, kind_name(have),
                         have->where == FIN_HEAD_TOKENS ? "each token" : "a sequence",
                         (long long)want->size, kind_name(want),
                         want->where == FIN_HEAD_TOKENS ? "each token" : "a sequence");
    }
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "the encoder has no head '%s', which these sequences have targets for; its "
                     "first head is '%s'",
                     want->name, own->head[0].name);
}
