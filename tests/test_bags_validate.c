/* Cross-validation: predictions are those of fits that have not seen the bag, for any number of
 * threads; means, standard errors and reliability by their definitions; progress; what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_bags_validate_help.h"

enum { N = 60, REPEATS = 2, FOLDS = 4 };

static fin_validation *validated(const toy *t, int count, const fin_fit_settings *models,
                                 int64_t classes, const int32_t *fold)
{
    fin_validation *v = NULL;
    OK(fin_validate(&v, count, models, classes, &t->bags, &(fin_folds){REPEATS, FOLDS, fold}, NULL,
                    &err));
    return v;
}

static void dealt(const toy *t, int64_t classes, int32_t *fold)
{
    OK(fin_folds_make(N, classes, t->labels, NULL, REPEATS, FOLDS, 3, fold, &err));
}

static int64_t width_of(int64_t classes)
{
    return classes ? classes : 1;
}

/* ---- what is predicted ----------------------------------------------------------------------- */

/* By hand: for every repeat and fold a fit with weights of 0, and the mean over repeats. */
static void validate__predicts_bags_that_were_left_out(void **state)
{
    (void)state;
    static const int models[] = {FIN_MODEL_MEAN, FIN_MODEL_SOFTMAX};
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        toy t;
        int32_t fold[REPEATS * N];
        toy_draw(&t, N, classes, 0.5, 1);
        dealt(&t, classes, fold);
        fin_fit_settings s[2] = {toy_settings(models[0]), toy_settings(models[1])};
        fin_validation *v = validated(&t, 2, s, classes, fold);
        int64_t width = width_of(classes);
        double sum[3 * N] = {0}, mean[3 * N], weights[N];
        for (int r = 0; r < REPEATS; r++)
            for (int f = 0; f < FOLDS; f++) {
                fin_fit *fit;
                for (int i = 0; i < N; i++)
                    weights[i] = fold[r * N + i] != f;
                OK(fin_fit_create(&fit, &s[1], classes, &t.bags, weights, NULL, NULL, &err));
                OK(fin_fit_predict(fit, &t.bags, mean, NULL, NULL, &err));
                for (int64_t k = 0; k < N * width; k++)
                    sum[k] += fold[r * N + k / width] == f ? mean[k] : 0;
                fin_fit_destroy(fit);
            }
        for (int64_t k = 0; k < N * width; k++)
            assert_true(sum[k] / REPEATS == fin_validation_mean(v, 1)[k]);
        fin_validation_destroy(v);
    }
}

/* Inner fits are shared: a table of several models says of each what it says alone, to the bit; and that is
 * what a fit to the training set answers. Only the fold that has the first bag may differ by rounding: what
 * class is first there is another one. */
static void validate__shares_fits(void **state)
{
    (void)state;
    enum { MODELS = 6, TWO = 2, SOME = 40 };
    static const int models[MODELS] = {FIN_MODEL_STACK,     FIN_MODEL_ANY,  FIN_MODEL_SOFTMAX,
                                       FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN, FIN_MODEL_SOFTMAX};
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        toy t;
        int64_t width = width_of(classes), groups[SOME];
        int32_t fold[SOME];
        fin_fit_settings s[MODELS];
        fin_validation *all = NULL;
        int count = 0;
        toy_draw(&t, SOME, classes, 0.5, 9 + (uint64_t)classes);
        for (int i = 0; i < SOME; i++)
            groups[i] = i / 2;
        t.bags.groups = classes == 2 ? groups : NULL;
        OK(fin_folds_make(SOME, classes, t.labels, t.bags.groups, 1, TWO, 3, fold, &err));
        for (int m = 0; m < MODELS; m++)
            if ((models[m] != FIN_MODEL_ANY && models[m] != FIN_MODEL_STACK) || classes == 2)
                s[count++] = toy_settings(models[m]);
        s[count - 1].inner = 4; /* other folds: a family of its own */
        OK(fin_validate(&all, count, s, classes, &t.bags, &(fin_folds){1, TWO, fold}, NULL, &err));
        for (int m = 0; m < count; m++) {
            fin_validation *alone = NULL;
            const double *p = fin_validation_mean(all, m);
            OK(fin_validate(&alone, 1, &s[m], classes, &t.bags, &(fin_folds){1, TWO, fold}, NULL,
                            &err));
            assert_memory_equal(p, fin_validation_mean(alone, 0),
                                (size_t)(SOME * width) * sizeof *p);
            assert_memory_equal(&fin_validation_at(all, m)->mean,
                                &fin_validation_at(alone, 0)->mean, sizeof(fin_fit_score));
            fin_validation_destroy(alone);
            for (int f = 0; f < TWO; f++) {
                double weights[SOME], mean[3 * SOME];
                fin_fit *fit = NULL;
                for (int i = 0; i < SOME; i++)
                    weights[i] = fold[i] != f;
                OK(fin_fit_create(&fit, &s[m], classes, &t.bags, weights, NULL, NULL, &err));
                OK(fin_fit_predict(fit, &t.bags, mean, NULL, NULL, &err));
                fin_fit_destroy(fit);
                for (int64_t k = 0; k < SOME * width; k++)
                    if (fold[k / width] == f && !(fabs(mean[k] - p[k]) <= 1e-12 * fabs(p[k])))
                        fail_msg("%d classes, model %d, bag %d: %.17g, and not %.17g", (int)classes,
                                 s[m].model, (int)(k / width), p[k], mean[k]);
            }
        }
        fin_validation_destroy(all);
    }
}

/* Auto looks at the other models too, as fin_fit_create_among does. */
static void validate__auto_chooses_among_the_others(void **state)
{
    (void)state;
    enum { TWO = 2 };
    toy t;
    int32_t fold[N];
    fin_validation *v = NULL;
    toy_draw(&t, N, 2, 0.5, 14);
    OK(fin_folds_make(N, 2, t.labels, NULL, 1, TWO, 3, fold, &err));
    fin_fit_settings s[3] = {toy_settings(FIN_MODEL_AUTO), toy_settings(FIN_MODEL_ERF),
                             toy_settings(FIN_MODEL_SOFTMAX)};
    s[2].heads = 2;
    OK(fin_validate(&v, 3, s, 2, &t.bags, &(fin_folds){1, TWO, fold}, NULL, &err));
    for (int f = 0; f < TWO; f++) {
        double weights[N], mean[2 * N];
        const double *p = fin_validation_mean(v, 0);
        fin_fit *fit = NULL;
        for (int i = 0; i < N; i++)
            weights[i] = fold[i] != f;
        OK(fin_fit_create_among(&fit, &(fin_fit_others){2, s + 1}, s, 2, &t.bags, weights, NULL,
                                NULL, &err));
        OK(fin_fit_predict(fit, &t.bags, mean, NULL, NULL, &err));
        fin_fit_destroy(fit);
        for (int k = 0; k < 2 * N; k++)
            if (fold[k / 2] == f)
                assert_true(fabs(mean[k] - p[k]) <= 1e-12 * p[k]);
    }
    fin_validation_destroy(v);
    fin_fit_settings many[20];
    for (int m = 0; m < 20; m++) {
        many[m] = toy_settings(FIN_MODEL_MEAN);
        many[m].penalty = 1 + m;
    }
    fin_fit *fit = NULL;
    assert_int_equal(fin_fit_create_among(&fit, &(fin_fit_others){20, many}, s, 2, &t.bags, NULL,
                                          NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_null(fit);
}

static void validate__same_bits_for_any_threads(void **state)
{
    (void)state;
    toy t;
    int32_t fold[REPEATS * N];
    toy_draw(&t, N, 2, 0.5, 2);
    dealt(&t, 2, fold);
    fin_fit_settings s[3] = {toy_settings(FIN_MODEL_MEAN), toy_settings(FIN_MODEL_STACK),
                             toy_settings(FIN_MODEL_MIXTURE)};
    fin_validation *first = NULL;
    for (int threads = 1; threads <= 4; threads += 3) {
        fin_threads_set(threads);
        fin_validation *v = validated(&t, 3, s, 2, fold);
        for (int m = 0; first && m < 3; m++) {
            fin_validation_row a = *fin_validation_at(first, m), b = *fin_validation_at(v, m);
            assert_memory_equal(fin_validation_mean(first, m), fin_validation_mean(v, m),
                                2 * N * sizeof(double));
            assert_true(a.seconds > 0 && b.seconds > 0);
            assert_memory_equal(&a.mean, &b.mean, sizeof a.mean);
            assert_memory_equal(&a.se, &b.se, sizeof a.se);
            assert_true(a.main == b.main && a.gain == b.gain && a.gain_se == b.gain_se);
        }
        if (first)
            fin_validation_destroy(v);
        else
            first = v;
    }
    fin_threads_set(1);
    fin_validation_destroy(first);
}

/* ---- what is said of it ---------------------------------------------------------------------- */

/* One repeat, so that the mean over repeats is the prediction: every score of every fold by
 * hand. */
static void rows__are_means_over_folds(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        toy t;
        int32_t fold[REPEATS * N];
        toy_draw(&t, N, classes, 0.5, 3);
        dealt(&t, classes, fold);
        fin_fit_settings s[2] = {toy_settings(FIN_MODEL_MEAN), toy_settings(FIN_MODEL_SOFTMAX)};
        fin_validation *v = NULL;
        OK(fin_validate(&v, 2, s, classes, &t.bags, &(fin_folds){1, FOLDS, fold}, NULL, &err));
        double main[2][FOLDS], loss[FOLDS], center = 0, variance = 0;
        for (int i = 0; i < N; i++)
            center += t.labels[i] / N;
        for (int i = 0; i < N; i++)
            variance += (t.labels[i] - center) * (t.labels[i] - center) / N;
        for (int m = 0; m < 2; m++)
            for (int f = 0; f < FOLDS; f++) {
                const double *p = fin_validation_mean(v, m);
                double right = 0, squares = 0, count = 0;
                loss[f] = 0;
                for (int i = 0; i < N; i++) {
                    if (fold[i] != f)
                        continue;
                    count++;
                    if (classes) {
                        right += (p[2 * i + 1] > 0.5) == (t.labels[i] == 1);
                        loss[f] -= log(p[2 * i + (int)t.labels[i]]);
                    } else {
                        squares += (p[i] - t.labels[i]) * (p[i] - t.labels[i]);
                        loss[f] += fabs(p[i] - t.labels[i]);
                    }
                }
                main[m][f] = classes ? right / count : 1 - squares / count / variance;
                loss[f] /= count;
            }
        double mean[3] = {0, 0, 0}, squares[3] = {0, 0, 0}, gain = 0, of_gain = 0;
        for (int f = 0; f < FOLDS; f++) {
            mean[0] += main[1][f] / FOLDS;
            mean[1] += loss[f] / FOLDS;
            gain += (main[1][f] - main[0][f]) / FOLDS;
        }
        for (int f = 0; f < FOLDS; f++) {
            squares[0] += pow(main[1][f] - mean[0], 2) / (FOLDS - 1);
            squares[1] += pow(loss[f] - mean[1], 2) / (FOLDS - 1);
            of_gain += pow(main[1][f] - main[0][f] - gain, 2) / (FOLDS - 1);
        }
        const fin_validation_row *row = fin_validation_at(v, 1), *base = fin_validation_at(v, 0);
        assert_true(fabs(row->main - mean[0]) < 1e-12);
        assert_true(fabs(row->main_se - sqrt(squares[0] / FOLDS)) < 1e-12);
        double got = classes ? row->mean.log_loss : row->mean.mae;
        double got_se = classes ? row->se.log_loss : row->se.mae;
        assert_true(fabs(got - mean[1]) < 1e-12);
        assert_true(fabs(got_se - sqrt(squares[1] / FOLDS)) < 1e-12);
        assert_true(fabs(row->gain - gain) < 1e-12);
        /* Nadeau and Bengio: 15 bags left out for 45 that are not. */
        assert_true(fabs(row->gain_se - sqrt((1.0 / FOLDS + 15.0 / 45.0) * of_gain)) < 1e-12);
        assert_true(base->gain == 0 && base->gain_se == 0);
        assert_int_equal(row->mean.count, N);
        assert_int_equal(row->se.count, FOLDS);
        assert_int_equal(row->settings.model, FIN_MODEL_SOFTMAX);
        assert_null(fin_validation_at(v, 2));
        assert_null(fin_validation_at(v, -1));
        assert_null(fin_validation_mean(v, 2));
        fin_validation_destroy(v);
    }
}

/* Folds of a single bag have no AUC of their own, and no r2 in the usual sense. */
static void rows__of_leave_one_out(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        toy t;
        int32_t fold[N];
        toy_draw(&t, N, classes, 0.5, 4);
        for (int i = 0; i < N; i++)
            fold[i] = i;
        fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
        fin_validation *v = NULL;
        OK(fin_validate(&v, 1, &s, classes, &t.bags, &(fin_folds){1, N, fold}, NULL, &err));
        fin_fit_score all;
        OK(fin_fit_judge(N, classes, t.labels, fin_validation_mean(v, 0), NULL, NULL, &all, &err));
        fin_fit_score mean = fin_validation_at(v, 0)->mean;
        if (classes) {
            assert_true(fabs(mean.accuracy - all.accuracy) < 1e-12);
            assert_true(mean.auc == all.auc && mean.ece == all.ece);
        } else {
            assert_true(fabs(mean.r2 - all.r2) < 1e-12);
        }
        fin_validation_destroy(v);
    }
}

static void reliability__counts_probabilities(void **state)
{
    (void)state;
    enum { BINS = 7 };
    toy t;
    int32_t fold[REPEATS * N];
    toy_draw(&t, N, 3, 0.5, 5);
    dealt(&t, 3, fold);
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    fin_validation *v = NULL;
    OK(fin_validate(&v, 1, &s, 3, &t.bags, &(fin_folds){1, FOLDS, fold}, NULL, &err));
    int64_t count[BINS], all = 0;
    double predicted[BINS], observed[BINS];
    const double *p = fin_validation_mean(v, 0);
    OK(fin_validation_reliability(v, 0, BINS, count, predicted, observed, &err));
    for (int b = 0; b < BINS; b++) {
        double n = 0, sum = 0, hits = 0;
        for (int i = 0; i < N; i++)
            for (int c = 0; c < 3; c++)
                if (p[3 * i + c] >= (double)b / BINS &&
                    (p[3 * i + c] < (b + 1.0) / BINS || b == BINS - 1)) {
                    n++;
                    sum += p[3 * i + c];
                    hits += t.labels[i] == c;
                }
        assert_int_equal(count[b], n);
        all += count[b];
        assert_true(n > 0 ? fabs(predicted[b] - sum / n) < 1e-12 : isnan(predicted[b]));
        assert_true(n > 0 ? fabs(observed[b] - hits / n) < 1e-12 : isnan(observed[b]));
    }
    assert_int_equal(all, 3 * N);
    assert_int_equal(fin_validation_reliability(v, 1, BINS, count, predicted, observed, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_validation_reliability(v, 0, 0, count, predicted, observed, &err),
                     FIN_ERR_ARGUMENT);
    fin_validation_destroy(v);
    toy_draw(&t, N, 0, 0.5, 5);
    v = validated(&t, 1, &s, 0, fold);
    assert_int_equal(fin_validation_reliability(v, 0, BINS, count, predicted, observed, &err),
                     FIN_ERR_UNSUPPORTED);
    fin_validation_destroy(v);
    fin_validation_destroy(NULL);
}

/* ---- progress -------------------------------------------------------------------------------- */

typedef struct watch {
    double done, total;
    int calls, stop_at;
} watch;

static int look(void *user, const char *what, double done, double total)
{
    watch *w = user;
    assert_string_equal(what, "cross-validation");
    assert_true(done >= 0 && done <= total && total == w->total);
    w->done = done;
    return ++w->calls == w->stop_at;
}

static void validate__reports_and_can_be_cancelled(void **state)
{
    (void)state;
    toy t;
    int32_t fold[REPEATS * N];
    toy_draw(&t, N, 2, 0.5, 6);
    dealt(&t, 2, fold);
    fin_fit_settings s[2] = {toy_settings(FIN_MODEL_MEAN), toy_settings(FIN_MODEL_SOFTMAX)};
    fin_threads_set(1);
    for (int stop = 0; stop <= 6; stop += 1 + stop) {
        /* each to the training set and, for its calibration, without each inner fold */
        const int fits = 2 * REPEATS * FOLDS * (1 + (int)s[0].inner);
        watch w = {.total = fits, .stop_at = stop};
        const fin_progress progress = {look, &w};
        fin_validation *v = NULL;
        fin_error e = {FIN_OK, ""};
        fault_begin(-1, 0);
        fin_status status =
            fin_validate(&v, 2, s, 2, &t.bags, &(fin_folds){REPEATS, FOLDS, fold}, &progress, &e);
        if (stop) {
            assert_int_equal(status, FIN_ERR_CANCELLED);
            assert_null(v);
            assert_true(e.message[0]);
        } else {
            assert_int_equal(status, FIN_OK);
            assert_true(w.done == w.total && w.calls >= fits);
        }
        fin_validation_destroy(v);
        assert_int_equal(atomic_load(&fault_live), 0);
        fault_end();
    }
    fin_threads_set(1);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(const toy *t, int count, const fin_fit_settings *s, int64_t classes,
                    int repeats, int folds, const int32_t *fold, const char *word)
{
    fin_validation *v = (fin_validation *)1;
    fin_error e = {FIN_OK, ""};
    assert_int_equal(
        fin_validate(&v, count, s, classes, &t->bags, &(fin_folds){repeats, folds, fold}, NULL, &e),
        FIN_ERR_ARGUMENT);
    if (!strstr(e.message, word))
        fail_msg("'%s' is not in: %s", word, e.message);
    assert_null(v);
}

static void validate__refuses(void **state)
{
    (void)state;
    toy t;
    int32_t fold[REPEATS * N];
    toy_draw(&t, N, 2, 0.5, 7);
    dealt(&t, 2, fold);
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    refused(&t, 0, &s, 2, REPEATS, FOLDS, fold, "0 models");
    refused(&t, 1, &s, 2, 0, FOLDS, fold, "0 times");
    refused(&t, 1, &s, 2, REPEATS, 1, fold, "1 folds");
    refused(&t, 1, &s, 2, REPEATS, FOLDS, NULL, "fold");
    refused(&t, 1, &s, 1, REPEATS, FOLDS, fold, "1 classes");
    refused(&t, 1, &s, 2, REPEATS, FOLDS + 1, fold, "no bags");
    refused(&t, 1, &s, 2, REPEATS, FOLDS - 1, fold, "fold 3");
    fold[N + 7] = -1;
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "bag 7 is in fold -1 of repeat 1");
    dealt(&t, 2, fold);
    s.inner = 1;
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "inner");
    s.inner = 3;
    t.bags.total = N + 1;
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "one process");
    t.bags.total = N;
    t.bags.labels = NULL;
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "labels");
    t.bags.labels = t.labels;
    refused(&t, 1, &s, INT64_C(1) << 61, REPEATS, FOLDS, fold, "classes");
    const double label = t.labels[3];
    t.labels[3] = NAN;
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "bag 3 has no label");
    t.labels[3] = 2; /* of two classes */
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "bag 3 has a label that is not one");
    t.labels[3] = label;
    t.offsets[5] = t.offsets[6];
    refused(&t, 1, &s, 2, REPEATS, FOLDS, fold, "at least one token");
    t.offsets[5]--;
    for (int i = 0; i < N; i++) /* all of class 1 in one fold: nothing to learn it from */
        fold[i] = t.labels[i] == 1 ? 0 : 1 + i % 3;
    refused(&t, 1, &s, 2, 1, FOLDS, fold, "fold 0 of repeat 0");
}

static fin_status validate_once(void *user, fin_error *e)
{
    static const int32_t fold[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
    toy t;
    fin_validation *v = NULL;
    const fin_fit_settings *s = user; /* two: with families of their own */
    toy_draw(&t, 12, 2, 0.5, 8);
    for (int i = 0; i < 12; i++)
        t.labels[i] = i % 2;
    fin_status status = fin_validate(&v, 2, s, 2, &t.bags, &(fin_folds){1, 2, fold}, NULL, e);
    fin_validation_destroy(v);
    return status;
}

static void validate__without_memory(void **state)
{
    (void)state;
    fin_fit_settings s[2] = {toy_settings(FIN_MODEL_MEAN), toy_settings(FIN_MODEL_ANY)};
    s[0].iterations = s[1].iterations = 1;
    s[1].basis = FIN_BASIS_LINEAR;
    s[1].inner = 2;
    fin_threads_set(1);
    print_message("%ld allocations\n", fault_every(validate_once, s));
    fin_threads_set(2);
    fault_every(validate_once, s);
    fin_threads_set(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate__predicts_bags_that_were_left_out),
        cmocka_unit_test(validate__shares_fits),
        cmocka_unit_test(validate__auto_chooses_among_the_others),
        cmocka_unit_test(validate__same_bits_for_any_threads),
        cmocka_unit_test(rows__are_means_over_folds),
        cmocka_unit_test(rows__of_leave_one_out),
        cmocka_unit_test(reliability__counts_probabilities),
        cmocka_unit_test(validate__reports_and_can_be_cancelled),
        cmocka_unit_test(validate__refuses),
        cmocka_unit_test(validate__without_memory),
    };
    fin_threads_set(1); /* what is small takes longer on several */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
