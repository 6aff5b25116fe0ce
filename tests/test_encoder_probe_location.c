/* Probes for the location, on an encoder made by hand: its attention is softmax(lam X_l.u), its answer
 * h.(mean X_l + sum w_l X_l). So cosines are those of u and h, and how often the largest weight is
 * that of the responsible token is an integral if u = k*:
 *
 *     p = integral of phi(g) Phi(mu + gamma g)^(L-1) dg */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "encoder/probe.h"
#include "finetti/task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { D = 12, L = 6, N = 4000 };
#define PI 3.14159265358979323846
static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

static void set(fin_encoder *encoder, const char *name, int64_t rows, int64_t columns,
                const double *x)
{
    fin_tensor t = {.dtype = FIN_F64, .ndim = columns ? 2 : 1, .shape = {rows, columns}, .data = x};
    snprintf(t.name, sizeof t.name, "%s", name);
    int64_t copied;
    OK(fin_encoder_load(encoder, &t, 1, 1, &copied, &err));
    assert_int_equal(copied, 1);
}

/* Directions cos k* + sin v* and so on; scores lam X.u. */
static fin_encoder *by_hand(const fin_task *task, double lam, double angle_k, double angle_v)
{
    const fin_encoder_settings settings = {
        .width = D, .layers = 1, .heads = 1, .norm = FIN_NORM_NONE, .longest = FIN_AUTO_INT};
    const fin_encoder_shape shape = {
        .inputs = D, .heads = 1, .head = {{"label", FIN_HEAD_VALUE, FIN_HEAD_POOLED, 1, 1}}};
    const double *k = fin_task_k_star(task), *v = fin_task_v_star(task);
    static double one[D * D], in[3 * D * D], bias[3 * D], h[D];
    memset(in, 0, sizeof in);
    memset(one, 0, sizeof one);
    memset(bias, 0, sizeof bias);
    for (int i = 0; i < D; i++) {
        one[i * D + i] = in[(D + i) * D + i] = in[(2 * D + i) * D + i] = 1; /* keys, values */
        bias[i] = lam * sqrt(D) * (cos(angle_k) * k[i] + sin(angle_k) * v[i]);
        h[i] = cos(angle_v) * v[i] + sin(angle_v) * k[i];
    }
    fin_encoder *encoder;
    OK(fin_encoder_create(&encoder, &settings, &shape, 1, &err));
    set(encoder, "input.weight", D, D, one);
    set(encoder, "layer.0.attention.in.weight", 3 * D, D, in);
    set(encoder, "layer.0.attention.in.bias", 3 * D, 0, bias);
    set(encoder, "layer.0.attention.out.weight", D, D, one);
    set(encoder, "head.label.weight", 1, D, h);
    return encoder;
}

static fin_task *task_of(double eps)
{
    fin_task_settings s;
    fin_task *task;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = D;
    s.L = L;
    s.eps = eps;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 3, FIN_TASK_AMBIENT, &err));
    return task;
}

static double found_by_k_star(void)
{
    double p = 0, mu = sqrt(D / 2.0), gamma = sqrt(0.5), h = 1e-3;
    for (double g = -9; g < 9; g += h)
        p += h * exp(-g * g / 2) / sqrt(2 * PI) * pow(erfc(-(mu + gamma * g) / sqrt(2)) / 2, L - 1);
    return p;
}

static void expect_z(const char *what, fini_located got, double want)
{
    double z = (got.value - want) / got.error;
    print_message("%s %.4f +- %.4f, expected %.4f: z = %.2f\n", what, got.value, got.error, want,
                  z);
    assert_true(fabs(z) < 5);
}

static void attended__is_the_integral(void **state)
{
    (void)state;
    fin_task *task = task_of(0);
    fin_encoder *encoder = by_hand(task, 1, 0, 0);
    fini_location out;
    OK(fini_location_read(encoder, task, N, &out, &err));
    expect_z("attended", out.attended, found_by_k_star());
    assert_true(out.bayes.value >= out.attended.value); /* the norm of a token tells more */
    assert_true(fabs(out.place.value - out.attended.value) < 0.02);
    /* One token of L tells the sign once in L times. */
    print_message("before %.4f\n", out.before.value);
    assert_true(out.before.value > 0.5 && out.before.value < 0.5 + 0.5 / L + 5 * out.before.error);
    /* Attention adds X_J (p of the time) to the first token: the angle of X_J.v* and X_0.v* in it. */
    double both = 0.5 + atan(sqrt(0.5)) / PI, p = found_by_k_star();
    print_message("after %.4f, at most about %.4f\n", out.after.value,
                  1.0 / L + (1 - 1.0 / L) * both);
    assert_true(out.after.value < 1.0 / L + (1 - 1.0 / L) * both + 5 * out.after.error);
    assert_true(out.after.value > 0.5 + p * (both - 0.5) * (1 - 1.0 / L) - 5 * out.after.error);
    fin_encoder_destroy(encoder);
    /* Away from the responsible token: never it. */
    encoder = by_hand(task, -1, 0, 0);
    OK(fini_location_read(encoder, task, N, &out, &err));
    assert_true(out.attended.value < 0.01);
    fin_encoder_destroy(encoder);
    fin_task_destroy(task);
}

static void cosines__are_those_of_the_maps(void **state)
{
    (void)state;
    fin_task *task = task_of(0.1);
    const double angle[4][2] = {{0, 0}, {0.5, 1.1}, {1.2, 0.3}, {PI / 2, PI / 2}};
    for (int i = 0; i < 4; i++) {
        fin_encoder *encoder = by_hand(task, 0.7, angle[i][0], angle[i][1]);
        fini_location out;
        OK(fini_location_read(encoder, task, 500, &out, &err));
        print_message("key %.6f value %.6f\n", out.cos_key.value, out.cos_value.value);
        assert_true(fabs(out.cos_key.value - cos(angle[i][0])) < 1e-4); /* floats */
        assert_true(fabs(out.cos_value.value - cos(angle[i][1])) < 1e-4);
        fin_encoder_destroy(encoder);
    }
    fin_task_destroy(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attended__is_the_integral),
        cmocka_unit_test(cosines__are_those_of_the_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
