/* Fits to simulated single-location regression, where the truth is known: directions, risk against
 * the Bayes risk, and whether the probabilities of locations are what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "finetti/task.h"
#include "finetti/bags.h"

#include <math.h>
#include <stdlib.h>

static void ok(fin_status status, const fin_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

static void *room(int64_t count, size_t size)
{
    void *block = calloc((size_t)count, size);
    assert_non_null(block);
    return block;
}

/* Bags to learn from, and others to be judged by, of one task. */
typedef struct sample {
    fin_task *task;
    int64_t n, held, d, L;
    int64_t *offsets, *location; /* of all bags */
    double *tokens, *labels;
    fin_bags learn, test;
} sample;

static void draw(sample *s, const char *name, int64_t n, int64_t held, int64_t d, int64_t L)
{
    fin_error err = {FIN_OK, ""};
    const fin_task_kind *kind = fin_task_find(name);
    fin_task_settings settings;
    fin_settings_defaults(fin_task_kind_table(kind), &settings, sizeof settings);
    settings.d = d;
    settings.L = L;
    settings.eps = 0.1;
    settings.snr = 5;
    *s = (sample){.n = n, .held = held, .d = d, .L = L};
    ok(fin_task_create(&s->task, kind, &settings, NULL, 3, FIN_TASK_AMBIENT, &err), &err);
    int64_t all = n + held;
    s->offsets = room(all + 1, sizeof *s->offsets);
    s->location = room(all, sizeof *s->location);
    s->labels = room(all, sizeof *s->labels);
    s->tokens = room(all * L * d, sizeof *s->tokens);
    ok(fin_task_offsets(s->task, 0, all, s->offsets, &err), &err);
    ok(fin_task_draw(s->task, 0, all, FIN_F64, s->offsets, s->tokens, s->labels, s->location, &err),
       &err);
    s->learn = (fin_bags){n, d, 0, n, s->offsets, FIN_F64, s->tokens, s->labels, NULL};
    s->test = (fin_bags){
        held, d, 0, held, s->offsets + n, FIN_F64, s->tokens + n * L * d, s->labels + n, NULL};
}

static void close_sample(sample *s)
{
    fin_task_destroy(s->task);
    free(s->offsets);
    free(s->location);
    free(s->labels);
    free(s->tokens);
}

/* One penalty of the grid, for time. */
static fin_fit *fit_of(int model, int64_t classes, const fin_bags *bags)
{
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = model;
    settings.penalty = classes ? 0.1 : 1;
    fin_fit *fit = NULL;
    ok(fin_fit_create(&fit, &settings, classes, bags, NULL, NULL, NULL, &err), &err);
    return fit;
}

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

static void directions(const sample *s, const fin_fit *fit, double *key, double *value)
{
    fin_error err = {FIN_OK, ""};
    double *k = room(s->d, sizeof *k), *v = room(s->d, sizeof *v);
    ok(fin_fit_directions(fit, 0, 0, 0, k, v, &err), &err);
    *key = cosine(s->d, k, fin_task_k_star(s->task));
    *value = cosine(s->d, v, fin_task_v_star(s->task));
    free(k);
    free(v);
}

static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE};
static const char *const names[] = {"softmax", "mixture"};

/* 20 bags a column. */
static void fit__recovers_the_directions_of_slr(void **state)
{
    (void)state;
    sample s;
    draw(&s, "slr", 800, 1, 40, 10);
    for (int m = 0; m < 2; m++) {
        double key, value;
        fin_fit *fit = fit_of(models[m], 0, &s.learn);
        directions(&s, fit, &key, &value);
        print_message("%s: key %.4f, value %.4f\n", names[m], key, value);
        assert_true(key > 0.99 && value > 0.99);
        fin_fit_destroy(fit);
    }
    close_sample(&s);
}

/* Mean squared error over that of the Bayes prediction, and the share of labels within 1.645
 * standard deviations. */
static double ratio(const sample *s, const fin_fit *fit, double *cover)
{
    fin_error err = {FIN_OK, ""};
    double *mean = room(s->held, sizeof *mean), *sd = room(s->held, sizeof *sd);
    double *bayes = room(s->held, sizeof *bayes), risk = 0, best = 0, inside = 0;
    fin_batch batch = {s->held, s->d, FIN_F64, s->test.tokens, s->test.offsets};
    ok(fin_fit_predict(fit, &s->test, mean, sd, NULL, &err), &err);
    ok(fin_task_predict(s->task, &batch, bayes, &err), &err);
    for (int64_t i = 0; i < s->held; i++) {
        double y = s->test.labels[i];
        risk += (mean[i] - y) * (mean[i] - y);
        best += (bayes[i] - y) * (bayes[i] - y);
        inside += fabs(mean[i] - y) < 1.645 * sd[i];
    }
    *cover = inside / (double)s->held;
    free(mean);
    free(sd);
    free(bayes);
    return risk / best;
}

/* The excess is proportional to d / n in theory: 2 d / n for key and value and twice that for what
 * a penalty and a surrogate cost is generous, and 5 % at 200 bags a column. Both predictions are
 * judged on the same bags, so that 6000 of them are enough. */
static void fit__reaches_the_bayes_risk(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 400, 2000};
    for (int m = 0; m < 2; m++) {
        double last = INFINITY;
        for (int i = 0; i < 3; i++) {
            sample s;
            draw(&s, "spiked", sizes[i], 6000, 10, 3);
            fin_fit *fit = fit_of(models[m], 0, &s.learn);
            double cover, now = ratio(&s, fit, &cover);
            print_message("%s, n = %d: %.3f of the Bayes risk; 90 %% intervals hold %.3f\n",
                          names[m], (int)sizes[i], now, cover);
            assert_true(now < last);
            assert_true(cover > 0.85 && cover < 0.95); /* errors are not normal: longer tails */
            last = now;
            fin_fit_destroy(fit);
            close_sample(&s);
        }
        assert_true(last < 1.05);
    }
}

/* Mean over tokens of |said - true| in ten bins of what was said. */
static double calibration(const sample *s, const double *said)
{
    double gap[10] = {0}, total = 0;
    for (int64_t i = 0; i < s->held; i++)
        for (int64_t l = 0; l < s->L; l++) {
            double p = said[i * s->L + l];
            assert_true(p >= 0 && p <= 1);
            gap[p < 1 ? (int)(10 * p) : 9] += p - (double)(l == s->location[s->n + i]);
        }
    for (int b = 0; b < 10; b++)
        total += fabs(gap[b]);
    return total / (double)(s->held * s->L);
}

/* 10^5 held-out tokens, ten bags a column to learn from. That a bin is off by chance adds 0.001. */
static void locate__is_calibrated(void **state)
{
    (void)state;
    fin_error err = {FIN_OK, ""};
    sample s;
    draw(&s, "spiked", 500, 33334, 50, 3);
    double *prior = room(s.held * s.L, sizeof *prior), *given = room(s.held * s.L, sizeof *given);
    for (int m = 0; m < 2; m++) {
        fin_fit *fit = fit_of(models[m], 0, &s.learn);
        ok(fin_fit_locate(fit, &s.test, &(fin_locations){.prior = prior, .given = given}, NULL,
                          &err),
           &err);
        double without = calibration(&s, prior), with = calibration(&s, given);
        print_message("%s: expected calibration error %.4f, given the label %.4f\n", names[m],
                      without, with);
        assert_true(without < 0.02 && with < 0.02);
        fin_fit_destroy(fit);
    }
    free(prior);
    free(given);
    close_sample(&s);
}

/* The label tells more: the location's log loss is lower with it. Classes: the sign of the label.
 * The posterior given the class must say more than without, too. */
static void locate__learns_from_the_label(void **state)
{
    (void)state;
    fin_error err = {FIN_OK, ""};
    sample s;
    draw(&s, "spiked", 600, 2000, 10, 4);
    double *prior = room(s.held * s.L, sizeof *prior), *given = room(s.held * s.L, sizeof *given);
    for (int classes = 0; classes <= 2; classes += 2)
        for (int m = 0; m < 2; m++) {
            for (int64_t i = 0; classes && i < s.n + s.held; i++)
                s.labels[i] = s.labels[i] > 0;
            fin_fit *fit = fit_of(models[m], classes, &s.learn);
            double key, value, without = 0, with = 0;
            directions(&s, fit, &key, &value);
            ok(fin_fit_locate(fit, &s.test, &(fin_locations){.prior = prior, .given = given}, NULL,
                              &err),
               &err);
            for (int64_t i = 0; i < s.held; i++) {
                int64_t at = i * s.L + s.location[s.n + i];
                without -= log(fmax(prior[at], 1e-300)) / (double)s.held;
                with -= log(fmax(given[at], 1e-300)) / (double)s.held;
            }
            print_message(
                "%s, %d classes: key %.3f, value %.3f, log loss %.3f, with the label %.3f\n",
                names[m], classes, key, value, without, with);
            assert_true(key > 0.9 && value > 0.9);
            assert_true(with < without && without < log((double)s.L));
            fin_fit_destroy(fit);
        }
    free(prior);
    free(given);
    close_sample(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit__recovers_the_directions_of_slr),
        cmocka_unit_test(fit__reaches_the_bayes_risk),
        cmocka_unit_test(locate__is_calibrated),
        cmocka_unit_test(locate__learns_from_the_label),
    };
    return cmocka_run_group_tests_name("train_recover", tests, NULL, NULL);
}
