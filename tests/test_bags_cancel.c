/* Cancelling a fit: at any report, of any model, nothing is left behind; reports come from the
 * thread that made the call, and come in every long phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "fault.h"
#include "finetti/bags.h"
#include "test_size.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct listener {
    pthread_t thread;
    long calls, stop_at; /* the report that is answered with no, from 1; 0: none */
    long features, fit, after;
    double last; /* done of "fit" */
    int strange; /* reports from another thread, or with done beyond total */
} listener;

static int hear(void *user, const char *what, double done, double total)
{
    listener *l = user;
    l->strange += !pthread_equal(l->thread, pthread_self()) || !(done >= 0 && done <= total);
    l->calls++;
    l->features += strcmp(what, "features") == 0;
    l->fit += strcmp(what, "fit") == 0;
    l->after += l->stop_at && l->calls > l->stop_at;
    return l->stop_at && l->calls >= l->stop_at;
}

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = model;
    settings.iterations = 20;
    settings.inner = 2;
    settings.landmarks = 20;
    return settings;
}

/* One fit that is stopped at report k; every allocation is freed. Returns what it heard. */
static listener stopped_fit(const fin_fit_settings *settings, int64_t classes, const fin_bags *bags,
                            long k, fin_status *status)
{
    listener l = {.thread = pthread_self(), .stop_at = k};
    fin_progress progress = {hear, &l};
    fin_error err = {FIN_OK, ""};
    fin_fit *fit = (fin_fit *)&l;
    fault_begin(-1, 0);
    *status = fin_fit_create(&fit, settings, classes, bags, NULL, NULL, &progress, &err);
    assert_int_equal(*status == FIN_OK, fit != NULL);
    if (*status)
        assert_true(strlen(err.message) > 0);
    fin_fit_destroy(fit);
    assert_int_equal(atomic_load(&fault_live), 0);
    fault_end();
    assert_int_equal(l.strange, 0);
    return l;
}

/* Stops at every `step`-th report until the fit is through, and at the last one; small: a 15th. */
static void stop_everywhere(const fin_fit_settings *settings, int64_t classes, const fin_bags *bags,
                            long step, long least)
{
    fin_status status;
    listener all = stopped_fit(settings, classes, bags, 0, &status);
    assert_int_equal(status, FIN_OK);
    assert_true(all.calls >= least);
    /* with several threads, another one may have fitted all parts */
    assert_true(fin_threads_get() > 1 || (all.features >= 1 && all.fit >= 1));
    step *= sized(15, 1, 1);
    for (long k = 1; k <= all.calls;
         k = k < all.calls && k + step > all.calls ? all.calls : k + step) {
        listener l = stopped_fit(settings, classes, bags, k, &status);
        if (l.calls < k) { /* with several threads their number is not always the same */
            assert_true(fin_threads_get() > 1);
            break;
        }
        assert_int_equal(status, FIN_ERR_CANCELLED);
        assert_int_equal(l.after, 0);
    }
}

/* ---- every model ----------------------------------------------------------------------------- */

/* Every report of one model alone; some of those with inner folds, and groups in them. */
static void cancel__any_report_of_any_model(void **state)
{
    (void)state;
    enum { N = 24 };
    bags_sample numbers = bags_make(N, 3, 0, 3, 0.3, 21), classes = bags_make(N, 3, 2, 3, 0.3, 22);
    int64_t groups[N];
    for (int i = 0; i < N; i++)
        groups[i] = i / 2;
    for (int model = FIN_MODEL_AUTO; model <= FIN_MODEL_BAYES; model++) {
        fin_fit_settings settings = settings_of(model);
        bool many = model == FIN_MODEL_AUTO || model == FIN_MODEL_STACK;
        settings.calibrate = settings.locator = many ? 0 : 1;
        for (int threads = 1; threads <= 1 + many; threads++) {
            fin_threads_set(threads);
            if (model != FIN_MODEL_ANY)
                stop_everywhere(&settings, 0, &numbers.bags, many ? 61 : 1, 5);
            if (model == FIN_MODEL_ANY)
                settings.positive = 1;
            stop_everywhere(&settings, 2, &classes.bags, many ? 61 : 1, 5);
        }
    }
    numbers.bags.groups = classes.bags.groups = groups;
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_ANY; model++) {
        fin_fit_settings settings = settings_of(model);
        fin_threads_set(1 + model % 2);
        stop_everywhere(&settings, 2, &classes.bags, 61, 5);
        if (model == FIN_MODEL_EMBEDDING)
            stop_everywhere(&settings, 0, &numbers.bags, 31, 5);
    }
    fin_threads_set(0);
    bags_free(&numbers);
    bags_free(&classes);
}

static void cancel__all_sorts_of_features(void **state)
{
    (void)state;
    bags_sample s = bags_make(24, 3, 0, 3, 0.3, 23);
    for (int basis = FIN_BASIS_LINEAR; basis <= FIN_BASIS_BOTH; basis++)
        for (int map = 0; map < 2; map++) {
            fin_fit_settings settings = settings_of(map ? FIN_MODEL_MEAN : FIN_MODEL_MIXTURE);
            settings.basis = basis;
            settings.map = map;
            settings.calibrate = settings.locator = 1;
            settings.early = map ? 0.2 : 0;
            stop_everywhere(&settings, 0, &s.bags, 1, 5);
        }
    bags_free(&s);
}

/* ---- long phases ------------------------------------------------------------------------------ */

/* Enough work for reports from within loops; which are where the time goes. */
static void cancel__within_long_phases(void **state)
{
    (void)state;
    bags_sample s = bags_make(300, 4, 0, 3, 0.3, 24);
    fin_fit_settings settings = settings_of(FIN_MODEL_EMBEDDING);
    settings.calibrate = settings.locator = 1;
    settings.penalty = 1;
    for (int threads = 1; threads <= 2; threads++) {
        fin_status status;
        fin_threads_set(threads);
        listener l = stopped_fit(&settings, 0, &s.bags, 0, &status);
        assert_int_equal(status, FIN_OK);
        assert_true(l.features >= 6);
        stop_everywhere(&settings, 0, &s.bags, threads == 1 ? 1 : sized(3, 3, 1), 10);
    }
    fin_threads_set(0);
    bags_free(&s);
}

/* Repeated landmarks: the factor is made row by row. */
static void cancel__where_landmarks_repeat(void **state)
{
    (void)state;
    bags_sample s = bags_make(200, 2, 0, 3, 0.3, 25);
    for (int64_t t = 0; t < 2 * s.offsets[200]; t++)
        s.tokens[t] = floor(2 * s.tokens[t]);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    settings.basis = FIN_BASIS_RBF;
    settings.landmarks = 200;
    settings.penalty = 1;
    settings.calibrate = 1;
    stop_everywhere(&settings, 0, &s.bags, 1, 5);
    bags_free(&s);
}

/* Progress changes no bit of what comes out. */
static void cancel__reports_change_nothing(void **state)
{
    (void)state;
    enum { N = 200 };
    bags_sample s = bags_make(N, 4, 0, 3, 0.3, 26);
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++) {
        fin_fit_settings settings = settings_of(model);
        listener l = {.thread = pthread_self()};
        fin_progress progress = {hear, &l};
        double mean[2][N], sd[2][N];
        for (int with = 0; with < 2; with++) {
            fin_fit *fit;
            assert_int_equal(fin_fit_create(&fit, &settings, 0, &s.bags, NULL, NULL,
                                            with ? &progress : NULL, NULL),
                             FIN_OK);
            assert_int_equal(fin_fit_predict(fit, &s.bags, mean[with], sd[with], NULL, NULL),
                             FIN_OK);
            fin_fit_destroy(fit);
        }
        assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
        assert_memory_equal(sd[0], sd[1], sizeof sd[0]);
    }
    bags_free(&s);
}

/* ---- one long bag -------------------------------------------------------------------------------- */

/* Reports of a fit and of its answers to bags whose first tokens are one bag, or many. */
static void count_reports(int model, bool together, const float *tokens, long *fitting,
                          long *answering)
{
    enum { D = 64, SHORT = 64, LONG = 1 << 18, OTHERS = 8, N = LONG / SHORT + OTHERS };
    static int64_t offsets[N + 1];
    static double labels[N], p[2 * N], own[LONG + OTHERS * SHORT];
    fin_bags bags = {.d = D, .dtype = FIN_F32, .offsets = offsets, .tokens = tokens};
    bags.n = bags.total = together ? 1 + OTHERS : N;
    bags.labels = labels;
    for (int64_t i = 0; i < bags.n; i++) {
        labels[i] = (double)(i % 2);
        offsets[i + 1] = offsets[i] + (together && i == 0 ? LONG : SHORT);
    }
    fin_fit_settings settings = settings_of(model);
    settings.basis = FIN_BASIS_LINEAR;
    settings.iterations = 3;
    settings.penalty = 1;
    settings.calibrate = settings.locator = settings.positive = 1;
    listener a = {.thread = pthread_self()}, b = a;
    fin_progress fit_progress = {hear, &a}, progress = {hear, &b};
    fin_fit *fit = NULL;
    assert_int_equal(fin_fit_create(&fit, &settings, 2, &bags, NULL, NULL, &fit_progress, NULL),
                     FIN_OK);
    assert_int_equal(fin_fit_predict(fit, &bags, p, NULL, &progress, NULL), FIN_OK);
    if (fin_fit_locates(fit))
        assert_int_equal(
            fin_fit_locate(fit, &bags, &(fin_locations){.prior = own}, &progress, NULL), FIN_OK);
    fin_fit_destroy(fit);
    assert_int_equal(a.strange + b.strange, 0);
    *fitting = a.calls;
    *answering = b.calls;
}

/* Work is counted, not time: of the same tokens a long bag is asked about about as often as many short
 * ones (the number of evaluations differs), in fits and in answers. */
static void cancel__inside_of_one_long_bag(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE, FIN_MODEL_ANY, FIN_MODEL_MEAN,
                          FIN_MODEL_MAX};
    enum { TOKENS = ((1 << 18) + 8 * 64) * 64 };
    float *tokens = malloc(TOKENS * sizeof *tokens);
    assert_non_null(tokens);
    for (int64_t k = 0; k < TOKENS; k++)
        tokens[k] = (float)((uint64_t)k * 0x9e3779b97f4a7c15u >> 40) * 0x1p-24;
    fin_threads_set(1);
    for (int k = 0; k < (int)sized(1, 5, 5); k++) {
        long fitting[2], answering[2];
        for (int together = 0; together < 2; together++)
            count_reports(models[k], together, tokens, &fitting[together], &answering[together]);
        print_message("model %d: %ld reports of fits to many bags, %ld to one; answers %ld, %ld\n",
                      models[k], fitting[0], fitting[1], answering[0], answering[1]);
        assert_true(4 * fitting[1] >= fitting[0] && 3 * answering[1] >= answering[0]);
    }
    fin_threads_set(0);
    free(tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel__inside_of_one_long_bag),
        cmocka_unit_test(cancel__any_report_of_any_model),
        cmocka_unit_test(cancel__all_sorts_of_features),
        cmocka_unit_test(cancel__within_long_phases),
        cmocka_unit_test(cancel__where_landmarks_repeat),
        cmocka_unit_test(cancel__reports_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
