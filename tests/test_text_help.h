/* What the tests of encoders of text share: a folder of an encoder with weights of our own. */
#ifndef TEST_TEXT_HELP_H
#define TEST_TEXT_HELP_H

#include "test_data.h"

#include "fault.h"

#include "finetti/text.h"

#include <math.h>

static fin_error err;

static inline void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

/* Tensors of a file to be written, and found again by whoever checks. */
enum { TENSORS = 128, F32 = 0, F16, BF16 };
typedef struct tensor {
    char name[96];
    int rows, columns; /* columns 0: a vector */
    double *x;
} tensor;
static tensor tensors[TENSORS];
static int tensor_count, tensor_type;

static inline void forget_tensors(void)
{
    for (int i = 0; i < tensor_count; i++)
        free(tensors[i].x);
    tensor_count = 0;
}

static inline const double *tensor_of(const char *format, int layer, const char *part)
{
    char name[96];
    snprintf(name, sizeof name, format, layer);
    strcat(name, part);
    for (int i = 0; i < tensor_count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return tensors[i].x;
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Numbers that all three types hold exactly: multiples of 1/16 below 1, without a generator to share with
 * the library. */
static unsigned draw_state = 1;
static inline double draw(void)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return ((int)(draw_state >> 16) % 16) / 16.0 * ((draw_state >> 8) & 1 ? 1 : -1);
}

static inline void add_tensor(const char *name, int rows, int columns, double middle, double spread)
{
    tensor *t = &tensors[tensor_count++];
    int count = rows * (columns ? columns : 1);
    assert_true(tensor_count <= TENSORS);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->columns = columns;
    t->x = malloc((size_t)count * sizeof *t->x);
    assert_non_null(t->x);
    for (int i = 0; i < count; i++)
        t->x[i] = middle + spread * draw();
}

static inline void add_linear(const char *at, const char *name, int out, int in, int is_norm)
{
    char text[96];
    snprintf(text, sizeof text, "%s%s.weight", at, name);
    add_tensor(text, out, is_norm ? 0 : in, is_norm ? 1 : 0, 0.25);
    snprintf(text, sizeof text, "%s%s.bias", at, name);
    add_tensor(text, out, 0, 0, 0.25);
}

/* A float that is exact in all three types to its bytes. */
static inline size_t put_number(double x, unsigned char *to)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (tensor_type == F32) {
        memcpy(to, &bits, 4);
        return 4;
    }
    uint32_t half = bits >> 16; /* bfloat16 */
    if (tensor_type == F16) {
        uint32_t e = bits >> 23 & 0xff;
        half = (bits >> 16 & 0x8000) | (e ? (e - 112) << 10 | (bits >> 13 & 0x3ff) : 0);
    }
    to[0] = (unsigned char)half;
    to[1] = (unsigned char)(half >> 8);
    return 2;
}

static inline void write_tensors(const char *prefix)
{
    static const char *const types[] = {"F32", "F16", "BF16"};
    size_t size = tensor_type == F32 ? 4 : 2, total = 0, at = 0;
    for (int i = 0; i < tensor_count; i++)
        total += (size_t)(tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1)) * size;
    unsigned char *data = malloc(8 + 256 * TENSORS + total), *header = data + 8;
    assert_non_null(data);
    size_t used = (size_t)sprintf((char *)header, "{");
    for (int i = 0; i < tensor_count; i++) {
        const tensor *t = &tensors[i];
        size_t bytes = (size_t)(t->rows * (t->columns ? t->columns : 1)) * size;
        char shape[32];
        snprintf(shape, sizeof shape, t->columns ? "[%d,%d]" : "[%d]", t->rows, t->columns);
        used += (size_t)sprintf((char *)header + used,
                                "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,"
                                "%zu]}",
                                i ? "," : "", prefix, t->name, types[tensor_type], shape, at,
                                at + bytes);
        at += bytes;
    }
    header[used++] = '}';
    for (int i = 0; i < 8; i++)
        data[i] = (unsigned char)(used >> 8 * i);
    unsigned char *to = header + used;
    for (int i = 0; i < tensor_count; i++)
        for (int k = 0; k < tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1); k++)
            to += put_number(tensors[i].x[k], to);
    write_file("model.safetensors", data, (size_t)(to - data));
    free(data);
}

/* What an encoder of a test is. */
typedef struct model {
    const char *kind, *act;
    int layers, heads, first, width, hidden, longest, vocabulary;
    double eps;
} model;

/* Names of a kind's tensors, in one order: query, key, value, out, norm 1, up, down, norm 2. */
enum { QUERY, KEY, VALUE, OUT, NORM1, UP, DOWN, NORM2, PARTS };
static const char *const bert_parts[] = {"attention.self.query",
                                         "attention.self.key",
                                         "attention.self.value",
                                         "attention.output.dense",
                                         "attention.output.LayerNorm",
                                         "intermediate.dense",
                                         "output.dense",
                                         "output.LayerNorm"};
static const char *const distil_parts[] = {
    "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
    "sa_layer_norm",   "ffn.lin1",        "ffn.lin2",        "output_layer_norm"};

static inline int is_kind(const model *m, const char *kind)
{
    return strcmp(m->kind, kind) == 0;
}

static inline const char *const *parts_of(const model *m)
{
    return is_kind(m, "distilbert") ? distil_parts : bert_parts;
}

static inline const char *layer_at(const model *m)
{
    return is_kind(m, "distilbert") ? "transformer.layer.%d." : "encoder.layer.%d.";
}

static inline void write_config(const model *m)
{
    char text[1024];
    const char *form =
        is_kind(m, "distilbert")
            ? "{\"model_type\":\"%s\",\"dim\":%d,\"n_layers\":%d,\"n_heads\":%d,\"hidden_dim\":%d,"
              "\"activation\":\"%s\",\"max_position_embeddings\":%d,\"vocab_size\":%d,"
              "\"layer_norm_eps\":%g,\"x\":%d}"
            : "{\"model_type\":\"%s\",\"hidden_size\":%d,\"num_hidden_layers\":%d,"
              "\"num_attention_heads\":%d,\"intermediate_size\":%d,\"hidden_act\":\"%s\","
              "\"max_position_embeddings\":%d,\"vocab_size\":%d,\"layer_norm_eps\":%g,"
              "\"type_vocab_size\":2,\"embedding_size\":%d}";
    snprintf(text, sizeof text, form, m->kind, m->width, m->layers, m->heads, m->hidden, m->act,
             m->longest, m->vocabulary, m->eps, m->first);
    write_text("config.json", text);
}

static inline void write_vocabulary(const model *m)
{
    char *text = malloc((size_t)m->vocabulary * 32 + 256);
    size_t used = 0;
    assert_non_null(text);
    if (is_kind(m, "use-lite")) {
        used += (size_t)sprintf(text, "{\"added_tokens\":[{\"id\":0}],\"model\":{\"type\":"
                                      "\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0]");
        for (int i = 1; i < m->vocabulary; i++)
            used += (size_t)sprintf(text + used, ",[\"\xe2\x96\x81w%d\",-%d]", i, 1 + i % 7);
        sprintf(text + used, "]}}");
        write_text("tokenizer.json", text);
    } else {
        used += (size_t)sprintf(text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
        for (int i = 4; i < m->vocabulary; i++)
            used += (size_t)sprintf(text + used, "w%d\n", i);
        write_text("vocab.txt", text);
    }
    free(text);
}

/* The whole folder. */
static inline void write_model(const model *m, int type)
{
    char at[64];
    forget_tensors();
    draw_state = 1;
    tensor_type = type;
    add_tensor("embeddings.word_embeddings.weight", m->vocabulary, m->first, 0, 1);
    add_tensor("embeddings.position_embeddings.weight", m->longest, m->first, 0, 1);
    if (is_kind(m, "bert"))
        add_tensor("embeddings.token_type_embeddings.weight", 2, m->first, 0, 1);
    if (is_kind(m, "use-lite"))
        add_linear("", "pooler.dense", m->width, m->width, 0);
    else
        add_linear("", "embeddings.LayerNorm", m->first, 0, 1);
    for (int i = 0; i < m->layers; i++) {
        int in = i ? m->width : m->first, w = m->width;
        const int sizes[PARTS][2] = {
            {in, in},       {in, in},       {in, in}, {w, in}, {is_kind(m, "use-lite") ? in : w, 0},
            {m->hidden, w}, {w, m->hidden}, {w, 0}};
        snprintf(at, sizeof at, layer_at(m), i);
        for (int k = 0; k < PARTS; k++)
            add_linear(at, parts_of(m)[k], sizes[k][0], sizes[k][1], k == NORM1 || k == NORM2);
        if (in != w)
            add_linear(at, "residual", w, in, 0);
    }
    write_config(m);
    write_vocabulary(m);
    write_tensors(is_kind(m, "use-lite") ? "" : is_kind(m, "bert") ? "bert." : "distilbert.");
}

static inline fin_text_encoder *open_encoder(void)
{
    fin_text_encoder *e = NULL;
    assert_ok(fin_text_encoder_open(&e, folder, &err));
    return e;
}

static inline fin_text_pieces *cut_texts(const fin_text_encoder *e, int n, const char *const *texts)
{
    fin_text_pieces *p = NULL;
    assert_ok(fin_text_pieces_cut(&p, e, n, texts, NULL, 0, &err));
    return p;
}

#endif
