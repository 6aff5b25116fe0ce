/* Ridge-penalised attention fitted to n bags: one bag's minimum by a grid, the fixed point by fits of the engine, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bags/bags.h"
#include "finetti.h"
#include "math/lbfgs.h"
#include "task/task.h"
#include "theory/cavity.h"
#include "test_size.h"
#include "theory/learning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fin_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

/* ---- one bag ------------------------------------------------------------------------------------ */

/* The cost as it is defined, at h_k, with the best h_v: for two tokens, by Cramer's rule. */
static double cost(const fini_cavity *c, double k0, double k1)
{
    double p = 1 / (1 + exp(k1 - k0)), a[2] = {p, 1 - p};
    if (c->linear)
        a[0] = (1 + k0) / 2, a[1] = (1 + k1) / 2;
    double A = 1 / c->V[1] + a[0] * a[0], B = a[0] * a[1], D = 1 / c->V[1] + a[1] * a[1],
           s = c->w[1][0] / c->V[1] + a[0] * c->y, t = c->w[1][1] / c->V[1] + a[1] * c->y,
           det = A * D - B * B, h0 = (s * D - t * B) / det, h1 = (A * t - B * s) / det,
           rest = c->y - a[0] * h0 - a[1] * h1;
    return ((k0 - c->w[0][0]) * (k0 - c->w[0][0]) + (k1 - c->w[0][1]) * (k1 - c->w[0][1])) /
               (2 * c->V[0]) +
           ((h0 - c->w[1][0]) * (h0 - c->w[1][0]) + (h1 - c->w[1][1]) * (h1 - c->w[1][1])) /
               (2 * c->V[1]) +
           rest * rest / 2;
}

static void cavity__finds_the_lowest_minimum(void **state)
{
    (void)state;
    double *scratch = calloc((size_t)fini_cavity_scratch(2), sizeof *scratch);
    for (uint64_t i = 0; i < 60; i++) {
        double g[5];
        fin_random_normals_f64(3, 1, i, 0, 5, g);
        fini_cavity c = {.L = 2, .linear = i % 3 == 2, .V = {i % 2 ? 4 : 1, i % 5 ? 1 : 3}};
        fini_cavity_cut(&c, scratch);
        c.y = 2 * g[4];
        for (int l = 0; l < 2; l++) {
            c.w[0][l] = g[2 * l];
            c.w[1][l] = 1.5 * g[2 * l + 1];
        }
        fini_cavity_minimise(&c);
        assert_true(fabs(cost(&c, c.h[0][0], c.h[0][1]) - c.cost) < 1e-9);
        double least = INFINITY;
        for (double x = -8; x < 8; x += 0.1)
            for (double y = -8; y < 8; y += 0.1)
                least = fmin(least, cost(&c, c.w[0][0] + x, c.w[0][1] + y));
        assert_true(c.cost <= least + 1e-12 && c.cost > least - 0.02);
    }
    free(scratch);
}

/* ---- fits ---------------------------------------------------------------------------------------- */

static fini_erm theory(const fini_erm_task *task)
{
    fini_erm found;
    OK(fini_learning_erm(task, NULL, &found, &err));
    return found;
}

typedef struct objective {
    fini_risk *risk;
    double penalty[2]; /* over n */
    int64_t d;
} objective;

static fin_status value(void *user, const double *x, double *out, double *slope, fin_error *e)
{
    objective *o = user;
    fin_status status = fini_risk_value(o->risk, x, out, slope, e);
    for (int64_t j = 0; j < 2 * o->d && !status; j++) {
        *out += o->penalty[j >= o->d] * x[j] * x[j] / 2;
        slope[j] += o->penalty[j >= o->d] * x[j];
    }
    slope[2 * o->d] = 0; /* no bias */
    return status;
}

static const fini_bag_form *form_of(bool linear)
{
    return linear ? fini_bag_model_of(FIN_MODEL_LINEAR)->form : &fini_bag_softmax;
}

/* The minimum on drawn bags, from next to nothing; its risk on 3000 others. */
static double fitted(const fini_erm_task *t, int64_t d, uint64_t seed)
{
    enum { TEST = 3000 };
    const int64_t L = t->bags.L, n = (int64_t)(t->bags.alpha * (double)d), m = n > TEST ? n : TEST;
    const fin_task_kind *spiked = fin_task_find("spiked");
    fin_task_settings s;
    fin_task *task;
    fin_settings_defaults(spiked->settings, &s, sizeof s);
    s.L = L;
    s.d = d;
    s.snr = t->bags.snr;
    s.eps = t->bags.eps;
    OK(fin_task_create(&task, spiked, &s, NULL, seed, FIN_TASK_AMBIENT, &err));
    double *X = malloc((size_t)(m * L * d) * sizeof *X), *y = malloc((size_t)m * sizeof *y),
           *x = calloc((size_t)(2 * d + 1), sizeof *x), *U = malloc((size_t)(2 * L) * sizeof *U);
    int64_t *offsets = malloc((size_t)(m + 1) * sizeof *offsets);
    OK(fin_task_offsets(task, 0, n, offsets, &err));
    OK(fin_task_draw(task, 0, n, FIN_F64, offsets, X, y, NULL, &err));
    fini_phi phi = {.bags = {.n = n,
                             .d = d,
                             .total = n,
                             .offsets = offsets,
                             .dtype = FIN_F64,
                             .tokens = X,
                             .labels = y}};
    const fini_bag_shape shape = {
        .heads = 1, .outputs = 1, .longest = L, .form = form_of(t->linear)};
    const fini_problem problem = {.shape = &shape,
                                  .phi = &phi,
                                  .labels = y,
                                  .weight = (double)n,
                                  .bags = (double)n,
                                  .tokens = (double)(n * L)};
    objective o = {.d = d};
    for (int q = 0; q < 2; q++)
        o.penalty[q] = t->penalty[q] * (double)d / (double)n;
    OK(fini_risk_create(&o.risk, shape.form, &problem, &err));
    fin_random_normals_f64(seed, 5000, 0, 0, 2 * d, x);
    for (int64_t j = 0; j < 2 * d; j++)
        x[j] *= 0.03 / sqrt((double)d);
    fini_lbfgs search;
    OK(fini_lbfgs_create(&search, 2 * d + 1, &err));
    search.iterations = 2000;
    search.gradient = 1e-6;
    search.function = value;
    search.user = &o;
    OK(fini_lbfgs_run(&search, x, &err));
    fini_lbfgs_close(&search);
    fini_risk_destroy(o.risk);
    OK(fin_task_offsets(task, (uint64_t)n, TEST, offsets, &err));
    OK(fin_task_draw(task, (uint64_t)n, TEST, FIN_F64, offsets, X, y, NULL, &err));
    double risk = 0;
    for (int64_t i = 0; i < TEST; i++) {
        double extra = 0, scratch[64], out;
        for (int64_t r = 0; r < 2 * L; r++) {
            U[r] = 0;
            for (int64_t j = 0; j < d; j++)
                U[r] += X[(i * L + r / 2) * d + j] * x[(r % 2) * d + j];
        }
        const fini_bag bag = {.shape = &shape, .extra = &extra, .L = L, .U = U, .scratch = scratch};
        shape.form->predict(&bag, &out, NULL);
        risk += (y[i] - out) * (y[i] - out) / TEST;
    }
    fin_task_destroy(task);
    free(X);
    free(y);
    free(x);
    free(U);
    free(offsets);
    return risk;
}

/* Section 2 of the theory against the engine, d = 300. With little noise data sets differ more, so that it takes more of them. */
static void erm__is_what_the_engine_fits(void **state)
{
    (void)state;
    const fini_erm_task cases[] = {
        {.bags = {.snr = 5, .eps = 0.5, .alpha = 4, .L = 3}, .linear = true, .penalty = {0.3, 3}},
        {.bags = {.snr = 8, .eps = 0.2, .alpha = 4, .L = 5}, .penalty = {0.5, 0.5}},
        {.bags = {.snr = 5, .eps = 0.1, .alpha = 4, .L = 3}, .penalty = {0.3, 0.3}}};
    for (int64_t i = 0; i < sized(1, 3, 3); i++) {
        const uint64_t sets = i == 2 ? 30 : i == 1 ? 16 : 10;
        fini_erm_task t = cases[i];
        t.samples = 20000;
        double mean = 0, squares = 0;
        for (uint64_t set = 0; set < sets; set++) {
            double risk = fitted(&t, 300, 100 + set);
            mean += risk / (double)sets;
            squares += risk * risk / (double)sets;
        }
        fini_erm want = theory(&t);
        double error = hypot(sqrt((squares - mean * mean) / (double)(sets - 1)), want.risk.error);
        printf("fits %.4f +- %.4f, theory %.4f\n", mean, error, want.risk.value);
        assert_true(want.settled && error < 0.015 * mean);
        assert_true(fabs(mean - want.risk.value) < fmax(3 * error, 0.03 * mean));
    }
}

/* ---- limits -------------------------------------------------------------------------------------- */

static void erm__has_its_limits(void **state)
{
    (void)state;
    fini_erm_task t = {
        .bags = {.snr = 5, .eps = 0.5, .alpha = 2, .L = 3}, .penalty = {1e5, 1e5}, .samples = 4000};
    fini_learning best;
    OK(fini_learning_curve(&t.bags, NULL, &best, &err));
    fini_erm nothing = theory(&t);
    assert_true(nothing.settled && fabs(nothing.risk.value - 1.25) < 1e-3);
    /* No key: ridge regression on the mean token, whose best penalty is the noise 1 - 1/L + eps^2 beside it. */
    t.penalty[1] = 1.25 - 1 / 3.0;
    fini_erm mean = theory(&t);
    t.penalty[0] = t.penalty[1] = 1;
    fini_erm one = theory(&t);
    t.best = true;
    fini_erm chosen = theory(&t);
    printf("mean %.4f linear %.4f; 1,1: %.4f; best: %.4f\n", mean.risk.value, best.linear.value,
           one.risk.value, chosen.risk.value);
    assert_true(mean.settled &&
                fabs(mean.risk.value - best.linear.value) < 4 * mean.risk.error + 1e-4);
    assert_true(chosen.risk.value < one.risk.value + 3 * one.risk.error &&
                chosen.risk.value > best.optimal.risk.value);
    t = (fini_erm_task){.bags = {.snr = 5, .eps = 0.5, .alpha = 2000, .L = 3},
                        .penalty = {0.1, 0.1},
                        .samples = 4000};
    fini_erm many = theory(&t);
    printf("many bags: %.5f +- %.5f, known %.5f\n", many.risk.value, many.risk.error,
           best.known.value);
    assert_true(many.settled && many.risk.value < 1.005 * best.known.value &&
                many.risk.value > best.known.value);
}

/* Threads do not matter; a wild fit is no number. */
static void erm__is_the_same_for_any_threads(void **state)
{
    (void)state;
    const fini_erm_task t = {.bags = {.snr = 5, .eps = 0.5, .alpha = 3, .L = 4},
                             .penalty = {1, 1},
                             .samples = 3000},
                        wild = {.bags = {.snr = 5, .eps = 0.5, .alpha = 0.8, .L = 3},
                                .penalty = {0.05, 0.05},
                                .samples = 3000};
    int before = fini_threads_limit(1);
    fini_erm alone = theory(&t);
    fini_threads_limit(3);
    fini_erm together = theory(&t);
    fini_threads_limit(before);
    assert_true(alone.settled && alone.risk.value == together.risk.value &&
                alone.risk.error == together.risk.error);
    assert_false(theory(&wild).settled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cavity__finds_the_lowest_minimum),
        cmocka_unit_test(erm__is_what_the_engine_fits),
        cmocka_unit_test(erm__has_its_limits),
        cmocka_unit_test(erm__is_the_same_for_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
