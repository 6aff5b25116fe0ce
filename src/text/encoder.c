/* An encoder from a folder: config.json says what it is, names of tensors where its weights are. */
#include "text/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- config.json ---------------------------------------------------------------------------------- */

/* What a kind calls its settings and tensors. */
typedef struct kind {
    const char *name;
    bool norm_first;
    const char *width, *layers, *heads, *hidden, *act;
    const char *at, *query, *key, *value, *out, *norm1, *up, *down, *norm2;
} kind;

#define BERT_TENSORS                                                                               \
    .at = "encoder", .query = "attention.self.query", .key = "attention.self.key",                 \
    .value = "attention.self.value", .out = "attention.output.dense",                              \
    .norm1 = "attention.output.LayerNorm", .up = "intermediate.dense", .down = "output.dense",     \
    .norm2 = "output.LayerNorm"
#define BERT_SETTINGS                                                                              \
    .width = "hidden_size", .layers = "num_hidden_layers", .heads = "num_attention_heads",         \
    .hidden = "intermediate_size", .act = "hidden_act"

static const kind kinds[] = {
    {.name = "bert", BERT_SETTINGS, BERT_TENSORS},
    {.name = "distilbert",
     .width = "dim",
     .layers = "n_layers",
     .heads = "n_heads",
     .hidden = "hidden_dim",
     .act = "activation",
     .at = "transformer",
     .query = "attention.q_lin",
     .key = "attention.k_lin",
     .value = "attention.v_lin",
     .out = "attention.out_lin",
     .norm1 = "sa_layer_norm",
     .up = "ffn.lin1",
     .down = "ffn.lin2",
     .norm2 = "output_layer_norm"},
    {.name = "use-lite", .norm_first = true, BERT_SETTINGS, BERT_TENSORS},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct reader {
    fin_text_encoder *e;
    const char *folder;
    const json_t *config;
    const kind *kind;
    const char *prefix; /* of all tensors: "", "bert." ... */
    int64_t types;      /* rows of the kinds' embedding */
    fin_status status;  /* the first that went wrong */
    fin_error *err;
} reader;

static void refuse(reader *r, const char *what, const char *have, const char *allowed)
{
    if (!r->status)
        r->status = fini_fail(r->err, FIN_ERR_UNSUPPORTED, "config.json of '%.200s': %s is %s; %s",
                              r->folder, what, have ? FINI_SHOW(have) : "missing", allowed);
}

static int64_t read_number(reader *r, const char *name, int64_t least, int64_t most)
{
    const json_t *value = json_object_get(r->config, name);
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= least && number <= most)
        return number;
    char have[32], allowed[64];
    snprintf(have, sizeof have, "%lld", (long long)number);
    snprintf(allowed, sizeof allowed, "a whole number from %lld to %lld is needed",
             (long long)least, (long long)most);
    refuse(r, name, json_is_integer(value) ? have : value ? "no whole number" : NULL, allowed);
    return least;
}

static void read_act(reader *r)
{
    static const struct {
        const char *name;
        int act;
    } acts[] = {{"gelu", FINI_ACT_GELU},
                {"gelu_new", FINI_ACT_TANH},
                {"relu", FINI_ACT_RELU},
                {"gelu_pytorch_tanh", FINI_ACT_TANH},
                {"gelu_fast", FINI_ACT_TANH}};
    const char *name = json_string_value(json_object_get(r->config, r->kind->act));
    for (size_t i = 0; name && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0) {
            r->e->act = acts[i].act;
            return;
        }
    refuse(r, r->kind->act, name,
           "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh and relu are computed");
}

static void find_kind(reader *r)
{
    const char *type = json_string_value(json_object_get(r->config, "model_type"));
    for (int i = 0; type && i < KINDS; i++)
        if (strcmp(kinds[i].name, type) == 0)
            r->kind = &kinds[i];
    if (!r->kind)
        refuse(r, "model_type", type, "bert, distilbert and use-lite are read");
}

static void read_eps(reader *r)
{
    const json_t *value = json_object_get(r->config, "layer_norm_eps");
    double eps = json_is_number(value) ? json_number_value(value) : 1e-12;
    r->e->eps = (float)eps;
    if (!(eps >= 0 && eps <= 1))
        refuse(r, "layer_norm_eps", "out of range", "it is from 0 to 1");
}

static void read_config(reader *r)
{
    fin_text_shape *s = &r->e->shape;
    const char *places = json_string_value(json_object_get(r->config, "position_embedding_type"));
    find_kind(r);
    if (r->status)
        return;
    snprintf(s->kind, sizeof s->kind, "%s", r->kind->name);
    r->e->norm_first = r->kind->norm_first;
    s->width = read_number(r, r->kind->width, 1, 1 << 15);
    s->layers = read_number(r, r->kind->layers, 0, 256);
    s->heads = read_number(r, r->kind->heads, 1, 1024);
    s->hidden = read_number(r, r->kind->hidden, 1, 1 << 17);
    s->longest = read_number(r, "max_position_embeddings", 3, 1 << 20);
    s->vocabulary = read_number(r, "vocab_size", 1, 1 << 24);
    r->types = strcmp(s->kind, "bert") == 0 ? read_number(r, "type_vocab_size", 0, 1 << 16) : 0;
    r->e->first = r->kind->norm_first ? read_number(r, "embedding_size", 1, 1 << 15) : s->width;
    read_act(r);
    read_eps(r);
    if (places && strcmp(places, "absolute") != 0)
        refuse(r, "position_embedding_type", places, "absolute is computed");
    if (json_is_true(json_object_get(r->config, "is_decoder")) ||
        json_is_true(json_object_get(r->config, "add_cross_attention")))
        refuse(r, "is_decoder or add_cross_attention", "true", "encoders are read");
    if (!r->status && (s->width % s->heads || r->e->first % s->heads))
        refuse(r, r->kind->width, "no multiple of the heads", "it must be one");
}

/* ---- tensors ---------------------------------------------------------------------------------------- */

enum { NAME = 160 };

/* Older files call a norm's weight and bias gamma and beta. */
static void take(reader *r, const char *at, const char *name, const char *part, int64_t rows,
                 int64_t columns, fini_weight *weight)
{
    char text[NAME];
    const char *old = strcmp(part, "weight") == 0 ? "gamma" : "beta";
    if (r->status)
        return;
    snprintf(text, sizeof text, "%s%s%s.%s", r->prefix, at, name, part);
    if (!columns && !fini_weights_has(r->e->weights, text)) {
        char other[NAME];
        snprintf(other, sizeof other, "%s%s%s.%s", r->prefix, at, name, old);
        if (fini_weights_has(r->e->weights, other))
            strcpy(text, other);
    }
    r->status = fini_weights_get(r->e->weights, text, rows, columns, weight, r->err);
}

static void take_linear(reader *r, const char *at, const char *name, int64_t out, int64_t in,
                        fini_linear *linear)
{
    take(r, at, name, "weight", out, in, &linear->weight);
    take(r, at, name, "bias", out, 0, &linear->bias);
}

static void take_layer(reader *r, int64_t i)
{
    const fin_text_shape *s = &r->e->shape;
    fini_text_layer *l = &r->e->layer[i];
    const kind *k = r->kind;
    char at[NAME / 2];
    const int64_t w = s->width, in = i ? w : r->e->first, norm1 = r->e->norm_first ? in : w;
    l->in = in;
    snprintf(at, sizeof at, "%s.layer.%d.", k->at, (int)i);
    take_linear(r, at, k->query, in, in, &l->query);
    take_linear(r, at, k->key, in, in, &l->key);
    take_linear(r, at, k->value, in, in, &l->value);
    take_linear(r, at, k->out, w, in, &l->out);
    take_linear(r, at, k->norm1, norm1, 0, &l->norm1);
    take_linear(r, at, k->up, s->hidden, w, &l->up);
    take_linear(r, at, k->down, w, s->hidden, &l->down);
    take_linear(r, at, k->norm2, w, 0, &l->norm2);
    if (in != w)
        take_linear(r, at, "residual", w, in, &l->residual);
}

static void find_prefix(reader *r)
{
    static const char *const prefixes[] = {"", "bert.", "distilbert.", "model."};
    char text[NAME];
    r->prefix = "";
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        snprintf(text, sizeof text, "%sembeddings.word_embeddings.weight", prefixes[i]);
        if (fini_weights_has(r->e->weights, text)) {
            r->prefix = prefixes[i];
            return;
        }
    }
}

static void take_tensors(reader *r)
{
    fin_text_encoder *e = r->e;
    const fin_text_shape *s = &e->shape;
    e->layer = fini_alloc_array(s->layers + 1, sizeof *e->layer);
    if (!e->layer) {
        r->status = fini_fail_memory(r->err, (size_t)s->layers * sizeof *e->layer, "layers");
        return;
    }
    memset(e->layer, 0, (size_t)(s->layers + 1) * sizeof *e->layer);
    find_prefix(r);
    take(r, "embeddings.", "word_embeddings", "weight", s->vocabulary, e->first, &e->words);
    take(r, "embeddings.", "position_embeddings", "weight", s->longest, e->first, &e->places);
    if (r->types)
        take(r, "embeddings.", "token_type_embeddings", "weight", r->types, e->first, &e->kinds);
    if (!e->norm_first)
        take_linear(r, "embeddings.", "LayerNorm", e->first, 0, &e->norm);
    else
        take_linear(r, "", "pooler.dense", s->width, s->width, &e->pooler);
    for (int64_t i = 0; i < s->layers && !r->status; i++)
        take_layer(r, i);
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static fin_status open_all(reader *r, fin_error *err)
{
    char path[FINI_FOLDER_PATH];
    json_t *config;
    fin_text_encoder *e = r->e;
    FINI_TRY(fini_folder_json(r->folder, "config.json", &config, err));
    if (!config)
        return fini_fail(err, FIN_ERR_IO,
                         "'%.200s' is no folder of an encoder: it has no config.json", r->folder);
    r->config = config;
    read_config(r);
    json_decref(config);
    if (!r->status)
        r->status = fini_tokenizer_read(&e->tokenizer, r->folder, err);
    if (!r->status && e->tokenizer.unigram != e->norm_first)
        refuse(r, "model_type", e->shape.kind, "its tokenizer is that of another kind of encoder");
    if (!r->status && e->tokenizer.vocabulary.count > e->shape.vocabulary)
        refuse(r, "vocab_size", "smaller than the vocabulary", "they must agree");
    if (!r->status && !fini_folder_has(r->folder, "model.safetensors"))
        r->status = fini_fail(err, FIN_ERR_IO,
                              "'%.200s' has no model.safetensors (files of one part are read, and "
                              "none of pickle)",
                              r->folder);
    if (!r->status)
        r->status = fini_weights_open(&e->weights,
                                      fini_folder_path(r->folder, "model.safetensors", path), err);
    if (!r->status)
        take_tensors(r);
    return r->status;
}

fin_status fin_text_encoder_open(fin_text_encoder **out, const char *folder, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, folder);
    FINI_MAKE(err, "an encoder of text", fin_text_encoder, e);
    reader r = {.e = e, .folder = folder, .err = err};
    fin_status status = open_all(&r, err);
    FINI_HAND_OVER(out, e, status, fin_text_encoder_destroy);
}

void fin_text_encoder_destroy(fin_text_encoder *e)
{
    if (!e)
        return;
    fini_tokenizer_close(&e->tokenizer);
    fini_weights_close(e->weights);
    fini_free_all(e->layer, e);
}

const fin_text_shape *fin_text_encoder_shape(const fin_text_encoder *e)
{
    return e ? &e->shape : NULL;
}

int64_t fin_text_encoder_width(const fin_text_encoder *e, int64_t layer)
{
    return !e || layer < 0 || layer > e->shape.layers ? 0 : layer ? e->shape.width : e->first;
}

const char *fin_text_encoder_piece(const fin_text_encoder *e, int64_t id)
{
    return e && id >= 0 && id < e->tokenizer.vocabulary.count
               ? fini_names_get(&e->tokenizer.vocabulary, id)
               : NULL;
}
