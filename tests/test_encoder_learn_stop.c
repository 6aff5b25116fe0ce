/* How learning ends: early, at numbers that are not finite, at the minimum (L-BFGS). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_encoder_learn_help.h"

/* ---- early stopping -------------------------------------------------------------------------- */

/* A small fixed sample and a large rate: it gets worse on others soon. */
static help_case worse(void)
{
    help_case c = help_defaults("concept");
    c.corpus_set.samples = 4;
    c.learn_set.rate = 0.05;
    c.learn_set.steps = 400;
    c.learn_set.evaluate_every = 5;
    c.learn_set.evaluate_on = 100;
    return c;
}

static void patience__goes_back_to_the_best(void **state)
{
    (void)state;
    help_case c = worse();
    c.learn_set.patience = 15;
    c.learn_set.evaluate_every = 1; /* it waits for a while, then gets better again */
    c.learn_set.batch = 2;          /* since gradients are noisy */
    c.corpus_set.samples = 64;
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    int64_t n = fin_learn_log(c.learn, &rows), best = 0;
    int64_t worse_ones = 0;
    for (int64_t i = 1; i < n; i++) {
        bool better = rows[i].test.loss < rows[best].test.loss;
        worse_ones += !better;
        best = better ? i : best;
    }
    assert_true(worse_ones > 15);
    assert_true(fin_learn_done(c.learn));
    assert_true(fin_learn_step(c.learn) < 400);
    assert_true(best > 0);
    assert_int_equal(best, n - 1 - 15);
    assert_int_equal(rows[n - 1].step, fin_learn_step(c.learn));
    fin_evaluation now;
    fin_error err = {FIN_OK, ""};
    assert_false(
        fin_encoder_evaluate(c.encoder, c.corpus, FIN_TEST_FIRST, 100, -1, &now, NULL, &err));
    assert_true(now.loss == rows[best].test.loss);
    int64_t step = fin_learn_step(c.learn);
    help_run(&c, -1); /* it has ended */
    assert_int_equal(fin_learn_step(c.learn), step);
    help_close(&c);
}

static void patience__at_the_end_too(void **state)
{
    (void)state;
    help_case c = worse();
    c.learn_set.patience = 1000;
    c.learn_set.steps = 200;
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    int64_t n = fin_learn_log(c.learn, &rows), best = 0;
    for (int64_t i = 1; i < n; i++)
        best = rows[i].test.loss < rows[best].test.loss ? i : best;
    assert_true(best < n - 1);
    fin_evaluation now;
    fin_error err = {FIN_OK, ""};
    assert_false(
        fin_encoder_evaluate(c.encoder, c.corpus, FIN_TEST_FIRST, 100, -1, &now, NULL, &err));
    assert_true(now.loss == rows[best].test.loss);
    help_close(&c);
    c.learn_set.patience = 0; /* never: the last weights stay */
    help_open(&c);
    help_run(&c, -1);
    n = fin_learn_log(c.learn, &rows);
    assert_false(
        fin_encoder_evaluate(c.encoder, c.corpus, FIN_TEST_FIRST, 100, -1, &now, NULL, &err));
    assert_true(now.loss == rows[n - 1].test.loss);
    help_close(&c);
}

/* ---- numbers that are not finite ------------------------------------------------------------- */

static float *weights_copy(const help_case *c)
{
    size_t size = (size_t)fin_encoder_parameters(c->encoder) * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, fin_encoder_weights(c->encoder), size);
    return copy;
}

static void expect_numeric(help_case *c, const char *step, const char *tensor)
{
    float *before = weights_copy(c);
    int64_t at = fin_learn_step(c->learn), n = fin_encoder_parameters(c->encoder);
    help_bytes state = help_all(c);
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_learn_run(c->learn, -1, NULL, NULL, &err);
    if (status != FIN_ERR_NUMERIC || !strstr(err.message, step) || !strstr(err.message, tensor))
        fail_msg("status '%s', message '%s'", fin_status_name(status), err.message);
    assert_int_equal(fin_learn_step(c->learn), at);
    assert_memory_equal(before, fin_encoder_weights(c->encoder), (size_t)n * sizeof *before);
    help_bytes after = help_all(c);
    /* L-BFGS that has not begun has looked at its first point. */
    assert_true(c->learn_set.optimizer == FIN_OPTIMIZER_LBFGS || help_same(&state, &after));
    free(before);
    free(state.data);
    free(after.data);
}

static float *tensor_of(help_case *c, const char *name)
{
    for (int64_t i = 0; i < c->learn->tensors; i++)
        if (strcmp(c->learn->tensor[i].name, name) == 0)
            return fin_encoder_weights(c->encoder) + fini_tensor_place(c->learn, i);
    fail_msg("no tensor %s", name);
    return NULL;
}

static void numeric__names_step_and_weight(void **state)
{
    (void)state;
    static const char *const names[] = {"input.weight", "layer.0.ff1.weight", "head.value.bias"};
    for (int k = 0; k < 3; k++) {
        help_case c = help_defaults("concept");
        help_open(&c);
        help_run(&c, 6);
        tensor_of(&c, names[k])[1 - (k == 2)] = NAN;
        expect_numeric(&c, "step 7", names[k]);
        help_close(&c);
    }
}

/* Every one of loss and gradient is looked at, by itself. */
static void numeric__looks_at_loss_and_gradient(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    double *g = calloc((size_t)c.learn->parameters, sizeof *g), norm;
    fin_error err = {FIN_OK, ""};
    g[0] = 3;
    g[c.learn->parameters - 1] = 4;
    assert_int_equal(fini_learn_finite(c.learn, 1, g, &norm, &err), FIN_OK);
    assert_true(norm == 5);
    assert_int_equal(fini_learn_finite(c.learn, NAN, g, &norm, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "step 1: the loss of head 'value' is nan"));
    assert_int_equal(fini_learn_finite(c.learn, INFINITY, g, &norm, &err), FIN_ERR_NUMERIC);
    g[c.learn->parameters - 1] = -INFINITY;
    assert_int_equal(fini_learn_finite(c.learn, 1, g, &norm, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "gradient of 'head.value.bias'"));
    free(g);
    help_close(&c);
}

/* Weights are finite; a number on the way overflows. */
static void numeric__names_step_and_gradient(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.learn_set.clip = 0;
    help_open(&c);
    help_run(&c, 6);
    float *head = tensor_of(&c, "head.value.weight");
    for (int i = 0; i < 8; i++)
        head[i] = 3e38f;
    expect_numeric(&c, "step 7", "gradient of 'input.weight'");
    help_close(&c);
}

/* The update itself: decay alone takes a weight beyond what a float holds. Its column of the tokens
 * is 0, so that nothing else has noticed it. */
static void numeric__undoes_an_update(void **state)
{
    (void)state;
    static const int64_t at[] = {0, 1, 2};
    static const float x[] = {1, 0, 2, 0};
    static const double y[] = {1, 2};
    fin_memory memory = {.n = 2, .inputs = 2, .offsets = at, .tokens = x, .labels = y};
    help_case c = help_defaults("concept");
    c.memory = &memory;
    c.corpus_set.objective = FIN_OBJECTIVE_SUPERVISED;
    c.encoder_set.layers = 0;
    c.encoder_set.norm = FIN_NORM_NONE;
    c.learn_set.rate = 100;
    c.learn_set.warmup = 100;
    c.learn_set.decay = 10;
    help_open(&c);
    help_run(&c, 1);
    tensor_of(&c, "input.weight")[1] = 3e37f;
    expect_numeric(&c, "step 2", "new weight of 'input.weight'");
    help_close(&c);
}

static void numeric__lbfgs(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.corpus_set.samples = 20;
    c.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
    help_open(&c);
    help_run(&c, 0);
    tensor_of(&c, "layer.0.ff1.weight")[0] = INFINITY;
    expect_numeric(&c, "step 1", "layer.0.ff1.weight");
    help_close(&c);
}

/* ---- L-BFGS ---------------------------------------------------------------------------------- */

enum { N = 40, D = 3 };

/* Normal equations of y = b0 + b.x by Gauss elimination; returns the mean squared error. */
static double least_squares(const float *x, const double *y)
{
    double A[D + 1][D + 2] = {{0}}, b[D + 1], rss = 0;
    for (int i = 0; i < N; i++) {
        double row[D + 2] = {1, (double)x[i * D], (double)x[i * D + 1], (double)x[i * D + 2], y[i]};
        for (int j = 0; j <= D; j++)
            for (int k = 0; k < D + 2; k++)
                A[j][k] += row[j] * row[k];
    }
    for (int j = 0; j <= D; j++)
        for (int k = 0; k <= D; k++) {
            double f = k == j ? 0 : A[k][j] / A[j][j];
            for (int l = j; l < D + 2; l++)
                A[k][l] -= f * A[j][l];
        }
    for (int j = 0; j <= D; j++)
        b[j] = A[j][D + 1] / A[j][j];
    for (int i = 0; i < N; i++) {
        double f = b[0];
        for (int j = 0; j < D; j++)
            f += b[j + 1] * (double)x[i * D + j];
        rss += (y[i] - f) * (y[i] - f);
    }
    return rss / N;
}

/* Without layers and norms the encoder is a linear map of a token: whatever L-BFGS does with its
 * two factors, it ends at the least squares. */
static void lbfgs__reaches_least_squares(void **state)
{
    (void)state;
    static float x[N * D];
    static double y[N];
    static int64_t at[N + 1];
    for (int i = 0; i < N; i++) {
        at[i + 1] = i + 1;
        for (int j = 0; j < D; j++)
            x[i * D + j] = (float)((i * 7 + j * 11 + i * i * (j + 2)) % 29 - 14) / 8;
        y[i] = (i * 13 % 17 - 8) / 4.0 + (double)x[i * D];
    }
    fin_memory memory = {.n = N, .inputs = D, .values = 1, .offsets = at, .tokens = x, .labels = y};
    for (int heads = 0; heads <= 1; heads++) {
        help_case c = help_defaults("concept");
        c.memory = &memory;
        c.corpus_set.objective = FIN_OBJECTIVE_SUPERVISED;
        c.encoder_set.layers = 0;
        c.encoder_set.norm = FIN_NORM_NONE;
        c.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
        c.learn_set.train = heads ? FIN_LEARN_HEADS : FIN_LEARN_ALL;
        c.learn_set.steps = 500;
        c.learn_set.evaluate_on = N;
        help_open(&c);
        help_run(&c, -1);
        /* What is not trained is where it was. */
        fin_encoder *first;
        HELP_OK(fin_encoder_create(&first, &c.encoder_set, fin_encoder_get_shape(c.encoder), 5,
                                   &help_err));
        int same = memcmp(fin_encoder_weights(first), fin_encoder_weights(c.encoder),
                          D * (size_t)c.encoder_set.width * sizeof(float));
        assert_int_equal(same == 0, heads);
        fin_encoder_destroy(first);
        double best = least_squares(x, y), loss = c.learn->search.value;
        print_message("L-BFGS: %.12g after %lld steps, least squares %.12g\n", loss,
                      (long long)fin_learn_step(c.learn), best);
        assert_true(fin_learn_done(c.learn));
        assert_true(fin_learn_step(c.learn) < 500);
        assert_true(fabs(loss - best) < 1e-9 * best);
        const fin_learn_row *rows;
        int64_t n = fin_learn_log(c.learn, &rows);
        /* The encoder has those weights, in single precision. */
        assert_true(fabs(rows[n - 1].test.loss - best) < 1e-4 * best);
        assert_int_equal(rows[n - 1].step, fin_learn_step(c.learn));
        /* It ends there, too, if it was interrupted before. */
        int64_t end = fin_learn_step(c.learn);
        help_bytes whole = help_all(&c);
        help_close(&c);
        help_open(&c);
        help_run(&c, end / 2);
        help_state half = help_save(&c);
        help_close(&c);
        help_open(&c);
        help_load(&c, &half);
        help_run(&c, -1);
        help_bytes pieces = help_all(&c);
        assert_true(help_same(&whole, &pieces));
        free(whole.data);
        free(pieces.data);
        help_drop(&half);
        help_close(&c);
    }
}

static void lbfgs__needs_a_sample(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(help_try(&c, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "samples = 0"));
    assert_null(c.learn);
    help_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patience__goes_back_to_the_best),
        cmocka_unit_test(patience__at_the_end_too),
        cmocka_unit_test(numeric__names_step_and_weight),
        cmocka_unit_test(numeric__looks_at_loss_and_gradient),
        cmocka_unit_test(numeric__names_step_and_gradient),
        cmocka_unit_test(numeric__undoes_an_update),
        cmocka_unit_test(numeric__lbfgs),
        cmocka_unit_test(lbfgs__reaches_least_squares),
        cmocka_unit_test(lbfgs__needs_a_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
