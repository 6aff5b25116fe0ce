/* Two classes have two sides: what they are called changes no bit; which of them a single token can bring
 * about is found, or given; and where it is assumed, one more token never argues against it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "test_size.h"

enum { N = 40 };
static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    return s;
}

static fin_fit *fitted(const fin_fit_settings *s, const fin_bags *bags, const double *weights)
{
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, s, 2, bags, weights, NULL, NULL, &err));
    return fit;
}

/* ---- names --------------------------------------------------------------------------------------- */

/* b (n, 2) is a with its columns changed. */
static void same_swapped(int64_t n, const double *a, const double *b, const char *what)
{
    for (int64_t i = 0; i < 2 * n; i++)
        if (memcmp(&a[i], &b[i ^ 1], sizeof *a) != 0)
            fail_msg("%s, bag %d: %.17g and %.17g", what, (int)(i / 2), a[i], b[i ^ 1]);
}

static void compare(const fin_fit_settings *s, bags_sample *d, const fin_bags *fresh,
                    const double *weights)
{
    double p[2][2 * N], sd[2][2 * N], prior[2][6 * N], given[2][6 * N];
    fin_fit_info info[2];
    char what[64];
    snprintf(what, sizeof what, "model %d, basis %d", s->model, s->basis);
    for (int k = 0; k < 2; k++) {
        fin_threads_set(k ? 4 : 1);
        fin_fit *fit = fitted(s, &d->bags, weights);
        fin_fit_get_info(fit, &info[k]);
        OK(fin_fit_predict(fit, fresh, p[k], sd[k], NULL, &err));
        OK(fin_fit_locate(fit, &d->bags, &(fin_locations){.prior = prior[k], .given = given[k]},
                          NULL, &err));
        fin_fit_destroy(fit);
        for (int i = 0; i < N; i++)
            d->labels[i] = 1 - d->labels[i];
    }
    same_swapped(N, p[0], p[1], what);
    same_swapped(N, sd[0], sd[1], what);
    assert_memory_equal(prior[0], prior[1], (size_t)d->offsets[N] * sizeof(double));
    assert_memory_equal(given[0], given[1], (size_t)d->offsets[N] * sizeof(double));
    assert_true(info[0].sharpness == info[1].sharpness && info[0].parts == info[1].parts);
    assert_true(memcmp(&info[0].inner_loss, &info[1].inner_loss, 3 * sizeof(double)) == 0);
}

static void names__change_no_bit(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, 3, 2, 3, 0.3, 31), fresh = bags_make(N, 3, 2, 3, 0.3, 32);
    double weights[N];
    for (int i = 0; i < N; i++)
        weights[i] = i < 3 ? 0 : 1 + i % 2; /* the first bags do not count */
    for (int model = FIN_MODEL_AUTO; model <= FIN_MODEL_BAYES; model++) {
        fin_fit_settings s = settings_of(model);
        if (model == FIN_MODEL_ERF)
            s.restarts = 2;
        s.landmarks = sized(10, 20, 150);
        s.inner = 3;
        compare(&s, &d, &fresh.bags, model % 2 ? weights : NULL);
    }
    fin_threads_set(0);
    bags_free(&d);
    bags_free(&fresh);
}

static void names__change_no_bit_of_a_validation(void **state)
{
    (void)state;
    enum { MODELS = 4, FOLDS = 3 };
    bags_sample d = bags_make(N, 3, 2, 3, 0.3, 33);
    fin_fit_settings s[MODELS] = {settings_of(FIN_MODEL_AUTO), settings_of(FIN_MODEL_SOFTMAX),
                                  settings_of(FIN_MODEL_ANY), settings_of(FIN_MODEL_STACK)};
    int32_t fold[2][N];
    fin_validation *v[2] = {NULL, NULL};
    for (int m = 0; m < MODELS; m++) {
        s[m].inner = 3;
        s[m].landmarks = 10;
        s[m].penalty = 0.3;
    }
    for (int k = 0; k < 2; k++) {
        fin_threads_set(k ? 4 : 1);
        OK(fin_folds_make(N, 2, d.labels, NULL, 1, FOLDS, 1, fold[k], &err));
        OK(fin_validate(&v[k], MODELS, s, 2, &d.bags, &(fin_folds){1, FOLDS, fold[k]}, NULL, &err));
        for (int i = 0; i < N; i++)
            d.labels[i] = 1 - d.labels[i];
    }
    assert_memory_equal(fold[0], fold[1], sizeof fold[0]);
    for (int m = 0; m < MODELS; m++)
        same_swapped(N, fin_validation_mean(v[0], m), fin_validation_mean(v[1], m), "validation");
    fin_validation_destroy(v[0]);
    fin_validation_destroy(v[1]);
    fin_threads_set(0);
    bags_free(&d);
}

/* ---- the positive class ---------------------------------------------------------------------------- */

/* Bags of `side` have one token far out in column 0; all else is noise. */
static bags_sample marked(int64_t n, int side, uint64_t seed)
{
    bags_sample s = bags_make(n, 3, 2, 0, 0, seed);
    for (int64_t i = 0; i < n; i++) {
        s.labels[i] = (double)(i * 7 % 5 < 2);
        if (s.labels[i] == side)
            s.tokens[(s.offsets[i] + s.where[i]) * 3] += 5;
    }
    return s;
}

/* Positive is 1, with labels as they are; positive is 0, with labels changed: the same. */
static void positive__is_a_side(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, 3, 2, 3, 0.3, 34);
    for (int basis = FIN_BASIS_LINEAR; basis <= FIN_BASIS_BOTH; basis += 2) {
        double p[2][2 * N], own[2][6 * N], none[2][N];
        for (int k = 0; k < 2; k++) {
            fin_fit_settings s = settings_of(FIN_MODEL_ANY);
            fin_fit_info info;
            s.basis = basis;
            s.landmarks = 10;
            s.positive = 1 - k;
            fin_fit *fit = fitted(&s, &d.bags, NULL);
            fin_fit_get_info(fit, &info);
            assert_int_equal(info.positive, 1 - k);
            OK(fin_fit_predict(fit, &d.bags, p[k], NULL, NULL, &err));
            OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.own = own[k], .none = none[k]}, NULL,
                              &err));
            fin_fit_destroy(fit);
            for (int i = 0; i < N; i++)
                d.labels[i] = 1 - d.labels[i];
        }
        same_swapped(N, p[0], p[1], "any");
        assert_memory_equal(own[0], own[1], (size_t)d.offsets[N] * sizeof(double));
        assert_memory_equal(none[0], none[1], sizeof none[0]);
    }
    bags_free(&d);
}

static void positive__is_found(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        bags_sample d = marked(N, side, 35 + (uint64_t)side);
        fin_fit_settings s = settings_of(FIN_MODEL_ANY);
        fin_fit_info info;
        double loss[2];
        fin_fit *fit = fitted(&s, &d.bags, NULL);
        fin_fit_get_info(fit, &info);
        assert_int_equal(info.positive, side);
        double found = info.inner_loss;
        fin_fit_destroy(fit);
        for (int k = 0; k < 2; k++) { /* it is the better of both, when they are given */
            s.positive = k;
            fit = fitted(&s, &d.bags, NULL);
            fin_fit_get_info(fit, &info);
            assert_int_equal(info.positive, k);
            loss[k] = info.inner_loss;
            fin_fit_destroy(fit);
        }
        assert_true(found == loss[side] && loss[side] < loss[1 - side]);
        bags_free(&d);
    }
}

/* ---- monotone --------------------------------------------------------------------------------------- */

/* Any token, however far out, added to any bag: the positive class becomes no less probable. */
static void monotone__means_that(void **state)
{
    (void)state;
    enum { D = 3, LONGEST = 7 };
    const int64_t tries = sized(50, 400, 2000);
    for (int side = 0; side < 2; side++)
        for (int model = FIN_MODEL_AUTO; model <= FIN_MODEL_STACK; model += FIN_MODEL_STACK) {
            bags_sample d = marked(N, side, 37 + (uint64_t)side);
            fin_fit_settings s = settings_of(model);
            fin_fit_info info;
            fin_random r;
            s.assume = 1;
            s.landmarks = 10;
            if (side == 0) /* who assumes means class 1, unless he says so */
                s.positive = 0;
            fin_fit *fit = fitted(&s, &d.bags, NULL);
            fin_fit_get_info(fit, &info);
            assert_int_equal(info.positive, side);
            double weight;
            for (int64_t k = 0; k < info.parts; k++) {
                const fin_fit_settings *part = fin_fit_part(fit, k, &weight);
                assert_true(!(weight > 0) || part->model == FIN_MODEL_ANY ||
                            part->model == FIN_MODEL_BASE);
            }
            fin_random_open(&r, 5, FIN_STREAM_USER, 0);
            for (int64_t t = 0; t < tries; t++) {
                double tokens[LONGEST * D], p[2], q[2];
                int64_t L = 1 + t % (LONGEST - 1), offsets[] = {0, L};
                double size = t % 3 == 0 ? 1 : t % 3 == 1 ? 5 : 1e3;
                for (int64_t j = 0; j < (L + 1) * D; j++)
                    tokens[j] = (j < L * D ? 1 : size) * fin_random_normal(&r);
                fin_bags bag = {1, D, 0, 1, offsets, FIN_F64, tokens, NULL, NULL};
                OK(fin_fit_predict(fit, &bag, p, NULL, NULL, &err));
                offsets[1] = L + 1;
                OK(fin_fit_predict(fit, &bag, q, NULL, NULL, &err));
                if (!(q[side] >= p[side] - 1e-12))
                    fail_msg("%.17g, and with a token more %.17g", p[side], q[side]);
            }
            fin_fit_destroy(fit);
            bags_free(&d);
        }
}

static void monotone__needs_two_classes(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 3; classes += 3)
        for (int model = FIN_MODEL_AUTO; model <= FIN_MODEL_STACK; model += FIN_MODEL_STACK) {
            bags_sample d = bags_make(N, 3, classes, 3, 0.3, 39);
            fin_fit_settings s = settings_of(model);
            fin_fit *fit = NULL;
            s.assume = 1;
            assert_int_equal(fin_fit_create(&fit, &s, classes, &d.bags, NULL, NULL, NULL, &err),
                             FIN_ERR_ARGUMENT);
            assert_null(fit);
            assert_non_null(strstr(err.message, "two classes"));
            bags_free(&d);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names__change_no_bit),
        cmocka_unit_test(names__change_no_bit_of_a_validation),
        cmocka_unit_test(positive__is_a_side),
        cmocka_unit_test(positive__is_found),
        cmocka_unit_test(monotone__means_that),
        cmocka_unit_test(monotone__needs_two_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
