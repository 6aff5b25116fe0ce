/* Is it the same kind of data? Columns of bags, ranges, bags seen before; and these, with what inner folds
 * said, through files: as they were, hostile, or of an earlier version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "fault.h"
#include "bags/bags.h"

static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

enum { N = 30, D = 4, TENSORS = 128 };

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.basis = FIN_BASIS_LINEAR;
    s.inner = 2;
    s.penalty = 0.3;
    return s;
}

static fin_fit *fitted(const fin_fit_settings *s, int64_t classes, const fin_bags *bags,
                       const double *weights)
{
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, s, classes, bags, weights, NULL, NULL, &err));
    return fit;
}

/* ---- columns of bags ----------------------------------------------------------------------------------- */

static void level__is_constant_in_bags_and_not_between(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 51);
    unsigned char level[D];
    for (int64_t i = 0; i < N; i++)
        for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++) {
            d.tokens[l * D + 1] = (double)(i % 7); /* of the bag */
            d.tokens[l * D + 2] = 3;               /* the same everywhere: says nothing */
        }
    static float floats[N * 6 * D];
    for (int64_t t = 0; t < d.offsets[N] * D; t++)
        floats[t] = (float)d.tokens[t];
    for (int single = 0; single < 2; single++) {
        fin_bags bags = d.bags;
        bags.dtype = single ? FIN_F32 : FIN_F64;
        bags.tokens = single ? (const void *)floats : d.tokens;
        memset(level, 7, sizeof level);
        OK(fin_bags_level(&bags, NULL, level, &err));
        assert_true(!level[0] && level[1] == 1 && !level[2] && !level[3]);
    }
    d.tokens[d.offsets[17] * D + 1] += 1e-9; /* one token of one bag */
    OK(fin_bags_level(&d.bags, NULL, level, &err));
    assert_true(!level[1]);
    /* Bags of one token say nothing, whatever they are; of all of them, none is of a bag. */
    int64_t offsets[N + 1];
    for (int i = 0; i <= N; i++)
        offsets[i] = i;
    fin_bags ones = d.bags;
    ones.offsets = offsets;
    OK(fin_bags_level(&ones, NULL, level, &err));
    assert_true(!level[0] && !level[1] && !level[2] && !level[3]);
    offsets[1] = 0;
    assert_int_equal(fin_bags_level(&ones, NULL, level, &err), FIN_ERR_ARGUMENT);
    bags_free(&d);
}

static fin_status level_once(void *user, fin_error *e)
{
    unsigned char level[D];
    return fin_bags_level(user, NULL, level, e);
}

static void level__without_memory(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 51);
    assert_int_equal(fault_every(level_once, &d.bags), 3);
    bags_free(&d);
}

/* ---- ranges ---------------------------------------------------------------------------------------------- */

/* By definition, over the training tokens; more columns than are looked at together. */
static void outside__counts_tokens_beyond_the_range(void **state)
{
    (void)state;
    enum { WIDE = 300 };
    bags_sample d = bags_make(N, WIDE, 2, 3, 0.3, 52), fresh = bags_make(N, WIDE, 2, 3, 0.3, 53);
    double weights[N], low[WIDE], high[WIDE];
    int64_t outside[WIDE], wanted[WIDE] = {0}, all = 0;
    fin_fit_settings s = settings_of(FIN_MODEL_MEAN);
    s.calibrate = s.locator = 1; /* no */
    for (int i = 0; i < N; i++)
        weights[i] = i % 3 != 0;
    for (int64_t l = 0; l < fresh.offsets[N]; l++) {
        fresh.tokens[l * WIDE + 7] *= 1000;
        fresh.tokens[l * WIDE + 200] *= 6;
    }
    for (int64_t l = 0; l < d.offsets[N]; l++)
        d.tokens[l * WIDE + 9] = 5; /* constant: it is not used, and may be anything */
    for (int i = 0; i < N; i += 3)  /* bags that do not count */
        d.tokens[d.offsets[i] * WIDE + 7] = 1e9;
    fin_fit *fit = fitted(&s, 2, &d.bags, weights);
    for (int j = 0; j < WIDE; j++) {
        double a = INFINITY, b = -INFINITY;
        for (int i = 0; i < N; i++)
            for (int64_t l = d.offsets[i]; l < d.offsets[i + 1] && weights[i] > 0; l++) {
                a = fmin(a, d.tokens[l * WIDE + j]);
                b = fmax(b, d.tokens[l * WIDE + j]);
            }
        for (int64_t l = 0; l < fresh.offsets[N] && b > a; l++) {
            double x = fresh.tokens[l * WIDE + j];
            wanted[j] += x > b + (b - a) || x < a - (b - a);
        }
        low[j] = a;
        high[j] = b;
    }
    for (int twice = 0; twice < 2; twice++) {
        double got[2][WIDE];
        OK(fin_fit_outside(fit, &fresh.bags, outside, twice ? got[0] : NULL, twice ? got[1] : NULL,
                           &err));
        for (int j = 0; j < WIDE; j++) {
            assert_int_equal(outside[j], wanted[j]);
            all += outside[j];
            if (twice)
                assert_true(got[0][j] == low[j] && got[1][j] == high[j]);
        }
    }
    assert_true(outside[7] > 100 && outside[200] > 0 && outside[9] == 0 && all > 0);
    OK(fin_fit_outside(fit, &d.bags, outside, NULL, NULL, &err));
    for (int j = 0; j < WIDE; j++) /* training data are where they are, but for those left out */
        assert_true(j == 7 ? outside[j] == 10 : outside[j] < 10);
    fin_bags narrow = d.bags;
    narrow.d = 3;
    assert_int_equal(fin_fit_outside(fit, &narrow, outside, NULL, NULL, &err), FIN_ERR_ARGUMENT);
    fin_fit_destroy(fit);
    bags_free(&d);
    bags_free(&fresh);
}

/* ---- bags seen before --------------------------------------------------------------------------------------- */

static void known__whatever_the_order_of_tokens(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 54);
    double weights[N];
    unsigned char known[N];
    static float floats[N * 6 * D];
    fin_fit_settings s = settings_of(FIN_MODEL_MEAN);
    s.calibrate = s.locator = 1;                   /* no */
    for (int64_t t = 0; t < d.offsets[N] * D; t++) /* exact in both types */
        d.tokens[t] = (double)(floats[t] = (float)d.tokens[t]);
    d.tokens[0] = 0;
    for (int i = 0; i < N; i++)
        weights[i] = i % 4 != 3;
    fin_fit *fit = fitted(&s, 2, &d.bags, weights);
    for (int k = 0; k < 3; k++) {
        fin_bags bags = d.bags;
        if (k == 1) { /* tokens the other way round */
            for (int64_t i = 0; i < N; i++)
                for (int64_t a = d.offsets[i], b = d.offsets[i + 1] - 1; a < b; a++, b--)
                    for (int j = 0; j < D; j++) {
                        double kept = d.tokens[a * D + j];
                        d.tokens[a * D + j] = d.tokens[b * D + j];
                        d.tokens[b * D + j] = kept;
                    }
            d.tokens[(d.offsets[1] - 1) * D] = -0.0; /* is 0, too */
        }
        if (k == 2) {
            floats[0] = 0;
            bags.dtype = FIN_F32;
            bags.tokens = floats;
        }
        bags.labels = NULL;
        OK(fin_fit_known(fit, &bags, known, &err));
        for (int i = 0; i < N; i++)
            assert_int_equal(known[i], i % 4 != 3);
    }
    d.tokens[d.offsets[5] * D + 2] += 1e-12; /* any number of it */
    OK(fin_fit_known(fit, &d.bags, known, &err));
    for (int i = 0; i < N; i++)
        assert_int_equal(known[i], i % 4 != 3 && i != 5);
    fin_bags narrow = d.bags; /* other columns: other bags */
    narrow.d = 1;
    OK(fin_fit_known(fit, &narrow, known, &err));
    for (int i = 0; i < N; i++)
        assert_int_equal(known[i], 0);
    fin_fit_destroy(fit);
    bags_free(&d);
}

typedef struct question {
    const fin_fit *fit;
    const fin_bags *bags;
} question;

static fin_status ask_once(void *user, fin_error *e)
{
    const question *q = user;
    unsigned char known[N];
    return fin_fit_known(q->fit, q->bags, known, e);
}

static void known__without_memory(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 54);
    fin_fit_settings s = settings_of(FIN_MODEL_MEAN);
    fin_fit *fit = fitted(&s, 2, &d.bags, NULL);
    question q = {fit, &d.bags};
    assert_int_equal(fault_every(ask_once, &q), 2);
    fin_fit_destroy(fit);
    bags_free(&d);
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static int64_t at(const fin_tensor *t, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0)
            return i;
    fail_msg("no tensor %s", name);
    return -1;
}

static void same_info(const fin_fit *a, const fin_fit *b)
{
    fin_fit_info x, y;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    fin_fit_get_info(a, &x);
    fin_fit_get_info(b, &y);
    assert_true(x.parts == y.parts && x.positive == y.positive && x.locator == y.locator);
    const double p[] = {x.inner_loss, x.base_loss, x.locator_loss, x.sharpness},
                 q[] = {y.inner_loss, y.base_loss, y.locator_loss, y.sharpness};
    for (int i = 0; i < 4; i++)
        assert_true(p[i] == q[i] || (isnan(p[i]) && isnan(q[i])));
}

/* With two classes, labels begin with 1: classes are the other way round inside. */
static fin_fit *embedded(bags_sample *d, fin_fit_settings *s, int64_t classes, fin_tensor *t,
                         int64_t *count)
{
    *d = bags_make(N, D, classes, 3, 0.3, 55);
    *s = settings_of(FIN_MODEL_EMBEDDING);
    bool turn = classes == 2 && d->labels[0] == 0;
    for (int i = 0; i < N && turn; i++)
        d->labels[i] = 1 - d->labels[i];
    fin_fit *fit = fitted(s, classes, &d->bags, NULL);
    *count = fin_fit_tensors(fit, t, TENSORS);
    assert_in_range(*count, 8, TENSORS);
    return fit;
}

static void restore__keeps_what_is_new(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        bags_sample d;
        fin_fit_settings s;
        fin_tensor t[TENSORS];
        int64_t count, outside[2][D];
        double p[2][3 * N], prior[2][6 * N], own[2][6 * N], none[2][N], low[2][D], high[2][D];
        unsigned char known[2][N];
        fin_fit *fit[2] = {embedded(&d, &s, classes, t, &count), NULL};
        OK(fin_fit_restore(&fit[1], &s, t, count, &err));
        same_info(fit[0], fit[1]);
        for (int k = 0; k < 2; k++) {
            OK(fin_fit_predict(fit[k], &d.bags, p[k], NULL, NULL, &err));
            OK(fin_fit_locate(fit[k], &d.bags,
                              &(fin_locations){.prior = prior[k], .own = own[k], .none = none[k]},
                              NULL, &err));
            OK(fin_fit_outside(fit[k], &d.bags, outside[k], low[k], high[k], &err));
            OK(fin_fit_known(fit[k], &d.bags, known[k], &err));
        }
        assert_memory_equal(p[0], p[1], (size_t)(N * (classes ? classes : 1)) * sizeof(double));
        assert_memory_equal(prior[0], prior[1], (size_t)d.offsets[N] * sizeof(double));
        assert_memory_equal(low[0], low[1], sizeof low[0]);
        assert_memory_equal(high[0], high[1], sizeof high[0]);
        assert_memory_equal(known[0], known[1], sizeof known[0]);
        for (int64_t l = 0; l < d.offsets[N]; l++)
            assert_true(own[0][l] == own[1][l] || (isnan(own[0][l]) && isnan(own[1][l])));
        for (int i = 0; i < N; i++)
            assert_true((none[0][i] == none[1][i] || isnan(none[0][i])) && known[0][i] == 1);
        fin_fit_destroy(fit[0]);
        fin_fit_destroy(fit[1]);
        bags_free(&d);
    }
}

/* Version 0.1 has neither choices nor ranges nor hashes, and calls the basis features. */
static void restore__reads_earlier_versions(void **state)
{
    (void)state;
    bags_sample d;
    fin_fit_settings s;
    fin_tensor t[TENSORS], old[TENSORS];
    int64_t count, kept = 0, outside[D];
    fin_fit *fit = embedded(&d, &s, 2, t, &count), *back = NULL;
    double low[D], high[D], p[2][2 * N], prior[6 * N];
    unsigned char known[N];
    char text[4096];
    for (int64_t i = 0; i < count; i++)
        if (strcmp(t[i].name, "choice") != 0 && strcmp(t[i].name, "inner") != 0 &&
            strcmp(t[i].name, "range") != 0 && strcmp(t[i].name, "hashes") != 0)
            old[kept++] = t[i];
    OK(fin_fit_restore(&back, &s, old, kept, &err));
    fin_fit_info info;
    fin_fit_get_info(back, &info);
    assert_true(isnan(info.inner_loss) && isnan(info.base_loss) && isnan(info.locator_loss));
    OK(fin_fit_outside(back, &d.bags, outside, low, high, &err));
    OK(fin_fit_known(back, &d.bags, known, &err));
    for (int j = 0; j < D; j++)
        assert_true(outside[j] == 0 && isnan(low[j]) && isnan(high[j]));
    for (int i = 0; i < N; i++)
        assert_int_equal(known[i], 0);
    OK(fin_fit_predict(fit, &d.bags, p[0], NULL, NULL, &err)); /* there, no classes change places */
    OK(fin_fit_predict(back, &d.bags, p[1], NULL, NULL, &err));
    for (int i = 0; i < 2 * N; i++)
        assert_true(p[0][i] == p[1][i ^ 1]);
    OK(fin_fit_locate(back, &d.bags, &(fin_locations){.prior = prior}, NULL,
                      &err)); /* the one that can */
    fin_fit_destroy(back);
    fin_fit_destroy(fit);
    bags_free(&d);

    d = bags_make(N, D, 2, 3, 0.3, 56);
    s = settings_of(FIN_MODEL_SOFTMAX);
    s.basis = FIN_BASIS_BOTH;
    s.landmarks = 5;
    fit = fitted(&s, 2, &d.bags, NULL);
    count = fin_fit_tensors(fit, t, TENSORS);
    int64_t i = at(t, count, "0.settings");
    snprintf(text, sizeof text, "%.*s", (int)t[i].shape[0], (const char *)t[i].data);
    char *line = strstr(text, "basis=both\n");
    assert_non_null(line);
    static const char *const says[] = {"features=both\n", "features=linear\n", "features=cubic\n"};
    for (int k = 0; k < 3; k++) {
        char changed[4096];
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(line - text), text, says[k],
                 line + strlen("basis=both\n"));
        memcpy(old, t, sizeof old);
        old[i].data = changed;
        old[i].shape[0] = (int64_t)strlen(changed);
        fin_status status = fin_fit_restore(&back, &s, old, count, &err);
        assert_int_equal(status, k ? FIN_ERR_FORMAT : FIN_OK); /* else shapes do not fit */
        if (status)
            continue;
        assert_int_equal(fin_fit_part(back, 0, NULL)->basis, FIN_BASIS_BOTH);
        OK(fin_fit_predict(fit, &d.bags, p[0], NULL, NULL, &err));
        OK(fin_fit_predict(back, &d.bags, p[1], NULL, NULL, &err));
        assert_memory_equal(p[0], p[1], sizeof p[0]);
        fin_fit_destroy(back);
    }
    fin_fit_destroy(fit);
    bags_free(&d);
}

/* One tensor is not what it should be: refused, and nothing is left behind. */
static void refused(const fin_fit_settings *s, const fin_tensor *t, int64_t count, const char *why)
{
    fin_fit *fit = (fin_fit *)&err;
    err = (fin_error){FIN_OK, ""};
    fault_begin(-1, 0);
    fin_status status = fin_fit_restore(&fit, s, t, count, &err);
    if (status != FIN_ERR_FORMAT || !err.message[0])
        fail_msg("%s: status %d, '%s'", why, (int)status, err.message);
    assert_null(fit);
    assert_int_equal(atomic_load(&fault_live), 0);
    fault_end();
}

static void restore__refuses_hostile_ones(void **state)
{
    (void)state;
    static const char *const names[] = {"choice", "inner", "range", "hashes"};
    for (int64_t classes = 2; classes <= 3; classes++) {
        bags_sample d;
        fin_fit_settings s;
        fin_tensor t[TENSORS], bad[TENSORS];
        int64_t count;
        fin_fit *fit = embedded(&d, &s, classes, t, &count);
        fin_fit_info info;
        fin_fit_get_info(fit, &info);
        assert_int_equal(info.parts, 2);
        assert_true(info.locator == 1);
        for (int k = 0; k < 4; k++) {
            int64_t i = at(t, count, names[k]);
            for (int wrong = 0; wrong < 6; wrong++) {
                memcpy(bad, t, sizeof bad);
                if (wrong == 0)
                    bad[i].shape[0]++;
                else if (wrong == 1)
                    bad[i].dtype = FIN_F32;
                else if (wrong == 2)
                    bad[i].ndim = 3 - t[i].ndim;
                else if (wrong == 3)
                    bad[i].shape[0] = -1;
                else if (wrong == 4)
                    bad[i].data = NULL;
                else
                    bad[i].shape[0] = INT64_C(1) << 60;
                refused(&s, bad, count, names[k]);
            }
        }
        const int64_t choices[][2] = {
            {2, 2},         {-1, 2},       {classes == 3, 2 + (classes == 2)},
            {0, 3},         {0, -1},       {0, 1}, /* part 0 is the embedding */
            {0, INT64_MAX}, {INT64_MIN, 2}};
        for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
            memcpy(bad, t, sizeof bad);
            bad[at(t, count, "choice")].data = choices[k];
            refused(&s, bad, count, "choice");
        }
        const double inner[][4] = {{NAN, 1, 1, 1},  {1, INFINITY, 1, 1}, {1, 1, 1, 0},
                                   {1, 1, 1, 17},   {1, 1, 1, NAN},      {1, 1, 1, -1},
                                   {1, 1e300, 1, 1}};
        for (size_t k = 0; k < sizeof inner / sizeof *inner; k++) {
            memcpy(bad, t, sizeof bad);
            bad[at(t, count, "inner")].data = inner[k];
            refused(&s, bad, count, "inner");
        }
        double range[2 * D];
        int64_t i = at(t, count, "range");
        for (int k = 0; k < 3; k++) {
            static const double wrong[] = {NAN, INFINITY, -1e250};
            memcpy(bad, t, sizeof bad);
            memcpy(range, t[i].data, sizeof range);
            range[D + 1] = wrong[k];
            bad[i].data = range;
            refused(&s, bad, count, "range");
        }
        int64_t hashes[N];
        i = at(t, count, "hashes");
        assert_int_equal(t[i].shape[0], N);
        memcpy(hashes, t[i].data, sizeof hashes);
        hashes[7] = hashes[6] - 1;
        memcpy(bad, t, sizeof bad);
        bad[i].data = hashes;
        refused(&s, bad, count, "hashes");
        memcpy(bad, t, sizeof bad); /* choices without losses */
        bad[at(t, count, "inner")] = bad[count - 1];
        refused(&s, bad, count - 1, "inner");
        fin_fit_destroy(fit);
        bags_free(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level__is_constant_in_bags_and_not_between),
        cmocka_unit_test(level__without_memory),
        cmocka_unit_test(outside__counts_tokens_beyond_the_range),
        cmocka_unit_test(known__whatever_the_order_of_tokens),
        cmocka_unit_test(known__without_memory),
        cmocka_unit_test(restore__keeps_what_is_new),
        cmocka_unit_test(restore__reads_earlier_versions),
        cmocka_unit_test(restore__refuses_hostile_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
