/* Encoders of text: the first byte says which file of a small BERT's folder the rest is, or that it is a text for WordPiece
 * or unigram. What opens is run. */
#include "fuzz.h"

#include "finetti/text.h"

enum { CONFIG, VOCABULARY, TOKENIZER, SWITCHES, WEIGHTS, TEXT, UNIGRAM_TEXT, KINDS };
static const char *const folder_files[] = {"config.json", "vocab.txt", "tokenizer.json",
                                           "tokenizer_config.json", "model.safetensors"};
static const char folder_config[] =
    "{\"model_type\":\"bert\",\"hidden_size\":2,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
    "\"intermediate_size\":3,"
    "\"hidden_act\":\"gelu\",\"max_position_embeddings\":8,\"vocab_size\":6,\"type_vocab_size\":1}";
static const char folder_use[] = "{\"model_type\":\"use-lite\",\"hidden_size\":2,\"num_hidden_"
                                 "layers\":0,\"num_attention_heads\":1,"
                                 "\"intermediate_size\":3,\"hidden_act\":\"relu\",\"max_position_"
                                 "embeddings\":8,\"vocab_size\":6,\"embedding_size\":2}";
static const char folder_unigram[] =
    "{\"added_tokens\":[{\"id\":0}],\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\","
    "0],[\"\xe2\x96\x81\",-2],"
    "[\"a\",-1.5],[\"ab\",-2],[\"\xe2\x96\x81\x61\",-2.5],[\"b\",-3]]}}";
static const char folder_vocabulary[] = "[UNK]\n[CLS]\n[SEP]\na\n##b\n.\n";

/* All numbers are a half. */
static void write_weights(void)
{
    static const struct {
        const char *name;
        int rows, columns;
    } all[] = {{"embeddings.word_embeddings.weight", 6, 2},
               {"embeddings.position_embeddings.weight", 8, 2},
               {"embeddings.token_type_embeddings.weight", 1, 2},
               {"embeddings.LayerNorm.weight", 2, 0},
               {"embeddings.LayerNorm.bias", 2, 0},
               {"pooler.dense.weight", 2, 2},
               {"pooler.dense.bias", 2, 0},
               {"encoder.layer.0.attention.self.query.weight", 2, 2},
               {"encoder.layer.0.attention.self.query.bias", 2, 0},
               {"encoder.layer.0.attention.self.key.weight", 2, 2},
               {"encoder.layer.0.attention.self.key.bias", 2, 0},
               {"encoder.layer.0.attention.self.value.weight", 2, 2},
               {"encoder.layer.0.attention.self.value.bias", 2, 0},
               {"encoder.layer.0.attention.output.dense.weight", 2, 2},
               {"encoder.layer.0.attention.output.dense.bias", 2, 0},
               {"encoder.layer.0.attention.output.LayerNorm.weight", 2, 0},
               {"encoder.layer.0.attention.output.LayerNorm.bias", 2, 0},
               {"encoder.layer.0.intermediate.dense.weight", 3, 2},
               {"encoder.layer.0.intermediate.dense.bias", 3, 0},
               {"encoder.layer.0.output.dense.weight", 2, 3},
               {"encoder.layer.0.output.dense.bias", 2, 0},
               {"encoder.layer.0.output.LayerNorm.weight", 2, 0},
               {"encoder.layer.0.output.LayerNorm.bias", 2, 0}};
    static unsigned char data[8192];
    char *header = (char *)data + 8;
    int used = sprintf(header, "{"), at = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int count = all[i].rows * (all[i].columns ? all[i].columns : 1);
        char second[16] = "";
        if (all[i].columns)
            snprintf(second, sizeof second, ",%d", all[i].columns);
        used += sprintf(header + used,
                        "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d%s],\"data_offsets\":[%d,%d]}",
                        i ? "," : "", all[i].name, all[i].rows, second, at, at + 2 * count);
        at += 2 * count;
    }
    header[used++] = '}';
    data[0] = (unsigned char)used;
    data[1] = (unsigned char)(used >> 8);
    for (int i = 0; i < at; i += 2) {
        data[8 + used + i] = 0;
        data[9 + used + i] = 0x3f; /* bfloat16 of 0.5 */
    }
    fuzz_write("model.safetensors", data, (size_t)(8 + used + at));
}

static void write_text(const char *name, const char *text)
{
    fuzz_write(name, (const uint8_t *)text, strlen(text));
}

/* A text through the encoder: states of all its pieces, whose places are in it. */
static void run_text(const fin_text_encoder *e, const char *text, size_t size)
{
    enum { MOST = 1 << 16 };
    static float room[MOST];
    const fin_text_shape *shape = fin_text_encoder_shape(e);
    const int64_t sizes[] = {(int64_t)size}, longest = shape->longest < 8 ? 0 : 8;
    float *states[257] = {NULL};
    fin_text_pieces *p;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_text_pieces_cut(&p, e, 1, &text, sizes, longest, &err);
    FUZZ_CHECK(status ? !p && err.message[0] : p != NULL);
    if (status)
        return;
    int64_t count = fin_text_pieces_offsets(p)[1];
    FUZZ_CHECK(count >= 1 && count <= shape->longest && fin_text_pieces_left_out(p)[0] >= 0);
    for (int64_t t = 0; t < count; t++) {
        int64_t begin = fin_text_pieces_begin(p)[t], end = fin_text_pieces_end(p)[t];
        FUZZ_CHECK(begin >= 0 && begin <= end && end <= (int64_t)size);
        FUZZ_CHECK(fin_text_encoder_piece(e, fin_text_pieces_ids(p)[t]) != NULL);
    }
    states[shape->layers] = room;
    fin_text_pass pass = {.states = states};
    if (count * shape->width <= MOST)
        status = fin_text_encoder_run(e, p, &pass, NULL, &err);
    FUZZ_CHECK(!status || err.message[0]);
    fin_text_pieces_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int kind = size ? data[0] % KINDS : CONFIG;
    size_t rest = size ? size - 1 : 0;
    char place[300];
    fin_text_encoder *e;
    fin_error err = {FIN_OK, ""};
    write_text("config.json", kind == UNIGRAM_TEXT ? folder_use : folder_config);
    write_text("vocab.txt", folder_vocabulary);
    remove(fuzz_path("tokenizer.json"));
    remove(fuzz_path("tokenizer_config.json"));
    if (kind == UNIGRAM_TEXT)
        write_text("tokenizer.json", folder_unigram);
    write_weights();
    if (kind < TEXT)
        fuzz_write(folder_files[kind], data + 1, rest);
    snprintf(place, sizeof place, "%s", fuzz_path(""));
    fin_status status = fin_text_encoder_open(&e, place, &err);
    FUZZ_CHECK(status ? !e && err.message[0] : e != NULL);
    FUZZ_CHECK(kind < TEXT || !status);
    if (status)
        return 0;
    if (kind < TEXT)
        run_text(e, "A b\xc3\xa9. ab", 9);
    else
        run_text(e, (const char *)data + 1, rest);
    fin_text_encoder_destroy(e);
    return 0;
}
