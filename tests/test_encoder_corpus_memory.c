/* Corpora of sequences in memory: hiding, labels, and hostile arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_encoder_corpus_help.h"
#include "test_random_stats.h"

enum { N = 4, INPUTS = 3, VALUES = 2, TOKENS = 17 };
static const int64_t offsets[N + 1] = {0, 1, 3, 13, TOKENS};
static float tokens[TOKENS * INPUTS];
static double labels[N] = {1, NAN, 0, 2};

static fin_memory sample(void)
{
    for (int i = 0; i < TOKENS * INPUTS; i++)
        tokens[i] = (float)(i + 1);
    return (fin_memory){.n = N,
                        .inputs = INPUTS,
                        .values = VALUES,
                        .offsets = offsets,
                        .tokens = tokens,
                        .labels = labels,
                        .classes = 3};
}

static int64_t hidden_of(const fin_examples *e, int64_t i)
{
    int64_t count = 0;
    for (int64_t t = e->sequences.offsets[i]; t < e->sequences.offsets[i + 1]; t++)
        count += e->sequences.hidden[t];
    return count;
}

/* Hidden values are targets and zeros, keys stay, the others are as they were; nothing of the
 * caller's changes. */
static void masked__moves_hidden_values_only(void **state)
{
    (void)state;
    fin_memory m = sample();
    float before[TOKENS * INPUTS];
    memcpy(before, tokens, sizeof before);
    fin_corpus *corpus = corpus_memory(NULL, &m);
    fin_examples e = {0};
    assert_false(fin_corpus_has_bayes(corpus));
    assert_int_equal(fin_corpus_sequences(corpus), N);
    assert_int_equal(fin_corpus_longest(corpus), 10);
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        corpus_draw(corpus, 0, N, -1, epoch, FIN_EXAMPLES_BAYES | FIN_EXAMPLES_POSTERIOR, &e);
        assert_null(e.bayes);
        assert_null(e.z);
        assert_int_equal(e.rows, TOKENS);
        for (int64_t t = 0; t < TOKENS; t++)
            for (int64_t j = 0; j < INPUTS; j++) {
                float x = e.sequences.tokens[t * INPUTS + j], own = before[t * INPUTS + j];
                if (j < INPUTS - VALUES) {
                    assert_true(x == own);
                    continue;
                }
                double target = e.targets[t * VALUES + j - (INPUTS - VALUES)];
                assert_true(e.sequences.hidden[t] ? x == 0 && target == (double)own
                                                  : x == own && isnan(target));
            }
    }
    assert_memory_equal(before, tokens, sizeof before);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
}

static void masked__hides_the_share_and_at_least_one(void **state)
{
    (void)state;
    fin_memory m = sample();
    struct {
        double share;
        int64_t count[N];
    } cases[] = {{0, {1, 1, 1, 1}}, {0.3, {1, 1, 3, 1}}, {0.5, {1, 1, 5, 2}}, {1, {1, 2, 10, 4}}};
    for (int k = 0; k < 4; k++) {
        fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
        s.share = cases[k].share;
        fin_corpus *corpus = corpus_memory(&s, &m);
        fin_examples e = {0};
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            corpus_draw(corpus, 0, N, -1, epoch, 0, &e);
            for (int64_t i = 0; i < N; i++)
                assert_int_equal(hidden_of(&e, i), cases[k].count[i]);
        }
        fin_examples_close(&e);
        fin_corpus_destroy(corpus);
    }
}

/* Every token of sequence 2 is hidden equally often, pairs too; epochs and numbers differ. */
static void masked__hides_uniformly(void **state)
{
    (void)state;
    enum { EPOCHS = 4000, L = 10 };
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_MASKED);
    s.share = 0.3;
    fin_corpus *corpus = corpus_memory(&s, &m);
    stats_mean one[L] = {{0}}, pair = {0}, again = {0}, other = {0};
    fin_examples e = {0};
    uint8_t last[L] = {0};
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        corpus_draw(corpus, 2, N + 1, -1, epoch, 0, &e); /* number 6 is sequence 2 again */
        const uint8_t *h = e.sequences.hidden, *twin = h + e.sequences.offsets[N];
        for (int l = 0; l < L; l++)
            stats_add(&one[l], h[l]);
        stats_add(&pair, h[0] && h[9]);
        stats_add(&again, h[4] && last[4]);
        stats_add(&other, h[4] && twin[4]);
        memcpy(last, h, sizeof last);
    }
    stats_begin();
    for (int l = 0; l < L; l++)
        stats_z("one", stats_mean_z(&one[l], 0.3));
    stats_z("pair", stats_mean_z(&pair, 3.0 / 10 * 2 / 9));
    stats_z("two epochs", stats_mean_z(&again, 0.09));
    stats_z("two numbers", stats_mean_z(&other, 0.09));
    stats_end("hiding");
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
}

static void pick__wraps_and_is_pure(void **state)
{
    (void)state;
    fin_memory m = sample();
    static const uint64_t few[] = {6, FIN_TEST_FIRST + 1, 2, 6};
    for (int objective = 0; objective < 2; objective++) {
        fin_corpus_settings s = corpus_defaults(objective);
        fin_corpus *corpus = corpus_memory(&s, &m);
        fin_examples a = {0}, b = {0};
        assert_int_equal(fin_corpus_pick(corpus, few, 4, -1, 3, 0, &a, NULL), FIN_OK);
        corpus_draw(corpus, 6, 1, -1, 3, 0, &b);
        assert_true(corpus_same(corpus, &a, 0, &b, 0));
        assert_true(corpus_same(corpus, &a, 3, &b, 0));
        corpus_draw(corpus, 2, 1, -1, 3, 0, &b);
        assert_true(corpus_same(corpus, &a, 2, &b, 0));
        assert_int_equal(a.sequences.offsets[2] - a.sequences.offsets[1], 2); /* sequence 1 */
        fin_examples_close(&a);
        fin_examples_close(&b);
        fin_corpus_destroy(corpus);
    }
}

static void supervised__labels_are_the_caller_s(void **state)
{
    (void)state;
    fin_memory m = sample();
    fin_encoder_shape shape;
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_corpus *corpus = corpus_memory(&s, &m);
    fin_examples e = {0};
    fin_corpus_get_shape(corpus, &shape);
    assert_int_equal(shape.head[0].kind, FIN_HEAD_CLASSES);
    assert_int_equal(shape.head[0].size, 3);
    assert_int_equal(shape.values, VALUES);
    corpus_draw(corpus, 0, N, -1, 0, 0, &e);
    assert_null(e.sequences.hidden);
    assert_memory_equal(e.sequences.tokens, tokens, sizeof tokens);
    for (int i = 0; i < N; i++)
        assert_true(isnan(labels[i]) ? isnan(e.targets[i]) : e.targets[i] == labels[i]);
    fin_corpus_destroy(corpus);
    m.classes = 0;
    m.values = 0; /* nothing can be hidden, but nothing is */
    s.answer = FIN_ANSWER_GAUSSIAN;
    corpus = corpus_memory(&s, &m);
    fin_corpus_get_shape(corpus, &shape);
    assert_int_equal(shape.head[0].kind, FIN_HEAD_GAUSSIAN);
    assert_int_equal(shape.head[0].size, 1);
    fin_corpus_destroy(corpus);
    fin_examples_close(&e);
}

/* The first `samples` sequences are then all that there are. */
static void samples__are_the_first_ones(void **state)
{
    (void)state;
    fin_memory m = sample();
    fin_corpus_settings s = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    s.samples = 2;
    fin_corpus *corpus = corpus_memory(&s, &m);
    fin_examples e = {0};
    assert_int_equal(fin_corpus_sequences(corpus), 2);
    assert_int_equal(fin_corpus_longest(corpus), 2);
    corpus_draw(corpus, 0, 4, -1, 0, 0, &e);
    assert_int_equal(e.tokens, 6);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
    s.samples = 100;
    corpus = corpus_memory(&s, &m);
    assert_int_equal(fin_corpus_sequences(corpus), N);
    fin_corpus_destroy(corpus);
}

static void refuse(const fin_memory *m, int objective, const char *word)
{
    fin_corpus *corpus = (fin_corpus *)labels;
    fin_corpus_settings s = corpus_defaults(objective);
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_corpus_memory(&corpus, &s, m, 0, &err), FIN_ERR_ARGUMENT);
    assert_null(corpus);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
}

static void create__refuses_hostile_arrays(void **state)
{
    (void)state;
    const int masked = FIN_OBJECTIVE_MASKED, supervised = FIN_OBJECTIVE_SUPERVISED;
    const fin_memory good = sample();
    fin_memory m = good;
    m.n = 0;
    refuse(&m, masked, "0 sequences");
    m.n = -5;
    refuse(&m, masked, "-5 sequences");
    m = good;
    m.tokens = NULL;
    refuse(&m, masked, "no arrays");
    m = good;
    m.inputs = 0;
    refuse(&m, masked, "0 columns");
    m = good;
    m.values = INPUTS + 1;
    refuse(&m, masked, "4 of the 3");
    m.values = -1;
    refuse(&m, supervised, "-1 of the 3");
    m.values = 0;
    refuse(&m, masked, "nothing to hide");
    int64_t bad[N + 1] = {0, 1, 1, 13, TOKENS};
    m = good;
    m.offsets = bad;
    refuse(&m, masked, "sequence 1 goes from token 1 to 1");
    bad[2] = -9;
    refuse(&m, masked, "sequence 1");
    bad[2] = 3;
    bad[0] = 1;
    refuse(&m, masked, "begin with 1");
    bad[0] = 0;
    bad[N] = INT64_MAX / 2;
    refuse(&m, masked, "too many");
    m = good;
    tokens[4 * INPUTS + 1] = INFINITY;
    refuse(&m, masked, "token 1 of sequence 2 has inf in column 1");
    tokens[4 * INPUTS + 1] = 0;
}

static void create__refuses_hostile_labels(void **state)
{
    (void)state;
    const int supervised = FIN_OBJECTIVE_SUPERVISED;
    const fin_memory good = sample();
    fin_memory m = good;
    double other[N] = {0, NAN, 3, 1};
    m.labels = other;
    refuse(&m, supervised, "sequence 2 is 3");
    other[2] = 0.5;
    refuse(&m, supervised, "0.5");
    other[2] = -1;
    refuse(&m, supervised, "-1");
    other[2] = INFINITY;
    refuse(&m, supervised, "inf");
    m.classes = 0;
    refuse(&m, supervised, "infinite");
    other[0] = other[1] = other[2] = other[3] = NAN;
    refuse(&m, supervised, "none of the 4");
    m.labels = NULL;
    refuse(&m, supervised, "no labels");
    m = good;
    m.classes = 1;
    refuse(&m, supervised, "1 classes");
    m.classes = -2;
    refuse(&m, supervised, "-2 classes");
}

static fin_status run(void *user, fin_error *err)
{
    fin_corpus *corpus = NULL;
    fin_examples e = {0};
    fin_status status = fin_corpus_memory(&corpus, NULL, user, 1, err);
    if (!status)
        status = fin_corpus_draw(corpus, 0, N, -1, 0, 0, &e, err);
    fin_examples_close(&e);
    fin_corpus_destroy(corpus);
    return status;
}

static void corpus__survives_failing_allocations(void **state)
{
    (void)state;
    fin_memory m = sample();
    assert_int_equal(fault_every(run, &m), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked__moves_hidden_values_only),
        cmocka_unit_test(masked__hides_the_share_and_at_least_one),
        cmocka_unit_test(masked__hides_uniformly),
        cmocka_unit_test(pick__wraps_and_is_pure),
        cmocka_unit_test(supervised__labels_are_the_caller_s),
        cmocka_unit_test(samples__are_the_first_ones),
        cmocka_unit_test(create__refuses_hostile_arrays),
        cmocka_unit_test(create__refuses_hostile_labels),
        cmocka_unit_test(corpus__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
