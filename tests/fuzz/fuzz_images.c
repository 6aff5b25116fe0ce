/* Images and bags as sequences of tokens, from tables: the first byte says how they are read. */
#include "fuzz.h"

#include "finetti/data_encoder.h"

#include <math.h>

static void fuzz_tokens(const fin_token_set *set)
{
    const fin_memory *m = fin_token_set_memory(set);
    FUZZ_CHECK(m->n > 0 && m->offsets[0] == 0 && m->values > 0 && m->values <= m->inputs);
    for (int64_t i = 0; i < m->n; i++) {
        FUZZ_CHECK(m->offsets[i + 1] > m->offsets[i]);
        if (m->labels && m->classes)
            FUZZ_CHECK(isnan(m->labels[i]) ||
                       fin_token_set_class(set, (int64_t)m->labels[i]) != NULL);
    }
    for (int64_t i = 0; i < m->offsets[m->n] * m->inputs; i++)
        FUZZ_CHECK(isfinite(m->tokens[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_token_set *set, *part;
    fin_error err = {FIN_OK, ""};
    int bits = size ? data[0] : 0;
    const char *path = fuzz_write("t.csv", data + (size > 0), size - (size > 0));
    fin_token_source source = {.bags = {.path = path, .class_count = -1},
                               .patch = bits & 3,
                               .rows = bits >> 2 & 3,
                               .keys = bits & 16 ? "1" : NULL};
    if (bits & 32)
        source.bags.label = "y";
    fin_status status = fin_token_set_read(&set, &source, NULL, &err);
    FUZZ_CHECK(status ? !set && err.message[0] : set != NULL);
    if (status)
        return 0;
    fuzz_tokens(set);
    const fin_token_part which = {.folds = 2, .fold = bits >> 7, .per_class = bits & 64 ? 1 : 0};
    status = fin_token_set_part(&part, set, &which, &err);
    FUZZ_CHECK(status ? !part && err.message[0] : part != NULL);
    if (!status)
        fuzz_tokens(part);
    fin_token_set_destroy(part);
    fin_token_set_destroy(set);
    return 0;
}
