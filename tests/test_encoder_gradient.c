/* Gradients of an encoder against differences, in double, for every tensor and every setting.
 *
 * For each tensor the derivative along a random direction u of that tensor alone is compared with
 *
 *     (4 D(e) - D(2e)) / 3,   D(e) = (loss(w + e u) - loss(w - e u)) / (2 e),   e = 1e-3 / |u|
 *
 * whose error is about e^4 and rounding / e: with a loss of about 5, 1e-12. ReLU has kinks, which a
 * step should not cross: e = 1e-6 / |u|, with an error of 1e-9. The bar of 1e-6 is relative to the
 * length of the gradient in that tensor. */
#include "test_encoder_help.h"

#include <stdio.h>

static double loss_at(const fin_encoder *o, const sample *a, const double *weights, fin_dtype dtype)
{
    fin_pass pass = make_pass(a, dtype);
    pass.weights = weights;
    run_pass(o, &a->s, &pass);
    return pass.loss;
}

static double slope(const fin_encoder *o, const sample *a, double *w, const double *start,
                    int64_t from, int64_t n, const double *u, double e)
{
    double side[2];
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < n; i++)
            w[from + i] = start[from + i] + (k ? -e : e) * u[i];
        side[k] = loss_at(o, a, w, FIN_F64);
    }
    memcpy(w + from, start + from, (size_t)n * sizeof *w);
    return (side[0] - side[1]) / (2 * e);
}

/* The largest error over tensors, relative. */
static double check_gradient(const fin_encoder_settings *s, const fin_encoder_shape *shape,
                             const sample *a, const char *what)
{
    enum { MOST = 64 };
    fin_encoder *o = make_encoder(s, shape, 3);
    int64_t P = fin_encoder_parameters(o), count;
    fin_tensor tensors[MOST];
    double *w = numbers(P), *start = numbers(P), *gradient = numbers(P), *u = numbers(P), worst = 0;
    for (int64_t i = 0; i < P; i++)
        w[i] = start[i] = (double)fin_encoder_weights(o)[i];
    fin_pass pass = make_pass(a, FIN_F64);
    pass.weights = w;
    pass.gradient = gradient;
    run_pass(o, &a->s, &pass);
    count = fin_encoder_tensors(o, tensors, MOST);
    assert_in_range(count, 1, MOST);
    for (int64_t t = 0; t < count; t++) {
        int64_t from = (const float *)tensors[t].data - fin_encoder_weights(o);
        int64_t n = tensors[t].shape[0] * (tensors[t].ndim > 1 ? tensors[t].shape[1] : 1);
        double along = 0, length = 0, square = 0;
        fin_random_normals_f64(5, FIN_STREAM_USER, (uint64_t)t, 0, n, u);
        for (int64_t i = 0; i < n; i++) {
            along += gradient[from + i] * u[i];
            length += gradient[from + i] * gradient[from + i];
            square += u[i] * u[i];
        }
        double e = (s->activation == FIN_ENCODER_RELU ? 1e-6 : 1e-3) / sqrt(square);
        double seen =
            (4 * slope(o, a, w, start, from, n, u, e) - slope(o, a, w, start, from, n, u, 2 * e)) /
            3;
        double error = fabs(seen - along) / (sqrt(length * square) + 1e-3);
        /* The bias of keys shifts all scores of a query alike, so part of a gradient may be 0; but
         * no tensor's may be 0 as a whole. */
        if (!(error < 1e-6) || !(length > 0))
            fail_msg("%s: %s: %.12g by differences, %.12g by the pass, length %g", what,
                     tensors[t].name, seen, along, sqrt(length));
        worst = error > worst ? error : worst;
    }
    free(w);
    free(start);
    free(gradient);
    free(u);
    fin_encoder_destroy(o);
    return worst;
}

static void gradient__is_that_of_differences(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 6, 9, 2);
    for (int attention = 0; attention < 2; attention++)
        for (int activation = 0; activation < 2; activation++)
            for (int norm = 0; norm < 2; norm++)
                for (int positions = 0; positions < 3; positions++) {
                    fin_encoder_settings s = small_settings();
                    char what[128];
                    s.attention = attention;
                    s.activation = activation;
                    s.norm = norm;
                    s.positions = positions;
                    snprintf(what, sizeof what, "attention %d activation %d norm %d positions %d",
                             attention, activation, norm, positions);
                    double worst = check_gradient(&s, &shape, &a, what);
                    print_message("%s: %.1e\n", what, worst);
                }
    free_sample(&a);
}

static void gradient__without_layers_or_feed_forward(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 5, 7, 4);
    fin_encoder_settings s = small_settings();
    s.layers = 0;
    check_gradient(&s, &shape, &a, "no layers");
    for (int attention = 0; attention < 2; attention++)
        for (int norm = 0; norm < 2; norm++) {
            s = small_settings();
            s.hidden = 0;
            s.layers = 3;
            s.attention = attention;
            s.norm = norm;
            check_gradient(&s, &shape, &a, "no feed-forward");
        }
    free_sample(&a);
}

static void gradient__of_one_head_and_of_wide_ones(void **state)
{
    (void)state;
    for (int h = 0; h < 4; h++) {
        fin_encoder_shape all = small_shape(), shape = all;
        shape.heads = 1;
        shape.head[0] = all.head[h];
        sample a = make_sample(&shape, 5, 7, 4);
        fin_encoder_settings s = small_settings();
        s.heads = h < 2 ? 1 : 8;
        s.layers = 1;
        check_gradient(&s, &shape, &a, shape.head[0].name);
        free_sample(&a);
    }
}

/* Float against double: products of 2^-24 and of the square root of the number of terms, through
 * two layers. The stated bar for float is 1e-5 of the gradient's length. */
static void gradient__in_float_is_near_that_in_double(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 40, 9, 7);
    for (int attention = 0; attention < 2; attention++) {
        fin_encoder_settings s = small_settings();
        s.attention = attention;
        s.width = 32;
        s.hidden = 64;
        fin_encoder *o = make_encoder(&s, &shape, 9);
        int64_t P = fin_encoder_parameters(o);
        double *g[2] = {numbers(P), numbers(P)}, loss[2], off = 0, length = 0;
        for (int k = 0; k < 2; k++) {
            fin_pass pass = make_pass(&a, k ? FIN_F64 : FIN_F32);
            pass.gradient = g[k];
            run_pass(o, &a.s, &pass);
            loss[k] = pass.loss;
        }
        for (int64_t i = 0; i < P; i++) {
            off += (g[0][i] - g[1][i]) * (g[0][i] - g[1][i]);
            length += g[1][i] * g[1][i];
        }
        print_message("attention %d: loss off by %.1e, gradient by %.1e\n", attention,
                      fabs(loss[0] - loss[1]) / loss[1], sqrt(off / length));
        assert_true(fabs(loss[0] - loss[1]) < 1e-5 * fabs(loss[1]));
        assert_true(off < 1e-10 * length);
        free(g[0]);
        free(g[1]);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

/* Asked for heads only, theirs is the same to the last bit, and everything else has none. */
static void gradient__of_heads_only(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 90, 30, 7); /* several groups of a block */
    for (int k = 0; k < 8; k++) {
        fin_encoder_settings s = small_settings();
        s.attention = k & 1;
        s.norm = k >> 1 & 1;
        s.hidden = k == 6 ? 0 : 16;
        s.width = 16;
        fin_encoder *o = make_encoder(&s, &shape, 9);
        int64_t P = fin_encoder_parameters(o), W = s.width, others = 0;
        int64_t heads = tensor(o, "head.value.weight") - fin_encoder_weights(o);
        double *whole = numbers(P), *part = numbers(P);
        fin_pass pass = make_pass(&a, k >> 2 ? FIN_F64 : FIN_F32);
        pass.gradient = whole;
        run_pass(o, &a.s, &pass);
        double loss = pass.loss;
        pass.gradient = part;
        pass.heads_only = 1;
        run_pass(o, &a.s, &pass);
        assert_true(pass.loss == loss);
        assert_int_equal(P - heads, (2 + 2 + 3 + 4) * (W + 1));
        assert_memory_equal(part + heads, whole + heads, (size_t)(P - heads) * sizeof *part);
        for (int64_t i = 0; i < heads; i++) {
            assert_true(part[i] == 0);
            others += whole[i] != 0;
        }
        assert_true(others > heads / 2);
        free(whole);
        free(part);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient__is_that_of_differences),
        cmocka_unit_test(gradient__without_layers_or_feed_forward),
        cmocka_unit_test(gradient__of_one_head_and_of_wide_ones),
        cmocka_unit_test(gradient__in_float_is_near_that_in_double),
        cmocka_unit_test(gradient__of_heads_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
