/* Tuning: known answers (scikit-learn, tests/data/attend_sklearn.py), what a maximum must satisfy,
 * sequences that share settings, threads, cancelling, faults, rejects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fault.h"
#include "finetti/data.h"
#include "finetti/random.h"
#include "context/tune.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { TOKENS = 40, DK = 3 };

static void near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%.17g, not %.17g", got, wanted);
}

typedef struct sample {
    fin_tune_data data;
    int64_t offsets[8];
    double keys[TOKENS * DK], values[TOKENS * 2];
} sample;

/* tests/data/attend_tokens.csv: y = 4 + sin(2 x1) x2 + noise of 0.2; x3 does not matter. */
static void read_sample(sample *s, int64_t sequences)
{
    fin_table *table;
    fin_error err;
    if (fin_table_read(FIN_TEST_DATA "/attend_tokens.csv", &table, &err))
        fail_msg("%s", err.message);
    assert_int_equal(fin_table_rows(table), TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        for (int j = 0; j < DK; j++)
            s->keys[i * DK + j] = fin_table_values(table, j)[i];
        s->values[i] = fin_table_values(table, DK)[i];
    }
    fin_table_destroy(table);
    for (int64_t i = 0; i <= sequences; i++)
        s->offsets[i] = TOKENS * i / sequences;
    s->data = (fin_tune_data){sequences, DK, 1, s->offsets, s->keys, s->values, NULL};
}

static fin_cross_settings cross_of(const char *form, const char *kernel)
{
    fin_cross_settings cross;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    assert_int_equal(fin_settings_parse(&fin_cross_table, &cross, "form", form, NULL), FIN_OK);
    assert_int_equal(fin_settings_parse(&fin_cross_table, &cross, "kernel", kernel, NULL), FIN_OK);
    return cross;
}

static fin_tune_settings usual(void)
{
    fin_tune_settings how;
    fin_settings_defaults(&fin_tune_table, &how, sizeof how);
    return how;
}

static void tune_or_fail(fin_cross_settings *cross, double *scales, unsigned which, const sample *s,
                         const fin_tune_settings *how, fin_tune_report *report)
{
    fin_error err = {FIN_OK, ""};
    if (fin_tune(cross, scales, which, &s->data, how, NULL, report, &err))
        fail_msg("%s", err.message);
}

/* Evidence of one sequence, with gradient. */
static double evidence_of(const fin_cross_settings *cross, const double *scales, const sample *s,
                          int64_t sequence, double gradient[3], double *columns)
{
    fin_cross *o;
    fin_error err = {FIN_OK, ""};
    int64_t from = s->offsets[sequence], n = s->offsets[sequence + 1] - from;
    double value = 0;
    if (fin_cross_create(&o, cross, scales, DK, 1, n, &err) ||
        fin_cross_load(o, n, s->keys + from * DK, s->values + from, NULL, &err) ||
        fin_cross_evidence(o, &value, gradient, columns, NULL, &err))
        fail_msg("%s", err.message);
    fin_cross_destroy(o);
    return value;
}

/* ---- guess ---------------------------------------------------------------------------------- */

static void guess__is_the_size_of_the_data(void **state)
{
    (void)state;
    static const double keys[] = {1, 10, 3, 10, 5, 40}, values[] = {2, 4, 6};
    static const int64_t offsets[] = {0, 2, 3};
    const fin_tune_data data = {2, 2, 1, offsets, keys, values, NULL};
    fin_cross_settings cross = cross_of("cme", "rbf");
    const unsigned all =
        FIN_TUNE_SCALE | FIN_TUNE_PRIOR | FIN_TUNE_NOISE | FIN_TUNE_TEMPERATURE | FIN_TUNE_LEVEL;
    double scales[2];
    assert_int_equal(fini_tune_guess(&cross, NULL, all, &data, NULL), FIN_OK);
    near(cross.scale, sqrt(8.0 / 3 + 200), 1e-12);
    near(cross.level, 100 * 56.0 / 3, 1e-9);
    near(cross.prior, 8.0 / 3, 1e-12);
    near(cross.noise, 0.8 / 3, 1e-12);
    near(cross.temperature, (35.0 + 1800) / 6, 1e-9);
    assert_int_equal(fini_tune_guess(&cross, scales, all, &data, NULL), FIN_OK);
    near(cross.scale, 1, 0);
    near(scales[0], sqrt(2 * 8.0 / 3), 1e-12);
    near(scales[1], 20, 1e-12);
    /* Kernels of the product: about the origin; without a level the values are about 0, too. */
    cross = cross_of("cme", "linear");
    assert_int_equal(fini_tune_guess(&cross, NULL, FIN_TUNE_SCALE | FIN_TUNE_PRIOR, &data, NULL),
                     FIN_OK);
    near(cross.scale, sqrt((35.0 + 1800) / 3), 1e-9);
    near(cross.prior, 56.0 / 3, 1e-12);
    near(cross.noise, 0.1, 0);
    cross.kernel = FIN_KERNEL_POLYNOMIAL;
    assert_int_equal(fini_tune_guess(&cross, NULL, FIN_TUNE_PRIOR, &data, NULL), FIN_OK);
    near(cross.prior, 56.0 / 3 / 4, 1e-12); /* (1 + 1)^2 */
}

static void guess__constants_and_giants_are_one(void **state)
{
    (void)state;
    static const double keys[] = {7, 7, 7}, values[] = {1e200, -1e200, 1e200};
    static const int64_t offsets[] = {0, 3};
    const fin_tune_data data = {1, 1, 1, offsets, keys, values, NULL};
    fin_cross_settings cross = cross_of("cme", "matern52");
    assert_int_equal(fini_tune_guess(&cross, NULL, 31, &data, NULL), FIN_OK);
    near(cross.scale, 1, 0);
    assert_int_equal(fin_settings_validate(&fin_cross_table, &cross, NULL), FIN_OK);
}

/* ---- known answers -------------------------------------------------------------------------- */

static void evidence__matches_scikit_learn(void **state)
{
    (void)state;
    /* n_restarts_optimizer=30; printed by attend_sklearn.py FOLDER. */
    static const struct {
        const char *kernel;
        bool ard;
        double evidence, scale[3];
    } known[] = {{"rbf", false, -51.5235306349, {0.722}},
                 {"rbf", true, -29.3465022293, {0.851, 2.61, 44.8}},
                 {"matern52", false, -52.3736658644, {0.735}},
                 {"matern52", true, -32.1824461099, {1.09, 3.33, 55.3}}};
    sample s;
    read_sample(&s, 1);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        fin_cross_settings cross = cross_of("cme", known[i].kernel);
        fin_tune_settings how = usual();
        fin_tune_report report;
        double scales[DK] = {1, 1, 1};
        cross.level = 50;
        tune_or_fail(&cross, known[i].ard ? scales : NULL, 0, &s, &how, &report);
        print_message("%s%s: %.8f, %lld evaluations\n", known[i].kernel, known[i].ard ? " ard" : "",
                      report.after, (long long)report.evaluations);
        assert_true(report.after > known[i].evidence - 1e-6);
        assert_true(report.after < known[i].evidence + 1e-3);
        assert_true(report.converged);
        assert_true(report.before < report.after);
        near(report.after, evidence_of(&cross, known[i].ard ? scales : NULL, &s, 0, NULL, NULL),
             1e-9);
        for (int j = 0; j < (known[i].ard ? DK : 1); j++)
            near((known[i].ard ? scales[j] : cross.scale) / known[i].scale[j], 1, 2e-3);
        if (known[i].ard)
            near(cross.scale, 1, 0);
    }
}

/* ---- what a maximum is ---------------------------------------------------------------------- */

static void evidence__gradient_vanishes(void **state)
{
    (void)state;
    static const char *const kernels[] = {"rbf", "matern32", "polynomial", "exponential"};
    sample s;
    read_sample(&s, 4);
    for (int k = 0; k < 4; k++) {
        fin_cross_settings cross = cross_of("cme", kernels[k]);
        fin_tune_settings how = usual();
        fin_tune_report report;
        double sum[3] = {0}, gradient[3], value = 0;
        cross.level = 50;
        tune_or_fail(&cross, NULL, 0, &s, &how, &report);
        for (int i = 0; i < 4; i++) {
            value += evidence_of(&cross, NULL, &s, i, gradient, NULL);
            for (int j = 0; j < 3; j++)
                sum[j] += gradient[j];
        }
        print_message("%s: %.6f, gradient %.1e %.1e %.1e, at limit %u\n", kernels[k], value, sum[0],
                      sum[1], sum[2], report.at_limit);
        near(value, report.after, 1e-9);
        static const unsigned names[] = {FIN_TUNE_SCALE, FIN_TUNE_PRIOR, FIN_TUNE_NOISE};
        for (int j = 0; j < 3; j++)
            if (!(report.at_limit & names[j]))
                assert_true(fabs(sum[j]) < 1e-3);
    }
}

static void tune__holds_what_is_not_named(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 2);
    fin_tune_settings how = usual();
    fin_tune_report report;
    fin_cross_settings all = cross_of("cme", "rbf"), held = all;
    tune_or_fail(&all, NULL, 0, &s, &how, &report);
    double best = report.after;
    held.noise = 0.5;
    tune_or_fail(&held, NULL, FIN_TUNE_SCALE | FIN_TUNE_PRIOR, &s, &how, &report);
    near(held.noise, 0.5, 0);
    assert_true(report.after < best);
    assert_true(held.scale != 1 && held.prior != 1);
    /* linear: one number for scale and prior */
    fin_cross_settings linear = cross_of("cme", "linear");
    linear.scale = 3;
    tune_or_fail(&linear, NULL, 0, &s, &how, &report);
    near(linear.scale, 3, 0);
    assert_int_equal(fin_tune_which(&linear, 0), FIN_TUNE_PRIOR | FIN_TUNE_NOISE);
    assert_int_equal(fin_tune_which(&linear, 1), FIN_TUNE_SCALE | FIN_TUNE_NOISE);
}

static void tune__says_when_a_range_ends(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 1);
    for (int i = 0; i < TOKENS; i++) /* without noise: the less, the better */
        s.values[i] = sin(s.keys[i * DK]);
    fin_tune_settings how = usual();
    fin_tune_report report;
    fin_cross_settings cross = cross_of("cme", "matern32");
    tune_or_fail(&cross, NULL, 0, &s, &how, &report);
    assert_true(report.at_limit & FIN_TUNE_NOISE);
    assert_false(report.at_limit & FIN_TUNE_PRIOR);
    assert_true(report.notes >= 1);
    const char *note = report.note[report.notes - 1];
    assert_true(strstr(note, "noise ended at the lower end of the range that was searched, ") ==
                note);
    assert_non_null(strstr(note, ": the values look free of noise"));
    how.iterations = 1;
    how.restarts = 1;
    fin_cross_settings stopped = cross_of("cme", "matern32");
    tune_or_fail(&stopped, NULL, 0, &s, &how, &report);
    assert_false(report.converged);
    assert_true(report.after >= report.before);
    assert_non_null(strstr(report.note[report.notes - 1], "ran out of iterations"));
}

/* Of two scales at an end the one that went further is named; noise at the upper end has no advice. */
static void notes__name_what_ended(void **state)
{
    (void)state;
    static const char *const names[DK] = {"first", "second", "third"};
    fini_tune_part part[] = {{FIN_TUNE_SCALE, 0, -9, 9, 0, 0, 1, 1},
                             {FIN_TUNE_SCALE, 1, -9, 9, 0, 0, 1, 1},
                             {FIN_TUNE_SCALE, 2, -9, 9, 1, 0, 1, 1},
                             {FIN_TUNE_NOISE, -1, -9, log(50), 0, 0, 1, 1}};
    double best[] = {8.9, 9, 9, log(50)}, scales[DK] = {exp(8.9), exp(9), exp(9)};
    fin_tune_data data = {.names = NULL};
    fini_tune t = {.data = &data, .parts = 4, .part = part, .best = best};
    fin_cross_settings cross = cross_of("cme", "rbf");
    fin_tune_report report = {.converged = 1};
    fini_tune_notes(&t, &cross, scales, &report);
    assert_int_equal(report.notes, 2);
    assert_string_equal(report.note[0],
                        "scale of column 1 ended at the upper end of the range that "
                        "was searched, 8.1e+03: the column does not matter");
    assert_string_equal(report.note[1],
                        "noise ended at the upper end of the range that was searched, 50");
    data.names = names;
    best[0] = scales[0] = -9; /* as far as the second, and the first of its kind */
    report.notes = 0;
    report.converged = 0;
    fini_tune_notes(&t, &cross, scales, &report);
    assert_int_equal(report.notes, 3);
    assert_string_equal(report.note[0],
                        "scale of first ended at the lower end of the range that was searched, -9");
    assert_string_equal(report.note[2],
                        "the search ran out of iterations; more iterations may do better");
}

/* ---- settings from data --------------------------------------------------------------------- */

static void choose__is_a_guess_then_a_search(void **state)
{
    (void)state;
    const unsigned open = FIN_TUNE_SCALE | FIN_TUNE_NOISE | FIN_TUNE_LEVEL;
    sample s;
    read_sample(&s, 2);
    fin_tune_settings how = usual();
    fin_cross_settings one = cross_of("cme", "rbf"), two = one;
    fin_tune_report first, second;
    assert_int_equal(fini_tune_guess(&one, NULL, open, &s.data, NULL), FIN_OK);
    assert_int_equal(fin_tune_choose(&two, NULL, open, &s.data, NULL, NULL, &second, NULL), FIN_OK);
    assert_memory_equal(&one, &two, sizeof one);
    assert_int_equal(second.which, 0);
    tune_or_fail(&one, NULL, FIN_TUNE_SCALE | FIN_TUNE_NOISE, &s, &how, &first);
    two = cross_of("cme", "rbf");
    assert_int_equal(fin_tune_choose(&two, NULL, open, &s.data, &how, NULL, &second, NULL), FIN_OK);
    assert_memory_equal(&one, &two, sizeof one);
    assert_true(first.after == second.after && second.tokens == TOKENS);
    assert_int_equal(second.which, FIN_TUNE_SCALE | FIN_TUNE_NOISE);
    assert_int_equal(second.by, FIN_TUNE_BY_EVIDENCE);
    /* nothing to tune: the guess; what fails leaves the settings alone */
    assert_int_equal(
        fin_tune_choose(&two, NULL, FIN_TUNE_LEVEL, &s.data, &how, NULL, &second, NULL), FIN_OK);
    assert_int_equal(second.which, 0);
    one = two;
    s.keys[3] = NAN;
    assert_int_equal(fin_tune_choose(&two, NULL, open, &s.data, &how, NULL, &second, NULL),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_tune_choose(NULL, NULL, open, &s.data, &how, NULL, &second, NULL),
                     FIN_ERR_ARGUMENT);
    assert_memory_equal(&one, &two, sizeof one);
}

/* With landmarks: exactly, on a random part, of every sequence its own. */
static void tune__landmarks_are_a_part_of_the_tokens(void **state)
{
    (void)state;
    enum { LANDMARKS = 12 };
    sample s, part;
    read_sample(&s, 2);
    int64_t to = 0;
    for (int q = 0; q < 2; q++) { /* Knuth's algorithm S */
        fin_random random;
        fin_random_open(&random, 5, FIN_STREAM_USER, (uint64_t)q);
        int64_t n = s.offsets[q + 1] - s.offsets[q], left = LANDMARKS;
        for (int64_t i = 0; i < n; i++)
            if (fin_random_below(&random, n - i) < left) {
                int64_t from = s.offsets[q] + i;
                memcpy(part.keys + to * DK, s.keys + from * DK, DK * sizeof(double));
                part.values[to++] = s.values[from];
                left--;
            }
    }
    part.offsets[0] = 0;
    part.offsets[1] = LANDMARKS;
    part.offsets[2] = 2 * LANDMARKS;
    part.data = (fin_tune_data){2, DK, 1, part.offsets, part.keys, part.values, NULL};
    fin_tune_settings how = usual();
    fin_cross_settings exact = cross_of("cme", "rbf"), few = exact, all = exact, whole = exact;
    fin_tune_report report;
    few.method = all.method = FIN_CROSS_NYSTROM;
    few.landmarks = LANDMARKS;
    few.seed = 5;
    tune_or_fail(&exact, NULL, 0, &part, &how, &report);
    tune_or_fail(&few, NULL, 0, &s, &how, &report);
    assert_int_equal(report.tokens, 2 * LANDMARKS);
    assert_int_equal(few.method, FIN_CROSS_NYSTROM);
    assert_true(few.scale == exact.scale && few.prior == exact.prior && few.noise == exact.noise);
    tune_or_fail(&all, NULL, 0, &s, &how, &report); /* 1000 of them: every token */
    tune_or_fail(&whole, NULL, 0, &s, &how, NULL);
    assert_int_equal(report.tokens, TOKENS);
    assert_true(all.scale == whole.scale && all.noise == whole.noise);
}

/* ---- leave-one-out -------------------------------------------------------------------------- */

/* Sum over sequences of the squared leave-one-out error, or of minus the log score. */
static double left_out(const fin_cross_settings *cross, const sample *s)
{
    double sum = 0, mean[TOKENS], variance[TOKENS];
    fin_error err = {FIN_OK, ""};
    for (int64_t q = 0; q < s->data.n; q++) {
        fin_cross *o;
        int64_t from = s->offsets[q], n = s->offsets[q + 1] - from;
        if (fin_cross_create(&o, cross, NULL, DK, 1, n, &err) ||
            fin_cross_load(o, n, s->keys + from * DK, s->values + from, NULL, &err) ||
            fin_cross_loo(o, mean, variance, NULL, &err))
            fail_msg("%s", err.message);
        for (int64_t i = 0; i < n; i++) {
            double e = s->values[from + i] - mean[i];
            sum += cross->form == FIN_CROSS_CME
                       ? 0.5 * (e * e / variance[i] + log(6.283185307179586477 * variance[i]))
                       : e * e;
        }
        fin_cross_destroy(o);
    }
    return sum / TOKENS;
}

static void loo__finds_the_best_of_a_grid(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 2);
    static const char *const forms[] = {"softmax", "nw"};
    for (int k = 0; k < 2; k++) {
        fin_cross_settings cross = cross_of(forms[k], "rbf");
        fin_tune_settings how = usual();
        fin_tune_report report;
        tune_or_fail(&cross, NULL, 0, &s, &how, &report);
        near(-report.after, left_out(&cross, &s), 1e-12);
        double best = INFINITY;
        for (int i = 0; i <= 400; i++) {
            fin_cross_settings other = cross;
            other.scale = other.temperature = pow(10, -2 + 0.01 * i);
            best = fmin(best, left_out(&other, &s));
        }
        print_message("%s: %.8f, grid %.8f\n", forms[k], -report.after, best);
        assert_true(-report.after <= best + 1e-12);
        assert_true(report.after > report.before);
    }
}

static void loo__cme_is_a_maximum(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 2);
    fin_cross_settings cross = cross_of("cme", "rbf");
    fin_tune_settings how = usual();
    fin_tune_report report;
    cross.level = 50;
    how.by = FIN_TUNE_BY_LOO;
    tune_or_fail(&cross, NULL, 0, &s, &how, &report);
    double best = left_out(&cross, &s);
    near(-report.after, best, 1e-12);
    for (int k = 0; k < 6; k++) {
        fin_cross_settings other = cross;
        double factor = k % 2 ? 1.05 : 1 / 1.05;
        double *where[] = {&other.scale, &other.prior, &other.noise};
        *where[k / 2] *= factor;
        assert_true(left_out(&other, &s) > best - 1e-9);
    }
}

/* ---- promises ------------------------------------------------------------------------------- */

/* Sequences that are long enough for several threads: v = sin(k0 + a) + noise, a of its own. */
enum { MANY = 24, LONG = 64 };

typedef struct crowd {
    fin_tune_data data;
    int64_t offsets[MANY + 1];
    double keys[MANY * LONG * 2], values[MANY * LONG];
} crowd;

static void draw_crowd(crowd *c)
{
    for (int i = 0; i < MANY; i++) {
        fin_random random;
        fin_random_open(&random, 3, FIN_STREAM_USER, (uint64_t)i);
        double a = fin_random_normal(&random);
        c->offsets[i + 1] = c->offsets[i] + LONG - i % 3;
        for (int64_t l = c->offsets[i]; l < c->offsets[i + 1]; l++) {
            c->keys[2 * l] = 2 * fin_random_normal(&random);
            c->keys[2 * l + 1] = fin_random_normal(&random);
            c->values[l] = sin(c->keys[2 * l] + a) + 0.3 * fin_random_normal(&random);
        }
    }
    c->data = (fin_tune_data){MANY, 2, 1, c->offsets, c->keys, c->values, NULL};
}

static void tune__same_bytes_for_any_threads(void **state)
{
    (void)state;
    static crowd c;
    draw_crowd(&c);
    fin_tune_settings how = usual();
    fin_cross_settings found[3];
    double scales[3][2];
    fin_tune_report report[3];
    how.restarts = 2;
    for (int t = 0; t < 3; t++) {
        fin_error err = {FIN_OK, ""};
        found[t] = cross_of("cme", "rbf");
        scales[t][0] = scales[t][1] = 1;
        fin_threads_set(t + 1);
        if (fin_tune(&found[t], scales[t], 0, &c.data, &how, NULL, &report[t], &err))
            fail_msg("%s", err.message);
        assert_memory_equal(&found[t], &found[0], sizeof found[0]);
        assert_memory_equal(scales[t], scales[0], sizeof scales[0]);
        assert_true(report[t].after == report[0].after);
        assert_true(report[t].evaluations == report[0].evaluations);
    }
    fin_threads_set(1);
    /* 1500 values say what the noise is: 0.09 within three standard errors of 0.09 sqrt(2/1500). */
    near(found[0].noise, 0.09, 0.01);
    /* Another seed is another search that ends in the same place. */
    fin_cross_settings other = cross_of("cme", "rbf");
    fin_tune_report again;
    double more[2] = {1, 1};
    how.tune_seed = 7;
    assert_int_equal(fin_tune(&other, more, 0, &c.data, &how, NULL, &again, NULL), FIN_OK);
    assert_true(again.evaluations != report[0].evaluations);
    near(again.after, report[0].after, 1e-4);
}

/* One sequence that fails fails all, whichever thread had it; cancelling stops all threads. */
static void tune__side_by_side_fails_cleanly(void **state)
{
    (void)state;
    static crowd c;
    draw_crowd(&c);
    fin_tune_settings how = usual();
    fin_cross_settings cross = cross_of("cme", "rbf");
    fin_error err = {FIN_OK, ""};
    cross.noise = 0;
    memcpy(c.keys + 2 * (c.offsets[5] + 1), c.keys + 2 * c.offsets[5], 2 * sizeof(double));
    fin_threads_set(3);
    assert_int_equal(fin_tune(&cross, NULL, FIN_TUNE_SCALE, &c.data, &how, NULL, NULL, &err),
                     FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "noise"));
    fin_threads_set(1);
}

static void tune__units_do_not_matter(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 1);
    fin_tune_settings how = usual();
    fin_tune_report a, b;
    fin_cross_settings plain = cross_of("cme", "rbf"), other = plain;
    plain.level = 50;
    other.level = 50e6;
    unsigned all = FIN_TUNE_SCALE | FIN_TUNE_PRIOR | FIN_TUNE_NOISE;
    assert_int_equal(fini_tune_guess(&plain, NULL, all, &s.data, NULL), FIN_OK);
    tune_or_fail(&plain, NULL, 0, &s, &how, &a);
    for (int i = 0; i < TOKENS * DK; i++)
        s.keys[i] *= 1e6;
    for (int i = 0; i < TOKENS; i++)
        s.values[i] *= 1e3;
    assert_int_equal(fini_tune_guess(&other, NULL, all, &s.data, NULL), FIN_OK);
    tune_or_fail(&other, NULL, 0, &s, &how, &b);
    near(other.scale / plain.scale / 1e6, 1, 1e-4);
    near(other.noise / plain.noise / 1e6, 1, 1e-4);
    near(b.after, a.after - TOKENS * log(1e3), 1e-6);
}

static int stop_at(void *user, const char *what, double done, double total)
{
    int *left = user;
    assert_string_equal(what, "tuning");
    assert_true(done >= 0 && done <= total);
    return --*left < 0;
}

static void tune__cancels(void **state)
{
    (void)state;
    sample s;
    static const char *const forms[] = {"cme", "softmax"};
    for (int sequences = 1; sequences <= 3; sequences += 2)
        for (int f = 0; f < 2; f++)
            for (int after = 0; after < 60; after += 20) {
                int left = after;
                const fin_progress progress = {stop_at, &left};
                read_sample(&s, sequences);
                fin_cross_settings cross = cross_of(forms[f], "rbf"), before = cross;
                fin_tune_settings how = usual();
                fin_error err = {FIN_OK, ""};
                assert_int_equal(fin_tune(&cross, NULL, 0, &s.data, &how, &progress, NULL, &err),
                                 FIN_ERR_CANCELLED);
                assert_memory_equal(&cross, &before, sizeof cross);
                assert_true(err.message[0]);
            }
}

static fin_status run_all(void *user, fin_error *err)
{
    const sample *s = user;
    fin_tune_settings how = usual();
    how.restarts = 1;
    how.iterations = 2;
    fin_cross_settings cross = cross_of("cme", "rbf");
    double scales[DK] = {1, 1, 1};
    fin_status status = fin_tune(&cross, scales, 0, &s->data, &how, NULL, NULL, err);
    cross = cross_of("cme", "rbf");
    how.by = FIN_TUNE_BY_LOO;
    if (!status)
        status = fin_tune(&cross, NULL, FIN_TUNE_NOISE, &s->data, &how, NULL, NULL, err);
    cross = cross_of("nw", "rbf");
    if (!status)
        status = fin_tune(&cross, NULL, 0, &s->data, &how, NULL, NULL, err);
    cross = cross_of("cme", "rbf");
    cross.method = FIN_CROSS_NYSTROM;
    cross.landmarks = 3;
    if (!status)
        status = fin_tune(&cross, NULL, FIN_TUNE_NOISE, &s->data, &how, NULL, NULL, err);
    return status;
}

static void tune__every_allocation_may_fail(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 2);
    for (int i = 0; i <= 2; i++) /* a few tokens are enough, and there are many runs */
        s.offsets[i] = 4 * i;
    fin_threads_set(1);
    long count = fault_every(run_all, &s);
    fin_threads_set(1);
    print_message("%ld allocations\n", count);
    assert_true(count > 5);
}

static void tune__numerical_failure_is_said(void **state)
{
    (void)state;
    static const double keys[] = {1, 1, 2}, values[] = {0, 1, 2};
    static const int64_t offsets[] = {0, 3};
    const fin_tune_data data = {1, 1, 1, offsets, keys, values, NULL};
    fin_cross_settings cross = cross_of("cme", "rbf"), before;
    fin_tune_settings how = usual();
    fin_error err = {FIN_OK, ""};
    cross.noise = 0; /* held: no scale explains different values at one key */
    before = cross;
    assert_int_equal(
        fin_tune(&cross, NULL, FIN_TUNE_SCALE | FIN_TUNE_PRIOR, &data, &how, NULL, NULL, &err),
        FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "noise"));
    assert_memory_equal(&cross, &before, sizeof cross);
    fin_tune_report report; /* free: it starts where it has a logarithm */
    assert_int_equal(fin_tune(&cross, NULL, 0, &data, &how, NULL, &report, &err), FIN_OK);
    assert_true(cross.noise > 0 && isfinite(report.after));
    assert_true(isfinite(report.before));
}

/* ---- rejects -------------------------------------------------------------------------------- */

static void expect(fin_status wanted, const char *part, const fin_cross_settings *given,
                   double *scales, unsigned which, const fin_tune_data *data,
                   const fin_tune_settings *how)
{
    fin_error err = {FIN_OK, ""};
    fin_cross_settings cross = *given;
    fin_status status = fin_tune(&cross, scales, which, data, how, NULL, NULL, &err);
    if (status != wanted || !strstr(err.message, part))
        fail_msg("status %d, message '%s'", (int)status, err.message);
    assert_memory_equal(&cross, given, sizeof cross);
}

static void tune__rejects(void **state)
{
    (void)state;
    sample s;
    read_sample(&s, 2);
    fin_cross_settings cme = cross_of("cme", "rbf"), nw = cross_of("nw", "rbf"),
                       softmax = cross_of("softmax", "rbf"), bad = cme;
    fin_tune_settings how = usual(), wrong = how;
    double scales[DK] = {1, 0, 1};
    assert_int_equal(fin_tune(NULL, NULL, 0, &s.data, &how, NULL, NULL, NULL), FIN_ERR_ARGUMENT);
    expect(FIN_ERR_ARGUMENT, "NULL", &cme, NULL, 0, NULL, &how);
    expect(FIN_ERR_ARGUMENT, "scale 1 is 0", &cme, scales, 0, &s.data, &how);
    scales[1] = NAN;
    expect(FIN_ERR_ARGUMENT, "scale 1 is nan", &cme, scales, 0, &s.data, &how);
    scales[1] = 1;
    expect(FIN_ERR_UNSUPPORTED, "for cme", &nw, scales, 0, &s.data, &how);
    expect(FIN_ERR_ARGUMENT, "its scale", &nw, NULL, FIN_TUNE_NOISE, &s.data, &how);
    expect(FIN_ERR_ARGUMENT, "its temperature", &softmax, NULL, FIN_TUNE_SCALE, &s.data, &how);
    expect(FIN_ERR_ARGUMENT, "scale, prior and noise", &cme, NULL, FIN_TUNE_TEMPERATURE, &s.data,
           &how);
    expect(FIN_ERR_ARGUMENT, "scale, prior and noise", &cme, NULL, FIN_TUNE_LEVEL, &s.data, &how);
    wrong.by = FIN_TUNE_BY_EVIDENCE;
    expect(FIN_ERR_UNSUPPORTED, "no marginal likelihood", &softmax, NULL, 0, &s.data, &wrong);
    wrong = how;
    wrong.restarts = 0;
    expect(FIN_ERR_ARGUMENT, "restarts", &cme, NULL, 0, &s.data, &wrong);
    bad.noise = -1;
    expect(FIN_ERR_ARGUMENT, "noise", &bad, NULL, 0, &s.data, &how);

    fin_tune_data data = s.data;
    const int64_t falls[] = {0, 5, 3}, late[] = {1, 5, 8}, none[] = {0, 0, 0}, single[] = {0, 1, 2};
    data.offsets = falls;
    expect(FIN_ERR_ARGUMENT, "offsets fall", &cme, NULL, 0, &data, &how);
    data.offsets = late;
    expect(FIN_ERR_ARGUMENT, "offsets start", &cme, NULL, 0, &data, &how);
    data.offsets = none;
    expect(FIN_ERR_ARGUMENT, "0 tokens", &cme, NULL, 0, &data, &how);
    data.offsets = single;
    expect(FIN_ERR_ARGUMENT, "two tokens", &nw, NULL, 0, &data, &how);
    data = s.data;
    data.n = 0;
    expect(FIN_ERR_ARGUMENT, "n = 0", &cme, NULL, 0, &data, &how);
    data = s.data;
    data.dk = INT64_MAX;
    expect(FIN_ERR_ARGUMENT, "dk", &cme, NULL, 0, &data, &how);
    s.keys[7] = NAN;
    expect(FIN_ERR_ARGUMENT, "key 2 has nan in column 1", &cme, NULL, 0, &s.data, &how);
    s.keys[7] = 0;
    s.values[9] = INFINITY;
    expect(FIN_ERR_ARGUMENT, "value 9 has inf", &cme, NULL, 0, &s.data, &how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guess__is_the_size_of_the_data),
        cmocka_unit_test(guess__constants_and_giants_are_one),
        cmocka_unit_test(evidence__matches_scikit_learn),
        cmocka_unit_test(evidence__gradient_vanishes),
        cmocka_unit_test(tune__holds_what_is_not_named),
        cmocka_unit_test(tune__says_when_a_range_ends),
        cmocka_unit_test(notes__name_what_ended),
        cmocka_unit_test(choose__is_a_guess_then_a_search),
        cmocka_unit_test(tune__landmarks_are_a_part_of_the_tokens),
        cmocka_unit_test(loo__finds_the_best_of_a_grid),
        cmocka_unit_test(loo__cme_is_a_maximum),
        cmocka_unit_test(tune__same_bytes_for_any_threads),
        cmocka_unit_test(tune__side_by_side_fails_cleanly),
        cmocka_unit_test(tune__units_do_not_matter),
        cmocka_unit_test(tune__cancels),
        cmocka_unit_test(tune__every_allocation_may_fail),
        cmocka_unit_test(tune__numerical_failure_is_said),
        cmocka_unit_test(tune__rejects),
    };
    fin_threads_set(1); /* the searches are short; one test tries more */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
