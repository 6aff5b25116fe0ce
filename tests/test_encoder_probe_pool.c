/* What a sequence's representation is made of for a probe: mean, largest, tokens, all layers; the
 * probe's own map, and a head that starts there. The features are made again here from the states
 * of a pass, and the fit with them must have the same score. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/encoder_probe.h"
#include "test_encoder_corpus_help.h"
#include "encoder/probe.h"

enum { N = 90, L = 3, INPUTS = 2, WIDTH = 4, LAYERS = 2 };
static int64_t offsets[N + 1];
static float tokens[N * L * INPUTS];
static double labels[N];
static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

/* The label is a number of all tokens; classes: its sign. */
static fin_memory sample(int64_t classes)
{
    fin_random_normals_f32(4, FIN_STREAM_USER, 0, 0, N * L * INPUTS, tokens);
    for (int i = 0; i < N; i++) {
        offsets[i + 1] = L * (i + 1);
        const float *x = tokens + i * L * INPUTS;
        labels[i] = (double)(fmaxf(fmaxf(x[0], x[2]), x[4]) + 0.3f * x[1] - 0.2f * x[5]) - 0.7;
        if (classes)
            labels[i] = i % 10 == 9 ? NAN : labels[i] > 0;
    }
    return (fin_memory){N, INPUTS, 1, offsets, tokens, labels, classes};
}

static fin_corpus *corpus_of(const fin_memory *m, double keep)
{
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    s.keep = keep;
    return corpus_memory(&s, m);
}

static fin_encoder *encoder_of(const fin_corpus *corpus)
{
    fin_encoder_settings s;
    fin_encoder_shape shape;
    fin_encoder *encoder;
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    fin_corpus_get_shape(corpus, &shape);
    s.width = WIDTH;
    s.heads = 2;
    s.layers = LAYERS;
    OK(fin_encoder_create(&encoder, &s, &shape, 5, &err));
    return encoder;
}

/* Features of all sequences by hand: (N, p) in `x`; returns p. */
static int64_t features(const fin_encoder *encoder, int pool, int64_t first, int64_t last,
                        double *x)
{
    static const int64_t one[] = {WIDTH, WIDTH, 2 * WIDTH, L * WIDTH};
    int64_t p = one[pool] * (last - first + 1);
    double states[N * L * WIDTH];
    fin_sequences s = {N, offsets, tokens, NULL};
    for (int64_t layer = first; layer <= last; layer++) {
        fin_pass pass = {.dtype = FIN_F32, .layer = layer, .states = states};
        OK(fin_encoder_pass(encoder, &s, &pass, &err));
        for (int i = 0; i < N; i++)
            for (int j = 0; j < WIDTH; j++) {
                const double *t = states + i * L * WIDTH + j;
                double *to = x + i * p + (layer - first) * one[pool] + j;
                double mean = (t[0] + t[WIDTH] + t[2 * WIDTH]) / 3;
                double most = fmax(fmax(t[0], t[WIDTH]), t[2 * WIDTH]);
                if (pool == FIN_POOL_TOKENS)
                    for (int l = 0; l < L; l++)
                        to[l * WIDTH] = t[l * WIDTH];
                else
                    *to = pool == FIN_POOL_MAX ? most : mean;
                if (pool == FIN_POOL_BOTH)
                    to[WIDTH] = most;
            }
    }
    return p;
}

/* With every row to fit and the same rows to judge the probe has to be that of the features. */
static void pools__are_what_they_say(void **state)
{
    (void)state;
    fin_memory m = sample(0);
    fin_corpus *corpus = corpus_of(&m, 0.5), *same = corpus_of(&m, 1);
    fin_encoder *encoder = encoder_of(corpus);
    static const int64_t layers[] = {-2, -1, 0, 1};
    static double x[N * L * WIDTH * (LAYERS + 1)], out[N];
    for (int pool = 0; pool < 4; pool++)
        for (int k = 0; k < 4; k++) {
            int64_t first = layers[k] == -2 ? 0 : layers[k] == -1 ? LAYERS : layers[k];
            int64_t last = layers[k] < 0 ? LAYERS : layers[k];
            int64_t p = features(encoder, pool, first, last, x);
            fin_probe *probe;
            fin_probe_score score;
            fin_probe_settings s;
            fin_settings_defaults(&fin_probe_table, &s, sizeof s);
            s.layer = layers[k];
            s.pool = pool;
            s.penalty = 0.01;
            OK(fin_encoder_probe_on(encoder, corpus, same, &s, &score, NULL, 0, NULL, &err));
            assert_true(score.train == N && score.test == N);
            OK(fin_probe_fit(&probe, N, p, x, 0, 1, labels, 0.01, &err));
            OK(fini_probe_predict(probe, N, x, out, &err));
            double squares = 0;
            for (int i = 0; i < N; i++)
                squares += (out[i] - labels[i]) * (out[i] - labels[i]) / N;
            assert_true(fabs(score.rmse - sqrt(squares)) < 1e-6);
            fin_probe_destroy(probe);
        }
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    fin_corpus_destroy(same);
}

static void tokens__need_equal_lengths(void **state)
{
    (void)state;
    fin_memory m = sample(0);
    offsets[1] = 2;
    fin_corpus *corpus = corpus_of(&m, 1);
    fin_encoder *encoder = encoder_of(corpus);
    fin_probe_score score;
    fin_probe_settings s;
    fin_settings_defaults(&fin_probe_table, &s, sizeof s);
    s.pool = FIN_POOL_TOKENS;
    assert_int_equal(fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "differ in length"));
    s.pool = FIN_POOL_BOTH;
    OK(fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, NULL, &err));
    s.layer = -3;
    assert_int_equal(fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, NULL, &err),
                     FIN_ERR_ARGUMENT);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
}

static void weights__are_the_map(void **state)
{
    (void)state;
    double x[10 * 3], y[10], W[6], b[2], out[10 * 2];
    for (int i = 0; i < 10; i++) {
        for (int j = 0; j < 3; j++)
            x[i * 3 + j] = 5 + sin(i * 1.7 + j * 2.3) * (j + 1);
        y[i] = x[i * 3] + x[i * 3 + 1] > 10;
    }
    fin_probe *probe;
    OK(fin_probe_fit(&probe, 10, 3, x, 2, 1, y, 0.1, &err));
    fini_probe_weights(probe, W, b);
    OK(fini_probe_predict(probe, 10, x, out, &err));
    for (int i = 0; i < 10; i++) {
        double f[2];
        for (int c = 0; c < 2; c++) {
            f[c] = b[c];
            for (int j = 0; j < 3; j++)
                f[c] += W[c * 3 + j] * x[i * 3 + j];
        }
        assert_true(fabs(out[i * 2] - 1 / (1 + exp(f[1] - f[0]))) < 1e-12);
    }
    fin_probe_destroy(probe);
}

/* The head's answers are the probe's, for classes (some without labels) and for numbers; nothing
 * else of the encoder changes. */
static void head__starts_at_the_probe(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        fin_memory m = sample(classes);
        fin_corpus *corpus = corpus_of(&m, 0.3);
        fin_encoder *encoder = encoder_of(corpus);
        static double x[N * WIDTH], known[N * WIDTH], y[N], out[N * 2], answers[N * 2];
        int64_t count = fin_encoder_parameters(encoder), rows = 0, own = classes ? 2 : 1;
        float *before = malloc((size_t)count * sizeof *before);
        assert_non_null(before);
        memcpy(before, fin_encoder_weights(encoder), (size_t)count * sizeof *before);
        features(encoder, FIN_POOL_MEAN, LAYERS, LAYERS, x);
        for (int i = 0; i < N; i++) {
            if (isnan(labels[i]))
                continue;
            memcpy(known + rows * WIDTH, x + i * WIDTH, WIDTH * sizeof *x);
            y[rows++] = labels[i];
        }
        fin_probe *probe;
        OK(fin_probe_fit(&probe, rows, WIDTH, known, classes, 1, y, 0.01, &err));
        OK(fini_probe_predict(probe, N, x, out, &err));
        OK(fin_encoder_start_head(encoder, corpus, 0.01, NULL, &err));
        fin_sequences s = {N, offsets, tokens, NULL};
        fin_pass pass = {.dtype = FIN_F32, .answers = {answers}};
        OK(fin_encoder_pass(encoder, &s, &pass, &err));
        for (int i = 0; i < N; i++) {
            const double *f = answers + i * own;
            double got = classes ? 1 / (1 + exp(f[1] - f[0])) : f[0];
            assert_true(fabs(got - out[i * own]) < 1e-4);
        }
        int64_t head = own * WIDTH + own; /* the head's are the last tensors */
        assert_memory_equal(before, fin_encoder_weights(encoder),
                            (size_t)(count - head) * sizeof *before);
        fin_probe_destroy(probe);
        fin_encoder_destroy(encoder);
        fin_corpus_destroy(corpus);
        free(before);
    }
}

static void head__refuses_what_has_no_probe(void **state)
{
    (void)state;
    fin_memory m = sample(0);
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    s.answer = FIN_ANSWER_GAUSSIAN;
    for (int k = 0; k < 2; k++) {
        fin_corpus *corpus = corpus_memory(&s, &m);
        fin_encoder *encoder = encoder_of(corpus);
        assert_int_equal(fin_encoder_start_head(encoder, corpus, FIN_AUTO, NULL, &err),
                         FIN_ERR_UNSUPPORTED);
        fin_encoder_destroy(encoder);
        fin_corpus_destroy(corpus);
        s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    }
}

static fin_status run(void *user, fin_error *e)
{
    fin_corpus *corpus = NULL;
    fin_encoder *encoder = NULL;
    fin_encoder_shape shape;
    fin_encoder_settings es;
    fin_probe_settings ps;
    fin_probe_score score;
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_settings_defaults(&fin_encoder_table, &es, sizeof es);
    fin_settings_defaults(&fin_probe_table, &ps, sizeof ps);
    es.width = es.heads = es.layers = 1;
    ps.pool = FIN_POOL_BOTH;
    ps.layer = -2;
    ps.penalty = 1;
    fin_status status = fin_corpus_memory(&corpus, &s, user, 1, e);
    if (!status) {
        fin_corpus_get_shape(corpus, &shape);
        status = fin_encoder_create(&encoder, &es, &shape, 1, e);
    }
    if (!status)
        status = fin_encoder_probe_on(encoder, corpus, NULL, &ps, &score, NULL, 0, NULL, e);
    if (!status)
        status = fin_encoder_start_head(encoder, corpus, 1, NULL, e);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    return status;
}

static void both__survive_failing_allocations(void **state)
{
    (void)state;
    fin_memory m = sample(2);
    fin_threads_set(1);
    assert_true(fault_every(run, &m) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools__are_what_they_say),
        cmocka_unit_test(tokens__need_equal_lengths),
        cmocka_unit_test(weights__are_the_map),
        cmocka_unit_test(head__starts_at_the_probe),
        cmocka_unit_test(head__refuses_what_has_no_probe),
        cmocka_unit_test(both__survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
