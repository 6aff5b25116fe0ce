/* Calibration as a setting of fits: its power comes from bags that were left out, changes neither
 * accuracies nor numbers, and goes through files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_bags_validate_help.h"

enum { NO = 1, YES = 2 }; /* the setting */

static fin_fit *fitted(const toy *t, const fin_fit_settings *s, int64_t classes,
                       const double *weights)
{
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, s, classes, &t->bags, weights, NULL, NULL, &err));
    return fit;
}

static double sharpness_of(const fin_fit *fit)
{
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    return info.sharpness;
}

/* ---- fits ------------------------------------------------------------------------------------ */

enum { N = 60, FOLDS = 3, MOST = 16 };

typedef struct hand {
    toy t;
    int64_t classes;
    int count; /* candidates */
    fin_fit_settings list[MOST];
    unsigned char use[N];
    int32_t fold[N];
    double out[MOST * 3 * N], P[MOST * N], blend[3 * N]; /* predictions for bags left out */
} hand;

/* Weights of the bags that are used and not in fold f. */
static void leave_out(const hand *h, int f, double *left)
{
    for (int i = 0; i < N; i++)
        left[i] = h->use[i] && h->fold[i] != f;
}

static void predict_left_out(hand *h, int m, int f)
{
    double left[N], p[3 * N];
    leave_out(h, f, left);
    fin_fit_settings one = h->list[m];
    one.calibrate = one.locator = NO;
    fin_fit *fit = fitted(&h->t, &one, h->classes, left);
    OK(fin_fit_predict(fit, &h->t.bags, p, NULL, NULL, &err));
    fin_fit_destroy(fit);
    for (int64_t i = 0; i < N * h->classes; i++)
        if (h->fold[i / h->classes] == f)
            h->out[m * N * h->classes + i] = p[i];
    for (int i = 0; i < N; i++)
        if (h->fold[i] == f)
            h->P[m * N + i] = p[i * h->classes + (int)h->t.labels[i]];
}

static void blend_left_out(hand *h, int f)
{
    double left[N], w[MOST], P[MOST * N];
    int in[MOST], kept = toy_stack(N, h->use, h->count, h->list, h->P, in);
    leave_out(h, f, left);
    for (int k = 0; k < kept; k++)
        memcpy(P + k * N, h->P + in[k] * N, N * sizeof *P);
    OK(fini_weights(kept, N, P, NULL, left, 10, w, &err));
    for (int64_t i = 0; i < N * h->classes; i++) {
        if (h->fold[i / h->classes] != f)
            continue;
        h->blend[i] = 0;
        for (int k = 0; k < kept; k++)
            h->blend[i] += w[k] * h->out[in[k] * N * h->classes + i];
    }
}

static double sharpness_by_hand(hand *h, const fin_fit_settings *s)
{
    double omega[N], of_class[3] = {0}, sharpness = NAN;
    h->count = fini_candidates(s, h->classes, NULL, 0);
    assert_in_range(h->count, 1, MOST);
    h->count = fini_candidates(s, h->classes, h->list, MOST);
    double order[N];
    OK(fini_bags_hash(&h->t.bags, NULL, true, NULL, order, &err));
    fini_dealt dealt = {N, h->classes, h->t.labels, NULL, h->use, true};
    OK(fini_folds_ordered(&dealt, order, FOLDS, s->seed, h->fold, &err));
    for (int k = 0; k < FOLDS * h->count; k++)
        predict_left_out(h, k / FOLDS, k % FOLDS);
    for (int f = 0; f < FOLDS; f++)
        blend_left_out(h, f);
    for (int i = 0; i < N; i++)
        of_class[(int)h->t.labels[i]] += h->use[i];
    for (int i = 0; i < N; i++) /* balanced: predictions count so, too */
        omega[i] = h->use[i] / (s->class_weights ? of_class[(int)h->t.labels[i]] : 1);
    OK(fini_sharpness(&h->t.bags, h->classes, h->t.labels, omega, h->blend, fini_sum_alone,
                      &sharpness, &err));
    return sharpness;
}

/* By hand: every candidate without each fold, for a stack weights without that fold, and the power
 * from these predictions. Then the fit is the one without calibration, taken to this power. */
static void calibrate__comes_from_bags_left_out(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_STACK, FIN_MODEL_SOFTMAX, FIN_MODEL_EMBEDDING};
    for (int k = 0; k < 3; k++) {
        static hand h;
        double weights[N], a[3 * N], b[3 * N];
        fin_fit_settings s = toy_settings(models[k]);
        s.penalty = 10; /* so that a fit is less sure than it may be */
        s.locator = NO;
        h.classes = k == 1 ? 3 : 2;
        toy_draw(&h.t, N, h.classes, 0.05, 31 + (uint64_t)k);
        for (int i = 0; i < N; i++)
            weights[i] = h.use[i] = i % 6 != 0;
        s.calibrate = k ? YES : 0;
        s.class_weights = k == 2;
        double sharpness = sharpness_by_hand(&h, &s);
        fin_fit *with = fitted(&h.t, &s, h.classes, weights);
        s.calibrate = NO;
        fin_fit *without = fitted(&h.t, &s, h.classes, weights);
        print_message("model %d: power %.4f\n", models[k], sharpness);
        assert_true(fabs(sharpness_of(with) - sharpness) < 1e-9 * sharpness);
        assert_true(fabs(sharpness - 1) > 0.01); /* or the test says nothing */
        assert_true(sharpness_of(without) == 1);
        OK(fin_fit_predict(with, &h.t.bags, a, NULL, NULL, &err));
        OK(fin_fit_predict(without, &h.t.bags, b, NULL, NULL, &err));
        fini_sharpen(sharpness_of(with), N, h.classes, b, NULL);
        assert_memory_equal(a, b, (size_t)(N * h.classes) * sizeof *a);
        fin_fit_destroy(with);
        fin_fit_destroy(without);
    }
}

/* Labels that only the number of tokens tells: one candidate knows it, and a stack would have to
 * listen to the others too. Then auto is this candidate, to the bit, and so is its calibration. */
static void auto__is_one_model_if_it_is_better(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        toy t;
        double a[2 * N], b[2 * N], weight = 0;
        fin_fit_settings s = toy_settings(FIN_MODEL_AUTO), one = toy_settings(FIN_MODEL_EMBEDDING);
        fin_fit_info info, alone;
        toy_draw(&t, N, classes, 0.5, 12);
        for (int i = 0; i < N; i++)
            t.labels[i] = (double)(t.offsets[i + 1] - t.offsets[i]);
        for (int i = 0; i < N && classes; i++)
            t.labels[i] = t.labels[i] > 2;
        s.locator = one.locator = NO;
        s.penalty = one.penalty = 0.01;
        s.iterations = one.iterations = 100;
        fin_fit *best = fitted(&t, &s, classes, NULL);
        fin_fit_get_info(best, &info);
        assert_int_equal(info.parts, 1);
        assert_int_equal(fin_fit_part(best, 0, &weight)->model, FIN_MODEL_EMBEDDING);
        assert_true(weight == 1);
        one.calibrate = 2;
        fin_fit *fit = fitted(&t, &one, classes, NULL);
        fin_fit_get_info(fit, &alone);
        assert_true(info.sharpness == alone.sharpness && (classes || info.sharpness == 1));
        OK(fin_fit_predict(best, &t.bags, a, NULL, NULL, &err));
        OK(fin_fit_predict(fit, &t.bags, b, NULL, NULL, &err));
        assert_memory_equal(a, b, (size_t)(classes ? 2 * N : N) * sizeof *a);
        fin_fit_destroy(best);
        fin_fit_destroy(fit);
    }
}

/* Accuracy and, within folds, the area under the curve stay as they are; nested, too. */
static void calibrate__keeps_accuracy(void **state)
{
    (void)state;
    toy t;
    int32_t fold[N];
    fin_validation *v = NULL;
    fin_fit_settings s[2] = {toy_settings(FIN_MODEL_SOFTMAX), toy_settings(FIN_MODEL_SOFTMAX)};
    s[0].calibrate = NO;
    s[1].calibrate = YES;
    toy_draw(&t, N, 2, 1, 31);
    OK(fin_folds_make(N, 2, t.labels, NULL, 1, FOLDS, 1, fold, &err));
    OK(fin_validate(&v, 2, s, 2, &t.bags, &(fin_folds){1, FOLDS, fold}, NULL, &err));
    const fin_fit_score *a = &fin_validation_at(v, 0)->mean, *b = &fin_validation_at(v, 1)->mean;
    print_message("log loss %.3f and %.3f\n", a->log_loss, b->log_loss);
    assert_true(a->accuracy == b->accuracy && fabs(a->auc - b->auc) < 1e-12);
    assert_true(a->log_loss != b->log_loss);
    fin_validation_destroy(v);
}

/* Labels and tokens of bags without weight may be anything. */
static void calibrate__looks_at_training_bags_only(void **state)
{
    (void)state;
    enum { BAGS = 40 };
    toy t;
    double weights[BAGS], power[2];
    fin_fit_settings s = toy_settings(FIN_MODEL_SOFTMAX);
    s.calibrate = YES;
    s.penalty = 3; /* so that there is something to calibrate */
    toy_draw(&t, BAGS, 2, 0.2, 3);
    for (int i = 0; i < BAGS; i++)
        weights[i] = i % 4 != 0;
    for (int k = 0; k < 2; k++) {
        fin_fit *fit = fitted(&t, &s, 2, weights);
        power[k] = sharpness_of(fit);
        fin_fit_destroy(fit);
        for (int i = 0; i < BAGS; i += 4) {
            t.labels[i] = i % 8 ? NAN : 1 - t.labels[i];
            for (int64_t j = t.offsets[i] * DIM; j < t.offsets[i + 1] * DIM; j++)
                t.tokens[j] = 100 * t.tokens[j] - 7;
        }
    }
    assert_true(power[0] == power[1] && power[0] != 1);
}

/* Numbers have no sharpness: predictions stay, and the noise is that of bags left out. */
static void calibrate__keeps_predictions_of_numbers(void **state)
{
    (void)state;
    enum { BAGS = 30 };
    toy t;
    double mean[2][BAGS], sd[2][BAGS];
    fin_fit_settings s = toy_settings(FIN_MODEL_SOFTMAX);
    toy_draw(&t, BAGS, 0, 0.5, 41);
    for (int k = 0; k < 2; k++) {
        s.calibrate = k ? YES : NO;
        fin_fit *fit = fitted(&t, &s, 0, NULL);
        assert_true(sharpness_of(fit) == 1);
        OK(fin_fit_predict(fit, &t.bags, mean[k], sd[k], NULL, &err));
        fin_fit_destroy(fit);
    }
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_memory_not_equal(sd[0], sd[1], sizeof sd[0]);
}

/* Labels that have nothing to do with the bags: a model that could go through them all must not be
 * sure of others. Their deviation is 1, and out-of-fold errors are at least that but for chance. */
static void calibrate__sees_the_noise_of_interpolation(void **state)
{
    (void)state;
    enum { BAGS = 40 };
    toy t;
    double noise[2];
    fin_fit_settings s = toy_settings(FIN_MODEL_EMBEDDING);
    toy_draw(&t, BAGS, 0, 0.5, 42);
    fin_random r;
    fin_random_open(&r, 43, FIN_STREAM_USER, 0);
    for (int i = 0; i < BAGS; i++)
        t.labels[i] = fin_random_normal(&r);
    for (int k = 0; k < 2; k++) {
        fin_fit_info info;
        s.calibrate = k ? 0 : NO;
        s.penalty = 1e-3;
        fin_fit *fit = fitted(&t, &s, 0, NULL);
        fin_fit_get_info(fit, &info);
        noise[k] = info.noise;
        fin_fit_destroy(fit);
    }
    print_message("noise from training bags %.3f, from bags left out %.3f\n", noise[0], noise[1]);
    assert_true(noise[1] > 0.7);
    assert_true(noise[1] > noise[0]);
}

/* More folds than bags, classes of one bag, of no other class; weights of any size. */
static void calibrate__with_few_bags(void **state)
{
    (void)state;
    toy t;
    fin_fit *fit = NULL;
    fin_error e = {FIN_OK, ""};
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    s.calibrate = YES;
    s.class_weights = 1;
    s.inner = 100;
    toy_draw(&t, 9, 2, 0.5, 5);
    for (int i = 0; i < 9; i++)
        t.labels[i] = i > 6;
    fin_fit_destroy(fitted(&t, &s, 2, NULL));
    t.labels[7] = 0; /* a class with a single bag */
    fin_fit_destroy(fitted(&t, &s, 2, NULL));
    const double two[] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
    assert_int_equal(fin_fit_create(&fit, &s, 2, &t.bags, two, NULL, NULL, &e), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "too few"));
    assert_non_null(strstr(e.message, "calibrate=no"));
    const double one[] = {1, 1, 1, 0, 0, 0, 0, 0, 0};
    assert_int_equal(fin_fit_create(&fit, &s, 2, &t.bags, one, NULL, NULL, &e), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(e.message, "two classes"));
    assert_null(fit);
    double same[9], power[3];
    t.labels[7] = 1;
    for (int k = 0; k < 3; k++) { /* units of weights do not matter here */
        for (int i = 0; i < 9; i++)
            same[i] = k == 0 ? 1 : k == 1 ? 0x1p-500 : 0x1p500;
        fit = fitted(&t, &s, 2, same);
        power[k] = sharpness_of(fit);
        fin_fit_destroy(fit);
        assert_true(isfinite(power[k]) && power[k] > 0);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void calibrate__is_restored(void **state)
{
    (void)state;
    enum { BAGS = 40, ROOM = 64 };
    toy t;
    fin_tensor tensors[ROOM], changed[ROOM];
    double a[2 * BAGS], b[2 * BAGS], sd[2][2 * BAGS];
    fin_fit *back = NULL;
    fin_fit_settings s = toy_settings(FIN_MODEL_SOFTMAX);
    s.calibrate = YES;
    s.penalty = 3; /* so that there is something to calibrate */
    toy_draw(&t, BAGS, 2, 0.2, 51);
    fin_fit *fit = fitted(&t, &s, 2, NULL);
    int64_t count = fin_fit_tensors(fit, tensors, ROOM), at = -1;
    assert_in_range(count, 1, ROOM);
    OK(fin_fit_restore(&back, &s, tensors, count, &err));
    assert_true(sharpness_of(back) == sharpness_of(fit));
    OK(fin_fit_predict(fit, &t.bags, a, sd[0], NULL, &err));
    OK(fin_fit_predict(back, &t.bags, b, sd[1], NULL, &err));
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(sd[0], sd[1], sizeof sd[0]);
    fin_fit_destroy(back);
    for (int64_t i = 0; i < count; i++)
        at = strcmp(tensors[i].name, "sharpness") == 0 ? i : at;
    assert_true(at >= 0);
    const double bad[] = {0, -1, 17, 0.05, NAN, INFINITY, 1e-300};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        memcpy(changed, tensors, sizeof tensors);
        changed[at].data = &bad[k];
        assert_int_equal(fin_fit_restore(&back, &s, changed, count, &err), FIN_ERR_FORMAT);
        assert_null(back);
    }
    memcpy(changed, tensors, sizeof tensors);
    changed[at].shape[0] = 2;
    assert_int_equal(fin_fit_restore(&back, &s, changed, count, &err), FIN_ERR_FORMAT);
    /* files of earlier versions have none */
    memmove(changed + at, tensors + at + 1, (size_t)(count - at - 1) * sizeof *changed);
    OK(fin_fit_restore(&back, &s, changed, count - 1, &err));
    assert_true(sharpness_of(back) == 1);
    OK(fin_fit_predict(back, &t.bags, b, NULL, NULL, &err));
    fini_sharpen(sharpness_of(fit), BAGS, 2, b, NULL);
    assert_memory_equal(a, b, sizeof a);
    fin_fit_destroy(back);
    fin_fit_destroy(fit);
}

/* A model of numbers with such a tensor is no model. */
static void calibrate__is_not_for_numbers_in_files(void **state)
{
    (void)state;
    enum { BAGS = 20, ROOM = 64 };
    toy t;
    const double power = 2;
    fin_tensor tensors[ROOM];
    fin_fit *back = NULL;
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    toy_draw(&t, BAGS, 0, 1, 52);
    fin_fit *fit = fitted(&t, &s, 0, NULL);
    int64_t count = fin_fit_tensors(fit, tensors, ROOM - 1);
    OK(fin_fit_restore(&back, &s, tensors, count, &err));
    fin_fit_destroy(back);
    tensors[count] = (fin_tensor){
        .name = "sharpness", .dtype = FIN_F64, .ndim = 1, .shape = {1}, .data = &power};
    assert_int_equal(fin_fit_restore(&back, &s, tensors, count + 1, &err), FIN_ERR_FORMAT);
    fin_fit_destroy(fit);
}

static fin_status calibrate_once(void *user, fin_error *e)
{
    toy t;
    fin_fit *fit = NULL;
    toy_draw(&t, 8, 2, 0.5, 7);
    for (int i = 0; i < 8; i++)
        t.labels[i] = i % 2;
    fin_status status = fin_fit_create(&fit, user, 2, &t.bags, NULL, NULL, NULL, e);
    fin_fit_destroy(fit);
    return status;
}

static void calibrate__without_memory(void **state)
{
    (void)state;
    fin_fit_settings s = toy_settings(FIN_MODEL_MEAN);
    s.calibrate = YES;
    s.inner = 2;
    s.penalty = 0.1;
    fin_threads_set(1);
    print_message("%ld allocations\n", fault_every(calibrate_once, &s));
    fin_threads_set(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibrate__comes_from_bags_left_out),
        cmocka_unit_test(auto__is_one_model_if_it_is_better),
        cmocka_unit_test(calibrate__keeps_accuracy),
        cmocka_unit_test(calibrate__looks_at_training_bags_only),
        cmocka_unit_test(calibrate__keeps_predictions_of_numbers),
        cmocka_unit_test(calibrate__sees_the_noise_of_interpolation),
        cmocka_unit_test(calibrate__with_few_bags),
        cmocka_unit_test(calibrate__is_restored),
        cmocka_unit_test(calibrate__is_not_for_numbers_in_files),
        cmocka_unit_test(calibrate__without_memory),
    };
    fin_threads_set(1); /* what is small takes longer on several */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
