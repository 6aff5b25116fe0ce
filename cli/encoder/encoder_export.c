/* What an encoder sees, in files: representations as NPZ, attention as CSV. */
#include "encoder/encoder.h"

#include <stdio.h>
#include <stdlib.h>

/* The sequences that a probe may look at: those held out, or fresh ones. */
static const fin_corpus *corpus_of(const encoder_data *data)
{
    return data->judge ? data->judge : data->corpus;
}

/* ---- attention ------------------------------------------------------------------------------ */

static fin_status write_map(const char *path, const fin_examples *e, const double *map,
                            fin_error *err)
{
    static const char *const names[] = {"asks", "answers", "weight", "asks_hidden",
                                        "answers_hidden"};
    const uint8_t *hidden = e->sequences.hidden;
    fin_csv *csv = NULL;
    fin_status status = fin_csv_open(path, names, 5, &csv, err);
    for (int64_t i = 0; i < e->tokens && !status; i++)
        for (int64_t j = 0; j < e->tokens && !status; j++) {
            const double row[] = {(double)i, (double)j, map[i * e->tokens + j],
                                  hidden ? hidden[i] : 0, hidden ? hidden[j] : 0};
            status = fin_csv_row(csv, row, err);
        }
    if (!status)
        return fin_csv_commit(csv, err);
    fin_csv_abort(csv);
    return status;
}

fin_status encoder_write_maps(const char *path, const fin_encoder *encoder,
                              const encoder_data *data, int64_t layer, int64_t head,
                              int64_t sequence, fin_error *err)
{
    fin_examples e = {0};
    double *map = NULL;
    fin_status status =
        fin_corpus_draw(corpus_of(data), FIN_TEST_FIRST + (uint64_t)sequence, 1, -1, 0, 0, &e, err);
    double bytes = 8 * (double)e.tokens * (double)e.tokens;
    if (!status && bytes > 16e9)
        status = cli_status(err, FIN_ERR_ARGUMENT,
                            "attention among %lld tokens is a table of %.3g GB; choose a shorter "
                            "sequence (--sequence)",
                            (long long)e.tokens, bytes / 1e9);
    if (!status && !(map = malloc((size_t)bytes + 8)))
        status = cli_status_memory(err, bytes, "attention");
    fin_pass pass = {.dtype = FIN_F32, .maps = map, .layer = layer - 1, .map_head = head};
    if (!status)
        status = fin_encoder_pass(encoder, &e.sequences, &pass, err);
    if (!status)
        status = write_map(path, &e, map, err);
    free(map);
    fin_examples_close(&e);
    return status;
}

/* ---- representations -------------------------------------------------------------------------- */

static fin_status add_arrays(fin_npz_writer *npz, const fin_examples *e, int64_t width,
                             int64_t inputs, const double *states, const double *pooled,
                             fin_error *err)
{
    int64_t n = e->sequences.n, tokens = e->tokens;
    int64_t targets = n > 0 && e->rows > 0 ? e->rows : 0;
    fin_status status =
        fin_npz_add(npz, "states", FIN_F64, 2, (int64_t[]){tokens, width}, states, err);
    if (!status)
        status = fin_npz_add(npz, "pooled", FIN_F64, 2, (int64_t[]){n, width}, pooled, err);
    if (!status)
        status =
            fin_npz_add(npz, "offsets", FIN_I64, 1, (int64_t[]){n + 1}, e->sequences.offsets, err);
    if (!status)
        status = fin_npz_add(npz, "tokens", FIN_F32, 2, (int64_t[]){tokens, inputs},
                             e->sequences.tokens, err);
    if (!status && e->sequences.hidden)
        status = fin_npz_add(npz, "hidden", FIN_U8, 1, &tokens, e->sequences.hidden, err);
    if (!status && targets == n) /* one number for a sequence: its label */
        status = fin_npz_add(npz, "y", FIN_F64, 1, &n, e->targets, err);
    if (!status && e->z)
        status = fin_npz_add(npz, "posterior", FIN_F64, 2, (int64_t[]){n, e->z_size}, e->z, err);
    return status;
}

fin_status encoder_write_states(const char *path, const fin_encoder *encoder,
                                const encoder_data *data, int64_t layer, int64_t sequences,
                                fin_error *err)
{
    const fin_corpus *corpus = corpus_of(data);
    int64_t width = fin_encoder_get_settings(encoder)->width, there = fin_corpus_sequences(corpus);
    int64_t n = data->all && there < sequences ? there : sequences;
    fin_examples e = {0};
    fin_npz_writer *npz = NULL;
    double *states = NULL;
    fin_status status =
        fin_corpus_draw(corpus, FIN_TEST_FIRST, n, -1, 0, FIN_EXAMPLES_POSTERIOR, &e, err);
    double bytes = 8 * (double)(e.tokens + n) * (double)width;
    if (!status && bytes > 64e9)
        status = cli_status(err, FIN_ERR_ARGUMENT,
                            "representations of %lld sequences take %.3g GB; fewer are enough "
                            "(--test)",
                            (long long)n, bytes / 1e9);
    if (!status && !(states = malloc((size_t)bytes + 8)))
        status = cli_status_memory(err, bytes, "representations");
    double *pooled = states ? states + e.tokens * width : NULL;
    fin_pass pass = {.dtype = FIN_F32, .states = states, .pooled = pooled, .layer = layer};
    if (!status)
        status = fin_encoder_pass(encoder, &e.sequences, &pass, err);
    if (!status)
        status = fin_npz_create(path, &npz, err);
    if (!status)
        status =
            add_arrays(npz, &e, width, fin_encoder_get_shape(encoder)->inputs, states, pooled, err);
    if (!status)
        status = fin_npz_commit(npz, cli_progress(), err);
    else if (npz)
        fin_npz_abort(npz);
    free(states);
    fin_examples_close(&e);
    return status;
}
