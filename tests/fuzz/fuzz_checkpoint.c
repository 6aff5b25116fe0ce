/* Encoders in files, with the checksum made right; an encoder that is read must also answer. */
#include "fuzz.h"

#include "finetti/data_encoder.h"
#include "fuzz_checksum.h"

/* Two sequences, of one token and of two. */
static void fuzz_answer(const fin_encoder *encoder)
{
    enum { WIDE = 4096 };
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    const fin_encoder_settings *settings = fin_encoder_get_settings(encoder);
    fin_error err = {FIN_OK, ""};
    if (shape->inputs > WIDE || settings->width > WIDE)
        return;
    static const int64_t offsets[] = {0, 1, 3};
    static const uint8_t hidden[] = {0, 1, 0};
    float *tokens = malloc(3 * (size_t)shape->inputs * sizeof *tokens);
    double *states = malloc(3 * (size_t)settings->width * sizeof *states);
    FUZZ_CHECK(tokens && states);
    for (int64_t i = 0; i < 3 * shape->inputs; i++)
        tokens[i] = (float)(i % 7) - 3;
    const fin_sequences sequences = {2, offsets, tokens, hidden};
    fin_pass pass = {.dtype = FIN_F32, .states = states, .layer = settings->layers};
    (void)fin_encoder_pass(encoder, &sequences, &pass, &err);
    free(tokens);
    free(states);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fin_checkpoint *file;
    fin_encoder *encoder;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_checkpoint_read(fuzz_write_checked("t.fin", data, size), &file, &err);
    FUZZ_CHECK(status ? !file && err.message[0] : file != NULL);
    if (status)
        return 0;
    const fin_token_scale *scale = fin_checkpoint_scale(file);
    for (int64_t j = 0; scale && j < scale->columns; j++)
        FUZZ_CHECK(scale->scale[j] > 0);
    (void)fin_checkpoint_entry(file, "family");
    status = fin_checkpoint_encoder(file, &encoder, &err);
    FUZZ_CHECK(status ? !encoder && err.message[0] : encoder != NULL);
    if (!status)
        fuzz_answer(encoder);
    fin_encoder_destroy(encoder);
    fin_checkpoint_close(file);
    return 0;
}
