/* Corpora of data that leave tokens out: one answer for all hidden values, and a random part of the
 * tokens for labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/encoder_probe.h"
#include "test_encoder_corpus_help.h"
#include "test_random_stats.h"

enum { N = 5, L = 8, INPUTS = 3, VALUES = 2 };
static int64_t offsets[N + 1];
static float tokens[N * L * INPUTS];
static double labels[N] = {0, 1, 2, 1, 0};

/* Token l of sequence i has the key l and the values (10 i + l) / 16 and -l / 16. */
static fin_memory sample(void)
{
    for (int i = 0; i <= N; i++)
        offsets[i] = i * L;
    for (int t = 0; t < N * L; t++) {
        tokens[t * INPUTS] = (float)(t % L);
        tokens[t * INPUTS + 1] = (float)(10 * (t / L) + t % L) / 16;
        tokens[t * INPUTS + 2] = -(float)(t % L) / 16;
    }
    return (fin_memory){.n = N,
                        .inputs = INPUTS,
                        .values = VALUES,
                        .offsets = offsets,
                        .tokens = tokens,
                        .labels = labels,
                        .classes = 3};
}

static fin_corpus *pooled(double share, int answer)
{
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.readout = FIN_READOUT_POOLED;
    s.answer = answer;
    s.share = share;
    return corpus_memory(&s, &m);
}

static fin_corpus *keeping(double keep)
{
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    s.keep = keep;
    return corpus_memory(&s, &m);
}

static void pooled__shows_some_and_asks_for_the_others(void **state)
{
    (void)state;
    static const struct {
        double share;
        int64_t hidden;
    } cases[] = {{0, 1}, {0.25, 2}, {0.5, 4}, {0.9, 7}, {1, 7}};
    for (int k = 0; k < 5; k++) {
        fin_corpus *corpus = pooled(cases[k].share, FIN_ANSWER_VALUE);
        fin_encoder_shape shape;
        fin_examples e = {0};
        fin_corpus_get_shape(corpus, &shape);
        assert_int_equal(shape.head[0].where, FIN_HEAD_POOLED);
        assert_int_equal(shape.head[0].size, L * VALUES);
        assert_string_equal(shape.head[0].name, "value");
        assert_true(shape.head[0].weight == 1 / (double)(cases[k].hidden * VALUES));
        assert_int_equal(fin_corpus_longest(corpus), L);
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            corpus_draw(corpus, 0, N, -1, epoch, 0, &e);
            assert_null(e.sequences.hidden);
            assert_int_equal(e.rows, N);
            assert_int_equal(e.tokens, N * (L - cases[k].hidden));
            for (int64_t i = 0; i < N; i++) {
                const double *y = e.targets + i * L * VALUES;
                int64_t t = e.sequences.offsets[i];
                for (int64_t l = 0; l < L; l++, y += VALUES) {
                    const float *x = e.sequences.tokens + t * INPUTS;
                    if (isnan(y[0])) { /* it is the next token */
                        assert_true(isnan(y[1]) && t < e.sequences.offsets[i + 1]);
                        assert_memory_equal(x, tokens + (i * L + l) * INPUTS, INPUTS * sizeof *x);
                        t++;
                    } else {
                        assert_true(y[0] * 16 == (double)(10 * i + l) && y[1] * 16 == -(double)l);
                    }
                }
                assert_int_equal(t, e.sequences.offsets[i + 1]);
            }
        }
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
    }
}

/* The same tokens as with one answer for each token: the readout changes what is asked alone. */
static void pooled__hides_what_tokens_would(void **state)
{
    (void)state;
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    fin_corpus *one = pooled(0.5, FIN_ANSWER_VALUE), *other = corpus_memory(&s, &m);
    fin_examples a = {0}, b = {0};
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        corpus_draw(one, 3, N, -1, epoch, 0, &a);
        corpus_draw(other, 3, N, -1, epoch, 0, &b);
        assert_memory_equal(a.targets, b.targets, N * L * VALUES * sizeof(double));
    }
    fin_examples_close(&a);
    fin_examples_close(&b);
    fin_corpus_destroy(one);
    fin_corpus_destroy(other);
}

static void keep__shares_are_uniform_and_tests_show_all(void **state)
{
    (void)state;
    enum { EPOCHS = 4000 };
    fin_corpus *corpus = keeping(0.25);
    fin_examples e = {0};
    stats_mean shown[L + 1] = {{0}}, token[L] = {{0}};
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        corpus_draw(corpus, 2, 1, -1, epoch, 0, &e);
        assert_true(e.targets[0] == 2);
        assert_null(e.sequences.hidden);
        for (int count = 0; count <= L; count++)
            stats_add(&shown[count], e.tokens == count);
        double seen[L] = {0}, last = -1;
        for (int64_t t = 0; t < e.tokens; t++) {
            double l = (double)e.sequences.tokens[t * INPUTS];
            assert_true(l > last); /* once, in their order */
            assert_true((double)e.sequences.tokens[t * INPUTS + 1] * 16 == 20 + l);
            seen[(int)(last = l)] = 1;
        }
        for (int l = 0; l < L; l++)
            stats_add(&token[l], seen[l]);
    }
    stats_begin(); /* (0.25 + 0.75 u) 8 rounded: 2 and 8 have half of what 3 .. 7 have, 1/6 */
    for (int count = 2; count <= L; count++)
        stats_z("count",
                stats_mean_z(&shown[count], count == 2 || count == L ? 1.0 / 12 : 1.0 / 6));
    for (int l = 0; l < L; l++)
        stats_z("token", stats_mean_z(&token[l], 0.625));
    stats_end("keeping");
    corpus_draw(corpus, FIN_TEST_FIRST, N, -1, 7, 0, &e);
    assert_int_equal(e.tokens, N * L);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
    corpus = keeping(0);
    for (uint64_t epoch = 0; epoch < 200; epoch++) {
        corpus_draw(corpus, 0, N, -1, epoch, 0, &e);
        for (int64_t i = 0; i < N; i++)
            assert_in_range(e.sequences.offsets[i + 1] - e.sequences.offsets[i], 1, L);
    }
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
}

/* A pass, its gradient and an evaluation with such targets; a Gaussian, too. The evaluation is the
 * mean of the pass's losses over the same sequences. */
static void pooled__is_learnt_and_judged(void **state)
{
    (void)state;
    for (int answer = 0; answer < 2; answer++) {
        fin_corpus *corpus = pooled(0.5, answer);
        fin_encoder_settings s;
        fin_encoder_shape shape;
        fin_encoder *encoder;
        fin_evaluation all;
        fin_examples e = {0};
        fin_pass pass = {.dtype = FIN_F32};
        fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
        s.width = 8;
        s.heads = 2;
        s.layers = 1;
        fin_corpus_get_shape(corpus, &shape);
        assert_int_equal(fin_encoder_create(&encoder, &s, &shape, 1, NULL), FIN_OK);
        corpus_draw(corpus, FIN_TEST_FIRST, 2 * N, -1, FIN_TEST_FIRST, 0, &e);
        pass.targets[0] = e.targets;
        assert_int_equal(fin_encoder_pass(encoder, &e.sequences, &pass, NULL), FIN_OK);
        assert_int_equal(pass.head_targets[0], 2 * N);
        assert_int_equal(
            fin_encoder_evaluate(encoder, corpus, FIN_TEST_FIRST, 2 * N, -1, &all, NULL, NULL),
            FIN_OK);
        assert_true(fabs(all.loss - pass.head_loss[0]) < 1e-9 * fabs(all.loss));
        assert_true(answer || fabs(all.risk - all.loss) < 1e-9 * all.loss);
        fin_learn_settings ls;
        fin_settings_defaults(&fin_learn_table, &ls, sizeof ls);
        ls.steps = 100;
        ls.rate = 0.03;
        ls.batch = N;
        ls.evaluate_on = N;
        fin_learn *learn;
        const fin_learn_row *rows;
        fin_error err = {FIN_OK, ""};
        assert_int_equal(fin_learn_create(&learn, &ls, encoder, corpus, NULL, NULL, 0, 1, &err),
                         FIN_OK);
        assert_int_equal(fin_learn_run(learn, -1, NULL, NULL, &err), FIN_OK);
        int64_t count = fin_learn_log(learn, &rows);
        assert_true(rows[count - 1].test.loss < 0.8 * rows[0].test.loss);
        fin_learn_destroy(learn);
        fin_examples_close(&e);
        fin_encoder_destroy(encoder);
        fin_corpus_destroy(corpus);
    }
}

static void places__cannot_be_told_by_numbers(void **state)
{
    (void)state;
    fin_corpus *corpora[] = {pooled(0.5, 0), keeping(0.5)};
    static const char *const words[] = {"readout = pooled", "keep < 1"};
    for (int k = 0; k < 2; k++) {
        fin_encoder_settings s;
        fin_encoder_shape shape;
        fin_encoder *encoder;
        fin_evaluation e;
        fin_error err = {FIN_OK, ""};
        fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
        fin_corpus_get_shape(corpora[k], &shape);
        s.positions = FIN_POSITIONS_SINUSOIDAL;
        assert_int_equal(fin_encoder_create(&encoder, &s, &shape, 1, &err), FIN_OK);
        assert_int_equal(
            fin_encoder_evaluate(encoder, corpora[k], FIN_TEST_FIRST, N, -1, &e, NULL, &err),
            FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, words[k]));
        fin_encoder_destroy(encoder);
        fin_corpus_destroy(corpora[k]);
    }
}

static void pooled__needs_equal_lengths(void **state)
{
    (void)state;
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    fin_corpus *corpus;
    fin_error err = {FIN_OK, ""};
    s.readout = FIN_READOUT_POOLED;
    int64_t other[] = {0, 8, 15, 24, 32, 40}, single[] = {0, 1, 2, 3, 4, 5};
    m.offsets = other;
    assert_int_equal(fin_corpus_memory(&corpus, &s, &m, 0, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "sequence 0 has 8 tokens and the longest 9"));
    m.offsets = single;
    assert_int_equal(fin_corpus_memory(&corpus, &s, &m, 0, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "at least 2 tokens"));
}

static fin_status run(void *user, fin_error *err)
{
    fin_corpus *corpus = NULL;
    fin_examples e = {0};
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.readout = FIN_READOUT_POOLED;
    fin_status status = fin_corpus_memory(&corpus, &s, user, 1, err);
    if (!status)
        status = fin_corpus_draw(corpus, 0, N, -1, 0, 0, &e, err);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
    return status;
}

static void pooled__survives_failing_allocations(void **state)
{
    (void)state;
    fin_memory m = sample();
    assert_int_equal(fault_every(run, &m), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooled__shows_some_and_asks_for_the_others),
        cmocka_unit_test(pooled__hides_what_tokens_would),
        cmocka_unit_test(keep__shares_are_uniform_and_tests_show_all),
        cmocka_unit_test(pooled__is_learnt_and_judged),
        cmocka_unit_test(places__cannot_be_told_by_numbers),
        cmocka_unit_test(pooled__needs_equal_lengths),
        cmocka_unit_test(pooled__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
