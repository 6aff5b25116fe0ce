/* The commands encoder and pretrain: that an encoder of their settings comes out as by hand, that
 * numbers mean what they say, and what every command must do: same bytes again and with any threads,
 * cancelling, faults, refusals. Sizes are tiny: how well encoders learn is for the study
 * learning_encoder. */
#include "test_command.h"

#include "lab/readout.h"

#define SMALL                                                                                      \
    " width=8 heads=2 layers=1 hidden=8 L=6 M=3 d=2 steps=12 batch=8 test=50 evaluate_on=20"
static const char cme[] =
    "encoder attention=cme norm=none hidden=0 width=16 heads=2 layers=1 d=2 L=12 M=8 steps=150 "
    "batch=16 rate=0.01 decay=0 test=300 evaluate_on=20 evaluate_every=150 lengths=2,4,12,48";
static const char pre[] = "pretrain" SMALL " labels=4,16 repetitions=3 scratch_steps=8";

/* ---- encoder --------------------------------------------------------------------------------- */

static void encoder__outputs_are_what_comes(void **state)
{
    (void)state;
    static const char *const runs[] = {
        "encoder" SMALL " lengths=2,4",
        "encoder family=concepts objective=supervised concepts=3 covariates=2 outcomes=2 width=8 "
        "heads=2 layers=1 hidden=8 L=6 steps=3 batch=4 test=50 evaluate_on=20",
        "encoder family=slr d=3 L=4 width=8 heads=2 layers=1 hidden=8 steps=3 batch=4 test=50 "
        "evaluate_on=20 locate=40",
    };
    expect_outputs("encoder", runs, 3);
}

/* The library's calls by hand give the same numbers. */
static void encoder__as_by_hand(void **state)
{
    (void)state;
    fin_result *r = run(cme);
    const fin_command *command;
    void *values;
    assert_int_equal(apply(cme, &command, &values, &err), FIN_OK);
    const fini_learner_values *v = values; /* they stand first */
    fini_learner o;
    fin_evaluation e;
    assert_int_equal(fini_learner_open(&o, v, &err), FIN_OK);
    assert_int_equal(fin_learn_run(o.learn, -1, NULL, NULL, &err), FIN_OK);
    uint64_t first = FIN_TEST_FIRST + (UINT64_C(1) << 43);
    assert_int_equal(fin_encoder_evaluate(o.encoder, o.corpus, first, 300, -1, &e, NULL, &err),
                     FIN_OK);
    assert_true(scalar(r, "risk").value == e.risk && scalar(r, "bayes").value == e.bayes);
    assert_true(scalar(r, "excess").value == e.excess && scalar(r, "excess").error == e.excess_se);
    assert_true(scalar(r, "quotient").value == e.risk / e.bayes);
    assert_true(scalar(r, "correlation").value == e.correlation);
    assert_int_equal(scalar(r, "parameters").value, fin_encoder_parameters(o.encoder));
    assert_int_equal(scalar(r, "steps_taken").value, 150);
    assert_int_equal(fin_encoder_evaluate(o.encoder, o.corpus, first, 300, 4, &e, NULL, &err),
                     FIN_OK);
    assert_true(numbers(r, "length_risk", 4, 0)[1] == e.risk);
    assert_true(numbers(r, "length_bayes", 4, 0)[1] == e.bayes);
    assert_true(numbers(r, "length_risk_error", 4, 0)[1] == e.risk_se && e.risk_se > 0);
    double part =
        (e.excess_se + fabs(e.quotient - 1) * e.bayes_se) / e.bayes; /* both at their worst */
    assert_true(fabs(numbers(r, "length_quotient_error", 4, 0)[1] - part) < 1e-12 * part);
    assert_true(numbers(r, "length", 4, 0)[3] == 48);
    const fin_learn_row *row;
    assert_int_equal(fin_learn_log(o.learn, &row), 2);
    assert_true(numbers(r, "step", 2, 0)[1] == 150);
    assert_true(numbers(r, "step_excess", 2, 0)[1] == row[1].test.quotient - 1);
    assert_true(numbers(r, "step_excess_error", 2, 0)[1] > 0);
    assert_true(isnan(numbers(r, "step_loss", 2, 0)[0]));
    fini_learner_close(&o);
    free(values);
    fin_result_destroy(r);
}

/* It learns: near Bayes where it started far from it; and what sums up the lengths agrees with
 * their rows. */
static void encoder__learns_and_sums_up_lengths(void **state)
{
    (void)state;
    fin_result *r = run(cme);
    const double *q = numbers(r, "length_quotient", 4, 0), *risk = numbers(r, "length_risk", 4, 0);
    const double *bayes = numbers(r, "length_bayes", 4, 0);
    double worst = 0, falls = 0;
    for (int i = 0; i < 4; i++) {
        assert_true(q[i] == risk[i] / bayes[i]);
        worst = fmax(worst, q[i]);
        falls += i > 0 && risk[i] < risk[i - 1];
        assert_true(i == 0 || bayes[i] < bayes[i - 1]);
    }
    assert_true(scalar(r, "greatest_quotient").value == worst);
    assert_true(scalar(r, "shortest_quotient").value == q[0]);
    assert_true(scalar(r, "longest_quotient").value == q[3]);
    assert_true(scalar(r, "falling").value == falls / 3);
    assert_true(scalar(r, "bayes_falling").value == 1);
    assert_true(q[2] == scalar(r, "quotient").value); /* 12 is the length of training */
    print_message("quotient %.3f after %.3f\n", q[2], 1 + numbers(r, "step_excess", 2, 0)[0]);
    assert_true(q[2] < 1.5 && numbers(r, "step_excess", 2, 0)[0] > 2);
    assert_true(scalar(r, "quotient").error > 0 && scalar(r, "quotient").error < 0.1);
    fin_result_destroy(r);
}

static void encoder__tokens_of_a_task(void **state)
{
    (void)state;
    fin_result *r = run("encoder family=slr d=3 L=4 gamma=1 eps=0.1 width=8 heads=2 layers=1 "
                        "hidden=8 steps=0 test=2000 evaluate_on=20");
    /* Not a step: predictions of about 0, so that the risk is about Var y = gamma^2 + eps^2. */
    double risk = scalar(r, "risk").value, bayes = scalar(r, "bayes").value;
    print_message("slr: %.3f, Bayes %.3f\n", risk, bayes);
    assert_true(risk > 0.8 && risk < 1.3 && bayes > 0.01 && bayes < risk);
    assert_true(missing(r, "accuracy") && missing(r, "falling"));
    fin_result_destroy(r);
}

/* ---- pretrain -------------------------------------------------------------------------------- */

static void pretrain__outputs_are_what_comes(void **state)
{
    (void)state;
    static const char *const runs[] = {pre};
    expect_outputs("pretrain", runs, 1);
    fin_result *r = run("pretrain" SMALL " labels=4 repetitions=2 scratch_steps=0");
    assert_true(missing(r, "wins") && missing(r, "scratch_few"));
    assert_true(scalar(r, "head_few").value == scalar(r, "head_many").value);
    fin_result_destroy(r);
}

/* Labels have variance prior + label_noise, and the head of a cme encoder that has learnt a little
 * is better than one on its first weights. */
static void pretrain__labels_and_heads(void **state)
{
    (void)state;
    fin_result *r =
        run("pretrain attention=cme norm=none hidden=0 width=16 heads=2 layers=1 d=2 L=12 M=8 "
            "steps=150 batch=16 rate=0.01 decay=0 test=2000 evaluate_on=20 labels=8,64 "
            "repetitions=6 scratch_steps=10 scratch_rates=1 prior=2 label_noise=0.5 "
            "representation=answers");
    double variance = scalar(r, "variance").value, z = (variance / 2.5 - 1) / sqrt(2 / 2000.0);
    print_message("variance z = %.2f, bayes %.3f, head %.4f %.4f, first weights %.4f %.4f\n", z,
                  scalar(r, "bayes").value, scalar(r, "head_few").value,
                  scalar(r, "head_many").value, scalar(r, "random_few").value,
                  scalar(r, "random_many").value);
    assert_true(fabs(z) < 5);
    /* Var(y | tokens) is above the label's noise, and well below Var y. */
    assert_true(scalar(r, "bayes").value > 0.5 && scalar(r, "bayes").value < 0.6);
    assert_true(scalar(r, "head_many").value < 0.5 * scalar(r, "random_many").value);
    assert_true(scalar(r, "head_many").value < scalar(r, "head_few").value);
    const double *head = numbers(r, "head", 2, 0), *scratch = numbers(r, "scratch", 2, 0);
    double wins = (head[0] < scratch[0]) + (head[1] < scratch[1]);
    assert_true(scalar(r, "wins").value == wins / 2);
    assert_true(numbers(r, "labels", 2, 0)[1] == 64);
    fin_result_destroy(r);
}

/* Rows are answers at unit keys: those of a sequence with the prompts written by hand. */
static void readout__asks_at_unit_keys(void **state)
{
    (void)state;
    const fin_command *command;
    void *values;
    fini_learner o;
    fini_readout answers = {.x = NULL}, states = {.x = NULL}, pooled = {.x = NULL};
    assert_int_equal(apply("encoder objective=supervised" SMALL, &command, &values, &err), FIN_OK);
    fini_learner_values *v = values;
    v->corpus.objective = FIN_OBJECTIVE_MASKED;
    v->corpus.M = 2; /* as many as keys */
    assert_int_equal(fini_learner_open(&o, v, &err), FIN_OK);
    fin_corpus *labelled;
    v->corpus.objective = FIN_OBJECTIVE_SUPERVISED;
    assert_int_equal(fin_corpus_latent(&labelled, &v->corpus, o.latent, 1, &err), FIN_OK);
    assert_int_equal(
        fini_readout_make(&answers, FINI_READOUT_ANSWERS, o.encoder, labelled, 5, 300, &err),
        FIN_OK);
    assert_int_equal(
        fini_readout_make(&states, FINI_READOUT_PROMPTS, o.encoder, labelled, 5, 300, &err),
        FIN_OK);
    assert_int_equal(
        fini_readout_make(&pooled, FINI_READOUT_POOLED, o.encoder, labelled, 5, 300, &err), FIN_OK);
    assert_int_equal(answers.columns, 2);
    assert_int_equal(states.columns, 16);
    assert_int_equal(pooled.columns, 8);
    /* Sequence 5 + 270 is in the second chunk. */
    fin_examples e = {0};
    assert_int_equal(fin_corpus_draw(labelled, 275, 1, -1, 0, FIN_EXAMPLES_BAYES, &e, &err),
                     FIN_OK);
    float tokens[8 * 3] = {0};
    memcpy(tokens, e.sequences.tokens, 6 * 3 * sizeof(float));
    tokens[6 * 3] = tokens[7 * 3 + 1] = 1;
    const int64_t offsets[2] = {0, 8};
    const uint8_t hidden[8] = {0, 0, 0, 0, 0, 0, 1, 1};
    double out[8], state_of[8 * 8];
    fin_sequences s = {.n = 1, .offsets = offsets, .tokens = tokens, .hidden = hidden};
    fin_pass pass = {.dtype = FIN_F32, .layer = 1, .states = state_of};
    pass.answers[0] = out;
    assert_int_equal(fin_encoder_pass(o.encoder, &s, &pass, &err), FIN_OK);
    for (int j = 0; j < 2; j++)
        assert_true(fabs(answers.x[270 * 2 + j] - out[6 + j]) < 1e-6);
    for (int j = 0; j < 16; j++)
        assert_true(fabs(states.x[270 * 16 + j] - state_of[6 * 8 + j]) < 1e-5);
    assert_true(answers.y[270] == e.targets[0] && answers.bayes[270] == e.bayes[0]);
    assert_true(fabs(out[6] - out[7]) > 1e-6); /* they are different questions */
    fin_examples_close(&e);
    fini_readout_close(&answers);
    fini_readout_close(&states);
    fini_readout_close(&pooled);
    fin_corpus_destroy(labelled);
    fini_learner_close(&o);
    free(values);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void wholes__lists(void **state)
{
    (void)state;
    int64_t n[FINI_WHOLES];
    int count;
    static const char *const good[] = {"", "4", "4,8", " 4 , 8", "-3,0,9"};
    static const int counts[] = {0, 1, 2, 2, 3};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fini_parse_wholes(good[i], "x", -5, 100, n, &count, &err), FIN_OK);
        assert_int_equal(count, counts[i]);
    }
    assert_int_equal(n[2], 9);
    static const char *const bad[] = {"4,",  ",4",  "4;8",  "x",   "8,4",
                                      "4,4", "101", "-6,1", "4.5", "99999999999999999999",
                                      "4 8", "4,,8"};
    for (int i = 0; i < 12; i++)
        if (!fini_parse_wholes(bad[i], "x", -5, 100, n, &count, &err))
            fail_msg("'%s' was taken", bad[i]);
    char many[512] = "0";
    for (int i = 1; i <= FINI_WHOLES; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    assert_int_equal(fini_parse_wholes(many, "x", 0, 100, n, &count, &err), FIN_ERR_ARGUMENT);
    char text[32] = " 04, +8", wrong[32] = "8, 4";
    fini_word_tidy(&(fin_word){.size = sizeof text, .kind = FIN_WORD_WHOLES}, text);
    fini_word_tidy(&(fin_word){.size = sizeof wrong, .kind = FIN_WORD_WHOLES}, wrong);
    assert_string_equal(text, "4,8");
    assert_string_equal(wrong, "8, 4");
}

static void jobs__refuse(void **state)
{
    (void)state;
    expect_refused("encoder family=concpt", "did you mean concept?");
    expect_refused("encoder lengths=8,4", "ascending");
    expect_refused("encoder objective=supervised lengths=0,4", "from 1");
    expect_refused("encoder family=slr lengths=4", "leave it out");
    expect_refused("encoder family=slr M=4", "");
    expect_refused("encoder positions=learned lengths=4", "learned positions");
    expect_refused("encoder locate=10", "has no location");
    expect_refused("encoder family=slr locate=1", "at least 2");
    expect_refused("encoder family=slr L_min=3 locate=10", "leave L_min out");
    expect_refused("encoder family=slr m=2 locate=10", "m = 1");
    expect_refused("encoder family=slr attention=cme locate=10", "attention = softmax");
    expect_refused("encoder width=10 heads=4", "multiple of");
    expect_refused("encoder optimizer=lbfgs", "fixed sample");
    expect_refused("encoder family=process objective=supervised", "no label");
    expect_refused("pretrain family=concepts", "concept, mean, counts");
    expect_refused("pretrain labels=", "how many");
    expect_refused("pretrain labels=2", "labels");
    expect_refused("pretrain objective=supervised", "leave objective");
    expect_refused("pretrain samples=10", "samples out");
    expect_refused("pretrain positions=learned", "learned positions");
}

/* ---- what every command must do ------------------------------------------------------------------ */

static const char *const each[] = {"encoder" SMALL " lengths=2,4", pre};

static void expect_same(const fin_result *a, const fin_result *b)
{
    for (int i = 0; i < fin_result_scalar_count(a); i++) {
        fin_scalar x = fin_result_get_scalar(a, i), y = fin_result_get_scalar(b, i);
        assert_memory_equal(&x.value, &y.value, sizeof x.value);
    }
    for (int i = 0; i < fin_result_series_count(a); i++) {
        fin_series x = fin_result_get_series(a, i), y = fin_result_get_series(b, i);
        assert_int_equal(x.shape[0], y.shape[0]);
        assert_memory_equal(x.data, y.data, (size_t)x.shape[0] * sizeof(double));
    }
}

static void jobs__same_bytes_with_any_threads(void **state)
{
    (void)state;
    int before = fin_threads_get();
    for (int i = 0; i < 2; i++) {
        fin_threads_set(1);
        fin_result *a = run(each[i]);
        fin_threads_set(3);
        fin_result *b = run(each[i]);
        expect_same(a, b);
        fin_result_destroy(a);
        fin_result_destroy(b);
    }
    fin_threads_set(before);
}

static int stop_after(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return --*(int *)user < 0;
}

static void jobs__cancel(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int calls = 0; calls < 40; calls += 9) {
            int left = calls;
            fin_progress progress = {stop_after, &left};
            fin_result *r = fin_result_create();
            assert_int_equal(run_into(each[i], r, &progress, &err), FIN_ERR_CANCELLED);
            fin_result_destroy(r);
        }
}

static fin_status run_once(void *user, fin_error *error)
{
    fin_result *r = fin_result_create();
    if (!r)
        return fini_fail_memory(error, 1, "a result");
    fin_status status = run_into(user, r, NULL, error);
    if (!status)
        status = fini_result_status(r, error);
    fin_result_destroy(r);
    return status;
}

static void jobs__faults(void **state)
{
    (void)state;
    char *tiny[] = {"encoder width=2 heads=1 layers=1 hidden=2 L=2 M=2 d=1 steps=1 batch=2 test=2 "
                    "evaluate_on=2 lengths=1",
                    "pretrain width=2 heads=1 layers=1 hidden=2 L=2 M=2 d=1 steps=1 batch=2 test=2 "
                    "evaluate_on=2 labels=4 repetitions=2 scratch_steps=1 scratch_rates=1",
                    "encoder family=slr width=2 heads=1 layers=1 hidden=2 L=2 d=2 steps=1 batch=2 "
                    "test=2 evaluate_on=2 locate=20"};
    fin_threads_set(1);
    for (int i = 0; i < 3; i++)
        assert_true(fault_every(run_once, tiny[i]) > 20);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoder__outputs_are_what_comes),
        cmocka_unit_test(encoder__as_by_hand),
        cmocka_unit_test(encoder__learns_and_sums_up_lengths),
        cmocka_unit_test(encoder__tokens_of_a_task),
        cmocka_unit_test(pretrain__outputs_are_what_comes),
        cmocka_unit_test(pretrain__labels_and_heads),
        cmocka_unit_test(readout__asks_at_unit_keys),
        cmocka_unit_test(wholes__lists),
        cmocka_unit_test(jobs__refuse),
        cmocka_unit_test(jobs__same_bytes_with_any_threads),
        cmocka_unit_test(jobs__cancel),
        cmocka_unit_test(jobs__faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
