/* The sequences that an encoder learns from, and those that it is judged on. */
#include "encoder/encoder.h"

#include <stdio.h>
#include <string.h>

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static fin_status read_set(encoder_data *data, const encoder_plan *plan,
                           const fin_token_scale *scale, fin_error *err)
{
    const fin_token_source source = {.bags = {.path = plan->path,
                                              .bag = or_null(plan->bag),
                                              .label = or_null(plan->label),
                                              .features = or_null(plan->columns),
                                              .kind = or_null(plan->label_kind),
                                              .class_count = -1},
                                     .patch = plan->data.patch,
                                     .rows = plan->data.rows,
                                     .keys = or_null(plan->keys),
                                     .scale = scale};
    return fin_token_set_read(&data->all, &source, cli_progress(), err);
}

static fin_status cut_folds(encoder_data *data, const encoder_plan *plan, fin_error *err)
{
    const cli_data_settings *s = &plan->data;
    fin_token_part part = {.folds = s->test_folds,
                           .fold = s->test_fold,
                           .per_class = s->per_class,
                           .seed = (uint64_t)plan->seed};
    CLI_TRY(fin_token_set_part(&data->train, data->all, &part, err));
    part.test = 1;
    part.per_class = 0;
    if (s->test_folds > 1)
        CLI_TRY(fin_token_set_part(&data->test, data->all, &part, err));
    return FIN_OK;
}

fin_status encoder_data_open(encoder_data *data, const encoder_plan *plan,
                             const fin_token_scale *scale, fin_error *err)
{
    const fin_corpus_settings *s = &plan->corpus;
    uint64_t seed = (uint64_t)plan->seed;
    memset(data, 0, sizeof *data);
    if (plan->from == ENCODER_FAMILY) {
        CLI_TRY(fin_latent_create(&data->latent, plan->family, &plan->latent, seed, err));
        return fin_corpus_latent(&data->corpus, s, data->latent, seed, err);
    }
    if (plan->from == ENCODER_TASK) {
        CLI_TRY(fin_task_create(&data->task, plan->kind, &plan->task, NULL, seed, FIN_TASK_AMBIENT,
                                err));
        return fin_corpus_task(&data->corpus, s, data->task, err);
    }
    CLI_TRY(read_set(data, plan, scale, err));
    CLI_TRY(cut_folds(data, plan, err));
    CLI_TRY(fin_corpus_memory(&data->corpus, s, fin_token_set_memory(data->train), seed, err));
    fin_corpus_settings all = *s; /* a sample is of what is learnt from */
    all.samples = 0;
    if (data->test)
        CLI_TRY(fin_corpus_memory(&data->judge, &all, fin_token_set_memory(data->test), seed, err));
    return FIN_OK;
}

/* FNV-1a (draft-eastlake-fnv), byte by byte. */
static uint64_t hash(uint64_t h, const void *from, int64_t count)
{
    const unsigned char *bytes = from;
    for (int64_t i = 0; i < count; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h;
}

const char *encoder_data_mark(const encoder_data *data, char buffer[ENCODER_OPTION])
{
    buffer[0] = '\0';
    if (!data->all)
        return buffer;
    const fin_memory *m = fin_token_set_memory(data->all);
    int64_t numbers = m->offsets[m->n] * m->inputs;
    uint64_t h = hash(UINT64_C(14695981039346656037), m->offsets, 8 * (m->n + 1));
    h = hash(h, m->tokens, 4 * numbers);
    snprintf(buffer, ENCODER_OPTION, "%lld sequences %016llx", (long long)m->n,
             (unsigned long long)h);
    return buffer;
}

void encoder_data_close(encoder_data *data)
{
    fin_corpus_destroy(data->corpus);
    fin_corpus_destroy(data->judge);
    fin_latent_destroy(data->latent);
    fin_task_destroy(data->task);
    fin_token_set_destroy(data->all);
    fin_token_set_destroy(data->train);
    fin_token_set_destroy(data->test);
    memset(data, 0, sizeof *data);
}

void encoder_data_notes(const encoder_data *data)
{
    for (int i = 0; data->all && i < fin_token_set_notes(data->all); i++)
        cli_note("note: %s", fin_token_set_note(data->all, i));
}

fin_status encoder_judge(const fin_encoder *encoder, const encoder_data *data, int64_t fresh,
                         int64_t L, fin_evaluation *evaluation, fin_error *err)
{
    const fin_corpus *corpus = data->judge ? data->judge : data->corpus;
    int64_t n = data->all ? fin_corpus_sequences(corpus) : fresh;
    return fin_encoder_evaluate(encoder, corpus, FIN_TEST_FIRST, n, L, evaluation, cli_progress(),
                                err);
}
