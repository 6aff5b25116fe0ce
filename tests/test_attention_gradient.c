/* Gradients in k, v, lam and c against central differences of the forward pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_attention_help.h"

#include <stdio.h>

static const int64_t lengths[] = {3, 0, 1, 20, 7, 35, 2};
enum { N = sizeof lengths / sizeof *lengths, D = 11 };

/* sum_i df_i f_i, or sum_i (f_i - y_i)^2 if df is NULL, at parameters k, v, lam. */
static double value(fin_attention *attention, const ragged *b, const help_form *form,
                    const double *df, const double *k, const double *v, double lam)
{
    fin_batch batch = ragged_view(b, 0, N);
    fin_form_settings s = {lam, form->c};
    double f[N], sum = 0;
    assert_int_equal(fin_attention_set(attention, &s, k, v, NULL), FIN_OK);
    assert_int_equal(fin_attention_forward(attention, &batch, f, NULL, NULL), FIN_OK);
    for (int i = 0; i < N; i++)
        sum += df ? df[i] * f[i] : (f[i] - b->y[i]) * (f[i] - b->y[i]);
    return sum;
}

/* Two central differences, Richardson-extrapolated: error h^4, here about 1e-10. */
static double slope(fin_attention *attention, const ragged *b, const help_form *form,
                    const double *df, double *at, double *k, double *v, double *lam)
{
    const double h = 1e-3;
    double keep = *at, d[2];
    for (int j = 0; j < 2; j++) {
        *at = keep + h * (j + 1);
        double up = value(attention, b, form, df, k, v, *lam);
        *at = keep - h * (j + 1);
        double down = value(attention, b, form, df, k, v, *lam);
        d[j] = (up - down) / (2 * h * (j + 1));
    }
    *at = keep;
    return (4 * d[0] - d[1]) / 3;
}

static void check_gradient(const help_form *given, int given_df, double *worst)
{
    help_form copy = *given, *form = &copy; /* c is moved too */
    ragged b = ragged_make(N, D, lengths, FIN_F64, 91);
    fin_attention *attention = help_attention(form, &b);
    double df[N], k[D], v[D], lam = form->lam, gk[D] = {0}, gv[D] = {0}, loss = 0, f[N];
    fin_random_normals_f64(92, 4000, 0, 0, N, df);
    memcpy(k, b.k, sizeof k);
    memcpy(v, b.v, sizeof v);
    fin_gradient g = {gk, gv, 0, 0};
    fin_batch batch = ragged_view(&b, 0, N);
    if (given_df)
        assert_int_equal(fin_attention_backward(attention, &batch, df, &g, NULL), FIN_OK);
    else {
        assert_int_equal(fin_attention_loss(attention, &batch, b.y, f, &loss, &g, NULL), FIN_OK);
        double want = value(attention, &b, form, NULL, k, v, lam);
        assert_true(fabs(loss - want) < 1e-14 * want);
    }
    double scale_k = 0, scale_v = 0, error_k = 0, error_v = 0;
    int hard = strcmp(form->name, "hardmax") == 0 || isinf(form->lam);
    for (int c = 0; c < D; c++) {
        double want_k = slope(attention, &b, form, given_df ? df : NULL, &k[c], k, v, &lam);
        double want_v = slope(attention, &b, form, given_df ? df : NULL, &v[c], k, v, &lam);
        scale_k = fmax(scale_k, fabs(want_k));
        scale_v = fmax(scale_v, fabs(want_v));
        error_k = fmax(error_k, fabs(gk[c] - want_k));
        error_v = fmax(error_v, fabs(gv[c] - want_v));
    }
    if (strcmp(form->name, "erf") == 0 && lam == 0) /* f = 0 whatever v is */
        assert_true(error_v == 0 && scale_v == 0);
    else {
        assert_true(scale_v > 0.1);
        worst[1] = fmax(worst[1], error_v / scale_v);
    }
    if (hard || lam == 0) { /* the scores have no influence */
        for (int c = 0; c < D; c++)
            assert_true(gk[c] == 0 && (lam == 0 || g.lam == 0));
    } else
        worst[0] = fmax(worst[0], error_k / scale_k);
    if (!hard && lam > 0) {
        double want = slope(attention, &b, form, given_df ? df : NULL, &lam, k, v, &lam);
        assert_true(fabs(want) > 1e-3);
        worst[2] = fmax(worst[2], fabs(g.lam - want) / fabs(want));
    }
    if (!fin_settings_find(fin_form_table(fin_form_find(form->name)), "c") || hard)
        assert_true(g.c == 0);
    else {
        double want = slope(attention, &b, form, given_df ? df : NULL, &copy.c, k, v, &lam);
        assert_true(fabs(want) > 1e-3);
        worst[3] = fmax(worst[3], fabs(g.c - want) / fabs(want));
    }
    fin_attention_destroy(attention);
    ragged_free(&b);
}

static void gradient__matches_differences(void **state)
{
    (void)state;
    for (int t = 0; t < HELP_FORMS; t++) {
        double worst[4] = {0};
        check_gradient(&help_forms[t], 0, worst);
        check_gradient(&help_forms[t], 1, worst);
        print_message("%s lam %g c %g: k %.2g, v %.2g, lam %.2g, c %.2g\n", help_forms[t].name,
                      help_forms[t].lam, help_forms[t].c, worst[0], worst[1], worst[2], worst[3]);
        for (int j = 0; j < 4; j++)
            assert_true(worst[j] < 1e-6);
    }
}

/* lam = 0 cannot be approached from below: a one-sided difference of second order. */
static void gradient__at_lam_0(void **state)
{
    (void)state;
    const char *const names[] = {"erf", "softmax", "linear", "softplus"};
    for (int t = 0; t < 4; t++) {
        const help_form form = {names[t], 0, 0};
        const double h = 1e-4;
        ragged b = ragged_make(N, D, lengths, FIN_F64, 93);
        fin_attention *attention = help_attention(&form, &b);
        double gk[D] = {0}, gv[D] = {0}, loss = 0, at[3];
        fin_gradient g = {gk, gv, 0, 0};
        fin_batch batch = ragged_view(&b, 0, N);
        fin_attention_loss(attention, &batch, b.y, NULL, &loss, &g, NULL);
        for (int j = 0; j < 3; j++)
            at[j] = value(attention, &b, &form, NULL, b.k, b.v, h * j);
        double want = (-3 * at[0] + 4 * at[1] - at[2]) / (2 * h);
        assert_true(fabs(g.lam - want) < 1e-5 * (fabs(want) + 1));
        fin_attention_destroy(attention);
        ragged_free(&b);
    }
}

/* Float tokens: the gradient is that of the same tokens in double, to float precision. */
static void gradient__float_is_near_double(void **state)
{
    (void)state;
    for (int t = 0; t < HELP_FORMS; t++) {
        ragged b = ragged_make(N, D, lengths, FIN_F32, 94), w = b;
        w.dtype = FIN_F64;
        fin_attention *narrow = help_attention(&help_forms[t], &b),
                      *wide = help_attention(&help_forms[t], &w);
        double gk[2][D] = {{0}}, gv[2][D] = {{0}}, loss[2] = {0}, size = 0, worst = 0;
        fin_gradient g[2] = {{gk[0], gv[0], 0, 0}, {gk[1], gv[1], 0, 0}};
        fin_batch bn = ragged_view(&b, 0, N), bw = ragged_view(&w, 0, N);
        fin_attention_loss(narrow, &bn, b.y, NULL, &loss[0], &g[0], NULL);
        fin_attention_loss(wide, &bw, b.y, NULL, &loss[1], &g[1], NULL);
        for (int c = 0; c < D; c++) {
            size = fmax(size, fmax(fabs(gk[1][c]), fabs(gv[1][c])));
            worst = fmax(worst, fmax(fabs(gk[0][c] - gk[1][c]), fabs(gv[0][c] - gv[1][c])));
        }
        worst = fmax(worst / size, fabs(loss[0] / loss[1] - 1));
        print_message("%s lam %g: %.2g\n", help_forms[t].name, help_forms[t].lam, worst);
        assert_true(worst < 2e-6);
        fin_attention_destroy(narrow);
        fin_attention_destroy(wide);
        ragged_free(&b);
    }
}

/* Gradients and loss are added to what is there; without a gradient the loss is the same. */
static void gradient__is_added(void **state)
{
    (void)state;
    for (int t = 0; t < HELP_FORMS; t++) {
        ragged b = ragged_make(N, D, lengths, FIN_F64, 95);
        fin_attention *attention = help_attention(&help_forms[t], &b);
        fin_batch batch = ragged_view(&b, 0, N);
        double gk[2][D] = {{0}}, gv[2][D] = {{0}}, loss[3] = {0, 100, 0};
        fin_gradient g[2] = {{gk[0], gv[0], 0, 0}, {gk[1], gv[1], -7, 0}};
        for (int c = 0; c < D; c++)
            gk[1][c] = gv[1][c] = 1e6;
        fin_attention_loss(attention, &batch, b.y, NULL, &loss[0], &g[0], NULL);
        fin_attention_loss(attention, &batch, b.y, NULL, &loss[1], &g[1], NULL);
        fin_attention_loss(attention, &batch, b.y, NULL, &loss[2], NULL, NULL);
        assert_true(fabs(loss[1] - 100 - loss[0]) < 1e-11 && loss[2] == loss[0]);
        assert_true(fabs(g[1].lam + 7 - g[0].lam) < 1e-11 * (1 + fabs(g[0].lam)));
        for (int c = 0; c < D; c++)
            assert_true(fabs(gk[1][c] - 1e6 - gk[0][c]) < 1e-8 &&
                        fabs(gv[1][c] - 1e6 - gv[0][c]) < 1e-8);
        fin_attention_destroy(attention);
        ragged_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient__matches_differences),
        cmocka_unit_test(gradient__at_lam_0),
        cmocka_unit_test(gradient__float_is_near_double),
        cmocka_unit_test(gradient__is_added),
    };
    return cmocka_run_group_tests_name("attention_gradient", tests, NULL, NULL);
}
