/* Extreme scores have finite, right answers; bad input has a message; out of memory leaves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_attention_help.h"
#include "test_skip.h"

#include <stdio.h>

enum { MOST = 8 };

/* One sample in one dimension with k = v = 1, so chi = z = X. Everything must be finite. */
static void run_scores(const char *name, double lam, double c, int L, const double *X, double *w,
                       double *f)
{
    const help_form form = {name, lam, c};
    double one = 1, y = 0.5, loss = 0, gk = 0, gv = 0;
    int64_t offsets[2] = {0, L};
    ragged b = {.n = 1,
                .d = 1,
                .longest = L,
                .offsets = offsets,
                .dtype = FIN_F64,
                .X = (double *)X,
                .k = &one,
                .v = &one};
    fin_attention *attention = help_attention(&form, &b);
    fin_batch batch = {1, 1, FIN_F64, X, offsets};
    fin_gradient g = {&gk, &gv, 0, 0};
    assert_int_equal(fin_attention_forward(attention, &batch, f, w, NULL), FIN_OK);
    assert_int_equal(fin_attention_loss(attention, &batch, &y, NULL, &loss, &g, NULL), FIN_OK);
    assert_true(isfinite(*f) && isfinite(loss) && isfinite(gk) && isfinite(gv) && isfinite(g.lam));
    for (int l = 0; l < L; l++)
        assert_true(isfinite(w[l]));
    fin_attention_destroy(attention);
}

static void extreme__scores_of_a_million(void **state)
{
    (void)state;
    const double X[] = {1, -1, 0.5, 1 - 1e-4};
    double w[MOST], f;
    run_scores("softmax", 1e6, 0, 4, X, w, &f);
    assert_true(fabs(w[0] - 1) < 1e-15 && w[1] == 0 && w[2] == 0 && w[3] < 1e-43 &&
                fabs(f - 1) < 1e-15);
    run_scores("erf", 1e6, 0, 4, X, w, &f);
    assert_true(w[0] == 1 && w[1] == -1 && w[2] == 1 && w[3] == 1);
    run_scores("linear", 1e6, 0, 4, X, w, &f);
    assert_true(w[0] == 1 + 1e6 && w[1] == 1 - 1e6);
    run_scores("shifted", 1e6, -1e6, 4, X, w, &f);
    assert_true(w[0] == 1 && w[1] == 0 && w[2] == 0 && w[3] == 0); /* 1 + erf(0), 1 + erf(-100) */
    run_scores("shifted", 0, 1e6, 4, X, w, &f);
    assert_true(w[0] == 2 && w[1] == 2);
    run_scores("softplus", 1e6, 0, 4, X, w, &f); /* softplus(x) = x up there */
    assert_true(fabs(w[0] - 1 / 2.4999) < 1e-15 && w[1] == 0 && fabs(w[2] - 0.5 / 2.4999) < 1e-15);
    run_scores("bayes", 1e6, -1e6, 4, X, w, &f); /* x - x^2 is largest at 1/2 */
    assert_true(w[2] == 1 && w[0] == 0 && w[1] == 0 && w[3] == 0);
    run_scores("bayes", INFINITY, 1e6, 4, X, w, &f);
    assert_true(w[0] == 1 && w[1] == 0 && w[2] == 0 && w[3] == 0);
    const double big[] = {1e150, -1e150, 0};
    run_scores("softmax", 1e6, 0, 3, big, w, &f);
    assert_true(w[0] == 1 && w[1] == 0 && w[2] == 0);
    run_scores("hardmax", 0, 0, 3, big, w, &f);
    assert_true(w[0] == 1 && f == 1e150);
    const double low[] = {-1e150, -2e150, -1e150};
    run_scores("softmax", 1e6, 0, 3, low, w, &f);
    assert_true(w[0] == 0.5 && w[1] == 0 && w[2] == 0.5);
}

/* All scores far below zero: softplus is e^x, underflows, and its ratios must not. */
static void extreme__softplus_far_below(void **state)
{
    (void)state;
    if (!long_double_is_longer())
        SKIP("long double is not longer than double");
    double worst = 0;
    for (double shift = 0; shift < 5000; shift = shift * 1.07 + 0.5) {
        const double X[] = {-shift, -shift - 0.7, -shift - 3, -shift - 20, 0.1 - shift};
        double w[MOST], f;
        long double want[5], total = 0;
        run_scores("softplus", 1, 0, 5, X, w, &f);
        for (int l = 0; l < 5;
             l++) /* relative to e^-shift where long double would underflow as well */
            total += want[l] = X[4] > -11000 && shift < 10000 ? help_softplus(X[l])
                                                              : expl(X[l] + (long double)shift);
        for (int l = 0; l < 5; l++)
            worst = fmax(worst, (double)(fabsl(w[l] - want[l] / total) / (want[l] / total)));
    }
    print_message("worst relative error %.2g\n", worst);
    assert_true(worst < 2e-15);
    const double X[] = {-1, -1 - 1e-6, -2}; /* lam chi = -1e6 */
    double w[MOST], f;
    run_scores("softplus", 1e6, 0, 3, X, w, &f);
    assert_true(fabs(w[0] - 1 / (1 + exp(-1.0))) < 1e-9 && w[2] == 0 &&
                fabs(w[0] + w[1] - 1) < 1e-15);
}

static void extreme__ties(void **state)
{
    (void)state;
    const double X[] = {0.3, -1, 0.3, 0.3, 0.2}, zeros[] = {0.0, -0.0};
    double w[MOST], f;
    run_scores("hardmax", 0.1, 0, 5, X, w, &f);
    assert_true(w[0] == 1.0 / 3 && w[1] == 0 && w[2] == w[0] && w[3] == w[0] && w[4] == 0);
    assert_true(fabs(f - 0.3) < 1e-16);
    run_scores("hardmax", 0.1, 0, 2, zeros, w, &f);
    assert_true(w[0] == 0.5 && w[1] == 0.5);
    run_scores("softmax", 5, 0, 2, zeros, w, &f);
    assert_true(w[0] == 0.5 && w[1] == 0.5);
    run_scores("softmax", 0, 0, 5, X, w, &f);
    for (int l = 0; l < 5; l++)
        assert_true(w[l] == 0.2);
}

static void refused(fin_status got, const fin_error *err, const char *what)
{
    if (got != FIN_ERR_ARGUMENT || err->status != got || !err->message[0])
        fail_msg("%s: '%s', message '%s'", what, fin_status_name(got), err->message);
}

static void attention__refuses_bad_input(void **state)
{
    (void)state;
    const fin_form *softmax = fin_form_find("softmax");
    fin_attention *a = (fin_attention *)1;
    fin_error err = {FIN_OK, ""};
    fin_form_settings s = {1, 0};
    const struct {
        int64_t d, longest;
    } sizes[] = {{0, 5}, {-1, 5}, {5, 0}, {5, -1}, {(INT64_C(1) << 40) + 1, 5}, {5, INT64_MAX}};
    for (int i = 0; i < 6; i++) {
        refused(fin_attention_create(&a, softmax, &s, sizes[i].d, FIN_F32, sizes[i].longest, &err),
                &err, "sizes");
        assert_null(a);
    }
    refused(fin_attention_create(&a, NULL, &s, 5, FIN_F32, 5, &err), &err, "no form");
    const fin_dtype types[] = {FIN_I32, FIN_I64, FIN_U8, (fin_dtype)55};
    for (int i = 0; i < 4; i++)
        refused(fin_attention_create(&a, softmax, &s, 5, types[i], 5, &err), &err, "type");
    const double bad_lam[] = {-1, NAN, INFINITY, 2e6};
    for (int i = 0; i < 4; i++) {
        fin_form_settings t = {bad_lam[i], 0};
        refused(fin_attention_create(&a, softmax, &t, 5, FIN_F32, 5, &err), &err, "lam");
        double chi = 1, w;
        int64_t offsets[2] = {0, 1};
        refused(fin_form_weights(softmax, &t, 1, offsets, &chi, NULL, &w, &err), &err, "lam");
    }
    refused(fin_attention_create(&a, softmax, NULL, 3, FIN_F64, 4, &err), &err, "auto is a task's");
    assert_int_equal(fin_attention_create(&a, fin_form_find("erf"), NULL, 3, FIN_F64, 4, NULL),
                     FIN_OK); /* defaults */
    for (int i = 0; i < 4; i++)
        refused(fin_attention_set(a, &(fin_form_settings){bad_lam[i], 0}, NULL, NULL, &err), &err,
                "set lam");
    double X[30] = {0}, f[3], loss = 0, gk[3] = {0}, gv[3] = {0};
    fin_gradient g = {gk, gv, 0, 0};
    int64_t good[3] = {0, 4, 5}, too_long[3] = {0, 5, 6}, backwards[3] = {0, 3, 2};
    const fin_batch bad[] = {{2, 4, FIN_F64, X, good},      {2, 3, FIN_F32, X, good},
                             {-1, 3, FIN_F64, X, good},     {2, 3, FIN_F64, X, too_long},
                             {2, 3, FIN_F64, X, backwards}, {2, 2, FIN_F64, X, good}};
    for (int i = 0; i < 6; i++) {
        refused(fin_attention_forward(a, &bad[i], f, NULL, &err), &err, "forward");
        refused(fin_attention_backward(a, &bad[i], f, &g, &err), &err, "backward");
        refused(fin_attention_loss(a, &bad[i], f, NULL, &loss, &g, &err), &err, "loss");
        assert_int_equal(fin_attention_forward(a, &bad[i], f, NULL, NULL), FIN_ERR_ARGUMENT);
    }
    assert_true(loss == 0 && g.lam == 0 && gk[0] == 0 && gv[0] == 0); /* nothing half-done */
    fin_batch none = {0, 3, FIN_F64, X, good};                        /* an empty batch is fine */
    assert_int_equal(fin_attention_loss(a, &none, f, f, &loss, &g, NULL), FIN_OK);
    assert_true(loss == 0);
    fin_attention_destroy(a);
    fin_attention_destroy(NULL);
    double chi[2] = {1, 2}, w[2];
    int64_t offsets[2] = {0, 2};
    refused(fin_form_weights(fin_form_find("bayes"), &(fin_form_settings){1, 0.5}, 1, offsets, chi,
                             NULL, w, &err),
            &err, "bayes without |X|^2");
    assert_int_equal(fin_form_weights(fin_form_find("bayes"), &(fin_form_settings){1, 0}, 1,
                                      offsets, chi, NULL, w, NULL),
                     FIN_OK);
}

static void attention__too_large_is_out_of_memory(void **state)
{
    (void)state;
    fin_attention *a;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_attention_create(&a, fin_form_find("erf"), NULL, INT64_C(1) << 40,
                                             FIN_F64, INT64_C(1) << 40, &err);
    assert_int_equal(status, FIN_ERR_MEMORY);
    assert_true(a == NULL && err.message[0]);
}

static fin_status use_everything(void *user, fin_error *err)
{
    const help_form *form = user;
    double X[15] = {1, 2, 3, 4, 5}, k[3] = {1, 0, 0}, v[3] = {0, 1, 0}, y[2] = {1, 2}, f[2], w[5],
           gk[3] = {0}, gv[3] = {0};
    double loss = 0;
    int64_t offsets[3] = {0, 2, 5};
    fin_gradient g = {gk, gv, 0, 0};
    fin_batch batch = {2, 3, FIN_F64, X, offsets};
    fin_form_settings s = {form->lam, form->c};
    fin_attention *a;
    fin_status status = fin_attention_create(&a, fin_form_find(form->name), &s, 3, FIN_F64, 3, err);
    if (!status)
        status = fin_attention_set(a, NULL, k, v, err);
    if (!status)
        status = fin_attention_forward(a, &batch, f, w, err);
    if (!status)
        status = fin_attention_loss(a, &batch, y, f, &loss, &g, err);
    fin_attention_destroy(a);
    return status;
}

static void attention__survives_every_failed_allocation(void **state)
{
    (void)state;
    for (int t = 0; t < HELP_FORMS; t++)
        assert_int_equal(fault_every(use_everything, (void *)&help_forms[t]),
                         2); /* only create allocates */
}

/* An infinite score takes all the weight, two share it; none but -inf is no information. */
static void extreme__infinite_scores(void **state)
{
    (void)state;
    const double chi[3][3] = {
        {1, INFINITY, 2}, {INFINITY, 0, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    const double want[3][3] = {{0, 1, 0}, {0.5, 0, 0.5}, {1.0 / 3, 1.0 / 3, 1.0 / 3}};
    const int64_t offsets[] = {0, 3};
    for (int i = 0; i < 3; i++) {
        double w[3];
        fin_form_settings s = {1, 0};
        assert_int_equal(
            fin_form_weights(fin_form_find("softmax"), &s, 1, offsets, chi[i], NULL, w, NULL),
            FIN_OK);
        for (int l = 0; l < 3; l++)
            assert_true(w[l] == want[i][l]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extreme__scores_of_a_million),
        cmocka_unit_test(extreme__softplus_far_below),
        cmocka_unit_test(extreme__ties),
        cmocka_unit_test(extreme__infinite_scores),
        cmocka_unit_test(attention__refuses_bad_input),
        cmocka_unit_test(attention__too_large_is_out_of_memory),
        cmocka_unit_test(attention__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("attention_errors", tests, NULL, NULL);
}
