/* What a frozen encoder says of a sequence, as one row of numbers.
 *
 * The objective of pretraining is about hidden tokens, so that what the encoder knows of the latent
 * is best asked for there: to the tokens in sight are added hidden ones, whose keys are the unit
 * vectors. For a linear concept the best answer to unit key j is E[z_j | tokens], so that a label
 * <A, z> is a linear function of the answers of a good encoder. */
#include "lab/readout.h"
#include "encoder/probe.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 256 };

/* ---- sequences with prompts ------------------------------------------------------------------ */

typedef struct prompts {
    fin_sequences sequences;
    int64_t count, inputs;
    bool keyed; /* tokens have keys; else there is one prompt, all zeros */
    int64_t *offsets;
    float *token;
    uint8_t *hidden;
    double *states; /* (tokens, width or answers) */
} prompts;

static void close_prompts(prompts *p)
{
    fini_free_all(p->offsets, p->token, p->hidden, p->states);
}

static int64_t prompt_count(const fin_encoder_shape *shape)
{
    int64_t keys = shape->inputs - shape->values;
    return keys > 0 ? keys : 1;
}

static fin_status open_prompts(prompts *p, const fin_encoder *encoder, int64_t longest,
                               int64_t numbers, fin_error *err)
{
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    int64_t inputs = shape->inputs, count = prompt_count(shape), most = CHUNK * (longest + count);
    *p = (prompts){.count = count,
                   .inputs = inputs,
                   .keyed = inputs > shape->values,
                   .offsets = fini_alloc_array(CHUNK + 1, sizeof *p->offsets),
                   .token = fini_alloc_array(most * inputs, sizeof *p->token),
                   .hidden = fini_alloc_array(most, sizeof *p->hidden),
                   .states = fini_alloc_array(most * numbers, sizeof *p->states)};
    if (p->offsets && p->token && p->hidden && p->states)
        return FIN_OK;
    return fini_fail_memory(err, (size_t)(most * numbers) * sizeof *p->states, "prompts");
}

/* Tokens of the examples, and after those of each sequence its prompts. */
static void fill_prompts(prompts *p, const fin_sequences *from)
{
    int64_t at = 0;
    for (int64_t i = 0; i < from->n; i++) {
        int64_t L = from->offsets[i + 1] - from->offsets[i];
        p->offsets[i] = at;
        memcpy(p->token + at * p->inputs, from->tokens + from->offsets[i] * p->inputs,
               (size_t)(L * p->inputs) * sizeof *p->token);
        memset(p->hidden + at, 0, (size_t)L);
        at += L;
        memset(p->token + at * p->inputs, 0, (size_t)(p->count * p->inputs) * sizeof *p->token);
        memset(p->hidden + at, 1, (size_t)p->count);
        for (int64_t j = 0; j < p->count && p->keyed; j++)
            p->token[(at + j) * p->inputs + j] = 1;
        at += p->count;
    }
    p->offsets[from->n] = at;
    p->sequences = (fin_sequences){
        .n = from->n, .offsets = p->offsets, .tokens = p->token, .hidden = p->hidden};
}

/* ---- rows ------------------------------------------------------------------------------------ */

static fin_status pooled_rows(const fin_encoder *encoder, const fin_examples *e, double *x,
                              fin_error *err)
{
    fin_pass pass = {
        .dtype = FIN_F32, .layer = fin_encoder_get_settings(encoder)->layers, .pooled = x};
    return fin_encoder_pass(encoder, &e->sequences, &pass, err);
}

static fin_status prompt_rows(const fin_encoder *encoder, const fin_examples *e, int kind,
                              prompts *p, double *x, int64_t columns, fin_error *err)
{
    fin_pass pass = {.dtype = FIN_F32, .layer = fin_encoder_get_settings(encoder)->layers};
    if (kind == FINI_READOUT_PROMPTS)
        pass.states = p->states;
    else
        pass.answers[0] = p->states;
    fill_prompts(p, &e->sequences);
    FINI_TRY(fin_encoder_pass(encoder, &p->sequences, &pass, err));
    int64_t numbers = columns / p->count;
    for (int64_t i = 0; i < e->sequences.n; i++)
        memcpy(x + i * columns, p->states + (p->offsets[i + 1] - p->count) * numbers,
               (size_t)columns * sizeof *x);
    return FIN_OK;
}

static fin_status make_rows(fini_readout *o, int kind, const fin_encoder *encoder,
                            const fin_corpus *corpus, uint64_t first, prompts *p, fin_error *err)
{
    fin_examples e = {0};
    fin_status status = FIN_OK;
    double sum = 0, squares = 0;
    for (int64_t at = 0; at < o->n && !status; at += CHUNK) {
        int64_t n = o->n - at < CHUNK ? o->n - at : CHUNK;
        double *x = o->x + at * o->columns;
        status =
            fin_corpus_draw(corpus, first + (uint64_t)at, n, -1, 0, FIN_EXAMPLES_BAYES, &e, err);
        if (!status)
            status = kind == FINI_READOUT_POOLED
                         ? pooled_rows(encoder, &e, x, err)
                         : prompt_rows(encoder, &e, kind, p, x, o->columns, err);
        for (int64_t i = 0; i < n && !status; i++) {
            o->y[at + i] = e.targets[i];
            o->bayes[at + i] = e.bayes[i];
            o->bayes_risk += e.variance[i] / (double)o->n;
            sum += e.targets[i];
            squares += e.targets[i] * e.targets[i];
        }
    }
    double mean = sum / (double)o->n;
    o->variance = fmax(0, squares / (double)o->n - mean * mean);
    fin_examples_close(&e);
    return status;
}

void fini_readout_close(fini_readout *o)
{
    fini_free_all(o->x, o->y, o->bayes);
    *o = (fini_readout){.x = NULL};
}

fin_status fini_readout_make(fini_readout *o, int kind, const fin_encoder *encoder,
                             const fin_corpus *corpus, uint64_t first, int64_t n, fin_error *err)
{
    const fin_encoder_shape *shape = fin_encoder_get_shape(encoder);
    int64_t width = fin_encoder_get_settings(encoder)->width;
    int64_t numbers = kind == FINI_READOUT_ANSWERS ? fin_head_answers(&shape->head[0]) : width;
    prompts p = {.count = 0};
    fini_readout_close(o);
    o->n = n;
    o->columns = kind == FINI_READOUT_POOLED ? width : prompt_count(shape) * numbers;
    o->x = fini_alloc_array(n, (size_t)o->columns * sizeof *o->x);
    o->y = fini_alloc_array(n, sizeof *o->y);
    o->bayes = fini_alloc_array(n, sizeof *o->bayes);
    fin_status status = FIN_OK;
    if (!o->x || !o->y || !o->bayes)
        status = fini_fail_memory(err, (size_t)(n * o->columns) * sizeof *o->x, "a head's rows");
    if (!status && kind != FINI_READOUT_POOLED)
        status = open_prompts(&p, encoder, fin_corpus_longest(corpus), numbers, err);
    if (!status)
        status = make_rows(o, kind, encoder, corpus, first, &p, err);
    close_prompts(&p);
    if (status)
        fini_readout_close(o);
    return status;
}

fin_status fini_readout_head(const fini_readout *train, int64_t n, const fini_readout *test,
                             double *excess, fin_error *err)
{
    fin_probe *probe = NULL;
    FINI_OWN(err, "a head's predictions", double, out, test->n, 1);
    double sum = 0;
    fin_status status =
        fin_probe_fit(&probe, n, train->columns, train->x, 0, 1, train->y, FIN_AUTO, err);
    if (!status)
        status = fini_probe_predict(probe, test->n, test->x, out, err);
    for (int64_t i = 0; i < test->n && !status; i++)
        sum += (out[i] - test->bayes[i]) * (out[i] - test->bayes[i]);
    *excess = sum / (double)test->n;
    fin_probe_destroy(probe);
    return status;
}
