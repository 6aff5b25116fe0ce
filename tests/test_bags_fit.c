/* Fits: minima, answers, wishes and refusals. */
#include "bags/bags.h"

#include "finetti/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "fault.h"
#include "test_size.h"

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.basis = FIN_BASIS_LINEAR;
    s.calibrate = s.locator = 1; /* no: one model, and nothing else */
    return s;
}

static fin_fit *fit_to(const fin_fit_settings *settings, int64_t classes, const fin_bags *bags,
                       const double *weights)
{
    fin_fit *fit;
    fin_error err = {FIN_OK, ""};
    if (fin_fit_create(&fit, settings, classes, bags, weights, NULL, NULL, &err))
        fail_msg("%s", err.message);
    return fit;
}

/* ---- minima ------------------------------------------------------------------------------------------ */

/* Mean pooling is convex: its gradient, computed here with plain loops from what the tensors say of
 * the columns, is zero. n (gradient) = sum_i (p_i - y_i) zbar_i + penalty v. */
static void mean__is_a_minimum(void **state)
{
    (void)state;
    enum { N = 80, D = 6 };
    bags_sample s = bags_make(N, D, 2, 2, 0.3, 1);
    fin_fit_settings settings = settings_of(FIN_MODEL_MEAN);
    settings.penalty = 0.05;
    fin_fit *fit = fit_to(&settings, 2, &s.bags, NULL);
    const fini_part *part = &fit->part[0];
    const double *v = part->member, *center = part->map.center, *scale = part->map.scale,
                 *bound = part->map.bound;
    double g[D + 1] = {0};
    assert_int_equal(part->members, 1);
    assert_int_equal(part->parameters, D + 1);
    for (int i = 0; i < N; i++) {
        double mean[D] = {0}, f = v[D];
        int64_t L = s.offsets[i + 1] - s.offsets[i];
        for (int64_t l = s.offsets[i]; l < s.offsets[i + 1]; l++)
            for (int j = 0; j < D; j++)
                mean[j] += scale[j] *
                           fmax(-bound[j], fmin(bound[j], s.tokens[l * D + j] - center[j])) /
                           (double)L;
        for (int j = 0; j < D; j++)
            f += v[j] * mean[j];
        double rest = 1 / (1 + exp(-f)) - s.labels[i];
        for (int j = 0; j < D; j++)
            g[j] += rest * mean[j];
        g[D] += rest;
    }
    for (int j = 0; j < D; j++)
        g[j] += settings.penalty * v[j];
    for (int j = 0; j <= D; j++)
        assert_true(fabs(g[j]) < 1e-5); /* of a gradient of the order of 10 where all is 0 */
    fin_fit_destroy(fit);
    bags_free(&s);
}

/* Labels that are noise of variance 1: c numbers fitted to n of them leave 1 - c / n, and what is
 * said of new labels is (n + c) / n on average. Relative deviation sqrt(2 / (n - c)) a fit. */
static void noise__is_that_of_new_labels(void **state)
{
    (void)state;
    enum { N = 60, D = 15, C = D + 1 };
    const int64_t times = sized(20, 200, 200);
    static double tokens[N * D], labels[N];
    int64_t offsets[N + 1];
    double mean = 0, expected = (double)(N + C) / N;
    fin_fit_settings settings = settings_of(FIN_MODEL_MEAN);
    settings.penalty = 1e-6;
    for (int64_t i = 0; i <= N; i++)
        offsets[i] = i;
    for (int64_t t = 0; t < times; t++) {
        fin_bags bags = {N, D, 0, N, offsets, FIN_F64, tokens, labels, NULL};
        fin_fit_info info;
        fin_random_normals_f64(7, 1, (uint64_t)t, 0, N * D, tokens);
        fin_random_normals_f64(7, 2, (uint64_t)t, 0, N, labels);
        fin_fit *fit = fit_to(&settings, 0, &bags, NULL);
        fin_fit_get_info(fit, &info);
        mean += info.noise * info.noise / (double)times;
        fin_fit_destroy(fit);
    }
    double z = (mean / expected - 1) / sqrt(2.0 / (N - C) / (double)times);
    print_message("noise: z = %.2f\n", z);
    assert_true(fabs(z) < 5);
}

/* ---- recovery ---------------------------------------------------------------------------------------- */

static double cosine(int64_t d, const double *a, const double *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t j = 0; j < d; j++) {
        ab += a[j] * b[j];
        aa += a[j] * a[j];
        bb += b[j] * b[j];
    }
    return ab / sqrt(aa * bb);
}

static double accuracy(const fin_fit *fit, const bags_sample *s, int64_t classes)
{
    double *P = malloc((size_t)(s->bags.n * classes) * sizeof *P), right = 0;
    assert_int_equal(fin_fit_predict(fit, &s->bags, P, NULL, NULL, NULL), FIN_OK);
    for (int64_t i = 0; i < s->bags.n; i++) {
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            best = P[i * classes + c] > P[i * classes + best] ? c : best;
        right += (double)best == s->labels[i];
    }
    free(P);
    return right / (double)s->bags.n;
}

static void fit__recovers_key_and_value(void **state)
{
    (void)state;
    enum { D = 8 };
    bags_sample s = bags_make(800, D, 0, 4, 0.1, 2);
    const double k_star[D] = {1}, v_star[D] = {0, 1, -1};
    const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE};
    for (int m = 0; m < 2; m++) {
        fin_fit_settings settings = settings_of(models[m]);
        fin_fit *fit = fit_to(&settings, 0, &s.bags, NULL);
        double k[D], v[D], prior[6 * 800], right = 0;
        fin_error err;
        assert_int_equal(fin_fit_directions(fit, 0, 0, 0, k, v, &err), FIN_OK);
        print_message("model %d: cosines %.4f %.4f\n", models[m], cosine(D, k, k_star),
                      cosine(D, v, v_star));
        assert_true(fabs(cosine(D, k, k_star)) > 0.95);
        assert_true(fabs(cosine(D, v, v_star)) > 0.99);
        assert_true(cosine(D, v, v_star) > 0 && cosine(D, k, k_star) > 0);
        assert_int_equal(fin_fit_locate(fit, &s.bags,
                                        &(fin_locations){.prior = prior, .given = NULL}, NULL,
                                        &err),
                         FIN_OK);
        for (int i = 0; i < 800; i++) {
            int64_t best = s.offsets[i];
            for (int64_t l = best; l < s.offsets[i + 1]; l++)
                best = prior[l] > prior[best] ? l : best;
            right += best == s.offsets[i] + s.where[i];
        }
        assert_true(right / 800 > 0.95); /* a shift of 4: nearly all can be found */
        fin_fit_destroy(fit);
    }
    bags_free(&s);
}

/* Chance is 1/2 and 1/3; the responsible token is found by all that look at tokens. */
static void fit__learns_classes_with_every_model(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_SOFTMAX,   FIN_MODEL_ERF,  FIN_MODEL_LINEAR, FIN_MODEL_MIXTURE,
                          FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN, FIN_MODEL_MAX,    FIN_MODEL_ANY};
    for (int64_t classes = 2; classes <= 3; classes++) {
        bags_sample s = bags_make(200, 5, classes, 3, 0, 3),
                    fresh = bags_make(200, 5, classes, 3, 0, 4);
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            fin_fit_settings settings = settings_of(models[m]);
            if (models[m] == FIN_MODEL_ANY && classes != 2)
                continue;
            settings.heads = models[m] == FIN_MODEL_LINEAR ? 2 : 1;
            fin_fit *fit = fit_to(&settings, classes, &s.bags, NULL);
            double got = accuracy(fit, &fresh, classes);
            print_message("%lld classes, model %d: %.3f\n", (long long)classes, models[m], got);
            /* Those that see the bag as a whole: two standard errors above chance. */
            bool whole = models[m] == FIN_MODEL_EMBEDDING || models[m] == FIN_MODEL_MEAN ||
                         models[m] == FIN_MODEL_MAX;
            assert_true(got > (whole ? 1 / (double)classes + 0.07 : 1.2 / (double)classes));
            if (models[m] == FIN_MODEL_SOFTMAX)
                assert_true(got > 0.75);
            fin_fit_destroy(fit);
        }
        bags_free(&s);
        bags_free(&fresh);
    }
}

/* ---- wishes ------------------------------------------------------------------------------------------- */

static void fit__heads_early_weights_and_restarts(void **state)
{
    (void)state;
    bags_sample s = bags_make(150, 4, 2, 3, 0.5, 5);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    fin_fit_info one, info;
    fin_fit *fit = fit_to(&settings, 2, &s.bags, NULL);
    fin_fit_get_info(fit, &one);
    assert_int_equal(one.parameters, 2 * 4 + 1);
    assert_int_equal(one.bags, 150);
    assert_int_equal(one.tokens, s.offsets[150]);
    assert_int_equal(one.columns, 4);
    fin_fit_destroy(fit);

    settings.heads = 3;
    fit = fit_to(&settings, 2, &s.bags, NULL);
    fin_fit_get_info(fit, &info);
    assert_int_equal(info.parameters, 6 * 4 + 1);
    assert_true(info.loss < one.loss + 1e-3); /* more heads fit at least as well */
    double k[3][4], v[4];
    for (int h = 0; h < 3; h++)
        assert_int_equal(fin_fit_directions(fit, 0, h, 0, k[h], v, NULL), FIN_OK);
    assert_true(memcmp(k[0], k[1], sizeof k[0]) != 0 && memcmp(k[1], k[2], sizeof k[0]) != 0);
    assert_int_equal(fin_fit_directions(fit, 0, 3, 0, k[0], v, NULL), FIN_ERR_ARGUMENT);
    fin_fit_destroy(fit);

    settings.heads = 1;
    settings.early = 0.3;
    settings.iterations = 200;
    settings.penalty = 0;
    fit = fit_to(&settings, 2, &s.bags, NULL);
    fin_fit_get_info(fit, &info);
    settings.early = 0;
    fin_fit *all = fit_to(&settings, 2, &s.bags, NULL);
    fin_fit_get_info(all, &one);
    assert_true(info.iterations < one.iterations); /* it stops early, and fits less closely */
    fin_fit_destroy(fit);
    fin_fit_destroy(all);

    settings.penalty = 0.1;
    fit = fit_to(&settings, 2, &s.bags, NULL);
    settings.restarts = 3;
    all = fit_to(&settings, 2, &s.bags, NULL);
    fin_fit_get_info(fit, &one);
    fin_fit_get_info(all, &info);
    assert_true(info.evaluations > one.evaluations);
    fin_fit_destroy(fit);
    fin_fit_destroy(all);
    bags_free(&s);
}

/* Weights of 2 are bags that are there twice; weights of 0 are bags that are not. */
static void fit__weights_count_bags(void **state)
{
    (void)state;
    enum { N = 60, D = 3 };
    bags_sample s = bags_make(N, D, 2, 3, 0.5, 6);
    double weights[N], P[2 * N], Q[2 * N];
    for (int i = 0; i < N; i++)
        weights[i] = i < 40;
    fin_bags fewer = s.bags;
    fewer.n = fewer.total = 40;
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    settings.tolerance = 1e-10;
    settings.iterations = 1000;
    fin_fit *a = fit_to(&settings, 2, &s.bags, weights), *b = fit_to(&settings, 2, &fewer, NULL);
    fin_fit_predict(a, &s.bags, P, NULL, NULL, NULL);
    fin_fit_predict(b, &s.bags, Q, NULL, NULL, NULL);
    for (int i = 0; i < 2 * N; i++)
        assert_true(fabs(P[i] - Q[i]) < 1e-4);
    fin_fit_destroy(a);
    fin_fit_destroy(b);

    /* Balanced: as many of class 1 as of class 0, though only ten bags are of class 1. */
    int rare = 0;
    for (int i = 0; i < N; i++)
        weights[i] = s.labels[i] == 0 || rare++ < 5;
    settings = settings_of(FIN_MODEL_MEAN);
    settings.penalty = 1e6; /* nothing but the bias is left */
    a = fit_to(&settings, 2, &s.bags, weights);
    settings.class_weights = 1;
    b = fit_to(&settings, 2, &s.bags, weights);
    fin_fit_predict(a, &s.bags, P, NULL, NULL, NULL);
    fin_fit_predict(b, &s.bags, Q, NULL, NULL, NULL);
    assert_true(P[1] < 0.25);
    assert_true(fabs(Q[1] - 0.5) < 1e-3);
    fin_fit_destroy(a);
    fin_fit_destroy(b);
    bags_free(&s);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static void answers__depend_on_their_own_bag_only(void **state)
{
    (void)state;
    enum { N = 50 };
    const int64_t classes_of[] = {0, 2, 3};
    for (int k = 0; k < 3; k++) {
        int64_t classes = classes_of[k], width = classes ? classes : 1;
        bags_sample s = bags_make(N, 4, classes, 3, 0.3, 7);
        fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
        settings.basis = FIN_BASIS_BOTH;
        settings.landmarks = 10;
        fin_fit *fit = fit_to(&settings, classes, &s.bags, NULL);
        double all[3 * N], sd[3 * N], one[3], one_sd[3], prior[6 * N], given[6 * N], p[6], g[6];
        fin_fit_predict(fit, &s.bags, all, sd, NULL, NULL);
        assert_int_equal(fin_fit_locate(fit, &s.bags,
                                        &(fin_locations){.prior = prior, .given = given}, NULL,
                                        NULL),
                         FIN_OK);
        for (int i = 0; i < N; i++) {
            fin_bags bag = s.bags;
            int64_t L = s.offsets[i + 1] - s.offsets[i];
            double sum = 0, sum_given = 0;
            bag.n = bag.total = 1;
            bag.offsets = s.offsets + i;
            bag.tokens = s.tokens + s.offsets[i] * 4;
            bag.labels = s.labels + i;
            fin_fit_predict(fit, &bag, one, one_sd, NULL, NULL);
            assert_memory_equal(one, all + i * width, (size_t)width * sizeof *one);
            assert_memory_equal(one_sd, sd + i * width, (size_t)width * sizeof *one);
            fin_fit_locate(fit, &bag, &(fin_locations){.prior = p, .given = g}, NULL, NULL);
            assert_memory_equal(p, prior + s.offsets[i], (size_t)L * sizeof *p);
            assert_memory_equal(g, given + s.offsets[i], (size_t)L * sizeof *g);
            for (int64_t l = 0; l < L; l++) {
                sum += p[l];
                sum_given += g[l];
            }
            assert_true(fabs(sum - 1) < 1e-12 && fabs(sum_given - 1) < 1e-12);
            for (int64_t c = 0; c < width; c++)
                assert_true(one_sd[c] >= 0 && (classes || one_sd[c] > 0));
        }
        s.labels[3] = NAN; /* a label that is not known */
        assert_int_equal(fin_fit_locate(fit, &s.bags,
                                        &(fin_locations){.prior = prior, .given = given}, NULL,
                                        NULL),
                         FIN_OK);
        assert_true(isnan(given[s.offsets[3]]) && !isnan(given[s.offsets[4]]));
        fin_fit_destroy(fit);
        bags_free(&s);
    }
}

/* Labels in other units, tokens in other units: the same fit. */
static void fit__does_not_depend_on_units(void **state)
{
    (void)state;
    enum { N = 100, D = 3 };
    bags_sample s = bags_make(N, D, 0, 3, 0.2, 8), t = bags_make(N, D, 0, 3, 0.2, 8);
    for (int64_t i = 0; i < s.offsets[N] * D; i++)
        t.tokens[i] = 1e5 + 1e3 * t.tokens[i];
    for (int i = 0; i < N; i++)
        t.labels[i] = -7 + 1e-4 * t.labels[i];
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    settings.gate = 1; /* free */
    settings.tolerance = 1e-9;
    settings.iterations = 2000;
    fin_fit *a = fit_to(&settings, 0, &s.bags, NULL), *b = fit_to(&settings, 0, &t.bags, NULL);
    double m[N], sd[N], m2[N], sd2[N], key[D], value[D], key2[D], value2[D];
    fin_fit_predict(a, &s.bags, m, sd, NULL, NULL);
    fin_fit_predict(b, &t.bags, m2, sd2, NULL, NULL);
    for (int i = 0; i < N; i++) {
        assert_true(fabs(-7 + 1e-4 * m[i] - m2[i]) < 1e-7);
        assert_true(fabs(1e-4 * sd[i] - sd2[i]) < 1e-7);
    }
    fin_fit_directions(a, 0, 0, 0, key, value, NULL);
    fin_fit_directions(b, 0, 0, 0, key2, value2, NULL);
    for (int j = 0; j < D; j++) {
        assert_true(fabs(key[j] - 1e3 * key2[j]) < 1e-2 * (1 + fabs(key[j])));
        assert_true(fabs(value[j] - 1e7 * value2[j]) < 1e-3);
    }
    fin_fit_importance(a, key, value, NULL);
    fin_fit_importance(b, key2, value2, NULL);
    assert_true(key[0] > 3 * key[1] && value[1] > 3 * value[0] && value[2] > 3 * value[0]);
    for (int j = 0; j < D; j++)
        assert_true(fabs(key[j] - key2[j]) < 1e-2 * (1 + key[j]));
    fin_fit_destroy(a);
    fin_fit_destroy(b);
    bags_free(&s);
    bags_free(&t);
}

/* The value points to class 1, whichever class the first bag has. */
static void directions__point_to_class_one(void **state)
{
    (void)state;
    enum { N = 80, D = 3 };
    for (int model = 0; model < 2; model++) {
        bags_sample s = bags_make(N, D, 2, 3, 0.2, 9);
        fin_fit_settings settings = settings_of(model ? FIN_MODEL_MIXTURE : FIN_MODEL_SOFTMAX);
        settings.basis = FIN_BASIS_LINEAR;
        double key[2][D], value[2][D];
        for (int renamed = 0; renamed < 2; renamed++) {
            fin_fit *fit = fit_to(&settings, 2, &s.bags, NULL);
            assert_int_equal(fin_fit_directions(fit, 0, 0, 0, key[renamed], value[renamed], NULL),
                             FIN_OK);
            fin_fit_destroy(fit);
            for (int i = 0; i < N; i++)
                s.labels[i] = 1 - s.labels[i];
        }
        for (int j = 0; j < D; j++)
            assert_true(key[0][j] == key[1][j] && value[0][j] == -value[1][j] && value[0][j] != 0);
        assert_true(value[0][1] > 0); /* larger values of column 1 were given class 1 */
        bags_free(&s);
    }
}

/* ---- refusals ------------------------------------------------------------------------------------------- */

static void refuse(fin_status expected, const fin_fit_settings *settings, int64_t classes,
                   const fin_bags *bags, const double *weights)
{
    fin_fit *fit = (fin_fit *)&expected;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_fit_create(&fit, settings, classes, bags, weights, NULL, NULL, &err),
                     expected);
    assert_null(fit);
    assert_true(strlen(err.message) > 10);
}

static void fit__refuses_what_it_cannot_learn_from(void **state)
{
    (void)state;
    enum { N = 20 };
    bags_sample s = bags_make(N, 3, 2, 3, 0, 9);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    fin_bags bags = s.bags;
    double weights[N], labels[N], P[2 * N];
    int64_t offsets[N + 1];
    refuse(FIN_ERR_ARGUMENT, &settings, 1, &bags, NULL);
    refuse(FIN_ERR_ARGUMENT, &settings, -2, &bags, NULL);
    bags.labels = NULL;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, NULL);
    bags.labels = labels;
    for (int i = 0; i < N; i++)
        labels[i] = 1;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, NULL); /* one class */
    const double bad[] = {NAN, INFINITY, -1, 2, 0.5};
    for (int b = 0; b < 5; b++) {
        memcpy(labels, s.labels, sizeof labels);
        labels[7] = bad[b];
        refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, NULL);
    }
    for (int i = 0; i < N; i++)
        weights[i] = i != 7;
    fin_fit_destroy(fit_to(&settings, 2, &bags, weights)); /* it need not have a label */
    weights[3] = -1;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, weights);
    weights[3] = NAN;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, weights);
    memset(weights, 0, sizeof weights);
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, weights);
    for (int i = 0; i < N; i++)
        weights[i] = 1e308;
    bags.labels = s.labels;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, weights); /* their sum is infinite */
    bags.labels = labels;
    for (int e = -310; e <= 310; e += 620) { /* numbers whose squares are 0 or infinite */
        for (int i = 0; i < N; i++)
            labels[i] = s.labels[i] + 0.1 * i > 1 ? ldexp(1, e * 3) : 0;
        refuse(FIN_ERR_ARGUMENT, &settings, 0, &bags, NULL);
    }
    bags = s.bags;
    bags.offsets = offsets;
    memcpy(offsets, s.offsets, sizeof offsets);
    offsets[5] = offsets[4]; /* a bag without tokens */
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, NULL);
    bags = s.bags;
    bags.dtype = FIN_I32;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &bags, NULL);
    settings.penalty = NAN;
    refuse(FIN_ERR_ARGUMENT, &settings, 2, &s.bags, NULL);
    settings = settings_of(FIN_MODEL_ANY);
    refuse(FIN_ERR_UNSUPPORTED, &settings, 3, &s.bags, NULL);
    settings = settings_of(FIN_MODEL_MEAN);
    fin_fit *fit = fit_to(&settings, 2, &s.bags, NULL);
    bags = s.bags;
    bags.d = 1;
    assert_int_equal(fin_fit_predict(fit, &bags, P, NULL, NULL, NULL), FIN_ERR_ARGUMENT);
    assert_int_equal(
        fin_fit_locate(fit, &s.bags, &(fin_locations){.prior = P, .given = NULL}, NULL, NULL),
        FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_fit_locates(fit), 0);
    fin_fit_destroy(fit);
    fin_fit_destroy(NULL);
    bags_free(&s);
}

/* Labels that are all the same number, tokens that are all the same: it says what it can. */
static void fit__takes_constants(void **state)
{
    (void)state;
    enum { N = 12 };
    bags_sample s = bags_make(N, 2, 0, 3, 0, 10);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    double mean[N], sd[N];
    for (int i = 0; i < N; i++)
        s.labels[i] = 5;
    fin_fit *fit = fit_to(&settings, 0, &s.bags, NULL);
    fin_fit_predict(fit, &s.bags, mean, sd, NULL, NULL);
    for (int i = 0; i < N; i++)
        assert_true(fabs(mean[i] - 5) < 1e-6 && isfinite(sd[i]));
    fin_fit_destroy(fit);
    bags_free(&s);
}

static int stop(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return ++*(int *)user >= 2;
}

static void fit__can_be_cancelled(void **state)
{
    (void)state;
    bags_sample s = bags_make(40, 3, 2, 3, 0.3, 11);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    int calls = 0;
    fin_progress progress = {stop, &calls};
    fin_fit *fit;
    assert_int_equal(fin_fit_create(&fit, &settings, 2, &s.bags, NULL, NULL, &progress, NULL),
                     FIN_ERR_CANCELLED);
    assert_null(fit);
    bags_free(&s);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

typedef struct command {
    const bags_sample *s;
    fin_fit_settings settings;
    int64_t classes;
} command;

static fin_status work(void *user, fin_error *err)
{
    const command *j = user;
    fin_fit *fit, *again = NULL;
    double mean[60], sd[60], prior[200], given[200];
    fin_tensor tensors[32];
    fin_status status =
        fin_fit_create(&fit, &j->settings, j->classes, &j->s->bags, NULL, NULL, NULL, err);
    if (status)
        return status;
    status = fin_fit_predict(fit, &j->s->bags, mean, sd, NULL, err);
    if (!status && fin_fit_locates(fit))
        status = fin_fit_locate(fit, &j->s->bags, &(fin_locations){.prior = prior, .given = given},
                                NULL, err);
    int64_t count = fin_fit_tensors(fit, tensors, 32);
    if (!status)
        status = fin_fit_restore(&again, &j->settings, tensors, count, err);
    fin_fit_destroy(again);
    fin_fit_destroy(fit);
    return status;
}

static void fit__survives_every_failed_allocation(void **state)
{
    (void)state;
    fin_threads_set(1);
    const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE, FIN_MODEL_MEAN,
                          FIN_MODEL_EMBEDDING};
    for (int m = 0; m < 4; m++)
        for (int64_t classes = 0; classes <= 2; classes += 2) {
            bags_sample s = bags_make(24, 2, classes, 3, 0.3, 12);
            command j = {&s, settings_of(models[m]), classes};
            j.settings.penalty = 0.1;
            j.settings.iterations = 3;
            j.settings.landmarks = 5;
            j.settings.basis = m == 0 ? FIN_BASIS_BOTH : FIN_BASIS_LINEAR;
            j.settings.early = m == 0 ? 0.2 : 0;
            j.settings.class_weights = classes > 0;
            assert_true(fault_every(work, &j) > 5);
            bags_free(&s);
        }
    fin_threads_set(0);
}

/* Parts that say m and m + 1 with equal weights differ by a variance of 1/4, wherever m is: a difference of
 * squares would have lost it at 1e9. */
static void parts__far_from_zero_keep_their_variance(void **state)
{
    const fin_fit fit = {.classes = 0};
    double level[] = {0, 1e6, 1e9};
    (void)state;
    for (int k = 0; k < 3; k++) {
        double none = 0, low = level[k], high = level[k] + 1, mean = 0, variance = 0;
        const fini_said said[] = {{0.5, 0.1, &low, &none, &none, 0, NULL},
                                  {0.5, 0.1, &high, &none, &none, 0, NULL}};
        fini_add_part(&fit, &said[0], 0, 1, &mean, &variance);
        fini_add_part(&fit, &said[1], 0.5, 1, &mean, &variance);
        assert_true(mean == level[k] + 0.5);
        assert_true(fabs(variance - 0.26) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts__far_from_zero_keep_their_variance),
        cmocka_unit_test(mean__is_a_minimum),
        cmocka_unit_test(noise__is_that_of_new_labels),
        cmocka_unit_test(fit__recovers_key_and_value),
        cmocka_unit_test(fit__learns_classes_with_every_model),
        cmocka_unit_test(fit__heads_early_weights_and_restarts),
        cmocka_unit_test(fit__weights_count_bags),
        cmocka_unit_test(answers__depend_on_their_own_bag_only),
        cmocka_unit_test(fit__does_not_depend_on_units),
        cmocka_unit_test(fit__refuses_what_it_cannot_learn_from),
        cmocka_unit_test(fit__takes_constants),
        cmocka_unit_test(directions__point_to_class_one),
        cmocka_unit_test(fit__can_be_cancelled),
        cmocka_unit_test(fit__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
