/* What an encoder sees, in files: representations as NPZ, attention as CSV. */
#include "encoder/encoder.h"

#include <stdlib.h>

/* The sequences that a probe may look at: those held out, or fresh ones. */
static const fin_corpus *corpus_of(const encoder_data *data)
{
    return data->judge ? data->judge : data->corpus;
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct map {
    const fin_examples *e;
    const double *weights; /* (tokens, tokens) */
} map;

static void tell_weight(cli_row *row, const void *user, int64_t k)
{
    const map *m = user;
    const uint8_t *hidden = m->e->sequences.hidden;
    int64_t i = k / m->e->tokens, j = k % m->e->tokens;
    cli_cell_int(row, "asks", i);
    cli_cell_int(row, "answers", j);
    cli_cell(row, "weight", m->weights[k]);
    cli_cell_int(row, "asks_hidden", hidden ? hidden[i] : 0);
    cli_cell_int(row, "answers_hidden", hidden ? hidden[j] : 0);
}

fin_status encoder_write_maps(const char *path, const fin_encoder *encoder,
                              const encoder_data *data, int64_t layer, int64_t head,
                              int64_t sequence, fin_error *err)
{
    CLI_AT_END(fin_examples_close) fin_examples e = {0};
    CLI_FREED double *weights = NULL;
    CLI_TRY(fin_corpus_draw(corpus_of(data), FIN_TEST_FIRST + (uint64_t)sequence, 1, -1, 0, 0, &e,
                            err));
    double bytes = 8 * (double)e.tokens * (double)e.tokens;
    if (bytes > 16e9)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "attention among %lld tokens is a table of %.3g GB; choose a shorter "
                          "sequence (--sequence)",
                          (long long)e.tokens, bytes / 1e9);
    if (!(weights = malloc((size_t)bytes + 8)))
        return cli_status_memory(err, bytes, "attention");
    fin_pass pass = {.dtype = FIN_F32, .maps = weights, .layer = layer - 1, .map_head = head};
    CLI_TRY(fin_encoder_pass(encoder, &e.sequences, &pass, err));
    return cli_write_rows(path, tell_weight, &(map){&e, weights}, e.tokens * e.tokens, err);
}

/* ---- representations -------------------------------------------------------------------------- */

static fin_status write_arrays(const char *path, const fin_examples *e, const fin_encoder *encoder,
                               const double *states, const double *pooled, fin_error *err)
{
    int64_t n = e->sequences.n, tokens = e->tokens,
            width = fin_encoder_get_settings(encoder)->width,
            inputs = fin_encoder_get_shape(encoder)->inputs;
    cli_npz z;
    if (cli_npz_open(&z, path, err))
        return err->status;
    cli_npz_add(&z, "states", FIN_F64, 2, (int64_t[]){tokens, width}, states);
    cli_npz_add(&z, "pooled", FIN_F64, 2, (int64_t[]){n, width}, pooled);
    cli_npz_add(&z, "offsets", FIN_I64, 1, (int64_t[]){n + 1}, e->sequences.offsets);
    cli_npz_add(&z, "tokens", FIN_F32, 2, (int64_t[]){tokens, inputs}, e->sequences.tokens);
    if (e->sequences.hidden)
        cli_npz_add(&z, "hidden", FIN_U8, 1, &tokens, e->sequences.hidden);
    if ((n > 0 && e->rows > 0 ? e->rows : 0) == n) /* one number for a sequence: its label */
        cli_npz_add(&z, "y", FIN_F64, 1, &n, e->targets);
    if (e->z)
        cli_npz_add(&z, "posterior", FIN_F64, 2, (int64_t[]){n, e->z_size}, e->z);
    return cli_npz_close(&z);
}

fin_status encoder_write_states(const char *path, const fin_encoder *encoder,
                                const encoder_data *data, int64_t layer, int64_t sequences,
                                fin_error *err)
{
    const fin_corpus *corpus = corpus_of(data);
    int64_t width = fin_encoder_get_settings(encoder)->width, there = fin_corpus_sequences(corpus);
    int64_t n = data->all && there < sequences ? there : sequences;
    CLI_AT_END(fin_examples_close) fin_examples e = {0};
    CLI_FREED double *states = NULL;
    CLI_TRY(fin_corpus_draw(corpus, FIN_TEST_FIRST, n, -1, 0, FIN_EXAMPLES_POSTERIOR, &e, err));
    double bytes = 8 * (double)(e.tokens + n) * (double)width;
    if (bytes > 64e9)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "representations of %lld sequences take %.3g GB; fewer are enough "
                          "(--test)",
                          (long long)n, bytes / 1e9);
    if (!(states = malloc((size_t)bytes + 8)))
        return cli_status_memory(err, bytes, "representations");
    double *pooled = states ? states + e.tokens * width : NULL;
    fin_pass pass = {.dtype = FIN_F32, .states = states, .pooled = pooled, .layer = layer};
    CLI_TRY(fin_encoder_pass(encoder, &e.sequences, &pass, err));
    return write_arrays(path, &e, encoder, states, pooled, err);
}
