/* The model bayes: as good as any learner can be where that is known, calibrated, the same for any threads
 * and through a file; and it gives up cleanly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "bags/bags.h"
#include "bags_sample.h"
#include "fault.h"
#include "finetti/bags.h"
#include "finetti/task.h"
#include "test_size.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { D = 60, L = 3, HELD = 2000 };

typedef struct sample {
    int64_t n;
    int64_t *offsets, *location;
    double *tokens, *labels;
    fin_bags learn, test;
} sample;

/* Bags of `spiked`, snr = 5: n to learn from, HELD others. */
static sample draw(int64_t n, double eps, int64_t seed)
{
    fin_error err = {FIN_OK, ""};
    const fin_task_kind *kind = fin_task_find("spiked");
    fin_task_settings settings;
    fin_task *task = NULL;
    fin_settings_defaults(fin_task_kind_table(kind), &settings, sizeof settings);
    settings.d = D;
    settings.L = L;
    settings.eps = eps;
    settings.snr = 5;
    int64_t all = n + HELD;
    sample s = {.n = n};
    s.offsets = calloc((size_t)all + 1, sizeof *s.offsets);
    s.location = calloc((size_t)all, sizeof *s.location);
    s.labels = calloc((size_t)all, sizeof *s.labels);
    s.tokens = calloc((size_t)(all * L * D), sizeof *s.tokens);
    assert_true(s.offsets && s.location && s.labels && s.tokens);
    assert_int_equal(
        fin_task_create(&task, kind, &settings, NULL, (uint64_t)seed, FIN_TASK_AMBIENT, &err),
        FIN_OK);
    assert_int_equal(fin_task_offsets(task, 0, all, s.offsets, &err), FIN_OK);
    assert_int_equal(
        fin_task_draw(task, 0, all, FIN_F64, s.offsets, s.tokens, s.labels, s.location, &err),
        FIN_OK);
    fin_task_destroy(task);
    s.learn = (fin_bags){n, D, 0, n, s.offsets, FIN_F64, s.tokens, s.labels, NULL};
    s.test = (fin_bags){HELD,         D,   0, HELD, s.offsets + n, FIN_F64, s.tokens + n * L * D,
                        s.labels + n, NULL};
    return s;
}

static void drop(sample *s)
{
    free(s->offsets);
    free(s->location);
    free(s->labels);
    free(s->tokens);
}

static fin_fit_settings settings_of(void)
{
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = FIN_MODEL_BAYES;
    return settings;
}

static fin_fit *fit_of(const fin_bags *bags, int64_t classes)
{
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings = settings_of();
    fin_fit *fit = NULL;
    if (fin_fit_create(&fit, &settings, classes, bags, NULL, NULL, NULL, &err))
        fail_msg("%s", err.message);
    return fit;
}

/* Risk, coverage of 90 % intervals and calibration error of locations on bags that are new. */
typedef struct verdict {
    double risk, covered, ece;
} verdict;

static verdict judge(const fin_fit *fit, const sample *s)
{
    enum { BINS = 15 };
    fin_error err = {FIN_OK, ""};
    double *mean = calloc(HELD, sizeof *mean), *ends = calloc(2 * HELD, sizeof *ends);
    double *prior = calloc(HELD * L, sizeof *prior), gap[BINS] = {0};
    verdict v = {0};
    assert_true(mean && ends && prior);
    assert_int_equal(fin_fit_interval(fit, &s->test, 0.9, mean, NULL, ends, NULL, &err), FIN_OK);
    fin_locations to = {.prior = prior};
    assert_int_equal(fin_fit_locate(fit, &s->test, &to, NULL, &err), FIN_OK);
    for (int64_t i = 0; i < HELD; i++) {
        double rest = mean[i] - s->test.labels[i], y = s->test.labels[i];
        v.risk += rest * rest / HELD;
        v.covered += (ends[2 * i] <= y && y <= ends[2 * i + 1]) / (double)HELD;
        for (int64_t l = 0; l < L; l++) {
            double p = prior[i * L + l];
            int bin = (int)(p * BINS);
            gap[bin < BINS ? bin : BINS - 1] += p - (s->location[s->n + i] == l);
        }
    }
    for (int b = 0; b < BINS; b++)
        v.ece += fabs(gap[b]) / (HELD * L);
    free(mean);
    free(ends);
    free(prior);
    return v;
}

/* Two bags a column. The optimal risk is that of state evolution (`finetti curve`): 0.59968 at eps = 0.5.
 * Mean over data sets of 60 columns, which is off by a term of order 1 / d. */
static void bayes__is_as_good_as_any_learner(void **state)
{
    (void)state;
    enum { SETS = 3 };
    const double optimal = 0.59968;
    verdict mean = {0};
    for (int64_t seed = 1; seed <= SETS; seed++) {
        sample s = draw(2 * D, 0.5, seed);
        fin_fit *fit = fit_of(&s.learn, 0);
        verdict v = judge(fit, &s);
        mean.risk += v.risk / SETS;
        mean.covered += v.covered / SETS;
        mean.ece += v.ece / SETS;
        fin_fit_destroy(fit);
        drop(&s);
    }
    print_message("risk %.4f of %.4f, covered %.3f, ece %.4f\n", mean.risk, optimal, mean.covered,
                  mean.ece);
    assert_true(mean.risk < 1.2 * optimal);
    assert_true(mean.covered > 0.85 && mean.covered < 0.95);
    assert_true(mean.ece < 0.04);
}

/* Classes: sharpness from draws that count as if they had not seen a bag, against fits that have not. */
static void bayes__is_as_sharp_as_bags_left_out_say(void **state)
{
    (void)state;
    enum { N = 40 };
    for (int64_t classes = 2; classes <= sized(2, 2, 3); classes++) {
        bags_sample s = bags_make(N, 3, classes, 3, 0.3, 9);
        fin_error err = {FIN_OK, ""};
        double weights[N], left[N * 3], all[N * 3], alone, one[N];
        fin_fit_settings settings = settings_of();
        settings.calibrate = 1; /* no */
        for (int64_t i = 0; i < N; i++)
            one[i] = 1;
        for (int64_t i = 0; i < N; i++) {
            fin_fit *fit = NULL;
            memcpy(weights, one, sizeof weights);
            weights[i] = 0;
            assert_int_equal(
                fin_fit_create(&fit, &settings, classes, &s.bags, weights, NULL, NULL, &err),
                FIN_OK);
            assert_int_equal(fin_fit_predict(fit, &s.bags, all, NULL, NULL, &err), FIN_OK);
            memcpy(left + i * classes, all + i * classes, (size_t)classes * sizeof *all);
            fin_fit_destroy(fit);
        }
        assert_int_equal(fini_sharpness(&s.bags, classes, s.bags.labels, one, left, fini_sum_alone,
                                        &alone, &err),
                         FIN_OK);
        fin_fit *fit = fit_of(&s.bags, classes);
        fin_fit_info info;
        fin_fit_get_info(fit, &info);
        assert_true(classes == 3 || alone > 1.1);
        assert_true(fabs(log(info.sharpness / alone)) < 0.1);
        print_message("%d classes: sharpness %.3f, with bags left out %.3f\n", (int)classes,
                      info.sharpness, alone);
        fin_fit_destroy(fit);
        int64_t *groups = calloc(N, sizeof *groups);
        assert_non_null(groups);
        for (int64_t i = 0; i < N; i++)
            groups[i] = i / 2;
        s.bags.groups = groups;
        fit = fit_of(&s.bags, classes);
        fin_fit_get_info(fit, &info);
        assert_true(info.sharpness == 1); /* a bag has others of its group beside it */
        fin_fit_destroy(fit);
        free(groups);
        bags_free(&s);
    }
}

/* The same bytes for any number of threads, and from the tensors of a file. */
static void bayes__same_bytes_for_any_threads_and_from_tensors(void **state)
{
    (void)state;
    enum { ROOM = 64 };
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        bags_sample s = bags_make(40, 4, classes, 3, 0.3, 5);
        int64_t width = classes ? classes : 1;
        double mean[3][40 * 3], sd[3][40 * 3];
        fin_error err = {FIN_OK, ""};
        fin_fit *fit[3] = {NULL};
        for (int k = 0; k < 2; k++) {
            fin_threads_set(1 + 2 * k);
            fit[k] = fit_of(&s.bags, classes);
        }
        fin_threads_set(0);
        fin_tensor tensors[ROOM];
        int64_t count = fin_fit_tensors(fit[0], tensors, ROOM);
        assert_true(count <= ROOM);
        assert_int_equal(
            fin_fit_restore(&fit[2], fin_fit_get_settings(fit[0]), tensors, count, &err), FIN_OK);
        for (int k = 0; k < 3; k++)
            assert_int_equal(fin_fit_predict(fit[k], &s.bags, mean[k], sd[k], NULL, &err), FIN_OK);
        for (int k = 1; k < 3; k++) {
            assert_memory_equal(mean[0], mean[k], (size_t)(40 * width) * sizeof(double));
            assert_memory_equal(sd[0], sd[k], (size_t)(40 * width) * sizeof(double));
        }
        bool drawn = false;
        for (int64_t t = 0; t < count; t++)
            drawn |= strcmp(tensors[t].name, "0.draws") == 0 && tensors[t].dtype == FIN_F32;
        assert_true(drawn);
        for (int k = 0; k < 3; k++)
            fin_fit_destroy(fit[k]);
        bags_free(&s);
    }
}

/* Draws of a hostile file: not numbers, too few, none. */
static void restore__refuses_hostile_draws(void **state)
{
    (void)state;
    enum { ROOM = 64 };
    bags_sample s = bags_make(24, 3, 2, 3, 0.3, 6);
    fin_fit *fit = fit_of(&s.bags, 2), *back = NULL;
    fin_tensor good[ROOM], bad[ROOM];
    int64_t count = fin_fit_tensors(fit, good, ROOM), at = 0;
    while (at < count && strcmp(good[at].name, "0.draws"))
        at++;
    assert_true(at < count);
    int64_t numbers = good[at].shape[0] * good[at].shape[1];
    float *draws = malloc((size_t)numbers * sizeof *draws);
    assert_non_null(draws);
    for (int way = 0; way < 3; way++) {
        memcpy(bad, good, sizeof bad);
        memcpy(draws, good[at].data, (size_t)numbers * sizeof *draws);
        bad[at].data = draws;
        if (way == 0)
            draws[numbers / 2] = NAN;
        else if (way == 1)
            bad[at].shape[0]--;
        else
            strcpy(bad[at].name, "0.members");
        fin_error err = {FIN_OK, ""};
        assert_int_not_equal(fin_fit_restore(&back, fin_fit_get_settings(fit), bad, count, &err),
                             FIN_OK);
        assert_null(back);
        assert_true(strlen(err.message) > 0);
    }
    free(draws);
    fin_fit_destroy(fit);
    bags_free(&s);
}

/* Bags of one token, columns that repeat each other or have a heavy tail, a single column, labels that are
 * all noise: answers are numbers. */
static void bayes__survives_odd_columns(void **state)
{
    (void)state;
    enum { N = 30 };
    for (int way = 0; way < 4; way++) {
        int64_t d = way == 3 ? 1 : 4, tokens = way == 2 ? 1 : 3;
        int64_t offsets[N + 1];
        double x[N * 3 * 4], y[N], mean[N], sd[N];
        fin_random_normals_f64(7, FIN_STREAM_USER, (uint64_t)way, 0, N * tokens * d, x);
        fin_random_normals_f64(7, FIN_STREAM_USER + 1, (uint64_t)way, 0, N, y);
        for (int64_t r = 0; r < N * tokens && way < 2; r++) {
            x[r * d + 1] = x[r * d];
            x[r * d + 2] = way ? pow(x[r * d + 2], 15) : x[r * d] + 1e-9;
        }
        for (int64_t i = 0; i <= N; i++)
            offsets[i] = i * tokens;
        fin_bags bags = {N, d, 0, N, offsets, FIN_F64, x, y, NULL};
        fin_fit *fit = fit_of(&bags, 0);
        fin_error err = {FIN_OK, ""};
        assert_int_equal(fin_fit_predict(fit, &bags, mean, sd, NULL, &err), FIN_OK);
        for (int64_t i = 0; i < N; i++)
            assert_true(isfinite(mean[i]) && sd[i] > 0 && sd[i] < 100);
        fin_fit_destroy(fit);
    }
}

/* Every allocation fails once. */
static void bayes__lets_go_of_everything(void **state)
{
    (void)state;
    fin_fit_settings settings = settings_of();
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        bags_sample s = bags_make(24, 2, classes, 2, 0.3, 8);
        for (long k = 0, step = sized(59, 27, 1), done = 0; !done; k += step) {
            fin_error err = {FIN_OK, ""};
            fin_fit *fit = NULL;
            fault_begin(k, 0);
            fin_status status =
                fin_fit_create(&fit, &settings, classes, &s.bags, NULL, NULL, NULL, &err);
            done = status == FIN_OK;
            assert_true(done || (status == FIN_ERR_MEMORY && !fit && strlen(err.message) > 0));
            fin_fit_destroy(fit);
            assert_int_equal(atomic_load(&fault_live), 0);
            fault_end();
        }
        bags_free(&s);
    }
}

int main(void)
{
    fin_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bayes__is_as_good_as_any_learner),
        cmocka_unit_test(bayes__is_as_sharp_as_bags_left_out_say),
        cmocka_unit_test(bayes__same_bytes_for_any_threads_and_from_tensors),
        cmocka_unit_test(restore__refuses_hostile_draws),
        cmocka_unit_test(bayes__survives_odd_columns),
        cmocka_unit_test(bayes__lets_go_of_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
