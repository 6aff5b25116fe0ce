/* Locations of models that have none of their own, by one that is kept beside them; what a token is by
 * itself, by formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "test_size.h"

static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

enum { TENSORS = 256 };

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.landmarks = 20;
    return s;
}

static fin_fit *fitted(const fin_fit_settings *s, int64_t classes, const fin_bags *bags)
{
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, s, classes, bags, NULL, NULL, NULL, &err));
    return fit;
}

/* ---- the part that locates --------------------------------------------------------------------------- */

/* Whatever the model, and whatever labels are. Weights sum to 1 without it; predictions are the same. */
static void locator__is_always_there(void **state)
{
    (void)state;
    enum { N = 40 };
    static const int models[] = {FIN_MODEL_AUTO, FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN,
                                 FIN_MODEL_MAX,  FIN_MODEL_BASE,      FIN_MODEL_STACK};
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        bags_sample d = bags_make(N, 3, classes, 3, 0.3, 41);
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            fin_fit_settings s = settings_of(models[m]);
            bool whole = models[m] != FIN_MODEL_AUTO && models[m] != FIN_MODEL_STACK;
            s.inner = 2;
            s.penalty = 0.3;
            double p[2][3 * N], sd[2][3 * N], prior[6 * N], given[6 * N];
            for (int without = 0; without < 2; without++) {
                fin_fit_info info;
                double sum = 0, weight = 0, of_locator = -1;
                s.locator = without;
                fin_fit *fit = fitted(&s, classes, &d.bags);
                fin_fit_get_info(fit, &info);
                for (int64_t k = 0; k < info.parts; k++) {
                    fin_fit_part(fit, k, &weight);
                    of_locator = k == info.locator ? weight : of_locator;
                    sum += weight;
                    assert_true(weight > 0 || k == info.locator);
                }
                assert_true(fabs(sum - 1) < 1e-12);
                OK(fin_fit_predict(fit, &d.bags, p[without], sd[without], NULL, &err));
                assert_int_equal(fin_fit_locates(fit), info.locator >= 0);
                if (!without) {
                    assert_int_equal(fin_fit_locates(fit), 1);
                    assert_true(of_locator >= 0 && (!whole || of_locator == 0));
                    assert_true(isfinite(info.locator_loss) && info.locator_loss >= 0);
                    OK(fin_fit_locate(fit, &d.bags,
                                      &(fin_locations){.prior = prior, .given = given}, NULL,
                                      &err));
                    for (int64_t i = 0; i < N; i++) {
                        double all[2] = {0, 0};
                        for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++) {
                            all[0] += prior[l];
                            all[1] += given[l];
                        }
                        assert_true(fabs(all[0] - 1) < 1e-12 && fabs(all[1] - 1) < 1e-12);
                    }
                } else {
                    assert_int_equal(info.locator, -1);
                    assert_int_equal(
                        fin_fit_locate(fit, &d.bags, &(fin_locations){.prior = prior}, NULL, &err),
                        FIN_ERR_UNSUPPORTED);
                }
                fin_fit_destroy(fit);
            }
            size_t size = (size_t)(N * (classes ? classes : 1)) * sizeof(double);
            assert_memory_equal(p[0], p[1], size);
            assert_memory_equal(sd[0], sd[1], size);
        }
        bags_free(&d);
    }
}

/* Positive bags have one token at +4 or at -4 in column 0: no direction has all of them on one side. */
static void locator__finds_both_sides(void **state)
{
    (void)state;
    enum { N = 200, L = 8, D = 5 };
    static double tokens[N * L * D], labels[N], prior[N * L];
    int64_t offsets[N + 1], where[N];
    fin_random r;
    fin_random_normals_f64(44, FIN_STREAM_USER, 0, 0, N * L * D, tokens);
    fin_random_open(&r, 44, FIN_STREAM_USER + 1, 0);
    for (int i = 0; i <= N; i++)
        offsets[i] = i * L;
    for (int i = 0; i < N; i++) {
        labels[i] = i % 2;
        where[i] = i * L + fin_random_below(&r, L);
        if (labels[i] > 0)
            tokens[where[i] * D] = i / 2 % 2 ? 4 : -4;
    }
    fin_bags bags = {N, D, 0, N, offsets, FIN_F64, tokens, labels, NULL};
    fin_fit_settings s = settings_of(FIN_MODEL_AUTO);
    s.landmarks = sized(60, 60, 150);
    s.inner = sized(2, 2, 5);
    fin_fit *fit = fitted(&s, 2, &bags);
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    OK(fin_fit_locate(fit, &bags, &(fin_locations){.prior = prior}, NULL, &err));
    double right = 0;
    for (int i = 1; i < N; i += 2) {
        int64_t best = i * L;
        for (int64_t l = i * L; l < (i + 1) * L; l++)
            best = prior[l] > prior[best] ? l : best;
        right += best == where[i];
    }
    const fin_fit_settings *part = fin_fit_part(fit, info.locator, NULL);
    print_message("model %d, basis %d: %.0f of %d, log loss %.3f\n", part->model, part->basis,
                  right, N / 2, info.locator_loss);
    assert_true(right >= 0.9 * N / 2 && info.locator_loss < info.base_loss);
    fin_fit_destroy(fit);
}

/* ---- what a token is by itself ------------------------------------------------------------------------- */

static const fin_tensor *tensor(const fin_tensor *t, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static fin_fit_settings plain(int model)
{
    fin_fit_settings s = settings_of(model);
    s.basis = FIN_BASIS_LINEAR;
    s.calibrate = 1;
    s.penalty = 0.1;
    return s;
}

/* s_l = 1 / (1 + exp(-v.z_l - b)), from the tensors of one member; none = prod (1 - s_l), which is the
 * probability of the other class. */
static void own__of_any(void **state)
{
    (void)state;
    enum { N = 40, D = 3 };
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 45);
    for (int positive = 0; positive < 2; positive++) {
        fin_fit_settings s = plain(FIN_MODEL_ANY);
        fin_tensor t[TENSORS];
        double own[6 * N], none[N], p[2 * N];
        s.positive = positive;
        fin_fit *fit = fitted(&s, 2, &d.bags);
        int64_t count = fin_fit_tensors(fit, t, TENSORS);
        assert_int_equal(tensor(t, count, "0.members")->shape[0], 1);
        const double *v = tensor(t, count, "0.members")->data;
        const fin_tensor *columns =
            tensor(t, count, "0.columns"); /* (4, d): centre, scale, bound, .. */
        assert_true(columns->ndim == 2 && columns->shape[1] == D);
        const double *center = columns->data, *scale = center + D, *bound = scale + D;
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.own = own, .none = none}, NULL, &err));
        OK(fin_fit_predict(fit, &d.bags, p, NULL, NULL, &err));
        for (int64_t i = 0; i < N; i++) {
            double product = 1;
            for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++) {
                double u = v[D];
                for (int j = 0; j < D; j++) {
                    double x = d.tokens[l * D + j] - center[j];
                    u += v[j] * scale[j] * fmax(-bound[j], fmin(bound[j], x));
                }
                double on = 1 / (1 + exp(-u));
                assert_true(fabs(own[l] - on) < 1e-12);
                product *= 1 - on;
            }
            assert_true(fabs(none[i] - product) < 1e-12);
            assert_true(fabs(p[2 * i + 1 - positive] - product) < 1e-12);
        }
        fin_fit_destroy(fit);
    }
    bags_free(&d);
}

/* Every token decides, and says positive or not: own and none sum to 1, none is the other class. */
static void own__of_mixture(void **state)
{
    (void)state;
    enum { N = 40 };
    bags_sample d = bags_make(N, 3, 2, 3, 0.3, 46);
    for (int k = 0; k < 4; k++) {
        fin_fit_settings s = plain(FIN_MODEL_MIXTURE);
        double own[6 * N], none[N], p[2 * N], prior[6 * N];
        fin_fit_info info;
        s.penalty = k % 2 ? 0.1 : FIN_AUTO; /* one member, several */
        s.positive = k < 2 ? FIN_AUTO_INT : 0;
        fin_fit *fit = fitted(&s, 2, &d.bags);
        fin_fit_get_info(fit, &info);
        assert_int_equal(info.positive, k < 2);
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.prior = prior, .own = own, .none = none},
                          NULL, &err));
        OK(fin_fit_predict(fit, &d.bags, p, NULL, NULL, &err));
        for (int64_t i = 0; i < N; i++) {
            double sum = none[i];
            for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++) {
                assert_true(own[l] >= 0 && own[l] <= prior[l] + 1e-12);
                sum += own[l];
            }
            assert_true(fabs(sum - 1) < 1e-12);
            assert_true(fabs(none[i] - p[2 * i + (info.positive ? 0 : 1)]) < 1e-12);
        }
        fin_fit_destroy(fit);
    }
    bags_free(&d);
}

/* As sure as predictions are: none is the calibrated probability of the other class. */
static void own__is_calibrated(void **state)
{
    (void)state;
    enum { N = 60 };
    bags_sample d = bags_make(N, 3, 2, 3, 0.1, 47);
    for (int k = 0; k < 2; k++) {
        fin_fit_settings s = settings_of(k ? FIN_MODEL_ANY : FIN_MODEL_MIXTURE);
        fin_fit_info info;
        double none[N], p[2 * N];
        s.penalty = 3; /* so that there is something to calibrate */
        fin_fit *fit = fitted(&s, 2, &d.bags);
        fin_fit_get_info(fit, &info);
        assert_true(info.sharpness > 1.01);
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.none = none}, NULL, &err));
        OK(fin_fit_predict(fit, &d.bags, p, NULL, NULL, &err));
        for (int i = 0; i < N; i++)
            assert_true(fabs(none[i] - p[2 * i + (info.positive ? 0 : 1)]) < 1e-12);
        fin_fit_destroy(fit);
    }
    bags_free(&d);
}

/* Calibrated, tokens and none still go together: a sum, or a product; and own alone is the same own. */
static void own__goes_with_none(void **state)
{
    (void)state;
    enum { N = 60 };
    bags_sample d = bags_make(N, 3, 2, 3, 0.1, 52);
    for (int any = 0; any < 2; any++) {
        fin_fit_settings s = settings_of(any ? FIN_MODEL_ANY : FIN_MODEL_MIXTURE);
        double own[6 * N], none[N], alone[6 * N];
        fin_fit_info info;
        s.calibrate = 2; /* yes */
        s.penalty = 3;   /* less sure than it may be */
        s.positive = 1;
        fin_fit *fit = fitted(&s, 2, &d.bags);
        fin_fit_get_info(fit, &info);
        print_message("sharpness %.3f\n", info.sharpness);
        assert_true(info.sharpness != 1); /* or the test says nothing */
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.own = own, .none = none}, NULL, &err));
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.own = alone}, NULL, &err));
        assert_memory_equal(own, alone, (size_t)d.offsets[N] * sizeof *own);
        for (int64_t i = 0; i < N; i++) {
            double sum = 0, product = 1;
            for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++) {
                assert_true(own[l] >= 0 && own[l] <= 1);
                sum += own[l];
                product *= 1 - own[l];
            }
            assert_true(fabs((any ? product : 1 - sum) - none[i]) < 1e-10);
        }
        fin_fit_destroy(fit);
    }
    bags_free(&d);
}

/* Softmax does not say; nor does any model of three classes or of numbers. */
static void own__is_not_said_by_others(void **state)
{
    (void)state;
    enum { N = 30 };
    for (int k = 0; k < 3; k++) {
        int64_t classes = k == 0 ? 2 : k == 1 ? 3 : 0;
        bags_sample d = bags_make(N, 3, classes, 3, 0.3, 48);
        fin_fit_settings s = plain(k ? FIN_MODEL_MIXTURE : FIN_MODEL_SOFTMAX);
        double own[6 * N], none[N];
        fin_fit_info info;
        fin_fit *fit = fitted(&s, classes, &d.bags);
        fin_fit_get_info(fit, &info);
        assert_int_equal(info.positive, -1);
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.own = own, .none = none}, NULL, &err));
        for (int64_t l = 0; l < d.offsets[N]; l++)
            assert_true(isnan(own[l]));
        for (int i = 0; i < N; i++)
            assert_true(isnan(none[i]));
        OK(fin_fit_locate(fit, &d.bags, &(fin_locations){.prior = NULL}, NULL,
                          &err)); /* nothing asked */
        fin_fit_destroy(fit);
        bags_free(&d);
    }
}

/* Two parts `any`, one for each side, of which the second locates: own, none and the positive class are
 * its. Put together from the tensors of two fits. */
static void own__is_that_of_the_part_that_locates(void **state)
{
    (void)state;
    enum { N = 40 };
    bags_sample d = bags_make(N, 3, 2, 3, 0.3, 49);
    fin_fit *side[2], *both = NULL;
    fin_tensor t[2][TENSORS], all[2 * TENSORS];
    int64_t count = 0, counts[5];
    double numbers[2][3], own[2][6 * N], none[2][N];
    fin_fit_info info;
    fin_fit_settings s = plain(FIN_MODEL_ANY);
    for (int k = 0; k < 2; k++) {
        s.positive = k;
        side[k] = fitted(&s, 2, &d.bags);
        int64_t n = fin_fit_tensors(side[k], t[k], TENSORS);
        for (int64_t i = 0; i < n; i++) {
            fin_tensor *to = &all[count];
            bool part = strncmp(t[k][i].name, "0.", 2) == 0;
            if (!part && k)
                continue;
            *to = t[k][i];
            if (part)
                to->name[0] = (char)('0' + k);
            if (part && strcmp(t[k][i].name, "0.numbers") == 0) {
                memcpy(numbers[k], to->data, sizeof numbers[k]);
                numbers[k][0] = 0.5; /* weight */
                to->data = numbers[k];
            }
            count++;
        }
    }
    memcpy(counts, tensor(all, count, "counts")->data, sizeof counts);
    counts[0] = 2;
    for (int which = 0; which < 2; which++) {
        int64_t choice[2];
        memcpy(choice, tensor(t[0], TENSORS, "choice")->data, sizeof choice);
        choice[1] = which + 1;
        for (int64_t i = 0; i < count; i++) {
            if (strcmp(all[i].name, "counts") == 0)
                all[i].data = counts;
            if (strcmp(all[i].name, "choice") == 0)
                all[i].data = choice;
        }
        OK(fin_fit_restore(&both, &s, all, count, &err));
        fin_fit_get_info(both, &info);
        assert_int_equal(info.locator, which);
        assert_int_equal(info.positive, which);
        OK(fin_fit_locate(both, &d.bags, &(fin_locations){.own = own[0], .none = none[0]}, NULL,
                          &err));
        OK(fin_fit_locate(side[which], &d.bags, &(fin_locations){.own = own[1], .none = none[1]},
                          NULL, &err));
        assert_memory_equal(own[0], own[1], (size_t)d.offsets[N] * sizeof(double));
        assert_memory_equal(none[0], none[1], sizeof none[0]);
        fin_fit_destroy(both);
    }
    fin_fit_destroy(side[0]);
    fin_fit_destroy(side[1]);
    bags_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locator__is_always_there),
        cmocka_unit_test(locator__finds_both_sides),
        cmocka_unit_test(own__of_any),
        cmocka_unit_test(own__of_mixture),
        cmocka_unit_test(own__is_calibrated),
        cmocka_unit_test(own__goes_with_none),
        cmocka_unit_test(own__is_not_said_by_others),
        cmocka_unit_test(own__is_that_of_the_part_that_locates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
