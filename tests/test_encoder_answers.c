/* Known answers of a pass: what attention does, what heads lose, what maps and states are. */
#include "test_encoder_help.h"

/* ---- attention ------------------------------------------------------------------------------- */

/* An encoder that is ridge regression: tokens (k, v) with k in R^2; queries and keys are k, values
 * are v, and the answer to a hidden token is added where its value would stand. */
static fin_encoder *ridge_encoder(double ridge)
{
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = {.inputs = 3, .values = 1, .heads = 1};
    shape.head[0] = (fin_head){"value", FIN_HEAD_VALUE, FIN_HEAD_TOKENS, 1, 1};
    s.width = 3;
    s.heads = 1;
    s.layers = 1;
    s.hidden = 0;
    s.attention = FIN_ENCODER_CME;
    s.norm = FIN_NORM_NONE;
    fin_encoder *o = make_encoder(&s, &shape, 1);
    memset(fin_encoder_weights(o), 0, (size_t)fin_encoder_parameters(o) * sizeof(float));
    for (int i = 0; i < 3; i++)
        tensor(o, "input.weight")[4 * i] = 1;
    float *in = tensor(o, "layer.0.attention.in.weight");
    in[0] = in[4] = 1;  /* queries: rows 0 and 1 */
    in[9] = in[13] = 1; /* keys: rows 3 and 4 */
    in[8 * 3 + 2] = 1;  /* values: row 8 */
    tensor(o, "layer.0.attention.out.weight")[8] = 1;
    tensor(o, "layer.0.attention.ridge")[0] = (float)log(ridge);
    tensor(o, "head.value.weight")[2] = 1;
    return o;
}

/* The posterior mean of v = <b, k> + noise, b ~ N(0, 1), noise variance `ridge`: Cramer's rule. */
static void cme__is_the_posterior_mean_of_a_linear_concept(void **state)
{
    (void)state;
    enum { L = 6, SEEN = 4 };
    float tokens[L * 3];
    uint8_t hidden[L] = {0, 1, 0, 0, 1, 0};
    int64_t offsets[2] = {0, L};
    double answers[L], maps[L * L], A[3] = {0.25, 0, 0.25}, b[2] = {0, 0};
    fin_random_normals_f32(3, FIN_STREAM_USER, 0, 0, L * 3, tokens);
    for (int l = 0; l < L; l++) {
        const float *t = tokens + 3 * l;
        if (hidden[l])
            continue;
        A[0] += (double)t[0] * t[0];
        A[1] += (double)t[0] * t[1];
        A[2] += (double)t[1] * t[1];
        b[0] += (double)t[0] * t[2];
        b[1] += (double)t[1] * t[2];
    }
    double det = A[0] * A[2] - A[1] * A[1];
    double mean[2] = {(A[2] * b[0] - A[1] * b[1]) / det, (A[0] * b[1] - A[1] * b[0]) / det};
    fin_encoder *o = ridge_encoder(0.25);
    for (int k = 0; k < 2; k++) {
        fin_pass pass = {.dtype = k ? FIN_F64 : FIN_F32, .answers = {answers}, .maps = maps};
        run_pass(o, &(fin_sequences){1, offsets, tokens, hidden}, &pass);
        for (int l = 0; l < L; l++) {
            const float *t = tokens + 3 * l;
            double f = mean[0] * t[0] + mean[1] * t[1], weighted = 0;
            for (int m = 0; m < L; m++) {
                weighted += maps[l * L + m] * (double)tokens[3 * m + 2];
                assert_true(!hidden[m] || maps[l * L + m] == 0);
            }
            /* log(0.25) as float, and K'K as float, are good to 1e-7. */
            assert_true(fabs(answers[l] - (hidden[l] ? f : f + (double)t[2])) < 1e-6);
            assert_true(fabs(weighted - f) < 1e-6);
        }
    }
    fin_encoder_destroy(o);
}

static void softmax__maps_are_weights(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 8, 20, 6);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    int64_t all = 0;
    for (int64_t i = 0; i < a.s.n; i++)
        all += (a.offsets[i + 1] - a.offsets[i]) * (a.offsets[i + 1] - a.offsets[i]);
    double *maps = numbers(all), *map = maps;
    fin_pass pass = {.dtype = FIN_F32, .maps = maps, .layer = 1, .map_head = 1};
    run_pass(o, &a.s, &pass);
    for (int64_t i = 0; i < a.s.n; i++) {
        int64_t at = a.offsets[i], L = a.offsets[i + 1] - at, seen = 0;
        for (int64_t l = 0; l < L; l++)
            seen += !a.hidden[at + l];
        for (int64_t l = 0; l < L; l++, map += L) {
            double sum = 0;
            for (int64_t m = 0; m < L; m++) {
                assert_true(a.hidden[at + m] ? map[m] == 0 : map[m] > 0);
                sum += map[m];
            }
            assert_true(seen ? fabs(sum - 1) < 1e-5 : sum == 0);
        }
    }
    free(maps);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* Where nothing is visible attention adds its bias alone: queries, keys and values, and the map of
 * answers, cannot matter. */
static void all_hidden__attention_adds_its_bias_alone(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    float tokens[15];
    uint8_t hidden[3] = {1, 1, 1};
    int64_t offsets[2] = {0, 3};
    double first[6], second[6];
    fin_random_normals_f32(3, FIN_STREAM_USER, 0, 0, 15, tokens);
    for (int attention = 0; attention < 2; attention++) {
        fin_encoder_settings s = small_settings();
        s.attention = attention;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        fin_pass pass = {.dtype = FIN_F32, .answers = {first}};
        run_pass(o, &(fin_sequences){1, offsets, tokens, hidden}, &pass);
        for (int i = 0; i < 24 * 8; i++)
            tensor(o, "layer.0.attention.in.weight")[i] += 1;
        for (int i = 0; i < 8 * 8; i++)
            tensor(o, "layer.1.attention.out.weight")[i] -= 1;
        pass.answers[0] = second;
        run_pass(o, &(fin_sequences){1, offsets, tokens, hidden}, &pass);
        assert_memory_equal(first, second, sizeof first);
        tensor(o, "layer.1.attention.out.bias")[0] += 1;
        run_pass(o, &(fin_sequences){1, offsets, tokens, hidden}, &pass);
        assert_memory_not_equal(first, second, sizeof first);
        for (int i = 0; i < 6; i++)
            assert_true(isfinite(second[i]));
        fin_encoder_destroy(o);
    }
}

/* ---- heads and states ------------------------------------------------------------------------ */

static double loss_by_hand(const fin_head *head, const double *f, const double *y)
{
    double loss = 0, sum = 0;
    for (int64_t j = 0; j < head->size; j++) {
        double off = head->kind == FIN_HEAD_CLASSES ? 0 : f[j] - y[j];
        if (isnan(off))
            continue;
        double t = head->kind == FIN_HEAD_GAUSSIAN ? f[head->size + j] : 0;
        loss += head->kind == FIN_HEAD_GAUSSIAN ? (off * off / exp(t) + t) / 2 : off * off;
        sum += exp(f[j]);
    }
    return head->kind == FIN_HEAD_CLASSES ? log(sum) - f[(int)y[0]] : loss;
}

static void losses__are_those_of_the_answers(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 8, 20, 6);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    double *answers[4], *losses = numbers(a.tokens), whole = 0;
    fin_pass pass = make_pass(&a, FIN_F32);
    for (int h = 0; h < 4; h++)
        pass.answers[h] = answers[h] = numbers(4 * a.tokens);
    pass.losses = losses;
    run_pass(o, &a.s, &pass);
    for (int h = 0; h < 4; h++) {
        const fin_head *head = &shape.head[h];
        int64_t n = head->where == FIN_HEAD_TOKENS ? a.tokens : a.s.n, count = 0;
        int64_t m = fin_head_targets(head), k = fin_head_answers(head);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const double *y = a.targets[h] + i * m;
            bool none = true;
            for (int64_t j = 0; j < m; j++)
                none = none && isnan(y[j]);
            double loss = none ? NAN : loss_by_hand(head, answers[h] + i * k, y);
            sum += none ? 0 : loss;
            count += !none;
            if (h == 0)
                assert_true(none ? isnan(losses[i]) : fabs(losses[i] - loss) < 1e-12);
        }
        assert_true(count > 0);
        assert_int_equal(pass.head_targets[h], count);
        assert_true(fabs(pass.head_loss[h] - sum / (double)count) < 1e-12);
        whole += head->weight * pass.head_loss[h];
        free(answers[h]);
    }
    assert_true(fabs(pass.loss - whole) < 1e-12);
    free(losses);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* Probabilities of classes, values in units of their own, variances in place of their logarithms. */
static void answers__say_what_they_mean(void **state)
{
    (void)state;
    const fin_head classes = {.kind = FIN_HEAD_CLASSES, .size = 3},
                   gaussian = {.kind = FIN_HEAD_GAUSSIAN, .size = 2};
    fin_error e;
    double p[] = {0, log(2), log(5), 800, 0, 800}, f[] = {1, 2, 0, log(3)};
    const double center[] = {10, 20}, scale[] = {2, 0.5};
    assert_int_equal(fin_head_say(&classes, 2, NULL, NULL, p, &e), FIN_OK);
    assert_true(fabs(p[0] - 0.125) < 1e-15 && fabs(p[2] - 0.625) < 1e-15);
    assert_true(p[3] == 0.5 && p[4] < 1e-300);
    assert_int_equal(fin_head_say(&gaussian, 1, center, scale, f, &e), FIN_OK);
    assert_true(f[0] == 10.5 && f[1] == 24 && f[2] == 0.25 && fabs(f[3] - 12) < 1e-14);
    assert_int_equal(fin_head_say(&gaussian, 1, NULL, NULL, f, &e), FIN_OK);
    assert_true(f[0] == 10.5 && fabs(f[2] - exp(0.25)) < 1e-15);
}

static void gaussian__log_variances_stay_within_bounds(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 3, 5, 6);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    double *answers = numbers(2 * a.tokens), *gradient = numbers(fin_encoder_parameters(o));
    for (int side = -1; side <= 1; side += 2) {
        float *bias = tensor(o, "head.gauss.bias");
        int64_t at = bias + 1 - fin_encoder_weights(o);
        bias[1] = (float)(1000 * side);
        fin_pass pass = {.dtype = FIN_F32, .gradient = gradient};
        pass.targets[1] = a.targets[1];
        pass.answers[1] = answers;
        run_pass(o, &a.s, &pass);
        for (int64_t i = 0; i < a.tokens; i++)
            assert_true(answers[2 * i + 1] == 20 * side);
        assert_true(isfinite(pass.loss));
        assert_true(gradient[at] == 0 && gradient[at - 1] != 0);
    }
    free(answers);
    free(gradient);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* The end: norm of x, H r + h = answers; the mean over visible tokens is pooled. After 0 layers x
 * is the map of the token. */
static void states__are_what_answers_are_made_of(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 6, 20, 6);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    int64_t w = s.width;
    double *states = numbers(a.tokens * w), *pooled = numbers(a.s.n * w);
    double *answers = numbers(2 * a.tokens), label[18];
    fin_pass pass = {.dtype = FIN_F64, .states = states, .pooled = pooled, .layer = 2};
    pass.answers[0] = answers;
    pass.answers[2] = label;
    run_pass(o, &a.s, &pass);
    const float *H = tensor(o, "head.value.weight"), *h = tensor(o, "head.value.bias");
    for (int64_t l = 0; l < a.tokens; l++)
        for (int j = 0; j < 2; j++) {
            double f = (double)h[j];
            for (int64_t i = 0; i < w; i++)
                f += (double)H[j * w + i] * states[l * w + i];
            assert_true(fabs(f - answers[2 * l + j]) < 1e-12);
        }
    H = tensor(o, "head.label.weight");
    h = tensor(o, "head.label.bias");
    for (int64_t q = 0; q < a.s.n; q++) {
        for (int64_t i = 0; i < w; i++) {
            double mean = 0, n = 0;
            for (int64_t l = a.offsets[q]; l < a.offsets[q + 1]; l++)
                if (!a.hidden[l] || q == 1) { /* sequence 1 is all hidden */
                    mean += states[l * w + i];
                    n++;
                }
            assert_true(fabs(mean / n - pooled[q * w + i]) < 1e-12);
        }
        for (int c = 0; c < 3; c++) {
            double f = (double)h[c];
            for (int64_t i = 0; i < w; i++)
                f += (double)H[c * w + i] * pooled[q * w + i];
            assert_true(fabs(f - label[3 * q + c]) < 1e-12);
        }
    }
    pass = (fin_pass){.dtype = FIN_F64, .states = states, .layer = 0};
    run_pass(o, &a.s, &pass);
    const float *A = tensor(o, "input.weight");
    for (int64_t l = 0; l < a.tokens; l++)
        for (int64_t i = 0; i < w; i++) {
            double x = (double)tensor(o, "input.bias")[i];
            for (int64_t j = 0; j < (a.hidden[l] ? 3 : 5); j++)
                x += (double)A[i * 5 + j] * (double)a.data[l * 5 + j];
            x += a.hidden[l] ? (double)tensor(o, "mask")[i] : 0;
            assert_true(fabs(x - states[l * w + i]) < 1e-12);
        }
    free(states);
    free(pooled);
    free(answers);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* What is asked for beside does not change an answer, nor does the way back. */
static void answers__do_not_depend_on_what_else_is_asked(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 9, 30, 6);
    for (int k = 0; k < 8; k++) {
        fin_encoder_settings s = small_settings();
        s.attention = k % 2;
        s.hidden = k / 2 % 2 ? 0 : 12;
        s.norm = k / 4;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        size_t bytes = (size_t)(2 * a.tokens) * sizeof(double);
        double *x = numbers(2 * a.tokens), *y = numbers(2 * a.tokens);
        double *gradient = numbers(fin_encoder_parameters(o)), *states = numbers(a.tokens * 8);
        fin_pass pass = {.dtype = FIN_F32, .answers = {x}};
        run_pass(o, &a.s, &pass);
        pass = make_pass(&a, FIN_F32);
        pass.answers[0] = y;
        pass.gradient = gradient;
        pass.states = states;
        pass.layer = 1;
        run_pass(o, &a.s, &pass);
        assert_memory_equal(x, y, bytes);
        free(x);
        free(y);
        free(gradient);
        free(states);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cme__is_the_posterior_mean_of_a_linear_concept),
        cmocka_unit_test(softmax__maps_are_weights),
        cmocka_unit_test(all_hidden__attention_adds_its_bias_alone),
        cmocka_unit_test(losses__are_those_of_the_answers),
        cmocka_unit_test(answers__say_what_they_mean),
        cmocka_unit_test(gaussian__log_variances_stay_within_bounds),
        cmocka_unit_test(states__are_what_answers_are_made_of),
        cmocka_unit_test(answers__do_not_depend_on_what_else_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
