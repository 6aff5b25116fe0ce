/* Reconstructions: images with hidden patches beside what the encoder makes of them, as an SVG of
 * small grey cells (original, what was shown, reconstruction) or as CSV, a line for each pixel. */
#include "encoder/encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 10, PANELS = 3 };

/* Pixels in the units of the file. */
typedef struct picture {
    int64_t count, height, width, patch, across; /* images; pixels; patches from left to right */
    double *panel[PANELS];                       /* (count, height, width) each; NaN: hidden */
    uint8_t *hidden;                             /* (count, height, width) */
    double low, high;                            /* of the originals */
} picture;

/* ---- from tokens to pixels ------------------------------------------------------------------- */

/* Puts number j of token t of image i where it belongs. */
static int64_t pixel_of(const picture *p, int64_t i, int64_t t, int64_t j)
{
    int64_t row = t / p->across * p->patch + j / p->patch;
    int64_t column = t % p->across * p->patch + j % p->patch;
    return (i * p->height + row) * p->width + column;
}

/* A row of targets and one of answers is that of a token, or of an image with all its tokens: either
 * way what is not hidden is no target. */
static void fill(picture *p, const fin_token_scale *scale, const fin_examples *e,
                 const double *answers, int64_t step, const float *original)
{
    int64_t values = p->patch * p->patch, tokens = p->across * p->height / p->patch;
    int64_t inputs = scale->columns, keys = inputs - values,
            per_row = e->rows > p->count ? 1 : tokens;
    p->low = INFINITY;
    p->high = -INFINITY;
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t j = 0; j < values; j++) {
                int64_t token = i * tokens + t, at = pixel_of(p, i, t, j), k = keys + j;
                int64_t of = token / per_row * step + token % per_row * values + j;
                double x =
                    (double)original[token * inputs + k] / scale->scale[k] + scale->center[k];
                double y = answers[of] / scale->scale[k] + scale->center[k];
                p->hidden[at] = !isnan(e->targets[token * values + j]);
                p->panel[0][at] = x;
                p->panel[1][at] = p->hidden[at] ? NAN : x;
                p->panel[2][at] = p->hidden[at] ? y : x;
                p->low = fmin(p->low, x);
                p->high = fmax(p->high, x);
            }
}

/* The head that answers with values of hidden tokens, each its own or all at once; -1: there is
 * none. */
static int64_t value_head(const fin_encoder_shape *shape)
{
    for (int64_t i = 0; i < shape->heads; i++)
        if (strcmp(shape->head[i].name, "value") == 0 && shape->head[i].kind != FIN_HEAD_CLASSES)
            return i;
    return -1;
}

static fin_status reconstruct(picture *p, const fin_encoder *encoder, const encoder_data *data,
                              fin_error *err)
{
    const fin_corpus *corpus = data->judge ? data->judge : data->corpus;
    const fin_token_set *set = data->test ? data->test : data->train;
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    int64_t head = value_head(shape), n = fin_token_set_memory(set)->n;
    CLI_AT_END(fin_examples_close) fin_examples e = {0};
    fin_pass pass = {.dtype = FIN_F32};
    CLI_FREED double *answers = NULL;
    fin_status status = FIN_OK;
    uint64_t first = (uint64_t)n - FIN_TEST_FIRST % (uint64_t)n; /* number of sequence 0 */
    status = fin_corpus_draw(corpus, FIN_TEST_FIRST + first, p->count, -1, 0, 0, &e, err);
    int64_t answer = fin_head_answers(&shape->head[head]);
    double bytes = 8 * (double)e.rows * (double)answer;
    if (!status && !(answers = malloc((size_t)bytes + 8)))
        status = cli_status_memory(err, bytes, "reconstructions");
    pass.answers[head] = answers;
    if (!status)
        status = fin_encoder_pass(encoder, &e.sequences, &pass, err);
    if (!status)
        fill(p, fin_token_set_scale(data->all), &e, answers, answer,
             fin_token_set_memory(set)->tokens);
    return status;
}

/* ---- files ------------------------------------------------------------------------------------- */

static void tell_pixel(cli_row *row, const void *user, int64_t k)
{
    const picture *p = user;
    int64_t pixels = p->height * p->width;
    cli_cell_int(row, "image", k / pixels);
    cli_cell_int(row, "row", k % pixels / p->width);
    cli_cell_int(row, "column", k % p->width);
    cli_cell_int(row, "hidden", p->hidden[k]);
    cli_cell(row, "original", p->panel[0][k]);
    cli_cell(row, "reconstruction", p->panel[2][k]);
}

fin_status encoder_reconstruct(const char *path, const fin_encoder *encoder,
                               const encoder_plan *plan, const encoder_data *data, fin_error *err)
{
    const fin_token_set *set = data->test ? data->test : data->train;
    picture p = {.patch = plan->data.patch};
    if (!set || !p.patch)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--reconstruct is for images (--data FILE --patch SIDE)");
    if (value_head(fin_encoder_get_shape(encoder)) < 0)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--reconstruct needs an encoder that was trained on hidden patches "
                          "(finetti pretrain --objective masked)");
    const fin_memory *m = fin_token_set_memory(set);
    p.count = m->n < IMAGES ? m->n : IMAGES;
    p.across = fin_token_set_across(set);
    p.width = p.across * p.patch;
    p.height = m->offsets[1] / p.across * p.patch;
    size_t pixels = (size_t)(p.count * p.height * p.width);
    double *block = malloc(PANELS * pixels * sizeof *block);
    p.hidden = malloc(pixels);
    fin_status status =
        block && p.hidden ? FIN_OK : cli_status_memory(err, 25 * (double)pixels, "images");
    for (int k = 0; k < PANELS && !status; k++)
        p.panel[k] = block + (size_t)k * pixels;
    if (!status)
        status = reconstruct(&p, encoder, data, err);
    if (!status)
        status =
            cli_ends_with(path, ".csv")
                ? cli_write_rows(path, tell_pixel, &p, p.count * p.height * p.width, err)
                : fin_images_write(
                      path,
                      "original, what the encoder was shown, and its "
                      "reconstruction",
                      &(fin_images){PANELS, p.count, p.height, p.width, block, p.low, p.high}, err);
    free(block);
    free(p.hidden);
    return status;
}
