/* What follows a penalised minimum, on simulated single-location regression: the key that comes
 * from the posterior location, when it is taken and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fault.h"
#include "finetti/task.h"
#include "bags/descend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void ok(fin_status status, const fin_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

/* Tokens divided by sqrt(d), labels by their deviation, as a fit sees them. */
typedef struct sample {
    fin_task *task;
    int64_t n, d, *offsets;
    double *tokens, *labels, *x, penalty[2], scale; /* scale: what labels were divided by */
    fini_phi phi;
    fini_bag_shape shape;
    const fini_bag_form *form;
    fini_risk *risk;
    int64_t parameters;
    int gate;
} sample;

static void draw(sample *s, const char *kind, int64_t n, int64_t d, int64_t L, double noise)
{
    fin_error err = {FIN_OK, ""};
    const fin_task_kind *task = fin_task_find(kind);
    fin_task_settings settings;
    memset(s, 0, sizeof *s);
    fin_settings_defaults(fin_task_kind_table(task), &settings, sizeof settings);
    settings.d = d;
    settings.L = L;
    settings.eps = noise;
    settings.snr = 5;
    settings.mu = 4;
    ok(fin_task_create(&s->task, task, &settings, NULL, 11, FIN_TASK_AMBIENT, &err), &err);
    s->n = n;
    s->d = d;
    s->offsets = calloc((size_t)n + 1, sizeof *s->offsets);
    s->tokens = calloc((size_t)(n * L * d), sizeof *s->tokens);
    s->labels = calloc((size_t)n, sizeof *s->labels);
    s->x = calloc((size_t)(2 * d + 2), sizeof *s->x);
    assert_true(s->offsets && s->tokens && s->labels && s->x);
    ok(fin_task_offsets(s->task, 0, n, s->offsets, &err), &err);
    ok(fin_task_draw(s->task, 0, n, FIN_F64, s->offsets, s->tokens, s->labels, NULL, &err), &err);
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += s->labels[i] * s->labels[i] / (double)n;
    s->scale = sqrt(square);
    for (int64_t i = 0; i < n; i++)
        s->labels[i] /= s->scale;
    for (int64_t i = 0; i < n * L * d; i++)
        s->tokens[i] /= sqrt((double)d);
    s->phi.bags = (fin_bags){n, d, 0, n, s->offsets, FIN_F64, s->tokens, s->labels, NULL};
    s->shape = (fini_bag_shape){1, 0, 1, L, 1, NULL};
}

static void close_sample(sample *s)
{
    fini_risk_destroy(s->risk);
    fin_task_destroy(s->task);
    free(s->offsets);
    free(s->tokens);
    free(s->labels);
    free(s->x);
}

static fin_status objective(void *user, const double *x, double *value, double *slope,
                            fin_error *err)
{
    sample *s = user;
    fin_status status = fini_risk_value(s->risk, x, value, slope, err);
    for (int64_t j = 0; j < 2 * s->d; j++) {
        *value += 0.5 * s->penalty[j >= s->d] * x[j] * x[j];
        slope[j] += s->penalty[j >= s->d] * x[j];
    }
    return status;
}

/* The penalised minimum near small keys, penalty lam on the sum (twice that for keys). */
static void fit(sample *s, const fini_bag_form *form, double lam)
{
    s->shape.form = form;
    fin_error err = {FIN_OK, ""};
    s->form = form;
    fini_risk_destroy(s->risk);
    ok(fini_risk_create(&s->risk, form,
                        &(fini_problem){.shape = &s->shape, .phi = &s->phi, .labels = s->labels},
                        &err),
       &err);
    s->parameters = fini_risk_parameters(s->risk);
    s->penalty[0] = 2 * lam / (double)s->n;
    s->penalty[1] = lam / (double)s->n;
    for (int64_t j = 0; j < 2 * s->d; j++)
        s->x[j] = 0.01 * sin((double)(7 * j + 1));
    fini_lbfgs search;
    ok(fini_lbfgs_create(&search, s->parameters, &err), &err);
    search.iterations = 200;
    search.decrease = 1e-7;
    search.function = objective;
    search.user = s;
    ok(fini_lbfgs_run(&search, s->x, &err), &err);
    fini_lbfgs_close(&search);
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

static double polish(sample *s)
{
    fin_error err = {FIN_OK, ""};
    double loss;
    ok(fini_polish(s->risk,
                   &(fini_problem){.shape = &s->shape, .phi = &s->phi, .labels = s->labels},
                   s->penalty[1], s->gate, s->x, &loss, &err),
       &err);
    return loss;
}

/* 20 bags a column. The discriminant's error is about sqrt(d / tokens) = 0.08 and more by tokens
 * that were missed: a cosine of 0.99. The value's is sqrt(d / n) sigma / gamma = 0.03. */
static void polish__finds_the_directions_of_slr(void **state)
{
    (void)state;
    const fini_bag_form *forms[] = {&fini_bag_softmax, &fini_bag_mixture};
    for (int i = 0; i < 2; i++) {
        sample s;
        draw(&s, "slr", 240, 12, 8, 0.1);
        fit(&s, forms[i], 1);
        const double *k = fin_task_k_star(s.task), *v = fin_task_v_star(s.task);
        double before = cosine(s.d, s.x, k);
        polish(&s);
        double after = cosine(s.d, s.x, k), value = cosine(s.d, s.x + s.d, v);
        print_message("%s: key %.4f -> %.4f, value %.4f\n", forms[i]->name, before, after, value);
        assert_true(after > 0.99 && value > 0.995);
        close_sample(&s);
    }
}

/* max: tokens are all alike, the largest score wins softly. The loss without penalty falls. */
static void polish__lowers_the_loss(void **state)
{
    (void)state;
    const fini_bag_form *forms[] = {&fini_bag_softmax, &fini_bag_mixture};
    const char *kinds[] = {"spiked", "max"};
    for (int i = 0; i < 4; i++) {
        sample s;
        draw(&s, kinds[i / 2], 150, 8, 4, 0.3);
        fit(&s, forms[i % 2], 1);
        fin_error err = {FIN_OK, ""};
        double before, after;
        ok(fini_risk_value(s.risk, s.x, &before, NULL, &err), &err);
        after = polish(&s);
        print_message("%s, %s: loss %.4f -> %.4f\n", kinds[i / 2], forms[i % 2]->name, before,
                      after);
        assert_true(after < before);
        close_sample(&s);
    }
}

/* Bags that differ as a whole, along a direction between k* and another: softmax does not see it,
 * the discriminant does, and bends the key away. The one that was fitted is kept, but for its
 * length. */
static void polish__keeps_a_key_that_is_better(void **state)
{
    (void)state;
    const fini_bag_form *forms[] = {&fini_bag_softmax, &fini_bag_mixture};
    for (int m = 0; m < 2; m++) {
        sample s;
        draw(&s, "max", 800, 8, 4, 0.1);
        const double *k = fin_task_k_star(s.task), *v = fin_task_v_star(s.task);
        for (int64_t i = 0; i < s.n; i++) {
            double shift = 2 * sin((double)(7 * i));
            for (int64_t j = 0; j < 4 * s.d; j++)
                s.tokens[i * 4 * s.d + j] += shift * (k[j % s.d] + (j % s.d == 0));
            s.labels[i] += shift * v[0] * sqrt((double)s.d) / s.scale;
        }
        fit(&s, forms[m], 1);
        double before[8];
        memcpy(before, s.x, sizeof before);
        polish(&s);
        double same = cosine(s.d, before, s.x);
        print_message("%s: %.6f, with k* %.4f\n", forms[m]->name, same, cosine(s.d, s.x, k));
        assert_true(same > 1 - 1e-12);
        close_sample(&s);
    }
}

/* Few bags, classes: nothing changes, and the loss is told. */
static void polish__leaves_few_bags_and_classes_alone(void **state)
{
    (void)state;
    fin_error err = {FIN_OK, ""};
    for (int i = 0; i < 2; i++) {
        sample s;
        draw(&s, "spiked", i ? 200 : 39, 10, 3, 0.1);
        if (i) {
            s.shape.classes = 2;
            for (int64_t j = 0; j < s.n; j++)
                s.labels[j] = s.labels[j] > 0;
        }
        fit(&s, &fini_bag_mixture, 1);
        double keep[22], wanted;
        memcpy(keep, s.x, (size_t)s.parameters * sizeof *keep);
        ok(fini_risk_value(s.risk, s.x, &wanted, NULL, &err), &err);
        assert_true(polish(&s) == wanted);
        assert_memory_equal(keep, s.x, (size_t)s.parameters * sizeof *keep);
        close_sample(&s);
    }
}

/* free: the direction of the key stays, however much better another is; gaussian: it does not, for
 * classes and few bags (whose gains nothing changes) too. */
static void polish__gate_decides(void **state)
{
    (void)state;
    const fini_bag_form *forms[] = {&fini_bag_softmax, &fini_bag_mixture};
    for (int i = 0; i < 2 * 2 * 3; i++) {
        sample s;
        int gate = 1 + i / 2 % 2, kind = i / 4; /* enough bags, few, classes */
        draw(&s, "slr", kind == 1 ? 45 : 240, 12, 8, 0.1);
        for (int64_t j = 0; kind == 2 && j < s.n; j++)
            s.labels[j] = s.labels[j] > 0;
        s.shape.classes = kind == 2 ? 2 : 0;
        fit(&s, forms[i % 2], 1);
        s.gate = gate;
        double before[26];
        memcpy(before, s.x, (size_t)s.parameters * sizeof *before);
        polish(&s);
        double same = cosine(s.d, before, s.x), length = 0, was = 0;
        for (int64_t j = 0; j < s.d; j++) {
            length += s.x[j] * s.x[j];
            was += before[j] * before[j];
        }
        print_message("%s, %d, %s: cosine with the fitted key %.4f, length %.3f -> %.3f\n",
                      forms[i % 2]->name, kind, gate == FINI_GATE_FREE ? "free" : "gaussian", same,
                      sqrt(was), sqrt(length));
        assert_true(gate == FINI_GATE_FREE ? same > 1 - 1e-12 : same < 0.9999);
        assert_true(kind ? fabs(length / was - 1) < 1e-12 : length > 1.1 * was);
        close_sample(&s);
    }
}

static void polish__same_bytes_for_any_threads(void **state)
{
    (void)state;
    sample s;
    draw(&s, "spiked", 200, 10, 3, 0.1);
    fit(&s, &fini_bag_mixture, 1);
    double start[22], one[22];
    memcpy(start, s.x, sizeof start);
    fin_threads_set(1);
    double a = polish(&s);
    memcpy(one, s.x, sizeof one);
    memcpy(s.x, start, sizeof start);
    fin_threads_set(8);
    double b = polish(&s);
    fin_threads_set(0);
    assert_true(a == b);
    assert_memory_equal(one, s.x, sizeof one);
    close_sample(&s);
}

static fin_status run(void *user, fin_error *err)
{
    sample *s = user;
    double x[22], loss;
    fini_risk *risk = NULL;
    memcpy(x, s->x, sizeof x);
    fin_status status = fini_risk_create(
        &risk, s->form, &(fini_problem){.shape = &s->shape, .phi = &s->phi, .labels = s->labels},
        err);
    if (!status)
        status = fini_polish(
            risk, &(fini_problem){.shape = &s->shape, .phi = &s->phi, .labels = s->labels},
            s->penalty[1], s->gate, x, &loss, err);
    fini_risk_destroy(risk);
    return status;
}

static void polish__faults(void **state)
{
    (void)state;
    sample s;
    draw(&s, "spiked", 60, 10, 3, 0.1);
    fit(&s, &fini_bag_mixture, 1);
    fin_task_destroy(s.task);
    fini_risk_destroy(s.risk);
    s.task = NULL;
    s.risk = NULL;
    assert_true(fault_every(run, &s) >= 5);
    close_sample(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polish__finds_the_directions_of_slr),
        cmocka_unit_test(polish__lowers_the_loss),
        cmocka_unit_test(polish__keeps_a_key_that_is_better),
        cmocka_unit_test(polish__leaves_few_bags_and_classes_alone),
        cmocka_unit_test(polish__gate_decides),
        cmocka_unit_test(polish__same_bytes_for_any_threads),
        cmocka_unit_test(polish__faults),
    };
    return cmocka_run_group_tests_name("train_polish", tests, NULL, NULL);
}
