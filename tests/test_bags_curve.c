/* The learning curve: by hand from single fits, for any number of threads; cancelling, faults,
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_bags_validate_help.h"

enum { N = 60 };

static fin_fit *fitted(const toy *t, int model, int64_t classes)
{
    fin_fit_settings s = toy_settings(model);
    fin_fit *fit;
    OK(fin_fit_create(&fit, &s, classes, &t->bags, NULL, NULL, NULL, &err));
    return fit;
}

static void curve__is_fits_to_parts(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        toy t;
        int32_t fold[N], quarter[N];
        fin_curve_size size[FIN_CURVE_SIZES];
        double weights[N], labels[N], mean[2 * N], sd[2 * N];
        toy_draw(&t, N, classes, 0.5, 1);
        fin_fit *fit = fitted(&t, FIN_MODEL_SOFTMAX, classes);
        const fin_fit_settings *s = fin_fit_get_settings(fit);
        OK(fin_fit_curve(fit, &t.bags, NULL, size, &err));
        OK(fin_folds_make(N, classes, t.labels, NULL, 1, FIN_CURVE_FOLDS, s->seed, fold, &err));
        OK(fin_folds_make(N, classes, t.labels, NULL, 1, FIN_CURVE_SIZES, s->seed ^ 1, quarter,
                          &err));
        for (int q = 0; q < FIN_CURVE_SIZES; q++) {
            double bags = 0, score[FIN_CURVE_FOLDS], sum = 0, squares = 0;
            for (int f = 0; f < FIN_CURVE_FOLDS; f++) {
                fin_fit *part;
                fin_fit_score judged;
                for (int i = 0; i < N; i++) {
                    bags += weights[i] = fold[i] != f && quarter[i] <= q;
                    labels[i] = fold[i] == f ? t.labels[i] : NAN;
                }
                OK(fin_fit_create(&part, s, classes, &t.bags, weights, NULL, NULL, &err));
                OK(fin_fit_predict(part, &t.bags, mean, sd, NULL, &err));
                OK(fin_fit_judge(N, classes, labels, mean, sd, NULL, &judged, &err));
                score[f] = classes ? judged.accuracy : judged.r2;
                sum += score[f] / FIN_CURVE_FOLDS;
                fin_fit_destroy(part);
            }
            for (int f = 0; f < FIN_CURVE_FOLDS; f++)
                squares += (score[f] - sum) * (score[f] - sum);
            assert_true(size[q].score == sum);
            assert_true(fabs(size[q].bags - bags / FIN_CURVE_FOLDS) < 1e-9);
            assert_true(fabs(size[q].se - sqrt(squares / 20)) < 1e-12);
        }
        assert_true(size[3].bags == 48 && size[0].bags < 14 && size[3].score > size[0].score);
        fin_fit_destroy(fit);
    }
}

static void curve__same_bytes_for_any_threads(void **state)
{
    (void)state;
    static const int models[] = {FIN_MODEL_MEAN, FIN_MODEL_AUTO};
    for (int m = 0; m < 2; m++) {
        toy t;
        fin_curve_size size[2][FIN_CURVE_SIZES];
        toy_draw(&t, N, 2, 0.5, 1);
        fin_fit *fit = fitted(&t, models[m], 2);
        for (int k = 0; k < 2; k++) {
            fin_threads_set(1 + 2 * k);
            OK(fin_fit_curve(fit, &t.bags, NULL, size[k], &err));
        }
        fin_threads_set(1);
        assert_memory_equal(size[0], size[1], sizeof size[0]);
        fin_fit_destroy(fit);
    }
}

typedef struct listener {
    int calls, stop_at;
} listener;

static int hear(void *user, const char *what, double done, double total)
{
    listener *l = user;
    assert_string_equal(what, "learning curve");
    assert_true(done >= 0 && done <= total && total == FIN_CURVE_SIZES * FIN_CURVE_FOLDS);
    return ++l->calls >= l->stop_at;
}

static void curve__cancels(void **state)
{
    (void)state;
    toy t;
    toy_draw(&t, N, 2, 0.5, 1);
    fin_fit *fit = fitted(&t, FIN_MODEL_SOFTMAX, 2);
    for (int threads = 1; threads <= 2; threads++)
        for (int at = 1; at < 20; at += 6) {
            listener l = {0, at};
            const fin_progress progress = {hear, &l};
            fin_curve_size size[FIN_CURVE_SIZES];
            fin_threads_set(threads);
            assert_int_equal(fin_fit_curve(fit, &t.bags, &progress, size, &err), FIN_ERR_CANCELLED);
        }
    fin_threads_set(1);
    fin_fit_destroy(fit);
}

static fin_status run(void *user, fin_error *error)
{
    const toy *t = user;
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    fin_curve_size size[FIN_CURVE_SIZES];
    fin_fit *fit = NULL;
    fin_status status = fin_fit_create(&fit, &s, 2, &t->bags, NULL, NULL, NULL, error);
    if (!status)
        status = fin_fit_curve(fit, &t->bags, NULL, size, error);
    fin_fit_destroy(fit);
    return status;
}

static void curve__allocations_may_fail(void **state)
{
    (void)state;
    toy t;
    toy_draw(&t, N, 2, 0.5, 1);
    fin_threads_set(1);
    fault_begin(-1, 0);
    fin_fit *fit = fitted(&t, FIN_MODEL_MEAN, 2);
    long own = atomic_load(&fault_count); /* the first of the curve */
    fin_fit_destroy(fit);
    fault_end();
    fault_begin(-1, 0);
    assert_int_equal(run(&t, NULL), FIN_OK);
    fault_end();
    long last = atomic_load(&fault_count) - 1;
    print_message("%ld allocations, %ld of them by the fit\n", last + 1, own);
    const long at[] = {own, own + 1, own + 2, (own + last) / 2, last};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++)
        assert_true(fault_one(run, &t, at[k]) > 0);
}

static void curve__rejects(void **state)
{
    (void)state;
    toy t;
    fin_curve_size size[FIN_CURVE_SIZES];
    toy_draw(&t, N, 2, 0.5, 1);
    fin_fit *fit = fitted(&t, FIN_MODEL_MEAN, 2);
    fin_bags bags = t.bags;
    assert_int_equal(fin_fit_curve(NULL, &bags, NULL, size, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_fit_curve(fit, NULL, NULL, size, &err), FIN_ERR_ARGUMENT);
    bags.labels = NULL;
    assert_int_equal(fin_fit_curve(fit, &bags, NULL, size, &err), FIN_ERR_ARGUMENT);
    bags = t.bags;
    bags.n = bags.total = 39;
    assert_int_equal(fin_fit_curve(fit, &bags, NULL, size, &err), FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "at least 40 bags, and 10 of every class"));
    for (int i = 0, ones = 0; i < N; i++) { /* nine of class 1 */
        ones += t.labels[i] == 1;
        t.labels[i] = t.labels[i] == 1 && ones <= 9;
    }
    assert_int_equal(fin_fit_curve(fit, &t.bags, NULL, size, &err), FIN_ERR_UNSUPPORTED);
    fin_fit_destroy(fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curve__is_fits_to_parts),
        cmocka_unit_test(curve__same_bytes_for_any_threads),
        cmocka_unit_test(curve__cancels),
        cmocka_unit_test(curve__allocations_may_fail),
        cmocka_unit_test(curve__rejects),
    };
    fin_threads_set(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
