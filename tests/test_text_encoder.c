/* Encoders of text: the pass against the formulas in double, half precisions, threads, and folders that are
 * refused in words. */
#include "test_text_help.h"

/* ---- the formulas, one number at a time -------------------------------------------------------- */

enum { L_MOST = 24, W_MOST = 144, H_MOST = 160 };

static double activate(const model *m, double t)
{
    if (strcmp(m->act, "relu") == 0)
        return t > 0 ? t : 0;
    if (strcmp(m->act, "gelu") == 0)
        return t * erfc(-t / sqrt(2)) / 2;
    return t / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (t + 0.044715 * t * t * t)));
}

static void linear(int L, int in, int out, const double *x, const char *at, int layer,
                   const char *name, double *y)
{
    char weight[96], bias[96];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    const double *W = tensor_of(at, layer, weight), *b = tensor_of(at, layer, bias);
    for (int l = 0; l < L; l++)
        for (int o = 0; o < out; o++) {
            double sum = b[o];
            for (int i = 0; i < in; i++)
                sum += W[o * in + i] * x[l * in + i];
            y[l * out + o] = sum;
        }
}

static void norm(const model *m, int L, int w, const double *x, const char *at, int layer,
                 const char *name, double *y)
{
    char weight[96], bias[96];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    const double *g = tensor_of(at, layer, weight), *b = tensor_of(at, layer, bias);
    for (int l = 0; l < L; l++) {
        double mean = 0, square = 0;
        for (int k = 0; k < w; k++)
            mean += x[l * w + k] / w;
        for (int k = 0; k < w; k++)
            square += (x[l * w + k] - mean) * (x[l * w + k] - mean) / w;
        for (int k = 0; k < w; k++)
            y[l * w + k] = (x[l * w + k] - mean) / sqrt(square + m->eps) * g[k] + b[k];
    }
}

static void attention(const model *m, int L, int in, const double *x, int layer, double *out)
{
    static double q[L_MOST * W_MOST], k[L_MOST * W_MOST], v[L_MOST * W_MOST], att[L_MOST * W_MOST];
    int d = in / m->heads;
    linear(L, in, in, x, layer_at(m), layer, parts_of(m)[QUERY], q);
    linear(L, in, in, x, layer_at(m), layer, parts_of(m)[KEY], k);
    linear(L, in, in, x, layer_at(m), layer, parts_of(m)[VALUE], v);
    for (int h = 0; h < m->heads; h++)
        for (int a = 0; a < L; a++) {
            double score[L_MOST], sum = 0;
            for (int b = 0; b < L; b++) {
                double dot = 0;
                for (int i = h * d; i < (h + 1) * d; i++)
                    dot += q[a * in + i] * k[b * in + i];
                sum += score[b] = exp(dot / sqrt(d));
            }
            for (int i = h * d; i < (h + 1) * d; i++) {
                att[a * in + i] = 0;
                for (int b = 0; b < L; b++)
                    att[a * in + i] += score[b] / sum * v[b * in + i];
            }
        }
    linear(L, in, m->width, att, layer_at(m), layer, parts_of(m)[OUT], out);
}

static void feed_forward(const model *m, int L, const double *x, int layer, double *out)
{
    static double h[L_MOST * H_MOST];
    linear(L, m->width, m->hidden, x, layer_at(m), layer, parts_of(m)[UP], h);
    for (int i = 0; i < L * m->hidden; i++)
        h[i] = activate(m, h[i]);
    linear(L, m->hidden, m->width, h, layer_at(m), layer, parts_of(m)[DOWN], out);
}

/* x (L, in) to (L, width), in place. */
static void run_layer(const model *m, int L, int layer, double *x)
{
    static double y[L_MOST * W_MOST], z[L_MOST * W_MOST], r[L_MOST * W_MOST];
    int in = layer ? m->width : m->first, w = m->width;
    const char *at = layer_at(m);
    if (!is_kind(m, "use-lite")) {
        attention(m, L, in, x, layer, y);
        for (int i = 0; i < L * w; i++)
            y[i] += x[i];
        norm(m, L, w, y, at, layer, parts_of(m)[NORM1], z);
        feed_forward(m, L, z, layer, y);
        for (int i = 0; i < L * w; i++)
            y[i] += z[i];
        norm(m, L, w, y, at, layer, parts_of(m)[NORM2], x);
        return;
    }
    norm(m, L, in, x, at, layer, parts_of(m)[NORM1], z);
    attention(m, L, in, z, layer, y);
    if (in != w)
        linear(L, in, w, x, at, layer, "residual", r);
    for (int i = 0; i < L * w; i++)
        y[i] += in != w ? r[i] : x[i];
    norm(m, L, w, y, at, layer, parts_of(m)[NORM2], z);
    feed_forward(m, L, z, layer, x);
    for (int i = 0; i < L * w; i++)
        x[i] += y[i];
}

static void embed(const model *m, int L, const int32_t *id, double *x)
{
    static double sum[L_MOST * W_MOST];
    const double *words = tensor_of("embeddings.word_embeddings", 0, ".weight"),
                 *places = tensor_of("embeddings.position_embeddings", 0, ".weight");
    for (int l = 0; l < L; l++)
        for (int k = 0; k < m->first; k++) {
            sum[l * m->first + k] = words[id[l] * m->first + k] + places[l * m->first + k];
            if (is_kind(m, "bert"))
                sum[l * m->first + k] +=
                    tensor_of("embeddings.token_type_embeddings", 0, ".weight")[k];
        }
    if (is_kind(m, "use-lite"))
        memcpy(x, sum, sizeof sum);
    else
        norm(m, L, m->first, sum, "embeddings.", 0, "LayerNorm", x);
}

/* ---- the pass -------------------------------------------------------------------------------------- */

static const char *const texts[] = {"w5 w6 w7", "", "w11",
                                    "w9 w8 w7 w6 w5 w4 w12 w13 w14 nothing w19", "w5"};
enum { TEXTS = 5 };

static const model models[] = {
    {"bert", "gelu", 2, 3, 12, 12, 17, 20, 30, 1e-12},
    {"bert", "relu", 1, 1, 5, 5, 40, 16, 30, 1e-5},
    {"bert", "gelu_new", 3, 4, 24, 24, 24, 16, 30, 1e-3},
    {"distilbert", "gelu", 2, 2, 16, 16, 33, 18, 30, 1e-12},
    /* large enough for the BLAS */
    {"bert", "gelu", 2, 4, 128, 128, 160, 24, 30, 1e-12},
    {"use-lite", "relu", 2, 2, 8, 12, 20, 16, 30, 1e-6},
    {"use-lite", "relu", 2, 4, 128, 144, 152, 24, 30, 1e-6},
};
enum { MODELS = sizeof models / sizeof *models };

/* All layers of all texts; freed by the caller, as one block. */
static float *run_all(const model *m, const fin_text_encoder *e, const fin_text_pieces *p,
                      float **states, float *pooled)
{
    int64_t tokens = fin_text_pieces_offsets(p)[fin_text_pieces_texts(p)];
    float *block = malloc((size_t)tokens * W_MOST * (size_t)(m->layers + 1) * sizeof *block);
    assert_non_null(block);
    for (int l = 0; l <= m->layers; l++)
        states[l] = block + l * tokens * W_MOST;
    fin_text_pass pass = {.states = states, .pooled = pooled};
    assert_ok(fin_text_encoder_run(e, p, &pass, NULL, &err));
    return block;
}

static double check_pool(const model *m, int L, const double *x, const float *pooled)
{
    double mean[W_MOST] = {0}, out[W_MOST], square = 0, worst = 0;
    for (int k = 0; k < m->width; k++)
        for (int l = 0; l < L; l++)
            mean[k] += x[l * m->width + k] / L;
    memcpy(out, mean, sizeof out);
    if (is_kind(m, "use-lite")) {
        linear(1, m->width, m->width, mean, "pooler.", 0, "dense", out);
        for (int k = 0; k < m->width; k++) {
            out[k] = tanh(out[k]);
            square += out[k] * out[k];
        }
    }
    for (int k = 0; k < m->width; k++)
        worst =
            fmax(worst, fabs((double)pooled[k] - (square > 0 ? out[k] / sqrt(square) : out[k])));
    return worst;
}

static void check_model(const model *m, int type)
{
    static double x[L_MOST * W_MOST];
    float *states[8], pooled[TEXTS * W_MOST];
    double worst = 0;
    write_model(m, type);
    fin_text_encoder *e = open_encoder();
    int n = is_kind(m, "use-lite") ? 1 : TEXTS; /* which takes no empty text */
    fin_text_pieces *p = cut_texts(e, n, texts);
    float *block = run_all(m, e, p, states, pooled);
    const int64_t *offsets = fin_text_pieces_offsets(p);
    for (int i = 0; i < n; i++) {
        int L = (int)(offsets[i + 1] - offsets[i]);
        embed(m, L, fin_text_pieces_ids(p) + offsets[i], x);
        for (int l = 0; l <= m->layers; l++) {
            int w = l ? m->width : m->first;
            assert_int_equal(fin_text_encoder_width(e, l), w);
            if (l)
                run_layer(m, L, l - 1, x);
            for (int k = 0; k < L * w; k++)
                worst = fmax(worst, fabs((double)states[l][offsets[i] * w + k] - x[k]));
        }
        worst = fmax(worst, check_pool(m, L, x, pooled + i * m->width));
    }
    print_message("%s, %s, type %d: at most %.1e from the formulas\n", m->kind, m->act, type,
                  worst);
    assert_true(worst < 1e-5);
    free(block);
    fin_text_pieces_destroy(p);
    fin_text_encoder_destroy(e);
}

static void pass__is_that_of_the_formulas(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        check_model(&models[i], F32);
}

static void pass__reads_half_precisions(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i += 2)
        for (int type = F16; type <= BF16; type++)
            check_model(&models[i], type);
}

/* So many texts that there are several chunks and groups. */
static void pass__same_bits_for_any_threads(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    const model *m = &models[3];
    const char *many[MANY];
    float *states[2][8], *block[2];
    for (int i = 0; i < MANY; i++)
        many[i] = texts[i % 3 == 1 ? 3 : i % TEXTS];
    write_model(m, F32);
    fin_text_encoder *e = open_encoder();
    fin_text_pieces *p = cut_texts(e, MANY, many);
    int64_t tokens = fin_text_pieces_offsets(p)[MANY];
    assert_true(tokens > 9000);
    for (int run = 0; run < 2; run++) {
        fin_threads_set(run ? 3 : 1);
        block[run] = run_all(m, e, p, states[run], NULL);
    }
    fin_threads_set(0);
    for (int l = 0; l <= m->layers; l++)
        assert_memory_equal(states[0][l], states[1][l], (size_t)tokens * 16 * sizeof(float));
    free(block[0]);
    free(block[1]);
    fin_text_pieces_destroy(p);
    fin_text_encoder_destroy(e);
}

/* Bits of the last layer of text `at` of the list. */
static void last_layer(const model *m, const fin_text_encoder *e, int n, const char *const *list,
                       int at, float *out)
{
    float *states[8];
    fin_text_pieces *p = cut_texts(e, n, list);
    float *block = run_all(m, e, p, states, NULL);
    const int64_t *offsets = fin_text_pieces_offsets(p) + at;
    memset(out, 0, L_MOST * W_MOST * sizeof *out);
    memcpy(out, states[m->layers] + offsets[0] * m->width,
           (size_t)((offsets[1] - offsets[0]) * m->width) * sizeof *out);
    free(block);
    fin_text_pieces_destroy(p);
}

/* A text alone, among others, and among the others the other way around. */
static void pass__a_text_is_itself_in_any_company(void **state)
{
    (void)state;
    enum { MANY = 90 };
    static char text[MANY][L_MOST * 4];
    static float alone[L_MOST * W_MOST], among[L_MOST * W_MOST];
    const char *list[MANY], *back[MANY];
    for (int i = 0; i < MANY; i++) {
        size_t used = 0;
        for (int k = 0; k <= i * 7 % 21; k++)
            used += (size_t)sprintf(text[i] + used, "w%d ", 4 + (i + 3 * k) % 26);
        list[i] = back[MANY - 1 - i] = text[i];
    }
    for (int k = 0; k < MODELS; k++) {
        write_model(&models[k], F32);
        fin_text_encoder *e = open_encoder();
        for (int i = 0; i < MANY; i += 11) {
            last_layer(&models[k], e, 1, &list[i], 0, alone);
            last_layer(&models[k], e, MANY, list, i, among);
            assert_memory_equal(alone, among, sizeof alone);
            last_layer(&models[k], e, MANY, back, MANY - 1 - i, among);
            assert_memory_equal(alone, among, sizeof alone);
        }
        fin_text_encoder_destroy(e);
    }
}

/* One row of a text: that of a piece, or the mean. */
static void pass__picks_a_row(void **state)
{
    (void)state;
    const model *m = &models[0];
    float *states[8], row[TEXTS * W_MOST], *rows[8] = {NULL, NULL, row};
    write_model(m, F32);
    fin_text_encoder *e = open_encoder();
    fin_text_pieces *p = cut_texts(e, TEXTS, texts);
    float *block = run_all(m, e, p, states, NULL);
    const int64_t *offsets = fin_text_pieces_offsets(p);
    for (int pick = FIN_TEXT_FIRST; pick <= FIN_TEXT_MEAN; pick++) {
        fin_text_pass pass = {.states = rows, .pick = pick, .at = 1};
        assert_ok(fin_text_encoder_run(e, p, &pass, NULL, &err));
        for (int i = 0; i < TEXTS; i++)
            for (int k = 0; k < 12; k++) {
                int64_t L = offsets[i + 1] - offsets[i];
                const float *x = states[2] + offsets[i] * 12 + k;
                double want = 0;
                for (int64_t l = 0; l < L; l++)
                    want += (double)x[l * 12] / (double)L;
                if (pick != FIN_TEXT_MEAN)
                    want = (double)x[12 * (pick == FIN_TEXT_FIRST ? 0
                                           : pick == FIN_TEXT_AT  ? 1
                                                                  : L - 1)];
                assert_true(fabs((double)row[i * 12 + k] - want) < 1e-6);
            }
    }
    fin_text_pass far = {.states = rows, .pick = FIN_TEXT_AT, .at = 2};
    assert_int_equal(fin_text_encoder_run(e, p, &far, NULL, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "text 1 (from 0) has 2");
    free(block);
    fin_text_pieces_destroy(p);
    fin_text_encoder_destroy(e);
}

/* ---- folders that are refused ------------------------------------------------------------------------ */

static void refuses(fin_status expected, const char *part)
{
    fin_text_encoder *e = (void *)&err;
    err.message[0] = '\0';
    fin_status status = fin_text_encoder_open(&e, folder, &err);
    if (status != expected)
        fail_msg("%s: %s: %s", part, fin_status_name(status), err.message);
    assert_null(e);
    assert_message(&err, part);
}

/* The configuration with `from` replaced by `to`. */
static void change_config(const char *from, const char *to)
{
    size_t size;
    write_config(&models[0]);
    char *text = read_file(in_folder("config.json"), &size), all[2048];
    char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(all, sizeof all, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    write_text("config.json", all);
}

static void open__refuses_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *part;
    } bad[] = {
        {"\"bert\"", "\"roberta\"", "model_type is roberta; bert, distilbert and use-lite"},
        {"\"bert\"", "7", "model_type is missing"},
        {"\"hidden_size\":12", "\"hidden_size\":13", "no multiple of the heads"},
        {"\"hidden_size\":12", "\"hidden_size\":-3", "hidden_size is -3"},
        {"\"hidden_size\":12", "\"hidden_size\":1e99", "hidden_size is no whole number"},
        {"\"hidden_size\":12", "\"hidden_size\":15", "has not the shape"},
        {"\"gelu\"", "\"silu\"", "hidden_act is silu"},
        {"\"type_vocab_size\"", "\"position_embedding_type\":\"relative_key\",\"type_vocab_size\"",
         "position_embedding_type is relative_key"},
        {"\"type_vocab_size\"", "\"is_decoder\":true,\"type_vocab_size\"", "encoders are read"},
        {"\"layer_norm_eps\":1e-12", "\"layer_norm_eps\":-1", "layer_norm_eps"},
        {"\"vocab_size\":30", "\"vocab_size\":29", "vocab_size"},
        {"\"num_hidden_layers\":2", "\"num_hidden_layers\":3", "has no tensor"},
    };
    write_model(&models[0], F32);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        change_config(bad[i].from, bad[i].to);
        refuses(strstr(bad[i].part, "shape") || strstr(bad[i].part, "tensor") ? FIN_ERR_FORMAT
                                                                              : FIN_ERR_UNSUPPORTED,
                bad[i].part);
    }
    write_text("config.json", "[1]");
    refuses(FIN_ERR_FORMAT, "it is no object");
    write_text("config.json", "{\"a\":1,\"a\":2}");
    refuses(FIN_ERR_FORMAT, "duplicate");
    write_config(&models[0]);
    remove(in_folder("vocab.txt"));
    refuses(FIN_ERR_IO, "neither tokenizer.json nor vocab.txt");
    write_text("tokenizer.json", "{\"model\":{\"type\":\"BPE\"}}");
    refuses(FIN_ERR_UNSUPPORTED, "its model is 'BPE'");
    remove(in_folder("tokenizer.json"));
    write_text("vocab.txt", "a\nb\n");
    refuses(FIN_ERR_FORMAT, "has no [UNK]");
    write_vocabulary(&models[0]);
    remove(in_folder("model.safetensors"));
    refuses(FIN_ERR_IO, "no model.safetensors");
    remove(in_folder("config.json"));
    refuses(FIN_ERR_IO, "it has no config.json");
}

/* Every beginning of the weights' file, and offsets beyond it. */
static void open__refuses_weights_that_are_not_there(void **state)
{
    (void)state;
    size_t size;
    fin_text_encoder *e;
    write_model(&models[0], F16);
    char *data = read_file(in_folder("model.safetensors"), &size);
    for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 61) {
        write_file("model.safetensors", data, cut);
        assert_true(fin_text_encoder_open(&e, folder, &err) != FIN_OK);
        assert_null(e);
    }
    char *at = strstr(data + 8, "\"F16\"");
    assert_non_null(at);
    memcpy(at, "\"I16\"", 5);
    write_file("model.safetensors", data, size);
    refuses(FIN_ERR_UNSUPPORTED, "dtype I16; F32, F16 and BF16 are read");
    free(data);
}

static void pass__tells_of_states_that_are_not_finite(void **state)
{
    (void)state;
    float *states[8] = {NULL}, room[TEXTS * L_MOST * W_MOST];
    const model *m = &models[0];
    write_model(m, F32);
    for (int i = 0; i < tensor_count; i++)
        if (strstr(tensors[i].name, "word_embeddings"))
            tensors[i].x[11 * 12] = (double)INFINITY;
    write_tensors("bert.");
    fin_text_encoder *e = open_encoder();
    fin_text_pieces *p = cut_texts(e, TEXTS, texts);
    states[2] = room;
    fin_text_pass pass = {.states = states};
    assert_int_equal(fin_text_encoder_run(e, p, &pass, NULL, &err), FIN_ERR_NUMERIC);
    assert_message(&err, "text 2 (from 0) are not finite");
    fin_text_pieces_destroy(p);
    fin_text_encoder_destroy(e);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static fin_status open_and_run(void *user, fin_error *why)
{
    fin_text_encoder *e = NULL;
    fin_text_pieces *p = NULL;
    float pooled[TEXTS * W_MOST];
    (void)user;
    fin_status status = fin_text_encoder_open(&e, folder, why);
    if (!status)
        status = fin_text_pieces_cut(&p, e, TEXTS, texts, NULL, 0, why);
    fin_text_pass pass = {.pooled = pooled};
    if (!status)
        status = fin_text_encoder_run(e, p, &pass, NULL, why);
    fin_text_pieces_destroy(p);
    fin_text_encoder_destroy(e);
    return status;
}

static void faults__leave_nothing(void **state)
{
    (void)state;
    write_model(&models[0], BF16);
    fault_every(open_and_run, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pass__is_that_of_the_formulas),
        cmocka_unit_test_setup(pass__reads_half_precisions, empty_folder),
        cmocka_unit_test_setup(pass__same_bits_for_any_threads, empty_folder),
        cmocka_unit_test_setup(pass__a_text_is_itself_in_any_company, empty_folder),
        cmocka_unit_test_setup(pass__picks_a_row, empty_folder),
        cmocka_unit_test_setup(open__refuses_by_name, empty_folder),
        cmocka_unit_test_setup(open__refuses_weights_that_are_not_there, empty_folder),
        cmocka_unit_test_setup(pass__tells_of_states_that_are_not_finite, empty_folder),
        cmocka_unit_test_setup(faults__leave_nothing, empty_folder),
    };
    int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
    forget_tensors();
    return failed;
}
