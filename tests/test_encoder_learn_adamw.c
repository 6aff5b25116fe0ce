/* Steps of AdamW: against torch's, clipped or not, in several batches or one, of heads alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_encoder_learn_help.h"

/* ---- torch ----------------------------------------------------------------------------------- */

/* Made by tests/data/encoder_adamw.py. */
static const double known_loss[] = {3.20625792609, 3.1015262474,  2.90939930365,
                                    2.74008759019, 2.60803188736, 2.52687041749};
static const double known_norm[] = {1.77345240023, 1.61447214699,  1.34079284874,
                                    1.12126280045, 0.972685987738, 0.896543528709};
static const double known_rate[] = {0.025, 0.05, 0.05, 0.0441421356237, 0.03, 0.0158578643763};
static const double known_weights[] = {
    -0.824010673381, 0.0356121710303, -0.0336137249254, 0.399527737211, -0.0916264142731,
    -0.153756773132, 0.286109737754,  -0.214307703945,  -0.5,           0.375,
    -0.302331134659, -0.401548058521, 0.465693678826};
enum { STEPS = 6, WEIGHTS = 13 };

static const int64_t offsets[] = {0, 1, 3, 6, 10};
static float tokens[30];
static double labels[4];

static help_case linear_case(fin_memory *memory)
{
    help_case c = help_defaults("concept");
    for (int i = 0; i < 30; i++)
        tokens[i] = (float)(i * 5 % 13 - 6) / 4;
    for (int i = 0; i < 4; i++)
        labels[i] = i * 3 % 5 - 1.5;
    *memory = (fin_memory){
        .n = 4, .inputs = 3, .values = 1, .offsets = offsets, .tokens = tokens, .labels = labels};
    c.memory = memory;
    c.corpus_set.objective = FIN_OBJECTIVE_SUPERVISED;
    c.encoder_set.width = 2;
    c.encoder_set.heads = 1;
    c.encoder_set.layers = 0;
    c.encoder_set.norm = FIN_NORM_NONE;
    c.learn_set.steps = STEPS;
    c.learn_set.warmup = 2;
    c.learn_set.rate = 0.05;
    c.learn_set.final_rate = 0.2;
    c.learn_set.beta1 = 0.9;
    c.learn_set.beta2 = 0.99;
    c.learn_set.decay = 0.1;
    c.learn_set.clip = 0.5;
    c.learn_set.evaluate_every = 1;
    return c;
}

static void adamw__matches_torch(void **state)
{
    (void)state;
    fin_memory memory;
    help_case c = linear_case(&memory);
    help_open(&c);
    float *w = fin_encoder_weights(c.encoder);
    assert_int_equal(fin_encoder_parameters(c.encoder), WEIGHTS);
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = (float)(i * 7 % 11 - 5) / 8;
    help_run(&c, -1);
    const fin_learn_row *rows;
    assert_int_equal(fin_learn_log(c.learn, &rows), STEPS + 1);
    /* Single precision, a few hundred roundings, and torch's 1e-6 beside the norm. */
    for (int i = 0; i < WEIGHTS; i++)
        if (!(fabs((double)w[i] - known_weights[i]) < 1e-5))
            fail_msg("weight %d is %.9g, torch has %.9g", i, (double)w[i], known_weights[i]);
    assert_true(isnan(rows[0].loss) && isnan(rows[0].norm) && rows[0].rate == 0);
    for (int s = 0; s < STEPS; s++) {
        assert_int_equal(rows[s + 1].step, s + 1);
        assert_true(fabs(rows[s + 1].rate - known_rate[s]) < 1e-12);
        assert_true(fabs(rows[s + 1].loss - known_loss[s]) < 1e-5);
        assert_true(fabs(rows[s + 1].norm - known_norm[s]) < 1e-5);
        /* All four sequences are the test too: the loss before the next step. */
        assert_int_equal(rows[s].test.sequences, 4);
        assert_true(fabs(rows[s].test.loss - known_loss[s]) < 1e-5);
    }
    help_close(&c);
}

/* The gradient's norm of the first step is 1.77: a clip at that or beyond changes nothing. */
static void clip__only_long_gradients(void **state)
{
    (void)state;
    double moved[3];
    static const double clips[] = {0, 1e6, 0.5};
    for (int k = 0; k < 3; k++) {
        fin_memory memory;
        help_case c = linear_case(&memory);
        c.learn_set.clip = clips[k];
        help_open(&c);
        float *w = fin_encoder_weights(c.encoder);
        for (int i = 0; i < WEIGHTS; i++)
            w[i] = (float)(i * 7 % 11 - 5) / 8;
        help_run(&c, 1);
        moved[k] = 0;
        for (int i = 0; i < WEIGHTS; i++) {
            double m = (double)c.learn->moment_first[i] / (1 - 0.9);
            moved[k] += m * m;
        }
        help_close(&c);
    }
    assert_true(moved[0] == moved[1]);
    assert_true(fabs(sqrt(moved[0]) - known_norm[0]) < 1e-5);
    assert_true(fabs(sqrt(moved[2]) - 0.5) < 1e-6);
}

/* ---- batches --------------------------------------------------------------------------------- */

static float *first_moment(help_case *c, int64_t batch, int64_t accumulate, double *loss)
{
    c->learn_set.batch = batch;
    c->learn_set.accumulate = accumulate;
    c->learn_set.clip = 0;
    c->learn_set.rate = 0; /* nothing moves, and two steps are compared */
    help_open(c);
    help_run(c, 2);
    size_t size = (size_t)c->learn->parameters * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, c->learn->moment_first, size);
    *loss = c->learn->last_loss;
    return copy;
}

/* One batch of 16, or 4 of 4: the same gradient, up to the rounding of single precision. */
static void compare_batches(help_case *c)
{
    double loss[2];
    float *one = first_moment(c, 16, 1, &loss[0]);
    double far = 0, norm = 0, seen = c->learn->number[FINI_TOKENS_SEEN];
    help_close(c);
    float *four = first_moment(c, 4, 4, &loss[1]);
    assert_true(seen > 0 && c->learn->number[FINI_TOKENS_SEEN] == seen);
    for (int64_t i = 0; i < c->learn->parameters; i++) {
        double d = (double)one[i] - (double)four[i];
        far += d * d;
        norm += (double)one[i] * (double)one[i];
    }
    help_close(c);
    print_message("accumulated: off by %.1e\n", sqrt(far / norm));
    assert_true(norm > 0);
    assert_true(far < 1e-10 * norm);
    assert_true(fabs(loss[0] - loss[1]) < 1e-5 * loss[0]);
    free(one);
    free(four);
}

static void accumulate__is_a_larger_batch(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    compare_batches(&c);
}

/* Also where batches have different numbers of targets, or none at all. */
static void accumulate__weighs_by_targets(void **state)
{
    (void)state;
    enum { N = 16 };
    int64_t at[N + 1];
    float x[N * 3];
    double y[N];
    for (int i = 0; i <= N; i++)
        at[i] = i;
    for (int i = 0; i < N * 3; i++)
        x[i] = (float)(i * 5 % 13 - 6) / 4;
    for (int i = 0; i < N; i++)
        y[i] = i * 3 % 5 - 1.5;
    fin_memory memory = {.n = N, .inputs = 3, .values = 1, .offsets = at, .tokens = x, .labels = y};
    for (int i = 0; i < N; i++) { /* the first batch of four has no label, the second one has one */
        uint64_t number = fini_learn_order(N, 1, 0, (uint64_t)i);
        y[number] = i < 5 ? NAN : y[number];
    }
    help_case c = help_defaults("concept");
    c.memory = &memory;
    c.corpus_set.objective = FIN_OBJECTIVE_SUPERVISED;
    compare_batches(&c);
    /* A step without any target is refused, and nothing has changed. */
    c.learn_set.batch = 4;
    c.learn_set.accumulate = 1;
    help_open(&c);
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_learn_run(c.learn, -1, NULL, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "step 1"));
    assert_int_equal(fin_learn_step(c.learn), 0);
    help_close(&c);
}

/* An epoch is every sequence once: the gradients of the steps of one epoch have a mean that is the
 * gradient of all, if nothing moves (rate 0). */
static void epoch__is_every_sequence_once(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.corpus_set.samples = 12;
    c.learn_set.rate = 0;
    c.learn_set.batch = 4;
    c.learn_set.steps = 6;
    c.learn_set.evaluate_every = 3;
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    assert_int_equal(fin_learn_log(c.learn, &rows), 3);
    double first = rows[1].loss, second = rows[2].loss;
    help_close(&c);
    uint64_t order[4]; /* and the next epoch has an order of its own */
    help_open(&c);
    help_run(&c, 1);
    memcpy(order, c.learn->order, sizeof order);
    help_run(&c, 4);
    assert_memory_not_equal(order, c.learn->order, sizeof order);
    help_close(&c);
    c.learn_set.batch = 100; /* all 12 */
    help_open(&c);
    help_run(&c, 1);
    assert_int_equal(c.learn->batch, 12);
    double all = c.learn->last_loss;
    help_close(&c);
    assert_true(fabs(first - all) < 1e-5 * all);
    assert_true(fabs(second - all) < 1e-5 * all);
}

/* ---- what is trained ------------------------------------------------------------------------- */

static void train__heads_alone(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.learn_set.train = FIN_LEARN_HEADS;
    help_open(&c);
    int64_t n = fin_encoder_parameters(c.encoder), moved = 0;
    float *w = fin_encoder_weights(c.encoder), *before = malloc((size_t)n * sizeof *before);
    memcpy(before, w, (size_t)n * sizeof *before);
    help_run(&c, -1);
    for (int64_t i = 0; i < c.learn->tensors; i++) {
        int64_t at = fini_tensor_place(c.learn, i), size = fini_tensor_size(&c.learn->tensor[i]);
        bool head = strncmp(c.learn->tensor[i].name, "head.", 5) == 0;
        for (int64_t j = at; j < at + size; j++) {
            assert_true(head || w[j] == before[j]);
            moved += w[j] != before[j];
        }
    }
    assert_int_equal(moved, 8 + 1); /* all of the head: weights and bias */
    free(before);
    help_close(&c);
}

/* A head that has no targets in the corpus keeps its weights: no decay either. */
static void train__leaves_other_heads(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    fin_learn_destroy(c.learn);
    fin_encoder_destroy(c.encoder);
    fin_encoder_shape shape;
    fin_corpus_get_shape(c.corpus, &shape);
    shape.head[1] = shape.head[0];
    shape.heads = 2;
    snprintf(shape.head[0].name, sizeof shape.head[0].name, "values");
    fin_error err = {FIN_OK, ""};
    assert_false(fin_encoder_create(&c.encoder, &c.encoder_set, &shape, 5, &err));
    assert_false(
        fin_learn_create(&c.learn, &c.learn_set, c.encoder, c.corpus, NULL, NULL, 0, 1, &err));
    assert_int_equal(c.learn->head, 1);
    int64_t n = fin_encoder_parameters(c.encoder), moved = 0;
    float *w = fin_encoder_weights(c.encoder), *before = malloc((size_t)n * sizeof *before);
    memcpy(before, w, (size_t)n * sizeof *before);
    help_run(&c, -1);
    for (int64_t i = 0; i < c.learn->tensors; i++) {
        int64_t at = fini_tensor_place(c.learn, i), size = fini_tensor_size(&c.learn->tensor[i]);
        bool other = strncmp(c.learn->tensor[i].name, "head.values.", 12) == 0;
        for (int64_t j = at; j < at + size; j++)
            moved += other && w[j] != before[j];
    }
    assert_int_equal(moved, 0);
    free(before);
    help_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw__matches_torch),
        cmocka_unit_test(clip__only_long_gradients),
        cmocka_unit_test(accumulate__is_a_larger_batch),
        cmocka_unit_test(accumulate__weighs_by_targets),
        cmocka_unit_test(epoch__is_every_sequence_once),
        cmocka_unit_test(train__heads_alone),
        cmocka_unit_test(train__leaves_other_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
